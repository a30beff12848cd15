//! Who sends how much to whom: G over processes and G' over nodes (Peng, figure 3), as flat sorted vectors.
//!
//! Only messages between nodes are in them. Those inside a node use neither NIC nor network and are left alone, so they
//! count neither as a process's traffic nor as a node's degree.

use raddle_units::Bytes;

use crate::set::MessageSet;

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
    /// The graphs of `set`, in O(M log M + P) for M messages of P ranks.
    #[must_use]
    pub fn new(set: &MessageSet<'_>) -> Self {
        let messages = set.messages();
        // Keys stand beside indexes: looking them up while sorting misses caches where pairs are scattered.
        let keys = messages
            .iter()
            .map(|message| key(message.source, message.target));
        let mut keyed: Vec<(u64, u32)> = keys.zip(0..).collect();
        keyed.sort_unstable();

        let mut sequence = vec![0; messages.len()];
        let (mut edges, mut ranges) = (Vec::new(), Vec::new());
        let mut begin = 0_u32;
        for pair in keyed.chunk_by(|a, b| a.0 == b.0) {
            let mut bytes = 0_u64;
            for (number, &(_, message)) in (0..).zip(pair) {
                sequence[message as usize] = number;
                bytes = bytes.saturating_add(set.message(message).bytes.0);
            }
            let end = begin + pair.len() as u32;
            let (_, first) = pair[0];
            if !set.is_local(first) {
                let message = set.message(first);
                edges.push(Edge {
                    from: message.source,
                    to: message.target,
                    bytes: Bytes(bytes),
                });
                ranges.push((begin, end));
            }
            begin = end;
        }
        let by_pair = keyed.into_iter().map(|(_, message)| message).collect();

        let (node_edges, node_edge) = contract(set, &edges);
        Self {
            processes: Graph::new(set.placement().ranks(), edges),
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

/// Sorts by `from`, then by `to`.
fn key(from: u32, to: u32) -> u64 {
    u64::from(from) << 32 | u64::from(to)
}

/// The edges of G' and, for each edge of G, which one it is part of.
fn contract(set: &MessageSet<'_>, pairs: &[Edge]) -> (Vec<Edge>, Vec<u32>) {
    let node = |rank| set.placement().node(rank);
    let keys = pairs.iter().map(|pair| key(node(pair.from), node(pair.to)));
    let mut keyed: Vec<(u64, u32)> = keys.zip(0..).collect();
    keyed.sort_unstable();
    let mut edges: Vec<Edge> = Vec::new();
    let mut node_edge = vec![0; pairs.len()];
    for same in keyed.chunk_by(|a, b| a.0 == b.0) {
        let mut bytes = 0_u64;
        for &(_, pair) in same {
            node_edge[pair as usize] = edges.len() as u32;
            bytes = bytes.saturating_add(pairs[pair as usize].bytes.0);
        }
        let first = pairs[same[0].1 as usize];
        edges.push(Edge {
            from: node(first.from),
            to: node(first.to),
            bytes: Bytes(bytes),
        });
    }
    (edges, node_edge)
}
