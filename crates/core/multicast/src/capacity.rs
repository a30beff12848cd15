//! How many groups a fabric carries with its table entries (Corollary 2 of Chen et al., C-MR4LMS (JCRD,
//! 10.7544/issn1000-1239.20210582)).
//!
//! A colour carries m trees (m div 2 pairs in fault-tolerant mode). Groups of which a terminal is in at most one can
//! have a tree each, so n of them need ceil(n/m) colours whatever their members: this holds without merging, in the
//! worst case in which every group spans the whole machine. With several layers each needs colours of its own.

use crate::{
    groups::GroupSet,
    mgid::{
        Allocation, LayerColours, MgidError, Places, Sharing, SpanningTrees, share_colours,
        share_trees,
    },
};

/// Groups that `colours` table entries carry without merging where every terminal is in at most one: colours times m,
/// or times m div 2 with fault tolerance.
///
/// # Errors
/// As for [`SpanningTrees::new`].
pub fn groups_carried(colours: u32, m: u32, fault_tolerant: bool) -> Result<u64, MgidError> {
    Ok(SpanningTrees::new(colours, m, 0, fault_tolerant)?.count())
}

/// Colours that `groups` groups need where every terminal is in at most one: ceil(groups / m) (Corollary 2), or
/// ceil(groups / (m div 2)) with fault tolerance.
///
/// # Errors
/// m = 0, and m = 1 with fault tolerance.
pub fn colours_needed(groups: u64, m: u32, fault_tolerant: bool) -> Result<u64, MgidError> {
    let per_colour = SpanningTrees::new(1, m, 0, fault_tolerant)?.per_colour();
    Ok(groups.div_ceil(per_colour.into()))
}

/// What a layer of groups needs and gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayerPlan {
    /// Groups, number and colours.
    pub range: LayerColours,
    /// Colours with which every group would have a tree of its own, whatever the members.
    pub colours_without_sharing: u64,
    /// Groups that have one tree number at most: an upper bound on the TFI of this layer, and what it is when every
    /// group spans the machine.
    pub groups_per_tree: u64,
}

/// What layers of groups need and get.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapacityPlan {
    /// Layers that have groups.
    pub layers: Vec<LayerPlan>,
    /// Table entries with which no group would share a tree, whatever the members.
    pub colours_without_sharing: u64,
    /// Groups that could be added to each layer without a further group on the fullest tree.
    pub spare: u64,
}

/// Plans layers of `sizes` groups with these trees.
///
/// # Errors
/// More layers with groups than colours.
pub fn plan_layers(sizes: &[u64], trees: &SpanningTrees) -> Result<CapacityPlan, MgidError> {
    let shares = share_colours(sizes, trees.colours())?;
    let per_colour = u64::from(trees.per_colour());
    let mut first_colour = 0;
    let mut layers = Vec::new();
    for ((layer, &groups), colours) in (0..).zip(sizes).zip(shares) {
        if groups > 0 {
            layers.push(LayerPlan {
                range: LayerColours {
                    layer,
                    groups,
                    first_colour,
                    colours,
                },
                colours_without_sharing: groups.div_ceil(per_colour),
                groups_per_tree: groups.div_ceil(u64::from(colours) * per_colour),
            });
        }
        first_colour += colours;
    }
    let fullest = layers.iter().map(|layer| layer.groups_per_tree).max();
    let room = |layer: &LayerPlan| {
        let trees = u64::from(layer.range.colours) * per_colour;
        fullest.unwrap_or(0).saturating_mul(trees) - layer.range.groups
    };
    Ok(CapacityPlan {
        colours_without_sharing: layers
            .iter()
            .map(|layer| layer.colours_without_sharing)
            .sum(),
        spare: layers.iter().map(room).sum(),
        layers,
    })
}

/// The fewest colours with which no groups share a tree when `allocate` numbers them, and how trees are shared with
/// that many; `None` if they still do with `most` colours. Members count: groups that lie apart may have one tree
/// number and share nothing.
///
/// The search assumes that more colours do not make it worse, and checks only the number that it gives.
///
/// # Errors
/// Those of [`SpanningTrees::new`] and of `allocate` at `most` colours.
pub fn fewest_colours(
    set: &GroupSet,
    (m, p, fault_tolerant): (u32, u32, bool),
    places: &Places,
    most: u32,
    allocate: impl Fn(&GroupSet, &SpanningTrees) -> Result<Allocation, MgidError>,
) -> Result<Option<(u32, Sharing)>, MgidError> {
    let shared = |colours: u32| {
        let trees = SpanningTrees::new(colours, m, p, fault_tolerant)?;
        let allocation = allocate(set, &trees)?;
        share_trees(set, &allocation.mgids, &trees, places)
    };
    let mut best = shared(most)?;
    if best.merges() > 0 {
        return Ok(None);
    }
    let (mut too_few, mut enough) = (0, most);
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        match shared(middle) {
            Ok(sharing) if sharing.merges() == 0 => (enough, best) = (middle, sharing),
            // Fewer colours than layers, or terminals with more groups than colours: too few.
            _ => too_few = middle,
        }
    }
    Ok(Some((enough, best)))
}
