//! Messages on their way out: what is to be cut next, and what is to be sent again.

use std::collections::VecDeque;

use raddle_wire::rails::{Grant, Segment};

use super::{
    event::{Event, SendError, SendFailure},
    sent::Piece,
    turns::Turns,
};

/// What is to be sent of a message: where it is for, and the token of its buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Described {
    pub(super) segment: Segment,
    pub(super) token: u64,
    /// It ends the message.
    pub(super) is_last: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Message {
    source_port: u16,
    target_port: u16,
    sequence: u64,
    length: u64,
    /// First byte that was not cut.
    cut: u64,
    /// Segments that have not arrived.
    left: u64,
    token: u64,
    in_use: bool,
}

/// All messages of a connection that have not arrived.
#[derive(Debug)]
pub(super) struct Outbox {
    segment: u64,
    messages: Vec<Message>,
    free: Vec<u32>,
    turns: Turns,
    /// What is to be sent again, or was bound to a rail that does not work.
    pool: VecDeque<Piece>,
    pool_bytes: u64,
}

impl Outbox {
    pub(super) fn new(segment: u16, send_queue: usize) -> Self {
        Self {
            segment: segment.into(),
            messages: vec![Message::default(); send_queue],
            free: (0..send_queue as u32).rev().collect(),
            turns: Turns::default(),
            pool: VecDeque::new(),
            pool_bytes: 0,
        }
    }

    /// Messages that have not arrived.
    pub(super) fn len(&self) -> usize {
        self.messages.len() - self.free.len()
    }

    /// Bytes that any rail may take now.
    pub(super) const fn unsent(&self) -> u64 {
        self.turns.ready_bytes() + self.pool_bytes
    }

    /// Whether there is anything for any rail, be it a message without bytes.
    pub(super) fn has_work(&self) -> bool {
        !self.turns.is_empty() || !self.pool.is_empty()
    }

    pub(super) fn send(
        &mut self,
        source_port: u16,
        target_port: u16,
        length: u64,
        token: u64,
    ) -> Result<(), SendError> {
        let target = self
            .turns
            .target(target_port)
            .ok_or(SendError::Ports { port: target_port })?;
        let limit = self.messages.len();
        let slot = *self.free.last().ok_or(SendError::QueueFull { limit })?;
        self.turns.admit(target, source_port, length)?;
        self.free.pop();
        self.messages[slot as usize] = Message {
            source_port,
            target_port,
            sequence: 0,
            length,
            cut: 0,
            left: length.div_ceil(self.segment).max(1),
            token,
            in_use: true,
        };
        self.turns.push(target, slot, length);
        Ok(())
    }

    /// The other node says what a port takes.
    pub(super) fn on_grant(&mut self, grant: &Grant) {
        self.turns.on_grant(grant);
    }

    /// Begins the first message of the target whose turn it is, so that it has a sequence number; gives its slot. Messages that
    /// turn out to be too long fail. `None`: no target is ready.
    fn begin(&mut self, events: &mut VecDeque<Event>) -> Option<u32> {
        loop {
            let target = self.turns.current()?;
            let (slot, is_begun) = target.first();
            if is_begun {
                return Some(slot);
            }
            let message = &mut self.messages[slot as usize];
            let longest = target.longest();
            if message.length <= longest {
                message.sequence = target.begin(message.source_port);
                return Some(slot);
            }
            events.push_back(Event::SendFailed {
                token: message.token,
                error: SendFailure::TooLong { longest },
            });
            self.turns.drop_first(message.length);
            self.release(slot);
        }
    }

    /// What any rail may send next, one segment: first what is to be sent again.
    pub(super) fn take_segment(&mut self, events: &mut VecDeque<Event>) -> Option<Piece> {
        if let Some(piece) = self.take_again() {
            return Some(piece);
        }
        let slot = self.begin(events)?;
        Some(self.cut(slot, self.segment))
    }

    /// One segment of what is to be sent again.
    pub(super) fn take_again(&mut self) -> Option<Piece> {
        let front = self.pool.front_mut()?;
        let piece = Piece {
            end: front.end.min(front.offset + self.segment),
            ..*front
        };
        front.offset = piece.end;
        if front.offset == front.end {
            self.pool.pop_front();
        }
        self.pool_bytes -= piece.bytes();
        Some(piece)
    }

    /// Source port and length of the message that is to be cut next.
    pub(super) fn next_message(&mut self, events: &mut VecDeque<Event>) -> Option<(u16, u64)> {
        let slot = self.begin(events)?;
        let message = &self.messages[slot as usize];
        Some((message.source_port, message.length))
    }

    /// The whole of that message.
    pub(super) fn take_message(&mut self, events: &mut VecDeque<Event>) -> Option<Piece> {
        let slot = self.begin(events)?;
        Some(self.cut(slot, u64::MAX))
    }

    /// Cuts up to `most` bytes off the message whose turn it is.
    fn cut(&mut self, slot: u32, most: u64) -> Piece {
        let message = &mut self.messages[slot as usize];
        let end = message.length.min(message.cut.saturating_add(most));
        let piece = Piece {
            message: slot,
            offset: message.cut,
            end,
        };
        message.cut = end;
        let segments = piece.bytes().div_ceil(self.segment).max(1);
        self.turns
            .spend(piece.bytes(), segments, end == message.length);
        piece
    }

    /// A piece that did not arrive, or that its rail gives back.
    pub(super) fn requeue(&mut self, piece: Piece) {
        self.pool_bytes += piece.bytes();
        self.pool.push_back(piece);
    }

    /// A piece of one segment arrived.
    pub(super) fn on_arrived(&mut self, piece: Piece, events: &mut VecDeque<Event>) {
        let message = &mut self.messages[piece.message as usize];
        message.left -= 1;
        if message.left == 0 {
            events.push_back(Event::Sent {
                token: message.token,
            });
            self.release(piece.message);
        }
    }

    /// The first segment of `piece`, for the wire.
    pub(super) fn describe(&self, piece: Piece) -> Described {
        let message = &self.messages[piece.message as usize];
        Described {
            segment: Segment {
                source_port: message.source_port,
                target_port: message.target_port,
                payload: piece.bytes() as u16,
                reserved: 0,
                sequence: message.sequence,
                length: message.length,
                offset: piece.offset,
            },
            token: message.token,
            is_last: piece.end == message.length,
        }
    }

    /// Gives everything up; each message fails with `error`.
    pub(super) fn fail(&mut self, error: SendFailure, events: &mut VecDeque<Event>) {
        for message in self.messages.iter().filter(|message| message.in_use) {
            events.push_back(Event::SendFailed {
                token: message.token,
                error,
            });
        }
        *self = Self::new(self.segment as u16, self.messages.len());
    }

    fn release(&mut self, slot: u32) {
        self.messages[slot as usize].in_use = false;
        self.free.push(slot);
    }
}
