//! The night ledger as the screen is fed with it: seven requests with Japanese titles, two of them not
//! finished, one pair with the same arguments; and the endpoint whose first process was killed.

use bytes::Bytes;
use redial::journal::event::{Event, Kind, LinkState, Purpose, Transport};
use redial::journal::fold::Session;
use redial::judge::{Evidence, Finding, HashCheck, Judged, Pairing, State, Strength, Verdict};
use redial::ledger::{Effect as Ticket, Row};
use redial::time::Time;
use redial::tui::data::{
    Check, Counts, DemoInfo, Detail, Gate, Line, Paired, Plan, Problem, Question, Report, Verified,
    Window,
};
use redial::tui::wire::{Reach, WireView};
use redial::tui::{App, Effect, Msg, Start, update};
use std::sync::Arc;

/// When the rows were claimed, more or less.
pub const NIGHT: Time = Time(1_795_963_550_611_772);

/// Eight hours and twelve minutes later.
pub fn morning() -> Time {
    NIGHT.plus_seconds(29_520.0)
}

const COMMAND: &str = "redial serve tickets --ledger ledger.db";

/// One request: rowid, second of its claim, title and body of its ticket.
fn line(n: i64, at: f64, ticket: Option<(&str, &str)>, hash: &str, owner: &str) -> Line {
    let id = format!("night-{n:03}");
    let (status, state, strength, why) = match ticket {
        Some(_) => ("done", State::Done, Strength::Stored, "the ledger says done"),
        None => (
            "running",
            State::Abandoned,
            Strength::Presumed,
            "a newer owner has claimed since, and the claim is older than 120 s",
        ),
    };
    let twin = hash == "8d8e68f2";
    let verdict = match (ticket, twin) {
        (Some(_), true) => Verdict::SuspectDuplicate,
        (Some(_), false) => Verdict::Finished,
        (None, _) => Verdict::Stalled,
    };
    let next = match verdict {
        Verdict::SuspectDuplicate => {
            "look at the pair night-001, night-006: same arguments, two tickets"
        }
        Verdict::Finished => "nothing to do; a repeat returns the stored result",
        _ => {
            "repeat with the same request_id; it may still be working, the server lets a repeat take over"
        }
    };
    let claimed = NIGHT.plus_seconds(at);
    let evidence =
        |source, at, strength, text: &str| Evidence { source, at, strength, text: text.into() };
    Line {
        label: ticket.map(|(title, _)| title.to_owned()).unwrap_or_default(),
        effects: Some(ticket.iter().count() as u64),
        judged: Judged {
            state,
            strength,
            why: why.into(),
            judge_again_at: None,
            takeover_since: None,
            takeover_limit_s: None,
            skew_s: None,
        },
        finding: Finding {
            verdicts: vec![verdict],
            evidence: vec![
                evidence(
                    "ledger",
                    Some(claimed),
                    None,
                    &format!("claimed by {owner}, status {status}"),
                ),
                evidence(
                    "exit",
                    Some(claimed.plus_seconds(0.9)),
                    Some(Strength::Presumed),
                    "a newer owner has claimed rows since",
                ),
            ],
            next: next.into(),
        },
        row: Row {
            rowid: n,
            request_id: id.clone(),
            status: status.into(),
            args_hash: Some(format!(
                "{hash}a12b9561ac972825dd64440466c9b33603b341137342b9254f15deb1"
            )),
            result: ticket
                .map(|(title, _)| format!(r#"{{"ticket_id": "T-{n:08x}", "title": "{title}"}}"#)),
            owner: Some(owner.into()),
            claimed_at: Some(claimed),
            tool: None,
            effects: ticket
                .map(|(title, body)| Ticket {
                    rowid: n,
                    key: format!("T-{n:08x}"),
                    request_id: Some(id),
                    label: title.into(),
                    columns: vec![
                        ("title".into(), format!("\"{title}\"")),
                        ("body".into(), format!("\"{body}\"")),
                    ],
                })
                .into_iter()
                .collect(),
        },
    }
}

/// Newest first.
pub fn lines() -> Vec<Line> {
    vec![
        line(7, 10.07, None, "f076d386", "49537247c57a482f979f1574c52ea85f"),
        line(
            6,
            7.2,
            Some(("障害報告", "ログイン不可")),
            "8d8e68f2",
            "c4d45f20d48c4614bbc208701e862d72",
        ),
        line(5, 2.88, None, "9466126d", "b558e4fa9c884d23bbef2e3dbb97d7e2"),
        line(
            4,
            7.22,
            Some(("在庫差異 倉庫B", "数量が合わない")),
            "aa6108c2",
            "c4d45f20d48c4614bbc208701e862d72",
        ),
        line(
            3,
            0.03,
            Some(("Rotate the on-call key", "expires 2026-12-01")),
            "8780d74f",
            "9e6c009e057c4f8886ea00b8a4ed9eea",
        ),
        line(
            2,
            0.01,
            Some(("請求修正", "金額誤り")),
            "9b286607",
            "9e6c009e057c4f8886ea00b8a4ed9eea",
        ),
        line(
            1,
            0.0,
            Some(("障害報告", "ログイン不可")),
            "8d8e68f2",
            "9e6c009e057c4f8886ea00b8a4ed9eea",
        ),
    ]
}

/// The endpoint: generation 1 was killed while night-005 was in flight, generation 2 is ready and has
/// answered one call.
pub fn wire() -> WireView {
    let mut session = Session::default();
    let mut seq = 0;
    let mut at = |generation: u32, second: f64, kind: Kind| {
        seq += 1;
        let at = NIGHT.plus_seconds(second);
        session.apply(&Event { seq, at, mono_us: 0, generation, kind });
    };
    let opened = |pid| Kind::Opened {
        transport: Transport::Stdio {
            command: COMMAND.split(' ').map(str::to_owned).collect(),
            pid: Some(pid),
        },
    };
    let stderr = |line: &str| Kind::Stderr { raw: Bytes::copy_from_slice(line.as_bytes()) };
    let call = |id: u32, request: &str, title: &str| {
        Kind::Sent {
        raw: format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"create_ticket","arguments":{{"request_id":"{request}","title":"{title}"}}}}}}"#).into(),
        exchange: None,
        purpose: Purpose::Asked,
    }
    };
    at(1, 0.0, opened(4711));
    at(1, 0.1, stderr("boot 9e6c009e057c4f8886ea00b8a4ed9eea"));
    at(1, 0.2, stderr("night-002: 請求修正 done"));
    at(1, 2.8, call(1, "night-005", "夜間バッチ停止"));
    at(1, 2.9, stderr("night-005: claimed"));
    at(1, 3.4, Kind::Exit { code: None, signal: Some(9), certain: true });
    at(2, 6.0, opened(4723));
    at(2, 6.1, stderr("boot c4d45f20d48c4614bbc208701e862d72"));
    at(2, 6.2, Kind::State { state: LinkState::Ready, why: "tools/list answered".into() });
    at(2, 7.1, call(2, "night-004", "在庫差異 倉庫B"));
    at(2, 7.6, Kind::Received {
        raw: r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"ticket_id\":\"T-00000004\",\"replayed\":false}"}]}}"#.into(),
        exchange: None,
    });
    WireView::of(&session, Reach::Stdio(COMMAND.into()), None)
}

