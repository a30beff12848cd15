//! A member of a group over a UDP socket, in real time.
//!
//! [`MemberSocket`] moves messages between the socket and a state machine of `raddle-offload`. A round is short, so that
//! it looks for messages without sleeping, and lets others run in between: on a machine with fewer cores than
//! processes, whoever is waited for needs the core.
//!
//! ```no_run
//! # use raddle_host::member::MemberSocket;
//! # use raddle_offload::member::{Member, MemberConfig, Outcome, RoundSpec};
//! # use raddle_units::Span;
//! # fn run(config: MemberConfig, spec: &RoundSpec, operand: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! let mut socket = MemberSocket::bind("10.0.0.1:0".parse()?)?;
//! let mut member = Member::new(socket.now(), config);
//! member.start(socket.now(), spec, operand)?;
//! socket.drive(&mut member, Span::from_us(100), |member| {
//!     member.outcome() != Outcome::Pending
//! })?;
//! # Ok(())
//! # }
//! ```

use std::{
    io,
    net::{SocketAddr, SocketAddrV4, UdpSocket},
    os::fd::{AsRawFd, RawFd},
    thread,
};

use raddle_offload::member::Member;
use raddle_units::{Span, Time};

use crate::{
    clock::{Clock, duration},
    options::omit_checksums,
    readiness::wait_readable,
};

/// Room for the largest message.
const ROOM: usize = 56 + raddle_wire::native::MAX_BODY;
/// Longest sleep: also the delay after which somebody else's change of the state machine is seen.
const SLEEP: Span = Span::from_ms(100);
/// Messages received between two looks at what is to be sent.
const BATCH: usize = 64;

/// A state machine that sends and receives datagrams. The names are those of `raddle-offload`.
pub trait Machine {
    /// A datagram came.
    fn handle_packet(&mut self, now: Time, from: SocketAddrV4, payload: &[u8]);
    /// Time has passed.
    fn handle_timeout(&mut self, now: Time);
    /// When [`handle_timeout`](Self::handle_timeout) is due.
    fn poll_timeout(&self) -> Option<Time>;
    /// The next datagram to send.
    fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)>;
}

impl Machine for Member {
    fn handle_packet(&mut self, now: Time, _from: SocketAddrV4, payload: &[u8]) {
        // What is not for it, it counts.
        Self::handle_packet(self, now, payload);
    }

    fn handle_timeout(&mut self, now: Time) {
        Self::handle_timeout(self, now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        Self::poll_timeout(self)
    }

    fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
        Self::poll_transmit(self, buffer)
    }
}

/// A UDP socket and a clock for a member.
#[derive(Debug)]
pub struct MemberSocket {
    socket: UdpSocket,
    address: SocketAddrV4,
    clock: Clock,
    buffer: Box<[u8; ROOM]>,
    unsent: u64,
}

impl MemberSocket {
    /// Binds a socket; port 0 takes a free one.
    ///
    /// # Errors
    /// What the system says.
    pub fn bind(address: SocketAddrV4) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        omit_checksums(&socket)?;
        let SocketAddr::V4(address) = socket.local_addr()? else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        Ok(Self {
            socket,
            address,
            clock: Clock::start(),
            buffer: Box::new([0; ROOM]),
            unsent: 0,
        })
    }

    /// Where it can be reached.
    #[must_use]
    pub const fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// The time that its state machines get.
    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Datagrams that the system did not take. The state machine sends them again, as if they were lost.
    #[must_use]
    pub const fn unsent(&self) -> u64 {
        self.unsent
    }

    /// The socket's descriptor, to wait for several.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Sends what is to be sent, receives what is there, without waiting. True if something came.
    ///
    /// # Errors
    /// What the system says about receiving, errors of single datagrams excepted.
    pub fn step(&mut self, machine: &mut impl Machine) -> io::Result<bool> {
        let now = self.clock.now();
        if machine.poll_timeout().is_some_and(|due| due <= now) {
            machine.handle_timeout(now);
        }
        self.send_all(machine);
        let mut came = false;
        for _ in 0..BATCH {
            match self.socket.recv_from(&mut self.buffer[..]) {
                Ok((length, SocketAddr::V4(from))) => {
                    machine.handle_packet(self.clock.now(), from, &self.buffer[..length]);
                    came = true;
                }
                Ok(_) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => break,
                    // What a router says of a datagram that we sent earlier; and signals.
                    io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkUnreachable
                    | io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
        if came {
            self.send_all(machine);
        }
        Ok(came)
    }

    /// Steps until `done` says so. After `spin` without a datagram it sleeps between steps.
    ///
    /// # Errors
    /// Those of [`step`](Self::step).
    pub fn drive<M: Machine>(
        &mut self,
        machine: &mut M,
        spin: Span,
        mut done: impl FnMut(&M) -> bool,
    ) -> io::Result<()> {
        let mut idle_since = None;
        loop {
            if self.step(machine)? {
                idle_since = None;
            }
            if done(machine) {
                return Ok(());
            }
            let now = self.clock.now();
            if now.since(*idle_since.get_or_insert(now)) < spin {
                thread::yield_now();
                continue;
            }
            let due = machine.poll_timeout().unwrap_or(Time::NEVER).since(now);
            let limit = duration(Span(due.0.min(SLEEP.0)));
            wait_readable(&[self.descriptor()], Some(limit))?;
        }
    }

    fn send_all(&mut self, machine: &mut impl Machine) {
        while let Some((to, length)) = machine.poll_transmit(&mut self.buffer[..]) {
            if self.socket.send_to(&self.buffer[..length], to).is_err() {
                self.unsent += 1;
            }
        }
    }
}
