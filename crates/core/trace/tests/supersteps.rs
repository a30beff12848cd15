//! Supersteps and statistics against their definitions.

mod common;

use std::collections::BTreeMap;

use common::program;
use proptest::prelude::*;
use raddle_trace::{Action, Collectives, Pairing, Statistics, Supersteps};

proptest! {
    /// The definition, call by call: superstep k of a rank is what it sends up to the k-th call that keeps it and has sends
    /// before it.
    #[test]
    fn supersteps_end_where_a_call_keeps_its_rank(program in program()) {
        let trace = program.trace();
        let pairing = Pairing::new(&trace).unwrap();
        let supersteps = Supersteps::new(&trace, &pairing);
        let mut naive: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for (rank, events) in (0..).zip(&trace.ranks) {
            let (mut step, mut sent) = (0, 0);
            let mut counts = Vec::new();
            for (event, call) in events.iter().enumerate() {
                match &call.action {
                    Action::Send { request, .. } => {
                        let message = pairing.message(rank, event).unwrap();
                        naive.entry(step).or_default().push(message);
                        sent += 1;
                        if request.is_none() {
                            counts.push(sent);
                            (step, sent) = (step + 1, 0);
                        }
                    }
                    Action::Receive { request: Some(_), .. } => {}
                    _ if sent > 0 => {
                        counts.push(sent);
                        (step, sent) = (step + 1, 0);
                    }
                    _ => {}
                }
            }
            prop_assert_eq!(supersteps.counts(rank), counts);
        }
        prop_assert_eq!(supersteps.len(), naive.len());
        for (step, messages) in naive {
            prop_assert_eq!(supersteps.messages(step), messages);
        }
    }

    #[test]
    fn statistics_count_every_message_once(program in program()) {
        let trace = program.trace();
        let statistics = Statistics::new(&trace, &Pairing::new(&trace).unwrap());
        let mut ranks: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
        let mut hosts: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
        for message in program.steps.iter().flat_map(|step| &step.messages) {
            let of = ranks.entry((message.from, message.to)).or_default();
            *of = (of.0 + 1, of.1.saturating_add(message.bytes));
            let host = |rank| rank / program.per_host;
            *hosts.entry((host(message.from), host(message.to))).or_default() += 1;
            let bin = (0..64).rev().map(|bit| 1 << bit).find(|least| *least <= message.bytes);
            *sizes.entry(bin.unwrap_or(0)).or_default() += 1;
        }
        let found = statistics.ranks.iter().map(|t| ((t.from, t.to), (t.messages, t.bytes)));
        prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), ranks);
        let found = statistics.hosts.iter().map(|t| ((t.from, t.to), t.messages));
        prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), hosts);
        let found = statistics.sizes.iter().map(|bin| (bin.from_bytes, bin.messages));
        prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), sizes);
        let calls: u64 = statistics.collectives.iter().map(|of| of.calls).sum();
        let planned = program.steps.iter().filter(|step| step.collective.is_some()).count();
        prop_assert_eq!(calls, planned as u64 * u64::from(program.ranks));
        prop_assert_eq!(Collectives::new(&trace).unwrap().operations().len(), planned);
        let ends = trace.ranks.iter().map(|events| events.last().unwrap().at.end_ns);
        prop_assert_eq!(statistics.times.duration_ns, ends.max().unwrap());
    }
}

#[test]
fn the_share_of_mpi_is_time_in_calls() {
    use raddle_trace::{Event, Interval, Trace};
    let call = |start, end| Event {
        at: Interval::new(start, end),
        action: Action::Wait {
            requests: Box::default(),
        },
    };
    let trace = Trace {
        // 30 of 100 ns, calls that overlap count once; 10 of 20 ns.
        ranks: vec![
            vec![call(10, 30), call(20, 40), call(100, 100)],
            vec![call(10, 20)],
        ],
        placement: vec![0, 0],
        hosts: vec!["n".to_owned()],
        communicators: vec![vec![0, 1]],
        ..Trace::default()
    };
    let statistics = Statistics::new(&trace, &Pairing::new(&trace).unwrap());
    assert_eq!(statistics.times.duration_ns, 100);
    assert!((statistics.times.mpi_share - 40.0 / 120.0).abs() < 1e-12);
    assert_eq!(statistics.times.mpi_ns, 20.0);
}
