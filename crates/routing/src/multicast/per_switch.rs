//! C-MR4LMS for switches with one table for all ports (`table = "per-switch"`): InfiniBand.
//!
//! A standard InfiniBand switch has one mask of ports per MLID, whichever port a packet came in by. Two trees of one
//! MLID that meet in a switch, even without a common link, would leak into each other or loop. So groups of one
//! MLID must be switch-disjoint, or share one tree (then they are *merged*: members also get the other groups' packets,
//! which their channel adapters drop; we call those deliveries foreign).
//!
//! The tree of a group still comes from its MGID (equation 3 of Chen et al., C-MR4LMS, JCRD,
//! 10.7544/issn1000-1239.20210582): a TN, and in it the nearest common ancestor of the members. An MLID may serve
//! switch-disjoint groups of different trees. The MLID is chosen by greedy colouring:
//!
//! - [`PerSwitch::recolour`] colours all groups anew, the highest root first. Groups of one spanning tree are subtrees of
//!   a tree; when one is coloured, all coloured groups that it meets hold its root, so they are as many as groups on
//!   that switch, and the number of MLIDs is the most groups on one switch. Fewer are impossible.
//! - A new group, and one that has grown into a neighbour, takes the first MLID that fits; nothing else moves.
//! - Only when none fits, groups merge: with those where it costs the fewest foreign deliveries.
//!
//! The tree of a group depends on its MGID, its members and the links that are up, on nothing else. When a link fails,
//! only the groups on it take the next tree (of the same TN, then of the next TN, then of the next TN group); when
//! it is repaired, those return.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use raddle_fabric::{CnTnMap, Fabric, NodeKind, Role};
use raddle_units::{LinkId, NodeId, PortId};

use crate::LinkState;

use super::{Colour, Mgid};

/// Most MLIDs of a table: InfiniBand has 0xC000 to 0xFFFE.
pub const MAX_MLIDS: u32 = 16_383;

/// Why a per-switch engine refuses.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerSwitchError {
    /// The number of MLIDs makes no sense.
    #[error("{mlids} MLIDs: a multicast table has 1 to {MAX_MLIDS} of them")]
    Mlids {
        /// What was asked for.
        mlids: u32,
    },
    /// A member is not one of the fabric's nodes.
    #[error("group {mgid}: member {node} is not a node of this fabric")]
    UnknownMember {
        /// The group.
        mgid: u64,
        /// The member.
        node: NodeId,
    },
    /// The link state belongs to another fabric.
    #[error("the link state has {state} links but the fabric {fabric}; make it for this fabric")]
    ForeignLinkState {
        /// Links of the state.
        state: usize,
        /// Links of the fabric.
        fabric: usize,
    },
    /// An MLID that the table does not have.
    #[error("MLID {colour} is not one of 0 to {last}")]
    UnknownMlid {
        /// What was asked for.
        colour: u16,
        /// The highest one.
        last: u32,
    },
}

/// What may happen to a group that grows into another group of its MLID.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Growth {
    /// It takes the first other MLID that fits; its members have to learn the new one.
    #[default]
    Move,
    /// It keeps its MLID and merges with what it meets.
    Keep,
}

/// A new entry of a switch's multicast table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The switch.
    pub switch: NodeId,
    /// The MLID.
    pub colour: Colour,
    /// Ports by which a packet leaves (but not by the one it came in by), ascending; empty: the entry has gone.
    pub ports: Vec<PortId>,
}

/// What a change did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Change {
    /// Entries that differ from before, by switch and MLID.
    pub entries: Vec<Entry>,
    /// Groups that have another MLID than before, ascending; new groups are not among them.
    pub moved: Vec<(Mgid, Colour)>,
}

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
    /// Groups whose tree is not the one of equation (3), because of links that are down.
    pub displaced_groups: usize,
}

/// Switches of a tree with their ports, ascending.
type Ports = BTreeMap<NodeId, Vec<PortId>>;

