//! More of what keys and the mouse do: the palette, help, themes, rows, panes, JSON, copying, the log, the server's
//! questions; and the README's table of keys, which is the program's own.

use crate::screens::{draw, text};
use crate::support::night::{self, app, open_dialog, press};
use ratatui::layout::Rect;
use redial::keys::action::{self, Action, Context, Entry, TABLE};
use redial::keys::keymap::Keymap;
use redial::tui::app::Hit;
use redial::tui::data::Question;
use redial::tui::form::Form;
use redial::tui::list::Sort;
use redial::tui::msg::Mouse;
use redial::tui::pick::What;
use redial::tui::tree::Document;
use redial::tui::{App, Effect, Msg, Overlay, Pane, Seen, update, view};
use std::sync::Arc;

fn selected(a: &App) -> &str {
    a.requests.selected.as_deref().unwrap()
}

fn said(a: &App) -> &str {
    a.said.as_ref().map_or("", |(_, text)| text)
}

fn shown(a: &App) -> String {
    text(&draw(a, "dark"))
}

#[test]
fn the_palette_finds_every_action_by_a_few_letters_and_names_its_key() {
    let mut a = app((140, 50));
    press(&mut a, ":");
    let all = shown(&a);
    assert!(all.contains("re-issue") && all.contains("repeat the selected request"), "{all}");
    press(&mut a, "vrfy");
    let found = shown(&a);
    assert!(found.contains("▸verify") && !found.contains("reconnect"), "{found}");
    assert_eq!(press(&mut a, "<enter>"), [Effect::Verify { on: true }]);
    press(&mut a, "<esc>");
    // What can't be done now says why, as its key does.
    press(&mut a, ":reconnect<enter>");
    assert_eq!((said(&a), a.is_main()), ("the server is connected", true));
    press(&mut a, ":zzzz");
    assert!(shown(&a).contains("Nothing is called that"));
    assert!(press(&mut a, "<enter><esc>").is_empty() && a.is_main());
    // Every action of the screen is there, with its key.
    for e in TABLE.iter().filter(|e| e.context.is_screen() && e.action != Action::Palette) {
        press(&mut a, ":");
        update(&mut a, Msg::Paste(e.name.into()));
        let rows = shown(&a);
        assert!(rows.contains(e.name) && rows.contains(e.keys[0]), "{}: {rows}", e.name);
        press(&mut a, "<esc>");
    }
}

#[test]
fn help_begins_with_the_place_it_was_asked_for_and_can_be_searched() {
    for (keys, first) in [("", "in requests"), ("<tab>", "in detail"), ("<tab><tab>", "in calls")] {
        let mut a = app((120, 40));
        press(&mut a, &format!("{keys}?"));
        let lines = shown(&a);
        let title = lines.lines().find(|l| l.contains("in ") || l.contains("anywhere")).unwrap();
        assert!(title.contains(first), "{lines}");
    }
    let mut a = app((120, 40));
    press(&mut a, "?/newer");
    assert!(shown(&a).contains("No key's help holds that"));
    press(&mut a, "<esc>/gate<enter>");
    let lines = shown(&a);
    assert!(lines.contains("behind the gate") && !lines.contains("move up"), "{lines}");
    press(&mut a, "<esc>");
    assert!(a.is_main());
}

#[test]
fn a_remapped_key_is_what_footer_help_and_palette_name() {
    let mut a = app((140, 50));
    let keys = [("find".to_owned(), vec!["f5".to_owned()]), ("verify".to_owned(), vec![])];
    a.keymap = Keymap::with(&[("main".to_owned(), keys.into_iter().collect())].into()).unwrap();
    assert!(press(&mut a, "v").is_empty() && press(&mut a, "f").is_empty());
    let footer = shown(&a).lines().last().unwrap().to_owned();
    assert!(footer.contains("f5 find") && !footer.contains("verify"), "{footer}");
    press(&mut a, "?");
    assert!(shown(&a).contains("f5 "));
    press(&mut a, "<esc>");
    assert_eq!(press(&mut a, "<f5>"), [Effect::Find { request_id: "night-007".into() }]);
    // What has no key is still in the palette.
    assert_eq!(press(&mut a, ":verify<enter>"), [Effect::Verify { on: true }]);
}

