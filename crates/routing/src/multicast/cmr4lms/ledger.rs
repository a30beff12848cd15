//! Who uses which link of which spanning tree, and what that means for the tables.
//!
//! The spanning trees of a fat tree all have one shape: hosts below L0 below L1 (one per CN) below L2 (one per w CNs)
//! below L3. Groups conflict when they share a link; merged groups are the connected components of that relation. In a
//! tree this is decided switch by switch: two links of a switch belong together when some group uses both, or when
//! both belong to a third. A group that goes on upwards joins all its links below with the link above, so a count per
//! link suffices for it; only groups rooted at the switch are kept one by one. So a join or leave costs time in
//! proportion to its own tree, however large the merged group is.

use raddle_units::{prefetch, prefetch_start};

use super::wiring::{Class, NO_UP, NONE, Plane, Wiring};
use crate::multicast::{Branch, Colour, PortSet};

/// A group at its root.
#[derive(Clone, Copy, Debug)]
struct Rooted {
    group: u32,
    down: PortSet,
}

/// One switch of one spanning tree, in a cache line of its own.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Node {
    /// Places below used by groups that go on upwards.
    through: PortSet,
    rooted: Vec<Rooted>,
    /// The operation that touched it last.
    stamp: u64,
}

/// The switches of one level of one spanning tree.
#[derive(Clone, Debug)]
struct Level {
    /// Places below one switch.
    stride: usize,
    /// By place of the switch: its index below, or [`NONE`].
    slots: Vec<u32>,
    places: Vec<u32>,
    nodes: Vec<Node>,
    /// Per switch and place below: groups that go on upwards.
    counts: Vec<u32>,
    /// At L2, per switch and place below: the L3 switch to which those groups go.
    tops: Vec<u16>,
}

impl Level {
    fn new(count: usize, stride: usize) -> Self {
        Self {
            stride,
            slots: vec![NONE; count],
            places: Vec::new(),
            nodes: Vec::new(),
            counts: Vec::new(),
            tops: Vec::new(),
        }
    }

    fn slot(&mut self, place: u32, with_tops: bool) -> usize {
        let slot = &mut self.slots[place as usize];
        if *slot == NONE {
            *slot = self.nodes.len() as u32;
            self.places.push(place);
            self.nodes.push(Node::default());
            self.counts.resize(self.nodes.len() * self.stride, 0);
            if with_tops {
                self.tops.resize(self.nodes.len() * self.stride, 0);
            }
        }
        *slot as usize
    }

    /// The classes of a switch: sorted, those of one port left out.
    fn classes(&self, slot: usize, out: &mut Vec<Class>) {
        let start = out.len();
        let node = &self.nodes[slot];
        if !node.through.is_empty() {
            if self.tops.is_empty() {
                out.push(Class {
                    down: node.through,
                    up: 0,
                });
            } else {
                for place in node.through.iter() {
                    let up = self.tops[slot * self.stride + usize::from(place)];
                    match out[start..].iter_mut().find(|class| class.up == up) {
                        Some(class) => class.down.insert(place),
                        None => out.push(Class {
                            down: PortSet::from_iter([place]),
                            up,
                        }),
                    }
                }
            }
        }
        for rooted in &node.rooted {
            let mut all = Class {
                down: rooted.down,
                up: NO_UP,
            };
            let mut index = start;
            while index < out.len() {
                if out[index].down.meets(&all.down) {
                    let met = out.swap_remove(index);
                    all.down = all.down.union(&met.down);
                    debug_assert!(all.up == NO_UP || met.up == NO_UP || all.up == met.up);
                    all.up = all.up.min(met.up);
                } else {
                    index += 1;
                }
            }
            out.push(all);
        }
        let mut index = start;
        while index < out.len() {
            if out[index].up == NO_UP && out[index].down.len() < 2 {
                out.swap_remove(index);
            } else {
                index += 1;
            }
        }
        if out.len() - start > 1 {
            out[start..].sort_unstable_by_key(|class| first(&class.down));
        }
    }
}

