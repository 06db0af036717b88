//! A child process as an endpoint: started in its own process group, stdin written in order, stdout and
//! stderr drained from the first byte, its end told as it was (exit code or signal).
//!
//! Never starts a child by itself; the driver does. Never parses what the lines mean.

use super::conn::Conn;
use super::driver::LinkEvent;
use super::group::Group;
use super::outbox::{Out, Outbox, Taken, Wrote};
use crate::apart::own_session;
use crate::journal::{Kind, Note};
use crate::procs::{self, Family, Left};
use crate::wire::lines::{Line, Lines};
use bytes::Bytes;
use rustix::process::Signal;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};

/// The longest line taken whole; what goes beyond is counted.
const LINE_LIMIT: usize = 64 << 20;
/// The longest stderr line taken whole.
const STDERR_LINE_LIMIT: usize = 64 << 10;
/// How much of it is kept; the fold's tail keeps as much and no more.
const STDERR_SHOWN: usize = 15 << 10;
/// How long the pipes may lag behind the process's end: a grandchild may hold them open for ever.
const DRAIN: Duration = Duration::from_millis(300);
/// After this long without a byte taken a server counts as not reading its stdin.
const UNREAD: Duration = Duration::from_millis(250);
/// More than so many bytes for a stdin that isn't read, and a server's questions stay without answers.
const QUEUED: usize = 8 << 20;
const CLOSED: &str = "never sent: redial had closed the server's stdin";
/// How often is looked whether the kernel has stopped a child, and whether what an ended one left behind is still there.
const LOOK: Duration = Duration::from_millis(250);

/// The writing end of a child, and the levers to end it.
pub(super) struct Pipe {
    outbox: Arc<Outbox>,
    close_stdin: watch::Sender<bool>,
    group: Arc<Group>,
    exited: watch::Receiver<bool>,
    hurry: watch::Receiver<bool>,
}

/// How long each step of a child's end waits for it.
#[derive(Clone, Copy)]
pub(super) struct Grace {
    /// After its stdin was closed.
    pub eof: Duration,
    /// After SIGTERM.
    pub term: Duration,
}

/// What a started child needs to be attached to its generation.
pub(super) struct Started {
    child: Child,
    outbox: Arc<Outbox>,
    close_stdin: watch::Receiver<bool>,
    exited: watch::Sender<bool>,
    group: Arc<Group>,
    family: Option<Family>,
    /// Its process id.
    pub pid: Option<u32>,
}

