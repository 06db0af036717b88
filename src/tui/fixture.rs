//! Small values for the unit tests of this module.

use super::data::Line;
use crate::judge::{Facts, LedgerView, OwnerView, Rules, judge_row};
use crate::ledger::Row;
use crate::time::Time;

/// A finished request.
pub fn done(rowid: i64, id: &str) -> Line {
    let row = Row { rowid, request_id: id.into(), status: "done".into(), ..Row::default() };
    stored(row)
}

/// What a stored row alone comes to: only judgement says so.
pub fn stored(row: Row) -> Line {
    let now = Time::default();
    let judged = judge_row(&row, &OwnerView::default(), Rules::default(), None, None, now);
    let facts = Facts {
        request_id: row.request_id.clone(),
        ledger: LedgerView::Read(now),
        judged: Some(judged),
        row: Some(row),
        ..Facts::default()
    };
    Line::new(&facts, now)
}
