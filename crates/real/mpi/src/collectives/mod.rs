//! Small collectives in switches. A call comes in by `table`; `communicator` decides about it, after all ranks have compared
//! their settings and places (`agreement`, `roles`); `ready` finds its way and tries again what has failed; `group` does the
//! rounds of one communicator, over a `link` to the switch, whose `member` speaks our protocol or the `published` one; `service` sets groups up (`setup`, `attempt`), keeps them alive
//! and answers other ranks while the program computes.
//!
//! Beside these: `addition_order` (how the MPI library adds), `adapt` (is it faster?), `layout` (C's layout of values and the
//! wire's), `spin` (how to wait), `counts` and `registry` (what is reported), [`reason`].

mod adapt;
mod addition_order;
mod agreement;
mod attempt;
mod call;
mod communicator;
pub(crate) mod counts;
mod group;
mod layout;
mod link;
mod member;
mod published;
mod ready;
pub mod reason;
pub(crate) mod registry;
mod roles;
mod service;
mod setup;
mod spin;
pub(crate) mod table;
#[cfg(test)]
mod tests;
