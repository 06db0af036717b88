//! Counts for the verify pane while somebody watches it: at once, and again whenever the ledger or a call that bears on
//! it changes, within a budget of a few hundredths of a core, whatever a busy writer of a large ledger does.

use super::facts::{changed, judge_again, until};
use super::{Hands, facts};
use crate::inspect::budget::Budget;
use crate::judge::verify::{Expected, Problem as Found, Severity, Totals, Verified as Judged};
use crate::time::Time;
use crate::tui::data::{Counted, Problem, Verified};
use crate::tui::msg::Msg;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The least rest after a count, in units of the time it took.
const REST: u32 = 4;

/// Whether somebody watches, and how often it was asked for: asking again counts again.
pub type Watched = (bool, u64);

pub async fn follow(
    hands: Hands,
    mut watched: watch::Receiver<Watched>,
    mut calls: watch::Receiver<u64>,
) {
    let Some(ledger) = hands.inspector.ledger.clone() else { return };
    let mut ledger = Some(ledger.watch());
    let clock = Instant::now();
    let mut budget = Budget::new(0.0);
    loop {
        if watched.wait_for(|w| w.0).await.is_err() {
            return;
        }
        if let Some(l) = &mut ledger {
            l.borrow_and_update();
        }
        calls.borrow_and_update();
        let started = Instant::now();
        tell(&hands, Counted::Begun(Time::now())).await;
        let count = tokio::select! {
            count = count(&hands) => count,
            // Called off, or asked for anew.
            _ = watched.changed() => continue,
        };
        // A lock leaves no trace when it goes.
        let failed = matches!(count, Counted::Failed(_));
        tell(&hands, count).await;
        let cost = started.elapsed();
        let again = match failed {
            true => Some(Time::now().plus_seconds(facts::RETRY.as_secs_f64())),
            false => judge_again(&hands, &hands.judging.borrow().clone()),
        };
        tokio::select! {
            () = changed(&mut ledger) => {}
            _ = calls.changed() => {}
            () = until(again) => {}
            _ = watched.changed() => continue,
        }
        let rest = budget.rest(clock.elapsed().as_secs_f64(), cost).max(cost * REST);
        let rest = rest.saturating_sub(started.elapsed().saturating_sub(cost));
        if rest > Duration::from_millis(500) {
            tell(&hands, Counted::Again(Time::now().plus_seconds(rest.as_secs_f64()))).await;
        }
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            _ = watched.changed() => {}
        }
    }
}

async fn tell(hands: &Hands, news: Counted) {
    hands.tell(Msg::Counted(news)).await;
}

async fn count(hands: &Hands) -> Counted {
    let (as_of, started) = (Time::now(), Instant::now());
    match hands.inspector.verify(&Expected::default(), false).await {
        Ok((totals, judged)) => {
            let took_s = started.elapsed().as_secs_f64();
            Counted::Found(Box::new(verified(&totals, judged, as_of, took_s)))
        }
        Err(e) => Counted::Failed(e.to_string()),
    }
}

/// What a count is told as.
pub fn verified(totals: &Totals, judged: Judged, as_of: Time, took_s: f64) -> Verified {
    let problem = |p: Found| Problem {
        kind: p.kind.replace('_', " "),
        error: p.severity == Severity::Error,
        detail: p.detail,
        request_ids: p.request_ids,
    };
    Verified {
        good: judged.exactly_once,
        sentence: judged.sentence,
        requests: totals.requests.iter().map(|(s, n)| (s.word().to_owned(), *n)).collect(),
        effects: totals.effects,
        problems: judged.problems.into_iter().map(problem).collect(),
        as_of,
        took_s,
    }
}
