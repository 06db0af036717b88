//! Lessons on a real terminal, driven by keys: the steps happen on real processes, the answer is checked.

use crate::support::pty::Pty;
use std::path::Path;

struct School {
    pty: Pty,
    state: tempfile::TempDir,
}

fn school(args: &[&str], state: tempfile::TempDir, size: (u16, u16)) -> School {
    let mut all = vec!["teach"];
    all.extend(args);
    let env = [("XDG_STATE_HOME", state.path().to_str().unwrap())];
    let pty = Pty::start(Path::new(env!("CARGO_BIN_EXE_redial")), &all, &env, size);
    School { pty, state }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

impl School {
    /// Waits for the step's words, then presses its key.
    fn press_at(&mut self, words: &str, key: &str) {
        self.pty.wait_for(words);
        self.pty.answer(key);
    }
}

#[test]
fn a_lost_answer_makes_two_charges_and_the_wrong_guess_is_told() {
    let mut s = school(&["lost-answer"], folder(), (80, 24));
    s.press_at("First start the server", "o");
    s.press_at("[d] send, and drop the answer", "x");
    s.press_at("That key does nothing now. Press d.", "d");
    s.press_at("How many charges will there be?", "1");
    s.press_at("[n]", "n");
    s.pty.wait_for("You said 1. There are 2 charges. Not what you expected.");
    s.pty.wait_for("Take home: No answer does not mean not done.");
    s.pty.wait_for("charges made: 2");
    s.pty.send("\x1b");
    s.pty.wait_for("✓ 1");
    s.pty.send("q");
    assert_eq!(s.pty.ended(), 0);
    // Remembered.
    let mut again = school(&[], s.state, (80, 24));
    again.pty.wait_for("✓ 1");
    again.pty.send("q");
    assert_eq!(again.pty.ended(), 0);
}

#[test]
fn killed_in_the_work_it_is_looked_up_and_finished_once() {
    let mut s = school(&["kill-in-work"], folder(), (80, 24));
    s.press_at("First start the server", "o");
    s.press_at("[s] send", "s");
    s.pty.wait_for("lesson-1: running");
    s.press_at("[k] kill -9 now", "k");
    s.press_at("[r] restart", "r");
    s.press_at("[f] find_request", "f");
    s.pty.wait_for("find_request: abandoned");
    s.press_at("How many tickets will there be?", "1");
    s.press_at("[a]", "a");
    s.pty.wait_for("You said 1. There is 1 ticket. You were right.");
    s.pty.wait_for("exactly once: 1 request, 1 effect");
    s.pty.send("q");
    assert_eq!(s.pty.ended(), 0);
}

#[test]
fn over_http_the_session_is_not_all_that_can_be_lost() {
    let mut s = school(&["only-sessions"], folder(), (80, 24));
    s.press_at("First start the server", "o");
    s.press_at("[s] send", "s");
    s.press_at("[d] send, and drop the answer", "d");
    s.press_at("No session was lost this time.", "2");
    s.press_at("[n]", "n");
    s.pty.wait_for("There are 2 charges. You were right.");
    s.pty.answer("\r");
    s.pty.wait_for("7 of 9");
    s.pty.send("q");
    assert_eq!(s.pty.ended(), 0);
}

#[test]
fn who_is_too_slow_is_told_and_taught_nothing() {
    let mut s = school(&["give-up"], folder(), (80, 24));
    s.press_at("First start the server", "o");
    s.press_at("[s] send", "s");
    s.pty.wait_for("answer: T-");
    s.press_at("[c]", "c");
    s.pty.wait_for("Too late: the answer came before that key.");
    s.pty.answer("\r");
    s.pty.wait_for("First start the server");
    s.pty.send("\x1b");
    s.pty.wait_for("7  Cancelling");
    assert!(!s.pty.screen(|p| p.contents().contains("✓ 7")));
    s.pty.send("q");
    assert_eq!(s.pty.ended(), 0);
}

#[test]
fn free_over_http_an_answer_is_dropped_at_will_and_the_server_is_killed_and_started_again() {
    let mut s = school(&["free-http"], folder(), (100, 30));
    s.press_at("process: alive", "d");
    s.pty.wait_for("the connection broke");
    s.pty.wait_for("tickets made: 1");
    s.pty.answer("k");
    s.pty.wait_for("process: dead");
    s.pty.answer("r");
    s.press_at("connected again", "a");
    s.pty.wait_for("replayed");
    s.pty.wait_for("exactly once: 1 request, 1 effect");
    s.pty.send("q");
    assert_eq!(s.pty.ended(), 0);
}

/// A lesson, the words and keys it is driven with, and the truth.
type Script = (&'static str, &'static [(&'static str, &'static str)], &'static str);

#[test]
fn the_other_lessons_end_with_what_they_say() {
    let scripts: [Script; 4] = [
        (
            "same-key",
            &[("First start", "o"), ("[d]", "d"), ("How many tickets", "1"), ("[a]", "a")],
            "There is 1 ticket. You were right.",
        ),
        (
            "new-key",
            &[("First start", "o"), ("[d]", "d"), ("How many tickets", "1"), ("[n]", "n")],
            "There are 2 tickets. Not what",
        ),
        (
            "kill-after-commit",
            &[
                ("First start", "o"),
                ("[s]", "s"),
                ("[r]", "r"),
                ("How many charges", "2"),
                ("[n]", "n"),
            ],
            "There are 2 charges. You were right.",
        ),
        (
            "give-up",
            &[
                ("First start", "o"),
                ("[s]", "s"),
                ("[c]", "c"),
                ("How many tickets", "1"),
                ("[a]", "a"),
            ],
            "There is 1 ticket. You were right.",
        ),
    ];
    for (lesson, steps, truth) in scripts {
        let mut s = school(&[lesson], folder(), (80, 24));
        for (words, key) in steps {
            s.press_at(words, key);
        }
        s.pty.wait_for(truth);
        s.pty.send("q");
        assert_eq!(s.pty.ended(), 0, "{lesson}");
    }
}

#[test]
fn the_free_lesson_takes_its_keys_and_a_small_terminal_is_told() {
    let mut s = school(&["free"], folder(), (100, 30));
    s.pty.wait_for("process: alive");
    s.pty.answer("s");
    s.pty.wait_for("lesson-1: running");
    s.pty.answer("k");
    s.pty.wait_for("process: dead");
    s.pty.answer("r");
    s.pty.wait_for("process: alive");
    s.pty.answer("n");
    s.pty.wait_for("lesson-2");
    s.pty.answer("a");
    s.pty.wait_for("replayed");
    s.pty.send("q");
    assert_eq!(s.pty.ended(), 0);

    let mut s = school(&[], folder(), (40, 10));
    s.pty.wait_for("too small");
    s.pty.send("q");
    assert_eq!(s.pty.ended(), 0);
    assert_eq!(crate::support::cli::redial(&["teach"]).exit, 2, "no terminal");
}
