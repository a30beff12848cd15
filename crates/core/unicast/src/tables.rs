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

use std::num::NonZeroU64;

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

/// Classes that are found without a table: hosts come first among the nodes, and each class is the next so many of them. (The table
/// of a large fabric's hosts is read at random, and not from a cache.)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EvenClasses {
    /// 2^64 over the hosts of a class, rounded up: exact for numbers of 32 bits (Lemire, Kaser and Kurz, 2019).
    reciprocal: NonZeroU64,
    classes: u32,
}

impl EvenClasses {
    /// `None`: the classes are not so. The class of switches is the one behind the last.
    pub(crate) fn find(class_of: &[u32], classes: u32) -> Option<Self> {
        let hosts = class_of.iter().take_while(|class| **class == 0).count() as u64;
        let even = Self {
            reciprocal: reciprocal(hosts)?,
            classes,
        };
        let mut nodes = (0..).map(NodeId).zip(class_of);
        let fits = nodes.all(|(node, class)| even.class(node) == *class);
        fits.then_some(even)
    }

    /// The class of a node: that of hosts, or of switches.
    #[inline(always)]
    fn class(self, node: NodeId) -> u32 {
        let product = u128::from(self.reciprocal.get()) * u128::from(node.0);
        self.classes.min((product >> u64::BITS) as u32)
    }
}

/// 2^64 over a number, rounded up; `None` for 0 and 1.
fn reciprocal(number: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(u64::MAX.checked_div(number)?.wrapping_add(1))
}

/// Next hops from every node to every host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnicastTables {
    /// Class of each node; switches have the one behind the last, which no way leads to.
    pub(crate) class_of: Vec<u32>,
    pub(crate) even: Option<EvenClasses>,
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
        let class = match self.even {
            Some(even) => even.class(dst),
            None => self.class_of[dst.index()],
        } as usize;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// So many classes of so many hosts, then switches.
    fn classes(each: u32, classes: u32, switches: usize) -> Vec<u32> {
        let hosts = (0..each * classes).map(|host| host / each);
        hosts
            .chain(std::iter::repeat_n(classes, switches))
            .collect()
    }

    #[test]
    fn even_classes_are_found_without_a_table() {
        for each in [2, 3, 16, 51, 64, 1000] {
            for count in [1, 2, 7, 300] {
                let table = classes(each, count, 40);
                let even = EvenClasses::find(&table, count).expect("they are even");
                for (node, class) in (0..).zip(&table) {
                    assert_eq!(
                        even.class(NodeId(node)),
                        *class,
                        "{each} hosts, node {node}"
                    );
                }
            }
        }
    }

    #[test]
    fn other_classes_are_not() {
        // Hosts alone, one class longer than the others, a host behind the switches, nothing.
        let mut longer = classes(4, 3, 2);
        longer.insert(4, 1);
        let mut behind = classes(4, 3, 2);
        behind.push(2);
        let cases = [(classes(1, 5, 3), 5), (longer, 3), (behind, 3), (vec![], 0)];
        for (table, count) in cases {
            assert_eq!(EvenClasses::find(&table, count), None, "{table:?}");
        }
    }

    #[test]
    fn the_reciprocal_is_exact_for_all_numbers_of_32_bits() {
        for each in [2u32, 3, 51, 641, 65_535, 65_536, u32::MAX - 1, u32::MAX] {
            let even = EvenClasses {
                reciprocal: reciprocal(each.into()).expect("two or more"),
                classes: u32::MAX,
            };
            for times in [0, 1, 2, u32::MAX / each] {
                let Some(first) = each.checked_mul(times) else {
                    continue;
                };
                for node in [
                    first,
                    first.saturating_add(each - 1),
                    first.saturating_sub(1),
                ] {
                    assert_eq!(even.class(NodeId(node)), node / each);
                }
            }
        }
    }
}
