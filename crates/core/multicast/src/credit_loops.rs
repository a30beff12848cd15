//! Whether buffers can wait for each other in a circle: the channel dependency graph of unicast and multicast tables.
//!
//! In a lossless fabric a packet holds the buffer of the link that it came by until the next link has room. A
//! *channel* is one direction of a link; channel `a` depends on channel `b` when some route uses `b` right after `a`.
//! Without a cycle among the channels no deadlock is possible (Dally and Seitz, IEEE Trans. Computers, 1987). A switch
//! that copies a multicast packet depends on each of its outputs; that the copies are independent once the whole
//! packet is stored (store-and-forward, virtual cut-through) is taken as given.
//!
//! Hosts never forward, so a channel from or to a host is in no cycle and is left out.

use std::collections::VecDeque;

use raddle_fabric::{Fabric, NodeKind};
use raddle_units::{NodeId, PortId};

use super::{MulticastTables, PortSet, TableMode, Tree};
use raddle_unicast::UnicastTables;

/// Most 64-bit words of the graph (1 GiB): a limit that only switches with tens of thousands of switch ports meet.
const MAX_WORDS: u64 = 1 << 27;
/// A port that leads to a host.
const NOT_FACING: u32 = u32::MAX;

/// The switches of this fabric have more ports to each other than the check can hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the credit-loop check needs {words} words for the pairs of ports of the switches, more than {limit}; use a smaller fabric"
)]
pub struct CreditGraphTooLarge {
    /// Words that are needed.
    pub words: u64,
    /// Words that are possible.
    pub limit: u64,
}

/// Channels that wait for each other in a circle; each depends on the next, the last on the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreditLoop {
    /// The channels by the port that sends into them.
    pub channels: Vec<PortId>,
}

impl CreditLoop {
    /// The circle as the names of the switches: `s4 -> s5 -> s6 -> s4`.
    pub fn describe(&self, fabric: &Fabric) -> String {
        let circle = self.channels.iter().chain(self.channels.first());
        let names: Vec<_> = circle
            .map(|&channel| fabric.node_name(fabric.port(channel).node))
            .collect();
        names.join(" -> ")
    }
}

/// The channel dependency graph: tables are added to it, then it is asked for a cycle.
///
/// ```
/// use raddle_fabric::CnTn;
/// use raddle_unicast::{LinkState, NextHopOrder, UnicastTables};
/// use raddle_multicast::CreditGraph;
/// let fabric = CnTn::new(2, 2, 1, 2, 2).build().unwrap();
/// let links = LinkState::all_up(&fabric);
/// let tables = UnicastTables::compute(&fabric, &links, NextHopOrder::ByPort).unwrap();
/// let mut graph = CreditGraph::new(&fabric).unwrap();
/// graph.add_unicast(&tables);
/// assert_eq!(graph.find_loop(), None);
/// ```
#[derive(Clone, Debug)]
pub struct CreditGraph<'a> {
    fabric: &'a Fabric,
    /// The ports between switches, by node: start per node, and the end.
    facing_starts: Vec<u32>,
    facing: Vec<PortId>,
    /// Per port: its place among the facing ports of its node.
    place: Vec<u32>,
    /// Per node: words of one row.
    row_words: Vec<u32>,
    /// Per port: where its row of `words` begins.
    row_starts: Vec<u32>,
    /// Row of an in-port: one bit for each facing port of the same switch that packets leave by.
    words: Vec<u64>,
}

impl<'a> CreditGraph<'a> {
    /// A graph without dependencies.
    ///
    /// # Errors
    /// The pairs of ports of the switches need more than 1 GiB.
    pub fn new(fabric: &'a Fabric) -> Result<Self, CreditGraphTooLarge> {
        let mut facing_starts = vec![0];
        let mut facing = Vec::new();
        let mut place = vec![NOT_FACING; fabric.port_count()];
        for node in (0..fabric.node_count() as u32).map(NodeId) {
            let from = facing.len();
            if fabric.kind(node) == NodeKind::Switch {
                let first = fabric.first_port(node);
                for (id, port) in (first.0..).map(PortId).zip(fabric.ports_of(node)) {
                    if !fabric.is_host(fabric.port(port.peer).node) {
                        place[id.index()] = (facing.len() - from) as u32;
                        facing.push(id);
                    }
                }
            }
            facing_starts.push(facing.len() as u32);
        }
        let counts = facing_starts.windows(2).map(|pair| pair[1] - pair[0]);
        let row_words: Vec<u32> = counts.clone().map(|count| count.div_ceil(64)).collect();
        let words: u64 = counts
            .zip(&row_words)
            .map(|(count, &words)| u64::from(count) * u64::from(words))
            .sum();
        if words > MAX_WORDS {
            return Err(CreditGraphTooLarge {
                words,
                limit: MAX_WORDS,
            });
        }
        let mut row_starts = vec![0; fabric.port_count()];
        let mut next = 0;
        for &port in &facing {
            row_starts[port.index()] = next;
            next += row_words[fabric.port(port).node.index()];
        }
        Ok(Self {
            fabric,
            facing_starts,
            facing,
            place,
            row_words,
            row_starts,
            words: vec![0; words as usize],
        })
    }