/// Starts a child in a session and process group of its own: launchers and their grandchildren end together, and none
/// of them has a way to the user's terminal.
///
/// # Errors
/// The system's, when the program can't be started.
pub(super) fn start(
    command: &[String],
    env: &[(String, String)],
    cwd: Option<&PathBuf>,
    hurry: watch::Receiver<bool>,
) -> std::io::Result<(Pipe, Started)> {
    let Some((program, args)) = command.split_first() else {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "an empty command"));
    };
    let mut cmd = Command::new(program);
    cmd.args(args)
        .envs(env.iter().map(|(k, v)| (k, v)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    own_session(cmd.as_std_mut())?;
    if let Some(dir) = cwd {
        cmd.current_dir(dir);
    }
    let (mark, value) = procs::mark();
    cmd.env(mark, &value);
    let child = procs::own(|| cmd.spawn(), Child::id)?;
    let pid = child.id();
    let family = pid.map(|pid| Family::of(pid, Some(value)));
    let (close_stdin, closing) = watch::channel(false);
    let (exited_tx, exited) = watch::channel(false);
    let group = Arc::new(Group::of(pid));
    let outbox: Arc<Outbox> = Arc::default();
    let pipe = Pipe { outbox: outbox.clone(), close_stdin, group: group.clone(), exited, hurry };
    let exited = exited_tx;
    let started = Started { child, outbox, close_stdin: closing, exited, group, family, pid };
    Ok((pipe, started))
}

/// Runs a started child's pipes until it ends.
pub(super) fn attach(conn: &Arc<Conn>, started: Started) {
    let Started { mut child, outbox, close_stdin, exited, group, family, .. } = started;
    if let Some(stdin) = child.stdin.take() {
        tokio::spawn(write_all(conn.clone(), stdin, outbox, close_stdin));
    }
    let stdout = child.stdout.take().map(|pipe| tokio::spawn(read_stdout(conn.clone(), pipe)));
    let stderr = child.stderr.take().map(|pipe| tokio::spawn(read_stderr(conn.clone(), pipe)));
    tokio::spawn(wait(conn.clone(), child, (stdout, stderr), exited, (group, family)));
}

impl Pipe {
    /// Queues one frame; `done` is told when the pipe has all of it. After the process's end, or once its stdin was
    /// closed here, it is known not to leave.
    pub fn write(&self, conn: &Conn, seq: u64, raw: &Bytes, done: Option<oneshot::Sender<()>>) {
        let mut line = Vec::with_capacity(raw.len() + 1);
        line.extend_from_slice(raw);
        line.push(b'\n');
        let out = Out { seq, line: line.into(), done };
        if conn.is_over() {
            let why = "never sent: the server process has ended".to_owned();
            conn.log(Kind::NotWritten { sent: seq, why, left: false });
        } else if self.outbox.push(out).is_err() {
            conn.log(Kind::NotWritten { sent: seq, why: CLOSED.into(), left: false });
        }
    }

    /// Takes a frame back that nobody wants any more, if not a byte of it has left.
    pub fn take_back(&self, seq: u64) -> Taken {
        self.outbox.take_back(seq)
    }

    /// So much waits for the pipe that answering yet more questions would only fill memory.
    pub fn is_busy(&self) -> bool {
        let (frames, bytes) = self.outbox.waiting();
        frames > 4_096 || bytes > QUEUED
    }

    /// Ends the child: stdin closed, then SIGTERM, then SIGKILL of its whole group; each step waits its `grace`, or
    /// not at all once there is a hurry. What a child that ended before left behind is killed as well.
    pub async fn end(&self, grace: Grace) {
        self.close_stdin.send_replace(true);
        let (mut exited, mut hurry) = (self.exited.clone(), self.hurry.clone());
        let mut gone = async |wait: Duration| {
            tokio::select! {
                biased;
                gone = exited.wait_for(|e| *e) => gone.is_ok(),
                Ok(_) = hurry.wait_for(|h| *h) => false,
                () = tokio::time::sleep(wait) => false,
            }
        };
        if !gone(grace.eof).await {
            self.group.signal(Signal::TERM);
            if !gone(grace.term).await {
                self.group.signal(Signal::KILL);
                let mut exited = self.exited.clone();
                tokio::time::timeout(Duration::from_secs(1), exited.wait_for(|e| *e)).await.ok();
            }
        }
        // Grandchildren of a launcher that ended live on in the group.
        self.group.signal(Signal::KILL);
    }
}

async fn write_all(
    conn: Arc<Conn>,
    mut stdin: ChildStdin,
    outbox: Arc<Outbox>,
    mut closing: watch::Receiver<bool>,
) {
    loop {
        let out = tokio::select! {
            biased;
            out = outbox.next() => out,
            // Also when nobody is left who could send anything.
            _ = closing.wait_for(|c| *c) => break,
        };
        let seq = out.seq;
        match write_line(&conn, &out, &mut stdin, &outbox).await {
            // Whoever took it back has said so.
            Wrote::Nothing => {}
            Wrote::All => {
                if let Some(done) = out.done {
                    done.send(()).ok();
                }
            }
            Wrote::Broke(written, e) => {
                let what = if conn.is_over() {
                    "the server process has ended"
                } else {
                    "the server closed its stdin"
                };
                let (why, left) = match written {
                    0 => (format!("never sent: {what} ({e})"), false),
                    n => {
                        let of = out.line.len();
                        (format!("the write broke after {n} of {of} bytes: {e}"), true)
                    }
                };
                conn.log(Kind::NotWritten { sent: seq, why, left });
            }
        }
        outbox.finish();
    }
    drop(stdin);
    for out in outbox.close() {
        conn.log(Kind::NotWritten { sent: out.seq, why: CLOSED.into(), left: false });
    }
}

/// Writes one line. A server that takes nothing of it for a while is told of.
async fn write_line(conn: &Conn, out: &Out, stdin: &mut ChildStdin, outbox: &Outbox) -> Wrote {
    let tell = |full| conn.log(Kind::Note(Note::Stdin { from: out.seq, full }));
    let (mut full, mut seen) = (false, 0);
    loop {
        match tokio::time::timeout(UNREAD, outbox.write(&out.line, &mut *stdin)).await {
            Ok(wrote) => {
                if full && !matches!(wrote, Wrote::Broke(..)) {
                    tell(false);
                }
                return wrote;
            }
            Err(_) => {
                let written = outbox.written();
                if written == seen && !full {
                    full = true;
                    tell(true);
                }
                seen = written;
            }
        }
    }
}

/// How long a message that is over the limit may go on before it is told: most have an end, and then a size.
pub(super) const OVER: Duration = Duration::from_secs(2);

/// Between two chunks of a flood everybody else gets a turn, limits and people included: a reader that always
/// has more to read would otherwise keep the runtime from looking at its clock.
pub(super) async fn breathe() {
    tokio::task::yield_now().await;
}

async fn read_stdout(conn: Arc<Conn>, mut pipe: impl AsyncRead + Unpin) {
    let mut lines = Lines::new(LINE_LIMIT);
    let mut chunk = vec![0; 64 << 10];
    let mut over: Option<Instant> = None;
    loop {
        match pipe.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(n) => lines.feed(&chunk[..n], |line| take_line(&conn, line.raw, line.cut)),
        }
        over = lines.is_over().then(|| over.unwrap_or_else(Instant::now));
        if over.is_some_and(|since| since.elapsed() > OVER)
            && let Some(line) = lines.give_up()
        {
            take_line(&conn, line.raw, line.cut);
        }
        breathe().await;
    }
    if let Some(line) = lines.finish() {
        take_line(&conn, line.raw, line.cut);
    }
    // An exit usually comes with the end of stdout; only a process that goes on is told of here.
    tokio::spawn(async move {
        tokio::time::sleep(DRAIN).await;
        if !conn.is_over() {
            conn.log(Kind::StdoutClosed);
            conn.end("the server closed its stdout");
            conn.events.send(LinkEvent::StdoutClosed { generation: conn.generation }).ok();
        }
    });
}

