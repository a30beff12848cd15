//! A process: a part of the fabric with its own clock and list of events.

use raddle_dataplane::FrameKind;
use raddle_units::Time;
use raddle_workload::{Destination, Message};

use super::{
    combine::{self, Combines},
    context::Context,
    flow::{FlowName, FlowTo},
    groups::Groups,
    host::Hosts,
    link::Device,
    look_ahead,
    mail::Mail,
    offload::Offloads,
    rails::RailHosts,
    records::Moment,
    sample::Sampler,
    timers::Outlook,
    traffic::{Delivery, Traffic},
    what::{Kind, What},
    wires::Wires,
};
use crate::{
    event::Event,
    index::{FlowSlot, NicIndex, PacketSlot, Place, PortIndex, ProcessIndex, SwitchIndex},
    packet::PacketKind,
    semantics::TieOrder,
    setup::{RunSummary, SetupError},
};

/// What every process has.
pub(super) struct Base<'a> {
    pub(super) cx: Context<'a>,
    pub(super) wires: Wires<'a>,
    pub(super) hosts: Hosts,
    pub(super) traffic: Traffic<'a>,
    pub(super) sampler: Sampler,
}

impl Base<'_> {
    /// Takes out the deliveries that the workload is to hear of.
    pub(super) fn deliveries(&mut self) -> impl Iterator<Item = (Moment, u64)> {
        let ends = &self.wires.ends;
        self.traffic.deliveries.drain(..).map(|delivery| {
            let Delivery {
                time,
                key,
                host,
                tag,
            } = delivery;
            (Moment::new(time, key, host, ends), tag)
        })
    }

    /// Takes out why the run is to end.
    pub(super) fn fault(&mut self) -> Option<(Moment, SetupError)> {
        let (time, fault) = self.cx.fault.take()?;
        Some((Moment::at(time), fault))
    }
}

/// See the module.
pub(super) struct Process<'a> {
    pub(super) base: Base<'a>,
    pub(super) groups: Groups<'a>,
    pub(super) combines: Combines,
    pub(super) offload: Offloads,
    pub(super) rails: RailHosts<'a>,
    /// What has come from other processes.
    pub(super) inbox: Vec<Mail>,
    /// Flows that the run has given a place in the list of watched ones.
    pub(super) watch: Vec<(FlowName, u16)>,
    /// Events that were handled in the last window.
    pub(super) cost: u64,
}

/// Why a process has stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// At the end of its window, or at a message that ends the run.
    Window,
    /// It has handled as many events as it was to.
    Budget,
    /// Nothing that is left could change a result (only where the run has one process for all).
    Over,
}

