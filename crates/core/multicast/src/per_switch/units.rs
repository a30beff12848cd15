//! Which MLID a tree gets, and which groups share one.

use std::collections::BTreeSet;

use raddle_units::NodeId;

use super::{Growth, PerSwitch, halves::colours_of, tree::GroupTree};
use crate::{Colour, Mgid};

/// Groups that share a tree; mostly one.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) colour: Colour,
    /// Ascending.
    pub(super) groups: Vec<Mgid>,
    pub(super) members: BTreeSet<NodeId>,
    pub(super) tree: GroupTree,
}

struct Joined {
    groups: Vec<Mgid>,
    members: BTreeSet<NodeId>,
    units: BTreeSet<u32>,
    tree: GroupTree,
}

impl PerSwitch {
    /// Finds an MLID for a group that has none: its own, the first that fits, the one where merging costs least.
    pub(super) fn place(&mut self, mgid: Mgid, at: Option<Colour>) {
        let Some(group) = self.groups.get(&mgid) else {
            return;
        };
        let keep = at.filter(|&colour| {
            group.fixed || (self.growth == Growth::Keep && self.may_use(mgid, colour))
        });
        if let Some(colour) = keep {
            self.merge_into(colour, mgid);
            return;
        }
        let tree = self.tree_of(mgid, &group.members);
        let colour = at
            .filter(|&colour| self.may_use(mgid, colour) && self.fits(&tree, colour))
            .or_else(|| self.first_that_fits(mgid, &tree));
        match colour {
            Some(colour) => {
                let members = group.members.clone();
                self.insert_unit(colour, vec![mgid], members, tree);
            }
            None => {
                let colour = self.cheapest(mgid, at);
                self.merge_into(colour, mgid);
            }
        }
    }

    pub(super) fn fits(&self, tree: &GroupTree, colour: Colour) -> bool {
        let (word, bit) = (colour.0 as usize / 64, 1u64 << (colour.0 % 64));
        tree.ports
            .keys()
            .all(|node| self.used[node.index() * self.words + word] & bit == 0)
    }

    fn first_that_fits(&self, mgid: Mgid, tree: &GroupTree) -> Option<Colour> {
        let others = !colours_of(self.half(mgid));
        (0..self.words).find_map(|word| {
            let taken = tree.ports.keys().fold(others, |taken, node| {
                taken | self.used[node.index() * self.words + word]
            });
            let colour = (word * 64) as u32 + (!taken).trailing_zeros();
            (taken != u64::MAX && colour < self.mlids).then_some(Colour(colour as u16))
        })
    }

    /// The MLID where merging adds the fewest foreign deliveries; `at` where it is one of them.
    fn cheapest(&self, mgid: Mgid, at: Option<Colour>) -> Colour {
        let mut best: Option<(u64, bool, Colour)> = None;
        let allowed = (0..self.mlids)
            .map(|colour| Colour(colour as u16))
            .filter(|&colour| self.may_use(mgid, colour));
        for colour in allowed {
            let limit = best.map_or(u64::MAX, |(cost, ..)| cost);
            if let Some(cost) = self.cost(mgid, colour, limit) {
                let candidate = (cost, at != Some(colour), colour);
                if best.is_none_or(|best| candidate < best) {
                    best = Some(candidate);
                }
            }
        }
        best.map_or(Colour(0), |(.., colour)| colour)
    }

    /// Foreign deliveries that merging into an MLID adds; `None` above `limit`.
    fn cost(&self, mgid: Mgid, colour: Colour, limit: u64) -> Option<u64> {
        let joined = self.closure(colour, mgid);
        let groups = joined.groups.len() as u64;
        let total = joined.members.len() as u64 * groups;
        let own: u64 = joined
            .groups
            .iter()
            .map(|mgid| self.groups[mgid].members.len() as u64)
            .sum();
        let already: u64 = joined
            .units
            .iter()
            .map(|id| self.foreign(&self.units[id]))
            .sum();
        let cost = total.saturating_sub(own).saturating_sub(already);
        (cost <= limit).then_some(cost)
    }

    fn foreign(&self, unit: &Unit) -> u64 {
        let all = unit.members.len() as u64;
        unit.groups
            .iter()
            .map(|mgid| all - self.groups[mgid].members.len() as u64)
            .sum()
    }

    pub(super) fn merge_into(&mut self, colour: Colour, mgid: Mgid) {
        let joined = self.closure(colour, mgid);
        for id in joined.units {
            self.remove_unit(id);
        }
        self.insert_unit(colour, joined.groups, joined.members, joined.tree);
    }

    /// What a group becomes in an MLID: itself with all that its tree meets, and what their common tree meets, until it
    /// meets nothing (Algorithm 2, as a fixpoint). The tree is that of the lowest MGID; if halves of pairs are among
    /// them, of the lowest of those, so that it stays in their half.
    fn closure(&self, colour: Colour, mgid: Mgid) -> Joined {
        let mut members = self.groups[&mgid].members.clone();
        let mut groups = vec![mgid];
        let mut units = BTreeSet::new();
        loop {
            let rank = |group: &Mgid| (self.half(*group).is_none(), *group);
            let first = groups.iter().copied().min_by_key(rank).unwrap_or(mgid);
            let tree = self.tree_of(first, &members);
            let met: BTreeSet<u32> = tree
                .ports
                .keys()
                .filter_map(|&node| self.owner.get(&(node, colour)).copied())
                .filter(|id| !units.contains(id))
                .collect();
            if met.is_empty() {
                groups.sort_unstable();
                return Joined {
                    groups,
                    members,
                    units,
                    tree,
                };
            }
            for id in met {
                let unit = &self.units[&id];
                members.extend(&unit.members);
                groups.extend(&unit.groups);
                units.insert(id);
            }
        }
    }

    pub(super) fn insert_unit(
        &mut self,
        colour: Colour,
        groups: Vec<Mgid>,
        members: BTreeSet<NodeId>,
        tree: GroupTree,
    ) {
        let id = self.next_unit;
        self.next_unit = self.next_unit.wrapping_add(1);
        for mgid in &groups {
            if let Some(group) = self.groups.get_mut(mgid) {
                group.unit = id;
            }
        }
        let (word, bit) = (colour.0 as usize / 64, 1u64 << (colour.0 % 64));
        for &node in tree.ports.keys() {
            self.before.entry((node, colour)).or_default();
            self.used[node.index() * self.words + word] |= bit;
            self.owner.insert((node, colour), id);
        }
        self.units.insert(
            id,
            Unit {
                colour,
                groups,
                members,
                tree,
            },
        );
    }

    pub(super) fn remove_unit(&mut self, id: u32) {
        let Some(unit) = self.units.remove(&id) else {
            return;
        };
        let colour = unit.colour;
        let (word, bit) = (colour.0 as usize / 64, 1u64 << (colour.0 % 64));
        for (node, ports) in unit.tree.ports {
            self.before.entry((node, colour)).or_insert(ports);
            self.used[node.index() * self.words + word] &= !bit;
            self.owner.remove(&(node, colour));
        }
        for mgid in &unit.groups {
            if let Some(group) = self.groups.get_mut(mgid) {
                group.unit = u32::MAX;
            }
        }
    }
}
