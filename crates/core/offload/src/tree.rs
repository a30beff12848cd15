//! From the paths that queries took to the tree of switches of a group.
//!
//! A path goes up from a member's first switch and down to the master's. Of switches of one tier above the same switches
//! one is taken: the one with the most room, then with the least address. So spines share groups, and paths that an ECMP
//! hash spreads over several of them still meet. Switches with a single child compute nothing and are left out.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use raddle_wire::native::Reason;
use thiserror::Error;

/// A switch that a query has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its tier, from 1.
    pub tier: u8,
    /// Groups that it has room for.
    pub room: u32,
}

/// What is below a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Below {
    /// A member, by number.
    Member(u32),
    /// A switch, by its place in [`Tree::switches`].
    Switch(usize),
}

/// A switch of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeSwitch {
    /// Its address.
    pub address: Ipv4Addr,
    /// Place of its parent; `None`: the root.
    pub parent: Option<usize>,
    /// What is below it, in ascending order of [`Tree::least`].
    pub children: Vec<Below>,
    /// Least member below it.
    pub least: u32,
    /// Switches from it to the root, itself not counted.
    pub depth: usize,
}

/// The switches of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The root first, every switch before its children.
    pub switches: Vec<TreeSwitch>,
    /// Place of each member's switch.
    pub of_member: Vec<usize>,
}

/// Why paths make no tree.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TreeError {
    /// A query passed no switch that computes.
    #[error("no switch between member {member} and the master can compute")]
    NoSwitch {
        /// Whose.
        member: u32,
    },
    /// A path does not go up and then down.
    #[error("the path of member {member} does not go up tier by tier, then down")]
    Valley {
        /// Whose.
        member: u32,
    },
    /// The paths have no switch in common to which all lead.
    #[error("{roots} switches have no switch above them")]
    Roots {
        /// How many.
        roots: usize,
    },
    /// No switch of those that could take the place has room.
    #[error("switch {address} has no room")]
    NoRoom {
        /// One of them.
        address: Ipv4Addr,
    },
}

impl TreeError {
    /// The reason that members are told.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        match self {
            Self::NoSwitch { .. } => Reason::NoSwitch,
            Self::Valley { .. } | Self::Roots { .. } => Reason::NoTree,
            Self::NoRoom { .. } => Reason::NoRoom,
        }
    }
}

/// Switches that may take one place: above the same switches, of one tier.
#[derive(Debug)]
struct Candidates {
    /// Those that were joined into this one are empty.
    addresses: Vec<Ipv4Addr>,
    up: Vec<Ipv4Addr>,
    tier: u8,
}

impl Tree {
    /// The tree of members 0 to n - 1, whose queries took these paths, first switch first. `None` where a member is on the
    /// master's own host, as the master is: it belongs to the master's first switch.
    ///
    /// # Errors
    /// When there is no such tree.
    pub fn from_paths(paths: &[Option<Vec<Hop>>]) -> Result<Self, TreeError> {
        let mut rooms: BTreeMap<Ipv4Addr, u32> = BTreeMap::new();
        let mut place_of: BTreeMap<Ipv4Addr, usize> = BTreeMap::new();
        let mut places: Vec<Candidates> = Vec::new();
        let mut masters: Vec<Hop> = Vec::new();
        for (member, path) in (0..).zip(paths) {
            let Some(path) = path else { continue };
            let Some(last) = path.last() else {
                return Err(TreeError::NoSwitch { member });
            };
            masters.push(*last);
            let top = (1..path.len())
                .find(|at| path[*at].tier <= path[at - 1].tier)
                .unwrap_or(path.len());
            if (top..path.len()).any(|at| path[at].tier >= path[at - 1].tier) {
                return Err(TreeError::Valley { member });
            }
            for hop in path {
                let room = rooms.entry(hop.address).or_insert(hop.room);
                *room = hop.room.min(*room);
                place_of.entry(hop.address).or_insert_with(|| {
                    places.push(Candidates {
                        addresses: vec![hop.address],
                        up: Vec::new(),
                        tier: hop.tier,
                    });
                    places.len() - 1
                });
            }
            for pair in path.windows(2) {
                let (lower, upper) = if pair[0].tier < pair[1].tier {
                    (pair[0], pair[1])
                } else {
                    (pair[1], pair[0])
                };
                let up = &mut places[place_of[&lower.address]].up;
                if !up.contains(&upper.address) {
                    up.push(upper.address);
                }
            }
        }
        // A host with two first switches: the one with more room is its own.
        let most = masters
            .iter()
            .max_by_key(|hop| (rooms[&hop.address], std::cmp::Reverse(hop.address)));
        let Some(master) = most.map(|hop| hop.address) else {
            return Err(TreeError::NoSwitch { member: 0 });
        };

        join(&mut places, &mut place_of);
        let mut chosen = BTreeMap::new();
        for (at, place) in places
            .iter()
            .enumerate()
            .filter(|(_, p)| !p.addresses.is_empty())
        {
            let best = place
                .addresses
                .iter()
                .max_by_key(|address| (rooms[*address], std::cmp::Reverse(**address)));
            let Some(best) = best else { continue };
            if rooms[best] == 0 {
                return Err(TreeError::NoRoom { address: *best });
            }
            let next = place.up.iter().map(|address| place_of[address]);
            let parent = next.min_by_key(|place| places[*place].tier);
            chosen.insert(at, (*best, parent));
        }
        let first = |path: &Option<Vec<Hop>>| {
            let address = path
                .as_ref()
                .and_then(|p| p.first())
                .map_or(master, |h| h.address);
            place_of[&address]
        };
        assemble(&chosen, paths.iter().map(first).collect())
    }

