//! A member's state machine, of either protocol.

use std::net::{Ipv4Addr, SocketAddrV4};

use raddle_host::drive::SansIo;
use raddle_offload::{
    endpoint::{CallOutcome, Endpoint, Started},
    member::RoundSpec,
    published,
};
use raddle_units::Time;
use raddle_wire::native::Reason;

/// One member of one group.
pub(crate) enum Member {
    Native(Box<Endpoint>),
    /// Its frames do not go by UDP sockets: [`Member::handle_frame`] and [`Member::poll_frame`]. Messages to other members do.
    Published(Box<published::Endpoint>),
}

impl Member {
    /// Begins a call. False: offload is over, and the call is plain on every rank.
    pub(crate) fn start(&mut self, now: Time, spec: &RoundSpec, operands: &[u8]) -> bool {
        match self {
            Self::Native(endpoint) => match endpoint.start(now, spec, operands) {
                Ok(started) => started != Started::Plain,
                // A call that cannot begin here must not begin elsewhere.
                Err(_) => {
                    endpoint.freeze(now, Reason::Unsupported);
                    true
                }
            },
            Self::Published(endpoint) => match (spec.operation, spec.data_type) {
                (Some(operation), Some(data_type)) => {
                    endpoint.start(now, operation, data_type, operands) != Started::Plain
                }
                _ => false,
            },
        }
    }

    /// How the call stands.
    pub(crate) fn outcome(&self, now: Time) -> CallOutcome<'_> {
        match self {
            Self::Native(endpoint) => endpoint.outcome(),
            Self::Published(endpoint) => endpoint.outcome(now),
        }
    }

    /// A message from another member. True when it was for this group.
    pub(crate) fn hear(&mut self, now: Time, payload: &[u8]) -> bool {
        match self {
            Self::Native(endpoint) => endpoint.handle_packet(now, payload),
            Self::Published(endpoint) => endpoint.handle_packet(now, payload),
        }
    }

    /// A frame of the published protocol.
    pub(crate) fn handle_frame(&mut self, now: Time, frame: &[u8]) {
        if let Self::Published(endpoint) = self {
            endpoint.handle_frame(now, frame);
        }
    }

    /// The next frame of the published protocol: where it goes, and its length.
    pub(crate) fn poll_frame(&mut self, buffer: &mut [u8]) -> Option<(Ipv4Addr, usize)> {
        match self {
            Self::Native(_) => None,
            Self::Published(endpoint) => endpoint.poll_frame(buffer),
        }
    }

    /// The communicator is freed: the switches are told.
    pub(crate) fn leave(&mut self) {
        match self {
            Self::Native(endpoint) => endpoint.leave(),
            Self::Published(endpoint) => endpoint.kill(),
        }
    }

    /// Rounds, and messages that were sent again.
    pub(crate) fn counted(&self) -> (u64, u64) {
        match self {
            Self::Native(endpoint) => {
                let counters = endpoint.counters();
                (counters.rounds, counters.resent)
            }
            Self::Published(endpoint) => (endpoint.counters().rounds, 0),
        }
    }
}

impl SansIo for Member {
    fn handle_packet(&mut self, now: Time, _from: SocketAddrV4, payload: &[u8]) {
        self.hear(now, payload);
    }

    fn handle_timeout(&mut self, now: Time) {
        match self {
            Self::Native(endpoint) => endpoint.handle_timeout(now),
            Self::Published(endpoint) => endpoint.handle_timeout(now),
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        match self {
            Self::Native(endpoint) => endpoint.poll_timeout(),
            Self::Published(endpoint) => endpoint.poll_timeout(),
        }
    }

    fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
        match self {
            Self::Native(endpoint) => endpoint.poll_transmit(buffer),
            Self::Published(endpoint) => endpoint.poll_transmit(buffer),
        }
    }
}
