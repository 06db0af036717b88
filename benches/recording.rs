//! The numbers of recordings: what the tap adds to a round trip, how many frames it passes and records, and how a
//! large file opens. `cargo bench --bench recording [-- tap|http|index]`. Prints one line a number, with what it is
//! measured against in the same run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::panic)]

use redial::journal::Kind;
use redial::journal::event::Purpose;
use redial::record::entry::{self, Entry, Header, What};
use redial::recording::Recording;
use redial::recording::index::Index;
use redial::recording::timeline::{Judged, Places, Source};
use redial::time::Time;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_redial");

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    let dir = tempfile::tempdir().unwrap();
    if wants("tap") {
        round_trip(dir.path());
        throughput(dir.path());
    }
    if wants("http") {
        http(dir.path());
    }
    if wants("index") {
        index(dir.path());
    }
}

fn tapped(out: &Path, command: &[&str]) -> Command {
    let mut c = Command::new(PROGRAM);
    c.arg("record").arg("--out").arg(out).arg("--").args(command);
    c.env("XDG_STATE_HOME", out.parent().unwrap());
    c
}

fn piped(mut c: Command) -> Child {
    c.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

fn frame(n: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"create_ticket","arguments":{{"request_id":"r-{n}","title":"Login fails","body":"since 02:57"}}}}}}"#
    ) + "\n"
}

fn median(mut all: Vec<Duration>) -> f64 {
    all.sort();
    all[all.len() / 2].as_secs_f64() * 1e6
}

fn round_trips(mut child: Child, rounds: usize) -> Vec<Duration> {
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    let times = (0..rounds)
        .map(|n| {
            let text = frame(n);
            let began = Instant::now();
            stdin.write_all(text.as_bytes()).unwrap();
            line.clear();
            stdout.read_line(&mut line).unwrap();
            began.elapsed()
        })
        .collect();
    drop(stdin);
    child.wait().unwrap();
    times
}

fn round_trip(dir: &Path) {
    const ROUNDS: usize = 4000;
    let direct = median(round_trips(piped(Command::new("cat")), ROUNDS));
    let tap = median(round_trips(piped(tapped(&dir.join("rt.jsonl"), &["cat"])), ROUNDS));
    println!(
        "stdio round trip, median of {ROUNDS}: direct {direct:.0} µs, through the tap {tap:.0} µs, added {:.0} µs (limit 100)",
        tap - direct
    );
}

fn throughput(dir: &Path) {
    const FRAMES: usize = 150_000;
    let out = dir.join("many.jsonl");
    let mut child = piped(tapped(&out, &["cat"]));
    let mut stdin = BufWriter::with_capacity(16 << 10, child.stdin.take().unwrap());
    let mut stdout = child.stdout.take().unwrap();
    let began = Instant::now();
    let writer = std::thread::spawn(move || {
        for n in 0..FRAMES {
            stdin.write_all(frame(n).as_bytes()).unwrap();
        }
    });
    let mut buf = vec![0; 64 << 10];
    while stdout.read(&mut buf).unwrap() > 0 {}
    writer.join().unwrap();
    child.wait().unwrap();
    let took = began.elapsed().as_secs_f64();
    let text = std::fs::read(&out).unwrap();
    let count = |kind: &str| {
        memchr::memmem::find_iter(&text, format!("\"kind\":\"{kind}\"").as_bytes()).count()
    };
    let (sent, received, gaps) = (count("sent"), count("received"), count("gap"));
    println!(
        "frames passed and recorded: {:.0}/s ({sent} out and {received} in, {gaps} gaps, {:.2} s; limit 50,000)",
        (sent + received) as f64 / took,
        took
    );
}

fn http(dir: &Path) {
    const ROUNDS: usize = 1000;
    let listening = |mut c: Command| -> (Child, String) {
        let mut child = c.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("listening on http://") {
            assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
        }
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        let at = said
            .split_once("listening on http://")
            .unwrap()
            .1
            .split('/')
            .next()
            .unwrap()
            .to_owned();
        (child, at)
    };
    let mut server = Command::new(PROGRAM);
    server.args(["serve", "tickets", "--http", "127.0.0.1:0", "--ledger"]).arg(dir.join("l.db"));
    let (mut server, upstream) = listening(server);
    let mut tap = Command::new(PROGRAM);
    tap.args([
        "record",
        "--http",
        &format!("http://{upstream}/mcp"),
        "--listen",
        "127.0.0.1:0",
        "--out",
    ])
    .arg(dir.join("h.jsonl"));
    tap.env("XDG_STATE_HOME", dir);
    let (mut tap, listen) = listening(tap);
    let ask = |at: &str| {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        let mut s = TcpStream::connect(at).unwrap();
        s.set_nodelay(true).unwrap();
        let text = format!(
            "POST /mcp HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: server/discover\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut buf = [0; 4096];
        (0..ROUNDS)
            .map(|_| {
                let began = Instant::now();
                s.write_all(text.as_bytes()).unwrap();
                let mut got = Vec::new();
                while !got.ends_with(b"}") {
                    let n = s.read(&mut buf).unwrap();
                    assert!(n > 0);
                    got.extend_from_slice(&buf[..n]);
                }
                assert!(got.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&got));
                began.elapsed()
            })
            .collect::<Vec<_>>()
    };
    let (direct, through) = (median(ask(&upstream)), median(ask(&listen)));
    for child in [&mut tap, &mut server] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    println!(
        "HTTP round trip, median of {ROUNDS}: direct {direct:.0} µs, through the tap {through:.0} µs, added {:.0} µs (limit 1000)",
        through - direct
    );
}

