//! Prints the tables of `docs/reference/wire.md`, one per header.
//!
//! `cargo run -p raddle-wire --example wire_tables -- docs/reference/wire.md` puts them into the page instead, each behind its
//! line `<!-- table: NAME -->`.
#![allow(clippy::print_stdout, reason = "a program that prints tables")]

use std::fs;

#[path = "../tests/tables/mod.rs"]
mod tables;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1) {
        Some(page) => fs::write(&page, tables::renewed(&fs::read_to_string(&page)?))?,
        None => tables::all()
            .iter()
            .for_each(|(_, table)| println!("{table}")),
    }
    Ok(())
}
