//! The 320-host fat tree of the large congestion experiment.

use raddle_units::{BitRate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_limits, default_delay, default_rate, fat_tree::FatTree};
use crate::{error::FabricError, limits, map::Fabric};

const NAME: &str = "fat-tree-320";

/// The large experiment's map: 320 hosts, 20 ToR, 20 aggregation and 16 core switches in 5 pods.
///
/// 100 Gbit/s throughout as in the paper; `fabric_rate = "400Gbps"` gives the variant of the reference simulator's
/// repository, where background traffic hardly hurts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTree320 {
    /// Rate of the links between hosts and ToR switches.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub host_rate: BitRate,
    /// Rate of the links between switches.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub fabric_rate: BitRate,
    /// Propagation delay of every link.
    #[serde(default = "default_delay")]
    #[schemars(transform = limits::delay())]
    pub delay: Span,
}

impl Default for FatTree320 {
    fn default() -> Self {
        Self {
            host_rate: default_rate(),
            fabric_rate: default_rate(),
            delay: default_delay(),
        }
    }
}

impl FatTree320 {
    /// Makes the map.
    ///
    /// # Errors
    /// Rate 0.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        check_limits(NAME, self)?;
        let tree = FatTree {
            pods: 5,
            tors_per_pod: 4,
            hosts_per_tor: 16,
            aggregations_per_pod: 4,
            cores_per_aggregation: 4,
            host_rate: self.host_rate,
            tor_rate: self.fabric_rate,
            core_rate: self.fabric_rate,
            delay: self.delay,
            radix: None,
        };
        tree.build_as(NAME, "the map")
    }
}
