//! The cores' time: picoseconds since the process began to use it; the recorder's are nanoseconds.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use raddle_units::{Span, Time};

pub(crate) fn nanoseconds() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
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
