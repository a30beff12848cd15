//! UDP datagrams in trains: many of one size with one system call (udp(7): `UDP_SEGMENT`, `UDP_GRO`). Between namespaces of one
//! machine a train stays whole all the way; a network card cuts it. What comes tells how long it waited for the program
//! (socket(7): `SO_TIMESTAMPNS`).
#![expect(
    unsafe_code,
    reason = "trains need control messages that no safe wrapper has"
)]

use std::{
    io,
    mem::{self, size_of},
    net::{SocketAddrV4, UdpSocket},
    os::fd::{AsRawFd, RawFd},
    ptr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use raddle_units::Span;

use crate::options::{self, YES};

/// Datagrams of a train at most (the kernel's limit, `UDP_MAX_SEGMENTS`).
pub const MAX_TRAIN: usize = 64;
/// Bytes of a train at most: what one IPv4 packet carries.
pub const MAX_TRAIN_BYTES: usize = 65_507;
/// Bytes that may wait in the kernel, in each direction; it may allow less.
const BUFFER: libc::c_int = 8 << 20;
/// Words of control messages: room for one with an integer and one with a time.
const CONTROL_WORDS: usize = 8;
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
}

impl DatagramSocket {
    /// A socket that sends from `local` to `peer` and hears it only, without waiting. It sends by the interface that has the
    /// address `local`, where the routes allow that.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(local: SocketAddrV4, peer: SocketAddrV4) -> io::Result<Self> {
        let socket = UdpSocket::bind(local)?;
        socket.connect(peer)?;
        socket.set_nonblocking(true)?;
        // What comes while a program has no core waits here.
        options::reserve(&socket, BUFFER)?;
        // A kernel without these gives single datagrams, and does not tell how long they waited.
        let _ = options::set(&socket, libc::SOL_UDP, libc::UDP_GRO, &YES);
        let _ = options::set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &YES);
        Ok(Self { socket, cuts: true })
    }

    /// Its descriptor, to wait for.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Its own address.
    ///
    /// # Errors
    /// What the system says.
    pub fn address(&self) -> io::Result<std::net::SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends datagrams of `size` bytes each that lie one behind the other, the last of which may be shorter. At most
    /// [`MAX_TRAIN`] and [`MAX_TRAIN_BYTES`].
    ///
    /// # Errors
    /// What the system says, such as that there is no room; some may have been sent then.
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
        let mut piece = libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let mut control = [0_u64; CONTROL_WORDS];
        // SAFETY: `msghdr` is made of integers and pointers, for which zero is a value.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        // SAFETY: these compute lengths from constants.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<u16>() as u32) } as _;
        // SAFETY: the control room is aligned and larger than one message with a u16, so that there is a first header and
        // its data lies inside. The kernel only reads `bytes`, which outlives the call.
        let sent = unsafe {
            let header = &mut *libc::CMSG_FIRSTHDR(&raw const message);
            header.cmsg_level = libc::SOL_UDP;
            header.cmsg_type = libc::UDP_SEGMENT;
            header.cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
            ptr::write_unaligned(libc::CMSG_DATA(header).cast(), size);
            libc::sendmsg(self.descriptor(), &raw const message, libc::MSG_DONTWAIT)
        };
        if sent < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// Receives a train into `buffer`, without waiting. `None`: nothing is there. `buffer` is to hold [`MAX_TRAIN_BYTES`].
    ///
    /// # Errors
    /// What the system says, errors of datagrams sent earlier excepted.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Train>> {
        let mut piece = libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: buffer.len(),
        };
        let mut control = [0_u64; CONTROL_WORDS];
        // SAFETY: as above.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
        // SAFETY: message, piece, control and buffer live through the call and are as long as they say.
        let length =
            unsafe { libc::recvmsg(self.descriptor(), &raw mut message, libc::MSG_DONTWAIT) };
        let Ok(length) = usize::try_from(length) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock => Ok(None),
                // What a router says of a datagram that we sent earlier; and signals. The next call goes on.
                io::ErrorKind::ConnectionRefused
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::Interrupted => Ok(Some(Train {
                    bytes: 0,
                    size: 0,
                    held: Span::ZERO,
                })),
                _ => Err(error),
            };
        };
        Ok(Some(described(&message, length)))
    }
}

