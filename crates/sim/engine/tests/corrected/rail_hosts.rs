//! Messages over rails between simulated hosts: rates and times on paper, planes. Whole runs are in `rail_runs`.

use std::collections::BTreeSet;

use raddle_engine::rails::{Case, Figures, Machine, PolicyName, RailsError, multi_plane};
use raddle_fabric::{Fabric, LeafSpine};
use raddle_units::{BitRate, NodeId, PortId, Span};
use serde_json::{Value, json};

use crate::{common::star, rails::two_rails};

const SEGMENT: f64 = 4096.0;
/// Head of a packet before its payload, and what the machine below puts around it.
const HEAD: f64 = 80.0;
const AROUND: f64 = 20.0;

/// Two hosts below one switch per rail, with these members more or instead.
fn machine(changes: &[(&str, Value)]) -> Machine {
    let link = |host: u32| json!({"a": host, "b": 2, "rate": "10Gbps", "delay": "1us"});
    let mut machine = json!({
        "fabric": {
            "kind": "graph", "host": [{"count": 2}], "switch": [{}], "link": [link(0), link(1)],
        },
        "around": "20B",
        "protocol": {
            "segment": 4096, "heartbeat": "1ms", "lateness": "2us", "patience": "100us",
        },
    });
    for (key, value) in changes {
        machine[*key] = value.clone();
    }
    serde_json::from_value(machine).unwrap()
}

/// As Myrinet's cards: no congestion control, two packets per rail below the core. Heartbeats are rarer than messages.
fn cards(bus: Value) -> Machine {
    let protocol = json!({
        "segment": 4096, "scheme": "none", "heartbeat": "20ms", "lateness": "2us", "patience": "100us",
    });
    machine(&[("bus", bus), ("room", json!(2)), ("protocol", protocol)])
}

fn case(rails: &[&str], bytes: u64, load: Value) -> Case {
    let case = json!({
        "rails": rails, "bytes": bytes, "policy": "dynamic", "cut": "weighted", "load": load,
    });
    serde_json::from_value(case).unwrap()
}

fn streams(forward: u32, backward: u32) -> Value {
    json!({
        "kind": "streams", "forward": forward, "backward": backward, "window": 16,
        "warm_up": "3ms", "time": "10ms",
    })
}

fn ping_pong() -> Value {
    json!({"kind": "ping-pong", "rounds": 5})
}

/// Payload of all streams in bit/s.
fn goodput(machine: &Machine, rails: &[&str], load: Value) -> f64 {
    let figures = case(rails, 1 << 20, load).run(machine).unwrap();
    assert_eq!(figures.drops, 0);
    figures.goodput_bps.iter().sum()
}

#[track_caller]
fn close(found: f64, expected: f64, share: f64) {
    assert!(
        (found / expected - 1.0).abs() <= share,
        "{found} where {expected} is right"
    );
}

/// Rate of payload where only packets' heads come on top.
fn payload(rate: f64) -> f64 {
    rate * SEGMENT / (SEGMENT + HEAD + AROUND)
}

#[test]
fn equal_rails_carry_what_one_does_times_their_number() {
    for rails in 1..=8 {
        let found = goodput(&machine(&[]), &vec!["10Gbps"; rails], streams(1, 0));
        close(found, rails as f64 * payload(10e9), 1e-3);
    }
}

#[test]
fn unequal_rails_carry_their_sum() {
    for rails in [
        &["8Gbps", "2Gbps"][..],
        &["10Gbps", "5Gbps", "1Gbps"],
        &["400Mbps", "100Mbps"],
    ] {
        let rate = |rail: &&str| rail.parse::<BitRate>().unwrap().0 as f64;
        let sum = rails.iter().map(rate).sum();
        close(
            goodput(&machine(&[]), rails, streams(1, 0)),
            payload(sum),
            0.02,
        );
    }
}

#[test]
fn a_bus_carries_its_rate_and_no_more() {
    // 4096 B in 8192 ns at 4 Gbit/s; a cut of 1808 ns makes it 10 us.
    let reads = cards(json!({"read": "4Gbps"}));
    let cut = cards(json!({"read": "4Gbps", "cut": "1808ns"}));
    let writes = cards(json!({"write": "4Gbps"}));
    for rails in [&["10Gbps"][..], &["10Gbps"; 2], &["10Gbps"; 8]] {
        close(goodput(&reads, rails, streams(1, 0)), 4e9, 1e-3);
        close(
            goodput(&cut, rails, streams(1, 0)),
            SEGMENT * 8.0 / 10e-6,
            1e-3,
        );
        close(goodput(&writes, rails, streams(1, 0)), 4e9, 1e-3);
    }
    // A bus that is not in the way changes nothing.
    let wide = cards(json!({"read": "100Gbps", "write": "100Gbps"}));
    close(
        goodput(&wide, &["10Gbps"; 2], streams(1, 0)),
        2.0 * payload(10e9),
        1e-3,
    );
}

