//! Which links a tree uses.

use raddle_fabric::Fabric;
use raddle_units::{LinkId, NodeId, PortId};

use super::{Branch, Colour, Mgid, PortSet};

/// One link of a tree, seen from below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UpLink {
    /// The node below: a member, or a switch.
    pub node: NodeId,
    /// Its port towards the root.
    pub port: PortId,
}

/// The tree of one group, or of groups that were merged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    /// The colour on every link of it.
    pub colour: Colour,
    /// 0; 1 for the second tree of a fault-tolerant pair.
    pub copy: u8,
    /// The switch at which all ways up end.
    pub root: NodeId,
    /// The groups that share it, ascending. More than one: merged.
    pub groups: Vec<Mgid>,
    /// Every link: for each node of the tree but the root, the port towards the root. By ascending node.
    pub up: Vec<UpLink>,
}

impl Tree {
    /// The links, in the order of `up`.
    pub fn links<'a>(&'a self, fabric: &'a Fabric) -> impl Iterator<Item = LinkId> + 'a {
        self.up.iter().map(|up| fabric.port(up.port).link)
    }

    /// The hosts on it, ascending: the members of all its groups, as far as they can be reached.
    pub fn hosts<'a>(&'a self, fabric: &'a Fabric) -> impl Iterator<Item = NodeId> + 'a {
        let nodes = self.up.iter().map(|up| up.node);
        nodes.filter(|node| fabric.is_host(*node))
    }

    /// What each switch of the tree does with the colour, by ascending switch. Every switch must have at most
    /// [`PortSet::LAST`] ports ([`super::check_ports`]); ports beyond are left out.
    pub fn branches(&self, fabric: &Fabric) -> Vec<Branch> {
        let mut ends: Vec<(NodeId, u16, bool)> = Vec::with_capacity(2 * self.up.len());
        for up in &self.up {
            let port = fabric.port(up.port);
            let above = fabric.port(port.peer);
            ends.push((above.node, above.number, false));
            if !fabric.is_host(up.node) {
                ends.push((up.node, port.number, true));
            }
        }
        ends.sort_unstable();
        ends.chunk_by(|a, b| a.0 == b.0)
            .map(|ends| {
                let (mut down, mut up) = (PortSet::EMPTY, PortSet::EMPTY);
                for &(_, number, is_up) in ends {
                    if let Ok(number) = u8::try_from(number) {
                        if is_up { &mut up } else { &mut down }.insert(number);
                    }
                }
                Branch {
                    switch: ends[0].0,
                    colour: self.colour,
                    down,
                    up,
                    cleared: PortSet::EMPTY,
                }
            })
            .collect()
    }
}
