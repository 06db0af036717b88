//! The order of the lines at hand: by what they are sorted, and where each then stands. The selection stays on its
//! request.

use super::{Line, Requests};

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

impl Requests {
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
    pub(super) fn arrange(&mut self) {
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
}
