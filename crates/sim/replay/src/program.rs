//! What every rank does in a replay, as flat lists.

use std::{collections::BTreeMap, iter::Peekable, ops::Range};

use raddle_trace::{Action, Event, Transfer};
use raddle_units::{Bytes, Span};
use raddle_workload::Destination;

use super::{Plan, Prepared, ReplayCosts, carried::Part};

/// A step of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Compute(Span),
    /// Issues a parcel.
    Send(u32),
    /// Issues a round.
    Round(u32),
    /// Waits for tickets: `begin..end` in the program's list.
    Await {
        begin: u32,
        end: u32,
    },
    /// A call of the program is over.
    Return,
}

/// Messages that travel as one, or a single one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parcel {
    pub(super) issuer: u32,
    pub(super) receiver: u32,
    pub(super) bytes: u64,
    /// Whether a schedule has chosen when it leaves.
    pub(super) scheduled: bool,
    begin: u32,
    end: u32,
}

impl Parcel {
    pub(super) const fn is_joined(&self) -> bool {
        self.end - self.begin > 1
    }
}

/// Something that a rank gives to the network for several hosts.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) issuer: u32,
    pub(super) to: Destination,
    pub(super) bytes: u64,
    /// Number of the collective in its trace.
    pub(super) operation: u32,
    /// (rank, ticket) of those who get something from it, ascending.
    arrivals: Vec<(u32, u32)>,
}

impl Round {
    /// Who gets something from it, with the ticket that stands for that.
    pub(super) fn arrivals(&self) -> &[(u32, u32)] {
        &self.arrivals
    }
}

/// What a ticket stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The message was received.
    Received(u32),
    /// Something came from the network.
    Arrived,
    /// The parcel was delivered.
    Delivered(u32),
}

/// Traces and plans as what ranks do. Ranks are numbered through all traces.
///
/// Ticket m < number of messages: message m was received; after those: something came from the network for a rank; after
/// those: parcel p was delivered.
#[derive(Debug, Default)]
pub struct Program {
    steps: Vec<Step>,
    first: Vec<usize>,
    tickets: Vec<u32>,
    parcels: Vec<Parcel>,
    parts: Vec<u32>,
    messages: Vec<Transfer>,
    rounds: Vec<Round>,
    /// Tickets for what comes from the network.
    arrivals: u32,
    /// The first rank of each trace, and their number.
    jobs: Vec<u32>,
}

impl Program {
    /// Puts a trace together with the plan of its supersteps; what is in no plan leaves when the program sends it.
    #[must_use]
    pub fn new(prepared: &Prepared, plan: Option<&Plan>, costs: &ReplayCosts) -> Self {
        Self::of_jobs(&[(prepared, plan)], costs)
    }

    /// The same for several traces side by side.
    ///
    /// # Panics
    /// If they have more than 2^32 messages.
    #[must_use]
    pub fn of_jobs(jobs: &[(&Prepared, Option<&Plan>)], costs: &ReplayCosts) -> Self {
        let mut program = Self {
            first: vec![0],
            jobs: vec![0],
            ..Self::default()
        };
        for (prepared, _) in jobs {
            let offset = program.jobs.last().copied().unwrap_or_default();
            let messages = prepared.pairing.messages().iter();
            program.messages.extend(messages.map(|message| Transfer {
                source: message.source + offset,
                target: message.target + offset,
                ..*message
            }));
            let ranks = prepared.trace.ranks.len() as u32;
            program.jobs.push(offset + ranks);
            program.arrivals += prepared.arrivals();
        }
        let (mut messages, mut arrivals) = (0, 0);
        for (job, (prepared, plan)) in jobs.iter().enumerate() {
            let mut network = BTreeMap::new();
            let ranks = prepared.trace.ranks.iter().zip(&prepared.calls);
            for (rank, (events, calls)) in (0..).zip(ranks) {
                let mut writer = Writer {
                    planned: plan.map(|plan| plan.of(rank)).unwrap_or_default().iter(),
                    offset: program.jobs[job],
                    first_message: messages,
                    program: &mut program,
                    plan: *plan,
                    rank,
                    eager_limit: costs.eager_limit.min(costs.local_eager_limit),
                    requests: BTreeMap::new(),
                    parcel_of: BTreeMap::new(),
                    batch: 0,
                    calls: calls.iter().peekable(),
                    network: &mut network,
                    arrivals: &mut arrivals,
                };
                writer.rank(prepared, events);
                program.first.push(program.steps.len());
            }
            for operation in network.into_values() {
                if let Some(round) = operation.round {
                    program.rounds[round as usize].arrivals = operation.arrivals;
                }
            }
            let own = u32::try_from(prepared.pairing.messages().len());
            messages += own.expect("a trace has fewer than 2^32 messages");
        }
        program
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        (self.first.len() - 1) as u32
    }

