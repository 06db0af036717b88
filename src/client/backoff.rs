//! When to try an HTTP endpoint again: 1 s doubling, jitter, cap 30 s; five quick tries, then slow ones;
//! the count starts over only after a good spell. Pure: the caller owns the clock and the dice.

/// Seconds a connection must have been good before the count starts over.
pub const GOOD_SPELL_S: f64 = 10.0;

/// Tries in the quick phase.
const QUICK: u32 = 5;

/// Seconds to wait before try `attempt` (from 1). `dice` in 0..1 adds up to half a second of jitter, so that
/// many clients do not come back at once.
pub fn delay_s(attempt: u32, dice: f64) -> f64 {
    let base = if attempt <= QUICK { f64::from(1u32 << (attempt.max(1) - 1)) } else { 30.0 };
    (base + 0.5 * dice.clamp(0.0, 1.0)).min(30.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_then_goes_slowly_and_never_spins() {
        let waits: Vec<f64> = (1..=8).map(|n| delay_s(n, 0.0)).collect();
        assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]);
        assert_eq!(delay_s(0, 0.0), 1.0);
        assert!(delay_s(1, 1.0) <= 1.5 && delay_s(9, 1.0) <= 30.0);
    }
}
