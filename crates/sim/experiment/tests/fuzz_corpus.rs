//! Replays the corpus of the fuzz targets: what once was found, or is likely to be, is tried in every test run.

#[path = "../../../../fuzz/damage.rs"]
mod damage;
#[path = "../../../../fuzz/parsers.rs"]
mod parsers;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

fn replay(target: &str, parser: fn(&[u8])) {
    replay::replay(target, |bytes| damage::damage(parser, bytes));
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
fn files_of_infiniband_tools() {
    replay("topology_infiniband", parsers::topology_infiniband);
}

#[test]
fn reference_flow_files() {
    replay("flows_hpcc_ns3", parsers::flows_hpcc_ns3);
}

#[test]
fn csv_flow_files() {
    replay("flows_csv", parsers::flows_csv);
}

#[test]
fn group_files() {
    replay("groups_toml", parsers::groups_toml);
    replay("groups_csv", parsers::groups_csv);
}
