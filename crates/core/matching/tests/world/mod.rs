//! Processes on a shadow channel that delays as it likes, beside a model of MPI's matching written from section 3.5.

pub(crate) mod cases;
#[path = "../driver/mod.rs"]
mod driver;
pub(crate) mod model;

use std::collections::{BTreeMap, VecDeque};

use raddle_matching::{
    Claim, Envelope, Event, Fetch, Matcher, Mode, Outgoing, Parcel, Posted, Sent, Statistics,
    Ticket, Wanted,
};
use raddle_schedule::{Distance, parcel::ParcelView};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use cases::{Case, Op};
use driver::Driver;
use model::{Model, Record};

/// A message of the world.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sending {
    pub(crate) envelope: Envelope,
    pub(crate) target: u32,
}

/// Messages of at least this size are offered.
const OFFERED_FROM: u64 = 5000;

/// The bytes of a message.
fn content(message: usize, length: u64) -> Vec<u8> {
    let byte = |at: u64| (at.wrapping_mul(31).wrapping_add(message as u64 * 7)) as u8;
    (0..length).map(byte).collect()
}

struct Process {
    matcher: Matcher,
    program: VecDeque<Op>,
    model: Model,
    tickets: Vec<(u64, Ticket)>,
    claims: VecDeque<(Claim, usize)>,
    /// Set aside: number, message.
    aside: BTreeMap<u64, usize>,
    /// Capacity of each receive.
    capacities: Vec<u64>,
}

/// All processes.
pub(crate) struct World {
    processes: Vec<Process>,
    /// By (from, to).
    channel: BTreeMap<(u32, u32), VecDeque<Parcel>>,
    /// Plain messages by (from, to, key).
    plain: BTreeMap<(u32, u32, u32), VecDeque<usize>>,
    /// Offers that are open, by (from, to, key), and those of which the driver of the source will hear.
    offered: BTreeMap<(u32, u32, u32), usize>,
    late: Vec<(u32, u32, u32)>,
    pub(crate) messages: Vec<Sending>,
    /// Messages of a pair of processes, in program order.
    pairs: BTreeMap<(u32, u32), Vec<usize>>,
    most_kept: u64,
    longest: usize,
    limit: u64,
    chance: ChaCha8Rng,
}

impl World {
    pub(crate) fn new(case: &Case) -> Self {
        let ranks = case.placement.ranks();
        let processes: Vec<Process> = (0..ranks as u32)
            .zip(&case.programs)
            .map(|(rank, program)| Process {
                matcher: Matcher::new(rank, &case.placement, &Distance::default(), &case.settings)
                    .unwrap(),
                program: program.iter().cloned().collect(),
                model: Model::default(),
                tickets: Vec::new(),
                claims: VecDeque::new(),
                aside: BTreeMap::new(),
                capacities: Vec::new(),
            })
            .collect();
        Self {
            most_kept: ranks as u64 * processes[0].matcher.window(),
            longest: processes[0].matcher.longest_parcel(),
            limit: case.settings.join.limit().0,
            processes,
            channel: BTreeMap::new(),
            plain: BTreeMap::new(),
            offered: BTreeMap::new(),
            late: Vec::new(),
            messages: Vec::new(),
            pairs: BTreeMap::new(),
            chance: ChaCha8Rng::seed_from_u64(case.seed),
        }
    }

    /// Runs all programs to their ends, in an order that the seed decides, then receives all that is left.
    pub(crate) fn run(&mut self) {
        loop {
            let ready: Vec<u32> = (0..self.processes.len() as u32)
                .filter(|&rank| !self.processes[rank as usize].program.is_empty())
                .collect();
            let ways: Vec<(u32, u32)> = self.channel.keys().copied().collect();
            if ready.is_empty() && ways.is_empty() {
                break;
            }
            let at = self.chance.next_u32() as usize % (ready.len() + ways.len());
            match ready.get(at) {
                Some(&rank) => self.step(rank),
                None => self.bring(ways[at - ready.len()]),
            }
        }
        for rank in 0..self.processes.len() as u32 {
            self.act(rank, &Op::Flush);
        }
        self.bring_all();
        self.drain();
    }

    pub(crate) fn statistics(&self) -> impl Iterator<Item = &Statistics> {
        let processes = self.processes.iter();
        processes.map(|process| process.matcher.statistics())
    }

    /// What every receive got, by rank.
    pub(crate) fn records(&self) -> Vec<&[Record]> {
        let records = self.processes.iter();
        records.map(|process| process.model.records()).collect()
    }

    fn step(&mut self, rank: u32) {
        if let Some(op) = self.processes[rank as usize].program.pop_front() {
            self.act(rank, &op);
        }
    }

