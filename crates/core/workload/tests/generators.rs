//! Poisson, permutation, incast, all-to-all, listed flows, message graphs and GPCNeT.

use std::collections::{BTreeMap, BTreeSet};

use raddle_units::{BitRate, Bytes, NodeId, Span, Time};
use raddle_workload::{
    AllToAll, Congestor, FlowList, Gpcnet, GraphBuilder, HpcMix, IdealNetwork, Incast, LoadBase,
    Message, Permutation, Poisson, SizeCdf, SizeTable, TrafficSpec, Victim, Workload, describe,
    drive_ideal,
};

const RATE: BitRate = BitRate::from_gbps(100);
const NETWORK: IdealNetwork = IdealNetwork {
    latency: Span::from_us(1),
    rate: RATE,
};

fn hosts(n: u32) -> Vec<NodeId> {
    (0..n).map(NodeId).collect()
}

fn poisson(load: f64, flows: u64) -> Poisson {
    Poisson {
        load,
        sizes: SizeTable::MiceAndElephants,
        flows: Some(flows),
        duration: None,
        start: Span::ZERO,
    }
}

#[test]
fn poisson_has_the_asked_load_and_sizes() {
    let n = 200_000;
    let mut workload = poisson(0.3, n).build(&hosts(64), RATE, 5).unwrap();
    let points = [(1024, 0.3), (16_384, 0.6), (65_536, 0.8), (1_048_576, 0.95)];
    let mut below = [0u32; 4];
    let (mut bytes, mut last, mut count, mut squares) = (0u64, Time::ZERO, 0u64, 0.0);
    while let Some(flow) = workload.pop() {
        assert_ne!(flow.src, flow.dst);
        let gap = flow.start.since(last).0 as f64;
        squares += gap * gap;
        last = flow.start;
        bytes += flow.size.0;
        count += 1;
        for (slot, (size, _)) in below.iter_mut().zip(points) {
            *slot += u32::from(flow.size.0 <= size);
        }
    }
    assert_eq!(count, n);
    for (got, (size, share)) in below.iter().zip(points) {
        // Five standard deviations of a binomial share.
        let sigma = (share * (1.0 - share) / n as f64).sqrt();
        let got = f64::from(*got) / n as f64;
        assert!(
            (got - share).abs() < 5.0 * sigma + 1e-3,
            "{size} B: {got} for {share}"
        );
    }
    // Load = bits / (hosts x rate x time); sizes have a standard deviation of about 3.9 means: 5 x 3.9 / sqrt(n) = 4.4 %.
    let load = bytes as f64 * 8.0 / (64.0 * 100e9 * last.as_secs_f64());
    assert!((load / 0.3 - 1.0).abs() < 0.045, "{load}");
    // The mean square of an exponential is twice the square of its mean; relative deviation sqrt(20/n), five of them.
    let mean = last.0 as f64 / n as f64;
    let ratio = squares / n as f64 / (2.0 * mean * mean);
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
}

#[test]
fn ten_million_poisson_flows_need_no_memory_of_their_own() {
    // The stream holds one flow; a list would take 400 MB. Linux tells the peak of this process.
    let peak_kb = || -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
        line.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    let before = peak_kb();
    let mut workload = poisson(0.5, 10_000_000)
        .build(&hosts(1024), RATE, 1)
        .unwrap();
    let (mut count, mut last) = (0u64, Time::ZERO);
    while let Some(flow) = workload.pop() {
        assert!(flow.start >= last);
        last = flow.start;
        count += 1;
    }
    assert_eq!(count, 10_000_000);
    if let (Some(before), Some(after)) = (before, peak_kb()) {
        let grown = after.saturating_sub(before);
        assert!(grown < 100_000, "grew by {grown} kB");
    }
}

#[test]
fn poisson_ends_with_its_duration() {
    let spec = Poisson {
        flows: None,
        duration: Some(Span::from_ms(1)),
        start: Span::from_ms(2),
        ..poisson(0.3, 0)
    };
    let list = FlowList::collect(&mut spec.build(&hosts(16), RATE, 1).unwrap()).unwrap();
    let (first, last) = (
        list.messages()[0],
        list.messages()[list.messages().len() - 1],
    );
    assert!(first.start >= Time(2_000_000_000) && last.start < Time(3_000_000_000));
    assert!(
        Poisson {
            duration: None,
            ..spec
        }
        .build(&hosts(16), RATE, 1)
        .is_err()
    );
}

