//! What a connection is told, and why it may be refused.

use raddle_units::{BitRate, Bytes, Span};
use raddle_wire::{
    native::JobKey,
    rails::{DATA_OVERHEAD, MAX_CONTROL, MAX_RAILS},
};
use thiserror::Error;

use super::{
    policy::{Policy, Segmentation},
    state::Ask,
};
use raddle_transport::cc::{Environment, SchemeParameters, SchemeSettings, Telemetry};

/// The longest time between heartbeats.
pub const MAX_HEARTBEAT: Span = Span::from_ms(50);

/// A rail is down when it was silent for so many heartbeats.
pub(super) const HEARTBEATS: u64 = 3;

/// The most that UDP over IPv4 carries.
const MAX_DATAGRAM: usize = 65_507;

/// Everything that a connection between two nodes needs to know. Both sides may differ in all but job and key.
#[derive(Clone, Debug)]
pub struct Config {
    /// The job.
    pub job: u32,
    /// Its key.
    pub key: JobKey,
    /// This node's number in the job.
    pub local: u32,
    /// The other node's.
    pub peer: u32,
    /// Which life of this node: at random, not 0, and never twice with one key.
    pub epoch: u32,
    /// Rate of each rail, 1 to 8 of them. An upper bound: congestion control finds what is there.
    pub rails: Vec<BitRate>,
    /// Bytes of a segment: what every rail carries in one datagram, less [`DATA_OVERHEAD`].
    pub segment: u16,
    /// Which rails a message takes.
    pub policy: Policy,
    /// How it is cut.
    pub segmentation: Segmentation,
    /// With [`Segmentation::Equal`]: messages up to this size go whole on one rail.
    pub short: Bytes,
    /// Age at which the other node's rail states are too old to choose by.
    pub stale: Span,
    /// Whether a message waits for fresh states.
    pub ask: Ask,
    /// Congestion control of each rail, a name of [`SchemeSettings::schemes`].
    pub scheme: String,
    /// Its parameters.
    pub schemes: SchemeSettings,
    /// Whether the driver sees congestion marks (ECN) of what arrives.
    pub sees_marks: bool,
    /// Time between heartbeats, up to [`MAX_HEARTBEAT`]. A rail that is silent for three is down.
    pub heartbeat: Span,
    /// Time without an acknowledgement on any rail after which the connection fails: at least three heartbeats.
    pub give_up: Span,
    /// How long an acknowledgement may wait for more to acknowledge.
    pub ack_delay: Span,
    /// Packets after which it does not wait.
    pub ack_every: u32,
    /// Least time after which silence is asked about: what the driver's own delays amount to.
    pub patience: Span,
    /// How late the driver's timers and looks are at least: sending may lag so far behind the pace and catch up, and the queue
    /// that congestion control aims at is as long as both ends' lateness, so that a rail has something to send meanwhile. What
    /// is measured beyond ([`Reception::held`](super::Reception), delays of acknowledgements) counts instead, up to `patience`.
    pub lateness: Span,
    /// Messages that may wait or be under way: send tokens, at least 1.
    pub send_queue: usize,
}

impl Config {
    /// A connection of a job over rails of these rates, for datagrams of Ethernet's usual 1500 bytes with IPv4 and UDP, and
    /// with times that suit a kernel's sockets.
    #[must_use]
    pub fn new(
        job: u32,
        key: JobKey,
        local: u32,
        peer: u32,
        epoch: u32,
        rails: Vec<BitRate>,
    ) -> Self {
        Self {
            job,
            key,
            local,
            peer,
            epoch,
            rails,
            segment: (1500 - 28 - DATA_OVERHEAD) as u16,
            policy: Policy::default(),
            segmentation: Segmentation::default(),
            short: Bytes(4096),
            stale: Span::from_ms(1),
            ask: Ask::default(),
            scheme: "swift".to_owned(),
            schemes: SchemeSettings::default(),
            sees_marks: false,
            heartbeat: Span::from_ms(20),
            give_up: Span::from_ms(10_000),
            ack_delay: Span::from_us(25),
            ack_every: 4,
            patience: Span::from_ms(5),
            lateness: Span::from_us(200),
            send_queue: 256,
        }
    }

    /// Bytes of the longest datagram.
    #[must_use]
    pub fn datagram(&self) -> usize {
        (DATA_OVERHEAD + usize::from(self.segment)).max(MAX_CONTROL)
    }

    /// Silence on all rails that is longer tells of a host, not of rails: half of what is asked about.
    pub(super) const fn short_silence(&self) -> Span {
        Span(self.patience.0 / 2)
    }

    /// What congestion control allows for the lateness of both hosts, of which `measured` was seen: in powers of two, so that
    /// connections that hear of each other's lateness allow for the same, and share a link evenly.
    pub(super) fn allowance(&self, measured: Span) -> Span {
        let least = (self.lateness * 2).max(Span::from_us(1));
        let most = self.patience.max(least);
        let mut allowance = least;
        while allowance < measured.min(most) {
            allowance = allowance * 2;
        }
        allowance.min(most)
    }

