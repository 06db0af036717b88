//! Whether an answer is that of the call under whose id it came: by where it came, and by the request that it names.
//!
//! Ids collide: every client counts from 1, and servers mix up whom they answer. An answer on a stream where none may
//! come (2025-11-25, "Listening for Messages": no response on a GET stream that resumes nothing), or one that names
//! another request, settles nothing. The words for that are here, and rendered last.

use super::call::{Call, CallId, Outcome};
use super::fold::Session;
use super::refusal::short;
use super::settle;
use crate::json::raw::{self, Object};
use crate::time::Time;
use crate::wire::id::Id;
use std::fmt;

/// Why an answer under a call's id is not counted as the call's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disowned {
    /// It came where no answer to this call may come.
    Misplaced(Place),
    /// It says itself that it is about another request.
    OtherRequest {
        /// What the call's arguments name.
        own: String,
        /// What the answer names.
        named: String,
    },
    /// What came was no JSON, or stood in a line that is none; in words.
    NoJson(String),
}

/// Where an answer came that may not come there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// On the stream on which the client only listens.
    Listening,
    /// On the stream of another call, with that tool.
    OtherCall(String),
    /// On the exchange of another message.
    OtherExchange,
}

impl fmt::Display for Disowned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Disowned::Misplaced(Place::Listening) => f.write_str(
                "an answer under its id came on the listening stream (GET), where none may come: it is somebody else's, or out of place, and settles nothing",
            ),
            Disowned::Misplaced(Place::OtherCall(tool)) => write!(
                f,
                "an answer under its id came on the stream of another call ({tool}), where it may not come: it settles nothing"
            ),
            Disowned::Misplaced(Place::OtherExchange) => f.write_str(
                "an answer under its id came in answer to another message, where it may not come: it settles nothing",
            ),
            Disowned::OtherRequest { own, named } => write!(
                f,
                "an answer under its id names the request {named}, not {own}: it is somebody else's, and settles nothing"
            ),
            Disowned::NoJson(why) => write!(f, "answered with a line that is no JSON: {why}"),
        }
    }
}

impl Session {
    /// What is out of place about an answer that came on the exchange `came` to what was sent on `asked`.
    pub(super) fn misplaced(
        &self,
        generation: u32,
        asked: Option<u64>,
        came: Option<u64>,
    ) -> Option<Place> {
        // Without an exchange of its own: stdio, or a log that doesn't tell.
        let asked = asked?;
        if came == Some(asked) || self.answers_apart.contains_key(&generation) {
            return None;
        }
        let Some(x) = came.and_then(|x| self.exchanges.get(&x)) else {
            return Some(Place::Listening);
        };
        if x.resumes {
            return None;
        }
        let tool = x.call.and_then(|c| self.calls.get(&c)).map(|c| short(&c.tool, 64));
        Some(match (tool, x.get) {
            (Some(tool), _) => Place::OtherCall(tool),
            (None, true) => Place::Listening,
            (None, false) => Place::OtherExchange,
        })
    }

    /// The call that waits under this JSON-RPC id.
    pub fn pending_under(&self, generation: u32, id: &Id) -> Option<CallId> {
        let call = self.by_id.get(&(generation, id.clone()))?;
        self.calls.get(call).filter(|c| c.is_pending()).map(|c| c.id)
    }

    /// Marks a call with an answer that does not count. Where nothing else would tell its end, that is known now: the
    /// id is used up, and what became of the call is not known.
    pub(super) fn disown(&mut self, at: Time, call: CallId, why: Disowned) {
        let Some(c) = self.calls.get_mut(&call) else { return };
        let words = format!("call {} ({}): {why}", c.rpc_id, short(&c.tool, 64));
        let no_json = matches!(why, Disowned::NoJson(_));
        let elsewhere = matches!(why, Disowned::Misplaced(_));
        c.live.disowned = Some(why.clone());
        let exchange = c.exchange;
        let open = exchange.is_some_and(|x| self.exchanges.contains_key(&x));
        self.note(at, words);
        if no_json || (!elsewhere && !open) {
            // `end` says why, as it does for every disowned answer.
            let said = match &why {
                Disowned::NoJson(_) => "its answer can't be read",
                _ => "answered, but not as this request",
            };
            settle::end(self, at, call, Outcome::Unknown, said.into());
        }
    }
}

/// The request that an answer's own object names, where that is another one than `own`. Only the top level counts: an
/// answer may well list other requests. A list of text items is looked at one by one.
pub(crate) fn names_another(own: &str, text: &str, result: &Object<'_>) -> Option<String> {
    // Most answers name none: a look at the bytes saves reading megabytes of prose.
    memchr::memmem::find(text.as_bytes(), b"request_id")?;
    let other = |object: &str| request_named(object).filter(|named| named != own);
    let structured = result.get("structuredContent").filter(|s| raw::is_object(s));
    if let Some(other) = structured.and_then(other) {
        return Some(other);
    }
    let items = result.get("content").and_then(raw::items).unwrap_or_default();
    items.into_iter().filter(|i| i.contains("request_id")).find_map(|item| {
        let text = raw::as_str(raw::get(item, "text")?)?;
        other(&text)
    })
}

/// The `request_id` of a raw object, as text whatever its type: `5` and `"5"` name the same row. FastMCP 2 wraps some
/// results as `{"result": …}`; that wrapper is looked through.
pub(crate) fn request_named(object: &str) -> Option<String> {
    let members = raw::members(object)?;
    let inner = match members.as_slice() {
        [(key, inner)] if key == "result" && raw::is_object(inner) => raw::members(inner)?,
        _ => members,
    };
    let value = inner.iter().rev().find(|(k, _)| k == "request_id").map(|(_, v)| *v)?;
    crate::json::key::text(value).filter(|t| !t.is_empty())
}

/// The other request that this result of a call names, with the call's own.
pub(super) fn other_request(c: &Call, text: &str, result: &Object<'_>) -> Option<Disowned> {
    let own = request_named(c.args.as_deref()?)?;
    let named = names_another(&own, text, result)?;
    Some(Disowned::OtherRequest { own: short(&own, 64), named: short(&named, 64) })
}

/// The other request that this JSON-RPC error of a call names in its data.
pub(super) fn other_error(c: &Call, error: &str) -> Option<Disowned> {
    memchr::memmem::find(error.as_bytes(), b"request_id")?;
    let own = request_named(c.args.as_deref()?)?;
    let named = request_named(raw::get(error, "data")?).filter(|named| *named != own)?;
    Some(Disowned::OtherRequest { own: short(&own, 64), named: short(&named, 64) })
}

#[cfg(test)]
mod tests;
