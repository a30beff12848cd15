//! Ports of the other node: what waits for each, whether it may begin, and whose turn it is.

use std::collections::VecDeque;

use raddle_wire::rails::Grant;

use super::event::SendError;

/// Ports of the other node that a connection knows at most, and source ports that send to one of them.
pub const MAX_PORTS: usize = 64;
/// Segments after which another port has its turn. What is bound whole to rails counts all of its segments, so that a port
/// has its turn for one long message, or as many short ones.
const BURST: u64 = 16;

/// A port of the other node.
#[derive(Debug)]
pub(super) struct Target {
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
    /// Segments that are left of its turn.
    burst: u64,
}

impl Target {
    const fn new(port: u16) -> Self {
        Self {
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
        }
    }

    fn is_ready(&self) -> bool {
        !self.waiting.is_empty() && (self.is_begun || self.begun < self.granted)
    }

    /// Its first message, and whether that was begun. It has one when it is ready.
    pub(super) fn first(&self) -> (u32, bool) {
        let first = self.waiting.front();
        (*first.expect("a ready target has a message"), self.is_begun)
    }

    /// Bytes of the longest message that it takes.
    pub(super) const fn longest(&self) -> u64 {
        self.longest
    }

    /// Begins its first message, which comes from `source_port`; gives its sequence number.
    pub(super) fn begin(&mut self, source_port: u16) -> u64 {
        self.begun += 1;
        self.is_begun = true;
        let known = self
            .sequences
            .iter_mut()
            .find(|(port, _)| *port == source_port);
        let (_, next) = known.expect("the port was added when the message was taken");
        *next += 1;
        *next - 1
    }
}

/// All ports that messages were sent to or that granted some.
#[derive(Debug, Default)]
pub(super) struct Turns {
    targets: Vec<Target>,
    /// Those that are ready, in turn.
    order: VecDeque<usize>,
    /// Uncut bytes of the ready targets.
    ready_bytes: u64,
}

impl Turns {
    /// Uncut bytes of messages that may begin or have.
    pub(super) const fn ready_bytes(&self) -> u64 {
        self.ready_bytes
    }

    /// Whether no target is ready.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Index of a port, which is added if there is room.
    pub(super) fn target(&mut self, port: u16) -> Option<usize> {
        let known = self.targets.iter().position(|target| target.port == port);
        if known.is_some() || self.targets.len() == MAX_PORTS {
            return known;
        }
        self.targets.push(Target::new(port));
        Some(self.targets.len() - 1)
    }

    /// Makes sure that a target can take a message of `length` bytes from `source_port`, as far as that is known.
    pub(super) fn admit(
        &mut self,
        target: usize,
        source_port: u16,
        length: u64,
    ) -> Result<(), SendError> {
        let Target {
            port,
            longest,
            granted,
            sequences,
            ..
        } = &mut self.targets[target];
        if *granted > 0 && length > *longest {
            let (port, longest) = (*port, *longest);
            return Err(SendError::TooLong {
                port,
                length,
                longest,
            });
        }
        if !sequences.iter().any(|(known, _)| *known == source_port) {
            if sequences.len() == MAX_PORTS {
                return Err(SendError::Ports { port: source_port });
            }
            sequences.push((source_port, 0));
        }
        Ok(())
    }

    /// Adds a message of `length` bytes that was admitted.
    pub(super) fn push(&mut self, index: usize, message: u32, length: u64) {
        let target = &mut self.targets[index];
        target.waiting.push_back(message);
        target.bytes += length;
        if target.in_turn {
            self.ready_bytes += length;
        }
        self.line_up(index);
    }

    /// The other node says what a port takes. An older grant that comes late changes nothing.
    pub(super) fn on_grant(&mut self, grant: &Grant) {
        if let Some(index) = self.target(grant.port)
            && grant.messages > self.targets[index].granted
        {
            self.targets[index].granted = grant.messages;
            self.targets[index].longest = grant.longest;
            self.line_up(index);
        }
    }

    /// The target whose turn it is.
    pub(super) fn current(&mut self) -> Option<&mut Target> {
        let index = *self.order.front()?;
        Some(&mut self.targets[index])
    }

    /// The first message of the target whose turn it is has `length` bytes and cannot be sent.
    pub(super) fn drop_first(&mut self, length: u64) {
        let index = self.order[0];
        let target = &mut self.targets[index];
        target.waiting.pop_front();
        target.bytes -= length;
        self.ready_bytes -= length;
        if !target.is_ready() {
            self.step_back();
        }
    }

    /// So many bytes in so many segments were cut off the first message of the target whose turn it is, or all that was left.
    pub(super) fn spend(&mut self, bytes: u64, segments: u64, is_all: bool) {
        let index = self.order[0];
        let target = &mut self.targets[index];
        target.bytes -= bytes;
        self.ready_bytes -= bytes;
        target.burst = target.burst.saturating_sub(segments);
        if is_all {
            target.waiting.pop_front();
            target.is_begun = false;
        }
        if !target.is_ready() {
            self.step_back();
        } else if target.burst == 0 {
            target.burst = BURST;
            self.order.rotate_left(1);
        }
    }

    /// Puts a target into the turns if it is ready and not there.
    fn line_up(&mut self, index: usize) {
        let target = &mut self.targets[index];
        if !target.in_turn && target.is_ready() {
            target.in_turn = true;
            target.burst = BURST;
            self.ready_bytes += target.bytes;
            self.order.push_back(index);
        }
    }

    /// Takes the target whose turn it is out of the turns.
    fn step_back(&mut self) {
        let index = self.order.pop_front().expect("it had its turn");
        self.targets[index].in_turn = false;
        self.ready_bytes -= self.targets[index].bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ports 0 and 1 with a message of `segments` segments after the other: whose turn it is, message by message.
    fn order(segments: u64) -> Vec<u16> {
        let mut turns = Turns::default();
        for (message, port) in (0..80).map(|message| (message, (message / 40) as u16)) {
            let target = turns.target(port).unwrap();
            turns.admit(target, 0, segments).unwrap();
            turns.push(target, message, segments);
            let grant = Grant {
                port,
                reserved: 0,
                messages: 100,
                longest: 1000,
            };
            turns.on_grant(&grant);
        }
        let mut order = Vec::new();
        while let Some(target) = turns.current() {
            target.begin(0);
            order.push(target.port);
            turns.spend(segments, segments, true);
        }
        assert_eq!((order.len(), turns.ready_bytes()), (80, 0));
        order
    }

    #[test]
    fn a_port_has_its_turn_for_one_long_message_or_several_short_ones() {
        let turn = |order: Vec<u16>| order.iter().take_while(|port| **port == 0).count();
        assert_eq!(turn(order(1000)), 1);
        assert_eq!(turn(order(16)), 1);
        assert_eq!(turn(order(15)), 2);
        assert_eq!(turn(order(1)), 16);
        assert_eq!(order(500)[..6], [0, 1, 0, 1, 0, 1]);
    }
}
