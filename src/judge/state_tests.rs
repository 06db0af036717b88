//! The night ledger and every sentence of "`abandoned` is judged".

use super::super::testing::{row, says, t};
use super::*;

/// The ledger that four SIGKILLs left: (request, status, owner, claimed_at in seconds of the epoch).
fn night() -> Vec<Row> {
    [
        ("night-001", "done", "9e6c", 1795963550.6117728),
        ("night-002", "done", "9e6c", 1795963550.6269126),
        ("night-003", "done", "9e6c", 1795963550.6436214),
        ("night-004", "done", "c4d4", 1795963557.8341713),
        ("night-005", "running", "b558", 1795963553.492112),
        ("night-006", "done", "c4d4", 1795963557.8204067),
        ("night-007", "running", "4953", 1795963560.6828506),
    ]
    .map(|(id, status, owner, at)| Row {
        claimed_at: Time::from_seconds(at),
        ..row(id, status, owner, 0.0)
    })
    .into()
}

fn judge_all(rules: Rules, now: Time) -> Vec<(State, Strength)> {
    let rows = night();
    let owners = OwnerView::from_rows(&rows);
    rows.iter()
        .map(|r| judge_row(r, &owners, rules, None, None, now))
        .map(|j| (j.state, j.strength))
        .collect()
}

#[test]
fn the_night_ledger_hours_later() {
    let now = Time::from_seconds(1795963560.0 + 3.0 * 3600.0).unwrap();
    let done = (State::Done, Strength::Stored);
    let gone = (State::Abandoned, Strength::Presumed);
    let d = || done.clone();
    assert_eq!(
        judge_all(Rules::default(), now),
        [d(), d(), d(), d(), gone.clone(), d(), gone.clone()]
    );
    // With a limit that never passes only the newer owner is left to speak: against 005, not against 007.
    let rules = Rules { stale_limit_s: 999_999_999.0, owners: Owners::Auto };
    assert_eq!(
        judge_all(rules, now),
        [d(), d(), d(), d(), gone, d(), (State::Running, Strength::Stored)]
    );
    let many = Rules { owners: Owners::Many, ..rules };
    assert_eq!(judge_all(many, now)[4].0, State::Running);
}

fn judged(row: &Row, others: &[Row], rules: Rules, word: Option<ServerWord>, now: f64) -> Judged {
    let rows: Vec<Row> = others.iter().chain([row]).cloned().collect();
    judge_row(row, &OwnerView::from_rows(&rows), rules, None, word.as_ref(), t(now))
}

#[test]
fn a_running_row_is_judged_again_when_its_limit_passes() {
    let r = row("r", "running", "A", 0.0);
    let j = judged(&r, &[], Rules::default(), None, 12.0);
    assert_eq!(
        (j.state.clone(), j.strength, j.why.as_str()),
        (State::Running, Strength::Stored, "claimed 12 s ago")
    );
    assert_eq!((j.judge_again_at, takeover(&j)), (Some(t(120.0)), Some((t(120.0), Some(120.0)))));
    let j = judged(&r, &[], Rules::default(), None, 120.0);
    assert_eq!((j.state.clone(), j.strength), (State::Abandoned, Strength::Presumed));
    assert_eq!(j.why, "presumed: claimed 2 m 00 s ago, the limit is 120 s");
    assert_eq!((j.judge_again_at, takeover(&j)), (None, Some((t(120.0), Some(120.0)))));
}

#[test]
fn interleaved_owners_switch_the_newer_owner_off_unless_configured() {
    let r = row("r", "running", "A", 2.0);
    let others =
        [row("a", "done", "A", 0.0), row("b", "done", "B", 1.0), row("c", "done", "B", 3.0)];
    assert_eq!(judged(&r, &others, Rules::default(), None, 10.0).state, State::Running);
    let one = Rules { owners: Owners::One, ..Rules::default() };
    let j = judged(&r, &others, one, None, 10.0);
    assert_eq!((j.state.clone(), takeover(&j)), (State::Abandoned, Some((t(3.0), None))));
    assert_eq!(j.why, "presumed: a newer owner has claimed since, 1.0 s later");
    // One process after the other: the newer owner counts at once, and counts as the earlier takeover.
    let in_turn = [row("b", "done", "B", 3.0)];
    assert_eq!(judged(&r, &in_turn, Rules::default(), None, 4.0).state, State::Abandoned);
    let late = judged(&r, &in_turn, Rules::default(), None, 500.0);
    assert_eq!(takeover(&late), Some((t(3.0), None)));
}

#[test]
fn the_servers_word_counts_unless_redial_started_that_server() {
    let r = row("r", "running", "A", 0.0);
    let j = judged(&r, &[], Rules::default(), Some(says("abandoned", 10.0)), 12.0);
    assert_eq!(
        (j.state.clone(), j.strength, takeover(&j)),
        (State::Abandoned, Strength::ServerSays, Some((t(120.0), Some(120.0))))
    );
    let ours = ServerWord { started_by_us: Some(t(5.0)), ..says("abandoned", 10.0) };
    let j = judged(&r, &[], Rules::default(), Some(ours.clone()), 12.0);
    assert_eq!((j.state, j.strength), (State::Running, Strength::Stored));
    assert!(j.why.contains("started since proves nothing"), "{}", j.why);
    assert_eq!(judged(&r, &[], Rules::default(), Some(ours), 121.0).strength, Strength::Presumed);
    // A process that was here before the claim can tell its own rows from others'.
    let before = ServerWord { started_by_us: Some(t(-5.0)), ..says("abandoned", 10.0) };
    assert_eq!(
        judged(&r, &[], Rules::default(), Some(before), 12.0).strength,
        Strength::ServerSays
    );
    // A word about an earlier claim is not about this one.
    assert_eq!(
        judged(&r, &[], Rules::default(), Some(says("abandoned", -1.0)), 12.0).state,
        State::Running
    );
}

