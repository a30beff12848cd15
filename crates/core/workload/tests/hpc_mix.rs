//! The HPC mix against the paper's Table 2 and its own promises.

use std::collections::{BTreeMap, BTreeSet};

use raddle_units::{BitRate, Bytes, NodeId, Time};
use raddle_workload::{
    FlowList, HPC_MIX_CLASSES, HpcMix, LoadBase, Message, TrafficSpec, Workload, describe,
};

fn hosts(n: u32) -> Vec<NodeId> {
    (0..n).map(NodeId).collect()
}

fn flows(mix: &HpcMix, n: u32, seed: u64) -> Vec<Message> {
    let mut workload = mix.build(&hosts(n), seed).unwrap();
    let announced = (
        workload.expected_messages().unwrap(),
        workload.expected_bytes().unwrap(),
    );
    let mut flows = Vec::new();
    while let Some(message) = workload.pop() {
        flows.push(message);
    }
    assert!(workload.finished());
    assert_eq!(
        announced,
        (
            flows.len() as u64,
            flows.iter().map(|flow| flow.size).sum::<Bytes>()
        )
    );
    flows
}

#[test]
fn every_seed_gives_the_counts_of_the_papers_table_2() {
    for seed in 1..=50 {
        let flows = flows(&HpcMix::default(), 320, seed);
        let mut counts: BTreeMap<(&str, u64), u32> = BTreeMap::new();
        for flow in &flows {
            let class = HPC_MIX_CLASSES[usize::from(flow.class)];
            *counts.entry((class, flow.size.0)).or_default() += 1;
        }
        let expected = BTreeMap::from([
            (("tested-long", 10_000_000), 64),
            (("tested-short", 65_536), 1281),
            (("tested-allreduce", 65_536), 1120),
            (("background-incast", 65_536), 8256),
            (("background-broadcast", 65_536), 8256),
            (("background-alltoall", 5_520_000), 204),
        ]);
        assert_eq!(counts, expected, "seed {seed}");
        assert_eq!(flows.len(), 19_181);
    }
}

#[test]
fn a_few_flows_carry_most_bytes_as_in_the_paper() {
    let spec = TrafficSpec::HpcMix(HpcMix::default());
    let host_rate = BitRate::from_gbps(100);
    let mut workload = spec.build(&hosts(320), host_rate, 7).unwrap();
    let base = LoadBase {
        hosts: 320,
        host_rate,
        window: spec.window(),
        limit: u64::MAX,
    };
    let stats = describe(&mut workload, &base).unwrap();
    assert!((stats.large_share_of_flows - 0.014).abs() < 0.0001);
    assert!((stats.large_share_of_bytes - 0.5876).abs() < 0.00005);
    // 3.0056 GB x 8 / (320 x 100 Gbit/s x 5 ms).
    assert!((stats.load - 0.15028).abs() < 0.00001, "{}", stats.load);
    assert!(stats.complete && !stats.closed_loop);
}

#[test]
fn flows_are_sorted_between_different_hosts_of_disjoint_groups() {
    for seed in 1..=5 {
        let mix = HpcMix::default();
        let (tested, background) = mix.split(&hosts(320), seed).unwrap();
        assert_eq!((tested.len(), background.len()), (64, 256));
        let tested: BTreeSet<NodeId> = tested.into_iter().collect();
        let background: BTreeSet<NodeId> = background.into_iter().collect();
        assert!(tested.is_disjoint(&background));
        let mut last = Time::ZERO;
        let mut tags = BTreeSet::new();
        for flow in flows(&mix, 320, seed) {
            assert_ne!(flow.src, flow.dst);
            assert!(flow.start >= last);
            last = flow.start;
            assert!(tags.insert(flow.tag));
            let group = if flow.class < 3 { &tested } else { &background };
            assert!(group.contains(&flow.src) && group.contains(&flow.dst.host().unwrap()));
        }
        // The last Allreduce answer may leave the window by the gap.
        assert!(last < Time(5_050_000_000));
    }
}

#[test]
fn the_isolated_twin_is_the_tested_part_to_the_bit() {
    for seed in 1..=5 {
        for load_factor in [0.3, 0.9] {
            let mix = HpcMix {
                load_factor,
                ..HpcMix::default()
            };
            let tested: Vec<Message> = flows(&mix, 320, seed)
                .into_iter()
                .filter(|flow| flow.class < 3)
                .collect();
            assert_eq!(tested, flows(&mix.isolated(), 320, seed));
        }
    }
}

