//! Time as the cores take it: picoseconds since a start that we chose, by the system's monotonic clock.
//!
//! There is one rule: time never goes back, and **stands still at the end of its range**, 213 days after the start. Then
//! everything is due, so that those who wait give up. A program that lives longer starts a new clock before,
//! as `raddle-switch` does.
//!
//! [`now`] and [`nanoseconds`] count from the process's first look at either. A [`Clock`] has a start of its own.

use std::{sync::OnceLock, time::Duration};

use nix::time::{ClockId, clock_gettime};
use raddle_units::{Span, Time};

/// A clock that never goes back.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// In nanoseconds of [`uptime_ns`].
    start: u64,
}

impl Clock {
    /// A clock that begins now.
    #[must_use]
    pub fn start() -> Self {
        Self { start: uptime_ns() }
    }

    /// The time. It stands still at the end of its range, after 213 days.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Time {
        Time(self.nanoseconds().saturating_mul(1000))
    }

    /// Nanoseconds since the start, for 584 years.
    #[inline]
    #[must_use]
    pub fn nanoseconds(&self) -> u64 {
        // Another thread may have made the process's clock, with a later look.
        uptime_ns().saturating_sub(self.start)
    }
}

/// The clock of this process.
fn of_process() -> Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    *CLOCK.get_or_init(Clock::start)
}

/// The process's time.
#[must_use]
pub fn now() -> Time {
    of_process().now()
}

/// The process's time in nanoseconds.
#[must_use]
pub fn nanoseconds() -> u64 {
    of_process().nanoseconds()
}

/// Time since the machine was started, in nanoseconds: the same for all its processes.
///
/// `Instant` reads the same clock; but a recorder asks twice for each call of MPI, and its arithmetic takes a third of the
/// time.
///
/// # Panics
/// Never: Linux always has this clock.
#[inline]
#[must_use]
pub fn uptime_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux always has this clock");
    time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned()
}

/// A span as the standard library takes it, rounded up to a nanosecond.
#[must_use]
pub const fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.0.div_ceil(1000))
}

/// A duration as the cores take it; the longest span for one that is longer.
#[must_use]
pub fn span(duration: Duration) -> Span {
    let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    Span(nanoseconds.saturating_mul(1000))
}

/// How long until `due` by the process's time; zero when it has passed.
#[must_use]
pub fn until(due: Time) -> Duration {
    duration(due.since(now()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stands_still_at_the_end_of_its_range() {
        let clock = Clock { start: 0 };
        assert!(Time(0) < clock.now() && clock.now() <= clock.now());
        let later = Clock { start: u64::MAX };
        assert_eq!(later.now(), Time(0), "a start that is yet to come");
        assert_eq!(span(Duration::MAX), Span(u64::MAX));
        assert_eq!(duration(Span(1)), Duration::from_nanos(1));
        assert_eq!(until(Time(0)), Duration::ZERO);
    }
}
