//! Hosts, TORs and a SPINE in virtual time. Links lose, double and reorder frames; switches die or start anew.

use std::{cmp::Reverse, collections::BinaryHeap, net::Ipv4Addr, net::SocketAddrV4};

use raddle_offload::{
    endpoint::{CallOutcome, Started},
    published::{
        Endpoint, FRAME_ROOM, Leader, LeaderConfig, Stage, Switch, SwitchConfig, Terms, Tier,
        Transmit, Transport, Verdict,
    },
    recovery::{RecoveryConfig, RecoveryState},
    roles::Roles,
};
use raddle_random::Random;
use raddle_units::{Span, Time};
use raddle_wire::{DataType, Datagram, Operation, native::JobKey};

pub(crate) const GROUP: u8 = 7;

#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) sockets: u32,
    pub(crate) tors: u32,
    pub(crate) servers_per_tor: u32,
    pub(crate) ranks_per_leader: u32,
    pub(crate) transport: Transport,
}

impl Shape {
    pub(crate) fn roles(&self) -> Roles {
        Roles::new(
            self.sockets,
            self.tors * self.servers_per_tor,
            self.ranks_per_leader,
        )
        .unwrap()
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// The switch starts anew, without its memory.
    Restart(usize),
    /// No frame passes any more.
    Death(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct Conditions {
    /// In 1,000,000: frames lost, and as many doubled.
    pub(crate) loss: u32,
    pub(crate) longest_delay_us: u64,
    pub(crate) think_us: u64,
    pub(crate) fault: Option<(Time, Fault)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Host(usize),
    /// TORs by number, then the SPINE.
    Switch(usize),
}

#[derive(Debug)]
enum Event {
    Frame(Place, Vec<u8>),
    /// From recovery to recovery.
    Message(usize, Vec<u8>),
    Start(usize),
    Wake,
    Fault(Fault),
}

enum Side {
    SetUp(Box<Leader>),
    Running(Box<Endpoint>),
    /// The set-up was refused: all calls are plain.
    Plain,
}

/// How a call ended at a leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Offloaded(Vec<u8>),
    Plain,
}

struct Host {
    rank: u32,
    node: usize,
    side: Side,
    /// A call was begun and has no outcome.
    calling: bool,
    calls: Vec<Call>,
}

pub(crate) struct World {
    shape: Shape,
    conditions: Conditions,
    roles: Roles,
    chance: Random,
    pub(crate) now: Time,
    events: BinaryHeap<Reverse<(Time, u64)>>,
    bodies: std::collections::HashMap<u64, Event>,
    count: u64,
    hosts: Vec<Host>,
    switches: Vec<Option<Switch>>,
    wanted: usize,
    pub(crate) terms: Option<Terms>,
    pub(crate) frames: u64,
}

pub(crate) fn spec(call: usize) -> (Operation, DataType) {
    [
        (Operation::Sum, DataType::Int64),
        (Operation::Max, DataType::Int32),
        (Operation::BitXor, DataType::Uint64),
        (Operation::Sum, DataType::Double),
        (Operation::Min, DataType::Float),
    ][call % 5]
}

/// Operands of a leader in a call: sums of small whole numbers are exact in every order.
pub(crate) fn operands(leader: u32, call: usize) -> Vec<u8> {
    let (_, data_type) = spec(call);
    let count = 1 + call % (256 / data_type.size());
    let value = |element: usize| (u64::from(leader) * 31 + call as u64 * 7 + element as u64) % 1000;
    let values = (0..count).map(value);
    match data_type {
        DataType::Double => values
            .flat_map(|value| (value as f64).to_be_bytes())
            .collect(),
        DataType::Float => values
            .flat_map(|value| (value as f32).to_be_bytes())
            .collect(),
        DataType::Int32 => values
            .flat_map(|value| (value as i32).to_be_bytes())
            .collect(),
        _ => values.flat_map(u64::to_be_bytes).collect(),
    }
}

pub(crate) fn expected(leaders: u32, call: usize) -> Vec<u8> {
    let (operation, data_type) = spec(call);
    let mut whole = operands(0, call);
    for leader in 1..leaders {
        let right = operands(leader, call);
        let mut sum = right.clone();
        raddle_offload::reduce::combine(operation, data_type, &whole, &right, &mut sum).unwrap();
        whole = sum;
    }
    whole
}

fn tor_address(tor: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 255, 0, tor as u8 + 1)
}

fn spine_address() -> Ipv4Addr {
    Ipv4Addr::new(10, 254, 0, 1)
}

fn host_address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, (node / 200) as u8, (node % 200) as u8 + 1)
}

