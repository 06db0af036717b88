//! What the HTTP headers of a request must be: media types, and the mirrored fields of 2026-07-28. Pure.

use super::mcp;
use crate::json::raw;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Sent by legacy clients after `initialize` (2025-11-25 transports, "Session Management").
pub const SESSION: &str = "mcp-session-id";
/// Since 2025-06-18.
pub const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// The value of `name` as text; `None` when it is missing or no visible ASCII.
pub fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether the body says it is JSON.
pub fn sends_json(headers: &HeaderMap) -> bool {
    text(headers, header::CONTENT_TYPE.as_str())
        .is_some_and(|t| media_type(t) == "application/json")
}

/// Whether the client takes JSON. The spec wants `text/event-stream` listed too, but none is ever sent.
pub fn takes_json(headers: &HeaderMap) -> bool {
    let mut all = headers.get_all(header::ACCEPT).iter().filter_map(|v| v.to_str().ok()).peekable();
    all.peek().is_none()
        || all
            .flat_map(|v| v.split(','))
            .any(|t| matches!(media_type(t).as_str(), "application/json" | "application/*" | "*/*"))
}

fn media_type(value: &str) -> String {
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The mirrored fields of a modern request (2026-07-28 streamable-http, "Server Validation"). `version` is what `_meta` declares.
///
/// # Errors
/// What doesn't match, for a `HeaderMismatch` answer.
pub fn check_mirrored(
    headers: &HeaderMap,
    version: &str,
    method: &str,
    params: &str,
) -> Result<(), String> {
    let differs = |name: &str, has: Option<&str>, body: &str| match has {
        Some(has) => format!(
            "Header mismatch: {name} header value '{has}' does not match body value '{body}'"
        ),
        None => format!("Header mismatch: {name} header is missing or malformed"),
    };
    let has = text(headers, VERSION);
    if has != Some(version) {
        return Err(differs("MCP-Protocol-Version", has, version));
    }
    if version != mcp::MODERN {
        return Ok(()); // its rules aren't known here; the version itself is refused
    }
    let has = text(headers, METHOD);
    if has != Some(method) {
        return Err(differs("Mcp-Method", has, method));
    }
    if method == "tools/call"
        && let Some(name) = raw::get_str(params, "name")
    {
        let has = text(headers, NAME).and_then(decode);
        if has.as_deref() != Some(&name) {
            return Err(differs("Mcp-Name", has.as_deref(), &name));
        }
    }
    Ok(())
}

/// A value as it is, or out of its `=?base64?…?=` ("Value Encoding").
fn decode(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|v| v.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(k, v)| (k.parse::<HeaderName>().unwrap(), HeaderValue::from_str(v).unwrap()))
            .collect()
    }

    #[test]
    fn media_types_are_compared_without_parameters_or_case() {
        assert!(sends_json(&headers(&[("content-type", "Application/JSON; charset=utf-8")])));
        assert!(
            !sends_json(&headers(&[("content-type", "text/plain")])) && !sends_json(&headers(&[]))
        );
        assert!(takes_json(&headers(&[])) && takes_json(&headers(&[("accept", "*/*")])));
        assert!(takes_json(&headers(&[("accept", "text/event-stream, application/json;q=0.9")])));
        assert!(!takes_json(&headers(&[("accept", "text/event-stream")])));
    }

    #[test]
    fn mirrored_fields_must_be_there_and_equal() {
        let params = r#"{"name":"障害"}"#;
        let all = [(VERSION, mcp::MODERN), (METHOD, "tools/call"), (NAME, "=?base64?6Zqc5a6z?=")];
        let check = |pairs: &[(&str, &str)]| {
            check_mirrored(&headers(pairs), mcp::MODERN, "tools/call", params)
        };
        assert_eq!(check(&all), Ok(()));
        for drop in 0..3 {
            let mut some = all.to_vec();
            some.remove(drop);
            assert!(check(&some).is_err(), "{drop}");
        }
        assert!(check(&[all[0], all[1], (NAME, "=?base64?!?=")]).is_err());
        assert!(check(&[all[0], (METHOD, "Tools/Call"), all[2]]).is_err());
        // A plain name may look like anything but the sentinel.
        let plain = headers(&[all[0], all[1], (NAME, "charge")]);
        assert_eq!(
            check_mirrored(&plain, mcp::MODERN, "tools/call", r#"{"name":"charge"}"#),
            Ok(())
        );
    }
}
