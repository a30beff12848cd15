//! Multi-plane fabrics: each rail is a network of its own, and the hosts are in all of them.

use raddle_fabric::{Fabric, FabricBuilder, FabricError};
use raddle_units::{BitRate, NodeId};

/// Why there is no such fabric.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaneError {
    /// A host with several links, or links of hosts that differ.
    #[error(
        "{host} does not have one link of {rate} as the first host has: a plane needs hosts with one link each, all of one rate"
    )]
    Host {
        /// The host.
        host: String,
        /// Rate of the first host's link.
        rate: BitRate,
    },
    /// The planes together are no fabric.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}

/// A copy of `plane` for each of `rails`, joined in the hosts. Hosts come first and keep their order; port i of a host (from
/// 1) is in plane i. Plane i has every link in proportion: a host's link has the rate `rails[i]`.
///
/// # Errors
/// [`PlaneError`].
pub fn multi_plane(plane: &Fabric, rails: &[BitRate]) -> Result<Fabric, PlaneError> {
    let rate = host_rate(plane)?;
    let mut builder = FabricBuilder::new(format!("{} planes of {}", rails.len(), plane.name()));
    let mut numbers = vec![NodeId(0); plane.node_count()];
    for &host in plane.hosts() {
        numbers[host.index()] = builder.host();
    }
    for &rail in rails {
        for &switch in plane.switches() {
            numbers[switch.index()] = builder.switch(plane.level(switch));
        }
        for link in plane.links() {
            let [a, b] = link
                .ports
                .map(|port| numbers[plane.port(port).node.index()]);
            let scaled = u128::from(link.rate.0) * u128::from(rail.0) / u128::from(rate.0.max(1));
            let scaled = BitRate(u64::try_from(scaled).unwrap_or(u64::MAX));
            builder.connect(a, b, scaled, link.delay);
        }
    }
    Ok(builder.finish()?)
}

/// The rate of all hosts' links.
fn host_rate(plane: &Fabric) -> Result<BitRate, PlaneError> {
    let of = |host: NodeId| plane.rate(plane.first_port(host));
    let rate = plane.hosts().first().map_or(BitRate(0), |&host| of(host));
    let differs = |host: &&NodeId| plane.ports_of(**host).len() != 1 || of(**host) != rate;
    match plane.hosts().iter().find(differs) {
        None => Ok(rate),
        Some(&host) => Err(PlaneError::Host {
            host: plane.node_name(host).into_owned(),
            rate,
        }),
    }
}
