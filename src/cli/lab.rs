//! `redial lab`: the articles' claims, run for real: what to expect, why, and what was counted.

use super::args::{EraArg, LabArgs, LabCommand};
use super::json::{document, raw_value};
use super::plain::{Cell as Column, Plain, Role, complain, print_raw};
use super::report::Done;
use crate::client::Era;
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::lab::keep::{folder, keep};
use crate::lab::play::play;
use crate::lab::policy::{self, Attempt, POLICIES};
use crate::lab::scenario::{Cell, Run, SCENARIOS, Scenario, find};
use crate::record::redact::Extra;
use serde::Serialize;
use serde_json::value::RawValue;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Cells played at the same time: they mostly wait.
const SIDE_BY_SIDE: usize = 6;

#[derive(Serialize)]
struct Doc {
    schema: &'static str,
    as_expected: bool,
    runs: Vec<RunJson>,
}

#[derive(Serialize)]
struct RunJson {
    scenario: &'static str,
    from: &'static str,
    tool: &'static str,
    variant: &'static str,
    policy: &'static str,
    protocol: String,
    logical_invocations: u32,
    attempts: usize,
    effects: u64,
    expected_effects: u64,
    void: bool,
    as_expected: bool,
    detail: String,
    wrong: Vec<String>,
    why: &'static str,
    tries: Vec<TryJson>,
    timeline: Vec<String>,
    recording: Option<PathBuf>,
}

#[derive(Serialize)]
struct TryJson {
    rpc_id: Option<Box<RawValue>>,
    args: Option<Box<RawValue>>,
    limit_s: f64,
    waited_s: f64,
    took_s: f64,
    outcome: &'static str,
    why: String,
    answer: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct ListDoc {
    schema: &'static str,
    scenarios: Vec<ScenarioJson>,
}

#[derive(Serialize)]
struct ScenarioJson {
    name: &'static str,
    from: &'static str,
    story: &'static str,
    why: &'static str,
    tools: Vec<&'static str>,
}

pub async fn run(a: LabArgs, config: &Config) -> Done {
    match a.command {
        LabCommand::List { json } => Ok(list(json)),
        LabCommand::Run { name, era, keep, read_only, json } => {
            read_only.stops("the lab's scenarios make calls that do work")?;
            let chosen = choose(&name)?;
            keep.as_deref().map(folder).transpose()?;
            let hides = match keep {
                Some(_) => super::recorded::hides(config)?,
                None => Extra::default(),
            };
            tokio::select! {
                runs = run_all(chosen, era) => Ok(finish(runs?, keep.as_deref(), &hides, json)?),
                () = super::killtest::stopped() => {
                    Err(Error::new(Exit::Unknown, "stopped; nothing is left running").into())
                }
            }
        }
    }
}

fn choose(name: &str) -> Result<Vec<&'static Scenario>, Error> {
    if name == "all" {
        return Ok(SCENARIOS.iter().collect());
    }
    find(name).map(|s| vec![s]).ok_or_else(|| {
        let names: Vec<&str> = SCENARIOS.iter().map(|s| s.name).collect();
        Error::usage(format!("there is no scenario {name}"))
            .hint(format!("all, or one of {}", names.join(", ")))
    })
}

/// The eras to play a cell in.
fn eras(asked: EraArg, cell: &Cell) -> Vec<Era> {
    let mut eras = match asked {
        EraArg::Auto => vec![Era::Legacy, Era::Modern],
        EraArg::Legacy => vec![Era::Legacy],
        EraArg::Modern => vec![Era::Modern],
    };
    eras.retain(|e| cell.modern || *e == Era::Legacy);
    eras
}

