//! A leader with its recovery: a round that brings no result ends offload on all leaders together.

use core::net::SocketAddrV4;

use raddle_units::Time;
use raddle_wire::{
    DataType, Operation,
    native::{Collective, Reason},
};

use super::leader::{Leader, LeaderCounters, Outcome};
use crate::{
    endpoint::{CallOutcome, Started},
    recovery::{Recovery, RecoveryConfig, RecoveryState},
};

/// An open [`Leader`] and a [`Recovery`], whose messages travel from host to host past the published protocol, which has
/// none for this.
#[derive(Debug)]
pub struct Endpoint {
    leader: Leader,
    recovery: Recovery,
    /// All have begun the round: what did not come by then is lost.
    lost: Option<Time>,
    /// The round's result counts.
    committed: bool,
}

impl Endpoint {
    /// A leader whose group is open; `recovery` has the addresses of all leaders, by number.
    #[must_use]
    pub fn new(leader: Leader, recovery: RecoveryConfig) -> Self {
        Self {
            leader,
            recovery: Recovery::new(recovery),
            lost: None,
            committed: true,
        }
    }

    /// Begins a call. Plain if offload is over, or if the terms do not allow it: then on all leaders alike.
    pub fn start(
        &mut self,
        now: Time,
        operation: Operation,
        data_type: DataType,
        operands: &[u8],
    ) -> Started {
        if self.recovery.state() != RecoveryState::Running {
            return Started::Plain;
        }
        let Some(round) = self.leader.start(now, operation, data_type, operands) else {
            return Started::Plain;
        };
        let runs = self
            .recovery
            .begin(round, Collective::Allreduce, operands.len());
        debug_assert!(runs, "its state was looked at");
        self.committed = false;
        self.lost = None;
        Started::Offloaded(round)
    }

    /// A frame of the published protocol. True if it was for this leader and was taken.
    pub fn handle_frame(&mut self, now: Time, frame: &[u8]) -> bool {
        // Once frozen, no result counts any more: others are told how far this one is.
        let taken =
            self.recovery.state() == RecoveryState::Running && self.leader.handle_frame(now, frame);
        self.settle(now);
        taken
    }

    /// A UDP payload from another leader's recovery. True if it was for this group.
    pub fn handle_packet(&mut self, now: Time, payload: &[u8]) -> bool {
        let taken = self.recovery.handle_packet(now, payload);
        self.settle(now);
        taken
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        self.leader.handle_timeout(now);
        self.settle(now);
        self.recovery.handle_timeout(now);
        self.settle(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let waits = !self.committed && self.recovery.state() == RecoveryState::Running;
        let round = if waits {
            self.lost.or_else(|| self.leader.poll_timeout())
        } else {
            None
        };
        round.into_iter().chain(self.recovery.poll_timeout()).min()
    }

    /// The next frame; see [`Leader::poll_transmit`].
    pub fn poll_frame(&mut self, buffer: &mut [u8]) -> Option<(core::net::Ipv4Addr, usize)> {
        self.leader.poll_transmit(buffer)
    }

    /// The next message to another leader's recovery.
    pub fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
        self.recovery.poll_transmit(buffer)
    }

    /// How the call that was started last stands.
    #[must_use]
    pub fn outcome(&self, now: Time) -> CallOutcome<'_> {
        if self.committed {
            return match self.leader.outcome(now) {
                Outcome::Done(result) => CallOutcome::Done(result),
                _ => CallOutcome::Done(self.recovery.result()),
            };
        }
        match self.recovery.state() {
            RecoveryState::Agreed {
                completed_through, ..
            } if completed_through == self.leader.round() => {
                CallOutcome::Done(self.recovery.result())
            }
            RecoveryState::Agreed { reason, .. } => CallOutcome::Plain(reason),
            _ => CallOutcome::Pending,
        }
    }

    /// Whether offload goes on, and if not, how far the agreement is.
    #[must_use]
    pub fn state(&self) -> RecoveryState {
        self.recovery.state()
    }

    /// What happened.
    #[must_use]
    pub const fn counters(&self) -> LeaderCounters {
        self.leader.counters()
    }

    /// Leaves offload by the program's own decision; all others leave with it.
    pub fn freeze(&mut self, now: Time, reason: Reason) {
        self.recovery.freeze(now, reason);
    }

    /// The program frees the communicator; see [`Leader::kill`].
    pub fn kill(&mut self) {
        self.leader.kill();
    }

    fn settle(&mut self, now: Time) {
        if self.committed {
            return;
        }
        match self.leader.outcome(now) {
            Outcome::Done(result) => self.committed = self.recovery.complete(result),
            Outcome::Overdue => {
                match self.lost {
                    Some(lost) if now >= lost => self.recovery.freeze(now, Reason::Overdue),
                    Some(_) => {}
                    None => self.recovery.overdue(now),
                }
                if self.recovery.take_all_have_begun() {
                    self.lost = Some(now + self.leader.overdue());
                }
            }
            Outcome::Pending | Outcome::Idle => {}
        }
    }
}