    /// The ranks of a trace.
    ///
    /// # Panics
    /// If there is no such trace.
    #[must_use]
    pub fn ranks_of(&self, job: usize) -> Range<u32> {
        self.jobs[job]..self.jobs[job + 1]
    }

    /// Number of traces.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.jobs.len() - 1
    }

    /// The trace of a rank.
    pub(super) fn job_of(&self, rank: u32) -> usize {
        self.jobs.partition_point(|&first| first <= rank) - 1
    }

    /// Parcels and rounds: what messages of a driver are numbered by. Parcels come first.
    pub(super) fn parcel_count(&self) -> u32 {
        self.parcels.len() as u32
    }

    /// The round that a driver's message stands for.
    pub(super) fn round_of(&self, tag: u64) -> Option<&Round> {
        let round = tag.checked_sub(self.parcels.len() as u64)?;
        self.rounds.get(round as usize)
    }

    pub(super) fn round(&self, round: u32) -> &Round {
        &self.rounds[round as usize]
    }

    /// All parcels.
    pub(super) fn parcels(&self) -> &[Parcel] {
        &self.parcels
    }

    /// All rounds.
    pub(super) fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    pub(super) fn steps(&self, rank: u32) -> &[Step] {
        let rank = rank as usize;
        &self.steps[self.first[rank]..self.first[rank + 1]]
    }

    pub(super) fn tickets(&self, range: Range<u32>) -> &[u32] {
        &self.tickets[range.start as usize..range.end as usize]
    }

    /// All tickets there are.
    pub(super) fn ticket_count(&self) -> usize {
        self.messages.len() + self.arrivals as usize + self.parcels.len()
    }

    /// What a ticket stands for.
    pub(super) fn meaning(&self, ticket: u32) -> Meaning {
        let messages = self.messages.len() as u32;
        match ticket.checked_sub(messages) {
            None => Meaning::Received(ticket),
            Some(rest) => match rest.checked_sub(self.arrivals) {
                None => Meaning::Arrived,
                Some(parcel) => Meaning::Delivered(parcel),
            },
        }
    }

    /// The ticket of a delivered parcel.
    pub(super) fn delivered(&self, parcel: u32) -> u32 {
        self.messages.len() as u32 + self.arrivals + parcel
    }

    pub(super) fn parcel(&self, parcel: u32) -> &Parcel {
        &self.parcels[parcel as usize]
    }

    pub(super) fn parts(&self, parcel: &Parcel) -> &[u32] {
        &self.parts[parcel.begin as usize..parcel.end as usize]
    }

    pub(super) fn message(&self, message: u32) -> &Transfer {
        &self.messages[message as usize]
    }
}

/// What a request stands for.
#[derive(Clone, Copy)]
enum Started {
    /// A message to send.
    Sent(u32),
    /// A message to receive.
    Received(u32),
}

/// A collective that the network carries, as far as its ranks were written.
#[derive(Default)]
struct Operation {
    round: Option<u32>,
    arrivals: Vec<(u32, u32)>,
}

struct Writer<'a> {
    program: &'a mut Program,
    plan: Option<&'a Plan>,
    planned: std::slice::Iter<'a, super::plan::PlannedParcel>,
    /// Among those of its trace.
    rank: u32,
    /// The first rank of its trace.
    offset: u32,
    /// The first message of its trace.
    first_message: u32,
    /// By number: what is sent to groups.
    network: &'a mut BTreeMap<u32, Operation>,
    /// Tickets given to what comes from the network, over all traces.
    arrivals: &'a mut u32,
    /// Longer messages may keep their sender.
    eager_limit: Bytes,
    requests: BTreeMap<u32, Started>,
    /// Parcels of messages that may keep their sender, by message.
    parcel_of: BTreeMap<u32, u32>,
    /// Messages of the superstep that wait for its end.
    batch: u32,
    /// After how many events each call is over.
    calls: Peekable<std::slice::Iter<'a, u32>>,
}

