//! A program in virtual time: members driven as a real driver does, plain MPI between them, and a network that does its
//! worst.

use std::net::{Ipv4Addr, SocketAddrV4};

use raddle_offload::{
    endpoint::{CallOutcome, Endpoint, Started},
    member::RoundSpec,
    order::{Expression, Node},
    program::Program,
    retry::{Retry, Step, TryState, Waits},
    setup::{Attempt, AttemptConfig, MemberPlace, SetupOutcome, all_terms, member_program},
};
use raddle_random::Random;
use raddle_units::{Span, Time};
use raddle_wire::native::{Reason, Terms};

use crate::{
    calls::{expected, own_operands, random_call},
    network::{Event, Network, key},
};

pub(crate) const JOB: u32 = 77;
/// What a member says that could begin; above all codes of reasons.
const FINE: i32 = 1000;

/// How long everything takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub lease: Span,
    pub retry: Span,
    pub give_up: Span,
    pub set_up_retry: Span,
    pub set_up: Span,
    pub waits: Waits,
}

/// Two hundred times as fast as a real job.
pub(crate) const FAST: Pace = Pace {
    lease: Span::from_ms(100),
    retry: Span::from_us(100),
    give_up: Span::from_ms(10),
    set_up_retry: Span::from_us(100),
    set_up: Span::from_ms(200),
    waits: Waits {
        first: Span::from_ms(5),
        most_after_try: Span::from_ms(25),
        most_after_group: Span::from_ms(3_000),
    },
};

/// As a real job by default.
pub(crate) fn real_pace() -> Pace {
    Pace {
        lease: Span::from_ms(5_000),
        retry: Span::from_ms(1),
        give_up: Span::from_ms(2_000),
        set_up_retry: Span::from_ms(20),
        set_up: Span::from_ms(2_000),
        waits: Waits::from_first(Span::from_ms(1_000)),
    }
}

/// What happens to links, switches and ranks.
#[derive(Debug, Clone)]
pub(crate) struct Conditions {
    pub pace: Pace,
    /// Probability of loss, of doubling, and of reordering, each in millionths.
    pub loss: u32,
    pub faults: Vec<(Time, Fault)>,
    /// A dead TOR also cuts its hosts off from all others.
    pub cuts: bool,
    /// How long a rank computes between calls at most, in microseconds; now and then longer than `give_up`.
    pub think_us: u64,
    pub long_thoughts: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A switch is dead, for so long or for good.
    Death(Option<Span>),
    /// A switch forgets everything.
    Restart,
    /// A member's process does nothing for so long.
    Stop(Span),
    /// All ranks are killed.
    JobKilled,
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
    /// Members are dealt out to TORs in turn.
    pub in_turn: bool,
    /// The first TOR takes no groups.
    pub first_tor_is_full: bool,
}

/// What all members do together by plain MPI, before or instead of the call of this index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gathering {
    SetUp,
    Meeting(usize),
    Plain(usize),
}

#[derive(Debug)]
enum HostEvent {
    Timer(usize),
    Think(usize),
    Heard(usize, Gathering, i32),
    Fault(Fault),
    Return(usize),
}

pub(crate) struct Host {
    address: SocketAddrV4,
    ranks: Vec<u32>,
    program: Program,
    retry: Retry,
    attempt: Option<Attempt>,
    endpoint: Option<Endpoint>,
    /// Of groups that failed: other members may lack their last result.
    past: Vec<Endpoint>,
    /// Index of the call that comes next, or runs.
    call: usize,
    /// Since when the call runs in the group.
    in_round: Option<Time>,
    gathers: Option<(Gathering, i32)>,
    /// All have gathered, and it has not heard what came of that.
    hears: bool,
    armed: Option<Time>,
    stopped: Time,
    /// What became of each call: `true` offloaded.
    pub outcomes: Vec<bool>,
}

