//! One life of an endpoint as the fold keeps it: how it was reached, its bounded tails, how it ended.

use super::event::{LinkState, Transport};
use super::launcher::runs_elsewhere;
use crate::procs::{Left, Process};
use crate::time::Time;
use bytes::Bytes;
use std::collections::VecDeque;

/// Recorded calls are counted from here where they stand beside our own, so that they are never taken for them.
pub const RECORDED_CALLS: u64 = 1 << 48;
/// See [`RECORDED_CALLS`].
pub const RECORDED_GENERATIONS: u32 = 100_000;

/// `generation 2`, or `the agent's generation 2`.
pub fn generation_name(n: u32) -> String {
    match n.checked_sub(RECORDED_GENERATIONS) {
        Some(n) => format!("the agent's generation {n}"),
        None => format!("generation {n}"),
    }
}

/// Lines and bytes kept of a generation's stderr, and of its noise.
const TAIL_LINES: usize = 2_000;
const TAIL_BYTES: usize = 1 << 20;
const LINE_BYTES: usize = 16 << 10;

/// A bounded tail of lines, with a count of what it let go.
#[derive(Debug, Clone, Default)]
pub struct Tail {
    lines: VecDeque<(Time, Bytes)>,
    bytes: usize,
    /// Lines that are no longer kept.
    pub dropped: u64,
}

impl Tail {
    pub(super) fn push(&mut self, at: Time, raw: &Bytes) {
        // A piece of a huge line is copied: a slice would keep the whole of it alive.
        let line = match raw.len() {
            n if n > LINE_BYTES => {
                let mark = format!(" … ({} bytes more)", n - LINE_BYTES);
                [&raw[..LINE_BYTES], mark.as_bytes()].concat().into()
            }
            _ => raw.clone(),
        };
        self.bytes += line.len();
        self.lines.push_back((at, line));
        while self.lines.len() > TAIL_LINES || self.bytes > TAIL_BYTES {
            let Some((_, old)) = self.lines.pop_front() else { break };
            self.bytes -= old.len();
            self.dropped += 1;
        }
    }
    /// The kept lines, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Time, &Bytes)> + ExactSizeIterator {
        self.lines.iter().map(|(t, b)| (*t, b))
    }
    /// How many lines are kept.
    pub fn len(&self) -> usize {
        self.lines.len()
    }
    /// How many lines came in all.
    pub fn seen(&self) -> u64 {
        self.dropped + self.lines.len() as u64
    }
    /// Nothing kept.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
    /// The newest `n` lines, oldest first, decoded lossily.
    pub fn last(&self, n: usize) -> Vec<String> {
        let skip = self.lines.len().saturating_sub(n);
        self.lines.iter().skip(skip).map(|(_, b)| String::from_utf8_lossy(b).into_owned()).collect()
    }
}

/// Whether `word` stands in `line` with nothing of a word around it.
fn holds_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let mut from = 0;
    while let Some(at) = line[from..].find(word) {
        let (start, end) = (from + at, from + at + word.len());
        let before = line[..start].chars().next_back().is_some_and(part);
        let after = line[end..].chars().next().is_some_and(part);
        if !before && !after {
            return true;
        }
        from = end;
    }
    false
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// When it was noticed.
    pub at: Time,
    /// The exit code, when it exited.
    pub code: Option<i32>,
    /// The signal, when one ended it.
    pub signal: Option<i32>,
    /// Since when nothing that it started is left. `None`: something may still run (the child was a launcher,
    /// say, perhaps of a server that is elsewhere), so that its end is not the server's.
    pub gone_at: Option<Time>,
    /// What it had started was seen to outlive it: the code or signal is a launcher's, and how the server ended was not
    /// seen.
    pub launcher: bool,
}

impl Ended {
    /// The end as a sentence that claims no more than was seen; `left`: what of all that it started goes on.
    pub fn sentence(self, left: &Left) -> String {
        let how = self.words();
        match (self.gone_at, left) {
            (_, Left::Nobody) if self.launcher => format!("the server is gone: {}", self.how()),
            (Some(_), _) => format!("the server process ended: {how}"),
            (None, Left::Nobody) => {
                format!(
                    "the process that redial started ended ({how}), but {}",
                    Left::Perhaps.words()
                )
            }
            (None, left) => {
                format!("the process that redial started ended ({how}), but {}", left.words())
            }
        }
    }
    /// How the server ended, as far as that was seen: a launcher's exit code is not its server's.
    pub fn how(self) -> String {
        if self.launcher {
            format!(
                "nothing of what was started is left ({} was its launcher's; how the server itself ended was not seen)",
                self.words()
            )
        } else {
            self.words()
        }
    }
    /// `exit code 137` or `signal 9 (SIGKILL)`: the two are told apart.
    pub fn words(self) -> String {
        match (self.code, self.signal) {
            (_, Some(9)) => "signal 9 (SIGKILL)".into(),
            (_, Some(11)) => "signal 11 (SIGSEGV)".into(),
            (_, Some(6)) => "signal 6 (SIGABRT)".into(),
            (_, Some(15)) => "signal 15 (SIGTERM)".into(),
            (_, Some(s)) => format!("signal {s}"),
            (Some(c), None) => format!("exit code {c}"),
            (None, None) => "an unknown end".into(),
        }
    }
}

