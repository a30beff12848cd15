//! What these tests share: small networks, a recorder that keeps everything, a source of reproducible numbers.

use std::sync::Arc;

use raddle_engine::{
    Network, Progress, Recorder, RunConfig, RunSummary, Semantics, SetupError,
    ranks::{Alone, Ranks},
    record::{
        AckRecord, DelayRecord, FlowRecord, Hop, MemberRecord, PathRecord, PauseRecord, PortRecord,
        PortSample, Sample, WayEnd,
    },
    simulate_in_ranks,
};
use raddle_fabric::{Fabric, FabricBuilder, LeafSpine};
use raddle_transport::cc::{SchemeParameters, SchemeSettings};
use raddle_units::{BitRate, Bytes, NodeId, Span, Time};
use raddle_workload::{Destination, FlowList, Message, Workload};

pub(crate) const SCHEMES: [&str; 7] = ["none", "dctcp", "dcqcn", "timely", "hpcc", "pint", "swift"];
pub(crate) const MTU: u64 = 1000;
/// Headers of a data packet of a scheme without telemetry, and its acknowledgement.
pub(crate) const HEADERS: u64 = 48;
pub(crate) const ACK: u64 = 60;

/// A sample that owns what it says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) time: Time,
    /// Payload delivered since the sample before, all classes.
    pub(crate) delivered: u64,
    /// The same by watched flow (source).
    pub(crate) watched: Vec<(NodeId, u64)>,
    pub(crate) buffered_bytes: u64,
    pub(crate) max_port_bytes: u64,
    pub(crate) paused_ports: u64,
    pub(crate) ports: Vec<PortSample>,
}

/// A way as it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordedWay {
    pub(crate) src: NodeId,
    pub(crate) dst: WayEnd,
    pub(crate) sport: Option<u16>,
    pub(crate) rail: u8,
    pub(crate) since: Time,
    pub(crate) hops: Vec<Hop>,
}

/// Everything that a run reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Log {
    pub(crate) flows: Vec<FlowRecord>,
    pub(crate) members: Vec<MemberRecord>,
    pub(crate) pauses: Vec<PauseRecord>,
    pub(crate) acks: Vec<AckRecord>,
    pub(crate) samples: Vec<Snapshot>,
    pub(crate) ports: Vec<PortRecord>,
    pub(crate) ways: Vec<RecordedWay>,
    pub(crate) delays: Vec<DelayRecord>,
}

impl Recorder for Log {
    fn flow(&mut self, flow: &FlowRecord) {
        self.flows.push(*flow);
    }
    fn member(&mut self, member: &MemberRecord) {
        self.members.push(*member);
    }
    fn pause(&mut self, pause: &PauseRecord) {
        self.pauses.push(*pause);
    }
    fn ack(&mut self, ack: &AckRecord) {
        self.acks.push(*ack);
    }
    fn delay(&mut self, delay: &DelayRecord) {
        self.delays.push(delay.clone());
    }
    fn sample(&mut self, sample: &Sample<'_>) {
        self.samples.push(Snapshot {
            time: sample.time,
            delivered: sample.delivered_by_class.iter().sum(),
            watched: sample.watched.iter().map(|flow| (flow.0, flow.3)).collect(),
            buffered_bytes: sample.buffered_bytes,
            max_port_bytes: sample.max_port_bytes,
            paused_ports: sample.paused_ports,
            ports: sample.ports.to_vec(),
        });
    }
    fn port(&mut self, port: &PortRecord) {
        self.ports.push(*port);
    }
    fn path(&mut self, path: &PathRecord<'_>) {
        self.ways.push(RecordedWay {
            src: path.src,
            dst: path.dst,
            sport: path.sport,
            rail: path.rail,
            since: path.since,
            hops: path.hops.to_vec(),
        });
    }
}

impl Log {
    /// The record of the flow from `src` (the first, if there are several).
    pub(crate) fn from(&self, src: NodeId) -> &FlowRecord {
        self.flows.iter().find(|flow| flow.src == src).unwrap()
    }

    /// The latest completion; all flows have finished.
    pub(crate) fn last_completion(&self) -> Time {
        let ends = self.flows.iter().map(|flow| flow.start + flow.fct.unwrap());
        ends.max().unwrap()
    }

    /// Payload that each of `sources` delivered from `after` on, by the series of watched flows.
    pub(crate) fn delivered_after(&self, after: Time, sources: &[NodeId]) -> Vec<u64> {
        let mut sums = vec![0; sources.len()];
        for snapshot in self.samples.iter().filter(|sample| sample.time > after) {
            for (src, bytes) in &snapshot.watched {
                if let Some(place) = sources.iter().position(|source| source == src) {
                    sums[place] += bytes;
                }
            }
        }
        sums
    }
}

/// A network in the default mode.
pub(crate) struct Lab {
    pub(crate) network: Network,
}

impl Lab {
    pub(crate) fn new(fabric: Fabric) -> Self {
        let network = Network::new(Arc::new(fabric), Semantics::CORRECTED, Bytes(MTU)).unwrap();
        Self { network }
    }

    pub(crate) fn hosts(&self) -> &[NodeId] {
        self.network.fabric.hosts()
    }

    pub(crate) fn scheme(&self, name: &str) -> SchemeParameters {
        self.scheme_with(name, &SchemeSettings::default())
    }

