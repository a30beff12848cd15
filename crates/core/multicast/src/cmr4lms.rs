//! C-MR4LMS: the MGID names a spanning tree of the fat tree, and only groups of one spanning tree are ever merged.
//!
//! One colour carries m link-disjoint spanning trees (Theorem 1): one for each L1 switch of the CNs, rooted in one of
//! the p TNs above it. Equations (1) to (3) map an MGID to colour and tree, equation (4) to a fault-tolerant pair of
//! trees. A group's tree is the part of its spanning tree up to the nearest common ancestor of its members
//! (Algorithm 1). Groups of one spanning tree that share a link are merged (Algorithms 2 and 3).
//!
//! With [`RootChoice::Fixed`] the root, where it is an L3 switch, is the first of the TN. What is routed then depends
//! on the groups that are there and the links that failed, never on the order of events. With [`RootChoice::Dynamic`]
//! groups that would share only links to L3 switches take different ones as long as there are free ones.
//!
//! Ours, beyond the paper:
//! - *Hosts whose groups have one colour and different trees* break the precondition of Theorem 2. Such groups are tied
//!   together (through any number of hosts) and all take the tree of the lowest MGID; [`CMr4lms::terminal_conflicts`]
//!   names them.
//! - *Leaving and splitting.* A merged group falls apart when its parts no longer share a link.
//! - *Failed and missing links.* A group whose own tree crosses one takes the first tree of its colour that does not,
//!   in an order that its MGID decides; then other colours; then the tree that cuts off the fewest members. A pair
//!   stays while one of its trees is whole. Nobody else moves, and a repair brings the groups back.
//!
//! Source: Chen et al., C-MR4LMS (JCRD, 10.7544/issn1000-1239.20210582), section 2.

mod clusters;
mod components;
mod link_use;
mod roots;
mod wiring;

use std::sync::Arc;

use raddle_fabric::{CnTnMap, Fabric};
use raddle_units::{LinkId, NodeId};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use clusters::{Merge, TerminalConflict};

use self::{
    components::Components,
    link_use::{LinkUse, Planes},
    wiring::{NONE, Plane, Wiring},
};
use super::{
    Changes, Colour, Group, Mgid, MulticastEngine, MulticastError, PortSet, TableMode, Tree,
};

/// The most colours: entries of an InfiniBand multicast table.
pub const MAX_COLOURS: u32 = 16_384;

/// Which L3 switch of its TN a tree is rooted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RootChoice {
    /// The first (section 2.3).
    #[default]
    Fixed,
    /// One whose links are free, the least loaded first (section 2.6).
    Dynamic,
}

/// Settings of [`CMr4lms`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CMr4lmsSettings {
    /// Number of colours, 1 to [`MAX_COLOURS`].
    pub colours: u32,
    /// How roots are chosen.
    pub roots: RootChoice,
    /// Two link-disjoint trees for every group (section 2.5).
    pub fault_tolerant: bool,
}

/// A spanning tree (a pair with fault tolerance) by name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SpanningTreeName {
    /// Its colour.
    pub colour: Colour,
    /// Which L1 switch of every CN it uses.
    pub l1: u32,
    /// The TN it is rooted in; `None` in a fabric of a single CN.
    pub tn: Option<u32>,
    /// L1 switch and TN of the second tree of a pair.
    pub second: Option<(u32, Option<u32>)>,
}

/// Equations (1) to (4): which spanning trees there are.
#[derive(Clone, Copy, Debug)]
struct Numbering {
    colours: u32,
    /// Spanning trees (or pairs) of one colour: m, or m div 2.
    per_colour: u32,
    p: u32,
    fault_tolerant: bool,
}

impl Numbering {
    fn trees(&self) -> usize {
        self.colours as usize * self.per_colour as usize
    }

    /// Equation (2).
    fn own_tree(&self, mgid: Mgid) -> u32 {
        (mgid.0 % self.trees() as u64) as u32
    }

