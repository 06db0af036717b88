//! The tap on a stdio server: the agent's child, and the server's parent. Bytes pass both ways unchanged and at
//! once, each chunk written down before it is passed on; EOF and signals are passed on; the exit status is the
//! command's. A command that ends and leaves its pipes to a server of its own is outlived: the pipes decide.
//!
//! Plain threads and blocking reads: nothing here may stand between two pipes for longer than a write takes. The
//! server stays in the agent's process group. A tap that is killed closes the server's stdin with it; on Linux the
//! server, started through `redial` itself, also gets SIGTERM then (see [`exec`]).

mod pump;
mod signals;
mod stopped;

use super::entry::Side;
use super::recorder::Recorder;
use crate::error::{Error, Result};
use crate::journal::event::Transport;
use crate::journal::{Kind, Note};
use crate::procs::{self, Family, Left};
use pump::Pump;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// The longest line that is kept whole.
const LINE_LIMIT: usize = 16 << 20;
/// How long a pipe may stay silent after the server's end before it is asked who holds it.
const DRAIN: Duration = Duration::from_millis(300);
/// How long stderr may go on after stdout's end: somebody who is no server may write there for ever.
const STDERR: Duration = Duration::from_millis(1200);
/// How long what the server started may take to end after it.
const ENDING: Duration = Duration::from_millis(100);
/// How long a client may leave what the server said last unread.
const UNREAD: Duration = Duration::from_secs(10);
/// How long the disk may hold up the end.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long a server may live on when nobody is there any more.
const ORPHAN_GRACE: Duration = Duration::from_secs(2);
/// The only life there is: a new server is a new run.
const GENERATION: u32 = 1;

/// Runs the command behind the tap until it ends; its exit status, 128+n for a signal.
///
/// # Errors
/// Exit 5 when the command can't be started.
pub fn run(command: &[String], recorder: &Recorder) -> Result<u8> {
    let child = start(command).map_err(|e| {
        let why = format!("{} can't be started: {e}", command.first().map_or("", String::as_str));
        recorder.event(GENERATION, Kind::Note(Note::Text(why.clone())));
        recorder.close(LAST_WORDS);
        Error::endpoint(why)
    })?;
    let pid = child.id();
    let transport = Transport::Stdio { command: command.to_vec(), pid: Some(pid) };
    recorder.event(GENERATION, Kind::Opened { transport });
    let (status, left) = match Ours::take() {
        Ok(ours) => pass(child, ours, recorder),
        Err(e) => return Err(unheard(child, recorder, &e)),
    };
    if let Some(status) = status {
        let (code, signal) = (status.code(), status.signal());
        recorder.event(GENERATION, Kind::Exit { code, signal, left });
    }
    recorder.close(LAST_WORDS);
    Ok(match status {
        Some(s) => match (s.code(), s.signal()) {
            (Some(code), _) => code as u8,
            (None, Some(signal)) => 128u8.saturating_add(u8::try_from(signal).unwrap_or(0)),
            (None, None) => 1,
        },
        None => 1,
    })
}

/// Nothing can be passed on.
fn unheard(mut child: Child, recorder: &Recorder, e: &io::Error) -> Error {
    let why = format!("stdin and stdout can't be passed on: {e}; the server was ended");
    child.kill().ok();
    child.wait().ok();
    recorder.event(GENERATION, Kind::Note(Note::Text(why.clone())));
    recorder.close(LAST_WORDS);
    Error::endpoint(why)
}

/// What this process was given to talk to the client on. From now on the pumps alone hold it: an end that one of
/// them lets go is closed for the client too, as it would be without us.
struct Ours {
    stdin: File,
    stdout: File,
    stderr: File,
}

impl Ours {
    fn take() -> io::Result<Ours> {
        let own = |fd: io::Result<OwnedFd>| fd.map(File::from);
        let ours = Ours {
            stdin: own(io::stdin().as_fd().try_clone_to_owned())?,
            stdout: own(io::stdout().as_fd().try_clone_to_owned())?,
            stderr: own(io::stderr().as_fd().try_clone_to_owned())?,
        };
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nothing)?;
        rustix::stdio::dup2_stdout(&nothing)?;
        rustix::stdio::dup2_stderr(&nothing)?;
        Ok(ours)
    }
}

