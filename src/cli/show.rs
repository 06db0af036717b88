//! `redial show`: what a recording holds, for people and as JSON. Needs no endpoint and sends nothing.

use super::json::{document, raw_value};
use super::plain::{Plain, Role, complain, print_raw};
use super::recorded::ShowArgs;
use super::report::Done;
use crate::error::{Error, Exit, Result};
use crate::filter::{Filter, parse};
use crate::journal::{AnswerStatus, Session};
use crate::record::entry::{self, Line, decode};
use crate::record::redact::{Extra, Rules};
use crate::recording::rows::{CallRow, Row, Rows, took_ms};
use crate::recording::{BadLine, Recording, import};
use crate::text::truncate;
use crate::time::Time;
use serde::Serialize;
use serde_json::value::RawValue;
use std::time::Duration;

/// How much of a line people are shown.
const TEXT: usize = 160;
/// How often a followed file is looked at.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Serialize)]
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
    calls: Vec<CallJson<'a>>,
    frames: Vec<RowJson>,
    matched: usize,
    of: usize,
}

#[derive(Serialize)]
struct RunJson<'a> {
    at: String,
    tap: &'a str,
    server: &'a str,
    command: &'a [String],
    url: Option<&'a str>,
    redaction: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct ServerJson<'a> {
    name: &'a str,
    version: &'a str,
}

#[derive(Serialize)]
struct BadJson<'a> {
    line: u64,
    why: &'a str,
}

#[derive(Serialize)]
struct GenerationJson {
    generation: u32,
    opened_at: String,
    exit: Option<ExitJson>,
    exit_words: Option<String>,
    pending_at_exit: usize,
    stderr_lines: u64,
    noise_lines: u64,
}

#[derive(Serialize)]
struct ExitJson {
    code: Option<i32>,
    signal: Option<i32>,
}

#[derive(Serialize)]
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
}

#[derive(Serialize)]
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

pub async fn run(a: ShowArgs) -> Done {
    let written = a.filter.join(" ");
    let filter = parse(&written)
        .map_err(|m| Error::usage(format!("the filter has a mistake:\n{}", m.marked(&written))))?;
    if a.redact {
        return Ok(redact(&a)?);
    }
    let mut r = Recording::with_entries(&a.file)?;
    let mut rows = Rows::default();
    let all = made(&mut r, &mut rows);
    let of = all.len();
    let chosen: Vec<Row> = all.into_iter().filter(|row| filter.matches(row)).collect();
    if a.json {
        print_raw(&json(&r, &filter, chosen, of, a.limit));
        return Ok(Exit::Good);
    }
    let matched = chosen.len();
    plain(&r, &filter, &chosen, of, &a);
    if a.follow {
        follow(r, rows, &filter, (matched, of)).await?;
    }
    Ok(Exit::Good)
}

/// The rows of what is new.
fn made(r: &mut Recording, rows: &mut Rows) -> Vec<Row> {
    let entries = r.take_entries();
    let now = Time::now();
    entries.iter().map(|e| rows.row(e, &*r, now)).collect()
}

fn newest<T>(list: &[T], limit: Option<usize>) -> &[T] {
    let skip = limit.map_or(0, |n| list.len().saturating_sub(n));
    list.get(skip..).unwrap_or_default()
}

fn plain(r: &Recording, filter: &Filter, chosen: &[Row], of: usize, a: &ShowArgs) {
    let mut p = Plain::stdout();
    head(&mut p, r);
    let calls: Vec<CallRow<'_>> = calls(&r.session).filter(|c| filter.matches(c)).collect();
    let (shown, total) = if a.calls {
        let shown = newest(&calls, a.limit);
        p.table(&shown.iter().map(call_cells).collect::<Vec<_>>(), 3);
        (calls.len(), r.session.calls.len())
    } else {
        newest(chosen, a.limit).iter().for_each(|row| row_line(&mut p, row));
        (chosen.len(), of)
    };
    p.gap();
    p.line(Role::Dim, &format!("{shown} of {total}"));
    damage(&mut p, r);
    p.print();
}