/// PCI: a byte read and a byte written cross the same bus. PCI Express: each way has its own.
#[test]
fn a_shared_bus_takes_turns() {
    let bus = |shared: bool| cards(json!({"read": "4Gbps", "write": "6Gbps", "shared": shared}));
    let both = goodput(&bus(true), &["10Gbps"], streams(1, 1));
    close(both, 2.0 / (1.0 / 4e9 + 1.0 / 6e9), 1e-2);
    close(goodput(&bus(true), &["10Gbps"], streams(1, 0)), 4e9, 1e-3);
    close(goodput(&bus(false), &["10Gbps"], streams(1, 1)), 8e9, 1e-2);
}

/// A card with 12 Gbit/s for both ways together: one way has the wire's rate, both have 6 each.
#[test]
fn a_card_shares_its_rate_between_both_ways() {
    let mut limited = cards(json!({}));
    limited.card.both_ways = Some(BitRate::from_gbps(12));
    for rails in 1..=4 {
        let rails = &vec!["10Gbps"; rails];
        let count = rails.len() as f64;
        close(
            goodput(&limited, rails, streams(1, 0)),
            count * payload(10e9),
            1e-3,
        );
        close(goodput(&limited, rails, streams(1, 1)), count * 12e9, 2e-2);
    }
}

/// A card that loses 4 us when it turns sends and receives 4096 B each in 8 us: less than the wire's rate one way. There, and
/// only there, it pays to send on one rail and to receive on the other.
#[test]
fn a_card_that_turns_slowly_is_better_used_one_way() {
    let mut turning = cards(json!({}));
    turning.card.turn = Span::from_us(4);
    let both = SEGMENT * 8.0 / 4e-6;
    close(goodput(&turning, &["10Gbps"], streams(1, 1)), both, 2e-2);
    let one_way_each = |machine: &Machine| {
        let mut case = case(&["10Gbps"; 2], 1 << 20, streams(1, 1));
        case.policy = PolicyName::Unidirectional;
        let figures = case.run(machine).unwrap();
        figures.goodput_bps.iter().sum::<f64>()
    };
    close(one_way_each(&turning), 2.0 * payload(10e9), 1e-3);
    let dynamic = goodput(&turning, &["10Gbps"; 2], streams(1, 1));
    close(dynamic, 2.0 * both, 2e-2);
    let free = cards(json!({}));
    assert!(goodput(&free, &["10Gbps"; 2], streams(1, 1)) > 1.9 * one_way_each(&free));
}

/// Congestion control sees a bus as a part of the way.
#[test]
fn congestion_control_finds_the_bus() {
    for bus in [json!({"read": "15Gbps"}), json!({"write": "15Gbps"})] {
        close(
            goodput(&machine(&[("bus", bus)]), &["10Gbps"; 4], streams(2, 0)),
            15e9,
            0.03,
        );
    }
}

#[test]
fn a_message_takes_its_bytes_times_and_the_ways_delay() {
    let latency = |machine: &Machine, rails: &[&str], bytes| -> f64 {
        let figures: Figures = case(rails, bytes, ping_pong()).run(machine).unwrap();
        figures.latency_us.unwrap()
    };
    let wire = |bytes: f64| (bytes + HEAD + AROUND) * 8.0 / 10e3;
    for bytes in [1.0, 8.0, 4096.0] {
        // Two links, each with its delay; one rail or many, since it is one packet.
        let expected = 2.0 * (wire(bytes) + 1.0);
        for rails in [&["10Gbps"][..], &["10Gbps"; 4]] {
            close(latency(&machine(&[]), rails, bytes as u64), expected, 1e-6);
        }
        let bus = cards(json!({"read": "4Gbps", "write": "8Gbps", "cut": "2us"}));
        let crossing = bytes * 8.0 / 4e3 + bytes * 8.0 / 8e3 + 2.0;
        close(
            latency(&bus, &["10Gbps"], bytes as u64),
            expected + crossing,
            1e-6,
        );
    }
    // 64 packets one after the other, of which the last goes over the second link alone.
    let long = 64.0 * wire(SEGMENT) + wire(SEGMENT) + 2.0;
    close(
        latency(&cards(json!({})), &["10Gbps"], 64 * 4096),
        long,
        1e-6,
    );
    // On four rails a quarter of them.
    let short = 16.0 * wire(SEGMENT) + wire(SEGMENT) + 2.0;
    close(
        latency(&cards(json!({})), &["10Gbps"; 4], 64 * 4096),
        short,
        1e-6,
    );
}

