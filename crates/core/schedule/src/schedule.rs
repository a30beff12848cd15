//! The schedule of a superstep: what every process sends, in which order.

use std::{collections::BTreeSet, fmt, str::FromStr};

use raddle_units::Bytes;
use thiserror::Error;

use crate::{
    graph::Graphs,
    groups::Groups,
    order::{Reorder, line_up, program_order},
    parcel::{HEAD_BYTES, PART_BYTES},
    set::{Message, MessageSet},
    window::{Join, Place, Scope, Window},
};

/// What is done to the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Variant {
    /// Nothing: program order, each message as it is.
    None,
    /// Another order.
    Reorder,
    /// Messages are joined; parcels are issued when the program sends their first part.
    Aggregate,
    /// Another order, in which messages are joined (the paper's).
    #[default]
    Both,
}

impl Variant {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Reorder, Self::Aggregate, Self::Both];

    /// Whether the order changes.
    #[must_use]
    pub const fn reorders(self) -> bool {
        matches!(self, Self::Reorder | Self::Both)
    }

    /// Whether messages are joined.
    #[must_use]
    pub const fn aggregates(self) -> bool {
        matches!(self, Self::Aggregate | Self::Both)
    }

    /// Its name in files and on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Reorder => "reorder",
            Self::Aggregate => "aggregate",
            Self::Both => "both",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A name that no variant has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a schedule: use none, reorder, aggregate, both, published or library")]
pub struct UnknownVariant(String);

impl FromStr for Variant {
    type Err = UnknownVariant;

    fn from_str(name: &str) -> Result<Self, UnknownVariant> {
        Self::ALL
            .into_iter()
            .find(|variant| variant.name() == name)
            .ok_or_else(|| UnknownVariant(name.to_owned()))
    }
}

/// How a superstep is scheduled.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings<'a> {
    /// What is done.
    pub variant: Variant,
    /// In which order, where the order changes.
    pub reorder: Reorder<'a>,
    /// What is joined, where messages are.
    pub join: Join,
}

/// The name of [`Settings::named`] for the paper's system: both, with its window alone.
pub const PUBLISHED: &str = "published";

/// The name of [`Settings::named`] for what an MPI library does as the program sends: messages are joined, none overtakes others.
pub const LIBRARY: &str = "library";

impl Settings<'_> {
    /// The settings of a name: of a [`Variant`], with our window; [`PUBLISHED`], or [`LIBRARY`].
    ///
    /// # Errors
    /// There is no such name.
    pub fn named(name: &str) -> Result<Self, UnknownVariant> {
        Ok(match name {
            PUBLISHED => Self {
                join: Join::published(),
                ..Self::default()
            },
            LIBRARY => Self {
                variant: Variant::Aggregate,
                join: Join::library(),
                ..Self::default()
            },
            name => Self {
                variant: name.parse()?,
                ..Self::default()
            },
        })
    }
}

/// What a process issues at once: one message as it is, or several that travel as one in the layout of
/// [`crate::parcel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parcel {
    /// The rank that sends it.
    pub issuer: u32,
    /// The rank that gets it: the target if all parts have the same, else a leader of the target's node.
    pub receiver: u32,
    /// What travels: the message's bytes, or those of all parts with their heads.
    pub bytes: Bytes,
    begin: u32,
    end: u32,
}

impl Parcel {
    /// Whether it is several messages.
    #[must_use]
    pub const fn is_joined(&self) -> bool {
        self.end - self.begin > 1
    }

    pub(crate) fn parts(&self) -> std::ops::Range<usize> {
        self.begin as usize..self.end as usize
    }
}

/// A message in its parcel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The message, by its index in the set.
    pub message: u32,
    /// Sending rank.
    pub source: u32,
    /// Rank that the message is for.
    pub target: u32,
    /// The message's number among those of its (source, target), from 0 in program order.
    pub sequence: u32,
}

/// What every process sends, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    parcels: Vec<Parcel>,
    /// Where the parcels of each rank begin, and the end of the last one's.
    first: Vec<u32>,
    parts: Vec<Part>,
}

impl Schedule {
    /// The parcels that a rank issues, in order.
    ///
    /// # Panics
    /// If the placement has no such rank.
    #[must_use]
    pub fn sends(&self, rank: u32) -> &[Parcel] {
        let rank = rank as usize;
        &self.parcels[self.first[rank] as usize..self.first[rank + 1] as usize]
    }

