//! The ranks of some hosts: what they do, and when.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
    sync::Arc,
};

use raddle_trace::Interval;
use raddle_units::{NodeId, Span, Time};
use raddle_workload::{Message, Workload};

use super::{
    Stage,
    diary::{Diary, Doing, Given},
    processors::Processors,
};
use crate::{
    noise::RankNoise,
    program::{Round, Step},
};

/// Something for a rank to take in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    /// A parcel from the network or a rank of the host.
    Parcel(u32),
    /// A message that the receiver of a joined parcel handed on.
    Message(u32),
    /// What a round gives, and the ticket that stands for it.
    Round {
        /// The round.
        number: u32,
        /// The ticket.
        ticket: u32,
    },
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
    /// The rank has computed for as long as it may while others wait for its processor.
    Sliced,
    /// The rank has looked for messages, so many times by now.
    Looked(u32),
    /// A parcel of the rank is with a host that told of it late.
    Delivered(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Computes or sends; does not look at what arrives.
    Away,
    Waiting,
    /// Through, and waits for its end with the others (MPI_Finalize).
    Over(Time),
}

#[derive(Debug)]
pub(super) struct Rank {
    /// Among all ranks.
    pub(super) number: u32,
    /// Whether its program runs.
    pub(super) runs: bool,
    /// Its host's place in the part.
    host: u32,
    step: usize,
    pub(super) state: State,
    /// Tickets that it still waits for.
    pub(super) missing: u32,
    /// What it takes in, and when that came.
    serving: Option<(Item, Time)>,
    inbox: VecDeque<(Item, Time)>,
    /// Whether it has its processor and looks for messages before it gives it to another.
    looks: bool,
    /// How often it has begun to.
    looked: u32,
    /// What is left of the gap that it computes in.
    rest: Option<Span>,
    /// How long it takes to look once for what it waits for.
    look: Span,
    noise: RankNoise,
    /// When its present call began: the end of the one before, or of computing after that.
    since: Time,
    /// Its calls so far.
    pub(super) calls: Vec<Interval>,
    /// What it did so far, where that is kept.
    pub(super) diary: Option<Diary>,
}

impl Rank {
    /// A rank that begins at `since`, if its program runs.
    pub(super) fn new(number: u32, noise: RankNoise, since: Time, runs: bool) -> Self {
        Self {
            number,
            runs,
            host: 0,
            step: 0,
            state: if runs {
                State::Waiting
            } else {
                State::Over(since)
            },
            missing: 0,
            serving: None,
            inbox: VecDeque::new(),
            looks: false,
            looked: 0,
            rest: None,
            look: Span::ZERO,
            noise,
            since,
            calls: Vec::new(),
            diary: None,
        }
    }

    fn note(&mut self, until: Time, doing: Doing) {
        if let Some(diary) = &mut self.diary {
            diary.note(until, doing);
        }
    }

    /// Its call is over.
    fn returns(&mut self, now: Time) {
        let nanoseconds = |time: Time| time.0 / 1000;
        let call = Interval::new(nanoseconds(self.since), nanoseconds(now));
        self.calls.push(call);
        self.since = now;
    }
}

/// Ranks on some of the hosts. What it hears of other hosts may lie in its past: that happens when its own host has got
/// to.
#[derive(Debug)]
pub(super) struct Part<'a> {
    stage: Arc<Stage<'a>>,
    /// By rank: its place in the part that has it.
    places: Arc<[u32]>,
    /// Whether deliveries are told as [`Workload::split`] says.
    is_cut: bool,
    pub(super) ranks: Vec<Rank>,
    /// By host: when something last happened there.
    clocks: Vec<Time>,
    processors: Processors,
    /// (time, order of creation, rank, what).
    events: BinaryHeap<Reverse<(Time, u64, u32, What)>>,
    /// (time, order of creation, parcel or round).
    ready: BinaryHeap<Reverse<(Time, u64, u64)>>,
    created: u64,
    pub(super) network_messages: u64,
    pub(super) network_bytes: u64,
    running: u32,
    /// When ranks here issued parcels and rounds, where that is kept.
    pub(super) given: Option<Vec<Given>>,
}

