//! How long a recorded program would take elsewhere: its calls with their dependencies and compute gaps, on hosts with
//! costs, its messages through the simulated network, in program order or as `schedule` has them.
//!
//! ```text
//! Trace ─► expand ─► Pairing, Supersteps ─► Plan ─► Program ─► Machine (a Workload) ─► simulate ─► Replayed
//!          expand.rs                        plan.rs  program.rs  machine.rs
//! ```
//!
//! What a rank does is kept: its compute gaps, what it sends when, and what each wait waits for. How long calls took is
//! not: that is what is simulated. A send that the trace has before a wait leaves when its overhead is paid (program order)
//! or, where messages are scheduled, at the superstep's end, since only then all of them are known. A message longer than
//! [`ReplayCosts::eager_limit`] is sent without copying, and its sender waits until it is delivered; that it also waits for
//! the receive to be posted (rendezvous) is left out.
//!
//! A rank takes messages in only while it waits in MPI: it is one server, first come, first served. A joined message is taken
//! apart by its receiver, which hands parts for other ranks of its host on through shared memory.

mod algorithms;
mod carried;
mod critical;
mod describe;
mod expand;
mod generate;
mod jobs;
mod machine;
mod noise;
mod place;
mod plan;
mod program;
mod session;
mod shares;
mod training;

pub use algorithms::{
    Algorithms, AllgatherAlgorithm, AllreduceAlgorithm, AlltoallAlgorithm, BarrierAlgorithm,
    BcastAlgorithm, UnknownAlgorithm,
};
pub use carried::{Carried, Carrier, Collectives, Granted, Wish, wishes};
pub use critical::{Activity, ActivityKind, Share, Spent, Wait};
pub use describe::trace_summary;
pub use expand::{CollectiveCounts, Expanded, expand};
pub use generate::{Application, Generate, Sizes, UnknownName};
pub use jobs::{Grants, HostSettings, Job, JobError, JobSet, JobTime};
pub use machine::{Diaries, JobRun, Machine};
pub use noise::Noise;
pub use place::{PlaceError, RankPlacement};
pub use plan::Plan;
pub use program::Program;
pub use session::{Occupied, Scheduled, Session, scope};
pub use training::{PipelineSchedule, Straggler, Training, TrainingError};

use std::collections::BTreeMap;

use raddle_text::{
    Finding, InputError, Node, Problem, at_most, between, clip, read,
    tree::{self, Entry, Table, Value},
    words::suggest,
};
use raddle_trace::{Action, Interval, Pairing, Supersteps, Trace, TraceError};
use raddle_transport::cc::SchemeSettings;
use raddle_units::{Bytes, NodeId, Span, Time};
use raddle_workload::{MAX_SIZE_BYTES, collective::HostCosts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shares::Shares;

use raddle_engine::{Discard, Network, Progress, RunConfig, SetupError, simulate};

/// Costs of hosts in a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReplayCosts {
    /// Costs of messages.
    pub host: HostCosts,
    /// Longer messages between hosts are not copied as others are, and not sent before their sender may go on.
    #[schemars(transform = at_most("1TiB"))]
    pub eager_limit: Bytes,
    /// Copying a byte of such a longer message, at either end. Cards that reach into a program's memory make it nothing, sockets
    /// of a kernel do not.
    #[schemars(transform = at_most("1us"))]
    pub long_copy_per_byte: Span,
    /// Longer messages inside a host keep their sender until they are taken in. Libraries that copy straight from one
    /// process to another have a short one (Open MPI 4: 4 KiB).
    #[schemars(transform = at_most("1TiB"))]
    pub local_eager_limit: Bytes,
    /// Of putting a part into a joined message, or of taking it out; copying comes on top, at `local_copy_per_byte`.
    #[schemars(transform = at_most("1s"))]
    pub part_overhead: Span,
    /// Of a message that a schedule has chosen the time of, at either end, on top of the others: the library that schedules
    /// keeps it, orders it and finds it again.
    #[schemars(transform = at_most("1s"))]
    pub schedule_overhead: Span,
    /// Until a shared processor that goes from one rank to another works for that; see [`ReplaySettings::processors`].
    #[schemars(transform = at_most("1s"))]
    pub switch_overhead: Span,
    /// Until a rank that waits on a shared processor has looked for messages in vain and gives way to the next.
    #[schemars(transform = at_most("1s"))]
    pub look_overhead: Span,
    /// The part of `look_overhead` in which a rank sees what comes; what comes later has to wait for its next turn.
    #[schemars(transform = at_most("1s"))]
    pub poll_overhead: Span,
    /// After so long a rank that computes on a shared processor gives it to others that have something to do.
    #[schemars(transform = between("1us", "1s"))]
    pub time_slice: Span,
    /// Least time between two packets of a network card (LogGP's g).
    #[schemars(transform = at_most("1ms"))]
    pub nic_gap: Span,
    /// A network card sends messages one after the other, as they were issued, instead of their packets in turn.
    pub nic_in_order: bool,
    /// Payload of a full packet.
    #[schemars(transform = between("64B", "9000B"))]
    pub mtu: Bytes,
    /// A rank hands an operand to switches that compute. Default: `send_overhead`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_most("1s"))]
    pub offload_send_overhead: Option<Span>,
    /// A rank takes a result from switches that compute. Default: `receive_overhead`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_most("1s"))]
    pub offload_receive_overhead: Option<Span>,
    /// As `look_overhead`, of a rank that waits for something from a group or from switches that compute. Default: `look_overhead`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_most("1s"))]
    pub offload_look_overhead: Option<Span>,
}

