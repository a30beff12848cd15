//! Recorded ways and series of ports against what ports counted.

use std::{collections::BTreeMap, sync::Arc};

use raddle_engine::{
    LinkFault, Offload, OffloadGroup, PortSeries, RunConfig, RunSummary, Sharing,
    record::{FlowRecord, WayEnd},
};
use raddle_fabric::{CnTn, KAryFatTree};
use raddle_unicast::PathChoice;
use raddle_units::{Bytes, LinkId, NodeId, PortId, Span, Time};
use raddle_workload::{GraphBuilder, GroupId, Message, OffloadId};

use crate::{
    common::{ACK, Draws, HEADERS, Lab, Log, MTU, RecordedWay, leaf_spine, message, wire_bytes},
    multicast::{plan, random_members, small_cn_tn, to_group},
    rail_runs::{config as on_rails, rails},
    rails::two_rails,
};

/// Each hop leads to the next, from the sender on.
fn check_chain(lab: &Lab, way: &RecordedWay) {
    let fabric = &lab.network.fabric;
    let mut at = way.src;
    for (hop, depth) in way.hops.iter().zip(0..) {
        assert_eq!((hop.node, hop.depth), (at, depth), "{way:?}");
        let port = &fabric.ports_of(hop.node)[usize::from(hop.port) - 1];
        at = fabric.port(port.peer).node;
        assert_eq!(hop.peer, at);
    }
    let ends = [WayEnd::Host(at), WayEnd::Root(at)];
    assert!(ends.contains(&way.dst), "{way:?}");
}

/// Where the way of a flow ends.
fn end_of(flow: &FlowRecord) -> WayEnd {
    let to_group = || WayEnd::Group(flow.dst.group().unwrap());
    flow.dst.host().map_or_else(to_group, WayEnd::Host)
}

/// Data that crossed each port by the recorded ways: packets and bytes with headers.
fn data_by_port(log: &Log) -> BTreeMap<(NodeId, u16), (u64, u64)> {
    let mut sums = BTreeMap::new();
    for way in &log.ways {
        let of = |flow: &&FlowRecord| {
            (flow.src, end_of(flow), Some(flow.sport)) == (way.src, way.dst, way.sport)
        };
        let size = log.flows.iter().find(of).unwrap().size.0;
        for hop in &way.hops {
            let sum = sums.entry((hop.node, hop.port)).or_insert((0, 0));
            sum.0 += size.div_ceil(MTU);
            sum.1 += wire_bytes(size, HEADERS);
        }
    }
    sums
}

/// What ports counted beside the data of recorded ways are whole acknowledgements: the ways are those of the packets.
fn check_counters(log: &Log) -> u64 {
    let data = data_by_port(log);
    let mut acks = 0;
    for port in &log.ports {
        let (packets, bytes) = data.get(&(port.node, port.port)).copied().unwrap_or((0, 0));
        let others = port.tx_packets - packets;
        assert_eq!(port.tx_bytes - bytes, others * ACK, "{port:?}");
        acks += others;
    }
    acks
}

fn random_flows(lab: &Lab, count: u64) -> Vec<Message> {
    let (mut draws, hosts) = (Draws(5), lab.hosts());
    let mut messages = Vec::new();
    while (messages.len() as u64) < count {
        let (a, b) = (
            draws.below(hosts.len() as u64),
            draws.below(hosts.len() as u64),
        );
        if a != b {
            let start = Time(draws.below(20_000_000));
            let size = 1 + draws.below(30_000);
            messages.push(message(start, hosts[a as usize], hosts[b as usize], size));
        }
    }
    messages
}

fn recording(lab: &Lab) -> RunConfig {
    RunConfig {
        record_paths: true,
        ..lab.config("none")
    }
}

#[test]
fn ways_are_those_that_packets_take() {
    let fabrics = [
        KAryFatTree::new(4).build().unwrap(),
        CnTn::new(2, 2, 1, 2, 1).build().unwrap(),
    ];
    for fabric in fabrics {
        let lab = Lab::new(fabric);
        for path_choice in [PathChoice::EcmpMurmur3, PathChoice::DModK] {
            let config = RunConfig {
                path_choice,
                ..recording(&lab)
            };
            let messages = random_flows(&lab, 120);
            let (summary, log) = lab.run(&config, &messages);
            assert_eq!((log.ways.len(), summary.pauses), (120, 0));
            for way in &log.ways {
                check_chain(&lab, way);
            }
            let hops: usize = log.ways.iter().map(|way| way.hops.len()).sum();
            assert!(hops > 300);
            // Acknowledgements cross as many links as the data.
            let packets: u64 = log
                .ways
                .iter()
                .map(|way| {
                    let flow = log.flows.iter().find(|flow| {
                        (flow.src, end_of(flow), Some(flow.sport)) == (way.src, way.dst, way.sport)
                    });
                    let flow = flow.unwrap();
                    assert_eq!(flow.start, way.since);
                    flow.size.0.div_ceil(MTU) * way.hops.len() as u64
                })
                .sum();
            assert_eq!(check_counters(&log), packets);
        }
    }
}

