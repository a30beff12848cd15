//! The check that counts: packets walk through the tables, and what arrives is compared with the members.

use raddle_fabric::Fabric;
use raddle_units::{NodeId, PortId};

use super::{Colour, Group, Mgid, MulticastTables};
use raddle_unicast::LinkState;

/// From which members packets are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Senders {
    /// Every member in turn. Time: members times links of the tree.
    All,
    /// At most this many members, spread evenly over the list.
    Some(usize),
}

/// What packets of groups met on their way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FloodReport {
    /// Packets sent: one for each sender.
    pub packets: u64,
    /// Deliveries to other members.
    pub delivered: u64,
    /// Other members that got no copy.
    pub missing: u64,
    /// Copies to hosts that are no members.
    pub foreign: u64,
    /// Copies beyond the first to one member, the sender's own packet included.
    pub duplicate: u64,
    /// Copies that came to a switch by a port by which another copy had come.
    pub looping: u64,
    /// Copies sent into a failed link.
    pub lost: u64,
}

impl FloodReport {
    /// Adds the counts of another report.
    pub fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.delivered += other.delivered;
        self.missing += other.missing;
        self.foreign += other.foreign;
        self.duplicate += other.duplicate;
        self.looping += other.looping;
        self.lost += other.lost;
    }
}

/// Walks packets through tables. It keeps its memory from group to group.
#[derive(Clone, Debug)]
pub struct Flood<'a> {
    fabric: &'a Fabric,
    tables: &'a MulticastTables,
    links: Option<&'a LinkState>,
    /// By port: the packet that came in there last; by node: the packet that a host got last and its copies.
    came_in: Vec<u64>,
    got: Vec<(u64, u32)>,
    packet: u64,
    queue: Vec<(NodeId, u8)>,
}

impl<'a> Flood<'a> {
    /// A walker over these tables; copies into links that are down are lost.
    pub fn new(
        fabric: &'a Fabric,
        tables: &'a MulticastTables,
        links: Option<&'a LinkState>,
    ) -> Self {
        Self {
            fabric,
            tables,
            links,
            came_in: vec![0; fabric.port_count()],
            got: vec![(0, 0); fabric.node_count()],
            packet: 0,
            queue: Vec::new(),
        }
    }

    /// Sends packets of one group with a colour by its members' first ports.
    pub fn group(&mut self, group: &Group, colour: Colour, senders: Senders) -> FloodReport {
        let mut report = FloodReport::default();
        let members = &group.members;
        let step = match senders {
            Senders::All => 1,
            Senders::Some(n) => members.len().div_ceil(n.max(1)).max(1),
        };
        for &sender in members.iter().step_by(step) {
            self.packet += 1;
            report.packets += 1;
            let foreign = self.walk(sender, colour, &mut report);
            let mut copies_to_members = 0;
            for &member in members {
                let (packet, copies) = self.got[member.index()];
                let copies = u64::from(if packet == self.packet { copies } else { 0 });
                copies_to_members += copies;
                if member == sender {
                    report.duplicate += copies;
                } else if copies == 0 {
                    report.missing += 1;
                } else {
                    report.delivered += 1;
                    report.duplicate += copies - 1;
                }
            }
            report.foreign += foreign - copies_to_members;
        }
        report
    }

    /// Sends packets of many groups; `colour_of` says with which colour (a group without one misses all members).
    pub fn groups(
        &mut self,
        groups: &[Group],
        colour_of: impl Fn(Mgid) -> Option<Colour>,
        senders: Senders,
    ) -> FloodReport {
        let mut report = FloodReport::default();
        for group in groups {
            match colour_of(group.mgid) {
                Some(colour) => report.add(&self.group(group, colour, senders)),
                None => report.missing += group.members.len() as u64,
            }
        }
        report
    }

    /// One packet; gives the number of copies that hosts got.
    fn walk(&mut self, sender: NodeId, colour: Colour, report: &mut FloodReport) -> u64 {
        let mut copies = 0;
        self.queue.clear();
        let first = self.fabric.first_port(sender);
        self.cross(first, report, &mut copies);
        while let Some((switch, in_port)) = self.queue.pop() {
            for number in self.tables.out_ports(switch, in_port, colour).iter() {
                let ports = self.fabric.ports_of(switch);
                // A port that is not there loses the copy.
                if number == 0 || usize::from(number) > ports.len() {
                    report.lost += 1;
                    continue;
                }
                let mut port = self.fabric.first_port(switch);
                port.0 += u32::from(number) - 1;
                self.cross(port, report, &mut copies);
            }
        }
        copies
    }

    fn cross(&mut self, from: PortId, report: &mut FloodReport, copies: &mut u64) {
        let port = self.fabric.port(from);
        if self.links.is_some_and(|links| !links.is_up(port.link)) {
            report.lost += 1;
            return;
        }
        let end = self.fabric.port(port.peer);
        if self.fabric.is_host(end.node) {
            let got = &mut self.got[end.node.index()];
            if got.0 != self.packet {
                *got = (self.packet, 0);
            }
            got.1 += 1;
            *copies += 1;
            return;
        }
        let seen = &mut self.came_in[port.peer.index()];
        if *seen == self.packet {
            report.looping += 1;
            return;
        }
        *seen = self.packet;
        if let Ok(number) = u8::try_from(end.number) {
            self.queue.push((end.node, number));
        }
    }
}
