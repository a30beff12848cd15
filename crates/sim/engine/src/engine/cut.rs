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
/// Ports of a tile, unless that is too many tiles: about 300 B for each stay in a cache of 512 KiB for a window.
const TILE_PORTS: usize = 1 << 10;
/// Ports of a process in a large fabric with several threads: smaller ones can be shared out more evenly, and stay in a cache.
const MOST_PORTS: usize = 1 << 13;
/// Processes of a thread that are enough to share them out evenly, where tiles serve the cache.
const EACH: usize = 4;
/// Ports below which a process is too small to be worth its mailboxes.
const LEAST_PORTS: usize = 1 << 7;

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
        let threads = threads * ranks;
        let ports = fabric.port_count();
        let most = fabric.switches().len().clamp(1, MOST_PROCESSES);
        let parts = match partition {
            Partition::Automatic => {
                // What passes between processes is copied, so few are better, and one is best for one thread.
                let small = ports / MOST_PORTS;
                let enough = if tiled {
                    small.min(EACH * threads)
                } else {
                    small
                };
                if threads > 1 {
                    threads.min(ports / LEAST_PORTS).max(enough).max(ranks)
                } else {
                    1
                }
            }
            Partition::Parts(parts) => usize::from(parts).max(ranks),
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
        let mut cut = match parts.clamp(1, most) {
            1 => Self::whole(fabric),
            parts => Self::of(fabric, parts, grown(fabric, parts)),
        };
        let tiles = (ports / TILE_PORTS).min(most);
        if tiled && ports >= LARGE_PORTS && tiles > cut.processes() {
            let parts: Vec<u16> = grown(fabric, tiles).iter().map(|part| part.0).collect();
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

/// Processes of about equal numbers of ports that grow from switch to switch, so that neighbours stay together: next comes the
/// switch with the most links into the process; of equals the one with the lowest number, since builders number neighbours together.
fn grown(fabric: &Fabric, parts: usize) -> Vec<ProcessIndex> {
    const NONE: ProcessIndex = ProcessIndex(u16::MAX);
    let mut process_of = vec![NONE; fabric.node_count()];
    let weight = |node: NodeId| fabric.ports_of(node).len() as u64;
    let all: u64 = (0..fabric.node_count() as u32)
        .map(|node| weight(NodeId(node)))
        .sum();
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
    let (mut process, mut taken, mut open) = (0u16, 0u64, BinaryHeap::new());
    loop {
        let next = loop {
            let Some((links, Reverse(node))) = open.pop() else {
                break None;
            };
            if process_of[node as usize] == NONE && links == inside[node as usize] {
                break Some(NodeId(node));
            }
        };
        let Some(switch) =
            next.or_else(|| seeds.by_ref().find(|seed| process_of[seed.index()] == NONE))
        else {
            break;
        };
        process_of[switch.index()] = ProcessIndex(process);
        taken += weight(switch);
        for node in neighbours(switch) {
            if process_of[node.index()] != NONE {
                continue;
            }
            if fabric.is_host(node) {
                process_of[node.index()] = ProcessIndex(process);
                taken += weight(node);
            } else {
                inside[node.index()] += 1;
                reached.push(node);
                open.push((inside[node.index()], Reverse(node.0)));
            }
        }
        // The next one begins when its share of the whole is reached.
        if usize::from(process) + 1 < parts
            && taken * parts as u64 >= all * (u64::from(process) + 1)
        {
            process += 1;
            open.clear();
            for node in reached.drain(..) {
                inside[node.index()] = 0;
            }
        }
    }
    // Hosts without a switch have no traffic.
    for process in &mut process_of {
        if *process == NONE {
            *process = ProcessIndex(0);
        }
    }
    process_of
}