pub(crate) struct World {
    seed: u64,
    conditions: Conditions,
    net: Network<HostEvent>,
    pub hosts: Vec<Host>,
    places: Vec<MemberPlace>,
    terms: Terms,
    expression: Expression,
    calls: Vec<RoundSpec>,
    /// Calls of the program; `None`: it goes on.
    last: Option<usize>,
    results: Vec<Option<Vec<u8>>>,
    results_at: Option<SocketAddrV4>,
    group: u32,
    killed: bool,
    /// Why offload ended, or did not begin, for the first time.
    pub fallback: Option<Reason>,
    pub fallbacks: u32,
    pub tries: u32,
    pub comebacks: u32,
    leave_early: bool,
}

impl World {
    /// A program of so many calls; `None`: until [`end`](Self::end).
    pub(crate) fn new(
        seed: u64,
        shape: &Shape,
        conditions: Conditions,
        calls: Option<usize>,
    ) -> Self {
        let mut chance = Random::new(seed, 0);
        let address = |member: usize| {
            let ip = Ipv4Addr::new(10, 0, 0, member as u8 + 1);
            SocketAddrV4::new(ip, 40_000 + member as u16)
        };
        let addresses: Vec<_> = (0..shape.members).map(address).collect();
        let results_at = shape
            .multicast
            .then(|| SocketAddrV4::new(Ipv4Addr::new(239, 1, 2, 3), 7000));
        let cards = deal(&mut chance, shape);
        let expression = random_expression(&mut chance, cards.len() as u32);
        let leave_early = chance.below(2) == 0;
        let places: Vec<MemberPlace> = (0..shape.members)
            .map(|member| MemberPlace {
                address: addresses[member],
                ranks: (0..cards.len() as u32)
                    .filter(|rank| cards[*rank as usize] == member)
                    .collect(),
            })
            .collect();
        let pace = conditions.pace;
        let terms = Terms {
            segment_bytes: shape.segment_bytes,
            slots: shape.slots,
            lease_ms: (pace.lease.0 / 1_000_000_000) as u32,
            ..all_terms(shape.members as u32)
        };
        let host = |member: usize| Host {
            address: addresses[member],
            ranks: places[member].ranks.clone(),
            program: member_program(&expression, &places[member].ranks).unwrap(),
            retry: Retry::new(pace.waits, member == 0),
            attempt: None,
            endpoint: None,
            past: Vec::new(),
            call: 0,
            in_round: None,
            gathers: None,
            hears: false,
            armed: None,
            stopped: Time::ZERO,
            outcomes: Vec::new(),
        };
        let hosts: Vec<Host> = (0..shape.members).map(host).collect();
        let (loss, cuts) = (conditions.loss, conditions.cuts);
        let mut net = Network::new(chance, shape, loss, cuts, &addresses, results_at);
        for (at, fault) in &conditions.faults {
            net.push(*at, Event::Host(HostEvent::Fault(*fault)));
        }
        let mut world = Self {
            seed,
            conditions,
            net,
            hosts,
            places,
            terms,
            expression,
            calls: Vec::new(),
            last: calls,
            results: Vec::new(),
            results_at,
            group: 5,
            killed: false,
            fallback: None,
            fallbacks: 0,
            tries: 0,
            comebacks: 0,
            leave_early,
        };
        for member in 0..world.hosts.len() {
            world.begin(member);
            world.drive(member);
        }
        world
    }

    /// Runs until every call of every member is decided; `false` when virtual time ran out: somebody hangs.
    pub(crate) fn run(&mut self, most: Span) -> bool {
        let end = Time::ZERO + most;
        while !self.is_over() {
            let Some(event) = self.net.next(end) else {
                return false;
            };
            self.happen(event);
        }
        true
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, span: Span) {
        let end = self.net.now + span;
        while let Some(event) = self.net.next(end) {
            self.happen(event);
        }
        self.net.now = end;
    }

