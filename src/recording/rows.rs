//! What a list shows of a recording: a row for each event, a row for each call, with what belongs together joined
//! (an answer knows what it answers, a call how it ended).

mod knows;

pub use knows::Knows;

use crate::filter::{Field, Subject};
use crate::journal::event::{Http, Kind, Note, Transport};
use crate::journal::fold::Ended;
use crate::journal::generation::{GOES_ON, outlived_words, stopped_words};
use crate::journal::{Call, Outcome};
use crate::procs::Left;
use crate::record::entry::{Entry, Side, What};
use crate::record::summary::{self, Rpc, Summary};
use crate::time::Time;
use crate::wire::id::Id;
use std::borrow::Cow;
use std::collections::HashMap;

/// One event of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its number in the file.
    pub seq: u64,
    /// When.
    pub at: Time,
    /// Which life of the server.
    pub generation: u32,
    /// `out`, `in`, `err`; empty for what is no line of a stream.
    pub dir: &'static str,
    /// The format's word; of a frame what it is (`request`, `notification`, `result`, …).
    pub kind: &'static str,
    /// Of an answer: the method it answers.
    pub method: Option<String>,
    /// The tool of a call or of the call it answers.
    pub tool: Option<String>,
    /// The request_id of a call or of the call it answers.
    pub request_id: Option<String>,
    /// The JSON-RPC id.
    pub id: Option<Id>,
    /// Of a call: its outcome, `pending`. Of an answer: `ok`, `tool_error`, `rpc_error`.
    pub outcome: Option<&'static str>,
    /// Of a call and of an answer: how long it took.
    pub ms: Option<f64>,
    /// Bytes on the wire.
    pub bytes: usize,
    /// The line, or what happened in words. Foreign text.
    pub text: String,
    /// Seconds since then, when the list is shown.
    pub age_s: f64,
}

/// Makes rows, oldest event first.
#[derive(Debug, Default)]
pub struct Rows {
    /// Under the exchange that carried it too, where there is one: clients that share a life use the same ids.
    open: HashMap<(u32, Side, Option<u64>, Id), Asked>,
}

/// What an answer answers.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its number in the file.
    pub seq: u64,
    /// When it was asked.
    pub mono_us: u64,
    /// What.
    pub summary: Summary,
}

impl Asked {
    /// Of the request's own event.
    pub fn of(e: &Entry) -> Option<Asked> {
        let text = String::from_utf8_lossy(e.raw()?);
        Some(Asked { seq: e.seq, mono_us: e.mono_us, summary: summary::of(&text)? })
    }
}

impl Rows {
    /// The row of one event; whoever `knows` has been told of it already.
    pub fn row(&mut self, e: &Entry, knows: &dyn Knows, now: Time) -> Row {
        let open = &mut self.open;
        let exchange = match &e.what {
            What::Event(Kind::Sent { exchange, .. } | Kind::Received { exchange, .. }) => *exchange,
            _ => None,
        };
        made(e, knows, now, &mut |s, side| match s.rpc {
            Rpc::Request => {
                if let Some(id) = &s.id {
                    let asked = Asked { seq: e.seq, mono_us: e.mono_us, summary: s.clone() };
                    let key = |x| (e.generation, side, x, id.clone());
                    if exchange.is_some() {
                        open.insert(key(exchange), asked.clone());
                    }
                    open.insert(key(None), asked);
                }
                None
            }
            _ => {
                let other = if side == Side::Sent { Side::Received } else { Side::Sent };
                let id = s.id.clone()?;
                let key = |x| (e.generation, other, x, id.clone());
                let own = exchange.and_then(|_| open.remove(&key(exchange)));
                // A stream that goes on in another exchange; stdio.
                let asked = own.or_else(|| open.get(&key(None)).cloned())?;
                if open.get(&key(None)).is_some_and(|a| a.seq == asked.seq) {
                    open.remove(&key(None));
                }
                Some(asked)
            }
        })
    }
}

/// The row of one event, where what it answers is known.
pub fn row(e: &Entry, asked: Option<Asked>, knows: &dyn Knows, now: Time) -> Row {
    let mut asked = asked;
    made(e, knows, now, &mut |s, _| asked.take().filter(|_| s.rpc.is_answer()))
}

