//! An experiment that can run: its network, schemes and runs, and what each run is driven with.

use std::sync::Arc;

use raddle_engine::{Network, RunConfig};
use raddle_replay::Diaries;
use raddle_text::{Files, InputError as ExperimentError, Problem};
use raddle_transport::cc::{EffectiveParameter, SchemeParameters, SchemeSettings};
use raddle_units::Time;
use raddle_workload::{Beside, FlowList, TrafficSource, Without, Workload};
use serde::{Deserialize, Serialize};

use super::{
    estimate::{Counts, Estimate},
    fields::Experiment,
    jobs::SetupJobs,
    settings::Setting,
    sources::build_traffic,
};

/// A scheme with its resolved parameters, and what a setup switches on.
#[derive(Clone, Debug)]
pub struct SchemeRun {
    /// Its name in results: the setup's, or the scheme's.
    pub name: String,
    /// The scheme.
    pub scheme: String,
    /// Whether messages travel over all rails, where hosts have several.
    pub rails: bool,
    /// Jobs and classes that are left out.
    pub without: Vec<String>,
    /// The jobs as it has them.
    pub jobs: Option<Arc<SetupJobs>>,
    /// What it runs with.
    pub parameters: SchemeParameters,
    /// The same for reading, with sources and warnings.
    pub effective: Vec<EffectiveParameter>,
}

/// What takes part in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Everything.
    Loaded,
    /// The tested flows alone.
    Isolated,
    /// This job alone, by its place in the experiment.
    Alone(usize),
}

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedRun {
    /// Unique in the experiment, fit for a folder: `hpcc-seed1-loaded`.
    pub name: String,
    /// Index into [`Resolved::schemes`].
    pub scheme: usize,
    /// Its seed.
    pub seed: u64,
    /// What takes part.
    pub variant: Variant,
    /// Messages that are expected, where that is known.
    pub flows: Option<u64>,
    /// Hash of everything that decides its outcome.
    pub stamp: String,
    /// What it will cost.
    pub estimate: Estimate,
}

/// An experiment that can run: everything is checked and every default is explicit.
#[derive(Debug)]
pub struct Resolved {
    /// The experiment with all defaults filled in, includes merged and file names made independent of its place.
    pub experiment: Experiment,
    /// Its name.
    pub name: String,
    /// The fabric with its routes; shared by all runs.
    pub network: Arc<Network>,
    /// Schemes in the order of the experiment.
    pub schemes: Vec<SchemeRun>,
    /// All settings.
    pub settings: Vec<Setting>,
    /// All runs: schemes as in the experiment, then seeds, loaded before isolated, those before jobs alone.
    pub runs: Vec<PlannedRun>,
    /// What a user should know before the run.
    pub warnings: Vec<String>,
    /// Why runs keep to one thread, where they do ([`raddle_engine::one_thread`]).
    pub one_thread: Option<&'static str>,
    /// Classes of the traffic.
    pub classes: Vec<String>,
    /// Messages and payload of the loaded traffic, where known beforehand.
    pub expected: (Option<u64>, Option<u64>),
    /// What the runs' estimates start from.
    pub(super) counts: Vec<Counts>,
    pub(super) twin: Option<TrafficSource>,
    /// Those of the traffic, without jobs.
    pub(super) traffic_classes: Vec<String>,
    pub(super) base: RunConfig,
}

/// Ranks that have ended, through all jobs, and when.
pub(crate) type Ended = Vec<(u32, Time)>;

/// What is known of the jobs when a run is over.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct AfterRun {
    pub(crate) ended: Ended,
    pub(crate) diaries: Diaries,
}

/// No messages of these classes.
pub(super) fn nothing(classes: &[String]) -> FlowList {
    FlowList::new(Vec::new(), classes.to_vec())
}

pub(super) fn variant_name(variant: &Variant, experiment: &Experiment) -> String {
    match variant {
        Variant::Loaded => "loaded".to_owned(),
        Variant::Isolated => "isolated".to_owned(),
        Variant::Alone(job) => format!("alone-{}", experiment.job[*job].name),
    }
}

impl Resolved {
    /// The settings of a run.
    pub fn run_config(&self, run: &PlannedRun) -> RunConfig {
        RunConfig {
            seed: run.seed,
            record_delays: self
                .base
                .record_delays
                .filter(|_| run.variant == Variant::Loaded),
            ..with_scheme(
                &self.base,
                &self.schemes[run.scheme],
                &self.experiment.schemes,
            )
        }
    }

