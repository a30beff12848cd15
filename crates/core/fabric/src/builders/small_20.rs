//! The 20-node map of the small congestion experiment.

use raddle_units::{BitRate, NodeId, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_limits, default_delay, default_rate};
use crate::{build::FabricBuilder, error::FabricError, limits, map::Fabric};

const NAME: &str = "small-20";
const NODES: u32 = 20;
const LEFT: NodeId = NodeId(2);
const RIGHT: NodeId = NodeId(3);

/// The small experiment's map: 18 hosts and two switches, whose numbers are 2 and 3.
///
/// Hosts 0 and 1 are on switch 2, hosts 4 to 19 on switch 3. The link between the switches is the third, so that it
/// has port 3 of switch 2 and port 1 of switch 3.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Small20 {
    /// Rate of the hosts' links.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub host_rate: BitRate,
    /// Rate of the link between the two switches.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub fabric_rate: BitRate,
    /// Propagation delay of every link.
    #[serde(default = "default_delay")]
    #[schemars(transform = limits::delay())]
    pub delay: Span,
}

impl Default for Small20 {
    fn default() -> Self {
        Self {
            host_rate: default_rate(),
            fabric_rate: default_rate(),
            delay: default_delay(),
        }
    }
}

impl Small20 {
    /// Makes the map.
    ///
    /// # Errors
    /// Rate 0.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        check_limits(NAME, self)?;
        let mut builder = FabricBuilder::new(NAME);
        for node in (0..NODES).map(NodeId) {
            if node == LEFT || node == RIGHT {
                builder.switch(1)
            } else {
                builder.host()
            };
        }
        for host in [0, 1].map(NodeId) {
            builder.connect(host, LEFT, self.host_rate, self.delay);
        }
        builder.connect(LEFT, RIGHT, self.fabric_rate, self.delay);
        for host in (RIGHT.0 + 1..NODES).map(NodeId) {
            builder.connect(host, RIGHT, self.host_rate, self.delay);
        }
        builder.finish()
    }
}
