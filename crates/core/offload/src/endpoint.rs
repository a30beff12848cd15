//! A member with its recovery: one call of the program is one round, whatever happens to switches.
//!
//! ```text
//! start ──► Offloaded: drive until outcome is Done or Plain        Plain: call plain MPI, now and from then on
//! ```
//! All messages of a member may come to [`handle_packet`](Endpoint::handle_packet), by whatever port. Between rounds the
//! endpoint must be driven too, by a thread of its own in a real program: leases keep the group, and others ask.

use core::net::{Ipv4Addr, SocketAddrV4};

use raddle_units::Time;
use raddle_wire::native::{Kind, Reason, Unverified};

use crate::{
    member::{Member, MemberConfig, MemberCounters, Outcome, RoundSpec, StartError},
    recovery::{Recovery, RecoveryConfig, RecoveryState},
};

/// How a call begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// It is the group's round of this number.
    Offloaded(u32),
    /// Offload is over: the call is plain MPI, on every rank.
    Plain,
}

/// How a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome<'a> {
    /// Not yet decided.
    Pending,
    /// The result, most significant bytes first.
    Done(&'a [u8]),
    /// Offload ended before this round: it is plain MPI, on every rank.
    Plain(Reason),
}

/// One member of one group, from set-up to the end.
#[derive(Debug)]
pub struct Endpoint {
    member: Member,
    recovery: Recovery,
    /// The round's result counts.
    committed: bool,
    /// The call could not begin.
    barred: bool,
}

impl Endpoint {
    /// A member of a group that stands; `members` are the addresses of all members for messages from host to host.
    #[must_use]
    pub fn new(now: Time, config: MemberConfig, members: Vec<SocketAddrV4>) -> Self {
        Self {
            recovery: Recovery::new(RecoveryConfig {
                job: config.job,
                key: config.key,
                group: config.group,
                member: config.member,
                members,
                retry: config.retry,
                give_up: config.give_up,
            }),
            member: Member::new(now, config),
            committed: true,
            barred: false,
        }
    }

    /// Begins a call. In a Bcast only the root's member has operands; see [`Member::start`].
    ///
    /// # Errors
    /// As [`Member::start`]. Others may have begun the round, so that offload is over: the endpoint freezes, and the call is
    /// plain.
    pub fn start(
        &mut self,
        now: Time,
        spec: &RoundSpec,
        operands: &[u8],
    ) -> Result<Started, StartError> {
        if self.recovery.state() != RecoveryState::Running {
            return Ok(Started::Plain);
        }
        let round = match self.member.start(now, spec, operands) {
            Ok(round) => round,
            Err(error) => {
                self.barred = true;
                self.freeze(now, Reason::Unsupported);
                return Err(error);
            }
        };
        let runs = self.recovery.begin(round, spec.collective, spec.bytes());
        debug_assert!(runs, "its state was looked at");
        self.committed = false;
        self.settle(now);
        Ok(Started::Offloaded(round))
    }

    /// A UDP payload that came to one of the member's ports. True when it was for this group.
    pub fn handle_packet(&mut self, now: Time, payload: &[u8]) -> bool {
        let Ok(message) = Unverified::parse(payload, 0) else {
            return false;
        };
        if !self.member.is_of(&message) {
            return false;
        }
        let frozen = self.recovery.state() != RecoveryState::Running;
        match message.kind() {
            Kind::Result if !frozen => self.member.handle_packet(now, payload),
            Kind::Refuse => self.member.handle_packet(now, payload),
            _ => self.recovery.handle_packet(now, payload),
        };
        self.settle(now);
        true
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        self.member.handle_timeout(now);
        self.settle(now);
        self.recovery.handle_timeout(now);
        self.settle(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let both = [self.member.poll_timeout(), self.recovery.poll_timeout()];
        both.into_iter().flatten().min()
    }

    /// The next message to send: writes it to `buffer`, which has room for 56 + 8192 bytes, and gives address and length.
    pub fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
        let message = self.member.poll_transmit(buffer);
        message.or_else(|| self.recovery.poll_transmit(buffer))
    }

    /// How the call that was started last stands.
    #[must_use]
    pub fn outcome(&self) -> CallOutcome<'_> {
        if self.barred {
            return CallOutcome::Plain(Reason::Unsupported);
        }
        if self.committed {
            return match self.member.outcome() {
                Outcome::Done(result) => CallOutcome::Done(result),
                _ => CallOutcome::Done(self.recovery.result()),
            };
        }
        match self.recovery.state() {
            RecoveryState::Agreed {
                completed_through, ..
            } if completed_through == self.member.round() => {
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
    pub const fn counters(&self) -> MemberCounters {
        self.member.counters()
    }

    /// The switch that contributions go to.
    #[must_use]
    pub const fn switch(&self) -> SocketAddrV4 {
        self.member.switch()
    }

    /// The address of this host by which all others know it; `None` if the list of members does not have this one.
    #[must_use]
    pub fn address(&self) -> Option<Ipv4Addr> {
        self.recovery.address()
    }

    /// The last round that was started here.
    #[must_use]
    pub const fn round(&self) -> u32 {
        self.member.round()
    }

    /// The communicator is freed: the switch is told. The endpoint is to be driven on until MPI_Finalize, because others
    /// may still lack the last result.
    pub fn leave(&mut self) {
        self.member.leave();
    }

    /// Leaves offload by the program's own decision; all others leave with it.
    pub fn freeze(&mut self, now: Time, reason: Reason) {
        self.recovery.freeze(now, reason);
        self.settle(now);
    }

    /// Tells the recovery what became of the member, and the member what became of offload.
    fn settle(&mut self, now: Time) {
        match self.member.outcome() {
            Outcome::Done(result) => {
                if !self.committed && self.recovery.complete(result) {
                    self.committed = true;
                }
            }
            Outcome::Failed(reason) => self.recovery.freeze(now, reason),
            Outcome::Overdue => {
                self.recovery.overdue(now);
                if self.recovery.take_all_have_begun() {
                    self.member.resend_now(now);
                }
            }
            Outcome::Pending => self.recovery.resumed(),
            Outcome::Idle => {}
        }
        if self.recovery.state() != RecoveryState::Running {
            self.member.leave();
        }
    }
}
