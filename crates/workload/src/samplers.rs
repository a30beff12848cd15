//! Seeded randomness that is the same on every machine: ChaCha8 and samplers of our own.
//!
//! Library samplers change their values with versions and features (and `usize` sampling with the word size), so the
//! few distributions needed here are written out, on `libm` where they need a logarithm.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// One stream of random numbers. Every component of a generator has its own stream, so that leaving one out (the
/// isolated twin) does not change the others.
#[derive(Clone, Debug)]
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

    /// Uniform index of a list of `len` items; `len` must not be 0.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Uniform in [0, 1), 53 bits.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential with this mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// An item other than the one at `except`; the list must have two.
    pub(crate) fn other(&mut self, len: usize, except: usize) -> usize {
        let drawn = self.index(len - 1);
        if drawn >= except { drawn + 1 } else { drawn }
    }

    /// Fisher-Yates: all orders equally likely.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i + 1));
        }
    }

    /// Sattolo: the map from position to item becomes one cycle through all of them.
    pub(crate) fn shuffle_to_cycle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i));
        }
    }

    /// Moves `k` random distinct items to the front, in random order.
    pub(crate) fn choose_to_front<T>(&mut self, items: &mut [T], k: usize) {
        let len = items.len();
        for i in 0..k.min(len) {
            let j = i + self.index(len - i);
            items.swap(i, j);
        }
    }
}

/// `n` independent uniform points of [0, 1) in ascending order, without storing them: the gap above the k-th of the
/// remaining points follows from one uniform number (order statistics of the uniform distribution).
#[derive(Clone, Debug)]
pub(crate) struct SortedUniform {
    left: u64,
    rest: f64,
}

impl SortedUniform {
    pub(crate) fn new(n: u64) -> Self {
        Self { left: n, rest: 1.0 }
    }

    pub(crate) fn next(&mut self, random: &mut Random) -> Option<f64> {
        if self.left == 0 {
            return None;
        }
        // The least of m uniform numbers exceeds x with probability (1-x)^m.
        self.rest *= libm::pow(1.0 - random.unit(), 1.0 / self.left as f64);
        self.left -= 1;
        Some(1.0 - self.rest)
    }
}

/// Draws without replacement from items that occur several times; each draw costs O(log items).
#[derive(Clone, Debug)]
pub(crate) struct Multiset {
    /// Fenwick tree of what is left.
    tree: Vec<u64>,
    left: u64,
}

impl Multiset {
    /// `total` draws spread over `items` as evenly as whole numbers allow; who gets one more is random.
    pub(crate) fn even(items: usize, total: u64, random: &mut Random) -> Self {
        let mut order: Vec<usize> = (0..items).collect();
        random.shuffle(&mut order);
        let extra = (total % items as u64) as usize;
        let mut counts = vec![total / items as u64; items];
        for &item in order.iter().take(extra) {
            counts[item] += 1;
        }
        let mut tree = vec![0; items + 1];
        for (item, count) in counts.into_iter().enumerate() {
            let mut at = item + 1;
            while at <= items {
                tree[at] += count;
                at += at & at.wrapping_neg();
            }
        }
        Self { tree, left: total }
    }

    pub(crate) fn draw(&mut self, random: &mut Random) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        let mut rank = random.below(self.left);
        let items = self.tree.len() - 1;
        let mut at = 0;
        let mut step = (items + 1).next_power_of_two();
        while step > 0 {
            let next = at + step;
            if next <= items && self.tree[next] <= rank {
                rank -= self.tree[next];
                at = next;
            }
            step /= 2;
        }
        let item = at;
        let mut node = item + 1;
        while node <= items {
            self.tree[node] -= 1;
            node += node & node.wrapping_neg();
        }
        self.left -= 1;
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiset_gives_every_item_its_share() {
        let mut random = Random::new(1, 0);
        let mut set = Multiset::even(64, 1281, &mut random);
        let mut counts = [0u32; 64];
        while let Some(item) = set.draw(&mut random) {
            counts[item] += 1;
        }
        assert_eq!(counts.iter().filter(|&&n| n == 20).count(), 63);
        assert_eq!(counts.iter().filter(|&&n| n == 21).count(), 1);
    }

    #[test]
    fn sorted_uniform_points_are_ordered_and_uniform() {
        let mut random = Random::new(7, 0);
        let mut points = SortedUniform::new(100_000);
        let (mut last, mut below_quarter) = (0.0, 0);
        while let Some(at) = points.next(&mut random) {
            assert!((last..1.0).contains(&at));
            last = at;
            below_quarter += u32::from(at < 0.25);
        }
        // Binomial(100,000, 1/4): standard deviation 137; five of them.
        assert!(
            (24_315..=25_685).contains(&below_quarter),
            "{below_quarter}"
        );
    }

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
