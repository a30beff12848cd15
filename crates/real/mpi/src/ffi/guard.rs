//! A panic stays on our side of the border; what it broke takes the plain way, for good.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
};

use crate::floats;

/// Set by a panic: nothing is begun any more. A bug of ours must not become one of the program.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// Runs what computes no floating-point numbers; `fallback` where it panics, or something did before.
pub(crate) fn caught<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    if BROKEN.load(Ordering::Relaxed) {
        return fallback;
    }
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        BROKEN.store(true, Ordering::Relaxed);
        fallback
    })
}

/// As [`caught`], for what computes floating-point numbers.
pub(crate) fn guarded<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    caught(fallback, || floats::quietly(body))
}
