//! MR4LMS, the earlier algorithm of the same authors: a tree for each group from the least loaded root, coloured so that
//! no two trees share a link and a colour, and groups merged where no colour is left.
//!
//! Only an outline of it is published (Chen et al., C-MR4LMS (JCRD, 10.7544/issn1000-1239.20210582), section 1.2).
//! What follows it, and what is ours:
//!
//! - (a) *Build, then colour.* Candidate roots are the switches from which the farthest member is nearest, in order of
//!   load; each has its least-hop tree, and the lowest colour that is free on all of it is taken. Ours: load is the
//!   largest EFI on the tree's links between switches, then the groups rooted at the switch, then the sum of EFIs.
//! - (b) *Colour, then build.* Where (a) finds nothing: the lowest colour whose free links join all members, and inside
//!   them a least-hop tree from a root in their middle. Ours: such a tree may turn up again after it went down. On a
//!   fat tree (a) has already tried all trees that do not, so that [`Mr4lmsSettings::detours`] can turn (b) off.
//! - (c) *Merge.* Where (b) finds nothing either: for each colour the tree that meets the fewest taken places, and the
//!   groups that it would meet. They are absorbed in the colour in which they are most alike to the new group, and
//!   the union is routed again from (a), until it fits. Ours: alike is the Jaccard index of the members, then that of
//!   the links, then the fewest hosts added.
//!
//! Trees depend on the order in which groups arrive: the algorithm's known fault.

mod climb;
mod colour_use;

use std::{cmp::Ordering, collections::BTreeMap};

use raddle_fabric::Fabric;
use raddle_units::{LinkId, NodeId};

use self::{
    climb::{Climb, View},
    colour_use::{ColourUse, holds, intersect, lowest},
};
use super::{
    Changes, Colour, Group, Mgid, MulticastEngine, MulticastError, TableMode, Tree, UpLink,
    fabric_state::{FabricState, Reach, changes, check_groups},
    hops::FAR,
};

/// Roots that a search over a fabric that is no fat tree tries for a group.
const SEARCHED_ROOTS: usize = 16;
/// Colours that a merge looks at.
const MERGE_COLOURS: u32 = 512;
/// Most words of 64 colours at all links and switches together (1 GiB).
const MAX_WORDS: usize = 1 << 27;

/// What may be chosen about [`Mr4lms`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mr4lmsSettings {
    /// Step (b): trees may go down and up again inside the links where a colour is free. The published figures are met
    /// best with it. Such trees can close a credit loop with the unicast routes ([`super::CreditGraph`] tells); trees
    /// without detours on a fat tree cannot. On other fabrics (b) is always taken.
    pub detours: bool,
}

impl Default for Mr4lmsSettings {
    fn default() -> Self {
        Self { detours: true }
    }
}

/// How groups found their trees; merged groups count each time that they were routed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mr4lmsSteps {
    /// Trees built, then coloured: step (a).
    pub built: u64,
    /// Trees built inside the free links of a colour: step (b).
    pub detoured: u64,
    /// Groups or merged sets absorbed by another: step (c).
    pub absorbed: u64,
}

/// The engine `mr4lms`. Works on any fabric and in both table modes.
#[derive(Clone, Debug)]
pub struct Mr4lms<'a> {
    state: FabricState<'a>,
    mode: TableMode,
    colours: u32,
    settings: Mr4lmsSettings,
    climb: Option<Climb>,
    colour_use: ColourUse,
    /// Groups rooted at each switch.
    rooted: Vec<u32>,
    groups: BTreeMap<Mgid, Member>,
    trees: Vec<Option<Placed>>,
    vacant: Vec<u32>,
    steps: Mr4lmsSteps,
    /// Number of the present call that changes something.
    call: u64,
    /// Per node: the last mark, for comparing member sets.
    marks: Vec<u32>,
    mark: u32,
}

#[derive(Clone, Debug)]
struct Member {
    members: Vec<NodeId>,
    tree: u32,
}

/// A tree in place, and the union of its groups' members.
#[derive(Clone, Debug)]
struct Placed {
    tree: Tree,
    members: Vec<NodeId>,
    cut_off: Vec<NodeId>,
    /// The call that made it.
    call: u64,
}

