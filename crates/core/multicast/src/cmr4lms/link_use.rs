//! Who uses which link of which spanning tree, and what that means for the tables.
//!
//! The spanning trees of a fat tree all have one shape: hosts below L0 below L1 (one per CN) below L2 (one per w CNs)
//! below L3. Groups conflict when they share a link; merged groups are the connected components of that relation. In a
//! tree this is decided switch by switch: two links of a switch belong together when some group uses both, or when
//! both belong to a third. A group that goes on upwards joins all its links below with the link above, so a count per
//! link suffices for it; only groups rooted at the switch are kept one by one. So a join or leave costs time in
//! proportion to its own tree, however large the merged group is.

use raddle_prefetch::prefetch;

use super::wiring::{Class, NO_UP, NONE, Plane, Wiring};
use crate::{Branch, Colour, PortSet};

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

/// Switches of a level are allocated this many at a time: an operation never pays for moving those that are there.
const PIECE: usize = 1024;

/// Up to [`PIECE`] switches of one level.
#[derive(Clone, Debug)]
struct Piece {
    nodes: Vec<Node>,
    /// Per switch and place below: groups that go on upwards.
    counts: Vec<u32>,
    /// At L2, per switch and place below: the L3 switch to which those groups go.
    tops: Vec<u16>,
}

/// The switches of one level of all spanning trees, by slot.
#[derive(Clone, Debug)]
struct Level {
    /// Places below one switch.
    stride: usize,
    has_tops: bool,
    pieces: Vec<Piece>,
}

impl Level {
    fn new(stride: u32, has_tops: bool) -> Self {
        Self {
            stride: stride as usize,
            has_tops,
            pieces: Vec::new(),
        }
    }

    /// Makes room for a switch; gives its slot.
    fn add(&mut self) -> u32 {
        let (counts, tops) = (self.stride, if self.has_tops { self.stride } else { 0 });
        let full = |piece: &Piece| piece.nodes.len() == PIECE;
        if self.pieces.last().is_none_or(full) {
            self.pieces.push(Piece {
                nodes: Vec::with_capacity(PIECE),
                counts: Vec::with_capacity(PIECE * counts),
                tops: Vec::with_capacity(PIECE * tops),
            });
        }
        let before = (self.pieces.len() - 1) * PIECE;
        let piece = &mut self.pieces[before / PIECE];
        piece.nodes.push(Node::default());
        piece.counts.resize(piece.counts.len() + counts, 0);
        piece.tops.resize(piece.tops.len() + tops, 0);
        (before + piece.nodes.len() - 1) as u32
    }

    fn node(&self, slot: u32) -> &Node {
        &self.pieces[slot as usize / PIECE].nodes[slot as usize % PIECE]
    }

    fn node_mut(&mut self, slot: u32) -> &mut Node {
        &mut self.pieces[slot as usize / PIECE].nodes[slot as usize % PIECE]
    }

    fn counts_mut(&mut self, slot: u32) -> &mut [u32] {
        let start = slot as usize % PIECE * self.stride;
        &mut self.pieces[slot as usize / PIECE].counts[start..start + self.stride]
    }

    fn tops(&self, slot: u32) -> &[u16] {
        let start = slot as usize % PIECE * self.stride;
        &self.pieces[slot as usize / PIECE].tops[start..start + self.stride]
    }

    fn tops_mut(&mut self, slot: u32) -> &mut [u16] {
        let start = slot as usize % PIECE * self.stride;
        &mut self.pieces[slot as usize / PIECE].tops[start..start + self.stride]
    }

    /// Fetches a switch and what is known of a place below it.
    fn prefetch(&self, slot: u32, below: u32) {
        if slot != NONE {
            let piece = &self.pieces[slot as usize / PIECE];
            let at = slot as usize % PIECE;
            prefetch(&piece.nodes[at]);
            prefetch(&piece.counts[at * self.stride + below as usize]);
        }
    }

