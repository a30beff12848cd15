//! Hops between switches and shortest-path trees, on any fabric: what the baselines share.

use raddle_fabric::{Fabric, NodeKind};
use raddle_units::{LinkId, NodeId, PortId};

use super::UpLink;
use raddle_unicast::LinkState;

/// Hops to a switch that is not reached.
pub(super) const FAR: u16 = u16::MAX;

/// A way from a switch to a neighbour switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// The neighbour, as its place among the switches.
    pub(super) peer: u32,
    /// The port at the switch itself.
    pub(super) port: PortId,
    pub(super) link: LinkId,
}

/// The switches of a fabric, numbered 0, 1, … in the order of their ids, and the links between them.
#[derive(Clone, Debug)]
pub(super) struct SwitchGraph {
    /// Place of each switch by node id.
    ordinal: Vec<u32>,
    switches: Vec<NodeId>,
    starts: Vec<u32>,
    edges: Vec<Edge>,
}

impl SwitchGraph {
    pub(super) fn new(fabric: &Fabric) -> Self {
        let mut ordinal = vec![u32::MAX; fabric.node_count()];
        for (place, switch) in (0..).zip(fabric.switches()) {
            ordinal[switch.index()] = place;
        }
        let mut starts = vec![0];
        let mut edges = Vec::new();
        for &switch in fabric.switches() {
            let first = fabric.first_port(switch);
            for (id, port) in (first.0..).map(PortId).zip(fabric.ports_of(switch)) {
                let peer = fabric.port(port.peer).node;
                if fabric.kind(peer) == NodeKind::Switch {
                    edges.push(Edge {
                        peer: ordinal[peer.index()],
                        port: id,
                        link: port.link,
                    });
                }
            }
            starts.push(edges.len() as u32);
        }
        Self {
            ordinal,
            switches: fabric.switches().to_vec(),
            starts,
            edges,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.switches.len()
    }

    pub(super) fn node(&self, switch: u32) -> NodeId {
        self.switches[switch as usize]
    }

    /// The place of a switch. The node must be a switch.
    pub(super) fn ordinal(&self, switch: NodeId) -> u32 {
        self.ordinal[switch.index()]
    }

    pub(super) fn edges_of(&self, switch: u32) -> &[Edge] {
        let start = self.starts[switch as usize] as usize;
        &self.edges[start..self.starts[switch as usize + 1] as usize]
    }

    /// The switch that the first working port of a host leads to; `None` where no port works.
    pub(super) fn attachment(
        &self,
        fabric: &Fabric,
        links: &LinkState,
        host: NodeId,
    ) -> Option<u32> {
        let port = fabric
            .ports_of(host)
            .iter()
            .find(|port| links.is_up(port.link))?;
        Some(self.ordinal(fabric.port(port.peer).node))
    }

    /// Hops from one switch to every switch over the links that `usable` lets through, [`FAR`] where there is no way.
    pub(super) fn hops(&self, from: u32, usable: impl Fn(LinkId) -> bool) -> Box<[u16]> {
        let mut hops = vec![FAR; self.len()].into_boxed_slice();
        hops[from as usize] = 0;
        let mut reached = Vec::with_capacity(self.len());
        reached.push(from);
        let mut head = 0;
        while let Some(&switch) = reached.get(head) {
            head += 1;
            let next = hops[switch as usize].saturating_add(1).min(FAR - 1);
            for edge in self.edges_of(switch) {
                if hops[edge.peer as usize] == FAR && usable(edge.link) {
                    hops[edge.peer as usize] = next;
                    reached.push(edge.peer);
                }
            }
        }
        hops
    }

    /// The tree that joins hosts to a root along shortest paths: for each node but the root its port towards the root.
    ///
    /// `hops` are those to the root over the usable links. Where a switch has several ways it takes one to a switch
    /// that is in the tree already, then the one of least `load`, then the lowest port. `Err` names the first host
    /// that has no way to the root.
    pub(super) fn shortest_tree(
        &self,
        fabric: &Fabric,
        hosts: &[NodeId],
        hops: &[u16],
        usable: impl Fn(LinkId) -> bool,
        load: impl Fn(LinkId) -> u32,
    ) -> Result<Vec<UpLink>, NodeId> {
        let mut up = Vec::with_capacity(hosts.len() * 2);
        let mut member = vec![false; self.len()];
        let mut by_hops: Vec<Vec<u32>> = Vec::new();
        let join = |switch: u32, member: &mut [bool], by_hops: &mut Vec<Vec<u32>>| {
            if !std::mem::replace(&mut member[switch as usize], true) {
                let hops = usize::from(hops[switch as usize]);
                if by_hops.len() <= hops {
                    by_hops.resize_with(hops + 1, Vec::new);
                }
                by_hops[hops].push(switch);
            }
        };
        for &host in hosts {
            let first = fabric.first_port(host);
            let ways = (first.0..).map(PortId).zip(fabric.ports_of(host));
            let (_, port, switch) = ways
                .filter(|(_, port)| usable(port.link))
                .map(|(id, port)| {
                    let switch = self.ordinal(fabric.port(port.peer).node);
                    let new = !member[switch as usize];
                    ((hops[switch as usize], new), id, switch)
                })
                .filter(|((hops, _), ..)| *hops != FAR)
                .min_by_key(|&(key, id, _)| (key, id))
                .ok_or(host)?;
            up.push(UpLink { node: host, port });
            join(switch, &mut member, &mut by_hops);
        }
        for at in (1..by_hops.len()).rev() {
            for switch in std::mem::take(&mut by_hops[at]) {
                let closer = self
                    .edges_of(switch)
                    .iter()
                    .filter(|edge| {
                        usize::from(hops[edge.peer as usize]) + 1 == at && usable(edge.link)
                    })
                    .min_by_key(|edge| (!member[edge.peer as usize], load(edge.link), edge.port));
                // Hops are over usable links, so that there is always a switch one hop closer.
                let Some(edge) = closer else {
                    continue;
                };
                up.push(UpLink {
                    node: self.node(switch),
                    port: edge.port,
                });
                join(edge.peer, &mut member, &mut by_hops);
            }
        }
        Ok(up)
    }
}

/// Hops between switches, one row for each switch that was asked for; rows stay until the links change.
#[derive(Clone, Debug)]
pub(super) struct HopRows {
    rows: Vec<Option<Box<[u16]>>>,
    held: usize,
}

/// Most hops that are kept (1 GiB); past it all rows are forgotten and found again as they are asked for.
const MAX_HELD: usize = 1 << 29;

impl HopRows {
    pub(super) fn new(graph: &SwitchGraph) -> Self {
        Self {
            rows: vec![None; graph.len()],
            held: 0,
        }
    }

