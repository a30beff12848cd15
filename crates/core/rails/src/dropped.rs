//! Why packets are dropped, and how often.

/// Why a packet was dropped. It is not acknowledged and has changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dropped {
    /// Not a packet of this protocol: cut short, of another version, or contradicting itself.
    Truncated,
    /// Its tag was not made with the job's key.
    Forged,
    /// Of another job or between other nodes.
    Stranger,
    /// It came by another rail than it says, or by one that this connection does not have.
    WrongRail,
    /// From or for another life of a node.
    OldEpoch,
    /// Before the other node is known.
    Early,
    /// Its number came before on its rail.
    Replayed,
    /// It acknowledges what was never sent.
    BadAck,
    /// For a port that is not open.
    ClosedPort,
    /// A message for which no receive token was granted.
    NoToken,
    /// A message longer than its port takes.
    TooLong,
    /// A segment that does not fit to its message.
    Malformed,
    /// The connection has failed.
    Closed,
}

impl Dropped {
    /// All reasons.
    pub const ALL: [Self; 13] = [
        Self::Truncated,
        Self::Forged,
        Self::Stranger,
        Self::WrongRail,
        Self::OldEpoch,
        Self::Early,
        Self::Replayed,
        Self::BadAck,
        Self::ClosedPort,
        Self::NoToken,
        Self::TooLong,
        Self::Malformed,
        Self::Closed,
    ];
}

/// What a connection counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets taken.
    pub taken: u64,
    /// Segments that had arrived before under another number: sent again without need. They are acknowledged.
    pub duplicates: u64,
    /// Segments sent.
    pub segments: u64,
    /// Segments that went back to be sent again: they counted as lost, or were bound to a rail that stopped.
    pub resent: u64,
    /// Bytes of messages in segments sent.
    pub segment_bytes: u64,
    /// Bytes of messages placed.
    pub placed_bytes: u64,
    dropped: [u64; Dropped::ALL.len()],
}

impl Counters {
    /// Packets dropped for this reason.
    #[must_use]
    pub const fn dropped(&self, reason: Dropped) -> u64 {
        self.dropped[reason as usize]
    }

    /// Packets dropped.
    #[must_use]
    pub fn all_dropped(&self) -> u64 {
        self.dropped.iter().sum()
    }

    pub(super) const fn drop(&mut self, reason: Dropped) {
        self.dropped[reason as usize] += 1;
    }
}
