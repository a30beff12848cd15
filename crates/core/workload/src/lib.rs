//! Traffic: who sends how much to whom, and when.
//!
//! A [`Workload`] gives [`Message`]s to a driver, one at a time and in order of time, and hears of deliveries. It is a
//! pure state machine: no clock, file, thread or random source of its own; the same seed gives the same messages on
//! every machine. What waits for nothing but time is a stream ([`Streamed`], [`FlowList`]); what waits for other
//! messages is a [`MessageGraph`] or a closed loop ([`Gpcnet`]). Generators and readers make flows when they are asked
//! for, so 10^7 of them need not fit in memory.
//!
//! - [`TrafficSource`] and [`TrafficSpec`]: the `[traffic]` table of an experiment
//! - [`HpcMix`], [`Gpcnet`], [`Poisson`], [`Permutation`], [`Incast`], [`AllToAll`], [`Multicast`], [`Flows`]: one file each
//! - [`collective`]: collectives of MPI as graphs, with what they cost on hosts
//! - [`read_flows`], [`stream_flows`], [`write_hpcc_ns3`], [`write_csv`], [`write_parquet`]: flow files
//! - [`describe`]: counts, bytes and sizes per class
//!
//! ```
//! use raddle_units::{BitRate, NodeId};
//! use raddle_workload::{LoadBase, TrafficSpec, describe};
//! let hosts: Vec<NodeId> = (0..320).map(NodeId).collect();
//! let rate = BitRate::from_gbps(100);
//! let spec = TrafficSpec::HpcMix(Default::default());
//! let mut flows = spec.build(&hosts, rate, 1).unwrap();
//! let base = LoadBase { hosts: 320, host_rate: rate, window: spec.window(), limit: u64::MAX };
//! let stats = describe(&mut flows, &base).unwrap();
//! assert_eq!(stats.flows, 19_181);
//! ```

mod beside;
mod cdf;
pub mod collective;
mod error;
mod format;
mod generate;
mod graph;
mod ideal;
mod limits;
mod list;
mod message;
mod samplers;
mod spec;
mod stats;
mod windows;

pub use beside::{Beside, Without};
pub use cdf::SizeCdf;
pub use error::{MAX_SIZE_BYTES, MAX_START_PS, Place, PlaceUnit, Problem, TrafficError};
pub use format::{
    CsvFlows, FlowFormat, FlowReader, FlowTimes, HpccFlows, ParquetFlows, ReadOptions,
    apply_class_file, guarded, read_flows, stream_flows, write_csv, write_hpcc_ns3, write_parquet,
};
pub use generate::{
    AllToAll, Combining, Congestor, FlowGroup, Flows, Gpcnet, GridOperation, HPC_MIX_CLASSES,
    HpcMix, Incast, LineGroup, Multicast, MulticastEngineName, Nodes, Permutation, Poisson,
    ProcessLine, SizeTable, Victim,
};
pub use graph::{GraphBuilder, MessageGraph, Step};
pub use ideal::{IdealNetwork, drive_ideal};
pub use list::{Expected, FlowList, Streamed};
pub use message::{
    DATA_PRIORITY, Destination, GroupId, Message, OffloadId, PLAIN_CLASS, ReductionId,
    TESTED_PREFIX, Workload, is_tested_class,
};
pub use spec::{FlowFile, ReadFile, TrafficSource, TrafficSpec, has_isolated_twin};
pub use stats::{ClassStats, LoadBase, TrafficStats, describe};
pub use windows::{Delivery, Receiver, drive_in_windows};
