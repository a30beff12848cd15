//! Which send feeds which receive, and which calls of the members of a communicator are one collective.

use raddle_units::Bytes;

use crate::{
    check::{EventProblem, TraceError, countable},
    model::{Action, Collective, Trace},
};

/// A message with both of its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Sending rank.
    pub source: u32,
    /// The call that sends it.
    pub send: u32,
    /// Receiving rank.
    pub target: u32,
    /// The call that receives it.
    pub receive: u32,
    /// Bytes.
    pub bytes: Bytes,
}

/// The messages of a trace, by source, each source's in the order in which it sends them.
///
/// MPI matches what has the same (communicator, source, target, tag) in order: the k-th send of them feeds the k-th receive
/// (MPI 4.1, 3.5). Receives are told with what they matched, so wildcards are settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairing {
    messages: Vec<Transfer>,
    of_event: ByEvent,
}

/// A message or collective, by its index, of every call that has one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ByEvent {
    index: Vec<u32>,
    first: Vec<usize>,
}

const NONE: u32 = u32::MAX;

impl ByEvent {
    fn new(trace: &Trace) -> Self {
        let mut first = vec![0];
        for events in &trace.ranks {
            first.push(first[first.len() - 1] + events.len());
        }
        Self {
            index: vec![NONE; first[first.len() - 1]],
            first,
        }
    }

    fn get(&self, rank: u32, event: usize) -> Option<u32> {
        let index = self.index[self.first[rank as usize] + event];
        (index != NONE).then_some(index)
    }

    fn set(&mut self, rank: u32, event: u32, index: u32) {
        self.index[self.first[rank as usize] + event as usize] = index;
    }
}

/// One end of a message; sorts by what MPI matches, then by order on its rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    comm: u32,
    source: u32,
    target: u32,
    tag: i32,
    event: u32,
}

impl End {
    const fn envelope(&self) -> (u32, u32, u32, i32) {
        (self.comm, self.source, self.target, self.tag)
    }
}

impl Pairing {
    /// Pairs all messages of a trace that [`Trace::check`] accepts, in O(M log M).
    ///
    /// # Errors
    /// A message that is not received, or not sent, or has other lengths at its ends; with rank and event.
    pub fn new(trace: &Trace) -> Result<Self, TraceError> {
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for (rank, events) in (0..).zip(&trace.ranks) {
            for (event, call) in (0..).zip(events) {
                match &call.action {
                    Action::Send { message, .. } => sends.push(End {
                        comm: message.comm,
                        source: rank,
                        target: message.peer,
                        tag: message.tag,
                        event,
                    }),
                    Action::Receive { message, .. } => receives.push(End {
                        comm: message.comm,
                        source: message.peer,
                        target: rank,
                        tag: message.tag,
                        event,
                    }),
                    _ => {}
                }
            }
        }
        countable("messages", sends.len().max(receives.len()))?;
        sends.sort_unstable();
        receives.sort_unstable();
        let mut messages = Vec::with_capacity(sends.len());
        for index in 0..sends.len().max(receives.len()) {
            messages.push(transfer(trace, sends.get(index), receives.get(index))?);
        }
        messages.sort_unstable_by_key(|message| (message.source, message.send));
        let mut of_event = ByEvent::new(trace);
        for (index, message) in (0..).zip(&messages) {
            of_event.set(message.source, message.send, index);
            of_event.set(message.target, message.receive, index);
        }
        Ok(Self { messages, of_event })
    }

    /// All messages.
    #[must_use]
    pub fn messages(&self) -> &[Transfer] {
        &self.messages
    }

    /// The message that a call sends or receives, by its index.
    ///
    /// # Panics
    /// If there is no such call.
    #[must_use]
    pub fn message(&self, rank: u32, event: usize) -> Option<u32> {
        self.of_event.get(rank, event)
    }
}

/// Both lists are sorted alike, so the first place where they differ is a message with one end.
fn transfer(
    trace: &Trace,
    send: Option<&End>,
    receive: Option<&End>,
) -> Result<Transfer, TraceError> {
    match (send, receive) {
        (Some(send), Some(receive)) if send.envelope() == receive.envelope() => {
            both_ends(trace, send, receive)
        }
        (Some(send), Some(receive)) if send.envelope() < receive.envelope() => {
            Err(not_received(send))
        }
        (Some(send), None) => Err(not_received(send)),
        (_, Some(receive)) => Err(not_sent(receive)),
        (None, None) => unreachable!("one of the lists has this place"),
    }
}

fn not_received(send: &End) -> TraceError {
    TraceError::Event {
        rank: send.source,
        event: send.event as usize,
        problem: EventProblem::NotReceived {
            target: send.target,
            comm: send.comm,
            tag: send.tag,
        },
    }
}