    /// The classes of a switch: sorted, those of one port left out.
    fn classes(&self, slot: u32, out: &mut Vec<Class>) {
        let start = out.len();
        let node = self.node(slot);
        if !node.through.is_empty() {
            if self.has_tops {
                let tops = self.tops(slot);
                for place in node.through.iter() {
                    let up = tops[usize::from(place)];
                    match out[start..].iter_mut().find(|class| class.up == up) {
                        Some(class) => class.down.insert(place),
                        None => out.push(Class {
                            down: PortSet::from_iter([place]),
                            up,
                        }),
                    }
                }
            } else {
                out.push(Class {
                    down: node.through,
                    up: 0,
                });
            }
        }
        // Most switches: whoever is there goes on upwards, all by one way.
        if node.rooted.is_empty() && out.len() - start <= 1 {
            return;
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
    /// By level and place: the slot of the switch, or [`NONE`].
    slots: [Vec<u32>; 4],
    /// By level: the places of the switches that have one.
    places: [Vec<u32>; 4],
    /// Its groups, in no order.
    pub(super) groups: Vec<u32>,
}

impl SpanningTree {
    fn new(wiring: &Wiring) -> Self {
        let switches = [wiring.cns * wiring.q, wiring.cns, wiring.k, wiring.w];
        Self {
            slots: switches.map(|count| vec![NONE; count as usize]),
            places: Default::default(),
            groups: Vec::new(),
        }
    }

    fn slot(&self, level: usize, place: u32) -> u32 {
        self.slots[level][place as usize]
    }

    fn prefetch_slots(&self, wiring: &Wiring, terminals: &[u32]) {
        let mut end_of_l0 = 0;
        for &terminal in terminals {
            if terminal >= end_of_l0 {
                let l0 = terminal / wiring.t;
                end_of_l0 = (l0 + 1) * wiring.t;
                prefetch(&self.slots[0][l0 as usize]);
            }
        }
    }

    fn prefetch(&self, levels: &[Level; 4], wiring: &Wiring, terminals: &[u32]) {
        let (mut start_of_l0, mut end_of_l0, mut end_of_cn) = (0, 0, 0);
        let (mut l0, mut cn) = (0, 0);
        for &terminal in terminals {
            if terminal >= end_of_l0 {
                l0 = terminal / wiring.t;
                (start_of_l0, end_of_l0) = (l0 * wiring.t, (l0 + 1) * wiring.t);
                if l0 >= end_of_cn {
                    cn = l0 / wiring.q;
                    end_of_cn = (cn + 1) * wiring.q;
                }
                levels[1].prefetch(self.slot(1, cn), wiring.q - (end_of_cn - l0));
            }
            levels[0].prefetch(self.slot(0, l0), terminal - start_of_l0);
        }
    }
}

/// A switch as it was before an operation.
#[derive(Clone, Copy, Debug)]
struct Touched {
    tree: u32,
    level: u8,
    place: u32,
    slot: u32,
    before: (u32, u32),
}

/// All spanning trees.
#[derive(Clone, Debug)]
pub(super) struct LinkUse {
    levels: [Level; 4],
    trees: Vec<Option<Box<SpanningTree>>>,
    operation: u64,
    /// Whether an operation is being recorded.
    recording: bool,
    touched: Vec<Touched>,
    before: Vec<Class>,
    after: Vec<Class>,
    writes: Writes,
}

/// What a spanning tree is in terms of colour and switches.
pub(super) trait Planes {
    fn colour(&self, tree: u32) -> Colour;
    fn planes(&self, tree: u32) -> ([Plane; 2], usize);
}

impl LinkUse {
    pub(super) fn new(trees: usize, wiring: &Wiring) -> Self {
        Self {
            levels: [
                Level::new(wiring.t, false),
                Level::new(wiring.q, false),
                Level::new(wiring.w, true),
                Level::new(wiring.k, false),
            ],
            trees: vec![None; trees],
            operation: 0,
            recording: false,
            touched: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            writes: Writes::default(),
        }
    }

    pub(super) fn tree(&self, tree: u32) -> Option<&SpanningTree> {
        self.trees[tree as usize].as_deref()
    }

    pub(super) fn tree_mut(&mut self, tree: u32) -> Option<&mut SpanningTree> {
        self.trees[tree as usize].as_deref_mut()
    }

    /// Fetches what [`Self::book`] of these places reads first.
    pub(super) fn prefetch(&self, wiring: &Wiring, tree: u32, terminals: &[u32]) {
        if let Some(tree) = self.tree(tree) {
            tree.prefetch_slots(wiring, terminals);
        }
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
        terminals: &[u32],
        j: u16,
        add: bool,
    ) {
        let state =
            self.trees[tree as usize].get_or_insert_with(|| Box::new(SpanningTree::new(wiring)));
        state.prefetch(&self.levels, wiring, terminals);
        let mut booking = Booking {
            levels: &mut self.levels,
            state,
            tree,
            group,
            add,
            operation: self.operation,
            recording: self.recording,
            touched: &mut self.touched,
            before: &mut self.before,
        };
        let height = wiring.height(terminals);
        let mut at = 0;
        let mut top = PortSet::EMPTY;
        while at < terminals.len() {
            let i2 = wiring.l2_index(terminals[at] / wiring.t / wiring.q);
            let mut below_l2 = PortSet::EMPTY;
            while at < terminals.len() {
                let cn = terminals[at] / wiring.t / wiring.q;
                if wiring.l2_index(cn) != i2 {
                    break;
                }
                let mut below_l1 = PortSet::EMPTY;
                let end_of_cn = (cn + 1) * wiring.q * wiring.t;
                while at < terminals.len() && terminals[at] < end_of_cn {
                    let l0 = terminals[at] / wiring.t;
                    let start = l0 * wiring.t;
                    let mut below_l0 = PortSet::EMPTY;
                    while at < terminals.len() && terminals[at] < start + wiring.t {
                        below_l0.insert((terminals[at] - start) as u8);
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
        for run in self.touched.chunk_by(|a, b| a.tree == b.tree) {
            let tree = run[0].tree;
            let (both, count) = planes.planes(tree);
            let ways = (planes.colour(tree), &both[..count]);
            for touched in run {
                wiring.prefetch(usize::from(touched.level), touched.place, both[0]);
            }
            for touched in run {
                let level = usize::from(touched.level);
                self.after.clear();
                self.levels[level].classes(touched.slot, &mut self.after);
                let before = &self.before[touched.before.0 as usize..touched.before.1 as usize];
                let at = (level, touched.place);
                self.writes.add(wiring, ways, at, before, &self.after);
            }
        }
        self.writes.take()
    }

    /// The table writes that lead from another link_use to this one.
    pub(super) fn since(
        &self,
        before: &Self,
        wiring: &Wiring,
        planes: &impl Planes,
    ) -> Vec<Branch> {
        let mut writes = Writes::default();
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for tree in 0..self.trees.len() as u32 {
            let states = (before.tree(tree), self.tree(tree));
            let (both, count) = planes.planes(tree);
            let ways = (planes.colour(tree), &both[..count]);
            for level in 0..4 {
                let places = states.0.into_iter().flat_map(|old| &old.places[level]);
                let added = states.1.into_iter().flat_map(|new| &new.places[level]);
                let added = added
                    .filter(|place| states.0.is_none_or(|old| old.slot(level, **place) == NONE));
                for &place in places.chain(added) {
                    before.classes(tree, level, place, &mut old);
                    self.classes(tree, level, place, &mut new);
                    writes.add(wiring, ways, (level, place), &old, &new);
                }
            }
        }
        writes.take()
    }

    /// The classes of one switch of a tree, those of one port left out.
    pub(super) fn classes(&self, tree: u32, level: usize, place: u32, out: &mut Vec<Class>) {
        out.clear();
        let slot = self.tree(tree).map_or(NONE, |tree| tree.slot(level, place));
        if slot != NONE {
            self.levels[level].classes(slot, out);
        }
    }
}

/// One group on its way up the levels of a tree.
struct Booking<'a> {
    levels: &'a mut [Level; 4],
    state: &'a mut SpanningTree,
    tree: u32,
    group: u32,
    add: bool,
    operation: u64,
    recording: bool,
    touched: &'a mut Vec<Touched>,
    before: &'a mut Vec<Class>,
}

impl Booking<'_> {
    fn slot(&mut self, level: usize, place: u32) -> u32 {
        let slot = &mut self.state.slots[level][place as usize];
        if *slot == NONE {
            *slot = self.levels[level].add();
            self.state.places[level].push(place);
        }
        *slot
    }

    fn touch(&mut self, level: usize, place: u32, slot: u32) {
        let of = &mut self.levels[level];
        let stamp = &mut of.node_mut(slot).stamp;
        if !self.recording || *stamp == self.operation {
            return;
        }
        *stamp = self.operation;
        let start = self.before.len() as u32;
        of.classes(slot, self.before);
        self.touched.push(Touched {
            tree: self.tree,
            level: level as u8,
            place,
            slot,
            before: (start, self.before.len() as u32),
        });
    }

    fn through(&mut self, level: usize, place: u32, below: PortSet, top: u16) {
        let slot = self.slot(level, place);
        let counts = self.levels[level].counts_mut(slot);
        let mut changed = PortSet::EMPTY;
        for n in below.iter() {
            let count = &mut counts[usize::from(n)];
            // The first group that comes and the last one that goes.
            if *count == u32::from(!self.add) {
                changed.insert(n);
            }
            *count = if self.add { *count + 1 } else { *count - 1 };
        }
        if changed.is_empty() {
            return;
        }
        self.touch(level, place, slot);
        let of = &mut self.levels[level];
        let through = &mut of.node_mut(slot).through;
        *through = if self.add {
            through.union(&changed)
        } else {
            through.minus(&changed)
        };
        if of.has_tops {
            let tops = of.tops_mut(slot);
            for n in changed.iter() {
                tops[usize::from(n)] = top;
            }
            debug_assert!(below.iter().all(|n| tops[usize::from(n)] == top));
        }
    }

    fn root(&mut self, level: usize, place: u32, below: PortSet) {
        let slot = self.slot(level, place);
        self.touch(level, place, slot);
        let rooted = &mut self.levels[level].node_mut(slot).rooted;
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

/// Table writes: those that clear apart from those that set.
#[derive(Clone, Debug, Default)]
struct Writes {
    cleared: Vec<Branch>,
    set: Vec<Branch>,
}

impl Writes {
    /// What was added, in order. The room stays for the next operation.
    fn take(&mut self) -> Vec<Branch> {
        let all = [&self.cleared[..], &self.set].concat();
        self.cleared.clear();
        self.set.clear();
        all
    }

    /// Adds those of a switch of a tree whose classes changed.
    fn add(
        &mut self,
        wiring: &Wiring,
        (colour, planes): (Colour, &[Plane]),
        (level, place): (usize, u32),
        before: &[Class],
        after: &[Class],
    ) {
        if before == after {
            return;
        }
        // Both trees of a pair start at the same L0 switches.
        let together = if level == 0 { planes.len() } else { 1 };
        for planes in planes.chunks(together) {
            let Some(switch) = wiring.switch(level, place, planes[0]) else {
                continue;
            };
            let below = |places: &PortSet| wiring.ports_below(level, place, planes[0], places);
            let above = |class: &Class| wiring.ports_above(level, place, planes, class.up);
            let branch = |down, up, cleared| Branch {
                switch,
                colour,
                down,
                up,
                cleared,
            };
            for class in after.iter().filter(|class| !before.contains(class)) {
                let (down, up) = (below(&class.down), above(class));
                self.set.push(branch(down, up, PortSet::EMPTY));
            }
            let all = |classes: &[Class]| {
                let classes = classes.iter();
                classes.fold(PortSet::EMPTY, |all, class| all.union(&class.down))
            };
            let mut gone = below(&all(before).minus(&all(after)));
            for class in before {
                if after.iter().all(|other| other.up != class.up) {
                    gone = gone.union(&above(class));
                }
            }
            if !gone.is_empty() {
                let branch = branch(PortSet::EMPTY, PortSet::EMPTY, gone);
                self.cleared.push(branch);
            }
        }
    }
}
