//! The engine: takes events in order and drives switches, NICs, senders and receivers with them.
//!
//! | file | what it drives |
//! |---|---|
//! | `link.rs` | the wire: transmission, arrival, PFC, switches |
//! | `host.rs` | the NIC: which flow sends next, receivers, acknowledgements, timers |
//! | `flow.rs` | a flow's state from message to record |
//! | `multicast.rs` | messages to groups: copies in switches, members, the sender's progress |
//! | `combine.rs` | reductions of groups on their trees, and what foreign packets cost hosts |
//! | `offload/` | in-network reductions: members on hosts, switches that compute |
//! | `rails.rs` | messages over rails: connections on hosts |
//! | `rail_packets.rs`, `bus.rs` | their packets, and the bus between memory and cards |
//! | `build.rs`, `footprint.rs` | switches and ports from network and settings, and the memory that they take |
//! | `route.rs` | the next hop |
//! | `look_ahead.rs` | the cache: what the next events will touch |
//! | `fault.rs` | links that fail and return |
//! | `sample.rs` | series over time, port counters at the end |
//! | `ways.rs` | the ways that packets take, for the record |

mod build;
mod bus;
mod combine;
mod fault;
mod flow;
pub mod footprint;
mod host;
mod link;
mod look_ahead;
mod multicast;
mod offload;
mod rail_packets;
mod rails;
mod route;
mod sample;
mod ways;

pub use build::needed_headroom;
use raddle_dataplane::Switch;
use raddle_fabric::Fabric;
use raddle_transport::cc::{FlowLimits, Signals};
use raddle_unicast::{LinkState, UnicastTables};
use raddle_units::{NodeId, PortId, Span, Time};
use raddle_workload::{Message, Workload};
use rustc_hash::FxHashMap;

use self::{
    combine::Combines,
    flow::{Flow, Reception},
    host::Nic,
    link::{LinkEnd, PortHistory},
    multicast::Multicasts,
    offload::Offloads,
    rails::RailHosts,
    route::Router,
    sample::Sampler,
};
use crate::{
    chance::Chance,
    event::{Event, EventQueue, KEY_BITS},
    packet::Packets,
    record::{Progress, Recorder},
    semantics::{Semantics, TieOrder},
    setup::{Network, RunConfig, RunSummary, SetupError},
};

/// Events between two looks at progress, cancellation and output errors.
const CHECK_EVERY: u64 = 1 << 16;

/// Runs a workload on a network to its end.
///
/// # Errors
/// [`SetupError`] when the settings do not fit the network (nothing has been simulated then), or a message to a group does
/// not fit the groups (the run ends there).
pub fn simulate(
    network: &Network,
    config: &RunConfig,
    workload: &mut dyn Workload,
    recorder: &mut dyn Recorder,
    progress: &Progress,
) -> Result<RunSummary, SetupError> {
    let mut engine = Engine::new(network, config, workload, recorder)?;
    engine.run(progress);
    match engine.multicast.fault.take() {
        Some(fault) => Err(fault),
        None => Ok(engine.finish()),
    }
}

/// The kinds of events, packed with what they concern into [`Event::what`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Kind {
    /// A packet is wholly received. Port (24 bits) and packet.
    Arrive,
    /// A PFC frame is received. Port and (class << 1 | pause).
    Pfc,
    /// A port's transmission ends and something waits. Port.
    Free,
    /// A NIC's earliest flow may send. NIC.
    Wake,
    /// A congestion-control timer. Generation and slot (24 bits), flow.
    Timer,
    /// A retransmission timer. Generation (24 bits), flow.
    Timeout,
    /// The workload's next message is due.
    Start,
    /// Two steps of a flow's start that the reference takes within the instant. Pending message.
    StartSoon,
    StartNow,
    /// A link fails or returns, or routes follow. Index of the change.
    Link,
    /// A switch's unit is through with a packet of a reduction. First port and packet.
    Compute,
    /// A member of a reduction may have to send again. Member.
    Retry,
    /// A packet has crossed a host's bus. Host, way.
    Crossed,
    /// A timer of a connection over rails. Half of it.
    RailTimer,
    /// A packet has crossed what a card's two ways share. Port.
    CrossedCard,
    /// A host is through with packets of other groups before one of its own. Port and packet.
    Heard,
}