impl World {
    pub(crate) fn new(seed: u64, shape: Shape, conditions: Conditions, calls: usize) -> Self {
        let roles = shape.roles();
        let nodes: Vec<Ipv4Addr> = (0..(shape.tors * shape.servers_per_tor) as usize)
            .map(host_address)
            .collect();
        let leaders = roles.masters().chain(roles.others());
        let hosts = leaders
            .map(|rank| {
                let config = LeaderConfig {
                    roles,
                    rank,
                    group: GROUP,
                    transport: shape.transport,
                    nodes: nodes.clone(),
                    give_up: Span::from_ms(20),
                    overdue: Span::from_ms(2),
                };
                Host {
                    rank,
                    node: roles.node(rank).unwrap() as usize,
                    side: Side::SetUp(Box::new(Leader::new(Time::ZERO, config).unwrap())),
                    calling: false,
                    calls: Vec::new(),
                }
            })
            .collect();
        let mut world = Self {
            chance: Random::new(seed, 0),
            now: Time::ZERO,
            events: BinaryHeap::new(),
            bodies: Default::default(),
            count: 0,
            switches: (0..=shape.tors as usize).map(|_| None).collect(),
            hosts,
            roles,
            wanted: calls,
            terms: None,
            frames: 0,
            shape,
            conditions,
        };
        for switch in 0..world.switches.len() {
            world.switches[switch] = Some(world.fresh(switch));
        }
        if let Some((at, fault)) = world.conditions.fault {
            world.put(at, Event::Fault(fault));
        }
        world.pump();
        world
    }

    fn fresh(&self, switch: usize) -> Switch {
        let spine = switch == self.shape.tors as usize;
        Switch::new(if spine {
            SwitchConfig::new(spine_address(), Tier::Spine)
        } else {
            SwitchConfig::new(tor_address(switch), Tier::Tor)
        })
    }

    fn put(&mut self, at: Time, event: Event) {
        self.count += 1;
        self.events.push(Reverse((at, self.count)));
        self.bodies.insert(self.count, event);
    }

    fn lossy(&mut self, make: impl Fn() -> Event) {
        for _ in 0..=u32::from(self.chance.below(1_000_000) < u64::from(self.conditions.loss)) {
            if self.chance.below(1_000_000) < u64::from(self.conditions.loss) {
                continue;
            }
            let delay = Span::from_us(1 + self.chance.below(self.conditions.longest_delay_us));
            self.put(self.now + delay, make());
        }
    }

    /// A frame leaves a place for an address.
    fn send(&mut self, from: Place, to: Ipv4Addr, frame: &[u8]) {
        let spine = self.shape.tors as usize;
        let node = |address: Ipv4Addr| {
            let [_, _, high, low] = address.octets();
            usize::from(high) * 200 + usize::from(low) - 1
        };
        let tor_of = |address: Ipv4Addr| match address.octets() {
            [10, 255, _, low] => usize::from(low) - 1,
            _ => node(address) / self.shape.servers_per_tor as usize,
        };
        let next = match from {
            Place::Host(host) => Place::Switch(tor_of(host_address(self.hosts[host].node))),
            Place::Switch(at) if at == spine => Place::Switch(tor_of(to)),
            Place::Switch(at) if to == spine_address() || tor_of(to) != at => Place::Switch(spine),
            // Whoever of the host's leaders it is for.
            Place::Switch(_) => Place::Host(node(to)),
        };
        self.frames += 1;
        self.lossy(|| Event::Frame(next, frame.to_vec()));
    }

