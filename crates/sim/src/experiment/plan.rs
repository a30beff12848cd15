//! A resolved experiment as JSON: what will run, with which parameters, and what it will cost.

use indexmap::IndexMap;
use raddle_files::open::MOST_TEXT;
use raddle_units::{Bytes, Time};
use raddle_workload::{TrafficSource, Workload};
use serde::Serialize;
use serde_json::json;

use super::{
    fields::{RecordTable, ScoreTable, SimulationTable},
    files::Files,
    rails::RailsTable,
    resolve::{Resolved, SchemeRun},
    switch::SwitchTable,
};
use crate::Network;

/// Version of the plan's layout.
const PLAN_SCHEMA: u32 = 1;
/// Packet-hops per second and core that estimates assume; docs/performance.md has the measurements.
const PACKET_HOPS_PER_SECOND: f64 = 6e6;
/// The same where a run's state is larger than the caches that machines have.
const PACKET_HOPS_PER_SECOND_LARGE: f64 = 2.5e6;
/// From where on a run is large: 320 hosts need 20 MiB beside the base, 8,192 hosts 180 MiB.
const LARGE_BYTES: u64 = BASE_BYTES + (64 << 20);
/// State of one port: queues, buffer accounting, counters.
const BYTES_PER_PORT: u64 = 1024;
/// State of one flow, sender and receiver, and of its message.
const BYTES_PER_FLOW: u64 = 700;
/// A packet under way: header, telemetry of its hops, its places in queues and in the event list.
const BYTES_PER_PACKET: u64 = 240;
/// Samples and buffers that every run has.
const BASE_BYTES: u64 = 16 << 20;

/// What a run will cost; nothing where it cannot be told beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// Link traversals of data packets and acknowledgements.
    pub packet_hops: Option<u64>,
    /// Seconds on one core.
    pub seconds: Option<f64>,
    /// Peak memory of the run, without that of the process around it.
    pub memory_bytes: Option<u64>,
}

impl Estimate {
    /// Payload in full packets over the average path and the acknowledgements back.
    pub(crate) fn of(
        network: &Network,
        workload: &dyn Workload,
        mtu: Bytes,
        average_hops: f64,
        end: Option<Time>,
    ) -> Self {
        let messages = workload.expected_messages();
        // A run that is cut short does less, but how much less nobody knows.
        let payload = workload
            .expected_bytes()
            .filter(|_| end.is_none() && !workload.is_open_ended());
        let packet_hops = payload.map(|bytes| {
            // On average half of a message's last packet is empty.
            let packets = bytes.0 as f64 / mtu.0 as f64 + messages.unwrap_or(0) as f64 / 2.0;
            (packets * average_hops * 2.0) as u64
        });
        let static_bytes = network.fabric.memory_bytes() + network.tables.memory_bytes();
        let ports = network.fabric.port_count() as u64;
        let mean_size = payload.map_or(0, |bytes| bytes.0 / messages.unwrap_or(1).max(1));
        // A host keeps about a message or a bandwidth-delay product under way.
        let under_way = mean_size.min(network.environment.bdp.0) / mtu.0.max(1) + 1;
        let packets = network.fabric.hosts().len() as u64 * under_way;
        let memory = messages.map(|messages| {
            BASE_BYTES
                + static_bytes as u64
                + ports * BYTES_PER_PORT
                + messages * BYTES_PER_FLOW
                + packets * BYTES_PER_PACKET
        });
        let rate = match memory {
            Some(bytes) if bytes > LARGE_BYTES => PACKET_HOPS_PER_SECOND_LARGE,
            _ => PACKET_HOPS_PER_SECOND,
        };
        Self {
            packet_hops,
            seconds: packet_hops.map(|hops| hops as f64 / rate),
            memory_bytes: memory,
        }
    }
}

/// The order in which a resolved experiment is written.
#[derive(Serialize)]
struct ResolvedFile<'a> {
    schema: u32,
    name: &'a str,
    fabric: raddle_fabric::FabricSource,
    traffic: TrafficSource,
    simulation: SimulationTable,
    record: &'a RecordTable,
    score: &'a ScoreTable,
    #[serde(skip_serializing_if = "SwitchTable::is_empty")]
    switch: &'a SwitchTable,
    #[serde(skip_serializing_if = "Option::is_none")]
    rails: Option<&'a RailsTable>,
    schemes: IndexMap<&'a str, Parameters>,
}

