use proptest::prelude::*;
use raddle_offload::published::{self, Leader, LeaderConfig, Outcome, Stage, Transport};
use raddle_offload::roles::Roles;
use raddle_offload::switch::{Abilities, Quotas, SiteSecret, SwitchConfig, job_key};
use raddle_units::Span;
use raddle_wire::{
    DataType, Operation,
    native::{Body, ChildEntry, Header, ProgramHead, Terms, Unverified, write_program},
};

use super::*;

const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 253);
const SWITCH_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xfd]);
const JOB: u32 = 7;
const NOW: Time = Time(1);

fn secret() -> SiteSecret {
    SiteSecret::new([9; 32])
}

/// Four ports; the last one is down.
fn node() -> Node {
    let config = SwitchConfig {
        address: SWITCH,
        tier: 1,
        epoch: 5,
        secret: secret(),
        quotas: Quotas::default(),
        abilities: Abilities::default(),
    };
    let bridge = Bridge::new(Span::from_ms(300_000));
    let mut node = Node::new(SWITCH, SWITCH_MAC, 4, bridge, Switch::new(config));
    for port in 0..3 {
        node.set_port(Port(port), true);
    }
    node
}

fn ip(host: u8) -> Ipv4Addr {
    [10, 0, 0, host].into()
}

fn mac(host: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, host])
}

fn udp(path: &Path, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; path.payload_at() + payload.len()];
    let length = path.write_udp(&mut frame, port, &[payload]).unwrap();
    assert_eq!(length, frame.len());
    frame
}

/// A frame from a host to the switch.
fn to_switch(host: u8, payload: &[u8]) -> Vec<u8> {
    let path = Path::between(mac(host), SWITCH_MAC, ip(host), SWITCH, 40_000);
    udp(&path, PORT, payload)
}

/// Hands a frame in; gives the frames that leave and their ports.
fn give(node: &mut Node, port: u16, frame: &[u8]) -> Vec<(u16, Vec<u8>)> {
    node.handle_frame(NOW, Port(port), Offload::default(), frame, 0);
    node.poll_switch(NOW);
    let outbox = &node.outbox;
    let out = outbox
        .frames()
        .iter()
        .map(|out| (out.port.0, outbox.bytes(out, |_| frame).to_vec()))
        .collect();
    node.outbox.clear();
    out
}

fn ports(out: &[(u16, Vec<u8>)]) -> Vec<u16> {
    out.iter().map(|(port, _)| *port).collect()
}

/// An ARP packet as RFC 826 has it.
fn arp(operation: u8, host: u8, target: Ipv4Addr, to: MacAddress) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(to.0);
    frame.extend(mac(host).0);
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, operation]);
    frame.extend(mac(host).0);
    frame.extend(ip(host).octets());
    frame.extend([0; 6]);
    frame.extend(target.octets());
    frame
}

fn program(parent: Ipv4Addr, host: u8) -> Vec<u8> {
    let head = ProgramHead {
        parent,
        results: Ipv4Addr::UNSPECIFIED,
        master: ip(host),
        group_size: 2,
        lease_ms: 1000,
        slots: 4,
        segment_bytes: 64,
        children: 0,
        steps: 0,
        outputs: 0,
        results_port: 0,
    };
    let child = ChildEntry {
        address: ip(host),
        port: 40_000,
        operands: 1,
        rank: 0,
    };
    let mut body = [0; 256];
    let length = write_program(&mut body, &head, &[child], &[], &[]).unwrap();
    message(
        &Header {
            group: 1,
            ..Header::of(Kind::Program, JOB)
        },
        &body[..length],
    )
}

fn message(header: &Header, body: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 56 + body.len()];
    let key = job_key(&secret(), JOB);
    header.write_message(&mut message, body, &key).unwrap();
    message
}

fn kind(frame: &[u8]) -> Kind {
    let datagram = Datagram::find(frame).unwrap().unwrap();
    Unverified::parse(datagram.payload(), 0).unwrap().kind()
}

#[test]
fn unknown_receivers_are_flooded_to_the_ports_that_are_up_except_the_ingress() {
    let mut node = node();
    let path = Path::between(mac(1), mac(2), ip(1), ip(2), 1);
    let frame = udp(&path, 9, b"hello");
    let out = give(&mut node, 0, &frame);
    assert_eq!(ports(&out), [1, 2]);
    assert!(out.iter().all(|(_, sent)| *sent == frame));
}