#[test]
fn themes_are_seen_while_they_are_chosen() {
    let mut a = app((100, 30));
    press(&mut a, "t<down>");
    assert_eq!(a.themes.chosen().1, "light");
    press(&mut a, "<esc>");
    assert_eq!(a.themes.chosen().1, "dark", "left as it was");
    press(&mut a, "tgruv");
    assert_eq!(a.themes.chosen().1, "gruvbox");
    press(&mut a, "<enter>");
    assert_eq!((a.themes.chosen().1, said(&a)), ("gruvbox", "theme gruvbox"));
}

/// Draws and lets the app know what is where, as the loop does.
fn look(a: &mut App) {
    let mut seen = Seen::default();
    let (w, h) = a.size;
    let backend = ratatui::backend::TestBackend::new(w, h);
    let mut terminal = ratatui::Terminal::new(backend).unwrap();
    let theme = a.themes.theme().clone();
    terminal.draw(|frame| view(a, &theme, &mut seen, frame)).unwrap();
    a.drew(&mut seen);
}

fn place(a: &App, wanted: impl Fn(&Hit) -> bool) -> Rect {
    a.hits.iter().rev().find(|(_, h)| wanted(h)).unwrap().0
}

fn mouse(a: &mut App, at: Rect, did: Mouse) -> Vec<Effect> {
    let effects = update(a, Msg::Mouse { x: at.x + at.width / 2, y: at.y, did });
    night::answer(a, effects)
}

#[test]
fn the_mouse_selects_scrolls_and_presses_the_footer_and_never_sends() {
    for size in [(140, 40), (80, 24), (60, 16)] {
        let mut a = app(size);
        look(&mut a);
        let row = place(&a, |h| matches!(h, Hit::Request(id, _) if id == "night-006"));
        mouse(&mut a, row, Mouse::Click);
        assert_eq!(selected(&a), "night-007", "it is off unless it was switched on");
        a.mouse = true;
        mouse(&mut a, row, Mouse::Click);
        assert_eq!((selected(&a), a.pane), ("night-006", Pane::Requests), "{size:?}");
        mouse(&mut a, row, Mouse::ScrollDown);
        assert_ne!(selected(&a), "night-006");
        let tab = place(&a, |h| *h == Hit::Pane(Pane::Detail));
        mouse(&mut a, tab, Mouse::Click);
        assert_eq!(a.pane, Pane::Detail);
        look(&mut a);
        let quit = place(&a, |h| *h == Hit::Key(Action::Quit));
        let footer = shown(&a).lines().last().unwrap().to_owned();
        let at = redial::text::width(footer.split("q quit").next().unwrap());
        assert_eq!((usize::from(quit.x), quit.y), (at, size.1 - 1));
        let help = place(&a, |h| *h == Hit::Key(Action::Help));
        mouse(&mut a, help, Mouse::Click);
        assert!(matches!(a.overlay, Some(Overlay::Help(_))));
        look(&mut a);
        // Nothing is clicked through a box.
        let before = selected(&a).to_owned();
        mouse(&mut a, row, Mouse::Click);
        assert_eq!(selected(&a), before);
        press(&mut a, "<esc>");
        open_dialog(&mut a, Question::Preview);
        look(&mut a);
        let send = place(&a, |h| *h == Hit::Key(Action::Send));
        assert!(mouse(&mut a, send, Mouse::Click).is_empty());
        let no = place(&a, |h| *h == Hit::Key(Action::Close));
        mouse(&mut a, no, Mouse::Click);
        assert!(a.is_main());
        look(&mut a);
        let quit = place(&a, |h| *h == Hit::Key(Action::Quit));
        assert_eq!(mouse(&mut a, quit, Mouse::Click), [Effect::Quit]);
    }
}

