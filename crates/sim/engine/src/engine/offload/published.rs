//! The protocol of Li et al. (2022): leaf switches (TORs) hold the packets of a round and send one to the root (the SPINE).
//!
//! Query and notify pass before the run begins, through the same cores; they take no simulated time. The root is the plan's:
//! all of them go by way of it, so that no other SPINE is there to choose. Nothing is sent again (see
//! [`raddle_offload::published`]).

use std::{
    collections::{BTreeMap, VecDeque},
    net::Ipv4Addr,
};

use raddle_fabric::Fabric;
use raddle_offload::{
    published::{
        FRAME_ROOM, Leader, LeaderConfig, Refusal, Stage, Switch, SwitchConfig, Terms, Tier,
        Transmit, Transport, Verdict,
    },
    roles::Roles,
};
use raddle_units::{NodeId, PortId, Time};

use super::{Adder, GIVE_UP, Offloads, Speaker, Unit, behind, ip, node_of, refuse};
use crate::{offload::OffloadGroup, setup::SetupError};

/// Frame check sequence: the core writes the rest of the frame.
pub(super) const OUTSIDE: u32 = 4;
/// Group numbers below are reserved, and the greatest is 254 (3b, section 4).
const FIRST_GROUP: u32 = 3;
const MOST_GROUPS: u32 = 252;

/// Where a frame goes.
pub(super) fn destination(transmit: Transmit, frame: &[u8]) -> Option<Ipv4Addr> {
    match transmit {
        Transmit::Released => address(frame),
        Transmit::To(address) => Some(address),
    }
}

/// The IPv4 destination of a frame.
pub(super) fn address(frame: &[u8]) -> Option<Ipv4Addr> {
    let found = raddle_wire::Datagram::find(frame).ok().flatten()?;
    Some(found.ipv4.destination())
}

/// A group while it is set up.
struct SetUp<'a> {
    fabric: &'a Fabric,
    root: NodeId,
    leaders: Vec<Leader>,
    hosts: &'a [NodeId],
    /// Frames on their way, each at the node that has it.
    frames: VecDeque<(NodeId, Vec<u8>)>,
}

impl SetUp<'_> {
    fn leaf(&self, host: NodeId) -> NodeId {
        behind(self.fabric, self.fabric.first_port(host))
    }

    /// Switches that compute are met only: the leaf below, the root, the leaf above.
    fn next(&self, at: NodeId, to: Ipv4Addr) -> NodeId {
        let to = node_of(to);
        if self.fabric.is_host(at) {
            return self.leaf(at);
        }
        let below = if self.fabric.is_host(to) {
            self.leaf(to)
        } else {
            to
        };
        match (at == below, at == self.root) {
            (true, _) => to,
            (_, true) => below,
            _ => self.root,
        }
    }

    /// Lets leaders and switches talk until all are silent.
    fn talk(&mut self, offloads: &mut Offloads) {
        let mut buffer = [0; FRAME_ROOM];
        loop {
            for (place, &host) in self.hosts.iter().enumerate() {
                while let Some((to, length)) = self.leaders[place].poll_transmit(&mut buffer) {
                    let next = self.next(host, to);
                    self.frames.push_back((next, buffer[..length].to_vec()));
                }
            }
            let Some((at, mut frame)) = self.frames.pop_front() else {
                return;
            };
            if self.fabric.is_host(at) {
                for (leader, &host) in self.leaders.iter_mut().zip(self.hosts) {
                    if host == at && leader.handle_frame(Time::ZERO, &frame) {
                        break;
                    }
                }
                continue;
            }
            let unit = offloads.units.get_mut(&at);
            let Some(Adder::Published(core)) = unit.map(|unit| &mut unit.core) else {
                continue;
            };
            let verdict = core.handle_frame(Time::ZERO, &mut frame);
            let mut sent = Vec::new();
            if let Verdict::Forward | Verdict::Rewritten(_) = verdict {
                sent.extend(address(&frame).map(|to| (to, frame)));
            }
            while let Some((transmit, length)) = core.poll_transmit(&mut buffer) {
                let to = destination(transmit, &buffer[..length]);
                sent.extend(to.map(|to| (to, buffer[..length].to_vec())));
            }
            for (to, frame) in sent {
                self.frames.push_back((self.next(at, to), frame));
            }
        }
    }

    /// What leaders agree on by plain MPI: rank 0's SPINE, then terms that all have.
    fn agree(mut self, offloads: &mut Offloads) -> Result<Vec<Leader>, u8> {
        self.talk(offloads);
        let Stage::Collected(spine) = self.leaders[0].stage() else {
            return Err(Refusal::NoAnswer.code());
        };
        for leader in &mut self.leaders {
            leader.notify(spine, 0);
        }
        self.talk(offloads);
        let terms = self.leaders.iter().map(|leader| match leader.stage() {
            Stage::Set(terms) => terms,
            _ => Terms::refused(Refusal::NoAnswer),
        });
        let terms = terms
            .reduce(Terms::join)
            .unwrap_or(Terms::refused(Refusal::NoAnswer));
        if !terms.usable() {
            return Err(terms.fail_cause);
        }
        for leader in &mut self.leaders {
            leader.open(terms);
        }
        Ok(self.leaders)
    }
}

