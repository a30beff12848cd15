//! Everything that stays the same while one trace is replayed with several schedules and seeds.

use std::sync::Arc;

use raddle_fabric::Fabric;
use raddle_schedule::{Scope, Settings, Variant};
use raddle_text::check_value;
use raddle_trace::{Interval, Times, Trace};
use raddle_transport::cc::SchemeSettings;
use raddle_units::NodeId;

use super::{
    Plan, Prepared, Program, RankPlacement, ReplayError, ReplaySettings, Replayed, plan::is_remote,
    replay, unknown_scheme,
};
use raddle_engine::{Network, Progress, Semantics};

/// A trace on a fabric.
#[derive(Debug)]
pub struct Session {
    recorded: Trace,
    prepared: Prepared,
    network: Network,
    hosts: Vec<u32>,
    nodes: Vec<NodeId>,
    settings: ReplaySettings,
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
        let name = &settings.scheme;
        if SchemeSettings::default()
            .resolve(name, &network.environment)
            .is_none()
        {
            return Err(unknown_scheme(name));
        }
        Ok(Self {
            prepared: Prepared::new(&trace)?,
            recorded: trace,
            network,
            hosts,
            nodes,
            settings,
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
        Plan::new(&self.prepared, &self.hosts, settings).map(Some)
    }

    /// The program with the messages of a plan.
    #[must_use]
    pub fn scheduled(&self, plan: Option<&Plan>) -> Scheduled {
        let all = self.prepared.pairing.messages();
        let supersteps = &self.prepared.supersteps;
        let messages = (0..supersteps.len())
            .flat_map(|step| supersteps.messages(step))
            .filter(|&&message| is_remote(&self.hosts, &all[message as usize]))
            .count() as u64;
        Scheduled {
            program: Program::new(&self.prepared, plan, &self.settings.costs),
            messages,
            parcels: plan.map_or(messages, |plan| plan.len() as u64),
            joined: plan.map_or(0, Plan::joined),
        }
    }

    /// Replays it with the noise of a seed.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn run(
        &self,
        scheduled: &Scheduled,
        seed: u64,
        progress: &Progress,
    ) -> Result<Replayed, ReplayError> {
        let settings = ReplaySettings {
            seed,
            ..self.settings.clone()
        };
        replay(
            &self.network,
            &scheduled.program,
            &self.nodes,
            &settings,
            progress,
        )
    }

    /// Where the ranks are.
    #[must_use]
    pub fn occupied(&self) -> Occupied {
        let mut ranks = vec![0; self.network.fabric.hosts().len()];
        for &host in &self.hosts {
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
        Times::new(&self.recorded)
    }

    /// The trace as if it had been recorded here: its calls with the times of a run, its ranks where they are now. The map is
    /// left out if they have moved.
    #[must_use]
    pub fn with_times(&self, calls: &[Vec<Interval>]) -> Trace {
        let mut trace = self.recorded.clone();
        for (event, &at) in trace.ranks.iter_mut().flatten().zip(calls.iter().flatten()) {
            event.at = at;
        }
        if trace.placement != self.hosts {
            let last = self.hosts.iter().max().map_or(0, |&last| last + 1);
            trace.hosts = (1..=last).map(|host| format!("host {host}")).collect();
            trace.placement.clone_from(&self.hosts);
            trace.fabric.clear();
        }
        "raddle replay".clone_into(&mut trace.mpi);
        trace
    }
}
