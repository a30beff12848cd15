//! Hosts: network cards, and the choice of what each sends next.

use std::collections::VecDeque;

use raddle_transport::cc::FlowLimits;
use raddle_units::{BitRate, Bytes, NodeId, Span, Time};

use super::{
    context::Context,
    flow::{Flow, FlowName, FlowTo, SourcePorts},
    link::Device,
    process::Base,
    reception::Receptions,
    what::{Kind, What},
};
use crate::{
    index::{
        Arena, FlowSlot, List, NicIndex, NodeIndex, PacketSlot, PortIndex, ProcessIndex, SendSlot,
    },
    packet::{Bytestream, Envelope, Packet, PacketKind},
};

/// A host's network card: one per port.
#[derive(Debug)]
pub(super) struct Nic {
    pub(super) port: PortIndex,
    /// Acknowledgements to send, before any data.
    pub(super) acks: VecDeque<PacketSlot>,
    /// Packets of messages over rails, in order.
    pub(super) rails: VecDeque<PacketSlot>,
    /// Flows that send here, in the order of the round robin, and the one served last.
    pub(super) flows: Vec<FlowSlot>,
    pub(super) served: usize,
    /// Data classes that are paused (bits).
    pub(super) paused: u8,
    /// The pending wake-up ([`Time::NEVER`]: none).
    pub(super) wake_at: Time,
    pub(super) wake_key: u64,
    /// Where the flow whose data came last is likely to be among the receptions.
    pub(super) heard: usize,
}

impl Nic {
    pub(super) fn new(port: PortIndex) -> Self {
        Self {
            port,
            acks: VecDeque::new(),
            rails: VecDeque::new(),
            flows: Vec::new(),
            served: 0,
            paused: 0,
            wake_at: Time::NEVER,
            wake_key: 0,
            heard: 0,
        }
    }

    /// A flow sends here no more.
    pub(super) fn leave(&mut self, flow: FlowSlot) {
        self.flows.retain(|&other| other != flow);
        self.served = 0;
    }
}

/// What a scan of a NIC's flows found.
enum Choice {
    /// This flow (place in the list) sends now.
    Send(usize),
    /// None may send before this time ([`Time::NEVER`]: none at all).
    Wait(Time),
}

/// Cards and flows.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    pub(super) nics: List<NicIndex, Nic>,
    pub(super) flows: Arena<FlowSlot, Flow>,
    /// The receiving sides of flows to hosts of this process.
    pub(super) receptions: Receptions,
    /// Flows that are over, with the process of their receiver (`None`: a group): it is told at the window's end.
    pub(super) over: Vec<(Option<ProcessIndex>, FlowName)>,
    pub(super) sports: SourcePorts<NodeId>,
    /// Flows that each node has begun.
    pub(super) begun: List<NodeIndex, u32>,
    /// Messages that have started here less those that have been delivered or given up here.
    pub(super) live: i64,
    /// Packets over rails that cards have begun to send, each by its host and whether it is data: there is room for more.
    pub(super) left_card: Vec<(NodeId, bool)>,
    /// Messages to groups whose flows are forgotten.
    pub(super) freed_sends: Vec<SendSlot>,
}

impl Hosts {
    /// Whether a packet's flow is over and forgotten at the sender, to which it has come back.
    #[inline]
    pub(super) fn is_late(&self, packet: &Packet) -> bool {
        matches!(
            packet.kind,
            PacketKind::Ack | PacketKind::Nack | PacketKind::GroupAck | PacketKind::GroupNack
        ) && packet.generation != self.flows[packet.flow()].generation
    }

    /// The slot may be used again. From here on packets and timers of the flow are recognised as stale, and its receiver
    /// forgets it.
    pub(super) fn free_flow(&mut self, cx: &Context<'_>, index: FlowSlot) {
        let flow = &mut self.flows[index];
        let receiver = match flow.to {
            FlowTo::Host(dst) => Some(cx.cut.process(dst)),
            FlowTo::Group { send, .. } => {
                self.freed_sends.push(send);
                None
            }
        };
        let name = flow.name(index);
        flow.generation = flow.generation.wrapping_add(1);
        self.flows.free(index);
        if cx.serial && receiver.is_some() {
            self.receptions.remove(&name);
        } else {
            self.over.push((receiver, name));
        }
    }

