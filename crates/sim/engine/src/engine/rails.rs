//! Messages over rails: connections of `raddle_rails` on hosts. Their packets are in `rail_packets.rs`.

use std::collections::VecDeque;

use raddle_fabric::Fabric;
use raddle_rails::{Connection, Event};
use raddle_units::{NodeId, PortId, Span, Time};
use raddle_workload::{MAX_SIZE_BYTES, Message};
use rustc_hash::FxHashMap;

use super::{
    Engine, Kind,
    bus::{CardBus, HostBus},
    rail_packets::Table,
};
use crate::{
    host_rails::Rails,
    record::FlowRecord,
    setup::{RunConfig, SetupError},
};

/// Ports of a connection: classes of messages.
const MOST_PORTS: usize = 64;

/// One host's half of a connection. The other half is its neighbour in the list.
#[derive(Debug)]
pub(super) struct HalfConnection {
    pub(super) core: Connection,
    pub(super) host: NodeId,
    pub(super) peer: NodeId,
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
    halves: Vec<u32>,
    /// Half that is asked first for something to send.
    first: usize,
}

/// All connections of a run.
#[derive(Debug, Default)]
pub(super) struct RailHosts {
    /// By node.
    pub(super) hosts: Vec<Host>,
    /// By port.
    pub(super) cards: Vec<CardBus>,
    pub(super) halves: Vec<HalfConnection>,
    /// By (host, peer).
    pairs: FxHashMap<(NodeId, NodeId), u32>,
    /// What packets carry.
    pub(super) contents: Table,
}

impl RailHosts {
    pub(super) fn new(config: &RunConfig, fabric: &Fabric) -> Result<Self, SetupError> {
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
            hosts,
            cards: cards.collect(),
            ..Self::default()
        })
    }

    pub(super) fn half(&mut self, half: u32) -> &mut HalfConnection {
        &mut self.halves[half as usize]
    }

    /// When a half's timer is due.
    pub(super) fn timer(&self, half: u32) -> Time {
        self.halves[half as usize].timer
    }

    /// Opens a port of a half if it is not open.
    fn open(&mut self, half: u32, port: u8, buffers: u32) -> Result<(), String> {
        let half = self.half(half);
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
}

