//! `redial reissue`: the same request again, with the same request_id, behind the gate.

use super::args::{OneCall, ReissueArgs};
use super::connect::{
    ARGUMENTS, Opened, TRANSCRIPT, arguments_object, check_request_id, known_tool, text_of,
};
use super::find;
use super::gate::{Answer, ask, can_ask};
use super::interrupt::{Interrupt, watched};
use super::json::document;
use super::plain::{Plain, Role, complain, print_raw};
use super::report::{CallJson, Done, Witness, exit_of};
use crate::error::{Error, Exit, Result};
use crate::inspect::Inspector;
use crate::inspect::recorded::{self, Recorded};
use crate::inspect::reissue::{Prepared, Wish};
use crate::inspect::release::{Release, Released};
use crate::inspect::request::hash_matches;
use crate::journal::Outcome;
use crate::json::key::Spelling;
use crate::judge::Pairing;
use crate::judge::agreement::{Change, Terms, row_version};
use crate::model::arguments::{Candidate, Source, from_text, with_request_id};
use crate::model::board::count;
use crate::recording::Recording;
use crate::text::ends;
use crate::time::Time;
use crate::words::next_step;
use serde::Serialize;

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
    /// Names the request's part of the ledger as it was right before; `--if-row` takes it.
    pub row_version: Option<String>,
    /// What was another thing than when it was looked at, and stopped it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
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

pub async fn run(a: ReissueArgs, config: &crate::config::Config) -> Done {
    check_request_id(&a.request_id)?;
    let recording =
        a.recording.as_ref().map(|named| Recording::open_for(named, &a.request_id)).transpose()?;
    let candidates = candidates(&a, recording.as_ref())?;
    let calling = &a.one.calling;
    let mut opened = Opened::new(calling, config, |usual| usual).await?;
    // Not for its arguments alone: it has seen what became of the agent's calls and of their server.
    opened.inspector.recording = recording.map(Recorded::new);
    let wish = Wish {
        request_id: Some(a.request_id.clone()),
        tool: a.tool.clone(),
        candidates,
        first_delivery: false,
        limit_s: Some(calling.call_limit_s()),
    };
    let work = async {
        if let Some(name) = &a.tool {
            known_tool(&opened.client.tools().await?, name)?;
        }
        run_prepared(&opened.inspector, &wish, &Run::new(&a.one, "redial/reissue@1", &opened)).await
    };
    watched(&opened.client, &opened.interrupt, &calling.lookup, work).await
}

/// How a prepared call is to be released and reported.
pub struct Run<'a> {
    /// `--confirm`.
    pub confirm: Option<&'a str>,
    /// `--if-row`: the row has to be this version.
    pub if_row: Option<&'a str>,
    /// One JSON document, and no question.
    pub json: bool,
    /// The document's schema.
    pub schema: &'static str,
    /// The signals.
    pub interrupt: &'a Interrupt,
}

