//! What of a message's headers goes on, up and down; and whom the tap talks to.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

/// Headers that belong to one connection and not to the message (RFC 9110, 7.6.1), and `Host`, which is the
/// upstream's own.
const HOP_BY_HOP: [&str; 10] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
];

/// Listening for other machines: a browser's Origin must be the host it asked for.
pub(super) fn same_site(headers: &HeaderMap) -> std::result::Result<(), &'static str> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().ok().and_then(|o| o.parse::<Uri>().ok());
    let host = text(headers, "host");
    match (origin.as_ref().and_then(Uri::authority), host) {
        (Some(o), Some(h)) if o.as_str().eq_ignore_ascii_case(&h) => Ok(()),
        _ => Err("Forbidden: Origin must be the host that was asked"),
    }
}

pub(super) fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned)
}

/// What goes up: an answer must be readable on its way back, so no coding of it is asked for; and where the client
/// accepts nothing in particular, nothing is accepted in its name (the HTTP library would say `*/*`).
pub(super) fn upstream(headers: &HeaderMap) -> HeaderMap {
    let mut out = passed_on(headers);
    if out.contains_key(header::ACCEPT_ENCODING) {
        out.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    if !out.contains_key(header::ACCEPT) {
        out.insert(header::ACCEPT, HeaderValue::from_static(""));
    }
    out
}

/// All headers but those of the connection itself and those it names (compared without case). Beside a transfer coding
/// a length is nothing (RFC 9112, 6.3): passed on alone it would end the message early, and call that whole.
pub(super) fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .map(|n| n.trim().to_ascii_lowercase())
        .collect();
    let coded = headers.contains_key(header::TRANSFER_ENCODING);
    let goes = |name: &HeaderName| {
        HOP_BY_HOP.contains(&name.as_str())
            || named.iter().any(|n| n == name.as_str())
            || (coded && name == header::CONTENT_LENGTH)
    };
    headers.iter().filter(|(k, _)| !goes(k)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_headers_of_the_connection_are_dropped() {
        let mut h = HeaderMap::new();
        for (k, v) in [
            ("Host", "a"),
            ("Connection", "Keep-Alive, X-Hop"),
            ("x-hop", "1"),
            ("TE", "trailers"),
            ("Authorization", "Bearer x"),
            ("X-Custom", "1"),
        ] {
            h.append(k.parse::<HeaderName>().unwrap(), v.parse().unwrap());
        }
        h.append("x-custom", "2".parse().unwrap());
        let out = passed_on(&h);
        assert_eq!(out.len(), 3, "{out:?}");
        assert_eq!(out.get_all("x-custom").iter().count(), 2);
        let has_length = |h: &HeaderMap| passed_on(h).contains_key("content-length");
        h.append("content-length", "5".parse().unwrap());
        assert!(has_length(&h));
        h.append("transfer-encoding", "chunked".parse().unwrap());
        assert!(!has_length(&h), "it would cut the body");
    }

    #[test]
    fn no_coding_is_asked_for_and_nothing_is_accepted_in_the_clients_name() {
        let up = |pairs: &[(&'static str, &'static str)]| {
            let h: HeaderMap = pairs
                .iter()
                .map(|(k, v)| (HeaderName::from_static(k), HeaderValue::from_static(v)))
                .collect();
            let up = upstream(&h);
            let of = |n| up.get(n).map(|v| v.to_str().unwrap().to_owned());
            (of("accept"), of("accept-encoding"))
        };
        let some = |t: &str| Some(t.to_owned());
        assert_eq!(up(&[]), (some(""), None));
        assert_eq!(
            up(&[("accept", "text/x"), ("accept-encoding", "gzip, br")]),
            (some("text/x"), some("identity"))
        );
    }

    #[test]
    fn origins_of_other_sites_are_refused_when_listening_anywhere() {
        let of = |pairs: &[(&'static str, &'static str)]| {
            let h: HeaderMap = pairs
                .iter()
                .map(|(k, v)| (HeaderName::from_static(k), HeaderValue::from_static(v)))
                .collect();
            same_site(&h).is_ok()
        };
        assert!(of(&[("host", "h:1")]) && of(&[("host", "h:1"), ("origin", "http://h:1")]));
        assert!(!of(&[("host", "h:1"), ("origin", "http://evil")]) && !of(&[("origin", "null")]));
    }
}
