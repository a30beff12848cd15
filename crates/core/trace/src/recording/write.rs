//! The writer that a running program carries: it appends to one vector and does nothing else.

use raddle_units::Bytes;

use super::{
    ANY_SOURCE, ANY_TAG, Completion, HAS_ROOT, MAGIC, Origin, Outcome, VERSION, kind,
    varint::{push, zigzag},
};
use crate::model::{Collective, Interval, Message, NEIGHBOUR_TAG, Wildcards};

/// Records the calls of one rank.
///
/// Calls are given in the order in which they began, each after it came back. What began in a call and ends in another is
/// *started*; the number that comes back is the request's, for [`Self::wait`]. MPI_Sendrecv is a started send and a started
/// receive, both at the call's start, and a wait for both. Messages with MPI_PROC_NULL are not recorded.
///
/// The vector may be written to a file and cleared at any time ([`Self::bytes`], [`Self::clear`]): what was written, in
/// order, is the recording.
///
/// ```
/// use raddle_trace::{Completion, Interval, Message, Origin, Outcome, RankRecording, Recorder, Wildcards};
/// use raddle_units::Bytes;
/// let origin = Origin { rank: 0, size: 2, host: "n1".into(), program: "a.out".into(), mpi: "some MPI".into() };
/// let mut recorder = Recorder::new(&origin);
/// let message = Message { peer: 1, tag: 7, comm: 0, bytes: Bytes(4096) };
/// let send = recorder.start_send(Interval::new(1_000, 1_300), &message);
/// let receive = recorder.start_receive(Interval::new(1_400, 1_500), 0, Wildcards::default());
/// let matched = Outcome::Matched { source: 1, tag: 7, bytes: Bytes(4096) };
/// recorder.wait(
///     Interval::new(9_000, 12_000),
///     &[
///         Completion { request: send, outcome: Outcome::Done },
///         Completion { request: receive, outcome: matched },
///     ],
/// );
/// recorder.end(20_000);
/// let recording = RankRecording::decode(recorder.bytes()).unwrap();
/// assert_eq!(recording.origin, origin);
/// assert_eq!(recording.events.len(), 4);
/// assert!(recording.complete);
/// ```
#[derive(Debug)]
pub struct Recorder {
    bytes: Vec<u8>,
    last_ns: u64,
    requests: u32,
    communicators: u32,
}

impl Recorder {
    /// Writes the head. MPI_COMM_WORLD is communicator 0 already.
    #[must_use]
    pub fn new(origin: &Origin) -> Self {
        let mut bytes = Vec::with_capacity(1 << 16);
        bytes.extend_from_slice(MAGIC);
        bytes.push(VERSION);
        push(&mut bytes, u64::from(origin.rank));
        push(&mut bytes, u64::from(origin.size));
        for text in [&origin.host, &origin.program, &origin.mpi] {
            push(&mut bytes, text.len() as u64);
            bytes.extend_from_slice(text.as_bytes());
        }
        Self {
            bytes,
            last_ns: 0,
            requests: 0,
            communicators: 1,
        }
    }

    /// What was recorded since the last [`Self::clear`]: whole records, after the head.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets the bytes, after they were written to a file. Room is kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// A communicator and its number. Those with the same members are told apart by the order in which a rank records them,
    /// so it has to be the same on all members: record a communicator when it is created, used or not.
    pub fn communicator(&mut self, members: impl IntoIterator<Item = u32>) -> u32 {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for member in members {
            match runs.last_mut() {
                Some((first, count)) if first.checked_add(*count) == Some(member) => *count += 1,
                _ => runs.push((member, 1)),
            }
        }
        self.bytes.push(kind::COMMUNICATOR);
        self.number(runs.len() as u64);
        for (first, count) in runs {
            self.number(u64::from(first));
            self.number(u64::from(count));
        }
        let number = self.communicators;
        self.communicators = number.wrapping_add(1);
        number
    }

    /// A blocking send, in any mode.
    pub fn send(&mut self, at: Interval, message: &Message) {
        self.call(kind::SEND, at);
        self.message(message);
    }

    /// A nonblocking send, or the start of a persistent one.
    pub fn start_send(&mut self, at: Interval, message: &Message) -> u32 {
        self.call(kind::START_SEND, at);
        self.message(message);
        self.request()
    }

    /// A blocking receive and what it matched.
    pub fn receive(&mut self, at: Interval, message: &Message, any: Wildcards) {
        self.call(kind::RECEIVE | flags(any), at);
        self.message(message);
    }

