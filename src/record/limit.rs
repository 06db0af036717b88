//! The limit on a file's size (`ulimit -f`, systemd's LimitFSIZE) meets a tap as an error of a write, as a full disk
//! does, and not as the signal that ends it and the agent's traffic with it.

use tokio::signal::unix::{SignalKind, signal};

/// From now on SIGXFSZ does nothing but make the write fail (EFBIG). A handler, unlike `SIG_IGN`, is not inherited over
/// an exec: a server meets its own limit as it would without us. Best effort: without it a write over the limit ends us.
pub fn outlive_file_size() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let Ok(runtime) = runtime else { return };
    // The handler stays for the life of the process, whatever becomes of the stream.
    runtime.block_on(async {
        signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).ok();
    });
}
