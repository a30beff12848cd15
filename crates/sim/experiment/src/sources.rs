//! What an experiment names outside itself: maps, flow files, nodes of the map.

use raddle_fabric::Fabric;
pub(super) use raddle_fabric::build_fabric;
use raddle_text::{MOST_DATA, MOST_TEXT};
use raddle_units::Time;
use raddle_workload::{FlowTimes, TrafficError, TrafficSource, Workload};

use super::{fields::Fault, names::NodeName};
use raddle_engine::{LinkFault, Network, Semantics};
use raddle_text::{Files, InputError as ExperimentError, Node, Problem, clip, tree::Value};

/// The messages that a `[traffic]` table describes or names.
pub(super) fn build_traffic(
    source: &TrafficSource,
    network: &Network,
    seed: u64,
    files: &dyn Files,
) -> Result<Box<dyn Workload>, TrafficError> {
    let times = if network.semantics == Semantics::HPCC_NS3 {
        FlowTimes::HpccNs3
    } else {
        FlowTimes::Exact
    };
    let most = match source {
        TrafficSource::Spec(_) => MOST_TEXT,
        TrafficSource::File(_) => MOST_DATA,
    };
    let mut read = |name: &str| files.read(name, most);
    source.build(
        &mut read,
        network.fabric.hosts(),
        network.environment.line_rate,
        seed,
        times,
    )
}

/// The links that fail, found in the map; `root` gives the places.
pub(super) fn find_faults(
    faults: &[Fault],
    fabric: &Fabric,
    root: &Node,
) -> Result<Vec<LinkFault>, ExperimentError> {
    let mut found = Vec::new();
    for (index, fault) in faults.iter().enumerate() {
        let at = match root.find(&["simulation", "faults"]).map(|node| &node.value) {
            Some(Value::Array(items)) if index < items.len() => items[index].locate(&["link"]),
            _ => root.locate(&["simulation", "faults"]),
        };
        let error = |message: String, hint: &str| {
            let problem = Problem::Value {
                key: "`link`: ".to_owned(),
                message: clip(&message),
            };
            ExperimentError::at(at, problem).with_hint(hint)
        };
        let [a, b] = &fault.link;
        let node = |name: &NodeName| {
            name.find(fabric).ok_or_else(|| {
                let message = format!("there is no node `{name}` in {}", fabric.name());
                error(message, "`raddle fabric show` lists the nodes")
            })
        };
        let (a, b) = (node(a)?, node(b)?);
        let before = found.len();
        let links = fabric
            .ports_of(a)
            .iter()
            .filter(|port| fabric.port(port.peer).node == b);
        found.extend(links.map(|port| LinkFault {
            link: port.link,
            down: Time(fault.down.0),
            up: fault.up.map(|up| Time(up.0)),
        }));
        if found.len() == before {
            let message = format!(
                "{} and {} are not joined",
                fabric.node_name(a),
                fabric.node_name(b)
            );
            return Err(error(message, "`raddle fabric show` lists the links"));
        }
    }
    Ok(found)
}

/// Names of files become relative to where the program runs, wherever the text that names them lies.
pub(super) fn rebase_files(root: &mut Node, files: &dyn Files) {
    let named = root.find(&["traffic", "file"]).is_some();
    for table in ["fabric", "traffic"] {
        if let Some(node) = root.find_mut(&[table]) {
            rebase(node, &["file"], files);
        }
    }
    if named && let Some(node) = root.find_mut(&["traffic"]) {
        rebase(node, &["classes"], files);
    }
    for (table, key) in [("simulation", "ecn_marks"), ("hosts", "costs")] {
        if let Some(node) = root.find_mut(&[table]) {
            rebase(node, &[key], files);
        }
    }
    if let Some(Value::Array(jobs)) = root.find_mut(&["job"]).map(|node| &mut node.value) {
        for job in jobs {
            rebase(job, &["program"], files);
        }
    }
}

fn rebase(node: &mut Node, keys: &[&str], files: &dyn Files) {
    let Value::Table(table) = &mut node.value else {
        return;
    };
    for entry in &mut table.entries {
        let Node { value, at } = &mut entry.node;
        match value {
            Value::String(file) if keys.contains(&entry.key.as_str()) => {
                *file = files.beside(&at.source.name, file);
            }
            Value::Table(_) => rebase(&mut entry.node, keys, files),
            _ => {}
        }
    }
}
