//! Collectives of many groups at once: the latency test of C-MR4LMS.

mod part;
mod rounds;
#[cfg(test)]
mod tests;

use raddle_random::Random;
use raddle_units::{Bytes, NodeId, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_hosts;
use crate::{TrafficError, Workload, limits};

use rounds::Rounds;

/// Messages of one run: more rounds than anyone waits for.
const MAX_MESSAGES: u64 = 1 << 32;

/// How switches find the ways of the groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MulticastEngineName {
    /// The MGID names the spanning tree, rooted in the first L3 switch of its TN.
    #[default]
    CMr4lmsFixed,
    /// The same, rooted in the least loaded free L3 switch.
    CMr4lmsDynamic,
    /// Trees by load, then colours.
    Mr4lms,
    /// One tree over all hosts.
    Broadcast,
    /// A tree and a colour for each group, as OpenSM does it.
    Opensm,
}

/// What the processes of a group do together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GridOperation {
    /// The first process sends to the others.
    #[default]
    Bcast,
    /// Every host contributes for its processes, and all get the result. What is combined takes no time.
    Allreduce,
    /// The same, of which only the time matters.
    Barrier,
}

/// Where the contributions to a reduction meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Combining {
    /// On the first process's host, which then sends the result to the group.
    #[default]
    RootHost,
    /// In the switches of the group's tree: each waits for what comes from below and sends one packet up. From the
    /// switch where all have met the result goes down the tree. Nothing is sent again.
    OnTree,
}

/// Rows, then columns (then lines) of a grid, or one random group: every process takes part in a collective of each, again and
/// again, without a barrier between rounds. The first process of a group is its root. A receiver goes on when it has the
/// message, the root of a broadcast when all members have it.
///
/// Process i of an X x Y x Z grid, x fastest, runs on host i div `processes_per_terminal`. A group is the set of its
/// processes' hosts; what lies within one host takes no time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Multicast {
    /// X and Y, or X, Y and Z.
    #[schemars(length(min = 2, max = 3), inner(range(min = 1)))]
    pub dims: Vec<u32>,
    /// So many groups instead of rows and columns; `dims` then only says how many processes there are. Process i of a host
    /// joins one of the groups of layer i, drawn at random; layers have equally many groups, or one more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub random_groups: Option<u32>,
    /// Decides who is in which random group. Default 1.
    #[serde(default = "first_seed")]
    pub group_seed: u64,
    /// Processes on each host. Default 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub processes_per_terminal: u32,
    /// What a group does. Default `bcast`.
    #[serde(default)]
    pub operation: GridOperation,
    /// Where contributions to `allreduce` and `barrier` meet. Default `root-host`.
    #[serde(default)]
    pub combining: Combining,
    /// Time that a process's software takes from one collective to what it sends in the next. Default 0.
    #[serde(default)]
    #[schemars(transform = limits::start())]
    pub overhead: Span,
    /// Mean of what is added to `overhead` each time: drawn by the run's seed from an exponential distribution, for each
    /// process on its own. Default 0.
    #[serde(default)]
    #[schemars(transform = limits::start())]
    pub noise: Span,
    /// Time that a host takes for a packet of a group that it is not in, which a shared tree brought there; packets of its own
    /// groups wait behind it. Default 0.
    #[serde(default)]
    #[schemars(transform = limits::start())]
    pub foreign_packet_time: Span,
    /// What is added to it for every byte of the packet. Default 0.
    #[serde(default)]
    #[schemars(transform = limits::start())]
    pub foreign_packet_time_per_byte: Span,
    /// Size of each message. Default 8B.
    #[serde(default = "eight")]
    #[schemars(transform = limits::size())]
    pub size: Bytes,
    /// Rounds of one collective of each kind. Default 100.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1))]
    pub rounds: u32,
    /// Who makes the trees. Default `c-mr4lms-fixed`.
    #[serde(default)]
    pub engine: MulticastEngineName,
    /// Table entries of a switch's port. Default 32.
    #[serde(default = "thirty_two")]
    #[schemars(range(min = 1, max = 16384))]
    pub colours: u32,
    /// Every packet over two trees (C-MR4LMS only). Default false.
    #[serde(default)]
    pub fault_tolerant: bool,
    /// Start of the first round. Default 0.
    #[serde(default)]
    #[schemars(transform = limits::start())]
    pub start: Span,
}

const fn first_seed() -> u64 {
    1
}
const fn one() -> u32 {
    1
}
const fn eight() -> Bytes {
    Bytes(8)
}
const fn hundred() -> u32 {
    100
}
const fn thirty_two() -> u32 {
    32
}

/// The processes of a row, column, line or random group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessLine {
    /// Which of a process's collectives in a round this is, from 0.
    pub direction: usize,
    /// MGIDs of one layer have colours of their own: the layer of a random group, else the direction.
    pub layer: u32,
    /// Ascending; the first is the root. Never empty.
    pub processes: Vec<u32>,
}

/// A line that messages go to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LineGroup {
    /// Its place among [`Multicast::lines`].
    pub line: usize,
    /// Its hosts, ascending, at least two.
    pub members: Vec<NodeId>,
}

