//! All-to-all: within each group every host sends to every other.

use raddle_units::{Bytes, NodeId, Span, Time, many};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Made, check_hosts, check_starts, message};
use crate::{Expected, Streamed, TrafficError, Workload, limits};
use raddle_random::Random;

const CLASS: &str = "all-to-all";

/// Every host sends to every other of its group. In step i host j sends to host j + i of its group, so that each host
/// receives one message per step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AllToAll {
    /// Size of each message. Default 64KiB.
    #[schemars(transform = limits::size())]
    pub size: Bytes,
    /// Hosts per group, drawn at random; hosts left over stay silent. Default: one group of all hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2))]
    pub group: Option<u32>,
    /// Time between the starts of steps. Default 0: all at once.
    #[schemars(transform = limits::start())]
    pub interval: Span,
    /// Start of the first step. Default 0.
    #[schemars(transform = limits::start())]
    pub start: Span,
}

impl Default for AllToAll {
    fn default() -> Self {
        Self {
            size: Bytes(65_536),
            group: None,
            interval: Span::ZERO,
            start: Span::ZERO,
        }
    }
}

impl AllToAll {
    /// The flows: groups x size x (size - 1), in order of step.
    ///
    /// # Errors
    /// A field out of range, a group larger than the fabric.
    pub fn build(
        &self,
        hosts: &[NodeId],
        seed: u64,
    ) -> Result<impl Workload + use<>, TrafficError> {
        limits::check(self)?;
        check_hosts(hosts, 2, "to send and to receive")?;
        let group = self.group.map_or(hosts.len(), |group| group as usize);
        if group > hosts.len() {
            let problem = format!(
                "{group} is more than the {} of this fabric",
                many(hosts.len(), "host")
            );
            return Err(TrafficError::spec("group", problem));
        }
        let steps = group as u64 - 1;
        let last_start = check_starts("interval", self.start.0, self.interval.0, steps)?;
        let mut order = hosts.to_vec();
        if self.group.is_some() {
            Random::new(seed, 0).shuffle(&mut order);
            order.truncate(hosts.len() / group * group);
        }
        let per_step = order.len() as u64;
        let total = steps * per_step;
        let bytes = limits::sum("size", total, self.size)?;
        let Self {
            size,
            interval,
            start,
            ..
        } = *self;
        let flows = (0..total).map(move |index| -> Made {
            let step = index / per_step;
            let source = (index % per_step) as usize;
            let base = source / group * group;
            let target = base + (source - base + step as usize + 1) % group;
            let at = Time(start.0 + interval.0 * step);
            Ok(message(at, order[source], order[target], size, 0, index))
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