#[derive(Clone, Debug)]
struct GroupTree {
    /// Height of the root: 1 for an L0 switch to 4.
    height: u8,
    ports: Ports,
    unreached: usize,
    /// Not the tree that it has while all links are up.
    displaced: bool,
}

#[derive(Clone, Debug)]
struct Group {
    members: BTreeSet<NodeId>,
    unit: u32,
    /// Keeps its MLID whatever happens.
    fixed: bool,
}

/// Groups that share a tree; mostly one.
#[derive(Clone, Debug)]
struct Unit {
    colour: Colour,
    /// Ascending.
    groups: Vec<Mgid>,
    members: BTreeSet<NodeId>,
    tree: GroupTree,
}

/// All groups of a fabric, their trees and MLIDs. Everything is deterministic: the same calls give the same tables.
#[derive(Clone, Debug)]
pub struct PerSwitch {
    fabric: Fabric,
    map: CnTnMap,
    links: LinkState,
    mlids: u32,
    growth: Growth,
    /// Words of `used` per node.
    words: usize,
    /// One bit per node and MLID: taken.
    used: Vec<u64>,
    /// The unit at each taken place.
    owner: BTreeMap<(NodeId, Colour), u32>,
    groups: BTreeMap<Mgid, Group>,
    units: BTreeMap<u32, Unit>,
    next_unit: u32,
    /// Content of the entries that this change has touched, as it was before.
    before: BTreeMap<(NodeId, Colour), Vec<PortId>>,
}

impl PerSwitch {
    /// An engine without groups. `mlids` are the entries of the smallest table.
    ///
    /// # Errors
    /// A number of MLIDs out of range, a link state of another fabric.
    pub fn new(
        fabric: Fabric,
        map: CnTnMap,
        links: LinkState,
        mlids: u32,
        growth: Growth,
    ) -> Result<Self, PerSwitchError> {
        if mlids == 0 || mlids > MAX_MLIDS {
            return Err(PerSwitchError::Mlids { mlids });
        }
        check_links(&fabric, &links)?;
        let words = (mlids as usize).div_ceil(64);
        Ok(Self {
            used: vec![0; words * fabric.node_count()],
            fabric,
            map,
            links,
            mlids,
            growth,
            words,
            owner: BTreeMap::new(),
            groups: BTreeMap::new(),
            units: BTreeMap::new(),
            next_unit: 0,
            before: BTreeMap::new(),
        })
    }

    /// The fabric.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Number of MLIDs.
    pub fn mlids(&self) -> u32 {
        self.mlids
    }

    /// Where its nodes sit.
    pub fn map(&self) -> &CnTnMap {
        &self.map
    }

    /// The links as they were last told.
    pub fn links(&self) -> &LinkState {
        &self.links
    }

