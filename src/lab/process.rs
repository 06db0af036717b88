//! Server processes that are not on a pipe of the client (HTTP), and what lives on after one was killed.
//!
//! Each has a process group of its own and is ended with it; none outlives its handle.

use crate::apart::own_session;
use crate::error::{Error, Result};
use crate::journal::generation::Ended;
use crate::procs::{self, Known, alive};
use crate::record::stdio::EXEC;
use crate::time::Time;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// Lines kept of what a server says.
const LINES: usize = 200;
/// How long a process may take to be gone after SIGKILL.
const GONE: Duration = Duration::from_secs(10);

/// A server that listens on HTTP.
pub struct Server {
    child: Child,
    /// Its process id, which is its group's too.
    pub pid: u32,
    lines: Arc<Mutex<Vec<(Time, String)>>>,
    told: watch::Receiver<u64>,
}

impl Server {
    /// Starts `command`; leading `NAME=VALUE` words go to its environment.
    ///
    /// # Errors
    /// Exit 5 when it can't be started.
    pub fn start(command: &[String]) -> Result<Server> {
        let vars = command.iter().take_while(|w| is_assignment(w)).count();
        let Some((program, args)) = command[vars..].split_first() else {
            return Err(Error::usage("no command to start the server with"));
        };
        let mut cmd = Command::new(program);
        cmd.args(args)
            .envs(command[..vars].iter().filter_map(|w| w.split_once('=')))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = own_session(cmd.as_std_mut())
            .and_then(|()| procs::own(|| cmd.spawn(), Child::id))
            .map_err(|e| Error::endpoint(format!("{program:?} can't be started: {e}")))?;
        let pid = child.id().unwrap_or_default();
        let lines = Arc::default();
        let (tell, told) = watch::channel(0);
        let tell = Arc::new(tell);
        if let Some(pipe) = child.stdout.take() {
            tokio::spawn(gather(pipe, Arc::clone(&lines), Arc::clone(&tell)));
        }
        if let Some(pipe) = child.stderr.take() {
            tokio::spawn(gather(pipe, Arc::clone(&lines), tell));
        }
        Ok(Server { child, pid, lines, told })
    }

    /// [`Server::start`], and it gets a SIGTERM when this process dies without a word (Linux): it becomes the command
    /// through this program's own `__exec`, so its process is the server's own.
    ///
    /// # Errors
    /// The same.
    pub fn start_guarded(command: &[String]) -> Result<Server> {
        let Ok(program) = std::env::current_exe() else { return Server::start(command) };
        let vars = command.iter().take_while(|w| is_assignment(w)).count();
        let (vars, words) = command.split_at(vars);
        let me = std::process::id().to_string();
        let guard = [program.to_string_lossy().into_owned(), EXEC.to_owned(), me];
        Server::start(&[vars, &guard, words].concat())
    }

