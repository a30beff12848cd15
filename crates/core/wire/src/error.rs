//! What is wrong with a packet, and where.

use core::fmt;

use thiserror::Error;

/// A protocol layer, as named in errors and in the tables of `docs/reference/wire.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    /// Ethernet II.
    Ethernet,
    /// IEEE 802.1Q tag.
    Vlan,
    /// IPv4.
    Ipv4,
    /// UDP.
    Udp,
    /// InfiniBand base transport header.
    Bth,
    /// Datagram extended transport header.
    Deth,
    /// Acknowledgement extended transport header.
    Aeth,
    /// Invariant CRC.
    Icrc,
    /// What UCX puts before a message.
    Ucx,
    /// The 22-byte MPI header of the compatible layout.
    Head,
    /// The 56-byte control payload of the compatible layout.
    Control,
    /// The elements of a data packet of the compatible layout.
    Data,
    /// The header of our own protocol.
    Native,
    /// What begins a query's body in our own protocol.
    Terms,
    /// A switch on the way of a query.
    PathEntry,
    /// What begins a program's body in our own protocol.
    Program,
    /// A child in a program.
    ChildEntry,
    /// A step of a program.
    StepEntry,
    /// What begins every packet of messages over rails.
    RailHead,
    /// The body of a hello between nodes.
    RailHello,
    /// What stands before a segment of a message.
    RailSegment,
    /// What begins an acknowledgement on a rail.
    RailAck,
    /// An older range of an acknowledgement.
    RailRange,
    /// What a port takes.
    RailGrant,
}

impl Layer {
    /// The layer's name, e.g. "BTH".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "Ethernet",
            Self::Vlan => "VLAN",
            Self::Ipv4 => "IPv4",
            Self::Udp => "UDP",
            Self::Bth => "BTH",
            Self::Deth => "DETH",
            Self::Aeth => "AETH",
            Self::Icrc => "ICRC",
            Self::Ucx => "UCX",
            Self::Head => "MPI header",
            Self::Control => "control payload",
            Self::Data => "data payload",
            Self::Native => "Raddle header",
            Self::Terms => "Raddle terms",
            Self::PathEntry => "Raddle path entry",
            Self::Program => "Raddle program",
            Self::ChildEntry => "Raddle child entry",
            Self::StepEntry => "Raddle step entry",
            Self::RailHead => "rails header",
            Self::RailHello => "rails hello",
            Self::RailSegment => "rails segment",
            Self::RailAck => "rails acknowledgement",
            Self::RailRange => "rails range",
            Self::RailGrant => "rails grant",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Why a packet, or the order to build one, is refused: the layer, the field, its place and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{layer}: {field} at byte {offset}: {problem}")]
pub struct WireError {
    /// The layer that is wrong.
    pub layer: Layer,
    /// The field, by its name in the tables of `docs/reference/wire.md`, or "header" where all of it is missing.
    pub field: &'static str,
    /// Bytes from the start of what was parsed or built to the first byte of the field.
    pub offset: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Problem {
    /// The packet or the buffer ends too early.
    #[error("{needed} bytes are needed, {left} are left")]
    Short {
        /// Bytes that the field or header takes.
        needed: usize,
        /// Bytes that there are from its start.
        left: usize,
    },
    /// The value is not one that this layer may have.
    #[error("{found} (0x{found:x}) is not {expected}")]
    Value {
        /// The value found.
        found: u64,
        /// What would be right, e.g. "4".
        expected: &'static str,
    },
    /// The value contradicts another part of the packet.
    #[error("{found} (0x{found:x}), expected {expected} (0x{expected:x})")]
    Differs {
        /// The value found.
        found: u64,
        /// The value that the rest of the packet asks for.
        expected: u64,
    },
    /// The value does not fit into its field.
    #[error("{found} (0x{found:x}) does not fit into {bits} bits")]
    Range {
        /// The value given.
        found: u64,
        /// Width of the field in bits.
        bits: usize,
    },
    /// The tag is not the one that the job's key makes. The right one is not told: it would be a valid tag.
    #[error("0x{found:016x} was not made with this job's key")]
    Tag {
        /// The tag found.
        found: u64,
    },
}

impl WireError {
    /// `field` of `layer` at `offset` has a value that it may not have.
    pub(crate) const fn value(
        layer: Layer,
        field: &'static str,
        offset: usize,
        found: u64,
        expected: &'static str,
    ) -> Self {
        let problem = Problem::Value { found, expected };
        Self {
            layer,
            field,
            offset,
            problem,
        }
    }

    /// `field` of `layer` at `offset` contradicts the rest of the packet.
    pub(crate) const fn differs(
        layer: Layer,
        field: &'static str,
        offset: usize,
        found: u64,
        expected: u64,
    ) -> Self {
        let problem = Problem::Differs { found, expected };
        Self {
            layer,
            field,
            offset,
            problem,
        }
    }

    /// `needed` bytes of `layer` do not fit from `offset` on; `length` bytes are all there is.
    #[cold]
    pub(crate) const fn short(
        layer: Layer,
        field: &'static str,
        offset: usize,
        needed: usize,
        length: usize,
    ) -> Self {
        let problem = Problem::Short {
            needed,
            left: length.saturating_sub(offset),
        };
        Self {
            layer,
            field,
            offset,
            problem,
        }
    }
}
