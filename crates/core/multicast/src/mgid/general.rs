//! Allocation for any set of communicators.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    Allocation, GroupsOf, LayerColours, MgidError, Places, SpanningTrees, groups_of_terminals,
    layered::colour_ranges,
    sharing::{share, share_trees},
};
use crate::{Mgid, groups::GroupSet};

/// Pairs of groups that meet at a terminal and are looked at.
const MOST_PAIRS: u64 = 1 << 28;
/// Bits that the search for free trees may hold.
const MOST_BITS: usize = 1 << 33;
/// Names of groups in a message.
const NAMES: usize = 8;

/// What to do with a terminal whose groups cannot all have different colours.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Overlap {
    /// Refuse, and name the terminal and its groups.
    #[default]
    Refuse,
    /// Let some of them share one tree (the same colour in the same TN): they are merged.
    Share,
}

/// MGIDs for any communicators, such that no terminal meets a colour in two trees (with [`Overlap::Refuse`]: no
/// colour twice).
///
/// Layers are found by colouring the graph of groups that share a terminal, the most constrained first (DSATUR); colours
/// go to layers as in the layered allocation. With `places`, layers of one size are tried as well, and a layer that has more groups than trees is packed: groups
/// that share no link of a tree may have the same; of several packings that with the fewest merges is taken.
///
/// # Errors
/// With [`Overlap::Refuse`] a terminal in more groups than there are colours, or groups for which no layers were found;
/// groups that overlap too much to be searched; a member beyond the places.
pub fn allocate_general(
    set: &GroupSet,
    trees: &SpanningTrees,
    places: Option<&Places>,
    overlap: Overlap,
) -> Result<Allocation, MgidError> {
    if let Some(places) = places {
        places.check(set)?;
    }
    let groups_of = groups_of_terminals(set);
    if overlap == Overlap::Refuse {
        refuse_full_terminals(set, &groups_of, trees.colours())?;
    }
    let graph = Overlaps::new(set, &groups_of)?;
    let layering = graph.colour(trees.colours(), overlap, Choice::Lowest);
    if layering.layers > trees.colours() {
        return Err(no_layers(set, &groups_of, &layering, trees.colours()));
    }
    let few = number(set, trees, places, &layering)?;
    let Some(places) = places else { return Ok(few) };
    let merges = |allocation: &Allocation| {
        share_trees(set, &allocation.mgids, trees, places)
            .map(|sharing| (sharing.merges(), sharing.max_tfi))
    };
    let merged = merges(&few)?;
    if merged.0 == 0 {
        return Ok(few);
    }
    // As many layers as colours, all of one size: no layer loses by rounding.
    let layering = graph.colour(trees.colours(), overlap, Choice::LeastUsed);
    if layering.layers > trees.colours() {
        return Ok(few);
    }
    let even = number(set, trees, Some(places), &layering)?;
    Ok(if merges(&even)? < merged { even } else { few })
}

