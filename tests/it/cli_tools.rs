//! `redial tools`: the three classes and what is odd about a tool's hints.

use crate::support::cli::{FakeStdio, Ran, both, command, redial, tickets, tool};

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
fn a_configuration_s_word_is_shown_and_a_project_s_is_heard_only_where_it_is_stricter() {
    let (project, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::create_dir(user.path().join("redial")).unwrap();
    std::fs::write(user.path().join("redial/config.toml"), "[hints.charge]\nidempotent = true\n")
        .unwrap();
    let says = "[hints.create_ticket]\nidempotent = false\n[hints.make_it]\nread_only = true\n[hints.charge]\nread_only = true\n";
    std::fs::write(project.path().join("redial.toml"), says).unwrap();
    let fake = fake();
    let run = |args: &[&str]| {
        let server = fake.command();
        let server: Vec<&str> = server.iter().map(String::as_str).collect();
        let mut c = command(&both(args, &server));
        c.current_dir(project.path()).env("XDG_CONFIG_HOME", user.path());
        Ran::from(c.output().unwrap())
    };
    let doc = run(&["tools", "--json"]).doc();
    let tool = |i: usize| (&doc["tools"][i]["gate"], &doc["tools"][i]["overruled"]);
    assert_eq!(tool(0).0, "preview", "{doc}");
    assert_eq!(tool(0).1, &serde_json::json!({"idempotent": true}));
    assert_eq!(tool(1).0, "type");
    assert_eq!(tool(1).1, &serde_json::json!({"idempotent": false}));
    assert_eq!((tool(2).0, tool(2).1), (&"none".into(), &serde_json::Value::Null));
    assert!(doc["tools"][0]["warnings"].to_string().contains("not heard"), "{doc}");
    run(&["tools"]).expect(0, &["by the configuration: hints: idempotent", "warning: charge"]);
}

#[test]
fn the_built_in_servers_have_nothing_odd() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = dir.path().join("ledger.db");
    let ran = redial(&both(&["tools"], &tickets(ledger.to_str().unwrap())));
    ran.expect(0, &["changes nothing", "repeatable"]);
    assert!(!ran.stdout.contains("warning"), "{}", ran.stdout);
}

#[test]
fn a_definition_that_is_not_kept_is_said_to_be_and_its_hints_count_for_nothing() {
    let fake = FakeStdio::new();
    let large = |i: usize| {
        let text = "x".repeat(2 << 20);
        format!(
            r#"{{"name":"large_{i}","description":"{text}","annotations":{{"readOnlyHint":true}}}}"#
        )
    };
    fake.tools(&format!("[{}]", (0..9).map(large).collect::<Vec<_>>().join(",")));
    let doc = fake.run(&["tools", "--json"]).doc();
    let tool = |i: usize| &doc["tools"][i];
    assert_eq!((&tool(0)["gate"], tool(0).get("not_kept")), (&"none".into(), None));
    let last = tool(8);
    assert_eq!((&last["name"], &last["gate"]), (&"large_8".into(), &"type".into()));
    assert_eq!((&last["hints"], &doc["complete"]), (&serde_json::Value::Null, &true.into()));
    assert!(last["not_kept"].as_u64().unwrap() > 2 << 20, "{last}");
    assert!(last["why"].to_string().contains("did not keep its definition (2.0 MiB)"));
    let plain = fake.run(&["tools"]);
    plain.expect(0, &["large_8", "redial did not keep its definition (2.0 MiB)"]);
}
