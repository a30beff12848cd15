//! Whole groups in virtual time under random schedules: links lose, double and reorder, switches die or start anew, ranks
//! are slow or killed. What must hold, always:
//!
//! - every result is what the definition gives, bit for bit;
//! - a call is offloaded for all members or plain for all, and so is every try to come back;
//! - nobody hangs;
//! - without faults, and with few losses, nobody falls back;
//! - when all is well again, offload comes back;
//! - afterwards every slot is free, within the lease where messages were lost.

mod calls;
mod network;
mod storms;
mod world;

use raddle_random::Random;
use raddle_units::{Span, Time};
use world::{Conditions, FAST, Fault, Shape, World};

/// One random schedule; says what happened.
fn schedule(seed: u64) -> (bool, u64) {
    let mut chance = Random::new(seed ^ 0x5eed, 0);
    let tiers = chance.between(1, 3);
    let tors = if tiers == 1 {
        1
    } else {
        chance.between(2, 4) as usize
    };
    let shape = Shape {
        members: chance.between(2, 8) as usize,
        tors,
        spines: if tiers > 1 {
            chance.between(2, 3) as usize
        } else {
            0
        },
        cores: if tiers > 2 {
            chance.between(1, 2) as usize
        } else {
            0
        },
        most_ranks: chance.between(1, 4),
        slots: [2, 3, 4, 8, 64][chance.index(5)],
        segment_bytes: [24, 48, 96, 1024][chance.index(4)],
        multicast: chance.below(8) == 0,
        in_turn: false,
        first_tor_is_full: false,
    };
    let at = Time(chance.between(100, 6_000) * 1_000_000);
    let fault = match chance.below(8) {
        0 | 1 => Some(Fault::Death(None)),
        2 | 3 => Some(Fault::Restart),
        4 => Some(Fault::JobKilled),
        _ => None,
    };
    let loss = [0, 1_000, 10_000, 50_000, 100_000, 300_000][chance.index(6)];
    let conditions = Conditions {
        pace: FAST,
        loss,
        faults: fault.iter().map(|fault| (at, *fault)).collect(),
        cuts: false,
        think_us: [0, 10, 500][chance.index(3)],
        long_thoughts: chance.below(3) == 0,
    };
    let calls = chance.between(1, 12) as usize;
    let mut world = World::new(seed, &shape, conditions, Some(calls));
    let ended = world.run(Span::from_ms(60_000));
    assert!(ended, "somebody hangs, {}", world.describe());
    if fault.is_none() && loss <= 50_000 {
        let left = (world.fallback, world.tries);
        assert_eq!(left, (None, 0), "{}", world.describe());
    }
    // The fault may come after the last call: the state is judged behind it.
    if world.now() < at {
        world.wait(at.since(world.now()));
    }
    world.leave();
    // State lives as long as the lease after the last sign of life; signs that are on their way come late.
    world.wait(Span(FAST.lease.0 + Span::from_ms(2).0));
    assert_eq!(world.groups(), 0, "{}", world.describe());
    (world.fallback.is_some(), world.packets())
}

fn many(seeds: std::ops::Range<u64>) {
    let (mut fallbacks, mut packets) = (0, 0);
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let (fell, sent) = schedule(seed);
        fallbacks += u64::from(fell);
        packets += sent;
    }
    // Both ways were taken, or this would test little.
    assert!(
        fallbacks > count / 20 && fallbacks < count * 3 / 4,
        "{fallbacks} of {count}"
    );
    assert!(packets > 50 * count, "{packets}");
}

#[test]
fn every_call_is_right_and_the_same_for_all_members() {
    many(0..8_000);
}

#[test]
#[ignore = "scale: 100,000 schedules"]
fn every_call_is_right_and_the_same_for_all_members_in_100_000_schedules() {
    many(1_000_000..1_100_000);
}

/// Rounds without faults over bad links: all of them offloaded, all of them right.
fn rounds(seed: u64, count: usize, loss: u32) {
    let shape = Shape {
        members: 4,
        tors: 2,
        spines: 1,
        cores: 0,
        most_ranks: 2,
        slots: 8,
        segment_bytes: 240,
        multicast: false,
        in_turn: false,
        first_tor_is_full: false,
    };
    let conditions = Conditions {
        pace: FAST,
        loss,
        faults: Vec::new(),
        cuts: false,
        think_us: 3,
        long_thoughts: false,
    };
    let mut world = World::new(seed, &shape, conditions, Some(count));
    let most = Span::from_ms(100 * count as u64 + 10_000);
    assert!(world.run(most), "{}", world.describe());
    assert_eq!(world.fallback, None);
    for host in &world.hosts {
        assert_eq!(
            host.outcomes.iter().filter(|offloaded| **offloaded).count(),
            count
        );
    }
}

#[test]
fn rounds_over_bad_links_are_right() {
    rounds(1, 10_000, 10_000);
    rounds(2, 2_000, 100_000);
}

#[test]
#[ignore = "scale: 1,000,000 rounds"]
fn a_million_rounds_with_one_percent_of_loss_doubling_and_reordering_are_right() {
    rounds(3, 1_000_000, 10_000);
}

#[test]
#[ignore = "scale: 100,000 rounds"]
fn a_hundred_thousand_rounds_with_ten_percent_are_right() {
    rounds(4, 100_000, 100_000);
}
