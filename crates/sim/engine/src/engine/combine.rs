//! Reductions of multicast groups: contributions meet on the way up a group's tree, the result comes down the tree.
//!
//! A host sends one packet for each segment of its contribution to the switch above it. A switch waits for all that comes
//! from below and sends one packet up; the last one, in which all have met, sends the result by all ports that the group's
//! colour has there, and from then on it is a packet to the group like any other. Packets are those of the control queue:
//! they are not acknowledged, and nothing is sent again. With two trees everything goes over both, and the first result
//! counts.

use raddle_dataplane::{Frame, FrameKind, QUEUE_ACKS};
use raddle_multicast::PortSet;
use raddle_unicast::FlowHash;
use raddle_units::{NodeId, PortId, Span, Time};
use raddle_workload::{Message, ReductionId};
use rustc_hash::FxHashMap;

use super::{Engine, Kind, flow::address};
use crate::{
    multicast::Multicast,
    packet::{Packet, PacketKind, Segment},
    setup::SetupError,
};

/// Bits of a packet's `seq` that number the segments of a round.
const SEGMENT_BITS: u32 = 6;

/// One tree of a group.
#[derive(Debug)]
struct Way {
    group: u32,
    apex: NodeId,
    up: FxHashMap<NodeId, PortId>,
    /// What each switch waits for.
    awaited: FxHashMap<NodeId, u32>,
    /// What has come, by switch and `seq`; complete ones are gone.
    come: FxHashMap<(NodeId, u64), u32>,
}

/// A host's part in the reductions of a group.
#[derive(Debug, Default)]
struct Share {
    /// Rounds begun.
    round: u64,
    running: bool,
    tag: u64,
    /// Segments of the result that are missing, a bit each.
    missing: u64,
}

/// All reductions of groups.
#[derive(Debug, Default)]
pub(super) struct Combines {
    ways: Vec<Way>,
    /// By group: the first and the number of its ways.
    ways_of: Vec<(u32, u32)>,
    shares: FxHashMap<(u32, NodeId), Share>,
    /// When each host is through with packets of groups that it is not in; empty where they take no time.
    busy: Vec<Time>,
}

impl Combines {
    pub(super) fn new(
        plan: Option<&Multicast>,
        nodes: usize,
        peer: impl Fn(PortId) -> NodeId,
    ) -> Self {
        let mut made = Self::default();
        let Some(plan) = plan else {
            return made;
        };
        if !plan.foreign.is_zero() {
            made.busy = vec![Time::ZERO; nodes];
        }
        for (group, trees) in (0..).zip(&plan.combining) {
            made.ways_of
                .push((made.ways.len() as u32, trees.len() as u32));
            for tree in trees {
                let mut awaited = FxHashMap::default();
                for &port in tree.up.values() {
                    *awaited.entry(peer(port)).or_insert(0) += 1;
                }
                made.ways.push(Way {
                    group,
                    apex: tree.apex,
                    up: tree.up.iter().map(|(&node, &port)| (node, port)).collect(),
                    awaited,
                    come: FxHashMap::default(),
                });
            }
        }
        made
    }
}

