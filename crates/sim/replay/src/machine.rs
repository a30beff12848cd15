//! Ranks on hosts as a workload: the network carries what they send between hosts, everything else happens here.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
};

use raddle_trace::Interval;
use raddle_units::{Bytes, NodeId, Span, Time};
use raddle_workload::{DATA_PRIORITY, Message, PLAIN_CLASS, Workload, collective::HostCosts};

use super::{
    ReplayCosts, ReplayError, ReplaySettings,
    noise::RankNoise,
    processors::Processors,
    program::{Parcel, Program, Step},
};

/// Something for a rank to take in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    /// A parcel from the network or a rank of the host.
    Parcel(u32),
    /// A message that the receiver of a joined parcel handed on.
    Message(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The rank begins.
    Start,
    /// The rank comes to a wait.
    Enter,
    /// Something is there to take in.
    Arrive(Item),
    /// What the rank was taking in is in.
    Served,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Computes or sends; does not look at what arrives.
    Away,
    Waiting,
    /// Through, and waits for its end with the others (MPI_Finalize).
    Over(Time),
}

#[derive(Debug)]
struct Rank {
    step: usize,
    state: State,
    /// Tickets that it still waits for.
    missing: u32,
    serving: Option<Item>,
    inbox: VecDeque<Item>,
    noise: RankNoise,
    /// When its present call began: the end of the one before, or of computing after that.
    since: Time,
    /// Its calls so far.
    calls: Vec<Interval>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ticket {
    Open,
    /// The rank that it belongs to waits for it.
    Awaited,
    Done,
}

impl Rank {
    /// Its call is over.
    fn returns(&mut self, now: Time) {
        let nanoseconds = |time: Time| time.0 / 1000;
        let call = Interval::new(nanoseconds(self.since), nanoseconds(now));
        self.calls.push(call);
        self.since = now;
    }
}

/// The ranks of a [`Program`] on hosts. A [`Workload`] whose messages are parcels; [`Message::tag`] is the parcel.
#[derive(Debug)]
pub struct Machine<'a> {
    program: &'a Program,
    /// Of each rank.
    hosts: &'a [NodeId],
    sockets: Vec<u32>,
    /// What a message in shared memory costs each rank, besides its bytes.
    local_overheads: Vec<Span>,
    processors: Processors,
    costs: ReplayCosts,
    ranks: Vec<Rank>,
    tickets: Vec<Ticket>,
    /// (time, order of creation, rank, what).
    events: BinaryHeap<Reverse<(Time, u64, u32, What)>>,
    /// (time, order of creation, parcel).
    ready: BinaryHeap<Reverse<(Time, u64, u32)>>,
    created: u64,
    classes: [String; 1],
    network_messages: u64,
    network_bytes: u64,
    running: u32,
}

impl<'a> Machine<'a> {
    /// Rank r on `hosts[r]`.
    ///
    /// # Errors
    /// When there are fewer hosts than ranks.
    pub fn new(
        program: &'a Program,
        hosts: &'a [NodeId],
        settings: &ReplaySettings,
    ) -> Result<Self, ReplayError> {
        let ranks = program.ranks();
        if hosts.len() != ranks as usize {
            let problem = super::PlaceError::TooFew {
                placement: "given".to_owned(),
                needed: ranks as usize,
                hosts: hosts.len(),
            };
            return Err(problem.into());
        }
        let sockets = sockets_of(hosts, settings.sockets);
        let mut machine = Self {
            program,
            hosts,
            local_overheads: local_overheads(hosts, &sockets, &settings.costs.host),
            sockets,
            processors: Processors::new(ranks, settings.processors),
            costs: settings.costs,
            ranks: Vec::with_capacity(ranks as usize),
            tickets: vec![Ticket::Open; program.ticket_count()],
            events: BinaryHeap::new(),
            ready: BinaryHeap::new(),
            created: 0,
            classes: [PLAIN_CLASS.to_owned()],
            network_messages: 0,
            network_bytes: 0,
            running: ranks,
        };
        for rank in 0..ranks {
            let mut noise = RankNoise::new(settings.noise, settings.seed, rank);
            let start = Time::ZERO + noise.start();
            machine.ranks.push(Rank {
                step: 0,
                state: State::Waiting,
                missing: 0,
                serving: None,
                inbox: VecDeque::new(),
                noise,
                since: start,
                calls: Vec::new(),
            });
            machine.at(start, rank, What::Start);
        }
        Ok(machine)
    }

