//! Rails that fail and come back, and what is refused.

use raddle_rails::{
    Config, ConfigError, Connection, Event, Failure, RailStatus, SendError, SendFailure,
};
use raddle_units::{BitRate, Span, Time};
use raddle_wire::native::JobKey;

use crate::{
    pair::settle,
    world::{Link, Plan, World},
};

const LENGTH: u64 = 1 << 18;
const HEARTBEAT: Span = Span::from_ms(10);

fn link() -> Link {
    Link::plain(BitRate::from_gbps(10), Span::from_us(5))
}

fn adjust(_: usize, config: &mut Config) {
    config.segment = 8000;
    config.heartbeat = HEARTBEAT;
    config.give_up = Span::from_ms(100);
}

/// A world that is busy for a second.
fn busy(rails: usize) -> World {
    let mut world = World::new(1, &vec![link(); rails], adjust);
    stream(&mut world);
    world
}

/// As many messages as a second takes.
fn stream(world: &mut World) {
    world.compares = false;
    world.open(1, 1, LENGTH, 32);
    world.plan_stream(0, 20_000, LENGTH);
}

/// Bit/s of payload placed in the next `span`.
fn goodput(world: &mut World, span: Span) -> f64 {
    let before = world.nodes[1].connection.counters().placed_bytes;
    world.run(world.now + span, |_| false);
    let bytes = world.nodes[1].connection.counters().placed_bytes - before;
    bytes as f64 * 8.0 / span.as_secs_f64()
}

/// A rail is cut and restored again and again: goodput falls by its share and at most 5 %, no message waits for three
/// heartbeats, and the rail is back within three heartbeats.
#[test]
fn a_broken_rail_costs_its_share() {
    let mut world = busy(4);
    world.run(Time::ZERO + Span::from_ms(20), |_| false);
    let whole = goodput(&mut world, Span::from_ms(40));
    for rail in [2, 0, 2] {
        world.nodes[1].longest_gap = Span::ZERO;
        world.cut(world.now, rail, false);
        // The whole time from the cut on, detection included.
        let broken = goodput(&mut world, Span::from_ms(50));
        assert!(broken >= 0.95 * 0.75 * whole, "{broken} of {whole}");
        let gap = world.nodes[1].longest_gap;
        assert!(gap < HEARTBEAT * 3, "no message for {gap}");
        let (fell, which) = *world.nodes[0].falls.last().expect("it was found");
        assert_eq!(which, rail);
        assert!(fell >= world.now - Span::from_ms(50));
        world.cut(world.now, rail, true);
        let restored = world.now;
        world.run(restored + HEARTBEAT * 3, |_| false);
        let (rose, which) = *world.nodes[0].rises.last().expect("it came back");
        assert!(which == rail && rose >= restored, "{which} at {rose:?}");
        let again = goodput(&mut world, Span::from_ms(40));
        assert!(again >= 0.95 * whole, "{again} of {whole}");
    }
    world.check_drops();
}

/// A host that has no core for 8 ms is silent on all rails: nothing is taken for lost, though silence is asked about after 5 ms.
#[test]
fn a_host_that_sleeps_is_no_broken_rail() {
    let mut world = World::new(1, &[link(); 4], |_, config| {
        config.patience = Span::from_ms(5);
        config.heartbeat = Span::from_ms(20);
    });
    stream(&mut world);
    for _ in 0..5 {
        world.run(world.now + Span::from_ms(24), |_| false);
        let before = world.nodes[0].connection.counters().resent;
        world.sleeps[1] = world.now + Span::from_ms(8);
        world.run(world.now + Span::from_ms(20), |_| false);
        let counters = world.nodes[0].connection.counters();
        assert_eq!(counters.resent, before, "{counters:?}");
    }
    assert!(world.nodes[0].falls.is_empty());
}

#[test]
fn without_any_rail_the_connection_fails_after_the_set_time() {
    let mut world = busy(2);
    world.run(Time::ZERO + Span::from_ms(20), |_| false);
    let sent = world.nodes[0].sent;
    for rail in 0..2 {
        world.cut(world.now, rail, false);
    }
    let cut = world.now;
    let ended = world.run(cut + Span::from_ms(1000), |nodes| {
        nodes.iter().all(|node| node.failure.is_some())
    });
    assert!(ended, "it hangs");
    for node in &world.nodes {
        let (at, failure) = node.failure.unwrap();
        assert!(matches!(failure, Failure::AllRailsDown { .. }));
        let after = at.since(cut);
        assert!(
            after <= Span::from_ms(100) + HEARTBEAT && after >= Span::from_ms(100) - HEARTBEAT * 2,
            "{after}"
        );
        assert_eq!(node.connection.poll_timeout(), None);
        assert_eq!(
            (node.connection.sending(), node.connection.receiving()),
            (0, 0)
        );
    }
    let [sender, receiver] = &mut world.nodes;
    assert_eq!(
        sender.failed_sends, 256,
        "all that were on their way; {sent} had arrived"
    );
    assert_eq!(receiver.returned, receiver.buffers());
    assert_eq!(sender.connection.send(0, 1, 5, 9), Err(SendError::Closed));
}

