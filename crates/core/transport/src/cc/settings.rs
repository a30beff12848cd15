//! From what a user set to what a scheme runs with: defaults that scale with the fabric, and where each value comes from.

use std::fmt::Display;

use raddle_units::{BitRate, Bytes, Span};
use serde::Serialize;

use crate::telemetry::TelemetryUnits;

/// Which family of defaults applies where the user set nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Defaults {
    /// The published values, scaled with link speed and base RTT.
    #[default]
    Scaled,
    /// The HPCC simulator's configuration files, scaled with link speed as its scripts do.
    HpccNs3,
}

/// The fabric as a scheme's defaults see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Environment {
    /// Rate of the hosts' NICs.
    pub line_rate: BitRate,
    /// Largest round-trip time of an idle fabric over all host pairs.
    pub base_rtt: Span,
    /// Largest bandwidth-delay product over all host pairs.
    pub bdp: Bytes,
    /// Payload bytes of a full packet.
    pub mtu: Bytes,
    /// Largest number of switches between two hosts.
    pub max_switch_hops: usize,
    /// Distinct link rates of the fabric, in the order of their telemetry codes (at most eight).
    pub link_rates: Vec<BitRate>,
    /// The family of defaults.
    pub defaults: Defaults,
}

impl Environment {
    /// `value` given for 100 Gbit/s, in proportion to the hosts' rate.
    pub fn scale_rate(&self, value_at_100g: BitRate) -> BitRate {
        let scaled = u128::from(value_at_100g.0) * u128::from(self.line_rate.0) / 100_000_000_000;
        BitRate(u64::try_from(scaled).unwrap_or(u64::MAX).max(1))
    }

    /// A multiple of the base RTT, in hundredths.
    pub fn rtt_times(&self, hundredths: u64) -> Span {
        Span((u128::from(self.base_rtt.0) * u128::from(hundredths) / 100) as u64)
    }

    /// Units and line-rate codes of hop records; more than eight link rates leave the rest without a code.
    pub fn telemetry_units(&self) -> TelemetryUnits {
        let rates: Vec<u64> = self.link_rates.iter().take(8).map(|rate| rate.0).collect();
        TelemetryUnits::new(self.line_rate.0, &rates).expect("at most eight rates were taken")
    }

    /// Whether the HPCC simulator's values are the defaults.
    pub fn is_hpcc_ns3(&self) -> bool {
        self.defaults == Defaults::HpccNs3
    }

    /// The name of the default's source for values that scale with link speed.
    pub fn rate_source(&self) -> &'static str {
        if self.is_hpcc_ns3() {
            "HPCC simulator, run.py, scaled with link speed"
        } else {
            "HPCC simulator's value at 100 Gbit/s, scaled with link speed"
        }
    }
}

/// Two settings of a scheme that exclude each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` ({}) is more than `{}` ({})", .low.0, .low.1, .high.0, .high.1)]
pub struct Conflict {
    /// Key and value of what must not be the larger one.
    pub low: (&'static str, String),
    /// Key and value of the other.
    pub high: (&'static str, String),
}

/// Refuses `low` above `high`.
pub(super) fn ordered<T: Display + PartialOrd>(
    low: (&'static str, T),
    high: (&'static str, T),
) -> Result<(), Conflict> {
    if low.1 <= high.1 {
        return Ok(());
    }
    Err(Conflict {
        low: (low.0, low.1.to_string()),
        high: (high.0, high.1.to_string()),
    })
}

/// One parameter as a run uses it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EffectiveParameter {
    /// Key in the experiment file.
    pub key: &'static str,
    /// Value with its unit.
    pub value: String,
    /// `experiment file`, or the source of the default.
    pub source: &'static str,
    /// Whether nothing is set: `value` says what that means, and cannot be written into a file.
    #[serde(skip)]
    pub absent: bool,
    /// Set when the value is outside the range that its paper used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Collects the effective parameters while a scheme resolves its settings.
#[derive(Debug, Default)]
pub struct Resolver {
    effective: Vec<EffectiveParameter>,
}

impl Resolver {
    /// The user's value, or the default and its source.
    pub fn value<T: Display + Clone>(
        &mut self,
        key: &'static str,
        given: &Option<T>,
        default: T,
        source: &'static str,
    ) -> T {
        let (value, source) = match given {
            Some(value) => (value.clone(), "experiment file"),
            None => (default, source),
        };
        let shown = value.to_string();
        self.effective.push(EffectiveParameter {
            key,
            value: shown,
            source,
            absent: false,
            warning: None,
        });
        value
    }

    /// The user's value; where there is none `without`, of which a reader is told `meaning`.
    pub fn value_or_none<T: Display + Clone>(
        &mut self,
        key: &'static str,
        given: &Option<T>,
        without: T,
        meaning: &'static str,
    ) -> T {
        if given.is_some() {
            return self.value(key, given, without, meaning);
        }
        self.effective.push(EffectiveParameter {
            key,
            value: meaning.to_owned(),
            source: "default",
            absent: true,
            warning: None,
        });
        without
    }

    /// Like [`Self::value`]; a value outside `range` gets a warning that names the paper's range.
    pub fn value_in<T: Display + Clone + PartialOrd>(
        &mut self,
        key: &'static str,
        given: &Option<T>,
        default: T,
        source: &'static str,
        range: (T, T),
    ) -> T {
        let value = self.value(key, given, default, source);
        if (value < range.0 || value > range.1)
            && let Some(last) = self.effective.last_mut()
        {
            last.warning = Some(format!(
                "{value} is outside {} to {}, the range its paper used",
                range.0, range.1
            ));
        }
        value
    }

    /// All parameters in the order in which they were resolved.
    pub fn into_effective(self) -> Vec<EffectiveParameter> {
        self.effective
    }
}
