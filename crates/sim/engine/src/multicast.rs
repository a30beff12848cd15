//! Multicast of a run, as data: groups, the tables of the switches, and how both change while the run goes on.

use raddle_multicast::{Colour, Group, MulticastEngine, MulticastTables, TableWrite};
use raddle_units::{NodeId, Time};
use raddle_workload::GroupId;

/// A group as its members see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MulticastGroup {
    /// Its hosts, ascending and distinct, at least two.
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
}

impl Multicast {
    /// The groups that an engine has routed, on its trees, with retransmission. Group `i` of a workload is `groups[i]`. `tables`
    /// are those that the engine's changes add up to. Groups that the engine does not know are left without a table entry:
    /// they reach nobody.
    pub fn new(groups: &[Group], engine: &dyn MulticastEngine, tables: MulticastTables) -> Self {
        let mut trees: Vec<_> = engine.trees();
        trees.retain(|tree| tree.copy > 0);
        let mut twice: Vec<_> = trees.into_iter().flat_map(|tree| tree.groups).collect();
        twice.sort_unstable();
        let unknown = Colour(u16::MAX);
        let group = |group: &Group| MulticastGroup {
            members: group.members.clone(),
            colour: engine.colour_of(group.mgid).unwrap_or(unknown),
            twice: twice.binary_search(&group.mgid).is_ok(),
        };
        Self {
            groups: groups.iter().map(group).collect(),
            tables,
            updates: Vec::new(),
            retransmit: true,
        }
    }
}