impl Multicast {
    /// Collectives of a process in a round.
    pub fn directions(&self) -> usize {
        if self.random_groups.is_some() {
            1
        } else {
            self.dims.len()
        }
    }

    fn processes(&self) -> u64 {
        self.dims
            .iter()
            .map(|&length| u64::from(length))
            .fold(1, u64::saturating_mul)
    }

    /// Who takes part in which collective: rows by z and y, columns by z and x, lines by y and x; or random groups by layer.
    pub fn lines(&self) -> Vec<ProcessLine> {
        match self.random_groups {
            Some(groups) => self.random_lines(groups),
            None => self.grid_lines(),
        }
    }

    fn grid_lines(&self) -> Vec<ProcessLine> {
        let [x, y, z] = [0, 1, 2].map(|i| self.dims.get(i).copied().unwrap_or(1));
        let strides = [1, x, x * y];
        let lengths = [x, y, z];
        let mut lines = Vec::new();
        for direction in 0..self.dims.len() {
            // The other two, the slower first.
            let [outer, inner] = [[2, 1], [2, 0], [1, 0]][direction];
            for a in 0..lengths[outer] {
                for b in 0..lengths[inner] {
                    let first = a * strides[outer] + b * strides[inner];
                    let processes = (0..lengths[direction])
                        .map(|place| first + place * strides[direction])
                        .collect();
                    lines.push(ProcessLine {
                        direction,
                        layer: direction as u32,
                        processes,
                    });
                }
            }
        }
        lines
    }

    fn random_lines(&self, groups: u32) -> Vec<ProcessLine> {
        let layers = self.processes_per_terminal;
        let processes = self.processes() as u32;
        let mut lines = Vec::new();
        for layer in 0..layers {
            let count = groups / layers + u32::from(layer < groups % layers);
            let mut random = Random::new(self.group_seed, u64::from(layer));
            let mut sets = vec![Vec::new(); count as usize];
            for process in (layer..processes).step_by(layers as usize) {
                sets[random.index(count as usize)].push(process);
            }
            lines.extend(
                sets.into_iter()
                    .filter(|processes| !processes.is_empty())
                    .map(|processes| ProcessLine {
                        direction: 0,
                        layer,
                        processes,
                    }),
            );
        }
        lines
    }

    /// The groups that messages go to, by [`crate::GroupId`]: lines of at least two hosts.
    ///
    /// # Errors
    /// A length or number of 0, more processes than the hosts have room for, fewer random groups than layers.
    pub fn groups(&self, hosts: &[NodeId]) -> Result<Vec<LineGroup>, TrafficError> {
        limits::check(self)?;
        check_hosts(hosts, 2, "to send and to receive")?;
        let per_host = self.processes_per_terminal;
        let processes = self.processes();
        let room = hosts.len() as u64 * u64::from(per_host);
        if processes < 2 || processes > room.min(u64::from(u32::MAX)) {
            let shape: Vec<String> = self.dims.iter().map(u32::to_string).collect();
            let problem = format!(
                "{} processes: it must be 2 to {room}, {per_host} on each of {} hosts",
                shape.join(" x "),
                hosts.len()
            );
            return Err(TrafficError::spec("dims", problem));
        }
        if let Some(groups) = self.random_groups.filter(|&groups| groups < per_host) {
            let problem = format!(
                "{groups}, but each of the {per_host} processes of a host needs a group of its own layer"
            );
            return Err(TrafficError::spec("random_groups", problem));
        }
        let host = |process: &u32| hosts[(process / per_host) as usize];
        let mut groups = Vec::new();
        for (line, of) in self.lines().iter().enumerate() {
            let mut members: Vec<NodeId> = of.processes.iter().map(host).collect();
            members.sort_unstable();
            members.dedup();
            if members.len() > 1 {
                groups.push(LineGroup { line, members });
            }
        }
        Ok(groups)
    }

    /// The messages.
    ///
    /// # Errors
    /// As [`Self::groups`]; a size or number of rounds out of range.
    pub fn build(
        &self,
        hosts: &[NodeId],
        seed: u64,
    ) -> Result<impl Workload + use<>, TrafficError> {
        let groups = self.groups(hosts)?;
        let members: u64 = groups.iter().map(|group| group.members.len() as u64).sum();
        let count = groups.len() as u64;
        let per_round = match (self.operation, self.combining) {
            (GridOperation::Bcast, _) => count,
            // A result and the contributions of the other hosts; or those of all.
            (_, Combining::RootHost | Combining::OnTree) => members,
        };
        let messages = u64::from(self.rounds) * per_round;
        if messages > MAX_MESSAGES {
            let problem = format!(
                "{} rounds of {per_round} messages are too many: at most 2^32 messages",
                self.rounds,
            );
            return Err(TrafficError::spec("rounds", problem));
        }
        let bytes = limits::sum("rounds", messages, self.size)?;
        Ok(Rounds::new(self, hosts, &groups, seed, messages, bytes))
    }
}
