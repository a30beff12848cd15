//! From a checked experiment to runs: the network, every scheme's parameters, all settings with their source.

use std::{path::Path, sync::Arc};

use raddle_fabric::{Fabric, write_toml};
use raddle_replay::{Diaries, ReplayCosts};
use raddle_text::MOST_DATA;
use raddle_transport::cc::{EffectiveParameter, SchemeParameters, SchemeSettings};
use raddle_unicast::PathChoice;
use raddle_units::{BitRate, Bytes, Time};
use raddle_workload::{
    Beside, FlowList, Message, TrafficError, TrafficSource, TrafficSpec, Without, Workload,
    has_isolated_twin,
};

use super::{
    check::{check, normalised},
    estimate::{Counts, Estimate, average_hops},
    fields::{Compat, Experiment, Reading, RecordTable, Variance},
    job_tables::{ProgramSource, SetupTable},
    jobs::{self, Placed, SetupJobs},
    limits::MAX_SERIES,
    multicast,
    ports::find_ports,
    rails,
    settings::{Setting, default_buffer, settings},
    sources::{build_fabric, build_traffic, find_faults, rebase_files},
    stamp::Stamp,
    switch,
};
use serde::{Deserialize, Serialize};

use raddle_engine::{
    Discard, MarkReplay, Network, PortSeries, Progress, RunConfig, Semantics, SetupError,
    one_thread, rails::multi_plane, simulate,
};
use raddle_text::{
    Files, InputError as ExperimentError, Location, Node, Problem, clip, read,
    tree::{self, Value},
};

/// Schemes that are compared where the experiment names none: the paper's.
const DEFAULT_SCHEMES: [&str; 6] = ["none", "dctcp", "dcqcn", "timely", "hpcc", "pint"];
/// The same for rails: the real driver's.
const DEFAULT_ON_RAILS: [&str; 1] = ["swift"];

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
    /// Why runs keep to one thread, where they do ([`one_thread`]).
    pub one_thread: Option<&'static str>,
    /// Classes of the traffic.
    pub classes: Vec<String>,
    /// Messages and payload of the loaded traffic, where known beforehand.
    pub expected: (Option<u64>, Option<u64>),
    /// What the runs' estimates start from.
    pub(super) counts: Vec<Counts>,
    twin: Option<TrafficSource>,
    /// Those of the traffic, without jobs.
    traffic_classes: Vec<String>,
    base: RunConfig,
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
fn nothing(classes: &[String]) -> FlowList {
    FlowList::new(Vec::new(), classes.to_vec())
}

fn variant_name(variant: &Variant, experiment: &Experiment) -> String {
    match variant {
        Variant::Loaded => "loaded".to_owned(),
        Variant::Isolated => "isolated".to_owned(),
        Variant::Alone(job) => format!("alone-{}", experiment.job[*job].name),
    }
}

impl Resolved {
    /// Reads, checks and resolves the experiment `text`; `path` is its name, to which files are relative.
    ///
    /// # Errors
    /// [`ExperimentError`]: one screen with place and cure.
    pub fn new(text: &str, path: &str, files: &dyn Files) -> Result<Self, ExperimentError> {
        Self::watched(text, path, files, &|_, _| ())
    }

    /// [`Self::new`], which tells `watch` each step when it begins, and the hosts that it is about (0 where the map is
    /// still to be made): a large fabric takes its time.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn watched(
        text: &str,
        path: &str,
        files: &dyn Files,
        watch: &dyn Fn(&'static str, usize),
    ) -> Result<Self, ExperimentError> {
        let (mut experiment, root) = parse(text, path, files)?;
        let name = experiment.name.get_or_insert_with(|| stem(path)).clone();
        let resolver = Resolver {
            root: &root,
            files,
            watch,
        };
        resolver.resolve(experiment, name)
    }

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
        let machine = jobs.set.machine(run.seed, takes_part, self.blames(run));
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

impl Experiment {
    /// Reads and checks the tables of an experiment without building anything; includes are merged in.
    ///
    /// # Errors
    /// [`ExperimentError`]: one screen with place and cure.
    pub fn parse(text: &str, path: &str, files: &dyn Files) -> Result<Self, ExperimentError> {
        parse(text, path, files).map(|(experiment, _)| experiment)
    }
}

fn parse(text: &str, path: &str, files: &dyn Files) -> Result<(Experiment, Node), ExperimentError> {
    let mut root = tree::load(text, path, files)?;
    rebase_files(&mut root, files);
    let experiment: Experiment = read(&root)?;
    check(&experiment, &root)?;
    Ok((experiment, root))
}

struct Resolver<'a> {
    root: &'a Node,
    files: &'a dyn Files,
    watch: &'a dyn Fn(&'static str, usize),
}

