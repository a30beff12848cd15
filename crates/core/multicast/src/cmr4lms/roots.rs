//! Dynamic roots (section 2.6): which L3 switch of its TN a group takes.
//!
//! Groups of one tree that share a link below L2 must take one L3 switch; such groups are a *bundle*. Bundles that
//! meet at an L2 switch are kept apart as long as there are free L3 switches. Where there is none, a bundle joins
//! those it disturbs least; they then are on one spanning tree and share its links, so nothing more can be wrong:
//! merging needs no second round.

use super::{
    CMr4lms,
    link_use::Planes,
    wiring::{Class, NO_UP, Plane},
};
use raddle_prefetch::{prefetch, prefetch_start};

use crate::{Mgid, PortSet};

#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// L2 switches of a group and the CNs below each.
    below: Vec<(u32, PortSet)>,
    classes: Vec<Class>,
}

/// Groups of one tree that share links below L2.
#[derive(Clone, Debug)]
struct Bundle {
    /// Those rooted in an L3 switch.
    tall: Vec<u32>,
    /// The CNs of all, a bit each.
    cns: Vec<u64>,
    /// Their L2 switches.
    l2: PortSet,
    j: u16,
    /// Whether the group asked for is among them.
    asked: bool,
}

impl Bundle {
    fn absorb(&mut self, other: &Self) {
        self.tall.extend_from_slice(&other.tall);
        for (a, b) in self.cns.iter_mut().zip(&other.cns) {
            *a |= b;
        }
        self.l2 = self.l2.union(&other.l2);
        if self.j == NO_UP {
            self.j = other.j;
        }
        self.asked |= other.asked;
    }
}

impl CMr4lms {
    pub(super) fn place_dynamic(&mut self, group: u32, tree: u32) {
        let height = self.groups[group as usize].height;
        if height < 2 {
            return self.book(group, tree, 0);
        }
        self.measure(group);
        let mut met: Option<u16> = None;
        let mut several = false;
        let mut at = PortSet::EMPTY;
        let mut top = PortSet::EMPTY;
        for index in 0..self.scratch.below.len() {
            let (i2, cns) = self.scratch.below[index];
            top.insert(i2 as u8);
            self.link_use
                .classes(tree, 2, i2, &mut self.scratch.classes);
            for class in &self.scratch.classes {
                if class.up != NO_UP && class.down.meets(&cns) {
                    several |= met.is_some_and(|j| j != class.up);
                    met = Some(class.up);
                    at.insert(i2 as u8);
                }
            }
        }
        let (planes, count) = self.numbering.planes(tree);
        let simple = match met {
            _ if several => None,
            _ if height == 2 => Some(0),
            // It joins a bundle without disturbing another.
            Some(j) => {
                let (mut own, mut used) = (PortSet::EMPTY, PortSet::EMPTY);
                self.link_use
                    .classes(tree, 3, u32::from(j), &mut self.scratch.classes);
                for class in &self.scratch.classes {
                    used = used.union(&class.down);
                    if class.down.meets(&at) {
                        own = own.union(&class.down);
                    }
                }
                let alone = !used.minus(&own).meets(&top);
                (alone && !self.has_dead_root(&planes[..count], &top, j)).then_some(j)
            }
            None => self.free_root(tree, &planes[..count], &top),
        };
        match simple {
            Some(j) => self.book(group, tree, j),
            None => self.place_with_bundle(group, tree),
        }
    }

    /// L2 switches of a group and the CNs below each, into `scratch.below`.
    fn measure(&mut self, group: u32) {
        let (below, wiring) = (&mut self.scratch.below, &self.wiring);
        below.clear();
        let mut end = 0;
        for &terminal in &self.groups[group as usize].terminals {
            if terminal < end {
                continue;
            }
            let cn = terminal / wiring.t / wiring.q;
            end = (cn + 1) * wiring.q * wiring.t;
            let (i2, place) = (wiring.l2_index(cn), (cn % wiring.w) as u8);
            match below.last_mut() {
                Some(last) if last.0 == i2 => last.1.insert(place),
                _ => below.push((i2, PortSet::from_iter([place]))),
            }
        }
    }