#[test]
fn nobody_there_is_an_error_too() {
    let mut world = World::new(1, &[link(); 2], adjust);
    for rail in 0..2 {
        world.cut(Time::ZERO, rail, false);
    }
    world.plan(
        Time::ZERO,
        0,
        Plan {
            source_port: 0,
            target_port: 1,
            length: 10,
        },
    );
    assert!(world.run(Time::ZERO + Span::from_ms(200), |nodes| {
        nodes[0].failure.is_some()
    }));
    assert_eq!(world.nodes[0].failed_sends, 1);
}

/// Two connections that hand each other packets at once.
fn pair() -> [Connection; 2] {
    [0, 1].map(|local| connection(local, 50 + local))
}

fn connection(local: u32, epoch: u32) -> Connection {
    let rails = vec![BitRate::from_gbps(10); 2];
    let config = Config::new(1, JobKey::new([1; 16]), local, 1 - local, epoch, rails);
    Connection::new(Time::ZERO, config).unwrap()
}

#[test]
fn a_restarted_node_ends_the_connection_and_gets_a_new_one() {
    let mut nodes = pair();
    nodes[1].open_port(4, 100).unwrap();
    settle(Time::ZERO, &mut nodes);
    let up = nodes[0].rails().all(|rail| rail.status == RailStatus::Up);
    assert!(up);
    nodes[0].send(0, 4, 10, 33).unwrap();
    let later = Time::ZERO + Span::from_ms(1);
    nodes[1] = connection(1, 90);
    let [events, _] = settle(later, &mut nodes);
    let error = SendFailure::Connection(Failure::PeerRestarted);
    assert_eq!(
        events,
        [
            Event::SendFailed { token: 33, error },
            Event::Failed(Failure::PeerRestarted)
        ]
    );
    nodes[0] = connection(0, 91);
    let later = Time::ZERO + Span::from_ms(40);
    let [first, second] = settle(later, &mut nodes);
    assert!(first.contains(&Event::Established) && second.contains(&Event::Established));
}

#[test]
fn a_message_that_is_too_long_fails_and_those_behind_it_go_on() {
    let mut nodes = pair();
    nodes[0].send(0, 4, 101, 1).unwrap();
    nodes[0].send(0, 4, 100, 2).unwrap();
    nodes[1].open_port(4, 100).unwrap();
    nodes[1].provide(4, 0).unwrap();
    let [sender, receiver] = settle(Time::ZERO, &mut nodes);
    let error = SendFailure::TooLong { longest: 100 };
    assert!(sender.contains(&Event::SendFailed { token: 1, error }));
    assert!(sender.contains(&Event::Sent { token: 2 }));
    let delivered = Event::Received {
        token: 0,
        source_port: 0,
        target_port: 4,
        length: 100,
    };
    assert!(receiver.contains(&delivered));
    let error = SendError::TooLong {
        port: 4,
        length: 101,
        longest: 100,
    };
    assert_eq!(nodes[0].send(0, 4, 101, 3), Err(error));
}

#[test]
fn a_scheme_whose_signals_are_missing_is_refused_by_name() {
    let refused = |scheme: &str, sees_marks: bool| {
        let rails = vec![BitRate::from_gbps(10)];
        let mut config = Config::new(1, JobKey::new([1; 16]), 0, 1, 5, rails);
        config.scheme = scheme.to_owned();
        config.sees_marks = sees_marks;
        Connection::new(Time::ZERO, config)
            .err()
            .map(|error| error.to_string())
    };
    for scheme in ["swift", "timely", "none"] {
        assert_eq!(refused(scheme, false), None);
    }
    for scheme in ["dctcp", "dcqcn"] {
        let error = refused(scheme, false).unwrap();
        assert!(
            error.starts_with(&format!("{scheme} needs congestion marks (ECN)")),
            "{error}"
        );
        assert_eq!(refused(scheme, true), None);
    }
    assert!(
        refused("hpcc", true)
            .unwrap()
            .contains("hpcc needs telemetry of every hop")
    );
    assert!(
        refused("pint", true)
            .unwrap()
            .contains("pint needs PINT's digest")
    );
    assert!(refused("fast", true).unwrap().contains("\"fast\""));
}

#[test]
fn configurations_that_contradict_themselves_are_refused() {
    let refused = |change: fn(&mut Config)| {
        let rails = vec![BitRate::from_gbps(10); 2];
        let mut config = Config::new(1, JobKey::new([1; 16]), 0, 1, 5, rails);
        change(&mut config);
        Connection::new(Time::ZERO, config).err()
    };
    assert_eq!(refused(|_| {}), None);
    assert_eq!(
        refused(|config| config.rails.clear()),
        Some(ConfigError::Rails { count: 0 })
    );
    assert_eq!(
        refused(|config| config.rails[1] = BitRate(0)),
        Some(ConfigError::NoRate { rail: 1 })
    );
    assert_eq!(refused(|config| config.epoch = 0), Some(ConfigError::Epoch));
    assert_eq!(
        refused(|config| config.segment = 0),
        Some(ConfigError::Zero { field: "segment" })
    );
    assert_eq!(
        refused(|config| config.segment = 65_500),
        Some(ConfigError::Segment { found: 65_500 })
    );
    let found = Span::from_ms(51);
    assert_eq!(
        refused(|config| config.heartbeat = Span::from_ms(51)),
        Some(ConfigError::Heartbeat { found })
    );
    let (found, least) = (Span::from_ms(59), Span::from_ms(60));
    assert_eq!(
        refused(|config| config.give_up = Span::from_ms(59)),
        Some(ConfigError::GiveUp { found, least })
    );
}
