//! Where a frame goes: a learning bridge (IEEE 802.1Q, clause 8) without sockets or a clock.
//!
//! Addresses are learnt per VLAN and forgotten after a time of silence. There is no spanning tree: the cables of all
//! switches together must not form a ring.

use raddle_units::{Span, Time};
use raddle_wire::MacAddress;
use rustc_hash::FxHashMap;

/// Most addresses that are learnt; frames to further ones are flooded.
pub const MAX_ADDRESSES: usize = 16_384;

/// A port of the switch, by its place in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

impl Port {
    /// The port as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a station is: its hardware address and VLAN (0: untagged).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Station {
    /// The hardware address.
    pub mac: MacAddress,
    /// VLAN of its frames, 0 for none.
    pub vlan: u16,
}

/// What is to be done with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forward {
    /// Send it by one port, which is not the one it came from.
    To(Port),
    /// Send it by every port but the one it came from.
    Flood,
    /// Do not send it.
    Drop(BridgeDrop),
}

/// Why a bridge does not forward a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BridgeDrop {
    /// Its receiver is behind the port that it came from.
    SamePort,
    /// Its receiver is one of the addresses 01-80-C2-00-00-00 to -0F, which never cross a bridge (IEEE 802.1Q,
    /// table 8-1): spanning tree, flow control, LLDP.
    LinkLocal,
    /// Its sender is no station: a group address, or all zeros.
    BadSource,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    port: Port,
    seen: Time,
}

/// A learning bridge.
#[derive(Debug)]
pub struct Bridge {
    addresses: FxHashMap<Station, Entry>,
    ageing: Span,
    moves: u64,
    unlearnt: u64,
    /// Stations that were learnt, moved or forgotten.
    changes: Vec<Station>,
}

impl Bridge {
    /// A bridge that forgets a station after `ageing` without a frame of it (IEEE 802.1Q recommends 300 s).
    #[must_use]
    pub fn new(ageing: Span) -> Self {
        Self {
            addresses: FxHashMap::default(),
            ageing,
            moves: 0,
            unlearnt: 0,
            changes: Vec::new(),
        }
    }

    /// Stations are forgotten after another time of silence.
    pub const fn set_ageing(&mut self, ageing: Span) {
        self.ageing = ageing;
    }

    /// Learns the sender of a frame and says where the frame goes.
    #[inline]
    pub fn handle_frame(
        &mut self,
        now: Time,
        ingress: Port,
        sender: Station,
        receiver: MacAddress,
    ) -> Forward {
        if !self.learn(now, ingress, sender) {
            return Forward::Drop(BridgeDrop::BadSource);
        }
        if receiver.is_multicast() {
            return match receiver.0 {
                [0x01, 0x80, 0xc2, 0, 0, 0..=0x0f] => Forward::Drop(BridgeDrop::LinkLocal),
                _ => Forward::Flood,
            };
        }
        let receiver = Station {
            mac: receiver,
            vlan: sender.vlan,
        };
        match self.find(now, receiver) {
            Some(port) if port == ingress => Forward::Drop(BridgeDrop::SamePort),
            Some(port) => Forward::To(port),
            None => Forward::Flood,
        }
    }

    /// Learns the sender of a frame; false if that cannot be a station.
    #[inline]
    pub fn learn(&mut self, now: Time, port: Port, station: Station) -> bool {
        if station.mac.is_multicast() || station.mac == MacAddress::default() {
            return false;
        }
        if let Some(entry) = self.addresses.get_mut(&station) {
            if entry.port != port {
                self.moves += 1;
                self.changes.push(station);
            }
            *entry = Entry { port, seen: now };
        } else if self.addresses.len() < MAX_ADDRESSES {
            self.addresses.insert(station, Entry { port, seen: now });
            self.changes.push(station);
        } else {
            self.unlearnt += 1;
        }
        true
    }

    /// The port of a station, if it is known.
    #[must_use]
    pub fn find(&self, now: Time, station: Station) -> Option<Port> {
        let entry = self.addresses.get(&station)?;
        (now.since(entry.seen) <= self.ageing).then_some(entry.port)
    }

