//! Times of Allreduces on a machine, for the scripts in `experiments/`.
//!
//! Every line of standard input is a JSON object `{"machine": {...}, "cells": [{...}, ...]}` (`Machine` and `Allreduce` of
//! `raddle_sim::collective`); the answer is one line, a JSON list of `{"mean_us": ..., "max_us": ...}` in the order of cells.

use std::{
    error::Error,
    io::{self, BufRead, Write},
    process::ExitCode,
    thread,
};

use raddle_sim::collective::{Allreduce, CollectiveError, CollectiveTime, Machine};

#[derive(serde::Deserialize)]
struct Request {
    machine: Machine,
    cells: Vec<Allreduce>,
}

/// The times in the order of cells; cells are simulated in parallel, each by itself.
fn times(request: &Request) -> Result<Vec<CollectiveTime>, CollectiveError> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let share = |worker: usize| {
        let mine = request
            .cells
            .iter()
            .enumerate()
            .skip(worker)
            .step_by(workers);
        mine.map(|(index, cell)| Ok((index, cell.run(&request.machine)?)))
            .collect::<Result<Vec<_>, CollectiveError>>()
    };
    let mut done = thread::scope(|scope| {
        let share = &share;
        let threads: Vec<_> = (0..workers)
            .map(|worker| scope.spawn(move || share(worker)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a simulation does not panic"))
            .collect::<Result<Vec<_>, CollectiveError>>()
    })?
    .concat();
    done.sort_unstable_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, time)| time).collect())
}

fn answer_all() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let request: Request = serde_json::from_str(&line?)?;
        serde_json::to_writer(&mut out, &times(&request)?)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match answer_all() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}
