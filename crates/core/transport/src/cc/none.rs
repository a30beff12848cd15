//! No congestion control: every flow sends at line rate; only PFC holds it back.

use raddle_text::between;
use raddle_units::{BitRate, Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, CongestionControl, Environment, FlowLimits, Inspection, Resolver, Signals, Timers,
    Validate, limits,
};

/// `[schemes.none]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// A fixed sending rate instead of line rate (a blind rate limiter).
    #[schemars(transform = between("1bps", "1000Tbps"))]
    pub rate: Option<BitRate>,
    /// A fixed window: at most this many bytes of a flow in flight. Default: no limit.
    #[schemars(transform = limits::window())]
    pub window: Option<Bytes>,
}

/// Resolved parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    rate: BitRate,
    window: Bytes,
    /// Nothing is asked of the network.
    pub signals: Signals,
}

impl Settings {
    pub(super) fn resolve(&self, environment: &Environment, resolver: &mut Resolver) -> Parameters {
        Parameters {
            rate: resolver.value("rate", &self.rate, environment.line_rate, "line rate"),
            window: resolver.value_or_none("window", &self.window, Bytes(0), "no limit"),
            signals: Signals::default(),
        }
    }
}

impl Validate for Parameters {}

/// A flow's state: its fixed rate.
#[derive(Clone, Debug)]
pub struct Flow {
    rate: u64,
}

impl CongestionControl for Flow {
    type Parameters = Parameters;

    fn new(parameters: &Parameters, limits: &FlowLimits) -> Self {
        Self {
            rate: limits.clamp(parameters.rate.0),
        }
    }

    fn on_ack(
        &mut self,
        _now: Time,
        _ack: &Ack<'_>,
        _parameters: &Parameters,
        _limits: &FlowLimits,
        _timers: &mut Timers,
    ) {
    }

    #[inline]
    fn rate(&self) -> u64 {
        self.rate
    }

    #[inline]
    fn window(&self, parameters: &Parameters, _limits: &FlowLimits) -> u64 {
        parameters.window.0
    }

    fn inspect(&self, _now: Time, _ack: &Ack<'_>, _parameters: &Parameters) -> Inspection {
        Inspection {
            reference_rate: self.rate,
            measure: 0.0,
        }
    }
}
