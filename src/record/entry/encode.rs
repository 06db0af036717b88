//! Entries to lines. Members stand in a fixed order, the long one last, so that an index can read the head
//! of a line and skip the rest.

use super::{End, Entry, Header, VERSION, What};
use crate::journal::event::{Http, Kind, LinkState, Note, Purpose, Transport};
use crate::json::raw::quote;
use crate::procs::{Left, Process};
use crate::record::summary;
use crate::time::Time;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write as _;

/// The header line, with its newline.
pub fn header(h: &Header) -> String {
    let words = |list: &[String]| list.iter().map(|w| quote(w)).collect::<Vec<_>>().join(",");
    let mut out = format!(
        r#"{{"redial":"recording","version":{VERSION},"run":{},"at":"{}","tap":{},"program":{},"server":{}"#,
        quote(&h.run),
        instant(h.at),
        quote(&h.tap),
        quote(&h.program),
        quote(&h.server)
    );
    if !h.command.is_empty() {
        push(&mut out, format_args!(r#","command":[{}]"#, words(&h.command)));
    }
    if let Some(url) = &h.url {
        push(&mut out, format_args!(r#","url":{}"#, quote(url)));
    }
    if !h.redaction.is_empty() {
        push(&mut out, format_args!(r#","redaction":{}"#, h.redaction));
    }
    out.push_str("}\n");
    out
}

/// A whole line, with its newline.
pub fn line(e: &Entry) -> String {
    let mut out = head(e.seq, e.at, e.mono_us, e.generation);
    out.push_str(&body(e));
    out
}

/// The numbered part of a line: what is only known at the moment of writing.
pub fn head(seq: u64, at: Time, mono_us: u64, generation: u32) -> String {
    format!(r#"{{"seq":{seq},"at":"{}","mono":{mono_us},"gen":{generation}"#, instant(at))
}

/// The rest of a line, with its newline.
pub fn body(e: &Entry) -> String {
    let room = e.raw().map_or(0, |r| r.len() + r.len() / 8);
    let mut out = String::with_capacity(192 + room);
    push(&mut out, format_args!(r#","kind":"{}""#, e.what.word()));
    match &e.what {
        What::Part { side, .. } => push(&mut out, format_args!(r#","side":"{}""#, side.word())),
        What::StdinClosed => {}
        What::Gap { events, bytes, why } => push(
            &mut out,
            format_args!(r#","events":{events},"bytes":{bytes},"why":{}"#, quote(why)),
        ),
        What::Event(kind) => event(&mut out, kind),
    }
    wire(&mut out, e);
    out.push_str("}\n");
    out
}

fn event(out: &mut String, kind: &Kind) {
    match kind {
        Kind::Opened { transport: Transport::Stdio { command, pid } } => {
            let words = command.iter().map(|w| quote(w)).collect::<Vec<_>>().join(",");
            push(out, format_args!(r#","transport":"stdio","command":[{words}]"#));
            if let Some(pid) = pid {
                push(out, format_args!(r#","pid":{pid}"#));
            }
        }
        Kind::Opened { transport: Transport::Http { url } } => {
            push(out, format_args!(r#","transport":"http","url":{}"#, quote(url)));
        }
        Kind::Sent { raw, exchange, purpose } => {
            optional(out, "exchange", *exchange);
            let word = match purpose {
                Purpose::Probe => Some("probe"),
                Purpose::Handshake => Some("handshake"),
                Purpose::Asked => None,
                Purpose::Reply => Some("reply"),
                Purpose::FollowUp { .. } => Some("follow_up"),
            };
            if let Some(w) = word {
                push(out, format_args!(r#","purpose":"{w}""#));
            }
            if let Purpose::FollowUp { call } = purpose {
                push(out, format_args!(r#","call":{call}"#));
            }
            frame(out, raw);
        }
        Kind::Received { raw, exchange } => {
            optional(out, "exchange", *exchange);
            frame(out, raw);
        }
        Kind::NotWritten { sent, why, left } => {
            push(out, format_args!(r#","sent":{sent},"why":{},"left":{left}"#, quote(why)));
        }
        Kind::Http { exchange, what } => {
            push(out, format_args!(r#","exchange":{exchange}"#));
            http(out, what);
        }
        Kind::Exit { code, signal, left } => {
            optional(out, "code", *code);
            optional(out, "signal", *signal);
            push(out, format_args!(r#","certain":{}"#, *left == Left::Nobody));
            left_behind(out, left);
        }
        Kind::Agreed { protocol } => push(out, format_args!(r#","protocol":{}"#, quote(protocol))),
        Kind::State { state, why } => {
            let word = match state {
                LinkState::Connecting => "connecting",
                LinkState::Ready => "ready",
                LinkState::Waiting { .. } => "waiting",
                LinkState::Dead => "dead",
                LinkState::Closed => "closed",
            };
            push(out, format_args!(r#","state":"{word}""#));
            if let LinkState::Waiting { until, attempt } = state {
                push(out, format_args!(r#","until":"{}","attempt":{attempt}"#, instant(*until)));
            }
            push(out, format_args!(r#","why":{}"#, quote(why)));
        }
        Kind::Note(Note::TimedOut { call, after_s }) => {
            push(out, format_args!(r#","what":"timed_out","call":{call},"after_s":{after_s}"#));
        }
        Kind::Note(Note::Cancelled { call }) => {
            push(out, format_args!(r#","what":"cancelled","call":{call}"#));
        }
        Kind::Note(Note::StoppedWaiting { call }) => {
            push(out, format_args!(r#","what":"stopped_waiting","call":{call}"#));
        }
        Kind::Note(Note::Limit { call, limit_s, extends }) => push(
            out,
            format_args!(
                r#","what":"limit","call":{call},"limit_s":{limit_s},"extends":{extends}"#
            ),
        ),
        Kind::Note(Note::LeftOpen { call, why }) => {
            push(out, format_args!(r#","what":"left_open","call":{call},"why":{}"#, quote(why)));
        }
        Kind::Note(Note::Ending { why }) => {
            push(out, format_args!(r#","what":"ending","why":{}"#, quote(why)));
        }
        Kind::Note(Note::Stdin { from, full }) => {
            push(out, format_args!(r#","what":"stdin","from":{from},"full":{full}"#));
        }
        Kind::Note(Note::Stopped { who }) => {
            push(out, format_args!(r#","what":"stopped","who":"#));
            match who {
                Some(p) => {
                    push(out, format_args!(r#"{{"pid":{},"name":{}}}"#, p.pid, quote(&p.name)))
                }
                None => push(out, format_args!("null")),
            }
        }
        Kind::Note(Note::Outlived { code, signal, left }) => {
            push(out, format_args!(r#","what":"outlived""#));
            optional(out, "code", *code);
            optional(out, "signal", *signal);
            left_behind(out, left);
        }
        Kind::Note(Note::Remark { call, text }) => {
            push(out, format_args!(r#","what":"remark","call":{call},"text":{}"#, quote(text)));
        }
        Kind::Note(Note::NoAnswer { call, why }) => {
            push(out, format_args!(r#","what":"no_answer","call":{call},"why":{}"#, quote(why)));
        }
        Kind::Note(Note::Text(t)) => {
            push(out, format_args!(r#","what":"text","text":{}"#, quote(t)));
        }
        Kind::Noise { .. } | Kind::Stderr { .. } | Kind::StdoutClosed | Kind::AllGone => {}
    }
}

fn http(out: &mut String, what: &Http) {
    match what {
        Http::Request { method, url } => push(
            out,
            format_args!(r#","what":"request","method":{},"url":{}"#, quote(method), quote(url)),
        ),
        Http::Through { proxy } => {
            push(out, format_args!(r#","what":"through","proxy":{}"#, quote(proxy)));
        }
        Http::Endpoint { url } => {
            push(out, format_args!(r#","what":"endpoint","url":{}"#, quote(url)));
        }
        Http::Unreadable { why } => {
            push(out, format_args!(r#","what":"unreadable","why":{}"#, quote(why)));
        }
        Http::Status { status, content_type, session, www_authenticate, location } => {
            push(out, format_args!(r#","what":"status","status":{status}"#));
            for (name, value) in [
                ("content_type", content_type),
                ("session", session),
                ("www_authenticate", www_authenticate),
                ("location", location),
            ] {
                optional(out, name, value.as_deref().map(quote));
            }
        }
        Http::Body { .. } => out.push_str(r#","what":"body""#),
        Http::Redirected { status, to } => {
            push(out, format_args!(r#","what":"redirected","status":{status},"to":{}"#, quote(to)));
        }
        Http::Flow { bytes, keepalives } => {
            push(out, format_args!(r#","what":"flow","bytes":{bytes},"keepalives":{keepalives}"#));
        }
        Http::Resuming { last_event_id, after_ms } => push(
            out,
            format_args!(
                r#","what":"resuming","last_event_id":{},"after_ms":{after_ms}"#,
                quote(last_event_id)
            ),
        ),
        Http::Partial { .. } => out.push_str(r#","what":"partial""#),
        Http::End => out.push_str(r#","what":"end""#),
        Http::Failed { why, connected } => push(
            out,
            format_args!(r#","what":"failed","why":{},"connected":{connected}"#, quote(why)),
        ),
    }
}

fn frame(out: &mut String, bytes: &[u8]) {
    let Some(s) = std::str::from_utf8(bytes).ok().and_then(summary::of) else { return };
    push(out, format_args!(r#","rpc":"{}""#, s.rpc.word()));
    optional(out, "id", s.id.map(|id| id.to_json()));
    optional(out, "method", s.method.as_deref().map(quote));
    optional(out, "tool", s.tool.as_deref().map(quote));
    optional(out, "request_id", s.request_id.as_deref().map(quote));
}

fn wire(out: &mut String, e: &Entry) {
    let w = &e.wire;
    if !w.headers.is_empty() {
        let pairs: Vec<String> =
            w.headers.iter().map(|(k, v)| format!("[{},{}]", quote(k), quote(v))).collect();
        push(out, format_args!(r#","headers":[{}]"#, pairs.join(",")));
    }
    match w.end {
        End::Lf => {}
        End::CrLf => out.push_str(r#","end":"\r\n""#),
        End::None => out.push_str(r#","end":"""#),
    }
    if w.bom {
        out.push_str(r#","bom":true"#);
    }
    let cut = match &e.what {
        What::Event(Kind::Noise { cut, .. } | Kind::Http { what: Http::Body { cut, .. }, .. }) => {
            w.cut.max(*cut)
        }
        _ => w.cut,
    };
    if cut > 0 {
        push(out, format_args!(r#","cut":{cut}"#));
    }
    if w.redacted > 0 {
        push(out, format_args!(r#","redacted":{}"#, w.redacted));
    }
    if let Some(bytes) = e.raw() {
        match std::str::from_utf8(bytes) {
            Ok(text) => push(out, format_args!(r#","text":{}"#, quote(text))),
            Err(_) => push(out, format_args!(r#","b64":"{}""#, STANDARD.encode(bytes))),
        }
    }
}

fn optional(out: &mut String, name: &str, value: Option<impl std::fmt::Display>) {
    if let Some(v) = value {
        push(out, format_args!(r#","{name}":{v}"#));
    }
}

fn push(out: &mut String, args: std::fmt::Arguments<'_>) {
    // Writing into a String can't fail.
    out.write_fmt(args).ok();
}

/// `2026-11-29T02:57:10.123456Z`; an instant that no calendar has is written as the epoch's edge.
pub(super) fn instant(t: Time) -> String {
    let days = t.0.div_euclid(86_400_000_000);
    let us = t.0.rem_euclid(86_400_000_000);
    let (y, m, d) = civil(days);
    if !(0..=9999).contains(&y) {
        return "1970-01-01T00:00:00.000000Z".into();
    }
    let (s, us) = (us / 1_000_000, us % 1_000_000);
    format!("{y:04}-{m:02}-{d:02}T{:02}:{:02}:{:02}.{us:06}Z", s / 3600, s / 60 % 60, s % 60)
}

/// Days since 1970-01-01 to year, month, day (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (d, m) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    (yoe + era * 400 + i64::from(m <= 2), m, d)
}

/// What goes on; nothing where nobody could look.
fn left_behind(out: &mut String, left: &Left) {
    let all: &[Process] = match left {
        Left::Perhaps => return,
        Left::Nobody => &[],
        Left::These(all) => all,
    };
    let one = |p: &Process| format!(r#"{{"pid":{},"name":{}}}"#, p.pid, quote(&p.name));
    let all: Vec<String> = all.iter().map(one).collect();
    push(out, format_args!(r#","left":[{}]"#, all.join(",")));
}
