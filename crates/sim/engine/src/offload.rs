//! In-network reductions of a run, as data: who takes part, and what switches need to compute.

use raddle_offload::published::Transport;
use raddle_units::{NodeId, Span};

/// One group: hosts that reduce together in the switches between them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OffloadGroup {
    /// The host of each member, in order of members. A host may have several.
    pub members: Vec<NodeId>,
    /// The switch at the top of its tree. Every switch on the way from a member to it takes part; with the published protocol
    /// the leaf switches and this one.
    pub root: NodeId,
}

/// What members and switches speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OffloadProtocol {
    /// Ours ([`raddle_offload::member`], [`raddle_offload::switch`]): operands of any length; lost packets are sent again.
    #[default]
    Native,
    /// That of Li et al. (2022; [`raddle_offload::published`]): operands of at most 256 bytes, as many members on each host,
    /// as many hosts, two or more, below each leaf switch. Nothing is sent again: a lost packet ends the run.
    Published(Transport),
}

/// All groups of a run. Groups stand when the run begins: setting them up takes no simulated time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offload {
    /// The groups. Members are numbered through all groups in order: a message to [`raddle_workload::OffloadId`] `i` is a
    /// round of member `i`.
    pub groups: Vec<OffloadGroup>,
    /// What they all speak.
    pub protocol: OffloadProtocol,
    /// Time that a switch's unit for reductions takes for each packet. Ordinary packets pass by it.
    pub compute: Span,
    /// Packets that a switch's unit works on at the same time; more wait, one after the other. At least 1.
    pub units: u32,
    /// Time after which a member sends a contribution again. Native protocol only.
    pub retry: Span,
    /// Slots of a group in each switch. Native protocol only.
    pub slots: u16,
    /// Most bytes of an operand in a packet. Native protocol only.
    pub segment_bytes: u16,
    /// Packets that are lost on purpose.
    pub lost: Vec<LostPackets>,
}

/// Packets of a member that are lost between it and the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostPackets {
    /// The member.
    pub member: u32,
    /// What it sends, or what it would receive.
    pub sent: bool,
    /// The first of them, counted from 1.
    pub first: u64,
    /// How many.
    pub count: u64,
}

impl LostPackets {
    /// Whether a member's packet is one of them.
    #[must_use]
    pub const fn has(&self, member: u32, sent: bool, number: u64) -> bool {
        let is_its = self.member == member && self.sent == sent;
        is_its && number >= self.first && number - self.first < self.count
    }
}

impl Offload {
    /// Groups of the native protocol with 64 slots of 1024 bytes, and repetition after 1 ms; units take packet by packet.
    pub const fn new(groups: Vec<OffloadGroup>, compute: Span) -> Self {
        Self {
            groups,
            protocol: OffloadProtocol::Native,
            compute,
            units: 1,
            retry: Span::from_ms(1),
            slots: 64,
            segment_bytes: 1024,
            lost: Vec::new(),
        }
    }
}
