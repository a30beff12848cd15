//! Packet numbers that arrived on a rail: what to acknowledge, and what came before.

use raddle_wire::rails::Numbers;

/// Ranges that are remembered: four times what an acknowledgement names, so that a late packet is seldom refused.
const MAX_REMEMBERED: usize = 32;

/// What a packet number is to its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// The one after the largest.
    Next,
    /// New, with a gap before it or inside one.
    OutOfOrder,
    /// It came before, or is so old that nobody knows.
    Again,
}

/// Numbers that arrived, as ascending ranges with gaps between them. Numbers below the oldest range that was forgotten count
/// as arrived when they come, and are not acknowledged: their sender sends the contents under other numbers.
#[derive(Debug)]
pub(super) struct Received {
    ranges: Vec<Numbers>,
    /// Numbers below are not told apart any more.
    floor: u64,
}

impl Default for Received {
    fn default() -> Self {
        Self {
            ranges: Vec::with_capacity(MAX_REMEMBERED + 1),
            floor: 1,
        }
    }
}

impl Received {
    /// What `number`, which is not 0, would be.
    pub(super) fn judge(&self, number: u64) -> Arrival {
        match self.ranges.last() {
            Some(newest) if number - 1 == newest.last => Arrival::Next,
            None if number == 1 => Arrival::Next,
            _ if number < self.floor => Arrival::Again,
            _ => {
                let after = self.first_not_below(number);
                match self.ranges.get(after) {
                    Some(range) if range.first <= number => Arrival::Again,
                    _ => Arrival::OutOfOrder,
                }
            }
        }
    }

    /// Takes in a number that [`Self::judge`] called new.
    pub(super) fn insert(&mut self, number: u64) {
        let after = self.first_not_below(number);
        let joins_older = after > 0 && self.ranges[after - 1].last == number - 1;
        let joins_newer = after < self.ranges.len() && self.ranges[after].first - 1 == number;
        match (joins_older, joins_newer) {
            (true, true) => {
                self.ranges[after - 1].last = self.ranges[after].last;
                self.ranges.remove(after);
            }
            (true, false) => self.ranges[after - 1].last = number,
            (false, true) => self.ranges[after].first = number,
            (false, false) => {
                let alone = Numbers {
                    first: number,
                    last: number,
                };
                self.ranges.insert(after, alone);
                if self.ranges.len() > MAX_REMEMBERED {
                    self.floor = self.ranges.remove(0).last + 1;
                }
            }
        }
    }

    /// The ranges, newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = Numbers> {
        self.ranges.iter().rev().copied()
    }

    /// Index of the first range that does not lie wholly below `number`. Most numbers are near the end.
    fn first_not_below(&self, number: u64) -> usize {
        let below = self.ranges.iter().rposition(|range| range.last < number);
        below.map_or(0, |index| index + 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Numbers in a seeded disorder, with repetitions and gaps, against a set.
    #[test]
    fn it_knows_what_a_set_knows() {
        let mut word = 1_u64;
        for spread in [1, 4, 30, 400] {
            let (mut received, mut set) = (Received::default(), BTreeSet::new());
            let mut refused = 0;
            for step in 0..3000_u64 {
                word = word.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
                let number = (1 + step + (word >> 40) % spread)
                    .saturating_sub((word >> 20) % spread)
                    .max(1);
                let known = set.contains(&number);
                let arrival = received.judge(number);
                if arrival == Arrival::Again {
                    refused += u64::from(!known);
                    assert!(known || number < received.floor);
                    continue;
                }
                assert!(!known, "{number} came before");
                let next = set.last().map_or(1, |last| last + 1);
                assert_eq!(arrival == Arrival::Next, number == next);
                received.insert(number);
                set.insert(number);
                assert!(received.ranges.len() <= MAX_REMEMBERED);
                for range in received.newest_first() {
                    assert!((range.first..=range.last).all(|number| set.contains(&number)));
                    assert!(!set.contains(&(range.last + 1)));
                    assert!(range.first <= received.floor || !set.contains(&(range.first - 1)));
                }
            }
            assert!(
                spread > 30 || refused == 0,
                "a small disorder forgets nothing"
            );
        }
    }
}
