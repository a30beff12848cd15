//! What a shim calls of this part: `struct raddle_collectives` of `shim/border.h`.

use std::{
    ffi::{CStr, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    process,
    sync::{Arc, Mutex, PoisonError},
};

use raddle_wire::{DataType, Operation, native::Collective};

use super::{
    call::{Call, Verdict, View},
    communicator::Communicator as Decider,
    reason::Reason,
    registry,
};
use crate::{
    ffi::{
        self, RaddleCall, RaddleCollectives, RaddleView,
        guard::{caught, guarded},
    },
    floats,
    library::Plain,
    log, settings,
};

type Communicator = Decider<Plain>;

/// This part as shims see it.
pub(crate) static COLLECTIVES: RaddleCollectives = RaddleCollectives {
    communicator,
    release,
    forget,
    begin,
    run,
    timed,
};

unsafe extern "C" fn communicator(view: *const RaddleView) -> *mut c_void {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: the shim passes a record whose name ends with a zero byte.
        let (view, name) = unsafe { (&*view, CStr::from_ptr((*view).name.as_ptr())) };
        let communicator = Communicator::new(View {
            plain: Plain::new(view.handle),
            settings: settings::get(),
            rank: u32::try_from(view.rank).unwrap_or(0),
            size: u32::try_from(view.size).unwrap_or(0),
            inter: view.inter != 0,
            world: view.world != 0,
            session: view.session != 0,
            name: name.to_string_lossy().into_owned(),
        });
        let state = Arc::new(Mutex::new(communicator));
        registry::register(&state);
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
        registry::forget(&state);
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
    let code = match verdict {
        Verdict::Plain => ffi::RADDLE_PLAIN,
        Verdict::PlainTimed => ffi::RADDLE_PLAIN_TIMED,
        Verdict::Offload => ffi::RADDLE_OFFLOAD,
    };
    code.cast_signed()
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
