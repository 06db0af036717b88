//! Reading recordings: any file that `redial record` wrote, the trace list of a Python program, or the neutral form
//! of a log, opened into the same fold that a live session has; followed while it grows.
//!
//! `lines` reads a file piece by piece, `number` counts runs on, `import` converts foreign forms, `index` knows
//! where each event of a large file stands without reading it again, `rows` is what lists show. A damaged line
//! costs that line. Nothing here writes.

mod agent;
pub mod import;
pub mod index;
pub mod lines;
pub mod number;
pub mod rows;

use crate::error::{Error, Result};
use crate::journal::{Event, Session};
use crate::json::raw;
use crate::model::arguments::{Candidate, Source};
use crate::record::entry::{Entry, Header, Line, What, decode};
use crate::record::place;
use lines::Lines;
use number::Numbers;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

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

    /// [`Recording::open`], with every event kept for lists: see [`Recording::take_entries`].
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn with_entries(named: &Path) -> Result<Recording> {
        Recording::with(named, true)
    }

    fn with(named: &Path, keep: bool) -> Result<Recording> {
        let path = place::find(named)?;
        let mut r = Recording {
            lines: import::open(&path)?,
            path,
            numbers: Numbers::default(),
            headers: Vec::new(),
            session: Session::default(),
            bad: Vec::new(),
            events: 0,
            lost: 0,
            kept: keep.then(VecDeque::new),
            torn: None,
        };
        r.bad.extend(r.lines.take_bad());
        r.poll()?;
        if r.events == 0 && r.headers.is_empty() && !r.lines.is_empty() {
            let first = r.bad_lines().next().map(|b| format!(": line {}: {}", b.line, b.why));
            return Err(Error::ledger(format!(
                "{} is no recording{}",
                r.path.display(),
                first.unwrap_or_default()
            ))
            .hint("`redial record` makes one; a trace list [{tool, arguments, result}] and the neutral form {t, dir, msg} can be opened too"));
        }
        Ok(r)
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
        let failed = |path: &Path, e: std::io::Error| {
            Error::ledger(format!("{} can't be read: {e}", path.display()))
        };
        if self.lines.begins_anew().map_err(|e| failed(&self.path, e))? {
            self.numbers = Numbers::default();
            self.headers.clear();
            self.session = Session::default();
            self.bad.clear();
            (self.events, self.lost) = (0, 0);
            if let Some(k) = &mut self.kept {
                k.clear();
            }
        }
        let before = self.events;
        loop {
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
                            *lost += events;
                        }
                        if let Some(event) = e.event() {
                            agent::apply(session, event);
                        }
                        if let Some(k) = kept {
                            k.push_back(e);
                        }
                    }
                    Line::Other => {}
                    Line::Bad(why) => bad.push(BadLine { line: line.number, why }),
                })
                .map_err(|e| failed(&self.path, e))?;
            if !more {
                break;
            }
        }
        self.torn = self.lines.unfinished().map(|(line, bytes)| BadLine {
            line,
            why: format!("torn: {bytes} bytes without an end"),
        });
        Ok(self.events - before)
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

    /// The arguments with which a request was sent, byte for byte, newest first.
    pub fn candidates(&self, request_id: &str, look_up: &str) -> Vec<Candidate> {
        let name = self.path.display().to_string();
        let calls: Vec<_> =
            self.session.calls_of(request_id).filter(|c| c.tool != look_up).collect();
        let with_args = calls.iter().rev().filter_map(|c| {
            let args = c.args.clone().filter(|a| raw::is_object(a))?;
            let source = Source::Recording(name.clone());
            Some(Candidate { args, tool: Some(c.tool.clone()), source })
        });
        with_args.collect()
    }
}

#[cfg(test)]
mod tests;
