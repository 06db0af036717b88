//! Lines to entries. Tolerant: unknown members and kinds are passed over, what is missing is a plain default;
//! only a line that is no JSON object of ours is damage.

use super::undone::undone;
use super::{End, Entry, Header, Side, What, Wire};
use crate::journal::event::{Http, Kind, LinkState, Note, Purpose, Transport};
use crate::json::raw;
use crate::procs::{Left, Process};
use crate::time::Time;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use std::borrow::Cow;

/// What a line is.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// A run begins.
    Header(Header),
    /// Something happened.
    Entry(Entry),
    /// Of a later version, or nothing that matters here.
    Other,
    /// Torn or no JSON; why.
    Bad(String),
}

struct Members<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Members<'a> {
    fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(k, _)| k == key).map(|(_, v)| *v)
    }
    fn text(&self, key: &str) -> Option<String> {
        raw::as_str(self.get(key)?)
    }
    fn words(&self, key: &str) -> Vec<String> {
        let items = self.get(key).and_then(raw::items).unwrap_or_default();
        items.into_iter().filter_map(raw::as_str).collect()
    }
    fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.get(key)?.trim().parse().ok()
    }
    fn time(&self, key: &str) -> Option<Time> {
        parse_instant(&self.text(key)?)
    }
    fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(raw::as_bool) == Some(true)
    }
    fn bytes(&self) -> Bytes {
        match (self.text("text"), self.text("b64")) {
            (Some(t), _) => Bytes::from(t),
            (None, Some(b)) => Bytes::from(STANDARD.decode(b).unwrap_or_default()),
            (None, None) => Bytes::new(),
        }
    }
}

/// One line of a file, without its newline.
pub fn decode(line: &[u8]) -> Line {
    let text = match std::str::from_utf8(line) {
        // A byte order mark is an editor's, not the line's.
        Ok(t) => t.trim_start_matches('\u{feff}').trim(),
        Err(e) => return Line::Bad(format!("no UTF-8 at byte {}", e.valid_up_to())),
    };
    let Some(members) = raw::members(text) else {
        let torn = text.starts_with('{') && !text.ends_with('}');
        let why = if torn { "torn: it has no end" } else { "no JSON object" };
        return Line::Bad(why.into());
    };
    let m = Members(members);
    if m.text("redial").as_deref() == Some("recording") {
        return Line::Header(Header {
            version: m.number("version").unwrap_or(0),
            run: m.text("run").unwrap_or_default(),
            at: m.time("at").unwrap_or_default(),
            tap: m.text("tap").unwrap_or_default(),
            program: m.text("program").unwrap_or_default(),
            server: m.text("server").unwrap_or_default(),
            command: m.words("command"),
            url: m.text("url"),
            redaction: m.get("redaction").unwrap_or_default().to_owned(),
        });
    }
    let (Some(seq), Some(kind)) = (m.number("seq"), m.text("kind")) else {
        return Line::Bad("no line of a recording: it has no seq and kind".into());
    };
    let Some(what) = what(&kind, &m).map(undone) else { return Line::Other };
    Line::Entry(Entry {
        seq,
        at: m.time("at").unwrap_or_default(),
        mono_us: m.number("mono").unwrap_or(0),
        generation: m.number("gen").unwrap_or(0),
        what,
        wire: Wire {
            end: match m.text("end").as_deref() {
                None => End::Lf,
                Some("\r\n") => End::CrLf,
                Some(_) => End::None,
            },
            bom: m.flag("bom"),
            cut: m.number("cut").unwrap_or(0),
            redacted: m.number("redacted").unwrap_or(0),
            headers: headers(&m),
        },
    })
}

fn headers(m: &Members<'_>) -> Vec<(String, String)> {
    let pairs = m.get("headers").and_then(raw::items).unwrap_or_default();
    pairs
        .into_iter()
        .filter_map(|p| match raw::items(p)?.as_slice() {
            [k, v] => Some((raw::as_str(k)?, raw::as_str(v)?)),
            _ => None,
        })
        .collect()
}

