//! What the screen is fed with, and what it asks for: plain values between the pure update and whoever
//! does the work. No IO, no clock; foreign text in here is still raw.

pub use crate::judge::agreement::Terms;
use crate::judge::{HashCheck, Pairing};
pub use crate::model::Line;
use crate::time::Time;

/// The facts of the top line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counts {
    /// `7 requests · 5 done · 2 abandoned · 5 tickets · 1 suspect pair`.
    pub headline: String,
    /// When the ledger was read.
    pub as_of: Option<Time>,
    /// Why it can't be read now; the facts are then the last good ones.
    pub trouble: Option<String>,
    /// What may mislead: another file under the same name, rows that could not be read.
    pub warnings: Vec<String>,
    /// Things worth saying about the file (a missing `-wal`).
    pub remarks: Vec<String>,
}

/// Which rows are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Echoed by the answer; an answer to an older question is dropped.
    pub seq: u64,
    /// Only requests that this filter lets pass (`filter`); it has no mistake.
    pub filter: String,
    /// From where.
    pub anchor: Anchor,
    /// At most so many rows (the unfinished ones on top not counted).
    pub count: usize,
}

/// Where a window of rows begins; rows run from new to old, by rowid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// At the newest row.
    Newest,
    /// At this row, or the next older one where it is gone: the same place, read again.
    At(i64),
    /// At the oldest row: the last `count` rows.
    Oldest,
    /// After (older than) this row.
    Older(i64),
    /// Before (newer than) this row; the rows still come newest first.
    Newer(i64),
}

/// The answer to an [`Ask`].
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The question.
    pub ask: Ask,
    /// Unfinished requests, kept on top, newest first (bounded by whoever answers).
    pub top: Vec<Line>,
    /// How many unfinished ones there are.
    pub top_total: usize,
    /// The window, newest first, without those on top.
    pub rows: Vec<Line>,
    /// Swept requests that are known by an effect alone: they come after the oldest row.
    pub tail: Vec<Line>,
    pub has_newer: bool,
    pub has_older: bool,
    /// `12 of 340`: matches and rows, where both are known.
    pub matches: Option<(u64, u64)>,
}

/// Everything known of the selected request.
#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    pub line: Line,
    /// What was seen happening to its row, oldest first.
    pub history: Vec<(Time, String)>,
    /// The arguments at hand against the row's hash, and how that was found out.
    pub hash: HashCheck,
    pub hash_why: String,
    /// What `find_request` last said of it.
    pub looked_up: Option<LookUp>,
}

/// An answer of the server's own look-up.
#[derive(Debug, Clone, PartialEq)]
pub struct LookUp {
    pub at: Time,
    /// Its status word.
    pub status: String,
    /// The whole answer, as JSON text.
    pub answer: String,
    /// How it stands to the ledger and to what was heard since.
    pub agrees: Agrees,
}

/// How a look-up's word stands to the ledger's stored one, and to news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Agrees {
    /// There is nothing to compare.
    #[default]
    Unknown,
    /// The ledger has the same word, or no row where the server knows none.
    Same,
    /// The server calls another's row abandoned that the ledger has as running.
    Running,
    /// The ledger denies it.
    Denied,
    /// It was said before the request became what it is now.
    Outdated,
}

impl Agrees {
    /// For the end of "the server says X".
    pub fn words(self) -> &'static str {
        match self {
            Agrees::Unknown => "",
            Agrees::Same => ", as the ledger does",
            Agrees::Running => ", of a row that the ledger has as running",
            Agrees::Denied => ", the ledger says otherwise",
            Agrees::Outdated => ", before what is known now",
        }
    }
}

/// What has to be answered before a call goes out (design: "The gate").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// Nothing, the tool only reads.
    None,
    /// The exact call, Enter.
    Preview,
    /// The exact call and why it isn't certain, `y`.
    Ask,
    /// The request_id has to be typed.
    Type,
    /// It is not sent.
    Refused,
}

/// The gate's word on one exact call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    pub question: Question,
    /// Why, a sentence each.
    pub reasons: Vec<String>,
    /// What has to be typed for [`Question::Type`]: the request_id, or the tool's name.
    pub word: String,
}

/// What a re-issue would be, before anything is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub tool: String,
    /// The exact arguments; where nobody knows them, only the request_id.
    pub args: String,
    /// They are known; otherwise a person has to give them.
    pub known: bool,
    /// Where they come from, or why they aren't known.
    pub source: String,
    /// The judgement on `args`.
    pub check: Check,
}

/// The judgement on arguments as they stand in the dialog.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    pub hash: HashCheck,
    /// In words: `equal to the row's hash`, `not JSON: …`.
    pub hash_why: String,
    pub gate: Gate,
    /// Lines for the dialog: the row, the last look-up, the server, what a repeat would do.
    pub situation: Vec<String>,
    /// All of it, as an answer is held to it.
    pub terms: Box<Terms>,
    /// When the row was seen to become what it is.
    pub since: Time,
}

/// A question that is asked anew since something in it is another thing by now.
#[derive(Debug, Clone, PartialEq)]
pub struct Anew {
    pub plan: Box<Plan>,
    /// What changed, a sentence each.
    pub changes: Vec<String>,
}

/// A call a person has agreed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reissue {
    pub request_id: String,
    pub tool: String,
    /// As they were shown.
    pub args: String,
    /// Everything that the answered question showed. Whoever sends reads it all again, and sends nothing when any of
    /// it is another thing by now.
    pub terms: Box<Terms>,
    /// The word of the gate, which was typed or pressed for.
    pub word: String,
}

/// What came of a re-issue.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The outcome's word: `ok`, `unknown`, `not_sent`…
    pub outcome: String,
    pub why: String,
    pub answer_status: Option<String>,
    pub replayed: Option<bool>,
    pub state_after: String,
    /// Effects of this request, before and after; `None` without a ledger.
    pub effects: Option<(u64, u64)>,
    /// All effects, before and after.
    pub effects_total: Option<(u64, u64)>,
    pub elapsed_s: f64,
    /// What the answer said, for people.
    pub answer: String,
    pub next: String,
    /// The server's last words, where it died.
    pub stderr: Vec<String>,
}

impl Report {
    /// The request ended with more than one effect.
    pub fn ran_twice(&self) -> bool {
        self.effects.is_some_and(|(_, after)| after > 1)
    }
}

/// News of the counting that `verify` does.
#[derive(Debug, Clone, PartialEq)]
pub enum Counted {
    /// It has begun, at this time.
    Begun(Time),
    Found(Box<Verified>),
    /// It could not be done, and why.
    Failed(String),
    /// Something changed; it is counted again at this time.
    Again(Time),
}

/// What `verify` found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Verified {
    /// Exactly once holds.
    pub good: bool,
    /// The counts as a sentence.
    pub sentence: String,
    /// How many requests are in which state.
    pub requests: Vec<(String, u64)>,
    /// Effects; `None` without an effects table.
    pub effects: Option<u64>,
    pub problems: Vec<Problem>,
    /// When the count began: what was written later isn't in it.
    pub as_of: Time,
    /// How long it took.
    pub took_s: f64,
}

/// One of its findings.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// `duplicate effect`.
    pub kind: String,
    /// An error; else a warning.
    pub error: bool,
    pub detail: String,
    pub request_ids: Vec<String>,
}

/// The demo's mark and how to leave it for what one has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoInfo {
    /// One line: how to attach to one's own server.
    pub how: String,
}

/// Pairing with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paired {
    pub pairing: Pairing,
    pub why: String,
}