    /// The program ends with the call that some member does now.
    pub(crate) fn end(&mut self) {
        let calls = self.hosts.iter().map(|host| host.call + 1);
        self.last = calls.max();
    }

    pub(crate) const fn now(&self) -> Time {
        self.net.now
    }

    pub(crate) const fn packets(&self) -> u64 {
        self.net.packets
    }

    pub(crate) fn is_over(&self) -> bool {
        let over = |host: &Host| Some(host.outcomes.len()) == self.last;
        self.killed || self.hosts.iter().all(over)
    }

    /// All members are offloaded, and nobody has found a reason to leave.
    pub(crate) fn is_offloaded(&self) -> bool {
        self.hosts.iter().all(|host| host.endpoint.is_some())
    }

    /// How long the members wait until they try again.
    pub(crate) fn rest(&self) -> Span {
        self.hosts[0].retry.rest(self.net.now)
    }

    /// All members leave, as MPI_Finalize lets them.
    pub(crate) fn leave(&mut self) {
        for member in 0..self.hosts.len() {
            let host = &mut self.hosts[member];
            if let Some(attempt) = &mut host.attempt {
                attempt.cancel(Reason::Unsupported);
            }
            if let Some(endpoint) = &mut host.endpoint {
                endpoint.leave();
            }
            self.drive(member);
        }
    }

    /// Groups that switches still hold.
    pub(crate) fn groups(&self) -> usize {
        self.net.groups()
    }

    /// Endpoints that members keep for others.
    pub(crate) fn kept(&self) -> usize {
        self.hosts.iter().map(|host| host.past.len()).sum()
    }

    pub(crate) fn describe(&self) -> String {
        let describe = |host: &Host| {
            let state = host.endpoint.as_ref().map(|e| (e.state(), e.round()));
            let attempt = host.attempt.as_ref().map(Attempt::outcome);
            let (call, gathers) = (host.call, host.gathers);
            format!(
                "call {call} {gathers:?} {state:?} {attempt:?} {:?}",
                host.retry
            )
        };
        let hosts: Vec<String> = self.hosts.iter().map(describe).collect();
        let (seed, now) = (self.seed, self.net.now);
        format!("seed {seed} at {now:?}: {:?} {hosts:#?}", self.conditions)
    }

    fn happen(&mut self, event: Event<HostEvent>) {
        match event {
            Event::SwitchTimer(at) => self.net.switch_timer(at),
            Event::Deliver(from, to, payload) => {
                if let Some(member) = self.net.host_at(&to)
                    && self.is_stopped(member)
                {
                    return self.later(member, Event::Deliver(from, to, payload));
                }
                if let Some((member, payload)) = self.net.arrive(from, to, payload) {
                    self.take(member, from, &payload);
                }
            }
            Event::Host(event) => self.happen_to_host(event),
        }
    }

    fn happen_to_host(&mut self, event: HostEvent) {
        let (HostEvent::Timer(member) | HostEvent::Think(member) | HostEvent::Heard(member, ..)) =
            event
        else {
            return match event {
                HostEvent::Fault(fault) => self.fault(fault),
                HostEvent::Return(switch) => self.net.start(switch),
                _ => {}
            };
        };
        if self.killed {
            return;
        }
        if self.is_stopped(member) {
            if matches!(event, HostEvent::Timer(_)) {
                self.hosts[member].armed = Some(self.hosts[member].stopped);
            }
            return self.later(member, Event::Host(event));
        }
        match event {
            HostEvent::Timer(_) if self.hosts[member].armed == Some(self.net.now) => {
                let now = self.net.now;
                let host = &mut self.hosts[member];
                host.armed = None;
                if let Some(attempt) = &mut host.attempt {
                    attempt.handle_timeout(now);
                }
                for endpoint in host.endpoint.iter_mut().chain(&mut host.past) {
                    endpoint.handle_timeout(now);
                }
            }
            HostEvent::Think(_) => self.call(member),
            HostEvent::Heard(_, gathering, least) => self.heard(member, gathering, least),
            _ => {}
        }
        self.drive(member);
    }

