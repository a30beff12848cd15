//! One member's attempt to have a group: its part of set-up, and as soon as that is done, its endpoint, which keeps the
//! group's lease until all ranks have agreed that every member is ready.

use core::net::SocketAddrV4;

use raddle_units::{Span, Time};
use raddle_wire::native::{JobKey, Kind, Reason, Terms, Unverified};

use super::{
    Agreement, MasterConfig, MasterSetup, MemberPlace, MemberSetup, MemberSetupConfig,
    SetupOutcome, member_program,
};
use crate::{endpoint::Endpoint, member::MemberConfig, order::Expression, recovery::RecoveryState};

/// What a member knows about the group that it wants.
#[derive(Debug, Clone)]
pub struct AttemptConfig {
    /// The job.
    pub job: u32,
    /// Its key.
    pub key: JobKey,
    /// The group: a number that no other one of the job had, also none before it.
    pub group: u32,
    /// The member's number; 0 is the master.
    pub member: u32,
    /// All members by number: ports at which they expect results, and their ranks.
    pub places: Vec<MemberPlace>,
    /// All members by number: ports for messages from host to host.
    pub peers: Vec<SocketAddrV4>,
    /// What the member supports and asks for.
    pub terms: Terms,
    /// What ordered rounds compute; `None`: there are none.
    pub expression: Option<Expression>,
    /// Multicast address and port for results of switches; `None`: they send to each child.
    pub results: Option<SocketAddrV4>,
    /// Most bytes of a UDP payload that the network carries whole.
    pub datagram: usize,
    /// Time until a message of set-up is sent again; it doubles with each repetition, up to 16 times.
    pub set_up_retry: Span,
    /// Time after which there is no group.
    pub set_up_give_up: Span,
    /// As [`MemberConfig::retry`], once the group stands.
    pub retry: Span,
    /// As [`MemberConfig::give_up`], once the group stands.
    pub give_up: Span,
}

#[derive(Debug)]
enum Part {
    Master(Box<MasterSetup>),
    Member(Box<MemberSetup>),
}

/// One member's attempt.
#[derive(Debug)]
pub struct Attempt {
    config: AttemptConfig,
    part: Part,
    /// The member is ready.
    endpoint: Option<Box<Endpoint>>,
    cancelled: Option<Reason>,
}

impl Attempt {
    /// Begins.
    #[must_use]
    pub fn new(now: Time, config: AttemptConfig) -> Self {
        let master = config.places.first();
        let part = match master {
            Some(master) if config.member > 0 => Part::Member(Box::new(MemberSetup::new(
                now,
                MemberSetupConfig {
                    job: config.job,
                    key: config.key,
                    group: config.group,
                    member: config.member,
                    master: master.address,
                    terms: config.terms,
                    retry: config.set_up_retry,
                    give_up: config.set_up_give_up,
                },
            ))),
            _ => Part::Master(Box::new(MasterSetup::new(
                now,
                MasterConfig {
                    job: config.job,
                    key: config.key,
                    group: config.group,
                    members: config.places.clone(),
                    terms: config.terms,
                    expression: config.expression.clone(),
                    results: config.results,
                    datagram: config.datagram,
                    retry: config.set_up_retry,
                    give_up: config.set_up_give_up,
                },
            ))),
        };
        Self {
            config,
            part,
            endpoint: None,
            cancelled: None,
        }
    }

