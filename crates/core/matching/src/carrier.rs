//! Who carries the messages that are offered between two processes: rails beside the shadow channel, or the channel itself.
//! One [`Carrier`] is one process's side of a pair; it never sees a rail, and says what its driver does with them.
//!
//! The receiver decides when a message is matched, and answers. Each message on the rails has a *slot* of the receiver's, a
//! place for one buffer, so that what arrives there can be no other one. Rails that fail do so at either end: the receiver
//! names what has not come (`Again`), which the sender then sends on the channel, and ends with `Off`: everything else has
//! arrived. From then on all is answered plain.

mod choice;
mod notice;

use std::collections::VecDeque;

use raddle_units::Time;
use rustc_hash::{FxHashMap, FxHashSet};

use self::choice::Choice;
pub use self::{
    choice::LEAST_OFFER,
    notice::{BadNotice, Notice},
};

/// Messages from one process that may be on the rails at the same time.
pub const SLOTS: usize = 64;

/// What became of messages and rails, oldest first: each says what the driver is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CarrierEvent {
    /// Send the message that was offered under this key on the shadow channel. The offer is closed.
    SendPlain {
        /// Its key.
        key: u32,
    },
    /// Send it on the rails.
    SendOnRails {
        /// Its key.
        key: u32,
        /// The receiver's place for it.
        slot: usize,
    },
    /// It has arrived: its buffer is free, and the offer closed.
    Arrived {
        /// Its key.
        key: u32,
    },
    /// Receive the other process's message of this key on the shadow channel.
    FetchPlain {
        /// Its key.
        key: u32,
    },
    /// Provide the buffer of this message to the rails.
    Provide {
        /// Its key.
        key: u32,
        /// The place for it, free until now.
        slot: usize,
    },
    /// This message is in its buffer.
    Landed {
        /// Its key.
        key: u32,
    },
    /// Close the rails, so that no buffer is touched any more, and never open them again.
    Close,
    /// What the other driver says by [`Notice::Hello`].
    Hello(Vec<u8>),
    /// The other driver waits for an answer on the rails: look at them.
    Nudge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RailsState {
    /// Not open yet.
    Closed,
    Open,
    /// They failed.
    Off,
}

/// One process's side of a pair.
///
/// After each call its driver does what [`poll_event`](Self::poll_event) says until it gives nothing, then sends what
/// [`poll_transmit`](Self::poll_transmit) gives. It has no timeouts.
///
/// Before the driver hands a notice in, it hands in everything that its rails have said so far: what has come counts, also
/// if the other side has given up.
#[derive(Debug)]
pub struct Carrier {
    rails_state: RailsState,
    /// What we offered, by key: whether it is on the rails.
    offers: FxHashMap<u32, bool>,
    /// Classes of sizes that the other process wants offered.
    worth: u32,
    /// Keys of what we wait for.
    slots: [Option<u32>; SLOTS],
    /// What we wait for on the channel and measure, by key.
    plain: FxHashSet<u32>,
    choice: Choice,
    events: VecDeque<CarrierEvent>,
    notices: VecDeque<Notice>,
}

impl Default for Carrier {
    fn default() -> Self {
        Self {
            rails_state: RailsState::Closed,
            offers: FxHashMap::default(),
            worth: u32::MAX,
            slots: [None; SLOTS],
            plain: FxHashSet::default(),
            choice: Choice::default(),
            events: VecDeque::new(),
            notices: VecDeque::new(),
        }
    }
}

impl Carrier {
    /// What became of messages and rails, oldest first.
    pub fn poll_event(&mut self) -> Option<CarrierEvent> {
        self.events.pop_front()
    }

    /// The next notice to send to the other process, by [`Matcher::notify`](crate::Matcher::notify).
    pub fn poll_transmit(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Whether a message of so many bytes is to be offered to the other process.
    #[must_use]
    pub fn wants(&self, bytes: u64) -> bool {
        self.rails_state != RailsState::Off && choice::is_worth(self.worth, bytes)
    }

    /// The least size from which on everything is offered; `None`: nothing is.
    #[must_use]
    pub fn offers_from(&self) -> Option<u64> {
        (self.rails_state != RailsState::Off)
            .then(|| choice::least(self.worth))
            .flatten()
    }

    /// Whether messages can take the rails.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.rails_state == RailsState::Open
    }

