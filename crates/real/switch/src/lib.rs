//! The software switch `raddle-switch`: the state machine of `raddle-offload` on the ports of a Linux machine.
//!
//! A switch is one thread that owns everything a packet touches. A frame comes from `socket`, and [`bridge`] says
//! by which ports it leaves. What is for the switch itself (its own address: ARP, ping, messages of in-network
//! Allreduce) goes to `local`; the state machine is `raddle_offload::switch`. `daemon` is the loop around them.
//! A [`fast`] path in the kernel may take steady rounds away from it. A second thread is the [`service`] (signals, a changed
//! file, metrics, status), which asks the loop over a channel (`control`), so that the loop takes no lock.
//!
//! How to run a switch: `docs/reference/switch.md`.

pub mod bridge;
pub mod checks;
pub mod config;
pub mod control;
pub mod daemon;
pub mod fast;
pub mod faults;
pub mod local;
pub mod lock;
pub mod log;
pub mod metrics;
pub mod node;
pub mod ports;
pub mod reload;
pub mod serve;
pub mod service;
pub mod socket;
mod spin;
pub mod status;
#[cfg(raddle_xdp)]
pub mod xdp;