#[test]
fn rows_are_sorted_sought_followed_and_paused() {
    let mut a = app((140, 40));
    press(&mut a, "s");
    assert_eq!((a.requests.sorted(), said(&a)), ((Sort::State, false), "sorted by state"));
    press(&mut a, "sS");
    assert_eq!(said(&a), "sorted by request_id, turned round");
    assert!(shown(&a).contains("by request_id ↑"));
    press(&mut a, "sssss");
    assert_eq!(a.requests.sorted(), (Sort::Newest, false));
    // night-007 and night-005 are stalled, the pair is suspect: round and round.
    let visited: Vec<String> = (0..5)
        .map(|_| {
            press(&mut a, "n");
            selected(&a).to_owned()
        })
        .collect();
    assert_eq!(visited, ["night-005", "night-006", "night-001", "night-007", "night-005"]);
    press(&mut a, "F");
    assert_eq!((selected(&a), a.requests.is_following()), ("night-007", true));
    press(&mut a, "p");
    assert!(shown(&a).contains("paused (p)"));
    assert!(update(&mut a, Msg::FactsChanged).iter().all(|e| !matches!(e, Effect::LoadWindow(_))));
    assert!(shown(&a).contains("paused, there is more (p)"));
    assert!(press(&mut a, "p").is_empty() && !a.requests.is_paused());
}

#[test]
fn a_filter_is_a_language_and_a_mistake_in_it_is_marked_while_rows_stay() {
    let mut a = app((140, 40));
    press(&mut a, "/abandoned");
    assert!(shown(&a).contains("2 of 7") && a.requests.len() == 2, "{}", shown(&a));
    update(&mut a, Msg::Paste(" age:>5x".into()));
    let seen = shown(&a);
    assert!(seen.contains("filter: abandoned age:▸>5x◂ no number"), "{seen}");
    assert_eq!((a.requests.len(), a.requests.filter.as_str()), (2, "abandoned age:>5x"));
    press(&mut a, "<ctrl-u>");
    update(&mut a, Msg::Paste("state:".into()));
    assert!(a.requests.mistake.is_some(), "not yet written to its end");
    press(&mut a, "<esc>");
    assert_eq!((a.requests.len(), a.requests.mistake.is_none()), (7, true));
}

#[test]
fn a_request_id_is_typed_and_gone_to_whether_the_list_has_it_or_not() {
    let mut a = app((140, 40));
    press(&mut a, "/night-00<enter>");
    update(&mut a, Msg::Paste("nothing types here".into()));
    press(&mut a, "o");
    assert!(shown(&a).contains("request_id "), "{}", shown(&a));
    update(&mut a, Msg::Paste(" night-002 \nand a second line".into()));
    press(&mut a, "<enter>");
    assert_eq!(
        (selected(&a), a.pane, a.requests.filter.as_str()),
        ("night-002", Pane::Detail, "night-00")
    );
    press(&mut a, "oqx<backspace><enter>");
    assert_eq!((selected(&a), a.requests.filter.as_str()), ("q", ""), "no key but text");
    assert_eq!(press(&mut a, "f"), [Effect::Find { request_id: "q".into() }]);
    press(&mut a, "o<enter>");
    press(&mut a, "oabc<esc>");
    assert_eq!((selected(&a), a.is_main()), ("q", true));
}

#[test]
fn a_ledger_that_cannot_be_read_is_not_being_read_for_ever_and_its_age_comes_first() {
    use redial::tui::Start;
    use redial::tui::data::Counts;
    let trouble = |as_of| {
        Msg::Counts(Box::new(Counts {
            headline: "7 requests".into(),
            as_of,
            trouble: Some("x.db is not a SQLite database: its first bytes are text".into()),
            warnings: vec!["give the SQLite file that the server writes".into()],
            ..Counts::default()
        }))
    };
    let start = Start { ledger: true, ..Start::default() };
    let mut a = App::new(start, night::morning(), (60, 16));
    assert!(shown(&a).contains("Reading the ledger…"));
    update(&mut a, trouble(None));
    let seen = shown(&a);
    for text in ["The ledger can't be read:", "its first bytes are text", "give the SQLite file"] {
        assert!(seen.contains(text) && !seen.contains("Reading"), "{seen}");
    }
    // What was read before stays, with its age where it isn't cut off; nothing is claimed of a row.
    let mut a = app((60, 16));
    update(&mut a, trouble(Some(night::morning().plus_seconds(-90.0))));
    let first = shown(&a).lines().next().unwrap().to_owned();
    assert!(first.contains(", 1 m 30 s ago: x.db is not"), "{first}");
    assert!(shown(&a).contains("night-007"));
    assert_eq!(said(&a), "give the SQLite file that the server writes");
}

