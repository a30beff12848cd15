//! From Rust's errors to the Python package's.

use pyo3::{
    exceptions::{PyOSError, PyRuntimeError},
    prelude::*,
    types::PyString,
};
use raddle_experiment::{ExperimentError, results::ResultsError};
use raddle_routes::PlanError;

/// What a call may fail with.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user's files are wrong.
    Experiment(ExperimentError),
    /// A run or its results.
    Results(ResultsError),
    /// Routing.
    Plan(PlanError),
    /// A file that cannot be opened.
    Disk(std::io::Error, String),
    /// A trace, or what it shall be replayed with.
    Trace(String),
    /// Someone asked for the end.
    Cancelled,
    /// Text that did not come from this package.
    NotAPlan(String),
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Self {
        Self::Experiment(error)
    }
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        Self::Results(error)
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

/// The Python exception for a failure.
pub(crate) fn raise(py: Python<'_>, failure: Failure) -> PyErr {
    match failure {
        Failure::Experiment(error) => ours(py, "ExperimentError", &error.to_string()),
        Failure::Plan(error) => match error {
            PlanError::Input(error) => ours(py, "ExperimentError", &error.to_string()),
            PlanError::Disk(error) => system(&error.source, error.path.display().to_string()),
            PlanError::Cancelled => ours(py, "RunCancelled", &error.to_string()),
            other => ours(py, "RunFailed", &other.to_string()),
        },
        Failure::Disk(error, path) => system(&error, path),
        Failure::Trace(message) => ours(py, "TraceError", &message),
        Failure::Cancelled => ours(py, "RunCancelled", "cancelled"),
        Failure::NotAPlan(message) => ours(py, "RaddleError", &message),
        Failure::Results(error) => match error {
            ResultsError::Experiment(_)
            | ResultsError::Setup(_)
            | ResultsError::Traffic { .. }
            | ResultsError::Changed { .. } => ours(py, "ExperimentError", &error.to_string()),
            ResultsError::Cancelled { .. } => ours(py, "RunCancelled", &error.to_string()),
            ResultsError::Damaged { .. } => ours(py, "ResultsError", &error.to_string()),
            ResultsError::Disk { source, path, .. } => system(&source, path.display().to_string()),
            other => ours(py, "RunFailed", &other.to_string()),
        },
    }
}

/// An `OSError` of the right kind (`PermissionError`, ...): Python chooses it by the number.
fn system(error: &std::io::Error, path: String) -> PyErr {
    let path = final_name(&path);
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let text = text
                .split(" (os error")
                .next()
                .unwrap_or_default()
                .to_owned();
            PyOSError::new_err((number, text, path))
        }
        None => PyOSError::new_err(format!("{path}: {error}")),
    }
}

/// A path as its reader knows it: what is being written is called `.NAME.PROCESS.tmp` until it is whole.
fn final_name(path: &str) -> String {
    let finished = |part: &str| {
        let open = part.strip_prefix('.')?.strip_suffix(".tmp")?;
        let (name, process) = open.rsplit_once('.')?;
        (process.parse::<u32>().is_ok()).then(|| name.to_owned())
    };
    let parts = path
        .split('/')
        .map(|part| finished(part).unwrap_or_else(|| part.to_owned()));
    parts.collect::<Vec<_>>().join("/")
}

/// An exception of `raddle.errors`.
fn ours(py: Python<'_>, name: &str, message: &str) -> PyErr {
    let made = py
        .import("raddle.errors")
        .and_then(|module| module.getattr(name))
        .and_then(|class| class.call1((PyString::new(py, message),)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(_) => PyRuntimeError::new_err(message.to_owned()),
    }
}