/// Starts the server in this process group, through this program where that lets the kernel end it with us.
fn start(command: &[String]) -> io::Result<Child> {
    let Some((program, args)) = command.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let piped = |mut c: Command| {
        c.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        procs::own(|| c.spawn(), |child| Some(child.id()))
    };
    if let Ok(me) = std::env::current_exe()
        && cfg!(target_os = "linux")
        && is_runnable(program)
    {
        let mut c = Command::new(me);
        c.arg(EXEC).arg(std::process::id().to_string()).args(command);
        // A program that was replaced while it ran can't start itself again.
        if let Ok(child) = piped(c) {
            return Ok(child);
        }
    }
    let mut c = Command::new(program);
    c.args(args);
    piped(c)
}

/// The hidden first argument that makes `redial` become the server.
pub const EXEC: &str = "__exec";

/// Becomes `command`, after asking the kernel for SIGTERM when the tap dies (prctl(2), PR_SET_PDEATHSIG: it
/// outlives execve). Returns only when that fails.
pub fn exec(parent: &str, command: &[String]) -> u8 {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM)).ok();
        let alive = rustix::process::getppid().map(|p| p.as_raw_nonzero().get().to_string());
        if alive.as_deref() != Some(parent) {
            // The tap died before the kernel was asked.
            return 143;
        }
    }
    let Some((program, args)) = command.split_first() else { return 127 };
    let e = Command::new(program).args(args).exec();
    writeln!(io::stderr(), "redial: {program} can't be started: {e}").ok();
    127
}

/// Whether the shell's search would find it: then a failure to start is told before anything is passed on.
fn is_runnable(program: &str) -> bool {
    let runs = |p: &std::path::Path| {
        rustix::fs::access(p, rustix::fs::Access::EXEC_OK).is_ok() && p.is_file()
    };
    if program.contains('/') {
        return runs(std::path::Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| runs(&dir.join(program)))
}

/// Passes everything on until the server has ended and its pipes are empty, or closed where it was a launcher.
/// The child's end, and what it left behind: a launcher's server holds its pipes, a detached worker lives elsewhere.
fn pass(mut child: Child, ours: Ours, recorder: &Recorder) -> (Option<ExitStatus>, Left) {
    // Not marked: a tap changes nothing of what the server is given, and has no other child.
    let family = Arc::new(Family::of(child.id(), None));
    let server = Arc::new(Server {
        pid: i32::try_from(child.id()).ok().and_then(Pid::from_raw),
        alive: Mutex::new(true),
        client_gone: AtomicBool::new(false),
        unread: AtomicBool::new(false),
        to_end: AtomicBool::new(false),
        busy: AtomicU32::new(0),
        steps: AtomicU64::new(0),
    });
    signals::pass_on(server.clone());
    // Held by the pump of stderr: what that lets go is closed for the client.
    let mut voice = ours.stderr.try_clone().ok().map(Arc::new);
    let heard = voice.as_ref().map(Arc::downgrade).unwrap_or_default();
    stopped::watch(server.clone(), family.clone(), recorder.clone(), heard);
    let (done, ended) = mpsc::channel();
    let mut pump = |side: Side, from: File, to: File| {
        let voice = if side == Side::Stderr { voice.take() } else { None };
        let (recorder, done, server) = (recorder.clone(), done.clone(), server.clone());
        let pump = Pump { side, recorder, server };
        let spawned = std::thread::Builder::new().name(side.word().into()).spawn(move || {
            pump.run(from, to);
            drop(voice);
            // The end of stdin is nothing to wait for.
            if side != Side::Sent {
                done.send(side).ok();
            }
            if side == Side::Received {
                pump.closed();
            }
        });
        spawned.is_ok()
    };
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut waiting = Vec::new();
    if let Some(to) = stdin {
        pump(Side::Sent, ours.stdin, File::from(OwnedFd::from(to)));
    }
    if let Some(from) = stdout {
        let from = File::from(OwnedFd::from(from));
        waiting.extend(pump(Side::Received, from, ours.stdout).then_some(Side::Received));
    }
    if let Some(from) = stderr {
        let from = File::from(OwnedFd::from(from));
        waiting.extend(pump(Side::Stderr, from, ours.stderr).then_some(Side::Stderr));
    }
    drop(done);
    // Seen first, reaped second: in between no signal can hit another process of the same number.
    if let Some(pid) = server.pid {
        while let Err(e) = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            if e != rustix::io::Errno::INTR {
                break;
            }
        }
    }
    *server.alive.lock().unwrap_or_else(PoisonError::into_inner) = false;
    let status = child.wait().ok();
    let (mut told, mut unseen) = (false, false);
    let goes_on = || {
        procs::reap();
        let left = family.left().map_or(Left::Perhaps, Left::These);
        if !std::mem::replace(&mut told, true) {
            let (code, signal) = status.map_or((None, None), |s| (s.code(), s.signal()));
            // Who holds the pipes and is not seen is not nobody.
            let left = if left == Left::These(Vec::new()) { Left::Perhaps } else { left.clone() };
            unseen = left == Left::Perhaps;
            recorder.event(GENERATION, Kind::Note(Note::Outlived { code, signal, left }));
        }
        left != Left::These(Vec::new())
    };
    let drained = server.drain(waiting, &ended, goes_on);
    match left_of(&family, drained) {
        // The end of a stranger who held them was not seen.
        Left::Nobody if unseen => (status, Left::Perhaps),
        left => (status, left),
    }
}