    /// Forgets every row.
    pub(super) fn clear(&mut self) {
        self.rows.fill(None);
        self.held = 0;
    }

    /// Hops from a switch (and, links being full-duplex, to it).
    pub(super) fn row(&mut self, graph: &SwitchGraph, links: &LinkState, from: u32) -> &[u16] {
        if self.rows[from as usize].is_none() {
            if self.held + graph.len() > MAX_HELD {
                self.clear();
            }
            self.held += graph.len();
        }
        self.rows[from as usize].get_or_insert_with(|| graph.hops(from, |link| links.is_up(link)))
    }

    /// For each switch the sum of hops to the hosts and the most hops to one of them, both [`u32::MAX`] where a host
    /// is out of reach. `weights`: switches with hosts, and how many.
    pub(super) fn sum_and_max(
        &mut self,
        graph: &SwitchGraph,
        links: &LinkState,
        weights: &[(u32, u32)],
    ) -> (Vec<u32>, Vec<u32>) {
        let mut sums = vec![0u32; graph.len()];
        let mut most = vec![0u32; graph.len()];
        for &(switch, weight) in weights {
            let row = self.row(graph, links, switch);
            for ((sum, most), &hops) in sums.iter_mut().zip(&mut most).zip(row) {
                if hops == FAR {
                    *sum = u32::MAX;
                    *most = u32::MAX;
                } else {
                    *sum = sum.saturating_add(u32::from(hops) * weight);
                    *most = u32::from(hops).max(*most);
                }
            }
        }
        (sums, most)
    }
}

/// What [`HopRows::sum_and_max`] gives, found without rows, for many switches with hosts: 64 searches at a time, one
/// bit each.
pub(super) fn sum_and_max_at_once(
    graph: &SwitchGraph,
    links: &LinkState,
    weights: &[(u32, u32)],
) -> (Vec<u32>, Vec<u32>) {
    let mut sums = vec![0u32; graph.len()];
    let mut most = vec![0u32; graph.len()];
    for batch in weights.chunks(64) {
        let mut seen = vec![0u64; graph.len()];
        let mut front = vec![0u64; graph.len()];
        for (bit, &(switch, _)) in batch.iter().enumerate() {
            seen[switch as usize] |= 1 << bit;
            front[switch as usize] |= 1 << bit;
        }
        let all = seen.iter().fold(0, |all, bits| all | bits);
        let mut next = vec![0u64; graph.len()];
        for hops in 1.. {
            for (switch, bits) in (0..).zip(&front).filter(|(_, bits)| **bits != 0) {
                for edge in graph.edges_of(switch) {
                    if links.is_up(edge.link) {
                        next[edge.peer as usize] |= bits;
                    }
                }
            }
            let mut any = false;
            for (at, (bits, seen)) in next.iter_mut().zip(&mut seen).enumerate() {
                *bits &= !*seen;
                *seen |= *bits;
                let mut rest = *bits;
                while rest != 0 {
                    let (_, weight) = batch[rest.trailing_zeros() as usize];
                    sums[at] = sums[at].saturating_add(weight.saturating_mul(hops));
                    most[at] = most[at].max(hops);
                    any = true;
                    rest &= rest - 1;
                }
            }
            if !any {
                break;
            }
            std::mem::swap(&mut front, &mut next);
            next.fill(0);
        }
        for (at, _) in seen.iter().enumerate().filter(|(_, seen)| **seen != all) {
            sums[at] = u32::MAX;
            most[at] = u32::MAX;
        }
    }
    (sums, most)
}
