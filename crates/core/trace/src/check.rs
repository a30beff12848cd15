//! What must hold for a trace to be one, and how it is told where it does not.

use raddle_units::{Bytes, many};
use thiserror::Error;

use crate::model::{Action, CollectiveKind, Trace};

/// Why a trace is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A call of a rank.
    #[error("rank {rank}, event {event}: {problem}")]
    Event {
        /// The rank.
        rank: u32,
        /// The call, counted from 0.
        event: usize,
        /// What is wrong.
        problem: EventProblem,
    },
    /// As many places as ranks are needed.
    #[error("a host is given for {}, but the trace has {ranks}", many(*.placed, "rank"))]
    Placement {
        /// Ranks with a host.
        placed: usize,
        /// Ranks.
        ranks: usize,
    },
    /// A host that is not in the list.
    #[error("rank {rank} is on host {host}, but the trace has {}", many(*.hosts, "host"))]
    Host {
        /// The rank.
        rank: usize,
        /// Its host.
        host: u32,
        /// Hosts.
        hosts: usize,
    },
    /// A communicator with a member that does not exist or is in it twice, or a communicator 0 that is not all ranks in order.
    #[error("communicator {comm}: {problem}")]
    Communicator {
        /// Its index.
        comm: usize,
        /// What is wrong.
        problem: String,
    },
    /// More than can be numbered.
    #[error("{found} {what}: at most 4294967294 can be numbered")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        found: usize,
    },
}

/// What is wrong with a call.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EventProblem {
    /// It ends before it begins.
    #[error("it ends at {end_ns} ns, before it begins at {start_ns} ns")]
    Backwards {
        /// Its start.
        start_ns: u64,
        /// Its end.
        end_ns: u64,
    },
    /// A communicator that is not in the list.
    #[error("communicator {comm}, but there are {known}")]
    Comm {
        /// Named.
        comm: u32,
        /// In the list.
        known: usize,
    },
    /// A rank that is not in the communicator.
    #[error("rank {rank} is not in communicator {comm}")]
    NotMember {
        /// The rank: this one, its peer or a root.
        rank: u32,
        /// The communicator.
        comm: u32,
    },
    /// More bytes in all messages than can be counted.
    #[error("`bytes` is {}: the messages up to here are more than 2^63 bytes together", .bytes.0)]
    TooManyBytes {
        /// The bytes of this call.
        bytes: Bytes,
    },
    /// A request that was started before.
    #[error("request {request} was started before")]
    StartedTwice {
        /// The request.
        request: u32,
    },
    /// A wait for a request that is not open.
    #[error("it waits for request {request}, which is not open")]
    NotOpen {
        /// The request.
        request: u32,
    },
    /// A collective with a root that needs none, or the other way round.
    #[error("{kind} {}", if *.has { "has no root, but one is given" } else { "needs a root" })]
    Root {
        /// Which collective.
        kind: CollectiveKind,
        /// Whether one is given.
        has: bool,
    },
    /// Something follows the end.
    #[error("calls follow the rank's end")]
    AfterEnd,
    /// A send that no receive takes.
    #[error(
        "the message to rank {target} (communicator {comm}, tag {tag}) is never received: \
         the ranks' recordings do not belong together, or one is not whole"
    )]
    NotReceived {
        /// Its target.
        target: u32,
        /// Its communicator.
        comm: u32,
        /// Its tag.
        tag: i32,
    },
    /// A receive that no send feeds.
    #[error(
        "the message from rank {origin} (communicator {comm}, tag {tag}) was never sent: \
         the ranks' recordings do not belong together, or one is not whole"
    )]
    NotSent {
        /// Its source.
        origin: u32,
        /// Its communicator.
        comm: u32,
        /// Its tag.
        tag: i32,
    },
    /// Both ends of a message differ.
    #[error(
        "{} B were received, but event {send} of rank {origin} sent {} B",
        .received.0, .sent.0
    )]
    Bytes {
        /// Bytes that came.
        received: Bytes,
        /// Bytes that left.
        sent: Bytes,
        /// The sender.
        origin: u32,
        /// Its call.
        send: usize,
    },
    /// Members of a communicator call different collectives.
    #[error(
        "collective {number} on communicator {comm} is {here} here, but {there} on rank {other}"
    )]
    Collective {
        /// Its number on the communicator, from 0.
        number: usize,
        /// The communicator.
        comm: u32,
        /// What this rank calls.
        here: String,
        /// What the other calls.
        there: String,
        /// The other.
        other: u32,
    },
}