/// What is recorded does not change what happens.
#[test]
fn recording_changes_nothing_else() {
    let lab = Lab::new(KAryFatTree::new(4).build().unwrap());
    let messages = random_flows(&lab, 60);
    let plain = RunConfig {
        sample_interval: Span::from_us(2),
        ..lab.config("dcqcn")
    };
    let (summary, mut log) = lab.run(&plain, &messages);
    for port_series in [
        PortSeries::Ports(vec![PortId(0), PortId(40)]),
        PortSeries::Busiest(3),
    ] {
        let config = RunConfig {
            record_paths: true,
            port_series,
            ..plain.clone()
        };
        let mut recorded = lab.run(&config, &messages);
        assert!(!recorded.1.ways.is_empty());
        assert!(
            recorded
                .1
                .samples
                .iter()
                .any(|sample| !sample.ports.is_empty())
        );
        recorded.1.ways.clear();
        for sample in &mut recorded.1.samples {
            sample.ports.clear();
        }
        assert_eq!((&recorded.0, &mut recorded.1), (&summary, &mut log));
    }
}

/// A tree's ports send every packet of the message once.
#[test]
fn the_way_to_a_group_is_its_tree() {
    let lab = small_cn_tn();
    let mut draws = Draws(3);
    let groups = [(); 4].map(|()| random_members(lab.hosts(), &mut draws));
    let plan = plan(&lab.network.fabric, &groups, &mut draws);
    let messages: Vec<Message> = groups
        .iter()
        .zip(0..)
        .map(|(members, group)| {
            to_group(Time(group * 1_000_000), members[1], group as usize, 9_500)
        })
        .collect();
    let config = RunConfig {
        multicast: Some(Arc::new(plan)),
        ..recording(&lab)
    };
    let (_, log) = lab.run(&config, &messages);
    check_counters(&log);
    for (way, (group, members)) in log.ways.iter().zip((0..).zip(&groups)) {
        assert_eq!(way.dst, WayEnd::Group(GroupId(group)));
        assert_eq!((way.hops[0].node, way.hops[0].depth), (members[1], 0));
        assert!(way.hops.is_sorted_by_key(|hop| hop.depth));
        let mut reached: Vec<NodeId> = way.hops.iter().map(|hop| hop.peer).collect();
        reached.retain(|&node| lab.network.fabric.is_host(node));
        reached.sort_unstable();
        let mut others = members.clone();
        others.retain(|&member| member != members[1]);
        assert_eq!(reached, others);
    }
}

#[test]
fn a_flow_that_routes_move_has_a_second_way() {
    let lab = leaf_spine();
    let fabric = &lab.network.fabric;
    let hosts = lab.hosts();
    let flows = [
        message(Time(0), hosts[0], hosts[2], 4_000_000),
        message(Time(0), hosts[1], hosts[0], 4_000_000),
    ];
    let mut moved = 0;
    for link in (0..fabric.links().len() as u32).map(LinkId) {
        let ends = fabric.link(link).ports;
        if ends
            .iter()
            .any(|&port| fabric.is_host(fabric.port(port).node))
        {
            continue;
        }
        let config = RunConfig {
            faults: vec![LinkFault {
                link,
                down: Time(20_000_000),
                up: None,
            }],
            retransmission_timeout: Span::from_us(200),
            ..recording(&lab)
        };
        let (_, log) = lab.run(&config, &flows);
        let crosses = |way: &RecordedWay| {
            way.hops.iter().any(|hop| {
                let first = fabric.first_port(hop.node).0;
                ends.contains(&PortId(first + u32::from(hop.port) - 1))
            })
        };
        let ways: Vec<&RecordedWay> = log.ways.iter().filter(|way| way.src == hosts[0]).collect();
        // The one below a single leaf stays where it is.
        assert_eq!(log.ways.len(), ways.len() + 1);
        assert_eq!(ways.len(), if crosses(ways[0]) { 2 } else { 1 });
        if let [_, new] = ways[..] {
            moved += 1;
            check_chain(&lab, new);
            assert!(!crosses(new));
            assert_eq!(new.since, Time(20_000_000 + config.reroute_delay.0));
        }
    }
    assert_eq!(moved, 2);
}

/// Every rail of a pair has a way, told once, and nothing else carries data.
#[test]
fn rails_have_a_way_each() {
    let lab = Lab::new(two_rails(3, false));
    let hosts = lab.hosts();
    let messages = [(); 3].map(|()| message(Time(0), hosts[0], hosts[2], 500_000));
    let config = RunConfig {
        record_paths: true,
        ..on_rails(&lab, rails(|_| {}))
    };
    let (_, log) = lab.run(&config, &messages);
    assert_eq!(log.ways.len(), 2);
    for (way, rail) in log.ways.iter().zip(0..) {
        check_chain(&lab, way);
        assert_eq!(
            (way.rail, way.sport, way.hops[0].port),
            (rail, None, u16::from(rail) + 1)
        );
    }
    for port in &log.ports {
        let hop = |hop: &raddle_engine::record::Hop| (hop.node, hop.port) == (port.node, port.port);
        let on_a_way = log.ways.iter().any(|way| way.hops.iter().any(hop));
        assert_eq!(on_a_way, port.tx_bytes > 500_000, "{port:?}");
    }
}

