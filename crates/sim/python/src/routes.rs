//! Route files, group numbers and job placement.

use std::{path::PathBuf, sync::Arc};

use pyo3::prelude::*;
use raddle_experiment::DiskFiles;
use raddle_routes::{
    CapacityRequest, Progress, Resolved, capacity_of_file, describe, number_groups, place_jobs,
    route_schema as schema,
};
use raddle_text::check;

use crate::error::{Failure, raise};

/// How far `route` is, safe to read from another thread while it is under way.
#[pyclass(frozen, module = "raddle._core")]
#[derive(Default)]
pub(crate) struct RouteProgress {
    progress: Arc<Progress>,
}

#[pymethods]
impl RouteProgress {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// The engine at work, or words.
    #[getter]
    fn phase(&self) -> String {
        self.progress.phase()
    }

    /// Engines that are done.
    #[getter]
    fn engines_done(&self) -> usize {
        self.progress.engines_done()
    }

    /// Ask the run to stop after the engine at work; it ends with `RunCancelled`.
    fn cancel(&self) {
        self.progress.cancel();
    }
}

/// JSON Schema of a route file.
#[pyfunction]
pub(crate) fn route_schema() -> String {
    schema()
}

/// Judge route TOML `text` (files are relative to the folder of `path`); JSON description.
#[pyfunction]
pub(crate) fn route_check(py: Python<'_>, text: &str, path: &str) -> PyResult<String> {
    py.detach(|| {
        let resolved = Resolved::new(text, path, &DiskFiles)?;
        Ok::<_, Failure>(describe(&resolved).to_string())
    })
    .map_err(|error| raise(py, error))
}

/// Route with all engines and write `out_dir`; gives `summary.json`.
#[pyfunction]
pub(crate) fn route(
    py: Python<'_>,
    text: &str,
    path: &str,
    out_dir: PathBuf,
    progress: &Bound<'_, RouteProgress>,
) -> PyResult<String> {
    let progress = progress.get();
    py.detach(|| {
        let resolved = Resolved::new(text, path, &DiskFiles)?;
        let summary = raddle_routes::run(&resolved, &out_dir, &progress.progress)?;
        Ok::<_, Failure>(summary.to_string())
    })
    .map_err(|error| raise(py, error))
}

/// MGIDs of the groups of route TOML `text`; JSON with a row per group.
#[pyfunction]
pub(crate) fn mgid(py: Python<'_>, text: &str, path: &str) -> PyResult<String> {
    py.detach(|| Ok::<_, Failure>(number_groups(text, path, &DiskFiles)?.to_string()))
        .map_err(|error| raise(py, error))
}

/// Groups that table entries carry, for groups by number or grid; `request` and answer are JSON.
#[pyfunction]
pub(crate) fn capacity(py: Python<'_>, request: &str) -> PyResult<String> {
    let answer = || {
        let refused = |error: &dyn std::fmt::Display| Failure::NotAPlan(error.to_string());
        let value = serde_json::from_str(request).map_err(|error| refused(&error))?;
        check::<CapacityRequest>(&value).map_err(|error| refused(&error))?;
        let request = serde_json::from_value(value).map_err(|error| refused(&error))?;
        let answer = raddle_routes::capacity(&request);
        answer
            .map(|answer| answer.to_string())
            .map_err(|error| refused(&error))
    };
    py.detach(answer).map_err(|error| raise(py, error))
}

/// The same for the groups of route TOML `text`.
#[pyfunction]
pub(crate) fn capacity_file(py: Python<'_>, text: &str, path: &str) -> PyResult<String> {
    py.detach(|| Ok::<_, Failure>(capacity_of_file(text, path, &DiskFiles)?.to_string()))
        .map_err(|error| raise(py, error))
}

/// Places the jobs of job TOML `text` by the seven rules; JSON with a row per job.
#[pyfunction]
pub(crate) fn place(
    py: Python<'_>,
    text: &str,
    path: &str,
    backfill: bool,
    widen: bool,
) -> PyResult<String> {
    py.detach(|| Ok::<_, Failure>(place_jobs(text, path, &DiskFiles, backfill, widen)?.to_string()))
        .map_err(|error| raise(py, error))
}
