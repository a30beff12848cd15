//! Where the time of a job went: the chain of waits that ends with its last rank, followed back to its start.
//!
//! Who waits is not who was late: from a wait the chain goes on with the message that ended it, and from there with the rank
//! that sent it. So every instant of a job's time has one thing that it was spent on, and shares add up to the time exactly.

use std::collections::BTreeMap;

use raddle_engine::blame::{Cause, Journal, PortName, Taken};
use raddle_fabric::Fabric;
use raddle_units::{NodeId, Span, Time};
use raddle_workload::Destination;
use rustc_hash::FxHashMap;

use crate::{
    machine::{Diaries, Doing, Stretch},
    program::{Meaning, Program},
};

/// What a job's time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spent {
    /// Its ranks had not begun.
    Start,
    /// A rank computed.
    Computing,
    /// Sending, receiving and copying at a host.
    Host,
    /// A message between ranks of one host.
    Memory,
    /// A message to a group, or a sum in switches.
    Collective,
    /// A message over several rails.
    Rails,
    /// A message between hosts.
    Message(Cause),
}

impl Spent {
    /// As results name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Computing => "computing",
            Self::Host => "host",
            Self::Memory => "memory",
            Self::Collective => "collective",
            Self::Rails => "rails",
            Self::Message(cause) => cause.name(),
        }
    }
}

/// A share of a job's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// What it was spent on.
    pub spent: Spent,
    /// The class of messages that stood in the way.
    pub culprit: Option<u8>,
    /// Where.
    pub port: Option<PortName>,
    /// How much.
    pub time: Span,
}

/// A stretch of a rank's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// The rank, from 0 in its job.
    pub rank: u32,
    /// Its beginning.
    pub start: Time,
    /// Its end.
    pub end: Time,
    /// What the rank did.
    pub kind: ActivityKind,
    /// What it waited for, where that is known.
    pub wait: Option<Wait>,
}

/// What a rank does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityKind {
    /// Has not begun.
    Start,
    /// Computes.
    Computing,
    /// Sends, receives, copies.
    Host,
    /// Waits.
    Waiting,
}

impl ActivityKind {
    /// As results name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Computing => "computing",
            Self::Host => "host",
            Self::Waiting => "waiting",
        }
    }
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The rank that it came from, from 0 in its job.
    pub from: u32,
    /// How much of the wait was over when that rank issued it: the rank was late, not the network.
    pub late: Span,
    /// What most of its way was spent on.
    pub spent: Option<Spent>,
    /// The class of messages that stood in that way most.
    pub culprit: Option<u8>,
    /// Where.
    pub port: Option<PortName>,
}

type Shares = BTreeMap<(Spent, Option<u8>, Option<PortName>), Span>;

/// A run's jobs, to be followed back.
pub(crate) struct Critical<'a> {
    program: &'a Program,
    nodes: &'a [NodeId],
    fabric: &'a Fabric,
    journal: &'a Journal,
    stretches: BTreeMap<u32, &'a [Stretch]>,
    given: FxHashMap<u64, Time>,
    /// By parcel.
    messages: FxHashMap<u64, &'a Taken>,
    parcel_of: FxHashMap<u32, u32>,
    /// By ticket: the round that it came from.
    round_of: FxHashMap<u32, u32>,
    /// By job and collective: its rounds.
    operations: FxHashMap<(usize, u32), Vec<u32>>,
}

/// How something came that a rank waited for.
struct Way {
    /// The rank that issued it.
    from: u32,
    /// When it had.
    sent: Time,
    how: How,
}

enum How {
    Memory,
    Collective,
    Parcel(u32),
}