impl<'a> Part<'a> {
    /// These ranks, in ascending order, none of which has begun; `places` has their places among them.
    pub(super) fn new(
        stage: Arc<Stage<'a>>,
        places: Arc<[u32]>,
        is_cut: bool,
        mut ranks: Vec<Rank>,
    ) -> Self {
        let mut hosts = BTreeMap::new();
        for rank in &mut ranks {
            let next = hosts.len() as u32;
            rank.host = *hosts.entry(stage.host(rank.number)).or_insert(next);
        }
        let processors = ranks.iter().map(|rank| stage.processor(rank.number));
        let mut part = Self {
            places,
            is_cut,
            clocks: vec![Time::ZERO; hosts.len()],
            processors: Processors::new(processors),
            events: BinaryHeap::new(),
            ready: BinaryHeap::new(),
            created: 0,
            network_messages: 0,
            network_bytes: 0,
            given: stage.keeps_diaries.then(Vec::new),
            running: ranks.iter().filter(|rank| rank.runs).count() as u32,
            ranks,
            stage,
        };
        for place in 0..part.ranks.len() {
            let rank = &part.ranks[place];
            if rank.runs {
                part.at(rank.since, rank.number, What::Start);
            }
        }
        part
    }

    fn place(&self, rank: u32) -> usize {
        self.places[rank as usize] as usize
    }

    fn rank(&mut self, rank: u32) -> &mut Rank {
        let place = self.place(rank);
        &mut self.ranks[place]
    }

    /// The time of something that happens to a rank at `time`, or when its host has got to.
    fn tick(&mut self, rank: u32, time: Time) -> Time {
        let clock = &mut self.clocks[self.ranks[self.places[rank as usize] as usize].host as usize];
        *clock = time.max(*clock);
        *clock
    }

    fn at(&mut self, time: Time, rank: u32, what: What) {
        self.created += 1;
        self.events.push(Reverse((time, self.created, rank, what)));
    }

    /// A rank goes on at `now` on its processor until it waits. What it sends until then leaves later than now, so nothing that happens
    /// meanwhile can change it.
    fn go(&mut self, rank: u32, now: Time) {
        let program = self.stage.program;
        let look = self.stage.costs.look_overhead;
        let mut now = now;
        loop {
            let own = self.rank(rank);
            match program.steps(rank).get(own.step) {
                Some(Step::Compute(span)) => {
                    let work = match own.rest.take() {
                        // It may have waited for its processor.
                        Some(rest) => {
                            own.note(now, Doing::Host);
                            rest
                        }
                        None => own.noise.gap(*span),
                    };
                    let slice = self.slice(rank, work);
                    now += slice;
                    let own = self.rank(rank);
                    own.since = now;
                    own.note(now, Doing::Computing);
                    if slice < work {
                        own.rest = Some(work - slice);
                        break self.at(now, rank, What::Sliced);
                    }
                }
                Some(Step::Send(parcel)) => {
                    now = self.send(rank, *parcel, now);
                    self.note_given(u64::from(*parcel), now);
                    self.rank(rank).note(now, Doing::Host);
                }
                Some(Step::Round(round)) => {
                    now = self.give(*round, now);
                    let tag = u64::from(program.parcel_count()) + u64::from(*round);
                    self.note_given(tag, now);
                    self.rank(rank).note(now, Doing::Host);
                }
                Some(Step::Return) => own.returns(now),
                Some(Step::Await { .. }) => break self.at(now, rank, What::Enter),
                None => {
                    own.note(now, Doing::Host);
                    own.state = State::Over(now);
                    own.look = look;
                    self.running -= 1;
                    break self.at(now, rank, What::Enter);
                }
            }
            self.rank(rank).step += 1;
        }
    }

