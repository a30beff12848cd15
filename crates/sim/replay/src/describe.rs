//! A trace in numbers, as JSON for the command line.

use raddle_trace::{Pairing, Statistics, Supersteps, Trace, TraceError, Traffic};
use serde_json::{Value, json};

/// Pairs of ranks that are told one by one; of more only the sum is of use.
const MOST_PAIRS: usize = 4_000_000;

/// JSON: ranks, hosts, calls, messages, sizes, supersteps, collectives, times, and with `matrix` who sends how much to whom.
///
/// # Errors
/// Messages without their other end.
pub fn trace_summary(trace: &Trace, matrix: bool) -> Result<Value, TraceError> {
    let pairing = Pairing::new(trace)?;
    let statistics = Statistics::new(trace, &pairing);
    let supersteps = Supersteps::new(trace, &pairing);
    let messages = pairing.messages();
    let host = |rank: u32| trace.placement[rank as usize];
    let between = |m: &&raddle_trace::Transfer| host(m.source) != host(m.target);
    let per_step: Vec<u32> = (0..trace.ranks.len() as u32)
        .flat_map(|rank| supersteps.counts(rank).iter().copied())
        .collect();
    let sizes: Vec<Value> = statistics
        .sizes
        .iter()
        .map(|bin| {
            json!({"from_bytes": bin.from_bytes, "messages": bin.messages, "bytes": bin.bytes})
        })
        .collect();
    let collectives: Vec<Value> = statistics
        .collectives
        .iter()
        .map(|of| json!({"kind": of.kind.name(), "calls": of.calls, "bytes": of.bytes}))
        .collect();
    let mut summary = json!({
        "program": trace.program,
        "mpi": trace.mpi,
        "processors": trace.processors,
        "has_fabric": !trace.fabric.is_empty(),
        "ranks": trace.ranks.len(),
        "hosts": trace.hosts,
        "communicators": trace.communicators.len(),
        "calls": trace.ranks.iter().map(Vec::len).sum::<usize>(),
        "messages": messages.len(),
        "bytes": sum(messages.iter().map(|m| m.bytes.0)),
        "messages_between_hosts": messages.iter().filter(between).count(),
        "bytes_between_hosts": sum(messages.iter().filter(between).map(|m| m.bytes.0)),
        "sizes": sizes,
        "collectives": collectives,
        "supersteps": {
            "count": supersteps.len(),
            "messages_per_rank_mean": mean(&per_step),
            "messages_per_rank_max": per_step.iter().max(),
        },
        "duration_s": statistics.times.duration_ns as f64 / 1e9,
        "mpi_share": statistics.times.mpi_share,
        "mpi_s": statistics.times.mpi_ns / 1e9,
    });
    if matrix {
        summary["host_matrix"] = pairs(&statistics.hosts);
        if statistics.ranks.len() <= MOST_PAIRS {
            summary["rank_matrix"] = pairs(&statistics.ranks);
        }
    }
    Ok(summary)
}

fn sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

fn mean(counts: &[u32]) -> Option<f64> {
    let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    (!counts.is_empty()).then(|| total as f64 / counts.len() as f64)
}

/// Columns: from, to, messages, bytes.
fn pairs(traffic: &[Traffic]) -> Value {
    json!({
        "from": traffic.iter().map(|of| of.from).collect::<Vec<_>>(),
        "to": traffic.iter().map(|of| of.to).collect::<Vec<_>>(),
        "messages": traffic.iter().map(|of| of.messages).collect::<Vec<_>>(),
        "bytes": traffic.iter().map(|of| of.bytes).collect::<Vec<_>>(),
    })
}
