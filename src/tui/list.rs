//! The request list: a window of lines, and a selection that is a request_id.
//!
//! Holds what it was given and asks for more before an edge; never more than a few hundred lines,
//! however many rows the ledger has.

mod asking;
mod marks;
mod sort;

use super::data::{Anchor, Ask, Line, Window};
use crate::filter::Mistake;
use crate::time::Time;
pub use sort::Sort;
use std::collections::HashMap;

/// See the module's head.
#[derive(Debug, Default)]
pub struct Requests {
    /// Unfinished ones, always first.
    pub top: Vec<Line>,
    pub top_total: usize,
    pub rows: Vec<Line>,
    /// After the oldest row, once it is at hand.
    tail: Vec<Line>,
    has_newer: bool,
    has_older: bool,
    pub matches: Option<(u64, u64)>,
    /// The selected request_id.
    pub selected: Option<String>,
    /// Where it last was, for when it is gone.
    index: usize,
    /// As it is typed.
    pub filter: String,
    /// What is wrong with it; rows are then those of the last one that could be read.
    pub mistake: Option<Mistake>,
    /// The last one that could be read.
    pub(super) good: String,
    /// The filter of the rows at hand.
    shown: String,
    seq: u64,
    /// A question is out.
    asked: Option<Ask>,
    /// The file changed while it was.
    stale: bool,
    /// Any answer has come yet.
    pub loaded: bool,
    /// A person has chosen; until then the first line, the one that needs them most, is selected.
    chosen: bool,
    sort: Sort,
    turned: bool,
    /// The lines' places when sorted; empty while they stand as they come.
    order: Vec<u32>,
    /// When a line was last seen to have changed.
    changed: HashMap<String, Time>,
    /// Rows stand still.
    paused: bool,
}

impl Requests {
    /// Lines on the screen's list.
    pub fn len(&self) -> usize {
        let tail = if self.has_older { 0 } else { self.tail.len() };
        self.top.len() + self.rows.len() + tail
    }
    /// No line.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The line at `index` of the screen's list.
    pub fn get(&self, index: usize) -> Option<&Line> {
        self.unsorted(self.place(index))
    }
    fn unsorted(&self, index: usize) -> Option<&Line> {
        let (top, rows) = (self.top.len(), self.rows.len());
        match index {
            i if i < top => self.top.get(i),
            i if i < top + rows => self.rows.get(i - top),
            i => self.tail.get(i - top - rows).filter(|_| !self.has_older),
        }
    }
    fn place(&self, index: usize) -> usize {
        self.order.get(index).map_or(index, |i| *i as usize)
    }
    /// All lines in order.
    pub fn iter(&self) -> impl Iterator<Item = &Line> {
        (0..self.len()).filter_map(|i| self.get(i))
    }
    /// Rows stand still.
    pub fn is_paused(&self) -> bool {
        self.paused
    }
    /// Something came in while they did.
    pub fn has_missed(&self) -> bool {
        self.paused && self.stale
    }
    /// Lets rows stand still, or move again; then returns what to ask for.
    pub fn pause(&mut self, paused: bool) -> Option<Ask> {
        self.paused = paused;
        if !paused && self.stale { self.refresh() } else { None }
    }
    /// The selection keeps to the first line.
    pub fn is_following(&self) -> bool {
        !self.chosen
    }
    /// Keeps the selection on the first line, or lets it be.
    pub fn follow(&mut self) -> Option<Ask> {
        if !self.chosen {
            self.chosen = true;
            return None;
        }
        let ask = self.jump(false);
        self.chosen = false;
        ask
    }
    /// Goes to the next line for which `wanted` holds, after the last one from the first again; from a line that isn't
    /// one to the first. `false` when there is none.
    pub fn seek(&mut self, wanted: impl Fn(&Line) -> bool) -> bool {
        let at = self.position().filter(|i| self.get(*i).is_some_and(&wanted));
        let hits: Vec<usize> =
            (0..self.len()).filter(|i| self.get(*i).is_some_and(&wanted)).collect();
        let next = at.and_then(|at| hits.iter().find(|i| **i > at)).or(hits.first());
        let Some(next) = next.copied() else { return false };
        self.chosen = true;
        self.select_index(next);
        true
    }
    /// The rows at hand are not yet those of the filter.
    pub fn is_searching(&self) -> bool {
        self.asked.as_ref().is_some_and(|a| a.filter != self.shown)
    }
    /// There are rows beyond those at hand.
    pub fn more(&self) -> (bool, bool) {
        (self.has_newer, self.has_older)
    }
    /// Where the selected request is, if it is among the lines.
    pub fn position(&self) -> Option<usize> {
        let id = self.selected.as_deref()?;
        // Several rows may have the id: then it is the one that was last moved to.
        if self.get(self.index).is_some_and(|l| l.id() == id) {
            return Some(self.index);
        }
        self.iter().position(|l| l.id() == id)
    }
    /// The selected line.
    pub fn line(&self) -> Option<&Line> {
        self.get(self.position()?)
    }

    /// Moves the selection by `by` lines; returns what to ask for.
    pub fn step(&mut self, by: isize) -> Option<Ask> {
        self.chosen = true;
        let from = self.position().unwrap_or(self.index.min(self.len().saturating_sub(1)));
        let to = from.saturating_add_signed(by).min(self.len().saturating_sub(1));
        self.select_index(to);
        self.near_edge()
    }

    /// Goes to the newest or the oldest line.
    pub fn jump(&mut self, last: bool) -> Option<Ask> {
        self.chosen = true;
        if !last && self.has_newer {
            // What is selected is known when the newest rows are.
            (self.selected, self.index) = (None, 0);
            return Some(self.ask(Anchor::Newest));
        }
        if last && self.has_older {
            return Some(self.ask(Anchor::Oldest));
        }
        self.select_index(if last { self.len().saturating_sub(1) } else { 0 });
        self.near_edge()
    }

    /// Selects a request by name, whether it is among the lines or not.
    pub fn select(&mut self, id: &str) {
        self.chosen = true;
        self.selected = Some(id.to_owned());
        if let Some(at) = self.position() {
            self.index = at;
        }
    }

    /// Selects a request where it was drawn: several rows may have the id. One that has moved since is found by its id.
    pub fn select_at(&mut self, id: &str, at: usize) {
        if self.get(at).is_some_and(|l| l.id() == id) {
            self.index = at;
        }
        self.select(id);
    }

    /// A person acts on the selection: it stays, whatever comes in.
    pub fn choose(&mut self) {
        self.chosen = true;
    }

    fn select_index(&mut self, at: usize) {
        self.index = at;
        if let Some(id) = self.get(at).map(|l| l.id().to_owned()) {
            self.selected = Some(id);
        }
    }
}

#[cfg(test)]
mod tests;
