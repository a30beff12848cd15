//! What is counted of one communicator, for the report.

use raddle_wire::native::Collective;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::reason::Reason;

/// Counters of one communicator.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    calls: [u64; 4],
    offloaded: [u64; 4],
    plain: [u64; Reason::ALL.len()],
    /// Rounds, messages sent again, and so on: what only members count.
    pub(crate) rounds: Rounds,
    /// Against the plain call as it was measured.
    pub(crate) saved_seconds: f64,
}

/// What a member has done for its ranks.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Rounds {
    pub(crate) rounds: u64,
    pub(crate) bytes: u64,
    pub(crate) resent: u64,
    pub(crate) fallbacks: u64,
    /// Attempts to set a group up again, or one that was not there before.
    pub(crate) tries: u64,
    /// Attempts that succeeded.
    pub(crate) comebacks: u64,
}

impl Counts {
    pub(crate) const fn new() -> Self {
        Self {
            calls: [0; 4],
            offloaded: [0; 4],
            plain: [0; Reason::ALL.len()],
            rounds: Rounds {
                rounds: 0,
                bytes: 0,
                resent: 0,
                fallbacks: 0,
                tries: 0,
                comebacks: 0,
            },
            saved_seconds: 0.0,
        }
    }

    pub(crate) const fn call(&mut self, collective: Collective) {
        self.calls[collective as usize] += 1;
    }

    pub(crate) const fn offloaded(&mut self, collective: Collective) {
        self.offloaded[collective as usize] += 1;
    }

    pub(crate) const fn plain(&mut self, reason: Reason) {
        self.plain[reason as usize] += 1;
    }

    pub(crate) fn any(&self) -> bool {
        self.calls.iter().any(|calls| *calls > 0)
    }

    pub(crate) fn to_json(&self) -> Value {
        let by_collective = |numbers: &[u64; 4]| {
            Collective::ALL
                .iter()
                .zip(numbers)
                .filter(|(_, number)| **number > 0)
                .map(|(collective, number)| (name(*collective).to_owned(), json!(number)))
                .collect::<Map<_, _>>()
        };
        let plain: Map<_, _> = Reason::ALL
            .iter()
            .zip(&self.plain)
            .filter(|(_, number)| **number > 0)
            .map(|(reason, number)| (reason.key().to_owned(), json!(number)))
            .collect();
        json!({
            "calls": by_collective(&self.calls),
            "offloaded": by_collective(&self.offloaded),
            "plain": plain,
            "rounds": self.rounds,
            "saved_s": self.saved_seconds,
        })
    }
}

/// MPI's name of a collective.
const fn name(collective: Collective) -> &'static str {
    match collective {
        Collective::Allreduce => "MPI_Allreduce",
        Collective::Reduce => "MPI_Reduce",
        Collective::Barrier => "MPI_Barrier",
        Collective::Bcast => "MPI_Bcast",
    }
}
