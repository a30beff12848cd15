//! Links: a port's transmitter, what it is connected to, and what happened there.

use raddle_units::{BitRate, Bytes, NodeId, PortId, Span, Time};

use super::cut::{Cut, MOST_PROCESSES};
use crate::{
    Network,
    index::{NicIndex, PortIndex, ProcessIndex, SwitchIndex, TileIndex},
    semantics::{LinkTiming, Semantics},
};

/// Where the other end of a link is, seen from a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Beyond(u16);

impl Beyond {
    /// In the tile of the port.
    pub(super) const HERE: Self = Self(u16::MAX);
    /// Marks a tile of the same process; without it the number is that of another process.
    const TILE: u16 = 1 << 15;

    fn new(cut: &Cut, from: NodeId, to: NodeId) -> Self {
        const { assert!(MOST_PROCESSES < Self::TILE as usize) };
        match (cut.process(to), cut.tile(to)) {
            (process, _) if process != cut.process(from) => Self(process.0),
            (_, tile) if tile != cut.tile(from) => Self(Self::TILE | tile.0),
            _ => Self::HERE,
        }
    }

    /// Whether it is in another process.
    #[inline]
    pub(super) const fn is_outside(self) -> bool {
        self.0 & Self::TILE == 0
    }

    /// The other process, or the other tile of this one.
    #[inline]
    pub(super) const fn place(self) -> Result<ProcessIndex, TileIndex> {
        if self.is_outside() {
            Ok(ProcessIndex(self.0))
        } else {
            Err(TileIndex(self.0 & !Self::TILE))
        }
    }
}

/// What a port is part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Device {
    Switch(SwitchIndex),
    Nic(NicIndex),
}

/// One end of a link: a port's transmitter and what it is connected to. One cache line: every hop touches two.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct LinkEnd {
    pub(super) busy_until: Time,
    /// Key of the event that ends the transmission, scheduled or not.
    pub(super) free_key: u64,
    pub(super) rate: BitRate,
    pub(super) delay: Span,
    /// The fabric's number of the port.
    pub(super) id: PortId,
    /// The other end, among the ports of its process.
    pub(super) peer: PortIndex,
    pub(super) node: NodeId,
    pub(super) device: Device,
    /// Picoseconds per byte where that is a whole number (else 0).
    ps_per_byte: u32,
    /// The port's index on its node, from 0.
    pub(super) index: u16,
    /// Where the other end is.
    pub(super) beyond: Beyond,
    /// The end of the transmission is scheduled.
    pub(super) free_scheduled: bool,
    pub(super) up: bool,
    /// Data classes of this port that are paused (bits).
    pub(super) paused: u8,
}

const _: () = assert!(size_of::<LinkEnd>() == 64);

/// What happened at a port, by port: touched rarely.
#[derive(Debug)]
pub(super) struct PortHistory {
    pub(super) paused_since: Time,
    pub(super) paused_total: Span,
    /// When the link failed last ([`Time::NEVER`]: it did not).
    pub(super) failed_at: Time,
    /// Data and ACK packets lost on the way to this port.
    pub(super) lost: u64,
    /// For NICs, which have no switch to count for them.
    pub(super) tx_bytes: u64,
    pub(super) tx_packets: u64,
}

impl Default for PortHistory {
    fn default() -> Self {
        Self {
            paused_since: Time::NEVER,
            paused_total: Span::ZERO,
            failed_at: Time::NEVER,
            lost: 0,
            tx_bytes: 0,
            tx_packets: 0,
        }
    }
}

impl LinkEnd {
    pub(super) fn new(network: &Network, cut: &Cut, port: PortId, device: Device) -> Self {
        let fabric = &network.fabric;
        let own = fabric.port(port);
        let rate = fabric.rate(port);
        let exact = network.semantics.timing == LinkTiming::Exact
            && rate.0 != 0
            && 8_000_000_000_000 % rate.0 == 0;
        Self {
            busy_until: Time::ZERO,
            free_key: 0,
            free_scheduled: false,
            up: true,
            index: own.number - 1,
            ps_per_byte: if exact {
                u32::try_from(8_000_000_000_000 / rate.0).unwrap_or(0)
            } else {
                0
            },
            id: port,
            node: own.node,
            peer: cut.port(fabric, own.peer),
            beyond: Beyond::new(cut, own.node, fabric.port(own.peer).node),
            device,
            paused: 0,
            rate,
            delay: fabric.delay(port),
        }
    }

    /// The switch that the port is part of; `None`: it is a host's.
    #[inline(always)]
    pub(super) const fn switch(&self) -> Option<SwitchIndex> {
        match self.device {
            Device::Switch(switch) => Some(switch),
            Device::Nic(_) => None,
        }
    }

    /// The port's number on its node, from 1.
    pub(super) const fn number(&self) -> u16 {
        self.index + 1
    }

    /// Whether a transmission is still going on `now`, also when it ends at this instant but later in its order than `key`.
    #[inline(always)]
    pub(super) fn is_busy(&self, now: Time, key: u64) -> bool {
        now < self.busy_until || (now == self.busy_until && key < self.free_key)
    }

    #[inline(always)]
    pub(super) fn transmission_time(&self, semantics: &Semantics, bytes: u32) -> Span {
        if self.ps_per_byte != 0 {
            return Span(u64::from(self.ps_per_byte) * u64::from(bytes));
        }
        self.uneven_time(semantics, bytes)
    }

    /// [`Self::transmission_time`] at a rate that does not give a byte a whole number of picoseconds.
    #[inline(never)]
    fn uneven_time(&self, semantics: &Semantics, bytes: u32) -> Span {
        semantics
            .timing
            .transmission_time(Bytes(u64::from(bytes)), self.rate)
    }
}
