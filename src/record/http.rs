//! The tap on a Streamable HTTP server: a reverse proxy that changes nothing but hop-by-hop headers, `Host` and
//! `Accept-Encoding` (an answer that is compressed could not be read on its way), streams both ways, and writes down what passes.
//!
//! Upstream redirects, errors and statuses go to the client as they are; only an upstream that can't be reached is
//! answered here, with a 502 that says so. Which client a message belongs to is told by `sessions`.

mod body;
mod came;
mod headers;
mod sessions;
mod upload;

use super::entry::{What, Wire};
use super::recorder::Recorder;
use crate::client::http::proxy::{self, Proxy};
use crate::client::http::{root_cause, tls};
use crate::error::{Error, Result};
use crate::journal::Kind;
use crate::journal::event::Http;
use crate::journal::exchange::is_event_stream;
use crate::loopback::check_peer;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, Version, header};
use axum::response::{IntoResponse, Response};
use body::Exchange;
use headers::{passed_on, same_site, text};
use reqwest::Url;
use sessions::{Client, Sessions};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use upload::First;

/// How long the disk may hold up the end.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The longest answer without a length for a client of HTTP/1.0.
const WHOLE: usize = 64 << 20;

struct Tap {
    upstream: Url,
    client: reqwest::Client,
    /// What leads to the upstream, where it is not reached directly.
    proxy: Option<Proxy>,
    recorder: Recorder,
    sessions: Arc<Sessions>,
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
    let proxy = proxy::of(&upstream).map_err(Error::usage)?;
    let client = client(&upstream, proxy.as_ref()).map_err(Error::usage)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|e| Error::endpoint(format!("no threads to run on: {e}")))?;
    let tap = Arc::new(Tap {
        upstream,
        client,
        proxy,
        recorder: recorder.clone(),
        sessions: Arc::default(),
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

fn client(upstream: &Url, proxy: Option<&Proxy>) -> std::result::Result<reqwest::Client, String> {
    if !matches!(upstream.scheme(), "http" | "https") {
        return Err(format!("{upstream} is neither http:// nor https://"));
    }
    let secure = upstream.scheme() == "https" || proxy.is_some_and(Proxy::is_https);
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls(secure)?)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        // A kept connection that the server closes would make a call falsely fail.
        .pool_max_idle_per_host(0)
        .connect_timeout(Duration::from_secs(10));
    proxy::lead(builder, proxy)?
        .build()
        .map_err(|e| format!("the HTTP client can't be set up: {}", root_cause(&e)))
}

async fn serve(tap: Arc<Tap>, address: SocketAddr, out: &Path) -> Result<()> {
    let failed =
        |e: std::io::Error| Error::endpoint(format!("{address} can't be listened on: {e}"));
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let here = listener.local_addr().map_err(failed)?;
    let path = tap.upstream.path().to_owned();
    crate::text::to_stderr(&format!(
        "listening on {} in front of {}{}, recording to {}",
        tap.recorder.rules().url(&format!("http://{here}{path}")),
        tap.recorder.rules().url(tap.upstream.as_str()),
        tap.way(),
        out.display()
    ));
    let router = Router::new().fallback(handle).with_state(tap.clone());
    tokio::select! {
        served = std::future::IntoFuture::into_future(axum::serve(listener, router)) => served.map_err(failed),
        ended = crate::signals::ended() => {
            tap.stopping.store(true, Ordering::SeqCst);
            ended
        }
    }
}

async fn handle(State(tap): State<Arc<Tap>>, request: Request) -> Response {
    tap.pass(request).await
}

/// What tells two places of one server apart.
fn place(url: &Url) -> String {
    format!("{}?{}", url.path(), url.query().unwrap_or_default())
}

/// For a client that can still hear it.
fn broken() -> Response {
    let said =
        "redial: this request broke off before its end, so it was not passed on as a whole\n";
    (StatusCode::BAD_REQUEST, said).into_response()
}

/// For a client of HTTP/1.0: an answer without a length ends for it where the connection does, so that it could not
/// tell a broken one from a whole one. Events tell their own ends.
async fn whole(answer: Response) -> Response {
    let (mut parts, body) = answer.into_parts();
    let is_told = parts.headers.contains_key(header::CONTENT_LENGTH);
    if is_told || text(&parts.headers, "content-type").is_some_and(|c| is_event_stream(&c)) {
        return Response::from_parts(parts, body);
    }
    match axum::body::to_bytes(body, WHOLE).await {
        Ok(all) => {
            parts.headers.insert(header::CONTENT_LENGTH, all.len().into());
            Response::from_parts(parts, Body::from(all))
        }
        Err(e) => {
            let why = format!("redial: the answer broke off, or is too long for HTTP/1.0: {e}\n");
            (StatusCode::BAD_GATEWAY, why).into_response()
        }
    }
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
        let first = First::of(body).await;
        let client =
            self.sessions
                .of_request(session.as_deref(), first.bytes(), &place(&url), || self.shown_url());
        if let Some(opened) = &client.opened {
            self.recorder.event(client.generation, opened.clone());
        }
        let mut x = Exchange::new(
            self.recorder.clone(),
            client.generation,
            exchange,
            self.stopping.clone(),
        );
        if parts.method == Method::GET && session.is_none() {
            x.may_name_endpoint(self.sessions.clone(), url.clone());
        }
        if let Some(p) = &self.proxy {
            x.event(Http::Through { proxy: p.shown() }, Wire::default());
        }
        let what = Http::Request { method: parts.method.to_string(), url: url.to_string() };
        let named = client.session.as_deref();
        x.event(what, self.recorded(&parts.headers, named));
        let mut up = headers::upstream(&parts.headers);
        let sent = match first {
            First::Whole(all) => {
                x.sent(&all);
                reqwest::Body::from(all)
            }
            First::Begun(first, rest) => {
                let length = text(&up, "content-length").and_then(|l| l.parse().ok());
                x.streamed(first, rest, length)
            }
            First::Broken(came) => {
                x.broken(&came);
                return broken();
            }
        };
        // What a stream announces stays announced; reqwest counts the rest itself.
        let has_body = parts.headers.contains_key(header::CONTENT_LENGTH)
            || parts.headers.contains_key(header::TRANSFER_ENCODING);
        if !has_body {
            up.remove(header::CONTENT_LENGTH);
        }
        let mut upstream = self.client.request(parts.method, url).headers(up);
        if has_body {
            upstream = upstream.body(sent);
        }
        match upstream.send().await {
            Ok(response) => {
                let answer = self.answer(x, client, response);
                match parts.version {
                    Version::HTTP_10 => whole(answer).await,
                    _ => answer,
                }
            }
            Err(e) => {
                let connected = !(e.is_connect() || e.is_builder());
                let why = match &self.proxy {
                    Some(p) => p.cause(&e),
                    None => root_cause(&e),
                };
                x.failed(why.clone(), connected);
                if x.is_broken() {
                    return broken();
                }
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
        let is_events = content_type.is_some_and(|c| is_event_stream(&c));
        // A server may compress though it was asked not to.
        let codings = headers.get_all(header::CONTENT_ENCODING).iter();
        let codings: Vec<_> = codings.map(|v| String::from_utf8_lossy(v.as_bytes())).collect();
        let coding = codings.join(",");
        let length = response.content_length();
        let mut out =
            Response::new(Body::from_stream(x.stream(response, is_events, &coding, length)));
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

    /// Which way the upstream is reached, for the end of a name.
    fn way(&self) -> String {
        let shown = self.proxy.as_ref().map(Proxy::shown);
        shown.map_or_else(String::new, |p| format!(" through the proxy {p}"))
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

impl Exchange {
    fn event(&self, what: Http, wire: Wire) {
        let kind = Kind::Http { exchange: self.number(), what };
        self.recorder().put(self.generation(), What::Event(kind), wire);
    }
}
