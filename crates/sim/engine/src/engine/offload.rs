//! In-network reductions: members on hosts and switches that compute, both of `raddle_offload`, in virtual time.
//!
//! A round of a member is a message of the workload to an [`OffloadId`]; it is delivered when the member has the result.
//! Packets are the core's own bytes, kept in a table beside the packets of the arena. They travel in the control queue, are
//! not acknowledged, and members send again what is lost. In a switch they wait for one unit that takes a time per packet.

use std::net::{Ipv4Addr, SocketAddrV4};

use raddle_dataplane::{Frame, FrameKind, QUEUE_ACKS};
use raddle_fabric::Fabric;
use raddle_offload::{
    member::{Member, MemberConfig, Outcome, RoundSpec},
    switch::{Abilities, Quotas, SiteSecret, Switch, SwitchConfig, job_key},
};
use raddle_unicast::FlowHash;
use raddle_units::{NodeId, PortId, Span, Time};
use raddle_wire::{
    DataType, Operation,
    native::{
        ChildEntry, Collective, Header, Kind as Message, MAX_BODY, PORT, ProgramHead, Unverified,
        write_program,
    },
};
use raddle_workload::{Message as Round, OffloadId};
use rustc_hash::FxHashMap;

use super::{Engine, Kind, flow::address};
use crate::{
    offload::{Offload, OffloadGroup},
    packet::{Packet, PacketKind, Segment},
    setup::SetupError,
};

/// The job of all groups.
const JOB: u32 = 1;
const SECRET: SiteSecret = SiteSecret::new([0; 32]);
/// The port of member 0; each member has its own.
const FIRST_PORT: u16 = 1024;
/// Ethernet 14, IPv4 20, UDP 8, frame check sequence 4.
const OUTSIDE: u32 = 46;
/// A round without a result for so long ends the run: there is no plain MPI to fall back to.
const GIVE_UP: Span = Span::from_ms(1_000);
const LEASE_MS: u32 = 60_000;

/// A packet's contents.
#[derive(Clone, Debug)]
struct Datagram {
    from: SocketAddrV4,
    to: SocketAddrV4,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Leader {
    core: Member,
    host: NodeId,
    /// Members of its group, and its place among them.
    size: u32,
    place: u32,
    /// The round's name for the workload.
    tag: u64,
    running: bool,
    timer: Time,
    /// Ports that lead from the host to the root.
    way: Vec<PortId>,
    root: NodeId,
}

#[derive(Debug)]
struct Unit {
    core: Switch,
    /// When its unit has done all that waits.
    free_at: Time,
}

/// All offload state of a run.
#[derive(Debug, Default)]
pub(super) struct Offloads {
    compute: Span,
    leaders: Vec<Leader>,
    units: FxHashMap<NodeId, Unit>,
    /// Ports towards switches that compute, by (where, switch): unicast tables know hosts only.
    ways: FxHashMap<(NodeId, NodeId), PortId>,
    datagrams: Vec<Datagram>,
    free: Vec<u32>,
    buffer: Vec<u8>,
}

fn ip(node: NodeId) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 | node.0)
}

fn node_of(address: Ipv4Addr) -> NodeId {
    NodeId(address.to_bits() & 0x00ff_ffff)
}

fn switch_socket(node: NodeId) -> SocketAddrV4 {
    SocketAddrV4::new(ip(node), PORT)
}

fn refuse(group: u32, problem: &str) -> SetupError {
    SetupError::Offload {
        group,
        problem: problem.to_owned(),
    }
}

/// From every switch, the port of a shortest way to `root`; the first of equals.
fn ways_to(fabric: &Fabric, root: NodeId) -> FxHashMap<NodeId, PortId> {
    let mut ways = FxHashMap::default();
    let mut open = std::collections::VecDeque::from([root]);
    while let Some(node) = open.pop_front() {
        if fabric.is_host(node) {
            continue;
        }
        for port in fabric.ports_of(node) {
            let peer = fabric.port(port.peer).node;
            if peer != root && !ways.contains_key(&peer) {
                ways.insert(peer, port.peer);
                open.push_back(peer);
            }
        }
    }
    ways
}

