//! Text of others reaches neither terminal nor pipe as something that acts: control characters, C1 in both forms,
//! bidi and zero-width characters, from the server, its stderr, the ledger, files and names; plain, JSON, coloured.

use crate::support::cli::{
    EXE, FakeStdio, Ran, assert_harmless, both, command, make_ledger, result, tool,
};
use crate::support::pty::Pty;
use redial::json::raw;
use std::path::Path;
use std::process::Output;

/// Title, OSC 52, clear, C1 CSI, bidi, zero width, DEL, NEL, line separator, tags.
const NASTY: &str = "\u{1b}]0;t\u{7}\u{1b}]52;c;cHduZWQ=\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{200b}\u{2066}\u{7f}\u{85}\u{2028}\u{e0041}\u{feff}\r\n\u{8}x";

/// The same, short enough for a request_id.
const ID: &str = "r\u{1b}[31m\u{202e}\u{9b}\u{200b}'\"\\\n-1";

fn quoted() -> String {
    raw::quote(NASTY)
}

fn fake() -> FakeStdio {
    let f = FakeStdio::new();
    let q = quoted();
    f.file(
        "initialize",
        &result(&format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":{q},"version":{q}}},"instructions":{q}}}"#
        )),
    );
    let tools = [
        tool("create_ticket", &format!(r#"{q}:{q},"title":{q}"#)),
        tool(NASTY, r#""idempotentHint":"yes""#),
        format!(r#"{{"name":{q},"description":{q}}}"#),
        format!(r#"{{"nope":{q}}}"#),
        tool("find_request", r#""readOnlyHint":true"#),
    ];
    f.tools(&format!("[{}]", tools.join(",")));
    f.file("noise", NASTY).file("stderr", NASTY);
    // C1 as a bare byte, which is no UTF-8.
    let mut bytes = NASTY.as_bytes().to_vec();
    bytes.extend(b"\x9b31m \xff\n");
    std::fs::write(f.path("stderr"), &bytes).unwrap();
    std::fs::write(f.path("noise"), &bytes).unwrap();
    f.answers("look", &format!(r#"{{"request_id":{},"status":{q},"result":{q}}}"#, raw::quote(ID)));
    f
}

fn ledger(dir: &Path) -> String {
    // The file's own name is foreign, too.
    let path = dir.join("led\u{1b}[2J\u{202e}ger.db");
    let sql = |text: &str| text.replace('\'', "''");
    make_ledger(
        &path,
        &format!(
            "INSERT INTO requests VALUES ('{id}', '{n}', 'done', '{json}', '{n}', 1795963550.0),
               ('other', '{n}', '{n}', '{n}', '{n}', 1795963551.0), ('third', 'h', 'running', NULL, '{n}', 1e18);
             INSERT INTO tickets VALUES ('{n}', '{id}', '{n}', '{n}');",
            id = sql(ID),
            n = sql(NASTY),
            json = sql(&format!(r#"{{"title":{}}}"#, quoted())),
        ),
    );
    path.to_str().unwrap().to_owned()
}

#[test]
#[should_panic(expected = "u{9b}")]
fn the_check_itself_sees_them() {
    assert_harmless("itself", "fine \u{9b}31m".as_bytes());
}

fn harmless(args: &[&str], exits: &[i32]) -> Ran {
    let out: Output = command(args).output().unwrap();
    let what = format!("{args:?}");
    assert_harmless(&what, &out.stdout);
    assert_harmless(&what, &out.stderr);
    let ran = Ran::from(out);
    assert!(exits.contains(&ran.exit), "{what}: {} {}", ran.exit, ran.all());
    if args.contains(&"--json") {
        ran.doc();
    }
    ran
}

#[test]
fn a_hostile_ledger() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = ledger(dir.path());
    for json in [&[][..], &["--json"]] {
        harmless(&both(&["rows", "--ledger", &ledger], json), &[0]);
        harmless(&both(&["rows", "--ledger", &ledger, "--state", NASTY], json), &[0]);
        harmless(&both(&["find", ID, "--ledger", &ledger], json), &[0]);
        harmless(
            &both(&["verify", "--ledger", &ledger, "--expect", &format!("{NASTY}=7")], json),
            &[1],
        );
        harmless(&both(&["find", "third", "--ledger", &ledger], json), &[0]);
        let gone = format!("{ledger}{NASTY}");
        harmless(&both(&["rows", "--ledger", &gone], json), &[6]);
    }
    let found = harmless(&["find", ID, "--ledger", &ledger, "--json"], &[0]).doc();
    assert_eq!(found["request_id"], ID, "escaped, not changed");
    assert_eq!(
        (&found["ledger"]["owner"], &found["ledger"]["result"]["title"]),
        (&NASTY.into(), &NASTY.into())
    );

    let foreign = dir.path().join("foreign.db");
    let name = NASTY.replace('"', "");
    rusqlite::Connection::open(&foreign)
        .unwrap()
        .execute_batch(&format!("CREATE TABLE \"{name}\"(\"{name}\" TEXT)"))
        .unwrap();
    for json in [&[][..], &["--json"]] {
        harmless(&both(&["rows", "--ledger", foreign.to_str().unwrap()], json), &[6]);
    }
}

#[test]
fn a_hostile_server() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = ledger(dir.path());
    let f = fake();
    let server = f.command();
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let args = format!(r#"{{"request_id":{},"title":{}}}"#, raw::quote(ID), quoted());
    let q = quoted();
    let error =
        format!(r#"{{"jsonrpc":"2.0","id":@ID@,"error":{{"code":-1,"message":{q},"data":{q}}}}}"#);
    let text = |is_error: &str| {
        result(&format!(r#"{{"content":[{{"type":"text","text":{q}}}]{is_error}}}"#))
    };
    for json in [&[][..], &["--json"]] {
        let run = |base: &[&str], exits: &[i32]| harmless(&both(&both(base, json), &server), exits);
        run(&["tools"], &[0]);
        run(&["find", ID, "--ledger", &ledger], &[0, 1]);
        run(&["find", ID], &[0, 1]);
        for (said, exit) in [(text(""), 0), (text(r#","isError":true"#), 1), (error.clone(), 1)] {
            f.file("call", &said);
            run(&["call", "create_ticket", "--args", &args], &[exit]);
            run(&["call", NASTY, "--args", "{}"], &[exit]);
            run(
                &[
                    "reissue",
                    ID,
                    "--args",
                    &args,
                    "--ledger",
                    &ledger,
                    "--confirm",
                    ID,
                    "--tool",
                    "create_ticket",
                ],
                &[exit, 3],
            );
        }
        run(&["reissue", ID, "--args", &args, "--tool", "create_ticket"], &[3]);
        run(&["reissue", ID, "--args", &args], &[2]);
        run(&["call", &format!("{NASTY}x")], &[2]);
        run(&["call", "create_ticket", "--args", NASTY], &[2]);
        f.file("die", NASTY);
        run(&["call", "create_ticket", "--args", &args], &[4]);
        std::fs::remove_file(f.path("die")).unwrap();
        // It dies at once, with its last words.
        let script = format!(
            "printf '%s\\n' '{}' >&2; printf '%s\\n' '{}'; exit 3",
            NASTY.replace('\'', ""),
            NASTY.replace('\'', "")
        );
        harmless(&both(&both(&["tools"], json), &["--", "sh", "-c", &script]), &[5]);
        harmless(&both(&both(&["tools"], json), &["--", NASTY]), &[5]);
    }
}

#[test]
fn hostile_words_on_our_own_command_line() {
    for args in [
        &[NASTY][..],
        &["rows", NASTY],
        &["rows", "--stale-seconds", NASTY],
        &["tools", "--era", NASTY],
        &["tools", "--http", NASTY],
    ] {
        harmless(args, &[2]);
    }
    harmless(&["reissue", ID, "--args-file", NASTY, "--", "true"], &[2]);
    harmless(&["reissue", ID, "--args-from", NASTY, "--", "true"], &[2]);
}

/// Removes what `plain` itself writes: colours.
fn without_colours(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("\u{1b}[") {
        let tail = &rest[at + 2..];
        let end = tail.find(|c: char| !(c.is_ascii_digit() || c == ';')).unwrap();
        assert!(tail[end..].starts_with('m'), "only colours: {:?}", &tail[..20.min(tail.len())]);
        out.push_str(&rest[..at]);
        rest = &tail[end + 1..];
    }
    out + rest
}

#[test]
fn at_a_terminal_only_colours_are_ours() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = ledger(dir.path());
    let f = fake();
    let server = f.command();
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let args = format!(r#"{{"request_id":{}}}"#, raw::quote(ID));
    for base in [
        &["rows", "--ledger", &ledger][..],
        &["find", ID, "--ledger", &ledger],
        &both(&["tools"], &server),
        &both(
            &["reissue", ID, "--args", &args, "--ledger", &ledger, "--tool", "create_ticket"],
            &server,
        ),
    ] {
        let mut pty = Pty::start(Path::new(EXE), base, &[], (80, 200));
        if base[0] == "reissue" {
            pty.wait_for("to send it (anything else: no)");
            pty.answer("\r");
        }
        pty.ended();
        pty.drained();
        let text = without_colours(&pty.bytes()).replace("\r\n", "\n");
        assert_harmless(&format!("{base:?}"), text.as_bytes());
        assert!(text.contains("^["), "it is shown, not swallowed");
    }
}
