//! The HPC mix of Sun et al.: tested flows between a fifth of the hosts, background flows between the others.
//!
//! The paper gives counts and sizes (its Table 2), not code. What is not written there was read from a sample of such
//! traffic and is stated at the fields: the 5 ms window, Allreduce as a gather followed by a scatter, the fan-in of 16.

use std::collections::VecDeque;

use raddle_units::{Bytes, NodeId, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Made, check_hosts, check_starts, message};
use raddle_random::Random;

use crate::samplers::{Multiset, SortedUniform};
use crate::{Expected, Message, Streamed, TrafficError, Workload, limits};

/// The classes of the mix, in order of index.
pub const HPC_MIX_CLASSES: [&str; 6] = [
    "tested-long",
    "tested-short",
    "tested-allreduce",
    "background-incast",
    "background-broadcast",
    "background-alltoall",
];

/// The fields that say how many events the classes have.
const COUNTS: [&str; 6] = [
    "long_flows",
    "short_flows",
    "allreduce_operations",
    "incast_events",
    "broadcast_events",
    "alltoall_groups",
];
/// The counts of the paper's Table 2 belong to this many hosts...
const PAPER_HOSTS: u128 = 320;
/// ... and, as we read it, to a load factor of 60 %.
const PAPER_LOAD_PERMILLE: u128 = 600;
const PAPER_LONG: u64 = 64;
const PAPER_SHORT: u64 = 1281;
/// 1,120 flows: 80 operations of 7 flows to a server and 7 back.
const PAPER_ALLREDUCE: u64 = 80;
/// 8,256 flows in events of 16, twice.
const PAPER_INCAST: u64 = 516;
const PAPER_BROADCAST: u64 = 516;
/// 204 flows: 17 groups of 4 with 12 flows each.
const PAPER_ALLTOALL: u64 = 17;

const SPLIT_STREAM: u64 = 0;
/// Component `i` uses stream `FIRST_COMPONENT_STREAM + i`.
const FIRST_COMPONENT_STREAM: u64 = 1;
/// Tags: component in the high bits, number within it in the low ones, so that the isolated twin has the same tags.
const TAG_SHIFT: u32 = 48;

/// The HPC traffic mix of Sun et al.: tested long, short and Allreduce flows, and background incast, broadcast and
/// all-to-all. 320 hosts give exactly 19,181 flows for every seed; counts grow with the number of hosts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HpcMix {
    /// Share of the hosts that make tested flows; the others make background flows. Default 0.2.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub tested_share: f64,
    /// Amount of background: 0.6 gives the counts of the paper's Table 2, 0.3 half and 0.9 one and a half times as
    /// many events (the paper names 30, 60 and 90 %, but not which one its Table 2 has).
    #[schemars(range(min = 0, max = 10))]
    pub load_factor: f64,
    /// Whether there is background traffic at all; `false` is the isolated twin. Default true.
    pub background: bool,
    /// Time in which everything starts, uniformly at random. Default 5ms.
    #[schemars(transform = limits::start())]
    pub window: Span,
    /// Start of the window. Default 0.
    #[schemars(transform = limits::start())]
    pub start: Span,
    /// Size of a tested long flow. Default 10MB.
    #[schemars(transform = limits::size())]
    pub long_size: Bytes,
    /// Size of short, Allreduce, incast and broadcast flows. Default 64KiB.
    #[schemars(transform = limits::size())]
    pub short_size: Bytes,
    /// Size of a background all-to-all flow. Default 5.52MB.
    #[schemars(transform = limits::size())]
    pub alltoall_size: Bytes,
    /// Servers that one server exchanges with in an Allreduce; fewer if there are not so many tested hosts. Default 7.
    #[schemars(range(min = 1))]
    pub allreduce_peers: u32,
    /// Time from the start of the flows towards that server to the start of those back. Default 50us.
    #[schemars(transform = limits::start())]
    pub allreduce_gap: Span,
    /// Sources of an incast and destinations of a broadcast; fewer if there are not so many hosts. Default 16.
    #[schemars(range(min = 1))]
    pub fan: u32,
    /// Hosts that exchange in one all-to-all; fewer if there are not so many. Default 4.
    #[schemars(range(min = 2, max = 1024))]
    pub alltoall_group: u32,
    /// Tested long flows. Default: 64 per 320 hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000_000))]
    pub long_flows: Option<u64>,
    /// Tested short flows. Default: 1,281 per 320 hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000_000))]
    pub short_flows: Option<u64>,
    /// Allreduce operations (14 flows each by default). Default: 80 per 320 hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000_000))]
    pub allreduce_operations: Option<u64>,
    /// Incast events (16 flows each by default). Default: 516 per 320 hosts at load factor 0.6.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000_000))]
    pub incast_events: Option<u64>,
    /// Broadcast events (16 flows each by default). Default: 516 per 320 hosts at load factor 0.6.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000_000))]
    pub broadcast_events: Option<u64>,
    /// All-to-all groups (12 flows each by default). Default: 17 per 320 hosts at load factor 0.6.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000_000))]
    pub alltoall_groups: Option<u64>,
}