    /// A station sent something that did not come through here, from where it is known to be.
    pub fn refresh(&mut self, now: Time, station: Station) {
        if let Some(entry) = self.addresses.get_mut(&station) {
            entry.seen = now;
        }
    }

    /// Forgets stations that were silent for too long.
    pub fn forget_silent(&mut self, now: Time) {
        let ageing = self.ageing;
        self.forget(|entry| now.since(entry.seen) > ageing);
    }

    /// Forgets all stations of a port, which has gone.
    pub fn forget_port(&mut self, port: Port) {
        self.forget(|entry| entry.port == port);
    }

    /// Forgets everything: `now` begins anew.
    pub fn clear(&mut self) {
        self.forget(|_| true);
    }

    fn forget(&mut self, which: impl Fn(&Entry) -> bool) {
        let changes = &mut self.changes;
        self.addresses.retain(|station, entry| {
            let goes = which(entry);
            if goes {
                changes.push(*station);
            }
            !goes
        });
    }

    /// The next station that was learnt, has moved, or was forgotten since it was asked for last; in no order.
    #[inline]
    pub fn take_change(&mut self) -> Option<Station> {
        self.changes.pop()
    }

    /// Stations known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether no station is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// How often a station turned up behind another port.
    #[must_use]
    pub const fn moves(&self) -> u64 {
        self.moves
    }

