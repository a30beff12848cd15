//! Congestion control of a rail: a scheme of `cc` with its parameters, limits and timers.

use raddle_units::{Span, Time};

use super::config::Config;
use raddle_transport::cc::{Ack, FlowControl, FlowLimits, SchemeParameters, Timers};

/// Slowest pace that congestion control may ask for, as a part of the rail's rate.
const SLOWEST: u64 = 1_000;

/// Congestion control of a rail, with the parameters that its round-trip time gave.
#[derive(Debug)]
pub(super) struct Control {
    flow: FlowControl,
    parameters: SchemeParameters,
    limits: FlowLimits,
    timers: Timers,
    /// The flow before a timeout, which may turn out to have been too early.
    before: Option<FlowControl>,
    /// What the parameters are for: the least round-trip time, and what is allowed for the lateness of both hosts.
    path: (Span, Span),
}

impl Control {
    /// Begins with the least window, until [`Self::allow`] is called. The rail's rate is an upper bound, others may use it, and its first
    /// round-trip time may be that of a queue: a larger window could be longer than any queue on the way.
    pub(super) fn new(config: &Config, rail: usize) -> Self {
        let rate = config.rails[rail].0;
        let limits = FlowLimits {
            line_rate: rate,
            min_rate: (rate / SLOWEST).max(1),
        };
        let parameters = config
            .parameters(rail, Span::ZERO, Span::ZERO)
            .expect("the scheme was checked");
        Self {
            flow: FlowControl::new(&parameters, &limits),
            parameters,
            limits,
            timers: Timers::default(),
            before: None,
            path: (Span::ZERO, Span::ZERO),
        }
    }

    /// Takes the parameters for this round-trip time without a queue, that allow for this lateness of hosts.
    pub(super) fn allow(&mut self, config: &Config, rail: usize, least_rtt: Span, allowance: Span) {
        if (least_rtt, allowance) != self.path {
            self.path = (least_rtt, allowance);
            let parameters = config.parameters(rail, least_rtt, allowance);
            self.parameters = parameters.expect("the scheme was checked");
        }
    }

    /// How late one of the hosts may be.
    pub(super) const fn lateness(&self) -> Span {
        Span(self.path.1.0 / 2)
    }

    /// Bytes that may be in flight.
    pub(super) fn window(&self) -> u64 {
        match self.flow.window(&self.parameters, &self.limits) {
            0 => u64::MAX,
            window => window,
        }
    }

    /// Bit/s, apart from the window.
    pub(super) fn rate(&self) -> u64 {
        self.flow.rate()
    }

    /// Least time between two echoes of congestion marks.
    pub(super) fn echo_interval(&self) -> Span {
        self.parameters.signals().echo_interval
    }

    /// An acknowledgement. `settled`: nothing that was given up may still arrive.
    pub(super) fn on_ack(&mut self, now: Time, signal: &Ack<'_>, settled: bool) {
        if settled {
            self.before = None;
        }
        let Self {
            flow,
            parameters,
            limits,
            timers,
            ..
        } = self;
        flow.on_ack(now, signal, parameters, limits, timers);
    }

    /// A packet is lost: a timeout before was no mistake, even if something arrives after it.
    pub(super) fn on_loss(&mut self, now: Time) {
        self.before = None;
        self.flow.on_loss(now, &self.parameters, &self.limits);
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        self.before.get_or_insert_with(|| self.flow.clone());
        self.flow.on_timeout(now, &self.parameters, &self.limits);
    }

    /// The timeout was too early: what it changed is undone (RFC 4015).
    pub(super) fn undo_timeout(&mut self) {
        if let Some(before) = self.before.take() {
            self.flow = before;
        }
    }

    /// When a timer of the scheme is due.
    pub(super) fn due(&self) -> Time {
        (0..Timers::SLOTS)
            .map(|slot| self.timers.due(slot))
            .min()
            .unwrap_or(Time::NEVER)
    }

    pub(super) fn on_timers(&mut self, now: Time) {
        for slot in 0..Timers::SLOTS {
            if self.timers.due(slot) <= now {
                self.timers.cancel(slot);
                let Self {
                    flow,
                    parameters,
                    limits,
                    timers,
                    ..
                } = self;
                flow.on_timer(now, slot, parameters, limits, timers);
            }
        }
    }
}
