//! How many messages travel as one: a window that grows from parcel to parcel (Peng, section 4).
//!
//! The first message goes as it is. While the network carries parcel a-1 the processor copies parcel a together, which may
//! be larger by the factor alpha, since memory is faster than the network; so copying hides behind sending, and parcels
//! grow exponentially.

use raddle_units::{BitRate, Bytes};

use crate::parcel::{HEAD_BYTES, PART_BYTES};

/// alpha_ij = 1.5 + log2(max(NDout_i, NDin_j)): by how much a parcel from node i to node j may exceed the one before
/// (Peng, section 4). `out_degree` is that of i in G', `in_degree` that of j; the more nodes compete, the longer a transfer
/// takes, and the more can be joined meanwhile. A degree of 0 counts as 1.
///
/// ```
/// use raddle_schedule::growth_factor;
/// assert_eq!(growth_factor(1, 1), 1.5);
/// assert_eq!(growth_factor(3, 16), 5.5);
/// ```
#[must_use]
pub fn growth_factor(out_degree: u32, in_degree: u32) -> f64 {
    1.5 + libm::log2(f64::from(out_degree.max(in_degree).max(1)))
}

/// Which messages may be joined. All go from one node to one other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// Messages of one rank to one other rank, which takes them apart itself.
    RankToRank,
    /// Messages of one rank to all ranks of one node; the node's leader takes them apart (the paper's figure 5).
    #[default]
    RankToNode,
    /// Messages of all ranks of one node to those of one other. The source of a parcel's first part collects the
    /// others' messages on its node.
    NodeToNode,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::RankToRank, Self::RankToNode, Self::NodeToNode];

    /// Its name in files, in the environment and on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RankToRank => "rank-to-rank",
            Self::RankToNode => "rank-to-node",
            Self::NodeToNode => "node-to-node",
        }
    }

    /// The scope of a name; `None` if there is no such name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// What may be joined, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Join {
    /// Which messages may travel together.
    pub scope: Scope,
    /// The network's largest packet: a window is never smaller, since a packet costs the same however full it is. 0: the
    /// paper's window, which begins with the first message and grows from there; where this is [`Self::limit`], a window
    /// has its full size from the second parcel on and nothing grows.
    pub mtu: Bytes,
    /// Messages of at least this size go alone: copying them costs more than a message does.
    pub alone: Bytes,
    /// The largest message that MPI sends without asking the receiver first (rendezvous); parcels stay within it.
    pub eager_limit: Bytes,
    /// Parcels stay within this too, e.g. for the receiver's memory.
    pub cap: Bytes,
    /// Most parts of a parcel; 0 counts as 1.
    pub most_parts: u32,
    /// How fast a node copies from memory to memory. A window above `mtu` grows by no more than copy rate / network rate,
    /// and not at all when that is below 2: joining would not hide behind sending.
    pub copy_rate: BitRate,
    /// How fast a node sends; 0 counts as infinitely slow.
    pub network_rate: BitRate,
    /// Ranks of a node that take parcels for several of its ranks apart ([`crate::Placement::leader`]).
    pub leaders: u32,
    /// The first message of a superstep does not go alone where the last superstep that had any like it had several: others will
    /// follow, and it waits for them.
    pub waits: bool,
}

impl Default for Join {
    /// For networks with 4 KiB packets and the eager limit of common MPI libraries. The rates are those of a node of the
    /// paper's machine: 16 GB/s both ways together; eight channels of DDR3-1600 have 102 GB/s, of which copying takes three
    /// passes (read, read for ownership, write).
    fn default() -> Self {
        Self {
            scope: Scope::RankToNode,
            mtu: Bytes(4096),
            alone: Bytes(16 << 10),
            eager_limit: Bytes(64 << 10),
            cap: Bytes::from_mib(1),
            most_parts: 1024,
            copy_rate: BitRate::from_gbps(272),
            network_rate: BitRate::from_gbps(64),
            leaders: 1,
            waits: false,
        }
    }
}

/// The longest parcel of an MPI library. Open MPI sends up to 64 KiB over TCP without asking the receiver, heads of its own
/// included.
const LIBRARY_LONGEST: Bytes = Bytes(63 << 10);

/// Messages of at least this size go by reference in an MPI library. Shorter ones cost less when they are copied: by reference
/// their bytes come before their envelopes, and the library copies them.
const LIBRARY_ALONE: Bytes = Bytes(20 << 10);