    /// A nonblocking receive, or the start of a persistent one.
    pub fn start_receive(&mut self, at: Interval, comm: u32, any: Wildcards) -> u32 {
        self.call(kind::START_RECEIVE | flags(any), at);
        self.number(u64::from(comm));
        self.request()
    }

    /// A call that completed requests: any wait, or a test that found some complete. With none nothing is recorded.
    pub fn wait(&mut self, at: Interval, completions: &[Completion]) {
        if completions.is_empty() {
            return;
        }
        self.call(kind::WAIT, at);
        self.number(completions.len() as u64);
        for &Completion { request, outcome } in completions {
            let age = u64::from(self.requests.wrapping_sub(1).wrapping_sub(request)) << 2;
            match outcome {
                Outcome::Done => self.number(age),
                Outcome::Matched { source, tag, bytes } => {
                    self.number(age | 1);
                    self.number(u64::from(source));
                    self.number(zigzag(i64::from(tag)));
                    self.number(bytes.0);
                }
                Outcome::Cancelled => self.number(age | 2),
            }
        }
    }

    /// A blocking collective.
    pub fn collective(&mut self, at: Interval, call: &Collective) {
        self.collective_record(kind::COLLECTIVE, at, call);
    }

    /// A nonblocking collective, or the start of a persistent one.
    pub fn start_collective(&mut self, at: Interval, call: &Collective) -> u32 {
        self.collective_record(kind::START_COLLECTIVE, at, call);
        self.request()
    }

    /// A blocking neighbourhood collective: (target, bytes) of what the rank sends, (source, bytes) of what it receives.
    pub fn neighbours(
        &mut self,
        at: Interval,
        comm: u32,
        sent: impl IntoIterator<Item = (u32, Bytes)>,
        received: impl IntoIterator<Item = (u32, Bytes)>,
    ) {
        let start = Interval::instant(at.start_ns);
        let completions = self.start_neighbours(start, comm, sent, received);
        self.wait(at, &completions);
    }

    /// A nonblocking neighbourhood collective, as [`Self::neighbours`]; what its completion is to hand to [`Self::wait`].
    pub fn start_neighbours(
        &mut self,
        at: Interval,
        comm: u32,
        sent: impl IntoIterator<Item = (u32, Bytes)>,
        received: impl IntoIterator<Item = (u32, Bytes)>,
    ) -> Vec<Completion> {
        let tag = NEIGHBOUR_TAG;
        let mut completions = Vec::new();
        // The call's time belongs to the first of its messages.
        let mut part = at;
        for (source, bytes) in received {
            completions.push(Completion {
                request: self.start_receive(part, comm, Wildcards::default()),
                outcome: Outcome::Matched { source, tag, bytes },
            });
            part = Interval::instant(at.end_ns);
        }
        for (peer, bytes) in sent {
            let message = Message {
                peer,
                tag,
                comm,
                bytes,
            };
            completions.push(Completion {
                request: self.start_send(part, &message),
                outcome: Outcome::Done,
            });
            part = Interval::instant(at.end_ns);
        }
        completions
    }

    /// MPI_Finalize is called: the recording is complete. Nothing may follow.
    pub fn end(&mut self, at_ns: u64) {
        self.bytes.push(kind::END);
        self.number(self.since_last(at_ns));
    }

    fn since_last(&self, ns: u64) -> u64 {
        zigzag(ns.wrapping_sub(self.last_ns).cast_signed())
    }

    fn number(&mut self, value: u64) {
        push(&mut self.bytes, value);
    }

    fn call(&mut self, first: u8, at: Interval) {
        self.bytes.push(first);
        self.number(self.since_last(at.start_ns));
        self.number(at.length_ns());
        self.last_ns = at.start_ns.max(at.end_ns);
    }

    fn message(&mut self, message: &Message) {
        self.number(u64::from(message.peer));
        self.number(zigzag(i64::from(message.tag)));
        self.number(u64::from(message.comm));
        self.number(message.bytes.0);
    }

    fn collective_record(&mut self, kind: u8, at: Interval, call: &Collective) {
        self.call(kind | if call.root.is_some() { HAS_ROOT } else { 0 }, at);
        self.bytes.push(call.kind as u8);
        self.number(u64::from(call.comm));
        self.number(call.bytes.0);
        if let Some(root) = call.root {
            self.number(u64::from(root));
        }
    }

    fn request(&mut self) -> u32 {
        let number = self.requests;
        self.requests = number.wrapping_add(1);
        number
    }
}

const fn flags(any: Wildcards) -> u8 {
    (if any.source { ANY_SOURCE } else { 0 }) | (if any.tag { ANY_TAG } else { 0 })
}
