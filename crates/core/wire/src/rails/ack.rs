//! Acknowledgements: ranges of packet numbers, newest first, as in QUIC (RFC 9000 section 19.3).

use super::zero;
use crate::{WireError, field::header};
use serde::{Deserialize, Serialize};

/// Ranges that an acknowledgement names at most.
pub const MAX_RANGES: usize = 8;

header! {
    /// What begins the body of an acknowledgement: its newest range. Behind it an [`AckRange`] for each older one.
    AckHead, AckHeadView, RailAck, 20 {
        /// largest number that has arrived
        largest: u64 = Big 0:0/64,
        /// numbers just below it that have arrived too
        below: u32 = Big 8:0/32,
        /// nanoseconds from the arrival of the largest to this packet
        delay_ns: u32 = Big 12:0/32,
        /// older ranges that follow, 0..=7
        ranges: u8 = Big 16:0/8,
        /// reserved, 0
        reserved: u32 = Big 17:0/23,
        /// packets carried a congestion mark since the last acknowledgement
        marked: bool = Big 19:7/1,
    }
}

header! {
    /// An older range of an acknowledgement.
    AckRange, AckRangeView, RailRange, 8 {
        /// numbers missing between it and the newer range, from 1
        gap: u32 = Big 0:0/32,
        /// numbers in it, from 1
        count: u32 = Big 4:0/32,
    }
}

/// Numbers from `first` to `last`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Numbers {
    /// The least.
    pub first: u64,
    /// The largest.
    pub last: u64,
}

/// Which numbers of a rail have arrived. Numbers in no range may have arrived too: only the newest ranges are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// Nanoseconds from the arrival of the largest number to the acknowledgement; the most that fits if it was longer.
    pub delay_ns: u32,
    /// Packets carried a congestion mark since the last acknowledgement.
    pub marked: bool,
    ranges: [Numbers; MAX_RANGES],
    count: u8,
}

impl Ack {
    /// An acknowledgement of `ranges`, newest first and none touching another; those beyond the first [`MAX_RANGES`], or too
    /// far apart for their fields, are left out. `None` without a range.
    #[must_use]
    pub fn new(
        delay_ns: u32,
        marked: bool,
        ranges: impl IntoIterator<Item = Numbers>,
    ) -> Option<Self> {
        let mut ack = Self {
            delay_ns,
            marked,
            ranges: [Numbers::default(); MAX_RANGES],
            count: 0,
        };
        for mut range in ranges.into_iter().take(MAX_RANGES) {
            if let Some(newer) = ack.ranges().last()
                && newer.first - range.last - 1 > u32::MAX.into()
            {
                break;
            }
            range.first = range
                .first
                .max(range.last.saturating_sub(u32::MAX.into()) + 1);
            ack.ranges[usize::from(ack.count)] = range;
            ack.count += 1;
        }
        (ack.count > 0).then_some(ack)
    }

    /// The ranges, newest first, with a gap between any two. There is at least one.
    #[must_use]
    pub fn ranges(&self) -> &[Numbers] {
        &self.ranges[..usize::from(self.count)]
    }

    /// The largest number that has arrived.
    #[must_use]
    pub const fn largest(&self) -> u64 {
        self.ranges[0].last
    }

    pub(super) fn length(&self) -> usize {
        AckHead::SIZE + AckRange::SIZE * (usize::from(self.count) - 1)
    }

    pub(super) fn write(&self, packet: &mut [u8], at: usize) -> Result<(), WireError> {
        let head = AckHead {
            largest: self.ranges[0].last,
            below: (self.ranges[0].last - self.ranges[0].first) as u32,
            delay_ns: self.delay_ns,
            ranges: self.count - 1,
            reserved: 0,
            marked: self.marked,
        };
        head.write(packet, at)?;
        let mut at = at + AckHead::SIZE;
        for pair in self.ranges().windows(2) {
            let entry = AckRange {
                gap: (pair[0].first - pair[1].last - 1) as u32,
                count: (pair[1].last - pair[1].first + 1) as u32,
            };
            entry.write(packet, at)?;
            at += AckRange::SIZE;
        }
        Ok(())
    }

    pub(super) fn parse(packet: &[u8], at: usize) -> Result<Self, WireError> {
        let head = AckHead::view(packet, at)?.values();
        zero(AckHead::LAYER, at + 17, head.reserved.into())?;
        let refuse = |layer, field, byte, found: u64, expected| {
            Err(WireError::value(layer, field, byte, found, expected))
        };
        let count = usize::from(head.ranges) + 1;
        if count > MAX_RANGES {
            return refuse(
                AckHead::LAYER,
                "ranges",
                at + 16,
                head.ranges.into(),
                "0..=7",
            );
        }
        // Numbers begin with 1, so that every range has a number below it that is in none.
        let Some(first) = head
            .largest
            .checked_sub(head.below.into())
            .filter(|first| *first > 0)
        else {
            return refuse(
                AckHead::LAYER,
                "below",
                at + 8,
                head.below.into(),
                "below largest",
            );
        };
        let mut ack = Self {
            delay_ns: head.delay_ns,
            marked: head.marked,
            ranges: [Numbers::default(); MAX_RANGES],
            count: count as u8,
        };
        ack.ranges[0] = Numbers {
            first,
            last: head.largest,
        };
        for index in 1..count {
            let at = at + AckHead::SIZE + AckRange::SIZE * (index - 1);
            let entry = AckRange::view(packet, at)?.values();
            if entry.gap == 0 || entry.count == 0 {
                return refuse(
                    AckRange::LAYER,
                    "gap",
                    at,
                    entry.gap.into(),
                    "a gap before a range",
                );
            }
            let newer = ack.ranges[index - 1].first;
            let down = u64::from(entry.gap) + u64::from(entry.count);
            let Some(first) = newer.checked_sub(down).filter(|first| *first > 0) else {
                let found = entry.count.into();
                return refuse(AckRange::LAYER, "count", at + 4, found, "numbers from 1");
            };
            ack.ranges[index] = Numbers {
                first,
                last: first + u64::from(entry.count) - 1,
            };
        }
        Ok(ack)
    }
}