fn what(kind: &str, m: &Members<'_>) -> Option<What> {
    let why = || m.text("why").unwrap_or_default();
    Some(What::Event(match kind {
        "part" => {
            let side = Side::from_word(&m.text("side")?)?;
            return Some(What::Part { side, raw: m.bytes() });
        }
        "stdin_closed" => return Some(What::StdinClosed),
        "gap" => {
            let (events, bytes) = (m.number("events").unwrap_or(0), m.number("bytes").unwrap_or(0));
            return Some(What::Gap { events, bytes, why: why() });
        }
        "opened" => Kind::Opened {
            transport: match m.text("transport").as_deref() {
                Some("http") => Transport::Http { url: m.text("url").unwrap_or_default() },
                _ => Transport::Stdio { command: m.words("command"), pid: m.number("pid") },
            },
        },
        "sent" => Kind::Sent {
            raw: m.bytes(),
            exchange: m.number("exchange"),
            purpose: match m.text("purpose").as_deref() {
                Some("probe") => Purpose::Probe,
                Some("handshake") => Purpose::Handshake,
                Some("reply") => Purpose::Reply,
                Some("follow_up") => Purpose::FollowUp { call: m.number("call").unwrap_or(0) },
                _ => Purpose::Asked,
            },
        },
        "received" => Kind::Received { raw: m.bytes(), exchange: m.number("exchange") },
        "noise" => Kind::Noise { raw: m.bytes(), cut: m.number("cut").unwrap_or(0) },
        "stderr" => Kind::Stderr { raw: m.bytes() },
        "not_written" => Kind::NotWritten {
            sent: m.number("sent")?,
            why: why(),
            // What is not said can't prove that nothing left.
            left: m.get("left").and_then(raw::as_bool) != Some(false),
        },
        "http" => Kind::Http { exchange: m.number("exchange")?, what: http(m)? },
        "stdout_closed" => Kind::StdoutClosed,
        "exit" => Kind::Exit { code: m.number("code"), signal: m.number("signal"), left: left(m) },
        "all_gone" => Kind::AllGone,
        "agreed" => Kind::Agreed { protocol: m.text("protocol")? },
        "state" => Kind::State {
            state: match m.text("state")?.as_str() {
                "connecting" => LinkState::Connecting,
                "ready" => LinkState::Ready,
                "waiting" => LinkState::Waiting {
                    until: m.time("until").unwrap_or_default(),
                    attempt: m.number("attempt").unwrap_or(0),
                },
                "dead" => LinkState::Dead,
                "closed" => LinkState::Closed,
                _ => return None,
            },
            why: why(),
        },
        "note" => Kind::Note(match m.text("what")?.as_str() {
            "timed_out" => Note::TimedOut {
                call: m.number("call")?,
                after_s: m.number("after_s").unwrap_or(0.0),
            },
            "cancelled" => Note::Cancelled { call: m.number("call")? },
            "stopped_waiting" => Note::StoppedWaiting { call: m.number("call")? },
            "limit" => Note::Limit {
                call: m.number("call")?,
                limit_s: m.number("limit_s").unwrap_or(0.0),
                extends: m.flag("extends"),
            },
            "left_open" => Note::LeftOpen { call: m.number("call")?, why: why() },
            "remark" => Note::Remark { call: m.number("call")?, text: m.text("text")? },
            "no_answer" => Note::NoAnswer { call: m.number("call")?, why: why() },
            "ending" => Note::Ending { why: why() },
            "stopped" => {
                Note::Stopped { who: m.get("who").filter(|w| w.trim() != "null").map(process) }
            }
            "outlived" => {
                Note::Outlived { code: m.number("code"), signal: m.number("signal"), left: left(m) }
            }
            "stdin" => Note::Stdin { from: m.number("from")?, full: m.flag("full") },
            _ => Note::Text(m.text("text")?),
        }),
        _ => return None,
    }))
}

