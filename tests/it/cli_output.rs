//! Pipes, colours, widths, and what happens when nobody reads.

use super::ledger_read::night;
use crate::support::cli::{EXE, Ran, both, clean, command, redial, tickets};
use crate::support::pty::Pty;
use redial::text::width;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn shell(script: &str, args: &[&str]) -> Output {
    clean(&mut Command::new("sh"))
        .args(["-c", script, EXE])
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn the_demo_is_a_plain_report_without_a_terminal() {
    let ran = redial(&[]);
    ran.expect(
        0,
        &[
            "DEMO",
            "5 requests · 4 done · 1 abandoned · 4 tickets",
            "signal 9 (SIGKILL)",
            "of this request 0 → 1 ticket; all tickets 4 → 5",
            "replayed      no: the work ran now",
            "of this request 1 → 1 ticket; all tickets 5 → 5",
            "replayed      yes",
            "5 requests · 5 done · 5 tickets",
            "redial attach --ledger ledger.db",
        ],
    );
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_reader_that_goes_away_or_was_never_there_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = night(dir.path());
    let ledger = path.to_str().unwrap();
    let head = shell(r#"{ "$0"; echo "exit $?" >&2; } | head -1"#, &[]);
    let (out, err) = (String::from_utf8_lossy(&head.stdout), String::from_utf8_lossy(&head.stderr));
    assert!(out.starts_with("DEMO") && out.lines().count() == 1, "{out}");
    assert_eq!(err, "exit 0\n");
    for json in ["", "--json"] {
        let script = format!(r#"{{ "$0" rows --ledger "$1" {json}; echo "exit $?" >&2; }} | true"#);
        assert_eq!(String::from_utf8_lossy(&shell(&script, &[ledger]).stderr), "exit 0\n");
        let closed = shell(&format!(r#"exec "$0" rows --ledger "$1" {json} >&- <&-"#), &[ledger]);
        assert_eq!((closed.status.code(), &closed.stderr[..]), (Some(0), &b""[..]));
        let silent = shell(&format!(r#"exec "$0" rows --ledger /nowhere {json} 2>&-"#), &[]);
        assert_eq!(silent.status.code(), Some(6));
        // A disk that is full is one: it is said, and a report that nobody has is no good end.
        let full = shell(&format!(r#"exec "$0" rows --ledger "$1" {json} >/dev/full"#), &[ledger]);
        let err = String::from_utf8_lossy(&full.stderr);
        assert!(full.status.code() == Some(2) && err.contains("could not be written"), "{err}");
    }
}

#[test]
fn colours_are_for_terminals_and_for_who_asks() {
    let dir = tempfile::tempdir().unwrap();
    let path = night(dir.path());
    let rows = ["rows", "--ledger", path.to_str().unwrap()];
    let esc = |out: &[u8]| out.contains(&0x1b);
    assert!(!esc(redial(&rows).all().as_bytes()));
    let forced = command(&rows).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(esc(&forced.stdout));
    let both_said =
        command(&rows).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output().unwrap();
    assert!(!esc(&both_said.stdout), "NO_COLOR is the stronger word");
    let on_terminal = |env: &[(&str, &str)]| {
        let mut pty = Pty::start(Path::new(EXE), &rows, env, (80, 40));
        assert_eq!(pty.ended(), 0);
        pty.drained();
        pty.bytes()
    };
    assert!(esc(&on_terminal(&[])));
    assert!(!esc(&on_terminal(&[("NO_COLOR", "1")])));
}

/// Lines as the terminal got them.
fn lines(args: &[&str], columns: u16) -> Vec<String> {
    let mut pty = Pty::start(Path::new(EXE), args, &[("NO_COLOR", "1")], (columns, 60));
    pty.ended();
    pty.drained();
    let text = String::from_utf8(pty.bytes()).unwrap();
    text.lines().map(|l| l.trim_end_matches('\r').to_owned()).collect()
}

#[test]
fn every_screenful_fits_eighty_columns() {
    let dir = tempfile::tempdir().unwrap();
    let path = night(dir.path());
    let ledger = path.to_str().unwrap();
    let server = tickets(ledger);
    for args in [
        vec!["rows", "--ledger", ledger],
        vec!["find", "night-005", "--ledger", ledger],
        vec!["find", "nope", "--ledger", ledger],
        both(&["find", "night-007", "--ledger", ledger], &server),
        both(&["tools"], &server),
        both(&["call", "create_ticket"], &server),
        vec!["rows", "--ledger", "/nowhere/ledger.db"],
    ] {
        for l in lines(&args, 80) {
            // A word that is longer than the line stays whole, to be copied.
            let longest = l.split(' ').map(width).max().unwrap_or(0);
            assert!(width(&l) <= 80 || longest > 60, "{args:?}: {} columns: {l}", width(&l));
        }
    }
    // Wrapped values stand under themselves.
    let why = lines(&["find", "night-005", "--ledger", ledger], 60);
    let at = why.iter().position(|l| l.starts_with("why")).unwrap();
    assert!(
        why[at + 1].starts_with("              ") && !why[at + 1].trim().is_empty(),
        "{why:#?}"
    );
}

#[test]
fn help_says_what_it_needs_and_what_the_defaults_are() {
    for (args, words) in [
        (&["--help"][..], &["Exit status", "reissue", "attach"][..]),
        (&["rows", "--help"], &["--ledger <FILE>", "from the end of the table", "[default: 120]"]),
        (&["find", "--help"], &["find_request", "Exit status", "--http <URL>"]),
        (
            &["reissue", "--help"],
            &["--confirm <ID>", "exit status is 3", "--args-from", "[default: 60]"],
        ),
        (&["call", "--help"], &["sent, once", "REDIAL_READ_ONLY"]),
        (&["tools", "--help"], &["--era", "unprotected", "--server <NAME>"]),
        (&["batch", "--help"], &["wait_s", "the worst of all lines", "--concurrency", "--respawn"]),
        (&["serve", "tickets", "--help"], &["[default: ledger.db]", "[default: 20]"]),
    ] {
        let ran: Ran = redial(args);
        ran.expect(0, words);
        // Options of no group come first: none is listed under somebody else's heading.
        if let Some(at) = ran.stdout.find("Endpoint:") {
            assert!(!ran.stdout[at..].contains("--json"), "{}", ran.stdout);
        }
    }
}