impl<'a> Run<'a> {
    /// As the command line says.
    pub fn new(one: &'a OneCall, schema: &'static str, opened: &'a Opened) -> Run<'a> {
        let (confirm, if_row, json) = (one.confirm.as_deref(), one.if_row.as_deref(), one.json);
        Run { confirm, if_row, json, schema, interrupt: &opened.interrupt }
    }
}

/// Looks, asks what the gate asks, sends, and reports before and after. `call` with a ledger ends here too.
///
/// What was shown is what is agreed to: where anything is another thing by the time of sending, nothing is sent, and
/// the question is asked anew with what changed.
pub async fn run_prepared(inspector: &Inspector, wish: &Wish, run: &Run<'_>) -> Result<Exit> {
    let mut prepared = inspector.prepare(wish).await?;
    let mut changes: Vec<Change> = Vec::new();
    let released = loop {
        if let Some(error) = another_row(&prepared, run) {
            return not_sent(inspector, &prepared, &changes, &error, run);
        }
        let (confirmed, shown) = match ask(&prepared, &changes, run).await {
            Answer::Send { confirmed, shown } => (confirmed, shown),
            Answer::Stop(error) => {
                return not_sent(inspector, &prepared, &changes, &error, run);
            }
        };
        if let Some(warning) = prepared.warning.take() {
            complain(&warning);
        }
        if !shown && !can_ask(run) {
            // Prepared in this very run and shown to nobody.
            break match inspector.carry_out(&prepared, confirmed.as_deref()).await {
                Ok(released) => released,
                Err(e) if e.exit == Exit::Gate => {
                    return not_sent(inspector, &prepared, &changes, &e, run);
                }
                Err(e) => return Err(e),
            };
        }
        match inspector.release(&prepared.agreed(confirmed.as_deref(), shown)).await? {
            Release::Sent(released) => break *released,
            Release::Changed(anew) => (prepared, changes) = (anew.prepared, anew.changes),
        }
    };
    let prepared = &prepared;
    let (client, schema) = (inspector.client()?, run.schema);
    let id = wish.request_id.as_deref();
    let call =
        CallJson::new(&released.call, Witness::after(client, Some(released.call.generation)).await);
    if let Some(name) = run.interrupt.seen() {
        complain(&format!("interrupted ({name}); what became of the call:"));
    }
    if run.json {
        let repeat = repeat(prepared, Some(&released), id);
        print_raw(&document(&Doc { schema, call, repeat }));
    } else {
        let mut p = Plain::stdout();
        if !prepared.wish.first_delivery {
            sends(&mut p, "sent", prepared);
        }
        call.plain(&mut p);
        after(&mut p, &released);
        p.print();
    }
    if let Some(n) = released.twice() {
        complain(&twice(n, &released.after.noun));
        return Ok(Exit::Found);
    }
    // Answered well, and by a server that keeps another ledger: what was asked about is not what was done.
    if released.after.paired.pairing() == Pairing::Contradicted {
        return Ok(Exit::Found);
    }
    Ok(exit_of(&released.call, prepared.reads_only))
}

/// More than one effect of a request, in words.
pub fn twice(n: u64, noun: &str) -> String {
    format!("this request has {n} {noun} now: its work ran more than once")
}

/// The row is another one than `--if-row` names.
fn another_row(prepared: &Prepared, run: &Run<'_>) -> Option<Error> {
    let wanted = run.if_row?;
    let what = match prepared.terms.row_version() {
        Some(version) if version == wanted => return None,
        Some(version) => {
            format!("the row's version is {version} by now, and --if-row names {wanted:?}")
        }
        None => format!("the ledger can't be read now, and --if-row names {wanted:?}"),
    };
    let hint = "look at it again (redial find), and decide anew";
    Some(Error::new(Exit::Gate, format!("{what}; nothing was sent")).hint(hint))
}

/// Reports that nothing was sent, and what it would have been.
fn not_sent(
    inspector: &Inspector,
    prepared: &Prepared,
    changes: &[Change],
    error: &Error,
    run: &Run<'_>,
) -> Result<Exit> {
    let client = inspector.client()?;
    if run.json {
        let witness = Witness::of(client, None);
        let call = CallJson::failed(&prepared.tool, Some(&prepared.args), error, witness);
        let mut repeat = repeat(prepared, None, prepared.wish.request_id.as_deref());
        repeat.changed = changes.iter().map(|c| c.words.clone()).collect();
        print_raw(&document(&Doc { schema: run.schema, call, repeat }));
    } else {
        // Whoever decides on a confirmation has to see what it would be for.
        let mut p = Plain::stderr();
        sends(&mut p, "not sent", prepared);
        p.field("server", Role::Text, &client.name());
        p.complain();
    }
    complain(&error.to_string());
    Ok(error.exit)
}

/// The exact call, where its arguments come from, and how their hash compares.
fn sends(p: &mut Plain, name: &str, prepared: &Prepared) {
    p.field(name, Role::Strong, &format!("{} {}", prepared.tool, ends(&prepared.args)));
    p.field("arguments", Role::Text, &prepared.source.words());
    p.field("hash", Role::Text, &prepared.before.hash.how);
}

/// Before and after, as JSON.
pub fn repeat(p: &Prepared, r: Option<&Released>, id: Option<&str>) -> RepeatJson {
    let (before, after) = r.map_or((&p.before, &p.before), |r| (&r.before, &r.after));
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
        row_version: row_version(&before.facts),
        changed: Vec::new(),
        verdict: if id.is_some() { after.line.verdict_words() } else { Vec::new() },
        next: match (id, r) {
            (Some(_), _) => next_step(&after.line.finding.next, Time::now()),
            (None, Some(r)) => next_without_id(r).unwrap_or_default().to_owned(),
            (None, None) => String::new(),
        },
        gate: GateJson {
            ask: p.decision.ask.word(),
            refused: p.decision.refused.as_ref().map(|r| r.why().to_owned()),
            confirm: p.decision.confirm.clone(),
            reasons: p.decision.reasons.clone(),
        },
    }
}

/// The call and what it changed, for people.
pub fn outcome(p: &mut Plain, r: &Released, witness: &Witness) {
    CallJson::new(&r.call, witness.clone()).plain(p);
    after(p, r);
}

