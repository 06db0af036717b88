//! Streamable HTTP as an endpoint: one POST a message on a connection of its own, answers as JSON or as
//! server-sent events, every step a journal event.
//!
//! reqwest is held back here: no retries, no redirects of its own, no kept-alive connection (a reused one
//! that the server closes would make calls falsely unknown).

use super::conn::{Conn, Reply, Transport};
use super::driver::LinkEvent;
use crate::journal::settle;
use crate::journal::{Kind, event};
use crate::json::raw;
use crate::wire::frame::{Answer, Frame};
use crate::wire::id::Id;
use crate::wire::sse::{Parser, Sse};
use bytes::{Bytes, BytesMut};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;

/// The largest body taken whole.
const BODY_LIMIT: usize = 64 << 20;
/// How much of a body that is not JSON-RPC is kept.
const PLAIN_LIMIT: usize = 64 << 10;
const MAX_REDIRECTS: u32 = 3;

/// One URL, its headers and its session.
pub(super) struct Target {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    session: Mutex<Option<String>>,
    running: Mutex<HashMap<u64, AbortHandle>>,
}

/// One message to POST.
pub(super) struct Post {
    pub exchange: u64,
    pub id: Option<Id>,
    pub raw: Bytes,
    pub headers: Vec<(&'static str, String)>,
    /// Dropped when the exchange is over.
    pub _done: Option<tokio::sync::oneshot::Sender<()>>,
}

impl Target {
    /// # Errors
    /// In words, when the URL, a header or the TLS setup can't be used.
    pub fn new(url: &str, headers: &[(String, String)]) -> Result<Target, String> {
        let url = Url::parse(url).map_err(|e| format!("{url:?} is not a URL: {e}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("{url} is neither http:// nor https://"));
        }
        let mut map = HeaderMap::new();
        for (k, v) in headers {
            let name = HeaderName::from_bytes(k.trim().as_bytes())
                .map_err(|_| format!("{k:?} is not a header name"))?;
            let value = HeaderValue::from_bytes(v.trim().as_bytes())
                .map_err(|_| format!("the value of header {k} can't be sent"))?;
            map.append(name, value);
        }
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(url.scheme() == "https")?)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .pool_max_idle_per_host(0)
            .connect_timeout(Duration::from_secs(10))
            .no_proxy()
            .build()
            .map_err(|e| format!("the HTTP client can't be set up: {}", root_cause(&e)))?;
        Ok(Target {
            client,
            url,
            headers: map,
            session: Mutex::default(),
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
        let task = tokio::spawn(run_post(conn, post));
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, t| !t.is_finished());
        running.insert(exchange, task.abort_handle());
    }

    /// Closes the stream of an exchange: how a 2026-07-28 call is cancelled.
    pub fn abort(&self, exchange: u64) {
        if let Some(task) =
            self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&exchange)
        {
            task.abort();
        }
    }

    fn request(
        &self,
        method: Method,
        url: &Url,
        protocol: Option<&str>,
    ) -> reqwest::RequestBuilder {
        let mut b = self.client.request(method, url.clone()).headers(self.headers.clone());
        if let Some(s) = self.session() {
            b = b.header("mcp-session-id", s);
        }
        if let Some(p) = protocol {
            b = b.header("mcp-protocol-version", p);
        }
        b
    }