impl Default for HpcMix {
    fn default() -> Self {
        Self {
            tested_share: 0.2,
            load_factor: 0.6,
            background: true,
            window: Span::from_ms(5),
            start: Span::ZERO,
            long_size: Bytes(10_000_000),
            short_size: Bytes(65_536),
            alltoall_size: Bytes(5_520_000),
            allreduce_peers: 7,
            allreduce_gap: Span::from_us(50),
            fan: 16,
            alltoall_group: 4,
            long_flows: None,
            short_flows: None,
            allreduce_operations: None,
            incast_events: None,
            broadcast_events: None,
            alltoall_groups: None,
        }
    }
}

impl HpcMix {
    /// The same tested flows without the background.
    pub fn isolated(&self) -> Self {
        Self {
            background: false,
            ..self.clone()
        }
    }

    /// The random split of `hosts`: tested and background, both ascending.
    ///
    /// # Errors
    /// Fewer than two tested or background hosts.
    pub fn split(
        &self,
        hosts: &[NodeId],
        seed: u64,
    ) -> Result<(Vec<NodeId>, Vec<NodeId>), TrafficError> {
        limits::check(self)?;
        check_hosts(hosts, 4, "(two tested, two for the background)")?;
        let wanted = libm::round(hosts.len() as f64 * self.tested_share) as usize;
        let tested = wanted.clamp(2, hosts.len() - 2);
        let mut order = hosts.to_vec();
        order.sort_unstable();
        Random::new(seed, SPLIT_STREAM).shuffle(&mut order);
        let mut background = order.split_off(tested);
        order.sort_unstable();
        background.sort_unstable();
        Ok((order, background))
    }

    /// The flows, in order of start; memory grows with the hosts, not with the flows.
    ///
    /// # Errors
    /// A field out of range, or too few hosts.
    pub fn build(
        &self,
        hosts: &[NodeId],
        seed: u64,
    ) -> Result<impl Workload + use<>, TrafficError> {
        let last_start = self.check()?;
        let (tested, background) = self.split(hosts, seed)?;
        let counts = self.counts(hosts.len());
        let mut components = Vec::new();
        let (mut messages, mut bytes) = (0, 0u64);
        for (class, &events) in counts.iter().enumerate() {
            let is_background = class >= 3;
            if is_background && !self.background {
                continue;
            }
            let group = if is_background { &background } else { &tested };
            let component = Component::new(self, class, events, group, seed);
            let flows = events * component.flows_per_event();
            messages += flows;
            let Bytes(own) = limits::sum(COUNTS[class], flows, component.size)?;
            bytes = own.checked_add(bytes).ok_or_else(|| {
                let problem = "all flows are more than 2^64 bytes together";
                TrafficError::spec(COUNTS[class], problem)
            })?;
            components.push(component);
        }
        let classes = HPC_MIX_CLASSES.map(str::to_owned).to_vec();
        Ok(Streamed::new(
            Mix { components },
            classes,
            Expected {
                messages: Some(messages),
                bytes: Some(Bytes(bytes)),
                last_start: Some(last_start),
            },
        ))
    }