fn take_line(conn: &Arc<Conn>, raw: Bytes, cut: u64) {
    if cut > 0 || !conn.incoming(raw.clone(), None) {
        conn.log(Kind::Noise { raw: raw.clone(), cut });
        conn.no_json(&raw, None);
    }
}

async fn read_stderr(conn: Arc<Conn>, mut pipe: impl AsyncRead + Unpin) {
    let mut lines = Lines::new(STDERR_LINE_LIMIT);
    let mut chunk = vec![0; 64 << 10];
    let log = |line: Line| {
        conn.log(Kind::Stderr { raw: stderr_line(&line) });
    };
    loop {
        match pipe.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(n) => lines.feed(&chunk[..n], log),
        }
        breathe().await;
    }
    if let Some(line) = lines.finish() {
        log(line);
    }
}

/// A line of stderr as a person would see it: a progress bar redraws itself after each carriage return, so its last
/// state counts, unless that is blank; what stands before it is not dropped when it is the reason. What was over the
/// limit is counted.
fn stderr_line(line: &Line) -> Bytes {
    let pieces: Vec<&[u8]> =
        line.raw.split(|b| *b == b'\r').filter(|p| !p.trim_ascii().is_empty()).collect();
    let redraws = pieces.len() > 2;
    let shown: Vec<u8> = match (redraws, pieces.last()) {
        // Few pieces are no bar: nothing of them is worth losing.
        (false, Some(_)) => pieces.join(&b" | "[..]),
        (true, Some(last)) => last.to_vec(),
        (_, None) => Vec::new(),
    };
    let over = shown.len().saturating_sub(STDERR_SHOWN);
    match line.cut + over as u64 {
        0 if pieces.len() == 1 && shown.len() == line.raw.len() => line.raw.clone(),
        0 => shown.into(),
        n => {
            let mark = format!(" … ({n} bytes more)");
            [&shown[..shown.len() - over], mark.as_bytes()].concat().into()
        }
    }
}

