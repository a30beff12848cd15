//! A switch with the program and one without, in a namespace with interfaces that lead nowhere.

use std::{net::Ipv4Addr, process::Command};

use raddle_switch::{
    bridge::Port,
    fast::{FastPath as _, Identity, Link, Route},
    xdp::{Hook, XdpPath},
};
use raddle_wire::MacAddress;

/// Address of the switch.
pub(crate) const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Address of the switch above.
pub(crate) const PARENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Hardware address of the switch.
pub(crate) const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
/// Life of the switch.
pub(crate) const EPOCH: u32 = 77;
/// Index of the interface by which frames seem to come: the kernel runs programs as on the loopback interface.
pub(crate) const INGRESS: u32 = 1;
/// Interfaces: one for each possible child, and one for the parent.
const PORTS: u16 = 33;

/// The program, on interfaces of a namespace of its own.
pub(crate) struct World {
    /// The fast path.
    pub(crate) fast: XdpPath,
    /// Indices of the interfaces.
    interfaces: Vec<u32>,
    /// Where in the kernel the program is.
    pub(crate) hook: Hook,
}

impl World {
    /// Loads the program and puts it on all interfaces; the switch above is known, children are not.
    pub(crate) fn new(slots: u32) -> Self {
        Self::at(Hook::Native, slots)
    }

    /// The same in a place of the kernel.
    pub(crate) fn at(hook: Hook, slots: u32) -> Self {
        let identity = Identity {
            address: SWITCH,
            mac: MAC,
            epoch: EPOCH,
        };
        let fast = XdpPath::load(identity, slots, hook).expect("root may load programs");
        let mut world = Self {
            fast,
            interfaces: Vec::new(),
            hook,
        };
        for port in 0..PORTS {
            let name = format!("d{port}");
            ip(&[
                "link",
                "add",
                &name,
                "type",
                "veth",
                "peer",
                "name",
                &format!("p{port}"),
            ]);
            let shown = ip(&["-o", "link", "show", &name]);
            let index = shown.split(':').next().and_then(|n| n.trim().parse().ok());
            let index = index.expect("ip prints the index first");
            let link = Link {
                port: Port(port),
                interface: name,
                index,
                uplink: port == PORTS - 1,
            };
            world.fast.link_up(&link).expect("veths take programs");
            world.interfaces.push(index);
        }
        world.know(PARENT, PORTS - 1);
        world
    }

    /// The same for a program that forwards ordinary frames too.
    pub(crate) fn forwarding(hook: Hook) -> Self {
        let Self {
            fast, interfaces, ..
        } = Self::at(hook, 64);
        let mut fast = fast.forwarding();
        let loopback = Link {
            port: Port(PORTS),
            interface: "lo".to_owned(),
            index: INGRESS,
            uplink: false,
        };
        fast.link_up(&loopback)
            .expect("the generic mode works everywhere");
        Self {
            fast,
            interfaces,
            hook,
        }
    }

    /// The index of a port's interface.
    pub(crate) fn interface(&self, port: u16) -> u32 {
        self.interfaces[usize::from(port)]
    }

    /// Tells the program where a neighbour is.
    pub(crate) fn know(&mut self, address: Ipv4Addr, port: u16) {
        let route = Route {
            port: Port(port),
            index: self.interfaces[usize::from(port)],
            mac: mac_of(address),
            vlan: 0,
        };
        self.fast.route_changed(address, Some(route));
    }
}

/// The hardware address of a neighbour, made from its address.
pub(crate) const fn mac_of(address: Ipv4Addr) -> MacAddress {
    let [a, b, c, d] = address.octets();
    MacAddress([2, 1, a, b, c, d])
}

/// The address of a child.
pub(crate) const fn child_address(child: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, child as u8)
}

fn ip(arguments: &[&str]) -> String {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .expect("ip is there");
    assert!(output.status.success(), "ip {arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
