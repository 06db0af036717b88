//! Children that are odder than most: other framings, ids of another type, pipes that outlive or die before their
//! process, crash loops, questions. Real processes; nothing here may hang, crash, or send what nobody asked for.

use crate::support::shell::{ANSWER, run, script, server};
use redial::client::{Client, Endpoint, Era, Root, Settings};
use redial::journal::{LinkState, Outcome};
use std::time::{Duration, Instant};

fn legacy() -> Settings {
    Settings { era: Era::Legacy, start_limit_s: 20.0, ..Settings::default() }
}

async fn ready(endpoint: Endpoint, settings: Settings) -> Client {
    let client = Client::start(endpoint, settings);
    client.ready().await.unwrap();
    client
}

async fn outcome(client: &Client, limit_s: f64) -> (Outcome, String) {
    let id = client.call("t", "{}", Some(limit_s)).await.unwrap();
    let s = client.settled(id).await.unwrap().settled.unwrap();
    (s.outcome, s.why)
}

async fn refused(endpoint: Endpoint) -> String {
    let started = Instant::now();
    let client = Client::start(endpoint, legacy());
    let error = client.ready().await.unwrap_err().what;
    assert!(started.elapsed() < Duration::from_secs(15), "said at once, not after the start limit");
    client.close().await;
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn other_framings_and_other_ids_are_named_at_once() {
    let lsp = r#"read -r line; printf 'Content-Length: 38\r\n\r\n{"jsonrpc":"2.0","id":1,"result":{}}'; read -r line"#;
    assert!(refused(run(lsp)).await.contains("Content-Length"));
    let pretty = r#"read -r line; printf '{\n  "jsonrpc": "2.0",\n  "id": 1,\n  "result": {}\n}\n'; read -r line"#;
    assert!(refused(run(pretty)).await.contains("over several lines"));
    let ids = r#"read -r line; printf '{"jsonrpc":"2.0","id":"1","result":{"protocolVersion":"2025-11-25"}}\n'; read -r line"#;
    assert!(refused(run(ids)).await.contains("ids of another type (\"1\" for 1)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_near_id_is_no_answer_and_is_named_when_the_limit_passes() {
    let near = r#"printf '{"jsonrpc":"2.0","id":"%s","result":{}}\n' "$id""#;
    let client = ready(server("", near), legacy()).await;
    let (outcome, why) = outcome(&client, 0.5).await;
    assert_eq!(outcome, Outcome::Unknown);
    assert!(why.contains("another id by JSON-RPC"), "{why}");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stdout_closed_by_a_living_process_ends_the_call_at_once() {
    let client = ready(server("", "exec >&-; sleep 60"), legacy()).await;
    let (outcome, why) = outcome(&client, 30.0).await;
    assert_eq!(outcome, Outcome::Unknown);
    assert!(why.contains("closed its stdout") && why.contains("still runs"), "{why}");
    let link =
        client.journal().wait(|s| s.link.clone().filter(|l| l.state == LinkState::Dead)).await;
    assert!(link.why.contains("closed its stdout"), "{}", link.why);
    let started = Instant::now();
    client.close().await;
    assert!(started.elapsed() < Duration::from_secs(6));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grandchild_that_holds_stdout_does_not_hide_the_death() {
    let client = ready(server("sleep 300 &", "exit 7"), legacy()).await;
    let started = Instant::now();
    let (outcome, why) = outcome(&client, 30.0).await;
    assert!(outcome == Outcome::Unknown && why.contains("exit code 7"), "{why}");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_into_a_pipe_that_nobody_reads_any_more_is_not_sent() {
    let client = ready(server("", &format!("{ANSWER}; exec <&-; sleep 60")), legacy()).await;
    assert_eq!(outcome(&client, 20.0).await.0, Outcome::Ok);
    // The server may need a moment to close its stdin; until it has, the pipe takes what is written.
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let (outcome, why) = outcome(&client, 0.2).await;
        match outcome {
            Outcome::NotSent => {
                assert!(why.contains("never sent: the server closed its stdin"), "{why}");
                break;
            }
            _ => assert!(Instant::now() < deadline, "{why}"),
        }
    }
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_stuck_in_a_full_pipe_is_named_and_never_sent_when_nothing_of_it_left() {
    // Reads nothing after the first call, and lives on.
    let client = ready(server("", &format!("{ANSWER}; sleep 300")), legacy()).await;
    assert_eq!(outcome(&client, 20.0).await.0, Outcome::Ok);
    let big = format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 20));
    let stuck = client.call("t", &big, Some(20.0)).await.unwrap();
    let behind = client.call("t", "{}", Some(20.0)).await.unwrap();
    let words = client.journal().wait(|s| {
        let call = s.calls.get(&stuck)?;
        let w = redial::journal::waiting(call, s, redial::time::Time::now()).to_string();
        w.contains("does not read its stdin").then_some(w)
    });
    tokio::time::timeout(Duration::from_secs(20), words).await.unwrap();
    let (outcome, why) = outcome(&client, 0.1).await;
    assert!(outcome == Outcome::NotSent && why.contains("read its stdin"), "{why}");
    client.close().await;
    let settled = async |id| client.settled(id).await.unwrap().settled.unwrap();
    // Of the first a part may have been read; of what stood behind it not a byte was.
    let first = settled(stuck).await;
    assert!(first.outcome == Outcome::Unknown, "{}", first.why);
    let second = settled(behind).await;
    assert!(
        second.outcome == Outcome::NotSent && second.why.contains("never sent"),
        "{}",
        second.why
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_over_the_limit_is_cut_and_the_next_one_counts() {
    // 65 MiB of one line that begins as the answer does, then a line of its own for the next call.
    let long = r#"n=$((n+1)); if [ $n = 1 ]; then printf '{"jsonrpc":"2.0","id":%s,"result":{"content":"' "$id"; head -c 68157440 /dev/zero | tr '\0' x; printf '"}}\n'; else"#;
    let client = ready(server("n=0", &format!("{long} {ANSWER}; fi")), legacy()).await;
    let (cut, why) = outcome(&client, 60.0).await;
    assert!(cut == Outcome::Unknown && why.contains("over redial's limit of 64 MiB"), "{why}");
    assert_eq!(outcome(&client, 20.0).await.0, Outcome::Ok);
    client.journal().read(|s| {
        let told = s.notes.iter().any(|(_, n)| n.contains("of it were not read"));
        assert!(told && s.generations.len() == 1, "{:?}", s.notes);
    });
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_over_the_limit_that_never_ends_is_told_while_it_still_comes() {
    let endless = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":"' "$id"; cat /dev/zero"#;
    let client = ready(server("", endless), legacy()).await;
    let (outcome, why) = outcome(&client, 300.0).await;
    assert!(outcome == Outcome::Unknown && why.contains("over redial's limit of 64 MiB"), "{why}");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_launcher_whose_server_is_elsewhere_is_not_the_server_s() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let docker = dir.path().join("docker");
    std::fs::write(&docker, format!("#!/bin/sh\n{}", script("", "exit 7"))).unwrap();
    std::fs::set_permissions(&docker, std::fs::Permissions::from_mode(0o755)).unwrap();
    let command = vec![docker.display().to_string(), "run".into(), "-i".into(), "x".into()];
    let client = ready(Endpoint::Stdio { command, env: vec![], cwd: None }, legacy()).await;
    let (outcome, why) = outcome(&client, 20.0).await;
    assert_eq!(outcome, Outcome::Unknown);
    assert!(
        why.contains("exit code 7") && why.contains("may still run, here or elsewhere"),
        "{why}"
    );
    assert_eq!(client.journal().read(|s| s.generations[0].ended.unwrap().gone_at), None);
    client.close().await;
}

/// A worker of its own session, with nothing of the server's open, as job runners start them.
#[cfg(target_os = "linux")]
const DETACHED: &str = "setsid sleep 300 </dev/null >/dev/null 2>&1 &";

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_detached_worker_is_named_and_its_end_is_told() {
    use redial::procs::Left;
    let client = ready(server(DETACHED, "kill -9 $$"), legacy()).await;
    let (outcome, why) = outcome(&client, 20.0).await;
    assert_eq!(outcome, Outcome::Unknown);
    assert!(why.contains("\"sleep\") goes on"), "{why}");
    let (gone, left) = client.journal().read(|s| {
        let g = &s.generations[0];
        (g.ended.unwrap().gone_at, g.left.clone())
    });
    let Left::These(all) = left else { panic!("{left:?}") };
    assert_eq!((gone, all.len()), (None, 1), "{all:?}");
    std::process::Command::new("kill").args(["-9", &all[0].pid.to_string()]).status().unwrap();
    client.journal().wait(|s| s.generations[0].ended.and_then(|e| e.gone_at)).await;
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_its_newline_still_counts() {
    let last = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}' "$id"; exit 0"#;
    let client = ready(server("", last), legacy()).await;
    assert_eq!(outcome(&client, 20.0).await.0, Outcome::Ok);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_answers_and_strays_cost_nothing_but_themselves() {
    let odd = r#"printf '[]\n{"jsonrpc":"2.0","id":99,"result":{}}\n{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}\n{"jsonrpc":"2.0","id":%s,"result":{},"error":{}}\n{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$id" "$id""#;
    let client = ready(server("", odd), legacy()).await;
    let id = client.call("t", "{}", Some(20.0)).await.unwrap();
    // Malformed first, then proper: the proper one counts, marked late.
    let late = client.journal().wait(|s| s.calls[&id].settled.clone().filter(|s| s.late)).await;
    assert_eq!(late.outcome, Outcome::Ok, "{}", late.why);
    assert_eq!(client.journal().read(|s| s.strays), 2);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_that_spoils_a_process_ends_in_a_fresh_one_with_initialize_first() {
    // After a `server/discover` this one refuses everything, as some servers do.
    let script = script(
        r#"IFS= read -r first; case "$first" in *discover*)
  while IFS= read -r line; do id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"not initialized"}}\n' "$id"; done ;; esac
printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}\n' \
  "$(printf '%s' "$first" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')""#,
        ANSWER,
    );
    // The probe itself is never answered by that script, so a short limit for it.
    let settings = Settings { probe_limit_s: 0.3, start_limit_s: 20.0, ..Settings::default() };
    let client = ready(run(&script), settings).await;
    assert_eq!(outcome(&client, 20.0).await.0, Outcome::Ok);
    client.journal().read(|s| {
        assert_eq!((s.generations.len(), s.protocol.as_deref()), (2, Some("2025-06-18")));
        assert!(s.notes.iter().any(|(_, n)| n.contains("after the probe")), "{:?}", s.notes);
    });
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_loop_is_bounded_and_backs_off() {
    let dir = tempfile::tempdir().unwrap();
    let starts = dir.path().join("starts");
    let endpoint = run(&format!("echo x >> {}; exit 3", starts.display()));
    let client = Client::start(endpoint, Settings { respawn: true, ..legacy() });
    let attempt = client.journal().wait(|s| match s.link.as_ref()?.state {
        LinkState::Waiting { attempt, .. } if attempt >= 2 => Some(attempt),
        _ => None,
    });
    tokio::time::timeout(Duration::from_secs(20), attempt).await.unwrap();
    let n = std::fs::read_to_string(&starts).unwrap().lines().count();
    assert_eq!(n, 2, "one start for each try, and a wait between them");
    let link = client.journal().read(|s| s.link.clone()).unwrap();
    assert!(link.why.contains("exit code 3"), "{}", link.why);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn roots_are_told_when_configured_and_only_then() {
    let asks = r#"printf '{"jsonrpc":"2.0","id":"r","method":"roots/list"}\n'; IFS= read -r answer
  text=$(printf '%s' "$answer" | sed 's/["\\]/_/g'); printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$id" "$text""#;
    let root = Root { uri: "file:///srv".into(), name: Some("srv".into()) };
    for (roots, word) in [(vec![root], "_uri_:_file:///srv_"), (vec![], "-32601")] {
        let client = ready(server("", asks), Settings { roots, ..legacy() }).await;
        let id = client.call("t", "{}", Some(20.0)).await.unwrap();
        let result = client.settled(id).await.unwrap().settled.unwrap().result.unwrap();
        assert!(result.contains(word), "{result}");
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_start_shows_its_newest_stderr_line_and_one_handshake() {
    let endpoint = server("echo downloading 40 MB >&2; sleep 1", ANSWER);
    let client = ready(endpoint, legacy()).await;
    let sent = client.journal().events_from(0).0;
    let initializes = sent.iter().filter(|e| format!("{:?}", e.kind).contains("Sent { raw: b\"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\\\"method\\\":\\\"initialize"));
    assert_eq!(initializes.count(), 1);
    client.close().await;
    let slow = run("echo still downloading >&2; sleep 60");
    let client = Client::start(slow, Settings { start_limit_s: 0.5, ..legacy() });
    let error = client.ready().await.unwrap_err();
    assert!(
        error.what.contains("no handshake within 0.5 s; its newest stderr line: still downloading"),
        "{error}"
    );
    client.close().await;
}
