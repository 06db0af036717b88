//! Lines of a trace to facts, one after the other, in whatever form the file has: a recording, the neutral form of a
//! log, or a trace list. Keeps nothing of what has passed but the numbers that count on.

use super::fact::{At, Fact, Speaker};
use super::lean;
use crate::journal::MODERN;
use crate::journal::event::{Http, Kind, Note, Transport};
use crate::journal::exchange::is_event_stream;
use crate::journal::fold::Ended;
use crate::json::raw;
use crate::procs::Left;
use crate::record::entry::{Line, What, decode, fast_instant, resumes_stream};
use crate::recording::import::Form;
use crate::time::Time;
use std::borrow::Cow;

/// Headers that say who asks (RFC 9110, section 11.6.2, and what is met in the field).
const CREDENTIALS: [&str; 5] = ["authorization", "x-api-key", "api-key", "x-auth-token", "cookie"];

/// Reads the lines of one file.
#[derive(Debug, Clone)]
pub struct Reader {
    form: Form,
    base: Numbers,
    top: Numbers,
    /// Of the neutral form: which life of the server.
    generation: u32,
    seq: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Numbers {
    seq: u64,
    generation: u32,
    exchange: u64,
}

impl Reader {
    /// At the beginning of a file of this form.
    pub fn new(form: Form) -> Reader {
        Reader { form, base: Numbers::default(), top: Numbers::default(), generation: 0, seq: 0 }
    }

    /// One line, or one item of a list. What it says is handed to `each`.
    pub fn line(&mut self, number: u64, bytes: &[u8], each: &mut impl FnMut(At, Fact<'_>)) {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let bad = |why: String| (At { line: number, ..At::default() }, Fact::Bad(why));
        let text = match std::str::from_utf8(bytes) {
            Ok(t) if number == 1 => t.trim_start_matches('\u{feff}'),
            Ok(t) => t,
            Err(e) => {
                let (at, fact) = bad(format!("no UTF-8 at byte {}", e.valid_up_to()));
                return each(at, fact);
            }
        };
        let known = match self.form {
            Form::Recording => self.recorded(number, text, each),
            Form::Neutral => self.neutral(number, text, each),
            Form::Trace => self.traced(number, text, each),
        };
        if let Err(why) = known {
            let (at, fact) = bad(why);
            each(at, fact);
        }
    }

    fn recorded(
        &mut self,
        number: u64,
        text: &str,
        each: &mut impl FnMut(At, Fact<'_>),
    ) -> Result<(), String> {
        let mut m = Members::default();
        if lean::members(text, |k, v| m.take(k, v)).is_none() {
            let whole = text.trim_end().ends_with('}');
            return Err(if whole { "no JSON object" } else { "torn: it has no end" }.into());
        }
        if let Some(frame) = m.frame().filter(|_| matches!(m.kind, "\"sent\"" | "\"received\"")) {
            let at = self.place(number, &m)?;
            let exchange = m.exchange.and_then(|n| n.parse::<u64>().ok()).map(|x| self.exchange(x));
            let fact = if m.kind == "\"sent\"" {
                let of = m.call.and_then(|n| n.parse::<u64>().ok());
                Fact::Sent {
                    frame,
                    exchange,
                    of: of.filter(|_| m.purpose == "\"follow_up\"").map(|n| n + self.base.seq),
                    speaker: Speaker::default(),
                }
            } else {
                Fact::Received { frame, exchange }
            };
            each(at, fact);
            return Ok(());
        }
        if m.kind == "\"noise\""
            && let Some(text) = m.text.filter(|t| t.contains("id")).and_then(lean::text)
        {
            each(self.place(number, &m)?, Fact::Noise { text });
            return Ok(());
        }
        if matches!(m.kind, "\"stderr\"" | "\"noise\"" | "\"part\"") {
            each(self.place(number, &m)?, Fact::Other);
            return Ok(());
        }
        let entry = match decode(text.as_bytes()) {
            Line::Header(_) => {
                self.base = self.top;
                return Ok(());
            }
            Line::Bad(why) => return Err(why),
            Line::Other => return Ok(()),
            Line::Entry(e) => e,
        };
        let at = self.at(number, entry.seq, Some(entry.at), entry.generation);
        let fact = match &entry.what {
            What::Event(kind) => self.event(kind, &entry.wire.headers),
            What::Gap { events, .. } => Fact::Lost(*events),
            What::Part { .. } | What::StdinClosed => Fact::Other,
        };
        each(at, fact);
        Ok(())
    }

    fn event<'a>(&mut self, kind: &'a Kind, headers: &[(String, String)]) -> Fact<'a> {
        match kind {
            Kind::Opened { transport } => {
                Fact::Opened { http: matches!(transport, Transport::Http { .. }) }
            }
            Kind::Sent { raw, exchange, .. } => Fact::Sent {
                frame: String::from_utf8_lossy(raw),
                exchange: exchange.map(|x| self.exchange(x)),
                of: None,
                speaker: speaker(headers),
            },
            Kind::Received { raw, exchange } => Fact::Received {
                frame: String::from_utf8_lossy(raw),
                exchange: exchange.map(|x| self.exchange(x)),
            },
            Kind::Http { exchange, what } => {
                let exchange = self.exchange(*exchange);
                match what {
                    Http::Request { method, .. } => Fact::Request {
                        exchange,
                        method: method.clone(),
                        speaker: speaker(headers),
                        resumes: method == "GET" && resumes_stream(headers),
                    },
                    Http::Resuming { .. } => Fact::Resumes { exchange },
                    Http::Endpoint { .. } => Fact::Apart { exchange },
                    Http::Unreadable { why } => Fact::Unreadable { exchange, why: why.clone() },
                    Http::Status { status, session, content_type, .. } => Fact::Status {
                        exchange,
                        status: *status,
                        session: session.is_some(),
                        stream: content_type.as_deref().is_some_and(is_event_stream),
                    },
                    Http::Redirected { .. } => Fact::Redirected { exchange },
                    Http::Body { raw, .. } => {
                        Fact::Body { exchange, text: String::from_utf8_lossy(raw) }
                    }
                    Http::End => Fact::Over { exchange, failed: None },
                    Http::Failed { why, connected } => {
                        Fact::Over { exchange, failed: Some((why.clone(), *connected)) }
                    }
                    _ => Fact::Other,
                }
            }
            Kind::Agreed { protocol } => Fact::Agreed { legacy: protocol != MODERN },
            Kind::StdoutClosed => Fact::Ended("the server closed its stdout".into()),
            Kind::Exit { code, signal, left } => {
                let gone_at = (*left == Left::Nobody).then_some(Time(0));
                let ended =
                    Ended { at: Time(0), code: *code, signal: *signal, gone_at, launcher: false };
                Fact::Ended(format!("the server's process ended: {}", ended.words()))
            }
            Kind::NotWritten { sent, left, .. } => {
                Fact::NotWritten { sent: sent + self.base.seq, left: *left }
            }
            Kind::Note(Note::TimedOut { call, .. }) => {
                Fact::GivenUp { sent: call + self.base.seq, why: "no answer within its limit" }
            }
            Kind::Note(Note::NoAnswer { call, why }) => {
                Fact::NoAnswer { sent: call + self.base.seq, why: why.clone() }
            }
            Kind::Note(Note::Cancelled { call } | Note::StoppedWaiting { call }) => {
                Fact::GivenUp { sent: call + self.base.seq, why: "given up by the client" }
            }
            _ => Fact::Other,
        }
    }

