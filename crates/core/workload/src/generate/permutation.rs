//! Permutation traffic: every host sends to exactly one other and receives from exactly one.

use raddle_units::{Bytes, NodeId, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Made, check_hosts, check_starts, message};
use crate::{Expected, Streamed, TrafficError, Workload, limits};
use raddle_random::Random;

const CLASS: &str = "permutation";

/// Every host sends one message to its partner; partners form one random cycle through all hosts, drawn anew for each
/// round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Permutation {
    /// Size of each message. Default 1MB.
    #[schemars(transform = limits::size())]
    pub size: Bytes,
    /// Number of permutations, one after the other. Default 1.
    #[schemars(range(max = 1_000_000_000))]
    pub rounds: u64,
    /// Time between the starts of rounds. Default 0.
    #[schemars(transform = limits::start())]
    pub interval: Span,
    /// Start of the first round. Default 0.
    #[schemars(transform = limits::start())]
    pub start: Span,
}

impl Default for Permutation {
    fn default() -> Self {
        Self {
            size: Bytes(1_000_000),
            rounds: 1,
            interval: Span::ZERO,
            start: Span::ZERO,
        }
    }
}

impl Permutation {
    /// The flows: hosts x rounds, in order of round and source.
    ///
    /// # Errors
    /// A field out of range, fewer than two hosts.
    pub fn build(
        &self,
        hosts: &[NodeId],
        seed: u64,
    ) -> Result<impl Workload + use<>, TrafficError> {
        limits::check(self)?;
        check_hosts(hosts, 2, "to send and to receive")?;
        let last_start = check_starts("interval", self.start.0, self.interval.0, self.rounds)?;
        let n = hosts.len();
        let total = self.rounds * n as u64;
        let bytes = limits::sum("rounds", total, self.size)?;
        let Self {
            size,
            interval,
            start,
            ..
        } = *self;
        let sources = hosts.to_vec();
        let mut targets = hosts.to_vec();
        let mut random = Random::new(seed, 0);
        let flows = (0..total).map(move |index| -> Made {
            let place = (index % n as u64) as usize;
            if place == 0 {
                targets.copy_from_slice(&sources);
                random.shuffle_to_cycle(&mut targets);
            }
            let at = Time(start.0 + interval.0 * (index / n as u64));
            Ok(message(at, sources[place], targets[place], size, 0, index))
        });
        Ok(Streamed::new(
            flows,
            vec![CLASS.to_owned()],
            Expected {
                messages: Some(total),
                bytes: Some(bytes),
                last_start: Some(last_start),
            },
        ))
    }
}
