//! The rails to one other process: opened at the first message that is offered, closed for good when they fail.

mod opening;

use std::{collections::HashMap, net::UdpSocket, num::NonZeroUsize, ptr::NonNull};

use raddle_host::rails::{Buffer, Node, NodeEvent};
use raddle_matching::{BadNotice, Carrier, CarrierEvent, Envelope, Matcher, Notice};
use raddle_units::{Span, Time};

use super::{Counters, Process, ends::End};
use crate::log;

/// A process that has not looked at its rails for so long was computing: that time does not count as silence.
const AWAY: Span = Span::from_ms(2);
/// How long rails are looked at after their last message: an acknowledgement may have been lost.
const LINGER: Span = Span::from_ms(2);
/// Silence on the rails after which the other process is asked to look at them. It doubles with each time that it is asked
/// in vain, at most so often, and up to this part of the time after which rails are given up.
const STALL: Span = Span::from_ms(20);
const STALL_DOUBLINGS: u32 = 6;
const STALL_PART: u64 = 4;
/// Time of looking after which rails that do not open are given up.
const OPENING: Span = Span::from_ms(5000);
/// The longest message that is offered.
const LONGEST: u64 = 1 << 32;

/// A message of the program's that waits to be sent, or is on the rails.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offer {
    /// Its bytes, as an address.
    pub(super) start: usize,
    pub(super) bytes: u64,
    /// The shim's name for it.
    pub(super) name: u64,
    /// It was sent on the rails.
    pub(super) on_rails: bool,
}

/// A receive whose message was offered.
#[derive(Debug, Clone, Copy)]
struct Landing {
    receive: u64,
    envelope: Envelope,
    /// Room for all of it, as an address, if rails may bring it.
    room: Option<NonZeroUsize>,
}

/// What a buffer of the node is lent for.
#[derive(Debug, Clone, Copy)]
enum Loan {
    Send { key: u32 },
    Receive { slot: usize, bytes: u64 },
}

/// One process's side of the rails to another one.
#[derive(Debug)]
pub(super) struct Link {
    peer: u32,
    carrier: Carrier,
    /// Our ends, with what holds their ports until the node has them.
    ours: Option<(Vec<UdpSocket>, Vec<End>)>,
    node: Option<Node>,
    /// Slots whose ports are open.
    ports: u64,
    /// By number of the node's buffer.
    loans: Vec<Option<Loan>>,
    offers: HashMap<u32, Offer>,
    landings: HashMap<u32, Landing>,
    /// When the rails were looked at last, and until when they are looked at though nothing is under way.
    stepped: Time,
    linger: Time,
    /// When something came last, or the other process was asked to look, and how often it was since something came.
    heard: Time,
    nudges: u32,
    /// Time of looking since the node was opened.
    opening: Span,
}

impl Link {
    pub(super) fn new(peer: u32) -> Self {
        Self {
            peer,
            carrier: Carrier::default(),
            ours: None,
            node: None,
            ports: 0,
            loans: Vec::new(),
            offers: HashMap::new(),
            landings: HashMap::new(),
            stepped: Time(0),
            linger: Time(0),
            heard: Time(0),
            nudges: 0,
            opening: Span::ZERO,
        }
    }

    pub(super) const fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    pub(super) fn wants(&self, bytes: u64) -> bool {
        bytes <= LONGEST && self.carrier.wants(bytes)
    }

    /// A message was offered.
    pub(super) fn offer(&mut self, key: u32, offer: Offer) {
        self.offers.insert(key, offer);
        self.carrier.offer(key);
    }

    /// A message of the other process was matched.
    pub(super) fn matched(
        &mut self,
        now: Time,
        key: u32,
        receive: u64,
        envelope: Envelope,
        process: &mut Process<'_>,
    ) {
        if self.ours.is_none() && self.node.is_none() && !self.carrier.is_off() {
            self.greet(process);
        }
        // Asked for before the answer, which cannot be taken back.
        let room = self.carrier.is_open();
        let room = room.then(|| process.land(receive, &envelope));
        if room == Some(None) {
            self.decline(key, receive, &envelope, process);
            return;
        }
        let landing = Landing {
            receive,
            envelope,
            room: room.flatten(),
        };
        self.landings.insert(key, landing);
        self.carrier.matched(now, key, envelope.bytes);
        self.obey(now, process);
    }