    fn exchange(&mut self, x: u64) -> u64 {
        let x = x.saturating_add(self.base.exchange);
        self.top.exchange = self.top.exchange.max(x);
        x
    }

    fn place(&mut self, number: u64, m: &Members<'_>) -> Result<At, String> {
        let seq = m.seq.parse().map_err(|_| "no line of a recording: it has no seq".to_owned())?;
        let time = m.at.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
        let time = time.and_then(|t| fast_instant(t.as_bytes()));
        Ok(self.at(number, seq, time, m.generation.parse().unwrap_or(0)))
    }

    fn at(&mut self, line: u64, seq: u64, time: Option<Time>, generation: u32) -> At {
        let seq = seq.saturating_add(self.base.seq);
        let generation =
            if generation > 0 { generation.saturating_add(self.base.generation) } else { 0 };
        self.top.seq = self.top.seq.max(seq);
        self.top.generation = self.top.generation.max(generation);
        At { line, seq, time, generation }
    }

    fn neutral(
        &mut self,
        line: u64,
        text: &str,
        each: &mut impl FnMut(At, Fact<'_>),
    ) -> Result<(), String> {
        let (mut t, mut dir, mut msg, mut words, mut event, mut headers) = ("", "", "", "", "", "");
        lean::members(text, |k, v| match k {
            "t" => t = v,
            "dir" => dir = v,
            "msg" => msg = v,
            "text" => words = v,
            "event" => event = v,
            "headers" => headers = v,
            _ => {}
        })
        .ok_or_else(|| "torn, or no JSON object".to_owned())?;
        let time = t.parse::<f64>().ok().and_then(Time::from_seconds);
        if time.is_none() || dir.is_empty() {
            return Err("nothing of a session: it has no t and dir".into());
        }
        let begins = self.generation == 0 || (dir == "\"proc\"" && event == "\"start\"");
        if begins {
            self.generation += 1;
            self.seq += 1;
            let at = At { line, seq: self.seq, time, generation: self.generation };
            each(at, Fact::Opened { http: false });
            if dir == "\"proc\"" && event == "\"start\"" {
                return Ok(());
            }
        }
        self.seq += 1;
        let at = At { line, seq: self.seq, time, generation: self.generation };
        let frame = || {
            if msg.is_empty() {
                lean::text(words).unwrap_or(Cow::Borrowed(""))
            } else {
                Cow::Borrowed(msg)
            }
        };
        match dir {
            "\"out\"" => {
                let speaker =
                    if headers.is_empty() { Speaker::default() } else { neutral_speaker(headers) };
                each(at, Fact::Sent { frame: frame(), exchange: None, of: None, speaker });
            }
            "\"in\"" => each(at, Fact::Received { frame: frame(), exchange: None }),
            "\"proc\"" if event == "\"exit\"" => {
                let whole = |key: &str| lean::get(text, key).and_then(|n| n.parse::<i32>().ok());
                let ended = Ended {
                    at: Time(0),
                    code: whole("code"),
                    signal: whole("signal"),
                    gone_at: Some(Time(0)),
                    launcher: false,
                };
                each(at, Fact::Ended(format!("the server's process ended: {}", ended.words())));
            }
            "\"err\"" | "\"proc\"" => each(at, Fact::Other),
            _ => return Err("nothing of a session: its dir is none of out, in, err, proc".into()),
        }
        Ok(())
    }

    fn traced(
        &mut self,
        line: u64,
        text: &str,
        each: &mut impl FnMut(At, Fact<'_>),
    ) -> Result<(), String> {
        let (mut tool, mut args, mut result, mut error) = (None, None, None, None);
        lean::members(text, |k, v| match k {
            "tool" | "name" => tool = lean::text(v),
            "arguments" | "args" => args = Some(v),
            "result" => result = Some(v),
            "error" => error = Some(v),
            _ => {}
        })
        .ok_or_else(|| "torn, or no JSON object".to_owned())?;
        let Some(tool) = tool else { return Err("no call: it has no tool".into()) };
        if self.seq == 0 {
            each(At { line, seq: 0, time: None, generation: 1 }, Fact::Opened { http: false });
        }
        // As the conversion to a recording counts: a call, and its answer where there is one.
        let has = |v: Option<&str>| v.is_some_and(|v| !raw::is_null(v));
        self.seq += if self.seq == 0 { 2 } else { 1 };
        let at = At { line, seq: self.seq, time: None, generation: 1 };
        each(
            at,
            Fact::Traced {
                tool,
                args: args.filter(|a| !raw::is_null(a)).unwrap_or("{}"),
                result: result.filter(|r| !raw::is_null(r)),
                error: error.filter(|r| !raw::is_null(r)),
            },
        );
        self.seq += u64::from(has(result) || has(error));
        Ok(())
    }
}

/// The members of a recording's line that are needed of most lines, raw.
#[derive(Default)]
struct Members<'a> {
    seq: &'a str,
    at: &'a str,
    generation: &'a str,
    kind: &'a str,
    purpose: &'a str,
    text: Option<&'a str>,
    exchange: Option<&'a str>,
    call: Option<&'a str>,
}

impl<'a> Members<'a> {
    fn take(&mut self, key: &'a str, value: &'a str) {
        match key {
            "seq" => self.seq = value,
            "at" => self.at = value,
            "gen" => self.generation = value,
            "kind" => self.kind = value,
            "purpose" => self.purpose = value,
            "text" => self.text = Some(value),
            "exchange" => self.exchange = Some(value),
            "call" => self.call = Some(value),
            _ => {}
        }
    }

    /// Bytes that are no UTF-8 are read the slow way.
    fn frame(&self) -> Option<Cow<'a, str>> {
        lean::text(self.text?)
    }
}

/// Who asks, by headers as a recording has them. What was replaced on write can't be told apart.
fn speaker(headers: &[(String, String)]) -> Speaker {
    let mut s = Speaker::default();
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        if name == "mcp-session-id" {
            s.session = number(value);
        } else if CREDENTIALS.contains(&name.as_str()) {
            s.credential = s.credential.wrapping_add(lean::mix(number(&name), number(value)));
        }
    }
    s
}

fn neutral_speaker(headers: &str) -> Speaker {
    let mut all = Vec::new();
    let told = lean::members(headers, |k, v| {
        if let Some(v) = lean::text(v) {
            all.push((k.to_owned(), v.into_owned()));
        }
    });
    told.map_or(Speaker::default(), |()| speaker(&all))
}

fn number(text: &str) -> u64 {
    lean::hash(text.as_bytes()).max(1)
}
