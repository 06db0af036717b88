//! What every command that touched an endpoint reports: the call with its outcome, and the witnesses around
//! it (how the process ended, its last stderr lines, its noise).

use super::failure::ErrorJson;
use super::json::raw_value;
use super::plain::{Plain, Role};
use crate::client::Client;
use crate::error::{Error, Exit};
use crate::journal::call::{answer_text, structured_beside};
use crate::journal::fold::Tail;
use crate::journal::says::{Against, against};
use crate::journal::{AnswerStatus, Call, Outcome};
use crate::time::span;
use serde::Serialize;
use serde_json::value::RawValue;
use std::time::Duration;

/// How many of the server's last lines are kept for a report, of stderr and of noise.
const LINES: usize = 100;
/// How many of each are shown to people, and stand in each line of a batch.
const FEW: usize = 12;
/// stderr travels on its own pipe: what was written before an answer may be read after it. A report waits until
/// nothing has come for so long, or for all of the second.
const QUIET: Duration = Duration::from_millis(15);
const PATIENCE: Duration = Duration::from_millis(75);

/// How a child ended.
#[derive(Debug, Clone, Serialize)]
pub struct ExitJson {
    /// The exit code.
    pub code: Option<i32>,
    /// The signal.
    pub signal: Option<i32>,
}

/// The witnesses beside the wire.
#[derive(Debug, Clone, Serialize, Default)]
pub struct Witness {
    /// How the child ended; null while it lives and over HTTP.
    pub exit: Option<ExitJson>,
    /// The last stderr lines.
    pub stderr: Vec<String>,
    /// Earlier lines of it, which are not in the report.
    pub stderr_dropped: u64,
    /// The last lines on stdout that were not JSON-RPC.
    pub noise: Vec<String>,
    /// Earlier ones, which are not in the report.
    pub noise_dropped: u64,
    /// The protocol revision.
    pub protocol: Option<String>,
    /// In words, for people.
    #[serde(skip)]
    pub exit_words: Option<String>,
}

impl Witness {
    /// As it is now, for generation `n` or the newest.
    pub fn of(client: &Client, n: Option<u32>) -> Witness {
        client.journal().read(|s| {
            let g = n.and_then(|n| s.generation_n(n)).or(s.generation());
            let ended = g.and_then(|g| g.ended);
            let tail = |t: &Tail| (t.last(LINES), t.seen() - t.len().min(LINES) as u64);
            let (stderr, stderr_dropped) = g.map(|g| tail(&g.stderr)).unwrap_or_default();
            let (noise, noise_dropped) = g.map(|g| tail(&g.noise)).unwrap_or_default();
            let by_us = g.is_some_and(|g| g.ending.is_some());
            let whose = if by_us { "redial ended it" } else { "its process ended" };
            Witness {
                exit: ended.map(|e| ExitJson { code: e.code, signal: e.signal }),
                stderr,
                stderr_dropped,
                noise,
                noise_dropped,
                protocol: s.protocol.clone(),
                exit_words: ended.map(|e| format!("{whose}: {}", e.how())),
            }
        })
    }

    /// The same once its last words have had a moment to arrive.
    pub async fn after(client: &Client, n: Option<u32>) -> Witness {
        let said = || {
            client.journal().read(|s| {
                let g = n.and_then(|n| s.generation_n(n)).or(s.generation());
                g.map_or(0, |g| g.stderr.seen() + g.noise.seen())
            })
        };
        let quiet = async {
            let mut before = said();
            loop {
                tokio::time::sleep(QUIET).await;
                match said() {
                    now if now == before => return,
                    now => before = now,
                }
            }
        };
        if !client.endpoint().is_http() {
            tokio::time::timeout(PATIENCE, quiet).await.ok();
        }
        Witness::of(client, n)
    }

