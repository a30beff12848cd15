//! Where ranks sit, what their actions cost, and the graph that follows.

use std::{
    collections::{BTreeMap, VecDeque},
    num::NonZeroU32,
};

use raddle_text::at_most;
use raddle_units::{Bytes, NodeId, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Action, Script};
use crate::{GraphBuilder, MessageGraph, OffloadId, Step, TrafficError};

/// Costs of a host's software and memory, after LogGP (Alexandrov et al. 1995): overheads `o` occupy a rank, latencies `L`
/// do not, `G` per byte is in the overheads. Latency and gap of the network itself are the simulator's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostCosts {
    /// A rank hands a message to the network card.
    #[schemars(transform = at_most("1s"))]
    pub send_overhead: Span,
    /// A rank takes a message from the network card, and combines it.
    #[schemars(transform = at_most("1s"))]
    pub receive_overhead: Span,
    /// Copying between a rank and the card, per byte, at either end.
    #[schemars(transform = at_most("1us"))]
    pub copy_per_byte: Span,
    /// A rank writes or reads a message in shared memory.
    #[schemars(transform = at_most("1s"))]
    pub local_overhead: Span,
    /// The same, per byte, at either end.
    #[schemars(transform = at_most("1us"))]
    pub local_copy_per_byte: Span,
    /// From a rank's write until another of its socket sees it.
    #[schemars(transform = at_most("1s"))]
    pub socket_latency: Span,
    /// From a rank's write until one of another socket sees it.
    #[schemars(transform = at_most("1s"))]
    pub cross_latency: Span,
    /// What each further rank of its socket adds to `local_overhead`: ranks share caches and memory.
    #[schemars(transform = at_most("1s"))]
    pub contention_per_rank: Span,
    /// Bytes that MPI and its transport add to a message on the wire.
    #[schemars(transform = at_most("64KiB"))]
    pub envelope: Bytes,
}

impl Default for HostCosts {
    /// A processor of 2014 with a network of that time, in round numbers: 1.2 us of overheads and latencies per small
    /// message, copies at 10 GB/s.
    fn default() -> Self {
        Self {
            send_overhead: Span::from_ns(400),
            receive_overhead: Span::from_ns(400),
            copy_per_byte: Span(100),
            local_overhead: Span::from_ns(150),
            local_copy_per_byte: Span(100),
            socket_latency: Span::from_ns(130),
            cross_latency: Span::from_ns(290),
            contention_per_rank: Span::ZERO,
            envelope: Bytes(32),
        }
    }
}

impl HostCosts {
    /// What a message in shared memory costs a rank at its end, besides its bytes, if so many ranks share its socket or die.
    #[must_use]
    pub fn local_overhead_among(&self, ranks: u64) -> Span {
        self.local_overhead + self.contention_per_rank * ranks.saturating_sub(1)
    }
}

/// On which socket of a host its ranks are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// Each socket has an equal share, in order of ranks.
    #[default]
    Even,
    /// Cores in order (`mpirun --map-by core`); so many of them share a socket.
    Fill {
        /// Cores of a socket.
        cores: u32,
    },
    /// By turns (`mpirun --map-by socket`).
    Turns,
}

/// Cores of a socket that share a cache: a socket's ranks, in their order, fill one die after the other. They contend with
/// those of their die, not of their socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dies {
    /// Cores of each, at least 1.
    pub cores: NonZeroU32,
    /// From a rank's write until one of another die of its socket sees it.
    pub latency: Span,
}

/// Ranks on hosts: host h has `ranks_per_host` ranks from h * `ranks_per_host` on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hosts {
    /// The hosts.
    pub nodes: Vec<NodeId>,
    /// Ranks on each.
    pub ranks_per_host: u32,
    /// Sockets of each.
    pub sockets: u32,
    /// Which of them a rank is on.
    pub binding: Binding,
    /// Dies of a socket. None: its ranks are all alike.
    pub dies: Option<Dies>,
    /// Costs, the same everywhere.
    pub costs: HostCosts,
}

/// A script as a graph, with the last step of every rank's actions.
#[derive(Clone, Debug)]
pub struct CollectiveGraph {
    /// The messages and gaps.
    pub graph: MessageGraph,
    ends: Vec<Vec<Step>>,
}

