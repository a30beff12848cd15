//! The loop that drives a sans-IO endpoint over a UDP socket, in real time.
//!
//! An endpoint of the cores has no socket and no clock ([`SansIo`] is its shape). Whoever has both calls [`turn`] again and
//! again, or [`drive`], which does so until the endpoint has what is waited for. A round of Allreduce is short, so that
//! [`drive`] first looks for messages without sleeping, and lets others run in between: on a machine with fewer cores than
//! processes, the one that is waited for needs the core.
//!
//! ```no_run
//! # use raddle_host::{clock, drive::{self, Port}};
//! # use raddle_offload::member::{Member, MemberConfig, Outcome, RoundSpec};
//! # use raddle_units::Span;
//! # fn run(config: MemberConfig, spec: &RoundSpec, operand: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! let socket = drive::bind("10.0.0.1:0".parse()?)?;
//! let mut member = Member::new(clock::now(), config);
//! member.start(clock::now(), spec, operand)?;
//! drive::drive(&mut member, Port::of(&socket), Span::from_us(100), |member| {
//!     member.outcome() != Outcome::Pending
//! })?;
//! # Ok(())
//! # }
//! ```

use std::{
    io,
    net::{SocketAddr, SocketAddrV4, UdpSocket},
    os::fd::AsFd,
    thread,
    time::Duration,
};

use raddle_offload::{endpoint::Endpoint, member::Member, setup::Attempt};
use raddle_units::{Span, Time};
use raddle_wire::native::{Header, MAX_BODY};

use crate::{
    clock::{self, duration},
    options::omit_checksums,
    readiness::wait_readable,
};

/// Bytes of the longest message.
pub const MESSAGE: usize = Header::SIZE + MAX_BODY;
/// Messages that are taken of a socket at a time: whoever floods it does not keep the endpoint from what is due, nor others
/// waiting for its lock.
pub const MESSAGES_AT_ONCE: usize = 64;
/// Longest sleep: also the delay after which somebody else's change of the endpoint is seen.
const SLEEP: Span = Span::from_ms(100);

/// An endpoint that sends and receives datagrams and knows neither socket nor clock.
///
/// After each call of `handle_packet`, `handle_timeout` or a command of the endpoint's own, its driver sends what
/// `poll_transmit` gives until that is `None`, looks at what the endpoint offers as events or outcome, and calls
/// `handle_timeout` when `poll_timeout` is due.
pub trait SansIo {
    /// A datagram came. What is not for the endpoint, it counts.
    fn handle_packet(&mut self, now: Time, from: SocketAddrV4, payload: &[u8]);
    /// Time has passed.
    fn handle_timeout(&mut self, now: Time);
    /// When [`handle_timeout`](Self::handle_timeout) is due.
    fn poll_timeout(&self) -> Option<Time>;
    /// The next datagram to send: its bytes, in `buffer`, are as many as said.
    fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)>;
}

macro_rules! sans_io {
    ($type:ty, |$endpoint:ident, $now:ident, $from:ident, $payload:ident| $handle:expr) => {
        impl SansIo for $type {
            #[inline]
            fn handle_packet(&mut self, $now: Time, $from: SocketAddrV4, $payload: &[u8]) {
                let $endpoint = self;
                $handle;
            }

            #[inline]
            fn handle_timeout(&mut self, now: Time) {
                Self::handle_timeout(self, now);
            }

            #[inline]
            fn poll_timeout(&self) -> Option<Time> {
                Self::poll_timeout(self)
            }

            #[inline]
            fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
                Self::poll_transmit(self, buffer)
            }
        }
    };
}
// Members know each other by their tags, not by addresses.
sans_io!(Member, |member, now, _from, payload| member
    .handle_packet(now, payload));
sans_io!(Endpoint, |endpoint, now, _from, payload| endpoint
    .handle_packet(now, payload));
sans_io!(Attempt, |attempt, now, from, payload| attempt
    .handle_packet(now, from, payload));

/// An endpoint's socket, which does not block.
#[derive(Debug, Clone, Copy)]
pub struct Port<'a> {
    /// The socket.
    pub socket: &'a UdpSocket,
    /// Where the socket is connected to: then the kernel looks for no route for each message.
    pub peer: Option<SocketAddrV4>,
}

impl<'a> Port<'a> {
    /// A socket that is not connected.
    #[must_use]
    pub const fn of(socket: &'a UdpSocket) -> Self {
        Self { socket, peer: None }
    }

