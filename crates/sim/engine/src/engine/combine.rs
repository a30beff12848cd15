//! Reductions of multicast groups: contributions meet on the way up a group's tree, the result comes down the tree.
//!
//! A host sends one packet for each segment of its contribution to the switch above it. A switch waits for all that comes
//! from below and sends one packet up; the last one, in which all have met, sends the result by all ports that the group's
//! colour has there, and from then on it is a packet to the group like any other. Packets are those of the control queue:
//! they are not acknowledged, and nothing is sent again. With two trees everything goes over both, and the first result
//! counts.

use raddle_dataplane::QUEUE_ACKS;
use raddle_multicast::PortSet;
use raddle_unicast::FlowHash;
use raddle_units::{NodeId, PortId};
use raddle_workload::{GroupId, Message, ReductionId};
use rustc_hash::FxHashMap;

use super::{flow::address, groups::Groups, process::Base};
use crate::{
    index::{List, PacketSlot, PortIndex, TreeIndex},
    multicast::Multicast,
    packet::{Envelope, Packet, PacketKind, Piece},
    setup::SetupError,
};

/// One tree of a group.
#[derive(Debug)]
struct Tree {
    group: GroupId,
    apex: NodeId,
    up: FxHashMap<NodeId, PortId>,
    /// What each switch waits for.
    awaited: FxHashMap<NodeId, u32>,
    /// What has come, by switch; complete ones are gone.
    come: FxHashMap<(NodeId, Piece), u32>,
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
    trees: List<TreeIndex, Tree>,
    /// By group.
    trees_of: Vec<Vec<TreeIndex>>,
    shares: FxHashMap<(GroupId, NodeId), Share>,
}

impl Combines {
    pub(super) fn new(plan: Option<&Multicast>, peer: impl Fn(PortId) -> NodeId) -> Self {
        let mut made = Self::default();
        let Some(plan) = plan else {
            return made;
        };
        for (group, trees) in (0..).map(GroupId).zip(&plan.combining) {
            let trees = trees.iter().map(|tree| {
                let mut awaited = FxHashMap::default();
                for &port in tree.up.values() {
                    *awaited.entry(peer(port)).or_insert(0) += 1;
                }
                made.trees.push(Tree {
                    group,
                    apex: tree.apex,
                    up: tree.up.iter().map(|(&node, &port)| (node, port)).collect(),
                    awaited,
                    come: FxHashMap::default(),
                })
            });
            made.trees_of.push(trees.collect());
        }
        made
    }

    /// A member contributes to the next reduction of its group.
    pub(super) fn start(
        &mut self,
        base: &mut Base<'_>,
        groups: &Groups<'_>,
        message: &Message,
        ReductionId(group): ReductionId,
    ) {
        let Message { src, tag, .. } = *message;
        if let Err(problem) = self.contribute(base, groups, message, GroupId(group)) {
            base.cx.stop(SetupError::GroupMessage {
                tag,
                src,
                group,
                problem,
            });
        }
    }

