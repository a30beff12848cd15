//! HPCC: the sender computes the utilisation of every link on the path from hop records and steers to eta.
//!
//! u_i = txRate_i / B_i + min(qlen, qlen_last) / (B_i T); u <- EWMA over one RTT of max u_i; where u >= eta (or after
//! `max_stage` additive steps) rate = ref / (u / eta) + AI, else rate = ref + AI; the reference rate moves once per RTT.
//! Source: HPCC (SIGCOMM'19) algorithm 1 and section 3.2, with the window bound to the rate as in its simulator.

use raddle_units::{BitRate, Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, CongestionControl, EcnProfile, Environment, FlowLimits, Inspection, Resolver, Signals,
    Telemetry, Timers, Validate, limits, window_for_rate,
};
use crate::telemetry::{Echo, HopRecord, MAX_HOPS, TelemetryUnits};

/// `[schemes.hpcc]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Target utilisation eta. Default 0.95.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub target_utilisation: Option<f64>,
    /// Additive steps before a multiplicative one is taken at any utilisation. Default 0 (HPCC's paper: 5).
    pub max_stage: Option<u32>,
    /// Rate added per update. Default 50 Mbps per 100 Gbps of line rate.
    #[schemars(transform = limits::increase())]
    pub rate_increase: Option<BitRate>,
    /// React to every acknowledgement from the reference rate, not only once per RTT. Default true.
    pub fast_react: Option<bool>,
    /// Base round-trip time T. Default: the largest of the fabric.
    #[schemars(transform = limits::delay())]
    pub base_rtt: Option<Span>,
    /// Bytes in flight at line rate; the window follows the rate. Default: the largest bandwidth-delay product.
    #[schemars(transform = limits::window())]
    pub window: Option<Bytes>,
    /// Utilisation a new flow starts from. Default: `target_utilisation` (the HPCC simulator: 1).
    #[schemars(range(min = 0, max = 10))]
    pub initial_utilisation: Option<f64>,
}

/// Resolved parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    law: Law,
    base_rtt_ns: f64,
    initial_utilisation: f64,
    nic_rate: f64,
    units: TelemetryUnits,
    /// Hop records.
    pub signals: Signals,
}

/// The rate law that HPCC and PINT share, in its parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Law {
    pub(super) eta: f64,
    pub(super) max_stage: u32,
    pub(super) rate_increase: u64,
    pub(super) fast_react: bool,
    pub(super) window: u64,
}

/// What may be set of the rate law.
pub(super) struct LawSettings<'a> {
    pub(super) target_utilisation: &'a Option<f64>,
    pub(super) max_stage: &'a Option<u32>,
    pub(super) rate_increase: &'a Option<BitRate>,
    pub(super) fast_react: &'a Option<bool>,
    pub(super) window: &'a Option<Bytes>,
}

impl Law {
    pub(super) fn resolve(
        settings: &LawSettings<'_>,
        environment: &Environment,
        resolver: &mut Resolver,
    ) -> Self {
        Self {
            eta: resolver.value_in(
                "target_utilisation",
                settings.target_utilisation,
                0.95,
                "HPCC section 5.1",
                (0.9, 1.0),
            ),
            max_stage: resolver.value("max_stage", settings.max_stage, 0, "HPCC simulator"),
            rate_increase: resolver
                .value(
                    "rate_increase",
                    settings.rate_increase,
                    environment.scale_rate(BitRate(50_000_000)),
                    environment.rate_source(),
                )
                .0,
            fast_react: resolver.value("fast_react", settings.fast_react, true, "HPCC algorithm 1"),
            window: resolver
                .value("window", settings.window, environment.bdp, "largest BDP")
                .0,
        }
    }
}

/// The rate law's state in one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct LawState {
    pub(super) rate: u64,
    /// Changed once per RTT; the rate is computed from it.
    pub(super) reference: u64,
    stage: u32,
    /// The acknowledgement after this byte starts a new RTT; 0: none seen yet.
    pub(super) update_after: u64,
}

impl LawState {
    pub(super) fn new(limits: &FlowLimits) -> Self {
        Self {
            rate: limits.line_rate,
            reference: limits.line_rate,
            stage: 0,
            update_after: 0,
        }
    }

    /// Sets the rate for a path of normalised load `load` = utilisation / eta. `full`: a new RTT began.
    #[inline]
    pub(super) fn update(
        &mut self,
        load: f64,
        full: bool,
        next: u64,
        law: &Law,
        limits: &FlowLimits,
    ) {
        let (rate, stage) = if load >= 1.0 || self.stage >= law.max_stage {
            let base = self.reference as f64 / load;
            (
                limits.clamp((base as u64).saturating_add(law.rate_increase)),
                0,
            )
        } else {
            (
                limits.clamp(self.reference + law.rate_increase),
                self.stage + 1,
            )
        };
        if full || law.fast_react {
            self.rate = rate;
        }
        if full {
            self.reference = rate;
            self.stage = stage;
            self.update_after = self.update_after.max(next);
        }
    }

