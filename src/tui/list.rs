//! The request list: a window of lines, and a selection that is a request_id.
//!
//! Holds what it was given and asks for more before an edge; never more than a few hundred lines,
//! however many rows the ledger has.

use super::data::{Anchor, Ask, Line, Window};
use crate::time::Time;
use std::collections::HashMap;

/// Rows asked for at once.
const CHUNK: usize = 200;
/// Rows kept of the window.
const KEEP: usize = 600;
/// How near an edge the selection may come before more is asked for.
const EDGE: usize = 60;

/// For how many seconds a row that changed shows it.
pub const CHANGED_S: f64 = 6.0;

/// By what the lines at hand are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// Unfinished ones first, then the newest.
    #[default]
    Newest,
    State,
    Id,
    About,
    Age,
    Effects,
    Verdict,
}

impl Sort {
    /// In the order of the key.
    pub const ALL: [Sort; 7] =
        [Sort::Newest, Sort::State, Sort::Id, Sort::About, Sort::Age, Sort::Effects, Sort::Verdict];
    /// The column's name.
    pub fn word(self) -> &'static str {
        match self {
            Sort::Newest => "newest",
            Sort::State => "state",
            Sort::Id => "request_id",
            Sort::About => "about",
            Sort::Age => "age",
            Sort::Effects => "effects",
            Sort::Verdict => "verdict",
        }
    }
    /// By its name.
    pub fn of(word: &str) -> Option<Sort> {
        Sort::ALL.into_iter().find(|s| s.word() == word)
    }
    fn compare(self, a: &Line, b: &Line) -> std::cmp::Ordering {
        match self {
            Sort::Newest => std::cmp::Ordering::Equal,
            Sort::State => a.judged.state.cmp(&b.judged.state),
            Sort::Id => a.id().cmp(b.id()),
            Sort::About => a.label.cmp(&b.label),
            Sort::Age => b.row.claimed_at.cmp(&a.row.claimed_at),
            Sort::Effects => b.row.effects.len().cmp(&a.row.effects.len()),
            // Worst first.
            Sort::Verdict => a.finding.verdicts.first().cmp(&b.finding.verdicts.first()),
        }
    }
}

