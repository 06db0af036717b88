//! `redial show --json`: one document, written while the file is read a second time, so that its size costs no
//! memory.

use super::Shown;
use crate::cli::json::{raw_value, write_document};
use crate::error::{Error, Result};
use crate::journal::{AnswerStatus, Call};
use crate::recording::Recording;
use crate::recording::again::Again;
use crate::recording::rows::{CallRow, Row, Rows, took_ms};
use crate::time::Time;
use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::value::RawValue;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

#[derive(serde::Serialize)]
struct Doc<'a> {
    schema: &'static str,
    path: String,
    runs: Vec<RunJson<'a>>,
    server: Option<ServerJson<'a>>,
    protocol: Option<&'a str>,
    events: u64,
    lost: u64,
    damaged: Vec<BadJson<'a>>,
    generations: Vec<GenerationJson>,
    calls: Calls<'a>,
    frames: Frames<'a>,
    matched: &'a Count,
    of: u64,
}

/// A number that is known once what stands before it is written.
#[derive(Default)]
struct Count(Cell<u64>);

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.serialize_u64(self.0.get())
    }
}

/// The calls, read again where they are too many to be kept.
struct Calls<'a> {
    shown: &'a Shown<'a>,
    failed: &'a RefCell<Option<Error>>,
}

impl Serialize for Calls<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        let mut seq = s.serialize_seq(None)?;
        let now = Time::now();
        let mut each = |call: &Call| {
            let row = CallRow { call, now };
            match self.shown.passes(&row, call.request_id.as_deref()) {
                true => seq.serialize_element(&call_json(call, self.shown)),
                false => Ok(()),
            }
        };
        let r = self.shown.recording;
        if r.calls() == r.session.calls.len() {
            r.session.calls.values().try_for_each(each)?;
            return seq.end();
        }
        let read = || -> Result<Recording> { Recording::begin(r.path()) };
        match read() {
            Ok(mut again) => {
                loop {
                    let more = match again.advance() {
                        Ok(more) => more,
                        Err(e) => {
                            self.failed.replace(Some(e));
                            false
                        }
                    };
                    again.let_go().iter().try_for_each(&mut each)?;
                    if !more {
                        break;
                    }
                }
                again.end_here();
                again.session.calls.values().try_for_each(each)?;
            }
            Err(e) => drop(self.failed.replace(Some(e))),
        }
        seq.end()
    }
}

/// The rows of all events that pass.
struct Frames<'a> {
    shown: &'a Shown<'a>,
    limit: Option<usize>,
    matched: &'a Count,
    failed: &'a RefCell<Option<Error>>,
}

impl Serialize for Frames<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        let mut seq = s.serialize_seq(None)?;
        let mut newest: VecDeque<Row> = VecDeque::new();
        let mut wrong = None;
        let read = each_row(self.shown, |row| {
            self.matched.0.set(self.matched.0.get() + 1);
            match self.limit {
                // Written as it comes; only the newest few are held back.
                None if wrong.is_none() => wrong = seq.serialize_element(&row_json(row)).err(),
                None => {}
                Some(n) => {
                    newest.push_back(row);
                    if newest.len() > n {
                        newest.pop_front();
                    }
                }
            }
        });
        if let Err(e) = read {
            self.failed.replace(Some(e));
        }
        if let Some(e) = wrong {
            return Err(e);
        }
        for row in newest {
            seq.serialize_element(&row_json(row))?;
        }
        seq.end()
    }
}

/// Goes through all events that the first reading had, and hands over the rows that pass.
pub fn each_row(shown: &Shown<'_>, mut each: impl FnMut(Row)) -> Result<()> {
    let mut again = Again::open(shown.recording.path())?;
    let mut rows = Rows::default();
    let now = Time::now();
    let mut left = shown.recording.events;
    while left > 0 {
        let more = again.piece(|e| {
            if left == 0 {
                return;
            }
            left -= 1;
            let row = rows.row(&e, shown.recording, now);
            if shown.passes(&row, row.request_id.as_deref()) {
                each(row);
            }
        })?;
        if !more {
            break;
        }
    }
    Ok(())
}

