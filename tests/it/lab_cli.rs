//! Every cell of the lab's table, on real processes and transports, in both eras.

use crate::support::cli::{redial, redial_soon};
use redial::json::raw;
use std::collections::BTreeMap;

/// scenario, tool, variant: effects, logical invocations, attempts, eras.
const TABLE: &[(&str, &str, &str, u64, u64, u64, usize)] = &[
    ("timeout-stdio", "charge", "", 2, 1, 2, 2),
    ("timeout-stdio", "create_ticket", "", 1, 1, 2, 2),
    ("killed-after-commit", "charge", "", 2, 1, 2, 2),
    ("killed-after-commit", "create_ticket", "", 1, 1, 2, 2),
    ("timeout-http", "charge", "", 2, 1, 2, 2),
    ("timeout-http", "create_ticket", "", 1, 1, 2, 2),
    ("framework-step", "charge", "", 3, 1, 3, 2),
    ("framework-step", "create_ticket", "request_id made outside the step", 1, 1, 3, 2),
    ("framework-step", "create_ticket", "request_id made inside the step", 3, 1, 3, 2),
    ("framework-step", "charge", "a ValueError instead", 1, 1, 1, 2),
    ("lost-answer", "charge", "as Claude Code repeats", 1, 1, 1, 2),
    ("lost-answer", "create_ticket", "as Claude Code repeats", 1, 1, 2, 2),
    ("lost-answer", "charge", "", 2, 1, 2, 2),
    ("lost-answer", "create_ticket", "", 1, 1, 2, 2),
    ("while-working", "charge", "", 2, 1, 2, 2),
    ("while-working", "create_ticket", "", 1, 1, 2, 2),
    ("other-arguments", "create_ticket", "", 1, 1, 2, 2),
    ("claim-left-behind", "create_ticket", "", 1, 1, 2, 2),
    ("new-request-id", "create_ticket", "", 2, 1, 2, 2),
    ("still-working", "create_ticket", "", 1, 1, 3, 2),
    ("dies-at-second-call", "charge", "", 5, 3, 5, 2),
    ("dies-at-second-call", "create_ticket", "", 3, 3, 5, 2),
    ("session-lost", "create_ticket", "404", 1, 1, 2, 1),
    ("session-lost", "create_ticket", "400", 1, 1, 2, 1),
    ("busy", "create_ticket", "429", 1, 1, 3, 2),
    ("busy", "create_ticket", "503", 1, 1, 3, 2),
    ("busy", "create_ticket", "a JSON-RPC error, then another call", 1, 2, 2, 2),
    ("lost-handle", "add_item", "gone", 0, 2, 2, 2),
    ("lost-handle", "add_item", "points at something else", 1, 3, 3, 2),
    ("order", "charge", "", 1, 1, 1, 2),
];

#[test]
fn every_cell_counts_what_the_articles_claim() {
    // Each scenario by a process of its own: together they would wait one after the other.
    let mut names: Vec<&str> = TABLE.iter().map(|c| c.0).collect();
    names.dedup();
    let asked: Vec<_> =
        names.iter().map(|name| redial_soon(&["lab", "run", name, "--json"])).collect();
    let done: Vec<_> = asked.into_iter().map(|r| r.join().unwrap()).collect();
    let mut seen: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for r in &done {
        assert_eq!(r.exit, 0, "{}", r.all());
        assert_eq!(r.text(&["schema"]), "redial/lab@1");
    }
    let runs: Vec<String> = done.iter().map(|r| r.get(&["runs"])).collect();
    for run in runs.iter().flat_map(|runs| raw::items(runs).unwrap()) {
        let text = |k: &str| raw::get_str(run, k).unwrap();
        let number = |k: &str| raw::get(run, k).unwrap().parse::<u64>().unwrap();
        let (scenario, tool, variant) = (text("scenario"), text("tool"), text("variant"));
        let (_, _, _, effects, logical, attempts, _) = TABLE
            .iter()
            .find(|c| (c.0, c.1, c.2) == (scenario.as_str(), tool.as_str(), variant.as_str()))
            .unwrap_or_else(|| panic!("not in the table: {run}"));
        let got = (number("effects"), number("logical_invocations"), number("attempts"));
        assert_eq!(got, (*effects, *logical, *attempts), "{run}");
        assert_eq!(
            (raw::get(run, "void"), raw::get(run, "wrong")),
            (Some("false"), Some("[]")),
            "{run}"
        );
        *seen.entry((scenario, tool, variant)).or_default() += 1;
    }
    for (scenario, tool, variant, .., eras) in TABLE {
        let key = ((*scenario).into(), (*tool).into(), (*variant).into());
        assert_eq!(seen.get(&key), Some(eras), "{scenario} {tool} {variant}");
    }
}

#[test]
fn one_scenario_in_one_era_with_its_recording() {
    let dir = tempfile::tempdir().unwrap();
    let keep = dir.path().to_str().unwrap();
    let args = ["lab", "run", "killed-after-commit", "--era", "legacy", "--json", "--keep", keep];
    let r = redial(&args);
    assert_eq!(r.exit, 0, "{}", r.all());
    let runs = r.get(&["runs"]);
    let runs = raw::items(&runs).unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_eq!(raw::get_str(run, "protocol").as_deref(), Some("2025-11-25"));
        let tries = raw::items(raw::get(run, "tries").unwrap()).unwrap();
        let ids: Vec<_> = tries.iter().map(|t| raw::get(t, "rpc_id").unwrap()).collect();
        assert_eq!(ids[0], ids[1], "both attempts carry the same JSON-RPC id");
        let text = std::fs::read_to_string(raw::get_str(run, "recording").unwrap()).unwrap();
        assert!(text.contains("\"signal\":9"));
    }
    assert_eq!(redial(&["lab", "run", "nothing"]).exit, 2);
    let list = redial(&["lab", "list"]);
    assert!(
        list.exit == 0
            && list.stdout.contains("night-batch")
            && list.stdout.contains("lost-handle")
    );
}
