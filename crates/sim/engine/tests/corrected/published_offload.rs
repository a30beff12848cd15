//! The published protocol's switches and leaders in simulated time, held to times on paper.

use std::sync::Arc;

use raddle_engine::{
    LinkFault, Offload, OffloadGroup, OffloadProtocol, RunConfig, SetupError,
    collective::{Allreduce, Spoken, Way},
};
use raddle_offload::published::Transport;
use raddle_units::{LinkId, NodeId, Span, Time};
use raddle_wire::compat::RcLayout;
use raddle_workload::Workload;

use crate::{
    common::Lab,
    offload::{COMPUTE, DELAY, fabric, machine, rounds},
};

const TRANSPORTS: [Transport; 2] = [Transport::Ud, Transport::Rc(RcLayout::Code)];

/// Two floats. UD: Ethernet 14, IPv4 20, UDP 8, BTH 12, DETH 8, UCX 8, tag 8, 8 elements for head and body 32, ICRC 4, frame
/// check sequence 4. RC: no DETH, UCX 1, 11 elements for padding, head and body 44, 3 to a multiple of four.
const PACKET_BYTES: u64 = 118;

fn config(lab: &Lab, members: &[NodeId], root: NodeId, transport: Transport) -> RunConfig {
    let group = OffloadGroup {
        members: members.to_vec(),
        root,
    };
    RunConfig {
        offload: Some(Arc::new(Offload {
            protocol: OffloadProtocol::Published(transport),
            ..Offload::new(vec![group], COMPUTE)
        })),
        ..lab.config("none")
    }
}

/// One leaf: a link up, the unit takes n packets one after the other, a link down. Two tiers: the leaf's n, then the spine's m;
/// a leaf handles one packet on the way down, and lets all that it holds go at once, each to its own host.
#[test]
fn a_round_takes_its_links_and_its_packets_in_the_unit() {
    let on_wire = |gbps: u64| Span(PACKET_BYTES * 8_000 / gbps) + DELAY;
    for (leaves, hosts_per_leaf) in [(1, 4), (1, 9), (3, 3), (4, 4), (2, 5)] {
        let lab = Lab::new(fabric(leaves, hosts_per_leaf));
        let hosts = lab.hosts().to_vec();
        let root = NodeId(hosts.len() as u32 + if leaves == 1 { 0 } else { leaves });
        let n = u64::from(hosts_per_leaf);
        let mut one = on_wire(25) * 2 + COMPUTE * n;
        if leaves > 1 {
            one = one + on_wire(100) * 2 + COMPUTE * (u64::from(leaves) + 1);
        }
        for transport in TRANSPORTS {
            let config = config(&lab, &hosts, root, transport);
            for count in [1, 3, 300] {
                let mut graph = rounds(&hosts, count, 8);
                let (summary, _) = lab.drive(&config, &mut graph).unwrap();
                assert!(graph.finished());
                let done = u64::from(count) * hosts.len() as u64;
                assert_eq!((summary.reductions, summary.wrong_reductions), (done, 0));
                assert_eq!(summary.drops, 0);
                let expected = one * u64::from(count);
                assert_eq!(
                    Span(summary.end_ps),
                    expected,
                    "{leaves} x {n}, {transport:?}"
                );
            }
        }
    }
}

/// Units that take all packets at once: one time for each switch on the way, however many hosts there are.
#[test]
fn units_side_by_side_take_one_time_per_switch() {
    let on_wire = |gbps: u64| Span(PACKET_BYTES * 8_000 / gbps) + DELAY;
    for (leaves, hosts_per_leaf) in [(3, 3), (4, 4), (2, 5)] {
        let lab = Lab::new(fabric(leaves, hosts_per_leaf));
        let hosts = lab.hosts().to_vec();
        let base = config(
            &lab,
            &hosts,
            NodeId(hosts.len() as u32 + leaves),
            Transport::Ud,
        );
        for (units, packets) in [(2, hosts_per_leaf.div_ceil(2) + leaves.div_ceil(2)), (9, 2)] {
            let mut offload = Offload::clone(base.offload.as_ref().unwrap());
            offload.units = units;
            let config = RunConfig {
                offload: Some(Arc::new(offload)),
                ..base.clone()
            };
            let (summary, _) = lab.drive(&config, &mut rounds(&hosts, 1, 8)).unwrap();
            let one = on_wire(25) * 2 + on_wire(100) * 2 + COMPUTE * u64::from(packets + 1);
            assert_eq!(
                Span(summary.end_ps),
                one,
                "{leaves} x {hosts_per_leaf}, {units}"
            );
        }
    }
}

