//! Looking ahead: what the next events will touch is fetched while the events before them are handled.
//!
//! A large fabric does not fit into the cache, and an event's reads depend on each other: event, packet, route, queue, frame.
//! Taken one after the other they are as many misses in a row. Here each step is taken for a group of events one group
//! (or one step) ahead of its use. Nothing is decided but the packets' next hops, which are kept.

use raddle_prefetch::prefetch;
use raddle_units::PortId;

use super::{Engine, Kind};
use crate::event::Entry;

/// Events looked at together: enough for their misses to overlap, few enough for what they fetch to stay in the cache.
pub(super) const EVENTS: usize = 64;

/// Ports up to which switches and routes stay in the cache by themselves.
const CACHED_PORTS: usize = 1 << 13;

/// The port that an event happens at, and whether a packet arrives there (or a transmission ends). `None`: events of other
/// kinds, whose words mean other things.
#[inline(always)]
fn place(event: &Entry) -> Option<(PortId, bool)> {
    const ARRIVE: u64 = Kind::Arrive as u64;
    const FREE: u64 = Kind::Free as u64;
    let port = PortId((event.what >> 32) as u32 & 0xff_ffff);
    match event.what >> 56 {
        ARRIVE => Some((port, true)),
        FREE => Some((port, false)),
        _ => None,
    }
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
            self.fetch_devices();
            self.fetch_ports();
            self.fetch_frames();
        }
    }

    /// Packets that arrive, and ports.
    #[inline]
    fn fetch_packets(&self, skip: usize) {
        for event in self.queue.upcoming(skip, EVENTS) {
            let Some((port, arrives)) = place(event) else {
                continue;
            };
            prefetch(&self.ends[port.index()]);
            if arrives {
                self.packets.prefetch(event.what as u32);
            }
        }
    }

    /// Table entries for the packets that go on, flows for those that do not; cards, and ports that look for work.
    fn fetch_devices(&self) {
        for event in self.queue.upcoming(0, EVENTS) {
            let Some((port, arrives)) = place(event) else {
                continue;
            };
            let end = &self.ends[port.index()];
            match (end.is_switch, arrives) {
                (true, true) => {
                    let packet = self.packets.get(event.what as u32);
                    if packet.kind.is_unicast() {
                        self.router.tables.prefetch(end.node, packet.dst);
                    }
                }
                (true, false) => self.switches[end.device as usize].prefetch_port(end.index),
                (false, false) => prefetch(&self.nics[end.device as usize]),
                (false, true) => {
                    prefetch(&self.nics[end.device as usize]);
                    self.packets.prefetch_rest(event.what as u32);
                    let packet = self.packets.get(event.what as u32);
                    if !packet.kind.is_of_flow() {
                        continue;
                    }
                    prefetch(&self.flows[packet.flow as usize]);
                    if packet.kind.is_data() {
                        prefetch(&self.receptions[packet.flow as usize]);
                    }
                }
            }
        }
    }

    /// Where the packets go on: ports, queues, accounts; what waits in the cards.
    fn fetch_ports(&mut self) {
        for event in self.queue.upcoming(0, EVENTS) {
            let Some((port, arrives)) = place(event) else {
                continue;
            };
            let end = &self.ends[port.index()];
            if !end.is_switch {
                self.nics[end.device as usize].prefetch_lists();
                continue;
            }
            if !arrives {
                self.switches[end.device as usize].prefetch_head(end.index);
                continue;
            }
            let handle = event.what as u32;
            let packet = self.packets.get(handle);
            if !packet.kind.is_unicast() {
                continue;
            }
            let Some(out) = self.router.next_hop(end.node, packet.dst, packet.hash) else {
                continue;
            };
            // The ports of a node are numbered one after the other, in the fabric as on the node.
            let leaving = out.0 + u32::from(end.index) - port.0;
            let switch = &self.switches[end.device as usize];
            switch.prefetch_ports(end.index, leaving as u16, packet.queue);
            prefetch(&self.ends[out.index()]);
            self.packets.get_mut(handle).set_out(out);
        }
    }

    /// The ends of the queues: frames, and the packets at their heads; the flows whose turn it is.
    fn fetch_frames(&self) {
        for event in self.queue.upcoming(0, EVENTS) {
            let Some((port, arrives)) = place(event) else {
                continue;
            };
            let end = &self.ends[port.index()];
            if !end.is_switch {
                if let Some(flow) = self.nics[end.device as usize].likely_next() {
                    prefetch(&self.flows[flow as usize]);
                }
            } else if arrives {
                let packet = self.packets.get(event.what as u32);
                if let Some(out) = packet.out() {
                    let leaving = self.ends[out.index()].index;
                    self.switches[end.device as usize].prefetch_frames(leaving, packet.queue);
                }
            } else if let Some(handle) = self.switches[end.device as usize].peek(end.index) {
                self.packets.prefetch(handle);
            }
        }
    }
}
