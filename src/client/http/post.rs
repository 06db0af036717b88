//! One POST from its request line to its end: redirects within the origin, JSON or a stream as the answer,
//! and what each way to break proves.

use super::beside;
use super::stream::{self, Flow, Stop};
use super::{BODY_LIMIT, PLAIN_LIMIT, Post, header, shown_url, status_event};
use crate::client::conn::{Conn, Reply, Transport};
use crate::client::driver::LinkEvent;
use crate::journal::ends::is_this_answer;
use crate::journal::exchange::is_event_stream;
use crate::journal::{Kind, event, refusal};
use crate::json::raw;
use crate::size::size;
use crate::wire::frame::{Answer, Frame};
use crate::wire::id::Id;
use bytes::{Bytes, BytesMut};
use reqwest::{Method, StatusCode, Url};
use std::sync::Arc;

const MAX_REDIRECTS: usize = 3;

pub(super) async fn run(conn: Arc<Conn>, mut post: Post) {
    let Some(response) = send(&conn, &post).await else { return };
    let Transport::Http(target) = &conn.transport else { return };
    let exchange = post.exchange;
    let log = |what| conn.log(Kind::Http { exchange, what });
    let status = response.status();
    // A session id counts only on a successful initialize: real servers put one on a 400 too.
    let is_initialize = post.id.is_some() && is_initialize(&post.raw);
    let session =
        header(&response, "mcp-session-id").filter(|_| is_initialize && status.is_success());
    let had_session = target.session().is_some();
    if session.is_some() {
        target.set_session(session.clone());
    }
    log(status_event(&response, session));
    // Taken or refused: whoever must not overtake this message may go on, however long the answer lasts.
    if let Some(done) = post.done.take() {
        done.send(()).ok();
    }
    let is_stream = header(&response, "content-type").is_some_and(|c| is_event_stream(&c));
    if status.is_success() && is_stream {
        return stream::read(&conn, &post, response).await;
    }
    let (www_authenticate, location) =
        (header(&response, "www-authenticate"), header(&response, "location"));
    let body = match read_body(&conn, exchange, response).await {
        Ok(body) => body,
        Err(Cut { came, why, by_us }) => {
            if !came.is_empty() {
                log(event::Http::Partial { raw: came.slice(..came.len().min(PLAIN_LIMIT)) });
            }
            return match by_us {
                true => gone(&conn, &post, why),
                false => broke(&conn, &post, why, true),
            };
        }
    };
    let doubt = doubt(&conn, &post, status.as_u16(), &body, had_session);
    if post.id.is_some() {
        let blank = body.iter().all(u8::is_ascii_whitespace);
        let is_rpc = match status.is_success() {
            true => conn.incoming(body.clone(), Some(exchange)),
            false => conn.record(&body, exchange),
        };
        if !blank && !is_rpc {
            let raw = body.slice(..body.len().min(PLAIN_LIMIT));
            let cut = (body.len() - raw.len()) as u64;
            log(event::Http::Body { raw, cut });
        }
    }
    // Nothing in the answer to a notification matters, but a lost session does.
    log(event::Http::End);
    // Before whoever waits goes on: what it sends next must not meet the session that is in doubt.
    if let Some(event) = doubt {
        conn.events.send(event).ok();
    }
    if let Some(id) = &post.id {
        // A status never overrules the answer to this very request; of the handshake it is the verdict.
        let reply = match conn.is_other(id) && answers(&body, id) {
            true => Reply::Frame(body),
            false => Reply::Status { status: status.as_u16(), body, www_authenticate, location },
        };
        conn.resolve(id, reply);
    }
}

/// Sends the POST, following redirects within the origin; `None` when it broke, which is told then.
async fn send(conn: &Arc<Conn>, post: &Post) -> Option<reqwest::Response> {
    let Transport::Http(target) = &conn.transport else { return None };
    let log = |what| conn.log(Kind::Http { exchange: post.exchange, what });
    let mut url = target.url();
    let mut tried = vec![url.clone()];
    let mut for_good = true;
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("accept".to_owned(), "application/json, text/event-stream".to_owned()),
    ];
    headers.extend(post.headers.iter().cloned());
    loop {
        target.told(conn, post.exchange, "POST", &url);
        let sending = target.request(Method::POST, &url, &headers).body(post.raw.clone()).send();
        let sent = beside::headers(conn, post, sending).await;
        let response = match sent {
            Ok(r) => r,
            Err(e) => {
                // Only a failure to connect (or to build the request) proves that nothing was sent.
                let connected = !(e.is_connect() || e.is_builder());
                broke(conn, post, target.cause(&e), connected);
                return None;
            }
        };
        let Some(to) = same_origin_redirect(&url, &response) else {
            // Only what moved for good, or what the whole session began with, is where later requests go at once.
            if tried.len() > 1 && response.status().is_success() && (for_good || opens(&post.raw)) {
                target.set_moved(url);
            }
            return Some(response);
        };
        // Whoever sends a message back to where it came from may have worked on it each time.
        if tried.len() > MAX_REDIRECTS || tried.contains(&to) {
            return Some(response);
        }
        let status = response.status().as_u16();
        for_good &= status == 308;
        log(event::Http::Redirected { status, to: shown_url(to.as_str()) });
        tried.push(to.clone());
        url = to;
    }
}

