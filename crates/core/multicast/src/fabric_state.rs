//! What the engines for any fabric share: the fabric with the links that are up, who reaches whom, and the difference of
//! two sets of trees as table writes.

use std::collections::{BTreeMap, BTreeSet};

use raddle_fabric::Fabric;
use raddle_units::{LinkId, NodeId};

use super::{
    Branch, Changes, Colour, Group, Mgid, MulticastError, PortSet, TableMode, Tree, check_ports,
    hops::{FAR, HopRows, SwitchGraph},
};
use raddle_unicast::LinkState;

/// Most colours that a [`Colour`] can number.
const MAX_COLOURS: u32 = 1 << 16;

/// The fabric with the links that are up.
#[derive(Clone, Debug)]
pub(super) struct FabricState<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) graph: SwitchGraph,
    pub(super) links: LinkState,
    /// Hops over the links that are up.
    pub(super) rows: HopRows,
    /// For each switch the lowest switch that it is connected with.
    parts: Vec<u32>,
}

/// The members that one tree can join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Reach {
    pub(super) hosts: Vec<NodeId>,
    /// Their switches, ascending, and how many there are on each.
    pub(super) at: Vec<(u32, u32)>,
    pub(super) cut_off: Vec<NodeId>,
}

impl<'a> FabricState<'a> {
    /// All links up.
    pub(super) fn new(fabric: &'a Fabric, colours: u32) -> Result<Self, MulticastError> {
        check_ports(fabric)?;
        if colours == 0 || colours > MAX_COLOURS {
            return Err(MulticastError::BadColours {
                colours,
                limit: MAX_COLOURS,
            });
        }
        let graph = SwitchGraph::new(fabric);
        let mut this = Self {
            fabric,
            rows: HopRows::new(&graph),
            graph,
            links: LinkState::all_up(fabric),
            parts: Vec::new(),
        };
        this.find_parts();
        Ok(this)
    }

    /// Marks a link as working or failed; whether that is new.
    pub(super) fn set_link(&mut self, link: LinkId, up: bool) -> Result<bool, MulticastError> {
        let links = self.fabric.links().len();
        if link.index() >= links {
            return Err(MulticastError::UnknownLink { link, links });
        }
        let new = self.links.is_up(link) != up;
        if new {
            self.links.set(link, up);
            self.rows.clear();
            self.find_parts();
        }
        Ok(new)
    }

    /// The hosts of the connected part of the fabric that has most of them; the others are cut off. A host counts
    /// where its first working port leads.
    pub(super) fn reach(&self, hosts: &[NodeId]) -> Reach {
        let attached = |host| self.graph.attachment(self.fabric, &self.links, host);
        let switches: Vec<Option<u32>> = hosts.iter().map(|&host| attached(host)).collect();
        let part = |switch: &Option<u32>| switch.map(|switch| self.parts[switch as usize]);
        let parts: Vec<Option<u32>> = switches.iter().map(part).collect();
        let first = parts.iter().flatten().next().copied();
        let best = if parts.iter().all(|part| *part == first) {
            first
        } else {
            let mut counts = BTreeMap::<u32, u32>::new();
            for &part in parts.iter().flatten() {
                *counts.entry(part).or_default() += 1;
            }
            let most = counts.iter().rev().max_by_key(|(_, count)| **count);
            most.map(|(part, _)| *part)
        };
        let mut reach = Reach {
            hosts: Vec::with_capacity(hosts.len()),
            at: Vec::new(),
            cut_off: Vec::new(),
        };
        let mut at = Vec::with_capacity(hosts.len());
        for ((&host, switch), part) in hosts.iter().zip(switches).zip(parts) {
            match switch.filter(|_| part == best) {
                Some(switch) => {
                    reach.hosts.push(host);
                    at.push(switch);
                }
                None => reach.cut_off.push(host),
            }
        }
        at.sort_unstable();
        reach.at = at
            .chunk_by(|a, b| a == b)
            .map(|run| (run[0], run.len() as u32))
            .collect();
        reach
    }

