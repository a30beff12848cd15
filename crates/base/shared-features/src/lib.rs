//! Nothing: this crate's manifest says which features of other people's crates all builds of the workspace share.
