//! The mock as that night's server: its pace, what it said by itself, its deaths; and the replay's paces.

use crate::support::cli::{EXE, command, redial};
use crate::support::pty::Pty;
use redial::json::raw;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// A recording of lines: milliseconds, kind, text (a frame), or the rest of the line for other kinds.
fn recording(dir: &Path, lines: &[(u64, &str, &str)]) -> PathBuf {
    let path = dir.join("made.jsonl");
    let mut out = String::new();
    for (n, (ms, kind, what)) in lines.iter().enumerate() {
        let rest = match *kind {
            "exit" | "opened" => what.to_string(),
            _ => format!(",\"text\":{}", raw::quote(what)),
        };
        out += &format!(
            "{{\"seq\":{},\"at\":\"2026-11-29T02:57:{:02}.{:06}Z\",\"mono\":{},\"gen\":1,\"kind\":\"{kind}\"{rest}}}\n",
            n + 1,
            ms / 1000,
            ms % 1000 * 1000,
            ms * 1000,
        );
    }
    std::fs::write(&path, out).unwrap();
    path
}

const OPENED: (u64, &str, &str) = (0, "opened", ",\"transport\":\"stdio\",\"command\":[\"s\"]");
const INIT: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const READY: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const LISTED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"a":1},"_meta":{"progressToken":2}}}"#;
const ANSWER: &str =
    r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"x"}]}}"#;

struct Mock {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Mock {
    fn start(path: &Path, more: &[&str]) -> Mock {
        let mut args = vec!["mock", path.to_str().unwrap()];
        args.extend(more);
        let mut child = command(&args).stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Mock { child, stdin, stdout }
    }

    fn say(&mut self, text: &str) {
        writeln!(self.stdin, "{text}").unwrap();
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn end(self) -> (std::process::ExitStatus, String) {
        drop(self.stdin);
        let out = self.child.wait_with_output().unwrap();
        (out.status, String::from_utf8_lossy(&out.stderr).into_owned())
    }
}

#[test]
fn with_timing_an_answer_takes_as_long_as_then_and_others_pass_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = recording(
        dir.path(),
        &[
            OPENED,
            (10, "sent", CALL),
            (20, "sent", LIST),
            (30, "received", LISTED),
            (510, "received", ANSWER),
        ],
    );
    let mut mock = Mock::start(&path, &["--timing"]);
    let began = Instant::now();
    mock.say(CALL);
    mock.say(LIST);
    assert!(mock.hear().contains("\"tools\""), "what took 10 ms comes before what took 500");
    assert!(mock.hear().contains("\"content\""));
    assert!(began.elapsed() >= Duration::from_millis(495), "{:?}", began.elapsed());
    assert!(mock.end().0.success());
}

#[test]
fn notifications_stand_where_they_stood() {
    let dir = tempfile::tempdir().unwrap();
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}"#;
    let message = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"later"}}"#;
    let lines = [
        OPENED,
        (10, "sent", CALL),
        (20, "received", progress),
        (30, "received", ANSWER),
        (40, "received", message),
    ];
    let path = recording(dir.path(), &lines);
    let mut mock = Mock::start(&path, &[]);
    mock.say(&CALL.replace("\"progressToken\":2", "\"progressToken\":\"mine\""));
    let heard = [mock.hear(), mock.hear(), mock.hear()];
    assert_eq!(heard[0], progress.replace("\"progressToken\":2", "\"progressToken\":\"mine\""));
    assert!(heard[1].contains("\"result\""), "{}", heard[1]);
    assert_eq!(heard[2], message);
    assert!(mock.end().0.success());
}

