//! A child's odd ways, by real processes: noise, death, silence, a stubborn end. The shell plays the server.

use crate::support::shell::{ANSWER, script, server as shell};
use redial::client::{Client, Endpoint, Era, Settings};
use redial::journal::{LinkState, Outcome};
use redial::judge::Observed;
use std::time::{Duration, Instant};

async fn ready(endpoint: Endpoint) -> Client {
    let client = Client::start(endpoint, Settings::default());
    client.ready().await.unwrap();
    client
}

async fn outcome(client: &Client) -> (Outcome, String) {
    let id = client.call("t", "{}", Some(20.0)).await.unwrap();
    let s = client.settled(id).await.unwrap().settled.unwrap();
    (s.outcome, s.why)
}

#[tokio::test(flavor = "multi_thread")]
async fn noise_is_kept_and_hurts_nothing() {
    let start =
        r#"printf '\357\273\277Server mode: STDIO\n\n42\n{"level":"info"}\n\227bad byte\n'"#;
    let client = ready(shell(start, ANSWER)).await;
    assert_eq!(outcome(&client).await.0, Outcome::Ok);
    let noise = client.journal().read(|s| s.generations[0].noise.last(10));
    assert_eq!(noise, ["Server mode: STDIO", "42", r#"{"level":"info"}"#, "\u{fffd}bad byte"]);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exit_code_and_a_signal_are_told_apart() {
    for (act, words) in [("exit 137", "exit code 137"), ("kill -9 $$", "signal 9 (SIGKILL)")] {
        let client = ready(shell("", &format!("echo last words >&2; {act}"))).await;
        let (outcome, why) = outcome(&client).await;
        assert_eq!(outcome, Outcome::Unknown);
        assert!(why.contains(words), "{why}");
        let link =
            client.journal().wait(|s| s.link.clone().filter(|l| l.state == LinkState::Dead)).await;
        assert!(link.why.contains(words), "{}", link.why);
        client.journal().read(|s| {
            assert_eq!(s.generations[0].stderr.last(5), ["last words"]);
            assert_eq!(s.generations.len(), 1, "not started again unless asked");
        });
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_launcher_is_not_its_server_until_what_it_started_is_gone() {
    // The launcher dies at the call; the server behind it goes on, and answers once the flag is there.
    let dir = tempfile::tempdir().unwrap();
    let flag = dir.path().join("go");
    let work =
        format!("kill -9 $PPID; until [ -e {} ]; do sleep 0.05; done; {ANSWER}", flag.display());
    // The server is a shell of its own, so that `$PPID` is the launcher.
    let launch = r#"exec 3<&0; /bin/sh -c "$0" <&3 & wait"#;
    let command = ["/bin/sh", "-c", launch, &script("", &work)].map(String::from).to_vec();
    let client = ready(Endpoint::Stdio { command, env: vec![], cwd: None }).await;
    let id = client.call("t", "{}", Some(20.0)).await.unwrap();
    let first = client.settled(id).await.unwrap().settled.unwrap();
    assert_eq!(first.outcome, Outcome::Unknown);
    assert!(first.why.contains("signal 9 (SIGKILL)"), "{}", first.why);
    assert!(first.why.contains(" it started (pid "), "{}", first.why);
    let link =
        client.journal().wait(|s| s.link.clone().filter(|l| l.state == LinkState::Dead)).await;
    assert!(link.why.contains(" it started (pid "), "{}", link.why);
    client.journal().read(|s| {
        let g = &s.generations[0];
        assert!(g.ended.is_some() && Observed::of(g).is_none(), "{:?}", g.ended);
    });
    // Its answer still counts, and nobody has killed it for the launcher's death.
    std::fs::write(&flag, "").unwrap();
    let late = client
        .journal()
        .wait(|s| s.calls[&id].settled.clone().filter(|s| s.outcome == Outcome::Ok))
        .await;
    assert!(late.late);
    // Asked for a new process, redial ends what is left of the old one; only then is its end certain.
    client.reconnect();
    let gone = client.journal().wait(|s| Observed::of(&s.generations[0])).await;
    assert!(client.journal().read(|s| s.generations[0].ended.unwrap().at < gone.at));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_the_pipe_of_a_dead_process_still_counts() {
    let client = ready(shell("", &format!("{ANSWER}; exit 3"))).await;
    assert_eq!(outcome(&client).await.0, Outcome::Ok);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_on_a_dead_process_never_leaves_and_a_new_one_takes_it_when_asked() {
    let client = ready(shell("", &format!("{ANSWER}; exit 0"))).await;
    assert_eq!(outcome(&client).await.0, Outcome::Ok);
    client.journal().wait(|s| s.link.clone().filter(|l| l.state == LinkState::Dead)).await;
    let (dead, why) = outcome(&client).await;
    assert_eq!(dead, Outcome::NotSent, "{why}");
    client.reconnect();
    client.journal().wait(|s| (s.is_ready() && s.generations.len() == 2).then_some(())).await;
    assert_eq!(outcome(&client).await.0, Outcome::Ok);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_dies_at_once_is_told_with_its_last_words() {
    // Many at once, so that some die between the look at them and the first request.
    let starts = (0..24).map(|_| async {
        let command = ["/bin/sh", "-c", "echo no key >&2; exit 78"].map(String::from).to_vec();
        let endpoint = Endpoint::Stdio { command, env: vec![], cwd: None };
        let client = Client::start(endpoint, Settings::default());
        let error = client.ready().await.unwrap_err();
        assert!(error.what.contains("exit code 78"), "{error}");
        client.journal().read(|s| assert_eq!(s.generation().unwrap().stderr.last(5), ["no key"]));
    });
    let all: Vec<_> = starts.map(tokio::spawn).collect();
    let started = Instant::now();
    for one in all {
        one.await.unwrap();
    }
    // Far under the start limit of 30 s, which a request that nobody answers would wait for.
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_at_the_probe_gets_a_fresh_process_with_initialize_first() {
    let start = r#"if [ -e "$FLAG" ]; then :; else : > "$FLAG"; read -r line; case "$line" in *discover*) exit 1;; esac; fi"#;
    let dir = tempfile::tempdir().unwrap();
    let Endpoint::Stdio { command, cwd, .. } = shell(start, ANSWER) else { unreachable!() };
    let flag = dir.path().join("probed").to_str().unwrap().to_owned();
    let client = ready(Endpoint::Stdio { command, env: vec![("FLAG".into(), flag)], cwd }).await;
    assert_eq!(outcome(&client).await.0, Outcome::Ok);
    assert_eq!(client.journal().read(|s| s.generations.len()), 2);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_probe_falls_back_and_a_missing_command_is_named() {
    let Endpoint::Stdio { command, env, cwd } = shell("read -r ignored", ANSWER) else {
        unreachable!()
    };
    let settings = Settings { probe_limit_s: 0.2, ..Settings::default() };
    let client = Client::start(Endpoint::Stdio { command, env, cwd }, settings);
    client.ready().await.unwrap();
    assert_eq!(client.journal().read(|s| s.protocol.clone()).as_deref(), Some("2025-11-25"));
    client.close().await;
    let gone =
        Endpoint::Stdio { command: vec!["no-such-program-here".into()], env: vec![], cwd: None };
    let error = Client::start(gone, Settings::default()).ready().await.unwrap_err();
    assert!(
        error.what.contains("no such command") && error.hint.is_some_and(|h| h.contains("PATH="))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stubborn_child_and_its_grandchild_are_ended_within_bounds() {
    let start = r#"trap '' TERM; sleep 300 & echo $! >&2"#;
    let on_eof = shell(start, ANSWER);
    let Endpoint::Stdio { mut command, env, cwd } = on_eof else { unreachable!() };
    command[2].push_str("\nwhile :; do sleep 1; done");
    let settings = Settings { era: Era::Legacy, ..Settings::default() };
    let client = Client::start(Endpoint::Stdio { command, env, cwd }, settings);
    client.ready().await.unwrap();
    let grandchild = client.journal().wait(|s| s.generation()?.stderr.last(1).pop()).await;
    let started = Instant::now();
    client.close().await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    // A killed process may stay a zombie until init reaps it: its state says so.
    crate::support::until("the grandchild is gone", || {
        let stat = std::fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http_server_started_as_stdio_is_named_with_its_address() {
    let script =
        "echo 'Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)' >&2; sleep 60";
    let command = ["/bin/sh", "-c", script].map(String::from).to_vec();
    let settings = Settings { probe_limit_s: 0.2, start_limit_s: 1.0, ..Settings::default() };
    let client = Client::start(Endpoint::Stdio { command, env: vec![], cwd: None }, settings);
    let error = client.ready().await.unwrap_err();
    assert!(error.what.contains("--http http://127.0.0.1:8000/mcp"), "{error}");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_noise_holds_up_no_limit() {
    let command = vec!["yes".to_owned()];
    let settings = Settings { start_limit_s: 1.0, ..Settings::default() };
    let client = Client::start(Endpoint::Stdio { command, env: vec![], cwd: None }, settings);
    let started = Instant::now();
    let error = client.ready().await.unwrap_err();
    assert!(error.what.contains("within 1 s"), "{error}");
    client.close().await;
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn a_server_that_the_kernel_has_stopped_is_told_as_that_at_once() {
    // In a call: it stops itself, and answers once it may go on.
    let client = ready(shell("", &format!("kill -STOP $$; {ANSWER}"))).await;
    let id = client.call("t", "{}", Some(60.0)).await.unwrap();
    let start = Instant::now();
    let who = client.journal().wait(|s| s.generation()?.stopped.clone()).await;
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    let words = client.journal().read(|s| {
        redial::journal::waiting(&s.calls[&id], s, redial::time::Time::now()).to_string()
    });
    let says = format!("the server is stopped: pid {}", who.pid);
    assert!(words.starts_with(&says), "{words}");
    let pid = rustix::process::Pid::from_raw(i32::try_from(who.pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    let settled = client.settled(id).await.unwrap().settled.unwrap();
    assert_eq!(settled.outcome, Outcome::Ok);
    client.journal().wait(|s| s.generation()?.stopped.is_none().then_some(())).await;
    client.close().await;
    // Before it is ready, and in the words of the limit.
    let settings = Settings { start_limit_s: 2.0, ..Settings::default() };
    let client = Client::start(shell("kill -STOP $$", ANSWER), settings);
    let why = client.ready().await.unwrap_err().to_string();
    assert!(why.contains("the server is stopped: pid "), "{why}");
    client.close().await;
}
