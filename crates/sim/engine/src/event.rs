//! The event queue: a wheel of about one nanosecond per bucket for the near future, a heap for the rest.
//!
//! Events come out by time and, within an instant, by key; the key is the caller's, so the order never depends on how
//! the queue works inside. A bucket is sorted once, when its turn comes.

use std::{cmp::Reverse, collections::BinaryHeap};

use raddle_prefetch::prefetch;
use raddle_units::{Span, Time};
use serde::{Deserialize, Serialize};

/// Bucket width: 1024 ps.
const WIDTH_BITS: u32 = 10;
/// Bits of a key: with the time within a bucket it fills a word.
pub(crate) const KEY_BITS: u32 = u64::BITS - WIDTH_BITS;
const MIN_BUCKETS: usize = 1 << 12;
const MAX_BUCKETS: usize = 1 << 17;

/// How far ahead of its end a bucket's memory is fetched: two cache lines.
const ENTRIES_AHEAD: usize = 8;

/// One thing that will happen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) time: Time,
    /// Order within the instant, below 2^[`KEY_BITS`].
    pub(crate) key: u64,
    /// What it is: the engine's packed word.
    pub(crate) what: u64,
}

/// An event in a bucket, which knows the rest of its time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Entry {
    /// Time within the bucket, then key.
    rank: u64,
    pub(crate) what: u64,
}

impl Entry {
    #[inline(always)]
    fn new(event: Event) -> Self {
        debug_assert!(event.key >> KEY_BITS == 0, "a key of too many bits");
        Self {
            rank: event.time.0 << KEY_BITS | event.key,
            what: event.what,
        }
    }

    #[inline(always)]
    fn event(self, bucket: u64) -> Event {
        Event {
            time: Time(bucket << WIDTH_BITS | self.rank >> KEY_BITS),
            key: self.rank & ((1 << KEY_BITS) - 1),
            what: self.what,
        }
    }
}

#[derive(Debug)]
pub(crate) struct EventQueue {
    buckets: Vec<Vec<Entry>>,
    /// One bit per bucket that holds events.
    occupied: Vec<u64>,
    /// Number of the bucket being drained, counted from time 0, and the next event in it.
    current: u64,
    next: usize,
    /// Bucket of the end of what may be taken, and the rank in it; the limit for ranks in the open bucket.
    end: (u64, u64),
    limit: u64,
    /// Events that were added to the bucket being drained.
    late: BinaryHeap<Reverse<Entry>>,
    far: BinaryHeap<Reverse<Event>>,
}

impl EventQueue {
    /// A queue whose wheel reaches at least `horizon` ahead (within bounds); farther events cost more.
    pub(crate) fn new(horizon: Span) -> Self {
        let wanted = (horizon.0 >> WIDTH_BITS) as usize + 2;
        let buckets = wanted.next_power_of_two().clamp(MIN_BUCKETS, MAX_BUCKETS);
        Self {
            buckets: vec![Vec::new(); buckets],
            occupied: vec![0; buckets / 64],
            current: 0,
            next: 0,
            end: (u64::MAX, 0),
            limit: u64::MAX,
            late: BinaryHeap::new(),
            far: BinaryHeap::new(),
        }
    }

    /// Adds an event that is not earlier than the last one taken.
    #[inline(always)]
    pub(crate) fn push(&mut self, event: Event) {
        let bucket = event.time.0 >> WIDTH_BITS;
        let ahead = bucket.wrapping_sub(self.current);
        if ahead == 0 {
            self.late.push(Reverse(Entry::new(event)));
        } else if ahead < self.buckets.len() as u64 {
            self.push_near(bucket, event);
        } else {
            self.far.push(Reverse(event));
        }
    }

    /// From now on only events before `end` are taken. It never moves back behind what has been taken.
    pub(crate) fn set_end(&mut self, end: Time) {
        self.end = (end.0 >> WIDTH_BITS, end.0 << KEY_BITS);
        self.set_limit();
    }

    fn set_limit(&mut self) {
        let (bucket, rank) = self.end;
        self.limit = if self.current < bucket {
            u64::MAX
        } else {
            rank
        };
    }

