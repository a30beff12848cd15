//! The switch without its sockets: a frame in, frames out.
//!
//! Ordinary frames are forwarded by the [`Bridge`]. What is for the switch's own address is answered here (ARP, ping)
//! or goes to the core of in-network Allreduce ([`Switch`]); what that sends becomes whole frames. Queries on their way
//! through are shown to the core, which rewrites them. Everything that goes out is put into the [`Outbox`].

use std::{
    collections::VecDeque,
    net::{Ipv4Addr, SocketAddrV4},
};

use raddle_offload::{
    published::{self, FRAME_ROOM, Transmit, Verdict},
    switch::{Pass, Switch},
};
use raddle_units::Time;
use raddle_wire::{
    Datagram, Ethernet, MacAddress, PORT_ROCE, Path, Udp, Vlan, ethertype,
    native::{Kind, MAGIC, MAX_BODY, PORT, VERSION},
};

use crate::{
    bridge::{Bridge, BridgeDrop, Forward, Port, Station},
    local::{Arp, Neighbours, Outer, Reach, answer_ping},
    socket::Offload,
};

/// Room for a message of ours: header and largest body.
const MESSAGE_ROOM: usize = 56 + MAX_BODY;

/// Where the bytes of a frame on its way out are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// In the receive buffer: the frame of this number.
    Received(usize),
    /// In the outbox.
    Made { start: usize, length: usize },
}

/// A frame on its way out.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing {
    /// The port by which it leaves.
    pub port: Port,
    /// What is still to be done to it.
    pub offload: Offload,
    source: Source,
}

/// Frames on their way out, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    made: Vec<u8>,
    frames: Vec<Outgoing>,
}

impl Outbox {
    /// The frames.
    #[must_use]
    pub fn frames(&self) -> &[Outgoing] {
        &self.frames
    }

    /// The bytes of a frame; `received` gives those of a frame of the receive buffer.
    pub fn bytes<'a>(
        &'a self,
        frame: &Outgoing,
        received: impl FnOnce(usize) -> &'a [u8],
    ) -> &'a [u8] {
        match frame.source {
            Source::Received(slot) => received(slot),
            Source::Made { start, length } => &self.made[start..start + length],
        }
    }

    /// Writes a frame with a message; `None` if it does not fit into a datagram.
    fn make(&mut self, path: &Path, port: u16, message: &[u8]) -> Option<Source> {
        let start = self.made.len();
        self.made
            .resize(start + path.payload_at() + message.len(), 0);
        let Ok(length) = path.write_udp(&mut self.made[start..], port, &[message]) else {
            self.made.truncate(start);
            return None;
        };
        Some(Source::Made { start, length })
    }

    /// Keeps a frame as it is.
    fn add(&mut self, frame: &[u8]) -> Source {
        let (start, length) = (self.made.len(), frame.len());
        self.made.extend_from_slice(frame);
        Source::Made { start, length }
    }

    /// Forgets the frames, which have been sent.
    pub fn clear(&mut self) {
        self.made.clear();
        self.frames.clear();
    }
}

/// Why a frame or message was not handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Drop {
    /// Shorter than an Ethernet header.
    Malformed,
    /// Its sender has the switch's own hardware address: a ring of cables, or an address given twice.
    OwnSender,
    /// Its sender is a group address or all zeros.
    BadSender,
    /// Its receiver is behind the port that it came from.
    SamePort,
    /// Its receiver is an address that never crosses a bridge.
    LinkLocal,
    /// For the switch itself, and nothing that it answers.
    NotForUs,
    /// A message of the core does not fit into a frame.
    Unsendable,
    /// A packet of the published protocol that its switch does not take; `published_…` says why.
    Published,
}

impl Drop {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Malformed,
        Self::OwnSender,
        Self::BadSender,
        Self::SamePort,
        Self::LinkLocal,
        Self::NotForUs,
        Self::Unsendable,
        Self::Published,
    ];

    /// The name in metrics and status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::OwnSender => "own_sender",
            Self::BadSender => "bad_sender",
            Self::SamePort => "same_port",
            Self::LinkLocal => "link_local",
            Self::NotForUs => "not_for_us",
            Self::Unsendable => "unsendable",
            Self::Published => "published",
        }
    }
}

