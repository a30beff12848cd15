//! What a workload gives to a driver: messages, one at a time, in order of time.

use std::fmt;

use raddle_units::{Bytes, NodeId, Span, Time};
use serde::{Deserialize, Serialize};

use crate::TrafficError;

/// The class of a flow that came without one.
pub const PLAIN_CLASS: &str = "flow";

/// Classes whose name starts like this are the ones whose times are judged; all others are background.
pub const TESTED_PREFIX: &str = "tested-";

/// Data priority of the reference flow files; 0 is kept for control traffic there.
pub const DATA_PRIORITY: u8 = 3;

/// A multicast group, by its place in the driver's list of groups.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct GroupId(pub u32);

/// A reduction of a multicast group, by the group's place in the driver's list.
///
/// A message to it is a member's contribution; it is delivered when the member's host has the result, for which all hosts of
/// the group must have sent theirs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ReductionId(pub u32);

/// A member of an in-network reduction, by its place in the driver's list of members.
///
/// A message to it is a round of in-network computing: its sender is the member's own host, it is delivered when that host
/// has the result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct OffloadId(pub u32);

/// Where a message goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Destination {
    /// To a host, never the sender.
    Host(NodeId),
    /// To all other members of a group, of which the sender is one.
    Group(GroupId),
    /// Into a reduction of a group of which the sender is a member.
    Reduction(ReductionId),
    /// Into an in-network reduction, as a round of a member on the sender.
    Offload(OffloadId),
}

impl Destination {
    /// The host; `None`: it is not one host.
    #[inline]
    pub const fn host(self) -> Option<NodeId> {
        match self {
            Self::Host(host) => Some(host),
            _ => None,
        }
    }

    /// The group whose members receive it; `None`: it is something else.
    #[inline]
    pub const fn group(self) -> Option<GroupId> {
        match self {
            Self::Group(group) => Some(group),
            _ => None,
        }
    }
}

impl PartialEq<NodeId> for Destination {
    /// Whether it is this host.
    fn eq(&self, host: &NodeId) -> bool {
        *self == Self::Host(*host)
    }
}

impl PartialEq<Destination> for NodeId {
    fn eq(&self, destination: &Destination) -> bool {
        destination == self
    }
}

impl From<NodeId> for Destination {
    fn from(host: NodeId) -> Self {
        Self::Host(host)
    }
}

impl From<GroupId> for Destination {
    fn from(group: GroupId) -> Self {
        Self::Group(group)
    }
}

impl From<ReductionId> for Destination {
    fn from(reduction: ReductionId) -> Self {
        Self::Reduction(reduction)
    }
}

impl From<OffloadId> for Destination {
    fn from(member: OffloadId) -> Self {
        Self::Offload(member)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => write!(f, "host {}", host.0),
            Self::Group(group) => write!(f, "group {}", group.0),
            Self::Reduction(reduction) => write!(f, "the reduction of group {}", reduction.0),
            Self::Offload(member) => write!(f, "reduction member {}", member.0),
        }
    }
}