fn made(
    e: &Entry,
    knows: &dyn Knows,
    now: Time,
    peer: &mut dyn FnMut(&Summary, Side) -> Option<Asked>,
) -> Row {
    let side = e.side();
    let mut row = Row {
        seq: e.seq,
        at: e.at,
        generation: e.generation,
        dir: match side {
            Some(Side::Sent) => "out",
            Some(Side::Received) => "in",
            Some(Side::Stderr) => "err",
            None => "",
        },
        kind: e.what.word(),
        method: None,
        tool: None,
        request_id: None,
        id: None,
        outcome: None,
        ms: None,
        bytes: e.raw().map_or(0, bytes::Bytes::len),
        text: words(&e.what).unwrap_or_else(|| {
            e.raw().map(|r| String::from_utf8_lossy(r).into_owned()).unwrap_or_default()
        }),
        age_s: e.at.age_at(now),
    };
    if let (What::Event(Kind::Exit { .. }), Some(how)) = (&e.what, knows.death(e.generation)) {
        if knows.is_launcher(e.generation) {
            row.text.push_str(" (a launcher's: how the server itself ended was not seen)");
        }
        row.text = format!("{}, {how}", row.text);
    }
    let is_frame = matches!(&e.what, What::Event(Kind::Sent { .. } | Kind::Received { .. }));
    if let (true, Some(side), Some(s)) = (is_frame, side, summary::of(&row.text)) {
        frame(&mut row, e, side, s, knows, peer);
    }
    row
}

fn frame(
    row: &mut Row,
    e: &Entry,
    side: Side,
    s: Summary,
    knows: &dyn Knows,
    peer: &mut dyn FnMut(&Summary, Side) -> Option<Asked>,
) {
    row.kind = s.rpc.word();
    row.id.clone_from(&s.id);
    match s.rpc {
        Rpc::Request => {
            if let Some((outcome, ms)) = knows.outcome(e.seq) {
                row.outcome = Some(outcome.map_or("pending", Outcome::word));
                row.ms = ms;
            }
            peer(&s, side);
            (row.method, row.tool, row.request_id) = (s.method, s.tool, s.request_id);
        }
        Rpc::Result | Rpc::ToolError | Rpc::Error => {
            row.outcome = Some(match s.rpc {
                Rpc::Result => "ok",
                Rpc::ToolError => "tool_error",
                _ => "rpc_error",
            });
            if let Some(a) = peer(&s, side) {
                row.ms = Some(e.mono_us.saturating_sub(a.mono_us) as f64 / 1000.0);
                row.method = a.summary.method;
                row.tool = a.summary.tool;
                row.request_id = a.summary.request_id;
            }
        }
        Rpc::Notification | Rpc::Malformed => row.method = s.method,
    }
}

/// How long a settled call took, in milliseconds.
pub fn took_ms(c: &Call) -> Option<f64> {
    let s = c.settled.as_ref()?;
    Some((s.at.0.saturating_sub(c.sent_at.0)) as f64 / 1000.0)
}

/// An event that is no line, in words. May hold foreign text.
fn words(what: &What) -> Option<String> {
    Some(match what {
        What::StdinClosed => "the client closed the server's stdin".into(),
        What::Gap { .. } => what.gap_words()?,
        What::Part { .. } => return None,
        What::Event(kind) => match kind {
            Kind::Opened { transport: Transport::Stdio { command, pid } } => {
                let pid = pid.map(|p| format!(" (pid {p})")).unwrap_or_default();
                format!("server started{pid}: {}", command.join(" "))
            }
            Kind::Opened { transport: Transport::Http { url } } => format!("session of {url}"),
            Kind::NotWritten { sent, why, .. } => format!("{sent} was not written: {why}"),
            Kind::StdoutClosed => "the server closed its stdout".into(),
            Kind::AllGone => "nothing that the server's process started is left".into(),
            Kind::Exit { code, signal, left } => {
                let ended = Ended {
                    at: Time(0),
                    code: *code,
                    signal: *signal,
                    gone_at: None,
                    launcher: false,
                };
                match left {
                    Left::These(_) => format!("server ended: {}; {}", ended.words(), left.words()),
                    _ => format!("server ended: {}", ended.words()),
                }
            }
            Kind::Agreed { protocol } => format!("protocol {protocol}"),
            Kind::State { why, .. } => why.clone(),
            Kind::Note(Note::TimedOut { call, after_s }) => {
                format!("call {call}: no answer within {after_s} s")
            }
            Kind::Note(Note::Cancelled { call }) => format!("call {call} cancelled"),
            Kind::Note(Note::StoppedWaiting { call }) => {
                format!("call {call}: nobody waits any more")
            }
            Kind::Note(Note::Limit { call, limit_s, .. }) => {
                format!("call {call} may take {limit_s} s")
            }
            Kind::Note(Note::LeftOpen { call, why }) => format!("call {call} is left open: {why}"),
            Kind::Note(Note::Ending { why }) => format!("redial ends the server: {why}"),
            Kind::Note(Note::Stdin { full: true, .. }) => {
                "the server does not read its stdin".into()
            }
            Kind::Note(Note::Stdin { .. }) => "the server reads its stdin again".into(),
            Kind::Note(Note::Stopped { who: Some(who) }) => stopped_words(who),
            Kind::Note(Note::Stopped { who: None }) => GOES_ON.into(),
            Kind::Note(Note::Outlived { code, signal, left }) => {
                outlived_words(*code, *signal, left)
            }
            Kind::Note(Note::NoAnswer { call, why }) => {
                format!("call {call}: answered with a line that is no JSON: {why}")
            }
            Kind::Note(Note::Remark { call, text }) => format!("call {call}: {text}"),
            Kind::Note(Note::Text(t)) => t.clone(),
            Kind::Http { exchange, what } => http_words(*exchange, what)?,
            Kind::Sent { .. }
            | Kind::Received { .. }
            | Kind::Noise { .. }
            | Kind::Stderr { .. } => {
                return None;
            }
        },
    })
}

