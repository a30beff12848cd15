//! `raddle capacity`: how many groups the table entries carry, and how many entries groups need (Corollary 2).

use raddle_multicast::{
    capacity::{colours_needed, fewest_colours, groups_carried, plan_layers},
    groups::{Grid, GroupError, GroupSet, Layering},
    mgid::{Allocation, MgidError, Overlap, SpanningTrees, allocate_general, allocate_layered},
};
use raddle_text::{Files, Finding, InputError, Problem, check_value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::resolve::{Resolved, places_of};

/// Colours with which the layers of unlayered groups are looked for: all that the numbers allow.
const MOST_COLOURS: u32 = 65_535;

/// Groups by their number or their grid, for fabrics of which only m is known.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapacityRequest {
    /// Trees of a colour: L1 switches in each CN.
    #[schemars(range(min = 1))]
    pub m: u32,
    /// Table entries.
    #[schemars(range(min = 1, max = 65535))]
    pub colours: u32,
    /// Two trees for each group.
    #[serde(default)]
    pub fault_tolerant: bool,
    /// Groups of which a terminal is in at most one.
    #[serde(default)]
    #[schemars(range(max = 1_000_000_000_000_000_i64))]
    pub groups: Option<u64>,
    /// Lengths of a grid of processes; every line along a direction is a group.
    #[serde(default)]
    #[schemars(length(max = 3), inner(range(min = 1)))]
    pub dims: Vec<u32>,
    /// Processes on each terminal of the grid.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub processes_per_terminal: u32,
}

fn one() -> u32 {
    1
}

/// Why there is no answer about a capacity.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// Something that is asked for cannot be.
    #[error(transparent)]
    Request(#[from] Finding),
    /// The grid.
    #[error(transparent)]
    Groups(#[from] GroupError),
    /// The trees, or more layers than colours.
    #[error(transparent)]
    Mgid(#[from] MgidError),
}

/// What `colours` entries carry on any fabric with this m, and what the groups need; worst case, whoever their members.
///
/// # Errors
/// No colours, more than 65,535 of them, m = 0, no pairs, or a grid that cannot be.
pub fn capacity(request: &CapacityRequest) -> Result<Json, CapacityError> {
    check_value(request)?;
    let colours = request.colours;
    let sizes = if request.dims.is_empty() {
        request.groups.map(|groups| vec![groups])
    } else {
        let mut lengths = request.dims.iter().map(|&dim| u128::from(dim));
        // Of more than 2^32 terminals the grid itself says that they are too many.
        let processes = lengths
            .try_fold(1_u128, u128::checked_mul)
            .unwrap_or(u128::MAX);
        let terminals = processes.div_ceil(request.processes_per_terminal.into());
        let grid = Grid {
            dims: request.dims.clone(),
            processes_per_terminal: request.processes_per_terminal,
            layering: Layering::Tight,
        };
        Some(layer_sizes(
            &grid.groups(u32::try_from(terminals).unwrap_or(u32::MAX))?,
        ))
    };
    let trees = SpanningTrees::new(colours, request.m, 0, request.fault_tolerant)?;
    Ok(answer(request.m, &trees, request.fault_tolerant, sizes)?)
}

/// The same for the groups of a route file, which may need fewer colours than the worst case: groups that lie apart
/// share a tree number and no link.
///
/// # Errors
/// A wrong route file, or a fabric that is not a CN/TN fat tree.
pub fn capacity_of_file(text: &str, path: &str, files: &dyn Files) -> Result<Json, InputError> {
    let (resolved, at) = Resolved::planned(text, path, files)?;
    let refused = |error: MgidError| {
        let problem = Problem::refused(&error);
        InputError::at(&at, problem)
    };
    let (Some(trees), Some(map)) = (&resolved.trees, &resolved.map) else {
        return Ok(Json::Null);
    };
    let (set, shape) = (&resolved.set, map.shape());
    let two = resolved.fault_tolerant;
    let places = places_of(&resolved.fabric, map);
    let allocate = |set: &GroupSet, trees: &SpanningTrees| -> Result<Allocation, MgidError> {
        if set.layered {
            allocate_layered(set, trees)
        } else {
            allocate_general(set, trees, places.as_ref(), Overlap::Refuse)
        }
    };
    let sizes = if set.layered {
        layer_sizes(set)
    } else {
        let all = SpanningTrees::new(MOST_COLOURS, shape.m, shape.p, two).map_err(refused)?;
        let found = allocate_general(set, &all, None, Overlap::Refuse).map_err(refused)?;
        found.layers.iter().map(|layer| layer.groups).collect()
    };
    let mut answer = answer(shape.m, trees, two, Some(sizes)).map_err(refused)?;
    answer["name"] = resolved.name.as_str().into();
    let most = answer["colours_needed"].as_u64().unwrap_or(0);
    if let (Some(places), Ok(most @ 1..)) = (&places, u32::try_from(most)) {
        let found = fewest_colours(set, (shape.m, shape.p, two), places, most, allocate);
        if let Some((colours, _)) = found.map_err(refused)? {
            answer["fewest_colours"] = colours.into();
        }
    }
    answer["warnings"] = resolved.warnings.clone().into();
    Ok(answer)
}

/// Groups of each layer.
fn layer_sizes(set: &GroupSet) -> Vec<u64> {
    let mut sizes = vec![0; set.layers as usize];
    for communicator in &set.communicators {
        if let Some(size) = sizes.get_mut(communicator.layer as usize) {
            *size += 1;
        }
    }
    sizes
}

fn answer(
    m: u32,
    trees: &SpanningTrees,
    fault_tolerant: bool,
    sizes: Option<Vec<u64>>,
) -> Result<Json, MgidError> {
    let colours = trees.colours();
    let mut answer = json!({
        "name": null,
        "m": m,
        "colours": colours,
        "fault_tolerant": fault_tolerant,
        "groups_carried": groups_carried(colours, m, fault_tolerant)?,
        "groups": null,
        "colours_needed": null,
        "fewest_colours": null,
        "fits": null,
        "layers": [],
        "spare": null,
        "refused": null,
        "warnings": [],
    });
    let Some(sizes) = sizes else {
        return Ok(answer);
    };
    let mut needed = 0_u64;
    for &size in &sizes {
        needed += colours_needed(size, m, fault_tolerant)?;
    }
    answer["groups"] = sizes.iter().sum::<u64>().into();
    answer["colours_needed"] = needed.into();
    answer["fits"] = (needed <= colours.into()).into();
    match plan_layers(&sizes, trees) {
        Ok(plan) => {
            answer["spare"] = plan.spare.into();
            answer["layers"] = plan
                .layers
                .iter()
                .map(|layer| {
                    json!({
                        "layer": layer.range.layer,
                        "groups": layer.range.groups,
                        "first_colour": layer.range.first_colour,
                        "colours": layer.range.colours,
                        "colours_without_sharing": layer.colours_without_sharing,
                        "groups_per_tree": layer.groups_per_tree,
                    })
                })
                .collect();
        }
        Err(error) => answer["refused"] = error.to_string().into(),
    }
    Ok(answer)
}
