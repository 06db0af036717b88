//! Which lines have changed a moment ago: marked for a few seconds, then the mark goes by itself.

use super::{Anchor, Line, Requests, Window};
use crate::time::Time;
use std::collections::HashMap;

/// For how many seconds a row that changed shows it.
pub const CHANGED_S: f64 = 6.0;

impl Requests {
    /// Whether a line changed a moment ago.
    pub fn is_fresh(&self, id: &str, now: Time) -> bool {
        self.changed.get(id).is_some_and(|t| t.age_at(now) < CHANGED_S)
    }
    /// When the next mark of a change goes.
    pub fn fades_at(&self) -> Option<Time> {
        self.changed.values().map(|t| t.plus_seconds(CHANGED_S)).min()
    }
    /// Forgets marks that are over.
    pub fn fade(&mut self, now: Time) {
        self.changed.retain(|_, t| t.age_at(now) < CHANGED_S);
    }
    pub(super) fn mark(&mut self, window: &Window, now: Time) {
        let again = matches!(window.ask.anchor, Anchor::Newest | Anchor::At(_));
        if !self.loaded || !again || self.shown != window.ask.filter {
            return;
        }
        // What is stored and nothing else: a judgement changes with what is known, not with the row.
        type Face<'a> = (&'a str, Option<&'a str>, Option<Time>, usize);
        fn face(l: &Line) -> Face<'_> {
            (&l.row.status, l.row.owner.as_deref(), l.row.claimed_at, l.row.effects.len())
        }
        let old: HashMap<&str, Face<'_>> =
            self.top.iter().chain(&self.rows).map(|l| (l.id(), face(l))).collect();
        let newest = self.top.iter().chain(&self.rows).map(|l| l.row.rowid).max().unwrap_or(0);
        let changed: Vec<String> = window
            .top
            .iter()
            .chain(&window.rows)
            .filter(|l| match old.get(l.id()) {
                Some(before) => *before != face(l),
                None => l.row.rowid > newest || l.row.rowid == 0,
            })
            .map(|l| l.id().to_owned())
            .collect();
        self.changed.extend(changed.into_iter().map(|id| (id, now)));
    }
}
