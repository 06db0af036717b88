//! The tap on stdio with real processes: bytes, ends, signals, kills, disks.

use crate::support::cli::program;
use crate::support::until;
use redial::journal::Outcome;
use redial::record::entry::{Entry, Line, Side, What, decode};
use redial::recording::Recording;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// `redial record --out FILE -- COMMAND…` with pipes.
fn tap(out: &Path, more: &[&str], command: &[&str]) -> Child {
    tap_with(out, more, command, |_| {})
}

fn tap_with(
    out: &Path,
    more: &[&str],
    command: &[&str],
    change: impl FnOnce(&mut Command),
) -> Child {
    let mut c = program();
    c.arg("record").arg("--out").arg(out).args(more).arg("--").args(command);
    // Nothing of the machine's own state is touched.
    c.env("XDG_STATE_HOME", out.parent().unwrap().join("state"));
    c.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    change(&mut c);
    c.spawn().unwrap()
}

fn wait(child: &mut Child) -> ExitStatus {
    until("the tap ends", || child.try_wait().unwrap())
}

fn entries(path: &Path) -> Vec<Entry> {
    let text = std::fs::read(path).unwrap();
    text.split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .filter_map(|l| match decode(l) {
            Line::Entry(e) => Some(e),
            Line::Header(_) => None,
            other => panic!("{other:?}: {}", String::from_utf8_lossy(l)),
        })
        .collect()
}

/// The bytes of a direction, put together from the recording.
fn stream(entries: &[Entry], side: Side) -> Vec<u8> {
    let mut out = Vec::new();
    for e in
        entries.iter().filter(|e| e.side() == Some(side) && !matches!(e.what, What::Part { .. }))
    {
        if e.wire.bom {
            out.extend_from_slice(b"\xef\xbb\xbf");
        }
        out.extend_from_slice(e.raw().unwrap());
        out.extend_from_slice(e.wire.end.bytes());
    }
    out
}

fn pids_of(entries: &[Entry]) -> Option<u32> {
    entries.iter().find_map(|e| match &e.what {
        What::Event(redial::journal::Kind::Opened {
            transport: redial::journal::event::Transport::Stdio { pid, .. },
        }) => *pid,
        _ => None,
    })
}

fn send(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|s| !s.trim_start().starts_with(['Z', 'X']) && !s.is_empty())
}

/// Bytes that look like nothing in particular, the same each time.
fn noise(len: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    (0..len)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 24) as u8
        })
        .collect()
}