#[test]
fn a_question_for_the_own_address_of_the_switch_is_answered_to_the_asker_alone() {
    let mut node = node();
    let out = give(&mut node, 1, &arp(1, 3, SWITCH, MacAddress::BROADCAST));
    let mut expected = Vec::new();
    expected.extend(mac(3).0);
    expected.extend(SWITCH_MAC.0);
    expected.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
    expected.extend(SWITCH_MAC.0);
    expected.extend(SWITCH.octets());
    expected.extend(mac(3).0);
    expected.extend(ip(3).octets());
    assert_eq!(out, [(1, expected)]);
    // Questions for others are everybody's.
    let out = give(&mut node, 1, &arp(1, 3, ip(4), MacAddress::BROADCAST));
    assert_eq!(ports(&out), [0, 2]);
}

#[test]
fn a_query_that_crosses_gets_an_entry_and_right_sums() {
    for checksum in [true, false] {
        let mut node = node();
        let header = Header {
            group: 1,
            rank: 2,
            ..Header::of(Kind::Query, JOB)
        };
        let mut terms = [0; Terms::SIZE];
        let all = Terms {
            segment_bytes: 256,
            slots: 8,
            operations: 0xfff,
            collectives: 15,
            ..Terms::default()
        };
        all.write(&mut terms, 0).unwrap();
        let path = Path {
            dscp: 10,
            ttl: 9,
            identification: 77,
            udp_checksum: checksum,
            ..Path::between(mac(1), mac(2), ip(1), ip(2), 40_000)
        };
        let frame = udp(&path, 41_000, &message(&header, &terms));
        let out = give(&mut node, 0, &frame);
        assert_eq!(ports(&out), [1, 2]);
        let datagram = Datagram::find(&out[0].1).unwrap().unwrap();
        datagram.verify_ipv4().unwrap();
        datagram.verify_udp().unwrap();
        assert_eq!(datagram.udp.checksum() != 0, checksum);
        assert_eq!((datagram.ipv4.ttl(), datagram.ipv4.dscp()), (9, 10));
        assert_eq!(datagram.udp.destination_port(), 41_000);
        let key = job_key(&secret(), JOB);
        let message = Unverified::parse(datagram.payload(), 0).unwrap();
        let Body::Terms(terms, path) = message.verify(&key).unwrap().body else {
            panic!("terms are expected");
        };
        assert_eq!(terms.hops(), 1);
        let switches: Vec<_> = path.entries().map(|entry| entry.address()).collect();
        assert_eq!(switches, [SWITCH]);
        assert_eq!(node.counters.rewritten, 1);
    }
}

#[test]
fn a_query_with_a_wrong_tag_crosses_unchanged() {
    let mut node = node();
    let mut query = message(&Header::of(Kind::Query, JOB), &[0; Terms::SIZE]);
    query[60] ^= 1;
    let path = Path::between(mac(1), mac(2), ip(1), ip(2), 40_000);
    let frame = udp(&path, 41_000, &query);
    let out = give(&mut node, 0, &frame);
    assert!(out.iter().all(|(_, sent)| *sent == frame));
}

#[test]
fn a_message_for_a_neighbour_that_nobody_knows_waits_for_its_answer() {
    let mut node = node();
    let confirmed = give(&mut node, 0, &to_switch(1, &program(ip(9), 1)));
    assert_eq!(ports(&confirmed), [0]);
    assert_eq!(kind(&confirmed[0].1), Kind::Lease);
    let contribution = Header {
        group: 1,
        round: 1,
        segments: 1,
        ..Header::of(Kind::Contribution, JOB)
    }
    .with_data(Operation::Sum, DataType::Double, 1);
    let contribution = message(&contribution, &2.5_f64.to_be_bytes());
    let out = give(&mut node, 0, &to_switch(1, &contribution));
    // Where 10.0.0.9 is, every port is asked.
    assert_eq!(ports(&out), [0, 1, 2]);
    assert_eq!(out[0].1[..6], [0xff; 6]);
    assert_eq!(out[0].1[38..42], ip(9).octets());
    let out = give(&mut node, 2, &arp(2, 9, SWITCH, SWITCH_MAC));
    assert_eq!(ports(&out), [2]);
    let (_, frame) = &out[0];
    assert_eq!(frame[..6], mac(9).0);
    assert_eq!(kind(frame), Kind::Contribution);
    let datagram = Datagram::find(frame).unwrap().unwrap();
    assert_eq!(datagram.ipv4.destination(), ip(9));
    assert_eq!(datagram.udp.destination_port(), PORT);
    assert!(datagram.payload().ends_with(&2.5_f64.to_be_bytes()));
    assert_eq!(node.route(NOW, ip(9)).unwrap().1, Port(2));
}

