//! Messages over rails in real time: one UDP socket per rail, and the memory of messages.
//!
//! The interface is that of a user-level network: memory is registered once for all rails, ports are opened, buffers sent and
//! provided, and events say when one is given back. Nothing waits inside but [`Node::wait`].
//!
//! ```no_run
//! # use raddle_host::rails::{Node, NodeEvent, RailAddress};
//! # use raddle_rails::Config;
//! # fn run(config: Config, rails: &[RailAddress]) -> Result<(), Box<dyn std::error::Error>> {
//! let mut node = Node::open(config, rails)?;
//! let buffer = node.register(b"a message".to_vec());
//! node.send(0, 5, buffer, 9)?;
//! loop {
//!     while let Some(event) = node.poll_event() {
//!         if event == (NodeEvent::Sent { token: buffer }) {
//!             return Ok(());
//!         }
//!     }
//!     node.wait(raddle_units::Span::from_us(50))?;
//! }
//! # }
//! ```

mod memory;
mod neighbours;
mod outcome;
mod segment;
mod train;

use std::{io, net::SocketAddrV4, ptr::NonNull};

use raddle_rails::{Config, Connection, PortError, Reception, Transmit};
use raddle_units::{Span, Time};

pub use memory::{Buffer, BufferError};
pub use outcome::{NodeEvent, OpenError, UseError};

use crate::{
    clock::Clock,
    datagrams::{DatagramSocket, MAX_TRAIN_BYTES},
    drive::idle,
    readiness::Readiness,
};
use memory::Memory;
use neighbours::Neighbours;
use train::Rail;

/// Trains that are received from a rail before what they bring about is sent.
const TURN: usize = 8;
/// Steps at most after which it is seen what is due, though more has come that is not received yet.
const BEHIND: u32 = 8;

/// The two ends of a rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RailAddress {
    /// This node's address, that of the rail's interface.
    pub local: SocketAddrV4,
    /// The other node's.
    pub peer: SocketAddrV4,
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
    /// Until then the connection has nothing to do, unless something comes or is asked for; `None`: that has happened.
    idle_until: Option<Time>,
    refused: u64,
}

impl Node {
    /// Opens a socket per rail and begins to greet the other node.
    ///
    /// # Errors
    /// A wrong configuration ([`Connection::new`]), another number of addresses than of rails, or a socket that cannot be
    /// opened: its address is not this host's, no route leads to the peer, or no descriptor is left.
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
            Ok(Rail::new(socket))
        };
        let rails: Result<Vec<Rail>, OpenError> = rails.iter().enumerate().map(open).collect();
        let rails = rails?;
        let descriptors: Vec<_> = rails.iter().map(|rail| rail.socket.descriptor()).collect();
        let readiness = Readiness::new(&descriptors).map_err(OpenError::Watch)?;
        Ok(Self {
            clock,
            connection,
            rails,
            readiness,
            neighbours,
            memory: Memory::default(),
            ports: Vec::new(),
            buffer: vec![0; MAX_TRAIN_BYTES].into(),
            behind: 0,
            idle_until: None,
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
        self.changed().open_port(port, longest)?;
        self.ports.push((port, longest));
        Ok(())
    }

    /// Provides a buffer for a message to `port`; it must hold the longest that the port takes.
    ///
    /// # Errors
    /// The buffer is not registered, in use or shorter than the port's longest message, or the port is not open.
    pub fn provide(&mut self, port: u16, buffer: Buffer) -> Result<(), UseError> {
        let opened = self.ports.iter().find(|(opened, _)| *opened == port);
        let (_, longest) = opened.ok_or(PortError::NotOpen { port })?;
        self.memory.check_free(buffer, *longest)?;
        self.changed().provide(port, buffer.token())?;
        self.memory.lend_for_receiving(buffer);
        Ok(())
    }

    /// Provides a buffer of any length, for a message that is known to be no longer. If one is, [`step`](Self::step) fails.
    ///
    /// # Errors
    /// The buffer is not registered or in use, or the port is not open.
    pub fn provide_exact(&mut self, port: u16, buffer: Buffer) -> Result<(), UseError> {
        self.memory.check_free(buffer, 0)?;
        self.changed().provide(port, buffer.token())?;
        self.memory.lend_for_receiving(buffer);
        Ok(())
    }

    /// The caller paused for `away`: it did not look, or had no message under way. See [`Connection::note_pause`].
    pub fn note_pause(&mut self, away: Span) {
        let now = self.clock.now();
        self.changed().note_pause(now, away);
    }

    /// Sends the first `length` bytes of a buffer, which stays untouched until an event gives it back.
    ///
    /// # Errors
    /// The buffer is not registered, in use or shorter than `length`, and the errors of [`Connection::send`].
    pub fn send(
        &mut self,
        source_port: u16,
        target_port: u16,
        buffer: Buffer,
        length: u64,
    ) -> Result<(), UseError> {
        self.memory.check_free(buffer, length)?;
        self.changed()
            .send(source_port, target_port, length, buffer.token())?;
        self.memory.lend_for_sending(buffer);
        Ok(())
    }

    /// Sends and receives what there is, without waiting. True if something came. If that makes events, it is acknowledged when
    /// [`poll_event`](Self::poll_event) has given them all, with what the program has sent meanwhile, or by the next step.
    ///
    /// # Errors
    /// The kernel has no memory left to receive with, or a message did not fit into a buffer of
    /// [`provide_exact`](Self::provide_exact). Then the node cannot be used any more.
    pub fn step(&mut self) -> io::Result<bool> {
        let (mut came, has_told) = (false, !self.connection.has_events());
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
        self.tell_neighbours(false);
        let has_news = has_told && self.connection.has_events();
        let now = self.clock.now();
        if !has_news && self.idle_until.is_none_or(|until| until <= now) {
            self.act(now);
        }
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
            let due = Some(self.due());
            if let Some(limit) = idle(begun, self.clock.now(), spin, due) {
                self.tell_neighbours(true);
                return self.readiness.sleep(limit);
            }
        }
    }

    /// What happened, oldest first; to be called until it gives nothing.
    pub fn poll_event(&mut self) -> Option<NodeEvent> {
        let Some(event) = self.connection.poll_event() else {
            // What is due waits for the next step, which receives first what has come meanwhile.
            if self.idle_until.is_none() {
                self.send_all();
            }
            return None;
        };
        let memory = &mut self.memory;
        Some(event.map(|token| memory.give_back(token)))
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

    /// The connection, to be told something: what it has to do is to be asked anew.
    const fn changed(&mut self) -> &mut Connection {
        self.idle_until = None;
        &mut self.connection
    }

    /// Does what is due at `now`, and sends what there is.
    fn act(&mut self, now: Time) {
        // An acknowledgement is not overdue that waits here to be received.
        if self.behind.is_multiple_of(BEHIND) && self.due() <= now {
            self.connection.handle_timeout(now);
        }
        self.send_all();
        self.idle_until = Some(self.due());
    }

    /// When the connection has something to do though nothing comes.
    fn due(&self) -> Time {
        self.connection.poll_timeout().unwrap_or(Time::NEVER)
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
        self.idle_until = None;
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
                self.changed().note_others(&others);
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
        let rail = &mut self.rails[transmit.rail];
        // The other node cannot tell in which order packets without a number left.
        match packet.number {
            0 => rail.add_last(packet.length(), write),
            _ => rail.add(packet.length(), write),
        }
    }
}
