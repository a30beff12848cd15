//! Numbers for groups: which MGIDs keep groups apart.
//!
//! The MGID decides the colour and the spanning tree of a group ([`SpanningTrees`], equations (1) to (4) of Chen et al.,
//! C-MR4LMS (JCRD, 10.7544/issn1000-1239.20210582)). A terminal that is in several groups needs a different colour for
//! each, or the same colour in the same TN (section 3.1): that is what Theorem 2, "one merge is enough", rests on.
//!
//! - [`allocate_layered`]: groups in layers (grids, hierarchies, random groups); a range of colours for each layer.
//! - [`allocate_general`]: any communicators; finds the layers itself, and trees with few merges.
//! - [`find_clash`]: checks any numbering.
//! - `pairs`: the two MGIDs of a fault-tolerant pair where an entry is a whole MLID.
//! - [`Places`] and [`share_trees`]: which groups share a tree in the end, without building one.

mod general;
mod layered;
mod numbers;
mod pairs;
mod sharing;

pub use general::{Overlap, allocate_general};
pub use layered::{allocate_layered, share_colours};
pub use numbers::{SpanningTrees, TreePlace};
pub use pairs::Copy;
pub use sharing::{Places, Sharing, share_trees};

use raddle_units::{NodeId, many};

use crate::{Group, Mgid, groups::GroupSet};

/// MGIDs for the communicators of a set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// The MGID of each communicator, all different; [`SpanningTrees::tree_number`] gives its tree.
    pub mgids: Vec<Mgid>,
    /// Ranges of colours, in order of the layers; layers without groups are left out.
    pub layers: Vec<LayerColours>,
}

impl Allocation {
    /// The groups for an engine: members are looked up in `hosts`, the fabric's hosts or the terminals of a job in the
    /// order of their processes. `None` where a member is beyond them.
    pub fn groups(&self, set: &GroupSet, hosts: &[NodeId]) -> Option<Vec<Group>> {
        let numbered = set.communicators.iter().zip(&self.mgids);
        numbered
            .map(|(communicator, &mgid)| Some(Group::new(mgid, communicator.nodes(hosts)?)))
            .collect()
    }
}

/// Colours of one layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayerColours {
    /// The layer.
    pub layer: u32,
    /// Groups in it.
    pub groups: u64,
    /// Its first colour.
    pub first_colour: u32,
    /// How many colours it has, from 1.
    pub colours: u32,
}

/// A terminal whose groups meet on its link: one colour in two different trees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clash {
    /// The terminal.
    pub terminal: u32,
    /// Numbers of the two communicators.
    pub groups: [usize; 2],
    /// The colour that both have.
    pub colour: u32,
}