impl Writer<'_> {
    fn rank(&mut self, prepared: &Prepared, events: &[Event]) {
        let mut end_ns = 0;
        self.return_from(0);
        for (index, event) in events.iter().enumerate() {
            if event.at.start_ns > end_ns {
                let work = prepared.shares.work(self.rank, end_ns, event.at.start_ns);
                self.program.steps.push(Step::Compute(work));
            }
            end_ns = end_ns.max(event.at.end_ns);
            if event.action.ends_superstep() && !matches!(event.action, Action::Send { .. }) {
                self.flush();
            }
            let round = prepared.rounds.get(&(self.rank, index as u32));
            if let Some(round) = round {
                self.round(round.operation, round.part);
            }
            let message = prepared.pairing.message(self.rank, index);
            let message = message.map(|message| message + self.first_message);
            match (&event.action, message) {
                (Action::Send { message, request }, Some(index)) => {
                    self.send(index, *request, message.is_collective());
                }
                (Action::Receive { request, .. }, Some(index)) => match request {
                    Some(request) => {
                        self.requests.insert(*request, Started::Received(index));
                    }
                    None => self.wait([index]),
                },
                (Action::Wait { requests }, _) => {
                    let tickets = requests.iter().filter_map(|request| self.ticket(*request));
                    let tickets: Vec<u32> = tickets.collect();
                    self.wait(tickets);
                }
                _ => {}
            }
            self.return_from(index as u32 + 1);
        }
        self.flush();
    }

    /// Notes the end of the calls that are over after so many events.
    fn return_from(&mut self, events: u32) {
        while self.calls.next_if(|&&end| end <= events).is_some() {
            self.program.steps.push(Step::Return);
        }
    }

    /// The ticket that stands for the end of a request; none where its call was its end.
    fn ticket(&mut self, request: u32) -> Option<u32> {
        match self.requests.remove(&request)? {
            Started::Received(message) => Some(message),
            Started::Sent(message) => self.sent(message),
        }
    }

    fn sent(&mut self, message: u32) -> Option<u32> {
        let parcel = self.parcel_of.remove(&message)?;
        Some(self.program.delivered(parcel))
    }

    fn send(&mut self, message: u32, request: Option<u32>, collective: bool) {
        if let Some(request) = request {
            self.requests.insert(request, Started::Sent(message));
        }
        let transfer = *self.program.message(message);
        let in_trace = Transfer {
            source: transfer.source - self.offset,
            target: transfer.target - self.offset,
            ..transfer
        };
        if !collective && self.plan.is_some_and(|plan| plan.has(&in_trace)) {
            self.batch += 1;
        } else {
            self.issue(transfer.target, transfer.bytes.0, &[message], false);
        }
        if request.is_none() {
            self.flush();
            if let Some(ticket) = self.sent(message) {
                self.wait([ticket]);
            }
        }
    }

    fn issue(&mut self, receiver: u32, bytes: u64, messages: &[u32], scheduled: bool) {
        let program = &mut *self.program;
        let number = program.parcels.len() as u32;
        let begin = program.parts.len() as u32;
        program.parts.extend_from_slice(messages);
        program.parcels.push(Parcel {
            issuer: self.offset + self.rank,
            receiver,
            bytes,
            scheduled,
            begin,
            end: program.parts.len() as u32,
        });
        program.steps.push(Step::Send(number));
        if messages.len() == 1 && bytes > self.eager_limit.0 {
            self.parcel_of.insert(messages[0], number);
        }
    }

    /// Issues the superstep's messages as planned.
    fn flush(&mut self) {
        if self.batch == 0 {
            return;
        }
        let Some(plan) = self.plan else { return };
        while self.batch > 0 {
            let parcel = self.planned.next().expect("a plan has every message once");
            let parts = plan.parts(parcel).iter();
            let parts: Vec<u32> = parts.map(|part| part + self.first_message).collect();
            self.issue(self.offset + parcel.receiver, parcel.bytes, &parts, true);
            self.batch -= parts.len() as u32;
        }
    }

    /// What the rank does with the network in a collective.
    fn round(&mut self, operation: u32, part: Part) {
        let rank = self.offset + self.rank;
        let (to, bytes, hears) = match part {
            Part::Contribute { to, bytes } => (to, bytes, true),
            Part::Send { group, bytes } => (group.into(), bytes, false),
            Part::Arrive => {
                let ticket = self.arrival();
                let known = self.network.entry(operation).or_default();
                known.arrivals.push((rank, ticket));
                return self.wait([ticket]);
            }
        };
        let number = self.program.rounds.len() as u32;
        let ticket = hears.then(|| self.arrival());
        let arrivals = ticket.map(|ticket| (rank, ticket));
        self.program.rounds.push(Round {
            issuer: rank,
            to,
            bytes,
            operation,
            arrivals: arrivals.into_iter().collect(),
        });
        self.program.steps.push(Step::Round(number));
        match ticket {
            Some(ticket) => self.wait([ticket]),
            None => self.network.entry(operation).or_default().round = Some(number),
        }
    }

    /// A ticket for something that comes from the network.
    fn arrival(&mut self) -> u32 {
        let ticket = self.program.messages.len() as u32 + *self.arrivals;
        *self.arrivals += 1;
        ticket
    }

    fn wait(&mut self, tickets: impl IntoIterator<Item = u32>) {
        let begin = self.program.tickets.len() as u32;
        self.program.tickets.extend(tickets);
        let end = self.program.tickets.len() as u32;
        if begin < end {
            self.program.steps.push(Step::Await { begin, end });
        }
    }
}