/// Whether this message begins a session.
fn opens(frame: &[u8]) -> bool {
    let text = String::from_utf8_lossy(frame);
    raw::get_str(&text, "method").is_some_and(|m| m == "initialize" || m == "server/discover")
}

/// redial itself reads no further, which was told; the connection is closed.
pub(super) fn gone(conn: &Conn, post: &Post, why: String) {
    conn.log(Kind::Http { exchange: post.exchange, what: event::Http::End });
    if let Some(id) = &post.id {
        conn.resolve(id, Reply::Gone { why });
    }
}

/// The exchange failed, and that says nothing of the link: told to the journal and to whoever waits.
pub(super) fn failed(conn: &Conn, post: &Post, why: String, connected: bool) {
    let exchange = post.exchange;
    let what = event::Http::Failed { why: why.clone(), connected };
    conn.log(Kind::Http { exchange, what });
    if let Some(id) = &post.id {
        conn.resolve(id, Reply::Gone { why });
    }
}

/// The connection broke: the driver is told as well.
pub(super) fn broke(conn: &Conn, post: &Post, why: String, connected: bool) {
    failed(conn, post, why.clone(), connected);
    let generation = conn.generation;
    conn.events.send(LinkEvent::Unreachable { generation, why, connected }).ok();
}

/// What an answer says of the link itself: the session is lost, or the server is of another era by now.
fn doubt(
    conn: &Conn,
    post: &Post,
    status: u16,
    body: &Bytes,
    had_session: bool,
) -> Option<LinkEvent> {
    if status < 400 {
        return None;
    }
    let text = String::from_utf8_lossy(body);
    let (id, code, message) = match Frame::parse(&text) {
        Frame::Response { id, answer: Answer::Error { code, message, .. } } => (id, code, message),
        _ => (None, None, text.into_owned()),
    };
    let own = id.is_some() && id == post.id;
    let generation = conn.generation;
    if had_session && refusal::is_session_lost(status, code, &message, true, own) {
        return Some(LinkEvent::SessionLost { generation, status });
    }
    let wrong_era = match conn.protocol() {
        Some(p) if p.modern => !own && refusal::wants_initialize(status, code, &message),
        Some(_) => code == Some(-32022),
        None => false,
    };
    (wrong_era && post.id.is_some()).then_some(LinkEvent::EraChanged { generation, why: message })
}

/// Whether a body is an answer under that id.
fn answers(body: &[u8], asked: &Id) -> bool {
    let text = String::from_utf8_lossy(body);
    match Frame::parse(&text) {
        Frame::Response { id, answer } => is_this_answer(id.as_ref(), Some(asked), &answer),
        _ => false,
    }
}

/// A body that is not whole.
struct Cut {
    came: Bytes,
    why: String,
    /// It was too much for us; the link is fine.
    by_us: bool,
}

/// The body, or what came of it and why it is not whole.
async fn read_body(
    conn: &Conn,
    exchange: u64,
    mut response: reqwest::Response,
) -> Result<Bytes, Cut> {
    let length = response.content_length();
    let mut body = BytesMut::new();
    let mut flow = Flow::new(conn, exchange);
    let by_us = |came: BytesMut, why| Cut { came: came.freeze(), why, by_us: true };
    if let Err(Stop::ByUs(why) | Stop::Broke(why)) = flow.begin(&response) {
        // Bytes that can't be read are no evidence for anybody.
        return Err(by_us(BytesMut::new(), why));
    }
    loop {
        match flow.next(&mut response).await {
            Ok(Some(chunk)) if body.len() + chunk.len() > BODY_LIMIT => {
                let why = format!(
                    "redial stopped reading at its limit of {}, and more was coming",
                    size(BODY_LIMIT as u64)
                );
                if let Stop::ByUs(why) = flow.unreadable(why) {
                    return Err(by_us(body, why));
                }
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body.freeze()),
            Err(Stop::ByUs(why)) => return Err(by_us(body, why)),
            Err(Stop::Broke(e)) => {
                let of = length.map_or_else(String::new, |l| format!(" of {l}"));
                let why = format!("cut after {}{of} bytes: {e}", body.len());
                return Err(Cut { came: body.freeze(), why, by_us: false });
            }
        }
    }
}

fn is_initialize(raw: &Bytes) -> bool {
    let text = String::from_utf8_lossy(raw);
    matches!(Frame::parse(&text), Frame::Request { method, .. } if method == "initialize")
}

/// Where a 307 or 308 points, when that is the same origin. Nothing else is followed: a POST never becomes a
/// GET, and secrets never go to another origin.
fn same_origin_redirect(from: &Url, response: &reqwest::Response) -> Option<Url> {
    if !matches!(response.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
    {
        return None;
    }
    let to = from.join(&header(response, "location")?).ok()?;
    (to.origin() == from.origin()).then_some(to)
}
