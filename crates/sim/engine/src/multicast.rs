//! Multicast of a run, as data: groups, the tables of the switches, and how both change while the run goes on.

use std::collections::BTreeMap;

use raddle_fabric::Fabric;
use raddle_multicast::{Colour, Group, MulticastEngine, MulticastTables, TableWrite, Tree};
use raddle_units::{NodeId, PortId, Span, Time};
use raddle_workload::GroupId;

/// A group as its members see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MulticastGroup {
    /// Its hosts, ascending and distinct, at least two. One with several ports sends by its first.
    pub members: Vec<NodeId>,
    /// The colour that its packets carry.
    pub colour: Colour,
    /// The tables send every packet over two trees; members drop the second copy.
    pub twice: bool,
}

/// Tables and colours change at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MulticastUpdate {
    /// When.
    pub at: Time,
    /// Entries of switches, in order.
    pub writes: Vec<TableWrite>,
    /// Groups whose packets carry another colour from then on.
    pub colours: Vec<(GroupId, Colour)>,
}

/// The part of a tree on which contributions of a group's members meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CombiningTree {
    /// For each member and each switch below `apex`: the port towards it.
    pub up: BTreeMap<NodeId, PortId>,
    /// The switch in which all have met.
    pub apex: NodeId,
}

impl CombiningTree {
    /// The part of `tree` that joins `members`; `None` where it does not reach one of them.
    pub fn of(tree: &Tree, members: &[NodeId], fabric: &Fabric) -> Option<Self> {
        let port_of = |node: NodeId| {
            let place = tree.up.binary_search_by_key(&node, |link| link.node).ok()?;
            Some(tree.up[place].port)
        };
        let mut up = BTreeMap::new();
        for &member in members {
            let mut node = member;
            while node != tree.root && !up.contains_key(&node) {
                let port = port_of(node)?;
                up.insert(node, port);
                node = fabric.peer_node(port);
            }
        }
        // Above the switch where the last have met there is one way, which nobody needs.
        let mut apex = tree.root;
        loop {
            let mut below = up
                .iter()
                .filter(|(_, port)| fabric.peer_node(**port) == apex);
            match (below.next().map(|(&node, _)| node), below.next()) {
                (Some(only), None) if !fabric.is_host(only) => {
                    up.remove(&only);
                    apex = only;
                }
                _ => return Some(Self { up, apex }),
            }
        }
    }
}

/// Time that a host takes for a packet of a group that it is not in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ForeignTime {
    /// For each packet.
    pub packet: Span,
    /// For each of its bytes.
    pub byte: Span,
}

impl ForeignTime {
    /// Whether it takes none.
    pub const fn is_zero(&self) -> bool {
        self.packet.0 == 0 && self.byte.0 == 0
    }
}

/// Groups, tables and rules of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Multicast {
    /// The groups that messages may go to, by [`GroupId`].
    pub groups: Vec<MulticastGroup>,
    /// Where switches copy to.
    pub tables: MulticastTables,
    /// Changes of both, in any order.
    pub updates: Vec<MulticastUpdate>,
    /// Senders send again what members miss, and give up a member after `max_timeouts`. False: nothing is sent again; a member
    /// that misses a packet has lost the message, which shows one timeout after the last packet.
    pub retransmit: bool,
    /// The trees of each group's reductions: one, two with fault tolerance; none where a member cannot be reached. May be
    /// shorter than the list of groups.
    pub combining: Vec<Vec<CombiningTree>>,
    /// What packets cost hosts outside their group. Packets of a host's own groups wait behind them, acknowledgements do not.
    pub foreign: ForeignTime,
}

impl Multicast {
    /// The groups that an engine has routed, on its trees, with retransmission. Group `i` of a workload is `groups[i]`. `tables`
    /// are those that the engine's changes add up to. Groups that the engine does not know are left without a table entry:
    /// they reach nobody.
    pub fn new(
        groups: &[Group],
        engine: &dyn MulticastEngine,
        tables: MulticastTables,
        fabric: &Fabric,
    ) -> Self {
        let trees = engine.trees();
        let mut trees_of: BTreeMap<_, Vec<&Tree>> = BTreeMap::new();
        for tree in &trees {
            for &mgid in &tree.groups {
                trees_of.entry(mgid).or_default().push(tree);
            }
        }
        let own = |group: &Group| trees_of.get(&group.mgid).map_or(&[][..], Vec::as_slice);
        let combining = |group: &Group| {
            let mut found: Vec<_> = own(group)
                .iter()
                .filter_map(|tree| CombiningTree::of(tree, &group.members, fabric))
                .collect();
            // Within one switch both trees are the same.
            found.dedup();
            found
        };
        let unknown = Colour(u16::MAX);
        let group = |group: &Group| MulticastGroup {
            members: group.members.clone(),
            colour: engine.colour_of(group.mgid).unwrap_or(unknown),
            twice: own(group).iter().any(|tree| tree.copy > 0),
        };
        Self {
            groups: groups.iter().map(group).collect(),
            tables,
            updates: Vec::new(),
            retransmit: true,
            combining: groups.iter().map(combining).collect(),
            foreign: ForeignTime::default(),
        }
    }
}
