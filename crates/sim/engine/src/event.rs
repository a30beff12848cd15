//! The event queue: a wheel of a few nanoseconds per bucket for the near future, a heap for the rest.
//!
//! Events come out by time and, within an instant, by key; the key is the caller's, so the order never depends on how
//! the queue works inside. Buckets share their memory. When its turn comes, a bucket's events are copied into one list and
//! sorted there.

use std::{cmp::Reverse, collections::BinaryHeap};

use raddle_units::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::chunks::{CHUNK, Chunks, End};

/// Bits of a key: with the time within a bucket it fills a word.
pub(crate) const KEY_BITS: u32 = u64::BITS - Width::Wide.bits();
/// Bits of the least time that the wheel reaches ahead, in ps.
const MIN_REACH_BITS: u32 = 22;
const MAX_BUCKETS: usize = 1 << 16;

/// How much time a bucket holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Width {
    /// 2 ns, for many events at a time.
    Narrow,
    /// 8 ns.
    Wide,
}

impl Width {
    /// Bits of the time within a bucket, in ps.
    const fn bits(self) -> u32 {
        match self {
            Self::Narrow => 11,
            Self::Wide => 13,
        }
    }
}

/// One thing that will happen.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) time: Time,
    /// Order within the instant, below 2^[`KEY_BITS`].
    pub(crate) key: u64,
    /// What it is: the engine's packed word.
    pub(crate) what: u64,
}

/// An event in a bucket, which knows the rest of its time.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Entry {
    /// Time within the bucket, then key.
    rank: u64,
    pub(crate) what: u64,
}

impl Entry {
    /// `within`: the bits of a time that are within a bucket.
    #[inline(always)]
    fn new(event: Event, within: u64) -> Self {
        debug_assert!(event.key >> KEY_BITS == 0, "a key of too many bits");
        Self {
            rank: (event.time.0 & within) << KEY_BITS | event.key,
            what: event.what,
        }
    }

    /// `begin`: when its bucket begins.
    #[inline(always)]
    fn event(self, begin: u64) -> Event {
        Event {
            time: Time(begin | self.rank >> KEY_BITS),
            key: self.rank & ((1 << KEY_BITS) - 1),
            what: self.what,
        }
    }
}

/// The wheel: a list for each bucket.
#[derive(Debug)]
struct Wheel {
    ends: Box<[End]>,
    /// One bit per bucket that holds events.
    occupied: Box<[u64]>,
    chunks: Chunks<Entry>,
}

impl Wheel {
    fn new(buckets: usize) -> Self {
        Self {
            ends: vec![0; buckets].into(),
            occupied: vec![0; buckets / 64].into(),
            chunks: Chunks::default(),
        }
    }

    #[inline(always)]
    fn slot(&self, bucket: u64) -> usize {
        bucket as usize & (self.ends.len() - 1)
    }

    #[inline(always)]
    fn push(&mut self, bucket: u64, entry: Entry) {
        let slot = self.slot(bucket);
        let end = &mut self.ends[slot];
        // Of an empty bucket, too, and seldom of others.
        if end.is_multiple_of(CHUNK) {
            self.occupied[slot / 64] |= 1 << (slot % 64);
        }
        self.chunks.push(end, entry);
    }

    /// The events of a bucket.
    fn pending(&self, slot: usize) -> impl Iterator<Item = &Entry> {
        self.chunks.iter(self.ends[slot])
    }

    /// Takes all events of a bucket that is not empty, in order, into an empty list.
    #[inline(always)]
    fn drain(&mut self, slot: usize, into: &mut Vec<Entry>) {
        /// Most buckets hold a handful of events: insertion beats the general sort there.
        const FEW: usize = 20;
        let end = &mut self.ends[slot];
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        let last = self.chunks.take_last(end);
        if let [only] = last
            && *end == 0
        {
            into.push(*only);
            return;
        }
        into.extend_from_slice(last);
        while *end != 0 {
            into.extend_from_slice(self.chunks.take_last(end));
        }
        if into.len() > FEW {
            into.sort_unstable_by_key(|entry| entry.rank);
        } else {
            sort_few(into);
        }
    }

    /// Takes the first event of a bucket that is not empty away.
    fn discard_first(&mut self, slot: usize) {
        let mut kept = Vec::new();
        self.drain(slot, &mut kept);
        for &entry in &kept[1..] {
            self.push(slot as u64, entry);
        }
    }

    /// Distance from `slot`, which is empty, to the next bucket that holds events.
    #[inline]
    fn next_occupied(&self, slot: usize) -> Option<u64> {
        let words = self.occupied.len();
        let (first_word, bit) = (slot / 64, slot % 64);
        let above = self.occupied[first_word] >> bit;
        if above != 0 {
            return Some(u64::from(above.trailing_zeros()));
        }
        // The last step is around the wheel: what lies before `slot`.
        (1..=words).find_map(|step| {
            let word = self.occupied[(first_word + step) & (words - 1)];
            let distance = step * 64 + word.trailing_zeros() as usize - bit;
            (word != 0).then_some(distance as u64)
        })
    }
}

