//! An answer typed at the terminal, to a question that could be read. What was typed before the question, or in the
//! moment after it, is no answer, and neither is a line out of a stream of them (a held Enter): all of that is dropped,
//! and the question is asked once more. An early No is a No all the same.
//!
//! For the first moment the terminal hands each key over as it comes and shows none: a line that was begun too early
//! must not become part of the answer.

use super::plain::complain;
use crate::tui::answer::{QUIET, READABLE};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr,
};
use std::io::{self, BufRead, Stdin};
use std::time::{Duration, Instant};

/// How often is looked whether something was typed.
const LOOK: Duration = Duration::from_millis(10);

/// Asks by `show` until there is an answer; the line that was typed, `None` at the input's end.
pub async fn to(show: impl Fn()) -> Option<String> {
    let terminal = io::stdin();
    tcflush(&terminal, QueueSelector::IFlush).ok();
    loop {
        show();
        match first_moment(&terminal).await {
            Early::No => return None,
            Early::Typed => {}
            Early::Nothing => {
                let line = tokio::task::spawn_blocking(line).await.ok()??;
                if !typed_within(&terminal, QUIET).await {
                    return Some(line);
                }
            }
        }
        if let Early::No = until_silence(&terminal).await {
            return None;
        }
        complain("");
        complain("that was typed before the question could be read; it decides nothing");
    }
}

/// What came too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Early {
    Nothing,
    Typed,
    /// It refuses: n, or the end of the input.
    No,
}

impl Early {
    /// What these keys are, typed one by one. A Ctrl-D that the terminal took for a line's end before it was told to
    /// hand over keys is handed over as a zero.
    fn of(keys: &[u8]) -> Early {
        let ends = keys.iter().any(|b| matches!(b, 4 | 0));
        let refuses = keys.first().is_none_or(|b| matches!(b, b'n' | b'N'));
        if ends || refuses { Early::No } else { Early::Typed }
    }
}

/// What comes in the first moment of a question.
async fn first_moment(terminal: &Stdin) -> Early {
    let shown = Instant::now();
    let Some(_keys) = Keys::each(terminal) else { return Early::Nothing };
    while shown.elapsed() < READABLE {
        if is_typed(terminal) {
            return Early::of(&typed(terminal));
        }
        tokio::time::sleep(LOOK).await;
    }
    Early::Nothing
}

/// Drops what is typed until nothing is for a while. Dropped by reading, since a No among it stays one.
async fn until_silence(terminal: &Stdin) -> Early {
    let _keys = Keys::each(terminal);
    while typed_within(terminal, READABLE).await {
        if Early::of(&typed(terminal)) == Early::No {
            return Early::No;
        }
    }
    Early::Nothing
}

/// What was typed; nothing at the input's end.
fn typed(terminal: &Stdin) -> Vec<u8> {
    let mut bytes = [0; 4096];
    let n = rustix::io::retry_on_intr(|| rustix::io::read(terminal, &mut bytes)).unwrap_or(0);
    bytes[..n].to_vec()
}

/// Whether something comes within `time`.
async fn typed_within(terminal: &Stdin, time: Duration) -> bool {
    let began = Instant::now();
    while began.elapsed() < time {
        if is_typed(terminal) {
            return true;
        }
        tokio::time::sleep(LOOK).await;
    }
    false
}

fn is_typed(terminal: &Stdin) -> bool {
    let mut fds = [PollFd::new(terminal, PollFlags::IN)];
    poll(&mut fds, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|n| n > 0)
}

/// One line from stdin; `None` at its end.
fn line() -> Option<String> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).unwrap_or(0);
    (read > 0).then(|| line.trim().to_owned())
}

/// The terminal handing over each key by itself, without showing it, until this is dropped.
struct Keys<'a>(&'a Stdin, Termios);

impl Keys<'_> {
    fn each(terminal: &Stdin) -> Option<Keys<'_>> {
        let before = tcgetattr(terminal).ok()?;
        let mut keys = before.clone();
        keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        tcsetattr(terminal, OptionalActions::Now, &keys).ok()?;
        Some(Keys(terminal, before))
    }
}

impl Drop for Keys<'_> {
    fn drop(&mut self) {
        tcsetattr(self.0, OptionalActions::Now, &self.1).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_early_no_is_a_no_wherever_it_stands() {
        for no in ["n\n", "No", "\u{4}", "\0", "", "y\ny\n\u{4}", "r-1\n\0"] {
            assert_eq!(Early::of(no.as_bytes()), Early::No, "{no:?}");
        }
        for typed in ["y\n", "\n", "r-n\n", " n"] {
            assert_eq!(Early::of(typed.as_bytes()), Early::Typed, "{typed:?}");
        }
    }
}
