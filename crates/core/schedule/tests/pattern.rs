//! Generated message sets, held to closed forms.

use std::collections::BTreeMap;

use raddle_schedule::{
    Message,
    pattern::{Particles, PatternError, SparseRows, Stencil, Sweep},
};
use raddle_units::Bytes;

const FIVE_POINT: Stencil<2> = Stencil {
    ranks: [4, 3],
    points: [10, 20],
    width: 2,
    point: Bytes(8),
    diagonals: false,
    periodic: false,
};

const FULL: Stencil<3> = Stencil {
    ranks: [3, 4, 5],
    points: [16, 32, 64],
    width: 1,
    point: Bytes(8),
    diagonals: true,
    periodic: true,
};

fn total(messages: &[Message]) -> u64 {
    messages.iter().map(|message| message.bytes.0).sum()
}

/// Messages of a rank, as (target, bytes).
fn of(messages: &[Message], rank: u32) -> Vec<(u32, u64)> {
    let own = messages.iter().filter(|message| message.source == rank);
    own.map(|message| (message.target, message.bytes.0))
        .collect()
}

fn sources_are_in_order(messages: &[Message]) -> bool {
    messages.is_sorted_by_key(|message| message.source)
}

/// In an open grid of R x C ranks C pairs touch along the first dimension, R (C-1) along the second.
#[test]
fn a_five_point_stencil_sends_across_faces() {
    let messages = FIVE_POINT.superstep().unwrap();
    assert!(sources_are_in_order(&messages));
    assert_eq!(messages.len(), 2 * (3 * 3 + 4 * 2));
    // A face across the first dimension has the 20 points along the second, twice, of 8 B.
    assert_eq!(total(&messages), 2 * (3 * 3 * 320 + 4 * 2 * 160));
    // Rank 4 is at (1, 1): up and down the first dimension, then the second.
    assert_eq!(of(&messages, 4), [(1, 320), (7, 320), (3, 160), (5, 160)]);
    assert_eq!(of(&messages, 0), [(3, 320), (1, 160)]);
}

/// 26 neighbours each; together a layer around the box: (16+2)(32+2)(64+2) - 16 32 64 points.
#[test]
fn a_27_point_stencil_sends_a_whole_layer() {
    let messages = FULL.superstep().unwrap();
    assert_eq!(messages.len(), 60 * 26);
    let layer = 18 * 34 * 66 - 16 * 32 * 64;
    for rank in 0..60 {
        let own = of(&messages, rank);
        assert_eq!(own.len(), 26);
        assert_eq!(own.iter().map(|&(_, bytes)| bytes).sum::<u64>(), 8 * layer);
    }
    // Corners come last and have one point.
    assert_eq!(of(&messages, 0)[25], (20 + 5 + 1, 8));
}

#[test]
fn whoever_is_sent_to_sends_as_much() {
    for messages in [FIVE_POINT.superstep().unwrap(), FULL.superstep().unwrap()] {
        let mut balance: BTreeMap<(u32, u32), i64> = BTreeMap::new();
        for Message {
            source,
            target,
            bytes,
        } in messages
        {
            *balance.entry((source, target)).or_default() += bytes.0 as i64;
            *balance.entry((target, source)).or_default() -= bytes.0 as i64;
        }
        assert!(balance.values().all(|&bytes| bytes == 0));
    }
}

#[test]
fn a_rank_sends_nothing_to_itself() {
    let alone = Stencil {
        ranks: [1, 1, 2],
        ..FULL
    };
    let messages = alone.superstep().unwrap();
    // The other rank lies in 18 of the 26 directions.
    assert_eq!(messages.len(), 36);
    assert!(
        messages
            .iter()
            .all(|message| message.source != message.target)
    );
}

const SWEEP: Sweep = Sweep {
    ranks: [3, 4],
    cells: [5, 7],
    planes: 10,
    blocks: 6,
    angles: 12,
    value: Bytes(8),
};