#[derive(Debug)]
pub(crate) struct EventQueue {
    /// Of the time within a bucket.
    width_bits: u32,
    /// These bits, set.
    within: u64,
    wheel: Wheel,
    /// Number of the bucket that is open, counted from time 0; the wheel has none of its events.
    current: u64,
    /// When it begins.
    begin: u64,
    /// Its events in order, the next one, and the first that is too late to be taken.
    open: Vec<Entry>,
    next: usize,
    stop: usize,
    /// Bucket of the end of what may be taken, and the rank in it; the limit for ranks in the open bucket.
    end: (u64, u64),
    limit: u64,
    /// Events that were added to the open bucket.
    late: BinaryHeap<Reverse<Entry>>,
    far: BinaryHeap<Reverse<Event>>,
    /// The bucket from which on the first of the far events fits the wheel.
    near_from: u64,
}

impl EventQueue {
    /// A queue whose wheel reaches at least `horizon` ahead (within bounds); farther events cost more.
    pub(crate) fn new(horizon: Span, width: Width) -> Self {
        let width_bits = width.bits();
        let wanted = (horizon.0 >> width_bits) as usize + 2;
        let buckets = wanted
            .next_power_of_two()
            .clamp(1 << (MIN_REACH_BITS - width_bits), MAX_BUCKETS);
        Self {
            width_bits,
            within: (1 << width_bits) - 1,
            wheel: Wheel::new(buckets),
            current: 0,
            begin: 0,
            open: Vec::new(),
            next: 0,
            stop: 0,
            end: (u64::MAX, 0),
            limit: u64::MAX,
            late: BinaryHeap::new(),
            far: BinaryHeap::new(),
            near_from: u64::MAX,
        }
    }

    /// Makes this the other queue, and the other this one, but for the memory for events, which stays here: queues that take
    /// turns share it, and only the one whose turn it is may be used.
    pub(crate) fn exchange(&mut self, other: &mut Self) {
        std::mem::swap(self, other);
        std::mem::swap(&mut self.wheel.chunks, &mut other.wheel.chunks);
    }

    /// Adds an event that is not earlier than the last one taken.
    #[inline(always)]
    pub(crate) fn push(&mut self, event: Event) {
        let bucket = event.time.0 >> self.width_bits;
        let ahead = bucket.wrapping_sub(self.current);
        // Of the open bucket, for which this wraps, and of those beyond the wheel.
        if ahead.wrapping_sub(1) >= self.wheel.ends.len() as u64 - 1 {
            return self.push_aside(event.time, event.key, event.what);
        }
        self.wheel.push(bucket, Entry::new(event, self.within));
    }

    /// [`Self::push`] of an event of the open bucket, or beyond the wheel. (By its parts: they stay in registers.)
    #[inline(never)]
    fn push_aside(&mut self, time: Time, key: u64, what: u64) {
        let event = Event { time, key, what };
        if time.0 >> self.width_bits == self.current {
            self.late.push(Reverse(Entry::new(event, self.within)));
        } else {
            self.far.push(Reverse(event));
            self.note_far();
        }
    }

    /// From now on only events before `end` are taken. It never moves back behind what has been taken.
    pub(crate) fn set_end(&mut self, end: Time) {
        let rank = (end.0 & self.within) << KEY_BITS;
        self.end = (end.0 >> self.width_bits, rank);
        self.set_limit();
    }

    fn set_limit(&mut self) {
        let (bucket, rank) = self.end;
        if self.current < bucket {
            (self.limit, self.stop) = (u64::MAX, self.open.len());
            return;
        }
        let left = &self.open[self.next..];
        self.limit = rank;
        self.stop = self.next + left.partition_point(|entry| entry.rank < rank);
    }

