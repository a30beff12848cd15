//! `raddle-switch`.
fn main() {}
