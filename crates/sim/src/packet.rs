//! Packets in the simulator: headers and lengths only, in an arena, one cache line each.

use raddle_routing::FlowHash;
use raddle_transport::telemetry::{HopRecord, MAX_HOPS};
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

/// All packets of a run.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    slots: Vec<Packet>,
    /// Hop records by slot; empty in runs without them.
    records: Vec<[HopRecord; MAX_HOPS]>,
    free: Vec<u32>,
    with_records: bool,
}

impl Packets {
    pub(crate) fn new(with_records: bool) -> Self {
        Self {
            with_records,
            ..Self::default()
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, packet: Packet) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = packet;
            return slot;
        }
        self.slots.push(packet);
        if self.with_records {
            self.records.push([HopRecord::default(); MAX_HOPS]);
        }
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

    /// Appends a hop record; past `room` records the first are overwritten.
    #[inline]
    pub(crate) fn push_record(&mut self, handle: u32, record: HopRecord, room: u8) {
        let packet = &mut self.slots[handle as usize];
        let at = if packet.hops < room {
            packet.hops
        } else {
            packet.hops % room
        };
        packet.hops += 1;
        self.records[handle as usize][usize::from(at)] = record;
    }

    /// The hop records of a packet, at most `room`.
    #[inline]
    pub(crate) fn records(&self, handle: u32, room: u8) -> &[HopRecord] {
        let count = self.slots[handle as usize].hops.min(room);
        self.records
            .get(handle as usize)
            .map_or(&[], |records| &records[..usize::from(count)])
    }

    /// Some of a packet's records, to have them in the cache.
    #[inline]
    pub(crate) fn first_record(&self, handle: u32) -> u64 {
        self.records
            .get(handle as usize)
            .map_or(0, |records| records[0].0)
    }

    /// Routes have changed: what was looked up does not hold any more.
    pub(crate) fn forget_routes(&mut self) {
        for packet in &mut self.slots {
            packet.out = None;
        }
    }

    /// Packets on their way.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.slots
            .iter()
            .filter(|packet| packet.kind != PacketKind::Free)
    }
}