    /// The least member below.
    #[must_use]
    pub fn least(&self, below: Below) -> u32 {
        match below {
            Below::Member(member) => member,
            Below::Switch(switch) => self.switches[switch].least,
        }
    }

    /// All members below, in ascending order.
    #[must_use]
    pub fn members(&self, below: Below) -> Vec<u32> {
        let mut found = Vec::new();
        let mut open = vec![below];
        while let Some(below) = open.pop() {
            match below {
                Below::Member(member) => found.push(member),
                Below::Switch(switch) => open.extend(&self.switches[switch].children),
            }
        }
        found.sort_unstable();
        found
    }
}

/// Joins places of one tier that are above the same place, lower tiers first.
fn join(places: &mut [Candidates], place_of: &mut BTreeMap<Ipv4Addr, usize>) {
    let mut tiers: Vec<u8> = places.iter().map(|place| place.tier).collect();
    tiers.sort_unstable();
    tiers.dedup();
    for tier in tiers {
        for lower in 0..places.len() {
            if places[lower].tier != tier || places[lower].addresses.is_empty() {
                continue;
            }
            let mut kept: Vec<usize> = Vec::new();
            for address in places[lower].up.clone() {
                let upper = place_of[&address];
                let same = kept
                    .iter()
                    .find(|place| places[**place].tier == places[upper].tier);
                let Some(&into) = same else {
                    kept.push(upper);
                    continue;
                };
                if into == upper {
                    continue;
                }
                let addresses = std::mem::take(&mut places[upper].addresses);
                let up = std::mem::take(&mut places[upper].up);
                for address in &addresses {
                    place_of.insert(*address, into);
                }
                places[into].addresses.extend(addresses);
                places[into].up.extend(up);
            }
        }
    }
}

/// Leaves out places with one child, and numbers the rest from the root.
fn assemble(
    chosen: &BTreeMap<usize, (Ipv4Addr, Option<usize>)>,
    mut of_member: Vec<usize>,
) -> Result<Tree, TreeError> {
    let mut parents: BTreeMap<usize, Option<usize>> = chosen
        .iter()
        .map(|(place, (_, parent))| (*place, *parent))
        .collect();
    let roots = parents.values().filter(|parent| parent.is_none()).count();
    if roots != 1 {
        return Err(TreeError::Roots { roots });
    }
    loop {
        let children = |place: usize| {
            parents
                .values()
                .filter(|parent| **parent == Some(place))
                .count()
                + of_member.iter().filter(|at| **at == place).count()
        };
        let needless = parents.keys().copied().find(|place| children(*place) < 2);
        let Some(place) = needless.filter(|_| parents.len() > 1) else {
            break;
        };
        let parent = parents.remove(&place).flatten();
        for above in parents.values_mut().filter(|above| **above == Some(place)) {
            *above = parent;
        }
        for at in of_member.iter_mut().filter(|at| **at == place) {
            // The root of several switches has switches below it, so a member's switch without a parent is not needless.
            *at = parent.unwrap_or(place);
        }
    }

    let mut order: Vec<usize> = Vec::new();
    let root = parents
        .iter()
        .find(|(_, parent)| parent.is_none())
        .map(|(place, _)| *place);
    order.extend(root);
    let mut at = 0;
    while at < order.len() {
        let place = order[at];
        order.extend(
            parents
                .iter()
                .filter(|(_, p)| **p == Some(place))
                .map(|(child, _)| *child),
        );
        at += 1;
    }
    let number = |place: usize| order.iter().position(|at| *at == place);
    let mut switches: Vec<TreeSwitch> = Vec::new();
    for place in &order {
        let parent = parents[place].and_then(number);
        switches.push(TreeSwitch {
            address: chosen[place].0,
            parent,
            children: Vec::new(),
            least: u32::MAX,
            depth: parent.map_or(0, |parent| switches[parent].depth + 1),
        });
    }
    for (member, place) in (0..).zip(&mut of_member) {
        *place = number(*place).unwrap_or_default();
        let switch = &mut switches[*place];
        switch.children.push(Below::Member(member));
        switch.least = switch.least.min(member);
    }
    for at in (1..switches.len()).rev() {
        let least = switches[at].least;
        if let Some(parent) = switches[at].parent {
            switches[parent].children.push(Below::Switch(at));
            switches[parent].least = switches[parent].least.min(least);
        }
    }
    let mut tree = Tree {
        switches,
        of_member,
    };
    for at in 0..tree.switches.len() {
        let mut children = std::mem::take(&mut tree.switches[at].children);
        children.sort_by_key(|child| tree.least(*child));
        tree.switches[at].children = children;
    }
    Ok(tree)
}
