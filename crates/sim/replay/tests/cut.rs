//! However the hosts of a replay are cut, ranks do the same at the same times.

use raddle_random::Random;
use raddle_replay::{
    Algorithms, Application, Generate, Machine, Noise, Plan, Prepared, Program, ReplayCosts,
    ReplaySettings, Sizes,
};
use raddle_schedule::{Settings, Variant};
use raddle_trace::Interval;
use raddle_units::{BitRate, Bytes, NodeId, Span, Time};
use raddle_workload::{
    Delivery, IdealNetwork, Message, Receiver, Workload, drive_ideal, drive_in_windows,
};

const NETWORK: IdealNetwork = IdealNetwork {
    rate: BitRate(100_000_000_000),
    latency: WINDOW,
};
const WINDOW: Span = Span(2_000_000);

/// What can be told of a replay.
#[derive(Debug, PartialEq)]
struct Told {
    messages: Vec<Message>,
    ends: Vec<Time>,
    calls: Vec<Vec<Interval>>,
    network: (u64, u64),
}

impl Told {
    fn new(mut messages: Vec<Message>, machine: Machine<'_>) -> Self {
        assert!(machine.finished());
        // A host's own messages stay in order.
        messages.sort_by_key(|message| (message.start, message.src));
        Self {
            messages,
            ends: machine.ends().unwrap(),
            network: (machine.network_messages(), machine.network_bytes()),
            calls: machine.into_calls(),
        }
    }
}

fn delivery(message: &Message) -> Delivery {
    Delivery {
        at: NETWORK.delivery(message),
        host: message.dst.host().unwrap(),
        tag: message.tag,
        to: Receiver::Only,
    }
}

fn settings(seed: u64, eager_limit: Bytes, processors: Option<u32>) -> ReplaySettings {
    ReplaySettings {
        scheme: "none".to_owned(),
        costs: ReplayCosts {
            eager_limit,
            ..ReplayCosts::default()
        },
        sockets: 2,
        processors,
        algorithms: Algorithms::default(),
        noise: Noise::default(),
        seed,
    }
}

/// Six kinds of programs with single and joined messages, ranks where `place` has them; `run` gets each with its seed.
fn programs(
    place: impl Fn(u32) -> u32,
    eager_limit: Bytes,
    run: impl Fn(&Program, &[NodeId], u64),
) {
    for (seed, application) in (0..).zip(Application::ALL) {
        let sizes = [Sizes::Large, Sizes::Small][seed as usize % 2];
        let trace = Generate {
            application,
            sizes,
            ranks: 24,
            per_host: 1,
            exchanges: 2,
            gap: Span::from_us(10),
            seed,
        };
        let mut trace = trace.trace().unwrap();
        trace.placement = (0..24).map(&place).collect();
        let prepared = Prepared::new(&trace, &Algorithms::default()).unwrap();
        let hosts: Vec<NodeId> = trace.placement.iter().map(|&host| NodeId(host)).collect();
        for variant in Variant::ALL {
            let schedule = Settings {
                variant,
                ..Settings::default()
            };
            let plan = Plan::new(&prepared, &trace.placement, &schedule).unwrap();
            let costs = settings(seed, eager_limit, None).costs;
            let program = Program::new(&prepared, Some(&plan), &costs);
            run(&program, &hosts, seed);
        }
    }
}

fn in_parts(
    program: &Program,
    hosts: &[NodeId],
    settings: &ReplaySettings,
    parts: usize,
) -> Option<Told> {
    let mut random = Random::new(settings.seed, parts as u64);
    let part: Vec<usize> = hosts.iter().map(|_| random.index(parts)).collect();
    let part_of = |host: NodeId| part[host.0 as usize];
    let mut machine = Machine::new(program, hosts, settings).unwrap();
    let mut network = |message: &Message| vec![delivery(message)];
    let all = usize::MAX;
    let sent = drive_in_windows(&mut machine, parts, &part_of, WINDOW, all, &mut network)?;
    Some(Told::new(sent, machine))
}

/// Senders wait for messages longer than 128 B, of which they hear at the ends of windows.
#[test]
fn ranks_do_not_show_how_their_hosts_are_cut() {
    let eager_limit = Bytes(128);
    for per_host in [1, 6] {
        programs(
            |rank| rank / per_host,
            eager_limit,
            |program, hosts, seed| {
                let settings = settings(seed, eager_limit, None);
                let one = in_parts(program, hosts, &settings, 1).unwrap();
                for parts in [2, 3, hosts.len()] {
                    let cut = in_parts(program, hosts, &settings, parts).unwrap();
                    assert_eq!(one, cut, "{parts} parts of seed {seed}");
                }
            },
        );
    }
}

/// Where no sender waits for a delivery, windows do not show either.
#[test]
fn receivers_take_in_at_once_what_comes() {
    let eager_limit = Bytes(1 << 40);
    for per_host in [1, 6] {
        programs(
            |rank| rank / per_host,
            eager_limit,
            |program, hosts, seed| {
                let settings = settings(seed, eager_limit, None);
                let mut machine = Machine::new(program, hosts, &settings).unwrap();
                let mut sent = Vec::new();
                drive_ideal(&mut machine, NETWORK, u64::MAX, |message, _| {
                    sent.push(*message)
                });
                let cut = in_parts(program, hosts, &settings, 3).unwrap();
                assert_eq!(Told::new(sent, machine), cut, "seed {seed}");
            },
        );
    }
}

/// A processor belongs to one part.
#[test]
fn processors_of_several_hosts_cannot_be_cut() {
    let eager_limit = Bytes(128);
    let in_turn = |rank| rank % 4;
    programs(in_turn, eager_limit, |program, hosts, seed| {
        let shared = settings(seed, eager_limit, Some(7));
        assert_eq!(in_parts(program, hosts, &shared, 2), None);
        // Ranks r and r + 8, which share one, are on one host.
        let shared = settings(seed, eager_limit, Some(8));
        let one = in_parts(program, hosts, &shared, 1).unwrap();
        assert_eq!(Some(one), in_parts(program, hosts, &shared, 3));
    });
}