impl Kind {
    /// By number; any four bits have a kind.
    const ALL: [Self; 16] = [
        Self::Arrive,
        Self::Pfc,
        Self::Free,
        Self::Wake,
        Self::Timer,
        Self::Timeout,
        Self::Start,
        Self::StartSoon,
        Self::StartNow,
        Self::Link,
        Self::Compute,
        Self::Retry,
        Self::Crossed,
        Self::RailTimer,
        Self::CrossedCard,
        Self::Heard,
    ];

    #[inline]
    const fn pack(self, high: u32, low: u32) -> u64 {
        (self as u64) << 56 | (high as u64) << 32 | low as u64
    }
}

/// Order of kinds at one node and port within an instant, for [`TieOrder::Canonical`]: timers, then what arrives, then
/// what leaves.
const fn rank(kind: Kind) -> u64 {
    match kind {
        Kind::Link => 0,
        Kind::Start | Kind::StartSoon | Kind::StartNow => 1,
        Kind::Timer => 2,
        Kind::Pfc => 3,
        Kind::Arrive | Kind::Compute | Kind::Crossed | Kind::CrossedCard | Kind::Heard => 4,
        Kind::Free => 5,
        Kind::Wake => 6,
        Kind::Timeout | Kind::Retry | Kind::RailTimer => 7,
    }
}

/// Makes the keys that order events within an instant.
#[derive(Debug)]
struct Keys {
    order: TieOrder,
    inserted: u64,
}

impl Keys {
    /// Insertion keys of ordinary events start here; earlier ones are for timers, which precede what was scheduled after them.
    const ORDINARY: u64 = 1 << (KEY_BITS - 1);
    /// Bits of `sequence` that count.
    const SEQUENCE_BITS: u32 = 23;

    /// The key of an event at `port` (ports are numbered node by node; events of a node have its first port, those of the
    /// whole fabric port 0).
    #[inline]
    fn next(&mut self, kind: Kind, port: PortId, sequence: u32) -> u64 {
        match self.order {
            TieOrder::Canonical => {
                u64::from(port.0) << (3 + Self::SEQUENCE_BITS)
                    | rank(kind) << Self::SEQUENCE_BITS
                    | u64::from(sequence & ((1 << Self::SEQUENCE_BITS) - 1))
            }
            TieOrder::Insertion => {
                self.inserted += 1;
                // Timers are armed only where they can matter, later than the reference does; they keep its place:
                // before anything that was scheduled less than a period ago.
                if matches!(kind, Kind::Timer) {
                    self.inserted
                } else {
                    self.inserted | Self::ORDINARY
                }
            }
        }
    }
}

/// Sizes and choices that the hot path reads, fixed for the run.
#[derive(Debug)]
struct Layout {
    mtu: u64,
    /// Bytes of a data packet beside its payload, and of an acknowledgement.
    header_bytes: u32,
    ack_bytes: u32,
    pfc_bytes: u32,
    /// Hop records a packet has room for.
    record_room: u8,
    ack_queue: u8,
    data_classes: u8,
}

