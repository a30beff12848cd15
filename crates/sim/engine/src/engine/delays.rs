//! What keeps the last packets of messages on their way, where a run records it ([`RunConfig::record_delays`]).
//!
//! Every port counts for how long it sent packets of each class. A packet that carries a message's last byte is followed: the
//! counts when it comes to a port and when it leaves say who was sent before it. What is known is reported where it is
//! known; [`crate::blame`] puts it together.
//!
//! [`RunConfig::record_delays`]: crate::RunConfig::record_delays

use raddle_dataplane::FrameKind;
use raddle_units::{Span, Time};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{
    context::Context, flow::FlowTo, link::Device, process::Base, records::Record, wires::Wires,
};
use crate::{
    index::{FlowSlot, List, PacketSlot, PortIndex},
    packet::{Mark, Packet, PacketKind},
    record::{ClassTime, DelayRecord, PacketName, PauseCause, Sent, Waited},
};

/// Classes whose times lie in a port's own row; those of more are elsewhere, which takes longer.
const CLASSES_IN_ROW: usize = 6;

/// For how long a port sent, by class of messages.
#[derive(Clone, Debug, Default)]
struct Sending {
    /// At 0: packets that no class is known of; then class by class.
    by_class: SmallVec<[Span; CLASSES_IN_ROW]>,
    /// The place in it of the packet that is on the wire, or was last.
    last: usize,
    /// Until when that packet is on the wire.
    until: Time,
}

impl Sending {
    #[inline]
    fn add(&mut self, class: Option<u8>, now: Time, done: Time) {
        self.until = done;
        self.last = place_of(class);
        if self.last >= self.by_class.len() {
            self.by_class.resize(self.last + 1, Span::ZERO);
        }
        self.by_class[self.last] += done.since(now);
    }

    /// What a port sends from now on, counted from what it has sent.
    fn at_instant(&self, now: Time) -> Self {
        let mut counted = self.clone();
        if self.until > now
            && let Some(own) = counted.by_class.get_mut(self.last)
        {
            *own -= self.until.since(now);
        }
        counted
    }

    /// What was sent since then, in order of classes, without `own` of a class.
    fn since(&self, then: &Self, class: Option<u8>, own: Span) -> Vec<ClassTime> {
        let before = |place: usize| then.by_class.get(place).copied().unwrap_or_default();
        let all = self.by_class.iter().enumerate().map(|(place, &time)| {
            let class_there = place.checked_sub(1).map(|class| class as u8);
            let left_out = if class_there == class {
                own
            } else {
                Span::ZERO
            };
            ClassTime {
                class: class_there,
                time: time - before(place) - left_out,
            }
        });
        all.filter(|it| it.time != Span::ZERO).collect()
    }
}

/// Where times of a class are counted.
fn place_of(class: Option<u8>) -> usize {
    class.map_or(0, |class| usize::from(class) + 1)
}

/// A flow at its card.
#[derive(Debug)]
struct Begun {
    sending: Sending,
    paused: Span,
    /// For how long its own packets were sent.
    own: Span,
    /// When the last of them was through, or the flow began.
    through: Time,
    /// The first byte that was not sent yet.
    next: u64,
    /// As [`Sent`] has them.
    gaps_once: Span,
    gaps_again: Span,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Delays {
    ports: List<PortIndex, Sending>,
    /// Followed packets in switches: when they came, and what their port had sent.
    waiting: FxHashMap<PacketSlot, (Time, Sending)>,
    begun: FxHashMap<FlowSlot, Begun>,
}

impl Delays {
    pub(super) fn new(ports: usize) -> Self {
        let mut all = Self::default();
        for _ in 0..ports {
            all.ports.push(Sending::default());
        }
        all
    }
}

impl PacketName {
    pub(super) fn of(packet: &Packet) -> Self {
        Self {
            src: packet.src,
            hash: packet.hash,
            sent_at: packet.sent_at,
        }
    }
}

impl Context<'_> {
    /// Whether messages of a class are followed.
    #[inline]
    pub(super) fn follows(&self, class: u8) -> bool {
        self.config
            .record_delays
            .is_some_and(|below| u16::from(class) < below)
    }

