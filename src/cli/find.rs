//! `redial find`: the ledger's row and the server's own word, side by side.

use super::args::FindArgs;
use super::connect::{check_request_id, open, settings};
use super::failure::ErrorJson;
use super::interrupt::{Interrupt, watched};
use super::json::{document, raw_value};
use super::open::{
    ledger_error, ledger_remarks, open_ledger, readable, remarks_plain, state_role, verdict_role,
};
use super::plain::{Plain, Role, print_raw};
use super::report::{Done, Witness, clip};
use super::rows::RowJson;
use crate::client::Client;
use crate::config::Config;
use crate::error::{Error, Exit, Result};
use crate::inspect::Inspector;
use crate::inspect::look::Looked;
use crate::inspect::request::Request;
use crate::journal::Outcome;
use crate::judge::agreement::row_version;
use crate::judge::{Evidence, Pairing, State, Strength, Verdict};
use crate::model::Line;
use crate::model::board::count;
use crate::text;
use crate::time::{Time, span};
use crate::words::{glyph, next_step};
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
    /// Names what the ledger has of it, or that it has nothing; null where it could not be read.
    row_version: Option<String>,
    server: Option<Box<RawValue>>,
    server_why: Option<String>,
    /// All rows with the id, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rows: Vec<RowJson>,
    pairing: &'static str,
    pairing_why: String,
    verdict: Vec<String>,
    next: String,
    evidence: Vec<EvidenceJson>,
    remarks: Vec<String>,
    error: Option<ErrorJson>,
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

pub async fn run(a: FindArgs, config: &Config) -> Done {
    let endpoint = a.endpoint.endpoint()?;
    let (ledger, rules) = open_ledger(&a.ledger)?;
    if endpoint.is_none() && ledger.is_none() {
        return Err(Error::usage("find needs somebody to ask")
            .hint("give --ledger FILE, --http URL, --server NAME, or a server to start: -- COMMAND ARGS…")
            .into());
    }
    // An unreadable ledger ends this before a server is started for it.
    readable(ledger.as_ref()).await?;
    let mut inspector = Inspector::new(ledger, None, rules);
    inspector.look_up = a.lookup.clone();
    inspector.row.clone_from(&a.row);
    inspector.hints = config.hint_overrides();
    if !a.row.is_empty()
        && let Some(why) = inspector.request_named(&a.request_id).await.row_unmatched
    {
        return Err(Error::usage(why).hint("find without --row shows all of them").into());
    }
    let Some(endpoint) = endpoint else {
        let request = inspector.request_named(&a.request_id).await;
        let asked = Server { why: Some("no endpoint was asked".into()), ..Server::default() };
        return Ok(report(&a, &request, &asked));
    };
    // A ledger may have a row whose id is empty; to a server that names nothing.
    check_request_id(&a.request_id)?;
    let interrupt = Interrupt::listen();
    a.endpoint.configure(config);
    match open(endpoint, settings(&a.endpoint, a.endpoint.call_limit(None))?, &interrupt).await {
        Ok(client) => {
            inspector.client = Some(client.clone());
            watched(&client, &interrupt, &a.lookup, look(&inspector, &a, &client)).await
        }
        // The ledger's word is worth having without the server's.
        Err(failure) if inspector.ledger.is_some() => {
            let request = inspector.request(&a.request_id, None).await;
            let asked = Server {
                why: Some(failure.error.what.clone()),
                error: Some(failure.error),
                witness: failure.witness.unwrap_or_default(),
                asked: true,
                ..Server::default()
            };
            Ok(report(&a, &request, &asked))
        }
        Err(failure) => Err(failure),
    }
}

/// What came of asking the server.
#[derive(Default)]
struct Server {
    asked: bool,
    looked: Option<Looked>,
    why: Option<String>,
    /// It never became ready.
    error: Option<Error>,
    witness: Witness,
}

impl Server {
    fn answer(&self) -> Option<&str> {
        self.looked.as_ref()?.answer.as_ref().map(|l| l.answer.as_str())
    }
}

