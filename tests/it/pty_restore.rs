//! The terminal is given back whatever happens: quit, a panic in a task, a panic on the drawing thread,
//! SIGTERM, SIGHUP. On a real pseudo-terminal with the real loop.
//!
//! The program under test is this test binary again, told to run one ignored test as its main: the product
//! needs no hidden switch for it.

use crate::support::night;
use crate::support::pty::Pty;
use redial::tui::run::{Port, drive};
use redial::tui::theme::Themes;
use redial::tui::{Effect, update};
use rustix::process::Signal;
use tokio::sync::mpsc;

/// Set by the parent test; without it the child's test does nothing.
const CHILD: &str = "REDIAL_TEST_TERMINAL_CHILD";

/// Not a test: what runs in the pseudo-terminal. `v` panics in a task, on another thread or, in the
/// current-thread flavour, on the thread that draws.
#[test]
#[ignore = "the program that the tests here run in a terminal"]
fn child() {
    let Ok(flavour) = std::env::var(CHILD) else { return };
    let runtime = match flavour.as_str() {
        "one thread" => tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
        _ => tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap(),
    };
    let done = runtime.block_on(async {
        let (effects, mut inbox) = mpsc::unbounded_channel();
        let (_news, msgs) = mpsc::channel(8);
        tokio::spawn(async move {
            while let Some(effect) = inbox.recv().await {
                if matches!(effect, Effect::Verify { .. }) {
                    tokio::spawn(async { panic!("counting went wrong") });
                }
            }
        });
        let mut app = night::app((80, 24));
        app.themes = Themes::built_in().unwrap().for_terminal(false);
        app.mouse = std::env::var_os("REDIAL_TEST_MOUSE").is_some();
        drive(&mut app, Port { msgs, effects }).await
    });
    done.unwrap();
}

fn start(flavour: &str, env: &[(&str, &str)]) -> Pty {
    let program = std::env::current_exe().unwrap();
    let args = ["--ignored", "--exact", "pty_restore::child", "--nocapture"];
    let env = [&[(CHILD, flavour)], env].concat();
    let pty = Pty::start(&program, &args, &env, (100, 30));
    pty.wait_for("quit");
    pty.wait("the alternate screen", |s| {
        s.alternate_screen() && s.hide_cursor() && s.bracketed_paste()
    });
    pty
}

/// The terminal is as a shell wants it.
fn assert_given_back(pty: &Pty) {
    pty.screen(|s| {
        assert!(!s.alternate_screen(), "alternate screen left");
        assert!(!s.hide_cursor(), "cursor shown");
        assert!(!s.bracketed_paste(), "bracketed paste off");
        assert_eq!(s.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
    });
}

#[test]
fn after_quitting() {
    let mut pty = start("threads", &[]);
    pty.send("q");
    assert_eq!(pty.ended(), 0);
    pty.drained();
    assert_given_back(&pty);
}

#[test]
fn after_a_panic_in_a_task_whose_words_stay_readable() {
    let mut pty = start("threads", &[]);
    pty.send("v");
    assert_eq!(pty.ended(), 101);
    pty.drained();
    assert_given_back(&pty);
    let text = pty.text();
    assert!(text.contains("counting went wrong") && text.contains("pty_restore.rs"), "{text}");
}

#[test]
fn after_a_panic_on_the_drawing_thread() {
    let mut pty = start("one thread", &[]);
    pty.send("v");
    assert_eq!(pty.ended(), 101);
    pty.drained();
    assert_given_back(&pty);
    assert!(pty.text().contains("counting went wrong"), "{}", pty.text());
}

#[test]
fn after_sigterm() {
    let mut pty = start("threads", &[]);
    pty.signal(Signal::TERM);
    assert_eq!(pty.ended(), 0);
    pty.drained();
    assert_given_back(&pty);
}

#[test]
fn a_terminal_that_goes_away_ends_the_program() {
    // More than once: whether the signal or the end of input is seen first is a race.
    for _ in 0..8 {
        let mut pty = start("threads", &[]);
        pty.hang_up();
        pty.ended();
    }
    // And told by the signal alone, with the terminal still there.
    let mut pty = start("threads", &[]);
    pty.signal(Signal::HUP);
    assert_eq!(pty.ended(), 0);
    pty.drained();
    assert_given_back(&pty);
}

#[test]
fn a_storm_of_sizes_ends_in_the_last_one() {
    let pty = start("threads", &[]);
    for i in 0..60u16 {
        pty.resize((40 + i, 8 + i % 20));
    }
    pty.resize((140, 40));
    pty.wait("all panes", |s| {
        let text = s.contents();
        s.size().0.get() == 40
            && ["requests", "detail", "calls", "stderr"].iter().all(|p| text.contains(p))
    });
}

#[test]
fn a_key_that_comes_with_a_new_size_is_not_lost() {
    let mut pty = start("threads", &[]);
    for i in 0..20 {
        pty.resize((100 + i, 30));
        pty.send("?");
        pty.wait_for("anywhere on the screen");
        pty.resize((100 + i, 31));
        pty.send("q");
        pty.wait("help is closed", |s| !s.contents().contains("anywhere on the screen"));
    }
}

#[test]
fn no_color_keeps_the_selection_visible() {
    let pty = start("threads", &[("NO_COLOR", "1")]);
    pty.wait("a selected row", |s| {
        let row = (0..s.size().0.get()).find(|y| s.contents_between(*y, 0, *y, 20).contains('▸'));
        row.and_then(|y| s.cell(y, 4)).is_some_and(|c| c.inverse() && c.bold())
    });
    let colours = pty.screen(|s| {
        let (rows, columns) = s.size();
        (0..rows.get()).any(|y| {
            (0..columns.get())
                .any(|x| s.cell(y, x).is_some_and(|c| c.fgcolor() != vt100::Color::Default))
        })
    });
    assert!(!colours);
}

#[test]
fn escape_never_quits_and_quitting_is_an_effect() {
    let mut app = night::app((80, 24));
    assert!(night::press(&mut app, "<esc><esc>/x<esc>?<esc>").is_empty());
    assert!(!app.quitting);
    let effects = night::press(&mut app, "q");
    assert_eq!(effects, [Effect::Quit]);
    assert!(app.quitting && update(&mut app, redial::tui::Msg::Now(night::NIGHT)).is_empty());
}

#[test]
fn keys_are_answered_one_after_the_other_while_nothing_else_happens() {
    let mut pty = start("threads", &[]);
    for (key, shows) in [
        ("j", "▸✗ abandoned  night-005"),
        ("j", "▸✓ done       night-006"),
        ("k", "▸✗ abandoned  night-005"),
        ("?", "anywhere on the screen"),
        ("\x1b", "▸✗ abandoned  night-005"),
        ("/", "filter: ▏"),
        ("倉庫", "filter: 倉庫▏"),
    ] {
        pty.send(key);
        pty.wait_for(shows);
    }
}
