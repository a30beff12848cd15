//! The aggregation tree of a group.