fn http(m: &Members<'_>) -> Option<Http> {
    Some(match m.text("what")?.as_str() {
        "request" => Http::Request {
            method: m.text("method").unwrap_or_default(),
            url: m.text("url").unwrap_or_default(),
        },
        "through" => Http::Through { proxy: m.text("proxy").unwrap_or_default() },
        "endpoint" => Http::Endpoint { url: m.text("url").unwrap_or_default() },
        "unreadable" => Http::Unreadable { why: m.text("why").unwrap_or_default() },
        "status" => Http::Status {
            status: m.number("status")?,
            content_type: m.text("content_type"),
            session: m.text("session"),
            www_authenticate: m.text("www_authenticate"),
            location: m.text("location"),
        },
        "body" => Http::Body { raw: m.bytes(), cut: m.number("cut").unwrap_or(0) },
        "redirected" => {
            Http::Redirected { status: m.number("status")?, to: m.text("to").unwrap_or_default() }
        }
        "flow" => Http::Flow {
            bytes: m.number("bytes").unwrap_or(0),
            keepalives: m.number("keepalives").unwrap_or(0),
        },
        "resuming" => Http::Resuming {
            last_event_id: m.text("last_event_id").unwrap_or_default(),
            after_ms: m.number("after_ms").unwrap_or(0),
        },
        "partial" => Http::Partial { raw: m.bytes() },
        "end" => Http::End,
        "failed" => Http::Failed {
            why: m.text("why").unwrap_or_default(),
            connected: m.get("connected").and_then(raw::as_bool) != Some(false),
        },
        _ => return None,
    })
}

/// Reads what `encode` writes; any other RFC 3339 too.
pub(crate) fn parse_instant(text: &str) -> Option<Time> {
    fast_instant(text.as_bytes())
        .or_else(|| text.parse::<jiff::Timestamp>().ok().map(|t| Time(t.as_microsecond())))
}

/// `YYYY-MM-DDTHH:MM:SS.ffffffZ` and nothing else.
pub(crate) fn fast_instant(b: &[u8]) -> Option<Time> {
    if b.len() != 27 || b[4] != b'-' || b[10] != b'T' || b[19] != b'.' || b[26] != b'Z' {
        return None;
    }
    let n = |from: usize, to: usize| -> Option<i64> {
        b[from..to]
            .iter()
            .try_fold(0i64, |n, c| c.is_ascii_digit().then(|| n * 10 + i64::from(c - b'0')))
    };
    let (y, m, d) = (n(0, 4)?, n(5, 7)?, n(8, 10)?);
    if !(1..=12).contains(&m) || !(1..=31).contains(&d) {
        return None;
    }
    let y = if m <= 2 { y - 1 } else { y };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * (if m > 2 { m - 3 } else { m + 9 }) + 2) / 5 + d - 1;
    let days = era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468;
    let s = n(11, 13)? * 3600 + n(14, 16)? * 60 + n(17, 19)?;
    Some(Time((days * 86_400 + s) * 1_000_000 + n(20, 26)?))
}

fn process(item: &str) -> Process {
    let pid = raw::get(item, "pid").and_then(|p| p.trim().parse().ok()).unwrap_or(0);
    Process { pid, name: raw::get_str(item, "name").unwrap_or_default() }
}

/// What an ended child left behind. Only a list that is there and empty says that nobody is left: what is not said
/// can't prove it, nor can a bare `certain`, whose writer looked at pipes and groups alone.
fn left(m: &Members<'_>) -> Left {
    let Some(all) = m.get("left").and_then(raw::items) else { return Left::Perhaps };
    let certain = m.get("certain").and_then(raw::as_bool) == Some(true);
    match (all.is_empty(), certain) {
        (true, true) => Left::Nobody,
        (true, false) => Left::Perhaps,
        (false, _) => Left::These(all.iter().map(|p| process(p)).collect()),
    }
}
