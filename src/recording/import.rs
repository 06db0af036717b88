//! Foreign forms, converted to a recording in memory: the trace list of a Python program,
//! `[{tool, arguments, result}]` (also one object a line), and the neutral form of a log, one object a line,
//! `{t, dir: out|in|err|proc, msg|text|event…}`. Secrets are hidden on the way, as they are on write.

use super::BadLine;
use super::lines::Lines;
use crate::error::{Error, Result};
use crate::journal::Kind;
use crate::journal::event::{Purpose, Transport};
use crate::json::raw::{self, quote};
use crate::procs::Left;
use crate::record::entry::{self, Entry, Header, What, Wire};
use crate::record::redact::{Extra, Rules};
use crate::time::Time;
use crate::wire::frame;
use crate::wire::id::Id;
use bytes::Bytes;
use std::path::Path;

/// The largest foreign file that is converted.
const LIMIT: u64 = 512 << 20;

/// Opens a recording, or converts what can be.
///
/// # Errors
/// Exit 6 when it can't be read.
pub fn open(path: &Path) -> Result<Lines> {
    let failed =
        |e: std::io::Error| Error::ledger(format!("{} can't be read: {e}", path.display()));
    if path.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    let lines = Lines::open(path).map_err(failed)?;
    let head = lines.at(0, 64 << 10).map_err(failed)?;
    let form = form(&head);
    if form == Form::Recording {
        return Ok(lines);
    }
    if lines.len().map_err(failed)? > LIMIT {
        return Err(Error::ledger(format!("{} is too large to be converted", path.display())));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    let at = std::fs::metadata(path).and_then(|m| m.modified()).ok();
    let at = at.and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    let began = Time(at.and_then(|d| i64::try_from(d.as_micros()).ok()).unwrap_or(0));
    let (text, bad) = convert(&bytes, form, began);
    Ok(Lines::memory(text, bad))
}

/// What a file is, by its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Ours.
    Recording,
    /// `{t, dir, …}` a line.
    Neutral,
    /// `[{tool, arguments, result}]`, or such objects a line.
    Trace,
}

/// Ours unless it looks like another.
pub fn form(head: &[u8]) -> Form {
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    if text.starts_with('[') {
        return Form::Trace;
    }
    for line in text.lines().take(20) {
        let has = |key: &str| raw::get(line, key).is_some();
        if has("seq") || has("redial") {
            return Form::Recording;
        }
        if has("t") && has("dir") {
            return Form::Neutral;
        }
        if has("tool") && has("arguments") {
            return Form::Trace;
        }
    }
    Form::Recording
}

/// The file as a recording. `began`: the time of what has none.
pub fn convert(bytes: &[u8], form: Form, began: Time) -> (Vec<u8>, Vec<BadLine>) {
    let Ok(rules) = Rules::new(Extra::default()) else { return (Vec::new(), Vec::new()) };
    let header = Header {
        run: "import".into(),
        at: began,
        tap: "import".into(),
        program: format!("redial {}", env!("CARGO_PKG_VERSION")),
        server: "import".into(),
        redaction: rules.statement(),
        ..Header::default()
    };
    let out = entry::header(&header).into_bytes();
    let mut c =
        Converter { out, bad: Vec::new(), rules, seq: 0, generation: 0, began, first: None };
    match form {
        Form::Neutral => c.lines(bytes, Converter::neutral),
        _ => match std::str::from_utf8(bytes)
            .ok()
            .and_then(|t| raw::items(t.trim_start_matches('\u{feff}')))
        {
            Some(items) => {
                for (n, item) in items.iter().enumerate() {
                    if !c.trace(item) {
                        let why = "no call: it has no tool".to_owned();
                        c.bad.push(BadLine { line: n as u64 + 1, why });
                    }
                }
            }
            None => c.lines(bytes, Converter::trace),
        },
    }
    (c.out, c.bad)
}

struct Converter {
    out: Vec<u8>,
    bad: Vec<BadLine>,
    rules: Rules,
    seq: u64,
    generation: u32,
    began: Time,
    first: Option<Time>,
}

impl Converter {
    fn lines(&mut self, bytes: &[u8], take: fn(&mut Converter, &str) -> bool) {
        for (n, line) in bytes.split(|b| *b == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let why = match std::str::from_utf8(line) {
                Err(e) => format!("no UTF-8 at byte {}", e.valid_up_to()),
                Ok(text) if raw::members(text).is_none() => "torn, or no JSON object".into(),
                Ok(text) if take(self, text) => continue,
                Ok(_) => "nothing of a session".into(),
            };
            self.bad.push(BadLine { line: n as u64 + 1, why });
        }
    }