/// A tree that might be.
struct Plan {
    root: u32,
    colour: u16,
    up: Vec<UpLink>,
}

/// How alike a group and those that it would absorb are; more is better.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Similarity {
    /// Common members, and the size of the union.
    members: (u64, u64),
    links: (u64, u64),
    added: u64,
}

impl Similarity {
    fn compare(&self, other: &Self) -> Ordering {
        let ratio = |a: (u64, u64), b: (u64, u64)| (a.0 * b.1).cmp(&(b.0 * a.1));
        ratio(self.members, other.members)
            .then_with(|| ratio(self.links, other.links))
            .then_with(|| other.added.cmp(&self.added))
    }
}

impl<'a> Mr4lms<'a> {
    /// An engine without groups, all links up.
    ///
    /// # Errors
    /// No colour, or more than the fabric's size allows (65,536 at most); a switch with more ports than a table entry
    /// holds.
    pub fn new(
        fabric: &'a Fabric,
        mode: TableMode,
        colours: u32,
        settings: Mr4lmsSettings,
    ) -> Result<Self, MulticastError> {
        let state = FabricState::new(fabric, colours)?;
        let places = match mode {
            TableMode::PerPort => fabric.links().len(),
            TableMode::PerSwitch => fabric.node_count(),
        };
        let words = colours.div_ceil(64) as usize;
        if places.max(fabric.switches().len()) * words > MAX_WORDS {
            return Err(MulticastError::BadColours {
                colours,
                limit: (MAX_WORDS / places * 64) as u32,
            });
        }
        Ok(Self {
            climb: Climb::new(fabric, &state.graph, words),
            colour_use: ColourUse::new(places, fabric.links().len(), colours),
            rooted: vec![0; state.graph.len()],
            state,
            mode,
            colours,
            settings,
            groups: BTreeMap::new(),
            trees: Vec::new(),
            vacant: Vec::new(),
            steps: Mr4lmsSteps::default(),
            call: 0,
            marks: vec![0; fabric.node_count()],
            mark: 0,
        })
    }

    /// How the groups since the start found their trees.
    pub fn steps(&self) -> Mr4lmsSteps {
        self.steps
    }

