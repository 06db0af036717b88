//! The night ledger as the screen is fed with it in the morning: what `judge` and `inspect` make of the facts, told by
//! the functions that tell the real screen.

use super::facts::{self, COMMAND, LEDGER};
pub use super::facts::{NIGHT, morning};
use redial::inspect::Inspector;
use redial::inspect::list::Judging;
use redial::inspect::look::Looked;
use redial::inspect::reissue::{Prepared, Wish};
use redial::inspect::release::Released;
use redial::inspect::request::Request;
use redial::judge::agreement::{Shown, Terms};
use redial::judge::gate::{Earlier, GateFacts, gate, tool_gate};
use redial::judge::verify::{Expected, verify};
use redial::judge::{Ask, HintOverride, Rules, State};
use redial::ledger::Row;
use redial::model::Counts as Totalled;
use redial::model::arguments::{Candidate, Source};
use redial::tui::data::{
    Counts, DemoInfo, Detail, Line, Paired, Plan, Question, Report, Verified, Window,
};
use redial::tui::runtime::told;
use redial::tui::wire::{Reach, WireView};
use redial::tui::{App, Effect, Msg, Start, update};
use std::sync::Arc;

/// The endpoint as it stands in the morning.
fn stands() -> facts::Wire {
    facts::wire(&facts::tools(facts::IDEMPOTENT, facts::ARGUMENTS))
}

fn judging() -> (Judging, Inspector) {
    let mut judging = LEDGER.judging.clone();
    let session = stands().session;
    judging.paired = request("night-004").paired;
    judging.called =
        LEDGER.rows.iter().map(|r| (r.request_id.clone(), Ok(Some(r.clone())))).collect();
    judging.session = Some(session);
    (judging, Inspector::new(None, None, Rules::default()))
}

/// One request in the morning.
pub fn request(id: &str) -> Request {
    facts::request(&LEDGER.rows, &stands().session, id, None, morning())
}

/// A row like one of the night, as it is judged.
pub fn line_of(row: Row) -> Line {
    let (judging, inspector) = judging();
    inspector.lines(&[row], &judging, morning()).remove(0)
}

/// Newest first.
pub fn lines() -> Vec<Line> {
    let (judging, inspector) = judging();
    inspector.lines(&LEDGER.rows, &judging, morning())
}

fn counted() -> Totalled {
    let (judging, inspector) = judging();
    inspector.counts(&judging, morning())
}

fn view(wire: &facts::Wire) -> WireView {
    WireView::of(&wire.session, Reach::Stdio(COMMAND.into()), None)
}

/// The endpoint.
pub fn wire() -> WireView {
    view(&stands())
}

/// The detail of one request.
pub fn detail(id: &str) -> Option<Box<Detail>> {
    LEDGER.rows.iter().find(|r| r.request_id == id)?;
    let history = facts::histories(&LEDGER.rows);
    Some(Box::new(told::detailed(request(id), history.of(id), None)))
}

/// Answers the effects that reading needs, as the runtime would; the others are handed back.
pub fn answer(app: &mut App, effects: Vec<Effect>) -> Vec<Effect> {
    let mut rest = Vec::new();
    for effect in effects {
        let more = match effect {
            Effect::LoadWindow(ask) => {
                let text = ask.filter.to_lowercase();
                let all = lines();
                let hit = |l: &Line| {
                    format!("{} {} {}", l.id(), l.label, l.judged.state().word()).contains(&text)
                };
                let found: Vec<Line> = all.iter().filter(|l| hit(l)).cloned().collect();
                let matches = (!text.is_empty()).then_some((found.len() as u64, all.len() as u64));
                let (top, rows): (Vec<Line>, Vec<Line>) =
                    found.into_iter().partition(|l| *l.judged.state() != State::Done);
                let top_total = top.len();
                update(
                    app,
                    Msg::Requests(Box::new(Window {
                        ask,
                        top,
                        top_total,
                        rows,
                        tail: Vec::new(),
                        has_newer: false,
                        has_older: false,
                        matches,
                    })),
                )
            }
            Effect::LoadDetail { request_id } => {
                let detail = detail(&request_id);
                update(app, Msg::Detail { request_id, detail })
            }
            other => {
                rest.push(other);
                continue;
            }
        };
        rest.extend(answer(app, more));
    }
    rest
}