#[test]
fn a_member_in_a_vlan_is_answered_in_it() {
    let mut node = node();
    let vlan = Vlan {
        priority: 3,
        drop_eligible: false,
        id: 42,
        ethertype: 0,
    };
    let path = Path {
        vlan: Some(vlan),
        ..Path::between(mac(1), SWITCH_MAC, ip(1), SWITCH, 40_000)
    };
    let out = give(&mut node, 0, &udp(&path, PORT, &program(ip(9), 1)));
    let datagram = Datagram::find(&out[0].1).unwrap().unwrap();
    assert_eq!(datagram.vlan.unwrap().id(), 42);
}

#[test]
fn what_cannot_be_used_is_counted_and_not_forwarded() {
    let mut node = node();
    let host =
        |source, destination| udp(&Path::between(source, destination, ip(1), ip(2), 1), 9, b"");
    let cases = [
        (vec![0; 13], Drop::Malformed),
        (host(SWITCH_MAC, mac(2)), Drop::OwnSender),
        (host(MacAddress::BROADCAST, mac(2)), Drop::BadSender),
        (host(MacAddress::BROADCAST, SWITCH_MAC), Drop::BadSender),
        (host(mac(1), SWITCH_MAC), Drop::NotForUs),
        (
            host(mac(1), MacAddress([1, 0x80, 0xc2, 0, 0, 2])),
            Drop::LinkLocal,
        ),
        (host(mac(3), mac(1)), Drop::SamePort),
    ];
    for (frame, reason) in cases {
        let before = node.counters.dropped(reason);
        assert_eq!(give(&mut node, 0, &frame), [], "{reason:?}");
        assert_eq!(node.counters.dropped(reason), before + 1, "{reason:?}");
    }
}

#[test]
fn a_ping_is_answered_and_a_damaged_one_is_not() {
    // Echo request, identifier 1, sequence 1, no data: checksum 0xf7fd (RFC 792, by hand).
    let mut frame = Vec::new();
    frame.extend(SWITCH_MAC.0);
    frame.extend(mac(1).0);
    frame.extend([8, 0, 0x45, 0, 0, 28, 0, 7, 0, 0, 64, 1, 0, 0]);
    frame.extend(ip(1).octets());
    frame.extend(SWITCH.octets());
    frame.extend([8, 0, 0xf7, 0xfd, 0, 1, 0, 1]);
    let mut node = node();
    let out = give(&mut node, 0, &frame);
    assert_eq!(ports(&out), [0]);
    let answer = &out[0].1;
    assert_eq!(answer[..12], [mac(1).0, SWITCH_MAC.0].concat());
    assert_eq!(answer[26..34], [SWITCH.octets(), ip(1).octets()].concat());
    assert_eq!(answer[34..], [0, 0, 0xff, 0xfd, 0, 1, 0, 1]);
    assert_eq!(
        raddle_wire::ipv4_checksum(&answer[14..34]).to_be_bytes(),
        answer[24..26]
    );
    frame[36] ^= 1;
    assert_eq!(give(&mut node, 0, &frame), []);
    assert_eq!(node.counters.pings, 1);
}

proptest! {
    /// Frames of any bytes behind plausible headers: nothing panics, and nothing goes back by the port it came from
    /// but answers of the switch itself.
    #[test]
    fn any_frame_is_handled(
        frames in prop::collection::vec((0_u16..3, 0_u8..6, any::<[u8; 4]>(), prop::collection::vec(any::<u8>(), 0..120)), 1..40),
    ) {
        let mut node = node();
        for (port, shape, [a, b, c, d], mut rest) in frames {
            let source = mac(a % 4);
            let destination = match b % 4 {
                0 => SWITCH_MAC,
                1 => MacAddress::BROADCAST,
                other => mac(other),
            };
            let mut frame = match shape {
                0 => rest,
                1 => arp(c % 3, a % 4, if d % 2 == 0 { SWITCH } else { ip(d) }, destination),
                2 => udp(&Path::between(source, destination, ip(a % 4), SWITCH, 1), PORT, &rest),
                3 => {
                    let head = [0x52, 0x61, VERSION, c % 20];
                    rest.splice(0..0, head);
                    udp(&Path::between(source, destination, ip(a % 4), ip(b), 1), 9, &rest)
                }
                4 => to_switch(a % 4, &program(ip(d), a % 4)),
                _ => {
                    let mut frame = [destination.0, source.0].concat();
                    frame.extend([8, 0]);
                    frame.extend(rest);
                    frame
                }
            };
            if c % 5 == 0 {
                frame.truncate(usize::from(d));
            }
            let own = frame.get(..6) == Some(&SWITCH_MAC.0[..]);
            for (egress, sent) in give(&mut node, port, &frame) {
                let made_here = sent.get(6..12) == Some(&SWITCH_MAC.0[..]);
                prop_assert!(egress < 3, "port 3 is down");
                prop_assert!(made_here || (egress != port && !own));
            }
        }
    }
}

