//! Samples: the state of the fabric at an instant and what happened since the last; port counters at the end.

use raddle_fabric::Fabric;
use raddle_units::{Bytes, NodeId, PortId, Span, Time};
use raddle_workload::Destination;
use serde::{Deserialize, Serialize};

use super::{context::Context, flow::FlowName, process::Base, wires::Wires};
use crate::{
    index::PortIndex,
    record::{FlowRecord, PauseRecord, PortRecord, PortSample, Recorder, Sample},
    setup::{PortSeries, RunConfig},
};

/// Flows with a series of their own.
const MAX_WATCHED: usize = 64;

/// A flow that is large enough for a series of its own.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Wanted {
    pub(super) start: Time,
    /// Among the flows of its host.
    pub(super) number: u32,
    pub(super) src: NodeId,
    pub(super) dst: Destination,
    pub(super) sport: u16,
    pub(super) name: FlowName,
}

impl Wanted {
    /// Whose turn it is first.
    pub(super) fn order(&self) -> (Time, NodeId, u32) {
        (self.start, self.src, self.number)
    }
}

/// Counts deliveries of a process between samples.
#[derive(Debug)]
pub(super) struct Sampler {
    by_class: Vec<u64>,
    /// Payload, by place in the list of watched flows.
    pub(super) watched: Vec<u64>,
    pub(super) wanted: Vec<Wanted>,
    /// What it has to say in the sample that is being taken.
    sums: Sums,
    series: Vec<Series>,
    /// Ports where nothing happened are left out of samples.
    active_only: bool,
}

/// A port with a series, and its counters at the last sample.
#[derive(Debug)]
struct Series {
    port: PortIndex,
    tx_bytes: u64,
    ecn_marks: u64,
}

impl Sampler {
    /// `nodes`: those of the process; `place`: where a port is among its ports.
    pub(super) fn new(
        config: &RunConfig,
        classes: usize,
        fabric: &Fabric,
        nodes: &[NodeId],
        place: impl Fn(PortId) -> PortIndex,
    ) -> Self {
        let series = |port| Series {
            port: place(port),
            tx_bytes: 0,
            ecn_marks: 0,
        };
        let ports_of = |node: &NodeId| {
            let first = fabric.first_port(*node).0;
            (first..first + fabric.ports_of(*node).len() as u32).map(PortId)
        };
        let (ports, active_only): (Vec<PortId>, bool) = match &config.port_series {
            PortSeries::None => (Vec::new(), false),
            PortSeries::Ports(ports) => {
                let own = |port: &&PortId| nodes.binary_search(&fabric.port(**port).node).is_ok();
                (ports.iter().filter(own).copied().collect(), false)
            }
            PortSeries::Busiest(_) => {
                let switches = nodes.iter().filter(|&&node| !fabric.is_host(node));
                (switches.flat_map(ports_of).collect(), true)
            }
        };
        Self {
            by_class: vec![0; classes],
            watched: Vec::new(),
            wanted: Vec::new(),
            sums: Sums::default(),
            series: ports.into_iter().map(series).collect(),
            active_only,
        }
    }

    /// Whether a flow is large enough for a series of its own, and places are left.
    pub(super) fn wants(&self, cx: &Context<'_>, size: Bytes) -> bool {
        size >= cx.config.watch_from && self.watched.len() < MAX_WATCHED
    }

    /// Notes a flow that wants a series; its place, where that is known at once.
    pub(super) fn watch(&mut self, cx: &Context<'_>, flow: Wanted) -> Option<u16> {
        self.wanted.push(flow);
        if !cx.serial {
            return None;
        }
        self.watched.push(0);
        Some((self.watched.len() - 1) as u16)
    }

    /// Payload has been delivered.
    #[inline]
    pub(super) fn delivered(&mut self, class: u8, watched: Option<u16>, payload: u64) {
        if let Some(bytes) = self.by_class.get_mut(usize::from(class)) {
            *bytes += payload;
        }
        if let Some(index) = watched {
            self.watched[usize::from(index)] += payload;
        }
    }

    /// Looks at the process's part of the fabric; its counts begin anew.
    fn sample(&mut self, wires: &Wires<'_>) {
        let sums = &mut self.sums;
        add_each(&mut sums.by_class, &mut self.by_class);
        add_each(&mut sums.watched, &mut self.watched);
        for switch in wires.switches.iter() {
            sums.max_port_bytes = sums.max_port_bytes.max(switch.longest_queue(&wires.memory));
            sums.buffered_bytes += switch.buffered_bytes();
        }
        sums.paused_ports += wires.paused_ports;
        self.sample_ports(wires);
    }

    /// Appends the ports with a series.
    fn sample_ports(&mut self, wires: &Wires<'_>) {
        for series in &mut self.series {
            let end = &wires.ends[series.port];
            let mut sample = PortSample {
                id: end.id,
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
                let counters = switch.counters(&wires.memory, end.index);
                (sample.tx_bytes, sample.ecn_marks) = (counters.tx_bytes, counters.ecn_marks);
                sample.queue_bytes = switch.queued_bytes(&wires.memory, end.index);
                sample.ingress_bytes = switch.ingress_bytes(&wires.memory, end.index);
            }
            sample.tx_bytes -= std::mem::replace(&mut series.tx_bytes, sample.tx_bytes);
            sample.ecn_marks -= std::mem::replace(&mut series.ecn_marks, sample.ecn_marks);
            let active = sample.tx_bytes | sample.queue_bytes | sample.ingress_bytes != 0;
            if active || sample.paused || !self.active_only {
                self.sums.ports.push(sample);
            }
        }
    }
}

