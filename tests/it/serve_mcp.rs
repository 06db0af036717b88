//! The built-in servers as MCP servers: both eras, on stdio and on HTTP, and who may speak to them.

use crate::support::cli::program;
use crate::support::served::{BOTH, INITIALIZE, Reply, Served, Transport, http, request};
use redial::json::raw;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
const VERSION: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

fn charge(dir: &tempfile::TempDir, transport: Transport) -> Served {
    Served::start(transport, &["charge", "--effects", dir.path().join("c.jsonl").to_str().unwrap()])
}

fn code(answer: &str) -> i64 {
    raw::get_path(answer, &["error", "code"])
        .unwrap_or_else(|| panic!("no error: {answer}"))
        .parse()
        .unwrap()
}

fn result<'a>(answer: &'a str, key: &str) -> &'a str {
    raw::get_path(answer, &["result", key]).unwrap_or_else(|| panic!("no {key}: {answer}"))
}

#[test]
fn legacy_versions_are_echoed_and_any_other_answered_with_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let server = charge(&dir, Transport::Stdio);
    for (asked, got) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let answer = server.ask("initialize", &INITIALIZE.replace("2025-11-25", asked));
        assert_eq!(result(&answer, "protocolVersion"), format!("\"{got}\""));
        assert!(result(&answer, "serverInfo").contains(r#""name":"charge""#));
    }
}

