//! Several programs on one fabric, each on hosts of its own.

use std::collections::BTreeMap;

use raddle_engine::blame::Journal;
use raddle_fabric::Fabric;
use raddle_schedule::{Settings, Variant};
use raddle_text::clip;
use raddle_trace::Trace;
use raddle_units::{NodeId, Span, Time};

use super::{
    Algorithms, Carried, CollectiveCounts, Collectives, Diaries, Granted, JobRun, Machine, Noise,
    Plan, Prepared, Program, ReplayCosts, ReplayError, ReplaySettings, Share, Wish,
    critical::{Activity, Critical},
    wishes,
};

/// A program that shares a fabric with others.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// What its ranks do.
    pub trace: Trace,
    /// The host of each rank.
    pub nodes: Vec<NodeId>,
    /// When its ranks start.
    pub start: Span,
    /// The algorithms of collectives that its hosts carry.
    pub algorithms: Algorithms,
    /// Who carries its collectives.
    pub collectives: Collectives,
    /// How its messages are scheduled.
    pub scheduling: Settings<'static>,
}

/// A program that cannot take part.
#[derive(Debug, thiserror::Error)]
#[error("job `{}`: {problem}", clip(.name))]
pub struct JobError {
    /// Its place in the list.
    pub place: usize,
    /// Its name.
    pub name: String,
    /// Why.
    pub problem: Box<ReplayError>,
}

/// What the network granted, by job and communicator.
pub type Grants = BTreeMap<(usize, u32), Granted>;

/// The hosts of all jobs.
#[derive(Clone, Copy, Debug)]
pub struct HostSettings {
    /// Their costs.
    pub costs: ReplayCosts,
    /// Sockets of a host; its ranks are spread over them in order.
    pub sockets: u32,
    /// Processors that the ranks of all jobs share, rank r of all on r mod so many. `None`: each rank has its own.
    pub processors: Option<u32>,
    /// What the seed varies.
    pub noise: Noise,
}

/// Programs ready to run, each on hosts of its own.
#[derive(Debug)]
pub struct JobSet {
    program: Program,
    nodes: Vec<NodeId>,
    names: Vec<String>,
    starts: Vec<Span>,
    collectives: Vec<CollectiveCounts>,
    settings: ReplaySettings,
}

/// How long a job took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobTime {
    /// Its name.
    pub name: String,
    /// Its ranks.
    pub ranks: u32,
    /// When it started.
    pub start: Time,
    /// From there until its last rank was through; `None`: the run ended before.
    pub time: Option<Span>,
    /// Who carried its collectives.
    pub collectives: CollectiveCounts,
}

impl Job {
    /// The groups that its communicators would use.
    #[must_use]
    pub fn wishes(&self) -> Vec<Wish> {
        wishes(&self.trace, &self.nodes, &self.collectives)
    }

    fn prepared(&self, granted: &BTreeMap<u32, Granted>) -> Result<Prepared, ReplayError> {
        let carried = Carried::new(&self.trace, &self.nodes, self.collectives, granted);
        Prepared::carried(&self.trace, &self.algorithms, &carried)
    }

    fn plan(&self, prepared: &Prepared) -> Result<Option<Plan>, ReplayError> {
        if self.scheduling.variant == Variant::None {
            return Ok(None);
        }
        let hosts: Vec<u32> = self.nodes.iter().map(|node| node.0).collect();
        Plan::new(prepared, &hosts, &self.scheduling).map(Some)
    }
}

