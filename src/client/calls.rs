//! What a person or a script asks for: a call, its limit, giving it up, another request, the list of tools.
//! A `tools/call` leaves from here and nowhere else, once for each command.

use super::conn::{Ask, Conn, Reply, Transport};
use super::driver::Driver;
use super::modern::Header;
use super::outbox::Taken;
use super::{NoResult, duration, follow, handshake};
use crate::journal::event::{Note, Purpose};
use crate::journal::{Call, CallId, Journal, Kind};
use crate::json::raw;
use crate::size::size;
use crate::wire::frame;
use crate::wire::id::Id;
use crate::wire::mirror;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// A `tools/call` that is to be sent.
pub(super) struct Asked {
    pub tool: String,
    /// The raw arguments.
    pub args: String,
    /// The connection it is meant for: the tool may be another one elsewhere.
    pub generation: u32,
    /// Seconds until it counts as unknown.
    pub limit_s: f64,
    /// Progress moves the limit.
    pub extends: bool,
}

/// A later round of a call. It is sent here and not by who follows the call, so that giving a call up and going
/// on with it can't overtake each other.
pub(super) struct Round {
    pub conn: Arc<Conn>,
    pub call: CallId,
    /// Those of the round, without `_meta`.
    pub params: String,
    pub headers: Vec<Header>,
    /// Gets the coming answer.
    pub sent: oneshot::Sender<Result<oneshot::Receiver<Reply>, Stopped>>,
}

/// Why a round is not sent.
pub(super) enum Stopped {
    /// The call was given up or has ended.
    GivenUp,
    /// Its connection is over.
    Gone,
}

/// When the list of tools is read again: at once after the first change, then ever more seldom while a server
/// goes on changing it.
#[derive(Default)]
pub(super) struct Relist {
    /// When it is due.
    pub at: Option<Instant>,
    last: Option<Instant>,
    wait: Duration,
}

impl Relist {
    const QUIET: Duration = Duration::from_secs(60);
    const SELDOM: Duration = Duration::from_secs(30);

    /// The list changed.
    pub fn soon(&mut self) {
        if self.at.is_none() {
            let wait = self.next_wait(self.last.map(|t| t.elapsed()));
            self.at = Some(Instant::now() + wait);
        }
    }

    fn next_wait(&mut self, since_last: Option<Duration>) -> Duration {
        let quiet = since_last.is_none_or(|t| t > Self::QUIET);
        self.wait = match quiet {
            true => Duration::ZERO,
            false => (self.wait * 2).clamp(Duration::from_secs(1), Self::SELDOM),
        };
        self.wait
    }
}

