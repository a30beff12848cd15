//! Maps and flow files for the command line: convert, check, describe. The texts come from experiments or stand alone.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use indexmap::IndexMap;
use raddle_disk::replace_file;
use raddle_fabric::{
    CnTnMap, Fabric, FabricError, FabricSource, ImportFormat, ImportOptions, Imported, NodeKind,
    Place, import, parse_hpcc_ns3, parse_toml, write_hpcc_ns3, write_ibsim, write_toml,
};
use raddle_text::MOST_DATA;
use raddle_units::{Bytes, NodeId, Time, UnitError};
use raddle_workload::{
    FlowFormat, FlowList, LoadBase, Message, ReadOptions, TrafficError, TrafficSource, Workload,
    describe, read_flows, write_csv, write_parquet,
};
use serde_json::{Value as Json, json};

use super::{
    resolved::Resolved,
    sources::{build_fabric, rebase_files},
};
use crate::results::ResultsError;
use raddle_text::{Files, InputError as ExperimentError, Node, Problem, read, tree};

/// Messages of a closed loop that a description looks at.
const DESCRIBED_MESSAGES: u64 = 50_000_000;

/// What kind of file a map is read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FabricInput {
    /// By its contents.
    Auto,
    /// A fabric description in TOML.
    Toml,
    /// The `[fabric]` table of an experiment.
    Experiment,
    /// The topology file of the HPCC repository's simulator.
    HpccNs3,
    /// Output of `ibnetdiscover`.
    Ibnetdiscover,
    /// A net file of ibsim.
    Ibsim,
}

/// What kind of file flows are read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowsInput {
    /// By its name: `.toml` is an experiment.
    Auto,
    /// The traffic of an experiment.
    Experiment,
    /// A flow file.
    File(FlowFormat),
}

/// The map in `text`: a fabric description, an experiment, or a topology file.
///
/// # Errors
/// Text that is not of the format, or a map with wrong nodes, links or parameters; with its place.
pub fn load_fabric(
    text: &str,
    path: &str,
    input: FabricInput,
    files: &dyn Files,
) -> Result<Fabric, ExperimentError> {
    let input = match input {
        FabricInput::Auto => recognise(text),
        given => given,
    };
    // These errors name file and line themselves.
    let plain = |error: &FabricError| ExperimentError::plain(Problem::refused(error));
    match input {
        FabricInput::HpccNs3 => parse_hpcc_ns3(text, path).map_err(|error| plain(&error)),
        FabricInput::Ibnetdiscover | FabricInput::Ibsim => {
            let options = ImportOptions {
                format: import_format(input),
                ..ImportOptions::default()
            };
            let imported = import(text, path, &options).map_err(|error| plain(&error))?;
            Ok(imported.fabric)
        }
        FabricInput::Experiment => {
            let mut root = tree::load(text, path, files)?;
            rebase_files(&mut root, files);
            let Some(table) = root.find(&["fabric"]) else {
                let problem = Problem::Missing {
                    key: "fabric".to_owned(),
                    within: String::new(),
                };
                return Err(ExperimentError::at(&root.at, problem));
            };
            build_fabric(&read::<FabricSource>(table)?, &root, files)
        }
        FabricInput::Auto | FabricInput::Toml => {
            parse_toml(text, path).map_err(|error| plain(&error))
        }
    }
}

/// A topology file begins with numbers, an experiment has a `[fabric]` table.
fn recognise(text: &str) -> FabricInput {
    let first = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("");
    if first.starts_with(|c: char| c.is_ascii_digit()) {
        return FabricInput::HpccNs3;
    }
    if let Some(input) = recognise_infiniband(text) {
        return input;
    }
    let has_fabric = |node: Node| node.find(&["fabric"]).is_some();
    match tree::parse(text, "") {
        Ok(node) if has_fabric(node.clone()) || node.find(&["include"]).is_some() => {
            FabricInput::Experiment
        }
        _ => FabricInput::Toml,
    }
}

