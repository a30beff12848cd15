//! Hosts whose messages travel over several rails: the core `rails` in simulated time (docs/concepts/rails.md).
//!
//! With [`Rails`] in a run's settings every message to a host goes over the rails between the two: rail i leaves by the
//! host's port i, and [`multi_plane`] makes a fabric in which that is a network of its own. A message's class is its port at
//! both ends: that of a process, of which a host has any number up to 64.
//!
//! ```text
//! message ─► Connection ─► bus (read, cut) ─► card ─► fabric ─► card ─► bus (write) ─► Connection ─► delivered
//! ```
//!
//! | file | what |
//! |---|---|
//! | `planes` | a fabric as several copies of one |
//! | `load` | streams of messages, and one message back and forth |
//! | `machine` | hosts and networks of an experiment |
//! | `experiment` | how much goes through, and how long it takes |

mod experiment;
mod load;
mod machine;
mod planes;

pub use crate::host_rails::{Bus, Card, Rails};
pub use experiment::{Case, Cut, Figures, Load, PolicyName, RailsError, StreamLoad};
pub use load::{PingPong, Streams};
pub use machine::{Machine, Protocol};
pub use planes::{PlaneError, multi_plane};
