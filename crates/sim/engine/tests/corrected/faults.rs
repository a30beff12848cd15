//! Links that fail, with and without another way, for a while and for ever.

use raddle_engine::{LinkFault, RunConfig};
use raddle_fabric::Dumbbell;
use raddle_units::{Bytes, LinkId, Span, Time};

use crate::common::{Lab, Log, SCHEMES, leaf_spine, message};

const fn us(span: u64) -> Time {
    Time(span * 1_000_000)
}

fn cut(link: usize, down: Time, up: Option<Time>) -> Vec<LinkFault> {
    let link = LinkId(link as u32);
    vec![LinkFault { link, down, up }]
}

fn config(lab: &Lab, scheme: &str, faults: Vec<LinkFault>) -> RunConfig {
    RunConfig {
        faults,
        retransmission_timeout: Span::from_us(200),
        sample_interval: Span::from_us(20),
        ..lab.config(scheme)
    }
}

/// Payload delivered in samples that lie within a span of time.
fn delivered_between(log: &Log, from: Time, to: Time) -> u64 {
    let within = log
        .samples
        .iter()
        .filter(|sample| sample.time > from && sample.time <= to);
    within.map(|sample| sample.delivered).sum()
}

/// The dumbbell's only middle link fails for 300 us: goodput is nought meanwhile and returns; all bytes arrive once.
#[test]
fn a_cut_link_stops_the_flow_until_it_returns() {
    let lab = Lab::new(Dumbbell::new(1).build().unwrap());
    let hosts = lab.hosts();
    for scheme in SCHEMES {
        let config = config(&lab, scheme, cut(2, us(100), Some(us(400))));
        let flow = message(Time(0), hosts[0], hosts[1], 8_000_000);
        let (summary, log) = lab.run(&config, &[flow]);
        assert_eq!(summary.payload_delivered, 8_000_000, "{scheme}");
        assert!(log.flows[0].fct.unwrap() > log.flows[0].ideal_fct + Span::from_us(300));
        assert!(
            summary.timeouts >= 1 && summary.drops > 0,
            "{scheme}: {summary:?}"
        );
        let before = delivered_between(&log, us(20), us(100));
        assert!(before > 800_000, "{scheme}: {before}");
        // What had crossed the link arrives within a delay and a bit; then nothing.
        assert_eq!(delivered_between(&log, us(120), us(400)), 0, "{scheme}");
        let last = log.flows[0].start + log.flows[0].fct.unwrap();
        assert!(last > us(400) && delivered_between(&log, us(400), last) > 6_000_000);
    }
}

/// With two spines routes go around a cut that never ends: what was on the link is lost, the rest takes the other way.
#[test]
fn routes_go_around_a_cut() {
    let lab = leaf_spine();
    let fabric = &lab.network.fabric;
    let hosts = lab.hosts();
    let flow = message(Time(0), hosts[0], hosts[2], 4_000_000);
    let mut detours = 0;
    for link in 0..fabric.links().len() {
        let ports = fabric
            .link(LinkId(link as u32))
            .ports
            .map(|port| fabric.port(port).node);
        if ports.iter().any(|&node| fabric.is_host(node)) {
            continue;
        }
        let (summary, log) = lab.run(&config(&lab, "none", cut(link, us(100), None)), &[flow]);
        assert_eq!(summary.payload_delivered, 4_000_000);
        let late = log.flows[0].fct.unwrap().0 - log.flows[0].ideal_fct.0;
        detours += u64::from(late > 0);
        // Detection (50 us), the timeout (200 us) and what was lost meanwhile.
        assert!(
            late < Span::from_us(200 + 60 + 100).0,
            "link {link}: {late}"
        );
    }
    // The data's way and its acknowledgements' cross two links each; one or both of them may be shared.
    assert!((2..=4).contains(&detours), "{detours}");
}

/// No other way and no return: the flow is recorded as unfinished and the run ends, whatever had happened by then.
#[test]
fn a_cut_for_ever_leaves_the_flow_unfinished_and_ends_the_run() {
    let lab = Lab::new(Dumbbell::new(1).build().unwrap());
    let hosts = lab.hosts();
    // Before the flow starts, in its midst; the middle link, the sender's, the receiver's.
    for down in [us(1), us(100)] {
        for link in 0..3 {
            for scheme in SCHEMES {
                let config = config(&lab, scheme, cut(link, down, None));
                let flow = message(us(50), hosts[0], hosts[1], 4_000_000);
                let (summary, log) = lab.run(&config, &[flow]);
                assert_eq!(
                    (summary.flows_finished, log.flows[0].fct),
                    (0, None),
                    "{scheme}"
                );
                assert!(
                    log.flows[0].ideal_fct > Span::from_us(300),
                    "ideal with all links up"
                );
                assert_eq!(summary.payload_in_flight, 0);
                // Eight timeouts: 200 us x (1 + 2 + 4 + … + 64 + 64) and a start.
                assert!(summary.end_ps < us(60_000).0, "{scheme}: {summary:?}");
            }
        }
    }
}