/// `Switch 36 "id"` and `Ca 1 "id"` lines are no TOML.
fn recognise_infiniband(text: &str) -> Option<FabricInput> {
    let is_node = |line: &str| {
        let mut words = line.split_whitespace();
        matches!(words.next(), Some("Switch" | "Ca" | "Hca" | "Rt"))
            && words.next().is_some_and(|word| word.parse::<u16>().is_ok())
            && words.next().is_some_and(|word| word.starts_with('"'))
    };
    let mut lines = text.lines().take_while(|line| !line.starts_with('['));
    lines.any(is_node).then(|| {
        let ours = |line: &str| line.starts_with("vendid=") || line.starts_with("sysimgguid=");
        if text.lines().any(ours) {
            FabricInput::Ibnetdiscover
        } else {
            FabricInput::Ibsim
        }
    })
}

fn import_format(input: FabricInput) -> ImportFormat {
    match input {
        FabricInput::Ibnetdiscover => ImportFormat::Ibnetdiscover,
        FabricInput::Ibsim => ImportFormat::Ibsim,
        _ => ImportFormat::Auto,
    }
}

/// How a file of another program becomes a map.
#[derive(Clone, Copy, Debug)]
pub struct ImportRequest<'a> {
    /// `Ibnetdiscover`, `Ibsim`, or anything else for "by its contents".
    pub input: FabricInput,
    /// Rate of links for which the file gives none, as `100Gbps`.
    pub rate: Option<&'a str>,
    /// Propagation delay of all links, as `1us`.
    pub delay: Option<&'a str>,
    /// Whether an adapter with several links becomes a host per port.
    pub split_ports: bool,
}

/// The map of an InfiniBand fabric and a description of what was found: what [`fabric_summary`] says, notes on what
/// was odd or left out, the CN/TN fat tree that it is (shape, what is missing) or why it is not one.
///
/// # Errors
/// Text that is not of the format, a map that cannot be built, or options that do not fit it; with its place.
pub fn import_map(
    text: &str,
    path: &str,
    request: &ImportRequest<'_>,
) -> Result<(Fabric, Json), ExperimentError> {
    let plain = |error: &FabricError| ExperimentError::plain(Problem::refused(error));
    let wrong = |key: &str, problem: String| {
        let at = Place {
            source: "command line".to_owned(),
            line: None,
        };
        plain(&FabricError::BadParameter {
            at,
            key: key.to_owned(),
            problem,
        })
    };
    let mut options = ImportOptions {
        format: import_format(request.input),
        split_ports: request.split_ports,
        ..ImportOptions::default()
    };
    if let Some(rate) = request.rate {
        options.rate = Some(
            rate.parse()
                .map_err(|error: UnitError| wrong("rate", error.to_string()))?,
        );
    }
    if let Some(delay) = request.delay {
        let parsed = delay.parse();
        options.delay = parsed.map_err(|error: UnitError| wrong("delay", error.to_string()))?;
    }
    let Imported {
        fabric,
        notes,
        tree,
    } = import(text, path, &options).map_err(|error| plain(&error))?;
    let mut found = fabric_summary(&fabric, false);
    found["notes"] = json!(notes);
    match tree {
        Ok(map) => found["tree"] = tree_summary(&fabric, &map),
        Err(error) => found["no_tree"] = json!(error.to_string()),
    }
    Ok((fabric, found))
}

/// Missing links that are listed.
const LISTED_LINKS: usize = 5;

fn tree_summary(fabric: &Fabric, map: &CnTnMap) -> Json {
    let links: Vec<String> = map
        .missing_links()
        .take(LISTED_LINKS)
        .map(|(lower, upper)| format!("{} - {}", fabric.node_name(lower), fabric.node_name(upper)))
        .collect();
    let mut tree = json!(map.shape());
    tree["missing"] = json!(map.missing());
    tree["missing_links"] = json!(links);
    tree
}

/// A map as a net file of ibsim.
///
/// # Errors
/// A node with more ports than InfiniBand has.
pub fn fabric_net(fabric: &Fabric) -> Result<String, ExperimentError> {
    write_ibsim(fabric).map_err(|error| ExperimentError::plain(Problem::refused(&error)))
}

/// A map as text, node by node.
pub fn fabric_text(fabric: &Fabric, hpcc_ns3: bool) -> String {
    if hpcc_ns3 {
        write_hpcc_ns3(fabric)
    } else {
        write_toml(fabric)
    }
}

