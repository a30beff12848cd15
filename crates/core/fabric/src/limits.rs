//! What links may be, in all maps: described ones, lists of links, and files of other programs.

use raddle_text::{at_most, between};
use raddle_units::{BitRate, Span};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

/// A link's rate, for `#[schemars(transform = ...)]`.
pub(crate) fn rate() -> impl Fn(&mut Schema) {
    between("1bps", "1000Tbps")
}

/// A link's propagation delay.
pub(crate) fn delay() -> impl Fn(&mut Schema) {
    at_most("1s")
}

/// A link as it is judged when a map is put together.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LinkSettings {
    #[schemars(transform = rate())]
    pub(crate) rate: BitRate,
    #[schemars(transform = delay())]
    pub(crate) delay: Span,
}
