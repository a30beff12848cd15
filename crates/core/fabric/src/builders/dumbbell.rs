//! Two switches with hosts on both sides of one link.

use raddle_units::{BitRate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_limits, check_size, default_delay, default_rate};
use crate::{build::FabricBuilder, error::FabricError, limits, map::Fabric};

const NAME: &str = "dumbbell";

/// Two switches joined by one link, with the same number of hosts on each.
///
/// Hosts 0 to n-1 are on the left switch (2n), hosts n to 2n-1 on the right one (2n+1). The links of the hosts come
/// first, the link between the switches last.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// Hosts on each of the two switches.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub hosts_per_side: u32,
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
    /// Ports of a switch; a map that needs more is refused. Without it there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub radix: Option<u32>,
}

impl Dumbbell {
    /// A dumbbell with 100 Gbit/s and 1 us everywhere.
    pub fn new(hosts_per_side: u32) -> Self {
        Self {
            hosts_per_side,
            host_rate: default_rate(),
            fabric_rate: default_rate(),
            delay: default_delay(),
            radix: None,
        }
    }

    /// Makes the map.
    ///
    /// # Errors
    /// No hosts, too many hosts, rate 0, more links than ports.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        check_limits(NAME, self)?;
        let hosts = 2 * u128::from(self.hosts_per_side);
        check_size(NAME, hosts + 2, hosts + 1, "`hosts_per_side`")?;

        let mut builder = FabricBuilder::new(NAME);
        builder.radix(self.radix);
        let hosts: Vec<_> = (0..2 * self.hosts_per_side)
            .map(|_| builder.host())
            .collect();
        let (left, right) = (builder.switch(1), builder.switch(1));
        for (index, &host) in (0..).zip(&hosts) {
            let switch = if index < self.hosts_per_side {
                left
            } else {
                right
            };
            builder.connect(host, switch, self.host_rate, self.delay);
        }
        builder.connect(left, right, self.fabric_rate, self.delay);
        builder.finish()
    }
}

/// A dumbbell of 2 x `hosts_per_side` hosts with 100 Gbit/s and 1 us on every link.
///
/// # Errors
/// As [`Dumbbell::build`].
pub fn dumbbell(hosts_per_side: u32) -> Result<Fabric, FabricError> {
    Dumbbell::new(hosts_per_side).build()
}