fn not_sent(receive: &End) -> TraceError {
    TraceError::Event {
        rank: receive.target,
        event: receive.event as usize,
        problem: EventProblem::NotSent {
            origin: receive.source,
            comm: receive.comm,
            tag: receive.tag,
        },
    }
}

fn both_ends(trace: &Trace, send: &End, receive: &End) -> Result<Transfer, TraceError> {
    let bytes = |rank: u32, event: u32| match &trace.ranks[rank as usize][event as usize].action {
        Action::Send { message, .. } | Action::Receive { message, .. } => message.bytes,
        _ => Bytes(0),
    };
    let (sent, received) = (
        bytes(send.source, send.event),
        bytes(receive.target, receive.event),
    );
    if sent != received {
        return Err(TraceError::Event {
            rank: receive.target,
            event: receive.event as usize,
            problem: EventProblem::Bytes {
                received,
                sent,
                origin: send.source,
                send: send.event as usize,
            },
        });
    }
    Ok(Transfer {
        source: send.source,
        send: send.event,
        target: receive.target,
        receive: receive.event,
        bytes: sent,
    })
}

/// The collective operations of a trace: the k-th call of every member of a communicator is one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collectives {
    operations: Vec<Collective>,
    of_event: ByEvent,
}

impl Collectives {
    /// Finds them in a trace that [`Trace::check`] accepts, in O(C log C).
    ///
    /// # Errors
    /// Members that call different collectives, or not equally many; with rank and event.
    pub fn new(trace: &Trace) -> Result<Self, TraceError> {
        // (communicator, number on it, rank, event): an operation's calls lie together.
        let mut calls: Vec<(u32, u32, u32, u32)> = Vec::new();
        let mut counts = vec![0_u32; trace.communicators.len()];
        for (rank, events) in (0..).zip(&trace.ranks) {
            counts.fill(0);
            for (event, call) in (0..).zip(events) {
                if let Action::Collective { call, .. } = &call.action {
                    let count = &mut counts[call.comm as usize];
                    calls.push((call.comm, *count, rank, event));
                    *count += 1;
                }
            }
        }
        countable("collective calls", calls.len())?;
        calls.sort_unstable();
        let mut operations = Vec::new();
        let mut of_event = ByEvent::new(trace);
        for same in calls.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            for &(.., rank, event) in same {
                of_event.set(rank, event, operations.len() as u32);
            }
            operations.push(operation(trace, same)?);
        }
        Ok(Self {
            operations,
            of_event,
        })
    }

    /// All operations, by communicator and order on it; `bytes` is the mean of all members' shares, rounded up.
    #[must_use]
    pub fn operations(&self) -> &[Collective] {
        &self.operations
    }

    /// The operation that a call takes part in, by its index.
    ///
    /// # Panics
    /// If there is no such call.
    #[must_use]
    pub fn operation(&self, rank: u32, event: usize) -> Option<u32> {
        self.of_event.get(rank, event)
    }
}

fn operation(trace: &Trace, calls: &[(u32, u32, u32, u32)]) -> Result<Collective, TraceError> {
    let of = |rank: u32, event: u32| match &trace.ranks[rank as usize][event as usize].action {
        Action::Collective { call, .. } => *call,
        _ => unreachable!("only collectives are listed"),
    };
    let name = |call: &Collective| match call.root {
        Some(root) => format!("{} from or to rank {root}", call.kind),
        None => call.kind.to_string(),
    };
    let (comm, number, first_rank, first_event) = calls[0];
    let first = of(first_rank, first_event);
    let disagree = |rank, event: u32, here, there, other| TraceError::Event {
        rank,
        event: event as usize,
        problem: EventProblem::Collective {
            number: number as usize,
            comm,
            here,
            there,
            other,
        },
    };
    let mut total = 0_u128;
    for &(.., rank, event) in calls {
        let call = of(rank, event);
        if (call.kind, call.root) != (first.kind, first.root) {
            return Err(disagree(rank, event, name(&call), name(&first), first_rank));
        }
        total += u128::from(call.bytes.0);
    }
    let members = &trace.communicators[comm as usize];
    if calls.len() < members.len() {
        let called = |rank: &&u32| calls.binary_search_by_key(*rank, |call| call.2).is_ok();
        let missing = members.iter().find(|rank| !called(rank));
        let missing = missing.copied().unwrap_or_default();
        let nothing = "never called".to_owned();
        return Err(disagree(
            first_rank,
            first_event,
            name(&first),
            nothing,
            missing,
        ));
    }
    let mean = total.div_ceil(calls.len() as u128);
    Ok(Collective {
        bytes: Bytes(u64::try_from(mean).unwrap_or(u64::MAX)),
        ..first
    })
}
