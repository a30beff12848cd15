//! Reductions of groups on their trees against closed forms, and what packets of other groups cost a host.

use std::{collections::BTreeMap, sync::Arc};

use raddle_engine::{
    CombiningTree, ForeignTime, LinkFault, Multicast, MulticastGroup, RunConfig, RunSummary,
};
use raddle_fabric::{CnTn, Fabric};
use raddle_multicast::{
    CMr4lms, CMr4lmsSettings, Colour, Group, Mgid, MulticastEngine, MulticastTables, RootChoice,
    TableMode, Tree,
};
use raddle_units::{BitRate, Bytes, NodeId, Span, Time};
use raddle_workload::{Destination, Message, ReductionId, Workload};

use crate::{
    common::{Draws, HEADERS, Lab, MTU, message, star, wire_bytes},
    multicast::{small_cn_tn, to_group, tree_to},
};

const NONE: &str = "none";

/// Contributions of members, round after round: each member's next one starts when it has the result.
#[derive(Default)]
pub(crate) struct Reductions {
    waiting: Vec<Message>,
    rounds: u64,
    /// When each member had the result, by group, member and round.
    had: BTreeMap<(Destination, NodeId, u64), Time>,
    sent: BTreeMap<u64, (Message, u64)>,
    expected: usize,
    classes: Vec<String>,
    /// What it was cut into.
    parts: Vec<Self>,
}

impl Reductions {
    /// `first`: the first round's contributions.
    pub(crate) fn new(first: Vec<Message>, rounds: u64) -> Self {
        let mut made = Self {
            expected: first.len() * rounds as usize,
            rounds,
            classes: vec!["part".to_owned()],
            ..Self::default()
        };
        for sent in first {
            made.add(sent, 0);
        }
        made
    }

    fn add(&mut self, mut sent: Message, round: u64) {
        // A host's own count.
        let before = self.sent.values().filter(|(it, _)| it.src == sent.src);
        sent.tag = u64::from(sent.src.0) << 32 | before.count() as u64;
        self.sent.insert(sent.tag, (sent, round));
        self.waiting.push(sent);
        self.waiting.sort_by_key(|it| (it.start, it.tag));
    }

    /// When each member had the result, of all parts.
    fn had(&self) -> BTreeMap<(Destination, NodeId, u64), Time> {
        let parts = self.parts.iter().flat_map(|part| part.had.clone());
        self.had.clone().into_iter().chain(parts).collect()
    }

    fn times(&self, round: u64) -> Vec<Time> {
        let had = self.had();
        let of_round = had.iter().filter(|(key, _)| key.2 == round);
        of_round.map(|(_, &time)| time).collect()
    }
}

