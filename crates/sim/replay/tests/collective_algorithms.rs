//! Times of collective algorithms, beside their expressions in LogGP (Alexandrov et al. 1995).

use std::sync::Arc;

use raddle_engine::{Network, Progress, Semantics};
use raddle_fabric::{Fabric, LeafSpine, RailOptimised};
use raddle_replay::{
    Algorithms, Machine, Noise, Prepared, Program, ReplayCosts, ReplaySettings, replay,
};
use raddle_trace::{
    Action, Collective, CollectiveKind, Event, Interval, Message, Trace, Wildcards,
};
use raddle_units::{BitRate, Bytes, NodeId, Span};
use raddle_workload::{IdealNetwork, drive_ideal};

const NETWORK: IdealNetwork = IdealNetwork {
    rate: BitRate(100_000_000_000),
    latency: Span(2_000_000),
};

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

fn event(action: Action) -> Event {
    let at = Interval::instant(0);
    Event { at, action }
}

/// A rank per host.
fn trace(ranks: Vec<Vec<Event>>) -> Trace {
    let size = ranks.len() as u32;
    Trace {
        ranks,
        placement: (0..size).collect(),
        hosts: (0..size).map(|host| format!("h{host}")).collect(),
        communicators: vec![(0..size).collect()],
        ..Trace::default()
    }
}

fn collective(kind: CollectiveKind, ranks: u32, bytes: u64) -> Trace {
    let call = Collective {
        kind,
        comm: 0,
        bytes: Bytes(bytes),
        root: kind.has_root().then_some(0),
    };
    let own = vec![event(Action::Collective {
        call,
        request: None,
    })];
    trace(vec![own; ranks as usize])
}

fn program(trace: &Trace, algorithm: &str) -> Program {
    let mut algorithms = Algorithms::default();
    algorithms.choose(algorithm).unwrap();
    let prepared = Prepared::new(trace, &algorithms).unwrap();
    Program::new(&prepared, None, &settings().costs)
}

fn hosts(ranks: u32) -> Vec<NodeId> {
    (0..ranks).map(NodeId).collect()
}

/// Until the last rank is through, in ps, where messages do not disturb each other.
fn ideal_ps(kind: CollectiveKind, ranks: u32, bytes: u64, algorithm: &str) -> u64 {
    let program = program(&collective(kind, ranks, bytes), algorithm);
    let (hosts, settings) = (hosts(ranks), settings());
    let mut machine = Machine::new(&program, &hosts, &settings).unwrap();
    drive_ideal(&mut machine, NETWORK, u64::MAX, |_, _| {});
    let ends = machine.ends().unwrap();
    ends.into_iter().map(|end| end.0).max().unwrap_or(0)
}

/// What a message costs its sender, the network and its receiver, in ps: o_s and o_r each with a copy of what is eager, and
/// L + G bytes.
fn loggp(bytes: u64) -> (u64, u64, u64) {
    let costs = settings().costs;
    let eager = Bytes(bytes) <= costs.eager_limit;
    let copy = if eager {
        costs.host.copy_per_byte.0 * bytes
    } else {
        0
    };
    let size = Bytes(bytes + costs.host.envelope.0);
    let wire = NETWORK.rate.transmission_time(size).0 + NETWORK.latency.0;
    (
        costs.host.send_overhead.0 + copy,
        wire,
        costs.host.receive_overhead.0 + copy,
    )
}

#[track_caller]
fn near(found: u64, expected: u64, share: f64, what: &str) {
    let off = found as f64 / expected as f64 - 1.0;
    assert!(
        off.abs() < share,
        "{what}: {found} ps, expected {expected} ps"
    );
}

/// All ranks do the same in each of 2 (p - 1) steps: they send a p-th of the operand and take one in.
#[test]
fn a_ring_takes_the_time_of_its_steps() {
    for ranks in [2, 5, 8, 13, 16] {
        for bytes in [80, 40_000, 4 << 20] {
            let (send, wire, receive) = loggp(u64::div_ceil(bytes, u64::from(ranks)));
            let expected = 2 * u64::from(ranks - 1) * (send + wire + receive);
            let found = ideal_ps(CollectiveKind::Allreduce, ranks, bytes, "allreduce=ring");
            near(found, expected, 0.01, &format!("{ranks} ranks, {bytes} B"));
        }
    }
}

