//! Programs that share the fabric, and what is switched on for them.

#[cfg(test)]
mod blame_tests;
#[cfg(test)]
mod example_tests;
mod network;
mod places;
mod programs;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

pub(super) use programs::further_files;
use raddle_engine::{Multicast, Offload};
use raddle_fabric::Fabric;
use raddle_replay::{HostSettings, Job, JobSet, Noise, ReplayCosts};
use raddle_schedule::Settings;
use raddle_text::{Files, InputError as ExperimentError, Node, Problem, clip, words::suggest};
use raddle_trace::Trace;
use raddle_transport::cc::SchemeSettings;
use raddle_units::NodeId;

use super::{fields::Experiment, job_tables::SetupTable};

/// Most jobs of an experiment: classes of messages are counted through 256.
pub(super) const MOST_JOBS: usize = 64;

/// The jobs of a setup, ready to run, and what the network carries for them.
#[derive(Debug)]
pub struct SetupJobs {
    /// The jobs.
    pub set: JobSet,
    /// Their multicast groups.
    pub multicast: Option<Arc<Multicast>>,
    /// Their reductions in switches.
    pub offload: Option<Arc<Offload>>,
}

/// All jobs with their hosts, apart from what setups switch on.
pub(super) struct Placed {
    jobs: Vec<PlacedJob>,
    hosts: HostSettings,
}

struct PlacedJob {
    trace: Trace,
    nodes: Vec<NodeId>,
}

/// What is wrong with a job or setup; `index` counts through `[[job]]` or `[[setup]]`.
fn refused(
    root: &Node,
    (table, index): (&str, usize),
    key: &str,
    message: &str,
) -> ExperimentError {
    let problem = Problem::Value {
        key: format!("`{key}`: "),
        message: clip(message),
    };
    ExperimentError::at(root.item(&[table], index).locate(&[key]), problem)
}

/// Checks names, and what one table says of another.
pub(super) fn check(experiment: &Experiment, root: &Node) -> Result<(), ExperimentError> {
    let Experiment { job, setup, .. } = experiment;
    let names = job.iter().map(|job| ("job", &job.name));
    let names = names
        .zip(0..)
        .chain(setup.iter().map(|it| ("setup", &it.name)).zip(0..));
    let mut seen = BTreeSet::new();
    for ((table, name), index) in names {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            let message = "a name has letters, digits, `-` and `_`";
            return Err(refused(root, (table, index), "name", message));
        }
        if !seen.insert((table, name)) {
            let message = format!("there are two of the name `{name}`");
            return Err(refused(root, (table, index), "name", &message));
        }
    }
    if job.len() > MOST_JOBS {
        let message = format!("{} jobs, and {MOST_JOBS} can share a fabric", job.len());
        return Err(refused(root, ("job", MOST_JOBS), "name", &message));
    }
    let has_rails = experiment.rails.is_some();
    for (index, one) in job.iter().enumerate() {
        if one.rails.is_some() && !has_rails {
            let message = "the experiment has no [rails]: say there which rails hosts have";
            return Err(refused(root, ("job", index), "rails", message));
        }
    }
    for (index, one) in setup.iter().enumerate() {
        if one.rails == Some(true) && !has_rails {
            let message = "the experiment has no [rails]: say there which rails hosts have";
            return Err(refused(root, ("setup", index), "rails", message));
        }
        let schemes: Vec<&str> = SchemeSettings::schemes()
            .iter()
            .map(|scheme| scheme.name)
            .collect();
        if let Some(name) = one.scheme.as_deref().filter(|name| !schemes.contains(name)) {
            let message = format!("`{}` is no congestion control", clip(name));
            let error = refused(root, ("setup", index), "scheme", &message);
            return Err(error.with_hint(suggest(name, &schemes)));
        }
    }
    if !setup.is_empty() && experiment.simulation.schemes.is_some() {
        let problem = Problem::Value {
            key: "`schemes`: ".to_owned(),
            message: "each [[setup]] names its scheme".to_owned(),
        };
        let at = root.locate(&["simulation", "schemes"]);
        return Err(ExperimentError::at(at, problem).with_hint("remove `schemes`"));
    }
    if experiment.traffic.is_none() && job.is_empty() {
        let problem = Problem::Refused("there is neither [traffic] nor a [[job]]".to_owned());
        return Err(ExperimentError::at(&root.at, problem)
            .with_hint("add a table [traffic] with `generator = \"...\"` or `file = \"...\"`"));
    }
    if job.is_empty() {
        let tables = [
            ("hosts", experiment.hosts.is_some()),
            ("offload", experiment.offload.is_some()),
            ("multicast", experiment.multicast.is_some()),
        ];
        if let Some((table, _)) = tables.into_iter().find(|(_, given)| *given) {
            let problem = Problem::Refused(format!("[{table}] is for jobs, and there is none"));
            return Err(ExperimentError::at(root.locate(&[table]), problem)
                .with_hint("add a [[job]], or remove it"));
        }
    }
    Ok(())
}

