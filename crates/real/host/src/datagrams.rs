//! UDP datagrams in trains: many of one size with one system call (udp(7): `UDP_SEGMENT`, `UDP_GRO`). Between namespaces of one
//! machine a train stays whole all the way; a network card cuts it. What comes tells how long it waited for the program
//! (socket(7): `SO_TIMESTAMPNS`).
//!
//! Not `quinn-udp`: it gives no time of arrival.

use std::{
    io::{self, IoSlice, IoSliceMut},
    net::{SocketAddrV4, UdpSocket},
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use nix::{
    cmsg_space,
    errno::Errno,
    sys::{
        socket::{
            ControlMessage, ControlMessageOwned, MsgFlags, RecvMsg, recvmsg, sendmsg, setsockopt,
            sockopt,
        },
        time::TimeSpec,
    },
};
use raddle_units::Span;

use crate::options;

/// Datagrams of a train at most (the kernel's limit, `UDP_MAX_SEGMENTS`).
pub const MAX_TRAIN: usize = 64;
/// Bytes of a train at most: what one IPv4 packet carries.
pub const MAX_TRAIN_BYTES: usize = 65_507;
/// Bytes that may wait in the kernel, in each direction; it may allow less.
const BUFFER: usize = 8 << 20;
/// The longest time that a train is believed to have waited. What is longer tells of a clock that was set.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// A train that came, or a single datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Train {
    /// Bytes of all its datagrams.
    pub bytes: usize,
    /// Bytes of each but the last.
    pub size: usize,
    /// How long its first waited in this host for the program; zero where the kernel does not say.
    pub held: Span,
}

/// A UDP socket between two addresses.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: UdpSocket,
    /// The kernel cuts trains. Some interfaces cannot, and say so at the first one.
    cuts: bool,
    /// Room for the control messages of a train.
    control: Vec<u8>,
}

impl DatagramSocket {
    /// A socket that sends from `local` to `peer` and hears it only, without waiting. It sends by the interface that has the
    /// address `local`, where the routes allow that.
    ///
    /// # Errors
    /// The port is taken, `local` is no address of this host, no route leads to `peer`, or no descriptor is left.
    pub fn open(local: SocketAddrV4, peer: SocketAddrV4) -> io::Result<Self> {
        let socket = UdpSocket::bind(local)?;
        socket.connect(peer)?;
        socket.set_nonblocking(true)?;
        // What comes while a program has no core waits here.
        options::reserve(&socket, BUFFER)?;
        // A kernel without these gives single datagrams, and does not tell how long they waited.
        let _ = setsockopt(&socket, sockopt::UdpGroSegment, &true);
        let _ = setsockopt(&socket, sockopt::ReceiveTimestampns, &true);
        Ok(Self {
            socket,
            cuts: true,
            control: cmsg_space!(i32, TimeSpec),
        })
    }

    /// Its descriptor, to wait for.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Its own address.
    ///
    /// # Errors
    /// None that is known: see getsockname(2).
    pub fn address(&self) -> io::Result<std::net::SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends datagrams of `size` bytes each that lie one behind the other, the last of which may be shorter. At most
    /// [`MAX_TRAIN`] and [`MAX_TRAIN_BYTES`].
    ///
    /// # Errors
    /// The kernel has no room, a datagram is longer than the interface carries, or a router reported an error about one sent
    /// earlier; some may have been sent then.
    pub fn send_train(&mut self, bytes: &[u8], size: usize) -> io::Result<()> {
        if bytes.len() <= size {
            return self.socket.send(bytes).map(drop);
        }
        if self.cuts {
            match self.send_cut(bytes, size) {
                Err(error) if is_unable(&error) => self.cuts = false,
                outcome => return outcome,
            }
        }
        bytes
            .chunks(size)
            .try_for_each(|datagram| self.socket.send(datagram).map(drop))
    }

    fn send_cut(&self, bytes: &[u8], size: usize) -> io::Result<()> {
        let size = u16::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?;
        let descriptor = self.socket.as_raw_fd();
        let cut = [ControlMessage::UdpGsoSegments(&size)];
        let at_once = MsgFlags::MSG_DONTWAIT;
        sendmsg::<()>(descriptor, &[IoSlice::new(bytes)], &cut, at_once, None)?;
        Ok(())
    }

