//! The signals by which somebody ends this program, all of them taken: a screen is given back, and what was made for a
//! moment (a server, a folder) is removed, whichever it is.

use crate::error::{Error, Result};
use rustix::process::Signal as Number;
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};

const ALL: &[(Number, &str)] = &[
    (Number::TERM, "SIGTERM"),
    (Number::HUP, "SIGHUP"),
    (Number::INT, "SIGINT"),
    (Number::QUIT, "SIGQUIT"),
    (Number::ABORT, "SIGABRT"),
    (Number::USR1, "SIGUSR1"),
    (Number::USR2, "SIGUSR2"),
    (Number::ALARM, "SIGALRM"),
    (Number::XCPU, "SIGXCPU"),
    (Number::VTALARM, "SIGVTALRM"),
    (Number::PROF, "SIGPROF"),
    (Number::TRAP, "SIGTRAP"),
    (Number::SYS, "SIGSYS"),
    #[cfg(target_os = "linux")]
    (Number::IO, "SIGIO"),
    #[cfg(target_os = "linux")]
    (Number::POWER, "SIGPWR"),
];

/// From its making on none of the signals ends this process by itself.
pub struct Ends(Vec<(Signal, &'static str)>);

impl Ends {
    /// Must be called on a tokio runtime.
    ///
    /// # Errors
    /// When a handler can't be installed.
    pub fn listen() -> io::Result<Ends> {
        let one = |&(number, name): &(Number, _)| {
            signal(SignalKind::from_raw(number.as_raw())).map(|s| (s, name))
        };
        ALL.iter().map(one).collect::<io::Result<_>>().map(Ends)
    }

    /// The next one's name.
    pub async fn next(&mut self) -> &'static str {
        poll_fn(|cx| {
            for (signal, name) in &mut self.0 {
                if let Poll::Ready(Some(())) = signal.poll_recv(cx) {
                    return Poll::Ready(*name);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Waits for one of them.
///
/// # Errors
/// Exit 2 when a handler can't be installed.
pub async fn ended() -> Result<()> {
    let mut ends =
        Ends::listen().map_err(|e| Error::usage(format!("signals can't be listened for: {e}")))?;
    ends.next().await;
    Ok(())
}
