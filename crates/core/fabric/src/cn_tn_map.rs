//! Which (m, q, p, k, w) fat tree a map is, found from its graph alone.
//!
//! [`crate::CnTn`] says what the parameters mean. Names, levels and the order of nodes and ports count for nothing here,
//! so that a map read from a subnet is recognised as one that was built; links, switches, hosts and whole CNs may be
//! missing. Two-level trees (leaf-spine) are one CN, three-level k-ary fat trees are pods (CNs) below TNs of one L2.
//!
//! - `tiers`: which switch is L0, L1, L2 or L3.
//! - `number`: which CN, TN and place it has there.

mod number;
mod tiers;

use std::fmt;

use raddle_units::{NodeId, PortId};
use serde::Serialize;

use crate::map::Fabric;

/// A place without node, a pair without link.
const NONE: u32 = u32::MAX;
/// Most entries of one table.
const MAX_SLOTS: u64 = 200_000_000;

/// Why a map is no CN/TN fat tree: the node where it shows, what was expected there and what was found.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no CN/TN fat tree: {node}: expected {expected}, but {found}")]
pub struct NotCnTn {
    /// Name of a node where it shows.
    pub node: String,
    /// What a CN/TN fat tree would have there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// Parameters of a CN/TN fat tree, as [`crate::CnTn`] names them, as far as they show.
///
/// What cannot be seen takes its least value: `k = w = 1` where `p = 0`, and `w` is the number of CNs where there are
/// no L3 switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CnTnShape {
    /// L1 switches of a CN, from 1.
    pub m: u32,
    /// L0 switches of a CN, from 1.
    pub q: u32,
    /// Uplinks of an L1 switch, each to a TN of its own; 0 where there are no TNs.
    pub p: u32,
    /// L2 switches of a TN, from 1.
    pub k: u32,
    /// CNs below an L2 switch and L3 switches of a TN, from 1.
    pub w: u32,
    /// CNs are numbered from 0 to below this; in a fabric with gaps some of the numbers have no switches.
    pub cns: u32,
    /// Most hosts of one L0 switch.
    pub terminals_per_l0: u32,
    /// Levels of switches that are there: 1 (a single switch) to 4.
    pub levels: u8,
}

impl CnTnShape {
    /// TNs: m*p, the p TNs of L1 switch g being g*p to g*p + p-1.
    pub fn tns(&self) -> u32 {
        self.m * self.p
    }
}

impl fmt::Display for CnTnShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            m, q, p, k, w, cns, ..
        } = self;
        write!(f, "m={m}, q={q}, p={p}, k={k}, w={w}, CNs={cns}")
    }
}

/// Where a node sits. Numbers start at 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A host (terminal).
    Host {
        /// Its L0 switch.
        l0: NodeId,
    },
    /// An L0 switch, next to hosts.
    L0 {
        /// Its CN.
        cn: u32,
        /// Its number in the CN, below q.
        i: u32,
    },
    /// An L1 switch.
    L1 {
        /// Its CN.
        cn: u32,
        /// Its number in the CN, below m; its uplinks lead to the TNs of group g.
        g: u32,
    },
    /// An L2 switch.
    L2 {
        /// Its TN.
        tn: u32,
        /// Its number in the TN, below k; below it are the CNs i*w to i*w + w-1.
        i: u32,
    },
    /// An L3 switch.
    L3 {
        /// Its TN.
        tn: u32,
        /// Its number in the TN, below w.
        j: u32,
    },
}

/// What a complete fabric of the same shape would have and this one lacks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Missing {
    /// L0 switches missing in CNs that are there.
    pub l0: u64,
    /// L1 switches missing in CNs that are there.
    pub l1: u64,
    /// L2 switches missing.
    pub l2: u64,
    /// L3 switches missing, in fabrics with L3 switches.
    pub l3: u64,
    /// CNs below the highest number without any switch.
    pub cns: u64,
    /// Links missing between switches that are there.
    pub links: u64,
    /// L0 switches with fewer hosts than the one with most.
    pub short_of_hosts: u64,
}

impl Missing {
    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A CN/TN fat tree found in a map: parameters, the place of every node, and ports between neighbours in O(1).
///
/// The numbering is canonical: CNs, and switches within a CN or TN, are numbered in the order of their node ids (CNs by
/// their first L0 switch; sets of CNs below the same L2 switches with more CNs first), so that a map from
/// [`crate::CnTn::build`] gets the numbers of the builder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CnTnMap {
    shape: CnTnShape,
    roles: Vec<Role>,
    /// Node ids by place; `NONE` where the switch is missing.
    l0: Vec<u32>,
    l1: Vec<u32>,
    l2: Vec<u32>,
    l3: Vec<u32>,
    /// Hosts by L0 place, ascending, and where each L0's begin.
    hosts: Vec<NodeId>,
    host_starts: Vec<u32>,
    /// Port of each host to its L0 and back, in order of `hosts`; position of each node in `hosts`.
    host_ports: Vec<[u32; 2]>,
    host_position: Vec<u32>,
    /// Ports up and down by (cn, i, g).
    l0_l1: Vec<[u32; 2]>,
    /// Ports up and down by (cn, g, TN of the group).
    l1_l2: Vec<[u32; 2]>,
    /// Ports up and down by (tn, i, j).
    l2_l3: Vec<[u32; 2]>,
}

