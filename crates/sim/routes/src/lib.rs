//! Multicast routes from files: a route file in, trees, tables and measures out.
//!
//! A route file names a fabric, groups and engines ([`RouteFile`]). [`Resolved`] makes and checks all of it, gives the
//! groups their MGIDs, and [`run`] routes them with each engine and writes a folder: `summary.json`, `trees.parquet`,
//! `tables.parquet`, `links.parquet`, `merges.parquet`, `nodes.parquet`, `drawn.json`. Nothing is simulated here.
//!
//! - `fields`, `check`: the tables of the file and their JSON Schema; what types cannot say.
//! - `resolve`: fabric, groups, MGIDs.
//! - [`registry`]: the engines by name.
//! - `per_switch`: C-MR4LMS for tables per switch behind the engines' trait.
//! - `run`, `tables`: routing, files.
//! - `loops`: the credit-loop check of a run.
//! - `numbers`, `capacity`, `jobs`: `raddle mgid`, `raddle capacity` and `raddle place`.

mod capacity;
mod check;
mod fields;
mod jobs;
mod loops;
mod numbers;
mod per_switch;
mod reason;
pub mod registry;
mod resolve;
mod run;
mod tables;
#[cfg(test)]
mod tests;

pub use capacity::{CapacityError, CapacityRequest, capacity, capacity_of_file};
pub use fields::{
    GroupsTable, Layers, MulticastTable, Pattern, RouteFile, TableKind, route_schema,
};
pub use jobs::{HostName, JobFile, PlacementTable, RunningJob, WaitingJob, place_jobs};
pub use numbers::number_groups;
pub use resolve::{DEFAULT_COLOURS, Resolved, group_format};
pub use run::{PlanError, Progress, describe, run};
