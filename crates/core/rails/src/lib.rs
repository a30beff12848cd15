//! Messages over several rails: cut, sent on all rails at once, put together again, whole, in order, once (`MNC` in docs/references.bib; docs/concepts/rails.md).
//!
//! A [`Connection`] is one node's half. It has no clock, socket or memory for messages: a driver tells it the time and what came,
//! and asks what is to be sent. After every call the driver drains [`poll_transmit`](Connection::poll_transmit), then
//! [`poll_event`](Connection::poll_event), and calls [`handle_timeout`](Connection::handle_timeout) when
//! [`poll_timeout`](Connection::poll_timeout) is due. Bytes stay with the driver: what is to be sent names token, offset and
//! length, and what came names the receive token where it is to be copied, before events are looked at.
//!
//! ```
//! use raddle_rails::{Config, Connection, Event, Reception};
//! use raddle_units::{BitRate, Span, Time};
//! use raddle_wire::native::JobKey;
//!
//! let node = |local, peer| {
//!     let rails = vec![BitRate::from_gbps(10); 2];
//!     Connection::new(Time::ZERO, Config::new(1, JobKey::new([7; 16]), local, peer, 99, rails)).unwrap()
//! };
//! let mut nodes = [node(0, 1), node(1, 0)];
//! nodes[1].open_port(5, 1 << 20).unwrap();
//! nodes[1].provide(5, 0).unwrap();
//! let message: Vec<u8> = (0..100_000).map(|byte| byte as u8).collect();
//! nodes[0].send(3, 5, message.len() as u64, 0).unwrap();
//!
//! let (mut now, mut buffer, mut came) = (Time::ZERO, vec![0; message.len()], false);
//! while !came {
//!     now += Span::from_us(10);
//!     for sender in [0, 1] {
//!         nodes[sender].handle_timeout(now);
//!         while let Some(transmit) = nodes[sender].poll_transmit(now) {
//!             // A socket would carry `transmit.packet.write(..)`; here the packet is handed over as it is.
//!             let receiver = &mut nodes[1 - sender];
//!             let how = Reception::default();
//!             let place = receiver.handle_packet(now, transmit.rail, &transmit.packet, how).unwrap();
//!             if let Some(place) = place {
//!                 let (from, to) = (transmit.payload.offset as usize, place.offset as usize);
//!                 let bytes = usize::from(place.bytes);
//!                 buffer[to..to + bytes].copy_from_slice(&message[from..from + bytes]);
//!             }
//!         }
//!     }
//!     while let Some(event) = nodes[1].poll_event() {
//!         came |= matches!(event, Event::Received { token: 0, length: 100_000, .. });
//!     }
//! }
//! assert_eq!(buffer, message);
//! ```
//!
//! | file | what |
//! |---|---|
//! | `split` | pure: how many bytes for which rail |
//! | `policy`, `state` | which rails a message takes; what is known of the other node's |
//! | `rail` | one rail: whether it works; with `control`, `sent`, `pending_acks`, `received`, `rtt` and `lateness` |
//! | `outbox`, `turns`, `inbox` | messages, ports and tokens |
//! | `connection` | all of it; `arrivals`: greeting, acknowledgements, failure; `departures`: what is sent next |

mod config;
mod connection;
mod control;
mod dropped;
mod event;
mod inbox;
mod lateness;
mod outbox;
mod pending_acks;
mod policy;
mod rail;
mod rail_set;
mod received;
mod rtt;
mod sent;
pub mod split;
mod state;
mod turns;

pub use config::{Config, ConfigError, MAX_HEARTBEAT};
pub use connection::{Connection, OtherConnections, Payload, RailView, Reception, Transmit};
pub use dropped::{Counters, Dropped};
pub use event::{Event, Failure, SendError, SendFailure};
pub use inbox::{Placement, PortError};
pub use policy::{Policy, Segmentation};
pub use rail::RailStatus;
pub use rail_set::RailSet;
pub use state::Ask;
pub use turns::MAX_PORTS;
