//! What a run needs, as data: the network it runs on and its settings.

use std::sync::{Arc, Mutex};

use raddle_fabric::Fabric;
use raddle_transport::cc::{Environment, SchemeParameters};
use raddle_unicast::{LinkState, PathChoice, RoutingError, UnicastTables};
use raddle_units::{BitRate, Bytes, LinkId, NodeId, PortId, Span, Time, many};
use serde::{Deserialize, Serialize};

use crate::{
    buffers::Buffers, chance::MarkReplay, effort::Effort, host_rails::Rails, multicast::Multicast,
    offload::Offload, record::MemberRecord, semantics::Semantics,
};

/// A fabric with its routes and the figures derived from them; shared by all runs of an experiment.
#[derive(Debug)]
pub struct Network {
    /// The map.
    pub fabric: Arc<Fabric>,
    /// Unicast routes with all links up.
    pub tables: Arc<UnicastTables>,
    /// Semantics that the routes were computed for.
    pub semantics: Semantics,
    /// What congestion-control defaults scale with.
    pub environment: Environment,
}

/// Why a network cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Routes cannot be computed.
    #[error(transparent)]
    Routing(#[from] RoutingError),
    /// Fewer than two hosts.
    #[error("the fabric has {}: traffic needs at least two", many(*.hosts, "host"))]
    TooFewHosts {
        /// Hosts found.
        hosts: usize,
    },
    /// More distinct link rates than hop records have codes for.
    #[error(
        "scheme `{scheme}` needs telemetry, which has codes for 8 link rates, but the fabric has {rates}"
    )]
    TooManyLinkRates {
        /// The scheme.
        scheme: &'static str,
        /// Distinct rates of the fabric.
        rates: usize,
    },
    /// More switches on a path than hop records fit into a packet.
    #[error("scheme `{scheme}` needs telemetry of {hops} switches, but a packet carries {max}")]
    TooManyHops {
        /// The scheme.
        scheme: &'static str,
        /// Switches on the longest path.
        hops: usize,
        /// Records a packet carries.
        max: usize,
    },
    /// A switch cannot reserve its headroom.
    #[error(
        "buffer {buffer} is too small for {node}, whose {} reserve {reserved}: use a larger `buffer`",
        many(*.ports, "port")
    )]
    BufferTooSmall {
        /// The switch.
        node: String,
        /// Its ports.
        ports: usize,
        /// Buffer given.
        buffer: Bytes,
        /// Buffer needed before any packet is shared.
        reserved: Bytes,
    },
    /// A port into which no packet fits.
    #[error(
        "port {port} of {node} has no room for a packet of {packet} even while it is empty: use a larger `buffer`, threshold or reserve"
    )]
    NoRoom {
        /// The switch.
        node: String,
        /// Its port, from 1.
        port: usize,
        /// Bytes of a full packet.
        packet: Bytes,
    },
    /// Multicast groups that the network cannot carry.
    #[error("multicast {group}: {problem}")]
    Group {
        /// The group's place in the list.
        group: u32,
        /// What is wrong, and the way out.
        problem: String,
    },
    /// A group of an in-network reduction that the network cannot carry.
    #[error("reduction group {group}: {problem}")]
    Offload {
        /// The group's place in the list.
        group: u32,
        /// What is wrong.
        problem: String,
    },
    /// A round of an in-network reduction that cannot begin.
    #[error("message {tag} is a round of reduction member {member}, {problem}")]
    OffloadRound {
        /// The message.
        tag: u64,
        /// The member, counted through all groups.
        member: u32,
        /// What is wrong.
        problem: &'static str,
    },
    /// A run that has one process for all, which ranks cannot share.
    #[error("this run cannot be shared out over ranks: {why}; without ranks it can be simulated")]
    Undivided {
        /// What keeps it together.
        why: &'static str,
    },
    /// More ranks than the fabric has switches to share out.
    #[error("{ranks} ranks are too many: this fabric can be shared out over {processes}")]
    TooManyRanks {
        /// Ranks there are.
        ranks: usize,
        /// Parts into which the fabric is cut.
        processes: usize,
    },
    /// Another rank cannot be reached any more.
    #[error("the ranks of the run have lost each other: {problem}")]
    Rank {
        /// What the transport said.
        problem: String,
    },
    /// Another rank has ended the run.
    #[error("{problem}")]
    Elsewhere {
        /// Its error.
        problem: String,
    },
    /// Settings of rails that contradict themselves.
    #[error("rails: {problem}")]
    Rails {
        /// What is wrong.
        problem: &'static str,
    },
    /// A message that no rails carry.
    #[error("message {tag} from {src} to {dst} over rails: {problem}")]
    RailMessage {
        /// The message.
        tag: u64,
        /// Its sender.
        src: NodeId,
        /// Where it is for.
        dst: NodeId,
        /// What is wrong.
        problem: String,
    },
    /// A message to a group that is not there, or from a host that is not in it.
    #[error("message {tag} from {src} goes to multicast group {group}, {problem}")]
    GroupMessage {
        /// The message.
        tag: u64,
        /// Its sender.
        src: NodeId,
        /// The group's place in the list.
        group: u32,
        /// What is wrong.
        problem: &'static str,
    },
}

