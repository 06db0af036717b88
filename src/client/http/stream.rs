//! Server-sent events of an exchange: read to their end, resumed where the server primed them for it
//! (2025-11-25, "Resumability and Redelivery"), their flow told in bounded steps.

use super::{BODY_LIMIT, PLAIN_LIMIT, Post, header, post, root_cause, status_event};
use crate::client::conn::{Conn, Reply, Transport};
use crate::client::driver::LinkEvent;
use crate::client::stdio::{OVER, breathe};
use crate::journal::exchange::is_event_stream;
use crate::journal::{Kind, event, refusal};
use crate::json::raw;
use crate::size::size;
use crate::wire::coding::{Decoder, Fault};
use crate::wire::frame::Answer;
use crate::wire::sse::{Parser, Sse};
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the flow of bytes is told at most.
const TELL: Duration = Duration::from_secs(1);
/// How often in a row a stream is resumed without anything new coming of it.
const RESUMES: u32 = 4;

/// Counts what comes and tells the journal, at most once a second.
pub(super) struct Flow<'a> {
    conn: &'a Conn,
    exchange: u64,
    bytes: u64,
    pub keepalives: u64,
    told_at: Instant,
    untold: bool,
    decoder: Option<Decoder>,
}

/// Why no more of an answer is read.
pub(super) enum Stop {
    /// The connection broke.
    Broke(String),
    /// redial can't or won't read on: the link is fine.
    ByUs(String),
}

