//! A flow from message to record.

use raddle_transport::{
    cc::{FlowControl, Timers},
    reliability::{Receiver, Sender},
};
use raddle_unicast::FlowHash;
use raddle_units::{Bytes, NodeId, Span, Time};
use raddle_workload::{GroupId, Message, OffloadId, ReductionId};

use super::{Engine, Kind, multicast::NO_SEND, ways::WayOwner};
use crate::{paths::Path, record::FlowRecord};

/// What differs between a flow to a host and one to a group when it starts.
pub(super) struct Opening {
    pub(super) sport: u16,
    pub(super) hash: FlowHash,
    /// Hash of its acknowledgements.
    pub(super) reverse: FlowHash,
    pub(super) nic: u32,
    pub(super) ideal_fct: Span,
    pub(super) send: u32,
}

/// First source port of a pair of hosts.
const FIRST_SPORT: u16 = 10_000;
/// Destination port of all flows, as in the reference's flow files.
pub(super) const DPORT: u32 = 100;

/// The sender's side.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) sender: Sender,
    pub(super) control: FlowControl,
    pub(super) timers: Timers,
    /// The flow may send from this time on (pacing).
    pub(super) next_send: Time,
    /// Bytes that may be in flight; 0: no limit.
    pub(super) window: u64,
    pub(super) rate: u64,
    pub(super) hash: FlowHash,
    /// Wire bytes of the last packet sent.
    pub(super) last_bytes: u32,
    pub(super) src: NodeId,
    pub(super) dst: NodeId,
    /// NIC (index) that it sends through.
    pub(super) nic: u32,
    pub(super) sport: u16,
    pub(super) generation: u16,
    pub(super) queue: u8,
    pub(super) class: u8,
    /// Timeouts since the last progress.
    pub(super) timeouts: u8,
    pub(super) live: bool,
    /// Without progress until then, the retransmission timer goes off.
    pub(super) deadline: Time,
    /// When that timer looks next.
    pub(super) timer_at: Time,
    pub(super) start: Time,
    pub(super) tag: u64,
    pub(super) ideal_fct: Span,
    /// Place among the messages to groups, [`NO_SEND`] for a flow to a host.
    pub(super) send: u32,
}

/// The receiver's side.
#[derive(Debug)]
pub(super) struct Reception {
    pub(super) receiver: Receiver,
    /// No congestion mark is echoed before.
    pub(super) echo_after: Time,
    /// Hash of the flow's acknowledgements.
    pub(super) hash: FlowHash,
    pub(super) size: u64,
    /// Place in the sampler's list of watched flows.
    pub(super) watched: Option<u16>,
}

/// A host's address in the reference: 11.0.0.1 plus its number in the two middle bytes.
pub(super) fn address(host: NodeId) -> u32 {
    0x0b00_0001u32
        .wrapping_add((host.0 / 256) << 16)
        .wrapping_add((host.0 % 256) << 8)
}

