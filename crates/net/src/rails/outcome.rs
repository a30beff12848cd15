//! What a node says: what happened, and why something cannot be done.

use std::io;

use raddle_transport::rails::{ConfigError, Event, Failure, PortError, SendError, SendFailure};
use thiserror::Error;

use super::{Buffer, BufferError, RailAddress};

/// Why a node cannot begin.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// As many addresses as rates are needed.
    #[error("{rates} rates for {addresses} rails")]
    Count {
        /// Rates in the configuration.
        rates: usize,
        /// Addresses given.
        addresses: usize,
    },
    /// The system cannot watch the sockets.
    #[error("the rails' sockets cannot be watched: {0}")]
    Watch(io::Error),
    /// The system refuses a socket.
    #[error("rail {rail} from {} to {}: {error}", address.local, address.peer)]
    Socket {
        /// The rail.
        rail: usize,
        /// Its addresses.
        address: RailAddress,
        /// What the system says.
        error: io::Error,
    },
}

/// Why a buffer is not sent or provided. Nothing has changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UseError {
    /// The buffer cannot be used so.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// The message is not taken.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The port does not take it.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeEvent {
    /// Both nodes know each other.
    Established,
    /// A rail carries data.
    RailUp {
        /// Its number.
        rail: usize,
    },
    /// A rail is silent.
    RailDown {
        /// Its number.
        rail: usize,
    },
    /// A message has arrived; its buffer is free.
    Sent {
        /// It.
        buffer: Buffer,
    },
    /// A message was not sent; its buffer is free.
    SendFailed {
        /// It.
        buffer: Buffer,
        /// Why.
        error: SendFailure,
    },
    /// A message is in a buffer, from its first byte on.
    Received {
        /// The buffer.
        buffer: Buffer,
        /// The port that sent it.
        source_port: u16,
        /// The port that it is for.
        target_port: u16,
        /// Its bytes.
        length: u64,
    },
    /// The connection failed: a buffer comes back without a message.
    Returned {
        /// It.
        buffer: Buffer,
    },
    /// The connection failed; nothing comes after this.
    Failed(Failure),
}

impl NodeEvent {
    /// What the connection tells; `give_back` gives the buffer of a token, which is the program's again.
    pub(super) fn of(event: Event, give_back: impl FnOnce(u64) -> Buffer) -> Self {
        match event {
            Event::Established => Self::Established,
            Event::RailUp { rail } => Self::RailUp { rail },
            Event::RailDown { rail } => Self::RailDown { rail },
            Event::Sent { token } => Self::Sent {
                buffer: give_back(token),
            },
            Event::SendFailed { token, error } => Self::SendFailed {
                buffer: give_back(token),
                error,
            },
            Event::Received {
                token,
                source_port,
                target_port,
                length,
            } => Self::Received {
                buffer: give_back(token),
                source_port,
                target_port,
                length,
            },
            Event::Returned { token } => Self::Returned {
                buffer: give_back(token),
            },
            Event::Failed(failure) => Self::Failed(failure),
        }
    }
}
