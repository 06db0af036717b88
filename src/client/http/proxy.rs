//! Which proxy leads to a URL, by the environment: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, in either
//! case. What is on this machine is never asked for through one.
//!
//! As curl and Python read them, with one trap left out: in a CGI process `HTTP_PROXY` is whatever a request's `Proxy:`
//! header said (httpoxy), so it counts only where there is no `REQUEST_METHOD`.

use super::root_cause;
use crate::client::shown::shown_url;
use reqwest::Url;
use std::net::IpAddr;

/// A proxy and where it is named.
#[derive(Debug, Clone)]
pub(crate) struct Proxy {
    url: Url,
    /// The variable of the environment.
    pub from: &'static str,
}

impl Proxy {
    /// Its address for people: without user and password.
    pub fn shown(&self) -> String {
        shown_url(self.url.as_str()).trim_end_matches('/').to_owned()
    }

    /// It is spoken to with TLS.
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Why a request broke. Where nothing could be sent the way to the proxy, or through it, was not there; but a
    /// certificate that is not trusted is the far end's, and came through.
    pub fn cause(&self, e: &reqwest::Error) -> String {
        let why = root_cause(e);
        if !e.is_connect() || (!self.is_https() && is_tls(e)) {
            return why;
        }
        let hint = "it can't be reached, or refuses the way";
        format!("the proxy {} ({}): {hint}: {why}", self.shown(), self.from)
    }
}

/// The proxy for `url`; `None`: directly.
///
/// # Errors
/// In words, when the environment names one that can't be used. Going directly then would be a guess.
pub(crate) fn of(url: &Url) -> Result<Option<Proxy>, String> {
    // What is no text is no address either, and is told as that.
    find(url, |name| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned()))
}

/// The handshake of TLS failed.
fn is_tls(e: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(e);
    while let Some(this) = cause {
        let inner = this.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if this.is::<rustls::Error>() || inner.is_some_and(|i| i.is::<rustls::Error>()) {
            return true;
        }
        cause = this.source();
    }
    false
}

/// For the end of a name: ` through the proxy http://…`, or nothing.
pub(crate) fn way(url: &str) -> String {
    let proxy = Url::parse(url).ok().and_then(|u| of(&u).ok().flatten());
    proxy.map_or_else(String::new, |p| format!(" through the proxy {} ({})", p.shown(), p.from))
}

/// Sets the way of a client that is for `url` alone.
///
/// # Errors
/// See [`of`].
pub(crate) fn lead(
    builder: reqwest::ClientBuilder,
    proxy: Option<&Proxy>,
) -> Result<reqwest::ClientBuilder, String> {
    let builder = builder.no_proxy();
    let Some(p) = proxy else { return Ok(builder) };
    match reqwest::Proxy::all(p.url.clone()) {
        Ok(proxy) => Ok(builder.proxy(proxy)),
        Err(_) => Err(format!("{} names {}, which can't be used as a proxy", p.from, p.shown())),
    }
}

fn find(url: &Url, env: impl Fn(&str) -> Option<String>) -> Result<Option<Proxy>, String> {
    let Some(host) = url.host_str().map(host_of) else { return Ok(None) };
    if is_here(&host) {
        return Ok(None);
    }
    let cgi = env("REQUEST_METHOD").is_some();
    let names: &[&'static str] = match url.scheme() {
        "https" => &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
        _ if cgi => &["http_proxy", "all_proxy", "ALL_PROXY"],
        _ => &["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"],
    };
    let Some((from, value)) = names.iter().find_map(|n| Some((*n, env(n)?))) else {
        return Ok(None);
    };
    let value = value.trim();
    let not = env("no_proxy").or_else(|| env("NO_PROXY")).unwrap_or_default();
    // One that is set to nothing is how a person takes it back.
    if value.is_empty() || is_left_out(&host, url.port_or_known_default(), &not) {
        return Ok(None);
    }
    let full = match value.contains("://") {
        true => value.to_owned(),
        false => format!("http://{value}"),
    };
    let known = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];
    match Url::parse(&full) {
        Ok(url) if known.contains(&url.scheme()) && url.has_host() => Ok(Some(Proxy { url, from })),
        _ => Err(format!("{from} names {}, which can't be used as a proxy", shown_url(&full))),
    }
}

