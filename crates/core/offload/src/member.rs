//! A member's part of a group's rounds: it sends its operands in segments, again until the result is there.
//!
//! The driver calls [`start`](Member::start), then feeds [`handle_packet`](Member::handle_packet) and
//! [`handle_timeout`](Member::handle_timeout), drains [`poll_transmit`](Member::poll_transmit) after each, and looks at
//! [`outcome`](Member::outcome). Between rounds the same calls keep the group alive.
//!
//! Segments of all rounds are numbered on; number n has slot `n mod slots`. Number n is sent only when the results of all
//! up to `n - slots / 2` are there, so that a switch may use a slot anew without asking (`docs/concepts/offload.md`).

use core::net::SocketAddrV4;

use raddle_units::{Span, Time};
use raddle_wire::{
    DataType, Operation,
    native::{Body, Collective, Header, JobKey, Kind, Reason, Unverified},
};
use thiserror::Error;

use crate::payload::verified;

/// Doublings of the time between repetitions.
const BACK_OFF: u32 = 6;

/// What a member is told when its group stands.
#[derive(Debug, Clone, Copy)]
pub struct MemberConfig {
    /// The job.
    pub job: u32,
    /// Its key.
    pub key: JobKey,
    /// The group.
    pub group: u32,
    /// The member's number.
    pub member: u32,
    /// The switch that it sends to.
    pub switch: SocketAddrV4,
    /// Slots of the group, at least 2.
    pub slots: u16,
    /// Most bytes of an operand in a message, at least 12.
    pub segment_bytes: u16,
    /// Operands that the member's program puts out, for ordered rounds.
    pub operands: u16,
    /// Lease of the group.
    pub lease: Span,
    /// Time until a contribution is sent again; it doubles with each repetition, up to 64 times.
    pub retry: Span,
    /// Time without any result after which a round is overdue.
    pub give_up: Span,
}

/// A collective call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundSpec {
    /// The collective.
    pub collective: Collective,
    /// The operation of Allreduce and Reduce.
    pub operation: Option<Operation>,
    /// The element type; `None` in a Barrier.
    pub data_type: Option<DataType>,
    /// Elements of the result.
    pub count: usize,
    /// Whether the group's program combines the operands.
    pub ordered: bool,
    /// Root of Reduce and Bcast.
    pub root: u32,
}

impl RoundSpec {
    /// Bytes of the result.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.count * self.data_type.map_or(0, DataType::size)
    }
}

/// Why a round cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The round before has no result yet.
    #[error("round {round} still runs")]
    Busy {
        /// The round.
        round: u32,
    },
    /// The operands are not as long as the call says.
    #[error("operands of {found} bytes, but the call has {expected}")]
    Length {
        /// Bytes given.
        found: usize,
        /// Bytes that the call has.
        expected: usize,
    },
    /// The call contradicts itself.
    #[error("a collective that reduces has an operation on its type, others have none")]
    Call,
    /// More segments than 32 bits count.
    #[error("{bytes} bytes are more than a round carries")]
    TooLong {
        /// Bytes of the result.
        bytes: usize,
    },
}

/// How a round stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// No round has been started.
    Idle,
    /// Results are awaited.
    Pending,
    /// No result came for as long as `give_up`: somebody is late, or a switch is dead. The round goes on.
    Overdue,
    /// The result, most significant bytes first.
    Done(&'a [u8]),
    /// A switch refused: offload is over.
    Failed(Reason),
}

/// What a member counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemberCounters {
    /// Rounds that have their result.
    pub rounds: u64,
    /// Contributions sent for the first time.
    pub sent: u64,
    /// Contributions sent again.
    pub resent: u64,
    /// Messages dropped: not genuine, of another group, or not awaited.
    pub dropped: u64,
}

/// A segment on its way.
#[derive(Debug, Clone, Copy, Default)]
struct Flight {
    done: bool,
    tries: u32,
    due: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    Done,
    Failed(Reason),
}

/// One member of one group.
#[derive(Debug)]
pub struct Member {
    config: MemberConfig,
    now: Time,
    state: State,
    round: u32,
    /// Number of the round's first segment, counted over all rounds.
    first: u64,
    segments: u32,
    elements: usize,
    spec: RoundSpec,
    /// The operands, one after the other.
    operands: Vec<u8>,
    contributes: bool,
    result: Vec<u8>,
    /// First segment without a result.
    base: u32,
    /// First segment never sent.
    next: u32,
    /// Segments from `base` on, by number modulo the window.
    flights: Vec<Flight>,
    progress: Time,
    overdue: bool,
    /// Whether the switch is to be told that the member leaves.
    leaving: bool,
    left: bool,
    lease_due: Time,
    counters: MemberCounters,
}

