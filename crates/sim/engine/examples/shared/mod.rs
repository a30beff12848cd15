//! Requests of the scripts in `experiments/`: cells on a machine, simulated in parallel, each by itself.
//!
//! Every line of standard input is a JSON object `{"machine": {...}, "cells": [{...}, ...]}`; the answer is one line, a JSON
//! list with what was found for each cell, in their order.

use std::{
    error::Error,
    io::{self, BufRead, Write},
    process::ExitCode,
    thread,
};

use serde::{Serialize, de::DeserializeOwned};

#[derive(serde::Deserialize)]
struct Request<M, C> {
    machine: M,
    cells: Vec<C>,
}

/// What `run` finds for each cell, in their order.
fn found<M: Sync, C: Sync, F: Send, E: Send>(
    request: &Request<M, C>,
    run: &(impl Fn(&M, &C) -> Result<F, E> + Sync),
) -> Result<Vec<F>, E> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let share = |worker: usize| {
        let cells = request.cells.iter().enumerate();
        cells
            .skip(worker)
            .step_by(workers)
            .map(|(index, cell)| Ok((index, run(&request.machine, cell)?)))
            .collect::<Result<Vec<_>, E>>()
    };
    let shares = thread::scope(|scope| {
        let share = &share;
        let threads: Vec<_> = (0..workers)
            .map(|worker| scope.spawn(move || share(worker)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a simulation does not panic"))
            .collect::<Result<Vec<_>, E>>()
    })?;
    let mut done: Vec<_> = shares.into_iter().flatten().collect();
    done.sort_unstable_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, found)| found).collect())
}

fn answer_all<M, C, F, E>(
    run: &(impl Fn(&M, &C) -> Result<F, E> + Sync),
) -> Result<(), Box<dyn Error>>
where
    M: DeserializeOwned + Sync,
    C: DeserializeOwned + Sync,
    F: Serialize + Send,
    E: Error + Send + 'static,
{
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let request: Request<M, C> = serde_json::from_str(&line?)?;
        serde_json::to_writer(&mut out, &found(&request, run)?)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

/// Answers all requests; `run` simulates one cell.
pub(crate) fn main<M, C, F, E>(run: impl Fn(&M, &C) -> Result<F, E> + Sync) -> ExitCode
where
    M: DeserializeOwned + Sync,
    C: DeserializeOwned + Sync,
    F: Serialize + Send,
    E: Error + Send + 'static,
{
    match answer_all(&run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}
