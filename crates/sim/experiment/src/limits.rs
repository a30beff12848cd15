//! Limits that several tables of an experiment share.

/// Latest instant that a run may be told about: more is a mistake of units.
pub(super) const DAY: &str = "86400s";
/// Most ports that have a series of their own.
pub(super) const MAX_SERIES: u32 = 10_000;
