//! Asks a ledger's reader for what the model joins: the only part of the model that reads. Every function
//! runs inside one consistent look; `read_at` is a time taken before it (and after the session was).

use super::board::Counts;
use super::facts::{Context, LedgerFacts};
use super::hash::{self, Proof};
use super::lookup;
use crate::journal::{Call, Session};
use crate::judge::state::stored;
use crate::judge::verify::Totals;
use crate::judge::{LedgerView, OwnerClaims, OwnerView, State};
use crate::ledger::{HashGroup, LedgerError, Owners, Reader, Row, Survey};
use crate::time::Time;
use std::collections::{BTreeMap, HashMap};

/// Requests with calls whose rows are read to learn whose owner is whose.
const CALLS: usize = 200;
/// Rows tried to prove a recipe with.
const PROOFS: usize = 40;
/// Twins of one request that are shown.
const TWINS: usize = 20;

impl From<&Owners> for OwnerView {
    fn from(owners: &Owners) -> OwnerView {
        let spans = owners.spans.iter();
        OwnerView::new(
            spans
                .map(|s| OwnerClaims { owner: s.owner.clone(), first: s.first, last: s.last })
                .collect(),
        )
    }
}

/// All that the ledger has on one request. Passes over the table for twins where nothing is indexed.
pub fn request(
    reader: &Reader<'_>,
    request_id: &str,
    read_at: Time,
) -> Result<LedgerFacts, LedgerError> {
    let row = reader.row(request_id)?;
    let hash = row.as_ref().and_then(|r| r.args_hash.as_deref()).filter(|h| !h.is_empty());
    let twins = match hash {
        Some(hash) => reader.twins(hash, request_id, TWINS)?,
        None => Vec::new(),
    };
    let loose = if row.is_none() { reader.effects_of(request_id)? } else { Vec::new() };
    let purged = match loose.iter().map(|e| e.rowid).max() {
        Some(newest) => {
            let oldest = reader.effects_without_request(0)?.oldest_with_request;
            oldest.is_some_and(|oldest| newest < oldest)
        }
        None => false,
    };
    Ok(LedgerFacts {
        view: LedgerView::Read(read_at),
        row,
        twins,
        loose_effects: loose.len() as u64,
        purged,
        has_effects_table: reader.has_effects_table(),
    })
}

/// The rows of the newest requests that have calls in `session`, by request_id; `None` where there is no row.
pub fn called(
    reader: &Reader<'_>,
    session: &Session,
) -> Result<BTreeMap<String, Option<Row>>, LedgerError> {
    let mut out = BTreeMap::new();
    for call in session.calls.values().rev() {
        if out.len() >= CALLS {
            break;
        }
        if let Some(id) = call.request_id.as_deref().filter(|id| !out.contains_key(*id)) {
            out.insert(id.to_owned(), reader.row(id)?);
        }
    }
    Ok(out)
}

/// Looks for a proof of a hash recipe among rows other than `but`: those with calls, then the newest.
pub fn proof(
    reader: &Reader<'_>,
    session: Option<&Session>,
    look_up: &str,
    but: &str,
) -> Result<Option<Proof>, LedgerError> {
    let declared = |tool: &str| {
        let listed = session.and_then(|s| s.tools.find(tool));
        listed.map(|t| t.properties.clone()).unwrap_or_default()
    };
    if let Some(s) = session {
        let rows: Vec<Row> = called(reader, s)?.into_values().flatten().collect();
        let work = s.calls.values().filter(|c| !lookup::is_look_up(s, look_up, c));
        let calls: Vec<&Call> = work.collect();
        if let Some(proof) = hash::prove(&rows, &calls, declared, but) {
            return Ok(Some(proof));
        }
    }
    Ok(hash::prove(&reader.newest(None, PROOFS)?, &[], declared, but))
}

/// Rows that share an arguments hash, by that hash: for lists, where asking for each row would cost a pass.
#[derive(Debug, Clone, Default)]
pub struct Twins(HashMap<String, Vec<Row>>);

