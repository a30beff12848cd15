//! Traces of MPI programs and their replay.

use std::path::PathBuf;

use pyo3::prelude::*;
use raddle_experiment::{DiskFiles, FabricInput, load_fabric};
use raddle_replay::{
    Algorithms, Carried, Generate, Noise, Plan, ReplayCosts, ReplayError, ReplaySettings,
    Scheduled, Session, Training, expand, trace_summary,
};
use raddle_schedule::{Join, Settings, UnknownVariant};
use raddle_tables::trace::{TraceFileError, assemble_folder, read_file, write_file};
use raddle_trace::{Trace, chakra, goal};

use crate::{
    Progress,
    error::{Failure, raise},
    plans::read_text,
};

impl From<TraceFileError> for Failure {
    fn from(error: TraceFileError) -> Self {
        match error {
            TraceFileError::Disk(error) => {
                Self::Disk(error.source, error.path.display().to_string())
            }
            other => Self::Trace(other.to_string()),
        }
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Cancelled => Self::Cancelled,
            other => Self::Trace(other.to_string()),
        }
    }
}

/// What is wrong with something that the user named.
fn wrong(error: impl std::fmt::Display) -> Failure {
    Failure::Trace(error.to_string())
}

/// Join the recordings `rank-N.rec` of `folder` into the trace `out`, with the TOML `fabric` as its own ("": none), and the processors
/// that its ranks shared; JSON description.
#[pyfunction]
#[pyo3(signature = (folder, out, fabric = "", processors = None))]
pub(crate) fn assemble_trace(
    py: Python<'_>,
    folder: PathBuf,
    out: PathBuf,
    fabric: &str,
    processors: Option<u32>,
) -> PyResult<String> {
    py.detach(|| {
        let mut trace = assemble_folder(&folder)?;
        trace.processors = processors;
        trace.fabric = checked_fabric(fabric)?;
        keep(&trace, &out)
    })
    .map_err(|error| raise(py, error))
}

/// JSON description of a trace; with `matrix` also who sends how much to whom.
#[pyfunction]
pub(crate) fn trace_describe(py: Python<'_>, path: PathBuf, matrix: bool) -> PyResult<String> {
    py.detach(|| summary(&read_file(&path)?, matrix))
        .map_err(|error| raise(py, error))
}

/// The map that a trace is replayed on when no other is named, as TOML; empty: it has none.
#[pyfunction]
pub(crate) fn trace_fabric(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    py.detach(|| Ok(read_file(&path)?.fabric))
        .map_err(|error: Failure| raise(py, error))
}

/// Read the GOAL schedule `path` into the trace `out`, with the TOML `fabric` as its own; JSON description.
#[pyfunction]
pub(crate) fn trace_import(
    py: Python<'_>,
    path: &str,
    out: PathBuf,
    fabric: &str,
) -> PyResult<String> {
    py.detach(|| {
        let read = goal::read(&read_text(path)?);
        let mut trace = read.map_err(|error| wrong(format!("{path}: {error}")))?;
        trace.fabric = checked_fabric(fabric)?;
        path.clone_into(&mut trace.program);
        keep(&trace, &out).map_err(|failure| match failure {
            Failure::Trace(problem) => Failure::Trace(format!("{path}: {problem}")),
            other => other,
        })
    })
    .map_err(|error| raise(py, error))
}

/// Read the Chakra files of all ranks, in order, into the trace `out`, with the TOML `fabric` as its own; JSON description.
#[pyfunction]
pub(crate) fn trace_import_chakra(
    py: Python<'_>,
    paths: Vec<String>,
    out: PathBuf,
    fabric: &str,
) -> PyResult<String> {
    py.detach(|| {
        let files = paths.iter().map(|path| {
            let bytes = std::fs::read(path);
            bytes.map_err(|error| Failure::Disk(error, path.clone()))
        });
        let files: Vec<Vec<u8>> = files.collect::<Result<_, _>>()?;
        let named = paths.iter().zip(&files);
        let named: Vec<chakra::File<'_>> = named
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
            .collect();
        let mut trace = chakra::read(&named).map_err(wrong)?;
        trace.fabric = checked_fabric(fabric)?;
        trace.program = paths.first().cloned().unwrap_or_default();
        keep(&trace, &out)
    })
    .map_err(|error| raise(py, error))
}

/// A trace as a GOAL schedule, its collectives as messages.
#[pyfunction]
pub(crate) fn trace_export(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    py.detach(|| {
        let expanded = expand(
            &read_file(&path)?,
            &Algorithms::default(),
            &Carried::default(),
        )
        .map_err(wrong)?;
        goal::write(&expanded.trace).map_err(wrong)
    })
    .map_err(|error| raise(py, error))
}

