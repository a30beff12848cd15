//! All common ancestors of a group at once: from the members upwards, level by level.
//!
//! In a fat tree the way down from a switch to a switch below it is unique (parallel cables aside), so that a root
//! above all members has exactly one shortest tree. One climb finds for every root which colours are free on all of
//! that tree, how loaded it is, and, where no colour is, how many places of the tree are taken in each colour. Its
//! cost is the number of links between the members and their common ancestors.

use raddle_fabric::Fabric;

use super::{
    super::{
        UpLink,
        hops::{Edge, SwitchGraph},
    },
    colour_use::{ColourUse, Words, holds, intersect},
};
use raddle_unicast::LinkState;

/// What a climb needs to know of the engine.
pub(super) struct View<'a> {
    pub(super) links: &'a LinkState,
    pub(super) colour_use: &'a ColourUse,
    /// Trees of one colour must not share a switch (else: a link).
    pub(super) per_switch: bool,
}

/// The levels of a fabric and the scratch memory of a climb.
#[derive(Clone, Debug)]
pub(super) struct Climb {
    level: Vec<u8>,
    stamp: Vec<u32>,
    now: u32,
    /// Switches with members below (or at) each switch.
    below: Vec<u32>,
    most: Vec<u32>,
    sum: Vec<u64>,
    masks: Vec<u64>,
    taken: Vec<u32>,
    words: usize,
    touched: Vec<Vec<u32>>,
}

/// A common ancestor of a group's members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ancestor {
    pub(super) switch: u32,
    /// Largest and summed load over the tree's links between switches.
    pub(super) load: (u32, u64),
}

impl Climb {
    /// `None` where the ways down are not unique or a host has several ports: such a fabric is routed by search.
    pub(super) fn new(fabric: &Fabric, graph: &SwitchGraph, words: usize) -> Option<Self> {
        let level: Vec<u8> = fabric.switches().iter().map(|&s| fabric.level(s)).collect();
        if fabric
            .hosts()
            .iter()
            .any(|&host| fabric.ports_of(host).len() != 1)
        {
            return None;
        }
        let this = Self {
            stamp: vec![0; level.len()],
            now: 0,
            below: vec![0; level.len()],
            most: vec![0; level.len()],
            sum: vec![0; level.len()],
            masks: vec![0; level.len() * words],
            taken: Vec::new(),
            words,
            touched: vec![Vec::new(); usize::from(level.iter().copied().max().unwrap_or(0)) + 1],
            level,
        };
        this.ways_are_unique(fabric, graph).then_some(this)
    }

    fn ways_are_unique(&self, fabric: &Fabric, graph: &SwitchGraph) -> bool {
        let mut seen = vec![u32::MAX; graph.len()];
        let mut open = Vec::new();
        let mut bottoms: Vec<u32> = fabric
            .hosts()
            .iter()
            .map(|&host| graph.ordinal(fabric.peer_node(fabric.first_port(host))))
            .collect();
        bottoms.dedup();
        for bottom in bottoms {
            if seen[bottom as usize] == bottom {
                continue;
            }
            seen[bottom as usize] = bottom;
            open.push(bottom);
            while let Some(switch) = open.pop() {
                for bundle in self.upward(graph, switch) {
                    let parent = bundle[0].peer as usize;
                    if seen[parent] == bottom {
                        return false;
                    }
                    seen[parent] = bottom;
                    open.push(bundle[0].peer);
                }
            }
        }
        true
    }

