//! The network interfaces of this host that rails can use.
#![expect(
    unsafe_code,
    reason = "no safe wrapper lists addresses, or asks for an MTU"
)]

use std::{
    ffi::CStr,
    fs, io, mem,
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    os::fd::AsRawFd,
    ptr,
};

use raddle_units::BitRate;

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
    /// When there is none.
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

/// All of them, in the system's order.
///
/// # Errors
/// What the system says.
pub fn list() -> io::Result<Vec<Interface>> {
    let any = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut found = Vec::new();
    for (name, address, mask) in addresses()? {
        // One that has gone since is left out.
        if let Some(mtu) = mtu(&any, &name) {
            found.push(Interface {
                name,
                address,
                mask,
                mtu,
            });
        }
    }
    Ok(found)
}

/// Name, address and mask of each interface that is up.
fn addresses() -> io::Result<Vec<(String, Ipv4Addr, Ipv4Addr)>> {
    let mut list = ptr::null_mut();
    // SAFETY: the call fills the list's address, and the list is freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut at: *const libc::ifaddrs = list;
    // SAFETY: null, or an entry of the list, which lives until it is freed.
    while let Some(entry) = unsafe { at.as_ref() } {
        at = entry.ifa_next;
        // SAFETY: both are null, or addresses that live as long as the list.
        let pair = unsafe { (ipv4(entry.ifa_addr), ipv4(entry.ifa_netmask)) };
        if let (Some(address), Some(mask)) = pair
            && entry.ifa_flags & libc::IFF_UP as u32 != 0
        {
            // SAFETY: names end with a zero byte.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            found.push((name.to_string_lossy().into_owned(), address, mask));
        }
    }
    // SAFETY: the list that `getifaddrs` made; nothing refers to it any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

/// An IPv4 address; `None` for one of another family, or none.
///
/// # Safety
/// `address` is null or points to an address as long as its family's are.
unsafe fn ipv4(address: *const libc::sockaddr) -> Option<Ipv4Addr> {
    // SAFETY: an address that is there begins with its family.
    let family = unsafe { address.as_ref() }?.sa_family;
    if i32::from(family) != libc::AF_INET {
        return None;
    }
    // SAFETY: one of this family is a sockaddr_in.
    let address = unsafe { ptr::read_unaligned(address.cast::<libc::sockaddr_in>()) };
    Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)))
}

fn mtu(any: &UdpSocket, name: &str) -> Option<u32> {
    // SAFETY: `ifreq` is made of integers, for which zero is a value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // The last byte stays zero.
    let room = request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1);
    for (to, from) in room.zip(name.bytes()) {
        *to = from.cast_signed();
    }
    // SAFETY: the kernel reads the name and writes the MTU of `request`.
    let answer = unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) };
    // SAFETY: the call has filled in the MTU if it says so.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    if answer < 0 {
        None
    } else {
        u32::try_from(mtu).ok()
    }
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
}