fn first(set: &PortSet) -> u32 {
    let words = set.words();
    let mut at = 0;
    for word in words {
        if word != 0 {
            return at + word.trailing_zeros();
        }
        at += 64;
    }
    at
}

/// One spanning tree (a pair of them with fault tolerance).
#[derive(Clone, Debug)]
pub(super) struct SpanningTree {
    levels: [Level; 4],
    /// Its groups, in no order.
    pub(super) groups: Vec<u32>,
}

impl SpanningTree {
    fn prefetch(&self, wiring: &Wiring, spots: &[u32]) {
        let mut last = [NONE; 2];
        for &spot in spots {
            let l0 = spot / wiring.t;
            if l0 != last[0] {
                last[0] = l0;
                prefetch(&self.levels[0].slots[l0 as usize]);
            }
        }
        let mut fetch = |level: usize, place: u32| {
            let of = &self.levels[level];
            let slot = of.slots[place as usize];
            if last[level] != place && slot != NONE {
                prefetch(&of.nodes[slot as usize]);
                prefetch_start(&of.counts[slot as usize * of.stride..]);
            }
            last[level] = place;
        };
        for &spot in spots {
            let l0 = spot / wiring.t;
            fetch(0, l0);
            fetch(1, l0 / wiring.q);
        }
    }
}

/// A switch as it was before an operation.
#[derive(Clone, Copy, Debug)]
struct Touched {
    tree: u32,
    level: u8,
    slot: u32,
    before: (u32, u32),
}

/// All spanning trees.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    trees: Vec<Option<Box<SpanningTree>>>,
    operation: u64,
    /// Whether an operation is being recorded.
    recording: bool,
    touched: Vec<Touched>,
    before: Vec<Class>,
    after: Vec<Class>,
}

/// What a spanning tree is in terms of colour and switches.
pub(super) trait Planes {
    fn colour(&self, tree: u32) -> Colour;
    fn planes(&self, tree: u32) -> ([Plane; 2], usize);
}

impl Ledger {
    pub(super) fn new(trees: usize) -> Self {
        Self {
            trees: vec![None; trees],
            operation: 0,
            recording: false,
            touched: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
        }
    }

    pub(super) fn tree(&self, tree: u32) -> Option<&SpanningTree> {
        self.trees[tree as usize].as_deref()
    }

    pub(super) fn tree_mut(&mut self, tree: u32) -> Option<&mut SpanningTree> {
        self.trees[tree as usize].as_deref_mut()
    }

    /// Starts to remember how switches were.
    pub(super) fn begin(&mut self) {
        self.operation += 1;
        self.recording = true;
        self.touched.clear();
        self.before.clear();
    }

