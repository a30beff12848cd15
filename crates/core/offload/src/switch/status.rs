//! What a switch counts and shows.

use raddle_units::Time;

/// Why a message was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropReason {
    /// Not a message of this protocol and version.
    Malformed,
    /// The tag is not the job's. Of messages to no group, only those that are answered are judged.
    Forged,
    /// No such group; contributions and leases are refused besides.
    UnknownGroup,
    /// The sender is not a child of the group, or the slot is not one of its slots.
    NoChild,
    /// Older than what its slot holds.
    Stale,
    /// A result that is there already, or for which nothing was sent.
    NotAwaited,
    /// A kind of message that does not go to switches, or not from there.
    Unexpected,
}

impl DropReason {
    /// All reasons.
    pub const ALL: [Self; 7] = [
        Self::Malformed,
        Self::Forged,
        Self::UnknownGroup,
        Self::NoChild,
        Self::Stale,
        Self::NotAwaited,
        Self::Unexpected,
    ];

    /// A word for metrics, e.g. `unknown_group`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Forged => "forged",
            Self::UnknownGroup => "unknown_group",
            Self::NoChild => "no_child",
            Self::Stale => "stale",
            Self::NotAwaited => "not_awaited",
            Self::Unexpected => "unexpected",
        }
    }
}

/// Messages dropped since the start, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drops([u64; DropReason::ALL.len()]);

impl Drops {
    pub(super) fn count(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }

    /// Messages dropped for a reason.
    #[must_use]
    pub const fn of(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }
}

/// What happened in the groups of a job since its first one was installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobCounters {
    /// Contributions received, of any worth.
    pub contributions: u64,
    /// Segments whose result went to the children.
    pub segments: u64,
    /// Rounds whose last segment's result did.
    pub rounds: u64,
    /// Contributions that were repetitions.
    pub repeats: u64,
    /// Contributions older than what their slot held.
    pub stale: u64,
    /// Refusals sent, or passed on.
    pub refusals: u64,
}

/// A job in a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobStatus {
    /// The job.
    pub job: u32,
    /// Groups it has.
    pub groups: u32,
    /// Slots in all of them.
    pub slots: u32,
    /// Bytes of these.
    pub bytes: u64,
    /// What happened.
    pub counters: JobCounters,
}

/// A group in a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupStatus {
    /// Its job.
    pub job: u32,
    /// Its id.
    pub group: u32,
    /// Children.
    pub children: usize,
    /// Whether this switch is its root.
    pub is_root: bool,
    /// Slots.
    pub slots: u16,
    /// Slots that wait for children or the parent.
    pub slots_in_use: usize,
    /// Bytes of its slots.
    pub bytes: u64,
    /// When it is freed unless a sign of life comes.
    pub lease_ends: Time,
}

/// A switch, for its status command and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Jobs with groups, in ascending order.
    pub jobs: Vec<JobStatus>,
    /// Groups, in ascending order of job and id.
    pub groups: Vec<GroupStatus>,
    /// Messages dropped.
    pub drops: Drops,
    /// Bytes of all slots.
    pub bytes: u64,
    /// Whether new groups are refused because the switch is about to stop.
    pub draining: bool,
}
