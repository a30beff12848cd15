//! However the hosts of a workload are cut, the same messages start.

use std::collections::{BTreeMap, BTreeSet};

use raddle_random::Random;
use raddle_units::{Bytes, NodeId, Span, Time};
use raddle_workload::{
    Congestor, Delivery, Destination, Gpcnet, GraphBuilder, GroupId, Message, MessageGraph,
    Multicast, OffloadId, Receiver, ReductionId, Step, Workload, drive_in_windows,
};

const WINDOW: Span = Span(1_000_000);
const LIMIT: usize = 200_000;

/// A network in which everything takes a window and up to three more, as sender, receiver, start and size have it.
#[derive(Default)]
struct Network {
    groups: Vec<Vec<NodeId>>,
    /// Hosts of the members of the only in-network reduction.
    offloads: Vec<NodeId>,
    /// Contributions of the present round.
    come: BTreeMap<Option<ReductionId>, Vec<Message>>,
}

impl Network {
    fn at(message: &Message, host: NodeId) -> Time {
        let seed = message.start.0 ^ message.size.0 << 32;
        let mut random = Random::new(seed, u64::from(message.src.0) << 32 | u64::from(host.0));
        message.start + WINDOW + Span(random.below(3 * WINDOW.0))
    }

    fn deliveries(&mut self, message: &Message) -> Vec<Delivery> {
        let only = |host, at| Delivery {
            at,
            host,
            tag: message.tag,
            to: Receiver::Only,
        };
        let (reduction, members) = match message.dst {
            Destination::Host(host) => return vec![only(host, Self::at(message, host))],
            Destination::Group(group) => {
                let members = self.groups[group.0 as usize].iter();
                let mut come: Vec<Delivery> = members
                    .filter(|&&member| member != message.src)
                    .map(|&member| Delivery {
                        to: Receiver::Member,
                        ..only(member, Self::at(message, member))
                    })
                    .collect();
                let last = *come.iter().max().unwrap();
                let to = Receiver::All;
                come.push(Delivery { to, ..last });
                return come;
            }
            Destination::Reduction(id) => (Some(id), &self.groups[id.0 as usize]),
            Destination::Offload(_) => (None, &self.offloads),
        };
        let come = self.come.entry(reduction).or_default();
        come.push(*message);
        if come.len() < members.len() {
            return Vec::new();
        }
        let met = come.iter().map(|part| part.start).max().unwrap();
        come.drain(..)
            .map(|part| Delivery {
                host: part.src,
                tag: part.tag,
                at: Self::at(&Message { start: met, ..part }, part.src),
                to: Receiver::Only,
            })
            .collect()
    }
}

/// Runs a workload as one part, as two, three, and one for each host, cut at random; `told` is what it tells
/// afterwards. Gives the messages that all cuts agree on.
fn same_however_cut<W: Workload, T: PartialEq + std::fmt::Debug>(
    hosts: usize,
    seed: u64,
    make: impl Fn() -> (W, Network),
    told: impl Fn(&W) -> T,
) -> Vec<Message> {
    let mut first = None;
    for parts in [1, 2, 3, hosts] {
        let mut random = Random::new(seed, parts as u64);
        let part: Vec<usize> = (0..hosts).map(|_| random.index(parts)).collect();
        let (mut workload, mut network) = make();
        let sent = drive_in_windows(
            &mut workload,
            parts,
            &|host| part[host.0 as usize],
            WINDOW,
            LIMIT,
            &mut |message| network.deliveries(message),
        )
        .expect("it can be cut");
        assert!(sent.len() < LIMIT && workload.finished());
        let run = (sent, told(&workload));
        match &first {
            None => first = Some(run),
            Some(first) => assert_eq!(first, &run, "{parts} parts, seed {seed}"),
        }
    }
    first.unwrap().0
}

/// Runs a workload whole, told of deliveries as they happen.
fn at_once(workload: &mut dyn Workload, network: &mut Network) -> Vec<Message> {
    let (mut sent, mut under_way) = (Vec::new(), BTreeSet::new());
    loop {
        let at = under_way.first().map_or(Time::NEVER, |it: &Delivery| it.at);
        if workload.next_start().is_some_and(|start| start <= at) {
            if let Some(message) = workload.pop() {
                under_way.extend(network.deliveries(&message));
                sent.push(message);
            }
            continue;
        }
        let Some(Delivery { at, host, tag, to }) = under_way.pop_first() else {
            break;
        };
        match to {
            Receiver::Member => workload.on_member_delivered(at, tag, host),
            Receiver::Only | Receiver::All => workload.on_delivered(at, tag),
        }
    }
    assert!(workload.finished());
    sent.sort_by_key(|message: &Message| (message.start, message.src));
    sent
}