    /// How much of its work a rank does before it looks whether others wait for its processor.
    fn slice(&self, rank: u32, work: Span) -> Span {
        if self.processors.is_shared(self.place(rank)) {
            work.min(self.stage.costs.time_slice)
        } else {
            work
        }
    }

    /// A rank that computes goes on, after those that wait for its processor.
    fn sliced(&mut self, rank: u32, now: Time) {
        let place = self.place(rank);
        if !self.processors.is_wanted(place) {
            return self.go(rank, now);
        }
        let next = self.processors.give_back(place, Span::ZERO);
        self.processors.take(place);
        if let Some(next) = next {
            let looks = self.processors.looking(next);
            self.begin(self.ranks[next].number, looks, now);
        }
    }

    fn note_given(&mut self, tag: u64, at: Time) {
        if let Some(given) = &mut self.given {
            given.push(Given { tag, at });
        }
    }

    /// Issues a parcel; when the rank is free again.
    fn send(&mut self, rank: u32, number: u32, now: Time) -> Time {
        let stage = Arc::clone(&self.stage);
        let (program, costs) = (stage.program, stage.costs);
        let parcel = *program.parcel(number);
        if stage.are_together(rank, parcel.receiver) {
            let free = now + stage.local(rank, parcel.bytes);
            let seen = free + stage.latency(rank, parcel.receiver);
            self.at(seen, parcel.receiver, What::Arrive(Item::Parcel(number)));
            if parcel.bytes <= costs.local_eager_limit.0 {
                self.done(rank, program.delivered(number), now);
            }
            return free;
        }
        if parcel.bytes <= costs.eager_limit.0 {
            self.done(rank, program.delivered(number), now);
        }
        let mut free = now + costs.host.send_overhead + stage.schedule_cost(&parcel);
        if parcel.is_joined() {
            for &message in program.parts(&parcel) {
                free += stage.part_cost(message);
            }
        }
        free += stage.copy(&parcel);
        self.created += 1;
        let tag = u64::from(number);
        self.ready.push(Reverse((free, self.created, tag)));
        free
    }

    /// Gives something to the network for several hosts; when the rank is free again.
    fn give(&mut self, number: u32, now: Time) -> Time {
        let stage = &self.stage;
        let free = now + stage.round_send(stage.program.round(number));
        let tag = u64::from(stage.program.parcel_count()) + u64::from(number);
        self.created += 1;
        self.ready.push(Reverse((free, self.created, tag)));
        free
    }

    /// What a round gives to a rank of this part is there.
    fn arrive(&mut self, now: Time, tag: u64, (rank, ticket): (u32, u32)) {
        let number = (tag - u64::from(self.stage.program.parcel_count())) as u32;
        let item = Item::Round { number, ticket };
        self.handle(now, rank, What::Arrive(item));
    }

    fn handle(&mut self, time: Time, rank: u32, what: What) {
        let now = self.tick(rank, time);
        match what {
            What::Start => self.wake(rank, now),
            What::Enter => self.enter(rank, now),
            What::Arrive(item) => {
                self.rank(rank).inbox.push_back((item, now));
                self.wake(rank, now);
            }
            What::Served => self.served(rank, now),
            What::Sliced => self.sliced(rank, now),
            What::Looked(turn) => {
                let own = self.rank(rank);
                if own.looks && own.looked == turn {
                    own.looks = false;
                    self.give_way(rank, now);
                }
            }
            What::Delivered(number) => {
                self.done(rank, self.stage.program.delivered(number), now);
                self.wake(rank, now);
            }
        }
    }

    fn enter(&mut self, rank: u32, now: Time) {
        let program = self.stage.program;
        let place = self.place(rank);
        let own = &mut self.ranks[place];
        if let Some(&Step::Await { begin, end }) = program.steps(rank).get(own.step) {
            own.step += 1;
            own.state = State::Waiting;
            own.missing = 0;
            if let Some(diary) = &mut own.diary {
                diary.waits();
            }
            let tickets = program.tickets(begin..end);
            own.look = self.stage.look(tickets);
            for &ticket in tickets {
                own.missing += u32::from(self.stage.tickets[ticket as usize].await_it());
            }
        }
        self.work(rank, now);
    }

