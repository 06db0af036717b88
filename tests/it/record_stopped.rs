//! A server behind the tap that the kernel has stopped: said at once and written down, and nothing else is.
#![cfg(target_os = "linux")]

use crate::support::cli::program;
use crate::support::until;
use redial::journal::{Kind, Note};
use redial::record::entry::{Line, What, decode};
use redial::recording::Recording;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What the recording says of stops, in order: the pid, or that it goes on.
fn stops(out: &Path) -> Vec<Option<u32>> {
    let text = std::fs::read(out).unwrap_or_default();
    let whole = text.split_inclusive(|b| *b == b'\n').filter(|l| l.ends_with(b"\n"));
    whole
        .filter_map(|l| match decode(l.trim_ascii_end()) {
            Line::Entry(e) => match e.what {
                What::Event(Kind::Note(Note::Stopped { who })) => Some(who.map(|p| p.pid)),
                _ => None,
            },
            _ => None,
        })
        .collect()
}

/// A tap on a server that says its number and then gives back each line; its stderr is what is read here.
fn tap(out: &Path) -> (Child, BufReader<impl Read>, u32) {
    let server = "echo $$ >&2; while read -r l; do echo \"$l\"; done";
    let mut tap = program()
        .args(["record", "--out"])
        .arg(out)
        .args(["--", "sh", "-c", server])
        .env("XDG_STATE_HOME", out.parent().unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(tap.stderr.take().unwrap());
    let mut pid = String::new();
    stderr.read_line(&mut pid).unwrap();
    (tap, stderr, pid.trim().parse().unwrap())
}

fn send(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn a_stopped_server_is_told_on_stderr_and_written_down_and_so_is_that_it_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("r.jsonl");
    let (mut tap, mut stderr, pid) = tap(&out);
    send(pid, "-STOP");
    until("it is written down", || (stops(&out) == [Some(pid)]).then_some(()));
    let mut said = String::new();
    stderr.read_line(&mut said).unwrap();
    let want = format!("redial: the server is stopped: pid {pid}, \"sh\", by a signal; ");
    assert!(said.starts_with(&want) && said.contains(&format!("kill -CONT {pid}")), "{said}");
    send(pid, "-CONT");
    until("that it goes on is too", || (stops(&out) == [Some(pid), None]).then_some(()));
    said.clear();
    stderr.read_line(&mut said).unwrap();
    assert_eq!(said, "redial: the server was stopped, and goes on\n");
    let mut stdin = tap.stdin.take().unwrap();
    writeln!(stdin, "hello").unwrap();
    drop(stdin);
    let mut answer = String::new();
    tap.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "hello\n");
    // Once each; the words are the tap's and not the server's.
    said.clear();
    stderr.read_to_string(&mut said).unwrap();
    assert!(said.is_empty() && tap.wait().unwrap().success(), "{said}");
    assert_eq!(stops(&out), [Some(pid), None]);
    let written = std::fs::read_to_string(&out).unwrap();
    assert!(!written.contains("redial: the server"), "{written}");
    assert!(Recording::open(&out).unwrap().session.generation().unwrap().stopped.is_none());
}

#[test]
fn who_is_killed_while_it_is_stopped_does_not_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("r.jsonl");
    let (mut tap, mut stderr, pid) = tap(&out);
    send(pid, "-STOP");
    until("it is written down", || (stops(&out) == [Some(pid)]).then_some(()));
    send(pid, "-KILL");
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert!(said.contains("is stopped") && !said.contains("goes on"), "{said}");
    assert_eq!(tap.wait().unwrap().code(), Some(137));
    assert_eq!(stops(&out), [Some(pid)]);
}
