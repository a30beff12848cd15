//! How a group comes to be: members ask, switches on the way say what they can, the master decides and programs them.
//!
//! [`MemberSetup`] is the part of every member but the master (member 0), [`MasterSetup`] the master's. Both are driven
//! like the other state machines. A master that has its answer is driven on until all ranks have agreed, by plain MPI,
//! that every member is ready: a Notify may be lost. [`Attempt`] is either part, and what comes of it.

mod attempt;
mod master;

use core::net::{Ipv4Addr, SocketAddrV4};

use raddle_units::{Span, Time};
use raddle_wire::{
    DataType, Operation,
    native::{Body, Collective, Header, JobKey, Kind, PORT, Reason, Terms, TermsView, type_bit},
};

use crate::{order::Expression, payload::verified, program::Program};

pub use attempt::{Attempt, AttemptConfig};
pub use master::{MasterConfig, MasterSetup, MemberPlace};

/// Doublings of the time between repetitions.
const BACK_OFF: u32 = 4;

/// What a group can do, and where a member sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// The switch that the member sends to.
    pub switch: SocketAddrV4,
    /// Where the switch sends results besides the member's own port; the member joins this multicast group.
    pub results: Option<SocketAddrV4>,
    /// Operations that all support, bit code - 1.
    pub operations: u16,
    /// Collectives that all support, bit code - 1.
    pub collectives: u16,
    /// Element types that all support, as in [`type_bit`].
    pub types: u32,
    /// Most bytes of an operand in a message.
    pub segment_bytes: u16,
    /// Slots.
    pub slots: u16,
    /// How long the group lives without a sign of life.
    pub lease: Span,
    /// Tiers of switches in the tree.
    pub tiers: u8,
}

impl Agreement {
    /// Whether the group can do a call.
    #[must_use]
    pub fn supports(
        &self,
        collective: Collective,
        operation: Option<Operation>,
        data_type: Option<DataType>,
    ) -> bool {
        self.collectives & collective.bit() != 0
            && operation.is_none_or(|operation| self.operations & operation.bit() != 0)
            && data_type.is_none_or(|data_type| self.types & type_bit(data_type) != 0)
    }

    fn of(terms: TermsView<'_>) -> Self {
        let results = terms.results();
        Self {
            switch: SocketAddrV4::new(terms.parent(), PORT),
            results: (!results.is_unspecified())
                .then(|| SocketAddrV4::new(results, terms.results_port())),
            operations: terms.operations(),
            collectives: terms.collectives(),
            types: terms.types(),
            segment_bytes: terms.segment_bytes(),
            slots: terms.slots(),
            lease: Span::from_ms(u64::from(terms.lease_ms())),
            tiers: terms.tiers(),
        }
    }
}

/// How set-up stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupOutcome {
    /// Answers are awaited.
    Pending,
    /// The group stands.
    Ready(Agreement),
    /// There is no group, and this is why.
    Failed(Reason),
}

/// The program of a member: its ranks are its children, in ascending order; gives it with the number of its outputs.
#[must_use]
pub fn member_program(expression: &Expression, ranks: &[u32]) -> Option<Program> {
    let children: Vec<Vec<u32>> = ranks.iter().map(|rank| vec![*rank]).collect();
    Program::for_node(expression, &children).ok()
}

/// What everyone may ask for: all operations, types and collectives.
#[must_use]
pub fn all_terms(group_size: u32) -> Terms {
    Terms {
        operations: Operation::ALL.iter().fold(0, |mask, op| mask | op.bit()),
        collectives: Collective::ALL.iter().fold(0, |mask, c| mask | c.bit()),
        types: DataType::ALL.iter().fold(0, |mask, t| mask | type_bit(*t)),
        leaders: 1,
        segment_bytes: 1024,
        slots: 64,
        group_size,
        lease_ms: 5000,
        ..Terms::default()
    }
}

/// What a member is told about the group that it asks for.
#[derive(Debug, Clone, Copy)]
pub struct MemberSetupConfig {
    /// The job.
    pub job: u32,
    /// Its key.
    pub key: JobKey,
    /// The group.
    pub group: u32,
    /// The member's number, from 1.
    pub member: u32,
    /// The master's port. Its queries go there from the port at which the member expects results.
    pub master: SocketAddrV4,
    /// What the member supports and asks for.
    pub terms: Terms,
    /// Time until a query is sent again; it doubles with each repetition, up to 16 times.
    pub retry: Span,
    /// Time after which there is no group.
    pub give_up: Span,
}

/// Set-up on a member's side.
#[derive(Debug)]
pub struct MemberSetup {
    config: MemberSetupConfig,
    outcome: SetupOutcome,
    now: Time,
    ends: Time,
    due: Time,
    tries: u32,
}

impl MemberSetup {
    /// Begins: the query goes out at once.
    #[must_use]
    pub fn new(now: Time, config: MemberSetupConfig) -> Self {
        Self {
            outcome: SetupOutcome::Pending,
            now,
            ends: now + config.give_up,
            due: now,
            tries: 0,
            config,
        }
    }

    /// A UDP payload that came to the member's port. True when it was for this set-up.
    pub fn handle_packet(&mut self, now: Time, payload: &[u8]) -> bool {
        self.now = now;
        let Some(message) = verified(
            payload,
            self.config.job,
            self.config.group,
            &self.config.key,
        ) else {
            return false;
        };
        let decided = match (message.kind, message.body) {
            (Kind::Notify, Body::Terms(terms, _)) if terms.destination() == self.config.member => {
                SetupOutcome::Ready(Agreement::of(terms))
            }
            (Kind::Refuse, _) => SetupOutcome::Failed(
                Reason::from_code(message.header.reason()).unwrap_or(Reason::Unsupported),
            ),
            _ => return false,
        };
        if self.outcome == SetupOutcome::Pending {
            self.outcome = decided;
        }
        true
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        if self.outcome == SetupOutcome::Pending && now >= self.ends {
            self.outcome = SetupOutcome::Failed(Reason::NoAnswer);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        (self.outcome == SetupOutcome::Pending).then(|| self.due.min(self.ends))
    }

    /// The next message to send: writes it to `buffer`, and gives address and length.
    pub fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
        if self.outcome != SetupOutcome::Pending || self.due > self.now {
            return None;
        }
        self.due = self.now + Span(self.config.retry.0 << self.tries.min(BACK_OFF));
        self.tries += 1;
        let query = Header {
            group: self.config.group,
            rank: self.config.member,
            resent: self.tries > 1,
            ..Header::of(Kind::Query, self.config.job)
        };
        let terms = Terms {
            hops: 0,
            parent: Ipv4Addr::UNSPECIFIED,
            ..self.config.terms
        };
        terms.write(buffer, Header::SIZE).ok()?;
        let length = query
            .seal_message(buffer, Terms::SIZE, &self.config.key)
            .ok()?;
        Some((self.config.master, length))
    }

    /// How set-up stands.
    #[must_use]
    pub const fn outcome(&self) -> SetupOutcome {
        self.outcome
    }
}