    /// When the last flow may start.
    fn check(&self) -> Result<Time, TrafficError> {
        limits::check(self)?;
        // Each is a day at most, so that the sum fits.
        let last = self.start.0 + self.window.0 + self.allreduce_gap.0;
        check_starts("window", last, 0, 1)
    }

    /// Events per class for this many hosts.
    fn counts(&self, hosts: usize) -> [u64; 6] {
        // Permille keep the arithmetic in integers, so that 0.6 gives the paper's counts exactly.
        let load = libm::round(self.load_factor * 1000.0) as u128;
        let scaled = |paper: u64, permille: u128| {
            let whole = PAPER_HOSTS * PAPER_LOAD_PERMILLE;
            ((u128::from(paper) * hosts as u128 * permille * 2 + whole) / (2 * whole)) as u64
        };
        let tested =
            |set: Option<u64>, paper| set.unwrap_or_else(|| scaled(paper, PAPER_LOAD_PERMILLE));
        let background = |set: Option<u64>, paper| set.unwrap_or_else(|| scaled(paper, load));
        [
            tested(self.long_flows, PAPER_LONG),
            tested(self.short_flows, PAPER_SHORT),
            tested(self.allreduce_operations, PAPER_ALLREDUCE),
            background(self.incast_events, PAPER_INCAST),
            background(self.broadcast_events, PAPER_BROADCAST),
            background(self.alltoall_groups, PAPER_ALLTOALL),
        ]
    }
}

/// All components, merged by time; equal times in order of class.
struct Mix {
    components: Vec<Component>,
}

impl Iterator for Mix {
    type Item = Made;

    fn next(&mut self) -> Option<Made> {
        let (_, earliest) = self
            .components
            .iter_mut()
            .filter_map(|component| Some((component.head()?.start, component)))
            .min_by_key(|&(start, _)| start)?;
        earliest.queue.pop_front().map(Ok)
    }
}

/// What one event of a component looks like.
#[derive(Clone, Copy)]
enum Shape {
    /// One flow to a random other host; every host is a source equally often.
    Pair,
    /// `peers` flows to one host, and after the gap `peers` back. Every host takes part equally often.
    GatherScatter { peers: usize },
    /// `fan` flows to one host.
    Gather { fan: usize },
    /// `fan` flows from one host.
    Scatter { fan: usize },
    /// A flow for every ordered pair of a group.
    Exchange { group: usize },
}

/// The flows of one class.
struct Component {
    class: u8,
    shape: Shape,
    size: Bytes,
    window: (Span, Span),
    gap: Span,
    hosts: Vec<NodeId>,
    times: SortedUniform,
    /// Start of the next event that is not yet in the queue.
    upcoming: Option<Time>,
    sources: Multiset,
    /// For `GatherScatter`: hosts from here on have not had their turn in this round.
    turn: usize,
    /// Flows of events that have begun, by time.
    queue: VecDeque<Message>,
    /// Scatter phases to come, by time (the gap is the same for all).
    later: VecDeque<Message>,
    random: Random,
    made: u64,
}

impl Component {
    fn new(mix: &HpcMix, class: usize, events: u64, hosts: &[NodeId], seed: u64) -> Self {
        let mut random = Random::new(seed, FIRST_COMPONENT_STREAM + class as u64);
        let others = hosts.len() - 1;
        let fan = others.min(mix.fan as usize);
        let (shape, size) = match class {
            0 => (Shape::Pair, mix.long_size),
            1 => (Shape::Pair, mix.short_size),
            2 => {
                let peers = others.min(mix.allreduce_peers as usize);
                (Shape::GatherScatter { peers }, mix.short_size)
            }
            3 => (Shape::Gather { fan }, mix.short_size),
            4 => (Shape::Scatter { fan }, mix.short_size),
            _ => {
                let group = hosts.len().min(mix.alltoall_group as usize);
                (Shape::Exchange { group }, mix.alltoall_size)
            }
        };
        let sources = match shape {
            Shape::Pair => Multiset::even(hosts.len(), events, &mut random),
            _ => Multiset::even(1, 0, &mut random),
        };
        let mut component = Self {
            class: class as u8,
            shape,
            size,
            window: (mix.start, mix.window),
            gap: mix.allreduce_gap,
            turn: hosts.len(),
            hosts: hosts.to_vec(),
            times: SortedUniform::new(events),
            upcoming: None,
            sources,
            queue: VecDeque::new(),
            later: VecDeque::new(),
            random,
            made: 0,
        };
        component.draw_time();
        component
    }

