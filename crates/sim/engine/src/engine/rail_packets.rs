//! Packets of messages over rails: across their host's bus, through a card, and back at the other host.
//!
//! Packets are the core's own, kept in a table beside the packets of the arena. What has a number crosses bus and card of its
//! host in order, so that no rail reorders.

use raddle_dataplane::QUEUE_DATA;
use raddle_rails::{Reception, Transmit};
use raddle_unicast::FlowHash;
use raddle_units::{Bytes, NodeId, PortId, Span};
use raddle_wire::rails::{Body, Packet as Contents};

use super::{
    Engine, Kind,
    bus::Way,
    flow::{DPORT, address},
    rails::HalfConnection,
};
use crate::packet::{Packet, PacketKind, Segment};

/// Place of cards in the order of what happens at a port within an instant: after both ways of its host's bus.
const CARD: u32 = 2;

/// What packets carry, by place: [`Packet::flow`].
#[derive(Debug, Default)]
pub(super) struct Table {
    contents: Vec<Contents>,
    free: Vec<u32>,
}

impl Table {
    fn keep(&mut self, contents: Contents) -> u32 {
        if let Some(place) = self.free.pop() {
            self.contents[place as usize] = contents;
            return place;
        }
        self.contents.push(contents);
        (self.contents.len() - 1) as u32
    }

    fn get(&self, place: u32) -> &Contents {
        &self.contents[place as usize]
    }

    /// A packet is lost, or was taken.
    pub(super) fn forget(&mut self, place: u32) {
        self.free.push(place);
    }
}

