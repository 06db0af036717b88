use super::*;
use crate::filter::{Subject, parse};
use crate::journal::event::{Purpose, Transport};
use crate::journal::{Journal, Kind};
use crate::record::entry::{self, Header};
use crate::recording::Recording;
use std::io::Write;
use std::path::Path;

/// One death in a call, one while idle, with stderr around.
fn story() -> Vec<(u32, Kind)> {
    let sent =
        |t: &str| Kind::Sent { raw: t.to_owned().into(), exchange: None, purpose: Purpose::Asked };
    let received = |t: &str| Kind::Received { raw: t.to_owned().into(), exchange: None };
    let opened =
        || Kind::Opened { transport: Transport::Stdio { command: vec!["s".into()], pid: Some(1) } };
    let stderr = |t: &str| Kind::Stderr { raw: t.to_owned().into() };
    let call = |id: &str, r: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"create_ticket","arguments":{{"request_id":"{r}","title":"障害"}}}}}}"#
        )
    };
    vec![
        (1, opened()),
        (1, sent(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)),
        (1, received(r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#)),
        (1, stderr("up")),
        (1, sent(&call("2", "n-1"))),
        (1, sent(&call("3", "n-2"))),
        (1, received(r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#)),
        (1, stderr("boom")),
        (1, Kind::Exit { code: None, signal: Some(9), left: crate::procs::Left::Nobody }),
        (2, opened()),
        (2, sent(&call("2", "n-2"))),
        (2, received(r#"{"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":true}}"#)),
        (2, Kind::Exit { code: Some(0), signal: None, left: crate::procs::Left::Nobody }),
    ]
}

fn file(dir: &Path) -> std::path::PathBuf {
    let path = dir.join("r.jsonl");
    let mut out = std::fs::File::create(&path).unwrap();
    out.write_all(entry::header(&Header::default()).as_bytes()).unwrap();
    for (n, (generation, kind)) in story().into_iter().enumerate() {
        let n = n as u64;
        let at = Time(1_000_000 * (n as i64 + 1));
        let e = Entry::new(n + 1, at, n * 1000, generation, What::Event(kind));
        out.write_all(entry::line(&e).as_bytes()).unwrap();
    }
    path
}

/// The same story from a file and from a journal.
fn both(dir: &Path) -> [(Source, Box<dyn Knows>); 2] {
    let path = file(dir);
    let mut index = Index::open(&path).unwrap();
    while index.advance().unwrap() {}
    let journal = Journal::new();
    for (generation, kind) in story() {
        journal.append(generation, kind);
    }
    let mut live = Source::Live(Live::new(journal.clone()));
    live.advance().unwrap();
    let session = journal.read(Clone::clone);
    [
        (Source::File(Box::new(index)), Box::new(Recording::open(&path).unwrap())),
        (live, Box::new(session)),
    ]
}

#[test]
fn rows_know_what_belongs_together() {
    let dir = tempfile::tempdir().unwrap();
    for (source, knows) in both(dir.path()) {
        let rows: Vec<Row> =
            source.range().map(|i| source.row(i, &*knows, Time(0)).unwrap()).collect();
        let text = |t: &Option<String>| t.clone().unwrap_or_default();
        let said: Vec<_> = rows
            .iter()
            .map(|r| (r.generation, r.kind, text(&r.request_id), r.outcome.unwrap_or("")))
            .collect();
        let want = [
            (1, "opened", "", ""),
            (1, "request", "", ""),
            (1, "result", "", "ok"),
            (1, "stderr", "", ""),
            (1, "request", "n-1", "ok"),
            (1, "request", "n-2", "unknown"),
            (1, "result", "n-1", "ok"),
            (1, "stderr", "", ""),
            (1, "exit", "", ""),
            (2, "opened", "", ""),
            (2, "request", "n-2", "tool_error"),
            (2, "tool_error", "n-2", "tool_error"),
            (2, "exit", "", ""),
        ];
        assert_eq!(said, want.map(|(g, k, r, o)| (g, k, r.to_owned(), o)));
        assert!(rows[8].text.ends_with("in a call: create_ticket n-2"), "{}", rows[8].text);
        assert!(rows[12].text.ends_with("while idle"), "{}", rows[12].text);
    }
}

#[test]
fn steps_lead_to_answers_stderr_errors_and_deaths() {
    let dir = tempfile::tempdir().unwrap();
    for (source, knows) in both(dir.path()) {
        assert_eq!((source.peer(4), source.peer(6), source.peer(5)), (Some(6), Some(4), None));
        assert_eq!((source.stderr_near(5, 0), source.stderr_near(0, 0)), (Some(3), Some(3)));
        assert_eq!(source.stderr_near(10, 0), None, "the second life said nothing");
        let mut errors = Vec::new();
        let mut from = 0;
        while let (Some(i), _) = source.error_from(from, &*knows) {
            errors.push(i);
            from = i + 1;
        }
        // The lost call, the kill, the tool's error; the end of an idle server is none.
        assert_eq!(errors, [5, 8, 11]);
        let deaths = [0, 8, 12].map(|from| source.death_after(from, 0));
        assert_eq!(deaths, [Some(8), Some(12), Some(8)]);
        assert_eq!((source.call_of("n-2", 0), source.call_of("n-9", 0)), (Some(10), None));
        // Places that were looked at before are not looked at again.
        assert_eq!((source.call_of("n-2", 10), source.call_of("n-2", 11)), (Some(10), None));
        assert_eq!((source.stderr_near(5, 4), source.stderr_near(5, 8)), (Some(7), None));
        assert_eq!((source.death_after(0, 9), source.death_after(8, 13)), (Some(12), None));
        assert_eq!(source.error_from(5, &*knows), (Some(5), vec![]));
        let seq = source.entry(5).unwrap().seq;
        assert_eq!(source.find(seq), Some(5));
    }
}

#[test]
fn what_the_ledger_says_of_a_request_holds_for_its_frames() {
    let dir = tempfile::tempdir().unwrap();
    for (source, knows) in both(dir.path()) {
        let said = ("abandoned".to_owned(), vec!["abandoned_with_effect".to_owned()]);
        let judged: Judged = [("n-2".to_owned(), said)].into_iter().collect();
        for (text, want) in [
            ("state:abandoned", 3),
            ("verdict:abandoned-with-effect kind:request", 2),
            ("state:done", 0),
        ] {
            let mut places = Places::new(parse(text).unwrap());
            while places.look(&source, &*knows, &judged, Time(0), 100) {}
            assert_eq!(places.len(&source), want, "{text}");
        }
        assert_eq!(knows.lost(1).len(), 1);
        assert!(
            knows.lost(1)[0].starts_with("create_ticket n-2 (id 3), sent "),
            "{:?}",
            knows.lost(1)
        );
        assert!(knows.lost(2).is_empty());
    }
}

#[test]
fn a_filter_finds_its_places_in_pieces_and_as_show_does() {
    let dir = tempfile::tempdir().unwrap();
    for (source, knows) in both(dir.path()) {
        for text in [
            "tool:create_ticket",
            "method:tools/list",
            "method:tools/call",
            "kind:stderr | kind:exit",
            "outcome:unknown",
            "dir:out gen:2",
            "req:n-2",
            "boom",
            "!kind:request ms:>=0",
            "id:2",
            "障害",
            "kind:sent",
            "age:>1s",
            "text:isError",
            "",
        ] {
            let filter = parse(text).unwrap();
            let mut places = Places::new(filter.clone());
            let now = Time(60_000_000);
            while places.look(&source, &*knows, &Judged::new(), now, 2) {}
            let found: Vec<usize> =
                (0..places.len(&source)).map(|r| places.at(&source, r).unwrap()).collect();
            let row = |i: usize| source.row(i, &*knows, now).unwrap();
            let want: Vec<usize> =
                source.range().filter(|i| filter.matches(&row(*i) as &dyn Subject)).collect();
            assert_eq!(found, want, "{text}");
            for i in source.range() {
                assert_eq!(places.has(&source, i), want.contains(&i), "{text} {i}");
            }
        }
    }
}

#[test]
fn what_a_session_lets_go_is_no_match_any_more() {
    let journal = Journal::new();
    let mut source = Source::Live(Live::new(journal.clone()));
    let filter = parse("kind:stderr").unwrap();
    let mut places = Places::new(filter);
    let knows = journal.read(Clone::clone);
    let large = bytes::Bytes::from(vec![b'x'; 4 << 20]);
    for n in 0..60 {
        let kind = match n % 2 {
            0 => Kind::Stderr { raw: large.clone() },
            _ => Kind::Exit { code: Some(0), signal: None, left: crate::procs::Left::Nobody },
        };
        journal.append(1, kind);
        source.advance().unwrap();
        while places.look(&source, &knows, &Judged::new(), Time(0), 10) {}
    }
    let range = source.range();
    assert!(range.start > 0, "old ones are let go");
    let want: Vec<usize> = range.clone().filter(|i| i % 2 == 0).collect();
    let found: Vec<usize> =
        (0..places.len(&source)).map(|r| places.at(&source, r).unwrap()).collect();
    assert_eq!(found, want);
}