/// What the repeat changed, for people.
fn after(p: &mut Plain, r: &Released) {
    let (b, a) = (&r.before, &r.after);
    if a.facts.has_effects_table {
        let total = |x: Option<u64>| x.map_or_else(|| "?".into(), |n| n.to_string());
        let all = format!("{} → {}", total(b.effects_total), total(a.effects_total));
        let words = match a.facts.request_id.as_str() {
            "" => format!("all {} {all}", a.noun),
            _ => format!(
                "of this request {} → {}; all {} {all}",
                b.effects(),
                count(a.effects(), &a.noun),
                a.noun
            ),
        };
        p.field("effects", if a.effects() > 1 { Role::Bad } else { Role::Strong }, &words);
    }
    if let Some(replayed) = r.replayed {
        let words = if replayed {
            "yes: the stored result was returned, nothing ran"
        } else {
            "no: the work ran now"
        };
        p.field("replayed", Role::Text, words);
    }
    if a.facts.request_id.is_empty() {
        if let Some(next) = next_without_id(r) {
            p.field("next", Role::Strong, next);
        }
        return;
    }
    // Without a ledger nobody has looked: what was answered stands above.
    if a.how.is_some() {
        find::state(p, a);
    }
    if a.how.is_some() {
        p.field(
            "pairing",
            Role::Dim,
            &format!("{}: {}", a.paired.pairing().word(), a.paired.why()),
        );
    }
    p.field("next", Role::Strong, &next_step(&a.line.finding.next, Time::now()));
}

/// The next step of a call that no request_id names: no ledger can tell of it.
fn next_without_id(r: &Released) -> Option<&'static str> {
    (r.call.outcome() == Some(Outcome::Unknown)).then_some(if r.call.reads_only {
        "no answer: the tool says that it only reads, so it may be asked again"
    } else {
        "look for its effect by other means before anything is repeated: it has no request_id, so no ledger tells"
    })
}

/// Who gets the call, and what it says of the tool.
fn about(terms: &Terms) -> Vec<(&'static str, String)> {
    let server = terms.server.as_ref().map(|(name, version)| format!("{name} {version}"));
    let hints = terms.definition.as_ref().map(|d| format!("hints: {}", d.hint_words()));
    let server = server.map(|s| ("server", s));
    server.into_iter().chain(hints.map(|h| ("the tool", h))).collect()
}

/// What is known before anything is asked, for people.
pub fn before(p: &mut Plain, prepared: &Prepared, id: Option<&str>) {
    if let Some(id) = id {
        let looked = prepared.looked.as_ref();
        let answer = looked.and_then(|l| l.answer.as_ref()).map(|l| l.answer.as_str());
        find::plain(p, id, &prepared.before, answer, looked.and_then(|l| l.why.as_deref()));
        p.gap();
    }
    if prepared.before.facts.has_effects_table
        && let Some(n) = prepared.before.effects_total
    {
        p.field("in all", Role::Text, &count(n, &prepared.before.noun));
    }
    for (name, words) in about(&prepared.terms) {
        p.field(name, Role::Text, &words);
    }
    p.field("will send", Role::Strong, &format!("{} {}", prepared.tool, ends(&prepared.args)));
    p.field(
        "arguments",
        Role::Text,
        &format!("{}; hash: {}", prepared.source.words(), prepared.before.hash.how),
    );
}

fn candidates(a: &ReissueArgs, recording: Option<&Recording>) -> Result<Vec<Candidate>> {
    let given = |args: String, source: Source, from: &str| -> Result<Vec<Candidate>> {
        arguments_object(&args, from)?;
        if with_request_id(&args, &a.request_id, Spelling::Text).is_none() {
            return Err(Error::usage(format!(
                "the arguments hold another request_id than {}; nothing was sent",
                a.request_id
            ))
            .hint("a repeat keeps the request_id; a new one would be a new request"));
        }
        Ok(vec![Candidate { args, tool: None, source }])
    };
    if let Some(args) = &a.args {
        return given(args.clone(), Source::Given, "--args");
    }
    if let Some(path) = &a.args_file {
        let name = path.display().to_string();
        return given(text_of(path, ARGUMENTS)?, Source::File(name.clone()), &name);
    }
    if let Some(r) = recording {
        let found = recorded::candidates(r, &a.request_id, &a.one.calling.lookup);
        if found.is_empty() {
            return Err(Error::usage(format!(
                "no call with request_id {} is in the recording {}; nothing was sent",
                a.request_id,
                r.path().display()
            ))
            .hint("`redial show FILE` lists what is in it"));
        }
        return Ok(found);
    }
    let mut found = Vec::new();
    for path in &a.args_from {
        let name = path.display().to_string();
        found.extend(from_text(
            &text_of(path, TRANSCRIPT)?,
            &name,
            &a.request_id,
            &a.one.calling.lookup,
        ));
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