    fn is_stopped(&self, member: usize) -> bool {
        self.hosts[member].stopped > self.net.now
    }

    fn later(&mut self, member: usize, event: Event<HostEvent>) {
        let at = self.hosts[member].stopped;
        self.net.push(at, event);
    }

    fn fault(&mut self, fault: Fault) {
        let switch = self.net.chance.index(self.net.count());
        let now = self.net.now;
        match fault {
            // One that is dead is not killed again: it would come back twice.
            Fault::Death(_) | Fault::Restart if self.net.is_dead(switch) => {}
            Fault::Death(lasts) => {
                self.net.kill(switch);
                if let Some(lasts) = lasts {
                    let event = Event::Host(HostEvent::Return(switch));
                    self.net.push(now + lasts, event);
                }
            }
            Fault::Restart => self.net.start(switch),
            Fault::Stop(lasts) => {
                let member = self.net.chance.index(self.hosts.len());
                let host = &mut self.hosts[member];
                host.stopped = host.stopped.max(now + lasts);
            }
            Fault::JobKilled => self.killed = true,
        }
    }

    fn take(&mut self, member: usize, from: SocketAddrV4, payload: &[u8]) {
        if self.killed {
            return;
        }
        let now = self.net.now;
        let host = &mut self.hosts[member];
        let taken = host
            .endpoint
            .iter_mut()
            .chain(&mut host.past)
            .any(|endpoint| endpoint.handle_packet(now, payload));
        if let (false, Some(attempt)) = (taken, &mut host.attempt) {
            attempt.handle_packet(now, from, payload);
        }
        self.drive(member);
    }

    /// Sends what a member has to send, looks at what it has reached, and arms its timer.
    fn drive(&mut self, member: usize) {
        if self.killed {
            return;
        }
        self.transmit(member);
        self.look(member);
        // What it has reached may be worth a message.
        self.transmit(member);
        let host = &mut self.hosts[member];
        let attempt = host.attempt.as_ref().and_then(Attempt::poll_timeout);
        let endpoints = host.endpoint.iter().chain(&host.past);
        let due = endpoints.filter_map(Endpoint::poll_timeout).chain(attempt);
        if let Some(due) = due.min().map(|due| due.max(self.net.now))
            && host.armed.is_none_or(|armed| due < armed)
        {
            host.armed = Some(due);
            let event = Event::Host(HostEvent::Timer(member));
            self.net.push(due, event);
        }
    }

    fn transmit(&mut self, member: usize) {
        let mut buffer = [0; 9000];
        let host = &mut self.hosts[member];
        let from = host.address;
        if let Some(attempt) = &mut host.attempt {
            while let Some((to, length)) = attempt.poll_transmit(&mut buffer) {
                self.net.send(from, to, &buffer[..length]);
            }
        }
        for endpoint in host.endpoint.iter_mut().chain(&mut host.past) {
            while let Some((to, length)) = endpoint.poll_transmit(&mut buffer) {
                self.net.send(from, to, &buffer[..length]);
            }
        }
    }

    /// A member begins to set the group up.
    fn begin(&mut self, member: usize) {
        let pace = self.conditions.pace;
        let config = AttemptConfig {
            job: JOB,
            key: key(),
            group: self.group,
            member: member as u32,
            places: self.places.clone(),
            peers: self.places.iter().map(|place| place.address).collect(),
            terms: self.terms,
            expression: Some(self.expression.clone()),
            results: self.results_at,
            datagram: 1472,
            set_up_retry: pace.set_up_retry,
            set_up_give_up: pace.set_up,
            retry: pace.retry,
            give_up: pace.give_up,
        };
        self.hosts[member].attempt = Some(Attempt::new(self.net.now, config));
    }

