//! The k-ary fat tree: every switch has k ports, half of them up.

use raddle_units::{BitRate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_limits, default_delay, default_rate, fat_tree::FatTree};
use crate::{error::FabricError, limits, map::Fabric};

const NAME: &str = "k-ary-fat-tree";

/// The three-level k-ary fat tree of equal switches with k ports: k^3/4 hosts, 5k^2/4 switches, full bisection.
///
/// k pods of k/2 edge and k/2 aggregation switches below (k/2)^2 core switches; numbered as [`FatTree`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KAryFatTree {
    /// Ports of every switch: even, from 2.
    #[schemars(range(min = 2), extend("multipleOf" = 2))]
    pub k: u32,
    /// Rate of the hosts' links.
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

impl KAryFatTree {
    /// A tree with 100 Gbit/s and 1 us everywhere.
    pub fn new(k: u32) -> Self {
        Self {
            k,
            host_rate: default_rate(),
            fabric_rate: default_rate(),
            delay: default_delay(),
        }
    }

    /// Makes the map.
    ///
    /// # Errors
    /// `k` odd or below 2, too many nodes, rate 0.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        check_limits(NAME, self)?;
        let half = self.k / 2;
        let tree = FatTree {
            pods: self.k,
            tors_per_pod: half,
            hosts_per_tor: half,
            aggregations_per_pod: half,
            cores_per_aggregation: half,
            host_rate: self.host_rate,
            tor_rate: self.fabric_rate,
            core_rate: self.fabric_rate,
            delay: self.delay,
            radix: None,
        };
        tree.build_as(NAME, "`k`")
    }
}
