//! Programs that go on while switches die and return and processes are stopped, at the pace of real jobs: offload comes
//! back.

use raddle_random::Random;
use raddle_units::{Span, Time};

use crate::world::{Conditions, Fault, Shape, World, real_pace};

const SECOND: Span = Span::from_ms(1_000);
/// Faults come in this time.
const STORM: Span = Span::from_ms(60_000);

/// What came of one storm.
#[derive(Debug, Default)]
struct Outcome {
    faults: u64,
    fallbacks: u64,
    tries: u64,
    comebacks: u64,
    /// Storms after which the wait had grown.
    grown: u64,
}

fn shape(chance: &mut Random) -> Shape {
    let tors = chance.between(1, 4) as usize;
    Shape {
        members: chance.between(2, 6) as usize,
        tors,
        spines: if tors > 1 {
            chance.between(1, 2) as usize
        } else {
            0
        },
        cores: 0,
        most_ranks: chance.between(1, 3),
        slots: [2, 4, 64][chance.index(3)],
        segment_bytes: [24, 96, 1024][chance.index(3)],
        multicast: false,
        in_turn: false,
        first_tor_is_full: false,
    }
}

/// Faults of all kinds, some of them together, and when the last one is over.
fn faults(chance: &mut Random) -> (Vec<(Time, Fault)>, Time) {
    let mut all = Vec::new();
    let mut over = Time::ZERO;
    for _ in 0..chance.between(1, 6) {
        let at = Time::ZERO + Span::from_ms(chance.below(STORM.as_ns() / 1_000_000));
        let lasts = Span::from_ms(match chance.below(4) {
            0 => chance.between(1, 100),
            1 => chance.between(100, 3_000),
            2 => chance.between(3_000, 10_000),
            _ => chance.between(10_000, 30_000),
        });
        let both = chance.below(4) == 0;
        let kind = chance.below(5);
        if kind < 2 || both {
            all.push((at, Fault::Death(Some(lasts))));
        }
        if kind == 2 {
            all.push((at, Fault::Restart));
        }
        if kind > 2 || both {
            all.push((at, Fault::Stop(lasts)));
        }
        over = over.max(at + lasts);
    }
    (all, over)
}

/// Waits until all is offloaded, for ten seconds; longer only where the wait has grown, because groups failed within their
/// first second, which the result says.
fn come_back(world: &mut World, over: Time) -> bool {
    let mut limit = over + Span(10 * SECOND.0);
    let mut grown = false;
    while !world.is_offloaded() || world.now() < over + Span(2 * SECOND.0) {
        let rest = world.rest();
        if rest > Span(5 * SECOND.0) {
            grown = true;
            limit = limit.max(world.now() + rest + Span(8 * SECOND.0));
        }
        world.wait(Span::from_ms(50));
        assert!(
            world.now() < limit,
            "not offloaded again, {}",
            world.describe()
        );
    }
    grown
}

fn storm(seed: u64) -> Outcome {
    let mut chance = Random::new(seed ^ 0x57_02_15, 0);
    let shape = shape(&mut chance);
    let (faults, over) = faults(&mut chance);
    let count = faults.len() as u64;
    let pace = real_pace();
    let conditions = Conditions {
        pace,
        loss: [0, 1_000, 10_000, 50_000][chance.index(4)],
        faults,
        cuts: chance.below(2) == 0,
        think_us: [50_000, 200_000, 400_000][chance.index(3)],
        long_thoughts: false,
    };
    let mut world = World::new(seed, &shape, conditions, None);
    world.wait(over.since(Time::ZERO));
    let grown = come_back(&mut world, over);
    world.end();
    let ended = world.run(Span(world.now().0 + 60 * SECOND.0));
    assert!(ended, "somebody hangs, {}", world.describe());
    world.leave();
    world.wait(Span(pace.lease.0 + SECOND.0));
    assert_eq!(world.groups(), 0, "{}", world.describe());
    let [fallbacks, tries, comebacks] =
        [world.fallbacks, world.tries, world.comebacks].map(u64::from);
    Outcome {
        faults: count,
        fallbacks,
        tries,
        comebacks,
        grown: u64::from(grown),
    }
}

