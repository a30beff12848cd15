//! The cores' time: picoseconds since the process began to use it; the recorder's are nanoseconds.

use std::{sync::OnceLock, time::Duration};

use raddle_units::{Span, Time};

pub(crate) fn nanoseconds() -> u64 {
    static START: OnceLock<u64> = OnceLock::new();
    let now = monotonic();
    // Another thread may have been first, with a later look.
    now.saturating_sub(*START.get_or_init(|| now))
}

/// The system's monotonic clock. `Instant` reads the same one; but the recorder asks twice for each call of MPI, and its
/// arithmetic takes a third of the time.
fn monotonic() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the record; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

pub(crate) fn now() -> Time {
    // Wraps after 213 days of 64-bit picoseconds; no collective waits as long.
    Time(nanoseconds().wrapping_mul(1000))
}

pub(crate) fn span(duration: Duration) -> Span {
    Span(
        u64::try_from(duration.as_nanos())
            .unwrap_or(u64::MAX)
            .saturating_mul(1000),
    )
}

/// How long until `due`.
pub(crate) fn until(due: Time) -> Duration {
    Duration::from_nanos(due.0.saturating_sub(now().0).div_ceil(1000))
}
