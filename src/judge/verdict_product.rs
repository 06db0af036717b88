//! Every combination of witnesses that can occur, and what must hold for each of them.

use super::super::Observed;
use super::super::facts::Twin;
use super::super::next::{Act, NextStep};
use super::super::testing::{call, effect, row, t};
use super::super::words::Judged;
use super::*;
use crate::journal::{AnswerStatus, Call, Outcome};
use crate::ledger::Row;
use crate::words::{DELIVER, REPEAT, next_step_in};

const NOW: f64 = 300.0;

fn judgements() -> Vec<(&'static str, State, Strength)> {
    use {State::*, Strength::*};
    let mut all = vec![
        ("running", Running, Stored),
        ("running", Running, ServerSays),
        ("running", Abandoned, Presumed),
        ("running", Abandoned, ServerSays),
        ("running", Abandoned, Observed),
        ("abandoned", Abandoned, Stored),
        ("abandoned", Abandoned, Observed),
        ("done", Done, Stored),
    ];
    for (word, state) in
        [("waiting", Waiting), ("failed", Failed), ("cancelled", Cancelled), ("expired", Expired)]
    {
        all.push((word, state, Stored));
    }
    all.push(("wat", Unmapped("wat".into()), Stored));
    all
}

/// Where the ledger stands: not asked, silent (never a row, one that vanished, effects left), or a row.
fn ledgers() -> Vec<Facts> {
    let blank = Facts { request_id: "r".into(), ..Facts::default() };
    let read = Facts { ledger: LedgerView::Read(t(NOW)), has_effects_table: true, ..blank.clone() };
    let mut out = vec![
        blank.clone(),
        Facts { ledger: LedgerView::Unreadable("locked".into()), ..blank },
        Facts { has_effects_table: false, ..read.clone() },
    ];
    for loose in 0..=2 {
        for purged in [false, true] {
            for gone in [None, Some(t(100.0))] {
                if !purged || loose > 0 {
                    out.push(Facts {
                        loose_effects: loose,
                        purged,
                        row_vanished_at: gone,
                        ..read.clone()
                    });
                }
            }
        }
    }
    for (word, state, strength) in judgements() {
        for effects in 0..=2 {
            for (table, takeover) in [(true, None), (true, Some(t(130.0))), (false, None)] {
                if effects > 0 && !table {
                    continue;
                }
                let judged = Judged {
                    state: state.clone(),
                    strength,
                    why: "why".into(),
                    judge_again_at: None,
                    takeover: takeover.map(|at| crate::judge::words::Takeover {
                        at,
                        limit_s: Some(120.0),
                        known: effects == 0,
                        by_word: false,
                    }),
                    skew_s: None,
                    seal: Seal,
                };
                let row =
                    Row { effects: vec![effect("r", "a"); effects], ..row("r", word, "A", 10.0) };
                out.push(Facts {
                    row: Some(row),
                    judged: Some(judged),
                    has_effects_table: table,
                    ..read.clone()
                });
            }
        }
    }
    out
}

fn calls() -> Vec<(Vec<Call>, Vec<Observed>)> {
    let sent = || call("r", 1, 9.0);
    let old = || call("r", 1, -9000.0);
    let end = Observed { generation: 1, at: t(20.0), how: "signal 9 (SIGKILL)".into() };
    let ended = |c: Call| (vec![c], vec![end.clone()]);
    let alive = |c: Call| (vec![c], vec![]);
    let error = |o| sent().settle(12.0, o, "boom");
    vec![
        (vec![], vec![]),
        alive(sent()),
        alive(sent().unknown(20.0)),
        ended(sent().unknown(20.0)),
        alive(old().unknown(-8000.0)),
        ended(old().unknown(-8000.0)),
        alive(sent().ok(12.0, AnswerStatus::Done)),
        ended(sent().ok(12.0, AnswerStatus::Done)),
        alive(sent().ok(12.0, AnswerStatus::InProgress)),
        ended(sent().ok(12.0, AnswerStatus::InProgress)),
        alive(sent().ok(12.0, AnswerStatus::Unknown)),
        alive(error(Outcome::ToolError)),
        alive(error(Outcome::RpcError)),
        alive(sent().not_sent(9.0)),
        alive(error(Outcome::Refused)),
        // Two attempts: the first lost with its server, the second answered, refused or still open.
        (vec![sent().unknown(20.0), call("r", 2, 30.0)], vec![end.clone()]),
        (
            vec![sent().unknown(20.0), call("r", 2, 30.0).settle(31.0, Outcome::ToolError, "x")],
            vec![end.clone()],
        ),
        (
            vec![sent().unknown(20.0), call("r", 2, 30.0).ok(31.0, AnswerStatus::Done)],
            vec![end.clone()],
        ),
        (vec![sent().unknown(20.0), call("r", 2, 30.0).not_sent(30.0)], vec![end]),
    ]
}

