//! Everything that stays the same while one trace is replayed with several schedules and seeds.

use std::sync::Arc;

use raddle_fabric::Fabric;
use raddle_schedule::{Scope, Settings, Variant};
use raddle_text::check_value;
use raddle_trace::{Interval, Times, Trace};
use raddle_transport::cc::SchemeSettings;
use raddle_units::NodeId;

use super::{
    Algorithms, Plan, Prepared, Program, RankPlacement, ReplayError, ReplaySettings, Replayed,
    machine::one_thread, plan::is_remote, replay, unknown_scheme,
};
use raddle_engine::{Network, Progress, Semantics};

/// A trace on a fabric.
#[derive(Debug)]
pub struct Session {
    placed: Arc<Placed>,
    settings: ReplaySettings,
}

/// What is the same under all schemes.
#[derive(Debug)]
struct Placed {
    recorded: Trace,
    prepared: Prepared,
    network: Network,
    hosts: Vec<u32>,
    nodes: Vec<NodeId>,
}

/// A trace with its messages as one variant of scheduling has them.
#[derive(Debug)]
pub struct Scheduled {
    program: Program,
    /// Messages of the program between hosts, without those of collectives.
    pub messages: u64,
    /// What is issued instead: messages and joined messages.
    pub parcels: u64,
    /// Joined messages among them.
    pub joined: u64,
}

/// Where the ranks of a replay are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupied {
    /// Hosts that have a rank.
    pub hosts: usize,
    /// Hosts of the map.
    pub map_hosts: usize,
    /// Most ranks of a host.
    pub most_ranks: usize,
}

/// The scope of joining by its name ([`Scope::name`]).
///
/// # Errors
/// [`ReplayError::UnknownScope`]: there is no such name. [`ReplayError::Scope`]: a replay cannot join in this scope.
pub fn scope(name: &str) -> Result<Scope, ReplayError> {
    match Scope::named(name) {
        Some(Scope::NodeToNode) => Err(ReplayError::Scope),
        Some(scope) => Ok(scope),
        None => Err(ReplayError::UnknownScope {
            name: name.chars().take(30).collect(),
        }),
    }
}

fn check_scheme(name: &str, network: &Network) -> Result<(), ReplayError> {
    match SchemeSettings::default().resolve(name, &network.environment) {
        Some(_) => Ok(()),
        None => Err(unknown_scheme(name)),
    }
}

impl Session {
    /// Puts the ranks of a trace on the hosts of a fabric.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn new(
        trace: Trace,
        fabric: Fabric,
        placement: RankPlacement,
        settings: ReplaySettings,
    ) -> Result<Self, ReplayError> {
        check_value(&settings)?;
        let hosts = placement.hosts(&trace, &fabric)?;
        let nodes = RankPlacement::nodes(&hosts, &fabric);
        let network = Network::new(Arc::new(fabric), Semantics::CORRECTED, settings.costs.mtu)?;
        check_scheme(&settings.scheme, &network)?;
        let placed = Placed {
            prepared: Prepared::new(&trace, &settings.algorithms)?,
            recorded: trace,
            network,
            hosts,
            nodes,
        };
        Ok(Self {
            placed: Arc::new(placed),
            settings,
        })
    }

    /// The same under another scheme, which shares all else: what one has scheduled the other can run.
    ///
    /// # Errors
    /// [`ReplayError::Scheme`]: there is no such scheme.
    pub fn under(&self, scheme: &str) -> Result<Self, ReplayError> {
        check_scheme(scheme, &self.placed.network)?;
        Ok(Self {
            placed: Arc::clone(&self.placed),
            settings: ReplaySettings {
                scheme: scheme.to_owned(),
                ..self.settings.clone()
            },
        })
    }

    /// Schedules all supersteps: the work whose time is told beside the gain. `None` is the program as it is, whose messages
    /// leave when it sends them.
    ///
    /// # Errors
    /// Too many messages.
    pub fn plan(&self, settings: &Settings<'_>) -> Result<Option<Plan>, ReplayError> {
        if settings.variant == Variant::None {
            return Ok(None);
        }
        Plan::new(&self.placed.prepared, &self.placed.hosts, settings).map(Some)
    }

    /// The program with the messages of a plan.
    #[must_use]
    pub fn scheduled(&self, plan: Option<&Plan>) -> Scheduled {
        let all = self.placed.prepared.pairing.messages();
        let supersteps = &self.placed.prepared.supersteps;
        let messages = (0..supersteps.len())
            .flat_map(|step| supersteps.messages(step))
            .filter(|&&message| is_remote(&self.placed.hosts, &all[message as usize]))
            .count() as u64;
        Scheduled {
            program: Program::new(&self.placed.prepared, plan, &self.settings.costs),
            messages,
            parcels: plan.map_or(messages, |plan| plan.len() as u64),
            joined: plan.map_or(0, Plan::joined),
        }
    }

    /// Replays it with the noise of a seed. The threads that the run may use change nothing that it gives.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn run(
        &self,
        scheduled: &Scheduled,
        seed: u64,
        threads: usize,
        progress: &Progress,
    ) -> Result<Replayed, ReplayError> {
        let settings = ReplaySettings {
            seed,
            ..self.settings.clone()
        };
        replay(
            &self.placed.network,
            &scheduled.program,
            &self.placed.nodes,
            &settings,
            threads,
            progress,
        )
    }

    /// Why its runs keep to one thread however many they may use, if they do.
    #[must_use]
    pub fn one_thread(&self) -> Option<&'static str> {
        one_thread(&self.placed.nodes, &self.settings)
    }

    /// Which messages its collectives are.
    #[must_use]
    pub const fn algorithms(&self) -> &Algorithms {
        &self.settings.algorithms
    }

    /// Where the ranks are.
    #[must_use]
    pub fn occupied(&self) -> Occupied {
        let mut ranks = vec![0; self.placed.network.fabric.hosts().len()];
        for &host in &self.placed.hosts {
            ranks[host as usize] += 1;
        }
        Occupied {
            hosts: ranks.iter().filter(|&&ranks| ranks > 0).count(),
            map_hosts: ranks.len(),
            most_ranks: ranks.into_iter().max().unwrap_or(0),
        }
    }

    /// How long the program took when it was recorded.
    #[must_use]
    pub fn recorded(&self) -> Times {
        Times::new(&self.placed.recorded)
    }

    /// The trace as if it had been recorded here: its calls with the times of a run, its ranks where they are now. The map is
    /// left out if they have moved.
    #[must_use]
    pub fn with_times(&self, calls: &[Vec<Interval>]) -> Trace {
        let mut trace = self.placed.recorded.clone();
        for (event, &at) in trace.ranks.iter_mut().flatten().zip(calls.iter().flatten()) {
            event.at = at;
        }
        if trace.placement != self.placed.hosts {
            let last = self.placed.hosts.iter().max().map_or(0, |&last| last + 1);
            trace.hosts = (1..=last).map(|host| format!("host {host}")).collect();
            trace.placement.clone_from(&self.placed.hosts);
            trace.fabric.clear();
        }
        "raddle replay".clone_into(&mut trace.mpi);
        trace
    }
}
