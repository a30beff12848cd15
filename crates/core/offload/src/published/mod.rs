//! The protocol of Li et al. (2022; `INCRoCE` in `docs/references.bib`) for Allreduces of at most 256 bytes, on the packets
//! of [`raddle_wire::compat`]. Ours ([`crate::member`], [`crate::switch`]) is another one; both can run in one switch.
//!
//! Leaders send ordinary RoCEv2 messages to each other. Switches on the way recognise them:
//!
//! ```text
//! query   leader ──► its master    every switch adds what it can do; a TOR learns its leaders, the SPINE says how full it is
//! notify  master ──► each leader   TORs and the chosen SPINE set up the group
//! data    leader ──► next leader   a closed ring below each TOR. The TOR holds the packets of a round and adds them up; the
//!                                  SPINE adds up the sums of the TORs; the TOR writes the result into the packets that it
//!                                  holds, and lets them go on
//! kill    master ──► each leader   switches forget the group
//! ```
//!
//! # What the paper leaves open, and what is done here
//! - **Loss.** Nothing is sent again. A leader that waits asks the others; when all have begun the round and no result
//!   came, all leave together ([`Endpoint`]).
//! - **Results and operands look the same.** A switch that lost its memory would hand a neighbour's operands to a leader as
//!   if they were a result. Our switches set `data_flag` in results, drop data of groups that they do not know, and our
//!   leaders take no data without the flag. Published leaders do not look at it.
//! - **Who is complete.** A SPINE cannot know its TORs from published packets. Between our switches, `rsv` has the number of
//!   leaders whose operands a sum has.
//! - **Order of additions.** By rank as Open MPI's recursive doubling does, in each TOR and again in the SPINE. With equal
//!   powers of two below the TORs and of TORs, these are the additions of the plain call.
//! - **One leader below a TOR** would have to send to itself: refused, as are TORs with unlike numbers of leaders.
//! - **Group numbers** have 8 bits. A query for a number that another master has is refused.
//! - **Forgotten groups.** Switches forget a group after a time without a packet.

mod endpoint;
mod group;
mod leader;
mod switch;

pub use endpoint::Endpoint;
pub use leader::{
    ConfigError, Leader, LeaderConfig, LeaderCounters, Outcome, Stage, Terms, Transport, queue_pair,
};
pub use switch::{Drop, Switch, SwitchConfig, SwitchCounters, Tier, Transmit, Verdict};

use raddle_wire::compat::Control;

use crate::order::{Expression, nested_doubling};

/// Why a group is refused: the numbers that we write into `fail_cause`, of which the published library only asks whether
/// they are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Refusal {
    /// The switch has no room for another group.
    NoRoom = 1,
    /// Another master has a group of this number.
    Taken = 2,
    /// The packets of the group do not describe a tree of TORs below one SPINE.
    NoTree = 3,
    /// Only one server below a TOR: it would have to send to itself.
    Alone = 4,
    /// TORs have unlike numbers of leaders.
    Uneven = 5,
    /// A leader or a master did not answer.
    NoAnswer = 6,
    /// A switch is about to stop.
    Draining = 7,
}

impl Refusal {
    /// The number in `fail_cause`.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Why a group is refused by this `fail_cause`; `None`: by 0, or by one that another switch has written.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::NoRoom,
            2 => Self::Taken,
            3 => Self::NoTree,
            4 => Self::Alone,
            5 => Self::Uneven,
            6 => Self::NoAnswer,
            7 => Self::Draining,
            _ => return None,
        })
    }
}

/// The additions of a group as our switches make them, if each of its leaders does as much for its ranks: `ranks` of a
/// leader, `local` leaders below each TOR, `leaders` in all, numbered in this order. `None` if that does not divide.
///
/// ```
/// use raddle_offload::{order::Expression, published::additions};
/// let nodes = additions(1, 2, 4).unwrap();
/// assert_eq!(nodes.size(), 4);
/// assert!(!nodes.combines_as(&Expression::in_rank_order(4).unwrap(), false));
/// ```
#[must_use]
pub fn additions(ranks: u32, local: u32, leaders: u32) -> Option<Expression> {
    let tors = leaders
        .checked_div(local)
        .filter(|tors| tors * local == leaders)?;
    nested_doubling(&[ranks, local, tors])
}

/// Most bytes of a frame that a switch holds: headers with a VLAN tag, 256 bytes of operands and their padding.
pub const FRAME_ROOM: usize = 512;

/// The sender's UDP port: the dynamic range, by rank, so that switches spread flows.
const fn source_port(rank: u32) -> u16 {
    0xc000 | (rank & 0x3fff) as u16
}

/// A control payload as hosts begin it (3b, section 4).
fn blank(kind: raddle_wire::compat::ControlKind, sockets: u32, group: u8, leaders: u32) -> Control {
    use raddle_wire::compat::{ALL_OPERATIONS, ALL_TYPES, ALLREDUCE, MAX_DATA};
    Control {
        kind: kind.code(),
        master_num: sockets as u8,
        sup_comm_type: ALLREDUCE,
        sup_allreduce_op: ALL_OPERATIONS,
        sup_data_type: ALL_TYPES,
        sup_max_data_size: MAX_DATA as u16,
        global_group_size: leaders as u16,
        true_comm_id: u32::from(group),
        ..Control::default()
    }
}
