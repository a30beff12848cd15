//! What a switch answers under its own address besides messages of Allreduce: ARP and ping. No socket, no clock.

use std::{collections::VecDeque, net::Ipv4Addr};

use raddle_units::{Span, Time};
use raddle_wire::{Ethernet, Ipv4, MacAddress, Vlan, ethertype};
use rustc_hash::FxHashMap;

use crate::bridge::Station;

/// Ethertype of ARP.
const ARP: u16 = 0x0806;
/// Bytes of an ARP packet for IPv4 over Ethernet (RFC 826).
const ARP_SIZE: usize = 28;
/// The IP protocol number of ICMP.
const ICMP: u8 = 1;

/// What is known of a frame's Ethernet header and tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outer {
    /// Receiver.
    pub destination: MacAddress,
    /// Sender, and its VLAN.
    pub sender: Station,
    /// What follows the tag.
    pub ethertype: u16,
    /// Byte where it begins.
    pub at: usize,
}

impl Outer {
    /// Reads the Ethernet header and at most one tag; `None` for frames that are too short.
    #[inline]
    #[must_use]
    pub fn read(frame: &[u8]) -> Option<Self> {
        let ethernet = Ethernet::view(frame, 0).ok()?;
        let (mut vlan, mut at, mut follows) = (0, Ethernet::SIZE, ethernet.ethertype());
        if follows == ethertype::VLAN {
            let tag = Vlan::view(frame, at).ok()?;
            (vlan, at, follows) = (tag.id(), at + Vlan::SIZE, tag.ethertype());
        }
        Some(Self {
            destination: ethernet.destination(),
            sender: Station {
                mac: ethernet.source(),
                vlan,
            },
            ethertype: follows,
            at,
        })
    }

    /// Writes an Ethernet header to `to` with a tag if its VLAN is not 0; gives the bytes written.
    fn write(to: Station, from: MacAddress, follows: u16, out: &mut Vec<u8>) {
        out.extend_from_slice(&to.mac.0);
        out.extend_from_slice(&from.0);
        if to.vlan != 0 {
            out.extend_from_slice(&ethertype::VLAN.to_be_bytes());
            out.extend_from_slice(&to.vlan.to_be_bytes());
        }
        out.extend_from_slice(&follows.to_be_bytes());
    }
}

/// An ARP packet (RFC 826).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arp {
    /// Whether it asks; otherwise it answers.
    pub request: bool,
    /// Hardware address of the sender.
    pub sender_mac: MacAddress,
    /// Address of the sender; 0.0.0.0 in a probe (RFC 5227).
    pub sender: Ipv4Addr,
    /// Address asked for.
    pub target: Ipv4Addr,
}

impl Arp {
    /// Reads the ARP packet of a frame; `None` if it holds none for IPv4 over Ethernet.
    #[must_use]
    pub fn read(frame: &[u8], outer: &Outer) -> Option<Self> {
        if outer.ethertype != ARP {
            return None;
        }
        let packet = frame.get(outer.at..)?.first_chunk::<ARP_SIZE>()?;
        let (head, rest) = packet.split_first_chunk::<8>()?;
        let request = match head {
            [0, 1, 8, 0, 6, 4, 0, 1] => true,
            [0, 1, 8, 0, 6, 4, 0, 2] => false,
            _ => return None,
        };
        let (mac, rest) = rest.split_first_chunk::<6>()?;
        let (sender, rest) = rest.split_first_chunk::<4>()?;
        let target = rest.last_chunk::<4>()?;
        Some(Self {
            request,
            sender_mac: MacAddress(*mac),
            sender: (*sender).into(),
            target: (*target).into(),
        })
    }

    /// Writes a frame with this packet to a station; `target_mac` is zeros in a request.
    fn write(&self, to: Station, target_mac: MacAddress, out: &mut Vec<u8>) {
        Outer::write(to, self.sender_mac, ARP, out);
        out.extend_from_slice(&[0, 1, 8, 0, 6, 4, 0, if self.request { 1 } else { 2 }]);
        out.extend_from_slice(&self.sender_mac.0);
        out.extend_from_slice(&self.sender.octets());
        out.extend_from_slice(&target_mac.0);
        out.extend_from_slice(&self.target.octets());
    }