/// A node of a group's tree: its parent, and its children with the least member below each.
#[derive(Debug, Default)]
struct Place {
    parent: Option<NodeId>,
    children: Vec<(u32, SocketAddrV4)>,
}

impl Offloads {
    pub(super) fn new(plan: Option<&Offload>, fabric: &Fabric) -> Result<Self, SetupError> {
        let mut made = Self::default();
        let Some(plan) = plan else {
            return Ok(made);
        };
        made.compute = plan.compute;
        made.buffer = vec![0; Header::SIZE + MAX_BODY];
        for (index, group) in (0..).zip(&plan.groups) {
            made.install(plan, fabric, index, group)?;
        }
        Ok(made)
    }

    /// The tree of a group: ways of its members to the root, in order of members.
    fn install(
        &mut self,
        plan: &Offload,
        fabric: &Fabric,
        index: u32,
        group: &OffloadGroup,
    ) -> Result<(), SetupError> {
        let root = group.root;
        if root.index() >= fabric.node_count() || fabric.is_host(root) {
            return Err(refuse(index, "the root is not a switch of this fabric"));
        }
        let room = usize::from(u16::MAX - FIRST_PORT) - self.leaders.len();
        if group.members.len() < 2 || group.members.len() > room {
            return Err(refuse(
                index,
                "a group has at least two members, a run 64,511",
            ));
        }
        let ways = ways_to(fabric, root);
        // Places in order of first meeting, members' switches before the root's.
        let mut places: Vec<(NodeId, Place)> = Vec::new();
        for (member, &host) in (0..).zip(&group.members) {
            if host.index() >= fabric.node_count() || !fabric.is_host(host) {
                return Err(refuse(index, "a member is not a host of this fabric"));
            }
            if fabric.ports_of(host).len() != 1 {
                return Err(refuse(index, "a member's host has several ports"));
            }
            let socket = SocketAddrV4::new(ip(host), FIRST_PORT + self.leaders.len() as u16);
            let mut child = (member, socket);
            let mut at = fabric.port(fabric.port(fabric.first_port(host)).peer).node;
            let leaf = at;
            loop {
                let found = places.iter().position(|place| place.0 == at);
                let place = found.unwrap_or_else(|| {
                    places.push((at, Place::default()));
                    places.len() - 1
                });
                places[place].1.children.push(child);
                if found.is_some() || at == root {
                    break;
                }
                let Some(&port) = ways.get(&at) else {
                    return Err(refuse(index, "no path leads from a member to the root"));
                };
                let parent = fabric.port(fabric.port(port).peer).node;
                places[place].1.parent = Some(parent);
                child = (member, switch_socket(at));
                at = parent;
            }
            let mut way = vec![fabric.first_port(host)];
            let mut at = leaf;
            while let Some(&port) = ways.get(&at) {
                way.push(port);
                at = fabric.port(fabric.port(port).peer).node;
            }
            self.add_member(plan, index, group, member, host, leaf);
            if let Some(leader) = self.leaders.last_mut() {
                leader.way = way;
            }
        }
        // Top first, as the master does it.
        for (node, place) in places.iter().rev() {
            self.add_switch(plan, index, *node, place, group.members.len() as u32)?;
        }
        // Parents and children are neighbours.
        for (node, place) in &places {
            for (_, child) in &place.children {
                let child = node_of(*child.ip());
                let link = fabric
                    .ports_of(*node)
                    .iter()
                    .position(|port| fabric.port(port.peer).node == child);
                let Some(link) = link else {
                    return Err(refuse(index, "a child is not next to its parent"));
                };
                let down = PortId(fabric.first_port(*node).0 + link as u32);
                self.ways.insert((*node, child), down);
                self.ways.insert((child, *node), fabric.port(down).peer);
            }
        }
        Ok(())
    }

