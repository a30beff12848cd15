//! `raddle._core`: what the Python package asks of Rust. Conversions only; `python/raddle/_core.pyi` documents it.
//!
//! Values cross as `str`, `int` and JSON. Long calls release the GIL. Errors that are the user's to mend become
//! `raddle.errors.ExperimentError`, a cancelled run `RunCancelled`, a disk that refuses `OSError`.

mod error;
mod fabrics;
mod lab;
mod plans;
mod routes;
mod traces;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pyo3::{exceptions::PyValueError, prelude::*, types::PyBytes};
use raddle_engine::{Progress as Counters, ranks::Ranks};
use raddle_experiment::{
    DiskFiles, FabricInput, FlowsInput, Resolved, experiment_schema as schema, fabric_summary,
    fabric_text, load_fabric, results, traffic_summary, write_traffic,
};
use raddle_transport::cc::SchemeSettings;
use raddle_units::{BitRate, Bytes, Span, UnitError};
use raddle_workload::FlowFormat;

use crate::{error::raise, plans::resolved_plan};

/// Counters of one run, safe to read from another thread while it is under way.
#[pyclass(frozen, module = "raddle._core")]
#[derive(Default)]
struct Progress {
    counters: Arc<Counters>,
    flows_total: AtomicU64,
}

impl Progress {
    /// The counters that a run updates.
    fn counters(&self) -> &Counters {
        &self.counters
    }
}

#[pymethods]
impl Progress {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Simulated time reached, in ps.
    #[getter]
    fn simulated_ps(&self) -> u64 {
        self.counters.simulated_ps()
    }

    /// Completed link traversals so far.
    #[getter]
    fn packet_hops(&self) -> u64 {
        self.counters.packet_hops()
    }

    /// Flows that ended so far.
    #[getter]
    fn flows_done(&self) -> u64 {
        self.counters.flows_done()
    }

    /// Expected flows; 0 while unknown or for open-ended traffic.
    #[getter]
    fn flows_total(&self) -> u64 {
        self.flows_total.load(Ordering::Relaxed)
    }

    /// Ask the run to stop; it ends with `RunCancelled` within about 50 ms.
    fn cancel(&self) {
        self.counters.cancel();
    }
}