/// A link that fails and may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkFault {
    /// The link.
    pub link: LinkId,
    /// When it fails.
    pub down: Time,
    /// When it returns; `None`: never.
    pub up: Option<Time>,
}

/// Ports whose queues are part of every sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PortSeries {
    /// None.
    #[default]
    None,
    /// These, each in every sample.
    Ports(Vec<PortId>),
    /// The ports of switches with the longest queues on average, so many of them. Who they are is known at the end: samples
    /// have all ports of switches where anything happened, and the [`crate::Recorder`] chooses.
    Busiest(u32),
}

/// How a run's fabric is cut into processes. No result depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partition {
    /// As serves the threads.
    #[default]
    Automatic,
    /// Into so many, neighbours together.
    Parts(u16),
    /// Into so many, each node in any of them: a test.
    Random {
        /// Processes.
        parts: u16,
        /// Of the choice.
        seed: u64,
    },
}

/// Settings of one run.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// Congestion control.
    pub scheme: SchemeParameters,
    /// Seed of all randomness in the run (ECN marks, PINT).
    pub seed: u64,
    /// Threads that the run may use, 1 at least. They change its time and nothing else.
    pub threads: usize,
    /// How the fabric is cut for them.
    pub partition: Partition,
    /// Where to count how much several threads can do at the same time.
    pub effort: Option<Arc<Mutex<Effort>>>,
    /// Payload bytes of a full packet.
    pub mtu: Bytes,
    /// Shared buffer of each switch.
    pub buffer: Bytes,
    /// How it is shared out.
    pub buffers: Buffers,
    /// PFC (true), or drop where the buffer refuses (false).
    pub lossless: bool,
    /// Data classes (1 to 6), each paused on its own; a message's priority `p` travels in class `min(p, classes - 1)`, with
    /// one class everything shares it.
    pub data_classes: u8,
    /// How flows choose among equal-cost paths.
    pub path_choice: PathChoice,
    /// Flows leave a host that has several links by its first one, and their acknowledgements come back by it.
    pub one_link: bool,
    /// Least time between the starts of two data packets of a network card (LogGP's gap g), plus
    /// `nic_gap_per_byte` for every byte of the first; zero: the link alone limits them.
    pub nic_gap: Span,
    /// See [`Self::nic_gap`].
    pub nic_gap_per_byte: Span,
    /// A network card sends messages one after the other, first come, first served, instead of their packets in turn.
    pub nic_in_order: bool,
    /// Lowest rate congestion control may choose.
    pub min_rate: BitRate,
    /// Time without progress after which a sender goes back (not in compat mode).
    pub retransmission_timeout: Span,
    /// Timeouts in a row after which a flow gives up.
    pub max_timeouts: u32,
    /// Links that fail.
    pub faults: Vec<LinkFault>,
    /// Time from a link's failure or return until routes follow.
    pub reroute_delay: Span,
    /// End of the run even if flows are left.
    pub end: Option<Time>,
    /// Distance of samples.
    pub sample_interval: Span,
    /// Flows of at least this size get a throughput series of their own (the first 64).
    pub watch_from: Bytes,
    /// Report every acknowledgement.
    pub record_acks: bool,
    /// Report what keeps those messages between hosts that are flows and whose class is below this: see [`crate::blame`].
    pub record_delays: Option<u16>,
    /// Report every packet that a member of an in-network reduction sends or gets.
    pub record_reductions: bool,
    /// Report when hosts' rails come and go.
    pub record_rails: bool,
    /// Report the way of every flow.
    pub record_paths: bool,
    /// Ports whose queues are part of every sample.
    pub port_series: PortSeries,
    /// ECN marks to replay instead of drawing them.
    pub marks: Option<Arc<MarkReplay>>,
    /// Groups and multicast tables; without them no message goes to a group.
    pub multicast: Option<Arc<Multicast>>,
    /// In-network reductions; without them no message is a round of one.
    pub offload: Option<Arc<Offload>>,
    /// Messages between hosts go over rails instead of being flows; their ideal times are those of a flow over one rail.
    pub rails: Option<Arc<Rails>>,
}

impl RunConfig {
    /// The usual settings: 1000 B payload, PFC, ECMP, a minimum rate of a hundredth of `line_rate`, 20 ms timeout.
    pub fn new(scheme: SchemeParameters, seed: u64, line_rate: BitRate) -> Self {
        Self {
            scheme,
            seed,
            threads: 1,
            partition: Partition::Automatic,
            effort: None,
            mtu: Bytes(1000),
            buffer: Bytes::from_mib(32),
            buffers: Buffers::default(),
            lossless: true,
            data_classes: 1,
            path_choice: PathChoice::EcmpMurmur3,
            one_link: false,
            nic_gap: Span::ZERO,
            nic_gap_per_byte: Span::ZERO,
            nic_in_order: false,
            min_rate: BitRate((line_rate.0 / 100).max(1)),
            retransmission_timeout: Span::from_ms(20),
            max_timeouts: 7,
            faults: Vec::new(),
            reroute_delay: Span::from_us(50),
            end: None,
            sample_interval: Span::from_us(10),
            watch_from: Bytes(1_000_000),
            record_acks: false,
            record_delays: None,
            record_reductions: false,
            record_rails: false,
            record_paths: false,
            port_series: PortSeries::None,
            marks: None,
            multicast: None,
            offload: None,
            rails: None,
        }
    }
}