    /// The last byte of a message has come to its receiver.
    #[cold]
    #[inline(never)]
    pub(super) fn note_delivery(&mut self, packet: &Packet) {
        let record = DelayRecord::Delivered(PacketName::of(packet), self.now);
        self.record(packet.dst(), Record::Delay(record));
    }
}

impl Wires<'_> {
    /// A port begins to send a packet.
    #[inline]
    pub(super) fn note_departure(
        &mut self,
        cx: &mut Context<'_>,
        port: PortIndex,
        handle: PacketSlot,
    ) {
        let mark = self.packets.get(handle).mark();
        let Some(delays) = &mut self.delays else {
            return;
        };
        let done = self.ends[port].busy_until;
        delays.ports[port].add(mark.class, cx.now, done);
        if mark.followed {
            self.note_followed(cx, port, handle, mark.class);
        }
    }

    /// A followed packet leaves a port.
    #[cold]
    #[inline(never)]
    fn note_followed(
        &mut self,
        cx: &mut Context<'_>,
        port: PortIndex,
        handle: PacketSlot,
        class: Option<u8>,
    ) {
        // Its acknowledgement is not followed.
        let is_data = self.packets.get(handle).kind == PacketKind::Data;
        let Some(delays) = self.delays.as_mut().filter(|_| is_data) else {
            return;
        };
        let Some((since, then)) = delays.waiting.remove(&handle) else {
            return;
        };
        if since == cx.now {
            return;
        }
        // The packet itself has been counted already.
        let own = self.ends[port].busy_until.since(cx.now);
        let sent = delays.ports[port].since(&then, class, own);
        let end = &self.ends[port];
        let waited = Waited {
            packet: PacketName::of(self.packets.get(handle)),
            node: end.node,
            port: end.number(),
            since,
            until: cx.now,
            sent,
        };
        cx.record(end.node, Record::Delay(DelayRecord::Waited(waited)));
    }

    /// A port begins to send a frame that is no packet.
    #[cold]
    #[inline(never)]
    pub(super) fn note_pfc_frame(&mut self, cx: &Context<'_>, port: PortIndex) {
        if let Some(delays) = &mut self.delays {
            let done = self.ends[port].busy_until;
            delays.ports[port].add(None, cx.now, done);
        }
    }

    /// A followed packet comes to the port of a switch by which it will leave.
    #[cold]
    #[inline(never)]
    pub(super) fn note_arrival(&mut self, now: Time, out: PortIndex, handle: PacketSlot) {
        if let Some(delays) = &mut self.delays
            // Its acknowledgement is not followed.
            && self.packets.get(handle).kind == PacketKind::Data
        {
            let sending = delays.ports[out].at_instant(now);
            delays.waiting.insert(handle, (now, sending));
        }
    }

    /// A switch pauses the peer of a port: by which port most of what came in there is to leave, and whose packets wait at that
    /// port.
    #[cold]
    #[inline(never)]
    pub(super) fn note_pause(&mut self, cx: &mut Context<'_>, port: PortIndex) {
        let end = &self.ends[port];
        let (Device::Switch(switch), index, node) = (end.device, end.index, end.node) else {
            return;
        };
        if self.delays.is_none() {
            return;
        }
        let waiting = |out| self.switches[switch].waiting(&self.memory, out);
        let count = cx.fabric.ports_of(node).len() as u16;
        let held = |out: u16| {
            let frames = waiting(out).filter(|frame| frame.in_port == index);
            frames.map(|frame| u64::from(frame.bytes)).sum::<u64>()
        };
        // Of equals the one with the lowest number.
        let fullest = (0..count).max_by_key(|&out| (held(out), std::cmp::Reverse(out)));
        let Some(out) = fullest else {
            return;
        };
        let mut classes: Vec<(Option<u8>, u64)> = Vec::new();
        for frame in waiting(out) {
            if matches!(frame.kind, FrameKind::Pause | FrameKind::Resume) {
                continue;
            }
            let class = self.packets.get(PacketSlot(frame.handle)).mark().class;
            let bytes = u64::from(frame.bytes);
            match classes.iter_mut().find(|(other, _)| *other == class) {
                Some((_, sum)) => *sum += bytes,
                None => classes.push((class, bytes)),
            }
        }
        classes.sort_unstable_by_key(|&(class, bytes)| (std::cmp::Reverse(bytes), class));
        let cause = PauseCause {
            node,
            port: index + 1,
            at: cx.now,
            towards: out + 1,
            class: classes.first().and_then(|(class, _)| *class),
        };
        cx.record(node, Record::Delay(DelayRecord::Pause(cause)));
    }

    /// For how long a port has been paused so far.
    fn paused_so_far(&self, now: Time, port: PortIndex) -> Span {
        let history = &self.history[port];
        let present = if self.ends[port].paused == 0 {
            Span::ZERO
        } else {
            now.since(history.paused_since)
        };
        history.paused_total + present
    }
}