    /// A UDP payload that came to one of the member's ports. True when it was for this group.
    pub fn handle_packet(&mut self, now: Time, from: SocketAddrV4, payload: &[u8]) -> bool {
        let kind = Unverified::parse(payload, 0).map(|message| message.kind());
        let of_set_up = matches!(kind, Ok(Kind::Query | Kind::Notify | Kind::Lease));
        let taken = match (&mut self.endpoint, &mut self.part) {
            // A master answers queries until all are ready: a Notify may be lost.
            (Some(endpoint), _) if !of_set_up => endpoint.handle_packet(now, payload),
            (_, Part::Master(set_up)) => set_up.handle_packet(now, from, payload),
            (_, Part::Member(set_up)) => set_up.handle_packet(now, payload),
        };
        self.look(now);
        taken
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        match &mut self.part {
            Part::Master(set_up) => set_up.handle_timeout(now),
            Part::Member(set_up) => set_up.handle_timeout(now),
        }
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.handle_timeout(now);
        }
        self.look(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let set_up = match &self.part {
            Part::Master(set_up) => set_up.poll_timeout(),
            Part::Member(set_up) => set_up.poll_timeout(),
        };
        let endpoint = self.endpoint.as_ref();
        let endpoint = endpoint.and_then(|endpoint| endpoint.poll_timeout());
        set_up.into_iter().chain(endpoint).min()
    }

    /// The next message to send: writes it to `buffer`, which has room for 56 + 8192 bytes, and gives address and length.
    pub fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
        let message = match &mut self.part {
            Part::Master(set_up) => set_up.poll_transmit(buffer),
            Part::Member(set_up) => set_up.poll_transmit(buffer),
        };
        message.or_else(|| self.endpoint.as_mut()?.poll_transmit(buffer))
    }

    /// How the attempt stands. One that was ready fails when a switch has forgotten the group meanwhile, or another member
    /// has left it.
    #[must_use]
    pub fn outcome(&self) -> SetupOutcome {
        if let Some(reason) = self.cancelled {
            return SetupOutcome::Failed(reason);
        }
        match self.endpoint.as_ref().map(|endpoint| endpoint.state()) {
            None | Some(RecoveryState::Running) => self.part_outcome(),
            Some(RecoveryState::Frozen(reason) | RecoveryState::Agreed { reason, .. }) => {
                SetupOutcome::Failed(reason)
            }
        }
    }

    const fn part_outcome(&self) -> SetupOutcome {
        match &self.part {
            Part::Master(set_up) => set_up.outcome(),
            Part::Member(set_up) => set_up.outcome(),
        }
    }

    /// There shall be no group: switches that have it already are told, and need not wait for its lease to end. What there
    /// is to send has to be sent.
    pub fn cancel(&mut self, reason: Reason) {
        self.cancelled = Some(reason);
        if let Part::Master(set_up) = &mut self.part {
            set_up.cancel(reason);
        }
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.leave();
        }
    }

    /// All members are ready: what goes on from here. `None` if this one is not.
    #[must_use]
    pub fn into_endpoint(self) -> Option<(Agreement, Endpoint)> {
        match (self.part_outcome(), self.endpoint) {
            (SetupOutcome::Ready(agreement), Some(endpoint)) => Some((agreement, *endpoint)),
            _ => None,
        }
    }

    /// Becomes a member of the group once it stands.
    fn look(&mut self, now: Time) {
        let (SetupOutcome::Ready(agreement), None, None) =
            (self.part_outcome(), &self.endpoint, self.cancelled)
        else {
            return;
        };
        let config = &self.config;
        let own = config.places.get(config.member as usize);
        let operands = match (&config.expression, own) {
            (Some(expression), Some(own)) => member_program(expression, &own.ranks),
            _ => None,
        }
        .map_or(1, |program| program.outputs.len());
        let member = MemberConfig {
            job: config.job,
            key: config.key,
            group: config.group,
            member: config.member,
            switch: agreement.switch,
            slots: agreement.slots,
            segment_bytes: agreement.segment_bytes,
            // A master refuses what does not fit.
            operands: u16::try_from(operands).unwrap_or(u16::MAX),
            lease: agreement.lease,
            retry: config.retry,
            give_up: config.give_up,
        };
        let endpoint = Endpoint::new(now, member, config.peers.clone());
        self.endpoint = Some(Box::new(endpoint));
    }
}