/// Make a trace of a known kind of program and write it to `out`; JSON description.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn trace_generate(
    py: Python<'_>,
    application: &str,
    sizes: &str,
    ranks: u32,
    per_host: u32,
    exchanges: u32,
    gap: &str,
    seed: u64,
    fabric: &str,
    out: PathBuf,
) -> PyResult<String> {
    py.detach(|| {
        let generate = Generate {
            application: application.parse().map_err(wrong)?,
            sizes: sizes.parse().map_err(wrong)?,
            ranks,
            per_host,
            exchanges,
            gap: gap.parse().map_err(wrong)?,
            seed,
        };
        let mut trace = generate.trace().map_err(wrong)?;
        trace.fabric = checked_fabric(fabric)?;
        keep(&trace, &out)
    })
    .map_err(|error| raise(py, error))
}

/// Make a trace of steps of training, as the TOML `text` of the file `name` says, and write it to `out`; JSON description.
#[pyfunction]
pub(crate) fn trace_training(
    py: Python<'_>,
    text: &str,
    name: &str,
    fabric: &str,
    out: PathBuf,
) -> PyResult<String> {
    py.detach(|| {
        let training = Training::read(text, name).map_err(wrong)?;
        let trace = training.trace();
        let mut trace = trace.map_err(|error| wrong(format!("{name}: {error}")))?;
        trace.fabric = checked_fabric(fabric)?;
        keep(&trace, &out)
    })
    .map_err(|error| raise(py, error))
}

/// The costs of hosts that a replay uses, as JSON: those of the TOML `text`, and the usual ones where it has none.
#[pyfunction]
#[pyo3(signature = (text = "", path = "costs"))]
pub(crate) fn replay_costs(py: Python<'_>, text: &str, path: &str) -> PyResult<String> {
    let costs = ReplayCosts::read(text, path).map_err(|error| raise(py, wrong(error)))?;
    Ok(serde_json::to_string(&costs).unwrap_or_default())
}

fn checked_fabric(text: &str) -> Result<String, Failure> {
    if !text.is_empty() {
        load_fabric(text, "fabric", FabricInput::Auto, &DiskFiles)?;
    }
    Ok(text.to_owned())
}

fn keep(trace: &Trace, out: &std::path::Path) -> Result<String, Failure> {
    let told = summary(trace, false)?;
    write_file(trace, out)?;
    Ok(told)
}

fn summary(trace: &Trace, matrix: bool) -> Result<String, Failure> {
    let summary = trace_summary(trace, matrix).map_err(wrong)?;
    Ok(summary.to_string())
}

/// A trace on a fabric, to be replayed with several schedules and seeds.
#[pyclass(frozen, module = "raddle._core")]
pub(crate) struct Replay {
    session: Session,
}

/// The order and the joined messages of all supersteps.
#[pyclass(frozen, module = "raddle._core")]
pub(crate) struct ReplayPlan {
    plan: Option<Plan>,
}

/// A trace with its messages as a plan has them.
#[pyclass(frozen, module = "raddle._core")]
pub(crate) struct ReplaySchedule {
    scheduled: Scheduled,
}

