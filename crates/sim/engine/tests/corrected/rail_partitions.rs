//! Runs over rails: the cut and the threads change no record, as in `partitions`.

use raddle_engine::{
    LinkFault, Partition, PortSeries, RunConfig,
    rails::{PingPong, Rails, Streams, multi_plane},
};
use raddle_fabric::{Dumbbell, Fabric, LeafSpine};
use raddle_rails::{Ask, Policy, Segmentation};
use raddle_unicast::PathChoice;
use raddle_units::{BitRate, Bytes, LinkId, NodeId, PortId, Span, Time};
use raddle_workload::{FlowList, Message};

use crate::{
    common::{Draws, Lab, message},
    partitions::{graph, hold_equal, pick},
    rail_runs::{self, rails},
    rails::two_rails,
};

/// One to four networks, of equal rates or not, that meet in the hosts.
fn fabric(draws: &mut Draws) -> Fabric {
    let delay = Span([1_000_000, 300_000, 0, 123_456][draws.below(4) as usize]);
    let rate = BitRate::from_gbps(100);
    let plane = match draws.below(3) {
        0 => return two_rails(4, draws.below(2) == 0),
        1 => Dumbbell {
            host_rate: rate,
            fabric_rate: rate,
            delay,
            ..Dumbbell::new(3)
        }
        .build(),
        _ => LeafSpine {
            leaves: 2,
            spines: 2,
            hosts_per_leaf: 3,
            links_per_spine: 1,
            host_rate: rate,
            fabric_rate: rate,
            delay,
            radix: None,
        }
        .build(),
    };
    let rates: Vec<_> = (0..1 + draws.below(4))
        .map(|_| BitRate::from_gbps([100, 100, 40][draws.below(3) as usize]))
        .collect();
    multi_plane(&plane.unwrap(), &rates).unwrap()
}

/// Whatever a connection may be told, and whatever may be in the way of its host.
fn settings(draws: &mut Draws) -> Rails {
    let mut one_of = |values: &[u64]| values[draws.below(values.len() as u64) as usize];
    let rate = |gbps: u64| (gbps > 0).then(|| BitRate::from_gbps(gbps));
    let mut rails = rails(|_| {});
    rails.protocol.policy = match one_of(&[0, 1, 2]) {
        0 => Policy::Dynamic,
        1 => Policy::Static,
        _ => Policy::Unidirectional { send: 1 },
    };
    rails.protocol.segmentation = match one_of(&[0, 1]) {
        0 => Segmentation::WaterFill,
        _ => Segmentation::Equal,
    };
    rails.protocol.ask = match one_of(&[0, 1]) {
        0 => Ask::Hint,
        _ => Ask::Wait,
    };
    rails.protocol.scheme = ["swift", "timely", "none"][one_of(&[0, 1, 2]) as usize].to_owned();
    rails.protocol.stale = Span::from_us(one_of(&[1, 1000]));
    rails.protocol.short = Bytes(one_of(&[0, 4096]));
    rails.protocol.ack_delay = Span::from_us(one_of(&[0, 5, 25]));
    rails.protocol.send_queue = one_of(&[1, 3, 256]) as usize;
    // Hosts that give up soon do so where a link is lost for a while, and where nothing is lost but much is waited for.
    let heartbeat = one_of(&[20, 100, 1000]);
    rails.protocol.heartbeat = Span::from_us(heartbeat);
    rails.protocol.give_up = Span::from_us(heartbeat * one_of(&[3, 20]));
    rails.bus.read = rate(one_of(&[0, 120, 250]));
    rails.bus.write = rate(one_of(&[0, 150, 250]));
    rails.bus.shared = one_of(&[0, 1]) == 1;
    rails.bus.cut = Span::from_ns(one_of(&[0, 50]));
    rails.card.both_ways = rate(one_of(&[0, 150]));
    rails.card.turn = Span::from_ns(one_of(&[0, 20]));
    rails.room = one_of(&[0, 1, 3]) as u32;
    rails.around = Bytes(one_of(&[0, 66]));
    rails.buffers = one_of(&[1, 4, 64]) as u32;
    rails
}

