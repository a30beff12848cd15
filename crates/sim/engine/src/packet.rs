//! Packets in the simulator: headers, lengths and telemetry only, in an arena.

use raddle_prefetch::prefetch;
use raddle_transport::telemetry::{HopRecord, MAX_HOPS};
use raddle_unicast::FlowHash;
use raddle_units::{NodeId, PortId, Time};

/// What a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PacketKind {
    /// The slot is free.
    Free,
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
    /// Of an in-network reduction; `flow` is its place in the table of contents.
    Offload,
    /// A contribution to a reduction of a group, on its way up the tree; `flow` is its way.
    Part,
    /// The result, on its way down.
    Combined,
    /// A segment of a message over rails; `flow` is its place in the table of contents, `seq` the half of a connection that it
    /// is for.
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

    /// Whether `flow` is the slot of a flow.
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
}

/// No next hop was looked up.
const UNKNOWN: PortId = PortId(u32::MAX);

/// One packet on its way, in two cache lines: switches touch only the first, up to the fourth hop record.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
pub(crate) struct Packet {
    /// Where this packet goes (an ACK goes to the data's sender). Data to a group: the address of its colour.
    pub(crate) dst: NodeId,
    pub(crate) hash: FlowHash,
    /// Where it leaves the node at which it is about to arrive, once that was looked up.
    out: PortId,
    /// Bytes on the wire.
    pub(crate) bytes: u32,
    pub(crate) kind: PacketKind,
    /// Congestion mark of data, echo of an ACK.
    pub(crate) marked: bool,
    /// Hop records pushed.
    pub(crate) hops: u8,
    /// Queue in switches.
    pub(crate) queue: u8,
    /// PINT's code.
    pub(crate) digest: u16,
    /// Of the flow's slot when the packet was sent: another one there now means that the flow is over.
    pub(crate) generation: u16,
    records: [HopRecord; MAX_HOPS],
    pub(crate) seq: u64,
    /// When the data packet left its sender; an ACK echoes it.
    pub(crate) sent_at: Time,
    /// Slot of its flow.
    pub(crate) flow: u32,
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

/// What a sender knows of a data packet.
pub(crate) struct Segment {
    pub(crate) flow: u32,
    pub(crate) generation: u16,
    pub(crate) src: NodeId,
    pub(crate) dst: NodeId,
    pub(crate) hash: FlowHash,
    pub(crate) queue: u8,
    pub(crate) seq: u64,
    pub(crate) sent_at: Time,
    pub(crate) bytes: u32,
    pub(crate) payload: u32,
}

impl Packet {
    /// A data packet as its sender makes it.
    #[inline]
    pub(crate) fn data(segment: Segment) -> Self {
        Self {
            dst: segment.dst,
            hash: segment.hash,
            out: UNKNOWN,
            bytes: segment.bytes,
            kind: PacketKind::Data,
            marked: false,
            hops: 0,
            queue: segment.queue,
            digest: 0,
            generation: segment.generation,
            records: [HopRecord::default(); MAX_HOPS],
            seq: segment.seq,
            sent_at: segment.sent_at,
            flow: segment.flow,
            src: segment.src,
            payload: segment.payload,
            account: 0,
        }
    }

    /// Where it leaves the node at which it is about to arrive, if that was looked up.
    #[inline]
    pub(crate) fn out(&self) -> Option<PortId> {
        (self.out != UNKNOWN).then_some(self.out)
    }

    #[inline]
    pub(crate) const fn set_out(&mut self, out: PortId) {
        self.out = out;
    }

    /// [`Self::out`], which holds for one node only.
    #[inline]
    pub(crate) fn take_out(&mut self) -> Option<PortId> {
        let out = self.out();
        self.out = UNKNOWN;
        out
    }

    /// Appends a hop record; past `room` records the first are overwritten.
    #[inline]
    pub(crate) const fn push_record(&mut self, record: HopRecord, room: u8) {
        let at = if self.hops < room {
            self.hops
        } else {
            self.hops % room
        };
        self.hops += 1;
        self.records[at as usize] = record;
    }

    /// The hop records, at most `room`.
    #[inline]
    pub(crate) fn records(&self, room: u8) -> &[HopRecord] {
        &self.records[..usize::from(self.hops.min(room))]
    }
}

/// All packets of a run.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    slots: Vec<Packet>,
    free: Vec<u32>,
}

impl Packets {
    #[inline]
    pub(crate) fn insert(&mut self, packet: Packet) -> u32 {
        if let Some(handle) = self.free.pop() {
            self.slots[handle as usize] = packet;
            return handle;
        }
        self.slots.push(packet);
        (self.slots.len() - 1) as u32
    }

    #[inline]
    pub(crate) fn remove(&mut self, handle: u32) {
        self.slots[handle as usize].kind = PacketKind::Free;
        self.free.push(handle);
    }

    #[inline]
    pub(crate) fn get(&self, handle: u32) -> &Packet {
        &self.slots[handle as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, handle: u32) -> &mut Packet {
        &mut self.slots[handle as usize]
    }

    /// Hints that a switch will need a packet soon.
    #[inline]
    pub(crate) fn prefetch(&self, handle: u32) {
        prefetch(&self.slots[handle as usize].dst);
    }

    /// Hints that a host will need what [`Self::prefetch`] leaves out.
    #[inline]
    pub(crate) fn prefetch_rest(&self, handle: u32) {
        prefetch(&self.slots[handle as usize].seq);
    }

    /// Routes have changed: what was looked up does not hold any more.
    pub(crate) fn forget_routes(&mut self) {
        for packet in &mut self.slots {
            packet.out = UNKNOWN;
        }
    }

    /// The most that were on their way at once.
    pub(crate) const fn most(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Packets on their way.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.slots
            .iter()
            .filter(|packet| packet.kind != PacketKind::Free)
    }
}
