//! Streamable HTTP as an endpoint: the URL, its headers and its session, and the one HTTP client.
//!
//! `post` runs one exchange, `stream` reads server-sent events and resumes them, `listen` keeps the optional
//! GET stream. Every step is a journal event. reqwest is held back here: no retries, no redirects of its own,
//! no kept-alive connection (a reused one that the server closes would make calls falsely unknown).

pub(super) mod beside;
pub(super) mod listen;
mod post;
pub(crate) mod proxy;
mod stream;

use super::conn::Conn;
use super::modern::Header;
use super::shown::shown_url;
use crate::journal::{Kind, event, refusal};
use crate::json::raw;
use crate::wire::id::Id;
use bytes::Bytes;
use proxy::Proxy;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;

/// The largest body taken whole.
const BODY_LIMIT: usize = 64 << 20;
/// How much of a body that is not JSON-RPC is kept.
const PLAIN_LIMIT: usize = 64 << 10;

/// One URL, its headers and its session.
pub(super) struct Target {
    client: reqwest::Client,
    url: Url,
    /// What leads to it, where it is not reached directly.
    proxy: Option<Proxy>,
    headers: HeaderMap,
    session: Mutex<Option<String>>,
    /// Where redirects within the origin led to.
    moved: Mutex<Option<Url>>,
    running: Mutex<HashMap<u64, AbortHandle>>,
}

/// One message to POST.
pub(super) struct Post {
    pub exchange: u64,
    pub id: Option<Id>,
    pub raw: Bytes,
    pub headers: Vec<Header>,
    /// Told when the server has taken the message or refused it; dropped when it can't be known that it had it.
    pub done: Option<tokio::sync::oneshot::Sender<()>>,
}

impl Target {
    /// # Errors
    /// In words, when the URL, a header or the TLS setup can't be used.
    pub fn new(url: &str, headers: &[(String, String)]) -> Result<Target, String> {
        let url = Url::parse(url).map_err(|e| format!("{:?} is not a URL: {e}", shown_url(url)))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("{} is neither http:// nor https://", shown_url(url.as_str())));
        }
        let mut map = HeaderMap::new();
        for (k, v) in headers {
            let name = HeaderName::from_bytes(k.trim().as_bytes())
                .map_err(|_| format!("{k:?} is not a header name"))?;
            // The value may be a secret: it is not repeated.
            let value = HeaderValue::from_bytes(v.trim().as_bytes())
                .map_err(|_| format!("the value of header {k} can't be sent"))?;
            map.append(name, value);
        }
        let proxy = proxy::of(&url)?;
        let secure = url.scheme() == "https" || proxy.as_ref().is_some_and(Proxy::is_https);
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(secure)?)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .pool_max_idle_per_host(0)
            .connect_timeout(Duration::from_secs(10));
        let client = proxy::lead(client, proxy.as_ref())?
            .build()
            .map_err(|e| format!("the HTTP client can't be set up: {}", root_cause(&e)))?;
        Ok(Target {
            client,
            url,
            proxy,
            headers: map,
            session: Mutex::default(),
            moved: Mutex::default(),
            running: Mutex::default(),
        })
    }

    /// The session id in force.
    pub fn session(&self) -> Option<String> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_session(&self, id: Option<String>) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }

    /// Starts the exchange; everything that comes of it goes to the journal.
    pub fn post(&self, conn: Arc<Conn>, post: Post) {
        let exchange = post.exchange;
        let task = tokio::spawn(post::run(conn, post));
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, t| !t.is_finished());
        running.insert(exchange, task.abort_handle());
    }

    /// How many exchanges are open.
    pub fn open(&self) -> usize {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, t| !t.is_finished());
        running.len()
    }

    /// Closes everything that is open, because redial leaves.
    pub fn abort_all(&self, conn: &Conn) {
        let running: Vec<_> =
            self.running.lock().unwrap_or_else(PoisonError::into_inner).drain().collect();
        for (exchange, task) in running.into_iter().filter(|(_, t)| !t.is_finished()) {
            task.abort();
            let why = "redial was closed".to_owned();
            conn.log(Kind::Http { exchange, what: event::Http::Failed { why, connected: true } });
        }
    }

    /// Closes the stream of an exchange: how a 2026-07-28 request is cancelled.
    pub fn abort(&self, conn: &Conn, exchange: u64) {
        let task = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&exchange);
        if let Some(task) = task {
            task.abort();
            let why = "closed here, which tells the server to stop".to_owned();
            conn.log(Kind::Http { exchange, what: event::Http::Failed { why, connected: true } });
        }
    }

    /// Where this generation's requests go: the URL that was given, or where the server sent a POST from there.
    fn url(&self) -> Url {
        let moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner).clone();
        moved.unwrap_or_else(|| self.url.clone())
    }

    fn set_moved(&self, to: Url) {
        *self.moved.lock().unwrap_or_else(PoisonError::into_inner) = Some(to);
    }

    /// Tells the journal what goes out, and which way, before it does.
    fn told(&self, conn: &Conn, exchange: u64, method: &str, url: &Url) {
        let log = |what| conn.log(Kind::Http { exchange, what });
        if let Some(p) = &self.proxy {
            log(event::Http::Through { proxy: p.shown() });
        }
        log(event::Http::Request { method: method.into(), url: shown_url(url.as_str()) });
    }

    /// Why a request broke: where the way to the proxy is at fault, that is said.
    fn cause(&self, e: &reqwest::Error) -> String {
        match &self.proxy {
            Some(p) => p.cause(e),
            None => root_cause(e),
        }
    }

    /// A request with the configured headers; what the protocol sets takes the place of one of the same name.
    fn request(&self, method: Method, url: &Url, headers: &[Header]) -> reqwest::RequestBuilder {
        let mut all = self.headers.clone();
        let session = self.session().map(|s| ("mcp-session-id".to_owned(), s));
        let mut ours: Vec<(HeaderName, HeaderValue)> = Vec::new();
        for (k, v) in session.iter().chain(headers) {
            let (name, value) = (HeaderName::try_from(k), HeaderValue::try_from(v));
            let (Ok(name), Ok(value)) = (name, value) else {
                // The builder's own error: such a request can't be made, and is not sent.
                return self.client.request(method, url.clone()).header(k, v);
            };
            all.remove(&name);
            ours.push((name, value));
        }
        for (name, value) in ours {
            all.append(name, value);
        }
        self.client.request(method, url.clone()).headers(all)
    }

    /// A GET that asks for a stream of events, resumed after `last_id`.
    fn get(&self, conn: &Conn, last_id: Option<&str>) -> reqwest::RequestBuilder {
        let mut headers = vec![("accept".to_owned(), "text/event-stream".to_owned())];
        headers.extend(version(conn));
        headers.extend(last_id.map(|id| ("last-event-id".to_owned(), id.to_owned())));
        self.request(Method::GET, &self.url(), &headers)
    }

    /// Ends a legacy session (DELETE; 405 and the like are fine: the server keeps it).
    pub async fn end_session(&self, conn: &Conn) {
        if self.session().is_none() {
            return;
        }
        let exchange = conn.next_exchange();
        let log = |what| conn.log(Kind::Http { exchange, what });
        let url = self.url();
        self.told(conn, exchange, "DELETE", &url);
        let headers: Vec<Header> = version(conn).into_iter().collect();
        let send = self.request(Method::DELETE, &url, &headers).send();
        match tokio::time::timeout(Duration::from_millis(500), send).await {
            Ok(Ok(r)) => {
                log(status_event(&r, None));
                log(event::Http::End);
            }
            Ok(Err(e)) => {
                let connected = !e.is_connect();
                log(event::Http::Failed { why: self.cause(&e), connected });
            }
            Err(_) => {
                let why = "no answer to DELETE within 0.5 s".into();
                log(event::Http::Failed { why, connected: true });
            }
        }
        self.set_session(None);
    }
}

