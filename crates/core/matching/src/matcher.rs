//! The state machine of one process: its calls, and parcels for it. What follows from them is in `matcher/release.rs`.

mod check;
mod release;

use raddle_schedule::{
    Distance, Placement,
    parcel::{HEAD_BYTES, PART_BYTES, ParcelView, PartHead},
};
use rustc_hash::{FxHashMap, FxHashSet};

use self::release::envelope;
use crate::{
    calls::{
        CallError, Claim, Contents, Counts, Event, Mode, Outgoing, Outputs, Posted, Sent, Source,
        Statistics, Ticket, Transmit,
    },
    lines::Lines,
    parcel::Parcel,
    part::{
        self, MOST_CONTEXTS, MOST_NOTICE, Part, REFERENCE_BYTES, reference_head, write_reference,
    },
    peer::Peer,
    queues::{Body, Envelope, Message, Queues, Receive, Wanted},
    refused::Refused,
    settings::{SetUpError, Settings},
    slab::Place,
    store::Store,
};

/// Offers to one process that are open at once, at most.
const MOST_OFFERS: u32 = 1024;

/// One process: its sends, its receives, and what it keeps for them.
///
/// Its methods are commands of the program ([`send`](Self::send), [`receive`](Self::receive), …),
/// [`handle_parcel`](Self::handle_parcel), and polls. **After each command and each parcel** its driver
/// 1. does what [`poll_event`](Self::poll_event) says, until it gives nothing; contents go back by
///    [`give_back`](Self::give_back) when they were copied;
/// 2. sends what [`poll_transmit`](Self::poll_transmit) gives, until that is nothing.
///
/// It has no timeouts. Call [`flush`](Self::flush) before the program waits for anything, and `handle_parcel` for each parcel in
/// the order in which the shadow channel brings those of a sender. The crate's documentation has a loop that runs.
#[derive(Debug)]
pub struct Matcher {
    pub(crate) rank: u32,
    pub(crate) keys: u32,
    pub(crate) window: u64,
    pub(crate) lines: Lines,
    pub(crate) peers: Vec<Peer>,
    /// Messages that came before others of their pair, by source and sequence.
    pub(crate) ahead: FxHashMap<(u32, u32), Message>,
    queues: Queues,
    store: Store,
    /// Unmatched messages by reference, by source and key: who has a key last.
    references: FxHashMap<(u32, u32), Place>,
    counts: Vec<Counts>,
    statistics: Statistics,
    /// Offers that are open, by target and key.
    offers: FxHashSet<(u32, u32)>,
    out: Outputs,
}

impl Matcher {
    /// For `rank` of `placement`, which are all processes of the shadow channel. All of them need the same settings.
    ///
    /// # Errors
    /// If there is no such rank, or for [`raddle_schedule::Scope::NodeToNode`].
    pub fn new(
        rank: u32,
        placement: &Placement,
        distance: &Distance<'_>,
        settings: &Settings,
    ) -> Result<Self, SetUpError> {
        SetUpError::check(rank, placement, &settings.join)?;
        let window = settings.window(placement.ranks());
        Ok(Self {
            rank,
            keys: settings.keys.max(1),
            window,
            lines: Lines::new(rank, placement, distance, &settings.join),
            peers: vec![Peer::new(window); placement.ranks()],
            ahead: FxHashMap::default(),
            queues: Queues::new(),
            store: Store::new(),
            references: FxHashMap::default(),
            counts: Vec::new(),
            statistics: Statistics::default(),
            offers: FxHashSet::default(),
            out: Outputs::default(),
        })
    }

