//! Packets of a rail that wait for their acknowledgement, and which of them are lost (RFC 9002, section 6).

use std::collections::VecDeque;

use raddle_units::{Span, Time};
use raddle_wire::rails::Ack;

/// A packet counts as lost when one sent this many later has arrived (RFC 9002, section 6.1.1).
const REORDERING_PACKETS: u64 = 3;

/// What a packet carried, for when it is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// Bytes of a message in the outbox.
    Piece(Piece),
    /// The present grant of a port.
    Grant {
        /// The port's index in the inbox.
        port: usize,
    },
    /// Nothing.
    Probe,
}

/// A run of whole segments of a message in the outbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// The message's place in the outbox.
    pub(super) message: u32,
    /// Its first byte.
    pub(super) offset: u64,
    /// The byte after its last.
    pub(super) end: u64,
}

impl Piece {
    pub(super) const fn bytes(&self) -> u64 {
        self.end - self.offset
    }
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// When.
    pub(super) at: Time,
    /// Bytes of the datagram.
    pub(super) bytes: u32,
    /// Bytes sent on the rail up to its end.
    pub(super) end: u64,
    pub(super) content: Content,
    waits: bool,
}

/// What an acknowledgement told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckOutcome {
    /// Bytes of packets acknowledged for the first time.
    pub(super) bytes: u64,
    /// The newest of these packets.
    pub(super) newest: Option<Record>,
    /// Whether the newest is the largest number of the acknowledgement, which its delay belongs to.
    pub(super) is_largest: bool,
    /// When the newest packet was sent that was given up and has arrived after all.
    pub(super) late: Option<Time>,
}

/// An acknowledgement of a packet that was never sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NeverSent;

/// The packets of a rail from the oldest one that waits on.
#[derive(Debug)]
pub(super) struct Sent {
    /// Number of the first record.
    base: u64,
    records: VecDeque<Record>,
    in_flight: u64,
    total: u64,
    /// Largest number acknowledged.
    largest: u64,
    /// When the next packet counts as lost though nothing arrives.
    loss_at: Time,
    last: Time,
    /// The newest packet that was given up, and when it was sent: if it arrives after all, silence was asked about too early.
    doubted: Option<(u64, Time)>,
}

impl Default for Sent {
    fn default() -> Self {
        Self {
            base: 1,
            records: VecDeque::new(),
            in_flight: 0,
            total: 0,
            largest: 0,
            loss_at: Time::NEVER,
            last: Time::ZERO,
            doubted: None,
        }
    }
}

impl Sent {
    /// Notes a packet of `bytes` bytes; gives its number.
    pub(super) fn send(&mut self, now: Time, bytes: u32, content: Content) -> u64 {
        self.total += u64::from(bytes);
        self.in_flight += u64::from(bytes);
        self.last = now;
        let end = self.total;
        self.records.push_back(Record {
            at: now,
            bytes,
            end,
            content,
            waits: true,
        });
        self.base + self.records.len() as u64 - 1
    }

    /// Bytes that wait for their acknowledgement.
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Bytes sent.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// Whether something that was given up may still arrive.
    pub(super) const fn may_still_arrive(&self) -> bool {
        self.doubted.is_some()
    }

    /// When the last packet was sent.
    pub(super) const fn last(&self) -> Time {
        self.last
    }

    /// When [`Self::find_lost`] will find more ([`Time::NEVER`]: not without an acknowledgement).
    pub(super) const fn loss_at(&self) -> Time {
        self.loss_at
    }

    /// An acknowledgement; contents that arrived are added to `arrived`.
    pub(super) fn acknowledge(
        &mut self,
        ack: &Ack,
        arrived: &mut Vec<Content>,
    ) -> Result<AckOutcome, NeverSent> {
        let next = self.base + self.records.len() as u64;
        if ack.largest() >= next {
            return Err(NeverSent);
        }
        self.largest = self.largest.max(ack.largest());
        let has = |number| {
            let mut ranges = ack.ranges().iter();
            ranges.any(|range| (range.first..=range.last).contains(&number))
        };
        let late = self.doubted.take_if(|(number, _)| has(*number));
        let mut told = AckOutcome {
            late: late.map(|(_, at)| at),
            ..AckOutcome::default()
        };
        for range in ack.ranges() {
            if range.last < self.base {
                break;
            }
            for number in (range.first.max(self.base)..=range.last).rev() {
                let record = &mut self.records[(number - self.base) as usize];
                if !record.waits {
                    continue;
                }
                record.waits = false;
                told.bytes += u64::from(record.bytes);
                arrived.push(record.content);
                if told.newest.is_none() {
                    told.newest = Some(*record);
                    told.is_largest = number == ack.largest();
                    // What arrived without it was sent behind it: it is lost.
                    self.doubted = self.doubted.filter(|(doubted, _)| *doubted > number);
                }
            }
        }
        self.in_flight -= told.bytes;
        self.drop_settled();
        Ok(told)
    }

