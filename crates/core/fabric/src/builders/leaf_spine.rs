//! Two levels: every leaf is joined to every spine.

use raddle_units::{BitRate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_limits, check_size, default_delay, default_rate, one, product};
use crate::{build::FabricBuilder, error::FabricError, limits, map::Fabric};

const NAME: &str = "leaf-spine";

/// Leaves with hosts below and spines above; every leaf is joined to every spine.
///
/// Hosts come first (those of leaf 0, then of leaf 1, ...), then the leaves, then the spines; links likewise.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeafSpine {
    /// Number of leaf switches.
    #[schemars(range(min = 1))]
    pub leaves: u32,
    /// Number of spine switches.
    #[schemars(range(min = 1))]
    pub spines: u32,
    /// Hosts on each leaf.
    #[schemars(range(min = 1))]
    pub hosts_per_leaf: u32,
    /// Parallel links between a leaf and a spine.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub links_per_spine: u32,
    /// Rate of the hosts' links.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub host_rate: BitRate,
    /// Rate of the links between leaves and spines.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub fabric_rate: BitRate,
    /// Propagation delay of every link.
    #[serde(default = "default_delay")]
    #[schemars(transform = limits::delay())]
    pub delay: Span,
    /// Ports of a switch; a map that needs more is refused. Without it there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub radix: Option<u32>,
}

impl LeafSpine {
    /// Makes the map.
    ///
    /// # Errors
    /// A number below 1, too many nodes or links, rate 0, more links than ports.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        check_limits(NAME, self)?;
        let hosts = product(&[self.leaves, self.hosts_per_leaf]);
        let uplinks = product(&[self.leaves, self.spines, self.links_per_spine]);
        let nodes = hosts.saturating_add(u128::from(self.leaves) + u128::from(self.spines));
        let parameters = "`leaves`, `spines`, `hosts_per_leaf` or `links_per_spine`";
        check_size(NAME, nodes, hosts.saturating_add(uplinks), parameters)?;

        let mut builder = FabricBuilder::new(NAME);
        builder.radix(self.radix);
        let per_leaf = self.hosts_per_leaf as usize;
        let hosts: Vec<_> = (0..self.leaves * self.hosts_per_leaf)
            .map(|_| builder.host())
            .collect();
        let leaves: Vec<_> = (0..self.leaves).map(|_| builder.switch(1)).collect();
        let spines: Vec<_> = (0..self.spines).map(|_| builder.switch(2)).collect();
        for (index, &host) in hosts.iter().enumerate() {
            builder.connect(host, leaves[index / per_leaf], self.host_rate, self.delay);
        }
        for &leaf in &leaves {
            for &spine in &spines {
                builder.connect_parallel(
                    leaf,
                    spine,
                    self.fabric_rate,
                    self.delay,
                    self.links_per_spine,
                );
            }
        }
        builder.finish()
    }
}
