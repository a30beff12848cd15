//! The recorder: what this rank calls of MPI, and when, in the format of `raddle-trace`.
//!
//! `table` is what the shims call, from any thread, and where the bytes go to a file (`spool`); `requests` knows what the
//! handles of MPI stand for. [`Recording`] has neither a clock nor a file.

mod requests;
mod spool;
pub(crate) mod table;

use raddle_trace::{
    Collective, CollectiveKind, Completion, Interval, Message, Origin, Outcome, Recorder, Wildcards,
};
use raddle_units::Bytes;

use self::requests::{Calls, Held, Requests, Started};
use crate::ffi::{RaddleMatched, RaddleMessage, RaddleShare};

impl RaddleMessage {
    /// What its receiver left open.
    ///
    /// Where every message counts, a record of the shim is read field by field: a copy reads more than one store of the shim at
    /// once, and then waits until all earlier stores have left the processor, those that MPI made to memory of other cores
    /// among them.
    pub(crate) const fn wildcards(&self) -> Wildcards {
        Wildcards {
            source: self.any_source != 0,
            tag: self.any_tag != 0,
        }
    }
}

/// The calls of this rank so far.
///
/// `call` is when a call began and came back, by this process's clock. Ranks are those of a communicator (of the remote
/// group of an intercommunicator), which is a number that [`Self::communicator`] gave. `request` is the bits of MPI's
/// handle, 0 where a call has none.
pub(crate) struct Recording {
    recorder: Recorder,
    requests: Requests,
    /// By number of a communicator: the ranks of MPI_COMM_WORLD behind its ranks.
    peers: Vec<Box<[u32]>>,
    /// The end of MPI_Init.
    began_ns: u64,
    /// Time in calls that are no events: the next event takes it, so that it is no compute gap.
    passed_ns: u64,
    completions: Vec<Completion>,
}

impl Recording {
    pub(crate) fn new(origin: &Origin, began_ns: u64) -> Self {
        Self {
            recorder: Recorder::new(origin),
            requests: Requests::default(),
            peers: Vec::new(),
            began_ns,
            passed_ns: 0,
            completions: Vec::new(),
        }
    }

    /// What was recorded since [`Self::clear`].
    pub(crate) fn bytes(&self) -> &[u8] {
        self.recorder.bytes()
    }

    pub(crate) fn clear(&mut self) {
        self.recorder.clear();
    }

    /// A new communicator by its ranks of MPI_COMM_WORLD, and those of the remote group of an intercommunicator. The
    /// first is MPI_COMM_WORLD.
    pub(crate) fn communicator(&mut self, members: &[u32], remote: Option<&[u32]>) -> u32 {
        let number = if self.peers.is_empty() {
            0
        } else if let Some(remote) = remote {
            let mut both = [members, remote].concat();
            both.sort_unstable();
            self.recorder.communicator(both)
        } else {
            self.recorder.communicator(members.iter().copied())
        };
        self.peers.push(remote.unwrap_or(members).into());
        number
    }

    /// A send; `message.peer` is its target.
    pub(crate) fn send(&mut self, call: Interval, message: &RaddleMessage, request: usize) {
        let Some(message) = self.message(message) else {
            return self.pass(call);
        };
        let at = self.at(call);
        if request == 0 {
            self.recorder.send(at, &message);
        } else {
            let number = self.recorder.start_send(at, &message);
            self.requests.add(request, Started::new(number).into());
        }
    }

    /// A receive; without a request, `message` is what it matched, else only communicator and wildcards count.
    pub(crate) fn receive(&mut self, call: Interval, message: &RaddleMessage, request: usize) {
        let any = message.wildcards();
        if request == 0 {
            let Some(message) = self.message(message) else {
                return self.pass(call);
            };
            let at = self.at(call);
            self.recorder.receive(at, &message, any);
        } else if let Ok(comm) = u32::try_from(message.comm) {
            let at = self.at(call);
            let started = self.start_receive(at, comm, any);
            self.requests.replace(request, started.into());
        }
    }

