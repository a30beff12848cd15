//! One group as its leader has it: a socket to the switch, and the state machine behind it.
//!
//! The program's thread runs rounds and reads the socket; the service thread does what must go on without it: it keeps
//! the lease, and answers other members. Both lock the state machine for moments only.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddrV4, UdpSocket},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use raddle_host::{
    clock,
    drive::{self, MESSAGE, MESSAGES_AT_ONCE, Port},
    roce::RoceSocket,
};
use raddle_offload::{
    endpoint::{CallOutcome, Endpoint},
    member::RoundSpec,
};
use raddle_units::{Span, Time};
use raddle_wire::native::Collective;

use super::{member::Member, published::Number, spin::Spin};

/// A waiting rank lets the MPI library make progress each time that it has yielded so often.
const PROGRESS_EVERY: u32 = 16;
/// Where results come without a yield, it does so after so many rounds: a message of the program may be on its way.
const ROUNDS_PER_PROGRESS: u32 = 32;

/// How a round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The result is there.
    Done,
    /// The round is plain, and so are all that follow. It took so long to find that out.
    Plain { held_up: Span },
}

/// What only the program's thread uses, in a round.
struct Caller {
    spin: Spin,
    buffer: Box<[u8]>,
    /// Rounds since the MPI library last made progress.
    rounds: u32,
}

pub(crate) struct Link {
    socket: Arc<UdpSocket>,
    /// The switch, where the socket is connected to it.
    switch: Option<SocketAddrV4>,
    /// Of the published protocol: for its frames.
    roce: Option<RoceSocket>,
    /// Of the published protocol, where rank 0 is: the group's number, which nobody else has as long as the link is there.
    _number: Option<Number>,
    member: Arc<Mutex<Member>>,
    caller: Mutex<Caller>,
    /// The program's thread is in a round and looks after everything.
    busy: AtomicBool,
}

/// A group that has left its switch, and still answers other members. It has no socket of its own: a program that frees
/// communicators all the time would use up the files that a process may have open.
#[derive(Clone)]
pub(crate) struct Retired(Arc<Mutex<Member>>);

impl Retired {
    /// Whether it was this link.
    pub(crate) fn was(&self, link: &Link) -> bool {
        Arc::ptr_eq(&self.0, &link.member)
    }

    /// A message from another member. True when it was for this group.
    pub(crate) fn hear(&self, payload: &[u8]) -> bool {
        lock(&self.0).hear(clock::now(), payload)
    }

    /// Does what is due; what it sends goes over `socket`. Gives the time of the next call.
    pub(crate) fn attend(&self, socket: &UdpSocket, buffer: &mut [u8]) -> Option<Time> {
        drive::attend(&mut *lock(&self.0), Port::of(socket), buffer)
    }
}

