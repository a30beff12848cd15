//! Every figure of the reference's runs beside ours: compat mode, and the default mode on the same input.
//!
//! ```text
//! cargo run --release -p raddle-engine --example validate            # compat and default mode, seed 1
//! cargo run --release -p raddle-engine --example validate -- --seeds 5 --only dcqcn
//! cargo run --release -p raddle-engine --example validate -- --corrections
//! ```
//! Prints Markdown; docs/results/validation.md holds its output, that of `--corrections` included.
#![allow(clippy::print_stdout)]

mod corrections;
#[path = "../../tests/reference/mod.rs"]
mod reference;

use std::error::Error;

use lexopt::prelude::*;
use raddle_engine::Semantics;
use reference::{CASES, Case, compare};

struct Options {
    seeds: u64,
    only: String,
    corrections: bool,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        seeds: 1,
        only: String::new(),
        corrections: false,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("seeds") => options.seeds = parser.value()?.parse::<u64>()?.max(1),
            Long("corrections") => options.corrections = true,
            Long("only") => options.only = parser.value()?.string()?,
            _ => return Err(argument.unexpected().into()),
        }
    }
    Ok(options)
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    if options.corrections {
        corrections::print();
        return Ok(());
    }
    for case in CASES {
        if !case.variant.contains(&options.only) {
            continue;
        }
        // Only DCQCN's marks depend on the seed.
        let drawn = case.variant.starts_with("dcqcn");
        let seeds = if drawn { options.seeds } else { 1 };
        for seed in 1..=seeds {
            show(case, seed);
        }
    }
    Ok(())
}

fn show(case: &Case, seed: u64) {
    let theirs = case.reference();
    let (compat, _) = case.run(Semantics::HPCC_NS3, seed);
    let (default, _) = case.run(Semantics::CORRECTED, seed);
    println!("\n### {} {}, seed {seed}\n", case.experiment, case.variant);
    println!("| figure | reference | compat | difference | limit | default mode | difference |");
    println!("|---|--:|--:|--:|--:|--:|--:|");
    let own = compare(case, &compat, &theirs);
    let corrected = compare(case, &default, &theirs);
    for (row, corrected) in own.iter().zip(&corrected) {
        let limit = format!("{:.0} %", 100.0 * row.limit);
        println!(
            "| {} | {} | {} | {}{} | {limit} | {} | {} |",
            row.figure,
            number(row.theirs),
            number(row.ours),
            percent(row.difference()),
            if row.holds() { "" } else { " **outside**" },
            number(corrected.ours),
            percent(corrected.difference()),
        );
    }
}

fn number(value: f64) -> String {
    if value == value.trunc() {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

fn percent(fraction: f64) -> String {
    if fraction == 0.0 {
        "0".into()
    } else if fraction.is_infinite() {
        "-".into()
    } else {
        format!("{:+.2} %", 100.0 * fraction)
    }
}
