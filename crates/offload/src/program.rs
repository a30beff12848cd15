//! What a node of the aggregation tree computes.
