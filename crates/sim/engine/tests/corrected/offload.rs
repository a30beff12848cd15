//! In-network reductions: the core's switches and members in simulated time, held to times on paper.

use std::sync::Arc;

use raddle_engine::{
    LinkFault, Offload, OffloadGroup, RunConfig, SetupError,
    collective::{Allreduce, Machine, Spoken, Way},
};
use raddle_fabric::{Fabric, LeafSpine};
use raddle_units::{BitRate, Bytes, LinkId, NodeId, Span, Time};
use raddle_workload::{
    GraphBuilder, MessageGraph, OffloadId, Workload,
    collective::{Binding, HostCosts, LeaderTree},
};

use crate::common::Lab;

pub(crate) const DELAY: Span = Span::from_ns(300);
pub(crate) const COMPUTE: Span = Span::from_ns(70);
/// Ethernet 14, IPv4 20, UDP 8, our header 56, a double, frame check sequence 4.
const PACKET_BYTES: u64 = 14 + 20 + 8 + 56 + 8 + 4;

pub(crate) fn fabric(leaves: u32, hosts_per_leaf: u32) -> Fabric {
    LeafSpine {
        leaves,
        spines: 2,
        hosts_per_leaf,
        links_per_spine: 1,
        host_rate: BitRate::from_gbps(25),
        fabric_rate: BitRate::from_gbps(100),
        delay: DELAY,
        radix: None,
    }
    .build()
    .unwrap()
}

/// Rounds of all members at once, each followed by the member's next.
pub(crate) fn rounds(hosts: &[NodeId], count: u32, bytes: u64) -> MessageGraph {
    let mut graph = GraphBuilder::new();
    for (member, &host) in (0..).zip(hosts) {
        let mut last = None;
        for _ in 0..count {
            let round = graph.message(host, OffloadId(member), Bytes(bytes));
            if let Some(last) = last {
                graph.after(round, last);
            }
            last = Some(round);
        }
    }
    graph.finish().unwrap()
}

fn config(lab: &Lab, members: &[NodeId], root: NodeId) -> RunConfig {
    let group = OffloadGroup {
        members: members.to_vec(),
        root,
    };
    RunConfig {
        offload: Some(Arc::new(Offload::new(vec![group], COMPUTE))),
        ..lab.config("none")
    }
}

/// One leaf: a link up, the unit takes n packets one after the other, a link down.
/// Two tiers: the leaf's n, then the spine's m; a leaf handles one packet on the way down.
#[test]
fn a_round_takes_its_links_and_its_packets_in_the_unit() {
    let on_wire = |gbps: u64| Span(PACKET_BYTES * 8_000 / gbps) + DELAY;
    for (leaves, hosts_per_leaf) in [(1, 4), (1, 9), (3, 3), (4, 4), (2, 5)] {
        let lab = Lab::new(fabric(leaves, hosts_per_leaf));
        let hosts = lab.hosts().to_vec();
        let root = NodeId(hosts.len() as u32 + if leaves == 1 { 0 } else { leaves });
        let config = config(&lab, &hosts, root);
        let n = u64::from(hosts_per_leaf);
        let mut one = on_wire(25) * 2 + COMPUTE * n;
        if leaves > 1 {
            one = one + on_wire(100) * 2 + COMPUTE * (u64::from(leaves) + 1);
        }
        for count in [1, 3] {
            let mut graph = rounds(&hosts, count, 8);
            let (summary, _) = lab.drive(&config, &mut graph).unwrap();
            assert!(graph.finished());
            let done = u64::from(count) * hosts.len() as u64;
            assert_eq!((summary.reductions, summary.wrong_reductions), (done, 0));
            assert_eq!(summary.drops, 0);
            assert_eq!(
                Span(summary.end_ps),
                one * u64::from(count),
                "{leaves} x {n}"
            );
        }
    }
}

/// Long operands travel in segments, any length, and every sum is right.
#[test]
fn every_sum_is_right_at_any_length() {
    let lab = Lab::new(fabric(3, 3));
    let hosts = lab.hosts().to_vec();
    let config = config(&lab, &hosts, NodeId(9 + 3));
    for bytes in [1, 4, 7, 256, 1024, 1025, 4096, 100_000] {
        let mut graph = rounds(&hosts, 2, bytes);
        let (summary, _) = lab.drive(&config, &mut graph).unwrap();
        assert_eq!(
            (summary.reductions, summary.wrong_reductions),
            (18, 0),
            "{bytes}"
        );
    }
}

/// A link that is cut in the middle loses packets; members send again, and the sums are right.
#[test]
fn what_a_cut_link_loses_is_sent_again() {
    let lab = Lab::new(fabric(3, 3));
    let hosts = lab.hosts().to_vec();
    let mut dropped = 0;
    for link in 0..lab.network.fabric.links().len() as u32 {
        for at in [100, 800, 1500, 3000] {
            let down = Time(Span::from_ns(at).0);
            let fault = LinkFault {
                link: LinkId(link),
                down,
                up: Some(down + Span::from_us(20)),
            };
            let config = RunConfig {
                faults: vec![fault],
                ..config(&lab, &hosts, NodeId(9 + 3))
            };
            let mut graph = rounds(&hosts, 3, 8);
            let (summary, _) = lab.drive(&config, &mut graph).unwrap();
            assert_eq!(
                (summary.reductions, summary.wrong_reductions),
                (27, 0),
                "{fault:?}"
            );
            dropped += summary.drops;
        }
    }
    assert!(dropped > 0);
}

