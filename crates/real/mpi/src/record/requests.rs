//! What the handles of requests stand for. MPI uses handles again, and libraries give one handle to all sends that were
//! complete at once: then the first that was started is the first to be complete.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    hash::{BuildHasherDefault, Hasher},
};

use raddle_trace::Completion;

use crate::ffi::RaddleMessage;

/// A call that was started and is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Started {
    /// The recorder's number.
    pub(super) number: u32,
    /// Of a receive, its communicator.
    pub(super) receives_on: Option<u32>,
    /// The program asked to cancel it.
    pub(super) cancels: bool,
}

impl Started {
    /// A send or a collective.
    pub(super) const fn new(number: u32) -> Self {
        Self {
            number,
            receives_on: None,
            cancels: false,
        }
    }

    pub(super) const fn receive(number: u32, comm: u32) -> Self {
        Self {
            receives_on: Some(comm),
            ..Self::new(number)
        }
    }
}

/// A call that is complete at once.
#[derive(Debug)]
pub(super) enum Calls {
    One(Started),
    /// All messages of a neighbourhood collective.
    Neighbours(Box<[Completion]>),
}

/// Behind a handle.
#[derive(Debug)]
pub(super) enum Held {
    /// Until it is complete.
    Once(Calls),
    Persistent {
        message: RaddleMessage,
        receives: bool,
        started: Option<Started>,
    },
}

impl From<Started> for Held {
    fn from(started: Started) -> Self {
        Self::Once(Calls::One(started))
    }
}

/// The first word for a claimed request, see `RADDLE_CLAIMED` in `shim/border.h`.
const CLAIMED: usize = 1 << 62;

type ByHandle<T> = HashMap<usize, T, BuildHasherDefault<Mix>>;

/// All handles of requests that are known.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// The first call behind each.
    first: ByHandle<Held>,
    /// The ones after it, of handles that ever had several: few, and they will have several again.
    others: ByHandle<VecDeque<Held>>,
    claims: usize,
}

impl Requests {
    /// A handle that may stand for other calls too.
    pub(super) fn add(&mut self, handle: usize, held: Held) {
        match self.first.entry(handle) {
            Entry::Occupied(_) => self.others.entry(handle).or_default().push_back(held),
            Entry::Vacant(free) => {
                free.insert(held);
            }
        }
    }

    /// A handle that stands for this only: if it is known, the end of what it was has been missed.
    pub(super) fn replace(&mut self, handle: usize, held: Held) {
        if self.first.insert(handle, held).is_some()
            && let Some(others) = self.others.get_mut(&handle)
        {
            others.clear();
        }
    }

    /// The call behind the handle is complete; `None`: it is not recorded, or a persistent one that was not started.
    pub(super) fn finish(&mut self, handle: usize) -> Option<Calls> {
        self.take(handle)
            .or_else(|| match self.first.get_mut(&handle) {
                Some(Held::Persistent { started, .. }) => started.take().map(Calls::One),
                _ => None,
            })
    }

    /// The first of the calls behind a handle that is not persistent.
    fn take(&mut self, handle: usize) -> Option<Calls> {
        let Entry::Occupied(mut first) = self.first.entry(handle) else {
            return None;
        };
        if matches!(first.get(), Held::Persistent { .. }) {
            return None;
        }
        let next = if self.others.is_empty() {
            None
        } else {
            self.others.get_mut(&handle).and_then(VecDeque::pop_front)
        };
        let held = match next {
            Some(next) => first.insert(next),
            None => first.remove(),
        };
        match held {
            Held::Once(calls) => Some(calls),
            Held::Persistent { .. } => None,
        }
    }

    /// Takes the call behind a handle from it, and gives a word that stands for it until it is complete or given back. The
    /// handle itself: it is not recorded, or a persistent one, which no other call gets.
    pub(super) fn claim(&mut self, handle: usize) -> usize {
        let Some(calls) = self.take(handle) else {
            return handle;
        };
        let word = CLAIMED | self.claims;
        self.claims = (self.claims + 1) % CLAIMED;
        self.replace(word, Held::Once(calls));
        word
    }

    /// Gives back what was claimed, if it is not complete.
    pub(super) fn restore(&mut self, claimed: usize, handle: usize) {
        if let Some(held) = self.first.remove(&claimed) {
            self.add(handle, held);
        }
    }

    /// The message of a persistent request, and whether it is received.
    pub(super) fn persistent(&self, handle: usize) -> Option<(RaddleMessage, bool)> {
        match self.first.get(&handle) {
            Some(Held::Persistent {
                message, receives, ..
            }) => Some((*message, *receives)),
            _ => None,
        }
    }

    /// A persistent request began.
    pub(super) fn start(&mut self, handle: usize, begun: Started) {
        if let Some(Held::Persistent { started, .. }) = self.first.get_mut(&handle) {
            *started = Some(begun);
        }
    }

    pub(super) fn cancel(&mut self, handle: usize) {
        if let Some(
            Held::Once(Calls::One(started))
            | Held::Persistent {
                started: Some(started),
                ..
            },
        ) = self.first.get_mut(&handle)
        {
            started.cancels = true;
        }
    }

    /// The handle means nothing any more.
    pub(super) fn release(&mut self, handle: usize) {
        if self.persistent(handle).is_some() {
            self.first.remove(&handle);
        } else {
            self.finish(handle);
        }
    }
}

/// Handles are addresses or small numbers: their low bits differ little.
#[derive(Debug, Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(usize::from(byte));
        }
    }

    fn write_usize(&mut self, number: usize) {
        let mixed = (self.0 ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
