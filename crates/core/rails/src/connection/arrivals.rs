//! Packets that come, and what is lost with those that do not.

use raddle_units::Span;
use raddle_wire::rails::{Ack, Body, Hello, Packet};

use super::{Connection, Peer, Reception};
use crate::{
    config::Config,
    dropped::Dropped,
    event::{Event, Failure, SendFailure},
    inbox::{Placement, Taken},
    pending_acks::Numbered,
    rail::Change,
    received::Arrival,
    sent::Content,
};

impl Connection {
    pub(super) fn accept(
        &mut self,
        index: usize,
        packet: &Packet,
        how: Reception,
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
            self.on_ack(index, ack, how.held)?;
            self.state.hear(self.now, packet.busy);
            return Ok(None);
        }
        let arrival = self.rails[index].pending_acks.judge(packet.number);
        if arrival == Arrival::Again {
            return Err(Dropped::Replayed);
        }
        let placement = self.take_body(packet, peer)?;
        self.state.hear(self.now, packet.busy);
        let numbered = Numbered {
            number: packet.number,
            arrival,
            urgent: packet.urgent,
            held: how.held,
            marked: how.marked,
            has_segment: matches!(packet.body, Body::Data(_)),
        };
        if numbered.has_segment {
            self.heard_on = index;
        }
        self.rails[index]
            .pending_acks
            .take(self.now, &numbered, &self.config);
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

    fn on_ack(&mut self, index: usize, ack: &Ack, held: Span) -> Result<(), Dropped> {
        let rail = &mut self.rails[index];
        let (arrived, lost) = (&mut self.arrived, &mut self.lost);
        let change = rail.on_ack(self.now, held, ack, &self.config, arrived, lost);
        let change = change.map_err(|_| Dropped::BadAck)?;
        if !self.arrived.is_empty() {
            self.prove();
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

    /// Something was acknowledged. Silence on all rails was the other host's, not a rail's.
    fn prove(&mut self) {
        if self.now.since(self.proved) > self.config.short_silence() {
            let now = self.now;
            self.rails.iter_mut().for_each(|rail| rail.wake(now));
        }
        self.proved = self.now;
    }

    /// Hands on what a rail lost, and tells what became of it.
    pub(super) fn settle(&mut self, rail: usize, change: Change) {
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

    pub(super) fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
        self.outbox
            .fail(SendFailure::Connection(failure), &mut self.events);
        self.inbox.fail(&mut self.events);
        self.events.push_back(Event::Failed(failure));
    }
}
