//! Which events a filter lets through, found piece by piece, and the steps from one to another: by rows, to an
//! answer, to the stderr around, to what went wrong, to a death.

use super::peek::Peek;
use super::{Judged, Source};
use crate::filter::Filter;
use crate::record::summary::Rpc;
use crate::recording::rows::Knows;
use crate::time::Time;

/// The places that a filter lets through; all of them without one.
#[derive(Debug, Default)]
pub struct Places {
    filter: Filter,
    found: Vec<u32>,
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
            (self.looked, self.found) = (0, Vec::new());
        }
        if self.is_all() {
            self.looked = range.end;
            return false;
        }
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
    /// the first one after.
    pub fn stderr_near(&self, from: usize) -> Option<usize> {
        let generation = self.quick(from)?.generation;
        let is = |i: &usize| {
            self.quick(*i).is_some_and(|q| q.kind == "stderr" && q.generation == generation)
        };
        let range = self.range();
        let before = (range.start..from).rev().take(NEAR).find(is);
        let after = || (from + 1..range.end).take(NEAR).find(is);
        before.or_else(after)
    }

    /// The first thing that went wrong at or after `from`.
    pub fn error_from(&self, from: usize, knows: &dyn Knows) -> Option<usize> {
        let range = self.range();
        (from.max(range.start)..range.end).find(|i| self.is_error(*i, knows))
    }

    /// The next end of a server after `from`, else the first of all.
    pub fn death_after(&self, from: usize) -> Option<usize> {
        let is = |i: &usize| self.quick(*i).is_some_and(|q| q.kind == "exit");
        let range = self.range();
        (from + 1..range.end).find(is).or_else(|| range.clone().find(is))
    }

    /// The newest `tools/call` of a request; looks back over a bounded stretch.
    pub fn call_of(&self, request_id: &str) -> Option<usize> {
        let calls =
            self.range().rev().take(NEAR).filter(|i| self.quick(*i).is_some_and(|q| q.is_call));
        calls.into_iter().find(|i| {
            let text = self.entry(*i).and_then(|e| e.raw().cloned()).unwrap_or_default();
            let s = crate::record::summary::of(&String::from_utf8_lossy(&text));
            s.is_some_and(|s| s.rpc == Rpc::Request && s.request_id.as_deref() == Some(request_id))
        })
    }
}
