//! A leader's attempt to have a group, while it runs: its socket, and the state machine behind it. The service thread drives
//! it, so that the program computes meanwhile; where the program waits for it, its thread does so, too.

use std::{
    net::{SocketAddr, UdpSocket},
    os::fd::{AsRawFd, RawFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use raddle_host::{
    clock,
    drive::{self, MESSAGE, Port},
};
use raddle_offload::{
    retry::TryState,
    setup::{Agreement, Attempt, SetupOutcome},
};
use raddle_units::Time;
use raddle_wire::native;

use super::{link::Link, published, reason::Reason};

/// An attempt, by either protocol.
pub(crate) enum LeaderAttempt {
    Native(Box<NativeAttempt>),
    Published(Box<published::Attempt>),
}

impl LeaderAttempt {
    /// What tells that something came; `None` once the attempt is over.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        match self {
            Self::Native(attempt) => Some(attempt.socket.as_raw_fd()),
            Self::Published(attempt) => attempt.descriptor(),
        }
    }

    /// Takes messages that came, does what is due and sends. Gives the time of the next call; a message may need one earlier.
    pub(crate) fn step(&self, buffer: &mut [u8]) -> Option<Time> {
        match self {
            Self::Native(attempt) => attempt.step(buffer),
            Self::Published(attempt) => attempt.step(buffer),
        }
    }

    /// From the service thread: a message from another member. True when it was for this group.
    pub(crate) fn hear(&self, from: SocketAddr, payload: &[u8]) -> bool {
        match self {
            Self::Native(attempt) => attempt.hear(from, payload),
            Self::Published(_) => false,
        }
    }

    pub(crate) fn try_state(&self) -> TryState {
        match self {
            Self::Native(attempt) => attempt.try_state(),
            Self::Published(attempt) => attempt.try_state(),
        }
    }

    /// Ends the attempt: no group is set up.
    pub(crate) fn cancel(&self) {
        match self {
            Self::Native(attempt) => attempt.cancel(),
            Self::Published(attempt) => attempt.cancel(),
        }
    }
}

/// An attempt by our protocol.
pub(crate) struct NativeAttempt {
    socket: Arc<UdpSocket>,
    /// `None` once it has an end.
    attempt: Mutex<Option<Attempt>>,
}

impl NativeAttempt {
    pub(crate) fn new(socket: UdpSocket, attempt: Attempt) -> Self {
        Self {
            socket: Arc::new(socket),
            attempt: Mutex::new(Some(attempt)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Attempt>> {
        self.attempt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, buffer: &mut [u8]) -> Option<Time> {
        let mut attempt = self.lock();
        let attempt = attempt.as_mut()?;
        // What cannot be received counts as lost: it is asked for again.
        let _ = drive::turn(attempt, Port::of(&self.socket), buffer, |_| false);
        attempt.poll_timeout()
    }

    fn hear(&self, from: SocketAddr, payload: &[u8]) -> bool {
        match (self.lock().as_mut(), from) {
            (Some(attempt), SocketAddr::V4(from)) => {
                attempt.handle_packet(clock::now(), from, payload)
            }
            _ => false,
        }
    }

    fn try_state(&self) -> TryState {
        match self.lock().as_ref().map(Attempt::outcome) {
            Some(SetupOutcome::Pending) => TryState::Pending,
            Some(SetupOutcome::Ready(_)) => TryState::Ready,
            Some(SetupOutcome::Failed(reason)) => TryState::Failed(translate(reason) as u8),
            None => TryState::Failed(Reason::Failed as u8),
        }
    }

    /// All are ready: the group goes on as a link. `None` only where [`try_state`](Self::try_state) never said so.
    pub(crate) fn take(&self) -> Option<(Agreement, Link)> {
        let (agreement, endpoint) = self.lock().take()?.into_endpoint()?;
        Some((agreement, Link::native(Arc::clone(&self.socket), endpoint)))
    }

    fn cancel(&self) {
        if let Some(mut attempt) = self.lock().take() {
            attempt.cancel(native::Reason::Unsupported);
            drive::transmit(&mut attempt, Port::of(&self.socket), &mut [0; MESSAGE]);
        }
    }
}

/// Ours for a reason of the protocol.
const fn translate(reason: native::Reason) -> Reason {
    match reason {
        native::Reason::NoSwitch
        | native::Reason::NoTree
        | native::Reason::NoAnswer
        | native::Reason::Overdue => Reason::NoSwitch,
        _ => Reason::Refused,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use raddle_host::drive::MESSAGES_AT_ONCE;
    use raddle_offload::setup::{AttemptConfig, MemberPlace, all_terms};
    use raddle_units::Span;
    use raddle_wire::native::JobKey;

    use super::*;

    #[test]
    fn a_flood_does_not_keep_the_attempt() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        socket.set_nonblocking(true).expect("a socket can be so");
        let Ok(SocketAddr::V4(place)) = socket.local_addr() else {
            panic!("bound to an IPv4 address");
        };
        let members = [0, 1].map(|rank| MemberPlace {
            address: place,
            ranks: vec![rank],
        });
        let config = AttemptConfig {
            job: 1,
            key: JobKey::new([7; 16]),
            group: 1,
            member: 0,
            places: members.to_vec(),
            peers: vec![place; 2],
            terms: all_terms(2),
            expression: None,
            results: None,
            datagram: 1472,
            set_up_retry: Span::from_ms(20),
            set_up_give_up: Span::from_ms(10_000),
            retry: Span::from_ms(1),
            give_up: Span::from_ms(100),
        };
        let attempt = NativeAttempt::new(socket, Attempt::new(clock::now(), config));
        let flood = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        for _ in 0..3 * MESSAGES_AT_ONCE {
            flood.send_to(b"?", place).expect("on the loopback");
        }
        attempt.step(&mut [0; MESSAGE]);
        assert_eq!(attempt.try_state(), TryState::Pending);
        // The rest waits for the next time.
        let mut left = 0;
        while attempt.socket.recv(&mut [0; MESSAGE]).is_ok() {
            left += 1;
        }
        assert!(left >= MESSAGES_AT_ONCE, "{left}");
    }
}
