//! `redial audit --fresh-sessions` against two real HTTP servers with sessions: one keeps its baskets in the session,
//! the other hands out handles.

use super::audit::Dir;
use crate::support::cli::redial;
use crate::support::fake_http::{FakeHttp, Request, result};
use redial::json::raw;
use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::Mutex;

const TOOLS: &str = r#"{"tools":[{"name":"create_basket","inputSchema":{"type":"object"}},{"name":"add_item","inputSchema":{"type":"object"}},{"name":"checkout","inputSchema":{"type":"object"}},{"name":"price","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;

fn said(request: &Request, out: &mut TcpStream, structured: &str) {
    let text = raw::quote(structured);
    result(
        request,
        out,
        &format!(
            r#"{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{structured}}}"#
        ),
    );
}

fn refused(request: &Request, out: &mut TcpStream, why: &str) {
    result(
        request,
        out,
        &format!(r#"{{"content":[{{"type":"text","text":"{why}"}}],"isError":true}}"#),
    );
}

/// Baskets by `key` of a request: its session, or the handle among its arguments.
fn shop(in_session: bool) -> FakeHttp {
    let baskets: Mutex<HashMap<String, u32>> = Mutex::default();
    let made = Mutex::new(0);
    FakeHttp::any(move |method, request, out, _| {
        match method {
            "tools/list" => result(request, out, TOOLS),
            "tools/call" => {
                let params = raw::get(&request.body, "params").unwrap();
                let tool = raw::get_str(params, "name").unwrap();
                let given =
                    raw::get_path(params, &["arguments", "basket_id"]).and_then(raw::as_str);
                let mut all = baskets.lock().unwrap();
                let session = request.headers.get("mcp-session-id").cloned().unwrap_or_default();
                let key = if in_session { session } else { given.unwrap_or_default() };
                match tool.as_str() {
                    "create_basket" if in_session => {
                        all.insert(key, 0);
                        said(request, out, r#"{"open":true}"#);
                    }
                    "create_basket" => {
                        let mut n = made.lock().unwrap();
                        *n += 1;
                        let id = format!("bsk-{n:04}");
                        all.insert(id.clone(), 0);
                        said(request, out, &format!(r#"{{"basket_id":"{id}"}}"#));
                    }
                    "price" => said(request, out, r#"{"price":42}"#),
                    _ => match all.get_mut(&key) {
                        None => refused(request, out, "no basket yet: create one first"),
                        Some(n) => {
                            *n += u32::from(tool == "add_item");
                            said(request, out, &format!(r#"{{"items":{n}}}"#));
                        }
                    },
                }
            }
            _ => return false,
        }
        true
    })
}

const CONFIRM: [&str; 6] =
    ["--confirm-tool", "create_basket", "--confirm-tool", "add_item", "--confirm-tool", "checkout"];

fn audit(trace: &str, server: &FakeHttp, more: &[&str]) -> crate::support::cli::Ran {
    let url = server.url();
    let base = ["audit", trace, "--fresh-sessions", "--http", &url];
    redial(&[&base[..], more].concat())
}

#[test]
fn tools_that_hide_state_in_the_session_are_named() {
    let dir = Dir::new();
    let trace = dir.file(
        "t.jsonl",
        r#"{"tool":"create_basket","arguments":{},"result":{"open":true}}
{"tool":"price","arguments":{"sku":"book-42"},"result":{"price":42}}
{"tool":"add_item","arguments":{"sku":"book-42"},"result":{"items":1}}
{"tool":"add_item","arguments":{"sku":"book-43"},"result":{"items":2}}
{"tool":"checkout","arguments":{},"result":{"items":2}}"#,
    );
    let server = shop(true);
    let r = audit(&trace, &server, &CONFIRM);
    r.expect(1, &["these tools hide state in the session: add_item, checkout", "no basket yet"]);
    // All on one session, and each on its own.
    assert_eq!((server.count("tools/call"), server.count("initialize")), (10, 6));
    let j = audit(&trace, &server, &[&CONFIRM[..], &["--json"]].concat());
    let doc = j.doc();
    assert_eq!(doc["session_tools"], serde_json::json!(["add_item", "checkout"]), "{}", j.stdout);
    let verdicts: Vec<&str> =
        doc["calls"].as_array().unwrap().iter().map(|c| c["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["independent", "independent", "fails", "fails", "fails"]);
    assert_eq!(doc["findings"][0]["kind"], "session_state");
    assert_eq!(doc["findings"][0]["call"], 3);
}

#[test]
fn a_server_that_passes_handles_has_nothing_to_hide() {
    let dir = Dir::new();
    let trace = dir.file(
        "t.jsonl",
        r#"{"tool":"create_basket","arguments":{},"result":{"basket_id":"b-781"}}
{"tool":"price","arguments":{"sku":"book-42"},"result":{"price":42}}
{"tool":"add_item","arguments":{"basket_id":"b-781","sku":"book-42"},"result":{"items":1}}
{"tool":"add_item","arguments":{"basket_id":"b-781","sku":"book-43"},"result":{"items":2}}
{"tool":"checkout","arguments":{"basket_id":"b-781"},"result":{"items":2}}"#,
    );
    let server = shop(false);
    let r = audit(&trace, &server, &[&CONFIRM[..], &["--json"]].concat());
    assert_eq!(r.exit, 0, "{}", r.all());
    let doc = r.doc();
    assert_eq!(
        (&doc["session_tools"], &doc["findings"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
    let all = doc["calls"].as_array().unwrap();
    assert!(all.iter().all(|c| c["verdict"] == "independent"), "{}", r.stdout);
    audit(&trace, &server, &CONFIRM)
        .expect(0, &["5 calls on sessions of their own: none of the tools hides state"]);
}

#[test]
fn the_gate_stands_before_each_call() {
    let dir = Dir::new();
    let trace =
        dir.file("t.jsonl", r#"{"tool":"create_basket","arguments":{},"result":{"open":true}}"#);
    let server = shop(true);
    let r = audit(&trace, &server, &[]);
    r.expect(3, &["--confirm-tool create_basket lets it pass", "nothing was judged"]);
    assert_eq!(server.count("tools/call"), 0);
    let r = audit(&trace, &server, &["--read-only", "--confirm-tool", "create_basket"]);
    assert_eq!((r.exit, server.count("tools/call")), (3, 0), "{}", r.all());
}
