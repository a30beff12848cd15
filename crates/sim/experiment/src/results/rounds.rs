//! Times of rounds alone, for runs with so many messages that a table of them would be in the way.

use raddle_engine::{Discard, Progress, simulate};
use raddle_units::Span;
use serde::Serialize;

use super::ResultsError;
use crate::{Files, Resolved};

/// How the rounds of an experiment's first run went.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RoundTimes {
    /// When the workload's first process began each round, in ps; empty where the workload has no rounds.
    pub starts_ps: Vec<u64>,
    /// The whole workload came to its end.
    pub finished: bool,
    /// When the last event was.
    pub end_ps: u64,
    /// Packets that reached hosts outside their group, late ones included.
    pub foreign_copies: u64,
    /// Second copies that members dropped.
    pub second_copies: u64,
    /// Packets that were lost.
    pub drops: u64,
    /// Times that a sender waited in vain for an acknowledgement.
    pub timeouts: u64,
    /// Members that never got a message.
    pub members_missed: u64,
}

/// Simulates the first run of an experiment; `text` is its TOML, files are relative to the folder of `path`.
///
/// # Errors
/// [`ResultsError`]: the experiment, or the run was cancelled through `progress`.
pub fn round_times(
    text: &str,
    path: &str,
    files: &dyn Files,
    progress: &Progress,
) -> Result<RoundTimes, ResultsError> {
    let resolved = Resolved::new(text, path, files)?;
    let run = &resolved.runs[0];
    let mut workload = resolved.workload(run, files)?;
    let mut config = resolved.run_config(run);
    config.sample_interval = Span::ZERO;
    let summary = simulate(
        &resolved.network,
        &config,
        workload.as_mut(),
        &mut Discard,
        progress,
    )?;
    if summary.cancelled {
        let run = run.name.clone();
        return Err(ResultsError::Cancelled { run });
    }
    Ok(RoundTimes {
        starts_ps: workload.round_starts().iter().map(|time| time.0).collect(),
        finished: workload.finished(),
        end_ps: summary.end_ps,
        foreign_copies: summary.foreign_copies + summary.late_copies,
        second_copies: summary.second_copies,
        drops: summary.drops,
        timeouts: summary.timeouts,
        members_missed: summary.members_missed,
    })
}
