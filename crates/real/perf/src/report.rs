//! What a run found, as a table and as JSON.

use std::fmt;

use raddle_host::{interfaces::Interface, rails::Node};
use raddle_units::Bytes;
use serde::Serialize;

use crate::{
    control::{PolicyName, SplitName},
    goodput::{Goodput, mbit_per_s},
    measure::Latency,
};

/// A rail's part in the goodput.
#[derive(Debug, Serialize)]
struct RailPart {
    interface: String,
    up: bool,
    /// Bytes of packets sent while goodput was measured.
    bytes_sent: u64,
    /// The same per second, in bit/s.
    rate_bps: u64,
    /// Mean round-trip time at its end.
    rtt_us: f64,
}

/// What a run found about goodput.
#[derive(Debug, Serialize)]
pub(crate) struct GoodputPart {
    policy: PolicyName,
    split: SplitName,
    /// Bytes of a message.
    size: u64,
    seconds: f64,
    goodput_bps: u64,
    rails: Vec<RailPart>,
}

/// What it found about latency: half a round trip.
#[derive(Debug, Serialize)]
pub(crate) struct LatencyPart {
    /// Bytes of a message.
    latency_size: u64,
    /// Messages measured.
    latency_messages: u64,
    /// The median, what 99 % do not exceed, and the least.
    latency_us: f64,
    latency_p99_us: f64,
    latency_least_us: f64,
}

/// How the messages travelled.
#[derive(Debug, Serialize)]
pub(crate) struct Travel {
    /// Messages sent, with warm-up; all came.
    messages: u64,
    segments: u64,
    /// Segments sent again.
    retransmissions: u64,
    /// Packets that this host's interfaces did not take; they count as lost.
    refused_packets: u64,
    /// Whether this host's programs knew how busy the others kept the rails.
    knows_neighbours: bool,
}

/// What a run found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub goodput: GoodputPart,
    #[serde(flatten)]
    pub latency: LatencyPart,
    #[serde(flatten)]
    pub travel: Travel,
}

impl GoodputPart {
    /// What was measured with messages of `size` bytes on `interfaces`, one for each rail.
    pub(crate) fn new(
        policy: PolicyName,
        split: SplitName,
        size: u64,
        interfaces: &[Interface],
        goodput: &Goodput,
    ) -> Self {
        let bps = |bytes: u64| (bytes as f64 * 8.0 / goodput.seconds) as u64;
        let rails = interfaces.iter().zip(&goodput.rails);
        Self {
            policy,
            split,
            size,
            seconds: goodput.seconds,
            goodput_bps: bps(goodput.measured * size),
            rails: rails
                .map(|(interface, share)| RailPart {
                    interface: interface.name.clone(),
                    up: share.up,
                    bytes_sent: share.sent_bytes,
                    rate_bps: bps(share.sent_bytes),
                    rtt_us: share.rtt.as_ns() as f64 / 1e3,
                })
                .collect(),
        }
    }
}

impl From<&Latency> for LatencyPart {
    fn from(latency: &Latency) -> Self {
        Self {
            latency_size: latency.size,
            latency_messages: latency.measured,
            latency_us: latency.median_us,
            latency_p99_us: latency.p99_us,
            latency_least_us: latency.least_us,
        }
    }
}

impl Travel {
    /// All that a node has sent; `messages` came.
    pub(crate) fn new(node: &Node, messages: u64) -> Self {
        let counters = node.connection().counters();
        Self {
            messages,
            segments: counters.segments,
            retransmissions: counters.resent,
            refused_packets: node.refused(),
            knows_neighbours: node.knows_neighbours(),
        }
    }
}

impl fmt::Display for GoodputPart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, size) = (mbit_per_s(self.goodput_bps), Bytes(self.size));
        writeln!(
            out,
            "goodput {rate} in {:.2} s, messages of {size}",
            self.seconds
        )?;
        write!(
            out,
            "{:<16}{:<8}{:>12}{:>12}{:>14}",
            "rail", "status", "MB sent", "Mbit/s", "round trip us"
        )?;
        for rail in &self.rails {
            write!(
                out,
                "\n{:<16}{:<8}{:>12.1}{:>12.1}{:>14.1}",
                rail.interface,
                if rail.up { "up" } else { "not up" },
                rail.bytes_sent as f64 / 1e6,
                rail.rate_bps as f64 / 1e6,
                rail.rtt_us
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for LatencyPart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "latency {:.1} us (median), {:.1} us (99 %), {:.1} us (least), {} messages of {}",
            self.latency_us,
            self.latency_p99_us,
            self.latency_least_us,
            self.latency_messages,
            Bytes(self.latency_size)
        )
    }
}

impl fmt::Display for Travel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} messages sent, all arrived; {} of {} segments sent again",
            self.messages, self.retransmissions, self.segments
        )
    }
}