    /// The root of a tree without links: the switch that a host's first port leads to.
    pub(super) fn home(&self, host: NodeId) -> NodeId {
        self.fabric.peer_node(self.fabric.first_port(host))
    }

    fn find_parts(&mut self) {
        let mut parts = vec![u32::MAX; self.graph.len()];
        for switch in 0..self.graph.len() as u32 {
            if parts[switch as usize] != u32::MAX {
                continue;
            }
            parts[switch as usize] = switch;
            let mut open = vec![switch];
            while let Some(at) = open.pop() {
                for edge in self.graph.edges_of(at) {
                    if parts[edge.peer as usize] == u32::MAX && self.links.is_up(edge.link) {
                        parts[edge.peer as usize] = switch;
                        open.push(edge.peer);
                    }
                }
            }
        }
        self.parts = parts;
    }
}

/// The switch with the least key `(rank, place)` among those that are reached.
pub(super) fn best_switch(ranks: impl Iterator<Item = (u32, u32)>) -> Option<u32> {
    let reached = (0..)
        .zip(ranks)
        .filter(|(_, (rank, _))| *rank != u32::MAX && *rank != u32::from(FAR));
    reached
        .min_by_key(|&(switch, rank)| (rank, switch))
        .map(|(switch, _)| switch)
}

/// Whether these groups can be routed together: each is in order, none is there twice.
pub(super) fn check_groups(fabric: &Fabric, groups: &[Group]) -> Result<(), MulticastError> {
    let mut seen = BTreeSet::new();
    for group in groups {
        group.check(fabric)?;
        if !seen.insert(group.mgid) {
            return Err(MulticastError::DuplicateMgid { mgid: group.mgid });
        }
    }
    Ok(())
}

/// What leads from some trees to others: entries to clear, then entries to set, and the groups that moved.
///
/// Only the trees that differ need to be given.
pub(super) fn changes(
    fabric: &Fabric,
    mode: TableMode,
    before: &[Tree],
    after: &[Tree],
) -> Changes {
    let by_switch = |trees: &[Tree]| {
        let mut branches: Vec<Branch> = trees.iter().flat_map(|t| t.branches(fabric)).collect();
        branches.sort_unstable_by_key(|b| (b.switch, b.colour, b.down, b.up));
        branches
    };
    let (old, new) = (by_switch(before), by_switch(after));
    let at = |branch: &Branch| (branch.switch, branch.colour);
    let ports = |branches: &[Branch], key: (NodeId, Colour)| {
        let start = branches.partition_point(|branch| at(branch) < key);
        let same = branches[start..]
            .iter()
            .take_while(|branch| at(branch) == key);
        same.fold(PortSet::EMPTY, |all, b| all.union(&b.down).union(&b.up))
    };
    let mut branches = Vec::new();
    for group in old.chunk_by(|a, b| at(a) == at(b)) {
        let key = at(&group[0]);
        let (had, has) = (ports(group, key), ports(&new, key));
        let cleared = had.minus(&has);
        let clear = match mode {
            TableMode::PerPort => !cleared.is_empty(),
            TableMode::PerSwitch => has.is_empty(),
        };
        if clear {
            branches.push(Branch {
                switch: key.0,
                colour: key.1,
                down: PortSet::EMPTY,
                up: PortSet::EMPTY,
                cleared,
            });
        }
    }
    let unchanged = |branch: &Branch| {
        old.binary_search_by_key(&(at(branch), branch.down, branch.up), |b| {
            (at(b), b.down, b.up)
        })
        .is_ok()
    };
    branches.extend(new.iter().filter(|branch| !unchanged(branch)).copied());

    let places = |trees: &[Tree]| -> BTreeMap<Mgid, (Colour, NodeId)> {
        let groups = trees.iter().flat_map(|tree| {
            let place = (tree.colour, tree.root);
            tree.groups.iter().map(move |&mgid| (mgid, place))
        });
        groups.collect()
    };
    let (was, is) = (places(before), places(after));
    let moved = is
        .into_iter()
        .filter(|(mgid, place)| was.get(mgid).is_some_and(|old| old != place))
        .map(|(mgid, _)| mgid)
        .collect();
    Changes { branches, moved }
}
