//! `redial killtest`: kills a server in the middle of its work, many times, and counts effects.

use super::args::{EraArg, KilltestArgs};
use super::json::document;
use super::plain::{Cell, Plain, Role, print_raw};
use super::report::Done;
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::lab::killtest::{At, Plan, Report, Settled, Target, Trial, Verdict, run as killtest};
use crate::lab::process::words;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Serialize)]
struct Doc {
    schema: &'static str,
    at: String,
    tool: String,
    seed: u64,
    trials: u64,
    void: u64,
    exactly_once: u64,
    duplicates: u64,
    lost: u64,
    proves: bool,
    /// The last count was made so many seconds after the last trial, and nothing had changed for the settle time.
    counted_after_s: Option<f64>,
    still: bool,
    /// Trials whose effects changed after they were first counted.
    late: u64,
    /// Effects of the run that name no request, and those under other names (negative: effects that went).
    nameless: u64,
    strange: i64,
    /// Effects of the one call that nobody disturbed.
    undisturbed: Option<u64>,
    failures: Vec<FailureJson>,
    voids: Vec<VoidJson>,
    points: Vec<PointJson>,
    took_s: f64,
    trials_per_s: f64,
}

#[derive(Serialize)]
struct FailureJson {
    request_id: String,
    effects: u64,
    /// What it was first counted with, where more (or less) came later.
    first_counted: Option<u64>,
    at: String,
    repeat: String,
    recording: Option<PathBuf>,
}

#[derive(Serialize)]
struct VoidJson {
    request_id: String,
    why: String,
}

#[derive(Serialize, Default, Clone)]
struct PointJson {
    at: String,
    trials: u64,
    void: u64,
    exactly_once: u64,
    duplicates: u64,
    lost: u64,
    /// What the restarted server said of the request, with how often.
    found: BTreeMap<String, u64>,
}

pub async fn run(a: KilltestArgs, config: &Config) -> Done {
    // The built-in server on a ledger of its own, in a folder that goes, touches nothing of anybody's.
    if a.http.is_some() || a.start.is_some() || !a.command.is_empty() || a.ledger.is_some() {
        a.read_only.stops("the kill test makes calls of a server that is not redial's own")?;
    }
    let plan = plan(&a, config)?;
    let total = a.trials;
    let bar = !a.json && std::io::stderr().is_terminal();
    let mut counted = Report::default();
    let work = killtest(plan, |trial| {
        counted.trials.push(trial.clone());
        if bar {
            progress(&counted, total);
        }
    });
    // Ended from outside: dropping the work ends every server it started.
    let finished = tokio::select! {
        report = work => Some(report?),
        () = stopped() => None,
    };
    let Some(report) = finished else {
        if bar {
            write!(std::io::stderr(), "\r\u{1b}[K").ok();
        }
        // What was counted so far was counted.
        if !a.json && !counted.trials.is_empty() {
            plain(&counted);
        }
        let n = counted.trials.len();
        return Err(Error::new(
            Exit::Unknown,
            format!("stopped after {n} of {total} trials; nothing is left running"),
        )
        .into());
    };
    if bar {
        write!(std::io::stderr(), "\r\u{1b}[K").ok();
    }
    let at = a.at.clone();
    let exit = if report.proves() { Exit::Good } else { Exit::Found };
    if a.json {
        print_raw(&document(&doc(&at, a.seed, &report)));
    } else {
        plain(&report);
    }
    Ok(exit)
}

/// Somebody ends this program, or the terminal was closed.
pub async fn stopped() {
    match crate::signals::Ends::listen() {
        Ok(mut ends) => drop(ends.next().await),
        Err(_) => std::future::pending().await,
    }
}

fn plan(a: &KilltestArgs, config: &Config) -> Result<Plan, Error> {
    let at = match a.at.as_str() {
        "random" => At::Random,
        point => At::Point(point.parse().map_err(Error::usage)?),
    };
    let target = match (&a.http, &a.start) {
        (Some(url), Some(start)) => Target::Http { url: url.clone(), start: words(start)? },
        (Some(_), None) => {
            return Err(Error::usage("over HTTP the kill test has to start the server itself")
                .hint("--start \"COMMAND\" says how"));
        }
        (None, Some(_)) => {
            return Err(Error::usage("--start needs --http URL: where the server will listen"));
        }
        (None, None) if a.command.is_empty() => Target::BuiltIn,
        (None, None) => Target::Command(a.command.clone()),
    };
    if let Some(named) = &a.keep {
        crate::lab::keep::folder(named)?;
    }
    let keep = a.keep.clone().unwrap_or_else(|| std::env::temp_dir().join("redial-killtest"));
    Ok(Plan {
        trials: a.trials,
        seed: a.seed,
        at,
        tool: a.tool.clone(),
        keep,
        hides: super::recorded::hides(config)?,
        ledger: a.ledger.clone(),
        effects: a.effects.clone(),
        settle: Duration::from_secs_f64(a.settle),
        target,
        era: match a.era {
            EraArg::Auto => crate::client::Era::Auto,
            EraArg::Modern => crate::client::Era::Modern,
            EraArg::Legacy => crate::client::Era::Legacy,
        },
    })
}

