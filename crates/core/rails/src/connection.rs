//! Two nodes and the rails between them: what the program and the driver call. What comes and what goes is in two files below.

mod arrivals;
mod departures;

use std::collections::VecDeque;

use raddle_units::{Bytes, Span, Time};
use raddle_wire::{
    Problem,
    rails::{Packet, Unverified},
};

use super::{
    config::{Config, ConfigError},
    dropped::{Counters, Dropped},
    event::{Event, Failure, SendError},
    inbox::{Inbox, Placement, PortError},
    outbox::Outbox,
    rail::{Rail, RailStatus},
    sent::Content,
    split::MAX_RAILS,
    state::PeerState,
};

/// A packet to send, and the bytes that belong into it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// The rail to send it on.
    pub rail: usize,
    /// The packet.
    pub packet: Packet,
    /// Of a data packet: where its payload is.
    pub payload: Payload,
}

/// Bytes of a registered send buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Payload {
    /// The token of the send.
    pub token: u64,
    /// Byte of the message.
    pub offset: u64,
    /// Bytes; 0 in packets without payload.
    pub bytes: u16,
}

/// How a packet came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reception {
    /// How long it waited in this host before the driver read it; zero where the driver cannot tell.
    pub held: Span,
    /// It carries a congestion mark (ECN).
    pub marked: bool,
}

/// What the other connections of this host tell, whichever process has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OtherConnections {
    /// Bytes that they have in flight by each rail, whose card they share.
    pub in_flight: [Bytes; MAX_RAILS],
    /// The longest [`Connection::lateness`] of all, this one included.
    pub lateness: Span,
    /// The least round-trip time that those with the same node found on each rail; 0 where there is none.
    pub least_rtt: [Span; MAX_RAILS],
}

/// What a rail is like, for a program to look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RailView {
    /// Whether it works.
    pub status: RailStatus,
    /// Bit/s that congestion control allows; 0 while it is down.
    pub rate: u64,
    /// Mean round-trip time; 0 while it is not known.
    pub rtt: Span,
    /// The least one that it, or another connection of this host, found; 0 while none is known.
    pub least_rtt: Span,
    /// Bytes of packets that wait for their acknowledgement.
    pub in_flight: u64,
    /// Bytes of numbered packets sent.
    pub sent: u64,
}

/// The other node, once it is known.
#[derive(Clone, Copy, Debug)]
struct Peer {
    epoch: u32,
    /// Bytes of its segments.
    segment: u64,
}

/// One connection. See the module's documentation for how it is driven.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    now: Time,
    rails: Vec<Rail>,
    outbox: Outbox,
    inbox: Inbox,
    peer: Option<Peer>,
    /// Epoch of the other node as its last hello says: what hellos answer to.
    greeted: u32,
    hello_at: Time,
    state: PeerState,
    failure: Option<Failure>,
    /// When a packet was acknowledged last on any rail, or the connection was made.
    proved: Time,
    /// Rail that is asked first for something to send.
    first: usize,
    /// Rail that was taken in turn last.
    turn: usize,
    /// Rail by which the last segment came.
    heard_on: usize,
    events: VecDeque<Event>,
    counters: Counters,
    arrived: Vec<Content>,
    lost: Vec<Content>,
}