async fn look(inspector: &Inspector, a: &FindArgs, client: &Client) -> Result<Exit> {
    let looked = inspector.look_up(&a.request_id).await?;
    let request = inspector.request(&a.request_id, None).await;
    let server = Server {
        asked: true,
        why: looked.why.clone(),
        looked: Some(looked),
        error: None,
        witness: Witness::after(client, None).await,
    };
    Ok(report(a, &request, &server))
}

fn report(a: &FindArgs, request: &Request, server: &Server) -> Exit {
    let exit = exit_of(request, server);
    if a.json {
        print_raw(&document(&json(a, request, server)));
        return exit;
    }
    let mut p = Plain::stdout();
    let why = server.why.as_deref().filter(|_| server.asked);
    plain(&mut p, &a.request_id, request, server.answer(), why);
    if server.asked && server.answer().is_none() {
        server.witness.tails(&mut p, "");
        if let Some(hint) = server.error.as_ref().and_then(|e| e.hint.as_ref()) {
            p.field("endpoint", Role::Text, hint);
        }
    }
    p.print();
    exit
}

fn json(a: &FindArgs, request: &Request, server: &Server) -> Doc {
    let line = &request.line;
    Doc {
        schema: "redial/find@1",
        request_id: a.request_id.clone(),
        state: line.judged.state.word().to_owned(),
        strength: line.judged.strength.word(),
        why: line.judged.why.clone(),
        ledger: request.facts.row.as_ref().map(|_| RowJson::new(line, request.at)),
        row_version: row_version(&request.facts),
        server: server.answer().and_then(raw_value),
        server_why: server.why.clone(),
        rows: request.rows.iter().map(|l| RowJson::new(l, request.at)).collect(),
        pairing: request.paired.pairing().word(),
        pairing_why: request.paired.why(),
        verdict: line.verdict_words(),
        next: next_step(&line.finding.next, Time::now()),
        evidence: line
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
        error: server.error.clone().or_else(|| unreadable(request)).as_ref().map(ErrorJson::of),
        witness: server.witness.clone(),
    }
}

/// Why the ledger could say nothing of this request.
fn unreadable(r: &Request) -> Option<Error> {
    r.how.as_ref()?.as_ref().err().cloned().map(ledger_error)
}

fn exit_of(r: &Request, server: &Server) -> Exit {
    if let Some(e) = &server.error {
        return e.exit;
    }
    if unreadable(r).is_some() {
        return Exit::Ledger;
    }
    if r.paired.pairing() == Pairing::Contradicted
        || r.line.finding.verdicts.contains(&Verdict::EndpointMismatch)
    {
        return Exit::Found;
    }
    let looked = server.looked.as_ref();
    match looked.and_then(|l| l.call.as_ref()).and_then(|c| c.outcome()) {
        Some(Outcome::Unknown) => return Exit::Unknown,
        Some(Outcome::NotSent) => return Exit::Endpoint,
        Some(Outcome::ToolError | Outcome::RpcError | Outcome::Refused) => return Exit::Found,
        Some(Outcome::Ok) | None => {}
    }
    let server_knows = looked
        .and_then(|l| l.answer.as_ref())
        .and_then(|l| l.status.as_deref())
        .is_some_and(|s| s != "unknown");
    if r.facts.row.is_some() || server_knows { Exit::Good } else { Exit::Found }
}

/// The state, for people: a missing row is no state, and one that could not be read is not missing.
pub fn state(p: &mut Plain, r: &Request) {
    let state = &r.line.judged.state;
    let strength = r.line.judged.strength;
    let words = match (state, strength) {
        (State::NoRow, _) if unreadable(r).is_some() => "? the ledger can't be read".to_owned(),
        (State::NoRow, _) => "∅ no row".to_owned(),
        (_, Strength::Stored) => format!("{} {}", glyph(state), state.word()),
        // Where the strength is another word than the state, it is half the message.
        _ => format!("{} {} ({})", glyph(state), state.word(), strength.word().replace('_', " ")),
    };
    p.field("state", state_role(state), &words);
}