    /// Books a group on its tree or takes it off. `j` is the L3 switch, used where the root is one.
    pub(super) fn book(
        &mut self,
        wiring: &Wiring,
        tree: u32,
        group: u32,
        spots: &[u32],
        j: u16,
        add: bool,
    ) {
        let state = self.trees[tree as usize].get_or_insert_with(|| {
            let nl0 = (wiring.cns * wiring.q) as usize;
            let (k, w) = (wiring.k as usize, wiring.w as usize);
            Box::new(SpanningTree {
                levels: [
                    Level::new(nl0, wiring.t as usize),
                    Level::new(wiring.cns as usize, wiring.q as usize),
                    Level::new(k, w),
                    Level::new(w, k),
                ],
                groups: Vec::new(),
            })
        });
        state.prefetch(wiring, spots);
        let mut booking = Booking {
            levels: &mut state.levels,
            tree,
            group,
            add,
            operation: self.operation,
            recording: self.recording,
            touched: &mut self.touched,
            before: &mut self.before,
        };
        let height = wiring.height(spots);
        let mut at = 0;
        let mut top = PortSet::EMPTY;
        while at < spots.len() {
            let i2 = wiring.l2_index(spots[at] / wiring.t / wiring.q);
            let mut below_l2 = PortSet::EMPTY;
            while at < spots.len() {
                let cn = spots[at] / wiring.t / wiring.q;
                if wiring.l2_index(cn) != i2 {
                    break;
                }
                let mut below_l1 = PortSet::EMPTY;
                let end_of_cn = (cn + 1) * wiring.q * wiring.t;
                while at < spots.len() && spots[at] < end_of_cn {
                    let l0 = spots[at] / wiring.t;
                    let start = l0 * wiring.t;
                    let mut below_l0 = PortSet::EMPTY;
                    while at < spots.len() && spots[at] < start + wiring.t {
                        below_l0.insert((spots[at] - start) as u8);
                        at += 1;
                    }
                    if height == 0 {
                        return booking.root(0, l0, below_l0);
                    }
                    booking.through(0, l0, below_l0, 0);
                    below_l1.insert((l0 - cn * wiring.q) as u8);
                }
                if height == 1 {
                    return booking.root(1, cn, below_l1);
                }
                booking.through(1, cn, below_l1, 0);
                below_l2.insert((cn - i2 * wiring.w) as u8);
            }
            if height == 2 {
                return booking.root(2, i2, below_l2);
            }
            booking.through(2, i2, below_l2, j);
            top.insert(i2 as u8);
        }
        booking.root(3, u32::from(j), top);
    }

    /// Ends an operation: the table writes, those that clear apart from those that set.
    pub(super) fn finish(&mut self, wiring: &Wiring, planes: &impl Planes) -> Vec<Branch> {
        self.recording = false;
        let mut cleared = Vec::with_capacity(self.touched.len());
        let mut set = Vec::with_capacity(self.touched.len());
        for touched in &self.touched {
            let Some(tree) = &self.trees[touched.tree as usize] else {
                continue;
            };
            let level = &tree.levels[usize::from(touched.level)];
            self.after.clear();
            level.classes(touched.slot as usize, &mut self.after);
            let before = &self.before[touched.before.0 as usize..touched.before.1 as usize];
            let place = level.places[touched.slot as usize];
            let at = (touched.tree, touched.level, place);
            emit(
                wiring,
                planes,
                at,
                before,
                &self.after,
                &mut cleared,
                &mut set,
            );
        }
        cleared.append(&mut set);
        cleared
    }

    /// The table writes that lead from another ledger to this one.
    pub(super) fn since(
        &self,
        before: &Self,
        wiring: &Wiring,
        planes: &impl Planes,
    ) -> Vec<Branch> {
        let (mut cleared, mut set) = (Vec::new(), Vec::new());
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for tree in 0..self.trees.len() as u32 {
            let states = (before.tree(tree), self.tree(tree));
            for level in 0..4u8 {
                let levels = (
                    states.0.map(|state| &state.levels[usize::from(level)]),
                    states.1.map(|state| &state.levels[usize::from(level)]),
                );
                let places = levels.0.into_iter().flat_map(|old| &old.places);
                let added = levels.1.into_iter().flat_map(|new| &new.places);
                let added = added.filter(|place| {
                    levels
                        .0
                        .is_none_or(|old| old.slots[**place as usize] == NONE)
                });
                for &place in places.chain(added) {
                    old.clear();
                    new.clear();
                    for (level, classes) in [(levels.0, &mut old), (levels.1, &mut new)] {
                        if let Some(level) = level
                            && level.slots[place as usize] != NONE
                        {
                            level.classes(level.slots[place as usize] as usize, classes);
                        }
                    }
                    emit(
                        wiring,
                        planes,
                        (tree, level, place),
                        &old,
                        &new,
                        &mut cleared,
                        &mut set,
                    );
                }
            }
        }
        cleared.append(&mut set);
        cleared
    }

