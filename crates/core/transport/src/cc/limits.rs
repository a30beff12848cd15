//! What parameters of schemes may be where several schemes have the same.
//!
//! The defaults follow a fabric's rates and round-trip times, and lie inside whatever those are.

use raddle_text::{at_least, at_most, between};
use schemars::Schema;

/// Bytes in flight: none at all would send nothing.
pub(super) fn window() -> impl Fn(&mut Schema) {
    at_least("1B")
}

/// A queue's length from which on packets are marked; drivers also hold it to the switches' buffer.
pub(super) fn threshold() -> impl Fn(&mut Schema) {
    at_most("1TiB")
}

/// A rate, or what is added to one.
pub(super) fn increase() -> impl Fn(&mut Schema) {
    at_most("1000Tbps")
}

/// A round-trip time that divides, or is aimed at.
pub(super) fn delay() -> impl Fn(&mut Schema) {
    at_least("1ps")
}

/// The period of a timer: a shorter one would take more of a run than its packets.
pub(super) fn period() -> impl Fn(&mut Schema) {
    between("100ns", "86400s")
}
