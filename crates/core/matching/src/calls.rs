//! What goes into a [`Matcher`](crate::Matcher) and what comes out.

use std::collections::VecDeque;

use thiserror::Error;

use crate::{parcel::Parcel, queues::Envelope, slab::Place, store::Block};

/// What happened to messages: what [`Matcher::poll_event`](crate::Matcher::poll_event) gives, oldest first.
#[derive(Debug)]
pub enum Event {
    /// This receive is complete: `contents` are the bytes that fit into it. It is truncated if `message` has more.
    Delivered {
        /// The driver's name for the receive.
        receive: u64,
        /// The message.
        message: Envelope,
        /// Its bytes.
        contents: Contents,
    },
    /// This receive has a message that is with its sender: get it into the receive's buffer. What is fetched and set aside of
    /// one source and key is received in the order of these events.
    Fetch {
        /// The driver's name for the receive.
        receive: u64,
        /// Bytes that the receive has room for.
        capacity: u64,
        /// The message.
        message: Envelope,
        /// Where to get it.
        from: Fetch,
    },
    /// Get a message that nobody has asked for yet into memory of the driver's: its sender uses its key again.
    SetAside {
        /// The number by which [`Fetch::Aside`] names it.
        aside: u64,
        /// The message.
        message: Envelope,
        /// Its key.
        key: u32,
    },
    /// A process sent this by [`Matcher::notify`](crate::Matcher::notify). Only drivers that send some get some.
    Notice {
        /// The process.
        from: u32,
        /// What it sent.
        contents: Contents,
    },
}

/// Bytes of an [`Event`]: they lie in the parcel that was handled last, or with the matcher.
#[derive(Debug)]
pub struct Contents(pub(crate) Source);

#[derive(Debug)]
pub(crate) enum Source {
    Parcel { start: u32, length: u32 },
    Kept(Block),
}

impl Contents {
    /// Parcels are shorter than 4 GiB: their heads say so in 32 bits.
    #[inline]
    pub(crate) const fn in_parcel(start: usize, length: usize) -> Self {
        Self(Source::Parcel {
            start: start as u32,
            length: length as u32,
        })
    }

    /// The bytes. `parcel` is the one given to [`Matcher::handle_parcel`](crate::Matcher::handle_parcel) in the call that
    /// brought the event; anything after another call.
    ///
    /// # Panics
    /// When the bytes lie in a parcel and this one is too short to be that.
    #[inline]
    #[must_use]
    pub fn bytes<'a>(&'a self, parcel: &'a [u8]) -> &'a [u8] {
        match &self.0 {
            Source::Parcel { start, length } => &parcel[*start as usize..][..*length as usize],
            Source::Kept(block) => block.bytes(),
        }
    }
}

/// A parcel that is to be sent: what [`Matcher::poll_transmit`](crate::Matcher::poll_transmit) gives.
#[derive(Debug)]
pub struct Transmit {
    /// The rank that it is for, on the shadow channel, which keeps the order of what is sent to one rank.
    pub to: u32,
    /// The parcel; its buffer comes back by [`Matcher::recycle`](crate::Matcher::recycle) when it was sent.
    pub parcel: Parcel,
}

/// What a matcher has for its driver.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    pub(crate) transmits: VecDeque<Transmit>,
    pub(crate) events: VecDeque<Event>,
}

impl Outputs {
    pub(crate) fn send(&mut self, to: u32, parcel: Parcel) {
        self.transmits.push_back(Transmit { to, parcel });
    }
}

/// Where a message by reference is fetched from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetch {
    /// From its source, by its key on the shadow channel.
    Key(u32),
    /// From what [`Event::SetAside`] asked to get under this number.
    Aside(u64),
    /// It was offered under this key: its source sends it once the driver has said how ([`Carrier`](crate::Carrier)).
    Offered(u32),
}

/// A message that the program sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing {
    /// Receiving process, by its rank in the placement; may be the sender.
    pub to: u32,
    /// Communicator, by the number that its ranks agreed on.
    pub context: u32,
    /// MPI's tag, at least 0.
    pub tag: i32,
    /// Length.
    pub bytes: u64,
    /// MPI's mode.
    pub mode: Mode,
}

/// MPI's modes, as far as they make a difference here: a buffered or ready send is a standard one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// May be complete before a receive was found.
    #[default]
    Standard,
    /// Is complete when it was matched.
    Synchronous,
}

/// How a message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It was copied: the send is complete.
    Copied,
    /// The driver sends it from the program's buffer on the shadow channel, under `key`, now.
    ByReference {
        /// From 1 to [`Settings::keys`](crate::Settings::keys).
        key: u32,
        /// Not before the receiver asks for it.
        synchronous: bool,
    },
}

/// Names a receive that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(pub(crate) Place);

impl Ticket {
    /// As a number, for drivers in other languages.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0.to_bits()
    }

    /// From such a number. One that names no receive that waits is refused as one that has its message is.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(Place::from_bits(bits))
    }
}

/// Names a claimed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim(pub(crate) Place);

impl Claim {
    /// As a number, for drivers in other languages.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0.to_bits()
    }

    /// From such a number. One that names no claimed message is refused as one that was received is.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(Place::from_bits(bits))
    }
}

/// What became of a receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    /// It has its message: [`Event::Delivered`] or [`Event::Fetch`] comes.
    Matched,
    /// It waits.
    Waiting(Ticket),
}

/// Messages of one context at one process since its start. A context is quiet when sent minus received adds up to 0 over
/// its ranks and no receive waits at any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Sent by this process.
    pub sent: u64,
    /// Received by this process: matched, or claimed and then received.
    pub received: u64,
    /// Receives that wait now.
    pub waiting: u64,
}

/// What a process did so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Messages that were copied into parcels, or kept for the process itself.
    pub copied: u64,
    /// Messages by reference, without those that were offered.
    pub by_reference: u64,
    /// Messages that were offered.
    pub offered: u64,
    /// Of these, such as were small enough to be copied, but the receiver had no room.
    pub without_room: u64,
    /// Parcels of messages and envelopes that were sent.
    pub parcels: u64,
    /// Their parts, without what was handed on.
    pub parts: u64,
    /// Grants that were sent, each a parcel of its own.
    pub grants: u64,
    /// Notices that were sent, each a parcel of its own.
    pub notices: u64,
    /// Parts that were handed on to other ranks of the node.
    pub handed_on: u64,
    /// Messages that came before their receive.
    pub unexpected: u64,
    /// Messages that were set aside.
    pub set_aside: u64,
    /// Bytes of window that messages nobody has asked for yet take now.
    pub kept_bytes: u64,
    /// The most that it ever was.
    pub most_kept_bytes: u64,
}

/// A call that MPI does not allow, or a number that was not agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallError {
    /// There is no such rank.
    #[error("rank {rank} does not exist: there are {ranks}")]
    Rank {
        /// The rank given.
        rank: u32,
        /// How many there are.
        ranks: usize,
    },
    /// There is no such context.
    #[error("context {0} is not below 65536")]
    Context(u32),
    /// Tags are not negative.
    #[error("tag {0} is negative")]
    Tag(i32),
    /// The message was received before.
    #[error("a claimed message was received twice")]
    Claim,
    /// Longer than a notice may be.
    #[error("a notice of {0} bytes; at most 256 are possible")]
    Notice(usize),
}