    /// Frames whose sender was not learnt because the table was full.
    #[must_use]
    pub const fn unlearnt(&self) -> u64 {
        self.unlearnt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGEING: Span = Span::from_ms(300_000);

    fn station(id: u8) -> Station {
        Station {
            mac: MacAddress([2, 0, 0, 0, 0, id]),
            vlan: 0,
        }
    }

    fn bridge() -> Bridge {
        Bridge::new(AGEING)
    }

    #[test]
    fn a_frame_to_an_unknown_station_is_flooded_and_the_answer_is_not() {
        let mut bridge = bridge();
        let (a, b) = (station(1), station(2));
        assert_eq!(
            bridge.handle_frame(Time::ZERO, Port(0), a, b.mac),
            Forward::Flood
        );
        assert_eq!(
            bridge.handle_frame(Time::ZERO, Port(1), b, a.mac),
            Forward::To(Port(0))
        );
        assert_eq!(
            bridge.handle_frame(Time::ZERO, Port(0), a, b.mac),
            Forward::To(Port(1))
        );
    }

    #[test]
    fn a_frame_never_returns_to_the_port_it_came_from() {
        let mut bridge = bridge();
        bridge.handle_frame(Time::ZERO, Port(3), station(1), MacAddress::BROADCAST);
        let decision = bridge.handle_frame(Time::ZERO, Port(3), station(2), station(1).mac);
        assert_eq!(decision, Forward::Drop(BridgeDrop::SamePort));
    }

    #[test]
    fn groups_are_flooded_and_link_local_groups_stay() {
        let mut bridge = bridge();
        let to = |mac| bridge.handle_frame(Time::ZERO, Port(0), station(1), MacAddress(mac));
        let decisions = [
            [0xff; 6],
            [0x01, 0, 0x5e, 0, 0, 1],
            [0x33, 0x33, 0, 0, 0, 1],
            [0x01, 0x80, 0xc2, 0, 0, 0x10],
            [0x01, 0x80, 0xc2, 0, 0, 0x0e],
            [0x01, 0x80, 0xc2, 0, 0, 0x00],
        ]
        .map(to);
        let local = Forward::Drop(BridgeDrop::LinkLocal);
        let flood = Forward::Flood;
        assert_eq!(decisions, [flood, flood, flood, flood, local, local]);
    }

    #[test]
    fn a_sender_that_is_no_station_is_dropped_and_not_learnt() {
        let mut bridge = bridge();
        for mac in [MacAddress::BROADCAST, MacAddress::default()] {
            let sender = Station { mac, vlan: 0 };
            let decision = bridge.handle_frame(Time::ZERO, Port(0), sender, station(1).mac);
            assert_eq!(decision, Forward::Drop(BridgeDrop::BadSource));
        }
        assert!(bridge.is_empty());
    }

    #[test]
    fn vlans_do_not_share_addresses() {
        let mut bridge = bridge();
        bridge.handle_frame(Time::ZERO, Port(0), station(1), MacAddress::BROADCAST);
        let tagged = Station {
            vlan: 7,
            ..station(2)
        };
        assert_eq!(
            bridge.handle_frame(Time::ZERO, Port(1), tagged, station(1).mac),
            Forward::Flood
        );
    }

    #[test]
    fn a_station_that_moves_is_followed_and_counted() {
        let mut bridge = bridge();
        bridge.handle_frame(Time::ZERO, Port(0), station(1), MacAddress::BROADCAST);
        bridge.handle_frame(Time::ZERO, Port(2), station(1), MacAddress::BROADCAST);
        assert_eq!(bridge.find(Time::ZERO, station(1)), Some(Port(2)));
        assert_eq!(bridge.moves(), 1);
    }

    #[test]
    fn a_silent_station_is_forgotten_after_its_time_and_not_before() {
        let mut bridge = bridge();
        bridge.handle_frame(Time::ZERO, Port(0), station(1), MacAddress::BROADCAST);
        let limit = Time::ZERO + AGEING;
        assert_eq!(bridge.find(limit, station(1)), Some(Port(0)));
        bridge.forget_silent(limit);
        assert_eq!(bridge.len(), 1);
        let later = limit + Span(1);
        assert_eq!(bridge.find(later, station(1)), None);
        bridge.forget_silent(later);
        assert!(bridge.is_empty());
    }

    #[test]
    fn who_is_heard_elsewhere_is_not_forgotten() {
        let mut bridge = bridge();
        let (heard, silent) = (station(1), station(2));
        for (station, port) in [(heard, 0), (silent, 1)] {
            bridge.handle_frame(Time::ZERO, Port(port), station, MacAddress::BROADCAST);
        }
        bridge.refresh(Time::ZERO + AGEING, heard);
        bridge.refresh(Time::ZERO + AGEING, station(3));
        let later = Time::ZERO + AGEING + Span(1);
        bridge.forget_silent(later);
        assert_eq!(bridge.find(later, heard), Some(Port(0)));
        assert_eq!(bridge.len(), 1);
    }

    #[test]
    fn changes_are_told_once() {
        let mut bridge = bridge();
        let told = |bridge: &mut Bridge| {
            let mut all: Vec<_> = std::iter::from_fn(|| bridge.take_change()).collect();
            all.sort_unstable_by_key(|station| station.mac.0);
            all
        };
        let (a, b) = (station(1), station(2));
        bridge.handle_frame(Time::ZERO, Port(0), a, b.mac);
        bridge.handle_frame(Time::ZERO, Port(1), b, a.mac);
        assert_eq!(told(&mut bridge), [a, b]);
        bridge.handle_frame(Time::ZERO, Port(0), a, b.mac);
        assert_eq!(told(&mut bridge), [], "nothing new");
        bridge.handle_frame(Time::ZERO, Port(2), a, b.mac);
        assert_eq!(told(&mut bridge), [a], "it moved");
        bridge.forget_port(Port(1));
        assert_eq!(told(&mut bridge), [b]);
        bridge.clear();
        assert_eq!(told(&mut bridge), [a]);
    }

    #[test]
    fn a_port_that_goes_takes_its_stations_along() {
        let mut bridge = bridge();
        for (id, port) in [(1, 0), (2, 1), (3, 0)] {
            bridge.handle_frame(Time::ZERO, Port(port), station(id), MacAddress::BROADCAST);
        }
        bridge.forget_port(Port(0));
        assert_eq!(bridge.len(), 1);
        assert_eq!(bridge.find(Time::ZERO, station(2)), Some(Port(1)));
    }

    #[test]
    fn a_full_table_floods_and_counts() {
        let mut bridge = bridge();
        for id in 0..=MAX_ADDRESSES as u32 {
            let [a, b, c, d] = id.to_be_bytes();
            let sender = Station {
                mac: MacAddress([2, 1, a, b, c, d]),
                vlan: 0,
            };
            bridge.handle_frame(Time::ZERO, Port(0), sender, MacAddress::BROADCAST);
        }
        assert_eq!((bridge.len(), bridge.unlearnt()), (MAX_ADDRESSES, 1));
    }
}
