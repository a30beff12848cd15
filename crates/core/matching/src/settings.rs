//! What all ranks of a job agree on.

use raddle_schedule::{Join, Placement, Scope};
use raddle_units::Bytes;
use thiserror::Error;

const LEAST_WINDOW: u64 = 4 << 10;
const MOST_WINDOW: u64 = 4 << 20;

/// Settings of a [`crate::Matcher`]. All ranks must have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// What is joined, and how much. [`Scope::RankToRank`] or [`Scope::RankToNode`].
    pub join: Join,
    /// The most that messages nobody has asked for yet may take at a rank, as long as 4 KiB for each rank of the job do.
    pub memory: Bytes,
    /// Messages by reference have keys from 1 to this, e.g. tags of the shadow channel; 0 counts as 1.
    pub keys: u32,
}

impl Default for Settings {
    fn default() -> Self {
        let join = Join {
            scope: Scope::RankToRank,
            waits: true,
            ..Join::default()
        };
        Self {
            join,
            memory: Bytes::from_mib(64),
            keys: 1 << 20,
        }
    }
}

impl Settings {
    /// What a rank keeps for each rank, itself included, in bytes.
    pub(crate) fn window(&self, ranks: usize) -> u64 {
        let share = self.memory.0 / ranks.max(1) as u64;
        share.clamp(LEAST_WINDOW, MOST_WINDOW)
    }
}

/// Why there is no matcher.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetUpError {
    /// The placement has no such rank.
    #[error("rank {rank} does not exist: the placement has {ranks}")]
    Rank {
        /// The rank given.
        rank: u32,
        /// How many there are.
        ranks: usize,
    },
    /// Messages of several processes cannot be joined while they are sent.
    #[error(
        "messages of several ranks cannot be joined while they are sent: use the scope RankToRank or RankToNode"
    )]
    Scope,
}

impl SetUpError {
    pub(crate) fn check(rank: u32, placement: &Placement, join: &Join) -> Result<(), Self> {
        let ranks = placement.ranks();
        if rank as usize >= ranks {
            return Err(Self::Rank { rank, ranks });
        }
        if join.scope == Scope::NodeToNode {
            return Err(Self::Scope);
        }
        Ok(())
    }
}