    /// The cables to each switch of a higher level.
    fn upward<'g>(
        &self,
        graph: &'g SwitchGraph,
        switch: u32,
    ) -> impl Iterator<Item = &'g [Edge]> + use<'g, '_> {
        let level = self.level[switch as usize];
        bundles(graph.edges_of(switch))
            .filter(move |bundle| self.level[bundle[0].peer as usize] > level)
    }

    /// Climbs from the members' switches as far as `free` (the colours free on all terminal links) stay free, and
    /// gives the common ancestors of the lowest level at which any has a free colour.
    pub(super) fn ancestors(
        &mut self,
        graph: &SwitchGraph,
        view: &View<'_>,
        bottoms: &[(u32, u32)],
        free: &Words,
    ) -> Vec<Ancestor> {
        self.start(view, graph, bottoms, free);
        for level in 0..self.touched.len() {
            let here = std::mem::take(&mut self.touched[level]);
            let found = self.common(&here, bottoms);
            if found.is_empty() {
                for &switch in &here {
                    if self.mask(switch).iter().any(|&word| word != 0) {
                        self.lift(graph, view, switch, free);
                    }
                }
            }
            self.touched[level] = here;
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// The colours free on the whole tree below an ancestor that [`Self::ancestors`] gave.
    pub(super) fn mask(&self, switch: u32) -> &Words {
        let start = switch as usize * self.words;
        &self.masks[start..start + self.words]
    }

    /// Whether a switch is above all members of the last climb, which had so many switches.
    pub(super) fn is_above(&self, switch: u32, bottoms: usize) -> bool {
        let at = switch as usize;
        self.stamp[at] == self.now && self.below[at] as usize == bottoms
    }

    /// For each of the first `colours` colours the common ancestor (of the lowest level that has any) whose tree meets
    /// the fewest places where the colour is taken.
    pub(super) fn least_taken(
        &mut self,
        graph: &SwitchGraph,
        view: &View<'_>,
        bottoms: &[(u32, u32)],
        colours: u16,
        order: impl Fn(u32) -> u32,
    ) -> Vec<(u16, u32)> {
        let width = usize::from(colours);
        self.taken.resize(self.level.len() * width, 0);
        let all = vec![u64::MAX; self.words];
        self.start(view, graph, bottoms, &all);
        for &(switch, _) in bottoms {
            let start = switch as usize * width;
            self.taken[start..start + width].fill(0);
            if view.per_switch {
                let places = view.colour_use.owners(graph.node(switch).index());
                count(&mut self.taken[start..start + width], places);
            }
        }
        for level in 0..self.touched.len() {
            let here = std::mem::take(&mut self.touched[level]);
            let full = |&&switch: &&u32| self.below[switch as usize] as usize == bottoms.len();
            let found: Vec<u32> = here.iter().filter(full).copied().collect();
            if !found.is_empty() {
                self.touched[level] = here;
                let best = |colour: u16| {
                    found.iter().copied().min_by_key(|&switch| {
                        let at = switch as usize;
                        let taken = self.taken[at * width + usize::from(colour)];
                        (taken, self.most[at], order(switch), switch)
                    })
                };
                return (0..colours)
                    .filter_map(|colour| Some((colour, best(colour)?)))
                    .collect();
            }
            for &switch in &here {
                self.lift_counting(graph, view, switch, width);
            }
            self.touched[level] = here;
        }
        Vec::new()
    }

    /// The tree below a common ancestor of the last climb: for each switch but the root its port towards the root. Of
    /// parallel cables it takes the least loaded one that is free in the colour; where `colour` is not given, or none
    /// is free, the least loaded one that works.
    pub(super) fn tree(
        &self,
        fabric: &Fabric,
        graph: &SwitchGraph,
        view: &View<'_>,
        root: u32,
        colour: Option<u16>,
    ) -> Vec<UpLink> {
        let mut up = Vec::new();
        let mut open = vec![root];
        while let Some(switch) = open.pop() {
            let level = self.level[switch as usize];
            for bundle in bundles(graph.edges_of(switch)) {
                let child = bundle[0].peer;
                if self.level[child as usize] >= level || self.stamp[child as usize] != self.now {
                    continue;
                }
                let taken = |edge: &&Edge| {
                    let per_port = colour.filter(|_| !view.per_switch);
                    per_port.is_some_and(|c| !holds(view.colour_use.free(edge.link.index()), c))
                };
                let cable = bundle
                    .iter()
                    .filter(|edge| view.links.is_up(edge.link))
                    .min_by_key(|edge| (taken(edge), view.colour_use.load(edge.link), edge.port));
                if let Some(edge) = cable {
                    up.push(UpLink {
                        node: graph.node(child),
                        port: fabric.port(edge.port).peer,
                    });
                    open.push(child);
                }
            }
        }
        up
    }

    fn start(
        &mut self,
        view: &View<'_>,
        graph: &SwitchGraph,
        bottoms: &[(u32, u32)],
        free: &Words,
    ) {
        self.touched.iter_mut().for_each(Vec::clear);
        self.now = self.now.wrapping_add(1);
        if self.now == 0 {
            self.stamp.fill(0);
            self.now = 1;
        }
        for &(switch, _) in bottoms {
            self.touch(graph, view, switch, free);
            self.below[switch as usize] = 1;
        }
    }

    fn touch(&mut self, graph: &SwitchGraph, view: &View<'_>, switch: u32, free: &Words) {
        let at = switch as usize;
        self.stamp[at] = self.now;
        self.below[at] = 0;
        self.most[at] = 0;
        self.sum[at] = 0;
        let mask = &mut self.masks[at * self.words..(at + 1) * self.words];
        mask.copy_from_slice(free);
        if view.per_switch {
            intersect(mask, view.colour_use.free(graph.node(switch).index()));
        }
        self.touched[usize::from(self.level[at])].push(switch);
    }

    fn common(&self, here: &[u32], bottoms: &[(u32, u32)]) -> Vec<Ancestor> {
        here.iter()
            .filter(|&&switch| self.below[switch as usize] as usize == bottoms.len())
            .filter(|&&switch| self.mask(switch).iter().any(|&word| word != 0))
            .map(|&switch| Ancestor {
                switch,
                load: (self.most[switch as usize], self.sum[switch as usize]),
            })
            .collect()
    }

    fn lift(&mut self, graph: &SwitchGraph, view: &View<'_>, switch: u32, free: &Words) {
        let level = self.level[switch as usize];
        for bundle in bundles(graph.edges_of(switch)) {
            if self.level[bundle[0].peer as usize] <= level {
                continue;
            }
            let Some(load) = least_load(view, bundle) else {
                continue;
            };
            let parent = bundle[0].peer as usize;
            if self.stamp[parent] != self.now {
                self.touch(graph, view, bundle[0].peer, free);
            }
            self.add_child(parent, switch as usize, load);
            // The parent keeps what is free below the child and on one of the cables.
            for word in 0..self.words {
                let cables = if view.per_switch {
                    u64::MAX
                } else {
                    let up = bundle.iter().filter(|edge| view.links.is_up(edge.link));
                    up.fold(0, |all, edge| {
                        all | view.colour_use.free(edge.link.index())[word]
                    })
                };
                self.masks[parent * self.words + word] &=
                    self.masks[switch as usize * self.words + word] & cables;
            }
        }
    }

    fn lift_counting(&mut self, graph: &SwitchGraph, view: &View<'_>, switch: u32, width: usize) {
        let level = self.level[switch as usize];
        let all = vec![u64::MAX; self.words];
        for bundle in bundles(graph.edges_of(switch)) {
            if self.level[bundle[0].peer as usize] <= level {
                continue;
            }
            let Some(load) = least_load(view, bundle) else {
                continue;
            };
            let parent = bundle[0].peer as usize;
            if self.stamp[parent] != self.now {
                self.touch(graph, view, bundle[0].peer, &all);
                let row = &mut self.taken[parent * width..(parent + 1) * width];
                row.fill(0);
                if view.per_switch {
                    count(
                        row,
                        view.colour_use.owners(graph.node(bundle[0].peer).index()),
                    );
                }
            }
            self.add_child(parent, switch as usize, load);
            for colour in 0..width {
                self.taken[parent * width + colour] += self.taken[switch as usize * width + colour];
            }
            let up = || bundle.iter().filter(|edge| view.links.is_up(edge.link));
            if let (false, Some(edge)) = (view.per_switch, up().next()) {
                let row = &mut self.taken[parent * width..(parent + 1) * width];
                for &(colour, _) in view.colour_use.owners(edge.link.index()) {
                    let everywhere =
                        || up().all(|edge| !holds(view.colour_use.free(edge.link.index()), colour));
                    if usize::from(colour) < width && (bundle.len() == 1 || everywhere()) {
                        row[usize::from(colour)] += 1;
                    }
                }
            }
        }
    }

    fn add_child(&mut self, parent: usize, child: usize, load: u32) {
        self.below[parent] += self.below[child];
        self.most[parent] = self.most[parent].max(self.most[child]).max(load);
        self.sum[parent] += self.sum[child] + u64::from(load);
    }
}

fn count(taken: &mut [u32], owners: &[(u16, u32)]) {
    for &(colour, _) in owners {
        if let Some(count) = taken.get_mut(usize::from(colour)) {
            *count += 1;
        }
    }
}

fn least_load(view: &View<'_>, bundle: &[Edge]) -> Option<u32> {
    bundle
        .iter()
        .filter(|edge| view.links.is_up(edge.link))
        .map(|edge| view.colour_use.load(edge.link))
        .min()
}

/// Cables to the same neighbour that stand side by side.
fn bundles(edges: &[Edge]) -> impl Iterator<Item = &[Edge]> {
    edges.chunk_by(|a, b| a.peer == b.peer)
}
