//! What hosts do with packets of flows: receivers, acknowledgements, congestion control.

use raddle_transport::{
    cc::{Ack, Inspection, Telemetry},
    reliability::{Answer, NackPolicy, Progress},
    telemetry::Echo,
};
use raddle_unicast::FlowHash;
use raddle_units::{NodeId, Span, Time};

use super::{
    context::Context,
    flow::{Flow, FlowName},
    host::Hosts,
    process::Base,
    records::Record,
};
use crate::{
    index::{FlowSlot, NicIndex, PacketSlot},
    packet::{self, Packet, PacketKind},
    record::AckRecord,
};

/// Least time between two NACKs for the same byte (the reference's nack interval).
const NACK_INTERVAL: Span = Span::from_us(500);

/// An acknowledgement at the sender of the flow.
#[derive(Clone, Copy)]
pub(super) struct HeardAck {
    /// The host that sent it.
    pub(super) from: NodeId,
    pub(super) nack: bool,
    pub(super) seq: u64,
    /// It carries a congestion mark (ECN).
    pub(super) marked: bool,
    /// Since the data packet left.
    pub(super) rtt: Span,
}

impl HeardAck {
    #[inline]
    pub(super) fn of(packet: &Packet, now: Time) -> Self {
        Self {
            from: packet.src,
            nack: matches!(packet.kind, PacketKind::Nack | PacketKind::GroupNack),
            seq: packet.seq(),
            marked: packet.marked,
            rtt: now.since(packet.sent_at),
        }
    }
}

/// What an acknowledgement has done to its flow.
#[derive(Clone, Copy)]
pub(super) struct Effect {
    /// Everything that is to be acknowledged has been.
    pub(super) complete: bool,
    /// Timeouts had been counted before.
    pub(super) backed_off: bool,
    /// Bytes that it was the first to acknowledge.
    pub(super) newly_acked: u64,
}

impl Context<'_> {
    /// How receivers answer.
    #[inline]
    pub(super) fn nack_policy(&self) -> NackPolicy {
        NackPolicy {
            interval: NACK_INTERVAL,
            duplicates: self.semantics.duplicates,
        }
    }
}

impl Flow {
    /// Everything below `seq` has been acknowledged.
    #[inline]
    pub(super) fn advance(&mut self, cx: &Context<'_>, seq: u64) -> Effect {
        let acked_before = self.sender.acked();
        let progress = self.sender.on_ack(seq);
        let mut backed_off = false;
        if progress != Progress::Duplicate {
            backed_off = std::mem::take(&mut self.timeouts) > 0;
            if cx.semantics.retransmission_timer {
                self.deadline = cx.now + cx.config.retransmission_timeout;
            }
        }
        Effect {
            complete: progress == Progress::Complete,
            backed_off,
            newly_acked: self.sender.acked() - acked_before,
        }
    }

    /// An acknowledgement as congestion control hears it.
    #[inline]
    pub(super) fn ack<'p>(&self, heard: &HeardAck, effect: Effect, echo: Echo<'p>) -> Ack<'p> {
        Ack {
            seq: heard.seq,
            next: self.sender.next(),
            newly_acked: effect.newly_acked,
            marked: heard.marked,
            rtt: heard.rtt,
            echo,
            complete: effect.complete,
            random: 0,
        }
    }

    /// Congestion control hears an acknowledgement.
    #[inline]
    pub(super) fn hear(&mut self, cx: &Context<'_>, ack: &Ack<'_>) {
        let (parameters, limits) = (&cx.config.scheme, &cx.limits);
        self.control
            .on_ack(cx.now, ack, parameters, limits, &mut self.timers);
    }

    /// Congestion control hears that packets are lost.
    pub(super) fn hear_of_loss(&mut self, cx: &Context<'_>) {
        self.control.on_loss(cx.now, &cx.config.scheme, &cx.limits);
    }

    /// What congestion control makes of an acknowledgement, where acknowledgements are recorded.
    #[inline]
    pub(super) fn inspect(&self, cx: &Context<'_>, ack: &Ack<'_>) -> Option<Inspection> {
        let inspect = || self.control.inspect(cx.now, ack, &cx.config.scheme);
        cx.config.record_acks.then(inspect)
    }
}

impl Context<'_> {
    /// Telemetry that an acknowledgement brings back; `digest`: PINT's, of all packets that it stands for.
    #[inline]
    pub(super) fn echo<'p>(&self, packet: &'p Packet, digest: u16) -> Echo<'p> {
        match self.signals.telemetry {
            Telemetry::Hops => Echo::Hops(packet.records(self.layout.record_room)),
            Telemetry::Digest { .. } => Echo::Digest(digest),
            Telemetry::None | Telemetry::Timestamp => Echo::None,
        }
    }

    /// Whether a receiver echoes a congestion mark, which it does no more often than the scheme wants.
    #[inline]
    pub(super) fn echoes(&self, marked: bool, echo_after: &mut Time) -> bool {
        if !marked || self.signals.echo_interval == Span::ZERO {
            return marked;
        }
        let echoed = self.now >= *echo_after;
        if echoed {
            *echo_after = self.now + self.signals.echo_interval;
        }
        echoed
    }
}

