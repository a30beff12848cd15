//! Collectives as messages.

use std::{collections::BTreeMap, sync::Arc};

use raddle_trace::{
    Action, COLLECTIVE_TAG, Collective, CollectiveKind, Collectives, Event, Interval, Message,
    Trace, TraceError, Wildcards,
};
use raddle_units::Bytes;
use serde::Serialize;

use super::{
    algorithms::{Algorithms, Recipe},
    carried::{Carried, Move, Part},
};

/// A trace whose collectives are messages.
#[derive(Debug)]
pub struct Expanded {
    /// The trace.
    pub trace: Trace,
    /// Of each rank: after each call of the program, how many events of `trace` belong to it and those before.
    pub calls: Vec<Vec<u32>>,
    /// What ranks do with the network, by rank and event: these events wait for nothing in `trace`.
    pub(crate) rounds: BTreeMap<(u32, u32), Round>,
    /// Collectives of the program, and those of them that the network carries.
    pub collectives: CollectiveCounts,
}

/// Who carries the collectives of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CollectiveCounts {
    /// By messages between ranks.
    pub host: u64,
    /// By multicast groups.
    pub multicast: u64,
    /// By switches that compute.
    pub offload: u64,
}

/// A rank's part in a collective that the network carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    /// The collective, among all of the trace.
    pub(crate) operation: u32,
    /// What the rank does.
    pub(crate) part: Part,
}

/// The trace with every collective as blocking sends and receives of its algorithm, followed by an empty wait that has its
/// time. A nonblocking one runs where it is waited for; the call that starts it counts as computing. Which messages there are, `algorithms` says; where members
/// give different numbers of bytes, all give the mean. Sends of pipelined algorithms are nonblocking, and the wait has them. Each operation has a tag of its own, below
/// [`raddle_trace::NEIGHBOUR_TAG`]. Those that `carried` has are messages inside hosts, and one rank of each host deals with
/// the network.
///
/// # Errors
/// Members of a communicator that call different collectives. The trace is one that [`Trace::check`] accepts.
pub fn expand(
    trace: &Trace,
    algorithms: &Algorithms,
    carried: &Carried,
) -> Result<Expanded, TraceError> {
    let collectives = Collectives::new(trace)?;
    let mut expander = Expander {
        trace,
        carried,
        rounds: BTreeMap::new(),
        counts: CollectiveCounts::default(),
        collectives: &collectives,
        algorithms,
        recipes: BTreeMap::new(),
        places: trace
            .communicators
            .iter()
            .map(|list| places(list))
            .collect(),
    };
    let ranks = (0..).zip(&trace.ranks);
    let (ranks, calls) = ranks
        .map(|(rank, events)| expander.rank(rank, events))
        .unzip();
    let trace = Trace {
        ranks,
        placement: trace.placement.clone(),
        hosts: trace.hosts.clone(),
        communicators: trace.communicators.clone(),
        fabric: trace.fabric.clone(),
        program: trace.program.clone(),
        mpi: trace.mpi.clone(),
        processors: trace.processors,
    };
    Ok(Expanded {
        trace,
        calls,
        rounds: expander.rounds,
        collectives: expander.counts,
    })
}

/// (rank, place in the communicator) by rank.
fn places(members: &[u32]) -> Vec<(u32, u32)> {
    let mut places: Vec<(u32, u32)> = members.iter().copied().zip(0..).collect();
    places.sort_unstable();
    places
}

struct Expander<'a> {
    trace: &'a Trace,
    carried: &'a Carried,
    rounds: BTreeMap<(u32, u32), Round>,
    counts: CollectiveCounts,
    collectives: &'a Collectives,
    algorithms: &'a Algorithms,
    /// By kind, number of ranks and bytes.
    recipes: BTreeMap<(CollectiveKind, u32, u64), Arc<Recipe>>,
    places: Vec<Vec<(u32, u32)>>,
}

