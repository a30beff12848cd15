//! Panics of other people's readers as errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread becomes an error.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Parquet's reader asserts what a damaged file may break; its panic becomes an error here, of which nothing is printed.
/// The reader must not be used again afterwards, so that nothing half-done is seen.
///
/// # Errors
/// Those of `read`, and that the file is damaged.
pub fn guarded<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                usual(panic);
            }
        }));
    });
    GUARDED.set(true);
    let found = catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(false);
    found.unwrap_or_else(|_| Err("the file is damaged; write or copy it again".to_owned()))
}
