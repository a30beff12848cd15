//! Looking ahead: before some events of a bucket are handled, what they will touch is read once, all of it together.
//!
//! A large fabric does not fit into the cache, and an event's reads depend on each other (event, packet, route, queue): one
//! after the other they are as many misses in a row. Here each step is taken for all of them before the
//! next, so that the misses of a step overlap. Nothing is decided here but the packets' next hops, which are kept.

use std::hint::black_box;

use raddle_units::PortId;

use super::{Engine, Kind};
use crate::packet::PacketKind;

/// Events looked at together: enough for their misses to overlap, few enough for what they read to stay in the cache.
pub(super) const EVENTS: usize = 64;

/// Ports up to which switches and routes stay in the cache by themselves.
const CACHED_PORTS: usize = 1 << 13;

impl Engine<'_> {
    /// Reads what the next events of the open bucket will need.
    #[inline]
    pub(super) fn look_ahead(&mut self) {
        if self.ends.len() > CACHED_PORTS {
            self.look_far_ahead();
            return;
        }
        let mut read = 0;
        for event in self.queue.upcoming(EVENTS) {
            if event.what >> 56 == Kind::Arrive as u64 {
                read ^= self.packets.get(event.what as u32).bytes;
            }
        }
        black_box(read);
    }

    fn look_far_ahead(&mut self) {
        let mut read = 0u64;
        for event in self.queue.upcoming(EVENTS) {
            let high = (event.what >> 32) as usize & 0xff_ffff;
            if event.what >> 56 == Kind::Arrive as u64 {
                let low = event.what as u32;
                read ^= u64::from(self.packets.get(low).bytes) ^ self.packets.first_record(low);
                read ^= self.ends[high].busy_until.0;
            } else if event.what >> 56 == Kind::Free as u64 {
                let end = &self.ends[high];
                if end.is_switch {
                    read ^= self.switches[end.device as usize]
                        .peek(end.index)
                        .map_or(0, u64::from);
                }
            }
        }
        for event in self.queue.upcoming(EVENTS) {
            let port = PortId((event.what >> 32) as u32 & 0xff_ffff);
            let low = event.what as u32;
            if event.what >> 56 == Kind::Arrive as u64 {
                let packet = self.packets.get(low);
                let end = &self.ends[port.index()];
                if end.is_switch {
                    let out = self.router.next_hop(end.node, packet.dst, packet.hash);
                    if let Some(out) = out {
                        let leaving = &self.ends[out.index()];
                        read ^= leaving.busy_until.0;
                        let switch = &self.switches[end.device as usize];
                        read ^= switch.touch(end.index, leaving.index, packet.queue);
                        self.packets.get_mut(low).out = Some(out);
                    }
                } else if packet.kind == PacketKind::Data {
                    read ^= self.receptions[packet.flow as usize].size;
                    read ^= self.nics[end.device as usize].served as u64;
                } else {
                    read ^= self.flows[packet.flow as usize].touch();
                    read ^= self.nics[end.device as usize].served as u64;
                }
            } else if event.what >> 56 == Kind::Free as u64 {
                let end = &self.ends[port.index()];
                if end.is_switch
                    && let Some(handle) = self.switches[end.device as usize].peek(end.index)
                {
                    read ^= u64::from(self.packets.get(handle).bytes);
                    read ^= self.packets.first_record(handle);
                }
            }
        }
        black_box(read);
    }
}