impl<'a> Critical<'a> {
    pub(crate) fn new(
        program: &'a Program,
        nodes: &'a [NodeId],
        fabric: &'a Fabric,
        journal: &'a Journal,
        diaries: &'a Diaries,
    ) -> Self {
        let ranks = diaries.ranks.iter();
        let parcels = program.parcels().iter().zip(0..);
        let rounds = program.rounds().iter().zip(0..);
        let mut operations = FxHashMap::<_, Vec<u32>>::default();
        for (round, number) in rounds.clone() {
            let job = program.job_of(round.issuer);
            operations
                .entry((job, round.operation))
                .or_default()
                .push(number);
        }
        let tagged = journal.messages().iter().map(|taken| (taken.tag, taken));
        let parcel_count = u64::from(program.parcel_count());
        Self {
            program,
            nodes,
            fabric,
            journal,
            stretches: ranks.map(|(rank, all)| (*rank, all.as_slice())).collect(),
            given: diaries.given.iter().map(|it| (it.tag, it.at)).collect(),
            messages: tagged.filter(|(tag, _)| *tag < parcel_count).collect(),
            parcel_of: parcels
                .flat_map(|(parcel, number)| {
                    program.parts(parcel).iter().map(move |&it| (it, number))
                })
                .collect(),
            round_of: rounds
                .flat_map(|(round, number)| {
                    round
                        .arrivals()
                        .iter()
                        .map(move |&(_, ticket)| (ticket, number))
                })
                .collect(),
            operations,
        }
    }