/// Every length that one packet carries, and two leaders on each host, which have rings of their own.
#[test]
fn every_sum_is_right_at_any_length() {
    let lab = Lab::new(fabric(3, 3));
    let hosts = lab.hosts().to_vec();
    let twice: Vec<NodeId> = hosts.iter().flat_map(|&host| [host, host]).collect();
    for members in [&hosts, &twice] {
        for bytes in [1, 4, 7, 64, 100, 255, 256] {
            for transport in TRANSPORTS {
                let config = config(&lab, members, NodeId(9 + 3), transport);
                let (summary, _) = lab.drive(&config, &mut rounds(members, 2, bytes)).unwrap();
                let all = 2 * members.len() as u64;
                assert_eq!((summary.reductions, summary.wrong_reductions), (all, 0));
            }
        }
    }
}

/// The protocol sends nothing again: a cut link ends the run in an error, not in a wrong sum, wherever it is cut.
#[test]
fn what_a_cut_link_loses_ends_the_run() {
    let lab = Lab::new(fabric(3, 3));
    let hosts = lab.hosts().to_vec();
    let mut ended = 0;
    for link in 0..lab.network.fabric.links().len() as u32 {
        for at in [100, 800, 1500] {
            let fault = LinkFault {
                link: LinkId(link),
                down: Time(Span::from_ns(at).0),
                up: None,
            };
            let config = RunConfig {
                faults: vec![fault],
                ..config(&lab, &hosts, NodeId(9 + 3), Transport::Ud)
            };
            match lab.drive(&config, &mut rounds(&hosts, 3, 8)) {
                Ok((summary, _)) => {
                    assert_eq!((summary.reductions, summary.wrong_reductions), (27, 0));
                }
                Err(error) => {
                    assert!(error.to_string().contains("waited one second"), "{error}");
                    ended += 1;
                }
            }
        }
    }
    assert!(ended > 0);
}

#[test]
fn groups_that_the_protocol_cannot_have_are_refused() {
    let lab = Lab::new(fabric(2, 2));
    let hosts = lab.hosts().to_vec();
    let [a, b, c, d] = hosts[..] else {
        panic!("four hosts")
    };
    for (members, root, words) in [
        (vec![a, a, b], 6, "as many members on each host"),
        (vec![a, b, a, b], 6, "as many members on each host"),
        (vec![a, c, b, d], 6, "equally many hosts below"),
        (vec![a, b, c], 6, "equally many hosts below"),
        (vec![a, c], 6, "two hosts or more below"),
        (vec![a, b, c, d], 4, "above all leaf switches"),
    ] {
        let config = config(&lab, &members, NodeId(root), Transport::Ud);
        let error = lab.drive(&config, &mut rounds(&members, 1, 8)).unwrap_err();
        assert!(matches!(error, SetupError::Offload { .. }));
        assert!(error.to_string().contains(words), "{members:?}: {error}");
    }
    let config = config(&lab, &hosts, NodeId(6), Transport::Ud);
    let error = lab.drive(&config, &mut rounds(&hosts, 1, 257)).unwrap_err();
    assert!(
        error.to_string().contains("cannot carry so many"),
        "{error}"
    );
}

/// Packets of both protocols differ by a few bytes on the wire, and by nothing else that takes time.
#[test]
fn both_protocols_take_the_same_steps() {
    let cell = Allreduce {
        hosts: 4,
        hosts_per_leaf: 2,
        ranks_per_host: 16,
        bytes: 8,
        way: Way::Node,
    };
    let time = |protocol| {
        let machine = raddle_engine::collective::Machine {
            protocol,
            ..machine(COMPUTE)
        };
        cell.run(&machine).unwrap().max_us
    };
    // Ours has 110 bytes in each of two links of 25 and two of 100 Gbit/s.
    let longer_us = 8.0 * 8.0 * (2.0 / 25.0 + 2.0 / 100.0) / 1e3;
    for published in [Spoken::PublishedUd, Spoken::PublishedRc] {
        let more = time(published) - time(Spoken::Native);
        assert!((more - longer_us).abs() < 1e-9, "{more} {longer_us}");
    }
}