impl Resolver<'_> {
    fn at(&self, path: &[&str]) -> &Location {
        self.root.locate(path)
    }

    fn resolve(
        &self,
        mut experiment: Experiment,
        name: String,
    ) -> Result<Resolved, ExperimentError> {
        let semantics = match experiment.simulation.compat {
            Some(Compat::HpccNs3) => Semantics::HPCC_NS3,
            None => Semantics::CORRECTED,
        };
        (self.watch)("building the map", 0);
        let mut fabric = build_fabric(&experiment.fabric, self.root, self.files)?;
        let mut usual_mtu = Bytes(1000);
        let mut plane = None;
        if let Some(rails) = &experiment.rails {
            plane = Some(Arc::new(fabric.clone()));
            fabric = multi_plane(&fabric, &rails.rates).map_err(|error| self.of_rails(&error))?;
            usual_mtu = rails::usual_mtu();
        }
        let fabric = Arc::new(fabric);
        let mtu = experiment.simulation.mtu.unwrap_or(usual_mtu);
        let setup = |error: &SetupError| self.setup_error(error);
        let hosts = fabric.hosts().len();
        (self.watch)("finding routes", hosts);
        let network =
            Arc::new(Network::new(fabric, semantics, mtu).map_err(|error| setup(&error))?);
        (self.watch)("checking schemes", hosts);
        let mut warnings = Vec::new();
        let mut base = self.defaults(&mut experiment, &network, mtu)?;
        let mut schemes = self.schemes(&mut experiment, &network, &mut warnings);
        for scheme in &schemes {
            self.relations(scheme, &network, base.buffer, &mut warnings)?;
        }
        base.marks = self.marks(&experiment)?;
        if let Some(rails) = &mut experiment.rails {
            base.rails = Some(Arc::new(rails.fill(mtu)));
        }
        if let Some(TrafficSource::Spec(TrafficSpec::Multicast(spec))) = &experiment.traffic {
            if !experiment.job.is_empty() {
                let problem = Problem::Refused(
                    "groups of the generator `multicast` and of jobs cannot share the switches' tables".to_owned(),
                );
                return Err(ExperimentError::at(self.at(&["traffic"]), problem)
                    .with_hint("leave one of them out: a job has Bcasts of its own"));
            }
            let plan = multicast::plan(spec, &network.fabric).map_err(|problem| {
                ExperimentError::at(self.at(&["traffic"]), Problem::refused(&problem))
            })?;
            base.multicast = Some(Arc::new(plan));
        }

        let seeds = experiment
            .simulation
            .seeds
            .get_or_insert_with(|| vec![1])
            .clone();
        let first_seed = seeds.first().copied().unwrap_or(1);
        let traffic = match &experiment.traffic {
            Some(source) => self.traffic(source, &network, first_seed)?,
            None => Box::new(nothing(&[])),
        };
        jobs::check_without(
            &experiment,
            traffic.classes(),
            !traffic.has_dependencies(),
            self.root,
        )?;
        let twin = self.twin(&mut experiment, traffic.classes())?;
        let isolated = match &twin {
            Some(twin) => Some(self.traffic(twin, &network, first_seed)?),
            None => None,
        };
        if !experiment.job.is_empty() {
            (self.watch)("reading programs", hosts);
            let costs = self.jobs(&experiment, &network, plane.as_ref(), &mut schemes)?;
            (base.nic_gap, base.nic_in_order) = (costs.nic_gap, costs.nic_in_order);
        }
        let shares = experiment.job.len() > 1 || experiment.traffic.is_some();
        let simulation = &mut experiment.simulation;
        let alone = !experiment.job.is_empty() && *simulation.alone.get_or_insert(shares);
        let on_one_link = experiment.job.iter().map(|job| job.rails == Some(false));
        let on_one_link: Vec<bool> = on_one_link.collect();
        if let Some(rails) = &mut base.rails
            && on_one_link.contains(&true)
        {
            Arc::make_mut(rails).plain_classes = on_one_link;
        }
        let configs: Vec<RunConfig> = schemes
            .iter()
            .map(|scheme| with_scheme(&base, scheme, &experiment.schemes))
            .collect();
        for config in &configs {
            self.rehearse(&network, config, &experiment)?;
        }
        warnings.extend(switch::warning(&network, &configs));
        warnings.extend(too_impatient(&network, &base));

        let common = self.stamp(&experiment, &network)?;
        let hops = average_hops(&network);
        let window = experiment.traffic.as_ref().and_then(TrafficSource::window);
        let (mut runs, mut counts) = (Vec::new(), Vec::new());
        for (index, scheme) in schemes.iter().enumerate() {
            for &seed in &seeds {
                let takes_part =
                    |job: &usize| alone && !scheme.without.contains(&experiment.job[*job].name);
                let jobs = (0..experiment.job.len()).filter(takes_part);
                let twin = isolated.is_some().then_some(Variant::Isolated);
                let variants = [Variant::Loaded].into_iter().chain(twin);
                for variant in variants.chain(jobs.map(Variant::Alone)) {
                    let empty: Box<dyn Workload> = Box::new(nothing(&[]));
                    let workload = match variant {
                        Variant::Loaded => &traffic,
                        Variant::Isolated => isolated.as_ref().unwrap_or(&empty),
                        Variant::Alone(_) => &empty,
                    };
                    let name = variant_name(&variant, &experiment);
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
                    let load = match machine {
                        None => Counts::of(&network, workload.as_ref(), &base, hops, window),
                        Some(machine) => {
                            let both = Beside::new(machine, Counted::of(workload.as_ref()));
                            Counts::of(&network, &both, &base, hops, window)
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
        let settings = settings(self.root, &experiment, &network, &configs);
        let one_thread = one_thread(&network, &base, traffic.as_ref());
        let names = experiment.job.iter().map(|job| job.name.clone());
        Ok(Resolved {
            classes: names.chain(traffic.classes().iter().cloned()).collect(),
            traffic_classes: traffic.classes().to_vec(),
            expected: (
                traffic.expected_messages(),
                traffic.expected_bytes().map(|bytes| bytes.0),
            ),
            name,
            network,
            schemes,
            settings,
            runs,
            warnings,
            one_thread,
            counts,
            twin,
            base,
            experiment,
        })
    }

    fn setup_error(&self, error: &SetupError) -> ExperimentError {
        let at = match error {
            SetupError::BufferTooSmall { .. } | SetupError::NoRoom { .. } => {
                self.at(&["simulation", "buffer"])
            }
            SetupError::TooManyLinkRates { .. } | SetupError::TooManyHops { .. } => {
                self.at(&["simulation", "schemes"])
            }
            SetupError::Routing(_) | SetupError::TooFewHosts { .. } => self.at(&["fabric"]),
            SetupError::Rails { .. } => self.at(&["rails"]),
            SetupError::Undivided { .. }
            | SetupError::TooManyRanks { .. }
            | SetupError::Rank { .. }
            | SetupError::Elsewhere { .. } => self.at(&["simulation"]),
            SetupError::Group { .. }
            | SetupError::GroupMessage { .. }
            | SetupError::Offload { .. }
            | SetupError::OffloadRound { .. }
            | SetupError::RailMessage { .. } => self.at(&["traffic"]),
        };
        ExperimentError::at(at, Problem::refused(&error))
    }

    fn of_rails(&self, error: &dyn std::error::Error) -> ExperimentError {
        let problem = Problem::refused(&error);
        ExperimentError::at(self.at(&["rails"]), problem)
    }

    /// Fills in what the experiment leaves open, and gives the settings that all runs share.
    fn defaults(
        &self,
        experiment: &mut Experiment,
        network: &Network,
        mtu: Bytes,
    ) -> Result<RunConfig, ExperimentError> {
        let line_rate = network.environment.line_rate;
        let faults = find_faults(&experiment.simulation.faults, &network.fabric, self.root)?;
        let simulation = &mut experiment.simulation;
        let compat = simulation.compat.is_some();
        // Any scheme will do here: runs bring their own.
        let (scheme, _) = experiment
            .schemes
            .resolve(DEFAULT_SCHEMES[0], &network.environment)
            .ok_or_else(|| {
                ExperimentError::at(
                    self.at(&[]),
                    Problem::Refused("no schemes are built in".into()),
                )
            })?;
        let usual = RunConfig::new(scheme, 0, line_rate);
        let lowest = if compat {
            BitRate::from_gbps(1).min(line_rate)
        } else {
            usual.min_rate
        };
        let min_rate = *simulation.min_rate.get_or_insert(lowest);
        if min_rate > line_rate {
            let message = format!("{min_rate} is more than the hosts' links have ({line_rate})");
            let problem = Problem::Value {
                key: "`min_rate`: ".to_owned(),
                message,
            };
            return Err(ExperimentError::at(
                self.at(&["simulation", "min_rate"]),
                problem,
            ));
        }
        simulation.mtu = Some(mtu);
        let buffer = *simulation
            .buffer
            .get_or_insert_with(|| default_buffer(line_rate, compat));
        let lossless = *simulation.lossless.get_or_insert(true);
        let table = &experiment.switch;
        let mut config = RunConfig {
            mtu,
            buffer,
            buffers: table.resolve(&network.fabric, buffer, lossless, self.root)?,
            lossless,
            path_choice: *simulation
                .path_choice
                .get_or_insert_with(PathChoice::default),
            min_rate,
            reroute_delay: *simulation.reroute_delay.get_or_insert(usual.reroute_delay),
            end: simulation.end.map(|end| Time(end.0)),
            faults,
            ..usual
        };
        if !compat {
            config.retransmission_timeout = *simulation
                .retransmission_timeout
                .get_or_insert(config.retransmission_timeout);
            config.max_timeouts = *simulation.max_timeouts.get_or_insert(config.max_timeouts);
        }
        let jobs = experiment.job.len() as u16;
        let record = &mut experiment.record;
        config.record_acks = *record.acks.get_or_insert(false);
        config.record_paths = record.paths.unwrap_or(false);
        let blame = jobs > 0 && *record.blame.get_or_insert(true);
        config.record_delays = match record.delays {
            Some(true) => Some(1 << 8),
            // Classes of jobs come first.
            _ => blame.then_some(jobs),
        };
        config.port_series = self.port_series(record, &network.fabric)?;
        config.sample_interval = *record.sample_interval.get_or_insert(config.sample_interval);
        config.watch_from = *record.watch_from.get_or_insert(config.watch_from);
        let score = &mut experiment.score;
        score.weights = score.weights.as_ref().map(normalised);
        score.reading.get_or_insert_with(Reading::default);
        score.variance.get_or_insert_with(Variance::default);
        Ok(config)
    }

    fn port_series(
        &self,
        record: &RecordTable,
        fabric: &Fabric,
    ) -> Result<PortSeries, ExperimentError> {
        let Some(names) = &record.ports else {
            return Ok(record.busiest.map_or(PortSeries::None, PortSeries::Busiest));
        };
        let mut ports = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let at = self.root.item(&["record", "ports"], index);
            ports.extend(find_ports(fabric, name, at)?);
        }
        ports.sort_unstable();
        ports.dedup();
        if ports.len() > MAX_SERIES as usize {
            let message = format!(
                "{} ports are named, and {MAX_SERIES} can be recorded",
                ports.len()
            );
            let problem = Problem::Value {
                key: "`ports`: ".to_owned(),
                message,
            };
            return Err(ExperimentError::at(self.at(&["record", "ports"]), problem));
        }
        Ok(PortSeries::Ports(ports))
    }

    fn schemes(
        &self,
        experiment: &mut Experiment,
        network: &Network,
        warnings: &mut Vec<String>,
    ) -> Vec<SchemeRun> {
        let usual: &[&str] = match experiment.rails {
            Some(_) => &DEFAULT_ON_RAILS,
            None => &DEFAULT_SCHEMES,
        };
        let setups = &experiment.setup;
        let has_rails = experiment.rails.is_some();
        let travels = |setup: &SetupTable| setup.rails.unwrap_or(has_rails);
        let of_setup = |setup: &SetupTable| {
            let usual = if travels(setup) { "swift" } else { "none" };
            setup.scheme.clone().unwrap_or_else(|| usual.to_owned())
        };
        let names = if setups.is_empty() {
            let usual = || usual.iter().map(|name| (*name).to_owned()).collect();
            let given = &mut experiment.simulation.schemes;
            given.get_or_insert_with(usual).clone()
        } else {
            setups.iter().map(of_setup).collect()
        };
        if let Some(Value::Table(tables)) = self.root.find(&["schemes"]).map(|node| &node.value) {
            for table in tables
                .entries
                .iter()
                .filter(|table| !names.contains(&table.key))
            {
                warnings.push(format!(
                    "[schemes.{0}] is set, but {0} is not among the schemes",
                    table.key
                ));
            }
        }
        let resolve = |(index, scheme): (usize, String)| {
            let setup = experiment.setup.get(index);
            // Names were checked against the registry.
            let (parameters, effective) =
                experiment.schemes.resolve(&scheme, &network.environment)?;
            Some(SchemeRun {
                name: setup.map_or_else(|| scheme.clone(), |setup| setup.name.clone()),
                scheme,
                rails: setup.map_or(has_rails, travels),
                without: setup.map(|setup| setup.without.clone()).unwrap_or_default(),
                jobs: None,
                parameters,
                effective,
            })
        };
        names.into_iter().enumerate().filter_map(resolve).collect()
    }

    /// Gives each scheme its jobs; those that have them alike share them. Gives what hosts cost.
    fn jobs(
        &self,
        experiment: &Experiment,
        network: &Network,
        plane: Option<&Arc<Fabric>>,
        schemes: &mut [SchemeRun],
    ) -> Result<ReplayCosts, ExperimentError> {
        let placed = Placed::new(experiment, &network.fabric, self.root, self.files)?;
        let mut known: Vec<(Option<&SetupTable>, Arc<SetupJobs>)> = Vec::new();
        let alike = |a: Option<&SetupTable>, b: Option<&SetupTable>| {
            let switches = |one: Option<&SetupTable>| one.map(|it| (it.collectives, it.scheduling));
            switches(a) == switches(b)
        };
        for (index, scheme) in schemes.iter_mut().enumerate() {
            let setup = experiment.setup.get(index);
            let same = known.iter().find(|(other, _)| alike(*other, setup));
            let jobs = match same {
                Some((_, jobs)) => Arc::clone(jobs),
                None => {
                    let fabrics = (&network.fabric, plane);
                    Arc::new(placed.with_setup(experiment, setup, fabrics, self.root)?)
                }
            };
            known.push((setup, Arc::clone(&jobs)));
            scheme.jobs = Some(jobs);
        }
        Ok(*placed.costs())
    }

    /// Settings of a scheme that exclude each other, or that the switches' buffer makes impossible.
    fn relations(
        &self,
        scheme: &SchemeRun,
        network: &Network,
        buffer: Bytes,
        warnings: &mut Vec<String>,
    ) -> Result<(), ExperimentError> {
        let table = |key: &str| format!("[schemes.{}] `{key}`", scheme.scheme);
        let refused = |keys: &[&str], problem: String| {
            let paths = keys.iter().map(|key| ["schemes", &scheme.scheme, *key]);
            let mut given = paths.filter_map(|path| self.root.find(&path));
            let at = given.next().map_or(&self.root.at, |node| &node.at);
            let message = format!("in [schemes.{}] {problem}", scheme.scheme);
            let key = String::new();
            ExperimentError::at(at, Problem::Value { key, message })
        };
        if let Err(conflict) = scheme.parameters.validate() {
            return Err(refused(
                &[conflict.low.0, conflict.high.0],
                conflict.to_string(),
            ));
        }
        let usual = SchemeSettings::default().resolve(&scheme.scheme, &network.environment);
        let usual = usual.map(|(_, effective)| effective).unwrap_or_default();
        for parameter in &scheme.effective {
            let threshold = parameter
                .key
                .starts_with("ecn_")
                .then(|| parameter.value.parse::<Bytes>());
            let Some(Ok(threshold)) = threshold else {
                continue;
            };
            if threshold <= buffer {
                continue;
            }
            let (key, value) = (parameter.key, &parameter.value);
            let above = format!("({value}) is more than `buffer` of [simulation] ({buffer})");
            // A small buffer alone must not ask for every threshold to be set.
            if usual
                .iter()
                .any(|one| one.key == key && one.value == *value)
            {
                warnings.push(format!("{} {above}", table(key)));
                continue;
            }
            return Err(refused(&[key], format!("`{key}` {above}"))
                .with_hint("no queue becomes that long: lower the threshold or raise `buffer`"));
        }
        Ok(())
    }

    fn marks(&self, experiment: &Experiment) -> Result<Option<Arc<MarkReplay>>, ExperimentError> {
        let Some(file) = &experiment.simulation.ecn_marks else {
            return Ok(None);
        };
        let at = self.at(&["simulation", "ecn_marks"]);
        let text = tree::read_text(self.files, file, at)?;
        let marks = MarkReplay::parse(&text, file)
            .map_err(|error| ExperimentError::in_named_file(at, Problem::refused(&error)))?;
        Ok(Some(Arc::new(marks)))
    }

    fn traffic(
        &self,
        source: &TrafficSource,
        network: &Network,
        seed: u64,
    ) -> Result<Box<dyn Workload>, ExperimentError> {
        build_traffic(source, network, seed, self.files).map_err(|error| match &error {
            TrafficError::Spec { field, problem } => {
                let problem = Problem::Value {
                    key: format!("`{field}`: "),
                    message: clip(problem),
                };
                ExperimentError::at(self.at(&["traffic", field]), problem)
            }
            // A file that cannot be opened is the fault of the line that names it.
            TrafficError::Input {
                place,
                problem: raddle_workload::Problem::Unreadable { problem },
            } if place.unit == raddle_workload::PlaceUnit::File => {
                let (file, reason) = (place.source.clone(), clip(problem));
                let at = self.at(&["traffic", "file"]);
                ExperimentError::at(at, Problem::Unreadable { file, reason })
                    .with_hint("files are found relative to the file that names them")
            }
            TrafficError::Input { .. } => ExperimentError::in_named_file(
                self.at(&["traffic", "file"]),
                Problem::refused(&error),
            ),
            _ => ExperimentError::at(self.at(&["traffic"]), Problem::refused(&error)),
        })
    }

    fn twin(
        &self,
        experiment: &mut Experiment,
        classes: &[String],
    ) -> Result<Option<TrafficSource>, ExperimentError> {
        let twin = match &experiment.traffic {
            None => None,
            Some(TrafficSource::File(_)) if !has_isolated_twin(classes) => None,
            Some(source) => source.isolated(),
        };
        let wanted = experiment.simulation.isolated;
        if wanted == Some(true) && twin.is_none() {
            let message = "this traffic has no tested flows among others".to_owned();
            let problem = Problem::Value {
                key: "`isolated`: ".to_owned(),
                message,
            };
            return Err(
                ExperimentError::at(self.at(&["simulation", "isolated"]), problem)
                    .with_hint("remove it, or use traffic with classes that begin with `tested-`"),
            );
        }
        let of_jobs = !experiment.job.is_empty();
        let default = twin.is_some() && experiment.simulation.ecn_marks.is_none() && !of_jobs;
        let isolated = wanted.unwrap_or(default);
        experiment.simulation.isolated = Some(isolated);
        Ok(twin.filter(|_| isolated))
    }

    /// Sets a run up without traffic, so that what cannot work is said before anything runs.
    fn rehearse(
        &self,
        network: &Network,
        config: &RunConfig,
        experiment: &Experiment,
    ) -> Result<(), ExperimentError> {
        if let (Some(table), Some(rails)) = (&experiment.rails, &config.rails) {
            table.check(rails).map_err(|error| self.of_rails(&error))?;
        }
        let mut nothing = FlowList::new(Vec::new(), vec!["flow".to_owned()]);
        simulate(
            network,
            config,
            &mut nothing,
            &mut Discard,
            &Progress::default(),
        )
        .map(|_| ())
        .map_err(|error| self.setup_error(&error))
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

/// What a run with a scheme is told. Rails have the scheme too, for each of them alone.
fn with_scheme(base: &RunConfig, scheme: &SchemeRun, settings: &SchemeSettings) -> RunConfig {
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

fn stem(path: &str) -> String {
    let stem = Path::new(path)
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    stem.filter(|stem| !stem.is_empty())
        .unwrap_or_else(|| "experiment".to_owned())
}

/// A warning where senders start again before anything can come back.
fn too_impatient(network: &Network, base: &RunConfig) -> Option<String> {
    let (timeout, round_trip) = (base.retransmission_timeout, network.environment.base_rtt);
    let has_timer = network.semantics.retransmission_timer && base.rails.is_none();
    (has_timer && timeout < round_trip).then(|| {
        format!(
            "retransmission_timeout {timeout} is shorter than a round trip on the idle fabric ({round_trip}): flows may give up before anything comes back"
        )
    })
}