/// A corner's sweep has every block once across each inner side; its front takes R + C - 3 + B steps in which something is
/// sent.
#[test]
fn a_sweep_sends_every_block_across_every_side() {
    let steps: Vec<_> = SWEEP.supersteps().unwrap().collect();
    assert_eq!(steps.len(), 4 * (3 + 4 - 3 + 6));
    let messages = steps.concat();
    assert_eq!(messages.len(), 4 * 6 * (2 * 4 + 3 * 3));
    let side = 10 * 12 * 8;
    assert_eq!(total(&messages), 4 * 6 * side * (2 * 4 * 7 + 3 * 3 * 5));
    assert!(steps.iter().all(|step| sources_are_in_order(step)));
    // The first front leaves the corner at rank 0, the last arrives there.
    assert_eq!(of(&steps[0], 0), [(4, 7 * side), (1, 5 * side)]);
    let last = steps.last().unwrap();
    let targets: Vec<(u32, u32)> = last.iter().map(|m| (m.source, m.target)).collect();
    assert_eq!(targets, [(1, 0), (4, 0)]);
}

/// A rank solves block b only when those before it have sent block b: in each corner's sweep, by step s it has sent
/// no more blocks than it had from each rank that sends to it, unless nobody does.
#[test]
fn a_block_is_sent_on_after_it_came() {
    let steps: Vec<_> = SWEEP.supersteps().unwrap().collect();
    for corner in steps.chunks(10) {
        let mut sent: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let before: BTreeMap<u32, Vec<u32>> =
            corner
                .concat()
                .iter()
                .fold(BTreeMap::new(), |mut before, message| {
                    let own: &mut Vec<u32> = before.entry(message.target).or_default();
                    if !own.contains(&message.source) {
                        own.push(message.source);
                    }
                    before
                });
        for step in corner {
            let earlier = sent.clone();
            for message in step {
                let way = (message.source, message.target);
                *sent.entry(way).or_default() += 1;
                for &upstream in before.get(&message.source).into_iter().flatten() {
                    let had = earlier
                        .get(&(upstream, message.source))
                        .copied()
                        .unwrap_or(0);
                    assert!(sent[&way] <= had, "{way:?} after {upstream}");
                }
            }
        }
    }
}

const PARTICLES: Particles = Particles {
    ranks: [4, 4, 4],
    leaving: 1000,
    far_one_in: 50,
    particle: Bytes(56),
    head: Bytes(8),
    seed: 7,
};

#[test]
fn particles_go_to_neighbours_and_some_far() {
    let messages = PARTICLES.superstep().unwrap();
    assert!(sources_are_in_order(&messages));
    for rank in 0..64 {
        assert!(of(&messages, rank).len() >= 26, "empty ones too");
    }
    let heads = 8 * messages.len() as u64;
    let particles = (total(&messages) - heads) / 56;
    assert_eq!(56 * particles + heads, total(&messages));
    // Uniform from 0 to 2000: mean 1000, deviation 577.6; 64 of them 4621, five times that; far ones to itself are lost.
    assert!(
        (64_000 - 23_200..=64_000 + 23_105).contains(&particles),
        "{particles}"
    );
    // One in 50 goes anywhere, by a message of its own.
    let own = |n: usize| messages.iter().filter(|m| m.source == 0).nth(n);
    assert!(own(26).is_some());
    let near = Particles {
        far_one_in: 0,
        ..PARTICLES
    };
    assert_eq!(near.superstep().unwrap().len(), 64 * 26);
}

