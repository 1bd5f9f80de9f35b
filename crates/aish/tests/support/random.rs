//! Random draws that can be had again: a small generator, and the numbers that are said from outside.

use std::time::Duration;

/// A small generator (splitmix64); the same seed gives the same numbers.
pub struct Rng(pub u64);

impl Rng {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let count = u64::try_from(choices.len()).expect("a number of choices");
        choices[usize::try_from(self.next() % count).expect("one of them")]
    }

    /// Somewhere within that time, to a microsecond.
    pub fn moment(&mut self, within: Duration) -> Duration {
        let micros = u64::try_from(within.as_micros()).unwrap_or(u64::MAX).max(1);
        Duration::from_micros(self.next() % micros)
    }
}

/// A number that a variable of the environment says from outside, for more runs or for those that can be had again.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
