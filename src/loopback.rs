//! Who may speak to a server that listens on loopback: a page of another site that has made its name point here (DNS
//! rebinding) may not. Pure.

use http::uri::Authority;
use http::{HeaderMap, Uri, header};
use std::net::IpAddr;

/// Host must name a loopback address, and Origin too where a browser sends one.
///
/// # Errors
/// Which of the two doesn't, as the body of a 403.
pub fn check_peer(uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
    let host = headers
        .get(header::HOST)
        .and_then(|h| h.to_str().ok()?.parse::<Authority>().ok())
        .is_some_and(|a| is_loopback(a.host()));
    if !host || uri.host().is_some_and(|h| !is_loopback(h)) {
        return Err("Forbidden: Host must be a loopback name or address");
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().ok().and_then(|o| o.parse::<Uri>().ok());
    if origin.as_ref().and_then(Uri::host).is_some_and(is_loopback) {
        Ok(())
    } else {
        Err("Forbidden: Origin must be a loopback name or address")
    }
}

/// `localhost`, `127.…`, `[::1]`.
fn is_loopback(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|a| a.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(k, v): &(&'static str, &str)| {
            (HeaderName::from_static(k), HeaderValue::from_str(v).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn only_loopback_hosts_and_origins_pass() {
        let uri = Uri::from_static("/mcp");
        for (pairs, ok) in [
            (&[("host", "127.0.0.1:8000")][..], true),
            (&[("host", "LocalHost")], true),
            (&[("host", "[::1]:80")], true),
            (&[("host", "localhost"), ("origin", "http://localhost:5173")], true),
            (&[], false),
            (&[("host", "example.com")], false),
            (&[("host", "localhost.example.com:8000")], false),
            (&[("host", "127.0.0.1.example.com")], false),
            (&[("host", "localhost"), ("origin", "https://example.com")], false),
            (&[("host", "localhost"), ("origin", "null")], false),
        ] {
            assert_eq!(check_peer(&uri, &headers(pairs)).is_ok(), ok, "{pairs:?}");
        }
        let absolute = Uri::from_static("http://example.com/mcp");
        assert!(check_peer(&absolute, &headers(&[("host", "localhost")])).is_err());
    }
}