impl Member {
    /// A member of a group that stands. Its first lease goes out at once.
    #[must_use]
    pub fn new(now: Time, config: MemberConfig) -> Self {
        let window = usize::from(config.slots / 2).max(1);
        Self {
            now,
            state: State::Idle,
            round: 0,
            first: 0,
            segments: 0,
            elements: 0,
            spec: RoundSpec {
                collective: Collective::Barrier,
                operation: None,
                data_type: None,
                count: 0,
                ordered: false,
                root: 0,
            },
            operands: Vec::new(),
            contributes: false,
            result: Vec::new(),
            base: 0,
            next: 0,
            flights: vec![Flight::default(); window],
            progress: now,
            overdue: false,
            leaving: false,
            left: false,
            lease_due: now,
            counters: MemberCounters::default(),
            config,
        }
    }

    /// Begins the next round; gives its number. `operands` are the member's own: in an ordered round as many as its
    /// program puts out, in a Bcast those of the root's member only.
    ///
    /// # Errors
    /// When a round runs, or operands and call do not fit together; nothing has begun then.
    pub fn start(
        &mut self,
        now: Time,
        spec: &RoundSpec,
        operands: &[u8],
    ) -> Result<u32, StartError> {
        self.now = now;
        if self.state == State::Running {
            return Err(StartError::Busy { round: self.round });
        }
        let reduces = matches!(spec.collective, Collective::Allreduce | Collective::Reduce);
        let defined = match (spec.operation, spec.data_type) {
            (Some(operation), Some(data_type)) => reduces && operation.accepts(data_type),
            (None, None) => spec.count == 0,
            (None, Some(_)) => spec.collective == Collective::Bcast,
            (Some(_), None) => false,
        };
        if !defined || (spec.ordered && !reduces) {
            return Err(StartError::Call);
        }
        let bytes = spec.bytes();
        let times = if spec.ordered {
            usize::from(self.config.operands)
        } else {
            1
        };
        let is_silent = spec.collective == Collective::Bcast && operands.is_empty();
        if !is_silent && operands.len() != bytes * times {
            let (found, expected) = (operands.len(), bytes * times);
            return Err(StartError::Length { found, expected });
        }
        let size = spec.data_type.map_or(1, DataType::size);
        let elements = (usize::from(self.config.segment_bytes) / size).max(1);
        let Ok(segments) = u32::try_from(spec.count.div_ceil(elements).max(1)) else {
            return Err(StartError::TooLong { bytes });
        };
        // A member that was refused stays so: others must learn of it before anything else.
        if !matches!(self.state, State::Failed(_)) {
            self.state = State::Running;
        }
        self.first += u64::from(self.segments);
        self.round = self.round.wrapping_add(1);
        self.segments = segments;
        self.elements = elements;
        self.spec = *spec;
        self.contributes = !is_silent;
        self.operands.clear();
        self.operands.extend_from_slice(operands);
        self.result.clear();
        self.result.resize(bytes, 0);
        self.base = 0;
        self.next = 0;
        self.progress = now;
        self.overdue = false;
        Ok(self.round)
    }

    /// A UDP payload that came to the member's port. True when it was for this member.
    pub fn handle_packet(&mut self, now: Time, payload: &[u8]) -> bool {
        self.now = now;
        let taken = self.take(payload).is_some();
        self.counters.dropped += u64::from(!taken);
        taken
    }

    fn take(&mut self, payload: &[u8]) -> Option<()> {
        let (job, group) = (self.config.job, self.config.group);
        let message = verified(payload, job, group, &self.config.key)?;
        let header = message.header;
        if message.kind == Kind::Refuse {
            let reason = Reason::from_code(header.reason()).unwrap_or(Reason::Unsupported);
            self.state = State::Failed(reason);
            return Some(());
        }
        let segment = header.segment();
        if message.kind != Kind::Result
            || self.state != State::Running
            || header.round() != self.round
            || segment < self.base
            || segment >= self.next
        {
            return None;
        }
        let window = self.flights.len();
        let flight = &mut self.flights[segment as usize % window];
        if flight.done {
            return None;
        }
        let (at, length) = place(segment, self.elements, &self.spec);
        let body = match message.body {
            Body::Data(_, bytes) => bytes,
            _ => &[],
        };
        if header.collective() != self.spec.collective.code() || body.len() != length {
            self.state = State::Failed(Reason::Mismatch);
            return Some(());
        }
        self.result[at..at + length].copy_from_slice(body);
        flight.done = true;
        self.progress = self.now;
        self.overdue = false;
        while self.base < self.next && self.flights[self.base as usize % window].done {
            self.base += 1;
        }
        if self.base == self.segments {
            self.state = State::Done;
            self.counters.rounds += 1;
        }
        Some(())
    }

