//! What a person asked for: details, look-ups, what a repeat would be, the repeat itself, counting. The one
//! place of the screen from which a `tools/call` leaves, and it goes through `inspect`'s gate again.

use super::{Hands, texts};
use crate::error::{Error, Result};
use crate::inspect::reissue::{Prepared, Wish};
use crate::inspect::release::{Agreed, Release, Released};
use crate::inspect::request::Request;
use crate::journal::Outcome;
use crate::json::key::Spelling;
use crate::json::raw;
use crate::judge::Ask;
use crate::judge::agreement::{Terms, Total};
use crate::judge::gate::Decision;
use crate::model::arguments::{Candidate, Source, with_request_id};
use crate::model::history::Step;
use crate::model::lookup;
use crate::shell;
use crate::time::Time;
use crate::tui::data::{
    Agrees, Anew, Check, Detail, Gate, LookUp, Plan, Question, Reissue, Report,
};
use crate::tui::dialog::MOVING;
use crate::tui::msg::{Effect, Msg};
use crate::words::next_step;
use std::time::Duration;
use tokio::sync::watch;

/// The selection has to rest so long before its details are read: a held key reads once.
const REST: Duration = Duration::from_millis(40);

/// Reads the details of whatever is selected.
pub async fn details(hands: Hands, mut selected: watch::Receiver<Option<String>>) {
    while selected.changed().await.is_ok() {
        tokio::time::sleep(REST).await;
        let Some(id) = selected.borrow_and_update().clone() else { continue };
        let request = hands.inspector.request(&id, None).await;
        let detail = detail(&hands, &id, request);
        hands.tell(Msg::Detail { request_id: id, detail: Some(Box::new(detail)) }).await;
    }
}

fn detail(hands: &Hands, id: &str, request: Request) -> Detail {
    let look_up = &hands.inspector.look_up;
    let client = hands.inspector.client.as_ref();
    let looked = client.and_then(|c| c.journal().read(|s| lookup::newest(s, look_up, id)));
    let (seen, looked) = (hands.inspector.seen(), looked.as_ref());
    let mut detail = detailed(request, seen.histories.of(id), looked);
    let (dropped, first) = (seen.histories.dropped(id), detail.history.first().map(|(at, _)| *at));
    if let (Some(at), 1..) = (first, dropped) {
        detail.history.insert(1, (at, format!("{dropped} changes after this are not kept")));
    }
    detail
}

/// What is shown of a request, with what was seen happening to its row and what the server last said of it.
pub fn detailed(request: Request, history: &[Step], looked: Option<&lookup::LookUp>) -> Detail {
    let looked_up = looked.map(|l| look_up_line(l, &request));
    Detail {
        history: history.iter().map(|s| (s.at, s.change.words())).collect(),
        hash: request.hash.check,
        hash_why: request.hash.how,
        looked_up,
        line: request.line,
    }
}

fn look_up_line(l: &lookup::LookUp, request: &Request) -> LookUp {
    let status = l.status.clone().unwrap_or_else(|| "something without a status".into());
    let stored = request.facts.row.as_ref().map(|r| r.status.as_str());
    // Of several rows nobody can say which one it was about.
    let meant = request.facts.row.as_ref().is_none_or(crate::ledger::Row::is_meant);
    let agrees = match (stored, status.as_str()) {
        // The newest word wins, and this one no longer holds.
        _ if l.status.is_some() && meant && request.facts.server_says.is_none() => Agrees::Outdated,
        _ if !meant => Agrees::Unknown,
        // Without a ledger there is nothing to agree with.
        _ if request.how.is_none() => Agrees::Unknown,
        (Some(stored), said) if stored == said => Agrees::Same,
        (None, "unknown") => Agrees::Same,
        (Some("running"), "abandoned") => Agrees::Running,
        (Some(_), "unknown") | (None, "done") => Agrees::Denied,
        _ => Agrees::Unknown,
    };
    LookUp { at: l.at, status, answer: l.answer.clone(), agrees }
}