    /// The answer of the station with this address and hardware address to a request.
    pub fn answer(&self, vlan: u16, address: Ipv4Addr, mac: MacAddress, out: &mut Vec<u8>) {
        let to = Station {
            mac: self.sender_mac,
            vlan,
        };
        let answer = Self {
            request: false,
            sender_mac: mac,
            sender: address,
            target: self.sender,
        };
        answer.write(to, self.sender_mac, out);
    }

    /// A question for the hardware address of `target`, to everybody or to where it was last.
    pub fn ask(
        target: Ipv4Addr,
        to: Option<Station>,
        address: Ipv4Addr,
        mac: MacAddress,
        out: &mut Vec<u8>,
    ) {
        let everybody = Station {
            mac: MacAddress::BROADCAST,
            vlan: 0,
        };
        let question = Self {
            request: true,
            sender_mac: mac,
            sender: address,
            target,
        };
        question.write(to.unwrap_or(everybody), MacAddress::default(), out);
    }
}

/// Writes the answer to a ping of `address`; false if the frame is not a ping, is damaged, or comes in fragments.
pub fn answer_ping(frame: &[u8], outer: &Outer, address: Ipv4Addr, out: &mut Vec<u8>) -> bool {
    if outer.ethertype != ethertype::IPV4 {
        return false;
    }
    let Ok(ipv4) = Ipv4::view(frame, outer.at) else {
        return false;
    };
    let header = 4 * usize::from(ipv4.header_words());
    let Some(packet) = frame.get(outer.at..outer.at + usize::from(ipv4.total_length())) else {
        return false;
    };
    let Some(echo) = packet.get(header..) else {
        return false;
    };
    let fragment = ipv4.more_fragments() || ipv4.fragment_offset() != 0;
    // Type 8, code 0: echo request (RFC 792). Its checksum covers everything behind the IPv4 header.
    if ipv4.version() != 4
        || header < Ipv4::SIZE
        || ipv4.protocol() != ICMP
        || ipv4.destination() != address
        || fragment
        || echo.len() < 8
        || echo[..2] != [8, 0]
        || internet_checksum(echo) != 0
    {
        return false;
    }
    // The answer has no options: they describe the way of the question.
    let from = out.len();
    Outer::write(outer.sender, outer.destination, ethertype::IPV4, out);
    let ip_at = out.len();
    let total = (Ipv4::SIZE + echo.len()) as u16;
    out.extend_from_slice(&[0x45, packet[1]]);
    out.extend_from_slice(&total.to_be_bytes());
    out.extend_from_slice(&packet[4..6]);
    out.extend_from_slice(&[0x40, 0, 64, ICMP, 0, 0]);
    out.extend_from_slice(&address.octets());
    out.extend_from_slice(&ipv4.source().octets());
    let checksum = internet_checksum(&out[ip_at..]).to_be_bytes();
    out[ip_at + 10..ip_at + 12].copy_from_slice(&checksum);
    let echo_at = out.len();
    out.extend_from_slice(&[0, 0, 0, 0]);
    out.extend_from_slice(&echo[4..]);
    let checksum = internet_checksum(&out[echo_at..]).to_be_bytes();
    out[echo_at + 2..echo_at + 4].copy_from_slice(&checksum);
    out.len() > from
}

/// The Internet checksum (RFC 1071) of bytes; 0 over bytes that hold their right checksum.
fn internet_checksum(bytes: &[u8]) -> u16 {
    let (words, odd) = bytes.as_chunks::<2>();
    let mut sum: u64 = words
        .iter()
        .map(|word| u64::from(u16::from_be_bytes(*word)))
        .sum();
    sum += odd.first().map_or(0, |byte| u64::from(*byte) << 8);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Most neighbours that are remembered.
pub const MAX_NEIGHBOURS: usize = 4096;
/// Most messages that wait for the hardware address of one neighbour, and of all.
const MAX_WAITING: [usize; 2] = [64, 1024];
/// A question is repeated after this time while messages wait.
const ASK_AGAIN: Span = Span::from_ms(200);
/// A neighbour that was silent for this long is asked whether it still is where it was.
const STALE: Span = Span::from_ms(60_000);
/// A neighbour that was silent for this long is forgotten.
const FORGET: Span = Span::from_ms(300_000);

/// What is to be done to reach a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Send to this station.
    Known(Station),
    /// Send to this station, and ask whether it is still there.
    KnownAsk(Station),
    /// The message waits; ask everybody.
    Ask,
    /// The message waits; the question is on its way.
    Wait,
}

