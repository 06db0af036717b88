//! What a tap sees an agent do and redial's own client would have noted: that a call is given up, and that a call
//! goes on with what was asked back. The frames say so; the fold wants it said.

use crate::journal::event::{Http, Kind, Note, Purpose};
use crate::journal::{Call, CallId, Event, Session};
use crate::json::raw;
use crate::record::entry::{Wire, resumes_stream};
use crate::wire::frame::Frame;
use crate::wire::id::Id;

/// Folds one recorded event in, with what its frame says of an earlier call.
pub(super) fn apply(session: &mut Session, mut event: Event, wire: &Wire) {
    // Only the headers of a GET tell whether it asks for the rest of a stream that was cut, on which answers may come.
    if let Kind::Http { exchange, what: Http::Request { method, .. } } = &event.kind
        && method == "GET"
        && resumes_stream(&wire.headers)
    {
        let what = Http::Resuming { last_event_id: String::new(), after_ms: 0 };
        let kind = Kind::Http { exchange: *exchange, what };
        session.apply(&Event { kind, ..event.clone() });
    }
    let mut given_up = None;
    if let Kind::Sent { raw: frame, purpose, .. } = &mut event.kind
        && *purpose == Purpose::Asked
    {
        let text = String::from_utf8_lossy(frame);
        match Frame::parse(&text) {
            Frame::Notification { method, params } if method == "notifications/cancelled" => {
                let id = params.and_then(|p| raw::get(p, "requestId")).map(Id::from_raw);
                given_up = id.and_then(|id| pending(session, event.generation, |c| c.rpc_id == id));
            }
            Frame::Request { method, params: Some(p), .. } if method == "tools/call" => {
                let goes_on = raw::get(p, "inputResponses").or_else(|| raw::get(p, "requestState"));
                if goes_on.is_some() {
                    let tool = raw::get_str(p, "name");
                    let args = raw::get(p, "arguments");
                    let same =
                        |c: &Call| Some(&c.tool) == tool.as_ref() && c.args.as_deref() == args;
                    if let Some(call) = pending(session, event.generation, same) {
                        *purpose = Purpose::FollowUp { call };
                    }
                }
            }
            _ => {}
        }
    }
    session.apply(&event);
    if let Some(call) = given_up {
        session.apply(&Event { kind: Kind::Note(Note::Cancelled { call }), ..event });
    }
}

/// The newest call that waits and is this one.
fn pending(s: &Session, generation: u32, is: impl Fn(&Call) -> bool) -> Option<CallId> {
    let calls = s.calls.values().rev();
    calls.filter(|c| c.is_pending() && c.generation == generation).find(|c| is(c)).map(|c| c.id)
}
