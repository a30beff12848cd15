//! The tables of an experiment file. The comments here are the descriptions in the published JSON Schema.

use raddle_fabric::FabricSource;
use raddle_text::{at_least, at_most, between, list_names, one_line, schema_text};
use raddle_transport::cc::SchemeSettings;
use raddle_unicast::PathChoice;
use raddle_units::{BitRate, Bytes, Span};
use raddle_workload::TrafficSource;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use super::{
    job_tables::{HostsTable, JobTable, MulticastTable, OffloadTable, SetupTable},
    limits::{DAY, MAX_SERIES},
    names::NodeName,
    rails::RailsTable,
    switch::SwitchTable,
};

/// A raddle experiment: a network, traffic on it, and the congestion-control schemes to compare.
///
/// Quantities carry their unit: "100Gbps", "1.5us", "64KiB" (b is a bit, B a byte; k M G decimal, Ki Mi Gi binary).
/// Files are found relative to the file that names them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "raddle experiment")]
pub struct Experiment {
    /// Version of this format: 1.
    #[schemars(extend("const" = 1))]
    pub schema: u32,
    /// Name in results and reports. Default: the file's name without its ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = one_line(120))]
    pub name: Option<String>,
    /// Experiment files to start from. Tables are merged key by key, later files and this one win; lists are replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// The network: `kind = "..."` with its parameters, or `file` and `format`.
    pub fabric: FabricSource,
    /// The traffic: `generator = "..."` with its parameters, or `file` and `format`. Beside jobs it is the background, and may
    /// be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficSource>,
    /// Programs that share the fabric, each on hosts of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub job: Vec<JobTable>,
    /// What is switched on in which runs. Default: each scheme, with jobs as their tables have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<SetupTable>,
    /// What hosts cost that run jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<HostsTable>,
    /// Switches that compute for jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offload: Option<OffloadTable>,
    /// Multicast groups of jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multicast: Option<MulticastTable>,
    /// Hosts with several rails, over which all messages travel. Default: hosts as the fabric has them, and flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rails: Option<RailsTable>,
    /// What is simulated, and how.
    #[serde(default)]
    pub simulation: SimulationTable,
    /// How switches share out their buffers: PFC thresholds, headroom, limits of queues.
    #[serde(default, skip_serializing_if = "SwitchTable::is_empty")]
    pub switch: SwitchTable,
    /// Parameters by scheme; what is not set takes its default.
    #[serde(default)]
    pub schemes: SchemeSettings,
    /// What is recorded besides flows, pauses and port counters.
    #[serde(default)]
    pub record: RecordTable,
    /// How the tested flows are judged.
    #[serde(default)]
    pub score: ScoreTable,
}

/// What is simulated, and how.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SimulationTable {
    /// Congestion-control schemes to compare. Default: none, dctcp, dcqcn, timely, hpcc, pint; on rails swift.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), transform = name_schemes)]
    pub schemes: Option<Vec<String>>,
    /// Seeds, one run each per scheme: traffic generators, ECN marks and PINT draw from them. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub seeds: Option<Vec<u64>>,
    /// Reproduces the quirks of another simulator, for comparison with it. Default: none, the corrected model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compat: Option<Compat>,
    /// Shared buffer of each switch. Default: 32 MiB per 100 Gbps of the fastest host link.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = between("1B", "4095MiB"))]
    pub buffer: Option<Bytes>,
    /// Payload of a full packet. Default: 1000 B; on rails 1472 B, their header included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = between("64B", "9000B"))]
    pub mtu: Option<Bytes>,
    /// PFC keeps the fabric lossless (true), or switches drop what their buffer refuses (false). Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lossless: Option<bool>,
    /// Lowest rate that congestion control may choose. Default: 1 % of the fastest host link (compat: 1 Gbps).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_least("1bps"))]
    pub min_rate: Option<BitRate>,
    /// Time without progress after which a sender starts again from the last acknowledged byte. Default: 20 ms.
    /// Compat mode has no such timer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = between("1ns", DAY))]
    pub retransmission_timeout: Option<Span>,
    /// Timeouts in a row after which a flow gives up. Default: 7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_timeouts: Option<u32>,
    /// How a flow chooses among paths of equal length. Default: ecmp-murmur3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_choice: Option<PathChoice>,
    /// Time from a link's failure or return until routes follow. Default: 50 us.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_most(DAY))]
    pub reroute_delay: Option<Span>,
    /// End of the run even if flows are left. Default: when the traffic is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = between("1ps", DAY))]
    pub end: Option<Span>,
    /// Also run the twin with the tested flows alone, which the score compares with. Default: true where the traffic
    /// has tested classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolated: Option<bool>,
    /// Also run each job alone, which its slowdown compares with. Default: true where a job shares the fabric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone: Option<bool>,
    /// A per-ACK trace in the reference simulator's format whose ECN marks are replayed instead of drawn; needs a
    /// single scheme and seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn_marks: Option<String>,
    /// Links that fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