/// What a node counts besides its bridge and neighbours.
#[derive(Debug, Clone, Copy, Default)]
pub struct NodeCounters {
    drops: [u64; Drop::ALL.len()],
    /// Messages for the switch itself.
    pub messages: u64,
    /// Messages of the core that were put on their way.
    pub sent: u64,
    /// Queries that the core has rewritten.
    pub rewritten: u64,
    /// Pings answered.
    pub pings: u64,
    /// ARP requests answered.
    pub arps: u64,
}

impl NodeCounters {
    /// Frames and messages dropped for a reason.
    #[must_use]
    pub const fn dropped(&self, reason: Drop) -> u64 {
        self.drops[reason as usize]
    }
}

/// A switch without sockets.
#[derive(Debug)]
pub struct Node {
    address: Ipv4Addr,
    mac: MacAddress,
    /// Whether frames can be sent by a port now.
    ports: Vec<bool>,
    /// Who is where.
    pub bridge: Bridge,
    /// Hardware addresses of those to whom the core sends.
    pub neighbours: Neighbours,
    /// What computes by our protocol.
    pub switch: Switch,
    /// Whether messages of our protocol reach it.
    pub native: bool,
    /// What computes by the published protocol, if this switch speaks it.
    pub published: Option<published::Switch>,
    /// What goes out.
    pub outbox: Outbox,
    /// What happened.
    pub counters: NodeCounters,
    scratch: Vec<u8>,
    message: Box<[u8; MESSAGE_ROOM]>,
}

impl Node {
    /// A switch with this address and hardware address; all of its ports are down.
    #[must_use]
    pub fn new(
        address: Ipv4Addr,
        mac: MacAddress,
        ports: usize,
        bridge: Bridge,
        switch: Switch,
    ) -> Self {
        Self {
            address,
            mac,
            ports: vec![false; ports],
            bridge,
            neighbours: Neighbours::default(),
            switch,
            native: true,
            published: None,
            outbox: Outbox::default(),
            counters: NodeCounters::default(),
            scratch: Vec::new(),
            message: Box::new([0; MESSAGE_ROOM]),
        }
    }

    /// A port has come or gone, perhaps one that is new.
    pub fn set_port(&mut self, port: Port, up: bool) {
        if port.index() >= self.ports.len() {
            self.ports.resize(port.index() + 1, false);
        }
        self.ports[port.index()] = up;
        if !up {
            self.bridge.forget_port(port);
        }
    }

    /// A frame came. `slot` is its number in the receive buffer, by which the outbox refers to it.
    #[inline]
    pub fn handle_frame(
        &mut self,
        now: Time,
        ingress: Port,
        offload: Offload,
        frame: &[u8],
        slot: usize,
    ) {
        let Some(outer) = Outer::read(frame) else {
            return self.drop(Drop::Malformed);
        };
        if outer.sender.mac == self.mac {
            return self.drop(Drop::OwnSender);
        }
        if outer.destination == self.mac {
            if !self.bridge.learn(now, ingress, outer.sender) {
                return self.drop(Drop::BadSender);
            }
            return self.handle_own(now, frame, &outer);
        }
        let forward = self
            .bridge
            .handle_frame(now, ingress, outer.sender, outer.destination);
        if let Forward::Drop(reason) = forward {
            return self.drop(match reason {
                BridgeDrop::SamePort => Drop::SamePort,
                BridgeDrop::LinkLocal => Drop::LinkLocal,
                BridgeDrop::BadSource => Drop::BadSender,
            });
        }
        // A question for our own address concerns nobody else.
        if outer.destination == MacAddress::BROADCAST
            && let Some(arp) = Arp::read(frame, &outer)
            && arp.target == self.address
        {
            return self.handle_arp(now, &arp, &outer);
        }
        if outer.ethertype == ethertype::IPV4
            && self.native
            && !offload.is_train()
            && let Some(message) = crossing_query(frame)
        {
            return self.handle_crossing(now, ingress, forward, (offload, slot), message);
        }
        if self.published.is_some()
            && outer.ethertype == ethertype::IPV4
            && !offload.is_train()
            && let Some(udp_at) = roce(frame)
        {
            return self.handle_published(
                now,
                ingress,
                Some(forward),
                (offload, slot),
                frame,
                udp_at,
            );
        }
        self.send(forward, ingress, offload, Source::Received(slot));
    }

    /// Puts what the core wants to send into the outbox.
    #[inline]
    pub fn poll_switch(&mut self, now: Time) {
        while let Some((to, length)) = self.switch.poll_transmit(&mut self.message[..]) {
            self.send_message(now, to, length);
        }
    }

