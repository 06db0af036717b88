//! Names what comes on stdout and is not MCP: LSP framing, pretty-printed messages, lines over the limit.
//! Marks it in words; never takes it for a message.

use super::belongs::Disowned;
use super::call::Outcome;
use super::event::Event;
use super::fold::{Misfit, Session};
use super::settle;
use crate::json::raw;
use crate::size::size;
use crate::time::Time;
use crate::wire::broken::{broken, fault};
use crate::wire::frame::Frame;
use crate::wire::id::Id;
use bytes::Bytes;

/// A JSON object that runs over several lines, as far as it has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Block {
    text: String,
    lines: usize,
    /// How often it was looked at as a whole.
    tries: u32,
}

/// The longest block that is looked at.
const BLOCK_BYTES: usize = 1 << 20;

/// How often a block is looked at as a whole before its plain end.
const TRIES: u32 = 100;

/// A line that an object or a list begins on and does not end on.
fn begins_a_message(line: &str) -> bool {
    line == "["
        || line == "{"
        || (line.starts_with('{')
            && fault(line).is_some_and(|f| f.ends_with(&format!(" {}", line.len()))))
}

/// A line on stdout that is no JSON-RPC.
pub(super) fn noise(s: &mut Session, event: &Event, raw: &Bytes, cut: u64) {
    if cut > 0 {
        return over_the_limit(s, event, raw, cut);
    }
    let line = String::from_utf8_lossy(raw);
    no_json(s, event, &line);
    if raw.len() > BLOCK_BYTES {
        s.block = None;
        return;
    }
    // With this framing there is no newline after a message: the next header sticks to it.
    if line.trim_start().to_ascii_lowercase().starts_with("content-length:")
        || (line.starts_with('{') && line.contains("}Content-Length:"))
    {
        let words = "the server frames its messages with Content-Length headers, as LSP does; MCP on stdio is one message a line, so they can't be read";
        return misfit(s, event, words.into());
    }
    let line = line.trim_end();
    match &mut s.block {
        None if begins_a_message(line) => {
            s.block = Some(Block { text: line.to_owned(), lines: 1, tries: 0 });
        }
        None => {}
        Some(b) => {
            b.text.push('\n');
            b.text.push_str(line);
            b.lines += 1;
            // The end of the outermost object of a pretty-printed text stands at the line's start; of one that was only
            // broken somewhere it may stand anywhere.
            let ends = line.ends_with(['}', ']']);
            b.tries += u32::from(ends);
            let whole = ends && b.tries <= TRIES && raw::members(&b.text).is_some();
            if matches!(line, "}" | "]") || whole {
                if let Some(b) = s.block.take() {
                    printed_over_lines(s, event, &b);
                }
            } else if b.text.len() > BLOCK_BYTES {
                s.block = None;
            }
        }
    }
}

/// A text that should have been the answer of a pending call: marked at once, and with it the call is over, unless the
/// answer is only quoted in other text, as a log does with one that is sent properly too.
pub(super) fn no_json(s: &mut Session, event: &Event, text: &str) {
    for found in broken(text) {
        let mut calls = found.ids.iter().filter_map(|id| {
            let call = s.by_id.get(&(event.generation, id.clone())).copied()?;
            s.calls.get(&call).filter(|c| c.is_pending()).map(|c| c.id)
        });
        // Where more than one waits, nobody can tell whose it is.
        let (Some(call), None) = (calls.next(), calls.next()) else { continue };
        match found.quoted {
            true => {
                let why = Disowned::NoJson(found.why);
                s.note(event.at, format!("call {call}: {why}"));
                if let Some(c) = s.calls.get_mut(&call) {
                    c.live.disowned = Some(why);
                }
            }
            false => s.disown(event.at, call, Disowned::NoJson(found.why)),
        }
    }
}

fn printed_over_lines(s: &mut Session, event: &Event, block: &Block) {
    let id = match Frame::parse(&block.text) {
        Frame::NotRpc => return,
        Frame::Response { id, .. } => id,
        _ => None,
    };
    let n = block.lines;
    let call = id.and_then(|id| s.by_id.get(&(event.generation, id)).copied());
    if let Some(call) = call {
        let why = format!("it was printed over {n} lines; MCP on stdio is one message a line");
        settle::malformed(s, event.at, call, &why);
    }
    misfit(
        s,
        event,
        format!(
            "the server prints its messages over several lines (one of {n}); MCP on stdio is one message a line, so they can't be read"
        ),
    );
}

fn misfit(s: &mut Session, event: &Event, words: String) {
    let generation = event.generation;
    if s.misfit.as_ref().is_none_or(|m| m.generation != generation || m.words != words) {
        s.note(event.at, words.clone());
        s.misfit = Some(Misfit { generation, words, ids: false });
    }
}

