//! The same inputs give the same records, wherever and however often they run.

use raddle_engine::{LinkFault, RunConfig, RunSummary};
use raddle_fabric::{FabricBuilder, LeafSpine};
use raddle_units::{BitRate, Bytes, LinkId, NodeId, Span, Time};
use raddle_workload::Message;

use crate::common::{Draws, Lab, Log, SCHEMES, message};

fn lab() -> Lab {
    let fabric = LeafSpine {
        leaves: 3,
        spines: 2,
        hosts_per_leaf: 4,
        links_per_spine: 1,
        host_rate: BitRate::from_gbps(100),
        fabric_rate: BitRate::from_gbps(100),
        delay: Span::from_us(1),
        radix: None,
    };
    Lab::new(fabric.build().unwrap())
}

/// An incast with cross traffic, many ties (equal starts, equal sizes) and, if wanted, drops and a link that fails.
fn run(lab: &Lab, scheme: &str, seed: u64, troubled: bool) -> (RunSummary, Log) {
    let mut draws = Draws(3);
    let hosts = lab.hosts();
    let mut messages: Vec<Message> = (1..10)
        .map(|source| message(Time(0), hosts[source], hosts[0], 400_000))
        .collect();
    for _ in 0..40 {
        let (src, dst) = (draws.below(12) as usize, draws.below(12) as usize);
        if src != dst {
            let start = Time(draws.below(8) * 10_000_000);
            messages.push(message(start, hosts[src], hosts[dst], 20_000));
        }
    }
    let mut config = RunConfig {
        seed,
        record_acks: true,
        sample_interval: Span::from_us(5),
        ..lab.config(scheme)
    };
    if troubled {
        config.lossless = false;
        config.buffer = Bytes(150_000);
        config.retransmission_timeout = Span::from_us(300);
        config.faults = vec![LinkFault {
            link: LinkId(13),
            down: Time(20_000_000),
            up: Some(Time(90_000_000)),
        }];
    }
    lab.run(&config, &messages)
}

#[test]
fn the_same_inputs_give_the_same_records() {
    let lab = lab();
    for scheme in SCHEMES {
        for troubled in [false, true] {
            let first = run(&lab, scheme, 1, troubled);
            assert_eq!(first, run(&lab, scheme, 1, troubled), "{scheme}");
        }
    }
}

#[test]
fn runs_at_the_same_time_do_not_touch_each_other() {
    let lab = lab();
    let alone: Vec<_> = SCHEMES
        .iter()
        .map(|scheme| run(&lab, scheme, 1, true))
        .collect();
    std::thread::scope(|scope| {
        let lab = &lab;
        let runs: Vec<_> = (0..2)
            .flat_map(|_| SCHEMES.iter().enumerate())
            .map(|(index, scheme)| (index, scope.spawn(move || run(lab, scheme, 1, true))))
            .collect();
        for (index, thread) in runs {
            assert_eq!(thread.join().unwrap(), alone[index], "{}", SCHEMES[index]);
        }
    });
}

/// Two networks made from equal fabrics are equal in every respect that counts.
#[test]
fn a_second_network_gives_the_same_records() {
    assert_eq!(run(&lab(), "dcqcn", 5, true), run(&lab(), "dcqcn", 5, true));
}

/// ECN (DCQCN's marks below kmax) and PINT's rounding are all that chance decides.
#[test]
fn another_seed_changes_what_chance_decides_and_nothing_else() {
    let lab = lab();
    for scheme in SCHEMES {
        let by_chance = ["dcqcn", "pint"].contains(&scheme);
        let (one, other) = (run(&lab, scheme, 1, false), run(&lab, scheme, 2, false));
        assert_eq!(one != other, by_chance, "{scheme}");
        if scheme == "dcqcn" {
            assert!(one.0.ecn_marks > 0 && one.0.ecn_marks != other.0.ecn_marks);
        }
    }
}

/// Two switches with six hosts each, and a link between them.
fn two_switches() -> Lab {
    let mut builder = FabricBuilder::new("two switches");
    let hosts: Vec<_> = (0..12).map(|_| builder.host()).collect();
    let switches = [builder.switch(1), builder.switch(1)];
    let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
    for (place, &host) in hosts.iter().enumerate() {
        builder.connect(host, switches[place / 6], rate, delay);
    }
    builder.connect(switches[0], switches[1], rate, delay);
    Lab::new(builder.finish().unwrap())
}

/// What is reported of the first switch and its hosts. (Tags count through the run.)
fn of_first_switch(lab: &Lab, log: &Log) -> Log {
    let own = [&lab.hosts()[..6], &lab.network.fabric.switches()[..1]].concat();
    let is_own = |node: NodeId| own.contains(&node);
    let mut log = log.clone();
    log.flows.retain(|flow| is_own(flow.src));
    log.flows.iter_mut().for_each(|flow| flow.tag = 0);
    log.acks.retain(|ack| is_own(ack.src));
    log.pauses.retain(|pause| is_own(pause.node));
    log.ports.retain(|port| is_own(port.node));
    log
}

/// Many flows of each host start at once, time out at once and have timers at once: their order is the host's own affair,
/// whatever else the run has begun and ended before.
#[test]
fn traffic_elsewhere_changes_nothing_here() {
    let lab = two_switches();
    let local = |draws: &mut Draws, first: u64, count: u64| -> Vec<Message> {
        let pairs = (0..count).map(|place| {
            let (src, step) = (draws.below(6), 1 + draws.below(5));
            let hosts = [src, (src + step) % 6].map(|host| lab.hosts()[(first + host) as usize]);
            let start = Time(place / 20 * 150_000_000);
            message(start, hosts[0], hosts[1], 1 + draws.below(4) * 30_000)
        });
        pairs.collect()
    };
    let here = local(&mut Draws(1), 0, 120);
    for scheme in SCHEMES {
        let mut config = lab.config(scheme);
        config.record_acks = true;
        config.lossless = false;
        config.buffer = Bytes(100_000);
        config.retransmission_timeout = Span::from_us(100);
        let alone = lab.run(&config, &here).1;
        assert!(alone.flows.iter().any(|flow| flow.fct.is_some()));
        for seed in 2..5 {
            let elsewhere = local(&mut Draws(seed), 6, 60 * seed);
            let all = lab.run(&config, &[&elsewhere[..], &here].concat()).1;
            assert_eq!(
                of_first_switch(&lab, &all),
                of_first_switch(&lab, &alone),
                "{scheme}, {seed}"
            );
        }
    }
}
