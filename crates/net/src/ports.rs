//! The ports of a switch: which interface each is, whether it works, and what it carried.

use std::io;

use rustc_hash::FxHashMap;

use crate::{
    bridge::Port,
    config::PortConfig,
    fast::Link,
    socket::{Interface, PacketSocket, Sending},
    status::PortStatus,
};

/// What happened to a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Its interface has come, or got a carrier.
    Up(Link),
    /// Its interface has gone, or lost its carrier.
    Down(Link),
}

/// What a port carried.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traffic {
    /// Frames and bytes received.
    pub received: (u64, u64),
    /// Frames and bytes sent.
    pub sent: (u64, u64),
    /// Frames that the interface did not take.
    pub refused: u64,
}

impl Traffic {
    /// A frame came.
    #[inline]
    pub const fn receive(&mut self, frame: &[u8]) {
        self.received.0 += 1;
        self.received.1 += frame.len() as u64;
    }

    /// A frame was given to the interface.
    #[inline]
    pub const fn send(&mut self, sending: &Sending<'_>, result: &io::Result<()>) {
        if result.is_ok() {
            self.sent.0 += 1;
            self.sent.1 += sending.frame.len() as u64;
        } else {
            self.refused += 1;
        }
    }
}

#[derive(Debug)]
struct State {
    config: PortConfig,
    interface: Option<Interface>,
    losses: u64,
}

/// All ports, in the order of the configuration.
#[derive(Debug)]
pub struct Ports {
    states: Vec<State>,
    by_interface: FxHashMap<u32, Port>,
}

impl Ports {
    /// The ports of a configuration, all of them down.
    #[must_use]
    pub fn new(ports: &[PortConfig]) -> Self {
        let state = |config: &PortConfig| State {
            config: config.clone(),
            interface: None,
            losses: 0,
        };
        Self {
            states: ports.iter().map(state).collect(),
            by_interface: FxHashMap::default(),
        }
    }

    /// The port of an interface.
    #[inline]
    #[must_use]
    pub fn by_interface(&self, index: u32) -> Option<Port> {
        self.by_interface.get(&index).copied()
    }

    /// The interface of a port that works.
    #[inline]
    #[must_use]
    pub fn interface(&self, port: Port) -> Option<u32> {
        Some(self.states[port.index()].interface?.index)
    }

    /// Looks all interfaces up again; gives what has changed. The socket is to [listen](Self::listen) then.
    pub fn look(&mut self, socket: &PacketSocket) -> Vec<Change> {
        let mut changes = Vec::new();
        for (index, state) in self.states.iter_mut().enumerate() {
            let found = socket.interface(&state.config.interface);
            let working = found.filter(|interface| interface.running);
            if working == state.interface {
                continue;
            }
            let link = |interface: Interface| Link {
                port: Port(index as u16),
                interface: state.config.interface.clone(),
                index: interface.index,
                uplink: state.config.uplink,
            };
            if let Some(old) = state.interface.take() {
                state.losses += 1;
                self.by_interface.remove(&old.index);
                changes.push(Change::Down(link(old)));
            }
            if let Some(new) = working {
                // It may vanish between the two calls: then it is found missing the next time.
                if let Err(error) = socket.hear_all(new.index) {
                    tracing::warn!(port = state.config.interface, %error, "cannot hear all frames");
                    continue;
                }
                state.interface = Some(new);
                self.by_interface.insert(new.index, Port(index as u16));
                changes.push(Change::Up(link(new)));
            }
        }
        changes
    }

    /// Makes the socket receive from the ports that work; `mark` tells which frames of an interface alone are for it.
    ///
    /// # Errors
    /// What the system says.
    pub fn listen(
        &self,
        socket: &PacketSocket,
        mark: impl Fn(u32) -> Option<u32>,
    ) -> io::Result<()> {
        let working: Vec<_> = self
            .states
            .iter()
            .filter_map(|state| Some(state.interface?.index))
            .map(|index| (index, mark(index)))
            .collect();
        socket.listen(&working)
    }

    /// The ports as the status shows them, with what each carried.
    #[must_use]
    pub fn status(&self, traffic: &[Traffic]) -> Vec<PortStatus> {
        let pairs = self.states.iter().zip(traffic);
        pairs
            .map(|(state, traffic)| PortStatus {
                interface: state.config.interface.clone(),
                uplink: state.config.uplink,
                up: state.interface.is_some(),
                received: traffic.received.0,
                received_bytes: traffic.received.1,
                sent: traffic.sent.0,
                sent_bytes: traffic.sent.1,
                refused: traffic.refused,
                losses: state.losses,
            })
            .collect()
    }
}
