//! Results on disk: one folder per run while an experiment is under way, joined to one file per table at the end.
//!
//! - `tables`: the tables, their columns and units.
//! - `record`: the [`raddle_engine::Recorder`] that fills the tables of a run; `port_queues`: the one of single ports.
//! - `run`: a run from plan to folder; a folder has its final name only when it is whole.
//! - `rounds`: a run of which only the times of rounds are kept.
//! - `merge`: the parts of all runs, joined in the order of the plan.
//!
//! The same runs give the same bytes: no file holds a time, a path or the name of the machine.

mod merge;
mod port_queues;
mod record;
mod rounds;
mod run;
mod tables;

use raddle_units::many;
use std::path::{Path, PathBuf};

pub use merge::merge;
pub use record::RunRecorder;
pub use rounds::{RoundTimes, round_times};
pub use run::{
    MulticastStats, RunStats, decline, part_folder, run_following, run_leading, run_planned,
};

use raddle_disk::DiskError;

use crate::ExperimentError;
use raddle_engine::SetupError;

/// Why results are not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// The system refused: disk full, no permission, a file in the way.
    #[error("cannot {action} {path}: {source}")]
    Disk {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A part of earlier results is damaged.
    #[error("{path} is damaged ({reason}); delete it and run the experiment again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        reason: String,
    },
    /// The experiment, or a file that it names, is wrong.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The run cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The run was asked to stop.
    #[error("the run {run} was stopped before its end")]
    Cancelled {
        /// Name of the run.
        run: String,
    },
    /// A flow file broke while it was read.
    #[error("the traffic of {run} ended early: {reason}")]
    Traffic {
        /// Name of the run.
        run: String,
        /// What is wrong.
        reason: String,
    },
    /// There is no such run.
    #[error("the experiment has {}: there is no run {index}", many(*.runs, "run"))]
    NoSuchRun {
        /// Runs of the experiment.
        runs: usize,
        /// Index that was asked for, from 0.
        index: usize,
    },
    /// A rank of a run that several share is not ready.
    #[error("rank {rank}: {problem}")]
    Ranks {
        /// Which one, from 0.
        rank: usize,
        /// Why.
        problem: String,
    },
    /// A file that decides the outcome changed after the plan was made.
    #[error("a file of the experiment has changed since it was checked: start the run {run} again")]
    Changed {
        /// Name of the run.
        run: String,
    },
}

impl ResultsError {
    pub(crate) fn disk(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let error = DiskError::at(action, path);
        move |source| error(source).into()
    }
}

impl From<DiskError> for ResultsError {
    fn from(error: DiskError) -> Self {
        let DiskError {
            action,
            path,
            source,
        } = error;
        Self::Disk {
            action,
            path,
            source,
        }
    }
}

#[cfg(test)]
mod tests;
