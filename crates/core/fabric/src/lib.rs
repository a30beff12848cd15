//! The map of a network: hosts, switches, their ports and the links between them.
//!
//! A description ([`FabricSpec`], from an experiment's `[fabric]` table or a TOML file), a topology file of the HPCC
//! repository ([`parse_hpcc_ns3`]) or code ([`FabricBuilder`]) becomes a [`Fabric`]: checked once, immutable, in flat
//! vectors by id. Whoever holds a [`Fabric`] need not check again: all nodes can be reached, hosts have links, rates
//! are not 0.
//!
//! ```
//! use raddle_fabric::{dumbbell, parse_toml, write_toml};
//! let fabric = dumbbell(5).unwrap();
//! assert_eq!((fabric.hosts().len(), fabric.switches().len()), (10, 2));
//! assert_eq!(parse_toml(&write_toml(&fabric), "copy.toml").unwrap(), fabric);
//!
//! let error = parse_toml("schema = 1\nkind = \"dumbbell\"\nhosts_per_sid = 5\n", "map.toml").unwrap_err();
//! assert!(error.to_string().starts_with("map.toml:3:1: unknown key `hosts_per_sid`"));
//! assert!(error.to_string().contains("did you mean `hosts_per_side`?"));
//! ```
//!
//! Nodes (hosts and switches together) are numbered from 0; the ports of a node from 1 in the order of its links, as
//! the reference simulator does; beside that every port has a [`raddle_units::PortId`], dense over the fabric.
//!
//! - `build`: [`FabricBuilder`] and all checks.
//! - `builders`: dumbbell, small-20, leaf-spine, rail-optimised, fat trees, XGFT, CN/TN, explicit graphs; one file each.
//! - `spec`, `toml_file`, `source`: descriptions in texts.
//! - `cn_tn_map`: which (m, q, p, k, w) fat tree a map is, found from the graph.
//! - `hpcc`: the reference simulator's topology format, in and out.
//! - `import`: InfiniBand fabrics as `ibnetdiscover` and ibsim write them.
//! - `layout`: places for a drawing.
//!
//! This crate opens no file: the caller reads it and passes text and a name for messages.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used)]

mod build;
mod builders;
mod cn_tn_map;
mod error;
mod hpcc;
mod import;
mod layout;
mod limits;
mod map;
mod source;
mod spec;
mod toml_file;

pub use build::{FabricBuilder, MAX_LINKS, MAX_NODES};
pub use builders::{
    CnTn, Dumbbell, FatTree, FatTree320, Graph, HostEntry, KAryFatTree, LeafSpine, LinkEntry,
    RailOptimised, Small20, SwitchEntry, Xgft, dumbbell,
};
pub use cn_tn_map::{CnTnMap, CnTnShape, Missing, NotCnTn, Role};
pub use error::{FabricError, Place};
pub use hpcc::{parse_hpcc_ns3, write_hpcc_ns3};
pub use import::{
    Found, ImportFormat, ImportNotes, ImportOptions, Imported, ibsim_guid, import, write_ibsim,
};
pub use layout::NodePlace;
pub use map::{Fabric, Link, NodeKind, Port};
pub use source::{build_fabric, rebase_file};
pub use spec::{FabricFile, FabricFormat, FabricSource, FabricSpec};
pub use toml_file::{parse_toml, write_toml};
