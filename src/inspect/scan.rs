//! The overview of a ledger, made in pieces: each is a short read of its own, so that windows and details never
//! wait for a whole pass. A small ledger is one piece, and then one consistent look.

use super::list::{Overview, overview};
use super::{Inspector, owner_view};
use crate::ledger::pass::repeated;
use crate::ledger::{Ledger, LedgerError, Loose, LooseScan, Reader, Stamp, Survey};
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
        also: impl Fn(&Reader<'_>) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<(Overview, Option<T>), LedgerError> {
        let Some(ledger) = &self.ledger else { return Ok((Overview::default(), None)) };
        let at = Time::now();
        let (first, stamp) = survey_piece(ledger, &Survey::keeping(UNFINISHED)).await?;
        let mut more = None;
        let mut view = if first.complete {
            let (view, also) = ledger
                .read_async(move |r| {
                    let (mut view, also) = (overview(r)?, also(r)?);
                    // What came of the file until the end of the read.
                    view.how = Some(r.how());
                    Ok((view, also))
                })
                .await?;
            more = Some(also);
            view
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
            let (effects, noun, duplicates, how) = ledger
                .read_async(|r| {
                    let effects =
                        if r.has_effects_table() { Some(r.effects_total()?) } else { None };
                    let duplicates = r.duplicate_effects(GROUPS)?.len() as u64;
                    Ok((effects, r.effects_noun().to_owned(), duplicates, r.how()))
                })
                .await?;
            (view.effects, view.noun, view.duplicates, view.how) =
                (effects, noun, duplicates, Some(how));
            view
        };
        view.at = at;
        if let (n @ 1.., Some(how)) = (view.loose.lost.total, view.how.as_mut()) {
            let noun = if n == 1 { "effect has" } else { "effects have" };
            how.doubt_wal(&format!("{n} {noun} no request"));
        }
        {
            let mut seen = self.seen();
            view.unfinished.iter().for_each(|row| seen.histories.observe(row, at));
        }
        if let Some(how) = &view.how {
            self.know(how.stamp, view.rows, &view.owners);
            self.know_groups(&view.groups);
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
    let (mut digests, mut before) = (Vec::new(), None);
    loop {
        let piece = ledger.read_async(move |r| r.hash_digests(before, PIECE)).await?;
        digests.extend(piece.digests);
        before = piece.next;
        if before.is_none() {
            break;
        }
        rest().await;
    }
    let wanted = Arc::new(repeated(&mut digests));
    drop(digests);
    if wanted.is_empty() {
        return Ok(());
    }
    let places = places_on(ledger, &wanted, rest).await?;
    let groups = ledger.read_async(move |r| r.hash_groups(&places, GROUPS)).await?;
    view.groups = Arc::new(groups.into_iter().map(|g| (g.args_hash, g.rows)).collect());
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
