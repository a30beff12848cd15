//! In-network reductions of a run, as data: who takes part, and what switches need to compute.

use raddle_units::{NodeId, Span};

/// One group: hosts that reduce together in the switches between them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OffloadGroup {
    /// The host of each member, in order of members. A host may have several.
    pub members: Vec<NodeId>,
    /// The switch at the top of its tree. Every switch on the way from a member to it takes part.
    pub root: NodeId,
}

/// All groups of a run. Groups stand when the run begins: setting them up takes no simulated time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offload {
    /// The groups. Members are numbered through all groups in order: a message to [`raddle_workload::OffloadId`] `i` is a
    /// round of member `i`.
    pub groups: Vec<OffloadGroup>,
    /// Time that a switch's unit for reductions takes for each packet; it takes one after the other. Ordinary packets
    /// pass by it.
    pub compute: Span,
    /// Time after which a member sends a contribution again.
    pub retry: Span,
    /// Slots of a group in each switch.
    pub slots: u16,
    /// Most bytes of an operand in a packet.
    pub segment_bytes: u16,
}

impl Offload {
    /// Groups with 64 slots of 1024 bytes, and repetition after 1 ms.
    pub const fn new(groups: Vec<OffloadGroup>, compute: Span) -> Self {
        Self {
            groups,
            compute,
            retry: Span::from_ms(1),
            slots: 64,
            segment_bytes: 1024,
        }
    }
}