/// A host as a URL has it.
enum Host<'a> {
    Ip(IpAddr),
    Name(&'a str),
}

fn host_of(text: &str) -> Host<'_> {
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    bare.parse().map_or(Host::Name(text), Host::Ip)
}

/// On this machine.
fn is_here(host: &Host<'_>) -> bool {
    match host {
        Host::Ip(ip) => {
            let ip = ip.to_canonical();
            ip.is_loopback() || ip.is_unspecified()
        }
        Host::Name(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

/// Whether a list as in `no_proxy` names this host: `*`, a name and what is below it (with or without a dot or `*.`
/// before it), an address, a network (`10.0.0.0/8`), each perhaps with a port.
fn is_left_out(host: &Host<'_>, port: Option<u16>, list: &str) -> bool {
    let entries = list.split(|c: char| c == ',' || c.is_whitespace()).filter(|e| !e.is_empty());
    entries.into_iter().any(|entry| {
        let (name, only) = split_port(entry);
        if only.is_some() && only != port {
            return false;
        }
        match host {
            _ if name == "*" => true,
            Host::Ip(ip) => covers(name, ip.to_canonical()),
            Host::Name(host) => {
                let host = host.trim_end_matches('.').to_ascii_lowercase();
                let name = name.strip_prefix("*.").or(name.strip_prefix('.')).unwrap_or(name);
                let name = name.trim_end_matches('.').to_ascii_lowercase();
                let below = host.strip_suffix(&name).is_some_and(|head| head.ends_with('.'));
                !name.is_empty() && (host == name || below)
            }
        }
    })
}

/// `host:8080` and `[::1]:8080`; an address with colons of its own has no port without brackets.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    if let Some(rest) = entry.strip_prefix('[')
        && let Some((ip, rest)) = rest.split_once(']')
    {
        return (ip, rest.strip_prefix(':').and_then(|p| p.parse().ok()));
    }
    match entry.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') && port.parse::<u16>().is_ok() => {
            (name, port.parse().ok())
        }
        _ => (entry, None),
    }
}

