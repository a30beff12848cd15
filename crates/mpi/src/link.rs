//! One group as its leader has it: a socket to the switch, and the state machine behind it.
//!
//! The program's thread runs rounds and reads the socket; the service thread does what must go on without it: it keeps
//! the lease, and answers other members. Both lock the state machine for moments only.

use std::{
    io,
    net::{Ipv4Addr, UdpSocket},
    os::fd::AsRawFd,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use raddle_offload::{
    endpoint::{CallOutcome, Endpoint, Started},
    member::{MemberCounters, RoundSpec},
};
use raddle_units::Time;
use raddle_wire::native::{Header, MAX_BODY, Reason};

use crate::{abi, clock, patience::Patience, service};

/// Bytes of the longest message.
pub(crate) const MESSAGE: usize = Header::SIZE + MAX_BODY;
/// Times that a waiting rank yields between two turns of the MPI library's crank.
const PROGRESS_EVERY: u32 = 16;

/// How a round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The result is there.
    Done,
    /// The round is plain, and so are all that follow.
    Plain,
}

/// What only the program's thread uses, in a round.
struct Caller {
    patience: Patience,
    buffer: Box<[u8]>,
}

pub(crate) struct Link {
    socket: UdpSocket,
    endpoint: Mutex<Endpoint>,
    caller: Mutex<Caller>,
    /// The program's thread is in a round and looks after everything.
    busy: AtomicBool,
}

impl Link {
    pub(crate) fn new(socket: UdpSocket, endpoint: Endpoint) -> Self {
        Self {
            socket,
            endpoint: Mutex::new(endpoint),
            caller: Mutex::new(Caller {
                patience: Patience::new(),
                buffer: vec![0; MESSAGE].into(),
            }),
            busy: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Endpoint> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One round; its result goes to `result`.
    pub(crate) fn round(&self, spec: &RoundSpec, operands: &[u8], result: &mut Vec<u8>) -> Ending {
        self.busy.store(true, Ordering::Relaxed);
        let ending = self.drive(spec, operands, result);
        self.busy.store(false, Ordering::Relaxed);
        if ending == Ending::Plain {
            service::wake();
        }
        ending
    }

    fn drive(&self, spec: &RoundSpec, operands: &[u8], result: &mut Vec<u8>) -> Ending {
        let mut caller = self.caller.lock().unwrap_or_else(PoisonError::into_inner);
        let Caller { patience, buffer } = &mut *caller;
        patience.begin();
        let mut endpoint = self.lock();
        match endpoint.start(clock::now(), spec, operands) {
            Ok(Started::Offloaded(_)) => {}
            Ok(Started::Plain) => return Ending::Plain,
            // A call that cannot begin here must not begin elsewhere.
            Err(_) => endpoint.freeze(clock::now(), Reason::Unsupported),
        }
        let mut yields = 0_u32;
        loop {
            self.transmit(&mut endpoint, buffer);
            match endpoint.outcome() {
                CallOutcome::Pending => {}
                CallOutcome::Done(values) => {
                    result.clear();
                    result.extend_from_slice(values);
                    patience.end();
                    return Ending::Done;
                }
                CallOutcome::Plain(_) => return Ending::Plain,
            }
            if patience.must_yield() {
                drop(endpoint);
                yields += 1;
                if yields.is_multiple_of(PROGRESS_EVERY) {
                    abi::progress();
                }
                thread::yield_now();
                endpoint = self.lock();
            }
            self.receive(&mut endpoint, buffer);
            let now = clock::now();
            if endpoint.poll_timeout().is_some_and(|due| due <= now) {
                endpoint.handle_timeout(now);
            }
        }
    }

    /// Takes what came, until the call is decided: what comes behind its result is the next call's matter.
    fn receive(&self, endpoint: &mut Endpoint, buffer: &mut [u8]) {
        while let Ok((length, _)) = self.socket.recv_from(buffer) {
            endpoint.handle_packet(clock::now(), &buffer[..length]);
            if endpoint.outcome() != CallOutcome::Pending {
                return;
            }
        }
    }

    fn transmit(&self, endpoint: &mut Endpoint, buffer: &mut [u8]) {
        while let Some((to, length)) = endpoint.poll_transmit(buffer) {
            // What cannot be sent is as good as lost, and sent again.
            let _ = self.socket.send_to(&buffer[..length], to);
        }
    }

    /// The communicator is freed: the switch is told. Other members are still answered.
    pub(crate) fn leave(&self) {
        let mut endpoint = self.lock();
        endpoint.leave();
        self.transmit(&mut endpoint, &mut [0; MESSAGE]);
    }

    pub(crate) fn counters(&self) -> MemberCounters {
        self.lock().counters()
    }

    /// From the service thread: a message from another member. True when it was for this group.
    pub(crate) fn hear(&self, payload: &[u8]) -> bool {
        self.lock().handle_packet(clock::now(), payload)
    }

    /// From the service thread: does what is due. Gives when to come again.
    pub(crate) fn attend(&self, buffer: &mut [u8]) -> Option<Time> {
        let mut endpoint = self.lock();
        let now = clock::now();
        let busy = self.busy.load(Ordering::Relaxed);
        if !busy && endpoint.poll_timeout().is_some_and(|due| due <= now) {
            endpoint.handle_timeout(now);
        }
        self.transmit(&mut endpoint, buffer);
        if busy {
            return Some(now + clock::span(Duration::from_millis(100)));
        }
        endpoint.poll_timeout()
    }
}

/// A UDP socket that does not block, on a free port. Its datagrams have no checksum: their tag covers them, and nobody has to
/// complete it on the way.
pub(crate) fn open_socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.set_nonblocking(true)?;
    let yes: libc::c_int = 1;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `yes`. Where it refuses, checksums are made.
    let _ = unsafe {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_NO_CHECK);
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const yes).cast(),
            length,
        )
    };
    Ok(socket)
}
