//! Opening a ledger for a one-shot command, and how states, verdicts and remarks look in plain output.

use super::args::{LedgerArgs, OwnersArg};
use super::plain::Role;
use crate::error::{Error, Result};
use crate::judge::{Owners, Rules, State, Verdict};
use crate::ledger::{How, Ledger, LedgerError};

/// The ledger, if one was named, and what is assumed of its server. Whether it can be read shows at the first
/// read.
///
/// # Errors
/// None today; the signature leaves room for configured ledgers.
pub fn open_ledger(a: &LedgerArgs) -> Result<(Option<Ledger>, Rules)> {
    let owners = match a.owners {
        OwnersArg::Auto => Owners::Auto,
        OwnersArg::One => Owners::One,
        OwnersArg::Many => Owners::Many,
    };
    let rules = Rules { stale_limit_s: a.stale_seconds, owners };
    Ok((a.ledger.as_ref().map(Ledger::open), rules))
}

/// Exit 6, in the ledger's own words.
pub fn ledger_error(e: LedgerError) -> Error {
    e.into()
}

/// What there is to say about the file.
pub fn ledger_remarks(how: Option<&How>) -> Vec<String> {
    how.map(|h| h.warnings.iter().chain(&h.infos).cloned().collect()).unwrap_or_default()
}

/// How a state looks.
pub fn state_role(s: &State) -> Role {
    match s {
        State::Done => Role::Good,
        State::Running | State::Waiting => Role::Text,
        State::NoRow => Role::Dim,
        State::Abandoned | State::Expired | State::Cancelled | State::Unmapped(_) => Role::Warn,
        State::Failed => Role::Bad,
    }
}

/// How a verdict looks: what breaks an invariant is bad, what waits for a person warns.
pub fn verdict_role(v: &Verdict) -> Role {
    match v {
        Verdict::Duplicate | Verdict::EndpointMismatch | Verdict::Conflict => Role::Bad,
        Verdict::DoneWithoutEffect
        | Verdict::EffectWithoutRequest
        | Verdict::AnsweredWithoutRow => Role::Bad,
        Verdict::Finished => Role::Good,
        Verdict::InFlight | Verdict::Working | Verdict::Waiting | Verdict::RequestPurged => {
            Role::Text
        }
        Verdict::NotKnown => Role::Dim,
        _ => Role::Warn,
    }
}
