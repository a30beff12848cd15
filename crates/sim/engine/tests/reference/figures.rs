//! Figures of an outcome, and two outcomes side by side.

use std::collections::{BTreeMap, BTreeSet};

use super::{Case, Outcome, files::LONG_SENDERS};

/// Bounds of the windows, in ms, over which the reference's table gives the goodput of `small`'s long flows.
const WINDOWS_MS: [(u64, u64); 4] = [(1, 5), (5, 6), (5, 7), (7, 9)];
/// Flows of at least this size count as long.
const LONG_FROM: u64 = 1_000_000;
const GOODPUT_LIMIT: f64 = 0.02;
const PAUSE_LIMIT: f64 = 0.05;

/// One figure of both simulators.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What it is, with its unit.
    pub(crate) figure: String,
    /// Ours and the reference's.
    pub(crate) ours: f64,
    /// The reference's.
    pub(crate) theirs: f64,
    /// Largest relative difference allowed.
    pub(crate) limit: f64,
}

impl Row {
    /// (ours - theirs) / theirs.
    pub(crate) fn difference(&self) -> f64 {
        if self.ours == self.theirs {
            0.0
        } else {
            (self.ours - self.theirs) / self.theirs
        }
    }

    /// Within the limit, if there is one.
    pub(crate) fn holds(&self) -> bool {
        self.difference().abs() <= self.limit
    }
}

/// Every figure of a case, ours beside the reference's.
pub(crate) fn compare(case: &Case, ours: &Outcome, theirs: &Outcome) -> Vec<Row> {
    let mut rows = Vec::new();
    let classes: BTreeSet<&str> = theirs
        .completions
        .iter()
        .map(|flow| flow.class.as_str())
        .collect();
    for class in classes {
        for percent in [50, 95, 99] {
            rows.push(Row {
                figure: format!("FCT {class} p{percent} (us)"),
                ours: percentile_us(ours, class, percent),
                theirs: percentile_us(theirs, class, percent),
                limit: case.fct_limit,
            });
        }
    }
    rows.push(Row {
        figure: "long-flow throughput (Gb/s)".into(),
        ours: long_throughput(ours),
        theirs: long_throughput(theirs),
        limit: GOODPUT_LIMIT,
    });
    if !theirs.progress.is_empty() {
        for sender in LONG_SENDERS {
            for window in WINDOWS_MS {
                rows.push(Row {
                    figure: format!("F{sender} {} to {} ms (Gb/s)", window.0, window.1),
                    ours: goodput(ours, sender, window),
                    theirs: goodput(theirs, sender, window),
                    limit: GOODPUT_LIMIT,
                });
            }
        }
    }
    rows.push(Row {
        figure: "PFC pause time (us)".into(),
        ours: total(&pause_us(ours)),
        theirs: total(&pause_us(theirs)),
        limit: PAUSE_LIMIT,
    });
    let own = pause_us(ours);
    for (&(node, port), &theirs) in pause_us(theirs).iter().filter(|pause| *pause.1 >= 100.0) {
        rows.push(Row {
            figure: format!("PFC pause time of node {node} port {port} (us)"),
            ours: own.get(&(node, port)).copied().unwrap_or_default(),
            theirs,
            limit: PAUSE_LIMIT,
        });
    }
    rows.push(Row {
        figure: "unfinished flows".into(),
        ours: ours.unfinished as f64,
        theirs: theirs.unfinished as f64,
        limit: 0.0,
    });
    rows.push(Row {
        figure: "flows with the same FCT to the ns".into(),
        ours: equal(ours, theirs) as f64,
        theirs: theirs.completions.len() as f64,
        limit: 0.0,
    });
    rows
}

/// With linear interpolation between ranks.
fn percentile_us(outcome: &Outcome, class: &str, percent: usize) -> f64 {
    let mut times: Vec<u64> = outcome
        .completions
        .iter()
        .filter(|flow| flow.class == class)
        .map(|flow| flow.fct)
        .collect();
    times.sort_unstable();
    let Some(last) = times.len().checked_sub(1) else {
        return f64::NAN;
    };
    let rank = last * percent;
    let (below, above) = (
        times[rank / 100] as f64,
        times[last.min(rank / 100 + 1)] as f64,
    );
    (below + (above - below) * (rank % 100) as f64 / 100.0) / 1e3
}

/// Mean over the long flows of size / FCT.
fn long_throughput(outcome: &Outcome) -> f64 {
    let rates: Vec<f64> = outcome
        .completions
        .iter()
        .filter(|flow| flow.size >= LONG_FROM)
        .map(|flow| flow.size as f64 * 8.0 / flow.fct as f64)
        .collect();
    rates.iter().sum::<f64>() / rates.len() as f64
}

/// Acknowledged bytes within a window, as a rate in Gb/s.
fn goodput(outcome: &Outcome, sender: u32, (from, to): (u64, u64)) -> f64 {
    let until = |ms: u64| {
        outcome
            .progress
            .iter()
            .filter(|&&(time, src, _)| src == sender && time <= ms * 1_000_000)
            .map(|&(_, _, acked)| acked)
            .max()
            .unwrap_or_default()
    };
    (until(to) - until(from)) as f64 * 8.0 / ((to - from) as f64 * 1e6)
}

fn total(pauses: &BTreeMap<(u32, u32), f64>) -> f64 {
    // The empty sum of floats is -0.
    pauses.values().sum::<f64>() + 0.0
}

fn pause_us(outcome: &Outcome) -> BTreeMap<(u32, u32), f64> {
    let mut total = BTreeMap::new();
    for &(node, port, start, end) in &outcome.pauses {
        *total.entry((node, port)).or_insert(0.0) += (end - start) as f64 / 1e3;
    }
    total
}

/// Flows that start and end at the reference's nanosecond.
fn equal(ours: &Outcome, theirs: &Outcome) -> usize {
    let own: BTreeMap<_, _> = ours
        .completions
        .iter()
        .map(|flow| (flow.flow, (flow.start, flow.fct)))
        .collect();
    let same = |flow: &&super::Completion| own.get(&flow.flow) == Some(&(flow.start, flow.fct));
    theirs.completions.iter().filter(same).count()
}
