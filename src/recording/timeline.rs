//! A time line: any stretch of the events of a recording or of a live session as rows, without reading the rest,
//! and the steps between events that belong together. Knows no screen; keeps 40 bytes an event and no text.

mod live;
mod peek;
mod places;

pub use live::Live;
pub use places::Places;

use super::index::{Index, KINDS};
use super::rows::{self, Asked, Knows, Row};
use crate::error::Result;
use crate::record::entry::{Entry, What};
use crate::record::summary::Rpc;
use crate::time::Time;
use std::collections::HashMap;

/// State and verdicts of requests, by request_id, where a ledger says them.
pub type Judged = HashMap<String, (String, Vec<String>)>;

/// Where the events come from.
pub enum Source {
    /// A file, read where it is asked.
    File(Box<Index>),
    /// A session that goes on.
    Live(Live),
}

/// What is known of an event without its text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quick<'a> {
    /// When.
    pub at: Time,
    /// Which life of the server.
    pub generation: u32,
    /// The format's word.
    pub kind: &'static str,
    /// What its frame is.
    pub rpc: Option<Rpc>,
    /// The tool of a call, else the method; empty for neither.
    pub name: &'a str,
    /// It is a `tools/call`.
    pub is_call: bool,
    /// The place of its answer, or of what it answers.
    pub peer: Option<usize>,
}

impl Source {
    /// The places that can be asked for: from the first that is kept to the last.
    pub fn range(&self) -> std::ops::Range<usize> {
        match self {
            Source::File(index) => 0..index.len(),
            Source::Live(live) => live.range(),
        }
    }

    /// Takes one more piece of what is new in; whether there is more.
    ///
    /// # Errors
    /// Exit 6 when a file can't be read any more.
    pub fn advance(&mut self) -> Result<bool> {
        match self {
            Source::File(index) => index.advance(),
            Source::Live(live) => {
                live.advance();
                Ok(false)
            }
        }
    }

    /// How much of it is in, and how much there is, in bytes of a file.
    pub fn progress(&self) -> (u64, u64) {
        match self {
            Source::File(index) => index.progress(),
            Source::Live(_) => (0, 0),
        }
    }

    /// Lines of a file that could not be read.
    pub fn damaged(&self) -> usize {
        match self {
            Source::File(index) => index.bad.len(),
            Source::Live(_) => 0,
        }
    }

    /// An event without its text.
    pub fn quick(&self, i: usize) -> Option<Quick<'_>> {
        match self {
            Source::File(index) => {
                let s = index.slot(i)?;
                Some(Quick {
                    at: s.at,
                    generation: u32::from(s.generation),
                    kind: s.kind(),
                    rpc: s.rpc(),
                    name: index.name(s),
                    is_call: s.is_call(),
                    peer: s.peer(),
                })
            }
            Source::Live(live) => live.quick(i),
        }
    }

    /// An event.
    pub fn entry(&self, i: usize) -> Option<Entry> {
        match self {
            Source::File(index) => index.entry(i),
            Source::Live(live) => live.entry(i),
        }
    }

    /// The place of the event with this number.
    pub fn find(&self, seq: u64) -> Option<usize> {
        match self {
            Source::File(index) => index.find(seq),
            Source::Live(live) => live.find(seq),
        }
    }

    /// An event as a row.
    pub fn row(&self, i: usize, knows: &dyn Knows, now: Time) -> Option<Row> {
        let e = self.entry(i)?;
        let answers = self.quick(i).filter(|q| q.rpc.is_some_and(Rpc::is_answer));
        let asked = answers.and_then(|q| Asked::of(&self.entry(q.peer?)?));
        Some(rows::row(&e, asked, knows, now))
    }

    /// Whether something went wrong here: an error, a call without an answer, a server that did not end by itself
    /// while idle, events that are missing.
    pub fn is_error(&self, i: usize, knows: &dyn Knows) -> bool {
        let Some(q) = self.quick(i) else { return false };
        match (q.kind, q.rpc) {
            (_, Some(Rpc::Error | Rpc::ToolError | Rpc::Malformed))
            | ("gap" | "not_written", _) => true,
            ("sent", Some(Rpc::Request)) if q.is_call && q.peer.is_none() => {
                let outcome = self.entry(i).and_then(|e| knows.outcome(e.seq)).and_then(|o| o.0);
                outcome.is_some_and(|o| o != crate::journal::Outcome::Ok)
            }
            ("exit", _) => {
                use crate::journal::Kind;
                let good = self.entry(i).is_some_and(|e| {
                    matches!(e.what, What::Event(Kind::Exit { code: Some(0), signal: None, .. }))
                });
                !good
                    || knows.death(q.generation).is_some_and(|d| d != crate::journal::bounded::IDLE)
            }
            _ => false,
        }
    }
}

/// The place of a kind's word among [`KINDS`], or that of a kind that is not known here.
fn kind_of(word: &'static str) -> &'static str {
    KINDS.iter().find(|k| **k == word).copied().unwrap_or("other")
}

#[cfg(test)]
mod tests;