impl JobSet {
    /// Expands and schedules all jobs; `grants` has what the network carries for them.
    ///
    /// # Errors
    /// A job that cannot be replayed.
    pub fn new(jobs: &[Job], grants: &Grants, hosts: HostSettings) -> Result<Self, JobError> {
        let mut ready = Vec::with_capacity(jobs.len());
        for (place, job) in jobs.iter().enumerate() {
            let failed = |problem| JobError {
                place,
                name: job.name.clone(),
                problem: Box::new(problem),
            };
            let granted = grants.iter().filter(|((owner, _), _)| *owner == place);
            let granted = granted.map(|((_, comm), granted)| (*comm, *granted));
            let prepared = job.prepared(&granted.collect()).map_err(failed)?;
            let plan = job.plan(&prepared).map_err(failed)?;
            ready.push((prepared, plan));
        }
        let parts: Vec<_> = ready
            .iter()
            .map(|(prepared, plan)| (prepared, plan.as_ref()))
            .collect();
        let program = Program::of_jobs(&parts, &hosts.costs);
        Ok(Self {
            program,
            nodes: jobs.iter().flat_map(|job| job.nodes.clone()).collect(),
            names: jobs.iter().map(|job| job.name.clone()).collect(),
            starts: jobs.iter().map(|job| job.start).collect(),
            collectives: ready.iter().map(|(own, _)| own.collectives).collect(),
            settings: ReplaySettings {
                scheme: String::new(),
                costs: hosts.costs,
                sockets: hosts.sockets,
                processors: hosts.processors,
                algorithms: Algorithms::default(),
                noise: hosts.noise,
                seed: 0,
            },
        })
    }

    /// The hosts of a job's ranks, in order.
    #[must_use]
    pub fn hosts(&self, job: usize) -> &[NodeId] {
        let ranks = self.program.ranks_of(job);
        &self.nodes[ranks.start as usize..ranks.end as usize]
    }

    /// Names of the jobs.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The jobs that `runs` names by place, with the noise of a seed. The others leave their hosts idle. `keeps_diaries`: see
    /// [`Self::blame`].
    ///
    /// # Errors
    /// None that a set has not told before.
    pub fn machine(
        &self,
        seed: u64,
        runs: impl Fn(usize) -> bool,
        keeps_diaries: bool,
    ) -> Result<Machine<'_>, ReplayError> {
        let settings = ReplaySettings {
            seed,
            ..self.settings.clone()
        };
        let jobs = self.names.iter().zip(&self.starts).enumerate();
        let jobs: Vec<JobRun> = jobs
            .map(|(place, (name, start))| JobRun {
                name: name.clone(),
                start: Time::ZERO + *start,
                runs: runs(place),
            })
            .collect();
        Machine::of_jobs(&self.program, &self.nodes, &settings, &jobs, keeps_diaries)
    }

    /// What the time of a job was spent on, the largest share first; shares add up to its time. Empty if it did not end, or if its
    /// machine kept no diaries. The run's records are in `journal`.
    #[must_use]
    pub fn blame(
        &self,
        job: usize,
        diaries: &Diaries,
        journal: &Journal,
        fabric: &Fabric,
    ) -> Vec<Share> {
        let critical = Critical::new(&self.program, &self.nodes, fabric, journal, diaries);
        critical.shares(job, Time::ZERO + self.starts[job])
    }

    /// What the ranks of a job did, rank by rank, in order of time, from the job's start on. Empty if its machine kept no diaries.
    #[must_use]
    pub fn activities(
        &self,
        job: usize,
        diaries: &Diaries,
        journal: &Journal,
        fabric: &Fabric,
    ) -> Vec<Activity> {
        let critical = Critical::new(&self.program, &self.nodes, fabric, journal, diaries);
        critical.activities(job, Time::ZERO + self.starts[job])
    }

    /// How long each job took that `runs` names, if its ranks ended then: (rank, time), through all jobs.
    pub fn times(
        &self,
        ended: impl IntoIterator<Item = (u32, Time)>,
        runs: impl Fn(usize) -> bool,
    ) -> Vec<JobTime> {
        let mut last = vec![(0_u32, Time::ZERO); self.names.len()];
        for (rank, end) in ended {
            let (ranks, latest) = &mut last[self.program.job_of(rank)];
            *ranks += 1;
            *latest = end.max(*latest);
        }
        let jobs = (0..self.names.len()).filter(|&job| runs(job));
        jobs.map(|job| {
            let ranks = self.program.ranks_of(job).len() as u32;
            let start = Time::ZERO + self.starts[job];
            let (through, end) = last[job];
            JobTime {
                name: self.names[job].clone(),
                ranks,
                start,
                time: (through == ranks).then(|| end.since(start)),
                collectives: self.collectives[job],
            }
        })
        .collect()
    }
}
