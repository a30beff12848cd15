//! PFC thresholds, headroom and limits of queues against what can be written down.

use std::collections::BTreeMap;

use proptest::prelude::*;
use raddle_engine::{
    Buffers, IngressBuffer, PortBuffer, PortSeries, RunConfig, RunSummary, SetupError, Sharing,
};
use raddle_units::{BitRate, Bytes, PortId, Span, Time};
use raddle_workload::{FlowList, Message};

use crate::common::{HEADERS, Lab, Log, MTU, message, star};

const PFC: u64 = 64;

fn every_port(ingress: IngressBuffer, egress: Sharing) -> Buffers {
    Buffers {
        usual: PortBuffer { ingress, egress },
        own: BTreeMap::new(),
    }
}

fn ingress(sharing: Sharing) -> IngressBuffer {
    IngressBuffer {
        sharing,
        ..IngressBuffer::default()
    }
}

/// Headroom of a port: twice its delay at its rate, one full packet before the PAUSE, one that the peer has begun, one that
/// crossed the threshold, and the PAUSE itself.
fn needed(rate: BitRate, delay: Span) -> u64 {
    rate.bytes_in(delay * 2).0 + 3 * (MTU + HEADERS) + PFC
}

/// All hosts but the last send to the last, as fast as they can.
fn incast(lab: &Lab, size: u64) -> Vec<Message> {
    let (sink, senders) = lab.hosts().split_last().unwrap();
    let to_sink = |&source| message(Time(0), source, *sink, size);
    senders.iter().map(to_sink).collect()
}

/// An incast of three hosts to one whose link is so slow that hardly anything leaves while a PAUSE is on its way. A port
/// of the switch may hold 50,000 B over its reserve.
fn run(rate: BitRate, delay: Span, headroom: Option<u64>) -> (RunSummary, Log, RunConfig) {
    let slow = BitRate(rate.0 / 50);
    let lab = Lab::new(star(&[
        (rate, delay),
        (rate, delay),
        (rate, delay),
        (slow, delay),
    ]));
    let config = RunConfig {
        buffer: Bytes::from_mib(16),
        buffers: every_port(
            IngressBuffer {
                headroom: headroom.map(Bytes),
                ..ingress(Sharing::Static(Some(Bytes(50_000))))
            },
            Sharing::Complete,
        ),
        port_series: PortSeries::Busiest(4),
        sample_interval: Span::from_ns(300),
        ..lab.config("none")
    };
    let (summary, log) = lab.run(&config, &incast(&lab, 400_000));
    (summary, log, config)
}

/// The most that a port of the switch held of what came in by it.
fn most_held(log: &Log) -> u64 {
    let ports = log.samples.iter().flat_map(|sample| &sample.ports);
    ports.map(|port| port.ingress_bytes).max().unwrap_or(0)
}

#[test]
fn headroom_as_needed_loses_nothing_and_less_loses() {
    for (gbps, delay_ns) in [(100, 1000), (100, 50), (400, 600), (25, 5000)] {
        let (rate, delay) = (BitRate::from_gbps(gbps), Span::from_ns(delay_ns));
        let bound = needed(rate, delay);
        for headroom in [None, Some(bound), Some(bound + 10_000)] {
            let (summary, log, config) = run(rate, delay, headroom);
            assert!(summary.pauses > 0);
            assert_eq!((summary.drops, summary.payload_discarded), (0, 0));
            let most = 4096 + 50_000 + headroom.unwrap_or(bound);
            let held = most_held(&log);
            assert!(held > 4096 + 50_000 && held <= most, "{held} of {most}");
            // The usual settings are what they are said to be.
            if headroom.is_none() {
                let same = run(rate, delay, Some(bound));
                assert_eq!((summary, &log), (same.0, &same.1), "{config:?}");
            }
        }
        // Senders at line rate fill two delays and more. What is dropped is counted and sent again.
        let in_flight = rate.bytes_in(delay * 2).0;
        for headroom in [0, in_flight / 2, in_flight] {
            let (summary, log, _) = run(rate, delay, Some(headroom));
            assert!(
                summary.drops > 0 && summary.nacks > 0,
                "{gbps}G, {headroom} B: {summary:?}"
            );
            assert_eq!(summary.payload_delivered, 3 * 400_000);
            let held = most_held(&log);
            assert!(held <= 4096 + 50_000 + headroom, "{held} with {headroom}");
        }
    }
}

/// The larger alpha, the more a port may hold, and the rarer it has to be paused.
#[test]
fn a_larger_alpha_pauses_less() {
    let lab = Lab::new(star(&[(BitRate::from_gbps(100), Span::from_us(1)); 9]));
    let paused = |sharing| {
        let config = RunConfig {
            buffer: Bytes::from_mib(2),
            buffers: every_port(ingress(sharing), Sharing::Complete),
            ..lab.config("none")
        };
        let (summary, log) = lab.run(&config, &incast(&lab, 500_000));
        assert_eq!(summary.drops, 0);
        let spans = log.pauses.iter().map(|pause| pause.end.since(pause.start));
        let first = log.pauses.iter().map(|pause| pause.start).min();
        (spans.sum::<Span>(), first.unwrap_or(Time::NEVER))
    };
    let alphas = [1.0 / 64.0, 1.0 / 16.0, 0.25, 1.0, 4.0];
    let found: Vec<_> = alphas
        .iter()
        .map(|&alpha| paused(Sharing::Dynamic(alpha)))
        .collect();
    for pair in found.windows(2) {
        assert!(pair[1].0 < pair[0].0, "paused for less: {found:?}");
        assert!(pair[1].1 > pair[0].1, "paused later: {found:?}");
    }
    // Whatever is free comes after any multiple of it.
    assert!(paused(Sharing::Complete).1 > found[4].1);
}

