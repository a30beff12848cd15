//! Looking ahead: what the next events will touch is fetched while the events before them are handled.
//!
//! A large fabric does not fit into the cache, and an event's reads depend on each other: event, packet, route, queue, frame.
//! Taken one after the other they are as many misses in a row. Here each step is taken for a group of events one group
//! (or one step) ahead of its use. Nothing is decided but the packets' next hops, which are kept.

use raddle_prefetch::prefetch;

use super::{link::Device, process::Base, what::What};
use crate::index::PacketSlot;

/// Events looked at together: enough for their misses to overlap, few enough for what they fetch to stay in the cache.
pub(super) const EVENTS: usize = 64;

/// Ports up to which switches and routes stay in the cache by themselves.
const CACHED_PORTS: usize = 1 << 13;

/// Ports up to which packets do so too.
const FEW_PORTS: usize = 1 << 11;

impl Base<'_> {
    /// Fetches what the next events of the open bucket will need.
    #[inline]
    pub(super) fn look_ahead(&mut self) {
        if self.wires.ends.len() <= FEW_PORTS {
            return;
        }
        if self.cx.queue.taken() == 0 {
            self.fetch_packets(0);
        }
        self.fetch_packets(EVENTS);
        if self.wires.ends.len() > CACHED_PORTS {
            self.fetch_devices();
            self.fetch_ports();
            self.fetch_frames();
        }
    }

    /// Packets that arrive, and ports.
    #[inline]
    fn fetch_packets(&self, skip: usize) {
        let large = self.wires.ends.len() > CACHED_PORTS;
        for event in self.cx.queue.upcoming(skip, EVENTS) {
            let Some((port, arrives)) = What::at_port(event.what) else {
                continue;
            };
            if large {
                prefetch(&self.wires.ends[port]);
            }
            if let Some(packet) = arrives {
                self.wires.packets.prefetch(packet);
            }
        }
    }

    /// Table entries for the packets that go on, flows for those that do not; cards, and ports that look for work.
    fn fetch_devices(&self) {
        for event in self.cx.queue.upcoming(0, EVENTS) {
            let Some((port, arrives)) = What::at_port(event.what) else {
                continue;
            };
            let end = &self.wires.ends[port];
            match (end.device, arrives) {
                (Device::Switch(_), Some(handle)) => {
                    let packet = self.wires.packets.get(handle);
                    if packet.kind.is_unicast() {
                        self.wires.router.tables.prefetch(end.node, packet.dst());
                    }
                }
                (Device::Switch(switch), None) => {
                    self.wires.switches[switch].prefetch_port(end.index);
                }
                (Device::Nic(nic), None) => prefetch(&self.hosts.nics[nic]),
                (Device::Nic(nic), Some(handle)) => {
                    prefetch(&self.hosts.nics[nic]);
                    self.wires.packets.prefetch_rest(handle);
                    let packet = self.wires.packets.get(handle);
                    if !packet.kind.is_of_flow() {
                        continue;
                    }
                    if !packet.kind.is_data() {
                        prefetch(&self.hosts.flows[packet.flow()]);
                    }
                }
            }
        }
    }

    /// Where the packets go on: ports, queues, accounts; what waits in the cards.
    fn fetch_ports(&mut self) {
        for event in self.cx.queue.upcoming(0, EVENTS) {
            let Some((port, arrives)) = What::at_port(event.what) else {
                continue;
            };
            let end = &self.wires.ends[port];
            let switch = match end.device {
                Device::Switch(switch) => switch,
                Device::Nic(nic) => {
                    self.hosts.nics[nic].prefetch_lists();
                    continue;
                }
            };
            let Some(handle) = arrives else {
                self.wires.switches[switch].prefetch_head(end.index);
                continue;
            };
            let packet = self.wires.packets.get(handle);
            if !packet.kind.is_unicast() {
                continue;
            }
            let Some(out) = self
                .wires
                .router
                .next_hop(end.node, packet.dst(), packet.hash)
            else {
                continue;
            };
            let out = self.wires.here(port, out);
            // The ports of a node are numbered one after the other.
            let leaving = out.0 + u32::from(end.index) - port.0;
            let switch = &self.wires.switches[switch];
            switch.prefetch_ports(end.index, leaving as u16, packet.queue);
            prefetch(&self.wires.ends[out]);
            self.wires.packets.get_mut(handle).set_out(out);
        }
    }

    /// The ends of the queues: frames, and the packets at their heads; the flows whose turn it is.
    fn fetch_frames(&self) {
        for event in self.cx.queue.upcoming(0, EVENTS) {
            let Some((port, arrives)) = What::at_port(event.what) else {
                continue;
            };
            let end = &self.wires.ends[port];
            let switch = match end.device {
                Device::Switch(switch) => &self.wires.switches[switch],
                Device::Nic(nic) => {
                    if let Some(flow) = self.hosts.nics[nic].likely_next() {
                        prefetch(&self.hosts.flows[flow]);
                    }
                    continue;
                }
            };
            if let Some(handle) = arrives {
                let packet = self.wires.packets.get(handle);
                if let Some(out) = packet.out() {
                    let leaving = self.wires.ends[out].index;
                    switch.prefetch_frames(leaving, packet.queue);
                }
            } else if let Some(handle) = switch.peek(end.index) {
                self.wires.packets.prefetch(PacketSlot(handle));
            }
        }
    }
}
