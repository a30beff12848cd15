use std::sync::Arc;

use raddle_fabric::LeafSpine;
use raddle_schedule::{Join, Scope, Settings, Variant};
use raddle_trace::{
    Action, Collective, CollectiveKind, Event, Interval, Message, Pairing, Trace, Wildcards,
};
use raddle_units::{BitRate, Bytes, NodeId, Span};
use raddle_workload::{IdealNetwork, drive_ideal};

use super::*;
use raddle_engine::Semantics;

/// Calls of ranks, each `gap` ns after the one before, without a time of their own.
struct Calls {
    ranks: Vec<Vec<Event>>,
    now: Vec<u64>,
    requests: Vec<u32>,
}

impl Calls {
    fn new(ranks: usize) -> Self {
        Self {
            ranks: vec![Vec::new(); ranks],
            now: vec![0; ranks],
            requests: vec![0; ranks],
        }
    }

    fn push(&mut self, rank: u32, gap: u64, action: Action) {
        let now = &mut self.now[rank as usize];
        *now += gap;
        let at = Interval::instant(*now);
        self.ranks[rank as usize].push(Event { at, action });
    }

    fn request(&mut self, rank: u32) -> u32 {
        let number = &mut self.requests[rank as usize];
        *number += 1;
        *number
    }

    fn start_send(&mut self, rank: u32, peer: u32, bytes: u64) -> u32 {
        let request = self.request(rank);
        let message = message(peer, bytes);
        let request = Some(request);
        self.push(rank, 0, Action::Send { message, request });
        self.requests[rank as usize]
    }

    fn start_receive(&mut self, rank: u32, peer: u32, bytes: u64) -> u32 {
        let request = Some(self.request(rank));
        let (message, any) = (message(peer, bytes), Wildcards::default());
        let action = Action::Receive {
            message,
            request,
            any,
        };
        self.push(rank, 0, action);
        self.requests[rank as usize]
    }

    fn wait(&mut self, rank: u32, requests: &[u32]) {
        let requests = requests.into();
        self.push(rank, 0, Action::Wait { requests });
    }

    fn trace(self, per_host: u32) -> Trace {
        let ranks = self.ranks.len() as u32;
        Trace {
            ranks: self.ranks,
            placement: (0..ranks).map(|rank| rank / per_host).collect(),
            hosts: (0..ranks.div_ceil(per_host))
                .map(|host| format!("h{host}"))
                .collect(),
            communicators: vec![(0..ranks).collect()],
            ..Trace::default()
        }
    }
}

fn message(peer: u32, bytes: u64) -> Message {
    Message {
        peer,
        tag: 0,
        comm: 0,
        bytes: Bytes(bytes),
    }
}

fn settings() -> ReplaySettings {
    ReplaySettings {
        scheme: "none".to_owned(),
        costs: ReplayCosts::default(),
        sockets: 1,
        processors: None,
        algorithms: Algorithms::default(),
        noise: Noise {
            gap_share: 0.0,
            start_skew: Span::ZERO,
        },
        seed: 1,
    }
}

const NETWORK: IdealNetwork = IdealNetwork {
    rate: BitRate(100_000_000_000),
    latency: Span(1_000_000),
};

/// Ends of all ranks in ps, on a network without contention.
fn ends(trace: &Trace, variant: Option<Settings<'_>>, settings: &ReplaySettings) -> Vec<u64> {
    let prepared = Prepared::new(trace, &Algorithms::default()).unwrap();
    let plan = variant.map(|variant| Plan::new(&prepared, &trace.placement, &variant).unwrap());
    let program = Program::new(&prepared, plan.as_ref(), &settings.costs);
    let hosts: Vec<NodeId> = trace.placement.iter().map(|&host| NodeId(host)).collect();
    let mut machine = Machine::new(&program, &hosts, settings).unwrap();
    drive_ideal(&mut machine, NETWORK, u64::MAX, |_, _| {});
    machine.ends().unwrap().iter().map(|end| end.0).collect()
}