    fn bring_all(&mut self) {
        while let Some(&way) = self.channel.keys().next() {
            self.bring(way);
        }
    }

    /// Receives everything that nobody has asked for.
    fn drain(&mut self) {
        for rank in 0..self.processes.len() as u32 {
            for (_, ticket) in std::mem::take(&mut self.processes[rank as usize].tickets) {
                self.processes[rank as usize].matcher.cancel(ticket);
            }
            self.processes[rank as usize].model.cancel_all();
            while !self.processes[rank as usize].claims.is_empty() {
                self.act(rank, &Op::ReceiveClaimed(0, u64::MAX));
            }
            for context in 0..2 {
                let wanted = Wanted {
                    context,
                    source: None,
                    tag: None,
                };
                while self.processes[rank as usize]
                    .matcher
                    .probe(&wanted)
                    .unwrap()
                    .is_some()
                {
                    self.act(rank, &Op::Receive(wanted, u64::MAX));
                }
            }
        }
        self.bring_all();
        let mut counts = [(0, 0); 2];
        for process in &self.processes {
            assert_eq!(process.matcher.statistics().kept_bytes, 0);
            assert_eq!(process.model.unexpected(), 0);
            for (context, (sent, received)) in (0..).zip(&mut counts) {
                let own = process.matcher.context_counts(context);
                assert_eq!(own.waiting, 0);
                *sent += own.sent;
                *received += own.received;
            }
        }
        let all: u64 = counts.iter().map(|&(sent, _)| sent).sum();
        assert_eq!(all, self.messages.len() as u64);
        assert!(counts.iter().all(|(sent, received)| sent == received));
        assert!(self.plain.values().all(VecDeque::is_empty));
    }

    fn act(&mut self, rank: u32, op: &Op) {
        let mut driver = Driver::default();
        let process = &mut self.processes[rank as usize];
        match op {
            Op::Send(message) => self.send(rank, message, &mut driver),
            &Op::Receive(wanted, capacity) => {
                let id = process.capacities.len() as u64;
                process.capacities.push(capacity);
                let expected = process.model.post(&wanted, id, &self.messages);
                let posted = driver.call(&mut process.matcher, |matcher| {
                    matcher.receive(&wanted, capacity, id)
                });
                match posted.unwrap() {
                    Posted::Matched => assert!(expected.is_some()),
                    Posted::Waiting(ticket) => {
                        assert!(expected.is_none());
                        process.tickets.push((id, ticket));
                    }
                }
            }
            Op::Probe(wanted) => {
                let found = process.matcher.probe(wanted).unwrap();
                let right = process.model.find(wanted, &self.messages);
                assert_eq!(found, right.map(|message| self.messages[message].envelope));
            }
            Op::Claim(wanted) => {
                let claimed = process.matcher.claim(wanted).unwrap();
                let right = process.model.claim(wanted, &self.messages);
                let envelope = right.map(|message| self.messages[message].envelope);
                assert_eq!(claimed.map(|(_, envelope)| envelope), envelope);
                if let (Some((claim, _)), Some(message)) = (claimed, right) {
                    process.claims.push_back((claim, message));
                }
            }
            &Op::ReceiveClaimed(at, capacity) => {
                let at = at % process.claims.len().max(1);
                if let Some((claim, message)) = process.claims.remove(at) {
                    let id = process.capacities.len() as u64;
                    process.capacities.push(capacity);
                    process.model.receive_claimed(id, message);
                    let matcher = &mut process.matcher;
                    driver
                        .call(matcher, |matcher| {
                            matcher.receive_claimed(claim, capacity, id)
                        })
                        .unwrap();
                    let twice = driver.call(matcher, |matcher| {
                        matcher.receive_claimed(claim, capacity, id)
                    });
                    assert!(twice.is_err());
                }
            }
            &Op::Cancel(at) => {
                let at = at % process.tickets.len().max(1);
                if let Some(&(id, ticket)) = process.tickets.get(at) {
                    assert_eq!(process.matcher.cancel(ticket), process.model.cancel(id));
                    assert!(!process.matcher.cancel(ticket));
                }
            }
            Op::Flush => driver.call(&mut process.matcher, |matcher| matcher.flush()),
        }
        self.carry_out(rank, driver);
    }

