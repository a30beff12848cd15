//! What is to be scheduled: the messages of one superstep and where ranks sit.

use raddle_units::{Bytes, many};
use thiserror::Error;

/// A point-to-point message of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Message {
    /// Sending rank.
    pub source: u32,
    /// Receiving rank; may be the sender, or on its node.
    pub target: u32,
    /// The program's bytes; may be 0.
    pub bytes: Bytes,
}

/// Why messages or a placement are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetError {
    /// A rank that has no place.
    #[error("message {message} has rank {rank}, but the placement has {}", many(*.ranks, "rank"))]
    Rank {
        /// The message, by its index.
        message: usize,
        /// The rank.
        rank: u32,
        /// Ranks that have a place.
        ranks: usize,
    },
    /// More than 32 bits can number.
    #[error("{found} {what}, at most 4294967294 can be numbered")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        found: usize,
    },
}

/// The node of every rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Numbers of the nodes that have ranks, ascending. A node's index here is its vertex in G'.
    numbers: Vec<u32>,
    node_of: Vec<u32>,
    /// Ranks by node, ascending.
    members: Vec<u32>,
    /// Where each node's begin in `members`, and the end of the last one's.
    first: Vec<u32>,
}

impl Placement {
    /// From the node number of each rank. Numbers may have gaps; the distance of the paper is their difference.
    ///
    /// # Errors
    /// With more than 2^32 - 2 ranks.
    pub fn new(node_of_rank: &[u32]) -> Result<Self, SetError> {
        countable("ranks", node_of_rank.len())?;
        let mut numbers = node_of_rank.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let index = |number| numbers.partition_point(|&other| other < number) as u32;
        let node_of: Vec<u32> = node_of_rank.iter().map(|&number| index(number)).collect();
        let mut members: Vec<u32> = (0..node_of.len() as u32).collect();
        members.sort_by_key(|&rank| node_of[rank as usize]);
        let first = (0..=numbers.len() as u32)
            .map(|node| members.partition_point(|&rank| node_of[rank as usize] < node) as u32)
            .collect();
        Ok(Self {
            numbers,
            node_of,
            members,
            first,
        })
    }

    /// `per_node` ranks on node 0, as many on node 1, and so on (mpirun's placement by slot); `per_node` 0 counts as 1.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn blocks(ranks: u32, per_node: u32) -> Result<Self, SetError> {
        let nodes: Vec<u32> = (0..ranks).map(|rank| rank / per_node.max(1)).collect();
        Self::new(&nodes)
    }

    /// Rank r on node r mod `nodes` (mpirun's placement by node); `nodes` 0 counts as 1.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn in_turn(ranks: u32, nodes: u32) -> Result<Self, SetError> {
        let nodes: Vec<u32> = (0..ranks).map(|rank| rank % nodes.max(1)).collect();
        Self::new(&nodes)
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.node_of.len()
    }

    /// Number of nodes that have ranks.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.numbers.len()
    }

    /// The vertex of G' on which a rank sits: its node's place among all nodes, by number.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn node(&self, rank: u32) -> u32 {
        self.node_of[rank as usize]
    }

    /// A node's number, as it was given.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[must_use]
    pub fn number(&self, node: u32) -> u32 {
        self.numbers[node as usize]
    }

    /// The ranks of a node, ascending.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[must_use]
    pub fn members(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.members[self.first[node] as usize..self.first[node + 1] as usize]
    }

    /// The rank of a node that takes joined messages of `source` for several of its ranks apart, where it has as many
    /// `leaders` (0 counts as 1, more than it has ranks as all of them). They are spread evenly over its ranks, in order,
    /// so over its sockets too; the first is the least rank. Sources take them in turn.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[must_use]
    pub fn leader(&self, node: u32, source: u32, leaders: u32) -> u32 {
        let members = self.members(node);
        let leaders = (leaders as usize).clamp(1, members.len());
        members[source as usize % leaders * members.len() / leaders]
    }

    /// Whether a rank is one of so many leaders of its node.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn leads(&self, rank: u32, leaders: u32) -> bool {
        let node = self.node(rank);
        let most = leaders.clamp(1, self.members(node).len() as u32);
        (0..most).any(|source| self.leader(node, source, leaders) == rank)
    }
}

/// The messages of one superstep in program order, with every rank in its place.
///
/// Program order is that of each source's own messages; how those of different sources are interleaved makes no
/// difference to a schedule.
#[derive(Debug, Clone, Copy)]
pub struct MessageSet<'a> {
    messages: &'a [Message],
    placement: &'a Placement,
}

impl<'a> MessageSet<'a> {
    /// Checks the messages.
    ///
    /// # Errors
    /// When a rank has no place, or there are more than 2^32 - 2 messages.
    pub fn new(messages: &'a [Message], placement: &'a Placement) -> Result<Self, SetError> {
        countable("messages", messages.len())?;
        let ranks = placement.ranks();
        for (index, message) in messages.iter().enumerate() {
            let rank = message.source.max(message.target);
            if rank as usize >= ranks {
                return Err(SetError::Rank {
                    message: index,
                    rank,
                    ranks,
                });
            }
        }
        Ok(Self {
            messages,
            placement,
        })
    }

    /// The messages, by their index.
    #[must_use]
    pub const fn messages(&self) -> &'a [Message] {
        self.messages
    }

    /// Where ranks sit.
    #[must_use]
    pub const fn placement(&self) -> &'a Placement {
        self.placement
    }

    /// A message by its index.
    pub(crate) fn message(&self, index: u32) -> &'a Message {
        &self.messages[index as usize]
    }

    /// Indexes of all messages.
    pub(crate) fn indexes(&self) -> std::ops::Range<u32> {
        0..self.messages.len() as u32
    }

    /// Whether the message stays on its node.
    pub(crate) fn is_local(&self, index: u32) -> bool {
        let message = self.message(index);
        self.placement.node(message.source) == self.placement.node(message.target)
    }
}

fn countable(what: &'static str, found: usize) -> Result<(), SetError> {
    // The highest number is kept for "none".
    if found >= u32::MAX as usize {
        return Err(SetError::TooMany { what, found });
    }
    Ok(())
}