    fn view(&self) -> View<'_> {
        View {
            links: &self.state.links,
            colour_use: &self.colour_use,
            per_switch: self.mode == TableMode::PerSwitch,
        }
    }

    /// Routes these groups as one, absorbing others where it must; those are added to `removed`.
    fn place(&mut self, groups: Vec<Mgid>, removed: &mut Vec<Placed>) {
        let mut groups = groups;
        let mut members = self.union(&groups);
        loop {
            let reach = self.state.reach(&members);
            let plan = if reach.hosts.is_empty() {
                let home = self.state.home(members[0]);
                Some(Plan {
                    root: self.state.graph.ordinal(home),
                    colour: 0,
                    up: Vec::new(),
                })
            } else {
                self.find(&reach)
            };
            let (plan, hit) = match plan {
                Some(plan) => (plan, Vec::new()),
                None => self.most_alike(&reach),
            };
            if hit.is_empty() {
                groups.sort_unstable();
                self.record_tree(plan, groups, members, reach.cut_off);
                return;
            }
            self.steps.absorbed += hit.len() as u64;
            for tree in hit {
                let placed = self.remove(tree);
                groups.extend(&placed.tree.groups);
                removed.push(placed);
            }
            members = self.union(&groups);
        }
    }

    fn union(&self, groups: &[Mgid]) -> Vec<NodeId> {
        let sets = groups.iter().filter_map(|mgid| self.groups.get(mgid));
        let mut members: Vec<NodeId> = sets.flat_map(|group| &group.members).copied().collect();
        if groups.len() > 1 {
            members.sort_unstable();
            members.dedup();
        }
        members
    }

    /// Steps (a) and (b).
    fn find(&mut self, reach: &Reach) -> Option<Plan> {
        let plan = match self.climb.is_some() {
            true => self.find_by_climbing(reach),
            false => self.find_by_search(reach),
        };
        if plan.is_some() {
            self.steps.built += 1;
            return plan;
        }
        // On a fabric where (a) tried only some roots, (b) is not a matter of choice.
        if !self.settings.detours && self.climb.is_some() {
            return None;
        }
        let plan = self.find_inside_colour(reach);
        self.steps.detoured += u64::from(plan.is_some());
        plan
    }

    /// Colours that are free on the only links of the hosts.
    fn free_at_hosts(&self, hosts: &[NodeId]) -> Vec<u64> {
        let fabric = self.state.fabric;
        let mut free = vec![u64::MAX; self.colour_use.words()];
        for &host in hosts {
            let place = match self.mode {
                TableMode::PerPort => fabric.ports_of(host)[0].link.index(),
                TableMode::PerSwitch => self.state.home(host).index(),
            };
            intersect(&mut free, self.colour_use.free(place));
        }
        free
    }

    fn find_by_climbing(&mut self, reach: &Reach) -> Option<Plan> {
        let free = self.free_at_hosts(&reach.hosts);
        let mut climb = self.climb.take()?;
        let graph = &self.state.graph;
        let ancestors = climb.ancestors(graph, &self.view(), &reach.at, &free);
        let best = ancestors.iter().min_by_key(|ancestor| {
            let rooted = self.rooted[ancestor.switch as usize];
            (ancestor.load.0, rooted, ancestor.load.1, ancestor.switch)
        });
        let plan = best.and_then(|best| {
            let colour = lowest(climb.mask(best.switch))?;
            let up = self.climbed_tree(&climb, reach, best.switch, Some(colour));
            Some(Plan {
                root: best.switch,
                colour,
                up,
            })
        });
        self.climb = Some(climb);
        plan
    }

    fn climbed_tree(
        &self,
        climb: &Climb,
        reach: &Reach,
        root: u32,
        colour: Option<u16>,
    ) -> Vec<UpLink> {
        let FabricState { fabric, graph, .. } = &self.state;
        let mut up = climb.tree(fabric, graph, &self.view(), root, colour);
        up.extend(reach.hosts.iter().map(|&node| UpLink {
            node,
            port: fabric.first_port(node),
        }));
        up
    }

    /// The switches with the least hops to the farthest member, then the least load.
    fn candidates(&mut self, reach: &Reach) -> Vec<u32> {
        let FabricState {
            graph, links, rows, ..
        } = &mut self.state;
        let (sums, most) = rows.sum_and_max(graph, links, &reach.at);
        let mut candidates: Vec<u32> = (0..graph.len() as u32)
            .filter(|&switch| most[switch as usize] != u32::MAX)
            .collect();
        candidates.sort_by_key(|&switch| {
            let at = switch as usize;
            (most[at], self.rooted[at], sums[at], switch)
        });
        candidates.truncate(SEARCHED_ROOTS);
        candidates
    }

    fn searched_tree(&mut self, reach: &Reach, root: u32) -> Option<Vec<UpLink>> {
        let FabricState {
            fabric,
            graph,
            links,
            rows,
            ..
        } = &mut self.state;
        let hops = rows.row(graph, links, root);
        let tree = graph.shortest_tree(
            fabric,
            &reach.hosts,
            hops,
            |link| links.is_up(link),
            |link| self.colour_use.load(link),
        );
        tree.ok()
    }

    fn find_by_search(&mut self, reach: &Reach) -> Option<Plan> {
        let fabric = self.state.fabric;
        let mut best: Option<((u32, u32, u64), Plan)> = None;
        for root in self.candidates(reach) {
            let Some(up) = self.searched_tree(reach, root) else {
                continue;
            };
            let mut free = vec![u64::MAX; self.colour_use.words()];
            let places = self.places(&up, self.state.graph.node(root));
            if !places
                .iter()
                .all(|&place| intersect(&mut free, self.colour_use.free(place)))
            {
                continue;
            }
            let Some(colour) = lowest(&free) else {
                continue;
            };
            let switches = up.iter().filter(|up| !fabric.is_host(up.node));
            let loads = switches.map(|up| self.colour_use.load(fabric.port(up.port).link));
            let (most, sum) = loads.fold((0, 0), |(most, sum), load| {
                (load.max(most), sum + u64::from(load))
            });
            let key = (most, self.rooted[root as usize], sum);
            if best.as_ref().is_none_or(|(least, _)| key < *least) {
                best = Some((key, Plan { root, colour, up }));
            }
        }
        best.map(|(_, plan)| plan)
    }

    /// What trees of one colour must not share: the links of a tree, or its switches.
    fn places(&self, up: &[UpLink], root: NodeId) -> Vec<usize> {
        let fabric = self.state.fabric;
        match self.mode {
            TableMode::PerPort => up
                .iter()
                .map(|up| fabric.port(up.port).link.index())
                .collect(),
            TableMode::PerSwitch => {
                let switches = up.iter().map(|up| up.node);
                let switches = switches.filter(|&node| !fabric.is_host(node));
                let root = Some(root).filter(|_| !up.is_empty());
                switches.chain(root).map(NodeId::index).collect()
            }
        }
    }

    /// Step (b): the lowest colour whose free links join the members, and a tree inside it.
    fn find_inside_colour(&self, reach: &Reach) -> Option<Plan> {
        let FabricState { fabric, graph, .. } = &self.state;
        let colour = lowest(&self.joining_colours(reach))?;
        let usable = |link: LinkId| self.is_usable(link, colour);
        let first = self.home_in(reach.hosts[0], colour)?;
        let hops = graph.hops(first, usable);
        let farthest = |hops: &[u16]| {
            let at = reach
                .hosts
                .iter()
                .filter_map(|&host| self.home_in(host, colour));
            at.filter(|&at| hops[at as usize] != FAR)
                .max_by_key(|&at| (hops[at as usize], std::cmp::Reverse(at)))
        };
        let hops = graph.hops(farthest(&hops)?, usable);
        let mut root = farthest(&hops)?;
        // Halfway back on a longest way between two members: nearly the middle.
        for _ in 0..hops[root as usize] / 2 {
            let closer = hops[root as usize] - 1;
            let ways = graph.edges_of(root).iter();
            let closer = ways.filter(|e| hops[e.peer as usize] == closer && usable(e.link));
            root = closer
                .min_by_key(|e| (self.colour_use.load(e.link), e.port))?
                .peer;
        }
        let hops = graph.hops(root, usable);
        let load = |link| self.colour_use.load(link);
        let up = graph.shortest_tree(fabric, &reach.hosts, &hops, usable, load);
        Some(Plan {
            root,
            colour,
            up: up.ok()?,
        })
    }

    /// Whether a tree of a colour may use a link now.
    fn is_usable(&self, link: LinkId, colour: u16) -> bool {
        let fabric = self.state.fabric;
        self.state.links.is_up(link)
            && match self.mode {
                TableMode::PerPort => holds(self.colour_use.free(link.index()), colour),
                TableMode::PerSwitch => fabric.link(link).ports.iter().all(|&port| {
                    let node = fabric.port(port).node;
                    fabric.is_host(node) || holds(self.colour_use.free(node.index()), colour)
                }),
            }
    }

    /// The first switch that a host reaches in a colour.
    fn home_in(&self, host: NodeId, colour: u16) -> Option<u32> {
        let fabric = self.state.fabric;
        let mut ports = fabric.ports_of(host).iter();
        let port = ports.find(|port| self.is_usable(port.link, colour))?;
        Some(self.state.graph.ordinal(fabric.port(port.peer).node))
    }

    /// The colours in which the free links join all hosts: a flood from the first one in all colours at once.
    fn joining_colours(&self, reach: &Reach) -> Vec<u64> {
        let FabricState {
            fabric,
            graph,
            links,
            ..
        } = &self.state;
        let words = self.colour_use.words();
        let per_switch = self.mode == TableMode::PerSwitch;
        let at_switch = |switch: u32, word: usize| match per_switch {
            true => self.colour_use.free(graph.node(switch).index())[word],
            false => u64::MAX,
        };
        let on_link = |link: LinkId, word: usize| match (links.is_up(link), per_switch) {
            (false, _) => 0,
            (true, true) => u64::MAX,
            (true, false) => self.colour_use.free(link.index())[word],
        };
        let mut joined = vec![0; words];
        let mut reached = vec![0u64; graph.len()];
        let mut front = Vec::new();
        let mut next = Vec::new();
        let mut waiting = vec![false; graph.len()];
        for (word, joined) in joined.iter_mut().enumerate() {
            reached.fill(0);
            let ways = |host: NodeId| {
                let ports = fabric.ports_of(host).iter();
                ports.map(move |port| (graph.ordinal(fabric.port(port.peer).node), port.link))
            };
            for (switch, link) in ways(reach.hosts[0]) {
                reached[switch as usize] |= at_switch(switch, word) & on_link(link, word);
                front.push(switch);
            }
            while !front.is_empty() {
                for &switch in &front {
                    waiting[switch as usize] = false;
                }
                for &switch in &front {
                    let here = reached[switch as usize];
                    for edge in graph.edges_of(switch) {
                        let there = &mut reached[edge.peer as usize];
                        let new = here & !*there;
                        if new == 0 {
                            continue;
                        }
                        let new = new & on_link(edge.link, word) & at_switch(edge.peer, word);
                        if new != 0 {
                            *there |= new;
                            if !std::mem::replace(&mut waiting[edge.peer as usize], true) {
                                next.push(edge.peer);
                            }
                        }
                    }
                }
                front.clear();
                std::mem::swap(&mut front, &mut next);
            }
            *joined = reach.hosts.iter().fold(u64::MAX, |all, &host| {
                let reached = ways(host).fold(0, |any, (switch, link)| {
                    any | reached[switch as usize] & on_link(link, word)
                });
                all & reached
            });
        }
        joined
    }

    /// Step (c): a tree for each colour, the trees that it would meet, and of all these the most alike.
    fn most_alike(&mut self, reach: &Reach) -> (Plan, Vec<u32>) {
        let mut best: Option<(Similarity, Plan, Vec<u32>)> = None;
        self.mark += 1;
        for &host in &reach.hosts {
            self.marks[host.index()] = self.mark;
        }
        for (root, colours) in self.merge_roots(reach) {
            let colour = Some(colours.start).filter(|_| colours.len() == 1);
            let Some(up) = self.merge_tree(reach, root, colour) else {
                continue;
            };
            let places = self.places(&up, self.state.graph.node(root));
            for colour in colours {
                let (similarity, hit) = self.similarity(reach, &places, colour);
                let better = best
                    .as_ref()
                    .is_none_or(|(most, ..)| similarity.compare(most) == Ordering::Greater);
                if better {
                    let up = up.clone();
                    best = Some((similarity, Plan { root, colour, up }, hit));
                }
            }
        }
        match best {
            Some((_, plan, hit)) => (plan, hit),
            // `reach` holds only hosts of one connected part, so that there is always a root.
            None => (
                Plan {
                    root: reach.at[0].0,
                    colour: 0,
                    up: Vec::new(),
                },
                Vec::new(),
            ),
        }
    }

    /// Roots to merge at, each with the colours to look at.
    fn merge_roots(&mut self, reach: &Reach) -> Vec<(u32, std::ops::Range<u16>)> {
        let colours = self.colours.min(MERGE_COLOURS) as u16;
        if let Some(mut climb) = self.climb.take() {
            let graph = &self.state.graph;
            let rooted = |switch: u32| self.rooted[switch as usize];
            let roots = climb.least_taken(graph, &self.view(), &reach.at, colours, rooted);
            self.climb = Some(climb);
            if !roots.is_empty() {
                let one = |(colour, root)| (root, colour..colour + 1);
                return roots.into_iter().map(one).collect();
            }
        }
        let candidates = self.candidates(reach);
        candidates
            .into_iter()
            .map(|root| (root, 0..colours))
            .collect()
    }

    fn merge_tree(&mut self, reach: &Reach, root: u32, colour: Option<u16>) -> Option<Vec<UpLink>> {
        match &self.climb {
            Some(climb) if colour.is_some() && climb.is_above(root, reach.at.len()) => {
                Some(self.climbed_tree(climb, reach, root, colour))
            }
            _ => self.searched_tree(reach, root),
        }
    }

    fn similarity(&self, reach: &Reach, places: &[usize], colour: u16) -> (Similarity, Vec<u32>) {
        let mut hit: Vec<u32> = places
            .iter()
            .filter_map(|&place| self.colour_use.owner(place, colour))
            .collect();
        let met = hit.len() as u64;
        hit.sort_unstable();
        hit.dedup();
        let (mut common, mut theirs, mut links) = (0, 0, 0);
        for placed in hit
            .iter()
            .filter_map(|&tree| self.trees[tree as usize].as_ref())
        {
            let marked = |host: &&NodeId| self.marks[host.index()] == self.mark;
            common += placed.members.iter().filter(marked).count() as u64;
            theirs += placed.members.len() as u64;
            links += placed.tree.up.len() as u64;
        }
        let similarity = Similarity {
            members: (common, reach.hosts.len() as u64 + theirs - common),
            links: (met, places.len() as u64 + links - met),
            added: theirs - common,
        };
        (similarity, hit)
    }

    fn record_tree(
        &mut self,
        plan: Plan,
        groups: Vec<Mgid>,
        members: Vec<NodeId>,
        cut_off: Vec<NodeId>,
    ) {
        let fabric = self.state.fabric;
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.trees.push(None);
            self.trees.len() as u32 - 1
        });
        let mut up = plan.up;
        up.sort_unstable();
        let root = self.state.graph.node(plan.root);
        for place in self.places(&up, root) {
            self.colour_use.take(place, plan.colour, id);
        }
        for up in &up {
            self.colour_use
                .add_load(fabric.port(up.port).link, groups.len() as u32);
        }
        self.rooted[plan.root as usize] += groups.len() as u32;
        for mgid in &groups {
            if let Some(group) = self.groups.get_mut(mgid) {
                group.tree = id;
            }
        }
        self.trees[id as usize] = Some(Placed {
            tree: Tree {
                colour: Colour(plan.colour),
                copy: 0,
                root,
                groups,
                up,
            },
            members,
            cut_off,
            call: self.call,
        });
    }

    fn remove(&mut self, id: u32) -> Placed {
        let fabric = self.state.fabric;
        let placed = self.trees[id as usize]
            .take()
            .expect("a number in use names a tree");
        self.vacant.push(id);
        for place in self.places(&placed.tree.up, placed.tree.root) {
            self.colour_use.give_back(place, placed.tree.colour.0);
        }
        let groups = placed.tree.groups.len() as u32;
        for up in &placed.tree.up {
            self.colour_use
                .remove_load(fabric.port(up.port).link, groups);
        }
        let root = self.state.graph.ordinal(placed.tree.root);
        self.rooted[root as usize] -= groups;
        placed
    }

    /// Removes trees, routes the sets of groups given, each as one, and reports what that changed.
    fn again(&mut self, remove: &[u32], sets: Vec<Vec<Mgid>>) -> Changes {
        self.call += 1;
        let mut removed: Vec<Placed> = remove.iter().map(|&id| self.remove(id)).collect();
        for set in sets {
            self.place(set, &mut removed);
        }
        // A tree may have come and gone in this call.
        let old = removed
            .into_iter()
            .filter(|placed| placed.call != self.call);
        let before: Vec<Tree> = old.map(|placed| placed.tree).collect();
        let new = self.trees.iter().flatten();
        let after: Vec<Tree> = new
            .filter(|placed| placed.call == self.call)
            .map(|placed| placed.tree.clone())
            .collect();
        changes(self.state.fabric, self.mode, &before, &after)
    }

    fn which(&self, wanted: impl Fn(&Placed) -> bool) -> Vec<u32> {
        let trees = (0..).zip(&self.trees);
        trees
            .filter(|(_, placed)| placed.as_ref().is_some_and(&wanted))
            .map(|(id, _)| id)
            .collect()
    }

    /// The other groups of a tree, each by itself.
    fn others(&self, tree: u32, mgid: Mgid) -> Vec<Vec<Mgid>> {
        let placed = self.trees[tree as usize].as_ref();
        let groups = placed.into_iter().flat_map(|placed| &placed.tree.groups);
        let others = groups.filter(|other| **other != mgid);
        others.map(|&other| vec![other]).collect()
    }

    /// Routes the groups of some trees again; merged groups stay together.
    fn again_together(&mut self, ids: &[u32]) -> Changes {
        let placed = ids
            .iter()
            .filter_map(|&id| self.trees[id as usize].as_ref());
        let mut sets: Vec<Vec<Mgid>> = placed.map(|placed| placed.tree.groups.clone()).collect();
        sets.sort_unstable();
        self.again(ids, sets)
    }
}

