//! What follows an end: waiting, a fresh process, a new session, another era; and our own end of an endpoint.
//! Bounded and told in one line each: no spin, no endless re-initialise.

use super::backoff;
use super::conn::{Ask, Conn, Reply, Transport};
use super::driver::{Driver, LinkEvent};
use super::follow;
use super::opening::shorten;
use super::stdio::Grace;
use crate::journal::event::Purpose;
use crate::journal::{Kind, LinkState};
use crate::time::Time;
use crate::wire::frame::Frame;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a child without anything in flight gets: a command ends within 300 ms of its answer whatever the child does.
pub(super) const GRACE_IDLE: Grace =
    Grace { eof: Duration::from_millis(100), term: Duration::from_millis(60) };
/// The same with calls in flight: it may be finishing them.
const GRACE_BUSY: Grace = Grace { eof: Duration::from_secs(2), term: Duration::from_secs(2) };
/// Quick ends in a row after which a child is not started again by itself.
const RESPAWNS: u32 = 5;
/// Sessions lost in quick succession that are replaced without waiting.
const QUICK_SESSIONS: u32 = 3;

/// How long a server may take to say that it is still there, after an exchange with it broke.
const LOOK: Duration = Duration::from_secs(3);

/// How the note begins that says which session took the place of which.
pub const SESSION_LOST: &str = "session lost";

/// What is remembered of ends so far.
#[derive(Default)]
pub(super) struct Recovery {
    /// When the current generation became ready.
    pub ready_since: Option<Instant>,
    /// Tries since the last good spell.
    pub attempt: u32,
    /// When the next try comes.
    pub retry_at: Option<tokio::time::Instant>,
    /// The session that was lost, until a new one has answered.
    lost_session: Option<(String, u16)>,
    /// An exchange broke, and what the server says to that is being looked at.
    looking: bool,
}

impl Recovery {
    /// The current generation is over; after a good spell the count starts over.
    fn ended(&mut self) -> bool {
        let since = self.ready_since.take();
        if since.is_some_and(|t| t.elapsed().as_secs_f64() >= backoff::GOOD_SPELL_S) {
            self.attempt = 0;
        }
        since.is_some()
    }
}

impl Driver {
    /// Waits for the next try.
    pub fn wait(&mut self, why: &str) {
        self.recovery.ended();
        self.recovery.attempt += 1;
        let attempt = self.recovery.attempt;
        // The sub-microsecond part of the clock is dice enough to keep clients apart.
        let dice = f64::from(u32::try_from(Time::now().0.rem_euclid(1000)).unwrap_or(0)) / 1000.0;
        let delay = backoff::delay_s(attempt, dice);
        self.recovery.retry_at = Some(tokio::time::Instant::now() + Duration::from_secs_f64(delay));
        let until = Time::now().plus_seconds(delay);
        self.state(LinkState::Waiting { until, attempt }, why);
    }

    /// The child ended, or can't speak any more.
    pub fn dead(&mut self, why: String) {
        // The handshake and the process's end both report it; one word is enough.
        let told = |s: &crate::journal::Session| {
            s.link
                .as_ref()
                .is_some_and(|l| matches!(l.state, LinkState::Dead | LinkState::Waiting { .. }))
        };
        if self.journal.read(told) {
            return;
        }
        self.live.send_replace(None);
        self.stop_listening();
        self.recovery.ended();
        // A crash loop is bounded: the waits double and a few quick ends in a row are enough.
        if !self.settings.respawn {
            self.state(LinkState::Dead, why);
        } else if self.recovery.attempt < RESPAWNS {
            self.wait(&why);
        } else {
            let n = self.recovery.attempt + 1;
            self.state(
                LinkState::Dead,
                format!("{why}; it ended {n} times in a row and is not started again by itself"),
            );
        }
    }

    /// An exchange broke that something had taken. One cut stream is no reason to throw a living session away, with
    /// whatever else is open on it: the server is asked whether it is still there (`ping`; 2026-07-28 has none, so
    /// `server/discover`). Nothing is sent for anybody meanwhile.
    pub fn look(&mut self, why: String) {
        let given_up = |s: &crate::journal::Session| {
            s.link.as_ref().is_some_and(|l| l.state == LinkState::Closed)
        };
        if self.recovery.looking || self.journal.read(given_up) {
            return;
        }
        let Some(conn) = self.conn.clone() else { return };
        self.recovery.looking = true;
        self.state(
            LinkState::Connecting,
            format!("{why}; looking whether the server is still there"),
        );
        tokio::spawn(async move {
            let method = if conn.is_modern() { "server/discover" } else { "ping" };
            let (_, reply) = conn.ask(Ask::new(method, None, Purpose::Handshake));
            let lives = match tokio::time::timeout(LOOK, reply).await {
                Err(_) => Err(format!("{why}; no answer to {method} within {} s", LOOK.as_secs())),
                // Any answer that comes from an MCP server will do; a gateway's own page is none.
                Ok(Ok(Reply::Frame(_))) => Ok(()),
                Ok(Ok(Reply::Status { status: 400..=499, body, .. })) if is_answer(&body) => Ok(()),
                Ok(Ok(r)) => Err(format!("{why}; then {method}: {}", follow::words(&r))),
                Ok(Err(_)) => Err(why),
            };
            let generation = conn.generation;
            conn.events.send(LinkEvent::Looked { generation, lives }).ok();
        });
    }