/// A recording of a million events and 500 MB.
fn large(path: &Path) {
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path).unwrap());
    out.write_all(entry::header(&Header { run: "bench".into(), ..Header::default() }).as_bytes())
        .unwrap();
    let filler = "x".repeat(180);
    for n in 0..1_000_000u64 {
        let text = if n % 2 == 0 {
            format!(
                r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"create_ticket","arguments":{{"request_id":"r-{n}","title":"{filler}"}}}}}}"#
            )
        } else {
            format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":"{filler}{}"}}]}}}}"#,
                n - 1,
                "y".repeat(90)
            )
        };
        let kind = if n % 2 == 0 {
            Kind::Sent { raw: text.into(), exchange: None, purpose: Purpose::Asked }
        } else {
            Kind::Received { raw: text.into(), exchange: None }
        };
        let e = Entry::new(n + 1, Time(1_795_963_550_000_000 + n as i64), n, 1, What::Event(kind));
        out.write_all(entry::line(&e).as_bytes()).unwrap();
    }
    out.flush().unwrap();
}

/// Peak resident memory of this process, in MB (Linux).
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kb = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .and_then(|v| v.split_whitespace().next()?.parse::<f64>().ok());
    kb.unwrap_or(f64::NAN) / 1024.0
}

/// Runs a command to its end: seconds, and its own peak memory in MB (Linux).
fn measured(args: &[&str]) -> (f64, f64) {
    let began = Instant::now();
    let mut child = Command::new(PROGRAM)
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .spawn()
        .unwrap();
    let mut peak = 0.0f64;
    while child.try_wait().unwrap().is_none() {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let kb = status
            .lines()
            .find_map(|l| l.strip_prefix("VmHWM:"))
            .and_then(|v| v.split_whitespace().next()?.parse::<f64>().ok());
        peak = peak.max(kb.unwrap_or(0.0) / 1024.0);
        std::thread::sleep(Duration::from_millis(5));
    }
    (began.elapsed().as_secs_f64(), peak)
}

/// The whole file through the commands and the screen's reader.
fn faces(text: &str, index: Index) {
    for args in [
        &["show", text, "--json"][..],
        &["show", text, "--limit", "100"],
        &["show", text, "--calls", "outcome:unknown"],
    ] {
        let (took, peak) = measured(args);
        println!("{}: {took:.2} s, peak {peak:.0} MB (limit 150)", args.join(" "));
    }
    let began = Instant::now();
    let mut recording = Recording::begin(Path::new(text)).unwrap();
    while recording.advance().unwrap() {}
    println!(
        "folded with outcomes (in the background of the screen): {:.2} s",
        began.elapsed().as_secs_f64()
    );
    let source = Source::File(Box::new(index));
    for filter in ["tool:create_ticket kind:result", "req:r-999998"] {
        let mut places = Places::new(redial::filter::parse(filter).unwrap());
        let began = Instant::now();
        while places.look(&source, &recording, &Judged::new(), Time::now(), 10_000) {}
        println!(
            "filter {filter}: {} of 1,000,000 in {:.2} s",
            places.len(&source),
            began.elapsed().as_secs_f64()
        );
    }
    let mut jumps = Vec::new();
    for n in 0..200usize {
        let at = (n * 7_919_177) % 999_900;
        let began = Instant::now();
        for i in at..at + 120 {
            assert_eq!(source.row(i, &recording, Time::now()).unwrap().outcome, Some("ok"));
        }
        jumps.push(began.elapsed());
    }
    println!(
        "jump of the time line, 120 rows with outcomes: {:.2} ms at the median, {:.2} at worst (limit 16)",
        median(jumps.clone()) / 1e3,
        jumps.iter().max().map_or(0.0, Duration::as_secs_f64) * 1e3
    );
    println!("peak of this process with index, fold and rows: {:.0} MB (limit 150)", peak_mb());
}

fn timed(program: &str, args: &[&str]) -> String {
    let began = Instant::now();
    match Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(s) if s.success() => format!("{:.2} s", began.elapsed().as_secs_f64()),
        _ => "not there".into(),
    }
}

fn index(dir: &Path) {
    let path = dir.join("large.jsonl");
    large(&path);
    let size = std::fs::metadata(&path).unwrap().len() as f64 / 1e6;
    let text = path.to_str().unwrap();
    // Everyone reads it warm.
    let wc = {
        timed("wc", &["-l", text]);
        timed("wc", &["-l", text])
    };
    let began = Instant::now();
    let mut index = Index::open(&path).unwrap();
    let tail = index.tail(100);
    assert_eq!(tail.len(), 100);
    let first = began.elapsed();
    let began = Instant::now();
    while index.advance().unwrap() {}
    let whole = began.elapsed();
    assert_eq!(index.len(), 1_000_000);
    let mut jumps = Vec::new();
    for n in 0..200usize {
        let at = (n * 7_919_177) % (index.len() - 100);
        let began = Instant::now();
        for i in at..at + 50 {
            assert_eq!(index.entry(i).unwrap().seq, i as u64 + 1);
        }
        jumps.push(began.elapsed());
    }
    println!(
        "1,000,000 events, {size:.0} MB: first screen {:.1} ms (limit 300), indexed {:.2} s (limit 3), jump to any 50 events {:.2} ms at the median and {:.2} at worst (limit 16), peak {:.0} MB (limit 150); wc -l {wc}, jq {}",
        first.as_secs_f64() * 1e3,
        whole.as_secs_f64(),
        median(jumps.clone()) / 1e3,
        jumps.iter().max().map_or(0.0, Duration::as_secs_f64) * 1e3,
        peak_mb(),
        timed("jq", &["-c", "select(.seq == 0)", text])
    );
    faces(text, index);
}