    /// There is no memory for a message: it comes by the MPI library, which needs none. The rails stay.
    fn decline(&self, key: u32, receive: u64, envelope: &Envelope, process: &mut Process<'_>) {
        let answer = Notice::Answer {
            key,
            slot: None,
            // The carrier's next answer says from which size on an offer is worth it.
            worth: u32::MAX,
        };
        process.notify(self.peer, &answer);
        process.fetch(receive, envelope, key);
    }

    /// A message came on the shadow channel.
    pub(super) fn message_came(&mut self, now: Time, key: u32) {
        self.carrier.message_came(now, key);
    }

    /// What the other process says.
    pub(super) fn notice(
        &mut self,
        now: Time,
        bytes: &[u8],
        process: &mut Process<'_>,
    ) -> Result<(), BadNotice> {
        // What has come counts, also if the other side has given up.
        self.hear(now);
        let handled = self.carrier.handle_packet(bytes);
        self.obey(now, process);
        handled
    }

    /// One look at the rails, if something is under way there; whether something came.
    pub(super) fn step(&mut self, now: Time, process: &mut Process<'_>) -> bool {
        let Some(node) = &mut self.node else {
            return false;
        };
        let sending = node.connection().sending() > 0;
        let opening = !self.carrier.is_open();
        if !sending && !opening && self.landings.is_empty() && now >= self.linger {
            return false;
        }
        let away = now.since(self.stepped);
        self.stepped = now;
        // Only messages of our own prove that rails are silent: a process that computes does not answer.
        if !sending || away > AWAY {
            node.note_pause(away);
        }
        let came = node.step().unwrap_or_else(|error| {
            log::plain(&format!("rails to rank {}: {error}", self.peer));
            self.carrier.fail();
            false
        });
        self.hear(now);
        if opening {
            self.opening += away.min(AWAY);
            if self.opening > OPENING && !self.carrier.is_open() {
                self.carrier.fail();
            }
        }
        if came || !sending {
            (self.heard, self.nudges) = (now, 0);
        } else if now.since(self.heard) > stall(self.nudges, process.give_up) {
            (self.heard, self.nudges) = (now, self.nudges + 1);
            process.notify(self.peer, &Notice::Nudge);
        }
        self.obey(now, process);
        came
    }

    /// Nothing of the rails is used any more.
    pub(super) fn close(&mut self) {
        self.node = None;
        self.ours = None;
        self.loans.clear();
    }

    /// Hands in what the rails have said.
    fn hear(&mut self, now: Time) {
        let Some(node) = &mut self.node else {
            return;
        };
        let mut failed = false;
        while let Some(event) = node.poll_event() {
            let buffer = match event {
                NodeEvent::Established => {
                    self.carrier.opened();
                    continue;
                }
                NodeEvent::RailUp { .. } | NodeEvent::RailDown { .. } => continue,
                NodeEvent::Failed(_) => {
                    failed = true;
                    continue;
                }
                NodeEvent::Sent { token: buffer }
                | NodeEvent::SendFailed { token: buffer, .. }
                | NodeEvent::Received { token: buffer, .. }
                | NodeEvent::Returned { token: buffer } => buffer,
            };
            let loan = self.loans.get_mut(buffer.number() as usize);
            let loan = loan.and_then(Option::take);
            failed |= node.release(buffer).is_err();
            self.linger = now + LINGER;
            match (event, loan) {
                (NodeEvent::Sent { .. }, Some(Loan::Send { key })) => self.carrier.arrived(key),
                (NodeEvent::Received { length, .. }, Some(Loan::Receive { slot, bytes }))
                    if length == bytes =>
                {
                    self.carrier.landed(now, slot);
                }
                _ => failed = true,
            }
        }
        if failed {
            self.carrier.fail();
        }
    }

    /// Does what the carrier says.
    fn obey(&mut self, now: Time, process: &mut Process<'_>) {
        while let Some(event) = self.carrier.poll_event() {
            match event {
                CarrierEvent::SendPlain { key } => {
                    if let Some(offer) = self.close_offer(key, process.matcher) {
                        process.counters.answered(&offer);
                        process.send_plain(offer.name, key);
                    }
                }
                CarrierEvent::SendOnRails { key, slot } => {
                    if self.send(key, slot).is_none() {
                        self.carrier.fail();
                    }
                }
                CarrierEvent::Arrived { key } => {
                    if let Some(offer) = self.close_offer(key, process.matcher) {
                        process.counters.by_rails += 1;
                        process.counters.by_rails_bytes += offer.bytes;
                        process.sent(offer.name);
                    }
                }
                CarrierEvent::FetchPlain { key } => {
                    if let Some(landing) = self.landings.remove(&key) {
                        process.fetch(landing.receive, &landing.envelope, key);
                    }
                }
                CarrierEvent::Provide { key, slot } => {
                    if self.provide(key, slot).is_none() {
                        self.carrier.fail();
                    }
                }
                CarrierEvent::Landed { key } => {
                    if let Some(landing) = self.landings.remove(&key) {
                        process.landed(landing.receive);
                    }
                }
                CarrierEvent::Close => {
                    process.counters.rails_failed += u64::from(self.node.is_some());
                    self.close();
                }
                CarrierEvent::Hello(bytes) => {
                    if self.meet(now, &bytes, process).is_none() {
                        self.carrier.fail();
                    }
                }
                CarrierEvent::Nudge => self.linger = now + LINGER + LINGER,
            }
        }
        while let Some(notice) = self.carrier.poll_transmit() {
            process.notify(self.peer, &notice);
        }
    }

