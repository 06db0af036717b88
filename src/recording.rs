//! Reading recordings: any file that `redial record` wrote, the trace list of a Python program, or the neutral form
//! of a log, opened into the same fold that a live session has; followed while it grows.
//!
//! `lines` reads a file piece by piece, `number` counts runs on, `import` converts foreign forms, `index` knows
//! where each event of a large file stands without reading it again, `again` reads it a second time, `rows` is what
//! lists show, `timeline` what a screen shows of any stretch. A damaged line
//! costs that line. Nothing here writes.

pub mod again;
mod agent;
pub mod foreign;
pub mod import;
pub mod index;
pub mod lines;
pub mod number;
pub mod rows;
pub mod timeline;

use crate::error::{Error, Result};
use crate::journal::{Call, CallId, Event, Outcome, Session, Settled};
use crate::record::entry::{Entry, Header, Line, What, decode};
use crate::record::place;
use lines::Lines;
use number::Numbers;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

/// So many calls are kept whole, and so many bytes of what they asked and were answered; older answered ones are
/// counted and can be read again where they stand.
const CALLS: usize = 20_000;
const CALL_BYTES: usize = 48 << 20;

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Its number in the file, from 1.
    pub line: u64,
    /// Why, in words.
    pub why: String,
}

/// An open recording and what it tells.
pub struct Recording {
    path: PathBuf,
    lines: Lines,
    numbers: Numbers,
    /// The runs, in order.
    pub headers: Vec<Header>,
    /// Everything it says of the server, folded as a live session is.
    pub session: Session,
    /// Lines that could not be read.
    pub bad: Vec<BadLine>,
    /// Events read so far.
    pub events: u64,
    /// Events that the tap could not write.
    pub lost: u64,
    /// Answered calls that the session no longer keeps: see [`Recording::let_go`].
    gone: HashMap<CallId, (Outcome, f32)>,
    let_go: Vec<Call>,
    most_calls: usize,
    /// The request whose calls are never let go.
    asked: Option<String>,
    /// Kept only where somebody asked for them.
    kept: Option<VecDeque<Entry>>,
    torn: Option<BadLine>,
}

impl Recording {
    /// Opens and reads the file to its end. `latest` and folders are resolved.
    ///
    /// # Errors
    /// Exit 6 when the file can't be read or holds nothing of a recording.
    pub fn open(named: &Path) -> Result<Recording> {
        Recording::with(named, false)
    }

