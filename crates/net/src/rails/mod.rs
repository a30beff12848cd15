//! Messages over rails in real time: one UDP socket per rail, and the memory of messages.
//!
//! The interface is that of a user-level network: memory is registered once for all rails, ports are opened, buffers sent and
//! provided, and events say when one is given back. Nothing waits inside but [`Node::wait`].
//!
//! ```no_run
//! # use raddle_net::rails::{Node, NodeEvent, RailAddress};
//! # use raddle_transport::rails::Config;
//! # fn run(config: Config, rails: &[RailAddress]) -> Result<(), Box<dyn std::error::Error>> {
//! let mut node = Node::open(config, rails)?;
//! let buffer = node.register(b"a message".to_vec());
//! node.send(0, 5, buffer, 9)?;
//! loop {
//!     while let Some(event) = node.poll_event() {
//!         if event == (NodeEvent::Sent { buffer }) {
//!             return Ok(());
//!         }
//!     }
//!     node.wait(raddle_units::Span::from_us(50))?;
//! }
//! # }
//! ```

mod memory;
mod neighbours;
mod segment;

use std::{io, net::SocketAddrV4, ptr::NonNull};

use raddle_transport::rails::{
    Config, ConfigError, Connection, Event, Failure, PortError, Reception, SendError, SendFailure,
    Transmit,
};
use raddle_units::{Span, Time};
use thiserror::Error;

pub use memory::{Buffer, BufferError};

use crate::{
    clock::{Clock, duration},
    datagrams::{DatagramSocket, MAX_TRAIN, MAX_TRAIN_BYTES},
    readiness::Readiness,
};
use memory::Memory;
use neighbours::Neighbours;

/// Trains that are received from a rail before what they bring about is sent.
const TURN: usize = 8;
/// Steps at most after which it is seen what is due, though more has come that is not received yet.
const BEHIND: u32 = 8;
/// Longest sleep.
const SLEEP: Span = Span::from_ms(100);

/// The two ends of a rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RailAddress {
    /// This node's address, that of the rail's interface.
    pub local: SocketAddrV4,
    /// The other node's.
    pub peer: SocketAddrV4,
}

/// Why a node cannot begin.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// As many addresses as rates are needed.
    #[error("{rates} rates for {addresses} rails")]
    Count {
        /// Rates in the configuration.
        rates: usize,
        /// Addresses given.
        addresses: usize,
    },
    /// The system cannot watch the sockets.
    #[error("the rails' sockets cannot be watched: {0}")]
    Watch(io::Error),
    /// The system refuses a socket.
    #[error("rail {rail} from {} to {}: {error}", address.local, address.peer)]
    Socket {
        /// The rail.
        rail: usize,
        /// Its addresses.
        address: RailAddress,
        /// What the system says.
        error: io::Error,
    },
}

/// Why a buffer is not sent or provided. Nothing has changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UseError {
    /// The buffer cannot be used so.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// The message is not taken.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The port does not take it.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeEvent {
    /// Both nodes know each other.
    Established,
    /// A rail carries data.
    RailUp {
        /// Its number.
        rail: usize,
    },
    /// A rail is silent.
    RailDown {
        /// Its number.
        rail: usize,
    },
    /// A message has arrived; its buffer is free.
    Sent {
        /// It.
        buffer: Buffer,
    },
    /// A message was not sent; its buffer is free.
    SendFailed {
        /// It.
        buffer: Buffer,
        /// Why.
        error: SendFailure,
    },
    /// A message is in a buffer, from its first byte on.
    Received {
        /// The buffer.
        buffer: Buffer,
        /// The port that sent it.
        source_port: u16,
        /// The port that it is for.
        target_port: u16,
        /// Its bytes.
        length: u64,
    },
    /// The connection failed: a buffer comes back without a message.
    Returned {
        /// It.
        buffer: Buffer,
    },
    /// The connection failed; nothing comes after this.
    Failed(Failure),
}