    /// The trees of one colour in the order in which a group tries them. Groups of one tree are spread over the
    /// others.
    fn order(self, mgid: Mgid, colour: u16) -> impl Iterator<Item = u32> {
        let n = self.per_colour;
        let own = self.own_tree(mgid) % n;
        let others = n.saturating_sub(1);
        let turn = (mgid.0 / self.trees() as u64)
            .checked_rem(others.into())
            .unwrap_or(0);
        let others = (0..others).map(move |x| {
            let step = 1 + (turn + u64::from(x)) % u64::from(n - 1);
            ((u64::from(own) + step) % u64::from(n)) as u32
        });
        std::iter::once(own)
            .chain(others)
            .map(move |g| u32::from(colour) * n + g)
    }
}

impl Planes for Numbering {
    fn colour(&self, tree: u32) -> Colour {
        Colour((tree / self.per_colour) as u16)
    }

    /// Equations (1) and (4).
    fn planes(&self, tree: u32) -> ([Plane; 2], usize) {
        let (colour, g) = (tree / self.per_colour, tree % self.per_colour);
        let plane = |g| Plane {
            g,
            uplink: colour.checked_rem(self.p).unwrap_or(0),
        };
        let second = if self.fault_tolerant {
            g + self.per_colour
        } else {
            g
        };
        (
            [plane(g), plane(second)],
            1 + usize::from(self.fault_tolerant),
        )
    }
}

#[derive(Clone, Debug)]
struct State {
    mgid: Mgid,
    /// Places of the members, ascending.
    terminals: Vec<u32>,
    /// With dynamic roots and several CNs: the CNs, a bit each, and the L2 switches.
    cns: Vec<u64>,
    top: PortSet,
    height: u8,
    /// The L3 switch of the root, where it is one.
    j: u16,
    /// The colour: that of its own tree unless failures drove it away.
    colour: u16,
    /// The spanning tree it is booked on; [`NONE`]: not yet.
    tree: u32,
    /// Its index among the groups of the tree.
    in_tree: u32,
}

/// The engine. One value is C-MR4LMS-fixed or C-MR4LMS-dynamic, with fault tolerance or without, by its settings.
#[derive(Clone, Debug)]
pub struct CMr4lms {
    fabric: Arc<Fabric>,
    map: Arc<CnTnMap>,
    settings: CMr4lmsSettings,
    numbering: Numbering,
    wiring: Wiring,
    link_use: LinkUse,
    components: Components,
    groups: Vec<State>,
    free: Vec<u32>,
    by_mgid: FxHashMap<Mgid, u32>,
    /// Groups rooted at each L3 switch, by `tn * w + j`.
    loads: Vec<u32>,
    /// Trees on which groups might now be kept apart (dynamic roots).
    dirty: Vec<u32>,
    /// Where groups were before the operation: group, tree, L3 switch.
    left: Vec<(u32, u32, u16)>,
    scratch: roots::Scratch,
}

impl CMr4lms {
    /// An engine without groups for a fat tree.
    ///
    /// # Errors
    /// A fabric that is no CN/TN fat tree, or a switch of more than 255 ports; 0 colours or more than [`MAX_COLOURS`];
    /// fault tolerance with m = 1.
    pub fn new(fabric: Arc<Fabric>, settings: CMr4lmsSettings) -> Result<Self, MulticastError> {
        let map = CnTnMap::recognise(&fabric).map_err(MulticastError::NotCnTn)?;
        Self::with_map(fabric, Arc::new(map), settings)
    }