async fn run_all(chosen: Vec<&'static Scenario>, era: EraArg) -> Result<Vec<Run>, Error> {
    let places = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    let mut tasks = JoinSet::new();
    let mut order = 0;
    for scenario in chosen {
        for cell in scenario.cells {
            for era in eras(era, cell) {
                let (places, cell, at) = (places.clone(), *cell, order);
                order += 1;
                tasks.spawn(async move {
                    // Never closed.
                    let _place = places.acquire().await;
                    (at, play(scenario, cell, era).await)
                });
            }
        }
    }
    let mut runs = Vec::new();
    while let Some(done) = tasks.join_next().await {
        let (at, run) = done.map_err(|e| Error::endpoint(format!("a scenario broke off: {e}")))?;
        runs.push((at, run?));
    }
    runs.sort_by_key(|(at, _)| *at);
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}

fn finish(runs: Vec<Run>, folder: Option<&Path>, hides: &Extra, json: bool) -> Result<Exit, Error> {
    if runs.is_empty() {
        return Err(Error::usage("that protocol era has no such situation: nothing was run")
            .hint("leave --era out to play each scenario where it makes sense"));
    }
    let all = runs.iter().all(Run::as_expected);
    let mut kept = Vec::new();
    for run in &runs {
        kept.push(match folder {
            Some(folder) => keep_run(folder, run, hides),
            None => None,
        });
    }
    if json {
        let runs = runs.iter().zip(kept).map(|(r, k)| run_json(r, k)).collect();
        print_raw(&document(&Doc { schema: "redial/lab@1", as_expected: all, runs }));
    } else {
        plain(&runs, &kept, all);
    }
    Ok(if all { Exit::Good } else { Exit::Found })
}

/// What could not be kept is said: the run was made all the same.
fn keep_run(folder: &Path, run: &Run, hides: &Extra) -> Option<PathBuf> {
    let variant: String =
        run.cell.variant.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let name = [run.scenario, run.cell.tool, &variant, &run.protocol];
    let name: Vec<&str> = name.into_iter().filter(|p| !p.is_empty()).collect();
    let path = folder.join(format!("{}.jsonl", name.join("_")));
    match keep(&path, run.cell.tool, &run.journals, hides) {
        Ok(()) => Some(path),
        Err(e) => {
            complain(&format!("the recording {} can't be written: {e}", path.display()));
            None
        }
    }
}

fn why(run: &Run) -> &'static str {
    find(run.scenario).map_or("", |s| s.why)
}

fn run_json(run: &Run, recording: Option<PathBuf>) -> RunJson {
    let seconds = |s: f64| (s * 1000.0).round() / 1000.0;
    let tried = |a: &Attempt| TryJson {
        rpc_id: raw_value(&a.rpc_id),
        args: raw_value(&a.args),
        limit_s: a.limit_s,
        waited_s: seconds(a.waited_s),
        took_s: seconds(a.took_s),
        outcome: a.outcome,
        why: a.why.clone(),
        answer: a.answer.as_deref().and_then(raw_value),
    };
    let mut detail = run.detail.clone();
    if let Some(void) = &run.void {
        detail = format!("void: {void}");
    }
    RunJson {
        scenario: run.scenario,
        from: find(run.scenario).map_or("", |s| s.from),
        tool: run.cell.tool,
        variant: run.cell.variant,
        policy: run.cell.policy,
        protocol: run.protocol.clone(),
        logical_invocations: run.cell.logical,
        attempts: run.attempts.len(),
        effects: run.effects,
        expected_effects: run.cell.effects,
        void: run.void.is_some(),
        as_expected: run.as_expected(),
        detail,
        wrong: run.wrong.clone(),
        why: why(run),
        tries: run.attempts.iter().map(tried).collect(),
        timeline: run.timeline.iter().map(|(at, t)| format!("{at:7.3} s  {t}")).collect(),
        recording,
    }
}

