//! What runs are said to cost, beside what they cost.

use std::time::Duration;

use raddle_units::Time;

use super::{estimate::network_bytes, measure::processor_time, *};
use raddle_engine::{Progress, Recorder, record::Sample, simulate};

fn resolve(fabric: &str, traffic: &str, more: &str) -> Resolved {
    let text = format!(
        "schema = 1\n[fabric]\n{fabric}\n[traffic]\n{traffic}\n[simulation]\nschemes = [\"hpcc\"]\n{more}\n"
    );
    Resolved::new(&text, "e.toml", &MemoryFiles::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Peak resident memory of `hop_benchmark` (the engine and its network, nothing else) for a permutation on k-ary fat trees,
/// without the 4 MB that the process itself has: measured once, and what is counted is to be within a quarter of it.
#[test]
fn memory_is_counted_to_within_a_quarter() {
    for (k, size, measured_mb) in [
        (16, "64KiB", 15.6),
        (32, "1kB", 35.0),
        (32, "16KiB", 55.8),
        (32, "64KiB", 114.1),
        (32, "128kB", 189.4),
        (32, "256KiB", 219.2),
    ] {
        let fabric = format!("kind = \"k-ary-fat-tree\"\nk = {k}");
        let traffic = format!("generator = \"permutation\"\nsize = \"{size}\"");
        let resolved = resolve(&fabric, &traffic, "");
        let run = resolved.runs[0].estimate.memory_bytes.unwrap();
        // Tables and their buffers are not in the figures.
        let counted = (run - (16 << 20) + network_bytes(&resolved.network)) as f64 / 1e6;
        let ratio = counted / measured_mb;
        assert!(
            (0.75..1.25).contains(&ratio),
            "k = {k}, {size}: {counted:.0} MB"
        );
    }
}

/// What a machine takes longer for, it takes longer for in all.
#[test]
fn a_slower_machine_takes_longer_by_as_much() {
    let resolved = resolve("kind = \"fat-tree-320\"", "generator = \"hpc-mix\"", "");
    let told = |slower| resolved.counts[0].estimate(slower).seconds.unwrap();
    assert!((told(3.0) / told(1.0) - 3.0).abs() < 1e-9);
    assert_eq!(resolved.runs[0].estimate.seconds, Some(told(1.0)));
    // Ten times the packets take about ten times as long, and a larger fabric longer for each.
    let per_hop = |k: u32, size: &str| {
        let fabric = format!("kind = \"k-ary-fat-tree\"\nk = {k}");
        let traffic = format!("generator = \"permutation\"\nsize = \"{size}\"");
        let estimate = resolve(&fabric, &traffic, "").runs[0].estimate;
        estimate.seconds.unwrap() / estimate.packet_hops.unwrap() as f64
    };
    let hops = [per_hop(8, "10MB"), per_hop(16, "1MB"), per_hop(32, "1MB")];
    assert!(hops.is_sorted() && hops[2] < 4.0 * hops[0], "{hops:?}");
}

/// A part of the run is timed: the estimate is of the size of what the run takes then.
#[test]
fn a_measurement_is_of_this_machine() {
    let resolved = resolve(
        "kind = \"fat-tree-320\"",
        "generator = \"hpc-mix\"",
        "isolated = false",
    );
    let files = MemoryFiles::default();
    let estimates = resolved
        .measure(Duration::from_millis(300), &files)
        .unwrap();
    let run = &resolved.runs[0];
    let start = processor_time();
    let mut workload = resolved.workload(run, &files).unwrap();
    let summary = simulate(
        &resolved.network,
        &resolved.run_config(run),
        workload.as_mut(),
        &mut raddle_engine::Discard,
        &Progress::default(),
    )
    .unwrap();
    let (told, took) = (
        estimates[0].seconds.unwrap(),
        (processor_time() - start).as_secs_f64(),
    );
    let ratio = told / took;
    // Other programs on the machine disturb both.
    assert!(
        (0.3..3.0).contains(&ratio),
        "{told:.2} s told, {took:.2} s taken"
    );
    let hops = estimates[0].packet_hops.unwrap() as f64 / summary.packet_hops as f64;
    assert!((0.9..1.1).contains(&hops), "{hops}");
}

/// At 1 bit/s a message of 64 KiB takes six days, in which there are 5 x 10^10 samples.
#[test]
fn slow_links_are_not_estimated_as_nothing() {
    let fabric =
        "kind = \"dumbbell\"\nhosts_per_side = 2\nhost_rate = \"1bps\"\nfabric_rate = \"1bps\"";
    let resolved = resolve(fabric, "generator = \"permutation\"\nsize = \"64KiB\"", "");
    assert!(resolved.runs[0].estimate.seconds.unwrap() > 3600.0);
    let files = MemoryFiles::default();
    let measured = resolved.measure(Duration::from_millis(50), &files).unwrap();
    assert!(measured[0].seconds.unwrap() > 3600.0);
    let [warning] = &resolved.warnings[..] else {
        panic!("{:?}", resolved.warnings);
    };
    assert!(warning.contains("retransmission_timeout"), "{warning}");
    let usual = resolve(
        "kind = \"dumbbell\"\nhosts_per_side = 2",
        "generator = \"permutation\"\nsize = \"64KiB\"",
        "",
    );
    assert!(usual.warnings.is_empty() && usual.runs[0].estimate.seconds.unwrap() < 1.0);
}

/// Counts samples, and has the run stopped after some.
struct Impatient<'a>(&'a Progress, u64);

impl Recorder for Impatient<'_> {
    fn sample(&mut self, _sample: &Sample<'_>) {
        self.1 += 1;
        if self.1 == 5_000 {
            self.0.cancel();
        }
    }
}

/// Between two events there may be millions of samples: a run stops there too.
#[test]
fn a_run_stops_between_two_events() {
    let fabric =
        "kind = \"dumbbell\"\nhosts_per_side = 2\nhost_rate = \"1bps\"\nfabric_rate = \"1bps\"";
    let resolved = resolve(fabric, "generator = \"permutation\"\nsize = \"64KiB\"", "");
    let run = &resolved.runs[0];
    let progress = Progress::default();
    let mut recorder = Impatient(&progress, 0);
    let mut workload = resolved.workload(run, &MemoryFiles::default()).unwrap();
    let config = resolved.run_config(run);
    let summary = simulate(
        &resolved.network,
        &config,
        workload.as_mut(),
        &mut recorder,
        &progress,
    )
    .unwrap();
    assert!(summary.cancelled);
    assert!(recorder.1 < 10_000, "{} samples", recorder.1);
    assert!(Time(progress.simulated_ps()) >= Time(0) + config.sample_interval * 5_000);
}

/// Flows that come one after the other are not in memory together, whether their number or their time is given.
#[test]
fn flows_that_follow_each_other_are_not_counted_together() {
    let memory = |more: &str| {
        let traffic = format!(
            "generator = \"poisson\"\nload = 0.1\nsizes = {{ table = [[\"900B\", 0.0], [\"1000B\", 1.0]] }}\n{more}"
        );
        let fabric = "kind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 8";
        let resolved = resolve(fabric, &traffic, "");
        resolved.runs[0].estimate.memory_bytes
    };
    let few = memory("flows = 1000").unwrap();
    let many = memory("flows = 10000000").unwrap();
    assert!(many < few + (1 << 20), "{few} and {many} B");
}
