//! What one rank writes while its program runs, as bytes: written by [`Recorder`], read by [`RankRecording::decode`].
//!
//! Numbers are varints (LEB128, least group of 7 bits first); *signed* ones are zigzag-coded before. A text is its length
//! and its bytes (UTF-8). First comes the head:
//!
//! | field | |
//! |---|---|
//! | magic | 8 bytes, `RADDLREC` |
//! | version | 1 byte, 1 |
//! | rank, size | of MPI_COMM_WORLD |
//! | host, program, mpi | texts |
//!
//! Then records. Their first byte has the kind in the low four bits and flags in the high ones. Calls go on with *when*:
//! start minus the end of the call before (signed), then end minus start, both in ns.
//!
//! | kind | record | fields |
//! |---|---|---|
//! | 0 | end | ns since the end of the call before (signed); the last record |
//! | 1 | communicator | number of runs, then of each: first rank, number of ranks that follow one another |
//! | 2, 3 | send, started send | when, target, tag (signed), communicator, bytes |
//! | 4 | receive | when, source, tag (signed), communicator, bytes. Flag 0x10: MPI_ANY_SOURCE, 0x20: MPI_ANY_TAG |
//! | 5 | started receive | when, communicator. Flags as above |
//! | 6 | wait | when, number of requests, then of each 4 * age + outcome, then if 1: source, tag (signed), bytes |
//! | 7, 8 | collective, started one | when, 1 byte kind, communicator, bytes. Flag 0x10: and root |
//!
//! Communicators are numbered from 1 as they come, 0 is MPI_COMM_WORLD; so are requests from 0, one per started call. The age
//! of a request says how many were started after it. Outcomes: 0 a send or a collective is complete, 1 a receive is, 2 it
//! was cancelled.

mod read;
mod varint;
mod write;

pub use read::{DecodeError, Problem};
pub use write::Recorder;

use std::ops::Range;

use raddle_units::Bytes;

use crate::model::Event;

const MAGIC: &[u8; 8] = b"RADDLREC";
const VERSION: u8 = 1;
const ANY_SOURCE: u8 = 0x10;
const ANY_TAG: u8 = 0x20;
const HAS_ROOT: u8 = 0x10;

/// Kinds of records.
mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const COMMUNICATOR: u8 = 1;
    pub(super) const SEND: u8 = 2;
    pub(super) const START_SEND: u8 = 3;
    pub(super) const RECEIVE: u8 = 4;
    pub(super) const START_RECEIVE: u8 = 5;
    pub(super) const WAIT: u8 = 6;
    pub(super) const COLLECTIVE: u8 = 7;
    pub(super) const START_COLLECTIVE: u8 = 8;
}

/// Which rank of which program on which host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Size of MPI_COMM_WORLD.
    pub size: u32,
    /// Name of the host, the same for all its ranks.
    pub host: String,
    /// What ran.
    pub program: String,
    /// The MPI library and its version.
    pub mpi: String,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A send or a collective is complete.
    Done,
    /// A receive is complete; this is what it matched.
    Matched {
        /// Sending rank of MPI_COMM_WORLD.
        source: u32,
        /// Its tag.
        tag: i32,
        /// Bytes that came.
        bytes: Bytes,
    },
    /// It was cancelled, or nothing is known of what it did; the call that started it is left out.
    Cancelled,
}

/// A request that a wait completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Its number, from the recorder.
    pub request: u32,
    /// How it ended.
    pub outcome: Outcome,
}

/// What one rank recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankRecording {
    /// Where it comes from.
    pub origin: Origin,
    /// Members of each communicator in their order, as runs of ranks; 0 is MPI_COMM_WORLD. Numbers are the rank's own.
    pub communicators: Vec<Vec<Range<u32>>>,
    /// The rank's calls, [`crate::Action::End`] included. Started receives have what they matched.
    pub events: Vec<Event>,
    /// Whether the program came to MPI_Finalize.
    pub complete: bool,
    /// Started calls that are left out: cancelled, or receives that nobody waited for.
    pub left_out: u64,
}
