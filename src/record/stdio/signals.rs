//! The signals of the stdio tap.

use super::{ORPHAN_GRACE, Server};
use rustix::process::Signal;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Passes signals on, and ends a server that nobody is there for any more.
pub(super) fn pass_on(server: Arc<Server>) {
    use tokio::signal::unix::{SignalKind, signal};
    const PASSED: [Signal; 8] = [
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::ABORT,
        Signal::USR1,
        Signal::USR2,
        Signal::ALARM,
    ];
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return;
    };
    let (ready, is_ready) = mpsc::channel();
    let parent = rustix::process::getppid();
    let spawned = std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async move {
            let mut all = tokio::task::JoinSet::new();
            for signal_number in PASSED {
                let kind = SignalKind::from_raw(signal_number.as_raw());
                let Ok(mut stream) = signal(kind) else { continue };
                let server = server.clone();
                all.spawn(async move {
                    while stream.recv().await.is_some() {
                        server.signal(signal_number);
                        let ends =
                            !matches!(signal_number, Signal::USR1 | Signal::USR2 | Signal::ALARM);
                        server.to_end.fetch_or(ends, Ordering::SeqCst);
                    }
                });
            }
            if let Ok(mut ended) = signal(SignalKind::child()) {
                all.spawn(async move {
                    while ended.recv().await.is_some() {
                        crate::procs::reap();
                    }
                });
            }
            ready.send(()).ok();
            all.spawn(async move {
                loop {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    let orphaned = rustix::process::getppid() != parent;
                    if orphaned && server.client_gone.load(Ordering::SeqCst) {
                        tokio::time::sleep(ORPHAN_GRACE).await;
                        server.to_end.store(true, Ordering::SeqCst);
                        server.signal(Signal::TERM);
                        tokio::time::sleep(ORPHAN_GRACE).await;
                        server.signal(Signal::KILL);
                        return;
                    }
                }
            });
            while all.join_next().await.is_some() {}
        });
    });
    if spawned.is_ok() {
        // A signal that comes before would end us and not the server.
        is_ready.recv_timeout(Duration::from_secs(1)).ok();
    }
}
