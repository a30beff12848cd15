//! What runs will cost on this machine as it is now: the estimate, scaled by a short measurement.

use std::{cell::RefCell, collections::BTreeSet, time::Duration};

use raddle_engine::{Progress, Recorder, RunSummary, record::Sample, simulate};
use raddle_text::{Files, InputError as ExperimentError};
use rustix::time::{ClockId, clock_gettime};

use super::{
    estimate::{Counts, Estimate, Part},
    resolved::{Resolved, Variant},
};

/// What is measured where the beginning of a run says little of its rest: 8,192 hosts, 6.4 million packet-hops, 0.2 GB of
/// state.
const LARGE: &str = r#"schema = 1
[fabric]
kind = "k-ary-fat-tree"
k = 32
[traffic]
generator = "permutation"
size = "64KiB"
[simulation]
schemes = ["hpcc"]
"#;

/// Processor time that this thread has taken: other programs on the machine do not count.
pub(super) fn processor_time() -> Duration {
    let taken = clock_gettime(ClockId::ThreadCPUTime);
    let nanoseconds = u32::try_from(taken.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(taken.tv_sec).unwrap_or(0), nanoseconds)
}

/// Stops a run when it has taken its share of processor time.
struct Stopwatch<'a> {
    progress: &'a Progress,
    budget: Duration,
    start: Duration,
    samples: u64,
    /// Time taken, hops and samples, whenever the engine asked.
    looks: RefCell<Vec<(Duration, u64, u64)>>,
}

impl Recorder for Stopwatch<'_> {
    fn sample(&mut self, _sample: &Sample<'_>) {
        self.samples += 1;
    }

    fn failed(&self) -> bool {
        let now = processor_time() - self.start;
        let mut looks = self.looks.borrow_mut();
        looks.push((now, self.progress.packet_hops(), self.samples));
        now - looks[0].0 >= self.budget
    }
}

impl Stopwatch<'_> {
    /// The parts between two looks; all of it where it is to be one part, or was over before.
    fn parts(&self, summary: &RunSummary, ports: u64, one: bool) -> Vec<Part> {
        let looks = self.looks.borrow();
        if one || looks.len() < 2 {
            return vec![Part {
                seconds: (processor_time() - self.start).as_secs_f64(),
                hops: summary.packet_hops,
                samples: self.samples,
                ports,
            }];
        }
        let part = |pair: &[(Duration, u64, u64)]| Part {
            seconds: (pair[1].0 - pair[0].0).as_secs_f64(),
            hops: pair[1].1 - pair[0].1,
            samples: pair[1].2 - pair[0].2,
            ports: 0,
        };
        looks.windows(2).map(part).collect()
    }
}

impl Resolved {
    /// What the runs will cost on this machine as it is now.
    ///
    /// A part of the first run of each scheme is simulated, until all have taken `budget` of processor time together. Where
    /// the beginning of a run says little of the rest, another run is simulated as a whole, which takes a second or two.
    ///
    /// # Errors
    /// A flow file that changed or vanished since the experiment was checked.
    pub fn measure(
        &self,
        budget: Duration,
        files: &dyn Files,
    ) -> Result<Vec<Estimate>, ExperimentError> {
        let planned = || self.runs.iter().map(|run| run.estimate);
        if planned().all(|estimate| estimate.seconds.is_none()) {
            return Ok(planned().collect());
        }
        let mut slower = if self.counts.iter().any(Counts::is_unlike_its_beginning) {
            let other = Self::new(LARGE, "measured.toml", files)?;
            other.slowness(Duration::MAX, files)?
        } else {
            self.slowness(budget, files)?
        };
        // Other programs disturb some parts.
        slower.sort_by(f64::total_cmp);
        let usual = slower.get(slower.len() / 2).copied().unwrap_or(1.0);
        let runs = self.counts.iter();
        Ok(runs.map(|counts| counts.estimate(usual)).collect())
    }

    /// How many times slower than the constants say the first run of each scheme is, part by part.
    fn slowness(&self, budget: Duration, files: &dyn Files) -> Result<Vec<f64>, ExperimentError> {
        let start = processor_time();
        let share = budget / self.schemes.len().max(1) as u32;
        let (mut slower, mut measured) = (Vec::new(), BTreeSet::new());
        for (run, counts) in self.runs.iter().zip(&self.counts) {
            if run.variant != Variant::Loaded
                || processor_time() - start > budget
                || !measured.insert(run.scheme)
            {
                continue;
            }
            let progress = Progress::default();
            let mut watch = Stopwatch {
                progress: &progress,
                budget: share,
                start: processor_time(),
                samples: 0,
                looks: RefCell::default(),
            };
            let config = self.run_config(run);
            let network = &self.network;
            let (summary, _) = self.drive(run, files, |workload| {
                simulate(network, &config, workload, &mut watch, &progress)
            })?;
            // What does not fit the groups is said when the run is asked for.
            if let Ok(summary) = summary {
                let parts = watch.parts(&summary, counts.ports, share == Duration::MAX);
                slower.extend(counts.slowness(&parts, summary.most_packets));
            }
        }
        Ok(slower)
    }
}
