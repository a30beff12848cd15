//! Messages to groups: copies in switches, members, the sender's progress.
//!
//! A message to a group is a flow with a list of members. Its packets carry the colour of the group as their address;
//! switches look up (input port, colour) and send a copy by each port found. Every copy is a packet of its own (it meets
//! other queues and gets other marks and records), but they share one place in the buffer's account of the port by which
//! the packet came. Each member receives and acknowledges as the receiver of an ordinary flow does, by unicast.

use std::borrow::Cow;

use raddle_dataplane::{Frame, FrameKind};
use raddle_fabric::Fabric;
use raddle_multicast::{Colour, MulticastTables, PortSet};
use raddle_transport::{
    cc::{Ack, Telemetry},
    group::{Acker, AckerChoice, GroupProgress, MemberReceiver},
    reliability::{Answer, NackPolicy, Progress},
    telemetry::Echo,
};
use raddle_unicast::FlowHash;
use raddle_units::{BitRate, Bytes, NodeId, PortId, Span, Time, many};
use raddle_workload::{GroupId, Message};
use rustc_hash::FxHashMap;

use super::{
    Engine,
    fault::Change,
    flow::{DPORT, Opening, address},
    host::{HeardAck, NACK_INTERVAL},
    link::frame_access,
};
use crate::{
    multicast::{Multicast, MulticastGroup},
    packet::PacketKind,
    paths::Path,
    record::MemberRecord,
    setup::SetupError,
};

/// In [`super::flow::Flow::send`]: a flow to a host.
pub(super) const NO_SEND: u32 = u32::MAX;

/// Packets that may stand in the way of an acknowledged one without making its member the acker.
const ACKER_MARGIN_PACKETS: u64 = 2;

/// A way to a member and back.
type RoundTrip = (Path, Vec<(BitRate, Span)>);

/// What is known of a group as one sender sees it, from its first message on.
#[derive(Debug, Default)]
struct Session {
    /// The distinct ways to members, and per member which one it is (and its idle round trip); a member that no tree
    /// reaches has none.
    round_trips: Vec<RoundTrip>,
    /// Idle round trip of one full packet, by member.
    base: Vec<Span>,
}

/// One message on its way to a group.
#[derive(Debug)]
struct GroupSend {
    group: u32,
    session: u32,
    progress: GroupProgress,
    members: Vec<Member>,
    acker: Acker,
    /// Marks of members that are not the acker, for the acker's next acknowledgement.
    marked: bool,
    digest: u16,
    /// When the sender last went back: what members missed before is on its way again.
    went_back: Option<Time>,
    /// Members that have not got the message and have not been given up.
    waiting: u32,
    /// Members that were given up.
    missed: u32,
}

/// A member's side of a message.
#[derive(Clone, Debug, Default)]
struct Member {
    receiver: MemberReceiver,
    /// No congestion mark is echoed before.
    echo_after: Time,
    /// Delivered, or given up.
    closed: bool,
}

/// All multicast state of a run.
#[derive(Debug)]
pub(super) struct Multicasts<'a> {
    plan: Option<&'a Multicast>,
    tables: Option<Cow<'a, MulticastTables>>,
    colours: Vec<Colour>,
    sends: Vec<GroupSend>,
    free: Vec<u32>,
    sessions: FxHashMap<(u32, NodeId), u32>,
    known: Vec<Session>,
    /// Scratch: the copies of one packet.
    copies: Vec<(u16, u32)>,
    /// A message that does not fit the groups: the run ends.
    pub(super) fault: Option<SetupError>,
}

fn check(group: &MulticastGroup, fabric: &Fabric) -> Result<(), String> {
    let members = &group.members;
    if members.len() < 2 {
        return Err(format!(
            "{}: a message needs at least two",
            many(members.len(), "member")
        ));
    }
    if !members.is_sorted_by(|a, b| a < b) {
        return Err("the members must ascend and be distinct".to_owned());
    }
    for &member in members {
        if member.index() >= fabric.node_count() || !fabric.is_host(member) {
            return Err(format!("{member} is not a host of this fabric"));
        }
        let ports = fabric.ports_of(member).len();
        if ports != 1 {
            return Err(format!(
                "member {member} has {}: multicast needs hosts with one",
                many(ports, "port")
            ));
        }
    }
    Ok(())
}