impl Network {
    /// Computes routes and base figures.
    ///
    /// # Errors
    /// [`SetupError`] when routes do not exist or there are fewer than two hosts.
    pub fn new(fabric: Arc<Fabric>, semantics: Semantics, mtu: Bytes) -> Result<Self, SetupError> {
        if fabric.hosts().len() < 2 {
            return Err(SetupError::TooFewHosts {
                hosts: fabric.hosts().len(),
            });
        }
        let tables =
            UnicastTables::compute(&fabric, &LinkState::all_up(&fabric), semantics.next_hops)?;
        let environment = crate::paths::environment(&fabric, &tables, &semantics, mtu);
        Ok(Self {
            fabric,
            tables: Arc::new(tables),
            semantics,
            environment,
        })
    }
}

/// What a run was, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Completed link traversals of data packets and acknowledgements.
    pub packet_hops: u64,
    /// Events handled.
    pub events: u64,
    /// Flows started.
    pub flows_started: u64,
    /// Flows finished.
    pub flows_finished: u64,
    /// Payload bytes handed to NICs, retransmissions included.
    pub payload_sent: u64,
    /// Payload bytes of the copies that switches made of packets to groups, beside the packet that came in.
    pub payload_copied: u64,
    /// Payload bytes accepted in order by receivers.
    pub payload_delivered: u64,
    /// Payload bytes of dropped packets and of packets that receivers refused (duplicates, gaps, second copies, packets of
    /// groups they are not in).
    pub payload_discarded: u64,
    /// Payload bytes in queues and on links when the run ended.
    pub payload_in_flight: u64,
    /// Data packets and acknowledgements dropped (full buffer, failed link).
    pub drops: u64,
    /// Packets marked (ECN).
    pub ecn_marks: u64,
    /// PAUSE frames received.
    pub pauses: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// NACKs received.
    pub nacks: u64,
    /// Members that received a message to their group in full, over all messages.
    pub members_reached: u64,
    /// Members that did not: given up by the sender, or not reached when the run ended.
    pub members_missed: u64,
    /// Second copies that members dropped (fault tolerance).
    pub second_copies: u64,
    /// Packets that reached hosts outside their group, which shares its tree with others.
    pub foreign_copies: u64,
    /// Packets to groups that came after their message was over: second copies, and packets on their way to hosts outside the
    /// group.
    pub late_copies: u64,
    /// Packets to groups that ended in a switch whose table has no port for them: a tree with a stem above its last branch, or
    /// an entry that is missing. Their payload counts as discarded.
    pub dead_ends: u64,
    /// Rounds of in-network reductions that ended at a member with the right result.
    pub reductions: u64,
    /// The same with a wrong one: always 0, or the core is at fault.
    pub wrong_reductions: u64,
    /// Segments of messages over rails that were sent again.
    pub segments_resent: u64,
    /// Packets on their way at once, at most, as seen at the ends of windows.
    pub most_packets: u64,
    /// Simulated picoseconds until the last event.
    pub end_ps: u64,
    /// The run was cancelled before its end.
    pub cancelled: bool,
}

impl RunSummary {
    /// A message has reached a member of its group, or will not.
    pub(crate) const fn count_member(&mut self, record: &MemberRecord) {
        if record.delivered.is_some() {
            self.members_reached += 1;
        } else {
            self.members_missed += 1;
        }
    }

    /// Adds what another process has counted. What the run itself knows stays: the most packets, the end, cancellation.
    pub(crate) const fn add(&mut self, other: &Self) {
        self.packet_hops += other.packet_hops;
        self.events += other.events;
        self.flows_started += other.flows_started;
        self.flows_finished += other.flows_finished;
        self.payload_sent += other.payload_sent;
        self.payload_copied += other.payload_copied;
        self.payload_delivered += other.payload_delivered;
        self.payload_discarded += other.payload_discarded;
        self.payload_in_flight += other.payload_in_flight;
        self.drops += other.drops;
        self.ecn_marks += other.ecn_marks;
        self.pauses += other.pauses;
        self.timeouts += other.timeouts;
        self.nacks += other.nacks;
        self.members_reached += other.members_reached;
        self.members_missed += other.members_missed;
        self.second_copies += other.second_copies;
        self.foreign_copies += other.foreign_copies;
        self.late_copies += other.late_copies;
        self.dead_ends += other.dead_ends;
        self.reductions += other.reductions;
        self.wrong_reductions += other.wrong_reductions;
        self.segments_resent += other.segments_resent;
    }
}
