//! What keys do, as macros: `update` driven without a terminal. The screen afterwards is `screens`' affair.

use crate::support::night::{self, app, app_with, open_dialog, press};
use redial::journal::LinkState;
use redial::judge::agreement::{RowTerms, Total};
use redial::keys::Key;
use redial::keys::action::{Action, Context, TABLE};
use redial::tui::data::{Anew, Check, Counted, Gate, LookUp, Question, Reissue, Verified};
use redial::tui::dialog::Stage;
use redial::tui::wire::Reach;
use redial::tui::{App, Effect, Msg, Overlay, Pane, Start, update};
use std::sync::Arc;

fn selected(a: &App) -> &str {
    a.requests.selected.as_deref().unwrap()
}

fn said(a: &App) -> &str {
    a.said.as_ref().map_or("", |(_, text)| text)
}

#[test]
fn moving_opening_and_going_back() {
    let mut a = app((140, 40));
    for (keys, id, pane) in [
        ("", "night-007", Pane::Requests),
        ("jj", "night-006", Pane::Requests),
        ("k", "night-005", Pane::Requests),
        ("G", "night-001", Pane::Requests),
        ("<enter>", "night-001", Pane::Detail),
        ("jj", "night-001", Pane::Detail),
        ("<esc>g", "night-007", Pane::Requests),
        ("<tab><tab><tab><tab><tab>", "night-007", Pane::Requests),
        ("<shift-tab><shift-tab>", "night-007", Pane::Stderr),
        // From a call to its request: night-007 is the second one.
        ("j<shift-tab>j<enter>", "night-007", Pane::Detail),
    ] {
        assert!(press(&mut a, keys).is_empty(), "{keys}");
        assert_eq!((selected(&a), a.pane), (id, pane), "{keys}");
    }
}

#[test]
fn finding_asks_once_and_says_what_came() {
    let mut a = app((140, 40));
    let find = [Effect::Find { request_id: "night-007".into() }];
    assert_eq!(press(&mut a, "f"), find);
    assert!(press(&mut a, "f").is_empty(), "under way");
    let answer = |agrees| LookUp {
        at: night::NIGHT,
        status: "abandoned".into(),
        answer: "{}".into(),
        agrees,
    };
    update(
        &mut a,
        Msg::LookedUp {
            request_id: "night-007".into(),
            answer: Ok(answer(redial::tui::data::Agrees::Running)),
        },
    );
    assert_eq!(
        said(&a),
        "night-007: the server says abandoned, of a row that the ledger has as running"
    );
    assert_eq!(press(&mut a, "f"), find);
    update(
        &mut a,
        Msg::LookedUp {
            request_id: "night-007".into(),
            answer: Err("the server has no such tool".into()),
        },
    );
    assert!(said(&a).contains("could not be looked up: the server has no such tool"));
}

#[test]
fn a_filter_is_asked_for_as_it_is_typed_and_cleared_by_escape() {
    let mut a = app((140, 40));
    press(&mut a, "/障害");
    assert_eq!((a.requests.len(), a.requests.matches), (2, Some((2, 7))));
    assert_eq!(selected(&a), "night-006");
    press(&mut a, "<enter>j");
    assert_eq!((a.context(), selected(&a)), (Context::Requests, "night-001"));
    press(&mut a, "/<backspace><backspace>zzz");
    assert_eq!(a.requests.len(), 0);
    press(&mut a, "<esc>");
    assert_eq!((a.requests.len(), selected(&a)), (7, "night-001"));
    // A letter that is a key elsewhere is a letter here.
    assert!(press(&mut a, "/qfr").is_empty());
    assert_eq!(a.requests.filter, "qfr");
}

/// The call that the dialog releases.
fn call(answered: Question) -> Effect {
    let plan = night::plan("night-007", answered);
    Effect::Reissue(Reissue {
        request_id: "night-007".into(),
        tool: plan.tool,
        args: plan.args,
        terms: plan.check.terms,
        word: plan.check.gate.word,
    })
}

