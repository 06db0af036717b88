//! Where each event of a recording stands, for files that are too large to be kept: one pass over the heads of
//! lines, 40 bytes an event, extended by what is new when the file grows. An event itself is read when it is asked
//! for.

use super::BadLine;
use super::lines::{LineAt, Lines};
use super::number::Numbers;
use crate::error::{Error, Result};
use crate::journal::Kind;
use crate::record::entry::What;
use crate::record::entry::{Entry, Header, Line, decode};
use crate::record::place;
use crate::record::summary::{Rpc, Summary};
use crate::time::Time;
use crate::wire::id::Id;
use std::path::{Path, PathBuf};

mod head;
mod joined;

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
    /// The answer of a request, the request of an answer; [`ALONE`] for neither.
    peer: u32,
    /// Which life of the server, over all runs (a recording with more than 65,535 shows the rest as one).
    pub generation: u16,
    /// Which run of the file.
    pub run: u16,
    /// The kind's place in [`KINDS`].
    kind: u8,
    rpc: u8,
}

/// Nothing answers it, and it answers nothing.
const ALONE: u32 = u32::MAX;
/// In [`Slot::rpc`]: the name is a tool's.
const IS_TOOL: u8 = 0x80;

/// The kinds, in the format's words.
pub const KINDS: [&str; 17] = [
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
    "not_written",
    "all_gone",
    "agreed",
    "other",
];

use joined::{Asked, Names, rpc_of};

impl Slot {
    /// The kind's word.
    pub fn kind(&self) -> &'static str {
        KINDS.get(usize::from(self.kind)).copied().unwrap_or("other")
    }
    /// What its frame is.
    pub fn rpc(&self) -> Option<Rpc> {
        rpc_of(self.rpc)
    }
    /// Its name is a tool's: a `tools/call`.
    pub fn is_call(&self) -> bool {
        self.rpc & IS_TOOL != 0
    }
    /// The place of its answer, or of what it answers.
    pub fn peer(&self) -> Option<usize> {
        (self.peer != ALONE).then_some(self.peer as usize)
    }
}

/// An index that grows with its file.
pub struct Index {
    path: PathBuf,
    lines: Lines,
    slots: Vec<Slot>,
    names: Names,
    /// The runs, and what their numbers are counted from.
    headers: Vec<Header>,
    numbers: Vec<Numbers>,
    asked: Asked,
    /// Lines that could not be read.
    pub bad: Vec<BadLine>,
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
            names: Names::default(),
            headers: Vec::new(),
            numbers: vec![Numbers::default()],
            asked: Asked::default(),
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
        self.names.list.get(slot.name as usize).map_or("", String::as_str)
    }

    /// One event.
    pub fn slot(&self, i: usize) -> Option<&Slot> {
        self.slots.get(i)
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
            self.numbers = vec![Numbers::default()];
            self.asked = Asked::default();
            self.bad.clear();
        }
        let Index { lines, slots, names, headers, numbers, asked, bad, .. } = self;
        let more = lines
            .read(|line: LineAt<'_>| {
                let run = u16::try_from(numbers.len() - 1).unwrap_or(u16::MAX);
                let mut add = |h: &head::Head<'_>| {
                    let generation = numbers
                        .last_mut()
                        .map_or(0, |n| n.saw(h.seq, h.mono_us, h.generation, h.exchange));
                    let generation = u16::try_from(generation).unwrap_or(u16::MAX);
                    let i = u32::try_from(slots.len()).unwrap_or(ALONE);
                    let peer = asked.peer(h, (generation, run), i);
                    if let Some(q) = slots.get_mut(peer as usize) {
                        q.peer = i;
                    }
                    slots.push(Slot {
                        offset: line.offset,
                        at: h.at,
                        len: u32::try_from(line.bytes.len()).unwrap_or(u32::MAX),
                        name: names.of(h.name),
                        peer,
                        generation,
                        run,
                        kind: h.kind,
                        rpc: h.rpc | if h.is_tool { IS_TOOL } else { 0 },
                    });
                };
                if let Some(h) = head::read(line.bytes) {
                    return add(&h);
                }
                match decode(line.bytes) {
                    Line::Header(h) => {
                        headers.push(h);
                        let mut n = numbers.last().copied().unwrap_or_default();
                        n.new_run();
                        numbers.push(n);
                    }
                    Line::Entry(e) => {
                        let s = summary(&e);
                        let id = s.as_ref().and_then(|s| s.id.as_ref()).map(Id::to_json);
                        add(&head::Head {
                            seq: e.seq,
                            mono_us: e.mono_us,
                            at: e.at,
                            generation: e.generation,
                            kind: head::kind(e.what.word()),
                            rpc: s.as_ref().map_or(0, |s| head::rpc(s.rpc)),
                            name: s
                                .as_ref()
                                .and_then(|s| s.tool.as_deref().or(s.method.as_deref()))
                                .unwrap_or(""),
                            is_tool: s.as_ref().is_some_and(|s| s.tool.is_some()),
                            id: id.as_deref().unwrap_or(""),
                            exchange: exchange(&e),
                        });
                    }
                    Line::Other => {}
                    Line::Bad(why) => bad.push(BadLine { line: line.number, why }),
                }
            })
            .map_err(failed)?;
        Ok(more)
    }

    /// The event at a place of the list, read from the file.
    pub fn entry(&self, i: usize) -> Option<Entry> {
        let slot = self.slots.get(i)?;
        let bytes = self.lines.at(slot.offset, slot.len as usize).ok()?;
        match decode(&bytes) {
            Line::Entry(e) => {
                let mut numbers = self.numbers.get(usize::from(slot.run)).copied()?;
                Some(numbers.place(e))
            }
            _ => None,
        }
    }

    /// The place of the event with this number (as [`Index::entry`] has it), by a few reads.
    pub fn find(&self, seq: u64) -> Option<usize> {
        let run = self.numbers.iter().rposition(|n| n.seq_base() < seq)?;
        let run = u16::try_from(run).unwrap_or(u16::MAX);
        let from = self.slots.partition_point(|s| s.run < run);
        let to = self.slots.partition_point(|s| s.run <= run);
        let (mut low, mut high) = (from, to);
        while low < high {
            let middle = low + (high - low) / 2;
            let there = self.entry(middle)?.seq;
            if there == seq {
                return Some(middle);
            }
            if there < seq { low = middle + 1 } else { high = middle }
        }
        None
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

fn summary(e: &Entry) -> Option<Summary> {
    let What::Event(Kind::Sent { raw, .. } | Kind::Received { raw, .. }) = &e.what else {
        return None;
    };
    crate::record::summary::of(std::str::from_utf8(raw).ok()?)
}

fn exchange(e: &Entry) -> Option<u64> {
    match &e.what {
        What::Event(Kind::Sent { exchange, .. } | Kind::Received { exchange, .. }) => *exchange,
        What::Event(Kind::Http { exchange, .. }) => Some(*exchange),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
