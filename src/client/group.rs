//! The process group of a child: signalled while it is known to be ours, forgotten for good once it is empty.
//!
//! A group outlives its leader while anything that it started is left, and its number can't be given to another
//! process so long; once it is empty the number may be a stranger's. Never waits, never decides to signal.

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, kill_process_group, test_kill_process, test_kill_process_group,
};
use std::sync::{Mutex, PoisonError};

/// One group, by the number of its leader.
pub(super) struct Group(Mutex<State>);

#[derive(Clone, Copy)]
enum State {
    /// The leader was not reaped: the number is taken.
    Led(Pid),
    /// The leader was reaped; the number is taken while members are left.
    Left(Pid),
    /// Empty, or never known.
    Gone,
}

impl Group {
    /// The group that the child `pid` leads.
    pub fn of(pid: Option<u32>) -> Group {
        let pid = pid.and_then(|p| i32::try_from(p).ok()).and_then(Pid::from_raw);
        Group(Mutex::new(pid.map_or(State::Gone, State::Led)))
    }

    /// The leader has been reaped. To be said at once: from here on only what it left behind keeps the number.
    pub fn leader_reaped(&self) {
        let mut state = self.state();
        if let State::Led(pid) = *state {
            *state = State::Left(pid);
        }
        look(&mut state);
    }

    /// Whether nothing of the group is left. To be asked again and again while something is, so that the number
    /// is forgotten before anybody else can have it.
    pub fn is_empty(&self) -> bool {
        let mut state = self.state();
        look(&mut state);
        matches!(*state, State::Gone)
    }

    /// Signals every member, if the group is still ours.
    pub fn signal(&self, signal: Signal) {
        let mut state = self.state();
        look(&mut state);
        if let State::Led(pid) | State::Left(pid) = *state {
            // ESRCH: the last one has ended just now.
            kill_process_group(pid, signal).ok();
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets a group that is empty, or whose number leads another one by now: a process with the number of a
/// leader that was reaped can only be a stranger.
fn look(state: &mut State) {
    let State::Left(pid) = *state else { return };
    let empty = test_kill_process_group(pid) == Err(Errno::SRCH);
    let reused = test_kill_process(pid) != Err(Errno::SRCH);
    if empty || reused {
        *state = State::Gone;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    #[test]
    fn a_group_is_ours_while_something_is_left_and_a_reused_number_is_nobody_s() {
        // Its leader ends at once and leaves a sleeper behind.
        let mut child = Command::new("/bin/sh")
            .args(["-c", "sleep 300 >/dev/null & echo $!"])
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let group = Group::of(Some(child.id()));
        child.wait().unwrap();
        group.leader_reaped();
        assert!(!group.is_empty());
        group.signal(Signal::KILL);
        let start = std::time::Instant::now();
        while !group.is_empty() {
            assert!(start.elapsed().as_secs() < 10, "its last member was killed");
            std::thread::yield_now();
        }
        // A number that a living process has, and that no leader of ours can have any more.
        let mut stranger = Command::new("/bin/sleep").arg("300").process_group(0).spawn().unwrap();
        let group = Group::of(Some(stranger.id()));
        group.leader_reaped();
        assert!(group.is_empty());
        group.signal(Signal::KILL);
        assert!(stranger.try_wait().unwrap().is_none(), "a stranger is never signalled");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