fn head(p: &mut Plain, r: &Recording) {
    p.field("recording", Role::Strong, &r.path().display().to_string());
    for h in &r.headers {
        let what = h.url.clone().unwrap_or_else(|| h.command.join(" "));
        let what = if what.is_empty() { h.tap.clone() } else { what };
        p.field("run", Role::Text, &format!("{}  {what}", h.at.rfc3339()));
    }
    let s = &r.session;
    if let Some(server) = &s.server {
        let protocol = s.protocol.as_deref().map(|v| format!(", protocol {v}")).unwrap_or_default();
        p.field("server", Role::Text, &format!("{} {}{protocol}", server.name, server.version));
    }
    let pending = s.pending().count();
    let unknown = s.calls.values().filter(|c| c.word() == "unknown").count();
    let note = |n: usize, word: &str| if n > 0 { format!(", {n} {word}") } else { String::new() };
    p.field(
        "calls",
        if unknown > 0 { Role::Warn } else { Role::Text },
        &format!(
            "{}{}{}",
            s.calls.len(),
            note(unknown, "with unknown outcome"),
            note(pending, "pending")
        ),
    );
    for g in &s.generations {
        if let Some(e) = g.ended {
            let open = died_in_a_call(s, g.n);
            let how = match open {
                0 => "while idle".into(),
                n => format!("with {n} call{} in flight", if n == 1 { "" } else { "s" }),
            };
            let good = e.code == Some(0) && open == 0;
            let role = if good { Role::Text } else { Role::Bad };
            p.field(
                "ended",
                role,
                &format!("{}  generation {}: {}, {how}", e.at.clock(), g.n, e.words()),
            );
        }
    }
    p.gap();
}

/// Calls that the end of a generation left without an answer.
fn died_in_a_call(s: &Session, generation: u32) -> usize {
    let Some(ended) = s.generation_n(generation).and_then(|g| g.ended) else { return 0 };
    s.calls
        .values()
        .filter(|c| c.generation == generation && c.word() == "unknown")
        .filter(|c| {
            c.settled.as_ref().is_some_and(|x| {
                x.at <= ended.at && x.why.contains("before it answered")
                    || x.why.contains("closed its stdout")
            })
        })
        .count()
}

fn damage(p: &mut Plain, r: &Recording) {
    for b in r.bad_lines() {
        p.line(Role::Warn, &format!("line {} could not be read: {}", b.line, b.why));
    }
    if r.lost > 0 {
        p.line(Role::Warn, &format!("{} events are missing: they could not be written", r.lost));
    }
}

fn calls(s: &Session) -> impl Iterator<Item = CallRow<'_>> {
    let now = Time::now();
    s.calls.values().map(move |call| CallRow { call, now })
}

fn outcome_role(word: &str) -> Role {
    match word {
        "ok" => Role::Good,
        "pending" => Role::Text,
        "unknown" | "not_sent" => Role::Warn,
        _ => Role::Bad,
    }
}

fn duration(ms: Option<f64>) -> String {
    match ms {
        None => String::new(),
        Some(ms) if ms < 1000.0 => format!("{ms:.0} ms"),
        Some(ms) => crate::time::span(ms / 1000.0),
    }
}

fn call_cells(c: &CallRow<'_>) -> Vec<(Role, String)> {
    let call = c.call;
    let why = call.settled.as_ref().map(|s| s.why.clone()).unwrap_or_default();
    vec![
        (Role::Dim, call.sent_at.clock()),
        (Role::Dim, format!("g{}", call.generation)),
        (outcome_role(call.word()), call.word().replace('_', " ")),
        (Role::Strong, call.tool.clone()),
        (Role::Text, call.request_id.clone().unwrap_or_default()),
        (Role::Dim, duration(took_ms(call))),
        (Role::Text, why),
    ]
}

fn row_line(p: &mut Plain, r: &Row) {
    let arrow = match r.dir {
        "out" => "→",
        "in" => "←",
        "err" => "!",
        _ => "·",
    };
    let name = r.tool.as_deref().or(r.method.as_deref()).unwrap_or_default();
    let id = r.request_id.as_deref().map(|i| format!(" {i}")).unwrap_or_default();
    let outcome = r.outcome.map(|o| format!(" {}", o.replace('_', " "))).unwrap_or_default();
    let ms = r.ms.map(|_| format!(" {}", duration(r.ms))).unwrap_or_default();
    let role = match r.kind {
        "exit" | "gap" => Role::Bad,
        "stderr" | "noise" => Role::Warn,
        _ => Role::Text,
    };
    // Only what fits a line is cleaned; --json has all of it.
    let text: String = r.text.chars().take(TEXT * 2).collect();
    let clean = crate::text::visible(&text).into_owned();
    let text = truncate(&clean, TEXT, "…");
    p.parts(&[
        (Role::Dim, &format!("{:>6}  {}  g{} {arrow} ", r.seq, r.at.clock(), r.generation)),
        (Role::Text, &format!("{:<13}", r.kind)),
        (Role::Strong, name),
        (Role::Text, &id),
        (r.outcome.map_or(Role::Text, outcome_role), &outcome),
        (Role::Dim, &format!("{ms}  ")),
        (role, &text),
    ]);
}