/// Leaders of each host, of a group in which all hosts have as many, one after the other; equations (1) to (6) know no other.
fn sockets(members: &[NodeId]) -> Option<u32> {
    let sockets = members
        .iter()
        .take_while(|&&host| host == members[0])
        .count();
    let mut nodes: Vec<NodeId> = members.iter().step_by(sockets).copied().collect();
    let even = members.len() == nodes.len() * sockets
        && members
            .chunks(sockets)
            .all(|host| host.iter().all(|&one| one == host[0]));
    nodes.sort_unstable();
    let distinct = nodes.windows(2).all(|pair| pair[0] != pair[1]);
    (even && distinct).then_some(sockets as u32)
}

/// Whether equation (5) finds the hosts of each leaf switch: as many below each, one after the other.
fn in_order(leaves: &[NodeId]) -> bool {
    let below = leaves.iter().take_while(|&&leaf| leaf == leaves[0]).count();
    let mut seen = BTreeMap::new();
    leaves.chunks(below).all(|hosts| {
        hosts.len() == below
            && hosts.iter().all(|&leaf| leaf == hosts[0])
            && seen.insert(hosts[0], ()).is_none()
    })
}

/// Why switches or masters refuse a group.
fn problem(fail_cause: u8) -> &'static str {
    const ALONE: u8 = Refusal::Alone as u8;
    const NO_ROOM: u8 = Refusal::NoRoom as u8;
    match fail_cause {
        ALONE => "the published protocol needs two hosts or more below each leaf switch",
        NO_ROOM => "a switch has no room for it",
        _ => "its switches and leaders found no terms of the published protocol",
    }
}

impl Offloads {
    pub(super) fn install_published(
        &mut self,
        transport: Transport,
        fabric: &Fabric,
        index: u32,
        group: &OffloadGroup,
        ways: Vec<Vec<PortId>>,
    ) -> Result<(), SetupError> {
        let Some(sockets) = sockets(&group.members) else {
            let problem =
                "the published protocol needs as many members on each host, one after the other";
            return Err(refuse(index, problem));
        };
        let nodes: Vec<NodeId> = group
            .members
            .iter()
            .step_by(sockets as usize)
            .copied()
            .collect();
        let leaf = |&host: &NodeId| behind(fabric, fabric.first_port(host));
        let leaves: Vec<NodeId> = nodes.iter().map(leaf).collect();
        if !in_order(&leaves) {
            let problem = "the published protocol needs equally many hosts below each leaf switch, one after the other";
            return Err(refuse(index, problem));
        }
        let one_leaf = leaves.iter().all(|&leaf| leaf == group.root);
        if !one_leaf && leaves.contains(&group.root) {
            return Err(refuse(index, "the root must be above all leaf switches"));
        }
        if index >= MOST_GROUPS {
            return Err(refuse(index, "the published protocol has 252 groups"));
        }
        for &leaf in &leaves {
            self.add_published_unit(leaf, Tier::Tor);
        }
        if !one_leaf {
            self.add_published_unit(group.root, Tier::Spine);
        }
        let wrong = || {
            refuse(
                index,
                "the published protocol has no room for so many members",
            )
        };
        let roles = Roles::new(sockets, nodes.len() as u32, 1).ok_or_else(wrong)?;
        let addresses: Vec<Ipv4Addr> = nodes.iter().map(|&host| ip(host)).collect();
        let leader = |rank| LeaderConfig {
            roles,
            rank,
            group: (FIRST_GROUP + index) as u8,
            transport,
            nodes: addresses.clone(),
            give_up: GIVE_UP,
            overdue: GIVE_UP,
        };
        let leaders = (0..roles.leaders()).map(|rank| Leader::new(Time::ZERO, leader(rank)));
        let set_up = SetUp {
            fabric,
            root: group.root,
            leaders: leaders.collect::<Result<_, _>>().map_err(|_| wrong())?,
            hosts: &group.members,
            frames: VecDeque::new(),
        };
        let leaders = set_up
            .agree(self)
            .map_err(|cause| refuse(index, problem(cause)))?;
        for ((place, core), way) in (0..).zip(leaders).zip(ways) {
            self.keep_ways(fabric, &way);
            self.add_leader(Speaker::Published(Box::new(core)), group, place, way);
        }
        Ok(())
    }

    fn add_published_unit(&mut self, node: NodeId, tier: Tier) {
        let places = self.places;
        self.units.entry(node).or_insert_with(|| {
            let core = Switch::new(SwitchConfig::new(ip(node), tier));
            Unit::new(Adder::Published(Box::new(core)), places)
        });
    }

    /// The ways from a leaf switch to the root and back.
    fn keep_ways(&mut self, fabric: &Fabric, way: &[PortId]) {
        let (Some(&first), Some(&last)) = (way.first(), way.last()) else {
            return;
        };
        let (leaf, root) = (behind(fabric, first), behind(fabric, last));
        for &port in &way[1..] {
            self.ways.insert((fabric.port(port).node, root), port);
            self.ways
                .insert((behind(fabric, port), leaf), fabric.port(port).peer);
        }
    }
}
