//! A flow from message to record.

use std::hash::Hash;

use raddle_multicast::Colour;
use raddle_transport::{
    cc::{FlowControl, Timers},
    reliability::{Receiver, Sender},
};
use raddle_unicast::FlowHash;
use raddle_units::{Bytes, NodeId, Span, Time};
use raddle_workload::{Destination, GroupId, Message};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{
    process::Base,
    reception::Reception,
    records::Record,
    sample::Wanted,
    what::{Kind, What},
};
use crate::{
    index::{FlowSlot, NicIndex, SendSlot},
    packet::Packet,
    paths::Path,
    record::FlowRecord,
};

/// First source port of a pair of hosts.
const FIRST_SPORT: u16 = 10_000;
/// Destination port of all flows, as in the reference's flow files.
pub(super) const DPORT: u32 = 100;

/// What names a flow where its packets come to: the sending host, and the flow's slot and generation there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) struct FlowName {
    src: NodeId,
    slot: FlowSlot,
    generation: u16,
}

impl FlowName {
    /// Of the flow of a data packet.
    #[inline]
    pub(super) fn of(packet: &Packet) -> Self {
        Self {
            src: packet.src,
            slot: packet.flow(),
            generation: packet.generation,
        }
    }
}

/// Where a flow's packets go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FlowTo {
    /// To a host.
    Host(NodeId),
    /// To a group.
    Group {
        /// What its packets carry.
        colour: Colour,
        /// Its number.
        group: GroupId,
        /// What the groups know of the message.
        send: SendSlot,
    },
}

impl FlowTo {
    /// The same as messages and records name it.
    pub(super) const fn destination(self) -> Destination {
        match self {
            Self::Host(host) => Destination::Host(host),
            Self::Group { group, .. } => Destination::Group(group),
        }
    }
}

/// What differs between a flow to a host and one to a group when it starts.
pub(super) struct Opening {
    pub(super) sport: u16,
    pub(super) hash: FlowHash,
    /// Hash of its acknowledgements.
    pub(super) reverse: FlowHash,
    pub(super) nic: NicIndex,
    pub(super) ideal_fct: Span,
    pub(super) to: FlowTo,
}

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
    pub(super) to: FlowTo,
    /// NIC that it sends through.
    pub(super) nic: NicIndex,
    /// Among the flows of its host, in order of start: its place in the order of timers.
    pub(super) number: u32,
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
    /// Place of a flow to a group in the sampler's list of watched flows.
    pub(super) watched: Option<u16>,
}

impl Flow {
    /// What is recorded of it; `fct`: it has finished.
    pub(super) fn record(&self, fct: Option<Span>) -> FlowRecord {
        FlowRecord {
            src: self.src,
            dst: self.to.destination(),
            sport: self.sport,
            size: Bytes(self.sender.size()),
            start: self.start,
            fct,
            ideal_fct: self.ideal_fct,
            class: self.class,
            tag: self.tag,
        }
    }

    /// What names it at its receiver.
    pub(super) const fn name(&self, slot: FlowSlot) -> FlowName {
        FlowName {
            src: self.src,
            slot,
            generation: self.generation,
        }
    }
}

/// A host's address in the reference: 11.0.0.1 plus its number in the two middle bytes.
pub(super) fn address(host: NodeId) -> u32 {
    0x0b00_0001u32
        .wrapping_add((host.0 / 256) << 16)
        .wrapping_add((host.0 % 256) << 8)
}

/// Source ports of flows: those of a sender and a receiver, or group, count up.
#[derive(Debug)]
pub(super) struct SourcePorts<D> {
    /// Flows per pair so far.
    used: FxHashMap<(NodeId, D), u16>,
}

impl<D> Default for SourcePorts<D> {
    fn default() -> Self {
        Self {
            used: FxHashMap::default(),
        }
    }
}

impl<D: Eq + Hash> SourcePorts<D> {
    /// Source port of the next flow of a pair.
    pub(super) fn next(&mut self, src: NodeId, dst: D) -> u16 {
        let used = self.used.entry((src, dst)).or_insert(0);
        let sport = FIRST_SPORT.wrapping_add(*used);
        *used = used.wrapping_add(1);
        sport
    }
}

