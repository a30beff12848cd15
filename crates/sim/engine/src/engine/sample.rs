//! Series over time, and what is recorded at the end of a run.

use raddle_fabric::Fabric;
use raddle_units::{Bytes, NodeId, PortId, Span, Time};
use raddle_workload::Destination;

use super::{Base, Engine, wires::Wires};
use crate::{
    index::FlowSlot,
    record::{PortRecord, PortSample, Progress, Sample},
    setup::{PortSeries, RunConfig},
};

/// Samples between two looks at progress, cancellation and output errors.
const CHECK_EVERY: u64 = 1 << 10;
/// Flows with a series of their own.
const MAX_WATCHED: usize = 64;

/// Counts deliveries between samples.
#[derive(Debug)]
pub(super) struct Sampler {
    interval: Span,
    pub(super) next: Time,
    by_class: Vec<u64>,
    watched: Vec<(NodeId, Destination, u16, u64)>,
    series: Vec<Series>,
    /// Ports where nothing happened are left out of samples.
    active_only: bool,
    /// Scratch: the ports of one sample.
    ports: Vec<PortSample>,
}

/// A port with a series, and its counters at the last sample.
#[derive(Debug)]
struct Series {
    port: PortId,
    tx_bytes: u64,
    ecn_marks: u64,
}

impl Sampler {
    pub(super) fn new(config: &RunConfig, classes: usize, fabric: &Fabric) -> Self {
        let interval = config.sample_interval;
        let series = |port| Series {
            port,
            tx_bytes: 0,
            ecn_marks: 0,
        };
        let (ports, active_only): (Vec<PortId>, bool) = match &config.port_series {
            PortSeries::None => (Vec::new(), false),
            PortSeries::Ports(ports) => (ports.clone(), false),
            PortSeries::Busiest(_) => {
                let all = (0..fabric.port_count() as u32).map(PortId);
                let of_switch = |port: &PortId| !fabric.is_host(fabric.port(*port).node);
                (all.filter(of_switch).collect(), true)
            }
        };
        Self {
            interval,
            next: if interval == Span::ZERO {
                Time::NEVER
            } else {
                Time::ZERO + interval
            },
            by_class: vec![0; classes],
            watched: Vec::new(),
            series: ports.into_iter().map(series).collect(),
            active_only,
            ports: Vec::new(),
        }
    }

    /// Takes a flow onto the list of watched ones if it is large enough and the list has room.
    pub(super) fn watch(
        &mut self,
        src: NodeId,
        dst: Destination,
        sport: u16,
        size: Bytes,
        from: Bytes,
    ) -> Option<u16> {
        if size < from || self.watched.len() >= MAX_WATCHED {
            return None;
        }
        self.watched.push((src, dst, sport, 0));
        Some((self.watched.len() - 1) as u16)
    }

    /// Payload has been delivered.
    #[inline]
    pub(super) fn delivered(&mut self, class: u8, watched: Option<u16>, payload: u64) {
        if let Some(bytes) = self.by_class.get_mut(usize::from(class)) {
            *bytes += payload;
        }
        if let Some(index) = watched {
            self.watched[usize::from(index)].3 += payload;
        }
    }
}

