//! DCQCN: rate cuts on congestion notifications, recovery by timers; no window.
//!
//! Three periodic timers start with a flow's first notification: alpha (decay of the congestion estimate), decrease
//! (a cut where a notification came since the last check) and increase (fast recovery, then additive, then hyper
//! increase). Source: DCQCN (SIGCOMM'15) section 3.2 and equations 1 to 4, in the variant of Mellanox NICs that HPCC's
//! simulator models (a notification is the ECN echo of an ACK, no byte counter).
//!
//! Only the timers that can change something are armed: alpha is brought up to date when it is read, and the decrease
//! timer runs only while a notification waits for it. The values are those of the periodic timers, bit for bit.

use raddle_text::at_most;
use raddle_units::{BitRate, Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, Conflict, CongestionControl, EcnProfile, Environment, FlowLimits, Inspection, Resolver,
    Signals, Timers, Validate, limits, settings::ordered,
};

const DECREASE: usize = 0;
const INCREASE: usize = 1;

/// `[schemes.dcqcn]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Weight g of a notification in alpha. Default 1/256.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub gain: Option<f64>,
    /// Period of the alpha timer. Default 1us (DCQCN's paper: 55us).
    #[schemars(transform = limits::period())]
    pub alpha_interval: Option<Span>,
    /// Period at which a rate cut is considered. Default 4us (DCQCN's paper: 50us).
    #[schemars(transform = limits::period())]
    pub decrease_interval: Option<Span>,
    /// Period of the increase timer. Default 300us (DCQCN's paper: 55us).
    #[schemars(transform = limits::period())]
    pub increase_interval: Option<Span>,
    /// Increase periods of fast recovery before the additive one. Default 1 (DCQCN's paper: 5).
    pub fast_recovery_stages: Option<u32>,
    /// Rate added to the target per additive increase. Default 20 Mbps per 100 Gbps of line rate.
    #[schemars(transform = limits::increase())]
    pub rate_increase: Option<BitRate>,
    /// Rate added to the target per hyper increase. Default 200 Mbps per 100 Gbps of line rate.
    #[schemars(transform = limits::increase())]
    pub hyper_increase: Option<BitRate>,
    /// Every cut lowers the target rate too, also in fast recovery. Default false.
    pub clamp_target_rate: Option<bool>,
    /// Least time between two notifications of a flow. Default 4us, as ConnectX NICs (the HPCC simulator: 0).
    #[schemars(transform = at_most("86400s"))]
    pub notification_interval: Option<Span>,
    /// Queue up to which nothing is marked, on a link of the hosts' rate. Default 400 kB per 100 Gbps.
    #[schemars(transform = limits::threshold())]
    pub ecn_kmin: Option<Bytes>,
    /// Queue above which everything is marked. Default 1600 kB per 100 Gbps.
    #[schemars(transform = limits::threshold())]
    pub ecn_kmax: Option<Bytes>,
    /// Marking probability at `ecn_kmax`. Default 0.2.
    #[schemars(range(min = 0, max = 1))]
    pub ecn_pmax: Option<f64>,
}

/// Resolved parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    gain: f64,
    alpha_interval: Span,
    decrease_interval: Span,
    /// The first check comes this much after one interval (the reference starts its timer 1 ns late).
    decrease_offset: Span,
    increase_interval: Span,
    fast_recovery_stages: u32,
    rate_increase: u64,
    hyper_increase: u64,
    clamp_target_rate: bool,
    /// A linear profile of ECN marks and a notification interval.
    pub signals: Signals,
}

