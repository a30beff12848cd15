//! A value for calls that never overlap, as those of MPI where one thread at a time makes them: no call pays for a lock.

use std::cell::{Cell, UnsafeCell};

/// A value that its users never use at the same time. A use from inside another is refused.
pub(super) struct ExclusiveCell<T> {
    used: Cell<bool>,
    value: UnsafeCell<T>,
}

// SAFETY: `with` is told that no two threads are in it at once; a value that may be sent can be used by one after another.
unsafe impl<T: Send> Sync for ExclusiveCell<T> {}

impl<T> ExclusiveCell<T> {
    pub(super) const fn new(value: T) -> Self {
        Self {
            used: Cell::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// `None`: this call came from inside another.
    ///
    /// # Safety
    /// No other thread may be in here at the same time, and what it did must be seen by this one.
    pub(super) unsafe fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.used.replace(true) {
            return None;
        }
        // SAFETY: nothing else uses the value: no other thread, as the caller says, and no call around this one.
        let done = body(unsafe { &mut *self.value.get() });
        self.used.set(false);
        Some(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_from_inside_another_is_refused() {
        let cell = ExclusiveCell::new(1);
        // SAFETY: there is one thread.
        unsafe {
            let inner = cell.with(|value| {
                *value += 1;
                cell.with(|_| ())
            });
            assert_eq!(inner, Some(None));
            assert_eq!(cell.with(|value| *value), Some(2));
        }
    }
}
