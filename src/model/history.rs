//! What was seen happening to rows while watching: claimed, taken over, done, released, each with its
//! time. Fed with successive reads; keeps nothing of what it did not see.

use crate::ledger::Row;
use crate::time::Time;
use std::collections::{HashMap, HashSet, VecDeque};

/// How many requests are remembered; the longest known go first, those that are done before all. Requests that have
/// calls stay: whether their row ever was there decides what is said of them.
const KEPT: usize = 3_000;
/// Steps of one request that are kept: the first, and the newest.
const STEPS: usize = 64;

/// What happened to a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Claimed by this owner.
    Claimed(String),
    /// Another owner (or the same one again) claimed it.
    TakenOver { from: String, to: String },
    /// It had this status when it was first seen.
    FirstSeen(String),
    /// Finished.
    Done,
    /// Another status word.
    Status(String),
    /// An effect of it appeared: so many now.
    Effects(u64),
    /// The row is gone and was not done: the work raised an error, or somebody removed it.
    Released,
    /// The row is gone and was done: swept.
    Swept,
}

impl Change {
    /// For people. May hold foreign text.
    pub fn words(&self) -> String {
        match self {
            Change::Claimed(owner) => format!("claimed by {owner}"),
            Change::TakenOver { from, to } if from == to => format!("claimed again by {to}"),
            Change::TakenOver { from, to } => format!("taken over by {to} from {from}"),
            Change::FirstSeen(status) => format!("first seen here as {status}"),
            Change::Done => "done".into(),
            Change::Status(word) => format!("status became {word}"),
            Change::Effects(n) => format!("{n} effect{} now", if *n == 1 { "" } else { "s" }),
            Change::Released => "released: the row is gone before it was done".into(),
            Change::Swept => "swept: the row is gone after it was done".into(),
        }
    }
}

/// One step of a row's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The ledger's own time of it where it has one (a claim), else when it was noticed.
    pub at: Time,
    /// What.
    pub change: Change,
}

#[derive(Debug, Clone)]
struct Seen {
    /// When the newest read that told of it began.
    read_at: Time,
    /// The first read of this life of the row.
    since: Time,
    rowid: i64,
    status: String,
    owner: String,
    claimed_at: Option<Time>,
    effects: u64,
    gone: Option<Time>,
    steps: Vec<Step>,
    /// Steps after the first that were let go.
    dropped: u64,
}

/// The histories of all rows that were seen.
#[derive(Debug, Clone, Default)]
pub struct Histories {
    rows: HashMap<String, Seen>,
    order: VecDeque<String>,
    pinned: HashSet<String>,
    let_go: u64,
}

impl Histories {
    /// A row as it was in a read that began at `read_at`. One that is older than what is known says nothing.
    pub fn observe(&mut self, row: &Row, read_at: Time) {
        if row.same.is_some() {
            // Several rows under one name: a change of one would pass for a change of another.
            return;
        }
        let now = Seen {
            read_at,
            since: read_at,
            rowid: row.rowid,
            status: row.status.clone(),
            owner: row.owner.clone().unwrap_or_default(),
            claimed_at: row.claimed_at,
            effects: row.effects.len() as u64,
            gone: None,
            steps: Vec::new(),
            dropped: 0,
        };
        match self.rows.get_mut(&row.request_id) {
            Some(old) if read_at < old.read_at => {}
            Some(old) => {
                let mut steps = std::mem::take(&mut old.steps);
                steps.extend(changes(old, &now, read_at));
                let since = if old.gone.is_some() { read_at } else { old.since };
                let dropped = old.dropped;
                *old = Seen { steps, since, dropped, ..now };
                old.bound();
            }
            None => {
                let steps = first(&now, read_at);
                self.rows.insert(row.request_id.clone(), Seen { steps, ..now });
                self.order.push_back(row.request_id.clone());
                self.bound();
            }
        }
    }

    /// The history of this request stays, whatever else is seen.
    pub fn pin(&mut self, request_id: &str) {
        if !self.pinned.contains(request_id) {
            self.pinned.insert(request_id.to_owned());
        }
    }

    /// How many requests' histories were let go.
    pub fn let_go(&self) -> u64 {
        self.let_go
    }

    /// How many steps after the first were let go of this request's history.
    pub fn dropped(&self, request_id: &str) -> u64 {
        self.rows.get(request_id).map_or(0, |s| s.dropped)
    }

    /// Lets the longest known go. What is not done gets another turn, a few times.
    fn bound(&mut self) {
        let mut turns = 64;
        while self.order.len() > KEPT + self.pinned.len() {
            let Some(oldest) = self.order.pop_front() else { return };
            let open = |s: &Seen| s.status != "done" && turns > 0;
            if self.pinned.contains(&oldest) || self.rows.get(&oldest).is_some_and(open) {
                self.order.push_back(oldest);
                turns -= 1;
            } else {
                self.rows.remove(&oldest);
                self.let_go += 1;
            }
        }
    }