impl Base<'_> {
    /// Tells how far the run is; false: someone wants it to stop here.
    #[cold]
    pub(super) fn goes_on(&mut self, now: Time, progress: &Progress) -> bool {
        let summary = &mut self.cx.summary;
        progress.update(now, summary.packet_hops, summary.flows_finished);
        summary.cancelled = progress.is_cancelled();
        !summary.cancelled && !self.cx.recorder.failed()
    }

    /// Takes all samples that are due up to `until`, with the state as it is now; false: the run is to stop meanwhile. (At
    /// low rates there are millions of samples between two events.)
    #[cold]
    pub(super) fn sample_until(&mut self, until: Time, progress: &Progress) -> bool {
        let mut taken = 0u64;
        while self.sampler.next <= until {
            self.sample(self.sampler.next);
            taken += 1;
            if taken.is_multiple_of(CHECK_EVERY) && !self.goes_on(self.sampler.next, progress) {
                self.cx.now = self.sampler.next;
                return false;
            }
            self.sampler.next += self.sampler.interval;
        }
        true
    }

    fn sample(&mut self, time: Time) {
        let wires = &self.wires;
        let of_switches = wires.ends.iter().filter_map(|end| {
            let switch = &wires.switches[end.switch()?];
            Some(switch.queued_bytes(end.index))
        });
        let max_port_bytes = of_switches.max().unwrap_or(0);
        let watched: Vec<_> = self
            .sampler
            .watched
            .iter()
            .filter(|flow| flow.3 > 0)
            .copied()
            .collect();
        let ports = self.sampler.sample_ports(wires);
        self.cx.recorder.sample(&Sample {
            time,
            delivered_by_class: &self.sampler.by_class,
            watched: &watched,
            buffered_bytes: wires
                .switches
                .iter()
                .map(raddle_dataplane::Switch::buffered_bytes)
                .sum(),
            max_port_bytes,
            paused_ports: wires.paused_ports,
            ports: &ports,
        });
        self.sampler.ports = ports;
        self.sampler.by_class.fill(0);
        for flow in &mut self.sampler.watched {
            flow.3 = 0;
        }
    }

    /// The last, partial interval; pauses that have not ended.
    fn record_last_sample(&mut self) {
        if self.sampler.next != Time::NEVER && self.cx.now.0 > 0 {
            self.sample(self.cx.now);
        }
        for port in self.wires.ends.places() {
            if self.wires.ends[port].paused != 0 {
                self.wires.end_pause(&mut self.cx, port);
            }
        }
    }

    /// Flows that have not ended, in order of start.
    fn open_flows(&self) -> Vec<FlowSlot> {
        let flows = &self.hosts.flows;
        let mut open: Vec<_> = flows.places().filter(|&index| flows[index].live).collect();
        open.sort_by_key(|&index| {
            let flow = &flows[index];
            (flow.start, flow.src, flow.to.destination(), flow.sport)
        });
        open
    }

    fn record_ports(&mut self) {
        let wires = &self.wires;
        for (end, history) in wires.ends.iter().zip(wires.history.iter()) {
            let mut record = PortRecord {
                node: end.node,
                port: end.number(),
                peer: wires.node(end.peer),
                rate: end.rate,
                tx_bytes: history.tx_bytes,
                tx_packets: history.tx_packets,
                ecn_marks: 0,
                max_queue_bytes: 0,
                pause: history.paused_total,
                drops: history.lost,
            };
            if let Some(switch) = end.switch() {
                let counters = wires.switches[switch].counters(end.index);
                record.tx_bytes = counters.tx_bytes;
                record.tx_packets = counters.tx_packets;
                record.ecn_marks = counters.ecn_marks;
                record.max_queue_bytes = counters.max_queue_bytes;
                record.drops += counters.drops;
                self.cx.summary.ecn_marks += counters.ecn_marks;
            }
            self.cx.recorder.port(&record);
        }
    }
}

impl Sampler {
    /// The ports with a series.
    fn sample_ports(&mut self, wires: &Wires<'_>) -> Vec<PortSample> {
        let mut found = std::mem::take(&mut self.ports);
        found.clear();
        for series in &mut self.series {
            let end = &wires.ends[series.port];
            let mut sample = PortSample {
                id: series.port,
                node: end.node,
                port: end.number(),
                queue_bytes: 0,
                ingress_bytes: 0,
                paused: end.paused != 0,
                tx_bytes: wires.history[series.port].tx_bytes,
                ecn_marks: 0,
            };
            if let Some(switch) = end.switch() {
                let switch = &wires.switches[switch];
                let counters = switch.counters(end.index);
                (sample.tx_bytes, sample.ecn_marks) = (counters.tx_bytes, counters.ecn_marks);
                sample.queue_bytes = switch.queued_bytes(end.index);
                sample.ingress_bytes = switch.ingress_bytes(end.index);
            }
            sample.tx_bytes -= std::mem::replace(&mut series.tx_bytes, sample.tx_bytes);
            sample.ecn_marks -= std::mem::replace(&mut series.ecn_marks, sample.ecn_marks);
            let active = sample.tx_bytes | sample.queue_bytes | sample.ingress_bytes != 0;
            if active || sample.paused || !self.active_only {
                found.push(sample);
            }
        }
        found
    }
}

impl Engine<'_> {
    /// The last, partial interval; pauses and flows that have not ended; port counters.
    pub(super) fn record_rest(&mut self) {
        self.base.record_last_sample();
        for index in self.base.open_flows() {
            self.groups.record_missing(&mut self.base, index);
            self.base.record_flow(index, None);
        }
        self.rails.record_rest(&mut self.base);
        self.base.record_ports();
    }
}