impl Expander<'_> {
    /// The events of a rank, and how many there are after each of its calls.
    fn rank(&mut self, rank: u32, events: &[Event]) -> (Vec<Event>, Vec<u32>) {
        let mut made = Vec::with_capacity(events.len());
        let mut calls = Vec::with_capacity(events.len());
        // Started collectives that nobody has waited for, by request.
        let mut open = BTreeMap::new();
        let mut free = first_free(events);
        for (index, event) in events.iter().enumerate() {
            let at = event.at;
            match &event.action {
                Action::Collective { request, .. } => {
                    let operation = self.collectives.operation(rank, index);
                    match (request, operation) {
                        (Some(request), Some(operation)) => {
                            open.insert(*request, operation);
                        }
                        (None, Some(operation)) => {
                            let sent =
                                self.operation(rank, operation, at.start_ns, &mut made, &mut free);
                            made.push(wait(at, sent.into()));
                        }
                        (_, None) => {}
                    }
                }
                Action::Wait { requests } => {
                    let mut left = Vec::with_capacity(requests.len());
                    for request in requests {
                        match open.remove(request) {
                            Some(operation) => {
                                left.extend(self.operation(
                                    rank,
                                    operation,
                                    at.start_ns,
                                    &mut made,
                                    &mut free,
                                ));
                            }
                            None => left.push(*request),
                        }
                    }
                    made.push(wait(at, left.into()));
                }
                Action::End => {
                    let mut left = Vec::new();
                    for operation in std::mem::take(&mut open).into_values() {
                        left.extend(self.operation(
                            rank,
                            operation,
                            at.start_ns,
                            &mut made,
                            &mut free,
                        ));
                    }
                    if !left.is_empty() {
                        made.push(wait(Interval::instant(at.start_ns), left.into()));
                    }
                    made.push(event.clone());
                }
                Action::Send { .. } | Action::Receive { .. } => made.push(event.clone()),
            }
            calls.push(made.len() as u32);
        }
        (made, calls)
    }

    /// The calls of a rank in an operation; the requests of its sends that are still to be waited for. `free` is the
    /// next number that no request of the rank has.
    fn operation(
        &mut self,
        rank: u32,
        operation: u32,
        start_ns: u64,
        made: &mut Vec<Event>,
        free: &mut u32,
    ) -> Vec<u32> {
        let mut sent = Vec::new();
        let call = self.collectives.operations()[operation as usize];
        let Collective {
            kind,
            comm,
            bytes,
            root,
        } = call;
        let members = &self.trace.communicators[comm as usize];
        let counted = u64::from(members.first() == Some(&rank));
        let tag = COLLECTIVE_TAG.wrapping_sub_unsigned(operation & (i32::MAX as u32 >> 1));
        if let Some(moves) = self.carried.moves(rank, &call) {
            let is_group = self.carried.is_multicast(&call);
            self.counts.multicast += counted * u64::from(is_group);
            self.counts.offload += counted * u64::from(!is_group);
            for step in moves {
                let message = |peer, bytes| Message {
                    peer,
                    tag,
                    comm,
                    bytes: Bytes(bytes),
                };
                let (request, any) = (None, Wildcards::default());
                let at = Interval::instant(start_ns);
                let action = match step {
                    Move::Give(to, bytes) => Action::Send {
                        message: message(to, bytes),
                        request,
                    },
                    Move::Take(from, bytes) => Action::Receive {
                        message: message(from, bytes),
                        request,
                        any,
                    },
                    Move::Network(part) => {
                        let round = Round { operation, part };
                        self.rounds.insert((rank, made.len() as u32), round);
                        made.push(wait(at, Box::default()));
                        continue;
                    }
                };
                made.push(Event { at, action });
            }
            return sent;
        }
        self.counts.host += counted;
        let size = members.len() as u32;
        let places = &self.places[comm as usize];
        let place = |rank: u32| {
            let found = places.binary_search_by_key(&rank, |place| place.0);
            found.map_or(0, |at| places[at].1)
        };
        let key = (kind, size, bytes.0);
        let algorithms = self.algorithms;
        let recipe = self.recipes.entry(key);
        let recipe = recipe.or_insert_with(|| Arc::new(algorithms.recipe(kind, size, bytes.0)));
        let recipe = Arc::clone(recipe);
        // The root has place 0 in the script.
        let shift = root.map_or(0, place);
        let own = (place(rank) + size - shift) % size;
        let rank_of = |place: u32| members[((place + shift) % size) as usize];
        for part in &recipe.ranks[own as usize] {
            let message = Message {
                peer: rank_of(part.peer),
                tag,
                comm,
                bytes: Bytes(part.bytes),
            };
            let action = if part.sends {
                let request = recipe.pipelined.then_some(*free);
                if let Some(request) = request {
                    sent.push(request);
                    *free = request.wrapping_add(1);
                }
                Action::Send { message, request }
            } else {
                Action::Receive {
                    message,
                    request: None,
                    any: Wildcards::default(),
                }
            };
            let at = Interval::instant(start_ns);
            made.push(Event { at, action });
        }
        sent
    }
}

/// A number above those of all requests of a rank.
fn first_free(events: &[Event]) -> u32 {
    let requests = events.iter().filter_map(|event| match event.action {
        Action::Send { request, .. }
        | Action::Receive { request, .. }
        | Action::Collective { request, .. } => request,
        Action::Wait { .. } | Action::End => None,
    });
    requests.max().map_or(0, |last| last.wrapping_add(1))
}

fn wait(at: Interval, requests: Box<[u32]>) -> Event {
    let action = Action::Wait { requests };
    Event { at, action }
}
