//! A Linux host as the cores need it: its clock, its interfaces, its sockets, memory that processes share, and the drivers
//! that run the cores of `raddle-offload` and `raddle-rails` on them.
//!
//! Whatever is preloaded into somebody's MPI program stands on this crate, so it brings no async runtime, no HTTP server
//! and no command line.
//!
//! - [`clock`]: time as the cores take it.
//! - [`interfaces`], [`netdevice`], [`ethtool`]: what there is, and what it can do.
//! - [`datagrams`], [`options`], [`readiness`]: UDP sockets, many datagrams per system call, and waiting for them.
//! - [`drive`]: the loop that drives a sans-IO endpoint over a UDP socket.
//! - [`roce`]: RoCEv2 packets over raw sockets.
//! - [`rails`]: messages over several rails between hosts.
//! - [`secret`]: the site's secret in its file.

pub mod clock;
pub mod datagrams;
pub mod drive;
pub mod ethtool;
pub mod interfaces;
pub mod netdevice;
pub mod options;
pub mod rails;
pub mod readiness;
pub mod roce;
pub mod secret;