    /// Time has passed: repetitions, leases and a round's lateness may be due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        if self.state == State::Running && now.since(self.progress) >= self.config.give_up {
            self.overdue = true;
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due; `None` after the member has left.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.left {
            return None;
        }
        let mut due = self.lease_due;
        if self.state == State::Running {
            let window = self.flights.len();
            let flights = (self.base..self.next).map(|s| &self.flights[s as usize % window]);
            let resend = flights.filter(|f| !f.done).map(|f| f.due).min();
            due = due.min(resend.unwrap_or(Time::NEVER));
            if !self.overdue {
                due = due.min(self.progress + self.config.give_up);
            }
        }
        Some(due)
    }

    /// The next message to send: writes it to `buffer`, which has room for 56 + 8192 bytes, and gives address and length.
    pub fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
        if self.left {
            return None;
        }
        if self.leaving {
            self.left = true;
            return self.control(Kind::Kill, buffer);
        }
        if self.lease_due <= self.now {
            self.lease_due = self.now + Span(self.config.lease.0 / 3);
            return self.control(Kind::Lease, buffer);
        }
        if self.state != State::Running {
            return None;
        }
        let window = self.flights.len();
        if self.next < self.segments && (self.next - self.base) < window as u32 {
            let segment = self.next;
            self.next += 1;
            self.flights[segment as usize % window] = Flight {
                done: false,
                tries: 0,
                due: self.now + self.config.retry,
            };
            self.counters.sent += 1;
            return self.contribution(segment, false, buffer);
        }
        for segment in self.base..self.next {
            let flight = &mut self.flights[segment as usize % window];
            if !flight.done && flight.due <= self.now {
                flight.tries += 1;
                let wait = self.config.retry.0 << flight.tries.min(BACK_OFF);
                flight.due = self.now + Span(wait);
                self.counters.resent += 1;
                return self.contribution(segment, true, buffer);
            }
        }
        None
    }

    /// Nobody is late, so that something was lost: what is unanswered goes out again at once, and often.
    pub fn resend_now(&mut self, now: Time) {
        self.now = now;
        for flight in self.flights.iter_mut().filter(|flight| !flight.done) {
            flight.tries = 0;
            flight.due = now;
        }
    }

    /// How the round stands. The result stays until the next round starts.
    #[must_use]
    pub fn outcome(&self) -> Outcome<'_> {
        match self.state {
            State::Idle => Outcome::Idle,
            State::Running if self.overdue => Outcome::Overdue,
            State::Running => Outcome::Pending,
            State::Done => Outcome::Done(&self.result),
            State::Failed(reason) => Outcome::Failed(reason),
        }
    }

    /// The round that was started last; 0 before the first.
    #[must_use]
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// The switch that it sends to.
    #[must_use]
    pub const fn switch(&self) -> SocketAddrV4 {
        self.config.switch
    }

    /// The call of that round.
    #[must_use]
    pub const fn spec(&self) -> &RoundSpec {
        &self.spec
    }

    /// What happened.
    #[must_use]
    pub const fn counters(&self) -> MemberCounters {
        self.counters
    }

    /// Whether a message is for this group.
    #[must_use]
    pub fn is_of(&self, message: &Unverified<'_>) -> bool {
        (message.job(), message.group()) == (self.config.job, self.config.group)
    }

    /// The communicator is freed, or offload is over: the switch is told, and nothing is sent after that.
    pub fn leave(&mut self) {
        self.leaving = true;
    }

    fn control(&self, kind: Kind, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
        let header = Header {
            group: self.config.group,
            rank: self.config.member,
            ..Header::of(kind, self.config.job)
        };
        let length = header.seal_message(buffer, 0, &self.config.key).ok()?;
        Some((self.config.switch, length))
    }

    fn contribution(
        &self,
        segment: u32,
        resent: bool,
        buffer: &mut [u8],
    ) -> Option<(SocketAddrV4, usize)> {
        let (at, length) = place(segment, self.elements, &self.spec);
        let mut end = Header::SIZE;
        if self.contributes && length > 0 {
            for operand in self.operands.chunks_exact(self.result.len()) {
                let room = buffer.get_mut(end..end + length)?;
                room.copy_from_slice(&operand[at..at + length]);
                end += length;
            }
        }
        let body = end - Header::SIZE;
        // In a Bcast only the root's member describes the elements.
        let data_type = self.spec.data_type.filter(|_| self.contributes);
        let count = data_type.map_or(0, |data_type| body / data_type.size());
        let header = Header {
            resent,
            ordered: self.spec.ordered,
            group: self.config.group,
            round: self.round,
            segment,
            segments: self.segments,
            rank: self.config.member,
            root: self.spec.root,
            collective: self.spec.collective.code(),
            operation: self.spec.operation.map_or(0, Operation::code),
            data_type: data_type.map_or(0, DataType::code),
            count: u16::try_from(count).ok()?,
            slot: ((self.first + u64::from(segment)) % u64::from(self.config.slots.max(2))) as u16,
            ..Header::of(Kind::Contribution, self.config.job)
        };
        let length = header.seal_message(buffer, body, &self.config.key).ok()?;
        Some((self.config.switch, length))
    }
}

/// Where a segment's part of an operand begins, and its length, in bytes.
fn place(segment: u32, elements: usize, spec: &RoundSpec) -> (usize, usize) {
    let size = spec.data_type.map_or(0, DataType::size);
    let first = segment as usize * elements;
    (first * size, elements.min(spec.count - first) * size)
}