/// A half of the operand in one chunk climbs p = 2^k ranks in k steps and comes down in k. A parent of two takes them in one
/// after the other and sends to them one after the other; the root has one child. On the way up that is k o_s and
/// (2 k - 1) o_r, on the way down to the child that comes last (2 k - 1) o_s and k o_r. The other half does the same at
/// other ranks at the same time.
#[test]
fn two_trees_take_the_time_of_their_longest_way() {
    for steps in 1..=6 {
        for bytes in [16, 2_000, 100_000] {
            let (send, wire, receive) = loggp(bytes / 2);
            let expected = 2 * steps * wire + (3 * steps - 1) * (send + receive);
            let kind = CollectiveKind::Allreduce;
            let found = ideal_ps(kind, 1 << steps, bytes, "allreduce=double-tree");
            let what = format!("{} ranks, {bytes} B", 1 << steps);
            near(found, expected, 0.01, &what);
        }
    }
}

/// Recursive doubling: log2 p exchanges of the whole operand. Doubling shares: log2 p exchanges of 1, 2, 4, ... shares.
#[test]
fn doubling_takes_the_time_of_its_exchanges() {
    for steps in 1..=5 {
        let (send, wire, receive) = loggp(20_000);
        let kind = CollectiveKind::Allreduce;
        let found = ideal_ps(kind, 1 << steps, 20_000, "allreduce=recursive-doubling");
        near(found, steps * (send + wire + receive), 0.01, "allreduce");
        let expected = (0..steps).map(|step| {
            let (send, wire, receive) = loggp(500 << step);
            send + wire + receive
        });
        let kind = CollectiveKind::Allgather;
        let found = ideal_ps(kind, 1 << steps, 500, "allgather=recursive-doubling");
        near(found, expected.sum(), 0.01, "allgather");
    }
}

/// The first of c chunks passes p - 1 ranks; each rank hands one on every o_r + o_s, and the others follow it.
#[test]
fn chunks_follow_each_other_through_a_chain() {
    let (ranks, chunks) = (6, 16);
    let (send, wire, receive) = loggp(128 << 10);
    let expected = (ranks - 1) * (send + wire + receive) + (chunks - 1) * (send + receive);
    let kind = CollectiveKind::Bcast;
    let found = ideal_ps(kind, ranks as u32, chunks * (128 << 10), "bcast=ring");
    near(found, expected, 0.01, "chain");
}

/// The last of p - 1 blocks leaves after all sends; it is taken in when the others are.
#[test]
fn an_alltoall_at_once_pays_for_all_sends_and_receives() {
    let (ranks, block) = (9, 1_000);
    let (send, wire, receive) = loggp(block);
    let expected = (ranks - 1) * send + wire + receive;
    let kind = CollectiveKind::Alltoall;
    let found = ideal_ps(kind, ranks as u32, ranks * block, "alltoall=linear");
    assert!((expected..=expected + (ranks - 2) * receive).contains(&found));
}

fn on_a_switch(ranks: u32) -> Fabric {
    let fabric = LeafSpine {
        leaves: 1,
        spines: 1,
        hosts_per_leaf: ranks,
        links_per_spine: 1,
        host_rate: BitRate::from_gbps(100),
        fabric_rate: BitRate::from_gbps(100),
        delay: Span::from_ns(500),
        radix: None,
    };
    fabric.build().unwrap()
}

fn simulated_s(trace: &Trace, algorithm: &str) -> f64 {
    time_s(
        trace,
        algorithm,
        on_a_switch(trace.ranks.len() as u32),
        &settings(),
    )
}

