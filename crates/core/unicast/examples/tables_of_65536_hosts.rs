//! Builds the k-ary fat tree with k = 64 (65,536 hosts, 5,120 switches) and its routing tables; prints time and memory.
//!
//! `cargo run --release -p raddle-unicast --example tables_of_65536_hosts [k]`
#![allow(clippy::print_stdout, reason = "a program that prints a measurement")]

use std::time::Instant;

use raddle_fabric::KAryFatTree;
use raddle_unicast::{LinkState, NextHopOrder, UnicastTables};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let k = std::env::args().nth(1).map_or(Ok(64), |k| k.parse())?;
    let start = Instant::now();
    let fabric = KAryFatTree::new(k).build()?;
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