#[test]
fn deaths_are_re_enacted_and_the_next_start_is_the_next_life() {
    let dir = tempfile::tempdir().unwrap();
    let lives = dir.path().join("lives");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-sessions/killed-same-id.jsonl");
    let deaths = ["--deaths", lives.to_str().unwrap()];
    let script = {
        let mut r = redial::recording::Recording::with_entries(&sample).unwrap();
        redial::replay::script::read(&r.take_entries())
    };
    let asked = |life: u32| {
        let of = script.iter().filter(move |a| a.generation == life && a.id.is_some());
        of.map(|a| {
            let params = a.params.as_deref().unwrap_or("{}");
            format!(
                r#"{{"jsonrpc":"2.0","id":"q","method":"{}","params":{params}}}"#,
                a.method.as_deref().unwrap()
            )
        })
    };
    // The first life ends in the call, by the signal of then, with the stderr of then.
    let mut mock = Mock::start(&sample, &deaths);
    let all: Vec<String> = asked(1).collect();
    for text in &all[..all.len() - 1] {
        mock.say(text);
        assert!(mock.hear().contains("result"));
    }
    mock.say(all.last().unwrap());
    assert_eq!(mock.hear(), "", "no answer, then the end");
    let (status, stderr) = mock.end();
    assert_eq!(status.signal(), Some(9), "{stderr}");
    assert!(stderr.contains("life 1"), "{stderr}");
    assert_eq!(std::fs::read_to_string(&lives).unwrap().trim(), "1");
    // The second one answers the very same call, as then.
    let mut mock = Mock::start(&sample, &deaths);
    for text in asked(2) {
        mock.say(&text);
        assert!(mock.hear().contains("result"));
    }
    let (status, stderr) = mock.end();
    assert!(status.success() && stderr.contains("life 2"), "{stderr}");
    // Without the flag it hangs, as the client saw it: the answer just never comes.
    let mut mock = Mock::start(&sample, &[]);
    mock.say(all.last().unwrap());
    mock.say(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    assert!(mock.hear().contains("\"p\""), "it lives on");
    assert!(mock.end().0.success());
}

#[test]
fn a_death_by_exit_code_has_that_code() {
    let dir = tempfile::tempdir().unwrap();
    let lives = dir.path().join("lives");
    let lines = [
        OPENED,
        (10, "sent", CALL),
        (20, "stderr", "out of memory"),
        (30, "exit", ",\"code\":42,\"certain\":true"),
    ];
    let path = recording(dir.path(), &lines);
    let mut mock = Mock::start(&path, &["--deaths", lives.to_str().unwrap()]);
    mock.say(CALL);
    assert_eq!(mock.hear(), "");
    let (status, stderr) = mock.end();
    assert_eq!(status.code(), Some(42));
    assert!(stderr.contains("out of memory"), "{stderr}");
}

#[test]
fn a_death_by_a_signal_is_by_that_signal_whoever_listens_for_it() {
    for signal in [15, 1, 6, 11] {
        let dir = tempfile::tempdir().unwrap();
        let lives = dir.path().join("lives");
        let exit = format!(",\"signal\":{signal},\"certain\":true");
        let lines = [OPENED, (10, "sent", CALL), (30, "exit", &exit)];
        let path = recording(dir.path(), &lines);
        let mut mock = Mock::start(&path, &["--deaths", lives.to_str().unwrap()]);
        mock.say(CALL);
        assert_eq!(mock.hear(), "");
        let (status, stderr) = mock.end();
        assert_eq!(status.signal(), Some(signal), "{stderr}");
    }
}

fn paced(dir: &Path) -> PathBuf {
    recording(
        dir,
        &[
            OPENED,
            (0, "sent", INIT),
            (0, "received", READY),
            (0, "sent", LIST),
            (10, "received", LISTED),
            (100, "sent", CALL),
            (110, "received", ANSWER),
            (700, "sent", &CALL.replace("\"id\":2", "\"id\":3").replace("\"a\":1", "\"a\":2")),
            (710, "received", &ANSWER.replace("\"id\":2", "\"id\":3")),
        ],
    )
}

#[test]
fn a_replay_at_the_recorded_pace_waits_as_the_client_did() {
    let dir = tempfile::tempdir().unwrap();
    let path = paced(dir.path());
    let path = path.to_str().unwrap();
    let run = |pace: &str| {
        let began = Instant::now();
        let r = redial(&[
            "replay", path, "--pace", pace, "--json", "--era", "legacy", "--", EXE, "mock", path,
        ]);
        (r, began.elapsed())
    };
    let (r, took) = run("recorded");
    assert_eq!(raw::get(&r.get(&["counts"]), "differs"), None, "{}", r.all());
    assert!(took >= Duration::from_millis(690), "{took:?}");
    let none = redial(&["replay", path, "--pace", "step", "--", EXE, "mock", path]);
    none.expect(2, &["no terminal"]);
}

#[test]
fn step_by_step_enter_sends_and_anything_else_skips() {
    let dir = tempfile::tempdir().unwrap();
    let path = paced(dir.path());
    let path = path.to_str().unwrap();
    let args = ["replay", path, "--pace", "step", "--era", "legacy", "--", EXE, "mock", path];
    let mut pty = Pty::start(Path::new(EXE), &args, &[], (160, 40));
    pty.wait_for("Enter sends it");
    pty.answer("\r");
    pty.wait("the second question", |s| s.contents().matches("Enter sends it").count() >= 2);
    pty.answer("s\r");
    pty.wait("the third question", |s| s.contents().matches("Enter sends it").count() >= 3);
    pty.answer("\r");
    pty.ended();
    pty.drained();
    let said = pty.text();
    assert_eq!(said.matches("not wanted").count(), 1, "{said}");
}

#[test]
fn what_the_configuration_names_may_differ_and_is_hidden() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("redial.toml"),
        "[replay]\nignore = [\"content.0.text\"]\n[record]\nredact_keys = [\"customer\"]\n",
    )
    .unwrap();
    let then = recording(
        dir.path(),
        &[
            OPENED,
            (0, "sent", INIT),
            (0, "received", READY),
            (0, "sent", LIST),
            (1, "received", LISTED),
            (2, "sent", CALL),
            (3, "received", ANSWER),
        ],
    );
    let now = dir.path().join("now.jsonl");
    std::fs::write(
        &now,
        std::fs::read_to_string(&then).unwrap().replace(r#"\"text\":\"x\""#, r#"\"text\":\"y\""#),
    )
    .unwrap();
    let run = |here: &Path| {
        let mut c = command(&[
            "replay",
            then.to_str().unwrap(),
            "--json",
            "--era",
            "legacy",
            "--",
            EXE,
            "mock",
            now.to_str().unwrap(),
        ]);
        crate::support::cli::Ran::from(c.current_dir(here).output().unwrap())
    };
    let with = run(dir.path());
    assert_eq!(with.exit, 0, "{}", with.all());
    let elsewhere = tempfile::tempdir().unwrap();
    let without = run(elsewhere.path());
    assert_eq!(without.exit, 1, "{}", without.all());
    // The tap reads the same file.
    let out = dir.path().join("tap.jsonl");
    let mut tap = command(&["record", "--out", out.to_str().unwrap(), "--", "cat"]);
    let mut tap = tap.current_dir(dir.path()).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = tap.stdin.take().unwrap();
    writeln!(
        stdin,
        r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"customer":"s3cr3t","keep":"me"}}}}"#
    )
    .unwrap();
    drop(stdin);
    assert!(tap.wait_with_output().unwrap().status.success());
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(!text.contains("s3cr3t") && text.contains("keep"), "{text}");
}
