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
//! With [`PerSwitch::with_pairs`] the groups whose MGIDs say so ([`Mgid::copy`]) are halves of fault-tolerant pairs. The
//! first copy of a pair keeps to the first m div 2 tree groups and the second one to the others, whatever fails, so that
//! the two trees share no link between switches (equation (4), and its rule kept for the trees that stand in). First
//! copies have even MLIDs and second ones odd ones, so that no merge joins the two halves.
//!
//! The tree of a group depends on its MGID, its members and the links that are up, on nothing else. When a link fails,
//! only the groups on it take the next tree (of the same TN, then of the next TN, then of the next TN group of their
//! half); when it is repaired, those return.
//!
//! - here: [`PerSwitch`] and what callers change; `tree`: the tree of a group; `units`: its MLID, and merging;
//!   `halves`: what each copy of a pair may use.
//! - `measures`: [`PerSwitchMeasures`]; `error`: [`PerSwitchError`].

mod error;
mod halves;
mod measures;
mod tree;
mod units;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use raddle_fabric::{CnTnMap, Fabric};
use raddle_units::{LinkId, NodeId, PortId};

use self::units::Unit;
pub use self::{
    error::{MAX_MLIDS, PerSwitchError},
    measures::PerSwitchMeasures,
};
use super::{
    Colour, Mgid,
    mgid::{MgidError, SpanningTrees},
};
use raddle_unicast::LinkState;

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

#[derive(Clone, Debug)]
struct Group {
    members: BTreeSet<NodeId>,
    unit: u32,
    /// Keeps its MLID whatever happens.
    fixed: bool,
}

/// All groups of a fabric, their trees and MLIDs. Everything is deterministic: the same calls give the same tables.
#[derive(Clone, Debug)]
pub struct PerSwitch {
    fabric: Fabric,
    map: CnTnMap,
    links: LinkState,
    mlids: u32,
    growth: Growth,
    /// Equation (3), for ordinary groups.
    trees: SpanningTrees,
    /// Equation (4), for pairs; `None`: all groups are ordinary ones.
    pairs: Option<SpanningTrees>,
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
        let shape = map.shape();
        Ok(Self {
            trees: SpanningTrees::new(mlids, shape.m, shape.p, false)?,
            pairs: None,
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

    /// The same engine with fault-tolerant pairs: groups whose MGIDs mark them as halves of one ([`Mgid::copy`]) get
    /// trees that share no link between switches. To be called while there are no groups.
    ///
    /// # Errors
    /// One L1 switch in each CN (m = 1) or one MLID: there is no second tree.
    pub fn with_pairs(mut self) -> Result<Self, PerSwitchError> {
        let shape = self.map.shape();
        if self.mlids < 2 {
            return Err(PerSwitchError::OneMlid);
        }
        if shape.m < 2 {
            return Err(PerSwitchError::Trees(MgidError::NoPairs));
        }
        self.pairs = Some(SpanningTrees::new(self.mlids, shape.m, shape.p, true)?);
        Ok(self)
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
            if self.may_use(mgid, colour) && self.fits(&tree, colour) {
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
