//! The description of a map in an experiment or a file: what kind it is and its parameters.
//!
//! How it is read, with errors that keep their place, is in `keys`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    builders::{CnTn, Dumbbell, FatTree, FatTree320, Graph, KAryFatTree, LeafSpine, Small20},
    error::FabricError,
    map::Fabric,
};

/// A map, described by its kind and parameters: the `[fabric]` table of an experiment, or a fabric file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FabricSpec {
    /// Two switches joined by one link, with the same number of hosts on each.
    Dumbbell(Dumbbell),
    /// The small experiment's map: 18 hosts, two switches.
    #[serde(rename = "small-20")]
    Small20(Small20),
    /// Leaves with hosts below and spines above.
    LeafSpine(LeafSpine),
    /// Three levels with a rate per level.
    FatTree(FatTree),
    /// The large experiment's map: 320 hosts, 56 switches.
    #[serde(rename = "fat-tree-320")]
    FatTree320(FatTree320),
    /// The three-level fat tree of equal switches with k ports.
    KAryFatTree(KAryFatTree),
    /// The four-level fat tree of compute and top midplanes.
    CnTn(CnTn),
    /// Any map: hosts, switches and links, each listed.
    Graph(Graph),
}

/// Where a map comes from: a description, or a file that the caller reads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FabricSource {
    /// A kind with its parameters.
    Spec(FabricSpec),
    /// A file, read with `parse_toml` or `parse_hpcc_ns3` as the format says.
    File(FabricFile),
}

/// A file with a map in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FabricFile {
    /// Path of the file, relative to the file that names it.
    pub file: String,
    /// Format of the file.
    #[serde(default)]
    pub format: FabricFormat,
}

/// Format of a file with a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FabricFormat {
    /// Our own: `schema = 1`, then a kind with its parameters, or hosts, switches and links.
    #[default]
    Toml,
    /// The topology file of the HPCC repository's ns-3 simulator.
    HpccNs3,
}

impl FabricSpec {
    /// Makes the map.
    ///
    /// # Errors
    /// What the builder of the kind refuses.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        match self {
            Self::Dumbbell(spec) => spec.build(),
            Self::Small20(spec) => spec.build(),
            Self::LeafSpine(spec) => spec.build(),
            Self::FatTree(spec) => spec.build(),
            Self::FatTree320(spec) => spec.build(),
            Self::KAryFatTree(spec) => spec.build(),
            Self::CnTn(spec) => spec.build(),
            Self::Graph(spec) => spec.build(),
        }
    }
}
