//! Traces of MPI programs: what ranks called and when, from a recording to statistics.
//!
//! Pure functions and values: no clock, file, thread or environment.
//!
//! ```text
//! a rank's calls ─► Recorder ─► bytes ─► RankRecording ─┐
//!                   recording/write.rs   read.rs        ├─► assemble ─► Trace
//! ```
//!
//! - [`Trace`], [`Event`], [`Action`]: the model (`model.rs`).
//! - [`Recorder`]: what a running program writes, under 16 bytes per message; [`RankRecording::decode`] reads it.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used)]

mod model;
mod recording;

pub use model::{
    Action, Collective, CollectiveKind, Event, Interval, Message, NEIGHBOUR_TAG, Trace,
    UnknownCollective, Wildcards,
};
pub use recording::{Completion, DecodeError, Origin, Outcome, Problem, RankRecording, Recorder};