#[test]
fn size_tables_are_read_in_shares_and_percent() {
    let percent =
        SizeCdf::parse("0 0\n10000 15 # mice\n\n20000 100\n".as_bytes(), "a.cdf").unwrap();
    let share = SizeCdf::new(&[(Bytes(0), 0.0), (Bytes(10_000), 0.15), (Bytes(20_000), 1.0)]);
    assert_eq!(Ok(&percent), share.as_ref());
    assert!((percent.mean_bytes() - (0.15 * 5000.0 + 0.85 * 15_000.0)).abs() < 1e-9);
    assert!((percent.share_up_to(Bytes(15_000)) - 0.575).abs() < 1e-12);
    for (text, word) in [
        ("", "no points"),
        ("10 0.5\n", "must be 1"),
        ("10 0.5\n5 1\n", "falls at point 2"),
        ("10 0.5\n20 0.2\n30 1\n", "share falls"),
        ("10\n", "a.cdf:1"),
        ("10 1 1\n", "a.cdf:1"),
        ("10 0.1\n-5 1\n", "a.cdf:2"),
        ("10 nan\n", "a.cdf:1"),
        ("99999999999999999999 1\n", "a.cdf:1"),
        ("9999999999999999 1\n", "1 TiB"),
        ("0 1\n", "largest size is 0"),
    ] {
        let error = SizeCdf::parse(text.as_bytes(), "a.cdf")
            .unwrap_err()
            .to_string();
        assert!(error.contains(word), "{text:?}: {error}");
    }
}

#[test]
fn permutation_gives_every_host_one_partner_in_and_out() {
    let spec = Permutation {
        rounds: 3,
        interval: Span::from_us(5),
        ..Permutation::default()
    };
    let list = FlowList::collect(&mut spec.build(&hosts(33), 2).unwrap()).unwrap();
    assert_eq!(list.messages().len(), 99);
    for (round, flows) in list.messages().chunks(33).enumerate() {
        let sources: BTreeSet<_> = flows.iter().map(|flow| flow.src).collect();
        let targets: BTreeSet<_> = flows.iter().map(|flow| flow.dst).collect();
        assert_eq!((sources.len(), targets.len()), (33, 33));
        assert!(flows.iter().all(|flow| flow.src != flow.dst));
        assert!(
            flows
                .iter()
                .all(|flow| flow.start == Time(5_000_000 * round as u64))
        );
    }
}

#[test]
fn incast_has_distinct_sources_and_its_target() {
    let spec = Incast {
        target: Some(NodeId(7)),
        events: 20,
        sources: 15,
        ..Incast::default()
    };
    let list = FlowList::collect(&mut spec.build(&hosts(16), 1).unwrap()).unwrap();
    for event in list.messages().chunks(15) {
        let sources: BTreeSet<_> = event.iter().map(|flow| flow.src).collect();
        assert_eq!(sources.len(), 15);
        assert!(
            event
                .iter()
                .all(|flow| flow.dst == NodeId(7) && flow.src != NodeId(7))
        );
    }
    assert!(
        Incast {
            sources: 16,
            ..spec.clone()
        }
        .build(&hosts(16), 1)
        .is_err()
    );
    assert!(
        Incast {
            target: Some(NodeId(99)),
            ..spec
        }
        .build(&hosts(16), 1)
        .is_err()
    );
}

#[test]
fn all_to_all_reaches_every_pair_of_a_group_once() {
    let list = FlowList::collect(&mut AllToAll::default().build(&hosts(9), 1).unwrap()).unwrap();
    let pairs: BTreeSet<_> = list
        .messages()
        .iter()
        .map(|flow| (flow.src, flow.dst))
        .collect();
    assert_eq!((pairs.len(), list.messages().len()), (72, 72));
    let groups = AllToAll {
        group: Some(4),
        ..AllToAll::default()
    };
    let list = FlowList::collect(&mut groups.build(&hosts(10), 1).unwrap()).unwrap();
    assert_eq!(list.messages().len(), 2 * 12);
    assert!(list.messages().iter().all(|flow| flow.src != flow.dst));
}

