//! What a shim calls of this part: `struct raddle_recorder` of `shim/border.h`.

use std::{
    ffi::{c_int, c_void},
    fs, process, ptr, slice,
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
};

use raddle_host::clock;
use raddle_trace::{CollectiveKind, Interval, Origin};

use super::{Recording, spool::Spool};
use crate::{
    ffi::{self, RaddleMatched, RaddleMessage, RaddleRecorder, RaddleShare, guard::caught},
    library::{Mpi, Plain},
    log, node, settings,
};

/// Bytes that are kept in memory before they are written.
const BLOCK: usize = 16 << 20;

type Requests = *const usize;

/// The recorder as shims see it.
pub(crate) static RECORDER: RaddleRecorder = RaddleRecorder {
    clock: now,
    open,
    close,
    communicator,
    claim,
    restore,
    persist,
    send,
    receive,
    exchange,
    collective,
    neighbours,
    start,
    complete,
    rename,
    cancel,
    release,
    pass,
};

/// A recording and its file.
struct Open {
    recording: Recording,
    spool: Spool,
    /// A child of this process must not write to the file.
    process: u32,
}

static OPEN: Mutex<Option<Open>> = Mutex::new(None);

fn current() -> MutexGuard<'static, Option<Open>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the recording in memory to its file; if that fails, the recording ends.
fn spill(current: &mut Option<Open>) {
    let Some(open) = current else { return };
    let written = open.spool.append(open.recording.bytes());
    open.recording.clear();
    if let Err(error) = written {
        let path = open.spool.path.display();
        log::plain(&format!(
            "RADDLE_RECORD: {path}: {error}; the recording ends here"
        ));
        *current = None;
    }
}

/// Notes a call that has come back.
fn note(begun: u64, body: impl FnOnce(&mut Recording, Interval)) {
    caught((), || {
        let call = Interval::new(begun, clock::nanoseconds());
        let mut current = current();
        let Some(open) = current.as_mut() else { return };
        body(&mut open.recording, call);
        if open.recording.bytes().len() >= BLOCK {
            spill(&mut current);
        }
    });
}

unsafe extern "C" fn now() -> u64 {
    clock::nanoseconds()
}

unsafe extern "C" fn open(rank: c_int, size: c_int) {
    caught((), || {
        let (Some(folder), Ok(rank), Ok(size)) = (
            &settings::get().record,
            u32::try_from(rank),
            u32::try_from(size),
        ) else {
            return;
        };
        let spool = match Spool::create(folder, rank) {
            Ok(spool) => spool,
            Err(error) => {
                let folder = folder.display();
                log::plain(&format!(
                    "RADDLE_RECORD: {folder}: {error}; rank {rank} is not recorded"
                ));
                return;
            }
        };
        let origin = Origin {
            rank,
            size,
            host: node::name(),
            program: program(),
            mpi: Plain::library().map_or_else(String::new, |library| library.to_string()),
        };
        // SAFETY: the function is there as long as the process: the library is never unloaded.
        unsafe { libc::atexit(at_exit) };
        let mut current = current();
        *current = Some(Open {
            recording: Recording::new(&origin, clock::nanoseconds()),
            spool,
            process: process::id(),
        });
        // A process that is killed leaves at least its head.
        spill(&mut current);
    });
}

/// The words of this process.
fn program() -> String {
    let words = fs::read("/proc/self/cmdline").unwrap_or_default();
    let words: Vec<_> = words
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    words.join(" ")
}

unsafe extern "C" fn close(complete: c_int) {
    caught((), || {
        let mut current = current();
        if let Some(open) = current.as_mut() {
            if complete != 0 {
                open.recording.end(clock::nanoseconds());
            }
            spill(&mut current);
        }
        *current = None;
    });
}

/// A program that ends without MPI_Finalize leaves what it has, without an end.
extern "C" fn at_exit() {
    caught((), || {
        let mut current = match OPEN.try_lock() {
            Ok(current) => current,
            Err(TryLockError::Poisoned(current)) => current.into_inner(),
            // Another thread of the program still calls MPI.
            Err(TryLockError::WouldBlock) => return,
        };
        if current
            .as_ref()
            .is_some_and(|open| open.process == process::id())
        {
            spill(&mut current);
        }
    });
}

unsafe extern "C" fn communicator(
    members: *const i32,
    count: usize,
    remote: *const i32,
    remote_count: usize,
) -> i32 {
    caught(-1, || {
        let world = |ranks: &[i32]| -> Option<Vec<u32>> {
            ranks.iter().map(|rank| u32::try_from(*rank).ok()).collect()
        };
        // SAFETY: the shim passes arrays of these lengths, or null.
        let (members, remote) = unsafe { (list(members, count), list(remote, remote_count)) };
        let mut current = current();
        let (Some(open), Some(members), Some(others)) =
            (current.as_mut(), world(members), world(remote))
        else {
            return -1;
        };
        let others = (!others.is_empty()).then_some(others);
        let number = open.recording.communicator(&members, others.as_deref());
        i32::try_from(number).unwrap_or(-1)
    })
}

