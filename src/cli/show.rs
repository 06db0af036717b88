//! `redial show`: what a recording holds, for people and as JSON. Needs no endpoint and sends nothing. The file is
//! read twice, first for how everything came out and then for its events, so that its size costs no memory.

mod doc;
mod judged;
mod redact;

use super::plain::{Plain, Role, complain};
use super::recorded::ShowArgs;
use super::report::Done;
use crate::error::{Error, Exit, Result};
use crate::filter::{Filter, Subject, parse};
use crate::inspect::recorded::Recorded;
use crate::recording::again::Again;
use crate::recording::rows::{CallRow, Row, Rows, took_ms};
use crate::recording::{BadLine, Recording};
use crate::text::truncate;
use crate::time::Time;
use judged::{Judgements, With};
use std::collections::VecDeque;
use std::time::Duration;

/// How much of a line people are shown.
const TEXT: usize = 160;
/// How often a followed file is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Lines written at once.
const LINES: usize = 1_000;

/// What is shown, and which of it.
struct Shown<'a> {
    recording: &'a Recording,
    filter: &'a Filter,
    judgements: &'a Judgements,
}

impl Shown<'_> {
    fn passes(&self, subject: &impl Subject, request_id: Option<&str>) -> bool {
        let judged = self.judgements.get(request_id);
        self.filter.matches(&With { subject, judged })
    }
}

pub async fn run(a: ShowArgs, config: &crate::config::Config) -> Done {
    let written = a.filter.join(" ");
    let filter = parse(&written)
        .map_err(|m| Error::usage(format!("the filter has a mistake:\n{}", m.marked(&written))))?;
    if a.redact || !a.rules.is_none() {
        let rules = super::recorded::rules(&a.rules, config, Vec::new())?;
        return Ok(redact::redact(&a, &rules)?);
    }
    let mut recording = Recording::open(&a.file)?;
    recording.end_here();
    let recorded = Recorded::new(recording);
    let judgements = Judgements::of(&a, &filter, &recorded).await?;
    let seen = recorded.shown(|r, _| {
        let shown = Shown { recording: r, filter: &filter, judgements: &judgements };
        match a.json {
            // The calls stand beside the frames there; to ask for them alone leaves the frames out.
            true => doc::print(&shown, if a.calls { Some(0) } else { a.limit }).map(|()| 0),
            false => plain(&shown, &a),
        }
    })?;
    if a.follow {
        follow(&recorded, &filter, &judgements, seen).await?;
    }
    Ok(Exit::Good)
}

/// How many matched.
fn plain(s: &Shown<'_>, a: &ShowArgs) -> Result<u64> {
    let r = s.recording;
    let mut p = Plain::stdout();
    head(&mut p, r);
    p.print();
    let (shown, total) = if a.calls {
        (calls(s, a.limit)?, r.calls() as u64)
    } else {
        (events(s, a.limit)?, r.events)
    };
    let mut p = Plain::stdout();
    p.gap();
    p.line(Role::Dim, &format!("{shown} of {total}"));
    damage(&mut p, r);
    p.print();
    Ok(shown)
}

fn events(s: &Shown<'_>, limit: Option<usize>) -> Result<u64> {
    let mut matched = 0;
    let mut newest: VecDeque<Row> = VecDeque::new();
    let mut p = Plain::stdout();
    let mut lines = 0;
    doc::each_row(s, |row| {
        matched += 1;
        match limit {
            Some(n) => {
                newest.push_back(row);
                if newest.len() > n {
                    newest.pop_front();
                }
            }
            None => {
                row_line(&mut p, &row);
                lines += 1;
                if lines >= LINES {
                    std::mem::replace(&mut p, Plain::stdout()).print();
                    lines = 0;
                }
            }
        }
    })?;
    newest.iter().for_each(|row| row_line(&mut p, row));
    p.print();
    Ok(matched)
}

