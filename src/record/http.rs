//! The tap on a Streamable HTTP server: a reverse proxy that changes nothing but hop-by-hop headers, `Host` and
//! `Accept-Encoding` (an answer that is compressed could not be read on its way), streams both ways, and writes down what passes.
//!
//! Upstream redirects, errors and statuses go to the client as they are; only an upstream that can't be reached is
//! answered here, with a 502 that says so. Which client a message belongs to is told by `sessions`.

mod body;
mod sessions;

use super::entry::{What, Wire};
use super::recorder::Recorder;
use crate::client::http::{root_cause, tls};
use crate::error::{Error, Result};
use crate::journal::Kind;
use crate::journal::event::Http;
use crate::journal::exchange::is_event_stream;
use crate::serve::headers::check_peer;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use body::Exchange;
use reqwest::Url;
use sessions::{Client, Sessions};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

/// How long the disk may hold up the end.
const LAST_WORDS: Duration = Duration::from_secs(1);

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

struct Tap {
    upstream: Url,
    client: reqwest::Client,
    recorder: Recorder,
    sessions: Sessions,
    exchanges: AtomicU64,
    anywhere: bool,
    /// A signal has come: what is cut off now is cut off by the tap.
    stopping: Arc<AtomicBool>,
}

/// Listens and passes on until a signal. Says on stderr where it listens and what it writes.
///
/// # Errors
/// Exit 2 for an address or URL that can't be used, exit 5 when the address is taken.
pub fn run(url: &str, listen: &str, anywhere: bool, recorder: Recorder, out: &Path) -> Result<u8> {
    let upstream = Url::parse(url).map_err(|e| Error::usage(format!("{url:?} is no URL: {e}")))?;
    let address: SocketAddr = listen.replace("localhost:", "127.0.0.1:").parse().map_err(|_| {
        Error::usage(format!("--listen {listen} is no address with a port"))
            .hint("for example --listen 127.0.0.1:8001")
    })?;
    if !address.ip().is_loopback() && !anywhere {
        return Err(Error::usage(format!("{address} can be reached from other machines"))
            .hint("a tap has no authentication of its own; if that is what you want, add --listen-anywhere"));
    }
    let client = client(&upstream).map_err(Error::usage)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|e| Error::endpoint(format!("no threads to run on: {e}")))?;
    let tap = Arc::new(Tap {
        upstream,
        client,
        recorder: recorder.clone(),
        sessions: Sessions::default(),
        exchanges: AtomicU64::new(0),
        anywhere,
        stopping: Arc::default(),
    });
    let done = runtime.block_on(serve(tap, address, out));
    runtime.shutdown_timeout(Duration::from_millis(200));
    recorder.close(LAST_WORDS);
    done.map(|()| 0)
}

/// A short name for a URL.
pub fn server_name(url: &str) -> String {
    let host = Url::parse(url).ok().and_then(|u| {
        let port = u.port().map(|p| format!("-{p}")).unwrap_or_default();
        Some(format!("{}{port}", u.host_str()?))
    });
    host.unwrap_or_else(|| "http".into())
}

fn client(upstream: &Url) -> std::result::Result<reqwest::Client, String> {
    if !matches!(upstream.scheme(), "http" | "https") {
        return Err(format!("{upstream} is neither http:// nor https://"));
    }
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls(upstream.scheme() == "https")?)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        // A kept connection that the server closes would make a call falsely fail.
        .pool_max_idle_per_host(0)
        .connect_timeout(Duration::from_secs(10))
        .no_proxy()
        .build()
        .map_err(|e| format!("the HTTP client can't be set up: {}", root_cause(&e)))
}

async fn serve(tap: Arc<Tap>, address: SocketAddr, out: &Path) -> Result<()> {
    let failed =
        |e: std::io::Error| Error::endpoint(format!("{address} can't be listened on: {e}"));
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let here = listener.local_addr().map_err(failed)?;
    let path = tap.upstream.path().to_owned();
    crate::serve::log(&format!(
        "listening on http://{here}{path} in front of {}, recording to {}",
        tap.recorder.rules().url(tap.upstream.as_str()),
        out.display()
    ));
    let router = Router::new().fallback(handle).with_state(tap.clone());
    tokio::select! {
        served = std::future::IntoFuture::into_future(axum::serve(listener, router)) => served.map_err(failed),
        ended = crate::serve::signalled() => {
            tap.stopping.store(true, Ordering::SeqCst);
            ended
        }
    }
}

async fn handle(State(tap): State<Arc<Tap>>, request: Request) -> Response {
    tap.pass(request).await
}

impl Tap {
    async fn pass(self: &Arc<Tap>, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        if let Some(refusal) = self.refusal(&parts.uri, &parts.headers) {
            return refusal;
        }
        let url = self.target(&parts.uri);
        let exchange = self.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
        let session = text(&parts.headers, "mcp-session-id");
        let (first, rest) = body::first_piece(body).await;
        let client = self.sessions.of_request(session.as_deref(), &first, || self.shown_url());
        if let Some(opened) = &client.opened {
            self.recorder.event(client.generation, opened.clone());
        }
        let mut x = Exchange::new(
            self.recorder.clone(),
            client.generation,
            exchange,
            self.stopping.clone(),
        );
        let what = Http::Request { method: parts.method.to_string(), url: url.to_string() };
        let named = client.session.as_deref();
        x.event(what, self.recorded(&parts.headers, named));
        let sent = match rest {
            None => {
                x.sent(&first);
                reqwest::Body::from(first)
            }
            Some(rest) => {
                let length = text(&parts.headers, "content-length").and_then(|l| l.parse().ok());
                x.streamed(first, rest, length)
            }
        };
        let mut headers = upstream_headers(&parts.headers);
        // What a stream announces stays announced; reqwest counts the rest itself.
        let has_body = parts.headers.contains_key(header::CONTENT_LENGTH)
            || parts.headers.contains_key(header::TRANSFER_ENCODING);
        if !has_body {
            headers.remove(header::CONTENT_LENGTH);
        }
        let mut upstream = self.client.request(parts.method, url).headers(headers);
        if has_body {
            upstream = upstream.body(sent);
        }
        match upstream.send().await {
            Ok(response) => self.answer(x, client, response),
            Err(e) => {
                let connected = !(e.is_connect() || e.is_builder());
                let why = root_cause(&e);
                x.failed(why.clone(), connected);
                let said = if connected { "broke before it answered" } else { "can't be reached" };
                let text = format!("redial: the upstream {} {said}: {why}\n", self.shown_url());
                (StatusCode::BAD_GATEWAY, text).into_response()
            }
        }
    }