#[test]
fn every_byte_passes_and_every_byte_is_in_the_recording() {
    let dir = tempfile::tempdir().unwrap();
    let mut data =
        b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n\n \n".to_vec();
    data.extend(noise(300_000));
    data.extend_from_slice("\n日本語\u{1b}[2J\nno end".as_bytes());
    for size in [1 << 20, 4096, 997] {
        let out = dir.path().join(format!("{size}.jsonl"));
        // tee: what comes in goes to stdout and, by another way, to stderr.
        let mut tap = tap(&out, &[], &["tee", "/dev/stderr"]);
        let (mut stdin, mut stdout, mut stderr) =
            (tap.stdin.take().unwrap(), tap.stdout.take().unwrap(), tap.stderr.take().unwrap());
        let theirs = data.clone();
        let writer = std::thread::spawn(move || {
            for chunk in theirs.chunks(size) {
                stdin.write_all(chunk).unwrap();
            }
        });
        let errors = std::thread::spawn(move || {
            let mut all = Vec::new();
            stderr.read_to_end(&mut all).unwrap();
            all
        });
        let mut got = Vec::new();
        stdout.read_to_end(&mut got).unwrap();
        writer.join().unwrap();
        let said = errors.join().unwrap();
        assert_eq!(wait(&mut tap).code(), Some(0));
        assert!(
            got == data && said == data,
            "{} {} of {} passed",
            got.len(),
            said.len(),
            data.len()
        );
        let all = entries(&out);
        for side in [Side::Sent, Side::Received, Side::Stderr] {
            assert!(stream(&all, side) == data, "{side:?} at {size}");
        }
        let seqs: Vec<u64> = all.iter().map(|e| e.seq).collect();
        assert!(seqs.windows(2).all(|w| w[1] == w[0] + 1), "no event is lost");
        let mode = std::fs::metadata(&out).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn the_exit_status_is_the_servers() {
    let dir = tempfile::tempdir().unwrap();
    for (script, code, signal, ours) in [
        ("exit 0", Some(0), None, 0),
        ("exit 42", Some(42), None, 42),
        ("kill -9 $$", None, Some(9), 137),
        ("kill -TERM $$", None, Some(15), 143),
    ] {
        let out = dir.path().join("exit.jsonl");
        std::fs::remove_file(&out).ok();
        let mut tap = tap(&out, &[], &["sh", "-c", script]);
        assert_eq!(wait(&mut tap).code(), Some(ours), "{script}");
        let r = Recording::open(&out).unwrap();
        let ended = r.session.generation().unwrap().ended.unwrap();
        assert_eq!((ended.code, ended.signal), (code, signal));
    }
    let mut none = tap(&dir.path().join("none.jsonl"), &[], &["/no/such/server"]);
    assert_eq!(wait(&mut none).code(), Some(5));
    let mut nowhere = tap(Path::new("/no/such/folder/x.jsonl"), &[], &["true"]);
    assert_eq!(wait(&mut nowhere).code(), Some(2));
}

#[test]
fn eof_and_signals_are_passed_on() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("eof.jsonl");
    let mut tap1 = tap(&out, &[], &["sh", "-c", "cat >/dev/null; echo bye; exit 3"]);
    drop(tap1.stdin.take());
    assert_eq!(wait(&mut tap1).code(), Some(3));
    assert!(entries(&out).iter().any(|e| e.what == What::StdinClosed));
    for (signal, word) in [
        ("-INT", "int"),
        ("-TERM", "term"),
        ("-HUP", "hup"),
        ("-USR1", "usr1"),
        ("-ALRM", "alrm"),
        ("-ABRT", "abrt"),
    ] {
        let out = dir.path().join(format!("{word}.jsonl"));
        let script = "for s in INT TERM HUP USR1 ALRM ABRT; do trap \"echo got $s; exit 9\" $s; done; echo up; while :; do sleep 0.05; done";
        let mut tap = tap(&out, &[], &["sh", "-c", script]);
        until("the server is up", || {
            let text = std::fs::read_to_string(&out).ok()?;
            text.contains("\"text\":\"up\"").then_some(())
        });
        send(tap.id(), signal);
        assert_eq!(wait(&mut tap).code(), Some(9), "{signal}");
        let mut said = String::new();
        tap.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said.to_lowercase(), format!("up\ngot {word}\n"));
    }
}

#[test]
fn a_stream_that_the_server_closes_is_closed_for_the_client_while_the_server_lives_on() {
    let dir = tempfile::tempdir().unwrap();
    // (what the server closes, what of the client's ends with it)
    let script = |closes: &str| format!("echo up >&2; exec {closes}; read x; exit 4");
    for (closes, stderr) in [(">&-", false), ("2>&-", true)] {
        let out = dir.path().join(format!("out-{stderr}.jsonl"));
        let mut tap = tap(&out, &[], &["sh", "-c", &script(closes)]);
        let (end, ended) = std::sync::mpsc::channel();
        let (o, e) = (tap.stdout.take().unwrap(), tap.stderr.take().unwrap());
        let mut closed: Box<dyn Read + Send> = if stderr { Box::new(e) } else { Box::new(o) };
        std::thread::spawn(move || {
            let mut all = Vec::new();
            closed.read_to_end(&mut all).ok();
            end.send(all)
        });
        let said = ended.recv_timeout(crate::support::LIMIT).expect("the end comes");
        assert_eq!(said, if stderr { b"up\n".to_vec() } else { Vec::new() });
        assert!(tap.try_wait().unwrap().is_none(), "the server goes on");
        tap.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert_eq!(wait(&mut tap).code(), Some(4));
    }

    // Its stdin: a client that writes meets it, in place of a pipe that nobody empties.
    let out = dir.path().join("in.jsonl");
    let mut tap = tap(&out, &[], &["sh", "-c", "exec <&-; echo up; exec sleep 600"]);
    let mut up = [0; 3];
    tap.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
    let mut stdin = tap.stdin.take().unwrap();
    let (end, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let line = [b'x'; 4095].into_iter().chain([b'\n']).collect::<Vec<u8>>();
        let failed = (0..200).find_map(|_| stdin.write_all(&line).err());
        end.send(failed.map(|e| e.kind()))
    });
    let met = ended.recv_timeout(crate::support::LIMIT).expect("no write waits for ever");
    assert_eq!(met, Some(std::io::ErrorKind::BrokenPipe));
    send(tap.id(), "-TERM");
    wait(&mut tap);
    let entries = entries(&out);
    assert!(!entries.iter().any(|e| e.what == What::StdinClosed), "the client did not close it");
}

