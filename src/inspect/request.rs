//! One request with every witness: the ledger's row, the wire, the pairing, the arguments and their hash.

use super::list::LooseEffects;
use super::recorded::RECORDED_CALLS;
use super::{Groups, Inspector, light, owner_view};
use crate::journal::Session;
use crate::judge::{Facts, HashCheck, LedgerView, OwnerView};
use crate::ledger::{How, LedgerError, Reader, Row, Survey};
use crate::model::arguments::{Candidate, Source, from_calls, from_effects};
use crate::model::hash::{self, Checked, Proof, Shape};
use crate::model::pairing::Read;
use crate::model::{Context, LedgerFacts, Line, Paired};
use crate::time::Time;
use std::collections::HashMap;
use std::sync::Arc;

/// Rows with a hash that are tried to prove the recipe.
const PROOF_ROWS: usize = 50;
/// Other requests with the same hash that are looked at.
const TWINS: usize = 20;
/// Rows looked at in one piece of a pass.
const PIECE: usize = 20_000;
/// Said of what only a ledger could tell.
const NO_LEDGER: &str = "no ledger is attached";

/// Everything known of one request at one moment.
#[derive(Debug, Clone)]
pub struct Request {
    /// The witnesses' words.
    pub facts: Facts,
    /// What they come to.
    pub line: Line,
    /// How the hash check came out, in words.
    pub hash: Checked,
    /// What proved the recipe, if anything did.
    pub proof: Option<Proof>,
    /// Whether server and ledger belong together, and why.
    pub paired: Paired,
    /// Effects of all requests; `None` without an effects table.
    pub effects_total: Option<u64>,
    /// What an effect is called, plural.
    pub noun: String,
    /// How the ledger was read, or why it couldn't be.
    pub how: Option<Result<How, LedgerError>>,
    /// All rows with the id, judged, where there are several.
    pub rows: Vec<Line>,
    /// What somebody has said of the row (`--row`) names none, or several.
    pub row_unmatched: Option<String>,
    /// Arguments known for it: from calls seen and from its effects.
    pub candidates: Vec<Candidate>,
    /// When.
    pub at: Time,
}

impl Request {
    /// Effects of this request, with or without a row.
    pub fn effects(&self) -> u64 {
        self.facts.row.as_ref().map_or(self.facts.loose_effects, |r| r.effects.len() as u64)
    }
}

/// Rows by request_id, each as far as it could be read: a damaged file may have lost some.
pub type Called = HashMap<String, Result<Option<Row>, LedgerError>>;

/// The rows of `called` that were read and are there.
pub(super) fn rows_of(called: &Called) -> impl Iterator<Item = &Row> {
    called.values().filter_map(|r| r.as_ref().ok()?.as_ref())
}

/// Reads the rows of all requests that have calls.
pub(super) fn read_called(r: &Reader<'_>, ids: &[String]) -> Called {
    ids.iter().map(|id| (id.clone(), r.row(id))).collect()
}

