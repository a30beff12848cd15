//! A host's bus: packets wait for it in order, each way, on their way between memory and cards.

use std::collections::VecDeque;

use raddle_units::{Bytes, Span, Time};

use crate::host_rails::Bus;

/// Which way bytes cross the bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// From memory to a card.
    Read = 0,
    /// From a card to memory.
    Write = 1,
}

/// One host's bus.
#[derive(Debug, Default)]
pub(super) struct HostBus {
    /// When all that waits is across, each way; a shared bus uses the first.
    free_at: [Time; 2],
    waiting: [VecDeque<u32>; 2],
}

impl HostBus {
    /// Puts a packet with so much payload in line; when it is across. `None`: it is at once, since nothing limits this way.
    pub(super) fn cross(
        &mut self,
        bus: &Bus,
        now: Time,
        way: Way,
        payload: u32,
        handle: u32,
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
        self.waiting[way as usize].push_back(handle);
        Some(*free_at)
    }

    /// The packet that is across next: they come out as they went in.
    pub(super) fn across(&mut self, way: Way) -> Option<u32> {
        self.waiting[way as usize].pop_front()
    }
}
