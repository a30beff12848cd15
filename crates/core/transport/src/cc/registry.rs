//! The list of schemes: a name, its modules' types and one line of description. Everything else follows from it.

use raddle_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, Conflict, CongestionControl, EffectiveParameter, Environment, FlowLimits, Inspection,
    Resolver, Signals, Timers, Validate, dcqcn, dctcp, hpcc, none, pint, swift, timely,
};

/// A scheme's name and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemeInfo {
    /// Name in experiment files and results.
    pub name: &'static str,
    /// One line: signal, reaction, source.
    pub about: &'static str,
}

macro_rules! registry {
    ($($name:ident: $variant:ident, $about:literal;)+) => {
        /// All schemes, in the order in which reports show them.
        pub(super) const SCHEMES: &[SchemeInfo] = &[$(SchemeInfo { name: stringify!($name), about: $about }),+];

        /// The `[schemes]` table of an experiment: parameters by scheme. What is not set takes its default.
        #[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct SchemeSettings {
            $(#[doc = $about] pub $name: $name::Settings,)+
        }

        impl SchemeSettings {
            /// Resolved parameters of the scheme called `name`, each with its source; `None` for an unknown name.
            pub fn resolve(&self, name: &str, environment: &Environment)
                -> Option<(SchemeParameters, Vec<EffectiveParameter>)> {
                let mut resolver = Resolver::default();
                let parameters = match name {
                    $(stringify!($name) => SchemeParameters::$variant(self.$name.resolve(environment, &mut resolver)),)+
                    _ => return None,
                };
                Some((parameters, resolver.into_effective()))
            }
        }

        /// Parameters of the scheme that a run uses.
        #[derive(Clone, Debug, PartialEq)]
        pub enum SchemeParameters {
            $(#[doc = $about] $variant($name::Parameters),)+
        }

        impl SchemeParameters {
            /// The scheme's name.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => stringify!($name),)+ }
            }

            /// Whether the parameters go together.
            ///
            /// # Errors
            /// Two that exclude each other.
            pub fn validate(&self) -> Result<(), Conflict> {
                match self { $(Self::$variant(parameters) => parameters.validate(),)+ }
            }

            /// What the scheme asks of the network.
            pub fn signals(&self) -> &Signals {
                match self { $(Self::$variant(parameters) => &parameters.signals,)+ }
            }
        }

        /// One flow's congestion control, whichever the scheme.
        #[derive(Clone, Debug)]
        pub enum FlowControl {
            $(#[doc = $about] $variant($name::Flow),)+
        }

        impl FlowControl {
            /// A new flow at line rate.
            pub fn new(parameters: &SchemeParameters, limits: &FlowLimits) -> Self {
                match parameters {
                    $(SchemeParameters::$variant(own) => Self::$variant($name::Flow::new(own, limits)),)+
                }
            }

            /// See [`CongestionControl::on_ack`].
            #[inline]
            pub fn on_ack(&mut self, now: Time, ack: &Ack<'_>, parameters: &SchemeParameters, limits: &FlowLimits, timers: &mut Timers) {
                match (self, parameters) {
                    $((Self::$variant(flow), SchemeParameters::$variant(own)) => flow.on_ack(now, ack, own, limits, timers),)+
                    _ => debug_assert!(false, "flow and parameters are of two schemes"),
                }
            }

            /// See [`CongestionControl::on_loss`].
            pub fn on_loss(&mut self, now: Time, parameters: &SchemeParameters, limits: &FlowLimits) {
                match (self, parameters) {
                    $((Self::$variant(flow), SchemeParameters::$variant(own)) => flow.on_loss(now, own, limits),)+
                    _ => debug_assert!(false, "flow and parameters are of two schemes"),
                }
            }

            /// See [`CongestionControl::on_timeout`].
            pub fn on_timeout(&mut self, now: Time, parameters: &SchemeParameters, limits: &FlowLimits) {
                match (self, parameters) {
                    $((Self::$variant(flow), SchemeParameters::$variant(own)) => flow.on_timeout(now, own, limits),)+
                    _ => debug_assert!(false, "flow and parameters are of two schemes"),
                }
            }

            /// See [`CongestionControl::on_timer`].
            pub fn on_timer(&mut self, now: Time, slot: usize, parameters: &SchemeParameters, limits: &FlowLimits, timers: &mut Timers) {
                match (self, parameters) {
                    $((Self::$variant(flow), SchemeParameters::$variant(own)) => flow.on_timer(now, slot, own, limits, timers),)+
                    _ => debug_assert!(false, "flow and parameters are of two schemes"),
                }
            }

            /// See [`CongestionControl::on_path_change`].
            pub fn on_path_change(&mut self) {
                match self { $(Self::$variant(flow) => flow.on_path_change(),)+ }
            }

            /// Sending rate in bit/s.
            #[inline]
            pub fn rate(&self) -> u64 {
                match self { $(Self::$variant(flow) => flow.rate(),)+ }
            }

            /// Bytes that may be in flight (0: no limit).
            #[inline]
            pub fn window(&self, parameters: &SchemeParameters, limits: &FlowLimits) -> u64 {
                match (self, parameters) {
                    $((Self::$variant(flow), SchemeParameters::$variant(own)) => flow.window(own, limits),)+
                    _ => 0,
                }
            }

            /// See [`CongestionControl::inspect`].
            pub fn inspect(&self, now: Time, ack: &Ack<'_>, parameters: &SchemeParameters) -> Inspection {
                match (self, parameters) {
                    $((Self::$variant(flow), SchemeParameters::$variant(own)) => flow.inspect(now, ack, own),)+
                    _ => Inspection { reference_rate: 0, measure: 0.0 },
                }
            }
        }
    };
}

registry! {
    none: None, "no congestion control: line rate for ever, only PFC holds it back";
    dctcp: Dctcp, "ECN fraction per window, rate-based with a window (DCTCP, SIGCOMM 2010)";
    dcqcn: Dcqcn, "ECN notifications, three timers, no window (DCQCN, SIGCOMM 2015)";
    timely: Timely, "RTT gradient once per RTT, no window (TIMELY, SIGCOMM 2015)";
    hpcc: Hpcc, "link utilisation from in-band telemetry, window and rate (HPCC, SIGCOMM 2019)";
    pint: Pint, "HPCC's law over a one-byte probabilistic digest (PINT, SIGCOMM 2020)";
    swift: Swift, "delay target with flow and hop scaling, window and rate (Swift, SIGCOMM 2020)";
}

impl SchemeSettings {
    /// All schemes, in the order in which reports show them.
    pub const fn schemes() -> &'static [SchemeInfo] {
        SCHEMES
    }
}
