//! Measures one core: how long it takes to schedule a superstep, by kind of traffic, placement and variant. The median of
//! the runs counts; one JSON object per line.
//!
//! `cargo run --release -p raddle-schedule --example schedule_benchmark [messages [runs]]` (10^6 and 9 unless given)
#![allow(clippy::print_stdout, reason = "a program that prints a measurement")]

use std::{hint::black_box, time::Instant};

use raddle_schedule::{
    Join, Message, MessageSet, Placement, Scope, Settings, Variant,
    pattern::{Particles, SparseRows, Stencil},
    schedule,
};
use raddle_units::Bytes;

const RANKS_PER_NODE: u32 = 24;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().map_or(Ok(1_000_000), |n| n.parse())?;
    let runs: usize = arguments.next().map_or(Ok(9), |n| n.parse())?;
    for (name, ranks, messages) in sets(count)? {
        let placement = Placement::blocks(ranks, RANKS_PER_NODE)?;
        let set = MessageSet::new(&messages, &placement)?;
        for variant in Variant::ALL {
            let scopes: &[Scope] = match variant {
                Variant::Aggregate | Variant::Both => &[Scope::RankToNode, Scope::NodeToNode],
                Variant::None | Variant::Reorder => &[Scope::RankToNode],
            };
            for &scope in scopes {
                let settings = Settings {
                    variant,
                    join: Join {
                        scope,
                        ..Join::default()
                    },
                    ..Settings::default()
                };
                let mut plan = schedule(&set, &settings);
                let times = median(runs, || plan = schedule(&set, &settings));
                let receive = median(runs, || {
                    black_box(plan.receive_plan());
                });
                println!(
                    "{{\"traffic\": \"{name}\", \"ranks\": {ranks}, \"nodes\": {}, \"messages\": {}, \
                     \"schedule\": \"{variant}\", \"scope\": \"{}\", \"parcels\": {}, \
                     \"schedule_s\": {:.4}, \"least_s\": {:.4}, \"most_s\": {:.4}, \"receive_plan_s\": {:.4}}}",
                    placement.nodes(),
                    messages.len(),
                    scope.name(),
                    plan.parcels().len(),
                    times[1],
                    times[0],
                    times[2],
                    receive[1],
                );
            }
        }
    }
    Ok(())
}

/// Least, median and greatest of the seconds that `work` takes.
fn median(runs: usize, mut work: impl FnMut()) -> [f64; 3] {
    let mut times: Vec<f64> = (0..runs.max(1))
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    [times[0], times[times.len() / 2], times[times.len() - 1]]
}

type Named = (&'static str, u32, Vec<Message>);

/// About `count` messages of each kind.
fn sets(count: usize) -> Result<Vec<Named>, Box<dyn std::error::Error>> {
    // 26 neighbours each.
    let side = ((count as f64 / 26.0).cbrt().round() as u32).max(3);
    let stencil = Stencil {
        ranks: [side; 3],
        points: [32; 3],
        width: 1,
        point: Bytes(8),
        diagonals: true,
        periodic: true,
    };
    let particles = Particles {
        ranks: [side; 3],
        leaving: 60,
        far_one_in: 30,
        particle: Bytes(56),
        head: Bytes(8),
        seed: 1,
    };
    let sparse = SparseRows {
        ranks: (count as u32 / 100).max(2),
        rows: 200,
        entries: 8,
        band: 300,
        far_one_in: 16,
        value: Bytes(8),
        seed: 1,
    };
    let sets = [
        ("stencil", side.pow(3), stencil.superstep()?),
        ("particles", side.pow(3), particles.superstep()?),
        ("sparse", sparse.ranks, sparse.superstep()?),
        ("scattered", 384, scattered(384, count)),
        ("scattered", 65_536, scattered(65_536, count)),
    ];
    Ok(sets.into())
}

/// Messages between any ranks, in no order: the worst for caches.
fn scattered(ranks: u64, count: usize) -> Vec<Message> {
    let mut state = 1_u64;
    let mut below = |n: u64| {
        // Knuth's generator; its upper bits are good enough to scatter.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(state) * u128::from(n)) >> 64) as u64
    };
    let message = |_| Message {
        source: below(ranks) as u32,
        target: below(ranks) as u32,
        bytes: Bytes(1 << below(18)),
    };
    (0..count).map(message).collect()
}