impl Engine<'_> {
    // Messages.

    pub(super) fn start_on_rails(&mut self, message: Message) {
        let Message {
            src,
            dst,
            class,
            tag,
            ..
        } = message;
        let refuse = |problem: String| SetupError::RailMessage {
            tag,
            src,
            dst,
            problem,
        };
        let Some(rails) = self.config.rails.as_deref() else {
            return;
        };
        if usize::from(class) >= MOST_PORTS {
            return self.stop(refuse(format!(
                "class {class} is not a port: ports are 0 to 63"
            )));
        }
        let half = match self.connect(rails, src, dst) {
            Ok(half) => half,
            Err(problem) => return self.stop(refuse(problem)),
        };
        self.summary.flows_started += 1;
        if self.config.record_paths {
            self.record_rail_ways(half);
        }
        if self.rails.half(half).failed {
            return self.record_message(&message, None);
        }
        self.live_flows += 1;
        if let Err(problem) = self.rails.open(half ^ 1, class, rails.buffers) {
            return self.stop(refuse(problem));
        }
        self.rails.half(half).waiting.push_back(message);
        self.drain(half ^ 1);
        self.drain(half);
    }

    /// The half of a connection on `src`, which is made if there is none.
    fn connect(&mut self, rails: &Rails, src: NodeId, dst: NodeId) -> Result<u32, String> {
        if let Some(&half) = self.rails.pairs.get(&(src, dst)) {
            return Ok(half);
        }
        let (first, fabric) = (self.rails.halves.len() as u32, self.fabric);
        if fabric.ports_of(src).len() != fabric.ports_of(dst).len() {
            return Err("one host has more rails than the other".to_owned());
        }
        for (half, (host, peer)) in (first..).zip([(src, dst), (dst, src)]) {
            let ports = (0..).zip(fabric.ports_of(host));
            let port = |index: u32| PortId(fabric.first_port(host).0 + index);
            let rates = ports.map(|(index, _)| fabric.rate(port(index))).collect();
            let config = rails.end(host, peer, half + 1, rates);
            let core = Connection::new(self.now, config).map_err(|error| error.to_string())?;
            self.rails.halves.push(HalfConnection {
                core,
                host,
                peer,
                waiting: VecDeque::new(),
                under_way: Vec::new(),
                open: 0,
                timer: Time::NEVER,
                failed: false,
                recorded: false,
            });
            self.rails.hosts[host.index()].halves.push(half);
            self.rails.pairs.insert((host, peer), half);
        }
        Ok(first)
    }

    /// Hands over what send tokens are left for.
    fn feed(&mut self, half: u32) {
        let half = self.rails.half(half);
        while let Some(message) = half.waiting.front() {
            let port = u16::from(message.class);
            let taken = half.core.send(port, port, message.size.0, message.tag);
            if taken.is_err() {
                return;
            }
            let (message, port) = (*message, usize::from(port));
            if half.under_way.len() <= port {
                half.under_way.resize_with(port + 1, VecDeque::new);
            }
            half.under_way[port].push_back(message);
            half.waiting.pop_front();
        }
    }

    // A half after anything has happened to it.

    /// Takes out what a half has to send and to tell, and sets its timer.
    pub(super) fn drain(&mut self, half: u32) {
        loop {
            self.feed(half);
            let held_back = self.send_all(half);
            let Some(event) = self.rails.half(half).core.poll_event() else {
                self.set_timer(half, held_back);
                return;
            };
            self.happened(half, event);
        }
    }

    /// Sends what a half has; true where the host has no room for more.
    fn send_all(&mut self, half: u32) -> bool {
        let now = self.now;
        loop {
            if self.is_full(half) {
                return true;
            }
            match self.rails.half(half).core.poll_transmit(now) {
                Some(transmit) => self.send_on_rail(half, &transmit),
                None => return false,
            }
        }
    }

    /// Whether the half's host holds as many segments as it may.
    fn is_full(&self, half: u32) -> bool {
        let room = self.config.rails.as_deref().map_or(0, |rails| rails.room);
        let host = self.rails.halves[half as usize].host;
        let ports = self.fabric.ports_of(host).len() as u32;
        room > 0 && self.rails.hosts[host.index()].held >= room.saturating_mul(ports)
    }

    /// Has the halves that a host held back look again, in turn.
    pub(super) fn drain_host(&mut self, host: NodeId) {
        if self
            .config
            .rails
            .as_deref()
            .is_none_or(|rails| rails.room == 0)
        {
            return;
        }
        let state = &mut self.rails.hosts[host.index()];
        let count = state.halves.len();
        state.first = if state.first + 1 < count {
            state.first + 1
        } else {
            0
        };
        let first = state.first;
        for step in 0..count {
            let half = self.rails.hosts[host.index()].halves[(first + step) % count];
            if self.is_full(half) {
                return;
            }
            self.drain(half);
        }
    }

    fn happened(&mut self, half: u32, event: Event) {
        match event {
            Event::Received { target_port, .. } => {
                // The buffer is free again.
                let provided = self.rails.half(half).core.provide(target_port, 0);
                debug_assert!(provided.is_ok(), "the port of a message is open");
                let line = self
                    .rails
                    .half(half ^ 1)
                    .under_way
                    .get_mut(usize::from(target_port));
                if let Some(message) = line.and_then(VecDeque::pop_front) {
                    self.delivered_on_rails(&message);
                }
            }
            Event::Failed(_) => self.give_up(half),
            // Send tokens that come back are used when the half is fed.
            Event::Sent { .. }
            | Event::SendFailed { .. }
            | Event::Returned { .. }
            | Event::Established
            | Event::RailUp { .. }
            | Event::RailDown { .. } => {}
        }
    }

    fn delivered_on_rails(&mut self, message: &Message) {
        self.live_flows -= 1;
        self.summary.flows_finished += 1;
        self.record_message(message, Some(self.now.since(message.start)));
        if self.workload.has_dependencies() {
            self.workload.on_delivered(self.now, message.tag);
            self.schedule_start();
        }
    }

    /// A half has failed: what it had is not delivered any more.
    fn give_up(&mut self, half: u32) {
        let half = self.rails.half(half);
        half.failed = true;
        let mut lost: Vec<Message> = half.waiting.drain(..).collect();
        lost.extend(half.under_way.iter_mut().flat_map(|line| line.drain(..)));
        self.live_flows -= lost.len() as u64;
        for message in lost {
            self.record_message(&message, None);
        }
    }

    fn record_message(&mut self, message: &Message, fct: Option<Span>) {
        let Message { src, dst, size, .. } = *message;
        self.recorder.flow(&FlowRecord {
            src,
            dst,
            sport: message.class.into(),
            size,
            start: message.start,
            fct,
            ideal_fct: self.ideal_fct(src, dst, size),
            class: message.class,
            tag: message.tag,
        });
    }

    /// At the end: messages that have not been delivered, in order of start.
    pub(super) fn record_rest_of_rails(&mut self) {
        let halves = self.rails.halves.iter_mut();
        let mut rest: Vec<Message> = halves
            .flat_map(|half| {
                let waiting = half.waiting.drain(..);
                let under_way = half.under_way.iter_mut().flat_map(|line| line.drain(..));
                waiting.chain(under_way).collect::<Vec<_>>()
            })
            .collect();
        rest.sort_by_key(|message| (message.start, message.src, message.dst, message.tag));
        for message in rest {
            self.record_message(&message, None);
        }
    }

    // Timers.

    /// Has a half look again when it is due. One that is held back by its host is drained when there is room.
    fn set_timer(&mut self, half: u32, held_back: bool) {
        let now = self.now;
        let due = self.rails.half(half).core.poll_timeout();
        let due = match due.unwrap_or(Time::NEVER) {
            due if due > now => due,
            _ if held_back => Time::NEVER,
            _ => now + Span::from_ns(1),
        };
        if due == std::mem::replace(&mut self.rails.half(half).timer, due) || due == Time::NEVER {
            return;
        }
        let port = self.fabric.first_port(self.rails.half(half).host);
        let key = self.keys.next(Kind::RailTimer, port, half);
        self.push(due, key, Kind::RailTimer.pack(0, half));
    }

    pub(super) fn rail_timer(&mut self, half: u32) {
        let now = self.now;
        let state = self.rails.half(half);
        state.timer = Time::NEVER;
        state.core.handle_timeout(now);
        self.drain(half);
    }
}
