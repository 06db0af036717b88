//! Where each event of a recording stands, for files that are too large to be kept: one pass over the heads of
//! lines, 32 bytes an event, extended by what is new when the file grows. An event itself is read when it is asked
//! for.

use super::BadLine;
use super::lines::{LineAt, Lines};
use super::number::Numbers;
use crate::error::{Error, Result};
use crate::record::entry::{Entry, Header, Line, decode};
use crate::record::place;
use crate::record::summary::Rpc;
use crate::time::Time;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

mod head;

/// What is known of an event without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Where its line begins.
    pub offset: u64,
    /// When.
    pub at: Time,
    /// Bytes of its line.
    pub len: u32,
    /// The method, or the tool of a `tools/call`: see [`Index::name`].
    name: u32,
    /// Which life of the server, over all runs (a recording with more than 65,535 shows the rest as one).
    pub generation: u16,
    /// Which run of the file.
    pub run: u16,
    /// The kind's place in [`KINDS`].
    kind: u8,
    rpc: u8,
}

/// The kinds, in the format's words.
pub const KINDS: [&str; 14] = [
    "sent",
    "received",
    "noise",
    "stderr",
    "part",
    "http",
    "opened",
    "exit",
    "stdin_closed",
    "stdout_closed",
    "state",
    "note",
    "gap",
    "other",
];

impl Slot {
    /// The kind's word.
    pub fn kind(&self) -> &'static str {
        KINDS.get(usize::from(self.kind)).copied().unwrap_or("other")
    }
    /// What its frame is.
    pub fn rpc(&self) -> Option<Rpc> {
        [Rpc::Request, Rpc::Notification, Rpc::Result, Rpc::ToolError, Rpc::Error, Rpc::Malformed]
            .get(usize::from(self.rpc.checked_sub(1)?))
            .copied()
    }
}

