//! What ranks did when, where that is kept: from there it is followed back why a program took as long as it did.

use raddle_units::Time;
use serde::{Deserialize, Serialize};

/// What a rank does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Doing {
    /// Has not begun.
    Before,
    /// Computes.
    Computing,
    /// Sends, receives, copies.
    Host,
    /// Waits; for this ticket last, which came to its host then.
    Waiting {
        /// The ticket.
        ticket: u32,
        /// When it came.
        came: Time,
    },
}

/// A stretch of a rank's time, from the end of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Its end.
    pub until: Time,
    /// What the rank did.
    pub doing: Doing,
}

/// A parcel or a round is with the network or in the host's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// Its number.
    pub tag: u64,
    /// When its rank had issued it.
    pub at: Time,
}

/// What a rank did so far.
#[derive(Debug, Default)]
pub(super) struct Diary {
    pub(super) stretches: Vec<Stretch>,
    /// The last thing that came of those that the rank waits for.
    last: Option<(u32, Time)>,
}

impl Diary {
    /// Of a rank that begins then.
    pub(super) fn new(begins: Time) -> Self {
        let mut diary = Self::default();
        diary.note(begins, Doing::Before);
        diary
    }

    pub(super) fn note(&mut self, until: Time, doing: Doing) {
        match self.stretches.last_mut() {
            Some(last) if last.doing == doing => last.until = until,
            _ => self.stretches.push(Stretch { until, doing }),
        }
    }

    /// The rank comes to a wait.
    pub(super) fn waits(&mut self) {
        self.last = None;
    }

    /// Something came that the rank waited for.
    pub(super) fn last(&mut self, ticket: u32, came: Time) {
        self.last = Some((ticket, came));
    }

    /// The rank leaves its wait.
    pub(super) fn waited(&mut self, now: Time) {
        let doing = match self.last.take() {
            Some((ticket, came)) => Doing::Waiting { ticket, came },
            None => Doing::Host,
        };
        self.note(now, doing);
    }
}
