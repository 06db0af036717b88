//! Faults that a built-in server can be told to have (`--fault`, hidden): it kills itself at an exact point of its
//! work, exits at a call, loses an answer or a session, or is busy. For kill tests, the lab and tests; without the
//! flag nothing here does anything. Each fault happens once in a process's life, but for those that carry a number.

use crate::error::{Error, Result};
use rustix::process::{Signal, getpid, kill_process};
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where in a request's life the server can kill itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KillPoint {
    /// Received, nothing stored yet.
    BeforeClaim,
    /// Claimed, the work is half done.
    DuringWork,
    /// The effect is written, its transaction still open.
    BeforeCommit,
    /// Everything is stored; the answer has not been sent.
    AfterCommit,
}

impl KillPoint {
    /// All of them, in the order of a call.
    pub const ALL: [KillPoint; 4] = [
        KillPoint::BeforeClaim,
        KillPoint::DuringWork,
        KillPoint::BeforeCommit,
        KillPoint::AfterCommit,
    ];

    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            KillPoint::BeforeClaim => "before-claim",
            KillPoint::DuringWork => "during-work",
            KillPoint::BeforeCommit => "before-commit",
            KillPoint::AfterCommit => "after-commit",
        }
    }
}

impl FromStr for KillPoint {
    type Err = String;
    fn from_str(text: &str) -> Result<KillPoint, String> {
        KillPoint::ALL.into_iter().find(|p| p.word() == text).ok_or_else(|| {
            format!("{text} is none of before-claim, during-work, before-commit, after-commit")
        })
    }
}

/// What goes wrong, with how often it still will.
#[derive(Debug, Default)]
struct Left {
    kill: Option<KillPoint>,
    /// The kill happens only if this file isn't there yet, and makes it: once, over all lives of a server.
    once: Option<PathBuf>,
    /// The process exits with 137 at its call of this number, once its work is stored.
    exit_at: u32,
    calls: AtomicU32,
    /// Answers of calls that are never written.
    drop_answers: AtomicU32,
    /// The answer of the next call that ends while this file is there is never written, and the file is taken away.
    drop_when: Option<PathBuf>,
    /// Calls whose session is told to be lost, with the status that says so.
    lose_session: (u16, AtomicU32),
    /// Calls answered with this status and nothing else.
    busy: (u16, AtomicU32),
    /// Calls answered with a JSON-RPC error.
    rpc_errors: AtomicU32,
}

/// The faults of one process; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Left>);

/// What a transport does to a call instead of handling it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instead {
    /// Says that the session is gone, with 404 or 400.
    SessionLost(u16),
    /// Answers with this status.
    Busy(u16),
}

impl Faults {
    /// From the words of `--fault`: `kill:POINT`, `once:FILE`, `exit:N`, `drop-answer[:N]`, `drop-when:FILE`, `lose-session:404|400`,
    /// `busy:429|503[*N]`, `rpc-error[:N]`.
    ///
    /// # Errors
    /// Exit 2 for any other word.
    pub fn parse(words: &[String]) -> Result<Faults> {
        let mut left = Left::default();
        for word in words {
            let (name, value) = word.split_once(':').unwrap_or((word, ""));
            let wrong =
                || Error::usage(format!("--fault {word} is no fault that this server knows"));
            let number = |text: &str| match text {
                "" => Ok(1),
                n => n.parse::<u32>().map_err(|_| wrong()),
            };
            match name {
                "kill" => left.kill = Some(value.parse().map_err(|_| wrong())?),
                "once" => left.once = Some(value.into()),
                "exit" => left.exit_at = number(value)?,
                "drop-answer" => left.drop_answers = number(value)?.into(),
                "drop-when" => left.drop_when = Some(value.into()),
                "rpc-error" => left.rpc_errors = number(value)?.into(),
                "lose-session" | "busy" => {
                    let (status, times) = value.split_once('*').unwrap_or((value, ""));
                    let pair =
                        (status.parse().map_err(|_| wrong())?, AtomicU32::new(number(times)?));
                    if name == "busy" { left.busy = pair } else { left.lose_session = pair }
                }
                _ => return Err(wrong()),
            }
        }
        Ok(Faults(Arc::new(left)))
    }

    /// Dies here if told to: by SIGKILL, or as the article's server (FATAL on stderr and exit code 137 at its
    /// second call).
    #[allow(
        clippy::exit,
        clippy::disallowed_methods,
        reason = "dying without destructors is the fault"
    )]
    pub fn reached(&self, point: KillPoint) {
        let first = || match &self.0.once {
            Some(file) => OpenOptions::new().write(true).create_new(true).open(file).is_ok(),
            None => true,
        };
        if self.0.kill == Some(point) && first() {
            super::log(&format!("fault: SIGKILL {}", point.word()));
            // Nothing runs after this; should the signal be refused, the trial is void, not wrong.
            kill_process(getpid(), Signal::KILL).ok();
        }
        let calls = self.0.calls.load(Ordering::SeqCst);
        if point == KillPoint::AfterCommit && calls > 0 && calls == self.0.exit_at {
            super::log(&format!("FATAL: told to exit at call {calls}"));
            std::process::exit(137);
        }
    }

    /// A call begins.
    pub fn call(&self) {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether this call's answer is never written.
    pub fn drops_answer(&self) -> bool {
        take(&self.0.drop_answers)
            || self.0.drop_when.as_ref().is_some_and(|file| std::fs::remove_file(file).is_ok())
    }

    /// Whether this call is answered with a JSON-RPC error instead.
    pub fn rpc_error(&self) -> bool {
        take(&self.0.rpc_errors)
    }

    /// What HTTP does to this call instead of handling it.
    pub fn instead(&self) -> Option<Instead> {
        if take(&self.0.busy.1) {
            return Some(Instead::Busy(self.0.busy.0));
        }
        take(&self.0.lose_session.1).then_some(Instead::SessionLost(self.0.lose_session.0))
    }
}

fn take(left: &AtomicU32) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(words: &[&str]) -> Result<Faults> {
        Faults::parse(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn each_fault_happens_as_often_as_it_was_told() {
        let f = faults(&["drop-answer", "busy:503*2", "lose-session:404", "rpc-error:2"]).unwrap();
        assert_eq!([f.drops_answer(), f.drops_answer()], [true, false]);
        assert_eq!([f.rpc_error(), f.rpc_error(), f.rpc_error()], [true, true, false]);
        let all: Vec<_> = (0..4).map(|_| f.instead()).collect();
        let (busy, lost) = (Some(Instead::Busy(503)), Some(Instead::SessionLost(404)));
        assert_eq!(all, [busy, busy, lost, None]);
        let none = Faults::default();
        none.call();
        none.reached(KillPoint::AfterCommit);
        assert!(!none.drops_answer() && none.instead().is_none());
    }

    #[test]
    fn unknown_words_are_usage_errors() {
        for bad in ["", "kill", "kill:later", "busy", "busy:x", "exit:x", "drop-answer:-1", "sleep"]
        {
            assert!(faults(&[bad]).is_err(), "{bad}");
        }
        for point in KillPoint::ALL {
            assert!(faults(&[&format!("kill:{}", point.word())]).is_ok());
        }
    }
}
