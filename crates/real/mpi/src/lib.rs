//! `libraddle_mpi.so`: small collectives of unmodified MPI programs in switches, by `LD_PRELOAD`. `docs/reference/mpi.md` is the
//! user's page.
//!
//! A call goes through three layers:
//!
//! - `interpose`: the symbols. Each jumps to the MPI library's own function, or into a shim.
//! - `shim/`: C, once per MPI library and compiled against its mpi.h: from handles to numbers. `functions.toml` is the
//!   table of what is intercepted; `ffi` is the border to it.
//! - the core, which knows no MPI: `collectives` in switches; above them `messages`, which joins point-to-point messages
//!   (`docs/concepts/matching.md`), and `rails`, which carries large ones over several networks; highest `record`, which notes
//!   calls in `raddle-trace`'s format.
//!
//! Around these: `settings` (the environment), `job` (the process from start to end), `report`, `clock`, `log`, `floats`
//! (no traps).

#![warn(clippy::unwrap_used)]
#![expect(
    unsafe_code,
    reason = "symbols of a C library and sockets are what this crate is for"
)]

pub use collectives::reason;

mod channel;
mod clock;
mod collectives;
mod ffi;
mod floats;
mod interpose;
mod job;
mod library;
mod log;
mod messages;
mod node;
mod rails;
mod record;
mod report;
mod settings;