impl Engine<'_> {
    pub(super) fn send_on_rail(&mut self, half: u32, transmit: &Transmit) {
        let HalfConnection { host, peer, .. } = self.rails.halves[half as usize];
        let around = self
            .config
            .rails
            .as_deref()
            .map_or(Bytes(0), |rails| rails.around);
        let ports = transmit.rail as u32 | DPORT << 16;
        let payload = u32::from(transmit.payload.bytes);
        let mut packet = Packet::data(Segment {
            flow: self.rails.contents.keep(transmit.packet),
            generation: 0,
            src: host,
            dst: peer,
            hash: FlowHash::new(address(host), address(peer), ports),
            queue: QUEUE_DATA,
            seq: u64::from(half ^ 1),
            sent_at: self.now,
            bytes: transmit.packet.length() as u32 + around.0 as u32,
            payload,
        });
        packet.kind = match transmit.packet.body {
            Body::Data(_) => PacketKind::RailData,
            _ => PacketKind::RailControl,
        };
        self.summary.payload_sent += u64::from(payload);
        if packet.kind == PacketKind::RailData {
            self.rails.hosts[host.index()].held += 1;
        }
        let handle = self.packets.insert(packet);
        if !self.crosses_later(host, Way::Read, handle) {
            self.put_into_card(handle);
        }
    }

    /// Lets a packet cross a host's bus; false where it is across at once.
    fn crosses_later(&mut self, host: NodeId, way: Way, handle: u32) -> bool {
        let Some(rails) = self.config.rails.as_deref() else {
            return false;
        };
        let packet = self.packets.get(handle);
        if !self.rails.contents.get(packet.flow).body.is_numbered() {
            return false;
        }
        let bus = &mut self.rails.hosts[host.index()].bus;
        let Some(at) = bus.cross(&rails.bus, self.now, way, packet.payload, handle) else {
            return false;
        };
        let key = self
            .keys
            .next(Kind::Crossed, self.fabric.first_port(host), way as u32);
        self.push(at, key, Kind::Crossed.pack(way as u32, host.0));
        true
    }

    /// The next packet is across the bus of a host.
    pub(super) fn crossed(&mut self, host: NodeId, way: u32) {
        let way = if way == 0 { Way::Read } else { Way::Write };
        let Some(handle) = self.rails.hosts[host.index()].bus.across(way) else {
            return;
        };
        match way {
            Way::Read => self.put_into_card(handle),
            Way::Write => self.take_in(handle),
        }
    }

    /// The port of a host by which a packet leaves or came.
    fn rail_port(&self, host: NodeId, handle: u32) -> PortId {
        let rail = self.rails.contents.get(self.packets.get(handle).flow).rail;
        PortId(self.fabric.first_port(host).0 + u32::from(rail))
    }

    fn put_into_card(&mut self, handle: u32) {
        let port = self.rail_port(self.packets.get(handle).src, handle);
        if !self.crosses_card_later(port, Way::Read, handle) {
            self.put_before_wire(port, handle);
        }
    }

    /// Lets a packet cross what a card's two ways share; false where it is across at once.
    fn crosses_card_later(&mut self, port: PortId, way: Way, handle: u32) -> bool {
        let Some(rails) = self.config.rails.as_deref() else {
            return false;
        };
        let packet = self.packets.get(handle);
        if !self.rails.contents.get(packet.flow).body.is_numbered() {
            return false;
        }
        let card = &mut self.rails.cards[port.index()];
        let Some(at) = card.cross(&rails.card, self.now, way, packet.payload, handle) else {
            return false;
        };
        let key = self.keys.next(Kind::CrossedCard, port, CARD);
        self.push(at, key, Kind::CrossedCard.pack(0, port.0));
        true
    }

    /// The next packet is through a card.
    pub(super) fn crossed_card(&mut self, port: PortId) {
        match self.rails.cards[port.index()].across() {
            Some((Way::Read, handle)) => self.put_before_wire(port, handle),
            Some((Way::Write, handle)) => self.put_on_bus(handle),
            None => {}
        }
    }

    fn put_before_wire(&mut self, port: PortId, handle: u32) {
        if !self.ends[port.index()].up {
            self.history[port.index()].lost += 1;
            self.leave_host(&[handle]);
            self.drop_packet(handle);
            return;
        }
        let nic = self.ends[port.index()].device;
        self.nics[nic as usize].rails.push_back(handle);
        self.nic_transmit(nic);
    }

    /// Packets are neither on a bus nor in a card any more.
    pub(super) fn leave_host(&mut self, handles: &[u32]) {
        for &handle in handles {
            let packet = self.packets.get(handle);
            if packet.kind == PacketKind::RailData {
                self.rails.hosts[packet.src.index()].held -= 1;
            }
        }
    }

    /// A card has begun to send a packet: there is room for the next.
    pub(super) fn left_card(&mut self, handle: u32) {
        self.leave_host(&[handle]);
        self.drain_host(self.packets.get(handle).src);
    }

    /// A packet over rails is wholly received by a card.
    pub(super) fn receive_on_rail(&mut self, handle: u32) {
        let port = self.rail_port(self.packets.get(handle).dst, handle);
        if !self.crosses_card_later(port, Way::Write, handle) {
            self.put_on_bus(handle);
        }
    }

    fn put_on_bus(&mut self, handle: u32) {
        let host = self.packets.get(handle).dst;
        if !self.crosses_later(host, Way::Write, handle) {
            self.take_in(handle);
        }
    }

    /// A packet is where its connection can take it.
    fn take_in(&mut self, handle: u32) {
        let Packet {
            seq,
            flow,
            payload,
            marked,
            ..
        } = *self.packets.get(handle);
        self.packets.remove(handle);
        self.rails.contents.forget(flow);
        let (half, contents) = (seq as u32, *self.rails.contents.get(flow));
        let (now, rail) = (self.now, usize::from(contents.rail));
        // What waited for the bus waited on its way: congestion control is to see it.
        let held = Span::ZERO;
        let core = &mut self.rails.half(half).core;
        let placed = match core.handle_packet(now, rail, &contents, Reception { held, marked }) {
            Ok(Some(placement)) => u64::from(placement.bytes),
            Ok(None) | Err(_) => 0,
        };
        self.summary.payload_delivered += placed;
        self.summary.payload_discarded += u64::from(payload) - placed;
        if let Body::Data(segment) = &contents.body {
            self.sampler
                .delivered(segment.target_port as u8, None, placed);
        }
        self.drain(half);
    }
}