    fn has_dead_root(&self, planes: &[Plane], l2: &PortSet, j: u16) -> bool {
        self.dead_roots(planes, l2, j) > 0
    }

    /// How many links between these L2 switches and an L3 switch are dead.
    fn dead_roots(&self, planes: &[Plane], l2: &PortSet, j: u16) -> usize {
        let planes = planes.iter();
        planes
            .filter(|plane| !self.wiring.l3_links_are_whole(**plane))
            .map(|&plane| {
                let l2 = l2.iter();
                l2.filter(|i| self.wiring.l3_link_is_dead(plane, (*i).into(), j))
                    .count()
            })
            .sum()
    }

    /// The least loaded L3 switch whose links to these L2 switches work and are free.
    fn free_root(&mut self, tree: u32, planes: &[Plane], l2: &PortSet) -> Option<u16> {
        let mut best: Option<(u32, u16)> = None;
        for j in 0..self.wiring.w as u16 {
            let load = *self.load(tree, j);
            if best.is_some_and(|best| best.0 <= load) || self.has_dead_root(planes, l2, j) {
                continue;
            }
            self.link_use
                .classes(tree, 3, u32::from(j), &mut self.scratch.classes);
            if !self.scratch.classes.iter().any(|c| c.down.meets(l2)) {
                best = Some((load, j));
            }
        }
        best.map(|(_, j)| j)
    }

    /// Finds the L3 switch for the bundle that a new group belongs to, moves the bundle there and books the group.
    fn place_with_bundle(&mut self, group: u32, tree: u32) {
        let bundles = self.bundles(tree, Some(group));
        let Some(own) = bundles.iter().position(|bundle| bundle.asked) else {
            return self.book(group, tree, 0);
        };
        let j = self.best_root(tree, &bundles, own);
        let bundle = &bundles[own];
        self.move_bundle(tree, &bundle.tall, j, Some(group));
        self.book(group, tree, j);
        self.dirty.push(tree);
    }

    fn move_bundle(&mut self, tree: u32, tall: &[u32], j: u16, but: Option<u32>) {
        let movers = |this: &Self| -> Vec<u32> {
            let tall = tall.iter().copied();
            tall.filter(|g| Some(*g) != but && this.groups[*g as usize].j != j)
                .collect()
        };
        let movers = movers(self);
        for &group in &movers {
            self.unbook(group);
        }
        for &group in &movers {
            self.book(group, tree, j);
        }
    }

    /// The best L3 switch for a bundle: dead links are worst, then groups that it would be merged with, then leaving
    /// the switch it has, then load.
    fn best_root(&mut self, tree: u32, bundles: &[Bundle], own: usize) -> u16 {
        let (planes, count) = self.numbering.planes(tree);
        let bundle = &bundles[own];
        let key = |this: &mut Self, j: u16| {
            let others = bundles.iter().enumerate();
            let disturbed: usize = others
                .filter(|(index, other)| {
                    *index != own && other.j == j && other.l2.meets(&bundle.l2)
                })
                .map(|(_, other)| other.tall.len())
                .sum();
            (
                this.dead_roots(&planes[..count], &bundle.l2, j),
                disturbed,
                j != bundle.j,
                *this.load(tree, j),
                j,
            )
        };
        let roots = 0..self.wiring.w as u16;
        roots.min_by_key(|j| key(self, *j)).unwrap_or(0)
    }

