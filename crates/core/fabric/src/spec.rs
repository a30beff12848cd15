//! The description of a map in an experiment or a file: what kind it is and its parameters.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::Value;

use crate::{
    builders::{
        CnTn, Dumbbell, FatTree, FatTree320, Graph, KAryFatTree, LeafSpine, RailOptimised, Small20,
        Xgft,
    },
    error::FabricError,
    map::Fabric,
};

/// A map, described by its kind and parameters: the `[fabric]` table of an experiment, or a fabric file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FabricSpec {
    /// Two switches joined by one link, with the same number of hosts on each.
    Dumbbell(Dumbbell),
    /// The small experiment's map: 18 hosts, two switches.
    #[serde(rename = "small-20")]
    Small20(Small20),
    /// Leaves with hosts below and spines above.
    LeafSpine(LeafSpine),
    /// Servers of many GPUs, whose cards of one number are on one switch.
    RailOptimised(RailOptimised),
    /// Three levels with a rate per level.
    FatTree(FatTree),
    /// The large experiment's map: 320 hosts, 56 switches.
    #[serde(rename = "fat-tree-320")]
    FatTree320(FatTree320),
    /// The three-level fat tree of equal switches with k ports.
    KAryFatTree(KAryFatTree),
    /// A fat tree of any number of levels, by the children and parents of each.
    Xgft(Xgft),
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
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
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
    /// A parameter out of range, too many nodes or links, or more links on a switch than it has ports.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        match self {
            Self::Dumbbell(spec) => spec.build(),
            Self::Small20(spec) => spec.build(),
            Self::LeafSpine(spec) => spec.build(),
            Self::RailOptimised(spec) => spec.build(),
            Self::FatTree(spec) => spec.build(),
            Self::FatTree320(spec) => spec.build(),
            Self::KAryFatTree(spec) => spec.build(),
            Self::Xgft(spec) => spec.build(),
            Self::CnTn(spec) => spec.build(),
            Self::Graph(spec) => spec.build(),
        }
    }
}

/// What a table of a map's keys describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// A `kind` with its parameters.
    Spec,
    /// Hosts, switches and links without a `kind`.
    Graph,
    /// The name of a file.
    File,
}

/// Why a table describes no map.
pub(crate) struct FormError {
    /// The key that should not be there; `None` where one is missing.
    pub(crate) key: Option<&'static str>,
    pub(crate) message: String,
}

/// The kinds of map, as they are written.
const KINDS: [&str; 10] = [
    "dumbbell",
    "small-20",
    "leaf-spine",
    "rail-optimised",
    "fat-tree",
    "fat-tree-320",
    "k-ary-fat-tree",
    "xgft",
    "cn-tn",
    "graph",
];

impl Form {
    /// By the keys that a table has.
    pub(crate) fn of(has: impl Fn(&str) -> bool) -> Result<Self, FormError> {
        let wrong = |key, message: &str| {
            Err(FormError {
                key: Some(key),
                message: message.to_owned(),
            })
        };
        match (has("file"), has("kind")) {
            (true, true) => wrong(
                "file",
                "`kind` and `file` cannot both be given: describe the map or name its file",
            ),
            (true, false) => Ok(Self::File),
            (false, _) if has("format") => {
                wrong("format", "`format` needs `file`, the file to read")
            }
            (false, true) => Ok(Self::Spec),
            (false, false) if ["host", "switch", "link"].iter().any(|key| has(key)) => {
                Ok(Self::Graph)
            }
            (false, false) => Err(FormError {
                key: None,
                message: format!("`kind` is missing: it is one of {}", KINDS.join(", ")),
            }),
        }
    }
}

impl<'de> Deserialize<'de> for FabricSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What is inside was held to the schema before, so that no place is lost by this copy.
        let table = Value::deserialize(deserializer)?;
        let form = Form::of(|key| table.get(key).is_some());
        let source = match form.map_err(|problem| D::Error::custom(problem.message))? {
            Form::File => FabricFile::deserialize(table).map(Self::File),
            Form::Graph => {
                Graph::deserialize(table).map(|graph| Self::Spec(FabricSpec::Graph(graph)))
            }
            Form::Spec => FabricSpec::deserialize(table).map(Self::Spec),
        };
        source.map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_that_are_named_are_those_that_there_are() {
        let schema = schemars::schema_for!(FabricSpec).to_value();
        let kinds = schema["oneOf"].as_array().expect("one for each kind");
        let kinds = kinds
            .iter()
            .map(|kind| &kind["properties"]["kind"]["const"]);
        assert!(kinds.eq(KINDS.iter()));
    }
}
