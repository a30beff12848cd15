//! Messages to groups on trees made by hand: who gets them, how often, what is counted, what congestion does.

use std::{collections::VecDeque, sync::Arc};

use proptest::prelude::*;
use raddle_engine::{ForeignTime, Multicast, MulticastGroup, RunConfig, RunSummary, SetupError};
use raddle_fabric::{CnTn, Fabric};
use raddle_multicast::{Colour, Mgid, MulticastTables, TableMode, Tree, UpLink};
use raddle_units::{Bytes, LinkId, NodeId, PortId, Span, Time};
use raddle_workload::{FlowList, GroupId, Message};

use crate::common::{ACK, Draws, HEADERS, Lab, Log, MTU, SCHEMES, message, star, wire_bytes};

/// The tree of shortest ways from `members` to `root`, the lowest port where there are several.
pub(crate) fn tree_to(fabric: &Fabric, members: &[NodeId], root: NodeId, colour: u16) -> Tree {
    let mut towards: Vec<Option<PortId>> = vec![None; fabric.node_count()];
    let mut open = VecDeque::from([root]);
    while let Some(node) = open.pop_front() {
        for port in fabric.ports_of(node) {
            let peer = fabric.port(port.peer).node;
            if peer != root && towards[peer.index()].is_none() && (!fabric.is_host(node)) {
                towards[peer.index()] = Some(port.peer);
                open.push_back(peer);
            }
        }
    }
    let mut up = std::collections::BTreeSet::new();
    for &member in members {
        let mut node = member;
        while node != root {
            let port = towards[node.index()].unwrap();
            up.insert(UpLink { node, port });
            node = fabric.peer_node(port);
        }
    }
    // A stem above the last branch would carry packets to a dead end.
    let mut root = root;
    loop {
        let mut below = up.iter().filter(|link| fabric.peer_node(link.port) == root);
        match (below.next().copied(), below.next()) {
            (Some(only), None) if !fabric.is_host(only.node) => {
                up.remove(&only);
                root = only.node;
            }
            _ => break,
        }
    }
    Tree {
        colour: Colour(colour),
        copy: 0,
        root,
        groups: vec![Mgid(u64::from(colour))],
        up: up.into_iter().collect(),
    }
}

/// Groups on hand-made trees, each with a colour and a root of its own.
pub(crate) fn plan(fabric: &Fabric, groups: &[Vec<NodeId>], draws: &mut Draws) -> Multicast {
    let switches = fabric.switches();
    let (mut trees, mut list) = (Vec::new(), Vec::new());
    for (colour, members) in (0..).zip(groups) {
        let root = switches[draws.below(switches.len() as u64) as usize];
        trees.push(tree_to(fabric, members, root, colour));
        list.push(MulticastGroup {
            members: members.clone(),
            colour: Colour(colour),
            twice: false,
        });
    }
    Multicast {
        groups: list,
        tables: MulticastTables::of_trees(fabric, TableMode::PerPort, &trees),
        updates: Vec::new(),
        retransmit: true,
        combining: Vec::new(),
        foreign: ForeignTime::default(),
    }
}

/// 16 hosts below 24 switches, four levels.
pub(crate) fn small_cn_tn() -> Lab {
    Lab::new(CnTn::new(2, 2, 1, 2, 2).build().unwrap())
}

pub(crate) fn random_members(hosts: &[NodeId], draws: &mut Draws) -> Vec<NodeId> {
    loop {
        let members: Vec<NodeId> = hosts
            .iter()
            .copied()
            .filter(|_| draws.below(3) == 0)
            .collect();
        if members.len() >= 2 {
            return members;
        }
    }
}

pub(crate) fn to_group(start: Time, src: NodeId, group: usize, bytes: u64) -> Message {
    message(start, src, GroupId(group as u32), bytes)
}

