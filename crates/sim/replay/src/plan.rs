//! The parcels of all supersteps of a trace.

use raddle_schedule::{Before, Message, MessageSet, Placement, Scope, Settings, schedule_next};
use raddle_trace::Transfer;

use super::{Prepared, ReplayError};

/// What is issued at once: messages of one rank that travel as one, or a single one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlannedParcel {
    /// The rank that gets it.
    pub(super) receiver: u32,
    /// Bytes that travel: of the message, or of all parts with their heads.
    pub(super) bytes: u64,
    begin: u32,
    end: u32,
}

/// Every superstep's schedule. Messages inside a host are in none: they leave when the program sends them. Making it is the work that scheduling costs; a replay only looks it up.
#[derive(Debug)]
pub struct Plan {
    /// By (issuer, superstep, issue).
    parcels: Vec<PlannedParcel>,
    /// Where each rank's begin, and the end of the last one's.
    first: Vec<usize>,
    /// Messages, by their index in the trace.
    parts: Vec<u32>,
    joined: u64,
    /// Of each rank.
    hosts: Vec<u32>,
}

impl Plan {
    /// Schedules every superstep for ranks on `hosts`, numbers of hosts. Superstep k is the k-th of every rank.
    ///
    /// # Errors
    /// Messages of several ranks would be joined ([`Scope::NodeToNode`]), or there are too many.
    pub fn new(
        prepared: &Prepared,
        hosts: &[u32],
        settings: &Settings<'_>,
    ) -> Result<Self, ReplayError> {
        if settings.variant.aggregates() && settings.join.scope == Scope::NodeToNode {
            return Err(ReplayError::Scope);
        }
        let placement = Placement::new(hosts)?;
        let supersteps = &prepared.supersteps;
        let mut made: Vec<(u32, PlannedParcel)> = Vec::new();
        let mut parts = Vec::new();
        let (mut indexes, mut messages) = (Vec::new(), Vec::new());
        let mut before = Before::default();
        for superstep in 0..supersteps.len() {
            indexes.clear();
            messages.clear();
            for &index in supersteps.messages(superstep) {
                let message = &prepared.pairing.messages()[index as usize];
                if is_remote(hosts, message) {
                    indexes.push(index);
                    messages.push(Message {
                        source: message.source,
                        target: message.target,
                        bytes: message.bytes,
                    });
                }
            }
            let set = MessageSet::new(&messages, &placement)?;
            let plan = schedule_next(&set, settings, &mut before);
            for parcel in plan.parcels() {
                let begin = parts.len() as u32;
                let own = plan.parts(parcel).iter();
                parts.extend(own.map(|part| indexes[part.message as usize]));
                let planned = PlannedParcel {
                    receiver: parcel.receiver,
                    bytes: parcel.bytes.0,
                    begin,
                    end: parts.len() as u32,
                };
                made.push((parcel.issuer, planned));
            }
        }
        made.sort_by_key(|&(issuer, _)| issuer);
        let first = (0..=hosts.len())
            .map(|rank| made.partition_point(|&(issuer, _)| (issuer as usize) < rank))
            .collect();
        let parcels: Vec<PlannedParcel> = made.into_iter().map(|(_, parcel)| parcel).collect();
        let joined = parcels
            .iter()
            .filter(|parcel| parcel.end - parcel.begin > 1)
            .count() as u64;
        Ok(Self {
            parcels,
            first,
            parts,
            joined,
            hosts: hosts.to_vec(),
        })
    }

    /// Parcels of several messages.
    #[must_use]
    pub const fn joined(&self) -> u64 {
        self.joined
    }

    /// All parcels.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parcels.len()
    }

    /// Whether nothing is sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parcels.is_empty()
    }

    /// Whether a message of a superstep is in the plan.
    pub(super) fn has(&self, message: &Transfer) -> bool {
        is_remote(&self.hosts, message)
    }

    /// What a rank issues, in order, superstep after superstep.
    pub(super) fn of(&self, rank: u32) -> &[PlannedParcel] {
        let rank = rank as usize;
        &self.parcels[self.first[rank]..self.first[rank + 1]]
    }

    /// The messages of a parcel.
    pub(super) fn parts(&self, parcel: &PlannedParcel) -> &[u32] {
        &self.parts[parcel.begin as usize..parcel.end as usize]
    }
}

/// Whether a message goes from one host to another.
pub(super) fn is_remote(hosts: &[u32], message: &Transfer) -> bool {
    hosts[message.source as usize] != hosts[message.target as usize]
}
