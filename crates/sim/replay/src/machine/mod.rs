//! Ranks on hosts as a workload: the network carries what they send between hosts, everything else happens here.

mod diary;
mod part;
mod processors;

use std::{
    collections::BTreeMap,
    sync::Arc,
    sync::atomic::{AtomicU8, Ordering},
};

use raddle_trace::Interval;
use raddle_units::{Bytes, NodeId, Span, Time};
use raddle_workload::{
    DATA_PRIORITY, Destination, Message, PLAIN_CLASS, Workload, collective::HostCosts,
};

use serde::{Deserialize, Serialize};

use super::{
    ReplayCosts, ReplayError, ReplaySettings,
    noise::RankNoise,
    program::{Meaning, Parcel, Program, Round},
};
use diary::Diary;
pub(crate) use diary::{Doing, Given, Stretch};
use part::{Part, Rank, State};

/// Something that a rank may wait for. Only that rank's part asks and tells, so the order of memory does not matter.
#[derive(Debug, Default)]
struct Ticket(AtomicU8);

impl Ticket {
    const OPEN: u8 = 0;
    const AWAITED: u8 = 1;
    const DONE: u8 = 2;

    /// The rank comes to wait for it: whether it is still missing.
    fn await_it(&self) -> bool {
        let (old, new) = (Self::OPEN, Self::AWAITED);
        let order = Ordering::Relaxed;
        self.0.compare_exchange(old, new, order, order).is_ok()
    }

    /// It is done: whether the rank waits for it.
    fn finish(&self) -> bool {
        self.0.swap(Self::DONE, Ordering::Relaxed) == Self::AWAITED
    }
}

/// What stays the same during a replay, and the tickets.
#[derive(Debug)]
struct Stage<'a> {
    program: &'a Program,
    /// Of each rank.
    hosts: &'a [NodeId],
    sockets: Vec<u32>,
    /// What a message in shared memory costs each rank, besides its bytes.
    local_overheads: Vec<Span>,
    costs: ReplayCosts,
    /// Rank r is on processor r mod so many.
    processors: u32,
    classes: Vec<String>,
    /// Whether it is kept what ranks do.
    keeps_diaries: bool,
    tickets: Vec<Ticket>,
}

impl Stage<'_> {
    fn host(&self, rank: u32) -> NodeId {
        self.hosts[rank as usize]
    }

    fn processor(&self, rank: u32) -> u32 {
        processor(rank, self.processors)
    }

    /// Whether two ranks are on one host.
    fn are_together(&self, one: u32, other: u32) -> bool {
        self.host(one) == self.host(other)
    }

    /// Copying between a rank and the card.
    fn copy(&self, parcel: &Parcel) -> Span {
        if parcel.bytes > self.costs.eager_limit.0 {
            return self.costs.long_copy_per_byte * parcel.bytes;
        }
        self.costs.host.copy_per_byte * parcel.bytes
    }

    /// What either end of a parcel between hosts does besides what messages cost.
    const fn schedule_cost(&self, parcel: &Parcel) -> Span {
        if parcel.scheduled {
            self.costs.schedule_overhead
        } else {
            Span::ZERO
        }
    }

    /// How long a rank takes to look once for something of these tickets.
    fn look(&self, tickets: &[u32]) -> Span {
        let usual = self.costs.look_overhead;
        let is_arrival = |ticket: &u32| self.program.meaning(*ticket) == Meaning::Arrived;
        match self.costs.offload_look_overhead {
            Some(own) if tickets.iter().any(is_arrival) => own,
            _ => usual,
        }
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

    /// (1, bytes) of each parcel between hosts and each round.
    fn network(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let parcels = self.program.parcels().iter();
        let parcels = parcels.filter(|it| !self.are_together(it.issuer, it.receiver));
        let rounds = self.program.rounds().iter();
        let bytes = parcels.map(|it| it.bytes).chain(rounds.map(|it| it.bytes));
        bytes.map(|bytes| (1, bytes + self.costs.host.envelope.0))
    }

    /// Whether the issuer of a parcel between hosts may wait for its delivery.
    fn is_awaited(&self, number: u32) -> bool {
        let parcel = self.program.parcel(number);
        !parcel.is_joined() && parcel.bytes > self.costs.eager_limit.0
    }

    /// Giving a round to the network.
    fn round_send(&self, round: &Round) -> Span {
        let usual = self.costs.host.send_overhead;
        let own = self.costs.offload_send_overhead;
        let overhead = own.filter(|_| is_offload(round)).unwrap_or(usual);
        overhead + self.costs.host.copy_per_byte * round.bytes
    }

    /// Taking from the network what a round gives.
    fn round_receive(&self, round: &Round) -> Span {
        let usual = self.costs.host.receive_overhead;
        let own = self.costs.offload_receive_overhead;
        let overhead = own.filter(|_| is_offload(round)).unwrap_or(usual);
        overhead + self.costs.host.copy_per_byte * round.bytes
    }

    /// A parcel or a round as it goes through the network.
    fn message(&self, start: Time, tag: u64) -> Message {
        let envelope = self.costs.host.envelope.0;
        let (issuer, dst, bytes) = match self.program.round_of(tag) {
            // Switches compute on operands alone, a barrier on a single value.
            Some(round) if is_offload(round) => (round.issuer, round.to, round.bytes.max(OPERAND)),
            Some(round) => (round.issuer, round.to, round.bytes + envelope),
            None => {
                let parcel = self.program.parcel(tag as u32);
                let to = self.host(parcel.receiver).into();
                (parcel.issuer, to, parcel.bytes + envelope)
            }
        };
        Message {
            start,
            src: self.host(issuer),
            dst,
            size: Bytes(bytes.max(1)),
            class: self.program.job_of(issuer) as u8,
            priority: DATA_PRIORITY,
            tag,
        }
    }
}