    fn answer(&self, x: Exchange, client: Client, response: reqwest::Response) -> Response {
        let status = response.status();
        let headers = response.headers().clone();
        let given = text(&headers, "mcp-session-id");
        // A session id counts only on a good answer: real servers put one on a 400 too.
        let session = self.sessions.of_answer(&client, given.as_deref(), status.is_success());
        let content_type = text(&headers, "content-type");
        x.event(
            Http::Status {
                status: status.as_u16(),
                content_type: content_type.clone(),
                session: session.clone(),
                www_authenticate: text(&headers, "www-authenticate"),
                location: text(&headers, "location"),
            },
            self.recorded(&headers, session.as_deref()),
        );
        // What is compressed all the same can't be read piece by piece.
        let coded = headers.get(header::CONTENT_ENCODING).is_some_and(|e| e != "identity");
        let is_events = !coded && content_type.is_some_and(|c| is_event_stream(&c));
        let length = response.content_length();
        let mut out = Response::new(Body::from_stream(x.stream(response, is_events, length)));
        *out.status_mut() = status;
        *out.headers_mut() = passed_on(&headers);
        out
    }

    /// Only this machine, unless told otherwise; and no page of another site.
    fn refusal(&self, uri: &Uri, headers: &HeaderMap) -> Option<Response> {
        let allowed = if self.anywhere { same_site(headers) } else { check_peer(uri, headers) };
        let why = allowed.err()?;
        Some((StatusCode::FORBIDDEN, format!("redial: {why}\n")).into_response())
    }

    /// The upstream's own path is the tap's path, and `/` is it too; everything else is beside it.
    fn target(&self, uri: &Uri) -> Url {
        let mut url = self.upstream.clone();
        if uri.path() != "/" && uri.path() != url.path() {
            url.set_path(uri.path());
            url.set_query(None);
        }
        if let Some(q) = uri.query() {
            url.set_query(Some(q));
        }
        url
    }

    fn shown_url(&self) -> String {
        self.recorder.rules().url(self.upstream.as_str())
    }

    /// Headers as they are recorded: the session by its name, secrets by the rules (on write).
    fn recorded(&self, headers: &HeaderMap, session: Option<&str>) -> Wire {
        let pairs = headers.iter().map(|(k, v)| {
            let value = match (k.as_str(), session) {
                ("mcp-session-id", Some(name)) => name.to_owned(),
                _ => String::from_utf8_lossy(v.as_bytes()).into_owned(),
            };
            (k.as_str().to_owned(), value)
        });
        Wire { headers: pairs.collect(), ..Wire::default() }
    }
}

/// Listening for other machines: a browser's Origin must be the host it asked for.
fn same_site(headers: &HeaderMap) -> std::result::Result<(), &'static str> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().ok().and_then(|o| o.parse::<Uri>().ok());
    let host = text(headers, "host");
    match (origin.as_ref().and_then(Uri::authority), host) {
        (Some(o), Some(h)) if o.as_str().eq_ignore_ascii_case(&h) => Ok(()),
        _ => Err("Forbidden: Origin must be the host that was asked"),
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned)
}

/// What goes up: an answer must be readable on its way back, so no coding of it is asked for; and where the client
/// accepts nothing in particular, nothing is accepted in its name (the HTTP library would say `*/*`).
fn upstream_headers(headers: &HeaderMap) -> HeaderMap {
    let mut out = passed_on(headers);
    if out.contains_key(header::ACCEPT_ENCODING) {
        out.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    if !out.contains_key(header::ACCEPT) {
        out.insert(header::ACCEPT, HeaderValue::from_static(""));
    }
    out
}

/// All headers but those of the connection itself and those it names (compared without case).
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .map(|n| n.trim().to_ascii_lowercase())
        .collect();
    let stays = |name: &HeaderName| {
        !HOP_BY_HOP.contains(&name.as_str()) && !named.iter().any(|n| n == name.as_str())
    };
    headers.iter().filter(|(k, _)| stays(k)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

impl Exchange {
    fn event(&self, what: Http, wire: Wire) {
        let kind = Kind::Http { exchange: self.number(), what };
        self.recorder().put(self.generation(), What::Event(kind), wire);
    }
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
    }

    #[test]
    fn no_coding_is_asked_for_and_nothing_is_accepted_in_the_clients_name() {
        let up = |pairs: &[(&'static str, &'static str)]| {
            let h: HeaderMap = pairs
                .iter()
                .map(|(k, v)| (HeaderName::from_static(k), HeaderValue::from_static(v)))
                .collect();
            let up = upstream_headers(&h);
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