#[test]
fn over_http_it_says_when_the_server_was_last_heard() {
    use redial::tui::wire::Reach;
    let mut a = app((140, 40));
    let line = |a: &App| shown(a).lines().nth(1).unwrap().to_owned();
    assert!(line(&a).starts_with(" ● ready ·"));
    a.start.endpoint = Some(Reach::Http("http://127.0.0.1:8000/mcp".into()));
    let heard = a.wire.as_ref().unwrap().heard_at.unwrap();
    assert!(
        line(&a).starts_with(&format!(" ● ready, last heard at {} ·", heard.clock())),
        "{}",
        line(&a)
    );
}

#[test]
fn an_uncertain_end_is_not_told_as_the_servers() {
    let mut a = app((140, 40));
    let mut wire = night::wire();
    wire.generations[1].ended = wire.generations[0].ended;
    wire.generations[1].ended.as_mut().unwrap().gone_at = None;
    wire.link.as_mut().unwrap().state = redial::journal::LinkState::Dead;
    update(&mut a, Msg::Wire(Arc::new(wire)));
    press(&mut a, "<tab><tab><tab>z");
    let seen = shown(&a);
    let says = "the process that redial started ended (signal 9 (SIGKILL)), but something it started may still run";
    assert_eq!(seen.matches(says).count(), 2, "above and in its place: {seen}");
}

#[test]
fn what_was_given_up_is_named_when_quitting_unless_it_is_known_to_be_done() {
    let mut a = app((140, 40));
    let wire = |id: &str| {
        let mut wire = night::wire();
        let mut call = (*wire.calls[1]).clone();
        (call.generation, call.request_id) = (2, Some(id.to_owned()));
        wire.calls.insert(0, Arc::new(call));
        Msg::Wire(Arc::new(wire))
    };
    update(&mut a, wire("night-007"));
    assert!(press(&mut a, "q").is_empty());
    let seen = shown(&a);
    assert!(
        seen.contains("create_ticket night-007, sent") && seen.contains("outcome unknown"),
        "{seen}"
    );
    press(&mut a, "<esc>");
    update(&mut a, wire("night-001"));
    assert_eq!(press(&mut a, "q"), [Effect::Quit], "the ledger says that it is done");
}

#[test]
fn panes_are_zoomed_and_borders_moved_and_a_new_size_keeps_the_place() {
    let mut a = app((140, 40));
    press(&mut a, "jj<tab>z");
    let alone = shown(&a);
    assert!(
        alone.contains("requests  detail  calls  stderr  verify") && !alone.contains("request_id"),
        "{alone}"
    );
    press(&mut a, "<esc>");
    assert!(!a.shares.zoom && a.pane == Pane::Detail);
    let width = |a: &App| a.layout().detail.unwrap().width;
    let before = width(&a);
    press(&mut a, ">>");
    assert!(width(&a) > before);
    press(&mut a, "<lt><lt><lt><lt>");
    assert!(width(&a) < before);
    let height = |a: &App| a.layout().requests.unwrap().height;
    let before = height(&a);
    press(&mut a, "-");
    assert!(height(&a) > before, "the border above detail goes down when detail gets shorter");
    press(&mut a, "<tab>");
    let calls = |a: &App| a.layout().calls.unwrap().height;
    let before = calls(&a);
    press(&mut a, "+");
    assert!(calls(&a) > before);
    press(&mut a, "=");
    assert_eq!(a.shares, redial::tui::layout::Shares::default());
    // Through every size and back: pane, selection and scroll are where they were.
    press(&mut a, "<shift-tab>jj");
    let (pane, id, scroll) = (a.pane, selected(&a).to_owned(), a.detail_scroll);
    for size in [(60, 16), (38, 9), (200, 60), (80, 24), (140, 40)] {
        update(&mut a, Msg::Resize(size.0, size.1));
        shown(&a);
    }
    assert_eq!((a.pane, selected(&a), a.detail_scroll), (pane, id.as_str(), scroll));
}

