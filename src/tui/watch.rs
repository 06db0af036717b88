//! The verify pane's state: what the newest count found, whether another is under way, how the sentence has changed
//! since it is watched, which of the named requests is selected. Pure; `runtime::counts` does the counting.

use super::data::{Counted, Verified};
use crate::time::Time;

/// Request ids shown of one problem.
pub const NAMED: usize = 60;
/// Changes of the sentence that are kept.
const TURNS: usize = 5;

/// Where the counting stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Run {
    /// Nobody has asked for it, or nobody sees it.
    #[default]
    Off,
    /// It is under way since then.
    Counting(Time),
    /// Done; the next change of the ledger starts another.
    Waiting,
    /// Something changed; so that watching costs little, it is counted again at this time.
    Resting(Time),
}

/// See the module's head.
#[derive(Debug, Default)]
pub struct Watch {
    /// A person has asked.
    pub asked: bool,
    pub run: Run,
    pub report: Option<Box<Verified>>,
    /// Why the last count failed; the report is then an older one.
    pub trouble: Option<String>,
    /// When the sentence became what it was, oldest first; the last one is the report's.
    pub turns: Vec<(Time, String)>,
    /// The selected one of the named requests.
    pub at: usize,
    /// Counting was asked for and not called off.
    pub(super) on: bool,
}

impl Watch {
    /// The requests that problems name, as far as they are shown, in order: the problem's place and the id.
    pub fn named(&self) -> impl Iterator<Item = (usize, &str)> {
        let problems = self.report.iter().flat_map(|r| r.problems.iter().enumerate());
        problems.flat_map(|(i, p)| p.request_ids.iter().take(NAMED).map(move |id| (i, id.as_str())))
    }

    /// The selected request.
    pub fn selected(&self) -> Option<&str> {
        self.named().nth(self.at).map(|(_, id)| id)
    }

    /// Moves the selection.
    pub fn step(&mut self, by: isize) {
        let last = self.named().count().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
    }

    /// Takes news of the counting in.
    pub fn take(&mut self, news: Counted) {
        match news {
            Counted::Begun(at) => self.run = Run::Counting(at),
            Counted::Again(at) => self.run = Run::Resting(at),
            Counted::Failed(why) => (self.run, self.trouble) = (Run::Waiting, Some(why)),
            Counted::Found(report) => {
                let was = self.selected().map(str::to_owned);
                (self.run, self.trouble) = (Run::Waiting, None);
                if self.turns.last().is_none_or(|(_, s)| *s != report.sentence) {
                    self.turns.push((report.as_of, report.sentence.clone()));
                    let old = self.turns.len().saturating_sub(TURNS);
                    self.turns.drain(..old);
                }
                self.report = Some(report);
                // The selection stays on its request.
                let now = was.and_then(|id| self.named().position(|(_, n)| n == id));
                self.at = now.unwrap_or(self.at);
                self.step(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::data::Problem;

    fn found(at: i64, sentence: &str, ids: &[&str]) -> Counted {
        let problem = |ids: &[&str]| Problem {
            kind: "unfinished".into(),
            error: false,
            detail: String::new(),
            request_ids: ids.iter().map(|i| (*i).to_owned()).collect(),
        };
        Counted::Found(Box::new(Verified {
            sentence: sentence.into(),
            as_of: Time(at),
            problems: ids.chunks(2).map(problem).collect(),
            ..Verified::default()
        }))
    }

    #[test]
    fn the_selection_stays_on_its_request_and_turns_are_few() {
        let mut w = Watch::default();
        w.take(found(0, "a", &["r1", "r2", "r3"]));
        w.step(9);
        assert_eq!(w.selected(), Some("r3"));
        w.take(found(1, "a", &["r0", "r1", "r2", "r3"]));
        assert_eq!((w.selected(), w.turns.len()), (Some("r3"), 1));
        w.take(found(2, "b", &["r1"]));
        assert_eq!((w.selected(), w.turns.len()), (Some("r1"), 2));
        for i in 3..20 {
            w.take(found(i, &format!("s{i}"), &[]));
        }
        assert_eq!((w.selected(), w.turns.len(), w.turns[4].0), (None, 5, Time(19)));
    }

    #[test]
    fn a_count_that_fails_leaves_the_last_one_and_says_so() {
        let mut w = Watch::default();
        w.take(found(0, "exactly once", &[]));
        w.take(Counted::Begun(Time(7)));
        assert_eq!(w.run, Run::Counting(Time(7)));
        w.take(Counted::Failed("locked".into()));
        assert!(w.report.is_some() && w.trouble.as_deref() == Some("locked"));
        w.take(found(1, "exactly once", &[]));
        assert_eq!(w.trouble, None);
    }
}
