//! Who sends how much to whom: G over processes and G' over nodes (Peng, figure 3), as flat sorted vectors.
//!
//! Only messages between nodes are in them. Those inside a node use neither NIC nor network and are left alone, so they
//! count neither as a process's traffic nor as a node's degree.

use raddle_units::Bytes;

use crate::{groups::Groups, set::MessageSet};

/// All that one vertex sends to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Sending process or node.
    pub from: u32,
    /// Receiving process or node.
    pub to: u32,
    /// The edge's weight: sum of all messages (stops at 2^64 - 1).
    pub bytes: Bytes,
}

/// A directed graph, its edges by (from, to).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    edges: Vec<Edge>,
    out_degree: Vec<u32>,
    in_degree: Vec<u32>,
    sent: Vec<u64>,
    received: Vec<u64>,
}

impl Graph {
    /// `edges` are sorted by (from, to), each pair once.
    fn new(vertices: usize, edges: Vec<Edge>) -> Self {
        let (mut out_degree, mut in_degree) = (vec![0; vertices], vec![0; vertices]);
        let (mut sent, mut received) = (vec![0_u64; vertices], vec![0_u64; vertices]);
        for edge in &edges {
            let (from, to) = (edge.from as usize, edge.to as usize);
            out_degree[from] += 1;
            in_degree[to] += 1;
            sent[from] = sent[from].saturating_add(edge.bytes.0);
            received[to] = received[to].saturating_add(edge.bytes.0);
        }
        Self {
            edges,
            out_degree,
            in_degree,
            sent,
            received,
        }
    }

    /// All edges, by (from, to).
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// To how many others a vertex sends (NDout in G').
    ///
    /// # Panics
    /// If there is no such vertex; so the others.
    #[must_use]
    pub fn out_degree(&self, vertex: u32) -> u32 {
        self.out_degree[vertex as usize]
    }

    /// From how many others a vertex receives (NDin in G').
    #[must_use]
    pub fn in_degree(&self, vertex: u32) -> u32 {
        self.in_degree[vertex as usize]
    }

    /// All that a vertex sends (stops at 2^64 - 1).
    #[must_use]
    pub fn sent(&self, vertex: u32) -> Bytes {
        Bytes(self.sent[vertex as usize])
    }

    /// All that a vertex receives (stops at 2^64 - 1).
    #[must_use]
    pub fn received(&self, vertex: u32) -> Bytes {
        Bytes(self.received[vertex as usize])
    }
}

/// Both graphs of a message set.
#[derive(Debug, Clone)]
pub struct Graphs {
    /// G: ranks, and pairs of ranks on different nodes.
    pub processes: Graph,
    /// G': nodes ([`crate::Placement::node`]), and pairs of nodes.
    pub nodes: Graph,
    /// All messages, also local ones, by (source, target), each pair in program order.
    by_pair: Vec<u32>,
    /// For each edge of G where its messages begin and end in `by_pair`.
    ranges: Vec<(u32, u32)>,
    /// For each edge of G its edge of G'.
    node_edge: Vec<u32>,
    /// For each message its number in its pair.
    pub(crate) sequence: Vec<u32>,
}

impl Graphs {
    /// The graphs of `set`, in O(M + P) for M messages of P ranks.
    #[must_use]
    pub fn new(set: &MessageSet<'_>) -> Self {
        let ranks = set.placement().ranks();
        let source = |message| set.message(message).source as usize;
        let target = |message| set.message(message).target as usize;
        let by_target = Groups::new(set.indexes(), ranks, target).items;
        let by_pair = Groups::new(by_target.iter().copied(), ranks, source).items;
        drop(by_target);

        let mut sequence = vec![0; by_pair.len()];
        let (mut edges, mut ranges) = (Vec::new(), Vec::new());
        let same_pair = |&a: &u32, &b: &u32| source(a) == source(b) && target(a) == target(b);
        let mut begin = 0_u32;
        for pair in by_pair.chunk_by(same_pair) {
            let mut bytes = 0_u64;
            for (number, &message) in pair.iter().enumerate() {
                sequence[message as usize] = number as u32;
                bytes = bytes.saturating_add(set.message(message).bytes.0);
            }
            let end = begin + pair.len() as u32;
            if !set.is_local(pair[0]) {
                let message = set.message(pair[0]);
                edges.push(Edge {
                    from: message.source,
                    to: message.target,
                    bytes: Bytes(bytes),
                });
                ranges.push((begin, end));
            }
            begin = end;
        }

        let (node_edges, node_edge) = contract(set, &edges);
        Self {
            processes: Graph::new(ranks, edges),
            nodes: Graph::new(set.placement().nodes(), node_edges),
            by_pair,
            ranges,
            node_edge,
            sequence,
        }
    }

    /// The messages of an edge of G, in program order.
    pub(crate) fn messages(&self, pair: u32) -> &[u32] {
        let (begin, end) = self.ranges[pair as usize];
        &self.by_pair[begin as usize..end as usize]
    }

    /// The edge of G' that an edge of G is part of.
    pub(crate) fn node_edge(&self, pair: u32) -> u32 {
        self.node_edge[pair as usize]
    }
}

/// The edges of G' and, for each edge of G, which one it is part of.
fn contract(set: &MessageSet<'_>, pairs: &[Edge]) -> (Vec<Edge>, Vec<u32>) {
    let placement = set.placement();
    let nodes = placement.nodes();
    let from = |pair: u32| placement.node(pairs[pair as usize].from);
    let to = |pair: u32| placement.node(pairs[pair as usize].to);
    let all = 0..pairs.len() as u32;
    let by_target = Groups::new(all, nodes, |pair| to(pair) as usize).items;
    let sorted = Groups::new(by_target.iter().copied(), nodes, |pair| from(pair) as usize).items;
    let mut edges: Vec<Edge> = Vec::new();
    let mut node_edge = vec![0; pairs.len()];
    for same in sorted.chunk_by(|&a, &b| from(a) == from(b) && to(a) == to(b)) {
        let mut bytes = 0_u64;
        for &pair in same {
            node_edge[pair as usize] = edges.len() as u32;
            bytes = bytes.saturating_add(pairs[pair as usize].bytes.0);
        }
        edges.push(Edge {
            from: from(same[0]),
            to: to(same[0]),
            bytes: Bytes(bytes),
        });
    }
    (edges, node_edge)
}
