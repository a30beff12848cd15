//! The map of a network: hosts, switches, their ports and the links between them.

mod build;
mod builders;
mod error;
mod hpcc;
mod map;

pub use build::{FabricBuilder, MAX_LINKS, MAX_NODES};
pub use builders::{
    CnTn, Dumbbell, FatTree, FatTree320, Graph, HostEntry, KAryFatTree, LeafSpine, LinkEntry,
    Small20, SwitchEntry, dumbbell,
};
pub use error::{FabricError, Place};
pub use hpcc::{parse_hpcc_ns3, write_hpcc_ns3};
pub use map::{Fabric, Link, NodeKind, Port};