/// Choosing takes a process's time before each message, where there is something to choose.
#[test]
fn choosing_costs_what_it_says() {
    let dear = machine(&[("choose", json!("50us"))]);
    let run = |machine: &Machine, rails: &[&str], load| case(rails, 8, load).run(machine).unwrap();
    let latency =
        |machine: &Machine, rails: &[&str]| run(machine, rails, ping_pong()).latency_us.unwrap();
    close(
        latency(&dear, &["10Gbps"]),
        latency(&machine(&[]), &["10Gbps"]),
        1e-9,
    );
    let two: &[&str] = &["10Gbps"; 2];
    close(
        latency(&dear, two),
        latency(&machine(&[]), two) + 50.0,
        1e-9,
    );
    // One message every 50 us and process.
    let rate = run(&dear, two, streams(3, 0)).goodput_bps;
    assert_eq!(rate.len(), 3);
    for bps in rate {
        close(bps, 64.0 / 50e-6, 0.01);
    }
}

#[test]
fn cases_that_make_no_sense_are_refused() {
    let none = case(&[], 8, ping_pong()).run(&machine(&[]));
    assert!(
        none.unwrap_err()
            .to_string()
            .contains("rails is 0: it must be 1 to 8")
    );
    let nine = case(&["10Gbps"; 9], 8, ping_pong()).run(&machine(&[]));
    assert!(nine.unwrap_err().to_string().contains("rails is 9"));
    let empty = case(&["10Gbps"], 0, ping_pong()).run(&machine(&[]));
    assert!(matches!(
        empty,
        Err(RailsError::Range { field: "bytes", .. })
    ));
    let still = case(&["10Gbps"], 8, streams(0, 0)).run(&machine(&[]));
    assert!(still.unwrap_err().to_string().contains("processes is 0"));
    let slow = machine(&[("choose", json!("2s"))]);
    let refused = case(&["10Gbps"], 8, ping_pong()).run(&slow);
    assert!(refused.unwrap_err().to_string().contains("choose"));
    let stopped = machine(&[("bus", json!({"read": "0bps"}))]);
    let refused = case(&["10Gbps"], 8, ping_pong()).run(&stopped);
    assert!(refused.unwrap_err().to_string().contains("rate of 0"));
    let hpcc = json!({"segment": 4096, "scheme": "hpcc"});
    let refused = case(&["10Gbps"], 8, ping_pong()).run(&machine(&[("protocol", hpcc)]));
    assert!(refused.unwrap_err().to_string().contains("telemetry"));
}

// Planes.

#[test]
fn planes_are_copies_that_meet_in_the_hosts_only() {
    let plane = LeafSpine {
        leaves: 2,
        spines: 2,
        hosts_per_leaf: 3,
        links_per_spine: 1,
        host_rate: BitRate::from_gbps(100),
        fabric_rate: BitRate::from_gbps(400),
        delay: Span::from_ns(300),
        radix: None,
    };
    let plane = plane.build().unwrap();
    let rails = [200, 50, 100].map(BitRate::from_gbps);
    let fabric = multi_plane(&plane, &rails).unwrap();
    assert_eq!(fabric.hosts().len(), plane.hosts().len());
    assert_eq!(fabric.switches().len(), 3 * plane.switches().len());
    assert_eq!(fabric.links().len(), 3 * plane.links().len());
    for &host in fabric.hosts() {
        for (rail, port) in (0..).zip(fabric.ports_of(host)) {
            let switches = reached(&fabric, fabric.port(port.peer).node);
            assert_eq!(
                switches.len(),
                plane.switches().len(),
                "a whole plane and no more"
            );
            let own = PortId(fabric.first_port(host).0 + rail);
            assert_eq!(fabric.rate(own), rails[rail as usize]);
            for spine in switches.into_iter().filter(|node| fabric.level(*node) == 2) {
                let rate = fabric.rate(fabric.first_port(spine));
                assert_eq!(rate.0, 4 * rails[rail as usize].0);
            }
        }
        assert_eq!(fabric.ports_of(host).len(), rails.len());
    }
}

/// Switches that can be reached from one without going through hosts.
fn reached(fabric: &Fabric, from: NodeId) -> BTreeSet<NodeId> {
    let (mut known, mut open) = (BTreeSet::from([from]), vec![from]);
    while let Some(node) = open.pop() {
        for port in fabric.ports_of(node) {
            let next = fabric.port(port.peer).node;
            if !fabric.is_host(next) && known.insert(next) {
                open.push(next);
            }
        }
    }
    known
}

#[test]
fn a_plane_has_hosts_with_one_link_of_one_rate() {
    let gbps = BitRate::from_gbps;
    let uneven = star(&[(gbps(10), Span::from_us(1)), (gbps(20), Span::from_us(1))]);
    assert!(multi_plane(&uneven, &[gbps(10)]).is_err());
    let twice = two_rails(2, false);
    assert!(multi_plane(&twice, &[gbps(10)]).is_err());
    assert!(multi_plane(&star(&[(gbps(10), Span::ZERO); 2]), &[]).is_err());
}
