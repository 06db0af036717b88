//! A child process as an endpoint: started in its own process group, stdin written in order, stdout and
//! stderr drained from the first byte, its end told as it was (exit code or signal).
//!
//! Never starts a child by itself; the driver does. Never parses what the lines mean.

use super::conn::Conn;
use super::driver::LinkEvent;
use super::group::Group;
use crate::journal::{Kind, Note};
use crate::wire::lines::Lines;
use bytes::Bytes;
use rustix::process::Signal;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, watch};

/// The longest line taken whole; what goes beyond is counted.
const LINE_LIMIT: usize = 64 << 20;
/// The longest stderr line taken whole.
const STDERR_LINE_LIMIT: usize = 64 << 10;
/// How long the pipes may lag behind the process's end: a grandchild may hold them open for ever.
const DRAIN: Duration = Duration::from_millis(300);
/// After this long without a byte taken a server counts as not reading its stdin.
const UNREAD: Duration = Duration::from_millis(250);
/// How often is looked whether what an ended child left behind is still there.
const LOOK: Duration = Duration::from_millis(250);

/// The writing end of a child, and the levers to end it.
pub(super) struct Pipe {
    queue: mpsc::UnboundedSender<(u64, Bytes)>,
    queued: Arc<AtomicUsize>,
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
    queue: mpsc::UnboundedReceiver<(u64, Bytes)>,
    queued: Arc<AtomicUsize>,
    close_stdin: watch::Receiver<bool>,
    exited: watch::Sender<bool>,
    group: Arc<Group>,
    /// Its process id.
    pub pid: Option<u32>,
}

/// Starts a child in a process group of its own, so that launchers and their grandchildren end together.
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
        .process_group(0)
        .kill_on_drop(true);
    if let Some(dir) = cwd {
        cmd.current_dir(dir);
    }
    let child = cmd.spawn()?;
    let pid = child.id();
    let (queue, inbox) = mpsc::unbounded_channel();
    let (close_stdin, closing) = watch::channel(false);
    let (exited_tx, exited) = watch::channel(false);
    let group = Arc::new(Group::of(pid));
    let queued: Arc<AtomicUsize> = Arc::default();
    let pipe =
        Pipe { queue, queued: queued.clone(), close_stdin, group: group.clone(), exited, hurry };
    let exited = exited_tx;
    let started = Started { child, queue: inbox, queued, close_stdin: closing, exited, group, pid };
    Ok((pipe, started))
}

/// Runs a started child's pipes until it ends.
pub(super) fn attach(conn: &Arc<Conn>, started: Started) {
    let Started { mut child, queue, queued, close_stdin, exited, group, .. } = started;
    if let Some(stdin) = child.stdin.take() {
        tokio::spawn(write_all(conn.clone(), stdin, (queue, queued), close_stdin));
    }
    let stdout = child.stdout.take().map(|pipe| tokio::spawn(read_stdout(conn.clone(), pipe)));
    let stderr = child.stderr.take().map(|pipe| tokio::spawn(read_stderr(conn.clone(), pipe)));
    tokio::spawn(wait(conn.clone(), child, (stdout, stderr), exited, group));
}

impl Pipe {
    /// Queues one frame; the writer adds the newline. After the process's end it is known not to leave.
    pub fn write(&self, conn: &Conn, seq: u64, raw: Bytes) {
        self.queued.fetch_add(1, Ordering::Relaxed);
        if conn.is_over() || self.queue.send((seq, raw)).is_err() {
            let why = "never sent: the server process has ended".to_owned();
            conn.log(Kind::NotWritten { sent: seq, why, left: false });
        }
    }

    /// Frames that wait for the pipe: a server that doesn't read its stdin lets them grow.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
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
    (mut queue, queued): (mpsc::UnboundedReceiver<(u64, Bytes)>, Arc<AtomicUsize>),
    mut closing: watch::Receiver<bool>,
) {
    loop {
        let (seq, raw) = tokio::select! {
            biased;
            next = queue.recv() => match next { Some(n) => n, None => return },
            _ = closing.wait_for(|c| *c) => break,
        };
        queued.fetch_sub(1, Ordering::Relaxed);
        if let Err((written, e)) = write_line(&conn, seq, &mut stdin, &raw).await {
            let what = if conn.is_over() {
                "the server process has ended"
            } else {
                "the server closed its stdin"
            };
            let (why, left) = match written {
                0 => (format!("never sent: {what} ({e})"), false),
                n => (format!("the write broke after {n} of {} bytes: {e}", raw.len() + 1), true),
            };
            conn.log(Kind::NotWritten { sent: seq, why, left });
        }
    }
    drop(stdin);
    while let Some((seq, _)) = queue.recv().await {
        let why = "never sent: redial had closed the server's stdin".to_owned();
        conn.log(Kind::NotWritten { sent: seq, why, left: false });
    }
}