impl Settings {
    pub(super) fn resolve(&self, environment: &Environment, resolver: &mut Resolver) -> Parameters {
        let source = environment.rate_source();
        let timers = "HPCC simulator's ConnectX-like setting";
        let profile = EcnProfile::hpcc_simulator(environment.line_rate);
        let compat = environment.is_hpcc_ns3();
        let notification = if compat { Span::ZERO } else { Span::from_us(4) };
        let at_least = |span: Span| span.max(Span(1));
        Parameters {
            gain: resolver.value_in(
                "gain",
                &self.gain,
                1.0 / 256.0,
                "DCQCN table 2",
                (1e-3, 0.25),
            ),
            alpha_interval: at_least(resolver.value_in(
                "alpha_interval",
                &self.alpha_interval,
                Span::from_us(1),
                timers,
                (Span::from_us(1), Span::from_us(300)),
            )),
            decrease_interval: at_least(resolver.value_in(
                "decrease_interval",
                &self.decrease_interval,
                Span::from_us(4),
                timers,
                (Span::from_us(4), Span::from_us(50)),
            )),
            decrease_offset: if compat { Span::from_ns(1) } else { Span::ZERO },
            increase_interval: at_least(resolver.value_in(
                "increase_interval",
                &self.increase_interval,
                Span::from_us(300),
                timers,
                (Span::from_us(55), Span::from_us(1500)),
            )),
            fast_recovery_stages: resolver.value(
                "fast_recovery_stages",
                &self.fast_recovery_stages,
                1,
                timers,
            ),
            rate_increase: resolver
                .value(
                    "rate_increase",
                    &self.rate_increase,
                    environment.scale_rate(BitRate(20_000_000)),
                    source,
                )
                .0,
            hyper_increase: resolver
                .value(
                    "hyper_increase",
                    &self.hyper_increase,
                    environment.scale_rate(BitRate(200_000_000)),
                    source,
                )
                .0,
            clamp_target_rate: resolver.value(
                "clamp_target_rate",
                &self.clamp_target_rate,
                false,
                "HPCC simulator",
            ),
            signals: Signals {
                echo_interval: resolver.value(
                    "notification_interval",
                    &self.notification_interval,
                    notification,
                    if compat {
                        "HPCC simulator"
                    } else {
                        "ConnectX default"
                    },
                ),
                ecn: Some(EcnProfile {
                    kmin: resolver.value("ecn_kmin", &self.ecn_kmin, profile.kmin, source),
                    kmax: resolver.value("ecn_kmax", &self.ecn_kmax, profile.kmax, source),
                    pmax: resolver.value_in(
                        "ecn_pmax",
                        &self.ecn_pmax,
                        profile.pmax,
                        "HPCC simulator",
                        (0.0, 1.0),
                    ),
                    per_rate: environment.line_rate,
                }),
                ..Signals::default()
            },
        }
    }
}

impl Validate for Parameters {
    fn validate(&self) -> Result<(), Conflict> {
        match &self.signals.ecn {
            Some(profile) => ordered(("ecn_kmin", profile.kmin), ("ecn_kmax", profile.kmax)),
            None => Ok(()),
        }
    }
}

/// A flow's state.
#[derive(Clone, Debug)]
pub struct Flow {
    rate: u64,
    target: u64,
    alpha: f64,
    /// Time of the first notification: origin of the periodic timers.
    started: Option<Time>,
    /// The last tick of the alpha timer that `alpha` includes.
    alpha_at: Time,
    notified_since_alpha: bool,
    notified_since_decrease: bool,
    stage: u32,
}

impl Flow {
    /// Alpha after all ticks of its timer before `now`: a tick at the very instant of an acknowledgement comes after it.
    fn alpha_before(&self, now: Time, parameters: &Parameters) -> (f64, Time, bool) {
        let (mut alpha, mut at, mut notified) =
            (self.alpha, self.alpha_at, self.notified_since_alpha);
        if self.started.is_some() {
            while at + parameters.alpha_interval < now {
                at += parameters.alpha_interval;
                alpha =
                    (1.0 - parameters.gain) * alpha + if notified { parameters.gain } else { 0.0 };
                notified = false;
            }
        }
        (alpha, at, notified)
    }

    fn update_alpha(&mut self, now: Time, parameters: &Parameters) {
        (self.alpha, self.alpha_at, self.notified_since_alpha) = self.alpha_before(now, parameters);
    }

    fn next_decrease_check(started: Time, now: Time, parameters: &Parameters) -> Time {
        let first = started + parameters.decrease_interval + parameters.decrease_offset;
        if now < first {
            return first;
        }
        let periods = now.since(first).0 / parameters.decrease_interval.0 + 1;
        first + parameters.decrease_interval * periods
    }

