//! Incast: many hosts send to one at the same time.

use raddle_units::{Bytes, NodeId, Span, Time, many};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Made, check_hosts, check_starts, message};
use crate::{Expected, Streamed, TrafficError, Workload, limits};
use raddle_random::Random;

const CLASS: &str = "incast";

/// Events in which several random hosts send to one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Incast {
    /// Senders of one event. Default 16.
    #[schemars(range(min = 1))]
    pub sources: u32,
    /// Receiving host; a random one for each event if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<NodeId>,
    /// Size of each message. Default 64KiB.
    #[schemars(transform = limits::size())]
    pub size: Bytes,
    /// Number of events. Default 1.
    #[schemars(range(max = 1_000_000_000))]
    pub events: u64,
    /// Time between the starts of events. Default 0.
    #[schemars(transform = limits::start())]
    pub interval: Span,
    /// Start of the first event. Default 0.
    #[schemars(transform = limits::start())]
    pub start: Span,
}

impl Default for Incast {
    fn default() -> Self {
        Self {
            sources: 16,
            target: None,
            size: Bytes(65_536),
            events: 1,
            interval: Span::ZERO,
            start: Span::ZERO,
        }
    }
}

impl Incast {
    /// The flows: sources x events.
    ///
    /// # Errors
    /// A field out of range, an unknown target, more sources than other hosts.
    pub fn build(
        &self,
        hosts: &[NodeId],
        seed: u64,
    ) -> Result<impl Workload + use<>, TrafficError> {
        limits::check(self)?;
        check_hosts(hosts, 2, "to send and to receive")?;
        let last_start = check_starts("interval", self.start.0, self.interval.0, self.events)?;
        let sources = self.sources as usize;
        if sources >= hosts.len() {
            let problem = format!(
                "{sources} is too many: this fabric has {} beside the receiver",
                many(hosts.len() - 1, "host")
            );
            return Err(TrafficError::spec("sources", problem));
        }
        let target = match self.target {
            None => None,
            Some(node) => Some(hosts.iter().position(|&host| host == node).ok_or_else(|| {
                TrafficError::spec("target", format!("{node} is not a host of this fabric"))
            })?),
        };
        let total = self.events * u64::from(self.sources);
        let bytes = limits::sum("events", total, self.size)?;
        let Self {
            size,
            interval,
            start,
            ..
        } = *self;
        let mut order = hosts.to_vec();
        if let Some(index) = target {
            order.swap(0, index);
        }
        let mut random = Random::new(seed, 0);
        let flows = (0..total).map(move |index| -> Made {
            let place = (index % sources as u64) as usize;
            if place == 0 {
                if target.is_some() {
                    random.choose_to_front(&mut order[1..], sources);
                } else {
                    random.choose_to_front(&mut order, sources + 1);
                }
            }
            let at = Time(start.0 + interval.0 * (index / sources as u64));
            Ok(message(at, order[place + 1], order[0], size, 0, index))
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
