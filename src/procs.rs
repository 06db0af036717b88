//! Processes as the system lists them (Linux, `/proc`): what a child started, and what of that it left behind, in
//! whatever session or group.
//!
//! A process whose parent has ended is handed to the next ancestor that takes orphans in. The program asks for that
//! ([`adopt_orphans`]), so that a worker which was detached (`nohup`, `setsid`, forked twice) stays in sight, and
//! fetches the ended ones among them ([`reap`]). Elsewhere nobody can say who is left, and nothing here claims it.
//! Never waits; signals nobody.

use rustix::process::{Pid, WaitOptions, waitpid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Orphans of our children come to us.
static ADOPTS: AtomicBool = AtomicBool::new(false);
/// Processes that this one started by itself; each is waited for by whoever started it.
static OWN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
/// Counts the children that were marked.
static MARKED: AtomicU64 = AtomicU64::new(0);

/// The variable that tells whose child a process is: it outlives every way to detach from a parent, but for those
/// that clear the environment.
const MARK: &str = "REDIAL_CHILD";
/// Processes are named in a report up to this many.
const NAMED: usize = 5;
/// So many of a child's processes are asked whether they are stopped.
const WALKED: usize = 200;

/// A process and when it started: a number alone may be another's by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its number.
    pub pid: u32,
    started: u64,
}

/// A process as a person knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// What it runs: a script's name, else a program's. Foreign text.
    pub name: String,
}

/// What an ended child left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// Nobody: every process that it had started is gone, and its pipes are closed.
    Nobody,
    /// These go on.
    These(Vec<Process>),
    /// Something may go on: its pipes are held by somebody who is not seen, or nobody could look.
    Perhaps,
}

impl Left {
    /// What goes on, for the end of a sentence. May hold foreign text.
    pub fn words(&self) -> String {
        match self {
            Left::Nobody => "nothing that it started is left".into(),
            Left::Perhaps => "something it started may still run, here or elsewhere".into(),
            Left::These(all) => {
                let name = |p: &Process| format!("pid {}, {:?}", p.pid, p.name);
                let named: Vec<String> = all.iter().take(NAMED).map(name).collect();
                let more = all.len().saturating_sub(NAMED);
                let more = if more > 0 { format!("; and {more} more") } else { String::new() };
                match all.len() {
                    1 => format!("a process it started ({}) goes on", named.join("; ")),
                    n => format!("{n} processes it started ({}{more}) go on", named.join("; ")),
                }
            }
        }
    }
}

/// Takes in what our children leave behind. For the program itself, not for a library in somebody's process.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        let me = rustix::process::getpid();
        let done = rustix::process::set_child_subreaper(Some(me)).is_ok();
        ADOPTS.store(done, Ordering::SeqCst);
    }
}

/// Starts a child of our own through `spawn`; [`reap`] leaves it to whoever waits for it.
///
/// # Errors
/// Those of `spawn`.
pub fn own<T>(
    spawn: impl FnOnce() -> std::io::Result<T>,
    pid: impl FnOnce(&T) -> Option<u32>,
) -> std::io::Result<T> {
    // Held meanwhile: a child that ends at once is not taken for an adopted one.
    let mut own = own_children();
    let child = spawn()?;
    own.extend(pid(&child));
    Ok(child)
}

fn own_children() -> MutexGuard<'static, BTreeSet<u32>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fetches what was adopted and has ended, so that the dead don't pile up.
pub fn reap() {
    if !ADOPTS.load(Ordering::SeqCst) {
        return;
    }
    let own = own_children();
    for raw in children_of("self") {
        if own.contains(&raw) || stat(raw).is_none_or(|s| !s.over) {
            continue;
        }
        if let Some(pid) = i32::try_from(raw).ok().and_then(Pid::from_raw) {
            waitpid(Some(pid), WaitOptions::NOHANG).ok();
        }
    }
}

