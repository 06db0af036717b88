//! What voids an answer, and what doesn't.

use super::*;
use crate::judge::Twin;
use crate::judge::gate::{Earlier, GateFacts, HintOverride, gate};
use crate::judge::testing::{call, effect, row};
use crate::judge::verdict::conclude;
use crate::judge::{Judged, OwnerView, Rules, ServerWord, judge_row};
use crate::ledger::Same;

const HINTS: &str = r#"{"name":"t","description":"d","title":"T","annotations":{"idempotentHint":true},"inputSchema":{"type":"object","properties":{"request_id":{},"a":{"type":"string"}}},"_meta":{"n":1}}"#;

/// One request as a question shows it, with room for another thing in each place.
struct Scene {
    facts: Facts,
    total: Option<u64>,
    tool: Option<Tool>,
    complete: bool,
    server: ServerInfo,
    connection: u32,
    args: &'static str,
    now: Time,
}

/// A claim that nobody has seen the end of.
fn running() -> Judged {
    let (owners, rules) = (OwnerView::default(), Rules::default());
    judge_row(&row("r", "running", "A", 100.0), &owners, rules, None, None, Time(105_000_000))
}

impl Scene {
    fn new() -> Scene {
        let row = row("r", "running", "A", 100.0);
        let judged = running();
        Scene {
            facts: Facts {
                request_id: "r".into(),
                ledger: LedgerView::Read(Time(1)),
                row: Some(row),
                judged: Some(judged),
                has_effects_table: true,
                hash: HashCheck::Equal,
                pairing: Pairing::Consistent,
                ..Facts::default()
            },
            total: Some(5),
            tool: Tool::parse(HINTS),
            complete: true,
            server: ServerInfo { name: "s".into(), version: "1".into() },
            connection: 1,
            args: "{}",
            now: Time(200_000_000),
        }
    }

    fn terms(&self) -> Terms {
        let finding = conclude(&self.facts, self.now);
        let decision = gate(&GateFacts {
            name: "t",
            tool: self.tool.as_ref(),
            list_complete: self.complete,
            hints: HintOverride::default(),
            request_id: Some("r"),
            facts: &self.facts,
            finding: &finding,
            earlier: Earlier::None,
            first_delivery: false,
            read_only_mode: false,
            now: self.now,
        });
        Terms::new(&Shown {
            name: "t",
            args: self.args,
            facts: &self.facts,
            total: self.total,
            decision: &decision,
            tool: self.tool.as_ref(),
            list_complete: self.complete,
            server: Some(&self.server),
            connection: self.connection,
        })
    }
}

/// What is another thing once `change` has happened to a standing question.
fn changed(change: impl FnOnce(&mut Scene)) -> Vec<(Fact, String)> {
    let mut scene = Scene::new();
    let before = scene.terms();
    change(&mut scene);
    let since = Time(11_647_000_000);
    let changes = before.changes(&scene.terms(), since);
    changes.into_iter().map(|c| (c.fact, c.words)).collect()
}

fn facts(change: impl FnOnce(&mut Scene)) -> Vec<Fact> {
    changed(change).into_iter().map(|(fact, _)| fact).collect()
}

fn row_of(s: &mut Scene) -> &mut Row {
    s.facts.row.as_mut().unwrap()
}

fn tool_of(s: &mut Scene, from: &str, to: &str) {
    assert!(HINTS.contains(from), "{from}");
    s.tool = Tool::parse(&HINTS.replace(from, to));
}