    /// The messages of a run apart from those of its jobs, from their beginning.
    ///
    /// # Errors
    /// A flow file that changed or vanished since the experiment was checked.
    pub fn workload(
        &self,
        run: &PlannedRun,
        files: &dyn Files,
    ) -> Result<Box<dyn Workload>, ExperimentError> {
        let isolated = match run.variant {
            Variant::Alone(_) => return Ok(Box::new(nothing(&self.traffic_classes))),
            Variant::Isolated => true,
            Variant::Loaded => false,
        };
        let missing = || Problem::Refused("the experiment has no isolated twin".to_owned());
        let all = self
            .traffic(run.seed, isolated, files)?
            .ok_or_else(|| ExperimentError::of_file(&self.name, missing()))?;
        let without = &self.schemes[run.scheme].without;
        let is_left_out = |class: &str| without.iter().any(|name| name == class);
        if all.classes().iter().any(|class| is_left_out(class)) {
            return Ok(Box::new(Without::new(all, is_left_out)));
        }
        Ok(all)
    }

    /// The jobs of a run's setup, if there are any.
    #[must_use]
    pub fn jobs(&self, run: &PlannedRun) -> Option<&SetupJobs> {
        self.schemes[run.scheme].jobs.as_deref()
    }

    /// Whether the times of flows are taken apart in a run.
    #[must_use]
    pub fn records_delays(&self, run: &PlannedRun) -> bool {
        self.experiment.record.delays == Some(true) && run.variant == Variant::Loaded
    }

    /// Whether the times of jobs are taken apart in a run.
    #[must_use]
    pub fn blames(&self, run: &PlannedRun) -> bool {
        self.experiment.record.blame == Some(true) && run.variant == Variant::Loaded
    }

    /// Whether it is kept what the ranks of jobs did in a run.
    #[must_use]
    pub fn records_ranks(&self, run: &PlannedRun) -> bool {
        self.experiment.record.ranks == Some(true) && run.variant == Variant::Loaded
    }

    /// Whether a job takes part in a run.
    #[must_use]
    pub fn takes_part(&self, run: &PlannedRun, job: usize) -> bool {
        let name = &self.experiment.job[job].name;
        match run.variant {
            Variant::Loaded => !self.schemes[run.scheme].without.contains(name),
            Variant::Isolated => false,
            Variant::Alone(alone) => alone == job,
        }
    }

    /// Gives all messages of a run to `drive`: those of its jobs before the others.
    ///
    /// # Errors
    /// As [`Self::workload`]. How long jobs took is there if `drive` ran them to their end.
    pub(crate) fn drive<R>(
        &self,
        run: &PlannedRun,
        files: &dyn Files,
        drive: impl FnOnce(&mut dyn Workload) -> R,
    ) -> Result<(R, AfterRun), ExperimentError> {
        let mut background = self.workload(run, files)?;
        let Some(jobs) = self.jobs(run) else {
            return Ok((drive(background.as_mut()), AfterRun::default()));
        };
        let takes_part = |job| self.takes_part(run, job);
        let keeps_diaries = self.blames(run) || self.records_ranks(run);
        let machine = jobs.set.machine(run.seed, takes_part, keeps_diaries);
        let mut machine = machine
            .map_err(|error| ExperimentError::of_file(&self.name, Problem::refused(&error)))?;
        let mut both = Beside::new(&mut machine, background);
        let answer = drive(&mut both);
        let after = AfterRun {
            ended: machine.ended().collect(),
            diaries: machine.diaries(),
        };
        Ok((answer, after))
    }

    /// A variant by its name in plans and folders.
    #[must_use]
    pub fn variant_name(&self, variant: &Variant) -> String {
        variant_name(variant, &self.experiment)
    }

    /// The messages for a seed, whole or the tested ones alone; `None` where there is no twin.
    ///
    /// # Errors
    /// As [`Self::workload`].
    pub fn traffic(
        &self,
        seed: u64,
        isolated: bool,
        files: &dyn Files,
    ) -> Result<Option<Box<dyn Workload>>, ExperimentError> {
        let source = if isolated {
            self.twin.as_ref()
        } else {
            self.experiment.traffic.as_ref()
        };
        let Some(source) = source else {
            let empty: Box<dyn Workload> = Box::new(nothing(&[]));
            return Ok((!isolated).then_some(empty));
        };
        build_traffic(source, &self.network, seed, files)
            .map(Some)
            .map_err(|error| ExperimentError::of_file(&self.name, Problem::refused(&error)))
    }
}

/// What a run with a scheme is told. Rails have the scheme too, for each of them alone.
pub(super) fn with_scheme(
    base: &RunConfig,
    scheme: &SchemeRun,
    settings: &SchemeSettings,
) -> RunConfig {
    let mut config = RunConfig {
        scheme: scheme.parameters.clone(),
        ..base.clone()
    };
    if !scheme.rails {
        config.one_link |= config.rails.take().is_some();
    }
    if let Some(jobs) = &scheme.jobs {
        config.multicast.clone_from(&jobs.multicast);
        config.offload.clone_from(&jobs.offload);
    }
    if let Some(rails) = &mut config.rails {
        config.one_link = rails.plain_classes.contains(&true);
        let protocol = &mut Arc::make_mut(rails).protocol;
        protocol.scheme.clone_from(&scheme.scheme);
        protocol.schemes = settings.clone();
    }
    config
}