/// Trees for groups in layers.
fn number(
    set: &GroupSet,
    trees: &SpanningTrees,
    places: Option<&Places>,
    layering: &Layers,
) -> Result<Allocation, MgidError> {
    // Groups that share a tree from the start are one unit.
    let mut unit_of = vec![usize::MAX; set.communicators.len()];
    let mut units: Vec<Unit> = Vec::new();
    for (group, communicator) in set.communicators.iter().enumerate() {
        let lead = layering.lead(group);
        if unit_of[lead] == usize::MAX {
            unit_of[lead] = units.len();
            units.push(Unit {
                layer: layering.colour_of[group],
                members: Vec::new(),
            });
        }
        unit_of[group] = unit_of[lead];
        units[unit_of[group]].members.extend(&communicator.members);
    }
    for unit in &mut units {
        unit.members.sort_unstable();
        unit.members.dedup();
    }
    let mut by_layer = vec![Vec::new(); layering.layers as usize];
    for (number, unit) in units.iter().enumerate() {
        by_layer[unit.layer as usize].push(number);
    }
    let sizes: Vec<u64> = by_layer.iter().map(|units| units.len() as u64).collect();
    let layers = colour_ranges(&sizes, trees.colours())?;
    let mut tree_of_unit = vec![0; units.len()];
    for layer in &layers {
        let numbers = &by_layer[layer.layer as usize];
        let members: Vec<&[u32]> = numbers.iter().map(|&unit| &*units[unit].members).collect();
        let first = u64::from(layer.first_colour) * u64::from(trees.per_colour());
        let width = u64::from(layer.colours) * u64::from(trees.per_colour());
        for (&unit, tree) in numbers.iter().zip(spread(&members, width, places)) {
            tree_of_unit[unit] = first + tree;
        }
    }
    let mut rounds = BTreeMap::new();
    let mgids = unit_of.iter().map(|&unit| {
        let tree = tree_of_unit[unit];
        let round: &mut u64 = rounds.entry(tree).or_default();
        let mgid = Mgid(tree + *round * trees.count());
        *round += 1;
        mgid
    });
    let mgids = mgids.collect();
    let mut groups = vec![0; layering.layers as usize];
    for &layer in &layering.colour_of {
        groups[layer as usize] += 1;
    }
    let layers = layers.into_iter().map(|layer| LayerColours {
        groups: groups[layer.layer as usize],
        ..layer
    });
    Ok(Allocation {
        mgids,
        layers: layers.collect(),
    })
}

/// Groups on one tree.
struct Unit {
    layer: u32,
    members: Vec<u32>,
}

fn name_list(set: &GroupSet, groups: &[u32]) -> String {
    let mut names: Vec<&str> = groups
        .iter()
        .take(NAMES)
        .map(|&group| &*set.communicators[group as usize].name)
        .collect();
    if groups.len() > NAMES {
        names.push("...");
    }
    names.join(", ")
}

/// The terminal with the most groups of those for which `counts` says yes; the first of several.
fn busiest(groups_of: &GroupsOf, counts: impl Fn(&[u32]) -> bool) -> (u32, &[u32]) {
    let mut best: (u32, &[u32]) = (0, &[]);
    for (terminal, groups) in (0..).zip(groups_of.iter()) {
        if groups.len() > best.1.len() && counts(groups) {
            best = (terminal, groups);
        }
    }
    best
}

fn refuse_full_terminals(
    set: &GroupSet,
    groups_of: &GroupsOf,
    colours: u32,
) -> Result<(), MgidError> {
    let (terminal, groups) = busiest(groups_of, |_| true);
    if groups.len() <= colours as usize {
        return Ok(());
    }
    Err(MgidError::TerminalFull {
        terminal,
        count: groups.len(),
        groups: name_list(set, groups),
        colours,
    })
}

fn no_layers(set: &GroupSet, groups_of: &GroupsOf, layering: &Layers, colours: u32) -> MgidError {
    let group = layering
        .colour_of
        .iter()
        .position(|&layer| layer >= colours)
        .unwrap_or(0);
    let (terminal, groups) = busiest(groups_of, |groups| groups.contains(&(group as u32)));
    MgidError::NoLayers {
        found: layering.layers,
        colours,
        group: set.communicators[group].name.clone(),
        terminal,
        count: groups.len(),
        groups: name_list(set, groups),
    }
}

/// Which groups share terminals: the different sets of groups that meet at a terminal, and the sets of each group.
struct Overlaps<'a> {
    meetings: Vec<&'a [u32]>,
    meetings_of: Vec<Vec<u32>>,
}

/// A colouring of the groups.
struct Layers {
    colour_of: Vec<u32>,
    layers: u32,
    /// Towards the group that stands for those on one tree.
    parent: Vec<usize>,
}

