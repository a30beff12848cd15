//! Series over time, and what is recorded at the end of a run.

use raddle_fabric::Fabric;
use raddle_units::{Bytes, NodeId, PortId, Span, Time};

use super::Engine;
use crate::{
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
    watched: Vec<(NodeId, NodeId, u16, u64)>,
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
        dst: NodeId,
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

impl Engine<'_> {
    /// Takes all samples that are due up to `until`, with the state as it is now; false: the run is to stop meanwhile. (At
    /// low rates there are millions of samples between two events.)
    #[cold]
    pub(super) fn sample_until(&mut self, until: Time, progress: &Progress) -> bool {
        let mut taken = 0u64;
        while self.sampler.next <= until {
            self.sample(self.sampler.next);
            taken += 1;
            if taken.is_multiple_of(CHECK_EVERY) && !self.goes_on(self.sampler.next, progress) {
                self.now = self.sampler.next;
                return false;
            }
            self.sampler.next += self.sampler.interval;
        }
        true
    }

    fn sample(&mut self, time: Time) {
        let mut max_port_bytes = 0;
        for end in self.ends.iter().filter(|end| end.is_switch) {
            let queued = self.switches[end.device as usize].queued_bytes(end.index);
            max_port_bytes = max_port_bytes.max(queued);
        }
        let watched: Vec<_> = self
            .sampler
            .watched
            .iter()
            .filter(|flow| flow.3 > 0)
            .copied()
            .collect();
        let ports = self.sample_ports();
        self.recorder.sample(&Sample {
            time,
            delivered_by_class: &self.sampler.by_class,
            watched: &watched,
            buffered_bytes: self
                .switches
                .iter()
                .map(raddle_dataplane::Switch::buffered_bytes)
                .sum(),
            max_port_bytes,
            paused_ports: self.paused_ports,
            ports: &ports,
        });
        self.sampler.ports = ports;
        self.sampler.by_class.fill(0);
        for flow in &mut self.sampler.watched {
            flow.3 = 0;
        }
    }

    /// The ports with a series.
    fn sample_ports(&mut self) -> Vec<PortSample> {
        let mut found = std::mem::take(&mut self.sampler.ports);
        found.clear();
        for series in &mut self.sampler.series {
            let end = &self.ends[series.port.index()];
            let mut sample = PortSample {
                id: series.port,
                node: end.node,
                port: end.index + 1,
                queue_bytes: 0,
                ingress_bytes: 0,
                paused: end.paused != 0,
                tx_bytes: self.history[series.port.index()].tx_bytes,
                ecn_marks: 0,
            };
            if end.is_switch {
                let switch = &self.switches[end.device as usize];
                let counters = switch.counters(end.index);
                (sample.tx_bytes, sample.ecn_marks) = (counters.tx_bytes, counters.ecn_marks);
                sample.queue_bytes = switch.queued_bytes(end.index);
                sample.ingress_bytes = switch.ingress_bytes(end.index);
            }
            sample.tx_bytes -= std::mem::replace(&mut series.tx_bytes, sample.tx_bytes);
            sample.ecn_marks -= std::mem::replace(&mut series.ecn_marks, sample.ecn_marks);
            let active = sample.tx_bytes | sample.queue_bytes | sample.ingress_bytes != 0;
            if active || sample.paused || !self.sampler.active_only {
                found.push(sample);
            }
        }
        found
    }

    /// The last, partial interval; pauses and flows that have not ended; port counters.
    pub(super) fn record_rest(&mut self) {
        if self.sampler.next != Time::NEVER && self.now.0 > 0 {
            self.sample(self.now);
        }
        for port in (0..self.ends.len() as u32).map(PortId) {
            if self.ends[port.index()].paused != 0 {
                self.end_pause(port);
            }
        }
        let mut open: Vec<u32> = (0..self.flows.len() as u32)
            .filter(|&index| self.flows[index as usize].live)
            .collect();
        open.sort_by_key(|&index| {
            let flow = &self.flows[index as usize];
            (flow.start, flow.src, flow.dst, flow.sport)
        });
        for index in open {
            self.record_missing(index);
            self.record_flow(index, None);
        }
        self.record_rest_of_rails();
        for (end, history) in self.ends.iter().zip(&self.history) {
            let mut record = PortRecord {
                node: end.node,
                port: end.index + 1,
                peer: self.ends[end.peer.index()].node,
                rate: end.rate,
                tx_bytes: history.tx_bytes,
                tx_packets: history.tx_packets,
                ecn_marks: 0,
                max_queue_bytes: 0,
                pause: history.paused_total,
                drops: history.lost,
            };
            if end.is_switch {
                let counters = self.switches[end.device as usize].counters(end.index);
                record.tx_bytes = counters.tx_bytes;
                record.tx_packets = counters.tx_packets;
                record.ecn_marks = counters.ecn_marks;
                record.max_queue_bytes = counters.max_queue_bytes;
                record.drops += counters.drops;
                self.summary.ecn_marks += counters.ecn_marks;
            }
            self.recorder.port(&record);
        }
    }
}
