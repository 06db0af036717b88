//! What happened in the night, as facts alone: a real ledger, made and read by the product's own reader, and what was on
//! the wire, folded from events. What they come to, `judge` says; nothing here writes a verdict, a reason or a next step.

use super::cli::make_ledger;
use redial::inspect::Inspector;
use redial::inspect::list::Judging;
use redial::inspect::request::Request;
use redial::journal::event::{Event, Kind, LinkState, Purpose, Transport};
use redial::journal::{Call, Session};
use redial::json::raw;
use redial::judge::verify::{Expected, Totals};
use redial::judge::{OwnerView, Rules};
use redial::ledger::hash::args_hash;
use redial::ledger::{Ledger, Row};
use redial::model::arguments::{Source, from_calls, from_effects};
use redial::model::hash::{self, Shape};
use redial::model::lookup::{self, LOOK_UP, LookUp};
use redial::model::pairing::{FirstReads, Read};
use redial::model::{Context, Histories, LedgerFacts, Line, Paired};
use redial::time::Time;
use std::sync::LazyLock;

/// When the rows were claimed, more or less.
pub const NIGHT: Time = Time(1_795_963_550_611_772);

/// Eight hours and twelve minutes later.
pub fn morning() -> Time {
    NIGHT.plus_seconds(29_520.0)
}

pub const COMMAND: &str = "redial serve tickets --ledger ledger.db";

/// One request: its id, who claimed it and when, its arguments, and whether it was finished.
struct Work(&'static str, &'static str, f64, &'static str, &'static str, bool);

const FIRST: &str = "9e6c009e057c4f8886ea00b8a4ed9eea";
const SECOND: &str = "b558e4fa9c884d23bbef2e3dbb97d7e2";
const KILLED: &str = "49537247c57a482f979f1574c52ea85f";
const ALIVE: &str = "c4d45f20d48c4614bbc208701e862d72";

/// Seven requests, two of them not finished, two with the same arguments. The endpoint below was there for the last
/// two claims; the others were made by servers that nobody here has seen.
const WORK: [Work; 7] = [
    Work("night-001", FIRST, 0.0, "障害報告", "ログイン不可", true),
    Work("night-002", FIRST, 0.01, "請求修正", "金額誤り", true),
    Work("night-003", FIRST, 0.03, "Rotate the on-call key", "expires 2026-12-01", true),
    Work("night-004", ALIVE, 14.22, "在庫差異 倉庫B", "数量が合わない", true),
    Work("night-005", SECOND, 2.88, "夜間バッチ停止", "03:00 のジョブが止まった", false),
    Work("night-006", SECOND, 7.2, "障害報告", "ログイン不可", true),
    Work("night-007", KILLED, 10.07, "Disk almost full on db-3", "93 % used", false),
];

/// The arguments that a request was made with.
pub fn args(id: &str) -> String {
    let Work(id, _, _, title, body, _) = WORK.iter().find(|w| w.0 == id).unwrap();
    let [id, title, body] = [id, title, body].map(|t| raw::quote(t));
    format!(r#"{{"request_id": {id}, "title": {title}, "body": {body}}}"#)
}

/// The result that the ledger keeps, and the answer's object with its remark.
fn result(ticket: &str, title: &str, remark: &str) -> String {
    format!(r#"{{"ticket_id": {}, "title": {}{remark}}}"#, raw::quote(ticket), raw::quote(title))
}

fn sql() -> String {
    let text = |t: &str| format!("'{}'", t.replace('\'', "''"));
    let statements = WORK.iter().enumerate().map(|(n, Work(id, owner, at, title, body, done))| {
        let ticket = format!("T-{:08x}", n + 1);
        let hash = args_hash(&args(id)).unwrap();
        let at = NIGHT.plus_seconds(*at).0 as f64 / 1e6;
        let (status, stored) = match done {
            true => ("done", text(&result(&ticket, title, ""))),
            false => ("running", "NULL".into()),
        };
        let row = format!(
            "INSERT INTO requests VALUES ('{id}', '{hash}', '{status}', {stored}, '{owner}', {at:.6});"
        );
        let effect = format!(
            "INSERT INTO tickets VALUES ('{ticket}', '{id}', {}, {});",
            text(title),
            text(body)
        );
        if *done { row + &effect } else { row }
    });
    statements.collect()
}

/// The ledger as the product reads it.
pub struct Stored {
    /// Newest first.
    pub rows: Vec<Row>,
    pub judging: Judging,
    pub totals: Totals,
}

/// Read once, by a thread of its own: a test that runs in a runtime may be the first to ask.
pub static LEDGER: LazyLock<Stored> =
    LazyLock::new(|| std::thread::spawn(read).join().expect("the night's ledger can be read"));

fn read() -> Stored {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    make_ledger(&path, &sql());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let ledger = Ledger::open(path);
        let inspector = Inspector::new(Some(ledger.clone()), None, Rules::default());
        let mut overview = inspector.overview(|| async {}).await.unwrap();
        overview.at = morning();
        let rows = ledger.read_async(|r| r.newest(None, 100)).await.unwrap();
        let (totals, _) = inspector.verify(&Expected::default(), false).await.unwrap();
        Stored { rows, judging: inspector.judging(overview).await, totals }
    })
}