    fn start_receive(&mut self, at: Interval, comm: u32, any: Wildcards) -> Started {
        let number = self.recorder.start_receive(at, comm, any);
        Started::receive(number, comm)
    }

    /// A send and a receive in one call; `None`: with MPI_PROC_NULL.
    pub(crate) fn exchange(
        &mut self,
        call: Interval,
        sent: Option<&RaddleMessage>,
        received: Option<&RaddleMessage>,
    ) {
        let sent = sent.and_then(|message| self.message(message));
        let any = received.map_or_else(Wildcards::default, RaddleMessage::wildcards);
        let received = received.and_then(|message| self.message(message));
        let mut completions = std::mem::take(&mut self.completions);
        completions.clear();
        let at = self.at(call);
        let start = Interval::instant(at.start_ns);
        if let Some(message) = sent {
            completions.push(Completion {
                request: self.recorder.start_send(start, &message),
                outcome: Outcome::Done,
            });
        }
        if let Some(Message {
            peer,
            tag,
            comm,
            bytes,
        }) = received
        {
            completions.push(Completion {
                request: self.recorder.start_receive(start, comm, any),
                outcome: Outcome::Matched {
                    source: peer,
                    tag,
                    bytes,
                },
            });
        }
        self.wait(at, completions);
    }

    /// A collective on an intracommunicator; a negative root: it has none.
    pub(crate) fn collective(
        &mut self,
        call: Interval,
        comm: i32,
        kind: CollectiveKind,
        bytes: u64,
        root: i32,
        request: usize,
    ) {
        let Ok(number) = u32::try_from(comm) else {
            return self.pass(call);
        };
        let collective = Collective {
            kind,
            comm: number,
            bytes: Bytes(bytes),
            root: self.peer(comm, root),
        };
        let at = self.at(call);
        if request == 0 {
            self.recorder.collective(at, &collective);
        } else {
            let number = self.recorder.start_collective(at, &collective);
            self.requests.add(request, Started::new(number).into());
        }
    }

    /// A neighbourhood collective by what goes to each neighbour and what comes from each.
    pub(crate) fn neighbours(
        &mut self,
        call: Interval,
        comm: i32,
        sent: &[RaddleShare],
        received: &[RaddleShare],
        request: usize,
    ) {
        let Ok(number) = u32::try_from(comm) else {
            return self.pass(call);
        };
        let at = self.at(call);
        let world = |share: &RaddleShare| Some((self.peer(comm, share.rank)?, Bytes(share.bytes)));
        let sent: Vec<_> = sent.iter().filter_map(world).collect();
        let received: Vec<_> = received.iter().filter_map(world).collect();
        if request == 0 {
            self.recorder.neighbours(at, number, sent, received);
        } else {
            let started = self.recorder.start_neighbours(at, number, sent, received);
            self.requests
                .replace(request, Held::Once(Calls::Neighbours(started.into())));
        }
    }

    /// A persistent send or receive.
    pub(crate) fn persist(&mut self, message: &RaddleMessage, receives: bool, request: usize) {
        let held = Held::Persistent {
            message: *message,
            receives,
            started: None,
        };
        self.requests.replace(request, held);
    }

    /// Persistent requests begin.
    pub(crate) fn start(&mut self, call: Interval, requests: &[usize]) {
        let mut part = call;
        for &request in requests {
            let Some((message, receives)) = self.requests.persistent(request) else {
                continue;
            };
            let (Ok(comm), sent) = (u32::try_from(message.comm), self.message(&message)) else {
                continue;
            };
            let at = self.at(part);
            let started = match sent {
                _ if receives => self.start_receive(at, comm, message.wildcards()),
                Some(message) => Started::new(self.recorder.start_send(at, &message)),
                None => continue,
            };
            self.requests.start(request, started);
            // The call's time belongs to the first.
            part.start_ns = part.end_ns;
        }
        if part == call {
            self.pass(call);
        }
    }

