//! The tree of a group: that of equation (3) or (4) where its links are up, the next one else, shortest ways in the last
//! resort.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    ops::Range,
};

use raddle_fabric::{NodeKind, Role};
use raddle_units::{NodeId, PortId};

use super::PerSwitch;
use crate::Mgid;

/// Switches of a tree with their ports, ascending.
pub(super) type Ports = BTreeMap<NodeId, Vec<PortId>>;

#[derive(Clone, Debug)]
pub(super) struct GroupTree {
    /// Height of the root: 1 for an L0 switch to 4.
    pub(super) height: u8,
    pub(super) ports: Ports,
    pub(super) unreached: usize,
    /// Not the tree that it has while all links are up.
    pub(super) displaced: bool,
}

impl PerSwitch {
    /// The tree of a group with these members (Algorithm 1), over links that are up.
    pub(super) fn tree_of(&self, mgid: Mgid, members: &BTreeSet<NodeId>) -> GroupTree {
        Build::new(self, members).run(mgid)
    }
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
        let home = self.engine.home(mgid);
        let tree_groups = self.engine.tree_groups(mgid);
        let mut attempt = 0usize;
        let turns = (home.group..tree_groups.end).chain(tree_groups.start..home.group);
        for g in turns.filter(|_| !strange) {
            if one_cn {
                if let Some(ports) = self.in_cn(g) {
                    return self.finish(ports, 2, attempt);
                }
                attempt += 1;
                continue;
            }
            for within in 0..shape.p {
                let tn = g * shape.p + (home.colour % shape.p + within) % shape.p;
                let roots = if one_block { 1 } else { shape.w };
                for j in 0..roots {
                    if let Some(ports) = self.in_tn(g, tn, (!one_block).then_some(j)) {
                        return self.finish(ports, if one_block { 3 } else { 4 }, attempt);
                    }
                    attempt += 1;
                }
            }
        }
        self.by_search(&tree_groups)
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

    /// Where no regular tree is whole: few links of other tree groups, and of such ways the shortest from the first
    /// member's switch, whatever they are. Members that are cut off from it have such a tree among themselves.
    fn by_search(mut self, tree_groups: &Range<u32>) -> GroupTree {
        let fabric = &self.engine.fabric;
        let places = std::mem::take(&mut self.places);
        let mut search = Search {
            engine: self.engine,
            tree_groups,
            wanted: places.iter().map(|&(_, l0)| l0).collect(),
            found: BTreeMap::new(),
        };
        let mut ports = Ports::new();
        let first = places.first().map(|&(_, l0)| l0);
        for &(_, l0) in &places {
            search.from(l0);
            if search.found.get(&l0).map(|found| found.root) != first {
                self.unreached += self.leaves.get(&l0).map_or(0, Vec::len);
            }
            let mut node = l0;
            while let Some(up) = search.towards(node) {
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

/// Links of other tree groups on a way, and all its links.
type Cost = (u32, u32);

#[derive(Clone, Copy)]
struct Found {
    cost: Cost,
    /// The port back; none at the root. Costs fall from switch to switch on the way back, so that it ends.
    towards: Option<PortId>,
    root: NodeId,
}

/// Ways from switches to all that they reach.
struct Search<'a> {
    engine: &'a PerSwitch,
    tree_groups: &'a Range<u32>,
    /// Switches of members.
    wanted: BTreeSet<NodeId>,
    found: BTreeMap<NodeId, Found>,
}

impl Search<'_> {
    /// Finds the ways from a switch, unless another one has reached it.
    fn from(&mut self, root: NodeId) {
        if self.found.contains_key(&root) {
            return;
        }
        let fabric = &self.engine.fabric;
        let mut queue = Queue::default();
        self.reach(root, (0, 0), None, root, &mut queue);
        while let Some((cost, node)) = queue.pop() {
            if self.found.get(&node).is_some_and(|found| found.cost < cost) {
                continue;
            }
            if cost.0 > 0 && self.wanted.contains(&node) {
                self.pay(node, &mut queue);
                continue;
            }
            for port in fabric.ports_of(node) {
                let peer = fabric.port(port.peer).node;
                if fabric.kind(peer) == NodeKind::Switch && self.engine.links.is_up(port.link) {
                    let foreign = u32::from(self.is_foreign(node, peer));
                    let there = (cost.0 + foreign, cost.1 + 1);
                    self.reach(peer, there, Some(port.peer), root, &mut queue);
                }
            }
        }
    }

    fn reach(
        &mut self,
        node: NodeId,
        cost: Cost,
        towards: Option<PortId>,
        root: NodeId,
        queue: &mut Queue,
    ) {
        if self.found.get(&node).is_none_or(|found| cost < found.cost) {
            let found = Found {
                cost,
                towards,
                root,
            };
            self.found.insert(node, found);
            queue.push(cost, node);
        }
    }

    /// The way to a member's switch belongs to the tree: to others its links cost nothing any more (Takahashi and
    /// Matsuyama's heuristic for Steiner trees).
    fn pay(&mut self, node: NodeId, queue: &mut Queue) {
        let fabric = &self.engine.fabric;
        let mut way = Vec::new();
        let mut at = node;
        while let Some(found) = self.found.get(&at).filter(|found| found.cost.0 > 0) {
            way.push(at);
            let Some(up) = found.towards else { break };
            at = fabric.port(fabric.port(up).peer).node;
        }
        let mut hops = self.found.get(&at).map_or(0, |found| found.cost.1);
        for &node in way.iter().rev() {
            hops += 1;
            if let Some(found) = self.found.get_mut(&node) {
                found.cost = (0, hops);
                queue.push(found.cost, node);
            }
        }
    }

    /// Whether trees of other tree groups use the link between two switches.
    fn is_foreign(&self, a: NodeId, b: NodeId) -> bool {
        [a, b].into_iter().any(|node| {
            self.engine
                .tree_group_of(node)
                .is_some_and(|group| !self.tree_groups.contains(&group))
        })
    }

    fn towards(&self, node: NodeId) -> Option<PortId> {
        self.found.get(&node)?.towards
    }
}

/// Switches by cost, then in the order in which they came.
#[derive(Default)]
struct Queue {
    heap: BinaryHeap<Reverse<(Cost, u64, NodeId)>>,
    turn: u64,
}

impl Queue {
    fn push(&mut self, cost: Cost, node: NodeId) {
        self.turn += 1;
        self.heap.push(Reverse((cost, self.turn, node)));
    }

    fn pop(&mut self) -> Option<(Cost, NodeId)> {
        self.heap.pop().map(|Reverse((cost, _, node))| (cost, node))
    }
}