    fn close_offer(&mut self, key: u32, matcher: &mut Matcher) -> Option<Offer> {
        matcher.close_offer(self.peer, key);
        self.offers.remove(&key)
    }

    /// `None`: the rails do not take it.
    fn send(&mut self, key: u32, slot: usize) -> Option<()> {
        let offer = self.offers.get_mut(&key)?;
        let node = self.node.as_mut()?;
        let start = NonNull::new(offer.start as *mut u8)?;
        let length = usize::try_from(offer.bytes).ok()?;
        // SAFETY: the shim keeps these bytes untouched until it is told that they were sent, which follows the event that
        // gives the buffer back, or the end of the node.
        let buffer = unsafe { node.lend(start, length) };
        node.send(0, slot as u16, buffer, offer.bytes).ok()?;
        offer.on_rails = true;
        self.note(buffer, Loan::Send { key });
        Some(())
    }

    /// `None`: the rails do not take it.
    fn provide(&mut self, key: u32, slot: usize) -> Option<()> {
        let landing = *self.landings.get(&key)?;
        let bytes = landing.envelope.bytes;
        let start = NonNull::new(landing.room?.get() as *mut u8)?;
        let node = self.node.as_mut()?;
        if self.ports >> slot & 1 == 0 {
            node.open_port(slot as u16, LONGEST).ok()?;
            self.ports |= 1 << slot;
        }
        // SAFETY: the shim gave room for the message, which nobody touches until it is told that the message is there or to
        // fetch it in another way; that follows the event that gives the buffer back, or the end of the node.
        let buffer = unsafe { node.lend(start, usize::try_from(bytes).ok()?) };
        node.provide_exact(slot as u16, buffer).ok()?;
        self.note(buffer, Loan::Receive { slot, bytes });
        Some(())
    }

    fn note(&mut self, buffer: Buffer, loan: Loan) {
        let index = buffer.number() as usize;
        if self.loans.len() <= index {
            self.loans.resize(index + 1, None);
        }
        self.loans[index] = Some(loan);
    }
}

/// Silence after which the other process is asked for the next time, if it was `nudges` times in vain.
fn stall(nudges: u32, give_up: Span) -> Span {
    let doubled = Span(STALL.0 << nudges.min(STALL_DOUBLINGS));
    doubled.min(Span(give_up.0 / STALL_PART)).max(STALL)
}

impl Counters {
    /// An offer is sent on the shadow channel.
    const fn answered(&mut self, offer: &Offer) {
        if offer.on_rails {
            self.fell_back += 1;
        } else {
            self.answered_plain += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_answer_is_asked_ever_more_rarely_but_several_times_before_the_end() {
        for give_up in [100, 500, 30_000, 3_600_000] {
            let give_up = Span::from_ms(give_up);
            let mut asked = Vec::new();
            let mut silence = stall(0, give_up);
            while silence < give_up && asked.len() < 1000 {
                asked.push(silence);
                silence += stall(asked.len() as u32, give_up);
            }
            assert_eq!(asked[0], STALL);
            assert!(asked.len() >= 3, "{asked:?}");
            let waits: Vec<Span> = asked
                .windows(2)
                .map(|two| Span(two[1].0 - two[0].0))
                .collect();
            assert!(waits.is_sorted() && waits[0] <= STALL * 2, "{waits:?}");
            assert!(
                waits
                    .iter()
                    .all(|wait| *wait <= STALL.max(Span(give_up.0 / 4))),
                "{waits:?}"
            );
            // One every 20 ms would be 50 in a second.
            let first_second = asked.iter().filter(|at| **at <= Span::from_ms(1000));
            assert!(
                first_second.count() <= 6 || give_up < Span::from_ms(1000),
                "{asked:?}"
            );
        }
    }
}
