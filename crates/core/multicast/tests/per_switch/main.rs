//! Trees and MLIDs for tables per switch.

mod common;
mod pairs;
mod single;
