//! Ctrl-C, SIGTERM, SIGHUP and the other signals that end a program, while an endpoint is open: the call is given up, the child is ended with its whole group,
//! and what became of the call is told. Nobody is left to guess whether something was sent.
//!
//! Over stdio the server is ended as always (stdin closed, SIGTERM, SIGKILL): it may still answer while it has
//! time to. Over HTTP the call is cancelled. A second signal kills the child's group at once. A command that only reads
//! a ledger ends at the first one, and leaves no copy behind.

use super::plain::complain;
use super::report::{Done, Failure, Witness};
use crate::client::Client;
use crate::error::{Error, Exit, Result};
use crate::journal::CallId;
use crate::model::lookup::is_look_up;
use crate::signals::Ends;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::watch;

/// How long the report of an interrupted call may take: the bounded end of a child, and one read of the ledger.
const REPORT: Duration = Duration::from_secs(15);

/// How long a question that is open gets to end with No.
const QUESTION: Duration = Duration::from_millis(500);

/// The signals that came so far.
#[derive(Debug, Clone)]
pub struct Interrupt(watch::Receiver<Seen>);

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    times: u32,
    name: &'static str,
}

impl Interrupt {
    /// From now on none of the signals ends this process by itself. Must be called on a tokio runtime.
    pub fn listen() -> Interrupt {
        let (tx, rx) = watch::channel(Seen::default());
        // Where no handler can be installed the system's own rule goes on: the process ends.
        if let Ok(mut ends) = Ends::listen() {
            tokio::spawn(async move {
                loop {
                    let name = ends.next().await;
                    tx.send_modify(|seen| *seen = Seen { times: seen.times + 1, name });
                }
            });
        }
        Interrupt(rx)
    }

    /// The signal that came, if one did.
    pub fn seen(&self) -> Option<&'static str> {
        let seen = *self.0.borrow();
        (seen.times > 0).then_some(seen.name)
    }

    /// Waits for the first signal.
    pub async fn first(&self) -> &'static str {
        self.after(0).await
    }

    async fn after(&self, times: u32) -> &'static str {
        let mut rx = self.0.clone();
        let name = rx.wait_for(|seen| seen.times > times).await.map(|seen| seen.name).ok();
        match name {
            Some(name) => name,
            // No handler could be installed: nothing ever comes.
            None => std::future::pending().await,
        }
    }

    /// The error of a command that a signal stopped before anything was sent.
    pub fn stopped(name: &str, exit: Exit) -> Error {
        Error::new(exit, format!("interrupted ({name}); nothing was sent"))
    }
}

/// Does `work` that only reads a ledger; a signal breaks it off. It may be stuck in a write that nobody reads, so it
/// runs apart, and is not waited for long.
pub async fn reading(work: impl Future<Output = Done> + Send + 'static) -> Done {
    let interrupt = Interrupt::listen();
    let mut task = tokio::spawn(work);
    tokio::select! {
        done = &mut task => match done.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(done) => done,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Err(Err(e)) => Err(Error::ledger(format!("the read broke off: {e}")).into()),
        },
        name = interrupt.first() => {
            task.abort();
            tokio::time::timeout(QUESTION, task).await.ok();
            // Not a document: one may be half written.
            complain(&format!("interrupted ({name})"));
            Ok(Exit::Ledger)
        }
    }
}

/// Does `work` on an open endpoint, and closes it; on a signal `work` still gets to report what it sent.
/// `look_up` names the tool whose calls change nothing.
pub async fn watched(
    client: &Client,
    interrupt: &Interrupt,
    look_up: &str,
    work: impl Future<Output = Result<Exit>>,
) -> Done {
    let mut work = pin!(work);
    let done = tokio::select! {
        biased;
        done = &mut work => Some(done),
        _ = interrupt.first() => {
            let nothing_yet = client.journal().read(|s| s.calls.is_empty());
            if nothing_yet {
                // The gate's question may be open: it says No by itself.
                tokio::time::timeout(QUESTION, work.as_mut()).await.ok()
            } else {
                give_up(client, interrupt, work.as_mut()).await
            }
        }
    };
    let done = match done {
        Some(done) => done,
        None => {
            end(client, interrupt).await;
            Err(unreported(client, interrupt, look_up))
        }
    };
    let done = done.map_err(|error| Failure { error, witness: Some(Witness::of(client, None)) });
    end(client, interrupt).await;
    done
}

/// Gives every call up until `work` is done with its report; `None` when that takes too long.
async fn give_up(
    client: &Client,
    interrupt: &Interrupt,
    mut work: std::pin::Pin<&mut impl Future<Output = Result<Exit>>>,
) -> Option<Result<Exit>> {
    let ending = async {
        if !client.endpoint().is_http() {
            client.ending(&format!("given up ({})", interrupt.seen().unwrap_or("signal")));
            end(client, interrupt).await;
        }
        loop {
            let pending: Vec<CallId> = client.journal().read(|s| {
                s.calls.iter().filter(|(_, c)| c.is_pending()).map(|(id, _)| *id).collect()
            });
            pending.into_iter().for_each(|id| client.cancel(id));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        done = &mut work => Some(done),
        () = ending => None,
        () = tokio::time::sleep(REPORT) => None,
    }
}

/// What is to be said when `work` could not report itself. To be asked after the endpoint is closed: what was
/// queued before is in the journal then.
fn unreported(client: &Client, interrupt: &Interrupt, look_up: &str) -> Error {
    let name = interrupt.seen().unwrap_or("signal");
    let sent =
        client.journal().read(|s| s.calls.values().any(|c| c.sent > 0 && !is_look_up(look_up, c)));
    if sent {
        Error::new(
            Exit::Unknown,
            format!("interrupted ({name}) after the call had left: its outcome is unknown"),
        )
        .hint("look it up (redial find) before anything is repeated")
    } else {
        Interrupt::stopped(name, Exit::Endpoint)
    }
}

/// Closes the endpoint; a second signal kills what is left of a child at once.
async fn end(client: &Client, interrupt: &Interrupt) {
    tokio::select! {
        () = client.close() => return,
        _ = interrupt.after(1) => {}
    }
    // The client knows which group is still its own; a number in the journal may be a stranger's by now.
    if !client.endpoint().is_http() {
        client.close_now().await;
    }
}
