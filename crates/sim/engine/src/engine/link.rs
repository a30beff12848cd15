//! The wire: a port's transmission, arrivals, PFC, and switches between them.

use raddle_dataplane::{Departure, Frame, FrameKind, Frames, Refused};
use raddle_transport::telemetry::HopRecord;
use raddle_units::{BitRate, Bytes, NodeId, PortId, Span, Time};

use super::{Engine, Kind, flow::Flow};
use crate::{
    chance::{Chance, MarkReplay},
    packet::{PacketKind, Packets},
    record::PauseRecord,
    semantics::{LinkTiming, Semantics},
};

/// One end of a link: a port's transmitter and what it is connected to. One cache line: every hop touches two.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct LinkEnd {
    pub(super) busy_until: Time,
    /// Key of the event that ends the transmission, scheduled or not.
    pub(super) free_key: u64,
    pub(super) rate: BitRate,
    delay: Span,
    pub(super) peer: PortId,
    pub(super) node: NodeId,
    /// Index among switches or NICs.
    pub(super) device: u32,
    /// Picoseconds per byte where that is a whole number (else 0).
    ps_per_byte: u32,
    /// The port's index on its node, from 0.
    pub(super) index: u16,
    /// The end of the transmission is scheduled.
    pub(super) free_scheduled: bool,
    pub(super) is_switch: bool,
    pub(super) up: bool,
    /// Data classes of this port that are paused (bits).
    pub(super) paused: u8,
}

const _: () = assert!(size_of::<LinkEnd>() == 64);

/// What happened at a port, by port: touched rarely.
#[derive(Debug)]
pub(super) struct PortHistory {
    pub(super) paused_since: Time,
    pub(super) paused_total: Span,
    /// When the link failed last ([`Time::NEVER`]: it did not).
    pub(super) failed_at: Time,
    /// Data and ACK packets lost on the way to this port.
    pub(super) lost: u64,
    /// For NICs, which have no switch to count for them.
    pub(super) tx_bytes: u64,
    pub(super) tx_packets: u64,
}

impl Default for PortHistory {
    fn default() -> Self {
        Self {
            paused_since: Time::NEVER,
            paused_total: Span::ZERO,
            failed_at: Time::NEVER,
            lost: 0,
            tx_bytes: 0,
            tx_packets: 0,
        }
    }
}

impl LinkEnd {
    pub(super) fn new(network: &crate::Network, port: PortId, device: u32) -> Self {
        let fabric = &network.fabric;
        let own = fabric.port(port);
        let rate = fabric.rate(port);
        let exact = network.semantics.timing == LinkTiming::Exact
            && rate.0 != 0
            && 8_000_000_000_000 % rate.0 == 0;
        Self {
            busy_until: Time::ZERO,
            free_key: 0,
            free_scheduled: false,
            is_switch: !fabric.is_host(own.node),
            up: true,
            index: own.number - 1,
            ps_per_byte: if exact {
                u32::try_from(8_000_000_000_000 / rate.0).unwrap_or(0)
            } else {
                0
            },
            node: own.node,
            peer: own.peer,
            device,
            paused: 0,
            rate,
            delay: fabric.delay(port),
        }
    }

    #[inline]
    pub(super) fn transmission_time(&self, semantics: &Semantics, bytes: u32) -> Span {
        if self.ps_per_byte != 0 {
            return Span(u64::from(self.ps_per_byte) * u64::from(bytes));
        }
        semantics
            .timing
            .transmission_time(Bytes(u64::from(bytes)), self.rate)
    }
}

/// The engine's packets as a switch sees them.
pub(super) struct FrameAccess<'a> {
    pub(super) packets: &'a mut Packets,
    pub(super) flows: &'a [Flow],
    pub(super) chance: &'a mut Chance,
    pub(super) replay: Option<&'a MarkReplay>,
    pub(super) node: NodeId,
    pub(super) record_room: u8,
}

/// [`FrameAccess`] for a switch, borrowing only what it needs of the engine.
macro_rules! frame_access {
    ($engine:ident, $node:expr) => {
        $crate::engine::link::FrameAccess {
            packets: &mut $engine.packets,
            flows: &$engine.flows,
            chance: &mut $engine.chance,
            replay: $engine.config.marks.as_deref(),
            node: $node,
            record_room: $engine.layout.record_room,
        }
    };
}
pub(super) use frame_access;

