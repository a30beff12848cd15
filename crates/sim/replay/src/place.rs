//! Which rank is on which host.

use raddle_fabric::Fabric;
use raddle_trace::Trace;
use raddle_units::{NodeId, many};
use thiserror::Error;

/// A rule that gives every rank a host of a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankPlacement {
    /// As recorded: the trace's k-th host is the fabric's k-th.
    Recorded,
    /// So many ranks on the first host, as many on the next, and so on (mpirun's placement by slot).
    Blocks(u32),
    /// Rank r on the (r mod n)-th of the first n hosts, n as recorded (mpirun's placement by node).
    InTurn,
}

/// Why ranks have no place.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// Too few hosts.
    #[error(
        "the placement `{placement}` needs {}, the fabric has {hosts}: take a larger one (--fabric), or put more ranks on a host (--placement blocks:N)",
        many(*.needed, "host")
    )]
    TooFew {
        /// The rule.
        placement: String,
        /// Hosts that it needs.
        needed: usize,
        /// Hosts that there are.
        hosts: usize,
    },
    /// No such rule.
    #[error("`{0}` is not a placement: use recorded, blocks:N (N ranks per host) or in-turn")]
    Unknown(String),
}

impl std::fmt::Display for RankPlacement {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Recorded => out.write_str("recorded"),
            Self::Blocks(count) => write!(out, "blocks:{count}"),
            Self::InTurn => out.write_str("in-turn"),
        }
    }
}

impl std::str::FromStr for RankPlacement {
    type Err = PlaceError;

    fn from_str(name: &str) -> Result<Self, PlaceError> {
        let blocks = name.strip_prefix("blocks:").map(str::parse);
        match (name, blocks) {
            ("recorded", _) => Ok(Self::Recorded),
            ("in-turn", _) => Ok(Self::InTurn),
            (_, Some(Ok(count))) if count > 0 => Ok(Self::Blocks(count)),
            _ => Err(PlaceError::Unknown(name.chars().take(30).collect())),
        }
    }
}

impl RankPlacement {
    /// The host of every rank of a trace, counted through the fabric's hosts.
    ///
    /// # Errors
    /// When the fabric has too few hosts.
    pub fn hosts(self, trace: &Trace, fabric: &Fabric) -> Result<Vec<u32>, PlaceError> {
        let ranks = 0..trace.ranks.len() as u32;
        let hosts: Vec<u32> = match self {
            Self::Recorded => trace.placement.clone(),
            Self::Blocks(count) => ranks.map(|rank| rank / count).collect(),
            Self::InTurn => ranks
                .map(|rank| rank % trace.hosts.len().max(1) as u32)
                .collect(),
        };
        let needed = hosts.iter().max().map_or(0, |&last| last as usize + 1);
        if needed > fabric.hosts().len() {
            return Err(PlaceError::TooFew {
                placement: self.to_string(),
                needed,
                hosts: fabric.hosts().len(),
            });
        }
        Ok(hosts)
    }

    /// The nodes of such hosts.
    ///
    /// # Panics
    /// When there is no such host.
    #[must_use]
    pub fn nodes(hosts: &[u32], fabric: &Fabric) -> Vec<NodeId> {
        hosts
            .iter()
            .map(|&host| fabric.hosts()[host as usize])
            .collect()
    }
}
