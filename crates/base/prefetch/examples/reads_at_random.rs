//! What a prefetch hint costs, by the size of the memory that it leads to.
//!
//! ```text
//! cargo run --release -p raddle-prefetch --example reads_at_random -- 256 1024 2200
//! ```
//! Sizes are in MiB; 256 is the default. For each: how many ns it takes to read and write a record of 128 B at random, where the
//! hint for it came 32 records before, one hint at a time or sixteen. Between two records is other work, whose time is left out.

use std::{hint::black_box, num::NonZeroUsize, time::Instant};

use raddle_prefetch::{prefer_huge_pages, prefetch_early};

/// Records that a measurement reads.
const READS: usize = 4_000_000;
/// How far ahead hints are given.
const AHEAD: usize = 32;

type Record = [u64; 16];

#[expect(clippy::print_stdout, reason = "the benchmark's result")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sizes = std::env::args().skip(1);
    let mut sizes = sizes
        .map(|size| {
            size.parse()
                .map_err(|_| format!("`{size}`: give a size in MiB, a whole number from 1"))
        })
        .collect::<Result<Vec<NonZeroUsize>, _>>()?;
    if sizes.is_empty() {
        sizes.push(const { NonZeroUsize::new(256).unwrap() });
    }
    println!("  MiB  one at a time  sixteen at a time");
    for mib in sizes {
        let count = mib.get().saturating_mul(1 << 20) / size_of::<Record>();
        let mut records: Vec<Record> = Vec::new();
        records
            .try_reserve_exact(count)
            .map_err(|_| format!("there is no memory for {mib} MiB"))?;
        prefer_huge_pages(&records);
        records.resize(count, [1; 16]);
        let mut state = 1u64;
        let order: Vec<usize> = (0..READS + 2 * AHEAD)
            .map(|_| next(&mut state) as usize % count)
            .collect();
        let alone = measure(&mut records, &order, None);
        let [one, sixteen] =
            [1, 16].map(|hints| measure(&mut records, &order, Some(hints)) - alone);
        println!("{mib:5}  {one:10.0} ns  {sixteen:14.0} ns");
    }
    Ok(())
}

/// ns for each record and the work behind it, with so many hints at a time; `None`: for the work alone.
fn measure(records: &mut [Record], order: &[usize], hints: Option<usize>) -> f64 {
    let start = Instant::now();
    let mut sum = 0;
    for at in 0..READS {
        if let Some(hints) = hints {
            if at.is_multiple_of(hints) {
                for &later in &order[at + AHEAD..at + AHEAD + hints] {
                    prefetch_early(&records[later]);
                }
            }
            let record = &mut records[order[at]];
            sum += record[1];
            record[2] += 1;
        }
        work();
    }
    black_box(sum);
    start.elapsed().as_secs_f64() * 1e9 / READS as f64
}

/// Some 50 ns that no memory takes part in, of as many instructions as a processor can look at together.
fn work() {
    let mut states = black_box([1, 2, 3, 4]);
    for _ in 0..40 {
        for state in &mut states {
            next(state);
        }
    }
    black_box(states);
}

/// Knuth's generator for 64 bits (MMIX); the high half, which is the better one.
fn next(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 32
}
