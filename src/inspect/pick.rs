//! Which arguments a repeat is made with, of those that were given or found.

use super::reissue::Wish;
use super::request::Request;
use crate::error::{Error, Result};
use crate::json::key::Spelling;
use crate::model::arguments::{Candidate, Choice, Source, choose, respelled, with_request_id};
use crate::model::hash::{Shape, is_of_all};
use crate::record::redact::{MASK, masked};

/// The arguments to send.
///
/// # Errors
/// Exit 2 when there are none, several, or only some that were written down without a secret.
pub(super) fn pick_arguments(
    wish: &Wish,
    seen: &Request,
    shape: impl Fn(Option<&str>) -> Shape,
) -> Result<Candidate> {
    let id = wish.request_id.as_deref();
    let hash = seen.facts.row.as_ref().and_then(|r| r.args_hash.as_deref());
    let explicit =
        wish.candidates.iter().any(|c| matches!(c.source, Source::Given | Source::File(_)));
    // What a person names is what is sent (and checked); only what redial finds by itself is chosen among.
    let mut candidates: Vec<Candidate> =
        if wish.candidates.is_empty() { seen.candidates.clone() } else { wish.candidates.clone() };
    let stored = seen.facts.row.as_ref().map(|r| r.id_as).unwrap_or_default();
    let spelling = |tool: Option<&str>| shape(tool).spelling().unwrap_or(stored);
    if explicit && let Some(first) = candidates.first().cloned() {
        let spelling = spelling(first.tool.as_deref());
        return complete(first, id, spelling);
    }
    for c in &mut candidates {
        let spelling = spelling(c.tool.as_deref());
        if let Some(args) = id.and_then(|id| with_request_id(&c.args, id, spelling)) {
            c.args = args;
        }
        if matches!(c.source, Source::Effect(_)) {
            c.args = respelled(&c.args, spelling);
        }
    }
    let what = id.map_or_else(String::new, |id| format!(" of {id}"));
    // A recording has the mask where a secret was: that is another call, unless the hash of all of them says that the
    // mask itself was sent. A server that drops an argument has the same hash with and without its secret.
    let differs = |c: &Candidate| !hash.is_some_and(|h| is_of_all(&c.args, h));
    let missing = |c: &Candidate| match c.source {
        Source::Given | Source::File(_) | Source::Seen | Source::Effect(_) => Vec::new(),
        Source::Recording(_) | Source::Transcript(_) => masked(&c.args),
    };
    let (hidden, candidates): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|c| !missing(c).is_empty() && differs(c));
    if let (Some(c), true) = (hidden.first(), candidates.is_empty()) {
        return Err(Error::usage(format!(
            "the arguments{what} {} were written down without {}, which {MASK} stands for; nothing was sent",
            c.source.words(),
            missing(c).join(", ")
        ))
        .hint("give the whole arguments with --args or --args-file"));
    }
    match choose(candidates, hash, &shape, seen.proof.as_ref()) {
        Choice::One(c) => {
            let spelling = spelling(c.tool.as_deref());
            complete(c, id, spelling)
        }
        Choice::Ambiguous(all) => Err(Error::usage(format!(
            "{} different sets of arguments{what} were found and no hash tells which is right; nothing was sent",
            all.len()
        ))
        .hint("give the right ones with --args or --args-file")),
        Choice::NoneFits(_) => Err(Error::usage(format!(
            "arguments{what} were found, but their hash is not the ledger's: they belong to another call; nothing was sent"
        ))
        .hint("give the right ones with --args or --args-file")),
        Choice::Nothing => Err(Error::usage(format!("the arguments{what} are not known; nothing was sent"))
            .hint("give them with --args or --args-file, or let redial find them in the agent's log: --args-from FILE…")),
    }
}

fn complete(mut c: Candidate, id: Option<&str>, spelling: Spelling) -> Result<Candidate> {
    if let Some(id) = id {
        c.args = with_request_id(&c.args, id, spelling).ok_or_else(|| {
            Error::usage(format!(
                "the arguments hold another request_id than {id}; nothing was sent"
            ))
            .hint("a repeat keeps the request_id; a new one would be a new request")
        })?;
    }
    Ok(c)
}
