//! The one owner of an endpoint's link: opens generations, keeps their state, takes commands.
//!
//! HTTP connects again by itself when told to; a dead child is started again only when asked, because a new
//! process is an act. A `tools/call` is sent once, when it is commanded, and never by this loop itself.

use super::conn::{Conn, Numbers, Transport};
use super::handshake::{self, Failure, Plan};
use super::{Endpoint, Settings, backoff, http, stdio};
use crate::journal::event::{self, Purpose};
use crate::journal::{CallId, Journal, Kind, LinkState, Note};
use crate::json::raw;
use crate::time::Time;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// How long a child without anything in flight gets at each step of its end.
const GRACE_IDLE: Duration = Duration::from_millis(120);
/// The same with calls in flight: it may be finishing them.
const GRACE_BUSY: Duration = Duration::from_secs(2);

/// What a handle asks of the driver.
pub enum Command {
    /// Send one `tools/call`.
    Call {
        /// The tool.
        tool: String,
        /// The raw arguments object.
        args: String,
        /// Seconds until it counts as unknown.
        limit_s: f64,
        /// Gets the call's id once it is in the journal.
        reply: oneshot::Sender<CallId>,
    },
    /// Give a call up and tell the server. `note` is what the journal says; by default that a person did.
    Cancel {
        /// Which.
        call: CallId,
        /// Why.
        note: Option<Note>,
    },
    /// Read the tools again.
    ListTools(oneshot::Sender<()>),
    /// Connect again now.
    Reconnect,
    /// End everything.
    Close(oneshot::Sender<()>),
}

/// What the transports tell the driver.
#[derive(Debug)]
pub(super) enum LinkEvent {
    Exited { generation: u32, why: String },
    StdoutClosed { generation: u32 },
    Unreachable { generation: u32, why: String },
    SessionLost { generation: u32, status: u16 },
    ToolsChanged { generation: u32 },
}

struct Driver {
    endpoint: Endpoint,
    settings: Settings,
    journal: Journal,
    numbers: Arc<Numbers>,
    events: mpsc::UnboundedSender<LinkEvent>,
    conn: Option<Arc<Conn>>,
    generation: u32,
    known_modern: Option<bool>,
    handshake: Option<JoinHandle<Result<(), Failure>>>,
    listener: Option<JoinHandle<()>>,
    ready_since: Option<Instant>,
    attempt: u32,
    retry_at: Option<tokio::time::Instant>,
    timers: mpsc::UnboundedSender<(CallId, f64)>,
}