    fn switch(&mut self, at: usize, mut frame: Vec<u8>) {
        let now = self.now;
        let Some(switch) = &mut self.switches[at] else {
            return;
        };
        let verdict = switch.handle_frame(now, &mut frame);
        let mut sent = Vec::new();
        let mut buffer = [0; FRAME_ROOM];
        while let Some((transmit, length)) = switch.poll_transmit(&mut buffer) {
            sent.push((transmit, buffer[..length].to_vec()));
        }
        let destination = |frame: &[u8]| Datagram::find(frame).unwrap().unwrap().ipv4.destination();
        if let Verdict::Forward | Verdict::Rewritten(_) = verdict {
            self.send(Place::Switch(at), destination(&frame), &frame);
        }
        for (transmit, frame) in sent {
            let to = match transmit {
                Transmit::Released => destination(&frame),
                Transmit::To(address) => address,
            };
            self.send(Place::Switch(at), to, &frame);
        }
    }

    /// Lets every leader send, and looks at what became of it.
    fn pump(&mut self) {
        let now = self.now;
        let mut buffer = [0; 2048];
        for at in 0..self.hosts.len() {
            loop {
                let made = match &mut self.hosts[at].side {
                    Side::SetUp(leader) => leader.poll_transmit(&mut buffer),
                    Side::Running(endpoint) => endpoint.poll_frame(&mut buffer),
                    Side::Plain => None,
                };
                let Some((to, length)) = made else { break };
                self.send(Place::Host(at), to, &buffer[..length]);
            }
            while let Side::Running(endpoint) = &mut self.hosts[at].side
                && let Some((to, length)) = endpoint.poll_transmit(&mut buffer)
            {
                let peer = usize::from(to.port());
                let bytes = buffer[..length].to_vec();
                self.lossy(|| Event::Message(peer, bytes.clone()));
            }
            let host = &mut self.hosts[at];
            if let Side::Running(endpoint) = &host.side
                && host.calling
            {
                let call = match endpoint.outcome(now) {
                    CallOutcome::Pending => continue,
                    CallOutcome::Done(result) => Call::Offloaded(result.to_vec()),
                    CallOutcome::Plain(_) => Call::Plain,
                };
                host.calling = false;
                host.calls.push(call);
                self.next_call(at);
            }
        }
        self.agree();
    }

    /// What leaders agree on by plain MPI while a group is set up: it loses nothing.
    fn agree(&mut self) {
        let stage = |host: &Host| match &host.side {
            Side::SetUp(leader) => Some(leader.stage()),
            _ => None,
        };
        let masters = self.roles.sockets() as usize;
        let collected: Vec<_> = self.hosts[..masters]
            .iter()
            .filter_map(|host| match stage(host) {
                Some(Stage::Collected(spine)) => Some(spine),
                _ => None,
            })
            .collect();
        if collected.len() == masters {
            // A master that heard too little has no SPINE to name, and says so to the others.
            let alike = collected.iter().all(|spine| *spine == collected[0]);
            for host in &mut self.hosts[..masters] {
                if let Side::SetUp(leader) = &mut host.side {
                    leader.notify(collected[0], u8::from(!alike) * 3);
                }
            }
            self.pump();
            return;
        }
        let set: Vec<Terms> = self
            .hosts
            .iter()
            .filter_map(|host| match stage(host) {
                Some(Stage::Set(terms)) => Some(terms),
                _ => None,
            })
            .collect();
        if set.len() < self.hosts.len() {
            return;
        }
        let terms = set.into_iter().reduce(Terms::join).unwrap();
        self.terms = Some(terms);
        let members: Vec<SocketAddrV4> = (0..self.hosts.len())
            .map(|host| SocketAddrV4::new(host_address(self.hosts[host].node), host as u16))
            .collect();
        for at in 0..self.hosts.len() {
            let side = std::mem::replace(&mut self.hosts[at].side, Side::Plain);
            if let Side::SetUp(mut leader) = side
                && terms.usable()
            {
                leader.open(terms);
                let recovery = RecoveryConfig {
                    job: 1,
                    key: JobKey::new([3; 16]),
                    group: u32::from(GROUP),
                    member: at as u32,
                    members: members.clone(),
                    retry: Span::from_ms(1),
                    give_up: Span::from_ms(50),
                };
                self.hosts[at].side = Side::Running(Box::new(Endpoint::new(*leader, recovery)));
            }
            self.next_call(at);
        }
    }