async fn follow(
    mut r: Recording,
    mut rows: Rows,
    filter: &Filter,
    seen: (usize, usize),
) -> Result<()> {
    let (mut matched, mut of) = seen;
    let mut bad = r.bad.len();
    let interrupt = super::interrupt::Interrupt::listen();
    loop {
        tokio::select! {
            _ = interrupt.first() => break,
            () = tokio::time::sleep(LOOK) => {}
        }
        if r.poll()? == 0 && r.bad.len() == bad {
            continue;
        }
        let mut p = Plain::stdout();
        for row in made(&mut r, &mut rows) {
            of += 1;
            if filter.matches(&row) {
                matched += 1;
                row_line(&mut p, &row);
            }
        }
        for BadLine { line, why } in r.bad.iter().skip(bad) {
            p.line(Role::Warn, &format!("line {line} could not be read: {why}"));
        }
        bad = r.bad.len();
        p.print();
    }
    complain(&format!("{matched} of {of}"));
    Ok(())
}

fn json(
    r: &Recording,
    filter: &Filter,
    chosen: Vec<Row>,
    of: usize,
    limit: Option<usize>,
) -> String {
    let s = &r.session;
    let matched = chosen.len();
    let skip = limit.map_or(0, |n| chosen.len().saturating_sub(n));
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
        exit_words: g.ended.map(|e| e.words()),
        pending_at_exit: died_in_a_call(s, g.n),
        stderr_lines: g.stderr.len() as u64 + g.stderr.dropped,
        noise_lines: g.noise_seen,
    });
    document(&Doc {
        schema: "redial/show@1",
        path: r.path().display().to_string(),
        runs: runs.collect(),
        server: s.server.as_ref().map(|s| ServerJson { name: &s.name, version: &s.version }),
        protocol: s.protocol.as_deref(),
        events: r.events,
        lost: r.lost,
        damaged: r.bad_lines().map(|b| BadJson { line: b.line, why: &b.why }).collect(),
        generations: generations.collect(),
        calls: calls(s).filter(|c| filter.matches(c)).map(|c| call_json(c.call)).collect(),
        frames: chosen.into_iter().skip(skip).map(row_json).collect(),
        matched,
        of,
    })
}

fn call_json(c: &crate::journal::Call) -> CallJson<'_> {
    let s = c.settled.as_ref();
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

/// Writes the recording to stdout again, without its secrets. A line that can't be read can't be cleaned, so it
/// is left out and told on stderr.
fn redact(a: &ShowArgs) -> Result<Exit> {
    let rules = Rules::new(Extra {
        keys: a.rules.redact_key.clone(),
        paths: a.rules.redact_path.clone(),
        patterns: a.rules.redact_pattern.clone(),
        values: Vec::new(),
    })
    .map_err(Error::usage)?;
    let path = crate::record::place::find(&a.file)?;
    let mut lines = import::open(&path)?;
    let mut left_out: Vec<BadLine> = lines.take_bad();
    loop {
        let mut out = String::new();
        let more = lines
            .read(|line| match decode(line.bytes) {
                Line::Header(mut h) => {
                    h.command = rules.argv(&h.command);
                    h.url = h.url.map(|u| rules.url(&u));
                    h.redaction = rules.statement();
                    out.push_str(&entry::header(&h));
                }
                Line::Entry(mut e) => {
                    rules.entry(&mut e);
                    out.push_str(&entry::line(&e));
                }
                Line::Other => {
                    let why = "of a kind that is not known here".into();
                    left_out.push(BadLine { line: line.number, why });
                }
                Line::Bad(why) => left_out.push(BadLine { line: line.number, why }),
            })
            .map_err(|e| Error::ledger(format!("{} can't be read: {e}", path.display())))?;
        print_raw(&out);
        if !more {
            break;
        }
    }
    if let Some((line, _)) = lines.unfinished() {
        left_out.push(BadLine { line, why: "torn".into() });
    }
    for b in &left_out {
        complain(&format!("line {} is left out: {}", b.line, b.why));
    }
    Ok(Exit::Good)
}
