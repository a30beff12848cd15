//! Congestion control: one file per scheme behind [`CongestionControl`], chosen by name in `registry.rs`.
//!
//! A scheme is plain per-flow state and the parameters of the run. It is told of acknowledgements, losses, timeouts and
//! its own timers, and answers with a rate, a window and the next timers; it never sees a clock, a packet or a random
//! source. What it needs from the network (ECN marks, telemetry) it declares in [`Signals`], and a driver that cannot
//! give a signal refuses the scheme by name instead of running it blind.
//!
//! To add a scheme: one file with settings, parameters and per-flow state, and one line in `registry.rs`.

pub mod dcqcn;
pub mod dctcp;
pub mod hpcc;
mod limits;
pub mod none;
pub mod pint;
mod registry;
mod settings;
pub mod swift;
pub mod timely;

use raddle_units::{BitRate, Bytes, Span, Time};

pub use registry::{FlowControl, SchemeInfo, SchemeParameters, SchemeSettings};
pub use settings::{Conflict, Defaults, EffectiveParameter, Environment, Resolver};

use crate::telemetry::Echo;

/// What every flow of a run shares with its scheme.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowLimits {
    /// Rate of the sending NIC in bit/s: where a flow starts and its upper bound.
    pub line_rate: u64,
    /// Lowest rate a scheme may ask for, in bit/s.
    pub min_rate: u64,
}

impl FlowLimits {
    /// `rate` within the limits.
    #[inline]
    pub fn clamp(&self, rate: u64) -> u64 {
        rate.clamp(self.min_rate, self.line_rate)
    }

    /// A rate computed in floating point, truncated and within the limits (not-a-number gives the lowest).
    #[inline]
    pub fn clamp_f64(&self, rate: f64) -> u64 {
        self.clamp(rate as u64)
    }
}

/// One acknowledgement, as the sender's transport hands it to the scheme.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// All bytes below are acknowledged.
    pub seq: u64,
    /// The next byte the sender will send (`snd_nxt`), after this acknowledgement was applied.
    pub next: u64,
    /// Bytes newly acknowledged.
    pub newly_acked: u64,
    /// The acknowledged packet carried a congestion mark (ECN echo).
    pub marked: bool,
    /// Time since the acknowledged packet left the sender.
    pub rtt: Span,
    /// Telemetry echoed by the receiver.
    pub echo: Echo<'a>,
    /// Whether the message is now complete (schemes with timers stop them).
    pub complete: bool,
    /// 31 random bits, drawn by the driver where [`Signals::random_per_ack`] asks for them, else 0.
    pub random: u32,
}

/// Timers of one flow. A scheme arms and cancels them; the driver calls [`CongestionControl::on_timer`] when one is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    due: [Time; Self::SLOTS],
    changed: u8,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            due: [Time::NEVER; Self::SLOTS],
            changed: 0,
        }
    }
}

impl Timers {
    /// Timers a scheme may run at once.
    pub const SLOTS: usize = 2;

    /// Sets timer `slot` to go off at `at`, replacing what it was set to.
    pub fn arm(&mut self, slot: usize, at: Time) {
        self.due[slot] = at;
        self.changed |= 1 << slot;
    }

    /// Stops timer `slot`.
    pub fn cancel(&mut self, slot: usize) {
        self.due[slot] = Time::NEVER;
    }

    /// When timer `slot` is due ([`Time::NEVER`]: not armed).
    pub const fn due(&self, slot: usize) -> Time {
        self.due[slot]
    }

    /// Whether `slot` is armed.
    pub fn is_armed(&self, slot: usize) -> bool {
        self.due[slot] != Time::NEVER
    }

    /// Slots armed since the last call, as a bit mask: the driver schedules these.
    #[inline]
    pub fn take_changed(&mut self) -> u8 {
        std::mem::take(&mut self.changed)
    }
}

/// ECN marking thresholds of a switch egress queue, per link rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EcnProfile {
    /// No marks up to this many queued bytes, for a link of `per_rate`.
    pub kmin: Bytes,
    /// All packets are marked above this many queued bytes, for a link of `per_rate`.
    pub kmax: Bytes,
    /// Marking probability at `kmax`, 0..=1.
    pub pmax: f64,
    /// The link rate to which the thresholds belong; other links scale them in proportion.
    pub per_rate: BitRate,
}

impl EcnProfile {
    /// (kmin, kmax) in bytes for a link of `rate`.
    pub fn thresholds(&self, rate: BitRate) -> (u64, u64) {
        let scale = |bytes: Bytes| {
            (u128::from(bytes.0) * u128::from(rate.0) / u128::from(self.per_rate.0.max(1))) as u64
        };
        (scale(self.kmin), scale(self.kmax))
    }
}