/// The detail of one request.
pub fn detail(id: &str) -> Option<Box<Detail>> {
    let line = lines().into_iter().find(|l| l.id() == id)?;
    let claimed = line.row.claimed_at?;
    Some(Box::new(Detail {
        history: vec![
            (claimed, "claimed".into()),
            (claimed.plus_seconds(4.0), "owner changed".into()),
        ],
        hash: HashCheck::Equal,
        hash_why: "all arguments of the call seen on the wire".into(),
        looked_up: None,
        line,
    }))
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
                    format!("{} {} {}", l.id(), l.label, l.judged.state.word()).contains(&text)
                };
                let found: Vec<Line> = all.iter().filter(|l| hit(l)).cloned().collect();
                let matches = (!text.is_empty()).then_some((found.len() as u64, all.len() as u64));
                let (top, rows): (Vec<Line>, Vec<Line>) =
                    found.into_iter().partition(|l| l.judged.state != State::Done);
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
                headline: "7 requests · 5 done · 2 abandoned · 5 tickets · 1 suspect pair".into(),
                as_of: Some(morning()),
                ..Counts::default()
            })),
        );
    }
    if endpoint {
        update(&mut app, Msg::Wire(Arc::new(wire())));
        update(&mut app, Msg::Paired(Paired { pairing: Pairing::Consistent, why: String::new() }));
    }
    app
}