impl Driver {
    /// Sends the call, once. Without the connection it is meant for, or while that is only being opened, it is in
    /// the journal as what it is: never sent.
    pub fn call(&mut self, asked: &Asked) -> CallId {
        let Asked { ref tool, ref args, generation, limit_s, extends } = *asked;
        let name = raw::quote(tool);
        let mut params = format!(r#"{{"name":{name},"arguments":{args}}}"#);
        let conn = match self.usable_for(generation) {
            Ok(conn) => conn,
            Err(why) => return self.never_sent(&params, &why),
        };
        let (schema, as_task, unknown) = self.journal.read(|s| {
            let tool = s.tools.find(tool);
            let as_task = tool.is_some_and(|t| t.only_as_task)
                && s.declares(&["tasks", "requests", "tools", "call"]);
            let unknown = tool.filter(|t| t.mirrors).and_then(|t| t.not_kept);
            (tool.and_then(|t| t.input_schema.clone()), as_task, unknown)
        });
        if as_task && !conn.is_modern() {
            // The tool says that it only runs as a task; without this the server must refuse it.
            params = format!(r#"{{"name":{name},"arguments":{args},"task":{{}}}}"#);
        }
        let mirrored = conn.is_modern() && conn.is_http();
        if let (Some(bytes), true) = (unknown, mirrored) {
            let why = format!(
                "redial did not keep the tool's definition ({}), which says what belongs in headers",
                size(bytes)
            );
            return self.never_sent(&params, &why);
        }
        let headers = match (schema, mirrored) {
            (Some(schema), true) => mirror::headers(&schema, args),
            _ => Vec::new(),
        };
        let ask = Ask {
            progress: true,
            headers: headers.clone(),
            ..Ask::new("tools/call", Some(&params), Purpose::Asked)
        };
        let (call, reply) = conn.ask(ask);
        if limit_s.is_finite() {
            self.log(Kind::Note(Note::Limit { call, limit_s, extends }));
            let (journal, timers) = (self.journal.clone(), self.timers.clone());
            tokio::spawn(watch_limit(journal, timers, call, limit_s, extends));
        }
        let sent = follow::Sent { call, reply, params, headers };
        tokio::spawn(follow::call(conn, sent, self.live.subscribe()));
        call
    }

    /// Sends the next round of a call, if that still waits for it.
    pub fn round(&self, round: Round) {
        let Round { conn, call, params, headers, sent } = round;
        let waits = self.journal.read(|s| s.calls.get(&call).is_some_and(Call::is_pending));
        let done = match waits {
            false => Err(Stopped::GivenUp),
            true if conn.is_over() => Err(Stopped::Gone),
            true => {
                let purpose = Purpose::FollowUp { call };
                let ask = Ask::new("tools/call", Some(&params), purpose);
                Ok(conn.ask(Ask { progress: true, headers, ..ask }).1)
            }
        };
        // Who follows the call ends only with the endpoint.
        sent.send(done).ok();
    }

    /// The connection of that generation, once its tools are known.
    ///
    /// # Errors
    /// Why there is none.
    fn usable_for(&self, generation: u32) -> Result<Arc<Conn>, String> {
        let why = self.journal.read(|s| s.link.as_ref().map(|l| l.why.clone())).unwrap_or_default();
        let Some(conn) = self.usable() else { return Err(format!("no connection ({why})")) };
        if conn.generation != generation {
            return Err(
                "the connection it was meant for is gone, and another one took its place".into()
            );
        }
        if self.handshake.is_some() {
            return Err(format!("the connection is only being opened ({why})"));
        }
        Ok(conn)
    }

    fn never_sent(&self, params: &str, why: &str) -> CallId {
        let raw = frame::request(&Id::Null, "tools/call", Some(params)).into();
        let call = self.log(Kind::Sent { raw, exchange: None, purpose: Purpose::Asked });
        let why = format!("never sent: {why}");
        self.log(Kind::NotWritten { sent: call, why, left: false });
        call
    }

    /// Sends any request but a `tools/call`.
    pub fn request(
        &self,
        method: String,
        params: String,
        reply: oneshot::Sender<Result<String, NoResult>>,
    ) {
        let Some(conn) = self.usable() else {
            reply.send(Err(NoResult::of("no connection; nothing was sent"))).ok();
            return;
        };
        tokio::spawn(async move {
            let done = follow::request(&conn, &method, &params).await;
            let done = done.map_err(|r| match r {
                Some(r) => follow::no_result(&r),
                None => NoResult::of("the connection was closed"),
            });
            reply.send(done).ok();
        });
    }

    /// A limit passed or a person gave up: the call is unknown, and the server is told (2025-11-25 and stdio:
    /// `notifications/cancelled`; 2026-07-28 over HTTP: its stream is closed; a task: `tasks/cancel`, and only
    /// when a person wants it). Who only stopped waiting tells nobody.
    pub fn give_up(&mut self, call: CallId, note: Note) {
        let Some((rpc_id, generation, exchange, task)) = self.journal.read(|s| {
            let c = s.calls.get(&call)?;
            let task = c.live.task.clone().filter(|t| !t.is_over());
            (c.is_pending() || task.is_some())
                .then(|| (c.rpc_id.clone(), c.generation, c.exchange, task))
        }) else {
            return;
        };
        let reason = match &note {
            Note::TimedOut { after_s, .. } => format!("no answer within {after_s} s"),
            _ => "cancelled by a person".into(),
        };
        let by_limit = matches!(note, Note::TimedOut { .. });
        let tell = !matches!(note, Note::StoppedWaiting { .. });
        if tell && task.is_none() && self.taken_back(call, generation, &reason) {
            return;
        }
        self.journal.append(generation, Kind::Note(note));
        if !tell {
            return;
        }
        if let Some(task) = task {
            if let (false, Some(conn)) = (by_limit, self.usable()) {
                let params = format!(r#"{{"taskId":{}}}"#, raw::quote(&task.id));
                conn.ask(Ask::new("tasks/cancel", Some(&params), Purpose::FollowUp { call }));
            }
            return;
        }
        let Some(conn) = self.conn.clone().filter(|c| c.generation == generation && !c.is_over())
        else {
            return;
        };
        match (&conn.transport, exchange) {
            (Transport::Http(target), Some(x)) if conn.is_modern() => {
                // In this revision that is the cancellation, so no late answer can come any more.
                target.abort(&conn, x);
            }
            _ => {
                let id = rpc_id.to_json();
                let params = format!(r#"{{"requestId":{id},"reason":{}}}"#, raw::quote(&reason));
                conn.notify("notifications/cancelled", Some(&params), Purpose::Reply);
            }
        }
    }

    /// Takes a call that is given up out of what waits for its server's stdin. `true`: not a byte of it has left, and
    /// none will, so there is nobody to tell; a part that left is remarked.
    fn taken_back(&self, call: CallId, generation: u32, reason: &str) -> bool {
        let Some(conn) = self.conn.as_ref().filter(|c| c.generation == generation) else {
            return false;
        };
        let Transport::Stdio(pipe) = &conn.transport else { return false };
        let sent = self.journal.read(|s| s.newest_frame(call));
        match pipe.take_back(sent) {
            Taken::Back => {
                let why = format!(
                    "never sent: {reason}, and it still waited here for the server to read its stdin"
                );
                conn.log(Kind::NotWritten { sent, why, left: false });
                true
            }
            Taken::Begun { written, of } => {
                let text = format!("{written} of {of} bytes were taken by its stdin");
                conn.log(Kind::Note(Note::Remark { call, text }));
                false
            }
            Taken::Gone => false,
        }
    }

    pub fn list_tools(&mut self, reply: Option<oneshot::Sender<()>>) {
        let Some(conn) = self.usable() else { return };
        // Who waits for it is not kept waiting again by a list that could not be read a moment ago.
        if self.handshake.is_some()
            || (reply.is_some() && conn.list_given_up.load(Ordering::Relaxed))
        {
            return;
        }
        self.relist.last = Some(Instant::now());
        let limit_s = self.settings.start_limit_s.min(self.settings.call_limit_s);
        tokio::spawn(async move {
            let read = tokio::time::timeout(duration(limit_s), handshake::list_tools(&conn)).await;
            let failed = match read {
                Ok(Ok(())) => None,
                Ok(Err(failure)) => Some(failure.why()),
                Err(_) => Some(format!("no end of it within {limit_s} s")),
            };
            if let Some(why) = &failed {
                conn.note(format!(
                    "the list of tools could not be read again ({why}); what was known of it is kept"
                ));
            }
            conn.list_given_up.store(failed.is_some(), Ordering::Relaxed);
            if let Some(reply) = reply {
                reply.send(()).ok();
            }
        });
    }

    /// Asks again who the server is and what its tools are. A reply that is dropped says that there is no connection.
    pub fn look_again(&mut self, reply: oneshot::Sender<Result<(), String>>) {
        let Some(conn) = self.usable().filter(|_| self.handshake.is_none()) else { return };
        self.relist.last = Some(Instant::now());
        let limit_s = self.settings.start_limit_s.min(self.settings.call_limit_s);
        tokio::spawn(async move {
            let asked = tokio::time::timeout(duration(limit_s), handshake::again(&conn)).await;
            let done = match asked {
                Ok(Ok(())) => Ok(()),
                Ok(Err(failure)) => Err(failure.why()),
                Err(_) => Err(format!("no end of it within {limit_s} s")),
            };
            conn.list_given_up.store(done.is_err(), Ordering::Relaxed);
            reply.send(done).ok();
        });
    }

    /// The time to read the list again has come.
    pub fn relist_now(&mut self) {
        self.relist.at = None;
        if self.handshake.is_some() {
            self.relist.at = Some(Instant::now() + Duration::from_millis(500));
            return;
        }
        self.list_tools(None);
    }
}

/// Watches the limit of a call; progress moves it only when `extends`.
async fn watch_limit(
    journal: Journal,
    timers: mpsc::UnboundedSender<(CallId, f64)>,
    call: CallId,
    limit_s: f64,
    extends: bool,
) {
    let limit = duration(limit_s);
    let (mut seen, mut from) = (0, Instant::now());
    loop {
        let moved = journal.wait(|s| match s.calls.get(&call) {
            Some(c) if c.is_pending() => {
                let count = c.live.progress.as_ref().map_or(0, |p| p.count);
                (extends && count != seen).then_some(Some(count))
            }
            _ => Some(None),
        });
        match tokio::time::timeout(limit.saturating_sub(from.elapsed()), moved).await {
            Ok(None) => return,
            // A new round counts from the start again, which is no progress.
            Ok(Some(0)) => seen = 0,
            Ok(Some(count)) => (seen, from) = (count, Instant::now()),
            Err(_) => {
                timers.send((call, limit_s)).ok();
                return;
            }
        }
    }
}

impl Conn {
    /// The server refused mirrored headers: its list may have changed without a word.
    pub fn doubt_tools(self: &Arc<Conn>) {
        let generation = self.generation;
        self.events.send(super::driver::LinkEvent::ToolsChanged { generation }).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_call_for_an_earlier_connection_never_leaves() {
        use super::super::{Client, Command, Endpoint, Era, Settings};
        use crate::journal::Outcome;
        // Answers the handshake and no call.
        let script = r#"while IFS= read -r line; do
            id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            case "$line" in
            *'"initialize"'*) r='{"protocolVersion":"2025-11-25","capabilities":{}}' ;;
            *'"tools/list"'*) r='{"tools":[]}' ;;
            *) continue ;;
            esac
            printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
        done"#;
        let command = ["/bin/sh", "-c", script].map(String::from).to_vec();
        let settings = Settings { era: Era::Legacy, ..Settings::default() };
        let client = Client::start(Endpoint::Stdio { command, env: vec![], cwd: None }, settings);
        client.ready().await.unwrap();
        let (reply, id) = oneshot::channel();
        let call = Asked {
            tool: "t".into(),
            args: "{}".into(),
            generation: 7,
            limit_s: 20.0,
            extends: false,
        };
        client.send(Command::Call { call, reply });
        let call = client.settled(id.await.unwrap()).await.unwrap();
        let s = call.settled.unwrap();
        assert_eq!((s.outcome, call.sent), (Outcome::NotSent, 0));
        assert!(s.why.contains("meant for"), "{}", s.why);
        client.close().await;
    }

    #[test]
    fn a_storm_of_changes_reads_the_list_ever_more_seldom() {
        let mut r = Relist::default();
        let soon = Some(Duration::from_millis(10));
        let waits: Vec<u64> = [None, soon, soon, soon, soon, soon, soon, soon]
            .map(|l| r.next_wait(l).as_secs())
            .to_vec();
        assert_eq!(waits, [0, 1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(r.next_wait(Some(Duration::from_secs(61))), Duration::ZERO);
    }
}
