//! Raw Ethernet through the kernel (packet(7)): one socket for all ports, many frames per system call.
//!
//! Frames keep what the kernel knows of them beside their bytes: a checksum that is still to be filled in, or that a
//! frame is a train of segments still to be cut ([`Offload`]). What is received with it is sent with it, so that hosts
//! may leave both to the last interface, as they do between namespaces of one machine. VLAN tags that the kernel took
//! off are put back.
#![expect(
    unsafe_code,
    reason = "packet sockets need options and calls that no safe wrapper has"
)]

use std::{
    io,
    mem::{self, size_of},
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
    time::Duration,
};

use raddle_host::{netdevice, options, readiness::wait_readable};

use crate::bridge::Port;

/// Frames of one receive call.
pub const BATCH: usize = 32;
/// Largest frame that is received: a train of segments of 64 KiB with its headers. Longer ones (trains made with
/// "BIG TCP") are dropped and counted.
pub const MAX_FRAME: usize = 65_536 + 64;
/// Bytes of a VLAN tag.
const TAG: usize = 4;
/// Room of a frame in the buffer, with space to put a tag back.
const STRIDE: usize = TAG + MAX_FRAME;
/// Words of the control messages of a frame (`tpacket_auxdata`).
const CONTROL_WORDS: usize = 8;
/// Bytes that may wait for us in the kernel, all ports together, and in the ports' queues.
const BUFFER: usize = 16 << 20;
/// Ports that one filter can name.
pub const MAX_PORTS: usize = 255;

/// What is still to be done to a frame: `struct virtio_net_hdr` (OASIS virtio 1.2, 5.1.6), in the machine's order.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offload {
    flags: u8,
    segmentation: u8,
    header_length: u16,
    segment_size: u16,
    checksum_start: u16,
    checksum_offset: u16,
}

const _: () = assert!(size_of::<Offload>() == 10);

impl Offload {
    /// The flag "the checksum is to be filled in".
    const NEEDS_CHECKSUM: u8 = 1;

    /// Whether the frame is a train of segments, longer than what a wire would carry.
    #[must_use]
    pub const fn is_train(&self) -> bool {
        self.segmentation != 0
    }

    /// Whether a checksum is still to be filled in.
    #[must_use]
    pub const fn needs_checksum(&self) -> bool {
        self.flags & Self::NEEDS_CHECKSUM != 0
    }

    /// The same after a tag was put in front of what the fields count from.
    const fn behind_tag(mut self) -> Self {
        if self.needs_checksum() {
            self.checksum_start += TAG as u16;
        }
        if self.is_train() {
            self.header_length += TAG as u16;
        }
        self
    }
}

/// A frame that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Index of the interface it came from.
    pub interface: u32,
    /// What is still to be done to it.
    pub offload: Offload,
    start: usize,
    length: usize,
}

/// Room for the frames of one receive call.
pub struct Frames {
    bytes: Box<[u8]>,
    offloads: Box<[Offload; BATCH]>,
    addresses: Box<[libc::sockaddr_ll; BATCH]>,
    controls: Box<[[u64; CONTROL_WORDS]; BATCH]>,
    received: Vec<Received>,
    too_long: u64,
}

impl Default for Frames {
    fn default() -> Self {
        // SAFETY: `sockaddr_ll` is made of integers, for which zero is a value.
        let address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        Self {
            bytes: vec![0; STRIDE * BATCH].into_boxed_slice(),
            offloads: Box::new([Offload::default(); BATCH]),
            addresses: Box::new([address; BATCH]),
            controls: Box::new([[0; CONTROL_WORDS]; BATCH]),
            received: Vec::with_capacity(BATCH),
            too_long: 0,
        }
    }
}

impl Frames {
    /// The frames of the last receive call.
    #[must_use]
    pub fn received(&self) -> &[Received] {
        &self.received
    }

    /// The bytes of a frame of the last receive call, from its Ethernet header on.
    #[must_use]
    pub fn bytes(&self, frame: &Received) -> &[u8] {
        &self.bytes[frame.start..frame.start + frame.length]
    }

    /// Frames that were longer than [`MAX_FRAME`] since the start.
    #[must_use]
    pub const fn too_long(&self) -> u64 {
        self.too_long
    }
}

/// A frame on its way out.
#[derive(Debug, Clone, Copy)]
pub struct Sending<'a> {
    /// The port, for the report.
    pub port: Port,
    /// Index of the interface.
    pub interface: u32,
    /// What is still to be done to it.
    pub offload: Offload,
    /// Its bytes.
    pub frame: &'a [u8],
}

/// The state of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// Its index, which changes when it is made anew.
    pub index: u32,
    /// Whether it is switched on and has a carrier.
    pub running: bool,
}

/// A socket that receives all frames of some interfaces of its network namespace, and sends frames by any.
pub struct PacketSocket {
    fd: OwnedFd,
    offloads: Vec<Offload>,
    addresses: Vec<libc::sockaddr_ll>,
    pieces: Vec<[libc::iovec; 2]>,
    messages: Vec<libc::mmsghdr>,
}

