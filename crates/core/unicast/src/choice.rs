//! Which of several equal next hops a packet takes.

use raddle_fabric::Fabric;
use raddle_units::NodeId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How one of several equal next hops is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PathChoice {
    /// MurmurHash3 of the packet's addresses and ports, seeded with the switch: every flow keeps one path.
    #[default]
    EcmpMurmur3,
    /// D-mod-K: the destination's number decides, so that all flows to a host share one way down.
    DModK,
}

/// D-mod-K for one fabric.
///
/// At level `l` the index is `floor(d / (w_1 ... w_l)) mod n`, where `d` is the destination's number among the hosts,
/// `w_i` how many nodes of level `i` a node of level `i - 1` has above it, and `n` the number of next hops
/// (E. Zahavi, "D-Mod-K Routing Providing Non-Blocking Traffic for Shift Permutations on Real Life Fat Trees", Technion
/// CCIT report 776, 2010). Neighbouring destinations so take different ways at every level. Use it with lists ordered
/// by port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DModK {
    /// Number of each host among the hosts, by node id; 0 for switches.
    ordinals: Vec<u32>,
    /// `w_1 ... w_l` of each node's level, by node id.
    divisors: Vec<u32>,
}

impl DModK {
    /// Numbers the hosts and measures the levels of a fabric.
    pub fn new(fabric: &Fabric) -> Self {
        let nodes = || (0..fabric.node_count() as u32).map(NodeId);
        let mut ordinals = vec![0; fabric.node_count()];
        for (ordinal, host) in (0..).zip(fabric.hosts()) {
            ordinals[host.index()] = ordinal;
        }
        let top = nodes().map(|node| fabric.level(node)).max().unwrap_or(0);
        let mut widths = vec![1u32; usize::from(top) + 1];
        for node in nodes() {
            let level = fabric.level(node);
            let mut above: Vec<NodeId> = fabric
                .ports_of(node)
                .iter()
                .map(|port| fabric.port(port.peer).node)
                .filter(|&peer| fabric.level(peer) > level)
                .collect();
            above.sort_unstable();
            above.dedup();
            let width = &mut widths[usize::from(level)];
            *width = (*width).max(above.len() as u32);
        }
        let mut divisors_by_level = vec![1u32];
        for width in widths {
            let last = divisors_by_level[divisors_by_level.len() - 1];
            divisors_by_level.push(last.saturating_mul(width));
        }
        let divisors = nodes()
            .map(|node| divisors_by_level[usize::from(fabric.level(node))])
            .collect();
        Self { ordinals, divisors }
    }

    /// Index into the `count` next hops from `at` to host `dst`.
    ///
    /// # Panics
    /// When `count` is 0 or a node is not one of the fabric.
    #[inline]
    pub fn index(&self, at: NodeId, dst: NodeId, count: usize) -> usize {
        let quotient = self.ordinals[dst.index()] / self.divisors[at.index()];
        quotient as usize % count
    }
}

#[cfg(test)]
mod tests {
    use raddle_fabric::KAryFatTree;

    use super::*;
    use crate::{LinkState, NextHopOrder, UnicastTables};

    #[test]
    fn spreads_the_destinations_evenly_over_every_up_port_of_a_fat_tree() {
        // k = 4: 16 hosts, 2 up ports per switch. From host 0, the 12 hosts of other pods: 6 on each up port of the
        // edge switch, 3 on each of the two core switches above each aggregation switch.
        let fabric = KAryFatTree::new(4).build().unwrap();
        let links = LinkState::all_up(&fabric);
        let tables = UnicastTables::compute(&fabric, &links, NextHopOrder::ByPort).unwrap();
        let choice = DModK::new(&fabric);
        let edge = fabric.peer_node(fabric.first_port(NodeId(0)));
        let mut cores = std::collections::BTreeMap::new();
        for dst in (4..16).map(NodeId) {
            let mut at = edge;
            for _ in 0..2 {
                let hops = tables.next_hops(at, dst);
                at = fabric.peer_node(hops[choice.index(at, dst, hops.len())]);
            }
            assert_eq!(fabric.level(at), 3);
            *cores.entry(at).or_insert(0) += 1;
        }
        assert_eq!(cores.into_values().collect::<Vec<_>>(), [3, 3, 3, 3]);
    }

    #[test]
    fn all_sources_reach_a_destination_through_the_same_core_switch() {
        let fabric = KAryFatTree::new(4).build().unwrap();
        let links = LinkState::all_up(&fabric);
        let tables = UnicastTables::compute(&fabric, &links, NextHopOrder::ByPort).unwrap();
        let choice = DModK::new(&fabric);
        let dst = NodeId(13);
        let mut cores: Vec<NodeId> = (0..12)
            .map(|src| {
                let mut at = NodeId(src);
                while fabric.level(at) < 3 {
                    let hops = tables.next_hops(at, dst);
                    at = fabric.peer_node(hops[choice.index(at, dst, hops.len())]);
                }
                at
            })
            .collect();
        cores.dedup();
        assert_eq!(cores.len(), 1);
    }
}
