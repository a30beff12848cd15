//! What a connection tells its program.

use raddle_units::Span;
use thiserror::Error;

/// What happened. Events come in order; those of a message after all its bytes were placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Both nodes know each other.
    Established,
    /// The rail carries data.
    RailUp {
        /// Its number.
        rail: usize,
    },
    /// The rail was silent for three heartbeats; what it had is sent on others.
    RailDown {
        /// Its number.
        rail: usize,
    },
    /// A message has arrived as a whole: its buffer is free, and a send token with it.
    Sent {
        /// The token of the send.
        token: u64,
    },
    /// A message was not sent.
    SendFailed {
        /// The token of the send.
        token: u64,
        /// Why.
        error: SendFailure,
    },
    /// A message is whole, in order after those of its two ports before it.
    Received {
        /// The receive token whose buffer has it.
        token: u64,
        /// The port that sent it.
        source_port: u16,
        /// The port it is for.
        target_port: u16,
        /// Its bytes.
        length: u64,
    },
    /// The connection failed: a receive buffer comes back without a message.
    Returned {
        /// Its receive token.
        token: u64,
    },
    /// The connection failed; nothing comes after this.
    Failed(Failure),
}

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Failure {
    /// No rail carried anything.
    #[error("no rail carried anything to the other node and back for {silence}")]
    AllRailsDown {
        /// For so long.
        silence: Span,
    },
    /// The other node has begun a new life and knows nothing of this connection.
    #[error("the other node was restarted")]
    PeerRestarted,
}

/// Why a message was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SendFailure {
    /// More than the target port takes.
    #[error("the target port takes messages of up to {longest} bytes")]
    TooLong {
        /// Bytes that it takes.
        longest: u64,
    },
    /// The connection failed.
    #[error(transparent)]
    Connection(#[from] Failure),
}