    /// The shares of a job's time, the largest first. Empty if one of its ranks did not end.
    pub(crate) fn shares(&self, job: usize, start: Time) -> Vec<Share> {
        let ranks = self.program.ranks_of(job);
        let last = |rank: u32| {
            let stretch = self.stretches.get(&rank)?.last()?;
            Some((stretch.until, std::cmp::Reverse(rank)))
        };
        let ends: Option<Vec<_>> = ranks.map(last).collect();
        let Some((end, std::cmp::Reverse(rank))) = ends.and_then(|ends| ends.into_iter().max())
        else {
            return Vec::new();
        };
        let mut shares = Shares::new();
        let (mut rank, mut now) = (rank, end);
        while now > start {
            (rank, now) = self.step(rank, now, start, &mut shares);
        }
        let all = shares.into_iter();
        let mut shares: Vec<Share> = all
            .map(|((spent, culprit, port), time)| Share {
                spent,
                culprit,
                port,
                time,
            })
            .collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.time));
        shares
    }

    /// What the ranks of a job did, rank by rank, in order of time.
    pub(crate) fn activities(&self, job: usize, start: Time) -> Vec<Activity> {
        let ranks = self.program.ranks_of(job);
        let first = ranks.start;
        let mut all = Vec::new();
        for rank in ranks {
            let mut since = start;
            for stretch in self.stretches.get(&rank).copied().unwrap_or_default() {
                let wait = match stretch.doing {
                    Doing::Waiting { ticket, came } => {
                        self.wait(rank, ticket, since, came.min(stretch.until), first)
                    }
                    _ => None,
                };
                if stretch.until > since {
                    all.push(Activity {
                        rank: rank - first,
                        start: since,
                        end: stretch.until,
                        kind: match stretch.doing {
                            Doing::Before => ActivityKind::Start,
                            Doing::Computing => ActivityKind::Computing,
                            Doing::Host => ActivityKind::Host,
                            Doing::Waiting { .. } => ActivityKind::Waiting,
                        },
                        wait,
                    });
                }
                since = since.max(stretch.until);
            }
        }
        all
    }

    /// What ended a wait that began at `since`; `first` is the job's first rank.
    fn wait(&self, rank: u32, ticket: u32, since: Time, came: Time, first: u32) -> Option<Wait> {
        let way = self.way(rank, ticket).filter(|way| way.sent <= came)?;
        let mut shares = Shares::new();
        self.travel(&way, came, &mut shares);
        let most = shares.iter().max_by_key(|&(_, &time)| time);
        let (spent, culprit, port) = most.map_or((None, None, None), |(&(spent, by, at), _)| {
            (Some(spent), by, at)
        });
        Some(Wait {
            from: way.from - first,
            late: Span(way.sent.0.saturating_sub(since.0)),
            spent,
            culprit,
            port,
        })
    }

    /// What a rank's time was spent on just before `now`: who did what before that.
    fn step(&self, rank: u32, now: Time, start: Time, shares: &mut Shares) -> (u32, Time) {
        let stretches = self.stretches.get(&rank).copied().unwrap_or_default();
        let place = stretches.partition_point(|stretch| stretch.until < now);
        let before = place.checked_sub(1).map(|place| stretches[place].until);
        let since = before.unwrap_or(start).max(start);
        let mut spend = |spent, until: Time, from: Time| {
            add(shares, (spent, None, None), until.since(from));
            (rank, from)
        };
        match stretches.get(place).map(|stretch| stretch.doing) {
            Some(Doing::Before) | None => spend(Spent::Start, now, since),
            Some(Doing::Computing) => spend(Spent::Computing, now, since),
            Some(Doing::Host) => spend(Spent::Host, now, since),
            Some(Doing::Waiting { ticket, came }) => {
                let came = came.min(now);
                let way = self
                    .way(rank, ticket)
                    .filter(|way| came > since && way.sent < came && way.sent >= start);
                let Some(way) = way else {
                    return spend(Spent::Host, now, since);
                };
                spend(Spent::Host, now, came);
                self.travel(&way, came, shares);
                (way.from, way.sent)
            }
        }
    }

    fn way(&self, rank: u32, ticket: u32) -> Option<Way> {
        let given = |tag: u64| self.given.get(&tag).copied();
        let of_parcel = |parcel: u32| {
            let ends = self.program.parcel(parcel);
            let (from, to) = (ends.issuer, ends.receiver);
            let together = self.nodes[from as usize] == self.nodes[to as usize];
            Some(Way {
                from,
                sent: given(u64::from(parcel))?,
                how: if together {
                    How::Memory
                } else {
                    How::Parcel(parcel)
                },
            })
        };
        match self.program.meaning(ticket) {
            Meaning::Received(message) => of_parcel(*self.parcel_of.get(&message)?),
            Meaning::Delivered(parcel) => of_parcel(parcel),
            Meaning::Arrived => {
                let number = *self.round_of.get(&ticket)?;
                let round = self.program.round(number);
                let first = u64::from(self.program.parcel_count());
                let sent = |number: u32| Some((given(first + u64::from(number))?, number));
                // A sum is there when the last operand is.
                let key = (self.program.job_of(rank), round.operation);
                let (at, last) = match round.to {
                    Destination::Group(_) => sent(number)?,
                    _ => {
                        let all = self.operations.get(&key)?.iter();
                        all.filter_map(|&number| sent(number)).max()?
                    }
                };
                Some(Way {
                    from: self.program.round(last).issuer,
                    sent: at,
                    how: How::Collective,
                })
            }
        }
    }

    /// What the time was spent on between a rank's issuing something and its coming.
    fn travel(&self, way: &Way, came: Time, shares: &mut Shares) {
        let time = came.since(way.sent);
        let whole = match way.how {
            How::Memory => Spent::Memory,
            How::Collective => Spent::Collective,
            How::Parcel(parcel) => {
                let known = self.messages.get(&u64::from(parcel));
                let fits = |taken: &&&Taken| taken.start >= way.sent && taken.delivered <= came;
                let Some(taken) = known.filter(fits) else {
                    return add(shares, (Spent::Rails, None, None), time);
                };
                let parts = self.journal.parts(taken, self.fabric);
                let told: Span = parts.iter().map(|part| part.time).sum();
                for part in parts {
                    let spent = Spent::Message(part.cause);
                    add(shares, (spent, part.culprit, part.port), part.time);
                }
                return add(shares, (Spent::Host, None, None), time - told);
            }
        };
        add(shares, (whole, None, None), time);
    }
}

fn add(shares: &mut Shares, key: (Spent, Option<u8>, Option<PortName>), time: Span) {
    if time != Span::ZERO {
        *shares.entry(key).or_default() += time;
    }
}