#[test]
fn tested_hosts_take_part_equally_often() {
    let mut sources = BTreeMap::new();
    let mut allreduce: BTreeMap<Time, BTreeSet<(NodeId, NodeId)>> = BTreeMap::new();
    for flow in flows(&HpcMix::default(), 320, 3) {
        match flow.class {
            0 | 1 => *sources.entry((flow.class, flow.src)).or_insert(0) += 1,
            2 => assert!(
                allreduce
                    .entry(flow.start)
                    .or_default()
                    .insert((flow.src, flow.dst.host().unwrap()))
            ),
            _ => {}
        }
    }
    assert!(
        sources
            .iter()
            .all(|(&(class, _), &n)| class == 1 && (20..=21).contains(&n) || n == 1)
    );
    let mut turns = BTreeMap::new();
    for (start, gather) in &allreduce {
        let targets: BTreeSet<NodeId> = gather.iter().map(|&(_, dst)| dst).collect();
        if targets.len() > 1 {
            continue; // a scatter, looked at with its gather
        }
        assert_eq!(gather.len(), 7);
        let back: BTreeSet<_> = gather.iter().map(|&(src, dst)| (dst, src)).collect();
        assert_eq!(allreduce.get(&Time(start.0 + 50_000_000)), Some(&back));
        for &(src, dst) in gather {
            turns.insert((*start, src), ());
            turns.insert((*start, dst), ());
        }
    }
    let mut per_host = BTreeMap::new();
    for &(_, host) in turns.keys() {
        *per_host.entry(host).or_insert(0) += 1;
    }
    assert_eq!(per_host.len(), 64);
    assert!(per_host.values().all(|&n| n == 10));
}

#[test]
fn background_grows_with_the_load_factor_and_everything_with_the_hosts() {
    let count = |load_factor, n, class: u8| {
        let mix = HpcMix {
            load_factor,
            ..HpcMix::default()
        };
        flows(&mix, n, 1)
            .iter()
            .filter(|flow| flow.class == class)
            .count()
    };
    assert_eq!(
        [count(0.3, 320, 3), count(0.9, 320, 3)],
        [8256 / 2, 8256 * 3 / 2]
    );
    assert_eq!(count(0.3, 320, 1), count(0.9, 320, 1));
    // 200 hosts as in Figure 7: 64, 1281 and 80 scaled by 200/320, rounded half up.
    assert_eq!(
        [count(0.6, 200, 0), count(0.6, 200, 1), count(0.6, 200, 2)],
        [40, 801, 50 * 14]
    );
    // The dumbbell's 10 hosts: 2 tested, 8 in the background, so fans shrink to 7 and Allreduce to a pair.
    assert_eq!([count(0.6, 10, 2), count(0.6, 10, 3)], [3 * 2, 16 * 7]);
    assert!(count(0.0, 320, 3) == 0);
}

#[test]
fn refuses_fields_out_of_range() {
    let refused = |mix: HpcMix, n, field: &str| {
        let error = mix
            .build(&hosts(n), 1)
            .err()
            .expect("must be refused")
            .to_string();
        assert!(error.contains(field), "{error}");
    };
    let mix = HpcMix::default;
    refused(
        HpcMix {
            load_factor: 60.0,
            ..mix()
        },
        320,
        "load_factor",
    );
    refused(
        HpcMix {
            load_factor: f64::NAN,
            ..mix()
        },
        320,
        "load_factor",
    );
    refused(
        HpcMix {
            tested_share: 1.0,
            ..mix()
        },
        320,
        "tested_share",
    );
    refused(
        HpcMix {
            tested_share: f64::NAN,
            ..mix()
        },
        320,
        "tested_share",
    );
    refused(
        HpcMix {
            long_size: Bytes(0),
            ..mix()
        },
        320,
        "long_size",
    );
    refused(
        HpcMix {
            alltoall_group: 1,
            ..mix()
        },
        320,
        "alltoall_group",
    );
    refused(
        HpcMix {
            short_flows: Some(u64::MAX),
            ..mix()
        },
        320,
        "short_flows",
    );
    refused(
        HpcMix {
            window: raddle_units::Span(u64::MAX),
            ..mix()
        },
        320,
        "window",
    );
    refused(mix(), 3, "hosts");
}

/// The golden: FNV-1a over all fields of all flows. It changes only if the generator's output changes, which changes
/// every published figure made from a seed, so a new value needs a line in CHANGELOG under "model changes".
#[test]
fn the_same_seed_gives_the_same_flows_on_every_machine() {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |value: u64| {
        for byte in value.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for flow in flows(&HpcMix::default(), 320, 1) {
        add(flow.start.0);
        add(u64::from(flow.src.0) << 32 | u64::from(flow.dst.host().unwrap().0));
        add(flow.size.0);
        add(u64::from(flow.class));
    }
    assert_eq!(hash, GOLDEN_HASH);
    let first = flows(&HpcMix::default(), 320, 1).remove(0);
    assert_eq!(
        (first.start.0, first.src.0, first.dst.host().unwrap().0),
        GOLDEN_FIRST
    );
}

const GOLDEN_HASH: u64 = 10_314_527_806_928_192_833;
const GOLDEN_FIRST: (u64, u32, u32) = (4_772_000, 311, 118);

#[test]
fn a_list_of_the_flows_equals_the_stream() {
    let mix = HpcMix::default();
    let list = FlowList::collect(&mut mix.build(&hosts(320), 9).unwrap()).unwrap();
    let stream = flows(&mix, 320, 9);
    assert_eq!(list.messages().len(), stream.len());
    for (listed, streamed) in list.messages().iter().zip(&stream) {
        assert_eq!(
            Message { tag: 0, ..*listed },
            Message {
                tag: 0,
                ..*streamed
            }
        );
    }
    let isolated = list.isolated().unwrap();
    assert_eq!(isolated.messages().len(), 64 + 1281 + 1120);
}
