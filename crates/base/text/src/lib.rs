//! Texts that people write, wherever they are read: experiments, route files, maps, settings of a switch.
//!
//! A TOML text with all that it includes becomes a tree ([`Node`]) that knows the place of every key; [`read`] makes typed
//! values of it. What is wrong is an [`InputError`]: file, line, a mark, what is wrong and how to cure it, on one screen.
//!
//! What a setting may be stands once, beside its field, in the type's JSON Schema: `#[schemars(range(min = 1, max = 8))]`
//! for numbers, `#[schemars(length(min = 1))]` for lists and texts, `#[schemars(transform = between("64B", "9000B"))]` for
//! quantities. The published schemas show it ([`schema_text`]), [`read`] refuses what lies outside, and [`check_value`]
//! does the same to a value that comes from no text.
//!
//! - [`tree`]: the text with its includes; [`files`]: where the files that it names come from.
//! - [`read`], [`error`]: from the tree to typed values by serde; errors.
//! - [`check`], [`Finding`], [`limits`]: what a schema allows, and what is outside of it.
//! - [`schema`]: the JSON Schema that is published of a file.
//! - [`words`]: words in messages.

mod check;
pub mod error;
pub mod files;
mod finding;
pub mod limits;
mod place;
mod read;
pub mod schema;
pub mod tree;
pub mod words;

/// Every `RADDLE_*` variable: name, who reads it, values, default, meaning; as TOML. Drivers of both worlds read some.
pub const ENVIRONMENT: &str = include_str!("../environment.toml");

pub use check::{check, check_value};
pub use error::{InputError, Problem, clip};
pub use files::{Files, MOST_DATA, MOST_TEXT, MemoryFiles, ReadError};
pub use finding::{Finding, FindingKind, Step};
pub use limits::{at_least, at_most, between, describe, each, one_line};
pub use place::{Location, Place, Source};
pub use read::read;
pub use schema::{list_names, schema_text};
pub use tree::Node;