/// Names that a setup leaves out and nobody has.
pub(super) fn check_without(
    experiment: &Experiment,
    classes: &[String],
    can_leave_out: bool,
    root: &Node,
) -> Result<(), ExperimentError> {
    let jobs = experiment.job.iter().map(|job| job.name.as_str());
    let known: Vec<&str> = jobs.chain(classes.iter().map(String::as_str)).collect();
    for (index, setup) in experiment.setup.iter().enumerate() {
        for name in &setup.without {
            let place = ("setup", index);
            if !known.contains(&name.as_str()) {
                let message = format!("`{}` is neither a job nor a class of traffic", clip(name));
                let error = refused(root, place, "without", &message);
                return Err(error.with_hint(suggest(name, &known)));
            }
            if classes.contains(name) && !can_leave_out {
                let message =
                    format!("messages of `{name}` wait for each other: none can be left out");
                return Err(refused(root, place, "without", &message));
            }
        }
    }
    Ok(())
}

impl Placed {
    /// Reads all programs and gives them their hosts.
    pub(super) fn new(
        experiment: &Experiment,
        fabric: &Fabric,
        root: &Node,
        files: &dyn Files,
    ) -> Result<Self, ExperimentError> {
        let hosts = experiment.hosts.clone().unwrap_or_default();
        let usual = Noise::default();
        let costs = match &hosts.costs {
            None => ReplayCosts::default(),
            Some(file) => {
                let at = root.locate(&["hosts", "costs"]);
                let text = raddle_text::tree::read_text(files, file, at)?;
                ReplayCosts::read(&text, file)?
            }
        };
        let mut free = places::Free::new(fabric);
        let mut jobs = Vec::new();
        for (index, table) in experiment.job.iter().enumerate() {
            let at = ("job", index);
            let trace = programs::load(table, root, at, files)?;
            let local = programs::hosts_of_ranks(table, &trace);
            let needed = local.iter().max().map_or(0, |&last| last + 1);
            let given = free
                .take(table, needed as usize)
                .map_err(|problem| refused(root, at, "placement", &problem))?;
            let nodes = local.iter().map(|&host| given[host as usize]).collect();
            jobs.push(PlacedJob { trace, nodes });
        }
        Ok(Self {
            jobs,
            hosts: HostSettings {
                costs,
                sockets: hosts.sockets.unwrap_or(2),
                processors: hosts.processors,
                noise: Noise {
                    gap_share: hosts.gap_share.unwrap_or(usual.gap_share),
                    start_skew: hosts.start_skew.unwrap_or(usual.start_skew),
                },
            },
        })
    }

    /// Costs of hosts.
    pub(super) const fn costs(&self) -> &ReplayCosts {
        &self.hosts.costs
    }

    /// The jobs as a setup has them.
    pub(super) fn with_setup(
        &self,
        experiment: &Experiment,
        setup: Option<&SetupTable>,
        (fabric, plane): (&Arc<Fabric>, Option<&Arc<Fabric>>),
        root: &Node,
    ) -> Result<SetupJobs, ExperimentError> {
        let jobs = experiment.job.iter().zip(&self.jobs);
        let jobs: Vec<Job> = jobs
            .map(|(table, placed)| {
                let own = setup.and_then(|setup| setup.collectives);
                let scheduling = setup.and_then(|setup| setup.scheduling);
                let scheduling = scheduling.or(table.scheduling).unwrap_or_default();
                Job {
                    name: table.name.clone(),
                    trace: placed.trace.clone(),
                    nodes: placed.nodes.clone(),
                    start: table.start.unwrap_or_default(),
                    algorithms: table.algorithms.unwrap_or_default(),
                    collectives: own.or(table.collectives).unwrap_or_default(),
                    scheduling: Settings::named(scheduling.name()).unwrap_or_default(),
                }
            })
            .collect();
        let network = network::Network::new(experiment, &jobs, fabric, plane);
        let network = network.map_err(|problem| {
            let problem = Problem::refused(&problem);
            ExperimentError::at(root.locate(&["multicast"]), problem)
        })?;
        let set = JobSet::new(&jobs, &network.grants, self.hosts);
        let set = set.map_err(|error| {
            let message = error.problem.to_string();
            refused(root, ("job", error.place), "program", &message)
        })?;
        Ok(SetupJobs {
            set,
            multicast: network.multicast,
            offload: network.offload,
        })
    }
}
