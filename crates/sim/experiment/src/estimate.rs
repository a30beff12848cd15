//! What a run will cost, counted from fabric and traffic; `measure` scales it by what the machine does.

use raddle_engine::{
    Network, RunConfig, can_have_tiles,
    footprint::{FLOW_BYTES, PACKET_BYTES, fixed_bytes},
};
use raddle_units::{Bytes, NodeId, Span, Time};
use raddle_workload::Workload;
use serde::Serialize;

// Times below are those of the machine in docs/results/performance.md; a measurement says how many times slower another one is.

/// A packet-hop where the run's state fits into a processor's caches, in seconds.
const HOP: f64 = 125e-9;
/// State of a run up to which that holds.
const CACHED_BYTES: f64 = 32e6;
/// By how much a packet-hop takes longer with each doubling of the state from there on: more of it comes from memory, and the
/// tables of pages do too. 8,192 hosts have 0.2 GB, 65,536 have 1.1 GB, 265,302 have 4.2 GB.
const PER_DOUBLING: f64 = 0.37;
/// The same where the run goes tile by tile.
const PER_DOUBLING_IN_TILES: f64 = 0.12;
/// The system gives a page of memory when it is touched first.
const PAGE: f64 = 2e-6;
const PAGE_BYTES: f64 = 4096.0;
/// A port of the fabric: when switches are set up, and in every sample.
const PORT: f64 = 0.8e-6;
const SAMPLED_PORT: f64 = 5e-9;
const SAMPLE: f64 = 0.2e-6;
/// A row of a table, written, joined with those of other runs and drawn; a sample has a few.
const ROW: f64 = 1.2e-6;
const SAMPLE_ROWS: f64 = 3.0;

/// State from which on a run is not measured by its beginning.
const LARGE_BYTES: f64 = 64e6;
/// Tables and buffers that every run has.
const RUN_BYTES: u64 = 16 << 20;

/// What a run will cost; nothing where it cannot be told beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// Link traversals of data packets and acknowledgements.
    pub packet_hops: Option<u64>,
    /// Seconds on one core.
    pub seconds: Option<f64>,
    /// Peak memory of the run, without the network, which runs share, and the process around it.
    pub memory_bytes: Option<u64>,
    /// Samples that it takes; a row in some tables each.
    pub samples: u64,
}

/// What estimates of a run start from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    packet_hops: Option<f64>,
    messages: Option<u64>,
    /// Packets under way at the fullest time.
    packets: u64,
    /// Flows at the same time.
    flows: u64,
    /// Memory before the first message.
    fixed_bytes: u64,
    /// Ports of the fabric.
    pub(super) ports: u64,
    /// By how much a packet-hop takes longer with each doubling of the state.
    per_doubling: f64,
    /// What the run lasts at least, in its own time.
    lasts: Span,
    sample_interval: Span,
}

/// The memory of a network that all runs of an experiment share.
pub(super) fn network_bytes(network: &Network) -> u64 {
    (network.fabric.memory_bytes() + network.tables.memory_bytes()) as u64
}

/// A part of a run, as it went.
pub(super) struct Part {
    pub(super) seconds: f64,
    pub(super) hops: u64,
    pub(super) samples: u64,
    /// Ports that were set up in it.
    pub(super) ports: u64,
}

impl Counts {
    /// Payload in full packets over the average path and the acknowledgements back. `last_start` is when the last message
    /// starts that does not wait for others, where that is known.
    pub(super) fn of(
        network: &Network,
        workload: &dyn Workload,
        config: &RunConfig,
        average_hops: f64,
        last_start: Option<Time>,
    ) -> Self {
        let (fabric, environment) = (&network.fabric, &network.environment);
        let messages = workload.expected_messages();
        // A run that is cut short does less, but how much less nobody knows.
        let payload = workload
            .expected_bytes()
            .filter(|_| config.end.is_none() && !workload.is_open_ended());
        let mtu = config.mtu.0.max(1);
        let count = messages.unwrap_or(0);
        let packet_hops = payload.map(|bytes| {
            // On average half of a message's last packet is empty.
            let packets = bytes.0 as f64 / mtu as f64 + count as f64 / 2.0;
            packets * average_hops * 2.0
        });
        let size = payload.map_or(0, |bytes| bytes.0 / count.max(1));
        let alone = environment.base_rtt + environment.line_rate.transmission_time(Bytes(size));
        let lasts = Span(last_start.unwrap_or_default().0).max(alone);
        let hosts = fabric.hosts().len() as u64;
        // Under load a flow takes several times as long as alone.
        let at_once = (alone.0 as f64 * 4.0 / lasts.0.max(1) as f64).min(1.0);
        let flows = ((count as f64 * at_once) as u64).max(hosts.min(count));
        // A host keeps about a message or a bandwidth-delay product under way.
        let of_host = size.min(environment.bdp.0) / mtu + 1;
        let ends = config.end.map(|end| Span(end.0));
        Self {
            packet_hops,
            messages,
            packets: hosts.min(count) * of_host,
            flows,
            fixed_bytes: fixed_bytes(fabric, config.data_classes),
            ports: fabric.port_count() as u64,
            per_doubling: if can_have_tiles(network, config, workload) {
                PER_DOUBLING_IN_TILES
            } else {
                PER_DOUBLING
            },
            lasts: ends.map_or(lasts, |end| end.min(lasts)),
            sample_interval: config.sample_interval,
        }
    }