fn lock(member: &Mutex<Member>) -> MutexGuard<'_, Member> {
    member.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub(crate) fn native(socket: Arc<UdpSocket>, endpoint: Endpoint) -> Self {
        let switch = connect(&socket, &endpoint);
        let member = Member::Native(Box::new(endpoint));
        Self::new(socket, member, switch, None, None)
    }

    /// `socket` is for messages to other members, `roce` for frames.
    pub(crate) fn published(
        socket: UdpSocket,
        member: Member,
        roce: RoceSocket,
        number: Option<Number>,
    ) -> Self {
        Self::new(Arc::new(socket), member, None, Some(roce), number)
    }

    fn new(
        socket: Arc<UdpSocket>,
        member: Member,
        switch: Option<SocketAddrV4>,
        roce: Option<RoceSocket>,
        number: Option<Number>,
    ) -> Self {
        Self {
            socket,
            switch,
            roce,
            _number: number,
            member: Arc::new(Mutex::new(member)),
            caller: Mutex::new(Caller {
                spin: Spin::new(),
                buffer: vec![0; MESSAGE].into(),
                rounds: 0,
            }),
            busy: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Member> {
        lock(&self.member)
    }

    fn port(&self) -> Port<'_> {
        Port {
            socket: &self.socket,
            peer: self.switch,
        }
    }

    /// One round; its result goes to `result`. `progress` lets the MPI library move its messages.
    pub(crate) fn round(
        &self,
        spec: &RoundSpec,
        operands: &[u8],
        result: &mut Vec<u8>,
        progress: impl Fn(),
    ) -> Ending {
        self.busy.store(true, Ordering::Relaxed);
        let ending = self.drive(spec, operands, result, progress);
        self.busy.store(false, Ordering::Relaxed);
        ending
    }

    fn drive(
        &self,
        spec: &RoundSpec,
        operands: &[u8],
        result: &mut Vec<u8>,
        progress: impl Fn(),
    ) -> Ending {
        let mut caller = self.caller.lock().unwrap_or_else(PoisonError::into_inner);
        let Caller {
            spin,
            buffer,
            rounds,
        } = &mut *caller;
        spin.begin();
        let mut member = self.lock();
        // Frames for other groups of this host would fill the room of those that come now.
        self.take_frames(&mut member, buffer);
        let begun = clock::now();
        let plain = || Ending::Plain {
            held_up: clock::now().since(begun),
        };
        if !member.start(begun, spec, operands) {
            return plain();
        }
        self.transmit(&mut member, buffer);
        let mut yields = 0_u32;
        loop {
            match member.outcome(clock::now()) {
                CallOutcome::Pending => {}
                CallOutcome::Done(values) => {
                    result.clear();
                    result.extend_from_slice(values);
                    drop(member);
                    spin.end();
                    *rounds += 1;
                    // What was sent before a barrier should be there behind it, as it is behind one of messages: programs
                    // probe for it, or test a window, once.
                    if *rounds >= ROUNDS_PER_PROGRESS || spec.collective == Collective::Barrier {
                        *rounds = 0;
                        progress();
                    }
                    return Ending::Done;
                }
                CallOutcome::Plain(_) => return plain(),
            }
            if spin.must_yield() {
                drop(member);
                yields += 1;
                if yields.is_multiple_of(PROGRESS_EVERY) {
                    progress();
                }
                thread::yield_now();
                member = self.lock();
            }
            self.turn(&mut member, buffer);
        }
    }

    /// Takes what came, does what is due, and sends.
    fn turn(&self, member: &mut Member, buffer: &mut [u8]) {
        if self.roce.is_none() {
            // What cannot be received counts as lost: the round goes on, or is overdue.
            let _ = drive::turn(member, self.port(), buffer, is_decided);
            return;
        }
        self.take_frames(member, buffer);
        drive::attend(member, self.port(), buffer);
        self.send_frames(member, buffer);
    }

    fn transmit(&self, member: &mut Member, buffer: &mut [u8]) {
        drive::transmit(member, self.port(), buffer);
        self.send_frames(member, buffer);
    }

    /// Takes frames of the published protocol, until the call is decided.
    fn take_frames(&self, member: &mut Member, buffer: &mut [u8]) {
        let Some(roce) = &self.roce else { return };
        let pending = !is_decided(member);
        for _ in 0..MESSAGES_AT_ONCE {
            // What cannot be received counts as lost.
            let Ok(Some(length)) = roce.receive(buffer) else {
                break;
            };
            member.handle_frame(clock::now(), &buffer[..length]);
            if pending && is_decided(member) {
                break;
            }
        }
    }

    fn send_frames(&self, member: &mut Member, buffer: &mut [u8]) {
        let Some(roce) = &self.roce else { return };
        while let Some((to, length)) = member.poll_frame(buffer) {
            // What the kernel does not take is as good as lost.
            let _ = roce.send(to, &buffer[..length]);
        }
    }

    /// The communicator is freed: the switch is told. Other members are still answered.
    pub(crate) fn leave(&self) -> Retired {
        let mut member = self.lock();
        member.leave();
        self.transmit(&mut member, &mut [0; MESSAGE]);
        drop(member);
        Retired(Arc::clone(&self.member))
    }

    /// Rounds, and messages that were sent again.
    pub(crate) fn counted(&self) -> (u64, u64) {
        self.lock().counted()
    }

    /// From the service thread: a message from another member. True when it was for this group.
    pub(crate) fn hear(&self, payload: &[u8]) -> bool {
        self.lock().hear(clock::now(), payload)
    }

    /// From the service thread: does what is due. Gives the time of the next call.
    pub(crate) fn attend(&self, buffer: &mut [u8]) -> Option<Time> {
        let mut member = self.lock();
        if self.busy.load(Ordering::Relaxed) {
            drive::transmit(&mut *member, self.port(), buffer);
            return Some(clock::now() + Span::from_ms(100));
        }
        drive::attend(&mut *member, self.port(), buffer)
    }
}