    /// Packets that come in by `in_port` of a switch leave by `out_port` of the same switch. Ports to hosts make no
    /// difference.
    ///
    /// # Panics
    /// When the ports are not those of one node of the fabric.
    pub fn add(&mut self, in_port: PortId, out_port: PortId) {
        assert_eq!(
            self.fabric.port(in_port).node,
            self.fabric.port(out_port).node,
            "{in_port} and {out_port} are ports of one node"
        );
        let (from, to) = (self.place[in_port.index()], self.place[out_port.index()]);
        if from != NOT_FACING && to != NOT_FACING {
            let row = self.row_starts[in_port.index()] as usize;
            self.words[row + to as usize / 64] |= 1 << (to % 64);
        }
    }

    /// Adds what a multicast tree does at its switches: a packet that comes by one of its ports may leave by any other.
    ///
    /// # Panics
    /// When the tree belongs to another fabric.
    pub fn add_tree(&mut self, tree: &Tree) {
        let fabric = self.fabric;
        let mut ends = Vec::with_capacity(2 * tree.up.len());
        for up in &tree.up {
            let above = fabric.port(up.port).peer;
            ends.push((fabric.port(above).node, above));
            ends.push((up.node, up.port));
        }
        ends.sort_unstable();
        for ends in ends.chunk_by(|a, b| a.0 == b.0) {
            for &(_, from) in ends {
                for &(_, to) in ends.iter().filter(|(_, to)| *to != from) {
                    self.add(from, to);
                }
            }
        }
    }

    /// Adds multicast tables as they stand. With one table per switch a packet may come in by each port of an entry.
    ///
    /// # Panics
    /// When the tables name a port that the fabric does not have.
    pub fn add_multicast(&mut self, tables: &MulticastTables) {
        for &switch in self.fabric.switches() {
            let first = self.fabric.first_port(switch).0;
            let port = |number: u8| PortId(first + u32::from(number) - 1);
            for entry in tables.entries(switch) {
                let from = match (tables.mode(), entry.in_port) {
                    (TableMode::PerPort, Some(number)) => PortSet::from_iter([number]),
                    _ => entry.out_ports,
                };
                for from in from.iter().filter(|number| *number > 0) {
                    let to = entry.out_ports.without(from);
                    for to in to.iter().filter(|number| *number > 0) {
                        self.add(port(from), port(to));
                    }
                }
            }
        }
    }

    /// Adds every route between two hosts: all ways that equal-cost choice may take.
    ///
    /// Goes switch by switch for each class of destinations, and only where packets from a host come along. Time:
    /// classes x links of the shortest paths.
    ///
    /// # Panics
    /// When the tables belong to another fabric.
    pub fn add_unicast(&mut self, tables: &UnicastTables) {
        let fabric = self.fabric;
        let nodes = fabric.node_count();
        let mut out_starts = Vec::with_capacity(nodes);
        let mut total = 0;
        for &words in &self.row_words {
            out_starts.push(total);
            total += words as usize;
        }
        let mut walk = Walk {
            tables,
            seen: vec![u32::MAX; nodes],
            open: Vec::new(),
            out_starts,
            out: vec![0; total],
        };
        let sources: Vec<NodeId> = tables
            .destination_classes()
            .map(|class| tables.class_hosts(class)[0])
            .collect();
        for class in tables.destination_classes() {
            let dst = tables.class_hosts(class)[0];
            for &src in &sources {
                for &port in tables.next_hops(src, dst) {
                    walk.visit(self, fabric.peer_node(port), dst, class.0);
                }
            }
            while let Some(at) = walk.open.pop() {
                for &port in tables.next_hops(at, dst) {
                    if self.place[port.index()] == NOT_FACING {
                        continue;
                    }
                    let in_port = fabric.port(port).peer;
                    let to = fabric.port(in_port).node;
                    walk.visit(self, to, dst, class.0);
                    let row = self.row_starts[in_port.index()] as usize;
                    let out = walk.out_starts[to.index()];
                    for word in 0..self.row_words[to.index()] as usize {
                        self.words[row + word] |= walk.out[out + word];
                    }
                }
            }
        }
    }

