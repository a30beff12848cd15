//! Messages over rails between simulated hosts: rates and times on paper, accounts, failures.

use std::{collections::BTreeSet, sync::Arc};

use raddle_fabric::{Fabric, FabricBuilder, LeafSpine};
use raddle_sim::{
    LinkFault, RunConfig, RunSummary, SetupError,
    rails::{Bus, Case, Figures, Machine, Rails, RailsError, multi_plane},
};
use raddle_transport::rails::{Config, Policy, Segmentation};
use raddle_units::{BitRate, Bytes, LinkId, NodeId, PortId, Span, Time};
use raddle_wire::native::JobKey;
use raddle_workload::{FlowList, Message};
use serde_json::{Value, json};

use crate::common::{Dice, Lab, Log, message, star};

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
    assert!(none.unwrap_err().to_string().contains("rails is 0"));
    let nine = case(&["10Gbps"; 9], 8, ping_pong()).run(&machine(&[]));
    assert!(nine.unwrap_err().to_string().contains("1 to 8"));
    let empty = case(&["10Gbps"], 0, ping_pong()).run(&machine(&[]));
    assert!(matches!(
        empty,
        Err(RailsError::Range { field: "bytes", .. })
    ));
    let still = case(&["10Gbps"], 8, streams(0, 0)).run(&machine(&[]));
    assert!(still.unwrap_err().to_string().contains("processes is 0"));
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
    let twice = two_planes(2);
    assert!(multi_plane(&twice, &[gbps(10)]).is_err());
    assert!(multi_plane(&star(&[(gbps(10), Span::ZERO); 2]), &[]).is_err());
}

// Whole runs.

/// `hosts` hosts with a link of 10 Gbit/s to each of two switches; links 2h and 2h + 1 are host h's.
fn two_planes(hosts: usize) -> Fabric {
    let mut builder = FabricBuilder::new("two planes");
    let hosts: Vec<NodeId> = (0..hosts).map(|_| builder.host()).collect();
    let switches = [builder.switch(1), builder.switch(1)];
    for host in hosts {
        for switch in switches {
            builder.connect(host, switch, BitRate::from_gbps(10), Span::from_us(1));
        }
    }
    builder.finish().unwrap()
}

fn rails(adjust: impl Fn(&mut Rails)) -> Rails {
    let mut protocol = Config::new(1, JobKey::new([0; 16]), 0, 1, 1, Vec::new());
    protocol.segment = 900;
    protocol.heartbeat = Span::from_ms(1);
    protocol.give_up = Span::from_ms(20);
    protocol.patience = Span::from_us(100);
    protocol.lateness = Span::from_us(2);
    let mut rails = Rails {
        protocol,
        bus: Bus::default(),
        room: 0,
        around: Bytes(0),
        buffers: 4,
    };
    adjust(&mut rails);
    rails
}

/// Messages of all sizes between all pairs of hosts, from several ports, within a millisecond.
fn traffic(hosts: &[NodeId], seed: u64, count: u64) -> Vec<Message> {
    let mut dice = Dice(seed);
    let mut messages: Vec<Message> = (0..count)
        .map(|_| {
            let src = dice.below(hosts.len() as u64) as usize;
            let other = 1 + dice.below(hosts.len() as u64 - 1) as usize;
            let power = 1 + dice.below(17);
            let bytes = 1 + dice.below(1 << power);
            let start = Time(dice.below(1_000_000_000));
            let dst = hosts[(src + other) % hosts.len()];
            let class = dice.below(3) as u8;
            Message {
                class,
                ..message(start, hosts[src], dst, bytes)
            }
        })
        .collect();
    messages.sort_by_key(|message| message.start);
    messages
}

fn drive(lab: &Lab, config: &RunConfig, messages: &[Message]) -> (RunSummary, Log) {
    let names = ["a", "b", "c"].map(str::to_owned).to_vec();
    lab.drive(config, &mut FlowList::new(messages.to_vec(), names))
        .unwrap()
}

fn config(lab: &Lab, rails: Rails) -> RunConfig {
    RunConfig {
        rails: Some(Arc::new(rails)),
        ..lab.config("none")
    }
}

/// Every message comes once, whatever is chosen and cut; no byte appears or vanishes (`Lab::drive` looks), and a second run is
/// the same.
#[test]
fn all_messages_come_under_every_policy() {
    let lab = Lab::new(two_planes(4));
    let messages = traffic(lab.hosts(), 7, 300);
    let bytes: u64 = messages.iter().map(|message| message.size.0).sum();
    let policies = [
        Policy::Dynamic,
        Policy::Static,
        Policy::Unidirectional { send: 1 },
    ];
    for policy in policies {
        for segmentation in [Segmentation::WaterFill, Segmentation::Equal] {
            for room in [0, 2] {
                let rails = rails(|rails| {
                    (rails.protocol.policy, rails.room) = (policy, room);
                    rails.protocol.segmentation = segmentation;
                    rails.bus.read = (room > 0).then_some(BitRate::from_gbps(12));
                    rails.bus.shared = room > 0;
                });
                let config = config(&lab, rails);
                let (summary, log) = drive(&lab, &config, &messages);
                assert_eq!(summary.flows_finished, messages.len() as u64, "{policy:?}");
                assert_eq!(summary.payload_delivered, bytes);
                assert_eq!((summary.segments_resent, summary.drops), (0, 0));
                assert_eq!(drive(&lab, &config, &messages), (summary, log));
            }
        }
    }
}

