//! Time as the cores take it: picoseconds since a start that we chose.

use std::time::{Duration, Instant};

use raddle_units::{Span, Time};

/// A clock that never goes back.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that begins now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// The time. It stands still at the end of its range, after 213 days.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Time {
        let ps = self.start.elapsed().as_nanos().saturating_mul(1000);
        Time(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// Whole seconds since the start, without end.
    #[must_use]
    pub fn seconds(&self) -> u64 {
        self.start.elapsed().as_secs()
    }
}

/// A span as the standard library takes it, rounded up to a nanosecond.
#[must_use]
pub const fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.0.div_ceil(1000))
}

/// A number for a new life of a switch or of a node with rails: not 0, and other than the one before, but for one chance in 2^32.
///
/// # Errors
/// When the system has no randomness.
pub fn epoch() -> Result<u32, getrandom::Error> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes)?;
    Ok(u32::from_ne_bytes(bytes).max(1))
}
