//! Which groups are merged, and why; found when somebody asks.

use raddle_units::{LinkId, NodeId};

use super::{
    CMr4lms,
    link_use::Planes,
    roots::find,
    wiring::{NONE, Plane},
};
use crate::{Colour, Mgid, Tree};

/// Why two groups are merged. A merged group of n groups has n - 1 of these.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Merge {
    /// A group that was there.
    pub first: Mgid,
    /// The group that shares a link with it.
    pub second: Mgid,
    /// The link that both use (of a pair, that of the first tree).
    pub link: LinkId,
    /// With this colour.
    pub colour: Colour,
    /// Whether the MGIDs name different spanning trees, so that one of them left its own.
    pub across_trees: bool,
}

/// A host whose groups have one colour and different spanning trees: it breaks the precondition of Theorem 2.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TerminalConflict {
    /// The host.
    pub host: NodeId,
    /// The colour.
    pub colour: Colour,
    /// Its groups of that colour, ascending.
    pub groups: Vec<Mgid>,
}

/// One group, or groups that were merged.
struct Cluster {
    tree: u32,
    j: u16,
    /// By ascending MGID.
    groups: Vec<u32>,
}

/// A link of a group's tree: the switch below by level and place, or a host (level 3).
type Below = (usize, u32);

/// Who used a link first: stamp of the tree and index of the group.
#[derive(Clone)]
struct Owners {
    by_level: [Vec<(u32, u32)>; 4],
}

impl CMr4lms {
    /// Why groups are merged: enough pairs to explain every merged group, by colour and the second group.
    pub fn merges(&self) -> Vec<Merge> {
        let mut merges = Vec::new();
        self.find_clusters(|merge| merges.push(merge));
        merges.sort_unstable_by_key(|merge| (merge.colour, merge.second, merge.first));
        merges
    }

    /// Why a group is merged with others: the pairs that tie its merged group together; empty if it is alone, `None`
    /// if it is not there.
    pub fn explain(&self, mgid: Mgid) -> Option<Vec<Merge>> {
        let &group = self.by_mgid.get(&mgid)?;
        let tree = self.groups[group as usize].tree;
        let mut merges = Vec::new();
        let mut owners = self.owners();
        let clusters = self.clusters_of(tree, 1, &mut owners, &mut |merge| merges.push(merge));
        let cluster = clusters.into_iter().find(|c| c.groups.contains(&group))?;
        merges.retain(|merge| {
            let group = self.by_mgid.get(&merge.second);
            group.is_some_and(|group| cluster.groups.contains(group))
        });
        merges.sort_unstable_by_key(|merge| (merge.second, merge.first));
        Some(merges)
    }

    /// The hosts that break the precondition of Theorem 2, by host and colour.
    pub fn terminal_conflicts(&self) -> Vec<TerminalConflict> {
        let mut conflicts = Vec::new();
        let mut here: Vec<(u16, Mgid)> = Vec::new();
        for terminal in 0..self.wiring.terminals() as u32 {
            here.clear();
            let groups = self.components.at(terminal);
            here.extend(groups.map(|(group, colour)| (colour, self.groups[group as usize].mgid)));
            here.sort_unstable();
            for same in here.chunk_by(|a, b| a.0 == b.0) {
                let own = |mgid| self.numbering.own_tree(mgid);
                if same.iter().any(|(_, mgid)| own(*mgid) != own(same[0].1)) {
                    conflicts.push(TerminalConflict {
                        host: self.wiring.host(terminal),
                        colour: Colour(same[0].0),
                        groups: same.iter().map(|(_, mgid)| *mgid).collect(),
                    });
                }
            }
        }
        conflicts.sort_unstable();
        conflicts
    }

    pub(super) fn all_trees(&self) -> Vec<Tree> {
        let clusters = self.find_clusters(|_| ());
        let mut trees = Vec::with_capacity(clusters.len());
        for cluster in &clusters {
            let mut terminals: Vec<u32> = Vec::new();
            for &group in &cluster.groups {
                terminals.extend_from_slice(&self.groups[group as usize].terminals);
            }
            terminals.sort_unstable();
            terminals.dedup();
            let (planes, count) = self.numbering.planes(cluster.tree);
            // Inside an L0 switch there is no second tree.
            let copies = if self.wiring.height(&terminals) == 0 {
                1
            } else {
                count
            };
            let names = cluster.groups.iter();
            let names: Vec<_> = names.map(|g| self.groups[*g as usize].mgid).collect();
            for (copy, &plane) in (0..).zip(&planes[..copies]) {
                let (root, up) = self.wiring.tree(&self.fabric, &terminals, plane, cluster.j);
                let Some(root) = root else { continue };
                trees.push(Tree {
                    colour: self.numbering.colour(cluster.tree),
                    copy,
                    root,
                    groups: names.clone(),
                    up,
                });
            }
        }
        trees.sort_by_key(|tree| (tree.groups[0], tree.copy));
        trees
    }