impl Process<'_> {
    /// Handles the events before `end`, at most `budget`; all before `begin` has happened.
    pub(super) fn run(&mut self, begin: Time, end: Time, budget: u64) -> Stop {
        self.take_in_mail();
        let before = self.base.cx.summary.events;
        let stop = if self.base.cx.tiles.is_empty() {
            self.run_whole(begin, end, before.saturating_add(budget))
        } else {
            self.run_tiles(begin, end)
        };
        self.cost = self.base.cx.summary.events - before;
        stop
    }

    /// Handles the events before `end` of the tile that is running, or of all there is.
    pub(super) fn run_whole(&mut self, begin: Time, end: Time, last: u64) -> Stop {
        self.base.traffic.not_before = begin;
        self.base.traffic.schedule_start(&mut self.base.cx);
        self.base.cx.window_end = end;
        self.base.cx.queue.set_end(end);
        if self.base.cx.looks_ahead {
            self.run_to_end::<true>(last)
        } else {
            self.run_to_end::<false>(last)
        }
    }

    fn run_to_end<const LOOKS_AHEAD: bool>(&mut self, last: u64) -> Stop {
        let mut seen = self.base.cx.queue.taken();
        loop {
            if LOOKS_AHEAD && self.base.cx.queue.taken() == seen {
                self.base.look_ahead();
                seen += look_ahead::EVENTS;
            }
            let Some(event) = self.base.cx.queue.pop() else {
                if !self.base.cx.queue.advance() {
                    return Stop::Window;
                }
                seen = 0;
                continue;
            };
            if !self.handle(&event) {
                continue;
            }
            let cx = &mut self.base.cx;
            cx.summary.events += 1;
            if cx.may_stop
                && let Some(stop) = self.stop(last)
            {
                return stop;
            }
        }
    }

    /// Whether the process stops before its window ends.
    fn stop(&self, last: u64) -> Option<Stop> {
        let base = &self.base;
        if base.cx.summary.events >= last {
            return Some(Stop::Budget);
        }
        if base.cx.serial && base.hosts.live == 0 && self.is_over() {
            return Some(Stop::Over);
        }
        base.cx.fault.is_some().then_some(Stop::Window)
    }

    /// When the next event is due that is not stale; those before it are forgotten.
    pub(super) fn next_event(&mut self) -> Time {
        loop {
            let Some(event) = self.base.cx.queue.first() else {
                return Time::NEVER;
            };
            if !self.is_stale(event.time, event.key, What::unpack(event.what)) {
                return event.time;
            }
            self.base.cx.queue.discard_first();
        }
    }

    /// The window is over: gives reports their places, ends flows, gives away its mail.
    pub(super) fn close_window(&mut self, mails: &mut Vec<(ProcessIndex, Mail)>) {
        let base = &mut self.base;
        if base.cx.cut.processes() > 1 {
            base.wires.packets.level();
        }
        base.cx.records.place(&base.wires.ends);
        for (name, member) in std::mem::take(&mut base.cx.post.gone) {
            let process = base.cx.cut.process(member);
            if process == base.cx.own {
                self.groups.forget_member(name, member);
            } else {
                base.cx.post.to(process).gone.push((name, member));
            }
        }
        for (process, name) in base.hosts.over.drain(..) {
            let receivers = match process {
                Some(process) => process.index()..process.index() + 1,
                None => {
                    self.groups.ended.push(name);
                    0..base.cx.cut.processes()
                }
            };
            for process in receivers.map(ProcessIndex::from_index) {
                if process != base.cx.own {
                    base.cx.post.to(process).over.push(name);
                } else if !base.hosts.receptions.remove(&name) {
                    self.groups.receptions.remove(&name);
                }
            }
        }
        mails.extend(std::iter::from_fn(|| base.cx.post.take()));
    }

    /// Takes in what has come from other processes.
    pub(super) fn take_in_mail(&mut self) {
        let Base {
            cx, wires, hosts, ..
        } = &mut self.base;
        for mut mail in self.inbox.drain(..) {
            wires.take_in(cx, &mut mail);
            for notice in mail.notices.drain(..) {
                self.rails.expect_notice(cx, notice);
            }
            hosts.receptions.extend(mail.begun.drain(..));
            self.groups.receptions.extend(mail.groups_begun.drain(..));
            for &(name, member) in &mail.gone {
                self.groups.forget_member(name, member);
            }
            for name in &mail.over {
                if !hosts.receptions.remove(name) {
                    self.groups.receptions.remove(name);
                }
            }
            cx.post.keep(mail);
        }
        for (name, place) in self.watch.drain(..) {
            if let Some(reception) = hosts.receptions.get_mut(&name) {
                reception.watched = Some(place);
            } else if let Some(reception) = self.groups.receptions.get_mut(&name) {
                reception.watched = Some(place);
            }
        }
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
            What::Start => {
                // Messages count, not looks at what is due: those depend on the cut.
                self.start_due_messages();
                return false;
            }
            What::StartSoon(pending) => {
                let place = (Kind::StartNow, PortIndex(0), 0);
                let now = base.cx.now;
                base.cx.schedule(now, place, What::StartNow(pending));
            }
            What::StartNow(pending) => {
                let message = base.traffic.kept(pending);
                self.start(&message);
            }
            What::Compute(node, packet) => self.offload.computed(base, node, packet),
            What::Retry(member) => self.offload.member_timer(base, member),
            What::Crossed(host, way) => self.rails.crossed(base, host, way),
            What::RailTimer(half) => self.rails.timer_is_due(base, half),
            What::CrossedCard(port) => self.rails.crossed_card(base, port),
            What::Heard(port, packet) => self.heard(port, packet),
            What::Noticed(host) => self.rails.noticed(base, host),
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
        wires.may_fail && traffic.finished() && wires.packets.count() == 0
    }

    // Messages.

    fn start_due_messages(&mut self) {
        self.base.traffic.begin();
        while let Some(message) = self.base.traffic.take_due(self.base.cx.now) {
            self.base.cx.summary.events += 1;
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
            Destination::Host(dst) if self.rails.plan.is_some_and(|it| it.carry(message.class)) => {
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
        self.groups.begin(base, flow, message);
        if base.cx.config.record_paths {
            self.record_way(flow);
        }
        self.base.nic_transmit(nic);
        self.refill();
    }

    // What happens at ports.

    /// A packet is wholly received at a port.
    #[inline]
    fn arrive(&mut self, port: PortIndex, handle: PacketSlot) {
        let (cx, wires) = (&mut self.base.cx, &mut self.base.wires);
        if wires.may_fail && wires.was_cut(cx, port, wires.packets.get(handle).bytes) {
            return wires.lose(cx, port, handle);
        }
        cx.summary.packet_hops += 1;
        let switch = match wires.ends[port].device {
            Device::Switch(switch) => switch,
            Device::Nic(nic) => return self.receive(port, nic, handle),
        };
        let base = &mut self.base;
        let wires = &mut base.wires;
        let kind = wires.packets.get(handle).kind;
        match kind {
            PacketKind::Data => {
                return wires.forward(&mut base.cx, port, switch, handle, FrameKind::Data);
            }
            PacketKind::Ack => {
                return wires.forward(&mut base.cx, port, switch, handle, FrameKind::Plain);
            }
            _ => {}
        }
        self.arrive_otherwise(port, switch, handle, kind);
    }

    /// A packet that is neither data nor an acknowledgement of a flow to a host is wholly received at a switch.
    #[inline(never)]
    fn arrive_otherwise(
        &mut self,
        port: PortIndex,
        switch: SwitchIndex,
        handle: PacketSlot,
        kind: PacketKind,
    ) {
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
    fn receive(&mut self, port: PortIndex, nic: NicIndex, handle: PacketSlot) {
        let base = &mut self.base;
        let packet = base.wires.packets.get(handle);
        let kind = packet.kind;
        if base.hosts.is_late(packet) {
            // The acknowledgement of a late duplicate.
            return base.receive_late(handle);
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
                debug_assert!(false, "{kind:?} arrived at {port:?}");
            }
        }
        self.refill();
    }

    /// A packet of a host's own group has waited long enough behind those of others.
    fn heard(&mut self, port: PortIndex, handle: PacketSlot) {
        let base = &mut self.base;
        let Some(nic) = base.nic_at(port) else {
            return;
        };
        let packet = base.wires.packets.get(handle);
        if packet.kind == PacketKind::Combined {
            let groups = &mut self.groups;
            return self.combines.receive(base, groups, port, handle, true);
        }
        self.groups.receive_data(base, port, nic, handle, true);
        self.refill();
    }

    /// A port's transmission ends, and something waits.
    #[inline(always)]
    fn transmission_ends(&mut self, port: PortIndex) {
        let end = &mut self.base.wires.ends[port];
        end.free_scheduled = false;
        let device = end.device;
        self.look_for_work(port, device);
    }

    /// Whoever sends by a port looks for something to send.
    #[inline(always)]
    pub(super) fn look_for_work(&mut self, port: PortIndex, device: Device) {
        let base = &mut self.base;
        match device {
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
    fn receive_pfc(&mut self, port: PortIndex, class: u8, pause: bool) {
        let (cx, wires) = (&mut self.base.cx, &mut self.base.wires);
        if wires.may_fail && wires.was_cut(cx, port, cx.layout.pfc_bytes) {
            return;
        }
        let paused = wires.pause(cx, port, class, pause);
        let device = wires.ends[port].device;
        if let Device::Nic(nic) = device {
            self.base.hosts.nics[nic].paused = paused;
        }
        if !pause {
            self.look_for_work(port, device);
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

impl Process<'_> {
    /// What this process has counted, but for the payload in flight.
    pub(super) fn totals(&mut self) -> RunSummary {
        let summary = &mut self.base.cx.summary;
        summary.segments_resent = self.rails.resent();
        *summary
    }
}