/// What is known of a request, for people; `reissue` shows the same before it asks. `server_why` is told where
/// the server was asked and there is no answer.
pub fn plain(p: &mut Plain, id: &str, r: &Request, answer: Option<&str>, server_why: Option<&str>) {
    let line = &r.line;
    p.line(Role::Strong, &clip(text::named(id)));
    if let Some(same) = r.facts.row.as_ref().and_then(|row| row.same.as_ref()) {
        p.field("rows", Role::Warn, &clip(&same.words()));
        super::rows::table(p, &r.rows, r.at);
        p.field(
            "",
            Role::Dim,
            if same.chosen { "the one that was named:" } else { "the last of them in the table:" },
        );
    }
    state(p, r);
    p.field("why", Role::Text, &line.judged.why);
    if !line.label.is_empty() {
        p.field("about", Role::Text, &line.label);
    }
    if let Some(row) = &r.facts.row {
        let owner = row.owner.as_deref().unwrap_or("nobody named");
        let claimed = match row.claimed_at {
            Some(t) => format!("claimed {} ({}) by {owner}", t.rfc3339(), ago(t, r.at)),
            None => format!("owner {owner}"),
        };
        p.field("ledger", Role::Text, &format!("stored status {}, {claimed}", row.status));
        if r.facts.has_effects_table {
            p.field("effects", Role::Text, &effects(r));
        }
        if let Some(result) = &row.result {
            p.field("result", Role::Text, &clip(result));
        }
    } else if matches!(r.how, Some(Ok(_))) && line.judged.state != State::NoRow {
        p.field("ledger", Role::Dim, "no row");
    }
    match (answer, server_why) {
        (Some(a), _) => p.field("server says", Role::Text, &clip(a)),
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
    let mut name = "evidence";
    for e in line.finding.evidence.iter().filter(|e| is_news(e, line, answer.is_some())) {
        let at = e.at.map(|t| format!("{} ", t.clock())).unwrap_or_default();
        let strength = e.strength.map(|s| format!(" ({})", s.word().replace('_', " ")));
        let text = format!("{at}{}: {}{}", e.source, e.text, strength.unwrap_or_default());
        p.field(name, Role::Dim, &text);
        name = "";
    }
    remarks_plain(p, r.how.as_ref().and_then(|h| h.as_ref().ok()));
    p.field("next", Role::Strong, &next_step(&line.finding.next, Time::now()));
}

/// Whether a line of evidence says something that the fields above it don't.
fn is_news(e: &Evidence, line: &Line, answered: bool) -> bool {
    match e.source {
        "ledger" => {
            let judged = format!("{}: {}", line.judged.state.word(), line.judged.why);
            let told = ["no row", "no effect", "no ledger is attached"];
            e.text != judged && !told.contains(&&*e.text) && !e.text.starts_with("effect ")
        }
        "server" => !answered || e.text.contains([';', ',']),
        "pairing" => false,
        _ => true,
    }
}

/// `1 ticket: T-13a341e8`.
fn effects(r: &Request) -> String {
    const NAMED: usize = 5;
    let all = r.facts.row.as_ref().map_or(&[][..], |row| &row.effects);
    let mut keys: Vec<&str> = all.iter().take(NAMED).map(|e| e.key.as_str()).collect();
    if all.len() > NAMED {
        keys.push("…");
    }
    let number = count(r.effects(), &r.noun);
    if keys.is_empty() { number } else { format!("{number}: {}", keys.join(", ")) }
}

/// `12 s ago`; a time in the future is said to be one.
fn ago(t: Time, now: Time) -> String {
    match t.age_at(now) {
        s if s < -1.0 => format!("{} in the future", span(-s)),
        s => format!("{} ago", span(s.max(0.0))),
    }
}
