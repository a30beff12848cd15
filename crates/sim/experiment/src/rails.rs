//! `[rails]`: hosts that are in several networks, and what their connections are told.

use raddle_rails::{ConfigError, Connection};
use raddle_text::{at_most, between, each};
use raddle_units::{BitRate, Bytes, NodeId, Span, Time};
use raddle_wire::rails::{DATA_OVERHEAD, MAX_RAILS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::DAY;
use raddle_engine::rails::{Bus, Card, Cut, PolicyName, Protocol, Rails};

/// Hosts with several rails. Each rail is a copy of the fabric, and all messages travel over all of them. A run's scheme is the
/// congestion control of each rail: swift where none is named; hpcc and pint need telemetry that rails do not carry.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RailsTable {
    /// Rate of each rail: that of a host's link in its copy of the fabric, whose other links are in proportion.
    #[schemars(length(min = 1, max = MAX_RAILS), transform = each(between("1Mbps", "1000Tbps")))]
    pub rates: Vec<BitRate>,
    /// Which rails a message takes. Default: dynamic, those that are free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyName>,
    /// How a message is cut. Default: weighted, by what each rail carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// Whether a message that chooses waits for the other host's state. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<bool>,
    /// Age at which that state is too old. Default: 1 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_most(DAY))]
    pub stale: Option<Span>,
    /// Messages up to this size go whole on one rail where pieces are equal. Default: 4096 B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_most("1TiB"))]
    pub short: Option<Bytes>,
    /// Time between heartbeats; a rail that is silent for three is down. Default: 20 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = between("1us", DAY))]
    pub heartbeat: Option<Span>,
    /// How long an acknowledgement may wait. Default: 25 us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_most(DAY))]
    pub ack_delay: Option<Span>,
    /// Least time after which silence is asked about. Default: 5 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_most(DAY))]
    pub patience: Option<Span>,
    /// How late a host may be. Default: 200 us, which suits a kernel's sockets; cards are quicker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_most(DAY))]
    pub lateness: Option<Span>,
    /// Segments per rail that a host's bus and cards hold; 0: any number. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<u32>,
    /// Bytes that the network puts around a packet. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = at_most("9000B"))]
    pub around: Option<Bytes>,
    /// What lies between a host's memory and all its cards. Default: nothing that limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<Bus>,
    /// What each card's two ways share. Default: nothing that limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<Card>,
}

/// Payload of a full packet where the experiment names none: what a datagram of the real driver's carries, its header included.
pub(super) fn usual_mtu() -> Bytes {
    Bytes(DATA_OVERHEAD as u64 + u64::from(Protocol::default().segment))
}

impl RailsTable {
    /// Fills in what is left open; gives what a run is told, but for the scheme. Packets carry `mtu` bytes, headers of rails
    /// included.
    pub(super) fn fill(&mut self, mtu: Bytes) -> Rails {
        let usual = Protocol::default();
        let protocol = Protocol {
            segment: u16::try_from(mtu.0.saturating_sub(DATA_OVERHEAD as u64)).unwrap_or(u16::MAX),
            wait: *self.wait.get_or_insert(usual.wait),
            stale: *self.stale.get_or_insert(usual.stale),
            short: *self.short.get_or_insert(usual.short),
            heartbeat: *self.heartbeat.get_or_insert(usual.heartbeat),
            ack_delay: *self.ack_delay.get_or_insert(usual.ack_delay),
            patience: *self.patience.get_or_insert(usual.patience),
            lateness: *self.lateness.get_or_insert(usual.lateness),
            scheme: usual.scheme,
        };
        let policy = *self.policy.get_or_insert(PolicyName::Dynamic);
        let cut = *self.cut.get_or_insert(Cut::Weighted);
        Rails {
            bus: *self.bus.get_or_insert_with(Bus::default),
            card: *self.card.get_or_insert_with(Card::default),
            room: *self.room.get_or_insert(0),
            around: *self.around.get_or_insert(Bytes(0)),
            ..Rails::new(protocol.config(policy, cut, self.rates.len()))
        }
    }

    /// What makes every connection of these rails impossible, if anything does.
    pub(super) fn check(&self, rails: &Rails) -> Result<(), ConfigError> {
        let config = rails.end(NodeId(0), NodeId(1), 1, self.rates.clone());
        Connection::new(Time::ZERO, config).map(drop)
    }
}
