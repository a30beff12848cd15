//! The default mode (`Semantics::CORRECTED`) against conservation laws and closed forms.
//!
//! One binary with a file per subject, so that it links once:
//! `cargo test -p raddle-engine --test corrected`.

mod accuracy;
mod buffers;
mod closed_forms;
mod combining;
mod common;
mod conservation;
mod control;
mod delays;
mod determinism;
mod faults;
mod graphs;
mod look_ahead;
mod loss;
mod multicast;
mod multicast_faults;
mod offload;
mod partitions;
mod published_offload;
mod rail_hosts;
mod rail_partitions;
mod rail_runs;
mod rails;
mod ways;
