//! What a trace is made of: who sends how much to whom, in which sizes, and how much time goes into it.

use crate::{
    model::{Action, CollectiveKind, Trace},
    pairing::Pairing,
};

/// All that one rank or host sends to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Traffic {
    /// Sender.
    pub from: u32,
    /// Receiver; may be the sender.
    pub to: u32,
    /// Messages.
    pub messages: u64,
    /// Bytes (stops at 2^64 - 1).
    pub bytes: u64,
}

/// Messages of similar size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SizeBin {
    /// Least size in bytes: 0, 1, 2, 4, 8 and so on; the bin ends below the next one's.
    pub from_bytes: u64,
    /// Messages.
    pub messages: u64,
    /// Bytes (stops at 2^64 - 1).
    pub bytes: u64,
}

/// Calls of a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectiveCalls {
    /// Which.
    pub kind: CollectiveKind,
    /// Calls, over all ranks.
    pub calls: u64,
    /// Bytes of all calls (stops at 2^64 - 1).
    pub bytes: u64,
}

/// Figures of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// Pairs of ranks that have messages, by (from, to).
    pub ranks: Vec<Traffic>,
    /// Pairs of hosts that have messages, by (from, to); from a host to itself too.
    pub hosts: Vec<Traffic>,
    /// Sizes that occur, ascending.
    pub sizes: Vec<SizeBin>,
    /// Collectives that occur.
    pub collectives: Vec<CollectiveCalls>,
    /// How long ranks took.
    pub times: Times,
}

/// How long ranks took, and how much of it in MPI. Where calls of threads overlap, time counts once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// From start to end of the rank that takes longest.
    pub duration_ns: u64,
    /// Share of all ranks' time that is spent in MPI, 0 to 1.
    pub mpi_share: f64,
    /// The same time, as the mean over ranks.
    pub mpi_ns: f64,
}

impl Statistics {
    /// The figures of a checked trace whose messages are `pairing`, in O(M log M).
    #[must_use]
    pub fn new(trace: &Trace, pairing: &Pairing) -> Self {
        let messages = pairing.messages();
        let host = |rank: u32| trace.placement[rank as usize];
        let by_rank = messages.iter().map(|m| (m.source, m.target, m.bytes.0));
        let by_host = messages
            .iter()
            .map(|m| (host(m.source), host(m.target), m.bytes.0));
        let mut sizes = [SizeBin::default(); 65];
        for message in messages {
            let bits = u64::BITS - message.bytes.0.leading_zeros();
            let bin = &mut sizes[bits as usize];
            bin.from_bytes = if bits == 0 { 0 } else { 1 << (bits - 1) };
            bin.messages += 1;
            bin.bytes += message.bytes.0;
        }
        Self {
            ranks: matrix(by_rank),
            hosts: matrix(by_host),
            sizes: sizes.into_iter().filter(|bin| bin.messages > 0).collect(),
            collectives: collectives(trace),
            times: Times::new(trace),
        }
    }
}

fn matrix(messages: impl Iterator<Item = (u32, u32, u64)>) -> Vec<Traffic> {
    let mut messages: Vec<(u32, u32, u64)> = messages.collect();
    messages.sort_unstable();
    messages
        .chunk_by(|a, b| (a.0, a.1) == (b.0, b.1))
        .map(|same| Traffic {
            from: same[0].0,
            to: same[0].1,
            messages: same.len() as u64,
            bytes: same.iter().map(|m| m.2).sum(),
        })
        .collect()
}

fn collectives(trace: &Trace) -> Vec<CollectiveCalls> {
    let mut all = CollectiveKind::ALL.map(|kind| CollectiveCalls {
        kind,
        calls: 0,
        bytes: 0,
    });
    for event in trace.ranks.iter().flatten() {
        if let Action::Collective { call, .. } = &event.action {
            let of = &mut all[call.kind as usize];
            of.calls += 1;
            of.bytes += call.bytes.0;
        }
    }
    all.into_iter().filter(|of| of.calls > 0).collect()
}

impl Times {
    /// The times of a trace.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let (mut longest, mut total, mut inside) = (0, 0.0, 0.0);
        for events in &trace.ranks {
            let (mut end, mut busy) = (0, 0);
            for event in events {
                let start = event.at.start_ns.max(end);
                busy += event.at.end_ns.saturating_sub(start);
                end = end.max(event.at.end_ns);
            }
            longest = longest.max(end);
            total += end as f64;
            inside += busy as f64;
        }
        Self {
            duration_ns: longest,
            mpi_share: if total > 0.0 { inside / total } else { 0.0 },
            mpi_ns: inside / trace.ranks.len().max(1) as f64,
        }
    }
}
