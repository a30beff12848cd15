//! The matching of point-to-point messages as a pure state machine: one MPI process with all communicators that are
//! ours (`docs/concepts/matching.md` has the design and its reasons). Calls and parcels go in; parcels
//! ([`Matcher::poll_transmit`]) and what happened ([`Matcher::poll_event`]) come out. No clock, socket, thread or random source.
//!
//! ```text
//!  send ──► lines (joined per target or node) ──► poll_transmit ─ ─ ─► handle_parcel ──► order of each pair
//!                                                 shadow channel                          │
//!  receive, probe, claim, cancel ──► queues (posted, unexpected) ◄────────────────────────┘
//!                                      └──► poll_event: delivered, fetch
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
//! use raddle_matching::{Event, Matcher, Mode, Outgoing, Parcel, Settings, Wanted};
//! use raddle_schedule::{Distance, Placement};
//!
//! /// What a driver does after each call: the program gets its bytes, parcels go out.
//! fn drain(matcher: &mut Matcher, parcel: &[u8], program: &mut Vec<(u64, Vec<u8>)>) -> Vec<Parcel> {
//!     while let Some(event) = matcher.poll_event() {
//!         if let Event::Delivered { receive, contents, .. } = event {
//!             program.push((receive, contents.bytes(parcel).to_vec()));
//!             matcher.give_back(contents);
//!         }
//!     }
//!     std::iter::from_fn(|| matcher.poll_transmit()).map(|transmit| transmit.parcel).collect()
//! }
//!
//! let placement = Placement::blocks(2, 1).unwrap();
//! let rank = |rank| Matcher::new(rank, &placement, &Distance::default(), &Settings::default()).unwrap();
//! let (mut zero, mut one, mut program) = (rank(0), rank(1), Vec::new());
//! let message = Outgoing { to: 1, context: 0, tag: 7, bytes: 3, mode: Mode::Standard };
//! zero.send(&message, |room| room.copy_from_slice(b"abc")).unwrap();
//! zero.flush();
//! one.receive(&Wanted { context: 0, source: None, tag: Some(7) }, 100, 1).unwrap();
//! for parcel in drain(&mut zero, &[], &mut program) {
//!     one.handle_parcel(0, parcel.bytes()).unwrap();
//!     drain(&mut one, parcel.bytes(), &mut program);
//!     zero.recycle(parcel);
//! }
//! assert_eq!(program, [(1, b"abc".to_vec())]);
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
// The driver that tests outside and inside share names the crate from outside.
#[cfg(test)]
extern crate self as raddle_matching;
#[cfg(test)]
mod tests;
mod trial;

pub use calls::{
    CallError, Claim, Contents, Counts, Event, Fetch, Mode, Outgoing, Posted, Sent, Statistics,
    Ticket, Transmit,
};
pub use carrier::{BadNotice, Carrier, CarrierEvent, LEAST_OFFER, Notice, SLOTS};
pub use matcher::Matcher;
pub use parcel::Parcel;
pub use part::{MOST_CONTEXTS, MOST_NOTICE};
pub use queues::{Envelope, Wanted};
pub use refused::Refused;
pub use settings::{SetUpError, Settings};
pub use trial::{Trial, Vote, Way};
