//! Connections over rails in virtual time: random schedules, rates, rails that fail.

mod chance;
mod failures;
mod rates;
mod schedules;
mod world;
