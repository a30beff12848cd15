//! Messages on their way in: receive tokens, reassembly, order.

use std::collections::VecDeque;

use raddle_wire::rails::{Grant, Segment};
use thiserror::Error;

use super::{dropped::Dropped, event::Event, turns::MAX_PORTS};

/// Pairs of ports from which messages come, at most: 64 source ports for each of 64 target ports.
const MAX_STREAMS: usize = MAX_PORTS * MAX_PORTS;
/// No assembly.
const NONE: u32 = u32::MAX;

/// Where the driver is to copy the payload of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The receive token whose buffer it is for.
    pub token: u64,
    /// Byte of the buffer.
    pub offset: u64,
    /// Bytes.
    pub bytes: u16,
}

/// Why a port or a receive buffer is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum PortError {
    /// The port is open already.
    #[error("port {port} is already open")]
    IsOpen {
        /// The port.
        port: u16,
    },
    /// The port is not open.
    #[error("port {port} is not open")]
    NotOpen {
        /// The port.
        port: u16,
    },
    /// No more ports.
    #[error("64 ports are open, which is all that a connection has")]
    TooMany,
}

#[derive(Debug)]
struct Port {
    number: u16,
    longest: u64,
    tokens: VecDeque<u64>,
    /// Tokens provided, those taken by messages, and messages delivered, since the start.
    provided: u64,
    taken: u64,
    delivered: u64,
    /// What the other node was told last.
    granted: u64,
    /// The last grant was lost.
    lost: bool,
}

impl Port {
    /// Whether a grant is to be sent: the other node has used up half of what it may use, or does not know.
    const fn grant_is_due(&self) -> bool {
        let (told, all) = (self.granted - self.taken, self.provided - self.taken);
        self.lost || (self.provided > self.granted && told <= all / 2)
    }
}

/// Messages of one source port to one target port.
#[derive(Debug)]
struct Stream {
    key: u32,
    /// Sequence of the message that is delivered next.
    next: u64,
    /// Assemblies of the messages from there on.
    window: VecDeque<u32>,
}

/// A message that has begun to arrive.
#[derive(Debug, Default)]
struct Assembly {
    token: u64,
    length: u64,
    /// Segments that are missing.
    left: u64,
    /// Segments that are there.
    there: Vec<u64>,
}

/// What became of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    New(Placement),
    Duplicate,
}

/// All messages of a connection that come in.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    ports: Vec<Port>,
    /// By key.
    streams: Vec<Stream>,
    assemblies: Vec<Assembly>,
    free: Vec<u32>,
}

impl Inbox {
    pub(super) fn open(&mut self, number: u16, longest: u64) -> Result<(), PortError> {
        if self.port(number).is_some() {
            return Err(PortError::IsOpen { port: number });
        }
        if self.ports.len() == MAX_PORTS {
            return Err(PortError::TooMany);
        }
        self.ports.push(Port {
            number,
            longest,
            tokens: VecDeque::new(),
            provided: 0,
            taken: 0,
            delivered: 0,
            granted: 0,
            lost: false,
        });
        Ok(())
    }

    pub(super) fn provide(&mut self, number: u16, token: u64) -> Result<(), PortError> {
        let index = self
            .port(number)
            .ok_or(PortError::NotOpen { port: number })?;
        let port = &mut self.ports[index];
        port.tokens.push_back(token);
        port.provided += 1;
        Ok(())
    }

    fn port(&self, number: u16) -> Option<usize> {
        self.ports.iter().position(|port| port.number == number)
    }

    /// Messages that have begun and are not delivered.
    pub(super) fn begun(&self) -> usize {
        self.assemblies.len() - self.free.len()
    }

    // Grants.

    /// Whether a grant is to be sent.
    pub(super) fn grant_is_due(&self) -> bool {
        self.ports.iter().any(Port::grant_is_due)
    }