fn is_decided(member: &Member) -> bool {
    member.outcome(clock::now()) != CallOutcome::Pending
}

/// Connects a member's socket to its switch: then the kernel looks for no route, neither for contributions nor for results.
/// None where that cannot be: a connected socket takes only what comes to the address that it sends from, and a host with
/// several may be known to the switch by another.
fn connect(socket: &UdpSocket, endpoint: &Endpoint) -> Option<SocketAddrV4> {
    let switch = endpoint.switch();
    let trial = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    trial.connect(switch).ok()?;
    if trial.local_addr().ok()?.ip() != IpAddr::V4(endpoint.address()?) {
        return None;
    }
    socket.connect(switch).ok()?;
    Some(switch)
}

/// A UDP socket that does not block, on a free port.
pub(crate) fn open_socket() -> io::Result<UdpSocket> {
    drive::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))
}

#[cfg(test)]
mod tests {
    use std::{net::SocketAddr, time::Duration};

    use raddle_offload::member::MemberConfig;
    use raddle_wire::native::{Header, JobKey};

    use super::*;

    /// A member that all know by `own`.
    fn link(switch: SocketAddrV4, own: Ipv4Addr) -> Link {
        let config = MemberConfig {
            job: 1,
            key: JobKey::new([7; 16]),
            group: 1,
            member: 0,
            switch,
            slots: 4,
            segment_bytes: 64,
            operands: 1,
            lease: Span::from_ms(300),
            retry: Span::from_ms(1),
            give_up: Span::from_ms(100),
        };
        let members = vec![SocketAddrV4::new(own, 1)];
        let endpoint = Endpoint::new(clock::now(), config, members);
        Link::native(Arc::new(open_socket().expect("a port is free")), endpoint)
    }

    #[test]
    fn who_is_known_by_another_address_than_it_sends_from_does_not_connect() {
        let switch = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let patience = Some(Duration::from_secs(10));
        switch.set_read_timeout(patience).expect("not zero");
        let Ok(SocketAddr::V4(place)) = switch.local_addr() else {
            panic!("bound to an IPv4 address");
        };
        for (own, connects) in [
            (Ipv4Addr::LOCALHOST, true),
            (Ipv4Addr::new(127, 0, 0, 2), false),
        ] {
            let link = link(place, own);
            assert_eq!(link.switch, connects.then_some(place));
            let _ = link.leave();
            let (length, from) = switch.recv_from(&mut [0; MESSAGE]).expect("it takes leave");
            assert_eq!(length, Header::SIZE);
            assert_eq!(link.socket.peer_addr().is_ok(), connects);
            // What the switch answers comes, to whatever address the members gave.
            let answer = SocketAddr::from((own, from.port()));
            switch.send_to(b"answer", answer).expect("on the loopback");
            assert!((0..1000).any(|_| {
                thread::sleep(Duration::from_millis(1));
                link.socket.recv(&mut [0; MESSAGE]).is_ok()
            }));
        }
    }

    #[test]
    fn a_group_that_has_left_keeps_no_socket() {
        let switch = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let Ok(SocketAddr::V4(place)) = switch.local_addr() else {
            panic!("bound to an IPv4 address");
        };
        let link = link(place, Ipv4Addr::LOCALHOST);
        let own = link.socket.local_addr().expect("it is bound");
        let retired = link.leave();
        assert!(retired.was(&link));
        assert!(UdpSocket::bind(own).is_err(), "the link has its port");
        drop(link);
        assert!(UdpSocket::bind(own).is_ok(), "the port is free again");
        // It is asked and attended as before, over the socket of the service.
        assert!(!retired.hear(b"?"));
        retired.attend(&switch, &mut [0; MESSAGE]);
    }
}
