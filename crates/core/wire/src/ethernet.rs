//! Ethernet II and the IEEE 802.1Q tag. The frame check sequence is not part of a packet here: network cards add and
//! remove it.

use core::fmt;

use crate::field::{FieldValue, header};

/// A hardware address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// The address of all stations.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Whether it names a group of stations.
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

impl FieldValue for MacAddress {
    #[inline]
    fn to_bits(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    #[inline]
    fn from_bits(bits: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = bits.to_be_bytes();
        Self([a, b, c, d, e, f])
    }
}

/// Values of the field `ethertype`.
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// An IEEE 802.1Q tag follows.
    pub const VLAN: u16 = 0x8100;
}

header! {
    /// Ethernet II header (IEEE 802.3, 3.2), without preamble and frame check sequence.
    Ethernet, EthernetView, Ethernet, 14 {
        /// hardware address of the receiver
        destination: MacAddress = Big 0:0/48,
        /// hardware address of the sender
        source: MacAddress = Big 6:0/48,
        /// what follows: 0x0800 IPv4, 0x8100 a VLAN tag
        ethertype: u16 = Big 12:0/16,
    }
}

header! {
    /// IEEE 802.1Q tag: what follows the ethertype 0x8100.
    Vlan, VlanView, Vlan, 4 {
        /// priority (PCP), 0..=7
        priority: u8 = Big 0:0/3,
        /// may be dropped first (DEI)
        drop_eligible: bool = Big 0:3/1,
        /// VLAN id, 0..=4095
        id: u16 = Big 0:4/12,
        /// what follows: 0x0800 IPv4
        ethertype: u16 = Big 2:0/16,
    }
}
