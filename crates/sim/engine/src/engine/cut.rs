//! How a fabric is cut into processes: each node belongs to one, with all of its ports.
//!
//! No result depends on the cut. It decides how much passes from one process to another, and what stays in a cache.

use std::{cmp::Reverse, collections::BinaryHeap};

use raddle_fabric::Fabric;
use raddle_units::{NodeId, PortId};

use crate::{
    chance::SplitMix64,
    index::{NodeIndex, PortIndex, ProcessIndex, TileIndex},
    setup::Partition,
};

/// Processes at most, and tiles of one. More gain nothing, and mailboxes are kept for each pair.
pub(super) const MOST_PROCESSES: usize = 1 << 10;

/// Ports of a fabric from which on its processes run tile by tile: smaller ones stay in the cache by themselves.
const LARGE_PORTS: usize = 1 << 13;
/// Ports of a tile, unless that is too many tiles: about 300 B for each stay in a second-level cache for a window, most of them in
/// one of 512 KiB too.
const TILE_PORTS: usize = 1 << 11;
/// Ports of a process that has no tiles, with several threads: smaller ones can be shared out more evenly, and stay in a cache.
const MOST_PORTS: usize = 1 << 13;
/// Shares of the ports that the processes of one thread have. Threads take large processes first, and the small ones let all end a
/// window together. Many equal ones would do so too, but more would pass between them.
const SHARES: [usize; 4] = [12, 5, 2, 1];
/// Ports below which a process is too small to be worth its mailboxes.
const LEAST_PORTS: usize = 1 << 6;
/// Ports below which a process that only lets threads end together is too small.
const LEAST_SMALL_PORTS: usize = 1 << 8;

/// See the module. All lists are by node.
#[derive(Debug)]
pub(super) struct Cut {
    process_of: Vec<ProcessIndex>,
    place_of: Vec<NodeIndex>,
    first_port: Vec<PortIndex>,
    tile_of: Vec<TileIndex>,
    /// Tiles of each process.
    tiles: Vec<usize>,
    /// Nodes of each process, in the fabric's order.
    nodes: Vec<Vec<NodeId>>,
}

impl Cut {
    /// Everything in one process.
    pub(super) fn whole(fabric: &Fabric) -> Self {
        Self::of(fabric, 1, vec![ProcessIndex(0); fabric.node_count()])
    }

    /// As the run's settings say; for several ranks, with so many threads each.
    pub(super) fn new(
        fabric: &Fabric,
        partition: Partition,
        threads: usize,
        ranks: usize,
        tiled: bool,
    ) -> Self {
        let ports = fabric.port_count();
        let most = fabric.switches().len().clamp(1, MOST_PROCESSES);
        let equal = |parts: usize| vec![1; parts.clamp(1, most)];
        let shares = match partition {
            Partition::Automatic => {
                let shares = shares(ports, most, threads, ranks);
                let small = ports / MOST_PORTS;
                // Without tiles small processes are what serves the cache.
                if threads * ranks > 1 && !tiled && small > shares.len() {
                    equal(small)
                } else {
                    shares
                }
            }
            Partition::Parts(parts) => equal(usize::from(parts).max(ranks)),
            Partition::Random { parts, seed } => {
                let parts = u64::from(parts).clamp(ranks as u64, MOST_PROCESSES as u64);
                let mut random = SplitMix64::new(seed);
                let any =
                    (0..fabric.node_count()).map(|_| ProcessIndex((random.next() % parts) as u16));
                let mut cut = Self::of(fabric, parts as usize, any.collect());
                if tiled {
                    let any = (0..fabric.node_count()).map(|_| (random.next() % 4) as u16);
                    cut.divide(&any.collect::<Vec<_>>());
                }
                return cut;
            }
        };
        let tiles = if tiled && ports >= LARGE_PORTS {
            (ports / TILE_PORTS).min(most)
        } else {
            1
        };
        Self::in_tiles(fabric, &shares, tiles)
    }

