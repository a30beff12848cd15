//! Trees of additions.
