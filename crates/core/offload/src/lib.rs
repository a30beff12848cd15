//! In-network Allreduce without sockets and clocks: `docs/concepts/offload.md` says how it works.
//!
//! The driver hands in packets and the time, and sends what comes out: simulator, `raddle-switch` and the MPI library
//! run the same state machines.
//!
//! # How they are driven
//! A state machine has commands ([`Member::start`](member::Member::start)), `handle_packet(now, …)` and `handle_timeout(now)`.
//! After each of these the driver sends what `poll_transmit` gives until that is `None`, and looks at `poll_event` (a
//! [`Switch`](switch::Switch)) or `outcome` (the others); it calls `handle_timeout` when `poll_timeout` is due. Nothing calls
//! back into the driver. `raddle_host::drive` is this loop on sockets; here it is in virtual time:
//!
//! ```
//! use std::net::{Ipv4Addr, SocketAddrV4};
//!
//! use raddle_offload::member::{Member, MemberConfig, Outcome, RoundSpec};
//! use raddle_offload::switch::{Abilities, Quotas, SiteSecret, Switch, SwitchConfig, job_key};
//! use raddle_units::{Span, Time};
//! use raddle_wire::native::{ChildEntry, Collective, Header, Kind, PORT, ProgramHead, write_program};
//! use raddle_wire::{DataType, Operation};
//!
//! let host = |number| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, number), 40_000);
//! let address = Ipv4Addr::new(10, 255, 0, 1);
//! let secret = SiteSecret::new([7; 32]);
//! let key = job_key(&secret, 1);
//! let (quotas, abilities) = (Quotas::default(), Abilities::default());
//! let mut switch = Switch::new(SwitchConfig { address, tier: 1, epoch: 1, secret, quotas, abilities });
//! let mut now = Time::ZERO;
//!
//! // A message tells the switch its two children.
//! let head = ProgramHead { group_size: 2, lease_ms: 5000, slots: 4, segment_bytes: 64, ..ProgramHead::default() };
//! let child = |rank: u8| ChildEntry { address: *host(rank).ip(), port: 40_000, operands: 1, rank: rank.into() };
//! let (mut body, mut buffer) = ([0; 256], [0; 9000]);
//! let length = write_program(&mut body, &head, &[child(0), child(1)], &[], &[]).unwrap();
//! let header = Header { group: 1, ..Header::of(Kind::Program, 1) };
//! let length = header.write_message(&mut buffer, &body[..length], &key).unwrap();
//! switch.handle_packet(now, host(0), &buffer[..length]);
//!
//! let mut members = [0, 1].map(|member| {
//!     Member::new(now, MemberConfig {
//!         job: 1, key, group: 1, member, switch: SocketAddrV4::new(address, PORT), slots: 4, segment_bytes: 64,
//!         operands: 1, lease: Span::from_ms(5000), retry: Span::from_ms(1), give_up: Span::from_ms(1000),
//!     })
//! });
//! let spec = RoundSpec {
//!     collective: Collective::Allreduce, operation: Some(Operation::Sum), data_type: Some(DataType::Int64),
//!     count: 1, ordered: false, root: 0,
//! };
//! for member in &mut members {
//!     member.start(now, &spec, &21_i64.to_be_bytes()).unwrap();
//! }
//! while members.iter().any(|member| member.outcome() == Outcome::Pending) {
//!     now += Span::from_us(10);
//!     for (number, member) in (0..).zip(&mut members) {
//!         member.handle_timeout(now);
//!         while let Some((_, length)) = member.poll_transmit(&mut buffer) {
//!             switch.handle_packet(now, host(number), &buffer[..length]);
//!         }
//!     }
//!     switch.handle_timeout(now);
//!     while let Some((to, length)) = switch.poll_transmit(&mut buffer) {
//!         members[usize::from(to.ip().octets()[3])].handle_packet(now, &buffer[..length]);
//!     }
//!     while switch.poll_event().is_some() {}
//! }
//! let sum = 42_i64.to_be_bytes();
//! assert!(members.iter().all(|member| member.outcome() == Outcome::Done(&sum)));
//! ```
//!
//! # Modules
//! - [`reduce`]: one operation on two operands, element by element, as MPI libraries compute it.
//! - [`order`]: which tree of additions an MPI library makes, so that ours gives the same bits.
//! - [`program`]: that tree cut into what each node of the aggregation tree can do.
//! - [`published`]: the protocol of the paper; [`roles`]: who leads and who sends to whom in it.
//! - [`switch`], [`member`]: the two ends of a group.
//! - [`endpoint`]: a member with its recovery, for programs.
//! - [`setup`], [`tree`]: how a group comes to be.
//! - [`recovery`]: how all members leave together.
//! - [`retry`]: when they try again.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used)]

pub mod endpoint;
pub mod member;
pub mod order;
mod payload;
pub mod program;
pub mod published;
pub mod recovery;
pub mod reduce;
pub mod retry;
pub mod roles;
pub mod seen;
pub mod setup;
pub mod switch;
pub mod tree;
