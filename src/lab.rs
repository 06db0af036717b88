//! Proofs that run for real, on real processes and transports: the kill test, the lab's scenarios, the lessons.
//!
//! `process` starts servers and sees how they end, `effects` counts what they leave behind, `policy` holds how
//! clients in the wild retry (used here and nowhere else: redial itself never repeats a call), `killtest` kills,
//! `scenario` and its kin are the lab, `keep` writes down what went on the wire. Nothing here knows a face.

pub mod class;
pub mod effects;
pub mod keep;
pub mod killtest;
pub mod lesson;
pub mod play;
pub mod policy;
pub mod process;
pub mod progress;
pub mod scenario;
pub mod stage;

/// A source of numbers that the same seed repeats (splitmix64). Not for secrets.
#[derive(Debug, Clone)]
pub struct Dice(pub u64);

impl Dice {
    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to below 1.
    pub fn part(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of a slice that isn't empty.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        from.get(usize::try_from(self.roll() % (from.len().max(1) as u64)).unwrap_or(0)).copied()
    }
}
