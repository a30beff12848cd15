//! What a table has for a class: a stretch of ports, one of a chunk.

/// Classes of a chunk.
pub(crate) const CHUNK: usize = 64;

/// Where a list of next hops stands: a stretch of a node's block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Stretch {
    /// From the start of the block.
    pub(crate) place: u32,
    /// Ports; 0 where there is no way.
    pub(crate) count: u16,
    /// The block is that of the destination (its last hop), not that of the node that asks.
    pub(crate) at_destination: bool,
}
