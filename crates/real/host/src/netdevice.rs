//! What the kernel answers about one interface of this network namespace by its name (netdevice(7), ethtool(8)).
//!
//! The calls of ioctl(2) stand here by hand: `nix` has only macros that make an unsafe function of each.
#![expect(unsafe_code, reason = "no library has these requests as safe calls")]

use std::{
    net::{Ipv4Addr, UdpSocket},
    os::fd::{AsFd, AsRawFd},
};

use nix::net::if_::{if_indextoname, if_nametoindex};

/// `struct ifreq`: a name that ends with a zero, then a union of integers, addresses and a pointer.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    value: [u64; 3],
}

const _: () = assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>());

impl InterfaceRequest {
    /// `None`: no interface has a name as long.
    fn new(interface: &str) -> Option<Self> {
        let mut name = [0; libc::IFNAMSIZ];
        let room = name.get_mut(..interface.len())?;
        if interface.len() == libc::IFNAMSIZ {
            return None;
        }
        room.copy_from_slice(interface.as_bytes());
        Some(Self {
            name,
            value: [0; 3],
        })
    }
}

/// Asks for one property, and gives the first 8 bytes of the answer; `None` if there is no such interface.
fn property(by: &impl AsFd, interface: &str, what: libc::c_ulong) -> Option<[u8; 8]> {
    let mut request = InterfaceRequest::new(interface)?;
    let by = by.as_fd().as_raw_fd();
    // SAFETY: `request` is laid out as the kernel expects; the callers below ask for properties that it writes into it.
    let answer = unsafe { libc::ioctl(by, what as _, &raw mut request) };
    (answer >= 0).then(|| request.value[0].to_ne_bytes())
}

/// Flags of an interface, such as `IFF_UP`, asked for by any socket.
pub fn flags(by: &impl AsFd, interface: &str) -> Option<libc::c_int> {
    let [a, b, ..] = property(by, interface, libc::SIOCGIFFLAGS)?;
    Some(u16::from_ne_bytes([a, b]).into())
}

/// The kind of its hardware, such as `ARPHRD_ETHER`.
pub(crate) fn hardware(by: &impl AsFd, interface: &str) -> Option<u16> {
    let [a, b, ..] = property(by, interface, libc::SIOCGIFHWADDR)?;
    Some(u16::from_ne_bytes([a, b]))
}

/// Bytes of the longest packet that it carries.
pub(crate) fn mtu(by: &impl AsFd, interface: &str) -> Option<u32> {
    let [a, b, c, d, ..] = property(by, interface, libc::SIOCGIFMTU)?;
    u32::try_from(i32::from_ne_bytes([a, b, c, d])).ok()
}

/// Makes a request of ethtool, which begins with its command; the answer takes its place. `None` where it is refused.
///
/// # Safety
/// `request` has room for all that the kernel may write for its command.
pub(crate) unsafe fn ethtool(interface: &str, request: &mut [u64]) -> Option<()> {
    let any = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    let mut about = InterfaceRequest::new(interface)?;
    about.value[0] = request.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: the kernel reads the name and the command, and writes its answer where the caller has room for it.
    let done = unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut about) };
    (done == 0).then_some(())
}

/// The index of an interface of this network namespace, by its name or another one that it has.
#[must_use]
pub fn index(interface: &str) -> Option<u32> {
    if_nametoindex(interface).ok()
}

/// The name of the interface with an index.
#[must_use]
pub fn name(index: u32) -> Option<String> {
    if_indextoname(index).ok()?.into_string().ok()
}
