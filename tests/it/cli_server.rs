//! `--server NAME`: what stands in `.mcp.json` is what is started or asked, and nothing secret in it is said.

use crate::support::cli::{EXE, Ran, command};
use crate::support::fake_http::{FakeHttp, ok};
use crate::support::shell::{ANSWER, script};
use redial::json::raw::quote;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A project folder with this `.mcp.json`, and a folder in it.
fn project(servers: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("src/deep")).unwrap();
    std::fs::write(dir.path().join(".mcp.json"), format!(r#"{{"mcpServers":{{{servers}}}}}"#))
        .unwrap();
    dir
}

/// Runs in that folder below, with a secret in the environment.
fn run(dir: &Path, args: &[&str]) -> Ran {
    let mut c = command(args);
    c.current_dir(dir.join("src/deep")).env("REDIAL_TEST_SECRET", "s3cret").env("REDIAL_EXE", EXE);
    let ran = Ran::from(c.output().unwrap());
    assert!(!ran.all().contains("s3cret"), "{}", ran.all());
    ran
}

#[test]
fn a_stdio_server_gets_its_arguments_environment_and_folder() {
    let start = r#"{ pwd; echo "$KEY|$1|$HOLE"; } >seen"#;
    let sh = quote(&script(start, ANSWER));
    let dir = project(&format!(
        r#""x":{{"command":"${{NO_SH:-sh}}","args":["-c",{sh},"sh","${{REDIAL_TEST_ARG:-a b}}"],"env":{{"KEY":"<${{REDIAL_TEST_SECRET}}>","HOLE":"${{REDIAL_TEST_HOLE}}"}}}}"#
    ));
    let ran = run(dir.path(), &["call", "t", "--server", "x", "--json"]);
    ran.expect(0, &["REDIAL_TEST_HOLE is not set: env.HOLE keeps the text"]);
    assert_eq!(ran.text(&["outcome"]), "ok", "the warning is not in the document: {}", ran.stdout);
    let seen = std::fs::read_to_string(dir.path().join("seen")).unwrap();
    let here = dir.path().canonicalize().unwrap();
    assert_eq!(seen, format!("{}\n<s3cret>|a b|${{REDIAL_TEST_HOLE}}\n", here.display()));
    run(dir.path(), &["tools", "--server", "x"]).expect(0, &["unprotected"]);
}

#[test]
fn an_http_server_gets_its_headers() {
    let got: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let fake = FakeHttp::any({
        let got = got.clone();
        move |method, request, stream, _| {
            got.lock().unwrap().push(request.headers.get("authorization").cloned());
            if method == "tools/call" {
                ok(request, stream, "made");
            }
            method == "tools/call"
        }
    });
    let url = fake.url().replace("127.0.0.1", "${REDIAL_TEST_HOST:-127.0.0.1}");
    let dir = project(&format!(
        r#""web":{{"type":"http","url":"{url}","headers":{{"Authorization":"Bearer ${{REDIAL_TEST_SECRET}}"}}}}"#
    ));
    let ran = run(dir.path(), &["call", "create_ticket", "--server", "web"]);
    ran.expect(0, &["made"]);
    let got = got.lock().unwrap();
    assert!(got.len() > 2 && got.iter().all(|h| h.as_deref() == Some("Bearer s3cret")), "{got:?}");
}

#[test]
fn its_timeout_is_the_calls_limit_and_the_flag_is_stronger() {
    let sh = quote(&script("", ":"));
    let dir = project(&format!(
        r#""slow":{{"command":"sh","args":["-c",{sh}],"timeout":1000,"era":"legacy"}}"#
    ));
    let why = |more: &[&str]| {
        let args = [&["call", "t", "--server", "slow", "--json"], more].concat();
        let ran = run(dir.path(), &args);
        assert_eq!((ran.exit, ran.text(&["sent"])), (4, "1".into()), "{}", ran.all());
        ran.text(&["why"])
    };
    assert!(why(&[]).contains("within 1 s"));
    assert!(why(&["--timeout", "0.2"]).contains("within 0.2 s"));
    // What is said of one server is stronger than what is configured for all.
    std::fs::write(dir.path().join("redial.toml"), "[server]\ncall_seconds = 30.0\n").unwrap();
    assert!(why(&[]).contains("within 1 s"));
}

#[test]
fn secrets_of_urls_and_variables_are_not_said() {
    let dir = project(
        r#""web":{"type":"http","url":"http://u:${REDIAL_TEST_SECRET}@127.0.0.1:1/mcp?key=${REDIAL_TEST_SECRET}"},"sh":{"command":"sh","args":["-c","exit 3","--token=${REDIAL_TEST_SECRET}"]}"#,
    );
    for (args, word) in [
        (&["--server", "web"][..], "127.0.0.1:1/mcp"),
        (&["--server", "sh"], "exit code 3"),
        (&["--http", "http://u:s3cret@127.0.0.1:1/mcp?key=s3cret"], "…@127.0.0.1:1/mcp?key=…"),
    ] {
        for base in [&["call", "t", "--json"][..], &["call", "t"], &["tools"], &["tools", "--json"]]
        {
            // That nothing secret is in what they say is looked at in `run`.
            run(dir.path(), &[base, args].concat()).expect(5, &[word]);
        }
    }
}

#[test]
fn what_is_wrong_with_the_file_is_said_before_anything_starts() {
    let dir = project(
        r#""tickets":{"command":"sh","args":["-c","touch ../../started"]},"old":{"type":"sse","url":"http://127.0.0.1:9/sse"},"bare":{"url":"http://127.0.0.1:9/mcp"},"hole":{"type":"http","url":"http://${REDIAL_TEST_HOLE}/mcp"}"#,
    );
    for (name, words) in [
        ("tiket", &["has no server \"tiket\"", ".mcp.json", "did you mean tickets?"][..]),
        ("old", &["sse", "does not speak"]),
        ("bare", &["a url and no type", "\"type\": \"http\""]),
        ("hole", &["the variable REDIAL_TEST_HOLE for its url"]),
    ] {
        // Wherever an endpoint can be named.
        for base in [
            &["tools"][..],
            &["call", "t"],
            &["find", "r-1"],
            &["reissue", "r-1", "--args", "{}"],
            &["batch"],
            &["attach"],
        ] {
            run(dir.path(), &[base, &["--server", name]].concat()).expect(2, words);
        }
    }
    let doc = run(dir.path(), &["tools", "--json", "--server", "tiket"]);
    assert_eq!(doc.doc()["error"]["exit_status"], 2);
    std::fs::write(dir.path().join(".mcp.json"), "{\"mcpServers\":{\n\"x\":}}").unwrap();
    run(dir.path(), &["tools", "--server", "x"]).expect(2, &["is not JSON", "line 2", ".mcp.json"]);
    std::fs::remove_file(dir.path().join(".mcp.json")).unwrap();
    run(dir.path(), &["tools", "--server", "x"]).expect(2, &["no .mcp.json in"]);
    run(dir.path(), &["tools", "--server", "x", "--http", "http://x/"])
        .expect(2, &["cannot be used"]);
    run(dir.path(), &["tools", "--server", "x", "--", "sh"]).expect(2, &["cannot be used"]);
    assert!(!dir.path().join("started").exists());
}
