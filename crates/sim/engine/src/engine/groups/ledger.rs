//! What became of each message at each member of its group. Members know whether they have it, the sender whom it has given up;
//! which came first is decided in the order of the whole run, at the ends of windows.

use raddle_units::{NodeId, Time};
use raddle_workload::GroupId;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::super::flow::FlowName;
use crate::record::MemberRecord;

/// What a sender or a member has to say of a message.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in super::super) enum Report {
    /// It has begun.
    Begun(Begun),
    /// A member has all of it.
    Reached(NodeId),
    /// The sender has given up a member.
    Missed(NodeId),
}

/// A message that has begun.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in super::super) struct Begun {
    pub(in super::super) tag: u64,
    pub(in super::super) src: NodeId,
    pub(in super::super) group: GroupId,
    pub(in super::super) sport: u16,
    /// Members beside the sender.
    pub(in super::super) members: u32,
}

#[derive(Debug)]
struct Entry {
    message: Begun,
    /// Members that have it or were given up.
    closed: FxHashSet<NodeId>,
    missed: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub(in super::super) struct Ledger {
    messages: FxHashMap<FlowName, Entry>,
}

/// What followed from a report: what is recorded, and whether all members have the message now.
pub(in super::super) struct Closed {
    pub(in super::super) record: MemberRecord,
    pub(in super::super) all: bool,
}

impl Ledger {
    /// Takes a report in; `None`: it says nothing new of a member.
    pub(in super::super) fn enter(
        &mut self,
        time: Time,
        name: FlowName,
        report: Report,
    ) -> Option<Closed> {
        let (member, delivered) = match report {
            Report::Begun(message) => {
                let entry = Entry {
                    message,
                    closed: FxHashSet::default(),
                    missed: 0,
                };
                self.messages.insert(name, entry);
                return None;
            }
            Report::Reached(member) => (member, Some(time)),
            Report::Missed(member) => (member, None),
        };
        let entry = self.messages.get_mut(&name)?;
        if !entry.closed.insert(member) {
            return None;
        }
        entry.missed += u32::from(delivered.is_none());
        Some(Closed {
            record: entry.message.record(member, delivered),
            all: entry.missed == 0 && entry.closed.len() == entry.message.members as usize,
        })
    }

    /// The run is over: members that do not have a message.
    pub(in super::super) fn missing(
        &self,
        name: FlowName,
        members: &[NodeId],
    ) -> Vec<MemberRecord> {
        let Some(entry) = self.messages.get(&name) else {
            return Vec::new();
        };
        let open = members
            .iter()
            .filter(|&member| *member != entry.message.src && !entry.closed.contains(member));
        open.map(|&member| entry.message.record(member, None))
            .collect()
    }

    /// The sender is through with a message.
    pub(in super::super) fn end(&mut self, name: FlowName) {
        self.messages.remove(&name);
    }
}

impl Begun {
    fn record(&self, member: NodeId, delivered: Option<Time>) -> MemberRecord {
        MemberRecord {
            tag: self.tag,
            member,
            src: self.src,
            group: self.group.0,
            sport: self.sport,
            delivered,
        }
    }
}
