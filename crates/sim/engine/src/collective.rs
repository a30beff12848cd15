//! How long one collective takes on a machine: ranks with costs on hosts, messages through the simulated network.
//!
//! The figure of merit is that of the OSU benchmarks: the mean over ranks of the time that a rank is in the call. All ranks start
//! at once, or, as in OSU's loop, when they are through with a barrier.

use std::sync::Arc;

use raddle_fabric::{Fabric, FabricError, LeafSpine};
use raddle_offload::published::Transport;
use raddle_transport::cc::SchemeSettings;
use raddle_units::{BitRate, Bytes, NodeId, Span};
use raddle_wire::compat::RcLayout;
use raddle_workload::{
    MessageGraph, TrafficError, Workload,
    collective::{
        Binding, CollectiveGraph, Dies, HostCosts, Hosts, LeaderTree, Script, allreduce_offloaded,
        allreduce_recursive_doubling, barrier,
    },
};
use serde::{Deserialize, Serialize};

use crate::{
    Discard, Network, Offload, OffloadGroup, OffloadProtocol, Progress, RunConfig, Semantics,
    SetupError, simulate,
};

/// Hosts, network and costs, apart from their number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Sockets of a host.
    pub sockets: u32,
    /// Which of them a rank is on. Default `even`.
    #[serde(default)]
    pub binding: Binding,
    /// Dies of a socket. Default: its ranks are all alike.
    #[serde(default)]
    pub dies: Option<Dies>,
    /// Rate of a host's link.
    pub host_rate: BitRate,
    /// Rate of a link between a leaf and a spine.
    pub fabric_rate: BitRate,
    /// Spine switches, each joined to every leaf.
    pub spines: u32,
    /// Delay of a link, and of the switch at its end.
    pub delay: Span,
    /// Costs of a host.
    pub costs: HostCosts,
    /// Least time between the starts of two messages of a network card, and what it grows by per byte on the wire.
    pub nic_gap: Span,
    /// See [`Self::nic_gap`].
    pub nic_gap_per_byte: Span,
    /// Time of a switch's unit for reductions per packet. Default 0.
    #[serde(default)]
    pub compute: Span,
    /// Packets that a switch's unit works on at the same time. Default 1.
    #[serde(default = "one")]
    pub units: u32,
    /// What leaders and switches speak. Default `native`.
    #[serde(default)]
    pub protocol: Spoken,
    /// How ranks of a host and their leader reach each other. Default `text`.
    #[serde(default)]
    pub tree: LeaderTree,
    /// Each rank starts when it is through with a barrier, and its time counts from there. Default: all start at once.
    #[serde(default)]
    pub after_barrier: bool,
}

const fn one() -> u32 {
    1
}

/// A protocol of leaders and switches, and what its messages travel in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spoken {
    /// [`OffloadProtocol::Native`].
    #[default]
    Native,
    /// [`OffloadProtocol::Published`] on unreliable datagrams.
    PublishedUd,
    /// [`OffloadProtocol::Published`] on reliable connections.
    PublishedRc,
}

impl From<Spoken> for OffloadProtocol {
    fn from(spoken: Spoken) -> Self {
        match spoken {
            Spoken::Native => Self::Native,
            Spoken::PublishedUd => Self::Published(Transport::Ud),
            Spoken::PublishedRc => Self::Published(Transport::Rc(RcLayout::Code)),
        }
    }
}

/// Who computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The ranks, by recursive doubling.
    Plain,
    /// The switches; a leader on each host.
    Node,
    /// The switches; a leader on each socket of each host.
    Socket,
}

/// One Allreduce.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allreduce {
    /// Hosts.
    pub hosts: u32,
    /// Hosts on a leaf switch; a divisor of `hosts`.
    pub hosts_per_leaf: u32,
    /// Ranks of a host.
    pub ranks_per_host: u32,
    /// Bytes of a rank's operand.
    pub bytes: u64,
    /// Who computes.
    pub way: Way,
}

/// How long it took.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CollectiveTime {
    /// Mean over ranks, in microseconds.
    pub mean_us: f64,
    /// Of the rank that takes longest, in microseconds.
    pub max_us: f64,
}

/// Why a collective cannot be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectiveError {
    /// The hosts do not fill their leaves.
    #[error("{hosts} hosts do not fill leaves of {hosts_per_leaf}")]
    Leaves {
        /// Hosts.
        hosts: u32,
        /// Hosts on a leaf.
        hosts_per_leaf: u32,
    },
    /// The map cannot be built.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// The messages cannot be made.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// The network cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A rank was not through when the run ended.
    #[error("rank {rank} did not finish")]
    Stuck {
        /// The rank.
        rank: usize,
    },
}