impl Layers {
    fn lead(&self, mut group: usize) -> usize {
        while self.parent[group] != group {
            group = self.parent[group];
        }
        group
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.lead(a), self.lead(b));
        self.parent[a.max(b)] = a.min(b);
    }
}

impl<'a> Overlaps<'a> {
    fn new(set: &GroupSet, groups_of: &'a GroupsOf) -> Result<Self, MgidError> {
        // Terminals with the same groups count once.
        let mut meetings: Vec<&[u32]> =
            groups_of.iter().filter(|groups| groups.len() > 1).collect();
        meetings.sort_unstable();
        meetings.dedup();
        let pairs = meetings
            .iter()
            .map(|groups| (groups.len() as u64).pow(2))
            .fold(0, u64::saturating_add);
        if pairs > MOST_PAIRS {
            return Err(MgidError::TooDense {
                pairs,
                limit: MOST_PAIRS,
            });
        }
        let mut meetings_of = vec![Vec::new(); set.communicators.len()];
        for (number, groups) in (0..).zip(&meetings) {
            for &group in *groups {
                meetings_of[group as usize].push(number);
            }
        }
        Ok(Self {
            meetings,
            meetings_of,
        })
    }

    fn neighbours(&self, group: usize) -> impl Iterator<Item = usize> {
        self.meetings_of[group]
            .iter()
            .flat_map(|&meeting| self.meetings[meeting as usize])
            .map(|&other| other as usize)
            .filter(move |&other| other != group)
    }

    /// DSATUR: the group whose neighbours have the most colours is next, then the one with the most neighbours, then
    /// the first; it takes the lowest or the least used free colour. Beyond `colours` it takes another one, or shares.
    fn colour(&self, colours: u32, overlap: Overlap, choice: Choice) -> Layers {
        const NONE: u32 = u32::MAX;
        let count = self.meetings_of.len();
        let mut layering = Layers {
            colour_of: vec![NONE; count],
            layers: 0,
            parent: (0..count).collect(),
        };
        let mut taken = vec![ColourSet::default(); count];
        let mut used = vec![0u32; colours as usize];
        let degree: Vec<usize> = self
            .meetings_of
            .iter()
            .map(|meetings| {
                let sizes = meetings.iter().map(|&m| self.meetings[m as usize].len());
                sizes.sum()
            })
            .collect();
        let key =
            |group: usize, taken: &ColourSet| (Reverse(taken.count), Reverse(degree[group]), group);
        let mut waiting: BTreeSet<_> = (0..count).map(|group| key(group, &taken[group])).collect();
        while let Some((.., group)) = waiting.pop_first() {
            let mut colour = match choice {
                Choice::Lowest => taken[group].first_free(),
                Choice::LeastUsed => (0..colours)
                    .filter(|&colour| !taken[group].contains(colour))
                    .min_by_key(|&colour| used[colour as usize])
                    .unwrap_or_else(|| taken[group].first_free().max(colours)),
            };
            if colour >= colours && overlap == Overlap::Share {
                colour = self.share(group, &mut layering);
            }
            layering.colour_of[group] = colour;
            layering.layers = layering.layers.max(colour + 1);
            if let Some(used) = used.get_mut(colour as usize) {
                *used += 1;
            }
            for other in self.neighbours(group) {
                if layering.colour_of[other] == NONE && !taken[other].contains(colour) {
                    waiting.remove(&key(other, &taken[other]));
                    taken[other].insert(colour);
                    waiting.insert(key(other, &taken[other]));
                }
            }
        }
        layering
    }

    /// Joins a group with its neighbours of one colour: the colour with the fewest trees among them.
    fn share(&self, group: usize, layering: &mut Layers) -> u32 {
        let mut met: Vec<(u32, usize)> = self
            .neighbours(group)
            .filter(|&other| layering.colour_of[other] != u32::MAX)
            .map(|other| (layering.colour_of[other], layering.lead(other)))
            .collect();
        met.sort_unstable();
        met.dedup();
        let fewest = met
            .chunk_by(|a, b| a.0 == b.0)
            .min_by_key(|same| same.len())
            .unwrap_or(&[]);
        for &(_, other) in fewest {
            layering.join(group, other);
        }
        fewest.first().map_or(0, |&(colour, _)| colour)
    }
}

