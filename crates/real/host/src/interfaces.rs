//! The network interfaces of this host: those that rails can use, and what a switch must know of its ports.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    path::Path,
};

use nix::{ifaddrs::getifaddrs, net::if_::InterfaceFlags};
use raddle_units::BitRate;

use crate::netdevice;

/// An interface that is up and has an IPv4 address; one with several addresses is there several times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name, such as `e0`.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// The mask of its network.
    pub mask: Ipv4Addr,
    /// Bytes of the longest IPv4 packet that it carries.
    pub mtu: u32,
}

impl Interface {
    /// A free UDP port of its address, free as long as the socket is kept.
    ///
    /// # Errors
    /// The address has no free port, or is the interface's no longer.
    pub fn hold(&self) -> io::Result<(UdpSocket, SocketAddrV4)> {
        let socket = UdpSocket::bind((self.address, 0))?;
        let port = socket.local_addr()?.port();
        Ok((socket, SocketAddrV4::new(self.address, port)))
    }

    /// The rate that its driver names; `None` where it names none.
    #[must_use]
    pub fn rate(&self) -> Option<BitRate> {
        let speed = fs::read_to_string(format!("/sys/class/net/{}/speed", self.name)).ok()?;
        let mbps: u64 = speed.trim().parse().ok()?;
        (mbps > 0).then(|| BitRate(mbps.saturating_mul(1_000_000)))
    }

    /// Whether an address is in its network.
    #[must_use]
    pub fn reaches(&self, other: Ipv4Addr) -> bool {
        let network = |address: Ipv4Addr| u32::from(address) & u32::from(self.mask);
        network(other) == network(self.address)
    }
}

/// All interfaces that are up and have an IPv4 address, in the system's order.
///
/// # Errors
/// The process or the system has no descriptor or memory left.
pub fn list() -> io::Result<Vec<Interface>> {
    let any = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut found = Vec::new();
    let mut assigned = addresses()?;
    assigned.retain(|one| one.is_up);
    for one in assigned {
        // One that has gone since is left out.
        if let Some(mtu) = netdevice::mtu(&any, &one.interface) {
            found.push(Interface {
                name: one.interface,
                address: one.address,
                mask: one.mask,
                mtu,
            });
        }
    }
    Ok(found)
}

/// What the system says of an interface that may become a port of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Properties {
    /// Its index.
    pub index: u32,
    /// Its name; one that was asked for may be another name of it.
    pub name: String,
    /// Whether it is switched on.
    pub is_up: bool,
    /// Whether it has a carrier. Only one that is up can have it.
    pub has_carrier: bool,
    /// Whether it is the loopback.
    pub is_loopback: bool,
    /// Whether it carries Ethernet frames.
    pub is_ethernet: bool,
    /// The bridge or bond of the kernel that it belongs to.
    pub master: Option<String>,
}

/// Looks an interface of this network namespace up; `None`: there is none of that name.
#[must_use]
pub fn properties(name: &str) -> Option<Properties> {
    let index = netdevice::index(name)?;
    let name = netdevice::name(index)?;
    let any = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    let flags = netdevice::flags(&any, &name)?;
    let kind = netdevice::hardware(&any, &name)?;
    Some(Properties {
        index,
        is_up: flags & libc::IFF_UP != 0,
        has_carrier: flags & libc::IFF_RUNNING != 0,
        is_loopback: flags & libc::IFF_LOOPBACK != 0,
        is_ethernet: kind == libc::ARPHRD_ETHER,
        master: master(&name, index),
        name,
    })
}

/// The bridge or bond that an interface belongs to, where the mounted /sys is that of this network namespace.
fn master(name: &str, index: u32) -> Option<String> {
    let folder = Path::new("/sys/class/net").join(name);
    let shown = fs::read_to_string(folder.join("ifindex")).ok()?;
    if shown.trim() != index.to_string() {
        return None;
    }
    let master = fs::read_link(folder.join("master")).ok()?;
    Some(master.file_name()?.to_string_lossy().into_owned())
}

/// An IPv4 address that the kernel has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    /// The interface that has it.
    pub interface: String,
    /// The address.
    pub address: Ipv4Addr,
    /// The mask of its network.
    pub mask: Ipv4Addr,
    /// Whether the interface is up.
    pub is_up: bool,
}

/// All IPv4 addresses of this network namespace.
///
/// # Errors
/// The process or the system has no descriptor or memory left.
pub fn addresses() -> io::Result<Vec<Assigned>> {
    let of_all = getifaddrs()?.filter_map(|entry| {
        Some(Assigned {
            address: entry.address?.as_sockaddr_in()?.ip(),
            mask: entry.netmask?.as_sockaddr_in()?.ip(),
            is_up: entry.flags.contains(InterfaceFlags::IFF_UP),
            interface: entry.interface_name,
        })
    });
    Ok(of_all.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_listed_and_reaches_its_network_only() {
        let listed = list().unwrap();
        let Some(lo) = listed.iter().find(|one| one.address.is_loopback()) else {
            return;
        };
        assert_eq!(lo.name, "lo");
        assert!(lo.mtu >= 1500);
        assert!(lo.reaches(Ipv4Addr::new(127, 9, 9, 9)));
        assert!(!lo.reaches(Ipv4Addr::new(128, 0, 0, 1)));
    }

    #[test]
    fn the_loopback_is_known_as_such() {
        let lo = properties("lo").unwrap();
        assert_eq!(lo.name, "lo");
        assert!(lo.is_loopback && !lo.is_ethernet);
        assert_eq!(lo.master, None);
        assert_eq!(properties("none"), None);
        assert_eq!(properties("a-name-that-is-too-long"), None);
    }
}
