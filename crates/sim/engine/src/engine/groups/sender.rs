//! The sender of a message to a group: it goes on when all members have acknowledged, or have been given up.

use raddle_transport::{cc::Telemetry, group::AckerChoice, reliability::Progress, telemetry::Echo};
use raddle_units::{BitRate, Bytes, Span};

use super::{
    super::{
        flow::FlowTo,
        process::Base,
        receive::{Effect, HeardAck},
        timers::Outlook,
    },
    Groups, Report,
};
use crate::index::{FlowSlot, PacketSlot, SendSlot};

/// Packets that may stand in the way of an acknowledged one without making its member the acker.
const ACKER_MARGIN_PACKETS: u64 = 2;

impl Groups<'_> {
    /// Whether what members miss is sent again.
    fn retransmits(&self) -> bool {
        self.plan.is_some_and(|plan| plan.retransmit)
    }

    /// A member's acknowledgement at the sender: the group's progress is the least over the members; congestion control
    /// hears the acker.
    #[inline(never)]
    pub(in super::super) fn receive_ack(&mut self, base: &mut Base<'_>, handle: PacketSlot) {
        let packet = *base.wires.packets.get(handle);
        base.wires.packets.remove(handle);
        let index = packet.flow();
        let cx = &mut base.cx;
        let flow = &mut base.hosts.flows[index];
        let FlowTo::Group { group, send, .. } = flow.to else {
            debug_assert!(
                false,
                "an acknowledgement of a group is for a flow to a host"
            );
            return;
        };
        if !flow.live {
            return;
        }
        let retransmits = self.retransmits();
        let members = self.group(group).map(|group| &group.members);
        let Some(member) = members.and_then(|members| members.binary_search(&packet.src).ok())
        else {
            debug_assert!(false, "{} acknowledges a group it is not in", packet.src);
            return;
        };
        let send = &mut self.sends[send];
        if send.progress.is_gone(member) {
            return;
        }
        let heard = HeardAck::of(&packet, cx.now);
        let newly_acked = send.progress.on_ack(member, heard.seq);
        let effect = Effect {
            newly_acked,
            ..flow.advance(cx, send.progress.least())
        };
        let mut went_back = false;
        if heard.nack {
            cx.summary.nacks += 1;
            // Several members may miss one packet: what was sent before the sender went back is known to be missed.
            if retransmits && send.went_back.is_none_or(|at| packet.sent_at >= at) {
                send.went_back = Some(cx.now);
                flow.sender.on_timeout();
                went_back = true;
            }
        }
        let idle = self.known[send.session].base[member];
        let delay = Span(heard.rtt.0.saturating_sub(idle.0));
        let full = u64::from(cx.layout.header_bytes) + cx.layout.mtu;
        let margin =
            BitRate(cx.limits.line_rate).transmission_time(Bytes(ACKER_MARGIN_PACKETS * full));
        let choice = send.acker.on_ack(member as u32, delay, margin);
        send.marked |= heard.marked;
        send.digest = send.digest.max(packet.digest());
        if choice == AckerChoice::Changed {
            flow.control.on_path_change();
        }
        // Congestion control hears of the end from any member: schemes stop their timers.
        let mut inspection = None;
        if choice != AckerChoice::Other || effect.complete {
            let echo = match cx.signals.telemetry {
                Telemetry::Hops if choice == AckerChoice::Other => Echo::None,
                Telemetry::Digest { .. } => cx.echo(&packet, std::mem::take(&mut send.digest)),
                _ => cx.echo(&packet, 0),
            };
            let mut ack = flow.ack(&heard, effect, echo);
            ack.marked = std::mem::take(&mut send.marked);
            if cx.signals.random_per_ack {
                ack.random = base.wires.chance.bits(cx.cut.place(flow.src));
            }
            flow.hear(cx, &ack);
            inspection = flow.inspect(cx, &ack);
        }
        if went_back {
            flow.hear_of_loss(cx);
        }
        if effect.complete {
            self.end_flow(base, index);
        }
        base.settle(index, effect, &heard, inspection);
    }

    /// What the groups know of a flow's message; `None`: it is a flow to a host.
    fn send_of(base: &Base<'_>, index: FlowSlot) -> Option<SendSlot> {
        match base.hosts.flows[index].to {
            FlowTo::Group { send, .. } => Some(send),
            FlowTo::Host(_) => None,
        }
    }

    /// All members that are left have the message: finished only if none was given up.
    fn end_flow(&self, base: &mut Base<'_>, index: FlowSlot) {
        match Self::send_of(base, index) {
            Some(send) if self.sends[send].missed > 0 => base.end_flow(index),
            _ => base.complete_flow(index),
        }
    }

    /// The retransmission timer of a flow to a group.
    pub(in super::super) fn retransmission_timer(&mut self, base: &mut Base<'_>, index: FlowSlot) {
        let once = self.plan.is_some_and(|plan| !plan.retransmit);
        let under_way = base.hosts.flows[index].sender.in_flight() > 0;
        // What is under way and will not be sent again needs no patience.
        let patience = if once && under_way {
            0
        } else {
            base.cx.patience()
        };
        if base.retransmission_timer(index, patience) == Outlook::GivesUp
            && !self.leave_slowest(base, index)
        {
            base.abandon_flow(index);
        }
    }

    /// The sender has waited long enough for the members that are furthest behind, and goes on without them; false: there are
    /// no others, or nothing can be sent to them.
    fn leave_slowest(&mut self, base: &mut Base<'_>, index: FlowSlot) -> bool {
        let FlowTo::Group { group, send, .. } = base.hosts.flows[index].to else {
            return false;
        };
        let members = self.group(group).map_or(0, |group| group.members.len());
        let sender = &base.hosts.flows[index].sender;
        let (next, all_sent) = (sender.next(), sender.next() == sender.size());
        let retransmits = self.retransmits();
        let state = &mut self.sends[send];
        if retransmits {
            let gone = state.progress.leave_slowest();
            state.missed += gone.len() as u32;
            for &place in &gone {
                state.acker.forget(place as u32);
            }
            self.miss(base, index, &gone, true);
        } else {
            if sender.in_flight() == 0 {
                // The sender cannot even send: who waits for the rest will not get it.
                self.miss_all(base, index);
                return false;
            }
            // Nothing is sent again: what was sent has arrived or never will. Members may hear of the rest all the same.
            let behind = (0..members).filter(|&place| state.progress.on_ack(place, next) > 0);
            let behind = behind.count() as u32;
            if all_sent {
                state.missed += behind;
                self.miss_all(base, index);
            }
        }
        let least = self.sends[send].progress.least();
        if least == u64::MAX {
            // Nobody is left but members that have it all.
            return false;
        }
        let flow = &mut base.hosts.flows[index];
        flow.timeouts = 0;
        let complete = flow.sender.on_ack(least) == Progress::Complete;
        let nic = flow.nic;
        if complete {
            self.end_flow(base, index);
        } else {
            base.arm_retransmission_timer(index);
        }
        base.nic_transmit(nic);
        true
    }

    /// Reports members that will not get the message any more, unless they have it; `forgets`: they are not to be answered
    /// any more either.
    fn miss(&mut self, base: &mut Base<'_>, index: FlowSlot, places: &[usize], forgets: bool) {
        let flow = &base.hosts.flows[index];
        let (name, src) = (flow.name(index), flow.src);
        let FlowTo::Group { group, .. } = flow.to else {
            return;
        };
        let Some(group) = self.group(group) else {
            return;
        };
        for member in places.iter().map(|&place| group.members[place]) {
            if member == src {
                continue;
            }
            self.report(base, src, name, Report::Missed(member));
            if forgets {
                base.cx.post.gone.push((name, member));
            }
        }
        if base.cx.serial {
            for (name, member) in std::mem::take(&mut base.cx.post.gone) {
                self.forget_member(name, member);
            }
        }
    }

    fn miss_all(&mut self, base: &mut Base<'_>, index: FlowSlot) {
        if let FlowTo::Group { group, .. } = base.hosts.flows[index].to {
            let members = self.group(group).map_or(0, |group| group.members.len());
            self.miss(base, index, &(0..members).collect::<Vec<_>>(), false);
        }
    }
}