/// Telemetry a scheme wants in its data packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Telemetry {
    /// None.
    None,
    /// The time of sending (8 bytes), echoed by the receiver.
    Timestamp,
    /// HPCC's hop records.
    Hops,
    /// PINT's digest; `base` of its logarithmic code.
    Digest {
        /// Base of the code: utilisation = base^code / 512.
        base: f64,
    },
}

/// What a scheme asks of the network and of the driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Signals {
    /// Switches mark by this profile.
    pub ecn: Option<EcnProfile>,
    /// Telemetry carried by data packets.
    pub telemetry: Telemetry,
    /// Least time between two ECN echoes of one flow at the receiver (DCQCN's CNP interval); zero: each packet's mark is echoed.
    pub echo_interval: Span,
    /// A new rate also moves the time of the next packet (HPCC), instead of acting from the packet after it.
    pub reprice_pacing: bool,
    /// Acknowledgements travel before data at the hosts (the simulators' ACK_HIGH_PRIO).
    pub acks_first: bool,
    /// The scheme uses a random number per acknowledgement (PINT's sampling).
    pub random_per_ack: bool,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            ecn: None,
            telemetry: Telemetry::None,
            echo_interval: Span::ZERO,
            reprice_pacing: false,
            acks_first: true,
            random_per_ack: false,
        }
    }
}

/// The two numbers that a per-ACK trace shows of a scheme's inside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inspection {
    /// The scheme's reference or target rate in bit/s (the rate itself where there is none).
    pub reference_rate: u64,
    /// Its internal measure: utilisation (HPCC, PINT), alpha (DCTCP, DCQCN), RTT in ns (TIMELY, Swift), else 0.
    pub measure: f64,
}

/// Parameters of a scheme that may exclude each other.
trait Validate {
    /// Refuses those that do; most schemes have none.
    fn validate(&self) -> Result<(), Conflict> {
        Ok(())
    }
}

/// One flow's congestion control. `P` are the parameters of the run, shared by all flows.
pub trait CongestionControl: Sized {
    /// Resolved parameters of a run.
    type Parameters;

    /// A new flow at line rate.
    fn new(parameters: &Self::Parameters, limits: &FlowLimits) -> Self;

    /// An acknowledgement or the ACK part of a NACK.
    fn on_ack(
        &mut self,
        now: Time,
        ack: &Ack<'_>,
        parameters: &Self::Parameters,
        limits: &FlowLimits,
        timers: &mut Timers,
    );

    /// A NACK: data was lost or reordered.
    fn on_loss(&mut self, _now: Time, _parameters: &Self::Parameters, _limits: &FlowLimits) {}

    /// The retransmission timer went off.
    fn on_timeout(&mut self, _now: Time, _parameters: &Self::Parameters, _limits: &FlowLimits) {}

    /// Timer `slot` is due; it is no longer armed.
    fn on_timer(
        &mut self,
        _now: Time,
        _slot: usize,
        _parameters: &Self::Parameters,
        _limits: &FlowLimits,
        _timers: &mut Timers,
    ) {
    }

    /// From the next acknowledgement on, telemetry and times are those of another path (a group's acker changed): what was
    /// measured on the old one must not be compared with them.
    fn on_path_change(&mut self) {}

    /// Sending rate in bit/s.
    fn rate(&self) -> u64;

    /// Bytes that may be in flight (0: no limit).
    fn window(&self, _parameters: &Self::Parameters, _limits: &FlowLimits) -> u64 {
        0
    }

    /// What a trace shows at `now`.
    fn inspect(&self, now: Time, ack: &Ack<'_>, parameters: &Self::Parameters) -> Inspection;
}

/// A window that follows the rate: `full x rate / line`, at least one byte (HPCC's VAR_WIN).
#[inline]
pub(crate) fn window_for_rate(full: u64, rate: u64, line_rate: u64) -> u64 {
    let window = match full.checked_mul(rate) {
        Some(product) => product / line_rate,
        None => (u128::from(full) * u128::from(rate) / u128::from(line_rate)) as u64,
    };
    window.max(1)
}

impl EcnProfile {
    /// The profile that HPCC's simulator sets for every scheme but DCTCP: 400 kB, 1600 kB, 0.2 per 100 Gbit/s.
    pub(crate) fn hpcc_simulator(line_rate: BitRate) -> Self {
        let scale = |bytes: u64| {
            Bytes((u128::from(bytes) * u128::from(line_rate.0) / 100_000_000_000) as u64)
        };
        Self {
            kmin: scale(400_000),
            kmax: scale(1_600_000),
            pmax: 0.2,
            per_rate: line_rate,
        }
    }
}
