//! Seeded draws that are the same on every machine: ChaCha8 and a sampler of our own.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// One stream of random numbers; every layer of groups has its own, so that another layer does not shift its draws.
pub(crate) struct Random(ChaCha8Rng);

impl Random {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// Uniform in `0..n`; `n` must not be 0. Lemire's multiplication with rejection, without bias.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        let mut wide = u128::from(self.0.next_u64()) * u128::from(n);
        if (wide as u64) < n {
            let least = n.wrapping_neg() % n;
            while (wide as u64) < least {
                wide = u128::from(self.0.next_u64()) * u128::from(n);
            }
        }
        (wide >> 64) as u64
    }

    /// Fisher-Yates: all orders equally likely.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}
