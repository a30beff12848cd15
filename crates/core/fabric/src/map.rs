//! The map itself: immutable once built, all of it in flat vectors by id.

use std::{borrow::Cow, collections::BTreeMap};

use raddle_units::{BitRate, LinkId, NodeId, PortId, Span};

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// Sends and receives messages; never forwards for others.
    Host,
    /// Forwards packets.
    Switch,
}

/// One end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// The node that has the port.
    pub node: NodeId,
    /// Its number on that node, from 1, in the order in which the links were added.
    pub number: u16,
    /// The port at the other end of the link.
    pub peer: PortId,
    /// The link.
    pub link: LinkId,
}

/// A full-duplex cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Both ends, in the order in which they were given.
    pub ports: [PortId; 2],
    /// Rate in each direction.
    pub rate: BitRate,
    /// Propagation delay in each direction.
    pub delay: Span,
}

/// A validated map of hosts, switches, ports and links.
///
/// Everybody is reachable from everybody, every host has a link, no link has rate 0. The ports of one node are
/// contiguous in the dense numbering of [`PortId`], nodes in order of their ids.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fabric {
    pub(crate) name: String,
    pub(crate) kinds: Vec<NodeKind>,
    pub(crate) levels: Vec<u8>,
    pub(crate) hosts: Vec<NodeId>,
    pub(crate) switches: Vec<NodeId>,
    /// First port of each node, and one more entry for the end.
    pub(crate) port_starts: Vec<u32>,
    pub(crate) ports: Vec<Port>,
    pub(crate) links: Vec<Link>,
    /// Names that were given; the others are made from the number.
    pub(crate) names: BTreeMap<NodeId, String>,
    pub(crate) named: BTreeMap<String, NodeId>,
    pub(crate) radix: Option<u32>,
}

impl Fabric {
    /// Name of the map.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Hosts and switches together; ids run from 0.
    pub fn node_count(&self) -> usize {
        self.kinds.len()
    }

    /// Host or switch. The node must be one of this map.
    #[inline]
    pub fn kind(&self, node: NodeId) -> NodeKind {
        self.kinds[node.index()]
    }

    /// Whether the node is a host.
    #[inline]
    pub fn is_host(&self, node: NodeId) -> bool {
        self.kinds[node.index()] == NodeKind::Host
    }

    /// All hosts, ascending.
    pub fn hosts(&self) -> &[NodeId] {
        &self.hosts
    }

    /// All switches, ascending.
    pub fn switches(&self) -> &[NodeId] {
        &self.switches
    }

    /// The ports of a node in order of their numbers; the first has number 1.
    #[inline]
    pub fn ports_of(&self, node: NodeId) -> &[Port] {
        let start = self.port_starts[node.index()] as usize;
        let end = self.port_starts[node.index() + 1] as usize;
        &self.ports[start..end]
    }

    /// The port with number 1 of a node; number `n` is `n - 1` further on.
    #[inline]
    pub fn first_port(&self, node: NodeId) -> PortId {
        PortId(self.port_starts[node.index()])
    }

    /// Ports of all nodes together: twice the number of links.
    pub fn port_count(&self) -> usize {
        self.ports.len()
    }

    /// One port.
    #[inline]
    pub fn port(&self, port: PortId) -> &Port {
        &self.ports[port.index()]
    }

    /// The node at the other end of a port's link.
    #[inline]
    pub fn peer_node(&self, port: PortId) -> NodeId {
        self.ports[self.ports[port.index()].peer.index()].node
    }

    /// All links in the order in which they were added.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// One link.
    #[inline]
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.index()]
    }

    /// Rate of the link at a port.
    #[inline]
    pub fn rate(&self, port: PortId) -> BitRate {
        self.links[self.ports[port.index()].link.index()].rate
    }

    /// Propagation delay of the link at a port.
    #[inline]
    pub fn delay(&self, port: PortId) -> Span {
        self.links[self.ports[port.index()].link.index()].delay
    }

    /// 0 for hosts, 1 for the switches next to them (ToR), and so on upwards.
    #[inline]
    pub fn level(&self, node: NodeId) -> u8 {
        self.levels[node.index()]
    }

    /// Ports that a switch of this map has, where that was said.
    pub fn radix(&self) -> Option<u32> {
        self.radix
    }

    /// The node's own name, or `h7` for host 7 and `s9` for switch 9.
    pub fn node_name(&self, node: NodeId) -> Cow<'_, str> {
        match self.names.get(&node) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(default_name(self.kind(node), node)),
        }
    }

    /// The node with this name, default name (`h7`, `s9`) or number (`7`).
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        if let Some(&node) = self.named.get(name) {
            return Some(node);
        }
        let (kind, digits) = match name.as_bytes().first()? {
            b'h' => (Some(NodeKind::Host), &name[1..]),
            b's' => (Some(NodeKind::Switch), &name[1..]),
            _ => (None, name),
        };
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        let node = NodeId(digits.parse().ok().filter(|_| plain)?);
        let fits = node.index() < self.node_count() && kind.is_none_or(|k| k == self.kind(node));
        // A node with its own name does not answer to the default one.
        (fits && (kind.is_none() || !self.names.contains_key(&node))).then_some(node)
    }

    /// Bytes of memory that the map takes (names left out).
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.kinds)
            + size_of_val(&*self.levels)
            + size_of_val(&*self.hosts)
            + size_of_val(&*self.switches)
            + size_of_val(&*self.port_starts)
            + size_of_val(&*self.ports)
            + size_of_val(&*self.links)
    }
}

pub(crate) fn default_name(kind: NodeKind, node: NodeId) -> String {
    match kind {
        NodeKind::Host => format!("h{}", node.0),
        NodeKind::Switch => format!("s{}", node.0),
    }
}
