//! Whole runs of messages over rails: accounts, policies, drops, rails that fail.

use std::sync::Arc;

use raddle_engine::{
    LinkFault, RunConfig, RunSummary, SetupError,
    rails::{Bus, Card, Rails},
};
use raddle_rails::{Config, Policy, Segmentation};
use raddle_units::{BitRate, Bytes, LinkId, NodeId, Span, Time};
use raddle_wire::native::JobKey;
use raddle_workload::{FlowList, Message};

use crate::{
    common::{Draws, Lab, Log, message},
    rails::two_rails,
};

pub(crate) fn rails(adjust: impl Fn(&mut Rails)) -> Rails {
    let mut protocol = Config::new(1, JobKey::new([0; 16]), 0, 1, 1, Vec::new());
    protocol.segment = 900;
    protocol.heartbeat = Span::from_ms(1);
    protocol.give_up = Span::from_ms(20);
    protocol.patience = Span::from_us(100);
    protocol.lateness = Span::from_us(2);
    let mut rails = Rails {
        protocol,
        bus: Bus::default(),
        card: Card::default(),
        room: 0,
        around: Bytes(0),
        buffers: 4,
        plain_classes: Vec::new(),
    };
    adjust(&mut rails);
    rails
}

/// Messages of all sizes between all pairs of hosts, from several ports, within a millisecond.
fn traffic(hosts: &[NodeId], seed: u64, count: u64) -> Vec<Message> {
    let mut draws = Draws(seed);
    let mut messages: Vec<Message> = (0..count)
        .map(|_| {
            let src = draws.below(hosts.len() as u64) as usize;
            let other = 1 + draws.below(hosts.len() as u64 - 1) as usize;
            let power = 1 + draws.below(17);
            let bytes = 1 + draws.below(1 << power);
            let start = Time(draws.below(1_000_000_000));
            let dst = hosts[(src + other) % hosts.len()];
            let class = draws.below(3) as u8;
            Message {
                class,
                ..message(start, hosts[src], dst, bytes)
            }
        })
        .collect();
    messages.sort_by_key(|message| message.start);
    messages
}

fn drive(lab: &Lab, config: &RunConfig, messages: &[Message]) -> (RunSummary, Log) {
    let names = ["a", "b", "c"].map(str::to_owned).to_vec();
    lab.drive(config, &mut FlowList::new(messages.to_vec(), names))
        .unwrap()
}

pub(crate) fn config(lab: &Lab, rails: Rails) -> RunConfig {
    RunConfig {
        rails: Some(Arc::new(rails)),
        ..lab.config("none")
    }
}

/// Every message comes once, whatever is chosen and cut; no byte appears or vanishes (`Lab::drive` looks), and a second run is
/// the same.
#[test]
fn all_messages_come_under_every_policy() {
    let lab = Lab::new(two_rails(4, false));
    let messages = traffic(lab.hosts(), 7, 300);
    let bytes: u64 = messages.iter().map(|message| message.size.0).sum();
    let policies = [
        Policy::Dynamic,
        Policy::Static,
        Policy::Unidirectional { send: 1 },
    ];
    for policy in policies {
        for segmentation in [Segmentation::WaterFill, Segmentation::Equal] {
            for room in [0, 2] {
                let rails = rails(|rails| {
                    (rails.protocol.policy, rails.room) = (policy, room);
                    rails.protocol.segmentation = segmentation;
                    rails.bus.read = (room > 0).then_some(BitRate::from_gbps(120));
                    rails.bus.shared = room > 0;
                    rails.card.both_ways = (room > 0).then_some(BitRate::from_gbps(150));
                    rails.card.turn = Span::from_ns(u64::from(room) * 20);
                });
                let config = config(&lab, rails);
                let (summary, log) = drive(&lab, &config, &messages);
                assert_eq!(summary.flows_finished, messages.len() as u64, "{policy:?}");
                assert_eq!(summary.payload_delivered, bytes);
                assert_eq!((summary.segments_resent, summary.drops), (0, 0));
                assert_eq!(drive(&lab, &config, &messages), (summary, log));
            }
        }
    }
}