impl Frames for FrameAccess<'_> {
    fn mark(&mut self, handle: u32, probability: f64) -> bool {
        let packet = self.packets.get(handle);
        if !packet.kind.is_data() {
            // An acknowledgement in the data queue: the reference decides about its mark too, and nobody reads it.
            if probability < 1.0 {
                self.chance.happens(self.node, probability);
            }
            return false;
        }
        let marked = match self.replay {
            Some(replay) if probability < 1.0 => {
                let sport = self.flows[packet.flow as usize].sport;
                let acked = packet.seq + u64::from(packet.payload);
                replay.is_marked(packet.src, packet.dst, sport, acked)
            }
            _ => probability >= 1.0 || self.chance.happens(self.node, probability),
        };
        self.packets.get_mut(handle).marked |= marked;
        marked
    }

    #[inline]
    fn push_hop(&mut self, handle: u32, record: HopRecord) {
        self.packets
            .get_mut(handle)
            .push_record(record, self.record_room);
    }

    fn raise_digest(&mut self, handle: u32, code: u16) {
        let packet = self.packets.get_mut(handle);
        packet.digest = packet.digest.max(code);
    }

    fn random(&mut self) -> u32 {
        self.chance.bits(self.node)
    }

    fn set_account(&mut self, handle: u32, account: u32) {
        self.packets.get_mut(handle).account = account;
    }

    fn account(&self, handle: u32) -> u32 {
        self.packets.get(handle).account
    }
}