    fn send(&mut self, rank: u32, message: &Outgoing, driver: &mut Driver) {
        let number = self.messages.len();
        let envelope = Envelope {
            context: message.context,
            source: rank,
            tag: message.tag,
            bytes: message.bytes,
        };
        self.messages.push(Sending {
            envelope,
            target: message.to,
        });
        self.pairs
            .entry((rank, message.to))
            .or_default()
            .push(number);
        let process = &mut self.processes[rank as usize];
        if message.to == rank {
            process.model.arrive(number, &self.messages);
        }
        let fill = |room: &mut [u8]| room.copy_from_slice(&content(number, message.bytes));
        // As a driver does that has rails.
        if message.bytes >= OFFERED_FROM
            && let Some(key) = driver
                .call(&mut process.matcher, |matcher| matcher.offer(message))
                .unwrap()
        {
            let way = (rank, message.to, key);
            assert_eq!(
                self.offered.insert(way, number),
                None,
                "a key that is in use"
            );
            return;
        }
        match driver
            .call(&mut process.matcher, |matcher| matcher.send(message, fill))
            .unwrap()
        {
            Sent::Copied => assert!(message.mode == Mode::Standard && message.bytes < 3000),
            Sent::ByReference { key, synchronous } => {
                let small = message.bytes < 3000 && message.bytes + 36 <= self.limit;
                assert_eq!(synchronous, small || message.mode == Mode::Synchronous);
                let way = (rank, message.to, key);
                self.plain.entry(way).or_default().push_back(number);
            }
        }
    }

    /// The next parcel from one rank to another arrives.
    fn bring(&mut self, way: (u32, u32)) {
        let (from, to) = way;
        let Some(parcels) = self.channel.get_mut(&way) else {
            return;
        };
        let parcel = parcels.pop_front().unwrap();
        if parcels.is_empty() {
            self.channel.remove(&way);
        }
        let process = &mut self.processes[to as usize];
        for (head, _) in ParcelView::parse(parcel.bytes()).unwrap().parts() {
            if head.target == to && head.context < u32::MAX - 1 {
                let pair = &self.pairs[&(head.source, to)];
                process
                    .model
                    .bring(head.source, head.sequence, pair, &self.messages);
            }
        }
        let mut driver = Driver::default();
        driver
            .handle_parcel(&mut process.matcher, from, parcel.bytes())
            .unwrap();
        self.processes[from as usize].matcher.recycle(parcel);
        self.carry_out(to, driver);
    }

    fn carry_out(&mut self, rank: u32, driver: Driver) {
        assert!(driver.notices.is_empty(), "nobody sent a notice");
        for (to, parcel) in driver.parcels {
            assert!(parcel.bytes().len() <= self.longest && to != rank);
            self.channel
                .entry((rank, to))
                .or_default()
                .push_back(parcel);
        }
        let process = &mut self.processes[rank as usize];
        let kept = process.matcher.statistics().most_kept_bytes;
        assert!(kept <= self.most_kept, "{kept} B are kept");
        for (receive, envelope, bytes) in driver.delivered {
            let message = process.model.got(receive);
            assert_eq!(envelope, self.messages[message].envelope);
            let fits = envelope.bytes.min(process.capacities[receive as usize]);
            let right = content(message, envelope.bytes);
            assert_eq!(bytes, right[..fits as usize]);
        }
        let mut first = |source, key| {
            let sent = self.plain.get_mut(&(source, rank, key));
            sent.and_then(VecDeque::pop_front).expect("was sent")
        };
        let mut closed = Vec::new();
        for event in driver.by_reference {
            match event {
                Event::SetAside {
                    aside: number,
                    message: envelope,
                    key,
                } => {
                    let message = first(envelope.source, key);
                    assert_eq!(self.messages[message].envelope, envelope);
                    process.aside.insert(number, message);
                }
                Event::Fetch {
                    receive,
                    capacity,
                    message: envelope,
                    from,
                } => {
                    let message = process.model.got(receive);
                    assert_eq!(capacity, process.capacities[receive as usize]);
                    assert_eq!(envelope, self.messages[message].envelope);
                    let fetched = match from {
                        Fetch::Offered(key) => {
                            let way = (envelope.source, rank, key);
                            closed.push(way);
                            self.offered[&way]
                        }
                        Fetch::Key(key) => first(envelope.source, key),
                        Fetch::Aside(number) => process.aside.remove(&number).unwrap(),
                    };
                    assert_eq!(fetched, message, "another message has its key");
                }
                Event::Delivered { .. } | Event::Notice { .. } => {
                    unreachable!("has a list of its own")
                }
            }
        }
        self.late.extend(closed);
        while self.chance.next_u32().is_multiple_of(2)
            && let Some(way) = self.late.pop()
        {
            self.offered.remove(&way);
            self.processes[way.0 as usize]
                .matcher
                .close_offer(way.1, way.2);
        }
    }
}