/// A message's time in the network.
fn wire(bytes: u64) -> u64 {
    let size = Bytes(bytes + settings().costs.host.envelope.0);
    NETWORK.rate.transmission_time(size).0 + NETWORK.latency.0
}

/// o_s + copy + L + G + o_r + copy, there and back, with a compute gap between (LogGP, Alexandrov et al. 1995).
#[test]
fn a_ping_pong_takes_its_overheads_and_latencies() {
    let costs = settings().costs;
    for bytes in [0, 8, 4096, 1 << 20] {
        let mut calls = Calls::new(2);
        let (message, request, any) = (message(1, bytes), None, Wildcards::default());
        calls.push(0, 700, Action::Send { message, request });
        let back = Message { peer: 0, ..message };
        calls.push(
            1,
            0,
            Action::Receive {
                message: back,
                request,
                any,
            },
        );
        calls.push(
            1,
            5_000,
            Action::Send {
                message: back,
                request,
            },
        );
        calls.push(
            0,
            0,
            Action::Receive {
                message,
                request,
                any,
            },
        );
        let copy = if Bytes(bytes) <= costs.eager_limit {
            costs.host.copy_per_byte.0 * bytes
        } else {
            0
        };
        let one =
            costs.host.send_overhead.0 + costs.host.receive_overhead.0 + 2 * copy + wire(bytes);
        let found = ends(&calls.trace(1), None, &settings());
        // One machine's: a packet's size is rounded up.
        assert_eq!(found[0], 700_000 + 2 * one + 5_000_000, "{bytes} B");
    }
}

/// A late receiver's call is short, an early one's ends with the message; a started barrier takes no time of its own.
#[test]
fn calls_have_the_times_that_they_take() {
    let costs = settings().costs.host;
    let mut calls = Calls::new(2);
    let (message, request, any) = (message(1, 8), None, Wildcards::default());
    calls.push(0, 700, Action::Send { message, request });
    let message = Message { peer: 0, ..message };
    let receive = Action::Receive {
        message,
        request,
        any,
    };
    calls.push(1, 0, receive);
    for rank in [0, 1] {
        let call = Collective {
            kind: CollectiveKind::Barrier,
            comm: 0,
            bytes: Bytes(0),
            root: None,
        };
        let request = Some(calls.request(rank));
        calls.push(rank, 0, Action::Collective { call, request });
        calls.wait(rank, &[1]);
        calls.push(rank, 50, Action::End);
    }
    let trace = calls.trace(1);
    let prepared = Prepared::new(&trace, &Algorithms::default()).unwrap();
    let program = Program::new(&prepared, None, &settings().costs);
    let (hosts, settings) = ([NodeId(0), NodeId(1)], settings());
    let mut machine = Machine::new(&program, &hosts, &settings).unwrap();
    drive_ideal(&mut machine, NETWORK, u64::MAX, |_, _| {});
    let end = machine.ends().unwrap();
    let found = machine.into_calls();
    let sent = 700_000 + costs.send_overhead.0 + 8 * costs.copy_per_byte.0;
    let taken = sent + wire(8) + costs.receive_overhead.0 + 8 * costs.copy_per_byte.0;
    let ns = |ps: u64| ps / 1000;
    assert_eq!(
        found[0][..2],
        [Interval::new(700, ns(sent)), Interval::instant(ns(sent))]
    );
    assert_eq!(
        found[1][..2],
        [Interval::new(0, ns(taken)), Interval::instant(ns(taken))]
    );
    // The receiver comes to the barrier last, so its message is what the sender waits for.
    let barrier = taken + costs.send_overhead.0 + wire(0) + costs.receive_overhead.0;
    assert_eq!(found[0][2], Interval::new(ns(sent), ns(barrier)));
    assert_eq!(found[0][3], Interval::instant(ns(barrier + 50_000)));
    assert_eq!(end[0], Time(barrier + 50_000));
    assert_eq!((found[0].len(), found[1].len()), (4, 4));
}

