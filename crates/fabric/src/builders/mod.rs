//! Ready-made maps, one file each. All number their hosts from 0 and the switches after them, lower levels first.

mod cn_tn;
mod dumbbell;
mod fat_tree;
mod fat_tree_320;
mod graph;
mod k_ary_fat_tree;
mod leaf_spine;
mod small_20;

use raddle_units::{BitRate, Span};

pub use cn_tn::CnTn;
pub use dumbbell::{Dumbbell, dumbbell};
pub use fat_tree::FatTree;
pub use fat_tree_320::FatTree320;
pub use graph::{Graph, HostEntry, LinkEntry, SwitchEntry};
pub use k_ary_fat_tree::KAryFatTree;
pub use leaf_spine::LeafSpine;
pub use small_20::Small20;

use crate::{
    build::{MAX_LINKS, MAX_NODES, check_limit},
    error::{FabricError, Place},
};

pub(crate) use graph::Origin;

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

/// Refuses parameters below 1.
fn check_positive(source: &str, parameters: &[(&'static str, u32)]) -> Result<(), FabricError> {
    match parameters.iter().find(|(_, value)| *value == 0) {
        Some(&(key, value)) => Err(bad(source, key, value, "it must be at least 1")),
        None => Ok(()),
    }
}

fn bad(
    source: &str,
    key: &'static str,
    value: impl ToString,
    cure: impl Into<String>,
) -> FabricError {
    FabricError::BadParameter {
        at: place(source),
        key,
        value: value.to_string(),
        cure: cure.into(),
    }
}
