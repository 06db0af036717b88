//! A jump to something that may not have been read yet: how far it was looked for, so that no turn looks at a place
//! twice while a large file is read.

use crate::recording::rows::Knows;
use crate::recording::timeline::Source;
use crate::tui::timeline::Goto;

pub(super) struct Wanted {
    pub goto: Goto,
    /// Where the selection stood when it was asked for.
    pub at: usize,
    /// Places before this one were looked at.
    pub seen: usize,
    /// Calls among them that waited for their answer then.
    waiting: Vec<usize>,
}

impl Wanted {
    pub fn new(goto: Goto, at: usize) -> Wanted {
        Wanted { goto, at, seen: 0, waiting: Vec::new() }
    }

    /// Places before this one needn't be looked at again: all of them must where the file began anew.
    pub fn seen(&mut self, source: &Source) -> usize {
        if source.range().end < self.seen {
            (self.seen, self.waiting) = (0, Vec::new());
        }
        self.seen
    }

    /// The first thing that went wrong at or after `from`. A call that waited when it was looked at is looked at again
    /// once it matters: when something after it went wrong, as the end of its server, and when all is read.
    pub fn error(
        &mut self,
        source: &Source,
        from: usize,
        knows: &dyn Knows,
        through: bool,
    ) -> Option<usize> {
        let (found, waiting) = source.error_from(self.seen.max(from), knows);
        self.waiting.extend(waiting);
        if found.is_none() && !through {
            return None;
        }
        let lost = self.waiting.iter().copied().find(|i| source.is_error(*i, knows));
        lost.or(found)
    }
}
