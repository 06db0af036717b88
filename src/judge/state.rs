//! Judges one ledger row: its state, how well that is known, and when to judge again (design:
//! "`abandoned` is judged").
//!
//! Only times of the ledger are compared with each other, and with `now`. Must not look at effects,
//! calls or hints: that is `verdict`.

use super::facts::ServerWord;
use super::observed::OwnerEnd;
use super::owners::OwnerView;
use super::words::{Judged, Seal, State, Strength, Takeover};
use crate::ledger::Row;
use crate::time::{Time, span};

/// Clocks of one machine differ by tens of milliseconds; less than this is no skew.
const SKEW_S: f64 = 1.0;

/// Whether one process at a time claims in this ledger (configuration `owners = one|many`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Owners {
    /// One, unless the claims of different owners interleave, or an owner is a word for each claim.
    #[default]
    Auto,
    /// One: a newer owner always speaks against an older one.
    One,
    /// Many: a newer owner says nothing.
    Many,
}

/// What is assumed of the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Seconds after which the server lets a repeat take over a running row. The server's own constant:
    /// redial can only assume it.
    pub stale_limit_s: f64,
    /// How many processes claim.
    pub owners: Owners,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { stale_limit_s: 120.0, owners: Owners::Auto }
    }
}

/// Judges `row`. `end`: its owner's process was seen to end; `server_says`: the last look-up of it.
pub fn judge_row(
    row: &Row,
    owners: &OwnerView,
    rules: Rules,
    end: Option<&OwnerEnd>,
    server_says: Option<&ServerWord>,
    now: Time,
) -> Judged {
    let state = stored(&row.status);
    if state == State::Running {
        return Running { row, owners, rules, now }.judge(end, server_says);
    }
    if let (State::Abandoned, Some(OwnerEnd::Seen(end))) = (&state, end) {
        let why = format!("the ledger's own word, and {}", end.words());
        return Judged::plain(state, Strength::Observed, why);
    }
    let why = match &state {
        State::Done => "the ledger says that it is finished".into(),
        State::Unmapped(word) if word.is_empty() => {
            "its row holds no status; it does not count as done".into()
        }
        State::Unmapped(_) => "a word that nothing here explains; it does not count as done".into(),
        _ => "the ledger's own word".into(),
    };
    Judged::plain(state, Strength::Stored, why)
}

/// The state a stored word names, before anybody judges it. Only the exact words: any other is shown as it
/// is and never counts as done.
pub fn stored(word: &str) -> State {
    match word {
        "running" => State::Running,
        "done" => State::Done,
        "abandoned" => State::Abandoned,
        "waiting" => State::Waiting,
        "failed" => State::Failed,
        "cancelled" | "canceled" => State::Cancelled,
        "expired" => State::Expired,
        other => State::Unmapped(other.to_owned()),
    }
}

/// A row whose stored word is `running`.
struct Running<'a> {
    row: &'a Row,
    owners: &'a OwnerView,
    rules: Rules,
    now: Time,
}