struct Engine<'a> {
    fabric: &'a Fabric,
    config: &'a RunConfig,
    semantics: Semantics,
    signals: Signals,
    limits: FlowLimits,
    layout: Layout,
    workload: &'a mut dyn Workload,
    recorder: &'a mut dyn Recorder,

    now: Time,
    /// Key of the event being handled.
    key: u64,
    /// The next sample or the end of the run.
    checkpoint: Time,
    keys: Keys,
    queue: EventQueue,

    router: Router<'a>,
    /// Routes with all links up, for ideal completion times.
    idle_tables: &'a UnicastTables,
    links: LinkState,
    changes: Vec<fault::Change>,

    ends: Vec<LinkEnd>,
    history: Vec<PortHistory>,
    switches: Vec<Switch>,
    nics: Vec<Nic>,
    packets: Packets,
    chance: Chance,

    flows: Vec<Flow>,
    receptions: Vec<Reception>,
    free_flows: Vec<u32>,
    live_flows: u64,
    /// Flows per pair so far: the next source port.
    pairs: FxHashMap<(NodeId, NodeId), u16>,
    /// Messages between the steps of their start.
    pending: Vec<Message>,
    next_start: Time,

    multicast: Multicasts<'a>,
    combines: Combines,
    offload: Offloads,
    rails: RailHosts,
    sampler: Sampler,
    paused_ports: u64,
    summary: RunSummary,
}

