//! What happens: the kinds of events, packed into a word, and their order within an instant.

use raddle_units::NodeId;

use super::bus::Way;
use crate::{
    event::KEY_BITS,
    index::{FlowSlot, HalfIndex, MemberIndex, NicIndex, PacketSlot, PendingIndex, PortIndex},
    semantics::TieOrder,
};

/// Something that happens, with what it concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// A packet is wholly received at a port.
    Arrive(PortIndex, PacketSlot),
    /// A PFC frame is received at a port: its data class, and whether it pauses.
    Pfc(PortIndex, u8, bool),
    /// A port's transmission ends and something waits.
    Free(PortIndex),
    /// A NIC's earliest flow may send.
    Wake(NicIndex),
    /// A congestion-control timer: its number, the flow, and the generation of the flow's slot.
    Timer(u8, FlowSlot, u16),
    /// A retransmission timer: the flow, and the generation of its slot.
    Timeout(FlowSlot, u16),
    /// The workload's next message is due.
    Start,
    /// Two steps of a flow's start that the reference takes within the instant.
    StartSoon(PendingIndex),
    StartNow(PendingIndex),
    /// A switch's unit is through with a packet of a reduction.
    Compute(NodeId, PacketSlot),
    /// A member of a reduction may have to send again.
    Retry(MemberIndex),
    /// A packet has crossed a host's bus.
    Crossed(NodeId, Way),
    /// A timer of a connection over rails.
    RailTimer(HalfIndex),
    /// A packet has crossed what a card's two ways share.
    CrossedCard(PortIndex),
    /// A host is through with packets of other groups before one of its own.
    Heard(PortIndex, PacketSlot),
    /// A host learns of messages that have begun to come to it over rails.
    Noticed(NodeId),
}

/// The kinds alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Arrive,
    Pfc,
    Free,
    Wake,
    Timer,
    Timeout,
    Start,
    StartSoon,
    StartNow,
    Compute,
    Retry,
    Crossed,
    RailTimer,
    CrossedCard,
    Heard,
    Noticed,
}

impl Kind {
    /// By number; any four bits have a kind.
    const ALL: [Self; 16] = [
        Self::Arrive,
        Self::Pfc,
        Self::Free,
        Self::Wake,
        Self::Timer,
        Self::Timeout,
        Self::Start,
        Self::StartSoon,
        Self::StartNow,
        Self::Compute,
        Self::Retry,
        Self::Crossed,
        Self::RailTimer,
        Self::CrossedCard,
        Self::Heard,
        Self::Noticed,
    ];

    /// Order at one node and port within an instant, for [`TieOrder::Canonical`]: timers, then what arrives, then what
    /// leaves.
    const fn rank(self) -> u64 {
        match self {
            Self::Start | Self::StartSoon | Self::StartNow => 0,
            Self::Noticed => 1,
            Self::Timer => 2,
            Self::Pfc => 3,
            Self::Arrive | Self::Compute | Self::Crossed | Self::CrossedCard | Self::Heard => 4,
            Self::Free => 5,
            Self::Wake => 6,
            Self::Timeout | Self::Retry | Self::RailTimer => 7,
        }
    }
}

/// Sequences of what else happens at a host's port among arrivals, which have 0: each way of the host's bus (at its first
/// port), the card, and a packet that stood behind others.
pub(super) const CROSSED: [u32; 2] = [1, 2];
pub(super) const CROSSED_CARD: u32 = 3;
pub(super) const HEARD: u32 = 4;

/// The kind of a packed word.
const KIND_SHIFT: u32 = 56;
/// Where the upper of the two numbers begins, and its bits: ports and nodes fit.
const HIGH_SHIFT: u32 = 32;
const HIGH_BITS: u32 = KIND_SHIFT - HIGH_SHIFT;

impl What {
    /// As [`crate::event::Event::what`].
    #[inline(always)]
    pub(super) fn pack(self) -> u64 {
        let (kind, high, low) = match self {
            Self::Arrive(port, packet) => (Kind::Arrive, port.0, packet.0),
            Self::Pfc(port, class, pause) => {
                (Kind::Pfc, port.0, u32::from(class) << 1 | u32::from(pause))
            }
            Self::Free(port) => (Kind::Free, port.0, 0),
            Self::Wake(nic) => (Kind::Wake, 0, nic.0),
            Self::Timer(number, flow, generation) => {
                let high = u32::from(generation) << 8 | u32::from(number);
                (Kind::Timer, high, flow.0)
            }
            Self::Timeout(flow, generation) => (Kind::Timeout, u32::from(generation) << 8, flow.0),
            Self::Start => (Kind::Start, 0, 0),
            Self::StartSoon(pending) => (Kind::StartSoon, 0, pending.0),
            Self::StartNow(pending) => (Kind::StartNow, 0, pending.0),
            Self::Compute(node, packet) => (Kind::Compute, node.0, packet.0),
            Self::Retry(member) => (Kind::Retry, 0, member.0),
            Self::Crossed(host, way) => (Kind::Crossed, way as u32, host.0),
            Self::RailTimer(half) => (Kind::RailTimer, 0, half.0),
            Self::CrossedCard(port) => (Kind::CrossedCard, 0, port.0),
            Self::Heard(port, packet) => (Kind::Heard, port.0, packet.0),
            Self::Noticed(host) => (Kind::Noticed, 0, host.0),
        };
        debug_assert!(high >> HIGH_BITS == 0, "{self:?} does not fit");
        (kind as u64) << KIND_SHIFT | u64::from(high) << HIGH_SHIFT | u64::from(low)
    }

