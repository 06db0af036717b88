//! Each row of the design's verdict table by hand, with the exact list and the next step.

use super::super::facts::Twin;
use super::super::testing::{call, effect, row, says, t};
use super::super::{GoesOn, Judged, Observed, OwnerEnd, OwnerView, Rules, judge_row};
use super::Verdict::*;
use super::*;
use crate::journal::{AnswerStatus, Call, Outcome};
use crate::words::{DELIVER, REPEAT, next_step_in};

const NOW: f64 = 300.0;

/// A ledger that was read just now and has no row.
fn read() -> Facts {
    Facts {
        request_id: "r".into(),
        ledger: LedgerView::Read(t(NOW)),
        has_effects_table: true,
        ..Facts::default()
    }
}

/// The same, and it is this server's.
fn paired() -> Facts {
    Facts { pairing: Pairing::Consistent, ..read() }
}

fn dead() -> Observed {
    Observed { generation: 1, at: t(20.0), how: "signal 9 (SIGKILL)".into() }
}

/// A row claimed at 10 s, judged by itself.
fn with_row(status: &str, effects: usize, observed: bool, now: f64) -> Facts {
    let r = row("r", status, "A", 10.0);
    let end = OwnerEnd::Seen(dead());
    let judged = judge_row(
        &r,
        &OwnerView::default(),
        Rules::default(),
        observed.then_some(&end),
        None,
        t(now),
    );
    let row = crate::ledger::Row { effects: vec![effect("r", "a"); effects], ..r };
    Facts { row: Some(row), judged: Some(judged), ..read() }
}

fn twin(state: State) -> Twin {
    Twin { request_id: "twin-1".into(), state }
}

fn sent() -> Call {
    call("r", 1, 9.0)
}

/// The next step in words, with times as UTC has them.
fn next_utc(f: &Facts, now: f64) -> String {
    let utc = |at: Time| at.rfc3339()[11..19].to_owned();
    next_step_in(&conclude(f, t(now)).next, t(now), &utc)
}

#[track_caller]
fn expect(f: &Facts, verdicts: &[Verdict], next: &str) {
    let got = conclude(f, t(NOW));
    assert_eq!(got.verdicts, verdicts, "{f:#?}");
    let said = next_utc(f, NOW);
    assert!(said.contains(next), "next: {said:?}, wanted {next:?}");
    assert!(!got.evidence.is_empty());
}

#[test]
fn the_top_of_the_table() {
    expect(&with_row("done", 2, false, NOW), &[Duplicate, Finished], "nothing to repeat");
    let f = Facts { pairing: Pairing::Contradicted, ..with_row("done", 1, false, NOW) };
    expect(&f, &[EndpointMismatch, Finished], "attach");
    let f = Facts { hash: HashCheck::DiffersProven, ..with_row("done", 1, false, NOW) };
    expect(&f, &[Conflict, Finished], "nothing to repeat");
    let f = Facts { hash: HashCheck::DiffersUnproven, ..with_row("done", 1, false, NOW) };
    expect(&f, &[Finished], "nothing to do");
    expect(&with_row("done", 0, false, NOW), &[DoneWithoutEffect], "do not repeat");
    let f = Facts { has_effects_table: false, ..with_row("done", 0, false, NOW) };
    expect(&f, &[Finished], "a repeat returns the stored result");
    expect(&Facts { loose_effects: 1, ..read() }, &[EffectWithoutRequest], "do not repeat");
    expect(
        &Facts { loose_effects: 2, ..read() },
        &[Duplicate, EffectWithoutRequest],
        "nothing to repeat",
    );
    expect(&Facts { loose_effects: 1, purged: true, ..read() }, &[RequestPurged], "do not repeat");
    let f = Facts { calls: vec![sent().ok(12.0, AnswerStatus::Done)], ..read() };
    expect(&f, &[AnsweredWithoutRow], "do not repeat");
}