    /// Forgets who was silent for too long.
    pub fn forget_silent(&mut self, now: Time) {
        self.bridge.forget_silent(now);
        self.neighbours.forget_silent(now);
    }

    /// How an address is reached, if that is known: its station and port.
    #[must_use]
    pub fn route(&self, now: Time, address: Ipv4Addr) -> Option<(Station, Port)> {
        let station = self.neighbours.find(address)?;
        Some((station, self.bridge.find(now, station)?))
    }

    /// A frame for our hardware address.
    fn handle_own(&mut self, now: Time, frame: &[u8], outer: &Outer) {
        if let Some(arp) = Arp::read(frame, outer) {
            return self.handle_arp(now, &arp, outer);
        }
        if self.native
            && let Ok(Some(datagram)) = Datagram::find(frame)
            && datagram.ipv4.destination() == self.address
            && datagram.udp.destination_port() == PORT
        {
            let source = datagram.ipv4.source();
            let waiting = self.neighbours.hear(now, source, outer.sender);
            self.send_waiting(now, source, outer.sender, waiting);
            self.counters.messages += 1;
            let from = SocketAddrV4::new(source, datagram.udp.source_port());
            return self.switch.handle_packet(now, from, datagram.payload());
        }
        if self.published.is_some()
            && let Some(udp_at) = roce(frame)
        {
            let no = (Offload::default(), 0);
            return self.handle_published(now, Port(u16::MAX), None, no, frame, udp_at);
        }
        let start = self.outbox.made.len();
        if answer_ping(frame, outer, self.address, &mut self.outbox.made) {
            self.counters.pings += 1;
            return self.send_made(now, start, outer.sender);
        }
        self.drop(Drop::NotForUs);
    }

    fn handle_arp(&mut self, now: Time, arp: &Arp, outer: &Outer) {
        // Who says "I am X" to us is believed, as in any Ethernet; but nobody else is our own address.
        if arp.sender != self.address {
            let station = Station {
                mac: arp.sender_mac,
                vlan: outer.sender.vlan,
            };
            let waiting = self.neighbours.learn(now, arp.sender, station);
            self.send_waiting(now, arp.sender, station, waiting);
        }
        if arp.request && arp.target == self.address {
            let start = self.outbox.made.len();
            arp.answer(
                outer.sender.vlan,
                self.address,
                self.mac,
                &mut self.outbox.made,
            );
            self.counters.arps += 1;
            self.send_made(now, start, outer.sender);
        }
    }

    fn handle_crossing(
        &mut self,
        now: Time,
        ingress: Port,
        forward: Forward,
        (offload, slot): (Offload, usize),
        datagram: Datagram<'_>,
    ) {
        match self.switch.pass(now, datagram.payload(), &mut self.scratch) {
            Pass::Unchanged => self.send(forward, ingress, offload, Source::Received(slot)),
            Pass::Rewritten => {
                let (ethernet, ipv4) = (datagram.ethernet, datagram.ipv4);
                // Lengths and sums anew, the rest as it came. A sum that the sender's card would have filled in is
                // complete here.
                let path = Path {
                    vlan: datagram.vlan.map(|tag| tag.values()),
                    dscp: ipv4.dscp(),
                    ecn: ipv4.ecn(),
                    ttl: ipv4.ttl(),
                    identification: ipv4.identification(),
                    udp_checksum: offload.needs_checksum() || datagram.udp.checksum() != 0,
                    ..Path::between(
                        ethernet.source(),
                        ethernet.destination(),
                        ipv4.source(),
                        ipv4.destination(),
                        datagram.udp.source_port(),
                    )
                };
                let port = datagram.udp.destination_port();
                match self.outbox.make(&path, port, &self.scratch) {
                    Some(source) => {
                        self.counters.rewritten += 1;
                        self.send(forward, ingress, Offload::default(), source);
                    }
                    None => self.drop(Drop::Unsendable),
                }
            }
        }
    }

    /// Sends the core's message of `length` bytes in `self.message`, now or when its receiver is known.
    fn send_message(&mut self, now: Time, to: SocketAddrV4, length: usize) {
        let address = *to.ip();
        if address.is_multicast() {
            let [_, b, c, d] = address.octets();
            let station = Station {
                // RFC 1112, 6.4.
                mac: MacAddress([0x01, 0, 0x5e, b & 0x7f, c, d]),
                vlan: 0,
            };
            return self.send_to_station(now, to, station, length);
        }
        if let Some(station) = self.reach(now, address, to.port(), length) {
            self.send_to_station(now, to, station, length);
        }
    }