/// One way: what is sent on the other host's rail is not data.
#[test]
fn unidirectional_hosts_send_on_their_half() {
    let lab = Lab::new(two_planes(2));
    let [low, high] = [lab.hosts()[0], lab.hosts()[1]];
    let plan = rails(|rails| rails.protocol.policy = Policy::Unidirectional { send: 1 });
    let messages = [(low, high), (high, low)].map(|(a, b)| message(Time(0), a, b, 1 << 20));
    let (_, log) = drive(&lab, &config(&lab, plan), &messages);
    let sent = |node: NodeId, port: u16| {
        let of = log
            .ports
            .iter()
            .find(|it| (it.node, it.port) == (node, port));
        of.unwrap().tx_bytes
    };
    assert!(sent(low, 1) > 1 << 20 && sent(low, 2) < 1 << 19);
    assert!(sent(high, 2) > 1 << 20 && sent(high, 1) < 1 << 19);
}

/// Switches that drop: what is lost comes again, by whatever rail.
#[test]
fn what_a_full_switch_drops_is_sent_again() {
    let lab = Lab::new(two_planes(4));
    let config = RunConfig {
        lossless: false,
        buffer: Bytes(20_000),
        ..config(&lab, rails(|_| {}))
    };
    let hosts = lab.hosts();
    let messages: Vec<Message> = hosts[1..]
        .iter()
        .map(|&host| message(Time(0), host, hosts[0], 1 << 20))
        .collect();
    let (summary, _) = drive(&lab, &config, &messages);
    assert_eq!(summary.flows_finished, 3);
    assert!(
        summary.drops > 0 && summary.segments_resent > 0,
        "{summary:?}"
    );
}

/// Each link of both ends, for ever or for a while, with and without room for segments that a dead card would hold.
#[test]
fn a_lost_rail_costs_no_message() {
    let lab = Lab::new(two_planes(2));
    let hosts = lab.hosts();
    let messages = [message(Time(0), hosts[0], hosts[1], 4 << 20); 2];
    for link in 0..4 {
        for up in [None, Some(Time(1_500_000_000))] {
            for room in [0, 2] {
                let (link, down) = (LinkId(link), Time(500_000_000));
                let config = RunConfig {
                    faults: vec![LinkFault { link, down, up }],
                    ..config(&lab, rails(|rails| rails.room = room))
                };
                let (summary, _) = drive(&lab, &config, &messages);
                assert_eq!(summary.flows_finished, 2, "{link:?} {up:?} {room}");
                assert_eq!(summary.payload_delivered, 8 << 20);
            }
        }
    }
}

/// No rail is left: the message is recorded as unfinished after the time set, and the run ends.
#[test]
fn without_any_rail_a_run_ends() {
    let lab = Lab::new(two_planes(2));
    let hosts = lab.hosts();
    let (down, up) = (Time(500_000_000), None);
    let faults = [0, 1].map(|link| LinkFault {
        link: LinkId(link),
        down,
        up,
    });
    let config = RunConfig {
        faults: faults.to_vec(),
        ..config(&lab, rails(|_| {}))
    };
    let late = message(Time(60_000_000_000), hosts[0], hosts[1], 8);
    let messages = [message(Time(0), hosts[0], hosts[1], 4 << 20), late];
    let (summary, log) = drive(&lab, &config, &messages);
    assert_eq!((summary.flows_started, summary.flows_finished), (2, 0));
    assert!(log.flows.iter().all(|flow| flow.fct.is_none()));
    assert!(summary.end_ps < 100_000_000_000, "{summary:?}");
}

#[test]
fn settings_that_contradict_themselves_are_refused() {
    let lab = Lab::new(two_planes(2));
    let hosts = lab.hosts();
    let run = |rails: Rails, class: u8| {
        let message = Message {
            class,
            ..message(Time(0), hosts[0], hosts[1], 8)
        };
        let mut flows = FlowList::new(vec![message], vec!["flow".to_owned()]);
        lab.drive(&config(&lab, rails), &mut flows).unwrap_err()
    };
    let unbuffered = run(rails(|rails| rails.buffers = 0), 0);
    assert!(
        matches!(unbuffered, SetupError::Rails { .. }),
        "{unbuffered}"
    );
    let port = run(rails(|_| {}), 64);
    assert!(port.to_string().contains("class 64"), "{port}");
    let hpcc = run(rails(|rails| rails.protocol.scheme = "hpcc".to_owned()), 0);
    assert!(hpcc.to_string().contains("telemetry"), "{hpcc}");
}
