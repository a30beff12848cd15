//! The ways that packets take, for whoever records them: when a flow starts, and when routes change.

use raddle_fabric::Fabric;
use raddle_multicast::Colour;
use raddle_unicast::FlowHash;
use raddle_units::{NodeId, PortId};
use rustc_hash::FxHashSet;

use super::{
    flow::{DPORT, FlowTo, address},
    groups::Groups,
    process::{Base, Process},
    rails::{HalfConnection, RailHosts},
    records::{Record, WayRecord},
};
use crate::{
    index::{FlowSlot, HalfIndex},
    record::{Hop, WayEnd},
};

/// Ports that packets leave by, and how many links lie before each.
pub(super) type Way = Vec<(u16, PortId)>;

/// Whose way it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WayOwner {
    /// A flow.
    Flow(FlowSlot),
    /// What a half of a connection sends over one rail.
    Rail(HalfIndex, u8),
}

/// Whose a [`PathRecord`] is.
struct Heading {
    src: NodeId,
    dst: WayEnd,
    sport: Option<u16>,
    rail: u8,
}

impl Base<'_> {
    /// From a host's port to `dst`, as far as there are routes.
    fn route(&self, port: PortId, dst: NodeId, hash: FlowHash) -> Way {
        let fabric = self.cx.fabric;
        let mut way: Way = vec![(0, port)];
        let mut at = fabric.peer_node(port);
        while !fabric.is_host(at)
            && way.len() < fabric.node_count()
            && let Some(out) = self.wires.router.next_hop(at, dst, hash)
        {
            way.push((way.len() as u16, out));
            at = fabric.peer_node(out);
        }
        way
    }

    fn tell(&mut self, heading: &Heading, way: &[(u16, PortId)]) {
        let fabric = self.cx.fabric;
        let hop = |&(depth, port): &(u16, PortId)| {
            let own = fabric.port(port);
            Hop {
                depth,
                node: own.node,
                port: own.number,
                peer: fabric.peer_node(port),
            }
        };
        let record = WayRecord {
            src: heading.src,
            dst: heading.dst,
            sport: heading.sport,
            rail: heading.rail,
            since: self.cx.now,
            hops: way.iter().map(hop).collect(),
        };
        self.cx.record(heading.src, Record::Way(Box::new(record)));
    }
}

impl Groups<'_> {
    /// From a host to all that the tables lead packets of this colour to, nearest first.
    fn tree(&self, fabric: &Fabric, src: NodeId, colour: Colour) -> Way {
        let mut way: Way = vec![(0, fabric.first_port(src))];
        let mut passed = FxHashSet::default();
        let mut next = 0;
        while let Some(&(depth, leaving)) = way.get(next) {
            next += 1;
            let arriving = fabric.port(leaving).peer;
            let end = fabric.port(arriving);
            if fabric.is_host(end.node) || !passed.insert(arriving) {
                continue;
            }
            let first = fabric.first_port(end.node).0;
            let outs = self.out_ports(end.node, end.number, colour);
            way.extend(
                outs.iter()
                    .map(|number| (depth + 1, PortId(first + u32::from(number) - 1))),
            );
        }
        way
    }
}