    fn put(&mut self, at: Time, kind: Kind, headers: Vec<(String, String)>) {
        if self.generation == 0 {
            self.generation = 1;
            if !matches!(kind, Kind::Opened { .. }) {
                let transport = Transport::Stdio { command: Vec::new(), pid: None };
                self.put(at, Kind::Opened { transport }, Vec::new());
            }
        }
        self.seq += 1;
        let first = *self.first.get_or_insert(at);
        let mono = u64::try_from(at.0.saturating_sub(first.0)).unwrap_or(0);
        let mut e = Entry::new(self.seq, at, mono, self.generation, What::Event(kind));
        e.wire = Wire { headers, ..Wire::default() };
        self.rules.entry(&mut e);
        self.out.extend_from_slice(entry::line(&e).as_bytes());
    }

    fn neutral(&mut self, line: &str) -> bool {
        let number = |key: &str| raw::get(line, key).and_then(|n| n.trim().parse::<f64>().ok());
        let whole = |key: &str| raw::get(line, key).and_then(|n| n.trim().parse::<i32>().ok());
        let Some(at) = number("t").and_then(Time::from_seconds) else { return false };
        let headers: Vec<(String, String)> = raw::get(line, "headers")
            .and_then(raw::members)
            .unwrap_or_default()
            .into_iter()
            .filter_map(|(k, v)| Some((k.into_owned(), raw::as_str(v)?)))
            .collect();
        let bytes = || {
            let msg = raw::get(line, "msg").map(str::to_owned);
            msg.or_else(|| raw::get_str(line, "text")).map(Bytes::from)
        };
        let kind = match raw::get_str(line, "dir").as_deref() {
            Some("out") => {
                bytes().map(|raw| Kind::Sent { raw, exchange: None, purpose: Purpose::Asked })
            }
            Some("in") => bytes().map(|raw| match std::str::from_utf8(&raw) {
                Ok(t) if frame::Frame::parse(t) != frame::Frame::NotRpc => {
                    Kind::Received { raw, exchange: None }
                }
                _ => Kind::Noise { raw, cut: 0 },
            }),
            Some("err") => bytes().map(|raw| Kind::Stderr { raw }),
            Some("proc") => match raw::get_str(line, "event").as_deref() {
                Some("start") => {
                    self.generation += 1;
                    let words = raw::get(line, "argv").and_then(raw::items).unwrap_or_default();
                    let command = words.into_iter().filter_map(raw::as_str).collect();
                    let pid = whole("pid").and_then(|p| u32::try_from(p).ok());
                    Some(Kind::Opened { transport: Transport::Stdio { command, pid } })
                }
                Some("exit") => Some(Kind::Exit {
                    code: whole("code"),
                    signal: whole("signal"),
                    // A foreign trace says that the process ended; who was left is not in it.
                    left: Left::Perhaps,
                }),
                _ => None,
            },
            _ => None,
        };
        let Some(kind) = kind else { return false };
        self.put(at, kind, headers);
        true
    }

    fn trace(&mut self, item: &str) -> bool {
        let Some(tool) = raw::get_str(item, "tool").or_else(|| raw::get_str(item, "name")) else {
            return false;
        };
        let args = raw::get(item, "arguments").or_else(|| raw::get(item, "args")).unwrap_or("{}");
        let at = self.began;
        let id = Id::from(self.seq + 1);
        let params = format!(r#"{{"name":{},"arguments":{args}}}"#, quote(&tool));
        let sent = frame::request(&id, "tools/call", Some(&params));
        self.put(
            at,
            Kind::Sent { raw: sent.into(), exchange: None, purpose: Purpose::Asked },
            Vec::new(),
        );
        let answer = match (raw::get(item, "result"), raw::get(item, "error")) {
            (Some(r), _) if !raw::is_null(r) => frame::result(&id, &result(r)),
            (_, Some(e)) if raw::is_object(e) => {
                format!(r#"{{"jsonrpc":"2.0","id":{},"error":{e}}}"#, id.to_json())
            }
            // What came back was not kept.
            _ => return true,
        };
        let raw = Bytes::from(answer.replace(['\n', '\r'], " "));
        self.put(at, Kind::Received { raw, exchange: None }, Vec::new());
        true
    }
}

/// A result as MCP has it: a trace often keeps the structured part alone.
fn result(r: &str) -> String {
    let is_mcp = raw::get(r, "content").is_some_and(|c| raw::items(c).is_some())
        || raw::get(r, "structuredContent").is_some();
    if is_mcp {
        return r.to_owned();
    }
    let text = raw::as_str(r).unwrap_or_else(|| r.to_owned());
    let content = format!(r#"[{{"type":"text","text":{}}}]"#, quote(&text));
    if raw::is_object(r) {
        format!(r#"{{"content":{content},"structuredContent":{r}}}"#)
    } else {
        format!(r#"{{"content":{content}}}"#)
    }
}