/// Every message in full at every member of its group but the sender, exactly once; returns nothing that could be ignored.
pub(crate) fn check_deliveries(groups: &[MulticastGroup], messages: &[Message], log: &Log) {
    let mut sorted = messages.to_vec();
    sorted.sort_by_key(|message| message.start);
    let mut expected: Vec<(u64, NodeId)> = Vec::new();
    for (tag, sent) in (0..).zip(&sorted) {
        if let Some(group) = sent.dst.group() {
            let members = groups[group.0 as usize].members.iter();
            expected.extend(members.filter(|it| **it != sent.src).map(|&it| (tag, it)));
        }
    }
    let delivered = log.members.iter().filter(|it| it.delivered.is_some());
    let mut delivered: Vec<(u64, NodeId)> = delivered.map(|it| (it.tag, it.member)).collect();
    delivered.sort_unstable();
    expected.sort_unstable();
    assert_eq!(delivered, expected);
}

/// Random groups and messages (some to single hosts), several of which start at once.
fn traffic(lab: &Lab, seed: u64, messages: u64, largest: u64) -> (Multicast, Vec<Message>) {
    let mut draws = Draws(seed);
    let hosts = lab.hosts().to_vec();
    let groups: Vec<Vec<NodeId>> = (0..5).map(|_| random_members(&hosts, &mut draws)).collect();
    let plan = plan(&lab.network.fabric, &groups, &mut draws);
    let list = (0..messages)
        .map(|_| {
            let start = Time(draws.below(4) * 3_000_000);
            let size = 1 + draws.below(largest);
            if draws.below(4) == 0 {
                let src = draws.below(hosts.len() as u64) as usize;
                let dst = (src + 1 + draws.below(hosts.len() as u64 - 1) as usize) % hosts.len();
                return message(start, hosts[src], hosts[dst], size);
            }
            let group = draws.below(groups.len() as u64) as usize;
            let members = &groups[group];
            let src = members[draws.below(members.len() as u64) as usize];
            to_group(start, src, group, size)
        })
        .collect();
    (plan, list)
}

fn with(lab: &Lab, scheme: &str, plan: &Multicast) -> RunConfig {
    RunConfig {
        multicast: Some(Arc::new(plan.clone())),
        sample_interval: Span::from_us(5),
        ..lab.config(scheme)
    }
}

#[test]
fn every_member_gets_every_message_exactly_once() {
    let lab = small_cn_tn();
    for scheme in SCHEMES {
        for seed in 0..6 {
            let (plan, messages) = traffic(&lab, seed, 40, 30_000);
            let (summary, log) = lab.run(&with(&lab, scheme, &plan), &messages);
            check_deliveries(&plan.groups, &messages, &log);
            assert_eq!(summary.flows_finished, 40, "{scheme} {seed}");
            assert_eq!(
                (summary.drops, summary.dead_ends, summary.foreign_copies),
                (0, 0, 0)
            );
            // Nothing is left behind in a buffer: accounts close with the last copy.
            assert_eq!(log.samples.last().unwrap().buffered_bytes, 0);
            assert_eq!(summary.payload_in_flight, 0);
            assert!(
                log.flows
                    .iter()
                    .all(|flow| flow.fct.unwrap() >= flow.ideal_fct)
            );
        }
    }
}

/// Nothing is sent twice and nothing refused where nothing is lost: the copies that switches make are the members less one,
/// for every message.
#[test]
fn switches_copy_as_often_as_there_are_members() {
    let lab = small_cn_tn();
    let (plan, messages) = traffic(&lab, 11, 30, 20_000);
    let (summary, _) = lab.run(&with(&lab, "none", &plan), &messages);
    let copied: u64 = messages
        .iter()
        .filter_map(|sent| {
            let group = sent.dst.group()?;
            let receivers = plan.groups[group.0 as usize].members.len() as u64 - 1;
            Some((receivers - 1) * sent.size.0)
        })
        .sum();
    assert_eq!(summary.payload_copied, copied);
    assert_eq!(summary.payload_discarded, 0);
    let sent: u64 = messages.iter().map(|sent| sent.size.0).sum();
    assert_eq!(summary.payload_sent, sent);
}