    /// Sends a message. If it is copied, `fill` is called with room for its bytes, once.
    ///
    /// # Errors
    /// When a number is out of range; nothing is sent.
    pub fn send(
        &mut self,
        message: &Outgoing,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Sent, CallError> {
        let &Outgoing {
            to,
            context,
            tag,
            bytes,
            mode,
        } = message;
        self.check(context, Some(to), Some(tag))?;
        self.counts(context).sent += 1;
        let peer = &mut self.peers[to as usize];
        let small = mode == Mode::Standard && self.lines.takes(bytes);
        let head = PartHead {
            source: self.rank,
            target: to,
            context,
            tag,
            sequence: peer.number(),
        };
        if small && peer.take_room(bytes) {
            self.statistics.copied += 1;
            if to == self.rank {
                self.copy_to_self(envelope(&head, bytes), fill);
            } else {
                self.lines.push(
                    &head,
                    bytes as usize,
                    fill,
                    &mut self.statistics,
                    &mut self.out,
                );
            }
            return Ok(Sent::Copied);
        }
        let key = self.free_key(to);
        self.statistics.by_reference += 1;
        self.statistics.without_room += u64::from(small);
        if to == self.rank {
            let message = Message {
                envelope: envelope(&head, bytes),
                body: Body::Reference {
                    key,
                    aside: None,
                    offered: false,
                },
            };
            self.release(message);
        } else {
            self.push_envelope(&head, bytes, key, false);
        }
        Ok(Sent::ByReference {
            key,
            synchronous: small || mode == Mode::Synchronous,
        })
    }

    /// Offers a message to another process: its bytes stay where they are until the driver of the receiver, which gets
    /// [`Fetch::Offered`](crate::Fetch::Offered), has said how they are to be sent. Gives the key, which is not used again
    /// before [`Self::close_offer`]; `None`: it is the process itself, or too many offers are open. Then [`Self::send`] it.
    ///
    /// # Errors
    /// When a number is out of range; nothing is sent.
    pub fn offer(&mut self, message: &Outgoing) -> Result<Option<u32>, CallError> {
        let &Outgoing {
            to,
            context,
            tag,
            bytes,
            ..
        } = message;
        self.check(context, Some(to), Some(tag))?;
        if to == self.rank || self.peers[to as usize].offers >= MOST_OFFERS.min(self.keys / 2) {
            return Ok(None);
        }
        let key = self.free_key(to);
        self.counts(context).sent += 1;
        self.statistics.offered += 1;
        self.offers.insert((to, key));
        let peer = &mut self.peers[to as usize];
        peer.offers += 1;
        let head = PartHead {
            source: self.rank,
            target: to,
            context,
            tag,
            sequence: peer.number(),
        };
        self.push_envelope(&head, bytes, key, true);
        Ok(Some(key))
    }

    /// An offered message has arrived, or is sent on the shadow channel under its key now.
    pub fn close_offer(&mut self, to: u32, key: u32) {
        if self.offers.remove(&(to, key)) {
            self.peers[to as usize].offers -= 1;
        }
    }

    /// Tells the driver of another process something, at once: up to 256 bytes, in the order of these calls.
    ///
    /// # Errors
    /// When there is no such process, or the bytes are too many.
    pub fn notify(&mut self, to: u32, bytes: &[u8]) -> Result<(), CallError> {
        self.check(0, Some(to), None)?;
        if bytes.len() > MOST_NOTICE {
            return Err(CallError::Notice(bytes.len()));
        }
        self.lines
            .notify(to, bytes, &mut self.statistics, &mut self.out);
        Ok(())
    }

    /// Posts a receive with room for `capacity` bytes; `id` is the driver's name for it.
    ///
    /// # Errors
    /// When a number is out of range; nothing is posted.
    #[inline]
    pub fn receive(
        &mut self,
        wanted: &Wanted,
        capacity: u64,
        id: u64,
    ) -> Result<Posted, CallError> {
        self.check(wanted.context, wanted.source, wanted.tag)?;
        let receive = Receive { id, capacity };
        if let Some(message) = self.queues.take_message(wanted) {
            self.complete(receive, message);
            return Ok(Posted::Matched);
        }
        self.counts(wanted.context).waiting += 1;
        Ok(Posted::Waiting(Ticket(self.queues.post(wanted, receive))))
    }

    /// The message that a receive would get now, if there is one.
    ///
    /// # Errors
    /// When a number is out of range.
    pub fn probe(&mut self, wanted: &Wanted) -> Result<Option<Envelope>, CallError> {
        self.check(wanted.context, wanted.source, wanted.tag)?;
        let found = self.queues.find(wanted);
        Ok(found.map(|message| message.envelope))
    }

    /// As [`Self::probe`], and reserves the message for [`Self::receive_claimed`] (MPI_Mprobe).
    ///
    /// # Errors
    /// When a number is out of range.
    pub fn claim(&mut self, wanted: &Wanted) -> Result<Option<(Claim, Envelope)>, CallError> {
        self.check(wanted.context, wanted.source, wanted.tag)?;
        let claimed = self.queues.claim(wanted);
        Ok(claimed.map(|(place, envelope)| (Claim(place), envelope)))
    }

    /// Receives a claimed message (MPI_Mrecv).
    ///
    /// # Errors
    /// If it was received before.
    pub fn receive_claimed(
        &mut self,
        claim: Claim,
        capacity: u64,
        id: u64,
    ) -> Result<(), CallError> {
        let message = self.queues.take_claimed(claim.0).ok_or(CallError::Claim)?;
        self.complete(Receive { id, capacity }, message);
        Ok(())
    }

    /// Takes a receive back. False: it has a message, or was taken back before.
    pub fn cancel(&mut self, ticket: Ticket) -> bool {
        let Some(wanted) = self.queues.cancel(ticket.0) else {
            return false;
        };
        self.counts(wanted.context).waiting -= 1;
        true
    }

    /// Ends the superstep: what is joined leaves, to near nodes first.
    pub fn flush(&mut self) {
        self.lines.flush(&mut self.statistics, &mut self.out);
    }

    /// Takes a parcel of another rank apart. The parcel is needed until the events of this call were looked at:
    /// [`Contents::bytes`].
    ///
    /// # Errors
    /// When the bytes are no parcel, or contain what its sender could not have sent. Then nothing has changed.
    #[inline]
    pub fn handle_parcel(&mut self, from: u32, bytes: &[u8]) -> Result<(), Refused> {
        let view = ParcelView::parse(bytes)?;
        check::parcel(self, from, &view)?;
        let mut end = HEAD_BYTES;
        for (number, (head, bytes)) in (0..).zip(view.parts()) {
            let start = end + PART_BYTES;
            end = start + bytes.len();
            if head.target != self.rank {
                self.statistics.handed_on += 1;
                self.lines.relay(&head, bytes);
                continue;
            }
            match part::read(number, &head, bytes)? {
                Part::Grant { freed } => self.peers[from as usize].granted(freed, self.window),
                Part::Notice(bytes) => {
                    let length = bytes.len();
                    let contents = Contents::in_parcel(start, length);
                    self.out.events.push_back(Event::Notice { from, contents });
                }
                Part::Message { context, content } => {
                    self.lines.heard_of(head.source);
                    self.arrive(&PartHead { context, ..head }, content, start);
                }
            }
        }
        self.lines
            .issue_relayed(&mut self.statistics, &mut self.out);
        Ok(())
    }

    /// Whether there is anything to poll: most calls leave nothing, and a driver need not enter its loop for them.
    #[inline]
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.out.events.is_empty() || !self.out.transmits.is_empty()
    }

