//! Tables in Parquet: results, and traces of MPI programs.
//!
//! - [`TableWriter`]: rows in, a file out that is whole or not there.
//! - [`trace`]: traces of MPI programs.

mod table;
pub mod trace;

pub use table::{Cell, TableWriter};