/// An array of a shim.
///
/// # Safety
/// It is as long as said and stays while the call runs, or it is null and has nothing.
unsafe fn list<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: as the caller says.
    unsafe { slice::from_raw_parts(first, count) }
}

unsafe extern "C" fn claim(request: usize) -> usize {
    caught(request, || match current().as_mut() {
        Some(open) => open.recording.claim(request),
        None => request,
    })
}

unsafe extern "C" fn restore(claimed: usize, request: usize) {
    caught((), || {
        if let Some(open) = current().as_mut() {
            open.recording.restore(claimed, request);
        }
    });
}

unsafe extern "C" fn persist(message: *const RaddleMessage, receives: c_int, request: usize) {
    // SAFETY: the shim passes a record of its own.
    let message = unsafe { *message };
    caught((), || {
        if let Some(open) = current().as_mut() {
            open.recording.persist(&message, receives != 0, request);
        }
    });
}

unsafe extern "C" fn send(begun: u64, message: *const RaddleMessage, request: usize) {
    // SAFETY: the shim passes a record of its own.
    let message = unsafe { &*message };
    note(begun, |recording, call| {
        recording.send(call, message, request);
    });
}

unsafe extern "C" fn receive(begun: u64, message: *const RaddleMessage, request: usize) {
    // SAFETY: the shim passes a record of its own.
    let message = unsafe { &*message };
    note(begun, |recording, call| {
        recording.receive(call, message, request);
    });
}

unsafe extern "C" fn exchange(
    begun: u64,
    sent: *const RaddleMessage,
    received: *const RaddleMessage,
) {
    // SAFETY: the shim passes records of its own, or null.
    let (sent, received) = unsafe { (sent.as_ref(), received.as_ref()) };
    note(begun, |recording, call| {
        recording.exchange(call, sent, received);
    });
}

unsafe extern "C" fn collective(
    begun: u64,
    comm: i32,
    kind: u8,
    bytes: u64,
    root: i32,
    request: usize,
) {
    note(begun, |recording, call| {
        match CollectiveKind::ALL.get(usize::from(kind)) {
            Some(kind) => recording.collective(call, comm, *kind, bytes, root, request),
            None => recording.pass(call),
        }
    });
}

unsafe extern "C" fn neighbours(
    begun: u64,
    comm: i32,
    sent: *const RaddleShare,
    sent_count: usize,
    received: *const RaddleShare,
    received_count: usize,
    request: usize,
) {
    // SAFETY: the shim passes arrays of these lengths.
    let (sent, received) = unsafe { (list(sent, sent_count), list(received, received_count)) };
    note(begun, |recording, call| {
        recording.neighbours(call, comm, sent, received, request);
    });
}

unsafe extern "C" fn start(begun: u64, requests: Requests, count: usize) {
    // SAFETY: the shim passes an array of this length.
    let requests = unsafe { list(requests, count) };
    note(begun, |recording, call| recording.start(call, requests));
}

unsafe extern "C" fn complete(
    begun: u64,
    requests: Requests,
    which: *const c_int,
    statuses: *const c_void,
    count: usize,
) {
    let request = |index: usize| {
        let at = if which.is_null() {
            index
        } else {
            // SAFETY: the shim passes `count` indices that MPI gave.
            usize::try_from(unsafe { *which.add(index) }).unwrap_or(0)
        };
        // SAFETY: the shim passes as many requests as MPI knew.
        unsafe { ptr::read(requests.add(at)) }
    };
    note(begun, |recording, call| {
        recording.complete(call, (0..count).map(request), |index| {
            // SAFETY: the shim passes `count` statuses.
            unsafe { matched(statuses, index) }
        });
    });
}

unsafe extern "C" fn rename(begun: u64, from: usize, to: usize) {
    note(begun, |recording, call| recording.rename(call, from, to));
}

unsafe extern "C" fn cancel(begun: u64, request: usize) {
    note(begun, |recording, call| recording.cancel(call, request));
}

unsafe extern "C" fn release(begun: u64, request: usize) {
    note(begun, |recording, call| recording.release(call, request));
}

unsafe extern "C" fn pass(begun: u64) {
    note(begun, Recording::pass);
}

/// What the `index`-th of an array of statuses says of its request.
///
/// # Safety
/// `statuses` is what a shim passed, and has more than `index` of them.
unsafe fn matched(statuses: *const c_void, index: usize) -> RaddleMatched {
    let mut matched = RaddleMatched::default();
    if let Some(shim) = ffi::shim() {
        // SAFETY: as the caller says; the record is ours.
        unsafe {
            let status = statuses.byte_add(index * shim.status_bytes);
            (shim.matched)(status, &raw mut matched);
        }
    }
    matched
}