    /// Round robin over the flows, starting after the one served last; or the first that has data, where the card keeps the
    /// order. Finished flows that are met are let go of.
    fn choose_flow(&mut self, cx: &Context<'_>, nic_index: NicIndex) -> Choice {
        let nic = &mut self.nics[nic_index];
        let count = nic.flows.len();
        let (mut wake, mut found, mut finished) = (Time::NEVER, None, false);
        let in_order = cx.config.nic_in_order;
        let mut place = if nic.served + 1 < count && !in_order {
            nic.served + 1
        } else {
            0
        };
        // The reference starts at (served + 1) mod count even where the list has shrunk since.
        if nic.served >= count && count > 0 && !in_order {
            place = (nic.served + 1) % count;
        }
        for _ in 0..count {
            let flow = &self.flows[nic.flows[place]];
            let sender = &flow.sender;
            if sender.has_data() {
                let paused = nic.paused & (1 << (flow.queue - raddle_dataplane::QUEUE_DATA)) != 0;
                let bound = flow.window != 0 && sender.in_flight() >= flow.window;
                let blocked = paused || bound;
                if !blocked && flow.next_send <= cx.now {
                    found = Some(place);
                    break;
                }
                if !blocked || !cx.semantics.wake_ignores_blocked {
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
                let complete = self.flows[index].sender.is_complete();
                if complete {
                    self.free_flow(cx, index);
                }
                !complete
            });
            let nic = &mut self.nics[nic_index];
            found = kept.and_then(|index| flows.iter().position(|&other| other == index));
            nic.flows = flows;
        }
        match found {
            Some(place) => Choice::Send(place),
            None => Choice::Wait(wake),
        }
    }
}

/// At which rate a flow sends through a port. Flows are controlled for the line rate, that of hosts' first ports; through a
/// faster port, such as one to the other GPUs of a server, a flow is faster in proportion.
#[inline]
fn paced_rate(rate: u64, port: BitRate, limits: &FlowLimits) -> BitRate {
    if port.0 <= limits.line_rate {
        return BitRate(rate);
    }
    let scaled = u128::from(rate) * u128::from(port.0) / u128::from(limits.line_rate.max(1));
    BitRate(u64::try_from(scaled).unwrap_or(u64::MAX))
}

