//! Members of a group: what they receive and acknowledge.

use raddle_transport::{group::MemberReceiver, reliability::Answer};
use raddle_unicast::FlowHash;
use raddle_units::{NodeId, Time};
use raddle_workload::Message;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{
    super::{
        flow::{DPORT, FlowName, address},
        process::Base,
    },
    Groups,
    ledger::{Begun, Report},
};
use crate::{
    index::{NicIndex, PacketSlot, PortIndex},
    packet::{self, PacketKind},
};

/// A message to a group as hosts of one process know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct GroupReception {
    message: Begun,
    size: u64,
    class: u8,
    /// Place in the sampler's list of watched flows.
    pub(in super::super) watched: Option<u16>,
    /// Members here that have heard of it.
    members: FxHashMap<NodeId, Member>,
}

/// A member's side of a message.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Member {
    receiver: MemberReceiver,
    /// No congestion mark is echoed before.
    echo_after: Time,
    /// The sender does not wait for it any more.
    gone: bool,
}

impl GroupReception {
    pub(super) fn new(begun: Begun, message: &Message, watched: Option<u16>) -> Self {
        Self {
            message: begun,
            size: message.size.0,
            class: message.class,
            watched,
            members: FxHashMap::default(),
        }
    }
}

/// A packet to a group at a host.
#[derive(Clone, Copy)]
struct Heard {
    handle: PacketSlot,
    name: FlowName,
    host: NodeId,
}

impl Groups<'_> {
    /// The sender of a message does not wait for a member any more.
    pub(in super::super) fn forget_member(&mut self, name: FlowName, member: NodeId) {
        if let Some(reception) = self.receptions.get_mut(&name) {
            reception.members.entry(member).or_default().gone = true;
        }
    }

    /// A packet to a group is wholly received at a host; `waited`: it has stood behind packets of other groups.
    #[inline(never)]
    pub(in super::super) fn receive_data(
        &mut self,
        base: &mut Base<'_>,
        port: PortIndex,
        nic_index: NicIndex,
        handle: PacketSlot,
        waited: bool,
    ) {
        let packet = base.wires.packets.get(handle);
        let name = FlowName::of(packet);
        let host = base.wires.node(port);
        let Some(reception) = self.receptions.get(&name) else {
            return self.receive_late(base, host, handle);
        };
        let group = reception.message.group;
        let member = self.group(group).and_then(|group| {
            let place = group.members.binary_search(&host).ok();
            place.map(|_| group.twice)
        });
        let Some(twice) = member else {
            base.cx.summary.foreign_copies += 1;
            self.foreign.overhear(&base.cx, host, packet.bytes);
            return base.wires.discard(&mut base.cx, handle);
        };
        if !waited && self.foreign.stands_behind(&mut base.cx, host, port, handle) {
            return;
        }
        let heard = Heard { handle, name, host };
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
        let reception = self.receptions.get_mut(&heard.name)?;
        let packet = base.wires.packets.get(heard.handle);
        let member = reception.members.entry(heard.host).or_default();
        if member.gone || packet.src == heard.host {
            return None;
        }
        let (seq, payload) = (packet.seq(), u64::from(packet.payload));
        let policy = cx.nack_policy();
        let receiver = &mut member.receiver;
        let Some(answer) = receiver.on_data(cx.now, packet.sent_at, seq, payload, twice, &policy)
        else {
            cx.summary.second_copies += 1;
            return None;
        };
        match answer {
            Answer::Silence => None,
            Answer::Ack(seq) => {
                cx.summary.payload_delivered += payload;
                base.sampler
                    .delivered(reception.class, reception.watched, payload);
                if seq == reception.size {
                    let tag = reception.message.tag;
                    base.traffic.member_delivered(cx, tag, heard.host);
                    self.report(base, heard.host, heard.name, Report::Reached(heard.host));
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

    /// As for a flow to a host, with the member as the sender of the acknowledgement.
    fn acknowledge(
        &mut self,
        base: &mut Base<'_>,
        nic_index: NicIndex,
        heard: Heard,
        kind: PacketKind,
        seq: u64,
    ) {
        let Some(reception) = self.receptions.get_mut(&heard.name) else {
            return;
        };
        let Begun { src, sport, .. } = reception.message;
        let member = reception.members.entry(heard.host).or_default();
        let marked = base.wires.packets.get(heard.handle).marked;
        let ports = u32::from(sport) | DPORT << 16;
        let answer = packet::Answer {
            kind,
            src: heard.host,
            dst: src,
            hash: FlowHash::new(address(heard.host), address(src), ports.rotate_left(16)),
            seq,
            marked: base.cx.echoes(marked, &mut member.echo_after),
        };
        base.send_back(nic_index, heard.handle, &answer);
    }

    /// A packet to a group came after its message was over: to a host outside the group, or as a second copy, which takes no
    /// time. Whose it was is forgotten; where groups have two trees it counts as a second copy.
    fn receive_late(&mut self, base: &mut Base<'_>, host: NodeId, handle: PacketSlot) {
        base.cx.summary.late_copies += 1;
        let plan = self.plan;
        if plan.is_some_and(|plan| plan.groups.iter().all(|group| !group.twice)) {
            let bytes = base.wires.packets.get(handle).bytes;
            self.foreign.overhear(&base.cx, host, bytes);
        }
        base.receive_late(handle);
    }
}
