//! Rows and counts: judged lines of a window, and the facts of the top line.
//!
//! An [`Overview`] is one pass over the whole ledger: who owns what, which hashes repeat, what is unfinished.
//! It is made by `scan`, in the background where a face follows a living ledger; windows are judged with the
//! newest one.

use super::request::{Called, called_ids, read_called, remember_called, rows_of};
use super::scan::{GROUPS, LOOSE, PIECE, UNFINISHED};
use super::{Inspector, owner_view};
use crate::journal::{AnswerStatus, Call, Session};
use crate::judge::{HashCheck, LedgerView, OwnerView, State};
use crate::ledger::{DONE, How, LedgerError, Loose, Reader, Row, is_repeated};
use crate::model::hash::{self, Shape};
use crate::model::lookup::is_look_up;
use crate::model::{Context, Counts, LedgerFacts, Line, Paired};
use crate::time::Time;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Rows that are tried to prove the recipe.
const SAMPLES: usize = 64;

/// One pass over the whole ledger.
#[derive(Debug, Clone, Default)]
pub struct Overview {
    /// Who claims.
    pub owners: Arc<OwnerView>,
    /// Rows of every group of equal hashes, by hash.
    pub groups: Arc<HashMap<String, Vec<Row>>>,
    /// Unfinished rows, newest first.
    pub unfinished: Vec<Row>,
    /// Rows by stored status.
    pub by_status: BTreeMap<String, u64>,
    /// Rows.
    pub rows: u64,
    /// Effects; `None` without an effects table.
    pub effects: Option<u64>,
    /// What an effect is called, plural.
    pub noun: String,
    /// Requests with more than one effect.
    pub duplicates: u64,
    /// Groups of equal hashes, kept or not.
    pub groups_total: u64,
    /// Rows, states and effects are of one moment.
    pub one_moment: bool,
    /// So are groups, duplicates and effects without a request.
    pub parts_one_moment: bool,
    /// Requests of effects that have no row: lost ones, and swept ones.
    pub loose: Arc<Loose>,
    /// How the ledger was read.
    pub how: Option<How>,
    /// When.
    pub at: Time,
}

/// Makes an overview in one read; `scan` makes that of a large ledger in pieces.
///
/// # Errors
/// When the ledger can't be read.
pub fn overview(r: &Reader<'_>) -> Result<Overview, LedgerError> {
    let pass = r.survey_whole(UNFINISHED, PIECE)?;
    let effects = if r.has_effects_table() { Some(r.effects_total()?) } else { None };
    // Short enough to have been one moment, whatever is written while the rest is asked.
    let one_moment = r.how().whole;
    let groups = r.named_hash_groups(GROUPS)?;
    Ok(Overview {
        owners: Arc::new(owner_view(&pass)),
        groups_total: groups.total,
        groups: Arc::new(groups.list.into_iter().map(|g| (g.args_hash, g.rows)).collect()),
        one_moment,
        unfinished: pass.unfinished,
        by_status: pass.by_status,
        rows: pass.rows,
        effects,
        noun: r.effects_noun().to_owned(),
        duplicates: r.repeated_effects(GROUPS)?.total,
        loose: Arc::new(r.loose(LOOSE)?),
        parts_one_moment: r.how().whole,
        how: Some(r.how()),
        at: Time::default(),
    })
}

/// Effects of a request that has no row.
#[derive(Debug, Clone, Copy, Default)]
pub struct LooseEffects {
    /// How many.
    pub n: u64,
    /// One in each of several tables.
    pub apart: bool,
    /// Older than any that has a row.
    pub purged: bool,
}

impl LooseEffects {
    pub(super) fn read(r: &Reader<'_>, id: &str) -> Result<LooseEffects, LedgerError> {
        let found = r.effects_of(id)?;
        Ok(LooseEffects {
            n: found.len() as u64,
            apart: found.len() > 1 && !is_repeated(&found),
            purged: r.may_be_swept(&found)?,
        })
    }
}

/// Calls' requests with their rows, and the effects of those that have none.
fn read_wire(
    r: &Reader<'_>,
    ids: &[String],
) -> Result<(Called, HashMap<String, LooseEffects>), LedgerError> {
    let called = read_called(r, ids);
    let mut loose = HashMap::new();
    for (id, _) in called.iter().filter(|(_, row)| matches!(row, Ok(None))) {
        loose.insert(id.clone(), LooseEffects::read(r, id)?);
    }
    Ok((called, loose))
}

/// What lines are judged with: a copy of the session, the pairing, the overview.
#[derive(Debug, Clone, Default)]
pub struct Judging {
    /// The session, if an endpoint is attached.
    pub session: Option<Session>,
    /// The pairing.
    pub paired: Paired,
    /// Rows of requests that have calls.
    pub called: Called,
    /// Effects of those of them that have no row.
    pub loose: HashMap<String, LooseEffects>,
    /// When those were read.
    pub called_at: Time,
    /// The newest overview.
    pub overview: Overview,
    look_up: String,
}