type Reading = Option<tokio::task::JoinHandle<()>>;

async fn wait(
    conn: Arc<Conn>,
    mut child: Child,
    (mut stdout, stderr): (Reading, Reading),
    exited: watch::Sender<bool>,
    (group, family): (Arc<Group>, Option<Family>),
) {
    use std::os::unix::process::ExitStatusExt;
    let mut ends = signal(SignalKind::child()).ok();
    let (mut seen, mut told) = (None, None);
    let status = loop {
        let end = async {
            match &mut ends {
                Some(stream) => stream.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            status = child.wait() => break status,
            // What it detaches comes to us as well, and is ours to fetch when it ends.
            _ = end => procs::reap(),
            () = tokio::time::sleep(LOOK) => {
                // Told when it has lasted for two looks: some tools stop and go on many times a second.
                let now = family.as_ref().and_then(Family::stopped);
                if now != told && (now == seen || now.is_none()) {
                    conn.log(Kind::Note(Note::Stopped { who: now.clone() }));
                    told.clone_from(&now);
                }
                seen = now;
            }
        }
    };
    group.leader_reaped();
    exited.send_replace(true);
    conn.mark_over();
    // What the process wrote before it died is still in the pipes: read it before the death is told, or an
    // answer that came in time would be called unknown. And only who holds no pipe of ours any more and left
    // nobody in the group has taken everything along: a launcher may be dead while its server works on.
    let last_words = async {
        if let Some(t) = stderr {
            tokio::time::timeout(DRAIN, t).await.ok();
        }
    };
    let gone = tokio::time::timeout(DRAIN, all_gone(&mut stdout, &group, &family, DRAIN / 30));
    let (gone, ()) = tokio::join!(gone, last_words);
    let family_left = family.as_ref().and_then(Family::left);
    let left = match (gone.is_ok() && status.is_ok(), &family_left) {
        (true, _) => Left::Nobody,
        (false, Some(these)) if !these.is_empty() => Left::These(these.clone()),
        (false, _) => Left::Perhaps,
    };
    let certain = left == Left::Nobody;
    let (code, signal) = match &status {
        Ok(s) => (s.code(), s.signal()),
        Err(_) => (None, None),
    };
    conn.log(Kind::Exit { code, signal, left });
    let why = conn.journal.read(|s| {
        let ended = s.generation_n(conn.generation).and_then(|g| Some((g.ended?, &g.left)));
        ended.map_or_else(|| "the server process ended".into(), |(e, left)| e.sentence(left))
    });
    conn.end(&why);
    conn.events.send(LinkEvent::Exited { generation: conn.generation, why }).ok();
    if !certain && family_left.is_some() {
        all_gone(&mut stdout, &group, &family, LOOK).await;
        conn.log(Kind::AllGone);
    }
}

/// Waits until nobody holds the child's stdout and nobody that it started is left, in its group or any other, with a
/// look at each `pause`. Where nobody can look, for ever.
async fn all_gone(stdout: &mut Reading, group: &Group, family: &Option<Family>, pause: Duration) {
    // The group is looked at all the while, so that it is forgotten as soon as it is empty.
    loop {
        let read_on = stdout.as_ref().is_some_and(|t| !t.is_finished());
        procs::reap();
        let alone = || family.as_ref().and_then(Family::is_gone) == Some(true);
        if group.is_empty() && !read_on && alone() {
            return;
        }
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_stderr_keeps_what_a_person_would_read() {
        for (raw, cut, shown) in [
            ("plain", 0, "plain"),
            ("FATAL: no key set\r", 0, "FATAL: no key set"),
            ("FATAL: no key set\r\r", 0, "FATAL: no key set"),
            ("reason: disk full\rretry", 0, "reason: disk full | retry"),
            ("10 %\r50 %\r90 %", 0, "90 %"),
            ("10 %\r50 %\r90 %\r  ", 0, "90 %"),
            ("half", 7, "half … (7 bytes more)"),
            ("\r\r", 0, ""),
        ] {
            let line = Line { raw: Bytes::from_static(raw.as_bytes()), cut };
            assert_eq!(String::from_utf8_lossy(&stderr_line(&line)), shown, "{raw:?}");
        }
    }
}