    /// Its end, if it has ended already.
    pub fn over(&mut self) -> Option<Ended> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(ended(status))
    }

    /// Starts it and waits until it says where it listens (the built-in servers do).
    ///
    /// # Errors
    /// Exit 5 when it ends or says nothing within 20 s.
    pub async fn listening(command: &[String]) -> Result<(Server, String)> {
        let mut server = Server::start(command)?;
        let url = server.said(|line| line.strip_prefix("listening on ").map(str::to_owned)).await;
        match url {
            Some(url) => Ok((server, url)),
            None => Err(Error::endpoint(format!(
                "the server never said where it listens: {}",
                server.last(3).join(" | ")
            ))),
        }
    }

    /// Waits, 20 s at most, until some line gives what `find` looks for.
    pub async fn said<T>(&mut self, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        let lines = Arc::clone(&self.lines);
        let look = || {
            let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.iter().find_map(|(_, l)| find(l))
        };
        let wait = async {
            loop {
                self.told.borrow_and_update();
                if let Some(found) = look() {
                    return Some(found);
                }
                if self.told.changed().await.is_err() {
                    return look();
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.ok().flatten()
    }

    /// Its last lines, stdout and stderr, oldest first.
    pub fn last(&self, n: usize) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().skip(lines.len().saturating_sub(n)).map(|(_, l)| l.clone()).collect()
    }

    /// All its lines with their times.
    pub fn lines(&self) -> Vec<(Time, String)> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends SIGKILL to the process itself.
    pub fn kill(&self) {
        kill_pid(self.pid);
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> Option<Ended> {
        let status = tokio::time::timeout(GONE, self.child.wait()).await.ok()?.ok()?;
        Some(ended(status))
    }

    /// SIGTERM, then SIGKILL of its group.
    pub async fn end(mut self) {
        signal_group(self.pid, Signal::TERM);
        if tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await.is_err() {
            signal_group(self.pid, Signal::KILL);
            self.child.wait().await.ok();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The group is asked for only while the child can't have been replaced: its pid is not reused before
        // it is waited for, and a group lives as long as any member.
        signal_group(self.pid, Signal::KILL);
    }
}

/// Whether anything it started is left is for `survivors` to say.
fn ended(status: ExitStatus) -> Ended {
    Ended {
        at: Time::now(),
        code: status.code(),
        signal: status.signal(),
        gone_at: None,
        launcher: false,
    }
}

async fn gather(
    pipe: impl AsyncRead + Unpin,
    lines: Arc<Mutex<Vec<(Time, String)>>>,
    tell: Arc<watch::Sender<u64>>,
) {
    let mut from = BufReader::new(pipe);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).await.is_ok_and(|n| n > 0) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES {
            lines.remove(0);
        }
        lines.push((Time::now(), text));
        drop(lines);
        tell.send_modify(|n| *n += 1);
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Splits a command as a person types it: blanks separate, quotes and backslashes keep together. No shell: the
/// process that is started is the one that is killed.
///
/// # Errors
/// Exit 2 when a quote is not closed.
pub fn words(text: &str) -> Result<Vec<String>> {
    let (mut out, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().extend(chars.next()),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => out.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(Error::usage(format!("a quote is not closed in {text:?}")));
    }
    out.extend(word);
    Ok(out)
}

fn pid(raw: u32) -> Option<Pid> {
    i32::try_from(raw).ok().and_then(Pid::from_raw)
}

/// SIGKILL to one process; it may be gone already.
pub fn kill_pid(raw: u32) {
    if let Some(pid) = pid(raw) {
        kill_process(pid, Signal::KILL).ok();
    }
}

fn signal_group(raw: u32, signal: Signal) {
    if let Some(pid) = pid(raw) {
        kill_process_group(pid, signal).ok();
    }
}

/// Whether somebody of the group that `leader` led still runs. A signal counts the dead that nobody has fetched yet,
/// so the system's list is asked where there is one.
fn group_runs(leader: u32) -> bool {
    pid(leader).is_some_and(|p| test_kill_process_group(p).is_ok())
        && procs::group_runs(leader).unwrap_or(true)
}

/// Which of these still run, and whether anything is left in the group that `leader` led. Looks for up to 500 ms:
/// what was killed together does not end together.
pub async fn survivors(of: &[Known], leader: u32) -> Vec<u32> {
    let mut left = Vec::new();
    for _ in 0..50 {
        left = of.iter().filter(|k| alive(**k)).map(|k| k.pid).collect();
        if left.is_empty() && group_runs(leader) {
            left.push(leader);
        }
        if left.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    left
}

/// Ends what a killed launcher left behind.
pub fn end_survivors(of: &[Known], leader: u32) {
    for known in of.iter().filter(|k| alive(**k)) {
        kill_pid(known.pid);
    }
    signal_group(leader, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_as_a_person_means_them() {
        let split = |t| words(t).unwrap();
        assert_eq!(split("python server.py"), ["python", "server.py"]);
        assert_eq!(split(r#"A=1 'a b' "c \"d" e\ f "" "#), ["A=1", "a b", "c \"d", "e f", ""]);
        assert_eq!(split("  "), Vec::<String>::new());
        assert!(words("'open").is_err());
        assert!(
            is_assignment("WORK_SECONDS=1") && !is_assignment("--x=1") && !is_assignment("1a=2")
        );
    }

    #[tokio::test]
    async fn a_child_of_a_killed_launcher_is_seen_and_ended() {
        let mut launcher = Server::start(&words("sh -c 'sleep 1000 & wait'").unwrap()).unwrap();
        let mut family = Vec::new();
        for _ in 0..500 {
            family = procs::descendants(launcher.pid);
            if !family.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(family.len(), 1);
        launcher.kill();
        assert_eq!(launcher.ended().await.unwrap().signal, Some(9));
        assert_eq!(survivors(&family, launcher.pid).await, [family[0].pid]);
        end_survivors(&family, launcher.pid);
        assert_eq!(survivors(&family, launcher.pid).await, Vec::<u32>::new());
    }
}