    /// Groups in place, ascending.
    pub fn groups(&self) -> impl Iterator<Item = Mgid> + '_ {
        self.groups.keys().copied()
    }

    /// Members of a group, ascending.
    pub fn members(&self, mgid: Mgid) -> impl Iterator<Item = NodeId> + '_ {
        self.groups
            .get(&mgid)
            .into_iter()
            .flat_map(|group| group.members.iter().copied())
    }

    /// The MLID of a group, counted from 0.
    pub fn colour(&self, mgid: Mgid) -> Option<Colour> {
        let group = self.groups.get(&mgid)?;
        Some(self.units.get(&group.unit)?.colour)
    }

    /// The groups that share the tree of this one, itself among them, ascending.
    pub fn sharing(&self, mgid: Mgid) -> &[Mgid] {
        self.groups
            .get(&mgid)
            .and_then(|group| self.units.get(&group.unit))
            .map_or(&[], |unit| &unit.groups)
    }

    /// Switches and ports of the tree that a group uses.
    pub fn tree(&self, mgid: Mgid) -> impl Iterator<Item = (NodeId, &[PortId])> + '_ {
        self.groups
            .get(&mgid)
            .and_then(|group| self.units.get(&group.unit))
            .into_iter()
            .flat_map(|unit| {
                unit.tree
                    .ports
                    .iter()
                    .map(|(&node, ports)| (node, &**ports))
            })
    }

    /// An entry of a switch's table; empty where there is none.
    pub fn entry(&self, switch: NodeId, colour: Colour) -> &[PortId] {
        self.owner
            .get(&(switch, colour))
            .and_then(|unit| self.units.get(unit)?.tree.ports.get(&switch))
            .map_or(&[], |ports| ports)
    }

    /// All entries, by switch and MLID.
    pub fn entries(&self) -> impl Iterator<Item = (NodeId, Colour, &[PortId])> + '_ {
        self.owner
            .keys()
            .map(|&(switch, colour)| (switch, colour, self.entry(switch, colour)))
    }

    /// The switches that have an entry of an MLID, with their ports, ascending.
    pub fn entries_of(&self, colour: Colour) -> impl Iterator<Item = (NodeId, &[PortId])> + '_ {
        self.units
            .values()
            .filter(move |unit| unit.colour == colour)
            .flat_map(|unit| {
                unit.tree
                    .ports
                    .iter()
                    .map(|(&node, ports)| (node, &**ports))
            })
    }

    /// Gives a group these members, creating it where it does not exist. `at` is the MLID that it has already (its
    /// members know it); `fixed` keeps it there. Members are hosts; a switch may be one too (its own port 0): the tree
    /// then reaches that switch.
    ///
    /// # Errors
    /// A member that is no node of the fabric; an MLID out of range. Nothing has changed then.
    pub fn set(
        &mut self,
        mgid: Mgid,
        members: &[NodeId],
        at: Option<Colour>,
        fixed: bool,
    ) -> Result<Change, PerSwitchError> {
        for &node in members {
            if node.index() >= self.fabric.node_count() {
                return Err(PerSwitchError::UnknownMember { mgid: mgid.0, node });
            }
        }
        if let Some(colour) = at
            && u32::from(colour.0) >= self.mlids
        {
            return Err(PerSwitchError::UnknownMlid {
                colour: colour.0,
                last: self.mlids - 1,
            });
        }
        let members: BTreeSet<NodeId> = members.iter().copied().collect();
        let known = self.colour(mgid);
        if known.is_some()
            && (at.is_none() || at == known)
            && self
                .groups
                .get(&mgid)
                .is_some_and(|group| group.members == members && group.fixed == fixed)
        {
            return Ok(Change::default());
        }
        let left = self.take_out(mgid);
        self.groups.insert(
            mgid,
            Group {
                members,
                unit: u32::MAX,
                fixed,
            },
        );
        let mut moved = BTreeMap::new();
        let now = at.or(known);
        self.place(mgid, now);
        if let (Some(known), Some(colour)) = (now, self.colour(mgid))
            && known != colour
        {
            moved.insert(mgid, colour);
        }
        self.put_back(left);
        Ok(self.commit(moved))
    }

    /// A host joins a group, which is created if it does not exist. See [`Self::set`].
    ///
    /// # Errors
    /// A member that is no node of the fabric.
    pub fn join(&mut self, mgid: Mgid, host: NodeId) -> Result<Change, PerSwitchError> {
        let mut members: Vec<NodeId> = self.members(mgid).collect();
        members.push(host);
        let fixed = self.groups.get(&mgid).is_some_and(|group| group.fixed);
        self.set(mgid, &members, None, fixed)
    }

    /// A host leaves a group; with its last member the group goes.
    pub fn leave(&mut self, mgid: Mgid, host: NodeId) -> Change {
        let members: Vec<NodeId> = self.members(mgid).filter(|&node| node != host).collect();
        if members.is_empty() {
            return self.remove(mgid);
        }
        let fixed = self.groups.get(&mgid).is_some_and(|group| group.fixed);
        self.set(mgid, &members, None, fixed).unwrap_or_default()
    }

    /// A group goes.
    pub fn remove(&mut self, mgid: Mgid) -> Change {
        let left = self.take_out(mgid);
        self.groups.remove(&mgid);
        self.put_back(left);
        self.commit(BTreeMap::new())
    }

    /// Links have failed or been repaired. Groups on failed links take another tree; groups that had to leave theirs
    /// return when they can; nothing else moves.
    ///
    /// # Errors
    /// A link state of another fabric.
    pub fn set_links(&mut self, links: LinkState) -> Result<Change, PerSwitchError> {
        check_links(&self.fabric, &links)?;
        let all = (0..).map(LinkId).take(links.link_count());
        let changed: Vec<LinkId> = all
            .filter(|&link| links.is_up(link) != self.links.is_up(link))
            .collect();
        let repaired = changed.iter().any(|&link| links.is_up(link));
        self.links = links;
        if changed.is_empty() {
            return Ok(Change::default());
        }
        let failed: BTreeSet<PortId> = changed
            .iter()
            .filter(|&&link| !self.links.is_up(link))
            .flat_map(|&link| self.fabric.link(link).ports)
            .collect();
        let affected: Vec<u32> = self
            .units
            .iter()
            .filter(|(_, unit)| {
                let tree = &unit.tree;
                (repaired && (tree.displaced || tree.unreached > 0))
                    || (!failed.is_empty()
                        && tree
                            .ports
                            .values()
                            .flatten()
                            .any(|port| failed.contains(port)))
            })
            .map(|(&id, _)| id)
            .collect();
        let mut again = Vec::new();
        for id in affected {
            if let Some(unit) = self.units.get(&id) {
                let (colour, groups) = (unit.colour, unit.groups.clone());
                self.remove_unit(id);
                again.extend(groups.into_iter().map(|mgid| (mgid, colour)));
            }
        }
        again.sort_unstable();
        // Who fits where it was stays there, before anybody who does not looks for another MLID.
        let mut homeless = Vec::new();
        for (mgid, colour) in again {
            let Some(group) = self.groups.get(&mgid) else {
                continue;
            };
            let tree = self.tree_of(mgid, &group.members);
            if self.fits(&tree, colour) {
                let members = group.members.clone();
                self.insert_unit(colour, vec![mgid], members, tree);
            } else {
                homeless.push((mgid, colour));
            }
        }
        let mut moved = BTreeMap::new();
        for (mgid, colour) in homeless {
            self.place(mgid, Some(colour));
            if let Some(now) = self.colour(mgid)
                && now != colour
            {
                moved.insert(mgid, now);
            }
        }
        Ok(self.commit(moved))
    }

    /// Colours all groups anew, the highest root first; groups that are fixed keep their MLID.
    pub fn recolour(&mut self) -> Change {
        let was: BTreeMap<Mgid, Colour> = self
            .groups
            .keys()
            .filter_map(|&mgid| Some((mgid, self.colour(mgid)?)))
            .collect();
        let units: Vec<u32> = self.units.keys().copied().collect();
        for id in units {
            self.remove_unit(id);
        }
        let mut order: Vec<(bool, Reverse<u8>, Mgid)> = self
            .groups
            .iter()
            .map(|(&mgid, group)| {
                let height = self.tree_of(mgid, &group.members).height;
                (!group.fixed, Reverse(height), mgid)
            })
            .collect();
        order.sort_unstable();
        for (free, _, mgid) in order {
            let at = was.get(&mgid).copied().filter(|_| !free);
            self.place(mgid, at);
        }
        let moved = was
            .into_iter()
            .filter_map(|(mgid, colour)| {
                let now = self.colour(mgid)?;
                (now != colour).then_some((mgid, now))
            })
            .collect();
        self.commit(moved)
    }

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
        measures.mlids = colours.len();
        measures.most_groups_on_a_switch = own.into_iter().max().unwrap_or(0);
        measures.most_entries_of_a_switch = entries.into_iter().max().unwrap_or(0);
        measures
    }

    /// Takes a group off its tree. The other groups of that tree come back with [`Self::put_back`], so that those
    /// that no longer meet are parted.
    fn take_out(&mut self, mgid: Mgid) -> Vec<(Mgid, Colour)> {
        let Some(id) = self.groups.get(&mgid).map(|group| group.unit) else {
            return Vec::new();
        };
        let Some(unit) = self.units.get(&id) else {
            return Vec::new();
        };
        let (colour, groups) = (unit.colour, unit.groups.clone());
        self.remove_unit(id);
        let others = groups.into_iter().filter(|&other| other != mgid);
        others.map(|other| (other, colour)).collect()
    }

    fn put_back(&mut self, groups: Vec<(Mgid, Colour)>) {
        for (mgid, colour) in groups {
            // The group that left may have merged with some of them again on its way.
            if self
                .groups
                .get(&mgid)
                .is_some_and(|group| !self.units.contains_key(&group.unit))
            {
                self.merge_into(colour, mgid);
            }
        }
    }

    /// Finds an MLID for a group that has none: its own, the first that fits, the one where merging costs least.
    fn place(&mut self, mgid: Mgid, at: Option<Colour>) {
        let Some(group) = self.groups.get(&mgid) else {
            return;
        };
        let keep = at.filter(|_| group.fixed || self.growth == Growth::Keep);
        if let Some(colour) = keep {
            self.merge_into(colour, mgid);
            return;
        }
        let tree = self.tree_of(mgid, &group.members);
        let colour = at
            .filter(|&colour| self.fits(&tree, colour))
            .or_else(|| self.first_that_fits(&tree));
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

    fn fits(&self, tree: &GroupTree, colour: Colour) -> bool {
        let (word, bit) = (colour.0 as usize / 64, 1u64 << (colour.0 % 64));
        tree.ports
            .keys()
            .all(|node| self.used[node.index() * self.words + word] & bit == 0)
    }

    fn first_that_fits(&self, tree: &GroupTree) -> Option<Colour> {
        (0..self.words).find_map(|word| {
            let taken = tree.ports.keys().fold(0, |taken, node| {
                taken | self.used[node.index() * self.words + word]
            });
            let colour = (word * 64) as u32 + (!taken).trailing_zeros();
            (taken != u64::MAX && colour < self.mlids).then_some(Colour(colour as u16))
        })
    }

    /// The MLID where merging adds the fewest foreign deliveries; `at` where it is one of them.
    fn cheapest(&self, mgid: Mgid, at: Option<Colour>) -> Colour {
        let mut best: Option<(u64, bool, Colour)> = None;
        for colour in (0..self.mlids).map(|colour| Colour(colour as u16)) {
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

    fn merge_into(&mut self, colour: Colour, mgid: Mgid) {
        let joined = self.closure(colour, mgid);
        for id in joined.units {
            self.remove_unit(id);
        }
        self.insert_unit(colour, joined.groups, joined.members, joined.tree);
    }

    /// What a group becomes in an MLID: itself with all that its tree meets, and what their common tree meets, until it
    /// meets nothing (Algorithm 2, as a fixpoint). The tree is that of the lowest MGID.
    fn closure(&self, colour: Colour, mgid: Mgid) -> Joined {
        let mut members = self.groups[&mgid].members.clone();
        let mut groups = vec![mgid];
        let mut units = BTreeSet::new();
        loop {
            let first = groups.iter().min().copied().unwrap_or(mgid);
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

    fn insert_unit(
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

    fn remove_unit(&mut self, id: u32) {
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

    fn commit(&mut self, moved: BTreeMap<Mgid, Colour>) -> Change {
        let before = std::mem::take(&mut self.before);
        let entries = before
            .into_iter()
            .filter(|((switch, colour), ports)| self.entry(*switch, *colour) != ports.as_slice())
            .map(|((switch, colour), _)| Entry {
                switch,
                colour,
                ports: self.entry(switch, colour).to_vec(),
            })
            .collect();
        Change {
            entries,
            moved: moved.into_iter().collect(),
        }
    }

    /// The tree of a group with these members (Algorithm 1), over links that are up.
    fn tree_of(&self, mgid: Mgid, members: &BTreeSet<NodeId>) -> GroupTree {
        Build::new(self, members).run(mgid)
    }
}

struct Joined {
    groups: Vec<Mgid>,
    members: BTreeSet<NodeId>,
    units: BTreeSet<u32>,
    tree: GroupTree,
}

fn check_links(fabric: &Fabric, links: &LinkState) -> Result<(), PerSwitchError> {
    if links.link_count() == fabric.links().len() {
        return Ok(());
    }
    Err(PerSwitchError::ForeignLinkState {
        state: links.link_count(),
        fabric: fabric.links().len(),
    })
}

/// Building one tree.
struct Build<'a> {
    engine: &'a PerSwitch,
    /// Ports to members at each L0 switch.
    leaves: Ports,
    /// Coordinates (CN, number in it) of those switches.
    places: Vec<(u32, NodeId)>,
    unreached: usize,
}

impl<'a> Build<'a> {
    fn new(engine: &'a PerSwitch, members: &BTreeSet<NodeId>) -> Self {
        let mut leaves = Ports::new();
        let mut unreached = 0;
        for &host in members {
            if engine.fabric.kind(host) == NodeKind::Switch {
                leaves.entry(host).or_default();
                continue;
            }
            let up = engine
                .fabric
                .ports_of(host)
                .iter()
                .find(|port| engine.links.is_up(port.link));
            match up {
                Some(port) => {
                    let switch = engine.fabric.port(port.peer).node;
                    leaves.entry(switch).or_default().push(port.peer);
                }
                None => unreached += 1,
            }
        }
        let mut places = Vec::with_capacity(leaves.len());
        for (&switch, ports) in &mut leaves {
            ports.sort_unstable();
            let cn = match engine.map.role(switch) {
                Role::L0 { cn, .. } => cn,
                _ => u32::MAX,
            };
            places.push((cn, switch));
        }
        places.sort_unstable();
        Self {
            engine,
            leaves,
            places,
            unreached,
        }
    }

    fn run(self, mgid: Mgid) -> GroupTree {
        let shape = self.engine.map.shape();
        let strange = self.places.iter().any(|&(cn, _)| cn == u32::MAX);
        let one_cn = self.places.windows(2).all(|pair| pair[0].0 == pair[1].0);
        let w = shape.w.max(1);
        let one_block = self
            .places
            .windows(2)
            .all(|pair| pair[0].0 / w == pair[1].0 / w);
        if self.places.len() <= 1 {
            return self.finish(Ports::new(), 1, 0);
        }
        // Equation (3): the tree, its TN group and the TN in it.
        let trees = u64::from(self.engine.mlids) * u64::from(shape.m);
        let tree = mgid.0 % trees;
        let (turn, home) = (tree / u64::from(shape.m), tree % u64::from(shape.m));
        let mut attempt = 0usize;
        for step in (0..shape.m).filter(|_| !strange) {
            let g = ((home + u64::from(step)) % u64::from(shape.m)) as u32;
            if one_cn {
                if let Some(ports) = self.in_cn(g) {
                    return self.finish(ports, 2, attempt);
                }
                attempt += 1;
                continue;
            }
            for within in 0..shape.p {
                let tn = g * shape.p + ((turn + u64::from(within)) % u64::from(shape.p)) as u32;
                let roots = if one_block { 1 } else { shape.w };
                for j in 0..roots {
                    if let Some(ports) = self.in_tn(g, tn, (!one_block).then_some(j)) {
                        return self.finish(ports, if one_block { 3 } else { 4 }, attempt);
                    }
                    attempt += 1;
                }
            }
        }
        self.by_search()
    }

    /// The tree rooted in L1 switch `g` of the only CN.
    fn in_cn(&self, g: u32) -> Option<Ports> {
        let mut ports = Ports::new();
        for &(cn, l0) in &self.places {
            self.join(&mut ports, l0, self.engine.map.l1(cn, g)?)?;
        }
        Some(ports)
    }

    /// The tree in a TN: rooted in its L2 switch where all CNs hang on one, else in its L3 switch `l3`.
    fn in_tn(&self, g: u32, tn: u32, l3: Option<u32>) -> Option<Ports> {
        let map = &self.engine.map;
        let w = map.shape().w.max(1);
        let mut ports = Ports::new();
        let (mut last_cn, mut last_block) = (None, None);
        for &(cn, l0) in &self.places {
            let l1 = map.l1(cn, g)?;
            self.join(&mut ports, l0, l1)?;
            if last_cn.replace(cn) == Some(cn) {
                continue;
            }
            let l2 = map.l2(tn, cn / w)?;
            self.join(&mut ports, l1, l2)?;
            let Some(j) = l3 else { continue };
            if last_block.replace(cn / w) != Some(cn / w) {
                self.join(&mut ports, l2, map.l3(tn, j)?)?;
            }
        }
        Some(ports)
    }

    /// Adds the link between two switches at both ends; `None` where it is missing or down.
    fn join(&self, ports: &mut Ports, below: NodeId, above: NodeId) -> Option<()> {
        let fabric = &self.engine.fabric;
        let up = self.engine.map.port_between(below, above)?;
        let port = fabric.port(up);
        if !self.engine.links.is_up(port.link) {
            return None;
        }
        ports.entry(below).or_default().push(up);
        ports.entry(above).or_default().push(port.peer);
        Some(())
    }

    fn finish(self, mut ports: Ports, height: u8, attempt: usize) -> GroupTree {
        for (switch, leaves) in self.leaves {
            ports.entry(switch).or_default().extend(leaves);
        }
        for list in ports.values_mut() {
            list.sort_unstable();
        }
        GroupTree {
            height,
            ports,
            unreached: self.unreached,
            displaced: attempt > 0,
        }
    }

    /// Where no regular tree is whole: shortest ways from the first member's switch, whatever they are. Members that
    /// are cut off from it have such a tree among themselves.
    fn by_search(mut self) -> GroupTree {
        let fabric = &self.engine.fabric;
        let mut towards: BTreeMap<NodeId, PortId> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut ports = Ports::new();
        let mut roots = 0;
        let places = std::mem::take(&mut self.places);
        // Which search has found each of our switches.
        let mut island = BTreeMap::new();
        for &(_, l0) in &places {
            if seen.insert(l0) {
                roots += 1;
                let mut queue = vec![l0];
                let mut head = 0;
                while let Some(&node) = queue.get(head) {
                    head += 1;
                    island.insert(node, roots);
                    for port in fabric.ports_of(node) {
                        let peer = fabric.port(port.peer).node;
                        if fabric.kind(peer) == NodeKind::Switch
                            && self.engine.links.is_up(port.link)
                            && seen.insert(peer)
                        {
                            towards.insert(peer, port.peer);
                            queue.push(peer);
                        }
                    }
                }
            }
            if island.get(&l0) != Some(&1) {
                self.unreached += self.leaves.get(&l0).map_or(0, Vec::len);
            }
            let mut node = l0;
            while let Some(&up) = towards.get(&node) {
                let list = ports.entry(node).or_default();
                if list.contains(&up) {
                    break;
                }
                list.push(up);
                let down = fabric.port(up).peer;
                node = fabric.port(down).node;
                ports.entry(node).or_default().push(down);
            }
        }
        self.finish(ports, 4, 1)
    }
}
