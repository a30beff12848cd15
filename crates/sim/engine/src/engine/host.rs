//! Hosts: the NIC's choice of what to send, receivers, acknowledgements and timers.

use std::collections::VecDeque;

use raddle_prefetch::prefetch;
use raddle_transport::{
    cc::{Ack, Inspection, Telemetry},
    reliability::{Answer, NackPolicy, Progress},
    telemetry::Echo,
};
use raddle_units::{BitRate, Bytes, NodeId, PortId, Span, Time};

use super::{Engine, Kind, multicast::NO_SEND};
use crate::{
    packet::{Packet, PacketKind, Segment},
    record::AckRecord,
};

/// Least time between two NACKs for the same byte (the reference's nack interval).
pub(super) const NACK_INTERVAL: Span = Span::from_us(500);

/// An acknowledgement for the record.
pub(super) struct HeardAck {
    /// The host that sent it.
    pub(super) from: NodeId,
    pub(super) nack: bool,
    pub(super) seq: u64,
    /// It carries a congestion mark (ECN).
    pub(super) marked: bool,
}

/// A host's network card: one per port.
#[derive(Debug)]
pub(super) struct Nic {
    pub(super) port: PortId,
    /// Acknowledgements to send, before any data.
    pub(super) acks: VecDeque<u32>,
    /// Packets of messages over rails, in order.
    pub(super) rails: VecDeque<u32>,
    /// Flows that send here, in the order of the round robin, and the one served last.
    pub(super) flows: Vec<u32>,
    pub(super) served: usize,
    /// Data classes that are paused (bits).
    pub(super) paused: u8,
    /// The pending wake-up ([`Time::NEVER`]: none).
    pub(super) wake_at: Time,
    pub(super) wake_key: u64,
}

/// What a scan of a NIC's flows found.
enum Choice {
    /// This flow (place in the list) sends now.
    Send(usize),
    /// None may send before this time ([`Time::NEVER`]: none at all).
    Wait(Time),
}

impl Nic {
    pub(super) fn new(port: PortId) -> Self {
        Self {
            port,
            acks: VecDeque::new(),
            rails: VecDeque::new(),
            flows: Vec::new(),
            served: 0,
            paused: 0,
            wake_at: Time::NEVER,
            wake_key: 0,
        }
    }

    /// Hints that the lists of flows and acknowledgements will be read soon.
    #[inline]
    pub(super) fn prefetch_lists(&self) {
        if let Some(flow) = self.flows.get(self.served) {
            prefetch(flow);
        }
        if let Some(ack) = self.acks.front() {
            prefetch(ack);
        }
    }

    /// The flow whose turn it is.
    #[inline]
    pub(super) fn likely_next(&self) -> Option<u32> {
        let next = self
            .flows
            .get(self.served + 1)
            .or_else(|| self.flows.first())?;
        Some(*next)
    }
}