impl<'a> Multicasts<'a> {
    pub(super) fn new(plan: Option<&'a Multicast>, fabric: &Fabric) -> Result<Self, SetupError> {
        let groups = plan.map_or(&[][..], |plan| &plan.groups);
        for (index, group) in (0..).zip(groups) {
            check(group, fabric).map_err(|problem| SetupError::Group {
                group: index,
                problem,
            })?;
        }
        let updates = plan.map_or(&[][..], |plan| &plan.updates);
        for (group, _) in updates.iter().flat_map(|update| &update.colours) {
            if group.0 as usize >= groups.len() {
                let problem = "an update names it, but the list is shorter".to_owned();
                let group = group.0;
                return Err(SetupError::Group { group, problem });
            }
        }
        Ok(Self {
            plan,
            tables: plan.map(|plan| Cow::Borrowed(&plan.tables)),
            colours: groups.iter().map(|group| group.colour).collect(),
            sends: Vec::new(),
            free: Vec::new(),
            sessions: FxHashMap::default(),
            known: Vec::new(),
            copies: Vec::new(),
            fault: None,
        })
    }

    /// Updates of the tables as changes of the run.
    pub(super) fn changes(&self) -> impl Iterator<Item = Change> + use<'a> {
        let updates = self.plan.map_or(&[][..], |plan| &plan.updates);
        (0..)
            .zip(updates)
            .map(|(index, update)| Change::Multicast(update.at, index))
    }

    /// Update `index` takes place.
    pub(super) fn update(&mut self, index: u32) {
        let Some((plan, tables)) = self.plan.zip(self.tables.as_mut()) else {
            return;
        };
        let update = &plan.updates[index as usize];
        let tables = tables.to_mut();
        for write in &update.writes {
            tables.write(write);
        }
        for &(group, colour) in &update.colours {
            self.colours[group.0 as usize] = colour;
        }
        // Ways have changed.
        self.sessions.clear();
    }

    /// The address that a message's packets carry.
    pub(super) fn address(&self, send: u32) -> NodeId {
        self.group_address(self.sends[send as usize].group)
    }

    /// The address that a group's packets carry.
    pub(super) fn group_address(&self, group: u32) -> NodeId {
        GroupId(u32::from(self.colours[group as usize].0)).address()
    }

    pub(super) fn out_ports(&self, switch: NodeId, in_port: u16, address: NodeId) -> PortSet {
        let colour = GroupId::of(address).map_or(0, |colour| colour.0 as u16);
        match (&self.tables, u8::try_from(in_port)) {
            (Some(tables), Ok(in_port)) => tables.out_ports(switch, in_port, Colour(colour)),
            _ => PortSet::EMPTY,
        }
    }

    fn group(&self, group: u32) -> Option<&'a MulticastGroup> {
        self.plan?.groups.get(group as usize)
    }

    /// The message is over; its place is free.
    pub(super) fn free(&mut self, send: u32) {
        self.free.push(send);
    }
}

