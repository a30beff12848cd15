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

impl State {
    fn new(config: &PortConfig) -> Self {
        Self {
            config: config.clone(),
            interface: None,
            losses: 0,
        }
    }

    fn link(&self, port: Port, interface: Interface) -> Link {
        Link {
            port,
            interface: self.config.interface.clone(),
            index: interface.index,
            uplink: self.config.uplink,
        }
    }
}

/// All ports.
#[derive(Debug)]
pub struct Ports {
    /// By port; `None` where one was taken away.
    states: Vec<Option<State>>,
    /// In the order of the configuration.
    order: Vec<Port>,
    by_interface: FxHashMap<u32, Port>,
}

impl Ports {
    /// The ports of a configuration, all of them down.
    #[must_use]
    pub fn new(ports: &[PortConfig]) -> Self {
        Self {
            states: ports.iter().map(State::new).map(Some).collect(),
            order: (0..ports.len()).map(|index| Port(index as u16)).collect(),
            by_interface: FxHashMap::default(),
        }
    }

    /// Takes ports away that another configuration does not name, and adds those that it names; `traffic` is what each
    /// carried. Gives those that worked and are gone; the others stay as they are, and new ones are down until
    /// [`look`](Self::look).
    pub fn change(
        &mut self,
        ports: &[PortConfig],
        traffic: &mut Vec<Traffic>,
        socket: &PacketSocket,
    ) -> Vec<Change> {
        let mut changes = Vec::new();
        for (index, place) in self.states.iter_mut().enumerate() {
            let named = |state: &mut State| {
                let mut named = ports.iter();
                named.all(|port| port.interface != state.config.interface)
            };
            if let Some(old) = place.take_if(named)
                && let Some(interface) = old.interface
            {
                self.by_interface.remove(&interface.index);
                socket.hear_own(interface.index);
                changes.push(Change::Down(old.link(Port(index as u16), interface)));
            }
        }
        self.order = ports.iter().map(|port| self.place(port, traffic)).collect();
        changes
    }

    /// The place of a port that is named: its own, or a free one.
    fn place(&mut self, config: &PortConfig, traffic: &mut Vec<Traffic>) -> Port {
        let mut states = self.states.iter_mut();
        let own = states.position(|state| {
            let state = state.as_mut();
            let state = state.filter(|state| state.config.interface == config.interface);
            state.map(|state| state.config = config.clone()).is_some()
        });
        let index = own.unwrap_or_else(|| {
            let free = self.states.iter().position(Option::is_none);
            let index = free.unwrap_or_else(|| {
                self.states.push(None);
                self.states.len() - 1
            });
            self.states[index] = Some(State::new(config));
            traffic.resize(self.states.len(), Traffic::default());
            traffic[index] = Traffic::default();
            index
        });
        Port(index as u16)
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
        let state = self.states[port.index()].as_ref()?;
        Some(state.interface?.index)
    }

    /// Looks all interfaces up again; gives what has changed. One that has come becomes a port once `is_ours` says so of
    /// its index. The socket is to [listen](Self::listen) then.
    pub fn look(&mut self, socket: &PacketSocket, is_ours: impl Fn(u32) -> bool) -> Vec<Change> {
        let mut changes = Vec::new();
        for (index, state) in self.states.iter_mut().enumerate() {
            let Some(state) = state else {
                continue;
            };
            let port = Port(index as u16);
            let found = socket.interface(&state.config.interface);
            let working = found.filter(|interface| interface.running);
            if working == state.interface {
                continue;
            }
            if let Some(old) = state.interface.take() {
                state.losses += 1;
                self.by_interface.remove(&old.index);
                socket.hear_own(old.index);
                changes.push(Change::Down(state.link(port, old)));
            }
            if let Some(new) = working.filter(|new| is_ours(new.index)) {
                // It may vanish between the two calls: then it is found missing the next time.
                if let Err(error) = socket.hear_all(new.index) {
                    tracing::warn!(port = state.config.interface, %error, "cannot hear all frames");
                    continue;
                }
                state.interface = Some(new);
                self.by_interface.insert(new.index, port);
                changes.push(Change::Up(state.link(port, new)));
            }
        }
        changes
    }

    /// Makes the socket receive from the ports that work; `mark` tells which frames of an interface alone are for it.
    ///
    /// # Errors
    /// The kernel has no memory left for the filter.
    pub fn listen(
        &self,
        socket: &PacketSocket,
        mark: impl Fn(u32) -> Option<u32>,
    ) -> io::Result<()> {
        let working: Vec<_> = self
            .states
            .iter()
            .filter_map(|state| Some(state.as_ref()?.interface?.index))
            .map(|index| (index, mark(index)))
            .collect();
        socket.listen(&working)
    }

    /// The ports as the status shows them, with what each carried.
    #[must_use]
    pub fn status(&self, traffic: &[Traffic]) -> Vec<(Port, PortStatus)> {
        let pairs = self.order.iter().filter_map(|port| {
            let state = self.states[port.index()].as_ref()?;
            Some((*port, state, traffic.get(port.index())?))
        });
        pairs
            .map(|(port, state, traffic)| {
                let status = PortStatus {
                    interface: state.config.interface.clone(),
                    uplink: state.config.uplink,
                    up: state.interface.is_some(),
                    received: traffic.received.0,
                    received_bytes: traffic.received.1,
                    sent: traffic.sent.0,
                    sent_bytes: traffic.sent.1,
                    refused: traffic.refused,
                    losses: state.losses,
                };
                (port, status)
            })
            .collect()
    }
}
