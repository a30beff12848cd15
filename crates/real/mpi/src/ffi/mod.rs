//! What the shims call and what they hand in, as `shim/border.h` declares it. A panic stays on this side; the call then
//! takes the plain way, for good.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    process, slice,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use raddle_offload::order;
use raddle_wire::{DataType, Operation, native::Collective};

use crate::{
    collectives::communicator::{Call, Communicator, Verdict, View},
    collectives::reason::Reason,
    floats,
    interpose::route as resolve,
    job, log,
    messages::table::{RaddleChannel, RaddleMessages},
    record::table::{RaddleMatched, RaddleRecorder},
    settings,
};

/// RADDLE_ABI.
pub(crate) const VERSION: u32 = 7;

/// `raddle_shim_attach`.
pub(crate) type Attach = unsafe extern "C" fn(
    *const RaddleCore,
    u32,
    *mut c_char,
    usize,
    *const RaddleRecorder,
    *const RaddleMessages,
) -> *const Shim;

#[repr(C)]
pub(crate) struct RaddleCall {
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    handle: usize,
    root: i32,
    collective: u8,
    operation: u8,
    data_type: u8,
    reason: u8,
}

#[repr(C)]
pub(crate) struct RaddleView {
    handle: usize,
    rank: i32,
    size: i32,
    inter: u8,
    world: u8,
    session: u8,
    name: [c_char; 64],
}

#[repr(C)]
struct RaddlePlain {
    allgather: unsafe extern "C" fn(usize, *const c_void, *mut c_void, c_int) -> c_int,
    gather: unsafe extern "C" fn(usize, *const c_void, *mut c_void, c_int, c_int) -> c_int,
    gatherv: unsafe extern "C" fn(
        usize,
        *const c_void,
        c_int,
        *mut c_void,
        *const c_int,
        *const c_int,
        c_int,
    ) -> c_int,
    bcast: unsafe extern "C" fn(usize, *mut c_void, c_int, c_int) -> c_int,
    barrier: unsafe extern "C" fn(usize) -> c_int,
    send: unsafe extern "C" fn(usize, *const c_void, c_int, c_int) -> c_int,
    receive: unsafe extern "C" fn(usize, *mut c_void, c_int, c_int) -> c_int,
    least: unsafe extern "C" fn(usize, i32, *mut i32) -> c_int,
    sum: unsafe extern "C" fn(usize, *const f64, *mut f64, c_int) -> c_int,
    split: unsafe extern "C" fn(usize, c_int, c_int, *mut usize) -> c_int,
    free: unsafe extern "C" fn(usize) -> c_int,
    reduce: unsafe extern "C" fn(
        usize,
        u8,
        u8,
        usize,
        *const c_void,
        *mut c_void,
        c_int,
        c_int,
    ) -> c_int,
    reduce_local: unsafe extern "C" fn(u8, usize, *const c_void, *mut c_void, c_int) -> c_int,
    progress: unsafe extern "C" fn(),
}

#[repr(C)]
pub(crate) struct RaddleCore {
    communicator: unsafe extern "C" fn(*const RaddleView) -> *mut c_void,
    release: unsafe extern "C" fn(*mut c_void),
    forget: unsafe extern "C" fn(*mut c_void),
    begin: unsafe extern "C" fn(*mut c_void, *const RaddleCall) -> c_int,
    run: unsafe extern "C" fn(*mut c_void, *const RaddleCall) -> c_int,
    timed: unsafe extern "C" fn(*mut c_void),
    initialised: unsafe extern "C" fn(),
    finalize: unsafe extern "C" fn(usize, c_int, c_int),
    own: unsafe extern "C" fn(*const c_char) -> *const (),
    faults: unsafe extern "C" fn() -> u64,
    introduce: unsafe extern "C" fn(c_int, u8),
}

#[repr(C)]
struct RaddleEntry {
    symbol: *const c_char,
    offload: *const (),
    matching: *const (),
    record: *const (),
}

/// The layers above the MPI library that are wanted, beside that of offload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layers {
    pub(crate) recording: bool,
    pub(crate) scheduling: bool,
}

