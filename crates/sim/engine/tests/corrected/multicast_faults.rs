//! The engines' trees under traffic: deliveries equal the members, and what a cut link costs each engine.

use std::{collections::BTreeMap, sync::Arc};

use raddle_engine::{LinkFault, Multicast, MulticastUpdate, RunConfig};
use raddle_fabric::{CnTn, Fabric};
use raddle_multicast::{
    Broadcast, CMr4lms, CMr4lmsSettings, Group, Mgid, Mr4lms, Mr4lmsSettings, MulticastEngine,
    MulticastTables, OpenSmLike, RootChoice, RootRule, TableMode,
};
use raddle_units::{LinkId, NodeId, Span, Time};
use raddle_workload::{GroupId, Message};

use crate::{
    common::{Draws, Lab, Log, MTU, SCHEMES},
    multicast::{check_deliveries, random_members, to_group},
};

const COLOURS: u32 = 16;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Which {
    Fixed,
    Dynamic,
    FixedTwice,
    DynamicTwice,
    Broadcast,
    Mr4lms,
    OpenSm,
}

const ALL: [Which; 7] = [
    Which::Fixed,
    Which::Dynamic,
    Which::FixedTwice,
    Which::DynamicTwice,
    Which::Broadcast,
    Which::Mr4lms,
    Which::OpenSm,
];

fn engine(which: Which, fabric: &Arc<Fabric>) -> Box<dyn MulticastEngine + '_> {
    let mode = TableMode::PerPort;
    let (roots, fault_tolerant) = match which {
        Which::Fixed => (RootChoice::Fixed, false),
        Which::Dynamic => (RootChoice::Dynamic, false),
        Which::FixedTwice => (RootChoice::Fixed, true),
        Which::DynamicTwice => (RootChoice::Dynamic, true),
        Which::Broadcast => return Box::new(Broadcast::new(fabric, mode, COLOURS).unwrap()),
        Which::Mr4lms => {
            let settings = Mr4lmsSettings::default();
            return Box::new(Mr4lms::new(fabric, mode, COLOURS, settings).unwrap());
        }
        Which::OpenSm => {
            return Box::new(OpenSmLike::new(fabric, mode, COLOURS, RootRule::default()).unwrap());
        }
    };
    let settings = CMr4lmsSettings {
        colours: COLOURS,
        roots,
        fault_tolerant,
    };
    Box::new(CMr4lms::new(fabric.clone(), settings).unwrap())
}

/// 16 hosts in four CNs.
fn lab() -> Lab {
    Lab::new(CnTn::new(2, 2, 1, 2, 2).build().unwrap())
}

fn groups(lab: &Lab, seed: u64) -> Vec<Group> {
    let (hosts, mut draws) = (lab.hosts(), Draws(seed));
    let mut lists: Vec<Vec<NodeId>> = (0..6).map(|_| random_members(hosts, &mut draws)).collect();
    // All hosts; the hosts of one L0 switch; those of one CN.
    lists.extend([hosts.to_vec(), hosts[..2].to_vec(), hosts[4..8].to_vec()]);
    (0..)
        .zip(lists)
        .map(|(mgid, members)| Group::new(Mgid(mgid), members))
        .collect()
}

fn routed(engine: &mut dyn MulticastEngine, groups: &[Group], fabric: &Fabric) -> Multicast {
    let changes = engine.route(groups).unwrap();
    let mut tables = MulticastTables::new(fabric, engine.table_mode());
    tables.apply(&changes.branches);
    Multicast::new(groups, engine, tables, fabric)
}

/// Every group hears two messages of many packets from different members.
fn messages(groups: &[Group]) -> Vec<Message> {
    let mut list = Vec::new();
    for (place, group) in groups.iter().enumerate() {
        for turn in 0..2 {
            let src = group.members[(place + turn * 3) % group.members.len()];
            list.push(to_group(Time(turn as u64 * 2_000_000), src, place, 12_345));
        }
    }
    list
}

fn config(lab: &Lab, scheme: &str, plan: Multicast, faults: Vec<LinkFault>) -> RunConfig {
    RunConfig {
        multicast: Some(Arc::new(plan)),
        faults,
        retransmission_timeout: Span::from_us(200),
        max_timeouts: 3,
        sample_interval: Span::from_us(20),
        ..lab.config(scheme)
    }
}

fn cut(link: LinkId, down: Time) -> Vec<LinkFault> {
    let up = None;
    vec![LinkFault { link, down, up }]
}

pub(crate) fn switch_links(fabric: &Fabric) -> Vec<LinkId> {
    let between = |link: &LinkId| {
        let ports = fabric.link(*link).ports;
        ports
            .iter()
            .all(|&port| !fabric.is_host(fabric.port(port).node))
    };
    let all = (0..fabric.links().len() as u32).map(LinkId);
    all.filter(between).collect()
}