/// Those of one process, by its name in `/proc`.
fn children_of(pid: &str) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
    lists
        .flat_map(|l| l.split_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Name and value of the variable that marks a child and what it starts.
pub fn mark() -> (&'static str, String) {
    (MARK, format!("{}{}", ours(), MARKED.fetch_add(1, Ordering::SeqCst)))
}

/// How every mark of this process begins.
fn ours() -> String {
    let me = std::process::id();
    format!("{me}.{}.", stat(me).map_or(0, |s| s.known.started))
}

/// A child and all that it started.
pub struct Family {
    leader: u32,
    /// `None` where nobody can look.
    started: Option<u64>,
    mark: Option<String>,
    /// Who was left at the last look.
    last: Mutex<Vec<Known>>,
}

impl Family {
    /// That of a child that was just started, with the mark it was given.
    pub fn of(pid: u32, mark: Option<String>) -> Family {
        let started = stat(pid).map(|s| s.known.started);
        Family { leader: pid, started, mark, last: Mutex::default() }
    }

    /// Whether nobody of it runs any more, the child itself included; `None` where nobody can look.
    pub fn is_gone(&self) -> Option<bool> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if last.iter().any(|k| alive(*k)) {
            return Some(false);
        }
        let now = self.look()?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = now.clone();
        Some(now.is_empty())
    }

    /// Who of it runs, besides the child; `None` where nobody can look.
    pub fn left(&self) -> Option<Vec<Process>> {
        let seen = self.look()?.into_iter().filter(|k| k.pid != self.leader);
        Some(seen.map(|k| Process { pid: k.pid, name: name_of(k.pid) }).collect())
    }

    /// Who of the child and what it started, first the child, the kernel has stopped: by a signal (SIGSTOP), or since it
    /// wanted a terminal that it doesn't have (SIGTTIN). What was detached is not asked. Costs a few files a process.
    pub fn stopped(&self) -> Option<Process> {
        let mut open = std::collections::VecDeque::from([self.leader]);
        let mut walked = BTreeSet::new();
        while let Some(pid) = open.pop_front().filter(|_| walked.len() < WALKED) {
            let Some(s) =
                stat(pid).filter(|s| self.started.is_some_and(|at| s.known.started >= at))
            else {
                continue;
            };
            if s.stopped {
                return Some(Process { pid, name: name_of(pid) });
            }
            walked.insert(pid);
            open.extend(children_of(&pid.to_string()).into_iter().filter(|c| !walked.contains(c)));
        }
        None
    }

    fn look(&self) -> Option<Vec<Known>> {
        let started = self.started?;
        let me = std::process::id();
        let all: BTreeMap<u32, Stat> =
            list().into_iter().map(|s| (s.known.pid, s)).filter(|(pid, _)| *pid != me).collect();
        // Once the child is gone its number may be given to a stranger, who may lead a group of that number.
        let reused = all.get(&self.leader).is_some_and(|s| s.known.started != started);
        let (own, adopts) = (own_children().clone(), ADOPTS.load(Ordering::SeqCst));
        let ours = ours();
        let belongs = |s: &Stat| {
            if s.known.started < started {
                return false;
            }
            if s.known.pid == self.leader {
                return !reused;
            }
            if !reused && (s.group == self.leader || s.session == self.leader) {
                return true;
            }
            match mark_of(s.known.pid) {
                Some(mark) if Some(&mark) == self.mark.as_ref() => true,
                // Another child's, which is no business of this one.
                Some(mark) if mark.starts_with(&ours) => false,
                // It came to us as an orphan, and nothing says that it is another child's.
                _ => adopts && s.parent == me && !own.contains(&s.known.pid),
            }
        };
        let mut found: BTreeMap<u32, Known> = BTreeMap::new();
        let mut open: Vec<u32> = Vec::new();
        for s in all.values().filter(|s| belongs(s)) {
            open.push(s.known.pid);
            if !s.over {
                found.insert(s.known.pid, s.known);
            }
        }
        let mut walked = BTreeSet::new();
        while let Some(parent) = open.pop() {
            if !walked.insert(parent) {
                continue;
            }
            for s in all.values().filter(|s| s.parent == parent) {
                open.push(s.known.pid);
                if !s.over {
                    found.insert(s.known.pid, s.known);
                }
            }
        }
        Some(found.into_values().collect())
    }
}

fn mark_of(pid: u32) -> Option<String> {
    let all = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut vars = all.split(|b| *b == 0);
    let mark = vars.find_map(|v| v.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
    Some(String::from_utf8_lossy(mark).into_owned())
}

/// What a process runs: of `python3 /srv/worker.py` the script, else the program.
fn name_of(pid: u32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<String> = words
        .split(|b| *b == 0)
        .filter(|w| !w.is_empty())
        .map(|w| String::from_utf8_lossy(w).into_owned())
        .collect();
    let base = |w: &str| w.rsplit('/').next().unwrap_or(w).to_owned();
    let is_script = |w: &&String| {
        let extension = w.rsplit_once('.').map_or("", |(_, e)| e);
        !w.contains(char::is_whitespace)
            && !extension.is_empty()
            && extension.chars().all(|c| c.is_ascii_alphabetic())
    };
    let script = words.iter().skip(1).find(|w| !w.starts_with('-')).filter(is_script);
    let name = match (script, words.first()) {
        (Some(script), _) => base(script),
        (None, Some(program)) => base(program),
        // A process may clear its words; the kernel's own name stays.
        (None, None) => std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default(),
    };
    name.trim().chars().take(60).collect()
}

/// The descendants of a process, itself left out (Linux; empty elsewhere).
pub fn descendants(of: u32) -> Vec<Known> {
    let all = list();
    let mut found: Vec<Known> = Vec::new();
    let mut parents = vec![of];
    while let Some(parent) = parents.pop() {
        for s in all.iter().filter(|s| s.parent == parent) {
            found.push(s.known);
            parents.push(s.known.pid);
        }
    }
    found
}

/// Whether it still runs.
pub fn alive(known: Known) -> bool {
    stat(known.pid).is_some_and(|s| s.known == known && !s.over)
}

/// Whether somebody of the group that `leader` led still runs; `None` where nobody can look.
pub fn group_runs(leader: u32) -> Option<bool> {
    stat(std::process::id())?;
    Some(list().iter().any(|s| s.group == leader && !s.over))
}

/// What `/proc` says of a process.
struct Stat {
    parent: u32,
    group: u32,
    session: u32,
    known: Known,
    /// Dead and only waiting to be fetched by its parent.
    over: bool,
    /// The kernel lets it do nothing until somebody says that it may.
    stopped: bool,
}

fn list() -> Vec<Stat> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|e| stat(e.file_name().to_str()?.parse().ok()?)).collect()
}

fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    let started = fields.nth(15)?.parse().ok()?;
    let known = Known { pid, started };
    Some(Stat {
        parent,
        group,
        session,
        known,
        over: matches!(state, 'Z' | 'X'),
        stopped: state == 'T',
    })
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// A child that starts `script` and ends, told by its family.
    fn ended(script: &str, clean: bool) -> Family {
        let (name, value) = mark();
        let mut c = Command::new("/bin/sh");
        c.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if !clean {
            c.env(name, &value);
        }
        let mut child = own(|| c.spawn(), |c| Some(c.id())).unwrap();
        let family = Family::of(child.id(), Some(value));
        child.wait().unwrap();
        family
    }

    fn wait_until_gone(family: &Family) {
        let start = std::time::Instant::now();
        while family.is_gone() != Some(true) {
            assert!(start.elapsed().as_secs() < 20, "{:?}", family.left());
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_detached_worker_is_seen_whatever_session_it_is_in() {
        for script in [
            "sleep 300 &",
            "nohup sleep 300 >/dev/null 2>&1 &",
            "setsid sleep 300 &",
            "(setsid sh -c 'sleep 300 & exit 0' &)",
        ] {
            let family = ended(script, false);
            // A shell may not have become the sleeper yet.
            let start = std::time::Instant::now();
            let left = loop {
                let left = family.left().unwrap();
                if left.iter().any(|p| p.name == "sleep") {
                    break left;
                }
                assert!(start.elapsed().as_secs() < 20, "{script}: {left:?}");
            };
            assert_eq!(family.is_gone(), Some(false), "{script}");
            let sleeper = left.iter().find(|p| p.name == "sleep").unwrap().pid;
            let pid = Pid::from_raw(i32::try_from(sleeper).unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            wait_until_gone(&family);
        }
    }

    #[test]
    fn nobody_is_left_of_a_child_that_started_nobody() {
        let family = ended("exit 0", false);
        wait_until_gone(&family);
        assert_eq!(family.left(), Some(Vec::new()));
    }

    #[test]
    fn one_that_was_stopped_is_named_until_it_goes_on() {
        for (script, name) in [
            ("kill -STOP $$; sleep 300", "sh"),
            ("sh -c 'kill -STOP $$; exit 1' & wait; sleep 300", "sh"),
        ] {
            let mut c = Command::new("/bin/sh");
            c.args(["-c", script]).stdin(Stdio::null());
            let mut child = own(|| c.spawn(), |c| Some(c.id())).unwrap();
            let family = Family::of(child.id(), None);
            let start = std::time::Instant::now();
            let wait = |stopped: bool| loop {
                let who = family.stopped();
                if who.is_some() == stopped {
                    return who;
                }
                assert!(start.elapsed().as_secs() < 20, "{script}: {who:?}");
                std::thread::yield_now();
            };
            let who = wait(true).unwrap();
            assert_eq!(who.name, name);
            let pid = Pid::from_raw(i32::try_from(who.pid).unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
            assert_eq!(wait(false), None);
            for k in descendants(child.id()) {
                let pid = Pid::from_raw(i32::try_from(k.pid).unwrap()).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
            }
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn one_that_is_left_is_named_and_many_are_counted() {
        let p = |pid: u32| Process { pid, name: "worker.py".into() };
        assert_eq!(
            Left::These(vec![p(4711)]).words(),
            r#"a process it started (pid 4711, "worker.py") goes on"#
        );
        let many = Left::These((1..=7).map(p).collect()).words();
        assert!(many.starts_with("7 processes it started (pid 1, "), "{many}");
        assert!(many.ends_with("; and 2 more) go on"), "{many}");
    }
}
