//! A value for calls that never overlap: MPI's, where one thread at a time makes them.

use std::cell::{Cell, UnsafeCell};

/// Who uses it keeps calls apart, so that none of them pays for a lock.
pub(super) struct Apart<T> {
    used: Cell<bool>,
    value: UnsafeCell<T>,
}

// SAFETY: `with` is told that no two threads are in it at once; a value that may be sent can be used by one after another.
unsafe impl<T: Send> Sync for Apart<T> {}

impl<T> Apart<T> {
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
        // SAFETY: nobody else is in here: no other thread, and no call around this one.
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
        let apart = Apart::new(1);
        // SAFETY: there is one thread.
        unsafe {
            let inner = apart.with(|value| {
                *value += 1;
                apart.with(|_| ())
            });
            assert_eq!(inner, Some(None));
            assert_eq!(apart.with(|value| *value), Some(2));
        }
    }
}
