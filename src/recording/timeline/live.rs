//! The events of a live session as a time line has them: what its journal still keeps, joined as a file's are.

use super::{Quick, kind_of};
use crate::journal::event::Event;
use crate::journal::{Journal, Kind};
use crate::record::entry::{Entry, Side, What};
use crate::record::summary::{self, Rpc, Summary};
use crate::wire::id::Id;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// How many bytes of events are kept here; the same as the journal itself does.
const BYTES: usize = 72 << 20;

/// See the module's head.
pub struct Live {
    journal: Journal,
    kept: VecDeque<Kept>,
    /// How many came before the first that is kept.
    base: usize,
    bytes: usize,
    next_seq: u64,
    open: HashMap<(u32, Side, Option<u64>, Id), usize>,
}

struct Kept {
    event: Arc<Event>,
    kind: &'static str,
    summary: Option<Summary>,
    peer: Option<usize>,
}

impl Live {
    /// Of a journal, from its beginning.
    pub fn new(journal: Journal) -> Live {
        let (kept, open) = (VecDeque::new(), HashMap::new());
        Live { journal, kept, base: 0, bytes: 0, next_seq: 0, open }
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.base..self.base + self.kept.len()
    }

    pub(super) fn advance(&mut self) {
        let (new, _) = self.journal.all_from(self.next_seq);
        if new.is_empty() {
            return;
        }
        for event in new {
            self.next_seq = event.seq + 1;
            self.add(event);
        }
        while self.bytes > BYTES {
            let Some(old) = self.kept.pop_front() else { break };
            self.bytes -= size(&old.event);
            self.base += 1;
        }
        let base = self.base;
        self.open.retain(|_, at| *at >= base);
    }

    fn add(&mut self, event: Arc<Event>) {
        let at = self.base + self.kept.len();
        let frame = match &event.kind {
            Kind::Sent { raw, exchange, .. } => Some((Side::Sent, raw, *exchange)),
            Kind::Received { raw, exchange } => Some((Side::Received, raw, *exchange)),
            _ => None,
        };
        let read = frame.and_then(|(side, raw, x)| {
            Some((side, x, summary::of(std::str::from_utf8(raw).ok()?)?))
        });
        let peer = read.as_ref().and_then(|(side, x, s)| self.joined(&event, *side, *x, s, at));
        let asked = peer.and_then(|p| p.checked_sub(self.base));
        if let Some(q) = asked.and_then(|p| self.kept.get_mut(p)) {
            q.peer = Some(at);
        }
        self.bytes += size(&event);
        let kind = kind_of(What::Event(event.kind.clone()).word());
        self.kept.push_back(Kept { event, kind, summary: read.map(|r| r.2), peer });
    }

    /// Remembers a request; finds what an answer answers.
    fn joined(
        &mut self,
        event: &Event,
        side: Side,
        x: Option<u64>,
        s: &Summary,
        at: usize,
    ) -> Option<usize> {
        let id = s.id.as_ref()?;
        let key = |side: Side, x: Option<u64>| (event.generation, side, x, id.clone());
        if s.rpc == Rpc::Request {
            self.open.insert(key(side, None), at);
            self.open.insert(key(side, x), at);
            return None;
        }
        if !s.rpc.is_answer() {
            return None;
        }
        let other = if side == Side::Sent { Side::Received } else { Side::Sent };
        let own = self.open.remove(&key(other, x));
        let asked = own.or_else(|| self.open.get(&key(other, None)).copied());
        if asked.is_some() && self.open.get(&key(other, None)).copied() == asked {
            self.open.remove(&key(other, None));
        }
        asked
    }

    fn kept(&self, i: usize) -> Option<&Kept> {
        self.kept.get(i.checked_sub(self.base)?)
    }

    pub(super) fn quick(&self, i: usize) -> Option<Quick<'_>> {
        let k = self.kept(i)?;
        let s = k.summary.as_ref();
        let tool = s.and_then(|s| s.tool.as_deref());
        Some(Quick {
            at: k.event.at,
            generation: k.event.generation,
            kind: k.kind,
            rpc: s.map(|s| s.rpc),
            name: tool.or(s.and_then(|s| s.method.as_deref())).unwrap_or(""),
            is_call: tool.is_some(),
            peer: k.peer,
        })
    }

    pub(super) fn entry(&self, i: usize) -> Option<Entry> {
        let e = &self.kept(i)?.event;
        Some(Entry::new(e.seq, e.at, e.mono_us, e.generation, What::Event(e.kind.clone())))
    }

    pub(super) fn find(&self, seq: u64) -> Option<usize> {
        let i = self.kept.binary_search_by_key(&seq, |k| k.event.seq).ok()?;
        Some(i + self.base)
    }
}

/// Bytes it costs; the text is shared with the journal while that keeps it.
fn size(e: &Event) -> usize {
    let text = match &e.kind {
        Kind::Sent { raw, .. } | Kind::Received { raw, .. } => raw.len(),
        Kind::Noise { raw, .. } | Kind::Stderr { raw } => raw.len(),
        _ => 0,
    };
    text + 256
}