#[test]
fn the_server_stays_in_the_agents_group() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("g.jsonl");
    let mut tap = tap(&out, &[], &["cat"]);
    let pid = until("the server is there", || {
        out.exists().then(|| pids_of(&entries_lossy(&out))).flatten()
    });
    let group = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(')').next().unwrap().split_whitespace().nth(2).unwrap().to_owned()
    };
    assert_eq!(group(pid), group(tap.id()));
    assert_eq!(group(pid), group(std::process::id()));
    drop(tap.stdin.take());
    wait(&mut tap);
}

/// While it is written the last line may be half there.
fn entries_lossy(path: &Path) -> Vec<Entry> {
    let text = std::fs::read(path).unwrap_or_default();
    text.split(|b| *b == b'\n')
        .filter_map(|l| match decode(l) {
            Line::Entry(e) => Some(e),
            _ => None,
        })
        .collect()
}

#[test]
fn a_killed_tap_leaves_a_readable_file_and_no_server() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..6u32 {
        let out = dir.path().join(format!("kill{n}.jsonl"));
        // A server that ignores the end of its stdin, and talks all the time.
        let script = "trap '' HUP; i=0; while :; do i=$((i+1)); echo '{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"i\":'$i'}}'; done";
        let mut tap = tap(&out, &[], &["sh", "-c", script]);
        let mut stdout = tap.stdout.take().unwrap();
        let mut passed = Vec::new();
        let mut buf = vec![0; 1 + 3000 * n as usize];
        while passed.len() < 20_000 * (n as usize + 1) {
            let got = stdout.read(&mut buf).unwrap();
            passed.extend_from_slice(&buf[..got]);
        }
        let server = pids_of(&entries_lossy(&out)).unwrap();
        tap.kill().unwrap();
        assert_eq!(wait(&mut tap).signal(), Some(9));
        stdout.read_to_end(&mut passed).unwrap();
        until("the server is gone", || (!alive(server)).then_some(()));
        let r = Recording::open(&out).unwrap();
        assert_eq!(r.bad.len(), 0, "{:?}", r.bad);
        // Written down before it is passed on: what the client has is in the file, but for the line being written.
        let recorded = entries_lossy(&out)
            .iter()
            .filter(|e| e.side() == Some(Side::Received) && !matches!(e.what, What::Part { .. }))
            .count();
        let whole = passed.iter().filter(|b| **b == b'\n').count();
        assert!(recorded + 1 >= whole, "{recorded} recorded, {whole} passed");
    }
}

#[test]
fn a_killed_server_ends_the_tap_with_its_signal_and_the_call_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("killed.jsonl");
    let mut tap = tap(&out, &[], &["cat"]);
    // cat answers nothing: its echo is the request itself.
    let call = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"create_ticket","arguments":{"request_id":"r-1"}}}"#;
    let mut stdin = tap.stdin.take().unwrap();
    writeln!(stdin, "{call}").unwrap();
    let server = until("the call is down", || {
        let all = entries_lossy(&out);
        let both = all.iter().filter(|e| e.raw().is_some_and(|r| r == call)).count() == 2;
        both.then(|| pids_of(&all)).flatten()
    });
    send(server, "-KILL");
    // The client still holds stdin open: the tap ends all the same.
    assert_eq!(wait(&mut tap).code(), Some(137));
    drop(stdin);
    let r = Recording::open(&out).unwrap();
    let c = r.session.calls.values().next().unwrap();
    assert_eq!((c.outcome(), c.request_id.as_deref()), (Some(Outcome::Unknown), Some("r-1")));
    assert!(c.settled.as_ref().unwrap().why.contains("SIGKILL"), "{:?}", c.settled);
}

#[test]
fn a_client_that_is_gone_ends_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("gone.jsonl");
    // Ends on the end of its stdin; and one that writes to nobody.
    for script in ["cat", "yes '{}'"] {
        std::fs::remove_file(&out).ok();
        let mut tap = tap(&out, &[], &["sh", "-c", script]);
        let server = until("the server is there", || pids_of(&entries_lossy(&out)));
        drop((tap.stdin.take(), tap.stdout.take(), tap.stderr.take()));
        wait(&mut tap);
        until("the server is gone", || (!alive(server)).then_some(()));
    }
}

