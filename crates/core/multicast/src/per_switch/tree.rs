//! The tree of a group: that of equation (3) where its links are up, the next one else, shortest ways in the last resort.

use std::collections::{BTreeMap, BTreeSet};

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