impl PacketSocket {
    /// Opens the socket, which receives nothing until [`listen`](Self::listen).
    ///
    /// # Errors
    /// The caller lacks the capability `CAP_NET_RAW`, or the kernel has no memory or descriptor left.
    pub fn open() -> io::Result<Self> {
        // Protocol 0: nothing is received before the filter is set and the socket is bound.
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are passed; the result is checked.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: `fd` was just opened and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let socket = Self {
            fd,
            offloads: Vec::new(),
            addresses: Vec::new(),
            pieces: Vec::new(),
            messages: Vec::new(),
        };
        for option in [
            libc::PACKET_VNET_HDR,
            libc::PACKET_AUXDATA,
            libc::PACKET_IGNORE_OUTGOING,
        ] {
            options::set(&socket.fd, libc::SOL_PACKET, option, &options::YES)?;
        }
        options::reserve(&socket.fd, BUFFER)?;
        socket.listen(&[])?;
        let mut address = address(0);
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: the address lives through the call and its length is its size.
        check(unsafe {
            libc::bind(
                socket.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        })?;
        Ok(socket)
    }

    /// Receives from these interfaces from now on, and from no others (at most [`MAX_PORTS`]): of each all frames, or those
    /// with a mark alone.
    ///
    /// # Errors
    /// The kernel has no memory left for the filter.
    pub fn listen(&self, interfaces: &[(u32, Option<u32>)]) -> io::Result<()> {
        // A classic BPF program: load the interface's index, compare it with each, perhaps the mark too, take all of the
        // frame or nothing.
        let operation = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
        let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        let give = (libc::BPF_RET | libc::BPF_K) as u16;
        let about = |what: libc::c_int| (libc::SKF_AD_OFF + what) as u32;
        let mut program = vec![operation(load, 0, 0, about(libc::SKF_AD_IFINDEX))];
        for (interface, mark) in interfaces.iter().take(MAX_PORTS) {
            if let Some(mark) = mark {
                program.push(operation(equal, 0, 4, *interface));
                program.push(operation(load, 0, 0, about(libc::SKF_AD_MARK)));
                program.push(operation(equal, 0, 1, *mark));
                program.push(operation(give, 0, 0, u32::MAX));
                program.push(operation(give, 0, 0, 0));
            } else {
                program.push(operation(equal, 0, 1, *interface));
                program.push(operation(give, 0, 0, u32::MAX));
            }
        }
        program.push(operation(give, 0, 0, 0));
        let filter = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_mut_ptr(),
        };
        options::set(&self.fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)
    }

    /// Makes an interface hand over frames that are not addressed to it. Ends with [`hear_own`](Self::hear_own), the socket
    /// or the interface.
    ///
    /// # Errors
    /// The interface is gone, or the kernel has no memory left.
    pub fn hear_all(&self, interface: u32) -> io::Result<()> {
        self.hear(interface, libc::PACKET_ADD_MEMBERSHIP)
    }

    /// Takes back what [`hear_all`](Self::hear_all) did.
    pub fn hear_own(&self, interface: u32) {
        // An interface that has gone took it along.
        let _ = self.hear(interface, libc::PACKET_DROP_MEMBERSHIP);
    }