/// One switch, n members, one packet of S bytes on links of rate C and delay d: all members have it after 2 (S/C + d), and
/// their n - 1 acknowledgements of A bytes, all there at once, leave the switch one after the other:
///
/// fct = 2 (S/C + d) + A/C + d + (n-1) A/C + d
#[test]
fn a_packet_to_a_star_takes_the_sum_of_its_parts() {
    for members in [2usize, 3, 9, 40] {
        let (rate, delay) = (raddle_units::BitRate::from_gbps(100), Span::from_us(1));
        let lab = Lab::new(star(&vec![(rate, delay); members]));
        let plan = plan(&lab.network.fabric, &[lab.hosts().to_vec()], &mut Draws(1));
        let sent = to_group(Time(7), lab.hosts()[members / 2], 0, MTU);
        let (summary, log) = lab.run(&with(&lab, "none", &plan), &[sent]);
        let time = |bytes| rate.transmission_time(Bytes(bytes));
        let there = time(wire_bytes(MTU, HEADERS)) * 2 + delay * 2;
        assert!(
            log.members
                .iter()
                .all(|it| it.delivered == Some(Time(7) + there))
        );
        let acks = members as u64 - 1;
        assert_eq!(
            log.flows[0].fct,
            Some(there + time(ACK) * (1 + acks) + delay * 2)
        );
        assert_eq!(log.flows[0].ideal_fct, there + time(ACK) * 2 + delay * 2);
        assert_eq!(summary.packet_hops, 1 + acks + 2 * acks);
    }
}

/// A group of all hosts, to which each of them sends `size` bytes at once.
fn incast(lab: &Lab, size: u64) -> (Multicast, Vec<Message>) {
    let hosts = lab.hosts().to_vec();
    let groups = std::slice::from_ref(&hosts);
    let plan = plan(&lab.network.fabric, groups, &mut Draws(5));
    let messages = hosts.iter().map(|&host| to_group(Time(0), host, 0, size));
    (plan, messages.collect())
}

/// Every member of the group of all hosts sends at once, through small buffers: ports are paused and nothing is dropped.
#[test]
fn pfc_holds_back_an_incast_of_groups_without_a_drop() {
    let lab = small_cn_tn();
    let (plan, messages) = incast(&lab, 60_000);
    for scheme in SCHEMES {
        let mut config = with(&lab, scheme, &plan);
        config.buffer = lab.smallest_buffer(&config);
        let (summary, log) = lab.run(&config, &messages);
        check_deliveries(&plan.groups, &messages, &log);
        assert_eq!(summary.drops, 0, "{scheme}");
        assert!(summary.pauses > 0, "{scheme}");
        assert_eq!(log.samples.last().unwrap().buffered_bytes, 0);
    }
}

/// Without PFC the same incast loses packets: they are sent again to the group, and members drop what they have.
#[test]
fn what_is_lost_is_sent_again_to_the_group() {
    let lab = small_cn_tn();
    let (plan, messages) = incast(&lab, 40_000);
    for scheme in ["none", "dctcp", "dcqcn", "hpcc", "swift"] {
        let config = RunConfig {
            lossless: false,
            buffer: Bytes(60_000),
            retransmission_timeout: Span::from_us(400),
            max_timeouts: 60,
            ..with(&lab, scheme, &plan)
        };
        let (summary, log) = lab.run(&config, &messages);
        check_deliveries(&plan.groups, &messages, &log);
        assert!(
            summary.drops > 0 && summary.nacks > 0,
            "{scheme}: {summary:?}"
        );
        assert_eq!(summary.members_missed, 0);
    }
}

/// A congested branch slows the sender down to what that branch can carry, for every scheme that has a window or a rate:
/// the group's message shares one host's link with an endless flow.
#[test]
fn the_slowest_member_rules() {
    let (rate, delay) = (raddle_units::BitRate::from_gbps(100), Span::from_us(1));
    let lab = Lab::new(star(&[(rate, delay); 6]));
    let hosts = lab.hosts();
    let plan = plan(&lab.network.fabric, &[hosts[..4].to_vec()], &mut Draws(1));
    let size = 3_000_000;
    let messages = [
        to_group(Time(0), hosts[0], 0, size),
        message(Time(0), hosts[4], hosts[3], size),
    ];
    for scheme in ["dctcp", "dcqcn", "hpcc", "pint", "swift", "timely"] {
        let (summary, log) = lab.run(&with(&lab, scheme, &plan), &messages);
        check_deliveries(&plan.groups, &messages, &log);
        assert_eq!(summary.drops, 0, "{scheme}");
        for flow in &log.flows {
            // Both have to pass one link: neither can be faster than alone, the later one not than both in turn.
            let ratio = flow.fct.unwrap().as_secs_f64() / flow.ideal_fct.as_secs_f64();
            assert!((1.2..4.5).contains(&ratio), "{scheme}: {ratio}");
        }
        let last = log.last_completion().0 as f64 / log.flows[0].ideal_fct.0 as f64;
        assert!((1.9..4.5).contains(&last), "{scheme}: {last}");
    }
}