fn missed(log: &Log) -> Vec<(u64, NodeId)> {
    let missed = log.members.iter().filter(|it| it.delivered.is_none());
    missed.map(|it| (it.tag, it.member)).collect()
}

/// Deliveries are the members, each once, for every engine; who else is on a group's tree hears the packets in vain, once
/// per packet and tree.
#[test]
fn deliveries_equal_the_trees_members() {
    let lab = lab();
    let fabric = &lab.network.fabric;
    for which in ALL {
        for seed in 0..4 {
            let groups = groups(&lab, seed);
            let mut engine = engine(which, fabric);
            let plan = routed(engine.as_mut(), &groups, fabric);
            let twice = plan.groups.iter().filter(|group| group.twice).count();
            let expected = match which {
                Which::FixedTwice | Which::DynamicTwice => groups.len() - 1,
                _ => 0,
            };
            // A group inside one L0 switch has no second tree, unless it was merged with one that has.
            assert!(
                twice == expected || twice == expected + usize::from(expected > 0),
                "{which:?}"
            );
            let messages = messages(&groups);
            let trees = engine.trees();
            let scheme = SCHEMES[seed as usize % SCHEMES.len()];
            let config = config(&lab, scheme, plan.clone(), Vec::new());
            let (summary, log) = lab.run(&config, &messages);
            check_deliveries(&plan.groups, &messages, &log);
            assert_eq!(
                (summary.drops, summary.dead_ends, summary.members_missed),
                (0, 0, 0)
            );
            let (mut foreign, mut second) = (0, 0);
            for sent in &messages {
                let group = &groups[sent.dst.group().unwrap().0 as usize];
                let l0_of = |host| fabric.peer_node(fabric.first_port(host));
                let packets = sent.size.0.div_ceil(MTU);
                let carrying = trees.iter().filter(|it| it.groups.contains(&group.mgid));
                for tree in carrying {
                    // The trees of a pair part at the sender's L0 switch: hosts there hear one copy.
                    let hosts = tree.hosts(fabric).filter(|&host| {
                        host != sent.src && (tree.copy == 0 || l0_of(host) != l0_of(sent.src))
                    });
                    for host in hosts {
                        if !group.members.contains(&host) {
                            foreign += packets;
                        } else if tree.copy == 1 {
                            second += packets;
                        }
                    }
                }
            }
            // Some come when the message is over.
            let unwanted = summary.foreign_copies + summary.second_copies + summary.late_copies;
            assert_eq!(unwanted, foreign + second, "{which:?} {seed}");
            assert!(summary.foreign_copies <= foreign && summary.second_copies <= second);
            assert_eq!(summary.second_copies > 0, expected > 0, "{which:?}");
            assert_eq!(log.samples.last().unwrap().buffered_bytes, 0);
        }
    }
}

/// Each link between switches fails in turn in the middle of the traffic, and nothing is sent again: two trees lose
/// nothing, one tree does. (How much is printed: `cargo test -p raddle-engine --test corrected cut_between -- --nocapture`.)
#[test]
#[expect(clippy::print_stdout, reason = "what each engine loses is the result")]
fn a_cut_between_switches_costs_fault_tolerant_trees_nothing() {
    let lab = lab();
    let fabric = &lab.network.fabric;
    let groups = groups(&lab, 7);
    let messages = messages(&groups);
    // Every member but the sender is to get each message.
    let expected: usize = messages
        .iter()
        .map(|sent| groups[sent.dst.group().unwrap().0 as usize].members.len() - 1)
        .sum();
    let mut lost: BTreeMap<Which, (usize, usize)> = BTreeMap::new();
    for which in ALL {
        let mut engine = engine(which, fabric);
        let mut plan = routed(engine.as_mut(), &groups, fabric);
        plan.retransmit = false;
        let (mut cuts, mut drops) = (0, 0);
        for link in switch_links(fabric) {
            for (scheme, at) in [("none", 5_500_000), ("hpcc", 2_700_000), ("dctcp", 0)] {
                let config = config(&lab, scheme, plan.clone(), cut(link, Time(at)));
                let (summary, log) = lab.run(&config, &messages);
                let missing = missed(&log).len();
                assert_eq!(log.members.len(), expected);
                let (all, worst) = lost.entry(which).or_default();
                *all += missing;
                *worst = (*worst).max(missing);
                cuts += 1;
                drops += summary.drops;
                if matches!(which, Which::FixedTwice | Which::DynamicTwice) {
                    check_deliveries(&plan.groups, &messages, &log);
                    assert_eq!(missing, 0, "{which:?}, {scheme}, {link} cut");
                }
                assert_eq!(log.samples.last().unwrap().buffered_bytes, 0);
            }
        }
        assert!(drops > 0, "{which:?}: the cuts have to hit something");
        let (all, worst) = lost[&which];
        println!(
            "{which:?}: {all} of {cuts} x {expected} deliveries lost, at most {worst} by one cut"
        );
    }
    for which in [
        Which::Fixed,
        Which::Dynamic,
        Which::Broadcast,
        Which::Mr4lms,
        Which::OpenSm,
    ] {
        assert!(lost[&which].0 > 0, "{which:?} has one tree for each group");
    }
}