/// Does one thing and tells what came of it.
pub async fn act(hands: Hands, effect: Effect) {
    match effect {
        Effect::Find { request_id } => {
            let answer = find(&hands, &request_id).await;
            hands.tell(Msg::LookedUp { request_id, answer }).await;
        }
        Effect::Plan { request_id, seq } => {
            let plan = plan(&hands, &request_id).await.map(Box::new).map_err(|e| e.to_string());
            hands.tell(Msg::Planned { request_id, seq, plan }).await;
        }
        Effect::Check { request_id, seq, tool, args } => {
            let check = Box::new(check(&hands, &request_id, &tool, &args).await);
            hands.tell(Msg::Checked { request_id, seq, check }).await;
        }
        Effect::Reissue(call) => {
            let (done, request_id) = (reissue(&hands, &call).await, call.request_id);
            hands
                .tell(match done {
                    Ok(Came::Report(report)) => {
                        Msg::Reissued { request_id, report: Box::new(Ok(*report)) }
                    }
                    Ok(Came::Anew(anew)) => Msg::Changed { request_id, anew },
                    Err(e) => Msg::Reissued { request_id, report: Box::new(Err(e.to_string())) },
                })
                .await;
        }
        Effect::GiveUp { call, tell } => {
            if let Some(client) = &hands.inspector.client {
                if tell { client.cancel(call) } else { client.stop_waiting(call) }
            }
        }
        Effect::Reconnect => {
            if let Some(client) = &hands.inspector.client {
                client.reconnect();
            }
        }
        Effect::Json { request_id, call } => {
            let documents = texts::documents(&hands, &request_id, call).await;
            hands.tell(Msg::Documents(documents)).await;
        }
        Effect::Copy { what, request_id } => {
            let text = texts::copy(&hands, what, &request_id).await;
            hands.tell(texts::kept(what.words().to_owned(), text)).await;
        }
        Effect::Keep { what, text } => hands.tell(texts::kept(what, Ok(text))).await,
        // Not of this kind; `serve` keeps them.
        Effect::LoadWindow(_)
        | Effect::LoadDetail { .. }
        | Effect::Timeline(_)
        | Effect::Audit
        | Effect::Answer { .. }
        | Effect::Verify { .. }
        | Effect::Quit => {}
    }
}

async fn find(hands: &Hands, id: &str) -> Result<LookUp, String> {
    let looked = hands.inspector.look_up(id).await.map_err(|e| e.to_string())?;
    let request = hands.inspector.request(id, None).await;
    hands.tell_pairing(&request.paired).await;
    match looked.answer {
        Some(l) => Ok(look_up_line(&l, &request)),
        None => Err(looked.why.unwrap_or_else(|| "it gave no answer".into())),
    }
}

/// The gate's decision as the dialog asks it.
fn gate(d: &Decision) -> Gate {
    let question = match (&d.refused, d.ask) {
        (Some(_), _) => Question::Refused,
        (None, Ask::None) => Question::None,
        (None, Ask::Preview) => Question::Preview,
        (None, Ask::Ask) => Question::Ask,
        (None, Ask::Type) => Question::Type,
    };
    let reasons = match &d.refused {
        Some(r) => vec![r.why().to_owned()],
        None => d.reasons.clone(),
    };
    Gate { question, reasons, word: shell::spoken(&d.confirm) }
}

fn wish(id: &str, tool: Option<&str>, given: Option<Candidate>) -> Wish {
    Wish {
        request_id: Some(id.to_owned()),
        tool: tool.map(str::to_owned),
        candidates: given.into_iter().collect(),
        first_delivery: false,
        limit_s: None,
    }
}

/// What the dialog holds: arguments known here, or a person's own. Those come from the agent's log: they were
/// sent once, nobody knows when.
fn given(args: &str, seen: &Request) -> Candidate {
    // Where a recording has them its call is among the facts, with its time.
    let known = seen.candidates.iter().any(|c| c.args == args);
    let source = match known {
        true => Source::Seen,
        false => Source::Transcript("what was pasted".into()),
    };
    Candidate { args: args.to_owned(), tool: None, source }
}

/// What a repeat would be. Where the arguments can't be told, a person may give them.
async fn plan(hands: &Hands, id: &str) -> Result<Plan> {
    let (prepared, unknown) = match hands.inspector.prepare(&wish(id, None, None)).await {
        Ok(prepared) => (prepared, None),
        Err(why) => {
            // The id is put in as the tool takes it. When this fails too, it isn't for want of arguments.
            let bare = Candidate { args: "{}".into(), tool: None, source: Source::Given };
            match hands.inspector.prepare(&wish(id, None, Some(bare))).await {
                Ok(prepared) => (prepared, Some(why)),
                Err(e) => return Err(e),
            }
        }
    };
    hands.tell_pairing(&prepared.before.paired).await;
    let bare = unknown.is_some();
    let mut plan = planned(prepared, unknown.map(|why| why.what));
    if bare {
        // As every later look at it judges them.
        plan.check = check(hands, id, &plan.tool, &plan.args).await;
    }
    Ok(plan)
}

/// What the dialog tells of a call that is ready; `unknown`: why nobody knows its arguments.
pub fn planned(p: Prepared, unknown: Option<String>) -> Plan {
    let not_looked = p.looked.as_ref().and_then(|l| l.why.clone());
    let mut check = checked(&p.before, &p.decision, (p.terms, p.since));
    check.situation.extend(not_looked.map(|why| format!("not looked up: {why}")));
    Plan {
        tool: p.tool,
        args: p.args,
        known: unknown.is_none(),
        source: match unknown {
            Some(why) => {
                let why = why.trim_end_matches("; nothing was sent");
                format!("{why}: paste or type them, the hash tells when they are right")
            }
            None => p.source.words(),
        },
        check,
    }
}

fn checked(before: &Request, decision: &Decision, (terms, since): (Terms, Time)) -> Check {
    Check {
        hash: before.hash.check,
        hash_why: before.hash.how.clone(),
        gate: gate(decision),
        situation: situation(before, decision, &terms),
        terms: Box::new(terms),
        since,
    }
}