/// One transfer from a host to another, or to all other members of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Message {
    /// When the sender may begin.
    pub start: Time,
    /// Sending host.
    pub src: NodeId,
    /// Who receives it.
    pub dst: Destination,
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

    /// Cuts the workload for a driver that has cut its fabric and runs the pieces side by side, window of time by
    /// window. Part i is a workload of its own: it pops the messages that hosts with `part_of(host) == i` send. Nothing
    /// shows how the hosts were cut, one part included: equal windows and deliveries give equal messages, of each host
    /// in equal order.
    ///
    /// A part is told of a delivery in two steps:
    /// - At once, by [`on_delivered`](Self::on_delivered) (of a group:
    ///   [`on_member_delivered`](Self::on_member_delivered)), if
    ///   one of its own hosts has the message. This acts on that host alone, whose next messages may start at `now`. Who has
    ///   it is the receiver; of an in-network reduction, the sender; of a whole group, nobody in particular.
    /// - At the window's end, by [`on_news`](Self::on_news), whoever has it. This acts on all other hosts.
    ///
    /// Messages that follow from news may have a start before the window's end: the driver starts them there. A part
    /// has popped all that starts before the window's end, with deliveries in order of time, when it hears the news.
    ///
    /// Called once, before the first [`pop`](Self::pop). From then on the driver asks the parts alone, which answer
    /// [`is_open_ended`](Self::is_open_ended) and the like as the whole does; it has finished when all parts have. What
    /// the whole can tell of a run (its [`round_starts`](Self::round_starts), for one) it tells after that too.
    ///
    /// `None`: it cannot be cut, and a driver with windows calls [`on_delivered`](Self::on_delivered) of the whole at
    /// their ends.
    ///
    /// # Panics
    /// If `part_of` gives `parts` or more.
    fn split(
        &mut self,
        parts: usize,
        part_of: &dyn Fn(NodeId) -> usize,
    ) -> Option<Vec<Box<dyn Workload + '_>>> {
        let _ = (parts, part_of);
        None
    }

    /// Whether [`split`](Self::split) cuts it.
    fn is_divisible(&self) -> bool {
        false
    }

    /// The longest window for which a driver cuts it: hosts take as long, at least, from what they hear of others to what
    /// they send then, so that news are never late. With longer windows a driver keeps it whole.
    fn longest_window(&self) -> Span {
        Span(u64::MAX)
    }

    /// Whether hosts other than the one that has message `tag` wait for it, so that [`on_news`](Self::on_news) is to be
    /// called. Any part knows.
    fn is_news(&self, tag: u64) -> bool {
        let _ = tag;
        false
    }

    /// The host that waits for message `tag`, where it is a single one: its part alone need be told the news. `None`:
    /// any part may have something to do. Any part knows.
    fn news_for(&self, tag: u64) -> Option<NodeId> {
        let _ = tag;
        None
    }

    /// A host has had message `tag` since `now` (of a group: `member`, or all of them if `None`). Told to all parts
    /// alike but for [`news_for`](Self::news_for), at the end of the window, in order of time, then of hosts. See
    /// [`split`](Self::split).
    fn on_news(&mut self, now: Time, tag: u64, member: Option<NodeId>) {
        let _ = (now, tag, member);
    }

    /// Messages in all, where that is known beforehand.
    fn expected_messages(&self) -> Option<u64> {
        None
    }

    /// Payload in all, where that is known beforehand; an estimate where sizes are random.
    fn expected_bytes(&self) -> Option<Bytes> {
        None
    }

    /// When the last message starts, where that is known beforehand; an estimate where starts are random.
    fn expected_last_start(&self) -> Option<Time> {
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

macro_rules! forwarded {
    ($($own:ty),*) => {$(
        impl<W: Workload + ?Sized> Workload for $own {
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
            fn split(
                &mut self,
                parts: usize,
                part_of: &dyn Fn(NodeId) -> usize,
            ) -> Option<Vec<Box<dyn Workload + '_>>> {
                (**self).split(parts, part_of)
            }
            fn is_divisible(&self) -> bool {
                (**self).is_divisible()
            }
            fn longest_window(&self) -> Span {
                (**self).longest_window()
            }
            fn is_news(&self, tag: u64) -> bool {
                (**self).is_news(tag)
            }
            fn news_for(&self, tag: u64) -> Option<NodeId> {
                (**self).news_for(tag)
            }
            fn on_news(&mut self, now: Time, tag: u64, member: Option<NodeId>) {
                (**self).on_news(now, tag, member);
            }
            fn expected_messages(&self) -> Option<u64> {
                (**self).expected_messages()
            }
            fn expected_bytes(&self) -> Option<Bytes> {
                (**self).expected_bytes()
            }
            fn expected_last_start(&self) -> Option<Time> {
                (**self).expected_last_start()
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
    )*};
}

forwarded!(Box<W>, &mut W);

/// Whether flows of the class are judged (the rest is background).
pub fn is_tested_class(name: &str) -> bool {
    name.starts_with(TESTED_PREFIX)
}