impl Trace {
    /// Checks everything that concerns one rank at a time: hosts, communicators, peers, requests and times. Whether ranks
    /// agree is asked by [`crate::Pairing::new`] and [`crate::Collectives::new`].
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), TraceError> {
        countable("ranks", self.ranks.len())?;
        if self.placement.len() != self.ranks.len() {
            return Err(TraceError::Placement {
                placed: self.placement.len(),
                ranks: self.ranks.len(),
            });
        }
        let hosts = self.hosts.len();
        for (rank, &host) in self.placement.iter().enumerate() {
            if host as usize >= hosts {
                return Err(TraceError::Host { rank, host, hosts });
            }
        }
        self.check_communicators()?;
        let members: Vec<Vec<u32>> = self.communicators.iter().map(|list| sorted(list)).collect();
        let mut bytes = 0u64;
        for (rank, events) in (0..).zip(&self.ranks) {
            countable("calls of a rank", events.len())?;
            let mut open = std::collections::BTreeSet::new();
            let mut started = std::collections::BTreeSet::new();
            for (event, call) in events.iter().enumerate() {
                check_event(rank, events, event, &members, &mut open, &mut started)
                    .and_then(|()| count_bytes(&call.action, &mut bytes))
                    .map_err(|problem| TraceError::Event {
                        rank,
                        event,
                        problem,
                    })?;
            }
        }
        Ok(())
    }

    fn check_communicators(&self) -> Result<(), TraceError> {
        let ranks = self.ranks.len() as u32;
        let world = self.communicators.first();
        if !world.is_some_and(|world| world.iter().copied().eq(0..ranks)) {
            let problem = format!("it is MPI_COMM_WORLD: all ranks ({ranks}) in order");
            return Err(TraceError::Communicator { comm: 0, problem });
        }
        for (comm, members) in self.communicators.iter().enumerate() {
            let sorted = sorted(members);
            let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]);
            let problem = match (twice, sorted.last()) {
                (Some(pair), _) => format!("rank {} is in it twice", pair[0]),
                (_, Some(&last)) if last >= ranks => {
                    format!(
                        "rank {last} is in it, but the trace has {}",
                        many(ranks, "rank")
                    )
                }
                _ => continue,
            };
            return Err(TraceError::Communicator { comm, problem });
        }
        Ok(())
    }
}

fn check_event(
    rank: u32,
    events: &[crate::Event],
    event: usize,
    members: &[Vec<u32>],
    open: &mut std::collections::BTreeSet<u32>,
    started: &mut std::collections::BTreeSet<u32>,
) -> Result<(), EventProblem> {
    let crate::Event { at, action } = &events[event];
    if at.end_ns < at.start_ns {
        return Err(EventProblem::Backwards {
            start_ns: at.start_ns,
            end_ns: at.end_ns,
        });
    }
    if let Some(comm) = action.comm() {
        let Some(list) = members.get(comm as usize) else {
            let known = members.len();
            return Err(EventProblem::Comm { comm, known });
        };
        let other = match action {
            Action::Send { message, .. } | Action::Receive { message, .. } => Some(message.peer),
            Action::Collective { call, .. } => call.root,
            Action::Wait { .. } | Action::End => None,
        };
        for rank in [Some(rank), other].into_iter().flatten() {
            if list.binary_search(&rank).is_err() {
                return Err(EventProblem::NotMember { rank, comm });
            }
        }
    }
    match action {
        Action::Collective { call, .. } if call.kind.has_root() != call.root.is_some() => {
            return Err(EventProblem::Root {
                kind: call.kind,
                has: call.root.is_some(),
            });
        }
        Action::Wait { requests } => {
            for &request in requests {
                if !open.remove(&request) {
                    return Err(EventProblem::NotOpen { request });
                }
            }
        }
        Action::End if event + 1 < events.len() => return Err(EventProblem::AfterEnd),
        _ => {}
    }
    if let Some(request) = action.starts() {
        if !started.insert(request) {
            return Err(EventProblem::StartedTwice { request });
        }
        open.insert(request);
    }
    Ok(())
}

/// Sums of messages and of collectives fit in 64 bits, heads of joined messages included.
fn count_bytes(action: &Action, sum: &mut u64) -> Result<(), EventProblem> {
    let bytes = match action {
        Action::Send { message, .. } => message.bytes,
        Action::Collective { call, .. } => call.bytes,
        Action::Receive { .. } | Action::Wait { .. } | Action::End => return Ok(()),
    };
    let next = sum.checked_add(bytes.0).filter(|&sum| sum <= 1 << 63);
    *sum = next.ok_or(EventProblem::TooManyBytes { bytes })?;
    Ok(())
}

fn sorted(list: &[u32]) -> Vec<u32> {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted
}

pub(crate) const fn countable(what: &'static str, found: usize) -> Result<(), TraceError> {
    // The highest number is kept for "none".
    if found >= u32::MAX as usize {
        return Err(TraceError::TooMany { what, found });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Interval, Message};

    #[test]
    fn more_bytes_than_can_be_counted_are_refused_where_they_begin() {
        let send = |bytes| Event {
            at: Interval::new(0, 1),
            action: Action::Send {
                message: Message {
                    peer: 0,
                    tag: 0,
                    comm: 0,
                    bytes: Bytes(bytes),
                },
                request: None,
            },
        };
        let trace = |bytes: &[u64]| Trace {
            placement: vec![0],
            hosts: vec!["h0".to_owned()],
            communicators: vec![vec![0]],
            ranks: vec![bytes.iter().map(|&bytes| send(bytes)).collect()],
            ..Trace::default()
        };
        assert_eq!(trace(&[1 << 62, 1 << 62]).check(), Ok(()));
        let error = trace(&[1 << 62, 1 << 62, 1]).check().unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("rank 0, event 2: `bytes` is 1: "),
            "{error}"
        );
    }
}
