//! Questions that are taller than their place: nothing is decided before all of their text has been on the screen.

use crate::screens::{draw, text};
use crate::support::night::{self, app, press};
use redial::tui::form::Form;
use redial::tui::{App, Effect, Msg, Overlay, Seen, update, view};

/// Draws and lets the app know what was seen, as the loop does.
fn look(a: &mut App) -> String {
    let (w, h) = a.size;
    let mut seen = Seen::default();
    let backend = ratatui::backend::TestBackend::new(w, h);
    let mut terminal = ratatui::Terminal::new(backend).unwrap();
    let theme = a.themes.theme().clone();
    terminal.draw(|frame| view(a, &theme, &mut seen, frame)).unwrap();
    a.drew(&mut seen);
    text(&draw(a, "dark"))
}

/// Presses keys with a look after each; what they did, and all that was seen.
fn pressed(a: &mut App, keys: &[&str]) -> (Vec<Effect>, String) {
    let (mut did, mut read) = (Vec::new(), look(a));
    for key in keys {
        did.extend(press(a, key));
        read += &look(a);
    }
    (did, read)
}

fn ask(id: u64, message: &str, properties: &str) -> Msg {
    let message = serde_json::to_string(message).unwrap();
    let params =
        format!(r#"{{"message":{message},"requestedSchema":{{"properties":{properties}}}}}"#);
    Msg::Asked(Box::new(Form::new(id, night::morning(), &params, Some("charge c-1".into()))))
}

/// Many words, each its own.
fn words(n: usize) -> String {
    (0..n).map(|i| format!("word{i:03}")).collect::<Vec<_>>().join(" ")
}

fn is_answer(e: &Effect) -> bool {
    matches!(e, Effect::Answer { .. })
}

#[test]
fn a_form_is_answered_once_its_message_and_fields_were_all_on_the_screen() {
    let long = words(120);
    let hidden = "the-default-that-nobody-sees ".repeat(12) + "its-end";
    let fields = format!(
        r#"{{"a_name_that_is_wider_than_its_column":{{"type":"string","default":{}}},"n":{{"type":"integer","default":1}}}}"#,
        serde_json::to_string(&hidden).unwrap()
    );
    for size in [(60, 16), (80, 24), (44, 10)] {
        let mut a = app(size);
        update(&mut a, ask(1, &long, &fields));
        let (did, first) = pressed(&mut a, &["<enter>", "<ctrl-d>"]);
        assert!(did.is_empty() && a.cut && a.standing().is_none(), "{size:?} {did:?}: {first}");
        assert!(first.contains("word000") && first.contains("No room for all"), "{first}");
        let (did, read) = pressed(&mut a, &["<pagedown>"; 30]);
        assert!(did.is_empty());
        let flat: String = read.chars().filter(|c| !c.is_whitespace() && *c != '│').collect();
        for word in ["word119", "a_name_that_is_wider_than_its_column", "its-end"] {
            assert!(flat.contains(word), "{size:?} {word}: {read}");
        }
        assert!(!a.cut, "{size:?}: {read}");
        let (did, _) = pressed(&mut a, &["<enter>"]);
        assert!(matches!(&did[..], [e] if is_answer(e)), "{size:?}: {did:?}");
    }
    // The end alone is not all of it.
    let mut a = app((44, 10));
    update(&mut a, ask(1, &long, &fields));
    let (did, _) = pressed(&mut a, &["<tab>", "<tab>", "<tab>", "<enter>"]);
    assert!(did.is_empty() && a.cut, "{did:?}");
    // In another width it has other lines; where all have room nothing need be scrolled.
    let mut a = app((60, 16));
    update(&mut a, ask(1, &long, &fields));
    pressed(&mut a, &["<pagedown>"; 30]);
    update(&mut a, Msg::Resize(50, 16));
    look(&mut a);
    assert!(a.cut);
    update(&mut a, Msg::Resize(140, 50));
    let (did, all) = pressed(&mut a, &["<enter>"]);
    assert!(!all.contains("No room") && did.len() == 1, "{all}");
}

#[test]
fn a_form_without_end_is_not_answered_and_can_be_left() {
    let mut a = app((120, 60));
    update(&mut a, ask(1, &words(3_000), "{}"));
    let keys: Vec<&str> = [["<pagedown>"; 8].as_slice(), &["<enter>"]].concat();
    let (did, read) = pressed(&mut a, &keys);
    assert!(did.is_empty() && read.contains("Too long to be read here"), "{did:?}");
    assert!(read.contains("more characters"), "its end was seen: {read}");
    press(&mut a, "<esc>");
    assert!(a.is_main() && a.questions.len() == 1);
}

#[test]
fn cancel_and_quit_are_decided_once_all_of_their_box_was_read() {
    let mut a = app((44, 10));
    let call = night::pending(&mut a);
    press(&mut a, "G/night-004<enter>x");
    assert!(matches!(a.overlay, Some(Overlay::Cancel(_))));
    let (did, first) = pressed(&mut a, &["y", "w"]);
    assert!(did.is_empty() && a.cut && !first.contains("Cancel it?"), "{did:?} {first}");
    assert!(a.said.as_ref().unwrap().1.contains("not all of the question"), "{:?}", a.said);
    let (did, read) = pressed(&mut a, &["<pagedown>"; 8]);
    assert!(did.is_empty() && !a.cut && read.contains("leaves it"), "{read}");
    let give_up = Effect::GiveUp { call, tell: true };
    assert_eq!(pressed(&mut a, &["y"]).0, [give_up]);

    let mut a = app((44, 10));
    night::pending(&mut a);
    assert!(press(&mut a, "q").is_empty());
    let (did, first) = pressed(&mut a, &["y", "<ctrl-c>"]);
    assert!(did.is_empty() && a.cut && !first.contains("y quits"), "{did:?} {first}");
    let (did, read) = pressed(&mut a, &["<pagedown>"; 8]);
    assert!(did.is_empty() && read.contains("stays"), "{did:?} {read}");
    assert_eq!(pressed(&mut a, &["y"]).0, [Effect::Quit]);
}

#[test]
fn what_is_typed_and_wider_than_its_box_shows_its_end() {
    let mut a = app((60, 16));
    let id: String = words(20).replace(' ', "-");
    press(&mut a, "o");
    update(&mut a, Msg::Paste(id));
    let seen = look(&mut a);
    assert!(seen.contains("word019") && !seen.contains("word000"), "{seen}");
    let line = seen.lines().find(|l| l.contains("request_id …")).unwrap();
    assert!(line.trim_end().ends_with("word019  │"), "{line:?}");
    // In a field all of it is seen: it may be the server's.
    let mut a = app((60, 16));
    update(&mut a, ask(1, "Who?", r#"{"who":{"type":"string"}}"#));
    look(&mut a);
    night::look(&mut a);
    update(&mut a, Msg::Paste("X".repeat(90) + "end"));
    let seen = look(&mut a);
    assert!(seen.contains("end ") && seen.matches('X').count() == 90, "{seen}");
}
