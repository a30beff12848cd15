//! What all nodes of a host, of whatever process, have on their way by each card.
//!
//! A node has a slot in shared memory: who it is, when it wrote last, how late it found hosts, and for each of its rails the
//! interface's address and the bytes in flight, the other node's address and the least round-trip time to it. It adds up what
//! the others' slots say. A slot that was not written for a while counts nothing, so that a killed process is forgotten by
//! itself; later somebody else takes its slot.

use std::{
    io,
    net::Ipv4Addr,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use raddle_rails::OtherConnections;
use raddle_units::{Bytes, Span};
use raddle_wire::rails::MAX_RAILS;

use super::segment::Segment;
use crate::clock::uptime_ns;

/// Nodes of a host that take part; those beyond only read.
const SLOTS: usize = 256;
/// Words of a slot: three cache lines.
const SLOT: usize = 24;
/// Words before the slots; the first counts those that were ever taken.
const HEAD: usize = SLOT;
/// Words of all.
const WORDS: usize = HEAD + SLOTS * SLOT;
/// Places in a slot.
const OWNER: usize = 0;
const STAMP: usize = 1;
const LATENESS: usize = 2;
const RAILS: usize = 3;
const PEERS: usize = RAILS + MAX_RAILS;

/// How often a node writes and reads, in ns.
const PERIOD: u64 = 100_000;
/// Age at which what a slot says counts nothing, and at which it may be taken, in ns.
const STALE: u64 = 100_000_000;
const ABANDONED: u64 = 1_000_000_000;

const _: () = assert!(PEERS + MAX_RAILS <= SLOT);

/// A node's view of the others.
#[derive(Debug)]
pub(super) struct Neighbours {
    segment: Segment,
    /// Not 0, and no other node's.
    owner: u64,
    slot: Option<usize>,
    /// Addresses of its rails' interfaces, and of the other node's.
    addresses: Vec<(u32, u32)>,
    exchanged: u64,
}

impl Neighbours {
    /// Takes part, with rails from and to these addresses. `epoch` is the node's, which no other one has.
    ///
    /// # Errors
    /// When there is no shared memory.
    pub(super) fn join(
        epoch: u32,
        addresses: impl IntoIterator<Item = (Ipv4Addr, Ipv4Addr)>,
    ) -> io::Result<Self> {
        let segment = Segment::of_this_host(WORDS)?;
        Ok(Self::with(segment, epoch, addresses))
    }

    fn with(
        segment: Segment,
        epoch: u32,
        addresses: impl IntoIterator<Item = (Ipv4Addr, Ipv4Addr)>,
    ) -> Self {
        Self {
            segment,
            owner: u64::from(std::process::id()) << 32 | u64::from(epoch),
            slot: None,
            addresses: addresses
                .into_iter()
                .map(|(local, peer)| (local.into(), peer.into()))
                .collect(),
            exchanged: 0,
        }
    }

    /// Says what is in flight by each rail, the least round-trip time found on it, and how late hosts are; gives what the others
    /// say of the same cards and nodes. `None` where that was done a moment ago, unless it is `urgent`.
    pub(super) fn exchange(
        &mut self,
        rails: impl Iterator<Item = (u64, Span)>,
        lateness: Span,
        urgent: bool,
    ) -> Option<OtherConnections> {
        let now = uptime_ns();
        if !urgent && now < self.exchanged + PERIOD {
            return None;
        }
        self.exchanged = now;
        self.write(now, rails, lateness);
        Some(self.read(now))
    }

    fn write(&mut self, now: u64, rails: impl Iterator<Item = (u64, Span)>, lateness: Span) {
        let words = self.segment.words();
        let is_mine = |slot: &usize| place(words, *slot)[OWNER].load(Relaxed) == self.owner;
        // Who was stopped for long may have lost its slot.
        self.slot = self.slot.filter(is_mine);
        self.slot = self.slot.or_else(|| take(words, now, self.owner));
        let Some(slot) = self.slot else {
            return;
        };
        let mine = place(words, slot);
        for (rail, ((local, peer), (bytes, least))) in self.addresses.iter().zip(rails).enumerate()
        {
            mine[RAILS + rail].store(word(*local, bytes), Relaxed);
            mine[PEERS + rail].store(word(*peer, least.as_ns()), Relaxed);
        }
        mine[LATENESS].store(lateness.0, Relaxed);
        mine[STAMP].store(now, Relaxed);
    }

    fn read(&self, now: u64) -> OtherConnections {
        let words = self.segment.words();
        let mut others = OtherConnections::default();
        let taken = (words[0].load(Relaxed) as usize).min(SLOTS);
        for slot in (0..taken).filter(|slot| Some(*slot) != self.slot) {
            let theirs = place(words, slot);
            if now.saturating_sub(theirs[STAMP].load(Relaxed)) > STALE {
                continue;
            }
            let lateness = Span(theirs[LATENESS].load(Relaxed));
            for rail in 0..MAX_RAILS {
                let (local, bytes) = halves(theirs[RAILS + rail].load(Relaxed));
                let (peer, least) = halves(theirs[PEERS + rail].load(Relaxed));
                self.add(
                    &mut others,
                    (local, peer),
                    bytes,
                    Span::from_ns(least.into()),
                    lateness,
                );
            }
        }
        others
    }

    /// Adds what another node says of one rail.
    fn add(
        &self,
        others: &mut OtherConnections,
        rail: (u32, u32),
        bytes: u32,
        least: Span,
        lateness: Span,
    ) {
        for (at, mine) in self.addresses.iter().enumerate() {
            if rail.0 == mine.0 && bytes > 0 {
                others.in_flight[at] += Bytes(bytes.into());
                others.lateness = others.lateness.max(lateness);
            }
            let known = others.least_rtt[at];
            if rail == *mine && least > Span::ZERO && (known == Span::ZERO || least < known) {
                others.least_rtt[at] = least;
            }
        }
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

/// A word of a rail: an address and a value (2^32 - 1: so much or more).
fn word(address: u32, value: u64) -> u64 {
    u64::from(address) << 32 | value.min(u32::MAX.into())
}

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

    const PEER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

    /// A node of a host that is called `host`.
    fn join(host: &str, epoch: u32, cards: &[usize]) -> Neighbours {
        let path = format!("/dev/shm/raddle-test-{host}-{}", std::process::id());
        let segment = Segment::open(path.into(), WORDS).unwrap();
        Neighbours::with(
            segment,
            epoch,
            cards.iter().map(|card| (CARDS[*card], PEER)),
        )
    }

    fn seen(node: &mut Neighbours, in_flight: &[u64]) -> Vec<u64> {
        let rails = in_flight.iter().map(|bytes| (*bytes, Span::ZERO));
        let told = node.exchange(rails, Span(7), true);
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
            let rails = [(bytes, Span::ZERO)].into_iter();
            let others = node.exchange(rails, Span(lateness), true);
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
    fn the_least_round_trip_is_that_to_the_same_node() {
        let mut nodes = [(1, 0), (2, 0), (3, 1)].map(|(epoch, card)| join("least", epoch, &[card]));
        let mut tell = |at: usize, least: u64| {
            let rails = [(0, Span::from_ns(least))].into_iter();
            let others = nodes[at].exchange(rails, Span::ZERO, true);
            others.unwrap().least_rtt[0].as_ns()
        };
        assert_eq!(tell(0, 0), 0, "it does not know its own yet");
        assert_eq!(tell(1, 0), 0);
        assert_eq!(tell(2, 5), 0, "another card");
        assert_eq!(tell(0, 700), 0);
        assert_eq!(tell(1, 900), 700);
        assert_eq!(tell(0, 700), 900);
        nodes[1].addresses[0].1 += 1;
        let rails = [(0, Span::from_ns(10))].into_iter();
        let others = nodes[1].exchange(rails, Span::ZERO, true).unwrap();
        assert_eq!(others.least_rtt[0], Span::ZERO, "another node");
    }

    #[test]
    fn it_is_done_now_and_then_unless_it_is_urgent() {
        let mut node = join("often", 700, &[0]);
        let mut is_done = |urgent| {
            let rails = [(1, Span::ZERO)].into_iter();
            node.exchange(rails, Span(1), urgent).is_some()
        };
        assert!(is_done(false));
        let again = (0..3).filter(|_| is_done(false)).count();
        assert!(again < 3, "not every time");
        assert!(is_done(true));
    }
}