impl Default for ReplayCosts {
    /// A processor of 2014 with a network of that time, in round numbers.
    fn default() -> Self {
        Self {
            host: HostCosts::default(),
            eager_limit: Bytes(64 << 10),
            long_copy_per_byte: Span::ZERO,
            local_eager_limit: Bytes(1 << 40),
            part_overhead: Span::from_ns(40),
            schedule_overhead: Span::ZERO,
            switch_overhead: Span::from_us(2),
            look_overhead: Span::from_us(1),
            poll_overhead: Span::from_ns(500),
            time_slice: Span::from_us(4000),
            nic_gap: Span::from_ns(20),
            nic_in_order: false,
            mtu: Bytes(4096),
            offload_send_overhead: None,
            offload_receive_overhead: None,
            offload_look_overhead: None,
        }
    }
}

impl ReplayCosts {
    /// Reads costs from TOML, those of messages beside the others; what it leaves out is as usual. A table `[calibration]`, which
    /// says how they were measured, is for people.
    ///
    /// # Errors
    /// Text that is not TOML, unknown keys, or values out of range; with their place.
    pub fn read(text: &str, path: &str) -> Result<Self, InputError> {
        let mut root = tree::parse(text, path)?;
        let names = |schema: &schemars::Schema| -> Vec<String> {
            let properties = schema.get("properties").and_then(|own| own.as_object());
            properties.map_or_else(Vec::new, |own| own.keys().cloned().collect())
        };
        let host = names(&schemars::schema_for!(HostCosts));
        let own = names(&schemars::schema_for!(Self));
        let known: Vec<&str> = (host.iter().chain(&own))
            .map(String::as_str)
            .filter(|key| *key != "host")
            .collect();
        let at = root.at.clone();
        let Value::Table(table) = &mut root.value else {
            return read(&root);
        };
        table.remove("calibration");
        if let Some(entry) = table
            .entries
            .iter()
            .find(|entry| !known.contains(&&*entry.key))
        {
            let problem = Problem::UnknownKey {
                key: clip(&entry.key),
                within: String::new(),
            };
            return Err(
                InputError::at(&entry.key_at, problem).with_hint(suggest(&entry.key, &known))
            );
        }
        let of_host = host.iter().filter_map(|key| table.remove(key)).collect();
        table.entries.push(Entry {
            key: "host".to_owned(),
            key_at: at.clone(),
            node: Node {
                value: Value::Table(Table { entries: of_host }),
                at,
            },
        });
        read(&root)
    }
}