/// What a shared processor costs, in ps: switching, and a look.
fn turns() -> (u64, u64) {
    let costs = settings().costs;
    (costs.switch_overhead.0, costs.look_overhead.0)
}

/// Four ranks compute in turns on one processor, and two at a time on two; with as many as ranks none waits for another.
#[test]
fn ranks_take_turns_on_shared_processors() {
    let mut calls = Calls::new(4);
    for _ in 0..3 {
        for rank in 0..4 {
            calls.push(
                rank,
                1_000,
                Action::Wait {
                    requests: [].into(),
                },
            );
        }
    }
    let trace = calls.trace(1);
    let on = |processors| {
        let settings = ReplaySettings {
            processors,
            ..settings()
        };
        ends(&trace, None, &settings)
    };
    // A wait for nothing is none: every rank computes to its end at once.
    let (switch, look) = turns();
    // Who is through looks, gives way, and looks again in the turns of the others.
    let looks = |number: u64| look * number + look * number * number.saturating_sub(1) / 4;
    let turn = |number: u64| 3_000_000 * (number + 1) + switch * number + looks(number);
    assert_eq!(on(Some(1)), [turn(0), turn(1), turn(2), turn(3)]);
    assert_eq!(on(Some(2)), [turn(0), turn(0), turn(1), turn(1)]);
    for enough in [None, Some(4), Some(9)] {
        assert_eq!(on(enough), [3_000_000; 4]);
    }
}

/// Rank 0 waits for rank 1, and gives way to rank 2, which computes longer: rank 0 goes on when rank 2 is through.
#[test]
fn a_message_waits_for_the_processor_of_its_receiver() {
    let costs = settings().costs.host;
    let mut calls = Calls::new(3);
    let (request, any) = (None, Wildcards::default());
    let receive = Action::Receive {
        message: message(1, 8),
        request,
        any,
    };
    calls.push(0, 0, receive);
    let message = message(0, 8);
    calls.push(1, 500, Action::Send { message, request });
    calls.push(2, 90_000, Action::End);
    let shared = ReplaySettings {
        processors: Some(2),
        ..settings()
    };
    let trace = calls.trace(1);
    let taken = costs.receive_overhead.0 + 8 * costs.copy_per_byte.0;
    let (switch, look) = turns();
    assert_eq!(
        ends(&trace, None, &shared)[0],
        90_000_000 + 2 * (switch + look) + taken
    );
    let sent = 500_000 + costs.send_overhead.0 + 8 * costs.copy_per_byte.0;
    assert_eq!(ends(&trace, None, &settings())[0], sent + wire(8) + taken);
}

/// A rank that looks for a message takes it in when it comes, and only then gives its processor to others.
#[test]
fn a_message_that_comes_while_its_receiver_looks_costs_no_turn() {
    let costs = settings().costs.host;
    let mut calls = Calls::new(3);
    let (request, any) = (None, Wildcards::default());
    let receive = Action::Receive {
        message: message(1, 8),
        request,
        any,
    };
    calls.push(0, 0, receive);
    let message = message(0, 8);
    calls.push(1, 500, Action::Send { message, request });
    calls.push(2, 90_000, Action::End);
    let mut shared = ReplaySettings {
        processors: Some(2),
        ..settings()
    };
    shared.costs.look_overhead = Span::from_us(50);
    shared.costs.poll_overhead = Span::from_us(50);
    let trace = calls.trace(1);
    let taken = costs.receive_overhead.0 + 8 * costs.copy_per_byte.0;
    let sent = 500_000 + costs.send_overhead.0 + 8 * costs.copy_per_byte.0;
    assert_eq!(ends(&trace, None, &shared)[0], sent + wire(8) + taken);
}