    /// A rank computes before its next call.
    fn think(&mut self, member: usize) {
        let chance = &mut self.net.chance;
        let mut span = chance.below(self.conditions.think_us + 1) * 1000;
        if self.conditions.long_thoughts && chance.below(20) == 0 {
            let give_up = self.conditions.pace.give_up.as_ns();
            span += 3 * give_up + chance.below(give_up);
        }
        let at = self.net.now + Span::from_ns(span);
        self.net.push(at, Event::Host(HostEvent::Think(member)));
    }

    /// A member comes to its next call.
    fn call(&mut self, member: usize) {
        let host = &self.hosts[member];
        let call = host.call;
        if Some(call) == self.last {
            return;
        }
        if host.retry.is_due(call as u64 + 1) {
            let try_state = match host.attempt.as_ref().map(Attempt::outcome) {
                Some(SetupOutcome::Pending) => TryState::Pending,
                Some(SetupOutcome::Failed(reason)) => TryState::Failed(reason.code()),
                Some(SetupOutcome::Ready(_)) | None => TryState::Ready,
            };
            let said = host.retry.say(self.net.now, try_state);
            return self.gather(member, Gathering::Meeting(call), said);
        }
        self.begin_call(member);
    }

    fn begin_call(&mut self, member: usize) {
        let call = self.hosts[member].call;
        while self.calls.len() <= call {
            let spec = random_call(&mut self.net.chance, self.expression.size());
            self.calls.push(spec);
            self.results.push(None);
        }
        let spec = self.calls[call];
        let (seed, now) = (self.seed, self.net.now);
        let host = &mut self.hosts[member];
        let Some(endpoint) = &mut host.endpoint else {
            return self.gather(member, Gathering::Plain(call), 0);
        };
        let operands = own_operands(seed, call, &spec, &host.ranks, &host.program);
        match endpoint.start(now, &spec, &operands).unwrap() {
            Started::Offloaded(_) => host.in_round = Some(now),
            Started::Plain => self.fall_back(member, now),
        }
    }

    /// Offload is over for a member: its call is the first that is plain.
    fn fall_back(&mut self, member: usize, since: Time) {
        let now = self.net.now;
        let host = &mut self.hosts[member];
        host.past.extend(host.endpoint.take());
        host.in_round = None;
        let call = host.call;
        host.retry.fell_back(call as u64 + 1, now, now.since(since));
        self.fallbacks += u32::from(member == 0);
        self.gather(member, Gathering::Plain(call), 0);
    }

    /// A member waits in plain MPI, which all leave with the least that was said.
    fn gather(&mut self, member: usize, gathering: Gathering, said: i32) {
        self.hosts[member].gathers = Some((gathering, said));
        let (seed, gathers) = (self.seed, |host: &Host| host.gathers);
        if let Gathering::Plain(call) = gathering {
            let offloaded = |host: &Host| host.outcomes.get(call) == Some(&true);
            let mixed = self.hosts.iter().any(offloaded);
            assert!(!mixed, "seed {seed}: call {call} is plain and not");
        }
        let Some(all) = self.hosts.iter().map(gathers).collect::<Option<Vec<_>>>() else {
            return;
        };
        let same = all.iter().all(|(other, _)| *other == gathering);
        assert!(same, "seed {seed}: they do not do the same: {all:?}");
        let least = all.iter().map(|(_, said)| *said).min().unwrap_or(said);
        for other in 0..self.hosts.len() {
            self.hosts[other].gathers = None;
            self.hosts[other].hears = true;
            let at = self.net.now + Span::from_ns(self.net.chance.between(1_000, 50_000));
            let event = Event::Host(HostEvent::Heard(other, gathering, least));
            self.net.push(at, event);
        }
        if let (Gathering::Meeting(_), 0) = (gathering, least >> 16) {
            self.group += 1;
        }
    }

