//! The symbols that stand before those of the MPI library, and where each goes.

pub(crate) mod route;
pub(crate) mod trampolines;
