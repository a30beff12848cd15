//! One process's matching as MPI 4.0, section 3.5, says it, by lists that are searched from their beginnings.

use std::collections::BTreeMap;

use raddle_matching::{Envelope, Wanted};

use super::Sending;

/// A receive, when it was posted or its message claimed, and what it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    /// `None`: it was for a claimed message.
    pub(crate) wanted: Option<Wanted>,
    pub(crate) message: Option<usize>,
    pub(crate) cancelled: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    /// Receives that wait, oldest first.
    posted: Vec<(u64, Wanted)>,
    /// Messages that wait, oldest first.
    unexpected: Vec<usize>,
    /// By the id of the receive.
    records: Vec<Record>,
    /// By source: the next of its messages, and those that came before their turn.
    next: BTreeMap<u32, u32>,
    early: BTreeMap<(u32, u32), usize>,
}

pub(crate) fn takes(wanted: &Wanted, message: &Envelope) -> bool {
    wanted.context == message.context
        && wanted.source.is_none_or(|source| source == message.source)
        && wanted.tag.is_none_or(|tag| tag == message.tag)
}

impl Model {
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    pub(crate) fn unexpected(&self) -> usize {
        self.unexpected.len()
    }

    /// What a receive got.
    pub(crate) fn got(&self, id: u64) -> usize {
        self.records[id as usize].message.expect("it has none")
    }

    /// A message of the pair from `source` came; it counts in the order of the pair.
    pub(crate) fn bring(&mut self, source: u32, number: u32, pair: &[usize], messages: &[Sending]) {
        self.early.insert((source, number), pair[number as usize]);
        loop {
            let next = self.next.entry(source).or_default();
            let Some(message) = self.early.remove(&(source, *next)) else {
                break;
            };
            *next += 1;
            self.arrive(message, messages);
        }
    }

    pub(crate) fn arrive(&mut self, message: usize, messages: &[Sending]) {
        let envelope = &messages[message].envelope;
        let receive = self
            .posted
            .iter()
            .position(|(_, wanted)| takes(wanted, envelope));
        match receive {
            Some(at) => {
                let (id, _) = self.posted.remove(at);
                self.records[id as usize].message = Some(message);
            }
            None => self.unexpected.push(message),
        }
    }

    pub(crate) fn post(&mut self, wanted: &Wanted, id: u64, messages: &[Sending]) -> Option<usize> {
        let message = self.claim(wanted, messages);
        assert_eq!(id, self.records.len() as u64);
        self.records.push(Record {
            wanted: Some(*wanted),
            message,
            cancelled: false,
        });
        if message.is_none() {
            self.posted.push((id, *wanted));
        }
        message
    }

    pub(crate) fn find(&self, wanted: &Wanted, messages: &[Sending]) -> Option<usize> {
        let mut waiting = self.unexpected.iter().copied();
        waiting.find(|&message| takes(wanted, &messages[message].envelope))
    }

    pub(crate) fn claim(&mut self, wanted: &Wanted, messages: &[Sending]) -> Option<usize> {
        let found = self.find(wanted, messages)?;
        self.unexpected.retain(|&message| message != found);
        Some(found)
    }

    pub(crate) fn receive_claimed(&mut self, id: u64, message: usize) {
        assert_eq!(id, self.records.len() as u64);
        self.records.push(Record {
            wanted: None,
            message: Some(message),
            cancelled: false,
        });
    }

    pub(crate) fn cancel(&mut self, id: u64) -> bool {
        let before = self.posted.len();
        self.posted.retain(|&(posted, _)| posted != id);
        let cancelled = self.posted.len() < before;
        self.records[id as usize].cancelled |= cancelled;
        cancelled
    }

    pub(crate) fn cancel_all(&mut self) {
        for (id, _) in std::mem::take(&mut self.posted) {
            self.records[id as usize].cancelled = true;
        }
    }
}
