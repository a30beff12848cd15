//! What drivers tell of an interface (ethtool(8), linux/ethtool.h).
#![expect(unsafe_code, reason = "ethtool's requests are ioctl(2)")]

use std::{
    ffi::CStr,
    mem,
    net::{Ipv4Addr, UdpSocket},
    os::fd::AsRawFd as _,
};

/// ETHTOOL_GDRVINFO and the bytes of `struct ethtool_drvinfo`: the command, then texts, of which the driver's name in 32
/// bytes is the first, and at 180 how many statistics there are.
const INFORMATION: (u32, usize) = (3, 196);
/// ETHTOOL_GSTATS: the command and a number of 32 bits each, then the values, of 64 bits.
const STATISTICS: u32 = 0x1d;

/// The driver of an interface of this network namespace, such as `veth`; `None` where that cannot be told.
#[must_use]
pub fn driver(interface: &str) -> Option<String> {
    Some(information(interface)?.0)
}

/// Whether an interface is an end of a virtual cable (veth) whose other end is in another network namespace. `false` where
/// that cannot be told.
#[must_use]
pub fn leads_elsewhere(interface: &str) -> bool {
    let Some(other) = other_end(interface) else {
        return false;
    };
    let here = || other_end(&name(other)?);
    // Indices are those of each namespace: an interface of ours with that one need not be the other end.
    here().is_none_or(|back| Some(back) != index(interface))
}

/// The index of a cable's other end in its own namespace, the first statistic of veth.
fn other_end(interface: &str) -> Option<u32> {
    let (driver, statistics) = information(interface)?;
    if driver != "veth" || statistics == 0 {
        return None;
    }
    let mut answer = vec![0_u64; 1 + statistics as usize];
    // Both numbers of 32 bits in the first word: the command first.
    let mut head = [0; 8];
    head[..4].copy_from_slice(&STATISTICS.to_ne_bytes());
    head[4..].copy_from_slice(&statistics.to_ne_bytes());
    answer[0] = u64::from_ne_bytes(head);
    ask(interface, answer.as_mut_ptr().cast())?;
    u32::try_from(answer[1]).ok().filter(|other| *other > 0)
}

/// The driver of an interface, and how many statistics it has.
fn information(interface: &str) -> Option<(String, u32)> {
    let mut answer = [0_u8; INFORMATION.1];
    answer[..4].copy_from_slice(&INFORMATION.0.to_ne_bytes());
    ask(interface, answer.as_mut_ptr().cast())?;
    let name = CStr::from_bytes_until_nul(&answer[4..36]).ok()?;
    let statistics = u32::from_ne_bytes(answer[180..184].try_into().ok()?);
    Some((name.to_str().ok()?.to_owned(), statistics))
}

/// Makes a request, which has room for its answer.
fn ask(interface: &str, data: *mut libc::c_char) -> Option<()> {
    let any = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_data = data;
    // SAFETY: the kernel reads the name and the command, and writes no more than that command's answer, for which
    // both callers have room: the structure's size, or the number of statistics that the driver said before.
    let done = unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    (done == 0).then_some(())
}

/// The index of an interface of this network namespace, by its name or another one that it has.
pub(crate) fn index(interface: &str) -> Option<u32> {
    let request = request(interface)?;
    // SAFETY: `request` made the name end with a zero.
    let index = unsafe { libc::if_nametoindex(request.ifr_name.as_ptr()) };
    (index > 0).then_some(index)
}

/// The name of the interface with an index.
pub fn name(index: u32) -> Option<String> {
    let mut name = [0_u8; libc::IFNAMSIZ];
    // SAFETY: a name has at most that many bytes, with the zero.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) };
    if found.is_null() {
        return None;
    }
    let name = CStr::from_bytes_until_nul(&name).ok()?;
    Some(name.to_str().ok()?.to_owned())
}

/// A question about an interface; `None`: no interface has such a name.
pub fn request(interface: &str) -> Option<libc::ifreq> {
    if interface.len() >= libc::IFNAMSIZ {
        return None;
    }
    // SAFETY: `ifreq` is made of integers, for which zero is a value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed();
    }
    Some(request)
}
