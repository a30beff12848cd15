//! Quantities and identifiers shared by every room of the house.
//!
//! Everything is an integer in one base unit: picoseconds ([`Time`], [`Span`]), bytes ([`Bytes`]) and bits per second
//! ([`BitRate`]). Text such as `"400Gbps"`, `"1.5us"` or `"64KiB"` is read and printed here and nowhere else; a number
//! without a unit is refused unless it is 0. This crate does no I/O and knows nothing of networks beyond their ids.
//!
//! ```
//! use raddle_units::{BitRate, Bytes, Span};
//! let rate: BitRate = "400Gbps".parse().unwrap();
//! assert_eq!(rate.transmission_time(Bytes(1048)), Span(20_960));
//! assert_eq!("1.5us".parse::<Span>().unwrap(), Span(1_500_000));
//! assert!("64".parse::<Bytes>().is_err());
//! ```

mod ids;
mod quantity;
mod text;

pub use ids::{FlowId, LinkId, NodeId, PortId};
pub use quantity::{BitRate, Bytes, Span, Time};
pub use text::{UnitError, many};
