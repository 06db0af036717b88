//! One pass over all requests, in pieces a background task can afford: counts, unfinished rows, owners.

use super::reader::{Reader, row, sql_limit};
use super::row::Row;
use super::schema::{column, quoted};
use super::trouble::LedgerError;
use super::value;
use crate::time::Time;
use rusqlite::types::ValueRef;
use std::collections::{BTreeMap, HashMap};

/// The status word that means finished. No other word does without a mapping.
pub const DONE: &str = "done";
/// At most so many owners are told apart: those met first, which have the newest rows. More than that is a ledger whose
/// owners say nothing (one for each request), and memory must not grow with it.
const OWNERS: usize = 20_000;
/// Rows that [`Reader::counts`] and its kin look at between two breaths.
const STEP: usize = 2000;

/// How many of what there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Rows of the requests table.
    pub rows: u64,
    /// By stored status word, as found.
    pub by_status: BTreeMap<String, u64>,
    /// Rows of the effects table; 0 where there is none.
    pub effects: u64,
}

/// See [`Reader::moment`].
#[derive(Debug, Clone, Default)]
pub struct Moment {
    /// How many of what there are.
    pub counts: Counts,
    /// Rows that aren't done, newest first, with effects.
    pub unfinished: Vec<Row>,
}

/// What one owner has claimed, first and last (of the claims that the table still shows: a takeover
/// replaces the earlier one).
#[derive(Debug, Clone, PartialEq)]
pub struct OwnerSpan {
    /// The owner's own word.
    pub owner: String,
    /// Its earliest claim.
    pub first: Time,
    /// Its latest claim.
    pub last: Time,
    /// Its rows.
    pub rows: u64,
}

/// The state of one pass; keep it between reads and hand it to [`Reader::survey`] again.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// Rows seen so far.
    pub rows: u64,
    /// By stored status word.
    pub by_status: BTreeMap<String, u64>,
    /// Rows whose status isn't `done`, newest first, with effects; at most `keep` of them.
    pub unfinished: Vec<Row>,
    /// How many unfinished rows to keep; the newest win. Set before the first piece.
    pub keep: usize,
    /// The whole table has been seen.
    pub complete: bool,
    owners: HashMap<Vec<u8>, OwnerSpan>,
    /// There are more owners than are told apart.
    pub more_owners: bool,
    before: Option<i64>,
}

impl Survey {
    /// A pass that keeps up to `keep` unfinished rows.
    pub fn keeping(keep: usize) -> Survey {
        Survey { keep, ..Survey::default() }
    }

    pub(super) fn going_on(&self, keep: usize) -> Survey {
        Survey { before: self.before, keep, ..Survey::default() }
    }

    pub(super) fn absorb_owners(&mut self, piece: &Survey) {
        for (key, span) in &piece.owners {
            let room = self.owners.len() < OWNERS;
            match self.owners.get_mut(key) {
                Some(own) => {
                    own.first = own.first.min(span.first);
                    own.last = own.last.max(span.last);
                    own.rows += span.rows;
                }
                None if room => {
                    self.owners.insert(key.clone(), span.clone());
                }
                None => self.more_owners = true,
            }
        }
        self.more_owners |= piece.more_owners;
        self.before = piece.before;
    }

    /// The owners seen so far that have a claim time, latest claim first: what `presumed` is judged from.
    pub fn owners(&self) -> Vec<OwnerSpan> {
        let mut spans: Vec<_> = self.owners.values().cloned().collect();
        spans.sort_by(|a, b| (b.last, &b.owner).cmp(&(a.last, &a.owner)));
        spans
    }
}

