//! What a workload gives to a driver: messages, one at a time, in order of time.

use raddle_units::{Bytes, NodeId, Time};

use crate::TrafficError;

/// The class of a flow that came without one.
pub const PLAIN_CLASS: &str = "flow";

/// Classes whose name starts like this are the ones whose times are judged; all others are background.
pub const TESTED_PREFIX: &str = "tested-";

/// Data priority of the reference flow files; 0 is kept for control traffic there.
pub const DATA_PRIORITY: u8 = 3;

/// A member of an in-network reduction, by its place in the driver's list of members.
///
/// A message to it is a round of in-network computing: its sender is the member's own host, it is delivered when that host
/// has the result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OffloadId(pub u32);

impl OffloadId {
    /// Addresses from here on name members.
    const FIRST_ADDRESS: u32 = 3 << 30;
    /// Members that addresses can tell apart.
    pub const LIMIT: u32 = 1 << 29;

    /// What a round has as its [`Message::dst`]. The number is below [`Self::LIMIT`].
    pub const fn address(self) -> NodeId {
        NodeId(Self::FIRST_ADDRESS | self.0)
    }

    /// The member that an address names; `None`: it is a host's, a group's or a group's reduction.
    pub const fn of(address: NodeId) -> Option<Self> {
        if address.0 < Self::FIRST_ADDRESS || ReductionId::of(address).is_some() {
            return None;
        }
        Some(Self(address.0 - Self::FIRST_ADDRESS))
    }
}

/// A reduction of a multicast group, by the group's place in the driver's list.
///
/// A message to it is a member's contribution; it is delivered when the member's host has the result, for which all hosts of
/// the group must have sent theirs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReductionId(pub u32);

impl ReductionId {
    /// Addresses from here on name reductions.
    const FIRST_ADDRESS: u32 = 7 << 29;
    /// Groups that addresses can tell apart.
    pub const LIMIT: u32 = 1 << 29;

    /// What a contribution has as its [`Message::dst`]. The number is below [`Self::LIMIT`].
    pub const fn address(self) -> NodeId {
        NodeId(Self::FIRST_ADDRESS | self.0)
    }

    /// The group that an address names; `None`: it names something else.
    pub const fn of(address: NodeId) -> Option<Self> {
        if address.0 < Self::FIRST_ADDRESS {
            return None;
        }
        Some(Self(address.0 - Self::FIRST_ADDRESS))
    }
}

/// A multicast group, by its place in the driver's list of groups.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId(pub u32);

impl GroupId {
    /// Addresses from here on name groups, as the upper part of the address space does in IP and InfiniBand.
    const FIRST_ADDRESS: u32 = 1 << 31;
    /// Groups that addresses can tell apart.
    pub const LIMIT: u32 = 1 << 30;

    /// What a message to the group has as its [`Message::dst`]. The number is below [`Self::LIMIT`].
    pub const fn address(self) -> NodeId {
        NodeId(Self::FIRST_ADDRESS | self.0)
    }

    /// The group that an address names; `None`: it is a host's.
    pub const fn of(address: NodeId) -> Option<Self> {
        if address.0 < Self::FIRST_ADDRESS || address.0 >= OffloadId::FIRST_ADDRESS {
            return None;
        }
        Some(Self(address.0 - Self::FIRST_ADDRESS))
    }
}

/// One transfer from a host to another, or to all other members of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// When the sender may begin.
    pub start: Time,
    /// Sending host.
    pub src: NodeId,
    /// Receiving host, never the sender; or a group's address ([`GroupId::address`]), of which the sender is a member;
    /// or that of a member of an in-network reduction on the sender ([`OffloadId::address`]), or of a reduction of a group of
    /// which the sender is a member ([`ReductionId::address`]).
    pub dst: NodeId,
    /// Payload, at least one byte.
    pub size: Bytes,
    /// Index into [`Workload::classes`].
    pub class: u8,
    /// Queue in switches and NICs, 0 to 7; 3 in the reference files.
    pub priority: u8,
    /// The workload's own name of the message, given back in [`Workload::on_delivered`]. Unique within a run.
    pub tag: u64,
}