/// The app on the night ledger, with ledger and endpoint, in the morning.
pub fn app(size: (u16, u16)) -> App {
    app_with(
        Start {
            ledger: true,
            endpoint: Some(Reach::Stdio(COMMAND.into())),
            demo: Some(DemoInfo {
                how: "your own: redial attach --ledger ledger.db -- COMMAND, or --http URL".into(),
            }),
            look_up: "find_request".into(),
            ..Start::default()
        },
        size,
    )
}

/// The same, started otherwise.
pub fn app_with(start: Start, size: (u16, u16)) -> App {
    let endpoint = start.endpoint.is_some();
    let ledger = start.ledger;
    let mut app = App::new(start, morning(), size);
    app.themes = redial::tui::theme::Themes::built_in().unwrap();
    if ledger {
        let effects = update(&mut app, Msg::FactsChanged);
        let rest = answer(&mut app, effects);
        assert!(rest.is_empty(), "{rest:?}");
        update(
            &mut app,
            Msg::Counts(Box::new(Counts {
                headline: counted().headline(),
                as_of: Some(morning()),
                ..Counts::default()
            })),
        );
    }
    if endpoint {
        update(&mut app, Msg::Wire(Arc::new(wire())));
        let paired = request("night-004").paired;
        let (pairing, why) = (paired.pairing(), paired.why());
        update(&mut app, Msg::Paired(Paired { pairing, why }));
    }
    app
}

/// Presses the keys of a macro (`jj<enter>`), each after a look at the screen; reading is answered, what else is asked
/// for is returned.
pub fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let mut rest = Vec::new();
    for key in redial::keys::macro_keys(keys).expect("a macro of keys") {
        look(app);
        let effects = update(app, Msg::Key { key, repeat: false });
        rest.extend(answer(app, effects));
    }
    rest
}

/// A second passes in which a person reads the screen; then something is typed.
pub fn look(app: &mut App) {
    let now = app.answering.now();
    update(app, Msg::Drawn { at: now });
    update(app, Msg::Input { at: now + std::time::Duration::from_secs(1), crowded: false });
}

/// Facts under which a repeat is prepared: hints and schema of the tool, whether the server can be asked, and
/// the arguments, where they aren't those of the request.
struct Facts {
    hints: &'static str,
    schema: &'static str,
    asked: bool,
    other: bool,
}

