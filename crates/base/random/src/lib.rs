//! Draws from a seed that are the same on every machine: ChaCha8 and samplers of our own.
//!
//! Samplers of libraries change their values with versions and features (and those of `usize` with the word size), so
//! the few that are needed are written out, on `libm` where they need a logarithm. A core gets its seed from a driver.
//!
//! ```
//! use raddle_random::Random;
//! let draws = |seed, stream| {
//!     let mut random = Random::new(seed, stream);
//!     [(); 3].map(|()| random.below(100))
//! };
//! assert_eq!(draws(1, 0), draws(1, 0));
//! assert_ne!(draws(1, 0), draws(1, 1));
//! ```

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// One stream of random numbers. What draws beside others has a stream of its own, so that leaving one out does not
/// change the others.
#[derive(Clone, Debug)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// Stream number `stream` of a seed.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// Uniform in `0..n`; `n` must not be 0. Lemire's multiplication with rejection, without bias.
    pub fn below(&mut self, n: u64) -> u64 {
        let mut wide = u128::from(self.0.next_u64()) * u128::from(n);
        if (wide as u64) < n {
            let least = n.wrapping_neg() % n;
            while (wide as u64) < least {
                wide = u128::from(self.0.next_u64()) * u128::from(n);
            }
        }
        (wide >> 64) as u64
    }

    /// Uniform index of a list of `len` items; `len` must not be 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Uniform in [0, 1), 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// An item other than the one at `except`; the list must have two.
    pub fn other(&mut self, len: usize, except: usize) -> usize {
        let drawn = self.index(len - 1);
        if drawn >= except { drawn + 1 } else { drawn }
    }

    /// One of a list that has some.
    pub fn pick<T: Copy, const N: usize>(&mut self, from: [T; N]) -> T {
        from[self.index(N)]
    }

    /// Fisher-Yates: all orders equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i + 1));
        }
    }

    /// Sattolo: the map from position to item becomes one cycle through all of them.
    pub fn shuffle_to_cycle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i));
        }
    }

    /// Moves `k` random distinct items to the front, in random order.
    pub fn choose_to_front<T>(&mut self, items: &mut [T], k: usize) {
        let len = items.len();
        for i in 0..k.min(len) {
            let j = i + self.index(len - i);
            items.swap(i, j);
        }
    }

    /// True with a probability in millionths.
    pub fn happens(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.below(1_000_000) < u64::from(ppm)
    }

    /// Uniform from `low` to `high`, both included; `high` must not be below `low`, nor both be all that 64 bits hold.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_covers_its_range_evenly() {
        let mut random = Random::new(3, 1);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[random.index(6)] += 1;
        }
        // Binomial(60,000, 1/6): standard deviation 91; five of them.
        assert!(
            counts.iter().all(|&n| (9_544..=10_456).contains(&n)),
            "{counts:?}"
        );
    }

    #[test]
    fn cycles_visit_everything_once() {
        for n in 2..40u32 {
            let mut items: Vec<u32> = (0..n).collect();
            Random::new(u64::from(n), 0).shuffle_to_cycle(&mut items);
            let (mut at, mut length) = (0, 0);
            loop {
                at = items[at as usize];
                length += 1;
                if at == 0 {
                    break;
                }
            }
            assert_eq!(length, n);
        }
    }
}
