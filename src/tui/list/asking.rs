//! Which rows are asked for, and what becomes of the answers: one question at a time, answers to older ones are
//! dropped, the window stays bounded.

use super::{Anchor, Ask, Requests, Window};
use crate::filter::parse;
use crate::time::Time;

/// Rows asked for at once.
const CHUNK: usize = 200;
/// Rows kept of the window.
pub(super) const KEEP: usize = 600;
/// How near an edge the selection may come before more is asked for.
const EDGE: usize = 60;

impl Requests {
    pub(super) fn near_edge(&mut self) -> Option<Ask> {
        if self.asked.is_some() {
            return None;
        }
        let at = self.place(self.index);
        let last = self.rows.last().map(|l| l.row.rowid);
        let first = self.rows.first().map(|l| l.row.rowid);
        match (first, last) {
            (_, Some(last)) if self.has_older && at + EDGE >= self.len() => {
                Some(self.ask(Anchor::Older(last)))
            }
            (Some(first), _) if self.has_newer && at < self.top.len() + EDGE => {
                Some(self.ask(Anchor::Newer(first)))
            }
            _ => None,
        }
    }

    pub(super) fn ask(&mut self, anchor: Anchor) -> Ask {
        self.seq += 1;
        self.stale &= !matches!(anchor, Anchor::At(_) | Anchor::Newest);
        let count = match anchor {
            // What is at hand is read again, with room for rows that came before it.
            Anchor::At(_) | Anchor::Newest => (self.rows.len() + EDGE).clamp(CHUNK, KEEP),
            _ => CHUNK,
        };
        let ask = Ask { seq: self.seq, filter: self.good.clone(), anchor, count };
        self.asked = Some(ask.clone());
        ask
    }

    /// The same place, read again: at the start, and when the ledger changed. One question at a time.
    pub fn refresh(&mut self) -> Option<Ask> {
        if self.asked.is_some() || (self.paused && self.loaded) {
            self.stale = true;
            return None;
        }
        let anchor = match self.rows.first() {
            Some(first) if self.has_newer => Anchor::At(first.row.rowid),
            _ => Anchor::Newest,
        };
        Some(self.ask(anchor))
    }

    /// Another filter; whatever was asked for the old one is forgotten. While it has a mistake the rows stay.
    pub fn set_filter(&mut self, filter: String) -> Option<Ask> {
        self.filter = filter;
        self.mistake = parse(&self.filter).err();
        if self.mistake.is_some() || self.good == self.filter {
            return None;
        }
        self.good.clone_from(&self.filter);
        Some(self.ask(Anchor::Newest))
    }

    /// The filter to begin with, before anything is asked.
    pub fn begin_with(&mut self, filter: &str) {
        if parse(filter).is_ok() {
            (self.filter, self.good) = (filter.to_owned(), filter.to_owned());
        }
    }

    /// A question can't be answered now. The next change asks again.
    pub fn give_up(&mut self, seq: u64) {
        if self.asked.as_ref().is_some_and(|a| a.seq == seq) {
            self.asked = None;
        }
    }

    /// Takes an answer; one to an older question is dropped. Returns what to ask next.
    pub fn take(&mut self, window: Window, now: Time) -> Option<Ask> {
        if self.asked.as_ref() != Some(&window.ask) {
            return None;
        }
        self.mark(&window, now);
        self.asked = None;
        self.loaded = true;
        self.shown.clone_from(&window.ask.filter);
        (self.top, self.top_total, self.matches) = (window.top, window.top_total, window.matches);
        self.tail = window.tail;
        let oldest = window.ask.anchor == Anchor::Oldest;
        match window.ask.anchor {
            Anchor::Newest | Anchor::At(_) => {
                self.rows = window.rows;
                (self.has_newer, self.has_older) = (window.has_newer, window.has_older);
            }
            Anchor::Oldest => {
                self.rows = window.rows;
                (self.has_newer, self.has_older) = (window.has_newer, false);
            }
            Anchor::Older(_) => {
                self.rows.extend(window.rows);
                self.has_older = window.has_older;
                let extra = self.rows.len().saturating_sub(KEEP);
                self.rows.drain(..extra);
                self.has_newer |= extra > 0;
            }
            Anchor::Newer(_) => {
                self.rows.splice(..0, window.rows);
                self.has_newer = window.has_newer;
                self.has_older |= self.rows.len() > KEEP;
                self.rows.truncate(KEEP);
            }
        }
        self.arrange();
        match self.position() {
            _ if oldest => self.select_index(self.len().saturating_sub(1)),
            _ if !self.chosen => self.select_index(0),
            Some(at) => self.index = at,
            None if self.selected.is_none() => self.select_index(0),
            // A filter hides it: select what is in its place. Otherwise the selection stays on a request
            // that is gone, whose detail says so.
            None if !self.filter.is_empty() => {
                self.select_index(self.index.min(self.len().saturating_sub(1)))
            }
            None => {}
        }
        if self.stale && !self.paused { self.refresh() } else { self.near_edge() }
    }
}
