//! Why a measurement ended before its end.

use std::io;

use raddle_host::rails::UseError;
use raddle_rails::{Failure, PortError, SendFailure};
use raddle_units::Span;
use thiserror::Error;

/// Why a measurement ended.
#[derive(Debug, Error)]
pub(crate) enum MeasureError {
    #[error("{0}")]
    Socket(#[from] io::Error),
    #[error(transparent)]
    Use(#[from] UseError),
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(transparent)]
    Failed(#[from] Failure),
    #[error("a message was not sent: {0}")]
    Send(#[from] SendFailure),
    #[error("standard output: {0}")]
    Output(io::Error),
    #[error("the client is connected, but has sent no message for {span}")]
    Idle { span: Span },
    #[error("message {number} of port {port} is wrong from byte {at} on: please report this")]
    Wrong { port: u16, number: u64, at: usize },
}
