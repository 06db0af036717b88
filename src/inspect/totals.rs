//! The whole ledger's invariants, for `verify` and the screen's verify key: passes over the tables on the
//! ledger's thread, in bounded memory however many rows there are.

use super::list::{Judging, Overview};
use super::{Inspector, owner_view};
use crate::error::Result;
use crate::judge::State;
use crate::judge::verify::{Expected, Found, Table, Totals, Verified, verify};
use crate::ledger::{
    DONE, How, Labels, Ledger, LedgerError, Loose, Named, Reader, Row, Stamp, Survey, Trouble,
};
use crate::time::Time;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// At most so many requests are named for each kind of problem; the rest is counted.
const NAMED: usize = 1_000;
/// Rows looked at in one piece of the pass: about 5 ms.
const PIECE: usize = 4_000;
/// A ledger with no more rows is looked at as a whole, in one consistent read.
const FIRST: usize = 20_000;
/// How long the whole check may take: a hundred million rows on a slow disk.
const LIMIT: Duration = Duration::from_secs(1800);

/// How long the first look waits for a writer's pause before the ledger counts as locked.
const PAUSE: Duration = Duration::from_millis(1500);

/// What the passes found, not judged yet.
struct Pass {
    by_status: BTreeMap<String, u64>,
    rows: u64,
    unfinished: Vec<Row>,
    owners: crate::judge::OwnerView,
    labels: Option<Labels>,
    noun: String,
    duplicates: Named<(String, u64)>,
    done_bare: Named<String>,
    tables: Vec<Table>,
    loose: Loose,
    shared: Named<(String, u64)>,
    told_apart: bool,
    same_hash: Named<Vec<String>>,
    how: How,
}

fn pass(r: &Reader<'_>, wanted: &[String]) -> Result<Pass, LedgerError> {
    let survey = r.survey_whole(FIRST, PIECE)?;
    Ok(Pass {
        owners: owner_view(&survey),
        by_status: survey.by_status,
        rows: survey.rows,
        unfinished: survey.unfinished,
        labels: labels(r, wanted)?,
        noun: r.effects_noun().to_owned(),
        duplicates: r.repeated_effects(NAMED)?,
        done_bare: r.done_bare(NAMED)?,
        tables: tables(r)?,
        loose: r.loose(NAMED)?,
        shared: r.shared_ids(NAMED)?,
        told_apart: r.all_effects_are_told_apart()?,
        same_hash: r.equal_hashes(NAMED)?,
        how: r.how(),
    })
}

/// Where several tables hold effects.
fn tables(r: &Reader<'_>) -> Result<Vec<Table>, LedgerError> {
    let bare = r.done_bare_in_each()?;
    if bare.is_empty() {
        return Ok(Vec::new());
    }
    let effects = r.effects_by_table()?.into_iter().zip(bare);
    Ok(effects.map(|((name, effects), (_, bare))| Table { name, effects, bare }).collect())
}

fn labels(r: &Reader<'_>, wanted: &[String]) -> Result<Option<Labels>, LedgerError> {
    if r.has_effects_table() { r.labels(wanted, NAMED).map(Some) } else { Ok(None) }
}

/// The next piece of a survey; a check has the time to wait for a busy writer's pause.
async fn piece(ledger: &Ledger, survey: &Survey) -> Result<Survey, LedgerError> {
    let start = survey.next_piece();
    let job = move |r: &Reader<'_>| {
        let mut piece = start.clone();
        r.survey(&mut piece, FIRST)?;
        Ok(piece)
    };
    ledger.read_within(LIMIT, job).await
}

/// The same for a large ledger, question by question: whoever reads a window or a detail waits for one of them at
/// most. What is written meanwhile is counted as it was or as it is, and then not all is of one moment.
async fn pass_in_turns(ledger: &Ledger, wanted: Vec<String>) -> Result<Pass, LedgerError> {
    let before = Stamp::of(ledger.path());
    let mut survey = Survey::keeping(NAMED);
    while !survey.complete {
        survey.absorb(piece(ledger, &survey).await?);
    }
    let loose = ledger.read_within(LIMIT, |r| r.loose(NAMED)).await?;
    let duplicates = ledger.read_within(LIMIT, |r| r.repeated_effects(NAMED)).await?;
    let done_bare = ledger.read_within(LIMIT, |r| r.done_bare(NAMED)).await?;
    let tables = ledger.read_within(LIMIT, tables).await?;
    let same_hash = ledger.read_within(LIMIT, |r| r.equal_hashes(NAMED)).await?;
    let shared =
        ledger.read_within(LIMIT, |r| Ok((r.shared_ids(NAMED)?, r.all_effects_are_told_apart()?)));
    let (shared, told_apart) = shared.await?;
    let (labels, noun, mut how) = ledger
        .read_within(LIMIT, move |r| {
            Ok((labels(r, &wanted)?, r.effects_noun().to_owned(), r.how()))
        })
        .await?;
    how.whole &= before.same_files(&Stamp::of(ledger.path()));
    Ok(Pass {
        owners: owner_view(&survey),
        by_status: survey.by_status,
        rows: survey.rows,
        unfinished: survey.unfinished,
        labels,
        noun,
        duplicates,
        done_bare,
        tables,
        loose,
        shared,
        told_apart,
        same_hash,
        how,
    })
}