const SITUATIONS: [Facts; 6] = {
    const USUAL: Facts =
        Facts { hints: facts::IDEMPOTENT, schema: facts::ARGUMENTS, asked: true, other: false };
    [
        USUAL,
        Facts { asked: false, ..USUAL },
        Facts { schema: r#"{"title":{},"body":{}}"#, ..USUAL },
        Facts { hints: "{}", ..USUAL },
        Facts { hints: r#"{"readOnlyHint":true}"#, ..USUAL },
        Facts { other: true, ..USUAL },
    ]
};

/// As `Inspector::prepare` does it, at a moment of its own.
fn prepared(id: &str, f: &Facts) -> Prepared {
    let mut wire = facts::wire(&facts::tools(f.hints, f.schema));
    let looked = match f.asked {
        true => Looked { answer: facts::looked_up(&mut wire, id), why: None, call: None },
        false => Looked {
            answer: None,
            why: Some("the server has no look-up tool find_request".into()),
            call: None,
        },
    };
    let session = &wire.session;
    let args = match f.other {
        true => facts::args(id).replacen("\"body\": \"", "\"body\": \"not ", 1),
        false => facts::args(id),
    };
    let before = facts::request(&LEDGER.rows, session, id, Some(&args), morning());
    // Where no call of it was seen, the agent's own log has them.
    let seen = before.candidates.iter().find(|c| c.args == args).map(|c| c.source.clone());
    let source = seen.unwrap_or_else(|| Source::Recording("agent.jsonl".into()));
    let tool = "create_ticket".to_owned();
    let candidate = Candidate { args: args.clone(), tool: None, source: source.clone() };
    let wish =
        Wish { request_id: Some(id.to_owned()), candidates: vec![candidate], ..Wish::default() };
    let listed = session.tools.find(&tool);
    let decision = gate(&GateFacts {
        name: &tool,
        tool: listed,
        list_complete: session.tools.complete,
        hints: HintOverride::default(),
        request_id: Some(id),
        facts: &before.facts,
        finding: &before.line.finding,
        earlier: Earlier::None,
        first_delivery: false,
        read_only_mode: false,
        now: morning(),
    });
    let reads_only = tool_gate(listed, session.tools.complete).ask == Ask::None;
    let terms = Terms::new(&Shown {
        name: &tool,
        args: &args,
        facts: &before.facts,
        total: before.effects_total,
        decision: &decision,
        tool: listed,
        list_complete: session.tools.complete,
        server: session.server.as_ref(),
        connection: session.generation().map_or(0, |g| g.n),
    });
    let since = before.at;
    Prepared {
        wish,
        tool,
        args,
        source,
        before,
        looked: Some(looked),
        decision,
        reads_only,
        warning: None,
        terms,
        since,
    }
}

/// What a repeat of a request would be, under facts for which the gate asks this question.
pub fn plan(id: &str, question: Question) -> Plan {
    let plans = SITUATIONS.iter().map(|f| told::planned(prepared(id, f), None));
    let mut asked = Vec::new();
    for plan in plans {
        if plan.check.gate.question == question {
            return plan;
        }
        asked.push(plan.check.gate);
    }
    panic!("nothing here makes the gate ask {question:?} of {id}: {asked:?}")
}

/// Opens the dialog on the selected request and answers what a repeat would be.
pub fn open_dialog(app: &mut App, question: Question) {
    let effects = press(app, "r");
    let [Effect::Plan { request_id, seq }] = &effects[..] else { panic!("{effects:?}") };
    let plan = Ok(Box::new(plan(request_id, question)));
    update(app, Msg::Planned { request_id: request_id.clone(), seq: *seq, plan });
}

/// A good end of a repeat of night-007: the work was done by this call.
pub fn report() -> Report {
    let mut wire = stands();
    let id = "night-007";
    let args = facts::args(id);
    facts::looked_up(&mut wire, id);
    let before = facts::request(&LEDGER.rows, &wire.session, id, Some(&args), morning());
    let answer = facts::repeat_answer();
    let sent = wire.call(2, morning(), "create_ticket", &args, Some((0.42, &answer)));
    let rows = facts::repeated(&LEDGER.rows, morning().plus_seconds(0.01));
    let after = facts::request(&rows, &wire.session, id, Some(&args), morning().plus_seconds(0.43));
    let call = wire.session.calls[&sent].clone();
    let replayed = redial::judge::observed::replayed(&call);
    told::report(&Released { call, before, after, replayed }, Vec::new())
}

/// Lets a call of night-004 wait for twelve seconds; its id.
pub fn pending(app: &mut App) -> redial::journal::CallId {
    let (wire, id) = waiting();
    update(app, Msg::Wire(Arc::new(wire)));
    id
}

/// The endpoint while a call of night-004 waits, for twelve seconds by now.
pub fn waiting() -> (WireView, redial::journal::CallId) {
    calling("create_ticket", "night-004", -12.0)
}

/// The endpoint while one call waits that was sent so many seconds after the morning.
pub fn calling(tool: &str, request_id: &str, sent: f64) -> (WireView, redial::journal::CallId) {
    let mut wire = stands();
    let id = wire.call(2, morning().plus_seconds(sent), tool, &facts::args(request_id), None);
    (view(&wire), id)
}

/// What `verify` finds in the night ledger.
pub fn verified() -> Verified {
    let mut totals = LEDGER.totals.clone();
    // Counted in the morning: what is presumed depends on the time of day.
    totals.requests = counted().states;
    let lines = lines();
    for (id, state, _) in &mut totals.unfinished {
        *state = lines.iter().find(|l| l.id() == id).unwrap().judged.state().clone();
    }
    let judged = verify(&totals, &Expected::default(), false);
    told::verified(&totals, judged, morning(), 0.004)
}
