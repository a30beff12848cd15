//! Replays the corpus of the fuzz targets: what once was found, or is likely to be, is tried in every test run.

use std::{fs, path::Path};

#[path = "../../../fuzz/parsers.rs"]
mod parsers;

/// Feeds every file of a target's corpus to its parser; a panic names the file.
fn replay(target: &str, parser: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(
        files.len() >= 8,
        "{}: only {} files",
        folder.display(),
        files.len()
    );
    for file in files {
        let bytes = fs::read(&file).unwrap();
        println!("{}", file.display());
        parser(&bytes);
        // Files that were cut short are the most usual damage.
        for tenth in 0..10 {
            parser(&bytes[..bytes.len() * tenth / 10]);
        }
    }
}

#[test]
fn experiments() {
    replay("experiment", parsers::experiment);
}

#[test]
fn fabric_descriptions() {
    replay("fabric_toml", parsers::fabric_toml);
}

#[test]
fn topology_files() {
    replay("topology_hpcc_ns3", parsers::topology_hpcc_ns3);
}

#[test]
fn reference_flow_files() {
    replay("flows_hpcc_ns3", parsers::flows_hpcc_ns3);
}

#[test]
fn csv_flow_files() {
    replay("flows_csv", parsers::flows_csv);
}
