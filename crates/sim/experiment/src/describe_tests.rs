//! Maps and flow files from every kind of source, and what a broken one says.

use std::fs;

use raddle_workload::FlowFormat;

use super::*;
use crate::results::ResultsError;

const EXPERIMENT: &str = r#"schema = 1
include = ["base.toml"]
[traffic]
generator = "hpc-mix"
"#;

const BASE: &str = r#"[fabric]
file = "maps/topo.txt"
format = "hpcc-ns3"
[simulation]
schemes = ["none"]
"#;

/// A dumbbell with 10 hosts at each end, as a topology file.
fn topology() -> String {
    let map = load_fabric(
        "schema = 1\nkind = \"dumbbell\"\nhosts_per_side = 10\n",
        "d.toml",
        FabricInput::Auto,
        &MemoryFiles::default(),
    );
    fabric_text(&map.unwrap(), true)
}

fn files() -> MemoryFiles {
    MemoryFiles::default()
        .with("e/two.toml", EXPERIMENT)
        .with("e/base.toml", BASE)
        .with("e/maps/topo.txt", topology())
        .with(
            "flows.csv",
            "src,dst,size_bytes,start_us,class\n0,1,5000,0,tested-long\n2,1,64,1,background\n",
        )
        .with("short.txt", "3\n0 1 3 100 5 0.0\n")
}

#[test]
fn a_map_is_recognised_by_its_contents() {
    let from =
        |text: &str, path: &str| load_fabric(text, path, FabricInput::Auto, &files()).unwrap();
    let described = from(
        "schema = 1\nkind = \"dumbbell\"\nhosts_per_side = 10\n",
        "d.toml",
    );
    let listed = from(&topology(), "topo.txt");
    let named = from(EXPERIMENT, "e/two.toml");
    for fabric in [&listed, &named] {
        assert_eq!(fabric_text(fabric, true), fabric_text(&described, true));
    }
}

#[test]
fn a_summary_counts_levels_and_kinds_of_links() {
    let map = load_fabric(&topology(), "topo.txt", FabricInput::HpccNs3, &files()).unwrap();
    let summary = fabric_summary(&map, true);
    assert_eq!(
        (&summary["hosts"], &summary["switches"], &summary["links"]),
        (&20.into(), &2.into(), &21.into())
    );
    assert_eq!(summary["levels"][1]["ports"], 11);
    assert_eq!(summary["link_kinds"][0]["rate"], "100Gbps");
    assert_eq!(
        summary["graph"]["links"]["node_a"]
            .as_array()
            .unwrap()
            .len(),
        21
    );
}

#[test]
fn traffic_is_described_from_experiments_and_files() {
    let files = files();
    let mix = traffic_summary("e/two.toml", FlowsInput::Auto, 1, &files).unwrap();
    assert!(mix["flows"].as_u64().unwrap() > 0 && mix["load"].is_number());
    let list = traffic_summary("flows.csv", FlowsInput::Auto, 1, &files).unwrap();
    assert_eq!((&list["flows"], &list["bytes"]), (&2.into(), &5064.into()));
    assert!(list.get("load").is_none());
}

#[test]
fn flows_are_written_whole_or_not_at_all() {
    let folder = std::env::temp_dir().join(format!("raddle-describe-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let out = folder.join("flows.txt");
    let write = |path, isolated| {
        write_traffic(
            path,
            FlowsInput::Auto,
            1,
            isolated,
            &files(),
            &out,
            FlowFormat::HpccNs3,
        )
    };
    assert_eq!(write("flows.csv", false).unwrap(), 2);
    assert_eq!(write("flows.csv", true).unwrap(), 1);
    let before = fs::read(&out).unwrap();
    let error = write("short.txt", false).unwrap_err();
    assert!(matches!(error, ResultsError::Experiment(_)), "{error}");
    assert!(error.to_string().starts_with("short.txt:1: "), "{error}");
    assert_eq!(fs::read(&out).unwrap(), before);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    let nowhere = folder.join("none/flows.txt");
    let error = write_traffic(
        "flows.csv",
        FlowsInput::Auto,
        1,
        false,
        &files(),
        &nowhere,
        FlowFormat::Csv,
    );
    let message = error.unwrap_err().to_string();
    assert!(
        message.contains("none/flows.txt") && !message.contains(".tmp"),
        "{message}"
    );
    fs::remove_dir_all(&folder).unwrap();
}