#[test]
fn a_json_text_is_folded_searched_seen_raw_and_copied() {
    let mut a = app((100, 30));
    assert_eq!(
        press(&mut a, "<tab>J"),
        [Effect::Json { request_id: "night-007".into(), call: None }]
    );
    assert!(shown(&a).contains("Reading…"));
    let text = r#"{"ticket":{"title":"在庫差異 倉庫B","tags":["a","b"]},"replayed":false}"#;
    let doc = |t: &str| Arc::new(Document::new("result".into(), t.into()));
    update(&mut a, Msg::Documents(vec![doc(text), doc("[1]")]));
    let tree = shown(&a);
    assert!(tree.contains("▾ \"ticket\":{") && tree.contains("1 of 2 · result"), "{tree}");
    press(&mut a, "j<enter>");
    assert!(shown(&a).contains("▸ \"ticket\":{ … 6 lines"), "{}", shown(&a));
    press(&mut a, "/倉庫<enter>");
    assert!(shown(&a).contains("\"title\":\"在庫差異 倉庫B\""), "{}", shown(&a));
    press(&mut a, "r");
    assert!(shown(&a).contains(text));
    let keep = Effect::Keep { what: "result".into(), text: text.into() };
    assert_eq!(press(&mut a, "y"), [keep]);
    press(&mut a, "<tab>");
    assert!(shown(&a).contains("2 of 2"));
    press(&mut a, "<esc>");
    assert!(a.is_main());
    // From the calls: the selected call's.
    let effects = press(&mut a, "<tab>J");
    assert!(matches!(&effects[..], [Effect::Json { call: Some(_), .. }]));
    update(&mut a, Msg::Documents(vec![]));
    assert!(a.is_main() && said(&a).contains("nothing") || said(&a).contains("no result"));
}

#[test]
fn what_is_copied_goes_to_the_clipboard_and_it_is_said_where_else() {
    let mut a = app((100, 30));
    press(&mut a, "y");
    let list = shown(&a);
    assert!(What::ALL.iter().all(|w| list.contains(w.words())), "{list}");
    let effects = press(&mut a, "command<enter>");
    assert_eq!(effects, [Effect::Copy { what: What::Command, request_id: "night-007".into() }]);
    let copied = |text: &str, kept: Option<&str>| Msg::Copied {
        what: "request_id".into(),
        text: Ok(text.into()),
        kept: kept.map(str::to_owned),
    };
    update(&mut a, copied("night-007", Some("/s/copied.txt")));
    assert_eq!(a.clipboard.take().as_deref(), Some("night-007"));
    assert_eq!(
        said(&a),
        "request_id: 9 bytes to the terminal's clipboard (OSC 52), and kept in /s/copied.txt"
    );
    update(&mut a, copied(&"x".repeat(100_000), Some("/s/copied.txt")));
    assert_eq!((a.clipboard.take(), said(&a).ends_with("kept in /s/copied.txt")), (None, true));
}