    fn contribute(
        &mut self,
        base: &mut Base<'_>,
        groups: &Groups<'_>,
        message: &Message,
        group: GroupId,
    ) -> Result<(), &'static str> {
        let Message { src, size, tag, .. } = *message;
        let trees = self
            .trees_of
            .get(group.0 as usize)
            .map_or(&[][..], Vec::as_slice);
        let &[first, ..] = trees else {
            return Err("which has no tree that joins all of its members");
        };
        if !self.trees[first].up.contains_key(&src) {
            return Err("of which it is not a member");
        }
        let mtu = base.cx.layout.mtu;
        let segments = size.0.div_ceil(mtu.max(1));
        if segments >= Piece::MOST_SEGMENTS {
            return Err("whose reductions take less than 64 packets");
        }
        let share = self.shares.entry((group, src)).or_default();
        if share.running {
            return Err("whose last reduction is not over");
        }
        *share = Share {
            round: share.round + 1,
            running: true,
            tag,
            missing: (1 << segments) - 1,
        };
        let Some(nic) = base.nic_of(src) else {
            return Ok(());
        };
        for &tree in trees {
            for segment in 0..segments {
                let payload = mtu.min(size.0 - segment * mtu);
                let piece = Piece {
                    round: share.round,
                    segment: segment as u32,
                };
                let envelope = Envelope {
                    src,
                    hash: FlowHash::new(address(src), address(src), 0),
                    queue: QUEUE_ACKS,
                    sent_at: base.cx.now,
                    bytes: base.cx.layout.header_bytes + payload as u32,
                    payload: 0,
                };
                let packet = Packet::part(groups.colour(group), tree, piece, envelope);
                base.queue_control(nic, packet);
            }
        }
        base.nic_transmit(nic);
        Ok(())
    }

    /// A contribution is wholly received at a switch.
    pub(super) fn part_arrives(
        &mut self,
        base: &mut Base<'_>,
        groups: &Groups<'_>,
        port: PortIndex,
        handle: PacketSlot,
    ) {
        let (cx, wires) = (&mut base.cx, &mut base.wires);
        let node = wires.node(port);
        let packet = wires.packets.get_mut(handle);
        let piece = packet.piece();
        let tree = &mut self.trees[packet.tree()];
        let awaited = tree.awaited.get(&node).copied().unwrap_or_default();
        let come = tree.come.entry((node, piece)).or_insert(0);
        *come += 1;
        if *come < awaited {
            wires.packets.remove(handle);
            return;
        }
        tree.come.remove(&(node, piece));
        if node == tree.apex {
            packet.kind = PacketKind::Combined;
            let colour = packet.colour();
            let number = wires.ends[port].number();
            let mut outs = groups.out_ports(node, number, colour);
            outs.insert(number as u8);
            return send_copies(base, port, handle, outs);
        }
        match tree.up.get(&node) {
            Some(&out) => {
                let out = wires.here(port, out);
                send(base, out, handle);
            }
            None => wires.drop_packet(cx, handle),
        }
    }

    /// A result is wholly received at a host; `waited`: it has stood behind packets of other groups.
    pub(super) fn receive(
        &mut self,
        base: &mut Base<'_>,
        groups: &mut Groups<'_>,
        port: PortIndex,
        handle: PacketSlot,
        waited: bool,
    ) {
        let cx = &mut base.cx;
        let host = base.wires.node(port);
        let packet = base.wires.packets.get(handle);
        let Piece { round, segment } = packet.piece();
        let group = self.trees[packet.tree()].group;
        let Some(share) = self.shares.get_mut(&(group, host)) else {
            cx.summary.foreign_copies += 1;
            groups.foreign.overhear(cx, host, packet.bytes);
            base.wires.packets.remove(handle);
            return;
        };
        if !waited && groups.foreign.stands_behind(cx, host, port, handle) {
            return;
        }
        base.wires.packets.remove(handle);
        if share.round != round || share.missing & 1 << segment == 0 {
            cx.summary.second_copies += 1;
            return;
        }
        share.missing &= !(1 << segment);
        if share.missing == 0 {
            share.running = false;
            cx.summary.reductions += 1;
            base.traffic.delivered(cx, host, share.tag);
            base.traffic.schedule_start(cx);
        }
    }
}

/// A result is wholly received at a switch.
pub(super) fn combined_arrives(
    base: &mut Base<'_>,
    groups: &Groups<'_>,
    port: PortIndex,
    handle: PacketSlot,
) {
    let end = &base.wires.ends[port];
    let colour = base.wires.packets.get(handle).colour();
    let outs = groups.out_ports(end.node, end.number(), colour);
    send_copies(base, port, handle, outs);
}

fn send_copies(base: &mut Base<'_>, port: PortIndex, handle: PacketSlot, outs: PortSet) {
    let template = *base.wires.packets.get(handle);
    let mut original = Some(handle);
    for number in outs.iter() {
        let out = base.wires.port_on(port, u16::from(number) - 1);
        let copy = original
            .take()
            .unwrap_or_else(|| base.wires.packets.insert(template));
        send(base, out, copy);
    }
    if let Some(handle) = original {
        base.cx.summary.dead_ends += 1;
        base.wires.packets.remove(handle);
    }
}

/// Sends a packet of a reduction from a switch.
fn send(base: &mut Base<'_>, out: PortIndex, handle: PacketSlot) {
    let (cx, wires) = (&mut base.cx, &mut base.wires);
    if wires.ends[out].up {
        wires.send_control(cx, out, handle);
    } else {
        wires.lose(cx, out, handle);
    }
}