impl Inspector {
    /// Everything lines are judged with, around an overview.
    pub async fn judging(&self, mut overview: Overview) -> Judging {
        let session = self.session();
        let (mut called, mut loose) = (Called::new(), HashMap::new());
        let mut called_at = overview.at;
        if let (Some(ledger), Some(s)) = (&self.ledger, &session) {
            let ids = called_ids(s);
            let asked = ids.clone();
            let read = ledger.read_async(move |r| Ok((Time::now(), read_wire(r, &asked)?))).await;
            let read = read.map(|(at, both)| {
                called_at = at;
                both
            });
            // Unreadable now: nobody can say which of these requests have rows.
            let unread = |e: LedgerError| {
                (ids.into_iter().map(|id| (id, Err(e.clone()))).collect(), HashMap::new())
            };
            (called, loose) = read.unwrap_or_else(unread);
        }
        remember_called(&mut self.seen(), &called, called_at);
        let answered = session.iter().flat_map(|s| s.calls.values()).filter(|c| {
            let id = c.request_id.as_deref().unwrap_or_default();
            answered_done(c, &self.look_up) && matches!(called.get(id), Some(Ok(None)))
        });
        if let (n @ 1.., Some(how)) = (answered.count(), overview.how.as_mut()) {
            how.doubt_wal(&format!(
                "{n} call{} answered as done and left no row here",
                if n == 1 { " was" } else { "s were" }
            ));
        }
        let paired = if session.is_some() { self.pairing().await } else { Paired::default() };
        Judging {
            session,
            paired,
            called,
            loose,
            called_at,
            overview,
            look_up: self.look_up.clone(),
        }
    }

    /// Judges a window of neighbouring rows from a read that began at `read_at`, and notices the rows that were
    /// seen between them earlier and are gone now.
    pub fn window_lines(
        &self,
        rows: &[Row],
        read_at: Time,
        judging: &Judging,
        now: Time,
    ) -> Vec<Line> {
        if let (Some(first), Some(last)) = (rows.first(), rows.last()) {
            let (low, high) = (first.rowid.min(last.rowid), first.rowid.max(last.rowid));
            let mut seen = self.seen();
            if seen.holds(read_at) {
                seen.histories.window(rows, low, high, read_at);
            }
        }
        self.lines(rows, judging, now)
    }

    /// Judges rows into lines, in their order.
    pub fn lines(&self, rows: &[Row], judging: &Judging, now: Time) -> Vec<Line> {
        let seen = self.seen();
        let context = self.context(&seen.histories, judging, now);
        let hash = |row: &Row| seen.hashes.get(&row.request_id).copied().unwrap_or_default();
        rows.iter().map(|row| line(row, &context, judging, now, hash(row))).collect()
    }

    /// [`Inspector::lines`], each with the arguments of its calls checked against the row's hash: the worst of them
    /// counts, since one other call under the same request_id is a conflict.
    pub fn checked_lines(&self, rows: &[Row], judging: &Judging, now: Time) -> Vec<Line> {
        let Some(session) = &judging.session else { return self.lines(rows, judging, now) };
        let mut calls: HashMap<&str, Vec<&Call>> = HashMap::new();
        for c in session.calls.values().filter(|c| !is_look_up(&self.look_up, c)) {
            if let Some(id) = c.request_id.as_deref() {
                calls.entry(id).or_default().push(c);
            }
        }
        let shape = |tool: &str| session.tools.find(tool).map(Shape::of).unwrap_or_default();
        let sample = rows.iter().take(SAMPLES);
        let of_sample: Vec<&Call> = sample
            .clone()
            .filter_map(|r| calls.get(r.request_id.as_str()))
            .flatten()
            .copied()
            .collect();
        let proofs = hash::prove(sample, &of_sample, shape);
        let seen = self.seen();
        let context = self.context(&seen.histories, judging, now);
        let check = |row: &Row| {
            let proof = proofs.iter().find(|p| p.request_id != row.request_id);
            let of = calls.get(row.request_id.as_str()).into_iter().flatten();
            let checks = of.map(|c| {
                let stored = row.args_hash.as_deref();
                hash::check(c.args.as_deref(), stored, &shape(&c.tool), proof).check
            });
            checks.max_by_key(|c| match c {
                HashCheck::NotChecked => 0,
                HashCheck::Equal => 1,
                HashCheck::DiffersUnproven => 2,
                HashCheck::DiffersProven => 3,
            })
        };
        rows.iter()
            .map(|row| line(row, &context, judging, now, check(row).unwrap_or_default()))
            .collect()
    }