/// It is known where effects are, or there are none.
///
/// # Errors
/// Exit 2 with the tables that could hold them, where several could.
pub async fn decided(ledger: &Ledger) -> Result<()> {
    let begin = Instant::now();
    let undecided = loop {
        match ledger.read_async(|r| Ok(r.schema().undecided.clone())).await {
            // A writer that commits all the time leaves short pauses; somebody who holds the file leaves none.
            Err(e) if matches!(e.trouble, Trouble::Locked { .. }) && begin.elapsed() < PAUSE => {}
            read => break read?,
        }
    };
    if undecided.is_empty() {
        return Ok(());
    }
    let names = undecided.join(", ");
    Err(crate::error::Error::usage(format!(
        "several tables have a request_id beside the requests: {names}; which of them hold effects is not said, so nothing can be counted"
    ))
    .hint("name each that does: --effects TABLE (repeatable)"))
}

impl Inspector {
    /// Counts and checks the invariants.
    ///
    /// # Errors
    /// Exit 6 when the ledger can't be read; exit 2 without one.
    pub async fn verify(&self, expected: &Expected, strict: bool) -> Result<(Totals, Verified)> {
        let (totals, verified, _) = self.verify_with(expected, strict, false).await?;
        Ok((totals, verified))
    }

    /// [`Inspector::verify`], and how the ledger was read. `at_once`: nobody else waits for the ledger's thread, so a
    /// large one is read in one go too, and all numbers are of one moment.
    ///
    /// # Errors
    /// The same.
    pub async fn verify_with(
        &self,
        expected: &Expected,
        strict: bool,
        at_once: bool,
    ) -> Result<(Totals, Verified, How)> {
        let Some(ledger) = &self.ledger else {
            return Err(crate::error::Error::usage(
                "no ledger is attached, so there is nothing to count",
            ));
        };
        let wanted: Vec<String> = expected.labels.iter().map(|(l, _)| l.clone()).collect();
        decided(ledger).await?;
        let first = piece(ledger, &Survey::keeping(0)).await?;
        let found = if first.complete || at_once {
            ledger.read_within(LIMIT, move |r| pass(r, &wanted)).await?
        } else {
            pass_in_turns(ledger, wanted).await?
        };
        let how = found.how.clone();
        let totals = self.totals(ledger, found).await?;
        let verified = verify(&totals, expected, strict);
        Ok((totals, verified, how))
    }

    /// Judged states of all rows of a ledger of which not all unfinished ones were kept: one more pass, so that a
    /// thousand abandoned rows are not called running for want of their owner and their age.
    async fn states(
        &self,
        ledger: &Ledger,
        judging: &Judging,
        now: Time,
    ) -> Result<BTreeMap<State, u64>> {
        let mut states = BTreeMap::new();
        let mut scan = Survey::keeping(FIRST);
        while !scan.complete {
            let mut found = piece(ledger, &scan).await?;
            for line in self.lines(&std::mem::take(&mut found.unfinished), judging, now) {
                *states.entry(line.judged.state).or_default() += 1;
            }
            scan.absorb(found);
        }
        if let Some(n @ 1..) = scan.by_status.get(DONE) {
            *states.entry(State::Done).or_default() += n;
        }
        Ok(states)
    }

    async fn totals(&self, ledger: &Ledger, found: Pass) -> Result<Totals> {
        let effects = found.labels.as_ref().map(|l| l.effects);
        let (mut one_moment, before) = (found.how.whole, found.how.stamp);
        let overview = Overview {
            owners: Arc::new(found.owners),
            unfinished: found.unfinished,
            by_status: found.by_status,
            rows: found.rows,
            effects,
            noun: found.noun,
            how: Some(found.how),
            at: Time::now(),
            ..Overview::default()
        };
        let judging: Judging = self.judging(overview).await;
        let now = Time::now();
        let unfinished = self.lines(&judging.overview.unfinished, &judging, now);
        let named = |n: Named<String>| Found { list: n.list, total: n.total };
        let done = judging.overview.by_status.get(DONE).copied().unwrap_or(0);
        let all_kept = unfinished.len() as u64 == judging.overview.rows - done;
        let requests = match all_kept {
            true => self.counts(&judging, now).states,
            false => {
                let states = self.states(ledger, &judging, now).await?;
                one_moment &= before.same_files(&ledger.stamp());
                states
            }
        };
        Ok(Totals {
            requests,
            effects,
            tables: found.tables,
            duplicate_effects: Found { list: found.duplicates.list, total: found.duplicates.total },
            done_without_effect: named(found.done_bare),
            effect_without_request: named(found.loose.lost),
            purged: named(found.loose.purged),
            nameless_effects: found.loose.nameless,
            shared_ids: Found { list: found.shared.list, total: found.shared.total },
            told_apart: found.told_apart,
            one_moment,
            same_hash: Found { list: found.same_hash.list, total: found.same_hash.total },
            same_label: found.labels.as_ref().map_or_else(Found::default, |l| Found {
                list: l.shared.list.clone(),
                total: l.shared.total,
            }),
            unfinished: unfinished
                .into_iter()
                .filter(|l| l.judged.state != State::Done)
                .take(NAMED)
                .map(|l| (l.row.request_id, l.judged.state, l.row.effects.len() as u64))
                .collect(),
            labels: found.labels.map(|l| l.wanted.into_iter().collect()).unwrap_or_default(),
            unread_rows: judging.overview.how.as_ref().map_or(0, |h| h.unreadable),
        })
    }
}
