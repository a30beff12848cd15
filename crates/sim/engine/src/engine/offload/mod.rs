//! In-network reductions: members on hosts and switches that compute, both of `raddle_offload`, in virtual time.
//!
//! A round of a member is a message of the workload to an [`OffloadId`]; it is delivered when the member has the result.
//! Packets are the core's own bytes, kept in a table beside the packets of the arena. They travel in the control queue and
//! are not acknowledged. In a switch they wait for one unit that takes a time per packet.
//!
//! | file | what differs between the protocols |
//! |---|---|
//! | `native.rs` | a tree of all switches on the way; members send again what is lost |
//! | `published.rs` | leaf switches below one root; what is lost ends the run |

mod native;
mod published;

use std::net::{Ipv4Addr, SocketAddrV4};

use raddle_dataplane::{Frame, FrameKind, QUEUE_ACKS};
use raddle_fabric::Fabric;
use raddle_offload::{
    member::{Member, Outcome, RoundSpec},
    published::{self as paper, Verdict},
    switch::Switch,
};
use raddle_unicast::FlowHash;
use raddle_units::{NodeId, PortId, Span, Time};
use raddle_wire::{
    DataType, Operation,
    native::{Collective, PORT},
};
use raddle_workload::{Message as Round, OffloadId};
use rustc_hash::FxHashMap;

use super::{Engine, Kind, flow::address};
use crate::{
    offload::{Offload, OffloadGroup, OffloadProtocol},
    packet::{Packet, PacketKind, Segment},
    setup::SetupError,
};

/// The port of member 0; each member has its own.
const FIRST_PORT: u16 = 1024;
/// A round without a result for so long ends the run: there is no plain MPI to fall back to.
const GIVE_UP: Span = Span::from_ms(1_000);

/// A packet's contents: our message, or the published protocol's frame.
#[derive(Clone, Debug)]
struct Datagram {
    from: SocketAddrV4,
    to: SocketAddrV4,
    bytes: Vec<u8>,
}

/// A member's side of a protocol.
#[derive(Debug)]
enum Speaker {
    Native(Box<Member>),
    Published(Box<paper::Leader>),
}

impl Speaker {
    /// Begins a round that adds up; false if the last one is not over, or the protocol cannot carry it.
    fn start(&mut self, now: Time, data_type: DataType, count: usize, own: &[u8]) -> bool {
        match self {
            Self::Native(core) => {
                let spec = RoundSpec {
                    collective: Collective::Allreduce,
                    operation: Some(Operation::Sum),
                    data_type: Some(data_type),
                    count,
                    ordered: false,
                    root: 0,
                };
                core.start(now, &spec, own).is_ok()
            }
            Self::Published(core) => core.start(now, Operation::Sum, data_type, own).is_some(),
        }
    }

    fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
        match self {
            Self::Native(core) => core.poll_transmit(buffer),
            Self::Published(core) => core
                .poll_transmit(buffer)
                .map(|(to, length)| (SocketAddrV4::new(to, 0), length)),
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        match self {
            Self::Native(core) => core.poll_timeout(),
            Self::Published(core) => core.poll_timeout(),
        }
    }

    /// False if the round has no result and never will.
    fn handle_timeout(&mut self, now: Time) -> bool {
        match self {
            Self::Native(core) => {
                core.handle_timeout(now);
                !matches!(core.outcome(), Outcome::Overdue | Outcome::Failed(_))
            }
            Self::Published(core) => {
                core.handle_timeout(now);
                core.outcome(now) != paper::Outcome::Overdue
            }
        }
    }

    fn result(&self, now: Time) -> Option<&[u8]> {
        match self {
            Self::Native(core) => match core.outcome() {
                Outcome::Done(result) => Some(result),
                _ => None,
            },
            Self::Published(core) => match core.outcome(now) {
                paper::Outcome::Done(result) => Some(result),
                _ => None,
            },
        }
    }
}