/// A map in numbers: hosts, switches and links, levels with their largest number of ports, kinds of links. With
/// `graph` also all nodes and links as columns.
pub fn fabric_summary(fabric: &Fabric, graph: bool) -> Json {
    let nodes = || (0..fabric.node_count() as u32).map(NodeId);
    let mut levels: IndexMap<u8, (u64, usize)> = IndexMap::new();
    for node in nodes() {
        let (count, ports) = levels.entry(fabric.level(node)).or_default();
        *count += 1;
        *ports = (*ports).max(fabric.ports_of(node).len());
    }
    levels.sort_keys();
    let mut kinds: IndexMap<_, u64> = IndexMap::new();
    for link in fabric.links() {
        *kinds.entry((link.rate, link.delay)).or_default() += 1;
    }
    let mut summary = json!({
        "name": fabric.name(),
        "hosts": fabric.hosts().len(),
        "switches": fabric.switches().len(),
        "links": fabric.links().len(),
        "levels": levels.iter().map(|(level, (count, ports))| {
            json!({ "level": level, "nodes": count, "ports": ports })
        }).collect::<Vec<_>>(),
        "link_kinds": kinds.iter().map(|((rate, delay), links)| {
            json!({ "rate": rate.to_string(), "delay": delay.to_string(), "links": links })
        }).collect::<Vec<_>>(),
    });
    if graph {
        let kind = |node| match fabric.kind(node) {
            NodeKind::Host => "host",
            NodeKind::Switch => "switch",
        };
        let end = |side: usize| -> Vec<u32> {
            fabric
                .links()
                .iter()
                .map(|link| fabric.port(link.ports[side]).node.0)
                .collect()
        };
        let layout = fabric.layout();
        summary["graph"] = json!({
            "nodes": {
                "node": nodes().map(|node| node.0).collect::<Vec<_>>(),
                "kind": nodes().map(kind).collect::<Vec<_>>(),
                "level": nodes().map(|node| fabric.level(node)).collect::<Vec<_>>(),
                "name": nodes().map(|node| fabric.node_name(node)).collect::<Vec<_>>(),
                "x": layout.iter().map(|place| place.x).collect::<Vec<_>>(),
            },
            "links": {
                "node_a": end(0),
                "node_b": end(1),
                "rate_bps": fabric.links().iter().map(|link| link.rate.0).collect::<Vec<_>>(),
                "delay_ps": fabric.links().iter().map(|link| link.delay.0).collect::<Vec<_>>(),
            },
        });
    }
    summary
}

/// The flows of an experiment or a flow file, and what their load is measured against.
struct Flows {
    workload: Box<dyn Workload>,
    base: Option<LoadBase>,
}

fn load_flows(
    path: &str,
    input: FlowsInput,
    seed: u64,
    isolated: bool,
    files: &dyn Files,
) -> Result<Flows, ExperimentError> {
    let input = match input {
        FlowsInput::Auto if path.ends_with(".toml") => FlowsInput::Experiment,
        FlowsInput::Auto => FlowsInput::File(FlowFormat::from_file_name(path)),
        given => given,
    };
    let unreadable = |reason| {
        ExperimentError::plain(Problem::Unreadable {
            file: path.to_owned(),
            reason,
        })
    };
    let no_twin = |hint: &str| {
        let problem = Problem::Refused("there are no tested flows among others".to_owned());
        ExperimentError::of_file(path, problem).with_hint(hint)
    };
    let FlowsInput::File(format) = input else {
        let text = files.read_text(path).map_err(unreadable)?;
        let resolved = Resolved::new(&text, path, files)?;
        let workload = resolved
            .traffic(seed, isolated, files)?
            .ok_or_else(|| no_twin("leave out --isolated"))?;
        let base = LoadBase {
            hosts: resolved.network.fabric.hosts().len() as u64,
            host_rate: resolved.network.environment.line_rate,
            window: (resolved.experiment.traffic.as_ref()).and_then(TrafficSource::window),
            limit: DESCRIBED_MESSAGES,
        };
        return Ok(Flows {
            workload,
            base: Some(base),
        });
    };
    let bytes = files.read(path, MOST_DATA).map_err(unreadable)?;
    let list = read_flows(&bytes, format, &ReadOptions::new(path))
        .map_err(|error| ExperimentError::plain(Problem::refused(&error)))?;
    let list = if isolated {
        list.isolated()
            .ok_or_else(|| no_twin("tested classes begin with `tested-`"))?
    } else {
        list
    };
    Ok(Flows {
        workload: Box::new(list),
        base: None,
    })
}

