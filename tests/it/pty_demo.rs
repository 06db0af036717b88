//! The demo, driven by the keys that its footer names, from the killed request to the finished one: a real
//! server, a real ledger, a real terminal.

use crate::support::pty::Pty;
use std::path::Path;

fn start(size: (u16, u16)) -> Pty {
    let pty = Pty::start(Path::new(env!("CARGO_BIN_EXE_redial")), &[], &[], size);
    pty.wait("the incident", |s| {
        let text = s.contents();
        ["DEMO", "1 abandoned", "● ready", "r re-issue"].iter().all(|t| text.contains(t))
    });
    pty
}

/// Leaves a dialog. (An Esc with a key right behind it is Alt and that key, to any terminal program.)
fn escape(pty: &mut Pty) {
    pty.send("\x1b");
    pty.wait_for("q quit");
}

#[test]
fn keys_finish_the_abandoned_request_and_a_second_try_changes_nothing() {
    let mut pty = start((140, 40));
    // What happened is on the screen: the dead generation, its end, the one abandoned request.
    for fact in ["signal 9 (SIGKILL)", "generation 1", "4 tickets", "its owner has ended"] {
        pty.wait_for(fact);
    }
    pty.send("f");
    pty.wait_for("the server says abandoned, of a row that the ledger has as running");
    pty.send("r");
    pty.wait_for("Send exactly this call? Enter sends it");
    pty.answer("\r");
    pty.wait_for("0 → 1 of this request");
    pty.wait_for("4 → 5 in all");
    escape(&mut pty);
    pty.wait_for("5 requests · 5 done · 5 tickets");
    pty.send("r");
    pty.wait_for("Send exactly this call? Enter sends it");
    pty.answer("\r");
    pty.wait_for("replayed");
    pty.wait_for("1 → 1 (unchanged) of this request");
    escape(&mut pty);
    pty.send("v");
    pty.wait_for("✓ exactly once: 5 requests, 5 effects");
    pty.send("\x1b");
    pty.wait_for("▌requests");
    pty.send("q");
    assert_eq!(pty.ended(), 0);
    pty.drained();
    pty.screen(|s| assert!(!s.alternate_screen() && !s.hide_cursor() && !s.bracketed_paste()));
}

#[test]
fn whatever_ends_the_demo_gives_the_terminal_back_and_leaves_no_folder() {
    use rustix::process::Signal;
    let ends =
        [Signal::QUIT, Signal::ABORT, Signal::USR1, Signal::USR2, Signal::ALARM, Signal::TERM];
    for signal in ends.map(Some).into_iter().chain([None]) {
        let folder = tempfile::tempdir().unwrap();
        let tmp = folder.path().to_str().unwrap();
        let mut pty =
            Pty::start(Path::new(env!("CARGO_BIN_EXE_redial")), &[], &[("TMPDIR", tmp)], (140, 40));
        pty.wait_for("r re-issue");
        match signal {
            Some(signal) => pty.signal(signal),
            None => pty.hang_up(),
        }
        assert_eq!(pty.ended(), 0, "{signal:?}");
        if signal.is_some() {
            pty.drained();
            pty.screen(|s| assert!(!s.alternate_screen() && !s.hide_cursor(), "{signal:?}"));
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{signal:?}");
    }
}

#[test]
fn a_terminal_without_a_size_is_80_by_24_and_a_dumb_one_gets_a_report() {
    let exe = Path::new(env!("CARGO_BIN_EXE_redial"));
    let mut pty = Pty::start(exe, &[], &[], (0, 0));
    pty.wait_for("? help");
    pty.wait("24 lines and no more", |s| s.contents().lines().count() <= 24);
    pty.send("q");
    assert_eq!(pty.ended(), 0);
    let mut pty = Pty::start(exe, &[], &[("TERM", "dumb")], (100, 200));
    assert_eq!(pty.ended(), 0);
    pty.drained();
    assert!(!pty.bytes().windows(8).any(|w| w == b"\x1b[?1049h"), "no screen was opened");
    let recording =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-sessions/killed-same-id.jsonl");
    for (args, says) in [
        (
            &["attach", "--", exe.to_str().unwrap(), "serve", "tickets"][..],
            &["link ", "ready: ", "create_ticket", "find_request"][..],
        ),
        (
            &["attach", "--recording", recording.to_str().unwrap()],
            &["what the agent called", "create_ticket"],
        ),
        (&["teach"], &["lost-answer", "redial lab run all"]),
        (&["teach", "lost-answer"], &["lost-answer", "In the end: 2 effects"]),
    ] {
        let mut pty = Pty::start(exe, args, &[("TERM", "dumb")], (100, 200));
        assert_eq!(pty.ended(), 0, "{args:?}: {}", pty.text());
        pty.drained();
        assert!(says.iter().all(|s| pty.text().contains(s)), "{args:?}: {}", pty.text());
        assert!(!pty.bytes().windows(8).any(|w| w == b"\x1b[?1049h"), "no screen was opened");
    }
}
