use super::*;
use crate::recording::import::{Form, form};

pub(super) fn audited(text: &str, contracts: Option<&str>) -> Audit {
    let options = Options {
        contracts: contracts.map(|c| Contracts::parse("c", c).unwrap()),
        look_up: "find_request".into(),
        ..Options::default()
    };
    let mut audit = Audit::new(options);
    let mut reader = Reader::new(form(text.as_bytes()).unwrap_or(Form::Recording));
    for (n, line) in text.lines().enumerate() {
        reader.line(n as u64 + 1, line.as_bytes(), &mut |at, fact| audit.apply(at, fact));
    }
    audit
}

fn found(audit: &Audit) -> Vec<(String, Option<u64>, Option<String>)> {
    let all = audit.findings();
    all.list().iter().map(|f| (f.kind.word().to_owned(), f.call, f.value.clone())).collect()
}

const CONTRACTS: &str = "[tools.create_basket]\nproduces='basket_id'\n[tools.add_item]\nrequires='basket_id'\n[tools.checkout]\nrequires='basket_id'";

#[test]
fn the_articles_two_traces() {
    let ok = r#"{"tool":"create_basket","arguments":{},"result":{"basket_id":"b-781"}}
{"tool":"add_item","arguments":{"basket_id":"b-781","sku":"book-42"}}
{"tool":"checkout","arguments":{"basket_id":"b-781"}}"#;
    let unknown = r#"{"tool":"create_basket","arguments":{},"result":{"basket_id":"b-781"}}
{"tool":"add_item","arguments":{"basket_id":"b-999","sku":"book-42"}}"#;
    assert_eq!(form(ok.as_bytes()), Some(Form::Trace));
    for contracts in [Some(CONTRACTS), None] {
        assert_eq!(found(&audited(ok, contracts)), []);
        let a = audited(unknown, contracts);
        assert_eq!(found(&a), [("unminted_handle".into(), Some(2), Some("b-999".into()))]);
        let all = a.findings();
        let f = &all.list()[0];
        assert_eq!((f.tool.as_deref(), f.handle.as_deref()), (Some("add_item"), Some("basket_id")));
        assert!(f.message.starts_with("add_item: basket_id='b-999' was not made in this trace"));
        assert_eq!(f.inferred, contracts.is_none());
    }
}

pub(super) fn bytes_audited(bytes: &[u8], mut options: Options) -> Audit {
    options.look_up = "find_request".into();
    let mut audit = Audit::new(options);
    let mut reader = Reader::new(form(bytes).unwrap_or(Form::Recording));
    for (n, line) in bytes.split(|b| *b == b'\n').enumerate() {
        reader.line(n as u64 + 1, line, &mut |at, fact| audit.apply(at, fact));
    }
    audit
}

/// The kinds and what each is about, as `expected.json` spells them.
fn told(f: &Finding, words: &[String]) -> bool {
    let about = [f.value.clone(), f.tool.clone(), f.handle.clone(), f.call.map(|c| c.to_string())];
    f.kind.word() == words[0]
        && about.iter().flatten().any(|a| *a == words[1])
        && words.iter().skip(2).all(|w| f.message.contains(w) || about.contains(&Some(w.clone())))
}

#[test]
fn fifteen_traces_give_what_they_must_and_nothing_else() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/audit");
    let expected = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let all: serde_json::Value = serde_json::from_str(&expected).unwrap();
    let all = all.as_object().unwrap();
    assert_eq!(all.len(), 15);
    for (name, want) in all {
        let bytes = std::fs::read(folder.join(format!("{name}.jsonl"))).unwrap();
        let audit = bytes_audited(&bytes, Options::default());
        let findings = audit.findings();
        let said: Vec<String> =
            findings.list().iter().map(|f| format!("{}: {}", f.kind.word(), f.message)).collect();
        let must: Vec<Vec<String>> = serde_json::from_value(want["findings"].clone()).unwrap();
        assert_eq!(findings.list().len(), must.len(), "{name}: {said:#?}");
        for words in &must {
            // Two that are alike need two findings; one finding may not stand for both.
            let hits = findings.list().iter().filter(|f| told(f, words)).count();
            assert_eq!(hits, 1, "{name}: {words:?} in {said:#?}");
        }
        let absent: Vec<String> = serde_json::from_value(want["absent"].clone()).unwrap();
        for kind in absent {
            assert!(!findings.list().iter().any(|f| f.kind.word() == kind), "{name}: {kind}");
        }
    }
}

#[test]
fn forty_thousand_lines_and_nothing_to_say() {
    use std::fmt::Write;
    let mut text = String::from(
        "{\"t\": 1790000000.25, \"dir\": \"proc\", \"event\": \"start\", \"pid\": 101}\n",
    );
    for n in 0..20_000 {
        let t = 1_790_000_001.0 + f64::from(n);
        writeln!(text, r#"{{"t": {t}, "dir": "out", "msg": {{"jsonrpc": "2.0", "id": {n}, "method": "tools/call", "params": {{"name": "lookup_ticket", "arguments": {{"id": {n}}}}}}}}}"#).unwrap();
        writeln!(text, r#"{{"t": {t}, "dir": "in", "msg": {{"jsonrpc": "2.0", "id": {n}, "result": {{"content": [{{"type": "text", "text": "ticket {n}"}}], "isError": false}}}}}}"#).unwrap();
    }
    let audit = bytes_audited(text.as_bytes(), Options::default());
    assert_eq!((audit.calls, audit.findings().total()), (20_000, 0));
}
