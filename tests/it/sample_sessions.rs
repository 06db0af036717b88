//! Every recording in `sample-sessions/` is opened, shown and mocked; and says what its README says.

use crate::support::cli::{command, redial};
use redial::journal::Outcome;
use redial::json::raw;
use redial::recording::Recording;
use redial::replay::script;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-sessions")
}

fn all() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    files.sort();
    assert!(files.len() >= 8, "{files:?}");
    files
}

fn open(name: &str) -> Recording {
    Recording::open(&folder().join(name)).unwrap()
}

fn outcomes(r: &Recording) -> Vec<(u32, String, Option<Outcome>)> {
    r.session.calls.values().map(|c| (c.generation, c.tool.clone(), c.outcome())).collect()
}

#[test]
fn every_one_is_whole_shown_and_in_the_readme() {
    let readme = std::fs::read_to_string(folder().join("README.md")).unwrap();
    for path in all() {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(readme.contains(name), "{name} is not in the README");
        let r = Recording::open(&path).unwrap();
        assert_eq!((r.bad_lines().count(), r.lost), (0, 0), "{name}");
        for args in
            [&["--json"][..], &["--calls"], &["kind:stderr | kind:exit"], &["outcome:unknown"]]
        {
            let mut all = vec!["show", path.to_str().unwrap()];
            all.extend(args);
            let shown = redial(&all);
            assert_eq!(shown.exit, 0, "{name} {args:?}: {}", shown.all());
            assert!(!shown.all().contains('\u{1b}'), "{name} {args:?}");
        }
    }
}

#[test]
fn every_one_can_be_asked_again() {
    for path in all() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let mut r = Recording::with_entries(&path).unwrap();
        let asks = script::read(&r.take_entries());
        let mut mock =
            command(&["mock", path.to_str().unwrap()]).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = mock.stdin.take().unwrap();
        let mut stdout = BufReader::new(mock.stdout.take().unwrap());
        let mut asked = 0;
        // In the recorded order; what was never answered then is not waited for.
        for ask in asks.iter().filter(|a| a.id.is_some()) {
            let method = ask.method.as_deref().unwrap();
            let params = ask.params.as_deref().unwrap_or("{}");
            writeln!(
                stdin,
                r#"{{"jsonrpc":"2.0","id":"q","method":"{method}","params":{params}}}"#
            )
            .unwrap();
            let Some(then) = &ask.answer else { continue };
            let mut line = String::new();
            // What the server said by itself then comes too, where it stood.
            while raw::get(&line, "method").is_some() || line.is_empty() {
                line.clear();
                assert!(stdout.read_line(&mut line).unwrap() > 0, "{name}: {method}");
            }
            let (member, want) = match then {
                script::Said::Result(r) => ("result", r),
                script::Said::Error(e) => ("error", e),
            };
            // Equal calls are answered in order, across restarts too: an unanswered one stays unanswered.
            assert_eq!(
                raw::get(&line, member),
                Some(want.as_str()),
                "{name}: {method} {params}: {line}"
            );
            asked += 1;
        }
        assert!(asked >= 3, "{name}");
        drop(stdin);
        assert!(mock.wait().unwrap().success());
    }
}

#[test]
fn each_tells_its_story() {
    use Outcome::{NotSent, Ok, Refused, ToolError, Unknown};
    let story = |name: &str| {
        outcomes(&open(name)).into_iter().map(|(g, _, o)| (g, o.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(story("clean.jsonl"), [(1, Ok), (1, Ok), (1, Ok)]);
    assert_eq!(story("killed-same-id.jsonl"), [(1, Unknown), (2, Ok), (2, Ok)]);
    assert_eq!(story("killed-new-id.jsonl"), [(1, Unknown), (2, Ok)]);
    assert_eq!(story("cancelled-but-finished.jsonl"), [(1, Unknown), (1, Ok)]);
    assert_eq!(story("session-lost.jsonl"), [(1, Ok), (1, NotSent), (1, Refused), (2, ToolError)]);
    assert_eq!(story("handle-lost.jsonl"), [(1, Ok), (1, Ok), (2, ToolError)]);
    assert_eq!(story("input-required.jsonl"), [(1, Ok)]);

    let r = open("killed-same-id.jsonl");
    let ids: Vec<_> = r.session.calls.values().map(|c| c.request_id.as_deref()).collect();
    assert_eq!(ids, [Some("night-0011"); 3]);
    assert_eq!(r.session.generations[0].ended.unwrap().signal, Some(9));
    let r = open("cancelled-but-finished.jsonl");
    let calls: Vec<_> = r.session.calls.values().collect();
    assert!(calls[0].settled.as_ref().unwrap().why.contains("cancelled"), "{calls:?}");
    assert!(calls[1].settled.as_ref().unwrap().result.as_ref().unwrap().contains("done"));
    assert_eq!(open("input-required.jsonl").session.calls.values().next().unwrap().rounds, 2);
    let r = open("noise-and-flood.jsonl");
    let g = r.session.generation().unwrap();
    assert!(g.noise_seen >= 4 && g.stderr.len() >= 200, "{} {}", g.noise_seen, g.stderr.len());
}