/// Settings of one replay.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReplaySettings {
    /// Congestion control, by name.
    pub scheme: String,
    /// Costs of hosts.
    pub costs: ReplayCosts,
    /// Sockets of a host; its ranks are spread over them in order.
    #[schemars(range(min = 1, max = 1024))]
    pub sockets: u32,
    /// Processors that all ranks share, rank r on r mod so many: from the end of a wait to the beginning of the next, and while
    /// it takes something in, a rank has its processor for itself. `None`: each rank has its own.
    #[schemars(range(min = 1))]
    pub processors: Option<u32>,
    /// Which messages collectives are.
    pub algorithms: Algorithms,
    /// What the seed varies.
    pub noise: Noise,
    /// Seed of the noise.
    pub seed: u64,
}

/// How long a replay took.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ReplayTime {
    /// Until the last rank was through, in seconds.
    pub time_s: f64,
    /// The mean over ranks, in seconds.
    pub mean_s: f64,
    /// How much of that mean ranks were in calls of MPI, in seconds.
    pub mpi_s: f64,
    /// Messages that went through the network.
    pub network_messages: u64,
    /// Their bytes, heads and envelopes included.
    pub network_bytes: u64,
    /// Packets dropped.
    pub drops: u64,
    /// PAUSE frames received.
    pub pauses: u64,
}

/// What came of a replay.
#[derive(Clone, PartialEq, Debug)]
pub struct Replayed {
    /// How long it took.
    pub time: ReplayTime,
    /// When the calls of each rank began and came back; those of the trace, in its order.
    pub calls: Vec<Vec<Interval>>,
}

/// Why a trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The trace does not go together.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A setting is out of its limits.
    #[error(transparent)]
    Setting(#[from] Finding),
    /// Its ranks have no place.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// Its messages cannot be scheduled.
    #[error(transparent)]
    Schedule(#[from] raddle_schedule::SetError),
    /// Messages of several ranks would be joined.
    #[error(
        "a replay cannot join messages of several ranks (node-to-node): use rank-to-rank or rank-to-node"
    )]
    Scope,
    /// No such scope.
    #[error(
        "`{name}` is not a scope: use rank-to-rank (join messages of one rank to one other) or rank-to-node \
         (to all ranks of one host)"
    )]
    UnknownScope {
        /// The name.
        name: String,
    },
    /// No such scheme.
    #[error("`{name}` is not a congestion control scheme: {hint}")]
    Scheme {
        /// The name.
        name: String,
        /// What was meant, and which there are.
        hint: String,
    },
    /// The network cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A rank was not through when nothing moved any more.
    #[error(
        "rank {rank} waits for ever: {missing} of its messages never complete, because ranks of the trace wait for each other"
    )]
    Stuck {
        /// The rank.
        rank: u32,
        /// Messages and sends it waits for.
        missing: u32,
    },
    /// Times or sizes that cannot be simulated.
    #[error("rank {rank}: {problem}")]
    Range {
        /// The rank.
        rank: usize,
        /// What is too much, and how much can be.
        problem: String,
    },
    /// Someone asked for the end.
    #[error("cancelled")]
    Cancelled,
}

/// A trace made ready: collectives as messages, and what belongs together.
#[derive(Debug)]
pub struct Prepared {
    /// The trace with its collectives as messages.
    pub trace: Trace,
    /// As [`Expanded::calls`].
    pub calls: Vec<Vec<u32>>,
    /// Its messages.
    pub pairing: Pairing,
    /// Its supersteps, without the messages of collectives.
    pub supersteps: Supersteps,
    /// Who carries its collectives.
    pub collectives: CollectiveCounts,
    rounds: BTreeMap<(u32, u32), expand::Round>,
    shares: Shares,
}

impl Prepared {
    /// Checks and prepares a trace, whose collectives run by `algorithms`.
    ///
    /// # Errors
    /// A trace that does not go together, is longer than [`LONGEST_NS`], or has messages of more than
    /// [`raddle_workload::MAX_SIZE_BYTES`].
    pub fn new(trace: &Trace, algorithms: &Algorithms) -> Result<Self, ReplayError> {
        Self::carried(trace, algorithms, &Carried::default())
    }