    /// Processes with these shares of the ports, each of whole tiles, of which there are about so many.
    fn in_tiles(fabric: &Fabric, shares: &[usize], tiles: usize) -> Self {
        if shares.len() == 1 && tiles == 1 {
            return Self::whole(fabric);
        }
        let (ports, all) = (fabric.port_count(), shares.iter().sum::<usize>());
        let tiles_of = |part: usize| (tiles * part / ports.max(1)).max(1);
        // What lies between all others is shared out to the largest processes: what passes by it crosses least often then.
        let top = if shares.len() > 1 {
            farthest(fabric)
        } else {
            Vec::new()
        };
        let largest = shares.iter().max().copied();
        let is_large = |share: &usize| Some(*share) == largest;
        let large = shares.iter().filter(|share| is_large(share)).count();
        let of_top = top.iter().map(|node| fabric.ports_of(*node).len());
        let of_top = of_top.sum::<usize>() / large.max(1);
        let (mut begin, mut ends, mut process_of) = (0, Vec::new(), Vec::new());
        for (process, share) in (0..).map(ProcessIndex).zip(shares) {
            let mut part = ports * share / all;
            if is_large(share) {
                part = part.saturating_sub(of_top);
            }
            let tiles = tiles_of(part);
            ends.extend((1..=tiles).map(|tile| begin + part * tile / tiles));
            process_of.resize(ends.len(), process);
            begin += part;
        }
        let mut parts = grown(fabric, &ends, &top);
        let owners = (0..).map(ProcessIndex).zip(shares);
        let owners = owners.filter(|(_, share)| is_large(share));
        for (number, (process, _)) in owners.enumerate() {
            let own = &top[top.len() * number / large..top.len() * (number + 1) / large];
            let tiles = tiles_of(of_top);
            for tile in 0..tiles {
                for node in &own[own.len() * tile / tiles..own.len() * (tile + 1) / tiles] {
                    parts[node.index()] = process_of.len() as u16;
                }
                process_of.push(process);
            }
        }
        let of_node = parts.iter().map(|part| process_of[usize::from(*part)]);
        let mut cut = Self::of(fabric, shares.len(), of_node.collect());
        if tiles > 1 {
            cut.divide(&parts);
        }
        cut
    }

    /// Divides processes into tiles: a tile is what one process has of one of these parts, which are by node.
    fn divide(&mut self, parts: &[u16]) {
        for (process, nodes) in self.nodes.iter().enumerate() {
            let mut found: Vec<u16> = nodes.iter().map(|node| parts[node.index()]).collect();
            found.sort_unstable();
            found.dedup();
            for node in nodes {
                let tile = found.partition_point(|&part| part < parts[node.index()]);
                self.tile_of[node.index()] = TileIndex(tile as u16);
            }
            self.tiles[process] = found.len();
        }
    }

    /// Some of the processes may have no node.
    fn of(fabric: &Fabric, processes: usize, process_of: Vec<ProcessIndex>) -> Self {
        let mut nodes: Vec<Vec<NodeId>> = vec![Vec::new(); processes];
        let mut ports = vec![0u32; processes];
        let (mut place_of, mut first_port) = (Vec::new(), Vec::new());
        for (node, process) in (0..).map(NodeId).zip(&process_of) {
            let process = usize::from(process.0);
            place_of.push(NodeIndex(nodes[process].len() as u32));
            first_port.push(PortIndex(ports[process]));
            nodes[process].push(node);
            ports[process] += fabric.ports_of(node).len() as u32;
        }
        Self {
            process_of,
            place_of,
            first_port,
            tile_of: vec![TileIndex(0); fabric.node_count()],
            tiles: vec![1; processes],
            nodes,
        }
    }

    pub(super) fn processes(&self) -> usize {
        self.nodes.len()
    }

    /// Nodes of a process, in the fabric's order.
    pub(super) fn nodes(&self, process: ProcessIndex) -> &[NodeId] {
        &self.nodes[usize::from(process.0)]
    }

    /// Nodes of the process with this number.
    pub(super) fn nodes_of(&self, process: usize) -> &[NodeId] {
        &self.nodes[process]
    }