impl Base<'_> {
    /// What a flow to a host starts with.
    pub(super) fn opening(&mut self, message: &Message, dst: NodeId) -> Option<Opening> {
        let Message { src, size, .. } = *message;
        let sport = self.hosts.sports.next(src, dst);
        let ports = u32::from(sport) | DPORT << 16;
        let hash = FlowHash::new(address(src), address(dst), ports);
        let reverse = FlowHash::new(address(dst), address(src), ports.rotate_left(16));
        let router = (!self.cx.config.one_link).then_some(&self.wires.router);
        let out = router.and_then(|router| router.next_hop(src, dst, hash));
        let port = out.map_or_else(
            || self.cx.first_port(src),
            |out| self.cx.cut.port(self.cx.fabric, out),
        );
        Some(Opening {
            sport,
            hash,
            reverse,
            nic: self.nic_at(port)?,
            ideal_fct: self.ideal_fct(src, dst, size),
            to: FlowTo::Host(dst),
        })
    }

    /// How long a flow would take alone.
    pub(super) fn ideal_fct(&self, src: NodeId, dst: NodeId, size: Bytes) -> Span {
        let (cx, tables) = (&self.cx, self.wires.idle_tables);
        let path = Path::between(cx.fabric, tables, src, dst);
        path.map_or(Span::ZERO, |path| {
            path.ideal_fct(
                &cx.semantics,
                size,
                Bytes(cx.layout.mtu),
                u64::from(cx.layout.header_bytes),
                u64::from(cx.layout.ack_bytes),
            )
        })
    }

    /// Begins a flow; its card is to look for work.
    pub(super) fn open_flow(&mut self, message: &Message, opening: Opening) -> FlowSlot {
        let Message {
            src,
            dst,
            size,
            class,
            priority,
            tag,
            ..
        } = *message;
        let Opening {
            sport,
            hash,
            reverse,
            nic,
            ideal_fct,
            to,
        } = opening;
        let cx = &mut self.cx;
        let data_class = if cx.layout.data_classes == 1 {
            0
        } else {
            priority.min(cx.layout.data_classes - 1)
        };
        let parameters = &cx.config.scheme;
        let control = FlowControl::new(parameters, &cx.limits);
        let (rate, window) = (control.rate(), control.window(parameters, &cx.limits));
        let before = self.hosts.flows.next();
        let generation = before.map_or(0, |flow| flow.generation.wrapping_add(1));
        let begun = &mut self.hosts.begun[cx.cut.place(src)];
        let number = *begun;
        *begun = begun.wrapping_add(1);
        let index = self.hosts.flows.insert(Flow {
            sender: Sender::new(size.0),
            control,
            timers: Timers::default(),
            next_send: cx.now,
            window,
            rate,
            hash,
            last_bytes: 0,
            src,
            to,
            nic,
            number,
            sport,
            generation,
            queue: raddle_dataplane::QUEUE_DATA + data_class,
            class,
            timeouts: 0,
            live: true,
            deadline: Time::NEVER,
            timer_at: Time::NEVER,
            start: cx.now,
            tag,
            ideal_fct,
            watched: None,
        });
        let name = self.hosts.flows[index].name(index);
        let mut watched = None;
        if self.sampler.wants(cx, size) {
            let wanted = Wanted {
                start: cx.now,
                number,
                src,
                dst,
                sport,
                name,
            };
            watched = self.sampler.watch(cx, wanted);
        }
        if let FlowTo::Host(dst) = to {
            let reception = Reception {
                receiver: Receiver::default(),
                echo_after: Time::ZERO,
                hash: reverse,
                size: size.0,
                tag,
                watched,
                class,
            };
            let there = cx.cut.process(dst);
            if there == cx.own {
                self.hosts.receptions.insert(name, reception);
            } else {
                cx.post.to(there).begun.push((name, reception));
            }
        } else {
            // Who receives is told by the groups.
            self.hosts.flows[index].watched = watched;
        }
        if let Some(replay) = &mut self.wires.replay {
            replay.note(index, sport);
        }
        cx.summary.flows_started += 1;
        self.hosts.live += 1;
        self.arm_retransmission_timer(index);
        self.hosts.nics[nic].flows.push(index);
        if self.wires.delays.is_some() {
            self.note_begin(index);
        }
        index
    }

    /// The flow's last byte is acknowledged: it is recorded; its slot is freed when its NIC lets go of it.
    pub(super) fn complete_flow(&mut self, index: FlowSlot) {
        let start = self.hosts.flows[index].start;
        self.record_flow(index, Some(self.cx.now.since(start)));
        self.note_end(index);
        self.hosts.flows[index].live = false;
        self.hosts.live -= 1;
        self.cx.summary.flows_finished += 1;
    }

    /// The flow is over without having reached all: as [`Self::complete_flow`].
    pub(super) fn end_flow(&mut self, index: FlowSlot) {
        self.hosts.flows[index].live = false;
        self.hosts.live -= 1;
        self.record_flow(index, None);
    }

    /// The flow gives up: no progress after many timeouts.
    pub(super) fn abandon_flow(&mut self, index: FlowSlot) {
        self.end_flow(index);
        let nic = self.hosts.flows[index].nic;
        self.hosts.nics[nic].leave(index);
        self.hosts.free_flow(&self.cx, index);
    }

    pub(super) fn record_flow(&mut self, index: FlowSlot, fct: Option<Span>) {
        let record = self.hosts.flows[index].record(fct);
        self.cx.record(record.src, Record::Flow(record));
    }

    pub(super) fn arm_retransmission_timer(&mut self, index: FlowSlot) {
        if !self.cx.semantics.retransmission_timer {
            return;
        }
        let deadline = self.cx.now + self.cx.config.retransmission_timeout;
        self.hosts.flows[index].deadline = deadline;
        self.push_timeout(deadline, index);
    }

    /// Has the retransmission timer of a flow look at `at`.
    pub(super) fn push_timeout(&mut self, at: Time, index: FlowSlot) {
        let flow = &mut self.hosts.flows[index];
        flow.timer_at = at;
        let port = self.cx.first_port(flow.src);
        let what = What::Timeout(index, flow.generation);
        self.cx
            .schedule(at, (Kind::Timeout, port, flow.number), what);
    }
}