/// A rank with 1 us to compute waits for a time slice of one that computes for 1 s, not for its end; both take as long as
/// both.
#[test]
fn long_work_is_done_in_slices() {
    let mut calls = Calls::new(2);
    calls.push(0, 1_000_000_000, Action::End);
    calls.push(1, 1_000, Action::End);
    let mut shared = ReplaySettings {
        processors: Some(1),
        ..settings()
    };
    shared.costs.time_slice = Span::from_us(4_000);
    let found = ends(&calls.trace(1), None, &shared);
    let (switch, look) = turns();
    assert_eq!(found[1], 4_000_000_000 + switch + 1_000_000);
    assert_eq!(found[0], 1_000_001_000_000 + 2 * switch + look);
}

/// Two ranks that shared a processor while they were recorded worked half of the time each.
#[test]
fn gaps_of_ranks_that_shared_a_processor_count_once() {
    let mut calls = Calls::new(2);
    for rank in [0, 1] {
        calls.push(rank, 100_000, Action::End);
    }
    let mut trace = calls.trace(1);
    assert_eq!(ends(&trace, None, &settings()), [100_000_000; 2]);
    trace.processors = Some(1);
    assert_eq!(ends(&trace, None, &settings()), [50_000_000; 2]);
    trace.processors = Some(2);
    assert_eq!(ends(&trace, None, &settings()), [100_000_000; 2]);
}

/// Whoever comes first is taken in first, whatever the order of requests.
#[test]
fn a_wait_serves_in_the_order_of_arrival() {
    let costs = settings().costs.host;
    let sizes = [50_000, 10, 20_000, 3_000];
    let mut calls = Calls::new(5);
    let mut requests = Vec::new();
    for (peer, &bytes) in (1..).zip(&sizes) {
        requests.push(calls.start_receive(0, peer, bytes));
        calls.start_send(peer, 0, bytes);
    }
    calls.wait(0, &requests);
    let mut arrivals: Vec<(u64, u64)> = sizes
        .iter()
        .map(|&bytes| {
            let copy = costs.copy_per_byte.0 * bytes;
            (costs.send_overhead.0 + copy + wire(bytes), bytes)
        })
        .collect();
    arrivals.sort_unstable();
    let free = arrivals.iter().fold(0, |free: u64, &(arrival, bytes)| {
        free.max(arrival) + costs.receive_overhead.0 + costs.copy_per_byte.0 * bytes
    });
    assert_eq!(ends(&calls.trace(1), None, &settings())[0], free);
}

/// Ranks 0 on host 0; 1, 2, 3 on host 1. The joined message for all of them goes to rank 1, who hands parts on.
#[test]
fn a_leader_hands_parts_on() {
    let costs = settings().costs;
    let bytes = 200;
    let mut calls = Calls::new(4);
    for target in [1, 2, 3] {
        calls.start_send(0, target, bytes);
        let request = calls.start_receive(target, 0, bytes);
        calls.wait(target, &[request]);
    }
    calls.push(
        0,
        0,
        Action::Wait {
            requests: [].into(),
        },
    );
    let mut trace = calls.trace(4);
    trace.placement = vec![0, 1, 1, 1];
    trace.hosts = vec!["a".to_owned(), "b".to_owned()];
    let join = Join {
        scope: Scope::RankToNode,
        ..Join::default()
    };
    let both = Settings {
        variant: Variant::Both,
        join,
        ..Settings::default()
    };
    // The first message goes alone to rank 1; the others as one to the leader, rank 1, who is through with its own wait.
    let found = ends(&trace, Some(both), &settings());
    let first = costs.host.send_overhead.0 + costs.host.copy_per_byte.0 * bytes;
    let part = costs.part_overhead.0 + costs.host.local_copy_per_byte.0 * bytes;
    let heads = 12 + 2 * 24;
    let copy = costs.host.copy_per_byte.0 * (2 * bytes + heads);
    let sent = first + costs.host.send_overhead.0 + 2 * part + copy;
    let there = sent + wire(2 * bytes + heads) + costs.host.receive_overhead.0 + copy;
    let taken = costs.host.local_overhead.0 + costs.host.local_copy_per_byte.0 * bytes;
    let hand_on = part + costs.host.local_overhead.0;
    let latency = costs.host.socket_latency.0;
    assert_eq!(found[0], sent);
    assert_eq!(found[2], there + hand_on + latency + taken);
    assert_eq!(found[3], there + 2 * hand_on + latency + taken);
    // In program order nobody hands anything on.
    let plain = ends(&trace, None, &settings());
    let alone = |sends: u64| {
        let receive = costs.host.receive_overhead.0 + costs.host.copy_per_byte.0 * bytes;
        sends * first + wire(bytes) + receive
    };
    assert_eq!(plain, [3 * first, alone(1), alone(2), alone(3)]);
}

