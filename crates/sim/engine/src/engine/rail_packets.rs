//! Packets of messages over rails: across their host's bus, through a card, and back at the other host.
//!
//! Packets are the core's own, kept in a table beside the packets of the arena. What has a number crosses bus and card of its
//! host in order, so that no rail reorders.

use raddle_dataplane::QUEUE_DATA;
use raddle_rails::{Reception, Transmit};
use raddle_unicast::FlowHash;
use raddle_units::{Bytes, NodeId, Span};
use raddle_wire::rails::Body;

use super::{
    bus::Way,
    flow::{DPORT, address},
    process::Base,
    rails::{HalfConnection, RailHosts},
    what::{CROSSED, CROSSED_CARD, Kind, What},
};
use crate::{
    index::{HalfIndex, PacketSlot, PortIndex},
    packet::{Envelope, Packet, PacketKind},
};

impl RailHosts<'_> {
    pub(super) fn send(&mut self, base: &mut Base<'_>, half: HalfIndex, transmit: &Transmit) {
        let HalfConnection { host, peer, .. } = self.halves[half];
        let around = self.plan.map_or(Bytes(0), |rails| rails.around);
        let ports = transmit.rail as u32 | DPORT << 16;
        let payload = u32::from(transmit.payload.bytes);
        let segment = base.wires.segments.insert(transmit.packet);
        let envelope = Envelope {
            src: host,
            hash: FlowHash::new(address(host), address(peer), ports),
            queue: QUEUE_DATA,
            sent_at: base.cx.now,
            bytes: transmit.packet.length() as u32 + around.0 as u32,
            payload,
        };
        let is_data = matches!(transmit.packet.body, Body::Data(_));
        base.cx.summary.payload_sent += u64::from(payload);
        if is_data {
            self.hosts[base.cx.cut.place(host)].held += 1;
        }
        let packet = Packet::on_rails(peer, segment, is_data, envelope);
        let handle = base.wires.packets.insert(packet);
        if !self.crosses_later(base, host, Way::Read, handle) {
            self.put_into_card(base, handle);
        }
    }

    /// Lets a packet cross a host's bus; false where it is across at once.
    fn crosses_later(
        &mut self,
        base: &mut Base<'_>,
        host: NodeId,
        way: Way,
        handle: PacketSlot,
    ) -> bool {
        let Some(rails) = self.plan else {
            return false;
        };
        let packet = base.wires.packets.get(handle);
        if !is_numbered(base, packet) {
            return false;
        }
        let bus = &mut self.hosts[base.cx.cut.place(host)].bus;
        let Some(at) = bus.cross(&rails.bus, base.cx.now, way, packet.payload, handle) else {
            return false;
        };
        let place = (
            Kind::Crossed,
            base.cx.first_port(host),
            CROSSED[way as usize],
        );
        base.cx.schedule(at, place, What::Crossed(host, way));
        true
    }

    /// The next packet is across the bus of a host.
    pub(super) fn crossed(&mut self, base: &mut Base<'_>, host: NodeId, way: Way) {
        let Some(handle) = self.hosts[base.cx.cut.place(host)].bus.across(way) else {
            return;
        };
        match way {
            Way::Read => self.put_into_card(base, handle),
            Way::Write => self.take_in(base, handle),
        }
    }

    fn put_into_card(&mut self, base: &mut Base<'_>, handle: PacketSlot) {
        let port = rail_port(base, base.wires.packets.get(handle).src, handle);
        if !self.crosses_card_later(base, port, Way::Read, handle) {
            self.put_before_wire(base, port, handle);
        }
    }

    /// Lets a packet cross what a card's two ways share; false where it is across at once.
    fn crosses_card_later(
        &mut self,
        base: &mut Base<'_>,
        port: PortIndex,
        way: Way,
        handle: PacketSlot,
    ) -> bool {
        let Some(rails) = self.plan else {
            return false;
        };
        let packet = base.wires.packets.get(handle);
        if !is_numbered(base, packet) {
            return false;
        }
        let card = &mut self.cards[port];
        let Some(at) = card.cross(&rails.card, base.cx.now, way, packet.payload, handle) else {
            return false;
        };
        let place = (Kind::CrossedCard, port, CROSSED_CARD);
        base.cx.schedule(at, place, What::CrossedCard(port));
        true
    }

    /// The next packet is through a card.
    pub(super) fn crossed_card(&mut self, base: &mut Base<'_>, port: PortIndex) {
        match self.cards[port].across() {
            Some((Way::Read, handle)) => self.put_before_wire(base, port, handle),
            Some((Way::Write, handle)) => self.put_on_bus(base, handle),
            None => {}
        }
    }

    fn put_before_wire(&mut self, base: &mut Base<'_>, port: PortIndex, handle: PacketSlot) {
        let Some(nic) = base.nic_at(port).filter(|_| base.wires.ends[port].up) else {
            self.drop_from_host(base, &[handle]);
            return base.wires.lose(&mut base.cx, port, handle);
        };
        base.hosts.nics[nic].rails.push_back(handle);
        base.nic_transmit(nic);
        self.refill(base);
    }

    /// Packets that have not left their host are lost.
    pub(super) fn drop_from_host(&mut self, base: &Base<'_>, handles: &[PacketSlot]) {
        for &handle in handles {
            let packet = base.wires.packets.get(handle);
            self.leave_host(base, packet.src, packet.kind == PacketKind::RailData);
        }
    }

    /// A packet is neither on a bus nor in a card any more.
    fn leave_host(&mut self, base: &Base<'_>, host: NodeId, is_data: bool) {
        if is_data {
            self.hosts[base.cx.cut.place(host)].held -= 1;
        }
    }

    /// Cards have begun to send packets: there is room for the next.
    pub(super) fn refill(&mut self, base: &mut Base<'_>) {
        while let Some((host, is_data)) = base.hosts.left_card.pop() {
            self.leave_host(base, host, is_data);
            self.drain_host(base, host);
        }
    }

    /// A packet over rails is wholly received by a card.
    pub(super) fn receive(&mut self, base: &mut Base<'_>, handle: PacketSlot) {
        let port = rail_port(base, base.wires.packets.get(handle).dst(), handle);
        if !self.crosses_card_later(base, port, Way::Write, handle) {
            self.put_on_bus(base, handle);
        }
    }

    fn put_on_bus(&mut self, base: &mut Base<'_>, handle: PacketSlot) {
        let host = base.wires.packets.get(handle).dst();
        if !self.crosses_later(base, host, Way::Write, handle) {
            self.take_in(base, handle);
        }
    }

    /// A packet is where its connection can take it.
    fn take_in(&mut self, base: &mut Base<'_>, handle: PacketSlot) {
        let packet = base.wires.packets.get(handle);
        let (place, payload, marked) = (packet.segment(), packet.payload, packet.marked);
        let half = self.half(packet.dst(), packet.src);
        base.wires.packets.remove(handle);
        base.wires.segments.free(place);
        let contents = base.wires.segments[place];
        let Some(half) = half else {
            debug_assert!(false, "{contents:?} comes before its connection");
            base.cx.summary.payload_discarded += u64::from(payload);
            return;
        };
        // What waited for the bus waited on its way: congestion control is to see it.
        let (held, rail) = (Span::ZERO, usize::from(contents.rail));
        let (now, reception) = (base.cx.now, Reception { held, marked });
        let core = &mut self.halves[half].core;
        let placed = match core.handle_packet(now, rail, &contents, reception) {
            Ok(Some(placement)) => u64::from(placement.bytes),
            Ok(None) | Err(_) => 0,
        };
        base.cx.summary.payload_delivered += placed;
        base.cx.summary.payload_discarded += u64::from(payload) - placed;
        if let Body::Data(segment) = &contents.body {
            let class = segment.target_port as u8;
            base.sampler.delivered(class, None, placed);
        }
        self.drain(base, half);
    }
}

/// Whether a packet crosses buses and cards in order.
fn is_numbered(base: &Base<'_>, packet: &Packet) -> bool {
    base.wires.segments[packet.segment()].body.is_numbered()
}

/// The port of a host by which a packet leaves or came.
fn rail_port(base: &Base<'_>, host: NodeId, handle: PacketSlot) -> PortIndex {
    let segment = &base.wires.segments[base.wires.packets.get(handle).segment()];
    PortIndex(base.cx.first_port(host).0 + u32::from(segment.rail))
}