/// The sender's own link fails: it resumes by itself when the link is back, without waiting for a long backoff to end.
#[test]
fn a_host_continues_when_its_link_returns() {
    let lab = Lab::new(Dumbbell::new(1).build().unwrap());
    let hosts = lab.hosts();
    for link in [0, 1] {
        let config = config(&lab, "none", cut(link, us(100), Some(us(300))));
        let flow = message(Time(0), hosts[0], hosts[1], 4_000_000);
        let (summary, log) = lab.run(&config, &[flow]);
        assert_eq!(summary.payload_delivered, 4_000_000);
        // The cut, at most two timeouts (200 + 400 us) from its begin, and the way.
        let late = log.flows[0].fct.unwrap().0 - log.flows[0].ideal_fct.0;
        assert!(late < Span::from_us(720).0, "{late}");
    }
}

/// After an outage with several timeouts the next loss is found after one plain timeout again: backoff ends with progress.
#[test]
fn backoff_ends_with_the_outage() {
    let lab = Lab::new(Dumbbell::new(1).build().unwrap());
    let hosts = lab.hosts();
    let mut faults = cut(2, us(100), Some(us(1600)));
    let flow = message(Time(0), hosts[0], hosts[1], 20_000_000);
    let (_, log) = lab.run(&config(&lab, "none", faults.clone()), &[flow]);
    let first = log.flows[0].fct.unwrap();
    // Timeouts 200, 600, 1400, 3000 us after the last progress: it resumes at about 3.1 ms. A second cut right then:
    faults.extend(cut(2, us(3300), Some(us(3350))));
    let (_, log) = lab.run(&config(&lab, "none", faults), &[flow]);
    let late = log.flows[0].fct.unwrap().0 - first.0;
    assert!(late < Span::from_us(50 + 200 + 20).0, "{late}");
}

/// Overlapping faults of one link: it is up when both are over.
#[test]
fn overlapping_faults_are_one() {
    let lab = Lab::new(Dumbbell::new(1).build().unwrap());
    let hosts = lab.hosts();
    let flow = message(Time(0), hosts[0], hosts[1], 4_000_000);
    let mut both = cut(2, us(200), Some(us(300)));
    both.extend(cut(2, us(100), Some(us(250))));
    let overlapping = lab.run(&config(&lab, "none", both), &[flow]);
    let one = lab.run(
        &config(&lab, "none", cut(2, us(100), Some(us(300)))),
        &[flow],
    );
    assert_eq!(overlapping.1.flows, one.1.flows);
}

/// An incast that pauses its senders, cut at the paused moment on either side: pauses are forgotten with the link, and
/// nothing waits for a RESUME that was lost.
#[test]
fn a_cut_of_a_paused_link_leaves_nobody_paused() {
    let lab = Lab::new(Dumbbell::new(6).build().unwrap());
    let hosts = lab.hosts();
    let incast: Vec<_> = (1..11)
        .map(|source| message(Time(0), hosts[source], hosts[0], 500_000))
        .collect();
    let mut paused_cuts = 0;
    for link in 0..13 {
        for down in [60, 61, 75, 90] {
            let mut config = config(&lab, "none", cut(link, us(down), Some(us(down + 40))));
            config.buffer = Bytes(lab.smallest_buffer(&config).0 + 100_000);
            let (summary, log) = lab.run(&config, &incast);
            assert_eq!(
                summary.payload_delivered, 5_000_000,
                "link {link} at {down} us"
            );
            let cut_short = |end: Time| end == us(down);
            paused_cuts += log
                .pauses
                .iter()
                .filter(|pause| cut_short(pause.end))
                .count();
            assert_eq!(log.samples.last().unwrap().paused_ports, 0);
            assert_eq!(log.samples.last().unwrap().buffered_bytes, 0);
        }
    }
    assert!(paused_cuts > 5, "{paused_cuts}");
}
