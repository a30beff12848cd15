//! What a setting may be, wherever it is read: types and limits stand once, beside the field, in the type's JSON Schema.
//!
//! A field says its limits with an attribute: `#[schemars(range(min = 1, max = 8))]` for numbers,
//! `#[schemars(length(min = 1))]` for lists and texts, `#[schemars(transform = between("64B", "9000B"))]` for quantities.
//! The published schemas of files show them, and [`check`] refuses what lies outside, with the path to it: whoever knows
//! the text gives that path its line and column. [`check_value`] does the same to a value that comes from no text.
//!
//! - [`between`], [`at_least`], [`at_most`], [`each`], [`one_line`]: limits of quantities, of the items of a list, of names.
//! - [`check`], [`check_value`], [`Finding`]: what is wrong, and where.
//! - [`words`]: words in messages.

mod check;
mod finding;
mod limits;
pub mod words;

pub use check::{check, check_value};
pub use finding::{Finding, Problem, Step};
pub use limits::{at_least, at_most, between, describe, each, one_line};