#[test]
fn suspect_pairs_never_lead_to_finishing_both() {
    let f = Facts { twins: vec![twin(State::Done)], ..with_row("running", 0, true, NOW) };
    expect(
        &f,
        &[SuspectDuplicate, Abandoned],
        "twin-1 has the same arguments and is done: it did this already; do not finish this one",
    );
    let f = Facts {
        twins: vec![twin(State::Running), twin(State::Done)],
        ..with_row("running", 0, true, NOW)
    };
    expect(&f, &[SuspectDuplicate, Abandoned], "do not finish this one");
    let f = Facts { twins: vec![twin(State::Done)], ..with_row("done", 1, false, NOW) };
    expect(
        &f,
        &[SuspectDuplicate, Finished],
        "look at the pair: twin-1 has the same arguments and is done too",
    );
    let f = Facts { twins: vec![twin(State::Abandoned)], ..with_row("done", 1, false, NOW) };
    expect(&f, &[SuspectDuplicate, Finished], "do not finish that one");
    let f = Facts { twins: vec![twin(State::Abandoned)], ..with_row("running", 0, true, NOW) };
    expect(&f, &[SuspectDuplicate, Abandoned], "look at the pair");
}

#[test]
fn running_rows() {
    expect(&with_row("running", 1, true, NOW), &[AbandonedWithEffect], "do not repeat blindly");
    expect(&with_row("running", 1, false, NOW), &[AbandonedWithEffect], "do not repeat blindly");
    expect(&with_row("running", 0, true, NOW), &[Abandoned], REPEAT);
    let f = Facts { has_effects_table: false, ..with_row("running", 0, true, NOW) };
    expect(&f, &[Abandoned], "look whether there is one, then repeat");
    expect(
        &with_row("running", 0, false, NOW),
        &[Stalled],
        "may still be working; the server lets a repeat take over since 02:59:10, if its limit is 120 s",
    );
    expect(
        &with_row("running", 0, false, 22.0),
        &[Working],
        "take over from 02:59:10, if its limit is 120 s; a restarted server at once",
    );
    expect(
        &with_row("running", 1, false, 22.0),
        &[Working],
        "do not repeat blindly, look at the effect",
    );
    // The ledger's own word, and nothing that was judged.
    let stored = with_row("abandoned", 0, false, NOW);
    expect(&stored, &[Stalled], "the ledger's own word is 'abandoned'");
    assert!(!next_utc(&stored, NOW).contains("still be working"));
    // Of a table that is not the reference's nobody knows what a repeat does.
    for now in [22.0, NOW] {
        let mut f = with_row("running", 0, false, now);
        f.row.as_mut().unwrap().takes_over = false;
        f.judged = f
            .row
            .as_ref()
            .map(|r| judge_row(r, &OwnerView::default(), Rules::default(), None, None, t(now)));
        let next = next_utc(&f, now);
        assert!(next.contains("that server's own rule") && !next.contains("take over"), "{next}");
    }
    let mut none = with_row("", 0, false, NOW);
    none.judged.as_mut().unwrap().state = State::Unmapped(String::new());
    expect(&none, &[Unmapped], "its row holds no status (NULL or empty)");
    expect(&with_row("abandoned", 0, true, NOW), &[Abandoned], REPEAT);
}

