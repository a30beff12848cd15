//! Looking ahead: what the next events will touch is fetched while the events before them are handled.
//!
//! A large fabric does not fit into the cache, and an event's reads depend on each other: event, packet, route, queue, frame.
//! Taken one after the other they are as many misses in a row. Here each step is taken for a group of events one group
//! (or one step) ahead of its use. Nothing is decided but the packets' next hops, which are kept.

use raddle_units::{PortId, prefetch};

use super::{Engine, Kind};
use crate::{event::Event, packet::PacketKind};

/// Events looked at together: enough for their misses to overlap, few enough for what they fetch to stay in the cache.
pub(super) const EVENTS: usize = 64;

/// Ports up to which switches and routes stay in the cache by themselves.
const CACHED_PORTS: usize = 1 << 13;

fn port(event: &Event) -> PortId {
    PortId((event.what >> 32) as u32 & 0xff_ffff)
}

fn is(event: &Event, kind: Kind) -> bool {
    event.what >> 56 == kind as u64
}

impl Engine<'_> {
    /// Fetches what the next events of the open bucket will need.
    #[inline]
    pub(super) fn look_ahead(&mut self) {
        if self.queue.taken() == 0 {
            self.fetch_packets(0);
        }
        self.fetch_packets(EVENTS);
        if self.ends.len() > CACHED_PORTS {
            self.fetch_routes();
            self.fetch_ports();
            self.fetch_frames();
        }
    }

    /// Packets that arrive, and both kinds of ports.
    #[inline]
    fn fetch_packets(&self, skip: usize) {
        for event in self.queue.upcoming(skip, EVENTS) {
            if is(event, Kind::Arrive) {
                self.packets.prefetch(event.what as u32);
                prefetch(&self.ends[port(event).index()]);
            } else if is(event, Kind::Free) {
                prefetch(&self.ends[port(event).index()]);
            }
        }
    }

    /// Table entries for the packets that go on, flows for those that do not.
    fn fetch_routes(&self) {
        for event in self.queue.upcoming(0, EVENTS) {
            let end = &self.ends[port(event).index()];
            if is(event, Kind::Free) && end.is_switch {
                self.switches[end.device as usize].prefetch_port(end.index);
            } else if is(event, Kind::Arrive) {
                let packet = self.packets.get(event.what as u32);
                if end.is_switch {
                    self.router.tables.prefetch(end.node, packet.dst);
                    continue;
                }
                prefetch(&self.nics[end.device as usize]);
                prefetch(&self.flows[packet.flow as usize]);
                if packet.kind == PacketKind::Data {
                    prefetch(&self.receptions[packet.flow as usize]);
                }
            }
        }
    }

    /// Where the packets go on: ports, queues, accounts.
    fn fetch_ports(&mut self) {
        for event in self.queue.upcoming(0, EVENTS) {
            let end = &self.ends[port(event).index()];
            if !is(event, Kind::Arrive) || !end.is_switch {
                continue;
            }
            let handle = event.what as u32;
            let packet = self.packets.get(handle);
            let Some(out) = self.router.next_hop(end.node, packet.dst, packet.hash) else {
                continue;
            };
            // The ports of a node are numbered one after the other, in the fabric as on the node.
            let leaving = out.0 + u32::from(end.index) - port(event).0;
            let switch = &self.switches[end.device as usize];
            switch.prefetch_ports(end.index, leaving as u16, packet.queue);
            prefetch(&self.ends[out.index()]);
            self.packets.get_mut(handle).out = Some(out);
        }
    }

    /// The ends of the queues: frames, and the packets at their heads.
    fn fetch_frames(&self) {
        for event in self.queue.upcoming(0, EVENTS) {
            let end = &self.ends[port(event).index()];
            if is(event, Kind::Free) && end.is_switch {
                if let Some(handle) = self.switches[end.device as usize].peek(end.index) {
                    self.packets.prefetch(handle);
                }
            } else if is(event, Kind::Arrive) && end.is_switch {
                let packet = self.packets.get(event.what as u32);
                if let Some(out) = packet.out {
                    let leaving = self.ends[out.index()].index;
                    self.switches[end.device as usize].prefetch_frames(leaving, packet.queue);
                }
            }
        }
    }
}