impl Workload for Reductions {
    fn classes(&self) -> &[String] {
        &self.classes
    }
    fn next_start(&self) -> Option<Time> {
        self.waiting.first().map(|it| it.start)
    }
    fn pop(&mut self) -> Option<Message> {
        (!self.waiting.is_empty()).then(|| self.waiting.remove(0))
    }
    fn on_delivered(&mut self, now: Time, tag: u64) {
        let (sent, round) = self.sent[&tag];
        if !matches!(sent.dst, Destination::Reduction(_)) {
            return;
        }
        let before = self.had.insert((sent.dst, sent.src, round), now);
        assert_eq!(before, None, "a result comes once");
        if round + 1 < self.rounds {
            self.add(Message { start: now, ..sent }, round + 1);
        }
    }
    fn has_dependencies(&self) -> bool {
        true
    }
    fn is_divisible(&self) -> bool {
        true
    }
    fn split(
        &mut self,
        parts: usize,
        part_of: &dyn Fn(NodeId) -> usize,
    ) -> Option<Vec<Box<dyn Workload + '_>>> {
        let of_part = |part: usize| -> Vec<Message> {
            let waiting = self.waiting.iter();
            let own = waiting.filter(|sent| part_of(sent.src) == part);
            own.copied().collect()
        };
        let made = (0..parts).map(|part| Self::new(of_part(part), self.rounds));
        self.parts = made.collect();
        let parts = self.parts.iter_mut();
        Some(parts.map(|part| Box::new(part) as Box<dyn Workload + '_>).collect())
    }
    fn finished(&self) -> bool {
        let parts = self.parts.iter().map(|part| part.had.len());
        self.had.len() + parts.sum::<usize>() == self.expected
    }
}

fn part(start: Time, src: NodeId, group: usize, bytes: u64) -> Message {
    message(start, src, ReductionId(group as u32), bytes)
}

pub(crate) fn parts(groups: &[MulticastGroup], bytes: u64) -> Vec<Message> {
    let of_group = |(place, group): (usize, &MulticastGroup)| -> Vec<Message> {
        let members = group.members.iter();
        members.map(|&it| part(Time(0), it, place, bytes)).collect()
    };
    groups.iter().enumerate().flat_map(of_group).collect()
}

/// Groups that share one tree, to `root`, and its colour.
pub(crate) fn shared(fabric: &Fabric, groups: &[Vec<NodeId>], root: NodeId) -> Multicast {
    let mut all: Vec<NodeId> = groups.concat();
    all.sort_unstable();
    all.dedup();
    let tree = tree_to(fabric, &all, root, 0);
    let combining =
        |members: &Vec<NodeId>| vec![CombiningTree::of(&tree, members, fabric).unwrap()];
    Multicast {
        groups: groups
            .iter()
            .map(|members| MulticastGroup {
                members: members.clone(),
                colour: Colour(0),
                twice: false,
            })
            .collect(),
        combining: groups.iter().map(combining).collect(),
        tables: MulticastTables::of_trees(fabric, TableMode::PerPort, &[tree]),
        updates: Vec::new(),
        retransmit: true,
        foreign: ForeignTime::default(),
    }
}

fn with(lab: &Lab, plan: &Multicast) -> RunConfig {
    RunConfig {
        multicast: Some(Arc::new(plan.clone())),
        sample_interval: Span::from_us(20),
        ..lab.config(NONE)
    }
}

fn drive(
    lab: &Lab,
    plan: &Multicast,
    first: Vec<Message>,
    rounds: u64,
) -> (RunSummary, Reductions) {
    let mut workload = Reductions::new(first, rounds);
    let (summary, _) = lab.drive(&with(lab, plan), &mut workload).unwrap();
    (summary, workload)
}

const DELAY: Span = Span::from_us(1);

fn star_of(hosts: usize) -> (Lab, NodeId) {
    let lab = Lab::new(star(&vec![(BitRate::from_gbps(100), DELAY); hosts]));
    let switch = lab.network.fabric.switches()[0];
    (lab, switch)
}

/// A packet over one link of 100 Gbit/s.
fn hop(bytes: u64) -> Span {
    BitRate::from_gbps(100).transmission_time(Bytes(wire_bytes(bytes, HEADERS))) + DELAY
}

/// One switch: up and down, whatever the number of members; a round begins when the one before has ended. The last to come
/// rules.
#[test]
fn a_reduction_in_one_switch_takes_one_link_up_and_one_down() {
    for members in [2, 3, 9, 40] {
        let (lab, switch) = star_of(members);
        let hosts = lab.hosts().to_vec();
        let plan = shared(&lab.network.fabric, std::slice::from_ref(&hosts), switch);
        for bytes in [1, 8, MTU] {
            let (summary, done) = drive(&lab, &plan, parts(&plan.groups, bytes), 5);
            for round in 0..5 {
                let expected = Time(0) + hop(bytes) * 2 * (round + 1);
                assert_eq!(done.times(round), vec![expected; members]);
            }
            assert_eq!(summary.reductions, 5 * members as u64);
            assert_eq!(summary.packet_hops, 5 * 2 * members as u64);
            assert!(done.finished());
        }
        let mut late = parts(&plan.groups, 8);
        late[members / 2].start = Time(123_456_789);
        let (_, done) = drive(&lab, &plan, late, 1);
        assert_eq!(done.times(0), vec![Time(123_456_789) + hop(8) * 2; members]);
    }
}

/// The fabric of four levels: as many links up as down, to the lowest switch above all members.
#[test]
fn a_reduction_takes_the_links_to_where_all_have_met_and_back() {
    let lab = small_cn_tn();
    let (fabric, hosts) = (&lab.network.fabric, lab.hosts().to_vec());
    let link = fabric.links()[0];
    let hop = link.rate.transmission_time(Bytes(wire_bytes(8, HEADERS))) + link.delay;
    // 2 hosts below an L0 switch, 4 in a CN, 8 below an L2 switch, 16 in all.
    for (members, levels) in [
        (vec![hosts[0], hosts[1]], 1),
        (vec![hosts[0], hosts[3]], 2),
        (hosts[..4].to_vec(), 2),
        (vec![hosts[1], hosts[6]], 3),
        (vec![hosts[2], hosts[15]], 4),
        (hosts.clone(), 4),
    ] {
        let plan = routed(&lab, &[members], false);
        let (summary, done) = drive(&lab, &plan, parts(&plan.groups, 8), 1);
        let count = plan.groups[0].members.len();
        assert_eq!(done.times(0), vec![Time(0) + hop * 2 * levels; count]);
        assert_eq!((summary.drops, summary.dead_ends), (0, 0));
    }
}

/// C-MR4LMS's trees of groups.
fn routed(lab: &Lab, members: &[Vec<NodeId>], fault_tolerant: bool) -> Multicast {
    let fabric = &lab.network.fabric;
    let settings = CMr4lmsSettings {
        colours: 16,
        roots: RootChoice::Fixed,
        fault_tolerant,
    };
    let mut engine = CMr4lms::new(fabric.clone(), settings).unwrap();
    let groups: Vec<Group> = (0..)
        .zip(members)
        .map(|(mgid, members)| Group::new(Mgid(mgid), members.clone()))
        .collect();
    let changes = engine.route(&groups).unwrap();
    let mut tables = MulticastTables::new(fabric, engine.table_mode());
    tables.apply(&changes.branches);
    Multicast::new(&groups, &engine, tables, fabric)
}

fn random_groups(hosts: &[NodeId], seed: u64) -> Vec<Vec<NodeId>> {
    let mut draws = Draws(seed);
    (0..8)
        .map(|_| crate::multicast::random_members(hosts, &mut draws))
        .collect()
}

/// Many groups at once, merged ones among them: every member has every result once, packets come in several segments, and
/// with two trees each result comes twice.
#[test]
fn every_member_has_every_result_once() {
    let lab = small_cn_tn();
    let mut foreign = 0;
    for seed in 0..8 {
        for twice in [false, true] {
            let plan = routed(&lab, &random_groups(lab.hosts(), seed), twice);
            for bytes in [8, 3 * MTU + 5] {
                let (summary, done) = drive(&lab, &plan, parts(&plan.groups, bytes), 6);
                assert_eq!(done.had().len(), done.expected, "{seed}");
                assert_eq!(summary.reductions, done.expected as u64);
                assert_eq!((summary.drops, summary.dead_ends), (0, 0));
                let ways = plan.groups.iter().zip(&plan.combining);
                let again: u64 = ways
                    .map(|(group, ways)| (group.members.len() * (ways.len() - 1)) as u64)
                    .sum();
                assert_eq!(again > 0, twice);
                assert_eq!(
                    summary.second_copies,
                    6 * again * bytes.div_ceil(MTU),
                    "{seed}"
                );
                foreign += summary.foreign_copies;
            }
        }
    }
    assert!(foreign > 0, "some groups were merged");
}

/// Each link between switches fails in the middle: with two trees every round goes on to its end, with one some do not.
#[test]
fn two_trees_bring_every_result_past_a_cut() {
    let lab = Lab::new(CnTn::new(2, 2, 1, 2, 2).build().unwrap());
    let fabric = &lab.network.fabric;
    let mut stopped = 0;
    for twice in [false, true] {
        let plan = routed(&lab, &random_groups(lab.hosts(), 3), twice);
        for link in crate::multicast_faults::switch_links(fabric) {
            let (down, up) = (Time(20_000_000), None);
            let config = RunConfig {
                faults: vec![LinkFault { link, down, up }],
                ..with(&lab, &plan)
            };
            let mut workload = Reductions::new(parts(&plan.groups, 8), 8);
            lab.drive(&config, &mut workload).unwrap();
            if twice {
                assert!(workload.finished(), "{link} cut");
            } else {
                stopped += u32::from(!workload.finished());
            }
        }
    }
    assert!(stopped > 0);
}

/// `groups` pairs of hosts share a tree with hosts 0 and 1, whose own packet comes after one of each of them.
///
/// All packets leave hosts at 0 but that of hosts 0 and 1, which leaves in time to be the last at the switch. The others'
/// results have reached the two by 2 t + (n - 1) tx, with tx the time of a packet on a link and t = tx + delay.
fn behind(groups: usize, foreign: ForeignTime, reduce: bool) -> (Vec<Time>, u64) {
    let (lab, switch) = star_of(2 + 2 * groups);
    let hosts = lab.hosts().to_vec();
    let pairs: Vec<Vec<NodeId>> = hosts.chunks(2).map(<[NodeId]>::to_vec).collect();
    let mut plan = shared(&lab.network.fabric, &pairs, switch);
    plan.foreign = foreign;
    let mut first = parts(&plan.groups, 8);
    for own in &mut first[..2] {
        own.start = Time(1);
    }
    if reduce {
        let (summary, done) = drive(&lab, &plan, first, 1);
        let of_own =
            |key: &(Destination, NodeId, u64)| key.0 == Destination::Reduction(ReductionId(0));
        let had = done.had();
        let own = had.iter().filter(|(key, _)| of_own(key));
        return (own.map(|(_, &time)| time).collect(), summary.foreign_copies);
    }
    let mut sent: Vec<Message> = (1..=groups)
        .map(|place| to_group(Time(0), pairs[place][0], place, 8))
        .collect();
    sent.push(to_group(Time(1), hosts[0], 0, 8));
    let (summary, log) = lab.run(&with(&lab, &plan), &sent);
    let own = log.members.iter().filter(|it| it.member == hosts[1]);
    (
        own.filter_map(|it| it.delivered).collect(),
        summary.foreign_copies + summary.late_copies,
    )
}

/// A packet of another group takes its host's time, which later packets of the host's own groups wait for: exactly that.
#[test]
fn foreign_packets_cost_what_they_should() {
    let bytes = wire_bytes(8, HEADERS);
    let tx = hop(8).0 - DELAY.0;
    for groups in [1, 2, 7] {
        let n = groups as u64;
        for (packet, byte) in [
            (0, 0),
            (100, 0),
            (tx - 1, 0),
            (40_000, 0),
            (0, 700),
            (30_000, 250),
        ] {
            let foreign = ForeignTime {
                packet: Span(packet),
                byte: Span(byte),
            };
            for reduce in [true, false] {
                let (times, copies) = behind(groups, foreign, reduce);
                assert_eq!(times.len(), if reduce { 2 } else { 1 });
                // The own packet comes n packets after the first, and each of these takes the host `cost`.
                let cost = packet + byte * bytes;
                let first = 2 * hop(8).0;
                let (arrives, free) = (first + n * tx, first + (n * cost).max((n - 1) * tx + cost));
                for time in times {
                    assert_eq!(
                        time.0,
                        arrives.max(free),
                        "{groups} {packet} {byte} {reduce}"
                    );
                }
                assert_eq!(copies, (n + 1) * 2 * n);
            }
        }
    }
}

/// A cost where no tree is shared, and trees for reductions that nobody starts, change no record.
#[test]
fn what_is_not_used_changes_nothing() {
    let lab = small_cn_tn();
    let hosts = lab.hosts();
    let groups = [
        hosts[..5].to_vec(),
        hosts[5..12].to_vec(),
        hosts[12..].to_vec(),
    ];
    let plan = routed(&lab, &groups, false);
    let sent: Vec<Message> = (0..12)
        .map(|at| {
            to_group(
                Time(at * 400_000),
                groups[at as usize % 3][1],
                at as usize % 3,
                9_000,
            )
        })
        .collect();
    let bare = Multicast {
        combining: Vec::new(),
        ..plan.clone()
    };
    let costly = Multicast {
        foreign: ForeignTime {
            packet: Span::from_us(3),
            byte: Span(0),
        },
        ..plan.clone()
    };
    for scheme in ["none", "hpcc", "dcqcn"] {
        let run = |plan: &Multicast| {
            let config = RunConfig {
                record_acks: true,
                multicast: Some(Arc::new(plan.clone())),
                ..lab.config(scheme)
            };
            lab.run(&config, &sent)
        };
        let expected = run(&plan);
        assert_eq!(expected.0.foreign_copies, 0);
        assert_eq!(expected, run(&bare));
        assert_eq!(expected, run(&costly));
    }
}

#[test]
fn the_same_reductions_give_the_same_times() {
    let lab = small_cn_tn();
    let mut plan = routed(&lab, &random_groups(lab.hosts(), 5), true);
    plan.foreign.packet = Span::from_us(1);
    let run = || drive(&lab, &plan, parts(&plan.groups, 2 * MTU), 5);
    let (first, second) = (run(), run());
    assert_eq!(first.0, second.0);
    assert_eq!(first.1.had, second.1.had);
}

/// A tree joins its members and nothing above the switch where they have met; it does not reach strangers.
#[test]
fn the_combining_tree_is_the_members_part() {
    let lab = small_cn_tn();
    let (fabric, hosts) = (&lab.network.fabric, lab.hosts());
    let tree: Tree = tree_to(fabric, &hosts[..8], fabric.switches()[0], 0);
    let l0 = fabric.peer_node(fabric.first_port(hosts[0]));
    let pair = CombiningTree::of(&tree, &hosts[..2], fabric).unwrap();
    assert_eq!((pair.apex, pair.up.len()), (l0, 2));
    assert_eq!(CombiningTree::of(&tree, &hosts[6..10], fabric), None);
}

#[test]
fn reductions_that_cannot_be_are_refused() {
    let (lab, switch) = star_of(4);
    let hosts = lab.hosts();
    let plan = shared(&lab.network.fabric, &[hosts[..3].to_vec()], switch);
    let drive = |plan: &Multicast, sent: Vec<Message>| {
        let mut workload = Reductions::new(sent, 1);
        lab.drive(&with(&lab, plan), &mut workload).map(|it| it.0)
    };
    let bare = Multicast {
        combining: Vec::new(),
        ..plan.clone()
    };
    let most = 63 * MTU;
    assert!(drive(&plan, vec![part(Time(0), hosts[0], 0, most)]).is_ok());
    for (plan, sent, problem) in [
        (&bare, vec![part(Time(0), hosts[0], 0, 8)], "no tree"),
        (&plan, vec![part(Time(0), hosts[0], 1, 8)], "no tree"),
        (&plan, vec![part(Time(0), hosts[3], 0, 8)], "not a member"),
        (&plan, vec![part(Time(0), hosts[0], 0, most + 1)], "64"),
        (
            &plan,
            vec![part(Time(0), hosts[0], 0, 8), part(Time(9), hosts[0], 0, 8)],
            "not over",
        ),
    ] {
        let error = drive(plan, sent).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}