/// A rail's socket, and the train that is being made up for it.
#[derive(Debug)]
struct Rail {
    socket: DatagramSocket,
    train: Vec<u8>,
    /// Bytes of each datagram of the train.
    size: usize,
    datagrams: usize,
}

impl Rail {
    /// Adds a datagram of `length` bytes, which `write` writes; gives the packets that were refused.
    fn add(&mut self, length: usize, write: impl FnOnce(&mut [u8]) -> bool) -> u64 {
        let is_full = self.datagrams == MAX_TRAIN || self.train.len() + length > MAX_TRAIN_BYTES;
        // A shorter one ends a train, a longer one begins another.
        let mut refused = if is_full || length > self.size {
            self.flush()
        } else {
            0
        };
        if self.datagrams == 0 {
            self.size = length;
        }
        let at = self.train.len();
        self.train.resize(at + length, 0);
        if !write(&mut self.train[at..]) {
            self.train.truncate(at);
            return refused + 1;
        }
        self.datagrams += 1;
        if length < self.size {
            refused += self.flush();
        }
        refused
    }

    /// Sends the train; gives the packets that were refused.
    fn flush(&mut self) -> u64 {
        let datagrams = std::mem::take(&mut self.datagrams) as u64;
        if datagrams == 0 {
            return 0;
        }
        let outcome = self.socket.send_train(&self.train, self.size);
        self.train.clear();
        self.size = 0;
        if outcome.is_err() { datagrams } else { 0 }
    }
}

/// This node's end of a connection over rails.
#[derive(Debug)]
pub struct Node {
    clock: Clock,
    connection: Connection,
    rails: Vec<Rail>,
    readiness: Readiness,
    /// `None` where there is no shared memory.
    neighbours: Option<Neighbours>,
    memory: Memory,
    /// Open ports and the longest message of each.
    ports: Vec<(u16, u64)>,
    buffer: Box<[u8]>,
    /// Steps since all that had come was received.
    behind: u32,
    refused: u64,
}

impl Node {
    /// Opens a socket per rail and begins to greet the other node.
    ///
    /// # Errors
    /// When the configuration is wrong or the system refuses a socket.
    pub fn open(config: Config, rails: &[RailAddress]) -> Result<Self, OpenError> {
        if config.rails.len() != rails.len() {
            let (rates, addresses) = (config.rails.len(), rails.len());
            return Err(OpenError::Count { rates, addresses });
        }
        let ends = |rail: &RailAddress| (*rail.local.ip(), *rail.peer.ip());
        let neighbours = Neighbours::join(config.epoch, rails.iter().map(ends)).ok();
        let clock = Clock::start();
        let connection = Connection::new(clock.now(), config)?;
        let open = |(rail, address): (usize, &RailAddress)| {
            let socket = DatagramSocket::open(address.local, address.peer).map_err(|error| {
                OpenError::Socket {
                    rail,
                    address: *address,
                    error,
                }
            })?;
            Ok(Rail {
                socket,
                train: Vec::with_capacity(MAX_TRAIN_BYTES),
                size: 0,
                datagrams: 0,
            })
        };
        let rails: Result<Vec<Rail>, OpenError> = rails.iter().enumerate().map(open).collect();
        let rails = rails?;
        let descriptors: Vec<_> = rails.iter().map(|rail| rail.socket.descriptor()).collect();
        Ok(Self {
            clock,
            connection,
            rails,
            readiness: Readiness::new(&descriptors).map_err(OpenError::Watch)?,
            neighbours,
            memory: Memory::default(),
            ports: Vec::new(),
            buffer: vec![0; MAX_TRAIN_BYTES].into(),
            behind: 0,
            refused: 0,
        })
    }

    /// Registers memory for sending and receiving over all rails.
    pub fn register(&mut self, bytes: Vec<u8>) -> Buffer {
        self.memory.register(bytes)
    }

    /// Registers memory of the caller's, which stays where it is: [`release`](Self::release) gives nothing for it.
    ///
    /// # Safety
    /// The bytes stay until the buffer was given back by an event or the node is dropped. Meanwhile nobody writes to a buffer
    /// that is sent, and nobody else touches one that is provided.
    #[expect(unsafe_code, reason = "see memory.rs")]
    pub unsafe fn lend(&mut self, start: NonNull<u8>, length: usize) -> Buffer {
        // SAFETY: the caller promises the same.
        unsafe { self.memory.lend(start, length) }
    }