/// What the set-up of an experiment is at, safe to read from another thread.
#[pyclass(frozen, module = "raddle._core")]
#[derive(Default)]
struct SetUp {
    step: Mutex<(&'static str, usize)>,
}

#[pymethods]
impl SetUp {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// The step in words, empty before the first, and the hosts that it is about; 0 while they are not counted.
    #[getter]
    fn step(&self) -> (&'static str, usize) {
        *self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Version of the compiled core.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Judge experiment TOML `text` (files are relative to the folder of `path`); JSON plan.
#[pyfunction]
#[pyo3(signature = (text, path, set_up=None))]
fn validate(py: Python<'_>, text: &str, path: &str, set_up: Option<Py<SetUp>>) -> PyResult<String> {
    py.detach(|| {
        let watch = |step, hosts| {
            if let Some(set_up) = &set_up {
                let step_of = &set_up.get().step;
                *step_of.lock().unwrap_or_else(PoisonError::into_inner) = (step, hosts);
            }
        };
        let resolved = Resolved::watched(text, path, &DiskFiles, &watch)?;
        let plan = resolved.to_plan(&DiskFiles).to_string();
        plans::keep(&plan, resolved);
        Ok(plan)
    })
    .map_err(|error| raise(py, error))
}

/// Simulate a part of the plan's runs for `seconds` of processor time in all; JSON list of what the runs will cost, in order.
#[pyfunction]
fn measure(py: Python<'_>, plan_json: &str, seconds: f64) -> PyResult<String> {
    let budget = Duration::try_from_secs_f64(seconds)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    py.detach(|| {
        let estimates = resolved_plan(plan_json)?.measure(budget, &DiskFiles)?;
        Ok(serde_json::to_string(&estimates).unwrap_or_default())
    })
    .map_err(|error| raise(py, error))
}

/// JSON Schema of an experiment file.
#[pyfunction]
fn experiment_schema() -> String {
    schema()
}

/// Simulate run `index` of the plan on up to `threads` threads and write `out_dir`/.runs/NAME/ by one rename; gives
/// `stats.json`.
#[pyfunction]
fn run(
    py: Python<'_>,
    plan_json: &str,
    index: usize,
    out_dir: PathBuf,
    threads: usize,
    progress: &Bound<'_, Progress>,
) -> PyResult<String> {
    let progress = progress.get();
    py.detach(|| {
        let resolved = resolved_plan(plan_json)?;
        let flows = resolved.runs.get(index).and_then(|run| run.flows);
        progress
            .flows_total
            .store(flows.unwrap_or(0), Ordering::Relaxed);
        plans::check_stamp(plan_json, &resolved, index)?;
        let stats = results::run_planned(
            &resolved,
            index,
            &out_dir,
            &DiskFiles,
            threads,
            &progress.counters,
        )?;
        Ok(serde_json::to_string_pretty(&stats).unwrap_or_default())
    })
    .map_err(|error| raise(py, error))
}

/// Simulate run `index` of the plan together with other ranks, of which this is number `rank` of `ranks`. Rank 0 does as [`run`];
/// the others write nothing and give nothing. `exchange` gives each rank its bytes and takes some from each, by rank.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "what Python says by name")]
fn run_in_ranks(
    py: Python<'_>,
    plan_json: &str,
    index: usize,
    out_dir: PathBuf,
    threads: usize,
    progress: &Bound<'_, Progress>,
    rank: usize,
    ranks: usize,
    exchange: Py<PyAny>,
) -> PyResult<Option<String>> {
    let progress = progress.get();
    let mut group = RankGroup {
        rank,
        ranks,
        exchange,
    };
    let checked = py.detach(|| {
        let resolved = resolved_plan(plan_json)?;
        plans::check_stamp(plan_json, &resolved, index)?;
        Ok(resolved)
    });
    let resolved = match checked {
        Ok(resolved) => resolved,
        Err(failure) => {
            let error = raise(py, failure);
            let words = error.value(py).to_string();
            py.detach(|| results::decline(words, &mut group));
            return Err(error);
        }
    };
    py.detach(|| {
        if rank > 0 {
            results::run_following(&resolved, index, &DiskFiles, threads, &mut group)?;
            return Ok(None);
        }
        let flows = resolved.runs.get(index).and_then(|run| run.flows);
        progress
            .flows_total
            .store(flows.unwrap_or(0), Ordering::Relaxed);
        let stats = results::run_leading(
            &resolved,
            index,
            &out_dir,
            &DiskFiles,
            threads,
            &progress.counters,
            &mut group,
        )?;
        Ok(Some(
            serde_json::to_string_pretty(&stats).unwrap_or_default(),
        ))
    })
    .map_err(|error| raise(py, error))
}

/// Ranks that Python reaches.
struct RankGroup {
    rank: usize,
    ranks: usize,
    exchange: Py<PyAny>,
}

impl Ranks for RankGroup {
    fn number(&self) -> usize {
        self.rank
    }

    fn count(&self) -> usize {
        self.ranks
    }

    fn exchange(&mut self, letters: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
        Python::attach(|py| {
            let letters: Vec<_> = letters
                .iter()
                .map(|letter| PyBytes::new(py, letter))
                .collect();
            let taken = self.exchange.call1(py, (letters,))?;
            let taken: Vec<Bound<'_, PyBytes>> = taken.extract(py)?;
            Ok(taken
                .iter()
                .map(|letter| letter.as_bytes().to_vec())
                .collect())
        })
        .map_err(|error: PyErr| error.to_string())
    }
}

/// Simulate the first run of experiment TOML `text` and keep no tables; JSON times of its rounds.
#[pyfunction]
fn round_times(
    py: Python<'_>,
    text: &str,
    path: &str,
    progress: &Bound<'_, Progress>,
) -> PyResult<String> {
    let progress = progress.get();
    py.detach(|| {
        let times = results::round_times(text, path, &DiskFiles, &progress.counters)?;
        Ok(serde_json::to_string(&times).unwrap_or_default())
    })
    .map_err(|error| raise(py, error))
}

/// Join the parts whose stamps are in the plan into the results folder, in plan order.
#[pyfunction]
fn merge(py: Python<'_>, plan_json: &str, out_dir: PathBuf) -> PyResult<()> {
    py.detach(|| {
        Ok(results::merge(
            resolved_plan(plan_json)?.as_ref(),
            &out_dir,
        )?)
    })
    .map_err(|error| raise(py, error))
}

/// Map text in `format` ("toml" or "hpcc-ns3") from a fabric TOML or a whole experiment.
#[pyfunction]
fn fabric_build(py: Python<'_>, spec_text: &str, path: &str, format: &str) -> PyResult<String> {
    let hpcc_ns3 = match format {
        "toml" => false,
        "hpcc-ns3" => true,
        other => return Err(unknown_format(other, "toml, hpcc-ns3")),
    };
    py.detach(|| {
        let fabric = load_fabric(spec_text, path, FabricInput::Auto, &DiskFiles)?;
        Ok(fabric_text(&fabric, hpcc_ns3))
    })
    .map_err(|error| raise(py, error))
}

/// Check the map `text` (`format`: "auto", "toml", "experiment", "hpcc-ns3", "ibnetdiscover", "ibsim"); JSON description, with `graph` also all nodes.
#[pyfunction]
fn fabric_check(
    py: Python<'_>,
    text: &str,
    path: &str,
    format: &str,
    graph: bool,
) -> PyResult<String> {
    let input = fabrics::input(format)?;
    py.detach(|| {
        let fabric = load_fabric(text, path, input, &DiskFiles)?;
        Ok(fabric_summary(&fabric, graph).to_string())
    })
    .map_err(|error| raise(py, error))
}

/// Write the flows of `path` to `out` (by rename); number of flows written.
#[pyfunction]
fn traffic_write(
    py: Python<'_>,
    path: &str,
    format: &str,
    seed: u64,
    isolated: bool,
    out: PathBuf,
    out_format: &str,
) -> PyResult<u64> {
    let input = flows_input(format)?;
    let written = flow_format(out_format)
        .ok_or_else(|| unknown_format(out_format, "hpcc-ns3, csv, parquet"))?;
    py.detach(|| {
        let out: &Path = &out;
        Ok(write_traffic(
            path, input, seed, isolated, &DiskFiles, out, written,
        )?)
    })
    .map_err(|error| raise(py, error))
}

/// JSON: flows, bytes, first and last start, and the same per class.
#[pyfunction]
fn traffic_describe(py: Python<'_>, path: &str, format: &str, seed: u64) -> PyResult<String> {
    let input = flows_input(format)?;
    py.detach(|| Ok(traffic_summary(path, input, seed, &DiskFiles)?.to_string()))
        .map_err(|error| raise(py, error))
}

fn flows_input(format: &str) -> PyResult<FlowsInput> {
    match format {
        "auto" => Ok(FlowsInput::Auto),
        "experiment" => Ok(FlowsInput::Experiment),
        other => flow_format(other)
            .map(FlowsInput::File)
            .ok_or_else(|| unknown_format(other, "auto, experiment, hpcc-ns3, csv, parquet")),
    }
}

fn flow_format(name: &str) -> Option<FlowFormat> {
    match name {
        "hpcc-ns3" => Some(FlowFormat::HpccNs3),
        "csv" => Some(FlowFormat::Csv),
        "parquet" => Some(FlowFormat::Parquet),
        _ => None,
    }
}

fn unknown_format(name: &str, known: &str) -> PyErr {
    PyValueError::new_err(format!("unknown format `{name}`; known: {known}"))
}

/// The schemes of congestion control: name and one line about each, in the order in which reports show them.
#[pyfunction]
fn schemes() -> Vec<(&'static str, &'static str)> {
    let all = SchemeSettings::schemes().iter();
    all.map(|scheme| (scheme.name, scheme.about)).collect()
}

/// A quantity with its unit in base units: a "time" in ps, a "size" in bytes, a "rate" in bit/s.
#[pyfunction]
fn parse_quantity(kind: &str, text: &str) -> PyResult<u64> {
    let parsed = match kind {
        "time" => text.parse().map(|Span(value)| value),
        "size" => text.parse().map(|Bytes(value)| value),
        "rate" => text.parse().map(|BitRate(value)| value),
        other => return Err(unknown_format(other, "time, size, rate")),
    };
    parsed.map_err(|error: UnitError| PyValueError::new_err(error.to_string()))
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Progress>()?;
    module.add_class::<SetUp>()?;
    module.add_class::<routes::RouteProgress>()?;
    module.add_function(wrap_pyfunction!(routes::route_schema, module)?)?;
    module.add_function(wrap_pyfunction!(routes::route_check, module)?)?;
    module.add_function(wrap_pyfunction!(routes::route, module)?)?;
    module.add_function(wrap_pyfunction!(routes::mgid, module)?)?;
    module.add_function(wrap_pyfunction!(routes::capacity, module)?)?;
    module.add_function(wrap_pyfunction!(routes::capacity_file, module)?)?;
    module.add_function(wrap_pyfunction!(routes::place, module)?)?;
    module.add_function(wrap_pyfunction!(lab::settings, module)?)?;
    module.add_function(wrap_pyfunction!(lab::job_key, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(schemes, module)?)?;
    module.add_function(wrap_pyfunction!(parse_quantity, module)?)?;
    module.add_function(wrap_pyfunction!(validate, module)?)?;
    module.add_function(wrap_pyfunction!(experiment_schema, module)?)?;
    module.add_function(wrap_pyfunction!(measure, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(run_in_ranks, module)?)?;
    module.add_function(wrap_pyfunction!(round_times, module)?)?;
    module.add_function(wrap_pyfunction!(merge, module)?)?;
    module.add_function(wrap_pyfunction!(fabric_build, module)?)?;
    module.add_function(wrap_pyfunction!(fabric_check, module)?)?;
    module.add_function(wrap_pyfunction!(fabrics::fabric_import, module)?)?;
    module.add_function(wrap_pyfunction!(fabrics::fabric_export, module)?)?;
    module.add_class::<traces::Replay>()?;
    module.add_class::<traces::ReplayPlan>()?;
    module.add_class::<traces::ReplaySchedule>()?;
    module.add_function(wrap_pyfunction!(traces::assemble_trace, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_describe, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_import, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_import_chakra, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_training, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_export, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_generate, module)?)?;
    module.add_function(wrap_pyfunction!(traces::replay_costs, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_fabric, module)?)?;
    module.add_function(wrap_pyfunction!(traffic_write, module)?)?;
    module.add_function(wrap_pyfunction!(traffic_describe, module)?)
}
