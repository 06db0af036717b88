//! `redial reissue`: the same request again, with the same request_id, behind the gate.

use super::args::ReissueArgs;
use super::connect::{arguments_object, check_request_id, known_tool, open};
use super::find;
use super::gate::{Answer, ask};
use super::json::document;
use super::open::{ledger_error, open_ledger};
use super::plain::{Plain, Role, print_raw};
use super::report::{CallJson, Done, Failure, Witness, exit_of};
use crate::error::{Error, Exit, Result};
use crate::inspect::Inspector;
use crate::inspect::reissue::{Prepared, Released, Wish};
use crate::inspect::request::hash_matches;
use crate::model::arguments::{Candidate, Source, from_text};
use serde::Serialize;
use std::path::Path;

/// What a repeat adds to a call's report. `redial call` with a ledger reports it too.
#[derive(Serialize)]
pub struct RepeatJson {
    pub request_id: Option<String>,
    pub args_source: String,
    pub hash_matches: Option<bool>,
    pub hash_why: String,
    pub replayed: Option<bool>,
    pub state_before: String,
    pub state_after: String,
    pub pairing: &'static str,
    pub effects_before: Option<u64>,
    pub effects_after: Option<u64>,
    pub effects_total_before: Option<u64>,
    pub effects_total_after: Option<u64>,
    pub verdict: Vec<String>,
    pub next: String,
    pub gate: GateJson,
}

#[derive(Serialize)]
pub struct GateJson {
    ask: &'static str,
    refused: Option<String>,
    confirm: String,
    reasons: Vec<String>,
}

#[derive(Serialize)]
struct Doc {
    schema: &'static str,
    #[serde(flatten)]
    call: CallJson,
    #[serde(flatten)]
    repeat: RepeatJson,
}

pub async fn run(a: ReissueArgs) -> Done {
    check_request_id(&a.request_id)?;
    let candidates = candidates(&a)?;
    let endpoint = a.endpoint.required()?;
    let (ledger, rules) = open_ledger(&a.ledger)?;
    if let Some(l) = &ledger {
        l.read_async(|_| Ok(())).await.map_err(ledger_error)?;
    }
    let client = open(endpoint, &a.endpoint, a.timeout).await?;
    let mut inspector = Inspector::new(ledger, Some(client.clone()), rules);
    inspector.look_up = a.lookup.clone();
    inspector.read_only = a.read_only.read_only;
    let done = reissue(&inspector, &a, candidates).await;
    let done = done.map_err(|error| Failure { error, witness: Some(Witness::of(&client, None)) });
    client.close().await;
    done
}

async fn reissue(
    inspector: &Inspector,
    a: &ReissueArgs,
    candidates: Vec<Candidate>,
) -> Result<Exit> {
    if let Some(name) = &a.tool {
        known_tool(&inspector.client()?.tools().await?, name)?;
    }
    let wish = Wish {
        request_id: Some(a.request_id.clone()),
        tool: a.tool.clone(),
        candidates,
        first_delivery: false,
    };
    let prepared = inspector.prepare(&wish).await?;
    run_prepared(
        inspector,
        &prepared,
        a.confirm.as_deref(),
        a.timeout,
        a.json,
        "redial/reissue@1",
        Some(&a.request_id),
    )
    .await
}

/// Asks what the gate asks, sends, and reports before and after. `call` with a ledger ends here too.
pub async fn run_prepared(
    inspector: &Inspector,
    prepared: &Prepared,
    confirm: Option<&str>,
    limit_s: f64,
    json: bool,
    schema: &'static str,
    id: Option<&str>,
) -> Result<Exit> {
    let client = inspector.client()?;
    let confirmed = match ask(prepared, confirm, json, id) {
        Answer::Send(confirmed) => confirmed,
        Answer::Stop(error) => {
            return Ok(stop(prepared, &error, Witness::of(client, None), json, schema, id));
        }
    };
    let released = inspector.release(prepared, confirmed.as_deref(), Some(limit_s)).await?;
    let call = CallJson::new(&released.call, Witness::of(client, Some(released.call.generation)));
    if json {
        print_raw(&document(&Doc { schema, call, repeat: repeat(prepared, Some(&released), id) }))
            .ok();
    } else {
        let mut p = Plain::default();
        call.plain(&mut p);
        after(&mut p, prepared, &released);
        p.print().ok();
    }
    Ok(exit_of(&released.call, prepared.reads_only))
}

/// The report of a call that the gate stopped.
fn stop(
    p: &Prepared,
    error: &Error,
    witness: Witness,
    json: bool,
    schema: &'static str,
    id: Option<&str>,
) -> Exit {
    if json {
        let call = CallJson::stopped(&p.tool, &p.args, error.what.clone(), witness);
        print_raw(&document(&Doc { schema, call, repeat: repeat(p, None, id) })).ok();
    }
    super::plain::complain(&error.to_string());
    error.exit
}