/// Parameters of a scheme.
#[derive(Serialize)]
#[serde(untagged)]
enum Parameters {
    /// All of them.
    Effective(IndexMap<&'static str, toml::Value>),
    /// Those that were given: each rail finds the others by its own round-trip time.
    Given(toml::Value),
}

impl Resolved {
    /// The experiment as TOML with every default explicit. It resolves to the same runs.
    pub fn to_toml(&self, files: &dyn Files) -> String {
        let mut fabric = self.experiment.fabric.clone();
        if let raddle_fabric::FabricSource::File(source) = &mut fabric {
            source.file = files.absolute(&source.file);
        }
        let mut traffic = self.experiment.traffic.clone();
        match &mut traffic {
            TrafficSource::File(source) => {
                source.file = files.absolute(&source.file);
                source.classes = source.classes.take().map(|file| files.absolute(&file));
            }
            TrafficSource::Spec(spec) => {
                // Generators take the contents of their files in; what cannot be read was refused before.
                let _ = spec.resolve(&mut |name: &str| files.read(name, MOST_TEXT));
            }
        }
        let mut simulation = self.experiment.simulation.clone();
        simulation.ecn_marks = simulation.ecn_marks.map(|file| files.absolute(&file));
        let given = toml::Value::try_from(&self.experiment.schemes).ok();
        let parameters = |run: &SchemeRun| {
            let given = given.as_ref().and_then(|given| given.get(&run.name));
            if let (Some(_), Some(given)) = (&self.experiment.rails, given) {
                return Parameters::Given(given.clone());
            }
            let all = run.effective.iter().filter(|parameter| !parameter.absent);
            Parameters::Effective(
                all.map(|parameter| (parameter.key, literal(&parameter.value)))
                    .collect(),
            )
        };
        let file = ResolvedFile {
            schema: 1,
            name: &self.name,
            fabric,
            traffic,
            simulation,
            switch: &self.experiment.switch,
            record: &self.experiment.record,
            score: &self.experiment.score,
            rails: self.experiment.rails.as_ref(),
            schemes: self
                .schemes
                .iter()
                .map(|run| (run.name.as_str(), parameters(run)))
                .collect(),
        };
        toml::to_string(&file).unwrap_or_default()
    }

    /// The plan as JSON; `python/raddle/plan.py` documents it.
    pub fn to_plan(&self, files: &dyn Files) -> serde_json::Value {
        let fabric = &self.network.fabric;
        let runs: Vec<_> = self
            .runs
            .iter()
            .map(|run| {
                json!({
                    "name": run.name,
                    "scheme": self.schemes[run.scheme].name,
                    "seed": run.seed,
                    "variant": if run.isolated { "isolated" } else { "loaded" },
                    "stamp": run.stamp,
                    "estimate": run.estimate,
                })
            })
            .collect();
        let parameters: IndexMap<&str, _> = self
            .schemes
            .iter()
            .map(|run| (run.name.as_str(), &run.effective))
            .collect();
        let (flows, bytes) = self.expected;
        json!({
            "schema": PLAN_SCHEMA,
            "name": self.name,
            "experiment": self.to_toml(files),
            "compat": self.experiment.simulation.compat,
            "fabric": {
                "name": fabric.name(),
                "hosts": fabric.hosts().len(),
                "switches": fabric.switches().len(),
                "links": fabric.links().len(),
            },
            "traffic": { "flows": flows, "bytes": bytes, "classes": self.classes },
            "runs": runs,
            "parameters": parameters,
            "settings": self.settings,
            "score": self.experiment.score,
            "warnings": self.warnings,
        })
    }
}

/// A parameter's text as the TOML value that reads back as the same: numbers and truth values bare, the rest quoted.
fn literal(text: &str) -> toml::Value {
    if let Ok(value) = text.parse::<bool>() {
        return value.into();
    }
    if let Ok(value) = text.parse::<i64>() {
        return value.into();
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => value.into(),
        _ => text.into(),
    }
}
