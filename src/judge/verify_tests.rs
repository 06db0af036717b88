use super::*;

fn ids(list: &[&str]) -> Vec<String> {
    list.iter().map(|s| (*s).to_owned()).collect()
}

fn night() -> Totals {
    Totals {
        requests: [(State::Done, 5), (State::Abandoned, 2)].into(),
        effects: Some(5),
        same_hash: vec![ids(&["night-001", "night-006"])].into(),
        same_label: vec![("障害報告".into(), ids(&["night-001", "night-006"]))].into(),
        unfinished: vec![
            ("night-005".into(), State::Abandoned, 0),
            ("night-007".into(), State::Abandoned, 1),
        ],
        labels: [("障害報告".to_owned(), 2)].into(),
        ..Totals::default()
    }
}

#[test]
fn the_night_ledger_is_not_exactly_once_yet_breaks_nothing() {
    let v = verify(&night(), &Expected::default(), false);
    assert_eq!((v.exactly_once, v.passes()), (false, true));
    assert_eq!(v.sentence, "NOT exactly once: 2 unfinished, 1 suspect pair");
    let kinds: Vec<_> = v.problems.iter().map(|p| p.kind).collect();
    assert_eq!(kinds, ["unfinished", "unfinished", "suspect_duplicate"]);
    assert!(v.problems[1].detail.contains("has 1 effect"), "{:?}", v.problems[1]);
    assert!(!verify(&night(), &Expected::default(), true).passes());
}

#[test]
fn every_broken_invariant_is_an_error_with_its_requests() {
    let t = Totals {
        effects: Some(4),
        duplicate_effects: vec![("a".into(), 2)].into(),
        done_without_effect: ids(&["b"]).into(),
        effect_without_request: ids(&["c"]).into(),
        labels: [("x".to_owned(), 2)].into(),
        ..Totals::default()
    };
    let e = Expected { labels: vec![("x".into(), 1), ("y".into(), 0)], total: Some(3) };
    let v = verify(&t, &e, false);
    let errors: Vec<_> = v.problems.iter().map(|p| (p.kind, p.request_ids.join(","))).collect();
    assert_eq!(
        errors,
        [
            ("duplicate_effect", "a".to_owned()),
            ("done_without_effect", "b".into()),
            ("effect_without_request", "c".into()),
            ("unexpected_count", String::new()),
            ("unexpected_count", String::new()),
        ]
    );
    assert!(v.problems.iter().all(|p| p.severity == Severity::Error) && !v.passes());
    assert_eq!(v.problems[3].detail, "effects labelled x: expected 1, found 2");
    assert!(v.sentence.starts_with("NOT exactly once: 1 duplicate, 1 done without effect"));
}

#[test]
fn a_shared_label_breaks_nothing_a_swept_request_leaves_it_open_and_an_unread_row_does_break() {
    let t = Totals {
        requests: [(State::Done, 2)].into(),
        effects: Some(3),
        purged: ids(&["old"]).into(),
        same_label: vec![("daily".into(), ids(&["a", "b"]))].into(),
        ..Totals::default()
    };
    let v = verify(&t, &Expected::default(), false);
    let open = "can't say whether exactly once: 1 effect has no request: swept, or there never was one (2 requests, 3 effects)";
    assert_eq!((v.passes(), v.exactly_once, v.sentence.as_str()), (true, false, open));
    assert_eq!(v.problems.len(), 2);
    let shared = Totals { purged: Found::default(), effects: Some(2), ..t.clone() };
    let v = verify(&shared, &Expected::default(), false);
    assert_eq!((v.exactly_once, v.problems.len()), (true, 1), "{v:?}");
    // Each part may have been true at another moment.
    let torn = verify(&Totals { one_moment: false, ..shared }, &Expected::default(), false);
    assert!(!torn.exactly_once && torn.sentence.starts_with("can't say"), "{torn:?}");
    assert!(torn.sentence.contains("about 2 requests, about 2 effects"), "{torn:?}");
    // A sentence that says all is well beside an exit status that says the contrary would help nobody.
    let strict = verify(&t, &Expected::default(), true);
    assert_eq!(
        (strict.passes(), strict.exactly_once, strict.sentence.as_str()),
        (false, false, "NOT exactly once: 2 doubts")
    );
    let v = verify(&Totals { unread_rows: 1, ..t.clone() }, &Expected::default(), false);
    assert_eq!(v.sentence, "NOT exactly once: 1 row could not be read");
    assert!(!v.passes(), "what could not be read was not checked");
    let none = Totals { effects: None, ..t };
    let v = verify(&none, &Expected::default(), false);
    assert!(!v.exactly_once && v.sentence.starts_with("can't say"));
    let v = verify(&none, &Expected { total: Some(0), ..Expected::default() }, false);
    assert!(!v.passes(), "no effects table is not zero effects");
}