    /// Takes the earliest event of the open bucket; `None`: nothing before the end is left in it, [`Self::advance`] opens the
    /// next.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Event> {
        if !self.late.is_empty() {
            return self.pop_of_both();
        }
        self.pop_sorted()
    }

    #[inline(always)]
    fn pop_sorted(&mut self) -> Option<Event> {
        let entry = *self.open[..self.stop].get(self.next)?;
        self.next += 1;
        Some(entry.event(self.begin))
    }

    /// [`Self::pop`] where events were added to the open bucket.
    #[inline(never)]
    fn pop_of_both(&mut self) -> Option<Event> {
        let late = self.late.peek()?.0;
        if self
            .open
            .get(self.next)
            .is_some_and(|sorted| *sorted < late)
        {
            return self.pop_sorted();
        }
        if late.rank >= self.limit {
            return None;
        }
        self.late.pop();
        Some(late.event(self.begin))
    }

    /// The earliest event, wherever it is, without taking it; `None`: there is none.
    pub(crate) fn first(&self) -> Option<Event> {
        let sorted = self.open.get(self.next);
        let late = self.late.peek().map(|Reverse(late)| late);
        if let Some(entry) = sorted.into_iter().chain(late).min() {
            return Some(entry.event(self.begin));
        }
        let slot = self.wheel.slot(self.current);
        match self.wheel.next_occupied(slot) {
            Some(distance) => {
                let bucket = self.current + distance;
                let first = self.wheel.pending(self.wheel.slot(bucket)).min();
                first.map(|entry| entry.event(bucket << self.width_bits))
            }
            None => self.far.peek().map(|Reverse(event)| *event),
        }
    }

    /// Takes [`Self::first`] away.
    pub(crate) fn discard_first(&mut self) {
        let sorted = self.open.get(self.next);
        let late = self.late.peek().map(|Reverse(late)| late);
        match (sorted, late) {
            (Some(sorted), late) if late.is_none_or(|late| sorted <= late) => {
                self.next += 1;
                self.stop = self.stop.max(self.next);
            }
            (_, Some(_)) => {
                self.late.pop();
            }
            (_, None) => {
                let slot = self.wheel.slot(self.current);
                match self.wheel.next_occupied(slot) {
                    Some(distance) => {
                        let slot = self.wheel.slot(self.current + distance);
                        self.wheel.discard_first(slot);
                    }
                    None => {
                        self.far.pop();
                        self.note_far();
                    }
                }
            }
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
        let start = self.open.len().min(self.next + skip);
        &self.open[start..self.open.len().min(start + count)]
    }

    /// Whether the open bucket had at most so many events when it was opened.
    #[inline]
    pub(crate) const fn is_small(&self, most: usize) -> bool {
        self.open.len() <= most
    }

    /// Number of the next bucket after this one, or the open one, that holds events.
    #[inline]
    pub(crate) fn bucket_after(&self, bucket: u64) -> Option<u64> {
        let slot = self.wheel.slot(bucket + 1);
        let distance = self.wheel.next_occupied(slot)?;
        // Once around the wheel there is nothing.
        (bucket + 1 + distance < self.current + self.wheel.ends.len() as u64)
            .then_some(bucket + 1 + distance)
    }

    /// Events of a bucket that is not open, in no order.
    #[inline]
    pub(crate) fn pending(&self, bucket: u64) -> impl Iterator<Item = &Entry> {
        self.wheel.pending(self.wheel.slot(bucket))
    }

    /// Number of the open bucket.
    #[inline]
    pub(crate) const fn bucket(&self) -> u64 {
        self.current
    }

    /// Opens the next bucket that holds events before the end; false: there is none, and what follows may still be added.
    #[inline(always)]
    pub(crate) fn advance(&mut self) -> bool {
        let (end, _) = self.end;
        if self.current >= end {
            return false;
        }
        self.open.clear();
        (self.next, self.stop) = (0, 0);
        let slot = self.wheel.slot(self.current);
        let next = match self.wheel.next_occupied(slot) {
            Some(distance) => self.current + distance,
            None => match self.far.peek() {
                Some(Reverse(event)) => event.time.0 >> self.width_bits,
                None if end == u64::MAX => return false,
                None => u64::MAX,
            },
        };
        self.current = next.min(end);
        self.begin = self.current << self.width_bits;
        if self.current >= self.near_from {
            self.bring_near();
        }
        if next < end {
            self.wheel.drain(self.wheel.slot(next), &mut self.open);
            (self.limit, self.stop) = (u64::MAX, self.open.len());
            return true;
        }
        self.reach_end(next == end)
    }

    /// The bucket of the end is reached, in which there are events or none.
    #[inline(never)]
    fn reach_end(&mut self, found: bool) -> bool {
        if found {
            let slot = self.wheel.slot(self.current);
            self.wheel.drain(slot, &mut self.open);
        }
        self.set_limit();
        found
    }

    /// The window has moved on: what has come near leaves the heap. (No far event can lie before the new bucket: the wheel held
    /// everything nearer than its length.)
    #[inline(never)]
    fn bring_near(&mut self) {
        while let Some(&Reverse(event)) = self.far.peek() {
            let bucket = event.time.0 >> self.width_bits;
            if bucket - self.current >= self.wheel.ends.len() as u64 {
                break;
            }
            self.far.pop();
            self.wheel.push(bucket, Entry::new(event, self.within));
        }
        self.note_far();
    }

    /// Notes when the first far event will be near.
    fn note_far(&mut self) {
        let reach = self.wheel.ends.len() as u64 - 1;
        self.near_from = self.far.peek().map_or(u64::MAX, |Reverse(event)| {
            (event.time.0 >> self.width_bits).saturating_sub(reach)
        });
    }
}

/// Sorts by insertion, one comparison of a word per pair. (Equal ranks are equal events: keys are unique within an instant.)
#[inline(always)]
fn sort_few(entries: &mut [Entry]) {
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
        for width in [Width::Narrow, Width::Wide] {
            compare_with_a_sorted_list(EventQueue::new(Span::from_us(1), width));
        }
    }

    fn compare_with_a_sorted_list(mut queue: EventQueue) {
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
