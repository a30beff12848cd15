//! DCTCP, rate-based as in HPCC's comparison: the marked fraction of a window cuts the rate once per window.
//!
//! alpha <- (1 - g) alpha + g F; on the first mark of a window rate <- rate (1 - alpha / 2); in an unmarked window
//! rate <- rate + AI. Source: DCTCP (SIGCOMM'10) equations 1 and 2; the rate form and constants from HPCC's simulator.

use raddle_units::{BitRate, Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, CongestionControl, EcnProfile, Environment, FlowLimits, Inspection, Resolver, Signals,
    Timers, Validate, limits, window_for_rate,
};

/// `[schemes.dctcp]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Weight g of a new marked fraction. Default 1/16.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub gain: Option<f64>,
    /// Rate added per unmarked window. Default 615 Mbps per 100 Gbps of line rate.
    #[schemars(transform = limits::increase())]
    pub rate_increase: Option<BitRate>,
    /// Queue above which every packet is marked, on a link of the hosts' rate. Default 300 kB per 100 Gbps.
    #[schemars(transform = limits::threshold())]
    pub ecn_threshold: Option<Bytes>,
    /// Bytes in flight at line rate; the window follows the rate. Default: the largest bandwidth-delay product.
    #[schemars(transform = limits::window())]
    pub window: Option<Bytes>,
}

/// Resolved parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    gain: f64,
    rate_increase: u64,
    window: u64,
    mtu: u64,
    /// A step profile of ECN marks.
    pub signals: Signals,
}

impl Settings {
    pub(super) fn resolve(&self, environment: &Environment, resolver: &mut Resolver) -> Parameters {
        let source = environment.rate_source();
        let threshold_default =
            Bytes((300_000 * u128::from(environment.line_rate.0) / 100_000_000_000) as u64);
        let threshold = resolver.value(
            "ecn_threshold",
            &self.ecn_threshold,
            threshold_default,
            source,
        );
        Parameters {
            gain: resolver.value_in("gain", &self.gain, 0.0625, "DCTCP section 3.4", (1e-3, 0.5)),
            rate_increase: resolver
                .value(
                    "rate_increase",
                    &self.rate_increase,
                    environment.scale_rate(BitRate(615_000_000)),
                    source,
                )
                .0,
            window: resolver
                .value("window", &self.window, environment.bdp, "largest BDP")
                .0,
            mtu: environment.mtu.0,
            signals: Signals {
                ecn: Some(EcnProfile {
                    kmin: threshold,
                    kmax: threshold,
                    pmax: 1.0,
                    per_rate: environment.line_rate,
                }),
                acks_first: !environment.is_hpcc_ns3(),
                ..Signals::default()
            },
        }
    }
}

impl Validate for Parameters {}

/// A flow's state.
#[derive(Clone, Debug)]
pub struct Flow {
    rate: u64,
    alpha: f64,
    /// Marked acknowledgements of this window, and packets in it.
    marked: u32,
    batch: u64,
    /// The window ends with the acknowledgement after this byte; 0: no window yet.
    window_end: u64,
    /// Set from a cut until this byte is acknowledged (congestion window reduced).
    reduced_until: Option<u64>,
}

impl CongestionControl for Flow {
    type Parameters = Parameters;

    fn new(_parameters: &Parameters, limits: &FlowLimits) -> Self {
        Self {
            rate: limits.line_rate,
            alpha: 1.0,
            marked: 0,
            batch: 0,
            window_end: 0,
            reduced_until: None,
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
        self.marked += u32::from(ack.marked);
        let new_window = ack.seq > self.window_end;
        if new_window {
            if self.window_end == 0 {
                self.batch = ack.next / parameters.mtu + 1;
            } else {
                let fraction = (f64::from(self.marked) / self.batch as f64).min(1.0);
                self.alpha = (1.0 - parameters.gain) * self.alpha + parameters.gain * fraction;
                self.marked = 0;
                self.batch = ack.next.saturating_sub(ack.seq) / parameters.mtu + 1;
            }
            self.window_end = ack.next;
        }
        if self.reduced_until.is_some_and(|until| ack.seq > until) {
            self.reduced_until = None;
        }
        if ack.marked && self.reduced_until.is_none() {
            self.rate = limits.clamp_f64(self.rate as f64 * (1.0 - self.alpha / 2.0));
            self.reduced_until = Some(ack.next);
        }
        if self.reduced_until.is_none() && new_window {
            self.rate = limits.clamp(self.rate + parameters.rate_increase);
        }
    }

    fn on_loss(&mut self, _now: Time, _parameters: &Parameters, limits: &FlowLimits) {
        // A lost packet counts as a fully marked window (RFC 8257 section 3.5: loss is handled as in conventional TCP).
        if self.reduced_until.is_none() {
            self.rate = limits.clamp(self.rate / 2);
            self.reduced_until = Some(self.window_end);
        }
    }

    fn on_timeout(&mut self, _now: Time, _parameters: &Parameters, limits: &FlowLimits) {
        self.rate = limits.clamp(self.rate / 2);
    }

    #[inline]
    fn rate(&self) -> u64 {
        self.rate
    }

    #[inline]
    fn window(&self, parameters: &Parameters, limits: &FlowLimits) -> u64 {
        window_for_rate(parameters.window, self.rate, limits.line_rate)
    }

    fn inspect(&self, _now: Time, _ack: &Ack<'_>, _parameters: &Parameters) -> Inspection {
        Inspection {
            reference_rate: self.rate,
            measure: self.alpha,
        }
    }
}
