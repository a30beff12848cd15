//! The status as Prometheus metrics.

use std::fmt::Error;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text::encode},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};

use crate::status::{JobStatus, PortStatus, Status};

/// The text of `/metrics` (OpenMetrics 1.0, which Prometheus reads).
///
/// # Errors
/// The formatter fails, which a string as its target never does.
pub fn text(status: Status) -> Result<String, Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Metrics(status)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Metrics(Status);

/// A family of metrics of ports or jobs: name, help, whether it only grows, value.
type Family<T> = (&'static str, &'static str, bool, fn(&T) -> u64);

const PORTS: [Family<PortStatus>; 7] = [
    (
        "port_up",
        "Whether frames can be sent and received",
        false,
        |port| u64::from(port.up),
    ),
    ("port_received_frames", "Frames received", true, |port| {
        port.received
    }),
    ("port_received_bytes", "Bytes received", true, |port| {
        port.received_bytes
    }),
    ("port_sent_frames", "Frames sent", true, |port| port.sent),
    ("port_sent_bytes", "Bytes sent", true, |port| {
        port.sent_bytes
    }),
    (
        "port_refused_frames",
        "Frames that the interface did not take",
        true,
        |port| port.refused,
    ),
    (
        "port_losses",
        "How often the interface went away or lost its carrier",
        true,
        |port| port.losses,
    ),
];

const JOBS: [Family<JobStatus>; 9] = [
    ("job_groups", "Groups installed", false, |job| job.groups),
    ("job_slots", "Slots of the groups", false, |job| job.slots),
    ("job_memory_bytes", "Memory of the groups", false, |job| {
        job.bytes
    }),
    (
        "job_contributions",
        "Messages with contributions",
        true,
        |job| job.contributions,
    ),
    ("job_segments", "Segments completed here", true, |job| {
        job.segments
    }),
    ("job_rounds", "Rounds completed here", true, |job| {
        job.rounds
    }),
    (
        "job_repeats",
        "Contributions that came again",
        true,
        |job| job.repeats,
    ),
    (
        "job_stale",
        "Contributions for segments that are over",
        true,
        |job| job.stale,
    ),
    (
        "job_refusals",
        "Messages refused, or refusals passed on",
        true,
        |job| job.refusals,
    ),
];

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let status = &self.0;
        for (name, help, grows, value) in PORTS {
            let values = status
                .ports
                .iter()
                .map(|port| (port.interface.clone(), value(port)));
            family(&mut encoder, name, help, grows, "port", values)?;
        }
        for (name, help, grows, value) in JOBS {
            let values = status
                .jobs
                .iter()
                .map(|job| (job.job.to_string(), value(job)));
            family(&mut encoder, name, help, grows, "job", values)?;
        }
        let drops = status
            .drops
            .iter()
            .map(|drops| (drops.reason.clone(), drops.count));
        let help = "Frames and messages dropped";
        family(&mut encoder, "drops", help, true, "reason", drops)?;
        let info = [
            ("name", status.name.as_str()),
            ("address", &status.address),
            ("backend", &status.backend),
            ("state", &status.state),
        ];
        let mut metric = encoder.encode_descriptor(
            "raddle_switch_info",
            "What this switch is",
            None,
            MetricType::Gauge,
        )?;
        ConstGauge::new(1_u64).encode(metric.encode_family(&info)?)?;
        let counters = &status.counters;
        // A switch that does not speak the published protocol has zeros.
        let published = status.published.unwrap_or_default();
        let whole: [(&str, &str, bool, u64); 20] = [
            ("tier", "Tier of this switch", false, status.tier.into()),
            (
                "draining",
                "Whether it takes no new groups",
                false,
                u64::from(status.state != "running"),
            ),
            (
                "uptime_seconds",
                "Time since the start",
                false,
                status.uptime_s,
            ),
            ("stations", "Stations learnt", false, status.stations),
            (
                "neighbours",
                "Neighbours whose hardware address is known",
                false,
                status.neighbours,
            ),
            (
                "messages",
                "Messages for the switch itself",
                true,
                counters.messages,
            ),
            (
                "messages_sent",
                "Messages that it sent",
                true,
                counters.messages_sent,
            ),
            (
                "rewritten",
                "Queries and notifies that it rewrote",
                true,
                counters.rewritten,
            ),
            (
                "arp_answers",
                "ARP requests answered",
                true,
                counters.arp_answers,
            ),
            ("pings", "Pings answered", true, counters.pings),
            (
                "moves",
                "Stations that turned up behind another port",
                true,
                counters.moves,
            ),
            (
                "unlearnt",
                "Frames whose sender found no room in the table",
                true,
                counters.unlearnt,
            ),
            (
                "overflow",
                "Frames lost in the kernel",
                true,
                counters.overflow,
            ),
            (
                "published_groups",
                "Groups of the published protocol",
                false,
                published.groups,
            ),
            (
                "published_set_up",
                "Groups of the published protocol that were set up",
                true,
                published.set_up,
            ),
            (
                "published_refused",
                "Groups of the published protocol that were refused",
                true,
                published.refused,
            ),
            (
                "published_forgotten",
                "Groups of the published protocol of which nothing came",
                true,
                published.forgotten,
            ),
            (
                "published_controls",
                "Queries, notifies and kills of the published protocol",
                true,
                published.controls,
            ),
            (
                "published_held",
                "Packets of the published protocol that were held",
                true,
                published.held,
            ),
            (
                "published_rounds",
                "Rounds of the published protocol whose result went back",
                true,
                published.rounds,
            ),
        ];
        for (name, help, grows, value) in whole {
            single(&mut encoder, name, help, grows, value)?;
        }
        Ok(())
    }
}

/// A metric with one value.
fn single(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    grows: bool,
    value: u64,
) -> Result<(), Error> {
    let kind = if grows {
        MetricType::Counter
    } else {
        MetricType::Gauge
    };
    let name = format!("raddle_switch_{name}");
    let metric = encoder.encode_descriptor(&name, help, None, kind)?;
    if grows {
        ConstCounter::new(value).encode(metric)
    } else {
        ConstGauge::new(value).encode(metric)
    }
}

fn family(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    grows: bool,
    label: &str,
    values: impl Iterator<Item = (String, u64)>,
) -> Result<(), Error> {
    let kind = if grows {
        MetricType::Counter
    } else {
        MetricType::Gauge
    };
    let name = format!("raddle_switch_{name}");
    let mut metric = encoder.encode_descriptor(&name, help, None, kind)?;
    for (labelled, value) in values {
        let labels = [(label, labelled)];
        let metric = metric.encode_family(&labels)?;
        if grows {
            ConstCounter::new(value).encode(metric)?;
        } else {
            ConstGauge::new(value).encode(metric)?;
        }
    }
    Ok(())
}