/// One way: what is sent on the other host's rail is not data.
#[test]
fn unidirectional_hosts_send_on_their_half() {
    let lab = Lab::new(two_rails(2, false));
    let [low, high] = [lab.hosts()[0], lab.hosts()[1]];
    let plan = rails(|rails| rails.protocol.policy = Policy::Unidirectional { send: 1 });
    let messages = [(low, high), (high, low)].map(|(a, b)| message(Time(0), a, b, 1 << 20));
    let (_, log) = drive(&lab, &config(&lab, plan), &messages);
    let sent = |node: NodeId, port: u16| {
        let of = log
            .ports
            .iter()
            .find(|it| (it.node, it.port) == (node, port));
        of.unwrap().tx_bytes
    };
    assert!(sent(low, 1) > 1 << 20 && sent(low, 2) < 1 << 19);
    assert!(sent(high, 2) > 1 << 20 && sent(high, 1) < 1 << 19);
}

/// Switches that drop: what is lost comes again, by whatever rail.
#[test]
fn what_a_full_switch_drops_is_sent_again() {
    let lab = Lab::new(two_rails(4, false));
    let config = RunConfig {
        lossless: false,
        buffer: Bytes(20_000),
        ..config(&lab, rails(|_| {}))
    };
    let hosts = lab.hosts();
    let messages: Vec<Message> = hosts[1..]
        .iter()
        .map(|&host| message(Time(0), host, hosts[0], 1 << 20))
        .collect();
    let (summary, _) = drive(&lab, &config, &messages);
    assert_eq!(summary.flows_finished, 3);
    assert!(
        summary.drops > 0 && summary.segments_resent > 0,
        "{summary:?}"
    );
}

/// Each link of both ends, for ever or for a while, with and without room for segments that a dead card would hold.
#[test]
fn a_lost_rail_costs_no_message() {
    let lab = Lab::new(two_rails(2, false));
    let hosts = lab.hosts();
    let messages = [message(Time(0), hosts[0], hosts[1], 4 << 20); 2];
    for link in 0..4 {
        for up in [None, Some(Time(1_500_000_000))] {
            for room in [0, 2] {
                let (link, down) = (LinkId(link), Time(100_000_000));
                let config = RunConfig {
                    faults: vec![LinkFault { link, down, up }],
                    ..config(
                        &lab,
                        rails(|rails| {
                            rails.room = room;
                            rails.card.turn = Span::from_ns(u64::from(room) * 20);
                        }),
                    )
                };
                let (summary, _) = drive(&lab, &config, &messages);
                assert_eq!(summary.flows_finished, 2, "{link:?} {up:?} {room}");
                assert_eq!(summary.payload_delivered, 8 << 20);
            }
        }
    }
}

/// No rail is left: the message is recorded as unfinished after the time set, and the run ends.
#[test]
fn without_any_rail_a_run_ends() {
    let lab = Lab::new(two_rails(2, false));
    let hosts = lab.hosts();
    let (down, up) = (Time(100_000_000), None);
    let faults = [0, 1].map(|link| LinkFault {
        link: LinkId(link),
        down,
        up,
    });
    let config = RunConfig {
        faults: faults.to_vec(),
        ..config(&lab, rails(|_| {}))
    };
    let late = message(Time(60_000_000_000), hosts[0], hosts[1], 8);
    let messages = [message(Time(0), hosts[0], hosts[1], 4 << 20), late];
    let (summary, log) = drive(&lab, &config, &messages);
    assert_eq!((summary.flows_started, summary.flows_finished), (2, 0));
    assert!(log.flows.iter().all(|flow| flow.fct.is_none()));
    assert!(summary.end_ps < 100_000_000_000, "{summary:?}");
}

#[test]
fn settings_that_contradict_themselves_are_refused() {
    let lab = Lab::new(two_rails(2, false));
    let hosts = lab.hosts();
    let run = |rails: Rails, class: u8| {
        let message = Message {
            class,
            ..message(Time(0), hosts[0], hosts[1], 8)
        };
        let mut flows = FlowList::new(vec![message], vec!["flow".to_owned()]);
        lab.drive(&config(&lab, rails), &mut flows).unwrap_err()
    };
    let unbuffered = run(rails(|rails| rails.buffers = 0), 0);
    assert!(
        matches!(unbuffered, SetupError::Rails { .. }),
        "{unbuffered}"
    );
    let port = run(rails(|_| {}), 64);
    assert!(port.to_string().contains("class 64"), "{port}");
    let hpcc = run(rails(|rails| rails.protocol.scheme = "hpcc".to_owned()), 0);
    assert!(hpcc.to_string().contains("telemetry"), "{hpcc}");
}
