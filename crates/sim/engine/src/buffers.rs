//! How switches share out their buffers, as settings of a run.

use std::collections::BTreeMap;

use raddle_dataplane::{RESERVE_BYTES, RESUME_OFFSET_BYTES, Share};
use raddle_units::{Bytes, PortId};

/// Alpha of a port that is no faster than the hosts' links.
const BASE_ALPHA: f64 = 0.125;
/// What faster ports get at most.
const MOST_SCALED_ALPHA: f64 = 1.0;

/// How ports share what is neither reserve nor headroom. All figures are per port and data class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sharing {
    /// A port may hold alpha times what is free: 1/8 at the hosts' rate, twice as much for each doubling of the port's rate
    /// over it, 1 at most.
    Scaled,
    /// A port may hold so many times what is free.
    Dynamic(f64),
    /// A port may hold so many bytes, as long as they are free; `None`: an equal part of all.
    Static(Option<Bytes>),
    /// A port may hold whatever is free.
    Complete,
}

impl Sharing {
    /// Alpha of a port, where there is one; `ratio` is its rate over the hosts', rounded down.
    pub fn alpha(self, ratio: u64) -> Option<f64> {
        match self {
            Self::Scaled => {
                let doublings = ratio.max(1).ilog2().min(16);
                Some((BASE_ALPHA * f64::from(1u32 << doublings)).min(MOST_SCALED_ALPHA))
            }
            Self::Dynamic(alpha) => Some(alpha),
            Self::Static(_) | Self::Complete => None,
        }
    }

    /// The same as the data plane has it. `part` are the bytes of an equal part.
    pub(crate) fn share(self, ratio: u64, part: u64) -> Share {
        let bytes = |bytes| u32::try_from(bytes).unwrap_or(u32::MAX);
        match self {
            Self::Static(given) => Share::fixed(bytes(given.map_or(part, |given| given.0))),
            _ => self.alpha(ratio).map_or(Share::ALL, Share::of_free),
        }
    }
}

/// What may come in by a port and be held. With PFC a port that reaches its threshold has its peer paused, without it the
/// switch drops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IngressBuffer {
    /// The threshold, over the reserve.
    pub sharing: Sharing,
    /// Bytes that are the port's own.
    pub reserve: Bytes,
    /// Bytes for what arrives after a pause was sent (with PFC); `None`: as many as can arrive.
    pub headroom: Option<Bytes>,
    /// A paused peer may go on when the port is this much below its threshold.
    pub resume_offset: Bytes,
}

impl Default for IngressBuffer {
    fn default() -> Self {
        Self {
            sharing: Sharing::Scaled,
            reserve: Bytes(u64::from(RESERVE_BYTES)),
            headroom: None,
            resume_offset: Bytes(u64::from(RESUME_OFFSET_BYTES)),
        }
    }
}

/// What one port may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PortBuffer {
    /// Of what came in by it.
    pub ingress: IngressBuffer,
    /// Of what waits to leave by it; what finds the queue full is dropped, with PFC too.
    pub egress: Sharing,
}

impl Default for PortBuffer {
    fn default() -> Self {
        Self {
            ingress: IngressBuffer::default(),
            egress: Sharing::Complete,
        }
    }
}

/// What the ports of all switches may hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buffers {
    /// Ports without settings of their own.
    pub usual: PortBuffer,
    /// The others.
    pub own: BTreeMap<PortId, PortBuffer>,
}

impl Buffers {
    /// The settings of a port.
    pub fn of(&self, port: PortId) -> &PortBuffer {
        self.own.get(&port).unwrap_or(&self.usual)
    }
}
