//! How long one reduction takes: `cargo run --release -p raddle-offload --example reduce_benchmark`.
//!
//! Prints nanoseconds per call for messages of 8 and 256 bytes (one element at least), the median of 20 runs, one core.
#![allow(clippy::print_stdout)]

use std::{hint::black_box, time::Instant};

use raddle_offload::reduce::combine_into_right;
use raddle_wire::{DataType, Operation};

const CALLS: u32 = 20_000;

fn nanoseconds(operation: Operation, data_type: DataType, bytes: usize) -> f64 {
    let bytes = (bytes / data_type.size()).max(1) * data_type.size();
    // Small positive numbers of every type: no NaN, no overflow to infinity.
    let left = vec![0x01; bytes];
    let mut runs: Vec<f64> = (0..20)
        .map(|_| {
            let mut right = left.clone();
            let start = Instant::now();
            for _ in 0..CALLS {
                let result = combine_into_right(
                    operation,
                    data_type,
                    black_box(&left),
                    black_box(&mut right),
                );
                debug_assert!(result.is_ok());
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

fn main() {
    println!(
        "{:<12}{:<18}{:>10}{:>10}",
        "operation", "type", "8 B, ns", "256 B, ns"
    );
    for (operation, data_type) in [
        (Operation::Sum, DataType::Double),
        (Operation::Sum, DataType::Float),
        (Operation::Sum, DataType::Int32),
        (Operation::Sum, DataType::Uint8),
        (Operation::Prod, DataType::Double),
        (Operation::Max, DataType::Double),
        (Operation::LogicalXor, DataType::Int64),
        (Operation::MinLoc, DataType::FloatIndex),
        (Operation::MinLoc, DataType::DoubleIndex),
    ] {
        let [short, long] = [8, 256].map(|bytes| nanoseconds(operation, data_type, bytes));
        println!(
            "{:<12}{:<18}{short:>10.1}{long:>10.1}",
            operation.name(),
            data_type.name()
        );
    }
}