/// Groups that share a tree hear each other; the packets are counted and dropped.
#[test]
fn merged_groups_hear_each_other() {
    let lab = small_cn_tn();
    let hosts = lab.hosts();
    let fabric = &lab.network.fabric;
    let (left, right) = (hosts[..3].to_vec(), hosts[2..7].to_vec());
    let tree = tree_to(fabric, &hosts[..7], fabric.switches()[0], 0);
    let group = |members| MulticastGroup {
        members,
        colour: Colour(0),
        twice: false,
    };
    let plan = Multicast {
        groups: vec![group(left), group(right)],
        tables: MulticastTables::of_trees(fabric, TableMode::PerPort, &[tree]),
        updates: Vec::new(),
        retransmit: true,
        combining: Vec::new(),
        foreign: ForeignTime::default(),
    };
    let messages = [
        to_group(Time(0), hosts[0], 0, 2500),
        to_group(Time(0), hosts[2], 1, 900),
    ];
    let (summary, log) = lab.run(&with(&lab, "none", &plan), &messages);
    check_deliveries(&plan.groups, &messages, &log);
    assert_eq!(summary.foreign_copies, 3 * 4 + 2);
}

/// With one table per switch (InfiniBand) the same trees carry the same deliveries.
#[test]
fn one_table_per_switch_delivers_the_same() {
    let lab = small_cn_tn();
    let (mut plan, messages) = traffic(&lab, 4, 20, 9_000);
    let fabric = &lab.network.fabric;
    let mut draws = Draws(4);
    let trees: Vec<Tree> = (0..)
        .zip(&plan.groups)
        .map(|(colour, group)| {
            let root = fabric.switches()[draws.below(fabric.switches().len() as u64) as usize];
            tree_to(fabric, &group.members, root, colour)
        })
        .collect();
    plan.tables = MulticastTables::of_trees(fabric, TableMode::PerSwitch, &trees);
    let (summary, log) = lab.run(&with(&lab, "hpcc", &plan), &messages);
    check_deliveries(&plan.groups, &messages, &log);
    assert_eq!(summary.foreign_copies, 0);
}

