//! A network in virtual time: members and switches driven as a real driver does, and links that lose, double and reorder.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    net::{Ipv4Addr, SocketAddrV4},
};

use raddle_offload::{
    endpoint::{CallOutcome, Endpoint, Started},
    member::{MemberConfig, RoundSpec},
    order::{Expression, Node},
    program::Program,
    reduce::combine_into_right,
    setup::{
        Agreement, MasterConfig, MasterSetup, MemberPlace, MemberSetup, MemberSetupConfig,
        SetupOutcome, all_terms, member_program,
    },
    switch::{Abilities, Pass, Quotas, SiteSecret, Switch, SwitchConfig, job_key},
};
use raddle_random::Random;
use raddle_units::{Span, Time};
use raddle_wire::native::{Collective, JobKey, Kind, PORT, Reason, Terms, Unverified};

use crate::calls::{expected, operand, random_call};

pub(crate) const LEASE: Span = Span::from_ms(100);
const RETRY: Span = Span::from_us(100);
const GIVE_UP: Span = Span::from_ms(10);
const JOB: u32 = 77;
const GROUP: u32 = 5;

/// What happens to links, switches and ranks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weather {
    /// Probability of loss, of doubling, and of reordering, each in millionths.
    pub loss: u32,
    pub fault: Fault,
    /// How long a rank computes between calls at most, in microseconds; now and then longer than `give_up`.
    pub think_us: u64,
    pub long_thoughts: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// A switch is dead from then on.
    Death(Time),
    /// A switch forgets everything.
    Restart(Time),
    /// All ranks are killed.
    JobKilled(Time),
}

pub(crate) struct Shape {
    pub members: usize,
    pub tors: usize,
    pub spines: usize,
    pub cores: usize,
    pub most_ranks: u64,
    pub slots: u16,
    pub segment_bytes: u16,
    /// Results are sent to a multicast address.
    pub multicast: bool,
}

pub(crate) struct Hosts {
    phase: Phase,
    address: SocketAddrV4,
    ranks: Vec<u32>,
    program: Program,
    call: usize,
    waits_plain: bool,
    armed: Option<Time>,
    /// What became of each call: `true` offloaded.
    pub outcomes: Vec<bool>,
}

enum Phase {
    Master(MasterSetup),
    Member(MemberSetup),
    Running(Box<Endpoint>),
    Plain,
    Killed,
}

struct SwitchNode {
    address: Ipv4Addr,
    tier: u8,
    epoch: u32,
    switch: Option<Switch>,
    armed: Option<Time>,
}

#[derive(Debug)]
enum Event {
    Deliver(SocketAddrV4, SocketAddrV4, Vec<u8>),
    HostTimer(usize),
    SwitchTimer(usize),
    Think(usize),
    Fault,
}

pub(crate) struct World {
    seed: u64,
    chance: Random,
    weather: Weather,
    now: Time,
    queue: BinaryHeap<Reverse<(Time, u64, usize)>>,
    events: Vec<Option<Event>>,
    free: Vec<usize>,
    serial: u64,
    pub hosts: Vec<Hosts>,
    switches: Vec<SwitchNode>,
    place_of: BTreeMap<Ipv4Addr, usize>,
    host_of: BTreeMap<SocketAddrV4, usize>,
    /// Switches that a query of each member passes.
    paths: Vec<Vec<usize>>,
    expression: Expression,
    calls: Vec<RoundSpec>,
    results: Vec<Option<Vec<u8>>>,
    key: JobKey,
    results_at: Option<SocketAddrV4>,
    begun: bool,
    pub packets: u64,
    pub fallback: Option<Reason>,
    leave_early: bool,
}

fn secret() -> SiteSecret {
    SiteSecret::new(*b"the secret of a site, 32 bytes!!")
}

fn fresh(address: Ipv4Addr, tier: u8, epoch: u32) -> Switch {
    Switch::new(SwitchConfig {
        address,
        tier,
        epoch,
        secret: secret(),
        quotas: Quotas::default(),
        abilities: Abilities::default(),
    })
}