#[test]
fn a_full_disk_costs_lines_and_never_traffic() {
    let dir = tempfile::tempdir().unwrap();
    let out = PathBuf::from("/dev/full");
    if !out.exists() {
        return;
    }
    let mut c = program();
    c.args(["record", "--out", "/dev/full", "--", "cat"]).env("XDG_STATE_HOME", dir.path());
    let mut tap = c.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let data = noise(500_000);
    let mut stdin = tap.stdin.take().unwrap();
    let theirs = data.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&theirs).unwrap());
    let mut got = Vec::new();
    tap.stdout.take().unwrap().read_to_end(&mut got).unwrap();
    writer.join().unwrap();
    assert_eq!(wait(&mut tap).code(), Some(0));
    assert!(got == data);
}

#[test]
fn a_reader_that_never_reads_holds_nothing_up() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // Opened for reading, and never read: the pipe is full after 64 KiB.
    let mut tap = tap(&fifo, &[], &["cat"]);
    let data = noise(400_000);
    let (mut stdin, theirs) = (tap.stdin.take().unwrap(), data.clone());
    let writer = std::thread::spawn(move || stdin.write_all(&theirs).unwrap());
    let mut got = Vec::new();
    tap.stdout.take().unwrap().read_to_end(&mut got).unwrap();
    writer.join().unwrap();
    assert!(got == data);
    assert_eq!(wait(&mut tap).code(), Some(0));
}

#[test]
fn secrets_are_in_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("s.jsonl");
    let secret = |n: u32| format!("s3cr3t-value-number-{n}");
    let echo = format!(
        "echo 'started with API_KEY={}' >&2; echo \"env $MY_SERVICE_TOKEN\" >&2; cat",
        secret(1)
    );
    let more = [
        "--redact-key",
        "card",
        "--redact-path",
        "params.arguments.inner.pin",
        "--redact-pattern",
        r"CUST-(\S+?)\b",
    ];
    let mut tap = tap_with(&out, &more, &["sh", "-c", &echo, "x", "--password", &secret(2)], |c| {
        c.env("MY_SERVICE_TOKEN", secret(3));
    });
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{"password":"{}","card":"{}","inner":{{"pin":"{}"}},"note":"CUST-{} Bearer {} keep me","request_id":"r-1"}}}}}}"#,
        secret(4),
        secret(5),
        secret(6),
        "s3cr3t",
        secret(7)
    );
    let mut stdin = tap.stdin.take().unwrap();
    // In pieces, so that parts of lines are written down as well.
    for chunk in call.as_bytes().chunks(7) {
        stdin.write_all(chunk).unwrap();
        stdin.flush().unwrap();
    }
    stdin.write_all(b"\n").unwrap();
    drop(stdin);
    let mut passed = String::new();
    tap.stdout.take().unwrap().read_to_string(&mut passed).unwrap();
    assert_eq!(passed.trim_end(), call, "the traffic itself is untouched");
    wait(&mut tap);
    let mut files = 0;
    for file in walk(dir.path()) {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        files += 1;
        assert!(!text.contains("s3cr3t"), "{file:?}: {text}");
    }
    assert!(files >= 2);
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("keep me") && text.contains("r-1") && text.contains("replaced on write"));
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for e in std::fs::read_dir(dir).unwrap().flatten() {
        if e.path().is_dir() { out.extend(walk(&e.path())) } else { out.push(e.path()) }
    }
    out
}

#[test]
fn a_folder_gets_one_file_a_run_and_latest_is_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("runs/");
    std::fs::create_dir(&out).unwrap();
    for _ in 0..3 {
        let mut t = tap(&out, &["--keep", "2"], &["sh", "-c", "echo '{}'; exit 0"]);
        assert_eq!(wait(&mut t).code(), Some(0));
    }
    let names: Vec<_> = std::fs::read_dir(&out)
        .unwrap()
        .flatten()
        .map(|e| e.file_name().into_string().unwrap())
        .filter(|n| n.ends_with(".jsonl"))
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let mut c = program();
    let shown = c
        .args(["show", "latest", "--json"])
        .env("XDG_STATE_HOME", dir.path().join("state"))
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(names.iter().any(|n| shown.contains(n)), "{shown}");
}

/// A launcher that ends at once, while what it started goes on with its pipes.
const LAUNCHED: &str = "exec 3<&0; sh -c 'while read -r line; do printf \"%s\\n\" \"$line\"; done; echo last' <&3 3<&- & exit 3";