    /// All parcels: those of rank 0 in order, then those of rank 1, and so on.
    #[must_use]
    pub fn parcels(&self) -> &[Parcel] {
        &self.parcels
    }

    /// The messages of a parcel of this schedule, in the order in which they lie in it.
    ///
    /// # Panics
    /// If the parcel is another schedule's, perhaps.
    #[must_use]
    pub fn parts(&self, parcel: &Parcel) -> &[Part] {
        &self.parts[parcel.parts()]
    }

    /// The messages of all parcels, one parcel after the other.
    #[must_use]
    pub fn all_parts(&self) -> &[Part] {
        &self.parts
    }

    /// Ranks of the superstep.
    pub(crate) fn ranks(&self) -> usize {
        self.first.len() - 1
    }
}

/// Schedules the messages of a superstep, in O(M log M + P) for M messages of P ranks.
///
/// Every message is part of exactly one parcel. A message that stays on its node is a parcel of its own and keeps its
/// place: if it is its source's k-th message, the parcels before it hold or replace the k-1 before. In the places between
/// the others are issued in their order; a parcel takes the place of its first part, the places of the others close up.
///
/// The result does not depend on how messages of different sources are interleaved in `set`.
#[must_use]
pub fn schedule(set: &MessageSet<'_>, settings: &Settings<'_>) -> Schedule {
    schedule_next(set, settings, &mut Before::default())
}

/// Which messages had company in the last superstep that had any like them, as the next one needs to know where
/// [`Join::waits`].
#[derive(Debug, Clone, Default)]
pub struct Before {
    /// By what messages that may travel together have in common.
    several: BTreeSet<(u32, u32)>,
}

/// [`schedule`] after another superstep, of which `before` tells; of this one then.
pub fn schedule_next(
    set: &MessageSet<'_>,
    settings: &Settings<'_>,
    before: &mut Before,
) -> Schedule {
    let graphs = Graphs::new(set);
    let (program, place) = program_order(set);
    let ranks = set.placement().ranks();
    let source = |message| set.message(message).source as usize;
    let lined_up = settings
        .variant
        .reorders()
        .then(|| line_up(set, &graphs, &place, &settings.reorder));
    let issue = match &lined_up {
        Some(messages) => Groups::new(messages.iter().copied(), ranks, source),
        None => {
            let remote = program.items.iter().copied();
            let remote = remote.filter(|&message| !set.is_local(message));
            Groups::new(remote, ranks, source)
        }
    };
    let joined = settings.variant.aggregates().then(|| {
        let line = candidates(
            set,
            &graphs,
            &place,
            lined_up.as_deref(),
            settings.join.scope,
        );
        Joined::new(set, &graphs, line, &settings.join, before)
    });

    let mut writer = Writer {
        set,
        graphs: &graphs,
        leaders: settings.join.leaders,
        schedule: Schedule {
            parcels: Vec::with_capacity(set.messages().len()),
            first: Vec::with_capacity(ranks + 1),
            parts: Vec::with_capacity(set.messages().len()),
        },
    };
    writer.schedule.first.push(0);
    for rank in 0..ranks {
        let mut remote = issue.of(rank).iter();
        for message in program.of(rank) {
            if set.is_local(*message) {
                writer.parcel(&[*message]);
                continue;
            }
            let next = remote.next().expect("as many as the program sends");
            match &joined {
                None => writer.parcel(std::slice::from_ref(next)),
                Some(joined) => {
                    if let Some(parts) = joined.beginning_with(*next) {
                        writer.parcel(parts);
                    }
                }
            }
        }
        let parcels = writer.schedule.parcels.len() as u32;
        writer.schedule.first.push(parcels);
    }
    writer.schedule
}

