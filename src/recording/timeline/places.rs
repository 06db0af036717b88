//! Which events a filter lets through, found piece by piece, and the steps from one to another: by rows, to an
//! answer, to the stderr around, to what went wrong, to a death.

use super::peek::Peek;
use super::{Judged, Source};
use crate::filter::Filter;
use crate::record::summary::Rpc;
use crate::recording::rows::Knows;
use crate::time::Time;
use std::collections::VecDeque;

/// The places that a filter lets through; all of them without one.
#[derive(Debug, Default)]
pub struct Places {
    filter: Filter,
    /// In their order; none that the source has let go.
    found: VecDeque<u32>,
    /// Places before this one have been looked at.
    looked: usize,
}

impl Places {
    /// For a filter.
    pub fn new(filter: Filter) -> Places {
        Places { filter, ..Places::default() }
    }

    /// Everything is let through.
    pub fn is_all(&self) -> bool {
        self.filter.is_empty()
    }

    /// Looks at up to `most` more events; whether there are more.
    pub fn look(
        &mut self,
        source: &Source,
        knows: &dyn Knows,
        judged: &Judged,
        now: Time,
        most: usize,
    ) -> bool {
        let range = source.range();
        if range.end < self.looked {
            // The file began anew.
            (self.looked, self.found) = (0, VecDeque::new());
        }
        if self.is_all() {
            self.looked = range.end;
            return false;
        }
        let gone = self.found.partition_point(|i| (*i as usize) < range.start);
        self.found.drain(..gone);
        let from = self.looked.max(range.start);
        let to = range.end.min(from + most);
        for i in from..to {
            if self.filter.matches(&Peek::new(source, i, knows, judged, now)) {
                self.found.extend(u32::try_from(i));
            }
        }
        self.looked = to;
        to < range.end
    }

    /// Whether it is known by now if this place is let through.
    pub fn has_looked_at(&self, place: usize) -> bool {
        place < self.looked
    }

    /// How many there are.
    pub fn len(&self, source: &Source) -> usize {
        if self.is_all() { source.range().len() } else { self.found.len() }
    }

    /// The place at this rank.
    pub fn at(&self, source: &Source, rank: usize) -> Option<usize> {
        if self.is_all() {
            let range = source.range();
            return (rank < range.len()).then_some(range.start + rank);
        }
        self.found.get(rank).map(|i| *i as usize)
    }

    /// The rank of a place, or of the first one after it.
    pub fn rank(&self, source: &Source, place: usize) -> usize {
        if self.is_all() {
            let range = source.range();
            return place.clamp(range.start, range.end) - range.start;
        }
        self.found.partition_point(|i| (*i as usize) < place)
    }

    /// Whether this very place is let through.
    pub fn has(&self, source: &Source, place: usize) -> bool {
        self.at(source, self.rank(source, place)) == Some(place)
    }
}

/// How far is looked for what stands near.
const NEAR: usize = 200_000;

impl Source {
    /// The answer of a request, or the request of an answer.
    pub fn peer(&self, from: usize) -> Option<usize> {
        self.quick(from)?.peer
    }

    /// The line of stderr nearest in the order of events, of the same life of the server: the last one before, else
    /// the first one after. Places before `seen` are known to hold none, as in all searches here.
    pub fn stderr_near(&self, from: usize, seen: usize) -> Option<usize> {
        let generation = self.quick(from)?.generation;
        let is = |i: &usize| {
            self.quick(*i).is_some_and(|q| q.kind == "stderr" && q.generation == generation)
        };
        let range = self.range();
        let before = (range.start.max(seen)..from).rev().take(NEAR).find(is);
        let near = range.end.min(from.saturating_add(NEAR));
        before.or_else(|| (seen.max(from + 1)..near).find(is))
    }

    /// The first thing that went wrong at or after `from`, and the calls before it that wait for their answer: what
    /// is still to be read may show that they went wrong.
    pub fn error_from(&self, from: usize, knows: &dyn Knows) -> (Option<usize>, Vec<usize>) {
        let range = self.range();
        let mut waiting = Vec::new();
        for i in from.max(range.start)..range.end {
            if self.is_error(i, knows) {
                return (Some(i), waiting);
            }
            if self.quick(i).is_some_and(|q| q.is_call && q.peer.is_none()) {
                waiting.push(i);
            }
        }
        (None, waiting)
    }

    /// The next end of a server after `from`, else the first of all.
    pub fn death_after(&self, from: usize, seen: usize) -> Option<usize> {
        let is = |i: &usize| self.quick(*i).is_some_and(|q| q.kind == "exit");
        let range = self.range();
        let first = || (range.start.max(seen)..range.end).find(is);
        (seen.max(from + 1)..range.end).find(is).or_else(first)
    }

    /// The newest `tools/call` of a request; looks back over a bounded stretch.
    pub fn call_of(&self, request_id: &str, seen: usize) -> Option<usize> {
        let range = self.range();
        let calls = (range.start.max(seen)..range.end).rev().take(NEAR);
        calls.filter(|i| self.quick(*i).is_some_and(|q| q.is_call)).find(|i| {
            let text = self.entry(*i).and_then(|e| e.raw().cloned()).unwrap_or_default();
            let s = crate::record::summary::of(&String::from_utf8_lossy(&text));
            s.is_some_and(|s| s.rpc == Rpc::Request && s.request_id.as_deref() == Some(request_id))
        })
    }
}