    /// A rank that looks on and has something to do works as soon as its processor is free.
    fn wake(&mut self, rank: u32, now: Time) {
        let place = self.place(rank);
        let own = &self.ranks[place];
        let has_work = match own.state {
            State::Away => false,
            State::Waiting => own.missing == 0 || !own.inbox.is_empty(),
            State::Over(since) => since <= now && !own.inbox.is_empty(),
        };
        if !has_work || own.serving.is_some() {
            return;
        }
        if std::mem::take(&mut self.ranks[place].looks) {
            self.work(rank, now);
        } else if self.processors.take(place) {
            let others = self.processors.looking(place);
            self.begin(rank, others, now);
        }
    }

    /// A rank in MPI that has its processor leaves its wait if nothing is missing, else takes the next thing in, else looks
    /// for messages and then gives the processor to another.
    fn work(&mut self, rank: u32, now: Time) {
        let place = self.place(rank);
        let own = &mut self.ranks[place];
        if own.rest.is_some() {
            let begin = self.switched(rank, now);
            self.go(rank, begin);
        } else if own.state == State::Waiting && own.missing == 0 {
            own.state = State::Away;
            if let Some(diary) = &mut own.diary {
                diary.waited(now);
            }
            let begin = self.switched(rank, now);
            self.go(rank, begin);
        } else if let Some(next) = own.inbox.pop_front() {
            own.serving = Some(next);
            let begin = self.switched(rank, now);
            let done = self.take_in(rank, next.0, begin);
            self.at(done, rank, What::Served);
        } else if self.processors.is_shared(place) {
            own.looks = true;
            own.looked += 1;
            let (turn, look) = (own.looked, own.look);
            let poll = self.stage.costs.poll_overhead.min(look);
            self.at(now + poll, rank, What::Looked(turn));
        } else {
            self.give_way(rank, now);
        }
    }

    /// A rank that has nothing to do gives its processor to whoever waits for it.
    fn give_way(&mut self, rank: u32, now: Time) {
        let place = self.place(rank);
        let look = self.ranks[place].look;
        if let Some(next) = self.processors.give_back(place, look) {
            // This one has just looked, but for what it takes after it has polled.
            let others = self.processors.looking(next) - look;
            let rest = look - self.stage.costs.poll_overhead.min(look);
            self.begin(self.ranks[next].number, others, now + rest);
        }
    }

    /// A rank has its processor. Others there look for messages in vain, which takes them `looks`: on average half of them come
    /// first.
    fn begin(&mut self, rank: u32, looks: Span, now: Time) {
        self.work(rank, now + Span(looks.0 / 2));
    }

    /// When a rank that has its processor since now begins to work.
    fn switched(&mut self, rank: u32, now: Time) -> Time {
        if self.processors.switches(self.place(rank)) {
            now + self.stage.costs.switch_overhead
        } else {
            now
        }
    }

    /// When a rank has taken in what it begins with now. Parts for others are seen when each is copied.
    fn take_in(&mut self, rank: u32, item: Item, now: Time) -> Time {
        let stage = Arc::clone(&self.stage);
        let program = stage.program;
        let number = match item {
            Item::Message(message) => {
                return now + stage.local(rank, program.message(message).bytes.0);
            }
            Item::Round { number, .. } => {
                return now + stage.round_receive(program.round(number));
            }
            Item::Parcel(number) => number,
        };
        let parcel = *program.parcel(number);
        if stage.are_together(rank, parcel.issuer) {
            return now + stage.local(rank, parcel.bytes);
        }
        let overhead = stage.costs.host.receive_overhead + stage.schedule_cost(&parcel);
        let mut now = now + overhead + stage.copy(&parcel);
        if !parcel.is_joined() {
            return now;
        }
        for &message in program.parts(&parcel) {
            now += stage.part_cost(message);
            let target = program.message(message).target;
            if target != rank {
                now += stage.local(rank, 0);
                let seen = now + stage.latency(rank, target);
                self.at(seen, target, What::Arrive(Item::Message(message)));
            }
        }
        now
    }