/// The messages between nodes, those that may travel together adjacent, in the order in which they are joined.
fn candidates(
    set: &MessageSet<'_>,
    graphs: &Graphs,
    place: &[u32],
    lined_up: Option<&[u32]>,
    scope: Scope,
) -> Vec<u32> {
    let ranks = set.placement().ranks();
    if let Some(messages) = lined_up {
        return match scope {
            Scope::RankToRank | Scope::NodeToNode => messages.to_vec(),
            Scope::RankToNode => {
                let source = |message| set.message(message).source as usize;
                Groups::new(messages.iter().copied(), ranks, source).items
            }
        };
    }
    let pairs = graphs.processes.edges();
    let mut keyed: Vec<(u32, u32, u32, u32)> = Vec::with_capacity(set.messages().len());
    for (pair, edge) in (0..).zip(pairs) {
        let node_edge = graphs.node_edge(pair);
        for &message in graphs.messages(pair) {
            // Messages of several sources meet in the order in which they would if all processes sent equally fast.
            let when = place[message as usize];
            keyed.push(match scope {
                Scope::RankToRank => (pair, when, 0, message),
                Scope::RankToNode => (edge.from, node_edge, when, message),
                Scope::NodeToNode => (node_edge, when, edge.from, message),
            });
        }
    }
    keyed.sort_unstable();
    keyed.into_iter().map(|(.., message)| message).collect()
}

/// Which messages travel together.
struct Joined {
    /// Messages, those of a parcel adjacent.
    line: Vec<u32>,
    /// For each message that begins a parcel where it stands in `line` and how many parts there are; else 0 parts.
    begins: Vec<(u32, u32)>,
}

impl Joined {
    fn new(
        set: &MessageSet<'_>,
        graphs: &Graphs,
        line: Vec<u32>,
        join: &Join,
        before: &mut Before,
    ) -> Self {
        let mut begins = vec![(0, 0); set.messages().len()];
        let mut group = None;
        let mut window = Window::new(join, 1, 1);
        let mut begin = 0;
        for (at, &message) in (0..).zip(&line) {
            let own = group_of(set, message, join.scope);
            if group == Some(own) {
                if join.waits {
                    before.several.insert(own);
                }
            } else {
                group = Some(own);
                let [from, to] = nodes(set, message);
                let (out, into) = (graphs.nodes.out_degree(from), graphs.nodes.in_degree(to));
                window = Window::new(join, out, into);
                if before.several.remove(&own) {
                    // As if the first had left alone.
                    window.place(set.message(message).bytes);
                }
            }
            if window.place(set.message(message).bytes) == Place::New {
                begin = at;
            }
            let first: u32 = line[begin as usize];
            begins[first as usize] = (begin, at - begin + 1);
        }
        Self { line, begins }
    }

    /// The messages of the parcel whose first one this is.
    fn beginning_with(&self, message: u32) -> Option<&[u32]> {
        let (at, parts) = self.begins[message as usize];
        (parts > 0).then(|| &self.line[at as usize..(at + parts) as usize])
    }
}

/// What messages that may travel together have in common.
fn group_of(set: &MessageSet<'_>, message: u32, scope: Scope) -> (u32, u32) {
    let &Message { source, target, .. } = set.message(message);
    let [from, to] = nodes(set, message);
    match scope {
        Scope::RankToRank => (source, target),
        Scope::RankToNode => (source, to),
        Scope::NodeToNode => (from, to),
    }
}

/// The nodes between which a message goes.
fn nodes(set: &MessageSet<'_>, message: u32) -> [u32; 2] {
    let message = set.message(message);
    [message.source, message.target].map(|rank| set.placement().node(rank))
}

/// Puts parcels into a schedule.
struct Writer<'a> {
    set: &'a MessageSet<'a>,
    graphs: &'a Graphs,
    leaders: u32,
    schedule: Schedule,
}

impl Writer<'_> {
    fn parcel(&mut self, messages: &[u32]) {
        let schedule = &mut self.schedule;
        let begin = schedule.parts.len() as u32;
        let first = self.set.message(messages[0]);
        let mut receiver = first.target;
        let mut bytes = HEAD_BYTES as u64;
        for &message in messages {
            let &Message {
                source,
                target,
                bytes: own,
            } = self.set.message(message);
            if target != first.target {
                let placement = self.set.placement();
                receiver = placement.leader(placement.node(target), first.source, self.leaders);
            }
            bytes = bytes
                .saturating_add(own.0)
                .saturating_add(PART_BYTES as u64);
            schedule.parts.push(Part {
                message,
                source,
                target,
                sequence: self.graphs.sequence[message as usize],
            });
        }
        schedule.parcels.push(Parcel {
            issuer: first.source,
            receiver,
            bytes: if messages.len() == 1 {
                first.bytes
            } else {
                Bytes(bytes)
            },
            begin,
            end: schedule.parts.len() as u32,
        });
    }
}
