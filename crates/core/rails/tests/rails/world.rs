//! Two nodes and their rails in virtual time, driven as a real driver does: links with a rate, a queue and a delay, which lose,
//! double, reorder, damage and repeat packets, and which can be cut.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use raddle_rails::{Config, Connection, Dropped, Event, Failure, Reception, Transmit};
use raddle_random::Random;
use raddle_units::{BitRate, Bytes, Span, Time};
use raddle_wire::native::JobKey;

/// Bytes that Ethernet, IPv4 and UDP put around a packet, gap and preamble included.
pub(crate) const AROUND: u64 = 38 + 28;

/// What a rail is made of, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub rate: BitRate,
    pub latency: Span,
    /// Bytes that wait at most; what comes then is lost.
    pub queue: u64,
    /// Probabilities in millionths.
    pub loss: u32,
    pub double: u32,
    pub reorder: u32,
    pub damage: u32,
}

impl Link {
    pub(crate) const fn plain(rate: BitRate, latency: Span) -> Self {
        Self {
            rate,
            latency,
            queue: 256 << 10,
            loss: 0,
            double: 0,
            reorder: 0,
            damage: 0,
        }
    }
}

/// One direction of a rail.
struct Pipe {
    link: Link,
    free_at: Time,
}

enum Step {
    /// Node, rail, datagram, and when it was there.
    Arrive(usize, usize, Vec<u8>, Time),
    Timer(usize),
    /// Rail, whether it carries from then on.
    Cut(usize, bool),
    /// Node, port, token.
    Provide(usize, u16, u64),
    Send(usize),
}

/// A message that a node is to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub source_port: u16,
    pub target_port: u16,
    pub length: u64,
}

/// Name of a message: node, ports, number.
type Name = (usize, u16, u16, u64);

/// A program on a node.
pub(crate) struct Program {
    pub connection: Connection,
    armed: Time,
    plans: VecDeque<Plan>,
    /// Names of messages by send token, until they are sent.
    sends: Vec<Option<(Name, u64)>>,
    begun: std::collections::BTreeMap<(u16, u16), u64>,
    /// Buffers by receive token.
    buffers: Vec<Vec<u8>>,
    delivered: std::collections::BTreeMap<(u16, u16), u64>,
    /// How long a buffer is kept before it is provided again.
    pub keeps: Span,
    pub sent: u64,
    pub received: u64,
    pub received_bytes: u64,
    pub returned: u64,
    pub failed_sends: u64,
    pub failure: Option<(Time, Failure)>,
    pub falls: Vec<(Time, usize)>,
    pub rises: Vec<(Time, usize)>,
    pub last_received: Time,
    /// Longest time between two messages received since it was set to zero.
    pub longest_gap: Span,
}

pub(crate) struct World {
    pub now: Time,
    chance: Random,
    queue: BinaryHeap<Reverse<(Time, u64)>>,
    steps: std::collections::BTreeMap<u64, Step>,
    serial: u64,
    pub nodes: [Program; 2],
    pipes: Vec<[Pipe; 2]>,
    carries: Vec<bool>,
    /// Datagrams of the past, to be repeated.
    old: Vec<(usize, usize, Vec<u8>)>,
    key: JobKey,
    pub damaged: u64,
    pub repeated: u64,
    /// Contents are written and compared.
    pub compares: bool,
    /// Hosts look for packets and at timers only so often; zero: at once.
    pub looks: Span,
    /// Until when each sleeps.
    pub sleeps: [Time; 2],
    /// They know how long packets waited.
    pub tells: bool,
}