impl Engine<'_> {
    fn run(&mut self, progress: &Progress) {
        self.schedule_start();
        self.schedule_faults();
        if self.config.record_paths {
            self.record_reduction_ways();
        }
        let end = self.config.end.unwrap_or(Time::NEVER);
        self.checkpoint = self.sampler.next.min(end);
        let mut seen = 0;
        loop {
            if self.queue.taken() == seen {
                self.look_ahead();
                seen += look_ahead::EVENTS;
            }
            let Some(event) = self.queue.pop() else {
                if !self.queue.advance() {
                    break;
                }
                seen = 0;
                continue;
            };
            if event.time >= self.checkpoint && !self.pass_checkpoint(&event, end, progress) {
                break;
            }
            if !self.handle(&event) {
                continue;
            }
            self.summary.events += 1;
            if self.summary.events.is_multiple_of(CHECK_EVERY) && !self.goes_on(self.now, progress)
            {
                break;
            }
            if self.live_flows == 0 && self.is_over() {
                break;
            }
        }
        progress.update(
            self.now,
            self.summary.packet_hops,
            self.summary.flows_finished,
        );
    }

    /// Tells how far the run is; false: someone wants it to stop here.
    #[cold]
    fn goes_on(&mut self, now: Time, progress: &Progress) -> bool {
        progress.update(now, self.summary.packet_hops, self.summary.flows_finished);
        self.summary.cancelled = progress.is_cancelled();
        !self.summary.cancelled && !self.recorder.failed()
    }

    /// A sample or the end of the run is due before `event`, unless nothing came of it. False: the run ends here.
    #[cold]
    fn pass_checkpoint(&mut self, event: &Event, end: Time, progress: &Progress) -> bool {
        if self.is_stale(event) {
            return true;
        }
        if self.multicast.fault.is_some() {
            return false;
        }
        if event.time >= end {
            if self.sample_until(end, progress) {
                self.now = end;
            }
            return false;
        }
        if !self.sample_until(event.time, progress) {
            return false;
        }
        self.checkpoint = self.sampler.next.min(end);
        true
    }

    /// Handles an event; false: it was stale, and the clock has not moved.
    #[inline(always)]
    fn handle(&mut self, event: &Event) -> bool {
        let high = (event.what >> 32) as u32 & 0xff_ffff;
        let low = event.what as u32;
        if event.what >> 56 == Kind::Arrive as u64 {
            (self.now, self.key) = (event.time, event.key);
            self.arrive(PortId(high), low);
            return true;
        }
        let kind = Kind::ALL[(event.what >> 56) as usize & 15];
        if matches!(
            kind,
            Kind::Wake | Kind::Timer | Kind::Timeout | Kind::Start | Kind::Retry | Kind::RailTimer
        ) && self.is_stale(event)
        {
            return false;
        }
        self.now = event.time;
        self.key = event.key;
        match kind {
            Kind::Arrive => self.arrive(PortId(high), low),
            Kind::Free => self.port_is_free(PortId(high)),
            Kind::Pfc => self.receive_pfc(PortId(high), low),
            Kind::Wake => self.wake(low),
            Kind::Timer => self.control_timer(low, high & 0xff),
            Kind::Timeout => self.retransmission_timer(low),
            Kind::Start => self.start_due_messages(),
            Kind::StartSoon => {
                let key = self.keys.next(Kind::StartNow, PortId(0), 0);
                self.push(self.now, key, Kind::StartNow.pack(0, low));
            }
            Kind::StartNow => self.start_flow(self.pending[low as usize]),
            Kind::Link => self.change_link(low as usize),
            Kind::Compute => self.computed(PortId(high), low),
            Kind::Retry => self.member_timer(low),
            Kind::Crossed => self.crossed(NodeId(low), high),
            Kind::RailTimer => self.rail_timer(low),
            Kind::CrossedCard => self.crossed_card(PortId(low)),
            Kind::Heard => self.heard(PortId(high), low),
        }
        true
    }

    /// Whether an event concerns something that has been superseded; such events do not move the clock.
    #[inline]
    fn is_stale(&self, event: &Event) -> bool {
        let high = (event.what >> 32) as u32 & 0xff_ffff;
        let low = event.what as u32;
        match Kind::ALL[(event.what >> 56) as usize & 15] {
            Kind::Wake => {
                let nic = &self.nics[low as usize];
                nic.wake_at != event.time || nic.wake_key != event.key
            }
            Kind::Timer => {
                let flow = &self.flows[low as usize];
                u32::from(flow.generation) != high >> 8
                    || flow.timers.due(high as usize & 0xff) != event.time
            }
            Kind::Timeout => u32::from(self.flows[low as usize].generation) != high >> 8,
            // Deliveries may have made an earlier message startable; that event looks ahead again.
            Kind::Start => event.time != self.next_start,
            Kind::Retry => event.time != self.offload.timer(low),
            Kind::RailTimer => event.time != self.rails.timer(low),
            _ => false,
        }
    }

    /// Whether no message will ever start again and nothing waits that could change the results.
    fn is_over(&self) -> bool {
        if self.workload.is_open_ended() {
            return self.workload.finished();
        }
        // Connections over rails keep asking each other whether they are there.
        if self.config.rails.is_some() {
            return self.workload.finished();
        }
        // What is left in the queue (last acknowledgements, RESUME frames) may still be recorded; only link changes can
        // go on for long after the traffic has ended.
        !self.changes.is_empty() && self.workload.finished() && self.packets.iter().next().is_none()
    }

    #[inline]
    fn push(&mut self, time: Time, key: u64, what: u64) {
        self.queue.push(Event { time, key, what });
    }

    fn finish(mut self) -> RunSummary {
        self.record_rest();
        let in_flight = self.packets.iter().filter(|packet| packet.kind.is_data());
        self.summary.payload_in_flight = in_flight.map(|packet| u64::from(packet.payload)).sum();
        self.summary.end_ps = self.now.0;
        self.summary.segments_resent = self.rails.resent();
        self.summary.most_packets = self.packets.most();
        self.summary
    }

    fn schedule_start(&mut self) {
        if let Some(start) = self.workload.next_start()
            && start.max(self.now) < self.next_start
        {
            self.next_start = start.max(self.now);
            let key = self.keys.next(Kind::Start, PortId(0), 0);
            self.push(self.next_start, key, Kind::Start.pack(0, 0));
        }
    }

    fn start_due_messages(&mut self) {
        self.next_start = Time::NEVER;
        self.pending.clear();
        while self
            .workload
            .next_start()
            .is_some_and(|start| start <= self.now)
        {
            let Some(message) = self.workload.pop() else {
                break;
            };
            match self.semantics.ties {
                TieOrder::Canonical => self.start_flow(message),
                TieOrder::Insertion => {
                    self.pending.push(message);
                    let key = self.keys.next(Kind::StartSoon, PortId(0), 0);
                    let index = (self.pending.len() - 1) as u32;
                    self.push(self.now, key, Kind::StartSoon.pack(0, index));
                }
            }
        }
        self.schedule_start();
    }

    fn transmission_time(&self, port: PortId, bytes: u32) -> Span {
        let end = &self.ends[port.index()];
        end.transmission_time(&self.semantics, bytes)
    }
}