/// Runs until closed or until the last handle is gone.
pub(super) async fn run(
    endpoint: Endpoint,
    settings: Settings,
    journal: Journal,
    mut inbox: mpsc::UnboundedReceiver<Command>,
) {
    let (events, mut link) = mpsc::unbounded_channel();
    let (timers, mut expired) = mpsc::unbounded_channel();
    let mut d = Driver {
        endpoint,
        settings,
        journal,
        numbers: Arc::default(),
        events,
        conn: None,
        generation: 0,
        known_modern: None,
        handshake: None,
        listener: None,
        ready_since: None,
        attempt: 0,
        retry_at: None,
        timers,
    };
    d.connect("starting");
    loop {
        let retry = async {
            match d.retry_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let shaken = async {
            match d.handshake.as_mut() {
                Some(task) => task.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = shaken => {
                d.handshake = None;
                // A cancelled or panicked task ends like an outage: said, not hidden.
                let done = done.unwrap_or_else(|e| Err(Failure::Outage(format!("the handshake broke off: {e}"))));
                d.handshake_done(done).await;
            }
            Some(event) = link.recv() => d.link_event(event).await,
            Some((call, after_s)) = expired.recv() => d.give_up(call, Note::TimedOut { call, after_s }),
            command = inbox.recv() => match command {
                None => { d.close().await; return; }
                Some(Command::Close(reply)) => {
                    d.close().await;
                    reply.send(()).ok();
                    return;
                }
                Some(command) => d.command(command).await,
            },
            () = retry => { d.retry_at = None; d.connect("trying again"); }
        }
    }
}

impl Driver {
    fn state(&self, state: LinkState, why: impl Into<String>) {
        self.journal.append(self.generation, Kind::State { state, why: why.into() });
    }

    /// Opens the next generation (or goes on with one that never got through) and starts its handshake.
    fn connect(&mut self, why: &str) {
        self.retry_at = None;
        let name = self.endpoint.name();
        self.state(LinkState::Connecting, format!("{why}: {name}"));
        let fresh = self.conn.as_ref().is_none_or(|c| c.is_over() || c.protocol().is_some());
        if fresh {
            self.generation += 1;
            match self.open() {
                Ok(conn) => self.conn = Some(conn),
                Err(why) => {
                    self.conn = None;
                    return self.state(LinkState::Closed, why);
                }
            }
        }
        let Some(conn) = self.conn.clone() else { return };
        let plan = Plan {
            era: self.settings.era,
            known_modern: self.known_modern,
            probe_limit: Duration::from_secs_f64(self.settings.probe_limit_s),
        };
        let limit = Duration::from_secs_f64(self.settings.start_limit_s);
        self.handshake = Some(tokio::spawn(async move {
            tokio::select! {
                done = tokio::time::timeout(limit, handshake::run(&conn, &plan)) => done.unwrap_or_else(|_| {
                    Err(Failure::Final(format!("no handshake within {} s{}", limit.as_secs_f64(), newest_stderr(&conn))))
                }),
                address = speaks_http(&conn, plan.probe_limit + Duration::from_secs(1)) => Err(Failure::Final(format!(
                    "the server says nothing on stdout, and its stderr names {address}: it speaks HTTP, attach with --http {address}"
                ))),
            }
        }));
    }

    fn open(&mut self) -> Result<Arc<Conn>, String> {
        let (transport, opened, started) = match &self.endpoint {
            Endpoint::Stdio { command, env, cwd } => {
                let (pipe, started) = stdio::start(command, env, cwd.as_ref()).map_err(|e| {
                    let program = command.first().map_or("", String::as_str);
                    match e.kind() {
                        std::io::ErrorKind::NotFound => format!("no such command: {program:?}"),
                        _ => format!("{program:?} can't be started: {e}"),
                    }
                })?;
                let opened = event::Transport::Stdio { command: command.clone(), pid: started.pid };
                (Transport::Stdio(pipe), opened, Some(started))
            }
            Endpoint::Http { url, headers } => {
                let target = http::Target::new(url, headers)?;
                (
                    Transport::Http(Box::new(target)),
                    event::Transport::Http { url: url.clone() },
                    None,
                )
            }
        };
        let conn = Conn::new(
            self.journal.clone(),
            self.generation,
            transport,
            self.events.clone(),
            self.numbers.clone(),
        );
        conn.log(Kind::Opened { transport: opened });
        if let Some(started) = started {
            stdio::attach(&conn, started);
        }
        Ok(conn)
    }

    async fn handshake_done(&mut self, done: Result<(), Failure>) {
        let Some(conn) = self.conn.clone() else { return };
        match done {
            Ok(()) => {
                self.known_modern = Some(conn.is_modern());
                self.ready_since = Some(Instant::now());
                let version = conn.protocol().map(|p| p.version.clone()).unwrap_or_default();
                self.state(LinkState::Ready, format!("protocol {version}"));
                if self.settings.listen && !conn.is_modern() && self.endpoint.is_http() {
                    self.listener = Some(tokio::spawn(http::listen(conn)));
                }
            }
            Err(Failure::Ended { why, probing }) if probing && self.known_modern.is_none() => {
                // Some servers end at a method they don't know (field log, row 92): not a crash, a fresh process.
                let text = format!(
                    "the server ended at the probe ({why}); starting it again with initialize first"
                );
                self.journal.append(self.generation, Kind::Note(Note::Text(text)));
                self.known_modern = Some(false);
                self.connect("after the probe");
            }
            Err(Failure::Ended { why, .. }) => self.dead(why).await,
            Err(Failure::Outage(why)) if self.settings.reconnect && self.endpoint.is_http() => {
                self.wait(&why)
            }
            Err(Failure::Outage(why) | Failure::Final(why)) => {
                self.end_conn(GRACE_IDLE).await;
                self.state(LinkState::Closed, why);
            }
        }
    }

    /// HTTP: waits for the next try.
    fn wait(&mut self, why: &str) {
        if self
            .ready_since
            .take()
            .is_some_and(|t| t.elapsed().as_secs_f64() >= backoff::GOOD_SPELL_S)
        {
            self.attempt = 0;
        }
        self.attempt += 1;
        // The sub-microsecond part of the clock is dice enough to keep clients apart.
        let dice = f64::from(u32::try_from(Time::now().0.rem_euclid(1000)).unwrap_or(0)) / 1000.0;
        let delay = backoff::delay_s(self.attempt, dice);
        self.retry_at = Some(tokio::time::Instant::now() + Duration::from_secs_f64(delay));
        let until = Time::now().plus_seconds(delay);
        self.state(LinkState::Waiting { until, attempt: self.attempt }, why);
    }

    async fn dead(&mut self, why: String) {
        // The handshake and the process's end both report it; one word is enough.
        let told = |s: &crate::journal::Session| {
            s.link
                .as_ref()
                .is_some_and(|l| matches!(l.state, LinkState::Dead | LinkState::Waiting { .. }))
        };
        if self.journal.read(told) {
            return;
        }
        self.handshake = None;
        let good = self
            .ready_since
            .take()
            .is_some_and(|t| t.elapsed().as_secs_f64() >= backoff::GOOD_SPELL_S);
        if good {
            self.attempt = 0;
        }
        // A crash loop is bounded: the waits double and five quick ends in a row are enough.
        if self.settings.respawn && self.attempt < 5 {
            self.wait(&why);
        } else {
            self.state(LinkState::Dead, why);
        }
    }

    async fn link_event(&mut self, event: LinkEvent) {
        let current = |n: u32, d: &Driver| d.conn.as_ref().is_some_and(|c| c.generation == n);
        match event {
            LinkEvent::Exited { generation, why }
                if current(generation, self) && self.handshake.is_none() =>
            {
                self.dead(why).await;
            }
            LinkEvent::StdoutClosed { generation } if current(generation, self) => {
                self.handshake = None;
                self.state(LinkState::Dead, "the server closed its stdout; its process still runs");
            }
            LinkEvent::Unreachable { generation, why }
                if current(generation, self)
                    && self.handshake.is_none()
                    && self.retry_at.is_none() =>
            {
                if self.settings.reconnect {
                    self.abandon("the connection broke");
                    self.wait(&why);
                } else {
                    self.state(LinkState::Closed, why);
                }
            }
            LinkEvent::SessionLost { generation, status }
                if current(generation, self) && self.handshake.is_none() =>
            {
                let old = self.conn.as_ref().and_then(|c| match &c.transport {
                    Transport::Http(t) => t.session(),
                    Transport::Stdio(_) => None,
                });
                let text = format!(
                    "session {} lost (HTTP {status}); opening a new one",
                    shorten(&old.unwrap_or_default())
                );
                self.journal.append(generation, Kind::Note(Note::Text(text)));
                self.abandon("session lost");
                self.connect("new session");
            }
            LinkEvent::ToolsChanged { generation } if current(generation, self) => {
                self.list_tools(None)
            }
            _ => {}
        }
    }

    /// Leaves a generation behind. Its open exchanges go on: an answer may still come.
    fn abandon(&mut self, why: &str) {
        if let Some(t) = self.listener.take() {
            t.abort();
        }
        if let Some(conn) = &self.conn {
            conn.end(why);
        }
    }

    async fn command(&mut self, command: Command) {
        match command {
            Command::Call { tool, args, limit_s, reply } => {
                let call = self.call(&tool, &args, limit_s);
                reply.send(call).ok();
            }
            Command::Cancel { call, note } => {
                self.give_up(call, note.unwrap_or(Note::Cancelled { call }))
            }
            Command::ListTools(reply) => self.list_tools(Some(reply)),
            Command::Reconnect => {
                self.attempt = 0;
                let live =
                    self.conn.as_ref().is_some_and(|c| !c.is_over()) && self.retry_at.is_none();
                if self.handshake.is_some() || (live && self.journal.read(|s| s.is_ready())) {
                    return;
                }
                self.end_conn(GRACE_IDLE).await;
                self.connect("asked to");
            }
            Command::Close(_) => {}
        }
    }

    /// Sends the call, once. Without a connection it is in the journal as what it is: never sent.
    fn call(&mut self, tool: &str, args: &str, limit_s: f64) -> CallId {
        let params = format!(r#"{{"name":{},"arguments":{args}}}"#, raw::quote(tool));
        match &self.conn {
            Some(conn) if conn.protocol().is_some() && !conn.is_over() => {
                let (call, _) = conn.request("tools/call", Some(&params), Purpose::Asked, false);
                if limit_s.is_finite() {
                    let timers = self.timers.clone();
                    let journal = self.journal.clone();
                    tokio::spawn(async move {
                        let settled = journal.wait(|s| {
                            s.calls.get(&call).is_none_or(|c| !c.is_pending()).then_some(())
                        });
                        if tokio::time::timeout(Duration::from_secs_f64(limit_s.max(0.0)), settled)
                            .await
                            .is_err()
                        {
                            timers.send((call, limit_s)).ok();
                        }
                    });
                }
                call
            }
            _ => {
                let id = crate::wire::id::Id::Null;
                let raw = crate::wire::frame::request(&id, "tools/call", Some(&params)).into();
                let call = self.journal.append(
                    self.generation,
                    Kind::Sent { raw, exchange: None, purpose: Purpose::Asked },
                );
                let why = self
                    .journal
                    .read(|s| s.link.as_ref().map(|l| l.why.clone()))
                    .unwrap_or_default();
                let why = format!("never sent: no connection ({why})");
                self.journal
                    .append(self.generation, Kind::NotWritten { sent: call, why, left: false });
                call
            }
        }
    }

    /// A limit passed or a person gave up: the call is unknown, and the server is told (2025-11-25 and
    /// stdio: `notifications/cancelled`; 2026-07-28 over HTTP: its stream is closed).
    fn give_up(&mut self, call: CallId, note: Note) {
        let Some((rpc_id, generation, exchange)) = self.journal.read(|s| {
            s.calls
                .get(&call)
                .filter(|c| c.is_pending())
                .map(|c| (c.rpc_id.clone(), c.generation, c.exchange))
        }) else {
            return;
        };
        let reason = match &note {
            Note::TimedOut { after_s, .. } => format!("no answer within {after_s} s"),
            _ => "cancelled by a person".into(),
        };
        self.journal.append(generation, Kind::Note(note));
        let Some(conn) = self.conn.as_ref().filter(|c| c.generation == generation && !c.is_over())
        else {
            return;
        };
        match (&conn.transport, exchange) {
            (Transport::Http(target), Some(x)) if conn.is_modern() => target.abort(x),
            _ => {
                let params = format!(
                    r#"{{"requestId":{},"reason":{}}}"#,
                    rpc_id.to_json(),
                    raw::quote(&reason)
                );
                conn.notify("notifications/cancelled", Some(&params), Purpose::Reply);
            }
        }
    }

    fn list_tools(&mut self, reply: Option<oneshot::Sender<()>>) {
        let Some(conn) = self.conn.clone() else { return };
        if self.handshake.is_some() || conn.protocol().is_none() {
            return;
        }
        tokio::spawn(async move {
            // Its failure is a link event or an answer in the journal; there is nothing more to say here.
            handshake::list_tools(&conn).await.ok();
            if let Some(reply) = reply {
                reply.send(()).ok();
            }
        });
    }

    async fn end_conn(&mut self, grace: Duration) {
        if let Some(t) = self.listener.take() {
            t.abort();
        }
        let Some(conn) = self.conn.take() else { return };
        match &conn.transport {
            Transport::Stdio(pipe) => pipe.end(grace).await,
            Transport::Http(target) => target.end_session(&conn).await,
        }
        conn.end("closed here");
    }

    async fn close(&mut self) {
        if let Some(t) = self.handshake.take() {
            t.abort();
        }
        let generation = self.generation;
        let busy = self.journal.read(|s| {
            s.calls.values().any(|c| {
                c.generation == generation
                    && c.settled
                        .as_ref()
                        .is_none_or(|s| s.outcome == crate::journal::Outcome::Unknown)
            })
        });
        self.end_conn(if busy { GRACE_BUSY } else { GRACE_IDLE }).await;
        self.state(LinkState::Closed, "closed here");
    }
}

/// Waits for the sign that a "stdio" server really speaks HTTP: nothing on stdout, an address on stderr.
/// Never ends otherwise.
async fn speaks_http(conn: &Arc<Conn>, after: Duration) -> String {
    if let Transport::Http(_) = conn.transport {
        return std::future::pending().await;
    }
    tokio::time::sleep(after).await;
    conn.journal
        .wait(|s| {
            let g = s.generation_n(conn.generation)?;
            if g.noise_seen > 0 || s.protocol.is_some() {
                return None;
            }
            g.stderr.iter().rev().find_map(|(_, line)| http_address(&String::from_utf8_lossy(line)))
        })
        .await
}

/// The first `http://…` of a line, with the path most servers use when it names none.
fn http_address(line: &str) -> Option<String> {
    let start = line.find("http://")?;
    let url: String = line[start..]
        .chars()
        .take_while(|c| !c.is_whitespace() && !c.is_control() && !"\"'<>()[],;".contains(*c))
        .collect();
    let host = url.trim_start_matches("http://");
    (!host.is_empty()).then(|| {
        if host.trim_end_matches('/').contains('/') {
            url.clone()
        } else {
            format!("{}/mcp", url.trim_end_matches('/'))
        }
    })
}

fn newest_stderr(conn: &Conn) -> String {
    let line =
        conn.journal.read(|s| s.generation_n(conn.generation).and_then(|g| g.stderr.last(1).pop()));
    line.map(|l| format!("; its newest stderr line: {l}")).unwrap_or_default()
}

/// A session id short enough for a line.
fn shorten(id: &str) -> String {
    let mut chars = id.chars();
    let head: String = chars.by_ref().take(8).collect();
    if chars.next().is_some() { format!("{head}…") } else { head }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_what_servers_print() {
        for (line, want) in [
            (
                "INFO:     Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)",
                Some("http://127.0.0.1:8000/mcp"),
            ),
            ("listening on http://127.0.0.1:9/mcp", Some("http://127.0.0.1:9/mcp")),
            ("\"http://localhost:3000/\"", Some("http://localhost:3000/mcp")),
            ("see the docs", None),
        ] {
            assert_eq!(http_address(line).as_deref(), want);
        }
    }
}
