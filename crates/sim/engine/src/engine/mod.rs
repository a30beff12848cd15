//! The engine: takes events in order and drives switches, NICs, senders and receivers with them.
//!
//! It consists of parts that each own their state. [`Base`] is what every run has: the clock and the list of events
//! (`Context`), links and switches (`Wires`), cards and flows (`Hosts`), the workload (`Traffic`) and the counts between
//! samples (`Sampler`). The other parts stand beside it, borrow it, and cost nothing where they are not used; it knows
//! none of them.
//!
//! | file | what it drives |
//! |---|---|
//! | `what.rs`, `context.rs` | events: what they are, their order, the clock |
//! | `wires.rs`, `link.rs`, `frames.rs` | the wire: transmission, PFC, switches |
//! | `host.rs` | the NIC: which flow sends next |
//! | `flow.rs` | a flow's state from message to record |
//! | `receive.rs`, `timers.rs` | receivers, acknowledgements, congestion control and its timers |
//! | `traffic.rs` | the workload |
//! | `groups/` | messages to groups: copies in switches, members, the sender's progress |
//! | `combine.rs` | reductions of groups on their trees |
//! | `offload/` | in-network reductions: members on hosts, switches that compute |
//! | `rails.rs` | messages over rails: connections on hosts |
//! | `rail_packets.rs`, `bus.rs` | their packets, and the bus between memory and cards |
//! | `build.rs`, `footprint.rs` | all of it from network and settings, and the memory that it takes |
//! | `route.rs` | the next hop |
//! | `look_ahead.rs` | the cache: what the next events will touch |
//! | `fault.rs` | links that fail and return |
//! | `sample.rs` | series over time, port counters at the end |
//! | `ways.rs` | the ways that packets take, for the record |

mod build;
mod bus;
mod combine;
mod context;
mod fault;
mod flow;
pub mod footprint;
mod frames;
mod groups;
mod host;
mod link;
mod look_ahead;
mod offload;
mod rail_packets;
mod rails;
mod receive;
mod route;
mod sample;
mod timers;
mod traffic;
mod ways;
mod what;
mod wires;

pub use build::needed_headroom;
use raddle_dataplane::FrameKind;
use raddle_units::{PortId, Time};
use raddle_workload::{Destination, Message, Workload};

use self::{
    combine::Combines,
    context::Context,
    flow::FlowTo,
    groups::Groups,
    host::Hosts,
    link::Device,
    offload::Offloads,
    rails::RailHosts,
    sample::Sampler,
    timers::Outlook,
    traffic::Traffic,
    what::{Kind, What},
    wires::Wires,
};
use crate::{
    event::Event,
    index::{ChangeIndex, FlowSlot, List, NicIndex, PacketSlot},
    packet::PacketKind,
    record::{Progress, Recorder},
    semantics::TieOrder,
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
    match engine.base.cx.fault.take() {
        Some(fault) => Err(fault),
        None => Ok(engine.finish()),
    }
}

/// What every run has.
struct Base<'a> {
    cx: Context<'a>,
    wires: Wires<'a>,
    hosts: Hosts,
    traffic: Traffic<'a>,
    sampler: Sampler,
}

struct Engine<'a> {
    base: Base<'a>,
    groups: Groups<'a>,
    combines: Combines,
    offload: Offloads,
    rails: RailHosts<'a>,
    changes: List<ChangeIndex, fault::Change>,
}