/// Writes the document.
///
/// # Errors
/// When the file can't be read any more.
pub fn print(shown: &Shown<'_>, limit: Option<usize>) -> Result<()> {
    let r = shown.recording;
    let s = &r.session;
    let runs = r.headers.iter().map(|h| RunJson {
        at: h.at.rfc3339(),
        tap: &h.tap,
        server: &h.server,
        command: &h.command,
        url: h.url.as_deref(),
        redaction: Some(&h.redaction).filter(|r| !r.is_empty()).and_then(|r| raw_value(r)),
    });
    let generations = s.generations.iter().map(|g| GenerationJson {
        generation: g.n,
        opened_at: g.opened_at.rfc3339(),
        exit: g.ended.map(|e| ExitJson { code: e.code, signal: e.signal }),
        exit_words: g.ended.map(|e| e.how()),
        death: s.death(g.n),
        pending_at_exit: s.lost_with(g.n).count(),
        stderr_lines: g.stderr.len() as u64 + g.stderr.dropped,
        noise_lines: g.noise_seen,
    });
    let (matched, failed) = (Count::default(), RefCell::new(None));
    write_document(&Doc {
        schema: "redial/show@1",
        path: r.path().display().to_string(),
        runs: runs.collect(),
        server: s.server.as_ref().map(|s| ServerJson { name: &s.name, version: &s.version }),
        protocol: s.protocol.as_deref(),
        events: r.events,
        lost: r.lost,
        damaged: r.bad_lines().map(|b| BadJson { line: b.line, why: &b.why }).collect(),
        generations: generations.collect(),
        calls: Calls { shown, failed: &failed },
        frames: Frames { shown, limit, matched: &matched, failed: &failed },
        matched: &matched,
        of: r.events,
    });
    failed.into_inner().map_or(Ok(()), Err)
}

#[derive(serde::Serialize)]
struct RunJson<'a> {
    at: String,
    tap: &'a str,
    server: &'a str,
    command: &'a [String],
    url: Option<&'a str>,
    redaction: Option<Box<RawValue>>,
}

#[derive(serde::Serialize)]
struct ServerJson<'a> {
    name: &'a str,
    version: &'a str,
}

#[derive(serde::Serialize)]
struct BadJson<'a> {
    line: u64,
    why: &'a str,
}

#[derive(serde::Serialize)]
struct GenerationJson {
    generation: u32,
    opened_at: String,
    exit: Option<ExitJson>,
    exit_words: Option<String>,
    /// `while idle`, or in which call.
    death: Option<String>,
    pending_at_exit: usize,
    stderr_lines: u64,
    noise_lines: u64,
}

#[derive(serde::Serialize)]
struct ExitJson {
    code: Option<i32>,
    signal: Option<i32>,
}

#[derive(serde::Serialize)]
struct CallJson<'a> {
    seq: u64,
    generation: u32,
    at: String,
    tool: &'a str,
    request_id: Option<&'a str>,
    id: Option<Box<RawValue>>,
    args: Option<Box<RawValue>>,
    outcome: &'static str,
    why: Option<&'a str>,
    late: bool,
    answer_status: Option<&'static str>,
    ms: Option<f64>,
    result: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
    /// With `--ledger`: what is judged of its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
}

#[derive(serde::Serialize)]
struct RowJson {
    seq: u64,
    at: String,
    generation: u32,
    dir: &'static str,
    kind: &'static str,
    method: Option<String>,
    tool: Option<String>,
    request_id: Option<String>,
    id: Option<Box<RawValue>>,
    outcome: Option<&'static str>,
    ms: Option<f64>,
    bytes: usize,
    text: String,
}

fn call_json<'a>(c: &'a Call, shown: &'a Shown<'_>) -> CallJson<'a> {
    let s = c.settled.as_ref();
    let judged = shown.judgements.get(c.request_id.as_deref());
    CallJson {
        seq: c.id,
        generation: c.generation,
        at: c.sent_at.rfc3339(),
        tool: &c.tool,
        request_id: c.request_id.as_deref(),
        id: raw_value(&c.rpc_id.to_json()),
        args: c.args.as_deref().and_then(raw_value),
        outcome: c.word(),
        why: s.map(|s| s.why.as_str()),
        late: s.is_some_and(|s| s.late),
        answer_status: s.and_then(|s| s.answer_status).map(AnswerStatus::word),
        ms: took_ms(c),
        result: s.and_then(|s| s.result.as_deref()).and_then(raw_value),
        error: s.and_then(|s| s.error.as_deref()).and_then(raw_value),
        state: judged.map(|j| j.state.as_str()),
        verdict: judged.map(|j| j.verdicts.as_slice()),
        next: judged.map(|j| j.next.as_str()),
    }
}

fn row_json(r: Row) -> RowJson {
    RowJson {
        seq: r.seq,
        at: r.at.rfc3339(),
        generation: r.generation,
        dir: r.dir,
        kind: r.kind,
        method: r.method,
        tool: r.tool,
        request_id: r.request_id,
        id: r.id.and_then(|id| raw_value(&id.to_json())),
        outcome: r.outcome,
        ms: r.ms,
        bytes: r.bytes,
        text: r.text,
    }
}