    /// Ends a legacy session (DELETE; 405 and the like are fine: the server keeps it).
    pub async fn end_session(&self, conn: &Conn) {
        if self.session().is_none() {
            return;
        }
        let protocol = conn.protocol().map(|p| p.version.as_str());
        let send = self.request(Method::DELETE, &self.url, protocol).send();
        tokio::time::timeout(Duration::from_millis(500), send).await.ok();
        self.set_session(None);
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

async fn run_post(conn: Arc<Conn>, post: Post) {
    let Transport::Http(target) = &conn.transport else { return };
    let (exchange, log) =
        (post.exchange, |what| conn.log(Kind::Http { exchange: post.exchange, what }));
    let mut url = target.url.clone();
    let mut hops = 0;
    let is_initialize = post.id.is_some()
        && String::from_utf8_lossy(&post.raw).contains("\"method\":\"initialize\"");
    let response = loop {
        log(event::Http::Request { method: "POST".into(), url: url.to_string() });
        let mut b = target
            .request(Method::POST, &url, None)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(post.raw.clone());
        for (k, v) in &post.headers {
            b = b.header(*k, v);
        }
        let response = match b.send().await {
            Ok(r) => r,
            Err(e) => {
                // Only a failure to connect (or to build the request) proves that nothing was sent.
                let connected = !(e.is_connect() || e.is_builder());
                let why = root_cause(&e);
                log(event::Http::Failed { why: why.clone(), connected });
                conn.events
                    .send(LinkEvent::Unreachable { generation: conn.generation, why: why.clone() })
                    .ok();
                return gone(&conn, &post, why, connected);
            }
        };
        let Some(to) = same_origin_redirect(&url, &response) else { break response };
        let status = response.status().as_u16();
        hops += 1;
        if hops > MAX_REDIRECTS {
            break response;
        }
        log(event::Http::Redirected { status, to: to.to_string() });
        url = to;
    };

    let status = response.status();
    let header =
        |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let content_type = header("content-type");
    let session = header("mcp-session-id");
    let www_authenticate = header("www-authenticate");
    let length = response.content_length();
    // A session id counts only on a successful initialize: real servers put one on a 400 too.
    let session = session.filter(|_| is_initialize && status.is_success());
    if session.is_some() {
        target.set_session(session.clone());
    }
    log(event::Http::Status {
        status: status.as_u16(),
        content_type: content_type.clone(),
        session,
        www_authenticate: www_authenticate.clone(),
        location: header("location"),
    });
    let is_sse = content_type
        .as_deref()
        .is_some_and(|c| c.to_ascii_lowercase().starts_with("text/event-stream"));
    let had_session = target.session().is_some();
    if status.is_success() && is_sse {
        return stream(&conn, &post, response).await;
    }
    let (body, broken) = read_body(response, length).await;
    if let Some(why) = broken {
        // The failure first: the bytes that came are evidence, not an answer.
        log(event::Http::Failed { why: why.clone(), connected: true });
        log(event::Http::Body { raw: body.slice(..body.len().min(PLAIN_LIMIT)) });
        conn.events
            .send(LinkEvent::Unreachable { generation: conn.generation, why: why.clone() })
            .ok();
        return gone(&conn, &post, why, true);
    }
    let text = String::from_utf8_lossy(&body).into_owned();
    let lost = {
        let (code, message) = match Frame::parse(&text) {
            Frame::Response { answer: Answer::Error { code, message, .. }, .. } => (code, message),
            _ => (None, text.clone()),
        };
        settle::is_session_lost(status.as_u16(), code, &message, had_session)
    };
    if post.id.is_none() {
        // Nothing in the answer to a notification matters (field log, row 80), but a lost session does.
        log(event::Http::End);
    } else {
        let is_rpc = !text.trim().is_empty() && conn.incoming(body.clone(), Some(exchange));
        if !is_rpc && !text.trim().is_empty() {
            log(event::Http::Body { raw: body.slice(..body.len().min(PLAIN_LIMIT)) });
        }
        log(event::Http::End);
        if let Some(id) = &post.id {
            conn.resolve(id, Reply::Status { status: status.as_u16(), body, www_authenticate });
        }
    }
    if lost && had_session {
        conn.events
            .send(LinkEvent::SessionLost { generation: conn.generation, status: status.as_u16() })
            .ok();
    }
}

/// Reads a server-sent event stream to its end.
async fn stream(conn: &Arc<Conn>, post: &Post, mut response: reqwest::Response) {
    let mut parser = Parser::new(BODY_LIMIT);
    let exchange = post.exchange;
    let failed = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => parser.feed(&chunk, |e| take_event(conn, e, Some(exchange))),
            Ok(None) => break None,
            Err(e) => break Some(root_cause(&e)),
        }
    };
    match failed {
        None => {
            conn.log(Kind::Http { exchange, what: event::Http::End });
            gone(conn, post, "the stream ended without an answer".into(), true);
        }
        Some(why) => {
            conn.log(Kind::Http {
                exchange,
                what: event::Http::Failed { why: why.clone(), connected: true },
            });
            conn.events
                .send(LinkEvent::Unreachable { generation: conn.generation, why: why.clone() })
                .ok();
            gone(conn, post, why, true);
        }
    }
}

fn take_event(conn: &Arc<Conn>, e: Sse, exchange: Option<u64>) {
    if let Sse::Event { data, .. } = e {
        let data = Bytes::from(data);
        if !conn.incoming(data.clone(), exchange) {
            conn.log(Kind::Noise { raw: data, cut: 0 });
        }
    }
}

fn gone(conn: &Conn, post: &Post, why: String, connected: bool) {
    if let Some(id) = &post.id {
        conn.resolve(id, Reply::Gone { why, connected });
    }
}

/// The body, and why it is not whole when it isn't.
async fn read_body(
    mut response: reqwest::Response,
    length: Option<u64>,
) -> (Bytes, Option<String>) {
    let mut body = BytesMut::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > BODY_LIMIT => {
                return (
                    body.freeze(),
                    Some(format!("the answer is over {} MiB", BODY_LIMIT >> 20)),
                );
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return (body.freeze(), None),
            Err(e) => {
                let of = length.map_or_else(String::new, |l| format!(" of {l}"));
                let why = format!("cut after {}{of} bytes: {}", body.len(), root_cause(&e));
                return (body.freeze(), Some(why));
            }
        }
    }
}

