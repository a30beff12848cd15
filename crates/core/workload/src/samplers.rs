//! Samplers that remember what they have drawn.

use raddle_random::Random;

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
}
