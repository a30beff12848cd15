//! The shared buffer: per ingress port and class a reserve, a share of the rest, and headroom under PFC.
//!
//! What a port and class may hold of the shared part is its threshold: a multiple alpha of what is free (dynamic: Choudhury
//! and Hahne, 1998), a number of bytes (static), or all of it (complete sharing); never more than is free. A packet is
//! refused when neither the headroom nor the threshold has room for it. Source of the order of steps: the HPCC simulator's
//! switch MMU, after Broadcom's.

use raddle_prefetch::prefetch;

/// Bytes that every ingress port and class usually may hold before it uses the shared part.
pub const RESERVE_BYTES: u32 = 4096;

/// How far below its threshold the shared use of a paused ingress usually is when it resumes.
pub const RESUME_OFFSET_BYTES: u32 = 3072;

/// Alpha is held in units of 2^-20.
const ALPHA_BITS: u32 = 20;

/// How much of the shared part one port and class may hold, beside its reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Multiple of what is free, in units of 2^-20.
    alpha: u32,
    /// Bytes, whatever is free.
    fixed: u32,
}

impl Share {
    /// Largest multiple of what is free.
    pub const MOST_ALPHA: f64 = 1024.0;

    /// All that is free: complete sharing.
    pub const ALL: Self = Self::fixed(u32::MAX);

    /// So many bytes, as long as they are free: a static threshold.
    pub const fn fixed(bytes: u32) -> Self {
        Self {
            alpha: 0,
            fixed: bytes,
        }
    }

    /// `alpha` times what is free: a dynamic threshold. Alpha is rounded to 2^-20; from 0 to [`Self::MOST_ALPHA`].
    pub fn of_free(alpha: f64) -> Self {
        let units = alpha.clamp(0.0, Self::MOST_ALPHA) * f64::from(1u32 << ALPHA_BITS);
        Self {
            alpha: (units + 0.5) as u32,
            fixed: 0,
        }
    }

    /// The threshold where `free` bytes of the shared part are free. `free` is below 2^32.
    #[inline]
    pub(crate) fn threshold(self, free: u64) -> u64 {
        u64::from(self.fixed) + ((free * u64::from(self.alpha)) >> ALPHA_BITS)
    }
}

/// Limits of one ingress port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressLimit {
    /// Bytes of its own, before it uses the shared part; per class.
    pub reserve: u32,
    /// What it may hold of the shared part, per class. Where it is reached, the peer is paused (PFC), or frames are refused.
    pub share: Share,
    /// Bytes that may still arrive after a pause was sent, per class. 0 in a lossy network.
    pub headroom: u32,
    /// The peer may go on when the shared use is this much below the threshold.
    pub resume_offset: u32,
}

/// The buffer of one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// All bytes of the switch, below 2^32.
    pub total: u64,
    /// Data classes; each has its own accounting on every port.
    pub classes: usize,
    /// One per port.
    pub limits: Vec<IngressLimit>,
    /// PFC on: pause the peer instead of dropping.
    pub lossless: bool,
    /// As the reference accounts: headroom and reserve are set aside once per port, not per class; and under PFC a packet
    /// is refused where threshold and headroom are used up, even if the reserve has room.
    pub as_reference: bool,
}

impl BufferConfig {
    /// Bytes that reserves and headroom take before anything is shared.
    pub fn reserved(&self) -> u64 {
        let classes = if self.as_reference { 1 } else { self.classes };
        let of = |limit: &IngressLimit| u64::from(limit.headroom) + u64::from(limit.reserve);
        self.limits.iter().map(of).sum::<u64>() * classes as u64
    }
}

impl IngressLimit {
    /// Whether a port that holds nothing takes a frame of so many bytes while all of the shared part is free.
    pub fn takes(&self, bytes: u64, available: u64) -> bool {
        let most = self.share.threshold(available).min(available);
        bytes <= most.max(u64::from(self.reserve.max(self.headroom)))
    }
}

/// What an ingress port and class holds, and its limits; half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct Ingress {
    /// Reserve and shared bytes.
    stored: u32,
    /// Headroom bytes.
    in_headroom: u32,
    limit: IngressLimit,
    paused: bool,
}

const _: () = assert!(size_of::<Ingress>() == 32);

impl Ingress {
    fn new(limit: IngressLimit) -> Self {
        Self {
            stored: 0,
            in_headroom: 0,
            limit,
            paused: false,
        }
    }

    /// Bytes of the shared part.
    #[inline]
    fn shared(&self) -> u64 {
        u64::from(self.stored.saturating_sub(self.limit.reserve))
    }

    /// Bytes of the shared part that it may hold while `free` bytes of it are free.
    #[inline]
    fn threshold(&self, free: u64) -> u64 {
        self.limit.share.threshold(free).min(self.shared() + free)
    }
}

/// The accounting itself. The accounts of its ports are in a table for many switches.
#[derive(Debug)]
pub(crate) struct SharedBuffer {
    /// Where its accounts begin in the table.
    first: usize,
    classes: usize,
    /// Bytes that may be shared in all.
    available: u64,
    shared: u64,
    occupied: u64,
    lossless: bool,
    /// A packet that fits the reserve is taken whatever else is full.
    keeps_reserve: bool,
}