impl<'a> Flow<'a> {
    pub fn new(conn: &'a Conn, exchange: u64) -> Flow<'a> {
        let told_at = Instant::now();
        Flow { conn, exchange, bytes: 0, keepalives: 0, told_at, untold: false, decoder: None }
    }

    /// The body that comes next is coded as this response says.
    ///
    /// # Errors
    /// A coding that is not known; it is told to the journal.
    pub fn begin(&mut self, response: &reqwest::Response) -> Result<(), Stop> {
        match decoder(response) {
            Ok(decoder) => {
                self.decoder = decoder;
                Ok(())
            }
            Err(fault) => Err(self.unreadable(fault.to_string())),
        }
    }

    /// redial reads no further; why. Told before anything acts on it.
    pub fn unreadable(&self, why: String) -> Stop {
        let what = event::Http::Unreadable { why: why.clone() };
        self.conn.log(Kind::Http { exchange: self.exchange, what });
        Stop::ByUs(format!("the answer was not read: {why}"))
    }

    /// The next bytes of the body as they were before they were coded; tells what came while it waits.
    ///
    /// # Errors
    /// See [`Stop`].
    pub async fn next(&mut self, response: &mut reqwest::Response) -> Result<Option<Bytes>, Stop> {
        loop {
            let chunk = self.chunk(response).await.map_err(|e| Stop::Broke(root_cause(&e)))?;
            let Some(decoder) = &mut self.decoder else { return Ok(chunk) };
            let last = chunk.is_none();
            let undone = match &chunk {
                Some(chunk) => decoder.feed(chunk),
                None => decoder.finish(),
            };
            let undone = undone.map_err(|f| self.unreadable(f.to_string()))?;
            if last {
                self.decoder = None;
            }
            match undone.is_empty() {
                true if last => return Ok(None),
                true => {}
                false => return Ok(Some(undone.into())),
            }
        }
    }

    /// The next bytes as they are on the wire.
    async fn chunk(&mut self, response: &mut reqwest::Response) -> reqwest::Result<Option<Bytes>> {
        loop {
            let left = TELL.saturating_sub(self.told_at.elapsed());
            if self.untold && left.is_zero() {
                let what = event::Http::Flow { bytes: self.bytes, keepalives: self.keepalives };
                self.conn.log(Kind::Http { exchange: self.exchange, what });
                self.told_at = Instant::now();
                self.untold = false;
            }
            let chunk = if self.untold {
                match tokio::time::timeout(left, response.chunk()).await {
                    Ok(chunk) => chunk?,
                    Err(_) => continue,
                }
            } else {
                response.chunk().await?
            };
            if let Some(c) = &chunk {
                self.bytes += c.len() as u64;
                self.untold = true;
            }
            return Ok(chunk);
        }
    }
}

/// How one response of a stream ended.
enum End {
    Properly,
    /// By the server's own end of the stream.
    Short(String),
    /// By the connection.
    Broke(String),
    /// By redial itself.
    ByUs(String),
}

/// How a response's body is coded.
pub(super) fn decoder(response: &reqwest::Response) -> Result<Option<Decoder>, Fault> {
    let all = response.headers().get_all(reqwest::header::CONTENT_ENCODING);
    let codings: Vec<_> = all.iter().map(|v| String::from_utf8_lossy(v.as_bytes())).collect();
    Decoder::new(&codings.join(","), BODY_LIMIT)
}

/// What is kept from one response of a stream to the next.
#[derive(Default)]
pub(super) struct Resume {
    pub last_id: Option<String>,
    pub retry: Option<Duration>,
    events: u64,
}

impl Resume {
    /// Takes one piece of the grammar; a message goes to the journal and to whoever waits.
    pub fn take(&mut self, conn: &Arc<Conn>, e: Sse, exchange: Option<u64>) {
        match e {
            // Out of range would be either a storm or a sleep for ever.
            Sse::Retry(ms) => self.retry = Some(Duration::from_millis(ms.clamp(10, 300_000))),
            Sse::Primed { id } => self.last_id = Some(id),
            Sse::Event { data, id, cut, .. } => {
                self.events += 1;
                if exchange.is_none() {
                    conn.beside.heard();
                }
                if id.is_some() {
                    self.last_id = id;
                }
                let data = Bytes::from(data);
                if cut > 0 || !conn.incoming(data.clone(), exchange) {
                    conn.log(Kind::Noise { raw: data.clone(), cut });
                    conn.no_json(&data, exchange);
                }
            }
            Sse::Comment => {}
        }
    }
}

/// Reads the stream that answers a POST, to its end and beyond.
pub(super) async fn read(conn: &Arc<Conn>, post: &Post, response: reqwest::Response) {
    let mut resume = Resume::default();
    let mut flow = Flow::new(conn, post.exchange);
    let mut end = drain(conn, post.exchange, response, &mut resume, &mut flow).await;
    let mut tries = 0;
    let refused = loop {
        // A generation that was left behind still owes the answers of what is open on it.
        let owed = |s: &crate::journal::Session| s.is_owed(post.exchange);
        let open =
            post.id.as_ref().is_some_and(|id| conn.is_waiting(id)) || conn.journal.read(owed);
        let may = open && !conn.is_modern() && !matches!(end, End::ByUs(_));
        let Some(last_id) = resume.last_id.clone().filter(|_| may) else {
            break None;
        };
        if tries >= RESUMES {
            break None;
        }
        let wait = resume.retry.unwrap_or_else(|| Duration::from_millis(1000 << tries));
        tries += 1;
        let before = resume.events;
        match again(conn, post.exchange, last_id, wait).await {
            Ok(response) => {
                end = drain(conn, post.exchange, response, &mut resume, &mut flow).await;
                if resume.events > before {
                    tries = 0;
                }
            }
            Err(why) => break Some(why),
        }
    };
    match (refused, end) {
        (Some((why, by_server)), _) => {
            let why = format!("the stream ended early, and resuming it failed: {why}");
            match by_server {
                true => post::failed(conn, post, why, true),
                false => post::broke(conn, post, why, true),
            }
        }
        (None, End::Short(why)) => post::failed(conn, post, why, true),
        (None, End::ByUs(why)) => post::gone(conn, post, why),
        (None, End::Broke(why)) => post::broke(conn, post, why, true),
        (None, End::Properly) => {
            conn.log(Kind::Http { exchange: post.exchange, what: event::Http::End });
            if let Some(id) = &post.id {
                conn.resolve(id, Reply::Gone { why: "the stream ended without an answer".into() });
            }
        }
    }
}

/// Asks for the rest of a stream; on failure why, and whether the server said so itself.
async fn again(
    conn: &Arc<Conn>,
    exchange: u64,
    last_event_id: String,
    wait: Duration,
) -> Result<reqwest::Response, (String, bool)> {
    let Transport::Http(target) = &conn.transport else {
        return Err(("no HTTP here".into(), true));
    };
    let log = |what| conn.log(Kind::Http { exchange, what });
    let after_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    log(event::Http::Resuming { last_event_id: last_event_id.clone(), after_ms });
    tokio::time::sleep(wait).await;
    target.told(conn, exchange, "GET", &target.url());
    let response = target
        .get(conn, Some(&last_event_id))
        .send()
        .await
        .map_err(|e| (target.cause(&e), false))?;
    log(status_event(&response, None));
    let is_stream = header(&response, "content-type").is_some_and(|c| is_event_stream(&c));
    match response.status() {
        s if !s.is_success() => {
            let status = s.as_u16();
            let said = beginning(response).await;
            let error = raw::get(&said, "error").map(Answer::error);
            let (code, words) = match &error {
                Some(Answer::Error { code, message, .. }) => (*code, message.as_str()),
                _ => (None, said.as_str()),
            };
            let sent = target.session().is_some();
            if refusal::is_session_lost(status, code, words, sent, false) {
                let generation = conn.generation;
                conn.events.send(LinkEvent::SessionLost { generation, status }).ok();
                return Err((format!("the session is lost (HTTP {status})"), true));
            }
            Err((format!("the server answered with HTTP {status}"), true))
        }
        _ if !is_stream => {
            Err(("the server answered with something that is no stream".into(), true))
        }
        _ => Ok(response),
    }
}

/// What a body begins with. One that has no end, or that nobody finishes, is looked at no further.
async fn beginning(mut response: reqwest::Response) -> String {
    let mut decoder = decoder(&response).ok().flatten();
    let mut text = Vec::new();
    let read = async {
        while let (true, Ok(Some(chunk))) = (text.len() < PLAIN_LIMIT, response.chunk().await) {
            match &mut decoder {
                Some(decoder) => match decoder.feed(&chunk) {
                    Ok(undone) => text.extend(undone),
                    Err(_) => break,
                },
                None => text.extend_from_slice(&chunk),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(5), read).await.ok();
    String::from_utf8_lossy(&text).chars().take(4_096).collect()
}

async fn drain(
    conn: &Arc<Conn>,
    exchange: u64,
    mut response: reqwest::Response,
    resume: &mut Resume,
    flow: &mut Flow<'_>,
) -> End {
    let mut parser = Parser::new(BODY_LIMIT);
    if let Err(Stop::ByUs(why) | Stop::Broke(why)) = flow.begin(&response) {
        return End::ByUs(why);
    }
    let mut over: Option<Instant> = None;
    let end = loop {
        match flow.next(&mut response).await {
            Ok(Some(chunk)) => {
                let mut found = Vec::new();
                parser.feed(&chunk, |e| found.push(e));
                for e in found {
                    if e == Sse::Comment {
                        flow.keepalives += 1;
                    }
                    resume.take(conn, e, Some(exchange));
                }
                over = (parser.cut() > 0).then(|| over.unwrap_or_else(Instant::now));
                if over.is_some_and(|since| since.elapsed() > OVER) {
                    unfinished(conn, exchange, &mut parser);
                    let limit = size(BODY_LIMIT as u64);
                    let why = format!(
                        "redial stopped reading at its limit of {limit}, and more was coming"
                    );
                    match flow.unreadable(why) {
                        Stop::ByUs(why) | Stop::Broke(why) => return End::ByUs(why),
                    }
                }
                breathe().await;
            }
            Ok(None) => break None,
            Err(Stop::Broke(why)) => break Some(why),
            Err(Stop::ByUs(why)) => return End::ByUs(why),
        }
    };
    match (end, unfinished(conn, exchange, &mut parser)) {
        (None, 0) => End::Properly,
        (None, n) => {
            End::Short(format!("the stream ended in the middle of an event, after {n} bytes of it"))
        }
        (Some(why), 0) => End::Broke(why),
        (Some(why), n) => End::Broke(format!("cut after {n} bytes of an event: {why}")),
    }
}

/// The bytes of an event that never ended are evidence, never an event: kept, and counted.
pub(super) fn unfinished(conn: &Conn, exchange: u64, parser: &mut Parser) -> usize {
    let rest = parser.take_unfinished();
    if !rest.is_empty() {
        let raw = Bytes::copy_from_slice(&rest[..rest.len().min(PLAIN_LIMIT)]);
        conn.log(Kind::Http { exchange, what: event::Http::Partial { raw } });
    }
    rest.len()
}
