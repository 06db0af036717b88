//! How an HTTP answer that is no answer is read: what refuses, what means a lost session, what is a proxy's page.
//!
//! Pure: text and numbers in, words out.

use super::exchange::Exchange;

/// Statuses that say that this very POST was not handled (design: `refused`).
pub fn refuses(status: u16) -> bool {
    matches!(status, 401 | 403 | 413 | 429)
}

pub(super) fn refusal_words(status: u16, x: &Exchange) -> String {
    let mut words = match status {
        401 => "HTTP 401: the server wants other credentials".to_owned(),
        403 => "HTTP 403: the server does not allow this".to_owned(),
        413 => "HTTP 413: the request is too large for the server".to_owned(),
        429 => "HTTP 429: too many requests, the server did not take this one".to_owned(),
        _ => format!("HTTP {status}"),
    };
    if let Some(w) = &x.www_authenticate {
        words.push_str(&format!(" ({})", auth_words(w)));
    }
    words
}

/// A `WWW-Authenticate` header in words (RFC 9110, section 11.6.1; RFC 6750, section 3): what is wrong, what is
/// needed, where to look. A header of another form is given as it is.
pub fn auth_words(header: &str) -> String {
    let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
    let value = |key: &str| {
        let at = rest.match_indices(key).find(|(i, _)| {
            let before = rest[..*i].chars().next_back();
            before.is_none_or(|c| c == ',' || c.is_whitespace())
                && rest[i + key.len()..].starts_with('=')
        })?;
        let text = rest.get(at.0 + key.len() + 1..)?;
        let text = match text.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next(),
            None => text.split(',').next(),
        };
        text.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty())
    };
    let error = value("error").map(|e| match e.as_str() {
        "insufficient_scope" => {
            "insufficient_scope: the token is good, but not for this".to_owned()
        }
        "invalid_token" => "invalid_token: expired, revoked or not for this server".to_owned(),
        _ => e,
    });
    let parts: Vec<String> = [
        error,
        value("error_description").map(|d| format!("it says: {d}")),
        value("scope").map(|s| format!("needs the scope {s}")),
        value("resource_metadata").map(|m| format!("see {m}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() { first_line(header) } else { format!("{scheme}, {}", parts.join(", ")) }
}

/// Whether an HTTP answer says that the session is gone (protocol.md, section 9). A 404 with -32601 is an
/// unknown method; a 400 about the protocol version is not a lost session; and a 500 that merely has the word
/// in it may come from the work itself. So may every error that carries the id of our request (`own_id`):
/// whoever looks sessions up has not read that far. A 404 that also says so still ends the session.
pub fn is_session_lost(
    status: u16,
    code: Option<i64>,
    text: &str,
    session_sent: bool,
    own_id: bool,
) -> bool {
    let text = text.to_ascii_lowercase();
    let says_so = LOST_WORDS.iter().any(|w| text.contains(w)) && !text.contains("protocol version");
    match status {
        404 if code == Some(-32601) => false,
        404 if own_id => session_sent && says_so,
        404 => session_sent || says_so,
        400 | 401 | 500 => session_sent && says_so && !own_id,
        _ => false,
    }
}

/// How servers say that they don't know a session.
const LOST_WORDS: [&str; 11] = [
    "session id",
    "session not found",
    "session does not exist",
    "session expired",
    "session has expired",
    "session terminated",
    "no session",
    "no valid session",
    "unknown session",
    "invalid session",
    "missing session",
];

/// Whether a modern request was refused by a server that wants `initialize` first: an older server took the
/// place of a modern one (protocol.md, section 9: "we sent none: re-initialise").
pub fn wants_initialize(status: u16, code: Option<i64>, text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let about = text.contains("session") || text.contains("initialize");
    status == 400 && !matches!(code, Some(-32022..=-32020 | -32602)) && about
}

/// Whether a body is an HTML page.
pub(super) fn is_html(text: &str) -> bool {
    let t = text.trim_start().to_ascii_lowercase();
    t.starts_with("<!doctype html") || t.starts_with("<html")
}

/// The title of an HTML page; nothing else of a proxy's page is worth a line.
pub fn page_title(text: &str) -> Option<String> {
    if !is_html(text) {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let start = lower.find("<title>")? + 7;
    let end = start + lower.get(start..)?.find("</title>")?;
    text.get(start..end).map(|t| t.trim().to_owned())
}

/// The first line that holds something, at most 300 characters of it.
pub fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("");
    if line.chars().count() > 300 {
        line.chars().take(300).collect::<String>() + "…"
    } else {
        line.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_a_lost_session_and_what_does_not() {
        // Status, code, text, a session was sent; measured answers of real servers (protocol.md, section 9).
        let rows = [
            (404, Some(-32001), "Session not found", true, true),
            (404, Some(-32600), "Session not found", true, true),
            (404, None, "Not Found: Session not found", true, true),
            (404, None, "", true, true),
            (400, Some(-32000), "Bad Request: No valid session ID provided", true, true),
            (401, Some(-32000), "Unauthorized: Session not found", true, true),
            (500, Some(-32000), "Session ID is required", true, true),
            (404, Some(-32601), "Method not found", true, false),
            (404, Some(-32601), "Method not found", false, false),
            (
                400,
                Some(-32600),
                "Bad Request: Unsupported protocol version: x. (session s)",
                true,
                false,
            ),
            (400, Some(-32602), "bad arguments", true, false),
            (401, None, "token expired", true, false),
            (500, None, "boom", true, false),
            (
                500,
                Some(-32603),
                "sqlalchemy: this Session's transaction has been rolled back",
                true,
                false,
            ),
            (404, None, "nothing here", false, false),
            (503, None, "no session", true, false),
        ];
        for (status, code, text, sent, lost) in rows {
            let got = is_session_lost(status, code, text, sent, false);
            assert_eq!(got, lost, "{status} {code:?} {text}");
            // With the id of our request it is the work's own word, but for what a 404 is there to say.
            let got = is_session_lost(status, code, text, sent, true);
            let says_so = status == 404 && text.contains("ession not found");
            assert_eq!(got, lost && says_so, "{status} {code:?} {text}, own id");
        }
        let bearer = r#"Bearer error="insufficient_scope", scope="files:write x", error_description="no, thanks""#;
        let want = "Bearer, insufficient_scope: the token is good, but not for this, it says: no, thanks, needs the scope files:write x";
        assert_eq!(auth_words(bearer), want);
        assert_eq!(auth_words("Negotiate"), "Negotiate");
        assert!(wants_initialize(400, Some(-32600), "Bad Request: Missing session ID"));
        assert!(wants_initialize(400, Some(-32000), "Bad Request: Server not initialized"));
        assert!(!wants_initialize(400, Some(-32020), "session header mismatch"));
        assert!(!wants_initialize(404, None, "no session"));
    }
}