impl Reader<'_> {
    /// Looks at the next `budget` rows of a pass, newest first. Pieces may come from different reads:
    /// the place reached is kept by rowid. (Where a table has no rowid a piece is the whole table.)
    pub fn survey(&self, pass: &mut Survey, budget: usize) -> Result<(), LedgerError> {
        let mut places = Vec::new();
        self.look_over(pass, &mut places, budget)?;
        pass.unfinished.extend(self.rows_at(&places)?);
        Ok(())
    }

    /// The whole of a pass in one read, `budget` rows at a time. The unfinished rows are read in the end: where that
    /// takes a pass of its own, there is one.
    pub fn survey_whole(&self, keep: usize, budget: usize) -> Result<Survey, LedgerError> {
        let (mut pass, mut places) = (Survey::keeping(keep), Vec::new());
        while !pass.complete {
            self.look_over(&mut pass, &mut places, budget)?;
        }
        pass.unfinished = self.rows_at(&places)?;
        Ok(pass)
    }

    /// Adds the places of unfinished rows to `places`.
    fn look_over(
        &self,
        pass: &mut Survey,
        places: &mut Vec<i64>,
        budget: usize,
    ) -> Result<(), LedgerError> {
        if pass.complete {
            return Ok(());
        }
        self.breathe()?;
        let r = &self.schema().requests;
        let (pos, from) = (&r.source.pos, &r.source.from);
        let budget = if r.source.rowid { budget.max(1) } else { usize::MAX };
        let sql = format!(
            "SELECT r.{pos}, {}, {}, {} FROM {from} AS r WHERE r.{pos} <= ?1 ORDER BY r.{pos} DESC LIMIT ?2",
            column("r", Some(&r.status)),
            column("r", r.owner.as_deref()),
            column("r", r.claimed_at.as_deref()),
        );
        let high = match pass.before {
            None => i64::MAX,
            Some(i64::MIN) => {
                pass.complete = true;
                return Ok(());
            }
            Some(before) => before - 1,
        };
        let mut seen = 0;
        let mut done: u64 = 0;
        let mut scan = || -> rusqlite::Result<()> {
            let mut statement = self.conn().prepare(&sql)?;
            let mut rows = statement.query((high, sql_limit(budget)))?;
            while let Some(row) = rows.next()? {
                let place: i64 = row.get(0)?;
                seen += 1;
                pass.before = Some(place);
                let status = row.get_ref(1)?;
                if matches!(status, ValueRef::Text(t) if t == DONE.as_bytes()) {
                    done += 1;
                } else {
                    let word = value::text(status).unwrap_or_default();
                    *pass.by_status.entry(word).or_default() += 1;
                    if pass.unfinished.len() + places.len() < pass.keep {
                        places.push(place);
                    }
                }
                let (Some(at), Some(owner)) =
                    (value::time(row.get_ref(3)?), value::text(row.get_ref(2)?))
                else {
                    continue;
                };
                let room = pass.owners.len() < OWNERS;
                match pass.owners.get_mut(owner.as_bytes()) {
                    Some(span) => {
                        span.first = span.first.min(at);
                        span.last = span.last.max(at);
                        span.rows += 1;
                    }
                    None if !room => pass.more_owners = true,
                    None => {
                        let span = OwnerSpan { owner: owner.clone(), first: at, last: at, rows: 1 };
                        pass.owners.insert(owner.into_bytes(), span);
                    }
                }
            }
            Ok(())
        };
        scan().map_err(|e| self.error(&e))?;
        if done > 0 {
            *pass.by_status.entry(DONE.into()).or_default() += done;
        }
        pass.rows += seen as u64;
        pass.complete = seen < budget;
        Ok(())
    }

    /// The numbers that stand together at the top of a screen, of one moment: rows by stored status, the newest
    /// `keep` rows that aren't done, and the effects. Counted by SQLite, so that it is short for a large table too.
    pub fn moment(&self, keep: usize) -> Result<Moment, LedgerError> {
        let r = &self.schema().requests;
        let (from, status) = (&r.source.from, quoted(&r.status));
        // Only what isn't done is grouped: sorting a million words would take as much memory.
        let done = format!("SELECT count(*) FROM {from} WHERE {status} COLLATE BINARY IS ?1");
        let count = format!(
            "SELECT {status}, count(*) FROM {from} WHERE {status} COLLATE BINARY IS NOT ?1
             GROUP BY {status} COLLATE BINARY, typeof({status})"
        );
        let open = format!(
            "{} WHERE r.{status} COLLATE BINARY IS NOT ?1 ORDER BY r.{} DESC LIMIT ?2",
            self.select_rows(),
            r.source.pos
        );
        let mut by_status = BTreeMap::new();
        let done = self.query(&done, [DONE], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))?;
        if let Some(n @ 1..) = done.first() {
            by_status.insert(DONE.to_owned(), *n);
        }
        let counted = self.query(&count, [DONE], |row| {
            let word = value::text(row.get_ref(0)?).unwrap_or_default();
            Ok((word, row.get::<_, i64>(1)?.unsigned_abs()))
        })?;
        for (word, n) in counted {
            *by_status.entry(word).or_default() += n;
        }
        let mut unfinished = self.query(&open, (DONE, sql_limit(keep)), row)?;
        self.add_effects(&mut unfinished)?;
        let counts =
            Counts { rows: by_status.values().sum(), by_status, effects: self.effects_total()? };
        Ok(Moment { counts, unfinished })
    }

    /// Counts over the whole table. About 0.3 s for a million rows.
    pub fn counts(&self) -> Result<Counts, LedgerError> {
        let pass = self.survey_whole(0, STEP)?;
        Ok(Counts { rows: pass.rows, by_status: pass.by_status, effects: self.effects_total()? })
    }

    /// The newest `limit` rows whose status isn't `done`, newest first. Passes over the whole table:
    /// [`Reader::survey`] does it in pieces.
    pub fn unfinished(&self, limit: usize) -> Result<Vec<Row>, LedgerError> {
        Ok(self.survey_whole(limit, STEP)?.unfinished)
    }

    /// Who has claimed when, over the whole table.
    pub fn owners(&self) -> Result<Vec<OwnerSpan>, LedgerError> {
        Ok(self.survey_whole(0, STEP)?.owners())
    }
}