/// What is known, a line each: what the gate tells, and who gets the call.
fn situation(before: &Request, decision: &Decision, terms: &Terms) -> Vec<String> {
    let mut lines = decision.tells.clone();
    let twice = lines.pop();
    if let Some(n) = before.effects_total {
        lines.push(format!("effects in all: {n}"));
        if terms.total == Total::Moving {
            lines.push(MOVING.into());
        }
    }
    let row = before.facts.row.as_ref();
    if let Some(owner) = row.and_then(|r| r.owner.as_deref()) {
        lines.push(format!("owner: {owner}"));
    }
    if before.how.is_some() {
        lines.push(format!("pairing: {}", before.paired.pairing().word()));
    }
    let name = terms.server.as_ref().map(|(name, version)| format!("server: {name} {version}"));
    lines.extend(name);
    lines.extend(terms.definition.as_ref().map(|d| format!("hints: {}", d.hint_words())));
    lines.extend(twice);
    lines
}

/// Arguments that can't be sent, whatever a person says.
fn unfit(id: &str, args: &str) -> Option<String> {
    if raw::members(args).is_none() {
        return Some("the arguments are not a JSON object".into());
    }
    match with_request_id(args, id, Spelling::Text) {
        None => Some(format!("the arguments hold another request_id than {id}")),
        Some(whole) if whole != args => {
            Some(format!("the arguments hold no \"request_id\": {}", raw::quote(id)))
        }
        Some(_) => None,
    }
}

async fn check(hands: &Hands, id: &str, tool: &str, args: &str) -> Check {
    let before = hands.inspector.request(id, Some(args)).await;
    let wish = wish(id, Some(tool), Some(given(args, &before)));
    let decision = hands.inspector.decide(&wish, tool, &before);
    let terms = hands.inspector.terms(tool, args, &before, &decision);
    let check = checked(&before, &decision, terms);
    match unfit(id, args) {
        None => check,
        Some(why) => {
            let gate =
                Gate { question: Question::Refused, reasons: vec![why.clone()], word: id.into() };
            Check { hash: crate::judge::HashCheck::NotChecked, hash_why: why, gate, ..check }
        }
    }
}

/// What came of an answer.
enum Came {
    Report(Box<Report>),
    Anew(Box<Anew>),
}

/// Sends it, once, unless anything in the question is another thing by now.
async fn reissue(hands: &Hands, call: &Reissue) -> Result<Came> {
    let Reissue { request_id: id, args, terms, word, .. } = call;
    if let Some(why) = unfit(id, args) {
        return Err(Error::usage(why));
    }
    let seen = hands.inspector.request(id, Some(args)).await;
    let given = given(args, &seen);
    let source = given.source.clone();
    let agreed = Agreed {
        wish: &wish(id, Some(&call.tool), Some(given)),
        source: &source,
        terms,
        confirmed: Some(word),
        shown: true,
        looked: true,
    };
    match hands.inspector.release(&agreed).await? {
        Release::Sent(released) => {
            hands.tell_pairing(&released.after.paired).await;
            let dead = released.call.outcome() == Some(Outcome::Unknown);
            let client = hands.inspector.client.as_ref().filter(|_| dead);
            let last_words = client.map(|c| {
                c.journal()
                    .read(|s| s.generation_n(released.call.generation).map(|g| g.stderr.last(5)))
                    .unwrap_or_default()
            });
            let report = report(&released, last_words.unwrap_or_default());
            Ok(Came::Report(Box::new(report)))
        }
        Release::Changed(anew) => {
            hands.tell_pairing(&anew.prepared.before.paired).await;
            let changes = anew.changes.into_iter().map(|c| c.words).collect();
            let plan = Box::new(planned(anew.prepared, None));
            Ok(Came::Anew(Box::new(Anew { plan, changes })))
        }
    }
}

/// What is shown of a call that was sent; `stderr`: the last words of a server that did not answer.
pub fn report(r: &Released, stderr: Vec<String>) -> Report {
    let (before, after) = (&r.before, &r.after);
    let settled = r.call.settled.as_ref();
    let result = settled.and_then(|s| s.result.as_deref());
    let text = result.map(crate::journal::call::answer_shown).filter(|t| !t.is_empty());
    let own = after.facts.has_effects_table.then(|| (before.effects(), after.effects()));
    Report {
        outcome: r.call.word().to_owned(),
        why: settled.map(|s| s.why.clone()).unwrap_or_default(),
        answer_status: settled.and_then(|s| s.answer_status).map(|a| a.word().to_owned()),
        replayed: r.replayed,
        state_after: after.line.judged.state.word().to_owned(),
        effects: own,
        effects_total: before.effects_total.zip(after.effects_total),
        elapsed_s: settled.map(|s| r.call.sent_at.age_at(s.at)).unwrap_or_default(),
        answer: text.or_else(|| settled.and_then(|s| s.error.clone())).unwrap_or_default(),
        next: next_step(&after.line.finding.next, Time::now()),
        stderr,
    }
}
