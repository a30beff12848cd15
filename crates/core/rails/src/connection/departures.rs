//! Packets that go, and which rail takes what.

use raddle_wire::rails::{Body, Hello, Packet};

use super::{Connection, Payload, Transmit};
use crate::{
    config::Config,
    policy::{Choice, Policy, Segmentation},
    rail::{Rail, RailStatus},
    rail_set::{RailSet, rails_of},
    sent::{Content, Piece},
    split::{self, MAX_RAILS, Path},
    state::PeerKnowledge,
};

impl Connection {
    /// What goes before data on a rail, whatever congestion control says.
    pub(super) fn control_packet(&mut self, index: usize) -> Option<Transmit> {
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
        if let Some(probe) = self.probe(index) {
            return Some(probe);
        }
        // By the rail that a short message would take: most often one goes with it, and the two are acknowledged together.
        if !self.inbox.grant_is_due() || self.takers(1) >> index & 1 == 0 {
            return None;
        }
        let (port, grant) = self.inbox.take_grant()?;
        Some(self.numbered(index, Body::Grant(grant), Content::Grant { port }, false))
    }

    /// What a message asks that must know the other node's state, by a rail that may have had its turn.
    pub(super) fn question(&mut self) -> Option<Transmit> {
        let asked = self.rails.iter().position(|rail| rail.probe)?;
        self.probe(asked)
    }

    fn probe(&mut self, index: usize) -> Option<Transmit> {
        let is_due = std::mem::take(&mut self.rails[index].probe);
        is_due.then(|| self.numbered(index, Body::Probe, Content::Probe, true))
    }

    /// Data for a rail. `takers`: the rails that the best split of what is unsent gives anything, found when first asked for.
    pub(super) fn data_packet(
        &mut self,
        index: usize,
        takers: &mut Option<RailSet>,
    ) -> Option<Transmit> {
        let rail = &self.rails[index];
        let has_work = self.outbox.has_work() || !rail.assigned.is_empty();
        let is_left_out = takers.is_some_and(|takers| takers >> index & 1 == 0);
        if !has_work || is_left_out || !rail.may_send(self.now, self.config.datagram()) {
            return None;
        }
        let piece = self.next_piece(index, takers)?;
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
        transmit.packet.number = self.rails[index].send(self.now, bytes, content);
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

    pub(super) fn working(&self) -> RailSet {
        self.rails_that(|rail| rail.status() == RailStatus::Up)
    }

    fn busy(&self) -> RailSet {
        self.rails_that(|rail| rail.is_busy(self.now))
    }

    /// Rails on which data may be sent.
    pub(super) fn candidates(&self) -> RailSet {
        self.config.policy.candidates(self.working())
    }

    /// One segment for a rail that may send.
    fn next_piece(&mut self, index: usize, takers: &mut Option<RailSet>) -> Option<Piece> {
        if self.config.segmentation == Segmentation::WaterFill
            && self.config.policy != Policy::Static
        {
            let takers = takers.get_or_insert_with(|| self.takers(self.outbox.unsent().max(1)));
            let takes = *takers >> index & 1 == 1;
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

    /// The rails that the best split of `bytes`, at least 1, gives anything.
    fn takers(&self, bytes: u64) -> RailSet {
        let candidates = self.candidates();
        if candidates.count_ones() < 2 {
            return candidates;
        }
        let mut paths = [Path::default(); MAX_RAILS];
        for rail in rails_of(candidates) {
            paths[rail] = self.rails[rail].path();
        }
        let paths = &paths[..self.rails.len()];
        split::takers(bytes, self.config.segment.into(), paths, self.heard_on())
    }

    /// The rail by which the other node sent a segment within a round trip: a short answer by the same rail leaves with the
    /// acknowledgement, and both ends look at one rail only.
    fn heard_on(&self) -> Option<usize> {
        let receives = self.rails[self.heard_on].receives(self.now);
        receives.then_some(self.heard_on)
    }

    /// Binds the next message to rails. `None`: there is none, or it waits for the other node's state.
    fn assign(&mut self) -> Option<()> {
        let (source_port, length) = self.outbox.next_message(&mut self.events)?;
        let Config {
            stale,
            ask,
            policy,
            short,
            ..
        } = self.config;
        if length <= short.0 {
            let chosen = policy.unchosen(self.working(), self.rails.len(), source_port);
            return self.bind_next(chosen);
        }
        let (busy, asks) = match policy {
            Policy::Static => (0, false),
            _ => match self.state.consult(self.now, stale, ask) {
                PeerKnowledge::Known { busy, ask } => (busy, ask),
                PeerKnowledge::Unknown { ask } => {
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
        let chosen = policy.choose(choice, source_port, &mut self.turn);
        self.bind_next(chosen)
    }

    /// Binds the next message to these rails, of which there may be none.
    fn bind_next(&mut self, chosen: RailSet) -> Option<()> {
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
