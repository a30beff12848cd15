//! Packets in the simulator: headers, lengths and telemetry only.
//!
//! All kinds share one layout of two cache lines. Three of its words depend on the kind; they are private, and each is read
//! through the one function that fits the kind. What a kind needs beside stands in a table of its own.

use raddle_multicast::Colour;
use raddle_prefetch::{prefetch, prefetch_early};
use raddle_transport::telemetry::{HopRecord, MAX_HOPS};
use raddle_unicast::FlowHash;
use raddle_units::{NodeId, Time};
use serde::{Deserialize, Serialize};

use crate::index::{DatagramSlot, FlowSlot, PortIndex, SegmentSlot, TreeIndex};

/// What a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub(crate) enum PacketKind {
    /// The slot is free.
    Free = 0,
    /// Data from byte `seq` on.
    Data,
    /// All bytes below `seq` arrived.
    Ack,
    /// All bytes below `seq` arrived, what followed did not.
    Nack,
    /// Data on its way to a group.
    GroupData,
    /// [`Self::Ack`] of one member of a group.
    GroupAck,
    /// [`Self::Nack`] of one member of a group.
    GroupNack,
    /// Of an in-network reduction.
    Offload,
    /// A contribution to a reduction of a group, on its way up the tree.
    Part,
    /// The result, on its way down.
    Combined,
    /// A segment of a message over rails.
    RailData,
    /// The same without payload: an acknowledgement, a grant, a probe, a hello.
    RailControl,
}

impl PacketKind {
    /// Whether it carries payload.
    #[inline]
    pub(crate) const fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::GroupData | Self::RailData)
    }

    /// Whether a host's software asked for it, unlike an acknowledgement.
    #[inline]
    pub(crate) const fn is_request(self) -> bool {
        matches!(
            self,
            Self::Data | Self::GroupData | Self::Offload | Self::Part | Self::RailData
        )
    }

    /// Whether it travels over rails.
    #[inline]
    pub(crate) const fn is_on_rails(self) -> bool {
        matches!(self, Self::RailData | Self::RailControl)
    }

    /// Whether it belongs to a flow.
    #[inline]
    pub(crate) const fn is_of_flow(self) -> bool {
        !matches!(
            self,
            Self::Offload | Self::Part | Self::Combined | Self::RailData | Self::RailControl
        )
    }

    /// Whether it finds its way by the unicast tables alone.
    #[inline]
    pub(crate) const fn is_unicast(self) -> bool {
        !matches!(
            self,
            Self::GroupData | Self::Offload | Self::Part | Self::Combined
        )
    }

    /// Whether it goes to a group.
    #[inline]
    const fn is_to_group(self) -> bool {
        matches!(self, Self::GroupData | Self::Part | Self::Combined)
    }
}

/// Which piece of a reduction of a group a packet carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Piece {
    /// The reduction, counted from 1.
    pub(crate) round: u64,
    /// Place of the packet in it, below 64.
    pub(crate) segment: u32,
}

impl Piece {
    /// Bits of the word in the packet that number the segments.
    const SEGMENT_BITS: u32 = 6;
    /// Segments that a reduction may have.
    pub(crate) const MOST_SEGMENTS: u64 = 1 << Self::SEGMENT_BITS;

    fn word(self) -> u64 {
        self.round << Self::SEGMENT_BITS | u64::from(self.segment)
    }

    fn of(word: u64) -> Self {
        Self {
            round: word >> Self::SEGMENT_BITS,
            segment: word as u32 & ((1 << Self::SEGMENT_BITS) - 1),
        }
    }
}

/// What is known of a packet where delays are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    /// The class of its message, where that is known.
    pub(crate) class: Option<u8>,
    /// It carries the last byte of its message.
    pub(crate) followed: bool,
}

impl Mark {
    /// In a packet: whether it is followed, then its class, from 1. A packet without a mark has 0.
    fn word(self) -> u16 {
        let class = self.class.map_or(0, |class| u16::from(class) + 1);
        class << 1 | u16::from(self.followed)
    }

    fn of(word: u16) -> Self {
        Self {
            class: (word >> 1).checked_sub(1).map(|class| class as u8),
            followed: word & 1 == 1,
        }
    }
}

/// No next hop was looked up.
const UNKNOWN: PortIndex = PortIndex(u32::MAX);