impl Base<'_> {
    /// The card by which a host with one port sends.
    pub(super) fn nic_of(&self, host: NodeId) -> Option<NicIndex> {
        self.nic_at(self.cx.first_port(host))
    }

    /// The card that a port is; `None`: it is a switch's.
    #[inline]
    pub(super) fn nic_at(&self, port: PortIndex) -> Option<NicIndex> {
        match self.wires.ends[port].device {
            Device::Nic(nic) => Some(nic),
            Device::Switch(_) => None,
        }
    }

    /// Sends one packet from a NIC if it is free and has one: acknowledgements first, then the flows in turn.
    pub(super) fn nic_transmit(&mut self, nic_index: NicIndex) {
        let nic = &mut self.hosts.nics[nic_index];
        let port = nic.port;
        let end = &self.wires.ends[port];
        if end.free_scheduled || !end.up {
            return;
        }
        if end.is_busy(self.cx.now, self.cx.key) {
            self.wires.schedule_free(&mut self.cx, port);
            return;
        }
        if (self.cx.signals.acks_first || nic.paused & 1 == 0)
            && let Some(ack) = nic.acks.pop_front()
        {
            let bytes = self.wires.packets.get(ack).bytes;
            self.nic_start(nic_index, bytes, ack);
            return;
        }
        if nic.paused & 1 == 0
            && let Some(handle) = nic.rails.pop_front()
        {
            let packet = self.wires.packets.get(handle);
            let (bytes, left) = (
                packet.bytes,
                (packet.src, packet.kind == PacketKind::RailData),
            );
            self.nic_start(nic_index, bytes, handle);
            self.hosts.left_card.push(left);
            return;
        }
        match self.hosts.choose_flow(&self.cx, nic_index) {
            Choice::Send(place) => self.send_segment(nic_index, place),
            Choice::Wait(at) => {
                let nic = &self.hosts.nics[nic_index];
                // The reference keeps a pending wake-up even where a flow may send earlier by now.
                let pending = nic.wake_at != Time::NEVER
                    && !(self.cx.semantics.wake_ignores_blocked && at < nic.wake_at);
                if at != Time::NEVER && at > self.cx.now && !pending {
                    self.schedule_wake(nic_index, at);
                }
            }
        }
    }

    fn nic_start(&mut self, nic_index: NicIndex, bytes: u32, handle: PacketSlot) {
        let port = self.hosts.nics[nic_index].port;
        let (cx, wires) = (&mut self.cx, &mut self.wires);
        let gap = cx.config.nic_gap + cx.config.nic_gap_per_byte * u64::from(bytes);
        let waits = gap != Span::ZERO && wires.packets.get(handle).kind.is_request();
        wires.transmit(cx, port, bytes, handle);
        if waits {
            let end = &mut wires.ends[port];
            end.busy_until = end.busy_until.max(cx.now + gap);
        }
        let history = &mut wires.history[port];
        history.tx_bytes += u64::from(bytes);
        history.tx_packets += 1;
        let nic = &self.hosts.nics[nic_index];
        if !nic.flows.is_empty() || !nic.acks.is_empty() || !nic.rails.is_empty() {
            wires.schedule_free(cx, port);
        }
    }

    fn send_segment(&mut self, nic_index: NicIndex, place: usize) {
        let cx = &mut self.cx;
        let nic = &mut self.hosts.nics[nic_index];
        nic.served = place;
        let index = nic.flows[place];
        let flow = &mut self.hosts.flows[index];
        if flow.sender.in_flight() == 0 && flow.deadline != Time::NEVER {
            // Nothing was under way (a long pause): the timer runs from here on.
            flow.deadline = flow.deadline.max(cx.now + cx.config.retransmission_timeout);
        }
        let (seq, payload) = flow.sender.take_segment(cx.layout.mtu);
        let bytes = payload as u32 + cx.layout.header_bytes;
        flow.last_bytes = bytes;
        let rate = paced_rate(flow.rate, self.wires.ends[nic.port].rate, &cx.limits);
        let gap = cx
            .semantics
            .timing
            .transmission_time(Bytes(u64::from(bytes)), rate);
        flow.next_send = cx.now + gap;
        let stream = Bytestream {
            flow: index,
            generation: flow.generation,
            seq,
        };
        let envelope = Envelope {
            src: flow.src,
            hash: flow.hash,
            queue: flow.queue,
            sent_at: cx.now,
            bytes,
            payload: payload as u32,
        };
        let packet = match flow.to {
            FlowTo::Host(dst) => Packet::data(dst, &stream, envelope),
            FlowTo::Group { colour, .. } => Packet::group_data(colour, &stream, envelope),
        };
        cx.summary.payload_sent += payload;
        let handle = self.wires.packets.insert(packet);
        if self.wires.delays.is_some() {
            self.note_sent(index, handle);
        }
        self.nic_start(nic_index, bytes, handle);
    }

    pub(super) fn schedule_wake(&mut self, nic_index: NicIndex, at: Time) {
        let nic = &mut self.hosts.nics[nic_index];
        let key = self
            .cx
            .schedule(at, (Kind::Wake, nic.port, 0), What::Wake(nic_index));
        (nic.wake_at, nic.wake_key) = (at, key);
    }

    pub(super) fn wake(&mut self, nic_index: NicIndex) {
        self.hosts.nics[nic_index].wake_at = Time::NEVER;
        self.nic_transmit(nic_index);
    }

    /// Puts a packet at the end of what a card sends before any data.
    pub(super) fn queue_control(&mut self, nic_index: NicIndex, packet: Packet) {
        let handle = self.wires.packets.insert(packet);
        self.hosts.nics[nic_index].acks.push_back(handle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_faster_through_a_faster_port_only() {
        let limits = FlowLimits {
            line_rate: 400,
            min_rate: 1,
        };
        for (rate, port, expected) in [
            (400, 400, 400),
            (400, 100, 400),
            (400, 3600, 3600),
            (100, 3600, 900),
        ] {
            assert_eq!(paced_rate(rate, BitRate(port), &limits), BitRate(expected));
        }
    }
}
