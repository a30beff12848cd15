//! A hint to the processor: this memory will be read soon.
//!
//! Cores and simulator use it where the next access is known long before it happens and misses the caches. It changes
//! no result; on processors other than x86-64 it does nothing.

/// Cache line of the machines we run on; a wrong value costs time, nothing else.
const LINE_BYTES: usize = 64;

/// Starts bringing `item` into the cache, without waiting for it. Does nothing where the processor has no such hint.
#[inline(always)]
pub fn prefetch<T>(item: &T) {
    let start = std::ptr::from_ref(item).cast::<i8>();
    for offset in (0..size_of::<T>().max(1)).step_by(LINE_BYTES) {
        prefetch_line(start.wrapping_add(offset));
    }
}

/// [`prefetch`] of the first line of a slice, which may be empty (what will be written there is not yet part of it).
#[inline(always)]
pub fn prefetch_start<T>(items: &[T]) {
    prefetch_line(items.as_ptr().cast());
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(unsafe_code, reason = "the hint has no safe form in stable Rust")]
fn prefetch_line(line: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction is part of SSE, which every x86-64 processor has, and it neither faults nor changes memory.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn prefetch_line(_line: *const i8) {}
