//! Frames lost, doubled and delayed on purpose: for tests on machines whose kernel cannot do that (`tc netem`).
//!
//! A switch with a table `[faults]` in its file treats each frame that comes and each frame that leaves so. What is
//! delayed comes after up to `HELD` later ones, so that the order changes.

use std::collections::VecDeque;

use raddle_random::Random;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{bridge::Port, socket::Offload};

/// Most frames that are held back at once.
const HELD: usize = 16;

/// How often frames suffer what, and the seed of the draws.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultTable {
    /// Part of the frames that is lost.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub loss: f64,
    /// Part of the frames that comes twice.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub duplication: f64,
    /// Part of the frames that comes later than its followers.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub reordering: f64,
    /// Seed of the draws.
    #[serde(default)]
    pub seed: u64,
}

/// A frame that waits for its followers.
#[derive(Debug, Clone)]
pub struct Held {
    /// The port it came from, or leaves by.
    pub port: Port,
    /// What is still to be done to it.
    pub offload: Offload,
    /// Its bytes.
    pub frame: Vec<u8>,
}

impl Held {
    /// A copy of a frame.
    #[must_use]
    pub fn new(port: Port, offload: Offload, frame: &[u8]) -> Self {
        Self {
            port,
            offload,
            frame: frame.to_vec(),
        }
    }
}

/// The two places of a switch where frames suffer.
#[derive(Debug)]
pub struct FaultPoints {
    /// When they come.
    pub arriving: Faults<Held>,
    /// When they leave.
    pub leaving: Faults<Held>,
}

impl FaultPoints {
    /// Both places of a switch.
    #[must_use]
    pub fn new(table: FaultTable) -> Self {
        Self {
            arriving: Faults::new(table, 0),
            leaving: Faults::new(table, 1),
        }
    }
}

/// A place where frames suffer.
#[derive(Debug)]
pub struct Faults<T> {
    table: FaultTable,
    random: Random,
    held: VecDeque<(u32, T)>,
}

impl<T: Clone> Faults<T> {
    /// A place with draws of its own: `stream` tells places of one switch apart.
    #[must_use]
    pub fn new(table: FaultTable, stream: u64) -> Self {
        Self {
            table,
            random: Random::new(table.seed, stream),
            held: VecDeque::new(),
        }
    }

    /// A frame comes to this place: gives what goes on now, which may be nothing, or others than this one.
    pub fn pass(&mut self, frame: T) -> Vec<T> {
        let mut on = Vec::new();
        if self.random.unit() < self.table.loss {
            // It is gone.
        } else if self.random.unit() < self.table.duplication {
            on.extend([frame.clone(), frame]);
        } else if self.random.unit() < self.table.reordering && self.held.len() < HELD {
            let later = 1 + self.random.index(HELD) as u32;
            self.held.push_back((later, frame));
            return on;
        } else {
            on.push(frame);
        }
        for (later, _) in &mut self.held {
            *later -= 1;
        }
        while let Some(due) = self.held.iter().position(|(later, _)| *later == 0) {
            on.extend(self.held.remove(due).map(|(_, frame)| frame));
        }
        on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(loss: f64, duplication: f64, reordering: f64) -> Faults<u32> {
        let table = FaultTable {
            loss,
            duplication,
            reordering,
            seed: 1,
        };
        Faults::new(table, 0)
    }

    #[test]
    fn frames_suffer_as_often_as_the_table_says() {
        // Six standard deviations of the binomial distribution: 6 * sqrt(100,000 * 0.1 * 0.9) = 569.
        let mut lossy = faults(0.1, 0.0, 0.0);
        let passed: usize = (0..100_000).map(|n| lossy.pass(n).len()).sum();
        assert!(passed.abs_diff(90_000) < 569, "{passed}");
        let mut doubling = faults(0.0, 0.1, 0.0);
        let passed: usize = (0..100_000).map(|n| doubling.pass(n).len()).sum();
        assert!(passed.abs_diff(110_000) < 569, "{passed}");
    }

    #[test]
    fn nothing_happens_where_the_table_is_empty() {
        let mut faults = faults(0.0, 0.0, 0.0);
        assert!((0..10_000).all(|n| faults.pass(n) == [n]));
    }

    #[test]
    fn what_is_held_back_comes_soon_and_once() {
        let mut faults = faults(0.0, 0.0, 0.2);
        let mut came: Vec<u32> = (0..10_000).flat_map(|n| faults.pass(n)).collect();
        let late = came.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!(late > 500, "{late}");
        came.extend(faults.held.iter().map(|(_, frame)| *frame));
        assert!(faults.held.len() <= HELD);
        came.sort_unstable();
        assert!(came.iter().copied().eq(0..10_000));
    }
}