fn version(conn: &Conn) -> Option<Header> {
    conn.protocol().map(|p| ("mcp-protocol-version".to_owned(), p.version.clone()))
}

fn header(r: &reqwest::Response, name: &str) -> Option<String> {
    r.headers().get(name).map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned())
}

fn status_event(r: &reqwest::Response, session: Option<String>) -> event::Http {
    event::Http::Status {
        status: r.status().as_u16(),
        content_type: header(r, "content-type"),
        session,
        www_authenticate: header(r, "www-authenticate"),
        location: header(r, "location").map(|l| shown_url(&l)),
    }
}

/// The certificates are only looked for when they are needed: a machine without any can still speak http.
pub(crate) fn tls(https: bool) -> Result<rustls::ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS can't be set up: {e}"))?;
    let mut roots = rustls::RootCertStore::empty();
    if https {
        let found = rustls_native_certs::load_native_certs();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            return Err(
                "this system has no CA certificates, so no https server can be trusted".into()
            );
        }
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The innermost cause of a reqwest error, in the system's words: its own say too little.
pub(crate) fn root_cause(e: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = e;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// The name and reason of an answer that a handshake can't use, for people.
pub(super) fn status_words(
    status: u16,
    body: &Bytes,
    www_authenticate: Option<&str>,
    location: Option<&str>,
) -> String {
    let text = String::from_utf8_lossy(body);
    let message = raw::get_path(&text, &["error", "message"]).and_then(raw::as_str);
    let said = match refusal::page_title(&text) {
        Some(title) => format!("not MCP: an HTML page from a proxy or login ({title})"),
        None => message.unwrap_or_else(|| refusal::first_line(&text)),
    };
    let auth =
        www_authenticate.map(|w| format!(" ({})", refusal::auth_words(w))).unwrap_or_default();
    let to = location.map(shown_url);
    let to = to.map(|l| format!(", it points to {l}: not followed")).unwrap_or_default();
    format!("HTTP {status}{auth}{to}{}{said}", if said.is_empty() { "" } else { ": " })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_header_is_never_sent_beside_one_of_the_protocol_s() {
        let given =
            [("Accept", "text/plain"), ("mcp-session-id", "evil"), ("X-Two", "1"), ("X-Two", "2")];
        let given = given.map(|(k, v)| (k.to_owned(), v.to_owned()));
        let target = Target::new("http://127.0.0.1:1/mcp", &given).unwrap();
        target.set_session(Some("ours".into()));
        let ours = [("accept".to_owned(), "application/json".to_owned())];
        let request = target.request(Method::POST, &target.url(), &ours).build().unwrap();
        let all = |name: &str| {
            request.headers().get_all(name).iter().map(|v| v.to_str().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(
            (all("accept"), all("mcp-session-id")),
            (vec!["application/json"], vec!["ours"])
        );
        assert_eq!(all("x-two"), ["1", "2"]);
    }
}