/// Sums of a sample.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    by_class: Vec<u64>,
    watched: Vec<u64>,
    buffered_bytes: u64,
    max_port_bytes: u64,
    paused_ports: u64,
    ports: Vec<PortSample>,
}

impl Sums {
    /// Adds what others have said, who begin anew.
    pub(super) fn add(&mut self, others: &mut Self) {
        add_each(&mut self.by_class, &mut others.by_class);
        add_each(&mut self.watched, &mut others.watched);
        self.buffered_bytes += others.buffered_bytes;
        self.max_port_bytes = self.max_port_bytes.max(others.max_port_bytes);
        self.paused_ports += others.paused_ports;
        self.ports.append(&mut others.ports);
        others.forget();
    }

    /// Begins anew.
    fn forget(&mut self) {
        self.by_class.fill(0);
        self.watched.fill(0);
        (self.buffered_bytes, self.max_port_bytes, self.paused_ports) = (0, 0, 0);
        self.ports.clear();
    }
}

/// Adds counts to sums; they begin anew.
fn add_each(sums: &mut Vec<u64>, counts: &mut [u64]) {
    if sums.len() < counts.len() {
        sums.resize(counts.len(), 0);
    }
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += std::mem::take(count);
    }
}

/// One sample of all processes.
#[derive(Debug)]
pub(super) struct Sampling {
    pub(super) interval: Span,
    /// When the next one is due ([`Time::NEVER`]: none is wanted).
    pub(super) next: Time,
    /// Ports are told in the order of the settings, which is not that of the fabric.
    listed: Vec<PortId>,
    names: Vec<(NodeId, Destination, u16)>,
    pub(super) sums: Sums,
}

impl Sampling {
    pub(super) fn new(config: &RunConfig) -> Self {
        let interval = config.sample_interval;
        Self {
            interval,
            next: if interval == Span::ZERO {
                Time::NEVER
            } else {
                Time::ZERO + interval
            },
            listed: match &config.port_series {
                PortSeries::Ports(ports) => ports.clone(),
                _ => Vec::new(),
            },
            names: Vec::new(),
            sums: Sums::default(),
        }
    }

    /// Gives a flow a place in the list of watched ones if there is room.
    pub(super) fn watch(&mut self, flow: &Wanted) -> Option<u16> {
        if self.names.len() >= MAX_WATCHED {
            return None;
        }
        self.names.push((flow.src, flow.dst, flow.sport));
        Some((self.names.len() - 1) as u16)
    }

    /// Adds what one process has seen.
    pub(super) fn add(&mut self, base: &mut Base<'_>) {
        self.sums.add(&mut base.sampler.sums);
    }

    /// Tells what all processes have said and begins anew.
    pub(super) fn tell(&mut self, time: Time, recorder: &mut dyn Recorder) {
        let sums = &mut self.sums;
        let names = self.names.iter().zip(&sums.watched);
        let watched: Vec<_> = names
            .map(|(&(src, dst, sport), &bytes)| (src, dst, sport, bytes))
            .filter(|flow| flow.3 > 0)
            .collect();
        if self.listed.is_empty() {
            sums.ports.sort_by_key(|port| port.id);
        } else {
            let place = |port: &PortSample| self.listed.iter().position(|&id| id == port.id);
            sums.ports.sort_by_key(place);
        }
        recorder.sample(&Sample {
            time,
            delivered_by_class: &sums.by_class,
            watched: &watched,
            buffered_bytes: sums.buffered_bytes,
            max_port_bytes: sums.max_port_bytes,
            paused_ports: sums.paused_ports,
            ports: &sums.ports,
        });
        sums.forget();
    }
}

impl Base<'_> {
    /// Looks at this part of the fabric for the sample that is being taken.
    pub(super) fn sample(&mut self) {
        self.sampler.sample(&self.wires);
    }

    /// Ends the pauses that have not ended.
    pub(super) fn end_pauses(&mut self, now: Time, pauses: &mut Vec<PauseRecord>) {
        for port in self.wires.ends.places() {
            if self.wires.ends[port].paused != 0 {
                pauses.push(self.wires.end_pause(now, port));
            }
        }
    }

    /// Appends the flows that have not ended.
    pub(super) fn open_flows(&self, found: &mut Vec<(FlowName, FlowRecord)>) {
        let flows = &self.hosts.flows;
        let live = flows.places().filter(|&index| flows[index].live);
        found.extend(live.map(|index| (flows[index].name(index), flows[index].record(None))));
    }

    /// The counters of a node's ports.
    pub(super) fn record_ports(&mut self, node: NodeId, recorder: &mut dyn Recorder) {
        let wires = &self.wires;
        let first = self.cx.first_port(node).0;
        for port in self.cx.fabric.ports_of(node) {
            let own = PortIndex(first + u32::from(port.number) - 1);
            let (end, history) = (&wires.ends[own], &wires.history[own]);
            let mut record = PortRecord {
                node: end.node,
                port: end.number(),
                peer: self.cx.fabric.port(port.peer).node,
                rate: end.rate,
                tx_bytes: history.tx_bytes,
                tx_packets: history.tx_packets,
                ecn_marks: 0,
                max_queue_bytes: 0,
                pause: history.paused_total,
                drops: history.lost,
            };
            if let Some(switch) = end.switch() {
                let counters = wires.switches[switch].counters(&wires.memory, end.index);
                record.tx_bytes = counters.tx_bytes;
                record.tx_packets = counters.tx_packets;
                record.ecn_marks = counters.ecn_marks;
                record.max_queue_bytes = counters.max_queue_bytes;
                record.drops += counters.drops;
                self.cx.summary.ecn_marks += counters.ecn_marks;
            }
            recorder.port(&record);
        }
    }
}