#[test]
fn groups_that_cannot_be_are_refused() {
    let lab = Lab::new(fabric(2, 2));
    let hosts = lab.hosts().to_vec();
    for (members, root, words) in [
        (&hosts[..], hosts[0], "not a switch"),
        (&hosts[..1], NodeId(4), "at least two"),
        (&[hosts[0], NodeId(5)], NodeId(6), "not a host"),
    ] {
        let config = config(&lab, members, root);
        let error = lab.drive(&config, &mut rounds(&hosts, 1, 8)).unwrap_err();
        assert!(matches!(error, SetupError::Offload { .. }));
        assert!(error.to_string().contains(words), "{error}");
    }
    let config = config(&lab, &hosts[..2], NodeId(4));
    let error = lab.drive(&config, &mut rounds(&hosts, 1, 8)).unwrap_err();
    assert!(
        error.to_string().contains("in none of the run's groups"),
        "{error}"
    );
}

/// A switch that stays cut off ends the run with an error instead of for ever.
#[test]
fn a_round_that_cannot_end_is_an_error() {
    let lab = Lab::new(fabric(1, 3));
    let hosts = lab.hosts().to_vec();
    let fault = LinkFault {
        link: LinkId(1),
        down: Time::ZERO,
        up: None,
    };
    let config = RunConfig {
        faults: vec![fault],
        ..config(&lab, &hosts, NodeId(3))
    };
    let error = lab.drive(&config, &mut rounds(&hosts, 1, 8)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("waited one second for its result"),
        "{error}"
    );
}

pub(crate) fn machine(compute: Span) -> Machine {
    Machine {
        sockets: 2,
        host_rate: BitRate::from_gbps(25),
        fabric_rate: BitRate::from_gbps(100),
        spines: 2,
        delay: DELAY,
        costs: HostCosts {
            send_overhead: Span::from_ns(400),
            receive_overhead: Span::from_ns(500),
            copy_per_byte: Span(1_000),
            local_overhead: Span::from_ns(110),
            local_copy_per_byte: Span(100),
            socket_latency: Span::from_ns(130),
            cross_latency: Span::from_ns(290),
            contention_per_rank: Span::ZERO,
            envelope: Bytes(32),
        },
        nic_gap: Span::ZERO,
        nic_gap_per_byte: Span::ZERO,
        compute,
        units: 1,
        protocol: Spoken::Native,
        binding: Binding::Even,
        dies: None,
        tree: LeaderTree::Text,
        after_barrier: false,
    }
}

/// 4 hosts of 16 ranks below 2 leaves, a leader each: four levels of the binomial reduction, the round, and the way down the
/// binary tree. Ranks 0 to 7 are on one socket, 8 to 15 on the other.
#[test]
fn a_reduction_of_ranks_and_switches_takes_the_time_of_its_steps() {
    let cell = |way| Allreduce {
        hosts: 4,
        hosts_per_leaf: 2,
        ranks_per_host: 16,
        bytes: 8,
        way,
    };
    let ns = |span: Span| span.0 as f64 / 1e6;
    let local = Span::from_ns(110) + Span(100) * 8;
    let step = local * 2 + Span::from_ns(130);
    let cross = local * 2 + Span::from_ns(290);
    let on_wire = |gbps: u64| Span(PACKET_BYTES * 8_000 / gbps) + DELAY;
    let overheads = Span::from_ns(900) + Span(16_000);
    // In a leaf two packets up and one down, in the spine two.
    let network = on_wire(25) * 2 + on_wire(100) * 2 + COMPUTE * 5;
    // The last to know is place 15, below 7, 3 and 1 of the tree: the first children of each, in the order of sending.
    let down = step * 3 + cross;
    let node = step * 3 + cross + overheads + network + down;
    let time = cell(Way::Node).run(&machine(COMPUTE)).unwrap();
    assert!(
        (time.max_us - ns(node)).abs() < 1e-9,
        "{time:?} {}",
        ns(node)
    );
    assert!(time.mean_us < time.max_us);
    // The switches' unit is on the way five times.
    let idle = cell(Way::Node).run(&machine(Span::ZERO)).unwrap();
    assert!((time.max_us - idle.max_us - ns(COMPUTE * 5)).abs() < 1e-9);
    // Two leaders per host: three levels within a socket, none across; twice the packets at the leaves.
    let socket = cell(Way::Socket).run(&machine(Span::ZERO)).unwrap();
    assert!(
        socket.max_us < idle.max_us - ns(Span::from_ns(290)),
        "{socket:?} {idle:?}"
    );
}