    /// The look is over. A session that turned out to be lost was told of before.
    pub fn looked(&mut self, lives: Result<(), String>) {
        if !std::mem::take(&mut self.recovery.looking) || self.recovery.retry_at.is_some() {
            return;
        }
        match lives {
            Ok(()) if self.conn.as_ref().is_some_and(|c| !c.is_over()) => {
                self.note(
                    "one exchange broke; the server is still there, and so is its session".into(),
                );
                let version = self.journal.read(|s| s.protocol.clone()).unwrap_or_default();
                self.state(LinkState::Ready, format!("protocol {version}"));
            }
            Ok(()) => {}
            Err(why) => self.unreachable(why),
        }
    }

    pub fn unreachable(&mut self, why: String) {
        if self.settings.reconnect {
            self.abandon("the connection broke");
            self.wait(&why);
        } else {
            self.state(LinkState::Closed, why);
        }
    }

    /// The server does not know our session any more. The call that met it is settled by the journal; here only
    /// a new session is made, once it was worth having the last one.
    pub fn session_lost(&mut self, status: u16) {
        let Some(old) = self.conn.as_ref().and_then(|c| session_of(c)) else { return };
        // A session that never answered anything is no reason for yet another one.
        if self.recovery.ready_since.is_none() {
            return;
        }
        let short = shorten(&old);
        self.note(format!("session {short} lost (HTTP {status}); opening a new one"));
        self.recovery.lost_session = Some((old, status));
        self.abandon("session lost");
        let quick = self
            .recovery
            .ready_since
            .is_some_and(|t| t.elapsed().as_secs_f64() < backoff::GOOD_SPELL_S);
        self.recovery.ended();
        if quick {
            self.recovery.attempt += 1;
        }
        let attempt = self.recovery.attempt;
        if attempt <= QUICK_SESSIONS {
            self.connect("new session");
        } else if self.settings.reconnect {
            self.wait("the server loses its sessions again and again");
        } else {
            let why = format!("the server lost {attempt} sessions in a row");
            self.state(LinkState::Closed, why);
        }
    }

    /// Says which session took the place of which, now that the new one has answered a real request.
    pub fn tell_new_session(&mut self, conn: &Conn) {
        if let Some((old, status)) = self.recovery.lost_session.take() {
            let new =
                session_of(conn).map_or("none (the server gives none now)".into(), |s| shorten(&s));
            self.note(format!("{SESSION_LOST} (HTTP {status}): {} → {new}", shorten(&old)));
        }
    }

    /// A server of another era answers here by now: whatever was known of it is void.
    pub fn era_changed(&mut self, why: &str) {
        if self.recovery.ready_since.is_none() {
            return;
        }
        self.note(format!("the server answers as one of another era ({why}); finding out again"));
        self.known_modern = None;
        self.recovery.ended();
        self.recovery.attempt += 1;
        self.abandon("the server's era changed");
        if self.recovery.attempt <= QUICK_SESSIONS {
            self.connect("another era");
        } else {
            self.state(LinkState::Closed, "the server changes its era again and again");
        }
    }

    /// Leaves a generation behind. Its open exchanges go on: an answer may still come.
    fn abandon(&mut self, why: &str) {
        self.recovery.looking = false;
        self.live.send_replace(None);
        self.stop_listening();
        if let Some(conn) = &self.conn {
            conn.end(why);
        }
    }

    fn stop_listening(&mut self) {
        if let Some(t) = self.listener.take() {
            t.abort();
        }
    }

    /// Ends what is left of the generation before the next one: a process that closed its stdout, and the
    /// grandchildren of a launcher that ended.
    pub fn retire(&mut self) {
        self.live.send_replace(None);
        self.stop_listening();
        if let Some(conn) = self.conn.take()
            && let Transport::Stdio(_) = conn.transport
        {
            self.retiring.spawn(async move {
                if let Transport::Stdio(pipe) = &conn.transport {
                    pipe.end(GRACE_IDLE).await;
                }
            });
        }
    }

    /// Waits until what is over has really ended (bounded by its own grace): it may hold a port or a lock.
    pub async fn retired(&mut self) {
        if self.conn.as_ref().is_some_and(|c| c.is_over()) {
            self.retire();
        }
        while self.retiring.join_next().await.is_some() {}
    }

    pub async fn end_conn(&mut self, grace: Grace) {
        self.live.send_replace(None);
        self.stop_listening();
        let Some(conn) = self.conn.take() else { return };
        match &conn.transport {
            Transport::Stdio(pipe) => pipe.end(grace).await,
            Transport::Http(target) => target.end_session(&conn).await,
        }
        conn.end("closed here");
    }

    pub async fn close(&mut self) {
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
        if let Some(conn) = &self.conn
            && let Transport::Http(target) = &conn.transport
        {
            target.abort_all(conn);
        }
        self.end_conn(if busy { GRACE_BUSY } else { GRACE_IDLE }).await;
        // Bounded by their own grace.
        while self.retiring.join_next().await.is_some() {}
        self.state(LinkState::Closed, "closed here");
    }
}

fn session_of(conn: &Conn) -> Option<String> {
    match &conn.transport {
        Transport::Http(t) => t.session(),
        Transport::Stdio(_) => None,
    }
}

impl Driver {
    /// Logs on the current generation.
    pub fn log(&self, kind: Kind) -> u64 {
        self.journal.append(self.generation, kind)
    }

    /// The connection in use, if it can take a request.
    pub fn usable(&self) -> Option<Arc<Conn>> {
        self.conn.clone().filter(|c| c.protocol().is_some() && !c.is_over())
    }
}

/// A JSON-RPC answer, of whatever kind.
fn is_answer(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    matches!(Frame::parse(&text), Frame::Response { .. })
}