impl Engine<'_> {
    /// A member contributes to the next reduction of its group.
    pub(super) fn start_reduction(&mut self, message: Message, id: ReductionId) {
        let refuse = |problem| SetupError::GroupMessage {
            tag: message.tag,
            src: message.src,
            group: id.0,
            problem,
        };
        let ways = self.combines.ways_of.get(id.0 as usize).copied();
        let Some((first, count)) = ways.filter(|ways| ways.1 > 0) else {
            return self.stop(refuse("which has no tree that joins all of its members"));
        };
        if !self.combines.ways[first as usize]
            .up
            .contains_key(&message.src)
        {
            return self.stop(refuse("of which it is not a member"));
        }
        let segments = message.size.0.div_ceil(self.layout.mtu.max(1));
        if segments >= 1 << SEGMENT_BITS {
            return self.stop(refuse("whose reductions take less than 64 packets"));
        }
        let share = self.combines.shares.entry((id.0, message.src)).or_default();
        if share.running {
            return self.stop(refuse("whose last reduction is not over"));
        }
        *share = Share {
            round: share.round + 1,
            running: true,
            tag: message.tag,
            missing: (1 << segments) - 1,
        };
        let round = share.round;
        let to = self.multicast.group_address(id.0);
        let nic = self.ends[self.fabric.first_port(message.src).index()].device;
        for way in first..first + count {
            for segment in 0..segments {
                let payload = self
                    .layout
                    .mtu
                    .min(message.size.0 - segment * self.layout.mtu);
                let bytes = self.layout.header_bytes + payload as u32;
                let mut packet = Packet::data(Segment {
                    flow: way,
                    generation: 0,
                    src: message.src,
                    dst: to,
                    hash: FlowHash::new(address(message.src), address(to), 0),
                    queue: QUEUE_ACKS,
                    seq: round << SEGMENT_BITS | segment,
                    sent_at: self.now,
                    bytes,
                    payload: 0,
                });
                packet.kind = PacketKind::Part;
                let handle = self.packets.insert(packet);
                self.nics[nic as usize].acks.push_back(handle);
            }
        }
        self.nic_transmit(nic);
    }

    /// A contribution is wholly received at a switch.
    pub(super) fn part_arrives(&mut self, port: PortId, handle: u32) {
        let node = self.ends[port.index()].node;
        let packet = *self.packets.get(handle);
        let way = &mut self.combines.ways[packet.flow as usize];
        let awaited = way.awaited.get(&node).copied().unwrap_or_default();
        let come = way.come.entry((node, packet.seq)).or_insert(0);
        *come += 1;
        if *come < awaited {
            self.packets.remove(handle);
            return;
        }
        way.come.remove(&(node, packet.seq));
        if node == way.apex {
            self.packets.get_mut(handle).kind = PacketKind::Combined;
            let number = (self.ends[port.index()].index + 1) as u8;
            let mut outs = self.multicast.out_ports(node, number.into(), packet.dst);
            outs.insert(number);
            self.send_copies(port, handle, outs);
            return;
        }
        match way.up.get(&node).copied() {
            Some(out) => self.send_small(out, handle),
            None => self.drop_packet(handle),
        }
    }

    /// A result is wholly received at a switch.
    pub(super) fn combined_arrives(&mut self, port: PortId, handle: u32) {
        let end = &self.ends[port.index()];
        let (node, number) = (end.node, end.index + 1);
        let address = self.packets.get(handle).dst;
        let outs = self.multicast.out_ports(node, number, address);
        self.send_copies(port, handle, outs);
    }

    fn send_copies(&mut self, port: PortId, handle: u32, outs: PortSet) {
        let template = *self.packets.get(handle);
        let mut original = Some(handle);
        for number in outs.iter() {
            let out = self.port_on(port, u16::from(number) - 1);
            let copy = original
                .take()
                .unwrap_or_else(|| self.packets.insert(template));
            self.send_small(out, copy);
        }
        if let Some(handle) = original {
            self.summary.dead_ends += 1;
            self.packets.remove(handle);
        }
    }

    /// Sends a packet of a reduction from a switch.
    fn send_small(&mut self, out: PortId, handle: u32) {
        let end = &self.ends[out.index()];
        if !end.up {
            self.history[out.index()].lost += 1;
            return self.drop_packet(handle);
        }
        let (device, index) = (end.device as usize, end.index);
        let frame = Frame {
            handle,
            bytes: self.packets.get(handle).bytes,
            // The control queue has no account of where packets came in.
            in_port: index,
            queue: QUEUE_ACKS,
            kind: FrameKind::Plain,
        };
        match self.switches[device].enqueue(index, frame) {
            Ok(_) => self.switch_transmit(out),
            Err(raddle_dataplane::Refused) => self.drop_packet(handle),
        }
    }

    /// A result is wholly received at a host; `waited`: it has stood behind packets of other groups.
    pub(super) fn receive_combined(&mut self, port: PortId, handle: u32, waited: bool) {
        let host = self.ends[port.index()].node;
        let packet = *self.packets.get(handle);
        let group = self.combines.ways[packet.flow as usize].group;
        if !self.combines.shares.contains_key(&(group, host)) {
            self.summary.foreign_copies += 1;
            self.overhear(host, packet.bytes);
            self.packets.remove(handle);
            return;
        }
        if !waited && self.stands_behind(host, port, handle) {
            return;
        }
        self.packets.remove(handle);
        let (round, segment) = (
            packet.seq >> SEGMENT_BITS,
            packet.seq & ((1 << SEGMENT_BITS) - 1),
        );
        let Some(share) = self.combines.shares.get_mut(&(group, host)) else {
            return;
        };
        if share.round != round || share.missing & 1 << segment == 0 {
            self.summary.second_copies += 1;
            return;
        }
        share.missing &= !(1 << segment);
        if share.missing == 0 {
            share.running = false;
            let tag = share.tag;
            self.summary.reductions += 1;
            self.workload.on_delivered(self.now, tag);
            self.schedule_start();
        }
    }

    /// A packet of a group that `host` is not in takes its time there.
    pub(super) fn overhear(&mut self, host: NodeId, bytes: u32) {
        let Some(busy) = self.combines.busy.get_mut(host.index()) else {
            return;
        };
        if let Some(plan) = &self.config.multicast {
            let takes = plan.foreign.packet + plan.foreign.byte * u64::from(bytes);
            *busy = self.now.max(*busy) + takes;
        }
    }

    /// A packet to a group came after its message was over: to a host outside the group, or as a second copy, which takes no
    /// time. Whose it was is forgotten; where groups have two trees it counts as a second copy.
    pub(super) fn overhear_late(&mut self, port: PortId, handle: u32) {
        let plan = self.config.multicast.as_ref();
        if plan.is_some_and(|plan| plan.groups.iter().all(|group| !group.twice)) {
            let (host, bytes) = (self.ends[port.index()].node, self.packets.get(handle).bytes);
            self.overhear(host, bytes);
        }
    }

    /// Whether a packet of a host's own group has to wait until the host is through with others'; then it is heard again.
    pub(super) fn stands_behind(&mut self, host: NodeId, port: PortId, handle: u32) -> bool {
        let Some(busy) = self.combines.busy.get_mut(host.index()) else {
            return false;
        };
        if *busy <= self.now {
            return false;
        }
        let at = *busy;
        // Two of them stay in order.
        *busy = at + Span(1);
        let key = self.keys.next(Kind::Heard, port, handle);
        self.push(at, key, Kind::Heard.pack(port.0, handle));
        true
    }

    /// A packet has waited long enough.
    pub(super) fn heard(&mut self, port: PortId, handle: u32) {
        let packet = self.packets.get(handle);
        if packet.kind == PacketKind::Combined {
            self.receive_combined(port, handle, true);
        } else if packet.generation == self.flows[packet.flow as usize].generation {
            let nic = self.ends[port.index()].device;
            self.receive_group_data(port, nic, handle, true);
        } else {
            self.receive(port, self.ends[port.index()].device, handle);
        }
    }
}
