//! Looking ahead: what the next events will touch is fetched while the events before them are handled.
//!
//! A large fabric does not fit into the cache, and an event's reads depend on each other: event, packet, route, port. Taken one
//! after the other they are as many misses in a row. So events are looked at in groups. When a group begins, what its packets lead
//! to is fetched, and the packets of the group after it; a small bucket is one group. A packet that waits is fetched when the one
//! before it leaves. Frames in queues are not: that takes longer than it saves. Nothing is decided but the packets' next hops,
//! which are kept.

use raddle_fabric::Fabric;
use raddle_prefetch::prefetch;
use smallvec::SmallVec;

use super::{host::Hosts, link::Device, process::Base, what::What, wires::Wires};
use crate::{
    event::Entry,
    index::{NicIndex, PacketSlot, SwitchIndex},
    packet::PacketKind,
};

/// Events looked at together: enough for their misses to overlap, few enough for a processor to wait for all at once.
pub(super) const EVENTS: usize = 32;

/// Events of a small bucket at most.
const FEW_EVENTS: usize = 2 * EVENTS;

/// Ports of a fabric up to which all of it stays in the cache by itself.
const FEW_PORTS: usize = 1 << 11;

/// Whether a run on this fabric gains from looking ahead.
pub(super) fn is_worth_it(fabric: &Fabric) -> bool {
    fabric.port_count() > FEW_PORTS
}

impl Base<'_> {
    /// Fetches what the next events of the open bucket will need.
    #[inline]
    pub(super) fn look_ahead(&mut self) {
        let Base {
            cx, wires, hosts, ..
        } = self;
        let queue = &cx.queue;
        let begins = queue.taken() == 0;
        if queue.is_small(FEW_EVENTS) {
            if begins {
                fetch_places(wires, hosts, queue.upcoming(0, FEW_EVENTS));
                if let Some(next) = queue.bucket_after(queue.bucket()) {
                    fetch_packets(wires, queue.pending(next));
                }
            }
            return;
        }
        if begins {
            fetch_packets(wires, queue.upcoming(0, EVENTS));
        }
        fetch_packets(wires, queue.upcoming(EVENTS, EVENTS));
        fetch_places(wires, hosts, queue.upcoming(0, EVENTS));
    }
}

impl Wires<'_> {
    /// A port of a switch begins to send: fetches the packet that is next, which is needed when the transmission ends.
    #[inline(never)]
    pub(super) fn fetch_next(&self, switch: SwitchIndex, port: u16) {
        if let Some(next) = self.switches[switch].peek(&self.memory, port) {
            self.packets.prefetch(PacketSlot(next));
        }
    }
}

/// Packets that arrive, and ports.
#[inline]
fn fetch_packets<'e>(wires: &Wires<'_>, events: impl IntoIterator<Item = &'e Entry>) {
    for event in events {
        let Some((port, arrives)) = What::at_port(event.what) else {
            continue;
        };
        prefetch(&wires.ends[port]);
        if let Some(packet) = arrives {
            wires.packets.prefetch(packet);
        }
    }
}

/// Where packets go on: ports, queues, accounts; cards and flows of those that do not; ports that look for work.
#[inline]
fn fetch_places(wires: &mut Wires<'_>, hosts: &Hosts, events: &[Entry]) {
    let mut arrived: SmallVec<[(NicIndex, PacketSlot); FEW_EVENTS]> = SmallVec::new();
    for event in events {
        let Some((port, arrives)) = What::at_port(event.what) else {
            continue;
        };
        let end = &wires.ends[port];
        match (end.device, arrives) {
            (Device::Switch(switch), Some(handle)) => {
                let packet = wires.packets.get(handle);
                if !packet.kind.is_unicast() {
                    continue;
                }
                let Some(out) = wires.router.next_hop(end.node, packet.dst(), packet.hash) else {
                    continue;
                };
                let out = wires.here(port, out);
                // The ports of a node are numbered one after the other.
                let leaving = out.0 + u32::from(end.index) - port.0;
                let switch = &wires.switches[switch];
                switch.prefetch_ports(&wires.memory, end.index, leaving as u16, packet.queue);
                prefetch(&wires.ends[out]);
                wires.packets.get_mut(handle).set_out(out);
            }
            (Device::Switch(switch), None) => {
                wires.switches[switch].prefetch_port(&wires.memory, end.index)
            }
            (Device::Nic(nic), None) => prefetch(&hosts.nics[nic]),
            (Device::Nic(nic), Some(handle)) => {
                prefetch(&hosts.nics[nic]);
                wires.packets.prefetch_rest(handle);
                arrived.push((nic, handle));
            }
        }
    }
    fetch_flows(wires, hosts, &arrived);
}

/// The flows of packets that arrive at cards.
#[inline]
fn fetch_flows(wires: &Wires<'_>, hosts: &Hosts, arrived: &[(NicIndex, PacketSlot)]) {
    for &(nic, handle) in arrived {
        let packet = wires.packets.get(handle);
        if packet.kind == PacketKind::Data {
            hosts.receptions.prefetch(hosts.nics[nic].heard);
        } else if packet.kind.is_of_flow() && !packet.kind.is_data() {
            prefetch(&hosts.flows[packet.flow()]);
        }
    }
}
