//! What one side of a pair promises whatever the other process says, used by the fuzz target and by the tests of
//! `crates/core/matching`: no panic; a notice that is refused changes nothing; every message that is offered or matched ends once,
//! and no buffer is used twice or after the rails are closed.
//!
//! The bytes are commands of four: what happens, two values, microseconds that pass. A driver that does as it is told runs
//! them; only notices and keys of messages that come are the other process's.

use std::collections::{BTreeMap, BTreeSet};

use raddle_matching::{Carrier, CarrierEvent, Notice, SLOTS};
use raddle_units::{Span, Time};

/// Sizes of messages are powers of two up to this one.
const LARGEST: u8 = 63;

#[derive(Default)]
struct Side {
    carrier: Carrier,
    now: Time,
    closed: bool,
    keys: u32,
    /// Our messages that have not ended, and those of them that are on the rails.
    offered: BTreeSet<u32>,
    sending: BTreeSet<u32>,
    /// Keys by slot.
    provided: BTreeMap<usize, u32>,
    /// What comes on the channel.
    fetching: Vec<u32>,
    matched: usize,
    /// Of those that were matched: fetched or landed.
    ended: usize,
}

/// Runs commands.
pub(crate) fn notices(bytes: &[u8]) {
    let mut side = Side::default();
    let mut rest = bytes;
    while let Some((&[what, which, value, time], after)) = rest.split_first_chunk() {
        rest = after;
        side.now += Span::from_us(time.into());
        if what % 11 == 10 {
            let (notice, next) = after.split_at(usize::from(which).min(after.len()));
            rest = next;
            side.hear(notice);
        } else {
            side.command(what, which, value);
        }
        side.check();
    }
    side.end();
}

impl Side {
    fn command(&mut self, what: u8, which: u8, value: u8) {
        let key = u32::from(which);
        match what % 11 {
            0 => {
                self.keys += 1;
                self.offered.insert(self.keys);
                self.carrier.offer(self.keys);
            }
            1 => {
                self.matched += 1;
                let bytes = 1 << (value % (LARGEST + 1));
                self.carrier.matched(self.now, key, bytes);
            }
            2 if !self.fetching.is_empty() => {
                let came = self
                    .fetching
                    .swap_remove(usize::from(which) % self.fetching.len());
                self.carrier.message_came(self.now, came);
            }
            3 => self.carrier.opened(),
            4 => self.carrier.fail(),
            5 => {
                if let Some(key) = nth(self.sending.iter(), which) {
                    self.carrier.arrived(*key);
                }
            }
            6 => {
                if let Some(slot) = nth(self.provided.keys(), which) {
                    self.land(*slot);
                }
            }
            7 => {
                let slot = Some(usize::from(value)).filter(|slot| *slot < SLOTS);
                let worth = u32::from(value) * 0x0101_0101;
                self.hear(&Notice::Answer { key, slot, worth }.bytes());
            }
            8 => self.hear(&Notice::Again { key }.bytes()),
            9 => self.hear(&Notice::Off.bytes()),
            _ => {}
        }
        self.obey();
    }

    fn land(&mut self, slot: usize) {
        let key = self.provided.remove(&slot).expect("it was provided");
        self.carrier.landed(self.now, slot);
        assert_eq!(
            self.carrier.poll_event(),
            Some(CarrierEvent::Landed { key })
        );
        self.ended += 1;
    }

    /// The other process says something.
    fn hear(&mut self, bytes: &[u8]) {
        let notice = Notice::parse(bytes);
        if let Ok(notice) = &notice {
            assert_eq!(notice.bytes(), bytes);
        }
        let before = self.standing();
        if let Err(refused) = self.carrier.handle_packet(bytes) {
            assert!(refused.to_string().len() < 100, "{refused}");
            assert_eq!(self.standing(), before);
            assert_eq!(self.carrier.poll_event(), None);
            assert_eq!(self.carrier.poll_transmit(), None);
        }
        self.obey();
    }

    fn standing(&self) -> (bool, bool, usize, Option<u64>) {
        let carrier = &self.carrier;
        (
            carrier.is_open(),
            carrier.is_off(),
            carrier.open_offers(),
            carrier.offers_from(),
        )
    }

    /// Does what the carrier says; that is bounded.
    fn obey(&mut self) {
        let most = 4 + 2 * SLOTS + self.offered.len();
        for events in 0.. {
            assert!(events < most, "events without end");
            let Some(event) = self.carrier.poll_event() else {
                break;
            };
            self.act(event);
        }
        for notices in 0.. {
            assert!(notices < most, "notices without end");
            let Some(notice) = self.carrier.poll_transmit() else {
                break;
            };
            assert_eq!(Notice::parse(&notice.bytes()), Ok(notice));
        }
    }

    fn act(&mut self, event: CarrierEvent) {
        match event {
            CarrierEvent::SendPlain { key } => {
                assert!(self.offered.remove(&key) && !self.sending.contains(&key));
            }
            CarrierEvent::SendOnRails { key, slot } => {
                assert!(!self.closed && slot < SLOTS && self.offered.contains(&key));
                assert!(self.sending.insert(key), "{key} is sent twice");
                if !self.carrier.is_open() {
                    self.carrier.fail();
                }
            }
            CarrierEvent::Arrived { key } => {
                assert!(self.offered.remove(&key));
                self.sending.remove(&key);
            }
            CarrierEvent::FetchPlain { key } => {
                // Other messages may have this key too; after the end of the rails all buffers come back.
                let slot = self.provided.iter().find(|(_, of)| **of == key);
                if let Some(slot) = slot.map(|(slot, _)| *slot).filter(|_| self.closed) {
                    self.provided.remove(&slot);
                }
                self.fetching.push(key);
                self.ended += 1;
            }
            CarrierEvent::Provide { key, slot } => {
                assert!(self.carrier.is_open() && slot < SLOTS);
                assert_eq!(self.provided.insert(slot, key), None, "two in slot {slot}");
            }
            CarrierEvent::Landed { key } => unreachable!("{key} did not land"),
            CarrierEvent::Close => {
                assert!(!self.closed, "closed twice");
                self.closed = true;
                self.sending.clear();
            }
            CarrierEvent::Hello(_) | CarrierEvent::Nudge => {}
        }
    }

    fn check(&self) {
        assert_eq!(self.carrier.open_offers(), self.offered.len());
        assert_eq!(self.matched, self.ended + self.provided.len());
        assert_eq!(self.carrier.is_off(), self.closed);
        if self.closed {
            assert!(self.provided.is_empty() && self.sending.is_empty());
            assert!(!self.carrier.wants(u64::MAX) && self.carrier.offers_from().is_none());
        }
    }

    /// Both ends give up; what was not answered is answered.
    fn end(&mut self) {
        self.carrier.fail();
        self.hear(&Notice::Off.bytes());
        for key in self.offered.clone() {
            let answer = Notice::Answer {
                key,
                slot: None,
                worth: 0,
            };
            assert_eq!(self.carrier.handle_packet(&answer.bytes()), Ok(()));
            self.obey();
        }
        self.check();
        assert!(self.offered.is_empty() && self.ended == self.matched);
    }
}

/// One of several, by any number.
fn nth<T>(mut all: impl ExactSizeIterator<Item = T>, which: u8) -> Option<T> {
    let count = all.len();
    all.nth(usize::from(which).checked_rem(count)?)
}
