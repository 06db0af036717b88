use super::*;
use crate::keys::action::{Context, TABLE};
use crate::time::Time;
use crate::tui::app::Start;
use crate::tui::msg::Msg;
use crate::tui::tree::Document;
use crate::tui::update::update;
use crate::tui::wire::Reach;
use bytes::Bytes;

fn app() -> App {
    let start = Start { recording: Some("/x/r.jsonl".into()), ..Start::default() };
    App::new(start, Time(0), (120, 40))
}

fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let mut out = Vec::new();
    for key in keys.split(' ') {
        let key = Key::parse(key).unwrap();
        out = update(app, Msg::Key { key, repeat: false });
    }
    out
}

fn asked(out: &[Effect]) -> &Ask {
    // What the recording gives rise to is asked for beside it.
    let mut asks = out.iter().filter(|e| !matches!(e, Effect::Audit));
    match (asks.next(), asks.next()) {
        (Some(Effect::Timeline(Some(ask))), None) => ask,
        _ => panic!("{out:?}"),
    }
}

fn window(app: &App, selected: usize, text: &str) -> Window {
    let bytes = Bytes::from(text.to_owned());
    let document = Arc::new(Document::new("event".into(), text.into()));
    Window {
        seq: app.timeline.seq,
        which: Which::Recording,
        name: "/x/r.jsonl".into(),
        filter: app.timeline.good.clone(),
        rows: vec![(
            selected,
            Row {
                seq: selected as u64 + 1,
                at: Time(0),
                generation: 1,
                dir: "out",
                kind: "request",
                method: Some("tools/call".into()),
                tool: Some("t".into()),
                request_id: Some("r-1".into()),
                id: None,
                outcome: Some("ok"),
                ms: None,
                bytes: text.len(),
                text: text.into(),
                age_s: 0.0,
            },
        )],
        first: selected,
        total: 9,
        of: 9,
        percent: None,
        damaged: 0,
        selected: Some(selected),
        text: Some(Arc::new(Shown { place: selected, bytes, document, cut: 0 })),
        said: None,
        written: false,
    }
}

fn tell(app: &mut App, w: Window) {
    update(app, Msg::Timeline(Box::new(w)));
}

#[test]
fn it_opens_at_the_end_and_follows_until_somebody_reads() {
    let mut app = app();
    let out = press(&mut app, "T");
    assert_eq!((&asked(&out).goto, asked(&out).follow), (&Goto::End, true));
    let w = window(&app, 8, "{\"a\":[1]}");
    tell(&mut app, w);
    let out = press(&mut app, "k");
    assert_eq!((&asked(&out).goto, asked(&out).follow), (&Goto::By(-1), false));
    // An answer to an older question is dropped.
    let old = Window { seq: 1, ..window(&app, 3, "x") };
    tell(&mut app, old);
    assert_eq!(app.timeline.row().unwrap().seq, 9);
    assert!(asked(&press(&mut app, "G")).follow);
    assert!(matches!(press(&mut app, "esc")[..], [Effect::Timeline(None)]));
    assert!(app.is_main());
}

#[test]
fn a_mistake_is_marked_and_the_last_good_filter_stays() {
    let mut app = app();
    press(&mut app, "T");
    let out = press(&mut app, "/ t o o l : x");
    assert_eq!(asked(&out).filter, "tool:x");
    let out = press(&mut app, "space (");
    assert!(out.is_empty(), "a mistake asks nothing");
    assert!(app.timeline.mistake.is_some());
    assert_eq!(app.timeline.filter, "tool:x (");
    let out = press(&mut app, "esc");
    assert_eq!((asked(&out).filter.as_str(), app.timeline.typing), ("", false));
}

#[test]
fn bookmarks_and_jumps_lead_back() {
    let mut app = app();
    press(&mut app, "T");
    let w = window(&app, 4, "{}");
    tell(&mut app, w);
    assert!(press(&mut app, "b").is_empty());
    assert_eq!(asked(&press(&mut app, "B")).goto, Goto::Place(4));
    let w = window(&app, 7, "{}");
    tell(&mut app, w);
    for (key, goto) in [
        ("a", Goto::Peer),
        ("s", Goto::Stderr),
        ("e", Goto::FirstError),
        ("n", Goto::NextError),
        ("d", Goto::Death),
    ] {
        assert_eq!(asked(&press(&mut app, key)).goto, goto);
    }
    assert_eq!(asked(&press(&mut app, "backspace")).goto, Goto::Place(7));
    // To the ledger row of the selected call.
    press(&mut app, "l");
    assert!(app.is_main() && app.pane == Pane::Detail);
    assert_eq!(app.requests.selected.as_deref(), Some("r-1"));
}

#[test]
fn the_text_is_pretty_raw_and_in_hex() {
    let mut app = app();
    press(&mut app, "T");
    let text = "{\"a\":[1,2,3],\"b\":\"0123456789\"}";
    let w = window(&app, 0, text);
    tell(&mut app, w);
    assert_eq!((app.timeline.form, app.timeline.text_len()), (Form::Pretty, 8));
    press(&mut app, "x");
    assert_eq!((app.timeline.form, app.timeline.text_len()), (Form::Raw, 1));
    press(&mut app, "x");
    assert_eq!((app.timeline.form, app.timeline.text_len()), (Form::Hex, text.len().div_ceil(16)));
    // The keys move the text, and never beyond it.
    press(&mut app, "tab");
    assert!(press(&mut app, "G").is_empty());
    assert_eq!(app.timeline.hex_at, 1);
    press(&mut app, "x");
    assert!(press(&mut app, "j j").is_empty());
    assert_eq!(app.timeline.view.as_ref().unwrap().at, 2);
}

#[test]
fn every_key_of_the_table_does_something() {
    for e in TABLE.iter().filter(|e| e.context == Context::Timeline) {
        for key in e.keys {
            let mut app = app();
            app.start.endpoint = Some(Reach::Stdio("s".into()));
            press(&mut app, "T");
            let w = window(&app, 4, "{\"a\":[1]}");
            tell(&mut app, w);
            assert!(app.can(e.action), "{key}");
            let before = format!("{app:?}");
            let out = press(&mut app, key);
            assert!(!out.is_empty() || format!("{app:?}") != before, "{key}: {}", e.doc);
        }
    }
}
