//! Who kept whom: where the time of messages went, from what a run reports of their last packets.
//!
//! The time of a message, from its start until its receiver has all of it, is taken apart along the way of the packet with its
//! last byte. Parts add up to the time exactly, since what no record explains is the transfer itself: sending the message's
//! own packets, and the delays of links and switches.

use std::collections::BTreeMap;

use raddle_fabric::Fabric;
use raddle_units::{NodeId, Span, Time};
use rustc_hash::FxHashMap;

use crate::{
    Recorder,
    record::{
        ClassTime, DelayRecord, FlowRecord, PacketName, PauseCause, PauseRecord, Sent, Waited,
    },
};

/// Most switches from a paused port to the one whose queue is the reason: more would be a circle.
const MOST_STEPS: usize = 64;

/// What time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Sending the message itself, and the delays of links and switches on its way.
    Transfer,
    /// Congestion control held it back at its sender.
    Pacing,
    /// It waited behind other packets at a port.
    Queue,
    /// A port on its way was paused by PFC.
    Pause,
    /// Packets were sent again that were lost, and until then the sender waited.
    Retransmission,
}

impl Cause {
    /// As results name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transfer => "transfer",
            Self::Pacing => "pacing",
            Self::Queue => "queue",
            Self::Pause => "pause",
            Self::Retransmission => "retransmission",
        }
    }
}

/// A port: its node, and its number there, from 1.
pub type PortName = (NodeId, u16);

/// Part of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// What it was spent on.
    pub cause: Cause,
    /// The class of messages that was served before it, or whose queue is the reason of a pause; its own is possible.
    pub culprit: Option<u8>,
    /// Where: of a pause the root, the port whose queue made switches pause each other.
    pub port: Option<PortName>,
    /// How much.
    pub time: Span,
}

/// A message that was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Sending host.
    pub src: NodeId,
    /// Receiving host.
    pub dst: NodeId,
    /// Source port of the flow.
    pub sport: u16,
    /// Index into the workload's classes.
    pub class: u8,
    /// The message's tag.
    pub tag: u64,
    /// When it started.
    pub start: Time,
    /// When its receiver had all of it.
    pub delivered: Time,
    waits: Waits,
}

/// What a packet waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Waits {
    sent: Sent,
    on_the_way: Vec<Waited>,
}

/// A flow: sending host, source port, and when it started.
type FlowName = (NodeId, u16, Time);

/// Takes the records of a run and tells of its messages.
#[derive(Debug, Default)]
pub struct Journal {
    /// Last packets of messages, until their flows have ended.
    open: FxHashMap<PacketName, Waits>,
    /// The same by flow: one each, and one for each time that it was sent again, since any of them may be the first to come.
    last_packets: FxHashMap<FlowName, Vec<PacketName>>,
    taken: Vec<Taken>,
    pauses: BTreeMap<PortName, Vec<PauseRecord>>,
    causes: BTreeMap<PortName, Vec<PauseCause>>,
}

impl Journal {
    /// Takes a record.
    pub fn delay(&mut self, record: &DelayRecord) {
        match record {
            DelayRecord::Sent(sent) => {
                let flow = (sent.packet.src, sent.sport, sent.start);
                self.last_packets.entry(flow).or_default().push(sent.packet);
                let waits = Waits {
                    sent: sent.clone(),
                    on_the_way: Vec::new(),
                };
                self.open.insert(sent.packet, waits);
            }
            DelayRecord::Waited(waited) => {
                if let Some(waits) = self.open.get_mut(&waited.packet) {
                    waits.on_the_way.push(waited.clone());
                }
            }
            DelayRecord::Delivered(packet, delivered) => {
                if let Some(waits) = self.open.remove(packet) {
                    self.taken.push(Taken {
                        src: packet.src,
                        dst: waits.sent.dst,
                        sport: waits.sent.sport,
                        class: waits.sent.class,
                        tag: waits.sent.tag,
                        start: waits.sent.start,
                        delivered: *delivered,
                        waits,
                    });
                }
            }
            DelayRecord::Pause(cause) => {
                let causes = self.causes.entry((cause.node, cause.port)).or_default();
                causes.push(*cause);
            }
        }
    }

    /// Takes a flow, which is over: what is said of it from now on is not kept.
    pub fn flow(&mut self, flow: &FlowRecord) {
        let name = (flow.src, flow.sport, flow.start);
        for packet in self.last_packets.remove(&name).unwrap_or_default() {
            self.open.remove(&packet);
        }
    }

    /// Last packets that are still followed.
    #[must_use]
    pub fn followed(&self) -> usize {
        self.open.len()
    }

    /// Takes a pause.
    pub fn pause(&mut self, pause: &PauseRecord) {
        let pauses = self.pauses.entry((pause.node, pause.port)).or_default();
        pauses.push(*pause);
    }

    /// The messages that were delivered, in order.
    #[must_use]
    pub fn messages(&self) -> &[Taken] {
        &self.taken
    }