/// Presses the keys of a macro (`jj<enter>`); reading is answered, what else is asked for is returned.
pub fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let mut rest = Vec::new();
    for key in redial::tui::keys::macro_keys(keys).expect("a macro of keys") {
        let effects = update(app, Msg::Key { key, repeat: false });
        rest.extend(answer(app, effects));
    }
    rest
}

/// What a repeat of a request would be, with the gate's question.
pub fn plan(id: &str, question: Question) -> Plan {
    let reasons = match question {
        Question::None => "the server says that the tool only reads",
        Question::Preview => {
            "the server says that the tool is idempotent, and the arguments are those of the row"
        }
        Question::Ask => "its owner may still be working: nobody saw it end",
        Question::Type => {
            "the server gives no hint that this tool may be repeated; the work may run twice"
        }
        Question::Refused => "other arguments than the row has: this is another piece of work",
    };
    Plan {
        tool: "create_ticket".into(),
        args: format!(
            r#"{{"request_id": "{id}", "title": "夜間バッチ停止", "body": "03:00 のジョブが止まった"}}"#
        ),
        known: true,
        source: "seen on the wire".into(),
        check: Check {
            hash: HashCheck::Equal,
            hash_why: "all arguments, by a recipe proven on night-001".into(),
            gate: Gate { question, reasons: vec![reasons.into()], word: id.into() },
        },
        situation: vec![
            "the ledger says running, claimed by b558e4fa… 8 h 12 m ago; presumed abandoned".into(),
            "the server was not asked (f asks it)".into(),
            "effects of this request: 0".into(),
        ],
    }
}

/// Opens the dialog on the selected request and answers what a repeat would be.
pub fn open_dialog(app: &mut App, question: Question) {
    let effects = press(app, "r");
    let [Effect::Plan { request_id, seq }] = &effects[..] else { panic!("{effects:?}") };
    let plan = Ok(Box::new(plan(request_id, question)));
    update(app, Msg::Planned { request_id: request_id.clone(), seq: *seq, plan });
}

/// A good end: the work was done by this call.
pub fn report() -> Report {
    Report {
        outcome: "ok".into(),
        why: String::new(),
        answer_status: Some("done".into()),
        replayed: Some(false),
        state_after: "done".into(),
        effects: Some((0, 1)),
        effects_total: Some((5, 6)),
        elapsed_s: 0.42,
        answer: r#"{"ticket_id":"T-0000000c","title":"夜間バッチ停止","replayed":false}"#.into(),
        next: "nothing to do; a repeat returns the stored result".into(),
        stderr: Vec::new(),
    }
}

/// Lets a call of night-004 wait for twelve seconds; its id.
pub fn pending(app: &mut App) -> redial::journal::CallId {
    let mut wire = wire();
    let mut call = (*wire.calls[0]).clone();
    (call.outcome, call.settled_at, call.word, call.status) = (None, None, "pending", None);
    call.sent_at = morning().plus_seconds(-12.0);
    let id = call.id;
    wire.calls[0] = Arc::new(call);
    update(app, Msg::Wire(Arc::new(wire)));
    id
}

/// What `verify` finds in the night ledger.
pub fn verified() -> Verified {
    let problem = |kind: &str, detail: &str, ids: &[&str]| Problem {
        kind: kind.into(),
        error: false,
        detail: detail.into(),
        request_ids: ids.iter().map(|i| (*i).to_owned()).collect(),
    };
    Verified {
        good: false,
        sentence: "NOT exactly once: 2 unfinished, 1 suspect pair".into(),
        requests: vec![("done".into(), 5), ("abandoned".into(), 2)],
        effects: Some(5),
        problems: vec![
            problem("unfinished", "2 abandoned", &["night-005", "night-007"]),
            problem(
                "suspect duplicate",
                "the same arguments under two request_ids, an effect each",
                &["night-001", "night-006"],
            ),
        ],
        as_of: morning(),
        took_s: 0.004,
    }
}
