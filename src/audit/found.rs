//! What an audit has to tell at any moment: findings, open calls, lives, what flows from where to where. Reads; changes
//! nothing of what was folded.

use super::finding::{Finding, Findings, Kind};
use super::fold::{Audit, Waits};
use std::collections::BTreeMap;

impl Audit {
    /// What was found so far, in the order of the trace. What still waits is left out: it may be answered yet.
    pub fn findings(&self) -> Findings {
        let mut all = self.found.clone();
        self.unknown_findings(&mut all);
        self.need_findings(&mut all);
        all.sort();
        all
    }

    /// Calls that wait for an answer where the trace ends.
    pub fn unanswered(&self) -> usize {
        self.waits.values().filter(|w| matches!(w, Waits::Call(_))).count() + self.shadowed.len()
    }

    /// Lives of the server, by number, with how each ended.
    pub fn lives(&self) -> BTreeMap<u32, (bool, Option<&str>)> {
        self.lives.iter().map(|(n, l)| (*n, (l.http, l.ended.as_deref()))).collect()
    }

    /// Who makes state (`create_basket → basket_id`) and who uses it (`add_item ← basket_id`), in a line each; what only
    /// lists makes nothing.
    pub fn flows(&self) -> (String, String) {
        let names = |keys: &BTreeMap<u32, u64>| {
            keys.keys().map(|n| self.name_of(*n)).collect::<Vec<_>>().join(", ")
        };
        let makes = self.tools.iter().filter(|t| !t.makes.is_empty() && !t.reads && !t.repeats);
        let makes: Vec<String> =
            makes.map(|t| format!("{} → {}", t.name, names(&t.makes))).collect();
        let uses = self.tools.iter().filter(|t| !t.uses.is_empty());
        let uses: Vec<String> = uses.map(|t| format!("{} ← {}", t.name, names(&t.uses))).collect();
        (makes.join(" · "), uses.join(" · "))
    }

    /// Names whose values were replaced when the trace was written.
    pub fn hidden_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.hidden.iter().map(|n| self.name_of(*n)).collect();
        names.sort_unstable();
        names
    }

    /// Tools that a contract names and no call was made of.
    pub fn never_called(&self) -> Vec<&str> {
        let tools = self.options.contracts.iter().flat_map(|c| c.tools.keys());
        tools
            .filter(|t| !self.tools.iter().any(|seen| seen.name == **t && seen.calls > 0))
            .map(String::as_str)
            .collect()
    }

    fn need_findings(&self, all: &mut Findings) {
        for ((what, method), need) in &self.needs {
            let times = match need.count {
                1 => String::new(),
                n => format!(" ({n} times)"),
            };
            let message = format!(
                "{what}: {method}{times}. This needs a connection that stays: do not hurry to make this server stateless"
            );
            let mut f = Finding::new(Kind::NeedsConnection, message).value(method.clone());
            (f.line, f.seq, f.generation) = (need.at.line, need.at.seq, need.at.generation);
            all.add(f);
        }
    }
}