    fn hear(&self, interface: u32, option: libc::c_int) -> io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: interface as libc::c_int,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        options::set(&self.fd, libc::SOL_PACKET, option, &request)
    }

    /// Receives what is there, at most [`BATCH`] frames, without waiting; gives how many.
    ///
    /// # Errors
    /// An interface went down or is gone, which the kernel reports once, or the kernel has no memory left. It is no error that
    /// nothing has come, or that the call was interrupted.
    pub fn receive(&self, frames: &mut Frames) -> io::Result<usize> {
        frames.received.clear();
        let empty = libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        };
        let mut pieces = [[empty; 2]; BATCH];
        // SAFETY: `mmsghdr` is made of integers and pointers, for which zero is a value.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        let bytes = frames.bytes.as_mut_ptr();
        for slot in 0..BATCH {
            pieces[slot] = [
                libc::iovec {
                    iov_base: (&raw mut frames.offloads[slot]).cast(),
                    iov_len: size_of::<Offload>(),
                },
                libc::iovec {
                    // SAFETY: the buffer has STRIDE bytes for each of BATCH slots.
                    iov_base: unsafe { bytes.add(slot * STRIDE + TAG) }.cast(),
                    iov_len: MAX_FRAME,
                },
            ];
            let header = &mut messages[slot].msg_hdr;
            header.msg_name = (&raw mut frames.addresses[slot]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            header.msg_iov = pieces[slot].as_mut_ptr();
            header.msg_iovlen = 2;
            header.msg_control = frames.controls[slot].as_mut_ptr().cast();
            header.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
        }
        // SAFETY: every message points to room of its own, of the length it says, that lives in `frames` or on the
        // stack through the call.
        let count = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        }
        for (slot, message) in messages.iter().enumerate().take(count as usize) {
            if message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
                frames.too_long += 1;
                continue;
            }
            let Some(mut length) = (message.msg_len as usize).checked_sub(size_of::<Offload>())
            else {
                continue;
            };
            let mut start = slot * STRIDE + TAG;
            let mut offload = frames.offloads[slot];
            if length >= 2 * 6
                && let Some(tag) = tag_taken_off(&message.msg_hdr)
            {
                frames.bytes.copy_within(start..start + 12, start - TAG);
                start -= TAG;
                frames.bytes[start + 12..start + 16].copy_from_slice(&tag);
                length += TAG;
                offload = offload.behind_tag();
            }
            frames.received.push(Received {
                interface: frames.addresses[slot].sll_ifindex as u32,
                offload,
                start,
                length,
            });
        }
        Ok(frames.received.len())
    }

    /// Sends frames in order, without waiting; tells for each whether the kernel took it.
    pub fn send<'a>(
        &mut self,
        frames: impl Iterator<Item = Sending<'a>> + Clone,
        mut report: impl FnMut(Sending<'a>, io::Result<()>),
    ) {
        self.offloads.clear();
        self.addresses.clear();
        self.pieces.clear();
        self.messages.clear();
        for sending in frames.clone() {
            self.offloads.push(sending.offload);
            self.addresses.push(address(sending.interface));
        }
        for (index, sending) in frames.clone().enumerate() {
            self.pieces.push([
                libc::iovec {
                    iov_base: (&raw mut self.offloads[index]).cast(),
                    iov_len: size_of::<Offload>(),
                },
                libc::iovec {
                    iov_base: sending.frame.as_ptr().cast_mut().cast(),
                    iov_len: sending.frame.len(),
                },
            ]);
        }
        for (pieces, address) in self.pieces.iter_mut().zip(&mut self.addresses) {
            // SAFETY: `mmsghdr` is made of integers and pointers, for which zero is a value.
            let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
            message.msg_hdr.msg_name = (&raw mut *address).cast();
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            message.msg_hdr.msg_iov = pieces.as_mut_ptr();
            message.msg_hdr.msg_iovlen = 2;
            self.messages.push(message);
        }
        let mut frames = frames;
        let mut at = 0;
        while at < self.messages.len() {
            let rest = &mut self.messages[at..];
            // SAFETY: the messages point to addresses, offloads and pieces in `self` and to the callers' frames, none
            // of which is moved or changed before the call returns; the kernel only reads them.
            let sent = unsafe {
                libc::sendmmsg(
                    self.fd.as_raw_fd(),
                    rest.as_mut_ptr(),
                    rest.len() as u32,
                    libc::MSG_DONTWAIT,
                )
            };
            if sent > 0 {
                for sending in frames.by_ref().take(sent as usize) {
                    report(sending, Ok(()));
                }
                at += sent as usize;
                continue;
            }
            // The first of the rest is refused; those behind it may be for other ports.
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            if let Some(sending) = frames.next() {
                report(sending, Err(error));
            }
            at += 1;
        }
    }

    /// Frames that the kernel dropped since the last call because we were too slow.
    ///
    /// # Errors
    /// None that is known: see `PACKET_STATISTICS` in packet(7).
    pub fn overflow(&self) -> io::Result<u64> {
        let mut counters = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to `counters`.
        check(unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut counters).cast(),
                &raw mut length,
            )
        })?;
        Ok(u64::from(counters.tp_drops))
    }

    /// Looks an interface of this network namespace up.
    #[must_use]
    pub fn interface(&self, name: &str) -> Option<Interface> {
        let index = netdevice::index(name)?;
        let flags = netdevice::flags(&self.fd, name)?;
        let running = libc::IFF_UP | libc::IFF_RUNNING;
        Some(Interface {
            index,
            running: flags & running == running,
        })
    }

    /// Waits until a frame can be received, `other` can be read, or the time is over.
    ///
    /// # Errors
    /// The kernel has no memory left; an interrupted call is no error, it comes back early.
    pub fn wait(&self, other: BorrowedFd<'_>, limit: Option<Duration>) -> io::Result<()> {
        wait_readable([self.fd.as_fd(), other], limit)
    }
}

/// The address of an interface; protocol 0 lets the kernel read it from the frame.
fn address(interface: u32) -> libc::sockaddr_ll {
    // SAFETY: `sockaddr_ll` is made of integers, for which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = interface as libc::c_int;
    address
}

/// The tag that the kernel took off a received frame, as it stood behind the hardware addresses.
fn tag_taken_off(header: &libc::msghdr) -> Option<[u8; TAG]> {
    // SAFETY: `header` describes control messages that the kernel wrote, and whose room is still there.
    let message = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
    if (message.cmsg_level, message.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
        return None;
    }
    // SAFETY: a control message of this kind holds a `tpacket_auxdata`, perhaps not aligned.
    let known: libc::tpacket_auxdata =
        unsafe { ptr::read_unaligned(libc::CMSG_DATA(message).cast()) };
    if known.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let kind = if known.tp_status & libc::TP_STATUS_VLAN_TPID_VALID == 0 {
        raddle_wire::ethertype::VLAN
    } else {
        known.tp_vlan_tpid
    };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), known.tp_vlan_tci.to_be_bytes());
    Some([a, b, c, d])
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}