#[pymethods]
impl Replay {
    /// `fabric` is the path of a map; None: the trace's own. `costs` is JSON as `replay_costs()` gives it,
    /// `algorithms` has choices such as "allreduce=ring".
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        fabric: Option<&str>,
        placement: &str,
        scheme: &str,
        sockets: u32,
        costs: &str,
        gap_share: f64,
        start_skew: &str,
        processors: Option<u32>,
        algorithms: Vec<String>,
    ) -> PyResult<Self> {
        py.detach(|| {
            let mut chosen = Algorithms::default();
            for choice in &algorithms {
                let found = chosen.choose(choice);
                found.map_err(|error| wrong(format!("--algorithm: {error}")))?;
            }
            let trace = read_file(&path)?;
            let (text, name) = match fabric {
                Some(file) => (read_text(file)?, file.to_owned()),
                None => (trace.fabric.clone(), path.display().to_string()),
            };
            if text.is_empty() {
                return Err(wrong(format!(
                    "{name}: the trace has no fabric of its own; name one with --fabric"
                )));
            }
            let fabric = load_fabric(&text, &name, FabricInput::Auto, &DiskFiles)?;
            let settings = ReplaySettings {
                scheme: scheme.to_owned(),
                costs: serde_json::from_str(costs)
                    .map_err(|error| wrong(format!("costs: {error}")))?,
                sockets,
                processors,
                algorithms: chosen,
                noise: Noise {
                    gap_share,
                    start_skew: start_skew.parse().map_err(wrong)?,
                },
                seed: 0,
            };
            let placement = placement.parse().map_err(wrong)?;
            let session = Session::new(trace, fabric, placement, settings)?;
            Ok(Self { session })
        })
        .map_err(|error| raise(py, error))
    }

    /// The same under another scheme; plans and schedules of one are good for the other.
    fn under(&self, py: Python<'_>, scheme: &str) -> PyResult<Self> {
        let session = self.session.under(scheme);
        let session = session.map_err(|error| raise(py, error.into()))?;
        Ok(Self { session })
    }

    /// Schedule all supersteps ("none", "reorder", "aggregate", "both", "published", "library"), joining "rank-to-rank" or
    /// "rank-to-node" (None: what the schedule itself does) with so many leaders of a node. This is what scheduling costs.
    #[pyo3(signature = (name, scope, leaders))]
    fn plan(
        &self,
        py: Python<'_>,
        name: &str,
        scope: Option<&str>,
        leaders: u32,
    ) -> PyResult<ReplayPlan> {
        py.detach(|| {
            let named = Settings::named(name).map_err(|error: UnknownVariant| wrong(error))?;
            let settings = Settings {
                join: Join {
                    scope: scope.map_or(Ok(named.join.scope), raddle_replay::scope)?,
                    leaders,
                    ..named.join
                },
                ..named
            };
            let plan = self.session.plan(&settings)?;
            Ok(ReplayPlan { plan })
        })
        .map_err(|error| raise(py, error))
    }

    /// The program with the messages of a plan.
    fn scheduled(&self, py: Python<'_>, plan: &Bound<'_, ReplayPlan>) -> ReplaySchedule {
        let plan = plan.get();
        let scheduled = py.detach(|| self.session.scheduled(plan.plan.as_ref()));
        ReplaySchedule { scheduled }
    }

    /// Replay it with the noise of `seed` on up to `threads` threads; JSON times.
    fn run(
        &self,
        py: Python<'_>,
        schedule: &Bound<'_, ReplaySchedule>,
        seed: u64,
        threads: usize,
        progress: &Bound<'_, Progress>,
    ) -> PyResult<String> {
        let (scheduled, progress) = (&schedule.get().scheduled, progress.get());
        py.detach(|| {
            let replayed = self
                .session
                .run(scheduled, seed, threads, progress.counters())?;
            Ok(serde_json::to_string(&replayed.time).unwrap_or_default())
        })
        .map_err(|error| raise(py, error))
    }

    /// Replay it with the noise of `seed` and write the trace `out`: the same calls with the times of this run.
    fn retell(
        &self,
        py: Python<'_>,
        schedule: &Bound<'_, ReplaySchedule>,
        seed: u64,
        threads: usize,
        progress: &Bound<'_, Progress>,
        out: PathBuf,
    ) -> PyResult<()> {
        let (scheduled, progress) = (&schedule.get().scheduled, progress.get());
        py.detach(|| {
            let replayed = self
                .session
                .run(scheduled, seed, threads, progress.counters())?;
            Ok(write_file(&self.session.with_times(&replayed.calls), &out)?)
        })
        .map_err(|error: Failure| raise(py, error))
    }

    /// Why its runs keep to one thread however many they may use, if they do.
    fn one_thread(&self) -> Option<&'static str> {
        self.session.one_thread()
    }

    /// The algorithm of each kind of collective that has several, as JSON.
    fn algorithms(&self) -> String {
        serde_json::to_string(self.session.algorithms()).unwrap_or_default()
    }

    /// Hosts that have a rank, hosts of the map, and the most ranks of a host.
    fn occupied(&self) -> (usize, usize, usize) {
        let found = self.session.occupied();
        (found.hosts, found.map_hosts, found.most_ranks)
    }

    /// How long the program took when it was recorded, and how much of the mean over ranks was in MPI: (s, s).
    fn recorded(&self) -> (f64, f64) {
        let times = self.session.recorded();
        (times.duration_ns as f64 / 1e9, times.mpi_ns / 1e9)
    }
}

#[pymethods]
impl ReplaySchedule {
    /// Messages of the program between hosts, without those of collectives.
    #[getter]
    fn messages(&self) -> u64 {
        self.scheduled.messages
    }

    /// What is issued instead: messages and joined messages.
    #[getter]
    fn parcels(&self) -> u64 {
        self.scheduled.parcels
    }

    /// Joined messages among them.
    #[getter]
    fn joined(&self) -> u64 {
        self.scheduled.joined
    }
}
