//! Which groups end up on one tree: the merges of fixed-root C-MR4LMS, found without building trees.

use std::collections::BTreeMap;

use raddle_fabric::{CnTnMap, CnTnShape, Fabric, Role};

use super::{MgidError, SpanningTrees};
use crate::{Mgid, groups::GroupSet};

/// Where the terminals of a CN/TN fat tree are: the L0 switch of each, the CN of each L0 switch, and the block (the CNs
/// below one L2 switch of every TN) of each CN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places {
    pub(super) l0_of: Vec<u32>,
    pub(super) cn_of: Vec<u32>,
    pub(super) block_of: Vec<u32>,
    pub(super) blocks: u32,
}

impl Places {
    /// A fabric with the same number of terminals on each L0 switch, as the builder makes it: `cns` CNs of `q` L0
    /// switches with `terminals_per_l0` terminals, `w` CNs in a block.
    ///
    /// # Panics
    /// When `w` is 0 or the fabric has 2^32 terminals.
    pub fn regular(cns: u32, q: u32, terminals_per_l0: u32, w: u32) -> Self {
        let l0s = cns * q;
        let terminals = l0s
            .checked_mul(terminals_per_l0)
            .expect("fewer than 2^32 terminals");
        Self {
            l0_of: (0..terminals)
                .map(|terminal| terminal / terminals_per_l0)
                .collect(),
            cn_of: (0..l0s).map(|l0| l0 / q).collect(),
            block_of: (0..cns).map(|cn| cn / w).collect(),
            blocks: cns.div_ceil(w),
        }
    }

    /// The places of a fabric's hosts in the fat tree that was found in it.
    pub fn of_map(fabric: &Fabric, map: &CnTnMap) -> Self {
        let CnTnShape { q, w, cns, .. } = map.shape();
        let l0_of = fabric.hosts().iter().map(|&host| match map.role(host) {
            Role::Host { l0 } => match map.role(l0) {
                Role::L0 { cn, i } => cn * q + i,
                _ => 0,
            },
            _ => 0,
        });
        Self {
            l0_of: l0_of.collect(),
            cn_of: (0..cns * q).map(|l0| l0 / q).collect(),
            block_of: (0..cns).map(|cn| cn / w).collect(),
            blocks: cns.div_ceil(w),
        }
    }

    /// Terminals of the fabric.
    pub fn terminals(&self) -> usize {
        self.l0_of.len()
    }

    /// Links that the spanning trees of one colour and tree group can use, and terminal links, in one numbering.
    pub(super) fn links(&self) -> usize {
        self.l0_of.len() + self.cn_of.len() + self.block_of.len() + self.blocks as usize
    }

    /// Checks that all members are terminals of the fabric.
    pub(super) fn check(&self, set: &GroupSet) -> Result<(), MgidError> {
        for communicator in &set.communicators {
            if let Some(&terminal) = communicator.members.last()
                && terminal as usize >= self.terminals()
            {
                return Err(MgidError::UnknownTerminal {
                    group: communicator.name.clone(),
                    terminal,
                    terminals: self.terminals() as u32,
                });
            }
        }
        Ok(())
    }

    /// L0 switch, CN and block of a terminal.
    fn above(&self, terminal: u32) -> [u32; 3] {
        let l0 = self.l0_of[terminal as usize];
        let cn = self.cn_of[l0 as usize];
        [l0, cn, self.block_of[cn as usize]]
    }

    /// Level of the nearest common ancestor of two terminals: 0 for an L0 switch to 3 for an L3 switch.
    fn height_between(&self, a: u32, b: u32) -> u32 {
        let pairs = self.above(a).into_iter().zip(self.above(b));
        pairs.take_while(|(a, b)| a != b).count() as u32
    }

    /// The link upwards from the L0 switch (level 0), CN or block of a terminal.
    fn uplink(&self, terminal: u32, level: u32) -> u32 {
        let before = [0, self.cn_of.len(), self.cn_of.len() + self.block_of.len()];
        let (level, first) = (level as usize, self.l0_of.len());
        (first + before[level]) as u32 + self.above(terminal)[level]
    }

    /// Links of the fixed-root tree that joins `members`, terminal links included (Algorithm 1): up to the nearest
    /// common ancestor.
    pub(super) fn tree_links(&self, members: &[u32]) -> TreeLinks {
        let up = |below: &[u32], of: &[u32]| {
            let mut above: Vec<u32> = below.iter().map(|&node| of[node as usize]).collect();
            above.sort_unstable();
            above.dedup();
            above
        };
        let l0s = up(members, &self.l0_of);
        let cns = up(&l0s, &self.cn_of);
        let blocks = up(&cns, &self.block_of);
        let mut links = members.to_vec();
        let mut first = self.l0_of.len() as u32;
        let mut add = |nodes: &[u32], count: usize| {
            if nodes.len() > 1 {
                links.extend(nodes.iter().map(|&node| first + node));
            }
            first += count as u32;
            nodes.len() > 1
        };
        // A level with several nodes needs all links below the ancestor: L0 uplinks even where the CN is one.
        let spans_blocks = blocks.len() > 1;
        let spans_cns = cns.len() > 1;
        let mut height = 0;
        if add(&l0s, self.cn_of.len()) {
            height = 1;
        }
        if add(if spans_cns { &cns } else { &[] }, self.block_of.len()) {
            height = 2;
        }
        if add(
            if spans_blocks { &blocks } else { &[] },
            self.blocks as usize,
        ) {
            height = 3;
        }
        TreeLinks { links, height }
    }
}

