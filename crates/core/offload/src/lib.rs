//! In-network Allreduce without sockets and clocks: `docs/concepts/offload.md` says how it works.
//!
//! The driver hands in packets and the time, and sends what comes out: simulator, `raddle-switch` and the MPI library
//! run the same state machines.
//!
//! - [`reduce`]: one operation on two operands, element by element, as MPI libraries compute it.
//! - [`order`]: which tree of additions an MPI library makes, so that ours gives the same bits.
//! - [`program`]: that tree cut into what each node of the aggregation tree can do.
//! - [`roles`]: who leads and who sends to whom, as published.
//! - [`switch`], [`member`]: the two ends of a group.
//! - [`endpoint`]: a member with its recovery, for programs.
//! - [`setup`], [`tree`]: how a group comes to be.
//! - [`recovery`]: how all members leave together.
//! - [`comeback`]: when they try again.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used)]

pub mod comeback;
pub mod endpoint;
pub mod member;
pub mod order;
pub mod program;
pub mod recovery;
pub mod reduce;
pub mod roles;
pub mod setup;
pub mod switch;
pub mod tree;
