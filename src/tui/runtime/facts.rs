//! Follows the ledger and the calls, and keeps what rows are judged with: a pass over the whole table, the
//! session, the pairing. Passes have a budget of a few hundredths of a core, so that a night beside a busy writer costs
//! no more; between them the rows that are shown are read anew, which costs next to nothing.

use super::Hands;
use crate::inspect::Inspector;
use crate::inspect::budget::{Budget, processor_time};
use crate::inspect::list::{Judging, Overview};
use crate::inspect::scan::PIECE;
use crate::time::Time;
use crate::tui::data::Counts;
use crate::tui::msg::Msg;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The least rest after a pass, in units of the time it took.
const REST: u32 = 4;
/// Rest after a piece of a later pass.
const PIECE_REST: Duration = Duration::from_millis(60);
/// A call ends a long rest no more often: the agent's own come all the time.
const HURRY_EVERY: Duration = Duration::from_secs(60);
/// A first pass that takes longer says how far it is.
const SAID_AFTER: Duration = Duration::from_millis(500);
/// The longest of these least rests.
const LONGEST_REST: Duration = Duration::from_secs(5);
/// Between two passes the window is read again this often, if the ledger changes.
const WINDOW_EVERY: Duration = Duration::from_secs(2);
/// How soon a ledger that can't be read is tried again, whether it changed or not (a lock leaves no trace).
pub(super) const RETRY: Duration = Duration::from_millis(700);
/// Unfinished rows that are asked when they are to be judged again.
const AGAIN: usize = 200;

/// What rows are judged with before the first pass is through.
pub fn nothing_yet(inspector: &Inspector) -> Judging {
    let mut judging = Judging::default();
    judging.overview.at = Time::now();
    judging.session = inspector.session();
    judging
}

pub async fn follow(hands: Hands, mut calls: watch::Receiver<u64>) {
    let mut ledger = hands.inspector.ledger.as_ref().map(|l| l.watch());
    let mut last_good = Counts::default();
    let mut first = true;
    let clock = Instant::now();
    let mut budget = Budget::new(0.0);
    let mut hurried = None;
    loop {
        let cost_so_far = processor_time();
        calls.borrow_and_update();
        if let Some(l) = &mut ledger {
            l.borrow_and_update();
        }
        let started = Instant::now();
        // The first pass is waited for: it says how far it is.
        let seen = AtomicU64::new(0);
        let rest = || async {
            let seen = seen.fetch_add(PIECE as u64, Ordering::Relaxed);
            if first && started.elapsed() >= SAID_AFTER {
                hands.tell(Msg::Reading(seen)).await;
            }
            piece_rest(first).await;
        };
        let again = match hands.inspector.overview(rest).await {
            Ok(overview) => {
                let judging = Arc::new(hands.inspector.judging(overview).await);
                last_good = counts(&hands, &judging);
                let again = judge_again(&hands, &judging);
                hands.tell_pairing(&judging.paired).await;
                hands.judging.send_replace(judging);
                if hands.inspector.ledger.is_some() {
                    hands.tell(Msg::Counts(Box::new(last_good.clone()))).await;
                }
                again
            }
            Err(e) => {
                let error = crate::error::Error::from(e);
                let warnings = error.hint.into_iter().collect();
                let trouble = Some(error.what);
                let counts = Counts { trouble, warnings, ..last_good.clone() };
                hands.tell(Msg::Counts(Box::new(counts))).await;
                Some(Time::now().plus_seconds(RETRY.as_secs_f64()))
            }
        };
        hands.tell(Msg::FactsChanged).await;
        first = false;
        let least = (started.elapsed() * REST).min(LONGEST_REST);
        let cost = processor_time().saturating_sub(cost_so_far);
        let rest = budget.rest(clock.elapsed().as_secs_f64(), cost).max(least);
        tokio::time::sleep(least).await;
        let listening = hurried.is_none_or(|at: Instant| at.elapsed() > HURRY_EVERY);
        let left = rest.saturating_sub(least);
        let slept = Instant::now();
        if resting(&hands, &mut ledger, &mut calls, left, listening).await {
            if slept.elapsed() < left {
                hurried = Some(Instant::now());
            }
            continue;
        }
        tokio::select! {
            () = changed(&mut ledger) => {}
            done = calls.changed() => if done.is_err() && ledger.is_none() { return },
            () = until(again) => {}
        }
    }
}

/// The rest that the budget asks for. What a call brings may be waited for by somebody, and ends it now and then; says
/// whether something is to be read after it.
async fn resting(
    hands: &Hands,
    ledger: &mut Option<watch::Receiver<u64>>,
    calls: &mut watch::Receiver<u64>,
    rest: Duration,
    mut listening: bool,
) -> bool {
    let end = tokio::time::Instant::now() + rest;
    let mut again = false;
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(end) => return again,
            called = calls.changed(), if listening => match called {
                Ok(()) => return true,
                Err(_) => listening = false,
            },
            () = changed(ledger) => {
                again = true;
                let window = (tokio::time::Instant::now() + WINDOW_EVERY).min(end);
                tokio::time::sleep_until(window).await;
                if window < end {
                    hands.tell(Msg::FactsChanged).await;
                }
            }
        }
    }
}

/// Between two pieces of a large pass whoever asks for a window or a detail comes first. The first pass hurries,
/// since somebody waits for its numbers; later ones take at most a tenth of a core.
async fn piece_rest(first: bool) {
    if first {
        tokio::task::yield_now().await;
    } else {
        tokio::time::sleep(PIECE_REST).await;
    }
}

pub(super) async fn changed(ledger: &mut Option<watch::Receiver<u64>>) {
    let alive = match ledger {
        Some(l) => l.changed().await.is_ok(),
        None => false,
    };
    if !alive {
        std::future::pending().await
    }
}

pub(super) async fn until(at: Option<Time>) {
    match at {
        Some(t) => {
            let left = (t.0 - Time::now().0).clamp(20_000, 3_600_000_000);
            tokio::time::sleep(Duration::from_micros(left.unsigned_abs())).await;
        }
        None => std::future::pending().await,
    }
}

fn counts(hands: &Hands, judging: &Judging) -> Counts {
    let counts = hands.inspector.counts(judging, Time::now());
    let how = judging.overview.how.as_ref();
    Counts {
        headline: counts.headline(),
        as_of: Some(counts.as_of),
        trouble: None,
        warnings: how.map(|h| h.warnings.clone()).unwrap_or_default(),
        remarks: hands
            .how_to
            .iter()
            .chain(how.iter().flat_map(|h| &h.infos))
            .cloned()
            .chain(let_go(hands.inspector.seen().histories.let_go()))
            .collect(),
    }
}

/// That not all that was seen happening is kept.
fn let_go(n: u64) -> Option<String> {
    (n > 0).then(|| format!("what was seen happening to {n} requests is not kept any more"))
}

/// When the next unfinished row is to be judged otherwise without any change of the file.
pub(super) fn judge_again(hands: &Hands, judging: &Judging) -> Option<Time> {
    let overview: &Overview = &judging.overview;
    let rows = &overview.unfinished[..overview.unfinished.len().min(AGAIN)];
    let now = Time::now();
    let lines = hands.inspector.lines(rows, judging, now);
    lines.iter().filter_map(|l| l.judged.judge_again_at).filter(|t| *t > now).min()
}