impl Allreduce {
    /// Simulates it.
    ///
    /// # Errors
    /// [`CollectiveError`].
    pub fn run(&self, machine: &Machine) -> Result<CollectiveTime, CollectiveError> {
        let network = self.network(machine)?;
        let ranks = self.hosts * self.ranks_per_host;
        let leaders = match self.way {
            Way::Plain => 0,
            Way::Node => 1,
            Way::Socket => machine.sockets.clamp(1, self.ranks_per_host.max(1)),
        };
        let mut config = config(&network, machine);
        let script = if leaders == 0 {
            allreduce_recursive_doubling(ranks, self.bytes)
        } else {
            let group = self.group(&network.fabric, leaders);
            config.offload = Some(Arc::new(Offload {
                protocol: machine.protocol.into(),
                units: machine.units,
                ..Offload::new(vec![group], machine.compute)
            }));
            let (hosts, ranks) = (self.hosts, self.ranks_per_host);
            allreduce_offloaded(hosts, ranks, leaders, machine.tree, self.bytes)
        };
        let hosts = Hosts {
            nodes: network.fabric.hosts().to_vec(),
            ranks_per_host: self.ranks_per_host,
            sockets: machine.sockets,
            binding: machine.binding,
            dies: machine.dies,
            costs: machine.costs,
        };
        let before = if machine.after_barrier {
            barrier(ranks)
        } else {
            Script::new(ranks)
        };
        drive(&network, &config, &hosts, before, script)
    }

    /// All leaders, below the only leaf or the first spine.
    fn group(&self, fabric: &Fabric, leaders: u32) -> OffloadGroup {
        let hosts = fabric.hosts();
        let members = hosts
            .iter()
            .flat_map(|&host| std::iter::repeat_n(host, leaders as usize));
        let leaves = self.hosts / self.hosts_per_leaf;
        // Nodes of a leaf-spine fabric: hosts, leaves, spines.
        let first = hosts.len() as u32;
        let root = if leaves == 1 { first } else { first + leaves };
        OffloadGroup {
            members: members.collect(),
            root: NodeId(root),
        }
    }

    fn network(&self, machine: &Machine) -> Result<Network, CollectiveError> {
        let (hosts, hosts_per_leaf) = (self.hosts, self.hosts_per_leaf);
        if hosts_per_leaf == 0 || !hosts.is_multiple_of(hosts_per_leaf) {
            return Err(CollectiveError::Leaves {
                hosts,
                hosts_per_leaf,
            });
        }
        let fabric = LeafSpine {
            leaves: hosts / hosts_per_leaf,
            spines: machine.spines,
            hosts_per_leaf,
            links_per_spine: 1,
            host_rate: machine.host_rate,
            fabric_rate: machine.fabric_rate,
            delay: machine.delay,
            radix: None,
        };
        let fabric = Arc::new(fabric.build()?);
        Ok(Network::new(fabric, Semantics::CORRECTED, Bytes(1000))?)
    }
}

/// Small messages meet no congestion control: all start at line rate.
fn config(network: &Network, machine: &Machine) -> RunConfig {
    let (scheme, _) = SchemeSettings::default()
        .resolve("none", &network.environment)
        .expect("the scheme `none` exists and has no settings");
    RunConfig {
        sample_interval: Span::ZERO,
        nic_gap: machine.nic_gap,
        nic_gap_per_byte: machine.nic_gap_per_byte,
        ..RunConfig::new(scheme, 1, machine.host_rate)
    }
}

fn drive(
    network: &Network,
    config: &RunConfig,
    hosts: &Hosts,
    before: Script,
    timed: Script,
) -> Result<CollectiveTime, CollectiveError> {
    let actions: Vec<usize> = (0..before.size())
        .map(|rank| before.rank(rank).len())
        .collect();
    let made: CollectiveGraph = hosts.graph(&before.then(timed))?;
    let mut graph: MessageGraph = made.graph.clone();
    if graph.next_start().is_some() {
        simulate(
            network,
            config,
            &mut graph,
            &mut Discard,
            &Progress::default(),
        )?;
    }
    let starts = made.ends_after(&graph, |rank| actions[rank]);
    let mut spans = Vec::with_capacity(actions.len());
    for (rank, (start, end)) in starts.into_iter().zip(made.ends(&graph)).enumerate() {
        let (Some(start), Some(end)) = (start, end) else {
            return Err(CollectiveError::Stuck { rank });
        };
        spans.push(end.since(start));
    }
    let us = |span: Span| span.0 as f64 / 1e6;
    let total: f64 = spans.iter().copied().map(us).sum();
    Ok(CollectiveTime {
        mean_us: total / spans.len().max(1) as f64,
        max_us: spans.into_iter().max().map_or(0.0, us),
    })
}