/// Where a 307 or 308 points, when that is the same origin. Nothing else is followed: a POST never becomes a
/// GET, and secrets never go to another origin.
fn same_origin_redirect(from: &Url, response: &reqwest::Response) -> Option<Url> {
    if !matches!(response.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
    {
        return None;
    }
    let to = from.join(response.headers().get("location")?.to_str().ok()?).ok()?;
    (to.origin() == from.origin()).then_some(to)
}

/// The innermost cause of a reqwest error, in the system's words: its own say too little.
pub(crate) fn root_cause(e: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = e;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Keeps the optional GET stream of a legacy session open, so that the server's death is noticed while
/// nothing is asked. A server without one answers 405 (or 404, 400, 406): then there is none, and it is not
/// asked again.
pub(super) async fn listen(conn: Arc<Conn>) {
    let Transport::Http(target) = &conn.transport else { return };
    let mut last_id: Option<String> = None;
    let mut retry = Duration::from_secs(1);
    while !conn.is_over() {
        let protocol = conn.protocol().map(|p| p.version.clone());
        let mut b = target
            .request(Method::GET, &target.url, protocol.as_deref())
            .header("accept", "text/event-stream");
        if let Some(id) = &last_id {
            b = b.header("last-event-id", id);
        }
        let mut response = match b.send().await {
            Ok(r) if r.status().is_success() => r,
            Ok(r) if r.status() == StatusCode::NOT_FOUND && last_id.is_some() => {
                conn.events
                    .send(LinkEvent::SessionLost { generation: conn.generation, status: 404 })
                    .ok();
                return;
            }
            Ok(_) => return,
            Err(e) => {
                conn.events
                    .send(LinkEvent::Unreachable {
                        generation: conn.generation,
                        why: root_cause(&e),
                    })
                    .ok();
                return;
            }
        };
        let mut parser = Parser::new(BODY_LIMIT);
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => parser.feed(&chunk, |e| match &e {
                    Sse::Retry(ms) => retry = Duration::from_millis((*ms).clamp(100, 60_000)),
                    Sse::Primed { id } | Sse::Event { id: Some(id), .. } => {
                        last_id = Some(id.clone());
                        take_event(&conn, e, None);
                    }
                    _ => take_event(&conn, e, None),
                }),
                Ok(None) => break,
                Err(e) => {
                    // Cut in the middle: the server may be gone; the next GET will tell.
                    conn.log(Kind::Note(event::Note::Text(format!(
                        "the listening stream broke: {}",
                        root_cause(&e)
                    ))));
                    break;
                }
            }
        }
        tokio::time::sleep(retry).await;
    }
}

/// The name and reason of an answer that a handshake can't use, for people.
pub(super) fn status_words(status: u16, body: &Bytes, www_authenticate: Option<&str>) -> String {
    let text = String::from_utf8_lossy(body);
    let message = raw::get_path(&text, &["error", "message"]).and_then(raw::as_str);
    let said = message.unwrap_or_else(|| settle::first_line(&text));
    let auth = www_authenticate.map(|w| format!(" ({w})")).unwrap_or_default();
    format!("HTTP {status}{auth}{}{said}", if said.is_empty() { "" } else { ": " })
}