#[test]
fn listed_flows_make_the_papers_small_experiment() {
    let table = r#"
        generator = "flows"
        [[flow]]
        src = 0
        dst = 4
        size = "100MB"
        class = "tested-long"
        [[flow]]
        src = [6, 7, 8]
        dst = 5
        size = "64KiB"
        start = "5ms"
        count = 2
    "#;
    let spec: TrafficSpec = toml::from_str(table).unwrap();
    let list = FlowList::collect(&mut spec.build(&hosts(20), RATE, 1).unwrap()).unwrap();
    let sources: Vec<u32> = list.messages().iter().map(|flow| flow.src.0).collect();
    assert_eq!(sources, [0, 6, 7, 8, 6, 7, 8]);
    assert_eq!(list.isolated().unwrap().messages().len(), 1);
    assert!(spec.isolated().is_some());
    assert!(spec.build(&hosts(6), RATE, 1).is_err());
}

#[test]
fn a_graph_starts_steps_after_times_gaps_and_deliveries() {
    let mut graph = GraphBuilder::new();
    let gap = graph.gap(Span::from_us(10));
    let first = graph.message(NodeId(0), NodeId(1), Bytes(1250));
    let second = graph
        .set_class("answer")
        .message(NodeId(1), NodeId(0), Bytes(1250));
    let joined = graph.message(NodeId(1), NodeId(2), Bytes(1250));
    let late = graph.gap(Span::from_us(1));
    graph
        .after(first, gap)
        .after(second, first)
        .after(joined, second)
        .after(joined, late);
    graph.at(late, Time(50_000_000));
    let mut workload = graph.finish().unwrap();
    let mut starts = Vec::new();
    drive_ideal(&mut workload, NETWORK, u64::MAX, |message, _| {
        starts.push(message.start.0)
    });
    // 1,250 B at 100 Gbit/s take 0.1 us, latency 1 us; the join waits for the gap that ends at 51 us.
    assert_eq!(starts, [10_000_000, 11_100_000, 51_000_000]);
    assert!(workload.finished());
    assert_eq!(workload.classes(), ["flow", "answer"]);
}

#[test]
fn a_graph_with_a_cycle_or_a_self_message_is_refused() {
    let mut graph = GraphBuilder::new();
    let a = graph.message(NodeId(0), NodeId(1), Bytes(1));
    let b = graph.gap(Span::ZERO);
    graph.after(a, b).after(b, a);
    assert!(graph.finish().unwrap_err().to_string().contains("cycle"));
    let mut graph = GraphBuilder::new();
    graph.message(NodeId(3), NodeId(3), Bytes(1));
    assert!(graph.finish().unwrap_err().to_string().contains("itself"));
    let mut graph = GraphBuilder::new();
    let a = graph.gap(Span::ZERO);
    graph.after(a, raddle_workload::Step(9));
    assert!(
        graph
            .finish()
            .unwrap_err()
            .to_string()
            .contains("no such step")
    );
}

fn drive(spec: &Gpcnet, n: u32, seed: u64) -> (Vec<(Message, Time)>, Vec<String>, bool) {
    let mut workload = spec.build(&hosts(n), seed).unwrap();
    let mut messages = Vec::new();
    drive_ideal(&mut workload, NETWORK, 3_000_000, |m, done| {
        messages.push((*m, done))
    });
    (messages, workload.classes().to_vec(), workload.finished())
}

