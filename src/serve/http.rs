//! MCP over Streamable HTTP on a loopback address, path `/mcp`, both eras on one endpoint; every answer is JSON.
//!
//! Legacy peers get a session from `initialize` and must name it; modern requests stand alone. A client that goes away
//! stops nothing: work that began finishes, as in the reference server, and only its answer is lost. Ends on SIGTERM or
//! SIGINT, in the same way as stdio.

use super::faults::Instead;
use super::headers::{self, SESSION, VERSION};
use super::mcp::{self, Answer, Call, Server, Step};
use super::pending::Pending;
use super::sessions::Sessions;
use super::stop::Stop;
use super::{GRACE, MAX_MESSAGE};
use crate::error::{Error, Result};
use crate::loopback::check_peer;
use crate::wire::frame::{self, Frame};
use crate::wire::id::Id;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::any};
use std::future::IntoFuture;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Without meaning in the protocol; as the TypeScript SDK answers.
const BAD_REQUEST: i64 = -32000;
const SESSION_NOT_FOUND: i64 = -32001;

/// `ADDRESS:PORT` or `localhost:PORT`, loopback only.
///
/// # Errors
/// Exit 2.
pub fn loopback(address: &str) -> Result<SocketAddr> {
    let parsed = match address.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        None => address.parse().ok(),
    };
    let hint = "for example --http 127.0.0.1:8000, or port 0 for any free one";
    match parsed {
        Some(a) if a.ip().is_loopback() => Ok(a),
        Some(a) => Err(Error::usage(format!(
            "{a} is no loopback address: the built-in servers have no authentication and listen on this machine only"
        ))
        .hint(hint)),
        None => Err(Error::usage(format!("--http {address} is no address with a port")).hint(hint)),
    }
}

struct App {
    server: Arc<Server>,
    sessions: Sessions,
    work: TaskTracker,
}

/// Listens and serves until a signal; says on stderr where.
pub async fn run(server: Arc<Server>, stop: Stop, address: SocketAddr) -> Result<()> {
    let failed =
        |e: std::io::Error| Error::endpoint(format!("{address} can't be listened on: {e}"));
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    super::log(&format!("listening on http://{}/mcp", listener.local_addr().map_err(failed)?));
    let app = Arc::new(App { server, sessions: Sessions::default(), work: TaskTracker::new() });
    let router = Router::new()
        .route("/mcp", any(handle))
        .layer(DefaultBodyLimit::max(MAX_MESSAGE))
        .with_state(app.clone());
    let ending = CancellationToken::new();
    let serve = axum::serve(listener, router)
        .with_graceful_shutdown(ending.clone().cancelled_owned())
        .into_future();
    tokio::pin!(serve);
    tokio::select! {
        served = &mut serve => return served.map_err(failed),
        ended = crate::signals::ended() => ended?,
    }
    ending.cancel();
    let _ = timeout(GRACE, &mut serve).await;
    stop.stop();
    app.work.close();
    let _ = timeout(GRACE, app.work.wait()).await;
    Ok(())
}

async fn handle(State(app): State<Arc<App>>, request: Request) -> Response {
    if let Err(why) = check_peer(request.uri(), request.headers()) {
        return refuse(StatusCode::FORBIDDEN, BAD_REQUEST, why);
    }
    match *request.method() {
        Method::POST => app.post(request).await,
        Method::DELETE => app.delete(request.headers()),
        _ => {
            let why = "Method not allowed: POST messages, DELETE ends a session";
            let mut no = refuse(StatusCode::METHOD_NOT_ALLOWED, BAD_REQUEST, why);
            no.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST, DELETE"));
            no
        }
    }
}