impl SharedBuffer {
    pub(crate) fn new(config: &BufferConfig, accounts: &mut Vec<Ingress>) -> Self {
        let first = accounts.len();
        let account = |&limit| std::iter::repeat_n(Ingress::new(limit), config.classes);
        accounts.extend(config.limits.iter().flat_map(account));
        Self {
            first,
            classes: config.classes,
            available: config.total.saturating_sub(config.reserved()),
            shared: 0,
            occupied: 0,
            lossless: config.lossless,
            keeps_reserve: !config.lossless || !config.as_reference,
        }
    }

    /// Bytes of the shared part that nobody uses.
    #[inline]
    pub(crate) fn free(&self) -> u64 {
        self.available.saturating_sub(self.shared)
    }

    /// Where the account of a port and class is in the table.
    #[inline(always)]
    fn place(&self, port: u16, class: usize) -> usize {
        self.first + usize::from(port) * self.classes + class
    }

    /// Takes `bytes` from `port` in `class`. `None`: refused. `Some(true)`: the peer must be paused now.
    #[inline(always)]
    pub(crate) fn admit(
        &mut self,
        accounts: &mut [Ingress],
        (port, class): (u16, usize),
        bytes: u32,
    ) -> Option<bool> {
        let free = self.free();
        let ingress = &mut accounts[self.place(port, class)];
        let total = ingress.stored + bytes;
        // Most frames fit the reserve of a port that may use the shared part as well: neither matters then.
        if total <= ingress.limit.reserve
            && ingress.in_headroom == 0
            && self.keeps_reserve
            && free.min(ingress.limit.share.threshold(free)) > 0
        {
            ingress.stored = total;
            self.occupied += u64::from(bytes);
            return Some(false);
        }
        self.admit_over(ingress, bytes)
    }

    /// [`Self::admit`] in full.
    #[inline(never)]
    fn admit_over(&mut self, ingress: &mut Ingress, bytes: u32) -> Option<bool> {
        let free = self.free();
        let size = u64::from(bytes);
        let threshold = ingress.threshold(free);
        // What it would hold over its reserve.
        let total = u64::from(ingress.stored) + size;
        let over = total.saturating_sub(u64::from(ingress.limit.reserve));
        if bytes + ingress.in_headroom > ingress.limit.headroom
            && size + ingress.shared() > threshold
            // The reserve is the port's even where others have taken all that is shared.
            && !(over == 0 && self.keeps_reserve)
        {
            return None;
        }
        self.occupied += size;
        let full = if over > threshold {
            ingress.in_headroom += bytes;
            true
        } else {
            ingress.stored += bytes;
            let taken = size.min(over);
            self.shared += taken;
            ingress.in_headroom > 0 || over >= ingress.threshold(free - taken)
        };
        let pause = full && self.lossless && !ingress.paused;
        ingress.paused |= pause;
        Some(pause)
    }

    /// Gives back `bytes` that came in by `port` in `class`; whether the peer is paused.
    #[inline(always)]
    pub(crate) fn release(
        &mut self,
        accounts: &mut [Ingress],
        (port, class): (u16, usize),
        bytes: u32,
    ) -> bool {
        let ingress = &mut accounts[self.place(port, class)];
        let from_headroom = ingress.in_headroom.min(bytes);
        let rest = bytes - from_headroom;
        let from_shared = u64::from(rest).min(ingress.shared());
        ingress.in_headroom -= from_headroom;
        ingress.stored -= rest;
        self.shared -= from_shared;
        self.occupied -= u64::from(bytes);
        ingress.paused
    }

    /// Whether the peer of `port` may send `class` again; said once.
    #[inline(never)]
    pub(crate) fn take_resume(
        &self,
        accounts: &mut [Ingress],
        (port, class): (u16, usize),
    ) -> bool {
        let ingress = &mut accounts[self.place(port, class)];
        if !ingress.paused || ingress.in_headroom != 0 {
            return false;
        }
        let shared = ingress.shared();
        let offset = u64::from(ingress.limit.resume_offset);
        if shared != 0 && shared + offset > ingress.threshold(self.free()) {
            return false;
        }
        ingress.paused = false;
        true
    }

    /// Forgets that the peer of `port` was paused (its link failed).
    pub(crate) fn forget_pauses(&self, accounts: &mut [Ingress], port: u16) {
        let first = self.place(port, 0);
        for ingress in &mut accounts[first..first + self.classes] {
            ingress.paused = false;
        }
    }

    /// Hints that the account of `port` will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, accounts: &[Ingress], port: u16) {
        prefetch(&accounts[self.place(port, 0)]);
    }

    /// Bytes that came in by `port` and are in the buffer.
    pub(crate) fn held(&self, accounts: &[Ingress], port: u16) -> u64 {
        let first = self.place(port, 0);
        accounts[first..first + self.classes]
            .iter()
            .map(|ingress| u64::from(ingress.stored) + u64::from(ingress.in_headroom))
            .sum()
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