/// Why nothing can come from a server that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Mute {
    /// Nothing is known that keeps it.
    #[default]
    No,
    /// It has closed its stdout.
    Closed,
    /// The kernel has stopped this process of it.
    Stopped(Process),
}

/// Of a server that was stopped and is no longer.
pub const GOES_ON: &str = "the server was stopped, and goes on";

/// Of a server that the kernel has stopped: who, and what lets it go on. May hold foreign text.
pub fn stopped_words(who: &Process) -> String {
    let Process { pid, name } = who;
    format!(
        "the server is stopped: pid {pid}, {name:?}, by a signal; kill -CONT {pid} lets it go on"
    )
}

/// What a command's end is told as, while its pipes are held. May hold foreign text.
pub fn outlived_words(code: Option<i32>, signal: Option<i32>, left: &Left) -> String {
    let how = Ended { at: Time(0), code, signal, gone_at: None, launcher: false }.words();
    let who = match left {
        Left::Nobody => Left::Perhaps.words(),
        left => left.words(),
    };
    format!(
        "the command ended ({how}), but {who}, and its pipes are held: what passes is taken down until they are closed"
    )
}

/// One life of a child process, or one HTTP session.
#[derive(Debug, Clone)]
pub struct Generation {
    /// From 1.
    pub n: u32,
    /// When it was opened.
    pub opened_at: Time,
    /// How it is reached.
    pub transport: Transport,
    /// The HTTP session id, when the server gave one.
    pub session_id: Option<String>,
    /// How the child ended.
    pub ended: Option<Ended>,
    /// What it left behind then, as far as anybody could look.
    pub left: Left,
    /// Its command ended before its pipes were closed: a launcher.
    pub outlived: bool,
    /// What it said on stderr before the first call was sent to it: of itself, since it has met nobody yet. Bounded.
    pub boot: Vec<(Time, Bytes)>,
    /// The child's stderr.
    pub stderr: Tail,
    /// Lines on stdout that are not JSON-RPC.
    pub noise: Tail,
    /// Noise lines seen in all.
    pub noise_seen: u64,
    /// redial was ending it, and why.
    pub ending: Option<String>,
    /// The server has not read what was sent from this event on.
    pub unread_from: Option<u64>,
    /// The child closed stdout and lives on.
    pub stdout_closed: bool,
    /// The process of it that the kernel has stopped.
    pub stopped: Option<Process>,
}

/// Lines kept of what a server says when it starts, and bytes of each.
const BOOT_LINES: usize = 40;
const BOOT_BYTES: usize = 1 << 10;

impl Generation {
    /// A line of its stderr that came before any call was sent to it.
    pub(super) fn booting(&mut self, at: Time, raw: &Bytes) {
        if self.boot.len() < BOOT_LINES {
            self.boot.push((at, Bytes::copy_from_slice(&raw[..raw.len().min(BOOT_BYTES)])));
        }
    }

    /// Whether it said `word`, as a whole word, before the first call was sent to it and before `by`.
    pub fn named_itself(&self, word: &str, by: Time) -> bool {
        let said = self.boot.iter().filter(|(at, _)| *at <= by);
        said.map(|(_, line)| String::from_utf8_lossy(line)).any(|line| holds_word(&line, word))
    }

    /// Why nothing can come from it, though it has not ended.
    pub fn mute(&self) -> Mute {
        match (&self.stopped, self.stdout_closed) {
            (Some(who), _) => Mute::Stopped(who.clone()),
            (None, true) => Mute::Closed,
            (None, false) => Mute::No,
        }
    }

    /// Reached over HTTP.
    pub fn is_http(&self) -> bool {
        matches!(self.transport, Transport::Http { .. })
    }

    /// Its child may only be the near end of a server that runs elsewhere.
    pub(super) fn is_elsewhere(&self) -> bool {
        match &self.transport {
            Transport::Stdio { command, .. } => runs_elsewhere(command),
            Transport::Http { .. } => false,
        }
    }
}

/// Where the link stands, since when and why.
#[derive(Debug, Clone)]
pub struct Link {
    /// The state.
    pub state: LinkState,
    /// Since when.
    pub since: Time,
    /// Why, in words.
    pub why: String,
}

/// What the server calls itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}
