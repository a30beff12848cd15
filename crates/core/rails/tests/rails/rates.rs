//! What several rails bring, in virtual time: goodput of long messages, latency of short ones.

use raddle_rails::{Ask, Config, OtherConnections, Policy, Segmentation};
use raddle_units::{BitRate, Bytes, Span, Time};

use crate::world::{Link, Plan, World};

const LENGTH: u64 = 1 << 20;

/// Messages of 1 MiB from one node to the other, as many as pass; bit/s of payload between 20 and 60 ms.
fn goodput(links: &[Link], adjust: impl Fn(usize, &mut Config)) -> f64 {
    let mut world = World::new(1, links, adjust);
    world.compares = false;
    steady(&mut world, Span::from_ms(20), Span::from_ms(40))
}

/// The same between `from` and `span` later.
fn steady(world: &mut World, from: Span, span: Span) -> f64 {
    world.open(1, 1, LENGTH, 16);
    world.plan_stream(0, 2000, LENGTH);
    world.run(Time::ZERO + from, |_| false);
    let before = world.nodes[1].connection.counters().placed_bytes;
    world.run(Time::ZERO + from + span, |_| false);
    let bytes = world.nodes[1].connection.counters().placed_bytes - before;
    bytes as f64 * 8.0 / span.as_secs_f64()
}

fn gbps(rate: u64, latency_us: u64) -> Link {
    Link::plain(BitRate(rate * 1_000_000_000), Span::from_us(latency_us))
}

const JUMBO: u16 = 8000;

fn jumbo(_: usize, config: &mut Config) {
    config.segment = JUMBO;
}

#[test]
fn equal_rails_add_up() {
    let one = goodput(&[gbps(10, 5)], jumbo);
    assert!(one > 0.93 * 10e9, "one rail: {one}");
    for (rails, least) in [(2, 1.9), (4, 3.6), (8, 7.2)] {
        let all = goodput(&vec![gbps(10, 5); rails], jumbo);
        assert!(all / one >= least, "{rails} rails: {}", all / one);
    }
}

/// Rails of 4:1 and of unequal delay, by one default configuration that is told the same rate for all: at least 90 % of their sum.
#[test]
fn unequal_rails_add_up_without_tuning() {
    let told = |_: usize, config: &mut Config| {
        config.segment = JUMBO;
        config.rails = vec![BitRate::from_gbps(10); config.rails.len()];
    };
    let pairs = [
        [gbps(8, 5), gbps(2, 5)],
        [gbps(8, 5), gbps(2, 50)],
        [gbps(2, 5), gbps(8, 50)],
        [gbps(5, 5), gbps(5, 100)],
    ];
    for pair in pairs {
        let sum: f64 = pair.iter().map(|link| goodput(&[*link], told)).sum();
        let both = goodput(&pair, told);
        assert!(both >= 0.9 * sum, "{both} of {sum}: {pair:?}");
        assert!(sum > 0.8 * 10e9, "{sum}: {pair:?}");
    }
}

/// Hosts that look only every half millisecond: what they say of how long packets waited is not taken for a queue, and the rail
/// has enough to send meanwhile. Without it the same rail stands still half of the time.
#[test]
fn late_hosts_do_not_slow_a_rail_down() {
    let late = |tells: bool| {
        let mut world = World::new(1, &[gbps(1, 5)], |_, config| {
            config.patience = Span::from_ms(5);
        });
        (world.compares, world.looks, world.tells) = (false, Span::from_us(500), tells);
        steady(&mut world, Span::from_ms(200), Span::from_ms(100))
    };
    let (told, untold) = (late(true), late(false));
    assert!(told >= 0.9e9, "{told}");
    assert!(untold < 0.7 * told, "{untold} {told}");
}

/// The paper's equal pieces wait for the slow rail: the reason for water-filling.
#[test]
fn equal_pieces_are_held_back_by_the_slow_rail() {
    let pair = [gbps(8, 5), gbps(2, 5)];
    let equal = |_: usize, config: &mut Config| {
        config.segment = JUMBO;
        config.segmentation = Segmentation::Equal;
    };
    let (water, cut) = (goodput(&pair, jumbo), goodput(&pair, equal));
    assert!(water > 1.1 * cut, "{water} {cut}");
    let same = [gbps(10, 5); 2];
    let (water, cut) = (goodput(&same, jumbo), goodput(&same, equal));
    assert!(cut > 0.9 * water, "{water} {cut}");
}