    /// Takes registered memory back.
    ///
    /// # Errors
    /// When it is on its way or provided, or not registered.
    pub fn release(&mut self, buffer: Buffer) -> Result<Vec<u8>, BufferError> {
        self.memory.release(buffer)
    }

    /// What stands in a buffer.
    ///
    /// # Errors
    /// When it is provided, or not registered.
    pub fn bytes(&self, buffer: Buffer) -> Result<&[u8], BufferError> {
        self.memory.bytes(buffer)
    }

    /// The same, to be changed.
    ///
    /// # Errors
    /// When it is on its way or provided, or not registered.
    pub fn bytes_mut(&mut self, buffer: Buffer) -> Result<&mut [u8], BufferError> {
        self.memory.bytes_mut(buffer)
    }

    /// Opens a port for messages of up to `longest` bytes.
    ///
    /// # Errors
    /// Those of [`Connection::open_port`].
    pub fn open_port(&mut self, port: u16, longest: u64) -> Result<(), PortError> {
        self.connection.open_port(port, longest)?;
        self.ports.push((port, longest));
        Ok(())
    }

    /// Provides a buffer for a message to `port`; it must hold the longest that the port takes.
    ///
    /// # Errors
    /// When the buffer is in use or too short, or the port not open.
    pub fn provide(&mut self, port: u16, buffer: Buffer) -> Result<(), UseError> {
        let opened = self.ports.iter().find(|(opened, _)| *opened == port);
        let (_, longest) = opened.ok_or(PortError::NotOpen { port })?;
        self.memory.check_free(buffer, *longest)?;
        self.connection.provide(port, buffer.token())?;
        self.memory.lend_for_receiving(buffer);
        Ok(())
    }

    /// Provides a buffer of any length, for a message that is known to be no longer. If one is, [`step`](Self::step) fails.
    ///
    /// # Errors
    /// When the buffer is in use, or the port not open.
    pub fn provide_exact(&mut self, port: u16, buffer: Buffer) -> Result<(), UseError> {
        self.memory.check_free(buffer, 0)?;
        self.connection.provide(port, buffer.token())?;
        self.memory.lend_for_receiving(buffer);
        Ok(())
    }

    /// The caller did not look for so long, or had no message under way: see [`Connection::excuse`].
    pub fn excuse(&mut self, away: Span) {
        self.connection.excuse(self.clock.now(), away);
    }

    /// Sends the first `length` bytes of a buffer, which stays untouched until an event gives it back.
    ///
    /// # Errors
    /// When the buffer is in use or too short, and those of [`Connection::send`].
    pub fn send(
        &mut self,
        source_port: u16,
        target_port: u16,
        buffer: Buffer,
        length: u64,
    ) -> Result<(), UseError> {
        self.memory.check_free(buffer, length)?;
        self.connection
            .send(source_port, target_port, length, buffer.token())?;
        self.memory.lend_for_sending(buffer);
        Ok(())
    }

    /// Sends and receives what there is, without waiting. True if something came.
    ///
    /// # Errors
    /// What the system says about receiving, or that a message did not fit into a buffer of
    /// [`provide_exact`](Self::provide_exact); then the node is of no use any more.
    pub fn step(&mut self) -> io::Result<bool> {
        let mut came = false;
        self.behind += 1;
        for _ in 0..TURN {
            let ready = self.readiness.look()?;
            if ready == 0 {
                self.behind = 0;
                break;
            }
            for index in (0..self.rails.len()).filter(|index| ready >> index & 1 == 1) {
                self.receive(index)?;
            }
            came = true;
        }
        // An acknowledgement is not overdue that waits here to be received.
        if self.behind.is_multiple_of(BEHIND) {
            let now = self.clock.now();
            if self.connection.poll_timeout().is_some_and(|due| due <= now) {
                self.connection.handle_timeout(now);
            }
        }
        self.tell_neighbours(false);
        self.send_all();
        Ok(came)
    }