/// The built-in server's tools, with these hints for the one that works.
pub fn tools(hints: &str, properties: &str) -> String {
    format!(
        r#"[{{"name":"create_ticket","description":"Creates one ticket.","inputSchema":{{"type":"object","properties":{properties}}},"annotations":{hints}}},{{"name":"find_request","inputSchema":{{"type":"object","properties":{{"request_id":{{"type":"string"}}}}}},"annotations":{{"readOnlyHint":true}}}}]"#
    )
}

pub const IDEMPOTENT: &str =
    r#"{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true}"#;
pub const ARGUMENTS: &str =
    r#"{"request_id":{"type":"string"},"title":{"type":"string"},"body":{"type":"string"}}"#;

/// A session in the making.
pub struct Wire {
    pub session: Session,
    seq: u64,
    rpc: u64,
}

impl Wire {
    fn at(&mut self, generation: u32, at: Time, kind: Kind) -> u64 {
        self.seq += 1;
        self.session.apply(&Event { seq: self.seq, at, mono_us: 0, generation, kind });
        self.seq
    }

    fn sent(&mut self, generation: u32, at: Time, purpose: Purpose, what: &str) -> (u64, u64) {
        self.rpc += 1;
        let raw = format!(r#"{{"jsonrpc":"2.0","id":{},{what}}}"#, self.rpc);
        let seq = self.at(generation, at, Kind::Sent { raw: raw.into(), exchange: None, purpose });
        (seq, self.rpc)
    }

    fn answered(&mut self, generation: u32, at: Time, id: u64, result: &str) {
        let raw = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        self.at(generation, at, Kind::Received { raw: raw.into(), exchange: None });
    }

    fn said(&mut self, generation: u32, at: Time, line: &str) {
        self.at(generation, at, Kind::Stderr { raw: line.to_owned().into() });
    }

    /// A process that says who it is and lists its tools.
    fn opened(&mut self, generation: u32, at: Time, pid: u32, boot: &str, tools: &str) {
        let command = COMMAND.split(' ').map(str::to_owned).collect();
        let transport = Transport::Stdio { command, pid: Some(pid) };
        self.at(generation, at, Kind::Opened { transport });
        let soon = |ms: f64| at.plus_seconds(ms / 1000.0);
        let hello = r#""method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"redial","version":"0.1.0"}}"#;
        let (_, id) = self.sent(generation, soon(1.0), Purpose::Handshake, hello);
        self.said(generation, soon(20.0), &format!("boot id {boot}"));
        let info = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"ticket-ledger","version":"0.1.0"}}"#;
        self.answered(generation, soon(21.0), id, info);
        self.at(generation, soon(21.0), Kind::Agreed { protocol: "2025-11-25".into() });
        let list = r#""method":"tools/list","params":{}"#;
        let (_, id) = self.sent(generation, soon(22.0), Purpose::Handshake, list);
        self.answered(generation, soon(23.0), id, &format!(r#"{{"tools":{tools}}}"#));
        let why = "tools/list answered".into();
        self.at(generation, soon(24.0), Kind::State { state: LinkState::Ready, why });
    }

    /// A call, with an answer or without: the event that sent it.
    pub fn call(
        &mut self,
        generation: u32,
        at: Time,
        tool: &str,
        args: &str,
        answer: Option<(f64, &str)>,
    ) -> u64 {
        let what = format!(
            r#""method":"tools/call","params":{{"name":{},"arguments":{args}}}"#,
            raw::quote(tool)
        );
        let (seq, id) = self.sent(generation, at, Purpose::Asked, &what);
        if let Some((after_s, object)) = answer {
            let text = raw::quote(object);
            let result = format!(
                r#"{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{object},"isError":false}}"#
            );
            self.answered(generation, at.plus_seconds(after_s), id, &result);
        }
        seq
    }
}

/// The endpoint: generation 1 was killed while night-007 was in flight, generation 2 is ready and has answered one call.
pub fn wire(tools: &str) -> Wire {
    let mut w = Wire { session: Session::default(), seq: 0, rpc: 0 };
    let at = |s: f64| NIGHT.plus_seconds(s);
    w.opened(1, at(9.0), 4711, KILLED, tools);
    w.call(1, at(10.0), "create_ticket", &args("night-007"), None);
    w.said(1, at(10.08), "night-007: claimed");
    w.at(
        1,
        at(10.6),
        Kind::Exit { code: None, signal: Some(9), left: redial::procs::Left::Nobody },
    );
    w.opened(2, at(13.0), 4723, ALIVE, tools);
    let answer = result("T-00000004", "在庫差異 倉庫B", r#", "replayed": false"#);
    w.call(2, at(14.2), "create_ticket", &args("night-004"), Some((0.5, &answer)));
    w
}

/// What was seen of rows: redial has watched since the first generation was opened.
pub fn histories(rows: &[Row]) -> Histories {
    let mut seen = Histories::default();
    for row in rows.iter().rev() {
        let claimed = row.claimed_at.unwrap();
        let first = claimed.max(NIGHT.plus_seconds(9.0)).plus_seconds(0.05);
        if claimed >= NIGHT.plus_seconds(9.0) {
            let (result, effects) = (None, Vec::new());
            let begun = Row { status: "running".into(), result, effects, ..row.clone() };
            seen.observe(&begun, first);
            seen.observe(row, first.plus_seconds(0.6));
        } else {
            seen.observe(row, first);
        }
    }
    for row in rows {
        seen.observe(row, morning());
    }
    seen
}

/// One request with all its witnesses, as `inspect` gathers them, at a moment of its own.
pub fn request(rows: &[Row], s: &Session, id: &str, given: Option<&str>, at: Time) -> Request {
    let seen = histories(rows);
    let owners = OwnerView::from_rows(rows);
    let row_of = |id: &str| rows.iter().find(|r| r.request_id == id).cloned();
    let paired = Paired::fold(s, LOOK_UP, &mut FirstReads::default(), |id| {
        let (there_since, done_since) = (seen.there_since(id), seen.done_since(id));
        Some(Read { row: row_of(id), at, absent_at: None, there_since, done_since })
    });
    let context = Context::new(&seen, &owners, Rules::default(), at);
    let context = context.with_session(s, LOOK_UP, paired.pairing(), rows);
    let shape = |tool: &str| s.tools.find(tool).map(Shape::of).unwrap_or_default();
    let row = row_of(id);
    let calls = context.calls_of(id);
    let mut candidates = from_calls(&calls.iter().collect::<Vec<_>>(), &Source::Seen);
    candidates.extend(row.iter().flat_map(from_effects));
    let all: Vec<&Call> = s.calls.values().collect();
    let proof = hash::prove(rows, &all, shape).into_iter().find(|p| p.request_id != id);
    let stored = row.as_ref().and_then(|r| r.args_hash.clone());
    let at_hand = given.or(candidates.first().map(|c| c.args.as_str()));
    let hash = hash::check(at_hand, stored.as_deref(), &shape("create_ticket"), proof.as_ref());
    let same = |r: &&Row| stored.is_some() && r.args_hash == stored && r.request_id != id;
    let ledger = LedgerFacts {
        view: redial::judge::LedgerView::Read(at),
        twins: rows.iter().filter(same).cloned().collect(),
        row,
        has_effects_table: true,
        ..LedgerFacts::default()
    };
    let facts = context.gather(id, ledger, hash.check);
    Request {
        line: Line::new(&facts, at),
        facts,
        hash,
        proof,
        paired,
        effects_total: Some(rows.iter().map(|r| r.effects.len() as u64).sum()),
        noun: "tickets".into(),
        how: None,
        rows: Vec::new(),
        row_unmatched: None,
        candidates,
        at,
    }
}

/// The look-up that a repeat begins with, asked of the living server right now.
pub fn looked_up(wire: &mut Wire, id: &str) -> Option<LookUp> {
    let args = format!(r#"{{"request_id": {}}}"#, raw::quote(id));
    let status = if LEDGER.rows.iter().any(|r| r.request_id == id && r.status == "done") {
        "done"
    } else {
        "abandoned"
    };
    let stored = LEDGER.rows.iter().find(|r| r.request_id == id).and_then(|r| r.result.clone());
    let result = stored.map_or(String::new(), |r| format!(r#", "result": {r}"#));
    let answer = format!(r#"{{"request_id": {}, "status": "{status}"{result}}}"#, raw::quote(id));
    let asked = morning().plus_seconds(-0.02);
    wire.call(2, asked, LOOK_UP, &args, Some((0.01, &answer)));
    lookup::newest(&wire.session, LOOK_UP, id)
}

/// The night-007 that a repeat has finished: its row, then.
pub fn repeated(rows: &[Row], at: Time) -> Vec<Row> {
    let mut rows = rows.to_vec();
    let row = rows.iter_mut().find(|r| r.request_id == "night-007").unwrap();
    let mut effect = LEDGER.rows.iter().find_map(|r| r.effects.first().cloned()).unwrap();
    let Work(_, _, _, title, body, _) = WORK[6];
    (effect.rowid, effect.key, effect.label) = (12, "T-0000000c".into(), title.into());
    effect.request_id = Some(row.request_id.clone());
    effect.columns = vec![("title".into(), raw::quote(title)), ("body".into(), raw::quote(body))];
    row.result = Some(result(&effect.key, title, ""));
    (row.status, row.owner, row.claimed_at) = ("done".into(), Some(ALIVE.into()), Some(at));
    row.effects = vec![effect];
    rows
}

/// The answer of that repeat.
pub fn repeat_answer() -> String {
    result("T-0000000c", WORK[6].3, r#", "replayed": false"#)
}