fn points(report: &Report) -> Vec<PointJson> {
    let mut by: BTreeMap<String, PointJson> = BTreeMap::new();
    for t in &report.trials {
        // Moments of the measured work differ in each trial: one line for all.
        let at = if t.at.starts_with("after ") { "a random moment" } else { &t.at };
        let p = by.entry(at.to_owned()).or_default();
        p.at = at.to_owned();
        p.trials += 1;
        match &t.verdict {
            Verdict::Void(_) => p.void += 1,
            Verdict::Effects(0) => p.lost += 1,
            Verdict::Effects(1) => p.exactly_once += 1,
            Verdict::Effects(_) => p.duplicates += 1,
        }
        if !t.found.is_empty() {
            *p.found.entry(t.found.clone()).or_default() += 1;
        }
    }
    by.into_values().collect()
}

fn doc(at: &str, seed: u64, report: &Report) -> Doc {
    let failure = |t: &Trial| match t.verdict {
        Verdict::Effects(effects) if effects != 1 => Some(FailureJson {
            request_id: t.request_id.clone(),
            effects,
            first_counted: t.late_from,
            at: t.at.clone(),
            repeat: t.repeat.clone(),
            recording: t.recording.clone(),
        }),
        _ => None,
    };
    let void = |t: &Trial| match &t.verdict {
        Verdict::Void(why) => Some(VoidJson { request_id: t.request_id.clone(), why: why.clone() }),
        Verdict::Effects(_) => None,
    };
    let settled = report.settled.clone().unwrap_or_default();
    Doc {
        schema: "redial/killtest@1",
        at: at.to_owned(),
        tool: report.tool.clone(),
        seed,
        trials: report.trials.len() as u64,
        void: report.void(),
        exactly_once: report.exactly_once(),
        duplicates: report.duplicates(),
        lost: report.lost(),
        proves: report.proves(),
        counted_after_s: report.settled.as_ref().map(|s| (s.after_s * 1000.0).round() / 1000.0),
        still: settled.still,
        late: settled.late,
        nameless: settled.nameless,
        strange: settled.strange,
        undisturbed: settled.undisturbed,
        failures: report.trials.iter().filter_map(failure).collect(),
        voids: report.trials.iter().filter_map(void).collect(),
        points: points(report),
        took_s: (report.took_s * 1000.0).round() / 1000.0,
        trials_per_s: (report.trials.len() as f64 / report.took_s.max(0.001) * 100.0).round()
            / 100.0,
    }
}

fn progress(so_far: &Report, total: u32) {
    let done = so_far.trials.len();
    let filled = 30 * done / (total.max(1) as usize);
    let bar: String = (0..30).map(|i| if i < filled { '█' } else { '░' }).collect();
    let line = format!(
        "\r\u{1b}[K{bar} {done}/{total}  exactly once {}  duplicates {}  lost {}  void {}",
        so_far.exactly_once(),
        so_far.duplicates(),
        so_far.lost(),
        so_far.void()
    );
    let mut err = std::io::stderr();
    err.write_all(line.as_bytes()).and_then(|()| err.flush()).ok();
}

/// What leaves the proof open though every trial ended with one effect.
fn open(report: &Report) -> String {
    let Some(s) = &report.settled else { return "they were not counted again".into() };
    let effects = |n: u64| if n == 1 { "1 effect".to_owned() } else { format!("{n} effects") };
    let mut why = Vec::new();
    if s.nameless > 0 {
        why.push(format!("{} of this run name no request", effects(s.nameless)));
    }
    match s.strange {
        0 => {}
        n @ 1.. => why.push(format!(
            "{} came meanwhile under no name of this run",
            effects(n.unsigned_abs())
        )),
        n => why.push(format!("{} went meanwhile", effects(n.unsigned_abs()))),
    }
    if let Some(n) = s.undisturbed.filter(|n| *n != 1) {
        why.push(format!("the call that nobody disturbed left {}", effects(n)));
    }
    if !s.still {
        why.push(format!("effects still changed {:.0} s after the last trial", s.after_s));
    }
    why.join("; ")
}