    /// Lines of requests that have calls and no row; none of those whose row could not be read.
    pub fn rowless_lines(&self, judging: &Judging, now: Time) -> Vec<Line> {
        let Some(session) = &judging.session else { return Vec::new() };
        let seen = self.seen();
        let context = self.context(&seen.histories, judging, now);
        let mut ids: Vec<&str> =
            session.calls.values().rev().filter_map(|c| c.request_id.as_deref()).collect();
        let mut known = std::collections::HashSet::new();
        let no_row = |id: &str| match judging.called.get(id) {
            Some(row) => matches!(row, Ok(None)),
            None => self.ledger.is_none(),
        };
        ids.retain(|id| known.insert(*id) && no_row(id));
        ids.retain(|id| !context.calls_of(id).is_empty());
        let view = match &self.ledger {
            Some(_) => LedgerView::Read(judging.called_at),
            None => LedgerView::None,
        };
        ids.into_iter()
            .map(|id| {
                // Asked one by one: the overview names only the newest of them.
                let loose = judging.loose.get(id).copied().unwrap_or_default();
                let ledger = LedgerFacts {
                    view: view.clone(),
                    loose_effects: loose.n,
                    loose_apart: loose.apart,
                    purged: loose.purged,
                    ..LedgerFacts::default()
                };
                Line::new(&context.gather(id, ledger, HashCheck::NotChecked), now)
            })
            .collect()
    }

    /// Lines of requests that are known by an effect alone, newest first: those whose row should be there, and those
    /// whose row was swept.
    pub fn loose_lines(&self, judging: &Judging, now: Time) -> (Vec<Line>, Vec<Line>) {
        let o = &judging.overview;
        let seen = self.seen();
        let context = self.context(&seen.histories, judging, now);
        let lines = |list: &[String], purged: bool| {
            let mut many: HashMap<&str, u64> = HashMap::new();
            list.iter().for_each(|id| *many.entry(id).or_default() += 1);
            // Once each, where it comes first.
            let ids = list.iter().filter_map(|id| many.remove_entry(id.as_str()));
            ids.map(|(id, loose_effects)| {
                let ledger = LedgerFacts {
                    view: LedgerView::Read(o.at),
                    loose_effects,
                    loose_apart: o.loose.are_apart(id),
                    purged,
                    has_effects_table: true,
                    ..LedgerFacts::default()
                };
                Line::new(&context.gather(id, ledger, HashCheck::NotChecked), now)
            })
            .collect()
        };
        (lines(&o.loose.lost.list, false), lines(&o.loose.purged.list, true))
    }

    /// The facts of the top line.
    pub fn counts(&self, judging: &Judging, now: Time) -> Counts {
        let o = &judging.overview;
        let seen = self.seen();
        let context = self.context(&seen.histories, judging, now);
        let mut states: BTreeMap<State, u64> = BTreeMap::new();
        let mut judged: BTreeMap<&str, u64> = BTreeMap::new();
        let mut not_judged = 0;
        for row in &o.unfinished {
            *states.entry(context.judge(row).state).or_default() += 1;
            *judged.entry(row.status.as_str()).or_default() += 1;
        }
        for (status, n) in &o.by_status {
            let rest = n - judged.get(status.as_str()).copied().unwrap_or(0).min(*n);
            // Without its owner and age a row that isn't done can't be judged.
            if rest > 0 && status != DONE && o.unfinished.len() >= UNFINISHED {
                not_judged += rest;
            } else if rest > 0 {
                let row = Row { status: status.clone(), ..Row::default() };
                *states.entry(context.judge(&row).state).or_default() += rest;
            }
        }
        Counts {
            states,
            rows: o.rows,
            effects: o.effects,
            effects_noun: o.noun.clone(),
            not_judged,
            about: !o.one_moment,
            parts_about: !o.parts_one_moment,
            suspect_pairs: o.groups_total,
            duplicates: o.duplicates,
            effects_without_request: o.loose.lost.total + o.loose.nameless,
            requests_purged: o.loose.purged.total,
            as_of: o.at,
            complete: o.how.as_ref().is_none_or(|h| h.unreadable == 0),
        }
    }

    fn context<'a>(
        &self,
        histories: &'a crate::model::Histories,
        judging: &'a Judging,
        now: Time,
    ) -> Context<'a>
    where
        Self: 'a,
    {
        let context = Context::new(histories, &judging.overview.owners, self.rules, now);
        match &judging.session {
            Some(s) => {
                let called = rows_of(&judging.called);
                context.with_session(s, &judging.look_up, judging.paired.pairing(), called)
            }
            None => context,
        }
    }
}

fn answered_done(call: &Call, look_up: &str) -> bool {
    !is_look_up(look_up, call)
        && call.settled.as_ref().is_some_and(|s| s.answer_status == Some(AnswerStatus::Done))
}

fn line(row: &Row, context: &Context<'_>, judging: &Judging, now: Time, hash: HashCheck) -> Line {
    let o = &judging.overview;
    let group = row.args_hash.as_ref().and_then(|h| o.groups.get(h));
    let twins =
        group.into_iter().flatten().filter(|t| t.request_id != row.request_id).cloned().collect();
    let facts = LedgerFacts {
        view: LedgerView::Read(o.at),
        row: Some(row.clone()),
        twins,
        has_effects_table: o.effects.is_some(),
        ..LedgerFacts::default()
    };
    Line::new(&context.gather(&row.request_id, facts, hash), now)
}

/// Whether a row's stored word is the one that counts as finished.
pub fn is_finished(row: &Row) -> bool {
    row.status == DONE
}
