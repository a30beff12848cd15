//! Supersteps: what ranks send between two waits.

use crate::{
    model::{Action, Trace},
    pairing::Pairing,
};

/// The messages of a trace by superstep.
///
/// A rank's superstep is what it sends until a call keeps it: a wait, a collective, or a blocking receive or send, which is
/// the superstep's last. What a collective that was told as messages sends is left out. Superstep k
/// of the trace is the k-th superstep with messages of every rank; in a program in lock step these are the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supersteps {
    /// Indexes of messages by (superstep, source, order); those of collectives are in none.
    messages: Vec<u32>,
    first: Vec<usize>,
    /// Messages of each superstep of each rank, ranks one after the other.
    counts: Vec<u32>,
    first_count: Vec<usize>,
}

impl Action {
    /// Whether the call keeps its rank until something is complete: the end of a superstep.
    #[must_use]
    pub const fn ends_superstep(&self) -> bool {
        match self {
            Self::Wait { .. } | Self::End => true,
            Self::Send { request, .. }
            | Self::Receive { request, .. }
            | Self::Collective { request, .. } => request.is_none(),
        }
    }
}

impl Supersteps {
    /// The supersteps of a trace whose messages are `pairing`.
    #[must_use]
    pub fn new(trace: &Trace, pairing: &Pairing) -> Self {
        let mut step_of = vec![None; pairing.messages().len()];
        let mut sizes: Vec<usize> = Vec::new();
        let (mut counts, mut first_count) = (Vec::new(), vec![0]);
        for (rank, events) in (0..).zip(&trace.ranks) {
            let (mut step, mut count) = (0, 0_u32);
            let mut close = |step: &mut usize, count: &mut u32| {
                if *count > 0 {
                    counts.push(*count);
                    (*step, *count) = (*step + 1, 0);
                }
            };
            for (event, call) in events.iter().enumerate() {
                if let Action::Send { message, .. } = &call.action
                    && !message.is_collective()
                    && let Some(index) = pairing.message(rank, event)
                {
                    step_of[index as usize] = Some(step);
                    if sizes.len() <= step {
                        sizes.push(0);
                    }
                    sizes[step] += 1;
                    count += 1;
                }
                if call.action.ends_superstep() {
                    close(&mut step, &mut count);
                }
            }
            close(&mut step, &mut count);
            first_count.push(counts.len());
        }
        let mut first = vec![0];
        for size in sizes {
            first.push(first[first.len() - 1] + size);
        }
        let mut next = first.clone();
        let mut messages = vec![0; first[first.len() - 1]];
        for (message, step) in (0..).zip(step_of) {
            if let Some(step) = step {
                messages[next[step]] = message;
                next[step] += 1;
            }
        }
        Self {
            messages,
            first,
            counts,
            first_count,
        }
    }

    /// Number of supersteps: the most that a rank has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.first.len() - 1
    }

    /// Whether nobody sends anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The messages of a superstep, by their index, by source, each source's in program order.
    ///
    /// # Panics
    /// If there is no such superstep.
    #[must_use]
    pub fn messages(&self, superstep: usize) -> &[u32] {
        &self.messages[self.first[superstep]..self.first[superstep + 1]]
    }

    /// How many messages each superstep of a rank has.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn counts(&self, rank: u32) -> &[u32] {
        let rank = rank as usize;
        &self.counts[self.first_count[rank]..self.first_count[rank + 1]]
    }
}
