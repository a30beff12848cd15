//! `[[job]]`, `[[setup]]` and the tables of what jobs use.

use raddle_replay::{Algorithms, Collectives, Training};
use raddle_text::{at_most, between, one_line};
use raddle_units::{Bytes, Span};
use raddle_workload::MulticastEngineName;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{limits::DAY, names::NodeName};

/// A program that shares the fabric with others, on hosts of its own.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobTable {
    /// Its name in results: letters, digits, `-` and `_`.
    #[schemars(transform = one_line(40))]
    pub name: String,
    /// What its ranks do: a recorded trace (`NAME.trace.parquet`), a GOAL schedule, the first file of a Chakra trace
    /// (`NAME.0.et`), or a table with a `generator`.
    pub program: ProgramSource,
    /// Ranks. A file has its own number, and so has `training`; the other generators need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub ranks: Option<u32>,
    /// Ranks of a host, in order. Default: as the file has them; 1 where they are generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_536))]
    pub ranks_per_host: Option<u32>,
    /// Its hosts: a list by name or number, or a rule: `blocks` (the next free ones), `spread` (evenly over the free ones),
    /// `random`, or `rules` (the seven rules of CN/TN fat trees). Default: blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementSource>,
    /// When its ranks start. Default: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_most(DAY))]
    pub start: Option<Span>,
    /// Who carries out its collectives: `host`, `multicast`, `offload`, or a table with one of them for each of `allreduce`,
    /// `barrier`, `bcast`, `reduce`, up to `largest` bytes. Default: host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collectives: Option<Collectives>,
    /// The algorithm of each kind of collective that its hosts carry out. Default: what an MPI library would take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithms: Option<Algorithms>,
    /// How the messages of its supersteps are scheduled. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<Scheduling>,
    /// Whether its messages travel over all rails where a setup uses them, or over the first one alone. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rails: Option<bool>,
}

/// Hosts of a job.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PlacementSource {
    /// By a rule.
    Rule(Rule),
    /// These, in the order of the job's ranks.
    Hosts(Vec<NodeName>),
}

/// A rule that gives a job its hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// The next free hosts.
    #[default]
    Blocks,
    /// Free hosts at equal distances.
    Spread,
    /// Free hosts drawn at random, the same for all seeds.
    Random,
    /// The seven rules of CN/TN fat trees.
    Rules,
}

/// How the messages of a superstep are scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scheduling {
    /// They leave when the program sends them.
    #[default]
    None,
    /// In an order without conflicts.
    Reorder,
    /// Joined where that is cheaper.
    Aggregate,
    /// Both.
    Both,
    /// Both, by the paper's window.
    Published,
    /// Joined as they are sent, as `libraddle_mpi.so` does it.
    Library,
}

impl Scheduling {
    /// As files have it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Reorder => "reorder",
            Self::Aggregate => "aggregate",
            Self::Both => "both",
            Self::Published => "published",
            Self::Library => "library",
        }
    }
}

/// What is switched on in some runs. Each setup is run as a scheme of its own, under its name.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetupTable {
    /// Its name in results: letters, digits, `-` and `_`.
    #[schemars(transform = one_line(40))]
    pub name: String,
    /// Its congestion control. Default: none, on rails swift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// Who carries out the collectives of all jobs. Default: as each job has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collectives: Option<Collectives>,
    /// How the messages of all jobs are scheduled. Default: as each job has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<Scheduling>,
    /// Whether messages between hosts travel over all rails of the experiment, or over the first one alone. Default: true
    /// where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rails: Option<bool>,
    /// Jobs and classes of background traffic that are left out; all else stays as it is. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
}

/// What hosts cost that run jobs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HostsTable {
    /// A file with the costs of hosts, as `raddle replay --costs` takes it. Default: a processor of 2014.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<String>,
    /// Sockets of a host; its ranks fill them in order. Default: 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub sockets: Option<u32>,
    /// Processors that the ranks of all jobs share, as those of a lab do; rank r of all runs on r mod so many. Default: each rank
    /// has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub processors: Option<u32>,
    /// Each seed varies compute gaps by up to this share. Default: 0.02.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub gap_share: Option<f64>,
    /// Each seed delays the start of ranks by up to this. Default: 1 us.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_most("3600s"))]
    pub start_skew: Option<Span>,
}

/// Switches that compute for jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OffloadTable {
    /// Groups that a switch has room for. Those that come later stay with their hosts. Default: 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<u32>,
    /// Slots of a group in each switch. Default: 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4096))]
    pub slots: Option<u16>,
    /// Time that a switch's unit takes for each packet. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_most("1ms"))]
    pub compute: Option<Span>,
    /// Time after which a member sends a contribution again. Default: 10 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = between("1us", "1s"))]
    pub retry: Option<Span>,
}

/// Multicast groups of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MulticastTable {
    /// How groups get their trees. Default: mr4lms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<MulticastEngineName>,
    /// Colours of trees. Default: one for each group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4096))]
    pub colours: Option<u32>,
    /// Groups that the switches have entries for. Those that come later stay with their hosts. Default: 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<u32>,
}

/// What ranks of a job do.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(untagged)]
pub enum ProgramSource {
    /// A file: a trace (`NAME.trace.parquet`), the first of a Chakra trace (`NAME.0.et`), else a GOAL schedule.
    File(String),
    /// A generator with its fields.
    Generated(Generator),
}

/// A generator of programs, named by `generator`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "generator", rename_all = "kebab-case")]
pub enum Generator {
    /// Supersteps of a known kind of program, as `raddle trace generate` makes them.
    Application(ApplicationTable),
    /// The same collective again and again, with computing between.
    Collective(CollectiveTable),
    /// Steps of training a neural network, as `raddle trace generate training` makes them.
    Training(Training),
}

/// Supersteps of a known kind of program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplicationTable {
    /// The kind: particle-in-cell, electromagnetics, transport, laser-fusion, radiation-hydrodynamics or molecular-dynamics.
    pub application: String,
    /// How long most messages are. Default: large.
    #[serde(default)]
    pub sizes: SizesName,
    /// Exchanges, or sweeps from all corners. Default: 10.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub exchanges: u32,
    /// Computing before each superstep. Default: 0.
    #[serde(default)]
    #[schemars(transform = at_most("3600s"))]
    pub compute: Span,
}

/// How long most messages are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SizesName {
    /// Up to about a kilobyte.
    Small,
    /// Tens of kilobytes.
    #[default]
    Large,
}

/// The same collective again and again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectiveTable {
    /// The collective: barrier, bcast, reduce, allreduce, gather, allgather, scatter, reduce_scatter, alltoall, scan or exscan.
    pub collective: String,
    /// A rank's share: of a Bcast what is sent to everybody, of an Allreduce an operand. Default: 8 B.
    #[serde(default = "eight")]
    #[schemars(transform = at_most("1GiB"))]
    pub size: Bytes,
    /// Calls. Default: 10.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub repeat: u32,
    /// Computing before each call. Default: 0.
    #[serde(default)]
    #[schemars(transform = at_most("3600s"))]
    pub compute: Span,
}

const fn ten() -> u32 {
    10
}

const fn eight() -> Bytes {
    Bytes(8)
}

impl<'de> Deserialize<'de> for ProgramSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Serde's untagged enums answer "did not match any variant"; what is there decides here, so errors name the field.
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(file) => Ok(Self::File(file)),
            other => Generator::deserialize(other)
                .map(Self::Generated)
                .map_err(de::Error::custom),
        }
    }
}
