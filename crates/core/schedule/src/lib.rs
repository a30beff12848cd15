//! Message scheduling: the point-to-point messages of one superstep in, and in which order and in which joined parcels
//! they are best sent out (`Peng` in `docs/references.bib`; `docs/concepts/scheduling.md` has formulas, readings and departures).
//!
//! Pure functions: no clock, socket, thread or random source. The simulator replays a [`Schedule`], the MPI library
//! applies it to real sends; O(M log M) for M messages.
//!
//! ```text
//! Message…  ─► MessageSet ─► Graphs (G, G') ─► Algorithm 1 ─► growing window ─► Schedule ─► ReceivePlan
//! Placement ─┘               graph.rs          order.rs       window.rs         schedule.rs  receive.rs
//! ```
//!
//! - [`parcel`]: the bytes of several messages that travel as one, written and read with checks.
//! - [`pattern`]: message sets of stencils, sweeps, particle codes and sparse matrices.
//!
//! # Order
//! MPI promises that messages of one (source, target) pair are matched in the order in which they were sent. A schedule
//! never changes the order inside a pair: [`Part::sequence`] counts a pair's messages in program order, and a process
//! issues those that it issues itself by ascending sequence. Where parts of one pair take different ways (some as they
//! are, some through the leader of the target's node) the receiver releases them by sequence; [`ReceivePlan::deliveries`]
//! is that order.
//!
//! ```
//! use raddle_schedule::{Message, MessageSet, Placement, Settings, schedule};
//! use raddle_units::Bytes;
//! let placement = Placement::blocks(4, 2).unwrap(); // ranks 0 and 1 on node 0, 2 and 3 on node 1
//! let message = |source, target| Message { source, target, bytes: Bytes(100) };
//! let messages = [message(0, 2), message(0, 1), message(0, 3), message(0, 2)];
//! let set = MessageSet::new(&messages, &placement).unwrap();
//! let plan = schedule(&set, &Settings::default());
//! let sends: Vec<Vec<u32>> = plan
//!     .sends(0)
//!     .iter()
//!     .map(|parcel| plan.parts(parcel).iter().map(|part| part.message).collect())
//!     .collect();
//! // The first as it is; the one inside the node keeps its place; the others to node 1 travel as one.
//! assert_eq!(sends, [vec![0], vec![1], vec![3, 2]]);
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used)]

mod graph;
mod groups;
mod order;
pub mod parcel;
pub mod pattern;
mod receive;
mod schedule;
mod set;
mod window;

pub use graph::{Edge, Graph, Graphs};
pub use order::{Distance, Priority, Reorder, Start, reorder};
pub use receive::{Delivery, Handover, ReceivePlan};
pub use schedule::{
    Before, LIBRARY, PUBLISHED, Parcel, Part, Schedule, Settings, UnknownVariant, Variant,
    schedule, schedule_next,
};
pub use set::{Message, MessageSet, Placement, SetError};
pub use window::{Join, Place, Scope, Window, growth_factor};