#[derive(Debug)]
struct Leader {
    core: Speaker,
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

/// A switch's side of a protocol.
#[derive(Debug)]
enum Adder {
    Native(Box<Switch>),
    Published(Box<paper::Switch>),
}

impl Adder {
    fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<(SocketAddrV4, usize)> {
        match self {
            Self::Native(core) => core.poll_transmit(buffer),
            Self::Published(core) => loop {
                let (transmit, length) = core.poll_transmit(buffer)?;
                if let Some(to) = published::destination(transmit, &buffer[..length]) {
                    return Some((SocketAddrV4::new(to, 0), length));
                }
            },
        }
    }
}

#[derive(Debug)]
struct Unit {
    core: Adder,
    /// When each of its places for a packet has done all that waits.
    free_at: Vec<Time>,
}

impl Unit {
    /// A unit with places for so many packets, 1 at least.
    fn new(core: Adder, places: u32) -> Self {
        Self {
            core,
            free_at: vec![Time::ZERO; places.max(1) as usize],
        }
    }

    /// When a packet that comes now is done: the place that is free first takes it.
    fn work(&mut self, now: Time, compute: Span) -> Time {
        let place = self.free_at.iter_mut().min();
        place.map_or(now + compute, |free_at| {
            *free_at = now.max(*free_at) + compute;
            *free_at
        })
    }
}

/// All offload state of a run.
#[derive(Debug, Default)]
pub(super) struct Offloads {
    protocol: OffloadProtocol,
    compute: Span,
    /// Packets that a unit works on at the same time.
    places: u32,
    leaders: Vec<Leader>,
    /// Members of each host: a published packet names a queue pair, which is free to be another group's too.
    on_host: FxHashMap<NodeId, Vec<u32>>,
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

/// The node at the other end of a port's link.
fn behind(fabric: &Fabric, port: PortId) -> NodeId {
    fabric.port(fabric.port(port).peer).node
}

/// The ports that lead from each member's host to the root, in order of members.
fn member_ways(
    fabric: &Fabric,
    index: u32,
    group: &OffloadGroup,
) -> Result<Vec<Vec<PortId>>, SetupError> {
    let root = group.root;
    if root.index() >= fabric.node_count() || fabric.is_host(root) {
        return Err(refuse(index, "the root is not a switch of this fabric"));
    }
    let to_root = ways_to(fabric, root);
    let way = |host: NodeId| {
        if host.index() >= fabric.node_count() || !fabric.is_host(host) {
            return Err(refuse(index, "a member is not a host of this fabric"));
        }
        if fabric.ports_of(host).len() != 1 {
            return Err(refuse(index, "a member's host has several ports"));
        }
        let mut way = vec![fabric.first_port(host)];
        let mut at = behind(fabric, way[0]);
        while at != root {
            let Some(&port) = to_root.get(&at) else {
                return Err(refuse(index, "no path leads from a member to the root"));
            };
            way.push(port);
            at = behind(fabric, port);
        }
        Ok(way)
    };
    group.members.iter().map(|&host| way(host)).collect()
}

impl Offloads {
    pub(super) fn new(plan: Option<&Offload>, fabric: &Fabric) -> Result<Self, SetupError> {
        let mut made = Self::default();
        let Some(plan) = plan else {
            return Ok(made);
        };
        made.protocol = plan.protocol;
        (made.compute, made.places) = (plan.compute, plan.units);
        made.buffer = vec![0; native::BUFFER];
        for (index, group) in (0..).zip(&plan.groups) {
            let room = usize::from(u16::MAX - FIRST_PORT) - made.leaders.len();
            if group.members.len() < 2 || group.members.len() > room {
                return Err(refuse(
                    index,
                    "a group has at least two members, a run 64,511",
                ));
            }
            let ways = member_ways(fabric, index, group)?;
            match plan.protocol {
                OffloadProtocol::Native => {
                    made.install_native(plan, fabric, index, group, ways)?;
                }
                OffloadProtocol::Published(transport) => {
                    made.install_published(transport, fabric, index, group, ways)?;
                }
            }
        }
        Ok(made)
    }

