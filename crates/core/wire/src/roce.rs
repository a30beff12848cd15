//! InfiniBand transport headers over UDP: RoCEv2 (IBTA volume 1, chapter 9 and annex A17).

use core::fmt;

use crate::field::{FieldValue, header};

/// The operation code of a base transport header: transport in the three high bits, operation in the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Opcode(pub u8);

/// The header that an operation code puts behind the BTH, of those known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtensionKind {
    /// None of them; what follows counts as payload.
    None,
    /// DETH.
    Deth,
    /// AETH.
    Aeth,
}

impl Opcode {
    /// First packet of a message, reliable connection.
    pub const RC_SEND_FIRST: Self = Self(0x00);
    /// Packet between first and last.
    pub const RC_SEND_MIDDLE: Self = Self(0x01);
    /// Last packet of a message.
    pub const RC_SEND_LAST: Self = Self(0x02);
    /// A message of one packet, reliable connection.
    pub const RC_SEND_ONLY: Self = Self(0x04);
    /// Acknowledgement.
    pub const RC_ACKNOWLEDGE: Self = Self(0x11);
    /// A message of one packet, unreliable connection.
    pub const UC_SEND_ONLY: Self = Self(0x24);
    /// A message of one packet, unreliable datagram.
    pub const UD_SEND_ONLY: Self = Self(0x64);
    /// The same with four bytes of immediate data, which count as payload here.
    pub const UD_SEND_ONLY_WITH_IMMEDIATE: Self = Self(0x65);
    /// Congestion notification packet.
    pub const CNP: Self = Self(0x81);

    /// Which of the headers known here follows the BTH.
    #[must_use]
    pub const fn extension(self) -> ExtensionKind {
        match self.0 {
            0x64 | 0x65 => ExtensionKind::Deth,
            // Read responses first, last, only; acknowledgement; atomic acknowledgement.
            0x0d | 0x0f | 0x10 | 0x11 | 0x12 => ExtensionKind::Aeth,
            _ => ExtensionKind::None,
        }
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "0x{:02x}", self.0)
    }
}

impl FieldValue for Opcode {
    #[inline]
    fn to_bits(self) -> u64 {
        u64::from(self.0)
    }

    #[inline]
    fn from_bits(bits: u64) -> Self {
        Self(bits as u8)
    }
}

header! {
    /// Base transport header (IBTA volume 1, 9.2).
    Bth, BthView, Bth, 12 {
        /// operation and transport: 0x04 RC send only, 0x64 UD send only, 0x11 acknowledgement
        opcode: Opcode = Big 0:0/8,
        /// the receiver's program is to be woken (SE)
        solicited: bool = Big 1:0/1,
        /// path migration state (M)
        migrated: bool = Big 1:1/1,
        /// zero bytes that fill the payload up to a multiple of 4, 0..=3
        pad: u8 = Big 1:2/2,
        /// transport header version, 0
        version: u8 = Big 1:4/4,
        /// partition key
        partition_key: u16 = Big 2:0/16,
        /// congestion was met on the way (FECN); ICRC takes it as one
        fecn: bool = Big 4:0/1,
        /// congestion was met on the way back (BECN); ICRC takes it as one
        becn: bool = Big 4:1/1,
        /// reserved, 0; ICRC takes it as all ones
        reserved6: u8 = Big 4:2/6,
        /// queue pair of the receiver
        destination_qp: u32 = Big 5:0/24,
        /// an acknowledgement is asked for (A)
        acknowledge: bool = Big 8:0/1,
        /// reserved, 0
        reserved7: u8 = Big 8:1/7,
        /// packet sequence number
        psn: u32 = Big 9:0/24,
    }
}

header! {
    /// Datagram extended transport header (IBTA volume 1, 9.3.1).
    Deth, DethView, Deth, 8 {
        /// queue key: the receiver's queue pair drops others
        queue_key: u32 = Big 0:0/32,
        /// reserved, 0
        reserved: u8 = Big 4:0/8,
        /// queue pair of the sender
        source_qp: u32 = Big 5:0/24,
    }
}

header! {
    /// Acknowledgement extended transport header (IBTA volume 1, 9.3.4).
    Aeth, AethView, Aeth, 4 {
        /// kind of acknowledgement and its credits, timer or cause
        syndrome: u8 = Big 0:0/8,
        /// message sequence number
        msn: u32 = Big 1:0/24,
    }
}

/// Meaning of the syndrome of an acknowledgement (IBTA volume 1, 9.7.5.2.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syndrome {
    /// Received; the credit code, 31 = credits are not counted.
    Ack(u8),
    /// Receiver not ready; the code of the time to wait.
    NotReady(u8),
    /// Refused; 0 sequence error, 1 invalid request, 2 access error, 3 operational error.
    Nak(u8),
    /// A reserved value.
    Reserved(u8),
}

impl From<u8> for Syndrome {
    fn from(byte: u8) -> Self {
        match byte >> 5 {
            0 => Self::Ack(byte & 31),
            1 => Self::NotReady(byte & 31),
            3 => Self::Nak(byte & 31),
            _ => Self::Reserved(byte),
        }
    }
}
