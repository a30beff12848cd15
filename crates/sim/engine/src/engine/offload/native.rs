//! Our own protocol: every switch from a member to the root adds up what comes from below.

use std::net::{Ipv4Addr, SocketAddrV4};

use raddle_fabric::Fabric;
use raddle_offload::{
    member::{Member, MemberConfig},
    switch::{Abilities, Quotas, SiteSecret, Switch, SwitchConfig, job_key},
};
use raddle_units::{NodeId, PortId, Span, Time};
use raddle_wire::native::{
    ChildEntry, Header, Kind as Message, MAX_BODY, ProgramHead, Unverified, write_program,
};

use super::{
    Adder, FIRST_PORT, GIVE_UP, Offloads, Speaker, Unit, behind, ip, node_of, refuse, switch_socket,
};
use crate::{
    offload::{Offload, OffloadGroup},
    setup::SetupError,
};

/// Ethernet 14, IPv4 20, UDP 8, frame check sequence 4.
pub(super) const OUTSIDE: u32 = 46;
/// Room for the longest message.
pub(super) const BUFFER: usize = Header::SIZE + MAX_BODY;

/// The job of all groups.
const JOB: u32 = 1;
const SECRET: SiteSecret = SiteSecret::new([0; 32]);
const LEASE_MS: u32 = 60_000;

/// A switch's place in a group's tree: its parent, and its children with the least member below each.
#[derive(Debug, Default)]
struct Place {
    parent: Option<NodeId>,
    children: Vec<(u32, SocketAddrV4)>,
}

/// The switches of a group's tree, in order of first meeting: members' switches before the root's.
fn tree(
    fabric: &Fabric,
    group: &OffloadGroup,
    first_port: u16,
    ways: &[Vec<PortId>],
) -> Vec<(NodeId, Place)> {
    let mut places: Vec<(NodeId, Place)> = Vec::new();
    for ((member, way), &host) in (0..).zip(ways).zip(&group.members) {
        let mut child = SocketAddrV4::new(ip(host), first_port + member as u16);
        for (step, &port) in way.iter().enumerate() {
            let at = behind(fabric, port);
            let found = places.iter().position(|place| place.0 == at);
            let place = found.unwrap_or_else(|| {
                places.push((at, Place::default()));
                places.len() - 1
            });
            places[place].1.children.push((member, child));
            if found.is_some() {
                break;
            }
            places[place].1.parent = way.get(step + 1).map(|&port| behind(fabric, port));
            child = switch_socket(at);
        }
    }
    places
}

impl Offloads {
    pub(super) fn install_native(
        &mut self,
        plan: &Offload,
        fabric: &Fabric,
        index: u32,
        group: &OffloadGroup,
        ways: Vec<Vec<PortId>>,
    ) -> Result<(), SetupError> {
        let first_port = FIRST_PORT + self.leaders.len() as u16;
        let places = tree(fabric, group, first_port, &ways);
        for (member, way) in (0..).zip(ways) {
            self.add_member(plan, fabric, index, group, member, way);
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
        fabric: &Fabric,
        index: u32,
        group: &OffloadGroup,
        member: u32,
        way: Vec<PortId>,
    ) {
        let config = MemberConfig {
            job: JOB,
            key: job_key(&SECRET, JOB),
            group: index,
            member,
            switch: switch_socket(behind(fabric, way[0])),
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
        self.add_leader(Speaker::Native(Box::new(core)), group, member, way);
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
        let places = self.places;
        let unit = self.units.entry(node).or_insert_with(|| {
            let core = Switch::new(SwitchConfig {
                address: ip(node),
                tier: 1,
                epoch: 1,
                secret: SECRET,
                quotas: Quotas::default(),
                abilities: Abilities::default(),
            });
            Unit::new(Adder::Native(Box::new(core)), places)
        });
        let Adder::Native(core) = &mut unit.core else {
            return Err(refuse(group, "a switch speaks another protocol"));
        };
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
            .iter()
            .next_back()
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
        core.handle_packet(Time::ZERO, from, &self.buffer[..length]);
        let mut installed = false;
        while let Some((_, length)) = core.poll_transmit(&mut self.buffer) {
            let answer = Unverified::parse(&self.buffer[..length], 0);
            installed |= answer.is_ok_and(|answer| answer.kind() == Message::Lease);
        }
        while core.poll_event().is_some() {}
        if installed {
            Ok(())
        } else {
            Err(refuse(
                group,
                "a switch has no room for it: use fewer or smaller slots",
            ))
        }
    }
}