    /// The station of an address. Where that is not known, it is asked for, and the first `length` bytes of `self.message`
    /// wait for the answer: a message to `port`, or a frame if that is RoCEv2's.
    fn reach(&mut self, now: Time, address: Ipv4Addr, port: u16, length: usize) -> Option<Station> {
        let reach = self.neighbours.reach(now, address);
        let known = match reach {
            Reach::Known(station) | Reach::KnownAsk(station) => Some(station),
            Reach::Ask | Reach::Wait => {
                let mut kept = port.to_be_bytes().to_vec();
                kept.extend_from_slice(&self.message[..length]);
                self.neighbours.wait(address, kept);
                None
            }
        };
        let ask = match reach {
            Reach::KnownAsk(station) => Some(station),
            Reach::Ask => None,
            Reach::Known(_) | Reach::Wait => return known,
        };
        let start = self.outbox.made.len();
        Arp::ask(address, ask, self.address, self.mac, &mut self.outbox.made);
        let everybody = Station {
            mac: MacAddress::BROADCAST,
            vlan: 0,
        };
        self.send_made(now, start, ask.unwrap_or(everybody));
        known
    }

    /// A RoCEv2 packet whose UDP header begins at byte `udp_at`; `forward` is where the bridge would send it, nothing if it is
    /// for this switch.
    fn handle_published(
        &mut self,
        now: Time,
        ingress: Port,
        forward: Option<Forward>,
        (offload, slot): (Offload, usize),
        frame: &[u8],
        udp_at: usize,
    ) {
        let Some(switch) = &mut self.published else {
            return;
        };
        let Some(copy) = self.message.get_mut(..frame.len()) else {
            // Longer than any packet of the protocol.
            match forward {
                Some(forward) => self.send(forward, ingress, offload, Source::Received(slot)),
                None => self.drop(Drop::NotForUs),
            }
            return;
        };
        copy.copy_from_slice(frame);
        if offload.needs_checksum() {
            // The sender's card would have filled it in. 0 is none, as RoCEv2 senders leave it.
            copy[udp_at + 6..udp_at + 8].fill(0);
        }
        match (switch.handle_frame(now, copy), forward) {
            (Verdict::Forward, Some(forward)) => {
                self.send(forward, ingress, offload, Source::Received(slot));
            }
            // There is one way to each SPINE: switches form no ring.
            (Verdict::Rewritten(_), Some(forward)) => {
                self.counters.rewritten += 1;
                let source = self.outbox.add(&self.message[..frame.len()]);
                self.send(forward, ingress, Offload::default(), source);
            }
            (Verdict::Taken, _) => self.counters.messages += 1,
            (Verdict::Dropped(_), _) => self.drop(Drop::Published),
            (Verdict::Forward | Verdict::Rewritten(_), None) => self.drop(Drop::NotForUs),
        }
        self.poll_published(now);
    }

    /// Sends what the switch of the published protocol has to send, before the next frame overwrites what it holds.
    fn poll_published(&mut self, now: Time) {
        while let Some(switch) = &mut self.published
            && let Some((transmit, length)) = switch.poll_transmit(&mut self.message[..FRAME_ROOM])
        {
            self.counters.sent += 1;
            match transmit {
                Transmit::Released => {
                    let frame = &self.message[..length];
                    if let Some(outer) = Outer::read(frame) {
                        let to = Station {
                            mac: outer.destination,
                            vlan: outer.sender.vlan,
                        };
                        let source = self.outbox.add(frame);
                        self.send_by_table(now, source, to);
                    }
                }
                Transmit::To(address) => {
                    if let Some(station) = self.reach(now, address, PORT_ROCE, length) {
                        self.send_frame(now, station, length);
                    }
                }
            }
        }
    }

    /// Sends the frame of `length` bytes in `self.message`, which has no hardware addresses yet, to a station.
    fn send_frame(&mut self, now: Time, station: Station, length: usize) {
        let (macs, tag) = (2 * 6, if station.vlan == 0 { 0 } else { Vlan::SIZE });
        let start = self.outbox.made.len();
        let frame = &self.message[..length];
        let out = &mut self.outbox.made;
        out.extend_from_slice(&station.mac.0);
        out.extend_from_slice(&self.mac.0);
        if tag > 0 {
            out.extend_from_slice(&ethertype::VLAN.to_be_bytes());
            out.extend_from_slice(&station.vlan.to_be_bytes());
        }
        out.extend_from_slice(&frame[macs..]);
        self.send_made(now, start, station);
    }