impl RailHosts<'_> {
    /// The ways of all rails of a half that sends for the first time.
    #[cold]
    pub(super) fn record_ways(&mut self, base: &mut Base<'_>, half: HalfIndex) {
        if std::mem::replace(&mut self.halves[half].recorded, true) {
            return;
        }
        for rail in self.rails_of(base, half) {
            let way = self.way(base, half, rail);
            self.tell(base, half, rail, &way);
        }
    }

    /// Every rail of a half.
    fn rails_of(&self, base: &Base<'_>, half: HalfIndex) -> std::ops::Range<u8> {
        let host = self.halves[half].host;
        // A host has at most eight rails.
        0..base.cx.fabric.ports_of(host).len() as u8
    }

    fn way(&self, base: &Base<'_>, half: HalfIndex, rail: u8) -> Way {
        let HalfConnection { host, peer, .. } = self.halves[half];
        let ports = u32::from(rail) | DPORT << 16;
        let hash = FlowHash::new(address(host), address(peer), ports);
        let port = PortId(base.cx.fabric.first_port(host).0 + u32::from(rail));
        base.route(port, peer, hash)
    }

    fn tell(&self, base: &mut Base<'_>, half: HalfIndex, rail: u8, way: &Way) {
        let HalfConnection { host, peer, .. } = self.halves[half];
        let heading = Heading {
            src: host,
            dst: WayEnd::Host(peer),
            sport: None,
            rail,
        };
        base.tell(&heading, way);
    }
}

impl Process<'_> {
    /// The way of a flow that starts now.
    #[cold]
    pub(super) fn record_way(&mut self, index: FlowSlot) {
        let owner = WayOwner::Flow(index);
        let way = self.way_of(owner);
        self.report(owner, &way);
    }

    /// The ways of the members of in-network reductions to the root of their tree. They never change.
    pub(super) fn record_reduction_ways(&mut self) {
        for member in self.offload.members() {
            let (src, root, sport, ports) = self.offload.way(member);
            let heading = Heading {
                src,
                dst: WayEnd::Root(root),
                sport: Some(sport),
                rail: 0,
            };
            let way: Way = (0..).zip(ports.iter().copied()).collect();
            self.base.tell(&heading, &way);
        }
    }

    /// The ways of all that is under way.
    #[cold]
    pub(super) fn ways(&self) -> Vec<(WayOwner, Way)> {
        let flows = &self.base.hosts.flows;
        let mut live: Vec<FlowSlot> = flows.places().filter(|&index| flows[index].live).collect();
        live.sort_by_key(|&index| (flows[index].src, flows[index].number));
        let halves = self.rails.halves.places();
        let rails = halves
            .filter(|&half| self.rails.halves[half].recorded)
            .flat_map(|half| {
                let rails = self.rails.rails_of(&self.base, half);
                rails.map(move |rail| WayOwner::Rail(half, rail))
            });
        live.into_iter()
            .map(WayOwner::Flow)
            .chain(rails)
            .map(|owner| (owner, self.way_of(owner)))
            .collect()
    }

    /// Reports the ways that are not what they were `before`.
    #[cold]
    pub(super) fn record_new_ways(&mut self, before: &[(WayOwner, Way)]) {
        for (owner, old) in before {
            let new = self.way_of(*owner);
            if new != *old {
                self.report(*owner, &new);
            }
        }
    }

    fn way_of(&self, owner: WayOwner) -> Way {
        let index = match owner {
            WayOwner::Flow(index) => index,
            WayOwner::Rail(half, rail) => return self.rails.way(&self.base, half, rail),
        };
        let flow = &self.base.hosts.flows[index];
        match flow.to {
            FlowTo::Host(dst) => {
                let port = self.base.hosts.nics[flow.nic].port;
                self.base
                    .route(self.base.wires.ends[port].id, dst, flow.hash)
            }
            FlowTo::Group { colour, .. } => self.groups.tree(self.base.cx.fabric, flow.src, colour),
        }
    }

    fn report(&mut self, owner: WayOwner, way: &Way) {
        let index = match owner {
            WayOwner::Flow(index) => index,
            WayOwner::Rail(half, rail) => return self.rails.tell(&mut self.base, half, rail, way),
        };
        let flow = &self.base.hosts.flows[index];
        let heading = Heading {
            src: flow.src,
            dst: match flow.to {
                FlowTo::Host(dst) => WayEnd::Host(dst),
                FlowTo::Group { group, .. } => WayEnd::Group(group),
            },
            sport: Some(flow.sport),
            rail: 0,
        };
        self.base.tell(&heading, way);
    }
}
