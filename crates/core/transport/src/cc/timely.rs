//! TIMELY: the gradient of the round-trip time, once per RTT; no window.
//!
//! d <- w d + (1 - w) (rtt - last); gradient = d / minRTT. Below `t_low`: add; above `t_high`: cut by
//! 1 - beta (1 - t_high / rtt); else add where the gradient is not positive and cut by 1 - beta gradient where it is.
//! Source: TIMELY (SIGCOMM'15) algorithm 1, with the staged increase of HPCC's simulator.

use raddle_units::{BitRate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, Conflict, CongestionControl, EcnProfile, Environment, FlowLimits, Inspection, Resolver,
    Signals, Telemetry, Timers, Validate, limits, settings::ordered,
};

/// `[schemes.timely]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Below this RTT the rate always grows. Default 2.5 x base RTT (50us at the paper's 20us).
    pub t_low: Option<Span>,
    /// Above this RTT the rate always falls. Default 25 x base RTT (500us at the paper's 20us).
    pub t_high: Option<Span>,
    /// RTT by which the gradient is normalised. Default: the base RTT (the paper's 20us).
    #[schemars(transform = limits::delay())]
    pub min_rtt: Option<Span>,
    /// Weight of a new RTT difference. Default 0.875.
    #[schemars(range(min = 0, max = 1))]
    pub ewma: Option<f64>,
    /// Strength of a cut. Default 0.8.
    #[schemars(range(min = 0, max = 1))]
    pub beta: Option<f64>,
    /// Rate added per RTT. Default 100 Mbps per 100 Gbps of line rate.
    #[schemars(transform = limits::increase())]
    pub rate_increase: Option<BitRate>,
    /// Rate added per RTT after `hyper_after` increases in a row. Default 500 Mbps per 100 Gbps.
    #[schemars(transform = limits::increase())]
    pub hyper_increase: Option<BitRate>,
    /// Increases in a row before the hyperactive increase. Default 5.
    pub hyper_after: Option<u32>,
}

/// Resolved parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    t_low_ns: f64,
    t_high_ns: f64,
    min_rtt_ns: f64,
    ewma: f64,
    beta: f64,
    rate_increase: u64,
    hyper_increase: u64,
    hyper_after: u32,
    /// A timestamp in each packet.
    pub signals: Signals,
}

fn ns(span: Span) -> f64 {
    span.0 as f64 / 1000.0
}

impl Settings {
    pub(super) fn resolve(&self, environment: &Environment, resolver: &mut Resolver) -> Parameters {
        let (source, low, high, min) = if environment.is_hpcc_ns3() {
            (
                "HPCC simulator",
                Span::from_us(50),
                Span::from_us(500),
                Span::from_us(20),
            )
        } else {
            (
                "TIMELY section 4.3, scaled with base RTT",
                environment.rtt_times(250),
                environment.rtt_times(2500),
                environment.base_rtt,
            )
        };
        let rates = environment.rate_source();
        Parameters {
            t_low_ns: ns(resolver.value("t_low", &self.t_low, low, source)),
            t_high_ns: ns(resolver.value("t_high", &self.t_high, high, source)),
            min_rtt_ns: ns(resolver.value("min_rtt", &self.min_rtt, min, source)).max(1.0),
            ewma: resolver.value_in("ewma", &self.ewma, 0.875, "TIMELY section 4.3", (0.0, 1.0)),
            beta: resolver.value_in("beta", &self.beta, 0.8, "TIMELY section 4.3", (0.0, 1.0)),
            rate_increase: resolver
                .value(
                    "rate_increase",
                    &self.rate_increase,
                    environment.scale_rate(BitRate(100_000_000)),
                    rates,
                )
                .0,
            hyper_increase: resolver
                .value(
                    "hyper_increase",
                    &self.hyper_increase,
                    environment.scale_rate(BitRate(500_000_000)),
                    rates,
                )
                .0,
            hyper_after: resolver.value(
                "hyper_after",
                &self.hyper_after,
                5,
                "TIMELY section 4.3 (N = 5)",
            ),
            signals: Signals {
                // The reference marks for every scheme but `none`; TIMELY ignores the marks.
                ecn: environment
                    .is_hpcc_ns3()
                    .then(|| EcnProfile::hpcc_simulator(environment.line_rate)),
                telemetry: Telemetry::Timestamp,
                ..Signals::default()
            },
        }
    }
}

impl Validate for Parameters {
    fn validate(&self) -> Result<(), Conflict> {
        let shown = |ns: f64| Span((ns * 1000.0) as u64);
        ordered(
            ("t_low", shown(self.t_low_ns)),
            ("t_high", shown(self.t_high_ns)),
        )
    }
}

/// A flow's state.
#[derive(Clone, Debug)]
pub struct Flow {
    rate: u64,
    /// The next update is at the acknowledgement after this byte; 0: none yet.
    update_after: u64,
    last_rtt_ns: f64,
    /// Smoothed difference of successive RTTs, in ns.
    difference_ns: f64,
    increases: u32,
}

impl CongestionControl for Flow {
    type Parameters = Parameters;

    fn new(_parameters: &Parameters, limits: &FlowLimits) -> Self {
        Self {
            rate: limits.line_rate,
            update_after: 0,
            last_rtt_ns: 0.0,
            difference_ns: 0.0,
            increases: 0,
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
        if ack.seq <= self.update_after {
            return;
        }
        let rtt = ns(ack.rtt);
        if self.update_after != 0 {
            let difference = (1.0 - parameters.ewma) * self.difference_ns
                + parameters.ewma * (rtt - self.last_rtt_ns);
            let gradient = difference / parameters.min_rtt_ns;
            let factor = if rtt < parameters.t_low_ns {
                None
            } else if rtt > parameters.t_high_ns {
                Some(1.0 - parameters.beta * (1.0 - parameters.t_high_ns / rtt))
            } else if gradient <= 0.0 {
                None
            } else {
                Some((1.0 - parameters.beta * gradient).max(0.0))
            };
            match factor {
                None => {
                    let step = if self.increases < parameters.hyper_after {
                        parameters.rate_increase
                    } else {
                        parameters.hyper_increase
                    };
                    self.rate = limits.clamp(self.rate + step);
                    self.increases += 1;
                }
                Some(factor) => {
                    self.rate = limits.clamp_f64(self.rate as f64 * factor);
                    self.increases = 0;
                }
            }
            self.difference_ns = difference;
        }
        if ack.next > self.update_after {
            self.update_after = ack.next;
            self.last_rtt_ns = rtt;
        }
    }

    fn on_loss(&mut self, _now: Time, _parameters: &Parameters, limits: &FlowLimits) {
        self.rate = limits.clamp(self.rate / 2);
        self.increases = 0;
    }

    fn on_timeout(&mut self, now: Time, parameters: &Parameters, limits: &FlowLimits) {
        self.on_loss(now, parameters, limits);
    }

    fn on_path_change(&mut self) {
        // The next RTT is remembered and not compared; the smoothed difference goes on.
        self.update_after = 0;
    }

    #[inline]
    fn rate(&self) -> u64 {
        self.rate
    }

    fn inspect(&self, _now: Time, ack: &Ack<'_>, _parameters: &Parameters) -> Inspection {
        Inspection {
            reference_rate: self.rate,
            measure: ns(ack.rtt),
        }
    }
}
