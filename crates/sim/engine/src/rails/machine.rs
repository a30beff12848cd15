//! Hosts and networks of an experiment, as a file describes them.

use raddle_fabric::FabricSpec;
use raddle_rails::{Ask, Config, Policy, RailSet, Segmentation};
use raddle_transport::cc::SchemeSettings;
use raddle_units::{Bytes, Span};
use raddle_wire::native::JobKey;
use serde::Deserialize;

use super::{Bus, Card, Case, Cut, PolicyName, Rails, RailsError};
use crate::{Network, RunConfig};

/// The longest that anything takes beside bytes.
const MOST_COST: Span = Span::from_ms(1000);

/// Hosts and their networks, the same for all cases.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// One plane; the first and the last of its hosts talk. Each rail is a copy, scaled to the rail's rate.
    pub fabric: FabricSpec,
    /// Each host's bus.
    #[serde(default)]
    pub bus: Bus,
    /// Each of its cards.
    #[serde(default)]
    pub card: Card,
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

impl Protocol {
    /// What connections over so many rails are told.
    pub fn config(&self, policy: PolicyName, cut: Cut, rails: usize) -> Config {
        Config {
            segment: self.segment,
            policy: match policy {
                PolicyName::Static => Policy::Static,
                PolicyName::Dynamic => Policy::Dynamic,
                PolicyName::Unidirectional => {
                    let half = rails.div_ceil(2);
                    Policy::Unidirectional {
                        send: RailSet::MAX >> (8 - half),
                    }
                }
            },
            segmentation: match cut {
                Cut::Equal => Segmentation::Equal,
                Cut::Weighted => Segmentation::WaterFill,
            },
            short: self.short,
            stale: self.stale,
            ask: if self.wait { Ask::Wait } else { Ask::Hint },
            scheme: self.scheme.clone(),
            sees_marks: true,
            heartbeat: self.heartbeat,
            ack_delay: self.ack_delay,
            patience: self.patience,
            lateness: self.lateness,
            ..usual()
        }
    }
}

/// What the real driver starts from. Nobody forges packets here: the key is of no concern.
fn usual() -> Config {
    Config::new(1, JobKey::new([0; 16]), 0, 1, 1, Vec::new())
}

impl Machine {
    /// Refuses costs of seconds, with which times would be too large to count.
    fn check(&self) -> Result<(), RailsError> {
        let costs = [
            ("choose in ps", self.choose),
            ("cut in ps", self.bus.cut),
            ("turn in ps", self.card.turn),
            ("nic_gap in ps", self.nic_gap),
            ("nic_gap_per_byte in ps", self.nic_gap_per_byte),
        ];
        match costs.into_iter().find(|(_, cost)| *cost > MOST_COST) {
            None => Ok(()),
            Some((field, cost)) => Err(RailsError::Range {
                field,
                found: cost.0,
                most: MOST_COST.0,
            }),
        }
    }

    pub(super) fn config(&self, network: &Network, mtu: Bytes) -> Result<RunConfig, RailsError> {
        self.check()?;
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

    pub(super) fn rails(&self, case: &Case) -> Rails {
        Rails {
            bus: self.bus,
            card: self.card,
            room: self.room,
            around: self.around,
            ..Rails::new(
                self.protocol
                    .config(case.policy, case.cut, case.rails.len()),
            )
        }
    }
}
