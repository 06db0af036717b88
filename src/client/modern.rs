//! What 2026-07-28 puts on every request: `_meta`, and on HTTP the mirrored headers
//! (26/basic/index, 26/basic/transports/streamable-http). Pure text in, text out.

use crate::json::raw;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The modern revision redial speaks.
pub const MODERN: &str = "2026-07-28";

/// The legacy revisions redial speaks, newest first.
pub const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// `clientInfo` as redial sends it.
pub fn client_info() -> String {
    format!(r#"{{"name":"redial","version":"{}"}}"#, env!("CARGO_PKG_VERSION"))
}

/// `params` with the required `_meta` added; a member that is already there stays as it is.
pub fn with_meta(params: Option<&str>) -> String {
    let meta = format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{}}}"#,
        client_info()
    );
    match params.map(str::trim) {
        None | Some("{}") => format!("{{{meta}}}"),
        Some(p) if raw::get(p, "_meta").is_some() => p.to_owned(),
        Some(p) => match p.strip_prefix('{') {
            Some(rest) => format!("{{{meta},{rest}"),
            None => p.to_owned(),
        },
    }
}

/// The headers that mirror a modern request: `Mcp-Method`, and `Mcp-Name` where the method has one.
pub fn headers(method: &str, params: Option<&str>) -> Vec<(&'static str, String)> {
    let mut out =
        vec![("mcp-protocol-version", MODERN.to_owned()), ("mcp-method", method.to_owned())];
    let key = match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    };
    if let Some(name) = key.and_then(|k| raw::get_str(params?, k)) {
        out.push(("mcp-name", header_value(&name)));
    }
    out
}

/// A value that a header can carry: as it is, or as the base64 sentinel when it holds anything else than
/// visible ASCII and inner blanks, or looks like the sentinel itself.
pub fn header_value(text: &str) -> String {
    let plain = text.bytes().all(|b| (0x20..0x7f).contains(&b))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_goes_in_without_touching_the_rest() {
        let p = with_meta(Some(r#"{"name":"t","arguments":{"x":1e2}}"#));
        assert!(
            p.starts_with(r#"{"_meta":{"#) && p.ends_with(r#","name":"t","arguments":{"x":1e2}}"#)
        );
        assert_eq!(raw::get(&p, "name"), Some("\"t\""));
        assert!(raw::members(&with_meta(None)).is_some());
        assert_eq!(with_meta(Some(r#"{"_meta":{}}"#)), r#"{"_meta":{}}"#);
    }

    #[test]
    fn unsafe_header_values_are_wrapped() {
        // RFC 4648, section 10, and the specification's sentinel form.
        for (text, want) in [
            ("create_ticket", "create_ticket"),
            ("fo", "fo"),
            (" fo", "=?base64?IGZv?="),
            ("日", "=?base64?5pel?="),
            ("é", "=?base64?w6k=?="),
            ("a\n", "=?base64?YQo=?="),
            ("=?base64?Zm8=?=", "=?base64?PT9iYXNlNjQ/Wm04PT89?="),
        ] {
            assert_eq!(header_value(text), want);
        }
    }
}
