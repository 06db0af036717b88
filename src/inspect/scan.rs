//! The overview of a ledger, made in pieces: each is a short read of its own, so that windows and details never
//! wait for a whole pass. A small ledger is one piece, and then one consistent look.

use super::list::{Overview, overview};
use super::{Inspector, owner_view};
use crate::ledger::pass::Repeating;
use crate::ledger::{Ledger, LedgerError, Loose, LooseScan, Mode, Reader, Stamp, Survey, Trouble};
use crate::time::Time;
use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;

/// Unfinished rows that are judged one by one; more are counted by their stored word.
pub(super) const UNFINISHED: usize = 10_000;
/// Effects without a row of their request that are named, of each kind.
pub(super) const LOOSE: usize = 200;
/// Groups of equal hashes that are kept.
pub(super) const GROUPS: usize = 10_000;
/// How often a small ledger is read again because a writer committed meanwhile.
const TRIES: usize = 5;
/// Rows looked at in one piece.
pub const PIECE: usize = 20_000;

impl Inspector {
    /// The newest pass over the ledger. `rest` is awaited after each piece of a large one: a face spaces its
    /// passes out there, a command does not.
    ///
    /// # Errors
    /// When there is a ledger and it can't be read.
    pub async fn overview<F: Future<Output = ()>>(
        &self,
        rest: impl Fn() -> F,
    ) -> Result<Overview, LedgerError> {
        self.overview_and(rest, |_| Ok(())).await.map(|(view, _)| view)
    }

    /// [`Inspector::overview`], and `also` from the very same read where the ledger is small enough for one;
    /// `None` for a larger one.
    ///
    /// # Errors
    /// When there is a ledger and it can't be read.
    pub async fn overview_and<T: Send + 'static, F: Future<Output = ()>>(
        &self,
        rest: impl Fn() -> F,
        also: impl Fn(&Reader<'_>) -> Result<T, LedgerError> + Send + Sync + 'static,
    ) -> Result<(Overview, Option<T>), LedgerError> {
        let Some(ledger) = &self.ledger else {
            return Ok((
                Overview { one_moment: true, parts_one_moment: true, ..Overview::default() },
                None,
            ));
        };
        let mut at = Time::now();
        let before = ledger.stamp();
        let (first, stamp) = survey_piece(ledger, &Survey::keeping(UNFINISHED)).await?;
        let mut more = None;
        let mut view = if first.complete {
            let also = Arc::new(also);
            let mut tries = 0;
            loop {
                at = Time::now();
                let also = also.clone();
                let read = ledger.read_async(move |r| {
                    let (mut view, also) = (overview(r)?, also(r)?);
                    // What came of the file until the end of the read.
                    view.how = Some(r.how());
                    Ok((view, also))
                });
                let (view, also) = read.await?;
                tries += 1;
                // A rollback journal lets its writer commit in the middle of a read.
                if tries < TRIES && view.how.as_ref().is_some_and(|h| !h.whole) {
                    rest().await;
                    continue;
                }
                more = Some(also);
                break view;
            }
        } else {
            let mut pass = Survey::keeping(UNFINISHED);
            pass.absorb(first);
            self.survey_on(ledger, &mut pass, &rest).await?;
            let mut view = Overview {
                owners: Arc::new(owner_view(&pass)),
                unfinished: pass.unfinished,
                by_status: pass.by_status,
                rows: pass.rows,
                ..Overview::default()
            };
            self.know(stamp, view.rows, &view.owners);
            groups_on(ledger, &mut view, &rest).await?;
            view.loose = Arc::new(loose_on(ledger, &rest).await?);
            view.duplicates = ledger.read_async(|r| Ok(r.repeated_effects(GROUPS)?.total)).await?;
            at = moment_of(ledger, &mut view, at).await?;
            let quiet = before.same_files(&ledger.stamp());
            view.parts_one_moment = quiet;
            view.one_moment |= quiet;
            view
        };
        view.at = at;
        say_bounds(&mut view);
        if let (n @ 1.., Some(how)) = (view.loose.lost.total, view.how.as_mut()) {
            let noun = if n == 1 { "effect has" } else { "effects have" };
            how.doubt_wal(&format!("{n} {noun} no request"));
        }
        {
            let mut seen = self.seen();
            if seen.holds(at) {
                view.unfinished.iter().for_each(|row| seen.histories.observe(row, at));
            }
        }
        if let Some(how) = &view.how {
            self.know(how.stamp, view.rows, &view.owners);
            // Whoever isn't among those that are kept is asked for.
            if view.groups_total == view.groups.len() as u64 {
                self.know_groups(&view.groups);
            } else {
                self.seen().groups = None;
            }
        }
        Ok((view, more))
    }