impl Engine<'_> {
    pub(super) fn start_flow(&mut self, message: Message) {
        let Message { src, dst, size, .. } = message;
        if let Some(member) = OffloadId::of(dst) {
            self.start_round(message, member);
            return;
        }
        if let Some(group) = ReductionId::of(dst) {
            self.start_reduction(message, group);
            return;
        }
        if let Some(group) = GroupId::of(dst) {
            self.start_group_flow(message, group);
            return;
        }
        if self.config.rails.is_some() {
            self.start_on_rails(message);
            return;
        }
        let sport = self.next_sport(src, dst);
        let ports = u32::from(sport) | DPORT << 16;
        let hash = FlowHash::new(address(src), address(dst), ports);
        let reverse = FlowHash::new(address(dst), address(src), ports.rotate_left(16));
        let port = self
            .router
            .next_hop(src, dst, hash)
            .unwrap_or_else(|| self.fabric.first_port(src));
        let nic = self.ends[port.index()].device;
        let ideal_fct = self.ideal_fct(src, dst, size);
        let opening = Opening {
            sport,
            hash,
            reverse,
            nic,
            ideal_fct,
            send: NO_SEND,
        };
        self.open_flow(message, opening);
    }

    /// How long a flow would take alone.
    pub(super) fn ideal_fct(&self, src: NodeId, dst: NodeId, size: Bytes) -> Span {
        let path = Path::between(self.fabric, self.idle_tables, src, dst);
        path.map_or(Span::ZERO, |path| {
            path.ideal_fct(
                &self.semantics,
                size,
                Bytes(self.layout.mtu),
                u64::from(self.layout.header_bytes),
                u64::from(self.layout.ack_bytes),
            )
        })
    }

    /// Source port of the next flow of a pair.
    pub(super) fn next_sport(&mut self, src: NodeId, dst: NodeId) -> u16 {
        let used = self.pairs.entry((src, dst)).or_insert(0);
        let sport = FIRST_SPORT.wrapping_add(*used);
        *used = used.wrapping_add(1);
        sport
    }

    pub(super) fn open_flow(&mut self, message: Message, opening: Opening) {
        let Message {
            src,
            dst,
            size,
            class,
            priority,
            tag,
            ..
        } = message;
        let Opening {
            sport,
            hash,
            reverse,
            nic,
            ideal_fct,
            send,
        } = opening;
        let data_class = if self.layout.data_classes == 1 {
            0
        } else {
            priority.min(self.layout.data_classes - 1)
        };
        let parameters = &self.config.scheme;
        let control = FlowControl::new(parameters, &self.limits);
        let (rate, window) = (control.rate(), control.window(parameters, &self.limits));
        let slot = self.free_flows.pop();
        let generation = slot.map_or(0, |slot| {
            self.flows[slot as usize].generation.wrapping_add(1)
        });
        let flow = Flow {
            sender: Sender::new(size.0),
            control,
            timers: Timers::default(),
            next_send: self.now,
            window,
            rate,
            hash,
            last_bytes: 0,
            src,
            dst,
            nic,
            sport,
            generation,
            queue: raddle_dataplane::QUEUE_DATA + data_class,
            class,
            timeouts: 0,
            live: true,
            deadline: Time::NEVER,
            timer_at: Time::NEVER,
            start: self.now,
            tag,
            ideal_fct,
            send,
        };
        let watched = self
            .sampler
            .watch(src, dst, sport, size, self.config.watch_from);
        let reception = Reception {
            receiver: Receiver::default(),
            echo_after: Time::ZERO,
            hash: reverse,
            size: size.0,
            watched,
        };
        let index = match slot {
            Some(slot) => {
                self.flows[slot as usize] = flow;
                self.receptions[slot as usize] = reception;
                slot
            }
            None => {
                self.flows.push(flow);
                self.receptions.push(reception);
                (self.flows.len() - 1) as u32
            }
        };
        self.summary.flows_started += 1;
        self.live_flows += 1;
        self.arm_retransmission_timer(index);
        self.nics[nic as usize].flows.push(index);
        if self.config.record_paths {
            self.record_way(WayOwner::Flow(index));
        }
        self.nic_transmit(nic);
    }

    /// The flow's last byte is acknowledged: it is recorded; its slot is freed when its NIC lets go of it.
    pub(super) fn complete_flow(&mut self, index: u32) {
        self.record_flow(
            index,
            Some(self.now.since(self.flows[index as usize].start)),
        );
        let flow = &mut self.flows[index as usize];
        flow.live = false;
        self.live_flows -= 1;
        self.summary.flows_finished += 1;
    }

    /// The flow gives up: no progress after many timeouts.
    pub(super) fn abandon_flow(&mut self, index: u32) {
        self.record_flow(index, None);
        let flow = &mut self.flows[index as usize];
        flow.live = false;
        self.live_flows -= 1;
        let nic = &mut self.nics[flow.nic as usize];
        nic.flows.retain(|&other| other != index);
        nic.served = 0;
        self.free_flow(index);
    }

    pub(super) fn free_flow(&mut self, index: u32) {
        // From here on packets and timers of the flow are recognised as stale.
        let flow = &mut self.flows[index as usize];
        flow.generation = flow.generation.wrapping_add(1);
        let send = std::mem::replace(&mut flow.send, NO_SEND);
        if send != NO_SEND {
            self.multicast.free(send);
        }
        self.free_flows.push(index);
    }

    pub(super) fn record_flow(&mut self, index: u32, fct: Option<Span>) {
        let flow = &self.flows[index as usize];
        self.recorder.flow(&FlowRecord {
            src: flow.src,
            dst: flow.dst,
            sport: flow.sport,
            size: Bytes(flow.sender.size()),
            start: flow.start,
            fct,
            ideal_fct: flow.ideal_fct,
            class: flow.class,
            tag: flow.tag,
        });
    }

    pub(super) fn arm_retransmission_timer(&mut self, index: u32) {
        if !self.semantics.retransmission_timer {
            return;
        }
        let flow = &mut self.flows[index as usize];
        flow.deadline = self.now + self.config.retransmission_timeout;
        let (deadline, generation, src) = (flow.deadline, flow.generation, flow.src);
        self.push_timeout(deadline, index, generation, src);
    }

    pub(super) fn push_timeout(&mut self, at: Time, index: u32, generation: u16, src: NodeId) {
        self.flows[index as usize].timer_at = at;
        let key = self
            .keys
            .next(Kind::Timeout, self.fabric.first_port(src), index);
        self.push(
            at,
            key,
            Kind::Timeout.pack(u32::from(generation) << 8, index),
        );
    }
}
