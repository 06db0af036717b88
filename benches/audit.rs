//! The audit of large traces, against parsing the same lines as JSON in the same run: `cargo bench --bench audit`.
//! Prints a line a form, with the ratio (limit 2) and the peak of memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::panic)]

use redial::audit::Options;
use redial::inspect::audit::Trace;
use redial::journal::Kind;
use redial::journal::event::{Purpose, Transport};
use redial::record::entry::{self, Entry, Header, What};
use redial::time::Time;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// How large each trace is made.
const SIZE: u64 = 100 << 20;
const ROUNDS: usize = 3;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    for (name, make) in [
        ("recording", recording as fn(&mut dyn FnMut(String) -> bool)),
        ("neutral", neutral),
        ("trace list", list),
    ] {
        let path = dir.path().join(name);
        let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(&path).unwrap());
        let mut size = 0;
        make(&mut |line| {
            size += line.len() as u64;
            out.write_all(line.as_bytes()).unwrap();
            size < SIZE
        });
        out.flush().unwrap();
        drop(out);
        measure(name, &path);
        std::fs::remove_file(&path).unwrap();
    }
}

fn measure(name: &str, path: &Path) {
    let size = std::fs::metadata(path).unwrap().len() as f64 / 1e6;
    let before = resident_mb();
    let (mut audits, mut parses, mut skims) = (Vec::new(), Vec::new(), Vec::new());
    let mut calls = 0;
    let mut peak: f64 = 0.0;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let mut trace = Trace::open(path, Options::default()).unwrap();
        trace.whole().unwrap();
        calls = trace.audit.calls;
        assert_eq!(trace.findings().1.total(), 0);
        audits.push(began.elapsed());
        peak = peak.max(resident_mb() - before);
        drop(trace);
        parses.push(parsed::<serde_json::Value>(path));
        skims.push(parsed::<serde::de::IgnoredAny>(path));
    }
    let (audit, parse, skim) = (median(audits), median(parses), median(skims));
    println!(
        "{name}: {size:.0} MB, {calls} calls: audit {audit:.2} s, its lines parsed as JSON {parse:.2} s, ratio {:.2} (limit 2); checked only {skim:.2} s; +{peak:.0} MB resident",
        audit / parse
    );
}

/// The same lines as JSON values, one after the other.
fn parsed<T: serde::de::DeserializeOwned>(path: &Path) -> Duration {
    let began = Instant::now();
    let mut file = BufReader::with_capacity(1 << 20, std::fs::File::open(path).unwrap());
    let mut line = Vec::new();
    let mut good = 0;
    while file.read_until(b'\n', &mut line).unwrap() > 0 {
        let text = line.trim_ascii().trim_ascii_end();
        let text = text.strip_suffix(b",").unwrap_or(text);
        good += u64::from(std::hint::black_box(serde_json::from_slice::<T>(text)).is_ok());
        line.clear();
    }
    assert!(good > 1000);
    began.elapsed()
}

fn median(mut all: Vec<Duration>) -> f64 {
    all.sort();
    all[all.len() / 2].as_secs_f64()
}

/// Resident memory of this process now, in MB (Linux).
fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kb = status
        .lines()
        .find_map(|l| l.strip_prefix("VmRSS:"))
        .and_then(|v| v.split_whitespace().next()?.parse::<f64>().ok());
    kb.unwrap_or(f64::NAN) / 1024.0
}

/// Every fifth call makes a basket, the others use the newest; results are structured, and text beside.
fn call(n: u64) -> (&'static str, String, String) {
    let basket = format!("bsk_{:08}", n / 5 * 5);
    if n.is_multiple_of(5) {
        (
            "create_basket",
            r#"{"owner":"night-agent"}"#.into(),
            format!(r#"{{"basket_id":"{basket}","created":"2026-11-29T02:57:10Z"}}"#),
        )
    } else {
        let args = format!(
            r#"{{"basket_id":"{basket}","sku":"book-{n}","note":"for the night shift, please"}}"#
        );
        (
            "add_item",
            args,
            format!(r#"{{"basket_id":"{basket}","items":{},"total":{}.50}}"#, n % 5, n % 90),
        )
    }
}

fn frames(n: u64) -> (String, String) {
    let (tool, args, result) = call(n);
    let text = serde_json::to_string(&result).unwrap();
    (
        format!(
            r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"{tool}","arguments":{args},"_meta":{{"progressToken":{n}}}}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":{n},"result":{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{result},"isError":false}}}}"#
        ),
    )
}

fn recording(put: &mut dyn FnMut(String) -> bool) {
    put(entry::header(&Header { run: "bench".into(), ..Header::default() }));
    let mut seq = 0;
    let mut event = |kind: Kind| {
        seq += 1;
        let at = Time(1_795_963_550_000_000 + seq as i64);
        entry::line(&Entry::new(seq, at, seq, 1, What::Event(kind)))
    };
    let transport = Transport::Stdio { command: vec!["server".into()], pid: Some(7) };
    put(event(Kind::Opened { transport }));
    for n in 0.. {
        let (ask, answer) = frames(n);
        put(event(Kind::Sent { raw: ask.into(), exchange: None, purpose: Purpose::Asked }));
        if !put(event(Kind::Received { raw: answer.into(), exchange: None })) {
            return;
        }
    }
}

fn neutral(put: &mut dyn FnMut(String) -> bool) {
    put("{\"t\": 1790000000.25, \"dir\": \"proc\", \"event\": \"start\", \"pid\": 101}\n".into());
    for n in 0.. {
        let (ask, answer) = frames(n);
        let t = 1_790_000_001 + n;
        put(format!("{{\"t\": {t}.25, \"dir\": \"out\", \"msg\": {ask}}}\n"));
        if !put(format!("{{\"t\": {t}.5, \"dir\": \"in\", \"msg\": {answer}}}\n")) {
            return;
        }
    }
}

fn list(put: &mut dyn FnMut(String) -> bool) {
    put("[\n".into());
    for n in 0.. {
        let (tool, args, result) = call(n);
        let item = format!(r#" {{"tool": "{tool}", "arguments": {args}, "result": {result}}}"#);
        if !put(item + ",\n") {
            break;
        }
    }
    put(" {\"tool\": \"last\", \"arguments\": {}, \"result\": {}}\n]\n".into());
}