#[test]
fn a_worker_that_its_owner_left_behind_may_still_work() {
    let end = GoesOn {
        generation: 1,
        at: t(20.0),
        how: "signal 9 (SIGKILL)".into(),
        left: vec![crate::procs::Process { pid: 4711, name: "worker.py".into() }],
    };
    let r = row("r", "running", "A", 10.0);
    let owner = OwnerEnd::GoesOn(end.clone());
    let (owners, rules) = (OwnerView::default(), Rules::default());
    let judged = judge_row(&r, &owners, rules, Some(&owner), None, t(22.0));
    assert_eq!(judged.strength, Strength::Presumed);
    assert!(judged.why.contains(r#"(pid 4711, "worker.py") goes on"#), "{}", judged.why);
    let f = Facts {
        row: Some(r),
        judged: Some(judged),
        owner_goes_on: Some(end.clone()),
        left_behind: vec![end],
        ..read()
    };
    expect(
        &f,
        &[Stalled],
        r#"may still be working: its owner ended, but a process it started (pid 4711"#,
    );
    // Without a row it may still claim it.
    let f = Facts { row: None, judged: None, calls: vec![sent().unknown(20.0)], ..f };
    expect(&f, &[InFlight], "wait");
}

#[test]
fn a_takeover_long_ago_has_its_date() {
    let f = with_row("running", 0, false, 90_000.0);
    let next = next_utc(&f, 90_000.0);
    assert!(next.contains("since 2026-11-29T02:59:10.000Z, if"), "{next}");
}

#[test]
fn no_row_and_calls() {
    let error = sent().settle(12.0, Outcome::ToolError, "the tool answered with an error: boom");
    let f = Facts { calls: vec![error.clone()], row_vanished_at: Some(t(11.0)), ..paired() };
    expect(&f, &[Released], "fix the cause of the error, then repeat with the same request_id");
    // A row that was done was swept: an error, whenever it came, has not taken it back.
    for calls in [vec![error.clone()], vec![sent().not_sent(9.0)], vec![sent().unknown(20.0)]] {
        let swept = Facts { calls, was_done: true, ..f.clone() };
        let last = conclude(&swept, t(NOW));
        assert!(matches!(last.verdicts[..], [OutcomeUnknown | InFlight]), "{last:?}");
        if last.verdicts == [OutcomeUnknown] {
            expect(&swept, &[OutcomeUnknown], "do not repeat: its row was done");
        }
    }
    let elsewhere = Facts { calls: vec![sent().not_sent(9.0)], ..f.clone() };
    expect(&elsewhere, &[OutcomeUnknown], "look it up by other means");
    let nobody = Facts { calls: vec![], was_done: true, ..f.clone() };
    expect(&nobody, &[NotKnown], "do not repeat: its row was done");
    let f = Facts { loose_effects: 1, ..f };
    expect(&f, &[EffectWithoutRequest, Released], "do not repeat");
    let f = Facts { calls: vec![error.clone()], ..paired() };
    expect(&f, &[Rejected], "fix the call: the tool answered with an error: boom; no row");
    let rpc = sent().settle(12.0, Outcome::RpcError, "JSON-RPC error -32602");
    expect(
        &Facts { calls: vec![rpc], ..paired() },
        &[Rejected],
        "fix the call: JSON-RPC error -32602",
    );
    let lost =
        Facts { calls: vec![sent().unknown(20.0)], ended_generations: vec![dead()], ..paired() };
    expect(&lost, &[NoClaim], REPEAT);
    expect(&Facts { calls: vec![sent().not_sent(9.0)], ..paired() }, &[NeverArrived], DELIVER);
    let refused = sent().settle(9.5, Outcome::Refused, "HTTP 401");
    expect(&Facts { calls: vec![refused.clone()], ..paired() }, &[NeverArrived], DELIVER);
    expect(&Facts { calls: vec![sent()], ..paired() }, &[InFlight], "wait");
    expect(&Facts { calls: vec![sent().unknown(20.0)], ..paired() }, &[InFlight], "wait");
    // An attempt that never left does not hide one that may be under way, nor an error one that was lost.
    expect(&Facts { calls: vec![sent(), refused], ..paired() }, &[InFlight], "wait");
    expect(&Facts { calls: vec![sent().unknown(20.0), error], ..lost }, &[NoClaim], REPEAT);
    expect(&paired(), &[NotKnown], "no row proves nothing about an old request_id");
}

#[test]
fn a_strangers_ledger_says_nothing_by_having_no_row() {
    let error = sent().settle(12.0, Outcome::ToolError, "the tool answered with an error: boom");
    for pairing in [Pairing::Unproven, Pairing::Contradicted] {
        let strange = || Facts { pairing, ..read() };
        let last = |f: &Facts| conclude(f, t(NOW)).verdicts.last().cloned();
        let f = Facts { calls: vec![error.clone()], ..strange() };
        assert_eq!(last(&f), Some(OutcomeUnknown));
        let gone = Facts { row_vanished_at: Some(t(11.0)), ..f };
        assert_eq!(last(&gone), Some(OutcomeUnknown));
        let ends = vec![dead()];
        let lost =
            Facts { calls: vec![sent().unknown(20.0)], ended_generations: ends, ..strange() };
        assert_eq!(last(&lost), Some(OutcomeUnknown));
    }
    let f = Facts { calls: vec![error], ..read() };
    expect(
        &f,
        &[OutcomeUnknown],
        "answered with an error: boom; this ledger may not be the server's",
    );
    let said = conclude(&f, t(NOW)).evidence;
    assert!(said.iter().any(|e| e.text.starts_with("this ledger may not be the server's")));
}

#[test]
fn a_missing_row_proves_nothing_once_it_may_have_been_swept() {
    let old = call("r", 1, -4000.0).unknown(-3990.0);
    let end = Observed { at: t(-3990.0), ..dead() };
    let f = Facts { calls: vec![old.clone()], ended_generations: vec![end], ..read() };
    expect(&f, &[OutcomeUnknown], "may have been swept");
    expect(&Facts { calls: vec![old], ..read() }, &[OutcomeUnknown], "may have been swept");
}

#[test]
fn a_ledger_read_before_the_news_says_nothing_about_it() {
    let early = Facts { ledger: LedgerView::Read(t(11.0)), ..read() };
    let done = Facts { calls: vec![sent().ok(12.0, AnswerStatus::Done)], ..early.clone() };
    expect(&done, &[Finished], "it was answered, and without an error");
    let lost =
        Facts { calls: vec![sent().unknown(20.0)], ended_generations: vec![dead()], ..early };
    expect(&lost, &[OutcomeUnknown], "look it up by other means");
}

#[test]
fn no_ledger() {
    let none = || Facts { request_id: "r".into(), ..Facts::default() };
    let with = |c: Call| Facts { calls: vec![c], ..none() };
    expect(&none(), &[NotKnown], "attach the ledger");
    expect(&with(sent()), &[InFlight], "wait");
    expect(&with(sent().unknown(20.0)), &[OutcomeUnknown], "look it up by other means");
    expect(
        &with(sent().ok(12.0, AnswerStatus::Done)),
        &[Finished],
        "it was answered, and without an error",
    );
    expect(&with(sent().ok(12.0, AnswerStatus::InProgress)), &[Working], "wait");
    expect(&with(sent().ok(12.0, AnswerStatus::Unknown)), &[OutcomeUnknown], "look it up");
    let error = sent().settle(12.0, Outcome::ToolError, "boom");
    expect(&with(error), &[Rejected], "without a ledger nobody can see");
    expect(&with(sent().not_sent(9.0)), &[NeverArrived], DELIVER);
    let locked = Facts {
        ledger: LedgerView::Unreadable("locked for 12 s".into()),
        ..with(sent().unknown(20.0))
    };
    expect(&locked, &[OutcomeUnknown], "read the ledger again");
    // The server's own look-up, if it is newer than the call.
    for (word, want) in [
        ("done", Finished),
        ("running", Working),
        ("abandoned", Stalled),
        ("unknown", OutcomeUnknown),
    ] {
        let f = Facts { server_says: Some(says(word, 30.0)), ..with(sent().unknown(20.0)) };
        expect(&f, &[want], "");
    }
    let stale = Facts { server_says: Some(says("done", 5.0)), ..with(sent().unknown(20.0)) };
    expect(&stale, &[OutcomeUnknown], "");
}

#[test]
fn a_foreign_ledgers_own_words() {
    for (word, want) in [
        ("failed", Failed),
        ("waiting", Waiting),
        ("canceled", Cancelled),
        ("expired", Expired),
        ("wat", Unmapped),
    ] {
        expect(&with_row(word, 0, false, NOW), std::slice::from_ref(&want), "");
        expect(&with_row(word, 2, false, NOW), &[Duplicate, want], "nothing to repeat");
    }
    expect(&with_row("wat", 0, false, NOW), &[Unmapped], "'wat'");
    expect(&with_row("failed", 1, false, NOW), &[Failed], "do not repeat blindly");
}

#[test]
fn an_error_without_a_word_rejects_nothing() {
    for (content, want) in
        [("[]", InFlight), (r#"[{"type":"text","text":"no such tool"}]"#, Rejected)]
    {
        let mut c = sent().settle(12.0, Outcome::ToolError, "the tool answered with an error");
        let result = format!(r#"{{"isError":true,"content":{content}}}"#);
        c.settled.as_mut().unwrap().result = Some(result.into());
        let f = Facts { calls: vec![c], ..paired() };
        assert_eq!(conclude(&f, t(NOW)).verdicts, [want], "{content}");
    }
}

#[test]
fn an_answer_of_done_forbids_a_repeat_whatever_the_row_says() {
    let f = Facts {
        calls: vec![sent().ok(12.0, AnswerStatus::Done)],
        ..with_row("running", 0, true, NOW)
    };
    expect(&f, &[EndpointMismatch, Abandoned], "an answer said that it is done");
    // Nor does it matter that the ledger was read before the answer came: nothing has changed in it since.
    let f = Facts { ledger: LedgerView::Read(t(11.0)), ..f };
    expect(&f, &[EndpointMismatch, Abandoned], "do not repeat");
    // The server's own look-up, whenever the ledger was read.
    for read_at in [35.0, NOW] {
        let f = Facts {
            ledger: LedgerView::Read(t(read_at)),
            server_says: Some(says("done", 40.0)),
            ..with_row("running", 0, false, 60.0)
        };
        let want = "the server says that it is done, the ledger does not: do not repeat";
        expect(&f, &[EndpointMismatch, Working], want);
    }
    // Where the ledger has no row at all.
    let f = Facts { server_says: Some(says("done", 40.0)), ..read() };
    expect(&f, &[AnsweredWithoutRow], "do not repeat");
    // But an answer from before this claim was about an earlier life of the row.
    let f = Facts {
        calls: vec![call("r", 1, 2.0).ok(3.0, AnswerStatus::Done)],
        ..with_row("running", 0, true, NOW)
    };
    expect(&f, &[Abandoned], REPEAT);
}

#[test]
fn evidence_names_its_source_time_and_strength() {
    let f = Facts {
        calls: vec![sent().unknown(20.0)],
        ended_generations: vec![dead()],
        server_says: Some(says("abandoned", 40.0)),
        pairing: Pairing::Consistent,
        ..with_row("running", 0, true, NOW)
    };
    let e = conclude(&f, t(NOW)).evidence;
    let line = |source: &str| e.iter().find(|l| l.source == source).unwrap();
    assert_eq!(
        (line("ledger").at, line("ledger").strength),
        (Some(t(10.0)), Some(Strength::Observed))
    );
    assert!(line("wire").text.contains("unknown") && line("wire").at == Some(t(20.0)));
    assert!(line("exit").text.contains("signal 9 (SIGKILL)"));
    assert_eq!(line("server").strength, Some(Strength::ServerSays));
    assert!(line("pairing").text.contains("agree"));
}

#[test]
fn judged_rows_without_a_judgement_are_never_done() {
    let f = Facts { judged: None::<Judged>, ..with_row("done", 1, false, NOW) };
    expect(&f, &[Unmapped], "does not count as done");
}
