//! Packets in the simulator: headers and lengths only, in an arena, one cache line each.

use raddle_routing::FlowHash;
use raddle_transport::telemetry::{HopRecord, MAX_HOPS};
use raddle_units::{NodeId, PortId, Time, prefetch};

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
}

/// One packet on its way.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Packet {
    /// Slot of its flow, valid while `generation` is the slot's.
    pub(crate) flow: u32,
    pub(crate) generation: u16,
    /// PINT's code.
    pub(crate) digest: u16,
    /// Where this packet goes and comes from (an ACK goes to the data's sender).
    pub(crate) src: NodeId,
    pub(crate) dst: NodeId,
    pub(crate) seq: u64,
    /// When the data packet left its sender; an ACK echoes it.
    pub(crate) sent_at: Time,
    pub(crate) hash: FlowHash,
    /// Where it leaves the node at which it is about to arrive, once that was looked up.
    pub(crate) out: Option<PortId>,
    /// Bytes on the wire, and of payload.
    pub(crate) bytes: u32,
    pub(crate) payload: u32,
    pub(crate) kind: PacketKind,
    /// Congestion mark of data, echo of an ACK.
    pub(crate) marked: bool,
    /// Hop records pushed.
    pub(crate) hops: u8,
    /// Queue in switches.
    pub(crate) queue: u8,
}

const _: () = assert!(size_of::<Packet>() == 64);

/// A packet and its hop records, in two adjacent cache lines of one page.
#[derive(Debug)]
#[repr(C, align(128))]
struct Slot {
    packet: Packet,
    records: [HopRecord; MAX_HOPS],
}

/// All packets of a run.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Packets {
    #[inline]
    pub(crate) fn insert(&mut self, packet: Packet) -> u32 {
        if let Some(handle) = self.free.pop() {
            self.slots[handle as usize].packet = packet;
            return handle;
        }
        let records = [HopRecord::default(); MAX_HOPS];
        self.slots.push(Slot { packet, records });
        (self.slots.len() - 1) as u32
    }

    #[inline]
    pub(crate) fn remove(&mut self, handle: u32) {
        self.slots[handle as usize].packet.kind = PacketKind::Free;
        self.free.push(handle);
    }

    #[inline]
    pub(crate) fn get(&self, handle: u32) -> &Packet {
        &self.slots[handle as usize].packet
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, handle: u32) -> &mut Packet {
        &mut self.slots[handle as usize].packet
    }

    /// Appends a hop record; past `room` records the first are overwritten.
    #[inline]
    pub(crate) fn push_record(&mut self, handle: u32, record: HopRecord, room: u8) {
        let Slot { packet, records } = &mut self.slots[handle as usize];
        let at = if packet.hops < room {
            packet.hops
        } else {
            packet.hops % room
        };
        packet.hops += 1;
        records[usize::from(at)] = record;
    }

    /// The hop records of a packet, at most `room`.
    #[inline]
    pub(crate) fn records(&self, handle: u32, room: u8) -> &[HopRecord] {
        let Slot { packet, records } = &self.slots[handle as usize];
        &records[..usize::from(packet.hops.min(room))]
    }

    /// Hints that a packet and its records will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, handle: u32) {
        prefetch(&self.slots[handle as usize]);
    }

    /// Routes have changed: what was looked up does not hold any more.
    pub(crate) fn forget_routes(&mut self) {
        for slot in &mut self.slots {
            slot.packet.out = None;
        }
    }

    /// Packets on their way.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.slots
            .iter()
            .map(|slot| &slot.packet)
            .filter(|packet| packet.kind != PacketKind::Free)
    }
}
