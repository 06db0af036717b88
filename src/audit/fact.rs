//! What the fold takes in: one thing that happened, borrowed from its line.

use crate::time::Time;
use std::borrow::Cow;

/// Where and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct At {
    /// A line of the file, or an item of a list, from 1.
    pub line: u64,
    /// The event's number, counted on over all runs of the file.
    pub seq: u64,
    /// By the trace's clock; `None` where it has none.
    pub time: Option<Time>,
    /// Which life of the server, counted on over all runs; 0 before the first.
    pub generation: u32,
}

/// Who speaks for the client, as far as the trace tells: numbers that stand for a session and a credential, 0 where
/// it doesn't tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Speaker {
    /// The HTTP session.
    pub session: u64,
    /// The credential.
    pub credential: u64,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact<'a> {
    /// A life of the server, or an HTTP session, begins.
    Opened {
        /// Over HTTP.
        http: bool,
    },
    /// This revision of the protocol is in use.
    Agreed {
        /// It is one before 2026-07-28.
        legacy: bool,
    },
    /// The client said this.
    Sent {
        /// The frame.
        frame: Cow<'a, str>,
        /// Its HTTP exchange.
        exchange: Option<u64>,
        /// It goes on with the call that this event sent.
        of: Option<u64>,
        /// Who, where the line itself tells.
        speaker: Speaker,
    },
    /// The server said this.
    Received {
        /// The frame.
        frame: Cow<'a, str>,
        /// Its HTTP exchange.
        exchange: Option<u64>,
    },
    /// A call of a trace list, with what was kept of its answer.
    Traced {
        /// The tool, as it stands there.
        tool: Cow<'a, str>,
        /// The raw arguments.
        args: &'a str,
        /// The raw result.
        result: Option<&'a str>,
        /// The raw error.
        error: Option<&'a str>,
    },
    /// An HTTP request of the client.
    Request {
        /// Which.
        exchange: u64,
        /// Its method.
        method: String,
        /// Who.
        speaker: Speaker,
        /// It asks for the rest of a stream that was cut.
        resumes: bool,
    },
    /// The exchange asks for the rest of its stream.
    Resumes {
        /// Which.
        exchange: u64,
    },
    /// Answers of this life come on one stream, whatever exchange asked (HTTP+SSE of 2024-11-05).
    Apart {
        /// That stream.
        exchange: u64,
    },
    /// A line of the server that is no JSON-RPC.
    Noise {
        /// What it says.
        text: Cow<'a, str>,
    },
    /// What came in place of the answer to what this event sent could not be read.
    NoAnswer {
        /// The event.
        sent: u64,
        /// Why.
        why: String,
    },
    /// An answer came that could not be read.
    Unreadable {
        /// Which.
        exchange: u64,
        /// Why.
        why: String,
    },
    /// The status of its answer.
    Status {
        /// Which.
        exchange: u64,
        /// The status.
        status: u16,
        /// It names a session.
        session: bool,
        /// What follows is a stream of events, on which other messages may come as well.
        stream: bool,
    },
    /// The request was sent on to somewhere else.
    Redirected {
        /// Which.
        exchange: u64,
    },
    /// A body that is no JSON-RPC.
    Body {
        /// Which.
        exchange: u64,
        /// What it says.
        text: Cow<'a, str>,
    },
    /// The exchange is over; `None`: properly, else why, and whether anything was sent.
    Over {
        /// Which.
        exchange: u64,
        /// Why, and whether it was connected.
        failed: Option<(String, bool)>,
    },
    /// Nothing more can come on this life of the server; in words.
    Ended(String),
    /// What this event sent was not written; whether some of it may have left.
    NotWritten {
        /// The event.
        sent: u64,
        /// Some may have left.
        left: bool,
    },
    /// The client gave up waiting for what this event sent.
    GivenUp {
        /// The event.
        sent: u64,
        /// Why.
        why: &'static str,
    },
    /// So many events could not be recorded.
    Lost(u64),
    /// A line that can't be read; why.
    Bad(String),
    /// Anything else: only its time counts.
    Other,
}