impl Running<'_> {
    fn judge(&self, end: Option<&OwnerEnd>, server_says: Option<&ServerWord>) -> Judged {
        let claimed = self.row.claimed_at;
        let limit_at = claimed.map(|t| t.plus_seconds(self.rules.stale_limit_s));
        let over = limit_at.filter(|t| *t <= self.now);
        let newer = self.newer_owner();
        // A word from before this claim was about another claim.
        let word = server_says.filter(|w| claimed.is_none_or(|c| w.at >= c));
        let denied = word.filter(|w| w.status == "abandoned" && !self.worth_nothing(w));
        let owned = word.filter(|w| w.status == "running").map(|w| w.at);
        let owned_until = owned.map(|t| t.plus_seconds(self.rules.stale_limit_s));

        let (state, strength, mut why) = if let Some(OwnerEnd::Seen(end)) = end {
            (State::Abandoned, Strength::Observed, end.words())
        } else if let Some(OwnerEnd::GoesOn(end)) = end {
            (State::Abandoned, Strength::Presumed, format!("presumed: {}", end.words()))
        } else if let Some(OwnerEnd::Likely(end)) = end {
            (State::Abandoned, Strength::Presumed, format!("presumed: {}", end.likely_words()))
        } else if let Some(OwnerEnd::Launched(end)) = end {
            (State::Abandoned, Strength::Presumed, format!("presumed: {}", end.launched_words()))
        } else if denied.is_some() {
            let why = "the server says that another process claimed it; that one may be alive";
            (State::Abandoned, Strength::ServerSays, why.to_owned())
        } else if owned_until.is_some_and(|t| t > self.now) {
            (State::Running, Strength::ServerSays, "the server says that it works on it".into())
        } else if let Some(at) = newer {
            (State::Abandoned, Strength::Presumed, self.newer_words(at, over.is_some()))
        } else if over.is_some() {
            (State::Abandoned, Strength::Presumed, format!("presumed: {}", self.old_words()))
        } else {
            (State::Running, Strength::Stored, self.running_words())
        };
        if word.is_some_and(|w| w.status == "abandoned" && self.worth_nothing(w)) {
            why.push_str("; the word of a server that redial started since proves nothing");
        }
        let running = state == State::Running;
        let again = if strength == Strength::ServerSays { owned_until } else { limit_at };
        Judged {
            state,
            strength,
            why,
            judge_again_at: again.filter(|t| running && *t > self.now),
            takeover: self.takeover(newer, denied.is_some()),
            skew_s: self.skew(),
            seal: Seal,
        }
    }

    /// See [`Takeover`]. Never of a time at which somebody looked.
    fn takeover(&self, newer: Option<Time>, by_word: bool) -> Option<Takeover> {
        let limit_s = self.rules.stale_limit_s;
        let by_age = self.row.claimed_at.map(|t| t.plus_seconds(limit_s));
        let known = self.row.takes_over;
        let at = newer.into_iter().chain(by_age).min()?;
        let limit_s = (Some(at) != newer).then_some(limit_s);
        Some(Takeover { at, limit_s, known, by_word })
    }

    /// When another owner claimed after this claim, where that means anything.
    fn newer_owner(&self) -> Option<Time> {
        let counts = match self.rules.owners {
            Owners::One => true,
            Owners::Many => false,
            Owners::Auto => !self.owners.interleave() && !self.owners.for_each_claim(),
        };
        let (owner, claimed) = (self.row.owner.as_deref()?, self.row.claimed_at?);
        if counts { self.owners.newer_than(owner, claimed) } else { None }
    }

    /// A process that redial started after the claim can't own the row: that it says so is no news.
    fn worth_nothing(&self, word: &ServerWord) -> bool {
        let Some(started) = word.started_by_us else { return false };
        self.row.claimed_at.is_none_or(|claimed| claimed <= started)
    }

    fn skew(&self) -> Option<f64> {
        let ahead = -self.row.claimed_at?.age_at(self.now);
        (ahead > SKEW_S).then_some(ahead)
    }

    fn old_words(&self) -> String {
        let age = self.row.claimed_at.map_or(0.0, |t| t.age_at(self.now));
        format!("claimed {} ago, the limit is {} s", span(age), self.rules.stale_limit_s)
    }

    fn newer_words(&self, at: Time, over: bool) -> String {
        let later = self.row.claimed_at.map_or(0.0, |c| c.age_at(at));
        let also = if over { format!("; {}", self.old_words()) } else { String::new() };
        format!("presumed: a newer owner has claimed since, {} later{also}", span(later))
    }

    fn running_words(&self) -> String {
        let Some(claimed) = self.row.claimed_at else {
            return "running, by a claim without a time: nothing can be presumed".into();
        };
        match self.skew() {
            Some(ahead) => format!(
                "claimed {} in the future: the clocks differ (clock skew), so its age says nothing",
                span(ahead)
            ),
            None => format!("claimed {} ago", span(claimed.age_at(self.now).max(0.0))),
        }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