impl World {
    pub(crate) fn new(seed: u64, shape: &Shape, weather: Weather, calls: usize) -> Self {
        let mut chance = Random::new(seed, 0);
        let mut switches = Vec::new();
        let counts = [shape.tors, shape.spines, shape.cores];
        for (tier, count) in (1..).zip(counts) {
            for number in 0..count {
                switches.push(SwitchNode {
                    address: Ipv4Addr::new(10, 255, tier, number as u8 + 1),
                    tier,
                    epoch: 1,
                    switch: None,
                    armed: None,
                });
            }
        }
        for node in &mut switches {
            node.switch = Some(fresh(node.address, node.tier, node.epoch));
        }
        let [tors, spines, cores] = counts;
        // With cores, TORs stand in two pods whose spines are different ones.
        let pods = if cores > 0 { 2.min(tors) } else { 1 };
        let tor_of: Vec<usize> = (0..shape.members).map(|_| chance.index(tors)).collect();
        let spine = |chance: &mut Random, pod: usize| {
            let own = (0..spines).filter(|s| s % pods == pod).collect::<Vec<_>>();
            tors + own[chance.index(own.len())]
        };
        let mut paths = vec![Vec::new()];
        for member in 1..shape.members {
            let (from, to) = (tor_of[member], tor_of[0]);
            paths.push(if from == to {
                vec![from]
            } else if from % pods == to % pods {
                vec![from, spine(&mut chance, from % pods), to]
            } else {
                let core = tors + spines + chance.index(cores);
                let (up, down) = (
                    spine(&mut chance, from % pods),
                    spine(&mut chance, to % pods),
                );
                vec![from, up, core, down, to]
            });
        }

        // Ranks are dealt out at random, so that few subtrees fall together.
        let mut cards = Vec::new();
        for member in 0..shape.members {
            for _ in 0..chance.between(1, shape.most_ranks) {
                cards.push(member);
            }
        }
        let size = cards.len();
        if chance.below(3) > 0 {
            for at in (1..size).rev() {
                let other = chance.index(at + 1);
                cards.swap(at, other);
            }
        }
        let expression = random_expression(&mut chance, size as u32);
        let calls: Vec<RoundSpec> = (0..calls)
            .map(|_| random_call(&mut chance, size as u32))
            .collect();

        let address = |member: usize| {
            // Two members on the first host now and then: a socket each.
            SocketAddrV4::new(
                Ipv4Addr::new(10, 0, 0, member as u8 + 1),
                40_000 + member as u16,
            )
        };
        let key = job_key(&secret(), JOB);
        let places: Vec<MemberPlace> = (0..shape.members)
            .map(|member| MemberPlace {
                address: address(member),
                ranks: (0..size as u32)
                    .filter(|rank| cards[*rank as usize] == member)
                    .collect(),
            })
            .collect();
        let terms = Terms {
            segment_bytes: shape.segment_bytes,
            slots: shape.slots,
            lease_ms: (LEASE.0 / 1_000_000_000) as u32,
            ..all_terms(shape.members as u32)
        };
        let results_at = shape
            .multicast
            .then(|| SocketAddrV4::new(Ipv4Addr::new(239, 1, 2, 3), 7000));
        let give_up = Span::from_ms(200);
        let hosts: Vec<Hosts> = (0..shape.members)
            .map(|member| Hosts {
                phase: if member == 0 {
                    Phase::Master(MasterSetup::new(
                        Time::ZERO,
                        MasterConfig {
                            job: JOB,
                            key,
                            group: GROUP,
                            members: places.clone(),
                            terms,
                            expression: Some(expression.clone()),
                            results: results_at,
                            datagram: 1472,
                            retry: RETRY,
                            give_up,
                        },
                    ))
                } else {
                    Phase::Member(MemberSetup::new(
                        Time::ZERO,
                        MemberSetupConfig {
                            job: JOB,
                            key,
                            group: GROUP,
                            member: member as u32,
                            master: address(0),
                            terms,
                            retry: RETRY,
                            give_up,
                        },
                    ))
                },
                address: address(member),
                ranks: places[member].ranks.clone(),
                program: member_program(&expression, &places[member].ranks).unwrap(),
                call: 0,
                waits_plain: false,
                armed: None,
                outcomes: Vec::new(),
            })
            .collect();
        let host_of = (0..shape.members)
            .map(|member| (address(member), member))
            .collect();
        let place_of = (0..)
            .zip(&switches)
            .map(|(at, node)| (node.address, at))
            .collect();
        let leave_early = chance.below(2) == 0;
        let mut world = Self {
            seed,
            chance,
            weather,
            now: Time::ZERO,
            queue: BinaryHeap::new(),
            events: Vec::new(),
            free: Vec::new(),
            serial: 0,
            hosts,
            switches,
            place_of,
            host_of,
            paths,
            expression,
            results: vec![None; calls.len()],
            calls,
            key,
            results_at,
            begun: false,
            packets: 0,
            fallback: None,
            leave_early,
        };
        if let Fault::Death(at) | Fault::Restart(at) | Fault::JobKilled(at) = weather.fault {
            world.push(at, Event::Fault);
        }
        for member in 0..world.hosts.len() {
            world.drive(member);
        }
        world
    }