    /// The same where the map was made before.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_map(
        fabric: Arc<Fabric>,
        map: Arc<CnTnMap>,
        settings: CMr4lmsSettings,
    ) -> Result<Self, MulticastError> {
        let shape = map.shape();
        if settings.colours == 0 || settings.colours > MAX_COLOURS {
            return Err(MulticastError::BadColours {
                colours: settings.colours,
                limit: MAX_COLOURS,
            });
        }
        if settings.fault_tolerant && shape.m < 2 {
            return Err(MulticastError::NoSecondTree { m: shape.m });
        }
        let per_colour = if settings.fault_tolerant {
            shape.m / 2
        } else {
            shape.m
        };
        let wiring = Wiring::new(&fabric, &map)?;
        let numbering = Numbering {
            colours: settings.colours,
            per_colour,
            p: shape.p,
            fault_tolerant: settings.fault_tolerant,
        };
        Ok(Self {
            link_use: LinkUse::new(numbering.trees(), &wiring),
            components: Components::new(wiring.terminals()),
            groups: Vec::new(),
            free: Vec::new(),
            by_mgid: FxHashMap::default(),
            loads: vec![0; (shape.tns() * shape.w) as usize],
            dirty: Vec::new(),
            left: Vec::new(),
            scratch: roots::Scratch::default(),
            fabric,
            map,
            settings,
            numbering,
            wiring,
        })
    }

    /// The settings it was made with.
    pub fn settings(&self) -> CMr4lmsSettings {
        self.settings
    }

    /// The fabric it was made for.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Number of spanning trees (pairs with fault tolerance): C*m, or C * (m div 2).
    pub fn spanning_trees(&self) -> usize {
        self.numbering.trees()
    }

    /// The spanning tree that equation (3) or (4) gives an MGID.
    pub fn own_spanning_tree(&self, mgid: Mgid) -> SpanningTreeName {
        self.name_of(self.numbering.own_tree(mgid))
    }

    /// The spanning tree that a group uses: its own one unless failures or merging drove it away. `None` for a group
    /// that is not there.
    pub fn spanning_tree_of(&self, mgid: Mgid) -> Option<SpanningTreeName> {
        let &group = self.by_mgid.get(&mgid)?;
        Some(self.name_of(self.groups[group as usize].tree))
    }

    /// Spanning trees on which a link failed or is missing, ascending. Only groups that cross the link leave them.
    pub fn damaged_trees(&self) -> Vec<SpanningTreeName> {
        let trees = 0..self.numbering.trees() as u32;
        trees
            .filter(|tree| {
                let (planes, count) = self.numbering.planes(*tree);
                !planes[..count]
                    .iter()
                    .all(|plane| self.wiring.plane_is_whole(*plane))
            })
            .map(|tree| self.name_of(tree))
            .collect()
    }

    fn name_of(&self, tree: u32) -> SpanningTreeName {
        let (planes, count) = self.numbering.planes(tree);
        let tn = |plane: Plane| (self.numbering.p > 0).then(|| self.wiring.tn(plane));
        SpanningTreeName {
            colour: self.numbering.colour(tree),
            l1: planes[0].g,
            tn: tn(planes[0]),
            second: (count > 1).then(|| (planes[1].g, tn(planes[1]))),
        }
    }

    fn terminals_of(&self, group: &Group) -> Result<Vec<u32>, MulticastError> {
        group.check(&self.fabric)?;
        let terminals = group.members.iter().map(|&node| {
            self.wiring
                .terminal(node)
                .ok_or(MulticastError::NotAttached {
                    mgid: group.mgid,
                    node,
                })
        });
        let mut terminals = terminals.collect::<Result<Vec<_>, _>>()?;
        if !terminals.is_sorted() {
            terminals.sort_unstable();
        }
        Ok(terminals)
    }

    fn add_state(&mut self, mgid: Mgid, terminals: Vec<u32>) -> u32 {
        let (cns, top) = self.footprint(&terminals);
        let state = State {
            mgid,
            cns,
            top,
            height: self.wiring.height(&terminals),
            j: 0,
            colour: self.colour_for(mgid, &terminals),
            tree: NONE,
            in_tree: 0,
            terminals,
        };
        let group = match self.free.pop() {
            Some(group) => {
                self.groups[group as usize] = state;
                group
            }
            None => {
                self.groups.push(state);
                (self.groups.len() - 1) as u32
            }
        };
        self.by_mgid.insert(mgid, group);
        group
    }

    /// The CNs and L2 switches of these places, where somebody will ask.
    fn footprint(&self, terminals: &[u32]) -> (Vec<u64>, PortSet) {
        let mut top = PortSet::EMPTY;
        if self.settings.roots == RootChoice::Fixed || self.wiring.height(terminals) < 2 {
            return (Vec::new(), top);
        }
        let mut cns = vec![0; (self.wiring.cns as usize).div_ceil(64)];
        let mut end = 0;
        for &terminal in terminals {
            if terminal >= end {
                let cn = terminal / self.wiring.t / self.wiring.q;
                end = (cn + 1) * self.wiring.q * self.wiring.t;
                cns[cn as usize / 64] |= 1 << (cn % 64);
                top.insert(self.wiring.l2_index(cn) as u8);
            }
        }
        (cns, top)
    }

    /// The colour of a group: its own, unless no tree of it is whole and one of another colour is.
    fn colour_for(&self, mgid: Mgid, terminals: &[u32]) -> u16 {
        let own = self.numbering.colour(self.numbering.own_tree(mgid)).0;
        if self.wiring.is_whole() || self.wiring.has_no_way_up(terminals) {
            return own;
        }
        let colours = self.numbering.colours;
        (0..colours)
            .map(|x| ((u32::from(own) + x) % colours) as u16)
            .find(|&colour| {
                self.numbering
                    .order(mgid, colour)
                    .any(|tree| self.cut(terminals, tree) == 0)
            })
            .unwrap_or(own)
    }

    /// How many members a tree cuts off. A pair counts as its better tree.
    fn cut(&self, terminals: &[u32], tree: u32) -> usize {
        let (planes, count) = self.numbering.planes(tree);
        let planes = planes[..count].iter();
        planes
            .map(|&plane| self.cut_of_plane(terminals, plane))
            .min()
            .unwrap_or(0)
    }

    fn cut_of_plane(&self, terminals: &[u32], plane: Plane) -> usize {
        if self.wiring.plane_is_whole(plane) {
            return 0;
        }
        let height = self.wiring.height(terminals);
        let broken = |j| {
            let terminals = terminals.iter();
            terminals
                .filter(|terminal| self.wiring.is_broken(**terminal, height, plane, j))
                .count()
        };
        let choices = match self.settings.roots {
            RootChoice::Dynamic if height == 3 => self.wiring.w as u16,
            _ => 1,
        };
        (0..choices).map(broken).min().unwrap_or(0)
    }

    /// The tree for groups that are tied together: the first in the order of the lowest MGID that cuts off the
    /// fewest.
    fn choose(&self, lowest: u32, groups: &[u32]) -> u32 {
        let state = &self.groups[lowest as usize];
        let mut order = self.numbering.order(state.mgid, state.colour);
        let first = order.next().unwrap_or(0);
        if self.wiring.is_whole() {
            return first;
        }
        let cost = |tree| -> usize {
            let groups = groups.iter();
            groups
                .map(|group| self.cut(&self.groups[*group as usize].terminals, tree))
                .sum()
        };
        let mut best = (cost(first), first);
        for tree in order {
            if best.0 == 0 {
                break;
            }
            let cost = cost(tree);
            if cost < best.0 {
                best = (cost, tree);
            }
        }
        best.1
    }

    /// Takes a group off its tree.
    fn unbook(&mut self, group: u32) {
        let state = &self.groups[group as usize];
        let (tree, j, height, in_tree) = (state.tree, state.j, state.height, state.in_tree);
        if tree == NONE {
            return;
        }
        self.link_use
            .book(&self.wiring, tree, group, &state.terminals, j, false);
        if let Some(of) = self.link_use.tree_mut(tree) {
            of.groups.swap_remove(in_tree as usize);
            if let Some(&other) = of.groups.get(in_tree as usize) {
                self.groups[other as usize].in_tree = in_tree;
            }
        }
        if height == 3 {
            *self.load(tree, j) -= 1;
        }
        if height >= 2 && self.settings.roots == RootChoice::Dynamic {
            self.dirty.push(tree);
        }
        self.left.push((group, tree, j));
        self.groups[group as usize].tree = NONE;
    }

    /// Puts a group on a tree with this L3 switch.
    fn book(&mut self, group: u32, tree: u32, j: u16) {
        let state = &mut self.groups[group as usize];
        state.tree = tree;
        state.j = j;
        self.link_use
            .book(&self.wiring, tree, group, &state.terminals, j, true);
        if let Some(of) = self.link_use.tree_mut(tree) {
            state.in_tree = of.groups.len() as u32;
            of.groups.push(group);
        }
        if state.height == 3 {
            *self.load(tree, j) += 1;
        }
    }

    fn load(&mut self, tree: u32, j: u16) -> &mut u32 {
        let (planes, _) = self.numbering.planes(tree);
        let at = self.wiring.tn(planes[0]) * self.wiring.w + u32::from(j);
        &mut self.loads[at as usize]
    }

    /// Finds the tree for groups that are tied together and moves those that are elsewhere.
    fn settle(&mut self, component: u32, member: u32) {
        let tree = match self.components.component(component) {
            Some(component) => self.choose(component.lowest, &component.groups),
            None => self.choose(member, &[member]),
        };
        let mut movers = match self.components.component(component) {
            Some(component) => {
                // Those that were there when it got this tree have it.
                let some = if component.tree == tree {
                    &component.fresh
                } else {
                    &component.groups
                };
                let groups = some.iter().copied();
                groups
                    .filter(|group| self.groups[*group as usize].tree != tree)
                    .collect()
            }
            None if self.groups[member as usize].tree != tree => vec![member],
            None => Vec::new(),
        };
        self.components.settled(component, tree);
        self.relocate(&mut movers, tree);
    }

    fn relocate(&mut self, movers: &mut [u32], tree: u32) {
        movers.sort_unstable_by_key(|group| self.groups[*group as usize].mgid);
        for &group in &*movers {
            self.unbook(group);
        }
        for &group in &*movers {
            self.place(group, tree);
        }
    }

    fn place(&mut self, group: u32, tree: u32) {
        match self.settings.roots {
            RootChoice::Fixed => self.book(group, tree, 0),
            RootChoice::Dynamic => self.place_dynamic(group, tree),
        }
    }

    /// A group that is known becomes part of what is routed.
    fn enter(&mut self, group: u32) {
        let state = &self.groups[group as usize];
        // Most groups get their own tree: memory answers while the components are looked at.
        let own = self.numbering.own_tree(state.mgid);
        self.link_use.prefetch(&self.wiring, own, &state.terminals);
        let groups = &self.groups;
        let component = self
            .components
            .add(group, state.colour, &state.terminals, |group| {
                groups[group as usize].mgid
            });
        self.settle(component, group);
    }

    /// A group stops being part of what is routed.
    fn exit(&mut self, group: u32) {
        let state = &self.groups[group as usize];
        if state.tree != NONE {
            self.link_use
                .prefetch(&self.wiring, state.tree, &state.terminals);
        }
        self.components.prefetch(&state.terminals);
        self.unbook(group);
        let groups = &self.groups;
        let state = &groups[group as usize];
        let parts = self.components.remove(
            group,
            state.colour,
            &state.terminals,
            |group| groups[group as usize].mgid,
            |group| &groups[group as usize].terminals,
        );
        for (component, member) in parts {
            self.settle(component, member);
        }
    }

    fn begin(&mut self) {
        self.link_use.begin();
        self.left.clear();
        self.dirty.clear();
    }

    /// Ends an operation. `skip` is the group that it was about.
    fn finish(&mut self, skip: Option<Mgid>) -> Changes {
        self.separate_dirty();
        let branches = self.link_use.finish(&self.wiring, &self.numbering);
        // The first time that a group left a place tells where it was before.
        self.left.sort_by_key(|left| left.0);
        self.left.dedup_by_key(|left| left.0);
        let moved = self.left.iter().filter_map(|&(group, tree, j)| {
            let state = &self.groups[group as usize];
            let elsewhere = state.tree != tree || state.j != j;
            (elsewhere && state.tree != NONE && Some(state.mgid) != skip).then_some(state.mgid)
        });
        let mut moved: Vec<_> = moved.collect();
        moved.sort_unstable();
        Changes { branches, moved }
    }

    fn index_of(&self, mgid: Mgid) -> Result<u32, MulticastError> {
        let index = self.by_mgid.get(&mgid).copied();
        index.ok_or(MulticastError::UnknownMgid { mgid })
    }

    fn set_link(&mut self, link: LinkId, failed: bool) -> Result<Changes, MulticastError> {
        let news = self
            .wiring
            .set_failed(&self.fabric, &self.map, link, failed)?;
        if !news {
            return Ok(Changes::default());
        }
        self.begin();
        self.reassess();
        Ok(self.finish(None))
    }

    /// Every group finds its tree again.
    fn reassess(&mut self) {
        let alive: Vec<u32> = self.in_order();
        for &group in &alive {
            let state = &self.groups[group as usize];
            let colour = self.colour_for(state.mgid, &state.terminals);
            if colour != state.colour {
                self.exit(group);
                self.groups[group as usize].colour = colour;
                self.enter(group);
            }
        }
        for &group in &alive {
            let component = self.components.component_of(group);
            if self
                .components
                .component(component)
                .is_none_or(|component| component.lowest == group)
            {
                self.settle(component, group);
            }
        }
        if self.settings.roots == RootChoice::Dynamic {
            self.leave_dead_roots();
        }
    }

    /// The groups by ascending MGID.
    fn in_order(&self) -> Vec<u32> {
        let mut alive: Vec<(Mgid, u32)> = Vec::with_capacity(self.by_mgid.len());
        for tree in 0..self.numbering.trees() as u32 {
            let groups = self
                .link_use
                .tree(tree)
                .map_or(&[][..], |tree| &tree.groups);
            alive.extend(groups.iter().map(|g| (self.groups[*g as usize].mgid, *g)));
        }
        alive.sort_unstable();
        alive.into_iter().map(|(_, group)| group).collect()
    }
}

