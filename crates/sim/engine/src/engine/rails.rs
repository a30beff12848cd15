//! Messages over rails: connections of `raddle_rails` on hosts. Their packets are in `rail_packets.rs`.

use std::collections::VecDeque;

use raddle_fabric::Fabric;
use raddle_rails::{Connection, Event};
use raddle_units::{NodeId, PortId, Span, Time};
use raddle_wire::rails::Packet as Contents;
use raddle_workload::{MAX_SIZE_BYTES, Message};
use rustc_hash::FxHashMap;

use super::{
    bus::{CardBus, HostBus},
    process::Base,
    records::Record,
    what::{Kind, What},
};
use crate::{
    host_rails::Rails,
    index::{HalfIndex, List},
    record::FlowRecord,
    setup::{RunConfig, SetupError},
};

/// Ports of a connection: classes of messages.
const MOST_PORTS: usize = 64;

/// What a packet over rails carries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Whom it is for.
    pub(super) half: HalfIndex,
    pub(super) contents: Contents,
}

/// One host's half of a connection. The other half is its neighbour in the list.
#[derive(Debug)]
pub(super) struct HalfConnection {
    pub(super) core: Connection,
    pub(super) host: NodeId,
    pub(super) peer: NodeId,
    /// Its place among the halves of its host.
    place: u32,
    /// Messages that no send token is left for.
    waiting: VecDeque<Message>,
    /// By port: messages that the core has and the peer has not, in order.
    under_way: Vec<VecDeque<Message>>,
    /// Ports of this half that are open (bits).
    open: u64,
    /// When its timer is due ([`Time::NEVER`]: it has none).
    timer: Time,
    failed: bool,
    /// Its ways are recorded.
    pub(super) recorded: bool,
}

/// What the connections of a host share.
#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) bus: HostBus,
    /// Segments on the bus and in the cards.
    pub(super) held: u32,
    halves: Vec<HalfIndex>,
    /// Half that is asked first for something to send.
    first: usize,
}

/// All connections of a run.
#[derive(Debug, Default)]
pub(super) struct RailHosts<'a> {
    /// `None`: messages between hosts are flows.
    pub(super) plan: Option<&'a Rails>,
    /// By node.
    pub(super) hosts: Vec<Host>,
    /// By port.
    pub(super) cards: Vec<CardBus>,
    pub(super) halves: List<HalfIndex, HalfConnection>,
    /// By (host, peer).
    pairs: FxHashMap<(NodeId, NodeId), HalfIndex>,
}

impl HalfIndex {
    /// The other half of the connection.
    pub(super) const fn other(self) -> Self {
        Self(self.0 ^ 1)
    }
}

impl<'a> RailHosts<'a> {
    pub(super) fn new(config: &'a RunConfig, fabric: &Fabric) -> Result<Self, SetupError> {
        let Some(rails) = config.rails.as_deref() else {
            return Ok(Self::default());
        };
        let marks = config.marks.is_some();
        let problem = marks.then_some("recorded congestion marks are possible without rails only");
        if let Some(problem) = problem.or_else(|| rails.problem()) {
            return Err(SetupError::Rails { problem });
        }
        let hosts = (0..fabric.node_count()).map(|_| Host::default()).collect();
        let cards = (0..fabric.port_count()).map(|_| CardBus::default());
        Ok(Self {
            plan: Some(rails),
            hosts,
            cards: cards.collect(),
            ..Self::default()
        })
    }

    /// When a half's timer is due.
    pub(super) fn timer(&self, half: HalfIndex) -> Time {
        self.halves[half].timer
    }

    /// Opens a port of a half if it is not open.
    fn open(&mut self, half: HalfIndex, port: u8, buffers: u32) -> Result<(), String> {
        let half = &mut self.halves[half];
        if half.open >> port & 1 == 1 {
            return Ok(());
        }
        half.open |= 1 << port;
        let number = u16::from(port);
        half.core
            .open_port(number, MAX_SIZE_BYTES)
            .and_then(|()| (0..buffers).try_for_each(|_| half.core.provide(number, 0)))
            .map_err(|error| error.to_string())
    }

    /// Segments that were sent again.
    pub(super) fn resent(&self) -> u64 {
        let counted = self.halves.iter().map(|half| half.core.counters().resent);
        counted.sum()
    }

    // Messages.

