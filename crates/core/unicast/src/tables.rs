//! Shortest paths to every host, as compressed tables.
//!
//! Hosts with the same attachments form one destination class. The next hops of a switch towards a class are all its
//! ports to a neighbour one hop closer. Every node has a block of ports: those that can lead on, in the order of the
//! lists, so that most lists of next hops are a stretch of it; the others stand behind. A table says which stretch.
//!
//! Nodes that are alike share the table: the stretches of 64 classes are a chunk, each different chunk is held once,
//! and so is each different sequence of chunks (a row). In a fat tree all core switches have one row, the aggregation
//! switches of a pod have one, and nearly all chunks of a ToR switch are the one that says "up, by any port".
//!
//! Two kinds of lists differ between the hosts of one class: the last hop (each host has its own port at the switch)
//! and the first hop (each host has its own ports). They stand in the host's block.

use raddle_fabric::Fabric;
use raddle_units::{NodeId, PortId};

use crate::stretch::{CHUNK, Stretch};

/// Order of the next hops in a list; the hash picks by index, so the order decides paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextHopOrder {
    /// By the number of the port.
    ByPort,
    /// By the id of the neighbour, highest first: the order of the reference simulator's runs (compat).
    DescendingNodeId,
}

/// Hosts that are attached in the same way: the same switches, rates and delays in the same order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClassId(pub u32);

/// Next hops from every node to every host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnicastTables {
    /// Class of each node; switches have the one behind the last, which no way leads to.
    pub(crate) class_of: Vec<u32>,
    /// Start of each node's row in `rows`.
    pub(crate) row_of: Vec<u32>,
    /// Rows: for each `CHUNK` classes the start of a chunk in `chunks`.
    pub(crate) rows: Vec<u32>,
    pub(crate) chunks: Vec<Stretch>,
    /// Start of each node's block in `ports`.
    pub(crate) blocks: Vec<u32>,
    pub(crate) ports: Vec<PortId>,
    /// Per class: start of its hosts in `class_hosts`, and the end.
    pub(crate) class_starts: Vec<u32>,
    pub(crate) class_hosts: Vec<NodeId>,
}

impl UnicastTables {
    /// Where the chunk of a node and a class is named.
    #[inline(always)]
    fn cell(&self, at: NodeId, class: usize) -> &u32 {
        &self.rows[self.row_of[at.index()] as usize + class / CHUNK]
    }

    /// Ports on shortest paths from `at` towards host `dst`; empty where there is no way, where `dst` is not a host
    /// and where it is `at` itself.
    ///
    /// # Panics
    /// When a node is not one of the fabric.
    #[inline(always)]
    pub fn next_hops(&self, at: NodeId, dst: NodeId) -> &[PortId] {
        let class = self.class_of[dst.index()] as usize;
        let chunk = *self.cell(at, class) as usize;
        let stretch = self.chunks[chunk + class % CHUNK];
        if at == dst {
            return &[];
        }
        let block = if stretch.at_destination { dst } else { at };
        let start = (self.blocks[block.index()] + stretch.place) as usize;
        &self.ports[start..start + usize::from(stretch.count)]
    }

    /// The classes of hosts, ascending by their first host.
    pub fn destination_classes(&self) -> impl ExactSizeIterator<Item = ClassId> + use<> {
        (0..self.class_starts.len() as u32 - 1).map(ClassId)
    }

    /// The class of a host; `None` for a switch.
    pub fn class_of(&self, host: NodeId) -> Option<ClassId> {
        let class = self.class_of[host.index()];
        (class as usize + 1 < self.class_starts.len()).then_some(ClassId(class))
    }

    /// The hosts of a class, ascending.
    pub fn class_hosts(&self, class: ClassId) -> &[NodeId] {
        let index = class.0 as usize;
        let (start, end) = (self.class_starts[index], self.class_starts[index + 1]);
        &self.class_hosts[start as usize..end as usize]
    }

    /// Hops (links) from `at` to host `dst`, 0 for the host itself; `None` where there is no way.
    ///
    /// Walks the first choice, so it takes time in proportion to the answer.
    pub fn distance(&self, fabric: &Fabric, at: NodeId, dst: NodeId) -> Option<u32> {
        let mut node = at;
        let mut hops = 0;
        while node != dst {
            node = fabric.peer_node(*self.next_hops(node, dst).first()?);
            hops += 1;
        }
        Some(hops)
    }

    /// The egress ports on the way from `src` to host `dst` when always the first next hop is taken; empty where
    /// there is no way. For sums of delays and rates.
    pub fn first_path<'a>(
        &'a self,
        fabric: &'a Fabric,
        src: NodeId,
        dst: NodeId,
    ) -> impl Iterator<Item = PortId> + 'a {
        let mut node = src;
        std::iter::from_fn(move || {
            let port = *self.next_hops(node, dst).first()?;
            node = fabric.peer_node(port);
            Some(port)
        })
    }

    /// Bytes of memory that the tables take.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.class_of)
            + size_of_val(&*self.row_of)
            + size_of_val(&*self.rows)
            + size_of_val(&*self.chunks)
            + size_of_val(&*self.blocks)
            + size_of_val(&*self.ports)
            + size_of_val(&*self.class_starts)
            + size_of_val(&*self.class_hosts)
    }
}
