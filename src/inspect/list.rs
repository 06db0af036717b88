//! Rows and counts: judged lines of a window, and the facts of the top line.
//!
//! An [`Overview`] is one pass over the whole ledger: who owns what, which hashes repeat, what is unfinished.
//! It is made by `scan`, in the background where a face follows a living ledger; windows are judged with the
//! newest one.

use super::request::{Called, called_ids, read_called, rows_of};
use super::scan::{GROUPS, LOOSE, PIECE, UNFINISHED};
use super::{Inspector, owner_view};
use crate::journal::{AnswerStatus, Call, Session};
use crate::judge::{HashCheck, LedgerView, OwnerView, State};
use crate::ledger::{DONE, How, LedgerError, Loose, Named, Reader, Row, Survey};
use crate::model::lookup::is_look_up;
use crate::model::{Context, Counts, LedgerFacts, Line, Paired};
use crate::time::Time;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

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
    let mut pass = Survey::keeping(UNFINISHED);
    while !pass.complete {
        r.survey(&mut pass, PIECE)?;
    }
    let groups = r.same_hash_groups(GROUPS)?.into_iter().map(|g| (g.args_hash, g.rows)).collect();
    Ok(Overview {
        owners: Arc::new(owner_view(&pass)),
        groups: Arc::new(groups),
        unfinished: pass.unfinished,
        by_status: pass.by_status,
        rows: pass.rows,
        effects: if r.has_effects_table() { Some(r.effects_total()?) } else { None },
        noun: r.effects_noun().to_owned(),
        duplicates: r.duplicate_effects(GROUPS)?.len() as u64,
        loose: Arc::new(r.loose(LOOSE)?),
        how: Some(r.how()),
        at: Time::default(),
    })
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
    /// The newest overview.
    pub overview: Overview,
    look_up: String,
}

impl Inspector {
    /// Everything lines are judged with, around an overview.
    pub async fn judging(&self, mut overview: Overview) -> Judging {
        let session = self.session();
        let mut called = Called::new();
        if let (Some(ledger), Some(s)) = (&self.ledger, &session) {
            let ids = called_ids(s);
            let asked = ids.clone();
            let read = ledger.read_async(move |r| Ok(read_called(r, &asked))).await;
            // Unreadable now: nobody can say which of these requests have rows.
            called =
                read.unwrap_or_else(|e| ids.into_iter().map(|id| (id, Err(e.clone()))).collect());
        }
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
        Judging { session, paired, called, overview, look_up: self.look_up.clone() }
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
            self.seen().histories.window(rows, low, high, read_at);
        }
        self.lines(rows, judging, now)
    }

    /// Judges rows into lines, in their order.
    pub fn lines(&self, rows: &[Row], judging: &Judging, now: Time) -> Vec<Line> {
        let seen = self.seen();
        let context = self.context(&seen.histories, judging, now);
        rows.iter().map(|row| line(row, &context, judging, now)).collect()
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
            Some(_) => LedgerView::Read(judging.overview.at),
            None => LedgerView::None,
        };
        let loose = &judging.overview.loose;
        let times = |list: &Named<String>, id: &str| list.list.iter().filter(|l| *l == id).count();
        ids.into_iter()
            .map(|id| {
                let (lost, purged) = (times(&loose.lost, id), times(&loose.purged, id));
                let ledger = LedgerFacts {
                    view: view.clone(),
                    loose_effects: (lost + purged) as u64,
                    loose_apart: loose.are_apart(id),
                    purged: purged > 0 && lost == 0,
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
        for row in &o.unfinished {
            *states.entry(context.judge(row).state).or_default() += 1;
            *judged.entry(row.status.as_str()).or_default() += 1;
        }
        for (status, n) in &o.by_status {
            let rest = n - judged.get(status.as_str()).copied().unwrap_or(0).min(*n);
            if rest > 0 {
                let row = Row { status: status.clone(), ..Row::default() };
                *states.entry(context.judge(&row).state).or_default() += rest;
            }
        }
        Counts {
            states,
            rows: o.rows,
            effects: o.effects,
            effects_noun: o.noun.clone(),
            suspect_pairs: o.groups.len() as u64,
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

fn line(row: &Row, context: &Context<'_>, judging: &Judging, now: Time) -> Line {
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
    Line::new(&context.gather(&row.request_id, facts, HashCheck::NotChecked), now)
}

/// Whether a row's stored word is the one that counts as finished.
pub fn is_finished(row: &Row) -> bool {
    row.status == DONE
}