    /// The bundles of a tree that have groups rooted in L3 switches, by lowest MGID; `with` is looked at as if it were
    /// there.
    fn bundles(&self, tree: u32, with: Option<u32>) -> Vec<Bundle> {
        let booked = self
            .link_use
            .tree(tree)
            .map_or(&[][..], |tree| &tree.groups);
        for &group in booked {
            prefetch(&self.groups[group as usize]);
        }
        for &group in booked {
            prefetch_start(&self.groups[group as usize].cns);
        }
        let items = booked.iter().copied().chain(with);
        let mut items: Vec<(Mgid, u32)> = items
            .map(|group| (self.groups[group as usize].mgid, group))
            .filter(|(_, group)| self.groups[*group as usize].height >= 2)
            .collect();
        items.sort_unstable();
        let mut bundles: Vec<Bundle> = Vec::new();
        for (_, group) in items {
            let state = &self.groups[group as usize];
            let (is_new, is_tall) = (Some(group) == with, state.height == 3);
            let shares = |b: &Bundle| b.cns.iter().zip(&state.cns).any(|(a, b)| a & b != 0);
            let Some(first) = bundles.iter().position(shares) else {
                bundles.push(Bundle {
                    tall: if is_tall { vec![group] } else { Vec::new() },
                    cns: state.cns.clone(),
                    l2: if is_tall { state.top } else { PortSet::EMPTY },
                    j: if is_tall && !is_new { state.j } else { NO_UP },
                    asked: is_new,
                });
                continue;
            };
            let mut index = first + 1;
            while index < bundles.len() {
                if shares(&bundles[index]) {
                    let other = bundles.remove(index);
                    bundles[first].absorb(&other);
                } else {
                    index += 1;
                }
            }
            let bundle = &mut bundles[first];
            for (a, b) in bundle.cns.iter_mut().zip(&state.cns) {
                *a |= b;
            }
            bundle.asked |= is_new;
            if is_tall {
                bundle.tall.push(group);
                bundle.l2 = bundle.l2.union(&state.top);
                if bundle.j == NO_UP && !is_new {
                    bundle.j = state.j;
                }
            }
        }
        bundles.retain(|bundle| !bundle.tall.is_empty());
        bundles
    }

    /// Keeps bundles apart that were merged and now find a free L3 switch. Every move takes one bundle out of a
    /// conflict and makes none, so it ends.
    pub(super) fn separate_dirty(&mut self) {
        while let Some(tree) = self.dirty.pop() {
            self.dirty.retain(|other| *other != tree);
            let mut bundles = self.bundles(tree, None);
            let (planes, count) = self.numbering.planes(tree);
            let mut again = bundles.len() > 1;
            while again {
                again = false;
                for own in 0..bundles.len() {
                    let disturbed = |bundles: &[Bundle], j: u16| {
                        let others = bundles.iter().enumerate();
                        let mut others = others.filter(|(index, _)| *index != own);
                        others.any(|(_, b)| b.j == j && b.l2.meets(&bundles[own].l2))
                    };
                    if !disturbed(&bundles, bundles[own].j) {
                        continue;
                    }
                    let j = self.best_root(tree, &bundles, own);
                    let dead =
                        |this: &Self, j| this.dead_roots(&planes[..count], &bundles[own].l2, j);
                    if disturbed(&bundles, j) || dead(self, j) > dead(self, bundles[own].j) {
                        continue;
                    }
                    self.move_bundle(tree, &bundles[own].tall, j, None);
                    bundles[own].j = j;
                    again = true;
                }
            }
            self.dirty.retain(|other| *other != tree);
        }
    }

    /// Bundles on dead links to L3 switches look for other ones.
    pub(super) fn leave_dead_roots(&mut self) {
        for tree in 0..self.numbering.trees() as u32 {
            let (planes, count) = self.numbering.planes(tree);
            let planes = &planes[..count];
            let whole = |this: &Self| planes.iter().all(|p| this.wiring.l3_links_are_whole(*p));
            if !self.wiring.has_l3 || self.link_use.tree(tree).is_none() || whole(self) {
                continue;
            }
            let mut bundles = self.bundles(tree, None);
            for own in 0..bundles.len() {
                if self.has_dead_root(planes, &bundles[own].l2, bundles[own].j) {
                    let j = self.best_root(tree, &bundles, own);
                    self.move_bundle(tree, &bundles[own].tall, j, None);
                    bundles[own].j = j;
                }
            }
        }
    }
}

/// The representative of an item (union-find with path halving).
pub(super) fn find(parents: &mut [u32], mut item: u32) -> u32 {
    while parents[item as usize] != item {
        let above = parents[parents[item as usize] as usize];
        parents[item as usize] = above;
        item = above;
    }
    item
}