/// A source of messages. The driver takes what is due and reports deliveries; the workload knows no clock but theirs.
///
/// The driver's loop: while [`next_start`](Self::next_start) is due, [`pop`](Self::pop); where
/// [`has_dependencies`](Self::has_dependencies), call [`on_delivered`](Self::on_delivered) for every message and look
/// at `next_start` again. See [`crate::drive_ideal`] for a driver in thirty lines.
pub trait Workload: Send {
    /// Names of the classes that [`Message::class`] counts through.
    fn classes(&self) -> &[String];

    /// Start of the earliest message that waits for nothing but a time. Without side effects.
    fn next_start(&self) -> Option<Time>;

    /// That message. Equal times come in the order of the file or of creation. `None`: nothing starts at that time after
    /// all, and [`next_start`](Self::next_start) has moved on (or there is nothing left).
    fn pop(&mut self) -> Option<Message>;

    /// The receiver of message `tag` has all its bytes at `now` (of a group: the last member). May make new messages
    /// startable, at `now` or later.
    fn on_delivered(&mut self, now: Time, tag: u64) {
        let _ = (now, tag);
    }

    /// One member of the group that message `tag` went to has all its bytes at `now`; [`on_delivered`](Self::on_delivered)
    /// follows with the last one.
    fn on_member_delivered(&mut self, now: Time, tag: u64, member: NodeId) {
        let _ = (now, tag, member);
    }

    /// Whether deliveries matter here; if not, [`on_delivered`](Self::on_delivered) need not be called.
    fn has_dependencies(&self) -> bool {
        false
    }

    /// Messages in all, where that is known beforehand.
    fn expected_messages(&self) -> Option<u64> {
        None
    }

    /// Payload in all, where that is known beforehand; an estimate where sizes are random.
    fn expected_bytes(&self) -> Option<Bytes> {
        None
    }

    /// Whether some senders go on for ever: the run then ends when [`finished`](Self::finished) says so.
    fn is_open_ended(&self) -> bool {
        false
    }

    /// Nothing will ever come again. Without dependencies: everything was popped. Closed loop: the measured part is
    /// done, even if other messages are still on their way.
    fn finished(&self) -> bool;

    /// When its first process began each round, where the workload has rounds.
    fn round_starts(&self) -> &[Time] {
        &[]
    }

    /// Why the workload ended early, where it is read from a file that changed or broke after it was checked.
    /// Drivers ask once, when the workload has finished.
    fn fault(&self) -> Option<&TrafficError> {
        None
    }
}

impl<W: Workload + ?Sized> Workload for Box<W> {
    fn classes(&self) -> &[String] {
        (**self).classes()
    }
    fn next_start(&self) -> Option<Time> {
        (**self).next_start()
    }
    fn pop(&mut self) -> Option<Message> {
        (**self).pop()
    }
    fn on_delivered(&mut self, now: Time, tag: u64) {
        (**self).on_delivered(now, tag);
    }
    fn on_member_delivered(&mut self, now: Time, tag: u64, member: NodeId) {
        (**self).on_member_delivered(now, tag, member);
    }
    fn has_dependencies(&self) -> bool {
        (**self).has_dependencies()
    }
    fn expected_messages(&self) -> Option<u64> {
        (**self).expected_messages()
    }
    fn expected_bytes(&self) -> Option<Bytes> {
        (**self).expected_bytes()
    }
    fn is_open_ended(&self) -> bool {
        (**self).is_open_ended()
    }
    fn finished(&self) -> bool {
        (**self).finished()
    }
    fn round_starts(&self) -> &[Time] {
        (**self).round_starts()
    }
    fn fault(&self) -> Option<&TrafficError> {
        (**self).fault()
    }
}

/// Whether flows of the class are judged (the rest is background).
pub fn is_tested_class(name: &str) -> bool {
    name.starts_with(TESTED_PREFIX)
}