    #[inline]
    pub(super) fn process(&self, node: NodeId) -> ProcessIndex {
        self.process_of[node.index()]
    }

    /// How many tiles a process has.
    pub(super) fn tiles(&self, process: ProcessIndex) -> usize {
        self.tiles[usize::from(process.0)]
    }

    /// A node's tile, in its process.
    #[inline]
    pub(super) fn tile(&self, node: NodeId) -> TileIndex {
        self.tile_of[node.index()]
    }

    /// A node's place among those of its process.
    #[inline]
    pub(super) fn place(&self, node: NodeId) -> NodeIndex {
        self.place_of[node.index()]
    }

    /// A node's first port, in its process.
    #[inline]
    pub(super) fn first_port(&self, node: NodeId) -> PortIndex {
        self.first_port[node.index()]
    }

    /// A port in the process of its node.
    #[inline]
    pub(super) fn port(&self, fabric: &Fabric, port: PortId) -> PortIndex {
        let node = fabric.port(port).node;
        PortIndex(self.first_port(node).0 + port.0 - fabric.first_port(node).0)
    }
}

/// The shares of at most so many processes in so many ports, rank after rank. What passes from one to another is in another
/// core's cache, so few are better, and one is best for one thread.
fn shares(ports: usize, most: usize, threads: usize, ranks: usize) -> Vec<usize> {
    let of_rank = most.min(ports / LEAST_PORTS) / ranks;
    let threads = threads.clamp(1, of_rank.max(1));
    let of_thread: &[usize] = if threads == 1 { &[1] } else { &SHARES };
    let fits = |count: &usize| {
        let all = of_thread[..*count].iter().sum::<usize>() * threads * ranks;
        count * threads <= of_rank && ports * of_thread[count - 1] >= LEAST_SMALL_PORTS * all
    };
    let count = (2..=of_thread.len()).rfind(fits).unwrap_or(1);
    let of_threads = of_thread[..count].iter();
    let of_threads = of_threads.flat_map(|&share| std::iter::repeat_n(share, threads));
    let mut all = of_threads.collect::<Vec<usize>>().repeat(ranks);
    all.truncate(most);
    all
}

/// The switches farthest from all hosts; none where all that are reached have hosts.
fn farthest(fabric: &Fabric) -> Vec<NodeId> {
    let nodes = (0..).map(NodeId).take(fabric.node_count());
    let mut reached: Vec<bool> = nodes.map(|node| fabric.is_host(node)).collect();
    let (mut left, mut layers) = (fabric.switches().to_vec(), Vec::new());
    loop {
        let (next, rest): (Vec<NodeId>, Vec<NodeId>) = left.into_iter().partition(|&node| {
            let mut ports = fabric.ports_of(node).iter();
            ports.any(|port| reached[fabric.port(port.peer).node.index()])
        });
        if next.is_empty() {
            break;
        }
        for node in &next {
            reached[node.index()] = true;
        }
        layers.push(next);
        left = rest;
    }
    let farthest = layers.pop().unwrap_or_default();
    if layers.is_empty() {
        Vec::new()
    } else {
        farthest
    }
}