#[test]
fn gpcnet_victims_finish_and_send_what_they_should() {
    for (n, ranks_per_host) in [(10, 1), (11, 2), (40, 1), (33, 3)] {
        let spec = Gpcnet {
            ranks_per_host,
            ..Gpcnet::default()
        };
        let (messages, classes, finished) = drive(&spec, n, 1);
        assert!(finished);
        assert_eq!(classes[0], "tested-latency");
        let victims = u64::from(n - n * 4 / 5);
        let slices = u64::from(ranks_per_host);
        let of = |class: u8| messages.iter().filter(|(m, _)| m.class == class).count() as u64;
        assert_eq!(of(0), slices * victims * 2 * 8 * 2, "latency");
        assert_eq!(of(1), slices * victims * 2 * 8 * 2 * 2, "bandwidth");
        let rounds = u64::from((victims as u32).next_power_of_two().ilog2());
        assert_eq!(of(2), slices * victims * rounds * (4 + 3), "barriers");
        let power = 1u64 << victims.ilog2();
        let allreduce = power * u64::from(victims.ilog2()) + 2 * (victims - power);
        assert_eq!(of(3), slices * allreduce * 8, "allreduce");
        assert!((4..8).all(|class| of(class) > 0), "all congestors run");
        assert!(messages.iter().all(|(m, _)| m.src != m.dst));
        let tested: BTreeSet<_> = messages
            .iter()
            .filter(|(m, _)| m.class < 4)
            .flat_map(|(m, _)| [m.src, m.dst.host().unwrap()])
            .collect();
        let background: BTreeSet<_> = messages
            .iter()
            .filter(|(m, _)| m.class > 3)
            .flat_map(|(m, _)| [m.src, m.dst.host().unwrap()])
            .collect();
        assert!(tested.is_disjoint(&background));
        assert_eq!(tested.len() as u64, victims);
    }
}

#[test]
fn gpcnet_congestors_keep_one_operation_in_flight_per_rank() {
    let (messages, _, _) = drive(&Gpcnet::default(), 40, 3);
    let mut last: BTreeMap<(u8, NodeId), Time> = BTreeMap::new();
    let mut root = BTreeMap::new();
    for (message, _) in messages.iter().filter(|(m, _)| (5..8).contains(&m.class)) {
        if message.size == Bytes(4096) && message.class != 7 || message.size == Bytes(16) {
            root.insert(message.class, message.dst.host().unwrap());
        }
    }
    for (message, done) in messages.iter().filter(|(m, _)| m.class >= 4) {
        // A get's operation belongs to the rank that asked: request out, data back.
        let response = message.class == 7 && message.size == Bytes(4096);
        let rank = if response {
            message.dst.host().unwrap()
        } else {
            message.src
        };
        let busy_until = last
            .insert((message.class, rank), *done)
            .unwrap_or(Time::ZERO);
        assert!(
            message.start >= busy_until,
            "two operations of {rank} at once"
        );
    }
    // Put, send and get go on without a pause: the next begins when the last is done.
    let busy = |class: u8, src: NodeId| {
        let own: Vec<_> = messages
            .iter()
            .filter(|(m, _)| m.class == class && m.src == src && m.src != root[&class])
            .collect();
        own.windows(2).all(|pair| pair[1].0.start == pair[0].1)
    };
    for class in [5, 6] {
        for (message, _) in messages.iter().filter(|(m, _)| m.class == class).take(8) {
            assert!(busy(class, message.src));
        }
    }
}

#[test]
fn gpcnet_baseline_has_the_same_victims_and_ends_by_itself() {
    let spec = Gpcnet::default();
    let key = |messages: &[(Message, Time)]| -> Vec<(u64, u32, u32, u64, u8)> {
        let mut keys: Vec<_> = messages
            .iter()
            .filter(|(m, _)| m.class < 4)
            .map(|(m, _)| {
                (
                    m.start.0,
                    m.src.0,
                    m.dst.host().unwrap().0,
                    m.size.0,
                    m.class,
                )
            })
            .collect();
        keys.sort_unstable();
        keys
    };
    let (loaded, _, _) = drive(&spec, 40, 5);
    let (baseline, _, finished) = drive(&spec.isolated(), 40, 5);
    assert!(finished);
    // Without contention the victims cannot tell the difference.
    assert_eq!(key(&loaded), key(&baseline));
    let workload = spec.isolated().build(&hosts(40), 5).unwrap();
    assert_eq!(workload.expected_messages(), Some(baseline.len() as u64));
    assert!(!workload.is_open_ended());
    assert!(spec.build(&hosts(40), 5).unwrap().is_open_ended());
}