#[test]
fn each_question_has_one_answer_and_no_other_key_sends() {
    for (question, others, answer) in [
        (Question::None, "yn<space>night-007", "<enter>"),
        (Question::Preview, "yn<space>night-007", "<enter>"),
        (Question::Ask, "<enter>n<enter>night-007<enter>", "y"),
        (Question::Type, "y<enter>", "<backspace>night-007<enter>"),
    ] {
        let mut a = app((140, 40));
        open_dialog(&mut a, question);
        assert!(press(&mut a, others).is_empty(), "{question:?}: {others} sends nothing");
        assert_eq!(press(&mut a, answer), [call(question)], "{question:?}");
        // Once sent nothing sends again, not even a key that is held or hit twice.
        let after = press(&mut a, "<enter>y<enter>");
        assert!(!after.iter().any(|e| matches!(e, Effect::Reissue(_))), "{after:?}");
    }
    let mut a = app((140, 40));
    open_dialog(&mut a, Question::Refused);
    assert!(press(&mut a, "y<enter>night-007<enter><space>").is_empty());
    assert!(press(&mut a, "<esc>").is_empty() && a.overlay.is_none());
}

#[test]
fn a_held_key_decides_nothing() {
    let mut a = app((140, 40));
    let held = |a: &mut App, key: &str| {
        update(a, Msg::Key { key: Key::parse(key).unwrap(), repeat: true })
    };
    assert!(held(&mut a, "r").is_empty() && a.overlay.is_none());
    open_dialog(&mut a, Question::Preview);
    assert!(held(&mut a, "enter").is_empty());
    assert!(matches!(a.overlay, Some(Overlay::Reissue(_))));
}