fn list(json: bool) -> Exit {
    if json {
        let scenario = |s: &'static Scenario| ScenarioJson {
            name: s.name,
            from: s.from,
            story: s.story,
            why: s.why,
            tools: s.cells.iter().map(|c| c.tool).collect(),
        };
        let scenarios = SCENARIOS.iter().map(scenario).collect();
        print_raw(&document(&ListDoc { schema: "redial/lab@1", scenarios }));
        return Exit::Good;
    }
    let mut p = Plain::default();
    let row = |s: &Scenario| -> Vec<Column> {
        vec![
            (Role::Dim, s.from.into()),
            (Role::Strong, s.name.into()),
            (Role::Text, s.story.into()),
        ]
    };
    p.table(&SCENARIOS.iter().map(row).collect::<Vec<_>>(), 2);
    p.gap();
    p.line(Role::Strong, "How the clients repeat");
    let row = |r: &policy::Policy| -> Vec<Column> {
        vec![(Role::Strong, r.name.into()), (Role::Text, r.about.into())]
    };
    p.table(&POLICIES.iter().map(row).collect::<Vec<_>>(), 1);
    p.gap();
    p.line(Role::Text, "redial lab run NAME, or redial lab run all (some 30 seconds)");
    p.print();
    Exit::Good
}

fn plain(runs: &[Run], kept: &[Option<PathBuf>], all: bool) {
    let mut p = Plain::default();
    let mut shown = "";
    for (run, kept) in runs.iter().zip(kept) {
        if shown != run.scenario
            && let Some(s) = find(run.scenario)
        {
            if !shown.is_empty() {
                p.gap();
            }
            shown = s.name;
            p.parts(&[(Role::Strong, s.name), (Role::Dim, &format!("  (article {})", s.from))]);
            p.line(Role::Text, &format!("  {}", s.story));
            p.line(Role::Dim, &format!("  why: {}", s.why));
        }
        one(&mut p, run, kept.as_deref());
    }
    p.gap();
    let good = runs.iter().filter(|r| r.as_expected()).count();
    let role = if all { Role::Good } else { Role::Bad };
    p.line(role, &format!("{good} of {} as expected", runs.len()));
    p.print();
}

fn one(p: &mut Plain, run: &Run, kept: Option<&Path>) {
    let c = &run.cell;
    let role = if run.as_expected() { Role::Good } else { Role::Bad };
    let variant = if c.variant.is_empty() { String::new() } else { format!(", {}", c.variant) };
    let calls = if c.logical == 1 { "1 call".to_owned() } else { format!("{} calls", c.logical) };
    let times = if run.attempts.len() == 1 { "attempt" } else { "attempts" };
    let effects =
        if run.effects == 1 { "1 effect".to_owned() } else { format!("{} effects", run.effects) };
    p.parts(&[
        (Role::Strong, &format!("  {}{variant}", c.tool)),
        (Role::Dim, &format!("  {}, policy {}: ", run.protocol, c.policy)),
        (role, &format!("{effects} of {calls}")),
        (Role::Dim, &format!(" in {} {times}, expected {}", run.attempts.len(), c.effects)),
    ]);
    for (n, a) in run.attempts.iter().enumerate() {
        let waited =
            if a.waited_s > 0.0 { format!("after {:.1} s, ", a.waited_s) } else { String::new() };
        p.line(
            Role::Dim,
            &format!(
                "    {}. {waited}limit {} s, id {}: {} after {:.1} s ({})",
                n + 1,
                a.limit_s,
                a.rpc_id,
                a.outcome.replace('_', " "),
                a.took_s,
                a.why
            ),
        );
    }
    for (at, text) in &run.timeline {
        p.line(Role::Dim, &format!("    {at:7.3} s  {text}"));
    }
    if !run.detail.is_empty() {
        p.line(Role::Text, &format!("    {}", run.detail));
    }
    if let Some(void) = &run.void {
        p.line(Role::Bad, &format!("    void, it proves nothing: {void}"));
    }
    for wrong in &run.wrong {
        p.line(Role::Bad, &format!("    not as expected: {wrong}"));
    }
    if let Some(kept) = kept {
        p.line(Role::Dim, &format!("    recording {}", kept.display()));
    }
}
