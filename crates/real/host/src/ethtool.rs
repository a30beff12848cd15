//! What drivers tell of an interface (ethtool(8), linux/ethtool.h).
#![expect(
    unsafe_code,
    reason = "the kernel writes as much as the request says it has room for"
)]

use std::ffi::CStr;

use crate::netdevice::{self, index, name};

/// ETHTOOL_GDRVINFO and the bytes of `struct ethtool_drvinfo`: the command, then texts, of which the driver's name in 32
/// bytes is the first, and at 180 how many statistics there are.
const INFORMATION: (u32, usize) = (3, 196);
/// Words that hold them.
const INFORMATION_WORDS: usize = INFORMATION.1.div_ceil(size_of::<u64>());
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
    // SAFETY: the driver said before how many statistics it has: there is room for each.
    unsafe { netdevice::ethtool(interface, &mut answer) }?;
    u32::try_from(answer[1]).ok().filter(|other| *other > 0)
}

/// The driver of an interface, and how many statistics it has.
fn information(interface: &str) -> Option<(String, u32)> {
    let mut answer = [0; INFORMATION_WORDS];
    let mut command = [0; 8];
    command[..4].copy_from_slice(&INFORMATION.0.to_ne_bytes());
    answer[0] = u64::from_ne_bytes(command);
    // SAFETY: there is room for the whole structure.
    unsafe { netdevice::ethtool(interface, &mut answer) }?;
    let answer: Vec<u8> = answer.into_iter().flat_map(u64::to_ne_bytes).collect();
    let name = CStr::from_bytes_until_nul(&answer[4..36]).ok()?;
    let statistics = u32::from_ne_bytes(answer[180..184].try_into().ok()?);
    Some((name.to_str().ok()?.to_owned(), statistics))
}
