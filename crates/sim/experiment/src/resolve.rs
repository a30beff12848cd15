//! From a checked experiment to one that can run: the network, every scheme's parameters, all settings with their source.

mod defaults;
mod runs;
mod schemes;

use std::{path::Path, sync::Arc};

use raddle_engine::{
    MarkReplay, Network, RunConfig, Semantics, SetupError, check_run, one_thread,
    rails::multi_plane,
};
use raddle_text::{
    Files, InputError as ExperimentError, Location, Node, Problem, clip, read, tree,
};
use raddle_units::Bytes;
use raddle_workload::{
    FlowList, TrafficError, TrafficSource, TrafficSpec, Workload, has_isolated_twin,
};

use self::{defaults::too_impatient, runs::Loads};
use super::{
    check::check,
    fields::{Compat, Experiment},
    jobs, multicast, rails,
    resolved::{Resolved, nothing, with_scheme},
    settings::settings,
    sources::{build_fabric, build_traffic, rebase_files},
    switch,
};

/// Schemes that are compared where the experiment names none: the paper's.
const DEFAULT_SCHEMES: [&str; 6] = ["none", "dctcp", "dcqcn", "timely", "hpcc", "pint"];
/// The same for rails: the real driver's.
const DEFAULT_ON_RAILS: [&str; 1] = ["swift"];

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

        let seeds = experiment.simulation.seeds.get_or_insert_with(|| vec![1]);
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
        if !experiment.job.is_empty() {
            experiment.simulation.alone.get_or_insert(shares);
        }
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
            self.check(&network, config, &experiment)?;
        }
        warnings.extend(switch::warning(&network, &configs));
        warnings.extend(too_impatient(&network, &base));

        let loads = Loads {
            traffic: traffic.as_ref(),
            isolated: isolated.as_deref(),
        };
        let (runs, counts) = self.runs(&experiment, &network, &schemes, &base, &loads)?;
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

    /// Says what cannot work before anything runs.
    fn check(
        &self,
        network: &Network,
        config: &RunConfig,
        experiment: &Experiment,
    ) -> Result<(), ExperimentError> {
        if let (Some(table), Some(rails)) = (&experiment.rails, &config.rails) {
            table.check(rails).map_err(|error| self.of_rails(&error))?;
        }
        let nothing = FlowList::new(Vec::new(), vec!["flow".to_owned()]);
        check_run(network, config, &nothing).map_err(|error| self.setup_error(&error))
    }
}

fn stem(path: &str) -> String {
    let stem = Path::new(path)
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    stem.filter(|stem| !stem.is_empty())
        .unwrap_or_else(|| "experiment".to_owned())
}