impl Engine<'_> {
    /// Sends one packet from a NIC if it is free and has one: acknowledgements first, then the flows in turn.
    pub(super) fn nic_transmit(&mut self, nic_index: u32) {
        let port = self.nics[nic_index as usize].port;
        let end = &self.ends[port.index()];
        if end.free_scheduled || !end.up {
            return;
        }
        if self.is_busy(port) {
            self.schedule_free(port);
            return;
        }
        let nic = &mut self.nics[nic_index as usize];
        if (self.signals.acks_first || nic.paused & 1 == 0)
            && let Some(ack) = nic.acks.pop_front()
        {
            let bytes = self.packets.get(ack).bytes;
            self.nic_start(nic_index, bytes, ack);
            return;
        }
        if nic.paused & 1 == 0
            && let Some(handle) = nic.rails.pop_front()
        {
            let bytes = self.packets.get(handle).bytes;
            self.nic_start(nic_index, bytes, handle);
            self.left_card(handle);
            return;
        }
        match self.choose_flow(nic_index) {
            Choice::Send(place) => self.send_segment(nic_index, place),
            Choice::Wait(at) => {
                let nic = &self.nics[nic_index as usize];
                // The reference keeps a pending wake-up even where a flow may send earlier by now.
                let pending = nic.wake_at != Time::NEVER
                    && !(self.semantics.wake_ignores_blocked && at < nic.wake_at);
                if at != Time::NEVER && at > self.now && !pending {
                    self.schedule_wake(nic_index, at);
                }
            }
        }
    }

    pub(super) fn nic_start(&mut self, nic_index: u32, bytes: u32, handle: u32) {
        let port = self.nics[nic_index as usize].port;
        self.transmit(port, bytes, Kind::Arrive, handle);
        let gap = self.config.nic_gap + self.config.nic_gap_per_byte * u64::from(bytes);
        if gap != Span::ZERO && self.packets.get(handle).kind.is_request() {
            let end = &mut self.ends[port.index()];
            end.busy_until = end.busy_until.max(self.now + gap);
        }
        let history = &mut self.history[port.index()];
        history.tx_bytes += u64::from(bytes);
        history.tx_packets += 1;
        let nic = &self.nics[nic_index as usize];
        if !nic.flows.is_empty() || !nic.acks.is_empty() || !nic.rails.is_empty() {
            self.schedule_free(port);
        }
    }

    /// Round robin over the flows, starting after the one served last; or the first that has data, where the card keeps the
    /// order. Finished flows that are met are let go of.
    fn choose_flow(&mut self, nic_index: u32) -> Choice {
        let nic = &mut self.nics[nic_index as usize];
        let count = nic.flows.len();
        let (mut wake, mut found, mut finished) = (Time::NEVER, None, false);
        let mut place = if nic.served + 1 < count && !self.config.nic_in_order {
            nic.served + 1
        } else {
            0
        };
        // The reference starts at (served + 1) mod count even where the list has shrunk since.
        if nic.served >= count && count > 0 && !self.config.nic_in_order {
            place = (nic.served + 1) % count;
        }
        for _ in 0..count {
            let flow = &self.flows[nic.flows[place] as usize];
            let sender = &flow.sender;
            if sender.has_data() {
                let paused = nic.paused & (1 << (flow.queue - raddle_dataplane::QUEUE_DATA)) != 0;
                let bound = flow.window != 0 && sender.in_flight() >= flow.window;
                let blocked = paused || bound;
                if !blocked && flow.next_send <= self.now {
                    found = Some(place);
                    break;
                }
                if !blocked || !self.semantics.wake_ignores_blocked {
                    wake = wake.min(flow.next_send);
                }
            } else if sender.is_complete() {
                finished = true;
            }
            place += 1;
            if place == count {
                place = 0;
            }
        }
        if finished {
            let kept = found.map(|place| nic.flows[place]);
            let mut flows = std::mem::take(&mut nic.flows);
            flows.retain(|&index| {
                let complete = self.flows[index as usize].sender.is_complete();
                if complete {
                    self.free_flow(index);
                }
                !complete
            });
            let nic = &mut self.nics[nic_index as usize];
            found = kept.and_then(|index| flows.iter().position(|&other| other == index));
            nic.flows = flows;
        }
        match found {
            Some(place) => Choice::Send(place),
            None => Choice::Wait(wake),
        }
    }

    fn send_segment(&mut self, nic_index: u32, place: usize) {
        let nic = &mut self.nics[nic_index as usize];
        nic.served = place;
        let index = nic.flows[place];
        let flow = &mut self.flows[index as usize];
        if flow.sender.in_flight() == 0 && flow.deadline != Time::NEVER {
            // Nothing was under way (a long pause): the timer runs from here on.
            flow.deadline = flow
                .deadline
                .max(self.now + self.config.retransmission_timeout);
        }
        let (seq, payload) = flow.sender.take_segment(self.layout.mtu);
        let bytes = payload as u32 + self.layout.header_bytes;
        flow.last_bytes = bytes;
        let rate = BitRate(flow.rate);
        let gap = self
            .semantics
            .timing
            .transmission_time(Bytes(u64::from(bytes)), rate);
        flow.next_send = self.now + gap;
        let send = flow.send;
        let mut packet = Packet::data(Segment {
            flow: index,
            generation: flow.generation,
            src: flow.src,
            dst: flow.dst,
            hash: flow.hash,
            queue: flow.queue,
            seq,
            sent_at: self.now,
            bytes,
            payload: payload as u32,
        });
        if send != NO_SEND {
            packet.kind = PacketKind::GroupData;
            packet.dst = self.multicast.address(send);
        }
        self.summary.payload_sent += payload;
        let handle = self.packets.insert(packet);
        self.nic_start(nic_index, bytes, handle);
    }

    pub(super) fn schedule_wake(&mut self, nic_index: u32, at: Time) {
        let port = self.nics[nic_index as usize].port;
        let key = self.keys.next(Kind::Wake, port, 0);
        let nic = &mut self.nics[nic_index as usize];
        (nic.wake_at, nic.wake_key) = (at, key);
        self.push(at, key, Kind::Wake.pack(0, nic_index));
    }

    pub(super) fn wake(&mut self, nic_index: u32) {
        self.nics[nic_index as usize].wake_at = Time::NEVER;
        self.nic_transmit(nic_index);
    }

    /// A packet is wholly received at a host.
    pub(super) fn receive(&mut self, port: PortId, nic_index: u32, handle: u32) {
        let packet = self.packets.get(handle);
        if packet.kind == PacketKind::Offload {
            return self.receive_offload(handle);
        }
        if packet.kind == PacketKind::Combined {
            return self.receive_combined(port, handle, false);
        }
        if packet.kind.is_on_rails() {
            return self.receive_on_rail(handle);
        }
        if packet.generation != self.flows[packet.flow as usize].generation {
            // The flow is over and forgotten; this is a late duplicate or its acknowledgement.
            if packet.kind.is_data() {
                self.summary.payload_discarded += u64::from(packet.payload);
                self.summary.late_copies += u64::from(packet.kind == PacketKind::GroupData);
            }
            if packet.kind == PacketKind::GroupData {
                self.overhear_late(port, handle);
            }
            self.packets.remove(handle);
            return;
        }
        match packet.kind {
            PacketKind::Data => self.receive_data(nic_index, handle),
            PacketKind::Ack | PacketKind::Nack => self.receive_ack(handle),
            PacketKind::GroupData => self.receive_group_data(port, nic_index, handle, false),
            PacketKind::GroupAck | PacketKind::GroupNack => self.receive_group_ack(handle),
            PacketKind::Free
            | PacketKind::Offload
            | PacketKind::Part
            | PacketKind::Combined
            | PacketKind::RailData
            | PacketKind::RailControl => {
                debug_assert!(false, "no packet of a flow arrived at {port}");
            }
        }
    }

    fn receive_data(&mut self, nic_index: u32, handle: u32) {
        let packet = self.packets.get(handle);
        let reception = &mut self.receptions[packet.flow as usize];
        let payload = u64::from(packet.payload);
        let policy = NackPolicy {
            interval: NACK_INTERVAL,
            duplicates: self.semantics.duplicates,
        };
        let answer = reception
            .receiver
            .on_data(self.now, packet.seq, payload, &policy);
        let (kind, seq) = match answer {
            Answer::Ack(seq) => {
                self.summary.payload_delivered += payload;
                let flow = &self.flows[packet.flow as usize];
                self.sampler
                    .delivered(flow.class, reception.watched, payload);
                if seq == reception.size && self.workload.has_dependencies() {
                    self.workload.on_delivered(self.now, flow.tag);
                    self.acknowledge(nic_index, handle, PacketKind::Ack, seq);
                    self.schedule_start();
                    return;
                }
                (PacketKind::Ack, seq)
            }
            Answer::AckAgain(seq) => {
                self.summary.payload_discarded += payload;
                (PacketKind::Ack, seq)
            }
            Answer::Nack(seq) => {
                self.summary.payload_discarded += payload;
                (PacketKind::Nack, seq)
            }
            Answer::Silence => {
                self.summary.payload_discarded += payload;
                self.packets.remove(handle);
                return;
            }
        };
        self.acknowledge(nic_index, handle, kind, seq);
    }

    /// Turns a data packet into its acknowledgement, in place: telemetry and timestamp go back as they came.
    fn acknowledge(&mut self, nic_index: u32, handle: u32, kind: PacketKind, seq: u64) {
        let packet = self.packets.get_mut(handle);
        let reception = &mut self.receptions[packet.flow as usize];
        std::mem::swap(&mut packet.src, &mut packet.dst);
        packet.kind = kind;
        packet.seq = seq;
        packet.hash = reception.hash;
        packet.bytes = self.layout.ack_bytes;
        packet.payload = 0;
        if self.layout.ack_queue != 0 {
            packet.queue = self.layout.ack_queue;
        }
        if packet.marked && self.signals.echo_interval != Span::ZERO {
            packet.marked = self.now >= reception.echo_after;
            if packet.marked {
                reception.echo_after = self.now + self.signals.echo_interval;
            }
        }
        self.nics[nic_index as usize].acks.push_back(handle);
        self.nic_transmit(nic_index);
    }

    fn receive_ack(&mut self, handle: u32) {
        let packet = self.packets.get(handle);
        let index = packet.flow;
        let flow = &mut self.flows[index as usize];
        if !flow.live {
            self.packets.remove(handle);
            return;
        }
        let acked_before = flow.sender.acked();
        let progress = flow.sender.on_ack(packet.seq);
        let complete = progress == Progress::Complete;
        let nack = packet.kind == PacketKind::Nack;
        let mut backed_off = false;
        if progress != Progress::Duplicate {
            backed_off = std::mem::take(&mut flow.timeouts) > 0;
            if self.semantics.retransmission_timer {
                flow.deadline = self.now + self.config.retransmission_timeout;
            }
        }
        if nack {
            flow.sender.on_timeout();
            self.summary.nacks += 1;
        }
        let echo = match self.signals.telemetry {
            Telemetry::Hops => Echo::Hops(packet.records(self.layout.record_room)),
            Telemetry::Digest { .. } => Echo::Digest(packet.digest),
            Telemetry::None | Telemetry::Timestamp => Echo::None,
        };
        let random = if self.signals.random_per_ack {
            self.chance.bits(flow.src)
        } else {
            0
        };
        let ack = Ack {
            seq: packet.seq,
            next: flow.sender.next(),
            newly_acked: flow.sender.acked() - acked_before,
            marked: packet.marked,
            rtt: self.now.since(packet.sent_at),
            echo,
            complete,
            random,
        };
        let parameters = &self.config.scheme;
        flow.control
            .on_ack(self.now, &ack, parameters, &self.limits, &mut flow.timers);
        if nack {
            flow.control.on_loss(self.now, parameters, &self.limits);
        }
        let inspection = self
            .config
            .record_acks
            .then(|| flow.control.inspect(self.now, &ack, parameters));
        let (seq, marked) = (packet.seq, packet.marked);
        self.packets.remove(handle);
        if complete {
            self.complete_flow(index);
        } else if backed_off {
            // The pending timer is as late as the backoff made it.
            self.arm_retransmission_timer(index);
        }
        self.apply_control(index);
        if let Some(inspection) = inspection {
            let heard = HeardAck {
                from: self.flows[index as usize].dst,
                nack,
                seq,
                marked,
            };
            self.record_ack(index, &heard, inspection);
        }
        // The flow's own port, not the one that the acknowledgement came in by: hosts may have several.
        self.nic_transmit(self.flows[index as usize].nic);
    }

    #[cold]
    pub(super) fn record_ack(&mut self, index: u32, heard: &HeardAck, inspection: Inspection) {
        let flow = &self.flows[index as usize];
        self.recorder.ack(&AckRecord {
            time: self.now,
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
        });
    }

    /// Takes over what congestion control decided: rate, window, timers.
    pub(super) fn apply_control(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let rate = flow.control.rate();
        if rate != flow.rate {
            if self.signals.reprice_pacing {
                let time = |rate| {
                    let bytes = Bytes(u64::from(flow.last_bytes));
                    self.semantics
                        .timing
                        .transmission_time(bytes, BitRate(rate))
                };
                let paid = flow.next_send + time(rate);
                flow.next_send = Time(paid.0.saturating_sub(time(flow.rate).0));
                let (nic_index, next_send) = (flow.nic, flow.next_send);
                let wake_at = self.nics[nic_index as usize].wake_at;
                if wake_at != Time::NEVER && next_send < wake_at {
                    self.schedule_wake(nic_index, next_send.max(self.now));
                }
            }
            self.flows[index as usize].rate = rate;
        }
        let flow = &mut self.flows[index as usize];
        flow.window = flow.control.window(&self.config.scheme, &self.limits);
        let changed = flow.timers.take_changed();
        if changed != 0 {
            self.schedule_timers(index, changed);
        }
    }

    #[cold]
    fn schedule_timers(&mut self, index: u32, changed: u8) {
        let flow = &self.flows[index as usize];
        let (generation, src, timers) = (u32::from(flow.generation), flow.src, flow.timers);
        for slot in (0..8u32).filter(|slot| changed >> slot & 1 == 1) {
            let due = timers.due(slot as usize);
            if due == Time::NEVER {
                continue;
            }
            let port = self.fabric.first_port(src);
            let sequence = slot << 20 | (index & 0xf_ffff);
            let key = self.keys.next(Kind::Timer, port, sequence);
            self.push(due, key, Kind::Timer.pack(generation << 8 | slot, index));
        }
    }

    pub(super) fn control_timer(&mut self, index: u32, slot: u32) {
        let flow = &mut self.flows[index as usize];
        flow.timers.cancel(slot as usize);
        let parameters = &self.config.scheme;
        flow.control.on_timer(
            self.now,
            slot as usize,
            parameters,
            &self.limits,
            &mut flow.timers,
        );
        self.apply_control(index);
    }

    /// The retransmission timer: it runs lazily, towards a deadline that progress moves on.
    pub(super) fn retransmission_timer(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if !flow.live || flow.timer_at != self.now {
            return;
        }
        if self.now < flow.deadline {
            let (deadline, generation, src) = (flow.deadline, flow.generation, flow.src);
            self.push_timeout(deadline, index, generation, src);
            return;
        }
        let waits = flow.sender.in_flight() > 0;
        let nic = &self.nics[flow.nic as usize];
        // A flow that cannot even send, behind a failed link or a pause, gives up too: else the run never ended.
        if waits || nic.paused != 0 || !self.ends[nic.port.index()].up {
            if u32::from(flow.timeouts) >= self.patience(index) {
                if self.flows[index as usize].send == NO_SEND || !self.leave_slowest(index) {
                    self.abandon_flow(index);
                }
                return;
            }
            self.flows[index as usize].timeouts += 1;
        }
        if waits {
            self.summary.timeouts += 1;
            let flow = &mut self.flows[index as usize];
            flow.sender.on_timeout();
            flow.next_send = self.now;
            flow.control
                .on_timeout(self.now, &self.config.scheme, &self.limits);
        }
        // Exponential backoff while nothing comes back.
        let backoff = 1u64 << self.flows[index as usize].timeouts.min(6);
        let flow = &mut self.flows[index as usize];
        flow.deadline = self.now + self.config.retransmission_timeout * backoff;
        let (deadline, generation, src, nic) = (flow.deadline, flow.generation, flow.src, flow.nic);
        self.push_timeout(deadline, index, generation, src);
        self.apply_control(index);
        self.nic_transmit(nic);
    }
}