fn config(lab: &Lab, draws: &mut Draws) -> RunConfig {
    let links = lab.network.fabric.links().len() as u64;
    let mut config = RunConfig {
        seed: draws.next(),
        record_paths: draws.below(3) == 0,
        sample_interval: [Span::ZERO, Span(3_333_333)][draws.below(2) as usize],
        port_series: [
            PortSeries::None,
            PortSeries::Busiest(3),
            PortSeries::Ports([1, 5, 3].map(PortId).to_vec()),
        ][draws.below(3) as usize]
            .clone(),
        nic_gap: [Span::ZERO, Span::from_ns(300)][draws.below(2) as usize],
        end: Some(Time(5_000_000_000)),
        ..rail_runs::config(lab, settings(draws))
    };
    if draws.below(2) == 0 {
        config.path_choice = PathChoice::DModK;
    }
    if draws.below(2) == 0 {
        config.lossless = false;
        config.buffer = Bytes(20_000 + draws.below(60_000));
    }
    for _ in 0..draws.below(4) {
        let down = Time(draws.below(100) * 1_000_000);
        config.faults.push(LinkFault {
            link: LinkId(draws.below(links) as u32),
            down,
            up: (draws.below(2) == 0).then(|| Time(down.0 + draws.below(200) * 1_000_000)),
        });
    }
    if draws.below(4) == 0 {
        config.end = Some(Time(draws.below(150_000_000)));
    }
    config
}

/// Many at equal times, to a host that all send to and to others, from several ports.
fn messages(hosts: &[NodeId], draws: &mut Draws) -> Vec<Message> {
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
            let size = [1, 900, 30_000, 150_000][draws.below(4) as usize];
            let start = Time(draws.below(4) * 10_000_000 + draws.below(2) * draws.below(1_000_000));
            messages.push(Message {
                tag,
                class: draws.below(3) as u8,
                ..message(start, src, dst, size)
            });
        }
    }
    messages.sort_by_key(|message| message.start);
    messages
}

#[test]
fn messages_over_rails_do_not_show_the_cut() {
    let (mut resent, mut lost, mut whole) = (0, 0, 0);
    for seed in 6000..6100 {
        let mut draws = Draws(seed);
        let lab = Lab::new(fabric(&mut draws));
        let config = config(&lab, &mut draws);
        let messages = messages(lab.hosts(), &mut draws);
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        let outcome = hold_equal(seed, &lab, &config, || {
            Box::new(FlowList::new(messages.clone(), names.clone()))
        });
        let (summary, _) = outcome.unwrap();
        resent += summary.segments_resent;
        lost += summary.flows_started - summary.flows_finished;
        whole += summary.flows_finished;
    }
    assert!(
        resent > 500 && lost > 100 && whole > 500,
        "{resent} resent, {lost} lost, {whole} whole"
    );
}

#[test]
fn programs_over_rails_do_not_show_the_cut() {
    for seed in 6100..6130 {
        let mut draws = Draws(seed);
        let lab = Lab::new(fabric(&mut draws));
        let mut config = config(&lab, &mut draws);
        let hosts = lab.hosts().to_vec();
        let way = (hosts[0], hosts[hosts.len() - 1]);
        let size = Bytes(1 + draws.below(20_000));
        let choose = Span(draws.below(2) * draws.below(3_000_000));
        match draws.below(3) {
            0 => {
                let ways = (0..4).map(|stream| [way, (way.1, way.0)][stream % 2]);
                let ways: Vec<_> = ways.collect();
                config.end = Some(Time(150_000_000));
                hold_equal(seed, &lab, &config, || {
                    let window = 1 + seed as u32 % 3;
                    Box::new(Streams::new(ways.clone(), size, window, choose))
                })
                .unwrap();
            }
            1 => {
                let rounds = || PingPong::new(way, size, 3, choose, Span::from_us(5));
                hold_equal(seed, &lab, &config, || Box::new(rounds())).unwrap();
                let latency = [1, 3].map(|parts| {
                    let mut rounds = rounds();
                    let config = RunConfig {
                        partition: Partition::Parts(parts),
                        ..config.clone()
                    };
                    lab.drive(&config, &mut rounds).unwrap();
                    rounds.latency()
                });
                assert_eq!(latency[0], latency[1]);
            }
            _ => {
                let graph = graph(&hosts, &mut draws).finish().unwrap();
                hold_equal(seed, &lab, &config, || Box::new(graph.clone())).unwrap();
            }
        }
    }
}