impl Engine<'_> {
    fn run(&mut self, progress: &Progress) {
        self.base.traffic.schedule_start(&mut self.base.cx);
        self.schedule_changes();
        if self.base.cx.config.record_paths {
            self.record_reduction_ways();
        }
        let end = self.base.cx.config.end.unwrap_or(Time::NEVER);
        self.base.cx.checkpoint = self.base.sampler.next.min(end);
        let mut seen = 0;
        loop {
            if self.base.cx.queue.taken() == seen {
                self.base.look_ahead();
                seen += look_ahead::EVENTS;
            }
            let Some(event) = self.base.cx.queue.pop() else {
                if !self.base.cx.queue.advance() {
                    break;
                }
                seen = 0;
                continue;
            };
            if event.time >= self.base.cx.checkpoint && !self.pass_checkpoint(&event, end, progress)
            {
                break;
            }
            if !self.handle(&event) {
                continue;
            }
            let events = &mut self.base.cx.summary.events;
            *events += 1;
            if events.is_multiple_of(CHECK_EVERY) && !self.base.goes_on(self.base.cx.now, progress)
            {
                break;
            }
            if self.base.hosts.live == 0 && self.is_over() {
                break;
            }
        }
        let summary = &self.base.cx.summary;
        progress.update(
            self.base.cx.now,
            summary.packet_hops,
            summary.flows_finished,
        );
    }

    /// A sample or the end of the run is due before `event`, unless nothing came of it. False: the run ends here.
    #[cold]
    fn pass_checkpoint(&mut self, event: &Event, end: Time, progress: &Progress) -> bool {
        if self.is_stale(event.time, event.key, What::unpack(event.what)) {
            return true;
        }
        let base = &mut self.base;
        if base.cx.fault.is_some() {
            return false;
        }
        if event.time >= end {
            if base.sample_until(end, progress) {
                base.cx.now = end;
            }
            return false;
        }
        if !base.sample_until(event.time, progress) {
            return false;
        }
        base.cx.checkpoint = base.sampler.next.min(end);
        true
    }

    /// Handles an event; false: it was stale, and the clock has not moved.
    #[inline(always)]
    fn handle(&mut self, event: &Event) -> bool {
        // Most events are these two, and neither is ever stale.
        if let Some((port, packet)) = What::at_port(event.what) {
            (self.base.cx.now, self.base.cx.key) = (event.time, event.key);
            match packet {
                Some(packet) => self.arrive(port, packet),
                None => self.transmission_ends(port),
            }
            return true;
        }
        let what = What::unpack(event.what);
        if self.is_stale(event.time, event.key, what) {
            return false;
        }
        (self.base.cx.now, self.base.cx.key) = (event.time, event.key);
        let base = &mut self.base;
        match what {
            What::Arrive(port, packet) => self.arrive(port, packet),
            What::Free(port) => self.transmission_ends(port),
            What::Pfc(port, class, pause) => self.receive_pfc(port, class, pause),
            What::Wake(nic) => {
                base.wake(nic);
                self.refill();
            }
            What::Timer(number, flow, _) => base.control_timer(flow, number),
            What::Timeout(flow, _) => self.retransmission_timer(flow),
            What::Start => self.start_due_messages(),
            What::StartSoon(pending) => {
                let place = (Kind::StartNow, PortId(0), 0);
                let now = base.cx.now;
                base.cx.schedule(now, place, What::StartNow(pending));
            }
            What::StartNow(pending) => {
                let message = base.traffic.kept(pending);
                self.start(&message);
            }
            What::Change(change) => self.change(change),
            What::Compute(node, packet) => self.offload.computed(base, node, packet),
            What::Retry(member) => self.offload.member_timer(base, member),
            What::Crossed(host, way) => self.rails.crossed(base, host, way),
            What::RailTimer(half) => self.rails.timer_is_due(base, half),
            What::CrossedCard(port) => self.rails.crossed_card(base, port),
            What::Heard(port, packet) => self.heard(port, packet),
        }
        true
    }

    /// Whether an event concerns something that has been superseded; such events do not move the clock.
    #[inline]
    fn is_stale(&self, time: Time, key: u64, what: What) -> bool {
        let hosts = &self.base.hosts;
        match what {
            What::Wake(nic) => {
                let nic = &hosts.nics[nic];
                nic.wake_at != time || nic.wake_key != key
            }
            What::Timer(number, flow, generation) => {
                let flow = &hosts.flows[flow];
                flow.generation != generation || flow.timers.due(usize::from(number)) != time
            }
            What::Timeout(flow, generation) => hosts.flows[flow].generation != generation,
            // Deliveries may have made an earlier message startable; that event looks ahead again.
            What::Start => time != self.base.traffic.next_start,
            What::Retry(member) => time != self.offload.timer(member),
            What::RailTimer(half) => time != self.rails.timer(half),
            _ => false,
        }
    }

    /// Whether no message will ever start again and nothing waits that could change the results.
    fn is_over(&self) -> bool {
        let traffic = &self.base.traffic;
        // Connections over rails keep asking each other whether they are there.
        if traffic.is_open_ended() || self.rails.plan.is_some() {
            return traffic.finished();
        }
        // What is left in the queue (last acknowledgements, RESUME frames) may still be recorded; only link changes can
        // go on for long after the traffic has ended.
        let wires = &self.base.wires;
        wires.may_fail && traffic.finished() && wires.packets.iter().next().is_none()
    }

    fn finish(mut self) -> RunSummary {
        self.record_rest();
        let Base { cx, wires, .. } = &mut self.base;
        let in_flight = wires.packets.iter().filter(|packet| packet.kind.is_data());
        cx.summary.payload_in_flight = in_flight.map(|packet| u64::from(packet.payload)).sum();
        cx.summary.end_ps = cx.now.0;
        cx.summary.segments_resent = self.rails.resent();
        cx.summary.most_packets = wires.packets.most();
        cx.summary
    }

    // Messages.

    fn start_due_messages(&mut self) {
        self.base.traffic.begin();
        while let Some(message) = self.base.traffic.take_due(self.base.cx.now) {
            match self.base.cx.semantics.ties {
                TieOrder::Canonical => self.start(&message),
                TieOrder::Insertion => self.base.traffic.keep(&mut self.base.cx, message),
            }
        }
        self.base.traffic.schedule_start(&mut self.base.cx);
    }

    fn start(&mut self, message: &Message) {
        let base = &mut self.base;
        let opening = match message.dst {
            Destination::Host(dst) if self.rails.plan.is_some() => {
                return self.rails.start(base, message, dst);
            }
            Destination::Host(dst) => base.opening(message, dst),
            Destination::Group(group) => self.groups.opening(base, message, group),
            Destination::Reduction(group) => {
                self.combines.start(base, &self.groups, message, group);
                return self.refill();
            }
            Destination::Offload(member) => {
                self.offload.start(base, message, member);
                return self.refill();
            }
        };
        let Some(opening) = opening else {
            return;
        };
        let nic = opening.nic;
        let flow = base.open_flow(message, opening);
        if base.cx.config.record_paths {
            self.record_way(flow);
        }
        self.base.nic_transmit(nic);
        self.refill();
    }

    // What happens at ports.

    /// A packet is wholly received at a port.
    #[inline]
    fn arrive(&mut self, port: PortId, handle: PacketSlot) {
        let (cx, wires) = (&mut self.base.cx, &mut self.base.wires);
        let packet = wires.packets.get(handle);
        let kind = packet.kind;
        if wires.may_fail && wires.was_cut(cx, port, packet.bytes) {
            return wires.lose(cx, port, handle);
        }
        cx.summary.packet_hops += 1;
        let switch = match wires.ends[port].device {
            Device::Switch(switch) => switch,
            Device::Nic(nic) => return self.receive(port, nic, handle),
        };
        let base = &mut self.base;
        let kind = match kind {
            PacketKind::Data | PacketKind::RailData => FrameKind::Data,
            PacketKind::GroupData => return self.groups.replicate(base, port, switch, handle),
            PacketKind::Offload => return self.offload.arrives(base, port, handle),
            PacketKind::Part => {
                return self.combines.part_arrives(base, &self.groups, port, handle);
            }
            PacketKind::Combined => {
                return combine::combined_arrives(base, &self.groups, port, handle);
            }
            _ => FrameKind::Plain,
        };
        base.wires.forward(&mut base.cx, port, switch, handle, kind);
    }

    /// A packet is wholly received at a host.
    fn receive(&mut self, port: PortId, nic: NicIndex, handle: PacketSlot) {
        let base = &mut self.base;
        let packet = base.wires.packets.get(handle);
        let kind = packet.kind;
        if base.hosts.is_late(packet) {
            // A late duplicate, or its acknowledgement.
            match kind {
                PacketKind::GroupData => self.groups.receive_late(base, port, handle),
                _ => base.receive_late(handle),
            }
            return;
        }
        match kind {
            PacketKind::Data => base.receive_data(nic, handle),
            PacketKind::Ack | PacketKind::Nack => base.receive_ack(handle),
            PacketKind::GroupData => self.groups.receive_data(base, port, nic, handle, false),
            PacketKind::GroupAck | PacketKind::GroupNack => self.groups.receive_ack(base, handle),
            PacketKind::Offload => self.offload.receive(base, handle),
            PacketKind::Combined => {
                let groups = &mut self.groups;
                self.combines.receive(base, groups, port, handle, false);
            }
            PacketKind::RailData | PacketKind::RailControl => self.rails.receive(base, handle),
            PacketKind::Free | PacketKind::Part => {
                debug_assert!(false, "{kind:?} arrived at {port}");
            }
        }
        self.refill();
    }

    /// A packet of a host's own group has waited long enough behind those of others.
    fn heard(&mut self, port: PortId, handle: PacketSlot) {
        let base = &mut self.base;
        let Some(nic) = base.nic_at(port) else {
            return;
        };
        let packet = base.wires.packets.get(handle);
        if packet.kind == PacketKind::Combined {
            let groups = &mut self.groups;
            return self.combines.receive(base, groups, port, handle, true);
        }
        if base.hosts.is_late(packet) {
            self.receive(port, nic, handle);
        } else {
            self.groups.receive_data(base, port, nic, handle, true);
            self.refill();
        }
    }

    /// A port's transmission ends, and something waits.
    #[inline]
    fn transmission_ends(&mut self, port: PortId) {
        self.base.wires.ends[port].free_scheduled = false;
        self.look_for_work(port);
    }

    /// Whoever sends by a port looks for something to send.
    #[inline]
    fn look_for_work(&mut self, port: PortId) {
        let base = &mut self.base;
        match base.wires.ends[port].device {
            Device::Switch(_) => base.wires.switch_transmit(&mut base.cx, port),
            Device::Nic(nic) => {
                base.nic_transmit(nic);
                self.refill();
            }
        }
    }

    /// Cards that have begun to send packets over rails have room for more.
    #[inline]
    fn refill(&mut self) {
        if !self.base.hosts.left_card.is_empty() {
            self.rails.refill(&mut self.base);
        }
    }

    /// A PFC frame is received at a port: its transmit side stops or goes on.
    fn receive_pfc(&mut self, port: PortId, class: u8, pause: bool) {
        let (cx, wires) = (&mut self.base.cx, &mut self.base.wires);
        if wires.may_fail && wires.was_cut(cx, port, cx.layout.pfc_bytes) {
            return;
        }
        let paused = wires.pause(cx, port, class, pause);
        if let Device::Nic(nic) = wires.ends[port].device {
            self.base.hosts.nics[nic].paused = paused;
        }
        if !pause {
            self.look_for_work(port);
        }
    }

    fn retransmission_timer(&mut self, flow: FlowSlot) {
        let base = &mut self.base;
        match base.hosts.flows[flow].to {
            FlowTo::Group { .. } => self.groups.retransmission_timer(base, flow),
            FlowTo::Host(_) => {
                let patience = base.cx.patience();
                if base.retransmission_timer(flow, patience) == Outlook::GivesUp {
                    base.abandon_flow(flow);
                }
            }
        }
        self.refill();
    }
}