    /// Whether the rails have failed.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.rails_state == RailsState::Off
    }

    /// Offers of ours that are open.
    #[must_use]
    pub fn open_offers(&self) -> usize {
        self.offers.len()
    }

    // What the program does.

    /// A message was offered under this key.
    pub fn offer(&mut self, key: u32) {
        self.offers.insert(key, false);
    }

    /// A message of the other process was matched: the answer, and how we get it.
    pub fn matched(&mut self, now: Time, key: u32, bytes: u64) {
        let (mut slot, measured) = (None, self.is_open());
        if measured {
            let free = self.slots.iter().position(Option::is_none);
            let by_rails = self.choice.begin(now, bytes, free.is_some());
            slot = free.filter(|_| by_rails);
        }
        let worth = self.choice.worth();
        self.notices.push_back(Notice::Answer { key, slot, worth });
        match slot {
            Some(slot) => {
                self.slots[slot] = Some(key);
                self.events.push_back(CarrierEvent::Provide { key, slot });
            }
            None => {
                if measured {
                    self.plain.insert(key);
                }
                self.events.push_back(CarrierEvent::FetchPlain { key });
            }
        }
    }

    /// A message of the other process came on the channel.
    pub fn message_came(&mut self, now: Time, key: u32) {
        if self.plain.remove(&key) {
            self.choice.end(now);
        }
    }

    // What the rails say.

    /// They carry messages.
    pub fn opened(&mut self) {
        if self.rails_state == RailsState::Closed {
            self.rails_state = RailsState::Open;
        }
    }

    /// They carry nothing any more, or cannot be opened.
    pub fn fail(&mut self) {
        if self.rails_state == RailsState::Off {
            return;
        }
        self.rails_state = RailsState::Off;
        self.plain.clear();
        self.events.push_back(CarrierEvent::Close);
        for key in self.slots.iter_mut().filter_map(Option::take) {
            self.notices.push_back(Notice::Again { key });
            self.events.push_back(CarrierEvent::FetchPlain { key });
        }
        self.notices.push_back(Notice::Off);
    }

    /// A message of ours has arrived.
    pub fn arrived(&mut self, key: u32) {
        if self.offers.remove(&key).is_some() {
            self.events.push_back(CarrierEvent::Arrived { key });
        }
    }

    /// A message has come into the buffer that was provided for this slot.
    pub fn landed(&mut self, now: Time, slot: usize) {
        if let Some(key) = self.slots.get_mut(slot).and_then(Option::take) {
            self.choice.end(now);
            self.events.push_back(CarrierEvent::Landed { key });
        }
    }

    // What the other process says.

    /// A notice came from the other process.
    ///
    /// # Errors
    /// When the bytes are no notice, or name a message that was not offered or was answered otherwise.
    pub fn handle_packet(&mut self, bytes: &[u8]) -> Result<(), BadNotice> {
        match Notice::parse(bytes)? {
            Notice::Answer { key, slot, worth } => {
                let offer = self.offers.get_mut(&key).filter(|on_rails| !**on_rails);
                *offer.ok_or(BadNotice::Key(key))? = slot.is_some();
                self.worth = worth;
                match slot {
                    // It will be named again.
                    Some(_) if self.rails_state == RailsState::Off => {}
                    Some(slot) => self
                        .events
                        .push_back(CarrierEvent::SendOnRails { key, slot }),
                    None => self.send_plain(key),
                }
            }
            Notice::Again { key } => {
                if self.offers.get(&key) != Some(&true) {
                    return Err(BadNotice::Key(key));
                }
                self.fail();
                self.send_plain(key);
            }
            Notice::Off => {
                self.fail();
                let mut arrived: Vec<u32> = Vec::new();
                self.offers.retain(|key, on_rails| {
                    arrived.extend(on_rails.then_some(*key));
                    !*on_rails
                });
                arrived.sort_unstable();
                let arrived = arrived.into_iter().map(|key| CarrierEvent::Arrived { key });
                self.events.extend(arrived);
            }
            Notice::Hello(bytes) => self.events.push_back(CarrierEvent::Hello(bytes)),
            Notice::Nudge => self.events.push_back(CarrierEvent::Nudge),
        }
        Ok(())
    }

    fn send_plain(&mut self, key: u32) {
        self.offers.remove(&key);
        self.events.push_back(CarrierEvent::SendPlain { key });
    }
}
