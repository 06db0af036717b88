//! The whole ledger's invariants, for `verify` and the screen's verify key.

use super::Inspector;
use super::list::{Judging, overview};
use crate::error::Result;
use crate::judge::State;
use crate::judge::verify::{Expected, Totals, Verified, verify};
use crate::ledger::{LedgerError, Loose, Reader, Row};
use crate::time::Time;
use std::collections::BTreeMap;

/// At most so many requests are named for each kind of problem.
const NAMED: usize = 1_000;

struct Broken {
    duplicates: Vec<(String, u64)>,
    done_bare: Vec<Row>,
    loose: Loose,
}

fn broken(r: &Reader<'_>) -> Result<Broken, LedgerError> {
    Ok(Broken {
        duplicates: r.duplicate_effects(NAMED)?,
        done_bare: r.done_without_effect(NAMED)?,
        loose: r.effects_without_request(NAMED)?,
    })
}

impl Inspector {
    /// Counts and checks the invariants.
    ///
    /// # Errors
    /// Exit 6 when the ledger can't be read; exit 2 without one.
    pub async fn verify(&self, expected: &Expected, strict: bool) -> Result<(Totals, Verified)> {
        let Some(ledger) = &self.ledger else {
            return Err(crate::error::Error::usage(
                "no ledger is attached, so there is nothing to count",
            ));
        };
        let (mut view, found) = ledger.read_async(|r| Ok((overview(r)?, broken(r)?))).await?;
        view.at = Time::now();
        let judging = self.judging(view).await;
        let totals = self.totals(&judging, found, Time::now());
        let verified = verify(&totals, expected, strict);
        Ok((totals, verified))
    }

    fn totals(&self, judging: &Judging, found: Broken, now: Time) -> Totals {
        let counts = self.counts(judging, now);
        let o = &judging.overview;
        let (purged, lost): (Vec<_>, Vec<_>) =
            found.loose.effects.iter().partition(|e| found.loose.is_purged(e));
        let ids = |effects: Vec<&crate::ledger::Effect>| {
            effects.into_iter().filter_map(|e| e.request_id.clone()).collect()
        };
        let unfinished = self.lines(&o.unfinished, judging, now);
        Totals {
            requests: counts.states,
            effects: o.effects,
            duplicate_effects: found.duplicates,
            done_without_effect: found.done_bare.into_iter().map(|r| r.request_id).collect(),
            effect_without_request: ids(lost),
            purged: ids(purged),
            same_hash: o
                .groups
                .values()
                .map(|rows| rows.iter().map(|r| r.request_id.clone()).collect())
                .collect(),
            same_label: Vec::new(),
            unfinished: unfinished
                .into_iter()
                .filter(|l| l.judged.state != State::Done)
                .map(|l| (l.row.request_id, l.judged.state))
                .collect(),
            labels: BTreeMap::new(),
            unread_rows: o.how.as_ref().map_or(0, |h| h.unreadable),
        }
    }
}
