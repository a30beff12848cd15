//! The process from MPI_Init to MPI_Finalize: its communicators, and the report at the end.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    abi::{self, Library, Plain},
    communicator::Communicator,
    log, messages,
    report::{self, Counts},
    service, settings,
};

/// Freed communicators that are reported one by one; later ones are added up.
const LISTED: usize = 200;
/// In MPICH 4.0 over UCX, a process that is in MPI_Finalize asks the others to confirm that all has arrived, and then
/// answers nobody any more. Who confirms it from a call before its own MPI_Finalize is never answered, and hangs. So all
/// ranks leave our last call together, and make no call until the slowest has left it.
const QUIET: Duration = Duration::from_millis(10);

struct Job {
    communicators: Vec<Weak<Mutex<Communicator>>>,
    freed: Vec<Value>,
    others: Counts,
    other_communicators: u64,
    started: Option<Instant>,
}

static JOB: Mutex<Job> = Mutex::new(Job {
    communicators: Vec::new(),
    freed: Vec::new(),
    others: Counts::new(),
    other_communicators: 0,
    started: None,
});

fn job() -> MutexGuard<'static, Job> {
    JOB.lock().unwrap_or_else(PoisonError::into_inner)
}

/// MPI runs.
pub(crate) fn start() {
    job().started = Some(Instant::now());
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
    let mut job = job();
    if job.freed.len() < LISTED {
        job.freed.extend(communicator.summary());
    } else if communicator.reports() {
        job.others.add(communicator.counts());
        job.other_communicators += 1;
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
    let mut communicators = Vec::new();
    let (seconds, others, other_communicators) = {
        let mut job = job();
        communicators.append(&mut job.freed);
        let live: Vec<_> = job
            .communicators
            .drain(..)
            .filter_map(|known| known.upgrade())
            .collect();
        let seconds = job
            .started
            .map_or(0.0, |started| started.elapsed().as_secs_f64());
        for communicator in live {
            let mut communicator = communicator.lock().unwrap_or_else(PoisonError::into_inner);
            communicator.release();
            communicator.close();
            communicators.extend(communicator.summary());
        }
        (seconds, job.others.clone(), job.other_communicators)
    };
    service::stop();
    // Whether a report is wanted must be the same everywhere: rank 0 says it, which also writes it.
    let mut wanted = [u8::from(settings::get().report.is_some())];
    if world.bcast(&mut wanted, 0).is_err() || wanted[0] == 0 {
        return;
    }
    let mine = json!({
        "communicators": communicators,
        "others": (other_communicators > 0).then(|| others.to_json()),
        "other_communicators": other_communicators,
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
    let (mut communicators, mut others, mut messages) = (Vec::new(), Vec::new(), Vec::new());
    for text in texts {
        let Ok(mut part) = serde_json::from_str::<Value>(text) else {
            continue;
        };
        if let Some(list) = part["communicators"].as_array_mut() {
            communicators.append(list);
        }
        messages.push(part["messages"].take());
        if part["others"].is_object() {
            others.push(json!({
                "communicators": part["other_communicators"],
                "counts": part["others"],
            }));
        }
    }
    let settings = settings::get();
    let library = abi::library().map_or_else(String::new, |library| library.to_string());
    let total = |key: &str| -> u64 {
        communicators
            .iter()
            .filter_map(|one| one["counts"][key].as_object())
            .flat_map(|numbers| numbers.values().filter_map(Value::as_u64))
            .sum()
    };
    json!({
        "schema": 1,
        "raddle": env!("CARGO_PKG_VERSION"),
        "mpi": library,
        "job": settings.job.as_ref().map(|(job, _)| job),
        "ranks": size,
        "seconds": seconds,
        "calls": total("calls"),
        "offloaded": total("offloaded"),
        "saved_s": communicators.iter().filter_map(|one| one["counts"]["saved_s"].as_f64()).sum::<f64>(),
        "communicators": communicators,
        "others": others,
        "messages": messages::total(&messages),
    })
}
