//! How the fabric is cut, and on how many threads and ranks it runs, changes no record: random fabrics, workloads, schemes and
//! troubles, each in one process and cut in several ways.

use std::sync::{Arc, Barrier, Mutex};

use raddle_engine::{
    ForeignTime, LinkFault, Offload, OffloadGroup, Partition, PortSeries, RunConfig, RunSummary,
    ranks::Ranks,
};
use raddle_fabric::{CnTn, Dumbbell, Fabric, FabricBuilder, KAryFatTree, LeafSpine};
use raddle_unicast::PathChoice;
use raddle_units::{BitRate, Bytes, LinkId, NodeId, PortId, Span, Time};
use raddle_workload::{FlowList, Gpcnet, GraphBuilder, Message, OffloadId, Step, Workload};

use crate::{
    combining::{self, Reductions, shared},
    common::{Draws, Lab, Log, SCHEMES, message},
    multicast::{self, random_members, to_group},
};

pub(crate) type Outcome = Result<(RunSummary, Log), String>;

/// The outcome in one process, in others, and in several ranks.
pub(crate) fn hold_equal(
    seed: u64,
    lab: &Lab,
    config: &RunConfig,
    workload: impl Fn() -> Box<dyn Workload> + Sync,
) -> Outcome {
    let cut = |partition, threads| RunConfig {
        partition,
        threads,
        ..config.clone()
    };
    let run = |partition, threads| {
        lab.drive(&cut(partition, threads), &mut workload())
            .map_err(|error| error.to_string())
    };
    let expected = run(Partition::Parts(1), 1);
    for (partition, threads) in [
        (Partition::Random { parts: 2, seed }, 1),
        (Partition::Random { parts: 7, seed }, 3),
        (Partition::Parts(3), 2),
        (Partition::Parts(64), 8),
        (Partition::Automatic, 4),
    ] {
        let found = run(partition, threads);
        let what = || format!("case {seed}, {partition:?}, {threads} threads");
        compare(&expected, &found, what);
    }
    // Ranks wait for each other at every window, so that some of the cases are enough.
    let (ranks, partition, threads) = match seed % 9 {
        0 => (2, Partition::Automatic, 1),
        3 => (3, Partition::Random { parts: 5, seed }, 2),
        6 => (4, Partition::Random { parts: 4, seed }, 1),
        _ => return expected,
    };
    let config = cut(partition, threads);
    let found = in_ranks(ranks, |ranks| {
        lab.drive_rank(&config, &mut workload(), ranks)
            .map_err(|error| error.to_string())
    });
    let what = || format!("case {seed}, {ranks} ranks, {partition:?}");
    compare(&expected, &found, what);
    expected
}

fn compare(expected: &Outcome, found: &Outcome, what: impl Fn() -> String) {
    if let (Ok(expected), Ok(found)) = (expected, found) {
        assert!(
            expected.1 == found.1,
            "{}: {}",
            what(),
            difference(&expected.1, &found.1)
        );
        assert_eq!(expected.0, found.0, "{}", what());
    } else {
        let (expected, found) = (expected.as_ref().err(), found.as_ref().err());
        assert_eq!(expected, found, "{}", what());
    }
}

/// Ranks that are threads of this program.
struct Threads<'a> {
    number: usize,
    letters: &'a [Mutex<Vec<Vec<u8>>>],
    barrier: &'a Barrier,
}

impl Ranks for Threads<'_> {
    fn number(&self) -> usize {
        self.number
    }

    fn count(&self) -> usize {
        self.letters.len()
    }

    fn exchange(&mut self, letters: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
        *self.letters[self.number].lock().unwrap() = letters;
        self.barrier.wait();
        let from = |rank: &Mutex<Vec<Vec<u8>>>| rank.lock().unwrap()[self.number].clone();
        let taken = self.letters.iter().map(from).collect();
        self.barrier.wait();
        Ok(taken)
    }
}