    /// Where the time of a message went, the largest part first; parts add up to it.
    #[must_use]
    pub fn parts(&self, message: &Taken, fabric: &Fabric) -> Vec<Part> {
        let mut parts = Parts::default();
        let Waits { sent, on_the_way } = &message.waits;
        let at = (sent.node, sent.port);
        parts.queue(&sent.sent, at);
        let busy: Span = sent.sent.iter().map(|it| it.time).sum();
        let before = sent.packet.sent_at.since(sent.start);
        // Its own packets, and what the card sent of others; the rest it was idle.
        let own = busy + sent.once + sent.again;
        debug_assert!(own <= before, "a card sent for {own} in {before}");
        let idle = Span(before.0.saturating_sub(own.0));
        let paused = idle.min(sent.paused);
        self.pauses_of(
            at,
            (sent.start, sent.packet.sent_at),
            paused,
            fabric,
            &mut parts,
        );
        // What it was neither sending nor paused goes to loss as far as its waits came before packets that were sent again.
        let held = idle - paused;
        let gaps = sent.gaps_once + sent.gaps_again;
        let lost = u128::from(held.0) * u128::from(sent.gaps_again.0) / u128::from(gaps.0.max(1));
        let lost = Span(lost as u64);
        parts.add(Cause::Pacing, None, Some(at), held - lost);
        parts.add(Cause::Retransmission, None, Some(at), lost + sent.again);
        for waited in on_the_way {
            let at = (waited.node, waited.port);
            parts.queue(&waited.sent, at);
            let busy: Span = waited.sent.iter().map(|it| it.time).sum();
            let all = waited.until.since(waited.since);
            let rest = Span(all.0.saturating_sub(busy.0));
            self.pauses_of(at, (waited.since, waited.until), rest, fabric, &mut parts);
        }
        let all = message.delivered.since(message.start);
        let explained: Span = parts.found.values().copied().sum();
        debug_assert!(explained <= all, "{explained} of {all} are explained");
        parts.add(
            Cause::Transfer,
            None,
            None,
            Span(all.0.saturating_sub(explained.0)),
        );
        parts.ordered()
    }

    /// Shares out a time for which a port was paused among the roots of its pauses between two instants.
    fn pauses_of(
        &self,
        at: PortName,
        (since, until): (Time, Time),
        time: Span,
        fabric: &Fabric,
        parts: &mut Parts,
    ) {
        if time == Span::ZERO {
            return;
        }
        let pauses = self.pauses.get(&at).map(Vec::as_slice).unwrap_or_default();
        let first = pauses.partition_point(|pause| pause.end <= since);
        let during = pauses[first..].iter().take_while(|it| it.start < until);
        let overlaps: Vec<(Span, &PauseRecord)> = during
            .map(|pause| (pause.end.min(until).since(pause.start.max(since)), pause))
            .collect();
        let all: u128 = overlaps.iter().map(|(time, _)| u128::from(time.0)).sum();
        let mut left = time;
        for (place, (overlap, pause)) in overlaps.iter().enumerate() {
            let own = if place + 1 == overlaps.len() {
                left
            } else {
                Span((u128::from(time.0) * u128::from(overlap.0) / all.max(1)) as u64)
            };
            left -= own;
            let (root, culprit) = self.root(at, pause.start, fabric);
            parts.add(Cause::Pause, culprit, Some(root), own);
        }
        parts.add(
            Cause::Pause,
            None,
            Some(at),
            if overlaps.is_empty() {
                left
            } else {
                Span::ZERO
            },
        );
    }

    /// The port whose queue is the reason that a port is paused from an instant on, and whose packets most of that queue are.
    fn root(&self, at: PortName, since: Time, fabric: &Fabric) -> (PortName, Option<u8>) {
        let (mut at, mut since, mut culprit) = (at, since, None);
        for _ in 0..MOST_STEPS {
            let Some(cause) = self.cause(at, since, fabric) else {
                break;
            };
            at = (cause.node, cause.towards);
            culprit = cause.class;
            let pauses = self.pauses.get(&at).map(Vec::as_slice).unwrap_or_default();
            let first = pauses.partition_point(|pause| pause.end <= cause.at);
            match pauses.get(first) {
                Some(pause) if pause.start <= cause.at => since = pause.start,
                _ => break,
            }
        }
        (at, culprit)
    }

    /// Why the peer of a port asked it to pause.
    fn cause(&self, (node, port): PortName, since: Time, fabric: &Fabric) -> Option<&PauseCause> {
        let own = fabric.ports_of(node).get(usize::from(port) - 1)?;
        let peer = fabric.port(own.peer);
        let causes = self.causes.get(&(peer.node, peer.number))?;
        let after = causes.partition_point(|cause| cause.at <= since);
        causes.get(after.checked_sub(1)?)
    }
}

/// A run whose records serve nothing but to say who kept whom.
impl Recorder for Journal {
    fn flow(&mut self, flow: &FlowRecord) {
        Self::flow(self, flow);
    }

    fn delay(&mut self, delay: &DelayRecord) {
        Self::delay(self, delay);
    }

    fn pause(&mut self, pause: &PauseRecord) {
        Self::pause(self, pause);
    }
}

/// Times by what they were spent on.
#[derive(Default)]
struct Parts {
    found: BTreeMap<(Cause, Option<u8>, Option<PortName>), Span>,
}

impl Parts {
    fn add(&mut self, cause: Cause, culprit: Option<u8>, port: Option<PortName>, time: Span) {
        if time != Span::ZERO {
            *self.found.entry((cause, culprit, port)).or_default() += time;
        }
    }

    fn queue(&mut self, sent: &[ClassTime], at: PortName) {
        for it in sent {
            self.add(Cause::Queue, it.class, Some(at), it.time);
        }
    }

    fn ordered(self) -> Vec<Part> {
        let all = self.found.into_iter();
        let mut parts: Vec<Part> = all
            .map(|((cause, culprit, port), time)| Part {
                cause,
                culprit,
                port,
                time,
            })
            .collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.time));
        parts
    }
}