impl MulticastEngine for Mr4lms<'_> {
    fn name(&self) -> &'static str {
        "mr4lms"
    }

    fn table_mode(&self) -> TableMode {
        self.mode
    }

    fn colours(&self) -> u32 {
        self.colours
    }

    fn route(&mut self, groups: &[Group]) -> Result<Changes, MulticastError> {
        check_groups(self.state.fabric, groups)?;
        let old = self.which(|_| true);
        self.steps = Mr4lmsSteps::default();
        // Groups that stay keep their entry until they are routed again: nobody looks at it before.
        self.groups.clear();
        for group in groups {
            let members = group.members.clone();
            self.groups.insert(group.mgid, Member { members, tree: 0 });
        }
        let sets = groups.iter().map(|group| vec![group.mgid]).collect();
        Ok(self.again(&old, sets))
    }

    fn join(&mut self, group: &Group) -> Result<Changes, MulticastError> {
        group.check(self.state.fabric)?;
        let mgid = group.mgid;
        if self.groups.contains_key(&mgid) {
            return Err(MulticastError::DuplicateMgid { mgid });
        }
        let members = group.members.clone();
        self.groups.insert(mgid, Member { members, tree: 0 });
        Ok(self.again(&[], vec![vec![mgid]]))
    }

    /// Groups that were merged with it are routed again one by one, so that they part where they can.
    fn leave(&mut self, mgid: Mgid) -> Result<Changes, MulticastError> {
        let Some(group) = self.groups.remove(&mgid) else {
            return Err(MulticastError::UnknownMgid { mgid });
        };
        let sets = self.others(group.tree, mgid);
        Ok(self.again(&[group.tree], sets))
    }

    /// Groups that were merged with it are routed again one by one, then the group itself.
    fn change(&mut self, group: &Group) -> Result<Changes, MulticastError> {
        group.check(self.state.fabric)?;
        let mgid = group.mgid;
        let Some(entry) = self.groups.get_mut(&mgid) else {
            return Err(MulticastError::UnknownMgid { mgid });
        };
        if entry.members == group.members {
            return Ok(Changes::default());
        }
        entry.members.clone_from(&group.members);
        let tree = entry.tree;
        let mut sets = self.others(tree, mgid);
        sets.push(vec![mgid]);
        Ok(self.again(&[tree], sets))
    }

    fn fail(&mut self, link: LinkId) -> Result<Changes, MulticastError> {
        if !self.state.set_link(link, false)? {
            return Ok(Changes::default());
        }
        let fabric = self.state.fabric;
        let hit = self.which(|placed| placed.tree.links(fabric).any(|used| used == link));
        Ok(self.again_together(&hit))
    }

    fn repair(&mut self, link: LinkId) -> Result<Changes, MulticastError> {
        if !self.state.set_link(link, true)? {
            return Ok(Changes::default());
        }
        let hit = self.which(|placed| !placed.cut_off.is_empty());
        Ok(self.again_together(&hit))
    }

    fn groups(&self) -> Vec<Group> {
        let groups = self.groups.iter();
        groups
            .map(|(&mgid, group)| Group {
                mgid,
                members: group.members.clone(),
            })
            .collect()
    }

    fn colour_of(&self, mgid: Mgid) -> Option<Colour> {
        let tree = self.groups.get(&mgid)?.tree;
        let placed = self.trees[tree as usize].as_ref()?;
        Some(placed.tree.colour)
    }

    fn trees(&self) -> Vec<Tree> {
        let trees = self.trees.iter().flatten();
        let mut trees: Vec<Tree> = trees.map(|placed| placed.tree.clone()).collect();
        trees.sort_unstable_by_key(|tree| tree.groups[0]);
        trees
    }

    fn cut_off(&self) -> Vec<(Mgid, NodeId)> {
        let mut all = Vec::new();
        for (&mgid, group) in &self.groups {
            let Some(placed) = &self.trees[group.tree as usize] else {
                continue;
            };
            let members = group.members.iter().copied();
            let cut = members.filter(|host| placed.cut_off.binary_search(host).is_ok());
            all.extend(cut.map(|host| (mgid, host)));
        }
        all
    }
}
