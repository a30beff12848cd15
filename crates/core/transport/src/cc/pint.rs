//! PINT: HPCC's rate law over one byte per packet; switches filter the utilisation and packets carry its largest code.
//!
//! U = base^code / 512; rate = ref / (U / eta) + AI, reference rate once per RTT as in HPCC; the switches do the
//! averaging. Source: PINT (SIGCOMM'20) section 4.3 and appendix A, as in HPCC's simulator (HPCC-PINT).

use raddle_units::{BitRate, Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, CongestionControl, EcnProfile, Environment, FlowLimits, Inspection, Resolver, Signals,
    Telemetry, Timers, Validate,
    hpcc::{Law, LawSettings, LawState},
    limits, window_for_rate,
};
use crate::telemetry::Echo;

/// A code of 1 stands for a utilisation of base / 512.
pub const UTILISATION_SCALE: f64 = 512.0;
/// Codes of the table; one byte holds 256, wider codes are cut here.
pub const CODES: usize = 1024;

/// `[schemes.pint]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Target utilisation eta. Default 0.95.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub target_utilisation: Option<f64>,
    /// Additive steps before a multiplicative one is taken at any utilisation. Default 0.
    pub max_stage: Option<u32>,
    /// Rate added per update. Default 50 Mbps per 100 Gbps of line rate.
    #[schemars(transform = limits::increase())]
    pub rate_increase: Option<BitRate>,
    /// React to every acknowledgement from the reference rate, not only once per RTT. Default true.
    pub fast_react: Option<bool>,
    /// Bytes in flight at line rate; the window follows the rate. Default: the largest bandwidth-delay product.
    #[schemars(transform = limits::window())]
    pub window: Option<Bytes>,
    /// Base of the logarithmic code, above 1. Default 1.05 (8 bits).
    #[schemars(range(min = 1.0001, max = 2))]
    pub log_base: Option<f64>,
    /// Share of acknowledgements that the sender uses. Default 1.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub probability: Option<f64>,
}

/// Resolved parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    law: Law,
    /// Acknowledgements whose 16 random bits are below are used.
    sample_below: u32,
    utilisation_of_code: Vec<f64>,
    /// A digest per packet and a random number per acknowledgement.
    pub signals: Signals,
}

impl Settings {
    pub(super) fn resolve(&self, environment: &Environment, resolver: &mut Resolver) -> Parameters {
        let compat = environment.is_hpcc_ns3();
        let base = resolver
            .value_in(
                "log_base",
                &self.log_base,
                1.05,
                "HPCC repository, README",
                (1.01, 1.1),
            )
            .max(1.000_1);
        let probability = resolver.value_in(
            "probability",
            &self.probability,
            1.0,
            "HPCC repository, README",
            (0.0, 1.0),
        );
        Parameters {
            law: Law::resolve(
                &LawSettings {
                    target_utilisation: &self.target_utilisation,
                    max_stage: &self.max_stage,
                    rate_increase: &self.rate_increase,
                    fast_react: &self.fast_react,
                    window: &self.window,
                },
                environment,
                resolver,
            ),
            sample_below: (probability.clamp(0.0, 1.0) * 65536.0) as u32,
            utilisation_of_code: (0..CODES)
                .map(|code| libm::pow(base, code as f64) / UTILISATION_SCALE)
                .collect(),
            signals: Signals {
                ecn: compat.then(|| EcnProfile::hpcc_simulator(environment.line_rate)),
                telemetry: Telemetry::Digest { base },
                reprice_pacing: true,
                acks_first: !compat,
                random_per_ack: true,
                ..Signals::default()
            },
        }
    }
}

impl Validate for Parameters {}

/// A flow's state.
#[derive(Clone, Debug)]
pub struct Flow {
    law: LawState,
}

impl Parameters {
    fn utilisation(&self, ack: &Ack<'_>) -> f64 {
        let code = match ack.echo {
            Echo::Digest(code) => usize::from(code).min(CODES - 1),
            Echo::None | Echo::Hops(_) => 0,
        };
        self.utilisation_of_code[code]
    }
}

impl CongestionControl for Flow {
    type Parameters = Parameters;

    fn new(_parameters: &Parameters, limits: &FlowLimits) -> Self {
        Self {
            law: LawState::new(limits),
        }
    }

    fn on_ack(
        &mut self,
        _now: Time,
        ack: &Ack<'_>,
        parameters: &Parameters,
        limits: &FlowLimits,
        _timers: &mut Timers,
    ) {
        if ack.random % 65536 >= parameters.sample_below {
            return;
        }
        if self.law.update_after == 0 {
            self.law.update_after = ack.next;
            return;
        }
        let full = ack.seq > self.law.update_after;
        let load = parameters.utilisation(ack) / parameters.law.eta;
        self.law
            .update(load, full, ack.next, &parameters.law, limits);
    }

    fn on_timeout(&mut self, _now: Time, _parameters: &Parameters, limits: &FlowLimits) {
        self.law.halve(limits);
    }

    #[inline]
    fn rate(&self) -> u64 {
        self.law.rate
    }

    #[inline]
    fn window(&self, parameters: &Parameters, limits: &FlowLimits) -> u64 {
        window_for_rate(parameters.law.window, self.law.rate, limits.line_rate)
    }

    fn inspect(&self, _now: Time, ack: &Ack<'_>, parameters: &Parameters) -> Inspection {
        Inspection {
            reference_rate: self.law.reference,
            measure: parameters.utilisation(ack),
        }
    }
}
