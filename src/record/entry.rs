//! One line of a recording, both ways (FORMAT.md): the journal's event with what the wire adds to it.
//!
//! Owns the spelling of the format and nothing else: it hides nothing (that is `redact`), opens no file.

mod decode;
mod encode;
mod undone;

pub(crate) use decode::fast_instant;
pub use decode::{Line, decode};
pub use encode::{body, head, header, line};

use crate::journal::event::{Event, Http, Kind, Note};
use crate::time::Time;
use bytes::Bytes;

/// The version of the format that is written.
pub const VERSION: u32 = 1;

/// One line of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Place in its run, from 1.
    pub seq: u64,
    /// Wall clock.
    pub at: Time,
    /// Microseconds since the run began.
    pub mono_us: u64,
    /// Which life of the server.
    pub generation: u32,
    /// What happened.
    pub what: What,
    /// What the wire adds.
    pub wire: Wire,
}

/// What a line can say: an event of the journal, or what only a tap knows.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// An event of the journal.
    Event(Kind),
    /// A piece of a line that was passed on before its end had come.
    Part { side: Side, raw: Bytes },
    /// The client closed the server's stdin.
    StdinClosed,
    /// What could not be written.
    Gap { events: u64, bytes: u64, why: String },
}

/// A direction of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Client to server.
    Sent,
    /// Server to client.
    Received,
    /// The server's stderr.
    Stderr,
}

impl Side {
    /// The word in the file.
    pub fn word(self) -> &'static str {
        match self {
            Side::Sent => "sent",
            Side::Received => "received",
            Side::Stderr => "stderr",
        }
    }
    /// From the word.
    pub fn from_word(word: &str) -> Option<Side> {
        [Side::Sent, Side::Received, Side::Stderr].into_iter().find(|s| s.word() == word)
    }
}

/// How a line ended on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum End {
    /// `\n`
    #[default]
    Lf,
    /// `\r\n`
    CrLf,
    /// The stream ended.
    None,
}

impl End {
    /// Its bytes.
    pub fn bytes(self) -> &'static [u8] {
        match self {
            End::Lf => b"\n",
            End::CrLf => b"\r\n",
            End::None => b"",
        }
    }
}

/// What the wire adds to an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wire {
    /// How the line ended.
    pub end: End,
    /// A byte order mark stood before it.
    pub bom: bool,
    /// Bytes of the line that are only in its parts.
    pub cut: u64,
    /// Values that were replaced.
    pub redacted: u32,
    /// HTTP headers.
    pub headers: Vec<(String, String)>,
}

/// The first line of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// The format's version.
    pub version: u32,
    /// A random name.
    pub run: String,
    /// When it began.
    pub at: Time,
    /// `stdio`, `http`, `client`, `import`.
    pub tap: String,
    /// What wrote it.
    pub program: String,
    /// A short name of the server.
    pub server: String,
    /// What is behind the tap.
    pub command: Vec<String>,
    /// What is behind the tap.
    pub url: Option<String>,
    /// Raw JSON: what was hidden.
    pub redaction: String,
}

impl Entry {
    /// An entry without wire details.
    pub fn new(seq: u64, at: Time, mono_us: u64, generation: u32, what: What) -> Entry {
        Entry { seq, at, mono_us, generation, what, wire: Wire::default() }
    }

    /// As an event of the journal; `None` for a piece of a line.
    pub fn event(&self) -> Option<Event> {
        let kind = match &self.what {
            What::Event(kind) => kind.clone(),
            What::Part { .. } => return None,
            What::StdinClosed => {
                Kind::Note(Note::Text("the client closed the server's stdin".into()))
            }
            What::Gap { .. } => Kind::Note(Note::Text(self.what.gap_words().unwrap_or_default())),
        };
        Some(Event {
            seq: self.seq,
            at: self.at,
            mono_us: self.mono_us,
            generation: self.generation,
            kind,
        })
    }

    /// Its bytes, when it holds a line or a piece of one.
    pub fn raw(&self) -> Option<&Bytes> {
        match &self.what {
            What::Event(
                Kind::Sent { raw, .. }
                | Kind::Received { raw, .. }
                | Kind::Noise { raw, .. }
                | Kind::Stderr { raw }
                | Kind::Http { what: Http::Body { raw, .. } | Http::Partial { raw }, .. },
            )
            | What::Part { raw, .. } => Some(raw),
            _ => None,
        }
    }

    /// Replaces its bytes.
    pub fn set_raw(&mut self, new: Bytes) {
        match &mut self.what {
            What::Event(
                Kind::Sent { raw, .. }
                | Kind::Received { raw, .. }
                | Kind::Noise { raw, .. }
                | Kind::Stderr { raw }
                | Kind::Http { what: Http::Body { raw, .. } | Http::Partial { raw }, .. },
            )
            | What::Part { raw, .. } => *raw = new,
            _ => {}
        }
    }

    /// The direction of its bytes.
    pub fn side(&self) -> Option<Side> {
        match &self.what {
            What::Event(Kind::Sent { .. }) => Some(Side::Sent),
            What::Event(Kind::Received { .. } | Kind::Noise { .. }) => Some(Side::Received),
            What::Event(Kind::Http { what: Http::Body { .. } | Http::Partial { .. }, .. }) => {
                Some(Side::Received)
            }
            What::Event(Kind::Stderr { .. }) => Some(Side::Stderr),
            What::Part { side, .. } => Some(*side),
            _ => None,
        }
    }
}

/// Whether a GET with these headers asks for the rest of a stream that was cut.
pub(crate) fn resumes_stream(headers: &[(String, String)]) -> bool {
    headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("last-event-id"))
}

impl What {
    /// The word of its kind in the file.
    pub fn word(&self) -> &'static str {
        match self {
            What::Part { .. } => "part",
            What::StdinClosed => "stdin_closed",
            What::Gap { .. } => "gap",
            What::Event(kind) => match kind {
                Kind::Opened { .. } => "opened",
                Kind::Sent { .. } => "sent",
                Kind::NotWritten { .. } => "not_written",
                Kind::Received { .. } => "received",
                Kind::Noise { .. } => "noise",
                Kind::Stderr { .. } => "stderr",
                Kind::Http { .. } => "http",
                Kind::StdoutClosed => "stdout_closed",
                Kind::AllGone => "all_gone",
                Kind::Exit { .. } => "exit",
                Kind::Agreed { .. } => "agreed",
                Kind::State { .. } => "state",
                Kind::Note(_) => "note",
            },
        }
    }

    /// A gap in words.
    pub fn gap_words(&self) -> Option<String> {
        let What::Gap { events, bytes, why } = self else { return None };
        Some(format!("a gap: {events} events ({bytes} bytes) could not be written: {why}"))
    }
}

#[cfg(test)]
mod tests;