/// The requests that have calls.
pub(super) fn called_ids(session: &Session) -> Vec<String> {
    let mut ids: Vec<String> =
        session.calls.values().filter_map(|c| c.request_id.clone()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// What one read of the ledger brings.
struct Found {
    how: How,
    /// When it began.
    at: Time,
    row: Option<Row>,
    /// All rows with the id, where there are several.
    several: Vec<Row>,
    unmatched: Option<String>,
    twins: Vec<Row>,
    loose: LooseEffects,
    has_effects_table: bool,
    owners: Arc<OwnerView>,
    effects_total: Option<u64>,
    noun: String,
    /// Rows of the requests that have calls, by id.
    called: Called,
    samples: Vec<Row>,
    /// Rows in all, when a pass was made.
    rows: Option<u64>,
}

impl Inspector {
    /// Gathers everything about one request. `args`: the arguments at hand, to be checked against the row;
    /// without them those of the newest call seen, or of the effect, are checked.
    /// An empty id means that there is none.
    pub async fn request(&self, id: &str, args: Option<&str>) -> Request {
        self.request_of(id, args, !id.is_empty()).await
    }

    /// The same of a request that a list has: its id may be empty.
    pub async fn request_named(&self, id: &str) -> Request {
        self.request_of(id, None, true).await
    }

    async fn request_of(&self, id: &str, args: Option<&str>, named: bool) -> Request {
        // The session first: what the wire knew then, the ledger has had its time to show.
        let session = self.session();
        let read = self.read(id, named, session.as_ref()).await;
        let at = Time::now();
        let found = read.as_ref().and_then(|r| r.as_ref().ok());
        // Trying recipes takes a while: not while others wait for what was seen.
        let proof = found.and_then(|f| self.proof(f, session.as_ref(), id));
        let mut seen = self.seen();
        if let Some(found) = found {
            remember(&mut seen, id, found);
        }
        let owners = found.map(|f| f.owners.clone()).unwrap_or_default();
        // The endpoint's pairing is proven by our own calls alone: the recorded server may be another.
        let live = self.client.as_ref().map(|c| light::session(c.journal()));
        let wire = live.as_ref().or(session.as_ref());
        let paired = match &read {
            None => Paired::in_doubt(NO_LEDGER.into()),
            Some(Err(e)) => Paired::in_doubt(format!("nothing can be compared: {e}")),
            _ => paired(&self.look_up, wire, found, &mut seen),
        };
        let mut context = Context::new(&seen.histories, &owners, self.rules, at);
        if let Some(s) = &session {
            let called = found.into_iter().flat_map(|f| rows_of(&f.called));
            context = context.with_session(s, &self.look_up, paired.pairing(), called);
        }
        let calls = context.calls_of(id);
        let calls: Vec<_> = calls.iter().collect();
        let row = found.and_then(|f| f.row.as_ref());
        // Our own calls first; the agent's are known by the recording's name.
        let own: Vec<_> = calls.iter().filter(|c| c.id < RECORDED_CALLS).copied().collect();
        let mut candidates = from_calls(&own, &Source::Seen);
        candidates.extend(self.recording.iter().flat_map(|r| r.candidates(id, &self.look_up)));
        candidates.extend(row.map(from_effects).unwrap_or_default());
        let at_hand = args.or_else(|| candidates.first().map(|c| c.args.as_str()));
        let tool = candidates.first().and_then(|c| c.tool.as_deref());
        let shape = tool.map(|t| shape(session.as_ref(), t)).unwrap_or_default();
        let stored = row.and_then(|r| r.args_hash.as_deref());
        let hash = match &read {
            None => Checked { check: HashCheck::NotChecked, how: NO_LEDGER.into() },
            Some(_) => hash::check(at_hand, stored, &shape, proof.as_ref()),
        };

        let ledger = match &read {
            None => LedgerFacts::default(),
            Some(Err(e)) => LedgerFacts {
                view: LedgerView::Unreadable(e.to_string()),
                ..LedgerFacts::default()
            },
            Some(Ok(f)) => LedgerFacts {
                view: LedgerView::Read(f.at),
                row: f.row.clone(),
                twins: f.twins.clone(),
                loose_effects: f.loose.n,
                loose_apart: f.loose.apart,
                purged: f.loose.purged,
                has_effects_table: f.has_effects_table,
            },
        };
        let several = found.map_or(&[][..], |f| &f.several).iter().map(|row| {
            let ledger = LedgerFacts {
                view: LedgerView::Read(at),
                row: Some(row.clone()),
                has_effects_table: found.is_some_and(|f| f.has_effects_table),
                ..LedgerFacts::default()
            };
            Line::new(&context.gather(&row.request_id, ledger, HashCheck::NotChecked), at)
        });
        let rows: Vec<Line> = several.collect();
        let facts = context.gather(id, ledger, hash.check);
        if args.is_none() && found.is_some() {
            seen.hashes.insert(id.to_owned(), hash.check);
        }
        let line = Line::new(&facts, at);
        let (effects_total, noun) = match &read {
            Some(Ok(f)) => (f.effects_total, f.noun.clone()),
            _ => (None, "effects".into()),
        };
        let row_unmatched = found.and_then(|f| f.unmatched.clone());
        let how = read.map(|r| {
            r.map(|mut f| {
                if f.loose.n > 0 && !f.loose.purged {
                    f.how.doubt_wal("an effect of this request is here and its row is not");
                }
                let let_go = self.recording.as_ref().map_or(0, |r| r.read(|r| r.not_kept()));
                if let_go > 0 {
                    f.how.infos.push(format!(
                        "{let_go} answered calls of the recording are no longer kept: older ones of this request may be among them"
                    ));
                }
                f.how
            })
        });
        Request {
            facts,
            line,
            hash,
            proof,
            paired,
            effects_total,
            noun,
            how,
            rows,
            row_unmatched,
            candidates,
            at,
        }
    }

    /// Whether server and ledger belong together, from everything seen so far.
    pub async fn pairing(&self) -> Paired {
        let session = self.client.as_ref().map(|c| light::session(c.journal()));
        let read = self.read("", false, session.as_ref()).await;
        let found = read.as_ref().and_then(|r| r.as_ref().ok());
        paired(&self.look_up, session.as_ref(), found, &mut self.seen())
    }

    /// What proves the recipe for `id`: another row. Looked for once for each state of the ledger and the calls,
    /// and no more once two rows have: each proves it for all but itself.
    fn proof(&self, found: &Found, session: Option<&Session>, id: &str) -> Option<Proof> {
        let key = (found.how.stamp, session.map_or(0, |s| s.calls.len()));
        let known = self.seen().proofs.clone();
        let proofs = match known {
            Some((_, proofs)) if proofs.len() > 1 => proofs,
            Some((of, proofs)) if of == key => proofs,
            _ => {
                let calls: Vec<_> = session.iter().flat_map(|s| s.calls.values()).collect();
                let rows = found.samples.iter().chain(rows_of(&found.called));
                let proofs = hash::prove(rows, &calls, |tool| shape(session, tool));
                self.seen().proofs = Some((key, proofs.clone()));
                proofs
            }
        };
        proofs.into_iter().find(|p| p.request_id != id)
    }

    async fn read(
        &self,
        id: &str,
        named: bool,
        session: Option<&Session>,
    ) -> Option<Result<Found, LedgerError>> {
        let ledger = self.ledger.as_ref()?;
        let called = session.map(called_ids).unwrap_or_default();
        let id = id.to_owned();
        let known = (self.known_owners(), self.known_groups());
        let meant = self.row.clone();
        let job =
            move |r: &Reader<'_>| find(r, named.then_some(&id), &meant, &called, known.clone());
        let found = ledger.read_async(job).await;
        if let Ok(f) = &found
            && let Some(rows) = f.rows
        {
            self.know(f.how.stamp, rows, &f.owners);
        }
        Some(found)
    }
}

fn find(
    r: &Reader<'_>,
    named: Option<&String>,
    meant: &[String],
    called: &[String],
    (known, groups): (Option<Arc<OwnerView>>, Option<Groups>),
) -> Result<Found, LedgerError> {
    let id = named.map_or("", String::as_str);
    let (owners, counted) = match known {
        Some(owners) => (owners, None),
        None => {
            let mut pass = Survey::keeping(0);
            while !pass.complete {
                r.survey(&mut pass, PIECE)?;
            }
            (Arc::new(owner_view(&pass)), Some(pass.rows))
        }
    };
    let ((rows, loose, total), at) = r.in_one(|| {
        let at = Time::now();
        let rows = if named.is_none() { Vec::new() } else { r.rows_of(id)? };
        let loose = match rows.is_empty() {
            true if !id.is_empty() => LooseEffects::read(r, id)?,
            _ => LooseEffects::default(),
        };
        let total = if r.has_effects_table() { Some(r.effects_total()?) } else { None };
        Ok(((rows, loose, total), at))
    })?;
    let (row, several, unmatched) = meant_of(r, rows, meant)?;
    let hash = row.as_ref().and_then(|r| r.args_hash.clone()).filter(|h| !h.is_empty());
    let mut twins = match (hash, groups) {
        (None, _) => Vec::new(),
        (Some(h), Some(groups)) => groups.get(&h).cloned().unwrap_or_default(),
        (Some(h), None) => r.twins(&h, id, TWINS + 1)?,
    };
    let more_twins = twins.len() > TWINS;
    twins.truncate(TWINS);
    Ok(Found {
        at,
        row,
        several,
        unmatched,
        twins,
        loose,
        has_effects_table: r.has_effects_table(),
        owners,
        rows: counted,
        effects_total: total,
        noun: r.effects_noun().to_owned(),
        called: read_called(r, called),
        samples: r.newest(None, PROOF_ROWS)?,
        how: how(r, id, more_twins)?,
    })
}

/// How it was read; where nobody has said which tables hold effects, with what each has of this request.
fn how(r: &Reader<'_>, id: &str, more_twins: bool) -> Result<How, LedgerError> {
    let mut how = r.how();
    if more_twins {
        how.infos.push(format!(
            "more than {TWINS} other requests have the same arguments: {TWINS} are named"
        ));
    }
    let carried = if id.is_empty() { Vec::new() } else { r.undecided_rows(id)? };
    if !carried.is_empty() {
        let each: Vec<String> = carried.iter().map(|(t, n)| format!("{n} in {t}")).collect();
        how.infos.push(format!("rows with this request_id: {}", each.join(", ")));
    }
    Ok(how)
}

/// The row that is meant, else the newest; all of them, where there are several; and why what was said names none.
type Meant = (Option<Row>, Vec<Row>, Option<String>);

fn meant_of(r: &Reader<'_>, mut rows: Vec<Row>, said: &[String]) -> Result<Meant, LedgerError> {
    let mut named = Vec::new();
    for (i, row) in rows.iter().enumerate().filter(|_| !said.is_empty()) {
        if r.row_is(row.rowid, said)? {
            named.push(i);
        }
    }
    let all = rows.first().and_then(|row| row.same.as_ref()).map_or(rows.len() as u64, |s| s.rows);
    let by_place = said.iter().any(|s| s.to_ascii_lowercase().starts_with("rowid="));
    let words = said.join(" and ");
    let unmatched = match named.as_slice() {
        _ if said.is_empty() => None,
        [] => Some(format!("no row of this request_id has {words}")),
        [_] if by_place || all == rows.len() as u64 => None,
        [_] => {
            Some(format!("there are more rows than were looked at, and others may have {words}"))
        }
        several => Some(format!("{} rows of this request_id have {words}", several.len())),
    };
    if rows.len() < 2 {
        return Ok((rows.pop(), Vec::new(), unmatched));
    }
    let mut row = named.first().and_then(|i| rows.get(*i)).or(rows.first()).cloned();
    if let Some(same) = row.as_mut().and_then(|row| row.same.as_mut()) {
        same.chosen = !said.is_empty() && unmatched.is_none();
    }
    Ok((row, rows, unmatched))
}

fn remember(seen: &mut super::Seen, id: &str, found: &Found) {
    found.called.keys().for_each(|id| seen.histories.pin(id));
    let own = std::iter::once((id, &found.row)).filter(|(id, _)| !id.is_empty());
    note(seen, own, found.at);
    remember_called(seen, &found.called, found.at);
}

/// Every read of rows is told to the histories, whoever made it: what is concluded of a request can't depend on which
/// part of a face asked.
pub(super) fn remember_called(seen: &mut super::Seen, called: &Called, at: Time) {
    let read = called.iter().filter_map(|(id, row)| Some((id.as_str(), row.as_ref().ok()?)));
    note(seen, read, at);
}

fn note<'a>(
    seen: &mut super::Seen,
    rows: impl Iterator<Item = (&'a str, &'a Option<Row>)>,
    at: Time,
) {
    if !seen.holds(at) {
        return;
    }
    for (id, row) in rows {
        match row {
            Some(row) => seen.histories.observe(row, at),
            None => {
                seen.histories.missing(id, at);
                seen.absent.insert(id.to_owned(), at);
            }
        }
    }
}

/// Whether server and ledger belong together, from everything seen so far.
fn paired(
    look_up: &str,
    session: Option<&Session>,
    found: Option<&Found>,
    seen: &mut super::Seen,
) -> Paired {
    let (Some(session), Some(found)) = (session, found) else { return Paired::default() };
    let super::Seen { histories, absent, first_reads, since, .. } = seen;
    Paired::fold_since(*since, session, look_up, first_reads, |id| {
        let row = found.called.get(id)?.as_ref().ok()?.clone();
        // Which of several rows an answer was about, nobody can tell.
        if row.as_ref().is_some_and(|r| !r.is_meant()) {
            return None;
        }
        let (absent_at, there_since) = (absent.get(id).copied(), histories.there_since(id));
        let done_since = histories.done_since(id);
        Some(Read { row, at: found.at, absent_at, there_since, done_since })
    })
}

/// What the server says of that tool's arguments.
fn shape(session: Option<&Session>, tool: &str) -> Shape {
    session.and_then(|s| s.tools.find(tool)).map(Shape::of).unwrap_or_default()
}

/// Whether the arguments are proven to be the row's.
pub fn hash_matches(check: HashCheck) -> Option<bool> {
    match check {
        HashCheck::Equal => Some(true),
        HashCheck::DiffersProven | HashCheck::DiffersUnproven => Some(false),
        HashCheck::NotChecked => None,
    }
}