#[test]
fn the_same_inputs_give_the_same_records() {
    let lab = small_cn_tn();
    for scheme in SCHEMES {
        let (plan, messages) = traffic(&lab, 21, 40, 60_000);
        let config = RunConfig {
            record_acks: true,
            lossless: false,
            buffer: Bytes(60_000),
            retransmission_timeout: Span::from_us(300),
            ..with(&lab, scheme, &plan)
        };
        let first = lab.run(&config, &messages);
        assert_eq!(first, lab.run(&config, &messages), "{scheme}");
        assert!(first.0.drops > 0);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let lab = small_cn_tn();
    let hosts = lab.hosts();
    let good = plan(&lab.network.fabric, &[hosts[..4].to_vec()], &mut Draws(1));
    let drive = |plan: &Multicast, sent: Message| -> Result<(RunSummary, Log), SetupError> {
        let mut flows = FlowList::new(vec![sent], vec!["flow".to_owned()]);
        lab.drive(&with(&lab, "none", plan), &mut flows)
    };
    let fine = to_group(Time(0), hosts[0], 0, 100);
    assert!(drive(&good, fine).is_ok());
    for (sent, problem) in [
        (to_group(Time(0), hosts[0], 1, 100), "not among"),
        (to_group(Time(0), hosts[9], 0, 100), "not a member"),
    ] {
        let error = drive(&good, sent).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    for (members, problem) in [
        (vec![hosts[0]], "at least two"),
        (vec![hosts[1], hosts[0]], "ascend"),
        (vec![hosts[1], hosts[1]], "distinct"),
        (
            vec![hosts[1], lab.network.fabric.switches()[0]],
            "not a host",
        ),
        (vec![hosts[1], NodeId(1 << 20)], "not a host"),
    ] {
        let mut bad = good.clone();
        bad.groups[0].members = members;
        let error = drive(&bad, fine).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    // Tables with a loop: the packet would never end.
    let mut looping = good.clone();
    let fabric = &lab.network.fabric;
    for &switch in fabric.switches() {
        for port in fabric.ports_of(switch) {
            looping.tables.write(&raddle_multicast::TableWrite {
                switch,
                in_port: u8::try_from(port.number).ok(),
                colour: Colour(0),
                out_ports: (1..=fabric.ports_of(switch).len() as u8).collect(),
            });
        }
    }
    let error = drive(&looping, fine).unwrap_err().to_string();
    assert!(error.contains("loop"), "{error}");
    // Without groups a message to one has nowhere to go.
    let mut flows = FlowList::new(vec![fine], vec!["flow".to_owned()]);
    assert!(lab.drive(&lab.config("none"), &mut flows).is_err());
}

/// A sender whose only link is cut before it has sent anything, and whose messages are not sent again, gives up: the run
/// ends and every member counts as missed.
#[test]
fn a_sender_cut_off_from_the_start_gives_up() {
    let lab = small_cn_tn();
    let (mut plan, _) = traffic(&lab, 1, 0, 1);
    plan.retransmit = false;
    let members = &plan.groups[0].members;
    let messages = [to_group(Time(0), members[0], 0, 20_000)];
    let port = lab.network.fabric.first_port(members[0]);
    let links = lab.network.fabric.links();
    let cut = links
        .iter()
        .position(|link| link.ports.contains(&port))
        .unwrap();
    let mut config = with(&lab, "dctcp", &plan);
    config.faults = vec![raddle_engine::LinkFault {
        link: LinkId(cut as u32),
        down: Time(0),
        up: None,
    }];
    let (summary, _) = lab.run(&config, &messages);
    let receivers = members.len() as u64 - 1;
    assert_eq!(
        (summary.members_reached, summary.members_missed),
        (0, receivers)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Bytes, flows, members and drops add up whatever happens: small buffers, no PFC, links that fail and return.
    #[test]
    fn accounts_add_up(
        seed in 0u64..1 << 40,
        scheme in 0usize..SCHEMES.len(),
        lossless in any::<bool>(),
        retransmit in any::<bool>(),
        faults in prop::collection::vec((0u32..64, 0u64..60, 1u64..200), 0..4),
    ) {
        let lab = small_cn_tn();
        let (mut plan, messages) = traffic(&lab, seed, 25, 25_000);
        plan.retransmit = retransmit;
        let links = lab.network.fabric.links().len() as u32;
        let mut config = with(&lab, SCHEMES[scheme], &plan);
        config.lossless = lossless;
        config.buffer = if lossless { lab.smallest_buffer(&config) } else { Bytes(40_000) };
        config.retransmission_timeout = Span::from_us(200);
        config.faults = faults
            .iter()
            .map(|&(link, down, up)| raddle_engine::LinkFault {
                link: LinkId(link % links),
                down: Time(down * 1_000_000),
                up: (up < 150).then(|| Time((down + up) * 1_000_000)),
            })
            .collect();
        let (summary, log) = lab.run(&config, &messages);
        let receivers: u64 = messages
            .iter()
            .filter_map(|sent| Some(plan.groups[sent.dst.group()?.0 as usize].members.len() as u64 - 1))
            .sum();
        prop_assert_eq!(summary.members_reached + summary.members_missed, receivers);
        prop_assert_eq!(log.samples.last().unwrap().buffered_bytes, 0);
        if faults.is_empty() && (lossless || retransmit) {
            prop_assert!(lossless || summary.timeouts > 0 || summary.members_missed == 0);
        }
    }
}