/// A line that was cut is no message any more, but its head may say whose answer it was.
fn over_the_limit(s: &mut Session, event: &Event, raw: &Bytes, cut: u64) {
    let whole = raw.len() as u64 + cut;
    let why = over(whole, raw);
    s.note(
        event.at,
        format!(
            "a message of {} is over redial's limit of {}: {} of it were not read",
            size(whole),
            limit(raw),
            size(cut)
        ),
    );
    let call = head_id(raw).and_then(|id| s.by_id.get(&(event.generation, id)).copied());
    if let Some(call) = call {
        end_cut(s, event.at, call, &why);
    }
}

/// The body of an exchange, or of one event of its stream, was cut; whether it was a message at all. Of a stream it
/// ends the call only when its head says that it was the answer.
pub(super) fn over_the_limit_of(
    s: &mut Session,
    at: Time,
    exchange: u64,
    raw: &Bytes,
    cut: u64,
) -> bool {
    if cut == 0 || !raw.trim_ascii_start().starts_with(b"{") {
        return false;
    }
    let Some(x) = s.exchanges.get(&exchange) else { return true };
    let good = x.status.is_none_or(|status| (200..300).contains(&status));
    let (own, Some(call)) = (x.rpc_id.clone(), x.call) else { return good };
    let stream = s.calls.get(&call).is_some_and(|c| c.live.stream);
    if good && (!stream || (own.is_some() && head_id(raw) == own)) {
        let whole = raw.len() as u64 + cut;
        end_cut(s, at, call, &over(whole, raw));
    }
    good
}

/// Why a message that is over the limit is not read; `raw` is what was kept of it, up to that limit.
fn over(whole: u64, raw: &Bytes) -> String {
    format!("it has {}, over redial's limit of {}", size(whole), limit(raw))
}

/// The limit up to which this was kept: of an event its field names count too, so it is a few bytes more.
fn limit(raw: &Bytes) -> String {
    let unit = if raw.len() > 1 << 20 { 1 << 20 } else { 1 << 10 };
    size((raw.len().div_ceil(unit) * unit) as u64)
}

fn end_cut(s: &mut Session, at: Time, call: u64, why: &str) {
    settle::end(s, at, call, Outcome::Unknown, format!("the answer can't be read: {why}"));
}

/// The id of an answer by the first bytes of its text, where servers put it.
fn head_id(raw: &[u8]) -> Option<Id> {
    let head = String::from_utf8_lossy(&raw[..raw.len().min(256)]);
    let before = head.split("\"result\"").next()?;
    if before.len() == head.len() || before.contains("\"method\"") {
        return None;
    }
    let at = before.find("\"id\"")?;
    let value = before.get(at + 4..)?.trim_start().strip_prefix(':')?;
    Some(Id::from_raw(value.split(',').next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_body_ends_its_own_call_and_no_other() {
        use crate::journal::event::{Http, Kind, Purpose};
        // (content type, head, what becomes of the call)
        let cases = [
            ("application/json", r#"{"result":{"x":"#, Some("20 bytes")),
            ("text/event-stream", r#"{"id":1,"result":{"#, Some("23 bytes")),
            ("text/event-stream", r#"{"id":2,"result":{"#, None),
            ("text/event-stream", r#"{"method":"notifications/message"#, None),
            ("text/html", "<html>", Some("an HTML page")),
        ];
        for (content_type, head, why) in cases {
            let mut s = Session::default();
            let mut seq = 0;
            let mut say = |s: &mut Session, kind: Kind| {
                seq += 1;
                s.apply(&Event { seq, at: Time(0), mono_us: 0, generation: 1, kind });
            };
            let http = |what| Kind::Http { exchange: 7, what };
            say(
                &mut s,
                Kind::Opened {
                    transport: crate::journal::event::Transport::Http { url: "u".into() },
                },
            );
            let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
            say(
                &mut s,
                Kind::Sent {
                    raw: Bytes::from_static(call),
                    exchange: Some(7),
                    purpose: Purpose::Asked,
                },
            );
            say(
                &mut s,
                http(Http::Status {
                    status: 200,
                    content_type: Some(content_type.into()),
                    session: None,
                    www_authenticate: None,
                    location: None,
                }),
            );
            say(&mut s, http(Http::Body { raw: Bytes::from_static(head.as_bytes()), cut: 5 }));
            let c = s.calls.values().next().unwrap();
            let said = c.settled.as_ref().map(|s| (s.outcome, s.why.clone()));
            match (said, why) {
                (None, None) => {}
                (Some((Outcome::Unknown, said)), Some(why)) => {
                    assert!(said.contains(why), "{said}");
                }
                other => panic!("{head}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_id_of_a_cut_answer_is_read_from_its_head() {
        let id = |t: &str| head_id(t.as_bytes());
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"result":{"content"#), Some(Id::from(7)));
        assert_eq!(id(r#"{"id" : "a" , "result":{"#), Some(Id::from_raw("\"a\"")));
        assert_eq!(id(r#"{"jsonrpc":"2.0","result":{"id":7"#), None);
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"result":1"#), None);
        assert_eq!(id("noise"), None);
    }
}
