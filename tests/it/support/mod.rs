//! What the tests share.

pub mod cli;
pub mod facts;
pub mod fake_http;
pub mod night;
pub mod pty;
pub mod served;
pub mod shell;
pub mod svg;

use std::time::{Duration, Instant};

/// Longer than anything takes here, however loaded the machine is.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Waits until `condition` gives something; fails the test after [`LIMIT`].
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