    fn owners(&self) -> Owners {
        let wiring = &self.wiring;
        let empty = |n: usize| vec![(NONE, 0); n];
        Owners {
            by_level: [
                empty((wiring.cns * wiring.q) as usize),
                empty(wiring.cns as usize),
                empty((wiring.k * wiring.w) as usize),
                empty(wiring.terminals()),
            ],
        }
    }

    fn find_clusters(&self, mut explain: impl FnMut(Merge)) -> Vec<Cluster> {
        let mut owners = self.owners();
        let trees = 0..self.numbering.trees() as u32;
        trees
            .flat_map(|tree| self.clusters_of(tree, tree, &mut owners, &mut explain))
            .collect()
    }

    fn clusters_of(
        &self,
        tree: u32,
        stamp: u32,
        owners: &mut Owners,
        explain: &mut impl FnMut(Merge),
    ) -> Vec<Cluster> {
        let Some(state) = self.link_use.tree(tree) else {
            return Vec::new();
        };
        let mut groups = state.groups.clone();
        groups.sort_unstable_by_key(|group| self.groups[*group as usize].mgid);
        let (planes, _) = self.numbering.planes(tree);
        let mut parents: Vec<u32> = (0..groups.len() as u32).collect();
        for (item, &group) in (0..).zip(&groups) {
            let of = &self.groups[group as usize];
            self.links(&of.terminals, of.height, |(level, place)| {
                let mut slot = place as usize;
                if level == 2 {
                    slot = slot * self.wiring.w as usize + usize::from(of.j);
                }
                let owner = &mut owners.by_level[level][slot];
                if owner.0 != stamp {
                    *owner = (stamp, item);
                    return;
                }
                let (a, b) = (find(&mut parents, owner.1), find(&mut parents, item));
                if a == b {
                    return;
                }
                parents[a.max(b) as usize] = a.min(b);
                let (first, second) = (
                    self.groups[groups[owner.1 as usize] as usize].mgid,
                    self.groups[group as usize].mgid,
                );
                if let Some(link) = self.link(level, place, planes[0], of.j) {
                    explain(Merge {
                        first,
                        second,
                        link,
                        colour: self.numbering.colour(tree),
                        across_trees: self.numbering.own_tree(first)
                            != self.numbering.own_tree(second),
                    });
                }
            });
        }
        let mut cluster_of = vec![NONE; groups.len()];
        let mut clusters: Vec<Cluster> = Vec::new();
        for (item, &group) in groups.iter().enumerate() {
            let root = find(&mut parents, item as u32) as usize;
            if cluster_of[root] == NONE {
                cluster_of[root] = clusters.len() as u32;
                clusters.push(Cluster {
                    tree,
                    j: 0,
                    groups: Vec::new(),
                });
            }
            let cluster = &mut clusters[cluster_of[root] as usize];
            cluster.groups.push(group);
            if self.groups[group as usize].height == 3 {
                cluster.j = self.groups[group as usize].j;
            }
        }
        clusters
    }

    /// Every link of the tree of these places.
    fn links(&self, terminals: &[u32], height: u8, mut visit: impl FnMut(Below)) {
        let mut last = [NONE; 3];
        for &terminal in terminals {
            visit((3, terminal));
            let l0 = terminal / self.wiring.t;
            let cn = l0 / self.wiring.q;
            let way = [l0, cn, self.wiring.l2_index(cn)];
            for level in 0..usize::from(height) {
                if last[level] == way[level] {
                    break;
                }
                last[level] = way[level];
                visit((level, way[level]));
            }
        }
    }

    fn link(&self, level: usize, place: u32, plane: Plane, j: u16) -> Option<LinkId> {
        let port = match level {
            3 => Some(self.fabric.first_port(self.wiring.host(place))),
            _ => self.wiring.port_above(&self.fabric, level, place, plane, j),
        }?;
        Some(self.fabric.port(port).link)
    }
}