/// Why there are no MGIDs.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MgidError {
    /// C = 0.
    #[error("`colours` is 0: a switch needs at least 1 table entry for multicast")]
    NoColours,
    /// m = 0.
    #[error("`m` is 0: without L1 switches there is no spanning tree")]
    NoTrees,
    /// Fault tolerance with a single tree per colour.
    #[error(
        "`fault_tolerant` needs two link-disjoint trees, but m = 1 gives one tree per colour: take a fabric with at \
         least 2 L1 switches in each CN, or `fault_tolerant = false`"
    )]
    NoPairs,
    /// More trees than we number.
    #[error("{trees} spanning trees are too many, the limit is {limit}: use fewer colours")]
    TooManyTrees {
        /// Colours times m.
        trees: u64,
        /// How many are possible.
        limit: u64,
    },
    /// More layers than colours.
    #[error(
        "{layers} layers of groups need a colour each, but there are {colours}: raise `colours` to {layers}, or run \
         fewer processes per terminal"
    )]
    TooFewColours {
        /// Layers that have groups.
        layers: u32,
        /// Colours that there are.
        colours: u32,
    },
    /// The set is not in layers.
    #[error(
        "terminal {terminal} is in `{first}` and `{second}` of layer {layer}: a layered allocation needs at most one \
         group per terminal and layer; use the general allocator"
    )]
    NotLayered {
        /// The terminal.
        terminal: u32,
        /// One group.
        first: String,
        /// The other group.
        second: String,
        /// Their layer.
        layer: u32,
    },
    /// A terminal is in more groups than there are colours.
    #[error(
        "terminal {terminal} is in {} ({groups}), each of which needs a colour of its own, and the tables have {}: take \
         it out of {} of them, raise `colours` to {count}, or let its groups share trees",
        many(*.count, "group"),
        many(*.colours, "colour"),
        count - *colours as usize
    )]
    TerminalFull {
        /// The terminal: position in the order of hosts.
        terminal: u32,
        /// Groups that it is in.
        count: usize,
        /// Their names, the first few.
        groups: String,
        /// Colours that there are.
        colours: u32,
    },
    /// The search for layers found none that fit.
    #[error(
        "the groups that share terminals need {} as far as the search found, but the tables have {}; group `{group}` \
         has none left, its terminal {terminal} is in {} ({groups}): raise `colours` to {found}, or let groups share \
         trees",
        many(*.found, "layer"),
        many(*.colours, "colour"),
        many(*.count, "group")
    )]
    NoLayers {
        /// Layers that were found.
        found: u32,
        /// Colours that there are.
        colours: u32,
        /// The first group beyond them.
        group: String,
        /// Its terminal with the most groups.
        terminal: u32,
        /// How many groups that is in.
        count: usize,
        /// Their names, the first few.
        groups: String,
    },
    /// Groups that overlap too much to be searched.
    #[error(
        "the groups overlap in {pairs} pairs counted per terminal, more than the {limit} that are searched: use \
         layered groups, or fewer"
    )]
    TooDense {
        /// Pairs of groups at a terminal, over all different terminals.
        pairs: u64,
        /// How many are searched.
        limit: u64,
    },
    /// A member beyond the places that are known.
    #[error(
        "group `{group}` has terminal {terminal}, but the fabric has {}: use the fabric that the groups were made for",
        many(*.terminals, "terminal")
    )]
    UnknownTerminal {
        /// The group.
        group: String,
        /// The member.
        terminal: u32,
        /// Terminals of the fabric.
        terminals: u32,
    },
}

/// The first terminal (lowest position) that meets one colour in two different trees; `None` if the precondition of
/// Theorem 2 holds. `mgids` belong to the communicators of `set` in order.
///
/// # Panics
/// When there are not as many MGIDs as communicators.
pub fn find_clash(set: &GroupSet, mgids: &[Mgid], trees: &SpanningTrees) -> Option<Clash> {
    assert_eq!(
        set.communicators.len(),
        mgids.len(),
        "there is an MGID for each communicator"
    );
    let groups_of = groups_of_terminals(set);
    let mut seen: Vec<(u32, u64, usize)> = Vec::new();
    for (terminal, groups) in groups_of.iter().enumerate() {
        seen.clear();
        seen.extend(groups.iter().map(|&group| {
            let mgid = mgids[group as usize];
            (trees.colour(mgid), trees.tree_number(mgid), group as usize)
        }));
        seen.sort_unstable();
        for pair in seen.windows(2) {
            let ((colour, tree, group), (other_colour, other_tree, other)) = (pair[0], pair[1]);
            if colour == other_colour && tree != other_tree {
                return Some(Clash {
                    terminal: terminal as u32,
                    groups: [group, other],
                    colour,
                });
            }
        }
    }
    None
}

/// Numbers of the communicators that each terminal is in, ascending.
fn groups_of_terminals(set: &GroupSet) -> GroupsOf {
    let last = set
        .communicators
        .iter()
        .filter_map(|communicator| communicator.members.last())
        .max();
    let terminals = set.terminals.max(last.map_or(0, |&last| last + 1)) as usize;
    let mut starts = vec![0u32; terminals + 1];
    for communicator in &set.communicators {
        for &member in &communicator.members {
            starts[member as usize + 1] += 1;
        }
    }
    for terminal in 0..terminals {
        starts[terminal + 1] += starts[terminal];
    }
    let mut next = starts.clone();
    let mut groups = vec![0; starts[terminals] as usize];
    for (number, communicator) in (0..).zip(&set.communicators) {
        for &member in &communicator.members {
            let at = &mut next[member as usize];
            groups[*at as usize] = number;
            *at += 1;
        }
    }
    GroupsOf { starts, groups }
}

struct GroupsOf {
    starts: Vec<u32>,
    groups: Vec<u32>,
}

impl GroupsOf {
    fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.starts
            .windows(2)
            .map(|ends| &self.groups[ends[0] as usize..ends[1] as usize])
    }
}
