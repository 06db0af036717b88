//! `redial find`: the ledger's row and the server's own word, side by side.

use super::args::FindArgs;
use super::connect::{check_request_id, open};
use super::json::{document, raw_value};
use super::open::{ledger_error, ledger_remarks, open_ledger, state_role, verdict_role};
use super::plain::{Plain, Role, print_raw};
use super::report::{Done, Failure, Witness};
use super::rows::RowJson;
use crate::error::{Error, Exit};
use crate::inspect::Inspector;
use crate::inspect::look::Looked;
use crate::inspect::request::Request;
use crate::judge::{Pairing, Verdict};
use crate::time::{Time, span};
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
struct Doc {
    schema: &'static str,
    request_id: String,
    state: String,
    strength: &'static str,
    why: String,
    ledger: Option<RowJson>,
    server: Option<Box<RawValue>>,
    server_why: Option<String>,
    pairing: &'static str,
    pairing_why: String,
    verdict: Vec<String>,
    next: String,
    evidence: Vec<EvidenceJson>,
    remarks: Vec<String>,
    #[serde(flatten)]
    witness: Witness,
}

#[derive(Serialize)]
struct EvidenceJson {
    source: &'static str,
    at: Option<String>,
    strength: Option<&'static str>,
    text: String,
}

pub async fn run(a: FindArgs) -> Done {
    check_request_id(&a.request_id)?;
    let endpoint = a.endpoint.endpoint()?;
    let (ledger, rules) = open_ledger(&a.ledger)?;
    if endpoint.is_none() && ledger.is_none() {
        return Err(Error::usage("find needs somebody to ask")
            .hint("give --ledger FILE, --http URL, or a server to start: -- COMMAND ARGS…")
            .into());
    }
    // An unreadable ledger ends this before a server is started for it.
    if let Some(l) = &ledger {
        l.read_async(|_| Ok(())).await.map_err(ledger_error)?;
    }
    let mut inspector = Inspector::new(ledger, None, rules);
    inspector.look_up = a.lookup.clone();
    let mut not_ready: Option<Failure> = None;
    if let Some(endpoint) = endpoint {
        match open(endpoint, &a.endpoint, 60.0).await {
            Ok(client) => inspector.client = Some(client),
            // The ledger's word is worth having without the server's.
            Err(failure) if inspector.ledger.is_some() => not_ready = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    let looked = match &inspector.client {
        Some(_) => Some(inspector.look_up(&a.request_id).await?),
        None => None,
    };
    let request = inspector.request(&a.request_id, None).await;
    let witness = match (&inspector.client, &not_ready) {
        (Some(c), _) => Witness::of(c, None),
        (None, Some(f)) => f.witness.clone().unwrap_or_default(),
        (None, None) => Witness::default(),
    };
    if let Some(c) = &inspector.client {
        c.close().await;
    }
    let server_why = match (&looked, &not_ready) {
        (Some(l), _) => l.why.clone(),
        (None, Some(f)) => Some(f.error.what.clone()),
        (None, None) => Some("no endpoint was asked".into()),
    };
    let answer = looked.as_ref().and_then(|l| l.answer.as_ref()).map(|l| l.answer.clone());
    let exit = exit_of(&request, looked.as_ref(), not_ready.as_ref());
    if a.json {
        let now = request.at;
        let doc = Doc {
            schema: "redial/find@1",
            request_id: a.request_id,
            state: request.line.judged.state.word().to_owned(),
            strength: request.line.judged.strength.word(),
            why: request.line.judged.why.clone(),
            ledger: request.facts.row.as_ref().map(|_| RowJson::new(&request.line, now)),
            server: answer.as_deref().and_then(raw_value),
            server_why,
            pairing: request.paired.pairing().word(),
            pairing_why: request.paired.why(),
            verdict: request.line.verdict_words(),
            next: request.line.finding.next.clone(),
            evidence: request
                .line
                .finding
                .evidence
                .iter()
                .map(|e| EvidenceJson {
                    source: e.source,
                    at: e.at.map(Time::rfc3339),
                    strength: e.strength.map(|s| s.word()),
                    text: e.text.clone(),
                })
                .collect(),
            remarks: ledger_remarks(request.how.as_ref().and_then(|h| h.as_ref().ok())),
            witness,
        };
        print_raw(&document(&doc)).ok();
    } else {
        let mut p = Plain::default();
        plain(&mut p, &a.request_id, &request, answer.as_deref(), server_why.as_deref());
        if not_ready.is_some() {
            witness.plain(&mut p);
        }
        p.print().ok();
    }
    Ok(exit)
}

fn exit_of(r: &Request, looked: Option<&Looked>, not_ready: Option<&Failure>) -> Exit {
    if let Some(f) = not_ready {
        return f.error.exit;
    }
    let verdicts = &r.line.finding.verdicts;
    let server_knows = looked
        .and_then(|l| l.answer.as_ref())
        .and_then(|l| l.status.as_deref())
        .is_some_and(|s| s != "unknown");
    let known = r.facts.row.is_some() || server_knows;
    if r.paired.pairing() == Pairing::Contradicted
        || verdicts.contains(&Verdict::EndpointMismatch)
        || !known
    {
        Exit::Found
    } else {
        Exit::Good
    }
}

/// What is known of a request, for people; `reissue` shows the same before it asks.
pub fn plain(p: &mut Plain, id: &str, r: &Request, answer: Option<&str>, server_why: Option<&str>) {
    let line = &r.line;
    p.line(Role::Strong, id);
    let state = &line.judged.state;
    p.field(
        "state",
        state_role(state),
        &format!("{} {} ({})", state.glyph(), state.word(), line.judged.strength.word()),
    );
    p.field("why", Role::Text, &line.judged.why);
    if !line.label.is_empty() {
        p.field("about", Role::Text, &line.label);
    }
    if let Some(row) = &r.facts.row {
        let owner = row.owner.as_deref().unwrap_or("nobody named");
        let claimed = match row.claimed_at {
            Some(t) => format!("claimed {} ({} ago) by {owner}", t.rfc3339(), span(t.age_at(r.at))),
            None => format!("owner {owner}"),
        };
        p.field("ledger", Role::Text, &format!("stored status {}, {claimed}", row.status));
        p.field("effects", Role::Text, &format!("{} ({})", row.effects.len(), r.noun));
        if let Some(result) = &row.result {
            p.field("result", Role::Text, result);
        }
    } else if r.how.is_some() {
        p.field("ledger", Role::Dim, "no row");
    }
    match (answer, server_why) {
        (Some(a), _) => p.field("server says", Role::Text, a),
        (None, Some(why)) => p.field("server says", Role::Dim, &format!("nothing: {why}")),
        (None, None) => {}
    }
    if r.how.is_some() && answer.is_some() {
        p.field(
            "pairing",
            Role::Text,
            &format!("{}: {}", r.paired.pairing().word(), r.paired.why()),
        );
    }
    let words: Vec<&str> = line.finding.verdicts.iter().map(|v| v.words()).collect();
    p.field(
        "verdict",
        line.finding.verdicts.first().map_or(Role::Text, verdict_role),
        &words.join(", "),
    );
    for e in &line.finding.evidence {
        let at = e.at.map(|t| format!("{} ", t.clock())).unwrap_or_default();
        let strength = e.strength.map(|s| format!(" ({})", s.word())).unwrap_or_default();
        p.field("", Role::Dim, &format!("{at}{}: {}{strength}", e.source, e.text));
    }
    for remark in ledger_remarks(r.how.as_ref().and_then(|h| h.as_ref().ok())) {
        p.field("note", Role::Warn, &remark);
    }
    p.field("next", Role::Strong, &line.finding.next);
}
