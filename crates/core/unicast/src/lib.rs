//! Ways through a fabric: shortest paths to every host, and which of several equal ones a packet takes.
//!
//! ```
//! use raddle_fabric::dumbbell;
//! use raddle_unicast::{LinkState, NextHopOrder, UnicastTables};
//! let fabric = dumbbell(2).unwrap();
//! let tables =
//!     UnicastTables::compute(&fabric, &LinkState::all_up(&fabric), NextHopOrder::ByPort).unwrap();
//! let (first, last) = (fabric.hosts()[0], fabric.hosts()[3]);
//! assert_eq!(tables.next_hops(first, last).len(), 1);
//! assert_eq!(tables.first_path(&fabric, first, last).count(), 3);
//! ```
//!
//! - `tables`: [`UnicastTables`], the compressed tables that switches read.
//! - `compute`, `search`, `rows`, `stretch`: how they are computed, for 64 classes of hosts at once.
//! - `hash`: [`ecmp_murmur3`] and [`FlowHash`], the specified hash behind ECMP.
//! - `choice`: [`PathChoice`] and [`DModK`].
//! - `links`: [`LinkState`], the links that are up; after a change the tables are computed anew.
//!
//! Nothing here knows of time or packets: a fabric and a link state go in, tables come out.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used)]

mod choice;
mod compute;
mod hash;
mod links;
mod rows;
mod search;
mod stretch;
mod tables;

pub use choice::{DModK, PathChoice};
pub use hash::{FlowHash, ecmp_murmur3};
pub use links::LinkState;
pub use tables::{ClassId, NextHopOrder, UnicastTables};

/// Why there are no tables.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoutingError {
    /// The link state belongs to another fabric.
    #[error("the link state has {state} links but the fabric {fabric}; make it for this fabric")]
    ForeignLinkState {
        /// Links of the state.
        state: usize,
        /// Links of the fabric.
        fabric: usize,
    },
    /// The tables would be larger than we hold.
    #[error("the routing tables need {entries} entries, more than {limit}; use a smaller fabric")]
    TooLarge {
        /// Entries that are needed.
        entries: u64,
        /// Entries that are possible.
        limit: u64,
    },
}
