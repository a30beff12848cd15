//! What a node says: what happened, and why something cannot be done.

use std::io;

use raddle_rails::{ConfigError, Event, PortError, SendError};
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

/// What happened; tokens are buffers, which are the program's again.
pub type NodeEvent = Event<Buffer>;
