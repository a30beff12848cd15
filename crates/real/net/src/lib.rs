//! Raddle on real networks: the software switch `raddle-switch`, and drivers that run the cores of
//! `raddle-offload` over sockets.
//!
//! A switch is one thread that owns everything a packet touches. A frame comes from `socket`, and [`bridge`] says
//! by which ports it leaves. What is for the switch itself (its own address: ARP, ping, messages of in-network
//! Allreduce) goes to `local`; the state machine is `raddle_offload::switch`. `daemon` is the loop around them.
//! A [`fast`] path in the kernel may take steady rounds away from it. A second thread is the [`service`] (signals, a changed
//! file, metrics, status), which asks the loop over a channel (`control`), so that the loop takes no lock. `member` is the other end: a process's side of a
//! group over a UDP socket.
//!
//! How to run a switch: `docs/switch.md`.

pub mod bridge;
pub mod checks;
pub mod clock;
pub mod config;
pub mod control;
pub mod daemon;
pub mod datagrams;
pub mod ethtool;
pub mod fast;
pub mod faults;
pub mod interfaces;
pub mod local;
pub mod lock;
pub mod log;
pub mod member;
pub mod metrics;
pub mod node;
pub mod options;
pub mod ports;
pub mod rails;
pub mod readiness;
pub mod reload;
pub mod secret;
pub mod serve;
pub mod service;
pub mod socket;
mod spin;
pub mod status;
#[cfg(raddle_xdp)]
pub mod xdp;