fn http_words(exchange: u64, what: &Http) -> Option<String> {
    let said = match what {
        Http::Request { method, url } => format!("{method} {url}"),
        Http::Through { proxy } => format!("through the proxy {proxy}"),
        Http::Endpoint { url } => format!("HTTP+SSE: messages are posted to {url}"),
        Http::Unreadable { why } => format!("not read: {why}"),
        Http::Status { status, content_type, session, .. } => {
            let kind = content_type.as_deref().map(|c| format!(" {c}")).unwrap_or_default();
            let session = session.as_deref().map(|s| format!(" ({s})")).unwrap_or_default();
            format!("HTTP {status}{kind}{session}")
        }
        Http::Body { .. } | Http::Partial { .. } => return None,
        Http::Redirected { status, to } => format!("HTTP {status}: redirected to {to}"),
        Http::Flow { bytes, .. } => format!("{bytes} bytes so far"),
        Http::Resuming { after_ms, .. } => format!("the stream is resumed after {after_ms} ms"),
        Http::End => "answered".into(),
        Http::Failed { why, connected: true } => format!("broke: {why}"),
        Http::Failed { why, connected: false } => format!("never sent: {why}"),
    };
    Some(format!("#{exchange} {said}"))
}

fn some<'a>(text: Option<&'a str>) -> Vec<Cow<'a, str>> {
    text.map(Cow::Borrowed).into_iter().collect()
}

impl Subject for Row {
    fn texts(&self, field: Field) -> Vec<Cow<'_, str>> {
        match field {
            Field::Tool => some(self.tool.as_deref()),
            Field::Method => some(self.method.as_deref()),
            Field::Req => some(self.request_id.as_deref()),
            Field::Id => self.id.iter().map(|id| id.to_json().into()).collect(),
            Field::Outcome => some(self.outcome),
            Field::Dir => some(Some(self.dir).filter(|d| !d.is_empty())),
            Field::Kind => {
                let mut kinds = some(Some(self.kind));
                // A frame is also what its line is.
                if summary::Rpc::from_word(self.kind).is_some() {
                    kinds.push(if self.dir == "out" { "sent" } else { "received" }.into());
                }
                kinds
            }
            Field::Text => some(Some(&self.text)),
            Field::State | Field::Verdict | Field::Gen | Field::Age | Field::Ms => Vec::new(),
        }
    }

    fn number(&self, field: Field) -> Option<f64> {
        match field {
            Field::Gen => Some(f64::from(self.generation)),
            Field::Age => Some(self.age_s),
            Field::Ms => self.ms,
            _ => None,
        }
    }
}

/// A call as a list shows it.
#[derive(Debug, Clone, Copy)]
pub struct CallRow<'a> {
    /// The call.
    pub call: &'a Call,
    /// When the list is shown.
    pub now: Time,
}

impl Subject for CallRow<'_> {
    fn texts(&self, field: Field) -> Vec<Cow<'_, str>> {
        let c = self.call;
        match field {
            Field::Tool => some(Some(&c.tool)),
            Field::Method => some(Some("tools/call")),
            Field::Req => some(c.request_id.as_deref()),
            Field::Id => vec![c.rpc_id.to_json().into()],
            Field::Outcome => some(Some(c.word())),
            Field::Kind => some(Some("call")),
            Field::Text => {
                let s = c.settled.as_ref();
                let parts = [
                    c.args.as_deref(),
                    s.and_then(|s| s.result.as_deref()),
                    s.and_then(|s| s.error.as_deref()),
                    s.map(|s| s.why.as_str()),
                ];
                parts.into_iter().flatten().map(Cow::Borrowed).collect()
            }
            _ => Vec::new(),
        }
    }

    fn number(&self, field: Field) -> Option<f64> {
        match field {
            Field::Gen => Some(f64::from(self.call.generation)),
            Field::Age => Some(self.call.sent_at.age_at(self.now)),
            Field::Ms => took_ms(self.call),
            _ => None,
        }
    }
}