#[test]
fn a_question_that_became_another_one_takes_no_answer_to_the_old_one() {
    let mut a = app((140, 50));
    open_dialog(&mut a, Question::Type);
    let standing = night::plan("night-007", Question::Type).check;
    let reread = |a: &mut App| match &update(a, Msg::FactsChanged)[..] {
        [.., Effect::Check { request_id, seq, args, .. }] if request_id == "night-007" => {
            assert_eq!(*args, night::plan("night-007", Question::Type).args);
            Some(*seq)
        }
        _ => None,
    };
    let checked = |a: &mut App, seq, check: &Check| {
        let check = Box::new(check.clone());
        update(a, Msg::Checked { request_id: "night-007".into(), seq, check })
    };
    // Nothing is another thing: what was typed stands.
    assert!(press(&mut a, "night-0").is_empty());
    let seq = reread(&mut a).unwrap();
    assert_eq!(reread(&mut a), None, "one look at a time");
    // More had come meanwhile.
    let again = checked(&mut a, seq, &standing);
    assert!(matches!(again[..], [Effect::Check { .. }]), "{again:?}");
    assert!(checked(&mut a, seq, &standing).is_empty());
    assert!(press(&mut a, "07").is_empty());
    // Somebody finished it, between the typing and Enter.
    let mut now = standing.clone();
    let RowTerms::Read { status, effects, .. } = &mut now.terms.row else { panic!("{now:?}") };
    (*status, *effects) = (Some("done".into()), 1);
    now.terms.total = Total::Known(6);
    let seq = reread(&mut a).unwrap();
    checked(&mut a, seq, &now);
    assert!(press(&mut a, "<enter>").is_empty(), "the answer was to another question");
    let screen = crate::screens::text(&crate::screens::draw(&a, "mono"));
    for word in ["Things have changed", "done since", "effects of this request: 0 → 1"] {
        assert!(screen.contains(word), "{word}: {screen}");
    }
    let sent = press(&mut a, "night-007<enter>");
    let [Effect::Reissue(call)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(call.terms, now.terms, "held to what is shown now");
    // Right before sending it had changed once more.
    let mut plan = night::plan("night-007", Question::Type);
    plan.check = now;
    let anew = Anew { plan: Box::new(plan), changes: vec!["owner: A → B".into()] };
    update(&mut a, Msg::Changed { request_id: "night-007".into(), anew: Box::new(anew) });
    assert!(press(&mut a, "<enter>").is_empty());
    assert!(crate::screens::text(&crate::screens::draw(&a, "mono")).contains("owner: A → B"));
    assert!(matches!(press(&mut a, "night-007<enter>")[..], [Effect::Reissue(_)]));
}

#[test]
fn changed_arguments_are_judged_before_anything_can_be_sent() {
    let mut a = app((140, 40));
    open_dialog(&mut a, Question::Preview);
    let effects = press(&mut a, "<tab> ");
    let [Effect::Check { request_id, seq, tool, args }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((request_id.as_str(), tool.as_str()), ("night-007", "create_ticket"));
    assert!(args.ends_with("} "));
    assert!(press(&mut a, "<esc><enter>").is_empty(), "not judged yet");
    let check = |question| {
        Box::new(Check {
            hash: redial::judge::HashCheck::DiffersProven,
            hash_why: "other arguments".into(),
            gate: Gate { question, reasons: vec![], word: "night-007".into() },
            situation: vec![],
            terms: night::plan("night-007", Question::Preview).check.terms,
            since: night::morning(),
        })
    };
    // An answer to an older question doesn't count.
    update(
        &mut a,
        Msg::Checked {
            request_id: "night-007".into(),
            seq: seq - 1,
            check: check(Question::Preview),
        },
    );
    assert!(press(&mut a, "<enter>").is_empty());
    update(
        &mut a,
        Msg::Checked { request_id: "night-007".into(), seq: *seq, check: check(Question::Refused) },
    );
    assert!(press(&mut a, "<enter>y").is_empty());
    // Undone, they are the known bytes again; they are judged again all the same.
    let effects = press(&mut a, "<tab><ctrl-z><tab>");
    let [Effect::Check { seq, .. }] = &effects[..] else { panic!("{effects:?}") };
    update(
        &mut a,
        Msg::Checked { request_id: "night-007".into(), seq: *seq, check: check(Question::Preview) },
    );
    assert_eq!(press(&mut a, "<enter>"), [call(Question::Preview)]);
}

#[test]
fn a_pasted_word_answers_no_question_and_pasted_arguments_lose_their_tricks() {
    let mut a = app((140, 40));
    open_dialog(&mut a, Question::Type);
    let effects = update(&mut a, Msg::Paste("night-007".into()));
    assert!(
        matches!(&effects[..], [Effect::Check { args, .. }] if args.ends_with("}night-007")),
        "{effects:?}"
    );
    let effects = update(&mut a, Msg::Paste("\u{202e}\u{1b}[31m".into()));
    assert!(
        matches!(&effects[..], [Effect::Check { args, .. }] if args.ends_with("\\u202e\\u001b[31m")),
        "{effects:?}"
    );
    let mut a = app((140, 40));
    assert!(update(&mut a, Msg::Paste("qqrfv\nq".into())).is_empty(), "pasting presses no keys");
}

#[test]
fn what_came_of_a_call_is_shown_also_when_its_dialog_was_left() {
    let mut a = app((140, 40));
    open_dialog(&mut a, Question::Preview);
    press(&mut a, "<enter>");
    assert!(matches!(a.dialog().unwrap().stage, Stage::Sending { .. }));
    let reissued = |r| Msg::Reissued { request_id: "night-007".into(), report: Box::new(r) };
    update(&mut a, reissued(Ok(night::report())));
    assert!(matches!(a.dialog().unwrap().stage, Stage::Done(_)));
    press(&mut a, "<esc>");
    open_dialog(&mut a, Question::Preview);
    press(&mut a, "<enter><esc>r");
    assert_eq!(said(&a), "night-007 is being sent; its answer is awaited");
    update(&mut a, reissued(Ok(night::report())));
    assert_eq!(said(&a), "night-007: ok, now done; effects 0 → 1");
    open_dialog(&mut a, Question::Preview);
    press(&mut a, "<enter><esc>");
    update(&mut a, reissued(Err("the gate asks for more now".into())));
    assert_eq!(said(&a), "night-007 was not sent: the gate asks for more now");
}

#[test]
fn quitting_asks_only_while_something_is_in_flight() {
    let mut a = app((140, 40));
    assert_eq!(press(&mut a, "<ctrl-c>"), [Effect::Quit]);
    let mut a = app((140, 40));
    open_dialog(&mut a, Question::Preview);
    press(&mut a, "<enter><esc>");
    assert!(press(&mut a, "q").is_empty());
    assert!(matches!(a.overlay, Some(Overlay::Quit)));
    assert!(press(&mut a, "<esc>").is_empty() && !a.quitting);
    assert!(press(&mut a, "qn").is_empty() && !a.quitting);
    assert_eq!(press(&mut a, "qy"), [Effect::Quit]);
    assert!(a.quitting);
}

#[test]
fn without_endpoint_or_ledger_the_keys_say_why_they_do_nothing() {
    let mut a = app_with(Start { ledger: true, ..Start::default() }, (140, 40));
    assert!(press(&mut a, "f").is_empty());
    assert!(said(&a).starts_with("no endpoint is attached"));
    assert!(press(&mut a, "r").is_empty() && a.overlay.is_none());
    let endpoint = Some(Reach::Http("http://127.0.0.1:8000/mcp".into()));
    let mut a = app_with(Start { endpoint, ..Start::default() }, (140, 40));
    assert!(press(&mut a, "v").is_empty());
    assert!(said(&a).starts_with("no ledger is attached"));
}

#[test]
fn a_dead_server_can_be_started_again_and_not_called() {
    let mut a = app((140, 40));
    let mut wire = night::wire();
    wire.link.as_mut().unwrap().state = LinkState::Dead;
    update(&mut a, Msg::Wire(Arc::new(wire)));
    assert!(press(&mut a, "fr").is_empty());
    assert!(said(&a).contains("R connects again"));
    assert_eq!(press(&mut a, "R"), [Effect::Reconnect]);
}

#[test]
fn verify_counts_while_it_is_seen_and_leads_to_the_requests_it_names() {
    let mut a = app((140, 40));
    let (on, off) = ([Effect::Verify { on: true }], [Effect::Verify { on: false }]);
    assert_eq!(press(&mut a, "v"), on);
    let shown = |a: &App| crate::screens::text(&crate::screens::draw(a, "dark"));
    assert!(shown(&a).contains("Counting…") || shown(&a).contains("v counts"), "{}", shown(&a));
    update(&mut a, Msg::Counted(Counted::Begun(night::morning())));
    let v = night::verified();
    update(&mut a, Msg::Counted(Counted::Found(Box::new(v.clone()))));
    let seen = shown(&a);
    for text in [
        v.sentence.as_str(),
        "5 done · 2 abandoned · 5 effects",
        "counts again with every",
        "as of ",
    ] {
        assert!(seen.contains(text), "{text}: {seen}");
    }
    // The first named request, the second, and there.
    assert_eq!(a.watch.selected(), Some("night-007"));
    assert_eq!(press(&mut a, "v"), on, "once more by hand");
    press(&mut a, "jj");
    assert_eq!(a.watch.selected(), Some("night-001"));
    // Walking the rows meanwhile doesn't stop it; the detail in its place does, and so does a smaller screen.
    assert!(press(&mut a, "<esc>j").is_empty() && a.pane == Pane::Requests);
    assert!(shown(&a).contains(&v.sentence));
    press(&mut a, "v");
    assert_eq!(press(&mut a, "<enter>"), off);
    assert_eq!((selected(&a), a.pane), ("night-001", Pane::Detail));
    assert_eq!(press(&mut a, "v"), on);
    press(&mut a, "<esc>");
    assert_eq!(update(&mut a, Msg::Resize(80, 24)), off);
    // Where everything has a place, it is seen whatever has the keys.
    assert_eq!(update(&mut a, Msg::Resize(200, 60)), on);
    assert!(
        press(&mut a, "<enter>").is_empty() && shown(&a).contains("NOT exactly once: 2 unfinished")
    );
    // What has changed since is told with its time.
    let good = Verified {
        sentence: "exactly once: 7 requests, 7 effects".into(),
        good: true,
        ..Verified::default()
    };
    update(&mut a, Msg::Counted(Counted::Found(Box::new(good))));
    let seen = shown(&a);
    assert!(seen.contains("✓ exactly once") && seen.contains("NOT exactly once: 2"), "{seen}");
    update(&mut a, Msg::Counted(Counted::Failed("the ledger is locked".into())));
    assert!(shown(&a).contains("could not be counted again: the ledger is locked"));
}

#[test]
fn a_look_up_on_its_way_is_not_what_a_person_gives_up() {
    let mut a = app((140, 40));
    press(&mut a, "G/night-004<enter>");
    let (wire, id) = night::calling("find_request", "night-004", -1.0);
    update(&mut a, Msg::Wire(Arc::new(wire)));
    assert!(press(&mut a, "x").is_empty() && a.is_main(), "it is not the work");
    assert_eq!(said(&a), "no call waits here for an answer");
    // Where the calls are shown, each of them can be chosen.
    press(&mut a, "<tab><tab>gx");
    assert!(matches!(a.overlay, Some(Overlay::Cancel(c)) if c == id));
}

#[test]
fn a_call_that_waits_is_cancelled_after_a_question_or_only_no_longer_waited_for() {
    let mut a = app((140, 40));
    assert!(press(&mut a, "x").is_empty() && said(&a) == "no call waits here for an answer");
    let id = night::pending(&mut a);
    press(&mut a, "x");
    let shown = |a: &App| crate::screens::text(&crate::screens::draw(a, "dark"));
    assert!(a.is_main(), "night-007 has none");
    press(&mut a, "G/night-004<enter>");
    let footer = shown(&a).lines().last().unwrap().to_owned();
    assert!(footer.contains("x cancel call") && footer.contains("w stop waiting"), "{footer}");
    press(&mut a, "x");
    let seen = shown(&a);
    assert!(
        seen.contains("create_ticket night-004, sent 12 s ago")
            && seen.contains("outcome stays unknown"),
        "{seen}"
    );
    assert!(press(&mut a, "<enter>").is_empty() && a.is_main(), "Enter doesn't decide");
    assert!(press(&mut a, "x<esc>").is_empty() && a.is_main());
    assert_eq!(press(&mut a, "xy"), [Effect::GiveUp { call: id, tell: true }]);
    assert!(said(&a).contains("the server is told"));
    assert_eq!(press(&mut a, "w"), [Effect::GiveUp { call: id, tell: false }]);
    assert!(said(&a).contains("an answer that comes is still taken"));
    press(&mut a, "L");
    assert!(shown(&a).contains("cancelled: create_ticket night-004"));
    // From the calls: the selected one. When its answer comes first there is nothing to cancel.
    press(&mut a, "<esc><esc><tab><tab>gx");
    assert!(matches!(a.overlay, Some(Overlay::Cancel(c)) if c == id));
    update(&mut a, Msg::Wire(Arc::new(night::wire())));
    assert!(press(&mut a, "y").is_empty());
    assert!(shown(&a).contains("nothing to cancel"));
}

#[test]
fn every_key_of_the_footer_does_something_now() {
    let changed = |a: &App, before: &str, effects: &[Effect]| {
        !effects.is_empty() || format!("{a:?}") != before
    };
    type Situation = (&'static str, fn(&mut App));
    let situations: [Situation; 7] = [
        ("main", |_| {}),
        ("detail", |a| drop(press(a, "<enter>"))),
        ("calls", |a| drop(press(a, "<tab><tab>"))),
        ("filter", |a| drop(press(a, "/n"))),
        ("help", |a| drop(press(a, "?"))),
        ("dialog", |a| open_dialog(a, Question::Ask)),
        ("arguments", |a| {
            open_dialog(a, Question::Preview);
            press(a, "<tab>x");
        }),
    ];
    for (name, situation) in situations {
        let mut a = app((140, 40));
        situation(&mut a);
        let entries = a.footer();
        assert!(!entries.is_empty(), "{name}");
        for entry in entries {
            let mut a = app((140, 40));
            situation(&mut a);
            let before = format!("{a:?}");
            let effects = press(&mut a, &format!("<{}>", entry.keys[0]));
            assert!(changed(&a, &before, &effects), "{name}: {} ({})", entry.keys[0], entry.name);
        }
    }
}

#[test]
fn help_and_footer_are_the_table() {
    let mut a = app((140, 320));
    press(&mut a, "?");
    let shown = crate::screens::text(&crate::screens::draw(&a, "dark"));
    for entry in TABLE {
        assert!(
            shown.contains(entry.doc) && shown.contains(&entry.keys.join(" ")),
            "{}",
            entry.doc
        );
    }
    let a = app((140, 40));
    let shown = crate::screens::text(&crate::screens::draw(&a, "dark"));
    let footer = shown.lines().last().unwrap();
    let want: Vec<String> =
        a.footer().iter().map(|e| format!("{} {}", e.keys[0], e.name)).collect();
    assert_eq!(footer.trim(), want.join("  "));
    assert!(!want.iter().any(|w| w.contains("reconnect")), "a connected server needs none");
    assert_eq!(a.keymap.lookup(Context::Main, Key::parse("q").unwrap()), Some(Action::Quit));
}

#[test]
fn time_ticks_only_while_something_moves() {
    let mut a = app((140, 40));
    // Eight hours old: minutes move, seconds don't.
    assert_eq!(a.next_tick().map(|t| t.0.rem_euclid(60_000_000)), Some(0));
    update(&mut a, Msg::Now(night::morning().plus_seconds(200_000.0)));
    assert_eq!(a.next_tick(), None, "rows of days ago stand still");
    open_dialog(&mut a, Question::Preview);
    press(&mut a, "<enter>");
    let next = a.next_tick().unwrap();
    assert!(next > a.now && next.0 - a.now.0 <= 1_000_000);
}

#[test]
fn the_arguments_are_picked_out_of_a_pasted_log() {
    let mut a = app((140, 40));
    press(&mut a, "j");
    open_dialog(&mut a, Question::Ask);
    let log = "12:01 tool_use {\"name\":\"create_ticket\",\"input\":{\"request_id\":\"night-004\",\"title\":\"x\"}}\n\
               12:02 tool_use {\"name\":\"create_ticket\",\"input\":{\"request_id\":\"night-005\",\"title\":\"停止\"}}\n";
    let effects = update(&mut a, Msg::Paste(log.into()));
    let [Effect::Check { args, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(args, "{\"request_id\":\"night-005\",\"title\":\"停止\"}");
}

#[test]
fn what_is_too_small_to_be_seen_is_not_agreed_to() {
    let mut a = app((140, 40));
    open_dialog(&mut a, Question::Preview);
    update(&mut a, Msg::Resize(40, 9));
    for keys in ["<enter>", "y", "r", "f"] {
        assert!(press(&mut a, keys).is_empty(), "{keys}");
    }
    update(&mut a, Msg::Resize(140, 40));
    assert!(matches!(a.overlay, Some(Overlay::Reissue(_))), "it is still there, unanswered");
    let sent = press(&mut a, "<enter>");
    assert!(sent.iter().any(|e| matches!(e, Effect::Reissue(_))), "{sent:?}");
    let mut small = app((40, 9));
    press(&mut small, "q");
    assert!(small.quitting);
}

#[test]
fn pasted_arguments_without_the_request_id_take_the_place_of_what_is_there() {
    let mut a = app((140, 40));
    open_dialog(&mut a, Question::Preview);
    let out = update(&mut a, Msg::Paste(r#" {"title":"t","body":"b"} "#.into()));
    let args = out.iter().find_map(|e| match e {
        Effect::Check { args, .. } => Some(args.clone()),
        _ => None,
    });
    let args = args.unwrap();
    assert_eq!(redial::json::raw::get_str(&args, "title").as_deref(), Some("t"));
    assert_eq!(redial::json::raw::get_str(&args, "request_id").as_deref(), Some(selected(&a)));
}

/// Types a key so many milliseconds after the one before, each frame drawn at once.
fn after_ms(a: &mut App, ms: u64, key: &str) -> Vec<Effect> {
    let now = a.answering.now();
    update(a, Msg::Drawn { at: now });
    let at = now + std::time::Duration::from_millis(ms);
    update(a, Msg::Quiet { at });
    update(a, Msg::Input { at, crowded: false });
    update(a, Msg::Key { key: Key::parse(key).unwrap(), repeat: false })
}

fn sends(effects: &[Effect]) -> bool {
    effects.iter().any(|e| matches!(e, Effect::Reissue(_) | Effect::GiveUp { .. } | Effect::Quit))
}

#[test]
fn a_stream_of_keys_decides_nothing_at_any_rate_though_no_terminal_says_that_it_is_held() {
    for (question, key) in [(Question::Preview, "enter"), (Question::Ask, "y")] {
        for gap in [1, 16, 33, 100, 250] {
            let mut a = app((140, 40));
            open_dialog(&mut a, question);
            for _ in 0..100 {
                assert!(!sends(&after_ms(&mut a, gap, key)), "{question:?} every {gap} ms");
            }
            assert!(said(&a).contains("press it once more"), "{}", said(&a));
            assert!(sends(&after_ms(&mut a, 300, key)), "{question:?} after silence");
            assert_eq!(said(&a), "");
        }
    }
}

#[test]
fn a_question_that_is_another_one_is_read_anew() {
    let mut a = app((140, 40));
    open_dialog(&mut a, Question::Ask);
    after_ms(&mut a, 1_000, "up");
    // Its facts have changed: what is on the screen is the old question until it is drawn.
    let other = night::plan("night-007", Question::Preview);
    let mut now = other.check.clone();
    now.gate.question = Question::Ask;
    now.gate.reasons = vec!["done since 03:14:07".into()];
    let seq = a.dialog().unwrap().seq;
    update(&mut a, Msg::Checked { request_id: "night-007".into(), seq, check: Box::new(now) });
    let at = a.answering.now() + std::time::Duration::from_secs(9);
    update(&mut a, Msg::Input { at, crowded: false });
    let y = Msg::Key { key: Key::parse("y").unwrap(), repeat: false };
    assert!(!sends(&update(&mut a, y)), "not drawn yet");
    after_ms(&mut a, 10, "up");
    assert!(!sends(&after_ms(&mut a, 289, "y")), "just drawn");
    after_ms(&mut a, 10, "up");
    assert!(sends(&after_ms(&mut a, 300, "y")));
    // A terminal that was too small to show it, and one that was resized.
    let mut a = app((140, 40));
    open_dialog(&mut a, Question::Ask);
    update(&mut a, Msg::Resize(20, 5));
    after_ms(&mut a, 5_000, "up");
    update(&mut a, Msg::Resize(140, 40));
    assert!(!sends(&after_ms(&mut a, 200, "y")));
    assert!(sends(&after_ms(&mut a, 300, "y")));
}

#[test]
fn a_typed_request_id_counts_from_when_it_could_be_read_and_its_enter_needs_no_silence() {
    let mut a = app((140, 40));
    open_dialog(&mut a, Question::Type);
    for key in "night-007".chars() {
        after_ms(&mut a, 20, &key.to_string());
    }
    assert!(!sends(&after_ms(&mut a, 20, "enter")), "typed before it could be read");
    after_ms(&mut a, 100, "ctrl-u");
    for key in "night-007".chars() {
        after_ms(&mut a, 20, &key.to_string());
    }
    assert!(sends(&after_ms(&mut a, 20, "enter")));
}

#[test]
fn keys_and_clicks_that_come_in_a_heap_decide_nothing() {
    let mut a = app((140, 40));
    open_dialog(&mut a, Question::Ask);
    let at = a.answering.now();
    update(&mut a, Msg::Drawn { at });
    let at = at + std::time::Duration::from_secs(5);
    update(&mut a, Msg::Input { at, crowded: true });
    let y = Msg::Key { key: Key::parse("y").unwrap(), repeat: false };
    assert!(!sends(&update(&mut a, y)));
    // A text that is pasted is no key.
    update(&mut a, Msg::Input { at: at * 2, crowded: false });
    assert!(!sends(&update(&mut a, Msg::Paste("y\r".into()))));
}

#[test]
fn quitting_with_a_call_in_flight_is_decided_like_the_rest() {
    let mut a = app((140, 40));
    open_dialog(&mut a, Question::Ask);
    assert!(sends(&press(&mut a, "y")));
    // Held: the key that asks is the key that decides.
    assert!(!sends(&after_ms(&mut a, 1_000, "ctrl-c")));
    assert!(matches!(a.overlay, Some(Overlay::Quit)));
    assert!(!sends(&after_ms(&mut a, 500, "ctrl-c")), "a keyboard may wait so long to repeat");
    for _ in 0..50 {
        assert!(!sends(&after_ms(&mut a, 33, "ctrl-c")));
    }
    assert!(!sends(&after_ms(&mut a, 1_000, "ctrl-c")));
    let at = a.answering.now() + std::time::Duration::from_millis(200);
    assert!(sends(&update(&mut a, Msg::Quiet { at })), "once more, and then nothing");
}