    pub(super) fn start(&mut self, base: &mut Base<'_>, message: &Message, dst: NodeId) {
        if let Err(problem) = self.begin(base, message, dst) {
            base.cx.stop(SetupError::RailMessage {
                tag: message.tag,
                src: message.src,
                dst,
                problem,
            });
        }
    }

    fn begin(&mut self, base: &mut Base<'_>, message: &Message, dst: NodeId) -> Result<(), String> {
        let Message { src, class, .. } = *message;
        let Some(rails) = self.plan else {
            return Ok(());
        };
        if usize::from(class) >= MOST_PORTS {
            return Err(format!("class {class} is not a port: ports are 0 to 63"));
        }
        let half = self.connect(base, rails, src, dst)?;
        base.cx.summary.flows_started += 1;
        if base.cx.config.record_paths {
            self.record_ways(base, half);
        }
        if self.halves[half].failed {
            record_message(base, message, None);
            return Ok(());
        }
        base.hosts.live += 1;
        self.open(half.other(), class, rails.buffers)?;
        self.halves[half].waiting.push_back(*message);
        self.drain(base, half.other());
        self.drain(base, half);
        Ok(())
    }

    /// The half of a connection on `src`, which is made if there is none.
    fn connect(
        &mut self,
        base: &Base<'_>,
        rails: &Rails,
        src: NodeId,
        dst: NodeId,
    ) -> Result<HalfIndex, String> {
        if let Some(&half) = self.pairs.get(&(src, dst)) {
            return Ok(half);
        }
        let fabric = base.cx.fabric;
        if fabric.ports_of(src).len() != fabric.ports_of(dst).len() {
            return Err("one host has more rails than the other".to_owned());
        }
        for (host, peer) in [(src, dst), (dst, src)] {
            let epoch = self.halves.len() as u32 + 1;
            let ports = (0..).zip(fabric.ports_of(host));
            let port = |index: u32| PortId(fabric.first_port(host).0 + index);
            let rates = ports.map(|(index, _)| fabric.rate(port(index))).collect();
            let config = rails.end(host, peer, epoch, rates);
            let core = Connection::new(base.cx.now, config).map_err(|error| error.to_string())?;
            let half = self.halves.push(HalfConnection {
                core,
                host,
                peer,
                place: self.hosts[host.index()].halves.len() as u32,
                waiting: VecDeque::new(),
                under_way: Vec::new(),
                open: 0,
                timer: Time::NEVER,
                failed: false,
                recorded: false,
            });
            self.hosts[host.index()].halves.push(half);
            self.pairs.insert((host, peer), half);
        }
        self.pairs
            .get(&(src, dst))
            .copied()
            .ok_or_else(|| "no connection".to_owned())
    }

    // A half after anything has happened to it.

    /// Takes out what a half has to send and to tell, and sets its timer.
    pub(super) fn drain(&mut self, base: &mut Base<'_>, half: HalfIndex) {
        loop {
            self.halves[half].feed();
            let held_back = self.send_all(base, half);
            let Some(event) = self.halves[half].core.poll_event() else {
                self.set_timer(base, half, held_back);
                return;
            };
            self.happened(base, half, event);
        }
    }

    /// Sends what a half has; true where the host has no room for more.
    fn send_all(&mut self, base: &mut Base<'_>, half: HalfIndex) -> bool {
        loop {
            if self.is_full(base, half) {
                return true;
            }
            match self.halves[half].core.poll_transmit(base.cx.now) {
                Some(transmit) => self.send(base, half, &transmit),
                None => return false,
            }
        }
    }

    /// Whether the half's host holds as many segments as it may.
    fn is_full(&self, base: &Base<'_>, half: HalfIndex) -> bool {
        let room = self.plan.map_or(0, |rails| rails.room);
        let host = self.halves[half].host;
        let ports = base.cx.fabric.ports_of(host).len() as u32;
        room > 0 && self.hosts[host.index()].held >= room.saturating_mul(ports)
    }

    /// Has the halves that a host held back look again, in turn.
    pub(super) fn drain_host(&mut self, base: &mut Base<'_>, host: NodeId) {
        if self.plan.is_none_or(|rails| rails.room == 0) {
            return;
        }
        let state = &mut self.hosts[host.index()];
        let count = state.halves.len();
        state.first = if state.first + 1 < count {
            state.first + 1
        } else {
            0
        };
        let first = state.first;
        for step in 0..count {
            let half = self.hosts[host.index()].halves[(first + step) % count];
            if self.is_full(base, half) {
                return;
            }
            self.drain(base, half);
        }
    }