#[derive(Debug)]
enum Neighbour {
    Known {
        station: Station,
        heard: Time,
        asked: Option<Time>,
    },
    Unknown {
        asked: Time,
        waiting: VecDeque<Vec<u8>>,
    },
}

/// Hardware addresses of those to whom the switch itself sends.
#[derive(Debug, Default)]
pub struct Neighbours {
    table: FxHashMap<Ipv4Addr, Neighbour>,
    /// Messages that wait, of all neighbours.
    waiting: usize,
    lost: u64,
    changed: bool,
}

impl Neighbours {
    /// A neighbour says in ARP where it is. Gives the messages that waited for it.
    pub fn learn(&mut self, now: Time, address: Ipv4Addr, station: Station) -> VecDeque<Vec<u8>> {
        if address.is_unspecified() || station.mac.is_multicast() {
            return VecDeque::new();
        }
        if !self.table.contains_key(&address) && self.table.len() >= MAX_NEIGHBOURS {
            return VecDeque::new();
        }
        let known = Neighbour::Known {
            station,
            heard: now,
            asked: None,
        };
        let before = self.table.insert(address, known);
        self.changed |=
            !matches!(&before, Some(Neighbour::Known { station: old, .. }) if *old == station);
        match before {
            Some(Neighbour::Unknown { waiting, .. }) => {
                self.waiting -= waiting.len();
                waiting
            }
            _ => VecDeque::new(),
        }
    }

    /// Whether a neighbour was learnt or has moved since this was asked last.
    #[inline]
    pub const fn take_changed(&mut self) -> bool {
        std::mem::replace(&mut self.changed, false)
    }

    /// A datagram came from a neighbour. It says less than ARP: it does not move a neighbour that is known elsewhere.
    #[inline]
    pub fn hear(&mut self, now: Time, address: Ipv4Addr, from: Station) -> VecDeque<Vec<u8>> {
        match self.table.get_mut(&address) {
            Some(Neighbour::Known {
                station,
                heard,
                asked,
            }) => {
                if *station == from {
                    (*heard, *asked) = (now, None);
                }
                VecDeque::new()
            }
            _ => self.learn(now, address, from),
        }
    }

    /// How to reach an address.
    #[inline]
    pub fn reach(&mut self, now: Time, address: Ipv4Addr) -> Reach {
        match self.table.get_mut(&address) {
            Some(Neighbour::Known {
                station,
                heard,
                asked,
            }) => {
                if now.since(*heard) > STALE
                    && asked.is_none_or(|asked| now.since(asked) > ASK_AGAIN)
                {
                    *asked = Some(now);
                    return Reach::KnownAsk(*station);
                }
                Reach::Known(*station)
            }
            Some(Neighbour::Unknown { asked, .. }) => {
                if now.since(*asked) > ASK_AGAIN {
                    *asked = now;
                    Reach::Ask
                } else {
                    Reach::Wait
                }
            }
            None => {
                if self.table.len() < MAX_NEIGHBOURS {
                    let unknown = Neighbour::Unknown {
                        asked: now,
                        waiting: VecDeque::new(),
                    };
                    self.table.insert(address, unknown);
                }
                Reach::Ask
            }
        }
    }

    /// Keeps a message until the neighbour is known. When too many wait for it, the oldest is lost; when too many wait
    /// for all, this one is.
    pub fn wait(&mut self, address: Ipv4Addr, message: Vec<u8>) {
        let [of_one, of_all] = MAX_WAITING;
        let waiting = match self.table.get_mut(&address) {
            Some(Neighbour::Unknown { waiting, .. }) if self.waiting < of_all => waiting,
            _ => {
                self.lost += 1;
                return;
            }
        };
        waiting.push_back(message);
        if waiting.len() > of_one {
            waiting.pop_front();
            self.lost += 1;
        } else {
            self.waiting += 1;
        }
    }

    /// Where a neighbour is, as far as it is known.
    #[must_use]
    pub fn find(&self, address: Ipv4Addr) -> Option<Station> {
        match self.table.get(&address)? {
            Neighbour::Known { station, .. } => Some(*station),
            Neighbour::Unknown { .. } => None,
        }
    }

    /// All neighbours that are known, in the order of their addresses.
    #[must_use]
    pub fn known(&self) -> Vec<(Ipv4Addr, Station)> {
        let mut known: Vec<_> = self
            .table
            .keys()
            .filter_map(|address| Some((*address, self.find(*address)?)))
            .collect();
        known.sort_unstable_by_key(|(address, _)| *address);
        known
    }

