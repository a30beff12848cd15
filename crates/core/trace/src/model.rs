//! What a trace is: the MPI calls of every rank with their times, and where the ranks sat.

use std::{fmt, str::FromStr};

use raddle_units::Bytes;
use thiserror::Error;

/// The MPI calls of a program's ranks. Ranks are those of MPI_COMM_WORLD everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// The calls of each rank, in the order in which they began.
    pub ranks: Vec<Vec<Event>>,
    /// The host of each rank, as an index into `hosts`.
    pub placement: Vec<u32>,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Members of each communicator, in the order of their ranks in it; 0 is MPI_COMM_WORLD. An intercommunicator has the
    /// members of both groups, in one order on all of them.
    pub communicators: Vec<Vec<u32>>,
    /// The fabric to replay it on when no other is named: TOML with a `[fabric]` table; empty: none.
    pub fabric: String,
    /// What ran, e.g. the command.
    pub program: String,
    /// The MPI library and its version, or what made the trace.
    pub mpi: String,
    /// Processors that all ranks shared, as those of a lab do: rank r was on r mod so many. `None`: each had its own.
    pub processors: Option<u32>,
}

/// A time of a rank in nanoseconds since its own start, the end of MPI_Init; ranks are aligned there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interval {
    /// When the call began.
    pub start_ns: u64,
    /// When it came back; not before `start_ns`.
    pub end_ns: u64,
}

/// A call of a rank.
///
/// What lies between the end of a call and the start of the next is a compute gap. Calls of several threads may overlap;
/// then there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Interval,
    /// What.
    pub action: Action,
}

/// What a call does. A `request` is a number that the rank gives to what it starts and completes later, each once; persistent
/// requests get one per start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A send; without request: a blocking one, in any mode.
    Send {
        /// The message; `peer` is its target.
        message: Message,
        /// Set where the call came back before the send was complete.
        request: Option<u32>,
    },
    /// A receive that matched a message.
    Receive {
        /// The message; `peer` is its source.
        message: Message,
        /// Set where the call came back before the message was there.
        request: Option<u32>,
        /// What the program had left open.
        any: Wildcards,
    },
    /// Waits until all of `requests` are complete (a test that found something complete is one too).
    Wait {
        /// Requests that were started before and not waited for yet.
        requests: Box<[u32]>,
    },
    /// A collective call.
    Collective {
        /// Which, and on what.
        call: Collective,
        /// Set where the call came back before the operation was complete.
        request: Option<u32>,
    },
    /// The rank's program is over (MPI_Finalize is called). At most one, the last.
    End,
}

/// A point-to-point message as one of its ends sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Message {
    /// The other end; may be the rank itself.
    pub peer: u32,
    /// MPI's tag; [`NEIGHBOUR_TAG`] in neighbourhood collectives.
    pub tag: i32,
    /// Communicator, by its index.
    pub comm: u32,
    /// Bytes of data.
    pub bytes: Bytes,
}

/// Tag of the messages of neighbourhood collectives, which are recorded as sends, receives and a wait.
pub const NEIGHBOUR_TAG: i32 = -1;

/// Messages with this tag and smaller ones belong to collectives that were told as messages; each operation has its own tag.
pub const COLLECTIVE_TAG: i32 = -2;

/// What a receive left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Wildcards {
    /// MPI_ANY_SOURCE.
    pub source: bool,
    /// MPI_ANY_TAG.
    pub tag: bool,
}

/// A collective call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Collective {
    /// Which.
    pub kind: CollectiveKind,
    /// Communicator, by its index.
    pub comm: u32,
    /// The rank's share, see [`CollectiveKind`].
    pub bytes: Bytes,
    /// The root where there is one, a rank of MPI_COMM_WORLD.
    pub root: Option<u32>,
}

/// Collective operations, variants with counts per rank and nonblocking ones included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CollectiveKind {
    /// MPI_Barrier; 0 bytes.
    Barrier,
    /// MPI_Bcast; bytes that are sent to everybody.
    Bcast,
    /// MPI_Reduce; bytes of an operand.
    Reduce,
    /// MPI_Allreduce; bytes of an operand.
    Allreduce,
    /// MPI_Gather(v); bytes that the rank gives.
    Gather,
    /// MPI_Allgather(v); bytes that the rank gives.
    Allgather,
    /// MPI_Scatter(v); bytes that the rank gets.
    Scatter,
    /// MPI_Reduce_scatter(_block); bytes of an operand.
    ReduceScatter,
    /// MPI_Alltoall(v, w); bytes that the rank gives, to all together.
    Alltoall,
    /// MPI_Scan; bytes of an operand.
    Scan,
    /// MPI_Exscan; bytes of an operand.
    Exscan,
}

/// A name that no collective has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no collective is called `{name}`")]
pub struct UnknownCollective {
    /// The name.
    pub name: String,
}

impl CollectiveKind {
    /// All of them, in the order of their codes in files.
    pub const ALL: [Self; 11] = [
        Self::Barrier,
        Self::Bcast,
        Self::Reduce,
        Self::Allreduce,
        Self::Gather,
        Self::Allgather,
        Self::Scatter,
        Self::ReduceScatter,
        Self::Alltoall,
        Self::Scan,
        Self::Exscan,
    ];

    /// Its name in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Bcast => "bcast",
            Self::Reduce => "reduce",
            Self::Allreduce => "allreduce",
            Self::Gather => "gather",
            Self::Allgather => "allgather",
            Self::Scatter => "scatter",
            Self::ReduceScatter => "reduce_scatter",
            Self::Alltoall => "alltoall",
            Self::Scan => "scan",
            Self::Exscan => "exscan",
        }
    }

    /// Whether a call names a root.
    #[must_use]
    pub const fn has_root(self) -> bool {
        matches!(
            self,
            Self::Bcast | Self::Reduce | Self::Gather | Self::Scatter
        )
    }
}

impl fmt::Display for CollectiveKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CollectiveKind {
    type Err = UnknownCollective;

    fn from_str(name: &str) -> Result<Self, UnknownCollective> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| UnknownCollective {
            name: name.to_owned(),
        })
    }
}

impl Interval {
    /// From `start_ns` to `end_ns`.
    #[must_use]
    pub const fn new(start_ns: u64, end_ns: u64) -> Self {
        Self { start_ns, end_ns }
    }

    /// A call that takes no time.
    #[must_use]
    pub const fn instant(at_ns: u64) -> Self {
        Self::new(at_ns, at_ns)
    }

    /// How long it took.
    #[must_use]
    pub const fn length_ns(self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

impl Message {
    /// Whether it belongs to a collective that was told as messages.
    #[must_use]
    pub const fn is_collective(&self) -> bool {
        self.tag <= COLLECTIVE_TAG
    }
}

impl Action {
    /// The request that the call starts.
    #[must_use]
    pub const fn starts(&self) -> Option<u32> {
        match self {
            Self::Send { request, .. }
            | Self::Receive { request, .. }
            | Self::Collective { request, .. } => *request,
            Self::Wait { .. } | Self::End => None,
        }
    }

    /// The communicator of a message or a collective.
    #[must_use]
    pub const fn comm(&self) -> Option<u32> {
        match self {
            Self::Send { message, .. } | Self::Receive { message, .. } => Some(message.comm),
            Self::Collective { call, .. } => Some(call.comm),
            Self::Wait { .. } | Self::End => None,
        }
    }
}
