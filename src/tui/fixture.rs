//! Small values for the unit tests of this module.

use super::data::Line;
use crate::judge::{Finding, Judged, State, Strength, Verdict};
use crate::ledger::Row;

/// A finished request.
pub fn done(rowid: i64, id: &str) -> Line {
    Line {
        row: Row { rowid, request_id: id.into(), status: "done".into(), ..Row::default() },
        judged: Judged {
            state: State::Done,
            strength: Strength::Stored,
            why: "stored as done".into(),
            judge_again_at: None,
            takeover_since: None,
            takeover_limit_s: None,
            skew_s: None,
        },
        finding: Finding {
            verdicts: vec![Verdict::Finished],
            evidence: Vec::new(),
            next: "a repeat returns the stored result".into(),
        },
        label: String::new(),
        effects: Some(0),
    }
}