    /// Forgets who was silent for too long, and what waits for somebody who does not answer.
    pub fn forget_silent(&mut self, now: Time) {
        let mut lost = 0;
        self.table.retain(|_, neighbour| match neighbour {
            Neighbour::Known { heard, .. } => now.since(*heard) <= FORGET,
            Neighbour::Unknown { asked, waiting } => {
                let keep = now.since(*asked) <= STALE;
                lost += if keep { 0 } else { waiting.len() };
                keep
            }
        });
        self.waiting -= lost;
        self.lost += lost as u64;
    }

    /// Forgets everything: `now` begins anew.
    pub fn clear(&mut self) {
        self.table.clear();
        self.waiting = 0;
    }

    /// Messages lost because their receiver did not answer ARP.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

    fn station(id: u8) -> Station {
        Station {
            mac: MacAddress([2, 0, 0, 0, 0, id]),
            vlan: 0,
        }
    }

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn a_neighbour_that_does_not_answer_is_asked_again_and_then_given_up() {
        let mut neighbours = Neighbours::default();
        assert_eq!(neighbours.reach(at_ms(0), ADDRESS), Reach::Ask);
        neighbours.wait(ADDRESS, vec![1]);
        assert_eq!(neighbours.reach(at_ms(100), ADDRESS), Reach::Wait);
        assert_eq!(neighbours.reach(at_ms(201), ADDRESS), Reach::Ask);
        neighbours.forget_silent(at_ms(60_000));
        assert_eq!(neighbours.lost(), 0);
        neighbours.forget_silent(at_ms(60_202));
        assert_eq!(neighbours.lost(), 1);
        assert_eq!(neighbours.reach(at_ms(60_203), ADDRESS), Reach::Ask);
    }

    #[test]
    fn what_waits_comes_in_order_and_the_oldest_is_lost_first() {
        let mut neighbours = Neighbours::default();
        neighbours.reach(at_ms(0), ADDRESS);
        let [of_one, _] = MAX_WAITING;
        for number in 0..=of_one {
            neighbours.wait(ADDRESS, vec![number as u8]);
        }
        let waiting = neighbours.learn(at_ms(1), ADDRESS, station(1));
        let expected: Vec<Vec<u8>> = (1..=of_one).map(|number| vec![number as u8]).collect();
        assert_eq!(Vec::from(waiting), expected);
        assert_eq!((neighbours.lost(), neighbours.waiting), (1, 0));
    }

    #[test]
    fn messages_for_nobody_do_not_fill_the_memory() {
        let mut neighbours = Neighbours::default();
        let [of_one, of_all] = MAX_WAITING;
        for host in 0..100_u32 {
            let address = Ipv4Addr::from(0x0a00_0000 + host);
            neighbours.reach(at_ms(0), address);
            (0..of_one).for_each(|_| neighbours.wait(address, Vec::new()));
        }
        assert_eq!(neighbours.waiting, of_all);
        assert_eq!(neighbours.lost(), (100 * of_one - of_all) as u64);
    }

    #[test]
    fn a_datagram_does_not_move_a_neighbour_and_arp_does() {
        let mut neighbours = Neighbours::default();
        neighbours.learn(at_ms(0), ADDRESS, station(1));
        neighbours.hear(at_ms(1), ADDRESS, station(2));
        assert_eq!(neighbours.find(ADDRESS), Some(station(1)));
        neighbours.learn(at_ms(2), ADDRESS, station(2));
        assert_eq!(neighbours.find(ADDRESS), Some(station(2)));
    }

    #[test]
    fn a_silent_neighbour_is_asked_while_it_is_used() {
        let mut neighbours = Neighbours::default();
        neighbours.learn(at_ms(0), ADDRESS, station(1));
        let known = Reach::Known(station(1));
        assert_eq!(neighbours.reach(at_ms(60_000), ADDRESS), known);
        let ask = Reach::KnownAsk(station(1));
        assert_eq!(neighbours.reach(at_ms(60_001), ADDRESS), ask);
        assert_eq!(neighbours.reach(at_ms(60_002), ADDRESS), known);
        neighbours.hear(at_ms(60_003), ADDRESS, station(1));
        assert_eq!(neighbours.reach(at_ms(60_300), ADDRESS), known);
    }
}
