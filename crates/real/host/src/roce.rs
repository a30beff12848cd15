//! RoCEv2 packets of a program without a card that speaks RoCEv2: raw IPv4 sockets (raw(7)), one queue pair each.
//!
//! The kernel routes and resolves hardware addresses; headers from IPv4 on are ours, because the ICRC covers them.

use std::{
    io::{self, IoSlice},
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use nix::{
    errno::Errno,
    sys::socket::{
        AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, bind, recv, sendmsg,
        setsockopt, socket, sockopt,
    },
};
use raddle_wire::{Ethernet, MacAddress, PORT_ROCE, ethertype};

use crate::options;

/// Sends and receives the packets of one queue pair. Frames have an Ethernet header here as everywhere; its hardware
/// addresses are not looked at, and are zeros in what comes.
#[derive(Debug)]
pub struct RoceSocket {
    send: OwnedFd,
    receive: OwnedFd,
    /// Keeps the kernel from telling senders that nobody listens (ICMP); it keeps nothing of what comes.
    _port: OwnedFd,
}

impl RoceSocket {
    /// Opens the queue pair of a host's address.
    ///
    /// # Errors
    /// The caller lacks the capability `CAP_NET_RAW`, the address is not this host's, or another program has UDP port 4791
    /// for itself.
    pub fn open(address: Ipv4Addr, queue_pair: u32) -> io::Result<Self> {
        let open = |kind, protocol| {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            socket(AddressFamily::Inet, kind, flags, protocol)
        };
        let port = open(SockType::Datagram, SockProtocol::Udp)?;
        setsockopt(&port, sockopt::ReusePort, &true)?;
        filter(&port, &mut [GIVE_NOTHING])?;
        let listen = SockaddrIn::from(SocketAddrV4::new(address, PORT_ROCE));
        bind(port.as_raw_fd(), &listen)?;
        let receive = open(SockType::Raw, SockProtocol::Udp)?;
        filter(&receive, &mut only(queue_pair))?;
        bind(
            receive.as_raw_fd(),
            &SockaddrIn::from(SocketAddrV4::new(address, 0)),
        )?;
        Ok(Self {
            send: open(SockType::Raw, SockProtocol::Raw)?,
            receive,
            _port: port,
        })
    }

    /// Sends a frame to an address. A frame that finds no room is lost, as on a wire.
    ///
    /// # Errors
    /// There is no way to the address, or the interface is down.
    pub fn send(&self, to: Ipv4Addr, frame: &[u8]) -> io::Result<()> {
        let to = SockaddrIn::from(SocketAddrV4::new(to, 0));
        let packet = [IoSlice::new(
            frame.get(Ethernet::SIZE..).unwrap_or_default(),
        )];
        match sendmsg(
            self.send.as_raw_fd(),
            &packet,
            &[],
            MsgFlags::empty(),
            Some(&to),
        ) {
            Ok(_) | Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The next frame: writes it to `buffer` and gives its length; `None` if there is none now.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let header = Ethernet {
            destination: MacAddress::default(),
            source: MacAddress::default(),
            ethertype: ethertype::IPV4,
        };
        header.write(buffer, 0).map_err(io::Error::other)?;
        let room = &mut buffer[Ethernet::SIZE..];
        match recv(self.receive.as_raw_fd(), room, MsgFlags::empty()) {
            Ok(length) => Ok(Some(Ethernet::SIZE + length)),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for RoceSocket {
    /// What can be waited for.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receive.as_fd()
    }
}

const GIVE_NOTHING: libc::sock_filter = operation(libc::BPF_RET | libc::BPF_K, 0, 0, 0);

const fn operation(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

/// Packets from IPv4 on: those to UDP port 4791 whose BTH names this queue pair.
const fn only(queue_pair: u32) -> [libc::sock_filter; 7] {
    [
        // X: bytes of the IPv4 header.
        operation(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0, 0, 0),
        operation(libc::BPF_LD | libc::BPF_H | libc::BPF_IND, 0, 0, 2),
        operation(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            4,
            PORT_ROCE as u32,
        ),
        // The word of the BTH whose low 24 bits are the queue pair.
        operation(libc::BPF_LD | libc::BPF_W | libc::BPF_IND, 0, 0, 12),
        operation(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, 0xff_ffff),
        operation(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            queue_pair,
        ),
        operation(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
    ]
}

fn filter(socket: &OwnedFd, program: &mut [libc::sock_filter]) -> io::Result<()> {
    let mut whole = program.to_vec();
    whole.push(GIVE_NOTHING);
    let program = libc::sock_fprog {
        len: whole.len() as u16,
        filter: whole.as_mut_ptr(),
    };
    options::set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}
