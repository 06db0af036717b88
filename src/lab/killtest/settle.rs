//! The end of a kill test: waits until the ledger has been still for a while, and counts every trial again. A job
//! that a queue delivers once more comes seconds after the trial that it makes a duplicate of.

use super::{Report, Run, Verdict};
use crate::error::Result;
use crate::lab::effects::Counted;
use std::time::{Duration, Instant};

/// A ledger that others write in may never be still: so long is waited at most, in units of the settle time.
const PATIENCE: u32 = 12;

/// What was seen after the last trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settled {
    /// The last count was made so long after the last trial.
    pub after_s: f64,
    /// Nothing had changed for the settle time then.
    pub still: bool,
    /// Trials that ended with another number of effects than they were first counted with.
    pub late: u64,
    /// Effects that came during the run and name no request.
    pub nameless: u64,
    /// Effects that came during the run under names that are not this run's, or (negative) effects that went.
    pub strange: i64,
    /// What the undisturbed call left, where one was made.
    pub undisturbed: Option<u64>,
}

impl Settled {
    /// Every effect is a trial's or the undisturbed call's, which left one.
    pub fn explains(&self) -> bool {
        let own = self.undisturbed.is_none_or(|n| n == 1);
        self.still && own && self.nameless == 0 && self.strange == 0
    }
}

impl Run {
    /// What the ledger holds in all; nothing, while there is none to read.
    pub(super) async fn before(&self) -> Result<Counted> {
        match &self.ledger {
            Some(_) => self.effects(0).counted_or_none().await,
            None => Ok(Counted::default()),
        }
    }

    /// Waits and counts again; the trials get the last word on their effects.
    pub(super) async fn settle(&self, report: &mut Report, before: Counted) -> Result<Settled> {
        let (begin, limit) = (Instant::now(), self.plan.settle * PATIENCE);
        let (mut last, mut since) = (self.total().await?, Instant::now());
        loop {
            let wait = self.plan.settle.saturating_sub(since.elapsed());
            if wait.is_zero() || begin.elapsed() >= limit {
                break;
            }
            tokio::time::sleep(wait.min(Duration::from_millis(250))).await;
            let now = self.total().await?;
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        let still = since.elapsed() >= self.plan.settle;
        let mut settled = Settled { still, ..Settled::default() };
        let mut explained = 0;
        if let (Some(id), Some(_)) = (&self.undisturbed, &self.ledger) {
            let left = self.effects(0).left(id).await?;
            explained += left.rows;
            settled.undisturbed = Some(left.effects);
        }
        for t in &mut report.trials {
            let effects = self.effects(t.n);
            let left = effects.left(&t.request_id).await?;
            explained += left.rows;
            let first = match t.verdict {
                Verdict::Effects(first) => first,
                // Whatever the kill hit: work that was done twice for one request_id was done twice.
                Verdict::Void(_) if left.effects > 1 => {
                    t.verdict = Verdict::Effects(left.effects);
                    continue;
                }
                Verdict::Void(_) => continue,
            };
            if left.effects != first {
                settled.late += 1;
                t.late_from = Some(first);
            }
            t.verdict = match effects.stored(&t.request_id).await {
                Some(word) if word == "running" && left.effects <= 1 => {
                    Verdict::Void("its row still says running: its effects may still come".into())
                }
                _ => Verdict::Effects(left.effects),
            };
        }
        if self.ledger.is_some() {
            let after = self.effects(0).counted_or_none().await?;
            settled.nameless = after.nameless.saturating_sub(before.nameless);
            let more = i128::from(after.effects) - i128::from(before.effects);
            let strange = more - i128::from(explained) - i128::from(settled.nameless);
            settled.strange = i64::try_from(strange).unwrap_or(i64::MAX);
            // Something came while all this was counted.
            settled.still &= after.effects == last;
        }
        settled.after_s = begin.elapsed().as_secs_f64();
        Ok(settled)
    }

    /// A number that changes when effects come or go.
    async fn total(&self) -> Result<u64> {
        match &self.ledger {
            Some(_) => Ok(self.effects(0).counted_or_none().await?.effects),
            None => {
                let mut all = 0;
                for n in 1..=self.plan.trials {
                    all += self.effects(n).total().await?;
                }
                Ok(all)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_trial_explains_leaves_the_proof_open() {
        let good = Settled { still: true, undisturbed: Some(1), ..Settled::default() };
        assert!(good.explains());
        for bad in [
            Settled { still: false, ..good.clone() },
            Settled { nameless: 1, ..good.clone() },
            Settled { strange: 2, ..good.clone() },
            Settled { strange: -1, ..good.clone() },
            Settled { undisturbed: Some(2), ..good.clone() },
            Settled { undisturbed: Some(0), ..good },
        ] {
            assert!(!bad.explains(), "{bad:?}");
        }
    }
}
