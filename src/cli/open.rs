//! Opening a ledger for a one-shot command, and how states, verdicts and remarks look in plain output.

use super::args::{LedgerArgs, OwnersArg};
use super::plain::{Plain, Role};
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
    Ok((a.ledger.as_ref().map(|l| Ledger::counting(l, &a.effects)), rules))
}

/// Reads once, so that a ledger that can't be read ends a command before a server is started for it.
///
/// # Errors
/// Exit 6, in the ledger's own words.
pub async fn readable(ledger: Option<&Ledger>) -> Result<()> {
    match ledger {
        // A row, not only the schema: damaged pages show when they are read.
        Some(l) => l.read_async(|r| r.newest(None, 1).map(drop)).await.map_err(ledger_error),
        None => Ok(()),
    }
}

/// Exit 6, in the ledger's own words.
pub fn ledger_error(e: LedgerError) -> Error {
    e.into()
}

/// What there is to say about the file.
pub fn ledger_remarks(how: Option<&How>) -> Vec<String> {
    how.map(|h| h.warnings.iter().chain(&h.infos).cloned().collect()).unwrap_or_default()
}

/// The same for people: warnings stand out, information does not.
pub fn remarks_plain(p: &mut Plain, how: Option<&How>) {
    let Some(how) = how else { return };
    for (role, name, texts) in
        [(Role::Warn, "warning", &how.warnings), (Role::Dim, "note", &how.infos)]
    {
        texts.iter().for_each(|t| p.field(name, role, t));
    }
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