    fn cut(&mut self, parameters: &Parameters, limits: &FlowLimits) {
        if self.stage != 0 || parameters.clamp_target_rate {
            self.target = self.rate;
        }
        self.rate = limits.clamp_f64(self.rate as f64 * (1.0 - self.alpha / 2.0));
        self.stage = 0;
    }
}

impl CongestionControl for Flow {
    type Parameters = Parameters;

    fn new(_parameters: &Parameters, limits: &FlowLimits) -> Self {
        Self {
            rate: limits.line_rate,
            target: limits.line_rate,
            alpha: 1.0,
            started: None,
            alpha_at: Time::ZERO,
            notified_since_alpha: false,
            notified_since_decrease: false,
            stage: 0,
        }
    }

    fn on_ack(
        &mut self,
        now: Time,
        ack: &Ack<'_>,
        parameters: &Parameters,
        _limits: &FlowLimits,
        timers: &mut Timers,
    ) {
        if ack.complete {
            timers.cancel(DECREASE);
            timers.cancel(INCREASE);
            return;
        }
        if !ack.marked {
            return;
        }
        self.update_alpha(now, parameters);
        let started = match self.started {
            Some(started) => {
                self.notified_since_alpha = true;
                started
            }
            None => {
                self.started = Some(now);
                self.alpha_at = now;
                self.target = self.rate;
                now
            }
        };
        if !self.notified_since_decrease {
            self.notified_since_decrease = true;
            timers.arm(
                DECREASE,
                Self::next_decrease_check(started, now, parameters),
            );
        }
    }

    fn on_timeout(&mut self, now: Time, parameters: &Parameters, limits: &FlowLimits) {
        self.update_alpha(now, parameters);
        self.cut(parameters, limits);
    }

    fn on_timer(
        &mut self,
        now: Time,
        slot: usize,
        parameters: &Parameters,
        limits: &FlowLimits,
        timers: &mut Timers,
    ) {
        if slot == DECREASE {
            self.update_alpha(now, parameters);
            self.cut(parameters, limits);
            self.notified_since_decrease = false;
            timers.arm(INCREASE, now + parameters.increase_interval);
            return;
        }
        timers.arm(INCREASE, now + parameters.increase_interval);
        if self.stage == parameters.fast_recovery_stages {
            self.target = limits.line_rate.min(self.target + parameters.rate_increase);
        } else if self.stage > parameters.fast_recovery_stages {
            self.target = limits
                .line_rate
                .min(self.target + parameters.hyper_increase);
        }
        self.rate = limits.clamp(self.rate / 2 + self.target / 2);
        self.stage += 1;
        if self.rate >= limits.line_rate - 1 && self.target == limits.line_rate && self.stage > 64 {
            // Fully recovered: further increases change nothing until the next cut arms the timer again.
            timers.cancel(INCREASE);
        }
    }

    #[inline]
    fn rate(&self) -> u64 {
        self.rate
    }

    fn inspect(&self, now: Time, _ack: &Ack<'_>, parameters: &Parameters) -> Inspection {
        Inspection {
            reference_rate: self.target,
            measure: self.alpha_before(now, parameters).0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lazy_decrease_timer_keeps_the_grid_of_the_first_notification() {
        let environment = Environment {
            line_rate: BitRate::from_gbps(100),
            base_rtt: Span::from_us(6),
            bdp: Bytes(75_000),
            mtu: Bytes(1000),
            max_switch_hops: 2,
            link_rates: vec![BitRate::from_gbps(100)],
            defaults: super::super::Defaults::HpccNs3,
        };
        let parameters = Settings::default().resolve(&environment, &mut Resolver::default());
        let started = Time(5_000_000);
        let check = |ns: u64| {
            Flow::next_decrease_check(started, started + Span::from_ns(ns), &parameters)
                .since(started)
                .as_ns()
        };
        assert_eq!(check(0), 4001);
        assert_eq!(check(4000), 4001);
        assert_eq!(check(4001), 8001);
        assert_eq!(check(9000), 12001);
    }
}
