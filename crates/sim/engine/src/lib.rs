//! The simulator: a discrete-event engine that drives the cores with virtual time.
//!
//! [`Network`] (a fabric with routes) and [`RunConfig`] (scheme, seed, buffers, faults) go in, a
//! [`raddle_workload::Workload`] supplies the messages, a [`Recorder`] receives what happens. A run may use several
//! threads ([`RunConfig::threads`]), which change its time and nothing else; independent runs are the caller's to spread over
//! threads. Same network, settings, workload and seed: same records.

pub mod blame;
mod buffers;
mod chance;
mod chunks;
pub mod collective;
pub mod effort;
mod engine;
mod event;
mod host_rails;
mod index;
mod mrg32k3a;
mod multicast;
mod offload;
mod packet;
mod packets;
mod paths;
pub mod rails;
pub mod ranks;
pub mod record;
pub mod semantics;
mod setup;

pub use buffers::{Buffers, IngressBuffer, PortBuffer, Sharing};
pub use chance::{MarkReplay, TraceError};
pub use engine::{
    can_have_tiles, check_run, footprint, needed_headroom, one_thread, simulate, simulate_in_ranks,
};
pub use multicast::{CombiningTree, ForeignTime, Multicast, MulticastGroup, MulticastUpdate};
pub use offload::{LostPackets, Offload, OffloadGroup, OffloadProtocol};
pub use record::{Discard, Progress, Recorder};
pub use semantics::Semantics;
pub use setup::{LinkFault, Network, Partition, PortSeries, RunConfig, RunSummary, SetupError};
