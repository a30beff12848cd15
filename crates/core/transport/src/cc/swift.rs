//! Swift: a delay target with flow scaling; window in packets, paced where it falls below one packet.
//!
//! delay < target: cwnd += ai / cwnd per acknowledged packet; else, at most once per RTT,
//! cwnd *= max(1 - beta (delay - target) / delay, 1 - max_mdf). target = base + fs(cwnd), with
//! fs = clamp(alpha / sqrt(cwnd) + b, 0, range). Source: Swift (SIGCOMM'20) section 3.1, 3.5 and algorithm 1 (the
//! fabric window; the endpoint window is left out, hosts take no time here).

use raddle_units::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, Conflict, CongestionControl, Environment, FlowLimits, Inspection, Resolver, Signals,
    Telemetry, Timers, Validate, limits, settings::ordered,
};

/// `[schemes.swift]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Delay aimed at by a large window. Default 1.5 x base RTT.
    #[schemars(transform = limits::delay())]
    pub base_target: Option<Span>,
    /// Delay added to the target at the smallest window (flow scaling). Default 3 x base RTT.
    pub flow_scaling_range: Option<Span>,
    /// Window in packets below which the whole range is added. Default 0.1.
    #[schemars(range(max = 1_000_000), extend("exclusiveMinimum" = 0))]
    pub flow_scaling_min_window: Option<f64>,
    /// Window in packets above which nothing is added. Default 100.
    #[schemars(range(max = 1_000_000), extend("exclusiveMinimum" = 0))]
    pub flow_scaling_max_window: Option<f64>,
    /// Packets added to the window per RTT. Default 1.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub additive_increase: Option<f64>,
    /// Strength of a cut. Default 0.8.
    #[schemars(range(min = 0, max = 1))]
    pub beta: Option<f64>,
    /// Largest cut at once. Default 0.5.
    #[schemars(range(min = 0, max = 1))]
    pub max_decrease: Option<f64>,
    /// Window of a new flow and its upper bound. Default: the largest bandwidth-delay product.
    #[schemars(transform = limits::window())]
    pub window: Option<Bytes>,
}

/// Resolved parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    base_target_ns: f64,
    flow_alpha: f64,
    flow_offset: f64,
    flow_range_ns: f64,
    additive_increase: f64,
    beta: f64,
    max_decrease: f64,
    /// Where flow scaling begins and ends, in packets.
    flow_scaling_windows: (f64, f64),
    max_window: f64,
    mtu: f64,
    base_rtt_ns: f64,
    /// A timestamp in each packet.
    pub signals: Signals,
}

/// Smallest window in packets (one packet per thousand RTTs).
const MIN_WINDOW: f64 = 0.001;

impl Settings {
    pub(super) fn resolve(&self, environment: &Environment, resolver: &mut Resolver) -> Parameters {
        let ns = |span: Span| span.0 as f64 / 1000.0;
        let scaled = "Swift section 3.5, scaled with base RTT";
        let range = ns(resolver.value(
            "flow_scaling_range",
            &self.flow_scaling_range,
            environment.rtt_times(300),
            scaled,
        ));
        let smallest = resolver.value(
            "flow_scaling_min_window",
            &self.flow_scaling_min_window,
            0.1,
            "Swift section 3.5",
        );
        let largest = resolver.value(
            "flow_scaling_max_window",
            &self.flow_scaling_max_window,
            100.0,
            "Swift section 3.5",
        );
        // alpha / sqrt(min) + b = range and alpha / sqrt(max) + b = 0 (Swift section 3.5).
        let root = |packets: f64| 1.0 / libm::sqrt(packets.max(MIN_WINDOW));
        let flow_alpha = range / (root(smallest) - root(largest)).max(1e-9);
        let mtu = environment.mtu.0.max(1) as f64;
        let window = resolver.value("window", &self.window, environment.bdp, "largest BDP");
        Parameters {
            base_target_ns: ns(resolver.value(
                "base_target",
                &self.base_target,
                environment.rtt_times(150),
                scaled,
            )),
            flow_alpha,
            flow_offset: -flow_alpha * root(largest),
            flow_range_ns: range,
            additive_increase: resolver.value(
                "additive_increase",
                &self.additive_increase,
                1.0,
                "Swift section 3.1",
            ),
            beta: resolver.value_in("beta", &self.beta, 0.8, "Swift algorithm 1", (0.0, 1.0)),
            max_decrease: resolver.value_in(
                "max_decrease",
                &self.max_decrease,
                0.5,
                "Swift algorithm 1",
                (0.0, 1.0),
            ),
            flow_scaling_windows: (smallest, largest),
            max_window: (window.0 as f64 / mtu).max(1.0),
            mtu,
            base_rtt_ns: ns(environment.base_rtt).max(1.0),
            signals: Signals {
                telemetry: Telemetry::Timestamp,
                ..Signals::default()
            },
        }
    }
}

