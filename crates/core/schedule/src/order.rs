//! Algorithm 1 of Peng: which process pair goes first.

use std::cmp::Reverse;

use raddle_units::Bytes;

use crate::{graph::Graphs, groups::Groups, set::MessageSet};

/// How far apart two nodes are.
#[derive(Clone, Copy, Default)]
pub enum Distance<'a> {
    /// The difference of their numbers (the paper's).
    #[default]
    NodeNumbers,
    /// Any other, from the numbers of sending and receiving node; such as hops in the real topology, from a table. It is
    /// asked once per pair of nodes that have messages, and must say the same every time.
    Metric(&'a (dyn Fn(u32, u32) -> u32 + Sync)),
}

impl std::fmt::Debug for Distance<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::NodeNumbers => "NodeNumbers",
            Self::Metric(_) => "Metric",
        })
    }
}

impl Distance<'_> {
    /// From the numbers of sending and receiving node.
    #[must_use]
    pub fn between(&self, from: u32, to: u32) -> u32 {
        match self {
            Self::NodeNumbers => from.abs_diff(to),
            Self::Metric(metric) => metric(from, to),
        }
    }
}

/// Which distances go first: the paper's text and its pseudo-code contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// Short ones (text: insight 3).
    #[default]
    Near,
    /// Long ones (pseudo-code, lines 11 to 14).
    Far,
}

/// Whose sends count in the weight of a process pair, max(sent by the start, received by the target node).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// The sending process (pseudo-code, line 22).
    #[default]
    Process,
    /// Its node (text). The weight is then one number for a pair of nodes, and orders these.
    Node,
}

/// The readings of Algorithm 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reorder<'a> {
    /// How far apart two nodes are.
    pub distance: Distance<'a>,
    /// Which distances go first.
    pub priority: Priority,
    /// Whose sends count.
    pub start: Start,
}

/// The messages between nodes in the order of Algorithm 1, by their index: the messages of a process pair are adjacent and
/// in program order, the process pairs of a node pair are adjacent.
///
/// A total order, so the same for every sorting algorithm. Node pairs come by distance, with [`Start::Node`] then by
/// weight, heavier first, then by (sending, receiving) node; the process pairs of one come by weight, heavier first, then
/// by when their first message is sent, counted in its source's own messages, then by (source, target).
///
/// Source: Peng, Algorithm 1. Deviation: its comparator ends with `>=`, which no sort accepts as an order, and mixes node
/// pairs of equal distance, though joining relies on their being adjacent.
#[must_use]
pub fn reorder(set: &MessageSet<'_>, reading: &Reorder<'_>) -> Vec<u32> {
    let graphs = Graphs::new(set);
    line_up(set, &graphs, &program_order(set).1, reading)
}

/// All messages of each source in program order, and each message's place there.
pub(crate) fn program_order(set: &MessageSet<'_>) -> (Groups, Vec<u32>) {
    let ranks = set.placement().ranks();
    let by_source = Groups::new(set.indexes(), ranks, |message| {
        set.message(message).source as usize
    });
    let mut place = vec![0; set.messages().len()];
    for rank in 0..ranks {
        for (number, &message) in by_source.of(rank).iter().enumerate() {
            place[message as usize] = number as u32;
        }
    }
    (by_source, place)
}

/// [`reorder`] with what the caller has already.
pub(crate) fn line_up(
    set: &MessageSet<'_>,
    graphs: &Graphs,
    place: &[u32],
    reading: &Reorder<'_>,
) -> Vec<u32> {
    let turns = turns(set, graphs, reading);
    let processes = &graphs.processes;
    // Tuples of plain numbers, so that the sort compares without looking anything up.
    let mut pairs: Vec<(u32, Reverse<Bytes>, u32, u32)> = (0..)
        .zip(processes.edges())
        .map(|(pair, edge)| {
            let weight = match reading.start {
                Start::Process => {
                    let target = set.placement().node(edge.to);
                    processes.sent(edge.from).max(graphs.nodes.received(target))
                }
                // Equal inside a node pair; `turns` has used it.
                Start::Node => Bytes(0),
            };
            let first = graphs.messages(pair)[0];
            let turn = turns[graphs.node_edge(pair) as usize];
            (turn, Reverse(weight), place[first as usize], pair)
        })
        .collect();
    pairs.sort_unstable();
    let mut messages = Vec::with_capacity(set.messages().len());
    for (.., pair) in pairs {
        messages.extend_from_slice(graphs.messages(pair));
    }
    messages
}

/// For each edge of G' when its turn comes.
fn turns(set: &MessageSet<'_>, graphs: &Graphs, reading: &Reorder<'_>) -> Vec<u32> {
    let nodes = &graphs.nodes;
    let mut order: Vec<(u32, Reverse<Bytes>, u32)> = (0..)
        .zip(nodes.edges())
        .map(|(id, edge)| {
            let number = |node| set.placement().number(node);
            let distance = reading.distance.between(number(edge.from), number(edge.to));
            let key = match reading.priority {
                Priority::Near => distance,
                Priority::Far => u32::MAX - distance,
            };
            let weight = match reading.start {
                Start::Process => Bytes(0),
                Start::Node => nodes.sent(edge.from).max(nodes.received(edge.to)),
            };
            (key, Reverse(weight), id)
        })
        .collect();
    order.sort_unstable();
    let mut turns = vec![0; order.len()];
    for (turn, &(.., id)) in (0..).zip(&order) {
        turns[id as usize] = turn;
    }
    turns
}