impl Join {
    /// What is joined as a program sends it under an MPI library (`libraddle_mpi.so` with `RADDLE_SCHEDULE=on`).
    #[must_use]
    pub fn library() -> Self {
        Self {
            scope: Scope::RankToRank,
            // A full parcel costs little more than a short one: a window is full from the second parcel on.
            mtu: LIBRARY_LONGEST,
            alone: LIBRARY_ALONE,
            eager_limit: LIBRARY_LONGEST,
            waits: true,
            ..Self::default()
        }
    }

    /// The paper's rule under an MPI library (`RADDLE_SCHEDULE=published`), whose parcels have a longest size.
    #[must_use]
    pub const fn library_published() -> Self {
        Self::published_within(LIBRARY_LONGEST)
    }

    /// The paper's rule alone, without our limits: everything is joined, by a window that begins with the first message.
    #[must_use]
    pub const fn published() -> Self {
        Self {
            scope: Scope::RankToNode,
            mtu: Bytes(0),
            alone: Bytes(u64::MAX),
            eager_limit: Bytes(u64::MAX),
            cap: Bytes(u64::MAX),
            most_parts: u32::MAX,
            copy_rate: BitRate(u64::MAX),
            network_rate: BitRate(0),
            leaders: 1,
            waits: false,
        }
    }

    /// The paper's rule where a receiver provides memory for parcels of up to `limit`: the window begins with the first
    /// message and grows by alpha up to there.
    #[must_use]
    pub const fn published_within(limit: Bytes) -> Self {
        Self {
            cap: limit,
            ..Self::published()
        }
    }

    /// The most that a joined parcel may have, its head and the heads of its parts included.
    #[must_use]
    pub fn limit(&self) -> Bytes {
        self.eager_limit.min(self.cap)
    }

    /// By how much a window may grow where degrees allow `alpha`; `None`: not at all.
    #[must_use]
    pub fn growth(&self, alpha: f64) -> Option<f64> {
        if self.network_rate.0 == 0 {
            return Some(alpha);
        }
        let ratio = self.copy_rate.0 as f64 / self.network_rate.0 as f64;
        (ratio >= 2.0).then(|| alpha.min(ratio))
    }
}

/// Where a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Into a new parcel; the one before is complete.
    New,
    /// Into the parcel of the message before.
    Same,
}

/// Decides message by message what travels together, for messages that may. It keeps no message, so that the MPI library
/// can ask as the program sends.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    growth: Option<f64>,
    mtu: f64,
    limit: u64,
    alone: u64,
    most_parts: u32,
    /// Room of the current parcel in bytes, heads included.
    room: f64,
    /// What the current parcel has, heads included; 0 before the first.
    filled: u64,
    parts: u32,
    /// Whether the current parcel takes more.
    open: bool,
}

impl Window {
    /// For messages from a node with `out_degree` to one with `in_degree` in G'.
    #[must_use]
    pub fn new(join: &Join, out_degree: u32, in_degree: u32) -> Self {
        Self {
            growth: join.growth(growth_factor(out_degree, in_degree)),
            mtu: join.mtu.0 as f64,
            limit: join.limit().0,
            alone: join.alone.0,
            most_parts: join.most_parts,
            room: 0.0,
            filled: 0,
            parts: 0,
            open: false,
        }
    }

    /// Where the next message goes.
    ///
    /// With sizes |.| that include heads, parcel a has room for max(alpha max(room of a-1, |a-1|), MTU), at most for
    /// [`Join::limit`], and takes messages while they fit, but always one; parcel 1 takes one.
    pub fn place(&mut self, bytes: Bytes) -> Place {
        let part = bytes.0.saturating_add(PART_BYTES as u64);
        let alone = part.saturating_add(HEAD_BYTES as u64);
        let joins = bytes.0 < self.alone && alone <= self.limit;
        let joined = self.filled.saturating_add(part);
        if self.open && joins && self.parts < self.most_parts && joined as f64 <= self.room {
            self.filled = joined;
            self.parts += 1;
            return Place::Same;
        }
        if self.filled == 0 {
            self.room = alone as f64;
        } else {
            let base = self.room.max(self.filled as f64);
            let grown = self.growth.map_or(0.0, |growth| growth * base);
            self.room = grown.max(self.mtu).min(self.limit as f64);
            self.open = joins;
        }
        self.filled = alone;
        self.parts = 1;
        Place::New
    }
}
