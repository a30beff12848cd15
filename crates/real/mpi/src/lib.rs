//! `libraddle_mpi.so`: small collectives of unmodified MPI programs in switches, by `LD_PRELOAD`. `docs/reference/mpi.md` is the
//! user's page.
//!
//! A call goes through three layers:
//!
//! - `interpose`: the symbols. Each jumps to the MPI library's own function, or into a shim.
//! - `shim/`: C, once per MPI library and compiled against its mpi.h: from handles to numbers. `functions.toml` is the
//!   table of what is intercepted; `shim/border.h` is the border to Rust, and `ffi` is made from it.
//! - the core, which knows no MPI.
//!
//! The parts of the core, of which each knows only those before it; beside each is its C in `shim/`:
//!
//! - `library`: plain MPI calls and progress, behind a trait that tests fake; `channel`: parcels between ranks.
//! - `collectives`: small collectives in switches.
//! - `rails`: large messages over several networks; `messages`: point-to-point messages, joined (`docs/concepts/matching.md`).
//! - `record`: notes of calls in `raddle-trace`'s format.
//! - `job`: the process from start to end.
//!
//! Around these: `settings` (the environment), `node` (where this process runs), `report`, `log`, `floats` (no traps).

#![warn(clippy::unwrap_used)]
#![expect(
    unsafe_code,
    reason = "symbols of a C library and sockets are what this crate is for"
)]

pub use collectives::reason;

mod channel;
mod collectives;
mod ffi;
mod floats;
mod interpose;
mod job;
mod library;
mod log;
mod messages;
mod node;
mod profile;
mod rails;
mod record;
mod report;
mod settings;
