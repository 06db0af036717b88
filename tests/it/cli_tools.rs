//! `redial tools`: the three classes and what is odd about a tool's hints.

use crate::support::cli::{FakeStdio, both, redial, tickets, tool};

fn fake() -> FakeStdio {
    let fake = FakeStdio::new();
    fake.tools(&format!(
        "[{},{},{},{},{}]",
        tool("charge", ""),
        tool("create_ticket", r#""idempotentHint":true"#),
        tool("make_it", r#""readOnlyHint":true"#),
        tool("find_request", r#""readOnlyHint":true"#),
        r#"{"name":"list_all","annotations":{"readOnlyHint":true}}"#,
    ));
    fake
}

#[test]
fn tools_are_sorted_into_three_classes_and_only_the_odd_ones_warn() {
    let ran = fake().run(&["tools", "--json"]);
    let doc = ran.doc();
    let all: Vec<(&str, &str, usize)> = doc["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| {
            let word = |k: &str| t[k].as_str().unwrap();
            (word("name"), word("class"), t["warnings"].as_array().unwrap().len())
        })
        .collect();
    // In the order listed.
    assert_eq!(
        all,
        [
            ("charge", "unprotected", 1),
            ("create_ticket", "repeatable", 0),
            ("make_it", "changes_nothing", 1),
            ("find_request", "changes_nothing", 0),
            ("list_all", "changes_nothing", 0),
        ]
    );
    assert!(doc["tools"][2]["warnings"][0].as_str().unwrap().contains("in parallel"));
    let plain = fake().run(&["tools"]);
    plain.expect(0, &["warning: make_it says that it is read-only and takes a request_id"]);
    let at = |name: &str| plain.stdout.find(&format!("\n{name} ")).unwrap();
    assert!(at("list_all") < at("create_ticket") && at("create_ticket") < at("charge"));
    // Another server's look-up has another name.
    let named = fake().run(&["tools", "--lookup", "make_it"]);
    assert!(!named.stdout.contains("warning: make_it"), "{}", named.stdout);
    assert!(named.stdout.contains("warning: find_request"), "{}", named.stdout);
}

#[test]
fn the_built_in_servers_have_nothing_odd() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = dir.path().join("ledger.db");
    let ran = redial(&both(&["tools"], &tickets(ledger.to_str().unwrap())));
    ran.expect(0, &["changes nothing", "repeatable"]);
    assert!(!ran.stdout.contains("warning"), "{}", ran.stdout);
}