/// An index that grows with its file.
pub struct Index {
    path: PathBuf,
    lines: Lines,
    slots: Vec<Slot>,
    names: Vec<String>,
    known: HashMap<String, u32>,
    /// The runs, and what their numbers are counted from.
    headers: Vec<Header>,
    numbers: Vec<Base>,
    top_generation: u32,
    /// Lines that could not be read.
    pub bad: Vec<BadLine>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Base {
    generation: u32,
}

impl Index {
    /// Opens a file; nothing is read yet.
    ///
    /// # Errors
    /// Exit 2 or 6 when it can't be found or opened.
    pub fn open(named: &Path) -> Result<Index> {
        let path = place::find(named)?;
        let mut lines = super::import::open(&path)?;
        let bad = lines.take_bad();
        Ok(Index {
            path,
            lines,
            slots: Vec::new(),
            names: vec![String::new()],
            known: HashMap::new(),
            headers: Vec::new(),
            numbers: vec![Base::default()],
            top_generation: 0,
            bad,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Events so far.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// No events so far.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The runs so far.
    pub fn headers(&self) -> &[Header] {
        &self.headers
    }

    /// A stretch of events, oldest first.
    pub fn window(&self, from: usize, count: usize) -> &[Slot] {
        let from = from.min(self.slots.len());
        self.slots.get(from..(from + count).min(self.slots.len())).unwrap_or_default()
    }

    /// The method or tool of an event; empty when it has none.
    pub fn name(&self, slot: &Slot) -> &str {
        self.names.get(slot.name as usize).map_or("", String::as_str)
    }

    /// How much of the file is in, in bytes, and how long it is.
    pub fn progress(&self) -> (u64, u64) {
        let read = self.lines.read_to();
        (read, self.lines.len().unwrap_or(read).max(read))
    }

    /// Takes one more piece of the file in; whether there is more.
    ///
    /// # Errors
    /// Exit 6 when it can't be read.
    pub fn advance(&mut self) -> Result<bool> {
        let failed = |e: std::io::Error| Error::ledger(format!("the recording can't be read: {e}"));
        if self.lines.begins_anew().map_err(failed)? {
            self.slots.clear();
            self.headers.clear();
            self.numbers = vec![Base::default()];
            self.top_generation = 0;
            self.bad.clear();
        }
        let Index { lines, slots, names, known, headers, numbers, top_generation, bad, .. } = self;
        let mut intern = |name: &str| -> u32 {
            if name.is_empty() {
                return 0;
            }
            if let Some(n) = known.get(name) {
                return *n;
            }
            // Names are few; a hostile file may make each its own.
            if names.len() >= 1 << 20 {
                return 0;
            }
            let n = u32::try_from(names.len()).unwrap_or(0);
            names.push(name.to_owned());
            known.insert(name.to_owned(), n);
            n
        };
        lines
            .read(|line: LineAt<'_>| {
                let run = u16::try_from(numbers.len() - 1).unwrap_or(u16::MAX);
                let base = numbers.last().copied().unwrap_or_default();
                let mut add = |at: Time, generation: u32, kind: u8, rpc: u8, name: u32| {
                    let generation = if generation == 0 {
                        0
                    } else {
                        generation.saturating_add(base.generation)
                    };
                    *top_generation = (*top_generation).max(generation);
                    slots.push(Slot {
                        offset: line.offset,
                        at,
                        len: u32::try_from(line.bytes.len()).unwrap_or(u32::MAX),
                        name,
                        generation: u16::try_from(generation).unwrap_or(u16::MAX),
                        run,
                        kind,
                        rpc,
                    });
                };
                if let Some(h) = head::read(line.bytes) {
                    let name = intern(h.name);
                    return add(h.at, h.generation, h.kind, h.rpc, name);
                }
                match decode(line.bytes) {
                    Line::Header(h) => {
                        headers.push(h);
                        numbers.push(Base { generation: *top_generation });
                    }
                    Line::Entry(e) => {
                        let s = summary(&e);
                        let name = intern(s.1.as_deref().unwrap_or(""));
                        add(e.at, e.generation, head::kind(e.what.word()), s.0, name);
                    }
                    Line::Other => {}
                    Line::Bad(why) => bad.push(BadLine { line: line.number, why }),
                }
            })
            .map_err(failed)
    }

    /// The event at a place of the list, read from the file.
    pub fn entry(&self, i: usize) -> Option<Entry> {
        let slot = self.slots.get(i)?;
        let bytes = self.lines.at(slot.offset, slot.len as usize).ok()?;
        match decode(&bytes) {
            Line::Entry(mut e) => {
                e.generation = u32::from(slot.generation);
                Some(e)
            }
            _ => None,
        }
    }

    /// The last events of the file without reading the rest: what a first screen shows. Generations are those
    /// of the file's last run.
    pub fn tail(&self, count: usize) -> Vec<Entry> {
        const PIECE: u64 = 256 << 10;
        let len = self.lines.len().unwrap_or(0);
        let mut size = PIECE;
        loop {
            let from = len.saturating_sub(size);
            let bytes =
                self.lines.at(from, usize::try_from(len - from).unwrap_or(0)).unwrap_or_default();
            let mut parts = bytes.split(|b| *b == b'\n');
            if from > 0 {
                // The first line is likely cut.
                parts.next();
            }
            let entries: Vec<Entry> = parts
                .filter_map(|l| match decode(l) {
                    Line::Entry(e) => Some(e),
                    _ => None,
                })
                .collect();
            if entries.len() >= count || from == 0 || size > 64 << 20 {
                let skip = entries.len().saturating_sub(count);
                let mut numbers = Numbers::default();
                return entries.into_iter().skip(skip).map(|e| numbers.place(e)).collect();
            }
            size *= 4;
        }
    }
}

fn summary(e: &Entry) -> (u8, Option<String>) {
    use crate::journal::Kind;
    use crate::record::entry::What;
    let What::Event(Kind::Sent { raw, .. } | Kind::Received { raw, .. }) = &e.what else {
        return (0, None);
    };
    match std::str::from_utf8(raw).ok().and_then(crate::record::summary::of) {
        Some(s) => (head::rpc(s.rpc), s.tool.or(s.method)),
        None => (0, None),
    }
}

#[cfg(test)]
mod tests;
