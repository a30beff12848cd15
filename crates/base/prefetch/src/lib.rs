//! Hints about memory: to the processor, that it will be read soon; to the system, that it is large and read everywhere.
//!
//! Cores and simulator use the first where the next access is known long before it happens and misses the caches: on processors
//! other than x86-64 it does nothing. The second saves the processor most look-ups of addresses; elsewhere than on Linux it does
//! nothing. Neither changes a result.

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

/// [`prefetch`] of the first line of what is needed later, into the second-level cache. Many of these hints in a row take less time
/// than those for all caches.
#[inline(always)]
pub fn prefetch_early<T>(item: &T) {
    hint::<false>(std::ptr::from_ref(item).cast());
}

#[inline(always)]
fn prefetch_line(line: *const i8) {
    hint::<true>(line);
}

/// The hint, for all caches or all but the first.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(unsafe_code, reason = "the hint has no safe form in stable Rust")]
fn hint<const ALL: bool>(line: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
    // SAFETY: the instruction is part of SSE, which every x86-64 processor has, and it neither faults nor changes memory.
    unsafe {
        if ALL {
            _mm_prefetch::<_MM_HINT_T0>(line);
        } else {
            _mm_prefetch::<_MM_HINT_T1>(line);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn hint<const ALL: bool>(_line: *const i8) {}

/// Memory from this size on is worth pages of its own.
const LARGE_BYTES: usize = 4 << 20;

/// Asks for huge pages (2 MiB) for the memory of a list that has just grown: for what it will grow into, and for what it holds,
/// which is copied there where the system cannot move memory by whole huge pages.
pub fn prefer_huge_pages<T>(items: &Vec<T>) {
    let bytes = items.capacity() * size_of::<T>();
    if bytes >= LARGE_BYTES {
        let start = items.as_ptr() as usize;
        advise(start, start + bytes, Advice::Prefer);
        advise(start, start + size_of_val(items.as_slice()), Advice::Move);
    }
}

/// Makes room for one more item in a list. A large list gets far more than it needs, in huge pages, if the system promises so
/// much: what is not written to takes no memory, and while a list is copied to a larger place it takes twice its own.
#[inline]
pub fn make_room<T>(items: &mut Vec<T>) {
    if items.len() == items.capacity() {
        grow(items);
    }
}

#[cold]
fn grow<T>(items: &mut Vec<T>) {
    const FAR_BYTES: usize = 1 << 20;
    const TIMES: [usize; 3] = [16, 8, 4];
    let is_large = size_of_val(items.as_slice()) >= FAR_BYTES;
    let mut reserve = |times| {
        let more = items.len() * (times - 1);
        items.try_reserve_exact(more).is_ok()
    };
    if !(is_large && TIMES.into_iter().any(&mut reserve)) {
        items.reserve(1);
    }
    prefer_huge_pages(items);
}

/// What is asked of the system.
#[derive(Clone, Copy)]
enum Advice {
    /// Huge pages for what is written from now on.
    Prefer,
    /// Huge pages for what is there.
    Move,
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "advice about memory has no safe form")]
fn advise(first: usize, last: usize, advice: Advice) {
    const HUGE_BYTES: usize = 2 << 20;
    let start = first.next_multiple_of(HUGE_BYTES);
    let bytes = (last & !(HUGE_BYTES - 1)).saturating_sub(start);
    let advice = match advice {
        Advice::Prefer => libc::MADV_HUGEPAGE,
        Advice::Move => libc::MADV_COLLAPSE,
    };
    // SAFETY: neither advice changes what memory holds or who may use it, whatever lies there. A system without huge pages
    // refuses, and all stays as it is.
    unsafe { libc::madvise(start as *mut libc::c_void, bytes, advice) };
}

#[cfg(not(target_os = "linux"))]
fn advise(_first: usize, _last: usize, _advice: Advice) {}