impl CnTnMap {
    /// Finds the CN/TN fat tree that `fabric` is, or is what is left of.
    ///
    /// Time and memory are proportional to the map (with L0 x L1, L1 x p and L2 x L3 pairs counted as if all were
    /// joined). Parallel cables between two switches count as one link, the one whose port is lowest.
    ///
    /// Where the graph leaves a choice, the order of node ids decides: which number a missing switch would have had,
    /// which L1 switches without uplinks belong to which group, and whether a switch with one link and no hosts is an
    /// L0 without hosts or an L2 (an L2, as long as its L1 has fewer uplinks than others).
    ///
    /// Missing links may split a CN into pieces, as two of four links do where m = q = 2. Pieces without two L1 switches
    /// in one group are counted as one CN if its L0 are then no more than those of the largest CN and at most as many
    /// links are missing as switches would be if they were two. Of two such CNs below the same L2 nobody can say which
    /// pieces belonged together: the order of node ids decides. Pieces that differ from this (m and q of 4 and more,
    /// with most links of the CN gone) count as a CN each, with the switches that these lack in [`Missing`]. So do the
    /// two parts of a block of CNs of which each lacks the L1 switches of the other's groups: k and the numbers of CNs
    /// are then too large, never a link in the wrong place.
    ///
    /// # Errors
    /// The place where the graph is no CN/TN fat tree: a host on two switches, switches of one level joined, an L2 or
    /// L3 switch joined twice into one CN or TN, more than four levels, or fewer than half of a level's links there.
    pub fn recognise(fabric: &Fabric) -> Result<Self, NotCnTn> {
        let tiers = tiers::assign(fabric)?;
        number::number(fabric, &tiers)
    }

    /// The parameters.
    pub fn shape(&self) -> CnTnShape {
        self.shape
    }

    /// Where a node of the map sits.
    #[inline]
    pub fn role(&self, node: NodeId) -> Role {
        self.roles[node.index()]
    }

    /// The CN of a host, L0 or L1 switch; `None` for L2 and L3 switches.
    #[inline]
    pub fn cn_of(&self, node: NodeId) -> Option<u32> {
        match self.role(node) {
            Role::L0 { cn, .. } | Role::L1 { cn, .. } => Some(cn),
            Role::Host { l0 } => match self.role(l0) {
                Role::L0 { cn, .. } => Some(cn),
                _ => None,
            },
            _ => None,
        }
    }

    /// The L0 switch `i` of a CN; `None` if it is missing or out of range.
    #[inline]
    pub fn l0(&self, cn: u32, i: u32) -> Option<NodeId> {
        at(&self.l0, cn, i, self.shape.q)
    }

    /// The L1 switch `g` of a CN; `None` if it is missing or out of range.
    #[inline]
    pub fn l1(&self, cn: u32, g: u32) -> Option<NodeId> {
        at(&self.l1, cn, g, self.shape.m)
    }

    /// The L2 switch `i` of a TN; `None` if it is missing or out of range.
    #[inline]
    pub fn l2(&self, tn: u32, i: u32) -> Option<NodeId> {
        at(&self.l2, tn, i, self.shape.k)
    }

    /// The L3 switch `j` of a TN; `None` if it is missing or out of range.
    #[inline]
    pub fn l3(&self, tn: u32, j: u32) -> Option<NodeId> {
        at(&self.l3, tn, j, self.shape.w)
    }

    /// The hosts of the L0 switch `i` of a CN, ascending; empty if it has none or is missing.
    #[inline]
    pub fn hosts_of_l0(&self, cn: u32, i: u32) -> &[NodeId] {
        if i >= self.shape.q || cn >= self.shape.cns {
            return &[];
        }
        let place = (cn * self.shape.q + i) as usize;
        &self.hosts[self.host_starts[place] as usize..self.host_starts[place + 1] as usize]
    }