impl Engine<'_> {
    /// A packet to a group is wholly received at a switch: it leaves by all ports of its table entry.
    #[inline(never)]
    pub(super) fn replicate(&mut self, port: PortId, handle: u32) {
        let end = &self.ends[port.index()];
        let (device, index, node) = (end.device as usize, end.index, end.node);
        let template = *self.packets.get(handle);
        let outs = self.multicast.out_ports(node, index + 1, template.dst);
        let payload = u64::from(template.payload);
        let mut copies = std::mem::take(&mut self.multicast.copies);
        copies.clear();
        let mut original = Some(handle);
        for number in outs.iter() {
            let out = u16::from(number) - 1;
            let copy = original.take().unwrap_or_else(|| {
                self.summary.payload_copied += payload;
                self.packets.insert(template)
            });
            let out_port = self.port_on(port, out);
            let room = self.switches[device].has_room(out, template.queue, template.bytes);
            if self.ends[out_port.index()].up && room {
                copies.push((out, copy));
            } else {
                self.history[out_port.index()].lost += 1;
                self.drop_packet(copy);
            }
        }
        if let Some(handle) = original {
            self.summary.dead_ends += 1;
            self.discard(handle);
        }
        let frame = Frame {
            handle,
            bytes: template.bytes,
            in_port: index,
            queue: template.queue,
            kind: FrameKind::Data,
        };
        let mut frames = frame_access!(self, node);
        match self.switches[device].enqueue_copies(&copies, frame, &mut frames) {
            Ok(pause) => {
                if pause {
                    self.chance.pfc_frame();
                    self.switch_transmit(port);
                }
                for &(out, _) in &copies {
                    self.switch_transmit(self.port_on(port, out));
                }
            }
            Err(raddle_dataplane::Refused) => {
                // One packet was refused; the copies were never made.
                for &(_, copy) in &copies[1..] {
                    self.packets.remove(copy);
                    self.summary.payload_copied -= payload;
                }
                self.drop_packet(copies[0].1);
            }
        }
        self.multicast.copies = copies;
    }

    pub(super) fn start_group_flow(&mut self, message: Message, group: GroupId) {
        let Message {
            src,
            dst,
            size,
            tag,
            ..
        } = message;
        let refuse = |problem| SetupError::GroupMessage {
            tag,
            src,
            group: group.0,
            problem,
        };
        let Some(members) = self.multicast.group(group.0).map(|group| &group.members) else {
            self.stop(refuse("which is not among the run's groups"));
            return;
        };
        let Ok(sender) = members.binary_search(&src) else {
            self.stop(refuse("of which it is not a member"));
            return;
        };
        let Some(session) = self.session(group.0, src, members) else {
            self.stop(refuse(
                "whose tables lead a packet to the same port twice (a loop, or two trees on one link)",
            ));
            return;
        };
        let sport = self.next_sport(src, dst);
        let ports = u32::from(sport) | DPORT << 16;
        let hash = FlowHash::new(address(src), address(dst), ports);
        let round_trips = &self.multicast.known[session as usize].round_trips;
        let ideal = round_trips
            .iter()
            .map(|round_trip| self.ideal(round_trip, size))
            .max();
        let mut progress = GroupProgress::new(members.len());
        progress.on_ack(sender, u64::MAX);
        let mut state = vec![Member::default(); members.len()];
        state[sender].closed = true;
        let send = GroupSend {
            group: group.0,
            session,
            progress,
            members: state,
            acker: Acker::default(),
            marked: false,
            digest: 0,
            went_back: None,
            waiting: members.len() as u32 - 1,
            missed: 0,
        };
        let place = match self.multicast.free.pop() {
            Some(place) => {
                self.multicast.sends[place as usize] = send;
                place
            }
            None => {
                self.multicast.sends.push(send);
                (self.multicast.sends.len() - 1) as u32
            }
        };
        let nic = self.ends[self.fabric.first_port(src).index()].device;
        let opening = Opening {
            sport,
            hash,
            reverse: hash,
            nic,
            ideal_fct: ideal.unwrap_or_default(),
            send: place,
        };
        self.open_flow(message, opening);
    }

    /// The run ends with an error.
    pub(super) fn stop(&mut self, fault: SetupError) {
        self.multicast.fault.get_or_insert(fault);
        self.checkpoint = self.now;
    }

    fn ideal(&self, (there, back): &RoundTrip, size: Bytes) -> Span {
        there.ideal_round(
            back,
            &self.semantics,
            size,
            Bytes(self.layout.mtu),
            u64::from(self.layout.header_bytes),
            u64::from(self.layout.ack_bytes),
        )
    }

    /// The ways from a sender to the members of its group; `None` where the tables lead to a switch's port twice.
    fn session(&mut self, group: u32, src: NodeId, members: &[NodeId]) -> Option<u32> {
        if let Some(&known) = self.multicast.sessions.get(&(group, src)) {
            return Some(known);
        }
        let colour = self.multicast.colours[group as usize];
        let address = GroupId(u32::from(colour.0)).address();
        let hop = |port: PortId| (self.fabric.rate(port), self.fabric.delay(port));
        let mut session = Session {
            round_trips: Vec::new(),
            base: vec![Span::ZERO; members.len()],
        };
        let mut shortest: Vec<Option<usize>> = vec![None; members.len()];
        let first = self.fabric.first_port(src);
        let mut passed = rustc_hash::FxHashSet::default();
        // Ports that packets leave by, with the hops before.
        let mut open = vec![(first, Vec::new())];
        while let Some((leaving, mut hops)) = open.pop() {
            hops.push(hop(leaving));
            let arriving = self.fabric.port(leaving).peer;
            let end = self.fabric.port(arriving);
            if self.fabric.is_host(end.node) {
                let Ok(member) = members.binary_search(&end.node) else {
                    continue;
                };
                let path = Path { hops };
                let back: Vec<_> = self
                    .idle_tables
                    .first_path(self.fabric, end.node, src)
                    .map(hop)
                    .collect();
                let round_trip = (path, back);
                let known = session
                    .round_trips
                    .iter()
                    .position(|other| *other == round_trip);
                let place = known.unwrap_or(session.round_trips.len());
                let round = self.ideal(&round_trip, Bytes(self.layout.mtu));
                if known.is_none() {
                    session.round_trips.push(round_trip);
                }
                let base = &mut session.base[member];
                if shortest[member].is_none() || round < *base {
                    (*base, shortest[member]) = (round, Some(place));
                }
                continue;
            }
            if !passed.insert(arriving) {
                return None;
            }
            for number in self
                .multicast
                .out_ports(end.node, end.number, address)
                .iter()
            {
                let out = PortId(self.fabric.first_port(end.node).0 + u32::from(number) - 1);
                open.push((out, hops.clone()));
            }
        }
        // Of two trees the shorter way counts.
        let mut used = vec![false; session.round_trips.len()];
        for place in shortest.into_iter().flatten() {
            used[place] = true;
        }
        let mut used = used.into_iter();
        session.round_trips.retain(|_| used.next() == Some(true));
        let place = self.multicast.known.len() as u32;
        self.multicast.known.push(session);
        self.multicast.sessions.insert((group, src), place);
        Some(place)
    }

    /// A packet to a group is wholly received at a host; `waited`: it has stood behind packets of other groups.
    #[inline(never)]
    pub(super) fn receive_group_data(
        &mut self,
        port: PortId,
        nic_index: u32,
        handle: u32,
        waited: bool,
    ) {
        let packet = self.packets.get(handle);
        let flow = &self.flows[packet.flow as usize];
        let host = self.ends[port.index()].node;
        let send = &mut self.multicast.sends[flow.send as usize];
        let group = self
            .multicast
            .plan
            .map(|plan| &plan.groups[send.group as usize]);
        let payload = u64::from(packet.payload);
        let Some((place, twice)) = group.and_then(|group| {
            let place = group.members.binary_search(&host).ok();
            place.zip(Some(group.twice))
        }) else {
            self.summary.foreign_copies += 1;
            let bytes = packet.bytes;
            self.overhear(host, bytes);
            self.discard(handle);
            return;
        };
        if !waited && self.stands_behind(host, port, handle) {
            return;
        }
        let packet = self.packets.get(handle);
        let flow = &self.flows[packet.flow as usize];
        let send = &mut self.multicast.sends[flow.send as usize];
        if send.progress.is_gone(place) {
            // The sender itself, or a member it does not wait for any more.
            self.discard(handle);
            return;
        }
        let member = &mut send.members[place];
        let policy = NackPolicy {
            interval: NACK_INTERVAL,
            duplicates: self.semantics.duplicates,
        };
        let (seq, sent_at) = (packet.seq, packet.sent_at);
        let answer = member
            .receiver
            .on_data(self.now, sent_at, seq, payload, twice, &policy);
        let (kind, seq) = match answer {
            None => {
                self.summary.second_copies += 1;
                self.discard(handle);
                return;
            }
            Some(Answer::Silence) => {
                self.discard(handle);
                return;
            }
            Some(Answer::Ack(seq)) => {
                self.summary.payload_delivered += payload;
                let watched = self.receptions[packet.flow as usize].watched;
                self.sampler.delivered(flow.class, watched, payload);
                if seq == flow.sender.size() {
                    let index = packet.flow;
                    self.member_has_all(index, place, host);
                }
                (PacketKind::GroupAck, seq)
            }
            Some(Answer::AckAgain(seq)) => {
                self.summary.payload_discarded += payload;
                (PacketKind::GroupAck, seq)
            }
            Some(Answer::Nack(seq)) => {
                self.summary.payload_discarded += payload;
                (PacketKind::GroupNack, seq)
            }
        };
        self.acknowledge_to_group(nic_index, handle, kind, seq, place, host);
        self.schedule_start();
    }

    fn discard(&mut self, handle: u32) {
        self.summary.payload_discarded += u64::from(self.packets.get(handle).payload);
        self.packets.remove(handle);
    }

    fn member_has_all(&mut self, index: u32, place: usize, host: NodeId) {
        let flow = &self.flows[index as usize];
        let (tag, src, sport) = (flow.tag, flow.src, flow.sport);
        let send = &mut self.multicast.sends[flow.send as usize];
        send.members[place].closed = true;
        send.waiting -= 1;
        let (group, all) = (send.group, send.waiting == 0 && send.missed == 0);
        self.summary.members_reached += 1;
        self.recorder.member(&MemberRecord {
            tag,
            member: host,
            src,
            group,
            sport,
            delivered: Some(self.now),
        });
        if self.workload.has_dependencies() {
            self.workload.on_member_delivered(self.now, tag, host);
            if all {
                self.workload.on_delivered(self.now, tag);
            }
        }
    }

    /// As for a flow to a host, with the member as the sender of the acknowledgement.
    fn acknowledge_to_group(
        &mut self,
        nic_index: u32,
        handle: u32,
        kind: PacketKind,
        seq: u64,
        place: usize,
        host: NodeId,
    ) {
        let packet = self.packets.get_mut(handle);
        let flow = &self.flows[packet.flow as usize];
        let member = &mut self.multicast.sends[flow.send as usize].members[place];
        let ports = u32::from(flow.sport) | DPORT << 16;
        (packet.src, packet.dst) = (host, flow.src);
        packet.hash = FlowHash::new(address(host), address(flow.src), ports.rotate_left(16));
        packet.kind = kind;
        packet.seq = seq;
        packet.bytes = self.layout.ack_bytes;
        packet.payload = 0;
        if self.layout.ack_queue != 0 {
            packet.queue = self.layout.ack_queue;
        }
        if packet.marked && self.signals.echo_interval != Span::ZERO {
            packet.marked = self.now >= member.echo_after;
            if packet.marked {
                member.echo_after = self.now + self.signals.echo_interval;
            }
        }
        self.nics[nic_index as usize].acks.push_back(handle);
        self.nic_transmit(nic_index);
    }

    /// A member's acknowledgement at the sender: the group's progress is the least over the members; congestion control
    /// hears the acker.
    #[inline(never)]
    pub(super) fn receive_group_ack(&mut self, handle: u32) {
        let packet = *self.packets.get(handle);
        self.packets.remove(handle);
        let index = packet.flow;
        let flow = &mut self.flows[index as usize];
        if !flow.live {
            return;
        }
        let retransmit = self.multicast.plan.is_some_and(|plan| plan.retransmit);
        let send = &mut self.multicast.sends[flow.send as usize];
        let group = self
            .multicast
            .plan
            .map(|plan| &plan.groups[send.group as usize]);
        let Some(member) = group.and_then(|group| group.members.binary_search(&packet.src).ok())
        else {
            debug_assert!(false, "{} acknowledges a group it is not in", packet.src);
            return;
        };
        if send.progress.is_gone(member) {
            return;
        }
        let newly_acked = send.progress.on_ack(member, packet.seq);
        let progress = flow.sender.on_ack(send.progress.least());
        let complete = progress == Progress::Complete;
        let mut backed_off = false;
        if progress != Progress::Duplicate {
            backed_off = std::mem::take(&mut flow.timeouts) > 0;
            if self.semantics.retransmission_timer {
                flow.deadline = self.now + self.config.retransmission_timeout;
            }
        }
        let nack = packet.kind == PacketKind::GroupNack;
        let mut went_back = false;
        if nack {
            self.summary.nacks += 1;
            // Several members may miss one packet: what was sent before the sender went back is known to be missed.
            if retransmit && send.went_back.is_none_or(|at| packet.sent_at >= at) {
                send.went_back = Some(self.now);
                flow.sender.on_timeout();
                went_back = true;
            }
        }
        let rtt = self.now.since(packet.sent_at);
        let base = self.multicast.known[send.session as usize].base[member];
        let delay = Span(rtt.0.saturating_sub(base.0));
        let full = u64::from(self.layout.header_bytes) + self.layout.mtu;
        let margin =
            BitRate(self.limits.line_rate).transmission_time(Bytes(ACKER_MARGIN_PACKETS * full));
        let choice = send.acker.on_ack(member as u32, delay, margin);
        send.marked |= packet.marked;
        send.digest = send.digest.max(packet.digest);
        let parameters = &self.config.scheme;
        if choice == AckerChoice::Changed {
            flow.control.on_path_change();
        }
        // Congestion control hears of the end from any member: schemes stop their timers.
        let mut inspection = None;
        if choice != AckerChoice::Other || complete {
            let echo = match self.signals.telemetry {
                Telemetry::Hops if choice == AckerChoice::Other => Echo::None,
                Telemetry::Hops => Echo::Hops(packet.records(self.layout.record_room)),
                Telemetry::Digest { .. } => Echo::Digest(std::mem::take(&mut send.digest)),
                Telemetry::None | Telemetry::Timestamp => Echo::None,
            };
            let random = if self.signals.random_per_ack {
                self.chance.bits(flow.src)
            } else {
                0
            };
            let ack = Ack {
                seq: packet.seq,
                next: flow.sender.next(),
                newly_acked,
                marked: std::mem::take(&mut send.marked),
                rtt,
                echo,
                complete,
                random,
            };
            flow.control
                .on_ack(self.now, &ack, parameters, &self.limits, &mut flow.timers);
            inspection = self
                .config
                .record_acks
                .then(|| flow.control.inspect(self.now, &ack, parameters));
        }
        if went_back {
            flow.control.on_loss(self.now, parameters, &self.limits);
        }
        if complete {
            self.end_group_flow(index);
        } else if backed_off {
            self.arm_retransmission_timer(index);
        }
        self.apply_control(index);
        if let Some(inspection) = inspection {
            let heard = HeardAck {
                from: packet.src,
                nack,
                seq: packet.seq,
                marked: packet.marked,
            };
            self.record_ack(index, &heard, inspection);
        }
        self.nic_transmit(self.flows[index as usize].nic);
    }

    /// All members that are left have the message: finished only if none was given up.
    fn end_group_flow(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if self.multicast.sends[flow.send as usize].missed == 0 {
            self.complete_flow(index);
            return;
        }
        flow.live = false;
        self.live_flows -= 1;
        self.record_flow(index, None);
    }

    /// Timeouts in a row that a sender bears; none for what is under way to a group and will not be sent again.
    pub(super) fn patience(&self, index: u32) -> u32 {
        let flow = &self.flows[index as usize];
        let once = self.multicast.plan.is_some_and(|plan| !plan.retransmit);
        if flow.send != NO_SEND && once && flow.sender.in_flight() > 0 {
            return 0;
        }
        self.config.max_timeouts.min(255)
    }

    /// The sender has waited long enough for the members that are furthest behind, and goes on without them; false: there are
    /// no others, or nothing can be sent to them.
    pub(super) fn leave_slowest(&mut self, index: u32) -> bool {
        let flow = &self.flows[index as usize];
        let send = &mut self.multicast.sends[flow.send as usize];
        if self.multicast.plan.is_some_and(|plan| plan.retransmit) {
            let gone = send.progress.leave_slowest();
            for &place in &gone {
                send.acker.forget(place as u32);
            }
            self.miss(index, &gone);
        } else {
            if flow.sender.in_flight() == 0 {
                // The sender cannot even send: who waits for the rest will not get it.
                self.record_missing(index);
                return false;
            }
            // Nothing is sent again: what was sent has arrived or never will. Members may hear of the rest all the same.
            for place in 0..send.members.len() {
                send.progress.on_ack(place, flow.sender.next());
            }
            if flow.sender.next() == flow.sender.size() {
                self.record_missing(index);
            }
        }
        let flow = &mut self.flows[index as usize];
        let least = self.multicast.sends[flow.send as usize].progress.least();
        if least == u64::MAX {
            // Nobody is left but members that have it all.
            return false;
        }
        flow.timeouts = 0;
        let complete = flow.sender.on_ack(least) == Progress::Complete;
        let nic = flow.nic;
        if complete {
            self.end_group_flow(index);
        } else {
            self.arm_retransmission_timer(index);
        }
        self.nic_transmit(nic);
        true
    }

    /// Reports members that will not get the message any more, unless they have it.
    fn miss(&mut self, index: u32, places: &[usize]) {
        let flow = &self.flows[index as usize];
        let send = &mut self.multicast.sends[flow.send as usize];
        let Some(plan) = self.multicast.plan else {
            return;
        };
        let members = &plan.groups[send.group as usize].members;
        for &place in places {
            if std::mem::replace(&mut send.members[place].closed, true) {
                continue;
            }
            send.waiting -= 1;
            send.missed += 1;
            self.summary.members_missed += 1;
            self.recorder.member(&MemberRecord {
                tag: flow.tag,
                member: members[place],
                src: flow.src,
                group: send.group,
                sport: flow.sport,
                delivered: None,
            });
        }
    }

    /// The run is over: members that do not have the message of a flow to a group are reported.
    pub(super) fn record_missing(&mut self, index: u32) {
        let flow = &self.flows[index as usize];
        if flow.send == NO_SEND {
            return;
        }
        let members = self.multicast.sends[flow.send as usize].members.len();
        self.miss(index, &(0..members).collect::<Vec<_>>());
    }
}