    /// Runs until every call of every member is decided; `false` when virtual time ran out: somebody hangs.
    pub(crate) fn run(&mut self, most: Span) -> bool {
        while !self.is_over() {
            let Some(Reverse((at, _, index))) = self.queue.pop() else {
                return false;
            };
            assert!(at >= self.now);
            self.now = at;
            if self.now.0 > most.0 {
                return false;
            }
            self.happen(index);
        }
        true
    }

    /// Lets time pass without any call.
    pub(crate) fn wait(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(Reverse((at, _, index))) = self.queue.peek().copied() {
            if at > end {
                break;
            }
            self.queue.pop();
            self.now = at;
            self.happen(index);
        }
        self.now = end;
    }

    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn is_over(&self) -> bool {
        self.hosts.iter().all(|host| {
            matches!(host.phase, Phase::Killed) || host.outcomes.len() == self.calls.len()
        })
    }

    /// All members leave, as MPI_Finalize lets them.
    pub(crate) fn leave(&mut self) {
        for member in 0..self.hosts.len() {
            if let Phase::Running(endpoint) = &mut self.hosts[member].phase {
                endpoint.leave();
                self.drive(member);
            }
        }
    }

    /// Groups that switches still hold.
    pub(crate) fn groups(&self) -> usize {
        let alive = self.switches.iter().filter_map(|node| node.switch.as_ref());
        alive
            .map(|switch| {
                let status = switch.status();
                let (jobs, bytes) = (status.jobs.len(), status.bytes);
                assert_eq!(switch.group_count() == 0, jobs == 0 && bytes == 0);
                switch.group_count()
            })
            .sum()
    }

    pub(crate) fn describe(&self) -> String {
        let hosts: Vec<String> = self
            .hosts
            .iter()
            .map(|host| {
                let state = match &host.phase {
                    Phase::Running(endpoint) => {
                        format!("{:?} round {}", endpoint.state(), endpoint.round())
                    }
                    Phase::Plain => "plain".to_owned(),
                    Phase::Killed => "killed".to_owned(),
                    Phase::Master(setup) => format!("{:?}", setup.outcome()),
                    Phase::Member(setup) => format!("{:?}", setup.outcome()),
                };
                format!("call {} plain {} {state}", host.call, host.waits_plain)
            })
            .collect();
        format!("at {:?}: {hosts:#?}", self.now)
    }