/// Steps in layers, which wait for steps of the layers before: messages of every kind, and gaps.
fn random_graph(seed: u64, hosts: usize, groups: &[Vec<NodeId>]) -> (MessageGraph, Vec<Step>) {
    let mut random = Random::new(seed, 0);
    let host = |random: &mut Random| random.index(hosts);
    let mut graph = GraphBuilder::new();
    let (mut before, mut gaps) = (Vec::new(), Vec::new());
    // A reduction's contributions wait for no result of it, so they are in one layer.
    let mut reductions: Vec<usize> = (0..=groups.len()).collect();
    for depth in 0..12 {
        let mut layer = Vec::new();
        for _ in 0..2 + random.below(6) {
            let size = Bytes(1 + random.below(30_000));
            layer.push(match random.below(8) {
                0..=2 => {
                    gaps.push(graph.gap(Span(random.below(3 * WINDOW.0))));
                    gaps[gaps.len() - 1]
                }
                3 => {
                    let group = random.index(groups.len());
                    let src = groups[group][random.index(groups[group].len())];
                    graph.message(src, GroupId(group as u32), size)
                }
                _ => {
                    let src = host(&mut random);
                    let dst = random.other(hosts, src);
                    graph.message(NodeId(src as u32), NodeId(dst as u32), size)
                }
            });
        }
        if depth % 3 == 2 {
            match reductions.pop() {
                Some(id) if id < groups.len() => layer.extend(
                    groups[id]
                        .iter()
                        .map(|&src| graph.message(src, ReductionId(id as u32), Bytes(8))),
                ),
                Some(_) => layer.extend(
                    (0..hosts as u32)
                        .map(|host| graph.message(NodeId(host), OffloadId(host), Bytes(8))),
                ),
                None => {}
            }
        }
        for &step in &layer {
            graph.at(step, Time(random.below(4 * WINDOW.0)));
            for _ in 0..random.below(4) * u64::from(depth > 0) {
                graph.after(step, before[random.index(before.len())]);
            }
        }
        before.extend(layer);
    }
    (graph.finish().unwrap(), gaps)
}

#[test]
fn graphs_do_not_show_how_they_are_cut() {
    let (mut sent, mut late) = (0, 0);
    for seed in 0..150 {
        let hosts = 2 + seed as usize % 9;
        let mut random = Random::new(seed, 1);
        let groups: Vec<Vec<NodeId>> = (0..3)
            .map(|_| {
                let mut all: Vec<NodeId> = (0..hosts as u32).map(NodeId).collect();
                random.shuffle(&mut all);
                all.truncate(2 + random.index(hosts - 1));
                all
            })
            .collect();
        let make = || {
            let network = Network {
                groups: groups.clone(),
                offloads: (0..hosts as u32).map(NodeId).collect(),
                ..Network::default()
            };
            (random_graph(seed, hosts, &groups).0, network)
        };
        let gaps = random_graph(seed, hosts, &groups).1;
        let ends = |graph: &MessageGraph| -> Vec<Option<Time>> {
            let end = |&gap| graph.gap_end(gap);
            gaps.iter().map(end).collect()
        };
        let messages = same_however_cut(hosts, seed, make, |graph| {
            let ends = ends(graph);
            assert!(ends.iter().all(Option::is_some));
            ends
        });
        assert_eq!(Some(messages.len() as u64), make().0.expected_messages());
        sent += messages.len();
        late += messages
            .iter()
            .filter(|it| it.start.0 % WINDOW.0 == 0 && it.start.0 > 0)
            .count();
    }
    // Of both kinds there are many: what news start, and what starts at once.
    assert!(late > sent / 10 && late < sent / 2, "{late} of {sent}");
}