    fn next_call(&mut self, at: usize) {
        if self.hosts[at].calls.len() < self.wanted {
            let think = Span::from_us(self.chance.below(self.conditions.think_us.max(1)));
            self.put(self.now + think, Event::Start(at));
        }
    }

    fn start(&mut self, at: usize) {
        let now = self.now;
        let host = &mut self.hosts[at];
        let call = host.calls.len();
        let (operation, data_type) = spec(call);
        let number = self.roles.number(host.rank).unwrap();
        let values = operands(number, call);
        let started = match &mut host.side {
            Side::Running(endpoint) => endpoint.start(now, operation, data_type, &values),
            _ => Started::Plain,
        };
        match started {
            Started::Offloaded(_) => host.calling = true,
            Started::Plain => {
                host.calls.push(Call::Plain);
                self.next_call(at);
            }
        }
    }

    /// The next event; false if there is none.
    fn step(&mut self) -> bool {
        let timer = self.hosts.iter().filter_map(|host| match &host.side {
            Side::SetUp(leader) => leader.poll_timeout(),
            Side::Running(endpoint) => endpoint.poll_timeout(),
            Side::Plain => None,
        });
        // A timer that is due and does nothing yet is looked at again a little later.
        let timer = timer.min().map(|at| at.max(self.now + Span::from_us(10)));
        let next = self.events.peek().map(|Reverse((at, _))| *at);
        let event = match (timer, next) {
            (None, None) => return false,
            (Some(timer), next) if next.is_none_or(|next| timer < next) => {
                self.now = timer;
                Event::Wake
            }
            _ => {
                let Reverse((at, number)) = self.events.pop().unwrap();
                self.now = at;
                self.bodies.remove(&number).unwrap()
            }
        };
        let now = self.now;
        match event {
            Event::Frame(Place::Switch(at), frame) => self.switch(at, frame),
            Event::Frame(Place::Host(node), frame) => {
                for host in self.hosts.iter_mut().filter(|host| host.node == node) {
                    match &mut host.side {
                        Side::SetUp(leader) => leader.handle_frame(now, &frame),
                        Side::Running(endpoint) => endpoint.handle_frame(now, &frame),
                        Side::Plain => false,
                    };
                }
            }
            Event::Message(at, bytes) => {
                if let Side::Running(endpoint) = &mut self.hosts[at].side {
                    endpoint.handle_packet(now, &bytes);
                }
            }
            Event::Start(at) => self.start(at),
            Event::Wake => {
                for host in &mut self.hosts {
                    match &mut host.side {
                        Side::SetUp(leader) => leader.handle_timeout(now),
                        Side::Running(endpoint) => endpoint.handle_timeout(now),
                        Side::Plain => {}
                    }
                }
            }
            Event::Fault(Fault::Restart(at)) => self.switches[at] = Some(self.fresh(at)),
            Event::Fault(Fault::Death(at)) => self.switches[at] = None,
        }
        self.pump();
        true
    }

    /// Runs until all calls have ended; false if somebody hangs.
    pub(crate) fn run(&mut self) -> bool {
        let end = self.now + Span::from_ms(60_000);
        while self.hosts.iter().any(|host| host.calls.len() < self.wanted) {
            if self.now > end || !self.step() {
                return false;
            }
        }
        true
    }

    /// Masters end the group; what is on its way arrives.
    pub(crate) fn kill(&mut self) {
        for host in &mut self.hosts {
            if let Side::Running(endpoint) = &mut host.side {
                endpoint.kill();
            }
        }
        self.pump();
        for _ in 0..10_000 {
            if self.events.is_empty() {
                break;
            }
            self.step();
        }
    }

    pub(crate) fn groups(&self) -> usize {
        self.switches
            .iter()
            .flatten()
            .map(Switch::group_count)
            .sum()
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &[Call]> {
        self.hosts.iter().map(|host| host.calls.as_slice())
    }

    pub(crate) fn leaders(&self) -> u32 {
        self.roles.leaders()
    }

    /// Whether offload ended on some leader.
    pub(crate) fn fell_back(&self) -> bool {
        self.hosts.iter().any(|host| match &host.side {
            Side::Running(endpoint) => endpoint.state() != RecoveryState::Running,
            _ => true,
        })
    }
}