    /// When each rank ended.
    ///
    /// # Errors
    /// The first rank that did not end.
    pub fn ends(&self) -> Result<Vec<Time>, ReplayError> {
        let end = |(rank, state): (u32, &Rank)| match state.state {
            State::Over(end) => Ok(end),
            _ => Err(ReplayError::Stuck {
                rank,
                missing: state.missing,
            }),
        };
        (0..).zip(&self.ranks).map(end).collect()
    }

    /// When the calls of each rank began and came back, in the order of the program.
    #[must_use]
    pub fn into_calls(self) -> Vec<Vec<Interval>> {
        self.ranks.into_iter().map(|rank| rank.calls).collect()
    }

    /// Messages that went through the network so far.
    #[must_use]
    pub const fn network_messages(&self) -> u64 {
        self.network_messages
    }

    /// Their bytes, heads and envelopes included.
    #[must_use]
    pub const fn network_bytes(&self) -> u64 {
        self.network_bytes
    }

    fn at(&mut self, time: Time, rank: u32, what: What) {
        self.created += 1;
        self.events.push(Reverse((time, self.created, rank, what)));
    }

    /// A rank goes on at `now` on its processor until it waits. What it sends until then leaves later than now, so nothing that happens
    /// meanwhile can change it.
    fn go(&mut self, rank: u32, now: Time) {
        let program = self.program;
        let mut now = now;
        loop {
            let own = &mut self.ranks[rank as usize];
            match program.steps(rank).get(own.step) {
                Some(Step::Compute(span)) => {
                    now += own.noise.gap(*span);
                    own.since = now;
                }
                Some(Step::Send(parcel)) => now = self.send(rank, *parcel, now),
                Some(Step::Return) => own.returns(now),
                Some(Step::Await { .. }) => break self.at(now, rank, What::Enter),
                None => {
                    self.running -= 1;
                    own.state = State::Over(now);
                    break self.at(now, rank, What::Enter);
                }
            }
            self.ranks[rank as usize].step += 1;
        }
    }

    /// Issues a parcel; when the rank is free again.
    fn send(&mut self, rank: u32, number: u32, now: Time) -> Time {
        let parcel = *self.program.parcel(number);
        let costs = self.costs.host;
        let (from, to) = (
            self.hosts[rank as usize],
            self.hosts[parcel.receiver as usize],
        );
        if from == to {
            let free = now + self.local(rank, parcel.bytes);
            let seen = free + self.latency(rank, parcel.receiver);
            self.at(seen, parcel.receiver, What::Arrive(Item::Parcel(number)));
            if parcel.bytes <= self.costs.local_eager_limit.0 {
                self.done(rank, self.program.delivered(number));
            }
            return free;
        }
        if parcel.bytes <= self.costs.eager_limit.0 {
            self.done(rank, self.program.delivered(number));
        }
        let mut free = now + costs.send_overhead;
        if parcel.is_joined() {
            for &message in self.program.parts(&parcel) {
                free += self.part_cost(message);
            }
        }
        free += self.copy(&parcel);
        self.created += 1;
        self.ready.push(Reverse((free, self.created, number)));
        free
    }

    /// Copying between a rank and the card.
    fn copy(&self, parcel: &Parcel) -> Span {
        if parcel.bytes > self.costs.eager_limit.0 {
            return Span::ZERO;
        }
        self.costs.host.copy_per_byte * parcel.bytes
    }

    /// Putting a part in, or taking it out.
    fn part_cost(&self, message: u32) -> Span {
        let bytes = self.program.message(message).bytes.0;
        self.costs.part_overhead + self.costs.host.local_copy_per_byte * bytes
    }

