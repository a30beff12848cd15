//! Ordinary frames: which ones the program forwards by itself, and that it leaves all others to the core as they came.

use std::net::Ipv4Addr;

use raddle_switch::{
    bridge::Station,
    fast::FastPath as _,
    xdp::{Action, Hook},
};
use raddle_wire::{
    MacAddress, Path, Vlan, ethertype,
    native::{Kind, MAGIC, VERSION},
};

use crate::world::{INGRESS, MAC, World, mac_of};

const FROM: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 1);
const TO: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
const TCP: u8 = 6;
const ICMP: u8 = 1;
/// Where a TCP header's checksum is in a frame.
const CHECKSUM: usize = 14 + 20 + 16;

fn station(address: Ipv4Addr) -> Station {
    Station {
        mac: mac_of(address),
        vlan: 0,
    }
}

/// One's complement sum of 16-bit words (RFC 1071).
fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u32;
    for part in parts {
        for pair in part.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            sum += u32::from(u16::from_be_bytes([pair[0], low]));
        }
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// A frame of IPv4 with so many bytes above; of TCP, its checksum is that of the pseudo-header or complete.
fn frame(protocol: u8, above: usize, complete: bool) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(mac_of(TO).0);
    frame.extend(mac_of(FROM).0);
    frame.extend(ethertype::IPV4.to_be_bytes());
    frame.extend([0x45, 0]);
    frame.extend(((20 + above) as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    frame.extend(FROM.octets());
    frame.extend(TO.octets());
    let header = !sum(&[&frame[14..34]]);
    frame[24..26].copy_from_slice(&header.to_be_bytes());
    frame.extend((0..above).map(|n| n as u8));
    if protocol == TCP {
        frame[CHECKSUM..CHECKSUM + 2].fill(0);
        let length = (above as u16).to_be_bytes();
        let pseudo = sum(&[&FROM.octets(), &TO.octets(), &[0, TCP], &length]);
        let whole = sum(&[&pseudo.to_be_bytes(), &frame[34..]]);
        let check = if complete { !whole } else { pseudo };
        frame[CHECKSUM..CHECKSUM + 2].copy_from_slice(&check.to_be_bytes());
    }
    frame
}

fn datagram(payload: &[u8]) -> Vec<u8> {
    let path = Path {
        udp_checksum: true,
        ..Path::between(mac_of(FROM), mac_of(TO), FROM, TO, 5000)
    };
    let mut frame = vec![0; path.payload_at() + payload.len()];
    let length = path
        .write_udp(&mut frame, 6000, &[payload])
        .expect("it fits");
    frame.truncate(length);
    frame
}

/// What becomes of a frame, which must stay as it is.
fn fate(world: &mut World, frame: &[u8]) -> Action {
    let mut out = Vec::new();
    let action = world.fast.run(frame, &mut out).expect("it runs");
    assert_eq!(
        out, frame,
        "the program changed a frame that it only forwards"
    );
    action
}

/// Known stations: forwarded when nothing can need the core. But for native XDP, a frame's buffer says what is still to be
/// done, so that whoever gets it does it; traffic control takes frames of any length.
pub(crate) fn between_known_stations(world: &mut World) {
    let (sender, receiver) = (INGRESS, world.interface(3));
    world.fast.station_changed(station(FROM), Some(sender));
    world.fast.station_changed(station(TO), Some(receiver));

    let taken_if = |taken| match taken {
        true => Action::Redirect,
        false => Action::Pass,
    };
    let (unfinished, long) = (world.hook != Hook::Native, world.hook == Hook::Tc);
    for above in [20, 21, 64, 1480] {
        assert_eq!(
            fate(world, &frame(TCP, above, true)),
            Action::Redirect,
            "{above}"
        );
        let partial = frame(TCP, above, false);
        assert_eq!(
            fate(world, &partial),
            taken_if(unfinished),
            "{above}: for a card to complete"
        );
    }
    assert_eq!(fate(world, &frame(ICMP, 64, true)), Action::Redirect);
    assert_eq!(fate(world, &datagram(b"")), Action::Redirect);
    assert_eq!(fate(world, &datagram(&[7; 900])), Action::Redirect);

    assert_eq!(
        fate(world, &frame(TCP, 1481, true)),
        taken_if(long),
        "too long"
    );
    assert_eq!(
        fate(world, &frame(TCP, 19, true)),
        Action::Pass,
        "no whole header"
    );
    assert_eq!(fate(world, &frame(47, 64, true)), Action::Pass, "GRE");
    let mut fragment = frame(ICMP, 64, true);
    fragment[20] = 0x20;
    assert_eq!(fate(world, &fragment), Action::Pass, "a fragment");
    let mut tagged = frame(ICMP, 64, true);
    let vlan = Vlan {
        priority: 0,
        drop_eligible: false,
        id: 5,
        ethertype: ethertype::IPV4,
    };
    tagged.splice(12..14, [0x81, 0, 0, vlan.id as u8, 8, 0]);
    assert_eq!(fate(world, &tagged), Action::Pass, "of a VLAN");
    let mut arp = frame(ICMP, 64, true);
    arp[12..14].copy_from_slice(&[8, 6]);
    assert_eq!(fate(world, &arp), Action::Pass, "ARP");
    for receiver in [
        MacAddress::BROADCAST,
        MacAddress([1, 0, 0x5e, 0, 0, 1]),
        MAC,
    ] {
        let mut other = frame(ICMP, 64, true);
        other[..6].copy_from_slice(&receiver.0);
        assert_eq!(fate(world, &other), Action::Pass, "to {receiver}");
    }
    // What the core rewrites on its way through is known by its first bytes.
    for (kind, expected) in [
        (Kind::Query, Action::Pass),
        (Kind::Result, Action::Redirect),
    ] {
        let [a, b] = MAGIC.to_be_bytes();
        let message = [a, b, VERSION, kind.code(), 56, 0, 0, 0];
        assert_eq!(fate(world, &datagram(&message)), expected, "{kind:?}");
    }
}

/// Stations that the program was not told of, that moved, or that are gone, are the core's.
pub(crate) fn strangers(world: &mut World) {
    let (sender, receiver) = (INGRESS, world.interface(3));
    let frame = frame(TCP, 64, true);
    let mut tell = |from, to| {
        world.fast.station_changed(station(FROM), from);
        world.fast.station_changed(station(TO), to);
        fate(world, &frame)
    };
    assert_eq!(tell(None, None), Action::Pass);
    assert_eq!(tell(Some(sender), None), Action::Pass);
    assert_eq!(tell(None, Some(receiver)), Action::Pass);
    assert_eq!(
        tell(Some(receiver), Some(receiver)),
        Action::Pass,
        "it moved"
    );
    assert_eq!(tell(Some(sender), Some(sender)), Action::Pass, "not back");
    assert_eq!(
        tell(Some(sender), Some(4_000)),
        Action::Pass,
        "no port of the switch"
    );
    assert_eq!(world.fast.heard(), []);
    let mut tell = |from, to| {
        world.fast.station_changed(station(FROM), from);
        world.fast.station_changed(station(TO), to);
        fate(world, &frame)
    };
    assert_eq!(tell(Some(sender), Some(receiver)), Action::Redirect);
    assert_eq!(world.fast.heard(), [station(FROM)]);
    assert_eq!(world.fast.heard(), [], "since it was asked last");
    assert_eq!(
        fate(world, &frame),
        Action::Redirect,
        "asking changes nothing"
    );
}