#[test]
fn messages_inside_a_host_cost_memory_only() {
    let costs = settings().costs.host;
    let mut calls = Calls::new(2);
    let sent = calls.start_send(0, 1, 1 << 20);
    calls.wait(0, &[sent]);
    let request = calls.start_receive(1, 0, 1 << 20);
    calls.wait(1, &[request]);
    let once = costs.local_overhead.0 + costs.local_copy_per_byte.0 * (1 << 20);
    let trace = calls.trace(2);
    let found = ends(&trace, None, &settings());
    let taken = 2 * once + costs.socket_latency.0;
    assert_eq!(found, [once, taken]);
    // Both are on one socket: each end costs more by what the other rank adds.
    let mut crowded = settings();
    crowded.costs.host.contention_per_rank = Span::from_ns(7);
    let longer = once + 7_000;
    assert_eq!(
        ends(&trace, None, &crowded),
        [longer, 2 * longer + costs.socket_latency.0]
    );
    // Above the limit the sender waits for its receiver, between hosts as before.
    let mut straight = settings();
    straight.costs.local_eager_limit = Bytes(4096);
    assert_eq!(ends(&trace, None, &straight), [taken, taken]);
    let apart = Trace {
        placement: vec![0, 1],
        hosts: vec!["a".to_owned(), "b".to_owned()],
        ..trace
    };
    for eager_limit in [Bytes(64 << 10), Bytes(1 << 20)] {
        let mut plain = settings();
        plain.costs.eager_limit = eager_limit;
        straight.costs.eager_limit = eager_limit;
        assert_eq!(ends(&apart, None, &straight), ends(&apart, None, &plain));
    }
}

#[test]
fn ranks_that_wait_for_each_other_are_told() {
    let mut calls = Calls::new(2);
    for rank in [0, 1] {
        let request = calls.start_receive(rank, 1 - rank, 8);
        calls.wait(rank, &[request]);
        calls.start_send(rank, 1 - rank, 8);
    }
    let prepared = Prepared::new(&calls.trace(1), &Algorithms::default()).unwrap();
    let program = Program::new(&prepared, None, &ReplayCosts::default());
    let hosts = [NodeId(0), NodeId(1)];
    let settings = settings();
    let mut machine = Machine::new(&program, &hosts, &settings).unwrap();
    drive_ideal(&mut machine, NETWORK, u64::MAX, |_, _| {});
    let told = machine.ends().unwrap_err().to_string();
    assert!(
        told.contains("rank 0 waits for ever: 1 of its messages"),
        "{told}"
    );
}