impl Twins {
    /// From the groups of one pass.
    pub fn new(groups: Vec<HashGroup>) -> Twins {
        Twins(groups.into_iter().map(|g| (g.args_hash, g.rows)).collect())
    }

    /// How many groups there are.
    pub fn groups(&self) -> u64 {
        self.0.len() as u64
    }

    /// The facts of a row that a window holds, without asking the ledger again.
    pub fn facts_of(&self, row: Row, has_effects_table: bool, read_at: Time) -> LedgerFacts {
        let hash = row.args_hash.as_deref().filter(|h| !h.is_empty());
        let twins = hash.and_then(|h| self.0.get(h)).cloned().unwrap_or_default();
        LedgerFacts {
            view: LedgerView::Read(read_at),
            twins: twins
                .into_iter()
                .filter(|t| t.request_id != row.request_id)
                .take(TWINS)
                .collect(),
            row: Some(row),
            loose_effects: 0,
            purged: false,
            has_effects_table,
        }
    }
}

/// The facts of the top line, from a pass over the table and what it kept. Running rows that the pass did
/// not keep are counted as their stored word says.
pub fn counts(
    reader: &Reader<'_>,
    pass: &Survey,
    twins: &Twins,
    ctx: &Context<'_>,
    read_at: Time,
) -> Result<Counts, LedgerError> {
    let has_effects = reader.has_effects_table();
    let effects = if has_effects { Some(reader.effects_total()?) } else { None };
    Ok(Counts {
        states: states(pass, ctx),
        rows: pass.rows,
        effects,
        effects_noun: reader.effects_noun().to_owned(),
        suspect_pairs: twins.groups(),
        duplicates: reader.duplicate_effects(PROOFS)?.len() as u64,
        as_of: read_at,
        complete: pass.complete && reader.how().unreadable == 0,
    })
}

fn states(pass: &Survey, ctx: &Context<'_>) -> BTreeMap<State, u64> {
    let mut out: BTreeMap<State, u64> = BTreeMap::new();
    for (word, n) in &pass.by_status {
        *out.entry(stored(word)).or_default() += n;
    }
    for row in pass.unfinished.iter().filter(|r| stored(&r.status) == State::Running) {
        let judged = ctx.judge(row).state;
        if judged != State::Running {
            if let Some(n) = out.get_mut(&State::Running) {
                *n = n.saturating_sub(1);
            }
            *out.entry(judged).or_default() += 1;
        }
    }
    out.retain(|_, n| *n > 0);
    out
}

/// Problems of each kind that are named one by one.
const NAMED: usize = 1000;

/// The aggregates that `verify` checks: several passes over the table.
pub fn totals(
    reader: &Reader<'_>,
    pass: &Survey,
    ctx: &Context<'_>,
) -> Result<Totals, LedgerError> {
    let loose = reader.effects_without_request(NAMED)?;
    let (mut purged, mut lost) = (Vec::new(), Vec::new());
    for e in &loose.effects {
        let list = if loose.is_purged(e) { &mut purged } else { &mut lost };
        list.push(e.request_id.clone().unwrap_or_default());
    }
    let groups = reader.same_hash_groups(NAMED)?;
    let ids = |rows: &[Row]| rows.iter().map(|r| r.request_id.clone()).collect();
    let unfinished = pass.unfinished.iter().map(|r| (r.request_id.clone(), ctx.judge(r).state));
    let over = |s: &State| matches!(s, State::Failed | State::Cancelled | State::Expired);
    Ok(Totals {
        requests: states(pass, ctx),
        effects: if reader.has_effects_table() { Some(reader.effects_total()?) } else { None },
        duplicate_effects: reader.duplicate_effects(NAMED)?,
        done_without_effect: ids(&reader.done_without_effect(NAMED)?),
        effect_without_request: lost,
        purged,
        same_hash: groups.iter().map(|g| ids(&g.rows)).collect(),
        same_label: Vec::new(),
        unfinished: unfinished.filter(|(_, s)| !over(s)).collect(),
        labels: BTreeMap::new(),
        unread_rows: reader.how().unreadable,
    })
}
