//! Nodes as experiments name them.

use std::fmt;

use raddle_fabric::Fabric;
use raddle_units::NodeId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A node by its name or its number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum NodeName {
    /// Its number.
    Number(u32),
    /// Its name, or its number as text.
    Name(String),
}

impl NodeName {
    /// The node that it means.
    pub(super) fn find(&self, fabric: &Fabric) -> Option<NodeId> {
        let numbered =
            |number: u32| ((number as usize) < fabric.node_count()).then_some(NodeId(number));
        match self {
            Self::Number(number) => numbered(*number),
            Self::Name(name) => fabric
                .find_node(name)
                .or_else(|| name.parse().ok().and_then(numbered)),
        }
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}
