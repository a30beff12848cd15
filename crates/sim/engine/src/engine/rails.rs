//! Messages over rails: connections of `raddle_rails` on hosts. What receivers know of messages is in `rail_notices.rs`, packets
//! are in `rail_packets.rs`.

use std::collections::VecDeque;

use raddle_rails::{Connection, Event};
use raddle_units::{NodeId, PortId, Span, Time};
use raddle_workload::{MAX_SIZE_BYTES, Message};
use rustc_hash::FxHashMap;

use super::{
    bus::{CardBus, HostBus},
    process::Base,
    rail_notices::{self, Notice},
    records::Record,
    what::{Kind, What},
};
use crate::{
    host_rails::Rails,
    index::{HalfIndex, List, NodeIndex, PortIndex},
    record::RailRecord,
    setup::{RunConfig, SetupError},
};

/// Ports of a connection: classes of messages.
const MOST_PORTS: usize = 64;
/// No host of a run has more than one life.
const EPOCH: u32 = 1;

/// One host's half of a connection. The other half may be in another process.
#[derive(Debug)]
pub(super) struct HalfConnection {
    pub(super) core: Connection,
    pub(super) host: NodeId,
    pub(super) peer: NodeId,
    /// Its place among the halves of its host.
    place: u32,
    /// Messages that no send token is left for.
    waiting: VecDeque<Message>,
    /// By port: messages of the peer that have begun and have not come, in order.
    pub(super) announced: Vec<VecDeque<Message>>,
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
    /// What it is to know at the end of this window or the one before, in order.
    pub(super) notices: Vec<Notice>,
    halves: Vec<HalfIndex>,
    /// Half that is asked first for something to send.
    first: usize,
}

/// All halves of connections of a process.
#[derive(Debug, Default)]
pub(super) struct RailHosts<'a> {
    /// `None`: messages between hosts are flows.
    pub(super) plan: Option<&'a Rails>,
    /// Of all nodes; empty without rails, as the next is.
    pub(super) hosts: List<NodeIndex, Host>,
    pub(super) cards: List<PortIndex, CardBus>,
    pub(super) halves: List<HalfIndex, HalfConnection>,
    /// By (host, peer).
    pairs: FxHashMap<(NodeId, NodeId), HalfIndex>,
}

impl<'a> RailHosts<'a> {
    /// For a process with so many nodes and ports.
    pub(super) fn new(
        config: &'a RunConfig,
        nodes: usize,
        ports: usize,
    ) -> Result<Self, SetupError> {
        let Some(rails) = config.rails.as_deref() else {
            return Ok(Self::default());
        };
        let marks = config.marks.is_some();
        let problem = marks.then_some("recorded congestion marks are possible without rails only");
        if let Some(problem) = problem.or_else(|| rails.problem()) {
            return Err(SetupError::Rails { problem });
        }
        let mut made = Self {
            plan: Some(rails),
            ..Self::default()
        };
        for _ in 0..nodes {
            made.hosts.push(Host::default());
        }
        for _ in 0..ports {
            made.cards.push(CardBus::default());
        }
        Ok(made)
    }

    /// The half of a connection on `host`, if it is made.
    pub(super) fn half(&self, host: NodeId, peer: NodeId) -> Option<HalfIndex> {
        self.pairs.get(&(host, peer)).copied()
    }

    /// When a half's timer is due.
    pub(super) fn timer(&self, half: HalfIndex) -> Time {
        self.halves[half].timer
    }

    /// Opens a port of a half; false: it is open.
    pub(super) fn open(&mut self, half: HalfIndex, port: u8, buffers: u32) -> Result<bool, String> {
        let half = &mut self.halves[half];
        if half.open >> port & 1 == 1 {
            return Ok(false);
        }
        half.open |= 1 << port;
        let number = u16::from(port);
        half.core
            .open_port(number, MAX_SIZE_BYTES)
            .and_then(|()| (0..buffers).try_for_each(|_| half.core.provide(number, 0)))
            .map(|()| true)
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
        // What has waited for others starts at the window's beginning at the earliest.
        let message = Message {
            start: base.cx.now,
            ..*message
        };
        let Message { src, class, .. } = message;
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
            rail_notices::record(base, &message, None);
            return Ok(());
        }
        base.hosts.live += 1;
        self.notify(base, src, dst, Some(message));
        self.halves[half].waiting.push_back(message);
        self.drain(base, half);
        Ok(())
    }

    /// The half of a connection on `host`, which is made if there is none.
    pub(super) fn connect(
        &mut self,
        base: &Base<'_>,
        rails: &Rails,
        host: NodeId,
        peer: NodeId,
    ) -> Result<HalfIndex, String> {
        if let Some(half) = self.half(host, peer) {
            return Ok(half);
        }
        let fabric = base.cx.fabric;
        let ports = fabric.ports_of(host).len() as u32;
        if ports as usize != fabric.ports_of(peer).len() {
            return Err("one host has more rails than the other".to_owned());
        }
        let first = fabric.first_port(host).0;
        let rates = (first..first + ports).map(|port| fabric.rate(PortId(port)));
        let config = rails.end(host, peer, EPOCH, rates.collect());
        let core = Connection::new(base.cx.now, config).map_err(|error| error.to_string())?;
        let halves = &mut self.hosts[base.cx.cut.place(host)].halves;
        let half = self.halves.push(HalfConnection {
            core,
            host,
            peer,
            place: halves.len() as u32,
            waiting: VecDeque::new(),
            announced: Vec::new(),
            open: 0,
            timer: Time::NEVER,
            failed: false,
            recorded: false,
        });
        halves.push(half);
        self.pairs.insert((host, peer), half);
        Ok(half)
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
        room > 0 && self.hosts[base.cx.cut.place(host)].held >= room.saturating_mul(ports)
    }

    /// Has the halves that a host held back look again, in turn.
    pub(super) fn drain_host(&mut self, base: &mut Base<'_>, host: NodeId) {
        if self.plan.is_none_or(|rails| rails.room == 0) {
            return;
        }
        let place = base.cx.cut.place(host);
        let state = &mut self.hosts[place];
        let count = state.halves.len();
        state.first = if state.first + 1 < count {
            state.first + 1
        } else {
            0
        };
        let first = state.first;
        for step in 0..count {
            let half = self.hosts[place].halves[(first + step) % count];
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
                self.received(base, half, target_port);
            }
            Event::Failed(_) => self.give_up(base, half),
            Event::RailUp { rail } => self.record_rail(base, half, rail, true),
            Event::RailDown { rail } => self.record_rail(base, half, rail, false),
            // Send tokens that come back are used when the half is fed.
            Event::Sent { .. }
            | Event::SendFailed { .. }
            | Event::Returned { .. }
            | Event::Established => {}
        }
    }

    fn record_rail(&self, base: &mut Base<'_>, half: HalfIndex, rail: usize, up: bool) {
        if !base.cx.config.record_rails {
            return;
        }
        let &HalfConnection { host, peer, .. } = &self.halves[half];
        let record = RailRecord {
            at: base.cx.now,
            host,
            peer,
            rail: rail as u8,
            up,
        };
        base.cx.record(host, Record::Rail(record));
    }

    /// A half has failed: what it had is not delivered any more.
    fn give_up(&mut self, base: &mut Base<'_>, half: HalfIndex) {
        let half = &mut self.halves[half];
        half.failed = true;
        half.waiting.clear();
        let (host, peer) = (half.host, half.peer);
        self.notify(base, host, peer, None);
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
            self.waiting.pop_front();
        }
    }
}