    fn add_member(
        &mut self,
        plan: &Offload,
        group: u32,
        members: &OffloadGroup,
        member: u32,
        host: NodeId,
        leaf: NodeId,
    ) {
        let config = MemberConfig {
            job: JOB,
            key: job_key(&SECRET, JOB),
            group,
            member,
            switch: switch_socket(leaf),
            slots: plan.slots,
            segment_bytes: plan.segment_bytes,
            operands: 1,
            lease: Span::from_ms(u64::from(LEASE_MS)),
            retry: plan.retry,
            give_up: GIVE_UP,
        };
        let mut core = Member::new(Time::ZERO, config);
        // Its first lease, which tells the switch nothing new.
        while core.poll_transmit(&mut self.buffer).is_some() {}
        self.leaders.push(Leader {
            core,
            host,
            size: members.members.len() as u32,
            place: member,
            tag: 0,
            running: false,
            timer: Time::NEVER,
            way: Vec::new(),
            root: members.root,
        });
    }

    /// Tells a switch its part of a group by the core's own message.
    fn add_switch(
        &mut self,
        plan: &Offload,
        group: u32,
        node: NodeId,
        place: &Place,
        size: u32,
    ) -> Result<(), SetupError> {
        let unit = self.units.entry(node).or_insert_with(|| Unit {
            core: Switch::new(SwitchConfig {
                address: ip(node),
                tier: 1,
                epoch: 1,
                secret: SECRET,
                quotas: Quotas::default(),
                abilities: Abilities::default(),
            }),
            free_at: Time::ZERO,
        });
        let children: Vec<ChildEntry> = place
            .children
            .iter()
            .map(|&(rank, socket)| ChildEntry {
                address: *socket.ip(),
                port: socket.port(),
                operands: 1,
                rank,
            })
            .collect();
        let master = self
            .leaders
            .last()
            .map_or(Ipv4Addr::UNSPECIFIED, |leader| ip(leader.host));
        let head = ProgramHead {
            parent: place.parent.map_or(Ipv4Addr::UNSPECIFIED, ip),
            master,
            group_size: size,
            lease_ms: LEASE_MS,
            slots: plan.slots,
            segment_bytes: plan.segment_bytes,
            ..ProgramHead::default()
        };
        let mut body = vec![0; MAX_BODY];
        let header = Header {
            group,
            ..Header::of(Message::Program, JOB)
        };
        let written = write_program(&mut body, &head, &children, &[], &[]).and_then(|length| {
            header.write_message(&mut self.buffer, &body[..length], &job_key(&SECRET, JOB))
        });
        let Ok(length) = written else {
            return Err(refuse(group, "a switch has too many children"));
        };
        let from = SocketAddrV4::new(master, FIRST_PORT);
        unit.core
            .handle_packet(Time::ZERO, from, &self.buffer[..length]);
        let mut installed = false;
        while let Some((_, length)) = unit.core.poll_transmit(&mut self.buffer) {
            let answer = Unverified::parse(&self.buffer[..length], 0);
            installed |= answer.is_ok_and(|answer| answer.kind() == Message::Lease);
        }
        while unit.core.poll_event().is_some() {}
        if installed {
            Ok(())
        } else {
            Err(refuse(
                group,
                "a switch has no room for it: use fewer or smaller slots",
            ))
        }
    }

    fn keep(&mut self, datagram: Datagram) -> u32 {
        if let Some(place) = self.free.pop() {
            self.datagrams[place as usize] = datagram;
            return place;
        }
        self.datagrams.push(datagram);
        (self.datagrams.len() - 1) as u32
    }

    fn take(&mut self, place: u32) -> Datagram {
        self.free.push(place);
        let empty = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let gone = Datagram {
            from: empty,
            to: empty,
            bytes: Vec::new(),
        };
        std::mem::replace(&mut self.datagrams[place as usize], gone)
    }

    /// A packet is lost.
    pub(super) fn forget(&mut self, place: u32) {
        self.take(place);
    }

    /// Members of all groups.
    pub(super) fn members(&self) -> u32 {
        self.leaders.len() as u32
    }

    /// A member's host, the root of its tree, the port that its packets come from, and the ports that lead from one to the
    /// other.
    pub(super) fn way(&self, member: u32) -> (NodeId, NodeId, u16, Vec<PortId>) {
        let leader = &self.leaders[member as usize];
        let sport = FIRST_PORT + member as u16;
        (leader.host, leader.root, sport, leader.way.clone())
    }