    /// A cycle of dependencies, or `None` where there is none: then neither unicast nor multicast packets can
    /// deadlock. The cycle is a shortest one through one of its channels.
    ///
    /// Time: one visit of each channel and dependency.
    pub fn find_loop(&self) -> Option<CreditLoop> {
        let start = self.channel_on_loop()?;
        // Breadth-first from that channel back to itself.
        let mut from = vec![None; self.fabric.port_count()];
        let mut open = VecDeque::from([start]);
        while let Some(channel) = open.pop_front() {
            let mut after = 0;
            while let Some((next, place)) = self.next_after(channel, after) {
                after = place + 1;
                if next == start {
                    let mut channels = vec![channel];
                    let mut at = channel;
                    while let Some(before) = from[at.index()] {
                        channels.push(before);
                        at = before;
                    }
                    channels.reverse();
                    return Some(CreditLoop { channels });
                }
                if from[next.index()].is_none() {
                    from[next.index()] = Some(channel);
                    open.push_back(next);
                }
            }
        }
        None
    }

    /// The first channel that follows `channel` at or behind a place of the next switch's ports, and its place.
    fn next_after(&self, channel: PortId, place: u32) -> Option<(PortId, u32)> {
        let in_port = self.fabric.port(channel).peer;
        let node = self.fabric.port(in_port).node.index();
        let row = self.row_starts[in_port.index()] as usize;
        let mut word = place / 64;
        let mut mask = u64::MAX << (place % 64);
        while word < self.row_words[node] {
            let bits = self.words[row + word as usize] & mask;
            if bits != 0 {
                let found = word * 64 + bits.trailing_zeros();
                return Some((
                    self.facing[(self.facing_starts[node] + found) as usize],
                    found,
                ));
            }
            word += 1;
            mask = u64::MAX;
        }
        None
    }

    /// Depth-first search for a channel that depends on itself.
    fn channel_on_loop(&self) -> Option<PortId> {
        const NEW: u8 = 0;
        const OPEN: u8 = 1;
        const DONE: u8 = 2;
        let mut state = vec![NEW; self.fabric.port_count()];
        let mut stack: Vec<(PortId, u32)> = Vec::new();
        for &first in &self.facing {
            if state[first.index()] != NEW {
                continue;
            }
            state[first.index()] = OPEN;
            stack.push((first, 0));
            while let Some(&mut (channel, ref mut after)) = stack.last_mut() {
                match self.next_after(channel, *after) {
                    Some((next, place)) => {
                        *after = place + 1;
                        match state[next.index()] {
                            NEW => {
                                state[next.index()] = OPEN;
                                stack.push((next, 0));
                            }
                            OPEN => return Some(next),
                            _ => {}
                        }
                    }
                    None => {
                        state[channel.index()] = DONE;
                        stack.pop();
                    }
                }
            }
        }
        None
    }
}

/// The switches that packets to one class of destinations pass.
struct Walk<'t> {
    tables: &'t UnicastTables,
    /// Per node: the last class that passed it.
    seen: Vec<u32>,
    open: Vec<NodeId>,
    /// Per node: the facing ports that packets to the class leave by; where they stand, and one bit each.
    out_starts: Vec<usize>,
    out: Vec<u64>,
}

impl Walk<'_> {
    fn visit(&mut self, graph: &CreditGraph<'_>, node: NodeId, dst: NodeId, class: u32) {
        if self.seen[node.index()] == class || graph.fabric.is_host(node) {
            return;
        }
        self.seen[node.index()] = class;
        self.open.push(node);
        let start = self.out_starts[node.index()];
        let row = &mut self.out[start..start + graph.row_words[node.index()] as usize];
        row.fill(0);
        for &port in self.tables.next_hops(node, dst) {
            let place = graph.place[port.index()];
            if place != NOT_FACING {
                row[place as usize / 64] |= 1 << (place % 64);
            }
        }
    }
}
