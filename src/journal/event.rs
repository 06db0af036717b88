//! What can happen on an endpoint. Every event is appended before anything acts on it.

use crate::procs::{Left, Process};
use crate::time::Time;
use bytes::Bytes;

/// One thing that happened, with its place in the stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Position in the journal, from 1, without gaps.
    pub seq: u64,
    /// Wall clock, UTC.
    pub at: Time,
    /// Microseconds since the journal began, by a clock that never goes back.
    pub mono_us: u64,
    /// Which life of the endpoint (from 1); 0 before the first.
    pub generation: u32,
    /// What happened.
    pub kind: Kind,
}

/// The kinds of event.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A generation begins: a child was started, or an HTTP session is about to be opened.
    Opened { transport: Transport },
    /// A frame that redial is about to send; `exchange` ties it to an HTTP POST.
    Sent { raw: Bytes, exchange: Option<u64>, purpose: Purpose },
    /// The write of an earlier [`Kind::Sent`] failed. `left` says whether any byte of it may have reached
    /// the other side; `false` is a proof that nothing did.
    NotWritten { sent: u64, why: String, left: bool },
    /// One JSON-RPC text that came in, exactly as it was.
    Received { raw: Bytes, exchange: Option<u64> },
    /// A line on stdout that is not JSON-RPC. `cut` counts bytes dropped past the line limit.
    Noise { raw: Bytes, cut: u64 },
    /// A piece of stderr: one line, without its end.
    Stderr { raw: Bytes },
    /// Something about one HTTP exchange.
    Http { exchange: u64, what: Http },
    /// The child closed its stdout (the process may live on).
    StdoutClosed,
    /// The child ended: an exit code or a signal number, and what of all that it started goes on. Of a launcher that
    /// runs its server elsewhere (see [`super::launcher`]) not even that nobody is left is the server's end.
    Exit { code: Option<i32>, signal: Option<i32>, left: Left },
    /// What a child that ended before had left behind is gone too.
    AllGone,
    /// The handshake settled on a protocol revision.
    Agreed { protocol: String },
    /// The link changed; `why` in words.
    State { state: LinkState, why: String },
    /// What a person (or a limit a person set) did here.
    Note(Note),
}

/// How a generation is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Transport {
    /// A child process.
    Stdio { command: Vec<String>, pid: Option<u32> },
    /// A Streamable HTTP URL.
    Http { url: String },
}

/// Why a frame goes out. Nothing is sent without one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Finding out the era (`server/discover`).
    Probe,
    /// `initialize`, `notifications/initialized`, listing tools.
    Handshake,
    /// A person or a script asked for it.
    Asked,
    /// An answer to the server's own request, or a cancellation that a limit caused.
    Reply,
    /// What a call that was asked for brings with it: its next input-required round, a look at its task.
    FollowUp {
        /// The call.
        call: u64,
    },
}

/// Steps of one HTTP exchange.
#[derive(Debug, Clone, PartialEq)]
pub enum Http {
    /// The request line; headers are not kept here (secrets).
    Request { method: String, url: String },
    /// What comes next of this exchange goes through that proxy, named without its secrets.
    Through { proxy: String },
    /// The stream of this exchange names where messages are posted, as HTTP+SSE of 2024-11-05 does: answers come on
    /// it, whatever exchange asked.
    Endpoint { url: String },
    /// The status line and the headers that matter for reading it.
    Status {
        status: u16,
        content_type: Option<String>,
        session: Option<String>,
        www_authenticate: Option<String>,
        location: Option<String>,
    },
    /// A body that is not JSON-RPC (HTML of a proxy, plain text), at most 64 KiB of it, or the head of an answer that
    /// is over the limit; `cut` bytes more were in it.
    Body { raw: Bytes, cut: u64 },
    /// A same-origin 307 or 308 that redial follows: the same POST goes to `to` again.
    Redirected { status: u16, to: String },
    /// How much of the answer has come so far. Told at the first byte and then at most once a second, so that
    /// a stream that lasts a night stays small.
    Flow {
        /// Bytes of the answer.
        bytes: u64,
        /// Comment lines among them: keep-alives.
        keepalives: u64,
    },
    /// A stream ended before the answer; the rest is asked for with a GET (2025-11-25, "Resumability").
    Resuming {
        /// The `Last-Event-ID` it will carry.
        last_event_id: String,
        /// The server's `retry`, or our own wait.
        after_ms: u64,
    },
    /// The bytes of an answer that broke off: evidence, never an answer. At most 64 KiB.
    Partial { raw: Bytes },
    /// An answer came (or goes on) that redial can't or won't read: an unknown coding, more than its limit. The
    /// server has done nothing wrong, and nobody else has read it for us.
    Unreadable { why: String },
    /// The answer ended properly.
    End,
    /// It broke. `connected: false` proves that nothing was sent.
    Failed { why: String, connected: bool },
}

/// Where the link stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// Starting, probing, shaking hands.
    Connecting,
    /// A real request was answered.
    Ready,
    /// HTTP only: the next try comes at `until`; `attempt` counts from 1.
    Waiting { until: Time, attempt: u32 },
    /// A child that ended and is not started again unless asked.
    Dead,
    /// The endpoint never became ready, or was closed by us.
    Closed,
}

/// Marks made by a person or by a limit they set.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// The limit of a call passed without an answer.
    TimedOut { call: u64, after_s: f64 },
    /// A person gave a call up (the cancellation, where one is sent, is its own [`Kind::Sent`]).
    Cancelled { call: u64 },
    /// A person stopped waiting, told the server nothing, and goes on listening.
    StoppedWaiting { call: u64 },
    /// How long a call may take, from its sending or, if `extends`, from its last progress.
    Limit { call: u64, limit_s: f64, extends: bool },
    /// The server answered that it is not finished, and nothing here will go on with it; why.
    LeftOpen { call: u64, why: String },
    /// What came in place of a call's answer can't be read, and no better one came; why.
    NoAnswer { call: u64, why: String },
    /// redial is about to end this generation's process, and why: what follows is its own doing.
    Ending { why: String },
    /// The server does not read its stdin: the frame sent as event `from`, and what came after it, waits in a full
    /// pipe. `full: false`: that frame has gone through after all.
    Stdin { from: u64, full: bool },
    /// The kernel has stopped this process of the server's (by SIGSTOP, SIGTTIN); none: it goes on.
    Stopped { who: Option<Process> },
    /// The command ended, by this code or signal, and its pipes are held by somebody: it was a launcher. Its own exit is
    /// told when they are closed, and says nothing of how the server ended.
    Outlived { code: Option<i32>, signal: Option<i32>, left: Left },
    /// What is known of a call that bears on its outcome, should that stay unknown.
    Remark { call: u64, text: String },
    /// Anything worth a line.
    Text(String),
}
