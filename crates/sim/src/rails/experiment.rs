//! How much two hosts carry over their rails, and how long a message takes.

use std::sync::Arc;

use raddle_fabric::{FabricError, FabricSpec};
use raddle_transport::{
    cc::SchemeSettings,
    rails::{Ask, Config, Policy, RailSet, Segmentation},
};
use raddle_units::{BitRate, Bytes, NodeId, Span, Time};
use raddle_wire::{native::JobKey, rails::DATA_OVERHEAD};
use serde::{Deserialize, Serialize};

use super::{Bus, PingPong, PlaneError, Rails, Streams, multi_plane};
use crate::{
    Network, Progress, Recorder, RunConfig, Semantics, SetupError,
    record::{PortRecord, Sample},
    simulate,
};

/// Messages that a port has room for: more than any load has under way.
const BUFFERS: u32 = 512;
/// Most processes that send in one direction or the other: a connection's ports.
const MOST_STREAMS: u32 = 64;
/// Between two messages back and forth: all rails are free again.
const PAUSE: Span = Span::from_ms(1);
/// A run in which messages go back and forth ends after that, whatever is left.
const LONGEST: Span = Span::from_ms(600_000);

/// Hosts and their networks, the same for all cases.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// One plane; the first and the last of its hosts talk. Each rail is a copy, scaled to the rail's rate.
    pub fabric: FabricSpec,
    /// Each host's bus.
    #[serde(default)]
    pub bus: Bus,
    /// A process's time to choose rails for a message and to hand it over, where there is a choice.
    #[serde(default)]
    pub choose: Span,
    /// Segments per rail that a host's bus and cards hold; 0: any number.
    #[serde(default)]
    pub room: u32,
    /// Bytes that the network puts around a packet.
    #[serde(default)]
    pub around: Bytes,
    /// Least time between the starts of two segments of a card, and what it grows by per byte on the wire.
    #[serde(default)]
    pub nic_gap: Span,
    /// See [`Self::nic_gap`].
    #[serde(default)]
    pub nic_gap_per_byte: Span,
    /// What connections are told.
    #[serde(default)]
    pub protocol: Protocol,
}

/// The settings of [`Config`] that differ between machines; those that are left out are the real driver's.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Protocol {
    /// Bytes of a segment.
    pub segment: u16,
    /// Congestion control.
    pub scheme: String,
    /// A message that chooses waits for the other host's state.
    pub wait: bool,
    /// Age at which that state is too old.
    pub stale: Span,
    /// Messages up to this size go whole on one rail where pieces are equal.
    pub short: Bytes,
    /// Time between heartbeats.
    pub heartbeat: Span,
    /// How long an acknowledgement may wait.
    pub ack_delay: Span,
    /// Least time after which silence is asked about.
    pub patience: Span,
    /// How late a host may be.
    pub lateness: Span,
}

impl Default for Protocol {
    fn default() -> Self {
        let config = usual();
        Self {
            segment: config.segment,
            scheme: config.scheme,
            wait: config.ask == Ask::Wait,
            stale: config.stale,
            short: config.short,
            heartbeat: config.heartbeat,
            ack_delay: config.ack_delay,
            patience: config.patience,
            lateness: config.lateness,
        }
    }
}

/// What the real driver starts from. Nobody forges packets here: the key is of no concern.
fn usual() -> Config {
    Config::new(1, JobKey::new([0; 16]), 0, 1, 1, Vec::new())
}

