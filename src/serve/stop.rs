//! The end of the process, as work that sleeps on a blocking thread sees it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wakes every [`Stop::pause`] at once. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<(Mutex<bool>, Condvar)>);

/// The process ends: return without touching anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server is ending")]
pub struct Stopped;

impl Stop {
    /// Ends all pauses, now and later.
    pub fn stop(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Sleeps for `time`. Blocks the thread.
    ///
    /// # Errors
    /// When the end comes first.
    pub fn pause(&self, time: Duration) -> Result<(), Stopped> {
        let until = Instant::now() + time;
        let mut stopped = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if *stopped {
                return Err(Stopped);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            stopped =
                self.0.1.wait_timeout(stopped, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_wakes_a_pause_that_would_outlast_the_test() {
        let stop = Stop::default();
        assert_eq!(stop.pause(Duration::ZERO), Ok(()));
        let sleeper = std::thread::spawn({
            let stop = stop.clone();
            move || stop.pause(Duration::from_secs(3600))
        });
        stop.stop();
        assert_eq!(sleeper.join().unwrap(), Err(Stopped));
        assert_eq!(stop.pause(Duration::ZERO), Err(Stopped));
    }
}
