//! Which switch is L0, L1, L2 or L3.
//!
//! Switches with hosts are L0. The distance to the nearest of them settles most of the rest; what distance leaves open
//! are switches whose hosts are missing. A CN without hosts is told from the upper half of a TN by its L2 switches:
//! those above a CN belong to one block of CNs and many TNs, those below L3 switches to many blocks and one TN.

use std::collections::VecDeque;

use raddle_units::NodeId;

use super::{NotCnTn, Union, refuse};
use crate::map::Fabric;

/// Level of a switch, 0 to 3.
pub(super) type Tier = u8;

pub(super) const L0: Tier = 0;
pub(super) const L1: Tier = 1;
pub(super) const L2: Tier = 2;
pub(super) const L3: Tier = 3;
/// Not a switch, or not known yet.
pub(super) const OPEN: Tier = u8::MAX;
const FAR: u8 = u8::MAX;
/// From an L0 with hosts over L3 to an L0 without.
const DEEPEST: u8 = 6;

/// The tier of every node; hosts have [`OPEN`].
pub(super) fn assign(fabric: &Fabric) -> Result<Vec<Tier>, NotCnTn> {
    let depth = depths(fabric)?;
    let mut search = Search {
        fabric,
        tier: vec![OPEN; depth.len()],
        depth,
    };
    for &switch in fabric.switches() {
        match search.depth[switch.index()] {
            0 => search.tier[switch.index()] = L0,
            1 => search.tier[switch.index()] = L1,
            _ => {}
        }
    }
    search.settle_second()?;
    search.settle_pieces(3);
    search.settle_pieces(5);
    search.check()?;
    Ok(search.tier)
}

/// Hops from every switch to the nearest one with hosts.
fn depths(fabric: &Fabric) -> Result<Vec<u8>, NotCnTn> {
    let mut depth = vec![FAR; fabric.node_count()];
    let mut queue = VecDeque::new();
    for &host in fabric.hosts() {
        let mut switches = fabric.ports_of(host).iter();
        let first = switches.next().map(|port| fabric.port(port.peer).node);
        let Some(first) = first else { continue };
        for port in switches {
            let other = fabric.port(port.peer).node;
            if other != first {
                let (first, other) = (fabric.node_name(first), fabric.node_name(other));
                let found = format!("it is joined to {first} and to {other}");
                return Err(refuse(fabric, host, "a host on one switch", found));
            }
        }
        if depth[first.index()] == FAR {
            depth[first.index()] = 0;
            queue.push_back(first);
        }
    }
    while let Some(switch) = queue.pop_front() {
        let hops = depth[switch.index()];
        for peer in neighbours(fabric, switch) {
            if depth[peer.index()] == FAR {
                depth[peer.index()] = hops.saturating_add(1);
                queue.push_back(peer);
            } else if depth[peer.index()] == hops {
                let found = format!(
                    "it is joined to {}, {hops} hops from the nearest L0 with hosts as it is itself",
                    fabric.node_name(peer)
                );
                let expected = "links between neighbouring levels only";
                return Err(refuse(fabric, switch, expected, found));
            }
            if hops >= DEEPEST && depth[peer.index()] > hops {
                let found = format!("it is more than {DEEPEST} hops from the nearest host's");
                return Err(refuse(
                    fabric,
                    peer,
                    "at most four levels of switches",
                    found,
                ));
            }
        }
    }
    Ok(depth)
}

/// The switches joined to one, once per cable.
pub(super) fn neighbours(fabric: &Fabric, switch: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    fabric
        .ports_of(switch)
        .iter()
        .map(|port| fabric.port(port.peer).node)
        .filter(|&peer| !fabric.is_host(peer))
}

struct Search<'a> {
    fabric: &'a Fabric,
    tier: Vec<Tier>,
    depth: Vec<u8>,
}