    /// The next message, without waiting; `None`: nothing is there.
    ///
    /// # Errors
    /// The kernel has no memory left. What routers report about messages sent earlier is no error.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddrV4)>> {
        loop {
            let came = match self.peer {
                Some(peer) => self
                    .socket
                    .recv(buffer)
                    .map(|length| (length, SocketAddr::V4(peer))),
                None => self.socket.recv_from(buffer),
            };
            match came {
                Ok((length, SocketAddr::V4(from))) => return Ok(Some((length, from))),
                Ok((_, SocketAddr::V6(_))) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkUnreachable
                    | io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
    }

    /// Sends a message. What the kernel does not take is as good as lost, and sent again.
    fn send(&self, message: &[u8], to: SocketAddrV4) {
        let _ = if self.peer == Some(to) {
            self.socket.send(message)
        } else {
            self.socket.send_to(message, to)
        };
    }
}

/// A UDP socket that does not block; port 0 takes a free one. Its datagrams have no checksum, where the kernel allows that:
/// the messages' tags cover them.
///
/// # Errors
/// The port is taken, the address is not this host's, or no descriptor is left.
pub fn bind(address: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    let _ = omit_checksums(&socket);
    Ok(socket)
}

/// Takes what came, up to [`MESSAGES_AT_ONCE`] messages and until the endpoint is done, does what is due, and sends what
/// there is; never waits. True if something came. `buffer` has room for the longest message.
///
/// # Errors
/// Those of [`Port::receive`].
pub fn turn<E: SansIo>(
    endpoint: &mut E,
    port: Port<'_>,
    buffer: &mut [u8],
    is_done: impl Fn(&E) -> bool,
) -> io::Result<bool> {
    let mut received = Ok(false);
    for _ in 0..MESSAGES_AT_ONCE {
        match port.receive(buffer) {
            Ok(Some((length, from))) => {
                received = Ok(true);
                endpoint.handle_packet(clock::now(), from, &buffer[..length]);
                // What comes behind is the next call's matter.
                if is_done(endpoint) {
                    break;
                }
            }
            Ok(None) => break,
            Err(error) => {
                received = Err(error);
                break;
            }
        }
    }
    // Also after an error: what is due does not wait for the kernel's memory.
    attend(endpoint, port, buffer);
    received
}

/// Does what is due and sends what there is; gives when to come again though nothing comes.
pub fn attend(endpoint: &mut impl SansIo, port: Port<'_>, buffer: &mut [u8]) -> Option<Time> {
    let now = clock::now();
    if endpoint.poll_timeout().is_some_and(|due| due <= now) {
        endpoint.handle_timeout(now);
    }
    transmit(endpoint, port, buffer);
    endpoint.poll_timeout()
}

/// Sends what there is, after a command of the endpoint's own.
pub fn transmit(endpoint: &mut impl SansIo, port: Port<'_>, buffer: &mut [u8]) {
    while let Some((to, length)) = endpoint.poll_transmit(buffer) {
        port.send(&buffer[..length], to);
    }
}

/// Drives an endpoint until it is done. After `spin` without a message it sleeps between turns.
///
/// # Errors
/// Those of [`turn`], and of [`wait_readable`].
pub fn drive<E: SansIo>(
    endpoint: &mut E,
    port: Port<'_>,
    spin: Span,
    is_done: impl Fn(&E) -> bool,
) -> io::Result<()> {
    let mut buffer = vec![0; MESSAGE];
    let mut idle_since = None;
    transmit(endpoint, port, &mut buffer);
    while !is_done(endpoint) {
        if turn(endpoint, port, &mut buffer, &is_done)? {
            idle_since = None;
            continue;
        }
        let now = clock::now();
        let begun = *idle_since.get_or_insert(now);
        if let Some(limit) = idle(begun, now, spin, endpoint.poll_timeout()) {
            wait_readable([port.socket.as_fd()], Some(limit))?;
        }
    }
    Ok(())
}

/// What to do when nothing has come since `begun`: for `spin` others run, then it gives how long to sleep, until what is
/// `due` at most.
pub(crate) fn idle(begun: Time, now: Time, spin: Span, due: Option<Time>) -> Option<Duration> {
    if now.since(begun) < spin {
        thread::yield_now();
        return None;
    }
    let until_due = due.map_or(SLEEP, |due| due.since(now));
    Some(duration(until_due.min(SLEEP)))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// Answers each message with one byte more, until it got one of three.
    #[derive(Default)]
    struct Echo {
        answers: Vec<(SocketAddrV4, usize)>,
        longest: usize,
        late: bool,
        due: Option<Time>,
    }

    impl SansIo for Echo {
        fn handle_packet(&mut self, _now: Time, from: SocketAddrV4, payload: &[u8]) {
            self.longest = self.longest.max(payload.len());
            self.answers.push((from, payload.len() + 1));
        }

        fn handle_timeout(&mut self, _now: Time) {
            self.late = true;
            self.due = None;
        }

        fn poll_timeout(&self) -> Option<Time> {
            self.due
        }

        fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
            let (to, length) = self.answers.pop()?;
            buffer[..length].fill(7);
            Some((to, length))
        }
    }

    fn local() -> (UdpSocket, SocketAddrV4) {
        let socket = bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let SocketAddr::V4(address) = socket.local_addr().unwrap() else {
            panic!("bound to an IPv4 address");
        };
        (socket, address)
    }

    #[test]
    fn both_ends_are_driven_until_they_are_done() {
        let ((socket, _), (other_socket, other)) = (local(), local());
        let mut endpoint = Echo {
            answers: vec![(other, 1)],
            ..Echo::default()
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut endpoint = Echo::default();
                let port = Port::of(&other_socket);
                drive(&mut endpoint, port, Span::ZERO, |echo| echo.longest >= 3).unwrap();
            });
            socket.connect(other).unwrap();
            let port = Port {
                socket: &socket,
                peer: Some(other),
            };
            drive(&mut endpoint, port, Span::from_ms(1), |echo| {
                echo.longest >= 2
            })
            .unwrap();
        });
    }

    #[test]
    fn what_is_due_is_done_though_nothing_comes() {
        let (socket, _) = local();
        let mut endpoint = Echo {
            due: Some(clock::now() + Span::from_ms(20)),
            ..Echo::default()
        };
        drive(&mut endpoint, Port::of(&socket), Span::ZERO, |echo| {
            echo.late
        })
        .unwrap();
        assert_eq!(endpoint.longest, 0);
    }
}
