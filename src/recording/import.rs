//! Foreign forms, converted to a recording in memory: the trace list of a Python program,
//! `[{tool, arguments, result}]` (also one object a line), and the neutral form of a log, one object a line,
//! `{t, dir: out|in|err|proc, msg|text|event…}`. Secrets are hidden on the way, as they are on write.

use super::lines::Lines;
use super::{BadLine, foreign};
use crate::error::{Error, Result};
use crate::files;
use crate::journal::Kind;
use crate::journal::event::{Purpose, Transport};
use crate::json::loose::{at_the_place_of, loosened};
use crate::json::raw::{self, quote};
use crate::procs::Left;
use crate::record::entry::{self, Entry, Header, What, Wire};
use crate::record::redact::{Extra, Rules};
use crate::size::size;
use crate::time::Time;
use crate::wire::frame;
use crate::wire::id::Id;
use bytes::Bytes;
use serde_json::value::RawValue;
use std::path::Path;

/// The largest foreign file that is converted.
const LIMIT: u64 = 512 << 20;
/// So much of a file tells its form.
const HEAD: usize = 64 << 10;

/// Opens a recording, or converts what can be.
///
/// # Errors
/// Exit 6 when it can't be read, or is of a form that is neither; the form is named.
pub fn open(path: &Path) -> Result<Lines> {
    let failed = |e| failed(path, &e);
    let (lines, form) = look(path)?;
    if form == Form::Recording {
        return Ok(lines);
    }
    if lines.len().map_err(failed)? > LIMIT {
        let limit = size(LIMIT);
        let what = format!("{} is too large to be converted: over {limit}", path.display());
        return Err(Error::ledger(what).hint("split it, or take a part of it"));
    }
    let bytes = files::whole(path, LIMIT).map_err(failed)?;
    let at = std::fs::metadata(path).and_then(|m| m.modified()).ok();
    let at = at.and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    let began = Time(at.and_then(|d| i64::try_from(d.as_micros()).ok()).unwrap_or(0));
    let (text, bad) = convert(&bytes, form, began);
    Ok(Lines::memory(text, bad))
}

/// Opens a file that may be a trace of some form, and says which.
///
/// # Errors
/// As [`open`].
pub fn look(path: &Path) -> Result<(Lines, Form)> {
    let failed = |e| failed(path, &e);
    // Before it is opened: opening a pipe waits for somebody who fills it.
    if let Some(what) = files::not_ordinary(&path.metadata().map_err(failed)?) {
        let what = format!("{} is {what}, and no file with an end", path.display());
        return Err(
            Error::ledger(what).hint("a recording is read more than once: save it to a file first")
        );
    }
    let lines = Lines::open(path).map_err(failed)?;
    let head = lines.at(0, HEAD).map_err(failed)?;
    match form(&head) {
        Some(form) => Ok((lines, form)),
        None => {
            let name = foreign::name(&head);
            let what = format!("{} is no recording: it looks like {name}", path.display());
            Err(Error::ledger(what).hint(foreign::HOW_TO_CONVERT))
        }
    }
}

fn failed(path: &Path, e: &std::io::Error) -> Error {
    Error::ledger(format!("{} can't be read: {e}", path.display()))
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

/// Which of the forms that are read this is the beginning of; `None`: none of them. A file in which nothing stands yet is
/// a recording that begins.
pub fn form(head: &[u8]) -> Option<Form> {
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    if text.is_empty() {
        return Some(Form::Recording);
    }
    if let Some(items) = text.strip_prefix('[') {
        let items = items.trim_start();
        let mut values = serde_json::Deserializer::from_str(items).into_iter::<&RawValue>();
        // Of an item that is longer than what was read, its begin.
        let first = values.next().and_then(|v| Some(v.ok()?.get())).unwrap_or(items);
        let is_call = has(first, "tool") || has(first, "name");
        return (is_call || items.starts_with(']') || items.is_empty()).then_some(Form::Trace);
    }
    for line in text.lines() {
        if (has(line, "seq") && has(line, "kind")) || has(line, "redial") {
            return Some(Form::Recording);
        }
        // Of one that was cut in its first words, too.
        let alone = line.len() == text.len();
        if BEGINS.iter().any(|b| line.starts_with(b) || (alone && b.starts_with(line))) {
            return Some(Form::Recording);
        }
        let is = |value: &str| DIRECTIONS.contains(&value);
        if has(line, "t") && raw::get_str(line, "dir").map_or(has(line, "dir"), |d| is(&d)) {
            return Some(Form::Neutral);
        }
        if has(line, "tool") && has(line, "arguments") {
            return Some(Form::Trace);
        }
    }
    None
}

const BEGINS: [&str; 2] = [r#"{"redial":"recording""#, r#"{"seq":1,"at":""#];
const DIRECTIONS: [&str; 4] = ["out", "in", "err", "proc"];

/// Whether a line has a member of this name; of one that goes on behind what was read, whether the name stands in it.
fn has(line: &str, key: &str) -> bool {
    match raw::members(line) {
        Some(members) => members.iter().any(|(k, _)| k == key),
        None => line.starts_with('{') && line.contains(&format!("{}:", quote(key))),
    }
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
                Ok(text) if !text.trim_start().starts_with('{') => "no JSON object".into(),
                Ok(text) if raw::members(text).is_none() && !text.trim_end().ends_with('}') => {
                    "torn: it has no end".into()
                }
                Ok(text) if take(self, text) => continue,
                Ok(text) if raw::members(text).is_none() => "no JSON object".into(),
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

    fn neutral(&mut self, written: &str) -> bool {
        // A converter in Python writes NaN where its agent did.
        let loose = raw::members(written).is_none().then(|| loosened(written)).flatten();
        let line = loose.as_deref().unwrap_or(written);
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
            let msg = raw::get(line, "msg");
            let msg = match &loose {
                Some(loose) => msg.and_then(|m| at_the_place_of(written, loose, m)),
                None => msg,
            };
            let msg = msg.map(str::to_owned);
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
