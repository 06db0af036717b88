//! What goes on top of a request: `_meta` (2026-07-28: version, capabilities, client; both eras: the progress
//! token), and on HTTP the mirrored headers (26/basic/index, 26/basic/transports/streamable-http).
//! Pure text in, text out.

use crate::json::raw;
use crate::wire::id::Id;
use crate::wire::mirror::header_value;

/// The modern revision redial speaks.
pub const MODERN: &str = "2026-07-28";

/// The legacy revisions redial speaks, newest first.
pub const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// A request header.
pub type Header = (String, String);

/// `clientInfo` as redial sends it.
pub fn client_info() -> String {
    format!(r#"{{"name":"redial","version":"{}"}}"#, env!("CARGO_PKG_VERSION"))
}

/// `params` with the `_meta` that 2026-07-28 requires.
pub fn with_meta(params: Option<&str>, capabilities: &str, token: Option<&Id>) -> String {
    let mut meta = vec![
        ("io.modelcontextprotocol/protocolVersion", raw::quote(MODERN)),
        ("io.modelcontextprotocol/clientCapabilities", capabilities.to_owned()),
        ("io.modelcontextprotocol/clientInfo", client_info()),
    ];
    meta.extend(token.map(|t| ("progressToken", t.to_json())));
    add_meta(params, &meta)
}

/// `params` with a progress token and nothing else, as older revisions have it.
pub fn with_token(params: Option<&str>, token: &Id) -> String {
    add_meta(params, &[("progressToken", token.to_json())])
}

/// Puts members into `params._meta`. What is there already stays as it is, byte for byte.
fn add_meta(params: Option<&str>, members: &[(&str, String)]) -> String {
    let params = params.map(str::trim).filter(|p| !p.is_empty()).unwrap_or("{}");
    let Some(all) = raw::members(params) else { return params.to_owned() };
    let old = all.iter().rev().find(|(k, _)| k == "_meta").map(|(_, v)| *v);
    let mut meta: Vec<String> = Vec::new();
    for (k, v) in old.and_then(raw::members).unwrap_or_default() {
        meta.push(format!("{}:{v}", raw::quote(&k)));
    }
    for (k, v) in members {
        if old.and_then(|o| raw::get(o, k)).is_none() {
            meta.push(format!("{}:{v}", raw::quote(k)));
        }
    }
    let mut out = vec![format!("\"_meta\":{{{}}}", meta.join(","))];
    out.extend(
        all.iter().filter(|(k, _)| k != "_meta").map(|(k, v)| format!("{}:{v}", raw::quote(k))),
    );
    format!("{{{}}}", out.join(","))
}

/// The headers that mirror a modern request: `Mcp-Method`, and `Mcp-Name` where the method has one.
pub fn headers(method: &str, params: Option<&str>) -> Vec<Header> {
    let mut out = vec![
        ("mcp-protocol-version".into(), MODERN.to_owned()),
        ("mcp-method".into(), method.to_owned()),
    ];
    let key = match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    };
    if let Some(name) = key.and_then(|k| raw::get_str(params?, k)) {
        out.push(("mcp-name".into(), header_value(&name)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_goes_in_without_touching_the_rest() {
        let p = with_meta(Some(r#"{"name":"t","arguments":{"x":1e2}}"#), "{}", None);
        assert!(
            p.starts_with(r#"{"_meta":{"#) && p.ends_with(r#","name":"t","arguments":{"x":1e2}}"#)
        );
        assert_eq!(raw::get(&p, "name"), Some("\"t\""));
        assert!(raw::members(&with_meta(None, "{}", None)).is_some());
        let id = Id::from(7);
        let p = with_meta(
            Some(r#"{"_meta":{"traceparent":"x","progressToken":"mine"}}"#),
            "{}",
            Some(&id),
        );
        let meta = raw::get(&p, "_meta").unwrap();
        assert_eq!(raw::get_str(meta, "progressToken").as_deref(), Some("mine"));
        assert_eq!(
            raw::get_str(meta, "io.modelcontextprotocol/protocolVersion").as_deref(),
            Some(MODERN)
        );
        assert_eq!(
            with_token(Some(r#"{"name":"t"}"#), &id),
            r#"{"_meta":{"progressToken":7},"name":"t"}"#
        );
    }

    #[test]
    fn the_name_of_each_kind_of_request_is_mirrored() {
        let name = |m: &str, p: &str| {
            headers(m, Some(p)).into_iter().find(|(k, _)| k == "mcp-name").map(|(_, v)| v)
        };
        assert_eq!(name("tools/call", r#"{"name":"日"}"#).as_deref(), Some("=?base64?5pel?="));
        assert_eq!(
            name("resources/read", r#"{"uri":"file:///a%20b"}"#).as_deref(),
            Some("file:///a%20b")
        );
        assert_eq!(name("tasks/get", r#"{"taskId":"t-1"}"#).as_deref(), Some("t-1"));
        assert_eq!(name("tools/list", r#"{"name":"x"}"#), None);
    }
}