    /// Steps once, and sleeps until something comes or is due if nothing has come for `spin`.
    ///
    /// # Errors
    /// Those of [`step`](Self::step).
    pub fn wait(&mut self, spin: Span) -> io::Result<()> {
        let begun = self.clock.now();
        loop {
            if self.step()? || self.connection.has_events() {
                return Ok(());
            }
            let now = self.clock.now();
            if now.since(begun) < spin {
                std::thread::yield_now();
                continue;
            }
            let due = self
                .connection
                .poll_timeout()
                .unwrap_or(Time::NEVER)
                .since(now);
            self.tell_neighbours(true);
            return self.readiness.sleep(duration(due.min(SLEEP)));
        }
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<NodeEvent> {
        let event = self.connection.poll_event()?;
        Some(match event {
            Event::Established => NodeEvent::Established,
            Event::RailUp { rail } => NodeEvent::RailUp { rail },
            Event::RailDown { rail } => NodeEvent::RailDown { rail },
            Event::Sent { token } => NodeEvent::Sent {
                buffer: self.memory.give_back(token),
            },
            Event::SendFailed { token, error } => NodeEvent::SendFailed {
                buffer: self.memory.give_back(token),
                error,
            },
            Event::Received {
                token,
                source_port,
                target_port,
                length,
            } => NodeEvent::Received {
                buffer: self.memory.give_back(token),
                source_port,
                target_port,
                length,
            },
            Event::Returned { token } => NodeEvent::Returned {
                buffer: self.memory.give_back(token),
            },
            Event::Failed(failure) => NodeEvent::Failed(failure),
        })
    }

    /// The connection, to look at.
    #[must_use]
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Time since it was opened.
    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Whether this host's nodes know how busy the others keep the rails. Where there is no shared memory, each knows its own.
    #[must_use]
    pub const fn knows_neighbours(&self) -> bool {
        self.neighbours.is_some()
    }

    /// Packets that the system did not take; they count as lost.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Receives a train, if one is there.
    fn receive(&mut self, index: usize) -> io::Result<()> {
        let Some(train) = self.rails[index].socket.receive(&mut self.buffer)? else {
            return Ok(());
        };
        let now = self.clock.now();
        let how = Reception {
            held: train.held,
            marked: false,
        };
        for datagram in self.buffer[..train.bytes].chunks(train.size.max(1)) {
            let taken = self.connection.handle_datagram(now, index, datagram, how);
            if let Ok(Some((place, payload))) = taken
                && !self.memory.fill(&place, payload)
            {
                return Err(io::Error::other("a message is longer than its buffer"));
            }
        }
        Ok(())
    }

    /// Tells what this node has on its way, and hears what others have, now and then or if it is `urgent`.
    fn tell_neighbours(&mut self, urgent: bool) {
        if let Some(neighbours) = &mut self.neighbours {
            let rails = self.connection.rails();
            let rails = rails.map(|rail| (rail.in_flight, rail.least_rtt));
            let lateness = self.connection.lateness();
            if let Some(mut others) = neighbours.exchange(rails, lateness, urgent) {
                others.lateness = others.lateness.max(lateness);
                self.connection.note_others(&others);
            }
        }
    }

    fn send_all(&mut self) {
        // The tag of a packet takes longer than a look at the clock, and a train of them as long as a round trip.
        while let Some(transmit) = self.connection.poll_transmit(self.clock.now()) {
            self.refused += self.add(&transmit);
        }
        self.refused += self.rails.iter_mut().map(Rail::flush).sum::<u64>();
    }

    fn add(&mut self, transmit: &Transmit) -> u64 {
        let payload = self.memory.payload(&transmit.payload);
        let key = &self.connection.config().key;
        let packet = &transmit.packet;
        let write = |room: &mut [u8]| packet.write(room, payload, key).is_ok();
        self.rails[transmit.rail].add(packet.length(), write)
    }
}