    fn happened(&mut self, base: &mut Base<'_>, half: HalfIndex, event: Event) {
        match event {
            Event::Received { target_port, .. } => {
                // The buffer is free again.
                let provided = self.halves[half].core.provide(target_port, 0);
                debug_assert!(provided.is_ok(), "the port of a message is open");
                let sender = &mut self.halves[half.other()];
                let line = sender.under_way.get_mut(usize::from(target_port));
                if let Some(message) = line.and_then(VecDeque::pop_front) {
                    delivered(base, &message);
                }
            }
            Event::Failed(_) => self.give_up(base, half),
            // Send tokens that come back are used when the half is fed.
            Event::Sent { .. }
            | Event::SendFailed { .. }
            | Event::Returned { .. }
            | Event::Established
            | Event::RailUp { .. }
            | Event::RailDown { .. } => {}
        }
    }

    /// A half has failed: what it had is not delivered any more.
    fn give_up(&mut self, base: &mut Base<'_>, half: HalfIndex) {
        let half = &mut self.halves[half];
        half.failed = true;
        let mut lost: Vec<Message> = half.waiting.drain(..).collect();
        lost.extend(half.under_way.iter_mut().flat_map(|line| line.drain(..)));
        base.hosts.live -= lost.len() as i64;
        for message in lost {
            record_message(base, &message, None);
        }
    }

    /// At the end: messages that have not been delivered, in order of start.
    pub(super) fn record_rest(&mut self, base: &mut Base<'_>) {
        let halves = self.halves.iter_mut();
        let mut rest: Vec<Message> = halves
            .flat_map(|half| {
                let waiting = half.waiting.drain(..);
                let under_way = half.under_way.iter_mut().flat_map(|line| line.drain(..));
                waiting.chain(under_way).collect::<Vec<_>>()
            })
            .collect();
        rest.sort_by_key(|message| (message.start, message.src, message.dst, message.tag));
        for message in rest {
            record_message(base, &message, None);
        }
    }

    // Timers.

    /// Has a half look again when it is due. One that is held back by its host is drained when there is room.
    fn set_timer(&mut self, base: &mut Base<'_>, half: HalfIndex, held_back: bool) {
        let now = base.cx.now;
        let state = &mut self.halves[half];
        let due = match state.core.poll_timeout().unwrap_or(Time::NEVER) {
            due if due > now => due,
            _ if held_back => Time::NEVER,
            _ => now + Span::from_ns(1),
        };
        if due == std::mem::replace(&mut state.timer, due) || due == Time::NEVER {
            return;
        }
        let port = base.cx.first_port(state.host);
        let place = (Kind::RailTimer, port, state.place);
        base.cx.schedule(due, place, What::RailTimer(half));
    }

    pub(super) fn timer_is_due(&mut self, base: &mut Base<'_>, half: HalfIndex) {
        let state = &mut self.halves[half];
        state.timer = Time::NEVER;
        state.core.handle_timeout(base.cx.now);
        self.drain(base, half);
    }
}

impl HalfConnection {
    /// Hands over what send tokens are left for.
    fn feed(&mut self) {
        while let Some(message) = self.waiting.front() {
            let port = u16::from(message.class);
            let taken = self.core.send(port, port, message.size.0, message.tag);
            if taken.is_err() {
                return;
            }
            let (message, port) = (*message, usize::from(port));
            if self.under_way.len() <= port {
                self.under_way.resize_with(port + 1, VecDeque::new);
            }
            self.under_way[port].push_back(message);
            self.waiting.pop_front();
        }
    }
}

fn delivered(base: &mut Base<'_>, message: &Message) {
    base.hosts.live -= 1;
    base.cx.summary.flows_finished += 1;
    let fct = base.cx.now.since(message.start);
    record_message(base, message, Some(fct));
    if base.traffic.reacts() {
        base.traffic.delivered(&base.cx, message.src, message.tag);
        base.traffic.schedule_start(&mut base.cx);
    }
}

fn record_message(base: &mut Base<'_>, message: &Message, fct: Option<Span>) {
    let Message { src, dst, size, .. } = *message;
    let ideal_fct = dst
        .host()
        .map_or(Span::ZERO, |dst| base.ideal_fct(src, dst, size));
    let record = FlowRecord {
        src,
        dst,
        sport: message.class.into(),
        size,
        start: message.start,
        fct,
        ideal_fct,
        class: message.class,
        tag: message.tag,
    };
    base.cx.record(src, Record::Flow(record));
}