/// Which rails a message takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
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
    Streams {
        /// Processes of the first host that send to the last.
        forward: u32,
        /// Processes of the last host that send to the first.
        backward: u32,
        /// Messages that each has under way.
        window: u32,
        /// Time before what is measured.
        warm_up: Span,
        /// Time that is measured.
        time: Span,
    },
    /// One message at a time, there and back.
    PingPong {
        /// How often.
        rounds: u32,
    },
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
    #[error("`{name}` is no congestion control: `raddle.schemes()` lists them")]
    Scheme {
        /// The name.
        name: String,
    },
    /// A number out of its range.
    #[error("{field} is {found}, {expected} is possible")]
    Range {
        /// The number's name.
        field: &'static str,
        /// The number.
        found: u64,
        /// What it can be.
        expected: &'static str,
    },
    /// Messages back and forth were not through.
    #[error("messages do not come through: no message of {bytes} B was back after 600 s")]
    Stuck {
        /// Bytes of a message.
        bytes: u64,
    },
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
        // Nothing is chosen where there is one rail, or each process has its own.
        let chooses = self.rails.len() > 1 && self.policy != PolicyName::Static;
        let choose = if chooses { machine.choose } else { Span::ZERO };
        match self.load {
            Load::Streams { .. } => self.stream(&network, &mut config, choose),
            Load::PingPong { rounds } => self.ping(&network, &mut config, choose, rounds),
        }
    }

    fn check(&self) -> Result<(), RailsError> {
        let least = |field, found: u64, expected| match found {
            0 => Err(RailsError::Range {
                field,
                found,
                expected,
            }),
            _ => Ok(()),
        };
        let count = self.rails.len() as u64;
        if !(1..=8).contains(&count) {
            let (field, found) = ("the number of rails", count);
            return Err(RailsError::Range {
                field,
                found,
                expected: "1 to 8",
            });
        }
        for rail in &self.rails {
            least("a rail's rate", rail.0, "any other rate")?;
        }
        least("bytes", self.bytes, "1 B and more")?;
        match self.load {
            Load::PingPong { rounds } => least("rounds", rounds.into(), "1 and more"),
            Load::Streams {
                forward,
                backward,
                window,
                warm_up,
                time,
            } => {
                let streams = u64::from(forward) + u64::from(backward);
                if !(1..=u64::from(MOST_STREAMS)).contains(&streams) {
                    let (field, expected) = ("the number of processes", "1 to 64");
                    return Err(RailsError::Range {
                        field,
                        found: streams,
                        expected,
                    });
                }
                least("window", window.into(), "1 and more")?;
                least("warm_up", warm_up.0, "any other time")?;
                least("time", time.0, "any other time")
            }
        }
    }

    fn stream(
        &self,
        network: &Network,
        config: &mut RunConfig,
        choose: Span,
    ) -> Result<Figures, RailsError> {
        let Load::Streams {
            forward,
            backward,
            window,
            warm_up,
            time,
        } = self.load
        else {
            return Ok(Figures::default());
        };
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

impl Machine {
    fn config(&self, network: &Network, mtu: Bytes) -> Result<RunConfig, RailsError> {
        let name = &self.protocol.scheme;
        let resolved = SchemeSettings::default().resolve(name, &network.environment);
        let (scheme, _) = resolved.ok_or_else(|| RailsError::Scheme { name: name.clone() })?;
        Ok(RunConfig {
            mtu,
            sample_interval: Span::ZERO,
            nic_gap: self.nic_gap,
            nic_gap_per_byte: self.nic_gap_per_byte,
            ..RunConfig::new(scheme, 1, network.environment.line_rate)
        })
    }

    fn rails(&self, case: &Case) -> Rails {
        let Protocol {
            wait, stale, short, ..
        } = self.protocol;
        let policy = match case.policy {
            PolicyName::Static => Policy::Static,
            PolicyName::Dynamic => Policy::Dynamic,
            PolicyName::Unidirectional => {
                let half = case.rails.len().div_ceil(2);
                Policy::Unidirectional {
                    send: RailSet::MAX >> (8 - half),
                }
            }
        };
        let protocol = Config {
            segment: self.protocol.segment,
            policy,
            segmentation: match case.cut {
                Cut::Equal => Segmentation::Equal,
                Cut::Weighted => Segmentation::WaterFill,
            },
            short,
            stale,
            ask: if wait { Ask::Wait } else { Ask::Hint },
            scheme: self.protocol.scheme.clone(),
            sees_marks: true,
            heartbeat: self.protocol.heartbeat,
            ack_delay: self.protocol.ack_delay,
            patience: self.protocol.patience,
            lateness: self.protocol.lateness,
            ..usual()
        };
        Rails {
            protocol,
            bus: self.bus,
            room: self.room,
            around: self.around,
            buffers: BUFFERS,
        }
    }
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
