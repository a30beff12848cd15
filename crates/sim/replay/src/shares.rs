//! How much of a recorded gap a rank worked: what ranks computed at the same time on one processor, they computed in turns.

use raddle_trace::{Event, Trace};
use raddle_units::Span;

/// The work that a processor gave to each rank that computed on it, since the beginning: equal shares at every instant.
#[derive(Debug, Default)]
struct Shared {
    /// (time in ns, work of each in ps until then, ranks that compute from then on), ascending.
    steps: Vec<(u64, u64, u64)>,
}

impl Shared {
    /// Of a processor on which ranks computed in these gaps.
    fn new(gaps: &[(u64, u64)]) -> Self {
        let ends = gaps
            .iter()
            .flat_map(|&(from, to)| [(from, true), (to, false)]);
        let mut ends: Vec<(u64, bool)> = ends.collect();
        ends.sort_unstable();
        let mut steps: Vec<(u64, u64, u64)> = Vec::new();
        let (mut work, mut computing, mut before) = (0, 0_u64, 0);
        for (time, begins) in ends {
            work += (time - before) * 1000 / computing.max(1);
            before = time;
            computing = if begins { computing + 1 } else { computing - 1 };
            match steps.last_mut() {
                Some(last) if last.0 == time => *last = (time, work, computing),
                _ => steps.push((time, work, computing)),
            }
        }
        Self { steps }
    }

    fn until(&self, time: u64) -> u64 {
        let next = self.steps.partition_point(|&(at, ..)| at <= time);
        let Some(&(at, work, computing)) = next.checked_sub(1).and_then(|it| self.steps.get(it))
        else {
            return 0;
        };
        work + (time - at) * 1000 / computing.max(1)
    }
}

/// The same for all ranks of a trace.
#[derive(Debug)]
pub(crate) struct Shares {
    /// By processor; empty: each rank had its own.
    processors: Vec<Shared>,
}

impl Shares {
    /// Of a trace, by the processors that it says its ranks shared.
    pub(crate) fn new(trace: &Trace) -> Self {
        let count = trace.processors.map_or(0, |count| count.max(1) as usize);
        let mut gaps = vec![Vec::new(); count.min(trace.ranks.len())];
        if !gaps.is_empty() {
            for (rank, events) in trace.ranks.iter().enumerate() {
                let place = rank % gaps.len();
                gaps[place].extend(gaps_of(events));
            }
        }
        Self {
            processors: gaps.iter().map(|gaps| Shared::new(gaps)).collect(),
        }
    }

    /// How much a rank worked in a gap between two calls, in ns.
    pub(crate) fn work(&self, rank: u32, from: u64, to: u64) -> Span {
        match self.processors.len() {
            0 => Span((to - from).saturating_mul(1000)),
            count => {
                let own = &self.processors[rank as usize % count];
                Span(own.until(to).saturating_sub(own.until(from)))
            }
        }
    }
}

/// The gaps between calls, in ns: (from, to).
pub(crate) fn gaps_of(events: &[Event]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let mut end = 0;
    events.iter().filter_map(move |event| {
        let gap = (end, event.at.start_ns);
        end = end.max(event.at.end_ns);
        (gap.0 < gap.1).then_some(gap)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_compute_at_once_share_a_processor() {
        let shared = Shared::new(&[(0, 100), (50, 200), (300, 400)]);
        let work = |from, to| shared.until(to) - shared.until(from);
        // Alone for 50 ns, then half of 50; half of 50, then alone for 100; alone.
        assert_eq!(
            [work(0, 100), work(50, 200), work(300, 400)],
            [75_000, 125_000, 100_000]
        );
    }

    #[test]
    fn all_work_together_is_what_the_processor_was_busy() {
        let gaps = [(0, 90), (10, 60), (20, 80), (30, 40), (100, 110)];
        let shared = Shared::new(&gaps);
        let work: u64 = gaps
            .iter()
            .map(|&(from, to)| shared.until(to) - shared.until(from))
            .sum();
        assert!(work.abs_diff(100_000) < 10, "{work}");
    }
}