/// Colours as bits; most groups meet few.
#[derive(Clone, Default)]
struct ColourSet {
    words: Vec<u64>,
    count: u32,
}

impl ColourSet {
    fn contains(&self, colour: u32) -> bool {
        let word = self.words.get(colour as usize / 64);
        word.is_some_and(|word| word >> (colour % 64) & 1 == 1)
    }

    fn insert(&mut self, colour: u32) {
        let word = colour as usize / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.count += u32::from(!self.contains(colour));
        self.words[word] |= 1 << (colour % 64);
    }

    fn first_free(&self) -> u32 {
        let full = self.words.iter().take_while(|&&word| word == u64::MAX);
        let word = full.count();
        let bit = self.words.get(word).map_or(0, |word| word.trailing_ones());
        word as u32 * 64 + bit
    }
}

/// A tree below `width` for each of the groups of one layer, which share no terminal.
fn spread(members: &[&[u32]], width: u64, places: Option<&Places>) -> Vec<u64> {
    let in_turn: Vec<u64> = (0..members.len() as u64).map(|i| i % width).collect();
    let Some(places) = places.filter(|places| {
        members.len() as u64 > width && width as usize <= MOST_BITS / places.links().max(1)
    }) else {
        return in_turn;
    };
    let width = width as usize;
    let packings = [
        in_turn,
        pack(members, width, places, Choice::LeastUsed),
        pack(members, width, places, Choice::Lowest),
    ];
    let judged = packings.into_iter().min_by_key(|packing| {
        let sharing = share(members, packing, places);
        (sharing.merges(), sharing.max_tfi)
    });
    judged.unwrap_or_default()
}

/// Which of several free colours or trees a group takes.
#[derive(Clone, Copy)]
enum Choice {
    /// Spreads groups over all of them.
    LeastUsed,
    /// Keeps others free for those to come.
    Lowest,
}

/// Highest root first, then most links, each group takes a tree whose links are free; without one, the tree with the
/// fewest groups.
fn pack(members: &[&[u32]], width: usize, places: &Places, choice: Choice) -> Vec<u64> {
    let words = width.div_ceil(64);
    let terminals = places.terminals();
    let needs: Vec<_> = members
        .iter()
        .map(|members| places.tree_links(members))
        .collect();
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&group| {
        let need = &needs[group];
        (Reverse(need.height), Reverse(need.links.len()), group)
    });
    let mut used = vec![0u64; (places.links() - terminals) * words];
    let mut count = vec![0u32; width];
    let mut tree_of = vec![0; members.len()];
    let mut blocked = vec![0u64; words];
    for group in order {
        let links = needs[group]
            .links
            .iter()
            .filter_map(|&link| (link as usize).checked_sub(terminals));
        blocked.fill(0);
        for link in links.clone() {
            for (blocked, used) in blocked.iter_mut().zip(&used[link * words..]) {
                *blocked |= used;
            }
        }
        let free = (0..width).filter(|tree| blocked[tree / 64] >> (tree % 64) & 1 == 0);
        let found = match choice {
            Choice::LeastUsed => { free }.min_by_key(|&tree| count[tree]),
            Choice::Lowest => { free }.next(),
        };
        let least_used = || (0..width).min_by_key(|&tree| count[tree]).unwrap_or(0);
        let tree = found.unwrap_or_else(least_used);
        count[tree] += 1;
        tree_of[group] = tree as u64;
        for link in links {
            used[link * words + tree / 64] |= 1 << (tree % 64);
        }
    }
    tree_of
}