    /// The next parcel to send.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.out.transmits.pop_front()
    }

    /// What happened to messages, oldest first.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.out.events.pop_front()
    }

    /// Gives the contents of an event back that were copied. Without this their memory is not used again.
    #[inline]
    pub fn give_back(&mut self, contents: Contents) {
        if let Source::Kept(block) = contents.0 {
            self.store.give_back(block);
        }
    }

    /// Gives the buffer of a parcel back that was sent.
    pub fn recycle(&mut self, parcel: Parcel) {
        self.lines.recycle(parcel);
    }

    /// Whether parcels come here for other ranks of the node too: who waits for those is not known here.
    #[must_use]
    pub fn hands_on(&self) -> bool {
        self.lines.leads_others()
    }

    /// The longest parcel that any rank makes, in bytes.
    #[must_use]
    pub fn longest_parcel(&self) -> usize {
        self.lines.longest()
    }

    /// What a rank keeps for each other at most, in bytes of window: a message counts 128 B and its length, rounded up
    /// to a power of two of at least 32.
    #[must_use]
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// How much of its window a rank has left for us, as far as we know; 0 for one that does not exist.
    #[must_use]
    pub fn room(&self, to: u32) -> u64 {
        self.peers.get(to as usize).map_or(0, Peer::room)
    }

    /// Counts of a context.
    #[must_use]
    pub fn context_counts(&self, context: u32) -> Counts {
        let counts = self.counts.get(context as usize);
        counts.copied().unwrap_or_default()
    }

    /// What was done so far.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    #[inline]
    fn check(&self, context: u32, rank: Option<u32>, tag: Option<i32>) -> Result<(), CallError> {
        let ranks = self.peers.len();
        if let Some(rank) = rank.filter(|&rank| rank as usize >= ranks) {
            return Err(CallError::Rank { rank, ranks });
        }
        if context >= MOST_CONTEXTS {
            return Err(CallError::Context(context));
        }
        tag.filter(|&tag| tag < 0)
            .map_or(Ok(()), |tag| Err(CallError::Tag(tag)))
    }

    #[inline]
    fn counts(&mut self, context: u32) -> &mut Counts {
        let index = context as usize;
        if self.counts.len() <= index {
            self.count_more(index + 1);
        }
        &mut self.counts[index]
    }

    #[cold]
    fn count_more(&mut self, contexts: usize) {
        self.counts.resize(contexts, Counts::default());
    }

    /// The next key of messages to a process that no open offer has.
    fn free_key(&mut self, to: u32) -> u32 {
        loop {
            let key = self.peers[to as usize].key(self.keys);
            if !self.offers.contains(&(to, key)) {
                return key;
            }
        }
    }

    fn push_envelope(&mut self, head: &PartHead, bytes: u64, key: u32, offered: bool) {
        self.lines.push(
            &reference_head(head),
            REFERENCE_BYTES,
            |room| write_reference(room, bytes, key, offered),
            &mut self.statistics,
            &mut self.out,
        );
    }

    /// Keeps a copy of a message of the process to itself, or hands it over.
    fn copy_to_self(&mut self, envelope: Envelope, fill: impl FnOnce(&mut [u8])) {
        let mut block = self.store.block(envelope.bytes as usize);
        fill(block.bytes_mut());
        self.take_room(self.rank, envelope.bytes);
        let body = Body::Stored(block);
        self.release(Message { envelope, body });
    }
}
