//! The four quantities and the few operators that make sense between them.

use serde::{Deserialize, Serialize};
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

const BITS_PER_BYTE: u64 = 8;
const PS_PER_S: u64 = 1_000_000_000_000;

/// A point in time: picoseconds since the start of the run. Overflows after 213 days.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Time(pub u64);

/// A length of time in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(pub u64);

/// An amount of data in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(pub u64);

/// A data rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BitRate(pub u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const NEVER: Self = Self(u64::MAX);

    /// Whole nanoseconds since the start (rounded down).
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0 / 1000
    }

    /// Seconds since the start, for printing and plots only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// The span from `earlier` to here, or zero where `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of whole nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * 1000)
    }

    /// A span of whole microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000_000)
    }

    /// A span of whole milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000_000)
    }

    /// Whole nanoseconds (rounded down).
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0 / 1000
    }

    /// Seconds, for printing, plots and rate laws written in floating point.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }
}

impl Bytes {
    /// `n` binary megabytes.
    pub const fn from_mib(n: u64) -> Self {
        Self(n << 20)
    }
}

impl BitRate {
    /// `n` decimal gigabits per second.
    pub const fn from_gbps(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }

    /// Time that `bytes` take on a link of this rate, rounded up to a whole picosecond.
    ///
    /// # Panics
    /// When the rate is zero: a link without a rate is refused where fabrics are read.
    #[inline]
    pub const fn transmission_time(self, bytes: Bytes) -> Span {
        // Packets fit in 64 bits (up to 2.3 MB); whole messages take the wide path.
        match bytes.0.checked_mul(BITS_PER_BYTE * PS_PER_S) {
            Some(bits_ps) => Span(bits_ps.div_ceil(self.0)),
            None => {
                let bits_ps = bytes.0 as u128 * (BITS_PER_BYTE * PS_PER_S) as u128;
                Span(bits_ps.div_ceil(self.0 as u128) as u64)
            }
        }
    }

    /// Bytes that this rate moves in `span`, rounded down.
    pub const fn bytes_in(self, span: Span) -> Bytes {
        Bytes((self.0 as u128 * span.0 as u128 / (BITS_PER_BYTE * PS_PER_S) as u128) as u64)
    }
}

impl Add<Span> for Time {
    type Output = Self;
    #[inline]
    fn add(self, span: Span) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    #[inline]
    fn sub(self, span: Span) -> Self {
        Self(self.0 - span.0)
    }
}

macro_rules! additive {
    ($name:ident) => {
        impl Add for $name {
            type Output = Self;
            #[inline]
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl AddAssign for $name {
            #[inline]
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }
        impl Sub for $name {
            type Output = Self;
            #[inline]
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
        impl SubAssign for $name {
            #[inline]
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }
        impl Mul<u64> for $name {
            type Output = Self;
            #[inline]
            fn mul(self, times: u64) -> Self {
                Self(self.0 * times)
            }
        }
        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                Self(iter.map(|item| item.0).sum())
            }
        }
    };
}

additive!(Span);
additive!(Bytes);
additive!(BitRate);