/// Counts and bytes of flows, in all and per class, as JSON.
///
/// # Errors
/// An experiment or flow file that cannot be read or is wrong, with its place.
pub fn traffic_summary(
    path: &str,
    input: FlowsInput,
    seed: u64,
    files: &dyn Files,
) -> Result<Json, ExperimentError> {
    let mut flows = load_flows(path, input, seed, false, files)?;
    let known = flows.base.is_some();
    let base = flows.base.unwrap_or(LoadBase {
        hosts: 1,
        host_rate: raddle_units::BitRate::from_gbps(100),
        window: None,
        limit: DESCRIBED_MESSAGES,
    });
    let stats = describe(flows.workload.as_mut(), &base)
        .map_err(|error| ExperimentError::plain(Problem::refused(&error)))?;
    let mut summary = json!(stats);
    if !known && let Some(summary) = summary.as_object_mut() {
        // A flow file says nothing about the hosts, so it has no load.
        summary.remove("load");
    }
    Ok(summary)
}

/// Writes the flows of an experiment or a flow file to `out`, which is replaced by rename. Gives their number.
///
/// # Errors
/// An experiment or flow file that is wrong, a closed loop, whose messages have no times of their own, or a file that cannot be
/// written.
pub fn write_traffic(
    path: &str,
    input: FlowsInput,
    seed: u64,
    isolated: bool,
    files: &dyn Files,
    out: &Path,
    format: FlowFormat,
) -> Result<u64, ResultsError> {
    let flows = load_flows(path, input, seed, isolated, files)?;
    let mut counted = Counted {
        inner: flows.workload,
        popped: 0,
    };
    replace_file(out, |open| write_flows(&mut counted, open, out, format))?;
    Ok(counted.popped)
}

/// Writes to `path`, which is to become `target`.
fn write_flows(
    flows: &mut Counted,
    path: &Path,
    target: &Path,
    format: FlowFormat,
) -> Result<(), ResultsError> {
    let file = File::create(path).map_err(ResultsError::disk("write", target))?;
    let mut out = BufWriter::new(Watched {
        file,
        refused: None,
    });
    let written = match format {
        FlowFormat::HpccNs3 => {
            // The number of flows comes first in this format.
            FlowList::collect(flows)
                .and_then(|mut list| raddle_workload::write_hpcc_ns3(&mut list, &mut out))
        }
        FlowFormat::Csv => write_csv(flows, &mut out),
        FlowFormat::Parquet => write_parquet(flows, &mut out),
    };
    let wrong = |error: &TrafficError| ExperimentError::plain(Problem::refused(&error));
    let flushed = out.flush();
    if let Some(error) = out.get_mut().refused.take() {
        return Err(ResultsError::disk("write", target)(error));
    }
    written.map_err(|error| wrong(&error))?;
    if let Some(fault) = flows.fault() {
        return Err(wrong(fault).into());
    }
    flushed.map_err(ResultsError::disk("write", target))
}

/// A file that keeps what the system refused: writers of formats tell it in words of their own.
struct Watched {
    file: File,
    refused: Option<std::io::Error>,
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes).inspect_err(|error| {
            self.refused = error.raw_os_error().map(std::io::Error::from_raw_os_error);
        })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// A workload that counts what is taken from it.
struct Counted {
    inner: Box<dyn Workload>,
    popped: u64,
}

impl Workload for Counted {
    fn classes(&self) -> &[String] {
        self.inner.classes()
    }
    fn next_start(&self) -> Option<Time> {
        self.inner.next_start()
    }
    fn pop(&mut self) -> Option<Message> {
        let message = self.inner.pop();
        self.popped += u64::from(message.is_some());
        message
    }
    fn on_delivered(&mut self, now: Time, tag: u64) {
        self.inner.on_delivered(now, tag);
    }
    fn has_dependencies(&self) -> bool {
        self.inner.has_dependencies()
    }
    fn expected_messages(&self) -> Option<u64> {
        self.inner.expected_messages()
    }
    fn expected_bytes(&self) -> Option<Bytes> {
        self.inner.expected_bytes()
    }
    fn is_open_ended(&self) -> bool {
        self.inner.is_open_ended()
    }
    fn finished(&self) -> bool {
        self.inner.finished()
    }
    fn fault(&self) -> Option<&TrafficError> {
        self.inner.fault()
    }
}
