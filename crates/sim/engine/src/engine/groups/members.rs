//! Members of a group: what they receive and acknowledge.

use raddle_transport::reliability::Answer;
use raddle_unicast::FlowHash;
use raddle_units::{NodeId, PortId};

use super::{
    super::{
        Base,
        flow::{DPORT, FlowTo, address},
    },
    Groups,
};
use crate::{
    index::{FlowSlot, NicIndex, PacketSlot, SendSlot},
    packet::{self, PacketKind},
    record::MemberRecord,
};

/// A packet to a group at a host.
#[derive(Clone, Copy)]
struct Heard {
    handle: PacketSlot,
    flow: FlowSlot,
    send: SendSlot,
    host: NodeId,
    /// The host's place among the members.
    place: usize,
}

impl Groups<'_> {
    /// A packet to a group is wholly received at a host; `waited`: it has stood behind packets of other groups.
    #[inline(never)]
    pub(in super::super) fn receive_data(
        &mut self,
        base: &mut Base<'_>,
        port: PortId,
        nic_index: NicIndex,
        handle: PacketSlot,
        waited: bool,
    ) {
        let packet = base.wires.packets.get(handle);
        let index = packet.flow();
        let host = base.wires.node(port);
        let FlowTo::Group { group, send, .. } = base.hosts.flows[index].to else {
            debug_assert!(false, "a packet of a group belongs to a flow to a host");
            return base.wires.discard(&mut base.cx, handle);
        };
        let Some((place, twice)) = self.group(group).and_then(|group| {
            let place = group.members.binary_search(&host).ok();
            place.zip(Some(group.twice))
        }) else {
            base.cx.summary.foreign_copies += 1;
            self.foreign.overhear(&base.cx, host, packet.bytes);
            return base.wires.discard(&mut base.cx, handle);
        };
        if !waited && self.foreign.stands_behind(&mut base.cx, host, port, handle) {
            return;
        }
        let heard = Heard {
            handle,
            flow: index,
            send,
            host,
            place,
        };
        if let Some((kind, seq)) = self.take_in(base, heard, twice) {
            self.acknowledge(base, nic_index, heard, kind, seq);
            base.traffic.schedule_start(&mut base.cx);
        } else {
            base.wires.discard(&mut base.cx, handle);
        }
    }

    /// What a member answers; `None`: nothing.
    fn take_in(
        &mut self,
        base: &mut Base<'_>,
        heard: Heard,
        twice: bool,
    ) -> Option<(PacketKind, u64)> {
        let cx = &mut base.cx;
        let send = &mut self.sends[heard.send];
        if send.progress.is_gone(heard.place) {
            // The sender itself, or a member it does not wait for any more.
            return None;
        }
        let packet = base.wires.packets.get(heard.handle);
        let (seq, payload) = (packet.seq(), u64::from(packet.payload));
        let policy = cx.nack_policy();
        let receiver = &mut send.members[heard.place].receiver;
        let Some(answer) = receiver.on_data(cx.now, packet.sent_at, seq, payload, twice, &policy)
        else {
            cx.summary.second_copies += 1;
            return None;
        };
        match answer {
            Answer::Silence => None,
            Answer::Ack(seq) => {
                cx.summary.payload_delivered += payload;
                let flow = &base.hosts.flows[heard.flow];
                let watched = base.hosts.receptions[heard.flow].watched;
                base.sampler.delivered(flow.class, watched, payload);
                if seq == flow.sender.size() {
                    self.has_all(base, heard);
                }
                Some((PacketKind::GroupAck, seq))
            }
            Answer::AckAgain(seq) => {
                cx.summary.payload_discarded += payload;
                Some((PacketKind::GroupAck, seq))
            }
            Answer::Nack(seq) => {
                cx.summary.payload_discarded += payload;
                Some((PacketKind::GroupNack, seq))
            }
        }
    }

    fn has_all(&mut self, base: &mut Base<'_>, heard: Heard) {
        let (cx, flow) = (&mut base.cx, &base.hosts.flows[heard.flow]);
        let send = &mut self.sends[heard.send];
        send.members[heard.place].closed = true;
        send.waiting -= 1;
        let all = send.waiting == 0 && send.missed == 0;
        cx.summary.members_reached += 1;
        cx.recorder.member(&MemberRecord {
            tag: flow.tag,
            member: heard.host,
            src: flow.src,
            group: send.group.0,
            sport: flow.sport,
            delivered: Some(cx.now),
        });
        base.traffic
            .member_delivered(cx.now, flow.tag, heard.host, all);
    }

    /// As for a flow to a host, with the member as the sender of the acknowledgement.
    fn acknowledge(
        &mut self,
        base: &mut Base<'_>,
        nic_index: NicIndex,
        heard: Heard,
        kind: PacketKind,
        seq: u64,
    ) {
        let flow = &base.hosts.flows[heard.flow];
        let member = &mut self.sends[heard.send].members[heard.place];
        let marked = base.wires.packets.get(heard.handle).marked;
        let ports = u32::from(flow.sport) | DPORT << 16;
        let answer = packet::Answer {
            kind,
            src: heard.host,
            dst: flow.src,
            hash: FlowHash::new(
                address(heard.host),
                address(flow.src),
                ports.rotate_left(16),
            ),
            seq,
            marked: base.cx.echoes(marked, &mut member.echo_after),
        };
        base.send_back(nic_index, heard.handle, &answer);
    }

    /// A packet to a group came after its message was over: to a host outside the group, or as a second copy, which takes no
    /// time. Whose it was is forgotten; where groups have two trees it counts as a second copy.
    pub(in super::super) fn receive_late(
        &mut self,
        base: &mut Base<'_>,
        port: PortId,
        handle: PacketSlot,
    ) {
        base.cx.summary.late_copies += 1;
        let plan = self.plan;
        if plan.is_some_and(|plan| plan.groups.iter().all(|group| !group.twice)) {
            let bytes = base.wires.packets.get(handle).bytes;
            self.foreign
                .overhear(&base.cx, base.wires.node(port), bytes);
        }
        base.receive_late(handle);
    }
}