    /// Takes the earliest event of the open bucket; `None`: nothing before the end is left in it, [`Self::advance`] opens the
    /// next.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Event> {
        let slot = self.current as usize & (self.buckets.len() - 1);
        let sorted = self.buckets[slot].get(self.next);
        if let Some(Reverse(late)) = self.late.peek()
            && sorted.is_none_or(|sorted| late < sorted)
        {
            if late.rank >= self.limit {
                return None;
            }
            let Reverse(late) = self.late.pop()?;
            return Some(late.event(self.current));
        }
        let entry = *sorted?;
        if entry.rank >= self.limit {
            return None;
        }
        self.next += 1;
        Some(entry.event(self.current))
    }

    /// The earliest event, wherever it is, without taking it; `None`: there is none.
    pub(crate) fn first(&self) -> Option<Event> {
        let mask = self.buckets.len() - 1;
        let slot = self.current as usize & mask;
        let sorted = self.buckets[slot].get(self.next);
        let late = self.late.peek().map(|Reverse(late)| late);
        if let Some(entry) = sorted.into_iter().chain(late).min() {
            return Some(entry.event(self.current));
        }
        match self.next_occupied(slot) {
            Some(distance) => {
                let bucket = self.current + distance;
                let entries = &self.buckets[bucket as usize & mask];
                entries.iter().min().map(|entry| entry.event(bucket))
            }
            None => self.far.peek().map(|Reverse(event)| *event),
        }
    }

    /// Takes [`Self::first`] away.
    pub(crate) fn discard_first(&mut self) {
        let mask = self.buckets.len() - 1;
        let slot = self.current as usize & mask;
        let sorted = self.buckets[slot].get(self.next);
        let late = self.late.peek().map(|Reverse(late)| late);
        match (sorted, late) {
            (Some(sorted), late) if late.is_none_or(|late| sorted <= late) => self.next += 1,
            (_, Some(_)) => {
                self.late.pop();
            }
            (_, None) => match self.next_occupied(slot) {
                Some(distance) => {
                    let slot = (self.current + distance) as usize & mask;
                    let entries = &mut self.buckets[slot];
                    let first = (0..entries.len()).min_by_key(|&place| entries[place]);
                    if let Some(place) = first {
                        entries.swap_remove(place);
                    }
                    if entries.is_empty() {
                        self.occupied[slot / 64] &= !(1 << (slot % 64));
                    }
                }
                None => {
                    self.far.pop();
                }
            },
        }
    }

    /// Events of the sorted part of the open bucket that were taken; [`Self::advance`] starts again at 0.
    #[inline]
    pub(crate) const fn taken(&self) -> usize {
        self.next
    }

    /// At most `count` events of the open bucket from the `skip`-th that was not taken on: what will be touched soon.
    #[inline]
    pub(crate) fn upcoming(&self, skip: usize, count: usize) -> &[Entry] {
        let slot = self.current as usize & (self.buckets.len() - 1);
        let events = &self.buckets[slot];
        let start = events.len().min(self.next + skip);
        &events[start..events.len().min(start + count)]
    }

    #[inline]
    fn push_near(&mut self, bucket: u64, event: Event) {
        let slot = bucket as usize & (self.buckets.len() - 1);
        let bucket = &mut self.buckets[slot];
        bucket.push(Entry::new(event));
        // The bucket grows through memory that was used long ago: fetch what it will grow into.
        if let Some(next) = bucket.spare_capacity_mut().get(ENTRIES_AHEAD) {
            prefetch(next);
        }
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// Opens the next bucket that holds events before the end; false: there is none, and what follows may still be added.
    pub(crate) fn advance(&mut self) -> bool {
        let (end, _) = self.end;
        if self.current >= end {
            return false;
        }
        let mask = self.buckets.len() - 1;
        let slot = self.current as usize & mask;
        self.buckets[slot].clear();
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        self.next = 0;
        let next = match (self.next_occupied(slot), self.far.peek()) {
            (Some(distance), _) => self.current + distance,
            (None, Some(Reverse(event))) => event.time.0 >> WIDTH_BITS,
            (None, None) => u64::MAX,
        };
        let found = next <= end && next != u64::MAX;
        if end == u64::MAX && !found {
            return false;
        }
        self.current = next.min(end);
        self.set_limit();
        // The window moved on: what has come near leaves the heap. (No far event can lie before the new bucket: the
        // wheel held everything nearer than its length.)
        while let Some(Reverse(event)) = self.far.peek() {
            let bucket = event.time.0 >> WIDTH_BITS;
            if bucket - self.current >= self.buckets.len() as u64 {
                break;
            }
            let event = *event;
            self.far.pop();
            self.push_near(bucket, event);
        }
        let slot = self.current as usize & mask;
        sort(&mut self.buckets[slot]);
        found
    }

    /// Distance from `slot` to the next other bucket that holds events.
    fn next_occupied(&self, slot: usize) -> Option<u64> {
        let words = self.occupied.len();
        let (first_word, bit) = (slot / 64, slot % 64);
        let above = self.occupied[first_word] >> bit >> 1;
        if above != 0 {
            return Some(u64::from(above.trailing_zeros()) + 1);
        }
        for step in 1..=words {
            let mut word = self.occupied[(first_word + step) % words];
            if step == words {
                // Around the wheel: what lies before `slot`.
                word &= (1 << bit) - 1;
            }
            if word != 0 {
                return Some(step as u64 * 64 + u64::from(word.trailing_zeros()) - bit as u64);
            }
        }
        None
    }
}

/// Sorts a bucket by one comparison of a word per pair. Most buckets hold a handful of events: insertion beats the general
/// sort there. (Equal ranks are equal events: keys are unique within an instant.)
fn sort(entries: &mut [Entry]) {
    const SMALL: usize = 20;
    if entries.len() > SMALL {
        entries.sort_unstable_by_key(|entry| entry.rank);
        return;
    }
    for sorted in 1..entries.len() {
        let entry = entries[sorted];
        let mut at = sorted;
        while at > 0 && entries[at - 1].rank > entry.rank {
            entries[at] = entries[at - 1];
            at -= 1;
        }
        entries[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_in_the_order_of_a_sorted_list() {
        let mut queue = EventQueue::new(Span::from_us(1));
        let (mut pending, mut taken) = (std::collections::BTreeSet::new(), 0u64);
        let (mut state, mut now) = (1u64, Time::ZERO);
        for step in 0..200_000u64 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let random = state >> 33;
            if random % 2 == 0 || pending.is_empty() {
                // Mostly near, some at this instant, some far beyond the wheel.
                let ahead = match random % 16 {
                    0 => 0,
                    2 => random * 100,
                    _ => random % 3_000_000,
                };
                let event = Event {
                    time: now + Span(ahead),
                    key: random % 7,
                    what: step,
                };
                queue.push(event);
                pending.insert(event);
            } else {
                let expected = pending.pop_first().unwrap();
                let event = queue.pop().unwrap_or_else(|| {
                    assert!(queue.advance());
                    queue.pop().unwrap()
                });
                assert_eq!((event.time, event.key), (expected.time, expected.key));
                // Same time and key: any order is right, the model only has to forget the same one.
                if event != expected {
                    pending.insert(expected);
                    assert!(pending.remove(&event));
                }
                now = event.time;
                taken += 1;
            }
        }
        assert!(taken > 50_000);
    }
}