    /// The request was looked for in a read that began at `read_at` and has no row.
    pub fn missing(&mut self, request_id: &str, read_at: Time) {
        let newer = |s: &&mut Seen| s.read_at <= read_at;
        let Some(seen) = self.rows.get_mut(request_id).filter(newer) else { return };
        seen.read_at = read_at;
        if seen.gone.is_some() {
            return;
        }
        seen.gone = Some(read_at);
        let change = if seen.status == "done" { Change::Swept } else { Change::Released };
        seen.steps.push(Step { at: read_at, change });
        seen.bound();
    }

    /// All rows whose rowid lies in `from..=to`, as they were read: those that were seen there before and
    /// are not among them are gone (a rowid may belong to another request by now).
    pub fn window(&mut self, rows: &[Row], from: i64, to: i64, read_at: Time) {
        let present: HashSet<&str> = rows.iter().map(|r| r.request_id.as_str()).collect();
        let gone: Vec<String> = self
            .rows
            .iter()
            .filter(|(id, s)| {
                s.gone.is_none() && (from..=to).contains(&s.rowid) && !present.contains(id.as_str())
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in gone {
            self.missing(&id, read_at);
        }
        for row in rows {
            self.observe(row, read_at);
        }
    }

    /// What was seen of this request, oldest first.
    pub fn of(&self, request_id: &str) -> &[Step] {
        self.rows.get(request_id).map_or(&[], |s| &s.steps)
    }

    /// The newest claim that was seen of another owner than the one that was seen last.
    pub fn other_owner_at(&self, request_id: &str) -> Option<Time> {
        let seen = self.rows.get(request_id)?;
        let by_other = |s: &&Step| match &s.change {
            Change::Claimed(owner) | Change::TakenOver { to: owner, .. } => *owner != seen.owner,
            _ => false,
        };
        seen.steps.iter().rev().find(by_other).map(|s| s.at)
    }

    /// The first read that saw the row in its present life, or in its last one.
    pub fn there_since(&self, request_id: &str) -> Option<Time> {
        Some(self.rows.get(request_id)?.since)
    }

    /// The first read that saw it done, in its present claim.
    pub fn done_since(&self, request_id: &str) -> Option<Time> {
        let seen = self.rows.get(request_id).filter(|s| s.gone.is_none() && s.status == "done")?;
        let was = seen.steps.iter().rev().find_map(|s| match &s.change {
            Change::Done => Some(Some(s.at)),
            Change::FirstSeen(status) if status == "done" => Some(Some(s.at)),
            Change::Claimed(_) | Change::TakenOver { .. } => Some(None),
            _ => None,
        });
        was.flatten()
    }

    /// A row that is gone was done when it was last seen.
    pub fn went_done(&self, request_id: &str) -> bool {
        self.rows.get(request_id).is_some_and(|s| s.gone.is_some() && s.status == "done")
    }

    /// Since when a row that was there is missed.
    pub fn vanished_at(&self, request_id: &str) -> Option<Time> {
        self.rows.get(request_id)?.gone
    }
}

impl Seen {
    fn bound(&mut self) {
        let more = self.steps.len().saturating_sub(STEPS);
        self.steps.drain(1..=more);
        self.dropped += more as u64;
    }
}

fn first(now: &Seen, read_at: Time) -> Vec<Step> {
    let mut steps = Vec::new();
    if let Some(at) = now.claimed_at {
        steps.push(Step { at, change: Change::Claimed(now.owner.clone()) });
    }
    if now.status != "running" || now.claimed_at.is_none() {
        steps.push(Step { at: read_at, change: Change::FirstSeen(now.status.clone()) });
    }
    steps
}

fn changes(old: &Seen, now: &Seen, read_at: Time) -> Vec<Step> {
    let mut steps = Vec::new();
    let claim_at = now.claimed_at.unwrap_or(read_at);
    if old.gone.is_some() {
        steps.push(Step { at: claim_at, change: Change::Claimed(now.owner.clone()) });
    } else if (&old.owner, old.claimed_at) != (&now.owner, now.claimed_at) {
        let change = Change::TakenOver { from: old.owner.clone(), to: now.owner.clone() };
        steps.push(Step { at: claim_at, change });
    }
    if old.status != now.status && !(old.gone.is_some() && now.status == "running") {
        let change = match now.status.as_str() {
            "done" => Change::Done,
            word => Change::Status(word.to_owned()),
        };
        steps.push(Step { at: read_at, change });
    }
    if old.effects != now.effects {
        steps.push(Step { at: read_at, change: Change::Effects(now.effects) });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{effect, row, t};

    fn words(h: &Histories, id: &str) -> Vec<(Time, String)> {
        h.of(id).iter().map(|s| (s.at, s.change.words())).collect()
    }

    #[test]
    fn a_takeover_that_finishes_is_told_with_its_times() {
        let mut h = Histories::default();
        h.observe(&row("r", "running", "A", 1.0), t(2.0));
        h.observe(&row("r", "running", "A", 1.0), t(3.0));
        h.observe(&row("r", "running", "B", 9.0), t(10.0));
        let done = Row { effects: vec![effect("r", "x")], ..row("r", "done", "B", 9.0) };
        h.observe(&done, t(12.0));
        assert_eq!(
            words(&h, "r"),
            [
                (t(1.0), "claimed by A".into()),
                (t(9.0), "taken over by B from A".into()),
                (t(12.0), "done".into()),
                (t(12.0), "1 effect now".into()),
            ]
        );
        assert_eq!(h.vanished_at("r"), None);
        assert_eq!((h.other_owner_at("r"), h.other_owner_at("x")), (Some(t(1.0)), None));
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_was_let_go_is_counted() {
        let mut h = Histories::default();
        h.pin("called");
        h.observe(&row("called", "done", "A", 1.0), t(2.0));
        h.observe(&row("open", "running", "A", 1.0), t(2.0));
        let more = 5 * KEPT as u64;
        for i in 0..more {
            h.observe(&row(&format!("r{i}"), "done", "A", 1.0), t(3.0));
        }
        assert!(h.rows.len() <= KEPT + 1 && h.rows.len() == h.order.len());
        assert_eq!(h.let_go(), more + 2 - h.rows.len() as u64);
        assert!(!h.of("called").is_empty() && !h.of("open").is_empty() && h.of("r0").is_empty());
        let newest = format!("r{}", more - 1);
        assert!(!h.of(&newest).is_empty());
        for i in 0..100 {
            h.observe(&row("open", "running", &format!("o{i}"), 5.0 + f64::from(i)), t(900.0));
        }
        let steps = h.of("open");
        assert_eq!((steps.len(), h.dropped("open")), (STEPS, 101 - STEPS as u64));
        assert_eq!(steps[0].change, Change::Claimed("A".into()));
        assert!(matches!(&steps[STEPS - 1].change, Change::TakenOver { to, .. } if to == "o99"));
    }

    #[test]
    fn a_row_that_goes_is_released_or_swept_and_may_come_back() {
        let mut h = Histories::default();
        h.observe(&row("r", "running", "A", 1.0), t(2.0));
        h.missing("r", t(3.0));
        h.missing("r", t(4.0));
        assert_eq!(h.vanished_at("r"), Some(t(3.0)));
        h.observe(&row("r", "running", "A", 5.0), t(6.0));
        assert_eq!(h.vanished_at("r"), None);
        let told: Vec<Change> = h.of("r").iter().map(|s| s.change.clone()).collect();
        let claimed = || Change::Claimed("A".into());
        assert_eq!(told, [claimed(), Change::Released, claimed()]);
        h.observe(&row("d", "done", "A", 1.0), t(2.0));
        h.missing("d", t(3.0));
        assert_eq!(h.of("d").last().map(|s| &s.change), Some(&Change::Swept));
        h.missing("never seen", t(3.0));
        assert!(h.of("never seen").is_empty());
    }

    #[test]
    fn an_older_read_turns_nothing_back() {
        let mut h = Histories::default();
        h.observe(&row("r", "running", "A", 1.0), t(2.0));
        h.observe(&row("r", "done", "A", 1.0), t(9.0));
        // A pass that began earlier and came through later.
        h.observe(&row("r", "running", "A", 1.0), t(5.0));
        h.missing("r", t(5.0));
        assert_eq!(h.of("r").last().map(|s| &s.change), Some(&Change::Done));
        h.missing("r", t(10.0));
        h.observe(&row("r", "running", "A", 1.0), t(9.5));
        assert_eq!((h.vanished_at("r"), h.there_since("r")), (Some(t(10.0)), Some(t(2.0))));
        h.observe(&row("r", "running", "A", 11.0), t(12.0));
        assert_eq!((h.vanished_at("r"), h.there_since("r")), (None, Some(t(12.0))));
    }

    #[test]
    fn a_window_tells_what_is_gone_from_it_and_nothing_about_the_rest() {
        let at = |rowid, id: &str| Row { rowid, ..row(id, "running", "A", 1.0) };
        let mut h = Histories::default();
        h.window(&[at(3, "c"), at(2, "b"), at(1, "a")], 1, 3, t(2.0));
        // `b` is gone and its rowid was given to another request.
        h.window(&[at(3, "c"), at(2, "new")], 2, 3, t(5.0));
        assert_eq!(h.vanished_at("b"), Some(t(5.0)));
        assert!(!h.went_done("b"));
        assert_eq!(
            (h.vanished_at("a"), h.vanished_at("c"), h.vanished_at("new")),
            (None, None, None)
        );
    }

    #[test]
    fn memory_is_bounded() {
        let mut h = Histories::default();
        for i in 0..KEPT + 10 {
            h.observe(&row(&format!("r{i}"), "done", "A", 1.0), t(2.0));
        }
        assert_eq!((h.rows.len(), h.order.len()), (KEPT, KEPT));
        assert!(h.of("r0").is_empty() && !h.of(&format!("r{}", KEPT + 9)).is_empty());
    }
}