    /// The same, with collectives that the network carries.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn carried(
        trace: &Trace,
        algorithms: &Algorithms,
        carried: &Carried,
    ) -> Result<Self, ReplayError> {
        trace.check()?;
        check_range(trace)?;
        let Expanded {
            trace,
            calls,
            rounds,
            collectives,
        } = expand(trace, algorithms, carried)?;
        let pairing = Pairing::new(&trace)?;
        let supersteps = Supersteps::new(&trace, &pairing);
        let shares = Shares::new(&trace);
        Ok(Self {
            trace,
            calls,
            pairing,
            supersteps,
            collectives,
            rounds,
            shares,
        })
    }

    /// Times that a rank waits for something from the network.
    fn arrivals(&self) -> u32 {
        let waits = |round: &&expand::Round| !matches!(round.part, carried::Part::Send { .. });
        self.rounds.values().filter(waits).count() as u32
    }
}

/// The longest trace that can be replayed, in nanoseconds: 52 days. Simulated time ends after 213.
pub const LONGEST_NS: u64 = 4_500_000_000_000_000;

fn check_range(trace: &Trace) -> Result<(), ReplayError> {
    for (rank, events) in trace.ranks.iter().enumerate() {
        for event in events {
            let bytes = match &event.action {
                Action::Send { message, .. } => message.bytes.0,
                Action::Collective { call, .. } => call.bytes.0,
                _ => 0,
            };
            let problem = if event.at.end_ns > LONGEST_NS {
                format!(
                    "its trace takes {} ns, at most {LONGEST_NS} ns are possible",
                    event.at.end_ns
                )
            } else if bytes > MAX_SIZE_BYTES {
                format!("a message of {bytes} B, at most {MAX_SIZE_BYTES} B are possible")
            } else {
                continue;
            };
            return Err(ReplayError::Range { rank, problem });
        }
    }
    Ok(())
}

/// Refuses a name that no congestion control has.
fn unknown_scheme(name: &str) -> ReplayError {
    let known: Vec<&str> = SchemeSettings::schemes()
        .iter()
        .map(|scheme| scheme.name)
        .collect();
    ReplayError::Scheme {
        name: name.chars().take(30).collect(),
        hint: suggest(name, &known),
    }
}

/// Replays a program, whose rank r is on `hosts[r]`, through `network`. The threads that the run may use change nothing
/// that it gives.
///
/// # Errors
/// [`ReplayError`].
pub fn replay(
    network: &Network,
    program: &Program,
    hosts: &[NodeId],
    settings: &ReplaySettings,
    threads: usize,
    progress: &Progress,
) -> Result<Replayed, ReplayError> {
    let mut machine = Machine::new(program, hosts, settings)?;
    let name = &settings.scheme;
    let resolved = SchemeSettings::default().resolve(name, &network.environment);
    let (scheme, _) = resolved.ok_or_else(|| unknown_scheme(name))?;
    let line_rate = network.environment.line_rate;
    let config = RunConfig {
        threads,
        sample_interval: Span::ZERO,
        mtu: settings.costs.mtu,
        nic_gap: settings.costs.nic_gap,
        nic_in_order: settings.costs.nic_in_order,
        ..RunConfig::new(scheme, settings.seed, line_rate)
    };
    let summary = simulate(network, &config, &mut machine, &mut Discard, progress)?;
    if summary.cancelled {
        return Err(ReplayError::Cancelled);
    }
    let ends = machine.ends()?;
    let last = ends.iter().copied().max().unwrap_or(Time::ZERO);
    let ranks = ends.len().max(1) as f64;
    let total: f64 = ends.iter().map(|end| end.as_secs_f64()).sum();
    let (network_messages, network_bytes) = (machine.network_messages(), machine.network_bytes());
    let calls = machine.into_calls();
    let in_mpi: u64 = calls.iter().flatten().map(|call| call.length_ns()).sum();
    let time = ReplayTime {
        time_s: last.as_secs_f64(),
        mean_s: total / ranks,
        mpi_s: in_mpi as f64 / 1e9 / ranks,
        network_messages,
        network_bytes,
        drops: summary.drops,
        pauses: summary.pauses,
    };
    Ok(Replayed { time, calls })
}

#[cfg(test)]
mod tests;