/// Writes one line; on failure says how many bytes had been taken by the pipe. A server that takes none for a while
/// is told of.
async fn write_line(
    conn: &Conn,
    seq: u64,
    stdin: &mut ChildStdin,
    raw: &Bytes,
) -> Result<(), (usize, std::io::Error)> {
    let mut line = Vec::with_capacity(raw.len() + 1);
    line.extend_from_slice(raw);
    line.push(b'\n');
    let (mut done, mut full) = (0, false);
    let tell = |full| conn.log(Kind::Note(Note::Stdin { from: seq, full }));
    while done < line.len() {
        let written = tokio::select! {
            written = stdin.write(&line[done..]) => written,
            () = tokio::time::sleep(UNREAD), if !full => {
                full = true;
                tell(true);
                continue;
            }
        };
        match written {
            Ok(0) => return Err((done, std::io::ErrorKind::WriteZero.into())),
            Ok(n) => done += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err((done, e)),
        }
    }
    if full {
        tell(false);
    }
    Ok(())
}

/// Between two chunks of a flood everybody else gets a turn, limits and people included: a reader that always
/// has more to read would otherwise keep the runtime from looking at its clock.
pub(super) async fn breathe() {
    tokio::task::yield_now().await;
}

async fn read_stdout(conn: Arc<Conn>, mut pipe: impl AsyncRead + Unpin) {
    let mut lines = Lines::new(LINE_LIMIT);
    let mut chunk = vec![0; 64 << 10];
    loop {
        match pipe.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(n) => lines.feed(&chunk[..n], |line| take_line(&conn, line.raw, line.cut)),
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
        conn.log(Kind::Noise { raw, cut });
    }
}

async fn read_stderr(conn: Arc<Conn>, mut pipe: impl AsyncRead + Unpin) {
    let mut lines = Lines::new(STDERR_LINE_LIMIT);
    let mut chunk = vec![0; 64 << 10];
    let log = |raw: Bytes| {
        // A progress bar redraws itself after each carriage return: what a person would see is its last state.
        let from = raw.iter().rposition(|b| *b == b'\r').map_or(0, |p| p + 1);
        conn.log(Kind::Stderr { raw: raw.slice(from..) });
    };
    loop {
        match pipe.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(n) => lines.feed(&chunk[..n], |line| log(line.raw)),
        }
        breathe().await;
    }
    if let Some(line) = lines.finish() {
        log(line.raw);
    }
}

type Reading = Option<tokio::task::JoinHandle<()>>;

async fn wait(
    conn: Arc<Conn>,
    mut child: Child,
    (mut stdout, stderr): (Reading, Reading),
    exited: watch::Sender<bool>,
    group: Arc<Group>,
) {
    use std::os::unix::process::ExitStatusExt;
    let status = child.wait().await;
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
    let gone = tokio::time::timeout(DRAIN, all_gone(&mut stdout, &group, DRAIN / 30));
    let (gone, ()) = tokio::join!(gone, last_words);
    let certain = gone.is_ok() && status.is_ok();
    let (code, signal) = match &status {
        Ok(s) => (s.code(), s.signal()),
        Err(_) => (None, None),
    };
    conn.log(Kind::Exit { code, signal, certain });
    let why = conn.journal.read(|s| {
        let ended = s.generation_n(conn.generation).and_then(|g| g.ended);
        ended.map_or_else(|| "the server process ended".into(), |e| e.sentence())
    });
    conn.end(&why);
    conn.events.send(LinkEvent::Exited { generation: conn.generation, why }).ok();
    if !certain {
        all_gone(&mut stdout, &group, LOOK).await;
        conn.log(Kind::AllGone);
    }
}

/// Waits until nobody holds the child's stdout and nobody is left in its group, with a look at each `pause`.
async fn all_gone(stdout: &mut Reading, group: &Group, pause: Duration) {
    // The group is looked at all the while, so that it is forgotten as soon as it is empty.
    loop {
        let read_on = stdout.as_ref().is_some_and(|t| !t.is_finished());
        if group.is_empty() && !read_on {
            return;
        }
        tokio::time::sleep(pause).await;
    }
}
