//! How much work following a ledger may cost: a share of one core over time, with a little in hand, so that the first
//! passes come at once and a whole night of changes costs no more than the share. Pure: the clock is handed in.

use std::time::Duration;

/// Of one core.
const SHARE: f64 = 0.03;
/// In hand at the start, and at most: seconds of work.
const IN_HAND_S: f64 = 1.0;
/// The longest rest: a ledger so large that a pass costs more is looked at this often all the same.
const LONGEST: Duration = Duration::from_secs(120);

/// See the module's head. Times are seconds on any clock that only goes forward.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    in_hand_s: f64,
    at_s: f64,
}

impl Budget {
    /// From now on.
    pub fn new(now_s: f64) -> Budget {
        Budget { in_hand_s: IN_HAND_S, at_s: now_s }
    }

    /// Work that ended now took so much of a processor: how long to rest before more.
    pub fn rest(&mut self, now_s: f64, cost: Duration) -> Duration {
        let passed = (now_s - self.at_s).max(0.0);
        self.at_s = now_s;
        self.in_hand_s = (self.in_hand_s + passed * SHARE).min(IN_HAND_S) - cost.as_secs_f64();
        // A debt is not carried beyond the longest rest.
        self.in_hand_s = self.in_hand_s.max(-LONGEST.as_secs_f64() * SHARE);
        match self.in_hand_s < 0.0 {
            true => Duration::from_secs_f64(-self.in_hand_s / SHARE),
            false => Duration::ZERO,
        }
    }
}

/// What this process has used of a processor so far.
pub fn processor_time() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(t.tv_sec.unsigned_abs(), u32::try_from(t.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_of_changes_costs_the_share_and_the_first_looks_come_at_once() {
        let mut b = Budget::new(0.0);
        let cost = Duration::from_millis(60);
        assert_eq!(b.rest(0.1, cost), Duration::ZERO);
        let (mut now, mut spent) = (0.1, cost.as_secs_f64());
        while now < 8.0 * 3600.0 {
            now += cost.as_secs_f64();
            spent += cost.as_secs_f64();
            now += b.rest(now, cost).as_secs_f64();
        }
        assert!(spent / now < 0.031, "{}", spent / now);
    }

    #[test]
    fn a_pass_that_costs_more_than_the_longest_rest_allows_comes_after_it() {
        let mut b = Budget::new(0.0);
        let rest = b.rest(60.0, Duration::from_secs(60));
        assert_eq!(rest.as_secs_f64().round(), LONGEST.as_secs_f64());
        // After a quiet time there is no debt left, and no hoard.
        assert_eq!(b.rest(1e6, Duration::from_millis(900)), Duration::ZERO);
        assert!(b.rest(1e6, Duration::from_millis(900)) > Duration::from_secs(20));
    }
}