    fn heard(&mut self, member: usize, gathering: Gathering, least: i32) {
        let now = self.net.now;
        self.hosts[member].hears = false;
        match gathering {
            Gathering::SetUp if least == FINE => {
                self.take_over(member);
                self.hosts[member].retry.stands(1, now);
                self.think(member);
            }
            Gathering::SetUp => {
                self.give_up(member);
                let reason = Reason::from_code(least as u8);
                self.fallback = self.fallback.or(reason);
                self.hosts[member].retry.set_up_failed(0, now);
                self.think(member);
            }
            Gathering::Meeting(call) => {
                let host = &mut self.hosts[member];
                host.past.clear();
                let step = host.retry.hear(call as u64 + 1, now, least);
                let counts = u32::from(member == 0);
                match step {
                    Step::GoOn => {}
                    Step::Begin => {
                        self.begin(member);
                        self.tries += counts;
                    }
                    Step::GiveUp(_) => self.give_up(member),
                    Step::Ready => {
                        self.take_over(member);
                        self.comebacks += counts;
                    }
                }
                self.begin_call(member);
            }
            Gathering::Plain(_) => {
                let host = &mut self.hosts[member];
                host.outcomes.push(false);
                host.call += 1;
                self.think(member);
            }
        }
    }

    fn take_over(&mut self, member: usize) {
        let host = &mut self.hosts[member];
        let taken = host.attempt.take().and_then(Attempt::into_endpoint);
        let (_, endpoint) = taken.expect("it has said that it is ready");
        host.endpoint = Some(endpoint);
    }

    fn give_up(&mut self, member: usize) {
        let host = &mut self.hosts[member];
        if let Some(attempt) = &mut host.attempt {
            attempt.cancel(Reason::Unsupported);
        }
        self.transmit(member);
        self.hosts[member].attempt = None;
    }

    /// What a member's set-up or call has come to.
    fn look(&mut self, member: usize) {
        let host = &mut self.hosts[member];
        let waits = host.gathers.is_some() || host.hears;
        let first = host.call == 0 && host.retry.is_settled() && !waits;
        if let (true, Some(attempt)) = (first, &host.attempt) {
            let said = match attempt.outcome() {
                SetupOutcome::Pending => return,
                SetupOutcome::Ready(_) => FINE,
                SetupOutcome::Failed(reason) => i32::from(reason.code()),
            };
            return self.gather(member, Gathering::SetUp, said);
        }
        let (Some(since), Some(endpoint)) = (host.in_round, &mut host.endpoint) else {
            return;
        };
        let call = host.call;
        let result = match endpoint.outcome() {
            CallOutcome::Pending => return,
            CallOutcome::Plain(reason) => {
                self.fallback.get_or_insert(reason);
                return self.fall_back(member, since);
            }
            CallOutcome::Done(result) => result,
        };
        let (seed, spec) = (self.seed, &self.calls[call]);
        let right =
            self.results[call].get_or_insert_with(|| expected(seed, call, spec, &self.expression));
        assert_eq!(result, &right[..], "seed {seed} call {call} {spec:?}");
        let is_last = Some(call + 1) == self.last;
        host.outcomes.push(true);
        host.call += 1;
        host.in_round = None;
        if is_last && self.leave_early {
            endpoint.leave();
        }
        for host in &self.hosts {
            let plain = host.outcomes.get(call) == Some(&false);
            let waits = host
                .gathers
                .is_some_and(|(what, _)| what == Gathering::Plain(call));
            assert!(
                !plain && !waits,
                "seed {seed}: call {call} is offloaded and not"
            );
        }
        self.think(member);
    }
}

/// Ranks are dealt out at random, so that few subtrees fall together: the member of each rank.
fn deal(chance: &mut Random, shape: &Shape) -> Vec<usize> {
    let mut cards = Vec::new();
    for member in 0..shape.members {
        for _ in 0..chance.between(1, shape.most_ranks) {
            cards.push(member);
        }
    }
    if chance.below(3) > 0 {
        for at in (1..cards.len()).rev() {
            let other = chance.index(at + 1);
            cards.swap(at, other);
        }
    }
    cards
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
