//! What congestion control achieves: fair shares, full links, short queues.

use raddle_fabric::{Fabric, FabricBuilder};
use raddle_sim::RunConfig;
use raddle_units::{BitRate, NodeId, Span, Time};
use raddle_workload::Message;

use crate::common::{HEADERS, Lab, Log, MTU, message, star};

const RATE: BitRate = BitRate::from_gbps(100);

const fn ms_tenths(tenths: u64) -> Time {
    Time(tenths * 100_000_000)
}

/// Runs endless flows until `end`, with a series for each.
fn run_until(lab: &Lab, scheme: &str, flows: &[Message], end: Time) -> Log {
    let config = RunConfig {
        end: Some(end),
        sample_interval: Span::from_us(10),
        ..lab.config(scheme)
    };
    let (summary, log) = lab.run(&config, flows);
    assert_eq!(summary.drops, 0);
    log
}

fn endless(start: Time, src: NodeId, dst: NodeId) -> Message {
    message(start, src, dst, 1_000_000_000)
}

/// Goodput in Gbit/s of each source's flow in the last part of a run.
fn goodputs(log: &Log, from: Time, end: Time, sources: &[NodeId]) -> Vec<f64> {
    let seconds = (end.0 - from.0) as f64 / 1e12;
    let delivered = log.delivered_after(from, sources);
    delivered.iter().map(|&bytes| bytes as f64 * 8e-9 / seconds).collect()
}

/// Jain's index: (sum x)^2 / (n sum x^2), 1 for equal shares and 1/n for one that has all.
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

/// Equal flows that start together and one after the other share a link almost equally in the end, and fill it.
#[test]
fn equal_flows_get_equal_shares() {
    for (scheme, least) in [("hpcc", 0.9), ("swift", 0.9)] {
        for gap_us in [0, 30] {
            let n = 6;
            let lab = Lab::new(star(&vec![(RATE, Span::from_us(1)); n + 1]));
            let sources = &lab.hosts()[..n];
            let flows: Vec<Message> = (0..n)
                .map(|at| endless(Time(at as u64 * gap_us * 1_000_000), sources[at], lab.hosts()[n]))
                .collect();
            let (from, end) = (ms_tenths(60), ms_tenths(80));
            let shares = goodputs(&run_until(&lab, scheme, &flows, end), from, end, sources);
            let total: f64 = shares.iter().sum();
            println!("{scheme} {gap_us} {shares:?} {total} {}", jain(&shares));
            assert!(jain(&shares) > least, "{scheme}, {gap_us} us apart: {shares:?}");
            assert!(total > 85.0, "{scheme}, {gap_us} us apart: {shares:?}");
        }
    }
}

/// Three switches in a row. Hosts 0 and 1 are on the first, 2 and 3 on the second, 4, 5 and 6 on the third.
fn parking_lot() -> Fabric {
    let mut builder = FabricBuilder::new("parking lot");
    let hosts: Vec<NodeId> = (0..7).map(|_| builder.host()).collect();
    let switches = [builder.switch(1), builder.switch(1), builder.switch(1)];
    for (host, at) in hosts.into_iter().zip([0, 0, 1, 1, 2, 2, 2]) {
        builder.connect(host, switches[at], RATE, Span::from_us(1));
    }
    builder.connect(switches[0], switches[1], RATE, Span::from_us(1));
    builder.connect(switches[1], switches[2], RATE, Span::from_us(1));
    builder.finish().unwrap()
}

/// Max-min fair shares: flows 0 and 1 use the first link, 0, 2 and 3 the second; 0 goes over both. The second link is the
/// tighter one: C/3 for 0, 2 and 3, and 2C/3 for 1. HPCC aims at eta C = 95 % per link, of which payload is 1000 of 1090 B
/// (42 B of telemetry for up to five hops; here 3: 8 * 3 + 2 = 26 B). Fairness comes from the small additive increase, so
/// shares are held to within a quarter and links to within 5 % of eta.
#[test]
fn hpcc_comes_near_max_min_fair_shares() {
    let lab = Lab::new(parking_lot());
    let hosts = lab.hosts();
    let flows = [(0, 4), (1, 3), (2, 5), (3, 6)].map(|(src, dst)| endless(Time(0), hosts[src], hosts[dst]));
    let (from, end) = (ms_tenths(100), ms_tenths(120));
    let log = run_until(&lab, "hpcc", &flows, end);
    let shares = goodputs(&log, from, end, &hosts[..4]);
    let link = 95.0 * MTU as f64 / (MTU + HEADERS + 26) as f64;
    println!("{shares:?} {link}");
    for (share, fair) in shares.iter().zip([1.0, 2.0, 1.0, 1.0]) {
        let fair = fair * link / 3.0;
        assert!((share / fair - 1.0).abs() < 0.25, "{shares:?} of {link}");
    }
    for load in [shares[0] + shares[1], shares[0] + shares[2] + shares[3]] {
        assert!((load / link - 1.0).abs() < 0.05, "{shares:?} of {link}");
    }
}

/// Two flows into one link: after the first rush the queue stays where each scheme aims, and the link stays busy.
///
/// DCTCP: around its threshold, 300 kB at 100G. DCQCN: below kmax, 1600 kB. TIMELY: t_high is 25 base RTTs, 4 us each,
/// i.e. 1.25 MB. Swift: 1.5 base RTTs of delay plus flow scaling: under 2 BDP of 50 kB. HPCC and PINT: next to nothing.
/// None: as much as PFC lets it, an eighth of the free buffer per ingress (4 MiB each).
#[test]
fn each_scheme_keeps_its_queue() {
    let lab = Lab::new(star(&[(RATE, Span::from_us(1)); 3]));
    let hosts = lab.hosts();
    let flows = [0, 1].map(|source| endless(Time(0), hosts[source], hosts[2]));
    let (from, end) = (ms_tenths(50), ms_tenths(70));
    let mut wrong = Vec::new();
    for (scheme, least_kb, most_kb) in [
        ("none", 4_000.0, 8_500.0),
        ("dctcp", 100.0, 400.0),
        ("dcqcn", 0.0, 1_600.0),
        ("timely", 0.0, 1_250.0),
        ("swift", 1.0, 100.0),
        ("hpcc", 0.0, 20.0),
        ("pint", 0.0, 40.0),
    ] {
        let log = run_until(&lab, scheme, &flows, end);
        let late: Vec<f64> = log
            .samples
            .iter()
            .filter(|sample| sample.time > from)
            .map(|sample| sample.max_port_bytes as f64 / 1e3)
            .collect();
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        let most = late.iter().copied().fold(0.0, f64::max);
        let goodput: f64 = goodputs(&log, from, end, &hosts[..2]).iter().sum();
        println!("{scheme} {mean} {most} {goodput}");
        if mean < least_kb || most > most_kb || goodput < 80.0 {
            wrong.push(format!("{scheme}: mean {mean} kB, most {most} kB, {goodput} Gbit/s"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