#[test]
fn legacy_faults_have_their_codes() {
    let dir = tempfile::tempdir().unwrap();
    for transport in BOTH {
        let server = charge(&dir, transport);
        assert_eq!(raw::get(&server.ask("ping", "{}"), "result"), Some("{}"));
        for (method, params, want) in [
            ("nope", "{}", -32601),
            ("server/discover", "{}", -32602),
            ("tools/call", r#"{"name":"nope"}"#, -32602),
            ("tools/call", r#"{"name":5}"#, -32602),
            ("tools/call", r#"{"name":"charge","arguments":[]}"#, -32602),
            ("tools/list", r#"{"cursor":"x"}"#, -32602),
            ("tools/list", "[]", -32602),
        ] {
            assert_eq!(code(&server.ask(method, params)), want, "{method} {params}");
        }
        assert!(server.call("charge", "{}").contains("amount must be a number"));
    }
}

#[test]
fn stdio_answers_noise_with_errors_and_stays_up() {
    let dir = tempfile::tempdir().unwrap();
    let server = charge(&dir, Transport::Stdio);
    for noise in [
        "{",
        "",
        "[]",
        "42",
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":9,"result":{}}"#,
    ] {
        server.notify(noise);
    }
    server.ask("ping", "{}");
    let faults: Vec<i64> = server
        .stdout()
        .iter()
        .filter(|l| raw::get(l, "id") == Some("null"))
        .map(|l| code(l))
        .collect();
    assert_eq!(faults, [-32700, -32600, -32600, -32600]);
    assert!(server.stdout().iter().all(|l| raw::get_str(l, "jsonrpc").as_deref() == Some("2.0")));
}

/// A modern request over either transport, with the headers it must have.
fn modern(server: &Served, transport: Transport, method: &str, params: &str) -> (u16, String) {
    match transport {
        Transport::Stdio => (200, server.ask(method, params)),
        Transport::Http => {
            let name = raw::get_str(params, "name").unwrap_or_default();
            let mut headers = vec![VERSION, ("Mcp-Method", method)];
            if method == "tools/call" {
                headers.push(("Mcp-Name", &name));
            }
            let reply = server.post(&headers, &request(7, method, params));
            assert_eq!(reply.header("mcp-session-id"), None);
            (reply.status, reply.body)
        }
    }
}

#[test]
fn modern_requests_stand_alone() {
    let dir = tempfile::tempdir().unwrap();
    for transport in BOTH {
        let server = charge(&dir, transport);
        let meta = format!("{{{META}}}");
        let (status, discovered) = modern(&server, transport, "server/discover", &meta);
        assert_eq!((status, result(&discovered, "resultType")), (200, "\"complete\""));
        assert!(result(&discovered, "supportedVersions").starts_with(r#"["2026-07-28""#));
        assert!(result(&discovered, "capabilities").contains(r#""tools""#));
        let (_, listed) = modern(&server, transport, "tools/list", &meta);
        assert_eq!(raw::items(result(&listed, "tools")).unwrap().len(), 1);
        for answer in [&discovered, &listed] {
            assert!(result(answer, "ttlMs").parse::<u64>().is_ok());
            assert!(matches!(result(answer, "cacheScope"), "\"private\"" | "\"public\""));
        }
        let call = format!(r#"{{"name":"charge","arguments":{{"amount":2}},{META}}}"#);
        let (_, called) = modern(&server, transport, "tools/call", &call);
        assert!(called.contains("charged 2.0") && result(&called, "resultType") == "\"complete\"");
        for answer in [discovered, listed, called] {
            let info =
                raw::get(result(&answer, "_meta"), "io.modelcontextprotocol/serverInfo").unwrap();
            assert_eq!(raw::get_str(info, "name").as_deref(), Some("charge"));
        }

        let (status, gone) = modern(&server, transport, "ping", &meta);
        assert_eq!(
            (status, code(&gone)),
            (if transport == Transport::Http { 404 } else { 200 }, -32601)
        );
        let bare = meta.replace(r#","io.modelcontextprotocol/clientCapabilities":{}"#, "");
        assert_eq!(code(&modern(&server, transport, "tools/list", &bare).1), -32602);
    }
}

#[test]
fn an_unknown_version_is_answered_with_the_known_ones() {
    let dir = tempfile::tempdir().unwrap();
    let meta = format!("{{{META}}}").replace("2026-07-28", "2099-01-01");
    let check = |answer: &str| {
        assert_eq!(code(answer), -32022);
        let data = raw::get_path(answer, &["error", "data"]).unwrap();
        assert_eq!(raw::get(data, "requested"), Some("\"2099-01-01\""));
        assert_eq!(raw::items(raw::get(data, "supported").unwrap()).unwrap()[0], "\"2026-07-28\"");
    };
    check(&charge(&dir, Transport::Stdio).ask("tools/list", &meta));
    let server = charge(&dir, Transport::Http);
    let reply =
        server.post(&[("MCP-Protocol-Version", "2099-01-01")], &request(1, "tools/list", &meta));
    assert_eq!(reply.status, 400);
    check(&reply.body);
}

#[test]
fn modern_headers_must_mirror_the_body() {
    let dir = tempfile::tempdir().unwrap();
    let server = charge(&dir, Transport::Http);
    let call = request(
        1,
        "tools/call",
        &format!(r#"{{"name":"charge","arguments":{{"amount":1}},{META}}}"#),
    );
    let (method, name) = (("Mcp-Method", "tools/call"), ("Mcp-Name", "charge"));
    for headers in [
        &[][..],
        &[VERSION],
        &[VERSION, method],
        &[VERSION, ("Mcp-Method", "tools/list"), name],
        &[VERSION, method, ("Mcp-Name", "other")],
        &[VERSION, method, ("Mcp-Name", "=?base64?b3RoZXI=?=")],
        &[("MCP-Protocol-Version", "2025-11-25"), method, name],
    ] {
        let reply = server.post(headers, &call);
        assert_eq!((reply.status, code(&reply.body)), (400, -32020), "{headers:?}");
    }
    let undeclared =
        server.post(&[VERSION, ("Mcp-Method", "tools/list")], &request(1, "tools/list", "{}"));
    assert_eq!((undeclared.status, code(&undeclared.body)), (400, -32602));
    assert_eq!(
        std::fs::read_to_string(dir.path().join("c.jsonl")).unwrap(),
        "",
        "nothing was charged"
    );
    let encoded = server.post(&[VERSION, method, ("Mcp-Name", "=?base64?Y2hhcmdl?=")], &call);
    assert!(encoded.body.contains("charged 1.0"), "{encoded:?}");
}

#[test]
fn legacy_sessions_must_be_named_and_end() {
    let dir = tempfile::tempdir().unwrap();
    let server = charge(&dir, Transport::Http);
    let list = request(1, "tools/list", "{}");
    let session = ("Mcp-Session-Id", server.session());
    let told = |reply: Reply| (reply.status, code(&reply.body));
    assert_eq!(server.post(&[session], &list).status, 200);
    assert_eq!(server.post(&[session, ("MCP-Protocol-Version", "2025-06-18")], &list).status, 200);
    assert_eq!(
        told(server.post(&[session, ("MCP-Protocol-Version", "1999-01-01")], &list)),
        (400, -32000)
    );
    assert_eq!(told(server.post(&[], &list)), (400, -32000));
    assert_eq!(told(server.post(&[("Mcp-Session-Id", "nope")], &list)), (404, -32001));

    let verb = |verb: &str| {
        let request = format!(
            "{verb} /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nMcp-Session-Id: {}\r\n\r\n",
            server.session()
        );
        http(server.address(), &request).unwrap()
    };
    let got = verb("GET");
    assert_eq!((got.status, got.header("allow")), (405, Some("POST, DELETE")));
    assert_eq!(verb("DELETE").status, 200);
    assert_eq!(told(verb("DELETE")), (404, -32001));
    assert_eq!(told(server.post(&[session], &list)), (404, -32001));
    let opened = server.post(&[], &request(1, "initialize", INITIALIZE));
    assert_ne!(opened.header("mcp-session-id").unwrap(), server.session());
}

#[test]
fn only_loopback_peers_with_json_are_heard() {
    let dir = tempfile::tempdir().unwrap();
    let server = charge(&dir, Transport::Http);
    let ping = request(1, "ping", "{}");
    let session = ("Mcp-Session-Id", server.session());
    for (header, status) in [
        (("Origin", "http://localhost:3000"), 200),
        (("Host", "localhost"), 200),
        (("Host", "evil.example"), 403),
        (("Origin", "https://evil.example"), 403),
        (("Origin", "null"), 403),
        (("Content-Type", "text/plain"), 415),
        (("Accept", "text/html"), 406),
    ] {
        assert_eq!(server.post(&[session, header], &ping).status, status, "{header:?}");
    }
    assert_eq!(code(&server.post(&[session], "{").body), -32700);
    assert_eq!(code(&server.post(&[session], &format!("[{ping}]")).body), -32600);
    let declared = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        (16 << 20) + 1
    );
    assert_eq!(http(server.address(), &declared).unwrap().status, 413);
    assert_eq!(
        http(server.address(), "POST /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .unwrap()
            .status,
        404
    );
}

#[test]
fn the_open_network_is_refused() {
    for address in ["0.0.0.0:0", "192.0.2.1:0", "[::]:0", "example.com:80", "8000"] {
        let out = program()
            .args(["serve", "charge", "--http", address])
            .current_dir(tempfile::tempdir().unwrap().path())
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(2), "{address}");
        assert!(String::from_utf8(out.stderr).unwrap().contains("address"), "{address}");
    }
}
