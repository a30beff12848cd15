//! The seam for a fast path in the kernel: what the switch tells it, and what it reports.
//!
//! A fast path sits below the switch's sockets on the same interfaces. It may answer steady rounds of groups by itself,
//! and forward ordinary frames; every frame that it does not take must reach the sockets unchanged. All calls come from the switch's thread, none of
//! them per packet.

use std::net::Ipv4Addr;

use raddle_offload::switch::SwitchEvent;
use raddle_units::Time;
use raddle_wire::MacAddress;

use crate::bridge::{Port, Station};

/// An interface that is a port of the switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The port.
    pub port: Port,
    /// Name of the interface.
    pub interface: String,
    /// Its index in this network namespace.
    pub index: u32,
    /// Whether it leads towards the root of the tree of switches.
    pub uplink: bool,
}

/// What a fast path must know of the switch at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The switch's own address.
    pub address: Ipv4Addr,
    /// Its hardware address, which answers ARP.
    pub mac: MacAddress,
    /// Which life of the switch this is.
    pub epoch: u32,
}

/// How a neighbour's frames are addressed, as the switch's sockets would send them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The port by which it is reached.
    pub port: Port,
    /// Index of that port's interface.
    pub index: u32,
    /// Its hardware address.
    pub mac: MacAddress,
    /// VLAN of its frames, 0 for none.
    pub vlan: u16,
}

/// What a fast path counted since it began, by port and by what happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FastCounters {
    /// Frames and bytes that it received and sent without the sockets, by port's index.
    pub ports: Vec<FastPort>,
    /// Messages by job and what became of them, like `("rounds", 12)`; names as in the metrics of the switch.
    pub jobs: Vec<(u32, &'static str, u64)>,
    /// Messages dropped, by reason; names as in the metrics of the switch.
    pub drops: Vec<(&'static str, u64)>,
}

/// Traffic of a port that the sockets did not see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FastPort {
    /// Frames received.
    pub received: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Frames sent.
    pub sent: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

/// Why a fast path does not work. The switch goes on with its sockets, and says so.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {cause}")]
pub struct FastPathError {
    /// What was tried.
    pub what: String,
    /// What the system said.
    pub cause: String,
}

/// A fast path. It takes itself off the interfaces when it is dropped, and must vanish with the process.
pub trait FastPath {
    /// Its name in the configuration: `xdp`.
    fn name(&self) -> &'static str;

    /// An interface has come (at the start, or again after it had gone).
    ///
    /// # Errors
    /// When it cannot work there; the port then runs over sockets alone.
    fn link_up(&mut self, link: &Link) -> Result<(), FastPathError>;

    /// An interface has gone.
    fn link_down(&mut self, link: &Link);

    /// The mark of frames that it leaves to the sockets on an interface. `None`: the sockets see those frames only, and
    /// unmarked; else they see all others before it does, and are to take the marked ones.
    fn mark(&self, interface: u32) -> Option<u32>;

    /// The core has installed or freed a group. The places of its neighbours come by
    /// [`route_changed`](Self::route_changed), before or after.
    ///
    /// # Errors
    /// When the group cannot be taken; its rounds then run in the core.
    fn event(&mut self, event: &SwitchEvent) -> Result<(), FastPathError>;

    /// A neighbour was learnt, has moved, or is forgotten (`None`).
    fn route_changed(&mut self, address: Ipv4Addr, route: Option<Route>);

    /// A station was learnt behind an interface, has moved there, or is forgotten (`None`). Ordinary frames between
    /// known stations need not reach the sockets.
    fn station_changed(&mut self, station: Station, interface: Option<u32>);

    /// Stations of which the sockets did not see every frame: those that sent some since the last time.
    fn heard(&mut self) -> Vec<Station>;

    /// Called a few times per second: whatever must be copied between kernel and core.
    fn tick(&mut self, now: Time);

    /// What it counted.
    fn counters(&self) -> FastCounters;
}
