//! A member of a fault-tolerant pair of groups: every packet comes twice, the copy that is second is dropped.
//!
//! The sender gives each packet the next number and sends it to both groups, whose trees share no link (Chen et al.,
//! C-MR4LMS, JCRD, 10.7544/issn1000-1239.20210582). Packets are datagrams here: nothing is sent again, and a
//! member takes what comes in whatever order; [`crate::group::MemberReceiver`] is for messages that are. Numbers that came
//! stand in a window of bits as in RFC 6479, so that a member needs no clock and a fixed memory, however long one of the
//! copies stays away.

use std::num::NonZeroU16;

/// What a packet is to a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// The copy that came first: to be taken.
    First,
    /// The other copy was taken: to be dropped.
    Second,
    /// Older than the window: to be dropped, since nobody knows whether the other copy came.
    TooLate,
}

/// How many packets came as what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ArrivalCounts {
    /// Taken.
    pub first: u64,
    /// Dropped second copies.
    pub second: u64,
    /// Dropped for being older than the window.
    pub too_late: u64,
}

/// The packets of one sender to one pair. A sender that starts again needs a new one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Copies {
    /// A bit for each number of the window and of the rest of its first word; numbers go round.
    came: Box<[u64]>,
    /// The latest number; `None`: nothing came yet.
    latest: Option<u32>,
    counts: ArrivalCounts,
}

const WORD: u32 = u64::BITS;

impl Copies {
    /// A member that nothing has come to. The copies of a packet may be apart by 64 x `words` packets of this sender at
    /// least; memory is 8 bytes for each of the words.
    pub fn new(words: NonZeroU16) -> Self {
        // One word more: the window may begin in the middle of a word. A power of two, so that places go on where
        // numbers begin again with 0.
        let words = (usize::from(words.get()) + 1).next_power_of_two();
        Self {
            came: vec![0; words].into(),
            latest: None,
            counts: ArrivalCounts::default(),
        }
    }

    /// Packets that the window reaches back from the latest one.
    pub fn window(&self) -> u32 {
        (self.came.len() as u32 - 1) * WORD
    }

    /// A packet has come. Numbers count up from any number and begin again with 0 after the last one; of two the later is
    /// the one that is less than half of all numbers ahead (RFC 1982).
    pub fn on_packet(&mut self, number: u32) -> Arrival {
        let arrival = self.judge(number);
        let count = match arrival {
            Arrival::First => &mut self.counts.first,
            Arrival::Second => &mut self.counts.second,
            Arrival::TooLate => &mut self.counts.too_late,
        };
        *count += 1;
        arrival
    }

    /// How many packets came as what.
    pub const fn counts(&self) -> ArrivalCounts {
        self.counts
    }

    fn judge(&mut self, number: u32) -> Arrival {
        match self.latest {
            None => self.latest = Some(number),
            Some(latest) => {
                let ahead = number.wrapping_sub(latest);
                if ahead.cast_signed() > 0 {
                    self.forget_between(latest, number);
                    self.latest = Some(number);
                } else if latest.wrapping_sub(number) >= self.window() {
                    return Arrival::TooLate;
                }
            }
        }
        let (word, bit) = (self.place(number), 1 << (number % WORD));
        if self.came[word] & bit != 0 {
            return Arrival::Second;
        }
        self.came[word] |= bit;
        Arrival::First
    }

    /// Clears the words that the window moves into.
    fn forget_between(&mut self, latest: u32, number: u32) {
        let first = latest / WORD;
        let words = (number / WORD).wrapping_sub(first) % (u32::MAX / WORD + 1);
        for word in 1..=words.min(self.came.len() as u32) {
            let place = self.place(first.wrapping_add(word).wrapping_mul(WORD));
            self.came[place] = 0;
        }
    }

    fn place(&self, number: u32) -> usize {
        (number / WORD) as usize & (self.came.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn member(words: u16) -> Copies {
        Copies::new(NonZeroU16::new(words).unwrap())
    }

    /// Every way to lose packets on two trees with every way of their copies to overtake each other, also where numbers
    /// begin again: a member takes each packet once if a copy comes at all.
    #[test]
    fn what_either_tree_brings_is_taken_once() {
        const PACKETS: usize = 4;
        for base in [0, u32::MAX - 1] {
            for lost in 0..1u32 << (2 * PACKETS) {
                for order in 0..1u32 << (2 * PACKETS) {
                    if order.count_ones() as usize != PACKETS {
                        continue;
                    }
                    let (mut member, mut at) = (member(1), [0; 2]);
                    let mut taken = [0; PACKETS];
                    for step in 0..2 * PACKETS {
                        let tree = (order >> step & 1) as usize;
                        let packet = at[tree];
                        at[tree] += 1;
                        if lost >> (tree * PACKETS + packet) & 1 == 1 {
                            continue;
                        }
                        if member.on_packet(base.wrapping_add(packet as u32)) == Arrival::First {
                            taken[packet] += 1;
                        }
                    }
                    let mut counts = ArrivalCounts::default();
                    for (packet, taken) in taken.into_iter().enumerate() {
                        let copies = 2 - (lost >> packet & 1) - (lost >> (PACKETS + packet) & 1);
                        assert_eq!(taken, copies.min(1), "{base} {lost:b} {order:b}");
                        counts.first += u64::from(copies.min(1));
                        counts.second += u64::from(copies / 2);
                    }
                    assert_eq!(member.counts(), counts);
                }
            }
        }
    }

    /// Against a set of all numbers that came, with random steps ahead and back.
    #[test]
    fn a_window_of_bits_is_a_set_of_numbers() {
        let mut draw = 7u64;
        let mut next = |below: u64| {
            draw = draw
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (draw >> 33) % below
        };
        for words in [1, 2, 3, 7] {
            let mut member = member(words);
            let window = u64::from(member.window());
            assert!(window >= 64 * u64::from(words));
            let (mut came, mut latest) = (BTreeSet::new(), 1u64 << 32);
            for turn in 0..60_000 {
                let number = match next(8) {
                    _ if turn == 0 => latest,
                    0 => latest + 1,
                    1 => latest + next(3 * window),
                    2 => latest - window,
                    3 => latest - window + 1,
                    _ => latest - next(window + 40),
                };
                let expected = if number + window <= latest {
                    Arrival::TooLate
                } else if came.insert(number) {
                    Arrival::First
                } else {
                    Arrival::Second
                };
                assert_eq!(
                    member.on_packet(number as u32),
                    expected,
                    "{number} after {latest}"
                );
                latest = latest.max(number);
            }
            let counts = member.counts();
            assert_eq!(counts.first, came.len() as u64);
            assert_eq!(counts.first + counts.second + counts.too_late, 60_000);
        }
    }

    /// One tree is cut for long: its first packet afterwards is no reason to take old ones again.
    #[test]
    fn a_jump_forgets_what_was_before_it() {
        let mut member = member(2);
        let arrivals: Vec<Arrival> = [5, 1_000_000, 5, 1_000_000, 999_999, 999_999]
            .map(|number| member.on_packet(number))
            .into();
        let expected = [
            Arrival::First,
            Arrival::First,
            Arrival::TooLate,
            Arrival::Second,
            Arrival::First,
            Arrival::Second,
        ];
        assert_eq!(arrivals, expected);
    }
}
