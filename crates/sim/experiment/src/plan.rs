//! A resolved experiment as JSON: what will run, with which parameters.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use raddle_text::MOST_TEXT;
use raddle_workload::TrafficSource;
use serde::Serialize;
use serde_json::json;

use super::{
    estimate::network_bytes,
    fields::{RecordTable, ScoreTable, SimulationTable},
    job_tables::{HostsTable, JobTable, MulticastTable, OffloadTable, ProgramSource, SetupTable},
    rails::RailsTable,
    resolved::{Resolved, SchemeRun},
    switch::SwitchTable,
};
use raddle_text::Files;

/// Version of the plan's layout.
const PLAN_SCHEMA: u32 = 1;

/// The order in which a resolved experiment is written.
#[derive(Serialize)]
struct ResolvedFile<'a> {
    schema: u32,
    name: &'a str,
    fabric: raddle_fabric::FabricSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    traffic: Option<TrafficSource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<HostsTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offload: Option<&'a OffloadTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    multicast: Option<&'a MulticastTable>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    job: Vec<JobTable>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    setup: &'a [SetupTable],
    simulation: SimulationTable,
    record: &'a RecordTable,
    score: &'a ScoreTable,
    #[serde(skip_serializing_if = "SwitchTable::is_empty")]
    switch: &'a SwitchTable,
    #[serde(skip_serializing_if = "Option::is_none")]
    rails: Option<&'a RailsTable>,
    schemes: IndexMap<&'a str, Parameters>,
}

/// Parameters of a scheme.
#[derive(Serialize)]
#[serde(untagged)]
enum Parameters {
    /// All of them.
    Effective(IndexMap<&'static str, toml::Value>),
    /// Those that were given: each rail finds the others by its own round-trip time.
    Given(toml::Value),
}

impl Resolved {
    /// The experiment as TOML with every default explicit. It resolves to the same runs.
    pub fn to_toml(&self, files: &dyn Files) -> String {
        let mut fabric = self.experiment.fabric.clone();
        if let raddle_fabric::FabricSource::File(source) = &mut fabric {
            source.file = files.absolute(&source.file);
        }
        let mut traffic = self.experiment.traffic.clone();
        match &mut traffic {
            None => {}
            Some(TrafficSource::File(source)) => {
                source.file = files.absolute(&source.file);
                source.classes = source.classes.take().map(|file| files.absolute(&file));
            }
            Some(TrafficSource::Spec(spec)) => {
                // Generators take the contents of their files in; what cannot be read was refused before.
                let _ = spec.resolve(&mut |name: &str| files.read(name, MOST_TEXT));
            }
        }
        let mut job = self.experiment.job.clone();
        for job in &mut job {
            if let ProgramSource::File(file) = &mut job.program {
                *file = files.absolute(file);
            }
        }
        let mut hosts = self.experiment.hosts.clone();
        if let Some(costs) = hosts.as_mut().and_then(|hosts| hosts.costs.as_mut()) {
            *costs = files.absolute(costs);
        }
        let mut simulation = self.experiment.simulation.clone();
        if !self.experiment.setup.is_empty() {
            simulation.schemes = None;
        }
        simulation.ecn_marks = simulation.ecn_marks.map(|file| files.absolute(&file));
        let given = toml::Value::try_from(&self.experiment.schemes).ok();
        let parameters = |run: &SchemeRun| {
            let given = given.as_ref().and_then(|given| given.get(&run.scheme));
            if let (Some(_), Some(given)) = (&self.experiment.rails, given) {
                return Parameters::Given(given.clone());
            }
            let all = run.effective.iter().filter(|parameter| !parameter.absent);
            Parameters::Effective(
                all.map(|parameter| (parameter.key, literal(&parameter.value)))
                    .collect(),
            )
        };
        let file = ResolvedFile {
            schema: 1,
            name: &self.name,
            fabric,
            traffic,
            hosts,
            offload: self.experiment.offload.as_ref(),
            multicast: self.experiment.multicast.as_ref(),
            job,
            setup: &self.experiment.setup,
            simulation,
            switch: &self.experiment.switch,
            record: &self.experiment.record,
            score: &self.experiment.score,
            rails: self.experiment.rails.as_ref(),
            schemes: self
                .schemes
                .iter()
                .map(|run| (run.scheme.as_str(), parameters(run)))
                .collect(),
        };
        toml::to_string(&file).unwrap_or_default()
    }

    /// The plan as JSON; `python/raddle/plan.py` documents it.
    pub fn to_plan(&self, files: &dyn Files) -> serde_json::Value {
        let fabric = &self.network.fabric;
        let runs: Vec<_> = self
            .runs
            .iter()
            .map(|run| {
                json!({
                    "name": run.name,
                    "scheme": self.schemes[run.scheme].name,
                    "seed": run.seed,
                    "variant": self.variant_name(&run.variant),
                    "stamp": run.stamp,
                    "flows": run.flows,
                    "estimate": run.estimate,
                })
            })
            .collect();
        let parameters: IndexMap<&str, _> = self
            .schemes
            .iter()
            .map(|run| (run.name.as_str(), &run.effective))
            .collect();
        let (flows, bytes) = self.expected;
        json!({
            "schema": PLAN_SCHEMA,
            "name": self.name,
            "experiment": self.to_toml(files),
            "compat": self.experiment.simulation.compat,
            "fabric": {
                "name": fabric.name(),
                "hosts": fabric.hosts().len(),
                "switches": fabric.switches().len(),
                "links": fabric.links().len(),
                "memory_bytes": network_bytes(&self.network),
            },
            "traffic": { "flows": flows, "bytes": bytes, "classes": self.classes },
            "jobs": self.experiment.job.iter().map(|job| &job.name).collect::<Vec<_>>(),
            "job_hosts": self.job_hosts(),
            "setups": self.experiment.setup,
            "runs": runs,
            "parameters": parameters,
            "settings": self.settings,
            "score": self.experiment.score,
            "warnings": self.warnings,
            "one_thread": self.one_thread,
        })
    }
}

impl Resolved {
    /// By job: hosts of its ranks, and how many ranks one after the other each has. All setups have the same.
    fn job_hosts(&self) -> BTreeMap<&str, Vec<(String, usize)>> {
        let fabric = &self.network.fabric;
        let set = self.schemes.first().and_then(|scheme| scheme.jobs.as_ref());
        let jobs = set.iter().flat_map(|jobs| {
            let names = jobs.set.names().iter().enumerate();
            names.map(|(job, name)| (name.as_str(), jobs.set.hosts(job)))
        });
        jobs.map(|(name, ranks)| {
            let hosts = ranks.chunk_by(|one, next| one == next);
            let hosts = hosts.map(|own| (fabric.node_name(own[0]).into_owned(), own.len()));
            (name, hosts.collect())
        })
        .collect()
    }
}

/// A parameter's text as the TOML value that reads back as the same: numbers and truth values bare, the rest quoted.
fn literal(text: &str) -> toml::Value {
    if let Ok(value) = text.parse::<bool>() {
        return value.into();
    }
    if let Ok(value) = text.parse::<i64>() {
        return value.into();
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => value.into(),
        _ => text.into(),
    }
}