    /// The same for one line of many: fewer lines.
    pub fn short(mut self) -> Witness {
        let cut = |lines: &mut Vec<String>, dropped: &mut u64| {
            let more = lines.len().saturating_sub(FEW);
            lines.drain(..more);
            *dropped += more as u64;
        };
        cut(&mut self.stderr, &mut self.stderr_dropped);
        cut(&mut self.noise, &mut self.noise_dropped);
        self
    }

    /// The last lines of both, for people.
    pub fn tails(&self, p: &mut Plain, indent: &str) {
        let few = self.clone().short();
        let stderr = earlier(few.stderr_dropped);
        p.tail(&format!("{indent}server's last stderr lines{stderr}:"), &few.stderr);
        few.noise_tail(p, indent);
    }

    /// The last lines of noise.
    pub fn noise_tail(&self, p: &mut Plain, indent: &str) {
        let few = self.clone().short();
        let noise = earlier(few.noise_dropped);
        p.tail(&format!("{indent}its stdout that is not JSON-RPC{noise}:"), &few.noise);
    }

    /// The lines a person needs when something went wrong.
    pub fn plain(&self, p: &mut Plain) {
        if let Some(words) = &self.exit_words {
            p.field("server", Role::Bad, words);
        }
        self.tails(p, "");
    }
}

fn earlier(n: u64) -> String {
    if n == 0 { String::new() } else { format!(" ({n} earlier ones are not shown)") }
}

/// One call and what became of it (design: "call, reissue, a batch line").
#[derive(Debug, Serialize, Default)]
pub struct CallJson {
    pub tool: String,
    pub args: Option<Box<RawValue>>,
    pub outcome: &'static str,
    pub why: String,
    pub answer_status: Option<&'static str>,
    #[serde(skip)]
    said: Option<AnswerStatus>,
    #[serde(skip)]
    against: Option<Against>,
    pub sent: u32,
    pub rounds: u32,
    pub late: bool,
    pub result: Option<Box<RawValue>>,
    pub error: Option<Box<RawValue>>,
    #[serde(flatten)]
    pub witness: Witness,
    pub elapsed_ms: u64,
}

impl CallJson {
    /// From a settled call.
    pub fn new(call: &Call, witness: Witness) -> CallJson {
        let s = call.settled.as_ref();
        CallJson {
            tool: call.tool.clone(),
            args: call.args.as_deref().and_then(raw_value),
            outcome: call.outcome().map_or("unknown", Outcome::word),
            why: s.map(|s| s.why.clone()).unwrap_or_default(),
            answer_status: s.and_then(|s| s.answer_status).map(AnswerStatus::word),
            said: s.and_then(|s| s.answer_status),
            against: s
                .filter(|s| s.outcome == Outcome::Ok)
                .and_then(|s| against(s.result.as_deref()?, call.legacy)),
            sent: call.sent,
            rounds: call.rounds,
            late: s.is_some_and(|s| s.late),
            result: s.and_then(|s| s.result.as_deref()).and_then(raw_value),
            error: s.and_then(|s| s.error.as_deref()).and_then(raw_value),
            witness,
            elapsed_ms: s
                .map_or(0, |s| u64::try_from((s.at.0 - call.sent_at.0) / 1000).unwrap_or(0)),
        }
    }

    /// A call that was never made, because something stopped it; or, by the error's exit status, one of which
    /// nobody can say what became of it.
    pub fn failed(tool: &str, args: Option<&str>, error: &Error, witness: Witness) -> CallJson {
        let left = error.exit == Exit::Unknown;
        CallJson {
            tool: tool.to_owned(),
            args: args.and_then(raw_value),
            outcome: if left { Outcome::Unknown } else { Outcome::NotSent }.word(),
            why: error.what.clone(),
            sent: u32::from(left),
            error: ErrorJson::raw(error),
            witness,
            ..CallJson::default()
        }
    }