#[test]
fn of_several_tables_each_counts_for_itself() {
    let table = |name: &str, effects, bare| Table { name: name.into(), effects, bare };
    let t = Totals {
        requests: [(State::Done, 3)].into(),
        effects: Some(6),
        tables: vec![table("tickets", 3, 0), table("emails", 3, 0)],
        ..Totals::default()
    };
    assert!(verify(&t, &Expected::default(), false).exactly_once);
    let uneven = Totals {
        effects: Some(5),
        tables: vec![table("tickets", 3, 0), table("emails", 2, 1)],
        ..t.clone()
    };
    let v = verify(&uneven, &Expected::default(), false);
    let open =
        "can't say whether exactly once: 1 done without one in emails (3 requests, 5 effects)";
    assert_eq!((v.passes(), v.sentence.as_str()), (true, open));
    assert_eq!(v.problems[0].kind, "effects_differ");
    assert!(!verify(&uneven, &Expected::default(), true).passes());
    let more = Totals { effects: Some(7), ..t };
    assert!(!verify(&more, &Expected::default(), false).passes(), "it does not add up");
}

#[test]
fn what_ended_otherwise_than_done_was_not_done() {
    let t = Totals {
        requests: [(State::Done, 1), (State::Failed, 1), (State::Expired, 1)].into(),
        effects: Some(2),
        unfinished: vec![("f".into(), State::Failed, 0), ("x".into(), State::Expired, 0)],
        ..Totals::default()
    };
    let v = verify(&t, &Expected::default(), false);
    assert_eq!(
        (v.exactly_once, v.sentence.as_str()),
        (false, "NOT exactly once: 1 failed, 1 expired")
    );
    assert_eq!(v.problems[0].detail, "f is failed: it ended, and not as done");
}

#[test]
fn the_sentence_is_held_against_its_own_numbers() {
    let t = Totals { requests: [(State::Done, 2)].into(), effects: Some(1), ..Totals::default() };
    let v = verify(&t, &Expected::default(), false);
    assert_eq!(v.sentence, "NOT exactly once: 1 effect for 2 requests done");
    assert!(!v.passes() && !v.exactly_once);
    // Counted while somebody wrote, two numbers may not fit and nothing is wrong; nor is anything shown.
    let v = verify(&Totals { one_moment: false, ..t.clone() }, &Expected::default(), false);
    assert!(v.passes() && !v.exactly_once && v.sentence.starts_with("can't say"), "{v:?}");
    let nameless = Totals { nameless_effects: 1, effects: Some(3), ..t };
    let v = verify(&nameless, &Expected::default(), false);
    assert_eq!(v.sentence, "NOT exactly once: 1 effect without request");
    assert_eq!(v.problems[0].detail, "an effect names no request at all");
}

#[test]
fn an_empty_ledger_proves_nothing() {
    let t = Totals { effects: Some(0), ..Totals::default() };
    let v = verify(&t, &Expected::default(), false);
    assert!(v.passes() && !v.exactly_once, "{v:?}");
    assert_eq!(v.sentence, "nothing to say yet: 0 requests, 0 effects");
    assert!(!verify(&t, &Expected::default(), true).passes());
}

#[test]
fn what_is_not_named_is_counted() {
    let t = Totals {
        requests: [(State::Done, 9), (State::Running, 7)].into(),
        effects: Some(9),
        done_without_effect: Found { list: ids(&["a"]), total: 5 },
        unfinished: vec![("r".into(), State::Running, 0)],
        ..Totals::default()
    };
    let v = verify(&t, &Expected::default(), false);
    assert_eq!(v.sentence, "NOT exactly once: 5 done without effect, 7 unfinished");
    let details: Vec<&str> = v.problems.iter().map(|p| p.detail.as_str()).collect();
    assert_eq!(
        details,
        [
            "a is done and has no effect",
            "4 more, not named here",
            "r is running",
            "6 more, not named here"
        ]
    );
}

#[test]
fn what_was_not_looked_at_or_is_not_named_is_counted_in_words_and_as_doubts() {
    let t = Totals {
        requests: [(State::Done, 900)].into(),
        effects: Some(900),
        same_label: Found { list: vec![("daily".into(), ids(&["a", "b"]))], total: 31 },
        ..Totals::default()
    };
    let v = verify(&t, &Expected::default(), false);
    let what =
        "30 labels more occur several times: whether several requests share them was not looked at";
    assert_eq!(v.problems[1].detail, what);
    let strict = verify(&t, &Expected::default(), true);
    assert_eq!(strict.sentence, "NOT exactly once: 31 doubts");
    // No group is said to be as small as what is named of it.
    let many: Vec<String> = (0..PLACES).map(|n| n.to_string()).collect();
    let t = Totals { same_hash: Found { list: vec![many], total: 1 }, ..t };
    let v = verify(&t, &Expected::default(), false);
    assert!(
        v.problems[0].detail.contains("at least 100 request_ids"),
        "{:?}",
        v.problems[0].detail
    );
}
