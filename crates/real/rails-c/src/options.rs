//! What C tells a node, checked.

use std::{
    ffi::{CStr, c_char},
    net::SocketAddrV4,
};

use raddle_host::{
    clock::epoch,
    rails::{Node, RailAddress},
};
use raddle_rails::Config;
use raddle_units::{BitRate, Span};
use raddle_wire::{native::JobKey, rails::DATA_OVERHEAD};

/// Bytes of IPv4 and UDP headers.
const IP_UDP: u16 = 28;

/// `struct raddle_rails_options`.
#[repr(C)]
#[derive(Debug)]
pub struct Options {
    job: u32,
    key: [u8; 16],
    local: u32,
    peer: u32,
    mtu: u16,
    heartbeat_ms: u16,
    give_up_ms: u32,
    send_queue: u32,
}

/// `struct raddle_rail`.
#[repr(C)]
#[derive(Debug)]
pub struct Rail {
    local: *const c_char,
    peer: *const c_char,
    bits_per_second: u64,
}

/// Opens a node; words for what is wrong.
///
/// # Safety
/// The texts of `rails` are null or can be read.
pub(crate) unsafe fn open(options: &Options, rails: &[Rail]) -> Result<Node, String> {
    let rates = rails
        .iter()
        .map(|rail| BitRate(rail.bits_per_second))
        .collect();
    let Options {
        job,
        local,
        peer,
        mtu,
        ..
    } = *options;
    let epoch = epoch().map_err(|error| format!("no randomness: {error}"))?;
    let mut config = Config::new(job, JobKey::new(options.key), local, peer, epoch, rates);
    if mtu > 0 {
        let segment = mtu
            .checked_sub(IP_UDP + DATA_OVERHEAD as u16)
            .filter(|bytes| *bytes > 0);
        config.segment = segment.ok_or_else(|| format!("an MTU of {mtu} bytes is too small"))?;
    }
    if options.heartbeat_ms > 0 {
        config.heartbeat = Span::from_ms(options.heartbeat_ms.into());
    }
    if options.give_up_ms > 0 {
        config.give_up = Span::from_ms(options.give_up_ms.into());
    }
    if options.send_queue > 0 {
        config.send_queue = options.send_queue as usize;
    }
    let addresses: Result<Vec<RailAddress>, String> = rails
        .iter()
        .map(|rail| {
            // SAFETY: the caller says so.
            let [local, peer] = [rail.local, rail.peer].map(|text| unsafe { address(text) });
            Ok(RailAddress {
                local: local?,
                peer: peer?,
            })
        })
        .collect();
    Node::open(config, &addresses?).map_err(|error| error.to_string())
}

/// An address as text.
///
/// # Safety
/// `text` is null or can be read up to a zero byte.
unsafe fn address(text: *const c_char) -> Result<SocketAddrV4, String> {
    if text.is_null() {
        return Err("a rail has an address that is NULL".to_owned());
    }
    // SAFETY: the caller says so, and it is not null.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    text.parse()
        .map_err(|_| format!("{text:?} is not an IPv4 address with a port"))
}
