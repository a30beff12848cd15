//! What a process knows of each other one: numbers of messages, and room.

use crate::store::cost;

/// One peer, both ways.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// Number of the next message to it.
    next: u32,
    /// Messages by reference to it.
    references: u32,
    /// Offers to it that are open.
    pub(crate) offers: u32,
    /// What was sent of its room, and what may be, since the start.
    used: u64,
    allowed: u64,
    /// Number of the next message from it that is released.
    pub(crate) expected: u32,
    /// What came from it into our room, what of that was received, and what of that it knows.
    received: u64,
    freed: u64,
    told: u64,
}

impl Peer {
    pub(crate) const fn new(window: u64) -> Self {
        Self {
            next: 0,
            references: 0,
            offers: 0,
            used: 0,
            allowed: window,
            expected: 0,
            received: 0,
            freed: 0,
            told: 0,
        }
    }

    pub(crate) const fn number(&mut self) -> u32 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        number
    }

    /// A key from 1 to `keys`, in turn.
    pub(crate) const fn key(&mut self, keys: u32) -> u32 {
        self.references = self.references % keys + 1;
        self.references
    }

    /// What may be sent to it now.
    pub(crate) const fn room(&self) -> u64 {
        self.allowed - self.used
    }

    /// Takes room for a message; false: there is not enough.
    pub(crate) const fn take_room(&mut self, bytes: u64) -> bool {
        let fits = cost(bytes) <= self.room();
        if fits {
            self.used += cost(bytes);
        }
        fits
    }

    /// Whether it can have received so much of what was sent to it.
    pub(crate) const fn plausible(&self, freed: u64, window: u64) -> bool {
        freed <= self.used && freed >= self.allowed - window
    }

    /// It has received so much since the start.
    pub(crate) const fn granted(&mut self, freed: u64, window: u64) {
        self.allowed = freed + window;
    }

    /// What it may still send into our room.
    pub(crate) const fn left(&self, window: u64) -> u64 {
        window.saturating_sub(self.kept())
    }

    /// What we keep of it.
    pub(crate) const fn kept(&self) -> u64 {
        self.received - self.freed
    }

    /// A message came into our room.
    pub(crate) const fn keep(&mut self, bytes: u64) {
        self.received += cost(bytes);
    }

    /// A message of it was received: what to tell it, if it is time.
    pub(crate) const fn free(&mut self, bytes: u64, window: u64) -> Option<u64> {
        self.freed += cost(bytes);
        if self.freed - self.told < window / 2 {
            return None;
        }
        self.told = self.freed;
        Some(self.freed)
    }

    /// As if so many messages had gone each way.
    #[cfg(test)]
    pub(crate) const fn begin_at(&mut self, number: u32) {
        self.next = number;
        self.expected = number;
    }
}
