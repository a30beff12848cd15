//! Where the HPCC simulator and a correct model differ, and which of the two a run follows.
//!
//! One value, chosen when a run is set up; each field is handed to the one place that acts on it. Nothing else in the
//! simulator asks for the name of a mode. docs/reference/compat.md explains each correction.

use raddle_transport::{cc::Defaults, reliability::Duplicates};
use raddle_unicast::NextHopOrder;
use raddle_units::{BitRate, Bytes, Span};

/// How long a packet occupies a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkTiming {
    /// Picoseconds, rounded up.
    Exact,
    /// ns-3.17: a double in seconds, made 64.64 fixed point, truncated to whole nanoseconds: links are 1 to 5 % too fast.
    TruncatedNs,
}

impl LinkTiming {
    /// Time that `bytes` take at `rate`.
    #[inline]
    pub fn transmission_time(self, bytes: Bytes, rate: BitRate) -> Span {
        match self {
            Self::Exact => rate.transmission_time(bytes),
            Self::TruncatedNs => Span::from_ns(truncated_ns(bytes.0 as f64 * 8.0 / rate.0 as f64)),
        }
    }
}

/// Seconds to nanoseconds as ns-3.17 does it: 64.64 fixed point, truncated.
#[inline]
pub fn truncated_ns(seconds: f64) -> u64 {
    let whole = seconds as u64;
    let fraction = ((seconds - whole as f64) * 18_446_744_073_709_551_616.0) as u64;
    whole * 1_000_000_000 + ((u128::from(fraction) * 1_000_000_000) >> 64) as u64
}

/// Which of two events of the same instant comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TieOrder {
    /// By node, port and sequence: independent of how the run is carried out.
    Canonical,
    /// In the order in which they were scheduled.
    Insertion,
}

/// What the queue lengths seen by ECN and telemetry include.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueView {
    /// The packet that is being taken as well: it is still in the buffer.
    WithDeparting,
    /// Only what is left behind.
    WithoutDeparting,
}

/// Where random decisions come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Randomness {
    /// A stream per node, all from the run's seed.
    PerNode,
    /// The documented generators behind the HPCC simulator, drawn from in its order: ns-3's (L'Ecuyer's MRG32k3a, the
    /// run's seed as the run number) for ECN, libc's `rand()` for PINT.
    HpccNs3,
}

/// All choices of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Semantics {
    /// Occupation of links.
    pub timing: LinkTiming,
    /// Order within an instant.
    pub ties: TieOrder,
    /// Order of equal-cost next hops.
    pub next_hops: NextHopOrder,
    /// Queue lengths for ECN and telemetry.
    pub queue_view: QueueView,
    /// Acknowledgements use the control queue of switches (true) or share the data queue (false).
    pub acks_in_control_queue: bool,
    /// What receivers do with duplicates.
    pub duplicates: Duplicates,
    /// Whether senders have a retransmission timer.
    pub retransmission_timer: bool,
    /// Headroom per port: the time a pause needs to take effect (true), or the reference's 3 x rate x delay / 8.
    pub exact_headroom: bool,
    /// Hop records a packet has room for (None: as many as the fabric's longest path).
    pub hop_records: Option<usize>,
    /// Family of congestion-control defaults.
    pub defaults: Defaults,
    /// A NIC without an eligible flow wakes for the earliest one that may send by then (true), or, as the reference, only
    /// if no flow with data left is past its time, blocked or not.
    pub wake_ignores_blocked: bool,
    /// PINT's switch arithmetic: rounded base-2 logarithms (true), or exact (false).
    pub pint_logarithms: bool,
    /// Source of random decisions.
    pub randomness: Randomness,
}

impl Semantics {
    /// The model without the reference's quirks: the default.
    pub const CORRECTED: Self = Self {
        timing: LinkTiming::Exact,
        ties: TieOrder::Canonical,
        next_hops: NextHopOrder::ByPort,
        queue_view: QueueView::WithDeparting,
        acks_in_control_queue: true,
        duplicates: Duplicates::Acknowledge,
        retransmission_timer: true,
        exact_headroom: true,
        hop_records: None,
        defaults: Defaults::Scaled,
        wake_ignores_blocked: true,
        pint_logarithms: false,
        randomness: Randomness::PerNode,
    };

    /// The HPCC repository's ns-3 simulator, to the nanosecond.
    pub const HPCC_NS3: Self = Self {
        timing: LinkTiming::TruncatedNs,
        ties: TieOrder::Insertion,
        next_hops: NextHopOrder::DescendingNodeId,
        queue_view: QueueView::WithoutDeparting,
        acks_in_control_queue: false,
        duplicates: Duplicates::Ignore,
        retransmission_timer: false,
        exact_headroom: false,
        hop_records: Some(5),
        defaults: Defaults::HpccNs3,
        wake_ignores_blocked: false,
        pint_logarithms: true,
        randomness: Randomness::HpccNs3,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_matches_the_values_measured_in_the_reference() {
        let at = |bytes, gbps| {
            LinkTiming::TruncatedNs
                .transmission_time(Bytes(bytes), BitRate::from_gbps(gbps))
                .as_ns()
        };
        for (bytes, ns) in [
            (1048, 83),
            (60, 4),
            (88, 7),
            (1050, 83),
            (1056, 84),
            (1090, 87),
            (43, 3),
        ] {
            assert_eq!(at(bytes, 100), ns);
        }
        assert_eq!((at(1048, 400), at(1090, 400), at(88, 400)), (20, 21, 1));
        // Exactly representable results can come out one lower.
        assert_eq!(at(1056, 1), 8447);
        assert_eq!(truncated_ns(0.000_020), 19_999);
    }
}
