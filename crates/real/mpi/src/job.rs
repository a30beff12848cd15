//! The process from MPI_Init to MPI_Finalize: its communicators, and the report at the end.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    collectives::communicator::Communicator,
    collectives::service,
    ffi::{self as abi, Library, Plain},
    log, messages,
    report::{self, Listing, sum},
    settings,
};

/// In MPICH 4.0 over UCX, a process that is in MPI_Finalize asks the others to confirm that all has arrived, and then
/// answers nobody any more. Who confirms it from a call before its own MPI_Finalize is never answered, and hangs. So all
/// ranks leave our last call together, and make no call until the slowest has left it.
const QUIET: Duration = Duration::from_millis(10);

struct Job {
    communicators: Vec<Weak<Mutex<Communicator>>>,
    freed: Listing,
    started: Option<Instant>,
}

static JOB: Mutex<Job> = Mutex::new(Job {
    communicators: Vec::new(),
    freed: Listing::new(),
    started: None,
});

fn job() -> MutexGuard<'static, Job> {
    JOB.lock().unwrap_or_else(PoisonError::into_inner)
}

/// MPI runs.
pub(crate) fn start() {
    job().started = Some(Instant::now());
}

/// Says, for all ranks, what runs here.
pub(crate) fn introduce() {
    let library = abi::library().map_or_else(String::new, |library| library.to_string());
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
        log::plain(&format!("RADDLE_REPORT: {} is no folder", folder.display()));
    }
}

/// A communicator was seen for the first time.
pub(crate) fn register(communicator: &Arc<Mutex<Communicator>>) {
    let mut job = job();
    if job.communicators.len() == job.communicators.capacity() {
        job.communicators.retain(|known| known.strong_count() > 0);
    }
    job.communicators.push(Arc::downgrade(communicator));
}

/// A communicator was freed.
pub(crate) fn forget(communicator: &Arc<Mutex<Communicator>>) {
    let mut communicator = communicator.lock().unwrap_or_else(PoisonError::into_inner);
    communicator.close();
    if let Some(summary) = communicator.summary() {
        job().freed.add(summary);
    }
}

/// MPI_Finalize: all ranks meet, groups end, and the report is written. `world` is MPI_COMM_WORLD.
pub(crate) fn finish(world: Plain, rank: usize, size: usize) {
    end(world, rank, size);
    if world.barrier().is_ok() && matches!(abi::library(), Some(Library::Mpich(_))) {
        thread::sleep(QUIET);
    }
}

fn end(world: Plain, rank: usize, size: usize) {
    // Nobody may leave with a result that another rank still asks for: the service answers until all are here.
    if world.barrier().is_err() {
        return;
    }
    let (mut mine, live, seconds) = {
        let mut job = job();
        let live: Vec<_> = job
            .communicators
            .drain(..)
            .filter_map(|known| known.upgrade())
            .collect();
        let seconds = job
            .started
            .map_or(0.0, |started| started.elapsed().as_secs_f64());
        (std::mem::take(&mut job.freed), live, seconds)
    };
    for communicator in live {
        let mut communicator = communicator.lock().unwrap_or_else(PoisonError::into_inner);
        communicator.release();
        communicator.close();
        if let Some(summary) = communicator.summary() {
            mine.add(summary);
        }
    }
    service::stop();
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
    let library = abi::library().map_or_else(String::new, |library| library.to_string());
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