    /// What was packed.
    #[inline(always)]
    pub(super) fn unpack(word: u64) -> Self {
        let high = (word >> HIGH_SHIFT) as u32 & ((1 << HIGH_BITS) - 1);
        let low = word as u32;
        match Kind::ALL[(word >> KIND_SHIFT) as usize & 15] {
            Kind::Arrive => Self::Arrive(PortIndex(high), PacketSlot(low)),
            Kind::Pfc => Self::Pfc(PortIndex(high), (low >> 1) as u8, low & 1 == 1),
            Kind::Free => Self::Free(PortIndex(high)),
            Kind::Wake => Self::Wake(NicIndex(low)),
            Kind::Timer => Self::Timer(high as u8, FlowSlot(low), (high >> 8) as u16),
            Kind::Timeout => Self::Timeout(FlowSlot(low), (high >> 8) as u16),
            Kind::Start => Self::Start,
            Kind::StartSoon => Self::StartSoon(PendingIndex(low)),
            Kind::StartNow => Self::StartNow(PendingIndex(low)),
            Kind::Compute => Self::Compute(NodeId(high), PacketSlot(low)),
            Kind::Retry => Self::Retry(MemberIndex(low)),
            Kind::Crossed => Self::Crossed(NodeId(low), Way::of(high)),
            Kind::RailTimer => Self::RailTimer(HalfIndex(low)),
            Kind::CrossedCard => Self::CrossedCard(PortIndex(low)),
            Kind::Heard => Self::Heard(PortIndex(high), PacketSlot(low)),
            Kind::Noticed => Self::Noticed(NodeId(low)),
        }
    }

    /// The port of a packed [`Self::Arrive`] or [`Self::Pfc`].
    #[inline]
    pub(super) const fn arrives_at(word: u64) -> PortIndex {
        PortIndex((word >> HIGH_SHIFT) as u32 & ((1 << HIGH_BITS) - 1))
    }

    /// The packet of a packed [`Self::Arrive`] and the port; or the port of a packed [`Self::Free`]. `None`: another kind.
    #[inline(always)]
    pub(super) fn at_port(word: u64) -> Option<(PortIndex, Option<PacketSlot>)> {
        const ARRIVE: u64 = Kind::Arrive as u64;
        const FREE: u64 = Kind::Free as u64;
        let port = Self::arrives_at(word);
        match word >> KIND_SHIFT {
            ARRIVE => Some((port, Some(PacketSlot(word as u32)))),
            FREE => Some((port, None)),
            _ => None,
        }
    }
}

/// Makes the keys that order events within an instant.
#[derive(Debug)]
pub(super) struct Keys {
    order: TieOrder,
    inserted: u64,
}

impl Keys {
    /// Insertion keys of ordinary events start here; earlier ones are for timers, which precede what was scheduled after them.
    const ORDINARY: u64 = 1 << (KEY_BITS - 1);
    /// Bits of `sequence` that count.
    const SEQUENCE_BITS: u32 = 23;
    /// Where the port begins in a key.
    const PORT_SHIFT: u32 = 3 + Self::SEQUENCE_BITS;

    pub(super) const fn new(order: TieOrder) -> Self {
        Self { order, inserted: 0 }
    }

    /// Before all events of an instant but starts of messages: the key of what the run does between windows.
    pub(super) const FIRST: u64 = 0;

    /// The port that a key is of, what remains of it, and whether it is one that has no place: [`Self::FIRST`], or that of
    /// starts of messages.
    pub(super) const fn parts(key: u64) -> (PortIndex, u64, bool) {
        let rest = key & ((1 << Self::PORT_SHIFT) - 1);
        let starts = rest >> Self::SEQUENCE_BITS == Kind::Start.rank();
        (PortIndex((key >> Self::PORT_SHIFT) as u32), rest, starts)
    }

    /// The key of an event at `port` (ports are numbered node by node, in the fabric's order in every process; events of a node
    /// have its first port, starts of messages the first port of all).
    #[inline]
    pub(super) fn next(&mut self, kind: Kind, port: PortIndex, sequence: u32) -> u64 {
        match self.order {
            TieOrder::Canonical => {
                u64::from(port.0) << Self::PORT_SHIFT
                    | kind.rank() << Self::SEQUENCE_BITS
                    | u64::from(sequence & ((1 << Self::SEQUENCE_BITS) - 1))
            }
            TieOrder::Insertion => {
                self.inserted += 1;
                // Timers are armed only where they can matter, later than the reference does; they keep its place:
                // before anything that was scheduled less than a period ago.
                if matches!(kind, Kind::Timer) {
                    self.inserted
                } else {
                    self.inserted | Self::ORDINARY
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_again() {
        let (port, packet, node) = (
            PortIndex(0xab_cdef),
            PacketSlot(u32::MAX),
            NodeId(0x12_3456),
        );
        for what in [
            What::Arrive(port, packet),
            What::Pfc(port, 5, true),
            What::Pfc(port, 0, false),
            What::Free(port),
            What::Wake(NicIndex(7)),
            What::Timer(3, FlowSlot(1 << 31), u16::MAX),
            What::Timeout(FlowSlot(2), 9),
            What::Start,
            What::StartSoon(PendingIndex(4)),
            What::StartNow(PendingIndex(4)),
            What::Compute(node, packet),
            What::Retry(MemberIndex(6)),
            What::Crossed(node, Way::Read),
            What::Crossed(node, Way::Write),
            What::RailTimer(HalfIndex(8)),
            What::CrossedCard(port),
            What::Heard(port, packet),
            What::Noticed(node),
        ] {
            assert_eq!(What::unpack(what.pack()), what);
        }
        assert_eq!(
            What::at_port(What::Arrive(port, packet).pack()),
            Some((port, Some(packet)))
        );
        assert_eq!(What::at_port(What::Free(port).pack()), Some((port, None)));
        assert_eq!(What::at_port(What::CrossedCard(port).pack()), None);
    }
}