#[test]
fn gpcnet_refuses_what_cannot_run() {
    assert!(Gpcnet::default().build(&hosts(9), 1).is_err());
    let one = Gpcnet {
        congestors: vec![Congestor::Alltoall],
        ..Gpcnet::default()
    };
    assert!(one.build(&hosts(10), 1).is_ok());
    let spec = Gpcnet::default;
    for (spec, field) in [
        (Gpcnet { rings: 0, ..spec() }, "rings"),
        (
            Gpcnet {
                congestors: vec![],
                ..spec()
            },
            "congestors",
        ),
        (
            Gpcnet {
                victims: vec![],
                ..spec()
            },
            "victims",
        ),
        (
            Gpcnet {
                congestor_share: f64::NAN,
                ..spec()
            },
            "congestor_share",
        ),
        (
            Gpcnet {
                latency_size: Bytes(0),
                ..spec()
            },
            "latency_size",
        ),
        (
            Gpcnet {
                ranks_per_host: 0,
                ..spec()
            },
            "ranks_per_host",
        ),
    ] {
        let error = spec.build(&hosts(40), 1).err().unwrap().to_string();
        assert!(error.contains(field), "{error}");
    }
    let only = Gpcnet {
        victims: vec![Victim::Allreduce],
        ..spec()
    };
    assert!(drive(&only, 12, 1).2);
}

#[test]
fn a_closed_loop_is_described_up_to_its_end() {
    let mut workload = Gpcnet::default().build(&hosts(20), 1).unwrap();
    let base = LoadBase {
        hosts: 20,
        host_rate: RATE,
        window: None,
        limit: 10_000_000,
    };
    let stats = describe(&mut workload, &base).unwrap();
    assert!(stats.complete && stats.closed_loop && stats.load > 0.0);
    assert!(FlowList::collect(&mut Gpcnet::default().build(&hosts(20), 1).unwrap()).is_err());
}

#[test]
fn a_closed_loop_of_too_many_messages_is_refused() {
    let spec = Gpcnet {
        victims: vec![Victim::Bandwidth; 1000],
        bandwidth_iterations: 1_000_000,
        bandwidth_window: 1024,
        ..Gpcnet::default()
    };
    let error = spec.build(&hosts(20), 1).err().unwrap().to_string();
    assert!(error.contains("at most 2^39 are possible"), "{error}");
}

/// What a generator says of its last start beforehand is what it does; of random starts it is near.
#[test]
fn the_last_start_is_known_beforehand() {
    let us = Span::from_us;
    let exact: [(TrafficSpec, Span); 3] = [
        (
            TrafficSpec::Permutation(Permutation {
                rounds: 3,
                interval: us(7),
                start: us(1),
                ..Permutation::default()
            }),
            us(15),
        ),
        (
            TrafficSpec::Incast(Incast {
                sources: 4,
                events: 5,
                interval: us(2),
                ..Incast::default()
            }),
            us(8),
        ),
        (
            TrafficSpec::AllToAll(AllToAll {
                interval: us(3),
                start: us(2),
                ..AllToAll::default()
            }),
            us(2 + 3 * 38),
        ),
    ];
    let all = hosts(40);
    for (spec, expected) in exact {
        let mut workload = spec.build(&all, RATE, 1).unwrap();
        assert_eq!(workload.expected_last_start(), Some(Time(expected.0)));
        let list = FlowList::collect(&mut workload).unwrap();
        assert_eq!(list.messages().last().unwrap().start, Time(expected.0));
        assert_eq!(list.expected_last_start(), Some(Time(expected.0)));
    }
    let random = |flows, duration| {
        TrafficSpec::Poisson(Poisson {
            load: 0.3,
            sizes: SizeTable::MiceAndElephants,
            flows,
            duration,
            start: us(500),
        })
    };
    for spec in [
        random(Some(20_000), None),
        random(None, Some(Span::from_ms(20))),
        random(Some(20_000), Some(Span::from_ms(20))),
        TrafficSpec::HpcMix(HpcMix::default()),
    ] {
        let mut workload = spec.build(&all, RATE, 1).unwrap();
        let told = workload.expected_last_start().unwrap().0 as f64;
        let list = FlowList::collect(&mut workload).unwrap();
        let ratio = list.messages().last().unwrap().start.0 as f64 / told;
        assert!((0.95..1.05).contains(&ratio), "{spec:?}: {ratio}");
    }
}