    /// A grant that is to be sent, and its port's index.
    pub(super) fn take_grant(&mut self) -> Option<(usize, Grant)> {
        let index = self.ports.iter().position(Port::grant_is_due)?;
        let port = &mut self.ports[index];
        port.granted = port.provided;
        port.lost = false;
        let grant = Grant {
            port: port.number,
            reserved: 0,
            messages: port.provided,
            longest: port.longest,
        };
        Some((index, grant))
    }

    /// A grant may not have arrived.
    pub(super) fn on_grant_lost(&mut self, index: usize) {
        self.ports[index].lost = true;
    }

    // Segments.

    /// A segment of the other node, which cuts messages every `cut` bytes.
    pub(super) fn take(
        &mut self,
        segment: &Segment,
        cut: u64,
        events: &mut VecDeque<Event>,
    ) -> Result<Taken, Dropped> {
        let port = self.port(segment.target_port).ok_or(Dropped::ClosedPort)?;
        let expected = cut.min(segment.length - segment.offset);
        if !segment.offset.is_multiple_of(cut) || u64::from(segment.payload) != expected {
            return Err(Dropped::Malformed);
        }
        let stream = self.stream(segment)?;
        let Some(ahead) = segment.sequence.checked_sub(self.streams[stream].next) else {
            return Ok(Taken::Duplicate);
        };
        let slot = self.assembly(port, stream, ahead, segment, cut)?;
        let assembly = &mut self.assemblies[slot as usize];
        if assembly.length != segment.length {
            return Err(Dropped::Malformed);
        }
        let index = segment.offset / cut;
        let (word, bit) = ((index / 64) as usize, 1 << (index % 64));
        if assembly.there[word] & bit != 0 {
            return Ok(Taken::Duplicate);
        }
        assembly.there[word] |= bit;
        assembly.left -= 1;
        let placement = Placement {
            token: assembly.token,
            offset: segment.offset,
            bytes: segment.payload,
        };
        if assembly.left == 0 {
            self.deliver(port, stream, events);
        }
        Ok(Taken::New(placement))
    }

    /// The stream of a segment, which is made if it is the first.
    fn stream(&mut self, segment: &Segment) -> Result<usize, Dropped> {
        let key = u32::from(segment.source_port) << 16 | u32::from(segment.target_port);
        match self.streams.binary_search_by_key(&key, |stream| stream.key) {
            Ok(index) => Ok(index),
            Err(_) if self.streams.len() == MAX_STREAMS => Err(Dropped::NoToken),
            Err(index) => {
                let stream = Stream {
                    key,
                    next: 0,
                    window: VecDeque::new(),
                };
                self.streams.insert(index, stream);
                Ok(index)
            }
        }
    }

