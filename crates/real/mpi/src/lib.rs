//! `libraddle_mpi.so`: small collectives of unmodified MPI programs in switches, by `LD_PRELOAD`. `docs/guide/mpi.md` is the
//! user's page.
//!
//! A call goes through three layers:
//!
//! - `trampolines`, `resolve`: the symbols. Each jumps to the MPI library's own function, or into a shim.
//! - `shim/`: C, once per MPI library and compiled against its mpi.h: from handles to numbers. `functions.toml` is the
//!   table of what is intercepted.
//! - the core, which knows no MPI: `communicator` decides about each call, `ready` finds its way and tries again what has
//!   failed, `group` has the rounds of one communicator, `service` sets groups up (`setup`, `trial`), keeps them alive and
//!   answers other ranks while the program computes.
//!
//! `messages` is a layer above: it joins the program's messages (`docs/concepts/matching.md`), and `rails` carries large ones over
//! several networks. `record` is the highest: it notes
//! calls, offloaded or not, in `raddle-trace`'s format.
//!
//! Around these: `settings` (the environment), `job` (the process from start to end), `report`, [`reason`], `layout`
//! (C's layout of values and the wire's), `adapt` (is it faster?), `patience` (how to wait), `floats` (no traps).

#![warn(clippy::unwrap_used)]
#![expect(
    unsafe_code,
    reason = "symbols of a C library and sockets are what this crate is for"
)]

pub mod reason;

mod abi;
mod adapt;
mod clock;
mod communicator;
mod floats;
mod group;
mod job;
mod layout;
mod link;
mod log;
mod messages;
mod orders;
mod patience;
mod places;
mod rails;
mod ready;
mod record;
mod report;
mod resolve;
mod service;
mod settings;
mod setup;
mod trampolines;
mod trial;