    fn flows_per_event(&self) -> u64 {
        let flows = match self.shape {
            Shape::Pair => 1,
            Shape::GatherScatter { peers } => 2 * peers,
            Shape::Gather { fan } | Shape::Scatter { fan } => fan,
            Shape::Exchange { group } => group * (group - 1),
        };
        flows as u64
    }

    /// Whole nanoseconds, as in flow files of the reference format.
    fn draw_time(&mut self) {
        const PS_PER_NS: u64 = 1000;
        let (start, window) = self.window;
        self.upcoming = self.times.next(&mut self.random).map(|at| {
            let ps = start.0 + (at * window.0 as f64) as u64;
            Time(ps - ps % PS_PER_NS)
        });
    }

    fn head(&mut self) -> Option<&Message> {
        while self.queue.is_empty() {
            let scatter = self.later.front().map(|message| message.start);
            match (self.upcoming, scatter) {
                (None, None) => return None,
                (Some(event), scatter) if scatter.is_none_or(|scatter| event < scatter) => {
                    self.make_event(event);
                    self.draw_time();
                }
                _ => {
                    let due = scatter.unwrap_or(Time::ZERO);
                    while self
                        .later
                        .front()
                        .is_some_and(|message| message.start == due)
                    {
                        self.queue.extend(self.later.pop_front());
                    }
                }
            }
        }
        self.queue.front()
    }

    fn make_event(&mut self, start: Time) {
        match self.shape {
            Shape::Pair => {
                let source = self.sources.draw(&mut self.random).unwrap_or(0);
                let target = self.random.other(self.hosts.len(), source);
                self.queue_flow(start, source, target);
            }
            Shape::GatherScatter { peers } => {
                let servers = peers + 1;
                if self.turn + servers > self.hosts.len() {
                    self.random.shuffle(&mut self.hosts);
                    self.turn = 0;
                }
                let root = self.turn;
                self.turn += servers;
                for peer in root + 1..root + servers {
                    self.queue_flow(start, peer, root);
                }
                for peer in root + 1..root + servers {
                    let back = self.flow(start + self.gap, root, peer);
                    self.later.push_back(back);
                }
            }
            Shape::Gather { fan } => {
                self.random.choose_to_front(&mut self.hosts, fan + 1);
                (1..=fan).for_each(|source| self.queue_flow(start, source, 0));
            }
            Shape::Scatter { fan } => {
                self.random.choose_to_front(&mut self.hosts, fan + 1);
                (1..=fan).for_each(|target| self.queue_flow(start, 0, target));
            }
            Shape::Exchange { group } => {
                self.random.choose_to_front(&mut self.hosts, group);
                for source in 0..group {
                    for target in (0..group).filter(|&target| target != source) {
                        self.queue_flow(start, source, target);
                    }
                }
            }
        }
    }

    fn queue_flow(&mut self, start: Time, source: usize, target: usize) {
        let flow = self.flow(start, source, target);
        self.queue.push_back(flow);
    }

    fn flow(&mut self, start: Time, source: usize, target: usize) -> Message {
        let tag = u64::from(self.class) << TAG_SHIFT | self.made;
        self.made += 1;
        let (src, dst) = (self.hosts[source], self.hosts[target]);
        message(start, src, dst, self.size, self.class, tag)
    }
}