    /// Sends what waited for a neighbour: the receiver's port and the message.
    fn send_waiting(
        &mut self,
        now: Time,
        address: Ipv4Addr,
        station: Station,
        waiting: VecDeque<Vec<u8>>,
    ) {
        for kept in waiting {
            if let Some((port, message)) = kept.split_first_chunk::<2>() {
                self.message[..message.len()].copy_from_slice(message);
                match u16::from_be_bytes(*port) {
                    PORT_ROCE => self.send_frame(now, station, message.len()),
                    port => {
                        let to = SocketAddrV4::new(address, port);
                        self.send_to_station(now, to, station, message.len());
                    }
                }
            }
        }
    }

    fn send_to_station(&mut self, now: Time, to: SocketAddrV4, station: Station, length: usize) {
        let vlan = (station.vlan != 0).then_some(Vlan {
            priority: 0,
            drop_eligible: false,
            id: station.vlan,
            ethertype: ethertype::IPV4,
        });
        let path = Path {
            vlan,
            ..Path::between(self.mac, station.mac, self.address, *to.ip(), PORT)
        };
        match self.outbox.make(&path, to.port(), &self.message[..length]) {
            Some(source) => {
                self.counters.sent += 1;
                self.send_by_table(now, source, station);
            }
            None => self.drop(Drop::Unsendable),
        }
    }

    /// Sends what was written to the end of the outbox from byte `start` on, to a station wherever it is.
    fn send_made(&mut self, now: Time, start: usize, to: Station) {
        let length = self.outbox.made.len() - start;
        self.send_by_table(now, Source::Made { start, length }, to);
    }

    fn send_by_table(&mut self, now: Time, source: Source, to: Station) {
        let forward = self
            .bridge
            .find(now, to)
            .map_or(Forward::Flood, Forward::To);
        let nowhere = Port(u16::MAX);
        self.send(forward, nowhere, Offload::default(), source);
    }

    #[inline]
    fn send(&mut self, forward: Forward, ingress: Port, offload: Offload, source: Source) {
        let mut push = |port| {
            self.outbox.frames.push(Outgoing {
                port,
                offload,
                source,
            });
        };
        match forward {
            Forward::To(port) => push(port),
            Forward::Flood => {
                for (index, up) in self.ports.iter().enumerate() {
                    let port = Port(index as u16);
                    if *up && port != ingress {
                        push(port);
                    }
                }
            }
            Forward::Drop(_) => {}
        }
    }

    fn drop(&mut self, reason: Drop) {
        self.counters.drops[reason as usize] += 1;
    }
}

/// The datagram of a frame that carries a query of our protocol, on its way to somebody else.
///
/// Hosts choose their ports, so that the message is known by its first bytes alone; the core checks its tag before it
/// believes them.
#[inline]
fn crossing_query(frame: &[u8]) -> Option<Datagram<'_>> {
    let datagram = Datagram::find(frame).ok()??;
    let [a, b] = MAGIC.to_be_bytes();
    match datagram.payload() {
        [c, d, VERSION, kind, ..]
            if [*c, *d] == [a, b] && Kind::from_code(*kind) == Some(Kind::Query) =>
        {
            Some(datagram)
        }
        _ => None,
    }
}

/// The byte where the UDP header begins, if a frame has a RoCEv2 packet.
#[inline]
fn roce(frame: &[u8]) -> Option<usize> {
    // The port first: most frames are something else. Ethernet, perhaps a tag, IPv4 without options.
    let plain = Ethernet::SIZE + 20 + 2;
    let port = PORT_ROCE.to_be_bytes();
    let at = |at: usize| frame.get(at..at + 2) == Some(&port[..]);
    if !at(plain) && !at(plain + Vlan::SIZE) && frame.get(Ethernet::SIZE) == Some(&0x45) {
        return None;
    }
    let datagram = Datagram::find(frame).ok()??;
    (datagram.udp.destination_port() == PORT_ROCE).then(|| datagram.payload_at() - Udp::SIZE)
}

#[cfg(test)]
mod tests;
