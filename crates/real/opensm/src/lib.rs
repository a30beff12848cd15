//! C-MR4LMS as a routing engine of OpenSM: `event_plugin_name raddle`.
//!
//! OpenSM loads `libraddle.so`. A thin C shim (`shim/`) knows OpenSM's structures; it hands discovered subnets
//! and groups to the engine through the C ABI of `abi` and sends what the engine changed. All decisions are made here:
//!
//! - `subnet`: the map of a subnet, kept over sweeps, so that a switch keeps its place when its neighbours fail.
//! - `unicast`: linear forwarding tables, up*/down* on fat trees.
//! - `engine`: groups, MLIDs and the blocks of tables that were sent.
//! - `numbers`: what the equations take for a MGID.
//! - `moves`: groups that got another MLID, until they are told in OpenSM's log.
//! - `config`: the plugin's own configuration file.
//! - `abi`: what C calls. Nothing panics across it.

#![warn(clippy::unwrap_used)]
#![expect(unsafe_code, reason = "a C ABI is what this crate is for")]

mod abi;
mod config;
mod engine;
mod moves;
mod numbers;
mod subnet;
mod unicast;
