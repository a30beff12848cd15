//! Ready-made maps, one file each. All number their hosts from 0 and the switches after them, lower levels first.

mod cn_tn;
mod dumbbell;
mod fat_tree;
mod fat_tree_320;
mod graph;
mod k_ary_fat_tree;
mod leaf_spine;
mod rail_optimised;
mod small_20;
mod xgft;

use raddle_text::check_value;
use raddle_units::{BitRate, Span};
use schemars::JsonSchema;
use serde::Serialize;

pub use cn_tn::CnTn;
pub use dumbbell::{Dumbbell, dumbbell};
pub use fat_tree::FatTree;
pub use fat_tree_320::FatTree320;
pub use graph::{Graph, HostEntry, LinkEntry, SwitchEntry};
pub use k_ary_fat_tree::KAryFatTree;
pub use leaf_spine::LeafSpine;
pub use rail_optimised::RailOptimised;
pub use small_20::Small20;
pub use xgft::Xgft;

use crate::{
    build::{MAX_LINKS, MAX_NODES, check_limit},
    error::{FabricError, Place},
};

pub(crate) use graph::{LONGEST_NODE_NAME, Origin};

/// Rate of a link where none is given.
pub(crate) fn default_rate() -> BitRate {
    BitRate::from_gbps(100)
}

/// Propagation delay of a link where none is given.
pub(crate) fn default_delay() -> Span {
    Span::from_us(1)
}

pub(crate) fn one() -> u32 {
    1
}

fn place(source: &str) -> Place {
    Place {
        source: source.to_owned(),
        line: None,
    }
}

/// Product of factors, stopping at the largest number instead of wrapping round.
fn product(factors: &[u32]) -> u128 {
    factors
        .iter()
        .fold(1u128, |all, &factor| all.saturating_mul(u128::from(factor)))
}

/// Refuses a map with too many nodes or links before anything is allocated.
fn check_size(
    source: &str,
    nodes: u128,
    links: u128,
    parameters: &'static str,
) -> Result<(), FabricError> {
    check_limit(|| place(source), "nodes", nodes, MAX_NODES, parameters)?;
    check_limit(|| place(source), "links", links, MAX_LINKS, parameters)
}

/// Refuses parameters outside of the limits that their schema has.
fn check_limits<T: JsonSchema + Serialize>(source: &str, kind: &T) -> Result<(), FabricError> {
    check_value(kind)
        .map_err(|finding| bad(source, finding.key().unwrap_or("kind"), finding.told()))
}

fn bad(source: &str, key: &str, problem: impl Into<String>) -> FabricError {
    FabricError::BadParameter {
        at: place(source),
        key: key.to_owned(),
        problem: problem.into(),
    }
}