    /// [`Recording::open`] for one request: none of its calls is let go, however many others there are.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn open_for(named: &Path, request_id: &str) -> Result<Recording> {
        let mut r = Recording::begin(named)?;
        r.asked = Some(request_id.to_owned());
        r.poll()?;
        r.is_one()?;
        Ok(r)
    }

    /// [`Recording::open`], with every event kept for lists: see [`Recording::take_entries`].
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn with_entries(named: &Path) -> Result<Recording> {
        Recording::with(named, true)
    }

    fn with(named: &Path, keep: bool) -> Result<Recording> {
        let mut r = Recording::begin(named)?;
        r.kept = keep.then(VecDeque::new);
        r.poll()?;
        r.is_one()?;
        Ok(r)
    }

    /// Opens the file and reads nothing yet: [`Recording::advance`] does, piece by piece.
    ///
    /// # Errors
    /// Exit 6 when the file can't be read.
    pub fn begin(named: &Path) -> Result<Recording> {
        let path = place::find(named)?;
        let mut lines = import::open(&path)?;
        let bad = lines.take_bad();
        Ok(Recording {
            lines,
            path,
            numbers: Numbers::default(),
            headers: Vec::new(),
            session: Session::default(),
            bad,
            events: 0,
            lost: 0,
            gone: HashMap::new(),
            let_go: Vec::new(),
            most_calls: CALLS,
            asked: None,
            kept: None,
            torn: None,
        })
    }

    /// Whether what was read so far is a recording at all.
    ///
    /// # Errors
    /// Exit 6 when lines were read and none of them is of a recording.
    pub fn is_one(&self) -> Result<()> {
        if self.events > 0 || !self.headers.is_empty() || self.lines.is_empty() {
            return Ok(());
        }
        let first = self.bad_lines().next().map(|b| format!(": line {}: {}", b.line, b.why));
        Err(Error::ledger(format!(
            "{} is no recording{}",
            self.path.display(),
            first.unwrap_or_default()
        ))
        .hint("`redial record` makes one; a trace list [{tool, arguments, result}] and the neutral form {t, dir, msg} can be opened too"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A tap holds the file: more may come.
    pub fn is_being_written(&self) -> bool {
        self.lines.is_held()
    }

    /// Takes in what was written since; how many events that was. A file that was replaced or cut is read anew.
    ///
    /// # Errors
    /// Exit 6 when it can't be read any more.
    pub fn poll(&mut self) -> Result<u64> {
        let before = self.events;
        while self.advance()? {}
        Ok(self.events.saturating_sub(before))
    }

    /// Takes one more piece of the file in, at most a megabyte; whether there is more.
    ///
    /// # Errors
    /// Exit 6 when it can't be read any more.
    pub fn advance(&mut self) -> Result<bool> {
        let failed = |path: &Path, e: std::io::Error| {
            Error::ledger(format!("{} can't be read: {e}", path.display()))
        };
        self.let_go.clear();
        if self.lines.begins_anew().map_err(|e| failed(&self.path, e))? {
            self.numbers = Numbers::default();
            self.headers.clear();
            self.session = Session::default();
            self.bad.clear();
            self.gone.clear();
            (self.events, self.lost) = (0, 0);
            if let Some(k) = &mut self.kept {
                k.clear();
            }
        }
        let Recording { lines, numbers, headers, session, bad, events, lost, kept, .. } = self;
        let more = lines
            .read(|line| match decode(line.bytes) {
                Line::Header(h) => {
                    numbers.new_run();
                    headers.push(h);
                }
                Line::Entry(e) => {
                    let e = numbers.place(e);
                    *events += 1;
                    if let What::Gap { events, .. } = &e.what {
                        *lost = lost.saturating_add(*events);
                        session.missing();
                    }
                    if let Some(event) = e.event() {
                        agent::apply(session, event, &e.wire);
                    }
                    if let Some(k) = kept {
                        k.push_back(e);
                    }
                }
                Line::Other => {}
                Line::Bad(why) => bad.push(BadLine { line: line.number, why }),
            })
            .map_err(|e| failed(&self.path, e))?;
        bad.extend(lines.take_bad());
        self.let_go = {
            let asked = self.asked.as_deref();
            self.session.let_answered_go(self.most_calls, CALL_BYTES, asked)
        };
        let over = |c: &Call| Some((c.id, (c.outcome()?, rows::took_ms(c)? as f32)));
        self.gone.extend(self.let_go.iter().filter_map(over));
        self.torn = self.lines.unfinished().map(|(line, bytes)| BadLine {
            line,
            why: format!("torn: {bytes} bytes without an end"),
        });
        Ok(more)
    }

    /// How many answered calls are no longer kept.
    pub fn not_kept(&self) -> usize {
        self.gone.len()
    }

    /// Answered calls that the last [`Recording::advance`] let go, since there are too many to be kept.
    pub fn let_go(&self) -> &[Call] {
        &self.let_go
    }

    /// What waits when nobody writes the file any more gets no answer there: its outcome is unknown.
    pub fn end_here(&mut self) {
        if self.is_being_written() {
            return;
        }
        for c in self.session.calls.values_mut().filter(|c| c.is_pending()) {
            c.settled = Some(Settled {
                at: c.sent_at,
                outcome: Outcome::Unknown,
                why: "the recording ends before an answer".into(),
                late: false,
                answer_status: None,
                result: None,
                error: None,
            });
        }
    }

    /// How the call sent by this event came out, kept or not; its milliseconds.
    pub fn outcome(&self, call: CallId) -> Option<(Option<Outcome>, Option<f64>)> {
        match self.session.calls.get(&call) {
            Some(c) => Some((c.outcome(), rows::took_ms(c))),
            None => self.gone.get(&call).map(|(o, ms)| (Some(*o), Some(f64::from(*ms)))),
        }
    }

    /// How many calls there are, kept or not.
    pub fn calls(&self) -> usize {
        self.session.calls.len() + self.gone.len()
    }

    /// How far the file was read, in bytes, and how long it is.
    pub fn progress(&self) -> (u64, u64) {
        let read = self.lines.read_to();
        (read, self.lines.len().unwrap_or(read).max(read))
    }

    /// Lines that could not be read, the unfinished last one included (it may still be written).
    pub fn bad_lines(&self) -> impl Iterator<Item = &BadLine> {
        self.bad.iter().chain(&self.torn)
    }

    /// The events since the last time, when they are kept.
    pub fn take_entries(&mut self) -> Vec<Entry> {
        self.kept.as_mut().map(|k| k.drain(..).collect()).unwrap_or_default()
    }

    /// What a person sees of the events: numbers as the session has them.
    pub fn events_of(entries: &[Entry]) -> impl Iterator<Item = Event> + '_ {
        entries.iter().filter_map(Entry::event)
    }
}

impl rows::Knows for Recording {
    fn outcome(&self, seq: u64) -> Option<(Option<Outcome>, Option<f64>)> {
        Recording::outcome(self, seq)
    }
    fn death(&self, generation: u32) -> Option<String> {
        self.session.death(generation)
    }
    fn is_launcher(&self, generation: u32) -> bool {
        self.session.is_launcher(generation)
    }
    fn lost(&self, generation: u32) -> Vec<String> {
        self.session.lost(generation)
    }
}

#[cfg(test)]
mod tests;