/// A shim once it is attached.
#[repr(C)]
pub(crate) struct Shim {
    abi: u32,
    library: u32,
    version: [c_int; 3],
    entries: *const RaddleEntry,
    entry_count: usize,
    plain: RaddlePlain,
    matched: unsafe extern "C" fn(*const c_void, *mut RaddleMatched),
    status_bytes: usize,
    channel: &'static RaddleChannel,
}

// SAFETY: a shim is static data that nobody changes after it was attached.
unsafe impl Sync for Shim {}
// SAFETY: as above.
unsafe impl Send for Shim {}

/// The MPI library that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    OpenMpi([i32; 3]),
    Mpich([i32; 3]),
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, [major, minor, patch]) = match self {
            Self::OpenMpi(version) => ("Open MPI", version),
            Self::Mpich(version) => ("MPICH", version),
        };
        write!(f, "{name} {major}.{minor}.{patch}")
    }
}

static SHIM: OnceLock<&'static Shim> = OnceLock::new();

pub(crate) fn attached(shim: &'static Shim) {
    // The same shim again changes nothing.
    let _ = SHIM.set(shim);
}

impl Shim {
    /// What stands behind a symbol in the highest layer that is wanted, `None`: the MPI library's own function.
    pub(crate) fn function(&self, symbol: &CStr, layers: Layers) -> Option<*const ()> {
        // SAFETY: the shim gives the address and length of a static array of names that end with a zero byte.
        let entries = unsafe { slice::from_raw_parts(self.entries, self.entry_count) };
        entries
            .iter()
            // SAFETY: as above.
            .find(|entry| unsafe { CStr::from_ptr(entry.symbol) } == symbol)
            .and_then(|entry| {
                let wanted = [
                    (layers.recording, entry.record),
                    (layers.scheduling, entry.matching),
                    (true, entry.offload),
                ];
                let mut wanted = wanted.into_iter();
                let (_, function) =
                    wanted.find(|(wanted, function)| *wanted && !function.is_null())?;
                Some(function)
            })
    }
}

/// The core as shims see it.
pub(crate) static CORE: RaddleCore = RaddleCore {
    communicator,
    release,
    forget,
    begin,
    run,
    timed,
    initialised,
    finalize,
    own,
    faults,
    introduce,
};

/// An MPI call of ours failed; its error handler has been called. The call goes the plain way.
#[derive(Debug)]
pub(crate) struct PlainFailed;

/// Plain MPI on one communicator of the program, or one that was split from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plain {
    handle: usize,
}

