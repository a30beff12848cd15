//! Who sends what after whom.

use raddle_units::{NodeId, Span, Time};

use super::*;
use crate::{Destination, GroupId, Message};

fn spec(dims: [u32; 2], processes_per_terminal: u32, rounds: u32) -> Multicast {
    Multicast {
        dims: dims.to_vec(),
        random_groups: None,
        group_seed: 1,
        processes_per_terminal,
        operation: GridOperation::default(),
        combining: Combining::default(),
        overhead: Span::ZERO,
        noise: Span::ZERO,
        foreign_packet_time: Span::ZERO,
        foreign_packet_time_per_byte: Span::ZERO,
        size: Bytes(8),
        rounds,
        engine: MulticastEngineName::default(),
        colours: 32,
        fault_tolerant: false,
        start: Span::ZERO,
    }
}

/// Delivers everything after a time of its own per member; gives the messages in order of start.
fn drive(spec: &Multicast, hosts: u32) -> Vec<Message> {
    let hosts: Vec<NodeId> = (0..hosts).map(NodeId).collect();
    let groups = spec.groups(&hosts).unwrap();
    let mut run = spec.build(&hosts, 1).unwrap();
    let mut reductions = std::collections::BTreeMap::new();
    let (mut sent, mut events) = (Vec::new(), std::collections::BTreeSet::new());
    loop {
        while let Some(message) = run.pop() {
            if let Destination::Reduction(id) = message.dst {
                // The result is there a time after the last contribution.
                let members = &groups[id.0 as usize].members;
                assert!(members.contains(&message.src));
                let parts: &mut Vec<Message> = reductions.entry(id).or_default();
                assert!(parts.iter().all(|part| part.src != message.src));
                parts.push(message);
                sent.push(message);
                if parts.len() == members.len() {
                    let last = parts.iter().map(|part| part.start).max().unwrap();
                    events.extend(parts.drain(..).map(|part| {
                        let at = last + Span(900 + u64::from(part.src.0) * 13 % 5);
                        (at, 1, part.tag, part.src)
                    }));
                }
                continue;
            }
            if message.dst.group().is_none() {
                let at = message.start + Span(500 + u64::from(message.src.0) * 17 % 7);
                events.insert((at, 1, message.tag, message.src));
                sent.push(message);
                continue;
            }
            let group = (message.tag >> 32) as usize;
            assert_eq!(message.dst.group(), Some(GroupId(group as u32)));
            let members = &groups[group].members;
            assert!(members.contains(&message.src));
            let mut last = message.start;
            for &member in members.iter().filter(|it| **it != message.src) {
                let at = message.start + Span(1000 + u64::from(member.0) * 37 % 11);
                events.insert((at, 0, message.tag, member));
                last = last.max(at);
            }
            events.insert((last, 1, message.tag, message.src));
            sent.push(message);
        }
        let Some((now, all, tag, member)) = events.pop_first() else {
            break;
        };
        if all == 1 {
            run.on_delivered(now, tag);
        } else {
            run.on_member_delivered(now, tag, member);
        }
    }
    assert!(run.finished(), "{spec:?}");
    sent
}

#[test]
fn every_group_gets_one_message_per_round() {
    for (dims, per_host, hosts) in [
        ([4, 3], 1, 12),
        ([6, 4], 2, 12),
        ([3, 5], 4, 9),
        ([7, 1], 1, 8),
    ] {
        let spec = spec(dims, per_host, 5);
        let sent = drive(&spec, hosts);
        let nodes: Vec<NodeId> = (0..hosts).map(NodeId).collect();
        let groups = spec.groups(&nodes).unwrap();
        assert_eq!(sent.len(), groups.len() * 5, "{spec:?}");
        for group in 0..groups.len() as u64 {
            let rounds: Vec<u64> = sent
                .iter()
                .filter(|message| message.tag >> 32 == group)
                .map(|message| message.tag & 0xffff_ffff)
                .collect();
            assert_eq!(rounds, [0, 1, 2, 3, 4]);
        }
    }
}

/// A column's root sends only when it has the message of its row, a row's root only when it has that of its column.
#[test]
fn a_process_does_one_collective_after_the_other() {
    let spec = spec([4, 3], 1, 3);
    let sent = drive(&spec, 12);
    for message in sent
        .iter()
        .filter(|message| message.class == 1 && message.src != NodeId(0))
    {
        let row = sent
            .iter()
            .find(|it| it.class == 0 && it.src == NodeId(0) && it.tag as u32 == message.tag as u32);
        assert!(message.start > row.unwrap().start);
    }
}

#[test]
fn a_driver_without_members_comes_to_the_end() {
    let hosts: Vec<NodeId> = (0..12).map(NodeId).collect();
    let mut run = spec([4, 3], 1, 6).build(&hosts, 1).unwrap();
    let network = crate::IdealNetwork {
        rate: raddle_units::BitRate::from_gbps(100),
        latency: Span::from_us(1),
    };
    assert_eq!(
        crate::drive_ideal(&mut run, network, u64::MAX, |_, _| {}),
        6 * 7
    );
    assert!(run.finished());
}