    /// Hides the call behind a handle from other threads while a call runs that may complete it. Gives the word that stands for
    /// it meanwhile.
    pub(crate) fn claim(&mut self, request: usize) -> usize {
        self.requests.claim(request)
    }

    /// The call is over, and a claimed request is not complete.
    pub(crate) fn restore(&mut self, claimed: usize, request: usize) {
        self.requests.restore(claimed, request);
    }

    /// A call that completed these requests; `matched` says what the i-th did.
    pub(crate) fn complete(
        &mut self,
        call: Interval,
        requests: impl Iterator<Item = usize>,
        matched: impl Fn(usize) -> RaddleMatched,
    ) {
        let mut completions = std::mem::take(&mut self.completions);
        completions.clear();
        for (index, request) in requests.enumerate() {
            match self.requests.finish(request) {
                Some(Calls::One(started)) => completions.push(Completion {
                    request: started.number,
                    outcome: self.outcome(started, || matched(index)),
                }),
                Some(Calls::Neighbours(several)) => completions.extend(several),
                None => {}
            }
        }
        if completions.is_empty() {
            self.completions = completions;
            self.pass(call);
        } else {
            let at = self.at(call);
            self.wait(at, completions);
        }
    }

    fn wait(&mut self, at: Interval, completions: Vec<Completion>) {
        self.recorder.wait(at, &completions);
        self.completions = completions;
    }

    fn outcome(&self, started: Started, matched: impl FnOnce() -> RaddleMatched) -> Outcome {
        let Some(comm) = started.receives_on else {
            let cancelled = started.cancels && matched().cancelled != 0;
            return if cancelled {
                Outcome::Cancelled
            } else {
                Outcome::Done
            };
        };
        let matched = matched();
        let source = i32::try_from(comm)
            .ok()
            .and_then(|comm| self.peer(comm, matched.source));
        match source {
            Some(source) if matched.cancelled == 0 => Outcome::Matched {
                source,
                tag: matched.tag,
                bytes: Bytes(matched.bytes),
            },
            _ => Outcome::Cancelled,
        }
    }

    /// What a probe took out of the matching became a request.
    pub(crate) fn rename(&mut self, call: Interval, from: usize, to: usize) {
        if let Some(Calls::One(started)) = self.requests.finish(from) {
            self.requests.replace(to, started.into());
        }
        self.pass(call);
    }

    /// MPI was asked to cancel a request: its status says what came of it.
    pub(crate) fn cancel(&mut self, call: Interval, request: usize) {
        self.requests.cancel(request);
        self.pass(call);
    }

    /// The program gives a request up, complete or not.
    pub(crate) fn release(&mut self, call: Interval, request: usize) {
        self.requests.release(request);
        self.pass(call);
    }

    /// A call that leaves no event.
    pub(crate) fn pass(&mut self, call: Interval) {
        self.passed_ns += call.length_ns();
    }

    /// The program is at MPI_Finalize.
    pub(crate) fn end(&mut self, now_ns: u64) {
        let at = self.at(Interval::instant(now_ns));
        self.recorder.end(at.start_ns);
    }

    /// When an event was, since the end of MPI_Init, and with what passed before it.
    fn at(&mut self, call: Interval) -> Interval {
        let passed = std::mem::take(&mut self.passed_ns);
        Interval {
            start_ns: call.start_ns.saturating_sub(self.began_ns + passed),
            end_ns: call.end_ns.saturating_sub(self.began_ns),
        }
    }

    fn message(&self, message: &RaddleMessage) -> Option<Message> {
        Some(Message {
            peer: self.peer(message.comm, message.peer)?,
            tag: message.tag,
            comm: u32::try_from(message.comm).ok()?,
            bytes: Bytes(message.bytes),
        })
    }

    fn peer(&self, comm: i32, rank: i32) -> Option<u32> {
        let peers = self.peers.get(usize::try_from(comm).ok()?)?;
        peers.get(usize::try_from(rank).ok()?).copied()
    }
}

#[cfg(test)]
mod tests;