impl Plain {
    fn calls(self) -> Result<&'static RaddlePlain, PlainFailed> {
        SHIM.get().map(|shim| &shim.plain).ok_or(PlainFailed)
    }

    /// The bytes of every rank, in order of ranks; `mine` is as long on every rank.
    pub(crate) fn allgather(self, mine: &[u8], size: usize) -> Result<Vec<u8>, PlainFailed> {
        let mut all = vec![0; mine.len() * size];
        let call = self.calls()?.allgather;
        // SAFETY: `all` has room for what `size` ranks send, which is the size of the communicator.
        check(unsafe {
            call(
                self.handle,
                mine.as_ptr().cast(),
                all.as_mut_ptr().cast(),
                length(mine.len())?,
            )
        })?;
        Ok(all)
    }

    /// At rank 0, the bytes of every rank in `all`, which is as long as all of them together; elsewhere it is not used.
    pub(crate) fn gather(self, mine: &[u8], all: &mut [u8]) -> Result<(), PlainFailed> {
        let call = self.calls()?.gather;
        // SAFETY: the caller's `all` has room for every rank at rank 0, and only rank 0 writes to it.
        check(unsafe {
            call(
                self.handle,
                mine.as_ptr().cast(),
                all.as_mut_ptr().cast(),
                length(mine.len())?,
                0,
            )
        })
    }

    /// At rank 0, the texts of all ranks.
    pub(crate) fn gather_texts(
        self,
        mine: &str,
        rank: usize,
        size: usize,
    ) -> Result<Vec<String>, PlainFailed> {
        let calls = self.calls()?;
        let mut lengths = vec![0_u8; if rank == 0 { 4 * size } else { 0 }];
        self.gather(&length(mine.len())?.to_ne_bytes(), &mut lengths)?;
        let lengths: Vec<c_int> = lengths
            .chunks_exact(4)
            .map(|bytes| c_int::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect();
        let mut offsets = Vec::with_capacity(lengths.len());
        let mut end: c_int = 0;
        for length in &lengths {
            offsets.push(end);
            end = end.checked_add(*length).ok_or(PlainFailed)?;
        }
        let mut all = vec![0_u8; usize::try_from(end).map_err(|_| PlainFailed)?];
        // SAFETY: `all` has room for the sum of the lengths; lengths and offsets are read at rank 0 only, which has them.
        check(unsafe {
            (calls.gatherv)(
                self.handle,
                mine.as_ptr().cast(),
                length(mine.len())?,
                all.as_mut_ptr().cast(),
                lengths.as_ptr(),
                offsets.as_ptr(),
                0,
            )
        })?;
        Ok(lengths
            .iter()
            .zip(&offsets)
            .map(|(length, offset)| {
                let from = usize::try_from(*offset).unwrap_or(0);
                let text = &all[from..from + usize::try_from(*length).unwrap_or(0)];
                String::from_utf8_lossy(text).into_owned()
            })
            .collect())
    }

    /// A call that names a buffer and a rank.
    ///
    /// # Safety
    /// The buffer has so many bytes, for reading or writing as the call does.
    unsafe fn with_rank<Buffer>(
        self,
        call: unsafe extern "C" fn(usize, Buffer, c_int, c_int) -> c_int,
        buffer: Buffer,
        bytes: usize,
        rank: usize,
    ) -> Result<(), PlainFailed> {
        // SAFETY: as the caller says.
        check(unsafe { call(self.handle, buffer, length(bytes)?, length(rank)?) })
    }

    pub(crate) fn bcast(self, bytes: &mut [u8], root: usize) -> Result<(), PlainFailed> {
        let (call, buffer) = (self.calls()?.bcast, bytes.as_mut_ptr().cast());
        // SAFETY: the buffer is as long as said.
        unsafe { self.with_rank(call, buffer, bytes.len(), root) }
    }

    pub(crate) fn barrier(self) -> Result<(), PlainFailed> {
        // SAFETY: a call without buffers.
        check(unsafe { (self.calls()?.barrier)(self.handle) })
    }

    /// To another rank of a communicator that was split off by us.
    pub(crate) fn send(self, bytes: &[u8], to: usize) -> Result<(), PlainFailed> {
        let (call, buffer) = (self.calls()?.send, bytes.as_ptr().cast());
        // SAFETY: the buffer is as long as said.
        unsafe { self.with_rank(call, buffer, bytes.len(), to) }
    }

    /// From another rank of a communicator that was split off by us.
    pub(crate) fn receive(self, bytes: &mut [u8], from: usize) -> Result<(), PlainFailed> {
        let (call, buffer) = (self.calls()?.receive, bytes.as_mut_ptr().cast());
        // SAFETY: the buffer is as long as said.
        unsafe { self.with_rank(call, buffer, bytes.len(), from) }
    }

    /// The least of a number over all ranks.
    pub(crate) fn least(self, mine: i32) -> Result<i32, PlainFailed> {
        let mut least = mine;
        // SAFETY: both are one number.
        check(unsafe { (self.calls()?.least)(self.handle, mine, &raw mut least) })?;
        Ok(least)
    }

    /// Sums over all ranks, the same bits on all.
    pub(crate) fn sum<const COUNT: usize>(
        self,
        mine: [f64; COUNT],
    ) -> Result<[f64; COUNT], PlainFailed> {
        let mut sums = mine;
        let call = self.calls()?.sum;
        // SAFETY: both arrays have COUNT numbers.
        check(unsafe {
            call(
                self.handle,
                mine.as_ptr(),
                sums.as_mut_ptr(),
                length(COUNT)?,
            )
        })?;
        Ok(sums)
    }

    /// The communicator of those that give the same colour, ordered by `key`.
    pub(crate) fn split(self, colour: usize, key: usize) -> Result<Self, PlainFailed> {
        let mut handle = 0;
        let call = self.calls()?.split;
        // SAFETY: the new handle is one number.
        check(unsafe { call(self.handle, length(colour)?, length(key)?, &raw mut handle) })?;
        Ok(Self { handle })
    }

    pub(crate) fn free(self) {
        if let Ok(calls) = self.calls() {
            // SAFETY: a communicator that `split` made; nobody uses it afterwards. An error was handled by MPI.
            unsafe { (calls.free)(self.handle) };
        }
    }

    /// The library's own Allreduce or Reduce of `count` elements of the type with this handle. `mine` and the result are in the layout of C.
    pub(crate) fn reduce(
        self,
        call: &order::Call,
        handle: usize,
        mine: &[u8],
    ) -> Result<Vec<u8>, PlainFailed> {
        let mut result = vec![0; mine.len()];
        let function = self.calls()?.reduce;
        // SAFETY: both buffers have `count` elements of the type, as the caller laid them out.
        check(unsafe {
            function(
                self.handle,
                call.collective.code(),
                call.operation.code(),
                handle,
                mine.as_ptr().cast(),
                result.as_mut_ptr().cast(),
                length(call.count)?,
                length(call.root as usize)?,
            )
        })?;
        Ok(result)
    }
}

