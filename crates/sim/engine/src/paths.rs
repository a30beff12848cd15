//! Figures of idle paths: round-trip times, bandwidth-delay products, and how long one flow alone takes.

use std::collections::BTreeSet;

use raddle_fabric::Fabric;
use raddle_transport::cc::{Defaults, Environment};
use raddle_unicast::UnicastTables;
use raddle_units::{BitRate, Bytes, NodeId, Span};

use crate::semantics::{LinkTiming, Semantics};

/// Link, network and transport headers of a data packet: 14 + 20 + 8 + 6.
pub(crate) const HEADER_BYTES: u64 = 48;
/// An acknowledgement without telemetry.
pub(crate) const ACK_BYTES: u64 = 60;
/// Class pairs are examined one by one up to this many destination classes; beyond, sources are sampled.
const ALL_PAIRS_UP_TO: usize = 256;
const SAMPLED_SOURCES: usize = 64;

/// The links of one path, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Path {
    pub(crate) hops: Vec<(BitRate, Span)>,
}

impl Path {
    pub(crate) fn between(
        fabric: &Fabric,
        tables: &UnicastTables,
        src: NodeId,
        dst: NodeId,
    ) -> Option<Self> {
        let hops: Vec<_> = tables
            .first_path(fabric, src, dst)
            .map(|port| (fabric.rate(port), fabric.delay(port)))
            .collect();
        (!hops.is_empty()).then_some(Self { hops })
    }

    fn bottleneck(&self) -> BitRate {
        self.hops.iter().map(|hop| hop.0).min().unwrap_or_default()
    }

    fn delay(&self) -> Span {
        self.hops.iter().map(|hop| hop.1).sum()
    }

    /// Round-trip time of one full packet. The reference counts payload only, in whole nanoseconds per hop, and forgets the
    /// ACK's transmission.
    fn round_trip(&self, semantics: &Semantics, mtu: Bytes) -> Span {
        let transmission: Span = self
            .hops
            .iter()
            .map(|&(rate, _)| match semantics.timing {
                LinkTiming::Exact => {
                    rate.transmission_time(Bytes(mtu.0 + HEADER_BYTES))
                        + rate.transmission_time(Bytes(ACK_BYTES))
                }
                LinkTiming::TruncatedNs => Span::from_ns(mtu.0 * 8_000_000_000 / rate.0.max(1)),
            })
            .sum();
        self.delay() * 2 + transmission
    }

    /// Completion time of `size` bytes on the idle path at line rate, with packets of `header` + at most `mtu` bytes and
    /// acknowledgements of `ack` bytes.
    ///
    /// With exact timing this is what a flow alone takes, to the picosecond: the last packet waits at each hop for the
    /// full packets before it, which the slowest hop so far spaces out.
    pub(crate) fn ideal_fct(
        &self,
        semantics: &Semantics,
        size: Bytes,
        mtu: Bytes,
        header: u64,
        ack: u64,
    ) -> Span {
        let back: Vec<_> = self.hops.iter().rev().copied().collect();
        self.ideal_round(&back, semantics, size, mtu, header, ack)
    }

    /// [`Self::ideal_fct`] where acknowledgements take the way `back`.
    pub(crate) fn ideal_round(
        &self,
        back: &[(BitRate, Span)],
        semantics: &Semantics,
        size: Bytes,
        mtu: Bytes,
        header: u64,
        ack: u64,
    ) -> Span {
        let packets = size.0.div_ceil(mtu.0).max(1);
        if semantics.timing == LinkTiming::TruncatedNs {
            // The reference's "standalone" time: no telemetry bytes, half of the ACK's way.
            let wire = size.0 + packets * HEADER_BYTES;
            let rate = self.bottleneck().0.max(1);
            let ns = u128::from(wire) * 8_000_000_000 / u128::from(rate);
            return self.round_trip(semantics, mtu) + Span::from_ns(ns as u64);
        }
        let last = size.0 - (packets - 1) * mtu.0 + header;
        let (mut full_done, mut last_done, mut slowest) = (Span::ZERO, Span::ZERO, Span::ZERO);
        for &(rate, delay) in &self.hops {
            let full_time = rate.transmission_time(Bytes(mtu.0 + header));
            let last_time = rate.transmission_time(Bytes(last));
            if packets == 1 {
                last_done += last_time + delay;
                continue;
            }
            // End of the packet before the last: the first one's way so far, then one slot of the slowest hop each.
            slowest = slowest.max(full_time);
            full_done += full_time;
            let before_last = full_done + slowest * (packets - 2);
            last_done = last_done.max(before_last) + last_time + delay;
            full_done += delay;
        }
        if packets == 1 {
            let ack_time = |hop: &(BitRate, Span)| hop.0.transmission_time(Bytes(ack)) + hop.1;
            return last_done + back.iter().map(ack_time).sum();
        }
        // The same for the acknowledgements on their way back: the last one may wait where the last packet was shorter.
        for &(rate, delay) in back {
            let ack_time = rate.transmission_time(Bytes(ack));
            slowest = slowest.max(ack_time);
            full_done += ack_time;
            let before_last = full_done + slowest * (packets - 2);
            last_done = last_done.max(before_last) + ack_time + delay;
            full_done += delay;
        }
        last_done
    }
}

/// What congestion-control defaults scale with: the extremes over host pairs of the idle fabric.
pub(crate) fn environment(
    fabric: &Fabric,
    tables: &UnicastTables,
    semantics: &Semantics,
    mtu: Bytes,
) -> Environment {
    let classes: Vec<_> = tables.destination_classes().collect();
    let step = if classes.len() <= ALL_PAIRS_UP_TO {
        1
    } else {
        classes.len() / SAMPLED_SOURCES
    };
    let (mut base_rtt, mut bdp, mut links) = (Span::ZERO, Bytes(0), 0);
    for &from in classes.iter().step_by(step) {
        for &to in &classes {
            let src = tables.class_hosts(from)[0];
            let Some(&dst) = tables
                .class_hosts(to)
                .iter()
                .rev()
                .find(|&&host| host != src)
            else {
                continue;
            };
            let Some(path) = Path::between(fabric, tables, src, dst) else {
                continue;
            };
            let round_trip = path.round_trip(semantics, mtu);
            base_rtt = base_rtt.max(round_trip);
            bdp = bdp.max(path.bottleneck().bytes_in(round_trip));
            links = links.max(path.hops.len());
        }
    }
    let host_rates = fabric
        .hosts()
        .iter()
        .map(|&host| fabric.rate(fabric.first_port(host)));
    let link_rates: BTreeSet<BitRate> = fabric.links().iter().map(|link| link.rate).collect();
    Environment {
        line_rate: host_rates.max().unwrap_or_default(),
        base_rtt,
        bdp,
        mtu,
        max_switch_hops: links.saturating_sub(1),
        link_rates: link_rates.into_iter().collect(),
        defaults: if semantics.defaults == Defaults::HpccNs3 {
            Defaults::HpccNs3
        } else {
            Defaults::Scaled
        },
    }
}