impl Base<'_> {
    /// A packet came after its flow was over and forgotten: a late duplicate, or its acknowledgement.
    pub(super) fn receive_late(&mut self, handle: PacketSlot) {
        let packet = self.wires.packets.get(handle);
        if packet.kind.is_data() {
            self.cx.summary.payload_discarded += u64::from(packet.payload);
        }
        self.wires.packets.remove(handle);
    }

    pub(super) fn receive_data(&mut self, nic_index: NicIndex, handle: PacketSlot) {
        let cx = &mut self.cx;
        let packet = self.wires.packets.get(handle);
        let Hosts {
            nics, receptions, ..
        } = &mut self.hosts;
        let heard = &mut nics[nic_index].heard;
        let Some(reception) = receptions.find(&FlowName::of(packet), heard) else {
            return self.receive_late(handle);
        };
        let payload = u64::from(packet.payload);
        let policy = cx.nack_policy();
        let answer = reception
            .receiver
            .on_data(cx.now, packet.seq(), payload, &policy);
        let (kind, seq) = match answer {
            Answer::Ack(seq) => {
                cx.summary.payload_delivered += payload;
                self.sampler
                    .delivered(reception.class, reception.watched, payload);
                let is_whole = seq == reception.size;
                if is_whole && cx.follows(reception.class) {
                    cx.note_delivery(packet);
                }
                if is_whole && self.traffic.reacts() {
                    let (hash, marked) = (
                        reception.hash,
                        cx.echoes(packet.marked, &mut reception.echo_after),
                    );
                    let (host, tag) = (packet.dst(), reception.tag);
                    self.traffic.delivered(cx, host, tag);
                    self.acknowledge(nic_index, handle, (PacketKind::Ack, seq), hash, marked);
                    self.traffic.schedule_start(&mut self.cx);
                    return;
                }
                (PacketKind::Ack, seq)
            }
            Answer::AckAgain(seq) => {
                cx.summary.payload_discarded += payload;
                (PacketKind::Ack, seq)
            }
            Answer::Nack(seq) => {
                cx.summary.payload_discarded += payload;
                (PacketKind::Nack, seq)
            }
            Answer::Silence => {
                cx.summary.payload_discarded += payload;
                self.wires.packets.remove(handle);
                return;
            }
        };
        let hash = reception.hash;
        let marked = cx.echoes(packet.marked, &mut reception.echo_after);
        self.acknowledge(nic_index, handle, (kind, seq), hash, marked);
    }

    #[inline]
    fn acknowledge(
        &mut self,
        nic_index: NicIndex,
        handle: PacketSlot,
        (kind, seq): (PacketKind, u64),
        hash: FlowHash,
        marked: bool,
    ) {
        let packet = self.wires.packets.get(handle);
        let answer = packet::Answer {
            kind,
            src: packet.dst(),
            dst: packet.src,
            hash,
            seq,
            marked,
        };
        self.send_back(nic_index, handle, &answer);
    }

    /// Turns data into its acknowledgement and sends it.
    #[inline]
    pub(super) fn send_back(
        &mut self,
        nic_index: NicIndex,
        handle: PacketSlot,
        answer: &packet::Answer,
    ) {
        let layout = &self.cx.layout;
        let packet = self.wires.packets.get_mut(handle);
        packet.turn_into(answer, layout.ack_bytes);
        if let Some(queue) = layout.ack_queue {
            packet.queue = queue;
        }
        self.hosts.nics[nic_index].acks.push_back(handle);
        self.nic_transmit(nic_index);
    }

    pub(super) fn receive_ack(&mut self, handle: PacketSlot) {
        let cx = &mut self.cx;
        let packet = self.wires.packets.get(handle);
        let index = packet.flow();
        let flow = &mut self.hosts.flows[index];
        if !flow.live {
            self.wires.packets.remove(handle);
            return;
        }
        let heard = HeardAck::of(packet, cx.now);
        let effect = flow.advance(cx, heard.seq);
        if heard.nack {
            flow.sender.on_timeout();
            cx.summary.nacks += 1;
        }
        let mut ack = flow.ack(&heard, effect, cx.echo(packet, packet.digest()));
        if cx.signals.random_per_ack {
            ack.random = self.wires.chance.bits(cx.cut.place(flow.src));
        }
        flow.hear(cx, &ack);
        if heard.nack {
            flow.hear_of_loss(cx);
        }
        let inspection = flow.inspect(cx, &ack);
        self.wires.packets.remove(handle);
        if effect.complete {
            self.complete_flow(index);
        }
        self.settle(index, effect, &heard, inspection);
    }

    /// What follows when congestion control has heard an acknowledgement.
    #[inline]
    pub(super) fn settle(
        &mut self,
        index: FlowSlot,
        effect: Effect,
        heard: &HeardAck,
        inspection: Option<Inspection>,
    ) {
        if effect.backed_off && !effect.complete {
            // The pending timer is as late as the backoff made it.
            self.arm_retransmission_timer(index);
        }
        self.apply_control(index);
        if let Some(inspection) = inspection {
            self.record_ack(index, heard, &inspection);
        }
        // The flow's own port, not the one that the acknowledgement came in by: hosts may have several.
        self.nic_transmit(self.hosts.flows[index].nic);
    }

    #[cold]
    fn record_ack(&mut self, index: FlowSlot, heard: &HeardAck, inspection: &Inspection) {
        let flow = &self.hosts.flows[index];
        let record = AckRecord {
            time: self.cx.now,
            src: flow.src,
            dst: heard.from,
            sport: flow.sport,
            nack: heard.nack,
            seq: heard.seq,
            ecn: heard.marked,
            snd_nxt: flow.sender.next(),
            rate: flow.rate,
            reference_rate: inspection.reference_rate,
            measure: inspection.measure,
        };
        self.cx.record(record.src, Record::Ack(record));
    }
}