    /// The fabric as a rail's congestion control sees it, with the least round-trip time found on it and what hosts take beside.
    /// The least was a probe's and found both drivers awake; a full packet takes its own time. The bandwidth-delay product is
    /// doubled and no less than 16 packets: what keeps a rail busy that is polled now and then.
    fn environment(&self, rail: usize, least_rtt: Span, hosts: Span) -> Environment {
        let rate = self.rails[rail];
        let packet = self.datagram() as u64;
        let found = least_rtt.max(Span::from_us(1));
        let base_rtt = found + rate.transmission_time(Bytes(packet)) + hosts;
        Environment {
            line_rate: rate,
            base_rtt,
            bdp: Bytes((2 * rate.bytes_in(base_rtt).0).max(16 * packet)),
            mtu: Bytes(packet),
            max_switch_hops: 0,
            link_rates: vec![rate],
            defaults: raddle_transport::cc::Defaults::Scaled,
        }
    }

    /// Checks everything that can be wrong.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let count = self.rails.len();
        if !(1..=MAX_RAILS).contains(&count) {
            return Err(ConfigError::Rails { count });
        }
        if let Some(rail) = self.rails.iter().position(|rate| rate.0 == 0) {
            return Err(ConfigError::NoRate { rail });
        }
        if self.epoch == 0 {
            return Err(ConfigError::Epoch);
        }
        let positive = [
            ("segment", u64::from(self.segment)),
            ("heartbeat", self.heartbeat.0),
            ("give_up", self.give_up.0),
            ("patience", self.patience.0),
            ("ack_every", u64::from(self.ack_every)),
            ("send_queue", self.send_queue as u64),
        ];
        if let Some((field, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(ConfigError::Zero { field });
        }
        if self.datagram() > MAX_DATAGRAM {
            return Err(ConfigError::Segment {
                found: self.segment,
            });
        }
        if self.heartbeat > MAX_HEARTBEAT {
            return Err(ConfigError::Heartbeat {
                found: self.heartbeat,
            });
        }
        let least = self.heartbeat * HEARTBEATS;
        if self.give_up < least {
            let found = self.give_up;
            return Err(ConfigError::GiveUp { found, least });
        }
        self.check_scheme()
    }

    /// A scheme that needs what this driver or these packets lack is refused by name.
    fn check_scheme(&self) -> Result<(), ConfigError> {
        let scheme = || self.scheme.clone();
        let resolved = self.parameters(0, Span::from_us(10), Span::ZERO);
        let parameters = resolved.ok_or_else(|| ConfigError::UnknownScheme { scheme: scheme() })?;
        let signals = parameters.signals();
        let lacking = match signals.telemetry {
            Telemetry::Hops => Some("telemetry of every hop"),
            Telemetry::Digest { .. } => Some("PINT's digest"),
            _ if signals.ecn.is_some() && !self.sees_marks => Some("congestion marks (ECN)"),
            Telemetry::None | Telemetry::Timestamp => None,
        };
        match lacking {
            Some(signal) => Err(ConfigError::Signal {
                scheme: scheme(),
                signal,
            }),
            None => Ok(()),
        }
    }

    /// Parameters of a rail's congestion control, for hosts that take so long beside; `None` for an unknown scheme.
    pub(super) fn parameters(
        &self,
        rail: usize,
        least_rtt: Span,
        hosts: Span,
    ) -> Option<SchemeParameters> {
        let environment = self.environment(rail, least_rtt, hosts);
        let resolved = self.schemes.resolve(&self.scheme, &environment);
        resolved.map(|(parameters, _)| parameters)
    }
}

/// Why a connection cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// None or too many.
    #[error("{count} rails: 1 to 8 are possible")]
    Rails {
        /// Rails given.
        count: usize,
    },
    /// A rail without a rate.
    #[error("rail {rail} has no rate: give the rate of its link, an upper bound is enough")]
    NoRate {
        /// The rail.
        rail: usize,
    },
    /// An epoch of 0.
    #[error("epoch 0 means that the epoch is unknown: take a random number")]
    Epoch,
    /// A value that must be positive.
    #[error("{field} is 0 and must be positive")]
    Zero {
        /// Its name.
        field: &'static str,
    },
    /// Segments that no datagram carries.
    #[error("segments of {found} bytes do not fit into UDP datagrams: at most 65427")]
    Segment {
        /// The bytes given.
        found: u16,
    },
    /// Heartbeats too rare to find a broken rail in time.
    #[error("a heartbeat every {found} is too rare: at most 50ms")]
    Heartbeat {
        /// The time given.
        found: Span,
    },
    /// It would fail before a rail can be found to be down.
    #[error(
        "giving up after {found} comes before a rail is known to be down: at least {least}, three heartbeats"
    )]
    GiveUp {
        /// The time given.
        found: Span,
        /// The least that makes sense.
        least: Span,
    },
    /// No such scheme.
    #[error("there is no congestion control called {scheme:?}")]
    UnknownScheme {
        /// The name given.
        scheme: String,
    },
    /// The scheme needs what is not there.
    #[error(
        "{scheme} needs {signal}, which this driver does not give: take swift or timely, which need round-trip times only"
    )]
    Signal {
        /// The scheme.
        scheme: String,
        /// What it lacks.
        signal: &'static str,
    },
}