    pub(super) fn halve(&mut self, limits: &FlowLimits) {
        self.rate = limits.clamp(self.rate / 2);
        self.reference = self.rate;
    }
}

impl Settings {
    pub(super) fn resolve(&self, environment: &Environment, resolver: &mut Resolver) -> Parameters {
        let compat = environment.is_hpcc_ns3();
        let law = Law::resolve(
            &LawSettings {
                target_utilisation: &self.target_utilisation,
                max_stage: &self.max_stage,
                rate_increase: &self.rate_increase,
                fast_react: &self.fast_react,
                window: &self.window,
            },
            environment,
            resolver,
        );
        let eta = law.eta;
        Parameters {
            law,
            base_rtt_ns: resolver
                .value(
                    "base_rtt",
                    &self.base_rtt,
                    environment.base_rtt,
                    "largest RTT of the idle fabric",
                )
                .0 as f64
                / 1000.0,
            initial_utilisation: resolver.value(
                "initial_utilisation",
                &self.initial_utilisation,
                if compat { 1.0 } else { eta },
                if compat {
                    "HPCC simulator"
                } else {
                    "neutral: no reaction before a measurement"
                },
            ),
            nic_rate: environment.line_rate.0 as f64,
            units: environment.telemetry_units(),
            signals: Signals {
                ecn: compat.then(|| EcnProfile::hpcc_simulator(environment.line_rate)),
                telemetry: Telemetry::Hops,
                reprice_pacing: true,
                acks_first: !compat,
                ..Signals::default()
            },
        }
    }
}

impl Validate for Parameters {}

/// A number below 2^63 as a float. (Processors convert signed numbers in one step, and others in several.)
#[inline(always)]
const fn float(number: u64) -> f64 {
    number as i64 as f64
}

/// A flow's state.
#[derive(Clone, Debug)]
pub struct Flow {
    law: LawState,
    utilisation: f64,
    hops: u8,
    last: [HopRecord; MAX_HOPS],
}

impl Flow {
    fn remember(&mut self, records: &[HopRecord]) {
        self.hops = records.len() as u8;
        self.last[..records.len()].copy_from_slice(records);
    }

    /// Folds one set of hop records into the utilisation.
    #[inline]
    fn measure(&mut self, records: &[HopRecord], parameters: &Parameters) {
        let (mut largest, mut largest_ns) = (0.0, 0u64);
        let window = float(parameters.law.window);
        for (record, last) in records.iter().zip(&mut self.last) {
            let ns = record.ns_since(*last);
            let line_rate = float(parameters.units.line_rates[record.code()]);
            let tx_bits = float(record.tx_units_since(*last) * parameters.units.tx_bytes * 8);
            let tx_rate = tx_bits / (float(ns) * 1e-9);
            let queue =
                float(record.queue_units().min(last.queue_units()) * parameters.units.queue_bytes);
            let utilisation =
                tx_rate / line_rate + queue * parameters.nic_rate / line_rate / window;
            if utilisation > largest && ns > 0 {
                (largest, largest_ns) = (utilisation, ns);
            }
            *last = *record;
        }
        let base = parameters.base_rtt_ns;
        let span = (largest_ns as f64).min(base);
        self.utilisation = (self.utilisation * (base - span) + largest * span) / base;
    }
}

impl CongestionControl for Flow {
    type Parameters = Parameters;

    fn new(parameters: &Parameters, limits: &FlowLimits) -> Self {
        Self {
            law: LawState::new(limits),
            utilisation: parameters.initial_utilisation,
            hops: 0,
            last: [HopRecord::default(); MAX_HOPS],
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
        let Echo::Hops(records) = ack.echo else {
            return;
        };
        if records.is_empty() {
            return;
        }
        if self.law.update_after == 0 || records.len() != usize::from(self.hops) {
            // The first records, or those of another path: nothing to compare with yet.
            self.remember(records);
            self.law.update_after = self.law.update_after.max(ack.next);
            return;
        }
        let full = ack.seq > self.law.update_after;
        self.measure(records, parameters);
        self.law.update(
            self.utilisation / parameters.law.eta,
            full,
            ack.next,
            &parameters.law,
            limits,
        );
    }

    fn on_timeout(&mut self, _now: Time, _parameters: &Parameters, limits: &FlowLimits) {
        self.law.halve(limits);
    }

    fn on_path_change(&mut self) {
        self.hops = 0;
    }

    #[inline]
    fn rate(&self) -> u64 {
        self.law.rate
    }

    #[inline]
    fn window(&self, parameters: &Parameters, limits: &FlowLimits) -> u64 {
        window_for_rate(parameters.law.window, self.law.rate, limits.line_rate)
    }

    fn inspect(&self, _now: Time, _ack: &Ack<'_>, _parameters: &Parameters) -> Inspection {
        Inspection {
            reference_rate: self.law.reference,
            measure: self.utilisation,
        }
    }
}
