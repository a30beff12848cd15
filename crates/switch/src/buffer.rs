//! The shared buffer: per ingress port and class a reserve, a dynamic share of what is free, and headroom under PFC.
//!
//! Threshold = free shared bytes >> shift (dynamic threshold with alpha = 2^-shift). A packet is refused when neither the
//! headroom nor the threshold has room for it. Source: the HPCC simulator's switch MMU, after Broadcom's; the dynamic
//! threshold is Choudhury and Hahne (1998).

use raddle_units::prefetch;

/// Bytes that every ingress port and class may hold before it uses the shared part.
pub const RESERVE_BYTES: u64 = 4096;

/// A paused ingress resumes when its shared use is this much below the threshold.
pub const RESUME_OFFSET_BYTES: u64 = 3072;

/// Limits of one ingress port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressLimit {
    /// Bytes that may still arrive after a pause was sent. 0 in a lossy network.
    pub headroom: u32,
    /// Alpha of the dynamic threshold is 2^-shift.
    pub shift: u8,
}

/// The buffer of one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// All bytes of the switch.
    pub total: u64,
    /// Data classes; each has its own accounting on every port.
    pub classes: usize,
    /// One per port.
    pub limits: Vec<IngressLimit>,
    /// PFC on: pause the peer instead of dropping.
    pub lossless: bool,
    /// Headroom is set aside once per port (the reference), not once per port and class.
    pub headroom_once_per_port: bool,
}

impl BufferConfig {
    /// Bytes that reserves and headroom take before anything is shared.
    pub fn reserved(&self) -> u64 {
        let headroom: u64 = self
            .limits
            .iter()
            .map(|limit| u64::from(limit.headroom))
            .sum();
        let classes = self.classes as u64;
        let headroom = if self.headroom_once_per_port {
            headroom
        } else {
            headroom * classes
        };
        let reserve_classes = if self.headroom_once_per_port {
            1
        } else {
            classes
        };
        headroom + self.limits.len() as u64 * RESERVE_BYTES * reserve_classes
    }
}

/// What an ingress port and class holds.
#[derive(Clone, Copy, Debug, Default)]
struct Ingress {
    /// Reserve and shared bytes.
    stored: u32,
    /// Headroom bytes.
    in_headroom: u32,
    headroom: u32,
    shift: u8,
    paused: bool,
}

impl Ingress {
    #[inline]
    fn shared(&self) -> u64 {
        u64::from(self.stored).saturating_sub(RESERVE_BYTES)
    }
}

/// The accounting itself.
#[derive(Debug)]
pub(crate) struct SharedBuffer {
    ingress: Box<[Ingress]>,
    classes: usize,
    /// Bytes that may be shared in all.
    available: u64,
    shared: u64,
    occupied: u64,
    lossless: bool,
}

impl SharedBuffer {
    pub(crate) fn new(config: &BufferConfig) -> Self {
        let ingress = config
            .limits
            .iter()
            .flat_map(|limit| {
                std::iter::repeat_n(
                    Ingress {
                        headroom: limit.headroom,
                        shift: limit.shift,
                        ..Ingress::default()
                    },
                    config.classes,
                )
            })
            .collect();
        Self {
            ingress,
            classes: config.classes,
            available: config.total.saturating_sub(config.reserved()),
            shared: 0,
            occupied: 0,
            lossless: config.lossless,
        }
    }

    #[inline]
    fn threshold(&self, shift: u8) -> u64 {
        (self.available - self.shared.min(self.available)) >> shift
    }

    /// Takes `bytes` from `port` in `class`. `None`: refused. `Some(true)`: the peer must be paused now.
    #[inline]
    pub(crate) fn admit(&mut self, port: u16, class: usize, bytes: u32) -> Option<bool> {
        let at = usize::from(port) * self.classes + class;
        let threshold = self.threshold(self.ingress[at].shift);
        let ingress = &mut self.ingress[at];
        let size = u64::from(bytes);
        let total = u64::from(ingress.stored) + size;
        // Without PFC there is no headroom, and the reserve has to be asked for by itself: it is the port's even where
        // others have taken all that is shared.
        let reserved = !self.lossless && total <= RESERVE_BYTES;
        if bytes + ingress.in_headroom > ingress.headroom
            && size + ingress.shared() > threshold
            && !reserved
        {
            return None;
        }
        if total <= RESERVE_BYTES {
            ingress.stored += bytes;
        } else if total - RESERVE_BYTES > threshold {
            ingress.in_headroom += bytes;
        } else {
            ingress.stored += bytes;
            self.shared += size.min(total - RESERVE_BYTES);
        }
        self.occupied += size;
        let pause = self.lossless
            && !ingress.paused
            && (ingress.in_headroom > 0
                || ingress.shared()
                    >= (self.available - self.shared.min(self.available)) >> ingress.shift);
        ingress.paused |= pause;
        Some(pause)
    }

    /// Gives back `bytes` that came in by `port` in `class`.
    #[inline]
    pub(crate) fn release(&mut self, port: u16, class: usize, bytes: u32) {
        let ingress = &mut self.ingress[usize::from(port) * self.classes + class];
        let from_headroom = ingress.in_headroom.min(bytes);
        let rest = bytes - from_headroom;
        let from_shared = u64::from(rest).min(ingress.shared());
        ingress.in_headroom -= from_headroom;
        ingress.stored -= rest;
        self.shared -= from_shared;
        self.occupied -= u64::from(bytes);
    }

    /// Whether the peer of `port` may send `class` again; said once.
    #[inline]
    pub(crate) fn take_resume(&mut self, port: u16, class: usize) -> bool {
        let at = usize::from(port) * self.classes + class;
        let ingress = &self.ingress[at];
        if !ingress.paused || ingress.in_headroom != 0 {
            return false;
        }
        let shared = ingress.shared();
        if shared != 0 && shared + RESUME_OFFSET_BYTES > self.threshold(ingress.shift) {
            return false;
        }
        self.ingress[at].paused = false;
        true
    }

    /// Forgets that the peer of `port` was paused (its link failed).
    pub(crate) fn forget_pauses(&mut self, port: u16) {
        let first = usize::from(port) * self.classes;
        for ingress in &mut self.ingress[first..first + self.classes] {
            ingress.paused = false;
        }
    }

    /// Hints that the account of `port` will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, port: u16) {
        prefetch(&self.ingress[usize::from(port) * self.classes]);
    }

    /// Bytes in the buffer.
    pub(crate) const fn occupied(&self) -> u64 {
        self.occupied
    }

    /// Bytes in the shared part.
    pub(crate) const fn shared(&self) -> u64 {
        self.shared
    }
}