#[test]
fn each_fact_voids_the_answer() {
    let has = |want: Fact, change: fn(&mut Scene)| {
        let got = facts(change);
        assert!(got.contains(&want), "{want:?} is not among {got:?}");
    };
    has(Fact::State, |s| row_of(s).status = "done".into());
    has(Fact::State, |s| s.facts.row = None);
    has(Fact::State, |s| s.facts.ledger = LedgerView::Unreadable("locked".into()));
    has(Fact::State, |s| s.facts.judged.as_mut().unwrap().strength = Strength::Observed);
    has(Fact::Effects, |s| row_of(s).effects.push(effect("r", "x")));
    has(Fact::Total, |s| s.total = Some(6));
    has(Fact::Owner, |s| row_of(s).owner = Some("B".into()));
    has(Fact::Owner, |s| row_of(s).claimed_at = Some(Time(150_000_000)));
    has(Fact::Row, |s| row_of(s).args_hash = Some("other".into()));
    has(Fact::Row, |s| row_of(s).result = Some("{}".into()));
    has(Fact::Hash, |s| s.facts.hash = HashCheck::DiffersUnproven);
    has(Fact::Pairing, |s| s.facts.pairing = Pairing::Unproven);
    has(Fact::Calls, |s| s.facts.calls.push(call("r", 9, 1.0)));
    has(Fact::Twins, |s| {
        s.facts.twins.push(Twin { request_id: "twin".into(), state: State::Done });
    });
    has(Fact::LookUp, |s| {
        let (at, status) = (Time(1), "done".to_owned());
        s.facts.server_says = Some(ServerWord { at, status, started_by_us: None });
    });
    has(Fact::Hints, |s| tool_of(s, r#""idempotentHint":true"#, r#""idempotentHint":false"#));
    has(Fact::Hints, |s| s.complete = false);
    has(Fact::Tool, |s| s.tool = None);
    has(Fact::Tool, |s| tool_of(s, r#""description":"d""#, r#""description":"e""#));
    has(Fact::Tool, |s| tool_of(s, r#""type":"string""#, r#""type":"number""#));
    has(Fact::Tool, |s| tool_of(s, r#""title":"T""#, r#""title":"U""#));
    has(Fact::Server, |s| s.server.name = "other".into());
    has(Fact::Server, |s| s.server.version = "2".into());
    has(Fact::Connection, |s| s.connection = 2);
    has(Fact::Call, |s| s.args = r#"{"a":1}"#);
    has(Fact::Question, |s| tool_of(s, r#""idempotentHint":true"#, r#""title":"x""#));
}

#[test]
fn time_and_spelling_alone_change_nothing() {
    let same = |change: fn(&mut Scene)| assert_eq!(facts(change), []);
    same(|s| s.now = Time(900_000_000));
    same(|s| s.facts.judged.as_mut().unwrap().why = "claimed 90 s ago".into());
    // Beyond the stale limit a running row is presumed abandoned.
    same(|s| {
        let judged = s.facts.judged.as_mut().unwrap();
        (judged.state, judged.strength) = (State::Abandoned, Strength::Presumed);
    });
    same(|s| s.facts.ledger = LedgerView::Read(Time(7)));
    // To the gate they are the same.
    same(|s| s.facts.pairing = Pairing::Proven);
    same(|s| tool_of(s, r#""_meta":{"n":1}"#, r#""_meta":{"n":2}"#));
    same(|s| {
        tool_of(
            s,
            r#"{"request_id":{},"a":{"type":"string"}}"#,
            r#"{"a":{"type": "string"},"request_id":{}}"#,
        );
    });
}

#[test]
fn a_change_says_what_it_was_and_since_when() {
    let told = changed(|s| {
        row_of(s).status = "done".into();
        row_of(s).effects.push(effect("r", "x"));
        s.total = Some(6);
    });
    let words: Vec<&str> = told.iter().map(|(_, w)| w.as_str()).collect();
    let clock = Time(11_647_000_000).clock();
    assert_eq!(words[0], format!("done since {clock} (was running)"));
    assert_eq!(words[1], "effects of this request: 0 → 1");
    assert_eq!(words[2], "effects in all: 5 → 6");
}

#[test]
fn on_a_busy_ledger_the_second_answer_holds() {
    let mut scene = Scene::new();
    let first = scene.terms();
    scene.total = Some(6);
    let second = scene.terms().after(&first);
    assert_eq!((first.changes(&second, Time(0)), second.total), (vec![], Total::Moving));
    scene.total = Some(9);
    assert_eq!(second.changes(&scene.terms(), Time(0)), []);
    // Where the request's own effect is all that came, the number still holds.
    let mut scene = Scene::new();
    let first = scene.terms();
    row_of(&mut scene).effects.push(effect("r", "x"));
    scene.total = Some(6);
    assert_eq!(scene.terms().after(&first).total, Total::Known(6));
}

#[test]
fn a_rows_version_is_the_rows_own() {
    let version = |f: &Facts| row_version(f).unwrap();
    let base = Scene::new().facts;
    let v = version(&base);
    assert_eq!(v.len(), 16);
    assert_eq!(v, version_of("r", base.row.as_ref(), 0));
    let mut aged = base.clone();
    aged.judged = None;
    aged.row.as_mut().unwrap().rowid = 99;
    assert_eq!(version(&aged), v);
    for change in [
        |r: &mut Row| r.status = "done".into(),
        |r: &mut Row| r.owner = None,
        |r: &mut Row| r.owner = Some("null".into()),
        |r: &mut Row| r.claimed_at = None,
        |r: &mut Row| r.result = Some(String::new()),
        |r: &mut Row| r.args_hash = Some("x".into()),
        |r: &mut Row| r.effects.push(effect("r", "x")),
    ] {
        let mut other = base.clone();
        change(other.row.as_mut().unwrap());
        assert_ne!(version(&other), v);
    }
    let of = |tenant: &str, rows| {
        let mut one = base.clone();
        let tells = vec![("tenant".to_owned(), tenant.to_owned())];
        one.row.as_mut().unwrap().same = Some(Box::new(Same { rows, tells, ..Same::default() }));
        version(&one)
    };
    let rows = [of("acme", 2), of("globex", 2), of("acme", 3), v];
    assert_eq!(rows.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
    let gone = Facts { row: None, ..base.clone() };
    let loose = Facts { loose_effects: 1, ..gone.clone() };
    assert_ne!(version(&gone), version(&loose));
    assert_eq!(row_version(&Facts { ledger: LedgerView::None, ..base }), None);
}
