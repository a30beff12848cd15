//! What all nodes of a host, of whatever process, have on their way by each card.
//!
//! A node has a slot in shared memory: who it is, when it wrote last, how late it found hosts, and for each of its rails the
//! interface's address and the bytes in flight. It adds up what the others' slots say. A slot that was not written for a while counts nothing, so that a killed
//! process is forgotten by itself; later somebody else takes its slot.

use std::{
    io,
    net::Ipv4Addr,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use raddle_transport::rails::Others;
use raddle_units::{Bytes, Span};
use raddle_wire::rails::MAX_RAILS;

use super::segment::{Segment, uptime_ns};

/// Nodes of a host that take part; those beyond only read.
const SLOTS: usize = 256;
/// Words of a slot: two cache lines.
const SLOT: usize = 16;
/// Words before the slots; the first counts those that were ever taken.
const HEAD: usize = SLOT;
/// Words of all.
const WORDS: usize = HEAD + SLOTS * SLOT;
/// Places in a slot.
const OWNER: usize = 0;
const STAMP: usize = 1;
const LATENESS: usize = 2;
const RAILS: usize = 3;

/// How often a node writes and reads, in ns.
const PERIOD: u64 = 100_000;
/// Age at which what a slot says counts nothing, and at which it may be taken, in ns.
const STALE: u64 = 100_000_000;
const ABANDONED: u64 = 1_000_000_000;

const _: () = assert!(RAILS + MAX_RAILS <= SLOT);

/// A node's view of the others.
#[derive(Debug)]
pub(super) struct Neighbours {
    segment: Segment,
    /// Not 0, and no other node's.
    owner: u64,
    slot: Option<usize>,
    /// Addresses of its rails' interfaces.
    addresses: Vec<u32>,
    exchanged: u64,
}

impl Neighbours {
    /// Takes part, with rails of these interfaces. `epoch` is the node's, which no other one has.
    ///
    /// # Errors
    /// When there is no shared memory.
    pub(super) fn join(
        epoch: u32,
        addresses: impl IntoIterator<Item = Ipv4Addr>,
    ) -> io::Result<Self> {
        let segment = Segment::of_this_host(WORDS)?;
        Ok(Self::with(segment, epoch, addresses))
    }

    fn with(segment: Segment, epoch: u32, addresses: impl IntoIterator<Item = Ipv4Addr>) -> Self {
        Self {
            segment,
            owner: u64::from(std::process::id()) << 32 | u64::from(epoch),
            slot: None,
            addresses: addresses.into_iter().map(u32::from).collect(),
            exchanged: 0,
        }
    }

    /// Says what is in flight by each rail and how late hosts are, and gives what the others say of the same cards; `None` where
    /// that was done a moment ago, unless it is `urgent`.
    pub(super) fn exchange(
        &mut self,
        in_flight: impl Iterator<Item = u64>,
        lateness: Span,
        urgent: bool,
    ) -> Option<Others> {
        let now = uptime_ns();
        if !urgent && now < self.exchanged + PERIOD {
            return None;
        }
        self.exchanged = now;
        self.write(now, in_flight, lateness);
        Some(self.read(now))
    }

    fn write(&mut self, now: u64, in_flight: impl Iterator<Item = u64>, lateness: Span) {
        let words = self.segment.words();
        let is_mine = |slot: &usize| place(words, *slot)[OWNER].load(Relaxed) == self.owner;
        // Who was stopped for long may have lost its slot.
        self.slot = self.slot.filter(is_mine);
        self.slot = self.slot.or_else(|| take(words, now, self.owner));
        let Some(slot) = self.slot else {
            return;
        };
        let mine = place(words, slot);
        for ((word, address), bytes) in mine[RAILS..].iter().zip(&self.addresses).zip(in_flight) {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            word.store(u64::from(*address) << 32 | u64::from(bytes), Relaxed);
        }
        mine[LATENESS].store(lateness.0, Relaxed);
        mine[STAMP].store(now, Relaxed);
    }

    fn read(&self, now: u64) -> Others {
        let words = self.segment.words();
        let mut others = Others::default();
        let taken = (words[0].load(Relaxed) as usize).min(SLOTS);
        for slot in (0..taken).filter(|slot| Some(*slot) != self.slot) {
            let theirs = place(words, slot);
            if now.saturating_sub(theirs[STAMP].load(Relaxed)) > STALE {
                continue;
            }
            for word in &theirs[RAILS..RAILS + MAX_RAILS] {
                let (address, bytes) = halves(word.load(Relaxed));
                if bytes == 0 {
                    continue;
                }
                for (sum, mine) in others.in_flight.iter_mut().zip(&self.addresses) {
                    if address == *mine {
                        *sum += Bytes(bytes.into());
                        others.lateness = others.lateness.max(Span(theirs[LATENESS].load(Relaxed)));
                    }
                }
            }
        }
        others
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            let mine = place(self.segment.words(), slot);
            if mine[OWNER].load(Relaxed) == self.owner {
                clear(mine);
                mine[OWNER].store(0, Relaxed);
            }
        }
    }
}

/// A rail's word: address, and bytes in flight (2^32 - 1: as many or more).
const fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

fn place(words: &[AtomicU64], slot: usize) -> &[AtomicU64] {
    &words[HEAD + slot * SLOT..][..SLOT]
}

fn clear(slot: &[AtomicU64]) {
    slot[LATENESS..]
        .iter()
        .for_each(|word| word.store(0, Relaxed));
}

