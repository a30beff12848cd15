//! Two nodes and the rails between them: greeting, what is sent next, what came, silence.

use std::collections::VecDeque;

use raddle_units::{Span, Time};
use raddle_wire::{
    Problem,
    rails::{Ack, Body, Hello, Packet, Unverified},
};

use super::{
    config::{Config, ConfigError},
    dropped::{Counters, Dropped},
    event::{Event, Failure, SendFailure},
    inbox::{Inbox, Placement, PortError, Taken},
    outbox::{Outbox, SendError},
    policy::{Choice, Policy, RailSet, Segmentation, one_in_turn, rails_of},
    rail::{Change, Numbered, Rail, RailStatus},
    received::Arrival,
    sent::{Content, Piece},
    split::{self, MAX_RAILS, Path},
    state::{Knowledge, PeerState},
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

/// What a rail is like, for a program to look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RailView {
    /// Whether it works.
    pub status: RailStatus,
    /// Bit/s that congestion control allows; 0 while it is down.
    pub rate: u64,
    /// Mean round-trip time; 0 while it is not known.
    pub rtt: Span,
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

    /// A datagram that came by `rail`. Gives where its payload belongs, if it has a new one.
    ///
    /// # Errors
    /// Why it was dropped; that is counted.
    pub fn handle_datagram<'a>(
        &mut self,
        now: Time,
        rail: usize,
        bytes: &'a [u8],
        marked: bool,
    ) -> Result<Option<(Placement, &'a [u8])>, Dropped> {
        let verified = Unverified::parse(bytes).and_then(|packet| packet.verify(&self.config.key));
        match verified {
            Ok((packet, payload)) => {
                let placement = self.handle_packet(now, rail, &packet, marked)?;
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

    /// A packet that is known to be genuine. `marked`: it carries a congestion mark. Gives where its payload belongs, if it has
    /// a new one; the driver copies it there before it looks at events.
    ///
    /// # Errors
    /// Why it was dropped; that is counted.
    pub fn handle_packet(
        &mut self,
        now: Time,
        rail: usize,
        packet: &Packet,
        marked: bool,
    ) -> Result<Option<Placement>, Dropped> {
        self.now = self.now.max(now);
        let accepted = self.accept(rail, packet, marked);
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
            let alone = self.working() & !(1 << index) == 0;
            let rail = &mut self.rails[index];
            let change = rail.on_timeout(self.now, &self.config, alone, &mut self.lost);
            self.settle(index, change);
        }
        let silence = self.now.since(self.proved);
        if silence >= self.config.give_up {
            self.fail(Failure::AllRailsDown { silence });
        }
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
        let candidates = self.candidates();
        for (index, rail) in self.rails.iter().enumerate() {
            due = due.min(rail.due(&self.config));
            let has_work = !rail.assigned.is_empty()
                || (candidates >> index & 1 == 1 && self.outbox.has_work());
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
        let count = self.rails.len();
        for step in 0..count {
            let index = (self.first + step) % count;
            let transmit = self
                .control_packet(index)
                .or_else(|| self.data_packet(index));
            if transmit.is_some() {
                self.first = (index + 1) % count;
                return transmit;
            }
        }
        None
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

    /// The rails, in order.
    pub fn rails(&self) -> impl Iterator<Item = RailView> {
        self.rails.iter().map(|rail| RailView {
            status: rail.status(),
            rate: rail.rate().0,
            rtt: rail.rtt().smoothed(),
            in_flight: rail.in_flight(),
            sent: rail.bytes_sent(),
        })
    }

    // Packets that come.

    fn accept(
        &mut self,
        index: usize,
        packet: &Packet,
        marked: bool,
    ) -> Result<Option<Placement>, Dropped> {
        if self.failure.is_some() {
            return Err(Dropped::Closed);
        }
        let Config {
            job,
            local,
            peer,
            epoch,
            ..
        } = self.config;
        if (packet.job, packet.source, packet.target) != (job, peer, local) {
            return Err(Dropped::Stranger);
        }
        if usize::from(packet.rail) != index || index >= self.rails.len() {
            return Err(Dropped::WrongRail);
        }
        if let Body::Hello(hello) = &packet.body {
            self.greet(index, packet, hello);
            return Ok(None);
        }
        if packet.target_epoch != epoch {
            return Err(Dropped::OldEpoch);
        }
        let peer = self.peer.ok_or(Dropped::Early)?;
        if packet.source_epoch != peer.epoch {
            return Err(Dropped::OldEpoch);
        }
        if let Body::Ack(ack) = &packet.body {
            self.on_ack(index, ack)?;
            self.state.hear(self.now, packet.busy);
            return Ok(None);
        }
        let arrival = self.rails[index].judge(packet.number);
        if arrival == Arrival::Again {
            return Err(Dropped::Replayed);
        }
        let placement = self.take_body(packet, peer)?;
        self.state.hear(self.now, packet.busy);
        let numbered = Numbered {
            number: packet.number,
            arrival,
            urgent: packet.urgent,
            marked,
            has_segment: matches!(packet.body, Body::Data(_)),
        };
        self.rails[index].take(self.now, &numbered, &self.config);
        Ok(placement)
    }

    /// Takes what a numbered packet carries.
    fn take_body(&mut self, packet: &Packet, peer: Peer) -> Result<Option<Placement>, Dropped> {
        match &packet.body {
            Body::Data(segment) => {
                match self.inbox.take(segment, peer.segment, &mut self.events)? {
                    Taken::New(placement) => {
                        self.counters.placed_bytes += u64::from(placement.bytes);
                        return Ok(Some(placement));
                    }
                    Taken::Duplicate => self.counters.duplicates += 1,
                }
            }
            Body::Grant(grant) => self.outbox.on_grant(grant),
            Body::Probe | Body::Hello(_) | Body::Ack(_) => {}
        }
        Ok(None)
    }

    /// The other node says who it is. That it knows our epoch proves that the hello is not an old one.
    fn greet(&mut self, index: usize, packet: &Packet, hello: &Hello) {
        let epoch = packet.source_epoch;
        let is_fresh = packet.target_epoch == self.config.epoch;
        if is_fresh && self.peer.is_some_and(|peer| peer.epoch != epoch) {
            self.fail(Failure::PeerRestarted);
            return;
        }
        self.greeted = epoch;
        if is_fresh && self.peer.is_none() && !hello.occupied {
            self.peer = Some(Peer {
                epoch,
                segment: hello.segment.into(),
            });
            self.events.push_back(Event::Established);
            for rail in &mut self.rails {
                rail.begin(self.now, &self.config);
            }
        }
        if !(is_fresh && hello.established) {
            self.rails[index].hello = true;
        }
    }

    fn on_ack(&mut self, index: usize, ack: &Ack) -> Result<(), Dropped> {
        let rail = &mut self.rails[index];
        let (arrived, lost) = (&mut self.arrived, &mut self.lost);
        let change = rail.on_ack(self.now, ack, &self.config, arrived, lost);
        let change = change.map_err(|_| Dropped::BadAck)?;
        if !self.arrived.is_empty() {
            self.proved = self.now;
        }
        for content in self.arrived.drain(..) {
            match content {
                Content::Piece(piece) => self.outbox.on_arrived(piece, &mut self.events),
                Content::Probe => self.state.answer(),
                Content::Grant { .. } => {}
            }
        }
        self.settle(index, change);
        Ok(())
    }

    /// Hands on what a rail lost, and tells what became of it.
    fn settle(&mut self, rail: usize, change: Change) {
        for content in self.lost.drain(..) {
            match content {
                Content::Piece(piece) => {
                    self.counters.resent +=
                        piece.bytes().div_ceil(self.config.segment.into()).max(1);
                    self.outbox.requeue(piece);
                }
                Content::Grant { port } => self.inbox.on_grant_lost(port),
                Content::Probe => {}
            }
        }
        match change {
            Change::None => {}
            Change::Rose => self.events.push_back(Event::RailUp { rail }),
            Change::Fell => self.events.push_back(Event::RailDown { rail }),
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
        self.outbox
            .fail(SendFailure::Connection(failure), &mut self.events);
        self.inbox.fail(&mut self.events);
        self.events.push_back(Event::Failed(failure));
    }

    // Packets that go.

    /// What goes before data on a rail, whatever congestion control says.
    fn control_packet(&mut self, index: usize) -> Option<Transmit> {
        let rail = &mut self.rails[index];
        if std::mem::take(&mut rail.hello) {
            let hello = Hello {
                segment: self.config.segment,
                rails: self.config.rails.len() as u8,
                reserved: 0,
                occupied: self.peer.is_some_and(|peer| peer.epoch != self.greeted),
                established: self.peer.is_some_and(|peer| peer.epoch == self.greeted),
            };
            let mut transmit = self.packet(index, Body::Hello(hello));
            transmit.packet.target_epoch = self.greeted;
            return Some(transmit);
        }
        self.peer?;
        if let Some(ack) = rail.take_ack(self.now) {
            return Some(self.packet(index, Body::Ack(ack)));
        }
        if std::mem::take(&mut rail.probe) {
            return Some(self.numbered(index, Body::Probe, Content::Probe, true));
        }
        if rail.status() != RailStatus::Up {
            return None;
        }
        let (port, grant) = self.inbox.take_grant()?;
        Some(self.numbered(index, Body::Grant(grant), Content::Grant { port }, false))
    }

    fn data_packet(&mut self, index: usize) -> Option<Transmit> {
        if !self.rails[index].may_send(self.now, self.config.datagram()) {
            return None;
        }
        let piece = self.next_piece(index)?;
        let described = self.outbox.describe(piece);
        self.counters.segments += 1;
        self.counters.segment_bytes += piece.bytes();
        let body = Body::Data(described.segment);
        let mut transmit = self.numbered(index, body, Content::Piece(piece), described.is_last);
        // A sender that must wait now would wait for the receiver's patience as well.
        transmit.packet.urgent |= !self.rails[index].has_room(self.config.datagram());
        transmit.payload = Payload {
            token: described.token,
            offset: piece.offset,
            bytes: described.segment.payload,
        };
        Some(transmit)
    }

    fn packet(&self, index: usize, body: Body) -> Transmit {
        let packet = Packet {
            job: self.config.job,
            source: self.config.local,
            target: self.config.peer,
            source_epoch: self.config.epoch,
            target_epoch: self.peer.map_or(0, |peer| peer.epoch),
            rail: index as u8,
            busy: self.busy(),
            ..Packet::of(body)
        };
        Transmit {
            rail: index,
            packet,
            payload: Payload::default(),
        }
    }

    fn numbered(&mut self, index: usize, body: Body, content: Content, urgent: bool) -> Transmit {
        let mut transmit = self.packet(index, body);
        let bytes = transmit.packet.length();
        transmit.packet.number = self.rails[index].send(self.now, &self.config, bytes, content);
        transmit.packet.urgent = urgent;
        transmit
    }

    // Which rail takes what.

    /// Rails of which `holds` says yes.
    fn rails_that(&self, holds: impl Fn(&Rail) -> bool) -> RailSet {
        let bits = self.rails.iter().enumerate();
        bits.fold(0, |set, (index, rail)| {
            set | RailSet::from(holds(rail)) << index
        })
    }

    fn working(&self) -> RailSet {
        self.rails_that(|rail| rail.status() == RailStatus::Up)
    }

    fn busy(&self) -> RailSet {
        self.rails_that(|rail| rail.is_busy(self.now))
    }

    /// Rails on which data may be sent.
    fn candidates(&self) -> RailSet {
        self.config.policy.candidates(self.working())
    }

    /// One segment for a rail that may send.
    fn next_piece(&mut self, index: usize) -> Option<Piece> {
        if self.config.segmentation == Segmentation::WaterFill
            && self.config.policy != Policy::Static
        {
            let takes = self.outbox.has_work() && self.has_share(index);
            return takes
                .then(|| self.outbox.take_segment(&mut self.events))
                .flatten();
        }
        // A piece stays with its rail, also if the policy would choose others by now.
        let is_candidate = self.candidates() >> index & 1 == 1;
        if is_candidate && let Some(piece) = self.outbox.take_again() {
            return Some(piece);
        }
        while is_candidate && self.rails[index].assigned.is_empty() {
            self.assign()?;
        }
        let segment = u64::from(self.config.segment);
        let front = self.rails[index].assigned.front_mut()?;
        let piece = Piece {
            end: front.end.min(front.offset + segment),
            ..*front
        };
        front.offset = piece.end;
        if front.offset == front.end {
            self.rails[index].assigned.pop_front();
        }
        Some(piece)
    }

    /// Whether the best split of what is unsent gives this rail anything.
    fn has_share(&self, index: usize) -> bool {
        let candidates = self.candidates();
        if candidates & !(1 << index) == 0 {
            return candidates != 0;
        }
        let mut paths = [Path::default(); MAX_RAILS];
        for rail in rails_of(candidates) {
            paths[rail] = self.rails[rail].path();
        }
        let unsent = self.outbox.unsent().max(1);
        let paths = &paths[..self.rails.len()];
        split::has_share(index, unsent, self.config.segment.into(), paths)
    }

    /// Binds the next message to rails. `None`: there is none, or it waits for the other node's state.
    fn assign(&mut self) -> Option<()> {
        let (source_port, length) = self.outbox.next_message(&mut self.events)?;
        let Config {
            stale, ask, policy, ..
        } = self.config;
        let (busy, asks) = match policy {
            Policy::Static => (0, false),
            _ => match self.state.consult(self.now, stale, ask) {
                Knowledge::Known { busy, ask } => (busy, ask),
                Knowledge::Unknown { ask } => {
                    self.ask(ask);
                    return None;
                }
            },
        };
        self.ask(asks);
        let choice = Choice {
            count: self.rails.len(),
            working: self.working(),
            busy: busy | self.busy(),
        };
        let mut chosen = policy.choose(choice, source_port, &mut self.turn);
        if length <= self.config.short.0 {
            chosen = one_in_turn(chosen, &mut self.turn);
        }
        if chosen == 0 {
            return None;
        }
        let whole = self.outbox.take_message(&mut self.events)?;
        self.bind(whole, chosen);
        Some(())
    }

    /// Asks for the other node's state: a probe that is answered at once.
    fn ask(&mut self, asks: bool) {
        let working = self.working();
        if asks && let Some(index) = rails_of(working).next() {
            self.rails[index].probe = true;
        }
    }

    /// Cuts a message into a piece for each of the chosen rails.
    fn bind(&mut self, whole: Piece, chosen: RailSet) {
        let count = chosen.count_ones() as usize;
        let shares = split::equal(whole.bytes(), self.config.segment.into(), count);
        let mut offset = whole.offset;
        for (place, (rail, share)) in rails_of(chosen).zip(shares).enumerate() {
            // A message without bytes is one empty piece.
            if share > 0 || (place == 0 && whole.bytes() == 0) {
                let piece = Piece {
                    offset,
                    end: offset + share,
                    ..whole
                };
                self.rails[rail].assigned.push_back(piece);
                offset += share;
            }
        }
    }
}