    /// The rest of a pass. What is known of owners so far is of use at once: the newest claims come first.
    async fn survey_on<F: Future<Output = ()>>(
        &self,
        ledger: &Ledger,
        pass: &mut Survey,
        rest: &impl Fn() -> F,
    ) -> Result<(), LedgerError> {
        while !pass.complete {
            rest().await;
            let (piece, stamp) = survey_piece(ledger, pass).await?;
            pass.absorb(piece);
            if self.known_owners().is_none() {
                self.know(stamp, u64::MAX, &Arc::new(owner_view(pass)));
            }
        }
        Ok(())
    }
}

/// The numbers that stand together, from one read, and its time. On a ledger with a rollback journal that would hold
/// up its writer for too long: what the pieces have found is about as much.
async fn moment_of(ledger: &Ledger, view: &mut Overview, at: Time) -> Result<Time, LedgerError> {
    let now = Time::now();
    let read = ledger.read_async(|r| {
        let how = r.how();
        let has_effects = r.has_effects_table();
        let moment = if how.mode == Mode::Pieces { None } else { Some(r.moment(UNFINISHED)?) };
        let effects = match &moment {
            _ if !has_effects => None,
            Some(m) => Some(m.counts.effects),
            None => Some(r.effects_total()?),
        };
        Ok((moment, effects, r.effects_noun().to_owned(), r.how()))
    });
    let (moment, effects, noun, how) = read.await?;
    (view.effects, view.noun, view.how) = (effects, noun, Some(how));
    let Some(m) = moment else { return Ok(at) };
    (view.rows, view.by_status, view.unfinished) =
        (m.counts.rows, m.counts.by_status, m.unfinished);
    view.one_moment = true;
    Ok(now)
}

/// Every bound that was reached is said: what is not kept is not judged as if it weren't there.
fn say_bounds(view: &mut Overview) {
    let (groups, kept) = (view.groups_total, view.groups.len() as u64);
    let unfinished = view.unfinished.len();
    let Some(how) = view.how.as_mut() else { return };
    if groups > kept {
        how.infos.push(format!(
            "{groups} groups of requests have the same arguments; only those of {kept} are marked in lists"
        ));
    }
    if unfinished >= UNFINISHED {
        how.infos.push(format!(
            "only the newest {UNFINISHED} requests that are not done are judged for the counts"
        ));
    }
}

async fn survey_piece(ledger: &Ledger, pass: &Survey) -> Result<(Survey, Stamp), LedgerError> {
    let start = pass.next_piece();
    ledger
        .read_async(move |r| {
            let mut piece = start.clone();
            r.survey(&mut piece, PIECE)?;
            Ok((piece, r.how().stamp))
        })
        .await
}

/// Equal hashes: one pass for digests, a second one only when some repeat.
async fn groups_on<F: Future<Output = ()>>(
    ledger: &Ledger,
    view: &mut Overview,
    rest: &impl Fn() -> F,
) -> Result<(), LedgerError> {
    let (mut digests, mut before) = (Repeating::default(), None);
    let no_room = |e: std::io::Error| {
        LedgerError::new(
            ledger.path(),
            Trouble::Other(format!("no temporary file to compare in: {e}")),
        )
    };
    loop {
        let piece = ledger.read_async(move |r| r.hash_digests(before, PIECE)).await?;
        digests.push(&piece.digests).map_err(no_room)?;
        before = piece.next;
        if before.is_none() {
            break;
        }
        rest().await;
    }
    let wanted = Arc::new(digests.finish().map_err(no_room)?);
    if wanted.is_empty() {
        return Ok(());
    }
    let places = places_on(ledger, &wanted, rest).await?;
    let groups = ledger.read_async(move |r| r.hash_groups(&places, GROUPS)).await?;
    view.groups_total = groups.total;
    view.groups = Arc::new(groups.list.into_iter().map(|g| (g.args_hash, g.rows)).collect());
    Ok(())
}

/// Effects without a request and swept requests.
async fn loose_on<F: Future<Output = ()>>(
    ledger: &Ledger,
    rest: &impl Fn() -> F,
) -> Result<Loose, LedgerError> {
    let mut scan = LooseScan::default();
    while !scan.complete {
        rest().await;
        let start = scan.clone();
        scan = ledger
            .read_async(move |r| {
                let mut scan = start.clone();
                r.loose_step(&mut scan, LOOSE, PIECE)?;
                Ok(scan)
            })
            .await?;
    }
    Ok(scan.found())
}

async fn places_on<F: Future<Output = ()>>(
    ledger: &Ledger,
    wanted: &Arc<HashSet<u64>>,
    rest: &impl Fn() -> F,
) -> Result<Vec<(String, i64)>, LedgerError> {
    let (mut places, mut before) = (Vec::new(), None);
    loop {
        rest().await;
        let wanted = wanted.clone();
        let piece = ledger.read_async(move |r| r.hash_places(before, PIECE, &wanted)).await?;
        places.extend(piece.places);
        before = piece.next;
        if before.is_none() {
            return Ok(places);
        }
    }
}
