//! How much two hosts carry over their rails, and how long a message takes.

use std::sync::Arc;

use raddle_fabric::FabricError;
use raddle_units::{BitRate, Bytes, NodeId, Span, Time};
use raddle_wire::rails::DATA_OVERHEAD;
use raddle_workload::MAX_SIZE_BYTES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Machine, PingPong, PlaneError, Streams, multi_plane};
use crate::{
    Network, Progress, Recorder, RunConfig, Semantics, SetupError,
    record::{PortRecord, Sample},
    simulate,
};

/// Processes that send in one direction or the other: a connection's ports.
const MOST_STREAMS: u64 = 64;
/// Messages of a process under way: what `raddle-perf` allows.
const MOST_UNDER_WAY: u64 = 256;
/// Messages back and forth.
const MOST_ROUNDS: u64 = 1_000_000;
/// Between two messages back and forth: all rails are free again.
const PAUSE: Span = Span::from_ms(1);
/// No run takes longer: one in which messages go back and forth ends then, whatever is left.
const LONGEST: Span = Span::from_ms(600_000);

/// Which rails a message takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyName {
    /// A rail for each process.
    Static,
    /// The first host sends on the first half of the rails, the other one on the rest.
    Unidirectional,
    /// Those that are free.
    Dynamic,
}

/// How a message is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// A piece of equal size for each rail.
    Equal,
    /// By what each rail carries.
    Weighted,
}

/// What programs do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Load {
    /// Processes send without end.
    Streams(StreamLoad),
    /// One message at a time, there and back.
    PingPong {
        /// How often.
        rounds: u32,
    },
}

/// Processes that send without end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamLoad {
    /// Processes of the first host that send to the last, and the other way: 1 to 64 in all.
    pub forward: u32,
    /// See [`Self::forward`].
    pub backward: u32,
    /// Messages that each has under way, 1 to 256.
    pub window: u32,
    /// Time before what is measured, up to 600 s.
    pub warm_up: Span,
    /// Time that is measured, up to 600 s.
    pub time: Span,
}

/// One measurement.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Rate of each rail, 1 to 8.
    pub rails: Vec<BitRate>,
    /// Bytes of a message, at least 1.
    pub bytes: u64,
    /// Which rails a message takes.
    pub policy: PolicyName,
    /// How it is cut.
    pub cut: Cut,
    /// What programs do.
    pub load: Load,
}

/// What was found.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Figures {
    /// Payload that each stream delivered, forward ones first, in bit/s.
    pub goodput_bps: Vec<f64>,
    /// Mean time of a message one way in microseconds; none for streams.
    pub latency_us: Option<f64>,
    /// Bytes that the first host put on each rail, headers included, from the start of the run.
    pub rail_bytes: Vec<u64>,
    /// Segments that were sent again.
    pub resent: u64,
    /// Packets that switches dropped.
    pub drops: u64,
}

/// Why a case cannot be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RailsError {
    /// The plane cannot be built.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// There are no planes of it.
    #[error(transparent)]
    Plane(#[from] PlaneError),
    /// The network cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// No such scheme.
    #[error("`{name}` is not a congestion control scheme: `raddle.schemes()` lists them")]
    Scheme {
        /// The name.
        name: String,
    },
    /// A number out of its range.
    #[error("{field} is {found}: it must be 1 to {most}")]
    Range {
        /// The number's name.
        field: &'static str,
        /// The number.
        found: u64,
        /// The most that it can be.
        most: u64,
    },
    /// Messages back and forth were not through.
    #[error("no message of {bytes} B came back within 600 s")]
    Stuck {
        /// Bytes of a message.
        bytes: u64,
    },
}

fn within(field: &'static str, found: u64, most: u64) -> Result<(), RailsError> {
    if (1..=most).contains(&found) {
        return Ok(());
    }
    Err(RailsError::Range { field, found, most })
}

impl Case {
    /// Simulates it.
    ///
    /// # Errors
    /// [`RailsError`].
    pub fn run(&self, machine: &Machine) -> Result<Figures, RailsError> {
        self.check()?;
        let plane = machine.fabric.build()?;
        let fabric = Arc::new(multi_plane(&plane, &self.rails)?);
        let mtu = Bytes(DATA_OVERHEAD as u64 + u64::from(machine.protocol.segment));
        let network = Network::new(fabric, Semantics::CORRECTED, mtu)?;
        let mut config = machine.config(&network, mtu)?;
        config.rails = Some(Arc::new(machine.rails(self)));
        // Nothing is chosen where there is one rail, each process has its own, or a message is short.
        let short = self.cut == Cut::Equal && self.bytes <= machine.protocol.short.0;
        let chooses = self.rails.len() > 1 && self.policy != PolicyName::Static && !short;
        let choose = if chooses { machine.choose } else { Span::ZERO };
        match self.load {
            Load::Streams(load) => self.stream(&load, &network, &mut config, choose),
            Load::PingPong { rounds } => self.ping(&network, &mut config, choose, rounds),
        }
    }

