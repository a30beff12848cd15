//! Messages on their way out: who waits for tokens, what is to be cut next, what is to be sent again.

use std::collections::VecDeque;

use raddle_wire::rails::{Grant, Segment};
use thiserror::Error;

use super::{
    event::{Event, SendFailure},
    sent::Piece,
};

/// Ports of the other node that a connection knows at most, and source ports that send to one of them.
pub const MAX_PORTS: usize = 64;
/// Segments that a port sends before another has its turn.
const BURST: u32 = 16;

/// Why a message is not taken. Nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// No send token is left: wait until a message has arrived.
    #[error("{limit} messages are on their way, which is all that the connection takes")]
    QueueFull {
        /// The configuration's `send_queue`.
        limit: usize,
    },
    /// More than the port takes.
    #[error("port {port} takes messages of up to {longest} bytes, this one has {length}")]
    TooLong {
        /// The target port.
        port: u16,
        /// Bytes of the message.
        length: u64,
        /// Bytes that the port takes.
        longest: u64,
    },
    /// Too many ports.
    #[error(
        "a connection knows up to 64 ports of the other node and 64 that send to each; {port} is one more"
    )]
    Ports {
        /// The port.
        port: u16,
    },
    /// The connection has failed.
    #[error("the connection has failed")]
    Closed,
}

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

/// A port of the other node.
#[derive(Debug)]
struct Target {
    port: u16,
    /// Messages that it takes in all, and that were begun.
    granted: u64,
    begun: u64,
    longest: u64,
    /// Messages not wholly cut, in order; the first may have been begun.
    waiting: VecDeque<u32>,
    /// Bytes of them that were not cut.
    bytes: u64,
    is_begun: bool,
    /// Next sequence number by source port.
    sequences: Vec<(u16, u64)>,
    in_turn: bool,
    burst: u32,
}

impl Target {
    fn is_ready(&self) -> bool {
        !self.waiting.is_empty() && (self.is_begun || self.begun < self.granted)
    }

    fn next_sequence(&mut self, source_port: u16) -> u64 {
        let known = self
            .sequences
            .iter_mut()
            .find(|(port, _)| *port == source_port);
        let (_, next) = known.expect("the port was added when the message was taken");
        *next += 1;
        *next - 1
    }
}

/// All messages of a connection that have not arrived.
#[derive(Debug)]
pub(super) struct Outbox {
    segment: u64,
    messages: Vec<Message>,
    free: Vec<u32>,
    targets: Vec<Target>,
    /// Targets that are ready, in turn.
    turns: VecDeque<usize>,
    /// Uncut bytes of the ready targets.
    ready_bytes: u64,
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
            targets: Vec::new(),
            turns: VecDeque::new(),
            ready_bytes: 0,
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
        self.ready_bytes + self.pool_bytes
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
            .target(target_port)
            .ok_or(SendError::Ports { port: target_port })?;
        let limit = self.messages.len();
        let slot = *self.free.last().ok_or(SendError::QueueFull { limit })?;
        let Target {
            longest,
            granted,
            sequences,
            ..
        } = &mut self.targets[target];
        if *granted > 0 && length > *longest {
            let (port, longest) = (target_port, *longest);
            return Err(SendError::TooLong {
                port,
                length,
                longest,
            });
        }
        if !sequences.iter().any(|(port, _)| *port == source_port) {
            if sequences.len() == MAX_PORTS {
                return Err(SendError::Ports { port: source_port });
            }
            sequences.push((source_port, 0));
        }
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
        let target_state = &mut self.targets[target];
        target_state.waiting.push_back(slot);
        target_state.bytes += length;
        if target_state.in_turn {
            self.ready_bytes += length;
        }
        self.line_up(target);
        Ok(())
    }

    /// The other node says what a port takes. An older grant that comes late changes nothing.
    pub(super) fn on_grant(&mut self, grant: &Grant) {
        if let Some(target) = self.target(grant.port)
            && grant.messages > self.targets[target].granted
        {
            self.targets[target].granted = grant.messages;
            self.targets[target].longest = grant.longest;
            self.line_up(target);
        }
    }

    /// Index of a port, which is added if there is room.
    fn target(&mut self, port: u16) -> Option<usize> {
        let known = self.targets.iter().position(|target| target.port == port);
        if known.is_some() || self.targets.len() == MAX_PORTS {
            return known;
        }
        self.targets.push(Target {
            port,
            granted: 0,
            begun: 0,
            longest: 0,
            waiting: VecDeque::new(),
            bytes: 0,
            is_begun: false,
            sequences: Vec::new(),
            in_turn: false,
            burst: 0,
        });
        Some(self.targets.len() - 1)
    }

    /// Puts a target into the turns if it is ready and not there.
    fn line_up(&mut self, index: usize) {
        let target = &mut self.targets[index];
        if !target.in_turn && target.is_ready() {
            target.in_turn = true;
            target.burst = BURST;
            self.ready_bytes += target.bytes;
            self.turns.push_back(index);
        }
    }

    /// Takes the target whose turn it is out of the turns.
    fn step_back(&mut self) {
        let index = self.turns.pop_front().expect("it had its turn");
        self.targets[index].in_turn = false;
        self.ready_bytes -= self.targets[index].bytes;
    }

    /// Begins the first message of the target whose turn it is, so that it has a sequence number; gives its slot. Messages that
    /// turn out to be too long fail. `None`: no target is ready.
    fn begin(&mut self, events: &mut VecDeque<Event>) -> Option<u32> {
        loop {
            let index = *self.turns.front()?;
            let target = &mut self.targets[index];
            let slot = *target
                .waiting
                .front()
                .expect("a ready target has a message");
            if target.is_begun {
                return Some(slot);
            }
            let message = &mut self.messages[slot as usize];
            if message.length <= target.longest {
                message.sequence = target.next_sequence(message.source_port);
                target.begun += 1;
                target.is_begun = true;
                return Some(slot);
            }
            let error = SendFailure::TooLong {
                longest: target.longest,
            };
            events.push_back(Event::SendFailed {
                token: message.token,
                error,
            });
            target.waiting.pop_front();
            target.bytes -= message.length;
            self.ready_bytes -= message.length;
            self.release(slot);
            if !self.targets[index].is_ready() {
                self.step_back();
            }
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
        let index = self.turns[0];
        let target = &mut self.targets[index];
        target.bytes -= piece.bytes();
        self.ready_bytes -= piece.bytes();
        target.burst -= 1;
        if end == message.length {
            target.waiting.pop_front();
            target.is_begun = false;
        }
        if !target.is_ready() {
            self.step_back();
        } else if target.burst == 0 {
            target.burst = BURST;
            self.turns.rotate_left(1);
        }
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
