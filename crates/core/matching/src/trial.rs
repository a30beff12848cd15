//! Whether a communicator's messages stay ours: both ways are measured in turns, and its ranks change only where nothing
//! is under way.

use raddle_units::Span;

use crate::calls::{Counts, Statistics};

/// Collectives before the first turn that counts.
const WARM_UP: u32 = 16;
/// Collectives of a turn, at least.
const TURN: u32 = 8;
/// Turns of each way.
const TURNS: usize = 9;
/// So many turns in a row in which no message was sent end the trial; each is twice as long as the one before.
const IDLE: u32 = 10;
/// So many points in a row at which messages were under way end the trial.
const PATIENCE: u32 = 32;

/// Who matches a communicator's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A [`Matcher`](crate::Matcher).
    Ours,
    /// The MPI library.
    Plain,
}

/// What a rank says at a point, or the sum of what all say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vote {
    /// Messages sent minus messages received since the start; 0 in a sum: none is under way.
    pub under_way: i64,
    /// Receives that wait.
    pub waiting: i64,
    /// Parcels sent since the last point; in plain turns, those that would have been.
    pub parcels: i64,
    /// Their parts; in plain turns, messages.
    pub parts: i64,
    /// Messages offered since the last point.
    pub offered: i64,
    /// Time since the last point, in nanoseconds.
    pub nanoseconds: i64,
}

impl Vote {
    /// As numbers to be added up over all ranks, such as by MPI_Allreduce.
    #[must_use]
    pub const fn words(&self) -> [i64; 6] {
        [
            self.under_way,
            self.waiting,
            self.parcels,
            self.parts,
            self.offered,
            self.nanoseconds,
        ]
    }

    /// From such numbers, added up.
    #[must_use]
    pub const fn from_words(words: [i64; 6]) -> Self {
        let [under_way, waiting, parcels, parts, offered, nanoseconds] = words;
        Self {
            under_way,
            waiting,
            parcels,
            parts,
            offered,
            nanoseconds,
        }
    }

    const fn is_quiet(&self) -> bool {
        self.under_way == 0 && self.waiting == 0
    }
}

/// The trial of one communicator at one of its ranks; all ranks decide the same, since they see the same sums.
///
/// Before each blocking collective of the communicator call [`Self::collective`]. If it says so, add up the ranks' votes
/// and call [`Self::decide`]: from there on messages go the way that it gives. It changes the way only when no message
/// is under way and no receive waits, counted over both ways.
#[derive(Debug, Clone)]
pub struct Trial {
    way: Way,
    settled: bool,
    /// The first turn does not count.
    cold: bool,
    /// Collectives of this turn, and how many it has at least.
    collectives: u32,
    least: u32,
    /// Points in a row that were not quiet.
    busy: u32,
    /// Turns in a row without a message.
    idle: u32,
    /// Whether messages were offered in our turns; `None`: that cannot be told yet.
    offers: Option<bool>,
    /// This turn so far.
    turn: Vote,
    /// Nanoseconds per collective and turn, all ranks together.
    ours: Vec<f64>,
    plain: Vec<f64>,
    /// Statistics at the last point.
    seen: Statistics,
}

impl Trial {
    /// A trial that begins. `may_offer`: long messages are offered while they are ours.
    #[must_use]
    pub fn new(may_offer: bool) -> Self {
        Self {
            way: Way::Ours,
            settled: false,
            cold: true,
            collectives: 0,
            least: WARM_UP,
            busy: 0,
            idle: 0,
            offers: (!may_offer).then_some(false),
            turn: Vote::default(),
            ours: Vec::new(),
            plain: Vec::new(),
            seen: Statistics::default(),
        }
    }

    /// The way of messages that are sent now.
    #[must_use]
    pub const fn way(&self) -> Way {
        self.way
    }

    /// Whether the way is final.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.settled
    }

    /// Counts a collective. True: it is a point, at which all ranks vote before it begins.
    pub const fn collective(&mut self) -> bool {
        if self.settled {
            return false;
        }
        self.collectives += 1;
        self.collectives >= self.least
    }

    /// This rank's vote: counts of the communicator over both ways, statistics of the matcher with the parcels and parts
    /// that plain messages would have been, time since the last point.
    pub fn vote(&mut self, counts: &Counts, statistics: &Statistics, elapsed: Span) -> Vote {
        let seen = std::mem::replace(&mut self.seen, *statistics);
        Vote {
            under_way: counts.sent.wrapping_sub(counts.received).cast_signed(),
            waiting: counts.waiting.cast_signed(),
            parcels: (statistics.parcels - seen.parcels).cast_signed(),
            parts: (statistics.parts - seen.parts).cast_signed(),
            offered: (statistics.offered - seen.offered).cast_signed(),
            nanoseconds: (elapsed.0 / 1000).cast_signed(),
        }
    }

    /// Decides from the sum of all votes. Ours stays only if it was faster in the median of its turns, and joined two
    /// messages per parcel on average, or offered some; where messages are under way at every point, the way of that time
    /// stays. As long as nothing is sent, what will be sent is plain.
    pub fn decide(&mut self, sum: &Vote) -> Way {
        let turn = &mut self.turn;
        turn.parcels = turn.parcels.saturating_add(sum.parcels);
        turn.parts = turn.parts.saturating_add(sum.parts);
        turn.offered = turn.offered.saturating_add(sum.offered);
        turn.nanoseconds = turn.nanoseconds.saturating_add(sum.nanoseconds);
        if !sum.is_quiet() {
            self.least += TURN;
            self.busy += 1;
            self.settled = self.busy >= PATIENCE;
            return self.way;
        }
        if self.turn.parts == 0 {
            return self.wait();
        }
        if self.way == Way::Ours {
            self.offers = Some(self.offers == Some(true) || self.turn.offered > 0);
        }
        if self.turn.parts / 2 < self.turn.parcels && self.offers == Some(false) {
            return self.settle(Way::Plain);
        }
        self.idle = 0;
        let time = self.turn.nanoseconds as f64 / f64::from(self.collectives);
        match self.way {
            Way::Ours if self.cold => self.cold = false,
            Way::Ours => self.ours.push(time),
            Way::Plain => self.plain.push(time),
        }
        if self.ours.len() >= TURNS && self.plain.len() >= TURNS {
            let faster = median(&mut self.ours) < median(&mut self.plain);
            return self.settle(if faster { Way::Ours } else { Way::Plain });
        }
        self.begin(match self.way {
            Way::Ours => Way::Plain,
            Way::Plain => Way::Ours,
        })
    }

    /// A turn without a message says nothing.
    fn wait(&mut self) -> Way {
        self.idle += 1;
        if self.idle == IDLE {
            return self.settle(Way::Plain);
        }
        self.begin(Way::Plain);
        self.least = TURN << self.idle;
        self.way
    }

    fn settle(&mut self, way: Way) -> Way {
        self.settled = true;
        self.way = way;
        way
    }

    fn begin(&mut self, way: Way) -> Way {
        self.way = way;
        self.collectives = 0;
        self.least = TURN;
        self.busy = 0;
        self.turn = Vote::default();
        way
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