    pub(crate) fn scheme_with(&self, name: &str, settings: &SchemeSettings) -> SchemeParameters {
        settings.resolve(name, &self.network.environment).unwrap().0
    }

    /// The usual settings with a scheme's defaults, without samples.
    pub(crate) fn config(&self, scheme: &str) -> RunConfig {
        let line_rate = self.network.environment.line_rate;
        RunConfig {
            sample_interval: Span::ZERO,
            ..RunConfig::new(self.scheme(scheme), 1, line_rate)
        }
    }

    pub(crate) fn drive(
        &self,
        config: &RunConfig,
        workload: &mut dyn Workload,
    ) -> Result<(RunSummary, Log), SetupError> {
        let (summary, log) = self.drive_rank(config, workload, &mut Alone)?;
        check_accounts(&summary, &log);
        Ok((summary, log))
    }

    /// The same as one of several ranks: the summary and the log of rank 0 are the run's.
    pub(crate) fn drive_rank(
        &self,
        config: &RunConfig,
        workload: &mut dyn Workload,
        ranks: &mut dyn Ranks,
    ) -> Result<(RunSummary, Log), SetupError> {
        let mut log = Log::default();
        let progress = Progress::default();
        let network = &self.network;
        let summary = simulate_in_ranks(network, config, workload, &mut log, &progress, ranks)?;
        Ok((summary, log))
    }

    pub(crate) fn run(&self, config: &RunConfig, messages: &[Message]) -> (RunSummary, Log) {
        let mut flows = FlowList::new(messages.to_vec(), vec!["flow".to_owned()]);
        self.drive(config, &mut flows).unwrap()
    }

    /// The smallest buffer that all switches accept: reserves, headroom and one packet.
    pub(crate) fn smallest_buffer(&self, config: &RunConfig) -> Bytes {
        let mut config = config.clone();
        config.buffer = Bytes(0);
        // Each refusal names what one switch needs.
        while let Err(SetupError::BufferTooSmall { reserved, .. }) =
            self.drive(&config, &mut FlowList::new(Vec::new(), Vec::new()))
        {
            config.buffer = reserved;
        }
        config.buffer
    }
}

/// What holds for every run whatever: no byte appears or vanishes, no flow is recorded twice.
///
/// Queues cannot be negative unnoticed: all counters are unsigned and tests run with overflow checks.
fn check_accounts(summary: &RunSummary, log: &Log) {
    assert_eq!(
        summary.payload_sent + summary.payload_copied,
        summary.payload_delivered + summary.payload_discarded + summary.payload_in_flight,
        "bytes sent and copied = delivered + discarded + in flight: {summary:?}"
    );
    assert_eq!(
        log.flows.len() as u64,
        summary.flows_started,
        "one record per flow"
    );
    let finished = log.flows.iter().filter(|flow| flow.fct.is_some()).count();
    assert_eq!(finished as u64, summary.flows_finished);
    let mut tags: Vec<u64> = log.flows.iter().map(|flow| flow.tag).collect();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), log.flows.len(), "a flow is recorded once");
    let dropped: u64 = log.ports.iter().map(|port| port.drops).sum();
    assert_eq!(dropped, summary.drops, "every drop happened at a port");
    let mut members: Vec<_> = log.members.iter().map(|it| (it.tag, it.member)).collect();
    members.sort_unstable();
    members.dedup();
    assert_eq!(
        members.len(),
        log.members.len(),
        "a member is recorded once per message"
    );
    let reached = log
        .members
        .iter()
        .filter(|it| it.delivered.is_some())
        .count() as u64;
    assert_eq!(reached, summary.members_reached);
    assert_eq!(members.len() as u64 - reached, summary.members_missed);
    for pause in &log.pauses {
        assert!(
            pause.start <= pause.end && pause.end.0 <= summary.end_ps,
            "{pause:?}"
        );
    }
}

pub(crate) fn message(
    start: Time,
    src: NodeId,
    dst: impl Into<Destination>,
    bytes: u64,
) -> Message {
    Message {
        start,
        src,
        dst: dst.into(),
        size: Bytes(bytes),
        class: 0,
        priority: 3,
        tag: 0,
    }
}

/// Hosts around one switch, each with its own link. Hosts are nodes 0, 1, …; the switch comes last.
pub(crate) fn star(links: &[(BitRate, Span)]) -> Fabric {
    let mut builder = FabricBuilder::new("star");
    let hosts: Vec<_> = links.iter().map(|_| builder.host()).collect();
    let switch = builder.switch(1);
    for (host, &(rate, delay)) in hosts.iter().zip(links) {
        builder.connect(*host, switch, rate, delay);
    }
    builder.finish().unwrap()
}

/// Two leaves and two spines; host 0 is on leaf 0, host 2 on leaf 1.
pub(crate) fn leaf_spine() -> Lab {
    let spec = LeafSpine {
        leaves: 2,
        spines: 2,
        hosts_per_leaf: 2,
        links_per_spine: 1,
        host_rate: BitRate::from_gbps(100),
        fabric_rate: BitRate::from_gbps(100),
        delay: Span::from_us(1),
        radix: None,
    };
    Lab::new(spec.build().unwrap())
}

/// Payload and headers of a message on the wire, with `header` bytes per packet.
pub(crate) fn wire_bytes(size: u64, header: u64) -> u64 {
    size + size.div_ceil(MTU) * header
}

/// Reproducible draws (SplitMix64).
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Uniform in (0, 1].
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}
