//! The gate's table row by row, for tools and for rows, and the text below it.

use super::super::facts::Twin;
use super::super::testing::{call, effect, row, says, t};
use super::super::{Observed, OwnerEnd, OwnerView, Rules, State, conclude, judge_row};
use super::*;
use crate::ledger::Row;

const NOW: f64 = 300.0;
const SCHEMA: &str = r#""inputSchema":{"properties":{"request_id":{},"title":{}}}"#;

fn tool(annotations: &str) -> Tool {
    Tool::parse(&format!(r#"{{"name":"create_ticket","annotations":{annotations},{SCHEMA}}}"#))
        .unwrap()
}

fn idempotent() -> Tool {
    tool(r#"{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true}"#)
}

#[test]
fn the_tools_part() {
    for (annotations, want) in [
        (r#"{"readOnlyHint":true}"#, Ask::None),
        (r#"{"readOnlyHint":true,"destructiveHint":false}"#, Ask::None),
        (r#"{"readOnlyHint":true,"idempotentHint":true}"#, Ask::None),
        (r#"{"readOnlyHint":true,"idempotentHint":false}"#, Ask::None),
        (r#"{"readOnlyHint":true,"destructiveHint":true}"#, Ask::Type),
        (r#"{"readOnlyHint":true,"destructiveHint":"no"}"#, Ask::Type),
        (r#"{"idempotentHint":true}"#, Ask::Preview),
        (r#"{"idempotentHint":true,"destructiveHint":true}"#, Ask::Preview),
        (r#"{"readOnlyHint":false,"idempotentHint":true}"#, Ask::Preview),
        (r#"{"readOnlyHint":1,"idempotentHint":true}"#, Ask::Type),
        (r#"{"idempotentHint":"yes"}"#, Ask::Type),
        (r#"{"idempotentHint":1}"#, Ask::Type),
        (r#"{"idempotentHint":false}"#, Ask::Type),
        (r#"{"idempotentHint":null}"#, Ask::Type),
        (r#"{"readOnlyHint":false}"#, Ask::Type),
        ("{}", Ask::Type),
        ("null", Ask::Type),
    ] {
        let got = tool_gate(Some(&tool(annotations)), true);
        assert_eq!(got.ask, want, "{annotations}: {}", got.why);
        assert_eq!(tool(annotations).only_reads(), want == Ask::None, "{annotations}");
        assert_eq!(
            tool_gate(Some(&tool(annotations)), false).ask,
            Ask::Type,
            "{annotations}, not all pages"
        );
    }
    let twice = Tool { listed_twice: true, ..tool(r#"{"readOnlyHint":true}"#) };
    assert_eq!((tool_gate(Some(&twice), true).ask, twice.only_reads()), (Ask::Type, false));
    assert_eq!(tool_gate(None, false).ask, Ask::Type);
}

/// Facts of a row claimed at 10 s, with the arguments' hash equal and the pairing consistent.
fn facts(status: &str, observed: bool, effects: usize) -> Facts {
    let r = row("r", status, "A", 10.0);
    let end =
        OwnerEnd::Seen(Observed { generation: 1, at: t(20.0), how: "signal 9 (SIGKILL)".into() });
    let judged = judge_row(
        &r,
        &OwnerView::default(),
        Rules::default(),
        observed.then_some(&end),
        None,
        t(NOW),
    );
    Facts {
        row: Some(Row { effects: vec![effect("r", "a"); effects], ..r }),
        judged: Some(judged),
        hash: HashCheck::Equal,
        ..no_row()
    }
}

fn no_row() -> Facts {
    Facts {
        request_id: "r".into(),
        ledger: LedgerView::Read(t(NOW)),
        has_effects_table: true,
        pairing: Pairing::Consistent,
        ..Facts::default()
    }
}

fn decide(tool: &Tool, f: &Facts, change: impl FnOnce(&mut GateFacts<'_>)) -> Decision {
    let finding = conclude(f, t(NOW));
    let mut g = GateFacts {
        name: &tool.name,
        tool: Some(tool),
        list_complete: true,
        hints: HintOverride::default(),
        request_id: Some("r"),
        facts: f,
        finding: &finding,
        earlier: Earlier::None,
        first_delivery: false,
        read_only_mode: false,
        now: t(NOW),
    };
    change(&mut g);
    gate(&g)
}

#[track_caller]
fn expect(f: &Facts, want: Ask, reason: &str) {
    let d = decide(&idempotent(), f, |_| {});
    assert_eq!((d.ask, &d.refused), (want, &None), "{:#?}", d.reasons);
    assert!(d.reasons[0].contains(reason), "{:?}", d.reasons);
    assert_eq!(d.confirm, "r");
    // The stricter of the two decides: without a hint it is `type`, whatever the row says.
    assert_eq!(decide(&tool("{}"), f, |_| {}).ask, Ask::Type);
}

#[test]
fn an_idempotent_tool_is_previewed_where_everything_agrees() {
    expect(&facts("done", false, 1), Ask::Preview, "idempotent");
    expect(&facts("running", true, 0), Ask::Preview, "idempotent");
    let proven = Facts { pairing: Pairing::Proven, ..facts("done", false, 1) };
    expect(&proven, Ask::Preview, "idempotent");
    expect(&no_row(), Ask::Preview, "idempotent");
}

#[test]
fn what_is_not_certain_asks() {
    let done = || facts("done", false, 1);
    expect(&Facts { hash: HashCheck::NotChecked, ..done() }, Ask::Ask, "hash can't be checked");
    expect(&Facts { pairing: Pairing::Unproven, ..done() }, Ask::Ask, "writes this ledger");
    let none = Facts { ledger: LedgerView::None, ..no_row() };
    expect(&none, Ask::Ask, "no ledger");
    let locked = Facts { ledger: LedgerView::Unreadable("locked".into()), ..no_row() };
    expect(&locked, Ask::Ask, "can't be read");
    // stalled, then working.
    expect(&facts("running", false, 0), Ask::Ask, "may be alive");
    let mut working = facts("running", false, 0);
    if let Some(j) = working.judged.as_mut() {
        j.state = State::Running;
    }
    expect(&working, Ask::Ask, "may be alive");
    if let Some(row) = working.row.as_mut() {
        row.effects = vec![effect("r", "a")];
    }
    expect(&working, Ask::Ask, "an effect of this request exists");
    let lost = Facts { calls: vec![call("r", 1, 9.0).unknown(20.0)], ..no_row() };
    expect(&lost, Ask::Ask, "earlier call");
    expect(&facts("done", false, 0), Ask::Ask, "done without effect");
    expect(&facts("running", true, 1), Ask::Ask, "abandoned with effect");
    let no_key = Tool { takes_request_id: false, ..idempotent() };
    let d = decide(&no_key, &done(), |_| {});
    assert_eq!((d.ask, d.reasons[0].contains("no request_id argument")), (Ask::Ask, true));
}

#[test]
fn what_may_run_the_work_twice_must_be_typed() {
    let twin = Twin { request_id: "twin".into(), state: State::Done };
    expect(
        &Facts { twins: vec![twin], ..facts("running", true, 0) },
        Ask::Type,
        "suspect duplicate",
    );
    let differs = Facts { hash: HashCheck::DiffersUnproven, ..facts("done", false, 1) };
    expect(&differs, Ask::Type, "a recipe nothing has proven");
    let old = Facts { calls: vec![call("r", 1, -4000.0).unknown(-3990.0)], ..no_row() };
    expect(&old, Ask::Type, "old request_id without a row");
    expect(&Facts { loose_effects: 1, purged: true, ..no_row() }, Ask::Type, "old request_id");
    let d = decide(&idempotent(), &no_row(), |g| g.earlier = Earlier::Sometime);
    assert_eq!(d.ask, Ask::Type);
    let d = decide(&idempotent(), &no_row(), |g| g.earlier = Earlier::At(t(NOW - 60.0)));
    assert_eq!(d.ask, Ask::Ask);
    // A call that provably never arrived leaves the request unused.
    let never = Facts { calls: vec![call("r", 1, -4000.0).not_sent(-4000.0)], ..no_row() };
    expect(&never, Ask::Preview, "idempotent");
}

#[test]
fn other_arguments_and_another_ledger_are_refused() {
    let conflict = Facts { hash: HashCheck::DiffersProven, ..facts("done", false, 1) };
    let mismatch = Facts { pairing: Pairing::Contradicted, ..facts("done", false, 1) };
    for tool in [idempotent(), tool("{}")] {
        let d = decide(&tool, &conflict, |_| {});
        assert!(matches!(d.refused, Some(Refusal::Conflict(_))) && !d.passes(Some("r")));
        let d = decide(&tool, &mismatch, |_| {});
        assert!(matches!(&d.refused, Some(Refusal::Mismatch(_))));
    }
    // A look-up must still be possible, or nobody could find out.
    let look_up = decide(&tool(r#"{"readOnlyHint":true}"#), &mismatch, |_| {});
    assert!(look_up.passes(None));
}

#[test]
fn only_the_exact_word_confirms() {
    let d = decide(&tool("{}"), &facts("done", false, 1), |_| {});
    assert!(!d.passes(None) && !d.passes(Some("R")) && !d.passes(Some("")) && d.passes(Some("r")));
    let d = decide(&tool("{}"), &no_row(), |g| g.request_id = None);
    assert_eq!(d.confirm, "create_ticket");
    assert!(d.passes(Some("create_ticket")) && !d.passes(None));
}

#[test]
fn read_only_mode_stops_all_but_read_only_tools() {
    let f = no_row();
    for (annotations, stopped) in [
        (r#"{"readOnlyHint":true}"#, false),
        (r#"{"idempotentHint":true}"#, true),
        (r#"{"readOnlyHint":true,"destructiveHint":true}"#, true),
    ] {
        for first_delivery in [false, true] {
            let d = decide(&tool(annotations), &f, |g| {
                g.read_only_mode = true;
                g.first_delivery = first_delivery;
            });
            assert_eq!(matches!(d.refused, Some(Refusal::ReadOnly(_))), stopped, "{annotations}");
        }
    }
}

#[test]
fn a_first_delivery_is_sent_unless_the_ledger_has_it() {
    let first = |g: &mut GateFacts<'_>| g.first_delivery = true;
    assert!(decide(&tool("{}"), &no_row(), first).passes(None));
    let d = decide(&tool("{}"), &facts("done", false, 1), first);
    assert_eq!((d.ask, d.passes(None), d.passes(Some("r"))), (Ask::Type, false, true));
    assert_eq!(decide(&idempotent(), &facts("done", false, 1), first).ask, Ask::Preview);
}

#[test]
fn a_tool_that_a_complete_list_lacks_is_not_called() {
    for first_delivery in [false, true] {
        let d = decide(&idempotent(), &no_row(), |g| {
            g.tool = None;
            g.first_delivery = first_delivery;
        });
        assert!(matches!(&d.refused, Some(Refusal::NoSuchTool(_))));
    }
    let d = decide(&idempotent(), &no_row(), |g| {
        g.tool = None;
        g.list_complete = false;
    });
    assert_eq!((d.ask, d.refused), (Ask::Type, None));
}

#[test]
fn the_configuration_overrules_hints() {
    let f = facts("done", false, 1);
    let with = |tool: &Tool, hints| decide(tool, &f, |g| g.hints = hints).ask;
    let yes = HintOverride { idempotent: Some(true), ..HintOverride::default() };
    let no = HintOverride { idempotent: Some(false), ..HintOverride::default() };
    let reads = HintOverride { read_only: Some(true), ..HintOverride::default() };
    let writes = HintOverride { read_only: Some(false), ..HintOverride::default() };
    assert_eq!(with(&tool("{}"), yes), Ask::Preview);
    assert_eq!(with(&tool(r#"{"idempotentHint":"yes"}"#), yes), Ask::Preview);
    assert_eq!(with(&idempotent(), no), Ask::Type);
    assert_eq!(with(&tool(r#"{"destructiveHint":true}"#), reads), Ask::None);
    assert_eq!(with(&tool(r#"{"readOnlyHint":true}"#), writes), Ask::Type);
    let twice = Tool { listed_twice: true, ..tool("{}") };
    assert_eq!(
        (with(&twice, HintOverride::default()), with(&twice, yes)),
        (Ask::Type, Ask::Preview)
    );
}

#[test]
fn the_project_s_word_only_makes_it_stricter() {
    let f = facts("done", false, 1);
    let with = |tool: &Tool, project| {
        decide(tool, &f, |g| g.hints = HintOverride { project, ..HintOverride::default() })
    };
    let base = ProjectHints::default();
    let not_idempotent = ProjectHints { not_idempotent: true, ..base };
    let writes = ProjectHints { not_read_only: true, ..base };
    let breaks = ProjectHints { destructive: true, ..base };
    assert_eq!(with(&idempotent(), not_idempotent).ask, Ask::Type);
    let reads = tool(r#"{"readOnlyHint":true}"#);
    assert_eq!(with(&reads, writes).ask, Ask::Type);
    assert_eq!(with(&reads, breaks).ask, Ask::Type);
    // Taken by itself this would lift the contradiction.
    let odd = tool(r#"{"readOnlyHint":true,"destructiveHint":true,"idempotentHint":true}"#);
    assert_eq!(with(&odd, writes).ask, Ask::Type);
    let twice = Tool { listed_twice: true, ..reads };
    assert_eq!(with(&twice, not_idempotent).ask, Ask::Type);
    let d = with(&tool("{}"), ProjectHints { ignored: true, ..base });
    assert!(d.ask == Ask::Type && d.reasons.iter().any(|r| r.contains("not heard")), "{d:?}");
}

#[test]
fn the_dialog_tells_what_is_known() {
    let f = Facts { server_says: Some(says("done", NOW - 60.0)), ..facts("done", false, 1) };
    let d = decide(&tool("{}"), &f, |_| {});
    let all = d.tells.join("\n");
    for part in [
        "ledger: done (stored)",
        &format!("last look-up: done, at {}", t(NOW - 60.0).clock()),
        "effects of this request: 1",
        "twice",
    ] {
        assert!(all.contains(part), "{all}");
    }
    let d = decide(&tool("{}"), &Facts { ledger: LedgerView::None, ..no_row() }, |_| {});
    assert!(d.tells.join("\n").contains("the work may run twice"));
}

#[test]
fn a_first_delivery_beside_a_ledger_that_cannot_be_read_is_asked_about() {
    let f = Facts { ledger: LedgerView::Unreadable("locked".into()), ..no_row() };
    let finding = conclude(&f, t(NOW));
    let tool = idempotent();
    let ask = |request_id| {
        let facts = GateFacts {
            name: "create_ticket",
            tool: Some(&tool),
            list_complete: true,
            hints: HintOverride::default(),
            request_id,
            facts: &f,
            finding: &finding,
            earlier: Earlier::None,
            first_delivery: true,
            read_only_mode: false,
            now: t(NOW),
        };
        gate(&facts).ask
    };
    assert_eq!((ask(Some("r")), ask(None)), (Ask::Ask, Ask::None));
}

#[test]
fn a_tool_whose_definition_is_not_kept_is_the_most_careful_one_whoever_says_otherwise() {
    let reads = Tool { not_kept: Some(1 << 20), ..tool(r#"{"readOnlyHint":true}"#) };
    let gate = tool_gate(Some(&reads), true);
    assert_eq!(gate.ask, Ask::Type);
    assert!(gate.why.contains("did not keep its definition (1 MiB)"), "{}", gate.why);
    let own = HintOverride { read_only: Some(true), ..HintOverride::default() };
    assert_eq!(tool_gate(Some(&own.apply(&reads)), true).ask, Ask::Type);
}