impl Base<'_> {
    /// A flow to a host begins.
    #[cold]
    pub(super) fn note_begin(&mut self, index: FlowSlot) {
        let flow = &self.hosts.flows[index];
        let port = self.hosts.nics[flow.nic].port;
        if !self.cx.follows(flow.class) {
            return;
        }
        let paused = self.wires.paused_so_far(self.cx.now, port);
        if let Some(delays) = &mut self.wires.delays {
            let begun = Begun {
                sending: delays.ports[port].at_instant(self.cx.now),
                paused,
                own: Span::ZERO,
                through: self.cx.now,
                next: 0,
                gaps_once: Span::ZERO,
                gaps_again: Span::ZERO,
            };
            delays.begun.insert(index, begun);
        }
    }

    /// A flow's packet is about to leave its card.
    #[cold]
    #[inline(never)]
    pub(super) fn note_sent(&mut self, index: FlowSlot, handle: PacketSlot) {
        let now = self.cx.now;
        let flow = &self.hosts.flows[index];
        let port = self.hosts.nics[flow.nic].port;
        let packet = *self.wires.packets.get(handle);
        let is_last = packet.seq() + u64::from(packet.payload) >= flow.sender.size();
        let to_host = matches!(flow.to, FlowTo::Host(_));
        let followed = is_last && to_host && self.cx.follows(flow.class);
        let class = Some(flow.class);
        let sent = self.wires.packets.get_mut(handle);
        sent.set_mark(Mark { class, followed });
        let paused = self.wires.paused_so_far(now, port);
        let (end, semantics) = (&self.wires.ends[port], &self.cx.semantics);
        let taken = end.transmission_time(semantics, packet.bytes);
        let full = self.cx.layout.mtu as u32 + self.cx.layout.header_bytes;
        let once = end.transmission_time(semantics, full) * (packet.seq() / self.cx.layout.mtu);
        let (node, number) = (end.node, end.number());
        let Some(delays) = &mut self.wires.delays else {
            return;
        };
        let Some(begun) = delays.begun.get_mut(&index) else {
            return;
        };
        let gap = now.since(begun.through);
        if packet.seq() < begun.next {
            begun.gaps_again += gap;
        } else {
            begun.gaps_once += gap;
        }
        begun.next = begun.next.max(packet.seq() + u64::from(packet.payload));
        begun.through = now + taken;
        if followed {
            delays.waiting.remove(&handle);
            let sent = delays.ports[port].since(&begun.sending, Some(flow.class), begun.own);
            let record = Sent {
                packet: PacketName::of(&packet),
                dst: packet.dst(),
                sport: flow.sport,
                class: flow.class,
                tag: flow.tag,
                start: flow.start,
                node,
                port: number,
                sent,
                once,
                again: begun.own - once,
                paused: paused - begun.paused,
                gaps_once: begun.gaps_once,
                gaps_again: begun.gaps_again,
            };
            self.cx
                .record(record.node, Record::Delay(DelayRecord::Sent(record)));
        }
        begun.own += taken;
    }

    /// A flow is over at its sender.
    pub(super) fn note_end(&mut self, index: FlowSlot) {
        if let Some(delays) = &mut self.wires.delays {
            delays.begun.remove(&index);
        }
    }
}