const fn is_offload(round: &Round) -> bool {
    matches!(round.to, Destination::Offload(_))
}

/// Bytes of a value that switches compute on.
const OPERAND: u64 = 8;

/// A program among those that run side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRun {
    /// Its name: the class of its messages.
    pub name: String,
    /// When its ranks start.
    pub start: Time,
    /// Whether it runs, or leaves its hosts idle.
    pub runs: bool,
}

/// The ranks of a [`Program`] on hosts. A [`Workload`] whose messages are parcels and rounds; [`Message::tag`] is the parcel, or
/// a round after all of those.
///
/// It can be cut unless ranks of several hosts share a processor. Parts share the program, and a byte for each thing to
/// wait for.
#[derive(Debug)]
pub struct Machine<'a> {
    stage: Arc<Stage<'a>>,
    /// One until it is cut.
    parts: Vec<Part<'a>>,
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
        let run = JobRun {
            name: PLAIN_CLASS.to_owned(),
            start: Time::ZERO,
            runs: true,
        };
        let jobs = vec![run; program.jobs()];
        Self::of_jobs(program, hosts, settings, &jobs, false)
    }

    /// The same for traces side by side; `jobs` has one after the other. Each keeps its noise, whoever runs beside it. What ranks
    /// do can be kept ([`Self::diaries`]).
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_jobs(
        program: &'a Program,
        hosts: &'a [NodeId],
        settings: &ReplaySettings,
        jobs: &[JobRun],
        keeps_diaries: bool,
    ) -> Result<Self, ReplayError> {
        let count = program.ranks();
        if hosts.len() != count as usize {
            let problem = super::PlaceError::TooFew {
                placement: "given".to_owned(),
                needed: count as usize,
                hosts: hosts.len(),
            };
            return Err(problem.into());
        }
        let sockets = sockets_of(hosts, settings.sockets);
        let stage = Arc::new(Stage {
            program,
            hosts,
            local_overheads: local_overheads(hosts, &sockets, &settings.costs.host),
            sockets,
            costs: settings.costs,
            processors: processors(settings, count),
            classes: jobs.iter().map(|job| job.name.clone()).collect(),
            keeps_diaries,
            tickets: (0..program.ticket_count())
                .map(|_| Ticket::default())
                .collect(),
        });
        let ranks = (0..count).map(|rank| {
            let job = program.job_of(rank);
            let place = rank - program.ranks_of(job).start;
            let mut noise = RankNoise::new(settings.noise, settings.seed, job, place);
            let start = jobs[job].start + noise.start();
            let mut rank = Rank::new(rank, noise, start, jobs[job].runs);
            rank.diary = keeps_diaries.then(|| Diary::new(start));
            rank
        });
        let places = (0..count).collect();
        let whole = Part::new(Arc::clone(&stage), places, false, ranks.collect());
        Ok(Self {
            stage,
            parts: vec![whole],
        })
    }

    /// When each rank ended.
    ///
    /// # Errors
    /// The first rank that did not end.
    pub fn ends(&self) -> Result<Vec<Time>, ReplayError> {
        let mut ranks: Vec<&Rank> = self.parts.iter().flat_map(|part| &part.ranks).collect();
        ranks.sort_unstable_by_key(|rank| rank.number);
        let end = |rank: &Rank| match rank.state {
            State::Over(end) => Ok(end),
            _ => Err(ReplayError::Stuck {
                rank: rank.number,
                missing: rank.missing,
            }),
        };
        ranks.into_iter().map(end).collect()
    }

    /// When each rank ended that this machine had a part of and that has ended: (rank, time), in any order.
    pub fn ended(&self) -> impl Iterator<Item = (u32, Time)> + '_ {
        let ranks = self.parts.iter().flat_map(|part| &part.ranks);
        ranks.filter_map(|rank| match rank.state {
            State::Over(end) if rank.runs => Some((rank.number, end)),
            _ => None,
        })
    }

    /// When the calls of each rank began and came back, in the order of the program.
    #[must_use]
    pub fn into_calls(self) -> Vec<Vec<Interval>> {
        let parts = self.parts.into_iter();
        let mut ranks: Vec<Rank> = parts.flat_map(|part| part.ranks).collect();
        ranks.sort_unstable_by_key(|rank| rank.number);
        ranks.into_iter().map(|rank| rank.calls).collect()
    }

    /// What the ranks did that this machine had a part of, and when they issued what; empty where that is not kept.
    #[must_use]
    pub fn diaries(&mut self) -> Diaries {
        let mut found = Diaries::default();
        for part in &mut self.parts {
            found.given.extend(part.given.take().unwrap_or_default());
            for rank in &mut part.ranks {
                if let Some(diary) = rank.diary.take() {
                    found.ranks.push((rank.number, diary.stretches));
                }
            }
        }
        found
    }

    /// Messages that went through the network so far.
    #[must_use]
    pub fn network_messages(&self) -> u64 {
        self.parts.iter().map(|part| part.network_messages).sum()
    }

    /// Their bytes, heads and envelopes included.
    #[must_use]
    pub fn network_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.network_bytes).sum()
    }

    /// When something happens next, and in which part.
    fn next(&self) -> Option<(Time, usize)> {
        let starts = self.parts.iter().map(Workload::next_start).zip(0..);
        starts
            .filter_map(|(start, part)| Some((start?, part)))
            .min()
    }
}

