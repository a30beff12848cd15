//! Traces of MPI programs: what ranks called and when, from a recording to messages, supersteps and statistics.
//!
//! Pure functions and values: no clock, file, thread or environment.
//!
//! ```text
//! a rank's calls ─► Recorder ─► bytes ─► RankRecording ─► assemble ─► Trace ─► Pairing ─► Supersteps, Statistics
//!                   recording/write.rs   recording/read.rs   assemble.rs   pairing.rs
//! ```
//!
//! - [`Trace`], [`Event`], [`Action`]: the model (`model.rs`); [`Trace::check`] says what must hold (`check.rs`).
//! - [`Recorder`]: what a running program writes, under 16 bytes per message; [`RankRecording::decode`] reads it.
//! - [`Pairing`], [`Collectives`]: which calls belong together.
//! - [`goal`]: the text format of LogGOPSim; [`chakra`]: the execution traces of MLCommons.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used)]

mod assemble;
pub mod chakra;
mod check;
pub mod goal;
mod model;
mod pairing;
mod recording;
mod statistics;
mod superstep;

pub use assemble::{AssembleError, assemble};
pub use check::{EventProblem, TraceError};
pub use model::{
    Action, COLLECTIVE_TAG, Collective, CollectiveKind, Event, Interval, Message, NEIGHBOUR_TAG,
    Trace, UnknownCollective, Wildcards,
};
pub use pairing::{Collectives, Pairing, Transfer};
pub use recording::{Completion, DecodeError, Origin, Outcome, Problem, RankRecording, Recorder};
pub use statistics::{CollectiveCalls, SizeBin, Statistics, Times, Traffic};
pub use superstep::Supersteps;
