//! The network between hosts: links, switches, and the packets that are on their way.

use raddle_dataplane::{Departure, Frame, FrameKind, QUEUE_ACKS, Refused, Switch, SwitchMemory};
use raddle_unicast::UnicastTables;
use raddle_units::{NodeId, PortId, Span, Time};
use raddle_wire::rails::Packet as Segment;

use super::{
    context::Context,
    delays::Delays,
    frames::{FrameAccess, Replay},
    link::{Beyond, Device, LinkEnd, PortHistory},
    mail::Mail,
    offload::Datagram,
    records::Record,
    route::Router,
    what::{Kind, What},
};
use crate::{
    chance::Chance,
    event::Event,
    index::{Arena, DatagramSlot, List, PacketSlot, PortIndex, SegmentSlot, SwitchIndex},
    packet::PacketKind,
    packets::Packets,
    record::PauseRecord,
};

/// See the module.
pub(super) struct Wires<'a> {
    pub(super) router: Router,
    /// Routes with all links up, for ideal completion times.
    pub(super) idle_tables: &'a UnicastTables,
    pub(super) ends: List<PortIndex, LinkEnd>,
    pub(super) history: List<PortIndex, PortHistory>,
    pub(super) switches: List<SwitchIndex, Switch>,
    /// Of the switches.
    pub(super) memory: SwitchMemory,
    pub(super) packets: Packets,
    /// What packets of in-network reductions carry.
    pub(super) datagrams: Arena<DatagramSlot, Datagram>,
    /// What packets over rails carry.
    pub(super) segments: Arena<SegmentSlot, Segment>,
    pub(super) chance: Chance,
    /// What is known of delays, where they are recorded.
    pub(super) delays: Option<Box<Delays>>,
    pub(super) replay: Option<Replay<'a>>,
    /// Links may fail in this run.
    pub(super) may_fail: bool,
    pub(super) paused_ports: u64,
}

/// [`FrameAccess`] for a switch, borrowing only what it needs.
macro_rules! frame_access {
    ($wires:expr, $cx:expr, $node:expr) => {
        FrameAccess {
            packets: &mut $wires.packets,
            chance: &mut $wires.chance,
            replay: &$wires.replay,
            node: $node,
            cx: &*$cx,
        }
    };
}