impl App {
    async fn post(&self, request: Request) -> Response {
        let headers = request.headers().clone();
        if !headers::sends_json(&headers) {
            let why = "Unsupported media type: Content-Type must be application/json";
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, BAD_REQUEST, why);
        }
        if !headers::takes_json(&headers) {
            let why = "Not acceptable: the client must accept application/json";
            return refuse(StatusCode::NOT_ACCEPTABLE, BAD_REQUEST, why);
        }
        // The limit below counts what arrives; what is announced can be refused before it does.
        if request.body().size_hint().lower() > MAX_MESSAGE as u64 {
            let why = "Payload too large: a message has at most 16 MiB";
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, BAD_REQUEST, why);
        }
        let body = match Bytes::from_request(request, &()).await {
            Ok(body) => body,
            Err(why) => return refuse(why.status(), BAD_REQUEST, &why.body_text()),
        };
        // What is no UTF-8 is no JSON either, and is answered so.
        let text = std::str::from_utf8(&body).unwrap_or("not UTF-8");
        let frame = Frame::parse(text);
        match peer(&headers, &frame) {
            Err(refusal) => *refusal,
            Ok(Peer::Modern) => self.step(text, frame, Arc::default()).await,
            Ok(Peer::Opening) => self.open(text, frame),
            Ok(Peer::Session) => match self.session(&headers) {
                Ok(pending) => self.step(text, frame, pending).await,
                Err(refusal) => *refusal,
            },
        }
    }

    async fn step(&self, text: &str, frame: Frame<'_>, pending: Arc<Pending>) -> Response {
        match self.server.step(text, frame) {
            Step::Nothing => StatusCode::ACCEPTED.into_response(),
            Step::Cancel(id) => {
                super::log_cancel(&id);
                pending.cancel(&id);
                StatusCode::ACCEPTED.into_response()
            }
            Step::Answer(answer) => answered(answer),
            Step::Call(call) => match self.server.instead() {
                None => self.call(call, pending).await,
                Some(instead) => self.instead(instead),
            },
        }
    }

    /// The work runs on its own; this only waits for it, and is dropped when the client goes away.
    async fn call(&self, call: Call, pending: Arc<Pending>) -> Response {
        let entry = pending.begin(call.id.clone());
        let server = self.server.clone();
        let cancelled = entry.cancelled.clone();
        let work = self.work.spawn_blocking(move || {
            let done = server.call(&call);
            if cancelled.is_cancelled() {
                super::log_aborted(&call.id);
            }
            done
        });
        tokio::select! {
            done = work => match done {
                Ok(Ok(_)) if self.server.drops_answer() => cut_off(),
                Ok(Ok(json)) => answered(Answer { json, status: 200 }),
                _ => (StatusCode::SERVICE_UNAVAILABLE, "the server is ending\n").into_response(),
            },
            // A cancelled request has no answer, but its POST has: a stream that ends without one.
            () = entry.cancelled.cancelled() => {
                ([(header::CONTENT_TYPE, "text/event-stream")], Body::empty()).into_response()
            }
        }
    }

    /// What a fault does to a call instead of handling it.
    fn instead(&self, fault: Instead) -> Response {
        match fault {
            Instead::Busy(status) => {
                let status =
                    StatusCode::from_u16(status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
                (status, "busy: told to be\n").into_response()
            }
            Instead::SessionLost(status) => {
                self.sessions.clear();
                match status {
                    400 => refuse(
                        StatusCode::BAD_REQUEST,
                        BAD_REQUEST,
                        "Bad Request: No valid session ID provided",
                    ),
                    _ => session_not_found(),
                }
            }
        }
    }

    /// `initialize`: a new session, named in the answer's header.
    fn open(&self, text: &str, frame: Frame<'_>) -> Response {
        let Step::Answer(answer) = self.server.step(text, frame) else {
            return StatusCode::ACCEPTED.into_response();
        };
        let opened = answer.status == 200;
        let mut response = answered(answer);
        if opened
            && let Ok(id) = super::uuid_hex()
            && let Ok(value) = HeaderValue::from_str(&id)
        {
            self.sessions.open(id);
            response.headers_mut().insert(SESSION, value);
        }
        response
    }

    fn session(&self, headers: &HeaderMap) -> Result<Arc<Pending>, Box<Response>> {
        let Some(id) = headers::text(headers, SESSION) else {
            let why = "Bad Request: Missing session ID";
            return Err(Box::new(refuse(StatusCode::BAD_REQUEST, BAD_REQUEST, why)));
        };
        let Some(pending) = self.sessions.get(id) else {
            return Err(Box::new(session_not_found()));
        };
        match headers::text(headers, VERSION) {
            Some(v) if !mcp::LEGACY.contains(&v) => {
                let why = format!(
                    "Bad Request: Unsupported protocol version: {v} (supported versions: {})",
                    mcp::LEGACY.join(", ")
                );
                Err(Box::new(refuse(StatusCode::BAD_REQUEST, BAD_REQUEST, &why)))
            }
            _ => Ok(pending),
        }
    }

    fn delete(&self, headers: &HeaderMap) -> Response {
        match headers::text(headers, SESSION) {
            None => refuse(StatusCode::BAD_REQUEST, BAD_REQUEST, "Bad Request: Missing session ID"),
            Some(id) if self.sessions.close(id) => StatusCode::OK.into_response(),
            Some(_) => session_not_found(),
        }
    }
}

/// How a message is to be taken.
enum Peer {
    /// On its own.
    Modern,
    /// As the opening of a session.
    Opening,
    /// Within a session.
    Session,
}

fn peer(headers: &HeaderMap, frame: &Frame<'_>) -> Result<Peer, Box<Response>> {
    let modern_header = headers::text(headers, VERSION) == Some(mcp::MODERN);
    let (id, method, params) = match frame {
        Frame::Request { id, method, params } => (id, method, *params),
        _ if modern_header => return Ok(Peer::Modern),
        _ => return Ok(Peer::Session),
    };
    let refuse = |code, why: &str| {
        let json = frame::error(id, code, why);
        Err(Box::new(answered(Answer { json, status: 400 })))
    };
    match mcp::declared_version(params) {
        Some(version) => {
            match headers::check_mirrored(headers, &version, method, params.unwrap_or("{}")) {
                Ok(()) => Ok(Peer::Modern),
                Err(why) => refuse(mcp::HEADER_MISMATCH, &why),
            }
        }
        None if method == "server/discover" => Ok(Peer::Modern),
        None if modern_header => refuse(
            mcp::INVALID_PARAMS,
            "Invalid params: _meta must declare the protocol version of the header",
        ),
        None if method == "initialize" => Ok(Peer::Opening),
        None => Ok(Peer::Session),
    }
}

fn answered(answer: Answer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    (status, [(header::CONTENT_TYPE, "application/json")], answer.json).into_response()
}

/// An answer that breaks off after its head: the connection is cut.
fn cut_off() -> Response {
    let broken = std::io::Error::other("the answer is lost on purpose");
    let body = Body::from_stream(futures_util::stream::iter([Err::<Bytes, _>(broken)]));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn refuse(status: StatusCode, code: i64, why: &str) -> Response {
    answered(Answer { json: frame::error(&Id::Null, code, why), status: status.as_u16() })
}

fn session_not_found() -> Response {
    refuse(StatusCode::NOT_FOUND, SESSION_NOT_FOUND, "Session not found")
}