#[test]
fn collectives_become_messages_that_go_together() {
    for ranks in 1..10_u32 {
        for kind in CollectiveKind::ALL {
            for (request, bytes) in [(None, 8), (Some(7), 64_000)] {
                let mut calls = Calls::new(ranks as usize);
                for rank in 0..ranks {
                    let root = kind.has_root().then_some(ranks / 2);
                    let call = Collective {
                        kind,
                        comm: 1,
                        bytes: Bytes(bytes + u64::from(rank)),
                        root,
                    };
                    calls.push(rank, 10, Action::Collective { call, request });
                    if let Some(request) = request {
                        calls.wait(rank, &[request]);
                    }
                    calls.push(rank, 10, Action::End);
                }
                let mut trace = calls.trace(2);
                trace.communicators.push((0..ranks).rev().collect());
                let expanded = expand(&trace, &Algorithms::default(), &Carried::default())
                    .unwrap()
                    .trace;
                expanded.check().unwrap();
                let messages = Pairing::new(&expanded).unwrap();
                assert_eq!(messages.messages().is_empty(), ranks == 1, "{kind}");
                if let Some(root) = kind.has_root().then_some(ranks / 2) {
                    let mut ends = messages.messages().iter();
                    assert!(ranks == 1 || ends.any(|m| m.source == root || m.target == root));
                }
                let found = ends(&trace, None, &settings());
                assert!(found.iter().all(|&end| end >= 20_000));
            }
        }
    }
}

/// Every rank sends to the `count` after it.
fn ring(ranks: u32, count: u32, per_host: u32, steps: u32) -> Trace {
    let mut calls = Calls::new(ranks as usize);
    for _ in 0..steps {
        for rank in 0..ranks {
            calls.push(
                rank,
                20_000,
                Action::Wait {
                    requests: [].into(),
                },
            );
            let mut requests = Vec::new();
            for distance in 1..=count {
                requests.push(calls.start_receive(rank, (rank + ranks - distance) % ranks, 300));
            }
            for distance in 1..=count {
                requests.push(calls.start_send(rank, (rank + distance) % ranks, 300));
            }
            calls.wait(rank, &requests);
        }
    }
    calls.trace(per_host)
}

#[test]
fn the_simulator_replays_every_schedule_and_the_same_each_time() {
    let fabric = LeafSpine {
        leaves: 2,
        spines: 2,
        hosts_per_leaf: 2,
        links_per_spine: 1,
        host_rate: BitRate::from_gbps(100),
        fabric_rate: BitRate::from_gbps(100),
        delay: Span::from_ns(500),
        radix: None,
    };
    let fabric = Arc::new(fabric.build().unwrap());
    let network = Network::new(Arc::clone(&fabric), Semantics::CORRECTED, Bytes(4096)).unwrap();
    let trace = ring(16, 11, 4, 3);
    let prepared = Prepared::new(&trace, &Algorithms::default()).unwrap();
    let placement: RankPlacement = "blocks:4".parse().unwrap();
    let hosts = placement.hosts(&trace, &fabric).unwrap();
    let nodes = RankPlacement::nodes(&hosts, &fabric);
    let noisy = ReplaySettings {
        noise: Noise::default(),
        ..settings()
    };
    let mut messages = Vec::new();
    for variant in Variant::ALL {
        let settings = Settings {
            variant,
            ..Settings::default()
        };
        let plan = Plan::new(&prepared, &hosts, &settings).unwrap();
        assert_eq!(plan.joined() > 0, variant.aggregates());
        let program = Program::new(&prepared, Some(&plan), &noisy.costs);
        let run = |seed, threads| {
            let settings = ReplaySettings {
                seed,
                ..noisy.clone()
            };
            replay(
                &network,
                &program,
                &nodes,
                &settings,
                threads,
                &Progress::default(),
            )
            .unwrap()
        };
        let (one, again) = (run(1, 1), run(1, 3));
        assert_eq!(one, again);
        let Replayed { time: one, calls } = one;
        let run = |seed| run(seed, 1).time;
        for (calls, events) in calls.iter().zip(&trace.ranks) {
            assert_eq!(calls.len(), events.len(), "every call comes back once");
            assert!(calls.is_sorted_by_key(|call| call.start_ns));
        }
        assert!(0.0 < one.mpi_s && one.mpi_s < one.mean_s);
        assert_ne!(one.time_s, run(2).time_s, "the seed varies gaps");
        assert!(one.time_s > 60e-6 && one.time_s < 1e-3, "{one:?}");
        messages.push(one.network_messages);
    }
    // 16 x 11 x 3 messages, of which 3 + 2 + 1 per host stay on it in either direction of the ring.
    let inside = 4 * (3 + 2 + 1) * 3;
    assert_eq!(messages[0], 16 * 11 * 3 - inside);
    assert_eq!(messages[1], messages[0]);
    assert!(messages[2] < messages[0] && messages[3] < messages[0]);
}