impl MulticastEngine for CMr4lms {
    fn name(&self) -> &'static str {
        match self.settings.roots {
            RootChoice::Fixed => "c-mr4lms-fixed",
            RootChoice::Dynamic => "c-mr4lms-dynamic",
        }
    }

    fn table_mode(&self) -> TableMode {
        TableMode::PerPort
    }

    fn colours(&self) -> u32 {
        self.settings.colours
    }

    fn route(&mut self, groups: &[Group]) -> Result<Changes, MulticastError> {
        let mut sorted = Vec::with_capacity(groups.len());
        for group in groups {
            sorted.push((group.mgid, self.terminals_of(group)?));
        }
        sorted.sort_unstable_by_key(|(mgid, _)| *mgid);
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(MulticastError::DuplicateMgid { mgid: pair[0].0 });
        }
        let empty = LinkUse::new(self.numbering.trees(), &self.wiring);
        let before = std::mem::replace(&mut self.link_use, empty);
        let old_groups = std::mem::take(&mut self.groups);
        let old_names = std::mem::take(&mut self.by_mgid);
        self.free.clear();
        self.loads.fill(0);
        self.components = Components::new(self.wiring.terminals());
        self.by_mgid.reserve(sorted.len());
        for (mgid, terminals) in sorted {
            let group = self.add_state(mgid, terminals);
            let (groups, state) = (&self.groups, &self.groups[group as usize]);
            self.components
                .add(group, state.colour, &state.terminals, |group| {
                    groups[group as usize].mgid
                });
        }
        self.dirty.clear();
        for group in 0..self.groups.len() as u32 {
            let component = self.components.component_of(group);
            let tree = match self.components.component(component) {
                // Its lowest group, with the lowest index, was placed before.
                Some(component) if component.lowest != group => {
                    self.groups[component.lowest as usize].tree
                }
                Some(component) => self.choose(group, &component.groups),
                None => self.choose(group, &[group]),
            };
            self.components.settled(component, tree);
            self.place(group, tree);
        }
        self.separate_dirty();
        self.left.clear();
        let mut moved = Vec::new();
        for state in &self.groups {
            if let Some(&old) = old_names.get(&state.mgid) {
                let old = &old_groups[old as usize];
                if (old.tree, old.j) != (state.tree, state.j) {
                    moved.push(state.mgid);
                }
            }
        }
        Ok(Changes {
            branches: self.link_use.since(&before, &self.wiring, &self.numbering),
            moved,
        })
    }

    fn join(&mut self, group: &Group) -> Result<Changes, MulticastError> {
        let terminals = self.terminals_of(group)?;
        if self.by_mgid.contains_key(&group.mgid) {
            return Err(MulticastError::DuplicateMgid { mgid: group.mgid });
        }
        self.begin();
        let index = self.add_state(group.mgid, terminals);
        self.enter(index);
        Ok(self.finish(Some(group.mgid)))
    }

    fn leave(&mut self, mgid: Mgid) -> Result<Changes, MulticastError> {
        let index = self.index_of(mgid)?;
        self.begin();
        self.exit(index);
        let changes = self.finish(Some(mgid));
        self.by_mgid.remove(&mgid);
        self.free.push(index);
        self.groups[index as usize].terminals = Vec::new();
        Ok(changes)
    }

    fn change(&mut self, group: &Group) -> Result<Changes, MulticastError> {
        let index = self.index_of(group.mgid)?;
        let terminals = self.terminals_of(group)?;
        self.begin();
        self.exit(index);
        let colour = self.colour_for(group.mgid, &terminals);
        let (cns, top) = self.footprint(&terminals);
        let state = &mut self.groups[index as usize];
        (state.cns, state.top) = (cns, top);
        state.height = self.wiring.height(&terminals);
        state.terminals = terminals;
        state.colour = colour;
        self.enter(index);
        Ok(self.finish(Some(group.mgid)))
    }

    fn fail(&mut self, link: LinkId) -> Result<Changes, MulticastError> {
        self.set_link(link, true)
    }

    fn repair(&mut self, link: LinkId) -> Result<Changes, MulticastError> {
        self.set_link(link, false)
    }

    fn groups(&self) -> Vec<Group> {
        let groups = self.in_order().into_iter();
        groups
            .map(|group| {
                let state = &self.groups[group as usize];
                let terminals = state.terminals.iter();
                Group::new(
                    state.mgid,
                    terminals.map(|s| self.wiring.host(*s)).collect(),
                )
            })
            .collect()
    }

    fn colour_of(&self, mgid: Mgid) -> Option<Colour> {
        let &group = self.by_mgid.get(&mgid)?;
        Some(self.numbering.colour(self.groups[group as usize].tree))
    }

    fn trees(&self) -> Vec<Tree> {
        self.all_trees()
    }

    fn cut_off(&self) -> Vec<(Mgid, NodeId)> {
        let mut cut = Vec::new();
        for group in self.in_order() {
            let state = &self.groups[group as usize];
            let (planes, count) = self.numbering.planes(state.tree);
            let broken = |plane| {
                let terminals = state.terminals.iter().copied();
                terminals.filter(move |&terminal| {
                    self.wiring
                        .is_broken(terminal, state.height, plane, state.j)
                })
            };
            // Of a pair the better tree counts.
            let best = planes[..count]
                .iter()
                .copied()
                .min_by_key(|plane| broken(*plane).count())
                .unwrap_or(planes[0]);
            let dead = state.terminals.iter().copied();
            let dead = dead.filter(|terminal| self.wiring.is_cut(*terminal));
            let terminals = broken(best).chain(dead);
            let mut hosts: Vec<_> = terminals
                .map(|terminal| (state.mgid, self.wiring.host(terminal)))
                .collect();
            hosts.sort_unstable();
            hosts.dedup();
            cut.append(&mut hosts);
        }
        cut
    }
}