    /// Adds a member, whose port follows the last one's.
    fn add_leader(&mut self, core: Speaker, group: &OffloadGroup, place: u32, way: Vec<PortId>) {
        let host = group.members[place as usize];
        let number = self.leaders.len() as u32;
        self.on_host.entry(host).or_default().push(number);
        self.leaders.push(Leader {
            core,
            host,
            size: group.members.len() as u32,
            place,
            tag: 0,
            running: false,
            timer: Time::NEVER,
            way,
            root: group.root,
        });
    }

    /// Bytes on the wire around what the core writes.
    const fn outside(&self) -> u32 {
        match self.protocol {
            OffloadProtocol::Native => native::OUTSIDE,
            OffloadProtocol::Published(_) => published::OUTSIDE,
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

    /// Gives a packet to the member that it is for, and says which that is.
    fn hand_over(&mut self, now: Time, host: NodeId, datagram: &Datagram) -> Option<u32> {
        if self.protocol == OffloadProtocol::Native {
            let member = u32::from(datagram.to.port().wrapping_sub(FIRST_PORT));
            let leader = self.leaders.get_mut(member as usize)?;
            if let Speaker::Native(core) = &mut leader.core {
                core.handle_packet(now, &datagram.bytes);
            }
            return Some(member);
        }
        let mut members = self.on_host.get(&host)?.iter().copied();
        members.find(|&member| match &mut self.leaders[member as usize].core {
            Speaker::Published(core) => core.handle_frame(now, &datagram.bytes),
            Speaker::Native(_) => false,
        })
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
        if leader.running {
            return self.stop(refuse("whose last round is not over"));
        }
        if !leader.core.start(now, data_type, count, &own) {
            return self.stop(refuse("whose protocol cannot carry so many bytes"));
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
        if !leader.core.handle_timeout(now) {
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
        let outside = self.offload.outside();
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
            bytes: bytes.len() as u32 + outside,
            payload: 0,
        });
        packet.kind = PacketKind::Offload;
        self.packets.insert(packet)
    }

    /// A packet of a reduction is wholly received at a switch: it is for its unit, or goes on. A leaf switch of the published
    /// protocol takes what one of its hosts sends to another.
    pub(super) fn offload_arrives(&mut self, port: PortId, handle: u32) {
        let node = self.ends[port.index()].node;
        let dst = self.packets.get(handle).dst;
        let published = self.offload.protocol != OffloadProtocol::Native;
        if dst != node && !(published && self.fabric.is_host(dst)) {
            return self.offload_forward(port, handle);
        }
        let (now, compute) = (self.now, self.offload.compute);
        let Some(unit) = self.offload.units.get_mut(&node) else {
            return self.drop_packet(handle);
        };
        let at = unit.work(now, compute);
        let first = self.fabric.first_port(node);
        let key = self.keys.next(Kind::Compute, first, handle);
        self.push(at, key, Kind::Compute.pack(first.0, handle));
    }

    /// The unit of a switch is through with a packet.
    pub(super) fn computed(&mut self, first: PortId, handle: u32) {
        let node = self.ends[first.index()].node;
        let place = self.packets.get(handle).flow;
        self.packets.remove(handle);
        let mut datagram = self.offload.take(place);
        let now = self.now;
        let Some(unit) = self.offload.units.get_mut(&node) else {
            return;
        };
        let passes = match &mut unit.core {
            Adder::Native(core) => {
                core.handle_packet(now, datagram.from, &datagram.bytes);
                false
            }
            Adder::Published(core) => matches!(
                core.handle_frame(now, &mut datagram.bytes),
                Verdict::Forward | Verdict::Rewritten(_)
            ),
        };
        if passes {
            let handle = self.offload_packet(node, datagram.from, datagram.to, &datagram.bytes);
            self.offload_forward(first, handle);
        }
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
        let packet = self.packets.get(handle);
        let (place, host) = (packet.flow, packet.dst);
        self.packets.remove(handle);
        let datagram = self.offload.take(place);
        let Some(member) = self.offload.hand_over(self.now, host, &datagram) else {
            return;
        };
        let (now, leader) = (self.now, &mut self.offload.leaders[member as usize]);
        if leader.running
            && let Some(result) = leader.core.result(now)
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
