//! What the time line asks for and is told: plain values between the update and whoever reads the events.

use crate::recording::rows::Row;
use crate::tui::tree::Document;
use bytes::Bytes;
use std::sync::Arc;

/// Whose events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Which {
    /// The agent's, from the attached recording.
    #[default]
    Recording,
    /// What this program sends and gets itself.
    Live,
}

/// Where the selection is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goto {
    /// Nowhere.
    Stay,
    /// By rows.
    By(isize),
    Start,
    End,
    /// To this place.
    Place(usize),
    /// To the event with this number.
    Event(u64),
    /// To the newest call of this request.
    Request(String),
    /// To the answer, or to what is answered.
    Peer,
    /// To the stderr around.
    Stderr,
    FirstError,
    NextError,
    /// To the next end of a server.
    Death,
}

/// A question for rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Echoed by the answer.
    pub seq: u64,
    pub which: Which,
    /// A filter without a mistake.
    pub filter: String,
    pub goto: Goto,
    /// Rows wanted on either side of the selection.
    pub rows: usize,
    /// Keep to the end as events come.
    pub follow: bool,
    /// Tell nothing that wasn't asked.
    pub paused: bool,
}

/// The answer, and what is told as events come.
#[derive(Debug, Clone)]
pub struct Window {
    pub seq: u64,
    pub which: Which,
    /// The file, or the endpoint.
    pub name: String,
    /// The filter of these rows; empty when a jump had to clear it.
    pub filter: String,
    /// Place and row.
    pub rows: Vec<(usize, Row)>,
    /// The rank of the first of them among all that match.
    pub first: usize,
    pub total: usize,
    pub of: usize,
    /// Not all events have been read or looked at yet: how much has, in percent.
    pub percent: Option<u8>,
    /// Lines that could not be read.
    pub damaged: usize,
    pub selected: Option<usize>,
    pub text: Option<Arc<Shown>>,
    /// Why a jump led nowhere.
    pub said: Option<String>,
    /// Another process writes it.
    pub written: bool,
}

/// The whole text of the selected event.
#[derive(Debug, PartialEq)]
pub struct Shown {
    pub place: usize,
    pub bytes: Bytes,
    pub document: Arc<Document>,
    /// Bytes that are left out, since it is very long.
    pub cut: usize,
}

/// How a text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    #[default]
    Pretty,
    Raw,
    Hex,
}

impl Form {
    /// For the title.
    pub fn word(self) -> &'static str {
        match self {
            Form::Pretty => "pretty",
            Form::Raw => "raw",
            Form::Hex => "hex",
        }
    }
}

/// Bytes of a line of the hex view.
pub const HEX: usize = 16;
