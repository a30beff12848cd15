//! From the network to the program: the order of each pair, matching, and what is kept meanwhile.

use raddle_schedule::parcel::PartHead;

use super::Matcher;
use crate::{
    calls::{Contents, Event, Fetch, Source},
    part::Content,
    queues::{Body, Envelope, Message, Receive},
    slab::Place,
    store::cost,
};

impl Matcher {
    /// A message came, perhaps before others of its pair. Its bytes begin at `start` of the parcel.
    #[inline]
    pub(super) fn arrive(&mut self, head: &PartHead, content: Content<'_>, start: usize) {
        let source = head.source;
        if let Content::Bytes(bytes) = content {
            self.take_room(source, bytes.len() as u64);
        }
        let mut next = self.peers[source as usize].expected;
        if head.sequence != next {
            let message = self.stored(head, content);
            self.ahead.insert((source, head.sequence), message);
            return;
        }
        self.pass(head, content, start);
        next = next.wrapping_add(1);
        while !self.ahead.is_empty()
            && let Some(message) = self.ahead.remove(&(source, next))
        {
            self.release(message);
            next = next.wrapping_add(1);
        }
        self.peers[source as usize].expected = next;
    }

    /// Releases a message; its bytes are copied only if no receive waits for it.
    #[inline]
    fn pass(&mut self, head: &PartHead, content: Content<'_>, start: usize) {
        if let Content::Bytes(bytes) = content {
            let envelope = envelope(head, bytes.len() as u64);
            match self.waiting_receive(&envelope) {
                Some(receive) => {
                    let length = fitting(&receive, bytes.len());
                    let contents = Contents::in_parcel(start, length);
                    self.deliver(&receive, &envelope, contents);
                }
                None => {
                    let body = Body::Stored(self.store.copy(bytes));
                    self.keep(Message { envelope, body });
                }
            }
        } else {
            let message = self.stored(head, content);
            self.release(message);
        }
    }

    /// Releases a message to the queues.
    #[inline]
    pub(super) fn release(&mut self, message: Message) {
        let envelope = message.envelope;
        if let Body::Reference { key, .. } = message.body
            && let Some(old) = self.references.remove(&(envelope.source, key))
        {
            self.set_aside(old, key);
        }
        match self.waiting_receive(&envelope) {
            Some(receive) => self.complete(receive, message),
            None => self.keep(message),
        }
    }

    #[inline]
    fn waiting_receive(&mut self, envelope: &Envelope) -> Option<Receive> {
        let receive = self.queues.take_receive(envelope)?;
        self.counts(envelope.context).waiting -= 1;
        Some(receive)
    }

    #[inline]
    fn keep(&mut self, message: Message) {
        self.statistics.unexpected += 1;
        let source = message.envelope.source;
        let reference = match message.body {
            Body::Reference { key, .. } => Some((source, key)),
            Body::Stored(_) => None,
        };
        let place = self.queues.keep(message);
        if let Some(reference) = reference {
            self.references.insert(reference, place);
        }
    }

    /// Another message of the same source has the key now.
    fn set_aside(&mut self, old: Place, key: u32) {
        if let Some(message) = self.queues.kept_mut(old) {
            let number = self.statistics.set_aside;
            self.statistics.set_aside += 1;
            message.body = Body::Reference {
                key,
                aside: Some(number),
                offered: false,
            };
            self.out.events.push_back(Event::SetAside {
                aside: number,
                message: message.envelope,
                key,
            });
        }
    }

    /// A receive gets a message that was kept.
    #[inline]
    pub(super) fn complete(&mut self, receive: Receive, message: Message) {
        let envelope = message.envelope;
        match message.body {
            Body::Stored(mut block) => {
                block.truncate(fitting(&receive, block.bytes().len()));
                self.deliver(&receive, &envelope, Contents(Source::Kept(block)));
            }
            Body::Reference {
                key,
                aside,
                offered,
            } => {
                self.counts(envelope.context).received += 1;
                let from = match aside {
                    Some(number) => Fetch::Aside(number),
                    None if offered => Fetch::Offered(key),
                    None => Fetch::Key(key),
                };
                if aside.is_none() {
                    self.references.remove(&(envelope.source, key));
                }
                self.out.events.push_back(Event::Fetch {
                    receive: receive.id,
                    capacity: receive.capacity,
                    message: envelope,
                    from,
                });
            }
        }
    }

    /// A receive gets the bytes of a message, which leaves its source's room.
    #[inline]
    fn deliver(&mut self, receive: &Receive, envelope: &Envelope, contents: Contents) {
        self.counts(envelope.context).received += 1;
        self.out.events.push_back(Event::Delivered {
            receive: receive.id,
            message: *envelope,
            contents,
        });

        let source = envelope.source;
        self.statistics.kept_bytes -= cost(envelope.bytes);
        let peer = &mut self.peers[source as usize];
        let Some(freed) = peer.free(envelope.bytes, self.window) else {
            return;
        };
        if source == self.rank {
            peer.granted(freed, self.window);
        } else {
            self.lines
                .grant(source, freed, &mut self.statistics, &mut self.out);
        }
    }

    #[inline]
    pub(super) fn take_room(&mut self, source: u32, bytes: u64) {
        self.peers[source as usize].keep(bytes);
        let statistics = &mut self.statistics;
        statistics.kept_bytes += cost(bytes);
        statistics.most_kept_bytes = statistics.most_kept_bytes.max(statistics.kept_bytes);
    }

    /// A message that can wait.
    #[inline]
    fn stored(&mut self, head: &PartHead, content: Content<'_>) -> Message {
        match content {
            Content::Bytes(bytes) => Message {
                envelope: envelope(head, bytes.len() as u64),
                body: Body::Stored(self.store.copy(bytes)),
            },
            Content::Reference {
                bytes,
                key,
                offered,
            } => Message {
                envelope: envelope(head, bytes),
                body: Body::Reference {
                    key,
                    aside: None,
                    offered,
                },
            },
        }
    }
}

/// How many of so many bytes a receive has room for.
fn fitting(receive: &Receive, bytes: usize) -> usize {
    usize::try_from(receive.capacity).map_or(bytes, |capacity| bytes.min(capacity))
}

pub(super) const fn envelope(head: &PartHead, bytes: u64) -> Envelope {
    Envelope {
        context: head.context,
        source: head.source,
        tag: head.tag,
        bytes,
    }
}
