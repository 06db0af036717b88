//! The examples of `--help`, run by a shell as they are printed: at any width a line is a whole command.

use crate::support::cli::{clean, program};
use std::path::Path;
use std::process::{Command, Stdio};

/// In an order in which each finds what it is about.
const COMMANDS: [&str; 10] =
    ["call", "reissue", "find", "rows", "verify", "tools", "batch", "record", "show", "audit"];

fn redial(dir: &Path, width: &str, words: &[&str]) -> Command {
    let mut c = program();
    c.args(words).current_dir(dir).env("COLUMNS", width).stdin(Stdio::null());
    c
}

/// The lines under `Example`.
fn examples(dir: &Path, width: &str, command: &str) -> Vec<String> {
    let out = redial(dir, width, &[command, "--help"]).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let Some((_, below)) = text.split_once("Example:\n") else { return Vec::new() };
    below.lines().take_while(|l| l.starts_with("  ")).map(|l| l.trim().to_owned()).collect()
}

#[test]
fn every_example_runs_as_it_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let bin = dir.join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_redial"), bin.join("redial")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut run = 0;
    for command in COMMANDS {
        let lines = examples(dir, "40", command);
        assert_eq!(lines, examples(dir, "200", command), "{command}: the same at any width");
        assert!(command == "verify" || !lines.is_empty(), "{command} has an example");
        for line in lines {
            let mut shell = Command::new("sh");
            clean(&mut shell).args(["-c", &line]).current_dir(dir).env("PATH", &path);
            shell.env("XDG_CONFIG_HOME", dir.join("c")).env("XDG_STATE_HOME", dir.join("s"));
            let out = shell.stdin(Stdio::null()).output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr);
            assert_eq!(out.status.code(), Some(0), "{line}: {said}");
            run += 1;
        }
    }
    assert!(run >= 10, "{run}");
    let made: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n.contains("5m"))
        .collect();
    assert!(made.is_empty(), "a filter was a redirection: {made:?}");
}

#[test]
fn with_json_a_usage_mistake_is_a_document_too() {
    let dir = tempfile::tempdir().unwrap();
    for (line, schema) in [
        ("rows --json --ledger x --limit x", "redial/rows@1"),
        ("find --json", "redial/find@1"),
        ("tools --json --era future -- x", "redial/tools@1"),
        ("verify --ledger x --expect-total -1 --json", "redial/verify@1"),
        ("call t --timeout -1 --json -- x", "redial/call@1"),
        ("batch b --concurrency 0 --json -- x", "redial/batch@1"),
        ("show f --redact-key k --json", "redial/show@1"),
        ("lab run --json", "redial/lab@1"),
        ("rows --json --nothing", "redial/rows@1"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let out = redial(dir.path(), "80", &words).output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{line}");
        let doc: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(doc["schema"], schema, "{line}");
        assert_eq!(doc["error"]["exit_status"], 2, "{line}");
        assert!(!doc["error"]["message"].as_str().unwrap().contains('\n'), "{doc}");
        assert!(!String::from_utf8_lossy(&out.stderr).contains("'-- -1'"), "{line}");
    }
}