fn every_fact(mut visit: impl FnMut(&Facts)) -> usize {
    let twin = |state| Twin { request_id: "twin".into(), state };
    let twins = [
        vec![],
        vec![twin(State::Done)],
        vec![twin(State::Running)],
        vec![twin(State::Running), twin(State::Done)],
    ];
    let words = [None, Some("done"), Some("running"), Some("abandoned"), Some("unknown")];
    let mut n = 0;
    for ledger in ledgers() {
        for (calls, ends) in calls() {
            for twins in &twins {
                for hash in [
                    HashCheck::NotChecked,
                    HashCheck::Equal,
                    HashCheck::DiffersProven,
                    HashCheck::DiffersUnproven,
                ] {
                    if hash != HashCheck::NotChecked && ledger.row.is_none() {
                        continue;
                    }
                    for pairing in [
                        Pairing::Unproven,
                        Pairing::Consistent,
                        Pairing::Proven,
                        Pairing::Contradicted,
                    ] {
                        for word in words {
                            let facts = Facts {
                                calls: calls.clone(),
                                ended_generations: ends.clone(),
                                twins: twins.clone(),
                                hash,
                                pairing,
                                server_says: word.map(|w| super::super::testing::says(w, 40.0)),
                                ..ledger.clone()
                            };
                            visit(&facts);
                            n += 1;
                        }
                    }
                }
            }
        }
    }
    n
}

/// What forbids a repeat.
fn forbids(facts: &Facts, v: &Verdict) -> bool {
    match v {
        Verdict::SuspectDuplicate => facts.twins.iter().any(|t| t.state == State::Done),
        Verdict::Duplicate
        | Verdict::EndpointMismatch
        | Verdict::Conflict
        | Verdict::DoneWithoutEffect
        | Verdict::EffectWithoutRequest
        | Verdict::AnsweredWithoutRow
        | Verdict::RequestPurged
        | Verdict::AbandonedWithEffect
        | Verdict::Finished => true,
        _ => false,
    }
}