    fn check(&self) -> Result<(), RailsError> {
        within("the number of rails", self.rails.len() as u64, 8)?;
        for rail in &self.rails {
            within("the rate of a rail in bit/s", rail.0, u64::MAX)?;
        }
        within("bytes", self.bytes, MAX_SIZE_BYTES)?;
        match &self.load {
            Load::PingPong { rounds } => within("rounds", (*rounds).into(), MOST_ROUNDS),
            Load::Streams(load) => {
                let streams = u64::from(load.forward) + u64::from(load.backward);
                within("the number of processes", streams, MOST_STREAMS)?;
                within("window", load.window.into(), MOST_UNDER_WAY)?;
                within("warm_up in ps", load.warm_up.0, LONGEST.0)?;
                within("time in ps", load.time.0, LONGEST.0)
            }
        }
    }

    fn stream(
        &self,
        load: &StreamLoad,
        network: &Network,
        config: &mut RunConfig,
        choose: Span,
    ) -> Result<Figures, RailsError> {
        let StreamLoad {
            forward,
            backward,
            window,
            warm_up,
            time,
        } = *load;
        config.sample_interval = warm_up;
        config.end = Some(Time::ZERO + warm_up + time);
        let (here, there) = ends(network);
        let mut ways = vec![(here, there); forward as usize];
        ways.resize((forward + backward) as usize, (there, here));
        let streams = ways.len();
        let mut load = Streams::new(ways, Bytes(self.bytes), window, choose);
        let mut meter = Meter::new(here, Time::ZERO + warm_up, streams);
        let summary = simulate(network, config, &mut load, &mut meter, &Progress::default())?;
        let per_second = |bytes: &u64| *bytes as f64 * 8.0 / time.as_secs_f64();
        Ok(Figures {
            goodput_bps: meter.delivered.iter().map(per_second).collect(),
            latency_us: None,
            rail_bytes: meter.rail_bytes,
            resent: summary.segments_resent,
            drops: summary.drops,
        })
    }

    fn ping(
        &self,
        network: &Network,
        config: &mut RunConfig,
        choose: Span,
        rounds: u32,
    ) -> Result<Figures, RailsError> {
        config.end = Some(Time::ZERO + LONGEST);
        let way = ends(network);
        let mut load = PingPong::new(way, Bytes(self.bytes), rounds, choose, PAUSE);
        let mut meter = Meter::new(way.0, Time::ZERO, 1);
        let summary = simulate(network, config, &mut load, &mut meter, &Progress::default())?;
        let bytes = self.bytes;
        let latency = load.latency().ok_or(RailsError::Stuck { bytes })?;
        Ok(Figures {
            goodput_bps: Vec::new(),
            latency_us: Some(latency.0 as f64 / 1e6),
            rail_bytes: meter.rail_bytes,
            resent: summary.segments_resent,
            drops: summary.drops,
        })
    }
}

/// The two hosts that talk.
fn ends(network: &Network) -> (NodeId, NodeId) {
    let hosts = network.fabric.hosts();
    (hosts[0], hosts[hosts.len() - 1])
}

/// Sums up what is delivered after the warm-up, and what leaves a host.
struct Meter {
    host: NodeId,
    from: Time,
    delivered: Vec<u64>,
    rail_bytes: Vec<u64>,
}

impl Meter {
    fn new(host: NodeId, from: Time, streams: usize) -> Self {
        Self {
            host,
            from,
            delivered: vec![0; streams],
            rail_bytes: Vec::new(),
        }
    }
}

impl Recorder for Meter {
    fn sample(&mut self, sample: &Sample<'_>) {
        if sample.time > self.from {
            for (sum, bytes) in self.delivered.iter_mut().zip(sample.delivered_by_class) {
                *sum += bytes;
            }
        }
    }

    fn port(&mut self, port: &PortRecord) {
        if port.node == self.host {
            self.rail_bytes.push(port.tx_bytes);
        }
    }
}