/// What goes on; what ends together with the server gets a moment for it.
fn left_of(family: &Family, drained: bool) -> Left {
    let since = Instant::now();
    loop {
        procs::reap();
        match family.left() {
            Some(these) if these.is_empty() && drained => return Left::Nobody,
            Some(these) if !these.is_empty() && since.elapsed() > ENDING => {
                return Left::These(these);
            }
            Some(these) if !these.is_empty() => std::thread::sleep(ENDING / 10),
            _ => return Left::Perhaps,
        }
    }
}

struct Server {
    pid: Option<Pid>,
    alive: Mutex<bool>,
    /// The client closed our stdin, or reads no more.
    client_gone: AtomicBool,
    /// Nobody reads what the client sends.
    unread: AtomicBool,
    /// A signal asked us to end, or nobody is there any more.
    to_end: AtomicBool,
    /// Pumps of the server's output that have something in hand.
    busy: AtomicU32,
    /// Grows with everything they do.
    steps: AtomicU64,
}

impl Server {
    /// Waits, after the command's end, until these pumps have come to an end; whether they did. A launcher ends while
    /// its server, who holds the pipes now, goes on: as long as somebody holds stdout, and reads what is sent or may
    /// still answer it, traffic passes. Anything else gets as long as it gets on. `goes_on` is told when the pipes are
    /// held, and says whether somebody may be there who holds them.
    fn drain(
        &self,
        mut waiting: Vec<Side>,
        ended: &mpsc::Receiver<Side>,
        mut goes_on: impl FnMut() -> bool,
    ) -> bool {
        let (mut seen, mut since) = (0, Instant::now());
        let mut last = None;
        while !waiting.is_empty() {
            match ended.recv_timeout(DRAIN / 3) {
                Ok(side) => waiting.retain(|s| *s != side),
                Err(mpsc::RecvTimeoutError::Disconnected) => return true,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            let steps = self.steps.load(Ordering::SeqCst);
            if steps != seen {
                (seen, since) = (steps, Instant::now());
            }
            let busy = self.busy.load(Ordering::SeqCst) > 0;
            let over = since.elapsed() > if busy { UNREAD } else { DRAIN };
            if !waiting.contains(&Side::Received) {
                let last = last.get_or_insert_with(Instant::now);
                if over || (!busy && last.elapsed() > STDERR) {
                    return waiting.is_empty();
                }
            } else if over {
                let held =
                    !self.unread.load(Ordering::SeqCst) && !self.to_end.load(Ordering::SeqCst);
                // What is in a pipe keeps its end from being seen; with nothing in it, it is held.
                if !held || (!goes_on() && busy) {
                    return false;
                }
                since = Instant::now();
            }
        }
        true
    }

    /// Whether it has ended, seen by us or not yet.
    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let ended = self.pid.map(|pid| waitid(WaitId::Pid(pid), look));
        !self.is_alive() || !matches!(ended, Some(Ok(None)))
    }

    fn is_alive(&self) -> bool {
        *self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: Signal) {
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        if let (true, Some(pid)) = (*alive, self.pid) {
            // It may have ended this very moment.
            kill_process(pid, signal).ok();
        }
    }
}