impl Connection {
    /// A connection that begins to greet.
    ///
    /// # Errors
    /// When the configuration contradicts itself, or the congestion control needs what the driver does not give.
    pub fn new(now: Time, config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            now,
            rails: (0..config.rails.len())
                .map(|index| Rail::new(index, now))
                .collect(),
            outbox: Outbox::new(config.segment, config.send_queue),
            inbox: Inbox::default(),
            peer: None,
            greeted: 0,
            hello_at: now + config.heartbeat,
            state: PeerState::default(),
            failure: None,
            proved: now,
            first: 0,
            turn: MAX_RAILS - 1,
            heard_on: 0,
            events: VecDeque::new(),
            counters: Counters::default(),
            arrived: Vec::new(),
            lost: Vec::new(),
            config,
        })
    }

    // What the program does.

    /// Opens a port of this node: every buffer provided for it has room for `longest` bytes.
    ///
    /// # Errors
    /// When it is open, or 64 are.
    pub fn open_port(&mut self, port: u16, longest: u64) -> Result<(), PortError> {
        self.inbox.open(port, longest)
    }

    /// Provides a receive buffer: a token of the program's, given back with the message that fills it.
    ///
    /// # Errors
    /// When the port is not open.
    pub fn provide(&mut self, port: u16, token: u64) -> Result<(), PortError> {
        self.inbox.provide(port, token)
    }

    /// Sends a message of `length` bytes, which stay in their buffer until [`Event::Sent`] or [`Event::SendFailed`] gives
    /// `token` back. It waits until the target port is open and grants it.
    ///
    /// # Errors
    /// When no send token is left, the target port is known to take no message as long, or the connection has failed.
    pub fn send(
        &mut self,
        source_port: u16,
        target_port: u16,
        length: u64,
        token: u64,
    ) -> Result<(), SendError> {
        match self.failure {
            Some(_) => Err(SendError::Closed),
            None => self.outbox.send(source_port, target_port, length, token),
        }
    }

    // What the driver does.

    /// What the other connections of this host tell now. A rail's card is as busy with their packets as with its own (`MNC`,
    /// section 3). All allow for the same lateness, that of the latest: who allows for more has the larger share of a link.
    pub fn note_others(&mut self, others: &OtherConnections) {
        let told = others.in_flight.into_iter().zip(others.least_rtt);
        for (rail, (in_flight, least_rtt)) in self.rails.iter_mut().zip(told) {
            rail.note_others(in_flight, others.lateness, least_rtt);
        }
    }

    /// A datagram that came by `rail` and was read at `now`. Gives where its payload belongs, if it has a new one.
    ///
    /// # Errors
    /// [`Dropped`] says why it was dropped. It is counted.
    pub fn handle_datagram<'a>(
        &mut self,
        now: Time,
        rail: usize,
        bytes: &'a [u8],
        how: Reception,
    ) -> Result<Option<(Placement, &'a [u8])>, Dropped> {
        let verified = Unverified::parse(bytes).and_then(|packet| packet.verify(&self.config.key));
        match verified {
            Ok((packet, payload)) => {
                let placement = self.handle_packet(now, rail, &packet, how)?;
                Ok(placement.map(|placement| (placement, payload)))
            }
            Err(error) => {
                let reason = match error.problem {
                    Problem::Tag { .. } => Dropped::Forged,
                    _ => Dropped::Truncated,
                };
                self.counters.drop(reason);
                Err(reason)
            }
        }
    }

    /// A packet that is known to be genuine. Gives where its payload belongs, if it has a new one; the driver copies it there
    /// before it looks at events.
    ///
    /// # Errors
    /// [`Dropped`] says why it was dropped. It is counted.
    pub fn handle_packet(
        &mut self,
        now: Time,
        rail: usize,
        packet: &Packet,
        how: Reception,
    ) -> Result<Option<Placement>, Dropped> {
        self.now = self.now.max(now);
        let accepted = self.accept(rail, packet, how);
        match &accepted {
            Ok(_) => self.counters.taken += 1,
            Err(reason) => self.counters.drop(*reason),
        }
        accepted
    }

    /// Time has passed. Packets that have come are to be handled before.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = self.now.max(now);
        if self.failure.is_some() {
            return;
        }
        if self.peer.is_none() && self.hello_at <= self.now {
            self.hello_at = self.now + self.config.heartbeat;
            self.rails.iter_mut().for_each(|rail| rail.hello = true);
        }
        for index in 0..self.rails.len() {
            if self.rails[index].due(&self.config) > self.now {
                continue;
            }
            let lately = Time(self.now.0.saturating_sub(self.config.short_silence().0));
            let answers = |rail: &Rail| rail.index() != index && rail.answers_since(lately);
            let alone = !self.rails.iter().any(answers);
            let rail = &mut self.rails[index];
            let change = rail.on_timeout(self.now, &self.config, alone, &mut self.lost);
            self.settle(index, change);
        }
        let silence = self.now.since(self.proved);
        if silence >= self.config.give_up {
            self.fail(Failure::AllRailsDown { silence });
        }
    }

    /// The driver paused for `away` until `now`: it did not look, or had no message under way. That time does not count as
    /// silence of the other node.
    pub fn note_pause(&mut self, now: Time, away: Span) {
        self.now = self.now.max(now);
        self.proved = (self.proved + away).min(self.now);
        self.rails.iter_mut().for_each(|rail| rail.wake(now));
    }

    /// When [`Self::handle_timeout`] is due, or [`Self::poll_transmit`] has something that the pace held back.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.failure.is_some() {
            return None;
        }
        let mut due = self.proved + self.config.give_up;
        if self.peer.is_none() {
            due = due.min(self.hello_at);
        }
        let for_any = if self.outbox.has_work() {
            self.candidates()
        } else {
            0
        };
        for (index, rail) in self.rails.iter().enumerate() {
            due = due.min(rail.due(&self.config));
            let has_work = for_any >> index & 1 == 1 || !rail.assigned.is_empty();
            if has_work && let Some(paced) = rail.paced_until(self.now, self.config.datagram()) {
                due = due.min(paced);
            }
        }
        Some(due)
    }

    /// The next packet to send. To be called until it gives nothing, after every other call.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        self.now = self.now.max(now);
        if self.failure.is_some() {
            return None;
        }
        let (count, mut takers) = (self.rails.len(), None);
        for index in (self.first..count).chain(0..self.first) {
            let transmit = self
                .control_packet(index)
                .or_else(|| self.data_packet(index, &mut takers));
            if transmit.is_some() {
                self.first = if index + 1 == count { 0 } else { index + 1 };
                return transmit;
            }
        }
        self.question()
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether there are events.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    // What can be looked at.

    /// What it was told.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Why it failed, if it did.
    #[must_use]
    pub const fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Messages of this node that have not arrived.
    #[must_use]
    pub fn sending(&self) -> usize {
        self.outbox.len()
    }

    /// Messages of the other node that have begun and are not delivered.
    #[must_use]
    pub fn receiving(&self) -> usize {
        self.inbox.begun()
    }

    /// How long the hosts at both ends let a packet and its acknowledgement wait lately, at most.
    #[must_use]
    pub fn lateness(&self) -> Span {
        let waits = self.rails.iter().map(Rail::lateness);
        waits.max().unwrap_or(Span::ZERO)
    }

    /// The rails, in order.
    pub fn rails(&self) -> impl Iterator<Item = RailView> {
        self.rails.iter().map(|rail| RailView {
            status: rail.status(),
            rate: rail.rate().0,
            rtt: rail.rtt().smoothed(),
            least_rtt: rail.rtt().least(),
            in_flight: rail.in_flight(),
            sent: rail.bytes_sent(),
        })
    }
}
