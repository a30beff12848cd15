//! From the recordings of all ranks to one trace.

use raddle_units::many;
use std::collections::BTreeMap;
use std::ops::Range;

use thiserror::Error;

use crate::{
    check::TraceError,
    model::{Action, Event, Trace},
    pairing::{Collectives, Pairing},
    recording::RankRecording,
};

/// Why recordings are no trace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AssembleError {
    /// None at all.
    #[error("there are no recordings")]
    Empty,
    /// Ranks of programs of different sizes.
    #[error(
        "rank {rank} is one of {}, rank {first} one of {size}: recordings of two runs?",
        many(*.found, "rank")
    )]
    Size {
        /// The rank that differs.
        rank: u32,
        /// Its number of ranks.
        found: u32,
        /// The first rank.
        first: u32,
        /// Its number of ranks.
        size: u32,
    },
    /// A rank that recorded nothing.
    #[error("the recording of rank {rank} is missing: {found} of {size} are there")]
    Missing {
        /// The rank.
        rank: u32,
        /// Recordings.
        found: usize,
        /// Ranks.
        size: u32,
    },
    /// A rank with two recordings.
    #[error("rank {rank} has two recordings")]
    Twice {
        /// The rank.
        rank: u32,
    },
    /// A rank that did not come to MPI_Finalize.
    #[error(
        "the recording of rank {rank} ends before MPI_Finalize: the program was aborted, or the file is cut"
    )]
    Incomplete {
        /// The rank.
        rank: u32,
    },
    /// A communicator that not all its members have.
    #[error(
        "rank {rank} has a communicator of {} that rank {member} does not have: \
         members must record it in the same order",
        many(*.members, "rank")
    )]
    Communicator {
        /// The rank that has it.
        rank: u32,
        /// A member that does not.
        member: u32,
        /// Its number of members.
        members: u64,
    },
    /// What ranks recorded does not go together.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// What tells communicators apart on all ranks: members, and which of those with the same members it is.
type Key = (Vec<(u32, u32)>, u32);

/// One trace of the recordings of all ranks, in any order.
///
/// # Errors
/// A rank that is missing, there twice, not complete, or of another program; ranks that do not agree about communicators,
/// messages or collectives.
pub fn assemble(mut recordings: Vec<RankRecording>) -> Result<Trace, AssembleError> {
    recordings.sort_by_key(|recording| recording.origin.rank);
    check_ranks(&recordings)?;
    let communicators = Communicators::new(&recordings)?;
    let mut trace = Trace {
        communicators: communicators.members,
        program: recordings[0].origin.program.clone(),
        mpi: recordings[0].origin.mpi.clone(),
        ..Trace::default()
    };
    let mut hosts = BTreeMap::new();
    for (recording, numbers) in recordings.into_iter().zip(communicators.numbers) {
        let host = *hosts
            .entry(recording.origin.host)
            .or_insert_with_key(|name| {
                trace.hosts.push(name.clone());
                trace.hosts.len() as u32 - 1
            });
        trace.placement.push(host);
        let renumber = |event| renumber(event, &numbers);
        trace
            .ranks
            .push(recording.events.into_iter().map(renumber).collect());
    }
    trace.check()?;
    Pairing::new(&trace)?;
    Collectives::new(&trace)?;
    Ok(trace)
}

fn check_ranks(recordings: &[RankRecording]) -> Result<(), AssembleError> {
    let first = &recordings.first().ok_or(AssembleError::Empty)?.origin;
    for (expected, recording) in (0..).zip(recordings) {
        let origin = &recording.origin;
        let rank = origin.rank;
        if origin.size != first.size {
            return Err(AssembleError::Size {
                rank,
                found: origin.size,
                first: first.rank,
                size: first.size,
            });
        }
        if rank < expected {
            return Err(AssembleError::Twice { rank });
        }
        if rank > expected {
            return Err(missing(expected, recordings));
        }
        if !recording.complete {
            return Err(AssembleError::Incomplete { rank });
        }
    }
    if recordings.len() < first.size as usize {
        return Err(missing(recordings.len() as u32, recordings));
    }
    Ok(())
}

fn missing(rank: u32, recordings: &[RankRecording]) -> AssembleError {
    AssembleError::Missing {
        rank,
        found: recordings.len(),
        size: recordings[0].origin.size,
    }
}

fn renumber(mut event: Event, numbers: &[u32]) -> Event {
    let comm = match &mut event.action {
        Action::Send { message, .. } | Action::Receive { message, .. } => &mut message.comm,
        Action::Collective { call, .. } => &mut call.comm,
        Action::Wait { .. } | Action::End => return event,
    };
    *comm = numbers[*comm as usize];
    event
}

/// The communicators of all ranks.
struct Communicators {
    members: Vec<Vec<u32>>,
    /// For each rank, the index in `members` of each of its own.
    numbers: Vec<Vec<u32>>,
}

impl Communicators {
    fn new(recordings: &[RankRecording]) -> Result<Self, AssembleError> {
        let mut known: BTreeMap<Key, (u32, u32)> = BTreeMap::new();
        let mut members = Vec::new();
        let mut numbers = Vec::with_capacity(recordings.len());
        let mut has = Vec::new();
        for recording in recordings {
            let mut seen: BTreeMap<Vec<(u32, u32)>, u32> = BTreeMap::new();
            let mut own = Vec::new();
            for runs in &recording.communicators {
                let key = key(runs);
                let number = seen.entry(key.clone()).or_default();
                let next = members.len() as u32;
                let rank = recording.origin.rank;
                let &mut (index, _) = known.entry((key, *number)).or_insert((next, rank));
                *number += 1;
                if index == next {
                    members.push(runs.iter().cloned().flatten().collect::<Vec<u32>>());
                    has.push(0_u64);
                }
                has[index as usize] += 1;
                own.push(index);
            }
            numbers.push(own);
        }
        for &(index, rank) in known.values() {
            let list = &members[index as usize];
            if has[index as usize] != list.len() as u64 {
                let member = list.iter().find(|&&member| {
                    let own = numbers.get(member as usize);
                    !own.is_some_and(|own: &Vec<u32>| own.contains(&index))
                });
                return Err(AssembleError::Communicator {
                    rank,
                    member: member.copied().unwrap_or(rank),
                    members: list.len() as u64,
                });
            }
        }
        Ok(Self { members, numbers })
    }
}

fn key(runs: &[Range<u32>]) -> Vec<(u32, u32)> {
    runs.iter().map(|run| (run.start, run.end)).collect()
}