/// One packet on its way, in two cache lines: switches touch only the first, up to the fourth hop record.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(C, align(128))]
pub(crate) struct Packet {
    /// Who it is for: [`Self::dst`], or [`Self::colour`].
    towards: u32,
    pub(crate) hash: FlowHash,
    /// Where it leaves the node at which it is about to arrive, once that was looked up.
    out: PortIndex,
    /// Bytes on the wire.
    pub(crate) bytes: u32,
    pub(crate) kind: PacketKind,
    /// Congestion mark of data, echo of an ACK.
    pub(crate) marked: bool,
    /// Hop records pushed.
    pub(crate) hops: u8,
    /// Queue in switches.
    pub(crate) queue: u8,
    /// What is known of it where delays are recorded: [`Self::mark`].
    mark: u16,
    /// Of the flow's slot when the packet was sent: another one there now means that the flow is over.
    pub(crate) generation: u16,
    /// Hop records; where a run has digests instead, the first holds [`Self::digest`].
    records: [HopRecord; MAX_HOPS],
    /// Where in the message it is: [`Self::seq`], or [`Self::piece`].
    position: u64,
    /// When the data packet left its sender; an ACK echoes it.
    pub(crate) sent_at: Time,
    /// What it is part of: [`Self::flow`], [`Self::datagram`], [`Self::tree`] or [`Self::segment`].
    part_of: u32,
    /// Where this packet comes from.
    pub(crate) src: NodeId,
    /// Bytes of payload.
    pub(crate) payload: u32,
    /// The switch's word for a packet of which there are copies ([`raddle_dataplane::Frames::set_account`]).
    pub(crate) account: u32,
}

const LINE_BYTES: usize = 64;
const _: () = assert!(size_of::<Packet>() == 2 * LINE_BYTES);
const _: () = assert!(std::mem::offset_of!(Packet, records) == LINE_BYTES / 2);

/// What packets of all kinds have.
pub(crate) struct Envelope {
    pub(crate) src: NodeId,
    pub(crate) hash: FlowHash,
    pub(crate) queue: u8,
    pub(crate) sent_at: Time,
    /// On the wire.
    pub(crate) bytes: u32,
    pub(crate) payload: u32,
}

/// Bytes of a flow.
pub(crate) struct Bytestream {
    pub(crate) flow: FlowSlot,
    pub(crate) generation: u16,
    /// The first byte.
    pub(crate) seq: u64,
}

/// How an acknowledgement differs from the data that it answers.
pub(crate) struct Answer {
    pub(crate) kind: PacketKind,
    /// Who acknowledges, and the data's sender.
    pub(crate) src: NodeId,
    pub(crate) dst: NodeId,
    pub(crate) hash: FlowHash,
    pub(crate) seq: u64,
    /// It echoes a congestion mark.
    pub(crate) marked: bool,
}

impl Packet {
    #[inline(always)]
    fn new(
        kind: PacketKind,
        towards: u32,
        part_of: u32,
        position: u64,
        envelope: Envelope,
    ) -> Self {
        Self {
            towards,
            hash: envelope.hash,
            out: UNKNOWN,
            bytes: envelope.bytes,
            kind,
            marked: false,
            hops: 0,
            queue: envelope.queue,
            mark: 0,
            generation: 0,
            records: [HopRecord::default(); MAX_HOPS],
            position,
            sent_at: envelope.sent_at,
            part_of,
            src: envelope.src,
            payload: envelope.payload,
            account: 0,
        }
    }

    /// Data of a flow to a host.
    #[inline]
    pub(crate) fn data(dst: NodeId, bytes: &Bytestream, envelope: Envelope) -> Self {
        Self {
            generation: bytes.generation,
            ..Self::new(PacketKind::Data, dst.0, bytes.flow.0, bytes.seq, envelope)
        }
    }

    /// Data of a flow to a group, by the colour that its packets carry.
    pub(crate) fn group_data(colour: Colour, bytes: &Bytestream, envelope: Envelope) -> Self {
        let towards = u32::from(colour.0);
        Self {
            generation: bytes.generation,
            ..Self::new(
                PacketKind::GroupData,
                towards,
                bytes.flow.0,
                bytes.seq,
                envelope,
            )
        }
    }

    /// A packet of an in-network reduction, for a host or a switch.
    pub(crate) fn offload(dst: NodeId, datagram: DatagramSlot, envelope: Envelope) -> Self {
        Self::new(PacketKind::Offload, dst.0, datagram.0, 0, envelope)
    }

    /// A contribution to a reduction of a group.
    pub(crate) fn part(colour: Colour, tree: TreeIndex, piece: Piece, envelope: Envelope) -> Self {
        let towards = u32::from(colour.0);
        Self::new(PacketKind::Part, towards, tree.0, piece.word(), envelope)
    }

    /// A packet over rails, with payload or without.
    pub(crate) fn on_rails(
        dst: NodeId,
        segment: SegmentSlot,
        data: bool,
        envelope: Envelope,
    ) -> Self {
        let kind = if data {
            PacketKind::RailData
        } else {
            PacketKind::RailControl
        };
        Self::new(kind, dst.0, segment.0, 0, envelope)
    }