impl Validate for Parameters {
    fn validate(&self) -> Result<(), Conflict> {
        let (smallest, largest) = self.flow_scaling_windows;
        ordered(
            ("flow_scaling_min_window", smallest),
            ("flow_scaling_max_window", largest),
        )
    }
}

/// A flow's state.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Congestion window in packets.
    window: f64,
    rtt_ns: f64,
    last_decrease: Time,
    rate: u64,
}

impl Flow {
    fn set_window(&mut self, window: f64, parameters: &Parameters, limits: &FlowLimits) {
        self.window = window.clamp(MIN_WINDOW, parameters.max_window);
        // At one packet or more the window alone limits; below, packets are paced (Swift section 3.1).
        self.rate = if self.window >= 1.0 {
            limits.line_rate
        } else {
            limits.clamp_f64(self.window * parameters.mtu * 8e9 / self.rtt_ns)
        };
    }

    fn may_decrease(&self, now: Time) -> bool {
        now.since(self.last_decrease).0 as f64 / 1000.0 >= self.rtt_ns
    }

    fn decrease(&mut self, now: Time, factor: f64, parameters: &Parameters, limits: &FlowLimits) {
        if self.may_decrease(now) {
            self.last_decrease = now;
            self.set_window(self.window * factor, parameters, limits);
        }
    }
}

impl CongestionControl for Flow {
    type Parameters = Parameters;

    fn new(parameters: &Parameters, limits: &FlowLimits) -> Self {
        Self {
            window: parameters.max_window,
            rtt_ns: parameters.base_rtt_ns,
            last_decrease: Time::ZERO,
            rate: limits.line_rate,
        }
    }

    fn on_ack(
        &mut self,
        now: Time,
        ack: &Ack<'_>,
        parameters: &Parameters,
        limits: &FlowLimits,
        _timers: &mut Timers,
    ) {
        let delay = (ack.rtt.0 as f64 / 1000.0).max(1.0);
        self.rtt_ns = delay;
        let scaling = (parameters.flow_alpha / libm::sqrt(self.window) + parameters.flow_offset)
            .clamp(0.0, parameters.flow_range_ns);
        let target = parameters.base_target_ns + scaling;
        if delay < target {
            let acked = ack.newly_acked as f64 / parameters.mtu;
            let step = parameters.additive_increase * acked / self.window.max(1.0);
            self.set_window(self.window + step, parameters, limits);
        } else {
            let factor = (1.0 - parameters.beta * (delay - target) / delay)
                .max(1.0 - parameters.max_decrease);
            self.decrease(now, factor, parameters, limits);
        }
    }

    fn on_loss(&mut self, now: Time, parameters: &Parameters, limits: &FlowLimits) {
        self.decrease(now, 1.0 - parameters.max_decrease, parameters, limits);
    }

    fn on_timeout(&mut self, now: Time, parameters: &Parameters, limits: &FlowLimits) {
        self.last_decrease = now;
        self.set_window(
            self.window * (1.0 - parameters.max_decrease),
            parameters,
            limits,
        );
    }

    #[inline]
    fn rate(&self) -> u64 {
        self.rate
    }

    #[inline]
    fn window(&self, parameters: &Parameters, _limits: &FlowLimits) -> u64 {
        ((self.window * parameters.mtu) as u64).max(1)
    }

    fn inspect(&self, _now: Time, ack: &Ack<'_>, _parameters: &Parameters) -> Inspection {
        Inspection {
            reference_rate: self.rate,
            measure: ack.rtt.0 as f64 / 1000.0,
        }
    }
}