/// Whether the kernel says that it cannot cut trains here.
fn is_unable(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EIO | libc::EINVAL | libc::ENOPROTOOPT | libc::EOPNOTSUPP)
    )
}

/// What the control messages of a received train of `bytes` bytes say.
fn described(message: &libc::msghdr, bytes: usize) -> Train {
    let (mut size, mut held) = (bytes, Span::ZERO);
    // SAFETY: `message` describes control messages that the kernel wrote, and whose room is still there.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() };
    while let Some(header) = next {
        match (header.cmsg_level, header.cmsg_type) {
            (libc::SOL_UDP, libc::UDP_GRO) => {
                // SAFETY: a control message of this kind holds an int, perhaps not aligned.
                let found: libc::c_int =
                    unsafe { ptr::read_unaligned(libc::CMSG_DATA(header).cast()) };
                size = usize::try_from(found).map_or(size, |found| found.max(1));
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                // SAFETY: a control message of this kind holds a timespec, perhaps not aligned.
                let came: libc::timespec =
                    unsafe { ptr::read_unaligned(libc::CMSG_DATA(header).cast()) };
                held = since(came);
            }
            _ => {}
        }
        // SAFETY: as above, and `header` is one of these messages.
        next = unsafe { libc::CMSG_NXTHDR(message, header).as_ref() };
    }
    Train { bytes, size, held }
}

/// Time from `came`, of the system's clock, to now; none where that cannot be.
fn since(came: libc::timespec) -> Span {
    let came = u64::try_from(came.tv_sec)
        .ok()
        .zip(u32::try_from(came.tv_nsec).ok())
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
pub(crate) fn next(socket: &DatagramSocket, buffer: &mut [u8]) -> Train {
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
        let [mut sender, receiver] = pair();
        let mut buffer = vec![0; MAX_TRAIN_BYTES];
        let pause = Duration::from_millis(30);
        sender.send_train(b"early", 5).unwrap();
        std::thread::sleep(pause);
        let mut early = next(&receiver, &mut buffer);
        // The kernel begins to stamp a while after it was asked to.
        for _ in 0..50 {
            if early.held > Span::from_ms(29) {
                break;
            }
            sender.send_train(b"early", 5).unwrap();
            std::thread::sleep(pause);
            early = next(&receiver, &mut buffer);
        }
        assert!(early.held > Span::from_ms(29), "{early:?}");
        let at_once = (0..100).map(|_| {
            sender.send_train(b"late", 4).unwrap();
            next(&receiver, &mut buffer).held
        });
        let least = at_once.min().unwrap();
        assert!(least < Span::from_ms(1), "{least}");
    }

    #[test]
    fn a_clock_that_was_set_tells_nothing() {
        let at = |tv_sec, tv_nsec| since(libc::timespec { tv_sec, tv_nsec });
        assert_eq!(at(0, 0), Span::ZERO, "it waited since 1970");
        assert_eq!(at(1 << 40, 0), Span::ZERO, "it comes from the future");
        assert_eq!(at(-1, 0), Span::ZERO);
        assert_eq!(at(i64::MAX, -1), Span::ZERO);
    }

    #[test]
    fn trains_arrive_as_they_were_sent() {
        let [mut sender, receiver] = pair();
        let bytes: Vec<u8> = (0..10_500_u32).map(|at| (at / 7) as u8).collect();
        let mut buffer = vec![0; MAX_TRAIN_BYTES];
        assert_eq!(receiver.receive(&mut buffer).unwrap(), None);
        for cuts in [true, false] {
            sender.cuts = cuts;
            sender.send_train(&bytes, 1000).unwrap();
            let (mut came, mut datagrams) = (Vec::new(), 0);
            while came.len() < bytes.len() {
                let train = next(&receiver, &mut buffer);
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
