//! Is it faster? Each class of calls of a communicator (collective and size) is measured both ways in its first calls,
//! in turns; then all ranks take what was faster for them together. Both ways give the same result.

use std::time::Duration;

use raddle_wire::native::Collective;

/// Calls of each way that are measured.
const TRIALS: usize = 16;
/// Calls of each way before those: sockets, caches and routes get warm.
const WARM_UP: usize = 2;
/// Classes of sizes: up to 8 bytes, 16, 32, and so on.
const SIZES: usize = 20;

/// What to do with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Offload,
    Plain,
    /// Offload and say how long it took.
    TryOffload,
    /// The plain call, and say how long it took.
    TryPlain,
    /// The ranks are to compare [`Class::medians`] now and hand the sums to [`Class::decide`].
    Compare,
}

/// One class of calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Class {
    begun: usize,
    plain: Vec<Duration>,
    offload: Vec<Duration>,
    decided: Option<bool>,
    saving: f64,
}

/// All classes of a communicator.
#[derive(Debug, Clone)]
pub(crate) struct Classes(Vec<Class>);

impl Classes {
    pub(crate) fn new() -> Self {
        Self(vec![Class::default(); 4 * SIZES])
    }

    /// The class of messages of `bytes`.
    pub(crate) fn of(&mut self, collective: Collective, bytes: usize) -> &mut Class {
        let size = bytes.div_ceil(8).next_power_of_two().ilog2() as usize;
        &mut self.0[collective as usize * SIZES + size.min(SIZES - 1)]
    }

    /// All numbers are the same on all ranks but times.
    #[cfg(test)]
    fn undecided(&self) -> usize {
        self.0
            .iter()
            .filter(|class| class.decided.is_none())
            .count()
    }
}

impl Class {
    /// What to do with the next call. The same on all ranks, since all count the same calls.
    pub(crate) fn next(&mut self) -> Choice {
        if let Some(offload) = self.decided {
            return if offload {
                Choice::Offload
            } else {
                Choice::Plain
            };
        }
        if self.begun == 2 * (TRIALS + WARM_UP) {
            return Choice::Compare;
        }
        // Plain, offload, offload, plain, …: a drift of the machine meets both alike.
        let turn = self.begun % 4;
        self.begun += 1;
        if turn == 0 || turn == 3 {
            Choice::TryPlain
        } else {
            Choice::TryOffload
        }
    }

    /// How long a call of a kind that was asked for took.
    pub(crate) fn took(&mut self, offload: bool, time: Duration) {
        if offload {
            &mut self.offload
        } else {
            &mut self.plain
        }
        .push(time);
    }

    /// This rank's medians in seconds, plain and offload.
    pub(crate) fn medians(&self) -> [f64; 2] {
        [median(&self.plain), median(&self.offload)]
    }

    /// Decides by the sums of all ranks' medians, plain and offload.
    pub(crate) fn decide(&mut self, [plain, offload]: [f64; 2]) -> bool {
        let faster = offload < plain;
        let [mine, offloaded] = self.medians();
        self.saving = mine - offloaded;
        self.decided = Some(faster);
        faster
    }

    /// Whether the plain call was found to be faster.
    pub(crate) fn is_plain(&self) -> bool {
        self.decided == Some(false)
    }

    /// Seconds that each offloaded call of this rank saves; 0 before that was measured.
    pub(crate) const fn saving(&self) -> f64 {
        self.saving
    }
}

fn median(times: &[Duration]) -> f64 {
    let mut times = times.get(WARM_UP..).unwrap_or(&[]).to_vec();
    times.sort_unstable();
    times
        .get(times.len() / 2)
        .map_or(0.0, Duration::as_secs_f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(plain: u64, offload: u64) -> Class {
        let mut class = Class::default();
        loop {
            match class.next() {
                Choice::TryPlain => class.took(false, Duration::from_micros(plain)),
                Choice::TryOffload => class.took(true, Duration::from_micros(offload)),
                Choice::Compare => return class,
                other => panic!("{other:?} before anything was decided"),
            }
        }
    }

    #[test]
    fn both_ways_are_tried_equally_often_and_the_faster_one_stays() {
        let mut class = measure(20, 12);
        assert_eq!(class.plain.len(), TRIALS + WARM_UP);
        assert_eq!(class.offload.len(), TRIALS + WARM_UP);
        let medians = class.medians();
        assert!(class.decide(medians));
        assert_eq!(class.next(), Choice::Offload);
        assert!((class.saving() - 8e-6).abs() < 1e-12);
        let mut class = measure(12, 20);
        let medians = class.medians();
        assert!(!class.decide(medians));
        assert_eq!(class.next(), Choice::Plain);
    }

    #[test]
    fn what_all_ranks_found_decides_not_what_one_found() {
        let mut class = measure(20, 12);
        assert!(!class.decide([50e-6, 60e-6]));
        assert_eq!(class.next(), Choice::Plain);
    }

    #[test]
    fn sizes_double_from_class_to_class() {
        let mut classes = Classes::new();
        let all = classes.undecided();
        for bytes in [0, 1, 8] {
            classes.of(Collective::Allreduce, bytes).decide([2.0, 1.0]);
        }
        assert_eq!(classes.undecided(), all - 1);
        for bytes in [9, 16, 17, 32] {
            classes.of(Collective::Allreduce, bytes).decide([2.0, 1.0]);
        }
        classes.of(Collective::Bcast, 8).decide([2.0, 1.0]);
        assert_eq!(classes.undecided(), all - 4);
    }
}