/// Simulators whose quirks can be reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Compat {
    /// The HPCC repository's ns-3 simulator, to the nanosecond.
    #[serde(rename = "hpcc-ns3")]
    HpccNs3,
}

/// A link that fails and may return.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Its two nodes, by name or number. All parallel cables between them fail.
    pub link: [NodeName; 2],
    /// When it fails.
    #[schemars(transform = at_most(DAY))]
    pub down: Span,
    /// When it returns. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_most(DAY))]
    pub up: Option<Span>,
}

/// What is recorded besides flows, pauses and port counters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecordTable {
    /// Every acknowledgement at its sender, in acks.parquet (large). Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acks: Option<bool>,
    /// The way of every flow, hop by hop, in paths.parquet. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<bool>,
    /// What each job's time was spent on, and whose messages stood in its way, in blame.parquet. Default: true where there are
    /// jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blame: Option<bool>,
    /// The same of every flow, in delays.parquet (large). Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delays: Option<bool>,
    /// What each rank of the jobs did when, and whom it waited for, in ranks.parquet (large). Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<bool>,
    /// Ports whose queues are sampled in port_queues.parquet: "NODE:3" is a port by its number, "NODE->PEER" all that lead
    /// to a neighbour, "NODE" all of a node. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub ports: Option<Vec<String>>,
    /// Instead of `ports`: so many ports of switches, those with the longest queues on average. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_SERIES))]
    pub busiest: Option<u32>,
    /// Distance of the samples of throughput and queues. Default: 10 us.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = between("1ns", DAY))]
    pub sample_interval: Option<Span>,
    /// Flows of at least this size get a throughput series of their own (the first 64). Default: 1 MB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch_from: Option<Bytes>,
}

/// How the tested flows are judged: S = a_L S_L + a_S S_S + a_A S_A + W.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScoreTable {
    /// Weights of long bandwidth, short delay and Allreduce delay; they sum to 1. Default: the paper's three
    /// configurations side by side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<ScoreWeights>,
    /// What a ratio is: per flow, then averaged, or of the averages. Default: per-flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
    /// The variance term W over the three ratios. Default: pvar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variance: Option<Variance>,
}

/// Weights of the score's parts.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScoreWeights {
    /// Weight a_L of tested long flows' bandwidth.
    #[schemars(range(min = 0, max = 1))]
    pub long: f64,
    /// Weight a_S of tested short flows' delay.
    #[schemars(range(min = 0, max = 1))]
    pub short: f64,
    /// Weight a_A of tested Allreduce flows' delay.
    #[schemars(range(min = 0, max = 1))]
    pub allreduce: f64,
}

/// What a ratio of the score is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// Each flow is compared with its twin; the ratios are averaged.
    #[default]
    PerFlow,
    /// The averages are compared.
    RatioOfMeans,
}

/// The variance term of the score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Variance {
    /// Population variance of the three ratios.
    #[default]
    Pvar,
    /// Sample variance.
    Var,
    /// Population standard deviation.
    Std,
    /// No variance term.
    None,
}

/// Lists the schemes in the schema, taken from the registry.
fn name_schemes(schema: &mut Schema) {
    let names: Vec<&str> = SchemeSettings::schemes()
        .iter()
        .map(|scheme| scheme.name)
        .collect();
    list_names(schema, &names);
}

/// The JSON Schema of an experiment file, indented, with a line break at its end.
pub fn experiment_schema() -> String {
    schema_text::<Experiment>()
}
