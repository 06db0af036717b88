//! Writes down a session as a recording (JSON Lines, format version 1): what the kill test keeps of a trial, and the
//! lab of a scenario on request. Mode 0600. What the built-in servers are sent holds no secrets.

use crate::journal::event::{Http, Purpose, Transport};
use crate::journal::{Event, Journal, Kind, Note};
use crate::json::raw::quote;
use crate::time::Time;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes all that these journals hold to `path`, each as a run of its own.
///
/// # Errors
/// The system's.
pub fn keep(path: &Path, server: &str, journals: &[Journal]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    for (n, journal) in journals.iter().enumerate() {
        file.write_all(run(n, server, journal).as_bytes())?;
    }
    Ok(())
}

fn run(n: usize, server: &str, journal: &Journal) -> String {
    let (events, _) = journal.events_from(0);
    let began = events.first().map_or(Time(0), |e| e.at);
    let mut out = format!(
        "{{\"redial\":\"recording\",\"version\":1,\"run\":\"{n:08x}\",\"at\":{},\"tap\":\"client\",\"program\":\"redial {}\",\"server\":{}}}\n",
        quote(&micros(began)),
        env!("CARGO_PKG_VERSION"),
        quote(server)
    );
    let mut last = (0, 0);
    for e in &events {
        last = (e.seq, e.mono_us);
        let _ = writeln!(out, "{{{},{}}}", head(e.seq, e.at, e.mono_us, e.generation), body(e));
    }
    // Stderr is kept as tails, each with its time: after the rest, under numbers of their own.
    journal.read(|s| {
        let mut seq = last.0.max(s.seq);
        for g in &s.generations {
            for (at, line) in g.stderr.iter() {
                seq += 1;
                let text = quote(&String::from_utf8_lossy(line));
                let head = head(seq, at, last.1, g.n);
                let _ = writeln!(out, "{{{head},\"kind\":\"stderr\",\"text\":{text}}}");
            }
        }
    });
    out
}

fn micros(t: Time) -> String {
    jiff::Timestamp::from_microsecond(t.0)
        .map(|t| t.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
        .unwrap_or_default()
}

fn head(seq: u64, at: Time, mono: u64, generation: u32) -> String {
    format!(r#""seq":{seq},"at":{},"mono":{mono},"gen":{generation}"#, quote(&micros(at)))
}

fn body(e: &Event) -> String {
    let text = |raw: &[u8]| quote(&String::from_utf8_lossy(raw));
    let exchange = |x: &Option<u64>| x.map_or(String::new(), |x| format!(r#","exchange":{x}"#));
    let word = |w: &Option<String>| w.as_deref().map_or("null".into(), quote);
    match &e.kind {
        Kind::Opened { transport: Transport::Stdio { command, pid } } => {
            let words: Vec<String> = command.iter().map(|w| quote(w)).collect();
            let pid = pid.map_or(String::new(), |p| format!(r#","pid":{p}"#));
            format!(r#""kind":"opened","transport":"stdio","command":[{}]{pid}"#, words.join(","))
        }
        Kind::Opened { transport: Transport::Http { url } } => {
            format!(r#""kind":"opened","transport":"http","url":{}"#, quote(url))
        }
        Kind::Sent { raw, exchange: x, purpose } => {
            let purpose = match purpose {
                Purpose::Asked | Purpose::FollowUp { .. } => "",
                Purpose::Probe => r#","purpose":"probe""#,
                Purpose::Handshake => r#","purpose":"handshake""#,
                Purpose::Reply => r#","purpose":"reply""#,
            };
            format!(r#""kind":"sent","text":{}{}{purpose}"#, text(raw), exchange(x))
        }
        Kind::Received { raw, exchange: x } => {
            format!(r#""kind":"received","text":{}{}"#, text(raw), exchange(x))
        }
        Kind::NotWritten { sent, why, left } => {
            format!(r#""kind":"not_written","sent":{sent},"why":{},"left":{left}"#, quote(why))
        }
        Kind::Noise { raw, cut } => format!(r#""kind":"noise","text":{},"cut":{cut}"#, text(raw)),
        Kind::Stderr { raw } => format!(r#""kind":"stderr","text":{}"#, text(raw)),
        Kind::StdoutClosed => r#""kind":"stdout_closed""#.into(),
        Kind::Exit { code, signal, certain } => match (code, signal) {
            (_, Some(s)) => format!(r#""kind":"exit","signal":{s},"certain":{certain}"#),
            (Some(c), None) => format!(r#""kind":"exit","code":{c},"certain":{certain}"#),
            (None, None) => format!(r#""kind":"exit","certain":{certain}"#),
        },
        Kind::AllGone => r#""kind":"all_gone""#.into(),
        Kind::Agreed { protocol } => format!(r#""kind":"agreed","protocol":{}"#, quote(protocol)),
        Kind::State { state, why } => {
            let state = format!("{state:?}").to_ascii_lowercase();
            let state = state.split([' ', '{']).next().unwrap_or_default().to_owned();
            format!(r#""kind":"state","state":{},"why":{}"#, quote(&state), quote(why))
        }
        Kind::Http { exchange, what } => {
            let rest = match what {
                Http::Request { method, url, .. } => {
                    format!(r#""what":"request","method":{},"url":{}"#, quote(method), quote(url))
                }
                Http::Status { status, content_type, .. } => format!(
                    r#""what":"status","status":{status},"content_type":{}"#,
                    word(content_type)
                ),
                Http::Failed { why, connected } => {
                    format!(r#""what":"failed","why":{},"connected":{connected}"#, quote(why))
                }
                Http::Body { raw } => format!(r#""what":"body","text":{}"#, text(raw)),
                Http::End => r#""what":"end""#.into(),
                other => format!(r#""what":"note","text":{}"#, quote(&format!("{other:?}"))),
            };
            format!(r#""kind":"http","exchange":{exchange},{rest}"#)
        }
        Kind::Note(Note::TimedOut { call, after_s }) => {
            format!(r#""kind":"note","what":"timed_out","call":{call},"after_s":{after_s}"#)
        }
        Kind::Note(Note::Cancelled { call }) => {
            format!(r#""kind":"note","what":"cancelled","call":{call}"#)
        }
        Kind::Note(Note::Text(t)) => {
            format!(r#""kind":"note","what":"text","text":{}"#, quote(t))
        }
        Kind::Note(other) => {
            format!(r#""kind":"note","what":"text","text":{}"#, quote(&format!("{other:?}")))
        }
    }
}
