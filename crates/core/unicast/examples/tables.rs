//! Builds a map and its routing tables; prints time and memory of each.
//!
//! `cargo run --release -p raddle-unicast --example tables -- 'kind = "k-ary-fat-tree"' 'k = 64'`: each argument is a
//! line of a map file.
#![allow(clippy::print_stdout, reason = "a program that prints a measurement")]

use std::time::Instant;

use raddle_fabric::parse_toml;
use raddle_unicast::{LinkState, NextHopOrder, UnicastTables};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lines: Vec<String> = std::env::args().skip(1).collect();
    let start = Instant::now();
    let text = format!("schema = 1\n{}\n", lines.join("\n"));
    let fabric = parse_toml(&text, "arguments")?;
    println!(
        "map: {} hosts, {} switches, {} links: {:.2?}, {:.1} MB",
        fabric.hosts().len(),
        fabric.switches().len(),
        fabric.links().len(),
        start.elapsed(),
        fabric.memory_bytes() as f64 / 1e6,
    );
    let start = Instant::now();
    let links = LinkState::all_up(&fabric);
    let tables = UnicastTables::compute(&fabric, &links, NextHopOrder::ByPort)?;
    println!(
        "tables: {} destination classes: {:.2?}, {:.1} MB",
        tables.destination_classes().len(),
        start.elapsed(),
        tables.memory_bytes() as f64 / 1e6,
    );
    Ok(())
}