#[test]
fn the_log_tells_what_was_sent_and_what_came_of_it() {
    let mut a = app((120, 40));
    press(&mut a, "L");
    assert!(shown(&a).contains("Nothing was sent by this run"));
    press(&mut a, "<esc>f");
    open_dialog(&mut a, Question::Preview);
    press(&mut a, "<enter><esc>");
    let id = "night-007".to_owned();
    update(&mut a, Msg::LookedUp { request_id: id.clone(), answer: Err("it is gone".into()) });
    press(&mut a, "L");
    let log = shown(&a);
    assert!(
        log.contains("look-up of night-007") && log.contains("create_ticket night-007"),
        "{log}"
    );
    assert!(log.contains("nothing has come of it yet"), "{log}");
    update(&mut a, Msg::Reissued { request_id: id, report: Box::new(Ok(night::report())) });
    let log = shown(&a);
    assert!(log.contains("ok, now done, effects 0 → 1") && log.contains("it is gone"), "{log}");
}

#[test]
fn the_servers_question_is_a_form_and_nothing_goes_out_unasked() {
    let mut a = app((100, 30));
    let ask = r#"{"message":"Charge the card?","requestedSchema":{"properties":{"sure":{"type":"boolean"},"amount":{"type":"integer"}},"required":["sure","amount"]}}"#;
    let form =
        |id| Msg::Asked(Box::new(Form::new(id, night::morning(), ask, Some("charge c-1".into()))));
    update(&mut a, form(1));
    let seen = shown(&a);
    assert!(seen.contains("Charge the card?") && seen.contains("charge c-1 waits"), "{seen}");
    assert!(press(&mut a, "<enter>").is_empty());
    assert!(said(&a).contains("nothing was sent"));
    press(&mut a, "y<tab>12x<backspace>");
    press(&mut a, "<esc>");
    assert!(a.is_main() && shown(&a).contains("a answer"), "{}", shown(&a));
    press(&mut a, "a");
    let content = Some(r#"{"sure":true,"amount":12}"#.to_owned());
    assert_eq!(press(&mut a, "<enter>"), [Effect::Answer { id: 1, content }]);
    assert!(a.is_main() && a.questions.is_empty());
    update(&mut a, form(2));
    assert_eq!(press(&mut a, "<ctrl-d>"), [Effect::Answer { id: 2, content: None }]);
    update(&mut a, form(3));
    update(&mut a, Msg::AskedNoMore { id: 3 });
    assert!(a.is_main());
    assert!(!press(&mut a, "L").iter().any(|e| matches!(e, Effect::Answer { .. })));
    assert!(shown(&a).contains("an answer to the server's question: Charge the card?"));
}

#[test]
fn the_bell_is_off_unless_it_was_asked_for() {
    use redial::config::Bell;
    for (bell, rings) in [(Bell::Off, false), (Bell::Bell, true)] {
        let mut a = app((100, 30));
        a.bell = bell;
        let mut wire = night::wire();
        wire.generations[1].ended = wire.generations[0].ended;
        update(&mut a, Msg::Wire(Arc::new(wire)));
        assert_eq!(a.ring.is_some(), rings);
    }
}

#[test]
fn a_row_that_changed_shows_it_and_the_mark_goes() {
    let mut a = app((120, 40));
    let effects = update(&mut a, Msg::FactsChanged);
    for e in effects {
        if let Effect::LoadWindow(ask) = e {
            let (mut top, rows): (Vec<_>, Vec<_>) = night::lines()
                .into_iter()
                .partition(|l| *l.judged.state() != redial::judge::State::Done);
            let status = "failed".into();
            top[1] = night::line_of(redial::ledger::Row { status, ..top[1].row.clone() });
            let window = redial::tui::data::Window {
                ask,
                top_total: 2,
                top,
                rows,
                tail: Vec::new(),
                has_newer: false,
                has_older: false,
                matches: None,
            };
            update(&mut a, Msg::Requests(Box::new(window)));
        }
    }
    let marked = |a: &App| shown(a).matches('•').count();
    assert!(shown(&a).contains("! failed   • night-005") && marked(&a) == 1, "{}", shown(&a));
    let tick = a.next_tick().unwrap();
    assert!(tick.0 - a.now.0 <= 6_000_000);
    update(&mut a, Msg::Now(night::morning().plus_seconds(7.0)));
    assert_eq!(marked(&a), 0);
}

#[test]
fn the_readmes_keys_are_the_tables() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once("<!-- keys -->\n").unwrap();
    let (table, after) = rest.split_once("<!-- /keys -->").unwrap();
    if table == action::markdown() {
        return;
    }
    // Together with the pictures: one command writes what is generated.
    assert!(
        std::env::var_os("REDIAL_PICTURES").is_some(),
        "README.md has other keys: REDIAL_PICTURES=1 cargo test --test it readme"
    );
    let whole = format!("{before}<!-- keys -->\n{}<!-- /keys -->{after}", action::markdown());
    std::fs::write(path, whole).unwrap();
}