/// With three ranks along a dimension in a grid of 3 x 3 x 3 each neighbour is another rank. Across exactly one face go
/// (7/8)^2 = 76.6 % of the particles.
#[test]
fn most_particles_cross_one_face() {
    let one = Particles {
        ranks: [3, 3, 3],
        far_one_in: 0,
        head: Bytes(0),
        particle: Bytes(1),
        ..PARTICLES
    };
    let messages = one.superstep().unwrap();
    let faces: u64 = (0..27)
        .map(|rank| {
            of(&messages, rank)[..6]
                .iter()
                .map(|&(_, bytes)| bytes)
                .sum::<u64>()
        })
        .sum();
    let all = total(&messages);
    let share = faces as f64 / all as f64;
    let deviation = (0.766 * 0.234 / all as f64).sqrt();
    assert!(
        (share - 49.0 / 64.0).abs() < 5.0 * deviation,
        "{share} of {all}"
    );
}

#[test]
fn the_same_seed_gives_the_same_messages_and_another_others() {
    let other = Particles {
        seed: 8,
        ..PARTICLES
    };
    assert_eq!(PARTICLES.superstep(), PARTICLES.superstep());
    assert_ne!(PARTICLES.superstep(), other.superstep());
    let other = SparseRows { seed: 8, ..ROWS };
    assert_eq!(ROWS.superstep(), ROWS.superstep());
    assert_ne!(ROWS.superstep(), other.superstep());
}

const ROWS: SparseRows = SparseRows {
    ranks: 8,
    rows: 100,
    entries: 20,
    band: 150,
    far_one_in: 10,
    value: Bytes(8),
    seed: 7,
};

/// A band that is full and narrower than a rank's rows: the neighbours' nearest values, and nothing else.
#[test]
fn a_band_needs_its_width_from_both_neighbours() {
    let band = SparseRows {
        entries: 200,
        band: 10,
        far_one_in: 0,
        ..ROWS
    };
    let messages = band.superstep().unwrap();
    assert!(sources_are_in_order(&messages));
    assert_eq!(messages.len(), 2 * 7);
    assert_eq!(of(&messages, 3), [(2, 80), (4, 80)]);
    assert_eq!(total(&messages), 2 * 7 * 80);
}

#[test]
fn every_value_is_sent_once_per_rank_that_needs_it() {
    let anywhere = SparseRows {
        entries: 100,
        far_one_in: 1,
        ..ROWS
    };
    // 10,000 draws among 800 columns: each is missed with probability e^-12.5, 5,600 of them together with 2 %.
    let messages = anywhere.superstep().unwrap();
    assert_eq!(messages.len(), 8 * 7);
    assert!(messages.iter().all(|message| message.bytes <= Bytes(800)));
    assert!(total(&messages) >= 56 * 800 - 2 * 8);
}

#[test]
fn what_cannot_be_is_refused() {
    let stencil = |ranks| Stencil { ranks, ..FULL }.superstep().unwrap_err();
    assert_eq!(stencil([3, 0, 2]), PatternError::Zero { field: "ranks" });
    let many = PatternError::TooMany {
        what: "ranks",
        bits: 32,
    };
    assert_eq!(stencil([1 << 16, 1 << 16, 1]), many);
    let large = Stencil {
        points: [1 << 40; 3],
        ..FULL
    };
    let bytes = PatternError::TooMany {
        what: "bytes",
        bits: 64,
    };
    assert_eq!(large.superstep(), Err(bytes));
    let huge = Particles {
        particle: Bytes(u64::MAX),
        ..PARTICLES
    };
    assert_eq!(huge.superstep(), Err(bytes));
    let head = Particles {
        head: Bytes(u64::MAX),
        ..PARTICLES
    };
    assert_eq!(head.superstep(), Err(bytes));
    let none = Sweep {
        ranks: [0, 1],
        ..SWEEP
    };
    assert!(none.supersteps().is_err());
    let single = Sweep {
        ranks: [1, 1],
        ..SWEEP
    };
    assert_eq!(single.supersteps().unwrap().count(), 0);
    let rows = SparseRows { rows: 0, ..ROWS };
    assert_eq!(rows.superstep(), Err(PatternError::Zero { field: "rows" }));
}
