//! Three levels with a rate per level: pods of ToR and aggregation switches below a core.

use raddle_units::{BitRate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_limits, check_size, default_delay, default_rate, product};
use crate::{build::FabricBuilder, error::FabricError, limits, map::Fabric};

/// Pods of ToR and aggregation switches (a full bipartite graph in each) below core switches.
///
/// Aggregation switch `i` of every pod is joined to core switches `i*c` to `i*c + c-1`, where `c` is
/// `cores_per_aggregation`. Hosts come first (by ToR), then the ToR switches (by pod), the aggregation switches (by
/// pod) and the core; links go from below to above in the same order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Number of pods.
    #[schemars(range(min = 1))]
    pub pods: u32,
    /// ToR switches in each pod.
    #[schemars(range(min = 1))]
    pub tors_per_pod: u32,
    /// Hosts on each ToR switch.
    #[schemars(range(min = 1))]
    pub hosts_per_tor: u32,
    /// Aggregation switches in each pod.
    #[schemars(range(min = 1))]
    pub aggregations_per_pod: u32,
    /// Core switches above each aggregation switch.
    #[schemars(range(min = 1))]
    pub cores_per_aggregation: u32,
    /// Rate of the links between hosts and ToR switches.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub host_rate: BitRate,
    /// Rate of the links between ToR and aggregation switches.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub tor_rate: BitRate,
    /// Rate of the links between aggregation and core switches.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub core_rate: BitRate,
    /// Propagation delay of every link.
    #[serde(default = "default_delay")]
    #[schemars(transform = limits::delay())]
    pub delay: Span,
    /// Ports of a switch; a map that needs more is refused. Without it there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub radix: Option<u32>,
}

impl FatTree {
    /// Makes the map.
    ///
    /// # Errors
    /// A number below 1, too many nodes or links, rate 0, more links than ports.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        let parameters = "`pods`, `tors_per_pod`, `hosts_per_tor`, `aggregations_per_pod` or `cores_per_aggregation`";
        self.build_as("fat-tree", parameters)
    }

    pub(super) fn build_as(
        &self,
        name: &str,
        parameters: &'static str,
    ) -> Result<Fabric, FabricError> {
        check_limits(name, self)?;
        self.check_size(name, parameters)?;

        let mut builder = FabricBuilder::new(name);
        builder.radix(self.radix);
        let tor_count = self.pods * self.tors_per_pod;
        let core_count = self.aggregations_per_pod * self.cores_per_aggregation;
        let hosts: Vec<_> = (0..tor_count * self.hosts_per_tor)
            .map(|_| builder.host())
            .collect();
        let tors: Vec<_> = (0..tor_count).map(|_| builder.switch(1)).collect();
        let aggregations: Vec<_> = (0..self.pods * self.aggregations_per_pod)
            .map(|_| builder.switch(2))
            .collect();
        let cores: Vec<_> = (0..core_count).map(|_| builder.switch(3)).collect();

        for (hosts, &tor) in hosts.chunks(self.hosts_per_tor as usize).zip(&tors) {
            for &host in hosts {
                builder.connect(host, tor, self.host_rate, self.delay);
            }
        }
        let pods = aggregations.chunks(self.aggregations_per_pod as usize);
        for (tors, pod) in tors.chunks(self.tors_per_pod as usize).zip(pods.clone()) {
            for &tor in tors {
                for &aggregation in pod {
                    builder.connect(tor, aggregation, self.tor_rate, self.delay);
                }
            }
        }
        for pod in pods {
            for (&aggregation, cores) in pod
                .iter()
                .zip(cores.chunks(self.cores_per_aggregation as usize))
            {
                for &core in cores {
                    builder.connect(aggregation, core, self.core_rate, self.delay);
                }
            }
        }
        builder.finish()
    }

    fn check_size(&self, name: &str, parameters: &'static str) -> Result<(), FabricError> {
        let tors = product(&[self.pods, self.tors_per_pod]);
        let hosts = tors.saturating_mul(self.hosts_per_tor.into());
        let aggregations = product(&[self.pods, self.aggregations_per_pod]);
        let cores = product(&[self.aggregations_per_pod, self.cores_per_aggregation]);
        let nodes = hosts
            .saturating_add(tors)
            .saturating_add(aggregations)
            .saturating_add(cores);
        let links = hosts
            .saturating_add(tors.saturating_mul(self.aggregations_per_pod.into()))
            .saturating_add(aggregations.saturating_mul(self.cores_per_aggregation.into()));
        check_size(name, nodes, links, parameters)
    }
}
