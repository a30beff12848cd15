//! Small collectives in switches: `communicator` decides about each call, `ready` finds its way and tries again what has
//! failed, `group` does rounds of one communicator, `service` sets groups up (`setup`, `attempt`), keeps them alive and
//! answers other ranks while the program computes.

pub mod reason;

pub(crate) mod adapt;
pub(crate) mod addition_order;
pub(crate) mod agreement;
pub(crate) mod attempt;
pub(crate) mod communicator;
pub(crate) mod group;
pub(crate) mod layout;
pub(crate) mod link;
pub(crate) mod ready;
pub(crate) mod service;
pub(crate) mod setup;
pub(crate) mod spin;
