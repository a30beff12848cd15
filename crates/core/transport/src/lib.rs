//! End-to-end transport cores: congestion control ([`cc`]), go-back-N reliability ([`reliability`]), its form for groups
//! ([`group`]), and datagrams that come over two trees ([`copies`]).
//!
//! All are pure state machines: time, acknowledgements and parameters go in; rates, windows, timers and what to send
//! next come out. They hold no clock, packet buffer or random source, so the simulator and real sockets drive the same
//! code. What is not here: pacing on a particular NIC and the choice among flows (the driver's), and the signals'
//! encoding in switches (`raddle-switch`).

pub mod cc;
pub mod copies;
pub mod group;
pub mod reliability;
pub mod telemetry;
