//! What a connection tells its program: events, and why a message or the whole connection failed.

use raddle_units::Span;
use thiserror::Error;

/// What happened. Events come in order; those of a message after all its bytes were placed.
///
/// `T` is what stands for a buffer: the number that the connection was given with it, or the buffer itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<T = u64> {
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
        token: T,
    },
    /// A message was not sent.
    SendFailed {
        /// The token of the send.
        token: T,
        /// Why.
        error: SendFailure,
    },
    /// A message is whole, in order after those of its two ports before it.
    Received {
        /// The receive token whose buffer has it.
        token: T,
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
        token: T,
    },
    /// The connection failed; nothing comes after this.
    Failed(Failure),
}

impl<T> Event<T> {
    /// The same, with something else for its buffer.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Event<U> {
        match self {
            Self::Established => Event::Established,
            Self::RailUp { rail } => Event::RailUp { rail },
            Self::RailDown { rail } => Event::RailDown { rail },
            Self::Sent { token } => Event::Sent {
                token: change(token),
            },
            Self::SendFailed { token, error } => Event::SendFailed {
                token: change(token),
                error,
            },
            Self::Received {
                token,
                source_port,
                target_port,
                length,
            } => Event::Received {
                token: change(token),
                source_port,
                target_port,
                length,
            },
            Self::Returned { token } => Event::Returned {
                token: change(token),
            },
            Self::Failed(failure) => Event::Failed(failure),
        }
    }
}

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Failure {
    /// No rail carried anything.
    #[error("no rail carried anything to the other node and back for {:.2} s", silence.as_secs_f64())]
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

/// Why a message is not taken. Nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// No send token is left: wait until a message has arrived.
    #[error("{limit} messages are on their way, which is all that the connection takes")]
    QueueFull {
        /// The configuration's `send_queue`.
        limit: usize,
    },
    /// More than the port takes.
    #[error("port {port} takes messages of up to {longest} bytes, this one has {length}")]
    TooLong {
        /// The target port.
        port: u16,
        /// Bytes of the message.
        length: u64,
        /// Bytes that the port takes.
        longest: u64,
    },
    /// Too many ports.
    #[error(
        "a connection knows up to 64 ports of the other node and 64 that send to each; {port} is one more"
    )]
    Ports {
        /// The port.
        port: u16,
    },
    /// The connection has failed.
    #[error("the connection has failed")]
    Closed,
}