    /// Writing or reading a message in shared memory.
    fn local(&self, rank: u32, bytes: u64) -> Span {
        self.local_overheads[rank as usize] + self.costs.host.local_copy_per_byte * bytes
    }

    /// From one rank's write until another of its host sees it.
    fn latency(&self, from: u32, to: u32) -> Span {
        if from == to {
            Span::ZERO
        } else if self.sockets[from as usize] == self.sockets[to as usize] {
            self.costs.host.socket_latency
        } else {
            self.costs.host.cross_latency
        }
    }

    fn handle(&mut self, now: Time, rank: u32, what: What) {
        match what {
            What::Start => self.wake(rank, now),
            What::Enter => self.enter(rank, now),
            What::Arrive(item) => {
                self.ranks[rank as usize].inbox.push_back(item);
                self.wake(rank, now);
            }
            What::Served => self.served(rank, now),
        }
    }

    fn enter(&mut self, rank: u32, now: Time) {
        let program = self.program;
        let own = &mut self.ranks[rank as usize];
        if let Some(&Step::Await { begin, end }) = program.steps(rank).get(own.step) {
            own.step += 1;
            own.state = State::Waiting;
            own.missing = 0;
            for &ticket in program.tickets(begin..end) {
                let ticket = &mut self.tickets[ticket as usize];
                if *ticket == Ticket::Open {
                    *ticket = Ticket::Awaited;
                    own.missing += 1;
                }
            }
        }
        self.work(rank, now);
    }

    /// A rank that looks on and has something to do works as soon as its processor is free.
    fn wake(&mut self, rank: u32, now: Time) {
        let own = &self.ranks[rank as usize];
        let has_work = match own.state {
            State::Away => false,
            State::Waiting => own.missing == 0 || !own.inbox.is_empty(),
            State::Over(since) => since <= now && !own.inbox.is_empty(),
        };
        if has_work && own.serving.is_none() && self.processors.take(rank) {
            self.begin(rank, now);
        }
    }

    /// A rank in MPI that has its processor leaves its wait if nothing is missing, else takes the next thing in, else gives
    /// the processor to another.
    fn work(&mut self, rank: u32, now: Time) {
        let own = &mut self.ranks[rank as usize];
        if own.state == State::Waiting && own.missing == 0 {
            own.state = State::Away;
            let begin = self.switched(rank, now);
            self.go(rank, begin);
        } else if let Some(item) = own.inbox.pop_front() {
            own.serving = Some(item);
            let begin = self.switched(rank, now);
            let done = self.take_in(rank, item, begin);
            self.at(done, rank, What::Served);
        } else if let Some(next) = self.processors.give_back(rank) {
            self.begin(next, now);
        }
    }

    /// A rank has its processor. Those that look in vain there have their turns too: on average half of them come first.
    fn begin(&mut self, rank: u32, now: Time) {
        let others = u64::from(self.processors.looking(rank));
        self.work(rank, now + Span(self.costs.look_overhead.0 * others / 2));
    }

    /// When a rank that has its processor since now begins to work.
    fn switched(&mut self, rank: u32, now: Time) -> Time {
        if self.processors.switches(rank) {
            now + self.costs.switch_overhead
        } else {
            now
        }
    }

    /// When a rank has taken in what it begins with now. Parts for others are seen when each is copied.
    fn take_in(&mut self, rank: u32, item: Item, now: Time) -> Time {
        let costs = self.costs.host;
        let program = self.program;
        let number = match item {
            Item::Message(message) => {
                return now + self.local(rank, program.message(message).bytes.0);
            }
            Item::Parcel(number) => number,
        };
        let parcel = *program.parcel(number);
        if self.hosts[rank as usize] == self.hosts[parcel.issuer as usize] {
            return now + self.local(rank, parcel.bytes);
        }
        let mut now = now + costs.receive_overhead + self.copy(&parcel);
        if !parcel.is_joined() {
            return now;
        }
        for &message in program.parts(&parcel) {
            now += self.part_cost(message);
            let target = program.message(message).target;
            if target != rank {
                now += self.local_overheads[rank as usize];
                let seen = now + self.latency(rank, target);
                self.at(seen, target, What::Arrive(Item::Message(message)));
            }
        }
        now
    }