/// Every key of the README's table, in a place where it works, does what its line says.
#[test]
fn every_key_of_the_readme_does_what_it_says() {
    let in_readme = |e: &&Entry| e.context.is_screen() || e.context == Context::Json;
    for e in TABLE.iter().filter(in_readme) {
        for key in e.keys {
            let mut a = app((140, 40));
            prepare(&mut a, e);
            let before = format!("{a:?}");
            assert!(a.can(e.action), "{key}: {} works here", e.name);
            let pressed = match *key {
                "<" => press(&mut a, "<lt>"),
                ">" => press(&mut a, ">"),
                key => press(&mut a, &format!("<{key}>")),
            };
            assert!(did(e, &a, &pressed), "{key} ({}): {pressed:?}", e.doc);
            assert!(!pressed.is_empty() || format!("{a:?}") != before, "{key}: something happened");
        }
    }
}

fn prepare(a: &mut App, e: &Entry) {
    let ask = Form::new(1, night::NIGHT, "{}", None);
    match (e.context, e.action) {
        (Context::Json, _) => {
            press(a, "<tab>J");
            let doc = |t: &str| Arc::new(Document::new("t".into(), t.into()));
            update(a, Msg::Documents(vec![doc(r#"{"a":[1,2,[3]],"b":{"c":2}}"#), doc("[2]")]));
            press(a, "j/2<enter>");
        }
        (Context::Detail, _) => drop(press(a, "<enter>jj")),
        (Context::Calls, _) => drop(press(a, "<tab><tab>")),
        (Context::Verify, _) => {
            press(a, "v");
            let counted = redial::tui::data::Counted::Found(Box::new(night::verified()));
            update(a, Msg::Counted(counted));
        }
        (_, Action::Cancel | Action::StopWaiting) => {
            night::pending(a);
            press(a, "/night-004<enter>");
        }
        (_, Action::Reconnect) => {
            let mut wire = night::wire();
            wire.link.as_mut().unwrap().state = redial::journal::LinkState::Dead;
            update(a, Msg::Wire(Arc::new(wire)));
        }
        (_, Action::Answer) => {
            update(a, Msg::Asked(Box::new(ask)));
            press(a, "<esc>");
        }
        (_, Action::Findings) => a.start.recording = Some("r.jsonl".into()),
        (_, Action::Back) => drop(press(a, "<tab>")),
        (_, Action::Even) => drop(press(a, ">")),
        _ => drop(press(a, "jjj")),
    }
}

fn did(e: &Entry, a: &App, pressed: &[Effect]) -> bool {
    use Action as A;
    let json = a.json();
    match (e.context, e.action) {
        (Context::Json, A::Close) => a.is_main(),
        (Context::Json, A::Quit) | (_, A::Quit) => pressed == [Effect::Quit],
        (Context::Json, A::Copy) => matches!(pressed, [Effect::Keep { .. }]),
        (Context::Json, A::Fold | A::FoldAll) => json.is_some_and(|v| v.len() < 11),
        (Context::Json, A::Raw) => json.is_some_and(|v| v.raw),
        (Context::Json, A::Search) => json.is_some_and(|v| v.typing),
        (Context::Json, A::NextPane) => json.is_some_and(|v| v.document.text == "[2]"),
        (Context::Json, A::Top) => json.is_some_and(|v| v.at == 0),
        (Context::Json, A::Bottom) => json.is_some_and(|v| v.at + 1 == v.len()),
        (Context::Json, _) => json.is_some(),
        (_, A::Answer) => matches!(a.overlay, Some(Overlay::Form)),
        (_, A::Findings) => pressed == [Effect::Audit],
        (_, A::Reconnect) => pressed == [Effect::Reconnect],
        (_, A::Next | A::Reissue) => matches!(pressed, [Effect::Plan { .. }]),
        (_, A::Json) => matches!(pressed, [Effect::Json { .. }]),
        (_, A::Find) => matches!(pressed, [Effect::Find { .. }]),
        (_, A::Details) => a.pane == Pane::Detail,
        (_, A::Back) => a.pane == Pane::Requests,
        (_, A::NextPane) => a.pane == Pane::Detail,
        (_, A::PrevPane) => a.pane == Pane::Verify,
        (_, A::Filter) => matches!(a.overlay, Some(Overlay::Filter)),
        (_, A::Verify) => pressed == [Effect::Verify { on: true }],
        (_, A::TimeLine) => matches!(a.overlay, Some(Overlay::Timeline)),
        (_, A::GoTo) => matches!(a.overlay, Some(Overlay::GoTo(_))),
        (_, A::Cancel) => matches!(a.overlay, Some(Overlay::Cancel(_))),
        (_, A::StopWaiting) => matches!(pressed, [Effect::GiveUp { tell: false, .. }]),
        (_, A::Copy | A::Palette | A::Themes) => matches!(a.overlay, Some(Overlay::Pick(_))),
        (_, A::Need) => selected(a) == "night-007",
        (_, A::Sort | A::Turn) => a.requests.sorted() != (Sort::Newest, false),
        (_, A::Follow) => a.requests.is_following(),
        (_, A::Pause) => a.requests.is_paused(),
        (_, A::Up) => selected(a) == "night-006",
        (_, A::Down) => selected(a) == "night-003",
        (_, A::PageUp | A::Top) => selected(a) == "night-007",
        (_, A::PageDown | A::Bottom) => selected(a) == "night-001",
        (_, A::Zoom) => a.shares.zoom,
        (_, A::Taller | A::Shorter) => a.shares.upper.is_some(),
        (_, A::Wider | A::Narrower) => a.shares.left.is_some(),
        (_, A::Even) => a.shares == redial::tui::layout::Shares::default(),
        (_, A::Log) => matches!(a.overlay, Some(Overlay::Log { .. })),
        (_, A::Mouse) => a.mouse,
        (_, A::Suspend) => a.suspending,
        (_, A::Redraw) => a.redraw,
        (_, A::Help) => matches!(a.overlay, Some(Overlay::Help(_))),
        other => panic!("nobody says what {other:?} does"),
    }
}

#[test]
fn a_question_without_room_is_read_piece_by_piece_and_not_answered() {
    let mut a = app((140, 40));
    open_dialog(&mut a, Question::Type);
    update(&mut a, Msg::Resize(44, 10));
    look(&mut a);
    assert!(a.cut && a.standing().is_none(), "{}", shown(&a));
    let first = shown(&a);
    assert!(first.contains("No room for") && first.contains("Pagedown"), "{first}");
    // All of it can be read, up to the line that says what to type.
    let mut read = first.clone();
    for _ in 0..30 {
        assert!(press(&mut a, "<pagedown>").is_empty());
        look(&mut a);
        read += &shown(&a);
    }
    for text in ["tools/call", "\"request_id\"", "To send it all the same"] {
        assert!(read.contains(text), "{text}: {read}");
    }
    press(&mut a, "<home>");
    assert_eq!(shown(&a), first);
    press(&mut a, "<end>");
    look(&mut a);
    assert!(shown(&a).contains("doesn't."), "{}", shown(&a));
    // What is typed at it counts nowhere.
    assert!(press(&mut a, "night-007<enter>").is_empty());
    update(&mut a, Msg::Resize(140, 40));
    look(&mut a);
    assert!(!a.cut && !shown(&a).contains("No room"));
    assert!(press(&mut a, "<enter>").is_empty());
}
