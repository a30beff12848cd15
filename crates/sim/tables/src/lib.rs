//! Files that a user writes and files that we write: what experiments, route files and their results have in common.
//!
//! In: a TOML text with all that it includes becomes a tree ([`document::Node`]) that knows the place of every key;
//! [`read::read`] makes typed values of it. What is wrong is an [`InputError`]: file, line, a mark, what is wrong and
//! how to cure it, on one screen. Out: tables as Parquet files ([`TableWriter`]), and files that are replaced as a whole
//! or not at all ([`replace_file`]).
//!
//! - [`files`], [`open`]: where the files that a text names come from, and how they are opened.
//! - [`document`]: the text with its includes as a tree.
//! - [`read`], [`error`]: from the tree to typed values by serde; errors.
//! - [`fabric`]: the map that a `[fabric]` table describes or names.
//! - [`schema`]: the JSON Schema that is published of a file.
//! - [`table`], [`disk`]: results.
//! - [`trace`]: traces of MPI programs.

pub mod disk;
pub mod document;
pub mod error;
pub mod fabric;
pub mod files;
pub mod open;
pub mod read;
pub mod schema;
pub mod table;
pub mod trace;

pub use disk::{DiskError, replace_file};
pub use error::{InputError, Place, Problem};
pub use files::{DiskFiles, Files, MemoryFiles};
pub use table::{Cell, TableWriter};