/// How the last count was made.
fn again(s: &Settled) -> String {
    let own = s.undisturbed.map(|n| {
        format!("; the call that nobody disturbed left {n} effect{}", if n == 1 { "" } else { "s" })
    });
    let late = Some(s.late).filter(|n| *n > 0).map(|n| {
        format!(
            "; {n} trial{} had changed since it was first counted",
            if n == 1 { "" } else { "s" }
        )
    });
    format!(
        "all were counted again {:.1} s after the last trial{}{}; what comes later (job queues, redelivery) was not waited for",
        s.after_s,
        own.unwrap_or_default(),
        late.unwrap_or_default()
    )
}

fn plain(report: &Report) {
    let mut p = Plain::default();
    let mut rows: Vec<Vec<Cell>> = vec![
        ["killed", "trials", "void", "exactly once", "duplicates", "lost", "the server then said"]
            .map(|h| (Role::Dim, h.to_owned()))
            .to_vec(),
    ];
    for point in points(report) {
        let number = |n: u64, bad: Role| (if n == 0 { Role::Dim } else { bad }, n.to_string());
        let found: Vec<String> = point.found.iter().map(|(s, n)| format!("{s} {n}")).collect();
        rows.push(vec![
            (Role::Text, point.at.clone()),
            (Role::Text, point.trials.to_string()),
            number(point.void, Role::Warn),
            number(point.exactly_once, Role::Good),
            number(point.duplicates, Role::Bad),
            number(point.lost, Role::Bad),
            (Role::Text, found.join(", ")),
        ]);
    }
    p.table(&rows, 6);
    let failed: Vec<_> = report
        .trials
        .iter()
        .filter_map(|t| match t.verdict {
            Verdict::Effects(n) if n != 1 => Some((t, n)),
            _ => None,
        })
        .collect();
    if !failed.is_empty() {
        p.gap();
    }
    for (t, n) in failed.iter().take(10) {
        let kept = t.recording.as_ref().map(|r| format!(", recording {}", r.display()));
        let kept = kept.unwrap_or_default();
        let first = t.late_from.map(|n| format!(", {n} when it was first counted"));
        let first = first.unwrap_or_default();
        p.line(Role::Bad, &format!("{}: {n} effects{first} ({}){kept}", t.request_id, t.repeat));
    }
    if failed.len() > 10 {
        p.line(Role::Bad, &format!("… and {} more; --json names them", failed.len() - 10));
    }
    let mut why: BTreeMap<&str, u64> = BTreeMap::new();
    for t in &report.trials {
        if let Verdict::Void(w) = &t.verdict {
            *why.entry(w.as_str()).or_default() += 1;
        }
    }
    if !why.is_empty() {
        p.gap();
    }
    for (w, n) in why.iter().take(5) {
        p.line(Role::Warn, &format!("void, {n} ×: {w}"));
    }
    if why.len() > 5 {
        let rest: u64 = why.values().skip(5).sum();
        p.line(Role::Warn, &format!("void, {rest} ×: for other reasons; --json names them"));
    }
    p.gap();
    let counted = report.trials.len() as u64 - report.void();
    let (role, sentence) = match counted {
        0 => (Role::Bad, "nothing is proven: no kill hit".to_owned()),
        n if report.proves() => {
            (Role::Good, format!("exactly once: {n} of {n} requests ended with one effect"))
        }
        n if report.duplicates() + report.lost() == 0 => (
            Role::Bad,
            format!("not proven: {n} of {n} requests ended with one effect, but {}", open(report)),
        ),
        n => (
            Role::Bad,
            format!(
                "NOT exactly once: of {n} requests {} ended with more than one effect, {} with none",
                report.duplicates(),
                report.lost()
            ),
        ),
    };
    p.line(role, &sentence);
    if let Some(s) = &report.settled {
        p.line(Role::Dim, &again(s));
    }
    p.line(
        Role::Dim,
        &format!(
            "{} trials of {} (policy by-hand: looked up, repeated once) in {:.1} s, {:.1} a second",
            report.trials.len(),
            report.tool,
            report.took_s,
            report.trials.len() as f64 / report.took_s.max(0.001)
        ),
    );
    p.print();
}
