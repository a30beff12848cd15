//! Layered allocation: disjoint ranges of colours for the layers.

use super::{Allocation, LayerColours, MgidError, SpanningTrees};
use crate::{Mgid, groups::GroupSet};

/// Colours for layers of `sizes` groups: floor(C * groups / all groups), at least 1, and the rest to the last layer
/// that has groups; layers without groups get none. Where "at least 1" hands out more than there is, colours are taken
/// back, each time from the layer that has the fewest groups per colour afterwards (ours).
///
/// # Errors
/// More layers with groups than colours.
pub fn share_colours(sizes: &[u64], colours: u32) -> Result<Vec<u32>, MgidError> {
    let used = sizes.iter().filter(|&&size| size > 0).count();
    if used > colours as usize {
        return Err(MgidError::TooFewColours {
            layers: used as u32,
            colours,
        });
    }
    let all: u128 = sizes.iter().map(|&size| u128::from(size)).sum();
    let share = |size: u64| match size {
        0 => 0,
        _ => ((u128::from(colours) * u128::from(size) / all) as u32).max(1),
    };
    let mut shares: Vec<u32> = sizes.iter().map(|&size| share(size)).collect();
    let mut given: u64 = shares.iter().map(|&share| u64::from(share)).sum();
    while given > u64::from(colours) {
        let could_give = (0..sizes.len()).filter(|&layer| shares[layer] > 1);
        // Groups per colour as fractions: a/b < c/d exactly if a*d < c*b.
        let giver = could_give.min_by(|&a, &b| {
            let left = |layer: usize| u128::from(shares[layer] - 1);
            (u128::from(sizes[a]) * left(b)).cmp(&(u128::from(sizes[b]) * left(a)))
        });
        let Some(giver) = giver else { break };
        shares[giver] -= 1;
        given -= 1;
    }
    if let Some(last) = sizes.iter().rposition(|&size| size > 0) {
        shares[last] += (u64::from(colours) - given) as u32;
    }
    Ok(shares)
}

/// MGIDs for groups in layers: a layer with x colours from colour b on gives its i-th group the spanning tree
/// b*m + i mod (x*m), and the MGID that is i div (x*m) rounds of all trees above it.
///
/// # Errors
/// A terminal that is in two groups of a layer, and more layers than colours.
pub fn allocate_layered(set: &GroupSet, trees: &SpanningTrees) -> Result<Allocation, MgidError> {
    if let Some((terminal, [first, second])) = set.layer_clash() {
        let name = |number: usize| set.communicators[number].name.clone();
        return Err(MgidError::NotLayered {
            terminal,
            first: name(first),
            second: name(second),
            layer: set.communicators[first].layer,
        });
    }
    let layers = colour_ranges(&set.layer_sizes(), trees.colours())?;
    let mut range_of = vec![None; set.layers as usize];
    for range in &layers {
        range_of[range.layer as usize] = Some(*range);
    }
    let mut next = vec![0u64; set.layers as usize];
    let mut mgids = Vec::with_capacity(set.communicators.len());
    for communicator in &set.communicators {
        let layer = communicator.layer as usize;
        if let Some(range) = range_of[layer] {
            mgids.push(nth_mgid(&range, next[layer], trees));
        }
        next[layer] += 1;
    }
    Ok(Allocation { mgids, layers })
}

pub(super) fn colour_ranges(sizes: &[u64], colours: u32) -> Result<Vec<LayerColours>, MgidError> {
    let mut first_colour = 0;
    let mut layers = Vec::new();
    for ((layer, &groups), colours) in (0..).zip(sizes).zip(share_colours(sizes, colours)?) {
        if groups > 0 {
            layers.push(LayerColours {
                layer,
                groups,
                first_colour,
                colours,
            });
        }
        first_colour += colours;
    }
    Ok(layers)
}

fn nth_mgid(range: &LayerColours, nth: u64, trees: &SpanningTrees) -> Mgid {
    let in_layer = u64::from(range.colours) * u64::from(trees.per_colour());
    let first = u64::from(range.first_colour) * u64::from(trees.per_colour());
    Mgid(first + nth % in_layer + nth / in_layer * trees.count())
}