/// The part of each node, of parts that grow from switch to switch until so many ports are in them and in those before. Neighbours
/// stay together: next comes the switch with the most links into the part; of equals the one with the lowest number, since
/// builders number neighbours together. Some switches are left out.
fn grown(fabric: &Fabric, ends: &[usize], without: &[NodeId]) -> Vec<u16> {
    const NONE: u16 = u16::MAX;
    let mut part_of = vec![NONE; fabric.node_count()];
    for node in without {
        part_of[node.index()] = 0;
    }
    let weight = |node: NodeId| fabric.ports_of(node).len();
    let mut inside = vec![0u32; fabric.node_count()];
    let mut reached = Vec::new();
    // Switches with hosts come first: what lies between them follows.
    let neighbours = |node: NodeId| {
        fabric
            .ports_of(node)
            .iter()
            .map(|port| fabric.port(port.peer).node)
    };
    let (edges, inner): (Vec<NodeId>, Vec<NodeId>) = fabric
        .switches()
        .iter()
        .partition(|&&switch| neighbours(switch).any(|node| fabric.is_host(node)));
    let mut seeds = edges.into_iter().chain(inner);
    let (mut part, mut taken, mut open) = (0u16, 0, BinaryHeap::new());
    loop {
        let next = loop {
            let Some((links, Reverse(node))) = open.pop() else {
                break None;
            };
            if part_of[node as usize] == NONE && links == inside[node as usize] {
                break Some(NodeId(node));
            }
        };
        let Some(switch) =
            next.or_else(|| seeds.by_ref().find(|seed| part_of[seed.index()] == NONE))
        else {
            break;
        };
        part_of[switch.index()] = part;
        taken += weight(switch);
        for node in neighbours(switch) {
            if part_of[node.index()] != NONE {
                continue;
            }
            if fabric.is_host(node) {
                part_of[node.index()] = part;
                taken += weight(node);
            } else {
                inside[node.index()] += 1;
                reached.push(node);
                open.push((inside[node.index()], Reverse(node.0)));
            }
        }
        if usize::from(part) + 1 < ends.len() && taken >= ends[usize::from(part)] {
            part += 1;
            open.clear();
            for node in reached.drain(..) {
                inside[node.index()] = 0;
            }
        }
    }
    // Hosts without a switch have no traffic.
    for part in &mut part_of {
        if *part == NONE {
            *part = 0;
        }
    }
    part_of
}

#[cfg(test)]
mod tests {
    use raddle_fabric::KAryFatTree;

    use super::*;

    fn ports(fabric: &Fabric, cut: &Cut, process: usize) -> usize {
        let nodes = cut.nodes_of(process).iter();
        nodes.map(|node| fabric.ports_of(*node).len()).sum()
    }

    #[test]
    fn processes_consist_of_whole_tiles_and_have_their_shares() {
        let fabric = KAryFatTree::new(24).build().unwrap();
        let all = fabric.port_count();
        for (threads, ranks) in [(1, 1), (2, 1), (5, 1), (1, 3), (2, 2)] {
            let cut = Cut::new(&fabric, Partition::Automatic, threads, ranks, true);
            let wanted = shares(all, MOST_PROCESSES, threads, ranks);
            assert_eq!(cut.processes(), wanted.len());
            let sum: usize = wanted.iter().sum();
            let mut tiles = 0;
            for (process, share) in wanted.iter().enumerate() {
                // A switch is in one process, with its hosts.
                let off = ports(&fabric, &cut, process).abs_diff(all * share / sum);
                assert!(
                    off <= 2 * 36,
                    "{threads} threads, {ranks} ranks: {off} ports off"
                );
                tiles += cut.tiles(ProcessIndex(process as u16));
            }
            assert!(tiles <= all / TILE_PORTS + cut.processes(), "{tiles} tiles");
        }
    }

    #[test]
    fn one_thread_has_one_process_and_each_rank_as_much_as_any_other() {
        assert_eq!(shares(1 << 16, 1 << 10, 1, 1).len(), 1);
        let of_two = shares(1 << 16, 1 << 10, 2, 3);
        assert_eq!(of_two[..8], [12, 12, 5, 5, 2, 2, 1, 1]);
        assert!(of_two.chunks(8).all(|rank| *rank == of_two[..8]));
        let of_three = [12, 12, 12, 5, 5, 5, 2, 2, 2, 1, 1, 1];
        assert_eq!(shares(1 << 16, 1 << 10, 3, 1), of_three);
        // Too small for all of them, for two of each thread, and for several at all.
        assert_eq!(shares(9000, 1 << 10, 3, 1), of_three[..9]);
        assert_eq!(shares(1200, 1 << 10, 2, 1), [12, 12]);
        assert_eq!(shares(100, 1 << 10, 8, 1), [1]);
        // Fewer switches than ranks: the caller says so.
        assert_eq!(shares(1 << 16, 2, 4, 3).len(), 2);
    }
}