    /// The assembly of a message that is `ahead` of the next one to deliver; a new one takes a token.
    fn assembly(
        &mut self,
        port: usize,
        stream: usize,
        ahead: u64,
        segment: &Segment,
        cut: u64,
    ) -> Result<u32, Dropped> {
        let port = &mut self.ports[port];
        // Every message from the next on to this one was granted.
        if ahead >= port.granted - port.delivered {
            return Err(Dropped::NoToken);
        }
        let (window, ahead) = (&mut self.streams[stream].window, ahead as usize);
        if let Some(slot) = window.get(ahead).filter(|slot| **slot != NONE) {
            return Ok(*slot);
        }
        if segment.length > port.longest {
            return Err(Dropped::TooLong);
        }
        if port.taken == port.granted {
            return Err(Dropped::NoToken);
        }
        let token = port.tokens.pop_front().ok_or(Dropped::NoToken)?;
        port.taken += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.assemblies.push(Assembly::default());
            self.assemblies.len() as u32 - 1
        });
        let assembly = &mut self.assemblies[slot as usize];
        let segments = segment.length.div_ceil(cut).max(1);
        assembly.token = token;
        assembly.length = segment.length;
        assembly.left = segments;
        assembly.there.clear();
        assembly.there.resize(segments.div_ceil(64) as usize, 0);
        if window.len() <= ahead {
            window.resize(ahead + 1, NONE);
        }
        window[ahead] = slot;
        Ok(slot)
    }

    /// Delivers what is whole, in order.
    fn deliver(&mut self, port: usize, stream: usize, events: &mut VecDeque<Event>) {
        let Stream { key, next, window } = &mut self.streams[stream];
        while let Some(slot) = window.front().copied()
            && slot != NONE
            && self.assemblies[slot as usize].left == 0
        {
            let assembly = &self.assemblies[slot as usize];
            events.push_back(Event::Received {
                token: assembly.token,
                source_port: (*key >> 16) as u16,
                target_port: *key as u16,
                length: assembly.length,
            });
            window.pop_front();
            *next += 1;
            self.ports[port].delivered += 1;
            self.free.push(slot);
        }
    }

    /// Gives all buffers back, those of messages that have begun too.
    pub(super) fn fail(&mut self, events: &mut VecDeque<Event>) {
        let slots = self.streams.iter().flat_map(|stream| &stream.window);
        let begun = slots.filter(|slot| **slot != NONE);
        let tokens = begun.map(|slot| self.assemblies[*slot as usize].token);
        let unused = self.ports.iter().flat_map(|port| &port.tokens).copied();
        events.extend(tokens.chain(unused).map(|token| Event::Returned { token }));
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn short(source_port: u16, sequence: u64) -> Segment {
        Segment {
            source_port,
            target_port: 4,
            payload: 8,
            reserved: 0,
            sequence,
            length: 8,
            offset: 0,
        }
    }

    /// Tokens that the other node was not told of are not its to use.
    #[test]
    fn messages_beyond_the_grant_are_refused() {
        let (mut inbox, mut events) = (Inbox::default(), VecDeque::new());
        inbox.open(4, 8).unwrap();
        assert_eq!(
            inbox.take(&short(0, 0), 8, &mut events),
            Err(Dropped::NoToken)
        );
        inbox.provide(4, 70).unwrap();
        assert_eq!(inbox.take_grant().unwrap().1.messages, 1);
        for token in 71..74 {
            inbox.provide(4, token).unwrap();
        }
        let taken = inbox.take(&short(0, 0), 8, &mut events);
        assert!(matches!(taken, Ok(Taken::New(Placement { token: 70, .. }))));
        for segment in [short(0, 1), short(1, 0), short(1, 9)] {
            assert_eq!(inbox.take(&segment, 8, &mut events), Err(Dropped::NoToken));
        }
        assert_eq!(inbox.take_grant().unwrap().1.messages, 4);
        assert!(inbox.take_grant().is_none());
        let taken = inbox.take(&short(1, 0), 8, &mut events);
        assert!(matches!(taken, Ok(Taken::New(Placement { token: 71, .. }))));
    }

    /// Half of what was granted is used up before it is granted anew, and a lost grant is made again.
    #[test]
    fn grants_are_made_by_halves() {
        let (mut inbox, mut events) = (Inbox::default(), VecDeque::new());
        inbox.open(4, 8).unwrap();
        for token in 0..4 {
            inbox.provide(4, token).unwrap();
        }
        let (port, grant) = inbox.take_grant().unwrap();
        assert_eq!((grant.port, grant.messages, grant.longest), (4, 4, 8));
        let mut granted = Vec::new();
        for sequence in 0..8 {
            inbox.take(&short(0, sequence), 8, &mut events).unwrap();
            inbox.provide(4, sequence).unwrap();
            granted.extend(inbox.take_grant().map(|(_, grant)| grant.messages));
        }
        assert_eq!(granted, [6, 8, 10, 12]);
        assert_eq!(events.len(), 8);
        inbox.on_grant_lost(port);
        assert_eq!(inbox.take_grant().unwrap().1.messages, 12);
    }
}
