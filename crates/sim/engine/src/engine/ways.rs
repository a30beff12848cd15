//! The ways that packets take, for whoever records them: when a flow starts, and when routes change.

use raddle_unicast::FlowHash;
use raddle_units::{NodeId, PortId, Time};
use rustc_hash::FxHashSet;

use super::{
    Engine,
    flow::{DPORT, address},
    multicast::NO_SEND,
    rails::HalfConnection,
};
use crate::record::{Hop, PathRecord};

/// Ports that packets leave by, and how many links lie before each.
pub(super) type Way = Vec<(u16, PortId)>;

/// Whose way it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WayOwner {
    /// A flow, by its slot.
    Flow(u32),
    /// What a half of a connection sends over one rail.
    Rail(u32, u8),
}

/// Who and when of a [`PathRecord`].
struct Heading {
    src: NodeId,
    dst: NodeId,
    sport: Option<u16>,
    rail: u8,
    since: Time,
}

impl Engine<'_> {
    /// The way of something that starts now.
    #[cold]
    pub(super) fn record_way(&mut self, owner: WayOwner) {
        let way = self.way_of(owner);
        self.report(owner, &way);
    }

    /// The ways of all rails of a half that sends for the first time.
    #[cold]
    pub(super) fn record_rail_ways(&mut self, half: u32) {
        if std::mem::replace(&mut self.rails.half(half).recorded, true) {
            return;
        }
        for rail in 0..self.rails_of(half) {
            self.record_way(WayOwner::Rail(half, rail));
        }
    }

    /// The ways of the members of in-network reductions to the root of their tree. They never change.
    pub(super) fn record_reduction_ways(&mut self) {
        for member in 0..self.offload.members() {
            let (src, dst, sport, ports) = self.offload.way(member);
            let heading = Heading {
                src,
                dst,
                sport: Some(sport),
                rail: 0,
                since: self.now,
            };
            let way: Way = (0..).zip(ports.iter().copied()).collect();
            self.tell(&heading, &way);
        }
    }

    /// The ways of all that is under way.
    #[cold]
    pub(super) fn ways(&self) -> Vec<(WayOwner, Way)> {
        let live = |&index: &u32| self.flows[index as usize].live;
        let flows = (0..self.flows.len() as u32).filter(live);
        let halves = (0..).zip(&self.rails.halves);
        let rails = halves
            .filter(|(_, half)| half.recorded)
            .flat_map(|(half, _)| {
                (0..self.rails_of(half)).map(move |rail| WayOwner::Rail(half, rail))
            });
        flows
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

    fn rails_of(&self, half: u32) -> u8 {
        let host = self.rails.halves[half as usize].host;
        // A host has at most eight rails.
        self.fabric.ports_of(host).len() as u8
    }

    fn way_of(&self, owner: WayOwner) -> Way {
        match owner {
            WayOwner::Flow(index) => {
                let flow = &self.flows[index as usize];
                if flow.send != NO_SEND {
                    return self.tree(flow.src, self.multicast.address(flow.send));
                }
                let port = self.nics[flow.nic as usize].port;
                self.route(port, flow.dst, flow.hash)
            }
            WayOwner::Rail(half, rail) => {
                let HalfConnection { host, peer, .. } = self.rails.halves[half as usize];
                let ports = u32::from(rail) | DPORT << 16;
                let hash = FlowHash::new(address(host), address(peer), ports);
                let port = PortId(self.fabric.first_port(host).0 + u32::from(rail));
                self.route(port, peer, hash)
            }
        }
    }

    /// From a host's port to `dst`, as far as there are routes.
    fn route(&self, port: PortId, dst: NodeId, hash: FlowHash) -> Way {
        let mut way: Way = vec![(0, port)];
        let mut at = self.fabric.peer_node(port);
        while !self.fabric.is_host(at)
            && way.len() < self.fabric.node_count()
            && let Some(out) = self.router.next_hop(at, dst, hash)
        {
            way.push((way.len() as u16, out));
            at = self.fabric.peer_node(out);
        }
        way
    }

    /// From a host to all that the tables lead packets with this address to, nearest first.
    fn tree(&self, src: NodeId, address: NodeId) -> Way {
        let mut way: Way = vec![(0, self.fabric.first_port(src))];
        let mut passed = FxHashSet::default();
        let mut next = 0;
        while let Some(&(depth, leaving)) = way.get(next) {
            next += 1;
            let arriving = self.fabric.port(leaving).peer;
            let end = self.fabric.port(arriving);
            if self.fabric.is_host(end.node) || !passed.insert(arriving) {
                continue;
            }
            let first = self.fabric.first_port(end.node).0;
            let outs = self.multicast.out_ports(end.node, end.number, address);
            way.extend(
                outs.iter()
                    .map(|number| (depth + 1, PortId(first + u32::from(number) - 1))),
            );
        }
        way
    }

    fn report(&mut self, owner: WayOwner, way: &Way) {
        let heading = match owner {
            WayOwner::Flow(index) => {
                let flow = &self.flows[index as usize];
                Heading {
                    src: flow.src,
                    dst: flow.dst,
                    sport: Some(flow.sport),
                    rail: 0,
                    since: self.now,
                }
            }
            WayOwner::Rail(half, rail) => {
                let half = &self.rails.halves[half as usize];
                Heading {
                    src: half.host,
                    dst: half.peer,
                    sport: None,
                    rail,
                    since: self.now,
                }
            }
        };
        self.tell(&heading, way);
    }

    fn tell(&mut self, heading: &Heading, way: &Way) {
        let hop = |&(depth, port): &(u16, PortId)| {
            let own = self.fabric.port(port);
            Hop {
                depth,
                node: own.node,
                port: own.number,
                peer: self.fabric.peer_node(port),
            }
        };
        let hops: Vec<Hop> = way.iter().map(hop).collect();
        self.recorder.path(&PathRecord {
            src: heading.src,
            dst: heading.dst,
            sport: heading.sport,
            rail: heading.rail,
            since: heading.since,
            hops: &hops,
        });
    }
}
