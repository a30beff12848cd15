//! What a run is told of hosts with several rails: their protocol, and the bus before their cards.

use raddle_rails::{Config, Policy};
use raddle_text::{at_most, between};
use raddle_units::{BitRate, Bytes, NodeId, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most bytes around a packet.
const MOST_AROUND: u64 = 1 << 16;
/// Messages that a port has room for.
const BUFFERS: u32 = 512;

/// What lies between a host's memory and all its network cards. Payload crosses it, in order; acknowledgements do not, since
/// cards make and take them themselves (as Myrinet's do: [MNC, section 2.1.2]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bus {
    /// Bit/s from memory to the cards; none: no limit.
    #[schemars(transform = between("1bps", "1000Tbps"))]
    pub read: Option<BitRate>,
    /// Bit/s from the cards to memory; none: no limit.
    #[schemars(transform = between("1bps", "1000Tbps"))]
    pub write: Option<BitRate>,
    /// Reads and writes take turns, in order of arrival (PCI), instead of having a way of their own each (PCI Express).
    pub shared: bool,
    /// What a segment's read takes beside its bytes: cutting it off and telling a card of it.
    #[schemars(transform = at_most("86400s"))]
    pub cut: Span,
}

/// What a card sends and receives shares inside it ([MNC, section 1]: its processor's bus, and DMA engines that disturb each
/// other), so that it does less than twice as much both ways as one way. Segments take turns, in order; acknowledgements do not
/// count. Without either value a card does both at full rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Card {
    /// Bit/s of payload that a card sends and receives together; none: no limit.
    #[schemars(transform = between("1bps", "1000Tbps"))]
    pub both_ways: Option<BitRate>,
    /// What a card loses each time that it sends after it received, or receives after it sent.
    #[schemars(transform = at_most("86400s"))]
    pub turn: Span,
}

/// Rails of a run. Connections are made when a pair of hosts has its first message, and their greeting takes its time.
#[derive(Clone, Debug)]
pub struct Rails {
    /// What every connection is told. `local`, `peer`, `epoch` and `rails` are set for each end. With
    /// [`Policy::Unidirectional`] the host with the lower number sends on the rails named, the other one on the rest.
    pub protocol: Config,
    /// Each host's bus.
    pub bus: Bus,
    /// Each of its cards.
    pub card: Card,
    /// Segments per rail that a host's cards and bus hold; what is more waits in the core. 0: any number, so that congestion
    /// control alone bounds it.
    pub room: u32,
    /// Bytes that the network puts around a packet.
    pub around: Bytes,
    /// Messages that a port has room for.
    pub buffers: u32,
    /// Classes of messages that are flows as without rails, over each host's first link (by class; those beyond the end use rails).
    pub plain_classes: Vec<bool>,
}

impl Rails {
    /// Rails whose connections are told so, on hosts that nothing else limits.
    #[must_use]
    pub fn new(protocol: Config) -> Self {
        Self {
            protocol,
            bus: Bus::default(),
            card: Card::default(),
            room: 0,
            around: Bytes(0),
            buffers: BUFFERS,
            plain_classes: Vec::new(),
        }
    }

    /// Whether messages of a class travel over rails.
    pub(crate) fn carry(&self, class: u8) -> bool {
        !self
            .plain_classes
            .get(usize::from(class))
            .is_some_and(|plain| *plain)
    }

    /// What one end of a connection is told.
    pub fn end(&self, local: NodeId, peer: NodeId, epoch: u32, rails: Vec<BitRate>) -> Config {
        let mut policy = self.protocol.policy;
        if let Policy::Unidirectional { send } = &mut policy
            && peer < local
        {
            *send = !*send;
        }
        Config {
            local: local.0,
            peer: peer.0,
            epoch,
            rails,
            policy,
            ..self.protocol.clone()
        }
    }

    /// What is wrong with it, if anything is.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let zero = Some(BitRate(0));
        if self.bus.read == zero || self.bus.write == zero {
            return Some("the bus has a rate of 0: leave it out where there is no limit");
        }
        if self.card.both_ways == zero {
            return Some("a card has a rate of 0 both ways: leave it out where there is no limit");
        }
        if self.around.0 > MOST_AROUND {
            return Some("the headers around a packet have more than 64 KiB");
        }
        (self.buffers == 0)
            .then_some("ports without buffers receive nothing: `buffers` is at least 1")
    }
}