    fn served(&mut self, rank: u32, now: Time) {
        let program = self.stage.program;
        match self.rank(rank).serving.take() {
            Some((Item::Message(ticket) | Item::Round { ticket, .. }, came)) => {
                self.done(rank, ticket, came);
            }
            Some((Item::Parcel(number), came)) => {
                for &message in program.parts(program.parcel(number)) {
                    if program.message(message).target == rank {
                        self.done(rank, message, came);
                    }
                }
                let issuer = program.parcel(number).issuer;
                if self.stage.are_together(issuer, rank) {
                    self.done(issuer, program.delivered(number), now);
                    self.wake(issuer, now);
                }
            }
            None => {}
        }
        self.work(rank, now);
    }

    /// What a ticket stands for is done; it `came` to the rank's host then.
    fn done(&mut self, rank: u32, ticket: u32, came: Time) {
        if self.stage.tickets[ticket as usize].finish() {
            let own = self.rank(rank);
            own.missing -= 1;
            if let Some(diary) = &mut own.diary {
                diary.last(ticket, came);
            }
        }
    }
}

impl Workload for Part<'_> {
    fn classes(&self) -> &[String] {
        &self.stage.classes
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
        let &Reverse((start, _, tag)) = self.ready.peek()?;
        if start > now {
            return None;
        }
        self.ready.pop();
        let message = self.stage.message(start, tag);
        self.network_messages += 1;
        self.network_bytes += message.size.0;
        Some(message)
    }

    fn on_delivered(&mut self, now: Time, tag: u64) {
        let program = self.stage.program;
        if let Some(round) = program.round_of(tag) {
            // Of a group, members have told it one by one.
            if round.to.group().is_none() {
                for &arrival in round.arrivals() {
                    self.arrive(now, tag, arrival);
                }
            }
            return;
        }
        let number = tag as u32;
        let parcel = *self.stage.program.parcel(number);
        if !self.is_cut {
            self.handle(now, parcel.issuer, What::Delivered(number));
        }
        self.handle(now, parcel.receiver, What::Arrive(Item::Parcel(number)));
    }

    fn on_member_delivered(&mut self, now: Time, tag: u64, member: NodeId) {
        let stage = Arc::clone(&self.stage);
        let round = stage.program.round_of(tag);
        let arrivals = round.map_or(&[][..], Round::arrivals).iter();
        for &arrival in arrivals.filter(|(rank, _)| stage.host(*rank) == member) {
            self.arrive(now, tag, arrival);
        }
    }

    fn has_dependencies(&self) -> bool {
        true
    }

    fn is_news(&self, tag: u64) -> bool {
        let is_parcel = tag < u64::from(self.stage.program.parcel_count());
        self.is_cut && is_parcel && self.stage.is_awaited(tag as u32)
    }

    fn news_for(&self, tag: u64) -> Option<NodeId> {
        let issuer = self.stage.program.parcel(tag as u32).issuer;
        Some(self.stage.host(issuer))
    }

    fn on_news(&mut self, now: Time, tag: u64, _: Option<NodeId>) {
        let issuer = self.stage.program.parcel(tag as u32).issuer;
        let own = self.ranks.get(self.place(issuer));
        if self.is_news(tag) && own.is_some_and(|rank| rank.number == issuer) {
            self.at(now, issuer, What::Delivered(tag as u32));
        }
    }

    fn finished(&self) -> bool {
        self.running == 0 && self.events.is_empty() && self.ready.is_empty()
    }
}