#[test]
fn what_must_hold_for_every_combination() {
    let warnings = [
        Verdict::Duplicate,
        Verdict::EndpointMismatch,
        Verdict::Conflict,
        Verdict::SuspectDuplicate,
    ];
    let n = every_fact(|f| {
        let got = conclude(f, t(NOW));
        let v = &got.verdicts;
        let has = |x: &Verdict| v.contains(x);
        let why = || format!("{got:#?}\n{f:#?}");

        // Ranked, without repeats, and always one that says where the request stands.
        assert!(v.windows(2).all(|w| w[0] < w[1]), "{}", why());
        assert!(v.iter().any(|x| !warnings.contains(x)), "{}", why());
        let said = next_step_in(&got.next, t(NOW), &|at| at.rfc3339());
        assert!(!said.is_empty() && !got.evidence.is_empty(), "{}", why());
        // What is done for a step is what its words say.
        let suggests = got.next.act() == Some(Act::Send);
        assert_eq!(suggests, said.contains(REPEAT) || said.contains(DELIVER), "{}", why());

        // The warnings are there exactly when their witness is.
        let effects = f.row.as_ref().map_or(f.loose_effects, |r| r.effects.len() as u64);
        assert_eq!(has(&Verdict::Duplicate), effects >= 2, "{}", why());
        let wire = super::super::wire::WireFacts::new(f, t(NOW));
        let denied = f.pairing == Pairing::Contradicted || done_but_open(f, &wire).is_some();
        assert_eq!(has(&Verdict::EndpointMismatch), denied, "{}", why());
        // What another server's ledger has not says nothing.
        if f.ledger_was_read() && !f.ledger_is_the_servers() {
            let said = [Verdict::Released, Verdict::Rejected, Verdict::NoClaim];
            assert!(!said.iter().any(has), "{}", why());
        }
        // Nobody can know that nothing was done.
        assert!(!said.contains("nothing here"), "{}", why());
        // Done by the newest word, whoever said it: never a repeat.
        let by_word = f.server_says.as_ref().is_some_and(|w| w.status == "done");
        assert!(!(by_word && matches!(got.next, NextStep::Repeat(_))), "{}", why());
        assert_eq!(has(&Verdict::Conflict), f.hash == HashCheck::DiffersProven);
        assert_eq!(has(&Verdict::SuspectDuplicate), !f.twins.is_empty());

        // Nothing is suggested that any verdict forbids.
        assert!(!(suggests && v.iter().any(|x| forbids(f, x))), "{}", why());
        let done_on_the_wire = f.calls.iter().any(|c| {
            c.settled.as_ref().is_some_and(|s| s.answer_status == Some(AnswerStatus::Done))
        });
        assert!(!(suggests && done_on_the_wire), "{}", why());
        let open = f.calls.iter().any(|c| {
            c.is_pending() && !f.ended_generations.iter().any(|e| e.generation == c.generation)
        });
        assert!(!(suggests && open && f.row.is_none()), "{}", why());

        // `abandoned` only where its owner was seen to end, and where there is no effect.
        let state = f.judged.as_ref().map(|j| (j.state.clone(), j.strength));
        if has(&Verdict::Abandoned) {
            assert_eq!(state, Some((State::Abandoned, Strength::Observed)), "{}", why());
            assert_eq!(effects, 0, "{}", why());
        }

        // `finished` needs a witness that says so, and none that denies it.
        if has(&Verdict::Finished) {
            let said =
                f.server_says.as_ref().is_some_and(|w| w.status == "done") || done_on_the_wire;
            let by_row = state == Some((State::Done, Strength::Stored));
            assert!(by_row || (f.row.is_none() && said && !f.ledger_was_read()), "{}", why());
            let denied = [
                Verdict::DoneWithoutEffect,
                Verdict::EffectWithoutRequest,
                Verdict::AnsweredWithoutRow,
                Verdict::RequestPurged,
                Verdict::AbandonedWithEffect,
                Verdict::Abandoned,
                Verdict::Stalled,
                Verdict::InFlight,
                Verdict::Working,
                Verdict::NotKnown,
            ];
            assert!(!denied.iter().any(has), "{}", why());
        }

        // A call nobody answered makes the request neither finished nor failed by itself.
        let only_unknown =
            !f.calls.is_empty() && f.calls.iter().all(|c| c.outcome() == Some(Outcome::Unknown));
        if only_unknown && f.row.is_none() && f.server_says.is_none() {
            let settled = [
                Verdict::Finished,
                Verdict::Failed,
                Verdict::Rejected,
                Verdict::NeverArrived,
                Verdict::Released,
            ];
            assert!(!settled.iter().any(has), "{}", why());
        }

        // The row decides where there is one; what the wire alone says needs its absence.
        if f.row.is_some() {
            let without = [
                Verdict::EffectWithoutRequest,
                Verdict::AnsweredWithoutRow,
                Verdict::RequestPurged,
                Verdict::Released,
                Verdict::Rejected,
                Verdict::NoClaim,
                Verdict::NeverArrived,
                Verdict::InFlight,
                Verdict::OutcomeUnknown,
                Verdict::NotKnown,
            ];
            assert!(!without.iter().any(has), "{}", why());
        } else if matches!(f.ledger, LedgerView::Read(_)) {
            let with = [
                Verdict::DoneWithoutEffect,
                Verdict::AbandonedWithEffect,
                Verdict::Abandoned,
                Verdict::Stalled,
                Verdict::Working,
                Verdict::Finished,
                Verdict::Unmapped,
            ];
            assert!(!with.iter().any(has), "{}", why());
        }
        if effects > 0 {
            let denied = [Verdict::Rejected, Verdict::NoClaim, Verdict::NeverArrived];
            assert!(!denied.iter().any(has), "{}", why());
        }
        if has(&Verdict::NoClaim) {
            assert!(!f.ended_generations.is_empty() && f.row_vanished_at.is_none(), "{}", why());
        }
    });
    assert!(n > 50_000, "only {n} combinations");
}
