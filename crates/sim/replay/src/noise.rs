//! What a seed varies.

use raddle_random::Random;
use raddle_text::at_most;
use raddle_units::Span;
use schemars::JsonSchema;
use serde::Serialize;

/// What is varied from seed to seed, so that a gain has an interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Noise {
    /// Every compute gap is longer or shorter by up to this share, uniformly.
    #[schemars(range(min = 0, max = 1))]
    pub gap_share: f64,
    /// Ranks start up to this much later, uniformly.
    #[schemars(transform = at_most("3600s"))]
    pub start_skew: Span,
}

impl Default for Noise {
    fn default() -> Self {
        Self {
            gap_share: 0.02,
            start_skew: Span::from_us(1),
        }
    }
}

/// A rank's noise: a stream of its own, so that it does not depend on other ranks or programs.
#[derive(Debug)]
pub(super) struct RankNoise {
    noise: Noise,
    random: Random,
}

impl RankNoise {
    pub(super) fn new(noise: Noise, seed: u64, program: usize, rank: u32) -> Self {
        let stream = (program as u64) << 32 | u64::from(rank);
        Self {
            noise,
            random: Random::new(seed, stream),
        }
    }

    /// When the rank starts.
    pub(super) fn start(&mut self) -> Span {
        Span((self.random.unit() * self.noise.start_skew.0 as f64) as u64)
    }

    /// How long a compute gap of `gap` is this time.
    pub(super) fn gap(&mut self, gap: Span) -> Span {
        let factor = 1.0 + self.noise.gap_share * (2.0 * self.random.unit() - 1.0);
        Span((gap.0 as f64 * factor.max(0.0)) as u64)
    }
}