impl Wires<'_> {
    /// Has the port look for work again when its transmission ends.
    #[inline]
    pub(super) fn schedule_free(&mut self, cx: &mut Context<'_>, port: PortIndex) {
        let end = &mut self.ends[port];
        if !end.free_scheduled {
            end.free_scheduled = true;
            cx.push(end.busy_until, end.free_key, What::Free(port));
        }
    }

    /// Puts a packet on the wire. The port is free and up.
    #[inline(always)]
    pub(super) fn transmit(
        &mut self,
        cx: &mut Context<'_>,
        port: PortIndex,
        bytes: u32,
        packet: PacketSlot,
    ) {
        let (at, key, end) = self.occupy(cx, port, bytes, Kind::Arrive);
        let (peer, beyond) = (end.peer, end.beyond);
        if self.delays.is_some() {
            self.note_departure(cx, port, packet);
        }
        if beyond == Beyond::HERE {
            cx.push(at, key, What::Arrive(peer, packet));
        } else {
            self.post(cx, port, packet, (at, key));
        }
    }

    /// A packet leaves for a port of another tile or process.
    #[inline(never)]
    fn post(
        &mut self,
        cx: &mut Context<'_>,
        port: PortIndex,
        packet: PacketSlot,
        (at, key): (Time, u64),
    ) {
        let end = &self.ends[port];
        let peer = end.peer;
        let process = match end.beyond.place() {
            Ok(process) => process,
            Err(tile) => return cx.push_to(tile, at, key, What::Arrive(peer, packet)),
        };
        let event = Event {
            time: at,
            key,
            what: What::Arrive(peer, packet).pack(),
        };
        let is_near = cx.post.is_near(process);
        let mail = cx.post.arriving(process, at);
        let leaving = self.packets.get(packet);
        match leaving.kind {
            PacketKind::Offload => mail.datagrams.push(self.datagrams.take(leaving.datagram())),
            PacketKind::RailData | PacketKind::RailControl => {
                mail.segments.push(self.segments[leaving.segment()]);
                self.segments.free(leaving.segment());
            }
            _ if is_near => {
                mail.arrivals.push(event);
                return self.packets.give_away();
            }
            _ => {}
        }
        if is_near {
            mail.laden.push(event);
            self.packets.give_away();
        } else {
            mail.copies.push((event, *leaving));
            self.packets.remove(packet);
        }
    }

    /// Takes in the packets and PFC frames of a mail.
    pub(super) fn take_in(&mut self, cx: &mut Context<'_>, mail: &mut Mail) {
        self.packets
            .take_over(mail.arrivals.len() + mail.laden.len());
        for &event in &mail.arrivals {
            // On a small fabric nobody looks ahead, and what is there is in another core's cache.
            if !cx.looks_ahead
                && let Some((_, Some(slot))) = What::at_port(event.what)
            {
                self.packets.prefetch(slot);
            }
            cx.push_arrival(event);
        }
        for &event in &mail.pfc_frames {
            cx.push_arrival(event);
        }
        for (event, packet) in mail.copies.drain(..) {
            let slot = self.packets.insert(packet);
            let what = What::Arrive(What::arrives_at(event.what), slot).pack();
            mail.laden.push(Event { what, ..event });
        }
        let (mut datagrams, mut segments) = (mail.datagrams.drain(..), mail.segments.drain(..));
        for event in mail.laden.drain(..) {
            let Some((_, Some(slot))) = What::at_port(event.what) else {
                continue;
            };
            let packet = self.packets.get_mut(slot);
            if packet.kind == PacketKind::Offload
                && let Some(datagram) = datagrams.next()
            {
                packet.set_datagram(self.datagrams.insert(datagram));
            } else if packet.kind.is_on_rails()
                && let Some(segment) = segments.next()
            {
                packet.set_segment(self.segments.insert(segment));
            }
            cx.push_arrival(event);
        }
    }

    /// Puts a PFC frame on the wire. The port is free and up.
    fn transmit_pfc(
        &mut self,
        cx: &mut Context<'_>,
        port: PortIndex,
        bytes: u32,
        class: u8,
        pause: bool,
    ) {
        let (at, key, _) = self.occupy(cx, port, bytes, Kind::Pfc);
        self.note_pfc_frame(cx, port);
        let end = &self.ends[port];
        let what = What::Pfc(end.peer, class, pause);
        if end.beyond == Beyond::HERE {
            return cx.push(at, key, what);
        }
        match end.beyond.place() {
            Ok(process) => {
                let event = Event {
                    time: at,
                    key,
                    what: what.pack(),
                };
                cx.post.arriving(process, at).pfc_frames.push(event);
            }
            Err(tile) => cx.push_to(tile, at, key, what),
        }
    }

    /// A port is busy with so many bytes; when the other end has them, the key of that event, and the port.
    #[inline(always)]
    fn occupy(
        &mut self,
        cx: &mut Context<'_>,
        port: PortIndex,
        bytes: u32,
        kind: Kind,
    ) -> (Time, u64, &LinkEnd) {
        let end = &mut self.ends[port];
        let done = cx.now + end.transmission_time(&cx.semantics, bytes);
        end.busy_until = done;
        end.free_key = cx.keys.next(Kind::Free, port, 0);
        (done + end.delay, cx.keys.next(kind, end.peer, 0), end)
    }

    /// Sends from a switch's port if it is free and has something.
    pub(super) fn switch_transmit(&mut self, cx: &mut Context<'_>, port: PortIndex) {
        let end = &self.ends[port];
        // A port that looks for work again by itself is busy until then.
        if end.free_scheduled || !end.up {
            return;
        }
        let (Device::Switch(switch), index, node) = (end.device, end.index, end.node) else {
            return;
        };
        if end.is_busy(cx.now, cx.key) {
            if self.switches[switch].is_ready(&self.memory, index) {
                self.schedule_free(cx, port);
            }
            return;
        }
        let mut frames = frame_access!(self, cx, node);
        let now_ns = cx.now.as_ns();
        let Some(departure) =
            self.switches[switch].dequeue(&mut self.memory, now_ns, index, &mut frames)
        else {
            return;
        };
        self.send(cx, port, departure);
        if departure.more {
            if cx.looks_ahead {
                self.fetch_next(switch, index);
            }
            self.schedule_free(cx, port);
        }
    }

    /// Puts a frame that left its queue on the wire; a RESUME that its departure caused goes first.
    #[inline(always)]
    fn send(&mut self, cx: &mut Context<'_>, port: PortIndex, departure: Departure) {
        if let Some(resumed) = departure.resume {
            self.chance.pfc_frame();
            self.switch_transmit(cx, self.port_on(port, resumed));
        }
        let Frame {
            handle,
            bytes,
            kind,
            ..
        } = departure.frame;
        match kind {
            FrameKind::Plain | FrameKind::Data | FrameKind::Copy => {
                self.transmit(cx, port, bytes, PacketSlot(handle));
            }
            FrameKind::Pause => self.transmit_pfc(cx, port, bytes, handle as u8, true),
            FrameKind::Resume => self.transmit_pfc(cx, port, bytes, handle as u8, false),
        }
    }

    /// A packet that finds its way by the unicast tables is wholly received at a switch.
    #[inline(always)]
    pub(super) fn forward(
        &mut self,
        cx: &mut Context<'_>,
        port: PortIndex,
        switch: SwitchIndex,
        handle: PacketSlot,
        kind: FrameKind,
    ) {
        let end = &self.ends[port];
        let (index, node, id) = (end.index, end.node, end.id);
        let packet = self.packets.get_mut(handle);
        let known = packet.take_out();
        let (dst, hash, bytes, queue) = (packet.dst(), packet.hash, packet.bytes, packet.queue);
        let next = match known {
            Some(_) => known,
            None => self
                .router
                .next_hop(node, dst, hash)
                // The ports of a node are numbered one after the other.
                .map(|out| PortIndex(port.0.wrapping_add(out.0).wrapping_sub(id.0))),
        };
        let Some(out) = next else {
            self.lose(cx, port, handle);
            return;
        };
        let leaving = &self.ends[out];
        if !leaving.up {
            self.lose(cx, out, handle);
            return;
        }
        let out_index = leaving.index;
        let waits = leaving.free_scheduled;
        let is_free = !waits && !leaving.is_busy(cx.now, cx.key);
        let frame = Frame {
            handle: handle.0,
            bytes,
            in_port: index,
            queue,
            kind,
        };
        if self.delays.is_some() && self.packets.get(handle).mark().followed {
            self.note_arrival(cx.now, out, handle);
        }
        let (device, memory) = (&mut self.switches[switch], &mut self.memory);
        if is_free && device.is_idle(memory, out_index, queue) {
            let mut frames = frame_access!(self, cx, node);
            let now_ns = cx.now.as_ns();
            match device.forward(memory, now_ns, out_index, frame, &mut frames) {
                Ok(Some(departure)) => self.send(cx, out, departure),
                Ok(None) => self.pause_and_send(cx, port, out),
                Err(Refused) => self.drop_packet(cx, handle),
            }
            return;
        }
        match device.enqueue(memory, out_index, frame) {
            Ok(false) if waits => {}
            Ok(false) => self.switch_transmit(cx, out),
            Ok(true) => self.pause_and_send(cx, port, out),
            Err(Refused) => self.drop_packet(cx, handle),
        }
    }

    /// A PAUSE was queued on the port by which a packet came in; both ports have work.
    #[cold]
    fn pause_and_send(&mut self, cx: &mut Context<'_>, port: PortIndex, out: PortIndex) {
        self.chance.pfc_frame();
        self.note_pause(cx, port);
        self.switch_transmit(cx, port);
        self.switch_transmit(cx, out);
    }

    /// Queues a packet of a reduction at a switch's port, in the control queue.
    pub(super) fn send_control(
        &mut self,
        cx: &mut Context<'_>,
        out: PortIndex,
        handle: PacketSlot,
    ) {
        let end = &self.ends[out];
        let (Device::Switch(switch), index) = (end.device, end.index) else {
            return;
        };
        let frame = Frame {
            handle: handle.0,
            bytes: self.packets.get(handle).bytes,
            // The control queue has no account of where packets came in.
            in_port: index,
            queue: QUEUE_ACKS,
            kind: FrameKind::Plain,
        };
        match self.switches[switch].enqueue(&mut self.memory, index, frame) {
            Ok(_) => self.switch_transmit(cx, out),
            Err(Refused) => self.drop_packet(cx, handle),
        }
    }

    /// Queues copies of a packet at the ports of a switch; `copies`: by which port each leaves, and the packet.
    pub(super) fn send_copies(
        &mut self,
        cx: &mut Context<'_>,
        port: PortIndex,
        switch: SwitchIndex,
        frame: Frame,
        copies: &[(u16, u32)],
    ) -> Result<(), Refused> {
        let node = self.ends[port].node;
        let mut frames = frame_access!(self, cx, node);
        let pause =
            self.switches[switch].enqueue_copies(&mut self.memory, copies, frame, &mut frames)?;
        if pause {
            self.chance.pfc_frame();
            self.note_pause(cx, port);
            self.switch_transmit(cx, port);
        }
        for &(out, _) in copies {
            self.switch_transmit(cx, self.port_on(port, out));
        }
        Ok(())
    }

    /// Empties the queues of a switch's port; its packets.
    pub(super) fn flush(
        &mut self,
        cx: &mut Context<'_>,
        port: PortIndex,
        switch: SwitchIndex,
    ) -> Vec<PacketSlot> {
        let end = &self.ends[port];
        let (index, node) = (end.index, end.node);
        let mut lost = Vec::new();
        let frames = frame_access!(self, cx, node);
        let resumed = self.switches[switch].flush(&mut self.memory, index, &frames, |frame| {
            lost.push(PacketSlot(frame.handle));
        });
        for other in resumed {
            self.switch_transmit(cx, self.port_on(port, other));
        }
        lost
    }

    /// A packet is lost at a port.
    pub(super) fn lose(&mut self, cx: &mut Context<'_>, port: PortIndex, handle: PacketSlot) {
        self.history[port].lost += 1;
        self.drop_packet(cx, handle);
    }

    /// A packet is lost; its bytes are accounted for.
    pub(super) fn drop_packet(&mut self, cx: &mut Context<'_>, handle: PacketSlot) {
        let packet = self.packets.get(handle);
        if packet.kind.is_data() {
            cx.summary.payload_discarded += u64::from(packet.payload);
        }
        match packet.kind {
            PacketKind::Offload => {
                self.datagrams.take(packet.datagram());
            }
            PacketKind::RailData | PacketKind::RailControl => {
                self.segments.free(packet.segment());
            }
            _ => {}
        }
        cx.summary.drops += 1;
        self.packets.remove(handle);
    }

    /// A packet is not taken; its bytes are accounted for.
    pub(super) fn discard(&mut self, cx: &mut Context<'_>, handle: PacketSlot) {
        cx.summary.payload_discarded += u64::from(self.packets.get(handle).payload);
        self.packets.remove(handle);
    }

    /// The transmit side of a port stops or goes on, as a PFC frame says; the classes that are paused now.
    pub(super) fn pause(
        &mut self,
        cx: &mut Context<'_>,
        port: PortIndex,
        class: u8,
        pause: bool,
    ) -> u8 {
        let bit = 1u8 << class;
        let end = &mut self.ends[port];
        let before = end.paused;
        end.paused = if pause { before | bit } else { before & !bit };
        let (after, index, device) = (end.paused, end.index, end.device);
        cx.summary.pauses += u64::from(pause);
        if before == 0 && after != 0 {
            self.history[port].paused_since = cx.now;
            self.paused_ports += 1;
        } else if before != 0 && after == 0 {
            let pause = self.end_pause(cx.now, port);
            cx.record(pause.node, Record::Pause(pause));
        }
        if let Device::Switch(switch) = device {
            self.switches[switch].set_paused(&mut self.memory, index, class, pause);
        }
        after
    }

    /// A pause ends `now`: what is recorded of it.
    pub(super) fn end_pause(&mut self, now: Time, port: PortIndex) -> PauseRecord {
        let end = &self.ends[port];
        let (node, number) = (end.node, end.number());
        let history = &mut self.history[port];
        let start = std::mem::replace(&mut history.paused_since, Time::NEVER);
        history.paused_total += now.since(start);
        self.paused_ports -= 1;
        PauseRecord {
            node,
            port: number,
            start,
            end: now,
        }
    }

    /// Whether the link of a port failed while a packet that arrives now was on it.
    pub(super) fn was_cut(&self, cx: &Context<'_>, port: PortIndex, bytes: u32) -> bool {
        let end = &self.ends[port];
        let on_the_wire: Span = end.transmission_time(&cx.semantics, bytes) + end.delay;
        let failed_at = self.history[port].failed_at;
        failed_at != Time::NEVER && failed_at + on_the_wire >= cx.now
    }

    /// The port with index `index` on the node of `port`.
    #[inline]
    pub(super) fn port_on(&self, port: PortIndex, index: u16) -> PortIndex {
        let own = u32::from(self.ends[port].index);
        PortIndex(port.0 - own + u32::from(index))
    }

    /// A port of the fabric on the node of `port`.
    #[inline(always)]
    pub(super) fn here(&self, port: PortIndex, other: PortId) -> PortIndex {
        let id = self.ends[port].id;
        PortIndex(port.0.wrapping_add(other.0).wrapping_sub(id.0))
    }

    /// The node that a port is on.
    pub(super) fn node(&self, port: PortIndex) -> NodeId {
        self.ends[port].node
    }
}