/// The library's `MPI_Reduce_local` on `count` elements in the layout of C.
pub(crate) fn reduce_local(
    call: &order::Call,
    handle: usize,
    left: &[u8],
    right: &mut [u8],
) -> Result<(), PlainFailed> {
    let shim = SHIM.get().ok_or(PlainFailed)?;
    // SAFETY: both buffers have `count` elements of the type, as the caller laid them out.
    check(unsafe {
        (shim.plain.reduce_local)(
            call.operation.code(),
            handle,
            left.as_ptr().cast(),
            right.as_mut_ptr().cast(),
            length(call.count)?,
        )
    })
}

/// Lets the library move its messages while we wait: another rank may need them to get to where we are.
pub(crate) fn progress() {
    if let Some(shim) = SHIM.get() {
        // SAFETY: a call without buffers, from a thread of the program that is inside an MPI call.
        unsafe { (shim.plain.progress)() }
    }
}

/// What the `index`-th of an array of statuses says of its request.
///
/// # Safety
/// `statuses` is what a shim passed, and has more than `index` of them.
pub(crate) unsafe fn matched(statuses: *const c_void, index: usize) -> RaddleMatched {
    let mut matched = RaddleMatched::default();
    if let Some(shim) = SHIM.get() {
        // SAFETY: as the caller says; the record is ours.
        unsafe {
            let status = statuses.byte_add(index * shim.status_bytes);
            (shim.matched)(status, &raw mut matched);
        }
    }
    matched
}

/// What the shim does for the matcher.
pub(crate) fn channel() -> Option<&'static RaddleChannel> {
    SHIM.get().map(|shim| shim.channel)
}

/// The library that runs.
pub(crate) fn library() -> Option<Library> {
    SHIM.get().and_then(|shim| match shim.library {
        1 => Some(Library::OpenMpi(shim.version)),
        2 => Some(Library::Mpich(shim.version)),
        _ => None,
    })
}

fn length(number: usize) -> Result<c_int, PlainFailed> {
    c_int::try_from(number).map_err(|_| PlainFailed)
}

fn check(error: c_int) -> Result<(), PlainFailed> {
    if error == 0 { Ok(()) } else { Err(PlainFailed) }
}

/// Set by a panic: nothing is begun any more. A bug of ours must not become one of the program.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// For what computes no floating-point numbers.
pub(crate) fn caught<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    if BROKEN.load(Ordering::Relaxed) {
        return fallback;
    }
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        BROKEN.store(true, Ordering::Relaxed);
        fallback
    })
}

fn guarded<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    caught(fallback, || floats::quietly(body))
}

unsafe extern "C" fn communicator(view: *const RaddleView) -> *mut c_void {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: the shim passes a record whose name ends with a zero byte.
        let (view, name) = unsafe { (&*view, CStr::from_ptr((*view).name.as_ptr())) };
        let communicator = Communicator::new(View {
            plain: Plain {
                handle: view.handle,
            },
            rank: u32::try_from(view.rank).unwrap_or(0),
            size: u32::try_from(view.size).unwrap_or(0),
            inter: view.inter != 0,
            world: view.world != 0,
            session: view.session != 0,
            name: name.to_string_lossy().into_owned(),
        });
        let state = Arc::new(Mutex::new(communicator));
        job::register(&state);
        Arc::into_raw(state).cast_mut().cast()
    })
}