impl Engine<'_> {
    /// Whether a port's transmission is still going on, also when it ends at this instant but later in its order.
    #[inline]
    pub(super) fn is_busy(&self, port: PortId) -> bool {
        let end = &self.ends[port.index()];
        self.now < end.busy_until || (self.now == end.busy_until && self.key < end.free_key)
    }

    /// Has the port look for work again when its transmission ends.
    #[inline]
    pub(super) fn schedule_free(&mut self, port: PortId) {
        let end = &mut self.ends[port.index()];
        if !end.free_scheduled {
            end.free_scheduled = true;
            let (at, key) = (end.busy_until, end.free_key);
            self.push(at, key, Kind::Free.pack(port.0, 0));
        }
    }

    pub(super) fn port_is_free(&mut self, port: PortId) {
        let end = &mut self.ends[port.index()];
        end.free_scheduled = false;
        let (is_switch, device) = (end.is_switch, end.device);
        if is_switch {
            self.switch_transmit(port);
        } else {
            self.nic_transmit(device);
        }
    }

    /// Puts a packet on the wire. The port is free and up.
    #[inline]
    pub(super) fn transmit(&mut self, port: PortId, bytes: u32, kind: Kind, low: u32) {
        let end = &mut self.ends[port.index()];
        let done = self.now + end.transmission_time(&self.semantics, bytes);
        end.busy_until = done;
        end.free_key = self.keys.next(Kind::Free, port, 0);
        let key = self.keys.next(kind, end.peer, 0);
        let (arrival, peer) = (done + end.delay, end.peer);
        self.push(arrival, key, kind.pack(peer.0, low));
    }

    /// Sends from a switch's port if it is free and has something.
    pub(super) fn switch_transmit(&mut self, port: PortId) {
        let end = &self.ends[port.index()];
        // A port that looks for work again by itself is busy until then.
        if end.free_scheduled || !end.up {
            return;
        }
        let (device, index, node) = (end.device as usize, end.index, end.node);
        if self.is_busy(port) {
            if self.switches[device].is_ready(index) {
                self.schedule_free(port);
            }
            return;
        }
        let mut frames = frame_access!(self, node);
        let Some(departure) = self.switches[device].dequeue(self.now.as_ns(), index, &mut frames)
        else {
            return;
        };
        self.send(port, departure);
        if self.switches[device].is_ready(index) {
            self.schedule_free(port);
        }
    }

    /// Puts a frame that left its queue on the wire; a RESUME that its departure caused goes first.
    #[inline(always)]
    fn send(&mut self, port: PortId, departure: Departure) {
        if let Some(resumed) = departure.resume {
            self.chance.pfc_frame();
            self.switch_transmit(self.port_on(port, resumed));
        }
        let Frame {
            handle,
            bytes,
            kind,
            ..
        } = departure.frame;
        match kind {
            FrameKind::Plain | FrameKind::Data | FrameKind::Copy => {
                self.transmit(port, bytes, Kind::Arrive, handle);
            }
            FrameKind::Pause(class) => {
                self.transmit(port, bytes, Kind::Pfc, u32::from(class) << 1 | 1);
            }
            FrameKind::Resume(class) => {
                self.transmit(port, bytes, Kind::Pfc, u32::from(class) << 1);
            }
        }
    }

    /// A packet is wholly received at a port.
    #[inline]
    pub(super) fn arrive(&mut self, port: PortId, handle: u32) {
        let end = &self.ends[port.index()];
        let (is_switch, device, index, node) = (end.is_switch, end.device, end.index, end.node);
        if !self.changes.is_empty() && self.was_cut(port, self.packets.get(handle).bytes) {
            self.history[port.index()].lost += 1;
            self.drop_packet(handle);
            return;
        }
        self.summary.packet_hops += 1;
        if !is_switch {
            self.receive(port, device, handle);
            return;
        }
        let packet = self.packets.get_mut(handle);
        let kind = match packet.kind {
            PacketKind::Data | PacketKind::RailData => FrameKind::Data,
            PacketKind::GroupData => return self.replicate(port, handle),
            PacketKind::Offload => return self.offload_arrives(port, handle),
            PacketKind::Part => return self.part_arrives(port, handle),
            PacketKind::Combined => return self.combined_arrives(port, handle),
            _ => FrameKind::Plain,
        };
        let known = packet.take_out();
        let (dst, hash, bytes, queue) = (packet.dst, packet.hash, packet.bytes, packet.queue);
        let Some(out) = known.or_else(|| self.router.next_hop(node, dst, hash)) else {
            self.history[port.index()].lost += 1;
            self.drop_packet(handle);
            return;
        };
        if !self.ends[out.index()].up {
            self.history[out.index()].lost += 1;
            self.drop_packet(handle);
            return;
        }
        let out_index = self.ends[out.index()].index;
        let frame = Frame {
            handle,
            bytes,
            in_port: index,
            queue,
            kind,
        };
        if !self.ends[out.index()].free_scheduled
            && self.switches[device as usize].is_idle(out_index, queue)
            && !self.is_busy(out)
        {
            let mut frames = frame_access!(self, node);
            let now_ns = self.now.as_ns();
            let switch = &mut self.switches[device as usize];
            match switch.forward(now_ns, out_index, frame, &mut frames) {
                Ok(Some(departure)) => self.send(out, departure),
                Ok(None) => self.pause_and_send(port, out),
                Err(Refused) => self.drop_packet(handle),
            }
            return;
        }
        match self.switches[device as usize].enqueue(out_index, frame) {
            Ok(false) => self.switch_transmit(out),
            Ok(true) => self.pause_and_send(port, out),
            Err(Refused) => self.drop_packet(handle),
        }
    }

    /// A PAUSE was queued on the port by which a packet came in; both ports have work.
    #[cold]
    fn pause_and_send(&mut self, port: PortId, out: PortId) {
        self.chance.pfc_frame();
        self.switch_transmit(port);
        self.switch_transmit(out);
    }

    /// A packet is lost; its bytes are accounted for.
    pub(super) fn drop_packet(&mut self, handle: u32) {
        let packet = self.packets.get(handle);
        if packet.kind.is_data() {
            self.summary.payload_discarded += u64::from(packet.payload);
        }
        match packet.kind {
            PacketKind::Offload => self.offload.forget(packet.flow),
            PacketKind::RailData | PacketKind::RailControl => {
                self.rails.contents.forget(packet.flow)
            }
            _ => {}
        }
        self.summary.drops += 1;
        self.packets.remove(handle);
    }

    /// A PFC frame is received at a port: its transmit side stops or goes on.
    pub(super) fn receive_pfc(&mut self, port: PortId, low: u32) {
        if !self.changes.is_empty() && self.was_cut(port, self.layout.pfc_bytes) {
            return;
        }
        let (class, pause) = ((low >> 1) as u8, low & 1 == 1);
        let bit = 1u8 << class;
        let end = &mut self.ends[port.index()];
        let before = end.paused;
        end.paused = if pause { before | bit } else { before & !bit };
        let after = end.paused;
        let (is_switch, device, index) = (end.is_switch, end.device, end.index);
        self.summary.pauses += u64::from(pause);
        if before == 0 && after != 0 {
            self.history[port.index()].paused_since = self.now;
            self.paused_ports += 1;
        } else if before != 0 && after == 0 {
            self.end_pause(port);
        }
        if is_switch {
            self.switches[device as usize].set_paused(index, class, pause);
        } else {
            self.nics[device as usize].paused = after;
        }
        if !pause {
            if is_switch {
                self.switch_transmit(port);
            } else {
                self.nic_transmit(device);
            }
        }
    }

    pub(super) fn end_pause(&mut self, port: PortId) {
        let end = &self.ends[port.index()];
        let (node, number) = (end.node, end.index + 1);
        let history = &mut self.history[port.index()];
        let start = std::mem::replace(&mut history.paused_since, Time::NEVER);
        history.paused_total += self.now.since(start);
        self.paused_ports -= 1;
        self.recorder.pause(&PauseRecord {
            node,
            port: number,
            start,
            end: self.now,
        });
    }

    /// Whether the link of a port failed while a packet that arrives now was on it.
    fn was_cut(&self, port: PortId, bytes: u32) -> bool {
        let end = &self.ends[port.index()];
        let on_the_wire = self.transmission_time(port, bytes) + end.delay;
        let failed_at = self.history[port.index()].failed_at;
        failed_at != Time::NEVER && failed_at + on_the_wire >= self.now
    }

    /// The port with index `index` on the node of `port`.
    #[inline]
    pub(super) fn port_on(&self, port: PortId, index: u16) -> PortId {
        let own = u32::from(self.ends[port.index()].index);
        PortId(port.0 - own + u32::from(index))
    }
}
