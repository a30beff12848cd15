//! What a per-switch engine refuses.

use raddle_units::NodeId;

use crate::mgid::MgidError;

/// Most MLIDs of a table: InfiniBand has 0xC000 to 0xFFFE.
pub const MAX_MLIDS: u32 = 16_383;

/// Why a per-switch engine refuses.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerSwitchError {
    /// The number of MLIDs makes no sense.
    #[error("{mlids} MLIDs: a multicast table has 1 to {MAX_MLIDS} of them")]
    Mlids {
        /// What was asked for.
        mlids: u32,
    },
    /// Pairs need an MLID for each copy.
    #[error(
        "a fault-tolerant pair takes two MLIDs, but there is only one: allow more, or use no pairs"
    )]
    OneMlid,
    /// The fabric has no trees, or no second ones for pairs.
    #[error(transparent)]
    Trees(#[from] MgidError),
    /// A member is not one of the fabric's nodes.
    #[error("group {mgid}: member {node} is not a node of this fabric")]
    UnknownMember {
        /// The group.
        mgid: u64,
        /// The member.
        node: NodeId,
    },
    /// The link state belongs to another fabric.
    #[error("the link state has {state} links but the fabric {fabric}; make it for this fabric")]
    ForeignLinkState {
        /// Links of the state.
        state: usize,
        /// Links of the fabric.
        fabric: usize,
    },
    /// An MLID that the table does not have.
    #[error("MLID {colour} is not one of 0 to {last}")]
    UnknownMlid {
        /// What was asked for.
        colour: u16,
        /// The highest one.
        last: u32,
    },
}