/// What ranks did, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diaries {
    /// By rank.
    pub ranks: Vec<(u32, Vec<Stretch>)>,
    /// When parcels and rounds were issued.
    pub given: Vec<Given>,
}

impl Diaries {
    /// Takes those of another program that shares the run.
    pub fn extend(&mut self, other: Self) {
        self.ranks.extend(other.ranks);
        self.given.extend(other.given);
    }
}

/// How many processors so many ranks have.
fn processors(settings: &ReplaySettings, ranks: u32) -> u32 {
    let given = settings.processors.unwrap_or(ranks);
    given.clamp(1, ranks.max(1))
}

const fn processor(rank: u32, processors: u32) -> u32 {
    rank % processors
}

/// Whether one of so many processors has ranks of several hosts.
fn hosts_share(hosts: &[NodeId], processors: u32) -> bool {
    let mut first = vec![None; processors as usize];
    (0..).zip(hosts).any(|(rank, host)| {
        let place = processor(rank, processors) as usize;
        *first[place].get_or_insert(host) != host
    })
}

/// Why a replay of ranks on `hosts` keeps to one thread, if it does.
pub(super) fn one_thread(hosts: &[NodeId], settings: &ReplaySettings) -> Option<&'static str> {
    hosts_share(hosts, processors(settings, hosts.len() as u32))
        .then_some("ranks of several hosts share a processor")
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
        &self.stage.classes
    }

    fn next_start(&self) -> Option<Time> {
        self.next().map(|(start, _)| start)
    }

    fn pop(&mut self) -> Option<Message> {
        let (_, part) = self.next()?;
        self.parts[part].pop()
    }

    fn on_delivered(&mut self, now: Time, tag: u64) {
        if let [whole] = &mut self.parts[..] {
            whole.on_delivered(now, tag);
        }
    }

    fn on_member_delivered(&mut self, now: Time, tag: u64, member: NodeId) {
        if let [whole] = &mut self.parts[..] {
            whole.on_member_delivered(now, tag, member);
        }
    }

    fn expected_messages(&self) -> Option<u64> {
        Some(self.stage.network().map(|(messages, _)| messages).sum())
    }

    fn expected_bytes(&self) -> Option<Bytes> {
        Some(Bytes(self.stage.network().map(|(_, bytes)| bytes).sum()))
    }

    fn has_dependencies(&self) -> bool {
        true
    }

    fn is_divisible(&self) -> bool {
        !hosts_share(self.stage.hosts, self.stage.processors)
    }

    fn split(
        &mut self,
        parts: usize,
        part_of: &dyn Fn(NodeId) -> usize,
    ) -> Option<Vec<Box<dyn Workload + '_>>> {
        if !self.is_divisible() {
            return None;
        }
        let [whole] = &mut self.parts[..] else {
            return None;
        };
        let mut ranks: Vec<Vec<Rank>> = (0..parts).map(|_| Vec::new()).collect();
        let mut places = Vec::with_capacity(whole.ranks.len());
        for rank in std::mem::take(&mut whole.ranks) {
            let part = &mut ranks[part_of(self.stage.host(rank.number))];
            places.push(part.len() as u32);
            part.push(rank);
        }
        let places: Arc<[u32]> = places.into();
        let part = |ranks| Part::new(Arc::clone(&self.stage), Arc::clone(&places), true, ranks);
        self.parts = ranks.into_iter().map(part).collect();
        let lent = self.parts.iter_mut();
        Some(
            lent.map(|part| Box::new(part) as Box<dyn Workload + '_>)
                .collect(),
        )
    }

    fn finished(&self) -> bool {
        self.parts.iter().all(Workload::finished)
    }
}