/// All receives are waited for, so a rank that comes to its end has every message; between hosts each parcel travels once.
#[test]
fn every_application_comes_to_its_end_with_every_schedule() {
    for application in Application::ALL {
        let generate = Generate {
            application,
            sizes: Sizes::Small,
            ranks: 24,
            per_host: 6,
            exchanges: 2,
            gap: Span::from_us(10),
            seed: 5,
        };
        let trace = generate.trace().unwrap();
        let prepared = Prepared::new(&trace, &Algorithms::default()).unwrap();
        let hosts: Vec<NodeId> = trace.placement.iter().map(|&host| NodeId(host)).collect();
        let remote = |m: &&raddle_trace::Transfer| {
            trace.placement[m.source as usize] != trace.placement[m.target as usize]
        };
        let remote = prepared.pairing.messages().iter().filter(remote).count();
        for variant in Variant::ALL {
            for scope in [Scope::RankToRank, Scope::RankToNode] {
                let join = Join {
                    scope,
                    ..Join::default()
                };
                let schedule = Settings {
                    variant,
                    join,
                    ..Settings::default()
                };
                let plan = Plan::new(&prepared, &trace.placement, &schedule).unwrap();
                assert!(plan.len() <= remote);
                assert_eq!(plan.len() == remote, plan.joined() == 0);
                let settings = settings();
                let program = Program::new(&prepared, Some(&plan), &settings.costs);
                let mut machine = Machine::new(&program, &hosts, &settings).unwrap();
                let sent = drive_ideal(&mut machine, NETWORK, u64::MAX, |_, _| {});
                assert_eq!(sent, plan.len() as u64);
                let last = machine.ends().unwrap().into_iter().max().unwrap();
                assert!(last.0 > 20_000_000, "two gaps of 10 us: {last:?}");
            }
        }
    }
}

#[test]
fn placements_are_told_by_name() {
    let trace = ring(6, 1, 2, 1);
    let fabric = raddle_fabric::dumbbell(2).unwrap();
    let hosts = |name: &str| {
        name.parse::<RankPlacement>()
            .unwrap()
            .hosts(&trace, &fabric)
    };
    assert_eq!(hosts("recorded").unwrap(), [0, 0, 1, 1, 2, 2]);
    assert_eq!(hosts("in-turn").unwrap(), [0, 1, 2, 0, 1, 2]);
    assert_eq!(hosts("blocks:3").unwrap(), [0, 0, 0, 1, 1, 1]);
    let told = hosts("blocks:1").unwrap_err().to_string();
    assert!(told.contains("needs 6 hosts, the fabric has 4"), "{told}");
    for name in ["blocks:0", "blocks:", "by node"] {
        assert!(name.parse::<RankPlacement>().is_err(), "{name}");
    }
}

#[test]
fn what_cannot_be_simulated_is_told() {
    let mut trace = ring(2, 1, 1, 1);
    trace.ranks[1][0].at = Interval::instant(u64::MAX);
    let told = Prepared::new(&trace, &Algorithms::default())
        .unwrap_err()
        .to_string();
    assert!(told.starts_with("rank 1: its trace takes"), "{told}");
}
