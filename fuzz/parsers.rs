//! What every parser promises about any input, used by the fuzz targets and by the replay of the corpus in
//! `crates/sim/engine/tests/fuzz_corpus.rs`: no panic, and an error that fits on a screen and names its source.

#![allow(dead_code, reason = "each user takes some of the functions")]

use raddle_experiment::{Experiment, MemoryFiles, Resolved};
use raddle_fabric::{
    ImportFormat, ImportOptions, dumbbell, import, parse_hpcc_ns3, parse_toml, write_hpcc_ns3,
    write_ibsim, write_toml,
};
use raddle_multicast::groups::{GroupFormat, read_groups, write_groups};
use raddle_workload::{FlowFormat, FlowTimes, ReadOptions, read_flows, write_csv};

#[path = "texts.rs"]
mod texts;
use texts::{judge, longest_number};

/// An experiment file; `base.toml` and `loop.toml` can be included.
pub(crate) fn experiment(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let files = MemoryFiles::default()
        .with("base.toml", "[simulation]\nseeds = [1]\n")
        .with("loop.toml", "include = [\"fuzz.toml\"]\n")
        .with("fuzz.toml", bytes);
    let judged = match Experiment::parse(text, "fuzz.toml", &files) {
        // What is well-formed is resolved too, unless it may describe a network that takes minutes to build.
        Ok(_) if text.contains("hosts_per_side") && longest_number(text) < 5 => {
            Resolved::new(text, "fuzz.toml", &files).map(|_| ())
        }
        parsed => parsed.map(|_| ()),
    };
    if let Err(error) = judged {
        judge(&error.to_string(), &["fuzz.toml", "loop.toml", "base.toml"]);
    }
}

/// A fabric description.
pub(crate) fn fabric_toml(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Err(error) = parse_toml(text, "fuzz.toml") {
        judge(&error.to_string(), &[]);
    }
}

/// A topology file; what is accepted is written and read again.
pub(crate) fn topology_hpcc_ns3(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match parse_hpcc_ns3(text, "fuzz.txt") {
        Err(error) => judge(&error.to_string(), &["fuzz.txt"]),
        Ok(fabric) => {
            let written = write_hpcc_ns3(&fabric);
            let again = parse_hpcc_ns3(&written, "again").expect("what was written can be read");
            assert_eq!(write_hpcc_ns3(&again), written);
        }
    }
}

/// A file of InfiniBand tools, read as each of them; what is accepted is kept as our own map and written as a net file.
pub(crate) fn topology_infiniband(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for format in [ImportFormat::Ibnetdiscover, ImportFormat::Ibsim] {
        let options = ImportOptions {
            format,
            split_ports: format == ImportFormat::Ibsim,
            ..ImportOptions::default()
        };
        match import(text, "fuzz.net", &options) {
            Err(error) => judge(&error.to_string(), &["fuzz.net"]),
            Ok(found) => {
                if let Err(error) = &found.tree {
                    judge(&error.to_string(), &[]);
                }
                let kept = parse_toml(&write_toml(&found.fabric), "map.toml");
                assert_eq!(kept.as_ref(), Ok(&found.fabric), "a map can be kept");
                if let Ok(net) = write_ibsim(&found.fabric) {
                    import(&net, "again", &ImportOptions::default())
                        .expect("what was written can be read");
                }
            }
        }
    }
}

/// A reference flow file, in both readings of its times.
pub(crate) fn flows_hpcc_ns3(bytes: &[u8]) {
    for times in [FlowTimes::Exact, FlowTimes::HpccNs3] {
        let options = ReadOptions {
            times,
            ..ReadOptions::new("fuzz.txt")
        };
        if let Err(error) = read_flows(bytes, FlowFormat::HpccNs3, &options) {
            judge(&error.to_string(), &["fuzz.txt"]);
        }
    }
}

/// A CSV flow file; what is accepted is written and read again.
pub(crate) fn flows_csv(bytes: &[u8]) {
    let options = ReadOptions::new("fuzz.csv");
    match read_flows(bytes, FlowFormat::Csv, &options) {
        Err(error) => judge(&error.to_string(), &["fuzz.csv"]),
        Ok(flows) => {
            let mut written = Vec::new();
            write_csv(&mut flows.rewound(), &mut written).expect("a list can be written");
            let again = read_flows(&written, FlowFormat::Csv, &options)
                .expect("what was written can be read");
            assert_eq!(again.messages(), flows.messages());
        }
    }
}

/// Multicast groups as TOML.
pub(crate) fn groups_toml(bytes: &[u8]) {
    groups(bytes, GroupFormat::Toml);
}

/// Multicast groups as CSV.
pub(crate) fn groups_csv(bytes: &[u8]) {
    groups(bytes, GroupFormat::Csv);
}

/// What is accepted is written and read again, in both formats.
fn groups(bytes: &[u8], format: GroupFormat) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let fabric = dumbbell(4).expect("a small map");
    match read_groups(text, format, "fuzz.txt", &fabric) {
        Err(error) => judge(&error.to_string(), &["fuzz.txt"]),
        Ok(file) => {
            for format in [GroupFormat::Toml, GroupFormat::Csv] {
                let written = write_groups(&file, format, &fabric);
                let again = read_groups(&written, format, "again", &fabric)
                    .expect("what was written can be read");
                // CSV has no space at the ends of a name.
                let trimmed = file
                    .groups
                    .iter()
                    .all(|group| group.name.trim() == group.name);
                assert!(again == file || (format == GroupFormat::Csv && !trimmed));
            }
        }
    }
}