unsafe extern "C" fn release(state: *mut c_void) {
    guarded((), || {
        // SAFETY: the shim passes what `communicator` made.
        let state = unsafe { &*state.cast::<Mutex<Communicator>>() };
        if let Ok(mut communicator) = state.try_lock() {
            communicator.release();
        }
    });
}

unsafe extern "C" fn forget(state: *mut c_void) {
    guarded((), || {
        // SAFETY: `communicator` made it, and the shim passes it here once, when nothing uses it any more.
        let state = unsafe { Arc::from_raw(state.cast::<Mutex<Communicator>>()) };
        job::forget(&state);
    });
}

unsafe extern "C" fn begin(state: *mut c_void, call: *const RaddleCall) -> c_int {
    let verdict = caught(Verdict::Plain, || {
        // SAFETY: the shim passes what `communicator` made, and a record of its own.
        let (state, call) = unsafe { (&*state.cast::<Mutex<Communicator>>(), &*call) };
        let Ok(mut communicator) = state.try_lock() else {
            return Verdict::Plain;
        };
        let call = convert(call);
        communicator
            .begin_plain(call.collective)
            .unwrap_or_else(|| floats::quietly(|| communicator.begin(&call)))
    });
    match verdict {
        Verdict::Plain => 0,
        Verdict::PlainTimed => 1,
        Verdict::Offload => 2,
    }
}

unsafe extern "C" fn run(state: *mut c_void, call: *const RaddleCall) -> c_int {
    // The other ranks take part by now: going the plain way alone would mix two calls up. So a panic ends the program.
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: as in `begin`.
        let (state, call) = unsafe { (&*state.cast::<Mutex<Communicator>>(), &*call) };
        let mut communicator = state.lock().unwrap_or_else(PoisonError::into_inner);
        floats::quietly(|| communicator.run(&convert(call)))
    }));
    match done {
        Ok(done) => c_int::from(done),
        Err(_) => {
            log::plain("an error of Raddle in the middle of an offloaded call; please report it");
            process::abort()
        }
    }
}

unsafe extern "C" fn timed(state: *mut c_void) {
    guarded((), || {
        // SAFETY: the shim passes what `communicator` made.
        let state = unsafe { &*state.cast::<Mutex<Communicator>>() };
        if let Ok(mut communicator) = state.try_lock() {
            communicator.timed();
        }
    });
}

unsafe extern "C" fn initialised() {
    guarded((), job::start);
}

unsafe extern "C" fn finalize(world: usize, rank: c_int, size: c_int) {
    guarded((), || {
        let (Ok(rank), Ok(size)) = (usize::try_from(rank), usize::try_from(size)) else {
            return;
        };
        job::finish(Plain { handle: world }, rank, size);
    });
}

unsafe extern "C" fn own(symbol: *const c_char) -> *const () {
    guarded(std::ptr::null(), || {
        // SAFETY: the shim passes a name that ends with a zero byte.
        resolve::own(unsafe { CStr::from_ptr(symbol) }).unwrap_or(std::ptr::null())
    })
}

unsafe extern "C" fn faults() -> u64 {
    guarded(0, settings::faults)
}

unsafe extern "C" fn introduce(rank: c_int, alike: u8) {
    guarded((), || {
        if rank == 0 {
            job::introduce();
        }
        if rank == 0 || alike == 0 {
            settings::say_faults();
        }
    });
}

fn convert(call: &RaddleCall) -> Call {
    Call {
        send: call.send.cast(),
        receive: call.receive.cast(),
        count: usize::try_from(call.count).unwrap_or(usize::MAX),
        handle: call.handle,
        root: u32::try_from(call.root).unwrap_or(0),
        collective: Collective::from_code(call.collective).unwrap_or(Collective::Barrier),
        operation: Operation::from_code(call.operation),
        data_type: DataType::from_code(call.data_type),
        reason: Reason::ALL
            .get(usize::from(call.reason))
            .copied()
            .unwrap_or(Reason::Arguments),
    }
}
