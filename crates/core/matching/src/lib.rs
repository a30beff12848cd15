//! The matching of point-to-point messages as a pure state machine: one MPI process with all communicators that are
//! ours (`docs/concepts/matching.md` has the design and its reasons). Calls and parcels go in; parcels, delivered bytes and
//! fetches come out through [`Actions`]. No clock, socket, thread or random source.
//!
//! ```text
//!  send ──► lines (joined per target or node) ──► Actions::send ─ ─ ─► handle_parcel ──► order of each pair
//!                                                 shadow channel                          │
//!  receive, probe, claim, cancel ──► queues (posted, unexpected) ◄────────────────────────┘
//!                                      └──► Actions::deliver, fetch
//! ```
//!
//! # Order
//! What a receive gets is what MPI allows (MPI 4.0, section 3.5): messages of a pair are released to the queues in the
//! order in which they were sent, whatever way they took; a message goes to the first posted receive that takes it, a
//! receive to the first released message that it takes.
//!
//! # Memory
//! Bytes that nobody has asked for yet are kept for each peer up to [`Matcher::window`]; a sender that has used it up
//! sends by reference: its program's bytes stay where they are until a receive takes them. Nothing waits for room.
//!
//! ```
//! use raddle_matching::{Actions, Envelope, Fetch, Matcher, Mode, Outgoing, Parcel, Settings, Wanted};
//! use raddle_schedule::{Distance, Placement};
//!
//! #[derive(Default)]
//! struct Wire(Vec<Parcel>, Vec<(u64, u32, Vec<u8>)>);
//! impl Actions for Wire {
//!     fn send(&mut self, _to: u32, parcel: Parcel) {
//!         self.0.push(parcel);
//!     }
//!     fn deliver(&mut self, receive: u64, message: &Envelope, bytes: &[u8]) {
//!         self.1.push((receive, message.source, bytes.to_vec()));
//!     }
//!     fn fetch(&mut self, _receive: u64, _capacity: u64, _message: &Envelope, _from: Fetch) {}
//!     fn set_aside(&mut self, _aside: u64, _message: &Envelope, _key: u32) {}
//! }
//!
//! let placement = Placement::blocks(2, 1).unwrap();
//! let rank = |rank| Matcher::new(rank, &placement, &Distance::default(), &Settings::default()).unwrap();
//! let (mut zero, mut one, mut wire) = (rank(0), rank(1), Wire::default());
//! let message = Outgoing { to: 1, context: 0, tag: 7, bytes: 3, mode: Mode::Standard };
//! zero.send(&message, |room| room.copy_from_slice(b"abc"), &mut wire).unwrap();
//! zero.flush(&mut wire);
//! one.receive(&Wanted { context: 0, source: None, tag: Some(7) }, 100, 1, &mut wire).unwrap();
//! for parcel in std::mem::take(&mut wire.0) {
//!     one.handle_parcel(0, parcel.bytes(), &mut wire).unwrap();
//! }
//! assert_eq!(wire.1, [(1, 0, b"abc".to_vec())]);
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used)]

mod bins;
mod calls;
mod carrier;
mod degrees;
mod lines;
mod matcher;
mod parcel;
mod part;
mod peer;
mod queues;
mod refused;
mod settings;
mod slab;
mod store;
#[cfg(test)]
mod tests;
mod trial;

pub use calls::{
    Actions, CallError, Claim, Counts, Fetch, Mode, Outgoing, Posted, Sent, Statistics, Ticket,
};
pub use carrier::{BadNotice, Carrier, Deed, LEAST_OFFER, Notice, SLOTS};
pub use matcher::Matcher;
pub use parcel::Parcel;
pub use part::{MOST_CONTEXTS, MOST_NOTICE};
pub use queues::{Envelope, Wanted};
pub use refused::Refused;
pub use settings::{SetUpError, Settings};
pub use trial::{Trial, Vote, Way};