fn repeat(p: &Prepared, r: Option<&Released>, id: Option<&str>) -> RepeatJson {
    let (before, after) = (&p.before, r.map_or(&p.before, |r| &r.after));
    let own = |x: &crate::inspect::request::Request| x.facts.has_effects_table.then(|| x.effects());
    RepeatJson {
        request_id: id.map(str::to_owned),
        args_source: p.source.words(),
        hash_matches: hash_matches(before.hash.check),
        hash_why: before.hash.how.clone(),
        replayed: r.and_then(|r| r.replayed),
        state_before: before.line.judged.state.word().to_owned(),
        state_after: after.line.judged.state.word().to_owned(),
        pairing: after.paired.pairing().word(),
        effects_before: own(before),
        effects_after: own(after),
        effects_total_before: before.effects_total,
        effects_total_after: after.effects_total,
        verdict: after.line.verdict_words(),
        next: after.line.finding.next.clone(),
        gate: GateJson {
            ask: p.decision.ask.word(),
            refused: p.decision.refused.as_ref().map(|r| r.why().to_owned()),
            confirm: p.decision.confirm.clone(),
            reasons: p.decision.reasons.clone(),
        },
    }
}

/// The call and what it changed, for people.
pub fn outcome(p: &mut Plain, prepared: &Prepared, r: &Released, witness: &Witness) {
    CallJson::new(&r.call, witness.clone()).plain(p);
    after(p, prepared, r);
}

/// What the repeat changed, for people.
fn after(p: &mut Plain, prepared: &Prepared, r: &Released) {
    let (b, a) = (&prepared.before, &r.after);
    if a.facts.has_effects_table {
        let total = |x: Option<u64>| x.map_or_else(|| "?".into(), |n| n.to_string());
        p.field(
            "effects",
            if a.effects() > 1 { Role::Bad } else { Role::Strong },
            &format!(
                "of this request {} → {}, all {} {} → {}",
                b.effects(),
                a.effects(),
                a.noun,
                total(b.effects_total),
                total(a.effects_total)
            ),
        );
    }
    if let Some(replayed) = r.replayed {
        let words = if replayed {
            "yes: the stored result was returned, nothing ran"
        } else {
            "no: the work ran now"
        };
        p.field("replayed", Role::Text, words);
    }
    if a.how.is_some() {
        let state = &a.line.judged.state;
        p.field(
            "state",
            super::open::state_role(state),
            &format!("{} {}", state.glyph(), state.word()),
        );
        p.field(
            "pairing",
            Role::Dim,
            &format!("{}: {}", a.paired.pairing().word(), a.paired.why()),
        );
    }
    p.field("next", Role::Strong, &a.line.finding.next);
}

/// What is known before anything is asked, for people.
pub fn before(p: &mut Plain, prepared: &Prepared, id: Option<&str>) {
    if let Some(id) = id {
        let looked = prepared.looked.as_ref();
        let answer = looked.and_then(|l| l.answer.as_ref()).map(|l| l.answer.as_str());
        find::plain(p, id, &prepared.before, answer, looked.and_then(|l| l.why.as_deref()));
        p.gap();
    }
    p.field("will send", Role::Strong, &format!("{} {}", prepared.tool, prepared.args));
    p.field("arguments", Role::Text, &prepared.source.words());
    p.field("hash", Role::Text, &prepared.before.hash.how);
}

fn candidates(a: &ReissueArgs) -> Result<Vec<Candidate>> {
    let given = |args: String, source: Source, from: &str| -> Result<Vec<Candidate>> {
        arguments_object(&args, from)?;
        Ok(vec![Candidate { args, tool: None, source }])
    };
    if let Some(args) = &a.args {
        return given(args.clone(), Source::Given, "--args");
    }
    if let Some(path) = &a.args_file {
        let name = path.display().to_string();
        return given(read(path)?, Source::File(name.clone()), &name);
    }
    let mut found = Vec::new();
    for path in &a.args_from {
        let name = path.display().to_string();
        found.extend(from_text(&read(path)?, &name, &a.request_id, &a.lookup));
    }
    if found.is_empty() && !a.args_from.is_empty() {
        let names: Vec<String> = a.args_from.iter().map(|p| p.display().to_string()).collect();
        return Err(Error::usage(format!(
            "no arguments with request_id {} in {}; nothing was sent",
            a.request_id,
            names.join(", ")
        ))
        .hint("any JSON, JSON Lines or transcript will do, if the call's arguments are in it"));
    }
    Ok(found)
}

/// A file's text; bytes that are no UTF-8 are replaced, since a transcript may hold anything.
fn read(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).map_err(|e| {
        Error::usage(format!("{} can't be read: {e}; nothing was sent", path.display()))
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
