//! Posted receives and messages that nobody has asked for yet, as MPI matches them (MPI 4.0, section 3.5).

use crate::{
    bins::{Bins, Key, WAYS},
    slab::{Place, Slab},
    store::Block,
};

/// What is known of a message without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// Communicator, by the number that its ranks agreed on.
    pub context: u32,
    /// Sending process, by its rank in the placement.
    pub source: u32,
    /// MPI's tag.
    pub tag: i32,
    /// Length.
    pub bytes: u64,
}

/// What a receive or probe asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// Communicator.
    pub context: u32,
    /// Sending process; `None`: MPI_ANY_SOURCE.
    pub source: Option<u32>,
    /// Tag; `None`: MPI_ANY_TAG.
    pub tag: Option<i32>,
}

impl Wanted {
    fn way(&self) -> usize {
        usize::from(self.source.is_none()) | usize::from(self.tag.is_none()) << 1
    }

    fn key(&self) -> Key {
        let source = self.source.unwrap_or_default();
        let tag = self.tag.unwrap_or_default();
        Key::new(self.way(), self.context, source, tag)
    }
}

/// A receive of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Receive {
    /// The driver's name for it.
    pub(crate) id: u64,
    /// Room for so many bytes.
    pub(crate) capacity: u64,
}

#[derive(Debug)]
struct Posted {
    wanted: Wanted,
    stamp: u64,
    receive: Receive,
}

/// Where a message's bytes are.
#[derive(Debug)]
pub(crate) enum Body {
    /// Here.
    Stored(Block),
    /// At the sender.
    Reference {
        key: u32,
        /// The driver has fetched them, under this name.
        aside: Option<u64>,
        /// It waits to hear how to send it.
        offered: bool,
    },
}

/// A message that was released to the queues.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) envelope: Envelope,
    pub(crate) body: Body,
}

#[derive(Debug)]
struct Kept {
    message: Message,
    stamp: u64,
    claimed: bool,
}

/// Both queues. A receive is in one bin; a message in one for each way to choose that was used so far.
#[derive(Debug)]
pub(crate) struct Queues {
    posted: Slab<Posted>,
    posted_bins: Bins<1>,
    /// Posted receives of each way.
    waiting: [u32; WAYS],
    kept: Slab<Kept>,
    kept_bins: Bins<WAYS>,
    /// Ways by which kept messages are listed.
    listed: [bool; WAYS],
    /// Counts receives and messages.
    stamp: u64,
}

impl Queues {
    pub(crate) fn new() -> Self {
        Self {
            posted: Slab::new(),
            posted_bins: Bins::new(),
            waiting: [0; WAYS],
            kept: Slab::new(),
            kept_bins: Bins::new(),
            listed: [true, false, false, false],
            stamp: 0,
        }
    }

    /// The receive that gets this message: of those that take it, the one posted first.
    #[inline]
    pub(crate) fn take_receive(&mut self, message: &Envelope) -> Option<Receive> {
        let way = self.way_of_first(message)?;
        let index = self.posted_bins.pop(0, key_of(way, message))?;
        self.waiting[way] -= 1;
        Some(self.posted.take_at(index)?.receive)
    }

    /// How the receive chose that gets this message, if one does.
    #[inline]
    fn way_of_first(&self, message: &Envelope) -> Option<usize> {
        let mut ways = (0..WAYS).filter(|&way| self.waiting[way] > 0);
        let only = ways.next()?;
        if ways.next().is_none() {
            return Some(only);
        }
        let waiting = (0..WAYS).filter_map(|way| {
            let first = self.posted_bins.first(key_of(way, message))?;
            Some((self.posted.at(first)?.stamp, way))
        });
        waiting.min().map(|(_, way)| way)
    }

    /// Adds a receive for which [`Self::take_message`] found nothing.
    #[inline]
    pub(crate) fn post(&mut self, wanted: &Wanted, receive: Receive) -> Place {
        self.stamp += 1;
        let place = self.posted.insert(Posted {
            wanted: *wanted,
            stamp: self.stamp,
            receive,
        });
        self.posted_bins.push(0, wanted.key(), place.index);
        self.waiting[wanted.way()] += 1;
        place
    }

    /// Takes a receive back, if it has no message yet: what it asked for.
    pub(crate) fn cancel(&mut self, place: Place) -> Option<Wanted> {
        let posted = self.posted.take(place)?;
        let wanted = posted.wanted;
        self.posted_bins.remove(0, wanted.key(), place.index);
        self.waiting[wanted.way()] -= 1;
        Some(wanted)
    }

    /// Adds a message for which [`Self::take_receive`] found nothing.
    pub(crate) fn keep(&mut self, message: Message) -> Place {
        self.stamp += 1;
        let envelope = message.envelope;
        let place = self.kept.insert(Kept {
            message,
            stamp: self.stamp,
            claimed: false,
        });
        for way in (0..WAYS).filter(|&way| self.listed[way]) {
            self.kept_bins
                .push(way, key_of(way, &envelope), place.index);
        }
        place
    }

    /// The message that a receive would get: of those that it takes, the one released first.
    pub(crate) fn find(&mut self, wanted: &Wanted) -> Option<&Message> {
        let index = self.find_place(wanted)?;
        Some(&self.kept.at(index)?.message)
    }

    /// Takes that message.
    #[inline]
    pub(crate) fn take_message(&mut self, wanted: &Wanted) -> Option<Message> {
        let index = self.find_place(wanted)?;
        self.unlist_kept(index);
        Some(self.kept.take_at(index)?.message)
    }

    /// Reserves that message for who has its place.
    pub(crate) fn claim(&mut self, wanted: &Wanted) -> Option<(Place, Envelope)> {
        let index = self.find_place(wanted)?;
        self.unlist_kept(index);
        let place = self.kept.place(index);
        let kept = self.kept.get_mut(place)?;
        kept.claimed = true;
        Some((place, kept.message.envelope))
    }

    /// Takes a message that was claimed, once.
    pub(crate) fn take_claimed(&mut self, place: Place) -> Option<Message> {
        Some(self.kept.take(place)?.message)
    }

    /// A kept or claimed message.
    pub(crate) fn kept_mut(&mut self, place: Place) -> Option<&mut Message> {
        Some(&mut self.kept.get_mut(place)?.message)
    }

    #[inline]
    fn find_place(&mut self, wanted: &Wanted) -> Option<u32> {
        let way = wanted.way();
        if !self.listed[way] {
            self.list(way);
        }
        if self.kept.is_empty() {
            return None;
        }
        self.kept_bins.first(wanted.key())
    }

    /// Lists kept messages by one way more, from now on.
    fn list(&mut self, way: usize) {
        self.listed[way] = true;
        let open = self.kept.iter().filter(|(_, kept)| !kept.claimed);
        let mut order: Vec<_> = open.map(|(index, kept)| (kept.stamp, index)).collect();
        order.sort_unstable();
        for (_, index) in order {
            if let Some(kept) = self.kept.at(index) {
                let key = key_of(way, &kept.message.envelope);
                self.kept_bins.push(way, key, index);
            }
        }
    }

    fn unlist_kept(&mut self, index: u32) {
        let Some(kept) = self.kept.at(index) else {
            return;
        };
        for way in (0..WAYS).filter(|&way| self.listed[way]) {
            let key = key_of(way, &kept.message.envelope);
            self.kept_bins.remove(way, key, index);
        }
    }
}

const fn key_of(way: usize, message: &Envelope) -> Key {
    Key::new(way, message.context, message.source, message.tag)
}