/// Eight ports and a sink share 2 MiB less reserves and headroom in nine equal parts.
#[test]
fn static_sharing_without_a_figure_is_equal_parts() {
    let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
    let lab = Lab::new(star(&[(rate, delay); 9]));
    let run = |bytes| {
        let config = RunConfig {
            buffer: Bytes::from_mib(2),
            buffers: every_port(ingress(Sharing::Static(bytes)), Sharing::Complete),
            ..lab.config("none")
        };
        lab.run(&config, &incast(&lab, 500_000))
    };
    let part = ((2 << 20) - 9 * (4096 + needed(rate, delay))) / 9;
    assert_eq!(run(None), run(Some(Bytes(part))));
    assert_ne!(run(None), run(Some(Bytes(part + 5_000))));
}

/// Ports with settings of their own keep to them, the others to theirs.
#[test]
fn a_port_keeps_to_its_own_settings() {
    let lab = Lab::new(star(&[(BitRate::from_gbps(100), Span::from_us(1)); 4]));
    let fabric = &lab.network.fabric;
    let first = fabric.first_port(fabric.switches()[0]).0;
    let with = |bytes| PortBuffer {
        ingress: ingress(Sharing::Static(Some(Bytes(bytes)))),
        egress: Sharing::Complete,
    };
    let config = RunConfig {
        buffers: Buffers {
            usual: with(200_000),
            own: BTreeMap::from([(PortId(first + 1), with(20_000))]),
        },
        ..lab.config("none")
    };
    let (_, log) = lab.run(&config, &incast(&lab, 1_000_000));
    let first_pause = |host: u32| {
        let of_host = log.pauses.iter().filter(|pause| pause.node.0 == host);
        of_host.map(|pause| pause.start).min().unwrap()
    };
    assert!(first_pause(1) < first_pause(0).min(first_pause(2)));
}

/// Without PFC: the queue to the sink holds no more than its limit, and what comes after is dropped there.
#[test]
fn a_queue_keeps_to_its_egress_limit() {
    let lab = Lab::new(star(&[(BitRate::from_gbps(100), Span::from_us(1)); 5]));
    for (egress, most) in [
        (Sharing::Static(Some(Bytes(60_000))), 60_000),
        // One queue alone: alpha / (1 + alpha) of 1 MB, and a part of the packet that is not yet counted.
        (Sharing::Dynamic(0.25), 200_000),
        (Sharing::Dynamic(1.0), 500_000),
    ] {
        let config = RunConfig {
            lossless: false,
            buffer: Bytes(1_000_000),
            buffers: every_port(
                IngressBuffer {
                    reserve: Bytes(0),
                    ..ingress(Sharing::Complete)
                },
                egress,
            ),
            retransmission_timeout: Span::from_us(500),
            ..lab.config("none")
        };
        let (summary, log) = lab.run(&config, &incast(&lab, 1_000_000));
        assert_eq!(summary.payload_delivered, 4_000_000);
        let sink = log
            .ports
            .iter()
            .find(|port| port.node.0 == 5 && port.port == 5);
        let sink = sink.unwrap();
        let longest = sink.max_queue_bytes;
        assert!(
            longest.abs_diff(most) < MTU + HEADERS,
            "{egress:?}: {longest}"
        );
        assert_eq!(
            sink.drops, summary.drops,
            "counted where they were to leave"
        );
        assert!(summary.drops > 0);
    }
}

#[test]
fn reserves_that_do_not_fit_are_refused() {
    let lab = Lab::new(star(&[(BitRate::from_gbps(100), Span::from_us(1)); 3]));
    let config = RunConfig {
        buffer: Bytes(1_000_000),
        buffers: every_port(
            IngressBuffer {
                headroom: Some(Bytes(400_000)),
                ..IngressBuffer::default()
            },
            Sharing::Complete,
        ),
        ..lab.config("none")
    };
    let nothing = &mut FlowList::new(Vec::new(), Vec::new());
    let refused = lab.drive(&config, nothing).unwrap_err();
    assert!(
        matches!(refused, SetupError::BufferTooSmall { .. }),
        "{refused}"
    );
}

/// What a table may say.
fn any_sharing() -> impl Strategy<Value = Sharing> {
    prop_oneof![
        Just(Sharing::Scaled),
        Just(Sharing::Complete),
        (0.001..20.0).prop_map(Sharing::Dynamic),
        prop::option::of(2_000u64..100_000).prop_map(|bytes| Sharing::Static(bytes.map(Bytes))),
    ]
}

/// Any settings under which PFC loses nothing.
pub(crate) fn any_buffers() -> impl Strategy<Value = Buffers> {
    // Without PFC the reserve holds a packet, so that something gets through.
    let parts = (any_sharing(), any_sharing(), 1_200u64..6_000, 0u64..20_000);
    parts.prop_map(|(sharing, egress, reserve, offset)| {
        every_port(
            IngressBuffer {
                sharing,
                reserve: Bytes(reserve),
                headroom: None,
                resume_offset: Bytes(offset),
            },
            egress,
        )
    })
}