    /// The classes of one switch of a tree, those of one port left out.
    pub(super) fn classes(&self, tree: u32, level: usize, place: u32, out: &mut Vec<Class>) {
        out.clear();
        if let Some(state) = self.tree(tree) {
            let level = &state.levels[level];
            if level.slots[place as usize] != NONE {
                level.classes(level.slots[place as usize] as usize, out);
            }
        }
    }
}

/// One group on its way up the levels of a tree.
struct Booking<'a> {
    levels: &'a mut [Level; 4],
    tree: u32,
    group: u32,
    add: bool,
    operation: u64,
    recording: bool,
    touched: &'a mut Vec<Touched>,
    before: &'a mut Vec<Class>,
}

impl Booking<'_> {
    fn touch(&mut self, level: usize, slot: usize) {
        let of = &mut self.levels[level];
        if !self.recording || of.nodes[slot].stamp == self.operation {
            return;
        }
        of.nodes[slot].stamp = self.operation;
        let start = self.before.len() as u32;
        of.classes(slot, self.before);
        self.touched.push(Touched {
            tree: self.tree,
            level: level as u8,
            slot: slot as u32,
            before: (start, self.before.len() as u32),
        });
    }

    fn through(&mut self, level: usize, place: u32, below: PortSet, top: u16) {
        let slot = self.levels[level].slot(place, level == 2);
        let base = slot * self.levels[level].stride;
        for n in below.iter() {
            let at = base + usize::from(n);
            let count = self.levels[level].counts[at];
            if count == u32::from(!self.add) {
                self.touch(level, slot);
                let through = &mut self.levels[level].nodes[slot].through;
                if self.add {
                    through.insert(n);
                } else {
                    through.remove(n);
                }
                if level == 2 {
                    self.levels[level].tops[at] = top;
                }
            }
            let of = &mut self.levels[level];
            debug_assert!(level != 2 || of.tops[at] == top);
            of.counts[at] = if self.add { count + 1 } else { count - 1 };
        }
    }

    fn root(&mut self, level: usize, place: u32, below: PortSet) {
        let slot = self.levels[level].slot(place, level == 2);
        self.touch(level, slot);
        let rooted = &mut self.levels[level].nodes[slot].rooted;
        if self.add {
            rooted.push(Rooted {
                group: self.group,
                down: below,
            });
        } else if let Some(index) = rooted.iter().position(|r| r.group == self.group) {
            rooted.swap_remove(index);
        }
    }
}

/// Table writes of one switch of a tree whose classes changed.
fn emit(
    wiring: &Wiring,
    planes: &impl Planes,
    (tree, level, place): (u32, u8, u32),
    before: &[Class],
    after: &[Class],
    cleared: &mut Vec<Branch>,
    set: &mut Vec<Branch>,
) {
    if before == after {
        return;
    }
    let level = usize::from(level);
    let colour = planes.colour(tree);
    let (planes, count) = planes.planes(tree);
    // Both trees of a pair start at the same L0 switches.
    let (switches, ways) = if level == 0 { (1, count) } else { (count, 1) };
    for first in 0..switches {
        let Some(switch) = wiring.switch(level, place, planes[first]) else {
            continue;
        };
        let ports = |class: &Class| {
            let (down, mut up) = wiring.ports(level, place, planes[first], class);
            for &plane in &planes[first + 1..first + ways] {
                up = up.union(&wiring.ports(level, place, plane, class).1);
            }
            (down, up)
        };
        let mut gone = PortSet::EMPTY;
        for class in before {
            let (down, up) = ports(class);
            gone = gone.union(&down).union(&up);
        }
        for class in after {
            let (down, up) = ports(class);
            gone = gone.minus(&down.union(&up));
            if !before.contains(class) {
                let branch = Wiring::branch(switch, colour);
                set.push(Branch { down, up, ..branch });
            }
        }
        if !gone.is_empty() {
            let branch = Wiring::branch(switch, colour);
            cleared.push(Branch {
                cleared: gone,
                ..branch
            });
        }
    }
}
