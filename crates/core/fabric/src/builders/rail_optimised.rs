//! Servers of many GPUs: card k of each server of a group is on the group's rail switch k.

use raddle_units::{BitRate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_limits, check_size, default_delay, default_rate, one, product};
use crate::{build::FabricBuilder, error::FabricError, limits, map::Fabric};

const NAME: &str = "rail-optimised";

/// Servers with a network card for each GPU, which is a host of its own. Card k of each server in a group is on the group's
/// rail switch k, and every rail switch is joined to every spine (Wang et al. 2023, 2; NVIDIA's DGX SuperPOD).
///
/// Hosts come first (those of server 0, then of server 1, ...), then the rail switches (those of group 0, then of group 1,
/// ...), then the servers' own switches if there are any, then the spines. Links: of the cards, inside servers, to spines.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RailOptimised {
    /// Number of servers.
    #[schemars(range(min = 1))]
    pub servers: u32,
    /// GPUs of a server, each with its network card: hosts of the map, and rail switches of a group.
    #[schemars(range(min = 1))]
    pub gpus_per_server: u32,
    /// Servers on the same rail switches; the last group may have fewer.
    #[schemars(range(min = 1))]
    pub servers_per_group: u32,
    /// Number of spine switches.
    #[schemars(range(min = 1))]
    pub spines: u32,
    /// Parallel links between a rail switch and a spine.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub links_per_spine: u32,
    /// Rate of the network cards' links.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub host_rate: BitRate,
    /// Rate of the links between rail switches and spines.
    #[serde(default = "default_rate")]
    #[schemars(transform = limits::rate())]
    pub fabric_rate: BitRate,
    /// Propagation delay of every link outside of servers.
    #[serde(default = "default_delay")]
    #[schemars(transform = limits::delay())]
    pub delay: Span,
    /// Each server has a switch of its own, which joins its GPUs (such as NVLink's). Messages between them take it, since it
    /// is the shortest way.
    #[serde(default)]
    pub server_links: bool,
    /// Rate of the links between a GPU and its server's switch.
    #[serde(default = "default_server_rate")]
    #[schemars(transform = limits::rate())]
    pub server_rate: BitRate,
    /// Propagation delay of the links between a GPU and its server's switch.
    #[serde(default = "default_server_delay")]
    #[schemars(transform = limits::delay())]
    pub server_delay: Span,
    /// Ports of a switch; a map that needs more is refused. Without it there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub radix: Option<u32>,
}

/// 450 GB/s, what NVLink 4 gives a GPU in each direction.
fn default_server_rate() -> BitRate {
    BitRate::from_gbps(3600)
}

fn default_server_delay() -> Span {
    Span::from_ns(200)
}

impl RailOptimised {
    /// Makes the map.
    ///
    /// # Errors
    /// A number below 1, too many nodes or links, rate 0, more links than ports.
    pub fn build(&self) -> Result<Fabric, FabricError> {
        check_limits(NAME, self)?;
        let groups = self.servers.div_ceil(self.servers_per_group);
        let hosts = product(&[self.servers, self.gpus_per_server]);
        let rails = product(&[groups, self.gpus_per_server]);
        let uplinks = product(&[
            groups,
            self.gpus_per_server,
            self.spines,
            self.links_per_spine,
        ]);
        let (servers, inside) = if self.server_links {
            (u128::from(self.servers), hosts)
        } else {
            (0, 0)
        };
        let nodes = [hosts, rails, servers, u128::from(self.spines)];
        let nodes = nodes.into_iter().fold(0, u128::saturating_add);
        let links = hosts.saturating_add(inside).saturating_add(uplinks);
        let parameters = "`servers`, `gpus_per_server`, `spines` or `links_per_spine`";
        check_size(NAME, nodes, links, parameters)?;

        let mut builder = FabricBuilder::new(NAME);
        builder.radix(self.radix);
        let (gpus, group_size) = (
            self.gpus_per_server as usize,
            self.servers_per_group as usize,
        );
        let hosts: Vec<_> = (0..hosts).map(|_| builder.host()).collect();
        let rails: Vec<_> = (0..rails).map(|_| builder.switch(1)).collect();
        let servers: Vec<_> = (0..servers).map(|_| builder.switch(1)).collect();
        let spines: Vec<_> = (0..self.spines).map(|_| builder.switch(2)).collect();
        for (index, &host) in hosts.iter().enumerate() {
            let (server, card) = (index / gpus, index % gpus);
            let rail = rails[server / group_size * gpus + card];
            builder.connect(host, rail, self.host_rate, self.delay);
        }
        for (server, own) in servers.iter().zip(hosts.chunks(gpus)) {
            for &host in own {
                builder.connect(host, *server, self.server_rate, self.server_delay);
            }
        }
        for &rail in &rails {
            for &spine in &spines {
                builder.connect_parallel(
                    rail,
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
