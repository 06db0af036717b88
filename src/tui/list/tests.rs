use super::super::fixture;
use super::asking::KEEP;
use super::marks::CHANGED_S;
use super::*;

/// Answers as a ledger of rows 1 to `n` would.
fn answer(ask: &Ask, n: i64) -> Window {
    let (from, down_to) = match ask.anchor {
        Anchor::Newest => (n, 1),
        Anchor::At(id) => (id.min(n), 1),
        Anchor::Older(id) => (id - 1, 1),
        Anchor::Newer(id) => ((id + ask.count as i64).min(n), id + 1),
        Anchor::Oldest => ((ask.count as i64).min(n), 1),
    };
    let ids: Vec<i64> = (down_to..=from).rev().take(ask.count).collect();
    let last = ids.last().copied().unwrap_or(1);
    Window {
        ask: ask.clone(),
        top: Vec::new(),
        top_total: 0,
        tail: Vec::new(),
        has_newer: ids.first().is_some_and(|f| *f < n),
        has_older: last > 1,
        rows: ids.into_iter().map(|i| fixture::done(i, &format!("r{i}"))).collect(),
        matches: None,
    }
}

fn drive(list: &mut Requests, mut ask: Option<Ask>, n: i64) {
    while let Some(a) = ask {
        ask = list.take(answer(&a, n), Time(0));
    }
}

#[test]
fn a_walk_over_many_rows_sees_each_once_and_keeps_few() {
    let n = 2_000;
    let mut list = Requests::default();
    let ask = list.refresh();
    drive(&mut list, ask, n);
    let mut seen = vec![list.selected.clone().unwrap()];
    for _ in 1..n {
        let ask = list.step(1);
        drive(&mut list, ask, n);
        seen.push(list.selected.clone().unwrap());
        assert!(list.len() <= KEEP);
    }
    assert_eq!(seen, (1..=n).rev().map(|i| format!("r{i}")).collect::<Vec<_>>());
    for _ in 1..n {
        let ask = list.step(-1);
        drive(&mut list, ask, n);
    }
    assert_eq!(list.selected.as_deref(), Some("r2000"));
    let ask = list.jump(true);
    drive(&mut list, ask, n);
    assert_eq!(list.selected.as_deref(), Some("r1"));
    let ask = list.jump(false);
    drive(&mut list, ask, n);
    assert_eq!(list.position(), Some(0));
}

#[test]
fn new_rows_move_the_list_and_not_the_selection() {
    let mut list = Requests::default();
    let ask = list.refresh();
    drive(&mut list, ask, 10);
    list.select("r7");
    let ask = list.refresh();
    drive(&mut list, ask, 12);
    assert_eq!((list.selected.as_deref(), list.position()), (Some("r7"), Some(5)));
}

#[test]
fn a_place_far_down_survives_new_rows() {
    let mut list = Requests::default();
    let ask = list.refresh();
    drive(&mut list, ask, 2_000);
    for _ in 0..450 {
        let ask = list.step(1);
        drive(&mut list, ask, 2_000);
    }
    let (id, at) = (list.selected.clone(), list.position());
    let ask = list.refresh();
    drive(&mut list, ask, 2_030);
    assert_eq!((list.selected.clone(), list.position()), (id, at.map(|i| i + 30)));
}

#[test]
fn answers_to_old_questions_are_dropped() {
    let mut list = Requests::default();
    let old = list.refresh().unwrap();
    let new = list.set_filter("r1".into()).unwrap();
    assert_eq!(list.take(answer(&old, 5), Time(0)), None);
    assert!(!list.loaded);
    list.take(answer(&new, 5), Time(0));
    assert!(list.loaded);
    // A change that comes while a question is out is asked for afterwards, once.
    let first = list.refresh().unwrap();
    assert!(list.refresh().is_none());
    let again = list.take(answer(&first, 5), Time(0)).unwrap();
    assert_eq!(again.anchor, Anchor::Newest);
    assert_eq!(list.take(answer(&again, 5), Time(0)), None);
}

#[test]
fn sorting_moves_lines_and_not_the_selection() {
    let mut list = Requests::default();
    let ask = list.refresh();
    drive(&mut list, ask, 12);
    list.select("r7");
    list.set_sort(Sort::Id, false);
    let ids = |l: &Requests| l.iter().map(|l| l.id().to_owned()).collect::<Vec<_>>();
    assert_eq!(ids(&list)[..4], ["r1", "r10", "r11", "r12"]);
    assert_eq!((list.selected.as_deref(), list.position()), (Some("r7"), Some(9)));
    list.set_sort(Sort::Id, true);
    assert_eq!((list.position(), ids(&list)[0].as_str()), (Some(2), "r9"));
    list.step(1);
    assert_eq!(list.selected.as_deref(), Some("r6"));
    list.set_sort(Sort::Newest, false);
    assert_eq!(ids(&list)[0], "r12");
}

#[test]
fn a_paused_list_stands_still_and_catches_up() {
    let mut list = Requests::default();
    let ask = list.refresh();
    drive(&mut list, ask, 10);
    assert_eq!(list.pause(true), None);
    assert!(list.refresh().is_none() && list.refresh().is_none() && list.has_missed());
    assert_eq!(list.len(), 10);
    let ask = list.pause(false);
    assert!(ask.is_some());
    drive(&mut list, ask, 14);
    assert_eq!((list.len(), list.has_missed()), (14, false));
}

#[test]
fn what_is_new_or_otherwise_is_marked_for_a_while_and_nothing_at_first() {
    let now = Time(1_000_000_000);
    let mut list = Requests::default();
    let ask = list.refresh().unwrap();
    list.take(answer(&ask, 3), now);
    assert!(!list.is_fresh("r3", now) && list.fades_at().is_none());
    let ask = list.refresh().unwrap();
    let mut window = answer(&ask, 4);
    window.rows[2].row.status = "failed".into();
    list.take(window, now);
    let fresh = |l: &Requests, t: Time| ["r4", "r3", "r2", "r1"].map(|id| l.is_fresh(id, t));
    assert_eq!(fresh(&list, now), [true, false, true, false]);
    let later = now.plus_seconds(CHANGED_S);
    assert_eq!((fresh(&list, later), list.fades_at()), ([false; 4], Some(later)));
    list.fade(later);
    assert_eq!(list.fades_at(), None);
}

#[test]
fn seeking_goes_round() {
    let mut list = Requests::default();
    let ask = list.refresh();
    drive(&mut list, ask, 10);
    let wanted = |l: &Line| l.row.rowid % 4 == 0;
    for id in ["r8", "r4", "r8"] {
        assert!(list.seek(wanted));
        assert_eq!(list.selected.as_deref(), Some(id));
    }
    assert!(!list.seek(|_| false));
}

#[test]
fn of_several_lines_with_one_id_the_one_that_was_meant_is_selected() {
    let mut list = Requests::default();
    let ask = list.refresh().unwrap();
    let mut window = answer(&ask, 4);
    window.rows = [4, 3, 2, 1].map(|i| fixture::done(i, "same")).to_vec();
    list.take(window, Time(0));
    list.select_at("same", 2);
    assert_eq!(list.position(), Some(2));
    list.step(1);
    assert_eq!(list.position(), Some(3));
    list.select_at("same", 99);
    assert_eq!(list.position(), Some(3), "it has moved: what is selected stays");
}
