//! Connections over rails in virtual time: random schedules, rates, rails that fail.

mod answers;
mod failures;
mod pair;
mod questions;
mod rates;
mod schedules;
mod world;