    /// The outcome in words, and how it looks.
    pub fn outcome_words(&self) -> (Role, String) {
        let role = match (self.outcome, self.said) {
            ("ok", Some(AnswerStatus::Done)) => Role::Good,
            ("ok", Some(AnswerStatus::Unsaid)) => Role::Text,
            ("ok" | "unknown", _) => Role::Warn,
            _ => Role::Bad,
        };
        let words = match self.said {
            Some(AnswerStatus::InProgress) => "ok, in progress".to_owned(),
            _ => self.outcome.replace('_', " "),
        };
        (role, words)
    }

    /// What a text of success must not be read without.
    pub fn denied(&self) -> Option<&Against> {
        let unknown = self.said == Some(AnswerStatus::Unknown);
        self.against.as_ref().filter(|a| a.structured || unknown)
    }

    /// The lines of one call for people.
    pub fn plain(&self, p: &mut Plain) {
        let (role, outcome) = self.outcome_words();
        let why = self.why.strip_prefix("the tool answered with an error: ").unwrap_or(&self.why);
        p.field("outcome", role, &format!("{outcome}: {}", clip(why)));
        if let Some(result) = &self.result {
            let text = answer_text(result.get());
            let beside = structured_beside(result.get()).filter(|_| !text.is_empty());
            let shown = if text.is_empty() { result.get().to_owned() } else { text };
            // What a tool said when it failed stands in the outcome already.
            if !self.why.ends_with(shown.trim()) {
                p.field("answer", Role::Text, &clip(&shown));
            }
            if let Some(structured) = beside {
                p.field("structured", Role::Text, &clip(structured));
            }
            if let Some(against) = self.denied() {
                p.field("", Role::Warn, &format!("but {}", against.words()));
            }
        }
        if let Some(error) = &self.error {
            p.field("error", Role::Text, &clip(error.get()));
        }
        let took = match self.elapsed_ms {
            ms @ 0..1000 => format!("{ms} ms"),
            ms => span(ms as f64 / 1000.0),
        };
        p.field("took", Role::Dim, &took);
        if matches!(self.outcome, "unknown" | "not_sent" | "refused") {
            self.witness.plain(p);
        } else if !matches!(role, Role::Good | Role::Text) {
            self.witness.tails(p, "");
        }
    }
}

/// A value for people is no dump: 40 lines of at most 4,000 characters; `--json` has all of it.
pub fn clip(text: &str) -> String {
    const LINES: usize = 40;
    const CHARS: usize = 4_000;
    let mut more = text.lines().nth(LINES).is_some();
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().take(LINES) {
        let end = line.char_indices().nth(CHARS).map(|(at, _)| at);
        more |= end.is_some();
        lines.push(line[..end.unwrap_or(line.len())].to_owned());
    }
    if more {
        lines.push(format!("… ({} bytes in all; --json has all of it)", text.len()));
    }
    lines.join("\n")
}

/// The exit status of a call's outcome. An answer of a tool that says it only reads is good as it is: what it
/// says of a request is about another call.
pub fn exit_of(call: &Call, reads_only: bool) -> Exit {
    match (call.outcome(), call.settled.as_ref().and_then(|s| s.answer_status)) {
        (Some(Outcome::Ok), Some(AnswerStatus::InProgress | AnswerStatus::Unknown))
            if !reads_only =>
        {
            Exit::Unknown
        }
        (Some(Outcome::Ok), _) => Exit::Good,
        (Some(Outcome::ToolError | Outcome::RpcError | Outcome::Refused), _) => Exit::Found,
        (Some(Outcome::NotSent), _) => Exit::Endpoint,
        (Some(Outcome::Unknown) | None, _) => Exit::Unknown,
    }
}

/// An error with what the server said last.
pub struct Failure {
    /// The error.
    pub error: Error,
    /// The witnesses, when an endpoint was involved.
    pub witness: Option<Witness>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { error, witness: None }
    }
}

/// What a command did: printed already, or to be printed by `main`'s one place for errors.
pub type Done = std::result::Result<Exit, Failure>;
