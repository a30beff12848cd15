//! The engine's packets as the data plane sees them.

use raddle_dataplane::Frames;
use raddle_transport::telemetry::HopRecord;
use raddle_units::NodeId;

use super::context::Context;
use crate::{
    chance::{Chance, MarkReplay},
    index::{FlowSlot, List, PacketSlot},
    packet::PacketKind,
    packets::Packets,
};

/// Congestion marks that are replayed, and what names the flows in their file.
#[derive(Debug)]
pub(super) struct Replay<'a> {
    marks: &'a MarkReplay,
    /// Source ports, by flow.
    sports: List<FlowSlot, u16>,
}

impl<'a> Replay<'a> {
    pub(super) fn new(marks: &'a MarkReplay) -> Self {
        Self {
            marks,
            sports: List::default(),
        }
    }

    /// A flow begins.
    pub(super) fn note(&mut self, flow: FlowSlot, sport: u16) {
        match self.sports.get_mut(flow) {
            Some(known) => *known = sport,
            None => {
                self.sports.push(sport);
            }
        }
    }

    fn is_marked(&self, packets: &Packets, packet: PacketSlot) -> bool {
        let packet = packets.get(packet);
        if packet.kind != PacketKind::Data {
            return false;
        }
        let acked = packet.seq() + u64::from(packet.payload);
        let sport = self.sports[packet.flow()];
        self.marks.is_marked(packet.src, packet.dst(), sport, acked)
    }
}

/// See the module.
pub(super) struct FrameAccess<'a> {
    pub(super) packets: &'a mut Packets,
    pub(super) chance: &'a mut Chance,
    pub(super) replay: &'a Option<Replay<'a>>,
    pub(super) node: NodeId,
    pub(super) cx: &'a Context<'a>,
}

impl Frames for FrameAccess<'_> {
    fn mark(&mut self, handle: u32, probability: f64) -> bool {
        let handle = PacketSlot(handle);
        if !self.packets.get(handle).kind.is_data() {
            // An acknowledgement in the data queue: the reference decides about its mark too, and nobody reads it.
            if probability < 1.0 {
                self.chance
                    .happens(self.cx.cut.place(self.node), probability);
            }
            return false;
        }
        let marked = match self.replay {
            Some(replay) if probability < 1.0 => replay.is_marked(self.packets, handle),
            _ => {
                probability >= 1.0
                    || self
                        .chance
                        .happens(self.cx.cut.place(self.node), probability)
            }
        };
        self.packets.get_mut(handle).marked |= marked;
        marked
    }

    #[inline(always)]
    fn push_hop(&mut self, handle: u32, record: HopRecord) {
        self.packets
            .get_mut(PacketSlot(handle))
            .push_record(record, self.cx.layout.record_room);
    }

    fn raise_digest(&mut self, handle: u32, code: u16) {
        let packet = self.packets.get_mut(PacketSlot(handle));
        packet.raise_digest(code);
    }

    fn random(&mut self) -> u32 {
        self.chance.bits(self.cx.cut.place(self.node))
    }

    fn set_account(&mut self, handle: u32, account: u32) {
        self.packets.get_mut(PacketSlot(handle)).account = account;
    }

    fn account(&self, handle: u32) -> u32 {
        self.packets.get(PacketSlot(handle)).account
    }
}
