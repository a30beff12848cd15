//! In-network reductions: members on hosts and switches that compute, both of `raddle_offload`, in virtual time.
//!
//! A round of a member is a message of the workload to a [`raddle_workload::OffloadId`]; it is delivered when the member has the result.
//! Packets are the core's own bytes, kept in a table beside the packets of the arena. They travel in the control queue and
//! are not acknowledged. In a switch they wait for one unit that takes a time per packet.
//!
//! | file | what |
//! |---|---|
//! | `run.rs` | rounds, packets and timers while the run goes on |
//! | `native.rs` | a tree of all switches on the way; members send again what is lost |
//! | `published.rs` | leaf switches below one root; what is lost ends the run |

mod native;
mod published;
mod run;

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, SocketAddrV4},
};

use raddle_fabric::Fabric;
use raddle_offload::{
    member::{Member, Outcome, RoundSpec},
    published as paper,
    switch::Switch,
};
use raddle_units::{NodeId, PortId, Span, Time};
use raddle_wire::{
    DataType, Operation,
    native::{Collective, PORT},
};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::{
    index::{List, MemberIndex},
    offload::{LostPackets, Offload, OffloadGroup, OffloadProtocol},
    setup::SetupError,
};

/// The port of member 0; each member has its own.
const FIRST_PORT: u16 = 1024;
/// No packet of either protocol is shorter: both have the headers of Ethernet, IPv4 and UDP, and a frame check sequence.
pub(super) const LEAST_BYTES: u32 = native::OUTSIDE;
/// A round without a result for so long ends the run: there is no plain MPI to fall back to.
const GIVE_UP: Span = Span::from_ms(1_000);

/// A packet's contents: our message, or the published protocol's frame.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Datagram {
    from: SocketAddrV4,
    to: SocketAddrV4,
    bytes: Vec<u8>,
}

impl Default for Datagram {
    fn default() -> Self {
        let nobody = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        Self {
            from: nobody,
            to: nobody,
            bytes: Vec::new(),
        }
    }
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
    /// Packets that came for it, and that it sent, where they are counted.
    packets: [u64; 2],
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
    /// Packets that it has taken: their order where several are done at the same time.
    taken: u32,
}

impl Unit {
    /// A unit with places for so many packets, 1 at least.
    fn new(core: Adder, places: u32) -> Self {
        Self {
            core,
            free_at: vec![Time::ZERO; places.max(1) as usize],
            taken: 0,
        }
    }

    /// When a packet that comes now is done, and its number: the place that is free first takes it.
    fn work(&mut self, now: Time, compute: Span) -> (Time, u32) {
        self.taken = self.taken.wrapping_add(1);
        let place = self.free_at.iter_mut().min();
        let done = place.map_or(now + compute, |free_at| {
            *free_at = now.max(*free_at) + compute;
            *free_at
        });
        (done, self.taken)
    }
}

/// All offload state of a run.
#[derive(Debug, Default)]
pub(super) struct Offloads {
    protocol: OffloadProtocol,
    compute: Span,
    /// Packets that a unit works on at the same time.
    places: u32,
    leaders: List<MemberIndex, Leader>,
    /// Members of each host: a published packet names a queue pair, which is free to be another group's too.
    on_host: FxHashMap<NodeId, Vec<MemberIndex>>,
    units: FxHashMap<NodeId, Unit>,
    /// Ports towards switches that compute, by (where, switch): unicast tables know hosts only.
    ways: FxHashMap<(NodeId, NodeId), PortId>,
    buffer: Vec<u8>,
    lost: Vec<LostPackets>,
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
        // Of several links a member uses the first.
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

impl OffloadGroup {
    /// The switches of its tree, ascending.
    ///
    /// # Errors
    /// A member that is no host, or a root that its members do not reach.
    pub fn switches(&self, fabric: &Fabric) -> Result<Vec<NodeId>, SetupError> {
        let ways = member_ways(fabric, 0, self)?;
        let ports = ways.into_iter().flatten();
        let switches: BTreeSet<NodeId> = ports.map(|port| behind(fabric, port)).collect();
        Ok(switches.into_iter().collect())
    }
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
        made.lost.clone_from(&plan.lost);
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
        let member = self.leaders.push(Leader {
            core,
            host,
            size: group.members.len() as u32,
            place,
            tag: 0,
            running: false,
            packets: [0; 2],
            timer: Time::NEVER,
            way,
            root: group.root,
        });
        self.on_host.entry(host).or_default().push(member);
    }

    /// Members of all groups.
    pub(super) fn members(&self) -> impl Iterator<Item = MemberIndex> + use<> {
        self.leaders.places()
    }

    /// A member's host, the root of its tree, the port that its packets come from, and the ports that lead from one to the
    /// other.
    pub(super) fn way(&self, member: MemberIndex) -> (NodeId, NodeId, u16, &[PortId]) {
        let leader = &self.leaders[member];
        (leader.host, leader.root, sport(member), &leader.way)
    }

    /// When a member's timer is due.
    pub(super) fn timer(&self, member: MemberIndex) -> Time {
        self.leaders[member].timer
    }
}

/// The port that a member's packets come from.
const fn sport(member: MemberIndex) -> u16 {
    FIRST_PORT + member.0 as u16
}