#[test]
fn a_server_that_works_on_it_outweighs_presumption_for_one_limit() {
    let r = row("r", "running", "A", 0.0);
    let j = judged(
        &r,
        &[row("b", "done", "B", 3.0)],
        Rules::default(),
        Some(says("running", 200.0)),
        210.0,
    );
    assert_eq!(
        (j.state.clone(), j.strength, j.judge_again_at),
        (State::Running, Strength::ServerSays, Some(t(320.0)))
    );
    assert_eq!(takeover(&j), Some((t(3.0), None)));
    let j = judged(&r, &[], Rules::default(), Some(says("running", 200.0)), 320.0);
    assert_eq!((j.state, j.strength), (State::Abandoned, Strength::Presumed));
}

#[test]
fn an_owner_seen_to_end_is_the_strongest_word() {
    let r = row("r", "running", "A", 0.0);
    let end = OwnerEnd::Seen(crate::judge::Observed {
        generation: 1,
        at: t(2.0),
        how: "signal 9 (SIGKILL)".into(),
    });
    let word = says("running", 1.0);
    let j = judge_row(&r, &OwnerView::default(), Rules::default(), Some(&end), Some(&word), t(3.0));
    assert_eq!(
        (j.state, j.strength, j.judge_again_at),
        (State::Abandoned, Strength::Observed, None)
    );
    assert!(j.why.contains("signal 9 (SIGKILL)"));
    let stored = row("r", "abandoned", "A", 0.0);
    let j = judge_row(&stored, &OwnerView::default(), Rules::default(), Some(&end), None, t(3.0));
    assert_eq!((j.state, j.strength), (State::Abandoned, Strength::Observed));
    let done = row("r", "done", "A", 0.0);
    let j = judge_row(&done, &OwnerView::default(), Rules::default(), Some(&end), None, t(3.0));
    assert_eq!((j.state, j.strength), (State::Done, Strength::Stored));
}

#[test]
fn a_claim_in_the_future_is_clock_skew_and_small_differences_are_not() {
    let r = row("r", "running", "A", 100.0);
    let j = judged(&r, &[], Rules::default(), None, 0.0);
    assert_eq!((j.state, j.skew_s), (State::Running, Some(100.0)));
    assert!(j.why.contains("clock skew"), "{}", j.why);
    assert_eq!(j.judge_again_at, Some(t(220.0)));
    let near = judged(&r, &[], Rules::default(), None, 99.95);
    assert_eq!((near.skew_s, near.why.as_str()), (None, "claimed 0.0 s ago"));
}

#[test]
fn stored_words_are_kept_and_unknown_ones_never_count_as_done() {
    for (word, want) in [
        ("done", State::Done),
        ("abandoned", State::Abandoned),
        ("waiting", State::Waiting),
        ("failed", State::Failed),
        ("cancelled", State::Cancelled),
        ("canceled", State::Cancelled),
        ("expired", State::Expired),
        ("DONE", State::Unmapped("DONE".into())),
        ("completed", State::Unmapped("completed".into())),
        ("", State::Unmapped(String::new())),
    ] {
        let j = judged(
            &row("r", word, "A", 0.0),
            &[row("b", "done", "B", 3.0)],
            Rules::default(),
            None,
            1e6,
        );
        assert_eq!((j.state, j.strength), (want, Strength::Stored), "{word}");
    }
}

#[test]
fn without_owner_or_time_nothing_is_presumed() {
    let bare = Row { owner: None, claimed_at: None, ..row("r", "running", "A", 0.0) };
    let j = judged(&bare, &[row("b", "done", "B", 3.0)], Rules::default(), None, 1e6);
    assert_eq!((j.state, j.judge_again_at, j.takeover), (State::Running, None, None));
    let no_owner = Row { owner: None, ..row("r", "running", "A", 0.0) };
    assert_eq!(
        judged(&no_owner, &[row("b", "done", "B", 3.0)], Rules::default(), None, 10.0).state,
        State::Running
    );
}

fn takeover(j: &Judged) -> Option<(Time, Option<f64>)> {
    j.takeover.map(|x| (x.at, x.limit_s))
}

/// Whoever looked, and whenever: what the ledger says of a takeover is one time.
#[test]
fn a_takeover_is_of_the_claim_and_never_of_a_look() {
    let r = row("r", "running", "A", 0.0);
    let words = [
        None,
        Some(says("running", 50.0)),
        Some(says("abandoned", 60.0)),
        Some(says("running", 130.0)),
    ];
    for word in words {
        for now in [70.0, 119.0, 135.0, 240.0] {
            let word = word.clone().filter(|w| w.at <= t(now));
            let j = judged(&r, &[], Rules::default(), word.clone(), now);
            assert_eq!(takeover(&j), Some((t(120.0), Some(120.0))), "{word:?} {now}");
        }
    }
    // Of a table that is not the reference's nobody knows what its server does.
    let other = Row { takes_over: false, ..r };
    assert!(!judged(&other, &[], Rules::default(), None, 130.0).takeover.unwrap().known);
}