#[test]
fn a_launcher_that_ended_leaves_the_pipes_to_its_server() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("launched.jsonl");
    let mut tap = tap(&out, &[], &["sh", "-c", LAUNCHED]);
    let (mut stdin, mut stdout) = (tap.stdin.take().unwrap(), tap.stdout.take().unwrap());
    // Told once the tap has seen the command's end and silence behind it.
    let goes_on = |e: &Entry| matches!(&e.what, What::Event(redial::journal::Kind::Note(n)) if format!("{n:?}").contains("Outlived { code: Some(3)"));
    until("the launcher's end is told", || entries_lossy(&out).iter().any(goes_on).then_some(()));
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"create_ticket","arguments":{"request_id":"r-1"}}}"#;
    for _ in 0..2 {
        writeln!(stdin, "{call}").unwrap();
        let mut line = vec![0; call.len() + 1];
        stdout.read_exact(&mut line).unwrap();
        assert_eq!(line, format!("{call}\n").as_bytes());
    }
    assert!(tap.try_wait().unwrap().is_none(), "the tap goes on");
    drop(stdin);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "last\n");
    assert_eq!(wait(&mut tap).code(), Some(3));
    let all = entries(&out);
    assert_eq!(stream(&all, Side::Sent), format!("{call}\n{call}\n").as_bytes());
    assert_eq!(stream(&all, Side::Received), format!("{call}\n{call}\nlast\n").as_bytes());
    let ended = Recording::open(&out).unwrap().session.generation().unwrap().ended.unwrap();
    assert_eq!((ended.code, ended.launcher, ended.gone_at), (Some(3), true, None));
}

#[test]
fn a_call_that_a_launcher_s_server_lost_did_not_die_with_the_launcher_s_code() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("lost.jsonl");
    let launch = "exec 3<&0; sh -c 'echo $$ >&2; read -r line; read -r line' <&3 3<&- & exit 0";
    let mut tap = tap(&out, &[], &["sh", "-c", launch]);
    let mut stdin = tap.stdin.take().unwrap();
    let told = |e: &Entry| {
        matches!(
            &e.what,
            What::Event(redial::journal::Kind::Note(redial::journal::Note::Outlived { .. }))
        )
    };
    until("the launcher's end is told", || entries_lossy(&out).iter().any(told).then_some(()));
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"create_ticket","arguments":{"request_id":"r-1"}}}"#;
    writeln!(stdin, "{call}").unwrap();
    let server = until("the server's pid and the call are written down", || {
        let all = entries_lossy(&out);
        let pid = String::from_utf8(stream(&all, Side::Stderr)).ok()?.trim().to_owned();
        (!pid.is_empty() && !stream(&all, Side::Sent).is_empty()).then_some(pid)
    });
    Command::new("kill").args(["-KILL", &server]).status().unwrap();
    assert_eq!(wait(&mut tap).code(), Some(0));
    let session = Recording::open(&out).unwrap().session;
    let why = &session.calls.values().next().unwrap().settled.as_ref().unwrap().why;
    assert!(why.contains("how the server itself ended was not seen"), "{why}");
    let end = session.generation().unwrap().ended.unwrap();
    assert_eq!((end.launcher, end.gone_at), (true, None));
}

#[test]
fn who_holds_no_pipe_of_a_server_does_not_hold_the_tap() {
    let dir = tempfile::tempdir().unwrap();
    // stderr alone, silent and not; stdout, by somebody who reads nothing; a launcher's server, after a signal.
    for (n, worker) in [
        "sleep 300 </dev/null >/dev/null & echo $! >&2; exit 4",
        "(echo $$ >&2; exec sh -c 'echo $$; while :; do echo x; sleep 0.05; done' </dev/null >&2) & exit 4",
        "sleep 300 </dev/null & echo $! >&2; exit 4",
        "exec 3<&0; sleep 300 <&3 3<&- & echo $! >&2; exit 4",
    ]
    .iter()
    .enumerate()
    {
        let out = dir.path().join(format!("{n}.jsonl"));
        let mut tap = tap(&out, &[], &["setsid", "sh", "-c", worker]);
        if n == 3 {
            let told = |e: &Entry| format!("{:?}", e.what).contains("Outlived { code: Some(4)");
            until("its end is told", || entries_lossy(&out).iter().any(told).then_some(()));
            send(tap.id(), "-TERM");
        }
        assert_eq!(wait(&mut tap).code(), Some(4), "{worker}");
        let left = Recording::open(&out).unwrap().session.generation().unwrap().left.clone();
        let redial::procs::Left::These(all) = left else { panic!("{worker}: {left:?}") };
        for p in all {
            // One of them may just have ended.
            Command::new("kill").args(["-KILL", &p.pid.to_string()]).stderr(Stdio::null()).status().ok();
        }
    }
}