    /// Turns data into its acknowledgement of `bytes`, in place: telemetry and timestamp go back as they came.
    #[inline]
    pub(crate) const fn turn_into(&mut self, answer: &Answer, bytes: u32) {
        self.kind = answer.kind;
        self.marked = answer.marked;
        self.src = answer.src;
        self.towards = answer.dst.0;
        self.hash = answer.hash;
        self.position = answer.seq;
        self.bytes = bytes;
        self.payload = 0;
    }

    /// Host that it is for, or switch that computes. Not of packets to groups.
    #[inline(always)]
    pub(crate) fn dst(&self) -> NodeId {
        debug_assert!(!self.kind.is_to_group(), "{:?} has no host", self.kind);
        NodeId(self.towards)
    }

    /// Colour of the group that it goes to.
    #[inline]
    pub(crate) fn colour(&self) -> Colour {
        debug_assert!(self.kind.is_to_group(), "{:?} has no colour", self.kind);
        Colour(self.towards as u16)
    }

    /// First byte of data; all bytes below are acknowledged.
    #[inline]
    pub(crate) fn seq(&self) -> u64 {
        debug_assert!(self.kind.is_of_flow(), "{:?} counts no bytes", self.kind);
        self.position
    }

    /// The piece of a group's reduction.
    pub(crate) fn piece(&self) -> Piece {
        debug_assert!(matches!(self.kind, PacketKind::Part | PacketKind::Combined));
        Piece::of(self.position)
    }

    /// Slot of its flow.
    #[inline(always)]
    pub(crate) fn flow(&self) -> FlowSlot {
        debug_assert!(self.kind.is_of_flow(), "{:?} has no flow", self.kind);
        FlowSlot(self.part_of)
    }

    /// The tree of a group's reduction.
    pub(crate) fn tree(&self) -> TreeIndex {
        debug_assert!(matches!(self.kind, PacketKind::Part | PacketKind::Combined));
        TreeIndex(self.part_of)
    }

    /// What it carries has moved.
    pub(crate) const fn set_datagram(&mut self, datagram: DatagramSlot) {
        self.part_of = datagram.0;
    }

    /// What a packet of an in-network reduction carries.
    pub(crate) fn datagram(&self) -> DatagramSlot {
        debug_assert!(self.kind == PacketKind::Offload);
        DatagramSlot(self.part_of)
    }

    /// What it carries over rails has moved.
    pub(crate) const fn set_segment(&mut self, segment: SegmentSlot) {
        self.part_of = segment.0;
    }

    /// What a packet over rails carries.
    pub(crate) fn segment(&self) -> SegmentSlot {
        debug_assert!(self.kind.is_on_rails());
        SegmentSlot(self.part_of)
    }

    /// Where it leaves the node at which it is about to arrive, if that was looked up.
    #[inline]
    pub(crate) fn out(&self) -> Option<PortIndex> {
        (self.out != UNKNOWN).then_some(self.out)
    }

    #[inline]
    pub(crate) const fn set_out(&mut self, out: PortIndex) {
        self.out = out;
    }

    /// [`Self::out`], which holds for one node only.
    #[inline]
    pub(crate) fn take_out(&mut self) -> Option<PortIndex> {
        let out = self.out();
        self.out = UNKNOWN;
        out
    }

    /// Routes have changed: what was looked up does not hold any more.
    pub(crate) const fn forget_out(&mut self) {
        self.out = UNKNOWN;
    }

    /// Hints that a switch will need it soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch_early(&self.towards);
    }

    /// Hints that a host will need what [`Self::prefetch`] leaves out.
    #[inline(always)]
    pub(crate) fn prefetch_rest(&self) {
        prefetch(&self.position);
    }

    /// Appends a hop record; past `room` records the first are overwritten.
    #[inline(always)]
    pub(crate) const fn push_record(&mut self, record: HopRecord, room: u8) {
        let at = if self.hops < room {
            self.hops
        } else {
            self.hops % room
        };
        self.hops += 1;
        self.records[at as usize] = record;
    }

    /// PINT's code, in runs without hop records.
    #[inline]
    pub(crate) const fn digest(&self) -> u16 {
        self.records[0].0 as u16
    }

    #[inline]
    pub(crate) fn raise_digest(&mut self, code: u16) {
        self.records[0].0 = self.digest().max(code).into();
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark::of(self.mark)
    }

    pub(crate) fn set_mark(&mut self, mark: Mark) {
        self.mark = mark.word();
    }

    /// The hop records, at most `room`.
    #[inline]
    pub(crate) fn records(&self, room: u8) -> &[HopRecord] {
        &self.records[..usize::from(self.hops.min(room))]
    }
}