impl CollectiveGraph {
    /// When each rank is through, once it is; a rank that has nothing to do is through at 0.
    pub fn ends(&self, graph: &MessageGraph) -> Vec<Option<Time>> {
        self.ends_after(graph, |rank| self.ends[rank].len())
    }

    /// When each rank is through with its first `actions(rank)` actions, once it is; 0 for none.
    ///
    /// # Panics
    /// If it has fewer.
    pub fn ends_after(
        &self,
        graph: &MessageGraph,
        actions: impl Fn(usize) -> usize,
    ) -> Vec<Option<Time>> {
        let end = |(rank, ends): (usize, &Vec<Step>)| match actions(rank).checked_sub(1) {
            Some(last) => graph.gap_end(ends[last]),
            None => Some(Time::ZERO),
        };
        self.ends.iter().enumerate().map(end).collect()
    }
}

impl Hosts {
    /// Where each of a host's ranks is, counted within the host.
    fn places(&self) -> Vec<Place> {
        let mut on_socket: BTreeMap<u32, u32> = BTreeMap::new();
        let place = |within| {
            let socket = self.socket(within);
            let before = on_socket.entry(socket).or_default();
            let die = self.dies.map_or(0, |dies| *before / dies.cores);
            *before += 1;
            Place { socket, die }
        };
        (0..self.ranks_per_host).map(place).collect()
    }

    /// The socket of a host's rank, counted within the host.
    fn socket(&self, within: u32) -> u32 {
        let sockets = self.sockets.max(1);
        match self.binding {
            Binding::Even => within * sockets / self.ranks_per_host,
            Binding::Fill { cores } => within / cores.max(1),
            Binding::Turns => within % sockets,
        }
    }

    /// From a rank's write until another of its host sees it.
    fn latency(&self, from: Place, to: Place) -> Span {
        match self.dies {
            _ if from.socket != to.socket => self.costs.cross_latency,
            Some(dies) if from.die != to.die => dies.latency,
            _ => self.costs.socket_latency,
        }
    }

    /// What the script becomes on these hosts. An [`Action::Offload`] is a message to [`OffloadId`] `member`.
    ///
    /// # Errors
    /// Ranks beyond the hosts; ranks that wait for each other or for nothing.
    pub fn graph(&self, script: &Script) -> Result<CollectiveGraph, TrafficError> {
        let ranks = script.size();
        let room = self.nodes.len() as u64 * u64::from(self.ranks_per_host);
        if self.ranks_per_host == 0 || u64::from(ranks) > room {
            let problem = format!("{ranks} ranks do not fit on hosts with room for {room}");
            return Err(TrafficError::spec("ranks", problem));
        }
        let places = self.places();
        let mut build = Build {
            hosts: self,
            local_overheads: local_overheads(&places, &self.costs),
            places,
            graph: GraphBuilder::new(),
            ends: vec![Vec::new(); ranks as usize],
            mail: BTreeMap::new(),
        };
        let mut at = vec![0; ranks as usize];
        loop {
            let mut moved = false;
            for rank in 0..ranks {
                let actions = script.rank(rank);
                while let Some(action) = actions.get(at[rank as usize]) {
                    if !build.add(rank, *action) {
                        break;
                    }
                    at[rank as usize] += 1;
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        if let Some(rank) = (0..ranks).find(|&rank| at[rank as usize] < script.rank(rank).len()) {
            let problem = format!("rank {rank} waits for a message that nobody can send");
            return Err(TrafficError::spec("script", problem));
        }
        Ok(CollectiveGraph {
            graph: build.graph.finish()?,
            ends: build.ends,
        })
    }
}

/// Where a rank is on its host. Ranks of one place share a cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Place {
    socket: u32,
    /// Of its socket.
    die: u32,
}

/// What a message in shared memory costs each of a host's ranks besides its bytes.
fn local_overheads(places: &[Place], costs: &HostCosts) -> Vec<Span> {
    let mut ranks: BTreeMap<Place, u64> = BTreeMap::new();
    for &place in places {
        *ranks.entry(place).or_default() += 1;
    }
    let overhead = |place| costs.local_overhead_among(ranks[place]);
    places.iter().map(overhead).collect()
}

struct Build<'a> {
    hosts: &'a Hosts,
    /// By rank within its host.
    places: Vec<Place>,
    /// By rank within its host.
    local_overheads: Vec<Span>,
    graph: GraphBuilder,
    /// The last step of each action, by rank.
    ends: Vec<Vec<Step>>,
    /// What was sent and not received, with its size, by (sender, receiver).
    mail: BTreeMap<(u32, u32), VecDeque<(Step, u64)>>,
}

impl Build<'_> {
    /// A gap in the rank's own time, after its last action and `after`.
    fn occupy(&mut self, rank: u32, span: Span, after: Option<Step>) -> Step {
        let step = self.graph.gap(span);
        let last = self.ends[rank as usize].last().copied();
        for before in [last, after].into_iter().flatten() {
            self.graph.after(step, before);
        }
        step
    }

