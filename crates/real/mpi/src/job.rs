//! The process from MPI_Init to MPI_Finalize: its communicators, and the report at the end.

use std::{
    ffi::{CStr, c_char, c_int},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    collectives,
    ffi::{RaddleProcess, guard::guarded},
    library::{Library, Mpi, Plain, loaded},
    log, messages,
    report::{self, Listing, sum},
    settings,
};

/// In MPICH 4.0 over UCX, a process that is in MPI_Finalize asks the others to confirm that all has arrived, and then
/// answers nobody any more. Who confirms it from a call before its own MPI_Finalize is never answered, and hangs. So all
/// ranks leave our last call together, and make no call until the slowest has left it.
const QUIET: Duration = Duration::from_millis(10);

/// When MPI_Init came back.
static STARTED: OnceLock<Instant> = OnceLock::new();

/// The process as shims see it.
pub(crate) static PROCESS: RaddleProcess = RaddleProcess {
    initialised,
    introduce,
    faults,
    finalize,
    own,
};

unsafe extern "C" fn initialised() {
    guarded((), || {
        // A second MPI_Init is an error of the program, which MPI reports.
        let _ = STARTED.set(Instant::now());
    });
}

unsafe extern "C" fn introduce(rank: c_int, alike: u8) {
    guarded((), || {
        if rank == 0 {
            introduce_job();
        }
        if rank == 0 || alike == 0 {
            settings::fault_lines()
                .iter()
                .for_each(|line| log::plain(line));
        }
    });
}

unsafe extern "C" fn faults() -> u64 {
    guarded(0, settings::faults)
}

unsafe extern "C" fn finalize(world: usize, rank: c_int, size: c_int) {
    guarded((), || {
        let (Ok(rank), Ok(size)) = (usize::try_from(rank), usize::try_from(size)) else {
            return;
        };
        finish(Plain::new(world), rank, size);
    });
}

unsafe extern "C" fn own(symbol: *const c_char) -> Option<unsafe extern "C" fn()> {
    guarded(None, || {
        // SAFETY: the shim passes a name that ends with a zero byte.
        let function = loaded::own(unsafe { CStr::from_ptr(symbol) })?;
        // SAFETY: a function of C; the shim gives it the type that it has.
        Some(unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn()>(function) })
    })
}

/// Says, for all ranks, what runs here.
fn introduce_job() {
    let library = Plain::library().map_or_else(String::new, |library| library.to_string());
    log::info(format_args!(
        "version {}, {library}",
        env!("CARGO_PKG_VERSION")
    ));
    // It is written at the very end.
    if let Some(folder) = settings::get()
        .report
        .as_ref()
        .and_then(|path| path.parent())
        && !folder.as_os_str().is_empty()
        && !folder.is_dir()
    {
        log::plain(&format!(
            "RADDLE_REPORT: {} is not a folder",
            folder.display()
        ));
    }
}

/// MPI_Finalize: all ranks meet, groups end, and the report is written. `world` is MPI_COMM_WORLD.
fn finish(world: Plain, rank: usize, size: usize) {
    end(world, rank, size);
    if world.barrier().is_ok() && matches!(Plain::library(), Some(Library::Mpich(_))) {
        thread::sleep(QUIET);
    }
}

fn end(world: Plain, rank: usize, size: usize) {
    // Another rank may still ask for a result that this one has: the service answers until all ranks are here.
    if world.barrier().is_err() {
        return;
    }
    let seconds = STARTED
        .get()
        .map_or(0.0, |started| started.elapsed().as_secs_f64());
    let mine = collectives::registry::end();
    // Whether a report is wanted must be the same everywhere: rank 0 says it, which also writes it.
    let mut wanted = [u8::from(settings::get().report.is_some())];
    if world.bcast(&mut wanted, 0).is_err() || wanted[0] == 0 {
        return;
    }
    let mine = json!({
        "offload": mine.to_json(),
        "messages": messages::summary(),
    });
    let Ok(texts) = world.gather_texts(&mine.to_string(), rank, size) else {
        return;
    };
    let Some(path) = settings::get().report.as_ref().filter(|_| rank == 0) else {
        return;
    };
    if let Err(error) = report::write(path, &whole(&texts, size, seconds)) {
        log::plain(&format!("RADDLE_REPORT: {}: {error}", path.display()));
    }
}

fn whole(texts: &[String], size: usize, seconds: f64) -> Value {
    let (mut all, mut messages) = (Listing::new(), Vec::new());
    for text in texts {
        let Ok(mut part) = serde_json::from_str::<Value>(text) else {
            continue;
        };
        all.merge(part["offload"].take());
        messages.push(part["messages"].take());
    }
    let settings = settings::get();
    let library = Plain::library().map_or_else(String::new, |library| library.to_string());
    let total = all.total();
    json!({
        "schema": 1,
        "raddle": env!("CARGO_PKG_VERSION"),
        "mpi": library,
        "job": settings.job.as_ref().map(|(job, _)| job),
        "ranks": size,
        "seconds": seconds,
        "calls": sum(&total["calls"]),
        "offloaded": sum(&total["offloaded"]),
        "saved_s": total["saved_s"].as_f64().unwrap_or(0.0),
        "communicators": all.listed(),
        "others": all.others_to_json(),
        "messages": messages::total(&messages),
    })
}