/// As one table, or where they are too many to be kept in tables of so many lines.
fn calls(s: &Shown<'_>, limit: Option<usize>) -> Result<u64> {
    let now = Time::now();
    let mut matched = 0;
    let mut kept: VecDeque<Vec<(Role, String)>> = VecDeque::new();
    let mut take = |call: &crate::journal::Call, most: usize| {
        let row = CallRow { call, now };
        if !s.passes(&row, call.request_id.as_deref()) {
            return;
        }
        matched += 1;
        kept.push_back(call_cells(&row, s));
        match limit {
            Some(n) if kept.len() > n => drop(kept.pop_front()),
            None if kept.len() >= most => table(&mut kept),
            _ => {}
        }
    };
    let r = s.recording;
    if r.calls() == r.session.calls.len() {
        r.session.calls.values().for_each(|c| take(c, usize::MAX));
    } else {
        let mut again = Recording::begin(r.path())?;
        loop {
            let more = again.advance()?;
            again.let_go().iter().for_each(|c| take(c, LINES));
            if !more {
                break;
            }
        }
        again.end_here();
        again.session.calls.values().for_each(|c| take(c, LINES));
    }
    table(&mut kept);
    Ok(matched)
}

fn table(rows: &mut VecDeque<Vec<(Role, String)>>) {
    let mut p = Plain::stdout();
    p.table(&rows.drain(..).collect::<Vec<_>>(), 3);
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
            r.calls(),
            note(unknown, "with unknown outcome"),
            note(pending, "pending")
        ),
    );
    for g in &s.generations {
        if let Some(e) = g.ended {
            let how = s.death(g.n).unwrap_or_default();
            let good = e.code == Some(0) && s.lost_with(g.n).next().is_none();
            let role = if good { Role::Text } else { Role::Bad };
            p.field(
                "ended",
                role,
                &format!("{}  generation {}: {}, {how}", e.at.clock(), g.n, e.how()),
            );
        }
    }
    p.gap();
}

fn damage(p: &mut Plain, r: &Recording) {
    for b in r.bad_lines() {
        p.line(Role::Warn, &format!("line {} could not be read: {}", b.line, b.why));
    }
    if r.lost > 0 {
        p.line(Role::Warn, &format!("{} events are missing: they could not be written", r.lost));
    }
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

fn call_cells(c: &CallRow<'_>, s: &Shown<'_>) -> Vec<(Role, String)> {
    let call = c.call;
    let why = call.settled.as_ref().map(|s| s.why.clone()).unwrap_or_default();
    let judged = s.judgements.get(call.request_id.as_deref());
    let mut cells = vec![
        (Role::Dim, call.sent_at.clock()),
        (Role::Dim, format!("g{}", call.generation)),
        (outcome_role(call.word()), call.word().replace('_', " ")),
        (Role::Strong, call.tool.clone()),
        (Role::Text, call.request_id.clone().unwrap_or_default()),
        (Role::Dim, duration(took_ms(call))),
    ];
    if s.judgements.known {
        let words =
            judged.map(|j| format!("{}: {}", j.state, j.verdicts.join(", ").replace('_', " ")));
        cells.push((Role::Strong, words.unwrap_or_default()));
    }
    cells.push((Role::Text, why));
    cells
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
    recorded: &Recorded,
    filter: &Filter,
    judgements: &Judgements,
    mut matched: u64,
) -> Result<()> {
    // Reads on where the first reading stood, with what it had asked.
    let (path, mut of, mut bad) =
        recorded.shown(|r, _| (r.path().to_owned(), r.events, r.bad.len()));
    let (mut again, mut rows, mut skip) = (Again::open(&path)?, Rows::default(), of);
    let interrupt = super::interrupt::Interrupt::listen();
    loop {
        let mut more = true;
        while more {
            recorded.advance()?;
            let mut p = Plain::stdout();
            more = recorded.shown(|r, _| {
                let shown = Shown { recording: r, filter, judgements };
                again.piece(|e| {
                    let row = rows.row(&e, r, Time::now());
                    if skip > 0 {
                        skip -= 1;
                        return;
                    }
                    of += 1;
                    if shown.passes(&row, row.request_id.as_deref()) {
                        matched += 1;
                        row_line(&mut p, &row);
                    }
                })
            })?;
            recorded.shown(|r, _| {
                for BadLine { line, why } in r.bad.iter().skip(bad) {
                    p.line(Role::Warn, &format!("line {line} could not be read: {why}"));
                }
                bad = r.bad.len();
            });
            p.print();
        }
        tokio::select! {
            _ = interrupt.first() => break,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    complain(&format!("{matched} of {of}"));
    Ok(())
}