/// Takes a slot that is free or abandoned; `None`: there is none.
fn take(words: &[AtomicU64], now: u64, owner: u64) -> Option<usize> {
    (0..SLOTS).find(|slot| {
        let place = place(words, *slot);
        let before = place[OWNER].load(Relaxed);
        let age = now.saturating_sub(place[STAMP].load(Relaxed));
        if before != 0 && age < ABANDONED {
            return false;
        }
        let exchanged = place[OWNER].compare_exchange(before, owner, Relaxed, Relaxed);
        if exchanged.is_ok() {
            place[STAMP].store(now, Relaxed);
            clear(place);
            words[0].fetch_max(*slot as u64 + 1, Relaxed);
        }
        exchanged.is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARDS: [Ipv4Addr; 3] = [
        Ipv4Addr::new(203, 0, 113, 1),
        Ipv4Addr::new(203, 0, 113, 2),
        Ipv4Addr::new(203, 0, 113, 3),
    ];

    /// A node of a host that is called `host`.
    fn join(host: &str, epoch: u32, cards: &[usize]) -> Neighbours {
        let path = format!("/dev/shm/raddle-test-{host}-{}", std::process::id());
        let segment = Segment::open(path.into(), WORDS).unwrap();
        Neighbours::with(segment, epoch, cards.iter().map(|card| CARDS[*card]))
    }

    fn seen(node: &mut Neighbours, in_flight: &[u64]) -> Vec<u64> {
        let told = node.exchange(in_flight.iter().copied(), Span(7), true);
        let others = told.unwrap().in_flight;
        others[..in_flight.len()]
            .iter()
            .map(|bytes| bytes.0)
            .collect()
    }

    /// Random writes of nodes with other orders of rails, against a table of who has what by which card.
    #[test]
    fn each_sees_the_sum_of_the_others_by_card() {
        let rails = [vec![0, 1], vec![1, 0], vec![2, 0, 1], vec![2]];
        let mut nodes: Vec<_> = (0..)
            .zip(&rails)
            .map(|(at, cards)| join("sums", 900 + at, cards))
            .collect();
        let mut table = [[0_u64; 3]; 4];
        let mut state = 1_u64;
        for _ in 0..2000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let at = (state >> 33) as usize % nodes.len();
            let in_flight: Vec<u64> = (0..rails[at].len())
                .map(|rail| state >> (36 + rail) & 0xffff)
                .collect();
            let found = seen(&mut nodes[at], &in_flight);
            table[at] = [0; 3];
            for (card, bytes) in rails[at].iter().zip(&in_flight) {
                table[at][*card] = *bytes;
            }
            let others = |card: usize| {
                (0..4)
                    .filter(|node| *node != at)
                    .map(|node| table[node][card])
                    .sum()
            };
            let expected: Vec<u64> = rails[at].iter().map(|card| others(*card)).collect();
            assert_eq!(found, expected);
        }
        drop(nodes.remove(3));
        assert_eq!(
            seen(&mut nodes[2], &[0, 0, 0])[0],
            0,
            "who leaves has nothing in flight"
        );
    }

    #[test]
    fn a_killed_node_is_forgotten_and_its_slot_taken() {
        let (mut killed, mut other) = (join("killed", 801, &[0]), join("killed", 802, &[0]));
        seen(&mut killed, &[5000]);
        assert_eq!(seen(&mut other, &[1]), [5000]);
        // It writes no more: time passes.
        let now = uptime_ns();
        let later = |age: u64| other.read(now + age).in_flight[0].0;
        assert_eq!((later(STALE / 2), later(STALE * 2)), (5000, 0));
        let slot = killed.slot.unwrap();
        let words = other.segment.words();
        let abandoned = now + ABANDONED * 2;
        // All slots are as old then: the first one is taken, whoever's it was.
        let taken = take(words, abandoned, 77).unwrap();
        assert_eq!(place(words, taken)[OWNER].load(Relaxed), 77);
        place(words, slot)[OWNER].store(77, Relaxed);
        // It was only stopped, and finds itself another.
        seen(&mut killed, &[6000]);
        assert_ne!(killed.slot, Some(slot));
        place(words, slot)[OWNER].store(0, Relaxed);
        place(words, taken)[OWNER].store(0, Relaxed);
    }

    #[test]
    fn all_hear_of_the_latest_who_has_something_on_the_same_card() {
        let [mut first, mut second, mut elsewhere] =
            [(1, 0), (2, 0), (3, 1)].map(|(epoch, card)| join("late", epoch, &[card]));
        let tell = |node: &mut Neighbours, bytes: u64, lateness: u64| {
            let others = node.exchange([bytes].into_iter(), Span(lateness), true);
            others.unwrap().lateness.0
        };
        assert_eq!(tell(&mut elsewhere, 10, 900), 0);
        assert_eq!(tell(&mut first, 10, 500), 0);
        assert_eq!(tell(&mut second, 0, 700), 500);
        assert_eq!(
            tell(&mut first, 10, 100),
            0,
            "the second has nothing on its way"
        );
        assert_eq!(tell(&mut second, 10, 700), 100);
        assert_eq!(tell(&mut first, 10, 100), 700);
    }

    #[test]
    fn it_is_done_now_and_then_unless_it_is_urgent() {
        let mut node = join("often", 700, &[0]);
        assert!(node.exchange([1].into_iter(), Span(1), false).is_some());
        let again = (0..3)
            .filter(|_| node.exchange([1].into_iter(), Span(1), false).is_some())
            .count();
        assert!(again < 3, "not every time");
        assert!(node.exchange([1].into_iter(), Span(1), true).is_some());
    }
}