/// The ports of the hosts; host h is node h - 1.
const HOSTS: [u8; 3] = [1, 2, 3];

fn published_node() -> Node {
    let mut node = node();
    let tor = published::SwitchConfig::new(SWITCH, published::Tier::Tor);
    node.published = Some(published::Switch::new(tor));
    // Everybody has been heard once.
    for host in HOSTS {
        let frame = udp(
            &Path::between(mac(host), MacAddress::BROADCAST, ip(host), ip(255), 9),
            9,
            b"hello",
        );
        give(&mut node, u16::from(host) - 1, &frame);
    }
    node
}

fn leaders() -> Vec<Leader> {
    let roles = Roles::new(1, 3, 1).unwrap();
    let make = |rank| LeaderConfig {
        roles,
        rank,
        group: 7,
        transport: Transport::Ud,
        nodes: HOSTS.map(ip).into(),
        give_up: Span::from_ms(20),
        overdue: Span::from_ms(2),
    };
    (0..3)
        .map(|rank| Leader::new(NOW, make(rank)).unwrap())
        .collect()
}

/// Everything that leaders want to send goes through the switch and to the leader behind the port by which it leaves.
fn exchange(node: &mut Node, leaders: &mut [Leader]) -> Vec<Vec<u8>> {
    let mut buffer = [0; 512];
    let mut delivered = Vec::new();
    for from in 0..leaders.len() {
        while let Some((to, length)) = leaders[from].poll_transmit(&mut buffer) {
            let (host, to) = (HOSTS[from], to.octets()[3]);
            let mut frame = buffer[..length].to_vec();
            frame[..6].copy_from_slice(&mac(to).0);
            frame[6..12].copy_from_slice(&mac(host).0);
            for (port, frame) in give(node, u16::from(host) - 1, &frame) {
                leaders[usize::from(port)].handle_frame(NOW, &frame);
                delivered.push(frame);
            }
        }
    }
    delivered
}

fn set_up(node: &mut Node, leaders: &mut [Leader]) {
    exchange(node, leaders);
    assert_eq!(leaders[0].stage(), Stage::Collected(None));
    leaders[0].notify(None, 0);
    exchange(node, leaders);
    for leader in leaders {
        let Stage::Set(terms) = leader.stage() else {
            panic!("{:?}", leader.stage());
        };
        leader.open(terms);
    }
}

#[test]
fn a_switch_serves_both_protocols_at_once() {
    let mut node = published_node();
    let mut leaders = leaders();
    set_up(&mut node, &mut leaders);
    // A group of ours stands beside.
    give(
        &mut node,
        0,
        &to_switch(1, &program(Ipv4Addr::UNSPECIFIED, 1)),
    );
    assert_eq!(node.switch.group_count(), 1);
    for round in 1..=300_u64 {
        for (leader, value) in leaders.iter_mut().zip([1, 10, 100]) {
            let operands = (round * value).to_be_bytes();
            let started = leader.start(NOW, Operation::Sum, DataType::Uint64, &operands);
            assert_eq!(started, Some(round as u32));
        }
        exchange(&mut node, &mut leaders);
        let sum = (111 * round).to_be_bytes();
        for leader in &leaders {
            assert_eq!(leader.outcome(NOW), Outcome::Done(&sum));
        }
    }
    let counters = *node.published.as_ref().unwrap().counters();
    assert_eq!((counters.rounds, counters.held), (300, 900));
    leaders[0].kill();
    exchange(&mut node, &mut leaders);
    assert_eq!(node.published.as_ref().unwrap().group_count(), 0);
    assert_eq!(node.switch.group_count(), 1);
}

#[test]
fn a_switch_that_does_not_speak_it_forwards_the_published_protocol_as_it_is() {
    let mut node = published_node();
    node.published = None;
    let mut leaders = leaders();
    let delivered = exchange(&mut node, &mut leaders);
    assert_eq!(delivered.len(), 2);
    leaders[0].notify(None, 0);
    exchange(&mut node, &mut leaders);
    let Stage::Set(terms) = leaders[1].stage() else {
        panic!("{:?}", leaders[1].stage());
    };
    // No switch has set the flag: plain MPI.
    assert!(!terms.usable());
}