    fn push(&mut self, at: Time, event: Event) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[index] = Some(event);
        self.serial += 1;
        self.queue.push(Reverse((at, self.serial, index)));
    }

    fn happen(&mut self, index: usize) {
        let event = self.events[index].take();
        self.free.push(index);
        match event {
            Some(Event::Deliver(from, to, payload)) => self.deliver(from, to, payload),
            Some(Event::HostTimer(member)) if self.hosts[member].armed == Some(self.now) => {
                self.hosts[member].armed = None;
                let now = self.now;
                match &mut self.hosts[member].phase {
                    Phase::Master(setup) => setup.handle_timeout(now),
                    Phase::Member(setup) => setup.handle_timeout(now),
                    Phase::Running(endpoint) => endpoint.handle_timeout(now),
                    Phase::Plain | Phase::Killed => {}
                }
                self.drive(member);
            }
            Some(Event::SwitchTimer(at)) if self.switches[at].armed == Some(self.now) => {
                self.switches[at].armed = None;
                let now = self.now;
                if let Some(switch) = &mut self.switches[at].switch {
                    switch.handle_timeout(now);
                }
                self.drain(at);
            }
            Some(Event::Think(member)) => self.call(member),
            Some(Event::Fault) => self.fault(),
            _ => {}
        }
    }

    fn fault(&mut self) {
        let at = self.chance.index(self.switches.len());
        let node = &mut self.switches[at];
        match self.weather.fault {
            Fault::Death(_) => node.switch = None,
            Fault::Restart(_) => {
                node.epoch += 1;
                node.switch = Some(fresh(node.address, node.tier, node.epoch));
            }
            Fault::JobKilled(_) => {
                for host in &mut self.hosts {
                    host.phase = Phase::Killed;
                }
            }
            Fault::None => {}
        }
    }

    /// A packet leaves; links do their worst.
    fn send(&mut self, from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) {
        self.packets += 1;
        if Some(to) == self.results_at {
            // Copies to the children below the sender, each with a fate of its own.
            let all: Vec<SocketAddrV4> = self.host_of.keys().copied().collect();
            for host in all {
                self.send(from, host, payload);
            }
            let switches: Vec<SocketAddrV4> = (self.switches.iter())
                .map(|node| SocketAddrV4::new(node.address, PORT))
                .filter(|to| to != &from)
                .collect();
            for switch in switches {
                self.send(from, switch, payload);
            }
            return;
        }
        let loss = self.weather.loss;
        let copies = if self.chance.happens(loss) {
            0
        } else {
            1 + usize::from(self.chance.happens(loss))
        };
        for _ in 0..copies {
            let mut delay = self.chance.between(1_000, 3_000);
            if self.chance.happens(loss) {
                delay += self.chance.between(1_000, 400_000);
            }
            let at = self.now + Span::from_ns(delay);
            self.push(at, Event::Deliver(from, to, payload.to_vec()));
        }
    }

    fn deliver(&mut self, from: SocketAddrV4, to: SocketAddrV4, mut payload: Vec<u8>) {
        let now = self.now;
        if let Some(&at) = self.place_of.get(to.ip()) {
            if let Some(switch) = &mut self.switches[at].switch {
                switch.handle_packet(now, from, &payload);
                while switch.poll_event().is_some() {}
                self.drain(at);
            }
            return;
        }
        let Some(&member) = self.host_of.get(&to) else {
            panic!("nobody is at {to}");
        };
        let is_query = Unverified::parse(&payload, 0).is_ok_and(|m| m.kind() == Kind::Query);
        if is_query && let Some(&sender) = self.host_of.get(&from) {
            let mut out = Vec::new();
            for at in self.paths[sender].clone() {
                let Some(switch) = &mut self.switches[at].switch else {
                    return;
                };
                assert_eq!(switch.pass(now, &payload, &mut out), Pass::Rewritten);
                std::mem::swap(&mut payload, &mut out);
            }
        }
        match &mut self.hosts[member].phase {
            Phase::Master(setup) => {
                setup.handle_packet(now, from, &payload);
            }
            Phase::Member(setup) => {
                setup.handle_packet(now, &payload);
            }
            Phase::Running(endpoint) => {
                endpoint.handle_packet(now, &payload);
            }
            Phase::Plain | Phase::Killed => {}
        }
        self.drive(member);
    }

    fn drain(&mut self, at: usize) {
        let mut buffer = [0; 9000];
        let from = SocketAddrV4::new(self.switches[at].address, PORT);
        while let Some(switch) = &mut self.switches[at].switch {
            let Some((to, length)) = switch.poll_transmit(&mut buffer) else {
                break;
            };
            self.send(from, to, &buffer[..length]);
        }
        let node = &mut self.switches[at];
        let due = node.switch.as_ref().and_then(Switch::poll_timeout);
        if let Some(due) = due.map(|due| due.max(self.now))
            && node.armed.is_none_or(|armed| due < armed)
        {
            node.armed = Some(due);
            self.push(due, Event::SwitchTimer(at));
        }
    }

    /// Sends what a member has to send, looks at what it has reached, and arms its timer.
    fn drive(&mut self, member: usize) {
        let mut buffer = [0; 9000];
        loop {
            let host = &mut self.hosts[member];
            let sent = match &mut host.phase {
                Phase::Master(setup) => setup.poll_transmit(&mut buffer),
                Phase::Member(setup) => setup.poll_transmit(&mut buffer),
                Phase::Running(endpoint) => endpoint.poll_transmit(&mut buffer),
                Phase::Plain | Phase::Killed => None,
            };
            let from = host.address;
            let Some((to, length)) = sent else { break };
            self.send(from, to, &buffer[..length]);
        }
        if self.begun {
            self.look(member);
        } else {
            self.agree();
        }
        let host = &mut self.hosts[member];
        let due = match &host.phase {
            Phase::Master(setup) => setup.poll_timeout(),
            Phase::Member(setup) => setup.poll_timeout(),
            Phase::Running(endpoint) => endpoint.poll_timeout(),
            Phase::Plain | Phase::Killed => None,
        };
        if let Some(due) = due.map(|due| due.max(self.now))
            && host.armed.is_none_or(|armed| due < armed)
        {
            host.armed = Some(due);
            self.push(due, Event::HostTimer(member));
        }
    }

    /// All ranks agree by plain MPI whether every member is ready.
    fn agree(&mut self) {
        let mut agreed: Vec<Agreement> = Vec::new();
        let mut failed = None;
        for host in &self.hosts {
            let outcome = match &host.phase {
                Phase::Master(setup) => setup.outcome(),
                Phase::Member(setup) => setup.outcome(),
                _ => return,
            };
            match outcome {
                SetupOutcome::Pending => return,
                SetupOutcome::Ready(agreement) => agreed.push(agreement),
                SetupOutcome::Failed(reason) => failed = Some(reason),
            }
        }
        self.begun = true;
        let peers: Vec<SocketAddrV4> = self.hosts.iter().map(|host| host.address).collect();
        // One that failed makes all plain.
        let agreed: Vec<Option<_>> = match failed {
            Some(_) => vec![None; self.hosts.len()],
            None => agreed.into_iter().map(Some).collect(),
        };
        self.fallback = failed.or(self.fallback);
        for (member, agreement) in agreed.into_iter().enumerate() {
            let host = &mut self.hosts[member];
            host.armed = None;
            host.phase = match agreement {
                None => Phase::Plain,
                Some(agreement) => {
                    let config = MemberConfig {
                        job: JOB,
                        key: self.key,
                        group: GROUP,
                        member: member as u32,
                        switch: agreement.switch,
                        slots: agreement.slots,
                        segment_bytes: agreement.segment_bytes,
                        operands: host.program.outputs.len() as u16,
                        lease: agreement.lease,
                        retry: RETRY,
                        give_up: GIVE_UP,
                    };
                    Phase::Running(Box::new(Endpoint::new(self.now, config, peers.clone())))
                }
            };
            self.think(member);
            self.drive(member);
        }
    }

    /// A rank computes before its next call.
    fn think(&mut self, member: usize) {
        let mut span = self.chance.below(self.weather.think_us + 1) * 1000;
        if self.weather.long_thoughts && self.chance.below(20) == 0 {
            span += 3 * GIVE_UP.as_ns() + self.chance.below(GIVE_UP.as_ns());
        }
        let at = self.now + Span::from_ns(span);
        self.push(at, Event::Think(member));
    }

    fn call(&mut self, member: usize) {
        let host = &mut self.hosts[member];
        if host.call == self.calls.len() {
            return;
        }
        let spec = self.calls[host.call];
        let started = match &mut host.phase {
            Phase::Running(endpoint) => {
                let operands =
                    own_operands(self.seed, host.call, &spec, &host.ranks, &host.program);
                endpoint.start(self.now, &spec, &operands).unwrap()
            }
            Phase::Plain => Started::Plain,
            _ => return,
        };
        if started == Started::Plain {
            self.plain(member);
        }
        self.drive(member);
    }

    /// A plain call: over when all members are in it.
    fn plain(&mut self, member: usize) {
        self.hosts[member].waits_plain = true;
        let call = self.hosts[member].call;
        for host in &self.hosts {
            let offloaded = host.outcomes.get(call) == Some(&true);
            assert!(
                !offloaded,
                "seed {}: call {call} is plain and not",
                self.seed
            );
        }
        if self
            .hosts
            .iter()
            .all(|host| host.waits_plain && host.call == call)
        {
            for other in 0..self.hosts.len() {
                let host = &mut self.hosts[other];
                host.waits_plain = false;
                host.outcomes.push(false);
                host.call += 1;
                self.think(other);
            }
        }
    }

    /// What a member's call has come to.
    fn look(&mut self, member: usize) {
        let host = &mut self.hosts[member];
        let call = host.call;
        let Phase::Running(endpoint) = &mut host.phase else {
            return;
        };
        // Only while a call runs: it is the one whose number the endpoint has.
        if call == self.calls.len() || host.waits_plain || endpoint.round() as usize != call + 1 {
            return;
        }
        match endpoint.outcome() {
            CallOutcome::Pending => {}
            CallOutcome::Done(result) => {
                let spec = &self.calls[call];
                let right = self.results[call]
                    .get_or_insert_with(|| expected(self.seed, call, spec, &self.expression));
                assert_eq!(
                    result,
                    &right[..],
                    "seed {} call {call} {spec:?}",
                    self.seed
                );
                let last = call + 1 == self.calls.len();
                host.outcomes.push(true);
                host.call += 1;
                if last && self.leave_early {
                    endpoint.leave();
                }
                for host in &self.hosts {
                    let plain = host.outcomes.get(call) == Some(&false);
                    let waits = host.waits_plain && host.call == call;
                    assert!(
                        !plain && !waits,
                        "seed {}: call {call} is offloaded and not",
                        self.seed
                    );
                }
                self.think(member);
                if last && self.leave_early {
                    self.drive(member);
                }
            }
            CallOutcome::Plain(reason) => {
                self.fallback.get_or_insert(reason);
                self.plain(member);
            }
        }
    }
}

