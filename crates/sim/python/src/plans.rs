//! Plans that came back from Python, with the network that was built for them: all runs of a plan share one.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use raddle_disk::read_file;
use raddle_experiment::{DiskFiles, ExperimentError, Problem, Resolved, results::ResultsError};
use raddle_text::MOST_TEXT;

use crate::error::Failure;

/// Plans that are kept: a sweep works on a few at once, and networks may be large.
const KEPT: usize = 4;

/// The last plans, the youngest first; their runs ask for them one after the other or at once.
static LAST: Mutex<VecDeque<(String, Arc<Resolved>)>> = Mutex::new(VecDeque::new());

/// Keeps what was resolved for a plan until [`KEPT`] others came.
pub(crate) fn keep(plan: &str, resolved: Resolved) {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    push(&mut last, plan, Arc::new(resolved));
}

fn push(last: &mut VecDeque<(String, Arc<Resolved>)>, plan: &str, resolved: Arc<Resolved>) {
    last.retain(|(text, _)| text != plan);
    last.truncate(KEPT - 1);
    last.push_front((plan.to_owned(), resolved));
}

/// The resolved experiment of a plan.
pub(crate) fn resolved_plan(plan: &str) -> Result<Arc<Resolved>, Failure> {
    // Held while resolving, so that runs that start together do not all build the same network.
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, resolved)) = last.iter().find(|(text, _)| text == plan) {
        return Ok(Arc::clone(resolved));
    }
    let json = parse(plan)?;
    let Some(text) = json["experiment"].as_str() else {
        return Err(Failure::NotAPlan("the plan holds no experiment".to_owned()));
    };
    let resolved = Arc::new(Resolved::new(text, "experiment.toml", &DiskFiles)?);
    push(&mut last, plan, Arc::clone(&resolved));
    Ok(resolved)
}

/// Refuses a run whose files changed since the plan was made: its results would carry the wrong stamp.
pub(crate) fn check_stamp(plan: &str, resolved: &Resolved, index: usize) -> Result<(), Failure> {
    let json = parse(plan)?;
    let planned = json["runs"][index]["stamp"].as_str();
    match resolved.runs.get(index) {
        Some(run) if planned != Some(run.stamp.as_str()) => Err(ResultsError::Changed {
            run: run.name.clone(),
        }
        .into()),
        _ => Ok(()),
    }
}

/// The text of a file that the user named.
pub(crate) fn read_text(path: &str) -> Result<String, Failure> {
    let bytes = read_file(Path::new(path), MOST_TEXT).map_err(|error| {
        let (file, reason) = (path.to_owned(), error.to_string());
        ExperimentError::plain(Problem::Unreadable { file, reason })
    })?;
    // Bytes that are not UTF-8 are left to the parsers, which name their place.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn parse(plan: &str) -> Result<serde_json::Value, Failure> {
    serde_json::from_str(plan).map_err(|error| Failure::NotAPlan(format!("not a plan: {error}")))
}
