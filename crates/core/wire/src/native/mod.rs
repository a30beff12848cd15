//! Our own protocol, version 1: 32-bit groups, rounds and segments, explicit lengths, and a tag that only members of
//! the job can make. One message is one UDP payload, or the payload of a RoCEv2 UD packet.
//!
//! ```
//! use raddle_wire::{DataType, Operation, native::{Body, Header, JobKey, Kind, Unverified}};
//! let key = JobKey::new([7; 16]);
//! let header = Header {
//!     group: 9, round: 1, segments: 1, rank: 3, ..Header::of(Kind::Contribution, 42)
//! }.with_data(Operation::Sum, DataType::Double, 1);
//! let mut packet = [0; 64];
//! let length = header.write_message(&mut packet, &1.5_f64.to_be_bytes(), &key).unwrap();
//! assert_eq!(length, 64);
//!
//! // Job and group of a message are known before its key is found; the rest only after it was checked.
//! let message = Unverified::parse(&packet, 0).unwrap();
//! assert_eq!((message.job(), message.group()), (42, 9));
//! let message = message.verify(&key).unwrap();
//! assert!(matches!(message.body, Body::Data(Some(_), bytes) if bytes == 1.5_f64.to_be_bytes()));
//! packet[60] ^= 1;
//! assert!(Unverified::parse(&packet, 0).unwrap().verify(&key).is_err());
//! ```

mod control;
mod message;

pub use control::{
    ChildEntry, ChildEntryView, PathEntry, PathEntryView, PathView, ProgramHead, ProgramHeadView,
    ProgramView, StepEntry, StepEntryView, Terms, TermsView, type_bit, write_program,
};
pub use message::{Body, Carrier, Header, HeaderView, JobKey, Message, Unverified};

/// First two bytes of every message: "Ra".
pub const MAGIC: u16 = 0x5261;
/// The version written and read.
pub const VERSION: u8 = 1;
/// UDP destination port: in the range that no registration covers (IANA: 49152 up) and above what Linux hands out to
/// clients (60999 and below).
pub const PORT: u16 = 61347;
/// Most bytes of a body.
pub const MAX_BODY: usize = 8192;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A leader asks to take part; switches on the way write what they support, and themselves. Body: terms, path.
    Query,
    /// The master answers with what all support and where to send. Body: terms, path.
    Notify,
    /// The sender leaves the group. No body.
    Kill,
    /// The sender is alive: keep the group. No body.
    Lease,
    /// The sender cannot go on or does not know the group; `reason` says why. No body.
    Refuse,
    /// The sender leaves offload after `round`, and asks all to. No body.
    Fallback,
    /// The master tells a switch its place in the group and how it combines. Body: program.
    Program,
    /// The sender has begun `round`, and asks how far the receiver is. No body.
    Progress,
    /// Values on their way to the root.
    Contribution,
    /// The result on its way to the ranks.
    Result,
    /// The sender asks for the result of a round and segment again. No body.
    Ask,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::Query,
        Self::Notify,
        Self::Kill,
        Self::Lease,
        Self::Refuse,
        Self::Fallback,
        Self::Program,
        Self::Progress,
        Self::Contribution,
        Self::Result,
        Self::Ask,
    ];

    /// The number in the field `kind`: 1..=8 control, 16..=18 data.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Query => 1,
            Self::Notify => 2,
            Self::Kill => 3,
            Self::Lease => 4,
            Self::Refuse => 5,
            Self::Fallback => 6,
            Self::Program => 7,
            Self::Progress => 8,
            Self::Contribution => 16,
            Self::Result => 17,
            Self::Ask => 18,
        }
    }

    /// The kind of a number, `None` for others.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1..=8 => Some(Self::ALL[code as usize - 1]),
            16..=18 => Some(Self::ALL[code as usize - 8]),
            _ => None,
        }
    }
}

/// The collective that a data message is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Collective {
    /// Every rank gets the reduction of all values.
    Allreduce,
    /// The root gets it.
    Reduce,
    /// Nothing but waiting for all.
    Barrier,
    /// Every rank gets the root's values.
    Bcast,
}

impl Collective {
    /// All collectives, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::Allreduce, Self::Reduce, Self::Barrier, Self::Bcast];

    /// The number in the field `collective`, 1..=4.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The collective of a number, `None` for others.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1..=4 => Some(Self::ALL[code as usize - 1]),
            _ => None,
        }
    }

    /// The bit that stands for it in masks of collectives.
    #[must_use]
    pub const fn bit(self) -> u16 {
        1 << (self.code() - 1)
    }
}

/// Why a message refuses, or why a member leaves offload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The switch has no room for another group.
    NoRoom,
    /// The switch does not know the group: it was freed, or the switch started anew.
    UnknownGroup,
    /// Members disagree about a segment: collective, operation, type, count or root.
    Mismatch,
    /// The job has used up what it may use in this switch.
    Quota,
    /// The switch takes no new groups, because it is about to stop.
    Draining,
    /// The switch cannot do what was asked for.
    Unsupported,
    /// The program contradicts itself.
    BadProgram,
    /// There is no switch that computes between some member and the master.
    NoSwitch,
    /// The paths of the queries do not join to one tree.
    NoTree,
    /// A switch or a member did not answer.
    NoAnswer,
    /// A round brought no result in time.
    Overdue,
}

impl Reason {
    /// All reasons, in the order of their codes.
    pub const ALL: [Self; 11] = [
        Self::NoRoom,
        Self::UnknownGroup,
        Self::Mismatch,
        Self::Quota,
        Self::Draining,
        Self::Unsupported,
        Self::BadProgram,
        Self::NoSwitch,
        Self::NoTree,
        Self::NoAnswer,
        Self::Overdue,
    ];

    /// The number in the field `reason`, 1..=11.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The reason of a number, `None` for others: 0 is no reason, and later versions may know more.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1..=11 => Some(Self::ALL[code as usize - 1]),
            _ => None,
        }
    }

    /// A word for counters and reports, e.g. `unknown_group`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoRoom => "no_room",
            Self::UnknownGroup => "unknown_group",
            Self::Mismatch => "mismatch",
            Self::Quota => "quota",
            Self::Draining => "draining",
            Self::Unsupported => "unsupported",
            Self::BadProgram => "bad_program",
            Self::NoSwitch => "no_switch",
            Self::NoTree => "no_tree",
            Self::NoAnswer => "no_answer",
            Self::Overdue => "overdue",
        }
    }
}