/// What a member sends: its ranks' operands folded, or combined as far as its program can.
fn own_operands(
    seed: u64,
    call: usize,
    spec: &RoundSpec,
    ranks: &[u32],
    program: &Program,
) -> Vec<u8> {
    if spec.collective == Collective::Bcast {
        let roots = ranks.contains(&spec.root);
        return if roots {
            operand(seed, call, spec.root, spec)
        } else {
            Vec::new()
        };
    }
    let values: Vec<Vec<u8>> = ranks
        .iter()
        .map(|rank| operand(seed, call, *rank, spec))
        .collect();
    let (Some(operation), Some(data_type)) = (spec.operation, spec.data_type) else {
        return Vec::new();
    };
    if spec.ordered {
        let mut all = values.concat();
        all.resize(program.operands() * spec.bytes(), 0);
        program
            .run(operation, data_type, &mut all, spec.bytes())
            .unwrap();
        return program
            .results(&all, spec.bytes())
            .collect::<Vec<_>>()
            .concat();
    }
    let mut all = values[0].clone();
    for value in &values[1..] {
        combine_into_right(operation, data_type, value, &mut all).unwrap();
    }
    all
}

fn random_expression(chance: &mut Random, size: u32) -> Expression {
    if chance.below(3) == 0 {
        return Expression::in_rank_order(size).unwrap();
    }
    let mut nodes: Vec<Node> = (0..size).map(Node::Rank).collect();
    let mut open: Vec<u32> = (0..size).collect();
    while open.len() > 1 {
        let left = open.swap_remove(chance.index(open.len()));
        let right = open.swap_remove(chance.index(open.len()));
        open.push(nodes.len() as u32);
        nodes.push(Node::Combine(left, right));
    }
    Expression::new(nodes).unwrap()
}