#[test]
fn members_of_a_reduction_have_a_way_to_its_root() {
    let lab = Lab::new(KAryFatTree::new(4).build().unwrap());
    let fabric = &lab.network.fabric;
    let members = lab.hosts()[..6].to_vec();
    let root = *fabric.switches().last().unwrap();
    let group = OffloadGroup {
        members: members.clone(),
        root,
    };
    let config = RunConfig {
        offload: Some(Arc::new(Offload::new(vec![group], Span::from_ns(70)))),
        ..recording(&lab)
    };
    let mut graph = GraphBuilder::new();
    for (member, &host) in (0..).zip(&members) {
        graph.message(host, OffloadId(member), Bytes(8));
    }
    let mut graph = graph.finish().unwrap();
    let (summary, log) = lab.drive(&config, &mut graph).unwrap();
    assert_eq!((summary.reductions, log.ways.len()), (6, 6));
    for (way, &member) in log.ways.iter().zip(&members) {
        check_chain(&lab, way);
        assert_eq!(
            (way.src, way.dst, way.hops.len()),
            (member, WayEnd::Root(root), 3)
        );
        for hop in &way.hops {
            let sent = log
                .ports
                .iter()
                .find(|port| (port.node, port.port) == (hop.node, hop.port));
            assert!(sent.unwrap().tx_packets > 0);
        }
    }
}

/// The samples of a port add up to its counters, and the longest queue was no longer than the counter says.
#[test]
fn series_add_up_to_counters() {
    let lab = Lab::new(KAryFatTree::new(4).build().unwrap());
    let (sink, senders) = lab.hosts().split_last().unwrap();
    let messages: Vec<Message> = senders
        .iter()
        .map(|&source| message(Time(0), source, *sink, 100_000))
        .collect();
    let run = |port_series| -> (RunSummary, Log) {
        let mut config = RunConfig {
            port_series,
            sample_interval: Span::from_ns(700),
            ..lab.config("dcqcn")
        };
        config.buffer = lab.smallest_buffer(&config);
        config.buffer.0 += 600_000;
        config.buffers.usual.ingress.sharing = Sharing::Dynamic(1.0);
        lab.run(&config, &messages)
    };
    let all: Vec<PortId> = (0..lab.network.fabric.port_count() as u32)
        .map(PortId)
        .collect();
    let (summary, log) = run(PortSeries::Ports(all.clone()));
    assert!(summary.pauses > 0 && summary.ecn_marks > 0, "{summary:?}");
    let last = log.samples.last().unwrap();
    assert!(
        log.samples
            .iter()
            .all(|sample| sample.ports.len() == all.len())
    );
    for (index, port) in log.ports.iter().enumerate() {
        let series: Vec<_> = log
            .samples
            .iter()
            .map(|sample| sample.ports[index])
            .collect();
        assert_eq!((series[0].node, series[0].port), (port.node, port.port));
        assert_eq!(
            series.iter().map(|at| at.tx_bytes).sum::<u64>(),
            port.tx_bytes
        );
        assert_eq!(
            series.iter().map(|at| at.ecn_marks).sum::<u64>(),
            port.ecn_marks
        );
        let longest = series.iter().map(|at| at.queue_bytes).max().unwrap();
        assert!(longest <= port.max_queue_bytes);
        let paused = series.iter().filter(|at| at.paused).count() as u64;
        assert!(paused * 700_000 <= port.pause.0 + 2 * 700_000 * log.pauses.len() as u64);
    }
    for sample in &log.samples {
        let held: u64 = sample.ports.iter().map(|port| port.ingress_bytes).sum();
        assert_eq!(held, sample.buffered_bytes);
        let longest = sample.ports.iter().map(|port| port.queue_bytes).max();
        assert_eq!(longest.unwrap(), sample.max_port_bytes);
        let paused = sample.ports.iter().filter(|port| port.paused).count() as u64;
        assert_eq!(paused, sample.paused_ports);
    }
    assert_eq!(last.buffered_bytes, 0);
    // With `Busiest` samples have the same ports of switches, but for those where nothing happened.
    let (_, some) = run(PortSeries::Busiest(1));
    for (some, all) in some.samples.iter().zip(&log.samples) {
        let mut expected = all.ports.clone();
        expected.retain(|port| {
            let idle = (port.queue_bytes, port.ingress_bytes, port.tx_bytes) == (0, 0, 0);
            !lab.network.fabric.is_host(port.node) && (!idle || port.paused)
        });
        assert_eq!(some.ports, expected);
    }
}