/// A ring around which a token goes, with a gap at each host: nobody but the receiver waits, so the windows do not show
/// either.
#[test]
fn what_a_receiver_starts_by_itself_starts_at_once() {
    let ring = || {
        let mut graph = GraphBuilder::new();
        let mut last: Option<Step> = None;
        for turn in 0..50 {
            let (here, there) = (NodeId(turn % 5), NodeId((turn + 1) % 5));
            let gap = graph.gap(Span(u64::from(turn) * 12_345));
            let message = graph.message(here, there, Bytes(1 + u64::from(turn) * 100));
            graph.after(message, gap);
            last.map(|last| graph.after(gap, last));
            last = Some(message);
        }
        (graph.finish().unwrap(), Network::default())
    };
    let (mut whole, mut network) = ring();
    let parts = whole.split(3, &|host| host.0 as usize % 3).unwrap();
    assert!((0..100).all(|step| !parts[0].is_news(step)));
    let sent = same_however_cut(5, 1, ring, |_| ());
    assert_eq!(sent, at_once(&mut ring().0, &mut network));
}

/// Victims and congestors of every kind, several of a host; and the windows do not show in how many messages are
/// measured.
#[test]
fn closed_loops_do_not_show_how_they_are_cut() {
    for (seed, hosts, ranks_per_host, congestion) in [
        (1, 12, 1, true),
        (2, 17, 2, true),
        (3, 9, 3, false),
        (4, 40, 1, true),
    ] {
        let spec = Gpcnet {
            ranks_per_host,
            congestion,
            congestor_share: 0.7,
            congestors: match seed {
                2 => vec![Congestor::GetIncast, Congestor::Alltoall],
                3 => vec![Congestor::PutIncast],
                _ => Gpcnet::default().congestors,
            },
            latency_iterations: 3,
            allreduce_iterations: 3,
            ..Gpcnet::default()
        };
        let all: Vec<NodeId> = (0..hosts as u32).map(NodeId).collect();
        let make = || (spec.build(&all, seed).unwrap(), Network::default());
        let sent = same_however_cut(hosts, seed, make, |_| ());
        let alone = spec.isolated().build(&all, seed).unwrap();
        // Classes 0 to 3 are measured.
        let measured = sent.iter().filter(|message| message.class < 4).count();
        assert_eq!(Some(measured as u64), alone.expected_messages());
        assert_eq!(measured < sent.len(), congestion);
        let mut tags: Vec<u64> = sent.iter().map(|message| message.tag).collect();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), sent.len(), "a tag is one message's");
    }
}

/// Broadcasts, and reductions that meet at the root or on the way, of processes that share hosts.
#[test]
fn collectives_of_groups_do_not_show_how_they_are_cut() {
    let operations = [
        "",
        "operation = 'allreduce'\n",
        "operation = 'barrier'\ncombining = 'on-tree'\n",
    ];
    let shapes = [
        ("dims = [4, 3]", 1),
        ("dims = [6, 8]", 4),
        ("dims = [3, 4, 2]", 2),
        ("dims = [6, 6]\nrandom_groups = 5", 2),
    ];
    for (seed, operation) in (0..).zip(operations) {
        for (shape, per_host) in shapes {
            for (overhead, noise) in [
                ("200ns", "0s"),
                ("200ns", "3us"),
                ("1us", "0s"),
                ("1us", "3us"),
            ] {
                let text = format!(
                    "{shape}\nprocesses_per_terminal = {per_host}\nrounds = 6\noverhead = '{overhead}'\n\
                     noise = '{noise}'\n{operation}"
                );
                let spec: Multicast = toml::from_str(&text).unwrap();
                let hosts = spec.dims.iter().product::<u32>() / per_host;
                let all: Vec<NodeId> = (0..hosts).map(NodeId).collect();
                let groups = spec.groups(&all).unwrap();
                let make = || {
                    let network = Network {
                        groups: groups.iter().map(|group| group.members.clone()).collect(),
                        ..Network::default()
                    };
                    (spec.build(&all, seed).unwrap(), network)
                };
                let sent = same_however_cut(hosts as usize, seed, make, |rounds| {
                    rounds.round_starts().to_vec()
                });
                let expected = spec.build(&all, seed).unwrap().expected_messages();
                assert_eq!(Some(sent.len() as u64), expected, "{text}");
                // Results that come to all alike are no news; others are not late where software takes a window.
                let (mut whole, mut network) = make();
                if WINDOW <= whole.longest_window() {
                    let in_order = |mut sent: Vec<Message>| {
                        sent.sort_by_key(|message| (message.start, message.src, message.tag));
                        sent
                    };
                    let found = at_once(&mut whole, &mut network);
                    assert_eq!(in_order(sent), in_order(found), "{text}");
                }
            }
        }
    }
}
