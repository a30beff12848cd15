//! Where a frame goes: a learning bridge (IEEE 802.1Q, clause 8) without sockets or a clock.
//!
//! Addresses are learnt per VLAN and forgotten after some minutes of silence. There is no spanning tree: the ports
//! of all switches together must not form a ring.

/// A port of the switch, by its place in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

impl Port {
    /// The port as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