/// Mean time from send to delivery of short messages, one at a time.
fn latency(links: &[Link], length: u64, adjust: impl Fn(usize, &mut Config)) -> f64 {
    let mut world = World::new(1, links, adjust);
    world.open(1, 1, LENGTH, 4);
    world.run(Time::ZERO + Span::from_ms(5), |_| false);
    let (mut sum, count) = (0, 50);
    for number in 1..=count {
        let start = world.now + Span::from_us(100);
        world.plan(
            start,
            0,
            Plan {
                source_port: 0,
                target_port: 1,
                length,
            },
        );
        let came = world.run(start + Span::from_ms(100), |nodes| {
            nodes[1].received == number
        });
        assert!(came);
        sum += world.nodes[1].last_received.since(start).0;
    }
    sum as f64 / count as f64
}

#[test]
fn short_messages_take_no_longer_than_on_one_rail() {
    for length in [0, 8, 1024, 1392] {
        let one = latency(&[gbps(10, 5)], length, |_, _| {});
        for links in [
            vec![gbps(10, 5); 2],
            vec![gbps(10, 5); 8],
            vec![gbps(1, 90), gbps(10, 5)],
        ] {
            let many = latency(&links, length, |_, _| {});
            assert!(
                many <= 1.05 * one,
                "{length} B: {many} ps, {one} ps on one rail"
            );
        }
    }
    // A message of a few segments already gains, and never loses to the faster rail alone.
    let (one, two) = (
        latency(&[gbps(10, 5)], 65_536, |_, _| {}),
        latency(&[gbps(10, 5); 2], 65_536, |_, _| {}),
    );
    assert!(two < 0.8 * one, "{two} {one}");
}

/// Bytes of data that each of two equal rails takes of one message, while other connections have 64 KiB on their way by the first.
fn beside_others(length: u64, segmentation: Segmentation) -> [u64; 2] {
    let mut world = World::new(1, &[gbps(10, 5); 2], |_, config| {
        config.segmentation = segmentation;
        (config.ask, config.stale) = (Ask::Wait, Span::ZERO);
    });
    world.open(1, 1, LENGTH, 4);
    world.run(Time::ZERO + Span::from_us(5500), |_| false);
    let mut others = OtherConnections::default();
    others.in_flight[0] = Bytes(64 << 10);
    world.nodes[0].connection.note_others(&others);
    let sent = |world: &World| {
        let mut rails = world.nodes[0].connection.rails().map(|rail| rail.sent);
        [0; 2].map(|_: u64| rails.next().expect("there are two"))
    };
    let before = sent(&world);
    let plan = Plan {
        source_port: 0,
        target_port: 1,
        length,
    };
    world.plan(world.now, 0, plan);
    assert!(world.run(world.now + Span::from_ms(100), |nodes| nodes[0].sent == 1));
    let after = sent(&world);
    [after[0] - before[0], after[1] - before[1]]
}

/// The paper's sender sees its cards' states whoever keeps them busy.
#[test]
fn rails_that_others_keep_busy_get_less() {
    for length in [1000, 60_000] {
        let [busy, free] = beside_others(length, Segmentation::WaterFill);
        assert!(busy == 0 && free >= length, "{busy} {free}");
    }
    // The question for the other node's state is an empty packet.
    let [busy, free] = beside_others(60_000, Segmentation::Equal);
    assert!(busy < 100 && free >= 60_000, "{busy} {free}");
    // A short message does not choose.
    let [busy, free] = beside_others(1000, Segmentation::Equal);
    assert!(busy >= 1000 && free == 0, "{busy} {free}");
    // Both end together: the one begins 64 KiB later.
    let [busy, free] = beside_others(LENGTH / 2, Segmentation::WaterFill);
    let behind = free.abs_diff(busy + (64 << 10));
    assert!(busy > 0 && behind < 32 << 10, "{busy} {free}");
}

#[test]
fn a_static_port_uses_its_rail_only() {
    let mut world = World::new(1, &[gbps(10, 5); 4], |_, config| {
        config.policy = Policy::Static
    });
    world.open(1, 1, LENGTH, 4);
    world.run(Time::ZERO + Span::from_ms(5), |_| false);
    let before: Vec<u64> = world.nodes[0]
        .connection
        .rails()
        .map(|rail| rail.sent)
        .collect();
    for _ in 0..4 {
        world.plan(
            world.now,
            0,
            Plan {
                source_port: 6,
                target_port: 1,
                length: LENGTH,
            },
        );
    }
    assert!(world.run(world.now + Span::from_ms(100), |nodes| nodes[0].sent == 4));
    let moved: Vec<bool> = world.nodes[0]
        .connection
        .rails()
        .zip(before)
        .map(|(rail, before)| rail.sent - before > LENGTH)
        .collect();
    assert_eq!(moved, [false, false, true, false]);
}
