//! Which runs an experiment has, what decides the outcome of each, and what it will cost.

use raddle_engine::{Network, RunConfig};
use raddle_fabric::write_toml;
use raddle_text::{InputError as ExperimentError, MOST_DATA, Problem};
use raddle_units::{Bytes, Time};
use raddle_workload::{Beside, Message, TrafficSource, Workload};

use super::Resolver;
use crate::{
    estimate::{Counts, average_hops},
    fields::Experiment,
    job_tables::ProgramSource,
    jobs,
    resolved::{PlannedRun, SchemeRun, Variant, nothing, variant_name},
    stamp::Stamp,
};

/// The traffic of runs for the first seed.
pub(super) struct Loads<'a> {
    pub(super) traffic: &'a dyn Workload,
    /// Its tested flows alone.
    pub(super) isolated: Option<&'a dyn Workload>,
}

impl Resolver<'_> {
    /// All runs: schemes, then seeds, loaded before isolated, those before jobs alone; and what their estimates start from.
    pub(super) fn runs(
        &self,
        experiment: &Experiment,
        network: &Network,
        schemes: &[SchemeRun],
        base: &RunConfig,
        loads: &Loads<'_>,
    ) -> Result<(Vec<PlannedRun>, Vec<Counts>), ExperimentError> {
        let seeds = experiment.simulation.seeds.as_deref().unwrap_or_default();
        let alone = experiment.simulation.alone == Some(true) && !experiment.job.is_empty();
        let empty = nothing(&[]);
        let common = self.stamp(experiment, network)?;
        let hops = average_hops(network);
        let (mut runs, mut counts) = (Vec::new(), Vec::new());
        for (index, scheme) in schemes.iter().enumerate() {
            for &seed in seeds {
                let takes_part =
                    |job: &usize| alone && !scheme.without.contains(&experiment.job[*job].name);
                let jobs = (0..experiment.job.len()).filter(takes_part);
                let twin = loads.isolated.is_some().then_some(Variant::Isolated);
                let variants = [Variant::Loaded].into_iter().chain(twin);
                for variant in variants.chain(jobs.map(Variant::Alone)) {
                    let workload = match variant {
                        Variant::Loaded => loads.traffic,
                        Variant::Isolated => loads.isolated.unwrap_or(&empty),
                        Variant::Alone(_) => &empty,
                    };
                    let name = variant_name(&variant, experiment);
                    let mut stamp = common
                        .with(scheme.scheme.as_bytes())
                        .with(&seed.to_le_bytes())
                        .with(name.as_bytes());
                    if let Some(setup) = experiment.setup.get(index) {
                        let switches = (setup.collectives, setup.scheduling, setup.rails);
                        let text = serde_json::to_string(&(switches, &setup.without));
                        stamp = stamp.with(text.unwrap_or_default().as_bytes());
                    }
                    for parameter in &scheme.effective {
                        stamp = stamp
                            .with(parameter.key.as_bytes())
                            .with(parameter.value.as_bytes());
                    }
                    let machine = scheme.jobs.as_ref().and_then(|jobs| {
                        let runs = |job: usize| match variant {
                            Variant::Loaded => !scheme.without.contains(&experiment.job[job].name),
                            Variant::Isolated => false,
                            Variant::Alone(alone) => alone == job,
                        };
                        jobs.set.machine(seed, runs, false).ok()
                    });
                    let last_start = workload.expected_last_start();
                    let load = match machine {
                        None => Counts::of(network, workload, base, hops, last_start),
                        Some(machine) => {
                            let both = Beside::new(machine, Counted::of(workload));
                            Counts::of(network, &both, base, hops, last_start)
                        }
                    };
                    counts.push(load);
                    runs.push(PlannedRun {
                        name: format!("{}-seed{seed}-{name}", scheme.name),
                        scheme: index,
                        seed,
                        variant,
                        flows: workload
                            .expected_messages()
                            .filter(|_| !workload.is_open_ended()),
                        stamp: stamp.hex(),
                        estimate: load.estimate(1.0),
                    });
                }
            }
        }
        Ok((runs, counts))
    }

    /// What all runs have in common.
    fn stamp(&self, experiment: &Experiment, network: &Network) -> Result<Stamp, ExperimentError> {
        let json = |value: serde_json::Result<String>| value.unwrap_or_default();
        // Names and places of files do not matter, their contents do.
        let mut simulation = experiment.simulation.clone();
        let marks = simulation.ecn_marks.take();
        (simulation.schemes, simulation.seeds, simulation.isolated) = (None, None, None);
        simulation.alone = None;
        let mut stamp = Stamp::new()
            .with(env!("CARGO_PKG_VERSION").as_bytes())
            .with(write_toml(&network.fabric).as_bytes())
            .with(json(serde_json::to_string(&simulation)).as_bytes())
            .with(json(serde_json::to_string(&experiment.record)).as_bytes());
        if let Some(rails) = &experiment.rails {
            stamp = stamp.with(json(serde_json::to_string(rails)).as_bytes());
        }
        if !experiment.switch.is_empty() {
            stamp = stamp.with(json(serde_json::to_string(&experiment.switch)).as_bytes());
        }
        if !experiment.job.is_empty() {
            stamp = self.stamp_jobs(experiment, stamp)?;
        }
        let mut traffic = experiment.traffic.clone();
        let files = traffic
            .as_ref()
            .map(TrafficSource::files)
            .unwrap_or_default();
        let named: Vec<String> = files.into_iter().map(str::to_owned).chain(marks).collect();
        if let Some(TrafficSource::File(source)) = &mut traffic {
            source.format = Some(source.format());
            source.file.clear();
            source.classes = source.classes.take().map(|_| String::new());
        }
        let mut described = traffic.map_or_else(String::new, |it| json(serde_json::to_string(&it)));
        for file in named {
            described = described.replace(&json(serde_json::to_string(&file)), "\"\"");
            let bytes = self.files.read(&file, MOST_DATA).map_err(|reason| {
                let problem = Problem::Unreadable {
                    file: file.clone(),
                    reason,
                };
                ExperimentError::at(self.at(&["traffic"]), problem)
            })?;
            stamp = stamp.with(&bytes);
        }
        Ok(stamp.with(described.as_bytes()))
    }

    /// Jobs, what hosts and switches have for them, and the contents of the files that they name.
    fn stamp_jobs(&self, experiment: &Experiment, stamp: Stamp) -> Result<Stamp, ExperimentError> {
        let mut jobs = experiment.job.clone();
        let mut hosts = experiment.hosts.clone().unwrap_or_default();
        let mut named: Vec<String> = hosts.costs.take().into_iter().collect();
        for job in &mut jobs {
            if let ProgramSource::File(file) = &mut job.program {
                named.push(std::mem::take(file));
            }
        }
        let tables = (jobs, hosts, &experiment.offload, &experiment.multicast);
        let mut stamp = stamp.with(
            serde_json::to_string(&tables)
                .unwrap_or_default()
                .as_bytes(),
        );
        for file in named {
            let bytes = self.files.read(&file, MOST_DATA).map_err(|reason| {
                let problem = Problem::Unreadable {
                    file: file.clone(),
                    reason,
                };
                ExperimentError::at(self.at(&["job"]), problem)
            })?;
            stamp = stamp.with(&bytes);
            for (_, bytes) in jobs::further_files(&file, self.files) {
                stamp = stamp.with(&bytes);
            }
        }
        Ok(stamp)
    }
}

/// Tells what a workload expects, and gives nothing.
#[derive(Debug)]
struct Counted {
    messages: Option<u64>,
    bytes: Option<Bytes>,
    open_ended: bool,
}

impl Counted {
    fn of(workload: &dyn Workload) -> Self {
        Self {
            messages: workload.expected_messages(),
            bytes: workload.expected_bytes(),
            open_ended: workload.is_open_ended(),
        }
    }
}

impl Workload for Counted {
    fn classes(&self) -> &[String] {
        &[]
    }
    fn next_start(&self) -> Option<Time> {
        None
    }
    fn pop(&mut self) -> Option<Message> {
        None
    }
    fn expected_messages(&self) -> Option<u64> {
        self.messages
    }
    fn expected_bytes(&self) -> Option<Bytes> {
        self.bytes
    }
    fn is_open_ended(&self) -> bool {
        self.open_ended
    }
    fn finished(&self) -> bool {
        true
    }
}