    /// When a member's timer is due.
    pub(super) fn timer(&self, member: u32) -> Time {
        self.leaders[member as usize].timer
    }
}

/// What member `place` of `size` brings: elements place + 1 as floats, or bytes of 1; and the sum, exact up to 2^24.
fn values(place: u32, size: u32, bytes: usize) -> (DataType, usize, Vec<u8>, Vec<u8>) {
    if bytes.is_multiple_of(4) {
        let repeat = |value: f32| value.to_be_bytes().repeat(bytes / 4);
        let sum = size as f32 * (size + 1) as f32 / 2.0;
        let own = repeat((place + 1) as f32);
        return (DataType::Float, bytes / 4, own, repeat(sum));
    }
    let own = vec![1; bytes];
    (DataType::Uint8, bytes, own, vec![size as u8; bytes])
}

impl Engine<'_> {
    /// A member begins its next round.
    pub(super) fn start_round(&mut self, message: Round, id: OffloadId) {
        let refuse = |problem| SetupError::OffloadRound {
            tag: message.tag,
            member: id.0,
            problem,
        };
        let now = self.now;
        let Some(leader) = self.offload.leaders.get_mut(id.0 as usize) else {
            return self.stop(refuse("which is in none of the run's groups"));
        };
        if leader.host != message.src {
            return self.stop(refuse("which is on another host"));
        }
        let bytes = message.size.0 as usize;
        let (data_type, count, own, _) = values(leader.place, leader.size, bytes);
        let spec = RoundSpec {
            collective: Collective::Allreduce,
            operation: Some(Operation::Sum),
            data_type: Some(data_type),
            count,
            ordered: false,
            root: 0,
        };
        if leader.core.start(now, &spec, &own).is_err() {
            return self.stop(refuse("whose last round is not over"));
        }
        (leader.tag, leader.running) = (message.tag, true);
        self.drain_member(id.0);
    }

    /// Sends what a member has to send, and sets its timer.
    fn drain_member(&mut self, member: u32) {
        let place = member as usize;
        let host = self.offload.leaders[place].host;
        let from = SocketAddrV4::new(ip(host), FIRST_PORT + member as u16);
        let nic = self.ends[self.fabric.first_port(host).index()].device;
        let mut buffer = std::mem::take(&mut self.offload.buffer);
        while let Some((to, length)) = self.offload.leaders[place].core.poll_transmit(&mut buffer) {
            let handle = self.offload_packet(host, from, to, &buffer[..length]);
            self.nics[nic as usize].acks.push_back(handle);
        }
        self.offload.buffer = buffer;
        self.nic_transmit(nic);
        let leader = &mut self.offload.leaders[place];
        let due = leader.core.poll_timeout().filter(|_| leader.running);
        let due = due.unwrap_or(Time::NEVER);
        if due != leader.timer {
            leader.timer = due;
            if due != Time::NEVER {
                let port = self.fabric.first_port(host);
                let key = self.keys.next(Kind::Retry, port, member);
                self.push(due, key, Kind::Retry.pack(0, member));
            }
        }
    }

    pub(super) fn member_timer(&mut self, member: u32) {
        let now = self.now;
        let leader = &mut self.offload.leaders[member as usize];
        leader.timer = Time::NEVER;
        leader.core.handle_timeout(now);
        if matches!(leader.core.outcome(), Outcome::Overdue | Outcome::Failed(_)) {
            let (tag, problem) = (leader.tag, "which has waited one second for its result");
            return self.stop(SetupError::OffloadRound {
                tag,
                member,
                problem,
            });
        }
        self.drain_member(member);
    }

    fn offload_packet(
        &mut self,
        src: NodeId,
        from: SocketAddrV4,
        to: SocketAddrV4,
        bytes: &[u8],
    ) -> u32 {
        let datagram = Datagram {
            from,
            to,
            bytes: bytes.to_vec(),
        };
        let dst = node_of(*to.ip());
        let ports = u32::from(from.port()) | u32::from(to.port()) << 16;
        let mut packet = Packet::data(Segment {
            flow: self.offload.keep(datagram),
            generation: 0,
            src,
            dst,
            hash: FlowHash::new(address(src), address(dst), ports),
            queue: QUEUE_ACKS,
            seq: 0,
            sent_at: self.now,
            bytes: bytes.len() as u32 + OUTSIDE,
            payload: 0,
        });
        packet.kind = PacketKind::Offload;
        self.packets.insert(packet)
    }

    /// A packet of a reduction is wholly received at a switch: its own, or one that goes on.
    pub(super) fn offload_arrives(&mut self, port: PortId, handle: u32) {
        let node = self.ends[port.index()].node;
        if self.packets.get(handle).dst != node {
            return self.offload_forward(port, handle);
        }
        let (now, compute) = (self.now, self.offload.compute);
        let Some(unit) = self.offload.units.get_mut(&node) else {
            return self.drop_packet(handle);
        };
        unit.free_at = unit.free_at.max(now) + compute;
        let at = unit.free_at;
        let first = self.fabric.first_port(node);
        let key = self.keys.next(Kind::Compute, first, handle);
        self.push(at, key, Kind::Compute.pack(first.0, handle));
    }

    /// The unit of a switch is through with a packet.
    pub(super) fn computed(&mut self, first: PortId, handle: u32) {
        let node = self.ends[first.index()].node;
        let place = self.packets.get(handle).flow;
        self.packets.remove(handle);
        let datagram = self.offload.take(place);
        let now = self.now;
        let Some(unit) = self.offload.units.get_mut(&node) else {
            return;
        };
        unit.core.handle_packet(now, datagram.from, &datagram.bytes);
        let from = switch_socket(node);
        let mut buffer = std::mem::take(&mut self.offload.buffer);
        while let Some(unit) = self.offload.units.get_mut(&node)
            && let Some((to, length)) = unit.core.poll_transmit(&mut buffer)
        {
            let handle = self.offload_packet(node, from, to, &buffer[..length]);
            self.offload_forward(first, handle);
        }
        self.offload.buffer = buffer;
    }

    /// Sends a packet on from the switch that `port` is on.
    fn offload_forward(&mut self, port: PortId, handle: u32) {
        let node = self.ends[port.index()].node;
        let packet = self.packets.get(handle);
        let (dst, hash, bytes) = (packet.dst, packet.hash, packet.bytes);
        let out = if self.fabric.is_host(dst) {
            self.router.next_hop(node, dst, hash)
        } else {
            self.offload.ways.get(&(node, dst)).copied()
        };
        let Some(out) = out.filter(|out| self.ends[out.index()].up) else {
            self.history[port.index()].lost += 1;
            return self.drop_packet(handle);
        };
        let end = &self.ends[out.index()];
        let (device, index) = (end.device as usize, end.index);
        let frame = Frame {
            handle,
            bytes,
            // The control queue has no account of where packets came in.
            in_port: index,
            queue: QUEUE_ACKS,
            kind: FrameKind::Plain,
        };
        match self.switches[device].enqueue(index, frame) {
            Ok(_) => self.switch_transmit(out),
            Err(raddle_dataplane::Refused) => self.drop_packet(handle),
        }
    }

    /// A packet of a reduction is wholly received at a host.
    pub(super) fn receive_offload(&mut self, handle: u32) {
        let place = self.packets.get(handle).flow;
        self.packets.remove(handle);
        let datagram = self.offload.take(place);
        let member = u32::from(datagram.to.port().wrapping_sub(FIRST_PORT));
        let now = self.now;
        let Some(leader) = self.offload.leaders.get_mut(member as usize) else {
            return;
        };
        leader.core.handle_packet(now, &datagram.bytes);
        if leader.running
            && let Outcome::Done(result) = leader.core.outcome()
        {
            let (_, _, _, sum) = values(leader.place, leader.size, result.len());
            if result == sum {
                self.summary.reductions += 1;
            } else {
                self.summary.wrong_reductions += 1;
            }
            leader.running = false;
            let tag = leader.tag;
            self.drain_member(member);
            self.workload.on_delivered(now, tag);
            self.schedule_start();
            return;
        }
        self.drain_member(member);
    }
}
