//! How an HTTP answer that is no answer is read: what refuses, what means a lost session, what is a proxy's page.
//!
//! Pure: text and numbers in, words out.

use super::exchange::Exchange;

/// Statuses that say that this very POST was not handled (design: `refused`).
pub fn refuses(status: u16) -> bool {
    matches!(status, 401 | 403 | 413 | 429)
}

pub(super) fn refusal_words(status: u16, x: &Exchange) -> String {
    // A proxy refuses in the same words as the server that it hides.
    let who = match &x.proxy {
        Some(p) => format!("the server, or the proxy {p} before it,"),
        None => "the server".into(),
    };
    let mut words = match status {
        401 => format!("HTTP 401: {who} wants other credentials"),
        403 => format!("HTTP 403: {who} does not allow this"),
        413 => format!("HTTP 413: the request is too large for {}", who.trim_end_matches(',')),
        429 => format!("HTTP 429: too many requests, {who} did not take this one"),
        _ => format!("HTTP {status}"),
    };
    if let Some(w) = &x.www_authenticate {
        words.push_str(&format!(" ({})", auth_words(w)));
    }
    words
}

/// Who may have said a status that is no answer of the server, where a proxy stands before it; for the end of a sentence.
pub(super) fn by_proxy(status: u16, x: &Exchange) -> String {
    match (&x.proxy, status) {
        (Some(p), 407) => format!("; the proxy {p} wants credentials"),
        (Some(p), 400..) if !refuses(status) => {
            format!("; it may be the word of the proxy {p}, through which this went")
        }
        _ => String::new(),
    }
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

/// Whether an HTTP answer puts the session in doubt, so that a new one is to be opened before anything else is sent.
/// It says nothing of the call that met it: that is [`proves_session_lost`]. A 404 with
/// -32601 is an unknown method; a 400 about the protocol version is not a lost session; and an error that carries
/// the id of our request (`own_id`), or a code that no transport uses, may come from the work itself: whoever looks
/// sessions up has not read that far. A 404 that also says so still ends the session.
pub fn is_session_lost(
    status: u16,
    code: Option<i64>,
    text: &str,
    session_sent: bool,
    own_id: bool,
) -> bool {
    let text = text.to_ascii_lowercase().replace('-', " ");
    let says_so = LOST_WORDS.iter().any(|w| text.contains(w)) && !text.contains("protocol version");
    match status {
        404 if code == Some(-32601) => false,
        404 if own_id => session_sent && says_so,
        404 => session_sent || (says_so && is_transports(code)),
        400 | 401 | 500 => session_sent && says_so && !own_id && is_transports(code),
        _ => false,
    }
}

/// Whether such an answer proves that this very request was not run: a 404 to a request of a session, which is what
/// the status means there (2025-11-25, "Session Management"), or one of the sentences by which servers refuse a
/// session before they read on, whole and in an error of the transport. A word in some other sentence proves nothing,
/// nor does a 5xx without JSON-RPC.
pub fn proves_session_lost(
    status: u16,
    code: Option<i64>,
    text: &str,
    session_sent: bool,
    own_id: bool,
) -> bool {
    let proven = match status {
        404 => session_sent || is_refusal_of_session(text),
        // Any gateway or framework writes a page or a line under a 500.
        500 => code.is_some() && is_refusal_of_session(text),
        _ => is_refusal_of_session(text),
    };
    proven && !own_id && is_session_lost(status, code, text, session_sent, own_id)
}

/// No code, or one that the SDKs' transports use for what they refuse themselves.
fn is_transports(code: Option<i64>) -> bool {
    matches!(code, None | Some(-32000 | -32001 | -32600))
}

/// How servers say that they don't know a session, as parts of sentences.
const LOST_WORDS: &[&str] = &[
    "session id",
    "session not found",
    "session does not exist",
    "session expired",
    "session has expired",
    "session terminated",
    "session has been terminated",
    "no session",
    "no valid session",
    "unknown session",
    "invalid session",
    "missing session",
    "server not initialized",
    "session not initialized",
];

/// The same as whole sentences (after "Bad Request: " and the like, hyphens as blanks).
const LOST_SENTENCES: &[&str] = &[
    "session not found",
    "session id not found",
    "session not found or expired",
    "session not found or has expired",
    "session does not exist",
    "session expired",
    "session has expired",
    "session expired or not found",
    "session terminated",
    "session has been terminated",
    "session not initialized",
    "session id is required",
    "session id required",
    "session id is missing",
    "mcp session id header is required",
    "mcp session id header required",
    "mcp session id header is missing",
    "missing session id",
    "missing session id header",
    "missing mcp session id header",
    "missing mcp session id",
    "no session",
    "no session id",
    "no session id provided",
    "no valid session",
    "no valid session id provided",
    "unknown session",
    "unknown session id",
    "invalid session",
    "invalid session id",
    "invalid or missing session id",
    "invalid or expired session",
    "server not initialized",
];

/// Whether a text is a transport's refusal of a session and nothing else: one of the sentences, perhaps behind the
/// status's name, perhaps with the id it looked for.
fn is_refusal_of_session(text: &str) -> bool {
    let text = text.trim().trim_matches('"').to_ascii_lowercase();
    let mut said = text.as_str();
    for before in ["error: ", "bad request: ", "not found: ", "unauthorized: ", "invalid request: "]
    {
        said = said.strip_prefix(before).unwrap_or(said);
    }
    let said = said.trim_end_matches(['.', '!']).trim();
    let with_id = said.split_once(": ").filter(|(_, id)| id.len() <= 80 && !id.contains(' '));
    let said = with_id.map_or(said, |(said, _)| said).replace('-', " ");
    LOST_SENTENCES.contains(&said.as_str())
}

/// Whether a modern request was refused by a server that wants `initialize` first: an older server took the
/// place of a modern one. Whole sentences of transports
/// only: a tool may fail to initialize something, too.
pub fn wants_initialize(status: u16, code: Option<i64>, text: &str) -> bool {
    status == 400 && is_transports(code) && is_refusal_of_session(text)
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
    short(line, 300)
}

/// At most `most` characters of a text, with a sign where it goes on: what others wrote has no other bound.
pub fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_a_lost_session_and_what_does_not() {
        // Status, code, text, a session was sent; measured answers of real servers.
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
            (400, Some(-32000), "Bad Request: Server not initialized", true, true),
            (400, Some(-32000), "Bad Request: Mcp-Session-Id header is required", true, true),
            (500, Some(-32603), "upstream CRM: login session expired", true, false),
            (400, Some(-32603), "database has no session for tenant 7", true, false),
        ];
        for (status, code, text, sent, lost) in rows {
            let got = is_session_lost(status, code, text, sent, false);
            assert_eq!(got, lost, "{status} {code:?} {text}");
            // With the id of our request it is the work's own word, but for what a 404 is there to say.
            let got = is_session_lost(status, code, text, sent, true);
            let says_so = status == 404 && text.contains("ession not found");
            assert_eq!(got, lost && says_so, "{status} {code:?} {text}, own id");
        }
        // What the call itself is then known to be: not run, only where that is all that is said.
        for (status, code, text, proven) in [
            (404, Some(-32001), "Session not found", true),
            (404, None, "gone", true),
            (404, Some(-32601), "Method not found", false),
            (400, Some(-32000), "Bad Request: No valid session ID provided", true),
            (400, Some(-32000), "Bad Request: Server not initialized", true),
            (400, Some(-32000), "Bad Request: Mcp-Session-Id header is required", true),
            (400, Some(-32600), "Session not found: 0f8d-11", true),
            (400, None, "Invalid session ID.", true),
            (401, Some(-32000), "Unauthorized: Session not found", true),
            (500, Some(-32000), "Session ID is required", true),
            (500, None, "Session ID is required", false),
            (500, Some(-32000), "the upstream's session expired", false),
            (500, Some(-32603), "Session expired", false),
            (400, Some(-32000), "invalid session for billing API", false),
            (400, Some(-32000), "charged, then: no session", false),
            (400, None, "database has no session for tenant 7", false),
        ] {
            let got = proves_session_lost(status, code, text, true, false);
            assert_eq!(got, proven, "{status} {code:?} {text}");
            assert!(!proves_session_lost(status, code, text, true, true), "{text}: our own id");
        }
        let bearer = r#"Bearer error="insufficient_scope", scope="files:write x", error_description="no, thanks""#;
        let want = "Bearer, insufficient_scope: the token is good, but not for this, it says: no, thanks, needs the scope files:write x";
        assert_eq!(auth_words(bearer), want);
        assert_eq!(auth_words("Negotiate"), "Negotiate");
        assert!(wants_initialize(400, Some(-32600), "Bad Request: Missing session ID"));
        assert!(wants_initialize(400, Some(-32000), "Bad Request: Server not initialized"));
        assert!(!wants_initialize(400, Some(-32020), "session header mismatch"));
        let charged = "could not initialize the payment session after charging";
        assert!(
            !wants_initialize(400, Some(-32000), charged) && !wants_initialize(400, None, charged)
        );
        assert!(!wants_initialize(404, None, "no session"));
    }
}
