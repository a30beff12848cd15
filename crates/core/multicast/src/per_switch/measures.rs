//! Numbers about what is in place.

use std::collections::BTreeSet;

use super::PerSwitch;

/// Numbers about the groups in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PerSwitchMeasures {
    /// Groups.
    pub groups: usize,
    /// Different trees, a merged one counted once.
    pub trees: usize,
    /// Groups that share a tree with another group.
    pub merged_groups: usize,
    /// MLIDs in use.
    pub mlids: usize,
    /// Most groups whose own tree uses one switch: no colouring without merging needs fewer MLIDs.
    pub most_groups_on_a_switch: usize,
    /// Most entries of one switch.
    pub most_entries_of_a_switch: usize,
    /// Entries of all switches.
    pub entries: usize,
    /// Hosts that get a packet they are no member for, when every group sends one packet.
    pub foreign_deliveries: u64,
    /// Members that no tree reaches because their links are down.
    pub unreached_members: usize,
    /// Pairs of which both groups are there.
    pub pairs: usize,
    /// Those of them whose trees share a link between switches: one cut link may lose both copies there. Only links
    /// that are down bring it about, or well-known groups whose MLID is of the other half.
    pub pairs_on_a_common_link: usize,
    /// Groups whose tree is not the one of equation (3) or (4), because of links that are down.
    pub displaced_groups: usize,
}

impl PerSwitch {
    /// Counts what is in place. Takes time in proportion to all trees.
    pub fn measures(&self) -> PerSwitchMeasures {
        let mut own = vec![0usize; self.fabric.node_count()];
        let mut entries = vec![0usize; self.fabric.node_count()];
        let mut measures = PerSwitchMeasures {
            groups: self.groups.len(),
            trees: self.units.len(),
            entries: self.owner.len(),
            ..PerSwitchMeasures::default()
        };
        let mut colours = BTreeSet::new();
        for unit in self.units.values() {
            if !unit.tree.ports.is_empty() {
                colours.insert(unit.colour);
            }
            measures.unreached_members += unit.tree.unreached;
            for &mgid in &unit.groups {
                let members = &self.groups[&mgid].members;
                measures.foreign_deliveries += (unit.members.len() - members.len()) as u64;
                if unit.groups.len() > 1 {
                    measures.merged_groups += 1;
                    for node in self.tree_of(mgid, members).ports.keys() {
                        own[node.index()] += 1;
                    }
                } else {
                    for node in unit.tree.ports.keys() {
                        own[node.index()] += 1;
                    }
                }
                measures.displaced_groups += usize::from(unit.tree.displaced);
            }
        }
        for (node, _) in self.owner.keys() {
            entries[node.index()] += 1;
        }
        (measures.pairs, measures.pairs_on_a_common_link) = self.count_pairs();
        measures.mlids = colours.len();
        measures.most_groups_on_a_switch = own.into_iter().max().unwrap_or(0);
        measures.most_entries_of_a_switch = entries.into_iter().max().unwrap_or(0);
        measures
    }
}
