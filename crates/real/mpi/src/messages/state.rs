//! What this part keeps between the calls of a shim.

use std::{
    mem, process,
    sync::atomic::{AtomicI32, AtomicU32, Ordering},
};

use super::{exclusive::ExclusiveCell, process::Messages};
use crate::log;

/// All global state of this part.
struct State {
    /// Used by calls of shims, which do not overlap (`struct raddle_messages`), and inside MPI_Finalize.
    messages: ExclusiveCell<Option<Messages>>,
    /// The largest tag of the MPI library.
    keys: AtomicU32,
    /// Why no communicator is scheduled: enum raddle_plain_state. Negative: nothing was said.
    plain: AtomicI32,
}

static STATE: State = State {
    messages: ExclusiveCell::new(None),
    keys: AtomicU32::new(0),
    plain: AtomicI32::new(-1),
};

pub(super) fn set_keys(keys: u32) {
    STATE.keys.store(keys, Ordering::Relaxed);
}

pub(super) fn keys() -> u32 {
    STATE.keys.load(Ordering::Relaxed)
}

/// No communicator is scheduled, for this reason.
pub(super) fn stay_plain(why: i32) {
    STATE.plain.store(why, Ordering::Relaxed);
}

/// Messages are scheduled from here on. `None`: a call of ours is under way.
pub(super) fn open(messages: Messages) -> Option<()> {
    // SAFETY: shims make one call at a time.
    unsafe { STATE.messages.with(|current| *current = Some(messages)) }
}

/// What was done, or the code of the reason why nothing was.
pub(super) fn read<T>(read: impl FnOnce(&Messages) -> T) -> Result<T, Option<u32>> {
    let why = || u32::try_from(STATE.plain.load(Ordering::Relaxed)).ok();
    // SAFETY: MPI_Finalize is a call of MPI: there is no other.
    let read = unsafe { STATE.messages.with(|current| current.as_ref().map(read)) };
    read.flatten().ok_or_else(why)
}

/// Runs what a shim asks for. Ends the program where `body` gives `None` or panics: the shim has checked the arguments, so it
/// is an error of ours, and there is no way back in the middle of a message.
pub(super) fn with<T>(body: impl FnOnce(&mut Messages) -> Option<T>) -> T {
    let unless_done = AbortOnUnwind;
    // SAFETY: shims make one call at a time.
    let done = unsafe { STATE.messages.with(|current| body(current.as_mut()?)) };
    let value = done.flatten().unwrap_or_else(|| fail());
    mem::forget(unless_done);
    value
}

#[cold]
fn fail() -> ! {
    log::plain("an error of Raddle in the middle of a message; please report it");
    process::abort()
}

/// Ends the program when it is dropped. It is dropped only by a panic: a call that comes back forgets it. That costs a call
/// nothing, where catching the panic would.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        fail()
    }
}