/// The links of one tree.
pub(super) struct TreeLinks {
    /// Numbers of the links: terminals first, then uplinks of L0 switches, CNs and blocks.
    pub(super) links: Vec<u32>,
    /// Level of the root: 0 for an L0 switch to 3 for an L3 switch.
    pub(super) height: u8,
}

/// What remains after merging.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sharing {
    /// Trees that are left, merged groups counted once.
    pub trees_left: usize,
    /// Groups on the tree that has the most: max TFI.
    pub max_tfi: usize,
    /// Groups on each tree, in order of the lowest group of each.
    pub tfi: Vec<usize>,
    /// For each group the lowest number of a group on its tree.
    pub tree_of: Vec<usize>,
}

impl Sharing {
    /// Groups that do not have a tree of their own.
    pub fn merges(&self) -> usize {
        self.tree_of.len() - self.trees_left
    }
}

/// Merges groups that use a link of the same spanning tree until no two do (Algorithms 1 and 2, fixed roots). `mgids`
/// must keep the precondition of Theorem 2 ([`super::find_clash`]); then trees of different numbers never conflict.
///
/// # Errors
/// A member beyond the fabric's terminals.
///
/// # Panics
/// When there are not as many MGIDs as communicators.
pub fn share_trees(
    set: &GroupSet,
    mgids: &[Mgid],
    trees: &SpanningTrees,
    places: &Places,
) -> Result<Sharing, MgidError> {
    places.check(set)?;
    assert_eq!(
        set.communicators.len(),
        mgids.len(),
        "there is an MGID for each communicator"
    );
    let members: Vec<&[u32]> = set
        .communicators
        .iter()
        .map(|communicator| &*communicator.members)
        .collect();
    let numbers: Vec<u64> = mgids.iter().map(|&mgid| trees.tree_number(mgid)).collect();
    Ok(share(&members, &numbers, places))
}

/// [`share_trees`] with tree numbers instead of MGIDs.
pub(super) fn share(members: &[&[u32]], numbers: &[u64], places: &Places) -> Sharing {
    let mut by_tree: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (group, &number) in numbers.iter().enumerate() {
        by_tree.entry(number).or_default().push(group);
    }
    let mut owner = vec![NOBODY; places.links()];
    let mut used = Vec::new();
    let mut parts = Parts {
        parent: (0..numbers.len() as u32).collect(),
        height: vec![0; numbers.len()],
    };
    for groups in by_tree.values() {
        for &group in groups {
            let Some(&first) = members[group].first() else {
                continue;
            };
            let tree = places.tree_links(members[group]);
            parts.height[group] = tree.height;
            let mut claims = tree.links;
            while let Some(link) = claims.pop() {
                let held = owner[link as usize];
                if held == NOBODY {
                    owner[link as usize] = group as u32;
                    used.push(link);
                    continue;
                }
                let (here, other) = (parts.lead(group as u32), parts.lead(held));
                if here == other {
                    continue;
                }
                let met = members[held as usize][0];
                let [low, high] = [here, other].map(|part| u32::from(parts.height[part as usize]));
                let height = low.max(high).max(places.height_between(first, met));
                // Both get the links from their roots up to the common one.
                claims.extend((low..height).map(|level| places.uplink(first, level)));
                claims.extend((high..height).map(|level| places.uplink(met, level)));
                parts.join(here, other, height as u8);
            }
        }
        for link in used.drain(..) {
            owner[link as usize] = NOBODY;
        }
    }
    let tree_of: Vec<usize> = (0..numbers.len() as u32)
        .map(|group| parts.lead(group) as usize)
        .collect();
    let mut counts = vec![0usize; tree_of.len()];
    for &tree in &tree_of {
        counts[tree] += 1;
    }
    let tfi: Vec<usize> = counts.into_iter().filter(|&count| count > 0).collect();
    Sharing {
        trees_left: tfi.len(),
        max_tfi: tfi.iter().copied().max().unwrap_or(0),
        tfi,
        tree_of,
    }
}

/// No group uses the link.
const NOBODY: u32 = u32::MAX;

/// Merged groups: sets with the lowest group as lead, and the level of the root of each.
struct Parts {
    parent: Vec<u32>,
    height: Vec<u8>,
}

impl Parts {
    fn lead(&mut self, group: u32) -> u32 {
        let mut at = group;
        while self.parent[at as usize] != at {
            let above = self.parent[self.parent[at as usize] as usize];
            self.parent[at as usize] = above;
            at = above;
        }
        at
    }

    fn join(&mut self, a: u32, b: u32, height: u8) {
        self.parent[a.max(b) as usize] = a.min(b);
        self.height[a.min(b) as usize] = height;
    }
}