/// The byte at `offset` of a message.
fn byte(name: Name, offset: u64) -> u8 {
    let (node, source, target, number) = name;
    let seed = (node as u64) << 60 | u64::from(source) << 40 | u64::from(target) << 20 | number;
    let word =
        (seed ^ offset.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (word >> 32) as u8
}

impl World {
    /// Two nodes joined by `links`. `adjust` changes the configuration of both.
    pub(crate) fn new(seed: u64, links: &[Link], adjust: impl Fn(usize, &mut Config)) -> Self {
        let key = JobKey::new([7; 16]);
        let node = |local: u32| {
            let rates = links.iter().map(|link| link.rate).collect();
            let mut config = Config::new(9, key, local, 1 - local, 77 + local, rates);
            config.heartbeat = Span::from_ms(1);
            config.patience = Span::from_us(100);
            config.lateness = Span::from_us(2);
            adjust(local as usize, &mut config);
            Program::new(Connection::new(Time::ZERO, config).unwrap())
        };
        let mut world = Self {
            now: Time::ZERO,
            chance: Random::new(seed, 0),
            queue: BinaryHeap::new(),
            steps: std::collections::BTreeMap::new(),
            serial: 0,
            nodes: [node(0), node(1)],
            pipes: links
                .iter()
                .map(|link| {
                    [0, 1].map(|_| Pipe {
                        link: *link,
                        free_at: Time::ZERO,
                    })
                })
                .collect(),
            carries: vec![true; links.len()],
            old: Vec::new(),
            key,
            damaged: 0,
            repeated: 0,
            compares: true,
            looks: Span::ZERO,
            sleeps: [Time::ZERO; 2],
            tells: false,
        };
        for node in [0, 1] {
            world.at(Time::ZERO, Step::Timer(node));
        }
        world
    }

    fn at(&mut self, time: Time, step: Step) {
        self.queue.push(Reverse((time, self.serial)));
        self.steps.insert(self.serial, step);
        self.serial += 1;
    }

    /// Something arrives at a node, or is due: it happens when the node looks.
    fn when_seen(&mut self, time: Time, node: usize, step: Step) {
        let seen = match self.looks.0 {
            0 => time,
            period => Time(time.0.next_multiple_of(period)),
        };
        self.at(seen.max(self.sleeps[node]), step);
    }

    /// Opens a port with so many buffers.
    pub(crate) fn open(&mut self, node: usize, port: u16, longest: u64, buffers: usize) {
        let program = &mut self.nodes[node];
        program.connection.open_port(port, longest).unwrap();
        for _ in 0..buffers {
            program.buffers.push(vec![0; longest as usize]);
            let token = program.buffers.len() as u64 - 1;
            program.connection.provide(port, token).unwrap();
        }
    }

    /// A message is to be sent at `time`.
    pub(crate) fn plan(&mut self, time: Time, node: usize, plan: Plan) {
        self.nodes[node].plans.push_back(plan);
        self.at(time, Step::Send(node));
    }

    /// `count` messages of port 0 to port 1 of the other node are to be sent from the beginning.
    pub(crate) fn plan_stream(&mut self, node: usize, count: u32, length: u64) {
        for _ in 0..count {
            let plan = Plan {
                source_port: 0,
                target_port: 1,
                length,
            };
            self.plan(Time::ZERO, node, plan);
        }
    }

    pub(crate) fn cut(&mut self, time: Time, rail: usize, carries: bool) {
        self.at(time, Step::Cut(rail, carries));
    }

    /// Runs until `until` or until `done`; whether `done` came true.
    pub(crate) fn run(&mut self, until: Time, done: impl Fn(&[Program; 2]) -> bool) -> bool {
        while let Some(Reverse((time, serial))) = self.queue.peek().copied() {
            if done(&self.nodes) {
                return true;
            }
            if time > until {
                self.now = until;
                return false;
            }
            self.queue.pop();
            self.now = time;
            let step = self.steps.remove(&serial).expect("each step is there once");
            self.step(step);
        }
        done(&self.nodes)
    }

    fn step(&mut self, step: Step) {
        let node = match step {
            Step::Arrive(node, rail, bytes, there) => {
                if self.carries[rail] {
                    self.arrive(node, rail, &bytes, there);
                }
                node
            }
            Step::Timer(node) => {
                if self.nodes[node].armed > self.now && self.serial > 2 {
                    return;
                }
                self.nodes[node].armed = Time::NEVER;
                self.nodes[node].connection.handle_timeout(self.now);
                node
            }
            Step::Cut(rail, carries) => {
                self.carries[rail] = carries;
                return;
            }
            Step::Provide(node, port, token) => {
                self.nodes[node].connection.provide(port, token).unwrap();
                node
            }
            Step::Send(node) => node,
        };
        self.drain(node);
    }

    fn arrive(&mut self, node: usize, rail: usize, bytes: &[u8], there: Time) {
        let program = &mut self.nodes[node];
        let mut how = Reception::default();
        if self.tells {
            how.held = self.now.since(there);
        }
        let outcome = program
            .connection
            .handle_datagram(self.now, rail, bytes, how);
        if let Ok(Some((place, payload))) = outcome {
            assert_eq!(usize::from(place.bytes), payload.len());
            if self.compares {
                let from = place.offset as usize;
                program.buffers[place.token as usize][from..from + payload.len()]
                    .copy_from_slice(payload);
            }
        }
    }

    /// What a driver does after each call.
    fn drain(&mut self, node: usize) {
        self.nodes[node].send_planned(node);
        let mut count = 0;
        while let Some(transmit) = self.nodes[node].connection.poll_transmit(self.now) {
            self.transmit(node, &transmit);
            count += 1;
            assert!(count < 100_000, "it sends without end");
        }
        while let Some(event) = self.nodes[node].connection.poll_event() {
            if let Some((port, token)) =
                self.nodes[node].on_event(node, self.now, event, self.compares)
            {
                let time = self.now + self.nodes[node].keeps;
                self.at(time, Step::Provide(node, port, token));
            }
        }
        if let Some(due) = self.nodes[node].connection.poll_timeout() {
            let due = due.max(self.now + Span::from_ns(1));
            if due < self.nodes[node].armed {
                self.nodes[node].armed = due;
                self.when_seen(due, node, Step::Timer(node));
            }
        }
    }

    fn transmit(&mut self, node: usize, transmit: &Transmit) {
        let payload = transmit.payload;
        let mut bytes = vec![0; transmit.packet.length()];
        let mut contents = vec![0; usize::from(payload.bytes)];
        if self.compares && payload.bytes > 0 {
            let (name, _) = self.nodes[node].sends[payload.token as usize]
                .expect("the buffer of a message that was not given back");
            for (offset, content) in (payload.offset..).zip(&mut contents) {
                *content = byte(name, offset);
            }
        }
        let length = transmit
            .packet
            .write(&mut bytes, &contents, &self.key)
            .unwrap();
        assert!(length <= self.nodes[node].connection.config().datagram());
        self.carry(node, transmit.rail, bytes);
    }

    /// A datagram goes onto a rail.
    fn carry(&mut self, node: usize, rail: usize, bytes: Vec<u8>) {
        let pipe = &mut self.pipes[rail][node];
        let link = pipe.link;
        let start = pipe.free_at.max(self.now);
        let waiting = link.rate.bytes_in(start.since(self.now)).0;
        if !self.carries[rail]
            || waiting + bytes.len() as u64 > link.queue
            || self.chance.happens(link.loss)
        {
            return;
        }
        pipe.free_at = start
            + link
                .rate
                .transmission_time(Bytes(bytes.len() as u64 + AROUND));
        let mut arrival = pipe.free_at + link.latency;
        if self.chance.happens(link.reorder) {
            arrival += Span(self.chance.below(4 * link.latency.0 + 1));
        }
        let peer = 1 - node;
        if self.chance.happens(link.double) {
            let later = arrival + Span(self.chance.below(2 * link.latency.0 + 1));
            let copy = Step::Arrive(peer, rail, bytes.clone(), later);
            self.when_seen(later, peer, copy);
        }
        if self.chance.happens(link.damage) {
            self.spoil(arrival, peer, rail, &bytes);
        }
        let whole = Step::Arrive(peer, rail, bytes, arrival);
        self.when_seen(arrival, peer, whole);
    }

    /// Sends a damaged copy, and something old; keeps this for later.
    fn spoil(&mut self, arrival: Time, peer: usize, rail: usize, bytes: &[u8]) {
        let mut copy = bytes.to_vec();
        if self.chance.below(3) == 0 {
            copy.truncate(self.chance.below(bytes.len() as u64) as usize);
        } else {
            let at = self.chance.below(bytes.len() as u64) as usize;
            copy[at] ^= 1 << self.chance.below(8);
        }
        self.damaged += 1;
        self.when_seen(arrival, peer, Step::Arrive(peer, rail, copy, arrival));
        if let Some((node, rail, old)) = self.old.pop() {
            self.repeated += 1;
            self.when_seen(arrival, node, Step::Arrive(node, rail, old, arrival));
        }
        self.old.push((peer, rail, bytes.to_vec()));
    }

    /// Damaged copies were found out, whether a rail carried them or was cut; nothing else was refused.
    pub(crate) fn check_drops(&self) {
        for node in &self.nodes {
            let counters = node.connection.counters();
            let innocent = [
                Dropped::Truncated,
                Dropped::Forged,
                Dropped::Replayed,
                Dropped::Early,
            ];
            let counted: u64 = innocent
                .iter()
                .map(|reason| counters.dropped(*reason))
                .sum();
            assert_eq!(counters.all_dropped(), counted, "{counters:?}");
        }
    }
}

impl Program {
    fn new(connection: Connection) -> Self {
        Self {
            connection,
            armed: Time::NEVER,
            plans: VecDeque::new(),
            sends: Vec::new(),
            begun: std::collections::BTreeMap::new(),
            buffers: Vec::new(),
            delivered: std::collections::BTreeMap::new(),
            keeps: Span::ZERO,
            sent: 0,
            received: 0,
            received_bytes: 0,
            returned: 0,
            failed_sends: 0,
            failure: None,
            falls: Vec::new(),
            rises: Vec::new(),
            last_received: Time::ZERO,
            longest_gap: Span::ZERO,
        }
    }

    /// Sends what is planned as far as there are send tokens. Only plans whose time has come stand in the list.
    fn send_planned(&mut self, node: usize) {
        while let Some(plan) = self.plans.front().copied() {
            let Plan {
                source_port,
                target_port,
                length,
            } = plan;
            let token = self.sends.len() as u64;
            if self
                .connection
                .send(source_port, target_port, length, token)
                .is_err()
            {
                return;
            }
            let number = self.begun.entry((source_port, target_port)).or_default();
            self.sends
                .push(Some(((node, source_port, target_port, *number), length)));
            *number += 1;
            self.plans.pop_front();
        }
    }

    /// Gives port and token of a buffer that is to be provided again.
    fn on_event(
        &mut self,
        node: usize,
        now: Time,
        event: Event,
        compares: bool,
    ) -> Option<(u16, u64)> {
        match event {
            Event::Sent { token } => {
                assert!(self.sends[token as usize].take().is_some(), "sent twice");
                self.sent += 1;
            }
            Event::SendFailed { token, .. } => {
                assert!(
                    self.sends[token as usize].take().is_some(),
                    "given back twice"
                );
                self.failed_sends += 1;
            }
            Event::Received {
                token,
                source_port,
                target_port,
                length,
            } => {
                let number = self
                    .delivered
                    .entry((source_port, target_port))
                    .or_default();
                let name = (1 - node, source_port, target_port, *number);
                *number += 1;
                if compares {
                    let contents = &self.buffers[token as usize][..length as usize];
                    for (offset, content) in (0..).zip(contents) {
                        assert_eq!(*content, byte(name, offset), "{name:?} byte {offset}");
                    }
                }
                self.received += 1;
                self.received_bytes += length;
                self.longest_gap = self.longest_gap.max(now.since(self.last_received));
                self.last_received = now;
                return Some((target_port, token));
            }
            Event::Returned { .. } => self.returned += 1,
            Event::Failed(failure) => self.failure = Some((now, failure)),
            Event::RailDown { rail } => self.falls.push((now, rail)),
            Event::RailUp { rail } => self.rises.push((now, rail)),
            Event::Established => {}
        }
        None
    }

    /// Buffers that it made.
    pub(crate) fn buffers(&self) -> u64 {
        self.buffers.len() as u64
    }
}