    /// Adds the contents of packets that count as lost at `now` to `lost`: those with three acknowledged ones behind them, or
    /// sent `reordering` ago with one behind. True if there are any but probes.
    pub(super) fn find_lost(
        &mut self,
        now: Time,
        reordering: Span,
        lost: &mut Vec<Content>,
    ) -> bool {
        self.loss_at = Time::NEVER;
        let mut counts = false;
        let behind = (self.largest + 1).saturating_sub(self.base) as usize;
        for (number, record) in (self.base..).zip(self.records.iter_mut().take(behind)) {
            if !record.waits {
                continue;
            }
            let late = record.at + reordering;
            if number + REORDERING_PACKETS <= self.largest || late <= now {
                record.waits = false;
                self.in_flight -= u64::from(record.bytes);
                counts |= record.content != Content::Probe;
                lost.push(record.content);
            } else {
                self.loss_at = self.loss_at.min(late);
            }
        }
        self.drop_settled();
        counts
    }

    /// Gives up all packets sent up to `until`; their contents are added to `lost`. True if there are any but probes.
    pub(super) fn give_up(&mut self, until: Time, lost: &mut Vec<Content>) -> bool {
        let mut counts = false;
        let records = (self.base..).zip(&mut self.records);
        for (number, record) in records.take_while(|(_, record)| record.at <= until) {
            if std::mem::take(&mut record.waits) {
                self.in_flight -= u64::from(record.bytes);
                lost.push(record.content);
                if record.content != Content::Probe {
                    counts = true;
                    self.doubted = Some((number, record.at));
                }
            }
        }
        self.drop_settled();
        counts
    }

    fn drop_settled(&mut self) {
        while self.records.front().is_some_and(|record| !record.waits) {
            self.records.pop_front();
            self.base += 1;
        }
        if self.in_flight == 0 {
            self.loss_at = Time::NEVER;
        }
    }
}

#[cfg(test)]
mod tests {
    use raddle_wire::rails::Numbers;

    use super::*;

    fn piece(number: u64) -> Content {
        Content::Piece(Piece {
            message: 0,
            offset: number,
            end: number + 1,
        })
    }

    fn ack(ranges: &[(u64, u64)]) -> Ack {
        let ranges = ranges.iter().map(|(first, last)| Numbers {
            first: *first,
            last: *last,
        });
        Ack::new(0, false, ranges).unwrap()
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn six() -> Sent {
        let mut sent = Sent::default();
        for number in 1..=6 {
            assert_eq!(sent.send(at(number), 100, piece(number)), number);
        }
        sent
    }

    #[test]
    fn a_packet_is_lost_behind_three_or_after_a_while_behind_one() {
        let mut sent = six();
        let (mut arrived, mut lost) = (Vec::new(), Vec::new());
        let told = sent
            .acknowledge(&ack(&[(5, 5), (2, 2)]), &mut arrived)
            .unwrap();
        assert_eq!(
            (told.bytes, told.newest.unwrap().end, told.is_largest),
            (200, 500, true)
        );
        assert_eq!(arrived, [piece(5), piece(2)]);
        let reordering = Span::from_us(10);
        assert!(sent.find_lost(at(7), reordering, &mut lost));
        assert_eq!(lost, [piece(1)], "3 and 4 have two and one behind them");
        assert_eq!(sent.loss_at(), at(13));
        assert!(sent.find_lost(at(13), reordering, &mut lost));
        assert_eq!((&lost[1..], sent.loss_at()), (&[piece(3)][..], at(14)));
        // What comes after it was given up is nothing new.
        arrived.clear();
        let told = sent.acknowledge(&ack(&[(1, 6)]), &mut arrived).unwrap();
        assert_eq!((told.bytes, arrived), (200, vec![piece(6), piece(4)]));
        assert_eq!((sent.in_flight(), sent.loss_at()), (0, Time::NEVER));
        assert_eq!(sent.send(at(20), 1, Content::Probe), 7, "numbers go on");
    }

    #[test]
    fn what_was_never_sent_cannot_be_acknowledged() {
        let mut sent = six();
        let mut arrived = Vec::new();
        assert!(sent.acknowledge(&ack(&[(7, 7)]), &mut arrived).is_err());
        assert!(sent.acknowledge(&ack(&[(6, 6)]), &mut arrived).is_ok());
        let again = sent.acknowledge(&ack(&[(6, 6)]), &mut arrived).unwrap();
        assert_eq!((again.bytes, arrived.len(), sent.in_flight()), (0, 1, 500));
    }

    #[test]
    fn what_was_given_up_and_arrives_tells_how_long_it_took() {
        let mut sent = six();
        sent.give_up(at(9), &mut Vec::new());
        let mut arrived = Vec::new();
        let told = sent.acknowledge(&ack(&[(1, 5)]), &mut arrived).unwrap();
        assert_eq!((told.bytes, told.late), (0, None));
        for late in [Some(at(6)), None] {
            let told = sent.acknowledge(&ack(&[(1, 6)]), &mut arrived).unwrap();
            assert_eq!((told.bytes, told.late), (0, late));
        }
        assert!(arrived.is_empty());
    }

    #[test]
    fn everything_up_to_a_time_can_be_given_up() {
        let mut sent = six();
        let mut lost = Vec::new();
        assert!(sent.give_up(at(4), &mut lost));
        assert_eq!((lost.len(), sent.in_flight()), (4, 200));
        sent.give_up(at(9), &mut lost);
        let probe = sent.send(at(10), 10, Content::Probe);
        assert!(!sent.give_up(at(10), &mut lost), "{probe} is a probe");
        assert_eq!(sent.in_flight(), 0);
    }
}