    /// Receives a train into `buffer`, without waiting. `None`: nothing is there. `buffer` is to hold [`MAX_TRAIN_BYTES`].
    ///
    /// # Errors
    /// The kernel has no memory left. What routers report about datagrams sent earlier is no error, and gives an empty train.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Train>> {
        let descriptor = self.socket.as_raw_fd();
        let mut pieces = [IoSliceMut::new(buffer)];
        let (control, at_once) = (Some(&mut self.control[..]), MsgFlags::MSG_DONTWAIT);
        match recvmsg::<()>(descriptor, &mut pieces, control, at_once) {
            Ok(message) => Ok(Some(described(&message)?)),
            Err(Errno::EAGAIN) => Ok(None),
            Err(Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EINTR) => {
                Ok(Some(Train {
                    bytes: 0,
                    size: 0,
                    held: Span::ZERO,
                }))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether the kernel says that it cannot cut trains here.
fn is_unable(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EIO | libc::EINVAL | libc::ENOPROTOOPT | libc::EOPNOTSUPP)
    )
}

/// What a received train is, as its control messages say.
fn described(message: &RecvMsg<'_, '_, ()>) -> io::Result<Train> {
    let bytes = message.bytes;
    let (mut size, mut held) = (bytes, Span::ZERO);
    for control in message.cmsgs()? {
        match control {
            ControlMessageOwned::UdpGroSegments(found) => {
                size = usize::try_from(found).map_or(size, |found| found.max(1));
            }
            ControlMessageOwned::ScmTimestampns(came) => {
                held = since(came.tv_sec(), came.tv_nsec());
            }
            _ => {}
        }
    }
    Ok(Train { bytes, size, held })
}

/// Time from a time of the system's clock to now; zero where that cannot be.
fn since(seconds: i64, nanoseconds: i64) -> Span {
    let came = u64::try_from(seconds)
        .ok()
        .zip(u32::try_from(nanoseconds).ok())
        .and_then(|(seconds, nanoseconds)| {
            UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
        });
    let held = came.and_then(|came| SystemTime::now().duration_since(came).ok());
    let held = held.filter(|held| *held <= LONGEST_WAIT);
    held.map_or(Span::ZERO, |held| Span::from_ns(held.as_nanos() as u64))
}

/// Two ends on the loopback, for tests. No other pair has their addresses: a search for free ports, of two tests at once,
/// can find one port twice.
#[cfg(test)]
pub(crate) fn pair() -> [DatagramSocket; 2] {
    use std::{
        net::Ipv4Addr,
        sync::atomic::{AtomicU8, Ordering},
    };

    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let [a, b] = [(); 2].map(|()| {
        let end = NEXT.fetch_add(1, Ordering::Relaxed);
        SocketAddrV4::new(Ipv4Addr::new(127, high, low, end), raddle_wire::PORT_ROCE)
    });
    [(a, b), (b, a)].map(|(local, peer)| DatagramSocket::open(local, peer).unwrap())
}

/// What comes next at one of them: on a busy machine the kernel delivers later.
#[cfg(test)]
pub(crate) fn next(socket: &mut DatagramSocket, buffer: &mut [u8]) -> Train {
    let mut looks = (0..5_000).filter_map(|_| {
        let train = socket.receive(buffer).unwrap();
        if train.is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        train
    });
    looks.next().expect("something comes within 5 s")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One datagram waits for 30 ms, the next for none: the kernel tells them apart.
    #[test]
    fn what_waited_says_so() {
        let [mut sender, mut receiver] = pair();
        let mut buffer = vec![0; MAX_TRAIN_BYTES];
        let pause = Duration::from_millis(30);
        sender.send_train(b"early", 5).unwrap();
        std::thread::sleep(pause);
        let mut early = next(&mut receiver, &mut buffer);
        // The kernel begins to stamp a while after it was asked to.
        for _ in 0..50 {
            if early.held > Span::from_ms(29) {
                break;
            }
            sender.send_train(b"early", 5).unwrap();
            std::thread::sleep(pause);
            early = next(&mut receiver, &mut buffer);
        }
        assert!(early.held > Span::from_ms(29), "{early:?}");
        let at_once = (0..100).map(|_| {
            sender.send_train(b"late", 4).unwrap();
            next(&mut receiver, &mut buffer).held
        });
        let least = at_once.min().unwrap();
        assert!(least < Span::from_ms(1), "{least}");
    }

    #[test]
    fn a_clock_that_was_set_tells_nothing() {
        let at = since;
        assert_eq!(at(0, 0), Span::ZERO, "it waited since 1970");
        assert_eq!(at(1 << 40, 0), Span::ZERO, "it comes from the future");
        assert_eq!(at(-1, 0), Span::ZERO);
        assert_eq!(at(i64::MAX, -1), Span::ZERO);
    }

    #[test]
    fn trains_arrive_as_they_were_sent() {
        let [mut sender, mut receiver] = pair();
        let bytes: Vec<u8> = (0..10_500_u32).map(|at| (at / 7) as u8).collect();
        let mut buffer = vec![0; MAX_TRAIN_BYTES];
        assert_eq!(receiver.receive(&mut buffer).unwrap(), None);
        for cuts in [true, false] {
            sender.cuts = cuts;
            sender.send_train(&bytes, 1000).unwrap();
            let (mut came, mut datagrams) = (Vec::new(), 0);
            while came.len() < bytes.len() {
                let train = next(&mut receiver, &mut buffer);
                came.extend_from_slice(&buffer[..train.bytes]);
                datagrams += train.bytes.div_ceil(train.size);
                assert!(train.size == 1000 || train.bytes == 500);
            }
            assert!(came == bytes);
            assert_eq!(datagrams, 11);
            assert_eq!(receiver.receive(&mut buffer).unwrap(), None);
        }
    }
}
