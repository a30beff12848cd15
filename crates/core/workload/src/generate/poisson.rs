//! Poisson arrivals between random hosts, sizes from a distribution.

use raddle_units::{BitRate, Bytes, NodeId, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Made, check_hosts, check_starts, message};
use crate::cdf::SizeCdf;
use crate::{Expected, MAX_START_PS, Streamed, TrafficError, Workload, limits};
use raddle_random::Random;

const CLASS: &str = "poisson";

/// Our own example: most messages are small, most bytes are in large ones. Not measured anywhere.
const MICE_AND_ELEPHANTS: [(u64, f64); 6] = [
    (64, 0.0),
    (1024, 0.3),
    (16_384, 0.6),
    (65_536, 0.8),
    (1_048_576, 0.95),
    (10_485_760, 1.0),
];

/// Where message sizes come from.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizeTable {
    /// A table of our own: 30 % up to 1 KiB, 80 % up to 64 KiB, 5 % from 1 to 10 MiB.
    MiceAndElephants,
    /// `table = [["1KiB", 0.3], ["64KiB", 1.0]]`: size and cumulative share, straight lines between.
    Table(Vec<(Bytes, f64)>),
    /// `file = "web.cdf"`: lines of `bytes cumulative`, as the HPCC repository's distribution files.
    File(String),
}

/// Independent arrivals: exponential gaps, random source, random other destination, sizes from a distribution.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poisson {
    /// Payload offered per host as a share of the host's link rate.
    #[schemars(range(max = 2), extend("exclusiveMinimum" = 0))]
    pub load: f64,
    /// Size distribution: `"mice-and-elephants"`, `{ table = [["1KiB", 0.3], ["64KiB", 1.0]] }` or
    /// `{ file = "web.cdf" }`.
    #[serde(default = "default_sizes")]
    pub sizes: SizeTable,
    /// Number of flows; give this, `duration`, or both (what comes first ends it).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000_000_000_i64))]
    pub flows: Option<u64>,
    /// Flows start within this time; give this, `flows`, or both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = limits::start())]
    pub duration: Option<Span>,
    /// Earliest start. Default 0.
    #[serde(default)]
    #[schemars(transform = limits::start())]
    pub start: Span,
}

fn default_sizes() -> SizeTable {
    SizeTable::MiceAndElephants
}

impl Poisson {
    /// The flows; constant memory.
    ///
    /// # Errors
    /// A field out of range, a distribution that is not valid, a `file` that was not resolved, fewer than two hosts.
    pub fn build(
        &self,
        hosts: &[NodeId],
        host_rate: BitRate,
        seed: u64,
    ) -> Result<impl Workload + use<>, TrafficError> {
        limits::check(self)?;
        check_hosts(hosts, 2, "to send and to receive")?;
        if host_rate.0 == 0 {
            return Err(TrafficError::spec("load", "the hosts' link rate is 0"));
        }
        if self.flows.is_none() && self.duration.is_none() {
            return Err(TrafficError::spec(
                "flows",
                "without `flows` or `duration` it would never end: give one",
            ));
        }
        let duration = self.duration.unwrap_or(Span(MAX_START_PS));
        if self.duration.is_some() {
            check_starts("duration", self.start.0, duration.0, 2)?;
        }
        let end = self.start.0.saturating_add(duration.0).min(MAX_START_PS);
        let cdf = self.sizes.cdf()?;
        // Arrivals of all hosts together are one Poisson process of the summed rate.
        let bits_per_s = self.load * host_rate.0 as f64 * hosts.len() as f64;
        let mean_bytes = cdf.mean_bytes();
        let mean_gap_ps = mean_bytes * 8e12 / bits_per_s;
        let mut random = Random::new(seed, 0);
        let hosts = hosts.to_vec();
        let limit = self.flows.unwrap_or(u64::MAX);
        let mut at = self.start.0 as f64;
        let mut made = 0;
        let flows = std::iter::from_fn(move || -> Option<Made> {
            at += random.exponential(mean_gap_ps);
            if made == limit || at >= end as f64 {
                return None;
            }
            let source = random.index(hosts.len());
            let target = random.other(hosts.len(), source);
            let size = cdf.sample(&mut random);
            let start = Time(at as u64);
            let flow = message(start, hosts[source], hosts[target], size, 0, made);
            made += 1;
            Some(Ok(flow))
        })
        .fuse();
        let last_start = (self.start.0 as f64 + limit as f64 * mean_gap_ps).min(end as f64);
        let by_time = bits_per_s / 8.0 * duration.as_secs_f64();
        let by_count = limit as f64 * mean_bytes;
        let bytes = Bytes(by_time.min(by_count) as u64);
        // The number is only known beforehand if no end of time can cut it.
        let messages = self.flows.filter(|_| self.duration.is_none());
        Ok(Streamed::new(
            flows,
            vec![CLASS.to_owned()],
            Expected {
                messages,
                bytes: Some(bytes),
                last_start: Some(Time(last_start as u64)),
            },
        ))
    }
}

impl SizeTable {
    fn cdf(&self) -> Result<SizeCdf, TrafficError> {
        let points = match self {
            Self::MiceAndElephants => MICE_AND_ELEPHANTS
                .iter()
                .map(|&(size, share)| (Bytes(size), share))
                .collect(),
            Self::Table(points) => points.clone(),
            Self::File(file) => {
                let problem = format!("file `{file}` was not read; this is a bug of the caller");
                return Err(TrafficError::spec("sizes", problem));
            }
        };
        SizeCdf::new(&points).map_err(|problem| TrafficError::spec("sizes", problem.to_string()))
    }
}