fn storms(seeds: std::ops::Range<u64>) {
    let count = seeds.end - seeds.start;
    let mut all = Outcome::default();
    for seed in seeds {
        let one = storm(seed);
        all.faults += one.faults;
        all.fallbacks += one.fallbacks;
        all.tries += one.tries;
        all.comebacks += one.comebacks;
        all.grown += one.grown;
    }
    // Much went wrong, also in the middle of tries, or this would test little.
    assert!(all.faults > 3 * count && all.fallbacks > count, "{all:?}");
    assert!(all.tries > all.comebacks + count / 20, "{all:?}");
    assert!(all.grown < count / 50, "{all:?}");
}

#[test]
fn offload_comes_back_whatever_happened() {
    storms(0..150);
}

#[test]
#[ignore = "scale: 5,000 storms"]
fn offload_comes_back_whatever_happened_in_5_000_storms() {
    storms(1_000_000..1_005_000);
}

fn two_tors(conditions: Conditions, first_tor_is_full: bool) -> World {
    let shape = Shape {
        members: 4,
        tors: 2,
        spines: 1,
        cores: 0,
        most_ranks: 2,
        slots: 4,
        segment_bytes: 240,
        multicast: false,
        in_turn: true,
        first_tor_is_full,
    };
    World::new(9, &shape, conditions, None)
}

/// All programs end, and leave nothing in any switch.
fn end(world: &mut World) {
    world.end();
    assert!(world.run(Span(world.now().0 + 60 * SECOND.0)));
    world.leave();
    world.wait(Span(6 * SECOND.0));
    assert_eq!(world.groups(), 0);
}

fn calm(think_us: u64) -> Conditions {
    Conditions {
        pace: real_pace(),
        loss: 0,
        faults: Vec::new(),
        cuts: false,
        think_us,
        long_thoughts: false,
    }
}

/// Each try fails when the switches above have the group already.
#[test]
fn a_thousand_tries_that_fail_in_the_middle_leave_nothing_behind() {
    let mut world = two_tors(calm(400_000), true);
    while world.tries < 1_000 {
        world.wait(Span(60 * SECOND.0));
        assert!(world.groups() <= 1 && world.kept() == 0);
    }
    // A try every five seconds.
    let seconds = world.now().as_ns() / 1_000_000_000;
    assert!(seconds > 4 * 1_000 && seconds < 7 * 1_000, "{seconds} s");
    assert_eq!(world.comebacks, 0);
    end(&mut world);
}

/// A switch that forgets everything costs next to nothing, so that the wait does not grow.
#[test]
fn a_thousand_restarts_leave_nothing_behind() {
    let mut conditions = calm(100_000);
    let restarts = (1..=1_000).map(|n| (Time(n * 3 * SECOND.0), Fault::Restart));
    conditions.faults = restarts.collect();
    let mut world = two_tors(conditions, false);
    world.wait(Span(3_010 * SECOND.0));
    assert!(world.is_offloaded(), "{}", world.describe());
    // Two TORs and a SPINE have one group each, and what failed is not kept.
    assert_eq!((world.groups(), world.kept()), (3, 0));
    assert!(
        world.fallbacks > 990 && world.comebacks == world.fallbacks,
        "{}",
        world.describe()
    );
    end(&mut world);
}

/// One process is stopped for 20 s, as by a debugger: the others leave, and all come back soon after it goes on.
#[test]
fn a_process_that_was_stopped_costs_no_more_than_the_wait() {
    let mut conditions = calm(20_000);
    let at = Time(5 * SECOND.0);
    conditions.faults = vec![(at, Fault::Stop(Span(20 * SECOND.0)))];
    let mut world = two_tors(conditions, false);
    world.wait(Span(25 * SECOND.0));
    assert_eq!(world.fallbacks + world.comebacks, 0);
    world.wait(Span(2 * SECOND.0));
    assert_eq!(
        (world.fallbacks, world.comebacks),
        (1, 1),
        "{}",
        world.describe()
    );
    assert!(world.is_offloaded());
}