/// The same with retransmission: what was cut off from a single tree is given up member by member, the rest arrives; two
/// trees still deliver everything, although acknowledgements are lost.
#[test]
fn retransmission_does_not_deliver_twice() {
    let lab = lab();
    let fabric = &lab.network.fabric;
    let groups = groups(&lab, 3);
    let messages = messages(&groups);
    for which in [Which::FixedTwice, Which::DynamicTwice, Which::Broadcast] {
        let mut engine = engine(which, fabric);
        let plan = routed(engine.as_mut(), &groups, fabric);
        for (turn, link) in switch_links(fabric).into_iter().enumerate() {
            let scheme = SCHEMES[turn % SCHEMES.len()];
            let config = config(&lab, scheme, plan.clone(), cut(link, Time(4_000_000)));
            let (summary, log) = lab.run(&config, &messages);
            if which != Which::Broadcast {
                check_deliveries(&plan.groups, &messages, &log);
                assert_eq!(summary.members_missed, 0, "{which:?}, {scheme}, {link} cut");
            }
        }
    }
}

/// Each terminal link fails before the first packet: exactly its host misses its messages, and the run says so; all others
/// have theirs, long messages included, with retransmission and without.
#[test]
fn a_cut_terminal_link_loses_exactly_its_host() {
    let lab = lab();
    let fabric = &lab.network.fabric;
    let groups = groups(&lab, 9);
    for which in ALL {
        let mut engine = engine(which, fabric);
        let mut plan = routed(engine.as_mut(), &groups, fabric);
        for (turn, &host) in lab.hosts().iter().enumerate() {
            plan.retransmit = turn % 2 == 0;
            let link = fabric.port(fabric.first_port(host)).link;
            // The cut host sends nothing itself.
            let mut sent = messages(&groups);
            sent.retain(|message| message.src != host);
            sent.iter_mut()
                .step_by(3)
                .for_each(|message| message.size.0 = 150_000);
            let scheme = ["none", "hpcc", "dctcp", "swift"][turn % 4];
            let config = config(&lab, scheme, plan.clone(), cut(link, Time(0)));
            let (summary, log) = lab.run(&config, &sent);
            let mut ordered = sent.clone();
            ordered.sort_by_key(|message| message.start);
            let expected: Vec<(u64, NodeId)> = (0..)
                .zip(&ordered)
                .filter(|(_, message)| {
                    let group = message.dst.group().unwrap().0 as usize;
                    groups[group].members.contains(&host)
                })
                .map(|(tag, _)| (tag, host))
                .collect();
            let mut missing = missed(&log);
            missing.sort_unstable();
            assert_eq!(missing, expected, "{which:?}, {scheme}, {host}");
            assert_eq!(summary.members_missed, expected.len() as u64);
            // The records of the messages say it too.
            let unfinished = log.flows.iter().filter(|flow| flow.fct.is_none()).count();
            assert_eq!(unfinished, expected.len());
        }
    }
}

/// The engine writes other tables after a cut, the switches take them over a little later, and senders send again: nobody
/// misses anything, with one tree either.
#[test]
fn tables_that_follow_a_cut_bring_everything() {
    let lab = lab();
    let fabric = &lab.network.fabric;
    let groups = groups(&lab, 5);
    let messages = messages(&groups);
    for which in [
        Which::Fixed,
        Which::Dynamic,
        Which::Broadcast,
        Which::Mr4lms,
        Which::OpenSm,
    ] {
        for link in switch_links(fabric) {
            let mut engine = engine(which, fabric);
            let mut plan = routed(engine.as_mut(), &groups, fabric);
            let changes = engine.fail(link).unwrap();
            if !engine.cut_off().is_empty() {
                continue;
            }
            plan.updates = vec![MulticastUpdate {
                at: Time(60_000_000),
                writes: changes.writes(engine.table_mode()).collect(),
                colours: (0..)
                    .zip(&groups)
                    .map(|(place, group)| (GroupId(place), engine.colour_of(group.mgid).unwrap()))
                    .collect(),
            }];
            let config = config(&lab, "dctcp", plan.clone(), cut(link, Time(3_000_000)));
            let (summary, log) = lab.run(&config, &messages);
            check_deliveries(&plan.groups, &messages, &log);
            assert_eq!(summary.members_missed, 0, "{which:?}, {link} cut");
        }
    }
}