/// Whether an address or a network covers `ip`.
fn covers(entry: &str, ip: IpAddr) -> bool {
    let Some((net, bits)) = entry.split_once('/') else {
        return entry.parse::<IpAddr>().is_ok_and(|one| one.to_canonical() == ip);
    };
    let (Ok(net), Ok(bits)) = (net.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    let same = |a: u128, b: u128, width: u32| {
        bits <= width && (bits == 0 || (a ^ b) >> (width - bits) == 0)
    };
    match (net, ip) {
        (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way_of(url: &str, env: &[(&str, &str)]) -> String {
        let get = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        match find(&Url::parse(url).unwrap(), get) {
            Ok(None) => "direct".into(),
            Ok(Some(p)) => format!("{} {}", p.from, p.shown()),
            Err(why) => why,
        }
    }

    #[test]
    fn the_variable_for_the_scheme_counts_and_this_machine_is_never_asked_for_through_one() {
        let (a, b) = ("http://p.example:3128", "http://q.example:3128");
        type Set = [(&'static str, &'static str)];
        let rows: &[(&str, &Set, &str)] = &[
            ("http://h.example/mcp", &[], "direct"),
            ("http://h.example/mcp", &[("http_proxy", a)], "http_proxy http://p.example:3128"),
            ("http://h.example/mcp", &[("HTTP_PROXY", a)], "HTTP_PROXY http://p.example:3128"),
            ("http://h.example/mcp", &[("HTTP_PROXY", a), ("REQUEST_METHOD", "GET")], "direct"),
            ("http://h.example/mcp", &[("https_proxy", a)], "direct"),
            ("https://h.example/mcp", &[("http_proxy", a)], "direct"),
            ("https://h.example/mcp", &[("HTTPS_PROXY", a)], "HTTPS_PROXY http://p.example:3128"),
            (
                "https://h.example/mcp",
                &[("https_proxy", b), ("HTTPS_PROXY", a)],
                "https_proxy http://q.example:3128",
            ),
            ("https://h.example/mcp", &[("ALL_PROXY", a)], "ALL_PROXY http://p.example:3128"),
            ("http://h.example/mcp", &[("http_proxy", ""), ("ALL_PROXY", a)], "direct"),
            ("http://h.example/mcp", &[("http_proxy", "p:8080")], "http_proxy http://p:8080"),
            (
                "http://h.example/",
                &[("http_proxy", "http://u:hunter2@p:1")],
                "http_proxy http://…@p:1",
            ),
            ("http://h.example/", &[("all_proxy", "socks5h://p:1")], "all_proxy socks5h://p:1"),
            (
                "http://h.example/",
                &[("all_proxy", "ftp://u:hunter2@p")],
                "all_proxy names ftp://…@p, which can't be used as a proxy",
            ),
            (
                "http://h.example/",
                &[("all_proxy", "http://p\u{fffd}:1")],
                "all_proxy names http://p\u{fffd}:1, which can't be used as a proxy",
            ),
            ("http://127.0.0.1:80/mcp", &[("http_proxy", a)], "direct"),
            ("http://127.9.9.9/mcp", &[("all_proxy", a)], "direct"),
            ("http://[::1]:80/mcp", &[("http_proxy", a)], "direct"),
            ("http://[::ffff:127.0.0.1]/mcp", &[("http_proxy", a)], "direct"),
            ("http://LocalHost:80/mcp", &[("http_proxy", a)], "direct"),
            ("http://a.localhost/mcp", &[("http_proxy", a)], "direct"),
            (
                "http://localhost.example/mcp",
                &[("http_proxy", a)],
                "http_proxy http://p.example:3128",
            ),
        ];
        for (url, env, want) in rows {
            assert_eq!(way_of(url, env), *want, "{url} {env:?}");
        }
    }

    #[test]
    fn the_list_of_what_is_left_out_is_read_in_all_its_forms() {
        for (url, list, out) in [
            ("http://h.example/", "*", true),
            ("http://h.example/", "h.example", true),
            ("http://h.example./", "H.Example", true),
            ("http://a.h.example/", "h.example", true),
            ("http://a.h.example/", ".h.example", true),
            ("http://h.example/", ".h.example", true),
            ("http://a.h.example/", "*.h.example", true),
            ("http://oh.example/", "h.example", false),
            ("http://h.example/", "x, , h.example  y", true),
            ("http://h.example:81/", "h.example:81", true),
            ("http://h.example:81/", "h.example:80", false),
            ("http://h.example/", "h.example:80", true),
            ("https://h.example/", "h.example:443", true),
            ("http://10.1.2.3/", "10.0.0.0/8", true),
            ("http://11.1.2.3/", "10.0.0.0/8", false),
            ("http://10.1.2.3/", "10.1.2.3", true),
            ("http://10.1.2.3:8/", "10.1.2.3:9", false),
            ("http://10.1.2.3/", "0.0.0.0/0", true),
            ("http://10.1.2.3/", "10.0.0.0/99", false),
            ("http://[fd00::1]/", "fd00::/8", true),
            ("http://[fd00::1]:8/", "[fd00::1]:8", true),
            ("http://[fd00::1]/", "fd00::2", false),
            ("http://[::ffff:10.1.2.3]/", "10.0.0.0/8", true),
            ("http://10.1.2.3/", "::ffff:10.1.2.3", true),
            ("http://h.example/", "", false),
            ("http://h.example/", ".", false),
        ] {
            let env = [("http_proxy", "p"), ("https_proxy", "p"), ("NO_PROXY", list)];
            assert_eq!(way_of(url, &env) == "direct", out, "{url} {list:?}");
        }
        let both = [("http_proxy", "p"), ("no_proxy", "x"), ("NO_PROXY", "*")];
        assert_eq!(way_of("http://h.example/", &both), "http_proxy http://p");
    }
}