/// The outcome of rank 0. All ranks fail alike, or none.
fn in_ranks(count: usize, run: impl Fn(&mut dyn Ranks) -> Outcome + Sync) -> Outcome {
    let letters: Vec<_> = (0..count).map(|_| Mutex::default()).collect();
    let (letters, barrier, run) = (&letters[..], &Barrier::new(count), &run);
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let ranks = (0..count).map(|number| {
            scope.spawn(move || {
                run(&mut Threads {
                    number,
                    letters,
                    barrier,
                })
            })
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    let mut errors = outcomes.iter().map(|outcome| outcome.as_ref().err());
    let first = errors.next();
    assert!(errors.all(|error| Some(error) == first));
    outcomes.into_iter().next().unwrap()
}

/// The first table in which two logs differ.
fn difference(one: &Log, other: &Log) -> String {
    macro_rules! compare {
        ($($table:ident),*) => {$(
            if one.$table != other.$table {
                let pairs = one.$table.iter().zip(&other.$table);
                let place = pairs.clone().position(|(one, other)| one != other);
                let pair = place.map(|place| (&one.$table[place], &other.$table[place]));
                return format!("{} differ ({} and {} rows): {pair:?}", stringify!($table), one.$table.len(), other.$table.len());
            }
        )*};
    }
    compare!(flows, members, pauses, acks, samples, ports, ways, delays);
    String::new()
}

/// A fabric of links of all rates and delays, equal ones among them: ties are the point.
fn fabric(draws: &mut Draws) -> Fabric {
    let rate =
        |draws: &mut Draws| BitRate::from_gbps([10, 25, 100, 100, 400][draws.below(5) as usize]);
    let (host_rate, fabric_rate) = (rate(draws), rate(draws));
    let delay = Span([1_000_000, 500_000, 0, 20_000, 2_345_678][draws.below(5) as usize]);
    match draws.below(5) {
        0 => Dumbbell {
            host_rate,
            fabric_rate,
            delay,
            ..Dumbbell::new(4)
        }
        .build(),
        1 => LeafSpine {
            leaves: 3,
            spines: 2,
            hosts_per_leaf: 4,
            links_per_spine: 1,
            host_rate,
            fabric_rate,
            delay,
            radix: None,
        }
        .build(),
        2 => KAryFatTree {
            host_rate,
            fabric_rate,
            delay,
            ..KAryFatTree::new(4)
        }
        .build(),
        // Hosts with two ports.
        3 => CnTn {
            host_rate,
            fabric_rate,
            delay,
            ..CnTn::new(2, 2, 1, 2, 1)
        }
        .build(),
        _ => tangle(draws),
    }
    .unwrap()
}

/// Switches in a ring with chords, each with two hosts; every link has a rate and a delay of its own.
fn tangle(draws: &mut Draws) -> Result<Fabric, raddle_fabric::FabricError> {
    let mut builder = FabricBuilder::new("tangle");
    let hosts: Vec<_> = (0..10).map(|_| builder.host()).collect();
    let switches: Vec<_> = (0..5).map(|_| builder.switch(1)).collect();
    let rates = [25, 100, 200].map(BitRate::from_gbps);
    let mut connect = |builder: &mut FabricBuilder, a, b| {
        let rate = rates[draws.below(3) as usize];
        builder.connect(a, b, rate, Span(100_000 + draws.below(900_000)));
    };
    for (index, &host) in hosts.iter().enumerate() {
        connect(&mut builder, host, switches[index / 2]);
    }
    for index in 0..5 {
        connect(&mut builder, switches[index], switches[(index + 1) % 5]);
    }
    connect(&mut builder, switches[0], switches[2]);
    builder.finish()
}

/// Everything that a run may have to bear and to report.
fn config(lab: &Lab, draws: &mut Draws) -> RunConfig {
    let fabric = &lab.network.fabric;
    let scheme = SCHEMES[draws.below(7) as usize];
    let mut config = RunConfig {
        seed: draws.next(),
        record_acks: draws.below(2) == 0,
        record_delays: (draws.below(2) == 0).then_some(256),
        record_paths: draws.below(3) == 0,
        sample_interval: [Span::ZERO, Span::from_us(10), Span(3_333_333)][draws.below(3) as usize],
        watch_from: Bytes([1, 20_000, 1_000_000][draws.below(3) as usize]),
        nic_in_order: draws.below(4) == 0,
        nic_gap: [Span::ZERO, Span::from_ns(300)][draws.below(2) as usize],
        port_series: match draws.below(3) {
            0 => PortSeries::None,
            1 => PortSeries::Busiest(3),
            _ => PortSeries::Ports([5, 1, 3].map(PortId).to_vec()),
        },
        data_classes: 1 + draws.below(2) as u8,
        ..lab.config(scheme)
    };
    if draws.below(2) == 0 {
        config.path_choice = PathChoice::DModK;
    }
    if draws.below(2) == 0 {
        config.lossless = false;
        config.buffer = Bytes(200_000);
        config.retransmission_timeout = Span::from_us(300);
        config.max_timeouts = 3;
    } else {
        config.buffer = Bytes(lab.smallest_buffer(&config).0 * (1 + draws.below(3)));
    }
    for _ in 0..draws.below(3) {
        let down = Time(draws.below(200) * 1_000_000);
        config.faults.push(LinkFault {
            link: LinkId(draws.below(fabric.links().len() as u64) as u32),
            down,
            up: (draws.below(2) == 0).then(|| Time(down.0 + draws.below(300) * 1_000_000)),
        });
    }
    if !config.faults.is_empty() {
        config.retransmission_timeout = Span::from_us(400);
        config.max_timeouts = 2;
    }
    if draws.below(6) == 0 {
        config.end = Some(Time(draws.below(150_000_000)));
    }
    config
}

pub(crate) fn pick(hosts: &[NodeId], draws: &mut Draws) -> NodeId {
    hosts[draws.below(hosts.len() as u64) as usize]
}

/// Flows that meet, many of them at equal times.
fn flows(hosts: &[NodeId], draws: &mut Draws) -> Vec<Message> {
    let target = pick(hosts, draws);
    let mut messages = Vec::new();
    for tag in 0..5 + draws.below(25) {
        let src = pick(hosts, draws);
        let dst = if draws.below(2) == 0 {
            target
        } else {
            pick(hosts, draws)
        };
        if src != dst {
            let size = [1, 999, 1000, 30_000, 150_000][draws.below(5) as usize];
            let start = Time(draws.below(4) * 10_000_000 + draws.below(2) * draws.below(1_000_000));
            messages.push(Message {
                tag,
                priority: 3 + draws.below(2) as u8,
                ..message(start, src, dst, size)
            });
        }
    }
    messages.sort_by_key(|message| message.start);
    messages
}

/// A workload of flows.
fn listed(messages: &[Message]) -> Box<dyn Workload> {
    let classes = vec!["flow".to_owned()];
    Box::new(FlowList::new(messages.to_vec(), classes))
}

#[test]
fn flows_in_any_trouble_do_not_show_the_cut() {
    let mut lost = 0;
    for seed in 0..150 {
        let mut draws = Draws(seed);
        let lab = Lab::new(fabric(&mut draws));
        let config = config(&lab, &mut draws);
        let messages = flows(lab.hosts(), &mut draws);
        let outcome = hold_equal(seed, &lab, &config, || listed(&messages));
        lost += outcome.map_or(0, |(summary, _)| summary.drops);
    }
    assert!(lost > 1_000, "there is trouble: {lost}");
}

/// A fabric that is large enough for tiles ([`Partition::Random`] gives small ones tiles too).
#[test]
fn flows_on_a_large_fabric_do_not_show_the_cut() {
    let lab = Lab::new(KAryFatTree::new(20).build().unwrap());
    let mut draws = Draws(1);
    let mut messages: Vec<Message> = (0..40)
        .flat_map(|_| flows(lab.hosts(), &mut draws))
        .collect();
    messages.sort_by_key(|message| message.start);
    for (seed, scheme) in ["hpcc", "dcqcn"].into_iter().enumerate() {
        let config = RunConfig {
            record_acks: true,
            sample_interval: Span::from_us(10),
            ..lab.config(scheme)
        };
        let outcome = hold_equal(seed as u64 + 1, &lab, &config, || listed(&messages));
        let (summary, _) = outcome.unwrap();
        assert_eq!(summary.flows_finished, messages.len() as u64);
    }
}

/// Messages and gaps that wait for others, at their own host and elsewhere.
pub(crate) fn graph(hosts: &[NodeId], draws: &mut Draws) -> GraphBuilder {
    let mut graph = GraphBuilder::new();
    let mut steps: Vec<Step> = Vec::new();
    while steps.len() < 40 {
        let (src, dst) = (pick(hosts, draws), pick(hosts, draws));
        let step = match draws.below(4) {
            0 => graph.gap(Span(draws.below(3_000_000))),
            _ if src == dst => continue,
            _ => graph.message(src, dst, Bytes(1 + draws.below(20_000))),
        };
        for _ in 0..draws.below(3) {
            if !steps.is_empty() {
                graph.after(step, steps[draws.below(steps.len() as u64) as usize]);
            }
        }
        steps.push(step);
    }
    graph
}

#[test]
fn graphs_do_not_show_the_cut() {
    for seed in 1000..1050 {
        let mut draws = Draws(seed);
        let lab = Lab::new(fabric(&mut draws));
        let config = config(&lab, &mut draws);
        let graph = graph(lab.hosts(), &mut draws).finish().unwrap();
        hold_equal(seed, &lab, &config, || Box::new(graph.clone())).unwrap();
    }
}

#[test]
fn a_closed_loop_does_not_show_the_cut() {
    for seed in 2000..2012 {
        let mut draws = Draws(seed);
        let lab = Lab::new(KAryFatTree::new(4).build().unwrap());
        let config = RunConfig {
            end: Some(Time(400_000_000)),
            ..config(&lab, &mut draws)
        };
        let spec = Gpcnet {
            latency_iterations: 2,
            bandwidth_iterations: 1,
            bandwidth_size: Bytes(16 << 10),
            allreduce_iterations: 2,
            ..Gpcnet::default()
        };
        hold_equal(seed, &lab, &config, || {
            Box::new(spec.build(lab.hosts(), seed).unwrap())
        })
        .unwrap();
    }
}

#[test]
fn reductions_in_switches_do_not_show_the_cut() {
    for seed in 3000..3020 {
        let mut draws = Draws(seed);
        let lab = Lab::new(
            LeafSpine {
                leaves: 3,
                spines: 2,
                hosts_per_leaf: 3,
                links_per_spine: 1,
                host_rate: BitRate::from_gbps(25),
                fabric_rate: BitRate::from_gbps(100),
                delay: Span::from_ns(250),
                radix: None,
            }
            .build()
            .unwrap(),
        );
        let hosts = lab.hosts().to_vec();
        let group = OffloadGroup {
            members: hosts.clone(),
            root: NodeId(hosts.len() as u32 + 3),
        };
        let compute = Span::from_ns(draws.below(400));
        let config = RunConfig {
            offload: Some(Arc::new(Offload::new(vec![group], compute))),
            faults: Vec::new(),
            end: None,
            // Members that give up wait for milliseconds.
            sample_interval: Span::from_us(100),
            ..config(&lab, &mut draws)
        };
        let mut graph = GraphBuilder::new();
        for (member, &host) in (0..).zip(&hosts) {
            let mut last = None;
            for _ in 0..3 {
                let gap = graph.gap(Span(draws.below(1_000_000)));
                let round = graph.message(host, OffloadId(member), Bytes(8 + 4 * draws.below(500)));
                graph.after(round, gap);
                if let Some(last) = last {
                    graph.after(gap, last);
                }
                last = Some(round);
                let dst = pick(&hosts, &mut draws);
                if dst != host {
                    graph.message(host, dst, Bytes(50_000));
                }
            }
        }
        let graph = graph.finish().unwrap();
        hold_equal(seed, &lab, &config, || Box::new(graph.clone())).ok();
    }
}

/// Groups under one fabric, with or without retransmission, merged and foreign, beside flows and in every trouble.
#[test]
fn messages_to_groups_do_not_show_the_cut() {
    let (mut missed, mut foreign) = (0, 0);
    for seed in 4000..4060 {
        let mut draws = Draws(seed);
        let lab = Lab::new(CnTn::new(2, 2, 1, 2, 2).build().unwrap());
        let hosts = lab.hosts().to_vec();
        let members: Vec<_> = (0..3).map(|_| random_members(&hosts, &mut draws)).collect();
        let mut plan = multicast::plan(&lab.network.fabric, &members, &mut draws);
        plan.retransmit = draws.below(2) == 0;
        if draws.below(2) == 0 {
            plan = shared(
                &lab.network.fabric,
                &members,
                lab.network.fabric.switches()[0],
            );
            plan.foreign = ForeignTime {
                packet: Span::from_ns(draws.below(500)),
                byte: Span(draws.below(20)),
            };
        }
        let mut messages = flows(&hosts, &mut draws);
        for _ in 0..12 {
            let group = draws.below(3) as usize;
            let src = pick(&members[group], &mut draws);
            let start = Time(draws.below(3) * 20_000_000);
            messages.push(to_group(start, src, group, 1 + draws.below(60_000)));
        }
        messages.sort_by_key(|message| message.start);
        for (tag, message) in (0..).zip(&mut messages) {
            message.tag = tag;
        }
        let config = RunConfig {
            multicast: Some(Arc::new(plan)),
            retransmission_timeout: Span::from_us(300),
            max_timeouts: 2,
            ..config(&lab, &mut draws)
        };
        let outcome = hold_equal(seed, &lab, &config, || listed(&messages));
        if let Ok((summary, _)) = outcome {
            missed += summary.members_missed;
            foreign += summary.foreign_copies;
        }
    }
    assert!(
        missed > 50 && foreign > 50,
        "{missed} missed, {foreign} foreign"
    );
}

#[test]
fn reductions_on_trees_do_not_show_the_cut() {
    for seed in 5000..5015 {
        let mut draws = Draws(seed);
        let lab = Lab::new(CnTn::new(2, 2, 1, 2, 2).build().unwrap());
        let hosts = lab.hosts().to_vec();
        let members: Vec<_> = (0..2).map(|_| random_members(&hosts, &mut draws)).collect();
        let mut plan = shared(
            &lab.network.fabric,
            &members,
            lab.network.fabric.switches()[0],
        );
        plan.foreign.packet = Span::from_ns(draws.below(300));
        let first = combining::parts(&plan.groups, 1 + draws.below(5_000));
        let config = RunConfig {
            multicast: Some(Arc::new(plan)),
            faults: Vec::new(),
            ..config(&lab, &mut draws)
        };
        hold_equal(seed, &lab, &config, || {
            Box::new(Reductions::new(first.clone(), 4))
        })
        .unwrap();
    }
}