    /// The port at `a` of the link to `b`; `None` if they are not joined.
    #[inline]
    pub fn port_between(&self, a: NodeId, b: NodeId) -> Option<PortId> {
        let CnTnShape { m, q, p, k, w, .. } = self.shape;
        let [up, down] = [0, 1];
        let (entry, side) = match (self.role(a), self.role(b)) {
            (Role::Host { l0 }, _) if l0 == b => (self.host_entry(a), up),
            (_, Role::Host { l0 }) if l0 == a => (self.host_entry(b), down),
            (Role::L0 { cn, i }, Role::L1 { cn: other, g }) if cn == other => {
                (self.l0_l1[((cn * q + i) * m + g) as usize], up)
            }
            (Role::L1 { cn, g }, Role::L0 { cn: other, i }) if cn == other => {
                (self.l0_l1[((cn * q + i) * m + g) as usize], down)
            }
            (Role::L1 { cn, g }, Role::L2 { tn, i }) if cn / w == i && tn / p == g => {
                (self.l1_l2[((cn * m + g) * p + tn % p) as usize], up)
            }
            (Role::L2 { tn, i }, Role::L1 { cn, g }) if cn / w == i && tn / p == g => {
                (self.l1_l2[((cn * m + g) * p + tn % p) as usize], down)
            }
            (Role::L2 { tn, i }, Role::L3 { tn: other, j }) if tn == other => {
                (self.l2_l3[((tn * k + i) * w + j) as usize], up)
            }
            (Role::L3 { tn, j }, Role::L2 { tn: other, i }) if tn == other => {
                (self.l2_l3[((tn * k + i) * w + j) as usize], down)
            }
            _ => return None,
        };
        Some(PortId(entry[side])).filter(|port| port.0 != NONE)
    }

    /// Counts what is missing in comparison with a complete fabric of this shape and these CNs.
    pub fn missing(&self) -> Missing {
        let CnTnShape { m, q, .. } = self.shape;
        let populated = |cn: u32| {
            (0..q).any(|i| self.l0(cn, i).is_some()) || (0..m).any(|g| self.l1(cn, g).is_some())
        };
        let gaps = |nodes: &[u32]| nodes.iter().filter(|&&node| node == NONE).count() as u64;
        let empty = (0..self.shape.cns).filter(|&cn| !populated(cn)).count() as u64;
        let hosts = (0..self.shape.cns * q)
            .filter(|&place| self.l0[place as usize] != NONE)
            .filter(|&place| {
                let starts = &self.host_starts[place as usize..place as usize + 2];
                starts[1] - starts[0] < self.shape.terminals_per_l0
            });
        Missing {
            l0: gaps(&self.l0) - empty * u64::from(q),
            l1: gaps(&self.l1) - empty * u64::from(m),
            l2: gaps(&self.l2),
            l3: gaps(&self.l3),
            cns: empty,
            links: self.missing_links().count() as u64,
            short_of_hosts: hosts.count() as u64,
        }
    }

    /// Pairs of switches that are there and should be joined but are not, the lower one first, in order of places.
    pub fn missing_links(&self) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
        let CnTnShape { m, q, p, k, w, .. } = self.shape;
        let l0 = open(&self.l0_l1).map(move |slot| {
            let (place, g) = (slot / m, slot % m);
            (self.l0(place / q, place % q), self.l1(place / q, g))
        });
        let l1 = open(&self.l1_l2).map(move |slot| {
            let (place, offset) = (slot / p, slot % p);
            let (cn, g) = (place / m, place % m);
            (self.l1(cn, g), self.l2(g * p + offset, cn / w))
        });
        let l2 = open(&self.l2_l3).map(move |slot| {
            let (place, j) = (slot / w, slot % w);
            (self.l2(place / k, place % k), self.l3(place / k, j))
        });
        l0.chain(l1)
            .chain(l2)
            .filter_map(|(lower, upper)| Some((lower?, upper?)))
    }

    fn host_entry(&self, host: NodeId) -> [u32; 2] {
        self.host_ports[self.host_position[host.index()] as usize]
    }
}

#[inline]
fn at(nodes: &[u32], major: u32, minor: u32, minors: u32) -> Option<NodeId> {
    if minor >= minors {
        return None;
    }
    let node = *nodes.get(major as usize * minors as usize + minor as usize)?;
    (node != NONE).then_some(NodeId(node))
}

/// Slots of a table without a link.
fn open(table: &[[u32; 2]]) -> impl Iterator<Item = u32> + '_ {
    (0..)
        .zip(table)
        .filter(|(_, entry)| entry[0] == NONE)
        .map(|(slot, _)| slot)
}

/// Sets that are joined step by step; the representative of a set is its least member.
struct Union(Vec<u32>);

impl Union {
    fn new(size: usize) -> Self {
        Self((0..size as u32).collect())
    }

    fn find(&mut self, member: NodeId) -> NodeId {
        let mut at = member.0;
        while self.0[at as usize] != at {
            let next = self.0[self.0[at as usize] as usize];
            self.0[at as usize] = next;
            at = next;
        }
        NodeId(at)
    }

    fn join(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b).index()] = a.min(b).0;
    }
}

fn refuse(
    fabric: &Fabric,
    node: NodeId,
    expected: impl Into<String>,
    found: impl Into<String>,
) -> NotCnTn {
    NotCnTn {
        node: fabric.node_name(node).into_owned(),
        expected: expected.into(),
        found: found.into(),
    }
}
