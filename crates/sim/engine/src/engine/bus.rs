//! A host's bus and its cards: packets wait for them in order on their way between memory and wire.

use std::collections::VecDeque;

use raddle_units::{Bytes, Span, Time};

use crate::{
    host_rails::{Bus, Card},
    index::PacketSlot,
};

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// From memory to a card, and onto the wire.
    Read = 0,
    /// From the wire into a card, and to memory.
    Write = 1,
}

impl Way {
    /// By number: 0 reads, anything else writes.
    #[inline]
    pub(super) const fn of(number: u32) -> Self {
        if number == 0 { Self::Read } else { Self::Write }
    }
}

/// One host's bus.
#[derive(Debug, Default)]
pub(super) struct HostBus {
    /// When all that waits is across, each way; a shared bus uses the first.
    free_at: [Time; 2],
    waiting: [VecDeque<PacketSlot>; 2],
}

impl HostBus {
    /// Puts a packet with so much payload in line; when it is across. `None`: it is at once, since nothing limits this way.
    pub(super) fn cross(
        &mut self,
        bus: &Bus,
        now: Time,
        way: Way,
        payload: u32,
        packet: PacketSlot,
    ) -> Option<Time> {
        let (rate, cut) = match way {
            Way::Read => (bus.read, bus.cut),
            Way::Write => (bus.write, Span::ZERO),
        };
        if rate.is_none() && cut == Span::ZERO {
            return None;
        }
        let mut time = rate.map_or(Span::ZERO, |rate| {
            rate.transmission_time(Bytes(payload.into()))
        });
        if payload > 0 {
            time += cut;
        }
        let free_at = &mut self.free_at[if bus.shared { 0 } else { way as usize }];
        *free_at = now.max(*free_at) + time;
        self.waiting[way as usize].push_back(packet);
        Some(*free_at)
    }

    /// The packet that is across next: they come out as they went in.
    pub(super) fn across(&mut self, way: Way) -> Option<PacketSlot> {
        self.waiting[way as usize].pop_front()
    }
}

/// What one card's two ways share.
#[derive(Debug, Default)]
pub(super) struct CardBus {
    /// When all that waits is across.
    free_at: Time,
    /// Which way the last payload went.
    last: Option<Way>,
    waiting: VecDeque<(Way, PacketSlot)>,
}

impl CardBus {
    /// Puts a packet with so much payload in line; when it is across. `None`: it is at once, since cards have no limit.
    pub(super) fn cross(
        &mut self,
        card: &Card,
        now: Time,
        way: Way,
        payload: u32,
        packet: PacketSlot,
    ) -> Option<Time> {
        if *card == Card::default() {
            return None;
        }
        let mut time = Span::ZERO;
        // What carries no payload waits its turn, so that no card reorders, and takes none.
        if payload > 0 {
            let bytes = Bytes(payload.into());
            time = card
                .both_ways
                .map_or(Span::ZERO, |rate| rate.transmission_time(bytes));
            if self.last.replace(way).is_some_and(|last| last != way) {
                time += card.turn;
            }
        }
        self.free_at = now.max(self.free_at) + time;
        self.waiting.push_back((way, packet));
        Some(self.free_at)
    }

    /// The packet that is across next, and which way it goes.
    pub(super) fn across(&mut self) -> Option<(Way, PacketSlot)> {
        self.waiting.pop_front()
    }
}