/// No result leaves a root before the contributions of all other hosts of its line have come: hosts - 1 of them in every
/// round, also where processes share hosts and where a line lies on one host.
#[test]
fn a_reduction_waits_for_every_host() {
    for (dims, per_host, hosts) in [
        ([4, 3], 1, 12),
        ([6, 4], 2, 12),
        ([2, 3], 2, 3),
        ([6, 6], 4, 9),
    ] {
        let spec = Multicast {
            operation: GridOperation::Allreduce,
            overhead: Span(70),
            ..spec(dims, per_host, 4)
        };
        let nodes: Vec<NodeId> = (0..hosts).map(NodeId).collect();
        let groups = spec.groups(&nodes).unwrap();
        let sent = drive(&spec, hosts);
        let parts: usize = groups.iter().map(|group| group.members.len() - 1).sum();
        assert_eq!(sent.len(), 4 * (groups.len() + parts), "{dims:?}");
        let expected = spec.build(&nodes, 1).unwrap().expected_messages();
        assert_eq!(expected, Some(sent.len() as u64));
        for (index, group) in groups.iter().enumerate() {
            let line = &spec.lines()[group.line];
            let (direction, members) = (line.direction, &group.members);
            let root = u64::from(line.processes[0]);
            let root = nodes[(root / u64::from(per_host)) as usize];
            let result = |round: u64| {
                let tag = (index as u64) << 32 | round;
                sent.iter().find(|it| it.tag == tag).unwrap()
            };
            let class = 2 + direction as u8;
            for round in 0..4 {
                let own = |it: &&Message| {
                    it.class == class
                        && it.dst == Destination::Host(root)
                        && members.contains(&it.src)
                };
                let before = sent
                    .iter()
                    .filter(own)
                    .filter(|it| it.start < result(round).start);
                // Other lines of the direction may have the same hosts, so at least.
                assert!(before.count() >= (round as usize + 1) * (members.len() - 1));
            }
        }
    }
}

#[test]
fn groups_within_a_host_need_no_message() {
    // Rows of two processes on one host each: only the columns are groups.
    let spec = spec([2, 3], 2, 2);
    let hosts: Vec<NodeId> = (0..3).map(NodeId).collect();
    let groups = spec.groups(&hosts).unwrap();
    let lines = spec.lines();
    assert!(groups.iter().all(|group| lines[group.line].direction == 1) && groups.len() == 2);
    assert_eq!(drive(&spec, 3).len(), 4);
}

#[test]
fn bad_grids_are_refused() {
    let hosts: Vec<NodeId> = (0..4).map(NodeId).collect();
    for (spec, field) in [
        (spec([5, 1], 1, 1), "dims"),
        (spec([0, 3], 1, 1), "dims"),
        (spec([1, 1], 1, 1), "dims"),
        (spec([2, 2], 0, 1), "processes_per_terminal"),
        (spec([2, 2], 1, 0), "rounds"),
    ] {
        let error = spec.build(&hosts, 1).err().unwrap().to_string();
        assert!(error.contains(field), "{error}");
    }
}

/// Every host of a group contributes once in each round, and nobody is in the next collective before.
#[test]
fn contributions_that_are_combined_are_one_per_host_and_round() {
    for (dims, per_host, hosts) in [
        (vec![4, 3], 1, 12),
        (vec![6, 4], 2, 12),
        (vec![2, 3], 2, 3),
        (vec![3, 4, 2], 2, 12),
    ] {
        for noise in [Span::ZERO, Span(400)] {
            let spec = Multicast {
                dims: dims.clone(),
                operation: GridOperation::Barrier,
                combining: Combining::OnTree,
                noise,
                ..spec([1, 1], per_host, 4)
            };
            let nodes: Vec<NodeId> = (0..hosts).map(NodeId).collect();
            let members: usize = spec
                .groups(&nodes)
                .unwrap()
                .iter()
                .map(|group| group.members.len())
                .sum();
            let sent = drive(&spec, hosts);
            assert_eq!(sent.len(), 4 * members, "{dims:?}");
            let run = spec.build(&nodes, 1).unwrap();
            assert_eq!(run.expected_messages(), Some(4 * members as u64));
        }
    }
}

#[test]
fn a_process_is_in_one_line_of_each_direction() {
    for (dims, groups) in [
        (vec![5, 3], None),
        (vec![3, 4, 5], None),
        (vec![6, 10], Some(7)),
    ] {
        let spec = Multicast {
            dims: dims.clone(),
            random_groups: groups,
            ..spec([1, 1], 2, 1)
        };
        let mut seen = std::collections::BTreeSet::new();
        let lines = spec.lines();
        for line in &lines {
            assert!(line.processes.is_sorted_by(|a, b| a < b));
            for &process in &line.processes {
                assert!(seen.insert((line.direction, process)));
                // Processes of a host are in different layers of random groups.
                assert!(groups.is_none() || line.layer == process % 2);
            }
        }
        let processes: u32 = dims.iter().product();
        assert_eq!(seen.len(), spec.directions() * processes as usize);
        if groups.is_none() {
            let expected: u32 = dims.iter().map(|length| processes / length).sum();
            assert_eq!(lines.len(), expected as usize);
        }
    }
}

/// A seed gives the same noise again, and every round of process 0 has a start.
#[test]
fn rounds_begin_one_after_the_other() {
    let spec = Multicast {
        noise: Span(300),
        overhead: Span(50),
        ..spec([4, 3], 1, 6)
    };
    let hosts: Vec<NodeId> = (0..12).map(NodeId).collect();
    let starts = |seed| {
        let mut run = spec.build(&hosts, seed).unwrap();
        let network = crate::IdealNetwork {
            rate: raddle_units::BitRate::from_gbps(100),
            latency: Span::from_us(1),
        };
        crate::drive_ideal(&mut run, network, u64::MAX, |_, _| {});
        run.round_starts().to_vec()
    };
    let first = starts(1);
    assert_eq!(first.len(), 6);
    assert!(first.is_sorted_by(|a, b| a < b));
    assert_eq!((starts(1), starts(2) == first), (first.clone(), false));
    assert_eq!(first[0], Time::ZERO);
}