/// See the module's head.
#[derive(Debug, Default)]
pub struct Requests {
    /// Unfinished ones, always first.
    pub top: Vec<Line>,
    pub top_total: usize,
    pub rows: Vec<Line>,
    has_newer: bool,
    has_older: bool,
    pub matches: Option<(u64, u64)>,
    /// The selected request_id.
    pub selected: Option<String>,
    /// Where it last was, for when it is gone.
    index: usize,
    pub filter: String,
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
        self.top.len() + self.rows.len()
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
        self.top.get(index).or_else(|| self.rows.get(index.checked_sub(self.top.len())?))
    }
    fn place(&self, index: usize) -> usize {
        self.order.get(index).map_or(index, |i| *i as usize)
    }
    /// All lines in order.
    pub fn iter(&self) -> impl Iterator<Item = &Line> {
        (0..self.len()).filter_map(|i| self.get(i))
    }
    /// By what the lines are sorted, and whether the order is turned round.
    pub fn sorted(&self) -> (Sort, bool) {
        (self.sort, self.turned)
    }
    /// Sorts the lines at hand; the selection stays on its request.
    pub fn set_sort(&mut self, sort: Sort, turned: bool) {
        (self.sort, self.turned) = (sort, turned);
        self.arrange();
        match self.position() {
            _ if !self.chosen => self.select_index(0),
            Some(at) => self.index = at,
            None => {}
        }
    }
    fn arrange(&mut self) {
        self.order.clear();
        if self.sort == Sort::Newest && !self.turned {
            return;
        }
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        let sort = self.sort;
        order.sort_by(|a, b| match (self.unsorted(*a as usize), self.unsorted(*b as usize)) {
            (Some(a), Some(b)) => sort.compare(a, b),
            _ => std::cmp::Ordering::Equal,
        });
        if self.turned {
            order.reverse();
        }
        self.order = order;
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
    fn mark(&mut self, window: &Window, now: Time) {
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

    fn near_edge(&mut self) -> Option<Ask> {
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

    fn ask(&mut self, anchor: Anchor) -> Ask {
        self.seq += 1;
        self.stale &= !matches!(anchor, Anchor::At(_) | Anchor::Newest);
        let count = match anchor {
            // What is at hand is read again, with room for rows that came before it.
            Anchor::At(_) | Anchor::Newest => (self.rows.len() + EDGE).clamp(CHUNK, KEEP),
            _ => CHUNK,
        };
        let ask = Ask { seq: self.seq, filter: self.filter.clone(), anchor, count };
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

    /// Another filter; whatever was asked for the old one is forgotten.
    pub fn set_filter(&mut self, filter: String) -> Option<Ask> {
        if filter == self.filter {
            return None;
        }
        self.filter = filter;
        Some(self.ask(Anchor::Newest))
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

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    /// Answers as a ledger of rows 1 to `n` would.
    fn answer(ask: &Ask, n: i64) -> Window {
        let (from, down_to) = match ask.anchor {
            Anchor::Newest => (n, 1),
            Anchor::At(id) => (id.min(n), 1),
            Anchor::Older(id) => (id - 1, 1),
            Anchor::Newer(id) => ((id + ask.count as i64).min(n), id + 1),
            Anchor::Oldest => ((ask.count as i64).min(n), 1),
        };
        let ids: Vec<i64> = (down_to..=from).rev().take(ask.count).collect();
        let last = ids.last().copied().unwrap_or(1);
        Window {
            ask: ask.clone(),
            top: Vec::new(),
            top_total: 0,
            has_newer: ids.first().is_some_and(|f| *f < n),
            has_older: last > 1,
            rows: ids.into_iter().map(|i| fixture::done(i, &format!("r{i}"))).collect(),
            matches: None,
        }
    }

    fn drive(list: &mut Requests, mut ask: Option<Ask>, n: i64) {
        while let Some(a) = ask {
            ask = list.take(answer(&a, n), Time(0));
        }
    }

    #[test]
    fn a_walk_over_many_rows_sees_each_once_and_keeps_few() {
        let n = 2_000;
        let mut list = Requests::default();
        let ask = list.refresh();
        drive(&mut list, ask, n);
        let mut seen = vec![list.selected.clone().unwrap()];
        for _ in 1..n {
            let ask = list.step(1);
            drive(&mut list, ask, n);
            seen.push(list.selected.clone().unwrap());
            assert!(list.len() <= KEEP);
        }
        assert_eq!(seen, (1..=n).rev().map(|i| format!("r{i}")).collect::<Vec<_>>());
        for _ in 1..n {
            let ask = list.step(-1);
            drive(&mut list, ask, n);
        }
        assert_eq!(list.selected.as_deref(), Some("r2000"));
        let ask = list.jump(true);
        drive(&mut list, ask, n);
        assert_eq!(list.selected.as_deref(), Some("r1"));
        let ask = list.jump(false);
        drive(&mut list, ask, n);
        assert_eq!(list.position(), Some(0));
    }

    #[test]
    fn new_rows_move_the_list_and_not_the_selection() {
        let mut list = Requests::default();
        let ask = list.refresh();
        drive(&mut list, ask, 10);
        list.select("r7");
        let ask = list.refresh();
        drive(&mut list, ask, 12);
        assert_eq!((list.selected.as_deref(), list.position()), (Some("r7"), Some(5)));
    }

    #[test]
    fn a_place_far_down_survives_new_rows() {
        let mut list = Requests::default();
        let ask = list.refresh();
        drive(&mut list, ask, 2_000);
        for _ in 0..450 {
            let ask = list.step(1);
            drive(&mut list, ask, 2_000);
        }
        let (id, at) = (list.selected.clone(), list.position());
        let ask = list.refresh();
        drive(&mut list, ask, 2_030);
        assert_eq!((list.selected.clone(), list.position()), (id, at.map(|i| i + 30)));
    }

    #[test]
    fn answers_to_old_questions_are_dropped() {
        let mut list = Requests::default();
        let old = list.refresh().unwrap();
        let new = list.set_filter("r1".into()).unwrap();
        assert_eq!(list.take(answer(&old, 5), Time(0)), None);
        assert!(!list.loaded);
        list.take(answer(&new, 5), Time(0));
        assert!(list.loaded);
        // A change that comes while a question is out is asked for afterwards, once.
        let first = list.refresh().unwrap();
        assert!(list.refresh().is_none());
        let again = list.take(answer(&first, 5), Time(0)).unwrap();
        assert_eq!(again.anchor, Anchor::Newest);
        assert_eq!(list.take(answer(&again, 5), Time(0)), None);
    }

    #[test]
    fn sorting_moves_lines_and_not_the_selection() {
        let mut list = Requests::default();
        let ask = list.refresh();
        drive(&mut list, ask, 12);
        list.select("r7");
        list.set_sort(Sort::Id, false);
        let ids = |l: &Requests| l.iter().map(|l| l.id().to_owned()).collect::<Vec<_>>();
        assert_eq!(ids(&list)[..4], ["r1", "r10", "r11", "r12"]);
        assert_eq!((list.selected.as_deref(), list.position()), (Some("r7"), Some(9)));
        list.set_sort(Sort::Id, true);
        assert_eq!((list.position(), ids(&list)[0].as_str()), (Some(2), "r9"));
        list.step(1);
        assert_eq!(list.selected.as_deref(), Some("r6"));
        list.set_sort(Sort::Newest, false);
        assert_eq!(ids(&list)[0], "r12");
    }

    #[test]
    fn a_paused_list_stands_still_and_catches_up() {
        let mut list = Requests::default();
        let ask = list.refresh();
        drive(&mut list, ask, 10);
        assert_eq!(list.pause(true), None);
        assert!(list.refresh().is_none() && list.refresh().is_none() && list.has_missed());
        assert_eq!(list.len(), 10);
        let ask = list.pause(false);
        assert!(ask.is_some());
        drive(&mut list, ask, 14);
        assert_eq!((list.len(), list.has_missed()), (14, false));
    }

    #[test]
    fn what_is_new_or_otherwise_is_marked_for_a_while_and_nothing_at_first() {
        let now = Time(1_000_000_000);
        let mut list = Requests::default();
        let ask = list.refresh().unwrap();
        list.take(answer(&ask, 3), now);
        assert!(!list.is_fresh("r3", now) && list.fades_at().is_none());
        let ask = list.refresh().unwrap();
        let mut window = answer(&ask, 4);
        window.rows[2].row.status = "failed".into();
        list.take(window, now);
        let fresh = |l: &Requests, t: Time| ["r4", "r3", "r2", "r1"].map(|id| l.is_fresh(id, t));
        assert_eq!(fresh(&list, now), [true, false, true, false]);
        let later = now.plus_seconds(CHANGED_S);
        assert_eq!((fresh(&list, later), list.fades_at()), ([false; 4], Some(later)));
        list.fade(later);
        assert_eq!(list.fades_at(), None);
    }

    #[test]
    fn seeking_goes_round() {
        let mut list = Requests::default();
        let ask = list.refresh();
        drive(&mut list, ask, 10);
        let wanted = |l: &Line| l.row.rowid % 4 == 0;
        for id in ["r8", "r4", "r8"] {
            assert!(list.seek(wanted));
            assert_eq!(list.selected.as_deref(), Some(id));
        }
        assert!(!list.seek(|_| false));
    }
}