    fn served(&mut self, rank: u32, now: Time) {
        let program = self.program;
        match self.ranks[rank as usize].serving.take() {
            Some(Item::Message(message)) => self.done(rank, message),
            Some(Item::Parcel(number)) => {
                for &message in program.parts(program.parcel(number)) {
                    if program.message(message).target == rank {
                        self.done(rank, message);
                    }
                }
                let issuer = program.parcel(number).issuer;
                if self.hosts[issuer as usize] == self.hosts[rank as usize] {
                    self.done(issuer, program.delivered(number));
                    self.wake(issuer, now);
                }
            }
            None => {}
        }
        self.work(rank, now);
    }

    fn done(&mut self, rank: u32, ticket: u32) {
        let ticket = &mut self.tickets[ticket as usize];
        if *ticket == Ticket::Awaited {
            self.ranks[rank as usize].missing -= 1;
        }
        *ticket = Ticket::Done;
    }
}

/// By rank, as [`HostCosts::local_overhead_among`] has it.
fn local_overheads(hosts: &[NodeId], sockets: &[u32], costs: &HostCosts) -> Vec<Span> {
    let mut ranks = BTreeMap::<(NodeId, u32), u64>::new();
    let places = || hosts.iter().copied().zip(sockets.iter().copied());
    for place in places() {
        *ranks.entry(place).or_default() += 1;
    }
    places()
        .map(|place| costs.local_overhead_among(ranks[&place]))
        .collect()
}

/// The socket of each rank: a host's ranks are spread evenly over its sockets, in order.
fn sockets_of(hosts: &[NodeId], sockets: u32) -> Vec<u32> {
    let mut on_host = BTreeMap::<NodeId, u64>::new();
    for &host in hosts {
        *on_host.entry(host).or_default() += 1;
    }
    let mut seen = BTreeMap::<NodeId, u64>::new();
    hosts
        .iter()
        .map(|host| {
            let place = seen.entry(*host).or_default();
            *place += 1;
            ((*place - 1) * u64::from(sockets.max(1)) / on_host[host]) as u32
        })
        .collect()
}

impl Workload for Machine<'_> {
    fn classes(&self) -> &[String] {
        &self.classes
    }

    fn next_start(&self) -> Option<Time> {
        let event = self.events.peek().map(|Reverse((time, ..))| *time);
        let ready = self.ready.peek().map(|Reverse((time, ..))| *time);
        [event, ready].into_iter().flatten().min()
    }

    fn pop(&mut self) -> Option<Message> {
        let now = self.next_start()?;
        while let Some(&Reverse((time, _, rank, what))) = self.events.peek()
            && time <= now
        {
            self.events.pop();
            self.handle(time, rank, what);
        }
        let &Reverse((start, _, number)) = self.ready.peek()?;
        if start > now {
            return None;
        }
        self.ready.pop();
        let parcel = self.program.parcel(number);
        let size = Bytes((parcel.bytes + self.costs.host.envelope.0).max(1));
        self.network_messages += 1;
        self.network_bytes += size.0;
        Some(Message {
            start,
            src: self.hosts[parcel.issuer as usize],
            dst: self.hosts[parcel.receiver as usize].into(),
            size,
            class: 0,
            priority: DATA_PRIORITY,
            tag: u64::from(number),
        })
    }

    fn on_delivered(&mut self, now: Time, tag: u64) {
        let number = tag as u32;
        let parcel = *self.program.parcel(number);
        self.done(parcel.issuer, self.program.delivered(number));
        self.wake(parcel.issuer, now);
        self.handle(now, parcel.receiver, What::Arrive(Item::Parcel(number)));
    }

    fn has_dependencies(&self) -> bool {
        true
    }

    fn finished(&self) -> bool {
        self.running == 0 && self.events.is_empty() && self.ready.is_empty()
    }
}
