//! Falling back together.