fn time_s(trace: &Trace, algorithm: &str, fabric: Fabric, settings: &ReplaySettings) -> f64 {
    let ranks = trace.ranks.len() as u32;
    let fabric = Arc::new(fabric);
    let network = Network::new(fabric, Semantics::CORRECTED, settings.costs.mtu).unwrap();
    let program = program(trace, algorithm);
    let done = replay(
        &network,
        &program,
        &hosts(ranks),
        settings,
        1,
        &Progress::default(),
    );
    done.unwrap().time.time_s
}

/// On a switch a step of the ring takes as long as two ranks that exchange one of its messages: acknowledgements share
/// links with messages in both.
#[test]
fn a_ring_on_an_idle_switch_takes_the_time_of_its_messages() {
    for ranks in [2_u32, 5, 8, 13, 16] {
        let share = 1 << 18;
        let message = |peer| Message {
            peer,
            tag: 0,
            comm: 0,
            bytes: Bytes(share),
        };
        let (request, any) = (None, Wildcards::default());
        let exchange = |peer| {
            let message = message(peer);
            let send = event(Action::Send { message, request });
            let receive = event(Action::Receive {
                message,
                request,
                any,
            });
            vec![send, receive]
        };
        let both = trace(vec![exchange(1), exchange(0)]);
        let one = simulated_s(&both, "allreduce=ring");
        let bytes = share * u64::from(ranks);
        let ring = collective(CollectiveKind::Allreduce, ranks, bytes);
        let found = simulated_s(&ring, "allreduce=ring");
        let expected = f64::from(2 * (ranks - 1)) * one;
        let off = found / expected - 1.0;
        assert!(off.abs() < 0.01, "{ranks} ranks: {found} s, {expected} s");
    }
}

/// Long operands: a rank inside one of the trees takes in twice its half on the way up and once on the way down, as a leaf
/// of the other once more on the way down: twice the operand in all, whatever the number of ranks. Filling the pipeline
/// takes 2 log2 p of its 256 chunks more, and chunks that share a card leave in turn rather than one by one. One tree with the
/// whole operand could not take less than three times the operand.
#[test]
fn two_trees_use_the_links_whatever_the_number_of_ranks() {
    let bytes = 64_u64 << 20;
    let operand_s = bytes as f64 * 8.0 / 100e9;
    for ranks in [4, 8, 16] {
        let trees = collective(CollectiveKind::Allreduce, ranks, bytes);
        let found = simulated_s(&trees, "allreduce=double-tree") / operand_s;
        assert!(
            (2.0..2.7).contains(&found),
            "{ranks} ranks: {found} operands"
        );
    }
}

/// Two GPUs of a server hand a message on at the rate of the server's links, not of their cards; two of different servers at
/// that of the cards.
#[test]
fn a_message_inside_a_server_has_the_rate_of_its_links() {
    let mut settings = settings();
    settings.costs.nic_gap = Span::ZERO;
    let bytes: u64 = 32 << 20;
    let message = |peer| Message {
        peer,
        tag: 0,
        comm: 0,
        bytes: Bytes(bytes),
    };
    let (request, any) = (None, Wildcards::default());
    for (target, gbps) in [(1, 800.0), (2, 100.0)] {
        let mut ranks = vec![Vec::new(); 4];
        ranks[0].push(event(Action::Send {
            message: message(target),
            request,
        }));
        ranks[target as usize].push(event(Action::Receive {
            message: message(0),
            request,
            any,
        }));
        let fabric = RailOptimised {
            servers: 2,
            gpus_per_server: 2,
            servers_per_group: 2,
            spines: 1,
            links_per_spine: 1,
            host_rate: BitRate::from_gbps(100),
            fabric_rate: BitRate::from_gbps(100),
            delay: Span::from_ns(500),
            server_links: true,
            server_rate: BitRate::from_gbps(800),
            server_delay: Span::from_ns(100),
            radix: None,
        };
        let found = time_s(
            &trace(ranks),
            "allreduce=ring",
            fabric.build().unwrap(),
            &settings,
        );
        let expected = bytes as f64 * 8.0 / gbps / 1e9;
        // Heads of packets take 1 to 2 %.
        let share = found / expected;
        assert!(
            (1.0..1.03).contains(&share),
            "{found} s, expected {expected} s"
        );
    }
}
