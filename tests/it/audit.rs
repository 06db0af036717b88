//! `redial audit` as a person runs it: files in all forms, contracts with mistakes, damage, hostile text, the ledger,
//! proposals, the page.

use crate::support::cli::{assert_harmless, command, make_ledger, redial};
use redial::json::raw;
use std::path::{Path, PathBuf};

pub const CONTRACTS: &str = r#"
[tools.create_basket]
produces = "basket_id"
[tools.add_item]
requires = "basket_id"
[tools.checkout]
requires = "basket_id"
"#;

/// A folder with files in it.
pub struct Dir(pub tempfile::TempDir);

impl Dir {
    pub fn new() -> Dir {
        Dir(tempfile::tempdir().unwrap())
    }
    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn fixture(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/fixtures/audit").join(name).to_str().unwrap().to_owned()
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-sessions").join(name)
}

/// A path at which nothing is, nor can be while the test runs.
fn absent(name: &str) -> String {
    crate::support::cli::home().join("absent").join(name).display().to_string()
}

#[test]
fn the_articles_traces_in_every_form_and_as_plain_json_and_junit() {
    let dir = Dir::new();
    let contracts = dir.file("contracts.toml", CONTRACTS);
    let items = [
        r#"{"tool": "create_basket", "arguments": {}, "result": {"basket_id": "b-781"}}"#,
        r#"{"tool": "add_item", "arguments": {"basket_id": "b-781", "sku": "book-42"}}"#,
        r#"{"tool": "checkout", "arguments": {"basket_id": "b-781"}}"#,
    ];
    let wrong = r#"{"tool": "add_item", "arguments": {"basket_id": "b-999", "sku": "book-42"}}"#;
    let unknown = [items[0], wrong];
    for (name, good, bad) in [
        ("list", format!("[\n {}\n]", items.join(",\n ")), format!("[{}]", unknown.join(","))),
        ("lines", items.join("\n") + "\n", unknown.join("\n")),
    ] {
        let good = dir.file(&format!("good-{name}"), good);
        let bad = dir.file(&format!("bad-{name}"), bad);
        let r = redial(&["audit", &good, "--contracts", &contracts]);
        r.expect(0, &["3", "nothing found", "create_basket → basket_id"]);
        assert_eq!(
            redial(&["audit", &good, "--contracts", &contracts, "--json"]).get(&["findings"]),
            "[]"
        );
        let r = redial(&["audit", &bad, "--contracts", &contracts]);
        r.expect(
            1,
            &["call 2", "add_item: basket_id='b-999' was not made in this trace", "1 finding"],
        );
        // A tool that is in no trace is told, and is no finding.
        r.expect(1, &["the contracts name checkout"]);
        let j = redial(&["audit", &bad, "--contracts", &contracts, "--json"]);
        assert_eq!((j.exit, j.text(&["schema"])), (1, "redial/audit@1".into()));
        let doc = j.doc();
        let f = &doc["findings"];
        assert_eq!(f.as_array().unwrap().len(), 1, "{f}");
        let f = &f[0];
        assert_eq!(
            (&f["kind"], &f["call"], &f["tool"], &f["handle"], &f["value"]),
            (
                &"unminted_handle".into(),
                &2.into(),
                &"add_item".into(),
                &"basket_id".into(),
                &"b-999".into()
            )
        );
        assert_eq!((&f["inferred"], &doc["inferred"]), (&false.into(), &false.into()));
        let x = redial(&["audit", &bad, "--contracts", &contracts, "--junit"]);
        x.expect(
            1,
            &[
                "<?xml",
                "failures=\"1\"",
                "type=\"unminted_handle\"",
                "name=\"add_item\"",
                "<skipped",
            ],
        );
    }
}

#[test]
fn contracts_with_mistakes_are_refused_with_the_nearest_right_word() {
    let dir = Dir::new();
    let trace = dir.file("t.jsonl", r#"{"tool":"a","arguments":{}}"#);
    let wrong = dir.file("c.toml", "[tools.a]\nproduce = \"x\"\n");
    redial(&["audit", &trace, "--contracts", &wrong])
        .expect(2, &["c.toml: there is no key tools.a.produce; did you mean produces?"]);
    redial(&["audit", &trace, "--contracts", &absent("c.toml")]).expect(2, &["can't be read"]);
    redial(&["audit", &trace, "--http", "http://127.0.0.1:1/mcp"]).expect(2, &["--fresh-sessions"]);
}

#[test]
fn contracts_beside_mcp_json_are_found_from_any_folder_under_it() {
    let dir = Dir::new();
    dir.file(".mcp.json", "{\"mcpServers\":{}}");
    dir.file("contracts.toml", CONTRACTS);
    let trace =
        dir.file("t.jsonl", r#"{"tool":"create_basket","arguments":{},"result":{"basket_id":""}}"#);
    let deep = dir.0.path().join("a/b");
    std::fs::create_dir_all(&deep).unwrap();
    let out = command(&["audit", &trace]).current_dir(&deep).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    // An empty value counts as not returned.
    assert_eq!(out.status.code(), Some(1), "{text}");
    assert!(
        text.contains("contracts.toml") && text.contains("did not return basket_id (it is empty)"),
        "{text}"
    );
    // Without them nothing is agreed, and that is said.
    std::fs::remove_file(dir.0.path().join("contracts.toml")).unwrap();
    let out = command(&["audit", &trace]).current_dir(&deep).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("inferred") && out.status.success(), "{text}");
}

#[test]
fn damage_costs_its_line_and_what_is_no_trace_is_said_to_be_none() {
    let dir = Dir::new();
    let r = redial(&["audit", &fixture("bad_bytes_inside.jsonl"), "--json"]);
    assert_eq!(r.exit, 1);
    let doc = r.doc();
    assert_eq!(doc["findings"].as_array().unwrap().len(), 1, "{}", r.stdout);
    assert_eq!(
        (&doc["findings"][0]["kind"], &doc["findings"][0]["line"]),
        (&"bad_line".into(), &6.into())
    );
    assert_eq!((&doc["calls"], &doc["handles"]), (&1.into(), &1.into()));
    let torn = redial(&["audit", &fixture("truncated_tail.jsonl")]);
    torn.expect(1, &["line 8 could not be read: torn", "2"]);
    // A last line that is whole but for its newline is no damage.
    let whole = std::fs::read_to_string(fixture("clean.jsonl")).unwrap();
    let whole = dir.file("w.jsonl", whole.trim_end());
    redial(&["audit", &whole]).expect(0, &["nothing found"]);
    let list = dir.file("l.json", r#"[{"tool":"a","arguments":{}}, 7, {"no":1}, {"tool":"b"#);
    let r = redial(&["audit", &list, "--json"]);
    let kinds = r.doc()["findings"].as_array().unwrap().len();
    assert_eq!((kinds, r.doc()["calls"].as_u64()), (3, Some(1)), "{}", r.stdout);
    redial(&["audit", &dir.file("e", "")]).expect(6, &["is empty: there is nothing to audit"]);
    redial(&["audit", &dir.file("n", "hello\nworld\n")])
        .expect(6, &["is no recording: it looks like"]);
    redial(&["audit", &absent("t.jsonl")]).expect(6, &["t.jsonl"]);
    redial(&["audit", &dir.file("m", "[]")]).expect(0, &["no tool call"]);
}

#[test]
fn nothing_hostile_comes_out_of_any_face() {
    let dir = Dir::new();
    let nasty = "b\\u001b]0;owned\\u0007\\u202e\\u200b<script>|`x`[a](http://b)]]>&\\u009b31m";
    let trace = format!(
        "{{\"tool\":\"add_{nasty}\",\"arguments\":{{\"basket_id\":\"{nasty}\"}}}}\n{{\"tool\":\"make_{nasty}\",\"arguments\":{{}},\"result\":{{\"draft_id\":\"d-{nasty}\"}}}}\n{{\"tool\":\"use\",\"arguments\":{{\"draft_id\":\"d-{nasty}\"}}}}\nx\u{1b}[2J\n"
    );
    let trace = dir.file("t\u{202e}.jsonl", trace);
    for args in [
        &["audit", &trace][..],
        &["audit", &trace, "--json"],
        &["audit", &trace, "--junit"],
        &["audit", &trace, "--report"],
    ] {
        let r = redial(args);
        assert_eq!(r.exit, 1, "{}", r.all());
        assert_harmless(&args.join(" "), r.stdout.as_bytes());
        assert_harmless("stderr", r.stderr.as_bytes());
    }
    let page = redial(&["audit", &trace, "--report"]).stdout;
    assert!(!page.contains("<script>`") && !page.contains("](http://"), "{page}");
    let outside_code: String = page.split('`').step_by(2).collect();
    assert!(!outside_code.contains("<script>"), "{page}");
    let xml = redial(&["audit", &trace, "--junit"]).stdout;
    assert!(!xml.contains("<script>") && !xml.contains("]]>"), "{xml}");
    let out = dir.0.path().join("c.toml");
    let r = redial(&["audit", &trace, "--infer", "--out", out.to_str().unwrap()]);
    assert_harmless("infer", r.all().as_bytes());
    let file = std::fs::read(&out).unwrap();
    assert_harmless("contracts", &file);
    // It can be read back, and says the same names.
    let r = redial(&["audit", &trace, "--contracts", out.to_str().unwrap(), "--json"]);
    assert_ne!(r.exit, 2, "{}{}", r.all(), String::from_utf8_lossy(&file));
}

#[test]
fn secrets_of_a_foreign_trace_stay_in_it() {
    let dir = Dir::new();
    let trace = dir.file(
        "t.jsonl",
        r#"{"tool":"use","arguments":{"access_token_id":"x","session_token":"case-secret-1"}}
{"tool":"open","arguments":{},"result":{"session_token":"case-secret-1"}}"#,
    );
    let contracts = dir.file(
        "c.toml",
        "[tools.use]\nrequires = \"session_token\"\n[tools.open]\nproduces = \"session_token\"",
    );
    for face in ["--json", "--junit", "--report"] {
        let r = redial(&["audit", &trace, "--contracts", &contracts, face]);
        assert_eq!(r.exit, 1);
        assert!(!r.all().contains("case-secret"), "{face}: {}", r.all());
    }
    let r = redial(&["audit", &fixture("secrets.jsonl"), "--json"]);
    assert_eq!(r.exit, 0);
    assert!(!r.all().contains("case-secret"), "{}", r.all());
}

#[test]
fn proposals_are_written_once_and_hold_for_their_own_trace() {
    let dir = Dir::new();
    let trace = dir.file(
        "t.jsonl",
        r#"{"tool":"create_basket","arguments":{},"result":{"basket_id":"b-781","items":0}}
{"tool":"add_item","arguments":{"basket_id":"b-781","sku":"book-42","n":1},"result":{"items":1}}
{"tool":"open_draft","arguments":{},"result":{"key":"d-99172"}}
{"tool":"write","arguments":{"draft":"d-99172"},"result":{}}
{"tool":"write","arguments":{},"result":{}}"#,
    );
    let run = |args: &[&str]| {
        let out = command(args).current_dir(dir.0.path()).output().unwrap();
        (
            out.status.code().unwrap(),
            String::from_utf8(out.stdout).unwrap(),
            String::from_utf8(out.stderr).unwrap(),
        )
    };
    let (exit, said, _) = run(&["audit", &trace, "--infer"]);
    assert_eq!(exit, 0);
    assert!(said.contains("written to contracts.toml") && said.contains("high"), "{said}");
    let text = std::fs::read_to_string(dir.0.path().join("contracts.toml")).unwrap();
    assert!(
        text.contains("[tools.create_basket]") && text.contains("produces = \"basket_id\""),
        "{text}"
    );
    // By value alone: another name, and not in each call.
    assert!(
        text.contains("requires = { name = \"draft\", as = \"key\", optional = true }"),
        "{text}"
    );
    // Small numbers that may be chance stand there as comments.
    assert!(text.lines().filter(|l| l.contains("items")).all(|l| l.starts_with('#')), "{text}");
    let (exit, said, _) = run(&["audit", &trace, "--contracts", "contracts.toml"]);
    assert_eq!(exit, 0, "{said}");
    // Never over what is there.
    let (_, said, _) = run(&["audit", &trace, "--infer"]);
    assert!(said.contains("written to contracts-2.toml"), "{said}");
    let (exit, _, why) = run(&["audit", &trace, "--infer", "--out", "contracts.toml"]);
    assert_eq!(exit, 2);
    assert!(why.contains("is there already"), "{why}");
    assert_eq!(std::fs::read_to_string(dir.0.path().join("contracts.toml")).unwrap(), text);
    let (_, json, _) = run(&["audit", &trace, "--infer", "--out", "x.toml", "--json"]);
    let first = raw::get(&json, "proposals").and_then(raw::items).unwrap()[0].to_owned();
    assert!(
        ["tool", "kind", "name", "confidence", "why"].iter().all(|k| raw::get(&first, k).is_some()),
        "{first}"
    );
}

#[test]
fn the_page_tells_who_makes_who_uses_and_what_became_of_it() {
    let page = redial(&["audit", sample("handle-lost.jsonl").to_str().unwrap(), "--report"]);
    page.expect(
        1,
        &[
            "## Where authorization must be checked",
            "| `add_item` | `basket_id` | `create_basket` |",
            "## Tools that make state",
            "## Tools that use state",
            "**lost**: refused in life 2",
            "## What needs a connection",
            "signal 9",
        ],
    );
    let first = page.stdout.find("authorization must be checked").unwrap();
    assert!(first < page.stdout.find("Tools that make state").unwrap());
}

#[test]
fn a_ledger_says_what_the_wire_can_not() {
    let dir = Dir::new();
    let call = |id: u32, r: &str| {
        format!(
            r#"{{"t":{id},"dir":"out","msg":{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"create_ticket","arguments":{{"request_id":"{r}","title":"t"}}}}}}}}"#
        )
    };
    let answer = |id: u32| {
        format!(
            r#"{{"t":{id},"dir":"in","msg":{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}}}"#
        )
    };
    let lines = [
        call(1, "fine"),
        answer(1),
        call(2, "twice"),
        answer(2),
        call(3, "nowhere"),
        answer(3),
        call(4, "silent"),
        r#"{"t":5,"dir":"proc","event":"exit","signal":9}"#.into(),
    ];
    let trace = dir.file("t.jsonl", lines.join("\n"));
    let ledger = dir.0.path().join("l.db");
    make_ledger(
        &ledger,
        "DROP TABLE tickets; CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id TEXT, title TEXT, body TEXT);
         INSERT INTO requests VALUES('fine','h','done','{}','o',1.0),('twice','h2','done','{}','o',2.0),('silent','h3','done','{}','o',3.0);
         INSERT INTO tickets VALUES('T1','fine','t','b'),('T2','twice','t','b'),('T3','twice','t','b'),('T4','silent','t','b');",
    );
    let r = redial(&["audit", &trace, "--ledger", ledger.to_str().unwrap(), "--json"]);
    assert_eq!(r.exit, 1, "{}", r.all());
    let mut said: Vec<(String, String)> = r.doc()["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (f["kind"].as_str().unwrap().into(), f["value"].as_str().unwrap_or("").into()))
        .collect();
    said.sort();
    let want = [
        ("answered_without_row", "nowhere"),
        ("done_without_answer", "silent"),
        ("duplicate_effect", "twice"),
        ("outcome_unknown", "silent"),
    ];
    assert_eq!(said, want.map(|(a, b)| (a.to_owned(), b.to_owned())), "{}", r.stdout);
    redial(&["audit", &trace, "--ledger", &absent("l.db")]).expect(6, &[]);
    // Without an answer nobody knows the name of what was made; a ledger that has it does.
    let contracts = dir.file("c.toml", "[tools.create_ticket]\nproduces = \"ticket_id\"");
    let with = ["audit", &trace, "--contracts", &contracts];
    let orphan = |args: &[&str]| redial(args).stdout.contains("maybe orphan state");
    assert!(orphan(&with));
    assert!(!orphan(&[&with[..], &["--ledger", ledger.to_str().unwrap()]].concat()));
}