    /// What the run takes on a machine that is `slower` so many times.
    pub(super) fn estimate(&self, slower: f64) -> Estimate {
        let state = self.state_bytes(self.packets);
        let touched = (RUN_BYTES + state) as f64;
        let flow_rows = self.messages.unwrap_or(0);
        let seconds = self.packet_hops.map(|hops| {
            let samples = self.samples();
            let rows = (self.ports + flow_rows) as f64 + samples * SAMPLE_ROWS;
            let work = hops * self.hop_seconds(state)
                + touched / PAGE_BYTES * PAGE
                + samples * self.sample_seconds()
                + self.ports as f64 * PORT
                + rows * ROW;
            work * slower
        });
        Estimate {
            packet_hops: self.packet_hops.map(|hops| hops as u64),
            seconds,
            memory_bytes: self.messages.map(|_| RUN_BYTES + state),
            samples: self.samples() as u64,
        }
    }

    fn state_bytes(&self, packets: u64) -> u64 {
        self.fixed_bytes + self.flows * FLOW_BYTES + packets * PACKET_BYTES
    }

    /// Large runs have together in memory what starts together; slow ones have samples and timers in the place of packets.
    pub(super) fn is_unlike_its_beginning(&self) -> bool {
        let of_hops = self.packet_hops.map_or(0.0, |hops| hops * HOP);
        let of_samples = self.samples() * (self.sample_seconds() + SAMPLE_ROWS * ROW);
        self.state_bytes(self.packets) as f64 > LARGE_BYTES || of_samples > of_hops
    }

    /// Seconds of a packet-hop where a run's state has so many bytes.
    fn hop_seconds(&self, state: u64) -> f64 {
        let doublings = libm::log2(state as f64 / CACHED_BYTES).max(0.0);
        HOP * (1.0 + self.per_doubling * doublings)
    }

    fn sample_seconds(&self) -> f64 {
        SAMPLE + self.ports as f64 * SAMPLED_PORT
    }

    fn samples(&self) -> f64 {
        match self.sample_interval {
            Span::ZERO => 0.0,
            interval => self.lasts.0 as f64 / interval.0 as f64,
        }
    }

    /// How many times slower than the constants say each of these parts of the run was. So many packets were under way at
    /// the fullest time of them.
    pub(super) fn slowness(&self, parts: &[Part], packets: u64) -> Vec<f64> {
        let pages = packets as f64 * PACKET_BYTES as f64 / PAGE_BYTES / parts.len().max(1) as f64;
        let hop = self.hop_seconds(self.state_bytes(packets));
        let expected = |part: &Part| {
            part.hops as f64 * hop
                + pages * PAGE
                + part.samples as f64 * self.sample_seconds()
                + part.ports as f64 * PORT
        };
        parts
            .iter()
            .map(|part| part.seconds / expected(part))
            .filter(|slower| slower.is_finite() && *slower > 0.0)
            .collect()
    }
}

/// Links between two hosts, on average over a sample of pairs.
pub(super) fn average_hops(network: &Network) -> f64 {
    const SAMPLE: usize = 48;
    let hosts = network.fabric.hosts();
    let step = hosts.len().div_ceil(SAMPLE).max(1);
    let sample: Vec<NodeId> = hosts.iter().copied().step_by(step).collect();
    let (mut pairs, mut links) = (0u64, 0u64);
    for &a in &sample {
        for &b in sample.iter().filter(|&&b| b != a) {
            pairs += 1;
            links += u64::from(network.tables.distance(&network.fabric, a, b).unwrap_or(0));
        }
    }
    links as f64 / pairs.max(1) as f64
}