impl Search<'_> {
    fn at_depth(&self, depth: u8) -> Vec<NodeId> {
        let all = self.fabric.switches().iter().copied();
        all.filter(|node| self.depth[node.index()] == depth)
            .collect()
    }

    /// The different neighbours at some depth, ascending.
    fn peers(&self, switch: NodeId, depth: u8) -> Vec<NodeId> {
        let mut peers: Vec<NodeId> = neighbours(self.fabric, switch)
            .filter(|peer| self.depth[peer.index()] == depth)
            .collect();
        peers.sort_unstable();
        peers.dedup();
        peers
    }

    /// Depth 2: L2, or L0 without hosts. An L2 is joined to each CN at most once.
    fn settle_second(&mut self) -> Result<(), NotCnTn> {
        let mut cn = Union::new(self.tier.len());
        for l1 in self.at_depth(1) {
            for l0 in self.peers(l1, 0) {
                cn.join(l1, l0);
            }
        }
        let mut leaves = Vec::new();
        for switch in self.at_depth(2) {
            let lower = self.peers(switch, 1);
            let mut cns: Vec<(NodeId, NodeId)> =
                lower.iter().map(|&l1| (cn.find(l1), l1)).collect();
            cns.sort_unstable();
            let twice = cns.windows(2).find(|pair| pair[0].0 == pair[1].0);
            if let Some(pair) = twice {
                if let Some(&(_, other)) = cns.iter().find(|entry| entry.0 != pair[0].0) {
                    let name = |node| self.fabric.node_name(node);
                    let found = format!(
                        "it is joined to {} and {} of one CN, and to {} of another",
                        name(pair[0].1),
                        name(pair[1].1),
                        name(other)
                    );
                    let expected =
                        "at most one link into each CN (an L2), or links into one CN (an L0)";
                    return Err(refuse(self.fabric, switch, expected, found));
                }
                self.tier[switch.index()] = L0;
            } else if let [l1] = lower[..]
                && self.peers(switch, 3).is_empty()
            {
                leaves.push((l1, switch));
            } else {
                self.tier[switch.index()] = L2;
            }
        }
        self.settle_leaves(leaves);
        // Only L1 switches are joined to L0.
        for l0 in self.at_depth(2) {
            if self.tier[l0.index()] == L0 {
                for l1 in self.peers(l0, 3) {
                    self.tier[l1.index()] = L1;
                }
            }
        }
        Ok(())
    }

    /// Switches with one link, to an L1: they fill its uplinks up to the number that others have; the rest are L0.
    fn settle_leaves(&mut self, mut leaves: Vec<(NodeId, NodeId)>) {
        if leaves.is_empty() {
            return;
        }
        leaves.sort_unstable();
        let certain = |l1| {
            let peers = self.peers(l1, 2).into_iter();
            peers.filter(|l2| self.tier[l2.index()] == L2).count()
        };
        let l1s = self.at_depth(1);
        let most = l1s.iter().map(|&l1| certain(l1)).max().unwrap_or(0);
        // A single CN below TNs without L3 switches: nothing but such switches above every L1.
        let above_all = most == 0
            && (l1s.iter()).all(|l1| leaves.binary_search_by_key(l1, |leaf| leaf.0).is_ok());
        let mut tiers = Vec::with_capacity(leaves.len());
        for row in leaves.chunk_by(|a, b| a.0 == b.0) {
            let room = if above_all {
                usize::MAX
            } else {
                most - certain(row[0].0)
            };
            for (index, &(_, leaf)) in row.iter().enumerate() {
                tiers.push((leaf, if index < room { L2 } else { L0 }));
            }
        }
        for (leaf, tier) in tiers {
            self.tier[leaf.index()] = tier;
        }
    }

    /// Depth `odd` and the next: L3 switches with the other L2 of their TN, or CNs without hosts.
    fn settle_pieces(&mut self, odd: u8) {
        let fabric = self.fabric;
        let is_open = |search: &Self, node: NodeId| search.tier[node.index()] == OPEN;
        let uppers: Vec<NodeId> = (self.at_depth(odd).into_iter())
            .filter(|&node| is_open(self, node))
            .collect();
        let lowers: Vec<NodeId> = (self.at_depth(odd + 1).into_iter())
            .filter(|&node| is_open(self, node))
            .collect();
        if uppers.is_empty() && lowers.is_empty() {
            return;
        }
        let mut piece = Union::new(self.tier.len());
        for &node in &lowers {
            for peer in self.peers(node, odd) {
                if is_open(self, peer) {
                    piece.join(node, peer);
                }
            }
        }
        // CNs and the L2 switches above them; L2 and L3 switches of one TN.
        let (mut block, mut tn) = (Union::new(self.tier.len()), Union::new(self.tier.len()));
        for &switch in fabric.switches() {
            let own = self.tier[switch.index()];
            for peer in neighbours(fabric, switch) {
                match (own, self.tier[peer.index()]) {
                    (L1, L0 | L2) => block.join(switch, peer),
                    (L3, L2) => tn.join(switch, peer),
                    _ => {}
                }
            }
        }
        let mut touched = Vec::new();
        for &node in &uppers {
            for l2 in self.peers(node, odd - 1) {
                if self.tier[l2.index()] == L2 {
                    let key = if odd == 3 {
                        block.find(l2)
                    } else {
                        tn.find(l2)
                    };
                    touched.push((piece.find(node), key, l2));
                }
            }
        }
        touched.sort_unstable();
        touched.dedup();
        let mut is_cn = vec![false; self.tier.len()];
        for row in touched.chunk_by(|a, b| a.0 == b.0) {
            is_cn[row[0].0.index()] = if odd == 3 {
                // Two L2 of one block lie in two TNs, which no L3 joins.
                row.windows(2).any(|pair| pair[0].1 == pair[1].1)
            } else {
                row.windows(2).any(|pair| pair[0].1 != pair[1].1)
            };
        }
        if odd == 5 {
            // Below the L2 of a block without hosts there is nothing but CNs.
            for &node in &lowers {
                is_cn[piece.find(node).index()] = true;
            }
        }
        for &node in &uppers {
            let cn = is_cn[piece.find(node).index()];
            self.tier[node.index()] = if cn { L1 } else { L3 };
        }
        for &node in &lowers {
            let cn = is_cn[piece.find(node).index()];
            self.tier[node.index()] = if cn { L0 } else { L2 };
        }
    }

    /// Every switch has a tier and joins only neighbouring ones.
    fn check(&self) -> Result<(), NotCnTn> {
        let fabric = self.fabric;
        for &switch in fabric.switches() {
            let tier = self.tier[switch.index()];
            if tier == OPEN {
                let found = "its distance to the nearest host fits none".to_owned();
                return Err(refuse(fabric, switch, "an L0, L1, L2 or L3 switch", found));
            }
            for peer in neighbours(fabric, switch) {
                let other = self.tier[peer.index()];
                if other.abs_diff(tier) != 1 {
                    let found = format!(
                        "it, an L{tier} as the rest has it, is joined to {}, an L{other}",
                        fabric.node_name(peer)
                    );
                    let expected = "links between neighbouring levels only";
                    return Err(refuse(fabric, switch, expected, found));
                }
            }
        }
        Ok(())
    }
}