    fn network_overhead(&self, fixed: Span, bytes: u64) -> Span {
        fixed + self.hosts.costs.copy_per_byte * bytes
    }

    fn local_overhead(&self, within: usize, bytes: u64) -> Span {
        let copy = self.hosts.costs.local_copy_per_byte * bytes;
        self.local_overheads[within] + copy
    }

    /// A rank's host, and its number there.
    fn home(&self, rank: u32) -> (usize, usize) {
        let per_host = self.hosts.ranks_per_host;
        ((rank / per_host) as usize, (rank % per_host) as usize)
    }

    /// Adds an action; false: what it waits for is not there yet.
    fn add(&mut self, rank: u32, action: Action) -> bool {
        let (host, within) = self.home(rank);
        let costs = self.hosts.costs;
        match action {
            Action::Send { to, bytes } => {
                let (other_host, other) = self.home(to);
                let (done, sent) = if host == other_host {
                    let done = self.occupy(rank, self.local_overhead(within, bytes), None);
                    let latency = self.hosts.latency(self.places[within], self.places[other]);
                    let seen = self.graph.gap(latency);
                    self.graph.after(seen, done);
                    (done, seen)
                } else {
                    let span = self.network_overhead(costs.send_overhead, bytes);
                    let done = self.occupy(rank, span, None);
                    let nodes = &self.hosts.nodes;
                    let size = Bytes((bytes + costs.envelope.0).max(1));
                    let message = self.graph.message(nodes[host], nodes[other_host], size);
                    self.graph.after(message, done);
                    (done, message)
                };
                self.ends[rank as usize].push(done);
                self.mail
                    .entry((rank, to))
                    .or_default()
                    .push_back((sent, bytes));
            }
            Action::Receive { from } => {
                let waiting = self.mail.get_mut(&(from, rank));
                let Some((sent, bytes)) = waiting.and_then(VecDeque::pop_front) else {
                    return false;
                };
                let span = if self.home(from).0 == host {
                    self.local_overhead(within, bytes)
                } else {
                    self.network_overhead(costs.receive_overhead, bytes)
                };
                let taken = self.occupy(rank, span, Some(sent));
                self.ends[rank as usize].push(taken);
            }
            Action::Offload { member, bytes } => {
                let span = self.network_overhead(costs.send_overhead, bytes);
                let done = self.occupy(rank, span, None);
                let size = Bytes(bytes.max(1));
                let round = self
                    .graph
                    .message(self.hosts.nodes[host], OffloadId(member), size);
                self.graph.after(round, done);
                let span = self.network_overhead(costs.receive_overhead, bytes);
                let taken = self.occupy(rank, span, Some(round));
                self.ends[rank as usize].push(taken);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IdealNetwork, collective::allreduce_recursive_doubling, drive_ideal};
    use raddle_units::BitRate;

    fn hosts(count: u32, ranks_per_host: u32) -> Hosts {
        Hosts {
            nodes: (0..count).map(NodeId).collect(),
            ranks_per_host,
            sockets: 2,
            binding: Binding::Even,
            dies: None,
            costs: HostCosts {
                send_overhead: Span::from_ns(300),
                receive_overhead: Span::from_ns(500),
                copy_per_byte: Span(1_000),
                local_overhead: Span::from_ns(110),
                local_copy_per_byte: Span(100),
                socket_latency: Span::from_ns(130),
                cross_latency: Span::from_ns(290),
                contention_per_rank: Span::from_ns(1),
                envelope: Bytes(32),
            },
        }
    }

    #[test]
    fn ranks_are_on_the_sockets_that_their_binding_says() {
        let sockets = |binding, ranks_per_host| {
            let hosts = Hosts {
                binding,
                ..hosts(1, ranks_per_host)
            };
            let places = hosts.places();
            places.iter().map(|it| it.socket).collect::<Vec<_>>()
        };
        assert_eq!(sockets(Binding::Even, 5), [0, 0, 0, 1, 1]);
        assert_eq!(sockets(Binding::Fill { cores: 3 }, 5), [0, 0, 0, 1, 1]);
        assert_eq!(sockets(Binding::Fill { cores: 8 }, 5), [0; 5]);
        assert_eq!(sockets(Binding::Fill { cores: 2 }, 5), [0, 0, 1, 1, 2]);
        assert_eq!(sockets(Binding::Turns, 5), [0, 1, 0, 1, 0]);
    }

    #[test]
    fn ranks_fill_the_dies_of_their_socket_in_order() {
        let dies = |binding, ranks_per_host| {
            let hosts = Hosts {
                binding,
                dies: Some(Dies {
                    cores: NonZeroU32::new(2).unwrap(),
                    latency: Span::from_ns(200),
                }),
                ..hosts(1, ranks_per_host)
            };
            let places = hosts.places();
            places.iter().map(|it| it.die).collect::<Vec<_>>()
        };
        assert_eq!(dies(Binding::Even, 8), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(dies(Binding::Even, 5), [0, 0, 1, 0, 0]);
        assert_eq!(dies(Binding::Turns, 6), [0, 0, 0, 0, 1, 1]);
        assert_eq!(dies(Binding::Fill { cores: 4 }, 6), [0, 0, 1, 1, 0, 0]);
    }

    /// LogGP of recursive doubling on 2^n hosts of 2^k ranks, all alike: every round costs o_send + L + o_receive, k - 1 of
    /// them within sockets, one between them, n between hosts.
    #[test]
    fn recursive_doubling_takes_the_time_of_its_rounds() {
        let network = IdealNetwork {
            rate: BitRate::from_gbps(1_000_000),
            latency: Span::from_us(1),
        };
        for (count, per_host, bytes) in [(4, 8, 8), (16, 4, 8), (8, 2, 64)] {
            let hosts = hosts(count, per_host);
            let script = allreduce_recursive_doubling(count * per_host, bytes);
            let made = hosts.graph(&script).unwrap();
            let mut graph = made.graph.clone();
            drive_ideal(&mut graph, network, u64::MAX, |_, _| {});
            // Half of the host's ranks are on a socket.
            let others = u64::from(per_host / 2 - 1);
            let local = 2 * (110_000 + 1_000 * others + 100 * bytes);
            let remote = 300_000 + 500_000 + 2 * 1_000 * bytes + 1_000_000;
            let sockets = u64::from(per_host.ilog2() - 1);
            let expected =
                sockets * (local + 130_000) + (local + 290_000) + u64::from(count.ilog2()) * remote;
            for end in made.ends(&graph) {
                let off = end.unwrap().0.abs_diff(expected);
                // The ideal network's rate is not infinite.
                assert!(off < 10_000, "{count} x {per_host}: {end:?}, {expected} ps");
            }
        }
    }

    /// With dies of two cores, the round between neighbours stays on a die, the next crosses dies, the third sockets; and
    /// one other rank shares a rank's cache, not three.
    #[test]
    fn a_round_between_dies_takes_their_latency() {
        let latency = Span::from_ns(200);
        let cores = NonZeroU32::new(2).unwrap();
        let hosts = Hosts {
            dies: Some(Dies { cores, latency }),
            ..hosts(1, 8)
        };
        let made = hosts.graph(&allreduce_recursive_doubling(8, 8)).unwrap();
        let mut graph = made.graph.clone();
        let network = IdealNetwork {
            rate: BitRate::from_gbps(100),
            latency: Span::from_us(1),
        };
        drive_ideal(&mut graph, network, u64::MAX, |_, _| {});
        let local = 2 * (110_000 + 1_000 + 100 * 8);
        let expected = 3 * local + 130_000 + latency.0 + 290_000;
        for end in made.ends(&graph) {
            assert_eq!(end, Some(Time(expected)));
        }
    }

    #[test]
    fn ranks_that_wait_for_each_other_are_an_error() {
        let mut script = Script::new(2);
        script.ranks[0].push(Action::Receive { from: 1 });
        let error = hosts(2, 1).graph(&script).unwrap_err().to_string();
        assert!(error.contains("rank 0 waits"), "{error}");
        let error = hosts(1, 1).graph(&Script::new(2)).unwrap_err().to_string();
        assert!(error.contains("do not fit"), "{error}");
    }
}
